"""Prediction on a device: raw values to bins, bins to leaves, leaves to scores (``backends.prediction.predictor``)."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np

from gpuboost.backends.cuda.bins import Binner, DeviceBins
from gpuboost.backends.cuda.device.kernels import Kernels
from gpuboost.backends.cuda.device.runtime import Runtime
from gpuboost.backends.cuda.prediction.forest import BLOCK_ROWS, STAGE_NODES, CompleteForest, DeviceForest
from gpuboost.errors import InputError
from gpuboost.types import Array, Ensemble

THREADS = 256
ROWS_PER_SM = 32  # from which a thread for each row keeps the device busy; fewer rows have a block each
STAGED_THREADS = 512  # as in predict.cu and predict_complete.cu
COMPLETE_STAGE = 2048  # as in predict_complete.cu


class CudaPredictor:
    """The verbs of prediction. Results are on the device."""

    def __init__(self, runtime: Runtime, binner: Binner) -> None:
        self._runtime, self._binner = runtime, binner
        self._last: DeviceForest | None = None
        self._complete: tuple[DeviceForest, CompleteForest | None] | None = None
        self._kernel = Kernels(runtime, "common/common.cuh", "prediction/walk.cuh", "prediction/predict.cu")
        self._of_complete = Kernels(
            runtime, "common/common.cuh", "prediction/walk.cuh", "prediction/predict_complete.cu"
        )

    def predict(self, ensemble: Ensemble, x: Any) -> Array:
        """(k, n) float64 scores."""
        forest, bins = self._prepared(ensemble, x)
        sums = self.start(forest.bias if ensemble.scale == 1.0 else forest.zero, bins.n)
        self._add(forest, bins, 0, len(ensemble.trees), sums)
        return sums if ensemble.scale == 1.0 else self.shrunk(sums, forest.bias, ensemble.scale)

    def staged_predict(self, ensemble: Ensemble, x: Any) -> Iterator[Array]:
        """(k, n) float64 scores after each round, each a new array."""
        forest, bins = self._prepared(ensemble, x)
        k, sums, begun = ensemble.n_outputs, None, None
        for rounds in range(1, ensemble.n_rounds + 1):
            scale = ensemble.first(rounds).scale
            if sums is None or (scale == 1.0) != begun:  # sums begin at the bias, or where there is a scale at 0
                begun = scale == 1.0
                sums = self.start(forest.bias if begun else forest.zero, bins.n)
                self._add(forest, bins, 0, (rounds - 1) * k, sums)
            self._add(forest, bins, (rounds - 1) * k, rounds * k, sums)
            if begun:
                copy = self._runtime.empty(sums.shape, np.float64)
                self._runtime.copy(copy, sums)
                yield copy
            else:
                yield self.shrunk(sums, forest.bias, scale)

    def leaves(self, ensemble: Ensemble, x: Any) -> Array:
        """(n, trees) int32."""
        forest, bins = self._prepared(ensemble, x)
        trees = len(ensemble.trees)
        out = self._runtime.empty((bins.n, trees), np.int32)
        self._kernel("leaves")(
            self._blocks(bins.n if trees else 0), (THREADS,),
            steps=forest.steps, sets=forest.sets, begin=forest.begin, trees=trees, rows=bins.rows, n=bins.n,
            shift=bins.shift, out=out,
        )  # fmt: skip
        return out

    def start(self, bias: Array, n: int) -> Array:
        """(k, n) float64 scores, all equal to the bias."""
        k = bias.shape[0]
        scores = self._runtime.empty((k, n), np.float64)
        self._kernel("start")((*self._blocks(n), k), (THREADS,), bias=bias, n=n, scores=scores)
        return scores

    def shrunk(self, sums: Array, bias: Array, scale: float) -> Array:
        """(k, n) float64 bias + scale * sums, a new array."""
        k, n = sums.shape
        out = self._runtime.empty((k, n), np.float64)
        on_device = self._runtime.upload(np.array([scale]))
        self._kernel("shrunk")((*self._blocks(n), k), (THREADS,), sums=sums, bias=bias, scale=on_device, n=n, out=out)
        return out

    def _add(self, forest: DeviceForest, bins: DeviceBins, first: int, last: int, sums: Array) -> None:
        if first == last:
            return
        few = bins.n < ROWS_PER_SM * self._runtime.sm_count
        if not few and self._add_by_blocks(forest, bins, first, last, sums):
            return
        blocks = (bins.n,) if few else self._blocks(bins.n)
        self._kernel("predict_few" if few else "predict")(
            (*blocks, sums.shape[0]), (THREADS,),
            steps=forest.steps, sets=forest.sets, values=forest.values, begin=forest.begin, output=forest.output,
            first=first, last=last, stride=forest.stride, rows=bins.rows, n=bins.n, shift=bins.shift, sums=sums,
        )  # fmt: skip

    def _add_by_blocks(self, forest: DeviceForest, bins: DeviceBins, first: int, last: int, sums: Array) -> bool:
        """``_add`` with the rows of a block, and some trees at a time, in shared memory; False if they have no room."""
        columns = bins.tiles * bins.width
        grid = min(-(-bins.n // BLOCK_ROWS), 3 * self._runtime.sm_count), sums.shape[0]
        rows = {
            "output": forest.output, "first": first, "last": last, "stride": forest.stride, "rows": bins.rows,
            "n": bins.n, "shift": bins.shift, "columns": columns, "sums": sums,
        }  # fmt: skip
        limit, of_rows = self._runtime.block_memory, columns * BLOCK_ROWS  # one limit, for any model
        complete = self._complete_forest(forest)
        if complete is not None and (shared := 12 * COMPLETE_STAGE + of_rows) <= limit:
            macros = f"#define CATEGORIES {int(complete.categories)}\n"
            self._of_complete("predict_complete", macros, shared_limit=limit)(
                grid, (STAGED_THREADS,),
                nodes=complete.nodes, leaves=complete.leaves, sets=complete.sets, begin=complete.begin,
                depth=complete.depth, **rows, shared_mem=shared,
            )  # fmt: skip
            return True
        if forest.compact is not None and (shared := 8 * STAGE_NODES + of_rows) <= limit:
            self._kernel("predict_staged", shared_limit=limit)(
                grid, (STAGED_THREADS,),
                steps=forest.compact, sets=forest.sets, values=forest.values, begin=forest.begin, depth=forest.depth,
                **rows, shared_mem=shared,
            )  # fmt: skip
            return True
        return False

    def _complete_forest(self, forest: DeviceForest) -> CompleteForest | None:
        if self._complete is None or self._complete[0] is not forest:
            self._complete = forest, CompleteForest.of(forest.ensemble, self._runtime)
        return self._complete[1]

    def _prepared(self, ensemble: Ensemble, x: Any) -> tuple[DeviceForest, DeviceBins]:
        columns = ensemble.cuts.n_columns
        if x.shape[1] != columns:
            raise InputError(
                f"x: the model was trained on {columns} features; this has {x.shape[1]}. "
                "Give the columns of the training data, in their order."
            )
        if self._last is None or not self._last.begins_with(ensemble):
            self._last = DeviceForest.of(ensemble, self._runtime)
        return self._last, self._binner.quantise(x, ensemble.cuts, by_column=False)

    def _blocks(self, n: int) -> tuple[int]:
        return (min(-(-n // THREADS), 16 * self._runtime.sm_count),)
