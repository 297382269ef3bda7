"""docs/papers.md: the files, tests, names and commands in its tables exist."""

from __future__ import annotations

import importlib
import re
from functools import cache
from pathlib import Path
from typing import Any

import pytest

ROOT = Path(__file__).parents[2]
PAGE = ROOT / "docs" / "papers.md"
TEXT = PAGE.read_text(encoding="utf-8")
WORDS = sorted(set(re.findall(r"`([^`]+)`", re.sub(r"```.*?```", "", TEXT, flags=re.DOTALL))))
VERDICTS = ("agrees", "differs", "scaled", "not run", "not built", "nothing to")


@cache
def source(path: str) -> str:
    return (ROOT / path).read_text(encoding="utf-8")


def named(name: str) -> Any:
    """What a dotted name of the package stands for."""
    parts = name.split(".")
    for cut in range(len(parts), 0, -1):
        try:
            found: Any = importlib.import_module(".".join(parts[:cut]))
        except ModuleNotFoundError:
            continue
        for part in parts[cut:]:
            found = getattr(found, part)
        return found
    raise AssertionError(f"{name}: no such module")


def test_paths_and_the_tests_in_them_exist() -> None:
    paths = [word for word in WORDS if word.split("/")[0] in ("gpuboost", "tests", "benchmarks", "kernels", "docs")]
    assert len(paths) > 60
    for word in paths:
        path, _, name = word.partition("::")
        assert (ROOT / path).exists(), word
        if name:
            assert re.search(rf"^(def|class) {name}\b", source(path), flags=re.MULTILINE), word


def test_names_of_the_package_exist() -> None:
    names = [word for word in WORDS if re.fullmatch(r"gpuboost(\.\w+)+", word)]
    assert len(names) > 25
    for name in names:
        assert named(name) is not None, name


def test_commands_name_cases_that_exist() -> None:
    pytest.importorskip("rich")
    from gpuboost.benchmarks.harness.experiments import experiments

    suites, suite = experiments(), ""
    for command in re.findall(r"`((?:gpuboost bench|--case) [^`]+)`", TEXT):
        words = command.split()
        suite = words[2] if words[0] == "gpuboost" else suite
        cases = [words[i + 1] for i, word in enumerate(words) if word == "--case"]
        assert suites[suite].chosen(cases), command


def test_every_item_has_a_verdict() -> None:
    rows = [line for line in TEXT.splitlines() if line.startswith("| ") and "|---" not in line]
    items = [row.strip("| ").split(" | ") for row in rows if not row.startswith("| item")]
    assert len(items) > 60
    for cells in items:
        assert len(cells) == 6, cells[0]
        assert cells[-1].startswith(VERDICTS), cells[0]
