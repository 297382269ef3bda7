"""Each kind of bad input: a clear error, or the defined behaviour; and the estimator is never harmed."""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Any

import numpy as np
import pandas as pd
import pytest
import scipy.sparse as sp

import gpuboost as gb

N = 60
RNG = np.random.default_rng(5)
X = RNG.normal(size=(N, 3))
Y = X[:, 0] - 2.0 * (X[:, 1] > 0.3)
LABELS = (np.mean(Y) < Y).astype(int)


def regressor(**params: Any) -> gb.GradientBoostingRegressor:
    return gb.GradientBoostingRegressor(**{"n_estimators": 5, "max_depth": 2, **params})


def classifier(**params: Any) -> gb.GradientBoostingClassifier:
    return gb.GradientBoostingClassifier(**{"n_estimators": 5, "max_depth": 2, **params})


def with_value(value: float, row: int = 7, column: int = 1) -> np.ndarray:
    changed = X.copy()
    changed[row, column] = value
    return changed


def target_with(value: float, row: int = 7) -> np.ndarray:
    changed = Y.copy()
    changed[row] = value
    return changed


def weights_with(value: float, row: int = 7) -> np.ndarray:
    changed = np.ones(N)
    changed[row] = value
    return changed


BAD_DATA: dict[str, tuple[Callable[[], Any], Callable[[Any], Any], str]] = {
    "one dimension": (regressor, lambda m: m.fit(X[:, 0], Y), "reshape your data"),
    "three dimensions": (regressor, lambda m: m.fit(X[:, :, None], Y), "dim"),
    "fewer targets than rows": (regressor, lambda m: m.fit(X, Y[:-1]), "59 for 60 rows"),
    "a target of two columns": (regressor, lambda m: m.fit(X, np.c_[Y, Y], eval_set=(X, Y)), "2 targets"),
    "no rows": (regressor, lambda m: m.fit(X[:0], Y[:0]), "0 sample"),
    "no columns": (regressor, lambda m: m.fit(X[:, :0], Y), "0 feature"),
    "no target": (regressor, lambda m: m.fit(X, None), "y"),
    "infinity": (regressor, lambda m: m.fit(with_value(np.inf), Y), "infinity"),
    "minus infinity": (regressor, lambda m: m.fit(with_value(-np.inf), Y), "infinity"),
    "infinity in sparse input": (regressor, lambda m: m.fit(sp.csr_array(with_value(np.inf)), Y), "infinity"),
    "nan in the target": (regressor, lambda m: m.fit(X, target_with(np.nan)), "NaN"),
    "infinity in the target": (regressor, lambda m: m.fit(X, target_with(np.inf)), "infinity"),
    "nan among the labels": (classifier, lambda m: m.fit(X, target_with(np.nan)), "NaN"),
    "continuous labels": (classifier, lambda m: m.fit(X, Y), "continuous"),
    "one class": (classifier, lambda m: m.fit(X, np.ones(N)), "class"),
    "one class of positive weight": (
        classifier,
        lambda m: m.fit(X, LABELS, sample_weight=(LABELS == 1).astype(float)),
        "class",
    ),
    "negative counts": (
        lambda: regressor(loss="poisson"),
        lambda m: m.fit(X, np.abs(Y) * np.where(np.arange(N) == 7, -1.0, 1.0)),
        "row 7",
    ),
    "zero for gamma": (lambda: regressor(loss="gamma"), lambda m: m.fit(X, np.exp(Y) * (np.arange(N) != 4)), "row 4"),
    "a negative weight": (regressor, lambda m: m.fit(X, Y, sample_weight=weights_with(-1.0)), "row 7"),
    "a weight that is nan": (regressor, lambda m: m.fit(X, Y, sample_weight=weights_with(np.nan)), "NaN"),
    "all weights zero": (regressor, lambda m: m.fit(X, Y, sample_weight=np.zeros(N)), "all 60 are zero"),
    "too few weights": (regressor, lambda m: m.fit(X, Y, sample_weight=np.ones(N - 1)), "sample_weight"),
    "numbers as text in an object column": (
        regressor,
        lambda m: m.fit(np.c_[X.astype(object), np.full(N, "1.5")], Y),
        "column 3 must hold numbers",
    ),
    "a column of lists": (
        regressor,
        lambda m: m.fit(pd.DataFrame({"a": X[:, 0], "b": [[1]] * N}), Y),
        "column 'b'",
    ),
    "an eval set of another width": (regressor, lambda m: m.fit(X, Y, eval_set=(X[:, :2], Y)), "eval_set.*features"),
    "an eval set without a target": (regressor, lambda m: m.fit(X, Y, eval_set=X), "eval_set"),
    "an eval set with a class never seen": (
        classifier,
        lambda m: m.fit(X, LABELS, eval_set=(X, LABELS + 1)),
        "eval_set.*2",
    ),
    "early stopping with nothing to watch": (
        lambda: regressor(early_stopping_rounds=3),
        lambda m: m.fit(X, Y),
        "eval_set",
    ),
    "categories that are not there": (
        lambda: regressor(categorical_features=[3]),
        lambda m: m.fit(X, Y),
        "categorical_features",
    ),
    "a model to continue that is of another width": (
        regressor,
        lambda m: m.fit(X, Y, init_model=regressor().fit(X[:, :2], Y)),
        "init_model",
    ),
    "a model to continue that is of another loss": (
        lambda: regressor(loss="absolute_error"),
        lambda m: m.fit(X, Y, init_model=regressor().fit(X, Y)),
        "init_model",
    ),
    "a model to continue that is not fitted": (
        regressor,
        lambda m: m.fit(X, Y, init_model=regressor()),
        "init_model|not fitted",
    ),
    "a callback that fails": (
        lambda: regressor(callbacks=[lambda record: 1 / 0]),
        lambda m: m.fit(X, Y),
        "division by zero",
    ),
}


@pytest.mark.parametrize("name", BAD_DATA)
def test_bad_data_is_refused_with_words(name: str) -> None:
    make, fit, words = BAD_DATA[name]
    with pytest.raises((ValueError, TypeError, ZeroDivisionError), match=re.compile(words, re.IGNORECASE)):
        fit(make())


@pytest.mark.parametrize("name", BAD_DATA)
def test_a_fit_that_fails_leaves_a_fitted_estimator_as_it_was(name: str) -> None:
    make, fit, _ = BAD_DATA[name]
    model = make()
    asked = model.get_params()
    kind = classifier if isinstance(model, gb.GradientBoostingClassifier) else regressor
    model.set_params(**kind().get_params())
    model.fit(X, LABELS if kind is classifier else Y)
    model.set_params(**asked)
    before, expected = dict(vars(model)), model.predict(X)
    with pytest.raises((ValueError, TypeError, ZeroDivisionError)):
        fit(model)
    assert vars(model).keys() == before.keys()
    assert all(vars(model)[key] is value for key, value in before.items())
    np.testing.assert_array_equal(model.predict(X), expected)


@pytest.mark.parametrize("name", BAD_DATA)
def test_a_fit_that_fails_leaves_an_unfitted_estimator_unfitted(name: str) -> None:
    make, fit, _ = BAD_DATA[name]
    model = make()
    before = dict(vars(model))
    with pytest.raises((ValueError, TypeError, ZeroDivisionError)):
        fit(model)
    assert vars(model) == before


BAD_PARAMETERS = [
    {"n_estimators": -1},
    {"n_estimators": 2.5},
    {"n_estimators": True},
    {"learning_rate": 0.0},
    {"learning_rate": float("nan")},
    {"learning_rate": "fast"},
    {"growth": "sideways"},
    {"max_depth": 0},
    {"max_depth": None},
    {"max_leaves": 1},
    {"min_samples_leaf": 0},
    {"min_child_weight": -1.0},
    {"reg_lambda": -0.1},
    {"min_split_gain": float("inf")},
    {"max_bins": 1},
    {"max_bins": 65_536},
    {"sampling": 0.0},
    {"sampling": 1.5},
    {"sampling": "half"},
    {"learners": 0},
    {"learners": "some"},
    {"step": "giant"},
    {"step": 0.5},
    {"loss": "no such loss"},
    {"loss": 3},
    {"eval_metric": "no such metric"},
    {"early_stopping_rounds": 0},
    {"validation_fraction": 1.0},
    {"validation_fraction": 0.0},
    {"callbacks": [3]},
    {"callbacks": 3},
    {"device": "tpu"},
    {"device": "cuda:x"},
    {"n_jobs": 0},
    {"n_jobs": 1.5},
    {"verbose": -1},
    {"random_state": "luck"},
]


@pytest.mark.parametrize("params", BAD_PARAMETERS, ids=str)
@pytest.mark.parametrize("make", [regressor, classifier])
def test_a_parameter_out_of_range_is_named(make: Callable[..., Any], params: dict[str, Any]) -> None:
    model = make(**params)
    with pytest.raises(ValueError, match=next(iter(params))):
        model.fit(X, LABELS)
    assert vars(model) == vars(make(**params))


def test_a_seed_that_is_none_is_shown_as_it_was_given() -> None:
    with pytest.raises(gb.RecipeError, match=r"random_state: .*; got True"):
        regressor(random_state=True).fit(X, Y)


def test_classes_that_cannot_be_divided_are_named() -> None:
    model = gb.GradientBoostingClassifier(n_estimators=2, validation_fraction=0.2)
    with pytest.raises(gb.InputError, match=r"every class needs two rows, .*; class rare has one"):
        model.fit(X, np.where(np.arange(len(X)) == 3, "rare", "often"))
    few = np.arange(12) // 2
    with pytest.raises(gb.InputError, match=r"3 of 12 rows would be set aside, and each part must have .* 6 classes"):
        model.fit(X[:12], few)


def test_a_class_weight_that_leaves_one_class_is_refused() -> None:
    first, *others = np.unique(LABELS).tolist()
    with pytest.raises(gb.RecipeError, match=r"class_weight: must leave two classes or more .*; only .* is left"):
        classifier(class_weight=dict.fromkeys(others, 0)).fit(X, LABELS)
    with pytest.raises(gb.InputError, match="y: a classifier needs two classes or more"):
        classifier().fit(X, LABELS, sample_weight=np.asarray(LABELS) == first)


@pytest.mark.parametrize("weight", ["heavy", {0: -1.0, 1: 1.0}, {"a": 1.0}, 3])
def test_a_class_weight_out_of_range_is_named(weight: Any) -> None:
    with pytest.raises(ValueError, match=r"class_weight|classes"):
        classifier(class_weight=weight).fit(X, LABELS)


def test_an_unknown_parameter_is_an_error() -> None:
    with pytest.raises(TypeError, match="n_trees"):
        gb.GradientBoostingRegressor(n_trees=3)  # type: ignore[call-arg]
    with pytest.raises(ValueError, match="n_trees"):
        regressor().set_params(n_trees=3)


def test_an_absent_device_is_an_error_and_not_a_fallback() -> None:
    with pytest.raises(gb.DeviceError, match="CUDA"):
        regressor(device="cuda").fit(X, Y)
    with pytest.raises(gb.DeviceError, match="cuda:1"):
        classifier(device="cuda:1").fit(X, LABELS)


class TestAtPrediction:
    def test_a_model_that_is_not_fitted_says_so(self) -> None:
        with pytest.raises(ValueError, match="not fitted"):
            regressor().predict(X)

    @pytest.mark.parametrize("method", ["predict", "apply", "predict_contributions"])
    def test_another_number_of_features(self, method: str) -> None:
        model = regressor().fit(X, Y)
        with pytest.raises(ValueError, match="2 features, but GradientBoostingRegressor is expecting 3"):
            getattr(model, method)(X[:, :2])

    def test_other_feature_names(self) -> None:
        model = regressor().fit(pd.DataFrame(X, columns=["a", "b", "c"]), Y)
        with pytest.raises(ValueError, match="feature names should match"):
            model.predict(pd.DataFrame(X, columns=["a", "b", "d"]))

    def test_the_same_names_in_another_order(self) -> None:
        frame = pd.DataFrame(X, columns=["a", "b", "c"])
        model = regressor().fit(frame, Y)
        with pytest.raises(ValueError, match="same order"):
            model.predict(frame[["c", "b", "a"]])

    def test_no_names_where_there_were_some_is_a_warning(self) -> None:
        model = regressor().fit(pd.DataFrame(X, columns=["a", "b", "c"]), Y)
        with pytest.warns(UserWarning, match="does not have valid feature names"):
            model.predict(X)

    def test_infinity(self) -> None:
        with pytest.raises(ValueError, match="infinity"):
            regressor().fit(X, Y).predict(with_value(np.inf))

    def test_text(self) -> None:
        with pytest.raises(ValueError, match="must hold numbers"):
            regressor().fit(X, Y).predict(np.full((2, 3), "red"))


class TestDefined:
    """Odd input with a defined answer."""

    def test_one_row_predicts_its_target(self) -> None:
        model = regressor().fit(X[:1], Y[:1])
        np.testing.assert_allclose(model.predict(X), np.full(N, Y[0]), rtol=1e-6)

    def test_constant_features_predict_the_mean(self) -> None:
        model = regressor().fit(np.ones((N, 2)), Y)
        np.testing.assert_allclose(model.predict(np.ones((N, 2))), np.full(N, Y.mean()), rtol=1e-5, atol=1e-6)

    def test_a_constant_target_is_predicted(self) -> None:
        np.testing.assert_allclose(regressor().fit(X, np.full(N, 3.5)).predict(X), 3.5)

    def test_a_column_of_missing_values_changes_nothing(self) -> None:
        more = np.c_[X, np.full(N, np.nan)]
        model, other = regressor().fit(X, Y), regressor().fit(more, Y)
        np.testing.assert_array_equal(other.predict(more), model.predict(X))
        assert other.feature_importances_[3] == 0.0

    def test_nothing_but_missing_values_predicts_the_mean(self) -> None:
        nothing = np.full((N, 2), np.nan)
        np.testing.assert_allclose(regressor().fit(nothing, Y).predict(nothing), Y.mean(), rtol=1e-5, atol=1e-6)

    def test_zero_trees_predict_the_start(self) -> None:
        model = regressor(n_estimators=0).fit(X, Y)
        np.testing.assert_allclose(model.predict(X), Y.mean(), rtol=1e-6, atol=1e-7)
        assert model.n_iter_ == 0
        assert model.feature_importances_.sum() == 0.0
        shares = classifier(n_estimators=0).fit(X, LABELS).predict_proba(X)[:, 1]
        np.testing.assert_allclose(shares, LABELS.mean(), rtol=1e-5)

    def test_huge_category_codes(self) -> None:
        codes = np.where(LABELS == 1, 2**40, 7).astype(float)
        coded = np.c_[X, codes]
        model = classifier(categorical_features=[3], n_estimators=40).fit(coded, LABELS)
        np.testing.assert_array_equal(model.predict(coded), LABELS)

    def test_a_category_never_seen_counts_as_missing(self) -> None:
        frame = pd.DataFrame({"a": X[:, 0], "c": pd.Categorical(np.where(LABELS == 1, "red", "blue"))})
        model = classifier().fit(frame, LABELS)
        new = pd.DataFrame({"a": X[:, 0], "c": pd.Categorical(["green"] * N)})
        none = pd.DataFrame({"a": X[:, 0], "c": pd.Categorical([None] * N, categories=["red", "blue"])})
        np.testing.assert_array_equal(model.predict_proba(new), model.predict_proba(none))

    def test_categories_keep_their_meaning_in_another_order(self) -> None:
        colour = np.where(LABELS == 1, "red", "blue")
        model = classifier().fit(pd.DataFrame({"c": pd.Categorical(colour, categories=["blue", "red"])}), LABELS)
        turned = pd.DataFrame({"c": pd.Categorical(colour, categories=["red", "green", "blue"])})
        np.testing.assert_array_equal(model.predict(turned), LABELS)

    def test_numbers_in_object_columns_are_numbers(self) -> None:
        model = regressor().fit(X.astype(object), Y)
        np.testing.assert_array_equal(model.predict(X), regressor().fit(X, Y).predict(X))


@pytest.mark.parametrize("params", [{}, {"loss": "absolute_error"}, {"step": "gradient", "loss": "huber"}])
def test_weights_too_light_for_any_split_are_pointed_at(params: dict[str, Any]) -> None:
    share = np.full(N, 1.0 / N)
    with pytest.warns(UserWarning, match=r"^sample_weight: the weights sum to 1, .* two leaves need 2 \(min_child_wei"):
        model = regressor(**params).fit(X, Y, sample_weight=share)
    assert np.ptp(model.predict(X)) == 0.0
    for better in ({"min_child_weight": 0.0}, {"n_estimators": 0}):
        regressor(**{**params, **better}).fit(X, Y, sample_weight=share)  # and warnings are errors here
    assert np.ptp(regressor(**params).fit(X, Y, sample_weight=N * share).predict(X)) > 0.0
    with pytest.warns(UserWarning, match=r"have a curvature of at most 0\.25, and two leaves need 2"):
        classifier().fit(X, LABELS, sample_weight=share)


def helper(a: float) -> float:
    return np.ones(3).median() + a


def square(y: float, f: float) -> float:
    return (y - f) * (y - f)


@pytest.mark.parametrize(
    ("role", "function", "words"),
    [
        ("gradient", lambda y, f: nowhere(y), "NameError: name 'nowhere' is not .*, line .*Use arith"),  # noqa: F821
        ("gradient", lambda y, f: helper(f) - y, r"Unknown attribute 'median'.* line \d+: return .*median\(\)"),
        ("hessian", lambda y, f: np.ones(3).median(), "Unknown attribute 'median'"),
        ("hessian", lambda y, f: (y, f), "must return a number for each row; .* returns UniTuple"),
        ("value", lambda y, f: None, "must return a number for each row; .* returns none"),
    ],
)
def test_a_loss_of_ones_own_that_does_not_compile_says_which_part(role: str, function: Any, words: str) -> None:
    parts = {"value": square, "gradient": lambda y, f: 2.0 * (f - y), "hessian": lambda y, f: 2.0}
    loss = gb.losses.custom(**{**parts, role: function}, name="mine")
    with pytest.raises(gb.RecipeError, match=rf"^{role}: .*{words}"):
        gb.GradientBoostingRegressor(loss=loss, n_estimators=2, device="cpu").fit(X, Y)


@pytest.mark.parametrize("metric", ["auc", "average_precision", "auc_ovr", "auc_ovr_weighted"])
@pytest.mark.parametrize("weighted", [False, True])
def test_an_eval_set_that_lacks_classes_is_refused_before_the_first_tree(metric: str, weighted: bool) -> None:
    def never(record: gb.callbacks.Round) -> None:
        raise AssertionError("a round was fitted")

    labels = np.arange(N) % (2 if metric in ("auc", "average_precision") else 3)
    lacking = np.zeros(N, int)
    # weights make no difference to average_precision, and rows without weight have no class for the others
    y, weight = (labels, labels == 0) if weighted and metric != "average_precision" else (lacking, np.ones(N))
    model = classifier(eval_metric=metric, callbacks=[never])
    with pytest.raises(gb.InputError, match=rf"^eval_set: late: eval_metric: {metric[:7]}.* needs rows of"):
        model.fit(X, labels, eval_set={"late": (X, y, weight)})
    several = np.c_[labels == 0, labels == 1]
    if metric == "auc":
        with pytest.raises(gb.InputError, match=r"^eval_set: late: eval_metric: auc needs rows of both classes"):
            model.fit(X, several, eval_set={"late": (X, several & [True, False])})
