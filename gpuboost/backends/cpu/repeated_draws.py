"""Draws of rounds that a CPU repeats: their verbs, the arguments of ``kernels.growth.repeated_draws``, their sizes."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from gpuboost.backends.cpu import sums as cpu_sums
from gpuboost.backends.cpu.sampling.draws import limit_of, terms_of
from gpuboost.backends.numerics.probabilities import GossRule, ProbabilityRule, ThresholdRule, TrimmingRule
from gpuboost.backends.prediction.few_binned_rows import FIELDS, MOST, to_read
from gpuboost.kernels.common.by_address import address_of
from gpuboost.kernels.common.records import FeatureDraw, RepeatedTrees, RowDraw, SampleSums, ScoreDraw
from gpuboost.kernels.leaves.walk_rows import walk_rows
from gpuboost.kernels.sampling import draw as uniform_draw
from gpuboost.kernels.sampling import feature_subsets, gather, importance, threshold
from gpuboost.keys import Key
from gpuboost.types import Candidates, DenseBins, Gradients, SampleSizes, Target, TrainingSet

RULES = ThresholdRule, GossRule, TrimmingRule
ITERATION = 2  # its place among ``Key.words``
NO_FEATURES = FeatureDraw(np.zeros(4, np.int64), np.empty(0, np.bool_))
NO_SCORE = ScoreDraw(
    0, np.empty(2), 0, 0.0, np.empty(0, np.float32), np.empty((2, 0), np.int64), np.empty((3, 0)), np.empty(3)
)


class DrawVerbs(NamedTuple):
    """Arguments and results of the verbs that drew and weighed the rows of a round's trees."""

    probability: float  # of each row, if there is no rule
    rule: ProbabilityRule | None
    kappa: float
    key: Key
    weighed: Gradients

    @classmethod
    def of(cls, verbs: list[tuple[Any, ...]], gradients: Gradients) -> DrawVerbs | None:
        """The verbs ``sample`` or ``draw``, and ``weigh``, of a round.

        None if the gradients were not weighed by what was drawn, or if no kernel has the rule.
        """
        (name, sample, *given, key), (_, weighed, of_gradients, of_sample) = verbs
        if of_gradients is not gradients or of_sample is not sample:
            return None
        if name == "sample":
            return cls(given[0], None, 0.0, key, weighed)
        scored, kappa, rule = given
        known = scored is gradients and type(rule) in RULES
        return cls(1.0, rule, kappa, key, weighed) if known else None


def can_repeat(data: TrainingSet, target: Target) -> bool:
    """True if a kernel draws the rows and features of such trees."""
    return isinstance(data.bins, DenseBins) and (target.rows is None or data.n_rows <= MOST)


class Draws:
    """The draws of repeated rounds."""

    def __init__(
        self, data: TrainingSet, candidates: Candidates, gradients: Gradients, verbs: DrawVerbs | None,
        room: tuple[int, int],
    ) -> None:  # fmt: skip
        """room: for the rounds of a call, and for the nodes of their trees."""
        self._rows = _row_draw(data, gradients, verbs)
        self._features, self._score, rounds, nodes = NO_FEATURES, NO_SCORE, *room
        self._streams: list[tuple[NDArray[np.int64], Key]] = []  # words that kernels read, and the key that they are of
        if candidates.by_tree is not None:
            key = candidates.by_tree[1]
            self._features = FeatureDraw(np.array(key.words, np.int64), np.empty(data.cuts.n_features, np.bool_))
            self._streams.append((self._features.words, key))
        if verbs is not None:
            self._score = NO_SCORE if verbs.rule is None else _score_draw(verbs.rule, verbs.kappa, data.n_rows)
            self._streams.append((self._rows.words, verbs.key))
        else:
            rounds = nodes = 0
        of_rounds = np.empty((rounds, 2), np.int64), np.empty(rounds), np.empty((rounds, 2))
        self._sums = SampleSums(*of_rounds, np.empty((2, nodes)))

    def arguments(self, trees: RepeatedTrees, gradients: Gradients) -> tuple[Any, ...]:
        """The kernel's ``of_draws``."""
        addresses = self._addresses(trees, gradients)
        self.is_known = None not in addresses  # the verbs have called all of them with arguments of these types
        of_kernels = np.array([address or 0 for address in addresses], np.int64)
        return of_kernels, tuple(self._features), tuple(self._rows), tuple(self._score), tuple(self._sums)

    def begin(self, rounds: int) -> None:
        """Begin a call. rounds: from the one whose verbs are known to the first of the call."""
        for words, key in self._streams:
            words[ITERATION] = key.words[ITERATION] + rounds

    def _addresses(self, trees: RepeatedTrees, gradients: Gradients) -> list[int | None]:
        """Addresses of the kernels that draw, in the order of their places; 0 for those that are not called."""
        draw, words = self._rows, (0, 0, 0, 0)
        features = np.empty(1, np.int32)
        of_features = address_of(feature_subsets.draw, 0, *words, features) if len(self._features.chosen) else 0
        if not len(draw.rows):
            return [of_features, *[0] * 6]
        (k, n), m, leaves = gradients.g.shape, cpu_sums.multiplicity_of(gradients), np.empty(1, np.int32)
        nodes = [to_read(getattr(trees, name)) for name in FIELDS]
        of_cuts = to_read(leaves), to_read(draw.is_categorical)
        weighed = draw.g.reshape(k, n)
        return [
            of_features,
            *self._choosing(gradients, m),
            address_of(gather.gather, draw.bins, draw.rows, 0, n, np.empty((0, 0), np.uint8)),
            address_of(importance.weigh, gradients.g, draw.rows, draw.inverse, 0, n, weighed),
            address_of(walk_rows, to_read(draw.bins), *nodes, *of_cuts, leaves),
        ]

    def _choosing(self, gradients: Gradients, multiplicity: NDArray[np.int32]) -> list[int | None]:
        """Addresses of the kernels that choose the rows."""
        draw, score, words, n = self._rows, self._score, (0, 0, 0, 0), len(self._rows.rows)
        if not len(score.scores):
            return [0, 0, address_of(uniform_draw.drawn_rows, 0, n, draw.limit, *words, draw.rows)]
        of_scores = score.made_of, score.kappa, 0, n, score.scores, *score.counts
        of_draw = score.scores, 0, n, score.kind, score.parameters, *words, draw.rows, draw.inverse
        return [
            address_of(importance.importance, gradients.g, gradients.h, multiplicity, *of_scores),
            _search(score),
            address_of(importance.draw, *of_draw),
        ]

    def sizes(self, time: int, nodes: slice) -> SampleSizes | None:
        """Sizes of the rows that a round of the last call drew; None if it had all rows. nodes: of its trees."""
        if not len(self._rows.rows):
            return None
        rows, excluded = self._sums.rows[time].tolist()
        weight, squares = self._sums.of_round[time].tolist()
        effective = weight**2 / squares if squares > 0.0 else 0.0
        return SampleSizes(
            rows, excluded, float(self._sums.largest[time]), effective, self._sums.of_leaf[:, nodes].copy()
        )


def _row_draw(data: TrainingSet, gradients: Gradients, verbs: DrawVerbs | None) -> RowDraw:
    """The draw of the rows. Without verbs it is empty, but has the same types, so that one kernel serves for all."""
    assert isinstance(data.bins, DenseBins)
    (k, n), probability = gradients.g.shape, 1.0 if verbs is None else verbs.probability
    n = 0 if verbs is None else n
    multiplicities = 0 if gradients.multiplicity is None else n
    words = np.zeros(4, np.int64) if verbs is None else np.array(verbs.key.words, np.int64)
    return RowDraw(
        words, limit_of(probability), np.empty(n, np.int32), np.full(n, 1.0 / probability, np.float32), data.bins.rows,
        np.empty(k * n, np.float32), np.empty(k * n, np.float32), np.empty(multiplicities, np.int32),
        data.cuts.is_categorical,
    )  # fmt: skip


def _score_draw(rule: ProbabilityRule, kappa: float, n: int) -> ScoreDraw:
    counts, room = np.empty((2, importance.BUCKETS), np.int64), np.empty((3, importance.BUCKETS))
    of_scores = terms_of(kappa), float(kappa), np.empty(n, np.float32), counts, room
    return ScoreDraw(rule.kind, np.array(rule.settings, np.float64), *of_scores, np.empty(3))


def _search(score: ScoreDraw) -> int | None:
    """Address of the kernel that searches for the rule's parameters; 0 if they are given."""
    address: int | None = 0
    if score.kind == importance.SOLVED_THRESHOLD:
        address = address_of(threshold.rho_for_rate, 0.0, 0.0, score.scores, *score.counts, score.room)
    elif score.kind != importance.FIXED_THRESHOLD:
        search = threshold.score_of_rank if score.kind == importance.GOSS else threshold.score_of_mass
        address = address_of(search, 0.0, score.scores.view(np.uint32), *score.counts)
    return address
