"""``Dataset.from_batches``: the Dataset of all pieces at once."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pandas as pd
import pytest
import scipy.sparse as sp

import gpuboost as gb

RNG = np.random.default_rng(5)
X = RNG.normal(size=(90, 3))
Y = X[:, 0] + X[:, 1]
W = RNG.random(90)
ENDS = ((0, 30), (30, 31), (31, 90))
WORDS = np.sort(RNG.choice(["a", "b", "c"], 90))  # each piece has other categories


def frame(rows: slice) -> pd.DataFrame:
    return pd.DataFrame({"n": X[rows, 0], "w": pd.Categorical(WORDS[rows])})


KINDS: dict[str, Callable[[slice], Any]] = {
    "arrays": lambda rows: X[rows],
    "lists": lambda rows: X[rows].tolist(),
    "sparse": lambda rows: sp.csr_matrix(np.where(X > 0, X, 0))[rows],
    "frames": frame,
}


@pytest.mark.parametrize("kind", KINDS)
def test_pieces_are_what_they_are_in_one(kind: str) -> None:
    make = KINDS[kind]
    pieces = ((make(slice(a, b)), Y[a:b], W[a:b]) for a, b in ENDS)
    data, whole = gb.Dataset.from_batches(pieces), gb.Dataset(make(slice(0, 90)), Y, weight=W)
    assert data.columns == whole.columns
    models = [gb.GradientBoostingRegressor(n_estimators=3, random_state=0, n_jobs=1).fit(d) for d in (data, whole)]
    assert gb.dumps(models[0]) == gb.dumps(models[1])


def test_queries_and_pieces_without_a_target() -> None:
    group = np.repeat(np.arange(9), 10)
    data = gb.Dataset.from_batches([{"X": X[a:b], "group": group[a:b]} for a, b in ENDS])
    assert data.y is None
    assert np.array_equal(data.group, group)


@pytest.mark.parametrize(
    ("batches", "message"),
    [
        ([], "there is none"),
        (3, "got int"),
        ({"X": X}, "got dict"),
        ([(X,)], "piece 0 must be .* tuple of 1"),
        ([(X, Y), X], "piece 1 must be .* got ndarray"),
        ([(X, Y), {"X": X}], "piece 0 has X, y, and piece 1 X"),
        ([{"X": X, "target": Y}], "got 'X', 'target'"),
        ([(X, Y), (X[:, :2], Y)], r"piece 0 has shape \(90, 3\), and that of piece 1 \(90, 2\)"),
        ([(X, Y), (sp.csr_matrix(X), Y)], "kind array, and that of piece 1 sparse"),
        ([(frame(slice(9)), Y[:9]), (frame(slice(9))[["w", "n"]], Y[:9])], "piece 1 has the columns"),
        ([(pd.DataFrame({"w": pd.Categorical(c)}), [1.0]) for c in ([1], ["a"])], "column 'w' differ in kind"),
        ([(X, Y[:, None])], "y of piece 0 must have one dimension"),
        ([(X, Y), (X, Y[:3])], "y: needs one value for each row"),
    ],
)
def test_what_does_not_match(batches: Any, message: str) -> None:
    with pytest.raises(gb.InputError, match=message):
        gb.Dataset.from_batches(batches)


@pytest.mark.parametrize("kind", KINDS)
def test_datasets_are_joined(kind: str) -> None:
    make = KINDS[kind]
    parts = [gb.Dataset(make(slice(a, b)), Y[a:b], weight=W[a:b], init_score=Y[a:b], group=[b - a]) for a, b in ENDS]
    data = gb.Dataset.from_batches(parts)
    whole = gb.Dataset(make(slice(0, 90)), Y, weight=W, init_score=Y, group=[b - a for a, b in ENDS])
    assert data.columns == whole.columns
    for name in ("y", "weight", "init_score", "group"):
        np.testing.assert_array_equal(getattr(data, name), getattr(whole, name))
    models = [gb.GradientBoostingRegressor(n_estimators=3, random_state=0, n_jobs=1).fit(d) for d in (data, whole)]
    assert gb.dumps(models[0]) == gb.dumps(models[1])


def test_a_dataset_and_rows_that_are_none_yet_are_joined_and_its_categories_are_their_values(tmp_path: Any) -> None:
    codes = RNG.integers(0, 9, 90)
    columns = np.column_stack([X[:, 0], np.where(codes == 8, np.nan, codes)])
    saved = tmp_path / "part.gbd"
    gb.Dataset(columns[:40], Y[:40], categorical_features=[1]).save(saved)
    data = gb.Dataset.from_batches([gb.Dataset.load(saved), gb.Dataset(columns[40:], Y[40:], categorical_features=[1])])
    whole = gb.Dataset(columns, Y, categorical_features=[1])
    assert data.columns == whole.columns
    np.testing.assert_array_equal(data.x, whole.x)
    numbers = gb.Dataset.from_batches([gb.Dataset(X[:40], Y[:40]), (X[40:], Y[40:])])
    np.testing.assert_array_equal(numbers.x, X)
    with pytest.raises(gb.InputError, match="piece 0 has X, y, and piece 1 X"):
        gb.Dataset.from_batches([gb.Dataset(X, Y), gb.Dataset(X)])
