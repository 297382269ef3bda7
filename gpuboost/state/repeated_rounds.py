"""Rounds that a machine repeats without their verbs."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from operator import length_hint
from typing import cast

from gpuboost.backends.optional_verbs import Repeater, Shrinkage
from gpuboost.backends.protocol import Backend
from gpuboost.state.growing_ensemble import GrowingEnsemble
from gpuboost.types import Built, Ensemble, Expect, Progress, Watch


def repeat(
    backend: Backend, last: Progress, rounds: Iterator[int], together: int, model: GrowingEnsemble,
    shrinkage: Shrinkage, collect: Callable[[int], Callable[[], Ensemble]], expect: Expect, watch: Watch,
) -> bool:  # fmt: skip
    """Do the rounds that are left, if the machine can repeat the last one. True if the watch asks for a stop.

    The watch is called for each round, after up to ``together`` of them are done: the scores are those of the newest.
    Rounds after a stop are not in the model.

    Args:
        backend: machine of the training.
        last: the round that is repeated.
        rounds: numbers of the rounds that are left.
        together: rounds that may be done before the watch sees the first of them; 1: each is seen when it is done.
        model: the model so far, to which rounds are added.
        shrinkage: that of the last round.
        collect: for a number of rounds, what ``Progress.collect`` is then.
        expect: called with the trees of all rounds that are done.
        watch: called after each round.
    """
    if together == 1 or not backend.offers.repeated_rounds:
        return False
    machine = cast(Repeater, backend)
    while (left := length_hint(rounds)) and (made := machine.repeat(last.trees, shrinkage, min(together, left), left)):
        expect([one.trees for one in made], shrinkage.factor)
        for trees, sizes in made:
            step, shrinkage, drawn = next(rounds), shrinkage.next, last.drawn if sizes is None else None
            model.shrink(shrinkage.kept)
            model.add(trees, shrinkage.length)
            line, n_rounds = last.log[-1], model.n_rounds
            log = (Built(line.ticket + 1, line.worker, step, step, line.share),)
            last = Progress(
                step, trees, shrinkage.factor, last.scores, n_rounds, collect(n_rounds), model.scale, drawn, log, sizes
            )
            if watch(last):
                return True
    return False
