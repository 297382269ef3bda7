"""``gpuboost train`` with the options of trees, of bins and of missing values."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

import gpuboost as gb
from gpuboost.cli import main
from gpuboost.cli.parser import build_parser


def test_the_options_are_the_parameters(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    a, b, c = np.random.default_rng(0).normal(size=(3, 120)).round(3)
    lines = [",".join(map(str, row)) for row in zip(a, b, c, a * b + c, strict=True)]
    (tmp_path / "rows.csv").write_text("a,b,c,y\n" + "\n".join(lines) + "\n")
    model = tmp_path / "model.json"
    command = ["train", str(tmp_path / "rows.csv"), "--target", "y", "--model", str(model), "--quiet"]
    command += ["--n-estimators", "2", "--max-depth", "3", "--threads", "1", "--seed", "0"]
    assert (
        main(
            [*command, "--interactions", "a,b;c", "--reg-alpha", "0.5", "--max-delta-step", "0.3", "--path-smooth", "2"]
        )
        == 0
    )
    found = gb.load_model(model)
    assert found.interaction_cst == [["a", "b"], ["c"]]
    assert (found.reg_alpha, found.max_delta_step, found.path_smooth) == (0.5, 0.3, 2.0)
    assert not found.extra_trees
    assert main([*command, "--interactions", "no_interactions", "--extra-trees"]) == 0
    assert gb.load_model(model).extra_trees
    assert gb.load_model(model).interaction_cst == "no_interactions"
    assert main([*command, "--interactions", "a,d"]) == 2
    assert "interaction_cst: X has no column 'd'" in capsys.readouterr().err


def test_what_is_passed_on_is_a_parameter_of_an_estimator() -> None:
    estimators = gb.GradientBoostingRegressor(), gb.GradientBoostingClassifier(), gb.GradientBoostingRanker()
    known = {name for estimator in estimators for name in estimator.get_params()}
    passed_on = build_parser().parse_args(["train", "rows.csv"]).parameters
    assert len(passed_on) > 30
    assert not set(passed_on) - known


def test_a_number_may_stand_for_missing_values(tmp_path: Path) -> None:
    random = np.random.default_rng(0)
    x = np.round(random.random(900), 4)
    absent = random.random(900) < 0.3
    y = np.where(absent, 5.0, np.sin(30.0 * x))
    models = {}
    for name, shown in (("number", -999.0), ("empty", np.nan)):
        rows = np.column_stack([np.where(absent, shown, x), y])
        lines = ["a,y", *(f"{'' if np.isnan(a) else a},{b}" for a, b in rows.tolist())]
        (tmp_path / f"{name}.csv").write_text("\n".join(lines) + "\n")
        path = tmp_path / f"{name}.json"
        command = ["train", str(tmp_path / f"{name}.csv"), "--target", "y", "--model", str(path), "--quiet"]
        command += ["--n-estimators", "5", "--max-bins", "600"]
        assert main([*command, *(["--missing", "-999"] if name == "number" else [])]) == 0
        models[name] = gb.load_model(path)
    assert models["number"].missing == -999.0
    assert models["number"].max_bins == 600
    pd = pytest.importorskip("pandas")
    found = (m.predict(pd.DataFrame({"a": [0.5, a]})) for m, a in zip(models.values(), (-999.0, np.nan), strict=True))
    np.testing.assert_array_equal(*found)
