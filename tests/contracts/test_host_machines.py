"""Machines whose arrays are NumPy's: the layout of what they return, and arguments that no other verb has made."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from support.builders import grow, random_case, random_gradients, sparse

from gpuboost import losses
from gpuboost.backends import get
from gpuboost.backends.cpu.backend import Cpu
from gpuboost.backends.protocol import Backend
from gpuboost.boosting import boost
from gpuboost.errors import InputError
from gpuboost.growth import DepthWise
from gpuboost.keys import Key
from gpuboost.recipe import Recipe
from gpuboost.testing.cases import stump
from gpuboost.types import Candidates, Gradients, Limits, Sample, Target


def test_a_machine_is_found_by_its_name(backend: Backend) -> None:
    assert isinstance(get(backend.name, 1), type(backend))


def test_bins_are_laid_out_by_row_and_by_column(backend: Backend) -> None:
    case = random_case(0, 40, 5)
    for x in (case.x, np.asfortranarray(case.x), np.repeat(case.x, 2, axis=0)[::2], case.x.astype(np.float32)):
        bins = backend.quantise(x, case.data.cuts)
        assert bins.shape == (40, 5)
        assert bins.rows.dtype == bins.columns.dtype == np.uint8
        assert np.array_equal(bins.columns, bins.rows.T)
        assert bins.rows.flags.c_contiguous
        assert bins.columns.flags.c_contiguous


@pytest.mark.parametrize("k", [1, 3])
@pytest.mark.parametrize("whole", [False, True])
def test_weighing_takes_the_rows_of_the_sample(backend: Backend, k: int, whole: bool) -> None:
    rng = np.random.default_rng(2)
    g, h = rng.normal(size=(2, k, 50)).astype(np.float32)
    m = rng.integers(1, 9, 50).astype(np.int32) if whole else None
    sample = Sample(np.array([0, 3, 49], np.int32), np.array([2.0, 3.0, 4.0], np.float32))
    found = backend.weigh(Gradients(g, h, m), sample)
    for values, of_all in ((found.g, g), (found.h, h)):
        assert values.dtype == np.float32
        assert np.array_equal(values, of_all[:, [0, 3, 49]] * np.float32([2.0, 3.0, 4.0]))
    assert found.multiplicity is None if m is None else np.array_equal(found.multiplicity, m[[0, 3, 49]])


def test_gradients_have_the_multiplicity_of_the_data(backend: Backend) -> None:
    data = random_case(1, 40, 2, weights="whole").data
    found = backend.gradients(losses.SquaredError(), np.zeros((1, 40)), data, None)
    assert found.multiplicity is data.multiplicity


def test_a_tree_of_a_sample_knows_no_leaves_of_rows(backend: Backend) -> None:
    data = random_case(5, 200, 4).data
    rows = np.arange(0, 200, 2, dtype=np.int32)
    gradients = random_gradients(np.random.default_rng(5), 200, "plain")
    for bins in (data, sparse(data)):
        found = grow(backend, DepthWise(Limits(8, 3)), bins, gradients, rows)
        assert found.leaf_of_row is None
        assert found.sums is None
        assert found.nodes.count[0] == 100
        assert rows.tolist() == list(range(0, 200, 2))


def test_a_leaf_without_rows_has_the_quantile_0(backend: Backend) -> None:
    data = replace(random_case(0, 5, 1).data, y=np.array([1.0, 5.0, 3.0, 10.0, 20.0]))
    data = replace(data, multiplicity=np.array([1, 1, 1, 1, 3], np.int32))
    tree, scores = stump(0, 0, False, (7.0, 7.0)), np.full((1, 5), 1.0)
    found = backend.leaf_quantiles(tree, np.array([1, 1, 1, 2, 2], np.int32), losses.AbsoluteError(), scores, data)
    assert found.value.tolist() == [0.0, 2.0, 19.0]
    assert tree.value.tolist() == [0.0, 7.0, 7.0]
    empty = backend.leaf_quantiles(tree, np.ones(5, np.int32), losses.AbsoluteError(), scores, data)
    assert empty.value.tolist() == [0.0, 9.0, 0.0]


def test_a_line_search_of_the_absolute_error_is_a_median_of_ratios(backend: Backend) -> None:
    data = replace(random_case(0, 5, 1).data, y=np.array([1.0, 2.0, 3.0, 8.0, 10.0]))
    data = replace(data, multiplicity=np.array([1, 1, 1, 1, 3], np.int32))
    leaf, tree = np.array([1, 1, 1, 2, 2], np.int32), stump(0, 0, False, (1.0, 4.0))
    found = backend.line_search(tree, leaf, losses.AbsoluteError(), np.zeros((1, 5)), data, False)
    assert found.value.tolist() == [0.0, 2.5, 10.0]
    assert tree.value.tolist() == [0.0, 1.0, 4.0], "the tree that is given stays as it is"
    downhill = backend.line_search(
        stump(0, 0, False, (-0.3, 1.0)), leaf, losses.SquaredError(), np.zeros((1, 5)), data, True
    )
    assert downhill.value == pytest.approx([0.0, 0.0, 9.5], rel=1e-6)


def test_a_random_shape_is_drawn_without_a_look_at_the_data(backend: Backend) -> None:
    data = random_case(3, 200, 4).data
    gradients = random_gradients(np.random.default_rng(3), 200, "plain")
    found = grow(backend, DepthWise(Limits(8, 3)), data, gradients)
    assert not found.blind
    every = Candidates(np.arange(4, dtype=np.int32))
    assert backend.grow(data, Target(5, None, gradients), 0, every, Limits(8, 3), Key.root(1)).blind


def test_the_wrong_number_of_columns_is_refused() -> None:
    case = random_case(8, 60, 4)
    ensemble = boost(Recipe(losses.SquaredError(), 1), case.data, Cpu(1))
    with pytest.raises(InputError, match="x: the model was trained on 4 features; this has 3"):
        Cpu().predict(ensemble, case.x[:, :3])
