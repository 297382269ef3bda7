"""A growing model has whole rounds at any moment at which it is read."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from support.builders import random_case

from gpuboost.state import GrowingEnsemble
from gpuboost.types import Ensemble


class Interrupting(tuple):
    """A round's trees that a signal comes between: their weights are noted, they are not."""

    def __getitem__(self, index: Any) -> Any:
        raise KeyboardInterrupt


def grown(shrink: float, rounds: int) -> GrowingEnsemble:
    model = GrowingEnsemble(Ensemble(np.zeros(2), random_case(0, 50, 3).data.cuts))
    for number in range(rounds):
        model.shrink(shrink)
        model.add((f"tree {number} a", f"tree {number} b"), 0.1)
    return model


def told(model: GrowingEnsemble, rounds: int) -> tuple[Any, ...]:
    found = model.ensemble(rounds)
    return found.trees, found.factors, found.scale, found.scales, found.n_rounds


@pytest.mark.parametrize("rounds", [0, 1, 3])
@pytest.mark.parametrize("shrink", [1.0, 0.5])
def test_a_round_that_is_interrupted_leaves_no_trace(shrink: float, rounds: int) -> None:
    whole, cut = grown(shrink, rounds), grown(shrink, rounds)
    cut.shrink(shrink)
    assert told(cut, rounds) == told(whole, rounds)
    with pytest.raises(KeyboardInterrupt):
        cut.add(Interrupting(("c", "d")), 0.1)
    assert told(cut, rounds) == told(whole, rounds)


def test_what_it_was_after_fewer_rounds() -> None:
    model = grown(0.5, 3)
    assert told(model, 2) == told(grown(0.5, 2), 2)
    assert told(model, 3)[2:] == (0.125, (0.5, 0.25, 0.125), 3)
