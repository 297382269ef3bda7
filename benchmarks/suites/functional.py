"""Base learners other than trees: additive models and others beside scikit-learn's and interpret's EBM.

Splines and effects are at their defaults, chosen by cross-validation on other data: adult, covtype, diamonds,
higgs and two that were made up. Every model gets the same rows and stops by a tenth of them that it sets aside itself,
drawn anew in each repeat; EBM and the splines are additive in single features. Seconds are those of ``fit``, from the
table to the model, after a fit of a few rows that is not timed.
"""

from __future__ import annotations

import statistics
import time
import warnings
from collections.abc import Callable, Mapping
from importlib.util import find_spec
from typing import Any

import numpy as np

import gpuboost as gb
from gpuboost.benchmarks.data import real
from gpuboost.benchmarks.harness import paper_figures
from gpuboost.benchmarks.harness.experiments import Experiment, Finding, Options, of_data
from gpuboost.benchmarks.harness.scores import score
from gpuboost.benchmarks.harness.store import Data

ROUNDS, RATE = 3000, 0.1

Make = Callable[[Data, int, int], Any]
"""(data, seed, threads) -> a model with ``fit`` and ``predict``, or ``predict_proba``"""

EBM, OURS = "interpret: EBM", "gpuboost: splines + categories"


def _ours(learner: Any) -> Make:
    def make(data: Data, seed: int, threads: int) -> Any:
        kind = gb.GradientBoostingRegressor if data.task == "regression" else gb.GradientBoostingClassifier
        return kind(
            n_estimators=ROUNDS, learning_rate=RATE, base_learner=learner, early_stopping_rounds=50,
            validation_fraction=0.1, random_state=seed, n_jobs=threads, device="cpu",
        )  # fmt: skip

    return make


def _ebm(**more: Any) -> Make:
    def make(data: Data, seed: int, threads: int) -> Any:
        from interpret import glassbox

        name = "ExplainableBoostingRegressor" if data.task == "regression" else "ExplainableBoostingClassifier"
        return getattr(glassbox, name)(interactions=0, n_jobs=threads, random_state=seed, **more)

    return make


def _stumps(data: Data, seed: int, threads: int) -> Any:
    """scikit-learn's histogram booster with trees of one split."""
    from sklearn.ensemble import HistGradientBoostingClassifier, HistGradientBoostingRegressor

    kind = HistGradientBoostingRegressor if data.task == "regression" else HistGradientBoostingClassifier
    return kind(
        max_iter=ROUNDS, learning_rate=RATE, max_depth=1, early_stopping=True, validation_fraction=0.1,
        n_iter_no_change=50, categorical_features="from_dtype", random_state=seed,
    )  # fmt: skip


def _spline_pipeline(data: Data, seed: int, threads: int) -> Any:
    """scikit-learn's B-splines and one-hot columns under a ridge, its weight by cross-validation."""
    from sklearn.compose import make_column_selector, make_column_transformer
    from sklearn.impute import SimpleImputer
    from sklearn.linear_model import LogisticRegression, RidgeCV
    from sklearn.pipeline import make_pipeline
    from sklearn.preprocessing import OneHotEncoder, SplineTransformer, StandardScaler

    bends = make_pipeline(SimpleImputer(strategy="median"), SplineTransformer(20, knots="quantile"), StandardScaler())
    one_hot = OneHotEncoder(handle_unknown="ignore")
    columns = make_column_transformer(
        (bends, make_column_selector(dtype_include="number")),
        (one_hot, make_column_selector(dtype_include="category")),
        sparse_threshold=0.0,
    )
    last = RidgeCV(np.logspace(-2, 3, 6)) if data.task == "regression" else LogisticRegression(max_iter=500)
    return make_pipeline(columns, last)


def models(data: Data, *, peers: bool) -> dict[str, Make]:
    """Models by label; those of other libraries where they are requested and installed."""
    effects = [gb.learners.CategoricalRidge()] if "category" in set(map(str, data.X.dtypes)) else []
    ours: dict[str, Make] = {
        OURS: _ours([gb.learners.Spline(), *effects]),
        "gpuboost: straight lines + categories": _ours([gb.learners.Linear(), *effects]),
        "gpuboost: stumps": _ours(gb.learners.Tree()),
        "gpuboost: all families": _ours([gb.learners.Linear(), gb.learners.Spline(), *effects, gb.learners.Tree()]),
        "gpuboost: trees with lines": _ours(gb.learners.LinearTree(max_depth=4)),
    }
    if not peers:
        return ours
    theirs: dict[str, Make] = {
        "sklearn: stumps": _stumps, "sklearn: splines, ridge": _spline_pipeline,
    }  # fmt: skip
    if find_spec("interpret"):
        theirs |= {EBM: _ebm(), "interpret: EBM, one bag": _ebm(outer_bags=1)}
    return ours | theirs


def compared(options: Options, name: str, data: Data) -> Finding:
    """The models take turns."""
    asked = models(data, peers=bool(options.peers))
    repeats = options.repeats or (1 if options.small else 5)
    seconds: dict[str, list[float]] = {label: [] for label in asked}
    scores: dict[str, list[float]] = {label: [] for label in asked}
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", UserWarning)  # EBM's, that its pictures leave out missing values
        _run(options, name, data, asked, repeats, seconds, scores)
    best = statistics.median(scores[EBM if EBM in asked else OURS])
    return Finding(
        f"{name}: {data.X.shape[0]:,} x {data.X.shape[1]}, up to {ROUNDS} rounds, {repeats} repeats",
        ("model", next(iter(score(data, data.y_test))), "beside EBM" if EBM in asked else "beside first", "fit s"),
        tuple(_row(label, scores[label], seconds[label], best) for label in asked),
        tuple(_notes(scores, seconds)),
        {label: {"seconds": seconds[label], "scores": scores[label]} for label in asked},
    )


def _run(
    options: Options,
    name: str,
    data: Data,
    asked: Mapping[str, Make],
    repeats: int,
    seconds: dict[str, list[float]],
    scores: dict[str, list[float]],
) -> None:
    """Fill in what each model needs and is worth."""
    for make in asked.values():
        _predicted(make(data, 0, options.threads).fit(data.X[::9], data.y[::9]), data)
    for repeat in range(repeats):
        for label, make in asked.items():
            options.tell(f"{name}: {label}, repeat {repeat + 1} of {repeats}")
            model = make(data, repeat, options.threads)
            start = time.perf_counter()
            model.fit(data.X, data.y)
            seconds[label].append(time.perf_counter() - start)
            metrics = score(data, _predicted(model, data))
            scores[label].append(next(iter(metrics.values())))


def _predicted(model: Any, data: Data) -> Any:
    return model.predict(data.X_test) if data.task == "regression" else model.predict_proba(data.X_test)[:, 1]


def _row(label: str, scores: list[float], seconds: list[float], best: float) -> tuple[str, ...]:
    middle = statistics.median(scores)
    return label, f"{middle:.5g}", f"{middle / best - 1.0:+.2%}", f"{statistics.median(seconds):.2f}"


def _notes(scores: Mapping[str, list[float]], seconds: Mapping[str, list[float]]) -> list[str]:
    """The claim, where its two sides ran."""
    if EBM not in scores:
        return ["EBM did not run: pip install interpret-core, and pass --peers"]
    worse = statistics.median(scores[OURS]) / statistics.median(scores[EBM]) - 1.0
    times = statistics.median(seconds[EBM]) / statistics.median(seconds[OURS])
    holds = "holds" if worse <= 0.02 and times > 1.0 else "does not hold"
    return [f"within 2 % of EBM without interactions, and faster: {holds} ({worse:+.2%}, {times:.1f} times as fast)"]


EXPERIMENT = Experiment(
    "functional",
    "Base learners other than trees",
    {
        make.__name__: of_data(make, 2000, compared, "additive models and others, quality and time")
        for make in (real.california, real.diamonds, real.bank)
    },
    draw=paper_figures.functional,
)
