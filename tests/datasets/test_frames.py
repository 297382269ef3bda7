"""Frames of polars, pyarrow and DuckDB are the pandas frame of the same rows."""

from __future__ import annotations

import sys
from typing import Any

import numpy as np
import pytest

import gpuboost as gb
from gpuboost.data import frames

pd = pytest.importorskip("pandas")
pl = pytest.importorskip("polars")
pa = pytest.importorskip("pyarrow")

rng = np.random.default_rng(0)
N = 150
FRAME = pd.DataFrame(
    {
        "size": rng.normal(size=N),
        "floors": pd.array(rng.integers(1, 9, N), dtype="Int64"),
        "narrow": rng.normal(size=N).astype(np.float32),
        "lift": rng.random(N) > 0.5,
        "town": pd.Categorical(rng.choice(list("xyzuv"), N)),
    }
)
FRAME.loc[::9, "size"] = np.nan
FRAME.loc[::11, "floors"] = pd.NA
FRAME.loc[::13, "town"] = None
Y = FRAME["size"].fillna(0.0).to_numpy() + (FRAME["town"] == "x").to_numpy() + 0.1 * rng.normal(size=N)
SETTINGS: dict[str, Any] = {"n_estimators": 5, "max_depth": 3, "n_jobs": 1}


def arrow(frame: Any) -> Any:
    return pa.Table.from_pandas(frame, preserve_index=False)


class Capsule:
    """A frame of a library that is not known, which hands over its rows as an Arrow stream."""

    def __init__(self, frame: Any) -> None:
        self._table = arrow(frame)

    def __arrow_c_stream__(self, requested_schema: Any = None) -> Any:
        return self._table.__arrow_c_stream__(requested_schema)


def duck(frame: Any) -> Any:
    duckdb = pytest.importorskip("duckdb")
    return duckdb.from_arrow(arrow(frame))


FRAMES = {
    "pyarrow": arrow,
    "polars": lambda frame: pl.from_arrow(arrow(frame)),
    "polars lazy": lambda frame: pl.from_arrow(arrow(frame)).lazy(),
    "duckdb": duck,
    "capsule": Capsule,
    "batch": lambda frame: pa.RecordBatch.from_pandas(frame, preserve_index=False),
}
EACH = pytest.mark.parametrize("kind", FRAMES)


@EACH
def test_each_frame_gives_the_model_of_the_pandas_frame(kind: str) -> None:
    frame = FRAMES[kind](FRAME)
    given = SETTINGS | ({"categorical_features": ["town"]} if kind == "duckdb" else {})  # its enums come as texts
    expected = gb.GradientBoostingRegressor(**given).fit(FRAME, Y)
    model = gb.GradientBoostingRegressor(**given).fit(frame, Y, eval_set=(frame, Y))
    assert model.feature_names_in_.tolist() == list(FRAME)
    text, other = gb.dumps(model), gb.dumps(expected)
    assert text == other
    np.testing.assert_array_equal(model.predict(frame), expected.predict(FRAME))
    data, other_data = (gb.Dataset(x, Y, categorical_features=["town"]) for x in (frame, FRAME))
    assert data.columns == other_data.columns


@EACH
def test_columns_that_differ_are_named(kind: str) -> None:
    model = gb.GradientBoostingRegressor(**SETTINGS, categorical_features=["town"]).fit(FRAMES[kind](FRAME), Y)
    words = {
        "missing: 'town'|town": FRAME.drop(columns="town"),
        "age": FRAME.assign(age=1.0),
        "order": FRAME[list(FRAME)[::-1]],
    }
    for word, frame in words.items():
        with pytest.raises(ValueError, match=f"(?s){word}"):
            model.predict(FRAMES[kind](frame))


@pytest.mark.parametrize("kind", ["polars", "polars lazy", "pyarrow"])
def test_columns_of_floats_are_one_matrix(kind: str) -> None:
    floats = pd.DataFrame(rng.normal(size=(60, 3)), columns=list("abc"))
    floats.iloc[3, 1] = np.nan
    model = gb.GradientBoostingRegressor(**SETTINGS).fit(FRAMES[kind](floats), Y[:60])
    expected = gb.GradientBoostingRegressor(**SETTINGS).fit(floats, Y[:60])
    np.testing.assert_array_equal(model.predict(FRAMES[kind](floats)), expected.predict(floats))


def test_polars_needs_neither_pandas_nor_pyarrow(monkeypatch: pytest.MonkeyPatch) -> None:
    frame = pl.from_arrow(arrow(FRAME))
    expected = gb.GradientBoostingRegressor(**SETTINGS).fit(FRAME, Y)
    monkeypatch.setitem(sys.modules, "pyarrow", None)
    model = gb.GradientBoostingRegressor(**SETTINGS).fit(frame, pl.Series(Y))
    assert gb.dumps(model) == gb.dumps(expected)


def test_dates_and_numbers_as_text_are_refused_with_their_column() -> None:
    dates = pl.DataFrame({"when": pl.date_range(pl.date(2020, 1, 1), pl.date(2020, 2, 1), eager=True)})
    with pytest.raises(gb.InputError, match="X, column 'when': dates and time spans are not numbers"):
        gb.GradientBoostingRegressor().fit(dates, np.zeros(len(dates)))
    texts = pl.DataFrame({"town": list("1234")})
    with pytest.raises(gb.InputError, match="town"):
        gb.GradientBoostingRegressor().fit(texts, np.arange(4.0))
    chosen = gb.GradientBoostingRegressor(n_estimators=2, categorical_features=["town"]).fit(texts, np.arange(4.0))
    assert chosen.columns_.categories == (("1", "2", "3", "4"),)


def test_integers_of_128_bits_are_numbers() -> None:
    column = pl.Series("a", range(60))
    expected = gb.GradientBoostingRegressor(**SETTINGS).fit(column.to_frame(), Y[:60])
    for wide in (column.cast(pl.Int128).to_frame(), column.cast(pl.UInt128).to_frame()):
        assert gb.dumps(gb.GradientBoostingRegressor(**SETTINGS).fit(wide, Y[:60])) == gb.dumps(expected)
        np.testing.assert_array_equal(expected.predict(wide), expected.predict(column.to_frame()))


def test_columns_of_one_name_are_refused() -> None:
    pa = pytest.importorskip("pyarrow")
    table = pa.table([pa.array([1.0, 2.0]), pa.array([3.0, 4.0])], names=["same", "same"])
    with pytest.raises(gb.InputError, match=r"X: every column needs a name of its own; .*'same' 2 times"):
        gb.Dataset(table, [0.0, 1.0])


@pytest.mark.parametrize("kind", ["pandas", "pandas of arrow", "polars", "pyarrow"])
def test_ids_beyond_the_floats_are_told_apart_beside_missing_ones(kind: str) -> None:
    ids = [None if i % 10 == 9 else 2**53 + i % 4 for i in range(N)]
    target = np.array([0.5 if one is None else float(one % 2) for one in ids])
    frames = {
        "pandas": lambda: pd.DataFrame({"id": pd.array(ids, dtype="Int64")}),
        "pandas of arrow": lambda: pd.DataFrame({"id": pd.array(ids, dtype=pd.ArrowDtype(pa.int64()))}),
        "polars": lambda: pl.DataFrame({"id": ids}),
        "pyarrow": lambda: pa.table({"id": ids}),
    }
    frame = frames[kind]()
    model = gb.GradientBoostingRegressor(**SETTINGS, categorical_features=["id"]).fit(frame, target)
    assert model.columns_.categories == (tuple(range(2**53, 2**53 + 4)),)
    predicted = model.predict(frame)
    assert predicted[1] > predicted[9] > predicted[0]
    with pytest.warns(UserWarning, match="no split tells them apart"):
        as_numbers = gb.GradientBoostingRegressor(**SETTINGS).fit(frame, target)
    assert np.isfinite(as_numbers.predict(frame)).all()


def test_older_versions_of_scikit_learn_are_given_the_names_of_a_frame(monkeypatch: pytest.MonkeyPatch) -> None:
    """scikit-learn before 1.9 asks for them by the interchange protocol, which polars has until its version 2."""
    frame, names = pl.from_arrow(arrow(FRAME)), list(FRAME.columns)
    assert frames.for_scikit_learn(frame, names) is frame or not frames.finds_every_name()
    monkeypatch.setattr(frames, "finds_every_name", lambda: False)
    told = frames.for_scikit_learn(frame, names)
    assert told.shape == frame.shape
    assert list(told.__dataframe__().column_names()) == names
    assert frames.for_scikit_learn(FRAME, names) is FRAME
    assert frames.for_scikit_learn(frame, None) is frame
