"""The last launch of drawn gradients: sums of rows as weighted float32 gradients, by ``finish_lists``."""

from __future__ import annotations

import numpy as np

from gpuboost.backends.cuda.array_cache import ArrayCache
from gpuboost.backends.cuda.codegen.formulas import list_formulas
from gpuboost.backends.cuda.device.grids import block_count
from gpuboost.backends.cuda.device.kernels import Kernels
from gpuboost.backends.cuda.device.round import RecordedRound
from gpuboost.backends.cuda.device.runtime import Runtime
from gpuboost.backends.cuda.rankings.ranking import FILES
from gpuboost.backends.cuda.target import EXTENT_THREADS, STRETCH, DeviceGradients, Targets
from gpuboost.losses.protocol import DiscountedGain
from gpuboost.types import Array, TrainingSet


class SumsOfRows:
    """Queues the launch. No place is a leader, and places are rows."""

    def __init__(self, runtime: Runtime, arrays: ArrayCache, rounds: RecordedRound, targets: Targets) -> None:
        self._runtime, self._arrays, self._rounds, self._targets = runtime, arrays, rounds, targets
        self._kernel = Kernels(runtime, *FILES)

    def __call__(
        self, loss: DiscountedGain, g: Array, h: Array, data: TrainingSet, curvature: float | None,
        scales: Array | None = None,
    ) -> DeviceGradients:  # fmt: skip
        """g, h (n,) float64; scales: (lists,) float64 factors of g, all 1 by default; curvature: instead of h."""
        n, rows = data.n_rows, self._targets.rows_of(data)
        a = self._rounds.buffer(("sums of rows", id(data)), lambda: self._constants(data))
        factors = a["ones"] if scales is None else scales
        made, scratch = self._targets.room(1, n)
        self._kernel("finish_lists", *list_formulas(loss))(
            (block_count(self._runtime, n, STRETCH, 4),), (EXTENT_THREADS,),
            above_g=g, above_h=h, below=g, factors=factors, scales=factors, start=a["start"],
            list_of=a["list_of"], leader_start=a["zeros"], place_of=a["rows"], n_leaders=0, even=False, sigma=1.0,
            **self._arrays.weight(data.weight), **self._arrays.times(rows.times),
            curvature=-1.0 if curvature is None else curvature, n=n,
            **rows.sizes, g=made.g, h=made.h, **scratch, state=made.states,
        )  # fmt: skip
        return DeviceGradients(made.g, made.h, rows.times, states=made.states)

    def _constants(self, data: TrainingSet) -> dict[str, Array]:
        start, upload = np.ascontiguousarray(data.lists(), np.int64), self._runtime.upload
        lengths = np.diff(start)
        return {
            "start": upload(start.astype(np.int32)),
            "list_of": upload(np.repeat(np.arange(len(lengths), dtype=np.int32), lengths)),
            "rows": upload(np.arange(data.n_rows, dtype=np.int32)),
            "zeros": upload(np.zeros(len(start), np.int32)),
            "ones": upload(np.ones(len(lengths))),
        }
