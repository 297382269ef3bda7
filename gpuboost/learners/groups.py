"""Random groups of weak learners: types 2 and 3 of RGBM (Lu and Mazumder 2020, section 1.2).

For trees on binned features all cuts of one feature form the natural group, and features outside the draw cost nothing:
their histograms are never built.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from gpuboost.arguments import is_one_of
from gpuboost.keys import Key
from gpuboost.learners.partition import Partition, labels_of, partition
from gpuboost.learners.selection import check_count, count_of, subset
from gpuboost.records import dataclass
from gpuboost.types import Candidates, Cuts

MOST_REPEATED = 1 << 18  # features that a kernel draws among: it has a bit for each in 32 kB of shared memory


@dataclass(frozen=True, slots=True)
class RandomGroups:
    """Type 3: ``t`` groups, uniformly, without replacement, drawn anew in every round.

    Parameters
    ----------
    t : int or float
        A count of at least 1, or a share of the groups in (0, 1], rounded up.
    groups : "feature", "root", or a label for each column
        Definition of a group: a feature with all its cuts; the trees whose root is split by that feature and which may
        use every feature below it; or the features of one label. For stumps the first two are the same, and the first
        is faster. A feature that is not drawn costs nothing in the first and the last.

    Raises
    ------
    RecipeError
        If t is not a count or a share, groups is none of these, or (as a fit begins) there is not one label for each
        column.
    """

    t: int | float
    groups: Any = "feature"

    def __post_init__(self) -> None:
        check_count(self.t, "features" if is_one_of(self.groups, ("feature",)) else "groups")
        object.__setattr__(self, "groups", labels_of(self.groups))

    def prepared(self, cuts: Cuts, n_groups: int) -> GroupDraw:
        return GroupDraw(self, partition(self.groups, n_groups, cuts))

    def draw(self, n_groups: int, key: Key) -> Candidates:
        return GroupDraw(self, partition(self.groups, n_groups)).draw(n_groups, key)


@dataclass(frozen=True, slots=True)
class RandomGroup:
    """Type 2: one group of a partition, each as likely as any other.

    Parameters
    ----------
    groups : "feature", "root", or a label for each column
        As for ``RandomGroups``, whose draw with t = 1 this is.
    """

    groups: Any = "feature"

    def __post_init__(self) -> None:
        object.__setattr__(self, "groups", labels_of(self.groups))

    def prepared(self, cuts: Cuts, n_groups: int) -> GroupDraw:
        return RandomGroups(1, self.groups).prepared(cuts, n_groups)

    def draw(self, n_groups: int, key: Key) -> Candidates:
        return RandomGroups(1, self.groups).draw(n_groups, key)


@dataclass(frozen=True, slots=True, eq=False)
class GroupDraw:
    """Random draws from a known partition."""

    rule: RandomGroups
    of: Partition

    @property
    def repeatable(self) -> bool:
        """True if what is drawn are features themselves, and not too many for a kernel to draw among."""
        of_features = self.of.group_of is None and is_one_of(self.rule.groups, ("feature",))
        return of_features and self.of.count <= MOST_REPEATED

    def draw(self, n_groups: int, key: Key) -> Candidates:
        count = count_of(self.rule.t, self.of.count)
        drawn = subset(count, self.of.count, key)
        if self.repeatable:
            return Candidates(drawn, by_tree=(count, key) if count < n_groups else None)
        members = self.of.members(drawn)
        return Candidates(members) if self.rule.groups != "root" else at_the_root(members, n_groups)


def at_the_root(members: NDArray[np.int32], n_groups: int) -> Candidates:
    """All features, of which only some may split the root."""
    every = np.arange(n_groups, dtype=np.int32)
    if len(members) == n_groups:
        return Candidates(every)
    cuts = np.zeros((n_groups, 8), np.uint32)
    cuts[members] = 0xFFFF_FFFF
    return Candidates(every, cuts)
