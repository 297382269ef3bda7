"""``gpuboost train --interactions``, ``--reg-alpha``, ``--max-delta-step`` and ``--extra-trees``."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

import gpuboost as gb
from gpuboost.cli import main


def test_the_options_are_the_parameters(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    a, b, c = np.random.default_rng(0).normal(size=(3, 120)).round(3)
    lines = [",".join(map(str, row)) for row in zip(a, b, c, a * b + c, strict=True)]
    (tmp_path / "rows.csv").write_text("a,b,c,y\n" + "\n".join(lines) + "\n")
    model = tmp_path / "model.json"
    command = ["train", str(tmp_path / "rows.csv"), "--target", "y", "--model", str(model), "--quiet"]
    command += ["--n-estimators", "2", "--max-depth", "3", "--threads", "1", "--seed", "0"]
    assert main([*command, "--interactions", "a,b;c", "--reg-alpha", "0.5", "--max-delta-step", "0.3"]) == 0
    found = gb.load_model(model)
    assert found.interaction_cst == [["a", "b"], ["c"]]
    assert (found.reg_alpha, found.max_delta_step) == (0.5, 0.3)
    assert not found.extra_trees
    assert main([*command, "--interactions", "no_interactions", "--extra-trees"]) == 0
    assert gb.load_model(model).extra_trees
    assert gb.load_model(model).interaction_cst == "no_interactions"
    assert main([*command, "--interactions", "a,d"]) == 2
    assert "interaction_cst: X has no column 'd'" in capsys.readouterr().err
