"""The contract of a backend: the verbs that refine a finished tree, add it up and predict with it."""

from __future__ import annotations

from dataclasses import replace
from functools import reduce
from operator import add

import numpy as np
import pytest
from support.builders import as_sparse, random_case

from gpuboost import losses
from gpuboost.backends.cpu.backend import Cpu
from gpuboost.backends.protocol import Backend
from gpuboost.backends.reference.backend import Reference
from gpuboost.boosting import boost
from gpuboost.errors import InputError
from gpuboost.growth import DepthWise
from gpuboost.losses import Loss
from gpuboost.recipe import Recipe
from gpuboost.steps import automatic
from gpuboost.types import Cuts, Ensemble, Limits, Nodes, TrainingSet, Tree

Array = np.ndarray


def stump(feature: int, at: int, missing_left: bool, values: tuple[float, float], output: int = 0) -> Tree:
    nodes = Nodes(
        np.array([feature, -1, -1], np.int32), np.array([at, 0, 0], np.int32), np.array([missing_left, False, False]),
        np.array([1, 0, 0], np.int32), np.array([2, 0, 0], np.int32), np.array([1.0, 0.0, 0.0]), np.ones(3),
        np.array([4, 2, 2]), np.zeros((3, 8), np.uint32),
    )  # fmt: skip
    return Tree(nodes, np.array([0.0, *values]), output, 0)


def test_leaf_quantiles_replace_the_values_of_leaves_alone(backend: Backend) -> None:
    codes = np.array([[0], [0], [0], [1], [1]], np.uint8)
    data = TrainingSet(
        backend.quantise(codes.astype(float), Cuts((np.array([0.5]),), (None,))), Cuts((np.array([0.5]),), (None,)),
        np.array([1.0, 5.0, 3.0, 10.0, 20.0]), None, np.array([1, 1, 1, 1, 3], np.int32),
    )  # fmt: skip
    tree = stump(0, 0, False, (7.0, 7.0))
    leaf = np.array([1, 1, 1, 2, 2], np.int32)
    found = backend.leaf_quantiles(tree, leaf, losses.AbsoluteError(), np.full((1, 5), 1.0), data)
    assert found.value.tolist() == [0.0, 2.0, 19.0]
    assert tree.value.tolist() == [0.0, 7.0, 7.0]
    empty = backend.leaf_quantiles(tree, np.ones(5, np.int32), losses.AbsoluteError(), np.full((1, 5), 1.0), data)
    assert empty.value.tolist() == [0.0, 9.0, 0.0]


LEAF = np.array([1, 1, 1, 2, 2], np.int32)


def searched(backend: Backend, loss: Loss, y: list[float], values: tuple[float, float], per_leaf: bool) -> Array:
    """What a line search makes of a stump's two values, rows 0 to 2 being on its left, all scores 0."""
    cuts = Cuts((np.array([0.5]),), (None,))
    bins = backend.quantise(np.array([[0.0], [0.0], [0.0], [1.0], [1.0]]), cuts)
    data, tree = (
        TrainingSet(bins, cuts, np.array(y), None, np.array([1, 1, 1, 1, 3], np.int32)),
        stump(0, 0, False, values),
    )
    found = backend.line_search(tree, LEAF, loss, np.zeros((1, 5)), data, per_leaf)
    assert found.value[0] == 0.0
    assert tree.value.tolist() == [0.0, *values], "the tree that is given stays as it is"
    return found.value[1:]


def test_a_line_search_per_tree_is_one_length_for_all_values(backend: Backend) -> None:
    """Of squared error it is <r, f> / |f|^2; of the absolute error a median of ratios; 0 where f points uphill."""
    y = [1.0, 2.0, 3.0, 8.0, 10.0]  # the last row counts three times
    rho = (6.0 * 1.0 + 38.0 * 4.0) / (3.0 * 1.0 + 4.0 * 16.0)
    assert searched(backend, losses.SquaredError(), y, (1.0, 4.0), False) == pytest.approx([rho, 4.0 * rho], rel=1e-6)
    assert searched(backend, losses.SquaredError(), y, (-1.0, -4.0), False).tolist() == [0.0, 0.0]
    assert searched(backend, losses.AbsoluteError(), y, (1.0, 4.0), False).tolist() == [2.5, 10.0]


def test_a_line_search_per_leaf_finds_the_best_value_of_each(backend: Backend) -> None:
    """Of squared error the mean, of Poisson the logarithm of the mean, of the absolute error the median."""
    y = [1.0, 2.0, 3.0, 8.0, 12.0]
    means = np.array([2.0, 11.0])
    assert searched(backend, losses.SquaredError(), y, (0.3, 1.0), True) == pytest.approx(means, rel=1e-6)
    assert searched(backend, losses.Poisson(), y, (0.3, 1.0), True) == pytest.approx(np.log(means), rel=1e-6)
    assert searched(backend, losses.AbsoluteError(), y, (0.3, 1.0), True).tolist() == [2.0, 12.0]
    assert searched(backend, losses.SquaredError(), y, (-0.3, 1.0), True) == pytest.approx([0.0, 11.0], rel=1e-6)


def test_every_machine_searches_the_same_length() -> None:
    for loss, values in ((losses.Poisson(), (0.3, 1.0)), (losses.Huber(0.7), (0.5, 2.0))):
        for per_leaf in (False, True):
            found = {
                searched(one, loss, [1.0, 2.0, 3.0, 8.0, 12.0], values, per_leaf).tobytes()
                for one in (Reference(), Cpu(1), Cpu(3))
            }
            assert len(found) == 1


def test_adding_a_tree_writes_its_own_output_in_place(backend: Backend) -> None:
    cuts = Cuts((np.array([0.0, 1.0]),), (None,))
    x = np.array([[-1.0], [0.5], [3.0], [np.nan]] * 20)
    bins = backend.quantise(x, cuts)
    for missing_left, expected in ((False, [1.0, 1.0, 4.0, 4.0]), (True, [1.0, 1.0, 4.0, 1.0])):
        for layout in (bins, as_sparse(bins, cuts.n_bins)):
            scores = np.zeros((2, 80))
            backend.add_tree(scores, stump(0, 1, missing_left, (2.0, 8.0), 1), 0.5, layout, cuts)
            assert not scores[0].any()
            assert scores[1].tolist() == expected * 20
    scores = np.full((2, 3), 10.0)
    backend.add_leaves(scores, stump(0, 1, False, (2.0, 8.0), 0), 0.5, np.array([2, 1, 2], np.int32))
    assert scores.tolist() == [[14.0, 11.0, 14.0], [10.0, 10.0, 10.0]]


@pytest.mark.parametrize(("loss", "target"), [(losses.Poisson(), "positive"), (losses.Softmax(3), "3")])
@pytest.mark.parametrize("weighted", [False, True])
def test_the_loss_is_a_weighted_mean_summed_in_a_fixed_order(
    backend: Backend, loss: Loss, target: str, weighted: bool
) -> None:
    rng = np.random.default_rng(7)
    y = random_case(7, 90, 2, target=target).data.y
    scores, weight = rng.normal(size=(loss.n_outputs, 90)), rng.random(90) if weighted else None
    lanes = np.zeros((2, 16))  # row i adds to lane i % 16, and the lanes are summed in order
    for i, t in enumerate(y):
        one = loss.n_outputs == 1
        each = loss.value(t, scores[0, i], loss.parameter) if one else loss.row_value(t, scores[:, i], loss.parameter)
        lanes[0, i % 16] += each if weight is None else each * weight[i]
        lanes[1, i % 16] += 1.0 if weight is None else weight[i]
    above, below = (reduce(add, line.tolist(), 0.0) for line in lanes)  # sum() compensates since Python 3.12
    assert backend.loss_value(loss, scores, y, weight) == above / below


@pytest.mark.parametrize("n", [1, 15, 17, 4_095, 4_097, 65_537, 140_000])
def test_every_machine_sums_in_the_same_order(n: int) -> None:
    rng = np.random.default_rng(n)
    y, scores = rng.normal(size=n), rng.normal(size=(1, n)) * 1e3
    loss = losses.SquaredError()
    means = {backend.loss_value(loss, scores, y, None) for backend in (Reference(), Cpu(1), Cpu(2))}
    assert len(means) == 1


@pytest.fixture
def trained() -> tuple[Ensemble, Array, TrainingSet]:
    case = random_case(8, 150, 4, target="3")
    recipe = Recipe(losses.Softmax(3), 4, 0.3, DepthWise(Limits(6, 3)), step=automatic(losses.Softmax(3)))
    return boost(recipe, case.data, Reference()), case.x, case.data


def test_prediction_by_values_is_that_by_bins(backend: Backend, trained: tuple[Ensemble, Array, TrainingSet]) -> None:
    ensemble, x, data = trained
    scores = backend.start(data, ensemble.bias)
    for tree, factor in zip(ensemble.trees, ensemble.factors, strict=True):
        backend.add_tree(scores, tree, factor, data.bins, data.cuts)
    found = backend.predict(ensemble, x)
    assert found.shape == (3, 150)
    assert found.tobytes() == scores.tobytes()
    for i in (0, 77, 149):  # a row does not depend on the others
        assert backend.predict(ensemble, x[i : i + 1]).tobytes() == np.ascontiguousarray(found[:, i : i + 1]).tobytes()
    assert backend.predict(ensemble, x[:0]).shape == (3, 0)


def test_stages_are_the_scores_after_each_round(backend: Backend, trained: tuple[Ensemble, Array, TrainingSet]) -> None:
    ensemble, x, _ = trained
    stages = list(backend.staged_predict(ensemble, x))
    assert len(stages) == 4
    assert all(np.array_equal(stage, backend.predict(ensemble.first(i + 1), x)) for i, stage in enumerate(stages))
    assert len({id(stage) for stage in stages}) == 4


def test_leaves_are_where_rows_come_to_rest(backend: Backend, trained: tuple[Ensemble, Array, TrainingSet]) -> None:
    ensemble, x, data = trained
    found = backend.leaves(ensemble, x)
    assert found.shape == (150, 12)
    assert found.dtype == np.int32
    for t, tree in enumerate(ensemble.trees):
        counts = np.bincount(found[:, t], minlength=len(tree.value))
        assert np.array_equal(counts[tree.nodes.is_leaf], tree.nodes.count[tree.nodes.is_leaf])
    assert backend.leaves(Ensemble(np.zeros(1), data.cuts), x).shape == (150, 0)


def test_a_shrunken_ensemble_is_bias_plus_scale_times_the_sum(
    backend: Backend, trained: tuple[Ensemble, Array, TrainingSet]
) -> None:
    ensemble, x, _ = trained
    bare = replace(ensemble, bias=np.zeros(3))
    expected = ensemble.bias[:, None] + 0.5 * backend.predict(bare, x)
    assert backend.predict(replace(ensemble, scale=0.5), x).tobytes() == expected.tobytes()


def test_the_wrong_number_of_columns_is_refused(
    trained: tuple[Ensemble, Array, TrainingSet],
) -> None:
    ensemble, x, _ = trained
    with pytest.raises(InputError, match="x: the model was trained on 4 features; this has 3"):
        Cpu().predict(ensemble, x[:, :3])
