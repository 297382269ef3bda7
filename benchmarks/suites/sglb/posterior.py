"""Langevin boosting as a posterior: the coverage of its intervals."""

from __future__ import annotations

from typing import Any

import numpy as np

import gpuboost as gb
from gpuboost.benchmarks.harness.experiments import Finding, Options
from gpuboost.benchmarks.harness.store import Array

COVERAGES = (0.5, 0.9, 0.95)
SHRINKAGES = (0.1, 0.2, 0.4)


def coverage(options: Options) -> Finding:
    """Coverage of the true function by central intervals of the mean: unit noise, 500 rows, defaults but the rounds.

    The prior's scale is chosen by the likelihood of new rows, not by the truth.
    """
    seeds = options.repeats or (1 if options.small else 4)
    inside: dict[str, dict[str, list[float]]] = {}
    for name, make in (("waves", _waves), ("friedman", _friedman)):
        by_share = inside[name] = {f"{share:g}": [] for share in COVERAGES}
        for seed in range(seeds):
            options.tell(f"coverage: {name}, {seed + 1} of {seeds}")
            rng = np.random.default_rng(seed)
            (x, f), (x_new, f_new) = make(500, rng), make(500, rng)
            y, y_new = f + rng.normal(size=500), f_new + rng.normal(size=500)
            models = [_regressor(gamma, options, seed).fit(x, y) for gamma in SHRINKAGES]
            best = min(models, key=lambda model: _surprise(model, x_new, y_new))
            for share in COVERAGES:
                low, high = best.predict_interval(x_new, share).T
                by_share[f"{share:g}"].append(float(np.mean((low < f_new) & (f_new < high))))
    rows = tuple(
        (name, *(f"{np.mean(fractions):.3f}" for fractions in by_share.values())) for name, by_share in inside.items()
    )
    columns = ("problem", *(f"{100 * share:g} % interval" for share in COVERAGES))
    return Finding(f"Share of true values inside, {seeds} seeds", columns, rows, (), {"inside": inside})


def _regressor(gamma: float, options: Options, seed: int) -> Any:
    rounds, samples = (400, 50) if options.small else (2000, 100)
    return gb.GradientBoostingRegressor(
        n_estimators=rounds, langevin=gb.Langevin(shrinkage=gamma), posterior_samples=samples, random_state=seed,
        n_jobs=options.threads,
    )  # fmt: skip


def _surprise(model: Any, x: Array, y: Array) -> float:
    uncertainty = model.predict_uncertainty(x)
    return float(np.mean(0.5 * np.log(uncertainty.total) + 0.5 * (y - uncertainty.mean) ** 2 / uncertainty.total))


def _waves(n: int, rng: np.random.Generator) -> tuple[Array, Array]:
    x = rng.normal(size=(n, 3))
    return x, np.sin(2.0 * x[:, 0]) + x[:, 1] * (x[:, 2] > 0.0)


def _friedman(n: int, rng: np.random.Generator) -> tuple[Array, Array]:
    x = rng.random((n, 5))
    bends = 2.0 * np.sin(np.pi * x[:, 0] * x[:, 1]) + 4.0 * (x[:, 2] - 0.5) ** 2
    return x, bends + 2.0 * x[:, 3] + x[:, 4]
