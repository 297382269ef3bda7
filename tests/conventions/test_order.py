"""The order in which tests run."""

from __future__ import annotations

from pathlib import Path
from types import SimpleNamespace
from typing import Any, cast

import pytest
from support.order import long_ones_first


def items(kinds: str) -> list[pytest.Item]:
    """A test for each letter, upper case for long ones; its file is named by the letter."""

    def made(kind: str) -> Any:
        return SimpleNamespace(path=Path(kind), get_closest_marker=lambda name: name == "long" and kind.isupper())

    return [made(kind) for kind in kinds]


@pytest.mark.parametrize(
    ("given", "workers", "ordered"),
    [
        ("abAcBBdC", 1, "BBACabcd"),
        ("abAcBBdC", 2, "BBabACcd"),
        ("abAcBBdCe", 3, "BBaAbcCde"),
        ("abcd", 3, "abcd"),
        ("AAAb", 2, "AAAb"),
        ("", 2, ""),
    ],
)
def test_long_tests_begin_each_workers_share(given: str, workers: int, ordered: str) -> None:
    found = long_ones_first(items(given), workers)
    assert "".join(str(cast(Any, item).path) for item in found) == ordered
