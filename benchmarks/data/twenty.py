"""The twenty real sets of the suite ``defaults``, and the rows that are held out of them.

Sets of fewer than ``SMALL`` rows have three splits: fold k holds out row i iff splitmix64(i + 42) % 3 == k, so that
each row is held out once. The others have one, as ``real.py`` splits them, and of its training and held-out rows
at most ``MOST``, which keeps a run of every library to about an hour. Columns that are not numbers become categorical,
their categories being those of all rows.
"""

from __future__ import annotations

import io
from collections.abc import Callable, Iterator
from functools import partial
from typing import Any

import numpy as np

from gpuboost.benchmarks.data import real
from gpuboost.benchmarks.harness.store import Data, Task

SMALL = 10_000
FOLDS = 3
MOST = 20_000


def splits(name: str, rows: int | None = None) -> Iterator[Data]:
    """The splits of a set. rows: of the training rows of each, at most."""
    data = SETS[name]()
    if len(data.y) + len(data.y_test) >= SMALL:
        yield _some(data, min(MOST, rows or MOST))
        return
    x, y = _stacked(data.X, data.X_test), np.concatenate([data.y, data.y_test])
    _, hashes = real.held_out(len(y))
    fold = hashes % np.uint64(FOLDS)
    for k in range(FOLDS):
        out = fold == k
        yield _some(Data(data.task, x[~out], y[~out], x[out], y[out]), rows)


def _some(data: Data, rows: int | None) -> Data:
    """So many training rows, and at most ``MOST`` held-out ones: those of the smallest hashes, in their order."""
    learn, judge = _smallest(len(data.y), rows), _smallest(len(data.y_test), MOST)
    x, x_test = (
        part.iloc[i] if hasattr(part, "iloc") else part[i] for part, i in ((data.X, learn), (data.X_test, judge))
    )
    weight = None if data.weight is None else data.weight[learn]
    weight_test = None if data.weight_test is None else data.weight_test[judge]
    return Data(data.task, x, data.y[learn], x_test, data.y_test[judge], weight, weight_test)


def _smallest(n: int, max_rows: int | None) -> Any:
    """(max_rows,) row numbers, increasing; a file may be sorted, so they are not its first."""
    _, hashes = real.held_out(n)
    return np.sort(np.argsort(hashes, kind="stable")[:max_rows])


def _stacked(x: Any, x_test: Any) -> Any:
    if isinstance(x, np.ndarray):
        return np.concatenate([x, x_test])
    import pandas as pd

    return pd.concat([x, x_test], ignore_index=True)


def _table(task: Task, file: str, *, blanks: bool = False) -> Data:
    """A file of columns without a header, the target last; labels become 0 and 1 in their order."""
    import pandas as pd

    options: dict[str, Any] = {"sep": r"\s+"} if blanks else {}
    frame = pd.read_csv(io.BytesIO(real._bytes(f"uci/{file}")), header=None, **options)
    frame.columns = [f"c{i}" for i in range(frame.shape[1])]
    y = frame.pop(frame.columns[-1])
    target = y.to_numpy(np.float64) if task == "regression" else (y == sorted(y.unique())[-1]).to_numpy(np.float64)
    return real._by_hash(task, frame, target, None)


def _of_scikit_learn(task: Task, load: str) -> Data:
    from sklearn import datasets

    x, y = getattr(datasets, load)(return_X_y=True)
    out, _ = real.held_out(len(y))
    return Data(task, x[~out], y[~out].astype(np.float64), x[out], y[out].astype(np.float64))


SETS: dict[str, Callable[[], Data]] = {
    "abalone": partial(_table, "regression", "abalone.csv"),
    "adult": real.adult,
    "amazon": real.amazon,
    "bank": real.bank,
    "breast_cancer": real.breast_cancer,
    "california": real.california,
    "concrete": partial(_table, "regression", "concrete.txt", blanks=True),
    "covtype_sub": real.covtype_sub,
    "diabetes": partial(_of_scikit_learn, "regression", "load_diabetes"),
    "diamonds": real.diamonds,
    "digits": partial(_of_scikit_learn, "multiclass", "load_digits"),
    "energy": partial(_table, "regression", "energy.txt", blanks=True),
    "freMTPL2freq": real.freMTPL2freq,
    "german": partial(_table, "binary", "german.csv"),
    "higgs7k": real.higgs7k,
    "kin8nm": partial(_table, "regression", "kin8nm.txt", blanks=True),
    "mammography": partial(_table, "binary", "mammography.csv"),
    "phoneme": partial(_table, "binary", "phoneme.csv"),
    "protein": partial(_table, "regression", "protein.txt", blanks=True),
    "wine_white": partial(_table, "regression", "winequality-white.csv"),
}
"""By name, in alphabetical order."""

CHOSEN, SHOWN = tuple(SETS)[0::2], tuple(SETS)[1::2]
"""The half by which settings were chosen, and the half that shows what they are worth."""

HALVES = {name: "chosen" if name in CHOSEN else "shown" for name in SETS}
