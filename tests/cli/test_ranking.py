"""Rankings on the command line, and their benchmark."""

from __future__ import annotations

import json
import math
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from sklearn.datasets import dump_svmlight_file

import gpuboost as gb
from gpuboost.benchmarks.data import ranking_sets
from gpuboost.benchmarks.harness import results
from gpuboost.benchmarks.harness.cases import Case, Setting, suites
from gpuboost.benchmarks.harness.scores import by_query, score
from gpuboost.benchmarks.harness.store import Data, load, prepared
from gpuboost.cli import main

pd = pytest.importorskip("pandas")

QUICK = ["--n-estimators", "10", "--max-depth", "3", "--seed", "1"]


def lists(queries: int, seed: int) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    rng = np.random.default_rng(seed)
    group = np.repeat(np.arange(1, queries + 1), rng.integers(5, 20, queries))
    x = np.round(rng.normal(size=(len(group), 4)), 3)
    worth = x[:, 0] + 0.5 * x[:, 1] + 0.3 * rng.normal(size=len(x))
    return x, np.digitize(worth, [0.3, 1.0, 1.8]).astype(np.float64), group


@pytest.fixture
def letor(tmp_path: Path) -> Path:
    """A file as LETOR has them: qid, and a comment at the end of each line."""
    x, y, group = lists(30, 0)
    path = tmp_path / "ranks.txt"
    dump_svmlight_file(x, y.astype(int), str(path), query_id=group, zero_based=False)
    path.write_text("".join(f"{line} # doc {i}\n" for i, line in enumerate(path.read_text().splitlines())))
    return path


def test_train_and_predict_a_letor_file(letor: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    model, out = tmp_path / "model.json", tmp_path / "out.csv"
    given = ["--task", "rank", "--eval", "0.3", "--eval-at", "3,5", "--early-stopping-rounds", "5"]
    assert main(["train", str(letor), *given, *QUICK, "--model", str(model)]) == 0
    shown = capsys.readouterr().out
    for name in ("NDCG@1", "NDCG@5", "NDCG@10", "MAP", "MRR"):
        ours, baseline = (float(word) for word in next(
            line for line in shown.splitlines() if f"{name} " in line
        ).replace("│", " ").split()[1:])  # fmt: skip
        assert 1.0 >= ours >= baseline > 0.0
    loaded: Any = gb.load_model(model)
    assert isinstance(loaded, gb.GradientBoostingRanker)
    assert loaded.eval_at == [3, 5]
    assert main(["predict", "--model", str(model), str(letor), "--output", str(out)]) == 0
    assert len(out.read_text().splitlines()) == 1 + len(lists(30, 0)[1])
    assert main(["predict", "--model", str(model), str(letor), "--proba"]) == 2
    assert "is a ranking model, it has no classes" in capsys.readouterr().err


def test_qids_make_it_a_ranking_and_a_file_can_be_held_out(letor: Path, tmp_path: Path) -> None:
    model = tmp_path / "model.json"
    assert main(["train", str(letor), "--eval", str(letor), *QUICK, "--model", str(model), "--quiet"]) == 0
    assert isinstance(gb.load_model(model), gb.GradientBoostingRanker)


def test_a_column_of_query_ids(tmp_path: Path) -> None:
    x, y, group = lists(25, 1)
    frame = pd.DataFrame(x, columns=list("abcd")).assign(grade=y, query=group, importance=group % 3 + 1)
    frame.to_csv(tmp_path / "ranks.csv", index=False)
    model, out = tmp_path / "model.json", tmp_path / "out.csv"
    given = ["--target", "grade", "--group", "query", "--weight", "importance", "--loss", "pairwise_logistic"]
    files = ["--eval", "0.2", "--model", str(model), "--quiet"]
    assert main(["train", str(tmp_path / "ranks.csv"), *given, *QUICK, *files]) == 0
    loaded: Any = gb.load_model(model)
    assert loaded.loss_ == gb.losses.PairwiseLogistic()
    assert loaded.feature_names_in_.tolist() == list("abcd")
    assert main(["predict", "--model", str(model), str(tmp_path / "ranks.csv"), "--output", str(out)]) == 0
    predicted = pd.read_csv(out)["prediction"].to_numpy()
    np.testing.assert_array_equal(predicted, loaded.predict(frame[list("abcd")]))


@pytest.mark.slow
def test_positions_and_pairs(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Also with queries that are set aside; the models are those of ``fit``."""
    x, y, group = lists(25, 1)
    rng = np.random.default_rng(0)
    frame = pd.DataFrame(x, columns=list("abcd")).assign(grade=y, query=group, place=rng.integers(0, 9, len(y)))
    frame.to_csv(tmp_path / "ranks.csv", index=False)
    first = np.flatnonzero(group[1:] == group[:-1])
    pairs = np.stack([first, first + 1, 1.0 + rng.integers(0, 3, len(first))], axis=1)
    np.savetxt(tmp_path / "pairs.csv", pairs, delimiter=",", fmt="%g")
    model, given = tmp_path / "model.json", ["train", str(tmp_path / "ranks.csv"), "--target", "grade", *QUICK]
    given += ["--group", "query", "--quiet", "--model", str(model)]

    def trained(*more: str) -> Any:
        assert main([*given, *more]) == 0, capsys.readouterr().err
        return gb.load_model(model)

    clicks = trained("--loss", "unbiased_lambdamart", "--position", "place")
    assert clicks.feature_names_in_.tolist() == list("abcd")
    other = trained("--loss", "unbiased_lambdamart", "--position", "place", "--eval", "0.3")
    columns = frame[list("abcd")]
    assert other.predict(columns).tobytes() != clicks.predict(columns).tobytes()
    of_pairs = ["--loss", "pair_logit", "--pairs", str(tmp_path / "pairs.csv"), "--position", "place"]
    assert main([*given, *of_pairs]) == 2
    assert "loss: 'pair_logit' does not look at positions" in capsys.readouterr().err
    frame.drop(columns="place").to_csv(tmp_path / "ranks.csv", index=False)
    found = trained(*of_pairs[:-2])
    again = gb.GradientBoostingRanker(**found.get_params() | {"verbose": 0})
    again.fit(columns, y, group=group, pairs=pairs[:, :2], pairs_weight=pairs[:, 2])
    assert again.predict(columns).tobytes() == found.predict(columns).tobytes()
    assert trained(*of_pairs[:-2], "--eval", "0.3").n_iter_ == found.n_iter_
    for more, words in (
        ([*of_pairs[:-2], "--cv", "3"], "--pairs: a cross-validation has none"),
        (["--loss", "pair_logit", "--pairs", "no.csv"], "--pairs: no.csv must hold lines"),
        (["--position", "wrong"], "--position: {path} has no column 'wrong'"),
        (["--loss", "pair_logit"], "pairs: loss 'pair_logit' learns from pairs of rows, and none are given"),
    ):
        assert main([*given, *more]) == 2
        assert words.format(path=tmp_path / "ranks.csv") in capsys.readouterr().err


def test_a_loss_of_map(letor: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    model, given = tmp_path / "model.json", [str(letor), *QUICK, "--quiet"]
    assert main(["train", *given, "--loss", "lambdamart:mrr", "--model", str(model)]) == 2
    assert "metric: LambdaMART has pair weights of 'ndcg' or 'map'; got 'mrr'" in capsys.readouterr().err
    assert main(["train", *given, "--loss", "lambdamart:map", "--model", str(model)]) == 2
    assert "LambdaMART(metric='map') needs labels 0 and 1" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("given", "words"),
    [
        (["--task", "rank"], "--task: to rank, the query of each row must be known; name its column with --group"),
        (["--loss", "lambdamart"], "--task: to rank, the query of each row must be known"),
        (["--group", "qery"], "group: {path} has no column 'qery'; close to it: 'query'"),
        (["--group", "mixed"], "group: the rows of a query must stand together"),
        (["--group", "query", "--target", "half"], "y: LambdaMART needs labels that are whole numbers"),
        (["--group", "one", "--eval", "0.5"], "--eval: queries are held out whole, so two are needed; the data hold 1"),
        (["--eval-at", "5", "--task", "regression"], "--eval-at: places are of rankings, and this is a regression"),
    ],
)
def test_what_cannot_be_ranked(
    given: list[str], words: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    x, y, group = lists(6, 2)
    frame = pd.DataFrame(x, columns=list("abcd")).assign(grade=y, half=y / 2, query=group, one=1)
    frame["mixed"] = np.arange(len(y)) % 5
    path = tmp_path / "ranks.csv"
    frame.to_csv(path, index=False)
    assert main(["train", str(path), "--target", "grade", "--model", str(tmp_path / "m.json"), *given, *QUICK]) == 2
    assert words.format(path=path) in capsys.readouterr().err
    assert not (tmp_path / "m.json").exists()


def test_scores_of_rankings_by_hand() -> None:
    y, p = np.array([0.0, 2.0, 1.0, 0.0, 0.0]), np.array([3.0, 2.0, 1.0, 5.0, 5.0])
    data = Data("ranking", None, y, None, y, group_test=np.array([4, 4, 4, 1, 1]))
    dcg, best = 3.0 / math.log2(3.0) + 1.0 / math.log2(4.0), 3.0 + 1.0 / math.log2(3.0)
    expected = {"ndcg@10": dcg / best, "ndcg@5": dcg / best, "map": (1 / 2 + 2 / 3) / 2, "mrr": 1 / 2}
    assert score(data, p) == pytest.approx({name: (value + 1.0) / 2.0 for name, value in expected.items()})
    assert by_query(data, p) == pytest.approx([dcg / best, 1.0], abs=1e-6)


def test_the_error_of_a_shortfall_is_that_of_paired_queries() -> None:
    case = Case("c", "", ranking_sets.letor_like, {}, Setting(trees=3), rivals=("lightgbm",))
    rng = np.random.default_rng(0)
    hard = rng.random(400)

    def line(peer: str, values: np.ndarray) -> results.Line:
        return results.Line("c", peer, {}, {}, {"ndcg@10": float(values.mean())}, (1, 1), tuple(values))

    better = hard + 0.01 * rng.normal(size=400)
    found = [line("gpuboost", hard), line("lightgbm", better), line("catboost", hard + 1.0)]
    assert results.shortfall(case, found) == pytest.approx((better.mean() - hard.mean()) / better.mean())
    error = results.error_of_shortfall(case, found)
    assert error == pytest.approx(0.01 / 20.0 / better.mean(), rel=0.15)
    assert results.standard_error(hard) == pytest.approx(hard.std() / 20.0, rel=0.1)
    assert results.error_of_shortfall(case, found[:1]) is None


def test_synthetic_lists(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("GPUBOOST_BENCH_CACHE", str(tmp_path))
    case = Case("c", "", ranking_sets.letor_like, {"queries": 40, "queries_test": 10, "seed": 3}, Setting(trees=1))
    made, stored = ranking_sets.letor_like(**case.arguments), load(prepared(case))
    assert stored.X.shape[1] == 136
    assert (stored.X.dtype, stored.task) == (np.float32, "ranking")
    for name in ("X", "y", "group", "X_test", "group_test"):
        np.testing.assert_array_equal(getattr(stored, name), getattr(made, name))
    assert len(np.unique(stored.group)) == 40
    assert 0.45 < (stored.y == 0.0).mean() < 0.6
    assert (np.diff(stored.group) >= 0).all()


@pytest.mark.parametrize(("make", "rows", "queries"), [("lightgbm_rank", 3005, 201), ("mslr10k_5k", 5000, 43)])
def test_real_lists_have_their_known_size(make: str, rows: int, queries: int, data_dir: Path) -> None:
    data = getattr(ranking_sets, make)()
    assert (len(data.y), len(np.unique(data.group))) == (rows, queries)
    assert set(np.unique(data.y)) == {0, 1, 2, 3, 4}


@pytest.mark.slow
def test_a_small_benchmark_from_end_to_end(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    assert "ranking" in suites()
    monkeypatch.setenv("GPUBOOST_BENCH_CACHE", str(tmp_path / "cache"))
    given = [
        "--size",
        "small",
        "--case",
        "letor",
        "--peer",
        "xgboost",
        "--threads",
        "1",
        "--repeats",
        "1",
        "--wait",
        "0",
    ]
    assert main(["bench", "ranking", *given, "--json", str(tmp_path / "runs.json")]) == 0
    runs = json.loads((tmp_path / "runs.json").read_text())["runs"]
    assert [run["peer"] for run in runs] == ["gpuboost", "xgboost"]
    for run in runs:
        assert len(run["by_query"]) == 100
        assert run["scores"]["ndcg@10"] == pytest.approx(np.mean(run["by_query"]), abs=1e-6)
        assert run["scores"]["ndcg@10"] > 0.4
    assert "train x" in capsys.readouterr().out


def test_a_frame_to_predict_may_have_the_column_that_group_named(tmp_path: Path) -> None:
    x, y, group = lists(10, 0)
    frame = pd.DataFrame(x, columns=list("abcd")).assign(query=group)
    path, model = tmp_path / "ranks.csv", tmp_path / "model.json"
    frame.assign(y=y).to_csv(path, index=False)
    assert (
        main(["train", str(path), "--target", "y", "--group", "query", *QUICK, "--model", str(model), "--quiet"]) == 0
    )
    loaded = gb.load_model(model)
    assert np.array_equal(loaded.predict(frame), loaded.predict(frame[list("abcd")]))
