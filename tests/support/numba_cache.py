"""Two test processes that compile into one cache of numba.

numba finds a free file name, writes it into the index and then writes the file, under no lock. Two processes that save
two signatures of one kernel at the same moment may choose the same name, and one finds the other's code under it.
"""

from __future__ import annotations

import fcntl
import tempfile
from pathlib import Path
from typing import Any

from numba.core.caching import IndexDataCacheFile

LOCK = Path(tempfile.gettempdir()) / "gpuboost-tests-numba.lock"


def save_one_at_a_time() -> None:
    """Have this process save compiled kernels while no other test process does."""
    save = IndexDataCacheFile.save

    def locked(self: IndexDataCacheFile, key: Any, data: Any) -> None:
        with LOCK.open("w") as file:
            fcntl.flock(file, fcntl.LOCK_EX)
            save(self, key, data)

    IndexDataCacheFile.save = locked
