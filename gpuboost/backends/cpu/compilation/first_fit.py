"""The first small fits on a machine by NumPy, while another process compiles the kernels; the same bytes.

A plain fit of 1,000 x 10 and 100 trees takes less than a second this way, and ten if it waits for the kernels.
"""

from __future__ import annotations

import subprocess
import threading
from collections.abc import Sequence
from contextlib import suppress
from typing import NamedTuple

from gpuboost.backends.cpu.compilation.warm_up import start_process
from gpuboost.backends.cpu.trees.small_trees import BOUNDED, GENERAL, OBLIVIOUS
from gpuboost.kernels.disk_cache.folders import is_noted, note, usable_folder


class FitKernels(NamedTuple):
    """Kernels that some fits need."""

    seconds: float  # of fits by NumPy: half the time to compile the kernels
    parameters: str  # of a fit that needs them
    variant: str | None = None  # of the kernel that grows such trees, which two rounds do without
    call: str = "fit"  # function of the program that makes these fits


PLAIN, CATEGORIES = "plain", "categories"
OF_TREES = {
    "oblivious": FitKernels(2.5, "growth='oblivious'", OBLIVIOUS),
    "min_samples_leaf": FitKernels(1.5, "min_samples_leaf=2", GENERAL),
    "stumps": FitKernels(2.0, "max_depth=1"),
    "bounds": FitKernels(2.5, "monotonic_cst=[0, 1]", BOUNDED),
    "node_rules": FitKernels(2.0, "learners=gb.RandomByNode(0.5), interaction_cst=[[0], [1]]", GENERAL),
}
"""Kernels of some kinds of trees; compiled once for numeric features, and once more for categorical ones"""
PARTS = {
    PLAIN: FitKernels(5.0, ""),
    CATEGORIES: FitKernels(6.0, ""),
    **OF_TREES,
    **{f"{part}-{CATEGORIES}": kernels for part, kernels in OF_TREES.items()},
    "features": FitKernels(0.5, "learners=0.5"),
    "statistics": FitKernels(1.0, "categorical_features=[0], categorical_encoding='ordered'"),
    "sampling": FitKernels(1.5, "sampling=0.5"),
    "importance": FitKernels(2.5, "sampling=gb.MVS(0.5)"),
    "goss": FitKernels(2.0, "sampling=gb.GOSS()"),
    "noise": FitKernels(1.0, "langevin=gb.Langevin(allow_unproven=True)"),
    "lambdamart": FitKernels(2.0, "loss='lambdamart'", call="rank"),
    "map": FitKernels(2.0, "loss=gb.losses.LambdaMART(metric='map')", call="rank"),
    "pairwise_logistic": FitKernels(2.0, "loss='pairwise_logistic'", call="rank"),
    "xendcg": FitKernels(1.0, "loss='xendcg'", call="rank"),
}
"""Every fit needs those of ``PLAIN`` or ``CATEGORIES`` first, which ``warm_up.compile_share`` notes as well."""

_RUN = """\
import json, sys
sys.path[:] = json.loads(sys.argv[1])
import numpy
import gpuboost as gb
from gpuboost.backends.cpu.compilation import first_fit
first_fit.FIRST_FITS.end()
x = numpy.random.default_rng(0).integers(0, 8, (256, 2)).astype(float)

def fit(part, **parameters):
    first_fit.compile_levels(part)
    for watched in None, [(x, x[:, 0] > 3)]:
        of_all = {"n_estimators": 2, "device": "cpu", **parameters}
        gb.GradientBoostingRegressor(**of_all).fit(x, x[:, 0], eval_set=watched)
        gb.GradientBoostingClassifier(**of_all).fit(x, x[:, 0] > 3, eval_set=watched)
        first_fit.note_kernels(part)

def rank(part, **parameters):
    of_all = {"n_estimators": 2, "device": "cpu", **parameters}
    gb.GradientBoostingRanker(**of_all).fit(x, x[:, 0] > 3, group=[64] * 4)
    first_fit.note_kernels(part)

"""


class FirstFits:
    """The first small fits of a process, by NumPy."""

    def __init__(self, times: float = 1.0) -> None:
        """times: factor of ``FitKernels.seconds``, the time for fits by NumPy."""
        self._lock, self._left = threading.Lock(), {part: times * PARTS[part].seconds for part in PARTS}
        self._process: subprocess.Popen[bytes] | None = None
        self._compiled = frozenset[str]()  # by the process

    def are_over(self, parts: Sequence[str] = (PLAIN,)) -> bool:
        """True if fits are left to kernels: they are on disk, or the time for fits by NumPy is used up."""
        with self._lock:
            return not self._wanted(parts)

    def take(self, seconds: float, parts: Sequence[str] = (PLAIN,), *, threads: int) -> bool:
        """True if a fit that takes NumPy so long need not wait for kernels, which a process compiles meanwhile.

        With one thread, as in the workers of a process pool, no process is started: what the time is used up for is
        compiled by the next fit, and noted, or NumPy would begin anew in each process.
        """
        with self._lock:
            wanted, alone = self._wanted(parts), threads == 1
            taken = seconds <= sum(self._left[part] for part in wanted)
            if taken and not alone and not self._compiles(wanted, CATEGORIES in parts):
                self._left.update(dict.fromkeys(wanted, 0.0))
                return False
            for part in wanted if taken else ():
                used = min(seconds, self._left[part])
                self._left[part] -= used
                seconds -= used
            if alone and usable_folder():
                with suppress(OSError):  # the folder is full, or gone
                    note_kernels(*(part for part in wanted if not taken or self._left[part] == 0.0))
            return taken

    def end(self) -> None:
        """Leave all fits to kernels from now on."""
        with self._lock:
            self._left = dict.fromkeys(PARTS, 0.0)

    def _wanted(self, parts: Sequence[str]) -> list[str]:
        """The parts that are not on disk yet, and that NumPy has time for."""
        for part in parts:
            if self._left[part] > 0.0 and is_noted(_note(part)):
                self._left[part] = 0.0
        return [part for part in parts if self._left[part] > 0.0]

    def _compiles(self, parts: list[str], categorical: bool) -> bool:
        """True if a process compiles these, which is started if none runs. One runs at a time."""
        if not parts:
            return False
        if self._process is None or (self._process.poll() is not None and not self._compiled.issuperset(parts)):
            self._compiled = frozenset(parts)
            self._process = start_process(_note(parts[-1]), program(parts, categorical), background=True)
            if self._process is not None and self._process.stdin is not None:
                self._process.stdin.close()  # nothing is sent to it
        return self._process is not None and self._process.poll() is None


FIRST_FITS = FirstFits()


def program(parts: Sequence[str], categorical: bool) -> str:
    """Text of the process that compiles these parts, for data of categorical columns or of none."""
    text = _RUN
    for part in parts:
        of_all = "categorical_features=[0], " if categorical and part != "statistics" else ""
        text += f"{PARTS[part].call}({part!r}, {of_all}{PARTS[part].parameters})\n"
    return text


def compile_levels(part: str) -> None:
    """Compile the kernel that grows the trees of this part, if it is another than those of ``PLAIN``."""
    from gpuboost.backends.cpu.compilation.background import compile_kernel, levels_kind  # it imports predictions

    variant = PARTS[part].variant
    if variant is not None:
        compile_kernel(levels_kind(variant, categorical=part.endswith(CATEGORIES)))


def note_kernels(*parts: str) -> None:
    """Remember that the kernels of these parts are on disk."""
    for part in parts:
        note(_note(part))


def _note(part: str) -> str:
    return {PLAIN: "small-numeric", CATEGORIES: "small-categorical"}.get(part, f"first-{part}")
