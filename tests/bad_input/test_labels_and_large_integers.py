"""Labels that a model file cannot hold, whole numbers beyond 2**53, and names that UTF-8 does not have."""

from __future__ import annotations

import warnings
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest

import gpuboost as gb
from gpuboost.data.columns import Columns

X = np.arange(40.0).reshape(20, 2)
DAYS = np.array(["2020-01-01", "2021-01-01"] * 10, dtype="datetime64[D]")


@pytest.mark.parametrize(
    "labels",
    [DAYS, DAYS - DAYS[0], pd.Series(DAYS.astype("datetime64[ns]")), pd.Series(pd.Categorical(DAYS))],
    ids=["dates", "spans", "series", "categories"],
)
def test_labels_that_are_dates_are_refused_before_the_fit(labels: Any) -> None:
    with pytest.raises(gb.InputError, match=r"^y: labels are text or numbers .* got (datetime|timedelta)64.*astype"):
        gb.GradientBoostingClassifier(n_estimators=2).fit(X, labels)


@pytest.mark.parametrize("dtype", ["S1", object])
def test_labels_of_bytes_are_refused_as_y(dtype: Any) -> None:
    with pytest.raises(gb.InputError, match=r"^y: labels are text or numbers .* got bytes"):
        gb.GradientBoostingClassifier(n_estimators=2).fit(X, np.array([b"a", b"b"] * 10, dtype=dtype))


@pytest.mark.skipif(np.dtype(np.longdouble).itemsize == 8, reason="long double is float64 here")
def test_labels_of_more_than_64_bits_are_refused_before_the_fit() -> None:
    with pytest.raises(gb.InputError, match=r"^y: labels are text or numbers of up to 64 bits"):
        gb.GradientBoostingClassifier(n_estimators=2).fit(X, np.array([1, 2] * 10, dtype=np.longdouble))


LARGE = np.array([2**53, 2**53 + 1, 5, 7], dtype=np.int64)


@pytest.mark.parametrize(
    "rows",
    [
        LARGE[:, None],
        -LARGE[:, None],
        pd.DataFrame({"id": LARGE, "b": 0.5}),
        pd.DataFrame({"id": LARGE.astype(np.uint64) + np.uint64(2**63), "b": 0.5}),
        pd.DataFrame({"id": pd.array([2**53, 2**53 + 1, None, 7], dtype="Int64"), "b": 0.5}),
    ],
    ids=["array", "negative", "frame", "unsigned", "nullable"],
)
def test_whole_numbers_that_are_one_float_are_warned_of(rows: Any) -> None:
    with pytest.warns(UserWarning, match=r"whole numbers beyond 2\*\*53 of which several are one number as float64"):
        Columns.learn(rows, None)


@pytest.mark.parametrize(
    "rows",
    [
        np.array([[2**53 + 2], [2**53 + 4]]),
        np.array([[2**40 + 1], [2**40]]),
        pd.to_datetime(pd.Series(["2020-01-01", "2020-01-02"])).astype("int64").to_frame("ns"),
        pd.DataFrame({"id": LARGE, "b": 0.5}).astype({"id": "category"}),
        LARGE[:, None].astype(np.float64),
    ],
    ids=["even", "small", "nanoseconds", "category", "floats"],
)
def test_whole_numbers_that_stay_apart_are_not(rows: Any) -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        Columns.learn(rows)


def test_names_of_columns_that_utf8_does_not_have(tmp_path: Path) -> None:
    frame = pd.DataFrame(X)
    frame.columns = pd.Index(["a\ud800", "b"], dtype=object)
    checkpoint = gb.callbacks.Checkpoint(tmp_path / "run.json")
    model = gb.GradientBoostingRegressor(n_estimators=2, callbacks=[checkpoint]).fit(frame, X[:, 0])
    model.save_model(tmp_path / "model.json")
    for name in ("model.json", "run.json"):
        loaded = gb.load_model(tmp_path / name)
        assert np.array_equal(loaded.predict(frame), model.predict(frame))
    gb.Dataset(frame, X[:, 0]).save(tmp_path / "rows.gbd")
    assert gb.Dataset.load(tmp_path / "rows.gbd").columns.names == ("a\ud800", "b")
    gb.export.to_c(model, tmp_path / "model.c")
    gb.export.to_xgboost(model, tmp_path / "xgboost.json")
