"""The Langevin suite: its borders, its folds, and one small run from end to end."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest

from gpuboost.benchmarks import sglb
from gpuboost.benchmarks.borders import binned, greedy_log_sum
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
    from gpuboost.benchmarks import sglb_real
    from gpuboost.benchmarks.store import Data

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
def test_the_posterior_tells_rows_of_another_kind_and_its_intervals_nest(tmp_path: Path) -> None:
    path = tmp_path / "sglb.json"
    for case in ("coverage", "ood"):
        assert main(["bench", "sglb", "--size", "small", "--case", case, "--json", str(path)]) == 0
    parts = json.loads(path.read_text())["parts"]
    for own in parts["coverage"]["numbers"]["inside"].values():  # what they cover is held in test_sglb_posterior
        assert 0.1 < own["0.5"][0] < own["0.9"][0] < own["0.95"][0] < 1.0
    found = parts["ood"]["numbers"]["found"]
    assert found["0 to 4"]["ours"] > 0.896, "CatBoost's virtual ensembles, measured"
    assert found["5 to 9"]["ours"] > 0.827


def test_cases_are_listed_and_unknown_ones_refused(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["bench", "--list"]) == 0
    assert "table-1" in capsys.readouterr().out
    assert main(["bench", "sglb", "--case", "table-9"]) == 2
    assert "sglb has no case 'table-9'; it has table-1, adult, amazon, higgs7k, cost" in capsys.readouterr().err
