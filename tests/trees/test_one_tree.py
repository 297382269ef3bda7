"""One tree for several outputs on the CPU: the bytes of the definition, for any data, limits and threads."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from support.builders import random_case

from gpuboost import losses
from gpuboost.backends.cpu.backend import Cpu
from gpuboost.backends.reference.backend import Reference
from gpuboost.kernels.histograms.histogram import TILE
from gpuboost.testing.cases import Case, node_bytes
from gpuboost.testing.verbs import KEY, varied_scores
from gpuboost.types import Candidates, Gradients, Limits, Target

MACHINES = Cpu(1), Cpu(3)


def gradients_of(case: Case, outputs: int, rng: np.random.Generator) -> Gradients:
    """Random ones, of which half are 0 in some cases, as those of rows that a loss has done with."""
    made = Reference().gradients(losses.SquaredError(), varied_scores(Reference(), case.data, 1), case.data, None)
    shape = outputs, case.data.n_rows
    g, h = rng.normal(size=shape).astype(np.float32), rng.random(shape).astype(np.float32)
    if rng.random() < 0.3:
        g[rng.random(shape) < 0.5] = 0.0
        h[rng.random(shape) < 0.5] = 0.0
    return replace(made, g=g, h=h, multiplicity=case.data.multiplicity)


def check(case: Case, gradients: Gradients, candidates: Candidates, limits: Limits) -> None:
    target = Target(3, None, gradients)
    expected = Reference().grow_together(case.data, target, gradients, candidates, limits)
    for machine in MACHINES:
        grown = machine.grow_together(case.data, target, gradients, candidates, limits)
        for ours, theirs in zip(grown, expected, strict=True):
            assert node_bytes(ours.nodes) == node_bytes(theirs.nodes)
            assert ours.leaf_of_row is not None
            assert np.array_equal(ours.leaf_of_row, theirs.leaf_of_row)


@pytest.mark.parametrize("growth", ["depthwise", "leafwise"])
@pytest.mark.parametrize("outputs", [1, 3, 4, 9])
def test_trees_are_those_of_the_definition(growth: str, outputs: int) -> None:
    for seed in range(12):
        rng = np.random.default_rng([seed, outputs])
        n, d = int(rng.choice([1, 2, 30, 300, 300])), int(rng.integers(1, 9))
        case = random_case(
            seed, n, d, most_cuts=int(rng.choice([1, 5, 60, 254])), missing=float(rng.choice([0.0, 0.3])),
            weights=str(rng.choice(["none", "whole"])),
        )  # fmt: skip
        limits = Limits(
            int(rng.choice([2, 8, 200])), int(rng.integers(1, 8)), int(rng.choice([1, 3])),
            min_child_weight=float(rng.choice([0.0, 1.0])), reg_lambda=float(rng.choice([0.0, 1.0])), growth=growth,
        )  # fmt: skip
        features = np.arange(d, dtype=np.int32)
        by_node = None if rng.random() < 0.7 else (max(1, d // 2), KEY)
        check(case, gradients_of(case, outputs, rng), Candidates(features, by_node=by_node), limits)


def test_nodes_of_more_rows_than_packed_sums_hold() -> None:
    """The root and one of its children; the others are packed."""
    rng, n = np.random.default_rng(3), 2 * TILE + 5_000
    case = random_case(3, n, 3, most_cuts=12, missing=0.2)
    check(case, gradients_of(case, 2, rng), Candidates(np.arange(3, dtype=np.int32)), Limits(6, 3, 2))
