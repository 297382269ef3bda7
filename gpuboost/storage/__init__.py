"""Files that gpuboost writes: whole or not at all."""

from gpuboost.storage.writing import checked_path, same_file, write, writing

__all__ = ["checked_path", "same_file", "write", "writing"]
