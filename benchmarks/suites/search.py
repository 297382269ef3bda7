"""Search of parameters: ``gb.search`` beside scikit-learn's ``GridSearchCV`` of the same estimator, and halving.

Every method tries the same 18 settings on the same 5 folds, each with 100 rounds or, in the case ``rounds``, with three
numbers of rounds: ``GridSearchCV`` fits for each number, ``gb.search`` reads all of them from one curve.
``GridSearchCV`` has a process for each thread, which are started before the clock; both searches end with the fit to
all rows. The scores of all settings must agree.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Any

import numpy as np
from sklearn.model_selection import GridSearchCV, StratifiedKFold

import gpuboost as gb
from gpuboost.benchmarks.harness.experiments import Experiment, Finding, Options, Part
from gpuboost.benchmarks.harness.store import Array

GRID = {"max_depth": [2, 4, 6], "learning_rate": [0.05, 0.1, 0.2], "reg_lambda": [1.0, 10.0]}
ROUNDS, BUDGET, REPEATS = 100, 6, 3
SHAPES = {"small": (1_000, 10, (1.0,)), "medium": (20_000, 28, (1.0,)), "rounds": (20_000, 28, (0.25, 0.5, 1.0))}
"""Rows, features, and the shares of the rounds that each setting is tried with"""


def problem(n: int, d: int) -> tuple[Array, Array]:
    """Two classes, by an interaction and a sum."""
    rng = np.random.default_rng(0)
    x = rng.normal(size=(n, d))
    return x, (x[:, 0] * x[:, 1] + x[:, 2] + 0.5 * rng.normal(size=n) > 0).astype(int)


def compared(title: str, n: int, d: int, shares: tuple[float, ...], options: Options) -> Finding:
    """Medians of alternating runs, after one that is not counted."""
    x, y = problem(n, d)
    rounds = 8 if options.small else ROUNDS
    grid = GRID | {"n_estimators": [round(share * rounds) for share in shares]}
    model = gb.GradientBoostingClassifier(n_estimators=rounds, random_state=0, n_jobs=options.threads, device="cpu")
    single = gb.GradientBoostingClassifier(n_estimators=rounds, random_state=0, n_jobs=1, device="cpu")
    folds = StratifiedKFold(5, shuffle=True, random_state=0)
    theirs = GridSearchCV(single, grid, cv=folds, scoring="neg_log_loss", n_jobs=options.threads)
    methods: dict[str, Callable[[], Any]] = {
        "gb.search, every setting": lambda: gb.search(model, GRID, x, y, cv=folds),
        "GridSearchCV": lambda: theirs.fit(x, y),
        f"gb.search, budget={BUDGET}": lambda: gb.search(model, GRID, x, y, cv=folds, budget=BUDGET),
    }
    seconds: dict[str, list[float]] = {label: [] for label in methods}
    results: dict[str, Any] = {}
    for turn in range(1 + (options.repeats or REPEATS)):
        for label, method in methods.items():
            options.tell(f"{title}: {label}, turn {turn}")
            begun = time.perf_counter()
            results[label] = method()
            if turn:
                seconds[label].append(time.perf_counter() - begun)
    every, _, halved = (results[label] for label in methods)
    differ = _difference(every, theirs)
    ours = np.array(seconds["gb.search, every setting"])
    ratios = {label: float(np.median(np.array(taken) / ours)) for label, taken in seconds.items()}
    scores = [every.best.score, -float(theirs.best_score_), halved.best.score]
    rows = [
        (label, f"{np.median(taken):.2f}", f"{ratios[label]:.2f}", f"{score:.5f}")
        for (label, taken), score in zip(seconds.items(), scores, strict=True)
    ]
    numbers = " or ".join(map(str, grid["n_estimators"]))
    return Finding(
        f"{title}: {n:,} x {d}, 18 settings, 5 folds, {numbers} rounds, {options.threads} threads",
        ("method", "seconds", "times the first", "best log loss"),
        tuple(rows),
        (
            f"largest difference of a setting's score after the same rounds: {differ:.1e}",
            "GridSearchCV takes the loss after these rounds, gb.search that of the best round",
        ),
        {"seconds": seconds, "ratios": ratios, "scores": scores, "difference": differ},
    )


def _difference(every: Any, theirs: Any) -> float:
    """Largest difference between the scores of a setting after the same number of rounds."""
    curves = {tuple(trial.params[name] for name in GRID): trial.curve for trial in every.trials}
    means = zip(theirs.cv_results_["params"], theirs.cv_results_["mean_test_score"], strict=True)
    ours = [(curves[tuple(params[name] for name in GRID)][params["n_estimators"] - 1], mean) for params, mean in means]
    return max(abs(loss + mean) for loss, mean in ours)


def _part(name: str) -> Part:
    n, d, shares = SHAPES[name]

    def run(options: Options) -> Finding:
        return compared(name, min(n, 300) if options.small else n, d, shares, options)

    tried = "18 settings" if len(shares) == 1 else f"18 settings of {len(shares)} numbers of rounds"
    return Part(f"{name}: {n:,} x {d}, {tried}, 5 folds, beside GridSearchCV", run)


EXPERIMENT = Experiment("search", "Search of parameters", {name: _part(name) for name in SHAPES})
