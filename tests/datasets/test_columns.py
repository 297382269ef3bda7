"""What passes through untouched, what becomes a code, and what a model remembers of its columns."""

from __future__ import annotations

import json

import numpy as np
import pandas as pd
import pyarrow as pa
import pytest
import scipy.sparse as sp
from hypothesis import given
from hypothesis import strategies as st

from gpuboost.data.columns import Columns
from gpuboost.data.tables import as_table

nan = np.nan


def encoded(learned_from: object, X: object, categorical_features: object = "from_dtype") -> list[list[float]]:
    """Rows, with None for NaN so that == works."""
    x = Columns.learn(learned_from, categorical_features).encode(X)
    assert x.dtype in (np.float32, np.float64)
    return [[None if np.isnan(value) else value for value in row] for row in x.tolist()]


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("order", ["C", "F"])
def test_a_float_array_is_not_copied(dtype: type, order: str) -> None:
    x = np.ones((4, 3), dtype=dtype, order=order)
    assert Columns.learn(x).encode(x) is x


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_a_frame_of_floats_is_not_copied(dtype: type) -> None:
    frame = pd.DataFrame(np.ones((4, 3), dtype=dtype), columns=list("abc"))
    assert np.shares_memory(Columns.learn(frame).encode(frame), frame.to_numpy())


def test_a_canonical_sparse_matrix_is_not_copied() -> None:
    x = sp.csr_matrix(np.eye(3, dtype=np.float32))
    assert Columns.learn(x).encode(x) is x


@pytest.mark.parametrize(
    ("x", "dtype"),
    [
        (np.ones((2, 2), np.int8), np.float32),
        (np.ones((2, 2), np.uint16), np.float32),
        (np.ones((2, 2), np.bool_), np.float32),
        (np.ones((2, 2), np.float16), np.float32),
        (np.ones((2, 2), np.int32), np.float64),
        (np.ones((2, 2), np.int64), np.float64),
        (np.ones((2, 2), np.longdouble), np.float64),
        (np.ones((2, 2), ">f4"), np.float32),
        (np.ones((2, 2), ">f8"), np.float64),
        ([[1, 1], [1, 1]], np.float64),
        (np.ones((4, 4), np.float32)[::2, ::2], np.float32),
        (np.ones((2, 2), object), np.float64),
    ],
)
def test_other_numbers_become_the_float_that_holds_them(x: object, dtype: type) -> None:
    found = Columns.learn(x).encode(x)
    assert found.dtype == dtype
    assert found.dtype.isnative
    assert found.flags.c_contiguous or found.flags.f_contiguous
    np.testing.assert_array_equal(found, np.ones((2, 2)))


def test_what_is_missing_is_nan() -> None:
    frame = pd.DataFrame(
        {
            "plain": [1.5, nan],
            "whole": pd.array([1, None], dtype="Int64"),
            "real": pd.array([0.5, None], dtype="Float32"),
            "flag": pd.array([True, None], dtype="boolean"),
            "objects": pd.Series([2, None], dtype=object),
            "bool": [True, False],
            "sparse": pd.arrays.SparseArray([0.0, 3.0]),
        }
    )
    assert encoded(frame, frame) == [[1.5, 1.0, 0.5, 1.0, 2.0, 1.0, 0.0], [None, None, None, None, None, 0.0, 3.0]]
    assert encoded([[1, None]], [[1, None], [None, 2]]) == [[1.0, None], [None, 2.0]]
    masked = np.ma.masked_array([[1, 2], [3, 4]], mask=[[0, 1], [0, 0]])
    assert encoded(masked, masked) == [[1.0, None], [3.0, 4.0]]


def test_categories_of_a_frame_are_coded_by_value() -> None:
    learned = pd.DataFrame(
        {"size": pd.Categorical(["m", "s", "m"], categories=["s", "m", "l"]), "n": pd.Categorical([10, 30, 20])}
    )
    columns = Columns.learn(learned)
    assert columns.categories == (("l", "m", "s"), (10, 20, 30))
    assert columns.is_categorical.tolist() == [True, True]
    expected = [[1.0, 0.0], [2.0, 2.0], [None, None]]
    for values in (
        {"size": pd.Categorical(["m", "s", "xl"], categories=["xl", "m", "s"]), "n": pd.Categorical([10.0, 30, 99])},
        {"size": ["m", "s", None], "n": [10.0, 30.0, nan]},
        {"size": pd.Series(["m", "s", nan], dtype=object), "n": pd.Series([10, 30, None], dtype="Int64")},
        {"size": pd.Series(["m", "s", None], dtype="string"), "n": pd.Series([10, 30, None], dtype=object)},
    ):
        frame = pd.DataFrame(values)
        assert [[None if np.isnan(v) else v for v in row] for row in columns.encode(frame).tolist()] == expected


def test_categories_of_an_array_are_its_sorted_values() -> None:
    x = np.array([[10**12, 0.5], [-3, 1.5], [nan, 2.5], [-3, nan]])
    columns = Columns.learn(x, [0])
    assert columns.categories == ((-3, 10**12), None)
    assert encoded(x, x, [0]) == [[1.0, 0.5], [0.0, 1.5], [None, 2.5], [0.0, None]]
    assert encoded(x, [[5, 1], [2e12, 1], [-3, 1]], [0]) == [[None, 1.0], [None, 1.0], [0.0, 1.0]]
    huge = np.array([[2**62], [2**62 + 1]])
    assert encoded(huge, huge, [0]) == [[0.0], [1.0]]


@pytest.mark.parametrize(
    ("x", "categories"),
    [
        ([["b", 1], ["a", 2], [None, 3]], ("a", "b")),
        (np.array([["b", "1"], ["a", "2"]], dtype=object), ("a", "b")),
        (np.array([[True, 1], [False, 2]], dtype=object), (False, True)),
        (np.array([[True], [False]]), (False, True)),
        ([[2.5, 1], [nan, 2]], (2.5,)),
        ([[nan, 1], [nan, 2]], ()),
        (pd.DataFrame({"a": ["y", "x"]}), ("x", "y")),
        (pd.DataFrame({"a": pd.Categorical([None], categories=[])}), ()),
    ],
)
def test_categories_are_pythons_own_values(x: object, categories: tuple[object, ...]) -> None:
    chosen = [0] if np.shape(x)[1] == 1 else [True, False]
    if isinstance(x, np.ndarray) and x.shape[1] == 2 and isinstance(x[0, 1], str):
        chosen = [0, 1]
    found = Columns.learn(x, chosen).categories[0]
    assert found == categories
    assert all(type(value) in (str, bool, int, float) for value in found)


@pytest.mark.parametrize(
    ("chosen", "expected"),
    [
        (["b"], [False, True]),
        ([1], [False, True]),
        ([False, True], [False, True]),
        ([], [False] * 2),
        (None, [False] * 2),
    ],
)
def test_categorical_features_by_name_index_mask(chosen: object, expected: list[bool]) -> None:
    frame = pd.DataFrame({"a": [1, 2], "b": [3, 4]})
    assert Columns.learn(frame, chosen).is_categorical.tolist() == expected


def test_categories_of_numbers_may_serve_as_numbers() -> None:
    frame = pd.DataFrame({"a": pd.Categorical([30, None, 10])})
    assert encoded(frame, frame, None) == [[30.0], [None], [10.0]]


def test_arrow_tables() -> None:
    table = pa.table({"a": pa.array([1.0, None]), "b": pa.array(["x", "y"]).dictionary_encode()})
    assert Columns.learn(table).names == ("a", "b")
    assert encoded(table, table) == [[1.0, 0.0], [None, 1.0]]


@pytest.mark.parametrize("kind", [sp.csr_matrix, sp.csc_matrix, sp.coo_matrix, sp.csr_array, sp.lil_matrix])
@pytest.mark.parametrize("dtype", [np.float32, np.float64, np.int8, np.int64])
def test_sparse_matrices_of_any_kind(kind: type, dtype: type) -> None:
    dense = np.array([[0, 2, 0], [3, 0, 4]], dtype=dtype)
    found = Columns.learn(kind(dense)).encode(kind(dense))
    assert found.format == "csr"
    assert found.has_canonical_format
    assert found.dtype == (np.float32 if np.dtype(dtype).itemsize in (1, 4) and dtype != np.int64 else np.float64)
    np.testing.assert_array_equal(found.toarray(), dense)


def test_a_sparse_matrix_is_tidied_in_a_copy() -> None:
    data, indices, indptr = np.array([1.0, 2.0, 4.0, nan]), np.array([2, 0, 2, 1]), np.array([0, 3, 4])
    x = sp.csr_matrix((data.copy(), indices.copy(), indptr.copy()), shape=(2, 3))
    found = Columns.learn(x).encode(x)
    assert found.indices.tolist() == [0, 2, 1]
    np.testing.assert_array_equal(found.data, [2.0, 5.0, nan])
    np.testing.assert_array_equal(x.data, data)
    np.testing.assert_array_equal(x.indices, indices)


def test_a_sparse_frame_stays_sparse() -> None:
    frame = pd.DataFrame.sparse.from_spmatrix(sp.eye(3, format="csr"), columns=list("abc"))
    columns = Columns.learn(frame)
    assert columns.names == ("a", "b", "c")
    np.testing.assert_array_equal(columns.encode(frame).toarray(), np.eye(3))


def test_names_are_those_of_a_frame_with_text_for_labels() -> None:
    assert Columns.learn(pd.DataFrame({"a": [1]})).names == ("a",)
    assert Columns.learn(pd.DataFrame({0: [1]})).names is None
    assert Columns.learn(np.ones((1, 1))).names is None
    named = Columns.learn(pd.DataFrame({"a": [1]}))
    named.check(np.ones((5, 1)))  # without names, by position
    Columns.learn(np.ones((1, 1))).check(pd.DataFrame({"a": [1]}))


def test_a_table_is_recognised_once() -> None:
    table = as_table(np.ones((2, 2)))
    assert as_table(table) is table
    assert Columns.learn(table).encode(table) is table.matrix


text = st.text(max_size=3)
numbers = st.integers() | st.floats(allow_nan=False, allow_infinity=False)


@st.composite
def learned_columns(draw: st.DrawFn) -> Columns:
    d = draw(st.integers(1, 4))
    names = draw(st.none() | st.lists(text, min_size=d, max_size=d).map(tuple))
    known = st.lists(text, unique=True, max_size=4) | st.lists(numbers, unique=True, max_size=4)
    return Columns(d, names, tuple(draw(st.lists(st.none() | known.map(tuple), min_size=d, max_size=d))))


@given(learned_columns())
def test_json_brings_back_the_same(columns: Columns) -> None:
    text = json.dumps(columns.to_json(), allow_nan=False)
    found = Columns.from_json(json.loads(text))
    assert found == columns
    assert json.dumps(found.to_json()) == text


@given(st.lists(st.none() | text, min_size=1, max_size=20))
def test_a_code_is_the_place_among_the_categories(values: list[str | None]) -> None:
    x = [[value, 0] for value in values]
    columns = Columns.learn(x, [0])
    codes = columns.encode(x)[:, 0]
    for value, code in zip(values, codes, strict=True):
        assert np.isnan(code) if value is None else columns.categories[0][int(code)] == value
