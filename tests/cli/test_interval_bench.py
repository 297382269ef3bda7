"""The suite of prediction intervals."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest

from gpuboost.benchmarks.data import uci
from gpuboost.benchmarks.harness import distributions
from gpuboost.benchmarks.suites import intervals
from gpuboost.cli import main


@pytest.mark.slow
def test_a_small_run_from_end_to_end(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(intervals, "ROUNDS", 10)
    path = tmp_path / "found.json"
    asked = ["bench", "intervals", "--case", "noisy", "--size", "small", "--threads", "1", "--peer", "sklearn"]
    assert main([*asked, "--json", str(path)]) == 0
    found = json.loads(path.read_text())["parts"]["noisy"]
    assert [row[0] for row in found["rows"]] == list(found["numbers"])
    assert len(found["rows"]) == 7
    numbers = found["numbers"]
    assert numbers["gpuboost: several quantiles"]["crossing"] == 0.0
    for label in numbers:
        if "conformal" in label:
            assert numbers[label]["coverage"] == pytest.approx(0.9, abs=0.06)


def test_numbers_of_a_table_by_hand() -> None:
    quantiles = np.array([[0.0, 1.0, 2.0], [1.0, 0.0, 3.0]])
    found = intervals.judged(intervals.Answer(quantiles[:, [0, 2]], quantiles), np.array([1.0, 4.0]))
    assert found["coverage"] == 0.5
    assert found["width"] == 2.0
    assert found["interval score"] == pytest.approx((2.0 + (2.0 + 20.0)) / 2)
    assert found["crossing"] == 0.5
    assert found["pinball"] == pytest.approx((0.05 + 0.0 + 0.05 + 0.05 * 3 + 0.5 * 4 + 0.95 * 1) / 6)


def test_scores_of_distributions_by_hand() -> None:
    y, unit = np.array([1.0, 4.0]), 2.0
    found = distributions.judged(distributions.normal(np.array([1.0, 2.0]), np.array([1.0, 2.0])), y, unit)
    assert found["coverage"] == 1.0
    assert found["width"] == pytest.approx(2 * 1.6448536269514722 * 1.5 / unit)
    assert found["nll"] == pytest.approx(0.5 * (0.5 * np.log(2 * np.pi) + 0.5 + np.log(2.0) + 0.5 * np.log(2 * np.pi)))
    assert found["exact"] == pytest.approx((0.23369498 + 2.0 * 0.60244136) / 2 / unit, rel=1e-6)
    assert found["crps"] == pytest.approx(found["exact"], rel=0.1)  # of 19 levels
    flat = np.tile(np.array(distributions.LEVELS), (2, 1))
    of_levels = distributions.judged(distributions.Predicted(flat[:, [0, -1]], flat), np.array([0.5, 0.0]), 1.0)
    assert of_levels["coverage"] == 0.5
    levels = np.array(distributions.LEVELS)
    pinball = [np.where(levels <= 0.5, levels * (0.5 - levels), (1 - levels) * (levels - 0.5)), (1 - levels) * levels]
    assert of_levels["crps"] == pytest.approx(2 * np.mean(pinball))
    assert "nll" not in of_levels


def test_splits_hold_out_a_tenth_each(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    folder = tmp_path / "uci"
    folder.mkdir()
    rows = np.column_stack([np.arange(200.0), np.arange(200.0) + 0.5, np.arange(200.0) * 2])
    np.savetxt(folder / "yacht.txt", rows)
    np.savetxt(folder / "naval.txt", rows)
    monkeypatch.setenv("GPUBOOST_DATA", str(tmp_path))
    splits = list(uci.splits("yacht", 3))
    out = [set(data.X_test[:, 0].tolist()) for data in splits]
    assert not out[0] & out[1]
    assert not out[1] & out[2]
    for data in splits:
        assert len(data.y) + len(data.y_test) == 200
        assert 5 <= len(data.y_test) <= 40
        assert data.y_test.tolist() == (2 * data.X_test[:, 0]).tolist()
    assert len(next(uci.splits("yacht", 1, 50)).y) == 50
    naval = next(uci.splits("naval", 1))
    assert naval.X.shape[1] == 1
    assert naval.y.tolist() == (naval.X[:, 0] + 0.5).tolist()
