"""Langevin boosting as a posterior: do intervals cover, and does knowledge uncertainty know what it has not seen?"""

from __future__ import annotations

from importlib.util import find_spec
from typing import Any

import numpy as np

import gpuboost as gb
from gpuboost.benchmarks.experiments import Finding, Options
from gpuboost.benchmarks.store import Array

RATE, BURN_IN = 0.5, 200
TEMPERATURES = (1.0, 4.0, 16.0, 64.0, 256.0)
PRIOR_VARIANCE, DEPTH = 4.0, 4
COVERAGES = (0.5, 0.9, 0.95)
SHRINKAGES = (0.1, 0.2, 0.4)


def ood(options: Options) -> Finding:
    """Area under the ROC curve of knowledge uncertainty: held-out rows of the training data against another kind.

    Handwritten digits: trained to tell 0 to 4, asked about 5 to 9; and the other way round. Both libraries take ten
    members from one chain. Our temperature is the one whose mean probabilities predict a quarter of the training rows
    best; no row of the other kind has a say. CatBoost's is its own: T = N.
    """
    from sklearn.datasets import load_digits
    from sklearn.metrics import roc_auc_score

    x, y = load_digits(return_X_y=True)
    trees = 300 if options.small else 1500
    found: dict[str, dict[str, Any]] = {}
    for known in ("0 to 4", "5 to 9"):
        inside = np.isin(y, np.arange(5) if known == "0 to 4" else np.arange(5, 10))
        held_out = np.arange(len(x)) % 2 == 1
        learn, judge = inside & ~held_out, ~inside | held_out
        losses = {}
        for temperature in TEMPERATURES:
            options.tell(f"out of domain: digits {known}, T = {temperature:g}")
            losses[temperature] = _held_out_loss(x[learn], y[learn], temperature, trees, options.threads)
        best = min(losses, key=lambda temperature: losses[temperature])
        scores = {
            f"gpuboost, T = {t:g}": _sampler(learn.sum(), t, trees, options.threads)
            .fit(x[learn], y[learn])
            .predict_uncertainty(x[judge])
            .knowledge
            for t in {1.0, best}
        }
        if options.peers and find_spec("catboost"):
            scores["catboost"] = _knowledge_of_catboost(x[learn], y[learn], x[judge], trees, options.threads)
        auc = {name: float(roc_auc_score(~inside[judge], one)) for name, one in scores.items()}
        found[known] = {"auc": auc, "held-out loss": losses, "chosen": best, "ours": auc[f"gpuboost, T = {best:g}"]}
    rows = tuple(
        (
            f"digits {known}",
            f"{one['chosen']:g}",
            f"{one['ours']:.3f}",
            f"{one['auc']['gpuboost, T = 1']:.3f}",
            f"{one['auc']['catboost']:.3f}" if "catboost" in one["auc"] else "",
        )
        for known, one in found.items()
    )
    columns = ("trained on", "T chosen by held-out likelihood", "gpuboost", "gpuboost, T = 1", "catboost")
    return Finding("AUC of knowledge uncertainty, out of domain", columns, rows, (), {"found": found})


def _sampler(n_rows: int, temperature: float, trees: int, threads: int) -> Any:
    """Long steps (the softmax is flat: 0.5 x 1/2 is far from 2) and random shapes: a chain that forgets in time."""
    shrinkage = 2**DEPTH / (temperature * n_rows * PRIOR_VARIANCE)
    policy = gb.Langevin(temperature=temperature, shrinkage=shrinkage, random_from=BURN_IN)
    return gb.GradientBoostingClassifier(
        n_estimators=trees, learning_rate=RATE, max_depth=DEPTH, max_bins=32, langevin=policy, random_state=0,
        n_jobs=threads,
    )  # fmt: skip


def _held_out_loss(x: Array, y: Array, temperature: float, trees: int, threads: int) -> float:
    """Of every fourth row, by a model of the others."""
    held_out = np.arange(len(y)) % 4 == 3
    model = _sampler(int((~held_out).sum()), temperature, trees, threads).fit(x[~held_out], y[~held_out])
    mean = model.predict_uncertainty(x[held_out]).mean
    true = mean[np.arange(len(mean)), np.searchsorted(model.classes_, y[held_out])]
    return float(-np.log(np.maximum(true, 1e-12)).mean())


def _knowledge_of_catboost(x: Array, y: Array, asked: Array, trees: int, threads: int) -> Array:
    """By its own advice: posterior_sampling, and a virtual ensemble of ten."""
    from catboost import CatBoostClassifier

    model = CatBoostClassifier(
        iterations=trees, depth=DEPTH, learning_rate=0.1, posterior_sampling=True, loss_function="MultiClass",
        random_seed=0, thread_count=threads, allow_writing_files=False, logging_level="Silent",
    ).fit(x, y)  # fmt: skip
    raw = model.virtual_ensembles_predict(asked, prediction_type="VirtEnsembles", virtual_ensembles_count=10)
    members = np.moveaxis(np.asarray(raw), 0, 2)  # (n, 10, K) to (10, K, n)
    return gb.posterior.uncertainty(gb.losses.Softmax(members.shape[1]), members).knowledge


def coverage(options: Options) -> Finding:
    """How often central intervals of the mean hold the true function: unit noise, 500 rows, defaults but the rounds.

    The prior's scale is chosen by the likelihood of new rows, not by the truth.
    """
    seeds = options.repeats or (1 if options.small else 4)
    inside: dict[str, dict[str, list[float]]] = {}
    for name, make in (("waves", _waves), ("friedman", _friedman)):
        own = inside[name] = {f"{share:g}": [] for share in COVERAGES}
        for seed in range(seeds):
            options.tell(f"coverage: {name}, {seed + 1} of {seeds}")
            rng = np.random.default_rng(seed)
            (x, f), (x_new, f_new) = make(500, rng), make(500, rng)
            y, y_new = f + rng.normal(size=500), f_new + rng.normal(size=500)
            models = [_regressor(gamma, options, seed).fit(x, y) for gamma in SHRINKAGES]
            best = min(models, key=lambda model: _surprise(model, x_new, y_new))
            for share in COVERAGES:
                low, high = best.predict_interval(x_new, share).T
                own[f"{share:g}"].append(float(np.mean((low < f_new) & (f_new < high))))
    rows = tuple((name, *(f"{np.mean(one):.3f}" for one in own.values())) for name, own in inside.items())
    columns = ("problem", *(f"{100 * share:g} % interval" for share in COVERAGES))
    return Finding(f"Share of true values inside, {seeds} seeds", columns, rows, (), {"inside": inside})


def _regressor(gamma: float, options: Options, seed: int) -> Any:
    rounds, samples = (400, 50) if options.small else (2000, 100)
    return gb.GradientBoostingRegressor(
        n_estimators=rounds, langevin=gb.Langevin(shrinkage=gamma), posterior_samples=samples, random_state=seed,
        n_jobs=options.threads,
    )  # fmt: skip


def _surprise(model: Any, x: Array, y: Array) -> float:
    found = model.predict_uncertainty(x)
    return float(np.mean(0.5 * np.log(found.total) + 0.5 * (y - found.mean) ** 2 / found.total))


def _waves(n: int, rng: np.random.Generator) -> tuple[Array, Array]:
    x = rng.normal(size=(n, 3))
    return x, np.sin(2.0 * x[:, 0]) + x[:, 1] * (x[:, 2] > 0.0)


def _friedman(n: int, rng: np.random.Generator) -> tuple[Array, Array]:
    x = rng.random((n, 5))
    bends = 2.0 * np.sin(np.pi * x[:, 0] * x[:, 1]) + 4.0 * (x[:, 2] - 0.5) ** 2
    return x, bends + 2.0 * x[:, 3] + x[:, 4]
