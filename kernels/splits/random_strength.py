"""random_strength: noise on each feature's gain in a node, for the choice of the feature only.

Definition: ``backends.numerics.random_strength``.
"""

import numpy as np

from gpuboost.kernels.common.jit import kernel
from gpuboost.kernels.common.normal import normal
from gpuboost.kernels.common.philox import words_of

OF_G, OF_H, OF_FEATURE = 0x9E37_79B9_7F4A_7C15, 0xC2B2_AE3D_27D4_EB4F, 0x1656_67B1_9E37_79F9
LANES = 32
_OF_G, _OF_H, _OF_FEATURE = np.uint64(OF_G), np.uint64(OF_H), np.uint64(OF_FEATURE)


@kernel
def keep_winners(gains, sums, features, deviation, table, seed_low, seed_high, iteration, stream):
    """Keep the gain of each line's winning feature and set all others to 0.

    gains (lines, t) float64, 0 where a feature has no split; sums (lines, 2) int64: sums of g and h of the line's node;
    features (t,) their numbers.
    """
    lanes, table = np.empty(LANES, np.float64), table.reshape(table.size)
    for line in range(gains.shape[0]):
        lanes[:] = 0.0
        competing = 0
        for j in range(features.shape[0]):
            lanes[features[j] % LANES] += gains[line, j]
            competing += gains[line, j] > 0.0
        if competing < 2:
            continue
        total = 0.0
        for lane in range(LANES):
            total += lanes[lane]
        spread = deviation * (total / np.float64(competing))
        of_node = np.uint64(sums[line, 0]) * _OF_G + np.uint64(sums[line, 1]) * _OF_H
        best, winner = 0.0, -1
        for j in range(features.shape[0]):
            if gains[line, j] > 0.0:
                block = of_node + np.uint64(features[j]) * _OF_FEATURE
                words = words_of(block, seed_low, seed_high, iteration, stream)
                noisy = gains[line, j] + spread * normal(words[0], table)
                if winner < 0 or noisy > best:
                    best, winner = noisy, j
        for j in range(features.shape[0]):
            if j != winner:
                gains[line, j] = 0.0
