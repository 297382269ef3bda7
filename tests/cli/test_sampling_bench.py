"""The suites on row sampling: what they report of a run, and one small run of each from end to end."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest

import gpuboost as gb
from gpuboost.benchmarks.data.synthetic import higgs_like
from gpuboost.benchmarks.harness import experiments
from gpuboost.benchmarks.suites import sampling, smart
from gpuboost.cli import main


def test_a_run_knows_its_rounds_and_rates() -> None:
    run = smart.Run([0.4, 0.324, 0.33, 0.31, 0.32], 0.1, (0.5, 0.3, 0.1, 0.1, 0.1))
    assert run.first(0.325) == 2
    assert run.first(0.3) is None
    assert run.best == 4
    assert run.rate(2) == 0.4
    assert smart.Run([0.4], 0.1, ()).rate(1) == 1.0


def test_strategies_are_those_of_the_paper_at_its_rates() -> None:
    found = smart.strategies(0.5, 0.3, 0.4)
    assert found["baseline"] is None
    assert found["1st order"] == gb.ImportanceSampling(0.5, score="gradient", floor=0.0, variance_control="none")
    assert found["2nd order, node (B)"].score == "hessian"
    uniform = smart.follow(higgs_like(2000, 500, 1), found["uniform"], 0, 1, n_estimators=4)
    assert len(uniform.scores) == len(uniform.rates) == 4
    assert abs(np.mean(uniform.rates) - 0.4) < 0.05
    assert uniform.seconds > 0.0


def test_rounds_to_a_target_are_means_of_those_that_reach_it() -> None:
    quick, slow = smart.Run([0.5, 0.3, 0.2], 0.1, ()), smart.Run([0.5, 0.4, 0.3], 0.1, ())
    assert smart._rounds_to(0.4, [quick, slow]) == "2"
    assert smart._rounds_to(0.25, [quick, slow]) == "1 of 2"


def test_worse_is_worse_whichever_way_the_score_goes() -> None:
    scores = {"gpuboost: mvs": {"ndcg@10": 0.5, "logloss": 0.5}, "lightgbm: goss": {"ndcg@10": 0.4, "logloss": 0.4}}
    assert sampling._worse(scores, "lightgbm: goss", sampling.MVS, "ndcg@10") == pytest.approx(0.2)
    assert f"{sampling._worse(scores, sampling.MVS, sampling.MVS, 'ndcg@10'):+.2%}" == "+0.00%"
    assert sampling._worse(scores, "lightgbm: goss", sampling.MVS, "logloss") == pytest.approx(-0.2)
    told = sampling._beside(
        scores, {"gpuboost: mvs": 1.0, "lightgbm: goss": 4.0}, sampling.MVS, "lightgbm: goss", "ndcg@10"
    )
    assert told == "gpuboost: mvs takes 0.25 of the time of lightgbm: goss, and is 25.00% better"


@pytest.mark.slow
@pytest.mark.parametrize("suite", ["smart", "sampling"])
def test_a_small_run_from_end_to_end(suite: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = tmp_path / "found.json"
    assert main(["bench", suite, "--case", "higgs", "--size", "small", "--threads", "1", "--json", str(path)]) == 0
    stored = json.loads(path.read_text())["parts"]["higgs"]
    assert stored["rows"][0][0].endswith("all rows")
    labels = [row[0] for row in stored["rows"]]
    assert set(labels) == set(stored["numbers"])
    assert "20,000 x 28" in capsys.readouterr().out
    if suite == "sampling":
        assert labels == list(sampling.OURS)  # no peers were asked for


@pytest.mark.parametrize("there", [("xgboost", "lightgbm", "catboost"), ("lightgbm",), ()])
def test_only_peers_that_are_asked_for_and_there_run(there: tuple[str, ...], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(experiments, "installed", lambda name: name in there)
    options = experiments.Options(True, ("lightgbm", "catboost"), 1, 1, lambda _: None)
    found = {library for library, _ in sampling._asked(options).values()}
    assert found == {"gpuboost", *there} - {"xgboost"}


def test_scores_by_number_of_trees(tmp_path: Path) -> None:
    path = tmp_path / "found.json"
    assert main(["bench", "sampling", "--case", "long", "--size", "small", "--threads", "1", "--json", str(path)]) == 0
    found = json.loads(path.read_text())["parts"]["long"]
    assert [row[0] for row in found["rows"]] == [label for label in sampling.OURS if label != sampling.TWICE]
    for two, four in found["numbers"]["log loss"].values():
        assert 0.3 < four < two < 0.7, "more trees of so few are better"
