"""Langevin boosting on real data, as in Tables 2 and 3 of its paper: random search on a split of 65, 15 and 20 %."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

import gpuboost as gb
from gpuboost.benchmarks.data import real
from gpuboost.benchmarks.harness.experiments import Finding, Options
from gpuboost.benchmarks.harness.store import Array, Data
from gpuboost.errors import InputError

ROUNDS, PATIENCE, BINS = 1000, 200, 64
TRIALS = 10
SETS: dict[str, Callable[..., Data]] = {"adult": real.adult, "amazon": real.amazon, "higgs7k": real.higgs7k}

Drawn = Mapping[str, float]
"""The settings of one trial."""


@dataclass(frozen=True)
class Rows:
    """A set in its three parts; features are numbers and, in a frame, columns of category dtype."""

    parts: tuple[tuple[Any, Array], ...]  # (X, y) to learn from, to choose by, and to judge by


@dataclass(frozen=True)
class Method:
    """fit(rows, settings, threads) -> raw scores of the part to choose by, and of the part to judge by."""

    name: str
    loss: str  # "logloss" or "error": what is chosen by, and reported
    fit: Callable[[Rows, Drawn, int], tuple[Array, Array]]


def split(data: Data, rows: int | None) -> Rows:
    """65 % to learn from, 15 % to choose by and 20 % to judge by, at random; of the first so many rows."""
    x, y = _joined(data.X, data.X_test), np.concatenate([data.y, data.y_test]).astype(np.int64)
    order = np.random.default_rng(0).permutation(len(y))[:rows]
    first, second = int(0.65 * len(order)), int(0.8 * len(order))
    pieces = order[:first], order[first:second], order[second:]
    return Rows(tuple((x.iloc[piece] if hasattr(x, "iloc") else x[piece], y[piece]) for piece in pieces))


def _joined(x: Any, x_test: Any) -> Any:
    if not hasattr(x, "iloc"):
        return np.concatenate([x, x_test])
    import pandas as pd

    return pd.concat([x, x_test], ignore_index=True)


def settings(rng: np.random.Generator) -> Drawn:
    """Settings of one trial, the same for every method, drawn from the distributions of the paper's appendix C.2."""
    return {
        "learning_rate": float(10.0 ** rng.uniform(-5.0, 0.0)),
        "max_depth": int(rng.integers(6, 11)),
        "subsample": float(1.0 - rng.uniform(0.0, 1.0)),  # above 0
        "reg_lambda": float(10.0 ** rng.uniform(-1.0, 1.0)),  # of SGB; SGLB has 0
        "temperature": float(10.0 ** rng.uniform(2.0, 5.0)),
        "shrinkage": float(10.0 ** rng.uniform(-5.0, -2.0)),
    }


def ours(loss: Any, metric: str, *, noise: bool) -> Callable[[Rows, Drawn, int], tuple[Array, Array]]:
    def fit(rows: Rows, drawn: Drawn, threads: int) -> tuple[Array, Array]:
        (x, y), choose, (x_test, _) = rows.parts
        # Of the smoothed 0-1 loss, steps at the highest rates are not stable; the paper has such rates.
        policy = gb.Langevin(temperature=drawn["temperature"], shrinkage=drawn["shrinkage"], allow_unproven=True)
        plain = {"reg_lambda": drawn["reg_lambda"], "sampling": drawn["subsample"]}
        params = {"reg_lambda": 0.0, "langevin": policy} if noise else plain
        model = gb.GradientBoostingClassifier(
            loss, n_estimators=ROUNDS, learning_rate=drawn["learning_rate"], growth="oblivious", max_bins=BINS,
            max_depth=int(drawn["max_depth"]), step="gradient", eval_metric=metric, early_stopping_rounds=PATIENCE,
            categorical_encoding=_encoding(x), random_state=0, n_jobs=threads, **params,
        ).fit(x, y, eval_set=choose)  # fmt: skip
        return model.decision_function(choose[0]), model.decision_function(x_test)

    return fit


def _encoding(x: Any) -> Any:
    """The encoding that "auto" takes for SGB, but in one sequence of trees: several sequences are no chain."""
    if not hasattr(x, "columns"):
        return "auto"
    sizes = [len(x[name].cat.categories) for name in x.columns if x[name].dtype == "category"]
    return gb.OrderedTargetStatistics(permutations=1) if max(sizes, default=0) > 255 else "auto"


def catboost(rows: Rows, drawn: Drawn, threads: int) -> tuple[Array, Array]:
    """``langevin=True`` and the best iteration, as it is used; gradient leaves, without which there is no noise."""
    from catboost import CatBoostClassifier, Pool

    (x, y), choose, (x_test, _) = rows.parts
    listed = [name for name in x.columns if x[name].dtype == "category"] if hasattr(x, "columns") else []
    as_text = dict.fromkeys(listed, str)

    def pool(features: Any, label: Array | None = None) -> Any:
        return Pool(features.astype(as_text) if listed else features, label, cat_features=listed)

    model = CatBoostClassifier(
        iterations=ROUNDS, learning_rate=drawn["learning_rate"], depth=int(drawn["max_depth"]), langevin=True,
        diffusion_temperature=drawn["temperature"], model_shrink_rate=drawn["shrinkage"], random_strength=0,
        leaf_estimation_method="Gradient", leaf_estimation_iterations=1, l2_leaf_reg=0, border_count=BINS - 1,
        boost_from_average=False, random_seed=0, thread_count=threads, allow_writing_files=False,
        logging_level="Silent", early_stopping_rounds=PATIENCE,
    ).fit(pool(x, y), eval_set=pool(*choose))  # fmt: skip
    scores = (model.predict(pool(features), prediction_type="RawFormulaVal") for features in (choose[0], x_test))
    return next(scores), next(scores)


def methods(peers: bool) -> tuple[Method, ...]:
    smooth = gb.losses.SmoothedZeroOne(0.1)
    our_methods = (
        Method("SGB, logistic", "logloss", ours("logistic", "logloss", noise=False)),
        Method("SGLB, logistic", "logloss", ours("logistic", "logloss", noise=True)),
        Method("SGB, logistic", "error", ours("logistic", "error", noise=False)),
        Method("SGB, smoothed 0-1", "error", ours(smooth, "error", noise=False)),
        Method("SGLB, smoothed 0-1", "error", ours(smooth, "error", noise=True)),
    )
    return our_methods + ((Method("catboost: langevin", "logloss", catboost),) if peers else ())


def per_row(loss: str, y: Array, scores: Array) -> Array:
    """(n,) the loss of each row."""
    if loss == "error":
        return ((scores > 0.0) != y).astype(np.float64)
    return np.asarray(np.logaddexp(0.0, np.where(y == 1, -scores, scores)))


def tables_2_and_3(name: str, options: Options) -> Finding:
    """The trial of each method with the least loss on the 15 %, and its loss on the 20 % that no choice depends on.

    ``--repeats`` is the number of trials. Trials are the same settings for all methods.
    """
    trials = options.repeats or (2 if options.small else TRIALS)
    parts = split(SETS[name](), 2000 if options.small else None)
    (_, _), (_, y_choose), (_, y_test) = parts.parts
    by_loss: dict[str, dict[str, Any]] = {}
    for method in methods(options.beside("catboost")):
        rng, best, chosen = np.random.default_rng(1), np.inf, None
        for trial in range(trials):
            options.tell(f"{name}: {method.name} by {method.loss}, trial {trial + 1} of {trials}")
            drawn = settings(rng)
            choose, test = method.fit(parts, drawn, options.threads)
            value = float(per_row(method.loss, y_choose, choose).mean())
            if value < best:
                best, chosen = value, (drawn, per_row(method.loss, y_test, test))
        if chosen is None:
            raise InputError(f"{name}: no trial of {method.name} ended with a finite loss.")
        each = by_loss.setdefault(method.loss, {})
        each[method.name] = {"settings": dict(chosen[0]), "chosen at": best, "losses": chosen[1]}
    return Finding(
        f"Tables 2 and 3, {name}: loss on 20 % held-out rows, best of {trials} trials by 15 %",
        ("loss", "method", "test loss", "s.e.", "p vs the first"),
        tuple(row for loss, each in by_loss.items() for row in _lines(loss, each)),
        ("p: paired t-test over the rows.",),
        {"trials": trials, "found": {loss: _numbers(each) for loss, each in by_loss.items()}},
    )


def _lines(name: str, each: Mapping[str, Any]) -> list[tuple[str, ...]]:
    from scipy import stats

    first, lines = next(iter(each.values()))["losses"], []
    for method, trial in each.items():
        losses = trial["losses"]
        error = losses.std(ddof=1) / np.sqrt(len(losses))
        same = losses is first or np.array_equal(losses, first)
        p = "" if same else f"{stats.ttest_rel(first, losses).pvalue:.1e}"
        lines.append((name, method, f"{losses.mean():.4f}", f"{error:.4f}", p))
    return lines


def _numbers(each: Mapping[str, Any]) -> dict[str, Any]:
    return {method: {**trial, "losses": float(trial["losses"].mean())} for method, trial in each.items()}
