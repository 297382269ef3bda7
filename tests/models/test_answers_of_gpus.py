"""Answers of a device to callers: the bytes of the host's formulas, and no scores that come to the host."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest
from emulator import FakeCupy, emulated_gpu, emulated_runtime

import gpuboost as gb
from gpuboost import losses
from gpuboost.backends.cuda.backend import Cuda
from gpuboost.backends.cuda.device.gpus import open_gpu
from gpuboost.losses import registry
from gpuboost.losses.base import link_of
from gpuboost.losses.per_output import PerOutput
from gpuboost.model.answers import FIRST_SCORE, decision_answer, labels_answer, predictions_answer, probabilities_answer
from gpuboost.scoring.answers import Answer

EVERY = (
    *(registry.get(name, n_classes=3) for name in registry.NAMES),
    losses.SmoothedZeroOne(1.0),
    losses.Softmax(2),
    losses.Quantiles((0.1, 0.5, 0.9)),
    *(PerOutput(loss(), 3) for loss in (losses.SquaredError, losses.Poisson, losses.Logistic, losses.SmoothedZeroOne)),
)
SPECIAL = (0.0, -0.0, 1e-300, 36.5, -36.5, 701.0, -745.0, 1e308, -1e308, np.inf, -np.inf, np.nan)


def answers_of(loss: Any) -> dict[str, Answer]:
    """What callers may ask of a loss."""
    of_all = {"predictions": predictions_answer(loss), "first": FIRST_SCORE}
    if loss.task in ("regression", "ranking"):
        return of_all
    classes = np.arange(max(2, loss.n_outputs)) * 1.5
    return of_all | {
        "probabilities": probabilities_answer(loss),
        "labels": labels_answer(loss, classes),
        "decision": decision_answer(loss),
    }


def scores_of(k: int, n: int = 300) -> np.ndarray:
    """(k, n) with ties, and extremes in the first rows."""
    scores = np.random.default_rng(k).normal(size=(k, n)).round(1) * 3.0
    for c in range(k):
        scores[c, : len(SPECIAL)] = np.roll(SPECIAL, 5 * c)
    return scores


def check_bits(found: np.ndarray, expected: np.ndarray, about: object) -> None:
    """Equal to the bit, where both are numbers."""
    assert (found.dtype, found.shape) == (expected.dtype, expected.shape), about
    number = ~np.isnan(found)
    assert np.array_equal(number, ~np.isnan(expected)), about
    assert found[number].tobytes() == expected[number].tobytes(), about


@pytest.mark.filterwarnings("ignore:invalid value", "ignore:overflow")  # inf - inf, 2e308
def test_answers_have_the_bits_of_the_host() -> None:
    runtime = emulated_runtime()
    machine, ruled = Cuda(runtime), set()
    for loss in EVERY:
        scores = scores_of(loss.n_outputs)
        on_device = runtime.upload(scores)
        for name, asked in answers_of(loss).items():
            if asked.rule is not None:
                ruled.add(asked.rule)
                found = machine.to_host(machine.answer(asked, on_device))
                check_bits(found, np.asarray(asked(scores)), (loss, name))
    assert ruled == {"score", "rows", "difference", "predictions", "two_classes", "classes", "labels", "signs"}


def test_losses_of_which_a_device_has_the_link() -> None:
    """Others have functions of their own; of ``smoothed_zero_one`` the host divides the score by 0.1."""
    others = {loss.name for loss in EVERY if link_of(loss)[0] == "other"}
    assert {"smoothed_zero_one", "quantiles", "log_normal_nll", "per_output"} <= others
    assert not others & {"logistic", "logitboost", "exponential", "softmax", "poisson", "gamma", "tweedie"}
    assert link_of(losses.Exponential()) == link_of(losses.LogitBoost()) == ("logistic", 2.0)
    assert link_of(PerOutput(losses.Poisson(), 2)) == ("log", 1.0)
    assert link_of(PerOutput(losses.SmoothedZeroOne(), 2)) == ("other", 1.0)


@pytest.mark.parametrize("k", [1, 3])
@pytest.mark.parametrize("dtype", ["?", "u1", "i2", "f4", "i8", "f8"])
def test_labels_keep_their_type(k: int, dtype: str) -> None:
    runtime = emulated_runtime()
    loss = losses.Softmax(3) if k == 3 else losses.Logistic()
    classes = np.array([0, 1, 7][: max(2, k)]).astype(dtype)
    asked, scores = labels_answer(loss, classes), scores_of(k)
    machine = Cuda(runtime)
    found = machine.to_host(machine.answer(asked, runtime.upload(scores)))
    check_bits(found, asked(scores), dtype)


@pytest.mark.parametrize("classes", [np.array(["a", "b"]), np.array([0, 1], object), np.array([0, 1], ">i8")])
def test_labels_that_a_device_cannot_hold_stay_on_the_host(classes: np.ndarray) -> None:
    assert labels_answer(losses.Logistic(), classes).rule is None


# through estimators


@pytest.fixture
def gpu() -> Iterator[FakeCupy]:
    with emulated_gpu() as cupy:
        yield cupy


def rows(n: int = 80) -> tuple[np.ndarray, np.ndarray]:
    """(n, 3) float32 with missing values, and a target."""
    rng = np.random.default_rng(4)
    x = rng.normal(size=(n, 3)).astype(np.float32)
    y = x[:, 0] + x[:, 1] * x[:, 2]
    x[rng.random(x.shape) < 0.1] = np.nan
    return x, y


X, Y = rows()
THREE = np.digitize(Y, [-0.5, 0.5])
OF_CLASSES = ("predict", "predict_proba", "decision_function")
CASES: dict[str, tuple[Any, dict[str, Any], Any, tuple[str, ...]]] = {
    "two classes": (gb.GradientBoostingClassifier, {}, Y > 0, OF_CLASSES),
    "exponential": (gb.GradientBoostingClassifier, {"loss": "exponential"}, (Y > 0) * 2.0, OF_CLASSES),
    "logitboost": (gb.GradientBoostingClassifier, {"loss": "logitboost"}, (Y > 0) * 1, OF_CLASSES),
    "three classes": (gb.GradientBoostingClassifier, {}, THREE, OF_CLASSES),
    "several labels": (gb.GradientBoostingClassifier, {}, np.column_stack([Y > 0, Y > 1]) * 1, OF_CLASSES),
    "numbers": (gb.GradientBoostingRegressor, {}, Y, ("predict",)),
    "counts": (gb.GradientBoostingRegressor, {"loss": "poisson"}, np.abs(Y), ("predict",)),
    "means and spreads": (gb.GradientBoostingRegressor, {"loss": "gaussian_nll"}, Y, ("predict",)),
    "several targets": (gb.GradientBoostingRegressor, {}, np.column_stack([Y, -Y]), ("predict",)),
    "several counts": (gb.GradientBoostingRegressor, {"loss": "poisson"}, np.abs([Y, 2 * Y]).T, ("predict",)),
}  # fmt: skip


@pytest.mark.parametrize("case", CASES)
def test_predictions_stay_on_the_device(case: str, gpu: FakeCupy, monkeypatch: pytest.MonkeyPatch) -> None:
    kind, given, y, verbs = CASES[case]
    model = kind(n_estimators=2, max_depth=2, device="cpu", **given).fit(X, y)
    there = open_gpu("cuda:0").upload(X)
    expected = {verb: getattr(model, verb)(X) for verb in (*verbs, "predict_contributions")}
    staged = [list(getattr(model, f"staged_{verb}")(X)) for verb in verbs]
    model.set_params(device="cuda")
    model.predict(there)
    moved: list[tuple[int, ...]] = []
    get = FakeCupy.ndarray.get
    with monkeypatch.context() as patched:
        patched.setattr(FakeCupy.ndarray, "get", lambda array, **how: moved.append(array.shape) or get(array, **how))
        found = {verb: getattr(model, verb)(there) for verb in expected}
        found_staged = [list(getattr(model, f"staged_{verb}")(there)) for verb in verbs]
    assert {*moved} <= {(1,)}  # whether X has an infinity
    for verb, answer in found.items():
        check_bits(answer.get(), expected[verb], verb)
    for answers, of_host in zip(found_staged, staged, strict=True):
        for answer, one in zip(answers, of_host, strict=True):
            check_bits(answer.get(), one, "staged")


def test_a_prediction_is_five_launches_and_a_question_about_infinities(gpu: FakeCupy) -> None:
    """Nothing is uploaded again. The memset, and a copy of 8 bytes to the host, are of the search for infinities."""
    model = gb.GradientBoostingClassifier(n_estimators=2, max_depth=2, device="cpu").fit(X, Y > 0)
    model.set_params(device="cuda")
    there = open_gpu("cuda:0").upload(X)
    for verb, kernel in (("predict_proba", "write_two_classes"), ("predict", "write_labels")):
        getattr(model, verb)(there)
        before = gpu.counts.copy()
        getattr(model, verb)(there)
        kernels = {f"kernel {name}": 1 for name in ("find_infinite", "bin", "start", "predict_few", kernel)}
        assert gpu.counts - before == {**kernels, "memset": 1, "D2H": 1, "sync": 2}


def test_what_the_host_answers(gpu: FakeCupy) -> None:
    """Labels of text, logarithms, sorted quantiles, spreads, offsets: with the same bytes."""
    there = open_gpu("cuda:0").upload(X)
    text = np.array(["low", "mid", "top"])[THREE]
    of_text = gb.GradientBoostingClassifier(n_estimators=2, max_depth=2).fit(X, text)
    assert np.array_equal(of_text.predict(there), of_text.predict(X))
    check_bits(of_text.predict_log_proba(there).get(), of_text.predict_log_proba(X), "logarithms")
    check_bits(of_text.predict_proba(there).get(), of_text.predict_proba(X), "probabilities")
    offset = np.linspace(-1.0, 1.0, len(X))
    for loss in ("smoothed_zero_one", "logistic"):
        two = gb.GradientBoostingClassifier(loss, n_estimators=2, max_depth=2, step="gradient").fit(X, THREE == 1)
        check_bits(two.predict_proba(there).get(), two.predict_proba(X), loss)
        found = two.predict_proba(there, init_score=offset).get()
        check_bits(found, two.predict_proba(X, init_score=offset), "offsets")
    of_spread = gb.GradientBoostingRegressor("gaussian_nll", n_estimators=2, max_depth=2).fit(X, Y)
    check_bits(of_spread.predict(there, "all").get(), of_spread.predict(X, "all"), "spreads")
    quantiles = gb.GradientBoostingRegressor(losses.Quantile([0.2, 0.8]), n_estimators=2, max_depth=2).fit(X, Y)
    check_bits(quantiles.predict(there).get(), quantiles.predict(X), "quantiles")
    with pytest.raises(gb.InputError, match="predict_proba: the loss"):
        probabilities_answer(losses.custom(lambda y, f: (y - f) ** 2, lambda y, f: 2 * (f - y), lambda y, f: 2.0))(
            np.zeros((1, 3))
        )


def test_rankings_are_scores_on_the_device(gpu: FakeCupy) -> None:
    model = gb.GradientBoostingRanker(n_estimators=2, max_depth=2).fit(X, THREE, group=[40, 40])
    answer = model.predict(open_gpu("cuda:0").upload(X))
    assert isinstance(answer, FakeCupy.ndarray)
    check_bits(answer.get(), model.predict(X), "scores")
