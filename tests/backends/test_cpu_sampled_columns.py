"""Sparse columns of the drawn rows: their entries, in their order, and the same tree as from all entries."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from scipy.sparse import random_array

import gpuboost as gb
from gpuboost.backends.cpu import growth
from gpuboost.backends.cpu.trees.layout import SortedColumns, drawn_columns
from gpuboost.backends.host.threads import ThreadPool
from gpuboost.backends.host.workspace import Workspace

Array = np.ndarray


@pytest.mark.parametrize("threads", [1, 3])
@pytest.mark.parametrize("share", [0.0, 0.3, 1.0])
def test_entries_of_drawn_rows_in_their_order(threads: int, share: float) -> None:
    rng, n, d = np.random.default_rng(0), 50, 7
    counts = rng.integers(0, 20, d)
    start = np.concatenate([[0], np.cumsum(counts)])
    row = np.concatenate([rng.permutation(n)[:count] for count in counts]).astype(np.int32)
    stored = SortedColumns(start, row, rng.integers(0, 9, len(row)).astype(np.uint8), np.zeros(d, np.uint8))
    rows = np.flatnonzero(rng.random(n) < share).astype(np.int32)
    found = drawn_columns(stored, rows, n, ThreadPool(threads), Workspace())
    kept = np.isin(row, rows)
    for f in range(d):
        mine, theirs = slice(found.start[f], found.start[f + 1]), slice(start[f], start[f + 1])
        assert found.row[mine].tolist() == row[theirs][kept[theirs]].tolist()
        assert found.bin[mine].tolist() == stored.bin[theirs][kept[theirs]].tolist()


@pytest.mark.slow
@pytest.mark.parametrize("rule", [gb.UniformSampling(0.3), gb.MVS(0.2), gb.GOSS(0.1, 0.1)], ids=repr)
def test_the_same_model_as_from_every_entry(rule: object, monkeypatch: pytest.MonkeyPatch) -> None:
    """Few entries for each cell, so that columns are searched; and the bins of dense rows are the same bins."""
    rng, taken = np.random.default_rng(1), []
    x = random_array((400, 60), density=0.05, rng=rng, dtype=np.float32).tocsr()
    y = np.asarray(x.sum(axis=1)).ravel() + 0.3 * rng.normal(size=400)
    model = gb.GradientBoostingRegressor(n_estimators=6, max_depth=4, sampling=rule, random_state=2, device="cpu")

    def counted(columns: SortedColumns, rows: Array, *rest: Any) -> SortedColumns:
        taken.append(len(rows))
        return drawn_columns(columns, rows, *rest)

    monkeypatch.setattr(growth, "drawn_columns", counted)
    quick = model.fit(x, y).predict(x)
    assert len(taken) == 6
    assert max(taken) < 200
    monkeypatch.setattr(growth, "drawn_columns", lambda columns, *_: columns)
    assert np.array_equal(model.fit(x, y).predict(x), quick)
    assert np.array_equal(model.fit(x.toarray(), y).predict(x), quick)
