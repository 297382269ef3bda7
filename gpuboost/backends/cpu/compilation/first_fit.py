"""The first small fits on a machine by NumPy, while another process compiles the kernels; the same bytes.

A plain fit of 1,000 x 10 and 100 trees takes less than a second this way, and ten if it waits for the kernels.
"""

from __future__ import annotations

import subprocess
import threading

from gpuboost.backends.cpu.compilation.warm_up import start_process
from gpuboost.kernels.disk_cache.folders import is_noted, note

SECONDS = 5.0  # of fits by NumPy, half the time to compile the kernels
KERNELS = "small-numeric"  # noted by the helper process, too, when those of small trees are on disk

_RUN = (
    "import json, sys; sys.path[:] = json.loads(sys.argv[1]); import numpy, gpuboost; "
    "from gpuboost.backends.cpu.compilation import first_fit; first_fit.FIRST_FITS.end(); "
    "x = numpy.random.default_rng(0).normal(size=(256, 2)); "
    "gpuboost.GradientBoostingRegressor(n_estimators=2, device='cpu').fit(x, x[:, 0]); "
    "gpuboost.GradientBoostingClassifier(n_estimators=2, device='cpu').fit(x, x[:, 0] > 0); "
    "first_fit.note_kernels()"
)


class FirstFits:
    """The first small fits of a process, by NumPy."""

    def __init__(self, seconds: float = SECONDS) -> None:
        """seconds: of fits by NumPy."""
        self._lock, self._left = threading.Lock(), seconds
        self._process: subprocess.Popen[bytes] | None = None

    def are_over(self, threads: int) -> bool:
        """True if fits are left to kernels: they are on disk, or the time for fits by NumPy is used up.

        So they are with one thread, as in a pool's workers: no process is started there.
        """
        with self._lock:
            if self._left > 0.0 and is_noted(KERNELS):
                self._left = 0.0
            return threads == 1 or self._left <= 0.0

    def take(self, seconds: float) -> bool:
        """True if a fit that takes NumPy so long need not wait for kernels, which a process compiles meanwhile."""
        with self._lock:
            if seconds > self._left:
                return False
            if self._process is None:
                self._process = start_process(KERNELS, _RUN, background=True)
                if self._process is not None and self._process.stdin is not None:
                    self._process.stdin.close()  # nothing is sent to it
            if self._process is None or self._process.poll() is not None:
                self._left = 0.0
                return False
            self._left -= seconds
            return True

    def end(self) -> None:
        """Leave all fits to kernels from now on."""
        with self._lock:
            self._left = 0.0


FIRST_FITS = FirstFits()


def note_kernels() -> None:
    """Remember that the kernels are on disk."""
    note(KERNELS)
