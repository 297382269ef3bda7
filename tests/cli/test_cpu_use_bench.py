"""The benchmark suite ``cpu-use``: ratios, and a small run of each part."""

from __future__ import annotations

import json
import math
from pathlib import Path

import pytest

from gpuboost.benchmarks.harness import alternation
from gpuboost.cli import main


def test_ratios_are_those_to_the_fastest_peer() -> None:
    found = {"gpuboost": (1.0, 2.0), "xgboost": (4.0, 4.0), "lightgbm": (2.0, 8.0)}
    assert alternation.ratios(found) == (0.5, 0.5)
    assert all(map(math.isnan, alternation.ratios({"gpuboost": (1.0, 2.0)})))


def test_runs_alternate_and_the_first_of_each_is_not_counted() -> None:
    calls: list[str] = []
    runs = {name: lambda name=name: calls.append(name) for name in ("a", "b")}
    found = alternation.alternated(runs, 2, lambda _: None)
    assert calls == ["a", "b"] * 3
    assert set(found) == {"a", "b"}


def ran(tmp_path: Path, *cases: str) -> dict[str, dict[str, object]]:
    path = tmp_path / "found.json"
    words = [word for case in cases for word in ("--case", case)]
    command = ["bench", "cpu-use", "--size", "small", "--threads", "1", "--repeats", "1", "--json", str(path)]
    assert main([*command, *words]) == 0
    parts: dict[str, dict[str, object]] = json.loads(path.read_text())["parts"]
    return parts


def test_a_small_run_without_peers_has_dashes_for_ratios(tmp_path: Path) -> None:
    parts = ran(tmp_path, "fits", "fits-variations", "fits-categories", "latency", "threads")
    for name in ("fits", "fits-variations", "fits-categories", "threads"):
        rows = parts[name]["rows"]
        assert isinstance(rows, list)
        assert all(row[-2:] == ["-", "-"] for row in rows)
    for part in parts.values():
        numbers = part["numbers"]
        assert isinstance(numbers, dict)
        assert all(value > 0 for each in numbers.values() for value in _values(each))


@pytest.mark.slow
def test_a_small_run_of_processes(tmp_path: Path) -> None:
    parts = ran(tmp_path, "many", "first")
    first = parts["first"]["numbers"]
    assert isinstance(first, dict)
    assert {"gpuboost, load_predictor", "gpuboost, load_model"} == set(first["load"])


def _values(each: object) -> list[float]:
    if isinstance(each, dict):
        return [value for inner in each.values() for value in _values(inner)]
    return [float(value) for value in each] if isinstance(each, list) else [float(str(each))]
