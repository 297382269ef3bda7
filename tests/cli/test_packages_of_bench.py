"""Benchmarks name the packages that they need."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

from gpuboost.cli import main


def test_a_package_that_a_suite_needs(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], data_dir: Path, tmp_path: Path
) -> None:
    monkeypatch.setitem(sys.modules, "pandas", None)
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("GPUBOOST_BENCH_CACHE", str(tmp_path))
    assert main(["bench", "quality", "--case", "adult", "--size", "small", "--wait", "0"]) == 2
    said = capsys.readouterr().err
    assert "SUITE: needs the package pandas, which is not installed; pip install 'gpuboosting[bench]'" in said


def test_a_peer_that_is_not_installed(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    monkeypatch.setattr("gpuboost.benchmarks.harness.peers.installed", lambda name: name != "catboost")
    assert main(["bench", "quality", "--peer", "catboost"]) == 2
    said = capsys.readouterr().err
    assert "--peer: catboost is not installed; pip install 'gpuboosting[bench]' (lightgbm, catboost," in said
    assert "xgboost-cpu" in said
