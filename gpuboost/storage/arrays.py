"""A file of named arrays that is mapped into memory, with a checksum for each array and for the header.

Layout, with numbers in little-endian order:

* 8 bytes: ``MAGIC``;
* 4 bytes: CRC-32 of the header; 4 bytes: zero; 8 bytes: length of the header in bytes;
* the header: JSON in ASCII, ``{"kind", "version", "about", "arrays", "end"}``. ``arrays`` has, for each name, dtype,
  shape, order ("C" or "F"), offset from the beginning of the file and CRC-32; ``end`` is the size of the file;
* the arrays, each at a multiple of 64 bytes, with zeros between them.
"""

from __future__ import annotations

import json
import mmap
import os
import re
import stat
from collections.abc import Mapping
from math import prod
from typing import IO, Any, NoReturn
from zlib import crc32

import numpy as np
from numpy.typing import NDArray

from gpuboost.errors import InputError
from gpuboost.records import dataclass
from gpuboost.storage.writing import checked_path, writing

MAGIC = b"\x93gpub\r\n\x1a"
"""No text; a transfer that changes line ends damages it."""

_ALIGNMENT = 64
_HEAD = 24  # bytes before the header
_DTYPES = re.compile(r"\|[bui]1|\|S\d{1,9}|<(?:[iu][248]|f[248]|U\d{1,9}|[mM]8(?:\[\w+\])?)")
_KEYS = {"kind", "version", "about", "arrays", "end"}
_ARRAY_KEYS = {"dtype", "shape", "order", "offset", "crc32"}
_CHUNK = 1 << 24  # bytes checked at a time, so that an interrupt takes effect soon


def can_hold(dtype: np.dtype[Any]) -> bool:
    """True for booleans, integers, floats up to 64 bits, text, bytes, dates and time spans."""
    return _DTYPES.fullmatch(_little(dtype).str) is not None


def write_arrays(
    path: str | os.PathLike[str],
    kind: str,
    version: int,
    about: Mapping[str, Any],
    arrays: Mapping[str, NDArray[Any]],
) -> None:
    """Write the arrays and ``about``, a JSON object, to a file; ``ArrayFile.open`` reads it.

    The same content gives the same bytes.

    Raises:
        InputError: if ``path`` is no path.
        OSError: if the file cannot be written; ``filename`` is ``path``.
    """
    stored = {name: _stored_form(array) for name, array in arrays.items()}
    entries = {name: _entry(array) for name, array in stored.items()}
    with writing(path) as file:
        header = _placed(kind, version, dict(about), entries)
        file.write(MAGIC + crc32(header).to_bytes(4, "little") + bytes(4) + len(header).to_bytes(8, "little") + header)
        position = _HEAD + len(header)
        for name, array in stored.items():
            file.write(bytes(entries[name]["offset"] - position))
            _write_array(file, array)
            position = entries[name]["offset"] + array.nbytes


@dataclass(frozen=True, slots=True)
class StoredArray:
    """One array of a file. ``read`` compares its checksum, ``mapped`` does not."""

    file: ArrayFile
    name: str
    dtype: np.dtype[Any]
    shape: tuple[int, ...]
    order: str
    offset: int
    crc32: int

    @property
    def nbytes(self) -> int:
        return prod(self.shape) * self.dtype.itemsize

    def mapped(self) -> NDArray[Any]:
        """The array in the file. What is written to it stays in this process."""
        flat = np.frombuffer(self.file.content, self.dtype, prod(self.shape), self.offset)
        return flat.reshape(self.shape, order="F" if self.order == "F" else "C")

    def read(self) -> NDArray[Any]:
        """The same, after a comparison with its checksum.

        Raises:
            InputError: if the bytes are not those that were written.
        """
        content, checksum = memoryview(self.file.content), 0
        end = self.offset + self.nbytes
        for start in range(self.offset, end, _CHUNK):
            checksum = crc32(content[start : min(start + _CHUNK, end)], checksum)
        if checksum != self.crc32:
            self.file.refuse(f"the bytes of {self.name!r} are not those that were written; the file is damaged")
        return self.mapped()


@dataclass(frozen=True, slots=True, eq=False)
class ArrayFile:
    """A file that ``write_arrays`` wrote, mapped into memory; arrays are read when they are used."""

    path: str
    what: str  # such as "dataset file", for messages
    about: dict[str, Any]
    arrays: dict[str, StoredArray]
    content: mmap.mmap

    @classmethod
    def open(cls, path: str | os.PathLike[str], kind: str, newest: int, what: str) -> ArrayFile:
        """Map a file and check its header.

        Raises:
            InputError: if the file is not of this kind, is damaged, or has a version above ``newest``; the message
                names it.
            OSError: if it cannot be read.
        """
        name = os.fspath(checked_path(path))
        content = _mapped(name, what)
        header = _header(content, name, what)
        if header["kind"] != kind:
            _refuse(name, what, f"it is a file of kind {str(header['kind'])[:40]!r}")
        version = header["version"]
        if not _is_count(version) or version < 1:
            _refuse(name, what, "its version is no number")
        if version > newest:
            _refuse(
                name,
                what,
                f"version {version} was made by a newer gpuboost; this one reads up to {newest}. Load it with a "
                "gpuboost at least as new as the one that saved it",
            )
        file = cls(name, what, header["about"], {}, content)
        for key, entry in header["arrays"].items():
            file.arrays[key] = file._array(key, entry)
        return file

    def refuse(self, why: str) -> NoReturn:
        """Raise InputError that names the file."""
        _refuse(self.path, self.what, why)

    def array(self, name: str, kinds: str, shape: tuple[int | None, ...]) -> StoredArray:
        """An array that must be there, of one of the dtypes that are named, such as "f4 f8"; None: of any length.

        Raises:
            InputError: if it is not there, or is another one.
        """
        stored = self.arrays.get(name)
        if stored is None:
            self.refuse(f"it has no {name!r}")
        fits = len(stored.shape) == len(shape) and all(
            wanted in (None, length) for wanted, length in zip(shape, stored.shape, strict=True)
        )
        if stored.dtype.str[1:] not in kinds.split() or not fits:
            self.refuse(f"{name!r} is {stored.dtype} of shape {stored.shape}, which does not match the rest")
        return stored

    def _array(self, name: str, entry: Any) -> StoredArray:
        well_formed = (
            isinstance(entry, dict)
            and set(entry) == _ARRAY_KEYS
            and isinstance(entry["dtype"], str)
            and _DTYPES.fullmatch(entry["dtype"])
            and isinstance(entry["shape"], list)
            and all(map(_is_count, [*entry["shape"], entry["offset"], entry["crc32"]]))
            and entry["order"] in ("C", "F")
        )
        if not well_formed:
            self.refuse(f"the description of {name!r} is damaged")
        try:
            dtype = np.dtype(entry["dtype"])
        except (TypeError, ValueError):  # a unit of time that does not exist
            self.refuse(f"the description of {name!r} is damaged")
        shape = tuple(entry["shape"])
        stored = StoredArray(self, name, dtype, shape, entry["order"], entry["offset"], entry["crc32"])
        if (
            not dtype.itemsize
            or stored.offset % _ALIGNMENT
            or stored.offset + stored.nbytes > len(self.content)
            or len(shape) > 2
        ):
            self.refuse(f"{name!r} does not lie in it")
        return stored


def _refuse(path: str, what: str, why: str) -> NoReturn:
    raise InputError(f"{what} {path!r}: {why}.")


def _is_count(value: Any) -> bool:
    return isinstance(value, int) and not isinstance(value, bool) and 0 <= value < 2**62


def _mapped(path: str, what: str) -> mmap.mmap:
    with open(path, "rb") as file:
        about = os.fstat(file.fileno())
        if not stat.S_ISREG(about.st_mode):
            _refuse(path, what, "it is no regular file, which can be mapped into memory")
        begin = file.read(_HEAD)
        if len(begin) < _HEAD or not begin.startswith(MAGIC):
            _refuse(path, what, "it does not begin as a file of arrays does; Dataset.save writes such files")
        return mmap.mmap(file.fileno(), about.st_size, access=mmap.ACCESS_COPY)


def _header(content: mmap.mmap, path: str, what: str) -> dict[str, Any]:
    """The header, whose checksum and structure are right."""
    checksum = int.from_bytes(content[8:12], "little")
    length = int.from_bytes(content[16:_HEAD], "little")
    if length > len(content) - _HEAD or any(content[12:16]):
        _refuse(path, what, "its header is cut off or damaged")
    text = content[_HEAD : _HEAD + length]
    if crc32(text) != checksum:
        _refuse(path, what, "its header is not that which was written; the file is damaged")
    try:
        header = json.loads(text.decode("ascii"), parse_constant=_no_constant)
    except (ValueError, RecursionError):
        _refuse(path, what, "its header is no JSON")
    if not isinstance(header, dict) or set(header) != _KEYS:
        _refuse(path, what, f"its header has other entries than {', '.join(sorted(_KEYS))}")
    if not isinstance(header["about"], dict) or not isinstance(header["arrays"], dict):
        _refuse(path, what, "its header is damaged")
    if header["end"] != len(content):
        _refuse(path, what, f"it has {len(content):,} bytes, and was written with {header['end']!r}; it is cut off")
    return header


def _no_constant(name: str) -> NoReturn:
    raise ValueError(f"{name} is no JSON")


def _little(dtype: np.dtype[Any]) -> np.dtype[Any]:
    return dtype.newbyteorder("<") if dtype.kind != "O" else dtype


def _stored_form(array: NDArray[Any]) -> NDArray[Any]:
    """The array in little-endian order, contiguous by rows or by columns."""
    array = array.astype(_little(array.dtype), copy=False)
    return array if array.flags.c_contiguous or array.flags.f_contiguous else np.ascontiguousarray(array)


def _bytes_of(array: NDArray[Any]) -> NDArray[np.uint8]:
    flat = array.reshape(-1) if array.flags.c_contiguous else array.T.reshape(-1)
    return flat.view(np.uint8) if flat.dtype.itemsize else np.empty(0, np.uint8)


def _entry(array: NDArray[Any]) -> dict[str, Any]:
    order = "C" if array.flags.c_contiguous else "F"
    return {
        "dtype": array.dtype.str,
        "shape": list(array.shape),
        "order": order,
        "crc32": crc32(_bytes_of(array).data),
        "nbytes": array.nbytes,
    }


def _placed(kind: str, version: int, about: dict[str, Any], entries: dict[str, dict[str, Any]]) -> bytes:
    """The header. The offsets depend on its length, and its length on them: it is padded with spaces."""
    sizes = {name: entry.pop("nbytes") for name, entry in entries.items()}
    room = 0
    while True:
        position = end = _HEAD + room
        for name, entry in entries.items():
            entry["offset"] = -(-position // _ALIGNMENT) * _ALIGNMENT
            position = end = entry["offset"] + sizes[name]
        content = {"kind": kind, "version": version, "about": about, "arrays": entries, "end": end}
        header = json.dumps(content, allow_nan=False, separators=(",", ":")).encode("ascii")
        if len(header) <= room:
            return header.ljust(room)
        room = -(-len(header) // _ALIGNMENT) * _ALIGNMENT + _ALIGNMENT


def _write_array(file: IO[bytes], array: NDArray[Any]) -> None:
    content = _bytes_of(array).data
    for start in range(0, len(content), _CHUNK):
        file.write(content[start : start + _CHUNK])
