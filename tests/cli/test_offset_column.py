"""``--offset COLUMN``: offsets of scores on the command line."""

from __future__ import annotations

import warnings
from pathlib import Path

import numpy as np
import pytest

import gpuboost as gb
from gpuboost.cli import main

pd = pytest.importorskip("pandas")


def test_offsets_are_a_column(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    rng = np.random.default_rng(0)
    x = rng.normal(size=200)
    years = rng.uniform(0.1, 2.0, 200)
    table = pd.DataFrame({"x": x, "log_years": np.log(years), "claims": rng.poisson(years * np.exp(x))})
    path, saved, out = tmp_path / "claims.csv", tmp_path / "model.json", tmp_path / "out.csv"
    table.to_csv(path, index=False)
    options = ["--target", "claims", "--loss", "poisson", "--offset", "log_years", "--n-estimators", "5"]
    assert main(["train", str(path), *options, "--model", str(saved), "--eval", "0.2"]) == 0
    assert "held-out rows" in capsys.readouterr().out
    model = gb.load_model(saved)
    assert model.feature_names_in_.tolist() == ["x"]
    command = ["predict", str(path), "--model", str(saved), "--output", str(out), "--offset"]
    assert main([*command, "log_years"]) == 0
    expected = model.predict(table[["x"]], init_score=table["log_years"])
    np.testing.assert_array_equal(pd.read_csv(out)["prediction"], expected)
    assert main([*command, "years"]) == 2
    assert "--offset:" in capsys.readouterr().err
    plain = warnings.formatwarning
    with warnings.catch_warnings():
        warnings.simplefilter("always")
        warnings.showwarning = lambda *warning: print(warnings.formatwarning(*warning[:4]), end="")
        assert main(command[:-1]) == 0
    assert warnings.formatwarning is plain
    (warning,) = capsys.readouterr().out.splitlines()
    assert warning.startswith("gpuboost predict: warning: init_score: the model was fitted with offsets")
    assert "--offset" in warning
