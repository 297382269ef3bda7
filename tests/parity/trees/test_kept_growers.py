"""Trees that grow in the memory of the tree before them: the same bytes as in memory of their own."""

from __future__ import annotations

import numpy as np
import pytest
from support.builders import eager_threads, random_case, random_gradients, sparse, structure_bytes

from gpuboost.backends.cpu.backend import Cpu
from gpuboost.backends.cpu.grower import TreeGrower
from gpuboost.backends.reference.backend import Reference
from gpuboost.keys import Key, Stream
from gpuboost.types import Candidates, ForcedSplit, Interactions, Limits, Noise, Target, TrainingSet

ROWS = 300
LIMITS = {
    "depthwise": Limits(1000, 5),
    "few leaves": Limits(9, 5),
    "leafwise": Limits(12, 40, growth="leafwise"),
    "leafwise, all leaves": Limits(1000, 62, growth="leafwise"),
    "oblivious": Limits(1000, 4, growth="oblivious"),
    "rows": Limits(1000, 5, min_samples_leaf=4),
    "monotone": Limits(1000, 4, directions=(1, 0, 0, -1)),
    "smooth": Limits(1000, 4, path_smooth=5.0),
    "interactions": Limits(1000, 5, interactions=Interactions(((0, 1), (2, 3)))),
    "forced": Limits(1000, 4, forced=ForcedSplit(1, 0.0)),
}


def data_of(seed: int) -> TrainingSet:
    return random_case(seed, ROWS, 4).data


def assert_rounds(machine: Cpu, data: TrainingSet, limits: Limits, rounds: int = 4) -> None:
    """Trees of one machine, one after another, are those of the definition."""
    every, random = Candidates(np.arange(data.cuts.n_features, dtype=np.int32)), np.random.default_rng(3)
    for kind in ["plain", "flat", "ties", "plain"][:rounds]:
        target = Target(0, None, random_gradients(random, ROWS, kind))
        found, expected = (one.grow(data, target, 0, every, limits) for one in (machine, Reference()))
        assert structure_bytes(found) == structure_bytes(expected)


@pytest.mark.parametrize("limits", LIMITS.values(), ids=LIMITS)
@pytest.mark.parametrize("threads", [1, 2])
def test_rounds_of_one_recipe(limits: Limits, threads: int) -> None:
    data, machine = data_of(5), Cpu(threads)
    for bins in (data, sparse(data, seed=1)):
        assert_rounds(machine, bins, limits)
    with eager_threads():
        assert_rounds(Cpu(threads), data, limits)


@pytest.mark.parametrize("drawn", ["cuts", "nodes", "levels", "noise"])
@pytest.mark.parametrize("limits", [LIMITS["depthwise"], LIMITS["leafwise"], LIMITS["oblivious"], LIMITS["rows"]])
@pytest.mark.parametrize("threads", [1, 2])
def test_rounds_that_differ_by_the_streams_of_nodes(drawn: str, limits: Limits, threads: int) -> None:
    data, machine, random = data_of(5), Cpu(threads), np.random.default_rng(3)
    every, d = np.arange(data.cuts.n_features, dtype=np.int32), data.cuts.n_features
    for version in range(4):
        key = Key.root(7) / Stream.LEARNERS / version
        of_nodes = None if drawn in ("cuts", "noise") else (d - 1 - version // 3, key)  # the last one draws fewer
        cuts, noise = (key if drawn == "cuts" else None), (Noise(1.0 + version // 3, key) if drawn == "noise" else None)
        by_level = drawn == "levels" or limits.symmetric
        candidates = Candidates(every, by_node=of_nodes, by_level=by_level, cuts=cuts, noise=noise)
        target = Target(version, None, random_gradients(random, ROWS, "plain"))
        found, expected = (one.grow(data, target, 0, candidates, limits) for one in (machine, Reference()))
        assert structure_bytes(found) == structure_bytes(expected)


def test_the_memory_serves_again_where_only_gradients_differ(monkeypatch: pytest.MonkeyPatch) -> None:
    made: list[int] = []
    init = TreeGrower.__init__
    monkeypatch.setattr(TreeGrower, "__init__", lambda self, *given: made.append(1) or init(self, *given))
    machine, data = Cpu(1), data_of(6)
    assert_rounds(machine, data, LIMITS["depthwise"])
    assert len(made) == 1
    assert_rounds(machine, data, LIMITS["few leaves"])
    assert_rounds(machine, data_of(7), LIMITS["few leaves"])
    assert len(made) == 3


def test_an_error_leaves_nothing_behind() -> None:
    machine, data = Cpu(1), data_of(8)
    every = Candidates(np.arange(data.cuts.n_features, dtype=np.int32))
    good = random_gradients(np.random.default_rng(1), ROWS, "plain")
    expected = structure_bytes(machine.grow(data, Target(0, None, good), 0, every, LIMITS["depthwise"]))
    bad = random_gradients(np.random.default_rng(1), ROWS, "plain")
    bad.g[0, 7] = np.nan
    with pytest.raises(ValueError, match="finite"):
        machine.grow(data, Target(1, None, bad), 0, every, LIMITS["depthwise"])
    again = machine.grow(data, Target(0, None, good), 0, every, LIMITS["depthwise"])
    assert structure_bytes(again) == expected
