"""extra_trees: one random cut of each feature in a node. Definition: ``backends.numerics.extra_trees``."""

import numpy as np

from gpuboost.kernels.common.jit import kernel
from gpuboost.kernels.common.philox import words_of
from gpuboost.kernels.histograms.cells import seen
from gpuboost.kernels.splits.random_strength import OF_FEATURE, OF_G, OF_H

_OF_G, _OF_H, _OF_FEATURE = np.uint64(OF_G), np.uint64(OF_H), np.uint64(OF_FEATURE)


@kernel
def draw_words(sums, features, seed_low, seed_high, iteration, stream, words):
    """words (lines, t) int64: the 32 bits that draw the cut of each feature in each node.

    sums (lines, 2) int64: sums of g and h of the line's node; features (t,) their numbers.
    """
    for line in range(words.shape[0]):
        of_node = np.uint64(sums[line, 0]) * _OF_G + np.uint64(sums[line, 1]) * _OF_H
        for j in range(words.shape[1]):
            block = of_node + np.uint64(features[j]) * _OF_FEATURE
            words[line, j] = words_of(block, seed_low, seed_high, iteration, stream)[0]


@kernel
def place_of(word, count):
    """One of 0 .. count - 1; -1 without a word, which is -1."""
    return (word * count) >> 32 if word >= 0 else np.int64(-1)


@kernel
def cut_between(word, first, last, some_missing):
    """The bin below the random cut, -1 if there is none. first, last: bins that the node has rows of."""
    cuts = last - first + (1 if some_missing else 0)
    return first + place_of(word, cuts) if cuts > 0 else np.int64(-1)


@kernel
def random_cut(word, g, h, n, n_bins):
    """The bin below the random cut of a feature, -1 if there is none. g, h: see ``cells.read_running``; n by bin."""
    first, last, before_g, before_h = np.int64(n_bins), np.int64(-1), np.int64(0), np.int64(0)
    for b in range(n_bins):
        if g[b] != before_g or h[b] != before_h or (n.shape[0] > 0 and n[b] != 0):
            first, last = min(first, b), b
        before_g, before_h = g[b], h[b]
    return cut_between(word, first, last, seen(g, h, n, n_bins)) if last >= 0 else np.int64(-1)


@kernel
def allow_only(cut, bits):
    """bits (8,) uint32: that of this cut; none for -1."""
    bits[:] = 0
    if cut >= 0:
        bits[cut >> 5] = np.uint32(1) << np.uint32(cut & 31)
