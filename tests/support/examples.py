"""Number of examples of a property: all of them in a thorough run, a quarter in an everyday one."""

from __future__ import annotations

from hypothesis import settings

FULL = 100  # examples of a test that names no number, in a profile that draws them all
FEWEST = 6


def examples(count: int) -> int:
    """The share of ``count`` that the profile draws: see tests/conftest.py."""
    return max(min(count, FEWEST), count * settings.default.max_examples // FULL)
