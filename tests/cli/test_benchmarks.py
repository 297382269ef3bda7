"""The benchmark framework: the arithmetic of results by hand-made rows, and one small run from end to end."""

from __future__ import annotations

import json
import mmap
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from support.examples import crossed

from gpuboost.benchmarks.data import real, synthetic
from gpuboost.benchmarks.harness import results
from gpuboost.benchmarks.harness.cases import Case, Setting, Suite, suites
from gpuboost.benchmarks.harness.measure import Clock
from gpuboost.benchmarks.harness.report import verdict
from gpuboost.benchmarks.harness.scores import by_row, score
from gpuboost.benchmarks.harness.store import Data, load, prepared
from gpuboost.cli import main
from gpuboost.errors import InputError

CASE = Case("c", "a case", synthetic.higgs_like, {}, Setting(trees=3), targets={"fit": 0.7, "memory": 1.2})
SUITE = Suite("s", "a suite", "speed", (CASE,), 3)


def run_of(peer: str, repeat: int, train: float, memory: float = 100.0, **more: Any) -> dict[str, Any]:
    phases = {
        "import": {"seconds": 0.5, "peak_mb": 0.0},
        "bin": {"seconds": 1.0, "peak_mb": memory / 2},
        "train": {"seconds": train, "peak_mb": memory},
        "predict": {"seconds": 0.1, "peak_mb": 0.0},
    }
    row = {"case": "c", "peer": peer, "repeat": repeat, "phases": phases, "disturbed": [], "scores": {"logloss": 0.5}}
    return {**row, **more}


ROWS = [
    run_of("xgboost", 0, 3.0),
    run_of("gpuboost", 0, 1.0, memory=150.0),
    run_of("gpuboost", 1, 2.0, memory=150.0),
    run_of("xgboost", 1, 3.0),
    run_of("gpuboost", 2, 1.0, memory=150.0, disturbed=["train"]),
    run_of("xgboost", 2, 1.0),
    run_of("lightgbm", 0, 9.0, memory=200.0),
]


def test_lines_are_medians_with_ours_first() -> None:
    found = results.lines(ROWS, CASE)
    assert [line.peer for line in found] == ["gpuboost", "xgboost", "lightgbm"]
    assert found[0].measures["fit"] == 2.0
    assert found[1].measures["fit"] == 4.0
    assert found[0].clean == (2, 3)


def test_ratios_are_paired_and_against_the_best_peer() -> None:
    ours = results.lines(ROWS, CASE)[0]
    assert ours.ratios["fit"] == 0.75  # of 2/4, 3/4 and 2/2
    assert ours.ratios["memory"] == 0.75  # LightGBM's 200, which ran in turn 0 only
    assert results.missed(CASE, ours) == {"fit": 0.75}


def test_failed_runs_are_left_out() -> None:
    failed = [*ROWS, {"case": "c", "peer": "catboost", "repeat": 0, "error": "no"}]
    assert [line.peer for line in results.lines(failed, CASE)] == ["gpuboost", "xgboost", "lightgbm"]


@pytest.mark.parametrize(
    ("ours", "theirs", "verdict", "expected"),
    [(0.505, 0.5, None, 0.01), (0.4, 0.5, None, -0.2), (0.8, 1.0, "accuracy", 0.2), (0.1, 0.0, None, 0.1)],
)
def test_shortfall(ours: float, theirs: float, verdict: str | None, expected: float) -> None:
    name = verdict or "logloss"
    case = Case("c", "", synthetic.higgs_like, {}, Setting(trees=3), verdict=verdict)
    rows = [run_of("gpuboost", 0, 1.0, scores={name: ours}), run_of("lightgbm", 0, 1.0, scores={name: theirs})]
    assert results.shortfall(case, results.lines(rows, case)) == pytest.approx(expected)
    assert results.shortfall(case, results.lines(rows[:1], case)) is None


TASKS: dict[str, tuple[str, ...]] = {
    "binary": ("logloss", "accuracy"),
    "multiclass": ("logloss", "accuracy"),
    "regression": ("rmse", "mae"),
    "poisson": ("deviance",),
}


@pytest.mark.slow
@pytest.mark.parametrize(
    ("task", "name", "weighted"),
    crossed([(task, name) for task, names in TASKS.items() for name in names], [False, True]),
)
def test_values_of_rows_have_the_mean_and_the_error_of_a_score(task: Any, name: str, weighted: bool) -> None:
    """The error of a difference of two scores, beside that of 300 samples of held-out rows, drawn with replacement."""
    rng, n = np.random.default_rng(3), 1500
    y = rng.integers(0, 3 if task == "multiclass" else 2, n).astype(float)
    near = np.clip(y[:, None] == np.arange(3), 0.2, 0.6) if task == "multiclass" else np.clip(y, 0.3, 0.7)
    weight = rng.uniform(0.5, 2.0, n) if weighted else None

    def shares(noise: float) -> np.ndarray:
        p = np.clip(near * np.exp(noise * rng.normal(size=near.shape)), 0.01, 0.99)
        return p / p.sum(axis=1, keepdims=True) if p.ndim == 2 else p

    def scored(rows: Any, p: np.ndarray) -> float:
        held_out = Data(task, None, y, None, y[rows], weight_test=None if weight is None else weight[rows])
        return score(held_out, p[rows])[name]

    a, b = shares(0.5), shares(0.3)
    data = Data(task, None, y, None, y, weight_test=weight)
    ours, theirs = (by_row(data, p, name) for p in (a, b))
    assert ours.mean() == pytest.approx(scored(slice(None), a))
    draws = [rng.integers(0, n, n) for _ in range(300)]
    expected = np.std([scored(rows, a) - scored(rows, b) for rows in draws])
    assert (ours - theirs).std() / np.sqrt(n) == pytest.approx(expected, rel=0.15)


def test_a_verdict_stays_by_the_rule_with_the_error_beside_it(tmp_path: Path) -> None:
    rng = np.random.default_rng(0)
    hard = rng.uniform(0.0, 1.0, 500)
    suite = Suite("s", "a suite", "quality", (CASE,), 1)
    values = {"gpuboost": hard + 0.02, "xgboost": hard + 0.1 * rng.normal(size=500), "lightgbm": hard + 0.5}
    rows = []
    for peer, of_rows in values.items():
        np.save(tmp_path / f"{peer}.npy", of_rows)
        beside = results.beside_ours(tmp_path, peer)
        rows.append(run_of(peer, 0, 1.0, scores={"logloss": float(of_rows.mean())}, **beside))
    assert "ours_less" not in rows[0]
    assert rows[1]["ours_less"]["standard_error"] == pytest.approx(0.1 / np.sqrt(500), rel=0.1)
    found = results.lines(rows, CASE)
    error = results.error_of_shortfall(CASE, found)
    assert error == pytest.approx(rows[1]["ours_less"]["standard_error"] / values["xgboost"].mean())
    assert verdict(suite, CASE, found).startswith(
        f"[red]worse {results.shortfall(CASE, found):+.2%}[/red] ± {error:.2%}"
    )
    assert results.beside_ours(tmp_path, "catboost") == {}


def test_a_results_file_keeps_the_cases_that_were_not_run_again(tmp_path: Path) -> None:
    other = Case("d", "another", synthetic.higgs_like, {}, Setting(trees=3))
    suite = Suite("s", "a suite", "speed", (CASE, other), 1)
    path = tmp_path / "new" / "s.json"
    results.write(path, suite, "full", 2, "first", [run_of("gpuboost", 0, 1.0)])
    results.write(path, suite, "full", 2, "second", [run_of("gpuboost", 0, 1.0, case="d")])
    kept = json.loads(path.read_text())
    assert [(run["case"], run["command"]) for run in kept["runs"]] == [("c", "first"), ("d", "second")]
    results.write(path, suite, "small", 2, "third", [run_of("gpuboost", 0, 1.0, case="d")])
    assert [run["case"] for run in json.loads(path.read_text())["runs"]] == ["d"]


def test_a_folder_for_results_is_named_by_device_and_suite(tmp_path: Path) -> None:
    path = results.destination(f"{tmp_path}/", suites()["cpu-speed"])
    assert path.name == "cpu_speed.json"
    assert path.parent.name.startswith("cpu-")
    assert results.destination("x.json", SUITE) == Path("x.json")


def test_rows_are_held_out_by_splitmix64() -> None:
    def splitmix64(i: int) -> int:
        mask = 2**64 - 1
        z = (i + 0x9E3779B97F4A7C15) & mask
        z = ((z ^ (z >> 30)) * 0xBF58476D1CE4E5B9) & mask
        z = ((z ^ (z >> 27)) * 0x94D049BB133111EB) & mask
        return z ^ (z >> 31)

    out, hashes = real.held_out(100)
    assert [int(h) for h in hashes] == [splitmix64(i + 42) for i in range(100)]
    assert out.tolist() == [splitmix64(i + 42) % 5 == 0 for i in range(100)]


@pytest.mark.parametrize(
    ("make", "arguments", "shape"),
    [
        (synthetic.higgs_like, {}, (300, 28)),
        (synthetic.year_like, {}, (300, 90)),
        (synthetic.one_hot, {}, (300, 123)),
        (synthetic.text_like, {"d": 500}, (300, 500)),
    ],
)
def test_synthetic_data_comes_back_from_the_store_as_it_was_made(
    make: Any, arguments: dict[str, int], shape: tuple[int, int], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("GPUBOOST_BENCH_CACHE", str(tmp_path))
    case = Case("c", "", make, {"n": 300, "n_test": 50, "seed": 3, **arguments}, Setting(trees=1))
    made, stored = make(**case.arguments), load(prepared(case))
    assert stored.X.shape == shape
    assert prepared(case) == next(tmp_path.iterdir())  # made once
    for name in ("X", "X_test"):
        a, b = getattr(made, name), getattr(stored, name)
        np.testing.assert_array_equal(*(m.toarray() if hasattr(m, "toarray") else m for m in (a, b)))
        assert a.dtype == b.dtype
    np.testing.assert_array_equal(made.y, stored.y)
    if made.task == "binary":
        assert 0.1 < stored.y.mean() < 0.9


def test_frames_keep_their_categories_and_missing_values(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    pd = pytest.importorskip("pandas")
    monkeypatch.setenv("GPUBOOST_BENCH_CACHE", str(tmp_path))
    frame = pd.DataFrame({"size": [1.5, np.nan, 3.0], "colour": pd.Categorical(["red", None, "blue"])})
    data = Data("regression", frame, np.arange(3.0), frame[:1], np.zeros(1), np.ones(3))
    stored = load(prepared(Case("c", "", lambda: data, {}, Setting(trees=1))))
    pd.testing.assert_frame_equal(stored.X, frame)
    pd.testing.assert_frame_equal(stored.X_test, frame[:1])
    np.testing.assert_array_equal(stored.weight, np.ones(3))
    assert stored.weight_test is None


def test_real_sets_say_what_is_missing(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.delenv("GPUBOOST_DATA", raising=False)
    with pytest.raises(InputError, match="GPUBOOST_DATA: must name"):
        real.adult()
    monkeypatch.setenv("GPUBOOST_DATA", str(tmp_path))
    with pytest.raises(InputError, match=r"has no a9a/a9a, packed"):
        real.a9a()


@pytest.mark.parametrize(("make", "rows", "columns"), [(real.a9a, 32_561, 124), (real.higgs7k, 7_000, 28)])
def test_real_sets_have_their_known_size(make: Any, rows: int, columns: int, data_dir: Path) -> None:
    data = make()
    assert data.X.shape == (rows, columns)
    assert set(np.unique(data.y)) == {0, 1}


def test_scores_by_hand() -> None:
    y, p = np.array([0.0, 1.0]), np.array([0.5, 0.25])
    found = score(Data("binary", None, y, None, y), p)
    assert found == pytest.approx({"logloss": (np.log(2) + np.log(4)) / 2, "auc": 0.0, "accuracy": 0.0})
    found = score(Data("regression", None, y, None, y), np.array([1.0, 1.0]))
    assert found == pytest.approx({"rmse": np.sqrt(0.5), "mae": 0.5})
    found = score(Data("poisson", None, y, None, y, weight_test=np.array([1.0, 3.0])), np.array([1.0, 1.0]))
    assert found == pytest.approx({"deviance": 0.5})
    shares = np.array([[0.5, 0.25, 0.25], [0.1, 0.8, 0.1]])
    found = score(Data("multiclass", None, y, None, y), shares)
    assert found == pytest.approx({"logloss": -(np.log(0.5) + np.log(0.8)) / 2, "accuracy": 1.0})


def test_memory_is_counted_above_what_was_resident() -> None:
    clock = Clock()
    clock.ready()
    with clock.phase("big"), mmap.mmap(-1, 40 << 20) as pages:  # not of memory that was freed, and stayed resident
        pages[::4096] = bytes(len(pages) // 4096)
    with clock.phase("small"):
        np.ones(2**10)
    assert 35 < clock.phases["big"]["peak_mb"] < 80
    assert clock.phases["small"]["peak_mb"] < 20


def test_every_suite_has_cases_and_known_targets() -> None:
    for suite in suites().values():
        names = [case.name for case in suite.cases]
        assert len(set(names)) == len(names) > 0
        assert all(set(case.targets) <= set(results.MEASURES) for case in suite.cases)
    assert {"quality", "cpu-speed"} <= set(suites())


def test_list(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["bench", "--list"]) == 0
    shown = capsys.readouterr().out
    assert "cpu-speed" in shown
    assert "leafwise" in shown


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (["bench"], "SUITE: none was named; the suites are"),
        (["bench", "gpu"], "there is none called 'gpu'"),
        (["bench", "cpu-speed", "--case", "nothing"], "--case: cpu-speed has no case 'nothing'"),
        (["bench", "cpu-speed", "--peer", "nobody"], "--peer: cpu-speed has none called 'nobody'"),
    ],
)
def test_a_wrong_bench_command_says_what_there_is(
    arguments: list[str], words: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(arguments) == 2
    assert words in capsys.readouterr().err


@pytest.mark.slow
def test_a_small_run_of_quality_says_what_a_difference_means(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, data_dir: Path
) -> None:
    monkeypatch.setenv("GPUBOOST_BENCH_CACHE", str(tmp_path / "cache"))
    arguments = ["bench", "quality", "--size", "small", "--case", "higgs7k", "--peer", "sklearn", "--threads", "1"]
    assert main([*arguments, "--wait", "0", "--json", str(tmp_path / "runs.json")]) == 0
    ours, theirs = json.loads((tmp_path / "runs.json").read_text())["runs"]
    less = ours["scores"]["logloss"] - theirs["scores"]["logloss"]
    assert theirs["ours_less"]["difference"] == pytest.approx(less)
    assert 0.0 < theirs["ours_less"]["standard_error"] < 0.1


@pytest.mark.slow
@pytest.mark.long
def test_a_small_run_from_end_to_end(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("GPUBOOST_BENCH_CACHE", str(tmp_path / "cache"))
    arguments = ["bench", "cpu-speed", "--size", "small", "--case", "one-hot", "--peer", "sklearn", "--threads", "2"]
    files = ["--json", str(tmp_path / "runs.json"), "--plot", str(tmp_path / "runs.png")]
    assert main([*arguments, "--repeats", "2", "--wait", "0", *files]) == 0
    kept = json.loads((tmp_path / "runs.json").read_text())
    assert [(run["peer"], run["repeat"]) for run in kept["runs"]] == [
        ("gpuboost", 0),
        ("sklearn", 0),
        ("sklearn", 1),
        ("gpuboost", 1),
    ]
    assert kept["machine"]["versions"]["gpuboosting"]
    assert all(run["scores"]["auc"] > 0.7 for run in kept["runs"])
    assert (tmp_path / "runs.png").stat().st_size > 1000
    assert "fit x" in capsys.readouterr().out
