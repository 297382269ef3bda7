"""Norms, angles and rates of randomised boosting (RGBM: Lu and Mazumder, SIAM J. Optim. 2020).

``stability_limit`` is about asynchronous boosting, docs/theory/asynchronous.md.

Notation is that of docs/theory/rgbm.md: B (n, K) are the predictions of K weak learners, columns of length 1; r is the
negative gradient; the loss is sigma-smooth and mu-strongly convex, per row of weight 1.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from gpuboost._imports.lazy import lazy_names
from gpuboost.execution.stability import stability_limit
from gpuboost.theory.guarantee import Guarantee, TheoremConstant
from gpuboost.theory.rates import (
    descent,
    huber_distance,
    linear_bound,
    linear_factor,
    orthonormal_angle,
    orthonormal_edge,
    sublinear_bound,
    ternary_angle,
)

if TYPE_CHECKING:
    from gpuboost.theory.angles import Angle, minimal_cosine_angle, smallest_expected_edge
    from gpuboost.theory.norms import SelectionNorm, rank_chances
    from gpuboost.theory.stumps import sign_stumps

_MODULES = {
    "Angle": "gpuboost.theory.angles",
    "SelectionNorm": "gpuboost.theory.norms",
    "minimal_cosine_angle": "gpuboost.theory.angles",
    "rank_chances": "gpuboost.theory.norms",
    "sign_stumps": "gpuboost.theory.stumps",
    "smallest_expected_edge": "gpuboost.theory.angles",
}
__getattr__, __dir__ = lazy_names(__name__, _MODULES)

__all__ = [
    "Angle",
    "Guarantee",
    "SelectionNorm",
    "TheoremConstant",
    "descent",
    "huber_distance",
    "linear_bound",
    "linear_factor",
    "minimal_cosine_angle",
    "orthonormal_angle",
    "orthonormal_edge",
    "rank_chances",
    "sign_stumps",
    "smallest_expected_edge",
    "stability_limit",
    "sublinear_bound",
    "ternary_angle",
]
