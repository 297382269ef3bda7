"""The Langevin suite: its borders, its folds, and one small run from end to end."""

from __future__ import annotations

import json
from functools import partial
from pathlib import Path

import numpy as np
import pytest
from support.examples import daily

import gpuboost as gb
from gpuboost.benchmarks.data.borders import binned, greedy_log_sum
from gpuboost.benchmarks.suites import sglb
from gpuboost.cli import main


def test_five_borders_of_a_continuous_column_are_the_eighths_up_to_the_middle_and_three_quarters() -> None:
    x = np.random.default_rng(0).normal(size=1000)
    borders = greedy_log_sum(x, 5)
    ordered = np.sort(x.astype(np.float32))
    expected = [0.5 * (ordered[k - 1] + ordered[k]) for k in (125, 250, 375, 500, 750)]
    np.testing.assert_allclose(borders, expected, rtol=1e-6)
    assert borders.dtype == np.float32


def test_borders_never_part_equal_values() -> None:
    x = np.array([1.0] * 70 + [2.0] * 20 + [3.0] * 10)
    np.testing.assert_array_equal(greedy_log_sum(x, 5), np.float32([1.5, 2.5]))
    assert len(greedy_log_sum(np.ones(9), 3)) == 0
    np.testing.assert_array_equal(binned(x[:, None], x[:, None], 5)[:, 0], np.repeat([0, 1, 2], [70, 20, 10]))


@pytest.mark.parametrize("count", [1, 5, 32])
def test_borders_are_those_of_catboost(count: int, tmp_path: Path) -> None:
    catboost = pytest.importorskip("catboost")
    x = np.random.default_rng(1).exponential(size=777)
    pool = catboost.Pool(x[:, None], x)
    pool.quantize(border_count=count, feature_border_type="GreedyLogSum")
    pool.save_quantization_borders(str(tmp_path / "borders"))
    theirs = [float(line.split()[1]) for line in (tmp_path / "borders").read_text().splitlines()]
    np.testing.assert_allclose(greedy_log_sum(x, count), theirs, rtol=1e-6)


def test_a_fold_is_six_bins_of_three_features_and_two_even_classes() -> None:
    x, y, x_test, y_test = sglb.fold(3)
    assert x.shape == x_test.shape == (1000, 3)
    assert np.unique(x).tolist() == [0.0, 1.0, 2.0, 3.0, 4.0, 5.0]
    assert 0.45 < y.mean() < 0.55
    assert (sglb.fold(3)[0] == x).all()
    assert not (sglb.fold(4)[0] == x).all()
    assert len(y_test) == 1000


def test_a_small_run_prints_tables_and_keeps_numbers(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(sglb, "ROUNDS", 30)
    path = tmp_path / "sglb.json"
    for case in ("table-1", "cost"):
        assert main(["bench", "sglb", "--size", "small", "--case", case, "--repeats", "2", "--json", str(path)]) == 0
    text = capsys.readouterr().out
    assert "logistic GB" in text
    assert "ms a round" in text
    found = json.loads(path.read_text())
    assert list(found["parts"]) == ["table-1", "cost"], "what was not run again stays"
    errors = found["parts"]["table-1"]["numbers"]["errors"]
    assert set(errors) == set(sglb.OURS)
    assert all(len(one) == 2 and 0.2 < min(one) <= max(one) < 0.8 for one in errors.values())


def test_a_real_set_is_split_searched_and_judged(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    from gpuboost.benchmarks.harness.store import Data
    from gpuboost.benchmarks.suites.sglb import real as sglb_real

    rng = np.random.default_rng(0)
    x = rng.normal(size=(1000, 3))
    y = (x[:, 0] + rng.normal(size=1000) > 0.0).astype(float)
    monkeypatch.setitem(sglb_real.SETS, "adult", lambda: Data("binary", x[:800], y[:800], x[800:], y[800:]))
    monkeypatch.setattr(sglb_real, "ROUNDS", 20)
    parts = sglb_real.split(sglb_real.SETS["adult"](), None).parts
    assert [len(one[1]) for one in parts] == [650, 150, 200]
    together = np.concatenate([one[0] for one in parts])
    np.testing.assert_array_equal(np.sort(together, axis=0), np.sort(x, axis=0))
    path = tmp_path / "sglb.json"
    assert main(["bench", "sglb", "--case", "adult", "--repeats", "2", "--json", str(path)]) == 0
    assert "SGLB, smoothed 0-1" in capsys.readouterr().out
    found = json.loads(path.read_text())["parts"]["adult"]["numbers"]["found"]
    assert set(found) == {"logloss", "error"}
    assert all(0.2 < one["losses"] < 0.45 for one in found["error"].values())


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore:n_estimators. the chain forgets:gpuboost.errors.OutsideTheoryWarning")
def test_the_posterior_tells_rows_of_another_kind_and_its_intervals_nest(tmp_path: Path) -> None:
    path = tmp_path / "sglb.json"
    for case in ("coverage", "ood"):
        assert main(["bench", "sglb", "--size", "small", "--case", case, "--json", str(path)]) == 0
    parts = json.loads(path.read_text())["parts"]
    for own in parts["coverage"]["numbers"]["inside"].values():  # what they cover is held in test_sglb_posterior
        assert 0.1 < own["0.5"][0] < own["0.9"][0] < own["0.95"][0] < 1.0
    found = {name: one["auc"]["gpuboost"][0] for name, one in parts["ood"]["numbers"]["found"].items()}
    digits = [area for name, area in found.items() if name.startswith("digits")]
    assert len(digits) == 2
    assert min(digits) > 0.7, "chains of 300 rounds have hardly mixed; chance is 0.5"
    assert all(0.0 <= area <= 1.0 for area in found.values())


@pytest.mark.filterwarnings("ignore:n_estimators. the chain forgets:gpuboost.errors.OutsideTheoryWarning")
@pytest.mark.parametrize("task", daily(["numbers", "binary", "multiclass"], 1))
def test_rows_of_another_kind_are_told_beside_catboost(task: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Around a hole in the training data; what either library makes of it is not judged here."""
    pytest.importorskip("catboost")
    from gpuboost.benchmarks.harness.experiments import Options
    from gpuboost.benchmarks.suites.sglb import out_of_distribution as sglb_ood

    monkeypatch.setattr(sglb_ood, "RATES", {task: sglb_ood.RATES[task]})
    monkeypatch.setattr(gb, "fit_posterior", partial(gb.fit_posterior, temperatures=[4.0], prior_variances=[4.0, 1.0]))
    rng = np.random.default_rng(0)
    x, other = rng.normal(size=(200, 2)), rng.uniform(5.0, 9.0, size=(50, 2))
    y = {"binary": x[:, 0] > 0.0, "multiclass": np.digitize(x[:, 0], [-1.0, 1.0]), "numbers": x[:, 0]}[task]
    pair = sglb_ood.Pair("made up", lambda seed: sglb_ood._another(x, y, other, task, seed))
    rows = pair.rows(0)
    assert len(rows.x) == len(rows.inside) == 100
    np.testing.assert_allclose(rows.outside.mean(axis=0), rows.x.mean(axis=0), atol=1e-12)
    np.testing.assert_allclose(rows.outside.std(axis=0), rows.x.std(axis=0))
    options = Options(True, ("catboost",), 1, 2, lambda text: None)
    found = sglb_ood._judged(pair, 2, options, peers=True)
    assert list(found["auc"]) == [sglb_ood.OURS, sglb_ood.DEFAULTS, sglb_ood.ALIKE]
    assert all(len(one) == 2 and 0.0 <= min(one) <= max(one) <= 1.0 for one in found["auc"].values())
    assert sglb_ood._row("made up", found)[:2] == ("made up", "new")
    theirs = max((found["auc"][name] for name in (sglb_ood.DEFAULTS, sglb_ood.ALIKE)), key=np.mean)
    assert sglb_ood._difference(found).mean() == pytest.approx(np.mean(found["auc"]["gpuboost"]) - np.mean(theirs))
    assert len(sglb_ood._notes({"made up": found})) == 3


def test_a_class_that_is_asked_about_is_not_learned_from() -> None:
    from gpuboost.benchmarks.suites.sglb import out_of_distribution as sglb_ood

    x, y = np.arange(60.0)[:, None], np.repeat([0, 1, 2], 20)
    for seed in range(3):
        rows = sglb_ood._left_out(x, y)(seed)
        assert seed not in rows.y
        assert set((rows.outside[:, 0] // 20).astype(int)) == {seed}
        assert not set(rows.x[:, 0]) & set(rows.inside[:, 0])
        assert rows.task == "binary"


def test_cases_are_listed_and_unknown_ones_refused(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["bench", "--list"]) == 0
    assert "table-1" in capsys.readouterr().out
    assert main(["bench", "sglb", "--case", "table-9"]) == 2
    assert (
        "sglb has no case 'table-9'; it has table-1, adult, amazon, higgs7k, ranking, cost, " in capsys.readouterr().err
    )
