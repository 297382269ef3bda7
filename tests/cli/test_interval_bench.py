"""The suite of prediction intervals."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest

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
