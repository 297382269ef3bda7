"""Prediction on a device: many rows and few rows, regular and irregular forests, and what is kept between calls."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from emulator import emulated_runtime
from support.examples import daily
from support.strategies import probing_rows, random_ensemble

from gpuboost.backends.cuda.backend import Cuda
from gpuboost.backends.cuda.prediction import forest as forests
from gpuboost.backends.cuda.prediction import predict
from gpuboost.backends.cuda.prediction.forest import CompleteForest
from gpuboost.backends.reference.backend import Reference
from gpuboost.types import Ensemble


def forest(k: int, scale: float, *, regular: bool) -> Ensemble:
    """Trees of the outputs in turn; or with the trees of one output behind each other."""
    ensemble = random_ensemble(
        3, rounds=5, n_outputs=k, max_leaves=20, max_depth=9, scale=scale, categorical=0.25 * (k > 1)
    )
    if regular:
        return ensemble
    order = np.argsort([tree.output for tree in ensemble.trees], kind="stable")
    return replace(
        ensemble,
        trees=tuple(ensemble.trees[i] for i in order),
        factors=tuple(ensemble.factors[i] for i in order),
    )


WAYS = {"predict_complete": 1_300, "predict_staged": 1_300, "predict": 300, "predict_few": 300}  # and numbers of rows


@pytest.mark.parametrize("kernel", WAYS)
@pytest.mark.parametrize("regular", [True, False])
@pytest.mark.parametrize(("k", "scale"), [(1, 1.0), (3, 1.0), (3, 0.5)])
def test_scores_are_those_of_the_reference(
    k: int, scale: float, regular: bool, kernel: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(predict, "ROWS_PER_SM", 1_000 if kernel == "predict_few" else 0)
    ensemble, runtime = forest(k, scale, regular=regular), emulated_runtime()
    if kernel == "predict":
        monkeypatch.setattr(runtime, "block_memory", 1024)
    if kernel == "predict_staged":
        monkeypatch.setattr(forests, "DEEPEST", 1)
    machine = Cuda(runtime)
    x = probing_rows(ensemble, WAYS[kernel], 5)
    scores = machine.to_host(machine.predict(ensemble, x))
    assert scores.tobytes() == Reference().predict(ensemble, x).tobytes()
    assert runtime.cp.counts[f"kernel {kernel}"] > 0


def test_trees_of_any_depth_as_complete_trees(monkeypatch: pytest.MonkeyPatch) -> None:
    """With categories, trees of one leaf, and more trees than there is room for at once."""
    monkeypatch.setattr(predict, "ROWS_PER_SM", 0)
    shallow = random_ensemble(8, rounds=9, max_leaves=1, categorical=0.5)
    deep = random_ensemble(8, rounds=60, max_leaves=90, max_depth=10, categorical=0.5)
    ensemble = replace(deep, trees=(*shallow.trees, *deep.trees), factors=(*shallow.factors, *deep.factors))
    runtime = emulated_runtime()
    machine, x = Cuda(runtime), probing_rows(ensemble, 70, 5)
    depths = CompleteForest.of(ensemble, runtime).depth.get()
    assert set(depths[:9]) == {0}
    assert len(set(depths)) > 3
    assert (1 << depths).sum() > predict.COMPLETE_STAGE
    scores = machine.to_host(machine.predict(ensemble, x))
    assert scores.tobytes() == Reference().predict(ensemble, x).tobytes()
    assert runtime.cp.counts["kernel predict_complete"] > 0


@pytest.mark.parametrize("rows_per_sm", daily([0, 32], 1))
def test_more_trees_than_shared_memory_holds(rows_per_sm: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """2,048 values, or 4,096 nodes, are held at once."""
    monkeypatch.setattr(predict, "ROWS_PER_SM", rows_per_sm)
    ensemble = random_ensemble(4, n_columns=2, rounds=2_100, n_outputs=2, max_leaves=3)
    machine = Cuda(emulated_runtime())
    x = probing_rows(ensemble, 3, 1)
    scores = machine.to_host(machine.predict(ensemble, x))
    assert scores.tobytes() == Reference().predict(ensemble, x).tobytes()


@pytest.mark.parametrize("scale", [1.0, 0.5])
def test_first_rounds_are_no_other_model(scale: float, monkeypatch: pytest.MonkeyPatch) -> None:
    """Trees of a model are uploaded once, also for predictions by its first rounds; not for other factors."""
    machine, ensemble, made = Cuda(emulated_runtime()), random_ensemble(8, rounds=6, n_outputs=2, scale=scale), []
    make = predict.DeviceForest.of
    monkeypatch.setattr(predict.DeviceForest, "of", lambda one, runtime: made.append(one) or make(one, runtime))
    x = probing_rows(ensemble, 20, 2)
    other = replace(ensemble, factors=tuple(2.0 * factor for factor in ensemble.factors))
    of_other_trees = replace(ensemble, trees=ensemble.trees[2:] + ensemble.trees[:2])
    for asked in (ensemble, ensemble.first(3), ensemble.first(0), ensemble, other, other.first(2), of_other_trees):
        found = machine.to_host(machine.predict(asked, x))
        assert found.tobytes() == Reference().predict(asked, x).tobytes()
        leaves = machine.to_host(machine.leaves(asked, x))
        assert leaves.tobytes() == Reference().leaves(asked, x).tobytes()
    assert made == [ensemble, other, of_other_trees]


def test_models_of_more_columns_follow_those_of_few(monkeypatch: pytest.MonkeyPatch) -> None:
    """The columns of a block's rows lie in shared memory, of which the kernel is given a limit once."""
    monkeypatch.setattr(predict, "ROWS_PER_SM", 0)
    machine = Cuda(emulated_runtime())
    for columns in (3, 30, 3):
        ensemble = random_ensemble(3, n_columns=columns, rounds=3)
        x = probing_rows(ensemble, 40, 5)
        scores = machine.to_host(machine.predict(ensemble, x))
        assert scores.tobytes() == Reference().predict(ensemble, x).tobytes()


def test_cuts_are_uploaded_once(monkeypatch: pytest.MonkeyPatch) -> None:
    runtime = emulated_runtime()
    machine, ensemble = Cuda(runtime), random_ensemble(6)
    x = probing_rows(ensemble, 20, 2)
    uploads: list[int] = []
    upload = runtime.upload

    def counted(host: np.ndarray) -> object:
        uploads.append(host.nbytes)
        return upload(host)

    monkeypatch.setattr(runtime, "upload", counted)
    first = machine.to_host(machine.predict(ensemble, x))
    before = len(uploads)
    second = machine.to_host(machine.predict(ensemble, x))
    assert uploads[before:] == [x.nbytes]
    assert first.tobytes() == second.tobytes()
    other = random_ensemble(7)
    machine.predict(other, probing_rows(other, 20, 2))
    assert len(uploads) > before + 2
