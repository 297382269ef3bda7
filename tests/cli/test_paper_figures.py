"""Pictures of the suites that reproduce papers, drawn from stored results."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

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
    assert "--stored: is for" in capsys.readouterr().err


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
