"""The nouns of a benchmark: a suite is a list of cases, a case is data, a setting and the peers that can run it."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from importlib import import_module
from pkgutil import iter_modules
from typing import Any, Literal

from gpuboost.errors import InputError

Size = Literal["full", "small"]
Task = Literal["binary", "multiclass", "regression", "poisson", "ranking"]

OURS = "gpuboost"
EVERY_PEER = ("xgboost", "lightgbm", "catboost", "sklearn")


@dataclass(frozen=True)
class Setting:
    """Parameters that are equal for all libraries. ``matched``: also the L2 term (1), bins (255), least curvature (1)
    and rows (1) of a leaf, and no bagging; otherwise the rest is each library's own default."""

    trees: int
    depth: int = 6
    leaves: int | None = None  # given: leaf-wise growth up to so many leaves, whatever the depth
    rate: float = 0.1
    matched: bool = True
    warm_up: bool = True  # fit a few rows first, so that start-up is not timed with the rest


@dataclass(frozen=True)
class Case:
    """One row of tables. ``make(**arguments)`` returns the ``Data``; it must be a function of its arguments alone."""

    name: str
    title: str
    make: Callable[..., Any]
    arguments: Mapping[str, Any]
    setting: Setting
    peers: tuple[str, ...] = EVERY_PEER
    small: Mapping[str, Any] = field(default_factory=dict)  # what replaces ``arguments`` at --size small
    targets: Mapping[str, float] = field(default_factory=dict)  # measure -> most that it may be of the fastest peer's
    verdict: str | None = None  # the score that decides; None for the task's first
    kernels: Literal["shared", "empty", "primed"] = "shared"  # where numba's compiled kernels come from
    rivals: tuple[str, ...] = ("xgboost", "lightgbm")  # the best of them is what our score is held to

    def sized(self, size: Size) -> Case:
        if size == "full":
            return self
        setting = replace(self.setting, trees=min(self.setting.trees, 10), leaves=self.setting.leaves and 31)
        return replace(self, arguments={**self.arguments, **self.small}, setting=setting)


@dataclass(frozen=True)
class Suite:
    """A named list of cases. ``kind`` says which table is printed."""

    name: str
    title: str
    kind: Literal["speed", "quality"]
    cases: tuple[Case, ...]
    repeats: int

    def chosen(self, names: tuple[str, ...]) -> tuple[Case, ...]:
        """The named cases, all of them if none is named. An unknown name is an InputError."""
        known = {case.name: case for case in self.cases}
        for name in names:
            if name not in known:
                raise InputError(f"--case: {self.name} has no case {name!r}; it has {', '.join(known)}.")
        return tuple(known[name] for name in names) or self.cases


def suites() -> dict[str, Suite]:
    """The suites of ``benchmarks/suites``, by name."""
    here = import_module("gpuboost.benchmarks.suites")
    modules = (import_module(f"{here.__name__}.{info.name}") for info in iter_modules(here.__path__))
    all_suites = [module.SUITE for module in modules if hasattr(module, "SUITE")]
    return {suite.name: suite for suite in all_suites}
