"""Whole fits of small data, binning included, beside other libraries: parts of the suite ``cpu-use``."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import Any

import numpy as np

from gpuboost.benchmarks.harness.alternation import PEERS, alternated, beside, columns, row
from gpuboost.benchmarks.harness.cases import OURS, Setting
from gpuboost.benchmarks.harness.experiments import Finding, Options
from gpuboost.benchmarks.harness.peers import open_peer
from gpuboost.benchmarks.harness.store import Array

SHAPES = (1_000, 10, 100), (1_000, 10, 1_000), (1_000, 50, 100), (5_000, 28, 100), (20_000, 28, 100), (20_000, 50, 200)
"""Rows, features, trees"""

DRAWN_SHAPES = (1_000, 10, 200), (5_000, 20, 200)
CATEGORIES = (1_000, 5, 8), (1_000, 20, 100), (5_000, 20, 30), (20_000, 10, 200)
"""Rows, columns, categories of a column"""

ROWS = {
    OURS: {"sampling": 0.5},
    "xgboost": {"subsample": 0.5},
    "lightgbm": {"bagging_fraction": 0.5, "bagging_freq": 1},
}
FEATURES = {OURS: {"learners": 0.5}, "xgboost": {"colsample_bytree": 0.5}, "lightgbm": {"feature_fraction": 0.5}}
NODES = {
    OURS: {"learners": "by node"}, "xgboost": {"colsample_bynode": 0.5}, "lightgbm": {"feature_fraction_bynode": 0.5},
}  # fmt: skip
RISING = {OURS: {"monotonic_cst": "first"}, **{name: {"monotone_constraints": "first"} for name in PEERS[:2]}}
HALVES = {OURS: {"interaction_cst": "halves"}, "lightgbm": {"interaction_constraints": "halves"}}
VARIATIONS: dict[str, tuple[int | None, dict[str, dict[str, Any]]]] = {
    "half of the rows": (None, ROWS),
    "half of the features": (None, FEATURES),
    "half of the features of each node": (None, NODES),
    "half of rows and features": (None, {name: {**ROWS[name], **FEATURES[name]} for name in ROWS}),
    "GOSS": (None, {OURS: {"sampling": "GOSS"}, "lightgbm": {"data_sample_strategy": "goss"}}),
    "one cut of each feature": (None, {OURS: {"extra_trees": True}, "lightgbm": {"extra_trees": True}}),
    "20 rows a leaf": (None, {OURS: {"min_samples_leaf": 20}, "lightgbm": {"min_data_in_leaf": 20}}),
    "L1 penalty of 0.5": (None, {OURS: {"reg_alpha": 0.5}, "xgboost": {"alpha": 0.5}, "lightgbm": {"lambda_l1": 0.5}}),
    "rising with the first column": (None, RISING),
    "31 leaves, leaf-wise": (31, {name: {} for name in (OURS, *PEERS)}),
    "two sets of columns": (None, HALVES),
    "path smoothing": (None, {name: {"path_smooth": 1.0} for name in (OURS, "lightgbm")}),
    "oblivious": (None, {OURS: {"growth": "oblivious"}, "catboost": {}}),
    "Langevin": (None, {OURS: {"langevin": "chain"}, "catboost": {"langevin": True}}),
}
"""Most leaves, if trees grow leaf-wise, and the options of each library that has them; of GOSS their defaults"""


Runs = Mapping[str, Callable[[], Any]]  # of libraries by their names


def problem(n: int, d: int) -> tuple[Array, Array]:
    """Two classes, by an interaction and a sum."""
    rng = np.random.default_rng(0)
    x = rng.normal(size=(n, d))
    return x, (x[:, 0] * x[:, 1] + x[:, 2] + 0.5 * rng.normal(size=n) > 0).astype(np.float64)


def _fit(name: str, x: Array, y: Array, setting: Setting, threads: int, **more: Any) -> Callable[[], Any]:
    def run() -> Any:
        peer = open_peer(name, "binary", setting, threads, y, **more)
        return peer.train(peer.bin(peer.prepare(x), y, None, None))

    return run


def _compared(title: str, names: Sequence[str], all_runs: Iterable[tuple[str, Runs]], options: Options) -> Finding:
    """A row of times for each (what it is, runs of the libraries)."""
    rows, numbers = [], {}
    for what, runs in all_runs:
        seconds = alternated(runs, options.repeats or 5, lambda say, what=what: options.tell(f"{what}: {say}"))
        rows.append(row(what, seconds, names))
        numbers[what] = seconds
    return Finding(f"{title}: milliseconds (of CPU time)", columns(names), tuple(rows), numbers=numbers)


def fits(options: Options) -> Finding:
    """Whole fits, binning included, on one thread and on all."""
    names = beside(options)

    def all_runs() -> Iterator[tuple[str, Runs]]:
        for n, d, trees in SHAPES[:1] if options.small else SHAPES:
            x, y = problem(n, d)
            for threads in sorted({1, options.threads}):
                setting = Setting(trees=5 if options.small else trees)
                runs = {name: _fit(name, x, y, setting, threads) for name in names}
                yield f"{n:,} x {d}, {trees} trees, {threads} threads", runs

    return _compared("Whole fits of depth 6", names, all_runs(), options)


def variations(options: Options) -> Finding:
    """Whole fits on one thread by other settings than the default ones. CatBoost's trees are oblivious in any case."""
    from gpuboost import GOSS, Langevin, RandomByNode

    policies: dict[str, Any] = {"GOSS": GOSS(), "by node": RandomByNode(0.5), "chain": Langevin()}
    names = (*beside(options), *(["catboost"] if options.beside("catboost") else []))

    def all_runs() -> Iterator[tuple[str, Runs]]:
        for n, d, trees in DRAWN_SHAPES[:1] if options.small else DRAWN_SHAPES:
            x, y = problem(n, d)
            of_columns = {"first": (1, *[0] * (d - 1)), "halves": [[*range(d // 2)], [*range(d // 2, d)]]}
            values = policies | of_columns
            for kind, (leaves, of) in VARIATIONS.items():
                setting, runs = Setting(trees=20 if options.small else trees, leaves=leaves), {}
                for name in names:
                    if name in of:
                        more = {word: values.get(str(value), value) for word, value in of[name].items()}
                        runs[name] = _fit(name, x, y, setting, 1, **more)
                yield f"{n:,} x {d}, {kind}", runs

    title = "Whole fits of 200 trees, of depth 6 but for the leaf-wise ones, one thread"
    return _compared(title, names, all_runs(), options)


def fits_of_categories(options: Options) -> Finding:
    """Whole fits on one thread of columns that are all categories. LightGBM has our limits of a category's rows."""
    names = tuple(name for name in beside(options) if name != "sklearn")

    def all_runs() -> Iterator[tuple[str, Runs]]:
        for n, d, categories in CATEGORIES[:1] if options.small else CATEGORIES:
            x, y = _in_categories(n, d, categories)
            setting = Setting(trees=5 if options.small else 100)
            limits = {"min_data_per_group": min(n // 100, 100), "cat_smooth": min(n / 1000, 10.0)}
            runs = {name: _fit(name, x, y, setting, 1, **(limits if name == "lightgbm" else {})) for name in names}
            yield f"{n:,} x {d} of {categories} categories", runs

    return _compared("Whole fits of 100 trees of depth 6, one thread", names, all_runs(), options)


def _in_categories(n: int, d: int, categories: int) -> tuple[Any, Array]:
    """A frame of (n, d), and two classes by the sum of the effects of all categories."""
    import pandas as pd

    rng = np.random.default_rng(0)
    codes, effects = rng.integers(0, categories, (n, d)), rng.normal(size=(d, categories))
    sums = effects[np.arange(d), codes].sum(axis=1) + rng.normal(size=n)
    frame = {f"c{j}": pd.Categorical.from_codes(codes[:, j], range(categories)) for j in range(d)}
    return pd.DataFrame(frame), (sums > 0).astype(np.float64)
