"""Sequences of a machine's verbs that the contract of a backend runs on two machines, to compare the results."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import replace
from functools import reduce
from operator import add
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy import sparse as scipy_sparse

from gpuboost.backends.protocol import Backend
from gpuboost.growth import Growth
from gpuboost.keys import Key, Stream
from gpuboost.losses import Loss
from gpuboost.testing.cases import Case, as_sparse, node_bytes, stump
from gpuboost.types import Candidates, Cuts, Ensemble, FittedTree, Gradients, Noise, Sample, Target, TrainingSet

Array = NDArray[Any]
Work = Callable[[Backend, TrainingSet], Sequence[Any]]

STRETCH, LANES = 4_096, 16  # of the fixed order of summation
KEY = Key.root(1) / Stream.ROWS / 0


def bins_of(machine: Backend, x: Any, cuts: Cuts) -> Array:
    """(d, n) bin of every value: how many of the cuts of its feature send it right, a missing value always going."""
    bins, d = machine.quantise(x, cuts), cuts.n_features
    rows = TrainingSet(bins, cuts, np.zeros(x.shape[0]))
    scores = machine.start(rows, np.zeros(d))
    for f, count in enumerate(cuts.n_bins):
        for cut in range(count):
            tree = stump(f, cut, False, (0.0, 1.0), f, categorical=bool(cuts.is_categorical[f]))
            machine.add_tree(scores, tree, 1.0, bins, cuts)
    return np.asarray(machine.to_host(scores))


def varied_scores(machine: Backend, data: TrainingSet, outputs: int) -> Any:
    """(k, n) scores on the machine that differ from row to row."""
    scores = machine.start(data, np.linspace(-0.2, 0.3, outputs))
    for f in range(min(4, data.cuts.n_features)):
        middle = max(0, int(data.cuts.n_bins[f]) // 2 - 1)
        for output in range(outputs):
            values = -0.3 + 0.1 * f, 0.17 * (output + 1)
            tree = stump(f, middle, f % 2 == 0, values, output, categorical=bool(data.cuts.is_categorical[f]))
            machine.add_tree(scores, tree, 1.0, data.bins, data.cuts)
    return scores


def every_feature(data: TrainingSet) -> Candidates:
    """All features as candidates, in order."""
    return Candidates(np.arange(data.cuts.n_features, dtype=np.int32))


def one_tree(
    machine: Backend, data: TrainingSet, gradients: Gradients, growth: Growth, *, output: int = 0, version: int = 0,
    sample: Sample | None = None, candidates: Candidates | None = None, key: Key | None = None,
    noise: Noise | None = None,
) -> tuple[FittedTree, Any]:  # fmt: skip
    """A tree fitted to the gradients of all rows, or of the sample's, and the leaf of every row; on the machine."""
    sample = Sample() if sample is None else sample
    target = Target(version, sample.rows, machine.weigh(gradients, sample))
    candidates = (every_feature(data) if candidates is None else candidates).disturbed(
        growth.limits.random_strength, KEY
    )
    if key is None:
        structure = growth.structure(machine, data, target, output, candidates)
    else:
        structure = machine.grow(data, target, output, candidates, growth.limits, key)
    return machine.leaf_values(structure, gradients, data, growth.limits, version, noise)


def grow_once(
    loss: Loss, growth: Growth, candidates: Candidates | None = None, *, key: Key | None = None,
    noise: Noise | None = None, probability: float | None = None, bounded: bool = False, search: str | None = None,
) -> Work:  # fmt: skip
    """Work that grows one tree and refines it."""

    def work(machine: Backend, data: TrainingSet) -> list[Any]:
        scores = varied_scores(machine, data, 1)
        curvature = None if loss.has_curvature else 1.0
        gradients = machine.gradients(loss, scores, data, curvature)
        sample = None if probability is None else machine.sample(probability, data.n_rows, KEY)
        tree, leaf = one_tree(
            machine, data, gradients, growth, sample=sample, candidates=candidates, key=key, noise=noise
        )
        if bounded:
            tree = machine.bound_leaves(tree, leaf, data, growth.limits)
        if search is not None:
            tree = machine.line_search(tree, leaf, loss, scores, data, search == "leaf")
        host = collected(machine, tree, data.cuts)
        return [node_bytes(host.nodes), host.value.tobytes(), np.asarray(machine.to_host(leaf)).tobytes()]

    return work


def collected(machine: Backend, tree: FittedTree, cuts: Cuts) -> FittedTree:
    """The tree in the host's memory."""
    return machine.collect(Ensemble(np.zeros(1), cuts, (tree,), (1.0,))).trees[0]


def listed(case: Case) -> Case:
    """The case with values and bins listed by entry, every zero left out. Sparse values have no categories."""
    assert not case.data.cuts.is_categorical.any()
    bins: Any = case.data.bins
    x: Any = scipy_sparse.csr_array(case.x)
    return Case(x, replace(case.data, bins=as_sparse(bins, case.data.cuts.n_bins)))


def mean_loss(loss: Loss, scores: Array, y: Array, weight: Array | None) -> float:
    """The weighted mean of the loss of at most 65,536 rows, summed in the fixed order."""
    single_output = loss.n_outputs == 1
    above, below = [0.0], [0.0]  # of each stretch
    for first in range(0, len(y), STRETCH):
        lanes = np.zeros((2, LANES))  # row i of a stretch adds to lane i % 16, and the lanes are summed in order
        for i, t in enumerate(y[first : first + STRETCH], first):
            f: Any = scores[0, i] if single_output else scores[:, i]
            each = loss.value(t, f, loss.parameter) if single_output else loss.row_value(t, f, loss.parameter)
            lanes[0, i % LANES] += each if weight is None else each * weight[i]
            lanes[1, i % LANES] += 1.0 if weight is None else weight[i]
        above.append(_in_order(lanes[0]))
        below.append(_in_order(lanes[1]))
    return _in_order(above) / _in_order(below)


def _in_order(terms: Iterable[float]) -> float:
    return reduce(add, map(float, terms))  # sum() compensates since Python 3.12
