"""RGBM (Lu and Mazumder, SIAM J. Optim. 2020): the constant step, and the selection rules on trees.

Constant step, for a learner that is a subspace (a tree with its leaves given): with P the projection onto it and r the
negative gradient, F <- F + P r / sigma, that is, a leaf's value is the mean of r in it over sigma.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from support.builders import TEAMS, grow, model_bytes, random_case, random_gradients, sparse
from support.examples import examples

from gpuboost import losses
from gpuboost.backends.prediction.routing import dense_rows
from gpuboost.backends.protocol import Backend
from gpuboost.backends.reference.backend import Reference
from gpuboost.boosting import boost
from gpuboost.growth import DepthWise, LeafWise
from gpuboost.keys import Key
from gpuboost.learners import AllLearners, RandomGroups
from gpuboost.losses import Loss
from gpuboost.losses.protocol import Derivatives
from gpuboost.recipe import Recipe
from gpuboost.sampling import EveryRow, UniformSampling
from gpuboost.steps import ConstantStep, NewtonStep, automatic
from gpuboost.types import Gradients, Limits, Progress, TrainingSet

Array = np.ndarray
BACKENDS = [Reference(), TEAMS[2]]
QUICK = settings(max_examples=examples(30))

SMOOTH: list[tuple[Loss, str]] = [
    (losses.SquaredError(), "real"),
    (losses.Huber(0.4), "real"),
    (losses.Logistic(), "binary"),
    (losses.Logistic(0.3), "binary"),
    (losses.Softmax(3), "3"),
]


class ConstantCurvature:
    """A loss whose every second derivative is sigma, and which is the given one otherwise."""

    has_curvature, smoothness, strong_convexity, leaf_quantile = True, None, 0.0, None

    def __init__(self, loss: Loss) -> None:
        self.name, self.task, self.parameter = loss.name, loss.task, loss.parameter
        self.n_outputs, self.start = loss.n_outputs, loss.start
        self.derivatives, self.row_derivatives = _flattened(loss)


def _flattened(loss: Loss) -> tuple[Derivatives, object]:
    derivatives, row_derivatives, sigma = loss.derivatives, loss.row_derivatives, loss.smoothness

    def one(y: float, f: float, a: float) -> tuple[float, float]:
        return derivatives(y, f, a)[0], sigma

    def several(y: float, f: Array, g: Array, h: Array, a: float) -> None:
        row_derivatives(y, f, g, h, a)
        h[:] = sigma

    return one, several


@pytest.mark.parametrize(("loss", "target"), SMOOTH)
@pytest.mark.parametrize("weights", ["none", "real", "whole"])
@pytest.mark.parametrize("sampling", [EveryRow(), UniformSampling(0.5)])
def test_tr_12_the_constant_step_is_newton_with_h_sigma(
    loss: Loss, target: str, weights: str, sampling: UniformSampling
) -> None:
    """Bitwise, with lambda = 0 and rate 1: the code path of Newton, run on a loss whose h is written out as sigma."""
    data = random_case(3, 90, 4, target=target, weights=weights).data
    growth = DepthWise(Limits(8, 3, reg_lambda=0.0))
    constant = Recipe(loss, 3, 1.0, growth, sampling, step=ConstantStep())
    newton = Recipe(ConstantCurvature(loss), 3, 1.0, growth, sampling, step=NewtonStep())
    reference = model_bytes(boost(newton, data, Reference()))
    assert model_bytes(boost(constant, data, Reference())) == reference
    for bins in (data, sparse(data)):
        assert model_bytes(boost(constant, bins, TEAMS[2])) == reference


@pytest.mark.parametrize("backend", BACKENDS)
@pytest.mark.parametrize("learners", [RandomGroups(6), RandomGroups(1.0), RandomGroups(100)])
@pytest.mark.parametrize(("loss", "target"), SMOOTH[2:])
def test_tr_1_type_3_with_all_groups_is_type_0(
    backend: Backend, learners: RandomGroups, loss: Loss, target: str
) -> None:
    data = random_case(4, 120, 6, target=target).data
    for growth in (DepthWise(Limits(8, 3)), LeafWise(Limits(8, 5))):
        zero = Recipe(loss, 4, growth=growth, learners=AllLearners(), step=automatic(loss))
        assert model_bytes(boost(zero, data, backend)) == model_bytes(
            boost(replace(zero, learners=learners), data, backend)
        )


@QUICK
@given(st.integers(0, 2**32 - 1), st.integers(1, 6), st.integers(3, 60))
def test_tr_14_a_stump_of_a_subset_is_the_best_stump_of_its_features(seed: int, t: int, n: int) -> None:
    """At depth 1 the subset of the tree and that of its only split are one: the best of each drawn feature's stumps."""
    data = random_case(seed, n, 6).data
    gradients = random_gradients(np.random.default_rng(seed), n, "plain")
    drawn = RandomGroups(t).draw(6, Key.root(seed) / "learners" / 0).features
    for growth in (DepthWise(Limits(2, 1)), LeafWise(Limits(2, 1))):
        for backend in BACKENDS:
            found = grow(backend, growth, data, gradients, None, drawn).nodes
            alone = [grow(backend, growth, data, gradients, None, np.array([f], np.int32)).nodes for f in drawn]
            best = max(range(t), key=lambda i: (alone[i].gain[0], -i))
            assert found.gain[0] == alone[best].gain[0]
            if found.gain[0] > 0.0:
                assert found.feature[0] == drawn[best]
                assert found.left_set.tobytes() == alone[best].left_set.tobytes()
                assert found.bin[0] == alone[best].bin[0]


@dataclass
class Projections:
    """Notes, per round, ||P r||^2 of every tree, r being weighted: sum over leaves of (sum w r)^2 / sum w."""

    data: TrainingSet
    loss: Loss
    before: Array
    sums: list[float]
    means: list[float]

    def __call__(self, progress: Progress) -> bool:
        backend, weight = TEAMS[1], self.data.row_weight()
        plain = replace(self.data, weight=None, multiplicity=None)
        gradients: Gradients = backend.gradients(self.loss, self.before, plain, None)
        total = 0.0
        for tree in progress.trees:
            leaf = np.zeros((progress.scores.shape[0], self.data.n_rows))
            marked = replace(tree, value=np.arange(len(tree.value), dtype=float))
            backend.add_tree(leaf, marked, 1.0, self.data.bins, self.data.cuts)
            r = -gradients.g[tree.output].astype(float)
            for v in np.unique(leaf[tree.output]):
                rows = leaf[tree.output] == v
                total += (weight * r)[rows].sum() ** 2 / weight[rows].sum()
        self.sums.append(total)
        self.means.append(backend.loss_value(self.loss, progress.scores, self.data.y, weight))
        self.before = progress.scores.copy()
        return False


@pytest.mark.parametrize("rate", [0.1, 1.0, 1.7])
@pytest.mark.parametrize("weights", ["none", "real", "whole"])
@pytest.mark.parametrize(("loss", "target"), SMOOTH)
@pytest.mark.parametrize("learners", [AllLearners(), RandomGroups(1)])
def test_tr_9_every_round_goes_down_by_what_the_lemma_says(
    rate: float, weights: str, loss: Loss, target: str, learners: RandomGroups
) -> None:
    """L(F+) <= L(F) - (nu - nu^2 / 2) / sigma ||P r||^2, for a step of nu / sigma and the leaf values of all rows.

    With several outputs the trees of a round are one step, and sigma bounds all scores moving together.
    """
    data = random_case(5, 150, 4, target=target, weights=weights).data
    recipe = Recipe(loss, 6, rate, DepthWise(Limits(6, 3, 1, 0.0, 0.0)), UniformSampling(0.7), learners, ConstantStep())
    start = TEAMS[1].start(data, loss.start(data.y, data.row_weight()))
    noted = Projections(data, loss, start, [], [TEAMS[1].loss_value(loss, start, data.y, data.row_weight())])
    boost(recipe, data, TEAMS[1], watch=noted)
    losses_of = np.array(noted.means) * data.total_weight
    promised = (rate - rate * rate / 2.0) / loss.smoothness * np.array(noted.sums)
    assert len(promised) == 6
    assert (promised > 0.0).all()
    assert (losses_of[1:] <= losses_of[:-1] - promised + 1e-6 * losses_of[0]).all()
    if isinstance(loss, losses.SquaredError):  # where the lemma is an equality
        assert losses_of[1:] == pytest.approx(losses_of[:-1] - promised, rel=1e-5, abs=1e-6)


@pytest.mark.parametrize("backend", BACKENDS)
def test_the_gain_of_a_split_is_the_growth_of_the_projection(backend: Backend) -> None:
    """With h = 1 and lambda = 0 the gains of a tree, and its root's score, sum to ||P r||^2."""
    data = random_case(6, 200, 4).data
    g = random_gradients(np.random.default_rng(6), 200, "plain").g
    found = grow(backend, DepthWise(Limits(16, 4, 1, 0.0, 0.0)), data, Gradients(g, np.ones((1, 200), np.float32)))
    r, leaf = -g[0].astype(float), found.leaf_of_row
    single = ~data.cuts.is_categorical[np.maximum(found.nodes.feature, 0)]
    assert single[found.nodes.feature >= 0].any()
    growth = 0.0
    for v in np.flatnonzero(found.nodes.feature >= 0):
        sums = [found.sums[0][u] ** 2 / found.sums[1][u] for u in (found.nodes.left[v], found.nodes.right[v], v)]
        growth += sums[0] + sums[1] - sums[2]
        if single[v]:
            assert found.nodes.gain[v] == pytest.approx(sums[0] + sums[1] - sums[2], rel=1e-9, abs=1e-9)
    projected = sum(r[leaf == v].sum() ** 2 / (leaf == v).sum() for v in np.unique(leaf))
    assert growth + r.sum() ** 2 / 200 == pytest.approx(projected, rel=1e-5)
    assert len(np.unique(dense_rows(data.bins)[:, 0])) > 1
