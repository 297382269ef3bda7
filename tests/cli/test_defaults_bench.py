"""The suite of defaults."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from gpuboost.benchmarks.data import twenty
from gpuboost.benchmarks.harness.store import Data
from gpuboost.benchmarks.suites import defaults
from gpuboost.cli import main


@pytest.mark.slow
def test_a_small_run_from_end_to_end(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / "found.json"
    monkeypatch.setattr(defaults, "FEW", 100)
    asked = ["bench", "defaults", "--case", "diabetes", "--size", "small", "--threads", "1", "--peer", "sklearn"]
    assert main([*asked, "--json", str(path)]) == 0
    found = json.loads(path.read_text())["parts"]["diabetes"]["numbers"]
    one = found["sets"]["diabetes"]
    assert one["score"] == "rmse"
    assert (one["splits"], one["rows"], one["rows_test"]) == (3, 100, 442)
    assert list(one["scores"]) == ["gpuboost", "gpuboost auto", "gpuboost best", "scikit-learn"]
    assert one["worse"]["gpuboost best"] == 0.0
    assert sorted(found["mean rank"].values()) == [1.0, 2.0, 3.0, 4.0]


def test_the_halves_are_every_other_set_by_name() -> None:
    names = list(twenty.SETS)
    assert names == sorted(names)
    assert len(names) == 20
    assert (*twenty.CHOSEN, *twenty.SHOWN) == (*names[0::2], *names[1::2])


def test_each_row_of_a_small_set_is_held_out_once() -> None:
    splits = list(twenty.splits("diabetes"))
    held_out = np.sort(np.concatenate([data.y_test for data in splits]))
    for data in splits:
        assert np.sort(np.concatenate([data.y, data.y_test])).tolist() == held_out.tolist()


def test_numbers_of_a_table_by_hand() -> None:
    """Two splits of a set; one library is right, one is off by 1 and 3."""
    y = np.array([1.0, 2.0])
    splits = [Data("regression", y[:, None], y, y[:, None], y + k) for k in range(2)]

    def off(by: float) -> Any:
        return lambda data, threads: data.y_test + by * (1.0 + 2.0 * (data.y_test > 2.0))

    results = {name: defaults.judged(off(by), splits, 1) for name, by in (("gpuboost best", 1.0), ("x", 2.0))}
    assert results["gpuboost best"]["score"] == pytest.approx(np.sqrt((1 + 1 + 1 + 9) / 4))
    numbers = defaults._numbers(results)
    assert numbers["worse"]["x"] == pytest.approx(1.0)
    other = {"scores": {"gpuboost best": 2.0, "x": 2.0}}
    assert defaults.mean_ranks({"a": numbers, "b": other}, ["gpuboost best", "x"]) == {"gpuboost best": 1.25, "x": 1.75}
