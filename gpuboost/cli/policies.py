"""Parameters of ``train`` that are policies, each made of several options or of text."""

from __future__ import annotations

import argparse
from typing import Any

from gpuboost.errors import InputError

LANGEVIN = ("inverse_temperature", "temperature", "shrinkage", "prior_variance", "random_from")
"""Options of ``gb.Langevin``."""

COSTS = {"feature_costs": "feature", "split_cost": "split", "cost_tradeoff": "tradeoff"}
"""Options of ``gb.FeatureCosts``, and their names there."""


def langevin(options: argparse.Namespace) -> dict[str, Any]:
    """The Langevin policy of the options, and the number of draws to keep of its chain.

    Raises
    ------
    InputError
        If there are options of it without ``--langevin``.
    """
    from gpuboost.langevin import Langevin

    asked = {name: value for name, value in vars(options).items() if name in LANGEVIN}
    samples = {name: value for name, value in vars(options).items() if name == "posterior_samples"}
    if options.langevin:
        return {"langevin": Langevin(**asked), **samples}
    for name in (*asked, *samples):
        raise InputError(f"--{name.replace('_', '-')}: is of Langevin boosting; add --langevin.")
    return {}


def feature_costs(options: argparse.Namespace) -> dict[str, Any]:
    """The costs of columns and splits.

    Raises
    ------
    InputError
        If there is a trade-off, and nothing that it is a factor of.
    """
    from gpuboost.learners import FeatureCosts

    asked = {COSTS[name]: value for name, value in vars(options).items() if name in COSTS}
    if list(asked) == ["tradeoff"]:
        raise InputError("--cost-tradeoff: is a factor of costs; add --feature-costs or --split-cost.")
    return {"feature_costs": FeatureCosts(**asked)} if asked else {}


def sketch(options: argparse.Namespace) -> dict[str, Any]:
    """The sketch that text such as random_projection:5 stands for.

    Raises
    ------
    InputError
        If there is no such sketch, or no such number of outputs.
    """
    from gpuboost.multi_output import RandomOutputs, RandomProjection, TopOutputs

    text = getattr(options, "sketch", None)
    if text is None:
        return {}
    name, _, outputs = text.partition(":")
    kinds = {"top_outputs": TopOutputs, "random_outputs": RandomOutputs, "random_projection": RandomProjection}
    if name not in kinds or not outputs.isdecimal():
        raise InputError(
            f"--sketch: must be top_outputs:K, random_outputs:K or random_projection:K, of K outputs; got {text!r}."
        )
    return {"sketch": kinds[name](int(outputs))}
