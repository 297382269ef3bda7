"""List-wise losses on the CPU: the team shares out the lists. The same bits as ``reference_lists``, however it does."""

from __future__ import annotations

import numpy as np

from gpuboost.backends import formulas
from gpuboost.backends.reference_lists import discounts_of
from gpuboost.backends.team import Team
from gpuboost.losses.protocol import ListLoss
from gpuboost.types import Array, Gradients, TrainingSet

NO_WEIGHT = np.empty(0, np.float64)
PER_DOCUMENT = 20  # what a document costs by itself, in pairs
SMALL = 100_000  # pairs below which waking another thread costs more than it saves


def gradients(loss: ListLoss, scores: Array, data: TrainingSet, curvature: float | None, team: Team) -> Gradients:
    """(1, n) g and h of every document. The data must have queries."""
    run, start = formulas.lambdas(loss), data.lists()
    g, h = np.empty(scores.shape, np.float32), np.empty(scores.shape, np.float32)
    weight = NO_WEIGHT if data.weight is None else data.weight
    constant = -1.0 if curvature is None else curvature
    lengths = np.diff(start)
    longest = int(lengths.max(initial=0))
    most = longest if loss.truncation is None else loss.truncation
    lists = data.y, loss.gains(), scores[0], start, discounts_of(longest), weight
    how = loss.parameter, most, loss.uses_ideal, loss.prefers_close, loss.evens_lists, constant
    ends = np.cumsum(lengths * (np.minimum(lengths, most) + PER_DOCUMENT))
    if ends[-1] < SMALL or team.size == 1:
        run(*lists, *how, 0, len(lengths), g[0], h[0])
        return Gradients(g, h, data.multiplicity)
    cuts = np.searchsorted(ends, ends[-1] * np.arange(1, team.size) // team.size)
    stretches = np.concatenate([[0], cuts, [len(lengths)]]).tolist()
    team.run(lambda part: run(*lists, *how, stretches[part], stretches[part + 1], g[0], h[0]))
    return Gradients(g, h, data.multiplicity)
