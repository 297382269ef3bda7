"""``gpuboost train --categorical-encoding``."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np

import gpuboost as gb
from gpuboost.cli import main


def test_the_option_is_the_parameter(tmp_path: Path, capsys: Any) -> None:
    rng = np.random.default_rng(0)
    town, size = rng.choice(list("abcdef"), 120), rng.normal(size=120)
    lines = [f"{t},{s},{s + (t == 'b')}" for t, s in zip(town, size, strict=True)]
    (tmp_path / "rows.csv").write_text("town,size,y\n" + "\n".join(lines) + "\n")
    model = tmp_path / "model.json"
    command = ["train", str(tmp_path / "rows.csv"), "--target", "y", "--model", str(model), "--quiet"]
    few = ["--n-estimators", "2", "--max-depth", "2", "--threads", "1", "--seed", "0"]
    assert main([*command, *few, "--categorical-encoding", "ordered"]) == 0
    found = gb.to_dict(gb.load_model(model))
    assert found["parameters"]["categorical_encoding"] == "ordered"
    assert found["columns"]["statistics"]["tables"]
    assert main([*command, *few, "--categorical-encoding", "target"]) == 2
    assert "categorical_encoding: must be one of 'auto', 'partition'" in capsys.readouterr().err
