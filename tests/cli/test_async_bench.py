"""The suite on asynchronous boosting: one small run of each kind of case, from end to end."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from gpuboost.benchmarks import asynchronous
from gpuboost.cli import main


def small(case: str, folder: Path) -> dict:
    path = folder / "found.json"
    given = ["bench", "async", "--case", case, "--size", "small", "--threads", "1", "--json", str(path)]
    assert main(given) == 0
    return json.loads(path.read_text())["parts"][case]


def test_curves_say_who_finds_the_leaf_values(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    found = small("higgs", tmp_path)
    assert "simulated" in capsys.readouterr().out
    assert [row[1:3] for row in found["rows"][:3]] == [["1", "server"], ["4", "server"], ["4", "worker"]]
    assert {row[-1] for row in found["rows"] if row[2] == "server"} == {"0"}  # never rises
    for row in found["rows"]:
        curve = found["numbers"][f"{row[0]}, {row[1]}, {row[2]}"]
        assert len(curve["train"]) == len(curve["test"]) == asynchronous.SMALL["higgs"].trees


def test_times_are_measured_and_speed_up_is_simulated(tmp_path: Path) -> None:
    found = small("times", tmp_path)
    for row, numbers in zip(found["rows"], found["numbers"].values(), strict=True):
        saturation = numbers["saturation"]
        speeds = [float(cell) for cell in row[5:]]
        assert all(t > 0.0 for t in numbers["build"] + numbers["server"])
        for workers, speed in zip((4, 8, 16, 32), speeds, strict=True):
            assert 0.7 * min(workers, saturation) < speed < 1.2 * min(workers, saturation)


def test_threads_and_processes_are_counted_alike() -> None:
    assert asynchronous._trees_a_second(small=True, processes=1, workers=2) > 0.0
    assert asynchronous._trees_a_second(small=True, processes=2, workers=1) > 0.0
