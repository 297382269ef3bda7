"""The second half of the table of public parameters: methods of models, custom losses, metrics, files, integrations."""

from __future__ import annotations

from functools import cache
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
from optuna.trial import FixedTrial
from support.hostile.parameters import Call, small

import gpuboost as gb
from gpuboost.integrations import OptunaPruning, WandbLogging

RUN = SimpleNamespace(log=lambda values: None, define_metric=lambda name, summary: None, summary={})
AXES = {"ax": "anything"}
KINDS = {"X": "rows", "n_rounds": "part", "init_score": "offset"}


def more_calls() -> list[Call]:
    """What ``support.hostile.parameters`` leaves out."""
    parts = (_methods, _of_posteriors, _losses, _metrics, _data, _integrations, _pictures, _theory)
    return [call for part in parts for call in part()]


@cache
def _made() -> dict[str, Any]:
    """Fitted models that ``small`` does not have."""
    data = small()
    few: dict[str, Any] = {"n_estimators": 3, "max_depth": 2, "n_jobs": 1, "random_state": 0}
    classes = gb.conformal(data["classifier"], data["x"], data["labels"])
    ranker = gb.GradientBoostingRanker(**few).fit(data["x"], data["grades"], group=data["group"])
    noisy = {**few, "n_estimators": 20, "langevin": gb.Langevin(), "posterior_samples": 2}
    ranked = gb.GradientBoostingRanker(**noisy, loss="pairwise_logistic")
    return {
        "classes": classes,
        "numbers": gb.conformal(data["regressor"], data["x"], data["y"]),
        "ranker": ranker,
        "ranked chain": ranked.fit(data["x"], data["grades"], group=data["group"]),
    }


def _methods() -> list[Call]:
    data, made, table = small(), _made(), []
    rows, path = {"X": data["x"]}, {"path": "path"}
    target = {"Classifier": "labels", "Ranker": "grades"}
    for name, model in [*((name, data[name]) for name in ("regressor", "classifier")), ("ranker", made["ranker"])]:
        kind = type(model).__name__.removeprefix("GradientBoosting")
        answers = {**rows, "y": data[target.get(kind, "y")]}
        of_queries = {"group": "anything"} if kind == "Ranker" else {}
        answers |= {"group": data["group"]} if kind == "Ranker" else {}
        scored = {"X": "rows", "y": "target", "sample_weight": "weight", **of_queries}
        scored |= {} if kind == "Ranker" else {"init_score": "offset"}
        fresh = type(model)(n_estimators=2, n_jobs=1)
        checked = {"X": "rows", "y": "target", "sample_weight": "weight", **of_queries}
        table += [
            Call(f"{name}.save_model", model.save_model, path, {"path": "model.json"}, skip=_is_path),
            Call(f"{name}.score", model.score, scored, answers, {"sample_weight": ("weight",)}, _no_weight),
            Call(f"{name}.check", fresh.check, checked, answers, {"sample_weight": ("weight",)}, _not_compared),
        ]
        if kind != "Classifier":  # whose answers of each round are below
            table.append(Call(f"{name}.staged_predict", _all(model.staged_predict), KINDS, rows))
    classifier = data["classifier"]
    table += [
        Call(f"classifier.{method}", _all(getattr(classifier, method)), KINDS, rows)
        for method in ("staged_predict", "staged_predict_proba", "staged_decision_function", "predict_log_proba")
    ]
    ranked = {"X": data["x"], "y": data["grades"], "group": data["group"]}
    refit = {"X": "rows", "y": "target", "sample_weight": "weight", "init_score": "offset", "decay": "share"}
    refit |= {"group": "anything"}
    conformal = {"X": "rows", "coverage": "anything", "sample_weight": "anything", "init_score": "offset"}
    table += [
        Call("regressor.predict(output)", data["regressor"].predict, {"output": "word"}, rows, skip=_is_mean),
        Call("ranker.refit", made["ranker"].refit, refit, ranked, skip=_no_weight),
        Call("ConformalClassifier.predict_set", made["classes"].predict_set, conformal, rows),
        Call("ConformalClassifier.save", made["classes"].save, path, skip=_is_path),
        Call("ConformalRegressor.save", made["numbers"].save, path, skip=_is_path),
        Call("load_predictor(n_rounds)", _predictor, {"n_rounds": "part"}),
    ]
    for method in ("predict", "predict_proba", "decision_function"):
        call = getattr(classifier.predictor(), method)
        table.append(Call(f"ClassifierPredictor.{method}", call, {"X": "rows"}, rows, skip=_no_rows))
    return table


def _of_posteriors() -> list[Call]:
    data, made, posterior = small(), _made(), gb.posterior
    chain, x, y = data["chain"], data["x"], data["y"]
    found = chain.predict_uncertainty(x)
    members = {"X": "rows", "samples": "count or None", "burn_in": "anything"}
    traces = np.random.default_rng(0).normal(size=(2, 40))
    several = np.random.default_rng(1).normal(size=(5, 1, 8))
    loss = chain.loss_
    rows = {"X": x}
    measured = {"X": "rows", "y": "target", "coverages": "anything"}
    return [
        Call("posterior_members", chain.posterior_members, members, rows),
        Call("to_inference_data", chain.to_inference_data, {"X": "rows", "burn_in": "anything"}, rows),
        Call(
            "ranker.predict_uncertainty",
            made["ranked chain"].predict_uncertainty,
            {**members, "group": "anything"},
            {**rows, "group": data["group"]},
        ),
        Call("posterior.autocorrelations", posterior.autocorrelations, {"traces": "anything"}, {"traces": traces}),
        Call(
            "posterior.effective_sample_size",
            posterior.effective_sample_size,
            {"traces": "anything"},
            {"traces": traces},
        ),
        Call("posterior.check_coverage", posterior.check_coverage, {"coverage": "share"}, {"coverage": 0.9}),
        Call(
            "posterior.crps",
            posterior.crps,
            dict.fromkeys(("y", "mean", "std"), "anything"),
            {"y": [1.0], "mean": [0.0], "std": [1.0]},
            {name: ("y", "mean", "std") for name in ("y", "mean", "std")},
        ),
        Call(
            "posterior.calibration",
            posterior.calibration,
            {"found": "model", "y": "target", "classes": "anything", "coverages": "anything"},
            {"found": found, "y": y},
        ),
        Call(
            "posterior.interval_calibration",
            posterior.interval_calibration,
            {"model": "model", **measured},
            {"model": chain, "X": x, "y": y},
            {"coverages": ("coverage",)},
        ),
        Call(
            "posterior.interval",
            posterior.interval,
            {"loss": "model", "members": "anything", "coverage": "share", "kind": "word", "temperature": "anything"},
            {"loss": loss, "members": several, "coverage": 0.5, "kind": "mean"},
        ),
        Call(
            "posterior.interval_outputs",
            posterior.interval_outputs,
            {"loss": "model", "coverage": "share", "kind": "anything"},
            {"loss": gb.losses.Quantiles(), "coverage": 0.9, "kind": None},
        ),
        Call(
            "posterior.uncertainty",
            posterior.uncertainty,
            {"loss": "model", "members": "anything", "temperature": "anything"},
            {"loss": loss, "members": several},
        ),
    ]


def _value(y: float, f: float) -> float:
    return (y - f) ** 2


def _gradient(y: float, f: float) -> float:
    return 2.0 * (f - y)


def _hessian(y: float, f: float) -> float:
    return 2.0


def _derivatives(y: np.ndarray, f: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    return f - y, np.ones_like(f)


def _losses() -> list[Call]:
    losses = gb.losses
    valid = {"value": _value, "gradient": _gradient, "hessian": _hessian}
    custom = {
        **dict.fromkeys(valid, "callable"), "name": "anything", "inverse_link": "anything", "start": "anything",
        "smoothness": "positive or None", "convex": "flag", "check_derivatives": "flag", "n_outputs": "count",
    }  # fmt: skip
    arrays = {
        **dict.fromkeys(("derivatives", "value"), "callable"), "name": "anything", "inverse_link": "anything",
        "start": "anything", "check_derivatives": "flag", "n_outputs": "count",
    }  # fmt: skip
    return [
        Call("custom", losses.custom, custom, valid, {"n_outputs": ("gradient",)}, _large),
        Call("custom_arrays", losses.custom_arrays, arrays, {"derivatives": _derivatives}),
        Call("losses.get", losses.get, {"loss": "word", "n_classes": "anything"}, {"loss": "softmax", "n_classes": 3}),
        Call(
            "losses.from_json",
            losses.from_json,
            {"stored": "model"},
            {"stored": {"name": "squared_error"}},
            {"stored": ("loss",)},
        ),
        Call("losses.to_json", losses.to_json, {"loss": "model"}, {"loss": losses.SquaredError()}),
        Call("Quantiles", losses.Quantiles, {"alpha": "anything"}),
        Call("Expectile", losses.Expectile, {"alpha": "share"}),
        Call("LambdaMART(normalise)", losses.LambdaMART, {"normalise": "flag"}),
        Call("PairwiseLogistic(normalise)", losses.PairwiseLogistic, {"normalise": "flag"}),
    ]


def _metrics() -> list[Call]:
    metrics, loss = gb.metrics, gb.losses.SquaredError()
    ranked = {"k": "count or None", "empty": "anything"}
    return [
        Call("precision", metrics.precision, ranked),
        Call("recall", metrics.recall, ranked),
        Call("ndcg(gain)", metrics.ndcg, {"gain": "anything"}),
        Call(
            "metrics.get",
            metrics.get,
            {"metric": "word", "loss": "model"},
            {"metric": "rmse", "loss": loss},
            {"metric": ("eval_metric",)},
            _metric,
        ),
        Call("metrics.default_metric", metrics.default_metric, {"loss": "model"}, {"loss": loss}),
        Call(
            "metrics.mean",
            metrics.mean,
            {"term": "callable", "name": "anything", "higher_is_better": "flag", "n_outputs": "count"},
            {"term": _value},
            skip=_large,
        ),
    ]


def _data() -> list[Call]:
    data = small()
    batches = [(data["x"], data["y"])]
    shared = {"max_bins": "bins", "binning": "word", "cuts": "anything", "missing": "missing"}
    table = pa.table({"a": data["x"][:, 0], "b": data["x"][:, 1], "t": data["y"], "g": data["group"]})
    names = dict.fromkeys(("target", "weight", "group", "init_score", "features"), "anything")

    def from_parquet(**given: Any) -> object:
        pq.write_table(table, "rows.parquet")
        return gb.Dataset.from_parquet(**{"paths": "rows.parquet", "target": "t", **given})

    def from_batches(**given: Any) -> object:
        return gb.Dataset.from_batches(batches, **given)

    path = {"path": "path"}
    export, model = gb.export, data["regressor"]
    return [
        Call(
            "Dataset.from_batches(others)",
            from_batches,
            {**shared, "categorical_features": "anything", "n_jobs": "threads"},
        ),
        Call("Dataset.from_parquet", from_parquet, {"paths": "path", **names, **shared}, skip=_is_path),
        Call("Dataset.take", gb.Dataset(data["x"], data["y"]).take, {"rows": "anything"}, {"rows": [0, 1]}),
        Call(
            "export.to_c",
            export.to_c,
            {"model": "model", "path": "path", "function": "anything"},
            {"model": model},
            skip=_is_path,
        ),
        Call("export.to_onnx(path)", export.to_onnx, path, {"model": model}, skip=_is_path),
        Call("export.to_xgboost(path)", export.to_xgboost, path, {"model": model, "path": "x.json"}, skip=_is_path),
        Call("export.trees_to_table", export.trees_to_table, {"model": "model"}, {"model": model}),
        Call("Checkpoint(path)", gb.callbacks.Checkpoint, path, skip=_is_path),
        Call("Log.load", gb.Log.load, path, skip=_is_path),
        Call("Log.save", data["log"].save, path, skip=_is_path),
        Call("Log.from_json", gb.Log.from_json, {"found": "model"}, aliases={"found": ("log",)}),
        Call("Log.before", data["log"].before, {"rounds": "count or 0"}, {"rounds": 1}),
    ]


def _integrations() -> list[Call]:
    trial = FixedTrial({})
    watched = {"metric": "anything", "data": "anything"}

    def pruned(**given: Any) -> object:
        return _watched(OptunaPruning(**{"trial": trial, **given}))

    def logged(**given: Any) -> object:
        return _watched(WandbLogging(**{"run": RUN, **given}))

    def stopped(**given: Any) -> object:
        return _watched(gb.callbacks.EarlyStopping(3, **given))

    return [
        Call("OptunaPruning", pruned, {"trial": "model", **watched}),
        Call("WandbLogging", logged, {"run": "anything"}),
        Call("EarlyStopping(others)", stopped, watched, aliases={"metric": ("eval_metric",), "data": ("eval_set",)}),
    ]


def _watched(callback: Any) -> object:
    data = small()
    model = gb.GradientBoostingRegressor(n_estimators=2, n_jobs=1, max_depth=2, callbacks=[callback])
    return model.fit(data["x"], data["y"], eval_set=(data["x"], data["y"]))


def _pictures() -> list[Call]:
    data, made, plot = small(), _made(), gb.plot
    model, chain = data["regressor"], data["chain"]
    found = gb.posterior.calibration(chain.predict_uncertainty(data["x"]), data["y"])
    drawn: list[tuple[Any, dict[str, Any]]] = [
        (plot.importance, {"model": model}),
        (plot.metrics, {"results": {"a": {"rmse": [1.0, 0.5]}}}),
        (plot.tree, {"model": model}),
        (plot.partial_effect, {"model": data["effects"], "feature": 0}),
        (plot.shap_summary, {"model": model, "X": data["x"]}),
        (plot.dependence, {"model": model, "X": data["x"], "feature": 0}),
        (plot.trace, {"traces": chain.trace(data["x"])}),
        (plot.autocorrelation, {"traces": chain.trace(data["x"])}),
        (plot.uncertainty, {"model": chain, "X": data["x"], "feature": 0}),
        (plot.intervals, {"model": made["numbers"], "X": data["x"]}),
        (plot.calibration, {"found": found}),
        (plot.staleness, {"model": data["workers"]}),
        (plot.timeline, {"model": data["workers"]}),
    ]
    return [
        *(Call(f"plot.{draw.__name__}(ax)", draw, AXES, valid) for draw, valid in drawn),
        Call("plot.calibration", plot.calibration, {"found": "model"}, {"found": found}),
        Call("plot.timeline(last)", plot.timeline, {"last": "count or None"}, {"model": data["workers"]}),
    ]


def _theory() -> list[Call]:
    theory, x = gb.theory, small()["x"]
    numbers = {"gap": 1.0, "rounds": 3, "sigma": 1.0}
    bound = {**dict.fromkeys((*numbers, "dist", "nu"), "anything")}
    square, norm = np.eye(3), theory.SelectionNorm(2)
    return [
        Call("theory.sublinear_bound", theory.sublinear_bound, bound, {**numbers, "dist": 1.0}),
        Call("theory.linear_bound(nu)", theory.linear_bound, {"nu": "anything"}, {**numbers, "mu": 0.1, "xi": 0.5}),
        Call(
            "theory.linear_factor",
            theory.linear_factor,
            dict.fromkeys(("sigma", "mu", "xi", "nu"), "anything"),
            {"sigma": 1.0, "mu": 0.1, "xi": 0.5},
        ),
        Call(
            "theory.descent",
            theory.descent,
            dict.fromkeys(("projection", "sigma", "nu"), "anything"),
            {"projection": 1.0, "sigma": 1.0},
        ),
        Call(
            "theory.huber_distance",
            theory.huber_distance,
            {"loss": "anything", "delta": "positive", "n": "count"},
            {"loss": 1.0, "delta": 1.0, "n": 3},
        ),
        Call(
            "theory.orthonormal_angle",
            theory.orthonormal_angle,
            {"p": "count", "t": "count or None"},
            {"p": 4},
            skip=_large,
        ),
        Call("theory.ternary_angle", theory.ternary_angle, {"p": "count"}, skip=_large),
        Call("theory.SelectionNorm", theory.SelectionNorm, {"t": "count or None", "groups": "anything"}),
        Call("theory.SelectionNorm.sizes", norm.sizes, {"k": "count"}, {"k": 3}, skip=_large),
        Call("theory.minimal_cosine_angle(norm)", theory.minimal_cosine_angle, {"norm": "anything"}, {"B": square}),
        Call(
            "theory.smallest_expected_edge",
            theory.smallest_expected_edge,
            {"B": "anything", "norm": "anything"},
            {"B": square, "norm": norm},
        ),
        Call(
            "theory.sign_stumps",
            theory.sign_stumps,
            {"X": "rows", "max_bins": "bins", "constant": "flag", "sample_weight": "weight"},
            {"X": x},
            skip=_no_weight,
        ),
    ]


def _all(method: Any) -> Any:
    """The method, and every item of what it yields."""

    def call(**given: Any) -> object:
        return list(method(**given))

    return call


def _predictor(**given: Any) -> object:
    small()["regressor"].save_model("model.json")
    return gb.load_predictor("model.json", **given)


def _is_path(name: str, value: Any) -> bool:
    """True for a path: a file of that name is written, or the error says that there is none."""
    return name in ("path", "paths") and (value is None or isinstance(value, (str, bytes, Path)))


def _is_mean(name: str, value: Any) -> bool:
    return isinstance(value, str) and value == "mean"


def _no_weight(name: str, value: Any) -> bool:
    return name in ("weight", "sample_weight") and isinstance(value, str)


def _not_compared(name: str, value: Any) -> bool:
    """True for rows of infinity, too: ``check`` looks at the shape of X, and at no value of it."""
    infinite = isinstance(value, np.ndarray) and value.dtype.kind == "f" and value.size > 0 and np.isinf(value).all()
    return (name == "X" and bool(infinite)) or _no_weight(name, value)


def _no_rows(name: str, value: Any) -> bool:
    return getattr(value, "shape", None) == (0, 4)


def _metric(name: str, value: Any) -> bool:
    return name == "metric" and callable(value)


def _large(name: str, value: Any) -> bool:
    """True for numbers that are right and need memory or time without end."""
    whole = isinstance(value, (int, np.integer)) and not isinstance(value, bool)
    return name in ("n_outputs", "p", "t", "k") and whole and value > 1000
