"""Data that cannot be learned from: each is refused with the rule, what was seen, and where."""

from __future__ import annotations

import warnings
from collections.abc import Callable
from typing import Any

import numpy as np
import pandas as pd
import pytest
import scipy.sparse as sp

import gpuboost as gb
from gpuboost.data.columns import Columns
from gpuboost.data.dataset import Dataset
from gpuboost.data.targets import as_numbers
from gpuboost.errors import InputError

X = np.arange(12.0).reshape(4, 3)
inf, nan = np.inf, np.nan


def with_value(value: Any, row: int, column: int, dtype: type = np.float64, rows: int = 4) -> np.ndarray:
    x = np.ones((rows, 3), dtype)
    x[row, column] = value
    return x


def named(values: Any, name: str = "a") -> pd.DataFrame:
    return pd.DataFrame({"ok": np.ones(len(values)), name: values})


def test_a_frame_that_holds_no_rows_yet_is_refused() -> None:
    class LazyFrame:
        def collect(self) -> None: ...

    with pytest.raises(InputError, match=r"^X: a LazyFrame says how to come to its rows, .* Collect it"):
        Dataset(LazyFrame())


def test_two_columns_of_one_name_are_refused() -> None:
    frame = pd.DataFrame(np.ones((4, 3)), columns=["a", "b", "a"])
    for x in (frame, frame.set_axis([1, 2, 1], axis=1)):
        with pytest.raises(InputError, match=r"^X: every column needs a name of its own; 2 are called ('a'|1)\."):
            Dataset(x)
    assert Dataset(frame.loc[:, ~frame.columns.duplicated()]).columns.names == ("a", "b")


@pytest.mark.parametrize(
    ("x", "words"),
    [
        (np.ones(3), r"two dimensions.*shape \(3,\).*Reshape your data"),
        (np.ones((2, 2, 2)), "two dimensions"),
        (3.0, "two dimensions"),
        ("abc", "two dimensions"),
        (pd.Series([1.0, 2.0]), "two dimensions"),
        (np.ones((0, 3)), r"0 sample\(s\) \(shape=\(0, 3\)\) while a minimum of 1 is required"),
        (np.ones((12, 0)), r"0 feature\(s\) \(shape=\(12, 0\)\) while a minimum of 1 is required\."),
        (sp.csr_matrix((0, 3)), r"0 sample\(s\)"),
        (pd.DataFrame(), r"0 feature\(s\)"),
        ([[1, 2], [3]], "rows must be of equal length"),
        (X.astype(complex), "Complex data not supported"),
        (sp.csr_matrix(X.astype(complex)), "Complex data not supported"),
        (np.zeros((2, 2), "datetime64[s]"), "dates and time spans"),
        (with_value(inf, 2, 1), "row 2 of column 1 holds inf"),
        (with_value(-inf, 2, 1), "row 2 of column 1 holds -inf"),
        (with_value(inf, 3, 0, np.float32), "row 3 of column 0 holds inf"),
        (np.asfortranarray(with_value(inf, 2, 1)), "row 2 of column 1"),
        (with_value(inf, 400_000, 2, rows=400_001), "row 400000 of column 2"),
        (np.array([[nan, inf], [inf, -inf]]), "row 0 of column 1"),
        (sp.csr_matrix(np.array([[0, 1.0, 0], [nan, 0, inf]])), "row 1 of column 2 holds inf"),
        (named([1.0, inf]), "row 1 of column 'a' holds inf"),
        (named(pd.Series([1, inf], dtype=object)), "row 1 of column 'a'"),
        (named(["1", "2", "?"]), r"column 'a' must hold numbers .* such as '1' beside '\?'.*astype\(\"category\"\)"),
        (named([f"{i} words are in this" for i in range(20)]), "free text: 20 of 20 values differ, of 5 words"),
        (named(pd.Series(["x", 1], dtype=object)), "column 'a': categories must be all text or all numbers"),
        (named(pd.Series(["1", "2"], dtype="string")), "column 'a' must hold numbers"),
        (np.array([["1", "2"]]), "column 0 must hold numbers"),
        ([[1, "2"]], "column 1 must hold numbers"),
        (named(pd.to_datetime(["2020-01-01"])), "column 'a': dates"),
        (named(pd.to_datetime(["2020-01-01"], utc=True)), "column 'a': dates"),
        (named(pd.to_timedelta([1])), "column 'a': dates"),
        (named(pd.period_range("2020", periods=1)), "column 'a': dates"),
        (named(pd.Series([1 + 2j])), "Complex data not supported"),
        (pd.DataFrame([[1, 2]], columns=["a", 7]), "all strings or none; column 1 is called 7"),
        (named(pd.Categorical([pd.Timestamp("2020-01-01")])), r"a category must be text or a number.*astype\(str\)"),
        (named(pd.cut([1, 2], 2)), "a category must be text or a number"),
        (named(pd.Categorical([1.0, inf])), "a category must be finite"),
        (named(pd.Categorical(["a", 1])), "all text or all numbers"),
    ],
)
def test_x(x: Any, words: str) -> None:
    with pytest.raises(InputError, match=words):
        Dataset(x)


@pytest.mark.parametrize("value", [{"foo": "bar"}, [1, 2], object(), 1 + 2j, 10**400])
def test_x_of_other_objects(value: Any) -> None:
    x = np.ones((2, 2), dtype=object)
    x[1, 0] = value
    with pytest.raises(TypeError, match="column 0 must hold numbers"):
        Dataset(x)


def test_x_of_unhashable_categories() -> None:
    x = np.array([[{"a": 1}], [2]], dtype=object)
    with pytest.raises(TypeError, match="column 0 must hold text or numbers"):
        Dataset(x, categorical_features=[0])
    with pytest.raises(TypeError, match="column 0 must hold text or numbers"):
        Columns.learn([["a"]], [0]).encode(x)


def test_sums_beyond_the_largest_number_are_no_infinity() -> None:
    largest = np.finfo(np.float32).max
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        x = np.full((4, 3), largest, dtype=np.float32)
        assert Dataset(x).x is x
        assert len(Dataset(np.array([[1.7e308], [-1.7e308], [1.7e308], [1.7e308]])).cuts.thresholds[0]) == 1


@pytest.mark.parametrize(
    ("chosen", "words"),
    [
        ("size", r"must be \"from_dtype\".*One name goes into a list: \['size'\]"),
        (["colour"], "X has no column 'colour'; close to it: 'color'"),
        (["zzz"], "X has no column 'zzz'"),
        ([3], "an integer from 0 to 1; got 3"),
        ([-1], "an integer from 0 to 1; got -1"),
        ([0.5], "an integer from 0 to 1; got 0.5"),
        ([True], "one entry for each of 2 columns; got 1"),
        ([[0]], "flat list"),
        (0, "flat list"),
    ],
)
def test_categorical_features(chosen: Any, words: str) -> None:
    with pytest.raises(InputError, match=f"categorical_features: .*{words}"):
        Dataset(pd.DataFrame({"color": [1, 2], "size": [1, 2]}), categorical_features=chosen)


def test_categorical_features_that_the_data_cannot_have() -> None:
    with pytest.raises(InputError, match="no column names"):
        Dataset(X, categorical_features=["a"])
    with pytest.raises(InputError, match="sparse matrix cannot be categorical"):
        Dataset(sp.csr_matrix(X), categorical_features=[0])
    with pytest.raises(InputError, match="column 'a' must hold numbers, as it is not among the categorical features"):
        Dataset(named(pd.Categorical(["x"])), categorical_features=None)
    with pytest.raises(InputError, match="all text or all numbers; got 'x' and 1"):
        Dataset([["x"], [1]], categorical_features=[0])
    with pytest.raises(InputError, match="finite"):
        Dataset([[inf], [1]], categorical_features=[0])


@pytest.mark.parametrize("max_bins", [0, 1, 65_536, -5, 2.5, "many", None, True])
def test_max_bins(max_bins: Any) -> None:
    with pytest.raises(InputError, match="max_bins: must be an integer from 2 to 65535"):
        Dataset(X, max_bins=max_bins)


@pytest.mark.parametrize("n_jobs", [0, 1.5, "all", True])
def test_n_jobs(n_jobs: Any) -> None:
    with pytest.raises(InputError, match="n_jobs: must be"):
        Dataset(X, n_jobs=n_jobs)


@pytest.mark.parametrize(
    ("y", "words"),
    [
        ([1, 2, 3], "one value for each row of X; got 3 for 4 rows"),
        (np.ones((4, 1)), r"one dimension; got shape \(4, 1\). Use numpy.ravel\(y\)"),
        (np.ones((4, 2, 1)), "one dimension"),
        (np.ones((3, 2)), "one value for each row of X; got 3 for 4 rows"),
        (np.array([[1, 1], [1, nan], [1, 1], [1, 1]]), "row 1 holds"),
        (5, "one dimension"),
        ([1, nan, 1, 1], "row 1 holds"),
        ([1, 1, inf, 1], "row 2 holds"),
        (["a", None, "b", "a"], "row 1 holds None"),
        (pd.Series(["a", nan, "b", "a"], dtype=object), "row 1 holds nan"),
    ],
)
def test_y(y: Any, words: str) -> None:
    with pytest.raises(InputError, match=f"y: .*{words}"):
        Dataset(X, y)


@pytest.mark.parametrize(
    ("y", "words"),
    [
        (["a", "b"], "must hold numbers"),
        ([1j, 2j], "Complex data not supported"),
        ([{}, 1], "numbers"),
        (np.array([1, 2], "timedelta64[s]"), r"dates and time spans are not numbers; got timedelta64\[s\]"),
        (np.array(["2020-01-01"] * 2, "datetime64[D]"), "dates and time spans are not numbers"),
    ],
)
def test_y_that_is_not_a_number(y: Any, words: str) -> None:
    with pytest.raises(InputError, match=f"y: .*{words}"):
        as_numbers(np.array(y))


def test_a_sparse_target_is_refused() -> None:
    for y in (sp.csr_matrix(X[:, :2]), sp.csr_matrix(X[:, :1])):
        for take in (gb.GradientBoostingRegressor(n_estimators=1).fit, gb.Dataset):
            with pytest.raises(InputError, match=r"^y: must be dense; got a sparse matrix of shape \(4, [12]\)"):
                take(X, y)


def test_a_fit_needs_a_target() -> None:
    with pytest.raises(InputError, match="y: a Dataset to fit needs a target"):
        Dataset(X).training_set(lambda x, cuts: pytest.fail("binned before the check"))


@pytest.mark.parametrize(
    ("weight", "words"),
    [
        ([1, 2, 3], r"one weight for each of 4 rows; got shape \(3,\)"),
        (np.ones((4, 1)), "one weight for each"),
        (2.0, "one weight for each"),
        ([1, -1, 1, 1], "not negative; row 1 holds -1.0"),
        ([1, 1, nan, 1], "finite and not negative; row 2 holds nan"),
        ([1, 1, 1, inf], "row 3 holds inf"),
        ([0, 0, 0, 0], "at least one weight must be above zero; all 4 are zero"),
        (["a", "b", "c", "d"], "must hold numbers"),
        (np.arange(4).astype("M8[s]"), r"^weight: dates and time spans are not numbers; got datetime64\[s\]"),
    ],
)
def test_weight(weight: Any, words: str) -> None:
    with pytest.raises(InputError, match=words if words[0] == "^" else f"weight: .*{words}"):
        Dataset(X, weight=weight)


@pytest.mark.parametrize(
    ("name", "values"),
    [
        ("y", np.arange(4.0)),
        ("y", np.array(["a", "b", "a", "b"])),
        ("y", np.array([True, False, True, False])),
        ("sample_weight", np.ones(4, np.int64)),
        ("init_score", np.zeros(4)),
        ("group", np.array([1, 1, 2, 2])),
    ],
)
def test_what_a_mask_hides_is_missing(name: str, values: np.ndarray) -> None:
    given = {"y": np.array([0, 1, 0, 1])} | {name: np.ma.masked_array(values, mask=[False, False, True, False])}
    kind = gb.GradientBoostingRanker if name == "group" else gb.GradientBoostingClassifier
    if values.dtype == np.float64:
        kind = gb.GradientBoostingRegressor
    with pytest.raises(InputError, match=rf"^{name}: .*row 2 holds .*nan"):
        kind(n_estimators=1, min_child_weight=0.1).fit(X, **given)
    shown = given | {name: np.ma.masked_array(values)}
    expected = kind(n_estimators=1, min_child_weight=0.1).fit(X, **(given | {name: values}))
    assert gb.dumps(kind(n_estimators=1, min_child_weight=0.1).fit(X, **shown)) == gb.dumps(expected)


@pytest.mark.parametrize("kind", ["M8[D]", "m8[s]"])
@pytest.mark.parametrize("made", [np.asarray, list, pd.Series])
def test_dates_and_time_spans_are_no_numbers_anywhere(kind: str, made: Any) -> None:
    times, y, rule = made(np.arange(4).astype(kind)), np.arange(4.0), "dates and time spans are not numbers; got"
    model = gb.GradientBoostingRegressor(n_estimators=1, n_jobs=1)
    for name in ("sample_weight", "init_score"):
        with pytest.raises(InputError, match=f"^{name}: {rule}"):
            model.fit(X, y, **{name: times})
    with pytest.raises(InputError, match=f"^eval_set: validation_0: sample_weight: {rule}"):
        model.fit(X, y, eval_set=(X, y, times))
    model.fit(X, y)
    with pytest.raises(InputError, match=f"^y: {rule}"):
        model.score(X, times)


@pytest.mark.parametrize(
    ("group", "words"),
    [
        ([2, 1], r"sizes of the queries, which sum to 4; got 2 entries with sum 3\. Count"),
        ([5, -1], r"sizes of the queries.*; size 1 is -1\. A query has a row or more"),
        ([1.5, 2.5], r"one query id for each of 4 rows.*; got 2 entries of dtype float64"),
        ([[1, 1], [2, 2]], r"one dimension; got shape \(2, 2\)"),
        ([[1], [1], [2], [2]], r"got shape \(4, 1\)\. Use numpy\.ravel"),
        ([7, 2, 7, 7], r"query 7, which begins at row 0, comes again at row 2\. Sort everything by query: order = "),
        ([1.0, 1.0, np.nan, np.nan], "every row belongs to a query; row 2 holds nan"),
        (["a", "a", None, "b"], "every row belongs to a query; row 2 holds None"),
    ],
)
def test_group(group: Any, words: str) -> None:
    with pytest.raises(InputError, match=f"group: .*{words}"):
        Dataset(X, group=group)


LEARNED = pd.DataFrame({"a": [1.0, 2.0], "b": pd.Categorical(["x", "y"]), "c": [3, 4]})


@pytest.mark.parametrize(
    ("change", "words"),
    [
        (lambda frame: frame.drop(columns="b"), "missing: 'b'"),
        (lambda frame: frame.assign(d=1), "not in training: 'd'"),
        (lambda frame: frame.rename(columns={"a": "A"}), "missing: 'a'; not in training: 'A'"),
        (lambda frame: frame[["a", "c", "b"]], "order differs from column 1 on: 'c' instead of 'b'"),
        (lambda frame: frame.to_numpy()[:, :2], "the 3 features of the training data; got 2"),
        (
            lambda frame: frame.assign(b=[1, 2]),
            "column 'b': its categories were learned as text, such as 'x'; got .* 1",
        ),
        (lambda frame: frame.assign(b=pd.Categorical([1, 2])), "learned as text"),
        (lambda frame: frame.assign(b=pd.Series(["x", 3], dtype=object)), "learned as text"),
        (lambda frame: frame.assign(c=["p", "q"]), "column 'c' must hold numbers"),
        (lambda frame: frame.assign(a=[1.0, inf]), "row 1 of column 'a' holds inf"),
        (lambda frame: sp.csr_matrix((2, 3)), "sparse matrix cannot hold"),
        (lambda frame: frame.iloc[:0], r"0 sample\(s\)"),
    ],
)
def test_prediction_on_other_columns(change: Callable[[pd.DataFrame], Any], words: str) -> None:
    columns = Columns.learn(LEARNED)
    with pytest.raises(InputError, match=f"X: .*{words}"):
        columns.encode(change(LEARNED))


def test_text_where_categories_were_numbers() -> None:
    with pytest.raises(InputError, match="learned as numbers, such as 1; got something else, 'x'"):
        Columns.learn([[1]], [0]).encode([["x"]])


GOOD = {"n_features": 2, "names": ["a", "b"], "categories": {"1": ["x", "y"]}}


@pytest.mark.parametrize(
    "value",
    [
        None,
        [],
        {},
        {**GOOD, "more": 1},
        {**GOOD, "n_features": 0},
        {**GOOD, "n_features": True},
        {**GOOD, "n_features": 2.0},
        {**GOOD, "n_features": 10**15, "names": None},
        {**GOOD, "names": ["a"]},
        {**GOOD, "names": ["a", 1]},
        {**GOOD, "names": "ab"},
        {**GOOD, "categories": []},
        {**GOOD, "categories": {"2": ["x"]}},
        {**GOOD, "categories": {"-1": ["x"]}},
        {**GOOD, "categories": {"01": ["x"]}},
        {**GOOD, "categories": {"x": ["x"]}},
        {**GOOD, "categories": {"1": "xy"}},
        {**GOOD, "categories": {"1": ["x", 1]}},
        {**GOOD, "categories": {"1": ["x", "x"]}},
        {**GOOD, "categories": {"1": [1, 1.0]}},
        {**GOOD, "categories": {"1": [nan]}},
        {**GOOD, "categories": {"1": [inf]}},
        {**GOOD, "categories": {"1": [[1]]}},
        {**GOOD, "categories": {"1": [None]}},
    ],
)
def test_columns_of_a_damaged_model(value: Any) -> None:
    assert Columns.from_json(GOOD).to_json() == GOOD
    with pytest.raises(InputError, match="columns: "):
        Columns.from_json(value)
