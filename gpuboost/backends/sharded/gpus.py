"""The sharded machine on GPUs: every shard grows the whole tree from its rows and what all of them add up.

The driver decides nothing: it tells all shards the same verbs, a round in one message, and fetches the trees of the
first one. Between histograms and splits stands a sum over the GPUs (``cuda.shares``), by NCCL where every shard has it
and a GPU of its own, else through the host.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import replace
from typing import Any, cast

import numpy as np

from gpuboost.backends.capabilities import GPU_SHARDS
from gpuboost.backends.numerics.leaf_values import weight_scale
from gpuboost.backends.sharded.arrays import Distributed
from gpuboost.backends.sharded.crew import Crew
from gpuboost.backends.sharded.gpu_shard import Totals
from gpuboost.backends.sharded.machine import Machine
from gpuboost.backends.sharded.orders import HeldStructure, HeldTree, Orders
from gpuboost.backends.sharded.piece import Source
from gpuboost.keys import Key
from gpuboost.losses.protocol import Loss
from gpuboost.types import (
    Array,
    Bins,
    Candidates,
    Cuts,
    DenseBins,
    Ensemble,
    Gradients,
    Limits,
    Noise,
    Sample,
    Structure,
    Target,
    TrainingSet,
    Tree,
)

UNIT = 4096  # rows: a shard begins where a stretch of the fixed order of summation does


class ShardedGpus(Machine):
    """See ``Backend``. Training rows lie with the crew's shards (``place``); other rows are the driver's, on its CPU.

    ``by``: how the GPUs add up: "nccl", "host" or "alone"; ``why``: the reason, for the report.
    """

    offers = GPU_SHARDS
    whole = True  # shards begin where stretches do
    _driver: Orders

    def __init__(self, crew: Crew, threads: int = 1) -> None:
        super().__init__(Orders(crew), threads)
        self.by, self.why = _way(self._driver.ask("offer"))

    # the data, once

    def place(
        self, sources: Sequence[Source], cuts: Cuts, y: Array, weight: Array | None, multiplicity: Array | None,
        query_start: Array | None, sizes: Sequence[int],
    ) -> TrainingSet:  # fmt: skip
        """See ``Sharded.place``. All sizes but the last are multiples of ``UNIT``."""
        if any(size % UNIT for size in sizes[:-1]):
            raise ValueError(f"sizes: all but the last must be multiples of {UNIT}; got {tuple(sizes)}.")
        driver, firsts = self._driver, self._sized(sizes, len(y))
        driver.crew.narrow(len(sources))
        self.by = "alone" if self.shards == 1 else self.by
        name = driver.ask("unique_id")[0] if self.by == "nccl" else None
        meeting = driver.crew.meeting() if self.by == "host" else None
        driver.ask_each("join", [(self.shards, rank, name, meeting) for rank in range(self.shards)])
        total = len(y) if multiplicity is None else int(multiplicity.sum(dtype=np.int64))
        most = 1 if multiplicity is None else int(multiplicity.max(initial=1))
        totals = Totals(len(y), total, most, 1.0 if weight is None else weight_scale(weight))
        driver.ask_each("hold", [(source, cuts, a, totals) for source, a in zip(sources, firsts, strict=True)])
        bins = self._array(driver.keep(1, "receive", 0)[0], (len(y), cuts.n_features))
        return TrainingSet(DenseBins(bins, bins), cuts, y, weight, multiplicity, query_start)

    # the round

    @contextmanager
    def recorded(self, step: int) -> Iterator[None]:
        driver = self._driver
        driver.is_open = True
        driver.tell("open_round", step)
        try:
            yield
        except BaseException:
            driver.queue.clear()
            raise
        finally:
            driver.is_open = False
        driver.tell("close_round")

    def collect(self, ensemble: Ensemble) -> Ensemble:
        trees: tuple[Any, ...] = ensemble.trees
        waiting = [tree for tree in trees if isinstance(tree, HeldTree) and tree.host is None]
        self._fetch(waiting)
        return replace(ensemble, trees=tuple(tree.fetched if isinstance(tree, HeldTree) else tree for tree in trees))

    # the target, once a round

    def gradients(self, loss: Loss, scores: Array, data: TrainingSet, curvature: float | None) -> Gradients:
        (number,) = self._driver.keep(1, "differentiate", self._held(loss), scores, curvature)
        both = self._array(number, scores.shape)
        return Gradients(both, both)

    def weigh(self, gradients: Gradients, sample: Sample) -> Gradients:
        assert sample.rows is None, "sampling is not offered"
        return gradients

    # the tree

    def grow(
        self, data: TrainingSet, target: Target, output: int, candidates: Candidates, limits: Limits,
        key: Key | None = None,
    ) -> Structure:  # fmt: skip
        assert key is None, "random shapes are not offered"
        (number,) = self._driver.keep(1, "grow", target.gradients.g, target.version, output, candidates, limits)
        return cast(Structure, HeldStructure(self._array(number, ()), output, target.version))

    def leaf_values(
        self, structure: Structure, gradients: Gradients, data: TrainingSet, limits: Limits, version: int,
        noise: Noise | None = None,
    ) -> tuple[Tree, Array]:  # fmt: skip
        assert noise is None, "noise is not offered"
        grown = cast(HeldStructure, structure)
        tree, leaf_of_row = self._driver.keep(2, "leaf_values", grown.held, gradients.g, limits, version)
        made = HeldTree(self._array(tree, ()), grown.output, grown.version)
        return cast(Tree, made), self._array(leaf_of_row, (data.n_rows,))

    def leaf_quantiles(self, tree: Tree, leaf_of_row: Array, loss: Loss, scores: Array, data: TrainingSet) -> Tree:
        self._driver.tell("leaf_quantiles", cast(Any, tree).held, leaf_of_row, self._held(loss), scores)
        return tree

    def bound_leaves(
        self, tree: Tree, leaf_of_row: Array, data: TrainingSet, limits: Limits, *, refined: bool = False
    ) -> Tree:
        self._driver.tell("bound_leaves", cast(Any, tree).held, leaf_of_row, limits, refined)
        return tree

    # the model

    def add_leaves(self, scores: Array, tree: Tree, factor: float, leaf_of_row: Array) -> None:
        self._driver.tell("add_leaves", scores, cast(Any, tree).held, factor, leaf_of_row)

    def add_tree(self, scores: Array, tree: Tree, factor: float, bins: Bins, cuts: Cuts) -> None:
        if isinstance(scores, Distributed):
            given: Any = tree
            known = given.host or given.held if isinstance(given, HeldTree) else given
            self._driver.tell("add_tree", scores, known, factor)
            return
        seen: Any = tree
        if isinstance(seen, HeldTree):
            self._fetch([seen])
            seen = seen.fetched
        self._local.add_tree(scores, seen, factor, bins, cuts)

    # parts of the above

    def _sum_of_losses(self, loss: Loss, scores: Array, *, weighted: bool) -> float:
        return float(self._driver.ask("loss_total", self._held(loss), scores, weighted)[0])

    def _fetch(self, trees: Sequence[HeldTree]) -> None:
        """Bring these to the host, for good. Raises InputError if a gradient of one was not a finite number."""
        waiting = [tree for tree in trees if tree.host is None]
        if not waiting:
            return
        found = self._driver.ask("trees", tuple(tree.held for tree in waiting))[0]
        for tree, host in zip(waiting, found, strict=True):
            tree.host, tree.held = host, None


def _way(offers: Sequence[Any]) -> tuple[str, str]:
    """How shards that offer this add up, and why."""
    if len(offers) == 1:
        return "alone", "one shard has all the rows"
    without = sum(not one.nccl for one in offers)
    if without:
        return "host", (
            f"CuPy of {without} of {len(offers)} shards has no NCCL (pip install nvidia-nccl-cu13, or -cu12), so what "
            "they add up goes through the memory of the host, which takes longer"
        )
    if len({one.gpu for one in offers}) < len(offers):
        return "host", "some share a GPU, which NCCL does not do, so what they add up goes through the host's memory"
    return "nccl", "what they add up goes by NCCL"
