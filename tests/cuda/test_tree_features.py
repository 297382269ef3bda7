"""The candidate features of a tree that the device draws, and their layout, are those of the host."""

from __future__ import annotations

import numpy as np
import pytest
from emulator import emulated_runtime

from gpuboost.backends.cuda.backend import Cuda
from gpuboost.backends.cuda.trees.arena import Arena, selection_of
from gpuboost.backends.cuda.trees.plan import ArenaPlan
from gpuboost.backends.cuda.trees.subsets import Subsets
from gpuboost.backends.numerics.feature_subsets import subset
from gpuboost.keys import Key, Stream
from gpuboost.learners.groups import MOST_REPEATED, GroupDraw, RandomGroups
from gpuboost.learners.partition import Partition
from gpuboost.types import Candidates, Cuts, Limits


@pytest.mark.parametrize("d", [1, 4, 5, 8, 9, 16, 17, 33, 64, 70, 300, 9_001])  # tiles of 4 to 64 columns
@pytest.mark.parametrize("share", [0.0, 0.3, 0.9])
def test_the_draw_is_that_of_the_host(d: int, share: float) -> None:
    rng, runtime, count = np.random.default_rng(d), emulated_runtime(), max(1, int(share * d))
    cuts = Cuts(tuple(np.arange(float(bins)) for bins in rng.integers(0, 60, d)), (None,) * d)
    arena = Arena(runtime, ArenaPlan.of(10, cuts, Limits(4, 2), runtime, count), cuts)
    rounds = Cuda(runtime)._rounds
    subsets = Subsets(runtime, rounds)
    for number in range(3):  # what the draws before have left is not read
        key = Key.root(d) / Stream.LEARNERS / number
        features = subset(count, d, key)
        rounds.call(Subsets.draw, subsets, subsets.drawn(Candidates(features, by_tree=(count, key))), arena, count)
        expected = selection_of(features, cuts.n_bins, arena.plan)
        tiles, plan = expected[1], arena.plan
        drawn = {name: runtime.download(array) for name, array in arena.laid_out.items()}
        assert drawn["selection"].tolist() == expected[:4].tolist()
        assert drawn["features"][:count].tolist() == features.tolist()
        assert drawn["places"][:count].tolist() == expected[4 + d : 4 + d + count].tolist()
        for i, (name, words) in enumerate((("tiles", 1), ("tile_cells", 1), ("tile_columns", 2))):
            begin, length = 4 + 2 * d + i * plan.tiles, words * tiles
            assert drawn[name][:length].view(np.int32).tolist() == expected[begin : begin + length].tolist()


def test_among_more_features_than_shared_memory_holds_the_host_draws() -> None:
    for d in (MOST_REPEATED, MOST_REPEATED + 1):
        rule = GroupDraw(RandomGroups(3), Partition(d))
        assert rule.repeatable == (d == MOST_REPEATED)
        assert (rule.draw(d, Key.root(1)).by_tree is not None) == rule.repeatable
        assert len(rule.draw(d, Key.root(1)).features) == 3
