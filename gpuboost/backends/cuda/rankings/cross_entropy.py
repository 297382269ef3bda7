"""XE-NDCG on a device, with the bits of ``reference.cross_entropy``, by ``kernels/gradients/cross_entropy.cu``."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from gpuboost.backends.cuda.array_cache import ArrayCache
from gpuboost.backends.cuda.codegen.formulas import cross_entropy_formulas
from gpuboost.backends.cuda.device.grids import block_count
from gpuboost.backends.cuda.device.inputs import KeyInput, RoundKey
from gpuboost.backends.cuda.device.kernels import Kernels
from gpuboost.backends.cuda.device.round import RecordedRound, recorded_verb
from gpuboost.backends.cuda.device.runtime import Runtime
from gpuboost.backends.cuda.rankings.ranking import THREADS
from gpuboost.backends.cuda.rankings.sums_of_rows import SumsOfRows
from gpuboost.backends.cuda.target import DeviceGradients, Targets
from gpuboost.backends.reference.cross_entropy import LANES, powers_of
from gpuboost.keys import Key
from gpuboost.losses.protocol import LabelPerturbingLoss
from gpuboost.types import Array, TrainingSet

FILES = ("common/common.cuh", "common/philox.cuh", "gradients/cross_entropy.cu")


@dataclass(frozen=True, slots=True, eq=False)
class _PerturbedLists:
    """The part that is the same in every round: q lists of n documents."""

    start: Array  # (q + 1,) int32
    power: Array  # (n,) float64 2^label
    count: int  # q


class CrossEntropyGradients:
    """The verb ``drawn_gradients`` for losses with perturbed labels."""

    def __init__(self, runtime: Runtime, arrays: ArrayCache, rounds: RecordedRound, targets: Targets) -> None:
        self._runtime, self._arrays, self._rounds = runtime, arrays, rounds
        self._kernel, self._key = Kernels(runtime, *FILES), KeyInput(rounds)
        self._finish = SumsOfRows(runtime, arrays, rounds, targets)

    def gradients(
        self, loss: LabelPerturbingLoss, scores: Array, data: TrainingSet, curvature: float | None, key: Key
    ) -> DeviceGradients:
        """See the verb.

        Raises:
            InputError: if the data have no queries.
        """
        return self._perturbed(loss, scores, data, curvature, self._key.set(key))

    @recorded_verb()
    def _perturbed(
        self, loss: LabelPerturbingLoss, scores: Array, data: TrainingSet, curvature: float | None, key: RoundKey
    ) -> DeviceGradients:
        n = data.n_rows
        lists = self._rounds.buffer(("perturbed lists", id(data)), lambda: self._lists_of(data))
        names = "rho", "term", "g", "h"
        a = self._rounds.buffer(("perturbed", n), lambda: {name: self._runtime.empty(n, np.float64) for name in names})
        blocks = (block_count(self._runtime, lists.count * LANES, THREADS),)
        self._kernel("cross_entropy", *cross_entropy_formulas())(
            blocks, (THREADS,), scores=scores, power=lists.power, start=lists.start, lists=lists.count,
            newton=curvature is None, **(key / 0).arguments, **a,
        )  # fmt: skip
        return self._finish(loss, a["g"], a["h"], data, curvature)

    def _lists_of(self, data: TrainingSet) -> _PerturbedLists:
        start, upload = np.ascontiguousarray(data.lists(), np.int64), self._runtime.upload
        y = data.y if isinstance(data.y, np.ndarray) else self._runtime.download(self._arrays.array(data.y, float))
        return _PerturbedLists(upload(start.astype(np.int32)), upload(powers_of(y)), len(start) - 1)
