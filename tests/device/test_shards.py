"""Rows shared out to the GPUs of this machine: the bytes of the CPU, by NCCL where there are two GPUs that have it."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import gpuboost as gb
from gpuboost.backends.cuda.device.collective import nccl_of

pytestmark = [pytest.mark.cuda, pytest.mark.usefixtures("real_gpu")]

RNG = np.random.default_rng(0)
X = RNG.normal(size=(60_000, 12))
Y = X[:, 0] + X[:, 1] * X[:, 2] + RNG.normal(size=len(X))


@pytest.mark.parametrize("shards", [1, 2, 4])
@pytest.mark.parametrize("params", [{}, {"growth": "leafwise"}, {"loss": "absolute_error"}], ids=str)
def test_shards_are_one_machine(shards: int, params: dict[str, Any]) -> None:
    given = {"n_estimators": 10, "random_state": 0, "validation_fraction": 0.1, **params}
    many = gb.GradientBoostingRegressor(device="cuda", execution=gb.DataParallel(shards), **given).fit(X, Y)
    one = gb.GradientBoostingRegressor(device="cpu", **given).fit(X, Y)
    assert many.predict(X).tobytes() == one.predict(X).tobytes()
    assert many.evals_result_ == one.evals_result_


def test_with_a_gpu_each_it_goes_by_nccl() -> None:
    usable = [device for device in gb.devices() if device.kind == "cuda" and device.usable]
    nccl = nccl_of(pytest.importorskip("cupy"))
    if len(usable) < 2 or nccl is None:
        pytest.skip("this takes two GPUs and CuPy with NCCL")
    model = gb.GradientBoostingRegressor(n_estimators=2, device="cuda", execution=gb.DataParallel(2)).fit(X, Y)
    assert "by NCCL" in model.fit_report_.device_reason
