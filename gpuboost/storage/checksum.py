"""A checksum inside a text file: of all its bytes, with zeros in the place of the checksum itself."""

from __future__ import annotations

from zlib import crc32

UNSEALED = "00000000"
"""Eight digits that stand where the checksum will be."""


def sealed(text: str, mark: str) -> str:
    """The text with its checksum in the place of the zeros after the first ``mark``.

    The checksum is CRC-32, which differs for every change of up to 32 bits in a row.
    """
    before, separator, after = text.partition(mark + UNSEALED)
    if not separator:
        raise ValueError(f"the text has no {mark + UNSEALED!r}")
    return f"{before}{mark}{crc32(text.encode('ascii')):08x}{after}"


def is_intact(content: bytes, mark: str, checksum: str) -> bool:
    """True if ``content`` is what ``sealed`` returned, with this checksum after the first ``mark``."""
    before, separator, after = content.partition((mark + checksum).encode())
    return bool(separator) and f"{crc32(before + (mark + UNSEALED).encode() + after):08x}" == checksum
