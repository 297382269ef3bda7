"""What the CUDA backend does row by row: bins, scales, samples, noise, leaves and predictions, verb by verb."""

from __future__ import annotations

from dataclasses import replace
from functools import cache
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import sparse
from support.builders import GRADIENT_KINDS, random_case, random_gradients
from support.examples import examples
from support.strategies import probing_rows, random_cuts, random_ensemble
from support.training import device

from gpuboost import losses
from gpuboost.backends.cuda import target as cuda_target
from gpuboost.backends.cuda.backend import Cuda
from gpuboost.backends.cuda.bins import DeviceBins
from gpuboost.backends.cuda.device.runtime import source
from gpuboost.backends.cuda.trees.tree import NODE, STATE, as_records
from gpuboost.backends.cuda.trees.tree_ring import HEAD
from gpuboost.backends.numerics.exact_sums import extent
from gpuboost.backends.numerics.fixed_point import fixed_point_scale
from gpuboost.backends.reference.backend import Reference
from gpuboost.errors import DeviceError, InputError
from gpuboost.keys import Key
from gpuboost.types import Cuts, Ensemble, Gradients, Noise

Array = np.ndarray


@cache
def cuda() -> Cuda:
    return Cuda(device())


def host(array: Any) -> Array:
    return device().download(array)


def states_of(array: Any) -> Array:
    """(k,) STATE"""
    return as_records(host(array), STATE)


def rows_of(bins: DeviceBins) -> Array:
    """(n, d) uint8 from the tiles; their pad bytes are looked at too."""
    tiles = host(bins.rows)[: bins.tiles * bins.n * bins.width].reshape(bins.tiles, bins.n, bins.width)
    rows = tiles.transpose(1, 0, 2).reshape(bins.n, bins.tiles * bins.width)
    assert not rows[:, bins.d :].any()
    return rows[:, : bins.d]


# the data


@settings(max_examples=examples(25), deadline=None, derandomize=True)
@given(st.integers(0, 2**32 - 1), st.integers(1, 70), st.integers(0, 300), st.sampled_from([np.float32, np.float64]))
def test_bins_are_those_of_reference_in_both_layouts(seed: int, n_columns: int, n: int, dtype: Any) -> None:
    rng = np.random.default_rng(seed)
    cuts = random_cuts(rng, n_columns)
    x = probing_rows(Ensemble(np.zeros(1), cuts), n, seed, dtype)
    x = np.asfortranarray(x) if seed % 2 else x
    expected = Reference().quantise(x, cuts)
    for found in (cuda().quantise(x, cuts), cuda().quantise(device().upload(np.ascontiguousarray(x)), cuts)):
        assert found.shape == (n, cuts.n_features)
        assert rows_of(found).tobytes() == expected.rows.tobytes()
        assert host(found.columns)[: n * cuts.n_features].tobytes() == expected.columns.tobytes()


def test_subnormal_values_are_not_taken_for_zero() -> None:
    tiny = np.array([-3e-45, -1e-45, 0.0, 1e-45, 3e-45, 1e-38, 2e-38], np.float32)
    cuts = Cuts((np.unique(tiny.astype(np.float64)[:-1]),), (None,))
    found = cuda().quantise(tiny.reshape(-1, 1), cuts)
    assert rows_of(found)[:, 0].tolist() == [0, 1, 2, 3, 4, 5, 6]


def test_values_from_the_host_may_come_in_several_pieces(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("gpuboost.backends.cuda.bins.CHUNK_BYTES", 128 * 8 * 3)
    rng = np.random.default_rng(1)
    cuts = random_cuts(rng, 3)
    x = probing_rows(Ensemble(np.zeros(1), cuts), 700, 1)
    expected = Reference().quantise(x, cuts)
    assert rows_of(cuda().quantise(x, cuts)).tobytes() == expected.rows.tobytes()
    assert rows_of(cuda()._arrays.bins(expected)).tobytes() == expected.rows.tobytes()


def test_sparse_values_are_laid_out_densely() -> None:
    rng = np.random.default_rng(4)
    x = np.where(rng.random((400, 37)) < 0.1, np.round(rng.normal(size=(400, 37)), 1), 0.0)
    x[rng.random(x.shape) < 0.01] = np.nan
    cuts = Cuts(tuple(np.unique(np.round(rng.normal(size=9), 1)) for _ in range(37)), (None,) * 37)
    expected = Reference().quantise(x, cuts)
    for given_as in (sparse.csr_matrix(x), sparse.csc_array(x), sparse.coo_matrix(x)):
        found = cuda().quantise(given_as, cuts)
        assert rows_of(found).tobytes() == expected.rows.tobytes()
        assert host(found.columns).tobytes() == expected.columns.tobytes()


def test_what_does_not_fit_is_refused_with_the_numbers() -> None:
    cuts = Cuts((np.zeros(1),) * 1_000, (None,) * 1_000)
    huge = SimpleNamespace(shape=(50_000_000, 1_000), dtype=np.dtype(np.float32), tocsr=lambda: huge)
    with pytest.raises(DeviceError, match=r"50,000,000 rows and 1,000 features take 101,200,000,000 bytes.*are free"):
        cuda().quantise(huge, cuts)


# the target


@settings(max_examples=examples(40), deadline=None, derandomize=True)
@given(st.integers(0, 2**32 - 1), st.sampled_from(GRADIENT_KINDS), st.sampled_from([0, 1, 15, 300, 4096, 4097, 70_000]))
def test_scales_are_those_of_reference(seed: int, kind: str, n: int) -> None:
    rng = np.random.default_rng(seed)
    m = rng.integers(1, 4097, n).astype(np.int32) if seed % 2 else None
    gradients = random_gradients(rng, n, kind, m)
    found = states_of(cuda()._targets.given(gradients).states)[0]
    times = np.ones(n, np.int64) if m is None else m.astype(np.int64)
    most, weight = float(times.max(initial=1)), float(times.sum())
    for name, values, bits in (("g", gradients.g[0], 31), ("h", gradients.h[0], 32)):
        scale = fixed_point_scale(*extent(values, times), most, weight, bits)
        assert found[f"scale_{name}"] == scale
        assert found[f"unit_{name}"] == 1.0 / scale
    assert (found["m"], found["weight"], found["error"]) == (n, times.sum(), 0)
    if not found["wide"]:
        q = [np.abs(np.rint(x[0].astype(np.float64) * found[s]) * times) for x, s in
             ((gradients.g, "scale_g"), (gradients.h, "scale_h"))]  # fmt: skip
        assert q[0].max(initial=0) <= 32767
        assert q[1].max(initial=0) <= 65535


@pytest.mark.parametrize("loss", [losses.Logistic(), losses.Softmax(3)], ids=lambda loss: loss.name)
@pytest.mark.parametrize("weights", ["none", "real", "whole"])
@pytest.mark.parametrize("curvature", [None, 2.0])
def test_gradients_and_loss_values(loss: Any, weights: str, curvature: float | None) -> None:
    data = random_case(2, 5_000, 2, target="binary", weights=weights).data
    scores = np.random.default_rng(0).normal(size=(loss.n_outputs, data.n_rows))
    expected = Reference().gradients(loss, scores, data, curvature)
    found = cuda().gradients(loss, device().upload(scores), data, curvature)
    assert host(found.g).tobytes() == expected.g.tobytes()
    assert host(found.h).tobytes() == expected.h.tobytes()
    for weight in (None, data.row_weight()):
        value = Reference().loss_value(loss, scores, data.y, weight)
        assert cuda().loss_value(loss, scores, data.y, weight) == value


@pytest.mark.parametrize("loss", [losses.LogNormalNLL(), losses.NegativeBinomialNLL()], ids=lambda loss: loss.name)
def test_gradients_of_formulas_with_loops(loss: Any) -> None:
    """Those of the gamma function; and scores beyond the bounds of a loss."""
    rng = np.random.default_rng(0)
    data = random_case(2, 3_000, 2, target="positive").data
    data = replace(data, y=np.floor(data.y * 10.0) + 1.0)
    scores = rng.normal(size=(2, 3_000)) * np.where(np.arange(3_000) % 2, 3.0, 60.0)
    expected = Reference().gradients(loss, scores, data, None)
    found = cuda().gradients(loss, device().upload(scores), data, None)
    assert host(found.g).tobytes() == expected.g.tobytes()
    assert host(found.h).tobytes() == expected.h.tobytes()
    assert cuda().loss_value(loss, scores, data.y, None) == Reference().loss_value(loss, scores, data.y, None)


def test_subnormal_gradients_are_kept() -> None:
    data = random_case(2, 200, 1).data
    scores = (data.y + np.random.default_rng(1).normal(size=200) * 1e-41)[None]
    tiny = replace(data, y=data.y * 0.0, weight=np.full(200, 1e-40))
    expected = Reference().gradients(losses.SquaredError(), scores, tiny, None)
    found = cuda().gradients(losses.SquaredError(), device().upload(scores), tiny, None)
    assert 0.0 < np.abs(expected.g).max() < 1e-38
    assert host(found.g).tobytes() == expected.g.tobytes()


@settings(max_examples=examples(25), deadline=None, derandomize=True)
@given(st.integers(0, 2**62), st.sampled_from([0.001, 0.1, 0.5, 0.93]), st.sampled_from([1, 7, 4095, 4097, 30_000]))
def test_samples_are_those_of_reference(seed: int, probability: float, n: int) -> None:
    rng, key = np.random.default_rng(seed), Key.root(seed) / "rows" / (seed % 100)
    expected = Reference().sample(probability, n, key)
    found = cuda().sample(probability, n, key)
    count = int(host(found.m)[0])
    assert host(found.rows)[:count].tobytes() == expected.rows.tobytes()
    m = rng.integers(1, 9, n).astype(np.int32) if seed % 2 else None
    g, h = (
        rng.normal(size=(2, n)).astype(np.float32),
        rng.exponential(size=(2, n)).astype(np.float32) * np.float32(1e-38),
    )
    drawn = Reference().weigh(Gradients(g, h, m), expected)
    weighed = cuda().weigh(Gradients(g, h, m), found)
    assert host(weighed.g)[:, :count].tobytes() == drawn.g.tobytes()
    assert host(weighed.h)[:, :count].tobytes() == drawn.h.tobytes()
    measured = states_of(cuda()._targets.given(Gradients(drawn.g, drawn.h, drawn.multiplicity)).states)
    for name in ("scale_g", "scale_h", "unit_g", "unit_h", "weight", "m", "wide", "error"):
        assert states_of(weighed.states)[name].tobytes() == measured[name].tobytes(), name


@pytest.mark.parametrize("d", [1, 5, 13, 33, 70])
def test_drawn_rows_are_gathered_in_both_layouts(d: int) -> None:
    data = random_case(d, 900, d).data
    bins = cuda()._arrays.bins(data.bins)
    sample = cuda().sample(0.4, 900, Key.root(3) / "rows" / 1)
    drawn = Reference().sample(0.4, 900, Key.root(3) / "rows" / 1).rows
    found = cuda()._targets.gather(bins, sample)
    assert rows_of(found)[: len(drawn)].tobytes() == data.bins.rows[drawn].tobytes()
    columns = host(found.columns).reshape(d, found.n)[:, : len(drawn)]
    assert columns.tobytes() == np.ascontiguousarray(data.bins.columns[:, drawn]).tobytes()


def test_a_sample_that_finds_no_room_is_reported(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(cuda_target, "rows_drawn_at_most", lambda probability, n: 128)
    found = cuda().sample(0.5, 1_000, Key.root(1) / "rows" / 0)
    assert host(found.m)[0] == 0
    assert host(found.lost)[0] == 1


@pytest.mark.parametrize("drawn", [False, True])
@pytest.mark.parametrize("weights", ["none", "whole"])
def test_noise_is_that_of_reference(drawn: bool, weights: str) -> None:
    data = random_case(3, 6_000, 2, weights=weights).data
    rng, noise = np.random.default_rng(2), Noise(1.7, Key.root(2**40 + 3) / "structure noise" / 9)
    gradients = Gradients(
        rng.normal(size=(2, 6_000)).astype(np.float32), rng.exponential(size=(2, 6_000)).astype(np.float32),
        data.multiplicity,
    )  # fmt: skip
    found, rows, count = cuda()._targets.given(gradients), None, 6_000
    if drawn:
        key = Key.root(1) / "rows" / 0
        sample, on_device = Reference().sample(0.3, 6_000, key), cuda().sample(0.3, 6_000, key)
        gradients, found = Reference().weigh(gradients, sample), cuda().weigh(found, on_device)
        rows, count = sample.rows, len(sample.rows)
    expected = Reference().noise(gradients, rows, noise)
    noisy = cuda().noise(found, rows, noise)
    assert host(noisy.g)[:, :count].tobytes() == expected.g.tobytes()
    measured = states_of(cuda()._targets.given(expected).states)
    for name in ("scale_g", "scale_h", "weight", "m"):
        assert states_of(noisy.states)[name].tobytes() == measured[name].tobytes(), name


# the model


@settings(max_examples=examples(25), deadline=None, derandomize=True)
@given(st.integers(0, 2**32 - 1))
def test_predictions_are_those_of_reference(seed: int) -> None:
    ensemble = random_ensemble(seed, n_outputs=1 + seed % 3, scale=1.0 if seed % 2 else 0.7)
    x = probing_rows(ensemble, 40, seed, np.float32 if seed % 5 == 0 else np.float64)
    reference, backend = Reference(), cuda()
    assert backend.predict(ensemble, x).tobytes() == reference.predict(ensemble, x).tobytes()
    assert backend.leaves(ensemble, x).tobytes() == reference.leaves(ensemble, x).tobytes()
    staged = list(zip(backend.staged_predict(ensemble, x), reference.staged_predict(ensemble, x), strict=True))
    assert all(found.tobytes() == expected.tobytes() for found, expected in staged)
    on_device = backend.predict(ensemble, device().upload(np.ascontiguousarray(x)))
    assert host(on_device).tobytes() == reference.predict(ensemble, x).tobytes()


@settings(max_examples=examples(12), deadline=None, derandomize=True)
@given(st.integers(0, 2**32 - 1))
def test_contributions_and_interactions_are_those_of_reference(seed: int) -> None:
    ensemble = random_ensemble(seed, n_columns=1 + seed % 6, n_outputs=1 + seed % 2, max_leaves=2 + seed % 20)
    x = probing_rows(ensemble, 30, seed, np.float32 if seed % 5 == 0 else np.float64)
    given = device().upload(np.ascontiguousarray(x))
    for verb in ("contributions", "interactions"):
        expected, ask = getattr(Reference(), verb)(ensemble, x).tobytes(), getattr(cuda(), verb)
        assert ask(ensemble, x).tobytes() == expected
        assert host(ask(ensemble, given)).tobytes() == expected


def test_contributions_of_rows_of_the_host_come_in_parts(monkeypatch: pytest.MonkeyPatch) -> None:
    ensemble, whole = random_ensemble(8), cuda()
    x = np.nan_to_num(probing_rows(ensemble, 40, 9))
    expected = whole.contributions(ensemble, x), whole.interactions(ensemble, x)
    monkeypatch.setattr("gpuboost.backends.cuda.prediction.contributions.ROOM", 1500)
    assert whole.contributions(ensemble, sparse.csr_matrix(x)).tobytes() == expected[0].tobytes()
    assert whole.interactions(ensemble, x).tobytes() == expected[1].tobytes()
    assert whole.interactions(ensemble, x[:0]).shape == (0, *expected[1].shape[1:])


@pytest.mark.parametrize("verb", ["contributions", "interactions"])
def test_explanations_of_another_number_of_columns_are_refused(verb: str) -> None:
    ensemble = random_ensemble(8)
    with pytest.raises(InputError, match="the model was trained on"):
        getattr(cuda(), verb)(ensemble, np.zeros((3, ensemble.cuts.n_columns + 1)))


def test_another_number_of_columns_is_refused() -> None:
    ensemble = random_ensemble(8)
    with pytest.raises(InputError, match="the model was trained on"):
        cuda().predict(ensemble, np.zeros((3, ensemble.cuts.n_columns + 1)))


def test_trees_of_the_host_are_added_to_scores_of_the_device() -> None:
    ensemble = random_ensemble(12, n_outputs=2)
    x = probing_rows(ensemble, 90, 3)
    bins = Reference().quantise(x, ensemble.cuts)
    scores = np.zeros((ensemble.n_outputs, 90))
    found = device().upload(scores)
    for tree in ensemble.trees:
        Reference().add_tree(scores, tree, 0.3, bins, ensemble.cuts)
        cuda().add_tree(found, tree, 0.3, cuda().quantise(x, ensemble.cuts), ensemble.cuts)
    assert host(found).tobytes() == scores.tobytes()


def test_records_have_the_sizes_that_the_kernels_give_them() -> None:
    text = source(
        "common/common.cuh",
        "common/tree.cuh",
        "growth/record.cuh",
        "prediction/walk.cuh",
        "leaves/leaves.cu",
    ) + (
        'extern "C" __global__ void sizes(int *out)\n{\n    out[0] = sizeof(Head);\n    out[1] = sizeof(Step);\n'
        "    out[2] = __builtin_offsetof(Head, n_nodes);\n    out[3] = __builtin_offsetof(Head, error);\n}\n"
    )
    out = device().zeros(4, np.int32)
    device().kernel(text, "sizes")((1,), (1,), (out,))
    assert host(out).tolist() == [HEAD.itemsize, 16, HEAD.fields["n_nodes"][1], HEAD.fields["error"][1]]
    assert NODE.itemsize == 128
    assert STATE.itemsize % 8 == 0
