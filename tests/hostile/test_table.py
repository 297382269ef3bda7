"""The table of parameters that the campaign draws from has every public function, with each of its parameters."""

from __future__ import annotations

import inspect
import warnings
from collections.abc import Iterator
from typing import Any

import pytest
from support.hostile.campaign import Tally
from support.hostile.parameters import calls

import gpuboost as gb
from gpuboost import public

WITH_METHODS = (
    "ClassifierPredictor",
    "ConformalClassifier",
    "ConformalRegressor",
    "Dataset",
    "GradientBoostingClassifier",
    "GradientBoostingRanker",
    "GradientBoostingRegressor",
    "Log",
    "ModelPredictor",
)
"""Classes whose methods users call. Those of policies, losses and callbacks are called by a fit."""

MADE_BY_THE_LIBRARY = {
    *("ClassifierPredictor", "ConformalClassifier", "ConformalRegressor", "Log", "ModelPredictor", "PosteriorFit"),
    *("Calibration", "Diagnostics", "Uncertainty", "Angle", "Guarantee", "TheoremConstant"),
    *(
        "Plan",
        "Round",
        "Watcher",
        "Watchers",
        "BaseLoss",
        "Custom",
        "CustomArrays",
        "LossFacts",
        "RankingArrays",
        "SavedCustom",
        "Metric",
    ),
    *(
        "CutRule",
        "FeatureViews",
        "GainNoise",
        "WeightedNodes",
        "charged",
        "cut_rule",
        "gain_noise",
        "prepared",
        "weighted",
    ),
}
"""Results and bases, which users read or derive from."""

OF_THE_LOOP = {"Dataset.binned", "Dataset.training_set"}

KEPT_OUT = {
    ("Checkpoint", "every"): "in the table of policies",
    ("EarlyStopping", "rounds"): "in the table of policies",
    ("ProgressBar", "console"): "an object of rich",
    ("get_params", "deep"): "of scikit-learn",
    ("Asynchronous", "address"): "any text is one, of a cluster that would be waited for",
    ("DataParallel", "address"): "the same",
    ("Ray", "address"): "the same",
}
"""(function, parameter) -> why no wrong value of it is tried."""


def parameters_of(function: Any) -> list[str]:
    kinds = (inspect.Parameter.VAR_POSITIONAL, inspect.Parameter.VAR_KEYWORD)
    found = inspect.signature(function).parameters.values()
    return [p.name for p in found if p.name not in ("self", "cls") and p.kind not in kinds]


def functions() -> Iterator[tuple[str, list[str]]]:
    """Every public function, constructor and method: its name, and its parameters."""
    places = [("", {name: getattr(gb, name) for name in public.PUBLIC})]
    for name in public.MODULES:
        module = getattr(gb, name)
        listed = getattr(module, "__all__", dir(module))
        own = {word: getattr(module, word) for word in listed if not word.startswith("_")}
        package = module.__name__ if name == "presets" else "gpuboost"
        places.append(
            (f"{name}.", {w: v for w, v in own.items() if str(getattr(v, "__module__", "")).startswith(package)})
        )
    for _, objects in places:
        for word, made in objects.items():
            name = getattr(made, "__name__", word)  # times.Exponential is ExponentialTimes
            if inspect.isclass(made) and not issubclass(made, Exception):
                if name not in MADE_BY_THE_LIBRARY and not getattr(made, "_is_protocol", False):
                    yield name, parameters_of(made)
                if name in WITH_METHODS:
                    methods = inspect.getmembers(made, lambda m: inspect.isfunction(m) or inspect.ismethod(m))
                    yield from (
                        (f"{name}.{method.__name__}", parameters_of(method))
                        for _, method in methods
                        if not method.__name__.startswith("_") and method.__module__.startswith("gpuboost")
                    )
            elif inspect.isfunction(made) and name not in MADE_BY_THE_LIBRARY:
                yield name, parameters_of(made)


@pytest.mark.slow
def test_every_public_parameter_is_in_the_table(tally: Tally) -> None:
    tried: dict[str, set[str]] = {}
    with warnings.catch_warnings(action="ignore"):
        table = calls()
    for call in table:
        name = call.name.partition("(")[0].rpartition(".")[2]
        tried.setdefault(name, set()).update(call.kinds)
    for kind in ("Classifier", "Ranker", "Regressor"):
        tried[f"GradientBoosting{kind}"] = tried[kind]
    for name, parameters in functions():
        last = name.rpartition(".")[2]
        if name in OF_THE_LOOP:
            continue
        tally.add("functions")
        for parameter in parameters:
            tally.add("parameters")
            if parameter not in tried.get(last, ()) and (last, parameter) not in KEPT_OUT:
                tally.fault(name, f"{parameter} is in no call of tests/support/hostile/parameters.py or more_calls.py")
    tally.check()
