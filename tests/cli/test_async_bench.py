"""The suite on asynchronous boosting: one small run of each kind of case, from end to end."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from gpuboost.benchmarks.harness.experiments import Options
from gpuboost.benchmarks.suites import async_shapes, async_threads
from gpuboost.cli import main


def small(case: str, folder: Path) -> dict:
    path = folder / "found.json"
    given = ["bench", "async", "--case", case, "--size", "small", "--threads", "1", "--json", str(path)]
    assert main(given) == 0
    return json.loads(path.read_text())["parts"][case]


@pytest.mark.slow
def test_curves_say_who_finds_the_leaf_values(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    found = small("higgs", tmp_path)
    assert "simulated" in capsys.readouterr().out
    assert [row[1:3] for row in found["rows"][:3]] == [["1", "server"], ["4", "server"], ["4", "worker"]]
    assert {row[-1] for row in found["rows"] if row[2] == "server"} == {"0"}  # never rises
    for row in found["rows"]:
        curve = found["numbers"][f"{row[0]}, {row[1]}, {row[2]}"]
        assert len(curve["train"]) == len(curve["test"]) == async_shapes.SMALL["higgs"].trees


@pytest.mark.slow
def test_times_are_measured_and_speed_up_is_simulated(tmp_path: Path) -> None:
    found = small("times", tmp_path)
    for row, numbers in zip(found["rows"], found["numbers"].values(), strict=True):
        saturation = numbers["saturation"]
        speeds = [float(cell) for cell in row[5:]]
        assert all(t > 0.0 for t in numbers["build"] + numbers["server"])
        for workers, speed in zip((4, 8, 16, 32), speeds, strict=True):
            assert 0.7 * min(workers, saturation) < speed < 1.2 * min(workers, saturation)


@pytest.mark.slow
def test_many_workers_lose_little_to_one(tmp_path: Path) -> None:
    found = small("cluster", tmp_path)
    assert [row[0].split()[1] for row in found["rows"]] == ["real-sim-shaped", "E2006-shaped", "higgs-shaped"]
    for row, numbers in zip(found["rows"], found["numbers"].values(), strict=True):
        assert len(numbers["one"]) == len(numbers["many"]) == 30
        assert float(row[3]) == pytest.approx(numbers["speed-up"], abs=0.06)
        assert row[6] == f"{numbers['many'][-1] / numbers['one'][-1] - 1.0:+.2%}"
        assert row[7] == "0"  # never rises


@pytest.mark.slow  # three processes, each with data and kernels of its own
def test_threads_and_processes_take_turns() -> None:
    found = async_threads.threads(Options(True, (), 2, 2, lambda _: None))
    assert set(found.numbers) == {"one process, one worker", "2 processes", "2 threads"}
    assert all(len(rates) == 2 and min(rates) > 0.0 for rates in found.numbers.values())
    assert [row[3] for row in found.rows][1] == "1.00"
    assert all(float(row[4]) > 0.0 for row in found.rows)
