"""Definition of extra_trees: of each feature one random cut competes in a node.

    numeric       a cut between the lowest and the highest bin that the node has rows of; where values are missing, also
                  the cut above the highest, and both sides for the missing ones
    categorical   up to 4 categories: one of them against the rest; otherwise a number of the first or the last ones in
                  the order by g / (h + smoothing), up to 32

Every cut of these is as likely as any other. The draw is word 0 of a Philox block, numbered as for ``random_strength``
by the node's exact sums (for a level that shares a split, by its depth) and the feature, in a stream of its own, so it
does not depend on the machine or the order of nodes. For shared splits the bins are those of the level.
"""

from __future__ import annotations

from collections.abc import Sequence

from gpuboost.backends.numerics.random_numbers import philox
from gpuboost.backends.numerics.random_strength import block_of
from gpuboost.keys import Key


def word_of(sums: tuple[int, int], feature: int, key: Key) -> int:
    """The 32 bits that draw the cut of a feature in a node of these exact sums."""
    return int(philox(block_of(sums, feature), key)[0, 0])


def place_of(word: int, count: int) -> int:
    """One of 0 .. count - 1."""
    return word * count >> 32


def random_cut(used: Sequence[int], missing: int, word: int) -> int:
    """The bin below the cut, -1 if there is none. used: bins of a node's rows; ``missing``: that of missing values."""
    values = [c for c in used if c != missing]
    count = values[-1] - values[0] + (missing in used) if values else 0
    return values[0] + place_of(word, count) if count else -1
