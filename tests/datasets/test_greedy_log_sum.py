"""Borders by CatBoost's GreedyLogSum: ``binning="greedy_log_sum"``."""

from __future__ import annotations

import pickle
from typing import Any

import numpy as np
import pytest
from scipy import sparse

import gpuboost as gb
from gpuboost.benchmarks.data.borders import greedy_log_sum
from gpuboost.data.borders.greedy_log_sum import greedy_ends

rng = np.random.default_rng(0)


def cuts(x: Any, bins: int, **more: Any) -> tuple[np.ndarray, ...]:
    return gb.Dataset(x, max_bins=bins, binning="greedy_log_sum", **more).cuts.thresholds


def test_five_borders_of_a_continuous_column_are_eighths() -> None:
    (found,) = cuts(np.arange(800.0)[:, None], 6)
    np.testing.assert_allclose(found, [99.5, 199.5, 299.5, 399.5, 599.5])


@pytest.mark.parametrize("bins", [2, 6, 40, 255])
def test_borders_are_those_of_the_rows(bins: int) -> None:
    """Against the algorithm on rows, which breaks ties of segments by another rule: so without such ties."""
    for column in (rng.exponential(size=997), np.round(3.0 * rng.normal(size=997), 1)):
        x = column.astype(np.float32)
        (found,) = cuts(x[:, None], bins)
        assert len(found) == min(bins, len(np.unique(x))) - 1
        if bins == 2:
            assert (x <= found[0]).sum() == (x <= greedy_log_sum(x, 1)[0]).sum()
    total = np.bincount(np.searchsorted(greedy_log_sum(x, 6), x), minlength=7)
    (found,) = cuts(x[:, None], 7)
    assert sorted(np.bincount(np.searchsorted(found, x), minlength=7)) == sorted(total)


def test_weights_are_rows_and_sparse_is_dense() -> None:
    x = np.round(rng.normal(size=(300, 3)), 1) * (rng.random((300, 3)) < 0.5)
    times = rng.integers(0, 4, 300)
    repeated = cuts(np.repeat(x, times, axis=0), 9)
    for weighted in (cuts(x, 9, weight=times), cuts(sparse.csr_matrix(x), 9, weight=times)):
        for one, other in zip(repeated, weighted, strict=True):
            np.testing.assert_array_equal(one, other)
    x[::7] = np.nan
    assert all(np.isfinite(one).all() for one in cuts(x, 5))


def test_a_tie_of_segments_goes_as_in_a_heap() -> None:
    """16 rows, 4 cuts: 8, then 4 | 12 alike; the segment that was pushed first is on top."""
    assert (greedy_ends(np.ones(16, np.int64), 4) + 1).tolist() == [4, 8, 12]
    assert (greedy_ends(np.ones(16, np.int64), 3) + 1).tolist() == [4, 8]


def test_estimators_datasets_and_files_have_the_parameter(tmp_path: Any) -> None:
    x = rng.exponential(size=(200, 2))
    y = x[:, 0]
    kw: dict[str, Any] = {"n_estimators": 3, "n_jobs": 1, "max_bins": 6}
    model = gb.GradientBoostingRegressor(binning="greedy_log_sum", **kw).fit(x, y)
    for found, expected in zip(model.ensemble_.cuts.thresholds, cuts(x, 6), strict=True):
        np.testing.assert_array_equal(found, expected)
    data = gb.Dataset(x, y, max_bins=6, binning="greedy_log_sum")
    again = pickle.loads(pickle.dumps(data))
    assert again.binning == again.take(np.arange(150)).binning == "greedy_log_sum"
    on_data = gb.GradientBoostingRegressor(**{**kw, "max_bins": 255}).fit(data)
    assert on_data.predict(x).tobytes() == model.predict(x).tobytes()
    model.save_model(tmp_path / "model.json")
    assert gb.load_model(tmp_path / "model.json").binning == "greedy_log_sum"
    with pytest.raises(ValueError, match="the Dataset was cut by 'quantile'"):
        gb.GradientBoostingRegressor(binning="greedy_log_sum").fit(gb.Dataset(x, y))
    for bad in ("median", None, 3):
        with pytest.raises(ValueError, match="binning: must be one of 'quantile', 'greedy_log_sum'"):
            gb.GradientBoostingRegressor(binning=bad).fit(x, y)
        with pytest.raises(ValueError, match="binning: must be one of"):
            gb.Dataset(x, binning=bad)
