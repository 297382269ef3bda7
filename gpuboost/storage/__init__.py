"""Files that gpuboost writes: whole or not at all."""

from gpuboost.storage.arrays import ArrayFile, StoredArray, can_hold, write_arrays
from gpuboost.storage.checksum import UNSEALED, is_intact, sealed
from gpuboost.storage.writing import checked_path, same_file, write, writing

__all__ = [
    "UNSEALED",
    "ArrayFile",
    "StoredArray",
    "can_hold",
    "checked_path",
    "is_intact",
    "same_file",
    "sealed",
    "write",
    "write_arrays",
    "writing",
]
