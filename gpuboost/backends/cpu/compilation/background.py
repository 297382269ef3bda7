"""Compilation in the background, by other processes, of kernels that the first fits and predictions do not wait for.

Until a kernel is on disk, slower code gives the same bytes:

* ``large_trees.grow`` takes as long to compile as all other kernels of a fit together; threads divide the steps of a
  tree meanwhile;
* ``small_trees.grow`` (leaf-wise trees), ``small_general_trees`` (leaves of several rows, bounds of leaf values,
  restricted paths, cuts or features that nodes draw) and ``small_oblivious_trees.grow``: small trees are grown step by
  step meanwhile;
* ``repeated_rounds.repeat``: each round goes through the loop meanwhile;
* the kernels of prediction: NumPy predicts few rows meanwhile.
"""

from __future__ import annotations

import subprocess
import threading
from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import NDArray

from gpuboost._imports.collection import no_collection
from gpuboost.backends.cpu.compilation.warm_up import start_process
from gpuboost.backends.cpu.compilation.warm_up_tree import PLAIN, DummyTree
from gpuboost.backends.cpu.trees.small_trees import BOUNDED, GENERAL, OBLIVIOUS
from gpuboost.backends.prediction.predictor import FEW, ForestPredictor, predict
from gpuboost.kernels.disk_cache.folders import is_noted, note
from gpuboost.types import Cuts, Ensemble, FittedTree, Limits, Nodes

LIMITS = {
    OBLIVIOUS: Limits(8, growth="oblivious"),
    BOUNDED: Limits(8, max_delta_step=1.0),
    GENERAL: Limits(8, min_samples_leaf=2),
}
"""Variant of the kernels, except the plain one -> limits of a tree that needs it"""

_RUN = (
    "import json, sys; sys.path[:] = json.loads(sys.argv[1]); "
    "from gpuboost.backends.cpu.compilation.background import compile_kernel; compile_kernel(sys.argv[2])"
)
_RUN_ROUNDS = (  # a fit, since a kernel of rounds is compiled for the arguments of all verbs
    "import json, sys; sys.path[:] = json.loads(sys.argv[1]); import numpy, gpuboost; "
    "from gpuboost.backends.cpu.compilation import background, first_fit; first_fit.FIRST_FITS.end(); "
    "from gpuboost.backends.cpu.repeated_rounds import RepeatedRounds; RepeatedRounds.waits = False; "
    "kind = sys.argv[2]; x = numpy.arange(128.0).reshape(64, 2) % 8; "
    "of = [0] if 'categorical' in kind else None; y = x[:, 0] // (2 if 'several' in kind else 4); "
    "of_rows = 0.5 if 'draws' in kind else None; "
    "noise = gpuboost.Langevin(allow_unproven=True) if 'noise' in kind else None; "
    "gpuboost.GradientBoostingClassifier("
    "n_estimators=3, n_jobs=1, device='cpu', categorical_features=of, sampling=of_rows, langevin=noise).fit(x, y); "
    "background.note_kind(kind)"
)

PREDICTION = "prediction"
"""The kernels that predict dense rows"""

LEVELS = "levels-"
"""Prefix of the kinds of small trees' kernels; the variant and "numeric" or "categorical" follow"""

ROUNDS = "rounds-"
"""Prefix of the kinds of ``repeated_kind``. Kinds without a prefix are those of ``large_trees.kernel_kind``."""


def repeated_kind(*, categorical: bool, several: bool, draws: bool = False, noise: bool = False) -> str:
    """The kernel of repeated rounds, for categories, several trees a round, drawn rows or features, and noise."""
    kind = f"{ROUNDS}{'several' if several else 'one'}-{'categorical' if categorical else 'numeric'}"
    return f"{kind}{'-draws' if draws else ''}{'-noise' if noise else ''}"


def levels_kind(variant: str, *, categorical: bool) -> str:
    """The kernel of small trees, for trees of categories too. variant: see ``Levels.variant``."""
    return f"{LEVELS}{variant}{'categorical' if categorical else 'numeric'}"


class Background:
    """The kinds of kernels that are on disk, and the processes that compile the others."""

    def __init__(self) -> None:
        self._lock, self._asked, self._ready = threading.Lock(), dict[str, int](), set[str]()
        self._processes = dict[str, "subprocess.Popen[bytes] | None"]()

    def request(self, kind: str, is_there: Callable[[], bool] | None = None) -> bool:
        """Ask for the kernels; True if they are on disk. The second call starts their compilation, unless it has begun.

        At the first tree, the processors are busy with its other kernels; the first prediction may be the only one.
        is_there: looks for kernels that other fits may have compiled.
        """
        if kind in self._ready:
            return True
        with self._lock:
            self._asked[kind] = times = self._asked.get(kind, 0) + 1
            if times == 1:
                self._look(kind)
                if kind not in self._ready and is_there is not None and is_there():
                    self._ready.add(kind)
            elif times == 2:
                self._processes[kind] = _started(kind)
            elif (process := self._processes[kind]) is not None and process.poll() is not None:
                self._processes[kind] = None
                self._look(kind)
        return kind in self._ready

    def is_there(self, kind: str) -> bool:
        """True if the kernels are on disk, as far as this process has looked. It starts nothing."""
        with self._lock:
            if kind not in self._asked:
                self._asked[kind] = 0
                self._look(kind)
        return kind in self._ready

    def wait(self) -> None:
        """Compile what has been asked for, and wait until it is done."""
        with self._lock:
            for kind in self._asked.keys() - self._ready:
                process = self._processes.get(kind) or _started(kind)
                self._processes[kind], self._asked[kind] = None, 2
                if process is not None:
                    process.wait()
                self._look(kind)

    def _look(self, kind: str) -> None:
        if is_noted(_note(kind)):
            self._ready.add(kind)


BACKGROUND = Background()
"""The compilations of this process"""


def compile_kernel(kind: str) -> None:
    """Main function of the process."""
    with no_collection():
        categorical = kind.endswith("categorical")
        if kind == PREDICTION:
            _predict()
        elif kind.startswith(LEVELS):
            DummyTree(large=False, categorical=categorical, limits=_limits(kind.removeprefix(LEVELS))).levels()
        else:
            DummyTree(large=True, categorical=categorical, limits=_limits(kind)).together()
    note_kind(kind)


def _limits(kind: str) -> Limits:
    """Limits of a dummy tree of this kind, which begins with its variant."""
    return next((limits for variant, limits in LIMITS.items() if kind.startswith(variant)), PLAIN)


def note_kind(kind: str) -> None:
    """Remember that these kernels are on disk."""
    note(_note(kind))


def _predict() -> None:
    """Few rows and more, of both dtypes, by a model of one leaf."""
    for dtype in (np.float64, np.float32):
        for rows in (1, FEW + 1):
            x = np.zeros((rows, 1), dtype)
            predict(ForestPredictor.of(_one_leaf()), x, 0, rows, np.empty((1, rows)))


def _one_leaf() -> Ensemble:
    def numbers(value: float, kind: type[np.generic]) -> NDArray[Any]:
        return np.full(1, value, kind)

    zero, none = numbers(0, np.int32), numbers(0, np.float64)
    words = np.zeros((1, 8), np.uint32)
    nodes = Nodes(
        numbers(-1, np.int32), zero, numbers(0, np.bool_), zero, zero, none, none, numbers(0, np.int64), words
    )
    tree = FittedTree(nodes, none, output=0, version=0)
    return Ensemble(none, Cuts((np.zeros(1),), (None,)), (tree,), (1.0,))


def _started(kind: str) -> subprocess.Popen[bytes] | None:
    program = _RUN_ROUNDS if kind.startswith(ROUNDS) else _RUN
    process = start_process(_note(kind), program, kind, background=True)
    if process is not None and process.stdin is not None:
        process.stdin.close()  # nothing is sent to it
    return process


def _note(kind: str) -> str:
    return kind if kind.startswith((PREDICTION, LEVELS, ROUNDS)) else f"team-{kind}"
