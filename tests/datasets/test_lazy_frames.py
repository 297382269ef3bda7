"""Predictions for lazy frames: names are checked before a row is read, and unused columns are never read."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import gpuboost as gb

pl = pytest.importorskip("polars")

rng = np.random.default_rng(0)
FRAME = pl.DataFrame(
    {"a": rng.normal(size=300), "city": rng.choice(["x", "y", "z"], 300), "unused": rng.normal(size=300)}
)
FRAME = FRAME.with_columns(pl.col("city").cast(pl.Categorical))
Y = FRAME["a"].to_numpy() + (FRAME["city"].to_physical().to_numpy() == 1)


def refuses_to_be_read(name: str) -> Any:
    def fail(values: Any) -> Any:
        raise AssertionError(f"{name} was read")

    return pl.col(name).map_batches(fail, return_dtype=FRAME.schema[name])


@pytest.fixture(scope="module")
def model() -> gb.GradientBoostingRegressor:
    constant = FRAME.with_columns(pl.lit(1.0).alias("unused"))  # so that no tree asks for it
    return gb.GradientBoostingRegressor(n_estimators=5, n_jobs=1).fit(constant, Y)


def test_only_the_columns_that_trees_ask_for_are_read(model: gb.GradientBoostingRegressor) -> None:
    lazy = FRAME.lazy().with_columns(refuses_to_be_read("unused"))
    expected = model.predict(FRAME)
    np.testing.assert_array_equal(model.predict(lazy), expected)
    np.testing.assert_array_equal(model.predict_contributions(lazy), model.predict_contributions(FRAME))
    with pytest.raises(Exception, match="a was read"):
        model.predict(FRAME.lazy().with_columns(refuses_to_be_read("a")))


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (lambda lazy: lazy.drop("unused"), "now missing:\n- unused"),
        (lambda lazy: lazy.with_columns(more=1), "unseen at fit time:\n- more"),
        (lambda lazy: lazy.select("city", "a", "unused"), "Column 0 is 'city', and was 'a'"),
    ],
)
def test_wrong_columns_are_named_before_a_row_is_read(
    change: Any, message: str, model: gb.GradientBoostingRegressor
) -> None:
    lazy = FRAME.lazy().with_columns(*(refuses_to_be_read(name) for name in FRAME.columns))
    with pytest.raises(ValueError, match=message):
        model.predict(change(lazy))


def test_statistics_of_categories_need_the_columns_that_they_are_of() -> None:
    encoded = gb.GradientBoostingRegressor(n_estimators=3, categorical_encoding="ordered", random_state=0, n_jobs=1)
    encoded.fit(FRAME.with_columns(pl.lit(1.0).alias("unused")), Y)
    lazy = FRAME.lazy().with_columns(refuses_to_be_read("unused"))
    np.testing.assert_array_equal(encoded.predict(lazy), encoded.predict(FRAME))


def test_relations_of_duckdb(model: gb.GradientBoostingRegressor) -> None:
    duckdb = pytest.importorskip("duckdb")
    pytest.importorskip("pyarrow")
    frame = FRAME.with_columns(pl.col("city").cast(pl.String))  # the query below finds it by its name
    relation = duckdb.sql("SELECT a, city, unused FROM frame")
    np.testing.assert_array_equal(model.predict(relation), model.predict(frame))


def test_a_lazy_target_is_to_be_collected() -> None:
    lazy = pl.DataFrame({"y": np.arange(len(FRAME))}).lazy()
    model = gb.GradientBoostingRegressor(n_estimators=2)
    for call in (lambda: model.fit(FRAME, lazy), lambda: gb.Dataset(FRAME, lazy)):
        with pytest.raises(gb.InputError, match=r"^y: a LazyFrame says how to come to its rows.* Collect it\.$"):
            call()
