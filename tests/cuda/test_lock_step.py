"""Trainings in lock-step: joint launches, the bytes of each training alone, and what happens when one of them fails."""

from __future__ import annotations

from functools import partial

import numpy as np
import pytest
from emulator import emulated_gpu, emulated_runtime
from sklearn.base import clone
from support.examples import daily

import gpuboost as gb
from gpuboost.backends.cuda.device.joined import joined
from gpuboost.backends.cuda.device.joint_kernels import SUFFIX, joint_source
from gpuboost.backends.cuda.device.launches import Copy, Fill, KernelLaunch, KernelText, queue
from gpuboost.backends.cuda.device.lock_step import LockStep, in_lock_step
from gpuboost.backends.cuda.device.parameters import parameters
from gpuboost.errors import DeviceError

SCALE = """
#define MORE , double b
extern "C" __global__ void __launch_bounds__(32) scale(const float *__restrict__ x, float *y, float a, int n MORE)
{ for (int i = blockIdx.x * 32 + threadIdx.x; i < n; i += 32 * gridDim.x) y[i] = a * x[i] + (float)(b + gridDim.x); }
extern "C" __global__ void nothing() {}
"""
N = 70


def scale(x, y, a, b, blocks=2):
    text = KernelText(SCALE, "scale", (), None)
    return KernelLaunch(text, (blocks,), (32,), (x, y, np.float32(a), np.int32(N), np.float64(b)), 0)


def test_alike_launches_become_one():
    runtime = emulated_runtime()
    x = runtime.upload(np.arange(N, dtype=np.float32))
    ys = [runtime.zeros(N, np.float32) for _ in range(3)]
    launches = joined([[[[scale(x, y, 2 + i, 0.5)]]] for i, y in enumerate(ys)], runtime)
    assert [(one.kernel.name, one.grid) for one in launches] == [("scale" + SUFFIX, (2, 1, 3))]
    queue(launches, runtime)
    for i, y in enumerate(ys):
        np.testing.assert_array_equal(runtime.download(y), np.float32(2 + i) * np.arange(N, dtype=np.float32) + 2.5)


def test_lanes_of_one_training_are_joined_and_segments_are_not():
    runtime = emulated_runtime()
    x, ys = runtime.upload(np.ones(N, np.float32)), [runtime.zeros(N, np.float32) for _ in range(3)]
    lanes = [[[scale(x, y, 2, 0)] for y in ys], [[scale(ys[0], ys[1], 1, 0)]], [[scale(ys[1], x, 1, 0)]]]
    launches = joined([lanes], runtime)
    assert [one.grid for one in launches] == [(2, 1, 3), (2,), (2,)]
    queue(launches, runtime)
    assert [runtime.download(array)[0] for array in (*ys, x)] == [4, 6, 4, 8]


def test_others_remain_as_they_are():
    """Of other grids, of other lengths; memsets and copies. Each list keeps its order."""
    runtime = emulated_runtime()
    x = runtime.upload(np.ones(N, np.float32))
    a, b, c, d = (runtime.zeros(N, np.float32) for _ in range(4))
    lists = [
        [Fill(a, 0), scale(x, a, 1, 0, blocks=1), scale(a, a, 3, 0)],
        [Fill(b, 0), scale(x, b, 2, 0, blocks=3), scale(b, b, 3, 0)],
        [scale(x, c, 5, 0), Copy(d, c)],
    ]
    launches = joined([[[one]] for one in lists], runtime)
    names = [one.kernel.name if isinstance(one, KernelLaunch) else type(one).__name__ for one in launches]
    assert names == ["Fill", "Fill", "scale", "scale", "scale" + SUFFIX, "scale", "Copy"]
    queue(launches, runtime)
    assert [runtime.download(array)[0] for array in (a, b, d)] == [3 * 2 + 2, 3 * 5 + 2, 7]


def test_launches_that_are_repeated_are_joined_once():
    runtime = emulated_runtime()
    x, ys = runtime.zeros(N, np.float32), [runtime.zeros(N, np.float32) for _ in range(2)]
    first, second, _ = joined([3 * [[[scale(x, y, 1, 0)]]] for y in ys], runtime)
    assert first is second


def test_every_kernel_of_a_module_has_a_joint_one():
    joint = parameters(joint_source(SCALE))
    assert {name: [each.name for each in named] for name, named in joint.items()} == {
        "scale" + SUFFIX: ["table"],
        "nothing" + SUFFIX: ["table"],
    }


# Trainings

RNG = np.random.default_rng(5)
X = RNG.normal(size=(420, 5)).astype(np.float32)
Y = X[:, 0] * 2 + np.sin(2 * X[:, 1]) + RNG.normal(size=420) * 0.2
C = np.digitize(Y, [-1, 1])
CATEGORIES = np.column_stack([X, RNG.integers(0, 9, 420)]).astype(np.float32)
REGRESSOR = gb.GradientBoostingRegressor(n_estimators=7, max_depth=3)
WATCHED = {"eval_set": [(X[:90], Y[:90])]}


def settings(base, name, *values):
    return [clone(base).set_params(**{name: value}) for value in values]


MODELS = {
    "learning rates": (settings(REGRESSOR, "learning_rate", 0.05, 0.3, 1.0), X, Y, {}),
    "many rounds in a graph": (
        settings(REGRESSOR.__class__(n_estimators=140, max_depth=1), "learning_rate", 0.1, 0.3), X, Y, {},
    ),
    "chains": (settings(clone(REGRESSOR).set_params(langevin=gb.Langevin()), "random_state", 0, 1, 2), X, Y, {}),
    "drawn rows": (settings(clone(REGRESSOR).set_params(sampling=gb.MVS(0.5)), "random_state", 0, 1), X, Y, {}),
    "drawn features": (settings(clone(REGRESSOR).set_params(learners=3), "random_state", 0, 1), X, Y, {}),
    "shapes": (
        [clone(REGRESSOR).set_params(**given) for given in ({"max_depth": 2}, {"growth": "leafwise"}, {})], X, Y, {},
    ),
    "classes": (
        settings(gb.GradientBoostingClassifier(n_estimators=6, max_depth=2), "learning_rate", 0.1, 0.5), X, C, {},
    ),
    "categories": (
        settings(clone(REGRESSOR).set_params(categorical_features=[5]), "reg_lambda", 0.5, 2.0), CATEGORIES, Y, {},
    ),
    "early stopping": (
        [
            clone(REGRESSOR).set_params(
                n_estimators=40, learning_rate=rate, early_stopping_rounds=3, eval_metric=["rmse", "mae"]
            )
            for rate in (0.3, 1.0)
        ],
        X, Y, WATCHED,
    ),
}  # fmt: skip


@pytest.mark.slow
@pytest.mark.parametrize("name", MODELS)
def test_a_training_is_what_it_is_alone(name):
    models, x, y, more = MODELS[name]
    want = [gb.dumps(clone(model).set_params(device="cpu", n_jobs=1).fit(x, y, **more)) for model in models]
    with emulated_gpu() as cupy:
        fits = [partial(clone(model).set_params(device="cuda").fit, x, y, **more) for model in models]
        fitted = in_lock_step(fits, "cuda:0")
    for model, alone in zip(fitted, want, strict=True):
        assert gb.dumps(model.set_params(device="cpu", n_jobs=1)) == alone
    joint = {name for name in cupy.counts if name.endswith(SUFFIX)} - {f"kernel next_round{SUFFIX}"}
    assert bool(joint) == (name != "shapes")


@pytest.mark.slow
@pytest.mark.parametrize("late", [0, 1, 2, 3])
def test_events_order_the_streams(late):
    """Whichever of the streams, of this thread, of the joint graphs and of the trainings, is late."""
    models = MODELS["learning rates"][0][:2]
    with emulated_gpu(deferred=lambda number: number % 4 == late):
        fitted = in_lock_step([partial(clone(one).set_params(device="cuda").fit, X, Y) for one in models], "cuda:0")
    for model, own in zip(models, fitted, strict=True):
        np.testing.assert_array_equal(clone(model).fit(X, Y).predict(X), own.set_params(device="cpu").predict(X))


@pytest.mark.slow
def test_joint_graphs_have_the_launches_of_one():
    with emulated_gpu() as cupy:
        gb.GradientBoostingRegressor(n_estimators=19, max_depth=3, device="cuda").fit(X, Y)
        alone = cupy.counts["graph nodes"]
        cupy.counts.clear()
        fits = [partial(clone(REGRESSOR).set_params(n_estimators=19, device="cuda").fit, X, Y) for _ in range(3)]
        in_lock_step(fits, "cuda:0")
        assert 0 < cupy.counts["graph nodes"] <= alone


def test_an_error_of_one_ends_the_others():
    ended = []

    def breaks(progress):
        if progress.round == 3:
            raise ZeroDivisionError("of the callback")

    def fit(model):
        try:
            model.fit(X, Y)
        except DeviceError as error:
            ended.append(str(error))
            raise

    models = [REGRESSOR.__class__(n_estimators=5_000, max_depth=1, device="cuda") for _ in range(3)]
    models[1].set_params(callbacks=(breaks,))
    with emulated_gpu(), pytest.raises(ZeroDivisionError, match="of the callback"):
        in_lock_step([partial(fit, model) for model in models], "cuda:0")
    assert ended == 2 * ["device: trainings in lock-step ended early, as one of them failed."]


def test_no_training_waits_for_one_that_has_no_graph():
    runtime = emulated_runtime()
    lock_step = LockStep(runtime.spawn(), [runtime.spawn(), runtime.spawn()])
    x, y = runtime.upload(np.zeros(N, np.float32)), runtime.upload(np.zeros(N, np.float32))
    quick, slow = lock_step.members
    for _ in range(8):
        slow.had_no_graph()
    quick.graph([[[scale(x, y, 0, 1)]]])()  # it would wait for ever
    assert quick.runtime.download(y)[0] == 3
    assert runtime.member is None
    lock_step.stop(KeyboardInterrupt())
    for call in (slow.had_no_graph, quick.graph([[[scale(x, y, 0, 1)]]])):
        with pytest.raises(DeviceError, match="trainings in lock-step ended early"):
            call()


# Who fits several models


def fitted_on_both(fit):
    """The result on the CPU and on an emulated GPU, where some launches must be joint."""
    on_cpu = fit("cpu")
    with emulated_gpu() as cupy:
        on_gpu = fit("cuda")
    assert any(name.endswith(SUFFIX) for name in cupy.counts)
    return on_cpu, on_gpu


@pytest.mark.slow
def test_chains():
    def fit(device):
        model = gb.GradientBoostingRegressor(
            n_estimators=9, max_depth=2, langevin=gb.Langevin(), random_state=3, device=device
        )
        return gb.chains(model, X, Y, n_chains=3)

    one, other = fitted_on_both(fit)
    for a, b in zip(one.models, other.models, strict=True):
        np.testing.assert_array_equal(a.predict(X), b.set_params(device="cpu").predict(X))


@pytest.mark.parametrize("together", daily([4, None], 1))
def test_folds(together):
    def fit(device):
        return gb.cv(clone(REGRESSOR).set_params(device=device), X, Y, folds=3, early_stopping_rounds=together)

    one, other = fitted_on_both(fit)
    assert one.mean == other.mean
    np.testing.assert_array_equal(one.predictions, other.predictions)


@pytest.mark.slow
def test_search():
    def fit(device):
        space = {"learning_rate": [0.1, 0.4], "max_depth": [2, 3]}
        return gb.search(clone(REGRESSOR).set_params(device=device), space, X, Y, cv=2)

    one, other = fitted_on_both(fit)
    assert [(trial.params, trial.score) for trial in one.trials] == [
        (trial.params, trial.score) for trial in other.trials
    ]


def test_an_error_of_a_search_says_of_which_setting():
    def breaks(progress):
        raise ZeroDivisionError("of the callback")

    model = clone(REGRESSOR).set_params(device="cuda", callbacks=(breaks,))
    with emulated_gpu(), pytest.raises(ZeroDivisionError) as raised:
        gb.search(model, {"max_depth": [1, 2]}, X, Y, cv=2)
    assert "The setting is number" in raised.value.__notes__[0]


def test_large_data_and_workers_are_fitted_in_turn(monkeypatch):
    from gpuboost.model_selection import lock_step

    model = clone(REGRESSOR).set_params(device="cuda")
    with emulated_gpu():
        assert lock_step.gpu_of_fits(model, 100, 2_000, None) == "cuda:0"
        assert lock_step.gpu_of_fits(model, lock_step.MOST_ROWS + 1, 10**8, None) is None
        workers = clone(model).set_params(execution=gb.Asynchronous(2))
        assert lock_step.gpu_of_fits(workers, 100, 2_000, None) is None
        assert lock_step.gpu_of_fits(clone(model).set_params(device="auto"), 100, 2_000, None) is None
