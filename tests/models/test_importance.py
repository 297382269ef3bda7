"""Importances on trees written by hand."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from support.strategies import random_ensemble

from gpuboost.errors import InputError
from gpuboost.model.importance import KINDS, feature_importances
from gpuboost.types import Cuts, Ensemble, FittedTree, Nodes


def stump(feature: int, gain: float, count: int) -> FittedTree:
    nodes = Nodes(
        feature=np.array([feature, -1, -1], np.int32),
        bin=np.zeros(3, np.int32),
        missing_left=np.zeros(3, np.bool_),
        left=np.array([1, 0, 0], np.int32),
        right=np.array([2, 0, 0], np.int32),
        gain=np.array([gain, 0.0, 0.0]),
        cover=np.array([9.0, 4.0, 5.0]),
        count=np.array([count, 1, count - 1]),
        left_set=np.zeros((3, 8), np.uint32),
    )
    return FittedTree(nodes, np.array([0.0, 1.0, -1.0]), 0, 0)


CUTS = Cuts((np.array([0.5]),) * 3, (None,) * 3)
ENSEMBLE = Ensemble(np.zeros(1), CUTS, (stump(0, 6.0, 10), stump(2, 1.0, 10), stump(0, 1.0, 20)), (0.1, 0.1, 0.1))


@pytest.mark.parametrize(
    ("kind", "values"),
    [
        ("gain", [7.0, 0.0, 1.0]),
        ("split", [2.0, 0.0, 1.0]),
        ("cover", [30.0, 0.0, 10.0]),
        ("mean_gain", [3.5, 0.0, 1.0]),
        ("mean_cover", [15.0, 0.0, 10.0]),
    ],
)
def test_each_kind_on_three_stumps(kind: str, values: list[float]) -> None:
    np.testing.assert_array_equal(feature_importances(ENSEMBLE, kind, normalise=False), values)
    np.testing.assert_allclose(feature_importances(ENSEMBLE, kind), np.array(values) / sum(values), rtol=1e-15)


def test_gain_is_what_is_asked_for_if_nothing_is() -> None:
    np.testing.assert_array_equal(feature_importances(ENSEMBLE), feature_importances(ENSEMBLE, "gain"))


@pytest.mark.parametrize("kind", KINDS)
def test_no_split_at_all(kind: str) -> None:
    for ensemble in (replace(ENSEMBLE, trees=(), factors=()), random_ensemble(1, max_leaves=1)):
        importances = feature_importances(ensemble, kind)
        assert importances.dtype == np.float64
        assert importances.tolist() == [0.0] * ensemble.cuts.n_columns


def test_splits_without_gain_do_not_divide_by_zero() -> None:
    nothing = replace(ENSEMBLE, trees=(stump(1, 0.0, 5),), factors=(0.1,))
    assert feature_importances(nothing, "gain").tolist() == [0.0, 0.0, 0.0]
    assert feature_importances(nothing, "split").tolist() == [0.0, 1.0, 0.0]


def test_features_that_share_a_column_count_together() -> None:
    shared = replace(ENSEMBLE, cuts=replace(CUTS, source=np.array([0, 0, 1], np.int32)))
    assert feature_importances(shared, "split", normalise=False).tolist() == [2.0, 1.0]
    two = replace(ENSEMBLE, cuts=replace(CUTS, source=np.array([0, 1, 1], np.int32)))
    assert feature_importances(two, "gain", normalise=False).tolist() == [7.0, 1.0]


def test_another_kind_is_refused() -> None:
    with pytest.raises(InputError, match=r"kind: importances are 'gain', 'split', .*; got 'weight'\."):
        feature_importances(ENSEMBLE, "weight")
