"""Random compositions of small fits, and the facts of a run that a test computes itself.

Nothing here reads a verdict, a report or a guarantee: tests hold those against these numbers.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

import gpuboost as gb

Array = np.ndarray

REGRESSION: tuple[Any, ...] = (
    "squared_error", "squared_error", gb.losses.Huber(0.5), "absolute_error", gb.losses.Quantile(0.3),
    "poisson", "gamma",
)  # fmt: skip
BINARY: tuple[Any, ...] = ("logistic", "logistic", gb.losses.Logistic(0.1), "exponential")
WORKERS: tuple[dict[str, Any], ...] = (
    {}, {"staleness": "damp"}, {"staleness": "drop", "max_staleness": 1}, {"staleness": "block", "max_staleness": 1},
    {"leaf_values": "worker"}, {"leaf_values": "worker", "staleness": "damp"}, {"sample_at": "version"},
)  # fmt: skip


USUAL = {
    "step": "gradient", "growth": "depthwise", "min_samples_leaf": 1, "min_split_gain": 0.0, "random_strength": 0.0,
    "reg_alpha": 0.0, "max_delta_step": 0.0, "path_smooth": 0.0, "extra_trees": False,
    "learners": None, "sampling": None, "execution": None, "categorical_features": "from_dtype",
}  # fmt: skip
"""Values of the pieces that change the least."""


@dataclass(frozen=True)
class Composition:
    """A fit: estimator parameters, rows, target and weights."""

    kind: str  # "regression", "binary" or "multiclass"
    params: dict[str, Any]
    x: Array
    y: Array
    weight: Array | None

    def estimator(self, **params: Any) -> Any:
        kind = gb.GradientBoostingRegressor if self.kind == "regression" else gb.GradientBoostingClassifier
        return kind(**{**self.params, **params})


def _one(rng: np.random.Generator, *options: Any) -> Any:
    return options[int(rng.integers(len(options)))]


def _rare(rng: np.random.Generator, usual: Any, *options: Any, chance: float = 0.3) -> Any:
    return _one(rng, *options) if rng.random() < chance else usual


def composition(rng: np.random.Generator) -> Composition:
    """A random composition; many of them are refused."""
    kind = _rare(rng, "regression", "binary", "binary", "multiclass", chance=0.5)
    x, y, weight = _rows(rng, kind)
    params: dict[str, Any] = {
        "n_estimators": int(rng.integers(1, 6)),
        "n_jobs": 1,
        "random_state": int(rng.integers(1000)),
        "learning_rate": _one(rng, 0.1, 0.5, 1.0, 1.5, 1.9, 2.5),
        "step": _one(rng, "auto", "auto", "newton", "gradient", "constant", "line_search", gb.LineSearchStep("leaf")),
        "growth": _one(rng, "depthwise", "depthwise", "leafwise", "oblivious", "sign_stump"),
        "max_depth": _one(rng, 1, 1, 2, 3),
        "reg_lambda": _one(rng, None, 0.0, 0.0, 10.0),
        "min_child_weight": _one(rng, 1.0, 0.0),
        "min_samples_leaf": _rare(rng, 1, 5, chance=0.1),
        "reg_alpha": _rare(rng, 0.0, 2.0, chance=0.1),
        "max_delta_step": _rare(rng, 0.0, 0.2, chance=0.1),
        "min_split_gain": _rare(rng, 0.0, 0.1, chance=0.1),
        "random_strength": _rare(rng, 0.0, 2.0, chance=0.1),
        "extra_trees": _rare(rng, False, True, chance=0.1),
        "learners": _rare(
            rng,
            None,
            2,
            gb.RandomGroup(),
            gb.RandomLearners(5),
            gb.RandomByNode(1),
            gb.RandomByLevel(1),
            gb.CyclicGroups(),
            gb.SemiGreedyGroups(),
        ),
        "sampling": _rare(rng, None, 0.5, 1.0, gb.MVS(0.4), gb.GOSS(), gb.WeightTrimming(0.2), *_importance(rng)),
        "execution": _rare(rng, None, *(_workers(rng) for _ in range(5)), gb.DataParallel(2)),
        "categorical_features": _rare(rng, "from_dtype", [2], chance=0.1),
        "binning": _one(rng, "quantile", "greedy_log_sum"),
    }
    _change(rng, params)
    losses = {"regression": REGRESSION, "binary": BINARY, "multiclass": ("auto",)}[kind]
    params["loss"] = _one(rng, *losses)
    if params["loss"] in ("poisson", "gamma"):
        y = np.exp(0.5 * y)
    return Composition(kind, {k: v for k, v in params.items() if not (k == "loss" and v == "auto")}, x, y, weight)


def _change(rng: np.random.Generator, params: dict[str, Any]) -> None:
    """Fewer pieces, or more of them, where they go together."""
    if rng.random() < 0.6:  # few pieces at a time
        params |= {name: value for name, value in USUAL.items() if rng.random() < 0.7}
    if params["growth"] == "sign_stump":
        params["max_depth"] = 1
    if getattr(params["execution"], "workers", 1) > 1:
        params["n_estimators"] += 5
    if params["categorical_features"] != "from_dtype" and isinstance(params["learners"], gb.RandomLearners):
        params["learners"] = None  # refused as a fit begins
    if rng.random() < 0.2:
        policy = {"shrinkage": _one(rng, None, 0.1, 0.0), "temperature": _one(rng, None, 50.0)}
        policy |= {"random_from": _rare(rng, None, 0, 2), "structure_noise": rng.random() < 0.9}
        policy["noise_scale"] = None if policy["temperature"] is None else "weight"
        params["langevin"] = gb.Langevin(**policy, allow_unproven=bool(rng.random() < 0.5))
    if rng.random() < 0.1:
        params["monotonic_cst"] = [1, 0, -1] if params["categorical_features"] != [2] else [1, 0, 0]
    params["interaction_cst"] = _rare(rng, None, "pairwise", "no_interactions", [[0, 2]], chance=0.1)
    if rng.random() < 0.15:
        params["base_learner"] = _one(rng, gb.learners.Linear(), gb.learners.LinearTree(2), gb.learners.Spline())
        params["learners"] = None


def _importance(rng: np.random.Generator) -> tuple[Any, ...]:
    control = _one(rng, "leaf_refit", "horvitz_thompson", "none", "node")
    frozen = _one(rng, None, None, 1) if control == "leaf_refit" else None
    return (gb.ImportanceSampling(0.5, floor=0.3, variance_control=control, frozen_from=frozen),)


def _workers(rng: np.random.Generator) -> Any:
    count = int(rng.integers(1, 6))
    rules = _one(rng, *WORKERS)
    return gb.SimulatedWorkers(count, build_time=1.0, server_time=0.2, allow_unproven=bool(rng.random() < 0.7), **rules)


def _rows(rng: np.random.Generator, kind: str) -> tuple[Array, Array, Array | None]:
    n = int(rng.integers(12, 60))
    x = rng.integers(0, int(rng.integers(2, 9)), (n, 3)).astype(float)
    score = x[:, 0] - 0.5 * x[:, 1] + rng.normal(size=n)
    y: Array = score - score.mean()
    if kind == "binary":
        y = (score > np.median(score)).astype(int)
    elif kind == "multiclass":
        y = np.digitize(score, np.quantile(score, [0.3, 0.7]))
    weight = _one(rng, None, None, rng.integers(1, 4, n).astype(float), rng.uniform(0.1, 2.0, n))
    return x, y, weight


# numbers of a run


def row_losses(loss: Any, y: Array, f: Array) -> Array:
    """(n,) loss of each row at scores (k, n), from its textbook formula."""
    if loss.name == "softmax":
        top = f.max(axis=0)
        picked = f[y.astype(int), np.arange(len(y))]
        return np.asarray(np.log(np.exp(f - top).sum(axis=0)) + top - picked)
    formula: Callable[[Array, Array], Array] = {
        "squared_error": lambda y, f: 0.5 * (y - f) ** 2,
        "huber": lambda y, f: _huber(np.abs(y - f), loss.parameter),
        "absolute_error": lambda y, f: np.abs(y - f),
        "quantile": lambda y, f: np.where(y > f, loss.parameter * (y - f), (1.0 - loss.parameter) * (f - y)),
        "poisson": lambda y, f: _on(lambda c: np.exp(c) - y * c, lambda c: np.exp(c) - y, f),
        "gamma": lambda y, f: _on(lambda c: y * np.exp(-c) + c, lambda c: 1.0 - y * np.exp(-c), f),
        "logistic": lambda y, f: np.logaddexp(0.0, np.where(y > 0.5, -f, f)) + 0.5 * loss.parameter * f * f,
        "exponential": lambda y, f: _on(np.exp, np.exp, np.where(y > 0.5, -f, f)),
    }[loss.name]
    return formula(y, f[0])


def _on(value: Callable[[Array], Array], slope: Callable[[Array], Array], f: Array) -> Array:
    """The loss, which goes on as its tangent where |f| > 40."""
    c = np.clip(f, -40.0, 40.0)
    return value(c) + slope(c) * (f - c)


def _huber(r: Array, delta: float) -> Array:
    return np.where(r <= delta, 0.5 * r * r, delta * (r - 0.5 * delta))


def mean_losses(model: Any, case: Composition) -> Array:
    """(rounds + 1,) weighted mean of the training loss before the first round and after each."""
    y = case.y.astype(float)
    start = np.repeat(model.ensemble_.bias[:, None], len(y), axis=1)
    scores = [start, *model.trace(case.x)] if model.n_iter_ else [start]
    return np.array([np.average(row_losses(model.loss_, y, f), weights=case.weight) for f in scores])
