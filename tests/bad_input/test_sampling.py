"""Row sampling: numbers out of range, contradictions, and pieces that it does not go with."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import gpuboost as gb
from gpuboost.errors import OutsideTheoryWarning, RecipeError

RNG = np.random.default_rng(1)
X = RNG.normal(size=(80, 3))
Y = X[:, 0] + RNG.normal(size=80)
LABELS = (Y > 0.0).astype(int)

RANGES: dict[str, tuple[Callable[[], Any], str]] = {
    "no rate": (gb.ImportanceSampling, "a target rate, or a fixed rho.*rate=None and rho=None"),
    "rate and rho": (lambda: gb.ImportanceSampling(rate=0.1, rho=1.0), "got rate=0.1 and rho=1.0. Give one"),
    "rate 0": (lambda: gb.ImportanceSampling(0.0), r"rate must be in \(0, 1\]; got 0.0"),
    "rate above 1": (lambda: gb.MVS(1.5), r"rate must be in \(0, 1\]; got 1.5"),
    "rate below 0": (lambda: gb.smart_first_order(-0.1), r"rate must be in \(0, 1\]; got -0.1"),
    "rate nan": (lambda: gb.ImportanceSampling(float("nan")), "got nan"),
    "rate True": (lambda: gb.ImportanceSampling(True), "got True"),
    "rate text": (lambda: gb.ImportanceSampling("0.1"), "got '0.1'"),
    "uniform text": (lambda: gb.UniformSampling("0.1"), "got '0.1'"),
    "rho 0": (lambda: gb.smart_second_order(rho=0.0), "rho must be a finite number above 0; got 0.0"),
    "rho infinite": (lambda: gb.ImportanceSampling(rho=float("inf")), "got inf"),
    "unknown score": (lambda: gb.ImportanceSampling(0.1, score="h"), "the score must be 'gradient', 'mvs'.*got 'h'"),
    "negative kappa": (lambda: gb.ImportanceSampling(0.1, score=-0.1), "a number of at least 0; got -0.1"),
    "floor above the rate": (lambda: gb.ImportanceSampling(0.1, floor=0.2), "floor above the rate 0.1.*got 0.2"),
    "floor above 1": (lambda: gb.ImportanceSampling(rho=0.1, floor=1.2), r"floor must be in \[0, 1\]; got 1.2"),
    "unknown control": (lambda: gb.ImportanceSampling(0.1, variance_control="leaf"), "variance_control must be one of"),
    "lag 0": (lambda: gb.ImportanceSampling(0.1, lag=0), "lag must be 1 or 2 trees; got 0"),
    "eta 0": (lambda: gb.ImportanceSampling(0.1, eta=0.0), r"eta must be in \(0, 1\]; got 0.0"),
    "eta above 1": (lambda: gb.ImportanceSampling(0.1, eta=2.0), "got 2.0"),
    "goss top": (lambda: gb.GOSS(0.0, 0.1), r"top must be in \(0, 1\]; got 0.0"),
    "goss other": (lambda: gb.GOSS(0.1, 0.0), r"other must be in \(0, 1\]; got 0.0"),
    "goss together": (lambda: gb.GOSS(0.7, 0.5), "at most 1 together; got 0.7 and 0.5"),
    "goss control": (lambda: gb.GOSS(0.1, 0.1, "node"), "variance_control must be one of 'leaf_refit', 'none'"),
    "mass 0": (lambda: gb.WeightTrimming(0.0), r"mass must be in \(0, 1\]; got 0.0"),
    "trim by loss": (lambda: gb.WeightTrimming(0.9, "loss"), "'hessian' or 'gradient'; got 'loss'"),
}


@pytest.mark.parametrize("make", RANGES.values(), ids=RANGES)
def test_numbers_out_of_range(make: tuple[Callable[[], Any], str]) -> None:
    with pytest.raises(RecipeError, match=make[1]):
        make[0]()


@pytest.mark.parametrize("given", [0.0, 1.5, "mvs", gb.ImportanceSampling, [gb.GOSS(), 0.5]], ids=repr)
def test_what_is_no_policy(given: object) -> None:
    with pytest.raises(RecipeError, match="sampling: "):
        gb.GradientBoostingRegressor(sampling=given).fit(X, Y)


@pytest.mark.parametrize(
    ("name", "given"),
    [("sampling", gb.GOSS), ("learners", gb.RandomGroups), ("langevin", gb.Langevin), ("execution", gb.Asynchronous),
     ("step", gb.LineSearchStep), ("base_learner", gb.learners.Spline)],
)  # fmt: skip
def test_a_class_is_to_be_called(name: str, given: type) -> None:
    with pytest.raises(RecipeError, match=rf"^{name}: must be .*; got the class {given.__name__}\. Call it first\."):
        gb.GradientBoostingRegressor(**{name: given}).fit(X, Y)


def test_two_samplers_are_one_too_many() -> None:
    with pytest.raises(
        RecipeError, match=r"sampling: a row is drawn by one sampler; got 2, .*Give one of them; .*floor="
    ):
        gb.GradientBoostingRegressor(sampling=[gb.GOSS(), gb.UniformSampling(0.5)]).fit(X, Y)


def regressor(**params: Any) -> Any:
    return gb.GradientBoostingRegressor(n_estimators=2, max_depth=2, device="cpu", **params)


REFUSED: dict[str, tuple[Any, str]] = {
    "h of no curvature": (
        regressor(loss="absolute_error", sampling=gb.smart_second_order(0.5)),
        "score='hessian' is undefined for loss 'absolute_error'.*score='gradient' \\(which is uniform here\\)",
    ),
    "h of huber": (regressor(loss="huber", sampling=gb.WeightTrimming(0.9)), "undefined for loss 'huber'"),
    "previous leaf and search": (
        regressor(loss="quantile", sampling=gb.ImportanceSampling(0.5, variance_control="previous_leaf")),
        "searches the value of each leaf",
    ),
    "langevin and trimming": (
        regressor(langevin=gb.Langevin(), sampling=gb.WeightTrimming(0.9, "gradient")),
        "unbiased gradients; what WeightTrimming.*leaves out is not made up for. Use uniform sampling",
    ),
    "langevin and previous leaf": (
        regressor(langevin=gb.Langevin(), sampling=gb.ImportanceSampling(0.5, variance_control="previous_leaf")),
        "unbiased gradients|average over all rows",
    ),
    "langevin and sampled leaves": (
        regressor(langevin=gb.Langevin(), sampling=gb.ImportanceSampling(0.5, variance_control="none")),
        "average over all rows of a leaf",
    ),
    "langevin and h without a floor": (
        gb.GradientBoostingClassifier(
            langevin=gb.Langevin(),
            sampling=gb.smart_second_order(rho=0.5, variance_control="leaf_refit"),
            step="gradient",
        ),
        "bounded with probability one; .*gives unbounded weights. Set its floor above 0",
    ),
    "the loss of a list, on shards": (
        gb.GradientBoostingRanker(sampling=gb.ImportanceSampling(0.5, score="loss"), execution=gb.DataParallel(2)),
        "losses of lists are computed on one CPU",
    ),
}


@pytest.mark.parametrize(("model", "words"), REFUSED.values(), ids=REFUSED)
def test_pieces_that_do_not_go_together(model: Any, words: str) -> None:
    rest = (np.repeat([0, 1], 40),) if isinstance(model, gb.GradientBoostingRanker) else ()
    y = LABELS if isinstance(model, (gb.GradientBoostingClassifier, gb.GradientBoostingRanker)) else Y
    named = {"group": rest[0]} if rest else {}
    with pytest.raises(RecipeError, match=words):
        model.fit(X, y, **named)
    assert model.check(X, y, **named).kind == "refused"
    assert not hasattr(model, "ensemble_")


WARNED: dict[str, tuple[Any, str, str]] = {
    "h of squared error": (
        regressor(sampling=gb.smart_second_order(0.5, variance_control="leaf_refit")),
        "the same second derivative.*is uniform sampling",
        "sound",
    ),
    "trimming of squared error": (
        regressor(sampling=gb.WeightTrimming(0.5)),
        "the same second derivative.*score='hessian' leaves no row out",
        "sound",
    ),
    "g of absolute error": (
        regressor(loss="absolute_error", sampling=gb.smart_first_order(0.5)),
        "same size in every row.*is uniform sampling",
        "sound",
    ),
    "previous leaf": (
        regressor(sampling=gb.ImportanceSampling(0.5, variance_control="previous_leaf")),
        "training stalls on the previous partition",
        "unproven",
    ),
    "h with nothing against it": (
        gb.GradientBoostingClassifier(
            n_estimators=2, sampling=gb.smart_second_order(rho=0.9, paper=True, variance_control="none"), device="cpu"
        ),
        "without a floor, gives a badly predicted row",
        "unproven",
    ),
}


@pytest.mark.parametrize(("model", "words", "kind"), WARNED.values(), ids=WARNED)
def test_what_runs_with_a_warning(model: Any, words: str, kind: str) -> None:
    y = LABELS if isinstance(model, gb.GradientBoostingClassifier) else Y
    with pytest.warns(OutsideTheoryWarning, match=words):
        model.fit(X, y)
    verdict = model.fit_report_.verdict
    assert verdict.kind == kind
    assert model.check(X, y) == verdict


@pytest.mark.parametrize(
    ("sampling", "kind", "words"),
    [
        (gb.MVS(0.3), "sound", "never rises"),
        (gb.GOSS(0.1, 0.1), "sound", "never rises"),
        (gb.WeightTrimming(0.9, "gradient"), "sound", "never rises"),
        (gb.ImportanceSampling(0.3, variance_control="none"), "heuristic", "leaf values are those of the sample"),
        (gb.ImportanceSampling(0.3, variance_control="node"), "heuristic", "chosen by the same sample"),
        (gb.ImportanceSampling(0.3, variance_control="node", eta=0.5), "heuristic", "unbiased for eta = 1 only"),
        (gb.WeightTrimming(0.9, "gradient", "none"), "heuristic", "without reweighting"),
    ],
    ids=repr,
)
def test_exact_leaves_keep_what_is_known_of_the_loss(sampling: object, kind: str, words: str) -> None:
    verdict = regressor(sampling=sampling, step="constant").check(X, Y)
    assert verdict.kind == kind
    assert words in str(verdict)


def test_fields_are_parameters_of_the_model() -> None:
    model = regressor(sampling=gb.MVS(0.3))
    assert model.get_params()["sampling__rate"] == 0.3
    model.set_params(sampling__score="gradient", sampling__floor=0.01)
    assert model.sampling == gb.ImportanceSampling(0.3, score="gradient", floor=0.01)
    with pytest.raises(RecipeError, match=r"rate=0\.3 and rho=1\.0"):
        model.set_params(sampling__rho=1.0)
    assert model.set_params(sampling__rate=None, sampling__rho=1.0).sampling.rho == 1.0


def test_a_loss_that_breaks_down_is_an_error() -> None:
    def gradient(y: float, f: float) -> float:
        return float("nan") if f > 0.0 else f - y

    custom = gb.losses.custom(lambda y, f: 0.5 * (f - y) * (f - y), gradient, lambda y, f: 1.0, name="broken")
    with pytest.raises(gb.InputError, match="loss: gradients must be finite"):
        regressor(loss=custom, sampling=gb.MVS(0.5)).fit(X, Y + 3.0)
