"""Predictions of a process's first rows: by NumPy, for a limited amount of work, with the bytes of the kernels."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
from scipy import sparse

import gpuboost as gb
from gpuboost.api import prediction
from gpuboost.backends.cpu.backend import Cpu
from gpuboost.backends.prediction.first_rows import ROWS_TO_PREPARE, FirstRows
from gpuboost.types import Ensemble


def fitted(rng: np.random.Generator) -> tuple[gb.GradientBoostingRegressor, np.ndarray]:
    x = rng.normal(size=(60, 3))
    return gb.GradientBoostingRegressor(n_estimators=4, device="cpu", n_jobs=1).fit(x, x[:, 0]), x


def test_it_predicts_no_more_than_its_work_and_only_dense_floats(rng: np.random.Generator) -> None:
    model, x = fitted(rng)
    some = FirstRows(work=2 * (len(x) + ROWS_TO_PREPARE) * 4)
    for other in (sparse.csr_matrix(x), x.astype(np.int64), x[:, :2]):
        assert some.scores(model.ensemble_, other) is None
    found = [some.scores(model.ensemble_, x) for _ in range(4)]
    assert [scores is None for scores in found] == [False, False, True, True]
    assert found[0].tobytes() == Cpu(1).predict(model.ensemble_, x).tobytes()


def test_an_estimator_asks_it_before_a_backend(rng: np.random.Generator, monkeypatch: pytest.MonkeyPatch) -> None:
    model, x = fitted(rng)
    monkeypatch.setattr(prediction, "FIRST", FirstRows(work=-1))
    by_kernels = model.predict(x)
    asked: list[Ensemble] = []

    class Recorded(FirstRows):
        def scores(self, ensemble: Ensemble, x: object) -> object:
            asked.append(ensemble)
            return super().scores(ensemble, x)

    monkeypatch.setattr(prediction, "FIRST", Recorded())
    assert model.predict(x).tobytes() == by_kernels.tobytes()
    assert len(asked) == 1


@pytest.mark.slow  # a process; every day tests/models/test_predictor.py starts one for such a model
def test_a_loaded_model_predicts_a_row_without_numba(rng: np.random.Generator, tmp_path: Path) -> None:
    model, _ = fitted(rng)
    model.save_model(tmp_path / "model.json")
    code = (
        "import sys, numpy, gpuboost; model = gpuboost.load_model(sys.argv[1]); "
        "print(model.predict(numpy.zeros((1, 3)))[0].hex(), 'numba' in sys.modules)"
    )
    done = subprocess.run(
        [sys.executable, "-c", code, str(tmp_path / "model.json")], capture_output=True, text=True, check=True
    )
    assert done.stdout.split() == [float(model.predict(np.zeros((1, 3)))[0]).hex(), "False"]
