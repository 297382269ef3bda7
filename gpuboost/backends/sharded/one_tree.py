"""One tree for several outputs on shards: they sum and divide their rows, the driver adds up and chooses the splits."""

from __future__ import annotations

from functools import reduce
from operator import add
from typing import cast

import numpy as np

from gpuboost.backends.cpu.trees.vector_tree import limits_of
from gpuboost.backends.host.threads import ThreadPool, share
from gpuboost.backends.numerics.one_tree import Division, VectorNode, VectorSplit, best_of
from gpuboost.backends.sharded.arrays import RemoteCalls
from gpuboost.backends.sharded.extents import Scales
from gpuboost.backends.sharded.shard import Shard
from gpuboost.backends.sharded.shared_tree import CODES, NOTHING
from gpuboost.kernels.one_tree import vector_split
from gpuboost.types import Array, Cuts, Gradients, Limits, Target

HISTOGRAM_BYTES = 64 << 20  # of the histograms of one message


class ShardedRows:
    """The rows of one tree, which the shards hold: see ``TreeRows``. The driver searches what it has added up."""

    def __init__(
        self, tree: int, calls: RemoteCalls, target: Target, searched: Gradients, scales: tuple[Scales, ...],
        cuts: Cuts, limits: Limits, pool: ThreadPool,
    ) -> None:  # fmt: skip
        self._tree, self._calls, self._begin = tree, calls, (target, searched, scales)
        self._kinds, self._limits, self._pool = (cuts.n_bins, cuts.is_categorical), limits_of(limits), pool
        self.units = np.array([(1.0 / g, 1.0 / h) for g, h in scales])
        self._n_rows = sum(searched.g.sizes)

    def every(self) -> tuple[None, int, Array]:
        return None, self._n_rows, reduce(add, self._calls.ask(Shard.begin_together, self._tree, *self._begin))

    def search(self, nodes: list[VectorNode]) -> list[VectorSplit | None]:
        lengths = [len(node.features) for node in nodes]
        lines = np.empty((sum(lengths), 2), np.int64)
        lines[:, 0] = np.repeat(np.arange(len(nodes)), lengths)
        lines[:, 1] = np.concatenate([node.features for node in nodes])
        cuts, at_once = np.zeros((len(lines), 4)), max(1, HISTOGRAM_BYTES // (2 * 8 * CODES * len(self.units)))
        for first in range(0, len(lines), at_once):
            self._search(nodes, lines[first : first + at_once], cuts[first : first + at_once])
        of_nodes = np.split(cuts, np.cumsum(lengths)[:-1])
        return [best_of(best, node.features) for node, best in zip(nodes, of_nodes, strict=True)]

    def divide(self, nodes: list[VectorNode], first: int) -> list[Division]:
        numbers = np.array([node.number for node in nodes])
        splits = tuple(cast(VectorSplit, node.split) for node in nodes)
        answers = self._calls.ask(Shard.divide_together, self._tree, numbers, splits)
        counts, sums = (reduce(add, part) for part in zip(*answers, strict=True))
        return [Division(None, None, int(count), of) for count, of in zip(counts, sums, strict=True)]

    def _search(self, nodes: list[VectorNode], lines: Array, cuts: Array) -> None:
        """Add up the histograms of some lines, and search them."""
        numbers = np.array([node.number for node in nodes])
        answers = self._calls.ask(Shard.histograms_together, self._tree, numbers, lines)
        cells, counts = (reduce(add, part) for part in zip(*answers, strict=True))
        s = len(self.units)
        ends = np.cumsum([0, *(node.count for node in nodes)])
        rows = (
            np.empty((0, 0), np.uint8), NOTHING, ends[:-1], ends[1:], np.empty((0, s), np.int64),
            np.stack([node.sums for node in nodes]), self.units,
        )  # fmt: skip
        self._pool.run(
            lambda part: vector_split.search_histograms(
                rows, self._limits, lines, *self._kinds, *share(len(lines), part, self._pool.size), cells, counts, cuts
            )
        )
