"""Several targets a row, y of shape (n, k): a loss and trees of its own for each column; and several labels."""

from __future__ import annotations

import json
import pickle
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
import scipy.sparse as sp
from sklearn.base import clone
from sklearn.metrics import accuracy_score, f1_score, make_scorer, mean_squared_error, r2_score

import gpuboost as gb
from gpuboost import losses
from gpuboost.errors import DeviceError, InputError, RecipeError

Array = np.ndarray
SMALL: dict[str, Any] = {"n_estimators": 12, "max_depth": 3, "learning_rate": 0.3, "random_state": 0}


def rows(n: int = 300, seed: int = 0) -> tuple[Array, Array]:
    """Three targets; the first two are close to each other."""
    rng = np.random.default_rng(seed)
    x = rng.normal(size=(n, 4))
    signal = np.sin(2.0 * x[:, 0]) + x[:, 1]
    return x, np.column_stack([signal, 0.5 * signal + x[:, 2], x[:, 3]]) + 0.2 * rng.normal(size=(n, 3))


X, Y = rows()
LABELS = (Y > 0.3).astype(int)


def regressor(**more: Any) -> gb.GradientBoostingRegressor:
    return gb.GradientBoostingRegressor(**SMALL | more)


def classifier(**more: Any) -> gb.GradientBoostingClassifier:
    return gb.GradientBoostingClassifier(**SMALL | more)


@pytest.fixture(scope="module")
def model() -> gb.GradientBoostingRegressor:
    return regressor().fit(X, Y)


@pytest.fixture(scope="module")
def labelling() -> gb.GradientBoostingClassifier:
    return classifier().fit(X, LABELS)


@pytest.mark.slow
@pytest.mark.parametrize(
    "more",
    [
        {},
        {"loss": "absolute_error"},
        {"loss": losses.Huber(0.5), "growth": "leafwise", "max_leaves": 6},
        {"loss": losses.Quantile(0.8), "growth": "oblivious"},
        {"step": "line_search"},
        {"monotonic_cst": [1, 0, 0, -1]},
        {"interaction_cst": "no_interactions"},
        {"base_learner": [gb.learners.Spline()], "max_depth": 6},
        {"sampling": 0.5},
    ],
    ids=str,
)
def test_each_output_is_a_model_of_its_own(more: dict[str, Any]) -> None:
    predicted = regressor(**more).fit(X, Y).predict(X)
    assert predicted.shape == Y.shape
    for column in range(Y.shape[1]):
        np.testing.assert_array_equal(predicted[:, column], regressor(**more).fit(X, Y[:, column]).predict(X))


def test_losses_with_a_logarithmic_link_and_exposure() -> None:
    counts = np.random.default_rng(1).poisson(np.exp(Y.clip(-2, 2)))
    exposure = np.log(np.random.default_rng(2).uniform(0.5, 2.0, size=Y.shape))
    fitted = regressor(loss="poisson").fit(X, counts, init_score=exposure)
    predicted = fitted.predict(X, init_score=exposure)
    for column in range(3):
        alone = regressor(loss="poisson").fit(X, counts[:, column], init_score=exposure[:, column])
        np.testing.assert_array_equal(predicted[:, column], alone.predict(X, init_score=exposure[:, column]))
    with pytest.raises(InputError, match=r"finite|negative|column 0 of y"):
        regressor(loss="poisson").fit(X, Y)


def test_labels_are_two_classes_each(labelling: gb.GradientBoostingClassifier) -> None:
    probability, scores = labelling.predict_proba(X), labelling.decision_function(X)
    assert labelling.classes_.tolist() == [0, 1, 2]
    for column in range(3):
        alone = classifier().fit(X, LABELS[:, column])
        np.testing.assert_array_equal(probability[:, column], alone.predict_proba(X)[:, 1])
        np.testing.assert_array_equal(scores[:, column], alone.decision_function(X))
        np.testing.assert_array_equal(labelling.predict(X)[:, column], alone.predict(X))
    assert labelling.score(X, LABELS) == accuracy_score(LABELS, labelling.predict(X))
    two = classifier().fit(X, LABELS[:, :2] == 1)
    assert two.decision_function(X).shape == two.predict_proba(X).shape == two.predict(X).shape == (300, 2)
    assert two.predictor().predict(X).tolist() == two.predict(X).tolist()
    np.testing.assert_array_equal(two.predictor().decision_function(X), two.decision_function(X))


def test_scores_and_metrics_are_means_over_the_columns(model: gb.GradientBoostingRegressor) -> None:
    predicted, weight = model.predict(X), np.linspace(0.5, 2.0, len(X))
    assert model.score(X, Y, weight) == pytest.approx(r2_score(Y, predicted, sample_weight=weight), rel=1e-12)
    asked = ["rmse", "r2", "loss", mean_squared_error, largest]
    watched = regressor(eval_metric=asked).fit(X, Y, eval_set=(X, Y, weight))
    found = {name: values[-1] for name, values in watched.evals_result_["validation_0"].items()}
    each = np.average((predicted - Y) ** 2, axis=0, weights=weight)
    assert found["rmse"] == pytest.approx(np.sqrt(each).mean(), rel=1e-12)
    assert found["r2"] == pytest.approx(r2_score(Y, predicted, sample_weight=weight), rel=1e-12)
    assert found["loss"] == pytest.approx(0.5 * each.sum(), rel=1e-12)
    assert found["mean_squared_error"] == pytest.approx(each.mean(), rel=1e-12)
    assert found["largest"] == pytest.approx(np.abs(predicted - Y).max(), rel=1e-12)


def largest(y: Array, prediction: Array) -> float:
    """The largest difference of an entry."""
    return float(np.abs(y - prediction).max())


def test_metrics_of_labels(labelling: gb.GradientBoostingClassifier) -> None:
    macro = make_scorer(f1_score, average="macro")
    watched = classifier(eval_metric=["auc", "accuracy", accuracy_score, macro]).fit(X, LABELS, eval_set=(X, LABELS))
    found = {name: values[-1] for name, values in watched.evals_result_["validation_0"].items()}
    truth = labelling.predict(X) == LABELS
    assert found["accuracy"] == pytest.approx(truth.mean(), rel=1e-12)
    assert found["accuracy_score"] == pytest.approx(truth.all(axis=1).mean(), rel=1e-12)
    assert found["f1_score(average=macro)"] == pytest.approx(
        f1_score(LABELS, labelling.predict(X), average="macro"), rel=1e-12
    )
    term = gb.metrics.mean(lambda y, f: f[0] - y, name="term", n_outputs=3)
    with pytest.raises(InputError, match="several scores and one target"):
        regressor(eval_metric=term).fit(X, Y, eval_set=(X, Y))


def test_early_stopping_cv_and_rows_set_aside() -> None:
    x, y = rows(200, 5)
    stopped = regressor(n_estimators=300, early_stopping_rounds=5).fit(X, Y, eval_set=(x, y))
    curve = stopped.evals_result_["validation_0"]["rmse"]
    assert stopped.n_iter_ == int(np.argmin(curve)) + 1 < 300
    assert gb.cv(regressor(), X, Y, folds=3, random_state=0).predictions.shape == Y.shape
    assert gb.cv(classifier(), X, LABELS, folds=3, random_state=0).predictions.shape == Y.shape
    assert classifier(validation_fraction=0.2, early_stopping_rounds=3).fit(X, LABELS).n_iter_ > 0
    found = gb.permutation_importance(stopped, x, y, n_repeats=2, random_state=0)
    assert (found.importances_mean > 0.0).all()


@pytest.mark.slow
def test_rounds_that_held_out_rows_choose() -> None:
    assert regressor(n_estimators="auto", learning_rate="auto").fit(X, Y).n_iter_ > 0


def test_frames_datasets_files_pickles_and_weights(tmp_path: Path) -> None:
    frame = pd.DataFrame(X, columns=list("abcd"))
    targets = pd.DataFrame(Y, columns=["u", "v", "w"])
    expected = regressor().fit(X, Y).predict(X)
    np.testing.assert_array_equal(regressor().fit(frame, targets).predict(frame), expected)
    data = gb.Dataset(X, Y, weight=np.ones(len(X)))
    np.testing.assert_array_equal(regressor().fit(data).predict(X), expected)
    data.save(tmp_path / "rows.gbd")
    np.testing.assert_array_equal(regressor().fit(gb.Dataset.load(tmp_path / "rows.gbd")).predict(X), expected)
    assert data.take(np.arange(5)).y.shape == (5, 3)
    twice = np.concatenate([np.arange(300), np.arange(100)])
    weight = np.where(np.arange(300) < 100, 2, 1)
    repeated = regressor().fit(X[twice], Y[twice], eval_set=(X, Y)).predict(X)
    np.testing.assert_allclose(regressor().fit(X, Y, weight).predict(X), repeated, rtol=1e-6)


@pytest.mark.parametrize("make", ["model", "labelling"])
def test_model_files_pickles_continuations_and_refits(
    make: str, request: pytest.FixtureRequest, tmp_path: Path
) -> None:
    fitted, y = request.getfixturevalue(make), LABELS if make == "labelling" else Y
    path = tmp_path / "model.json"
    fitted.save_model(path)
    for other in (gb.load_model(path), pickle.loads(pickle.dumps(fitted)), clone(fitted).fit(X, y)):
        assert other.loss_ == fitted.loss_
        np.testing.assert_array_equal(other.predict(X), fitted.predict(X))
    np.testing.assert_array_equal(gb.load_predictor(path).predict(X), fitted.predict(X))
    half = clone(fitted).set_params(n_estimators=6).fit(X, y)
    whole = clone(fitted).set_params(n_estimators=6).fit(X, y, init_model=half)
    np.testing.assert_array_equal(whole.predict(X), fitted.predict(X))
    np.testing.assert_allclose(fitted.refit(X, y, decay=0.0).predict(X), fitted.predict(X))
    assert fitted.predict_contributions(X[:5]).shape == (5, 3, 5)
    text = json.loads(path.read_text())
    text["loss"]["outputs"] = 4
    path.write_text(json.dumps(text))
    with pytest.raises(InputError, match="bias: per_output has 4 outputs; found 3"):
        gb.load_model(path)


def test_uncertainty_is_of_each_column() -> None:
    noise = gb.Langevin(inverse_temperature=100.0, shrinkage=1.0)
    fitted = regressor(n_estimators=40, step="gradient", langevin=noise).fit(X, Y)
    found = fitted.predict_uncertainty(X[:7])
    assert found.mean.shape == found.total.shape == found.data.shape == found.knowledge.shape == (7, 3)
    np.testing.assert_allclose(found.total, found.data + found.knowledge)
    assert fitted.predict_interval(X[:7]).shape == (7, 3, 2)
    of_labels = classifier(n_estimators=40, step="gradient", langevin=noise).fit(X, LABELS).predict_uncertainty(X[:7])
    assert of_labels.mean.shape == (7, 3)
    assert ((of_labels.mean > 0.0) & (of_labels.mean < 1.0)).all()


@pytest.mark.parametrize(
    ("fit", "words"),
    [
        (lambda: regressor(loss="gaussian_nll").fit(X, Y), "loss: y has 3 columns"),
        (lambda: regressor(loss=losses.Quantile([0.1, 0.9])).fit(X, Y), "loss: y has 3 columns"),
        (lambda: classifier(loss="softmax").fit(X, LABELS), "loss: 'softmax' is for one label of several"),
        (lambda: classifier(class_weight="balanced").fit(X, LABELS), "class_weight: it weighs the rows of a class"),
        (lambda: classifier().fit(X, LABELS + 1), "y: of several columns each says with 0 or 1"),
        (lambda: regressor(start="mean").fit(X, Y), "start: 'mean' is for losses of one target"),
        (lambda: regressor().fit(X, Y, eval_set=(X, Y[:, :2])), "validation_0.*y: the model has 3 targets"),
        (lambda: regressor().fit(X, Y, init_score=np.ones((300, 2))), "init_score: the loss has 3 scores"),
        (lambda: regressor().fit(X, Y, init_model=regressor().fit(X, Y[:, :2])), "init_model: was trained for"),
        (lambda: gb.GradientBoostingRanker().fit(X, LABELS, group=[300]), "y: a ranking has one label for each row"),
        (lambda: gb.conformal(regressor().fit(X, Y), X, Y), "model: conformal sets are of one target"),
        (
            lambda: regressor(loss=losses.custom(lambda y, f: 0.5 * (f - y) ** 2, lambda y, f: f - y, None)).fit(X, Y),
            "loss: y has 3 columns",
        ),
    ],
)
def test_what_does_not_fit_is_refused(fit: Any, words: str) -> None:
    with pytest.raises((InputError, RecipeError), match=words):
        fit()


def test_exports_hold_several_targets(
    model: gb.GradientBoostingRegressor, labelling: gb.GradientBoostingClassifier, tmp_path: Path
) -> None:
    runtime, xgboost = pytest.importorskip("onnxruntime"), pytest.importorskip("xgboost")
    x = X.astype(np.float32)
    shared = regressor(**ONE_TREE).fit(X, Y)
    every = (model, model.predict(x)), (shared, shared.predict(x)), (labelling, labelling.predict_proba(x))
    for fitted, expected in every:
        session = runtime.InferenceSession(gb.export.to_onnx(fitted).SerializeToString())
        *label, found = session.run(None, {"X": x})
        np.testing.assert_allclose(found, expected, rtol=1e-4, atol=1e-5)
        if label:
            np.testing.assert_array_equal(label[0], labelling.predict(x))
        gb.export.to_xgboost(fitted, tmp_path / "xgboost.json")
        booster = xgboost.Booster(model_file=str(tmp_path / "xgboost.json"))
        np.testing.assert_allclose(booster.predict(xgboost.DMatrix(x)), expected, rtol=1e-4, atol=1e-5)
        assert "scores: 3 number(s)" in gb.export.to_c(fitted)


def test_workers_and_shards_and_a_plan_of_memory() -> None:
    expected = regressor().fit(X, Y).predict(X)
    np.testing.assert_array_equal(regressor(execution=gb.DataParallel(2)).fit(X, Y).predict(X), expected)
    workers = gb.SimulatedWorkers(3, build_time=1.0, server_time=0.1)
    assert regressor(execution=workers).fit(X, Y).predict(X).shape == Y.shape
    assert regressor().check(X, Y).kind == regressor().check(X, Y[:, 0]).kind


def test_statistics_of_categories_are_of_each_target() -> None:
    codes = np.random.default_rng(3).integers(0, 40, size=300)
    frame = pd.DataFrame({"c": pd.Categorical(codes.astype(str)), "x": X[:, 0]})
    for fitted, y in ((regressor(), Y), (classifier(), LABELS), (classifier(), LABELS[:, :2])):
        fitted.set_params(categorical_encoding="ordered").fit(frame, y)
        again = gb.loads(gb.dumps(fitted))
        assert len(again.columns_.statistics.prior) == y.shape[1]
        np.testing.assert_array_equal(again.predict(frame), fitted.predict(frame))


ONE_TREE: dict[str, Any] = {"multi_output": "one_tree"}


def test_one_tree_has_one_shape_and_a_value_for_each_output(tmp_path: Path) -> None:
    fitted = regressor(**ONE_TREE, growth="leafwise", max_leaves=7).fit(X, Y)
    assert fitted.score(X, Y) > 0.8
    leaves = fitted.apply(X).reshape(len(X), -1, 3)
    np.testing.assert_array_equal(leaves[:, :, 0], leaves[:, :, 2])
    for tree in fitted.ensemble_.trees[::3]:
        values = [other.value for other in fitted.ensemble_.trees if other.nodes is tree.nodes]
        assert len(values) == 3
        assert not np.array_equal(values[0], values[1])
    fitted.save_model(tmp_path / "model.json")
    loaded = gb.load_model(tmp_path / "model.json")
    content = gb.to_dict(loaded)
    assert (content["version"], set(content["trees"][2])) == (4, {"output", "version", "factor", "value"})
    assert gb.dumps(loaded) == (tmp_path / "model.json").read_text()
    assert all(tree.nodes is loaded.ensemble_.trees[i - i % 3].nodes for i, tree in enumerate(loaded.ensemble_.trees))
    np.testing.assert_array_equal(loaded.predict(X), fitted.predict(X))
    assert (loaded.multi_output, loaded.sketch) == ("one_tree", None)
    np.testing.assert_allclose(fitted.predict_contributions(X[:9]).sum(axis=2), fitted.predict(X[:9]), rtol=1e-9)
    assert "multi_output" not in gb.to_dict(regressor().fit(X, Y))["parameters"]


@pytest.mark.parametrize("sketch", [gb.TopOutputs(2), gb.RandomOutputs(2), gb.RandomProjection(2)], ids=repr)
def test_one_tree_is_searched_by_a_sketch(sketch: Any, tmp_path: Path) -> None:
    fitted = regressor(**ONE_TREE, sketch=sketch, n_estimators=25).fit(X, Y)
    assert fitted.score(X, Y) > 0.8
    fitted.save_model(tmp_path / "model.json")
    assert gb.load_model(tmp_path / "model.json").sketch == sketch
    assert gb.dumps(regressor(**ONE_TREE, sketch=sketch, n_estimators=25, n_jobs=1).fit(X, Y)) == gb.dumps(fitted)


def test_one_tree_for_classes_labels_and_quantiles() -> None:
    classes = np.digitize(Y[:, 0], [-0.5, 0.8])
    assert classifier(**ONE_TREE).fit(X, classes).score(X, classes) > 0.85
    assert classifier(**ONE_TREE).fit(X, LABELS).score(X, LABELS) > 0.6
    assert regressor(**ONE_TREE, loss=losses.Quantile([0.2, 0.8])).fit(X, Y[:, 0]).predict(X).shape == (300, 2)
    expected = regressor().fit(X, Y[:, 0]).predict(X)
    np.testing.assert_array_equal(regressor(**ONE_TREE).fit(X, Y[:, 0]).predict(X), expected)


def test_one_tree_with_categories_missing_values_sparse_rows_and_weights() -> None:
    codes = np.random.default_rng(3).integers(0, 6, size=300)
    frame = pd.DataFrame({"c": pd.Categorical(codes.astype(str)), "x": np.where(codes == 2, np.nan, X[:, 0])})
    both = np.column_stack([codes == 1, codes == 4]) + 0.1 * Y[:, :2]
    fitted = regressor(**ONE_TREE, n_estimators=30).fit(frame, both, np.linspace(1.0, 2.0, 300))
    assert fitted.score(frame, both) > 0.9
    frame.loc[0, "c"] = None
    assert np.isfinite(fitted.predict(frame)).all()
    zeros = np.where(np.abs(X) < 0.7, 0.0, X)
    dense = regressor(**ONE_TREE).fit(zeros, Y)
    assert gb.dumps(regressor(**ONE_TREE).fit(sp.csr_array(zeros), Y)) == gb.dumps(dense)


def test_one_tree_with_sampling_noise_early_stopping_and_workers() -> None:
    noise = gb.Langevin(inverse_temperature=1e4, shrinkage=0.01)
    more: list[dict[str, Any]] = [
        {"sampling": gb.MVS(0.5)},
        {"langevin": noise, "step": "gradient"},
        {"validation_fraction": 0.2, "early_stopping_rounds": 3, "n_estimators": 50},
        {"execution": gb.SimulatedWorkers(3, build_time=1.0, server_time=0.1)},
        {"execution": gb.Asynchronous(2)},
        {"learners": gb.RandomByNode(2)},
        {"execution": gb.DataParallel(2), "sketch": gb.TopOutputs(2)},
    ]
    for asked in more:
        assert regressor(**ONE_TREE | {"n_estimators": 30} | asked).fit(X, Y).score(X, Y) > 0.5, asked


@pytest.mark.parametrize(
    ("more", "words"),
    [
        ({"growth": "oblivious"}, "multi_output: growth='oblivious' is searched for one output"),
        ({"monotonic_cst": [1, 0, 0, 0]}, "multi_output: the search for one tree .* look at monotonic_cst"),
        ({"interaction_cst": "pairwise"}, "multi_output: the search for one tree .* look at interaction_cst"),
        ({"reg_alpha": 1.0}, "multi_output: the search for one tree .* look at reg_alpha"),
        ({"path_smooth": 2.0}, "multi_output: the search for one tree .* look at path_smooth"),
        ({"forced_splits": {"feature": 0, "threshold": 0.0}}, "multi_output: the search .* look at forced_splits"),
        ({"extra_trees": True}, "multi_output: the search for one tree .* look at extra_trees"),
        ({"base_learner": gb.learners.Spline(), "max_depth": 6}, "multi_output: base learners other than trees"),
        ({"learners": gb.RandomLearners(9), "max_depth": 1}, "multi_output: RandomLearners"),
        ({"langevin": gb.Langevin(random_from=3), "step": "gradient"}, "multi_output: shapes drawn at random"),
        ({"multi_output": "together"}, "multi_output: must be one of 'one_tree_per_output', 'one_tree'"),
        ({"multi_output": "one_tree_per_output", "sketch": gb.TopOutputs(2)}, "sketch: TopOutputs.* of one tree"),
        ({"sketch": 5}, "sketch: must be None, or a policy such as gb.RandomProjection"),
    ],
)
def test_what_one_tree_does_not_do_is_refused(more: dict[str, Any], words: str) -> None:
    with pytest.raises((RecipeError, DeviceError), match=words):
        regressor(**ONE_TREE | more).fit(X, Y)


@pytest.mark.parametrize("sketch", [gb.TopOutputs, gb.RandomOutputs, gb.RandomProjection])
@pytest.mark.parametrize("k", [0, 1.5, "3", True])
def test_sketches_are_of_one_output_or_more(sketch: Any, k: Any) -> None:
    with pytest.raises(RecipeError, match="sketch: k must be a whole number, 1 or more"):
        sketch(k)


@pytest.mark.parametrize("wide", [False, True], ids=["one target", "two targets"])
def test_targets_of_another_number_of_columns_are_refused(wide: bool) -> None:
    y = Y[:, :2] if wide else Y[:, 0]
    other = Y[:, 0] if wide else Y[:, :2]
    model = regressor(n_estimators=2).fit(X, y)
    for call in (
        lambda: model.refit(X, other),
        lambda: gb.permutation_importance(model, X, other),
        lambda: model.score(X, other),
        lambda: regressor(n_estimators=2).fit(X, y, eval_set=[(X, other)]),
        lambda: regressor(n_estimators=2).fit(X, other, init_model=model),
    ):
        with pytest.raises(InputError):
            call()
    assert np.isfinite(gb.permutation_importance(model, X, y, n_repeats=1).importances_mean).all()


def test_a_ranking_has_one_target() -> None:
    relevance, group = (Y[:60, 0] > 0).astype(int), np.repeat(np.arange(6), 10)
    ranker = gb.GradientBoostingRanker(n_estimators=2).fit(X[:60], relevance, group=group)
    with pytest.raises(InputError, match=r"y: the model has 1 target\(s\) for each row; got shape \(60, 2\)"):
        ranker.score(X[:60], np.column_stack([relevance, relevance]), group=group)


def test_weights_of_a_sum_are_a_vector() -> None:
    model = regressor(n_estimators=1).fit(X, Y)
    with pytest.raises(InputError, match="weights: one finite number for each of 2 models"):
        gb.sum_models([model, model], weights=np.array(3.0))


def test_the_ridge_of_one_tree_is_one_unless_it_has_a_sketch() -> None:
    fitted = regressor(**ONE_TREE).fit(X, Y)
    assert gb.to_dict(fitted)["trees"] == gb.to_dict(regressor(**ONE_TREE, reg_lambda=1.0).fit(X, Y))["trees"]
    assert gb.to_dict(fitted)["trees"] != gb.to_dict(regressor(**ONE_TREE, reg_lambda=3.0).fit(X, Y))["trees"]
    by_sketch = {**ONE_TREE, "sketch": gb.TopOutputs(1)}
    found = (gb.to_dict(regressor(**by_sketch, **more).fit(X, Y))["trees"] for more in ({}, {"reg_lambda": 3.0}))
    assert next(found) == next(found)
