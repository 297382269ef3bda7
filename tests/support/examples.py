"""Fewer examples of a property in everyday runs: 15 % of what is drawn, and a part of what is crossed.

Slow tests have more of what is crossed, and thorough ones the rest.
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import chain, product
from typing import Any

import pytest
from hypothesis import settings

MOST = 8  # combinations of crossed parameters in everyday runs
FULL = 100  # examples of a test that names no number, in a profile that draws them all
FEWEST = 6
THOROUGH = (pytest.mark.slow, pytest.mark.thorough)  # what ``.ci/run`` leaves to ``.ci/run thorough``


def examples(count: int) -> int:
    """The share of ``count`` that the profile draws: see tests/conftest.py."""
    return max(min(count, FEWEST), count * settings.default.max_examples // FULL)


def examples_of(values: Sequence[Any], at_least: int) -> Sequence[Any]:
    """The first of the values: the share that the profile draws, but so many at least."""
    return values[: max(at_least, len(values) * settings.default.max_examples // FULL)]


def daily(values: Sequence[Any], first: int) -> list[Any]:
    """The values of a parameter, for ``parametrize``: the first ones every day, the others marked slow."""
    return [*values[:first], *(pytest.param(value, marks=pytest.mark.slow) for value in values[first:])]


def crossed(*axes: Sequence[Any], most: int = MOST) -> list[Any]:
    """Every combination of the values of some parameters, for ``parametrize``.

    Everyday runs have as few of them as hold each value, or the first ``most`` of these. Slow tests have the others of
    these, and half of all others, which hold every two values of different parameters if there are at least three of
    these. A value that is a tuple stands for several parameters.
    """
    each = [tuple(i % len(axis) for axis in axes) for i in range(max(map(len, axes)))]
    everyday, never_left_out = set(each[:most]), set(each)
    made = []
    for places in product(*(range(len(axis)) for axis in axes)):
        values = [axis[place] for axis, place in zip(axes, places, strict=True)]
        parts = [value if isinstance(value, tuple) else (value,) for value in values]
        later = pytest.mark.slow if places in never_left_out or sum(places) % 2 else THOROUGH
        marks = () if places in everyday else later
        made.append(pytest.param(*chain(*parts), marks=marks))
    return made
