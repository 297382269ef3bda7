"""Contributions of features, and of pairs of them, on a device; see ``backends.prediction.tree_shap``."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from gpuboost.backends.cuda.bins import Binner
from gpuboost.backends.cuda.device.kernels import Kernels
from gpuboost.backends.cuda.device.runtime import Runtime
from gpuboost.backends.prediction.tree_shap import Paths, gauss_legendre_rules
from gpuboost.errors import InputError
from gpuboost.types import Array, Ensemble

THREADS = 256
ROOM = 1 << 28  # bytes: most to work in, and most of a result that is on the device at once if it goes to the host


@dataclass(frozen=True, slots=True, eq=False)
class DevicePaths:
    """The paths of an ensemble, and the points to integrate at, on the device."""

    ensemble: Ensemble
    arguments: dict[str, Any]  # of the kernels
    expected: Array  # (k,)
    longest: int  # conditions of a leaf, and 1

    @classmethod
    def of(cls, ensemble: Ensemble, runtime: Runtime) -> DevicePaths:
        """Upload the paths of an ensemble, whose trees must be on the host."""
        paths = Paths.of(ensemble)
        points, weights = gauss_legendre_rules(paths)
        longest = int(np.diff(paths.start).max(initial=0)) + 1

        def sent(host: NDArray[Any]) -> Array:
            return runtime.upload(host if host.size else np.zeros(1, host.dtype))

        arguments = {
            "start": sent(paths.start), "leaves": len(paths.value), "column": sent(paths.column),
            "share": sent(paths.share), "test_start": sent(paths.test_start), "feature": sent(paths.feature),
            "accepted": sent(paths.accepted), "value": sent(paths.value), "output": sent(paths.output),
            "points": sent(points), "weights": sent(weights), "q": len(points), "longest": longest,
        }  # fmt: skip
        return cls(ensemble, arguments, sent(paths.expected), longest)


class CudaExplainer:
    """The verbs of contributions. Results are where x is."""

    def __init__(self, runtime: Runtime, binner: Binner) -> None:
        self._runtime, self._binner = runtime, binner
        self._last: DevicePaths | None = None
        self._kernel = Kernels(runtime, "common/common.cuh", "prediction/walk.cuh", "prediction/contributions.cu")

    def contributions(self, ensemble: Ensemble, x: Any) -> Array:
        """(n, k, columns + 1) float64."""
        return self._explain(ensemble, x, (ensemble.cuts.n_columns + 1,), self._contributions)

    def interactions(self, ensemble: Ensemble, x: Any) -> Array:
        """(n, k, columns + 1, columns + 1) float64."""
        return self._explain(ensemble, x, (ensemble.cuts.n_columns + 1,) * 2, self._interactions)

    def _explain(
        self, ensemble: Ensemble, x: Any, sides: tuple[int, ...], of_rows: Callable[[DevicePaths, Any], Array]
    ) -> Array:
        """``of_rows`` of all rows at once on the device; of rows of the host in parts, to the host."""
        if x.shape[1] != ensemble.cuts.n_columns:
            raise InputError(
                f"x: the model was trained on {ensemble.cuts.n_columns} features; this has {x.shape[1]}. "
                "Give the columns of the training data, in their order."
            )
        if self._last is None or self._last.ensemble is not ensemble:
            self._last = DevicePaths.of(ensemble, self._runtime)
        if self._runtime.as_device_array(x) is not None:
            return of_rows(self._last, x)
        n, shape = x.shape[0], (ensemble.n_outputs, *sides)
        rows = x.tocsr() if hasattr(x, "tocsr") else x
        out, step = np.empty((n, *shape)), max(1, ROOM // (8 * int(np.prod(shape))))
        for first in range(0, n, step):
            out[first : first + step] = self._runtime.download(of_rows(self._last, rows[first : first + step]))
        return out

    def _contributions(self, paths: DevicePaths, x: Any) -> Array:
        cuts, k = paths.ensemble.cuts, paths.ensemble.n_outputs
        phi = self._runtime.zeros((x.shape[0], k, cuts.n_columns + 1), np.float64)
        self._launch("contributions", paths, x, phi, expected=paths.expected)
        return phi

    def _interactions(self, paths: DevicePaths, x: Any) -> Array:
        side, k = paths.ensemble.cuts.n_columns + 1, paths.ensemble.n_outputs
        alone, pairs = self._contributions(paths, x), self._runtime.zeros((x.shape[0], k, side, side), np.float64)
        self._launch("interactions", paths, x, pairs)
        matrices = x.shape[0] * k
        self._kernel("complete")(
            (self._blocks(matrices),), (THREADS,), alone=alone, matrices=matrices, columns=side - 1, pairs=pairs
        )
        return pairs

    def _launch(self, name: str, paths: DevicePaths, x: Any, phi: Array, **more: Any) -> None:
        bins = self._binner.quantise(x, paths.ensemble.cuts, by_column=False)
        each = 3 * paths.longest * THREADS
        blocks = max(1, min(self._blocks(bins.n), ROOM // (8 * each))) if bins.n else 0
        self._kernel(name)(
            (blocks,), (THREADS,), **paths.arguments, rows=bins.rows, n=bins.n, shift=bins.shift,
            outputs=paths.ensemble.n_outputs, columns=paths.ensemble.cuts.n_columns,
            room=self._runtime.empty(max(1, blocks * each), np.float64), phi=phi, **more,
        )  # fmt: skip

    def _blocks(self, n: int) -> int:
        return min(-(-n // THREADS), 16 * self._runtime.sm_count)
