"""The table of public parameters: every function and class that users call, valid arguments for it, and values that
each argument must refuse.

``calls()`` gives one ``Call`` for each; ``wrong_for`` the values that its kind of argument never accepts. Every other
odd value of ``ODD`` may be accepted, or refused by an error that names the argument.
"""

from __future__ import annotations

import inspect
import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
import scipy.sparse as sp

import gpuboost as gb

NAN, INF, HUGE = math.nan, math.inf, 10**400  # HUGE is beyond every float
NO_NUMBER: tuple[Any, ...] = ("3", "", [3], {}, (1, 2), object(), 1j, np.array([1.0, 2.0]), b"1", int, len)

WRONG: dict[str, tuple[Any, ...]] = {
    "count": (*NO_NUMBER, 0.5, NAN, INF, 0, -1, -(10**30), True),
    "count or 0": (*NO_NUMBER, 0.5, NAN, INF, -1, -(10**30), True),
    "count or None": (*NO_NUMBER, 0.5, NAN, INF, 0, -1, -(10**30), True),
    "bins": (*NO_NUMBER, 0.5, NAN, 0, 1, 65_536, -1, 10**30, True),
    "positive": (*NO_NUMBER, NAN, INF, -INF, HUGE, 0, -1, 0.0, -1e-9, True),
    "positive or auto": (*NO_NUMBER, None, NAN, INF, -INF, HUGE, 0, -1, 0.0, -1e-9, True),
    "positive or None": (*NO_NUMBER, NAN, INF, -INF, HUGE, 0, -1, 0.0, -1e-9, True),
    "missing": ("3", "", [3], {}, object(), 1j, b"1", int, len, INF, -INF, HUGE, True, None, np.array([1.0, 2.0])),
    "rates": (
        "3",
        "",
        {},
        object(),
        1j,
        b"1",
        int,
        (1, 0.0),
        [3],
        [NAN, 1.0],
        NAN,
        INF,
        -INF,
        HUGE,
        0,
        -1,
        -1e-9,
        True,
    ),
    "real or 0": (*NO_NUMBER, NAN, INF, -INF, HUGE, -1, -1e-9, True),
    "real or None": (*NO_NUMBER, NAN, INF, -INF, HUGE, -1, -1e-9, True),
    "share": (*NO_NUMBER, NAN, INF, -INF, HUGE, -1, -1e-9, 1.5, 2),
    "threads": (*NO_NUMBER, 0.5, NAN, INF, 0, HUGE, -HUGE, 10**30, True),
    "text": (3, 0.5, None, [], {}, 1j, object(), "", "x", b"x", "{}", b"\xff", "[" * 100_000),
    "word": ("nothing of this name", 3, 0.5, NAN, [], {}, object(), b"x", 1j),
    "start": ("nothing of this name", NAN, INF, HUGE, [], {}, object(), 1j, len, True),
    "policy": ("nothing of this name", {}, object(), 1j, int, NAN, -1, [[]]),
    "path": (3, 0.5, [], {}, 1j, object()),
    "rows": (
        "x",
        3,
        HUGE,
        None,
        [],
        [[]],
        {},
        object(),
        1j,
        np.zeros(3),
        np.zeros((2, 2, 2)),
        np.zeros((0, 4)),
        [[1], [1, 2]],
        np.full((60, 4), INF),
        np.full((60, 4), 1j),
    ),
    "target": (
        "x",
        3,
        1j,
        [],
        [[1, 2], [3]],
        {},
        object(),
        np.zeros(3),
        np.zeros((60, 2, 2)),
        np.full(60, NAN),
        np.full(60, INF),
    ),
    "probabilities": (
        "x",
        3,
        None,
        1j,
        [],
        {},
        object(),
        [[1, 2], [3]],
        [2.0] * 60,
        [-1.0] * 60,
        [NAN] * 60,
        [0] * 60,
        [0.5],
    ),
    "schedule": ("nothing of this name", 3, 0.5, NAN, {}, [], 1j, object(), int),
    "weight": (
        "x",
        {},
        object(),
        np.zeros(3),
        np.zeros((60, 2)),
        np.full(60, NAN),
        np.full(60, INF),
        np.full(60, -1.0),
        np.zeros(60),
        ["a"] * 60,
        1j,
        [[1, 2], [3]],
    ),
    "offset": (
        "x",
        {},
        object(),
        HUGE,
        NAN,
        1j,
        np.zeros(3),
        np.zeros((60, 2)),
        np.full(60, INF),
        ["a"] * 60,
        [[1, 2], [3]],
    ),
    "part": (-1, 99, 0.5, "x", {}, object(), (1,), (2, 1), (0, 99), True, NAN, HUGE),
    "kinds": (3, 0.5, "x", b"x", ["x"], [None], {"a": 1}, object(), 1j, HUGE),
    "rounds": (
        3,
        -1,
        HUGE,
        "x",
        None,
        [],
        {},
        (1, 2),
        object(),
        slice(1, 2),
        slice(99),
        slice(None, None, 2),
    ),
    "model": ("x", 3, None, [], {}, object(), int),
    "callable": (3, 0.5, "x", [], {}, object(), 1j),
    "flag": (),
    "anything": (),
}
"""Kind of argument -> values that it refuses."""

ODD: tuple[Any, ...] = (
    None,
    True,
    False,
    -1,
    0,
    1,
    2,
    3,
    0.5,
    1.5,
    -0.0,
    NAN,
    INF,
    -INF,
    1e-320,
    1e308,
    2**31,
    2**63,
    -(2**63),
    HUGE,
    "x",
    "",
    b"x",
    [],
    [1],
    [None],
    [1, 2, 3, 4],
    [[1, 2], [3]],
    {},
    {"a": 1},
    {0: 1},
    (1, 2, 3),
    set(),
    object(),
    1j,
    int,
    len,
    np.array([]),
    np.array(3),
    np.zeros((2, 2)),
    np.array(["a", "b"]),
    np.float32(0.5),
    np.int8(-1),
    np.datetime64("NaT"),
    np.full(4, NAN),
    sp.csr_matrix((2, 2)),
    range(3),
    Path("x"),
)
"""Values of every type, tried for every argument."""


@dataclass(frozen=True)
class Call:
    """One public function: how to call it, valid arguments, and the kind of each argument that is tried."""

    name: str
    call: Callable[..., object]
    kinds: Mapping[str, str]
    valid: Mapping[str, Any] = field(default_factory=dict)
    aliases: Mapping[str, tuple[str, ...]] = field(default_factory=dict)  # other names that a message may use
    skip: Callable[[str, Any], bool] = lambda name, value: False

    def names_of(self, argument: str) -> tuple[str, ...]:
        return (argument, *self.aliases.get(argument, ()))

    def takes(self, name: str, value: Any) -> bool:
        """False for arrays as flags, and for what the call itself leaves out."""
        array = isinstance(value, np.ndarray) or sp.issparse(value)
        return not (self.kinds[name] == "flag" and array) and not self.skip(name, value)

    def wrong(self) -> list[tuple[str, Any]]:
        """(argument, value) that must be refused."""
        pairs = ((name, value) for name, kind in self.kinds.items() for value in WRONG[kind])
        return [(name, value) for name, value in pairs if self.takes(name, value)]

    def odd(self) -> list[tuple[str, Any]]:
        """(argument, value) that may be accepted."""
        pairs = ((name, value) for name in self.kinds for value in ODD)
        return [(name, value) for name, value in pairs if self.takes(name, value)]


ESTIMATOR = {
    "loss": "word",
    "n_estimators": "count or 0",
    "learning_rate": "rates",
    "growth": "word",
    "max_depth": "count or None",
    "max_leaves": "count or None",
    "min_samples_leaf": "count",
    "min_child_weight": "real or 0",
    "reg_lambda": "real or None",
    "reg_alpha": "real or 0",
    "max_delta_step": "real or 0",
    "path_smooth": "real or 0",
    "min_split_gain": "real or 0",
    "random_strength": "real or 0",
    "extra_trees": "flag",
    "max_bins": "bins",
    "binning": "word",
    "categorical_features": "anything",
    "missing": "missing",
    "categorical_splits": "policy",
    "categorical_encoding": "policy",
    "monotonic_cst": "anything",
    "interaction_cst": "policy",
    "forced_splits": "policy",
    "feature_costs": "policy",
    "feature_weights": "anything",
    "sampling": "policy",
    "learners": "policy",
    "langevin": "policy",
    "posterior_samples": "count or None",
    "step": "policy",
    "start": "start",
    "execution": "policy",
    "base_learner": "policy",
    "multi_output": "word",
    "sketch": "policy",
    "early_stopping_rounds": "count or None",
    "validation_fraction": "share",
    "eval_metric": "word",
    "eval_at": "anything",
    "callbacks": "callable",
    "class_weight": "anything",
    "device": "word",
    "random_state": "anything",
    "n_jobs": "threads",
    "verbose": "anything",
    "warm_start": "flag",
}
"""Every parameter of the three estimators."""


@cache
def small() -> dict[str, Any]:
    """Data and fitted models that calls share."""
    rng = np.random.default_rng(0)
    x = rng.normal(size=(60, 4))
    y, group = x[:, 0] + 0.1 * rng.normal(size=60), np.repeat(np.arange(6), 10)
    few: dict[str, Any] = {"n_estimators": 4, "max_depth": 2, "n_jobs": 1, "random_state": 0}
    chain = gb.GradientBoostingRegressor(**few | {"n_estimators": 20}, langevin=gb.Langevin(), posterior_samples=2)
    workers = gb.GradientBoostingRegressor(**few, execution=gb.SimulatedWorkers(2)).fit(x, y)
    return {
        "x": x,
        "y": y,
        "labels": (y > 0).astype(int),
        "grades": np.digitize(y, [-0.5, 0.5]),
        "group": group,
        "regressor": gb.GradientBoostingRegressor(**few).fit(x, y),
        "classifier": gb.GradientBoostingClassifier(**few).fit(x, y > 0),
        "chain": chain.fit(x, y),
        "workers": workers,
        "log": workers.fit_report_.log,
        "effects": gb.GradientBoostingRegressor(**few, base_learner=gb.learners.Spline()).fit(x, y),
    }


def calls() -> list[Call]:
    """The whole table."""
    from support.hostile.more_calls import more_calls

    parts = (_constructors, _fits, _answers, _functions, _policies, _presets, _plots, _theory, more_calls)
    return [call for part in parts for call in part()]


def _fitted(kind: str) -> Callable[..., object]:
    def fit(**params: Any) -> object:
        data = small()
        target = {"Classifier": "labels", "Ranker": "grades"}.get(kind, "y")
        more = {"group": data["group"]} if kind == "Ranker" else {}
        if "early_stopping_rounds" in params or "eval_metric" in params or "eval_at" in params:
            extra = (data["group"],) if kind == "Ranker" else ()
            more["eval_set"] = (data["x"], data[target], *extra)
        made = {"n_estimators": 2, "n_jobs": 1, "max_depth": 2, **params}
        return getattr(gb, f"GradientBoosting{kind}")(**made).fit(data["x"], data[target], **more)

    return fit


def _endless(name: str, value: Any) -> bool:
    """True for values that are right and would take for ever, or need a machine that is not there."""
    whole = isinstance(value, (int, np.integer)) and not isinstance(value, bool)
    large = whole and value > 1000
    return large and name in (
        "n_estimators",
        "workers",
        "shards",
        "threads_per_shard",
        "random_from",
        "knots",
        "cells",
        "n_chains",
        "p",
        "k",
        "n_features",
        "rounds",
        "lags",
        "n_classes",
    )


def _constructors() -> list[Call]:
    table = []
    for kind in ("Regressor", "Classifier", "Ranker"):
        names = inspect.signature(getattr(gb, f"GradientBoosting{kind}")).parameters
        kinds = {name: ESTIMATOR[name] for name in names}  # a KeyError here asks for a line in the table
        if kind == "Classifier":
            kinds["eval_metric"] = "word"
        table.append(Call(kind, _fitted(kind), kinds, skip=_right))
    return table


def _right(name: str, value: Any) -> bool:
    """True for a value of ``WRONG`` that this parameter accepts after all, or that is endless."""
    if name == "eval_metric":
        return (isinstance(value, list) and not value) or callable(value)
    if name == "callbacks":
        return isinstance(value, (list, tuple, dict)) and not value
    if name == "learning_rate" and callable(value):
        return True  # a user's function of the round, whose errors are its own
    if name == "start" and isinstance(value, float) and value == 1e308:  # right, and no loss has such gradients
        return True
    return _endless(name, value)


def _fits() -> list[Call]:
    data = small()
    kinds = {
        "X": "rows",
        "y": "target",
        "sample_weight": "weight",
        "init_score": "offset",
        "init_model": "model",
        "resume_from": "path",
        "eval_set": "anything",
    }
    table = []
    for kind, target in (("Regressor", "y"), ("Classifier", "labels"), ("Ranker", "grades")):
        valid = {"X": data["x"], "y": data[target]}
        facts = {"pairs": "anything", "pairs_weight": "weight", "position": "weight"}
        more = {"group": "weight", **facts} if kind == "Ranker" else {}
        valid |= {"group": data["group"]} if kind == "Ranker" else {}

        def fit(kind: str = kind, **given: Any) -> object:
            return getattr(gb, f"GradientBoosting{kind}")(n_estimators=2, n_jobs=1, max_depth=2).fit(**given)

        table.append(Call(f"{kind}.fit", fit, kinds | more, valid, skip=_data_is_right))
    refit = {"X": "rows", "y": "target", "sample_weight": "weight", "init_score": "offset", "decay": "share"}
    rows = {"X": data["x"], "y": data["y"]}
    table.append(Call("Regressor.refit", data["regressor"].refit, refit, rows, skip=_data_is_right))
    ranker = gb.GradientBoostingRanker(n_estimators=2, n_jobs=1, max_depth=2)
    of_queries = {"X": data["x"], "y": data["grades"], "group": data["group"]}
    again, facts = ranker.fit(**of_queries).refit, {"pairs": "anything", "pairs_weight": "weight", "position": "weight"}
    table.append(Call("Ranker.refit", again, {**refit, "group": "weight", **facts}, of_queries, skip=_data_is_right))
    return table


def _data_is_right(name: str, value: Any) -> bool:
    if name in ("init_model", "resume_from"):
        return value is None or isinstance(value, (str, Path))  # a path, of no file
    if name in ("pairs", "pairs_weight", "position"):
        return value is None
    if name == "group":
        return not (isinstance(value, np.ndarray) and value.shape in ((3,), (60, 2)))
    if name == "y" and value is None:
        return True
    return name == "sample_weight" and isinstance(value, str) and len(value) == 0


def _answers() -> list[Call]:
    data, table = small(), []
    methods = {
        "regressor": ("predict", "apply", "predict_contributions", "predict_interactions", "trace"),
        "classifier": ("predict", "predict_proba", "decision_function"),
        "effects": ("predict",),
    }
    for kind, names in methods.items():
        for method in names:
            kinds = {"X": "rows"}
            if method != "trace":
                kinds["n_rounds"] = "part"
            if method.startswith(("predict", "decision")):
                kinds["init_score"] = "offset"
            table.append(Call(f"{kind}.{method}", getattr(data[kind], method), kinds, {"X": data["x"]}))
    chain = data["chain"]
    more = {"samples": "count or None", "burn_in": "anything"}
    table.append(Call("predict_uncertainty", chain.predict_uncertainty, {"X": "rows", **more}, {"X": data["x"]}))
    more |= {"coverage": "share", "kind": "word"}
    table.append(Call("predict_interval", chain.predict_interval, {"X": "rows", **more}, {"X": data["x"]}))
    normal = gb.GradientBoostingRegressor("gaussian_nll", n_estimators=2, n_jobs=1).fit(data["x"], data["y"])
    of_likelihood = {"X": "rows", "coverage": "share", "init_score": "offset"}
    table.append(Call("normal.predict_interval", normal.predict_interval, of_likelihood, {"X": data["x"]}))
    importance = {"kind": "word", "normalise": "flag"}
    table.append(Call("feature_importance", data["regressor"].feature_importance, importance))
    return table


def _functions() -> list[Call]:
    data = small()
    model = gb.GradientBoostingRegressor(n_estimators=2, n_jobs=1)
    noisy = gb.GradientBoostingRegressor(n_estimators=4, n_jobs=1, langevin=gb.Langevin(), posterior_samples=2)
    rows = {"X": data["x"], "y": data["y"]}
    dataset = {
        "X": "rows",
        "y": "anything",
        "weight": "weight",
        "group": "anything",
        "init_score": "offset",
        "max_bins": "bins",
        "binning": "word",
        "categorical_features": "anything",
        "missing": "missing",
        "cuts": "anything",
        "n_jobs": "threads",
    }
    cross = {
        "model": "model",
        "data": "rows",
        "y": "target",
        "sample_weight": "weight",
        "group": "anything",
        "init_score": "offset",
        "folds": "anything",
        "refit": "flag",
        "random_state": "anything",
        "early_stopping_rounds": "count or None",
        "train_curve": "flag",
    }
    only_of_cv = ("data", "folds", "early_stopping_rounds", "train_curve")
    searched = {name: kind for name, kind in cross.items() if name not in only_of_cv} | {"X": "rows"}
    searched |= dict.fromkeys(("space", "budget", "cv", "reduction"), "anything")
    memory = {
        "n_rows": "count",
        "n_features": "count",
        "estimator": "anything",
        "n_classes": "anything",
        "n_outputs": "anything",
        "weighted": "flag",
        "eval_rows": "count or 0",
        "eval_weighted": "flag",
        "categories": "anything",
        "n_queries": "anything",
    }
    chains = {"model": "model", "X": "rows", "y": "target", "n_chains": "count", "sample_weight": "weight"}
    posterior = {
        "model": "model",
        "X": "rows",
        "y": "target",
        "temperatures": "anything",
        "prior_variances": "anything",
        "held_out": "share",
        "sample_weight": "weight",
    }
    aliases = {"data": ("X",), "sample_weight": ("weight",), "estimator": ("model",)}
    conformal = {
        "model": "model", "X_cal": "rows", "y_cal": "target", "coverage": "share", "method": "word",
        "sample_weight": "weight", "init_score": "offset",
    }  # fmt: skip
    calibrated = gb.conformal(data["regressor"], data["x"], data["y"])
    return [
        Call(
            "conformal",
            gb.conformal,
            conformal,
            {"model": data["regressor"], "X_cal": data["x"], "y_cal": data["y"]},
            {"X_cal": ("X",), "y_cal": ("y", "X_cal")},
            _no_text_of_weights,
        ),
        Call("load_conformal", gb.load_conformal, {"path": "path"}, skip=_path_of_no_file),
        Call(
            "ConformalRegressor.predict_interval",
            calibrated.predict_interval,
            {"X": "rows", "coverage": "anything", "sample_weight": "anything", "init_score": "offset"},
            {"X": data["x"]},
        ),
        Call("Dataset", gb.Dataset, dataset, rows, {"weight": ("sample_weight",)}, _no_text_of_weights),
        Call("Dataset.load", gb.Dataset.load, {"path": "path"}, skip=_path_of_no_file),
        Call("Dataset.save", gb.Dataset(**rows).save, {"path": "path", "n_jobs": "threads"}, {"path": "data.gbd"}),
        Call(
            "Dataset.from_batches",
            gb.Dataset.from_batches,
            {"batches": "anything"},
            {"batches": [(data["x"], data["y"])]},
        ),
        Call("cv", gb.cv, cross, {"model": model, "data": data["x"], "y": data["y"]}, aliases, _no_text_of_weights),
        Call(
            "permutation_importance",
            gb.permutation_importance,
            {
                "model": "model",
                "X": "rows",
                "y": "target",
                "sample_weight": "weight",
                "init_score": "offset",
                "n_repeats": "count",
                "metric": "anything",
                "group": "anything",
                "random_state": "anything",
            },
            {"model": data["regressor"], "X": data["x"], "y": data["y"], "n_repeats": 1},
            {"metric": ("eval_metric",)},
            _no_text_of_weights,
        ),
        Call(
            "search",
            gb.search,
            searched,
            {"model": model, "space": {"max_depth": [2]}, "X": data["x"], "y": data["y"], "cv": 2},
            aliases,
            _no_text_of_weights,
        ),
        Call("estimate_memory", gb.estimate_memory, memory, {"n_rows": 100, "n_features": 4}, aliases, _endless),
        Call("chains", gb.chains, chains, {"model": noisy, **rows, "n_chains": 2}, aliases, _no_text_of_weights),
        Call("load_model", gb.load_model, {"path": "path"}, skip=_path_of_no_file),
        Call("load_predictor", gb.load_predictor, {"path": "path"}, skip=_path_of_no_file),
        Call("predictor", data["regressor"].predictor, {"n_rounds": "part"}),
        Call(
            "predictor.predict",
            data["regressor"].predictor().predict,
            {"X": "rows"},
            {"X": data["x"]},
            skip=_no_rows,
        ),
        Call("loads", gb.loads, {"text": "text"}, {"text": gb.dumps(data["regressor"])}, {"text": ("model file",)}),
        Call("dumps", gb.dumps, {"model": "model"}, {"model": data["regressor"]}),
        Call("to_dict", gb.to_dict, {"model": "model"}, {"model": data["regressor"]}),
        Call(
            "sum_models",
            gb.sum_models,
            {"models": "model", "weights": "anything"},
            {"models": [data["regressor"]]},
        ),
        Call("warm_up", gb.warm_up, {"kinds": "kinds", "n_jobs": "threads"}, {"kinds": []}, skip=_compiles),
        Call("first rounds", lambda rounds: data["regressor"][rounds], {"rounds": "rounds"}, {"rounds": slice(2)}),
        Call("fit_posterior", gb.fit_posterior, posterior, {"model": noisy, **rows}, aliases, _no_text_of_weights),
    ]


def _path_of_no_file(name: str, value: Any) -> bool:
    """True for what is a path; the error is then FileNotFoundError."""
    return name == "path" and isinstance(value, (str, bytes, Path))


def _no_rows(name: str, value: Any) -> bool:
    """True for rows of the right width, none of them, which a predictor accepts."""
    return getattr(value, "shape", None) == (0, 4)


def _compiles(name: str, value: Any) -> bool:
    """True where ``warm_up`` would compile kernels, of every kind or with threads that are there."""
    return name == "kinds" and value is None


def _no_text_of_weights(name: str, value: Any) -> bool:
    if name == "init_score" and getattr(value, "shape", None) == (60, 2):  # right without a loss
        return True
    return (name in ("weight", "sample_weight") and isinstance(value, str)) or _endless(name, value)


NAMES_OF_ROLES = {"p": ("RowProbabilities",), "factor": ("gradients", "sampling")} | dict.fromkeys(
    ("start", "end"), ("gradients",)
)
"""What ``fit`` calls an argument of a policy."""

NOISE = {"temperature": ("gradients",), "inverse_temperature": ("gradients",)}
"""A temperature may be so high that the noise of the gradients overflows, which the fit says in its own words."""


def _policies() -> list[Call]:
    families, losses, data = gb.learners, gb.losses, small()
    worker = {
        "workers": "count",
        "leaf_values": "word",
        "sample_at": "word",
        "staleness": "word",
        "max_staleness": "anything",
        "damping": "anything",
        "max_failures": "count or 0",
        "allow_unproven": "flag",
    }
    chain = dict.fromkeys(("inverse_temperature", "temperature", "shrinkage", "prior_variance"), "anything")
    weights = {"t": "anything", "weights": "anything", "groups": "anything"}
    smoothed = {"sigma": "positive", "truncation": "count or None", "gain": "anything", "mu": "real or 0"}
    unbiased = {name: smoothed[name] for name in ("sigma", "truncation", "gain")}
    unbiased |= {"normalise": "flag", "bias_norm": "real or 0"}
    smoothed |= {"samples": "count", "scale_free": "flag"}
    spline = {
        "df": "positive",
        "knots": "count",
        "degree": "count or 0",
        "difference": "count",
        "scale": "word",
        "columns": "anything",
    }
    importance = {
        "rate": "anything",
        "rho": "anything",
        "score": "anything",
        "floor": "anything",
        "variance_control": "word",
        "lag": "count",
        "eta": "anything",
        "factor": "anything",
        "frozen_from": "count or 0",
    }
    smart = {"rate": "anything", "rho": "anything", "paper": "flag"}
    statistics = {"permutations": "count", "prior_weight": "positive or auto", "counts": "flag"}
    statistics |= {"combinations": "count", "one_hot_max_size": "count or 0"}
    categories = dict.fromkeys(("smoothing", "reg_lambda"), "real or 0")
    categories |= dict.fromkeys(("min_category_rows", "min_group_rows"), "real or None")
    listed: list[tuple[Any, dict[str, str], dict[str, Any]]] = [
        (gb.UniformSampling, {"rate": "share", "variance_control": "word"}, {"rate": 0.5}),
        (gb.QuerySampling, {"rate": "share", "variance_control": "word"}, {"rate": 0.5}),
        (gb.GOSS, {"top": "share", "other": "share", "variance_control": "word"}, {}),
        (gb.MVS, {"rate": "share", "frozen_from": "count or 0"}, {"rate": 0.5}),
        (gb.ImportanceSampling, importance, {"rate": 0.5}),
        (gb.smart_first_order, smart, {"rate": 0.5}),
        (gb.smart_second_order, {**smart, "variance_control": "word"}, {"rate": 0.5}),
        (gb.WeightTrimming, {"mass": "share", "score": "word", "variance_control": "word"}, {}),
        (gb.RowProbabilities, {"p": "probabilities", "variance_control": "word"}, {"p": [0.5] * 60}),
        (gb.CategoricalSplits, categories, {}),
        (gb.FeatureCosts, {"feature": "anything", "split": "real or 0", "tradeoff": "real or 0"}, {}),
        (gb.OrderedTargetStatistics, statistics, {}),
        *(
            (
                decay,
                {"start": "positive", "end": "positive", "rounds": "count"},
                {"start": 0.3, "end": 0.1, "rounds": 3},
            )
            for decay in (gb.CosineDecay, gb.ExponentialDecay)
        ),
        (gb.GeometricAnnealing, {"factor": "positive", "rounds": "count"}, {"factor": 10.0, "rounds": 3}),
        (gb.CyclicalTemperature, {"factor": "positive", "rounds": "count"}, {"factor": 10.0, "rounds": 3}),
        (
            gb.Langevin,
            {
                **chain,
                "schedule": "schedule",
                "noise_scale": "schedule",
                "random_from": "anything",
                "paper": "flag",
                "leaf_noise": "flag",
                "structure_noise": "anything",
                "allow_unproven": "flag",
            },
            {},
        ),
        (gb.LineSearchStep, {"per": "word"}, {}),
        (gb.RandomByLevel, {"t": "anything"}, {"t": 2}),
        (gb.RandomByNode, {"t": "anything"}, {"t": 2}),
        (gb.RandomGroup, {"groups": "anything"}, {}),
        (gb.RandomGroups, {"t": "anything", "groups": "anything"}, {"t": 2}),
        (gb.RandomOutputs, {"k": "count"}, {"k": 2}),
        (gb.RandomProjection, {"k": "count"}, {"k": 2}),
        (gb.TopOutputs, {"k": "count"}, {"k": 2}),
        (gb.RandomLearners, {"t": "anything"}, {"t": 10}),
        (gb.SemiGreedyGroups, {"groups": "anything"}, {}),
        (gb.CyclicGroups, {"t": "anything", "groups": "anything"}, {}),
        (gb.WeightedGroups, weights, {"t": 1, "weights": [1.0, 2.0, 1.0, 1.0]}),
        (gb.Asynchronous, {**worker, "engine": "word", "timeout": "anything"}, {"workers": 2}),
        (
            gb.SimulatedWorkers,
            {
                **worker,
                "build_time": "anything",
                "server_time": "anything",
                "network": "anything",
                "failures": "anything",
                "speeds": "anything",
                "seed": "anything",
            },
            {"workers": 2},
        ),
        (gb.DataParallel, {"shards": "count", "engine": "word", "threads_per_shard": "count"}, {"shards": 2}),
        (
            gb.Ray,
            {
                "cpus_per_worker": "count",
                "object_store_memory": "count or None",
                "timeout": "positive",
                "patience": "positive or None",
            },
            {},
        ),
        (gb.Replay, {"log": "path"}, {"log": data["log"]}),
        (losses.Huber, {"delta": "positive"}, {}),
        (losses.Quantile, {"alpha": "positive"}, {}),
        (losses.Tweedie, {"power": "positive"}, {}),
        (losses.AFT, {"distribution": "word", "scale": "positive"}, {}),
        (losses.Logistic, {"ridge": "real or 0"}, {}),
        (losses.SmoothedZeroOne, {"scale": "positive"}, {}),
        (losses.Softmax, {"n_classes": "count"}, {"n_classes": 3}),
        (losses.StochasticRank, smoothed, {}),
        (
            losses.LambdaMART,
            {"sigma": "positive", "truncation": "count or None", "gain": "anything", "metric": "word"},
            {},
        ),
        (losses.PairLogit, {"sigma": "positive"}, {}),
        (losses.UnbiasedLambdaMART, unbiased, {}),
        (losses.PairwiseLogistic, {"sigma": "positive", "truncation": "count or None"}, {}),
        (families.Linear, {"columns": "anything"}, {}),
        (families.Spline, spline, {}),
        (
            families.TensorSpline,
            {
                "pairs": "anything",
                "df": "positive",
                "knots": "count",
                "cells": "count",
                "degree": "count or 0",
                "difference": "count",
            },
            {"pairs": ((0, 1),)},
        ),
        (families.CategoricalRidge, {"df": "positive", "columns": "anything"}, {}),
        (families.Tree, {"max_depth": "count", "reg_lambda": "real or 0"}, {}),
        (families.LinearTree, {"max_depth": "count", "ridge": "real or 0", "reg_lambda": "real or 0"}, {}),
        (gb.times.Constant, {"value": "anything"}, {"value": 1.0}),
        (gb.times.Exponential, {"mean": "anything"}, {"mean": 1.0}),
        (gb.times.LogNormal, {"median": "anything", "spread": "anything"}, {"median": 1.0}),
        (gb.times.Straggling, {"usual": "anything", "probability": "anything", "factor": "anything"}, {"usual": 1.0}),
        (gb.callbacks.EarlyStopping, {"rounds": "count", "min_delta": "real or 0"}, {"rounds": 3}),
        (gb.callbacks.ProgressBar, {"every": "count"}, {}),
        (gb.callbacks.Checkpoint, {"every": "count"}, {"path": "x.json"}),
        (gb.metrics.ndcg, {"k": "count or None", "empty": "anything"}, {}),
        (gb.metrics.mean_average_precision, {"k": "count or None", "empty": "anything"}, {}),
        (gb.metrics.mean_reciprocal_rank, {"k": "count or None", "empty": "anything"}, {}),
    ]
    table = []
    for made, kinds, valid in listed:
        table.append(Call(made.__name__, _used(made), kinds, valid, NOISE | NAMES_OF_ROLES, _policy_is_right))
    return table


def _presets() -> list[Call]:
    presets, rates = gb.presets, {"n_estimators": "count or 0", "learning_rate": "rates"}
    sglb = {**rates, "max_depth": "count", "inverse_temperature": "anything", "shrinkage": "anything"}
    sglb |= {"max_bins": "bins"}
    rgbm = dict.fromkeys(("selection", "t", "groups"), "anything") | {"step": "word", "stump": "word"}
    smart = {**rates, "order": "anything", "rho": "anything", "loss": "word", "variance_control": "anything"}
    asynchronous = {**rates, "workers": "count", "rate": "share", "max_leaves": "count", "loss": "word"}
    asynchronous |= {"start": "start", "build_time": "anything", "server_time": "anything"}
    forest = {"n_estimators": "count or 0", "rate": "share", "learners": "anything", "max_depth": "count"}
    forest |= {"min_samples_leaf": "count"}
    functional = {"base_learner": "policy", "n_estimators": "count or 0"}
    listed: list[tuple[Any, str, dict[str, str]]] = [
        (presets.sglb_paper, "Regressor", {**sglb, "sampling": "policy"}),
        (presets.best, "Regressor", {"n_rows": "count or None", "n_classes": "count or None"}),
        (presets.random_forest, "Regressor", forest),
        (presets.rgbm_paper, "Regressor", {**rgbm, "n_estimators": "count or 0"}),
        (presets.smart_paper, "Classifier", smart),
        (presets.asynch_sgbdt_paper, "Classifier", asynchronous),
        (presets.functional_paper, "Regressor", functional),
    ]
    aliases = {"t": ("learners",), "groups": ("learners",), "order": ("sampling",), **NOISE}
    return [
        Call(preset.__name__, _preset(preset, kind), kinds, {}, aliases, _endless) for preset, kind, kinds in listed
    ]


def _preset(preset: Callable[..., dict[str, Any]], kind: str) -> Callable[..., object]:
    """A short fit with the parameters of a preset."""

    def fit(**given: Any) -> object:
        made = {**preset(**given), **({"n_estimators": 2} if "n_estimators" not in given else {})}
        data = small()
        return getattr(gb, f"GradientBoosting{kind}")(n_jobs=1, **made).fit(
            data["x"], data["labels" if kind == "Classifier" else "y"]
        )

    return fit


def _used(make: Any) -> Callable[..., object]:
    """Make the object; a policy that can be made is used in a fit, since some look at the data first."""
    roles = {
        "gpuboost.sampling": "sampling",
        "gpuboost.growth.categorical": "categorical_splits",
        "gpuboost.data.encoding": "categorical_encoding",
        "gpuboost.langevin.schedule": "schedule",
        "gpuboost.langevin": "langevin",
        "gpuboost.learners.families": "base_learner",
        "gpuboost.learners.feature_costs": "feature_costs",
        "gpuboost.learners": "learners",
        "gpuboost.learning_rates": "learning_rate",
    }

    def use(**given: Any) -> object:
        made, kind = make(**given), type(make(**given))
        role = next((role for start, role in roles.items() if kind.__module__.startswith(start)), None)
        if role is None:
            return made
        if kind is gb.QuerySampling:
            return _fitted("Ranker")(sampling=made)
        if role == "schedule":
            role, made = "langevin", gb.Langevin(schedule=made)
        depth = 1 if kind.__name__ in ("RandomLearners", "CyclicGroups", "SemiGreedyGroups") else 2
        more = {"categorical_features": [3]} if kind.__name__ == "CategoricalRidge" else {}
        data = small()
        x = np.column_stack([data["x"][:, :3], data["grades"]])
        model = gb.GradientBoostingRegressor(n_estimators=2, n_jobs=1, max_depth=depth, **{role: made}, **more)
        return model.fit(x, data["y"])

    return use


def _policy_is_right(name: str, value: Any) -> bool:
    if name == "truncation" and value is True:
        return False
    if name == "log":
        return isinstance(value, (str, Path))
    if name == "schedule" and callable(value):
        return True  # a user's function, whose errors are its own
    return _endless(name, value)


def _plots() -> list[Call]:
    data = small()
    model, effects, chain = data["regressor"], data["effects"], data["chain"]
    traces = chain.trace(data["x"])
    plot, export = gb.plot, gb.export
    return [
        Call("plot.importance", plot.importance, {"model": "model", "kind": "word", "top": "count"}, {"model": model}),
        Call(
            "plot.metrics",
            plot.metrics,
            {"results": "anything", "metric": "anything"},
            {"results": {"a": {"rmse": [1.0, 0.5]}}},
            {"results": ("model",)},
        ),
        Call(
            "plot.tree",
            plot.tree,
            {"model": "model", "round": "count or 0", "output": "count or 0"},
            {"model": model},
            skip=lambda name, value: name == "round" and isinstance(value, int) and value == -1,
        ),
        Call(
            "plot.partial_effect",
            plot.partial_effect,
            {"model": "model", "feature": "anything", "output": "count or 0"},
            {"model": effects, "feature": 0},
        ),
        Call(
            "plot.shap_summary",
            plot.shap_summary,
            {"model": "model", "X": "rows", "output": "anything", "top": "count"},
            {"model": model, "X": data["x"]},
        ),
        Call(
            "plot.dependence",
            plot.dependence,
            {"model": "model", "X": "rows", "feature": "anything", "colour_by": "anything", "output": "anything"},
            {"model": model, "X": data["x"], "feature": 0},
        ),
        Call("plot.staleness", plot.staleness, {"model": "model"}),
        Call("plot.timeline", plot.timeline, {"model": "model"}),
        Call("plot.trace", plot.trace, {"traces": "anything", "burn_in": "anything"}, {"traces": traces}),
        Call(
            "plot.autocorrelation",
            plot.autocorrelation,
            {"traces": "anything", "burn_in": "anything", "lags": "count or None"},
            {"traces": traces},
            skip=_endless,
        ),
        Call(
            "plot.uncertainty",
            plot.uncertainty,
            {"model": "model", "X": "rows", "feature": "count or 0", "coverage": "share", "samples": "count or None"},
            {"model": chain, "X": data["x"]},
        ),
        Call(
            "plot.intervals",
            plot.intervals,
            {"model": "model", "X": "rows", "y": "anything", "coverage": "share", "along": "anything"},
            {"model": gb.conformal(data["regressor"], data["x"], data["y"]), "X": data["x"]},
        ),
        Call("export.to_onnx", export.to_onnx, {"model": "model"}),
        Call("export.to_xgboost", export.to_xgboost, {"model": "model"}, {"path": "x.json"}),
        Call("export.to_treelite", export.to_treelite, {"model": "model"}),
        Call("export.to_table", export.to_table, {"model": "model"}),
        Call("export.to_shap_dict", export.to_shap_dict, {"model": "model"}),
    ]


def _theory() -> list[Call]:
    theory, posterior, traces = gb.theory, gb.posterior, np.random.default_rng(0).normal(size=(2, 40))
    rate = {"gap": "anything", "rounds": "anything", "sigma": "anything", "mu": "anything", "xi": "anything"}
    return [
        Call(
            "theory.linear_bound",
            theory.linear_bound,
            rate,
            {"gap": 1.0, "rounds": 3, "sigma": 1.0, "mu": 0.1, "xi": 0.5},
        ),
        Call("theory.rank_chances", theory.rank_chances, {"k": "count", "t": "count"}, {"k": 5, "t": 1}, skip=_endless),
        Call("theory.orthonormal_edge", theory.orthonormal_edge, {"p": "count"}, skip=_endless),
        Call("theory.minimal_cosine_angle", theory.minimal_cosine_angle, {"B": "anything"}),
        Call("theory.stability_limit", theory.stability_limit, {"staleness": "real or 0"}),
        Call("posterior.r_hat", posterior.r_hat, {"traces": "anything"}, {"traces": traces}),
        Call(
            "posterior.autocorrelation_time", posterior.autocorrelation_time, {"traces": "anything"}, {"traces": traces}
        ),
        Call(
            "posterior.interval_score",
            posterior.interval_score,
            {"y": "anything", "bounds": "anything", "coverage": "share"},
            {"y": [1.0], "bounds": [[0.0, 2.0]], "coverage": 0.5},
            {"bounds": ("y",)},
        ),
        Call("posterior.diagnose", posterior.diagnose, {"traces": "anything"}, {"traces": traces}),
        Call(
            "posterior.member_rounds",
            posterior.member_rounds,
            {"rounds": "anything", "members": "count", "burn_in": "anything"},
            {"rounds": 20, "members": 4},
            {"members": ("samples",), "rounds": ("samples",)},
        ),
        Call(
            "posterior.separation",
            posterior.separation,
            {"inside": "anything", "outside": "anything"},
            {"inside": [1.0, 2.0], "outside": [3.0]},
        ),
    ]
