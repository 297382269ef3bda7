"""The suite on Ray: one small run of two of its cases from end to end."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from gpuboost.benchmarks.suites import cluster
from gpuboost.cli import main
from gpuboost.errors import InputError


def test_without_ray_it_says_what_to_install(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(cluster, "find_spec", lambda _: None)
    with pytest.raises(InputError, match="pip install"), cluster._ray(1):
        raise AssertionError("it went on")


@pytest.mark.slow
def test_a_small_run_from_end_to_end(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    pytest.importorskip("ray")
    path = tmp_path / "found.json"
    cases = ["--case", "overhead", "--case", "recovery"]
    assert main(["bench", "ray", *cases, "--size", "small", "--threads", "1", "--json", str(path)]) == 0
    found = json.loads(path.read_text())["parts"]
    assert set(found["overhead"]["numbers"]) == {"1000", "100000"}
    run = found["recovery"]["numbers"]["runs"][0]
    assert 0.0 < run["noticed"] < run["replaced"]
    assert "first tree of the fresh one" in capsys.readouterr().out
