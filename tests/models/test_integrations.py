"""Optuna, MLflow, Weights & Biases and skl2onnx, each with the real package; skipped where it is not installed."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from sklearn.calibration import CalibratedClassifierCV
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

import gpuboost as gb

SETTINGS: dict[str, Any] = {"n_estimators": 8, "max_depth": 3, "n_jobs": 1}


def test_optuna_prunes_trials_that_fall_behind(regression_data: Any) -> None:
    optuna = pytest.importorskip("optuna")
    optuna.logging.set_verbosity(optuna.logging.WARNING)
    x, y = regression_data

    def objective(trial: Any) -> float:
        rate = (0.3, 0.001)[trial.number]
        model = gb.GradientBoostingRegressor(
            **SETTINGS, learning_rate=rate, callbacks=[gb.integrations.OptunaPruning(trial)]
        ).fit(x[:200], y[:200], eval_set=(x[200:], y[200:]))
        return model.evals_result_["validation_0"]["rmse"][-1]

    study = optuna.create_study(pruner=optuna.pruners.MedianPruner(n_startup_trials=1))
    study.optimize(objective, n_trials=2)
    done, pruned = study.trials
    assert done.state == optuna.trial.TrialState.COMPLETE
    assert sorted(done.intermediate_values) == list(range(8))
    assert pruned.state == optuna.trial.TrialState.PRUNED
    assert len(pruned.intermediate_values) < 8


def test_optuna_studies_of_the_wrong_direction_are_refused(regression_data: Any) -> None:
    optuna = pytest.importorskip("optuna")
    several = optuna.create_study(directions=["minimize", "minimize"]).ask()
    with pytest.raises(gb.RecipeError, match=r"trial: a study of one value is needed, .* this one has 2"):
        gb.GradientBoostingRegressor(n_estimators=1, callbacks=[gb.integrations.OptunaPruning(several)]).fit(
            *regression_data, eval_set=regression_data
        )
    trial = optuna.create_study(direction="maximize").ask()
    model = gb.GradientBoostingRegressor(**SETTINGS, callbacks=[gb.integrations.OptunaPruning(trial)])
    with pytest.raises(gb.RecipeError, match="trial: the study is to maximize its value, and rmse is one to minimize"):
        model.fit(*regression_data, eval_set=regression_data)
    with pytest.raises(gb.RecipeError, match="the fit has no eval set"):
        model.fit(*regression_data)
    with pytest.raises(gb.RecipeError, match="metric: the fit has no 'auc'"):
        model.set_params(callbacks=[gb.integrations.OptunaPruning(trial, "auc")]).fit(
            *regression_data, eval_set=regression_data
        )
    with pytest.raises(gb.RecipeError, match="trial: must be a trial of Optuna; got 3"):
        gb.integrations.OptunaPruning(3)


@pytest.mark.slow
def test_wandb_gets_the_curves(regression_data: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    pytest.importorskip("wandb")
    logged: list[dict[str, Any]] = []

    class Run:
        """The calls of a run that the callback makes, kept."""

        def __init__(self) -> None:
            self.summary: dict[str, Any] = {}

        def define_metric(self, name: str, summary: str) -> None:
            self.summary[name] = summary

        def log(self, values: dict[str, Any]) -> None:
            logged.append(values)

    run = Run()
    model = gb.GradientBoostingRegressor(**SETTINGS, callbacks=[gb.integrations.WandbLogging(run)])
    model.fit(*regression_data, eval_set=regression_data)
    assert [line["validation_0-rmse"] for line in logged] == model.evals_result_["validation_0"]["rmse"]
    assert run.summary == {"validation_0-rmse": "min", "rounds": 8}
    with pytest.raises(gb.RecipeError, match=r"run: there is no active run .* call wandb.init\(\) first"):
        model.set_params(callbacks=[gb.integrations.WandbLogging()]).fit(*regression_data)


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore")
def test_a_run_of_wandb_itself(regression_data: Any, tmp_path: Path) -> None:
    wandb = pytest.importorskip("wandb")
    with wandb.init(mode="offline", dir=tmp_path) as run:
        model = gb.GradientBoostingRegressor(**SETTINGS, callbacks=[gb.integrations.WandbLogging()])
        model.fit(*regression_data, eval_set=regression_data)
        assert run.summary["rounds"] == 8
        assert run.summary["round"] == 7


@pytest.fixture
def tracked(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Any:
    """MLflow, with a store in a temporary folder."""
    mlflow = pytest.importorskip("mlflow")
    monkeypatch.setenv("MLFLOW_ALLOW_FILE_STORE", "true")
    monkeypatch.chdir(tmp_path)
    before = mlflow.get_tracking_uri()
    mlflow.set_tracking_uri(tmp_path.as_uri())
    mlflow.set_experiment("gpuboost")
    yield mlflow
    mlflow.set_tracking_uri(before)


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore")
def test_mlflow_keeps_models_as_json(classifier_data: Any, tracked: Any, tmp_path: Path) -> None:
    x, y = classifier_data
    flavour = gb.integrations.mlflow
    model = gb.GradientBoostingClassifier(**SETTINGS).fit(x, y)
    flavour.save_model(model, str(tmp_path / "saved"))
    assert json.loads((tmp_path / "saved" / "model.json").read_text())["format"] == "gpuboost"
    assert not list((tmp_path / "saved").glob("*.pkl"))
    again = flavour.load_model(str(tmp_path / "saved"))
    np.testing.assert_array_equal(again.predict_proba(x), model.predict_proba(x))
    wrapped = tracked.pyfunc.load_model(str(tmp_path / "saved"))
    np.testing.assert_array_equal(wrapped.predict(x), model.predict(x))
    chosen = {"predict_method": "predict_proba"}
    np.testing.assert_array_equal(wrapped._model_impl.predict(x, params=chosen), model.predict_proba(x))


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore")
def test_mlflow_logs_fits_by_itself(classifier_data: Any, tracked: Any) -> None:
    x, y = classifier_data
    flavour = gb.integrations.mlflow
    flavour.autolog(silent=True)
    try:
        model = gb.GradientBoostingClassifier(**SETTINGS, early_stopping_rounds=8).fit(x, y, eval_set={"held": (x, y)})
    finally:
        flavour.autolog(disable=True)
    run = tracked.search_runs(output_format="list")[0]
    assert run.data.params["n_estimators"] == "8"
    assert run.data.params["loss"] == "logistic"
    assert len(run.data.params) == len(model.get_params(deep=False))
    curve = tracked.MlflowClient().get_metric_history(run.info.run_id, "held-mlogloss")
    by_round = {point.step: point.value for point in curve}  # logging the model repeats its last metrics
    assert [by_round[round_] for round_ in range(8)] == model.evals_result_["held"]["mlogloss"]
    assert run.data.metrics["best_iteration"] == model.best_iteration_
    shares = tracked.artifacts.load_dict(run.info.artifact_uri + "/feature_importance.json")
    assert list(shares.values()) == model.feature_importances_.tolist()
    logged = tracked.search_logged_models(output_format="list")[0]
    np.testing.assert_array_equal(flavour.load_model(logged.model_uri).predict(x), model.predict(x))


@pytest.fixture
def classifier_data(multiclass_data: Any) -> Any:
    x, y = multiclass_data
    return np.nan_to_num(x), y


@pytest.mark.filterwarnings("ignore::DeprecationWarning")
def test_skl2onnx_converts_pipelines(classifier_data: Any) -> None:
    skl2onnx = pytest.importorskip("skl2onnx")
    runtime = pytest.importorskip("onnxruntime")
    gb.integrations.register_skl2onnx()
    x, y = classifier_data
    x = x.astype(np.float32)
    target = {gb.GradientBoostingClassifier: y, gb.GradientBoostingRegressor: x[:, 0] + x[:, 1]}
    for kind, labels in target.items():
        pipeline = make_pipeline(StandardScaler(), kind(**SETTINGS)).fit(x, labels)
        options = {kind: {"zipmap": False}} if kind is gb.GradientBoostingClassifier else None
        proto = skl2onnx.to_onnx(pipeline, x[:1], options=options, target_opset={"": 15, "ai.onnx.ml": 3})
        session = runtime.InferenceSession(proto.SerializeToString(), providers=["CPUExecutionProvider"])
        answers = session.run(None, {session.get_inputs()[0].name: x})
        agree = np.ravel(answers[0]) == pipeline.predict(x)
        if kind is gb.GradientBoostingClassifier:
            assert agree.mean() > 0.99
            np.testing.assert_allclose(answers[1], pipeline.predict_proba(x), atol=1e-2)
        else:
            assert np.isclose(np.ravel(answers[0]), pipeline.predict(x), atol=1e-4).mean() > 0.98


def test_skl2onnx_converts_classes_that_are_whole_floats(rng: np.random.Generator) -> None:
    skl2onnx = pytest.importorskip("skl2onnx")
    runtime = pytest.importorskip("onnxruntime")
    gb.integrations.register_skl2onnx()
    x = rng.normal(size=(60, 3)).astype(np.float32)
    model = gb.GradientBoostingClassifier(**SETTINGS).fit(x, np.where(x[:, 0] > 0, 1.0, -1.0))
    options = {type(model): {"zipmap": False}}
    proto = skl2onnx.to_onnx(model, x[:1], options=options, target_opset={"": 15, "ai.onnx.ml": 3})
    session = runtime.InferenceSession(proto.SerializeToString(), providers=["CPUExecutionProvider"])
    np.testing.assert_array_equal(session.run(None, {"X": x})[0], model.predict(x))


@pytest.mark.parametrize("labels", [np.array(["a", "b", "c"]), np.array([10, 20, 30])])
def test_skl2onnx_numbers_classes_where_it_is_asked_to(rng: np.random.Generator, labels: Any) -> None:
    skl2onnx = pytest.importorskip("skl2onnx")
    runtime = pytest.importorskip("onnxruntime")
    gb.integrations.register_skl2onnx()
    x, places = rng.normal(size=(60, 2)).astype(np.float32), np.arange(60) % 3
    model = gb.GradientBoostingClassifier(**SETTINGS).fit(x, labels[places])
    options = {type(model): {"zipmap": False, "nocl": True}}
    proto = skl2onnx.to_onnx(model, x[:1], options=options, target_opset={"": 15, "ai.onnx.ml": 3})
    session = runtime.InferenceSession(proto.SerializeToString(), providers=["CPUExecutionProvider"])
    found = session.run(None, {"X": x})[0]
    assert (labels[found] == model.predict(x)).mean() > 0.98


def test_skl2onnx_converts_models_of_float64(rng: np.random.Generator) -> None:
    skl2onnx = pytest.importorskip("skl2onnx")
    runtime = pytest.importorskip("onnxruntime")
    gb.integrations.register_skl2onnx()
    x = rng.normal(size=(60, 3)).astype(np.float32).astype(np.float64)
    regressor = gb.GradientBoostingRegressor(**SETTINGS).fit(x, x[:, 0])
    classifier = gb.GradientBoostingClassifier(**SETTINGS).fit(x, x[:, 0] > 0)
    for model, options in ((regressor, None), (classifier, {type(classifier): {"zipmap": False}})):
        proto = skl2onnx.to_onnx(model, x[:1], options=options, target_opset={"": 15, "ai.onnx.ml": 3})
        session = runtime.InferenceSession(proto.SerializeToString(), providers=["CPUExecutionProvider"])
        found = session.run(None, {"X": x})[-1]
        assert found.dtype == np.float64
        expected = regressor.predict(x)[:, None] if model is regressor else classifier.predict_proba(x)
        np.testing.assert_allclose(found, expected, atol=1e-5)


def test_skl2onnx_declares_outputs_of_several_targets(rng: np.random.Generator) -> None:
    skl2onnx = pytest.importorskip("skl2onnx")
    runtime = pytest.importorskip("onnxruntime")
    gb.integrations.register_skl2onnx()
    x = rng.normal(size=(60, 3)).astype(np.float32)
    regressor, classifier = gb.GradientBoostingRegressor(**SETTINGS), gb.GradientBoostingClassifier(**SETTINGS)
    for model, y in ((regressor, x[:, :2]), (regressor, x[:, 0]), (classifier, (x > 0).astype(int))):
        options = {type(model): {"zipmap": False}} if model is classifier else None
        proto = skl2onnx.to_onnx(model.fit(x, y), x[:1], options=options, target_opset={"": 15, "ai.onnx.ml": 3})
        session = runtime.InferenceSession(proto.SerializeToString(), providers=["CPUExecutionProvider"])
        for output, answer in zip(session.get_outputs(), session.run(None, {"X": x}), strict=True):
            assert output.shape[1:] == list(answer.shape[1:]) == list(y.shape[1:] or [1])


@pytest.mark.parametrize(("loss", "n_classes"), [("exponential", 2), ("softmax", 2), ("softmax", 3)])
def test_skl2onnx_converts_calibrated_classifiers(rng: np.random.Generator, loss: str, n_classes: int) -> None:
    skl2onnx = pytest.importorskip("skl2onnx")
    runtime = pytest.importorskip("onnxruntime")
    gb.integrations.register_skl2onnx()
    x = np.round(rng.normal(size=(90, 3)), 1).astype(np.float32)
    y = np.digitize(x[:, 0] + rng.normal(size=90), [0.0, 0.8][: n_classes - 1])
    model = CalibratedClassifierCV(gb.GradientBoostingClassifier(loss, **SETTINGS), cv=2).fit(x, y)
    proto = skl2onnx.to_onnx(model, x[:1], options={"zipmap": False}, target_opset={"": 15, "ai.onnx.ml": 3})
    session = runtime.InferenceSession(proto.SerializeToString(), providers=["CPUExecutionProvider"])
    found = session.run(None, {session.get_inputs()[0].name: x})[1]
    assert np.isclose(found, model.predict_proba(x), atol=1e-5).mean() > 0.95
