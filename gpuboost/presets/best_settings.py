"""The settings that did best on real data."""

from __future__ import annotations

from gpuboost.arguments import is_integer
from gpuboost.errors import RecipeError
from gpuboost.presets.keywords import Parameters

SMALL = 10_000
"""Rows below which ``best`` has oblivious trees"""

MANY_CLASSES = 5
"""Classes from which on ``best`` has one tree for all of them"""


def best(n_rows: int | None = None, n_classes: int | None = None) -> Parameters:
    """The settings that did best on seven real sets; no paper's.

    ``n_estimators="auto"`` and ``learning_rate="auto"``, and each tree grown on 80 % of the rows and 70 % of the
    features. Ten other sets show what it is worth: ``defaults`` in benchmarks/README.md. A fit takes several times as
    long as one of 100 rounds, and of data almost without noise up to 50 times.

    Parameters
    ----------
    n_rows : int or None
        Rows of the training data. Of fewer than 10,000, trees are oblivious, as CatBoost's: better on small data, and
        on larger ones as good in more time. None: depth-wise trees.
    n_classes : int or None
        Classes of a classification. Of five or more, each round has one depth-wise tree for all of them, without a
        least curvature of leaves. None: not known.
    """
    if n_rows is not None and not is_integer(n_rows, 1):
        raise RecipeError(f"n_rows: must be None or an integer of at least 1; got {n_rows!r}.")
    if n_classes is not None and not is_integer(n_classes, 2):
        raise RecipeError(f"n_classes: must be None or an integer of at least 2; got {n_classes!r}.")
    shared = n_classes is not None and n_classes >= MANY_CLASSES
    return {
        "n_estimators": "auto",
        "learning_rate": "auto",
        "growth": "oblivious" if n_rows is not None and n_rows < SMALL and not shared else "depthwise",
        "sampling": 0.8,
        "learners": 0.7,
        **({"multi_output": "one_tree", "min_child_weight": 0.0} if shared else {}),
    }
