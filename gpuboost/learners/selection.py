"""Protocol of selection rules, and the rule that selects all learners."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import lru_cache
from math import ceil
from numbers import Integral, Real
from typing import Any, ClassVar, Protocol

import numpy as np
from numpy.typing import NDArray

from gpuboost.errors import RecipeError
from gpuboost.keys import Key
from gpuboost.records import dataclass, declared
from gpuboost.types import Candidates, Cuts, Ensemble, Structure


@dataclass(frozen=True, slots=True)
class SelectionTraits:
    """Attributes that a selection rule may have, and the values that stand for those that it does not have.

    A rule that depends on more than the number of groups has a method ``prepared(cuts, n_groups)``. It is called once a
    fit, computes all that does not change between rounds, and returns the rule to draw from.
    """

    groups: Any = "feature"  # kind of groups, as in ``RandomGroups``
    prepared: Callable[[Cuts, int], Any] | None = None
    repeatable: bool = False  # True: the draws of rounds differ by the key of ``by_tree`` or ``by_node`` alone
    keeps_gains: bool = False  # True: the prepared rule has ``observe`` and ``recall``, for the gains of past rounds
    observe: Callable[[Sequence[Structure]], None] | None = None  # of a prepared rule: gains of a round's trees
    recall: Callable[[Ensemble], None] | None = None  # of a prepared rule: those of a model to continue


class Selection(Protocol):
    """A rule that selects the weak learners of one tree.

    It may have any of the ``SelectionTraits`` as attributes.
    """

    def draw(self, n_groups: int, key: Key) -> Candidates:
        """Candidates out of ``n_groups`` groups (features, for trees), a function of the key."""
        ...


def prepared(rule: Selection, cuts: Cuts, n_groups: int) -> Selection:
    """The rule, prepared for these data. Raises RecipeError if it does not fit them."""
    prepare = declared(SelectionTraits, rule).prepared
    made: Selection = rule if prepare is None else prepare(cuts, n_groups)
    return made


@dataclass(frozen=True, slots=True)
class AllLearners:
    """Type 0: all groups."""

    repeatable: ClassVar[bool] = True

    def draw(self, n_groups: int, key: Key) -> Candidates:
        return _every(n_groups)


@lru_cache(maxsize=4)  # the same object in every round, so that a backend recognises it by identity
def _every(n_groups: int) -> Candidates:
    return Candidates(np.arange(n_groups, dtype=np.int32))


def check_count(t: Any, of: str) -> None:
    """Raise RecipeError unless t is a count of at least 1 or a share in (0, 1]."""
    number = isinstance(t, Real) and not isinstance(t, bool)
    if not number or not (int(t) >= 1 if isinstance(t, Integral) else 0.0 < float(t) <= 1.0):
        raise RecipeError(f"learners: t must be a count of at least 1, or a share of the {of} in (0, 1]; got {t!r}.")


def count_of(t: Any, of: int) -> int:
    """Number of items out of ``of`` that t, a count or a share (Python or numpy number), stands for; rounded up."""
    # 0.07 * 100 is a little more than 7 in binary, and 7 is what is meant
    return min(int(t), of) if isinstance(t, Integral) else max(ceil(float(t) * of - 1e-9), 1)


def subset(count: int, of: int, key: Key) -> NDArray[np.int32]:
    """(count,) int32 random subset of 0 .. of - 1, uniform over all subsets of that size, increasing."""
    from gpuboost.backends.numerics import (
        feature_subsets as subsets,  # compiled code, imported only for a draw
    )

    return subsets.subset(count, of, key)
