"""Split search of packed nodes whose leaves need several rows: what ``split`` finds, by faster kernels of each cut."""

import numpy as np

from gpuboost.kernels.common.jit import inlined, kernel
from gpuboost.kernels.common.nodes import BEGIN, END, NEW, SLOT, STATE, SUM_G, SUM_H
from gpuboost.kernels.common.records import (
    Criterion,
    HistogramArrays,
    HistogramLayout,
    NodeSums,
    SearchScratch,
    Splits,
)
from gpuboost.kernels.histograms.cells import CELLS_AT_ONCE, complete, read
from gpuboost.kernels.splits.categories import best_set
from gpuboost.kernels.splits.gain import score
from gpuboost.kernels.splits.packed_split import ROOM, best_counted_cut, least_units


@kernel
def search(layout, kinds, new_pairs, node, histograms, criterion, results):
    """All features of every new pair: complete both histograms, then look for the best splits.

    The arguments are those of ``split.search``. The rule must be one of which ``split.search`` needs the general case
    for ``min_samples_leaf`` alone, and the counts must be complete.
    """
    layout, histograms = HistogramLayout(*layout), HistogramArrays(*histograms)
    criterion, results = Criterion(*criterion), Splits(*results)
    of, counts, starts, t = histograms.of, histograms.counts, layout.starts, layout.features.shape[0]
    of_categories = 0 if kinds is None else 257
    scratch = SearchScratch(
        np.empty(of_categories, np.int64), np.empty(of_categories, np.int64), np.empty(of_categories, np.int64),
        np.empty(0), np.empty(ROOM, np.int64), np.empty(ROOM, np.float32), np.empty(ROOM, np.int64),
        np.empty(0, np.uint32),
    )  # fmt: skip
    least, shared = least_units(criterion.units[1], criterion.rule[1]), np.empty((new_pairs.shape[0], 0), np.int64)
    for i in range(new_pairs.shape[0]):
        begin = 0
        while begin < t:  # so many features at a time as have their cells, of three nodes, in the nearest cache
            end = begin + 1
            while end < t and starts[end] - starts[begin] < CELLS_AT_ONCE:
                end += 1
            complete(i, histograms, shared, new_pairs, node, layout, begin, end)
            for side in range(2):
                v = new_pairs[i, side]
                if v >= 0 and node[v, STATE] == NEW:
                    slot = node[v, SLOT]
                    sums = NodeSums(node[v, END] - node[v, BEGIN], True, node[v, SUM_G], node[v, SUM_H])
                    _search_node(
                        of[slot], counts[slot], sums, layout, kinds, criterion, least, begin, end, scratch, results,
                        2 * i + side,
                    )  # fmt: skip
            begin = end


@kernel
@inlined
def _search_node(cells, counts, sums, layout, kinds, criterion, least, first, last, scratch, results, line):
    """Features [first, last) of one node whose histogram is complete there, into one line of the results.

    sums: NodeSums; scratch: SearchScratch; least: see ``least_units``.
    """
    gains, splits, left_sets = results.gains[line], results.splits[line], results.left_sets[line]
    units, rule, starts = criterion.units, criterion.rule, layout.starts
    total, rows = (sums.g << 32) + sums.h, sums.rows
    parent = score(sums.g * units[0], sums.h * units[1], rule[0])
    for j in range(first, last):
        begin, size = np.int64(starts[j]), np.int64(starts[j + 1]) - np.int64(starts[j])
        is_categorical = False
        if kinds is not None:  # decided when this is compiled
            is_categorical = kinds[j] == 1
        if kinds is not None and is_categorical:
            read(cells, True, begin, size, scratch.g, scratch.h)
            for c in range(size):
                scratch.n[c] = counts[begin + c]
            gains[j] = best_set(
                scratch.g, scratch.h, scratch.n, layout.n_bins[j], (sums.g, sums.h, rows), units, rule, np.int64(-1),
                splits[j], left_sets[j],
            )  # fmt: skip
        else:
            gains[j] = best_counted_cut(
                cells, counts, begin, size - 1, total, parent, least, units, rule, rows, scratch.running, scratch.about,
                scratch.places, splits[j],
            )  # fmt: skip
