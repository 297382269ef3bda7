"""Prediction intervals: coverage, width and pinball loss, beside other libraries' quantiles.

Every model gets the same rows, 200 rounds of depth 6 at a rate of 0.1, and its library's defaults for all else.
Calibrated models are fitted to three quarters of the rows; the rest calibrates them. Targets are divided by their
standard deviation, so that widths are in this unit.

The sets of NGBoost's paper are parts of their own: every library at its defaults, judged by the likelihood too, on
several splits.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import Any

import numpy as np

import gpuboost as gb
from gpuboost.benchmarks.data import real, uci
from gpuboost.benchmarks.harness import distributions
from gpuboost.benchmarks.harness.experiments import Experiment, Finding, Options, Part, of_data
from gpuboost.benchmarks.harness.store import Array, Data

ROUNDS, DEPTH, RATE = 200, 6, 0.1
COVERAGE, LEVELS = 0.9, (0.05, 0.5, 0.95)


@dataclass(frozen=True)
class Answer:
    """A model's predictions of the held-out rows."""

    bounds: Array  # (n, 2)
    quantiles: Array | None = None  # (n, 3) of LEVELS


Method = Callable[[Data, int], Answer]
"""(data, threads) -> predictions of the held-out rows"""


def methods(options: Options) -> dict[str, Method]:
    """Our methods, and those of the requested libraries that are installed, by their labels in the table."""
    ours: dict[str, Method] = {
        "gpuboost: several quantiles": _quantiles,
        "gpuboost: a model for each quantile": _one_by_one(_our_level),
        "gpuboost: gaussian_nll": _gaussian,
        "gpuboost: quantiles, conformal (CQR)": partial(_conformal, partial(_ours, gb.losses.Quantile(LEVELS))),
        "gpuboost: gaussian_nll, conformal": partial(_conformal, partial(_ours, "gaussian_nll")),
        "gpuboost: squared error, conformal": partial(_conformal, partial(_ours, "squared_error")),
    }
    theirs: dict[str, tuple[str, Method]] = {
        "LightGBM: a model for each quantile": ("lightgbm", _one_by_one(_lightgbm)),
        "XGBoost: several quantiles": ("xgboost", _xgboost),
        "CatBoost: several quantiles": ("catboost", _catboost),
        "scikit-learn: a model for each quantile": ("sklearn", _one_by_one(_sklearn)),
    }
    return ours | {label: method for label, (library, method) in theirs.items() if options.beside(library)}


def _ours(loss: Any, threads: int) -> Any:
    return gb.GradientBoostingRegressor(
        loss=loss, n_estimators=ROUNDS, max_depth=DEPTH, learning_rate=RATE, random_state=0, n_jobs=threads,
        device="cpu",
    )  # fmt: skip


def _quantiles(data: Data, threads: int) -> Answer:
    quantiles = _ours(gb.losses.Quantile(LEVELS), threads).fit(data.X, data.y).predict(data.X_test)
    return Answer(quantiles[:, [0, -1]], quantiles)


def _gaussian(data: Data, threads: int) -> Answer:
    return Answer(_ours("gaussian_nll", threads).fit(data.X, data.y).predict_interval(data.X_test, COVERAGE))


def _conformal(make: Callable[[int], Any], data: Data, threads: int) -> Answer:
    held = np.random.default_rng(0).random(len(data.y)) < 0.25
    x_fit, x_cal = (data.X[~held], data.X[held]) if isinstance(data.X, np.ndarray) else _frames(data.X, held)
    model = make(threads).fit(x_fit, data.y[~held])
    calibrated = gb.conformal(model, x_cal, data.y[held], COVERAGE)
    return Answer(calibrated.predict_interval(data.X_test))


def _frames(x: Any, held: Array) -> tuple[Any, Any]:
    return x.loc[~held], x.loc[held]


def _one_by_one(make: Callable[[float, Any, int], Any]) -> Method:
    """A model for each level; quantiles that cross are left as they are."""

    def answer(data: Data, threads: int) -> Answer:
        columns = [make(level, data, threads).fit(data.X, data.y).predict(data.X_test) for level in LEVELS]
        both = np.column_stack(columns)
        return Answer(both[:, [0, -1]], both)

    return answer


def _our_level(level: float, data: Data, threads: int) -> Any:
    return _ours(gb.losses.Quantile(level), threads)


def _lightgbm(level: float, data: Data, threads: int) -> Any:
    from lightgbm import LGBMRegressor

    return LGBMRegressor(
        objective="quantile", alpha=level, n_estimators=ROUNDS, learning_rate=RATE, max_depth=DEPTH,
        num_leaves=2**DEPTH, random_state=0, n_jobs=threads, verbose=-1,
    )  # fmt: skip


def _sklearn(level: float, data: Data, threads: int) -> Any:
    from sklearn.ensemble import HistGradientBoostingRegressor

    return HistGradientBoostingRegressor(
        loss="quantile", quantile=level, max_iter=ROUNDS, learning_rate=RATE, max_depth=DEPTH,
        max_leaf_nodes=None, early_stopping=False, categorical_features="from_dtype", random_state=0,
    )  # fmt: skip


def _xgboost(data: Data, threads: int) -> Answer:
    from xgboost import XGBRegressor

    model = XGBRegressor(
        objective="reg:quantileerror", quantile_alpha=np.array(LEVELS), n_estimators=ROUNDS, max_depth=DEPTH,
        learning_rate=RATE, tree_method="hist", enable_categorical=True, random_state=0, n_jobs=threads,
    )  # fmt: skip
    quantiles = model.fit(data.X, data.y).predict(data.X_test)
    return Answer(quantiles[:, [0, -1]], quantiles)


def _catboost(data: Data, threads: int) -> Answer:
    from catboost import CatBoostRegressor

    dtypes = getattr(data.X, "dtypes", None)
    categorical = [] if dtypes is None else [i for i, dtype in enumerate(dtypes) if str(dtype) == "category"]
    model = CatBoostRegressor(
        loss_function=f"MultiQuantile:alpha={','.join(map(str, LEVELS))}", iterations=ROUNDS, depth=DEPTH,
        learning_rate=RATE, cat_features=categorical, random_seed=0, thread_count=threads, verbose=False,
        allow_writing_files=False,
    )  # fmt: skip
    quantiles = model.fit(data.X, data.y).predict(data.X_test)
    return Answer(quantiles[:, [0, -1]], quantiles)


def judged(answer: Answer, y: Array) -> dict[str, float]:
    """Coverage, mean width, interval score; mean pinball loss and share of crossing rows, if there are quantiles."""
    low, high = answer.bounds.T
    scores = {
        "coverage": float(np.mean((low <= y) & (y <= high))),
        "width": float(np.mean(high - low)),
        "interval score": gb.posterior.interval_score(y, answer.bounds, COVERAGE),
    }
    if answer.quantiles is None:
        return scores
    r = answer.quantiles - y[:, None]
    pinball = np.where(r < 0.0, -np.array(LEVELS) * r, (1.0 - np.array(LEVELS)) * r)
    crossing = (np.diff(answer.quantiles, axis=1) < 0.0).any(axis=1)
    return scores | {"pinball": float(pinball.mean()), "crossing": float(crossing.mean())}


def compared(options: Options, name: str, data: Data) -> Finding:
    """One run of each: every library here is deterministic for a seed and a number of threads."""
    unit = float(np.std(data.y))
    data = replace(data, y=data.y / unit, y_test=data.y_test / unit)
    scores_by_label = {}
    for label, method in methods(options).items():
        options.tell(f"{name}: {label}")
        scores_by_label[label] = judged(method(data, options.threads), data.y_test)
    return Finding(
        f"{name}: {len(data.y):,} rows, {len(data.y_test):,} held out; intervals of {COVERAGE:.0%}, {ROUNDS} rounds",
        ("model", "coverage", "width", "interval score", "pinball loss", "rows that cross"),
        tuple(_row(label, numbers) for label, numbers in scores_by_label.items()),
        ("interval score: the width, and 20 times the distance of targets outside; pinball: mean of three levels",),
        scores_by_label,
    )


def _row(label: str, scores: dict[str, float]) -> tuple[str, ...]:
    pinball = (f"{scores['pinball']:.4f}", f"{scores['crossing']:.2%}") if "pinball" in scores else ("", "")
    return label, f"{scores['coverage']:.3f}", f"{scores['width']:.3f}", f"{scores['interval score']:.3f}", *pinball


def noisy(rows: int | None = None) -> Data:
    """Noise whose size is a function of the columns, and skewed."""
    n = 20_000 if rows is None else 2 * rows
    rng = np.random.default_rng(0)
    x = rng.uniform(-2.0, 2.0, size=(n, 5))
    y = np.sin(2.0 * x[:, 0]) + x[:, 1] ** 2 + (0.1 + np.abs(x[:, 2])) * rng.gamma(2.0, 0.5, n)
    half = n // 2
    return Data("regression", x[:half], y[:half], x[half:], y[half:])


SCORES = {"nll": "NLL", "crps": "CRPS", "coverage": "coverage", "width": "width"}
SPLITS, FEW = 3, 300  # of each set; training rows of --size small


def of_uci(name: str, options: Options) -> Finding:
    """Mean and standard error of each score over splits. --repeats: their number; --scale: of the training rows."""
    rows = FEW if options.small else int(uci.MOST * options.scale)
    splits = list(uci.splits(name, options.repeats or SPLITS, rows))
    scores_by_label = {}
    for label, method in distributions.methods(options).items():
        options.tell(f"{name}: {label}")
        each = []
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # what other libraries deprecate is not measured
            for data in splits:
                predicted = method(data, options.threads)
                each.append(distributions.judged(predicted, data.y_test, float(np.std(data.y))))
        scores_by_label[label] = {score: [split[score] for split in each] for score in each[0]}
    return Finding(
        f"{name}: {len(splits[0].y):,} rows, {len(splits)} splits; intervals of {COVERAGE:.0%}, defaults",
        ("model", *SCORES.values()),
        tuple((label, *(_mean(scores.get(score)) for score in SCORES)) for label, scores in scores_by_label.items()),
        ("CRPS: twice the mean pinball loss of 19 levels; it and widths in standard deviations of the target",),
        scores_by_label,
    )


def _mean(numbers: Sequence[float] | None) -> str:
    """Mean and standard error."""
    if numbers is None:
        return ""
    error = np.std(numbers, ddof=1) / len(numbers) ** 0.5 if len(numbers) > 1 else np.nan
    return f"{np.mean(numbers):.3f} ± {error:.3f}"


EXPERIMENT = Experiment(
    "intervals",
    "Prediction intervals",
    {
        make.__name__: of_data(make, 1000, compared, "coverage, width and pinball loss of 90 % intervals")
        for make in (real.california, real.diamonds, noisy)
    }
    | {
        name: Part(f"{name}: likelihood, CRPS, coverage and width at defaults", partial(of_uci, name))
        for name in uci.SETS
    },
    peers=("ngboost",),
)
