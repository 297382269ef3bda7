"""``Dataset.from_batches`` of frames that are not of pandas, and offsets in pieces and in Parquet files."""

from __future__ import annotations

import subprocess
import sys
from typing import Any

import numpy as np
import pytest

import gpuboost as gb

pl = pytest.importorskip("polars")

RNG = np.random.default_rng(3)
N = 90
SIZE, FLOORS = RNG.normal(size=N), RNG.integers(0, 9, N)
TOWN = np.sort(RNG.choice(["a", "b", "c"], N))  # each piece has other categories
Y = SIZE + (TOWN == "b")
OFFSET = RNG.normal(size=N)
PARTS = [slice(0, 30), slice(30, 31), slice(31, 90)]


def frame(rows: slice) -> Any:
    floors = [None if rows.start == 31 and i % 7 == 0 else int(v) for i, v in enumerate(FLOORS[rows])]
    columns = {"size": SIZE[rows], "floors": floors, "town": pl.Series(TOWN[rows]).cast(pl.Categorical)}
    return pl.DataFrame(columns, schema_overrides={"floors": pl.Int64})


def text(data: gb.Dataset, **settings: Any) -> str:
    settings = {"n_estimators": 3, "max_depth": 3, "random_state": 0, "n_jobs": 1} | settings
    return gb.dumps(gb.GradientBoostingRegressor(**settings).fit(data))


KINDS = {
    "polars": lambda part: part,
    "polars lazy": lambda part: part.lazy(),
    "pyarrow": lambda part: part.to_arrow(),
}


@pytest.mark.parametrize("kind", KINDS)
def test_pieces_of_frames_are_one_frame(kind: str) -> None:
    pieces = [(KINDS[kind](frame(rows)), Y[rows]) for rows in PARTS]
    whole = pl.concat([frame(rows) for rows in PARTS])
    data, expected = gb.Dataset.from_batches(pieces), gb.Dataset(whole, Y)
    assert data.columns == expected.columns
    assert text(data) == text(expected)


def test_pieces_of_several_libraries_are_joined_and_pieces_without_rows_left_out() -> None:
    first, second = frame(PARTS[0]), frame(PARTS[2])
    pieces = [(first, Y[PARTS[0]]), (first[:0], []), (second.to_pandas(), Y[PARTS[2]])]
    expected = gb.Dataset(pl.concat([first, second]), np.concatenate([Y[PARTS[0]], Y[PARTS[2]]]))
    assert text(gb.Dataset.from_batches(pieces)) == text(expected)
    with pytest.raises(gb.InputError, match=r"piece 1 has the columns \['size'\], and piece 0 \['size', 'floors'"):
        gb.Dataset.from_batches([(first, Y[PARTS[0]]), (second.select("size"), Y[PARTS[2]])])


def test_pieces_of_polars_need_no_pandas() -> None:
    program = """
import sys
sys.modules["pandas"] = sys.modules["pyarrow"] = None  # importing them raises ImportError
import polars as pl
import gpuboost as gb
pieces = [(pl.DataFrame({"x": [float(i), 2.0], "w": ["a", "b"]}, schema_overrides={"w": pl.Categorical}), [0.0, 1.0])
          for i in range(3)]
print(gb.Dataset.from_batches(pieces))
"""
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, timeout=300, check=False)
    assert done.stdout.startswith("Dataset(6 rows, 2 features, 1 of them categorical"), done.stderr


@pytest.mark.parametrize("width", [1, 2])
def test_offsets_come_in_pieces(width: int) -> None:
    offset = OFFSET if width == 1 else np.column_stack([OFFSET, 0.1 * OFFSET])
    settings = {} if width == 1 else {"loss": "gaussian_nll"}
    pieces = [{"X": SIZE[rows, None], "y": Y[rows], "init_score": offset[rows]} for rows in PARTS]
    data = gb.Dataset.from_batches(pieces)
    np.testing.assert_array_equal(data.init_score, offset)
    assert text(data, **settings) == text(gb.Dataset(SIZE[:, None], Y, init_score=offset), **settings)
    pieces[1]["init_score"] = np.zeros((1, 3))
    with pytest.raises(gb.InputError, match=r"init_score of piece 0 has shape .*, and that of piece 1 \(1, 3\)"):
        gb.Dataset.from_batches(pieces)


def test_offsets_come_from_columns_of_parquet_files(tmp_path: Any) -> None:
    table = pl.DataFrame({"size": SIZE, "y": Y, "one": OFFSET, "two": 0.1 * OFFSET})
    for number, rows in enumerate(PARTS):
        table[rows].write_parquet(tmp_path / f"part-{number}.parquet")
    data = gb.Dataset.from_parquet(tmp_path, "y", init_score=["one", "two"])
    assert data.shape == (N, 1)
    offset = np.column_stack([OFFSET, 0.1 * OFFSET])
    expected = gb.Dataset(table.select("size"), Y, init_score=offset)
    assert text(data, loss="gaussian_nll") == text(expected, loss="gaussian_nll")
    single = gb.Dataset.from_parquet(tmp_path, "y", init_score="one", features=["size"])
    assert text(single) == text(gb.Dataset(table.select("size"), Y, init_score=OFFSET))
    with pytest.raises(gb.InputError, match="init_score: the files have no column 'three'"):
        gb.Dataset.from_parquet(tmp_path, "y", init_score="three")
    with pytest.raises(gb.InputError, match="init_score: must be the name of a column, or a list of names; got 1"):
        gb.Dataset.from_parquet(tmp_path, "y", init_score=1)
