"""Defaults against defaults on twenty real sets: only the task, the seed and the number of threads are given.

Settings of this library were chosen on one half of the sets, every other one by name, and the other half shows what
they are worth (``benchmarks/data/twenty.py``). A library's score on a set is its mean over the held-out rows of all
splits; libraries are ranked on each set, and the mean rank decides.
"""

from __future__ import annotations

import time
import warnings
from collections.abc import Callable, Mapping, Sequence
from functools import cache, partial
from typing import Any

import numpy as np

import gpuboost as gb
from gpuboost.benchmarks.data import twenty
from gpuboost.benchmarks.harness import pictures
from gpuboost.benchmarks.harness.experiments import Experiment, Finding, Options, Part
from gpuboost.benchmarks.harness.scores import by_row, score
from gpuboost.benchmarks.harness.store import Array, Data

OURS, BEST = "gpuboost", "gpuboost best"
FEW = 500  # training rows of --size small

Method = Callable[[Data, int], Array]
"""(data, threads) -> (n,) or (n, classes) predictions of the held-out rows"""


def methods(options: Options) -> dict[str, Method]:
    """Our methods, and those of the requested libraries that are installed, by their labels in the table."""
    auto: dict[str, Any] = {"n_estimators": "auto", "learning_rate": "auto"}
    ours: dict[str, Method] = {OURS: partial(_ours, {}), f"{OURS} auto": partial(_ours, auto), BEST: _best}
    theirs: dict[str, tuple[str, Method]] = {
        "CatBoost": ("catboost", _catboost),
        "LightGBM": ("lightgbm", _lightgbm),
        "XGBoost": ("xgboost", _xgboost),
        "scikit-learn": ("sklearn", _sklearn),
    }
    return ours | {label: method for label, (library, method) in theirs.items() if options.beside(library)}


def _ours(more: Mapping[str, Any], data: Data, threads: int) -> Array:
    loss = {"loss": "poisson"} if data.task == "poisson" else {}
    kind = gb.GradientBoostingClassifier if _classifies(data) else gb.GradientBoostingRegressor
    return _answer(kind(n_jobs=threads, random_state=0, device="cpu", **loss, **more), data)


def _best(data: Data, threads: int) -> Array:
    n_classes = len(np.unique(data.y)) if _classifies(data) else None
    return _ours(gb.presets.best(len(data.y), n_classes), data, threads)


def _catboost(data: Data, threads: int) -> Array:
    import catboost

    named = [c for c in getattr(data.X, "columns", ()) if data.X[c].dtype == "category"]
    options: dict[str, Any] = {"thread_count": threads, "random_seed": 0, "verbose": False, "cat_features": named}
    x, x_test = (rows.astype(dict.fromkeys(named, str)) if named else rows for rows in (data.X, data.X_test))
    if _classifies(data):
        model = catboost.CatBoostClassifier(allow_writing_files=False, **options)
        return _probability(model.fit(x, data.y, sample_weight=data.weight).predict_proba(x_test), data)
    loss = "Poisson" if data.task == "poisson" else "RMSE"
    model = catboost.CatBoostRegressor(loss_function=loss, allow_writing_files=False, **options)
    kind = "Exponent" if data.task == "poisson" else "RawFormulaVal"
    answer: Array = model.fit(x, data.y, sample_weight=data.weight).predict(x_test, prediction_type=kind)
    return answer


def _lightgbm(data: Data, threads: int) -> Array:
    import lightgbm

    options: dict[str, Any] = {"n_jobs": threads, "random_state": 0, "verbose": -1, "deterministic": True}
    if data.task == "poisson":
        options["objective"] = "poisson"
    kind = lightgbm.LGBMClassifier if _classifies(data) else lightgbm.LGBMRegressor
    return _answer(kind(**options), data)


def _xgboost(data: Data, threads: int) -> Array:
    import xgboost

    options: dict[str, Any] = {"n_jobs": threads, "random_state": 0, "enable_categorical": True}
    if data.task == "poisson":
        options["objective"] = "count:poisson"
    kind = xgboost.XGBClassifier if _classifies(data) else xgboost.XGBRegressor
    return _answer(kind(**options), data)


def _sklearn(data: Data, threads: int) -> Array:
    """A column of more than 255 categories, which it does not take, is read as numbers."""
    from sklearn import ensemble
    from threadpoolctl import threadpool_limits

    wide = [c for c in getattr(data.X, "columns", ()) if data.X[c].dtype == "category"]
    wide = [c for c in wide if len(data.X[c].cat.categories) > 255]
    if wide:
        x, x_test = (rows.assign(**{c: rows[c].cat.codes for c in wide}) for rows in (data.X, data.X_test))
        data = Data(data.task, x, data.y, x_test, data.y_test, data.weight, data.weight_test)
    classify = _classifies(data)
    kind = ensemble.HistGradientBoostingClassifier if classify else ensemble.HistGradientBoostingRegressor
    loss = {"loss": "poisson"} if data.task == "poisson" else {}
    with threadpool_limits(threads):
        return _answer(kind(random_state=0, **loss), data)


def _classifies(data: Data) -> bool:
    return data.task in ("binary", "multiclass")


def _answer(model: Any, data: Data) -> Array:
    model.fit(data.X, data.y, sample_weight=data.weight)
    return _probability(model.predict_proba(data.X_test), data) if _classifies(data) else model.predict(data.X_test)


def _probability(p: Array, data: Data) -> Array:
    return p[:, 1] if data.task == "binary" else p


def judged(method: Method, splits: Sequence[Data], threads: int) -> dict[str, Any]:
    """The deciding score over all held-out rows, its value row by row, and CPU seconds of fits and predictions."""
    answers, before = [], time.process_time()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # what other libraries deprecate is not measured
        answers = [np.asarray(method(data, threads), np.float64) for data in splits]
    spent = time.process_time() - before
    name = next(iter(score(splits[0], answers[0])))
    rows = _all_rows(splits)
    predicted = np.concatenate(answers)
    return {"name": name, "score": score(rows, predicted)[name], "rows": by_row(rows, predicted, name), "cpu": spent}


def _all_rows(splits: Sequence[Data]) -> Data:
    """The held-out rows of all splits as one set, to be judged together."""
    y = np.concatenate([data.y_test for data in splits])
    weights = [data.weight_test for data in splits]
    weight = None if weights[0] is None else np.concatenate(weights)
    first = splits[0]
    return Data(first.task, first.X, first.y, first.X_test, y, weight_test=weight)


@cache
def of_set(options: Options, name: str) -> dict[str, Any]:
    """The numbers of a set. One run of each: every library here is deterministic for a seed and a number of threads."""
    splits = list(twenty.splits(name, FEW if options.small else int(twenty.MOST * options.scale)))
    results = {}
    for label, method in methods(options).items():
        options.tell(f"{name}: {label}")
        results[label] = judged(method, splits, options.threads)
    shape = {"splits": len(splits), "rows": len(splits[0].y), "rows_test": sum(len(data.y_test) for data in splits)}
    return {"score": results[OURS]["name"], **shape, **_numbers(results)}


def compared(found: Mapping[str, Mapping[str, Any]]) -> Finding:
    """A line for each set, and the mean ranks of the libraries that were run on all of them."""
    labels = [
        label for label in next(iter(found.values()))["scores"] if all(label in of["scores"] for of in found.values())
    ]
    ranks = mean_ranks(found, labels)
    rows = [_cells(name, set_numbers, labels) for name, set_numbers in found.items()]
    if len(found) > 1:
        rows.append(("mean rank", "", *(f"{ranks[label]:.2f}" for label in labels)))
    others = [label for label in labels if not label.startswith(OURS)]
    alone = {label: mean_ranks(found, [label, *others])[label] for label in labels if label not in others}
    notes = (
        "mean rank of one of ours among the other libraries: " + ", ".join(f"{k} {v:.2f}" for k, v in alone.items()),
        f"in brackets: how much worse than {BEST}, relatively, and the standard error over paired held-out rows",
        "CPU seconds: " + ", ".join(f"{label} {_seconds(found, label):.0f}" for label in labels),
    )
    numbers = {"sets": dict(found), "mean rank": ranks, "mean rank alone": alone}
    return Finding("defaults against defaults", ("set", "score", *labels), tuple(rows), notes, numbers)


def _numbers(results: Mapping[str, Mapping[str, Any]]) -> dict[str, Any]:
    """Scores, differences from our best with their errors, and seconds, by label."""
    base = results[BEST]
    scores = {label: run["score"] for label, run in results.items()}
    worse, errors = {}, {}
    for label, run in results.items():
        less = run["rows"] - base["rows"]
        worse[label] = (run["score"] - base["score"]) / abs(base["score"])
        errors[label] = float(less.std(ddof=1)) / len(less) ** 0.5 / abs(base["score"])
    return {
        "scores": scores,
        "worse": worse,
        "errors": errors,
        "cpu_seconds": {label: run["cpu"] for label, run in results.items()},
    }


def mean_ranks(found: Mapping[str, Mapping[str, Any]], labels: Sequence[str]) -> dict[str, float]:
    """Mean over the sets of the rank by score, 1 for the least; equal scores share their mean rank."""
    from scipy.stats import rankdata

    each = np.array([rankdata([set_numbers["scores"][label] for label in labels]) for set_numbers in found.values()])
    return dict(zip(labels, each.mean(axis=0).tolist(), strict=True))


def _cells(name: str, set_numbers: Mapping[str, Any], labels: Sequence[str]) -> tuple[str, ...]:
    cells = []
    for label in labels:
        text = f"{set_numbers['scores'][label]:.5g}"
        beside = f" ({set_numbers['worse'][label]:+.1%} ± {set_numbers['errors'][label]:.1%})"
        cells.append(text if label == BEST else text + beside)
    return name, set_numbers["score"], *cells


def _seconds(sets: Mapping[str, Mapping[str, Any]], label: str) -> float:
    return float(sum(set_numbers["cpu_seconds"][label] for set_numbers in sets.values()))


def _part(title: str, names: Sequence[str]) -> Part:
    return Part(title, lambda options: compared({name: of_set(options, name) for name in names}))


EXPERIMENT = Experiment(
    "defaults",
    "Defaults against defaults on twenty real sets; --scale 0.5 is for half as many training rows",
    {name: _part(f"{name}, of the {half} half", (name,)) for name, half in twenty.HALVES.items()}
    | {
        "chosen": _part("the ten sets by which settings were chosen, and mean ranks", twenty.CHOSEN),
        "shown": _part("the ten sets by which they are judged, and mean ranks", twenty.SHOWN),
    },
    draw=partial(pictures.tables, by_column=True),
)
