"""Split search of packed nodes whose leaves need several rows or have bounds, or for which not all cuts compete.

It finds what ``split`` does, by faster kernels of each feature.
"""

import numpy as np

from gpuboost.kernels.common.jit import inlined, kernel
from gpuboost.kernels.common.nodes import BEGIN, END, NEW, SLOT, STATE, SUM_G, SUM_H
from gpuboost.kernels.common.records import (
    Criterion,
    HistogramArrays,
    HistogramLayout,
    NodeRules,
    NodeSums,
    SearchScratch,
    Splits,
)
from gpuboost.kernels.histograms.cells import complete, next_features, read, read_running
from gpuboost.kernels.splits.categories import best_set
from gpuboost.kernels.splits.competing import DIRECTIONS
from gpuboost.kernels.splits.extra_trees import allow_only, draw_words, random_cut
from gpuboost.kernels.splits.gain import ALPHA, NOISE, SMOOTHING, score, soft_threshold
from gpuboost.kernels.splits.monotone_split import best_held_cut, best_held_set, side_score
from gpuboost.kernels.splits.packed_split import ROOM, best_counted_cut, best_cut, best_random_cut, least_units


@kernel
def search(layout, kinds, new_pairs, node, histograms, criterion, rules, held, may, results):
    """All features of every new pair: complete both histograms, then look for the best splits.

    The arguments are those of ``split.search``; rules: NodeRules; held: True if leaf values have bounds, else None;
    may: see ``competing``. The rule must be one of which ``split.search`` needs the general case for nothing but
    ``min_samples_leaf`` and drawn cuts, or ``monotone_split.search`` for nothing but these and bounds, and the counts
    must be complete.
    """
    rules = NodeRules(*rules)
    layout, histograms = HistogramLayout(*layout), HistogramArrays(*histograms)
    criterion, results = Criterion(*criterion), Splits(*results)
    of, counts, starts, t = histograms.of, histograms.counts, layout.starts, layout.features.shape[0]
    counted = counts.shape[1] > 0
    some_cuts, some_features = rules.cuts.shape[0] > 0, may.shape[0] > 0
    of_sums = 257 if kinds is not None or (held is not None and some_cuts) else 0
    scratch = SearchScratch(
        np.empty(of_sums, np.int64), np.empty(of_sums, np.int64),
        np.empty(of_sums if counted else 0, np.int64), np.empty(0), np.empty(ROOM, np.int64),
        np.empty(ROOM, np.float32), np.empty(ROOM, np.int64), np.empty(8 if held is not None else 0, np.uint32),
    )  # fmt: skip
    least, shared = least_units(criterion.units[1], criterion.rule[1]), np.empty((new_pairs.shape[0], 0), np.int64)
    words, sums_of_nodes = np.empty((2 if some_cuts else 0, t), np.int64), np.empty((2, 2), np.int64)
    for i in range(new_pairs.shape[0]):
        for side in range(2):
            v = new_pairs[i, side]
            if v >= 0 and node[v, STATE] == NEW:
                sums_of_nodes[side, 0], sums_of_nodes[side, 1] = node[v, SUM_G], node[v, SUM_H]
                if some_cuts:
                    of_stream = rules.cuts[0], rules.cuts[1], rules.cuts[2], rules.cuts[3]
                    draw_words(sums_of_nodes[side : side + 1], layout.features, *of_stream, words[side : side + 1])
        begin = 0
        while begin < t:
            end = next_features(starts, begin, t)
            complete(i, histograms, shared, new_pairs, node, layout, begin, end)
            for side in range(2):
                v = new_pairs[i, side]
                if v >= 0 and node[v, STATE] == NEW:
                    slot = node[v, SLOT]
                    sums = NodeSums(node[v, END] - node[v, BEGIN], True, node[v, SUM_G], node[v, SUM_H])
                    cells, of_counts = of[slot], counts[slot if counted else 0]
                    line = 2 * i + side
                    compete = may[line if some_features else 0 : line + 1]
                    drawn_words = words[side if some_cuts else 0 : side + 1]
                    if held is None:  # decided when this is compiled
                        _search_node(
                            cells, of_counts, sums, layout, kinds, criterion, least, begin, end, scratch, compete,
                            drawn_words, results, line,
                        )  # fmt: skip
                    else:
                        _search_held_node(
                            (rules.bounds[v, 0], rules.bounds[v, 1], rules.bounds[v, 2]),
                            rules.of_features[0, DIRECTIONS], cells, of_counts, sums, layout, kinds, criterion, least,
                            begin, end, scratch, compete, drawn_words, results, line,
                        )  # fmt: skip
            begin = end


@kernel
@inlined
def _search_node(cells, counts, sums, layout, kinds, criterion, least, first, last, scratch, may, words, results, line):
    """Features [first, last) of one node whose histogram is complete there, into one line of the results.

    sums: NodeSums; scratch: SearchScratch; least: see ``least_units``; may (1, t) bool: the features that compete,
    (0, t) for all; words (1, t): see ``extra_trees.draw_words``, (0, t) for all cuts.
    """
    gains, splits, left_sets = results.gains[line], results.splits[line], results.left_sets[line]
    units, rule, starts = criterion.units, criterion.rule, layout.starts
    total, rows = (sums.g << 32) + sums.h, sums.rows
    parent = score(sums.g * units[0], sums.h * units[1], rule[0])
    for j in range(first, last):
        begin, size = np.int64(starts[j]), np.int64(starts[j + 1]) - np.int64(starts[j])
        if may.shape[0] > 0 and not may[0, j]:
            gains[j] = 0.0
            continue
        is_categorical = False
        if kinds is not None:  # decided when this is compiled
            is_categorical = kinds[j] == 1
        if kinds is not None and is_categorical:
            read(cells, True, begin, size, scratch.g, scratch.h)
            for c in range(size if scratch.n.shape[0] > 0 else 0):
                scratch.n[c] = counts[begin + c]
            gains[j] = best_set(
                scratch.g, scratch.h, scratch.n, layout.n_bins[j], (sums.g, sums.h, rows), units, rule,
                words[0, j] if words.shape[0] > 0 else np.int64(-1), splits[j], left_sets[j],
            )  # fmt: skip
        elif words.shape[0] > 0:
            gains[j] = best_random_cut(
                cells, counts, begin, size - 1, words[0, j], total, parent, units, rule, rows, splits[j]
            )
        elif counts.shape[0] == 0:
            gains[j] = best_cut(
                cells, begin, size - 1, total, parent, least, units, rule, rows, scratch.running, scratch.about,
                scratch.places, splits[j],
            )  # fmt: skip
        else:
            gains[j] = best_counted_cut(
                cells, counts, begin, size - 1, total, parent, least, units, rule, rows, None, scratch.running,
                scratch.about, scratch.places, splits[j],
            )  # fmt: skip


@kernel
def _search_held_node(
    bounds, directions, cells, counts, sums, layout, kinds, criterion, least, first, last, scratch, may, words, results,
    line,
):  # fmt: skip
    """The same where leaf values have bounds. bounds (3,): those of the node; directions (d,): of all features."""
    gains, splits, left_sets = results.gains[line], results.splits[line], results.left_sets[line]
    units, rule, starts, low, high, above = criterion.units, criterion.rule, layout.starts, *bounds
    total, total_g, total_h = (sums.g << 32) + sums.h, sums.g * units[0], sums.h * units[1]
    parent = side_score(soft_threshold(total_g, rule[ALPHA]), total_h, rule[0], low, high, rule[SMOOTHING], above)
    floor = max(rule[2], NOISE * max(abs(parent), score(total_g, total_h, rule[0])))
    for j in range(first, last):
        begin, size = np.int64(starts[j]), np.int64(starts[j + 1]) - np.int64(starts[j])
        gains[j] = 0.0
        if low >= high or (may.shape[0] > 0 and not may[0, j]):  # all leaves below have one value
            continue
        is_categorical, direction = False, directions[layout.features[j]]
        if kinds is not None:
            is_categorical = kinds[j] == 1
        if not is_categorical and words.shape[0] == 0:
            within = (rule[ALPHA], low, high, direction, parent, floor, rule[SMOOTHING], above)
            gains[j] = best_counted_cut(
                cells, counts, begin, size - 1, total, parent, least, units, rule, sums.rows, within, scratch.running,
                scratch.about, scratch.places, splits[j],
            )  # fmt: skip
            continue
        totals, within_bounds, n_bins = (sums.g, sums.h, sums.rows), (low, high, above), layout.n_bins[j]
        for c in range(size if scratch.n.shape[0] > 0 else 0):
            scratch.n[c] = counts[begin + c]
        if kinds is not None and is_categorical:
            read(cells, True, begin, size, scratch.g, scratch.h)
            gains[j] = best_held_set(
                scratch.g, scratch.h, scratch.n, n_bins, totals, units, rule, within_bounds,
                words[0, j] if words.shape[0] > 0 else np.int64(-1), splits[j], left_sets[j],
            )  # fmt: skip
        else:
            read_running(cells, True, begin, size - 1, scratch.g, scratch.h)
            allow_only(random_cut(words[0, j], scratch.g, scratch.h, scratch.n, n_bins), scratch.bits)
            gains[j] = best_held_cut(
                scratch.g, scratch.h, scratch.n, n_bins, totals, units, rule, within_bounds, direction, True,
                scratch.bits, splits[j],
            )  # fmt: skip
