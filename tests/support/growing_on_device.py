"""Enough of a CUDA backend to grow trees with: numpy lays out bins, gradients and scales; growth is the driver's."""

from __future__ import annotations

from dataclasses import dataclass, field
from functools import cache
from typing import Any

import numpy as np
from emulator import ORDERS, emulated_runtime

from gpuboost.backends.cuda.device.runtime import Runtime
from gpuboost.backends.cuda.trees.arena import Arena
from gpuboost.backends.cuda.trees.grower import RowsToGrow, TreeOnDevice
from gpuboost.backends.cuda.trees.plan import ArenaPlan, Tuning, tile_width
from gpuboost.backends.cuda.trees.tree import NODE, STATE, as_bytes, as_records
from gpuboost.backends.numerics.exact_sums import extent
from gpuboost.backends.numerics.fixed_point import fixed_point_scale
from gpuboost.backends.prediction.routing import dense_rows
from gpuboost.types import Candidates, Cuts, DenseBins, Gradients, Limits, Nodes, Structure, Target, TrainingSet

__all__ = ["ORDERS", "TUNINGS", "Device", "Layout", "device", "runtime_of", "scales_of", "shaped"]

Array = np.ndarray
TUNINGS = {
    "everyday": Tuning(),
    "starved": Tuning(histogram_bytes=1, line_bytes=1, least_rows=32, shares=7),  # one line at a time
    "half": Tuning(histogram_bytes=3 << 18, line_bytes=1 << 19, least_rows=64, shares=5),
    "shared out": Tuning(least_rows=16, shares=40),
    "cluster": Tuning(),  # with clusters of blocks
}


@dataclass(frozen=True)
class Layout:
    """See ``backends.cuda.trees.grower.Tiles``."""

    rows: Any
    columns: Any
    n: int

    @classmethod
    def of(cls, runtime: Runtime, codes: Array, room: int) -> Layout:
        """codes (m, d) uint8, in arrays with room for more rows."""
        m, d = codes.shape
        width = tile_width(d, runtime.block_memory)
        tiles = -(-d // width)
        rows = np.zeros((tiles, room, width), np.uint8)
        columns = np.full((d, room), 255, np.uint8)
        for f in range(d):
            rows[f // width, :m, f % width] = codes[:, f]
        columns[:, :m] = codes.T
        return cls(runtime.upload(rows), runtime.upload(columns), room)


def scales_of(gradients: Gradients, output: int, m: int) -> Array:
    """(1,) STATE: what the kernels of the target write."""
    state = np.zeros(1, STATE)
    times = np.ones(m, np.int64) if gradients.multiplicity is None else gradients.multiplicity.astype(np.int64)
    state["wide"], state["m"], state["weight"] = 0, m, times.sum()
    for name, values, bits in (("g", gradients.g[output], 31), ("h", gradients.h[output], 32)):
        top, total = extent(values, times)
        scale = fixed_point_scale(top, total, float(times.max(initial=1)), float(times.sum()), bits)
        state[f"scale_{name}"], state[f"unit_{name}"] = scale, 1.0 / scale
        largest = np.abs(np.rint(values.astype(np.float64) * scale) * times).max(initial=0.0)
        state["wide"] |= int(largest > 2.0 ** (bits - 16) - 1.0)
    return state


def _padded(x: Array, room: int) -> Array:
    return np.concatenate([x, np.full(room - len(x), 77).astype(x.dtype)])


@dataclass
class Device:
    """``Backend.grow`` on a runtime. Arenas are kept, as a backend would keep them."""

    runtime: Runtime
    tuning: Tuning = field(default_factory=Tuning)
    spare: int = 3  # rows there is more room for than the target has
    wide: bool = False  # pairs of 2 x 32 bits though less would do
    name: str = "device"
    arenas: dict[Any, Arena] = field(default_factory=dict)

    def planted(
        self, data: TrainingSet, target: Target, output: int, candidates: Candidates, limits: Limits
    ) -> TreeOnDevice:
        """A tree before it is grown."""
        runtime, codes = self.runtime, dense_rows(data.bins)
        codes = codes if target.rows is None else codes[target.rows]
        m, room = len(codes), len(codes) + self.spare
        plan = ArenaPlan.of(room, data.cuts, limits, runtime, tuning=self.tuning)
        key = (plan, tuple(data.cuts.n_bins), tuple(data.cuts.is_categorical))
        if key not in self.arenas:
            self.arenas[key] = Arena(runtime, plan, data.cuts)
        state = scales_of(target.gradients, output, m)
        state["wide"] |= self.wide
        times = target.gradients.multiplicity
        rows = RowsToGrow(
            Layout.of(runtime, codes, room),
            runtime.upload(_padded(target.gradients.g[output], room)),
            runtime.upload(_padded(target.gradients.h[output], room)),
            None if times is None else runtime.upload(_padded(times, room)),
            runtime.upload(as_bytes(state)),
            target.rows is not None,
        )
        self.arenas[key].compete(candidates.features)
        return TreeOnDevice(self.arenas[key], rows, output)

    def grow(self, data: TrainingSet, target: Target, output: int, candidates: Candidates, limits: Limits) -> Structure:
        tree = self.planted(data, target, output, candidates, limits)
        tree.grow()
        state = as_records(self.runtime.download(tree.state), STATE)[0]
        nodes = as_records(self.runtime.download(tree.nodes), NODE)[: state["n_nodes"]]
        found = as_nodes(nodes, float(state["unit_h"]))
        if target.rows is not None:
            return Structure(found, output, target.version, None, None)
        leaf_of_row = self.runtime.download(tree.leaf_of_row)[: data.n_rows]
        sums = nodes["sum_g"] * float(state["unit_g"]), nodes["sum_h"] * float(state["unit_h"])
        return Structure(found, output, target.version, leaf_of_row, sums)


def as_nodes(table: Array, unit_h: float) -> Nodes:
    """types.Nodes of a downloaded table."""
    assert table.dtype == NODE
    assert np.array_equal(table["right"], np.where(table["left"] > 0, table["left"] + 1, 0))
    return Nodes(
        feature=table["feature"].copy(),
        bin=table["bin"].copy(),
        missing_left=table["missing_left"] == 1,
        left=table["left"].copy(),
        right=table["right"].copy(),
        gain=table["gain"].copy(),
        cover=table["sum_h"] * unit_h,
        count=table["count"].astype(np.int64),
        left_set=table["left_set"].copy(),
    )


@cache
def runtime_of(order: str, *, clusters: bool = False) -> Runtime:
    """One emulated device for each order of its threads. clusters: small trees are grown by clusters of blocks."""
    runtime = emulated_runtime(order, seed=11)
    runtime.use_clusters(clusters)
    return runtime


def device(order: str = "random", tuning: str = "everyday", wide: bool = False) -> Device:
    return Device(runtime_of(order, clusters=tuning == "cluster"), TUNINGS[tuning], wide=wide)


def shaped(n: int, d: int, bins: int, seed: int = 0) -> tuple[TrainingSet, Gradients]:
    """Random codes, a fiftieth of them missing; gradients of -1 and 1 that follow the first and the last feature."""
    rng = np.random.default_rng(seed)
    codes = rng.integers(0, bins, (n, d)).astype(np.uint8)
    codes[rng.random((n, d)) < 0.02] = bins
    cuts = Cuts((np.arange(bins - 1.0),) * d, (None,) * d)
    g = rng.normal(size=n) + codes[:, 0] * 0.01 + (codes[:, -1] > bins // 2)
    data = TrainingSet(DenseBins(codes, np.ascontiguousarray(codes.T)), cuts, np.zeros(n))
    return data, Gradients(np.where(g > 1.0, 1.0, -1.0).astype(np.float32)[None], np.ones((1, n), np.float32))
