"""The suite of several outputs."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest

from gpuboost.benchmarks.suites import outputs
from gpuboost.cli import main


@pytest.mark.slow
def test_a_small_run_from_end_to_end(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(outputs, "ROUNDS", 5)
    path = tmp_path / "found.json"
    cases = [part for case in ("labels", "digits", "growing") for part in ("--case", case)]
    assert main(["bench", "outputs", *cases, "--size", "small", "--threads", "1", "--json", str(path)]) == 0
    parts = json.loads(path.read_text())["parts"]
    assert [row[0] for row in parts["labels"]["rows"]] == list(parts["labels"]["numbers"])
    assert len(parts["labels"]["rows"]) == 5
    assert len(parts["digits"]["rows"]) == 2
    assert list(parts["growing"]["numbers"]) == ["5", "10"]
    losses = [one["loss"] for part in ("labels", "digits") for one in parts[part]["numbers"].values()]
    assert all(0.0 < loss < np.log(10.0) for loss in losses)


def test_losses_by_hand() -> None:
    x, y = np.zeros((2, 1)), np.array([[0.0, 1.0], [2.0, 3.0]])
    rows = outputs.Rows("numbers", x, y, x, y)
    assert outputs.judged(rows, _Model(y + 1.0)) == 1.0
    rows = outputs.Rows("labels", x, y, x, np.array([[0, 1], [1, 1]]))
    assert outputs.judged(rows, _Model(np.full((2, 2), 0.25))) == pytest.approx(
        -(np.log(0.75) + 3.0 * np.log(0.25)) / 4.0
    )


class _Model:
    """Predictions that are known."""

    def __init__(self, answer: np.ndarray) -> None:
        self.answer = answer

    def predict(self, x: np.ndarray) -> np.ndarray:
        return self.answer

    predict_proba = predict
