"""The suite of random-then-greedy boosting: its grid, its curves, and one small run from end to end."""

from __future__ import annotations

import json
from itertools import pairwise
from pathlib import Path

import numpy as np
import pytest

import gpuboost as gb
from gpuboost.benchmarks.harness.experiments import Options
from gpuboost.benchmarks.harness.store import Data
from gpuboost.benchmarks.suites import rgbm_runs
from gpuboost.cli import main


def options(**more: object) -> Options:
    return Options(False, (), 1, 0, lambda _: None, **more)


def test_the_grid_is_the_papers() -> None:
    assert rgbm_runs.grid("a9a", 123, options())[0] == (123, 200)
    assert rgbm_runs.grid("a9a", 123, options())[-1] == (1, 24587)
    assert rgbm_runs.grid("rcv1", 47236, options())[-1] == (1, rgbm_runs.MOST_ROUNDS)
    assert rgbm_runs.grid("a9a", 123, options(scale=0.1))[1] == (36, 66)
    for name, grid in rgbm_runs.GRIDS.items():
        ratios = [b / a for (_, a), (_, b) in pairwise(grid)]
        assert min(ratios) > 1.0, name


def test_checks_are_early_and_late_rounds() -> None:
    assert rgbm_runs.checks(3) == [1, 2, 3]
    found = rgbm_runs.checks(10_000)
    assert (found[0], found[-1]) == (1, 10_000)
    assert found == sorted(set(found))


def test_a_curve_is_the_losses_of_its_rounds() -> None:
    rng = np.random.default_rng(0)
    x = rng.normal(size=(300, 4))
    y = x[:, 0] + rng.normal(size=300) > 0.0
    data = Data("binary", x[:200], y[:200], x[200:], y[200:])
    curve = rgbm_runs.follow(data, gb.Dataset(x[:200], y[:200], max_bins=rgbm_runs.BINS), 2, 30, 1, 0)
    assert curve.rounds == rgbm_runs.checks(30)
    assert (np.diff(curve.train) <= 1e-12).all()
    assert (np.diff(curve.seconds) >= 0.0).all()
    model = gb.GradientBoostingClassifier(
        loss=gb.losses.Logistic(rgbm_runs.RIDGE), n_estimators=30, learning_rate=1.0, step="constant", max_depth=1,
        reg_lambda=0.0, min_child_weight=0.0, max_bins=rgbm_runs.BINS, learners=2, start=0.0, random_state=0,
        device="cpu",
    ).fit(x[:200], y[:200])  # fmt: skip
    for rounds, scores in enumerate(model.staged_decision_function(x[200:]), 1):
        if rounds in curve.rounds:
            signed = np.where(y[200:], scores, -scores)
            loss = np.mean(np.log1p(np.exp(-signed)) + 0.5 * rgbm_runs.RIDGE * scores**2)
            assert curve.test[curve.rounds.index(rounds)] == pytest.approx(loss, rel=1e-9)
    assert curve.first(curve.train[3]) == 3
    assert curve.first(0.0) is None
    assert curve.at(30) == curve.train[-1]


@pytest.mark.slow
@pytest.mark.long
def test_a_small_run_prints_tables_keeps_numbers_and_draws(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    pytest.importorskip("matplotlib")
    monkeypatch.setattr(rgbm_runs, "MOST_ROUNDS", 15)
    path, picture = tmp_path / "rgbm.json", tmp_path / "rgbm.png"
    command = ["bench", "rgbm", "--size", "small", "--case", "year", "--case", "sparse", "--repeats", "1"]
    assert main([*command, "--threads", "1", "--json", str(path), "--plot", str(picture)]) == 0
    text = capsys.readouterr().out
    assert "of its time" in text
    assert "entries of drawn features" in text
    parts = json.loads(path.read_text())["parts"]
    assert [curve["t"] for curve in parts["year"]["numbers"]["curves"]] == [90, 29, 9, 3, 1]
    assert picture.stat().st_size > 10_000
    assert main([*command[:5], "sparse", "--threads", "1", "--repeats", "1", "--plot", str(picture)]) == 2
    assert "--plot: none of the parts" in capsys.readouterr().err
