"""``extra_trees``: one random cut of each feature competes in a node."""

from __future__ import annotations

from dataclasses import replace
from typing import Protocol

from gpuboost.keys import Key
from gpuboost.records import dataclass
from gpuboost.types import Candidates


class CutRule(Protocol):
    """The cuts of a feature that compete in the nodes of a tree."""

    def restrict(self, candidates: Candidates, key: Key) -> Candidates:
        """The candidates with these cuts. key: key of the round."""
        ...


@dataclass(frozen=True, slots=True)
class EveryCut:
    """All cuts compete."""

    def restrict(self, candidates: Candidates, key: Key) -> Candidates:
        return candidates


@dataclass(frozen=True, slots=True)
class RandomCut:
    """One random cut of each feature competes, another one in each node."""

    def restrict(self, candidates: Candidates, key: Key) -> Candidates:
        return replace(candidates, cuts=key)


def cut_rule(extra_trees: bool) -> CutRule:
    """Rule of ``extra_trees``."""
    return RandomCut() if extra_trees else EveryCut()
