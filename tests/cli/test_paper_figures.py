"""Pictures of the suites, drawn from stored results."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from gpuboost.benchmarks.harness import pictures
from gpuboost.benchmarks.harness.experiments import Finding
from gpuboost.cli import main

pytest.importorskip("rich")
pytest.importorskip("matplotlib")
RESULTS = Path(__file__).parents[2] / "benchmarks" / "results"


@pytest.mark.parametrize(("suite", "case"), [("sglb", "table-1"), ("async", "times")])
def test_stored_results_are_shown_and_drawn(
    suite: str, case: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    stored = RESULTS / "cpu-intel-xeon-processor-2-cores" / f"{suite}.json"
    document = json.loads(stored.read_text())
    one = tmp_path / f"{suite}.json"
    one.write_text(json.dumps({**document, "parts": {case: document["parts"][case]}}))
    assert main(["bench", suite, "--stored", str(one), "--plot", f"{tmp_path}/"]) == 0
    picture = (tmp_path / f"{suite}.svg").read_text()
    assert picture.count("<path") > 10
    assert document["parts"][case]["rows"][0][0] in capsys.readouterr().out


@pytest.mark.slow
def test_the_theory_of_rgbm_is_computed_and_drawn(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    picture = tmp_path / "theory.png"
    assert main(["bench", "rgbm", "--case", "theory", "--threads", "1", "--plot", str(picture)]) == 0
    assert picture.stat().st_size > 10_000
    assert "cos²(π / 2K) = 0.9330" in capsys.readouterr().out


def test_what_is_no_file_of_the_suite_is_refused(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    other = RESULTS / "cpu-intel-xeon-processor-2-cores" / "async.json"
    assert main(["bench", "smart", "--stored", str(other)]) == 2
    assert "--stored:" in capsys.readouterr().err
    assert main(["bench", "smart", "--stored", str(tmp_path / "none.json")]) == 2
    assert "is no file of results" in capsys.readouterr().err
    assert main(["bench", "cpu-speed", "--stored", str(other)]) == 2
    assert "is no file of runs" in capsys.readouterr().err
    runs = RESULTS / "cpu-intel-xeon-processor-2-cores" / "cpu_speed.json"
    assert main(["bench", "quality", "--stored", str(runs)]) == 2
    assert "has results of 'cpu-speed'; the suite is 'quality'" in capsys.readouterr().err
    assert main(["bench", "cpu-speed", "--stored", str(runs), "--case", "nothing"]) == 2
    assert "has no case 'nothing'" in capsys.readouterr().err


def test_tables_without_a_picture_of_their_own_are_drawn_by_their_first_numbers(tmp_path: Path) -> None:
    search = RESULTS / "cpu-amd-epyc-2-cores" / "search.json"
    assert main(["bench", "search", "--stored", str(search), "--plot", f"{tmp_path / 'a.svg'}"]) == 0
    text = (tmp_path / "a.svg").read_text()
    for word in ("seconds", "medium", *(row[0] for row in json.loads(search.read_text())["parts"]["small"]["rows"])):
        assert f">{word}</text>" in text, word


def test_marked_cells_and_equal_labels_have_points_of_their_own() -> None:
    table = Finding("t", ("what", "of", "s"), (("a", "", "[green]1,250.5[/] late"), ("a", "", "-2e3"), ("b", "", "")))
    assert pictures._of_first_column(table) == ("s", {"a (1)": 1250.5, "a (2)": -2000.0})
    assert pictures._of_last_row(Finding("t", ("set", "score", "x"), (("s", "rmse", "3.5 (+1%)"),))) == (
        "s",
        {"x": 3.5},
    )


def test_runs_of_a_suite_are_shown_and_drawn(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    ranking = RESULTS / "cpu-intel-xeon-processor-2-cores" / "ranking.json"
    picture = tmp_path / "ranking.svg"
    assert main(["bench", "ranking", "--stored", str(ranking), "--case", "letor", "--plot", str(picture)]) == 0
    assert "letor" in capsys.readouterr().out
    assert ">lightgbm</text>" in picture.read_text()


def test_each_file_of_results_has_its_picture() -> None:
    files = sorted(RESULTS.glob("*/*.json"))
    assert len(files) > 15
    assert [file.name for file in files if not file.with_suffix(".svg").exists()] == []


@pytest.mark.slow
@pytest.mark.parametrize("suite", ["smart", "functional", "async", "rgbm"])
def test_every_part_of_stored_results_is_drawn(suite: str, tmp_path: Path) -> None:
    stored = RESULTS / "cpu-intel-xeon-processor-2-cores" / f"{suite}.json"
    picture = tmp_path / "all.png"
    assert main(["bench", suite, "--stored", str(stored), "--plot", str(picture)]) == 0
    assert picture.stat().st_size > 30_000


@pytest.mark.slow
@pytest.mark.parametrize(("suite", "case"), [("sglb", "ranking"), ("async", "paper"), ("async", "tiny")])
def test_small_runs_of_new_parts(suite: str, case: str, tmp_path: Path) -> None:
    path, picture = tmp_path / "found.json", tmp_path / "found.svg"
    command = ["bench", suite, "--size", "small", "--case", case, "--threads", "1", "--scale", "0.05"]
    assert main([*command, "--json", str(path), "--plot", str(picture)]) == 0
    assert json.loads(path.read_text())["parts"][case]["rows"]
    assert picture.stat().st_size > 10_000
