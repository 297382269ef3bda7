"""The Python that users' functions may be written in: losses, scores, noise and metrics, on every machine."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any, ClassVar

import numpy as np
import pytest
from emulator import emulated_gpu
from numba import njit
from support.cuda_compiler import ptx
from support.linked_modules import FUSED, of_the_user

import gpuboost as gb
from gpuboost.backends.cuda.codegen import linking
from gpuboost.sampling import ThresholdRule

KNOTS = np.array([0.5, 1.0, 2.0])
WEIGHTS = (0.5, 0.25, 0.25)


@njit
def clipped(x: float, low: float, high: float) -> tuple[float, bool]:
    """A jitted function of several results."""
    if x < low:
        return low, True
    return (high, True) if x > high else (x, False)


def steps(x: float) -> int:
    """A plain function with a loop that is left early."""
    count = 0
    while True:
        if x < 1.0 or count >= 4:
            break
        x *= 0.5
        count += 1
        if count == 2:
            continue
    return count


def whole_dialect(by: float) -> Callable[[float], float]:
    """A closure over a number, an array and tuples, with loops, branches, tuples, numpy, math and calls."""
    table, names = KNOTS.copy(), ("first", "second")

    def size(x: float) -> float:
        total, among = 0.0, False
        for knot, weight in zip(table, WEIGHTS):  # noqa: B905  numba knows no strict
            part, out = clipped(x, -knot, knot)
            total += weight * abs(part) if not out else weight * knot
            among = among or out
        for i in range(len(names) - 1, -1, -1):
            total += 0.125 * i
        lowest, highest = min(total, by), max(total, by)
        total = lowest if among and highest > 10.0 else total
        return by * total + 0.25 * steps(abs(x)) + np.sqrt(np.abs(x)) + math.floor(abs(x)) * 0.125

    return size


SIZE = whole_dialect(1.5)


def value(y: float, f: float) -> float:
    return SIZE(f - y)


def gradient(y: float, f: float) -> float:
    return SIZE(f - y) * (1.0 if f > y else -1.0)


def score(g: float, h: float) -> float:
    return SIZE(g) + 0.01 * h


def scale(g: float, h: float) -> float:
    return 0.5 + SIZE(g) * h


def term(y: float, f: float) -> float:
    return SIZE(y - f)


@dataclass(frozen=True)
class ByScore:
    """A sampler of one's own. rate: a threshold is searched for it; None: rho is given."""

    score: Callable[[float, float], float]
    rate: float | None = None

    unbiased: ClassVar[bool] = True
    bounded: ClassVar[bool] = True

    def draw(self, backend: Any, gradients: Any, key: Any) -> Any:
        rule = ThresholdRule(self.rate, 0.2 if self.rate is None else None, 0.1)
        return backend.draw(gradients, 0.0, rule, key, self.score)


@pytest.mark.slow
def test_one_model_of_functions_in_the_whole_dialect(rng: np.random.Generator) -> None:
    x = rng.normal(size=(300, 3)).astype(np.float32)
    y = 3.0 * x[:, 0] + rng.normal(size=300)
    given: dict[str, Any] = {
        "loss": gb.losses.custom(value, gradient, None, check_derivatives=False), "n_estimators": 3, "max_depth": 3,
        "sampling": ByScore(score), "random_state": 0, "step": "gradient", "eval_metric": gb.metrics.mean(term),
        "langevin": gb.Langevin(noise_scale=scale, schedule=whole_dialect(0.5), allow_unproven=True),
    }  # fmt: skip

    def fitted(**more: Any) -> gb.GradientBoostingRegressor:
        return gb.GradientBoostingRegressor(**given | more).fit(x, y, eval_set=[(x, y)])

    host = fitted(device="cpu")
    assert len(np.unique(host.predict(x))) > 10
    with emulated_gpu() as cp:
        device = fitted(device="cuda")
        assert device.predict(x).tobytes() == host.predict(x).tobytes()
        assert device.evals_result_ == host.evals_result_
        searched = {"sampling": ByScore(score, 0.4), "langevin": None}
        other = fitted(device="cuda", **searched)
        assert other.predict(x).tobytes() == fitted(device="cpu", **searched).predict(x).tobytes()
    assert all(cp.counts[f"kernel {name}"] > 0 for name in ("gradients", "row_draws", "row_noise", "row_scores"))


@pytest.mark.slow
def test_numba_cuda_compiles_the_whole_dialect_and_fuses_nothing() -> None:
    pytest.importorskip("numba_cuda")
    for module in of_the_user(gb.losses.custom(value, gradient, None), score, scale):
        made = ptx(module.text, functions=module.functions, architecture=90)
        assert not FUSED.search(made), module.file
        assert "call" not in made.replace("callseq", "").partition(".entry")[2], module.file


def broken_helper(f: Any) -> float:
    return f.real.upper()


def broken(y: float, f: Any) -> float:
    return broken_helper(f)


def broken_row(y: float, f: Any) -> float:
    total = 0.0
    for x in f:
        total += broken_helper(x)
    return total


def opens_a_file(y: float, f: float) -> float:
    with open("somewhere") as file:
        return float(file.read())


def writes(y: float, f: Any, g: Any) -> None:
    g[0] = f[0]


REASON = r"Unknown attribute 'upper' of type float64 \(test_user_functions.py, line \d+: return f.real.upper\(\)\)"
UNREADABLE = r"The 'with \(context manager\) as.*\(test_user_functions.py, line \d+: def opens_a_file"


@pytest.mark.parametrize(
    ("given", "argument", "on_a_gpu", "reason"),
    [
        ({"loss": gb.losses.custom(broken, gradient, None, check_derivatives=False)}, "value", "loss", REASON),
        ({"loss": gb.losses.custom(value, broken, None, check_derivatives=False)}, "gradient", "loss", REASON),
        ({"loss": gb.losses.custom(broken_row, writes, None, n_outputs=2, check_derivatives=False)}, "value", "loss",
         REASON),
        ({"loss": gb.losses.custom(opens_a_file, gradient, None, check_derivatives=False)}, "value", "loss",
         UNREADABLE),
        ({"sampling": ByScore(broken)}, "score", "score", REASON),
        ({"sampling": ByScore(broken, 0.5)}, "score", "score", REASON),
        ({"langevin": gb.Langevin(noise_scale=broken, allow_unproven=True)}, "noise_scale", "noise_scale", REASON),
        ({"eval_metric": gb.metrics.mean(broken)}, "term", "eval_metric", REASON),
    ],
    ids=["value", "gradient", "rows", "unreadable", "score", "searched", "noise", "term"],
)  # fmt: skip
def test_what_numba_refuses_is_refused_with_its_reason_and_the_line(
    given: dict[str, Any], argument: str, on_a_gpu: str, reason: str, rng: np.random.Generator
) -> None:
    x, y = rng.normal(size=(60, 2)), rng.normal(size=60)

    def fit(device: str) -> None:
        model = gb.GradientBoostingRegressor(n_estimators=1, step="gradient", device=device, **given)
        model.fit(x, y, eval_set=[(x, y)])

    with pytest.raises(gb.RecipeError, match=f"^{argument}: numba must be able to compile the function; {reason}"):
        fit("cpu")
    with emulated_gpu(), pytest.raises(gb.DeviceError, match=f"^{on_a_gpu}: a GPU cannot run it; numba says: {reason}"):
        fit("cuda")


def test_numba_cuda_says_the_same() -> None:
    pytest.importorskip("numba_cuda")
    from gpuboost.backends.cuda.codegen.numba_cuda import ltoir

    rows = gb.losses.custom(broken_row, writes, None, n_outputs=2)
    for module in of_the_user(rows, broken, broken):
        function = next(part for part in module.functions if part.argument != "loss" or "value" in part.name)
        with pytest.raises(gb.DeviceError, match=f"^{function.argument}: a GPU cannot run it; numba says: {REASON}"):
            ltoir(function, 90)


@pytest.mark.parametrize(
    ("given", "argument"),
    [
        ({"loss": gb.losses.custom(value, gradient, None, check_derivatives=False)}, "loss"),
        ({"eval_metric": gb.metrics.mean(term)}, "eval_metric"),
        ({"sampling": ByScore(score)}, "score"),
        ({"sampling": ByScore(score, 0.5)}, "score"),
        ({"langevin": gb.Langevin(noise_scale=scale, allow_unproven=True)}, "noise_scale"),
    ],
    ids=["loss", "term", "score", "searched", "noise"],
)
def test_an_automatic_choice_takes_the_cpu_if_a_gpu_cannot_run_a_function(
    given: dict[str, Any], argument: str, monkeypatch: pytest.MonkeyPatch, rng: np.random.Generator
) -> None:
    x, y = rng.normal(size=(60, 2)), rng.normal(size=60)
    monkeypatch.setenv("GPUBOOST_AUTO_CELLS", "1")

    def fit(device: str) -> Any:
        model = gb.GradientBoostingRegressor(n_estimators=1, step="gradient", device=device, **given)
        return model.fit(x, y, eval_set=[(x, y)]).fit_report_

    with emulated_gpu() as cp:
        check = cp.linker.check

        def refuse(functions: Any, *, beside: bool = False) -> None:
            if not beside and any(function.argument == argument for function in functions):
                raise gb.DeviceError(f"{argument}: a GPU cannot run it")
            check(functions, beside=beside)

        monkeypatch.setattr(cp.linker, "check", refuse)
        report = fit("auto")
        assert report.device == "cpu"
        assert f"on cuda:0: {argument}: a GPU cannot run it" in report.device_reason
        with pytest.raises(gb.DeviceError, match=f"^{argument}: a GPU cannot run it"):
            fit("cuda")
    assert not cp.launches, "refused before the first round"


def test_a_score_and_a_scale_may_call_plain_functions(rng: np.random.Generator) -> None:
    """Functions that no kernel has met before."""

    def size(g: float) -> float:
        return abs(g)

    def bent(h: float) -> float:
        return h * h

    def by_call(g: float, h: float) -> float:
        return size(g) + 0.01 * h

    def by_itself(g: float, h: float) -> float:
        return abs(g) + 0.01 * h

    x, y = rng.normal(size=(200, 2)), rng.normal(size=200)
    settings: dict[str, Any] = {"n_estimators": 3, "random_state": 0, "n_jobs": 1}
    found, expected = (
        gb.GradientBoostingRegressor(sampling=ByScore(score), **settings).fit(x, y).predict(x)
        for score in (by_call, by_itself)
    )
    assert found.tobytes() == expected.tobytes()
    chain = gb.Langevin(noise_scale=lambda g, h: bent(h) + 1.0)
    assert np.isfinite(gb.GradientBoostingRegressor(langevin=chain, **settings).fit(x, y).predict(x)).all()


def test_functions_made_by_exec_are_those_of_a_module(rng: np.random.Generator) -> None:
    """They have no ``__module__``."""

    def value(y: float, f: float) -> float:
        return (y - f) ** 2 / 2

    def gradient(y: float, f: float) -> float:
        return f - y

    made: dict[str, Any] = {}
    exec("def half(x): return x / 2\ndef value(y, f): return half((y - f) ** 2)", made)
    exec("def gradient(y, f): return f - y", made)
    assert made["value"].__module__ is None
    x, y = rng.normal(size=(200, 2)), rng.normal(size=200)
    settings: dict[str, Any] = {"n_estimators": 2, "random_state": 0, "n_jobs": 1}
    models = []
    for one, slope in ((value, gradient), (made["value"], made["gradient"])):
        loss = gb.losses.custom(one, slope, lambda y, f: 1.0)
        model = gb.GradientBoostingRegressor(loss, eval_metric=gb.metrics.mean(one), **settings)
        models.append(model.fit(x, y, eval_set=(x, y)))
    assert models[0].predict(x).tobytes() == models[1].predict(x).tobytes()
    assert models[0].evals_result_ == models[1].evals_result_
    exec("def scale(g, h): return 1.0 + h", made)
    chain = gb.Langevin(noise_scale=made["scale"])
    assert np.isfinite(gb.GradientBoostingRegressor(langevin=chain, **settings).fit(x, y).predict(x)).all()


@pytest.mark.parametrize(
    "given",
    [{}, {"loss": gb.losses.custom_arrays(lambda y, f: (f - y, np.ones(len(y)))), "sampling": ByScore(score)}],
    ids=["loss", "score"],
)
def test_an_automatic_choice_takes_the_cpu_without_numba_cuda(
    given: dict[str, Any], monkeypatch: pytest.MonkeyPatch, rng: np.random.Generator, tmp_path: Path
) -> None:
    x, y = rng.normal(size=(60, 2)), rng.normal(size=60)
    monkeypatch.setenv("GPUBOOST_AUTO_CELLS", "1")
    monkeypatch.setenv("GPUBOOST_CUBIN_CACHE", str(tmp_path))
    monkeypatch.setattr(linking, "find_spec", lambda name: None)

    def fit(device: str) -> Any:
        return gb.GradientBoostingRegressor(n_estimators=1, device=device, **given).fit(x, y).fit_report_

    with emulated_gpu() as cp:
        cp.linker = linking.Linker(cp)
        report = fit("auto")
        assert report.device == "cpu"
        assert "on cuda:0: device: a GPU needs numba-cuda to compile formulas" in report.device_reason
        with pytest.raises(gb.DeviceError, match=r"^device: a GPU needs numba-cuda"):
            fit("cuda")
