"""Predicted distributions of this library and of others, and the scores that judge them.

A model predicts a normal distribution, quantiles of LEVELS, or one interval. NGBoost is run at its defaults, and as in
its paper: rounds of 0.01 are chosen by a fifth of the training rows, and all rows are fitted again with so many.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np

import gpuboost as gb
from gpuboost.benchmarks.harness.experiments import Options
from gpuboost.benchmarks.harness.store import Array, Data

LEVELS = tuple((np.arange(1, 20) / 20).tolist())  # 0.05 .. 0.95
COVERAGE = 0.9
NGBOOST_ROUNDS, NGBOOST_PATIENCE = 2000, 50


@dataclass(frozen=True)
class Predicted:
    """A model's predictions of the held-out rows."""

    bounds: Array  # (n, 2) of the interval of COVERAGE
    quantiles: Array | None = None  # (n, 19) of LEVELS
    normal: tuple[Array, Array] | None = None  # (n,) mean and standard deviation


Method = Callable[[Data, int], Predicted]
"""(data, threads) -> predictions of the held-out rows"""


def methods(options: Options) -> dict[str, Method]:
    """Our methods, and those of the requested libraries that are installed, by their labels in the table."""
    auto: dict[str, Any] = {"n_estimators": "auto"}
    ours: dict[str, Method] = {
        "gpuboost: gaussian_nll": partial(_gaussian, {}),
        "gpuboost: gaussian_nll, auto": partial(_gaussian, auto),
        "gpuboost: gaussian_nll, best": _gaussian_best,
        "gpuboost: quantiles": _quantiles,
        "gpuboost: gaussian_nll, auto, conformal": _conformal,
    }
    theirs: dict[str, tuple[str, Method]] = {
        "NGBoost": ("ngboost", partial(_ngboost, False)),
        "NGBoost, rounds by validation": ("ngboost", partial(_ngboost, True)),
        "CatBoost: RMSEWithUncertainty": ("catboost", _catboost),
        "LightGBM: a model for each quantile": ("lightgbm", _lightgbm),
        "XGBoost: quantiles": ("xgboost", _xgboost),
    }
    return ours | {label: method for label, (library, method) in theirs.items() if options.beside(library)}


def normal(mean: Array, std: Array) -> Predicted:
    """The predictions of a normal distribution of each row."""
    from scipy.special import ndtri

    quantiles = mean[:, None] + std[:, None] * ndtri(np.array(LEVELS))
    return Predicted(quantiles[:, [0, -1]], quantiles, (mean, std))


def _ours(loss: Any, more: Mapping[str, Any], threads: int) -> Any:
    return gb.GradientBoostingRegressor(loss=loss, random_state=0, n_jobs=threads, device="cpu", **more)


def _gaussian(more: Mapping[str, Any], data: Data, threads: int) -> Predicted:
    predicted = _ours("gaussian_nll", more, threads).fit(data.X, data.y).predict(data.X_test, output="all")
    return normal(predicted[:, 0], predicted[:, 1])


def _gaussian_best(data: Data, threads: int) -> Predicted:
    return _gaussian(gb.presets.best(len(data.y)), data, threads)


def _quantiles(data: Data, threads: int) -> Predicted:
    quantiles = _ours(gb.losses.Quantile(LEVELS), {}, threads).fit(data.X, data.y).predict(data.X_test)
    return Predicted(quantiles[:, [0, -1]], quantiles)


def _conformal(data: Data, threads: int) -> Predicted:
    held = np.random.default_rng(0).random(len(data.y)) < 0.25
    model = _ours("gaussian_nll", {"n_estimators": "auto"}, threads).fit(data.X[~held], data.y[~held])
    calibrated = gb.conformal(model, data.X[held], data.y[held], COVERAGE)
    return Predicted(calibrated.predict_interval(data.X_test))


def _ngboost(validated: bool, data: Data, threads: int) -> Predicted:
    from ngboost import NGBRegressor

    rounds: dict[str, Any] = {}
    if validated:
        held = np.random.default_rng(0).random(len(data.y)) < 0.2
        trial = NGBRegressor(
            n_estimators=NGBOOST_ROUNDS, early_stopping_rounds=NGBOOST_PATIENCE, verbose=False, random_state=0
        )
        trial.fit(data.X[~held], data.y[~held], data.X[held], data.y[held])
        rounds = {"n_estimators": int(trial.best_val_loss_itr) + 1}
    model = NGBRegressor(verbose=False, random_state=0, **rounds).fit(data.X, data.y)
    params = model.pred_dist(data.X_test).params
    return normal(params["loc"], params["scale"])


def _catboost(data: Data, threads: int) -> Predicted:
    from catboost import CatBoostRegressor

    model = CatBoostRegressor(
        loss_function="RMSEWithUncertainty", random_seed=0, thread_count=threads, verbose=False,
        allow_writing_files=False,
    )  # fmt: skip
    predicted = model.fit(data.X, data.y).predict(data.X_test)
    return normal(predicted[:, 0], np.sqrt(predicted[:, 1]))


def _lightgbm(data: Data, threads: int) -> Predicted:
    from lightgbm import LGBMRegressor

    options: dict[str, Any] = {"objective": "quantile", "random_state": 0, "n_jobs": threads, "verbose": -1}
    columns = [LGBMRegressor(alpha=level, **options).fit(data.X, data.y).predict(data.X_test) for level in LEVELS]
    both = np.column_stack(columns)
    return Predicted(both[:, [0, -1]], both)


def _xgboost(data: Data, threads: int) -> Predicted:
    from xgboost import XGBRegressor

    model = XGBRegressor(
        objective="reg:quantileerror", quantile_alpha=np.array(LEVELS), random_state=0, n_jobs=threads
    )  # fmt: skip
    quantiles = model.fit(data.X, data.y).predict(data.X_test)
    return Predicted(quantiles[:, [0, -1]], quantiles)


def judged(found: Predicted, y: Array, unit: float) -> dict[str, float]:
    """Coverage, width, CRPS and, of densities, the negative log-likelihood.

    The CRPS is twice the mean pinball loss of LEVELS, of densities too, so that all models are judged alike; ``exact``
    is that of a normal distribution in closed form. Width and CRPS are divided by ``unit``; the likelihood is of y.
    """
    low, high = found.bounds.T
    scores = {"coverage": float(np.mean((low <= y) & (y <= high))), "width": float(np.mean(high - low)) / unit}
    if found.quantiles is not None:
        over = y[:, None] - found.quantiles
        pinball = np.where(over >= 0.0, np.array(LEVELS) * over, (np.array(LEVELS) - 1.0) * over)
        scores["crps"] = 2.0 * float(pinball.mean()) / unit
    if found.normal is not None:
        mean, std = found.normal
        z = (y - mean) / std
        scores["nll"] = float(np.mean(0.5 * z * z + np.log(std) + 0.5 * np.log(2.0 * np.pi)))
        scores["exact"] = gb.posterior.crps(y, mean, std) / unit
    return scores
