"""monotonic_cst: what is promised holds exactly at every point, whatever else the recipe does."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from sklearn.base import clone
from sklearn.ensemble import HistGradientBoostingRegressor
from support.examples import examples
from threadpoolctl import threadpool_limits

import gpuboost as gb
from gpuboost.backends.cpu.backend import Cpu
from gpuboost.backends.numerics.monotone import bound_leaves, held, in_order
from gpuboost.testing.cases import random_case
from gpuboost.types import FittedTree, Limits, Nodes

Array = np.ndarray
GRID = np.linspace(-1.3, 1.3, 60)
DIRECTIONS = [1, 0, -1, 0]


def problem(seed: int, n: int, missing: float = 0.0) -> tuple[Array, Array]:
    """Rises with column 0, falls with column 2, under much noise."""
    rng = np.random.default_rng(seed)
    x = rng.uniform(-1.0, 1.0, (n, 4))
    y = truth(x) + 0.8 * rng.normal(size=n)
    x[rng.random((n, 4)) < missing] = np.nan
    return x, y


def truth(x: Array) -> Array:
    return x[:, 0] + 0.3 * np.sin(8.0 * x[:, 1]) - x[:, 2] ** 3


def violation(score: Any, points: Array, f: int, direction: int) -> float:
    """The largest step in the wrong direction as column f rises at any of the points, missing values included."""
    rows = np.repeat(points, len(GRID), axis=0)
    rows[:, f] = np.tile(GRID, len(points))
    steps = np.diff(score(rows).reshape(len(points), len(GRID)), axis=1)
    return float(max(0.0, (-direction * steps).max()))


def worst(score: Any, points: Array) -> float:
    return max(violation(score, points, 0, 1), violation(score, points, 2, -1))


RECIPES: list[dict[str, Any]] = [
    {},
    {"growth": "leafwise", "max_depth": None, "max_leaves": 20, "min_samples_leaf": 4},
    {"max_depth": 1, "learners": 2, "n_estimators": 200},
    {"reg_lambda": 0.0, "min_child_weight": 0.0, "random_strength": 1.0},
    {"sampling": 0.3},
    {"sampling": gb.GOSS(0.1, 0.1)},
    {"sampling": gb.ImportanceSampling(0.2, variance_control="none")},
    {"sampling": gb.ImportanceSampling(0.2, variance_control="node")},
    {"loss": "absolute_error"},
    {"loss": gb.losses.Quantile(0.8), "sampling": 0.5},
    {"step": "line_search"},
    {"step": gb.LineSearchStep("leaf")},
    {"step": "gradient", "loss": "huber"},
    {"langevin": gb.Langevin(allow_unproven=True), "n_estimators": 10},
    {"execution": gb.Asynchronous(2)},
    {"execution": gb.SimulatedWorkers(3), "sampling": 0.5},
    {"execution": gb.Asynchronous(2, leaf_values="worker", allow_unproven=True), "sampling": 0.5},
    {"execution": gb.DataParallel(2)},
]


@pytest.mark.filterwarnings("ignore::gpuboost.OutsideTheoryWarning")
@pytest.mark.parametrize("params", RECIPES, ids=[str(list(one.items())[:2]) for one in RECIPES])
def test_no_prediction_goes_the_wrong_way_and_without_constraints_many_do(params: dict[str, Any]) -> None:
    x, y = problem(0, 400, missing=0.05)
    points = problem(1, 40, missing=0.1)[0]
    free = gb.GradientBoostingRegressor(**{"n_estimators": 25, "random_state": 0, "n_jobs": 2} | params)
    bound = clone(free).set_params(monotonic_cst=DIRECTIONS).fit(x, y)
    assert worst(bound.predict, points) == 0.0
    assert max(violation(bound.predict, points, f, 1) for f in (1, 3)) > 0.0  # free columns are free
    assert worst(free.fit(x, y).predict, points) > 0.0


@settings(max_examples=examples(25))
@given(
    st.integers(0, 2**32 - 1), st.integers(5, 120), st.sampled_from([1, 2, 6]), st.sampled_from([0.0, 1.0, 20.0]),
    st.sampled_from([0.1, 1.0, 1.9]), st.sampled_from([3, 255]), st.sampled_from(["depthwise", "leafwise"]),
)  # fmt: skip
def test_predictions_are_monotone_at_every_point(
    seed: int, n: int, depth: int, ridge: float, rate: float, bins: int, growth: str
) -> None:
    x, y = problem(seed, n)
    rng = np.random.default_rng(seed)
    directions = rng.choice([-1, 0, 1], 4)
    model = gb.GradientBoostingRegressor(
        n_estimators=6, learning_rate=rate, max_depth=depth, reg_lambda=ridge, max_bins=bins, growth=growth,
        min_child_weight=0.0, monotonic_cst=directions, n_jobs=1, random_state=0,
    ).fit(x, y)  # fmt: skip
    points = x[:20]
    for f in np.flatnonzero(directions):
        assert violation(model.predict, points, f, int(directions[f])) == 0.0
    for tree in model.ensemble_.trees:
        assert in_order(tree, directions)


@pytest.mark.parametrize("loss", ["logistic", "exponential"])
def test_of_two_classes_the_second_ones_probability_is_monotone(loss: str) -> None:
    x, y = problem(0, 500)
    points = problem(1, 40)[0]
    model = gb.GradientBoostingClassifier(loss=loss, n_estimators=30, monotonic_cst=DIRECTIONS).fit(x, y > 0.0)
    assert worst(model.decision_function, points) == 0.0
    assert worst(lambda rows: model.predict_proba(rows)[:, 1], points) <= 1e-15
    free = gb.GradientBoostingClassifier(loss=loss, n_estimators=30).fit(x, y > 0.0)
    assert worst(free.decision_function, points) > 0.0


def test_scores_of_a_ranking_are_monotone() -> None:
    x, y = problem(0, 400)
    grades, group, points = np.digitize(y, [-1.0, 0.0, 1.0]), np.repeat(np.arange(20), 20), problem(1, 30)[0]
    model = gb.GradientBoostingRanker(n_estimators=20, monotonic_cst=DIRECTIONS).fit(x, grades, group=group)
    assert worst(model.predict, points) == 0.0
    assert worst(gb.GradientBoostingRanker(n_estimators=20).fit(x, grades, group=group).predict, points) > 0.0


def test_a_true_constraint_helps_and_is_as_good_as_scikit_learns() -> None:
    ours, free, theirs = [], [], []
    unseen = np.random.default_rng(99).uniform(-1.0, 1.0, (3000, 4))
    for seed in range(3):
        x, y = problem(seed, 500)
        how: dict[str, Any] = {"learning_rate": 0.1, "max_depth": 6, "min_samples_leaf": 5, "random_state": 0}
        sklearn = HistGradientBoostingRegressor(
            max_iter=60, max_leaf_nodes=None, monotonic_cst=DIRECTIONS, early_stopping=False, l2_regularization=1.0,
            **how,
        )  # fmt: skip
        models = (
            gb.GradientBoostingRegressor(n_estimators=60, monotonic_cst=DIRECTIONS, **how),
            gb.GradientBoostingRegressor(n_estimators=60, **how),
            sklearn,
        )
        with threadpool_limits(1, "openmp"):  # scikit-learn's threads wait in a loop
            for errors, model in zip((ours, free, theirs), models, strict=True):
                errors.append(float(np.mean((model.fit(x, y).predict(unseen) - truth(unseen)) ** 2)))
    assert np.mean(ours) < np.mean(free)
    assert np.mean(ours) < 1.05 * np.mean(theirs)


def test_no_constraint_and_zeros_change_no_bit(tmp_path: Path) -> None:
    x, y = problem(0, 200)
    found = []
    for given_as in (None, [0, 0, 0, 0], {}, {"c": 0}):
        model = gb.GradientBoostingRegressor(n_estimators=5, monotonic_cst=given_as, random_state=0)
        found.append([(t.value.tobytes(), t.nodes.gain.tobytes()) for t in model.fit(named(x), y).ensemble_.trees])
    assert all(one == found[0] for one in found)


def named(x: Array) -> Any:
    return pytest.importorskip("pandas").DataFrame(x, columns=list("abcd"))


def test_names_stand_for_columns_and_the_model_file_remembers(tmp_path: Path) -> None:
    x, y = problem(0, 300)
    listed = gb.GradientBoostingRegressor(n_estimators=8, monotonic_cst=DIRECTIONS, random_state=0).fit(named(x), y)
    by_name = gb.GradientBoostingRegressor(n_estimators=8, monotonic_cst={"c": -1, "a": 1}, random_state=0)
    by_name.fit(named(x), y)
    assert listed.predict(named(x)).tobytes() == by_name.predict(named(x)).tobytes()
    for model in (listed, by_name):
        model.save_model(tmp_path / "m.json")
        again = gb.load_model(tmp_path / "m.json")
        assert again.monotonic_cst == model.monotonic_cst
        assert again.predict(named(x)).tobytes() == model.predict(named(x)).tobytes()


def test_a_model_may_be_carried_on_and_a_dataset_used_again() -> None:
    x, y = problem(0, 300)
    points, half = problem(1, 30)[0], gb.GradientBoostingRegressor(n_estimators=6, monotonic_cst=DIRECTIONS)
    whole = clone(half).set_params(n_estimators=12).fit(gb.Dataset(x, y))
    half.fit(x, y)
    more = clone(half).fit(x, y, init_model=half)
    assert more.predict(x).tobytes() == whole.predict(x).tobytes()
    assert worst(more.predict, points) == 0.0


def test_sparse_columns_and_categories_beside_constraints() -> None:
    sparse = pytest.importorskip("scipy.sparse")
    x, y = problem(0, 400)
    x = np.where(np.abs(x) < 0.7, 0.0, x)
    points = np.where(np.abs(problem(1, 30)[0]) < 0.7, 0.0, problem(1, 30)[0])
    model = gb.GradientBoostingRegressor(n_estimators=10, monotonic_cst=DIRECTIONS, random_state=0)
    dense = clone(model).fit(x, y)
    assert model.fit(sparse.csr_matrix(x), y).predict(x).tobytes() == dense.predict(x).tobytes()
    assert worst(dense.predict, points) == 0.0
    x[:, 3] = np.random.default_rng(0).integers(0, 30, 400)
    points[:, 3] = 4.0
    mixed = clone(model).set_params(categorical_features=[3]).fit(x, y + 0.3 * x[:, 3] % 2)
    assert worst(mixed.predict, points) == 0.0


def test_memory_of_a_gpu_has_room_for_bounds() -> None:
    free, bound = (
        gb.estimate_memory(100_000, 4, max_depth=6, monotonic_cst=given_as) for given_as in (None, {"age": 1})
    )
    assert free.total < bound.total < free.total + 100_000


def test_what_theory_says_of_it() -> None:
    x, y = problem(0, 100)
    model = gb.GradientBoostingRegressor(n_estimators=3, monotonic_cst=DIRECTIONS)
    found = model.check(x, y)
    assert (found.kind, found.reasons[0][:14]) == ("heuristic", "monotonic_cst:")
    assert gb.GradientBoostingRegressor(n_estimators=3).check(x, y).kind == "sound"
    assert model.fit(x, y).guarantee_.kind == "none"
    assert model.fit_report_.edges is None


@pytest.mark.parametrize(
    "constraint", [{"monotonic_cst": {0: 1, 2: -1}}, {"interaction_cst": [[0, 1], [2, 3]]}], ids=["monotone", "sets"]
)
def test_trees_of_a_model_to_continue_that_are_free_are_warned_of(constraint: dict[str, Any], tmp_path: Path) -> None:
    (name,) = constraint
    x, y = problem(0, 60)
    held_to, free = (gb.GradientBoostingRegressor(n_estimators=2, **params) for params in (constraint, {}))
    free.fit(x, y).save_model(tmp_path / "free.json")
    for start in (free, tmp_path / "free.json"):
        with pytest.warns(UserWarning, match=f"{name}: the 2 rounds of the model to continue .* {name}=None"):
            clone(held_to).fit(x, y, init_model=start)
    with pytest.warns(UserWarning, match=f"{name}: the 2 rounds"):
        clone(free).set_params(warm_start=True).fit(x, y).set_params(n_estimators=3, **constraint).fit(x, y)
    held_to.fit(x, y).save_model(tmp_path / "held.json")
    clone(held_to).fit(x, y, init_model=held_to)
    clone(held_to).fit(x, y, init_model=tmp_path / "held.json")
    clone(free).fit(x, y, init_model=held_to)


def test_values_in_order_are_left_alone_and_others_are_parted() -> None:
    x, y = problem(0, 300)
    tree = gb.GradientBoostingRegressor(n_estimators=1, monotonic_cst=DIRECTIONS).fit(x, y).ensemble_.trees[0]
    directions = np.array(DIRECTIONS)
    assert in_order(tree, directions)
    again = held(tree, directions, 1.0)
    assert in_order(again, directions)
    upside_down = type(tree)(tree.nodes, -tree.value, tree.output, tree.version)
    assert not in_order(upside_down, directions)
    assert in_order(held(upside_down, directions, 0.0), directions)


@settings(max_examples=examples(200))
@given(st.integers(0, 10**6), st.integers(0, 30), st.booleans(), st.sampled_from([0.0, 1.0]), st.booleans())
def test_a_cpu_holds_values_to_their_order(seed: int, splits: int, refined: bool, ridge: float, in_order: bool) -> None:
    rng, v = np.random.default_rng(seed), 2 * splits + 1
    feature, left, right = np.full(v, -1, np.int32), np.zeros(v, np.int32), np.zeros(v, np.int32)
    leaves = [0]
    for split in range(splits):
        node = leaves.pop(int(rng.integers(len(leaves))))
        feature[node], left[node], right[node] = rng.integers(0, 3), 2 * split + 1, 2 * split + 2
        leaves += [2 * split + 1, 2 * split + 2]
    value = np.where(feature < 0, 0.5 if in_order else np.round(rng.normal(size=v), 1), 0.0)
    more = np.zeros(v, np.int32), np.zeros(v, np.bool_), np.zeros(v), rng.integers(0, 9, v) * 0.25
    bins, missing, gain, cover = more
    nodes = Nodes(feature, bins, missing, left, right, gain, cover, np.ones(v, np.int64), np.zeros((v, 8), np.uint32))
    case, tree = random_case(0, 20, 3, categorical=0.0), FittedTree(nodes, value, 0, 0)
    limits = Limits(v, directions=(1, -1, 0), reg_lambda=ridge)
    expected = bound_leaves(tree, case.data.cuts, limits, refined=refined)
    found = Cpu(1).bound_leaves(tree, np.zeros(20, np.int32), case.data, limits, refined=refined)
    assert found.value.tobytes() == expected.value.tobytes()
