"""The formulas of the metrics of rankings: one value per query, then their weighted mean. The same bits everywhere.

y (n,) labels; scores (k, n); weight (n,) or None, constant within a query; query_start (queries + 1,). Documents are
placed by their scores, equal ones in the order of rows. Sums run from the first place down, and the mean is exact.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from itertools import pairwise
from typing import TypeAlias

import numpy as np
from numpy.typing import NDArray

from gpuboost.elementary import log, log_array
from gpuboost.losses.protocol import Loss, is_list_loss
from gpuboost.losses.ranking import MOST_LABEL, LambdaMART
from gpuboost.losses.target import require
from gpuboost.metrics.classification import area_under_precision_recall
from gpuboost.metrics.formulas import area_under_roc, mean
from gpuboost.types import Array

Floats: TypeAlias = NDArray[np.float64]
Placed: TypeAlias = Callable[[Floats, int], Floats]
"""((lists, width) labels in order of places, padded with -1; places that count) -> (lists,) values, nan for a list
without relevant documents"""


def ndcg(
    y: Array, scores: Array, weight: Array | None, loss: Loss, query_start: Array,
    *, k: int | None, empty: float | None, gain: tuple[float, ...] | None,
) -> float:  # fmt: skip
    """DCG of the first k places over the DCG of the best k (Järvelin and Kekäläinen 2002)."""
    gains = gains_of(y, loss, gain)

    def of(labels: Floats, width: int) -> Floats:
        return _ratio(_dcg(labels, gains, width), ideal(labels, width, gains))

    return _mean_over_queries(of, y, scores[0], weight, query_start, k, empty)


def average_precision(
    y: Array, scores: Array, weight: Array | None, loss: Loss, query_start: Array, *, k: int | None, empty: float | None
) -> float:
    """Average precision at k: the mean of the precision at the places of the relevant documents, of at most k.

    A document of label 1 or more is relevant. A relevant document beyond place k counts 0.
    """

    def of(labels: Floats, width: int) -> Floats:
        relevant = labels > 0.0
        hits = np.cumsum(relevant[:, :width], axis=1)
        precision = np.where(relevant[:, :width], hits / np.arange(1.0, width + 1.0), 0.0)
        n_relevant = np.minimum(relevant.sum(axis=1), width)
        return _ratio(_last(precision), n_relevant)

    return _mean_over_queries(of, y, scores[0], weight, query_start, k, empty)


def reciprocal_rank(
    y: Array, scores: Array, weight: Array | None, loss: Loss, query_start: Array, *, k: int | None, empty: float | None
) -> float:
    """1 / the place of the first relevant document (label of 1 or more); 0 if it is beyond place k."""

    def of(labels: Floats, width: int) -> Floats:
        relevant = labels > 0.0
        first = relevant.argmax(axis=1)
        value = np.where(first < width, 1.0 / (first + 1.0), 0.0)
        return np.where(relevant.any(axis=1), value, np.nan)

    return _mean_over_queries(of, y, scores[0], weight, query_start, k, empty)


def precision(
    y: Array, scores: Array, weight: Array | None, loss: Loss, query_start: Array, *, k: int | None, empty: float | None
) -> float:
    """Relevant documents (label of 1 or more) of the first k places, over k; of all places if k is None."""

    def of(labels: Floats, width: int) -> Floats:
        places = (labels >= 0.0).sum(axis=1) if k is None else np.full(len(labels), k)
        return np.where((labels > 0.0).any(axis=1), _ratio(_relevant(labels, width), places), np.nan)

    return _mean_over_queries(of, y, scores[0], weight, query_start, k, empty)


def recall(
    y: Array, scores: Array, weight: Array | None, loss: Loss, query_start: Array, *, k: int | None, empty: float | None
) -> float:
    """Relevant documents (label of 1 or more) of the first k places, over all relevant ones."""

    def of(labels: Floats, width: int) -> Floats:
        return _ratio(_relevant(labels, width), (labels > 0.0).sum(axis=1))

    return _mean_over_queries(of, y, scores[0], weight, query_start, k, empty)


def auc(
    y: Array, scores: Array, weight: Array | None, loss: Loss, query_start: Array, *, k: int | None, empty: float | None
) -> float:
    """Area under the ROC curve of each query, documents of label 1 or more against the others."""

    def of(relevant: Array, f: Array) -> float:
        return area_under_roc(relevant, f, None)

    return _mean_of_lists(of, y, scores[0], weight, query_start, empty)


def average_precision_of_classes(
    y: Array, scores: Array, weight: Array | None, loss: Loss, query_start: Array, *, k: int | None, empty: float | None
) -> float:
    """Area under the precision-recall curve of each query, equal scores taken together."""

    def of(relevant: Array, f: Array) -> float:
        return area_under_precision_recall(relevant, f, None) if relevant.sum() > 0 else math.nan

    return _mean_of_lists(of, y, scores[0], weight, query_start, empty)


def _mean_of_lists(
    of: Callable[[Array, Array], float], y: Array, f: Array, weight: Array | None, query_start: Array,
    empty: float | None,
) -> float:  # fmt: skip
    """Weighted mean over queries of a value that is nan where a query has none."""
    values = np.array([of(y[a:b] > 0.0, f[a:b]) if b > a else math.nan for a, b in pairwise(query_start.tolist())])
    return mean_of_values(values, None if weight is None else weight[query_start[:-1]], empty)


def _relevant(labels: Floats, width: int) -> Floats:
    count: Floats = (labels[:, :width] > 0.0).sum(axis=1).astype(np.float64)
    return count


def values_by_query(of: Placed, y: Array, f: Array, query_start: Array, k: int | None) -> Floats:
    """(queries,) value of ``of`` for each list. Lists of similar length are computed together."""
    start, lengths = query_start[:-1], np.diff(query_start)
    values = np.full(len(lengths), np.nan)
    classes = np.ceil(np.log2(np.maximum(lengths, 1))).astype(np.int64)
    for length_class in np.unique(classes):
        lists = np.flatnonzero(classes == length_class)
        width = int(lengths[lists].max())
        if width == 0:
            continue
        inside = np.arange(width) < lengths[lists, None]
        rows = np.where(inside, start[lists, None] + np.arange(width), 0)
        order = np.argsort(np.where(inside, -f[rows], np.inf), axis=1, kind="stable")
        labels = np.take_along_axis(np.where(inside, y[rows], -1.0), order, axis=1)
        values[lists] = of(labels, width if k is None else min(k, width))
    return values


def _mean_over_queries(
    of: Placed, y: Array, f: Array, weight: Array | None, query_start: Array, k: int | None, empty: float | None
) -> float:
    """``mean_of_values`` of the values of the lists."""
    values = values_by_query(of, y, f, query_start, k)
    return mean_of_values(values, None if weight is None else weight[query_start[:-1]], empty)


def mean_of_values(values: Floats, weight: Array | None, empty: float | None) -> float:
    """Weighted mean of (lists,) values, nan for lists without relevant documents; nan if all are left out.

    weight: (lists,) or None. empty: value of a list without relevant documents; None leaves it out.
    """
    nothing = np.isnan(values)
    if empty is None:
        values, weight = values[~nothing], None if weight is None else weight[~nothing]
    else:
        values = np.where(nothing, empty, values)
    if len(values) == 0:
        return float("nan")
    return mean(values, weight)


def gains_of(y: Array, loss: Loss, gain: tuple[float, ...] | None) -> Floats:
    """(labels,) gain of each label: the given one, that of the loss, or 2^label - 1."""
    table = LambdaMART(gain=gain).gains()
    if not gain and is_list_loss(loss) and len(loss.gains()):
        table = loss.gains()
    max_label = len(table) - 1
    advice = (
        f"Give gb.metrics.ndcg(gain=[...]) a number for each label{'' if max_label > MOST_LABEL else ', or use map'}."
    )
    require(
        (y >= 0.0) & (y <= max_label) & (y == np.rint(y)), y, f"ndcg knows the gain of labels 0 to {max_label}", advice
    )
    return table


def _dcg(labels: Floats, gains: Floats, width: int) -> Floats:
    places = labels[:, :width]
    worth = np.where(places >= 0.0, gains[np.maximum(places, 0.0).astype(np.int64)], 0.0)
    return _last(worth * worth_of_places(width))


def worth_of_places(width: int) -> Floats:
    """(width,) factor of the gain at each place: 1 / log2(1 + place), places counted from 1."""
    return log(2.0) / log_array(np.arange(width) + 2.0)


def ideal(labels: Floats, width: int, gains: Floats) -> Floats:
    """(lists,) DCG of the best ``width`` documents. labels: as of ``Placed``."""
    return _dcg(-np.sort(-labels, axis=1), gains, width)


def _ratio(above: Floats, below: Array) -> Floats:
    """above / below; nan where below is 0."""
    ratio: Floats = np.divide(above, below, out=np.full(len(above), np.nan), where=below > 0)
    return ratio


def _last(x: Floats) -> Floats:
    """(lists,) row sums, from the first place to the last on every machine."""
    return np.ascontiguousarray(np.cumsum(x, axis=1)[:, -1])
