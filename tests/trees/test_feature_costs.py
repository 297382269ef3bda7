"""Feature costs: what is paid, when it is paid, and LightGBM's trees under the same penalties."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray
from threadpoolctl import threadpool_limits

import gpuboost as gb
from gpuboost.backends.numerics.split_costs import charge
from gpuboost.errors import DeviceError, RecipeError
from gpuboost.types import SplitCosts

RNG = np.random.default_rng(0)
X: NDArray[np.float64] = RNG.integers(0, 20, size=(300, 5)).astype(np.float64)
Y = X[:, 0] + 0.7 * X[:, 1] - 0.4 * X[:, 2] + 0.03 * X[:, 2] * X[:, 3] + RNG.normal(size=300)
PLAIN: dict[str, Any] = {"n_estimators": 12, "learning_rate": 0.3, "reg_lambda": 1.0, "min_child_weight": 0.0}


def fitted(**params: Any) -> gb.GradientBoostingRegressor:
    return gb.GradientBoostingRegressor(**PLAIN | params, n_jobs=1, random_state=0, device="cpu").fit(X, Y)


def used(model: gb.GradientBoostingRegressor) -> list[set[int]]:
    """Columns of the trees of each round."""
    return [set(tree.nodes.feature[tree.nodes.feature >= 0].tolist()) for tree in model.ensemble_.trees]


def test_net_gains_by_hand() -> None:
    gains = np.array([[10.0, 6.0, 0.0], [3.0, 9.0, 2.0]])
    charge(gains, np.array([8, 4]), np.array([0, 1, 3]), SplitCosts(np.array([1.0, 5.0, 0.0, 0.5]), 0.25), 2.0, 0.75)
    # rows are 16 and 8, so they cost 4 and 2; a net gain of at most 0.75 is none
    assert gains.tolist() == [[5.0, 0.0, 0.0], [0.0, 2.0, 0.0]]
    charge(gains, np.array([8, 4]), np.array([0, 1, 3]), None, 2.0, 0.75)
    assert gains.tolist() == [[5.0, 0.0, 0.0], [0.0, 2.0, 0.0]]


@pytest.mark.parametrize(("split", "feature"), [(0.0, (0.0, 900.0, 300.0, 50.0, 50.0)), (2.0, 0.0), (0.1, 400.0)])
def test_stumps_are_those_of_lightgbm(split: float, feature: Any) -> None:
    import lightgbm

    costs = np.full(5, feature).tolist() if isinstance(feature, float) else list(feature)
    ours = fitted(max_depth=1, feature_costs=gb.FeatureCosts(feature, split, tradeoff=2.0))
    params = {
        "objective": "regression", "num_leaves": 2, "learning_rate": 0.3, "lambda_l2": 1.0, "min_data_in_leaf": 1,
        "min_sum_hessian_in_leaf": 0.0, "min_data_in_bin": 1, "max_bin": 255, "verbose": -1, "num_threads": 1,
        "cegb_tradeoff": 2.0, "cegb_penalty_split": split, "cegb_penalty_feature_coupled": costs,
    }  # fmt: skip
    with threadpool_limits(1, "openmp"):
        theirs = lightgbm.train(params, lightgbm.Dataset(X, Y), num_boost_round=12)
    split_by = theirs.trees_to_dataframe()["split_feature"].dropna().tolist()
    found = [f"Column_{min(columns)}" for columns in used(ours) if columns]
    assert found == split_by
    free = gb.GradientBoostingRegressor(**PLAIN, max_depth=1, n_jobs=1, random_state=0, device="cpu").fit(X, Y)
    assert found != [f"Column_{min(columns)}" for columns in used(free)]
    # a tree without a split is a constant here, and the end of training there
    assert np.ptp(ours.predict(X) - theirs.predict(X)) < 1e-5


def test_a_feature_is_free_once_a_tree_was_split_by_it() -> None:
    model = fitted(max_depth=3, feature_costs=gb.FeatureCosts({0: 0.0, 1: 200.0, 2: 200.0, 3: 200.0, 4: 1e6}))
    by_round = used(model)
    first = next(i for i, columns in enumerate(by_round) if 1 in columns)
    gains = [tree.nodes.gain[tree.nodes.feature == 1] for tree in model.ensemble_.trees[first + 1 :]]
    assert min(gain.min() for gain in gains if len(gain)) < 200.0  # later splits by it gain less than its first cost
    assert 4 not in set().union(*by_round)
    dear = fitted(max_depth=3, feature_costs=gb.FeatureCosts([0.0, 1e9, 1e9, 1e9, 1e9]))
    assert set().union(*used(dear)) == {0}


def test_costs_of_rows_make_trees_shallow() -> None:
    models = [fitted(feature_costs=gb.FeatureCosts(split=cost)) for cost in (0, 1, 1e9)]
    sizes = [sum(len(tree.nodes.feature) for tree in model.ensemble_.trees) for model in models]
    assert sizes[0] > sizes[1] > sizes[2] == 12
    same = fitted(feature_costs=gb.FeatureCosts(0.0, 0.0)), fitted()
    assert same[0].predict(X).tolist() == same[1].predict(X).tolist()


def test_a_continued_model_knows_what_was_paid() -> None:
    costs = gb.FeatureCosts([0.0, 200.0, 200.0, 100.0, 100.0], split=0.05)
    whole = fitted(max_depth=3, feature_costs=costs)
    half = fitted(max_depth=3, feature_costs=costs, n_estimators=6)
    rest = gb.GradientBoostingRegressor(
        **PLAIN | {"n_estimators": 6}, max_depth=3, feature_costs=costs, n_jobs=1, random_state=0, device="cpu"
    )
    rest.fit(X, Y, init_model=half)
    assert rest.predict(X).tolist() == whole.predict(X).tolist()
    assert gb.loads(gb.dumps(whole)).feature_costs == costs
    whole.set_params(feature_costs=gb.FeatureCosts({1: 2.0}))
    assert gb.loads(gb.dumps(whole)).feature_costs.feature == {1: 2.0}


def test_statistics_of_a_category_cost_what_its_column_costs() -> None:
    pd = pytest.importorskip("pandas")
    frame = pd.DataFrame({"n": X[:, 0], "c": pd.Categorical((X[:, 1] % 7).astype(int).astype(str))})
    given: dict[str, Any] = {"categorical_encoding": gb.OrderedTargetStatistics(permutations=2), **PLAIN, "n_jobs": 1}
    dear = gb.GradientBoostingRegressor(**given, feature_costs=gb.FeatureCosts({"c": 1e9}), device="cpu").fit(frame, Y)
    assert dear.feature_importances_[0] == 1.0
    assert gb.GradientBoostingRegressor(**given, device="cpu").fit(frame, Y).feature_importances_[1] > 0.0


@pytest.mark.parametrize(
    ("params", "error", "message"),
    [
        ({"feature_costs": 3.0}, RecipeError, "feature_costs: must be None or a gb.FeatureCosts; got 3.0"),
        ({"feature_costs": gb.FeatureCosts([1.0])}, RecipeError, "feature_costs: feature must have one cost for each"),
        ({"feature_costs": gb.FeatureCosts({"a": 1.0})}, RecipeError, "feature_costs: feature: X has no column names"),
        ({"feature_costs": gb.FeatureCosts(1e200, tradeoff=1e200)}, RecipeError, "costs times tradeoff must be finite"),
        (
            {"feature_costs": gb.FeatureCosts(1.0), "base_learner": gb.learners.Linear()},
            RecipeError, "feature_costs: costs are of the splits of trees",
        ),
        (
            {"feature_costs": gb.FeatureCosts(1.0), "execution": gb.SimulatedWorkers(2)},
            RecipeError, "feature_costs: .* builds trees before those of earlier rounds are known",
        ),
        (
            {"feature_costs": gb.FeatureCosts(1.0), "langevin": gb.Langevin()},
            RecipeError, "feature_costs: the theorem of Langevin boosting",
        ),
        ({"feature_costs": gb.FeatureCosts(1.0), "device": "cuda"}, DeviceError, "trees with feature costs are grown"),
    ],
)  # fmt: skip
def test_what_cannot_be_paid_is_refused(params: dict[str, Any], error: type[Exception], message: str) -> None:
    with pytest.raises(error, match=message):
        gb.GradientBoostingRegressor(**{"device": "cpu", "n_estimators": 1} | params).fit(X, Y)


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ({"feature": -1.0}, "feature_costs: feature must be a finite number of at least 0; got -1.0"),
        ({"feature": [1.0, np.nan]}, r"feature_costs: feature\[1\] must be a finite number"),
        ({"feature": {"a": "b"}}, r"feature_costs: feature\['a'\] must be a finite number"),
        ({"feature": "a"}, "feature_costs: feature must be a finite number of at least 0; got 'a'"),
        ({"split": np.inf}, "feature_costs: split must be a finite number"),
        ({"tradeoff": True}, "feature_costs: tradeoff must be a finite number"),
    ],
)
def test_costs_are_numbers(given: dict[str, Any], message: str) -> None:
    with pytest.raises(RecipeError, match=message):
        gb.FeatureCosts(**given)
