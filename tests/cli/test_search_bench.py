"""The suite of parameter searches."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from gpuboost.benchmarks.suites import search
from gpuboost.cli import main


@pytest.mark.slow
@pytest.mark.parametrize("case", ["small", "rounds"])
def test_scores_of_both_searches_agree(case: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(search, "GRID", {"max_depth": [2, 3], "learning_rate": [0.1, 0.3]})
    asked = ["bench", "search", "--case", case, "--size", "small", "--threads", "1", "--repeats", "1"]
    assert main([*asked, "--json", str(tmp_path / "out.json")]) == 0
    numbers = json.loads((tmp_path / "out.json").read_text())["parts"][case]["numbers"]
    assert numbers["difference"] < 1e-12
    assert set(numbers["seconds"]) == {"gb.search, every setting", "GridSearchCV", f"gb.search, budget={search.BUDGET}"}
