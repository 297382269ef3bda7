"""Definition of the costs of splits (cost-efficient gradient boosting, Peter et al. 2017; ``cegb_*`` of LightGBM).

    net gain = gain - (cost of the feature + cost of a row * rows of the node)

of the best split of each feature; a net gain that is not above ``min_split_gain`` is none. Rows are the share of the
curvature h times the rows of the tree, as for ``path_smooth``: with squared error their number. Of a level that shares
a split, gain and rows are those of its open nodes together, and the feature is paid for once.
"""

from __future__ import annotations

import numpy as np

from gpuboost.types import Array, SplitCosts


def charge(gains: Array, h: Array, features: Array, costs: SplitCosts | None, rows_per_h: float, least: float) -> None:
    """Turn gains into net gains, in place; nothing without costs.

    gains (lines, t) float64, 0 where a feature has no split; h (lines,) int64: sum of h of the line's rows; features
    (t,): their numbers; rows_per_h: rows per unit of h in the whole tree; least: ``min_split_gain``.
    """
    if costs is None:
        return
    rows = h.astype(np.float64) * rows_per_h
    net = gains - (costs.by_feature[features][None, :] + (costs.by_row * rows)[:, None])
    gains[:] = np.where(net > least, net, 0.0)
