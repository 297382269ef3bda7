"""Columns of text are categories without being asked for, whatever library holds them."""

from __future__ import annotations

import datetime
from typing import Any

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest

import gpuboost as gb

RNG = np.random.default_rng(0)
SHOP = RNG.choice(["Ulm", "Bonn", "Kiel"], 200)
SIZE = RNG.normal(size=200)
Y = (SHOP == "Bonn") + 0.1 * SIZE
SMALL = {"n_estimators": 5, "random_state": 0, "n_jobs": 1}

FRAMES: dict[str, Any] = {
    "object": lambda shop: pd.DataFrame({"shop": shop.astype(object), "size": SIZE}),
    "string": lambda shop: pd.DataFrame({"shop": pd.array(shop, dtype="string"), "size": SIZE}),
    "polars": lambda shop: pl.DataFrame({"shop": shop.tolist(), "size": SIZE}),
    "enum": lambda shop: pl.DataFrame(
        {"shop": pl.Series(shop.tolist(), dtype=pl.Enum(["Ulm", "Oslo", "Bonn", "Kiel"])), "size": SIZE}
    ),
    "pyarrow": lambda shop: pa.table({"shop": shop.tolist(), "size": SIZE}),
}


@pytest.mark.parametrize("kind", FRAMES)
def test_text_is_a_category(kind: str) -> None:
    declared = pd.DataFrame({"shop": pd.Categorical(SHOP), "size": SIZE})
    known = gb.GradientBoostingRegressor(**SMALL).fit(declared, Y)
    model = gb.GradientBoostingRegressor(**SMALL).fit(FRAMES[kind](SHOP), Y)
    np.testing.assert_array_equal(model.columns_.is_categorical, [True, False])
    np.testing.assert_array_equal(model.predict(FRAMES[kind](SHOP)), known.predict(declared))
    np.testing.assert_array_equal(model.predict(declared), known.predict(declared))


def test_missing_and_unknown_text_count_as_missing() -> None:
    model = gb.GradientBoostingRegressor(**SMALL).fit(FRAMES["object"](SHOP), Y)
    unknown, missing = (pd.DataFrame({"shop": [word], "size": [0.0]}, dtype=object) for word in ("Oslo", None))
    assert model.predict(unknown) == model.predict(missing)


def test_a_list_of_rows_has_categories_too() -> None:
    rows = [[shop, size] for shop, size in zip(SHOP.tolist(), SIZE.tolist(), strict=True)]
    model = gb.GradientBoostingRegressor(**SMALL).fit(rows, Y)
    np.testing.assert_array_equal(model.columns_.is_categorical, [True, False])


def test_batches_have_the_categories_of_all_pieces() -> None:
    frame = FRAMES["object"](SHOP)
    data = gb.Dataset.from_batches([(frame[:90], Y[:90]), (frame[90:], Y[90:])])
    known = gb.GradientBoostingRegressor(**SMALL).fit(frame, Y)
    np.testing.assert_array_equal(gb.GradientBoostingRegressor(**SMALL).fit(data).predict(frame), known.predict(frame))


def test_free_text_is_a_category_where_it_is_asked_for() -> None:
    frame = pd.DataFrame({"said": [f"this is sentence {i % 150}" for i in range(200)], "size": SIZE})
    with pytest.raises(gb.InputError, match="'said' must hold numbers or categories; it looks like free text"):
        gb.GradientBoostingRegressor(**SMALL).fit(frame, Y)
    model = gb.GradientBoostingRegressor(**SMALL, categorical_features=["said"]).fit(frame, Y)
    np.testing.assert_array_equal(model.columns_.is_categorical, [True, False])


def test_long_texts_that_recur_are_categories() -> None:
    words = np.array(["a lorry with an open bed", "a van with a closed roof"])[RNG.integers(0, 2, 200)]
    model = gb.GradientBoostingRegressor(**SMALL).fit(pd.DataFrame({"kind": words.astype(object)}), Y)
    np.testing.assert_array_equal(model.columns_.is_categorical, [True])


@pytest.mark.parametrize(
    ("kind", "texts", "words"),
    [
        (
            "object",
            ["1,5", "2,25", "3", "-,5"],
            r"with decimal commas, such as '1,5'\. .*read_csv\(.*, decimal=\",\"\)",
        ),
        ("polars", ["1,5", "2,25e-3", "+3,0", "?"], r"with decimal commas, such as '1,5' beside '\?'"),
        ("string", ["1.234,5", "12,0", " 7,1", "8"], r'.*decimal=",", thousands="\."'),
        (
            "object",
            ["1,234", "12,345,678", "950.5", "2,000.5"],
            r"with commas, such as '1,234'\. .*, thousands=\",\"\)",
        ),
        ("object", ["1,234", "12,345", "950", "7"], r'with commas, .*, thousands="," or decimal=","\)'),
    ],
)
def test_numbers_with_commas_are_refused_and_taken_where_named(kind: str, texts: list[str], words: str) -> None:
    frame = FRAMES[kind](np.array(texts * 50))
    with pytest.raises(gb.InputError, match=f"'shop' .* reads as numbers {words}"):
        gb.GradientBoostingRegressor(**SMALL).fit(frame, Y)
    model = gb.GradientBoostingRegressor(**SMALL, categorical_features=["shop"]).fit(frame, Y)
    np.testing.assert_array_equal(model.columns_.is_categorical, [True, False])


def test_categories_with_commas_are_no_numbers() -> None:
    for texts in (["1,2,3", "2,3,4", "a,1"], ["Ulm, 5", "Bonn, 7", "Kiel,8"], ["1,5 m", "2,5 m", "3 m"]):
        frame = pd.DataFrame({"shop": np.array(texts * 50, dtype=object)})
        assert gb.GradientBoostingRegressor(**SMALL).fit(frame, Y[:150]).columns_.is_categorical.tolist() == [True]


def test_numbers_in_text_are_refused_and_taken_where_named() -> None:
    frame = pd.DataFrame({"zip": [f"{i % 7:05d}" for i in range(200)]})
    with pytest.raises(gb.InputError, match=r"'zip' .* text that reads as numbers, such as '00000'"):
        gb.GradientBoostingRegressor(**SMALL).fit(frame, Y)
    gb.GradientBoostingRegressor(**SMALL, categorical_features=["zip"]).fit(frame, Y)


@pytest.mark.parametrize(
    ("kind", "form"), [("object", "%Y-%m-%d"), ("polars", "%Y-%m-%dT%H:%M:%S"), ("string", "%d/%m/%Y %H:%M")]
)
def test_dates_in_text_are_refused_and_taken_where_named(kind: str, form: str) -> None:
    frame = FRAMES[kind](pd.date_range("2020-01-01", periods=200).strftime(form).to_numpy(str))
    with pytest.raises(gb.InputError, match=r"'shop' .* text that reads as dates, such as '.*pandas\.to_datetime"):
        gb.GradientBoostingRegressor(**SMALL).fit(frame, Y)
    gb.GradientBoostingRegressor(**SMALL, categorical_features=["shop"]).fit(frame, Y)


@pytest.mark.parametrize("text", ["{}.5%", " {} %", "${},250.00", "{},5 €"])
def test_numbers_with_a_sign_are_refused_and_taken_where_named(text: str) -> None:
    frame = FRAMES["object"](np.array([text.format(i % 90) if i else "n.a." for i in range(200)]))
    with pytest.raises(gb.InputError, match=r"'shop' .* reads as numbers with a sign, such as .*str\.strip\("):
        gb.GradientBoostingRegressor(**SMALL).fit(frame, Y)
    gb.GradientBoostingRegressor(**SMALL, categorical_features=["shop"]).fit(frame, Y)


def test_few_dates_and_versions_are_categories() -> None:
    few = [f"2024-0{i % 9 + 1}-01" for i in range(200)]
    rates = [f"{i % 9}0%" for i in range(200)]
    versions = [f"{i % 7}.{i % 5}.{i % 10}" for i in range(200)]
    for texts in (few, rates, versions):
        model = gb.GradientBoostingRegressor(**SMALL).fit(FRAMES["object"](np.array(texts)), Y)
        assert model.columns_.is_categorical.tolist() == [True, False]


def test_text_in_a_column_of_numbers_is_shown_at_a_prediction() -> None:
    model = gb.GradientBoostingRegressor(**SMALL).fit(pd.DataFrame({"size": SIZE}), Y)
    with pytest.raises(gb.InputError, match=r"'size' must hold numbers, as it is not among .*; it holds '\?'\. Conv"):
        model.predict(pd.DataFrame({"size": ["1.5", "?"]}))


@pytest.mark.parametrize("value", [datetime.date(2020, 1, 1), datetime.timedelta(1), np.datetime64("2020-01-01")])
def test_dates_that_are_objects_are_refused_as_dates(value: Any) -> None:
    frame = pd.DataFrame({"when": pd.Series([value] * 200, dtype=object)})
    with pytest.raises(gb.InputError, match="column 'when': dates and time spans are not numbers"):
        gb.GradientBoostingRegressor(**SMALL).fit(frame, Y)


def test_names_that_nearly_every_row_has_for_itself_are_warned_of() -> None:
    rows = 40
    names = np.array([f"user{i}" for i in range(rows)], object)
    names[:4] = "user0"  # 37 values
    with pytest.warns(UserWarning, match="X: column 'id' is text, and 92% of its values differ"):
        gb.Dataset(pd.DataFrame({"id": names, "x": np.arange(rows)}))


def test_texts_that_come_again_or_are_declared_are_not_warned_of() -> None:
    rows = 4_000
    users = np.array([f"user{i}" for i in range(rows // 2)] * 2, object)  # of every fourth row no two are equal
    x = pd.DataFrame({"id": users, "x": np.arange(rows)})
    gb.Dataset(x)
    names = pd.DataFrame({"id": [f"user{i}" for i in range(40)]})
    gb.Dataset(names, categorical_features=["id"])
    gb.Dataset(names.astype("category"))
    gb.Dataset(names[:19])
