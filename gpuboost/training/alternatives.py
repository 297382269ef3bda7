"""The nearest sound composition to one that is not, as parameters of an estimator."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Iterator, Mapping
from dataclasses import is_dataclass, replace
from math import inf
from typing import Any

from gpuboost.errors import RecipeError
from gpuboost.execution.protocol import ExecutionTraits
from gpuboost.langevin import Langevin
from gpuboost.records import declared
from gpuboost.sampling import ImportanceSampling, UniformSampling
from gpuboost.sampling.protocol import SamplingTraits

Parameters = dict[str, Any]

PLAIN: Parameters = {
    "langevin": None,
    "posterior_samples": None,
    "base_learner": None,
    "execution": None,
    "sampling": None,
    "learners": None,
    "growth": "depthwise",
    "step": "auto",
    "monotonic_cst": None,
    "interaction_cst": None,
    "forced_splits": None,
    "feature_costs": None,
    "feature_weights": None,
    "early_stopping_rounds": None,
    "callbacks": (),
    "reg_alpha": 0.0,
    "max_delta_step": 0.0,
    "path_smooth": 0.0,
    "min_split_gain": 0.0,
    "min_samples_leaf": 1,
    "random_strength": 0.0,
    "extra_trees": False,
    "multi_output": "one_tree_per_output",
    "sketch": None,
}
"""A neutral value of each parameter that can worsen a verdict; changes of the first ones are undone first"""

STEPS = "auto", "constant", "line_search", "gradient", "newton"
RATES = 1.0, 0.5, 0.1, 0.03, 0.01, 0.003, 0.001


def sound_alternative(params: Mapping[str, Any], is_sound: Callable[[Parameters], bool]) -> Parameters | None:
    """Changes of parameters by which the verdict is sound, none of which can be left out; None if none are found.

    is_sound: True if the composition of these parameters is refused by nothing and sound.
    """
    alternatives: list[Parameters] = []
    for by_rate in _candidates(params):
        full = next((changes for changes in by_rate if _is_sound({**params, **changes}, is_sound)), None)
        if full is not None:
            alternatives.append(_minimal(params, full, is_sound))
        if alternatives and len(alternatives[-1]) == 1:
            break
    if not alternatives:
        return None
    fewest = min(alternatives, key=len)
    return {name: _mildest(params, fewest, name, is_sound) for name in fewest}


def _candidates(params: Mapping[str, Any]) -> Iterator[list[Parameters]]:
    """Candidate sets of changes to neutral values, in lists of falling learning rates.

    The first lists keep the given step rule, the others have one of ``STEPS`` each.
    """
    changes = {name: value for name, value in PLAIN.items() if name in params and not _same(params[name], value)}
    changes.pop("step", None)
    rate = params["learning_rate"]
    highest = rate if isinstance(rate, (int, float)) else inf  # one rate in place of a schedule
    lower = [{"learning_rate": number} for number in RATES if number < highest]
    for step in (None, *STEPS):
        for kept in _with_langevin(params, changes):
            step_change = {} if step is None or _same(params["step"], step) else {"step": step}
            yield [{**kept, **step_change, **of_rate} for of_rate in ({}, *lower)]


def _with_langevin(params: Mapping[str, Any], changes: Parameters) -> Iterator[Parameters]:
    """The changes that keep the noise, as the theorem requires it, and those that leave the noise out."""
    policy = params.get("langevin")
    if isinstance(policy, Langevin):
        if declared(SamplingTraits, params.get("sampling")).frozen_from is not None:
            yield {"langevin": replace(policy, noise_scale="weight")}  # fixed probabilities need no other sampler
        shrinkage = None if policy.shrinkage == 0.0 else policy.shrinkage
        noise = replace(policy, structure_noise=True, leaf_noise=True, shrinkage=shrinkage)
        kept = replace(noise, schedule=None, random_from=None, noise_scale=_named(policy.noise_scale))
        without = {name: value for name, value in changes.items() if name not in ("langevin", "posterior_samples")}
        yield without if kept == policy else {"langevin": kept, **without}
    yield changes


def _named(scale: Any) -> str | None:
    return scale if isinstance(scale, str) else None  # not a function of one's own


def _minimal(params: Mapping[str, Any], changes: Parameters, is_sound: Callable[[Parameters], bool]) -> Parameters:
    """The changes, which are enough, without those that are not needed."""
    for name in [*PLAIN, "learning_rate"]:
        fewer = {other: value for other, value in changes.items() if other != name}
        if name in changes and _is_sound({**params, **fewer}, is_sound):
            changes = fewer
    return changes


def _mildest(params: Mapping[str, Any], changes: Parameters, name: str, is_sound: Callable[[Parameters], bool]) -> Any:
    """The first of the values near the given one that makes the composition sound; else the value of ``changes``."""
    for value in _near(name, params[name]):
        if _is_sound({**params, **changes, name: value}, is_sound):
            return value
    return changes[name]


def _near(name: str, value: Any) -> Iterator[Any]:
    """Values of a parameter that change little of the given one, the nearest first."""
    if name == "sampling" and is_dataclass(value) and not isinstance(value, type):
        exact: Any = value
        if declared(SamplingTraits, value).variance_control != "leaf_refit":
            exact = replace(value, variance_control="leaf_refit")
            yield exact
        if isinstance(exact, ImportanceSampling) and exact.rate is not None:
            yield UniformSampling(exact.rate)
    if name == "execution" and declared(ExecutionTraits, value).leaf_values == "worker" and is_dataclass(value):
        yield replace(value, leaf_values="server")  # type: ignore[type-var]


def _is_sound(params: Parameters, is_sound: Callable[[Parameters], bool]) -> bool:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        try:
            return is_sound(params)
        except RecipeError:
            return False


def _same(value: Any, other: Any) -> bool:
    return value is other or (type(value) is type(other) and bool(value == other))
