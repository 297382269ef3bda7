"""Rules of an asynchronous run that hold for every engine: staleness, gradients of leaf values, failures."""

from __future__ import annotations

from abc import ABC
from collections.abc import Iterable
from dataclasses import field
from numbers import Integral
from typing import Any

from gpuboost.arguments import is_one_of, is_real
from gpuboost.errors import RecipeError
from gpuboost.records import dataclass

LEAF_VALUES = ("server", "worker")
SAMPLE_AT = ("pull", "version")
STALENESS = ("apply", "damp", "drop", "block")


@dataclass(frozen=True, slots=True)
class Rules(ABC):
    """The parameters that asynchronous executions share; see ``Asynchronous``."""

    workers: int  # all of these may be anything before they are checked
    leaf_values: str = field(default="server", kw_only=True)
    sample_at: str = field(default="pull", kw_only=True)
    staleness: str = field(default="apply", kw_only=True)
    max_staleness: int | None = field(default=None, kw_only=True)
    damping: float = field(default=1.0, kw_only=True)
    max_failures: int = field(default=3, kw_only=True)
    allow_unproven: bool = field(default=False, kw_only=True)

    def __post_init__(self) -> None:
        count("workers", self.workers, 1)
        word("leaf_values", self.leaf_values, LEAF_VALUES)
        word("sample_at", self.sample_at, SAMPLE_AT)
        word("staleness", self.staleness, STALENESS)
        count("max_failures", self.max_failures, 0)
        positive("damping", self.damping)
        if not isinstance(self.allow_unproven, bool):
            raise RecipeError(f"allow_unproven: must be True or False; got {self.allow_unproven!r}.")
        if self.max_staleness is not None:
            count("max_staleness", self.max_staleness, 0)
            if self.staleness == "apply":
                raise RecipeError(
                    f"max_staleness: {self.max_staleness} is a limit, and staleness='apply' knows none. "
                    "Use 'damp', 'drop' or 'block'."
                )
        elif self.staleness in ("drop", "block"):
            raise RecipeError(f"max_staleness: staleness={self.staleness!r} needs a limit; got None.")

    @property
    def in_flight(self) -> int:
        """Largest number of trees being built at once; the last one applied is late by one less."""
        if self.staleness != "block" or self.max_staleness is None:
            return int(self.workers)
        return min(int(self.workers), self.max_staleness + 1)

    def is_too_late(self, staleness: int) -> bool:
        return self.staleness == "drop" and self.max_staleness is not None and staleness > self.max_staleness

    def share(self, staleness: int) -> float:
        """Share of the learning rate for a tree of that staleness."""
        over = staleness - (self.max_staleness or 0)
        return 1.0 / (1.0 + self.damping * over) if self.staleness == "damp" and over > 0 else 1.0

    def may_apply(self, version: int, others: Iterable[int]) -> bool:
        """True if a tree may be added to ``version`` while trees pulled at versions ``others`` are not yet applied.

        With "block", it may if each of the others can then still come in time, one after the other.
        """
        limit = self.max_staleness
        if self.staleness != "block" or limit is None:
            return True
        return all(pulled + limit >= version + 1 + i for i, pulled in enumerate(sorted(others)))


def count(name: str, value: Any, least: int) -> int:
    """The value as an int of at least that, or RecipeError."""
    whole = isinstance(value, Integral) and not isinstance(value, bool)
    if not whole or int(value) < least:
        raise RecipeError(f"{name}: must be an integer of at least {least}; got {value!r}.")
    return int(value)


def positive(name: str, value: Any, *, or_zero: bool = False) -> float:
    """The value as a finite float above 0, or RecipeError."""
    parsed = float(value) if is_real(value) else -1.0
    if parsed < 0.0 or (parsed == 0.0 and not or_zero):
        rule = "a finite number, 0 or more" if or_zero else "a finite number above 0"
        raise RecipeError(f"{name}: must be {rule}; got {value!r}.")
    return parsed


def word(name: str, value: Any, words: tuple[str, ...]) -> None:
    """Raise RecipeError unless the value is one of the options."""
    if not is_one_of(value, words):
        raise RecipeError(f"{name}: must be one of {', '.join(map(repr, words))}; got {value!r}.")
