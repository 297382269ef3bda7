"""Rows that stay in Parquet files: the model of the same rows in memory; each shard reads its own rows."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

import gpuboost as gb
from gpuboost.data.formats.parquet import ParquetRows
from gpuboost.errors import InputError

pa = pytest.importorskip("pyarrow")
pq = pytest.importorskip("pyarrow.parquet")

Array = np.ndarray


@pytest.fixture
def table() -> Any:
    rng = np.random.default_rng(0)
    n = 1_000
    some = np.where(rng.random(n) < 0.2, None, rng.normal(size=n).astype(object))
    return pa.table(
        {
            "a": rng.normal(size=n),
            "label": rng.normal(size=n),
            "b": rng.integers(0, 9, n),
            "c": pa.array(some, pa.float32()),
            "times": rng.integers(0, 3, n).astype(np.float64),
        }
    )


@pytest.fixture
def folder(table: Any, tmp_path: Path) -> Path:
    """Three files of several row groups."""
    for name, first, count in (("p0", 0, 300), ("p1", 300, 410), ("p2", 710, 290)):
        pq.write_table(table.slice(first, count), tmp_path / f"{name}.parquet", row_group_size=150)
    return tmp_path


def in_memory(table: Any, weighted: bool = True) -> gb.Dataset:
    weight = table["times"].to_numpy() if weighted else None
    return gb.Dataset(table.select(["a", "b", "c"]), table["label"].to_numpy(), weight=weight)


def from_files(paths: Any, **given: Any) -> gb.Dataset:
    return gb.Dataset.from_parquet(paths, "label", **{"weight": "times", "features": ["a", "b", "c"], **given})


def test_rows_and_cuts_are_those_of_memory(table: Any, folder: Path) -> None:
    read, whole = from_files(folder), in_memory(table)
    assert isinstance(read.x, ParquetRows)
    assert read.shape == whole.shape == (1_000, 3)
    assert read.columns == whole.columns
    assert "in 3 files" in repr(read)
    for rows in (slice(None), slice(290, 720), slice(5, 5), np.array([0, 299, 300, 999]), np.arange(1_000) % 7 == 0):
        assert np.array_equal(read.x[rows], whole.x[rows], equal_nan=True)
    for own, expected in zip(read.cuts.thresholds, whole.cuts.thresholds, strict=True):
        assert own.tobytes() == expected.tobytes()
    for name in ("y", "weight"):
        assert np.array_equal(getattr(read, name), getattr(whole, name))


def test_a_number_stands_for_missing_values(table: Any, folder: Path) -> None:
    read, b = from_files(folder, missing=3.0), table["b"].to_numpy()
    assert read.columns.missing == 3.0
    assert np.array_equal(read.x[:][:, 1], np.where(b == 3, np.nan, b), equal_nan=True)
    model = gb.GradientBoostingRegressor(n_estimators=2, n_jobs=1).fit(read)
    assert np.array_equal(model.predict(read), model.predict(table.select(["a", "b", "c"])))


@pytest.mark.parametrize("weighted", [True, False])
def test_shards_read_their_own_rows(weighted: bool, table: Any, folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Rows of weight 0 are left out, so some shard reads by number."""
    expected = gb.GradientBoostingRegressor(n_estimators=5).fit(in_memory(table, weighted))
    given = from_files(folder, weight="times" if weighted else None)
    sizes: list[int] = []
    take = ParquetRows.__getitem__

    def counted(self: ParquetRows, rows: Any) -> Array:
        read = take(self, rows)
        sizes.append(len(read))
        return read

    monkeypatch.setattr(ParquetRows, "__getitem__", counted)
    model = gb.GradientBoostingRegressor(n_estimators=5, execution=gb.DataParallel(3)).fit(given)
    assert len(sizes) == 3
    assert max(sizes) <= 340
    whole = in_memory(table)
    assert model.predict(whole).tobytes() == expected.predict(whole).tobytes()


def test_any_other_fit_reads_them_all(table: Any, folder: Path) -> None:
    expected = gb.GradientBoostingRegressor(n_estimators=5).fit(in_memory(table))
    model = gb.GradientBoostingRegressor(n_estimators=5).fit(from_files(folder), eval_set=[from_files(folder)])
    assert model.predict(from_files(folder)).tobytes() == expected.predict(in_memory(table)).tobytes()


def test_a_fit_on_files_is_carried_on(folder: Path) -> None:
    execution, data = gb.DataParallel(2), from_files(folder)
    begun = gb.GradientBoostingRegressor(n_estimators=3, execution=execution).fit(data)
    model = gb.GradientBoostingRegressor(n_estimators=2, execution=execution).fit(data, init_model=begun)
    assert model.ensemble_.n_rounds == 5
    whole = gb.GradientBoostingRegressor(n_estimators=5).fit(data)
    assert model.predict(data).tobytes() == whole.predict(data).tobytes()


def test_paths_are_files_folders_patterns_and_lists(folder: Path) -> None:
    files = [folder / f"p{i}.parquet" for i in range(3)]
    for paths in (folder, str(folder / "p*.parquet"), files, [files[0], str(folder / "p[12].parquet")]):
        assert from_files(paths).x.files == tuple(map(str, files))
    assert from_files(files[1]).shape == (410, 3)


def test_bad_input(table: Any, folder: Path) -> None:
    with pytest.raises(InputError, match="leads to none"):
        from_files(folder / "nothing.parquet")
    with pytest.raises(InputError, match="empty list"):
        from_files([])
    with pytest.raises(InputError, match=r"target: the files have no column 'lable'; they have [^.]*\w\.$"):
        gb.Dataset.from_parquet(folder, "lable")
    with pytest.raises(InputError, match=r"features: must name columns of the files; \['d'\]"):
        from_files(folder, features=["a", "d"])
    with pytest.raises(InputError, match="validation_fraction: rows of Parquet files stay"):
        gb.GradientBoostingRegressor(execution=gb.DataParallel(2), validation_fraction=0.1).fit(from_files(folder))
    (folder / "text.parquet").write_text("no parquet")
    with pytest.raises(InputError, match=r"text.parquet' cannot be read as Parquet"):
        from_files(folder)
    pq.write_table(table.drop_columns(["c"]), folder / "text.parquet")
    with pytest.raises(InputError, match=r"all files must have the same columns and types; .*text.parquet' differs"):
        from_files(folder)
    coded = table.set_column(0, "a", pa.array(["u", "v"] * 500).dictionary_encode())
    pq.write_table(coded, folder / "text.parquet")
    with pytest.raises(InputError, match=r"features: columns of Parquet files .* must be numbers.*'a' is not"):
        from_files(folder / "text.parquet")
