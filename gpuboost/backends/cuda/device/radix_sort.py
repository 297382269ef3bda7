"""Sizes of the launches of a radix sort: kernels/common/radix.cuh."""

from __future__ import annotations

RADIX, CHUNK = 256, 4096  # as in radix.cuh: digits, and items of a chunk
FEW_CHUNKS = 32  # whose counts of a digit one thread adds up


def chunks_of(n: int) -> int:
    """Number of chunks of n items, 1 or more."""
    return max(1, -(-n // CHUNK))


def blocks_of_digits(chunks: int) -> tuple[int]:
    """Grid of kernels that call ``place_digits``."""
    return (1 if chunks <= FEW_CHUNKS else RADIX,)
