"""``gpuboost demo``: the main job from end to end, on real data that comes with scikit-learn."""

from __future__ import annotations

import argparse
import tempfile
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from gpuboost.cli.console import new_console
from gpuboost.cli.scores import Scores, baseline, scores

ROUNDS, DEPTH, RATE, LEAF_ROWS, PENALTY = 100, 4, 0.1, 20, 1.0
"""Parameters of both libraries."""


@dataclass(frozen=True)
class Set:
    """One data set; ``score`` is the one shown."""

    name: str
    about: str
    load: Callable[[], tuple[Any, Any]]
    classify: bool
    score: str


@dataclass(frozen=True)
class Outcome:
    """Held-out scores of three models, and True if the reloaded model gave the same bits."""

    ours: Scores
    sklearn: Scores
    baseline: Scores
    seconds: float
    same_bits: bool


def run(options: argparse.Namespace) -> int:
    """Train, evaluate, save and reload a model on data that needs no download."""
    console = new_console()
    outcomes = {}
    for data in _sets():
        if not options.quiet:
            console.print(f"[bold]{data.name}[/bold]: {data.about}", highlight=False)
        outcomes[data] = _outcome(data, options)
    console.print(_table(outcomes))
    same = all(outcome.same_bits for outcome in outcomes.values())
    verdict = "the same bits" if same else "OTHER BITS, which is a bug"
    text = f"Each model was saved as JSON and reloaded; the reloaded models predict {verdict}."
    console.print(text, highlight=False, soft_wrap=True)
    return 0 if same else 1


def _sets() -> tuple[Set, ...]:
    from sklearn import datasets

    return (
        Set(
            "breast_cancer",
            "is a tumour malignant? 569 rows, 30 features",
            lambda: datasets.load_breast_cancer(return_X_y=True),
            True,
            "log loss",
        ),
        Set(
            "diabetes",
            "how far does the disease progress? 442 rows, 10 features",
            lambda: datasets.load_diabetes(return_X_y=True),
            False,
            "RMSE",
        ),
        Set(
            "digits",
            "which digit is written? 1,797 rows, 64 pixels, 10 classes",
            lambda: datasets.load_digits(return_X_y=True),
            True,
            "log loss",
        ),
    )


def _outcome(data: Set, options: argparse.Namespace) -> Outcome:
    from sklearn import ensemble
    from sklearn.model_selection import train_test_split
    from threadpoolctl import threadpool_limits  # scikit-learn's own dependency

    import gpuboost

    x, y = data.load()
    labels = y if data.classify else None
    x, x_test, y, y_test = train_test_split(x, y, test_size=0.25, random_state=0, stratify=labels)
    family = (gpuboost.GradientBoostingRegressor, gpuboost.GradientBoostingClassifier)[data.classify]
    model: Any = family(
        n_estimators=ROUNDS,
        max_depth=DEPTH,
        learning_rate=RATE,
        min_samples_leaf=LEAF_ROWS,
        min_child_weight=1e-3,  # scikit-learn's own, which cannot be set
        reg_lambda=PENALTY,
        n_jobs=options.threads,
        random_state=0,
        verbose=0 if options.quiet else ROUNDS // 4,  # a live bar in a terminal, four lines in a log
    )
    start = time.perf_counter()
    model.fit(x, y)
    seconds = time.perf_counter() - start
    rivals = (ensemble.HistGradientBoostingRegressor, ensemble.HistGradientBoostingClassifier)
    rival = rivals[data.classify](
        max_iter=ROUNDS,
        max_depth=DEPTH,
        learning_rate=RATE,
        min_samples_leaf=LEAF_ROWS,
        l2_regularization=PENALTY,
        early_stopping=False,
        random_state=0,
    )
    with threadpool_limits(1, "openmp"):  # threads that wait in a loop take minutes where others need the cores
        rival.fit(x, y)
    return Outcome(
        scores(model, x_test, y_test),
        scores(rival, x_test, y_test),
        scores(baseline(y, None, classify=data.classify), x_test, y_test),
        seconds,
        _same_after_reload(model, x_test),
    )


def _same_after_reload(model: Any, x: Any) -> bool:
    """True if a saved and loaded model predicts the same to the last bit."""
    import gpuboost

    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "model.json"
        model.save_model(path)
        loaded: Any = gpuboost.load_model(path)
    verb = "predict_proba" if hasattr(model, "classes_") else "predict"
    return np.array_equal(getattr(model, verb)(x), getattr(loaded, verb)(x))


def _table(outcomes: dict[Set, Outcome]) -> Any:
    from rich.table import Table

    setting = f"{ROUNDS} rounds, depth {DEPTH}, rate {RATE}, {LEAF_ROWS} rows a leaf"
    title = "Scores on a held-out quarter of the rows, less is better"
    drawn = Table(
        "data", "score", title=title, caption=f"of both: {setting}", title_justify="left", caption_justify="left"
    )
    for name in ("gpuboost", "scikit-learn", "baseline", "fit, seconds"):
        drawn.add_column(name, justify="right")
    for data, outcome in outcomes.items():
        columns = (outcome.ours, outcome.sklearn, outcome.baseline)
        cells = [f"{scores[data.score]:.4g}" for scores in columns]
        drawn.add_row(data.name, data.score, *cells, f"{outcome.seconds:.2f}")
    return drawn
