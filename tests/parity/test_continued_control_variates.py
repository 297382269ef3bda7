"""A continued ensemble with control variates: every machine restores the memory of the last rounds from the trees."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from emulator import emulated_runtime
from support.builders import TEAMS, model_bytes, random_case

from gpuboost import losses
from gpuboost.backends.cuda.backend import Cuda
from gpuboost.backends.cuda.trees.tree_ring import DeviceTree
from gpuboost.backends.protocol import Backend
from gpuboost.backends.reference.backend import Reference
from gpuboost.boosting import boost
from gpuboost.growth import DepthWise
from gpuboost.recipe import Recipe
from gpuboost.sampling import ImportanceSampling
from gpuboost.types import Limits, Structure


@pytest.mark.parametrize("control", ["previous_leaf", "node"])
@pytest.mark.parametrize(("loss", "target", "lag"), [(losses.SquaredError(), "real", 1), (losses.Softmax(3), "3", 2)])
def test_continued_equals_uninterrupted_on_every_machine(
    control: str, loss: losses.Loss, target: str, lag: int
) -> None:
    data = random_case(3, 150, 4, target=target, weights="whole").data
    sampling = ImportanceSampling(0.4, variance_control=control, lag=lag)
    recipe = Recipe(loss, 3, sampling=sampling, growth=DepthWise(Limits(8, 3)))
    expected = model_bytes(boost(replace(recipe, rounds=5), data, Reference(), seed=7))
    for backend in (Reference(), TEAMS[2], Cuda(emulated_runtime())):
        half = boost(recipe, data, backend, seed=7)
        whole = boost(replace(recipe, rounds=2), data, backend, seed=7, resume=half)
        assert model_bytes(whole) == expected


def test_leaf_values_of_a_structure_of_the_host_are_those_of_the_cpu() -> None:
    data = random_case(5, 150, 4, target="binary", weights="real").data
    loss, limits = losses.Logistic(), Limits(8, 3)
    tree = boost(Recipe(loss, 1, growth=DepthWise(limits)), data, Reference()).trees[0]
    structure = Structure(tree.nodes, tree.output, 0, None, None)

    def values(backend: Backend) -> tuple[bytes, bytes, list[int]]:
        gradients = backend.gradients(loss, backend.start(data, np.ones(1)), data, None)
        valued, leaf_of_row = backend.leaf_values(structure, gradients, data, limits, 0)
        if isinstance(valued, DeviceTree):
            valued.ring.collect()
            valued, leaf_of_row = valued.fetched, backend.to_host(leaf_of_row.leaf_of_row)  # type: ignore[attr-defined]
        return valued.value.tobytes(), valued.nodes.cover.tobytes(), list(leaf_of_row)

    assert values(Cuda(emulated_runtime())) == values(TEAMS[2]) == values(Reference())
