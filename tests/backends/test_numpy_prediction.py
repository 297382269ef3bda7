"""Predictions before the kernels are compiled: the same bytes, by NumPy, for a limited number of rows."""

from __future__ import annotations

import numpy as np
import pytest
from scipy import sparse

import gpuboost as gb
from gpuboost.backends.cpu import numpy_prediction
from gpuboost.backends.cpu.backend import Cpu
from gpuboost.backends.cpu.compilation import background
from gpuboost.backends.cpu.compilation.background import PREDICTION
from gpuboost.backends.cpu.numpy_prediction import NumpyPrediction
from gpuboost.kernels.prediction import few_rows, predict
from gpuboost.types import Ensemble


class Compilation:
    """Kernels that are not on disk until ``ready``."""

    def __init__(self) -> None:
        self.ready, self.asked = False, list[str]()

    def request(self, kind: str) -> bool:
        self.asked.append(kind)
        return self.ready


@pytest.fixture
def compilation(monkeypatch: pytest.MonkeyPatch) -> Compilation:
    made = Compilation()
    monkeypatch.setattr(numpy_prediction, "BACKGROUND", made)
    return made


def fitted(rng: np.random.Generator) -> tuple[Ensemble, np.ndarray]:
    """A model of three classes of one column of categories and three of numbers, with missing values; and its rows."""
    x = rng.normal(size=(200, 4))
    x[:, 0] = rng.integers(0, 5, 200)
    x[rng.random(x.shape) < 0.1] = np.nan
    model = gb.GradientBoostingClassifier(n_estimators=3, categorical_features=[0], device="cpu", n_jobs=1)
    model.fit(x, rng.integers(0, 3, 200))
    return model.ensemble_, np.vstack([x[:20], np.full((1, 4), np.nan), [[9.0, 0.0, 1e30, -1e30]]])


@pytest.mark.parametrize("dtype", [np.float64, np.float32])
def test_scores_are_those_of_the_kernels_to_the_last_bit(
    dtype: type, rng: np.random.Generator, compilation: Compilation
) -> None:
    ensemble, x = fitted(rng)
    x = x.astype(dtype)
    backend = Cpu(1)
    before = backend.predict(ensemble, x)
    compilation.ready = True
    assert before.tobytes() == backend.predict(ensemble, x).tobytes()
    assert compilation.asked == [PREDICTION, PREDICTION]
    backend.predict(ensemble, x)
    assert len(compilation.asked) == 2  # no more questions, once the kernels are in use


def test_numpy_predicts_no_more_than_its_work_and_only_dense_floats(
    rng: np.random.Generator, compilation: Compilation
) -> None:
    ensemble, x = fitted(rng)
    some = NumpyPrediction(work=2 * len(x) * len(ensemble.trees))
    for other in (sparse.csr_matrix(np.nan_to_num(x)), np.zeros_like(x, np.int64), x[:, :3]):
        assert some.scores(ensemble, other) is None
    assert not compilation.asked
    assert [some.scores(ensemble, x) is None for _ in range(4)] == [False, False, True, True]


def test_the_compiled_kernels_are_those_that_dense_rows_ask_for(monkeypatch: pytest.MonkeyPatch) -> None:
    noted: list[str] = []
    monkeypatch.setattr(background, "note", noted.append)
    background.compile_kernel(PREDICTION)
    assert noted == [PREDICTION]
    kernels = (
        few_rows.add_rows,
        predict.code_dense,
    )
    before = [len(kernel.signatures) for kernel in kernels]
    monkeypatch.setattr(numpy_prediction, "BACKGROUND", type("Ready", (), {"request": lambda self, kind: True})())
    rng = np.random.default_rng(0)
    model = gb.GradientBoostingRegressor(n_estimators=2, device="cpu", n_jobs=1).fit(
        rng.normal(size=(50, 2)), np.arange(50)
    )
    for dtype in (np.float64, np.float32):
        for n in (1, 40):
            model.predict(np.zeros((n, 2), dtype))
    assert [len(kernel.signatures) for kernel in kernels] == before
