"""The order of tests: long ones begin early, or the last of them would run beside idle processors."""

from __future__ import annotations

from itertools import islice
from pathlib import Path

import pytest


def long_ones_first(items: list[pytest.Item], workers: int) -> list[pytest.Item]:
    """The tests, those marked ``long`` at the begin of the equal shares that ``--dist worksteal`` makes of the list.

    Those of one file stay together, since they use the same compiled modules.
    """
    files: dict[Path, list[pytest.Item]] = {}
    for item in items:
        if item.get_closest_marker("long"):
            files.setdefault(item.path, []).append(item)
    first: list[list[pytest.Item]] = [[] for _ in range(workers)]
    for tests in sorted(files.values(), key=len, reverse=True):
        min(first, key=len).extend(tests)
    others = iter([item for item in items if not item.get_closest_marker("long")])
    ordered: list[pytest.Item] = []
    for worker, tests in enumerate(first):
        share = (len(items) - len(ordered)) // (workers - worker)
        ordered += [*tests, *islice(others, max(share - len(tests), 0))]
    return [*ordered, *others]
