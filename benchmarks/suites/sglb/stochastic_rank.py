"""Ranking under SGLB (section 8 of its paper): StochasticRank with Langevin noise and without, beside LambdaMART."""

from __future__ import annotations

import warnings
from typing import Any

import numpy as np

import gpuboost as gb
from gpuboost.benchmarks.data.ranking_sets import letor_like
from gpuboost.benchmarks.harness.experiments import Finding, Options
from gpuboost.benchmarks.harness.store import Data
from gpuboost.errors import OutsideTheoryWarning

COMMON: dict[str, Any] = {"max_depth": 4, "reg_lambda": 0.0, "eval_at": 10}


def methods() -> dict[str, dict[str, Any]]:
    """Parameters of each method: the usual step of LambdaMART, and as long ones as the smoothed metric's curvature
    allows, times 10, since the mean over a leaf is far flatter than the bound."""
    smooth, free = gb.losses.StochasticRank(), gb.losses.StochasticRank(scale_free=True)
    cold = gb.Langevin(temperature=3e4, shrinkage=1e-4, allow_unproven=True)
    return {
        "LambdaMART": {"loss": "lambdamart", "learning_rate": 0.1},
        "StochasticRank": {"loss": smooth, "learning_rate": 20.0},
        "StochasticRank, scale-free": {"loss": free, "learning_rate": 0.3},
        "StochasticRank, SGLB": {"loss": smooth, "learning_rate": 20.0, "langevin": cold},
        "StochasticRank, scale-free, SGLB": {"loss": free, "learning_rate": 0.3, "langevin": cold},
    }


def ranking(options: Options) -> Finding:
    """NDCG@10 of training and held-out queries by rounds, mean over seeds."""
    queries, rounds = (60, 20) if options.small else (600, 300)
    data = letor_like(queries=queries, queries_test=queries // 2, seed=11, typical=30, most=100)
    seeds = options.repeats or (1 if options.small else 3)
    curves: dict[str, dict[str, list[float]]] = {}
    finals: dict[str, list[float]] = {}
    for name, params in methods().items():
        runs = []
        for seed in range(seeds):
            options.tell(f"ranking: {name}, seed {seed + 1} of {seeds}")
            runs.append(_followed(data, seed, options.threads, rounds, params))
        curves[name] = {of: np.mean([run[of] for run in runs], axis=0).tolist() for of in ("train", "test")}
        finals[name] = [run["test"][-1] for run in runs]
    rows = tuple(
        (
            name,
            f"{curve['train'][-1]:.4f}",
            f"{curve['test'][-1]:.4f}",
            _spread(finals[name]),
            f"{max(curve['test']):.4f}",
        )
        for name, curve in curves.items()
    )
    n, d = data.X.shape
    return Finding(
        f"Section 8: {n:,} documents x {d} in {queries} synthetic queries, {rounds} rounds of depth 4, {seeds} seeds",
        ("method", "train NDCG@10", "held-out NDCG@10", "s.e. over seeds", "best round's"),
        rows,
        ("scaled: the paper of StochasticRank has Yahoo and MSLR-WEB10K, 1,000 rounds and tuned parameters.",),
        {"curves": curves},
    )


def _spread(finals: list[float]) -> str:
    return f"{np.std(finals, ddof=1) / len(finals) ** 0.5:.4f}" if len(finals) > 1 else ""


def _followed(data: Data, seed: int, threads: int, rounds: int, params: dict[str, Any]) -> dict[str, list[float]]:
    evaluated = {"train": (data.X, data.y, data.group), "test": (data.X_test, data.y_test, data.group_test)}
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", OutsideTheoryWarning)  # long steps are meant
        model = gb.GradientBoostingRanker(n_estimators=rounds, random_state=seed, n_jobs=threads, **COMMON, **params)
        model.fit(data.X, data.y, group=data.group, eval_set=evaluated)
    return {name: list(next(iter(model.evals_result_[name].values()))) for name in evaluated}
