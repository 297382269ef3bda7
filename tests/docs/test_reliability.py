"""Every promise of docs/reliability.md names tests that are there."""

from __future__ import annotations

import re
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
PAGE = (ROOT / "docs" / "reliability.md").read_text(encoding="utf-8")


def test_the_tests_that_hold_a_promise_are_there() -> None:
    defined: dict[str, set[str]] = {}
    for path in (ROOT / "tests").glob("*/test_*.py"):
        names = re.findall(r"^def (test_\w+)", path.read_text(encoding="utf-8"), re.MULTILINE)
        defined[path.relative_to(ROOT).as_posix()] = set(names)
    named = set(re.findall(r"`(test_\w+)`", PAGE))
    assert len(named) > 25
    assert not named - set().union(*defined.values())
    files = set(re.findall(r"`(tests/[\w/]+\.py)`", PAGE))
    assert not {path for path in files if not (ROOT / path).exists()}


def test_there_are_twelve_faults_and_three_engines() -> None:
    rows = [line for line in PAGE.splitlines() if re.match(r"\| \d+\. ", line)]
    assert [int(row.split(".")[0][2:]) for row in rows] == list(range(1, 13))
    assert all(len([cell for cell in row.split(" | ") if cell.strip(" |")]) == 4 for row in rows)
