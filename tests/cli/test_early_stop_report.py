"""The training command says where early stopping ended, and watches several scores."""

from __future__ import annotations

import re
from pathlib import Path

import numpy as np
import pytest

import gpuboost as gb
from gpuboost.cli import main


def test_the_round_that_it_stopped_at_and_the_best_one(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    pytest.importorskip("pandas")
    rng = np.random.default_rng(0)
    a, b = rng.normal(size=(2, 400))
    label = (a + rng.normal(size=400) > 0).astype(int)
    lines = [f"{one},{other},{y}" for one, other, y in zip(a, b, label, strict=True)]
    (tmp_path / "d.csv").write_text("\n".join(["a,b,y", *lines]))
    options = "--target y --eval 0.3 --n-estimators 500 --eval-metric logloss,auc --early-stopping-rounds 5 --seed 1"
    command = ["train", str(tmp_path / "d.csv"), *options.split(), "--model", str(tmp_path / "m.json")]
    assert main(command) == 0
    said = re.search(r"stopped after (\d+) rounds, the best of which is round (\d+)", capsys.readouterr().out)
    assert said is not None
    stopped, best = map(int, said.groups())
    assert stopped == best + 5
    assert gb.load_model(tmp_path / "m.json").n_iter_ == best
