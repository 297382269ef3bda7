"""Small things that a new user meets: faults of the first week, each through the public door."""

from __future__ import annotations

import pickle
import subprocess
import sys
from typing import Any

import numpy as np
import pytest
from sklearn.utils import get_tags

import gpuboost as gb

FAMILIES = [gb.learners.Linear(), gb.learners.Spline(), gb.learners.TensorSpline([(0, 1)]), gb.learners.LinearTree()]


@pytest.fixture
def rows() -> tuple[Any, Any]:
    rng = np.random.default_rng(0)
    x = rng.normal(size=(60, 3))
    return x, x[:, 0] + 0.1 * rng.normal(size=60)


@pytest.mark.parametrize("family", FAMILIES, ids=lambda family: type(family).__name__)
def test_a_column_that_is_all_missing_takes_no_part(family: Any, rows: tuple[Any, Any]) -> None:
    x, y = rows
    x[:, 1] = np.nan
    model = gb.GradientBoostingRegressor(n_estimators=5, base_learner=family).fit(x, y)
    assert np.isfinite(model.predict(x)).all()


@pytest.mark.parametrize("family", FAMILIES, ids=lambda family: type(family).__name__)
def test_columns_that_do_not_vary_give_the_constant(family: Any, rows: tuple[Any, Any]) -> None:
    y = rows[1]
    x = np.ones((60, 3))
    model = gb.GradientBoostingRegressor(n_estimators=5, base_learner=family).fit(x, y)
    np.testing.assert_allclose(model.predict(x), y.mean(), atol=1e-6)
    one = gb.GradientBoostingRegressor(n_estimators=2, base_learner=family).fit(x[:1], y[:1])
    np.testing.assert_allclose(one.predict(x[:1]), y[:1])


class Narrow(gb.GradientBoostingRegressor):
    """A subclass whose constructor takes one parameter."""

    def __init__(self, max_depth: int = 3) -> None:
        super().__init__(n_estimators=5, max_depth=max_depth)


def test_a_subclass_may_take_fewer_parameters(rows: tuple[Any, Any]) -> None:
    x, y = rows
    model = Narrow(max_depth=2).fit(x, y)
    assert model.get_params() == {"max_depth": 2}
    same = gb.GradientBoostingRegressor(n_estimators=5, max_depth=2).fit(x, y)
    np.testing.assert_array_equal(model.predict(x), same.predict(x))


def test_r2_of_a_constant_target_is_that_of_scikit_learn(rows: tuple[Any, Any]) -> None:
    x, ones = rows[0], np.ones(60)
    model = gb.GradientBoostingRegressor(n_estimators=2, eval_metric="r2")
    sets = {"exact": (x, ones), "other": (x, 2 * ones)}
    found = model.fit(x, ones, eval_set=sets).evals_result_
    assert (found["exact"]["r2"], found["other"]["r2"]) == ([1.0] * 2, [0.0] * 2)


@pytest.mark.parametrize("loss", ["exponential", "logitboost", "smoothed_zero_one", gb.losses.Logistic(ridge=0.1)])
def test_tags_promise_two_classes_where_the_loss_is_for_two(loss: Any) -> None:
    assert not get_tags(gb.GradientBoostingClassifier(loss=loss)).classifier_tags.multi_class
    assert get_tags(gb.GradientBoostingClassifier()).classifier_tags.multi_class


def test_tags_of_losses_of_positive_targets() -> None:
    for loss, positive in (("poisson", True), ("gamma", True), ("tweedie", True), ("squared_error", False)):
        assert get_tags(gb.GradientBoostingRegressor(loss=loss)).target_tags.positive_only is positive


def test_the_package_is_a_program() -> None:
    done = subprocess.run([sys.executable, "-m", "gpuboost", "--version"], capture_output=True, text=True, check=True)
    assert gb.__version__ in done.stdout


def test_a_generator_as_random_state_draws_the_seed(rows: tuple[Any, Any]) -> None:
    x, y = rows
    drawn = [
        gb.GradientBoostingRegressor(n_estimators=3, sampling=0.5, random_state=np.random.default_rng(seed)).fit(x, y)
        for seed in (1, 1, 2)
    ]
    assert np.array_equal(drawn[0].predict(x), drawn[1].predict(x))
    assert not np.array_equal(drawn[0].predict(x), drawn[2].predict(x))


def test_group_sizes_may_be_whole_floats(rows: tuple[Any, Any]) -> None:
    x, y = rows
    ranker = gb.GradientBoostingRanker(n_estimators=3)
    want = ranker.fit(x, y > 0, group=[20, 40]).predict(x)
    np.testing.assert_array_equal(ranker.fit(x, y > 0, group=[20.0, 40.0]).predict(x), want)
    with pytest.raises(gb.InputError, match="group: must be one query id"):
        ranker.fit(x, y > 0, group=[20.5, 39.5])


def test_leafwise_trees_have_31_leaves_unless_max_leaves_is_given(rows: tuple[Any, Any]) -> None:
    rng = np.random.default_rng(1)
    x = rng.normal(size=(2_000, 3))
    y = rng.normal(size=2_000)

    def leaves(**params: Any) -> int:
        model = gb.GradientBoostingRegressor(n_estimators=1, growth="leafwise", **params).fit(x, y)
        return len(np.unique(model.apply(x)))

    assert leaves() == leaves(max_depth=None) == 31
    assert leaves(max_depth=3) == 8
    assert leaves(max_leaves=50) == 50


def test_learners_1_is_refused_as_it_may_mean_one_or_all(rows: tuple[Any, Any]) -> None:
    x, y = rows
    for value in (1, 1.0):
        with pytest.raises(gb.RecipeError, match=r"one feature or all of them; pass gb.RandomGroups\(1\).*or None"):
            gb.GradientBoostingRegressor(n_estimators=1, learners=value).fit(x, y)
    gb.GradientBoostingRegressor(n_estimators=1, learners=gb.RandomGroups(1)).fit(x, y)


@pytest.mark.parametrize(
    ("name", "here"),
    [("subsample", "sampling=0.5"), ("colsample_bytree", "learners=0.8"), ("num_leaves", "max_leaves"),
     ("lambda_l2", "reg_lambda"), ("max_bin", "max_bins"), ("iterations", "n_estimators"),
     ("leaf_values", "sampling=gb.UniformSampling")],
)  # fmt: skip
def test_parameters_of_other_libraries_are_answered_with_ours(name: str, here: str) -> None:
    with pytest.raises(TypeError, match=f"unknown parameter '{name}'; here it is {here}"):
        gb.GradientBoostingRegressor(**{name: 1})
    with pytest.raises(ValueError, match=f"unknown parameter '{name}'; here it is {here}"):
        gb.GradientBoostingClassifier().set_params(**{name: 1})


def test_every_answer_names_a_parameter_that_exists() -> None:
    from gpuboost.api.peer_names import PEER_NAMES

    known = gb.GradientBoostingClassifier().get_params(deep=False)
    for peer, answer in PEER_NAMES.items():
        assert peer not in known
        assert answer.partition("=")[0].partition(",")[0].partition(";")[0] in known
    with pytest.raises(TypeError, match="unknown parameter 'n_estimator'; close to it: 'n_estimators'"):
        gb.GradientBoostingRegressor(n_estimator=1)


@pytest.mark.parametrize(
    ("rule", "amount"),
    [(gb.UniformSampling, {"rate": 0.5}), (gb.ImportanceSampling, {"rate": 0.5}), (gb.GOSS, {}),
     (gb.WeightTrimming, {}), (gb.RowProbabilities, {"p": [0.5]}), (gb.QuerySampling, {"rate": 0.5})],
)  # fmt: skip
def test_leaf_values_of_a_sampling_rule_are_its_variance_control(rule: type, amount: dict[str, object]) -> None:
    with pytest.raises(TypeError, match=f"{rule.__name__}: unknown parameter 'leaf_values'; here it is variance_contr"):
        rule(**amount, leaf_values="none")
    with pytest.raises(TypeError, match="unknown parameter 'varianc_control'; close to it: 'variance_control'"):
        rule(**amount, varianc_control="none")
    assert pickle.loads(pickle.dumps(rule(**amount, variance_control="none"))).variance_control == "none"


def test_gaussian_nll_gives_its_spread_without_langevin() -> None:
    rng = np.random.default_rng(2)
    x = rng.uniform(size=(3_000, 2))
    spread = 0.2 + x[:, 1]
    y = x[:, 0] + spread * rng.normal(size=3_000)
    model = gb.GradientBoostingRegressor(loss="gaussian_nll", n_estimators=50, max_depth=3).fit(x, y)
    both = model.predict(x, output="all")
    np.testing.assert_array_equal(both[:, 0], model.predict(x))
    np.testing.assert_array_equal(both[:, 1], model.predict(x, output="std"))
    assert np.corrcoef(both[:, 1], spread)[0, 1] > 0.9
    bounds = model.predict_interval(x, 0.8)
    np.testing.assert_allclose(bounds.mean(axis=1), both[:, 0], atol=1e-12)
    np.testing.assert_allclose((bounds[:, 1] - bounds[:, 0]) / both[:, 1], 2 * 1.2815515655446, rtol=1e-9)
    assert 0.75 < np.mean((bounds[:, 0] < y) & (y < bounds[:, 1])) < 0.87
    with pytest.raises(gb.RecipeError, match="langevin"):
        model.predict_interval(x, kind="mean")


def test_outputs_that_a_loss_does_not_have_are_refused(rows: tuple[Any, Any]) -> None:
    x, y = rows
    model = gb.GradientBoostingRegressor(n_estimators=1).fit(x, y)
    with pytest.raises(gb.RecipeError, match="output: 'std' needs a loss that estimates a spread"):
        model.predict(x, output="std")
    with pytest.raises(gb.RecipeError, match="output: must be 'mean', 'std' or 'all'; got 'sd'"):
        model.predict(x, output="sd")


class WithoutArrow:
    """A table whose conversion lacks a package, as polars without pyarrow."""

    def to_pandas(self) -> Any:
        raise ModuleNotFoundError("No module named 'pyarrow'", name="pyarrow")


def test_a_package_that_reading_a_table_needs_is_named() -> None:
    with pytest.raises(gb.InputError, match=r"needs the package pyarrow; pip install pyarrow, or pass X.to_numpy\(\)"):
        gb.GradientBoostingRegressor().fit(WithoutArrow(), [1.0, 2.0])


def test_a_function_as_loss_is_answered_with_custom(rows: tuple[Any, Any]) -> None:
    x, y = rows

    def squares(target: Any, score: Any) -> Any:
        return (score - target) ** 2

    with pytest.raises(gb.InputError, match=r"got the function 'squares'.*gb\.losses\.custom\(value, gradient"):
        gb.GradientBoostingRegressor(loss=squares).fit(x, y)


def test_the_effect_of_an_unused_feature_is_said_in_its_plot(rows: tuple[Any, Any]) -> None:
    matplotlib = pytest.importorskip("matplotlib")
    matplotlib.use("Agg")
    x, y = rows
    model = gb.GradientBoostingRegressor(n_estimators=5, base_learner=gb.learners.Linear(columns=[0])).fit(x, y)
    drawn = gb.plot.partial_effect(model, 2)
    assert [text.get_text() for text in drawn.texts] == ["not used by the model"]
    matplotlib.pyplot.close(drawn.figure)


def test_a_tuple_of_eval_sets_is_a_list_and_a_name_in_a_set_is_answered(rows: tuple[Any, Any]) -> None:
    x, y = rows
    few = gb.GradientBoostingRegressor(n_estimators=2)
    for sets in (((x[:30], y[:30]), (x[30:], y[30:])), (gb.Dataset(x, y), gb.Dataset(x[:9], y[:9]))):
        assert list(few.fit(x, y, eval_set=sets).evals_result_) == ["validation_0", "validation_1"]
    plain = few.fit(x, y, eval_set=(((1.0, 2.0, 3.0), (2.0, 1.0, 3.0)), (0.0, 1.0)))  # one set, of tuples
    assert list(plain.evals_result_) == ["validation_0"]
    for named in (("valid", x, y), [(gb.Dataset(x, y), "valid")]):
        with pytest.raises(gb.InputError, match=r"eval_set: .* give a mapping: \{'valid': \(X, y\)\}"):
            few.fit(x, y, eval_set=named)
