"""The suite of base learners."""

from __future__ import annotations

import json
import os
from pathlib import Path

import numpy as np
import pytest

from gpuboost.benchmarks.harness.experiments import Options
from gpuboost.benchmarks.harness.store import Data
from gpuboost.benchmarks.suites import functional
from gpuboost.cli import main

pd = pytest.importorskip("pandas")


@pytest.mark.slow
@pytest.mark.parametrize("task", ["regression", "binary"])
def test_its_table_has_every_model_with_its_score_and_time(task: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(functional, "ROUNDS", 20)
    rng = np.random.default_rng(0)
    frame = pd.DataFrame(rng.normal(size=(600, 2)), columns=["a", "b"])
    frame["kind"] = pd.Categorical(rng.choice(list("pqr"), 600))
    y = frame["a"].to_numpy() + (frame["kind"] == "p").to_numpy()
    y = (y > 0.5).astype(float) if task == "binary" else y
    data = Data(task, frame[:500], y[:500], frame[500:], y[500:])  # type: ignore[arg-type]
    told: list[str] = []
    found = functional.compared(Options(True, (), 1, 2, told.append), "two", data)
    assert [row[0] for row in found.rows] == list(functional.models(data, peers=False))
    assert found.columns[1] == ("logloss" if task == "binary" else "rmse")
    assert found.rows[0][2] == "+0.00%"
    assert found.numbers is not None
    assert all(len(one["scores"]) == len(one["seconds"]) == 2 for one in found.numbers.values())
    assert len(told) == 2 * len(found.rows)
    assert "pip install interpret-core" in found.notes[0]


def test_the_claim_is_said_as_it_is() -> None:
    seconds = {functional.OURS: [1.0], functional.EBM: [4.0]}
    for ours, words in ((1.01, "holds (+1.00%, 4.0 times"), (1.05, "does not hold (+5.00%")):
        assert words in functional._notes({functional.OURS: [ours], functional.EBM: [1.0]}, seconds)[0]


@pytest.mark.slow
@pytest.mark.skipif("GPUBOOST_DATA" not in os.environ, reason="GPUBOOST_DATA names no folder of data sets")
def test_a_small_run_from_end_to_end(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(functional, "ROUNDS", 10)
    path = tmp_path / "found.json"
    asked = ["bench", "functional", "--case", "bank", "--size", "small", "--threads", "1", "--json", str(path)]
    assert main(asked) == 0
    assert json.loads(path.read_text())["parts"]["bank"]["rows"][0][0] == functional.OURS
