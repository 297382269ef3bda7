"""The columns that the predictions of a model may depend on."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from gpuboost.types import Ensemble


def used_columns(ensemble: Ensemble, layout: Sequence[Sequence[int]]) -> list[int]:
    """Numbers of the columns of X that a tree is split by, increasing; all of them if there are other base learners.

    layout: for each column that trees see, the columns of X that it is made of.
    """
    if ensemble.components:
        return sorted({f for made_of in layout for f in made_of})
    features = {int(f) for tree in ensemble.trees for f in np.unique(tree.nodes.feature) if f >= 0}
    return sorted({column for f in features for column in layout[int(ensemble.cuts.columns[f])]})
