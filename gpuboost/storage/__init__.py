"""Files that gpuboost writes: whole or not at all."""

from gpuboost.storage.writing import same_file, write, writing

__all__ = ["same_file", "write", "writing"]
