"""Dataset(cuts=): thresholds that the user gives, in memory and of files, and what is refused."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
import scipy.sparse as sp
from hypothesis import given
from hypothesis import strategies as st

import gpuboost as gb
from gpuboost.benchmarks.data.borders import greedy_log_sum
from gpuboost.errors import InputError

Array = np.ndarray
X = np.array([[1.0, 5.0], [2.0, np.nan], [3.0, 5.0], [4.0, 6.0]])
FRAME = pd.DataFrame(
    {"age": [20.0, 40.0, 60.0, 70.0], "kind": pd.Categorical(list("abab")), "pay": [1.0, 2.0, 3.0, 4.0]}
)


def thresholds(data: gb.Dataset) -> list[list[float]]:
    return [t.tolist() for t in data.cuts.thresholds]


@pytest.mark.parametrize(
    "cuts",
    [{0: [1.5, 3.5]}, {np.int64(0): np.array([1.5, 3.5], np.float32)}, [[1.5, 3.5], None], ((1.5, 3.5), None)],
)
def test_what_is_given_is_taken_and_the_rest_is_chosen(cuts: Any) -> None:
    assert thresholds(gb.Dataset(X, cuts=cuts)) == [[1.5, 3.5], thresholds(gb.Dataset(X))[1]]


def test_names_stand_beside_categories() -> None:
    chosen, data = gb.Dataset(FRAME), gb.Dataset(FRAME, cuts={"age": [30, 65], "pay": []})
    assert thresholds(data) == [[30.0, 65.0], [], []]
    assert data.cuts.categories[1].tolist() == chosen.cuts.categories[1].tolist()
    assert data.cuts.n_bins.tolist() == [3, 2, 1]


def test_a_category_spread_over_several_features_does_not_shift_the_columns() -> None:
    many = pd.DataFrame({"kind": pd.Categorical(np.repeat(np.arange(40), 2).astype(str)), "x": np.arange(80.0)})
    data = gb.Dataset(many, max_bins=16, cuts={"x": [10.0]})
    assert data.cuts.n_features == 4
    assert data.cuts.columns.tolist() == [0, 0, 0, 1]
    assert thresholds(data)[3] == [10.0]


def test_cuts_of_another_data_set() -> None:
    rng = np.random.default_rng(0)
    first, second = rng.normal(size=(300, 3)), rng.normal(size=(200, 3))
    data = gb.Dataset(first, max_bins=16)
    again = gb.Dataset(second, max_bins=16, cuts=data.cuts)
    assert all(a.tobytes() == b.tobytes() for a, b in zip(again.cuts.thresholds, data.cuts.thresholds, strict=True))
    with pytest.raises(InputError, match="cuts: those of a categorical column belong to the categories of their own"):
        gb.Dataset(FRAME, cuts=gb.Dataset(FRAME).cuts)


@given(st.integers(0, 2**32 - 1), st.integers(1, 20), st.sampled_from([np.float32, np.float64]))
def test_any_increasing_thresholds_decide_the_model_and_survive_its_file(seed: int, count: int, dtype: Any) -> None:
    """A split's threshold is one of those given; two rows that no threshold tells apart are predicted alike."""
    rng = np.random.default_rng(seed)
    x = rng.normal(size=(60, 2)).astype(dtype)
    own = [np.unique(rng.normal(size=count)), np.unique(rng.normal(size=count))]
    y = x[:, 0] + 0.3 * rng.normal(size=60)
    model = gb.GradientBoostingRegressor(n_estimators=5, max_depth=3).fit(gb.Dataset(x, y, cuts=own))
    codes = np.column_stack([np.searchsorted(t, x[:, f].astype(np.float64)) for f, t in enumerate(own)])
    found = model.predict(x)
    for code in np.unique(codes, axis=0):
        assert len(np.unique(found[(codes == code).all(axis=1)])) == 1
    assert len(np.unique(found)) > 1 or len(np.unique(codes, axis=0)) < 20
    assert [t.tolist() for t in model.ensemble_.cuts.thresholds] == [t.tolist() for t in own]


def test_a_saved_model_keeps_them_and_threads_do_not_matter(tmp_path: Path) -> None:
    rng = np.random.default_rng(1)
    x = rng.normal(size=(400, 3)).astype(np.float32)
    y = np.sin(x.prod(axis=1)) + 0.1 * rng.normal(size=400)
    data = gb.Dataset(x, y, cuts=[greedy_log_sum(column, 5) for column in x.T])
    assert data.cuts.n_bins.tolist() == [6, 6, 6]
    models = [
        gb.GradientBoostingRegressor(n_estimators=20, langevin=gb.Langevin(), random_state=0, n_jobs=n_jobs).fit(data)
        for n_jobs in (1, 3)
    ]
    paths = [tmp_path / f"{i}.json" for i in (0, 1)]
    for model, path in zip(models, paths, strict=True):
        model.save_model(path)
    assert paths[0].read_bytes() == paths[1].read_bytes()
    loaded = gb.load_model(paths[0])
    assert loaded.predict(x).tobytes() == models[0].predict(x).tobytes()
    assert [t.tolist() for t in loaded.ensemble_.cuts.thresholds] == thresholds(data)


def test_sparse_rows_and_rows_of_weight_zero() -> None:
    dense = np.array([[0.0, 1.0], [2.0, 0.0], [0.0, 0.0], [-1.0, 3.0]])
    cuts, y = [[-0.5, 0.0, 1.0], [0.5]], [1.0, 2.0, 3.0, 4.0]
    params = {"n_estimators": 3, "min_child_weight": 0.0}
    both = [
        gb.GradientBoostingRegressor(**params).fit(gb.Dataset(x, y, weight=[1, 2, 0, 1], cuts=cuts))
        for x in (dense, sp.csr_matrix(dense))
    ]
    assert both[0].predict(dense).tobytes() == both[1].predict(sp.csr_matrix(dense)).tobytes()
    assert [t.tolist() for t in both[1].ensemble_.cuts.thresholds] == cuts


def test_a_column_without_thresholds_is_never_asked() -> None:
    rng = np.random.default_rng(2)
    x = rng.normal(size=(200, 2))
    model = gb.GradientBoostingRegressor(n_estimators=10).fit(gb.Dataset(x, x[:, 0] + x[:, 1], cuts={0: []}))
    moved = x + np.array([7.0, 0.0])
    assert model.predict(moved).tobytes() == model.predict(x).tobytes()


def test_of_parquet_files(tmp_path: Path) -> None:
    pytest.importorskip("pyarrow")
    frame = pd.DataFrame({"a": np.arange(50.0), "b": np.arange(50.0) % 7, "y": np.arange(50.0)})
    frame.to_parquet(tmp_path / "rows.parquet")
    data = gb.Dataset.from_parquet(tmp_path / "rows.parquet", "y", cuts={"a": [9.5, 30.0]})
    assert thresholds(data) == thresholds(gb.Dataset(frame[["a", "b"]], cuts={"a": [9.5, 30.0]}))
    with pytest.raises(InputError, match="cuts: X has no column 'c'"):
        gb.Dataset.from_parquet(tmp_path / "rows.parquet", "y", cuts={"c": [1.0]})


@pytest.mark.parametrize(
    ("cuts", "text"),
    [
        (3, "cuts: must be {column: thresholds}, or a sequence with an entry for each of 2 columns; got 3"),
        ("quantiles", "got 'quantiles'"),
        ([[1.0]], "got 1 entries. An entry of None is chosen from the data"),
        ({2: [1.0]}, "cuts: an index must be an integer from 0 to 1; got 2"),
        ({True: [1.0]}, "cuts: an index must be an integer from 0 to 1; got True"),
        ({"a": [1.0]}, "cuts: X has no column names to find 'a' in; give indices"),
        ({0: [1.0, 1.0]}, "column 0 needs increasing thresholds; number 0 is 1 and number 1 is 1. np.unique sorts"),
        ({1: [1.0, 3.0, 2.0]}, "column 1 needs increasing thresholds; number 1 is 3 and number 2 is 2"),
        ({0: [1.0, np.nan]}, "column 0 needs finite thresholds; number 1 is nan"),
        ({0: [-np.inf, 1.0]}, "column 0 needs finite thresholds; number 0 is -inf"),
        ({0: [[1.0], [2.0]]}, "column 0 needs a flat list of numbers"),
        ({0: [[1.0], [2.0, 3.0]]}, "column 0 needs a flat list of numbers"),
        ({0: ["low", "high"]}, "column 0 needs a flat list of numbers"),
        ({0: 1.0}, "column 0 needs a flat list of numbers; got 1.0"),
        ({0: [1 + 2j]}, "column 0 needs a flat list of numbers"),
        ({0: range(255)}, "column 0 has 255 thresholds, which make 256 bins; max_bins=255 allows 254 at most"),
    ],
)
def test_what_cannot_be_cuts_is_refused(cuts: Any, text: str) -> None:
    with pytest.raises(InputError) as caught:
        gb.Dataset(X, cuts=cuts)
    assert text in str(caught.value)


def test_refusals_that_need_names() -> None:
    with pytest.raises(InputError, match="column 'kind' is categorical, and categories have no order to cut"):
        gb.Dataset(FRAME, cuts={"kind": [1.0]})
    with pytest.raises(InputError, match="X has no column 'agee'; close to it: 'age'"):
        gb.Dataset(FRAME, cuts={"agee": [1.0]})
    with pytest.raises(InputError, match="a column is given once; column 'age' is there by name and by number"):
        gb.Dataset(FRAME, cuts={"age": [1.0], 0: [2.0]})
    with pytest.raises(InputError, match="column 'age' has 3 thresholds, which make 4 bins; max_bins=3 allows 2"):
        gb.Dataset(FRAME, cuts={"age": [1, 2, 3]}, max_bins=3)
