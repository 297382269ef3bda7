"""How it runs: graphs against launches, memory against the formula, arrays of other libraries, losses of one's own."""

from __future__ import annotations

import gc
from collections.abc import Callable
from functools import partial
from typing import Any

import numpy as np
import pytest
from sklearn.base import clone
from support.builders import model_bytes, random_case

import gpuboost as gb
from gpuboost import losses
from gpuboost._imports.collection import no_collection
from gpuboost.backends.cpu.backend import Cpu
from gpuboost.backends.cuda.backend import Cuda
from gpuboost.backends.cuda.device.lock_step import in_lock_step
from gpuboost.boosting import boost
from gpuboost.growth import DepthWise
from gpuboost.recipe import Recipe
from gpuboost.sampling import UniformSampling
from gpuboost.types import Limits

from .conftest import EMULATED, rows

pytestmark = pytest.mark.cuda


class Launching:
    """A runtime that launches one by one what another would replay as a graph."""

    def __init__(self, runtime: Any) -> None:
        self._runtime, self.replayed = runtime, 0

    def __getattr__(self, name: str) -> Any:
        return getattr(self._runtime, name)

    def capture(self, work: Callable[[], None]) -> Callable[[], None]:
        def again() -> None:
            self.replayed += 1
            work()

        return again


def test_a_graph_does_what_its_launches_do(gpu: Any) -> None:
    case = random_case(3, 1_000 if EMULATED else 100_000, 20, most_cuts=200)
    recipe = Recipe(losses.SquaredError(), 12, 0.3, DepthWise(Limits(64, 6)), sampling=UniformSampling(0.6))
    one_by_one = Launching(gpu)
    found = [
        model_bytes(boost(recipe, case.data, machine, seed=2)) for machine in (Cuda(gpu), Cuda(one_by_one), Cpu(2))
    ]
    assert one_by_one.replayed >= 8
    assert found[0] == found[1] == found[2]


def test_models_in_lock_step_are_those_that_are_fitted_alone(gpu: Any) -> None:
    """Fifteen of three shapes, with metrics in their rounds."""
    x, y = rows(20_000, 12)
    labels = np.digitize(y, [-1.0, 0.0, 1.0])
    kinds: tuple[tuple[Any, Any], ...] = (
        (gb.GradientBoostingRegressor(n_estimators=12 if EMULATED else 150, max_depth=4), y),
        (gb.GradientBoostingRegressor(n_estimators=12, langevin=gb.Langevin(), random_state=1), y),
        (gb.GradientBoostingClassifier(n_estimators=12, sampling=gb.MVS(0.3), random_state=1), labels),
    )
    models = [
        (clone(model).set_params(learning_rate=0.02 * (1 + i)), target)
        for i, (model, target) in enumerate((1 if EMULATED else 5) * kinds)
    ]

    def fit(model: Any, target: Any, device: str) -> str:
        watched = [(x[:500], target[:500])]
        fitted = clone(model).set_params(device=device).fit(x, target, eval_set=watched)
        return gb.dumps(fitted.set_params(device="cpu")) + str(fitted.evals_result_)

    together = in_lock_step([partial(fit, model, target, gpu.name) for model, target in models], gpu.name)
    assert together == [fit(model, target, "cpu") for model, target in models]


@pytest.mark.parametrize("params", [{}, {"sampling": 0.3}, {"growth": "leafwise", "max_leaves": 40}], ids=str)
def test_memory_is_what_was_told(real_gpu: Any, params: dict[str, Any]) -> None:
    x, y = rows(500_000, 40)
    pool, most = real_gpu.cp.get_default_memory_pool(), 0
    gc.collect()  # else the fit's collections free what earlier tests have left, which is not the fit's
    before = pool.used_bytes()

    def look(record: Any) -> None:
        nonlocal most
        most = max(most, pool.used_bytes() - before)

    model = gb.GradientBoostingRegressor(n_estimators=5, device="cuda", callbacks=[look], **params).fit(x, y)
    told = gb.estimate_memory(*x.shape, model).total
    assert 0.95 * told <= most <= told + (1 << 20)  # CuPy rounds every array up


def test_what_does_not_fit_is_refused_before_training(real_gpu: Any) -> None:
    free = real_gpu.free_memory
    kept = real_gpu.empty(free - (64 << 20), np.uint8)
    x, y = rows(1_000_000, 40)
    with pytest.raises(gb.DeviceError, match="free, and the training takes"):
        gb.GradientBoostingRegressor(device="cuda").fit(x, y)
    del kept
    real_gpu.cp.get_default_memory_pool().free_all_blocks()  # else it is the stream's, and others have none


def test_arrays_of_cupy(real_gpu: Any) -> None:
    cp, (x, y) = real_gpu.cp, rows(100_000, 12)
    with cp.cuda.Stream(non_blocking=True):  # what is still under way there is waited for
        gx = cp.asarray(np.repeat(x, 1, axis=0)) * cp.float32(1.0)
        gy = cp.asarray(y)
        model = gb.GradientBoostingRegressor(n_estimators=5, device="cuda").fit(gx, gy)
        answer = model.predict(gx)
    host = gb.GradientBoostingRegressor(n_estimators=5, device="cpu").fit(x, y)
    assert isinstance(answer, cp.ndarray)
    assert cp.asnumpy(answer).tobytes() == host.predict(x).tobytes()
    by_column = cp.asfortranarray(gx)
    assert cp.asnumpy(model.predict(by_column)).tobytes() == host.predict(x).tobytes()
    half = cp.asnumpy(model.predict(gx[::2]))
    assert half.tobytes() == host.predict(x[::2]).tobytes()


def test_tensors_of_torch(real_gpu: Any) -> None:
    torch = pytest.importorskip("torch")
    if not torch.cuda.is_available():
        pytest.skip("this torch has no CUDA")
    x, y = rows(50_000, 12)
    tensor = torch.from_numpy(x).cuda()
    model = gb.GradientBoostingRegressor(n_estimators=5).fit(tensor, torch.from_numpy(y).cuda())
    assert model.fit_report_.device.startswith("cuda:")
    host = gb.GradientBoostingRegressor(n_estimators=5, device="cpu").fit(x, y)
    assert torch.from_dlpack(model.predict(tensor)).cpu().numpy().tobytes() == host.predict(x).tobytes()


def test_losses_of_ones_own(gpu: Any) -> None:
    def value(y: float, f: float) -> float:
        return (y - f) ** 4 if abs(y - f) < 2 else 32 * abs(y - f) - 48

    def gradient(y: float, f: float) -> float:
        return 4 * (f - y) ** 3 if abs(y - f) < 2 else 32.0 * (1 if f > y else -1)

    def hessian(y: float, f: float) -> float:
        return 12 * (f - y) ** 2 + 0.1

    x, y = rows(100_000, 8)
    loss = losses.custom(value, gradient, hessian, start="minimise", convex=True)
    found = [
        gb.GradientBoostingRegressor(loss, n_estimators=10, device=device).fit(x, y).predict(x).tobytes()
        for device in ("cpu", "cuda")
    ]
    assert found[0] == found[1]


@pytest.mark.parametrize(
    "name", ["squared_error", "absolute_error", "huber", "quantile", "poisson", "gamma", "tweedie"]
)
def test_every_loss(gpu: Any, name: str) -> None:
    x, y = rows(60_000, 8)
    found = [
        gb.GradientBoostingRegressor(name, n_estimators=5, device=device).fit(x, np.exp(y)).predict(x).tobytes()
        for device in ("cpu", "cuda")
    ]
    assert found[0] == found[1]


def test_a_fit_leaves_no_memory_in_use(real_gpu: Any) -> None:
    """Without a collection of cycles."""
    x, y = rows(50_000, 12)
    pool = real_gpu.cp.get_default_memory_pool()
    with no_collection():
        gc.collect()
        before = pool.used_bytes()
        model = gb.GradientBoostingRegressor(n_estimators=20, device="cuda").fit(x, y, eval_set=[(x, y)])
        assert pool.used_bytes() == before
    assert model.n_iter_ == 20


@pytest.mark.parametrize("workers", [1, 2, 4])
@pytest.mark.parametrize("params", [{}, {"sampling": 0.4}, {"sampling": gb.MVS(0.2), "max_depth": 9}], ids=str)
def test_workers_are_streams(gpu: Any, workers: int, params: dict[str, Any]) -> None:
    x, y = rows(200_000, 20)
    trees = 6 if EMULATED else 30
    given = {"n_estimators": trees, "random_state": 1, "learners": 0.6, **params}
    model = gb.GradientBoostingRegressor(device="cuda", execution=gb.Asynchronous(workers), **given).fit(x, y)
    assert len(model.log_.applied) == trees
    for device in ("cpu", "cuda"):
        again = gb.GradientBoostingRegressor(device=device, execution=gb.Replay(model.log_), **given).fit(x, y)
        assert again.predict(x).tobytes() == model.predict(x).tobytes()
    if workers == 1:
        alone = gb.GradientBoostingRegressor(device="cuda", **given).fit(x, y)
        assert alone.predict(x).tobytes() == model.predict(x).tobytes()


def test_memory_of_workers_is_what_was_told(real_gpu: Any) -> None:
    x, y = rows(500_000, 40)
    pool, most = real_gpu.cp.get_default_memory_pool(), 0
    gc.collect()  # as above
    before = pool.used_bytes()

    def look(record: Any) -> None:
        nonlocal most
        most = max(most, pool.used_bytes() - before)

    execution = gb.Asynchronous(2, staleness="block", max_staleness=1)  # each of the two builds
    model = gb.GradientBoostingRegressor(n_estimators=8, device="cuda", execution=execution, callbacks=[look]).fit(x, y)
    told = gb.estimate_memory(*x.shape, model).total
    assert 0.95 * told <= most <= told + (1 << 20)
