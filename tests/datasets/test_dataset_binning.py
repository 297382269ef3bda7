"""The choice of cuts of a Dataset, in its files, pieces and copies."""

from __future__ import annotations

import pickle
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest

import gpuboost as gb
from gpuboost.data.dataset import Dataset
from gpuboost.data.formats import dataset_file

GREEDY = "greedy_log_sum"
rng = np.random.default_rng(0)
X = rng.exponential(size=(120, 2))
Y = X[:, 0] + rng.normal(size=120)


def whole() -> Dataset:
    return gb.Dataset(X, Y, init_score=0.5 * Y, max_bins=6, binning=GREEDY)


def in_parquet(folder: Path) -> Dataset:
    pd.DataFrame({"a": X[:, 0], "b": X[:, 1], "y": Y}).to_parquet(folder / "rows.parquet")
    return gb.Dataset.from_parquet(folder / "rows.parquet", "y", max_bins=6, binning=GREEDY)


def saved(data: Dataset, path: Path) -> Dataset:
    data.save(path)
    return gb.Dataset.load(path)


def test_files_pieces_and_copies_keep_it(tmp_path: Path) -> None:
    data, of_files = whole(), in_parquet(tmp_path)
    pieces = [(X[:50], Y[:50]), (X[50:], Y[50:])]
    copies = {
        "file": saved(data, tmp_path / "data.gbd"),
        "file of Parquet rows": saved(of_files, tmp_path / "files.gbd"),
        "Parquet rows in memory": of_files.loaded(),
        "pickle": pickle.loads(pickle.dumps(data)),
        "batches": gb.Dataset.from_batches(pieces, max_bins=6, binning=GREEDY),
    }
    for name, copy in copies.items():
        assert (copy.binning, copy.max_bins) == (GREEDY, 6), name
        for one, other in zip(copy.cuts.thresholds, data.cuts.thresholds, strict=True):
            np.testing.assert_array_equal(one, other, err_msg=name)
    part = data.take(np.arange(80))
    assert part.binning == GREEDY
    np.testing.assert_array_equal(part.init_score, data.init_score[:80])
    np.testing.assert_array_equal(copies["file"].init_score, data.init_score)
    model = gb.GradientBoostingRegressor(n_estimators=2, max_bins=6, binning=GREEDY, n_jobs=1)
    assert model.fit(copies["file"]).predict(data).tobytes() == model.fit(data).predict(data).tobytes()


def test_pickles_from_before_the_choice_and_files_that_do_not_name_it_are_of_quantiles(tmp_path: Path) -> None:
    data = gb.Dataset(X, Y, max_bins=6)
    assert saved(data, tmp_path / "data.gbd").binning == "quantile"
    assert b"binning" not in (tmp_path / "data.gbd").read_bytes()
    _, state = data.__getstate__()
    del state["binning"]
    old = object.__new__(Dataset)
    old.__setstate__((None, state))
    assert old.binning == "quantile"


def test_a_file_of_an_unknown_choice_is_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    write_arrays = dataset_file.write_arrays

    def write_unknown(path: Any, kind: str, version: int, about: dict[str, Any], arrays: Any) -> None:
        write_arrays(path, kind, version, about | {"binning": "median"}, arrays)

    monkeypatch.setattr(dataset_file, "write_arrays", write_unknown)
    with pytest.raises(gb.InputError, match=r"bad.gbd.*binning: must be one of"):
        saved(gb.Dataset(X, Y), tmp_path / "bad.gbd")
