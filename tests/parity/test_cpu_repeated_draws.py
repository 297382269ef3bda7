"""Rounds that draw rows or features, which a CPU repeats in one call: models and reports of rounds one by one."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any, ClassVar

import numpy as np
import pytest
from sklearn.base import clone
from support.builders import random_case, sparse
from support.examples import crossed, daily
from support.repeated_rounds import Counted, assert_rounds_are_the_references, counted, watched

import gpuboost as gb
from gpuboost.backends.cpu import repeated_draws
from gpuboost.backends.cpu.backend import Cpu
from gpuboost.backends.cpu.repeated_rounds import RepeatedRounds
from gpuboost.backends.cpu.trees import histograms
from gpuboost.backends.host.workspace import Workspace
from gpuboost.backends.numerics.probabilities import ThresholdRule
from gpuboost.backends.reference.backend import Reference
from gpuboost.boosting import boost
from gpuboost.composition.repeated_rounds import may_repeat_on_cpu
from gpuboost.errors import InputError
from gpuboost.growth import DepthWise, LeafWise, Oblivious
from gpuboost.kernels.growth import repeated_rounds as kernel
from gpuboost.learners import RandomByLevel, RandomByNode, RandomGroups
from gpuboost.losses import Logistic, Poisson, Softmax, SquaredError
from gpuboost.recipe import Recipe
from gpuboost.sampling import GOSS, MVS, ImportanceSampling, UniformSampling, WeightTrimming
from gpuboost.types import Built, Limits

__all__ = ["counted"]

GROWTH = DepthWise(Limits(8, 3))
ROWS, COLUMNS = {"sampling": UniformSampling(0.6)}, {"learners": RandomGroups(2)}
DRAWN: list[dict[str, Any]] = [
    ROWS,
    COLUMNS,
    {**ROWS, **COLUMNS},
    {"sampling": UniformSampling(0.3, variance_control="none"), **COLUMNS},
    {"sampling": MVS(0.5)},
    {"sampling": ImportanceSampling(0.4, score="hessian", variance_control="none"), **COLUMNS},
    {"sampling": ImportanceSampling(rho=1.5, score="gradient")},
    {"sampling": GOSS()},
    {"sampling": WeightTrimming(0.9)},
]


@dataclass(frozen=True)
class HalfOfTheRate(ThresholdRule):
    """A rule of a user's own, which no kernel has."""

    def solve(self, search: Any) -> tuple[float, ...]:
        return search.rho_for_rate(self.rate / 2.0, self.floor), self.floor


@dataclass(frozen=True)
class Half:
    """A sampling rule that draws by it."""

    unbiased: ClassVar[bool] = True
    bounded: ClassVar[bool] = False
    repeatable: ClassVar[bool] = True
    follows_gradients: ClassVar[bool] = True
    variance_control: str = "leaf_refit"

    def draw(self, backend: Any, gradients: Any, key: Any) -> Any:
        return backend.draw(gradients, 0.1, HalfOfTheRate(0.8), key)


LOG = tuple(Built(ticket, 0, 0, 0) for ticket in (0, 1, 4))
CASES: list[tuple[Any, str, str]] = [
    (SquaredError(), "real", "real"),
    (Logistic(), "binary", "whole"),
    (Poisson(), "positive", "none"),
]
SEVERAL = [(Softmax(3), "3", "whole")]  # outputs, whose kernels take seconds to compile


@pytest.mark.parametrize(
    ("drawn", "loss", "target", "weights"), [*crossed(DRAWN, CASES), *crossed(DRAWN, SEVERAL, most=0)]
)
def test_repeated_rounds_are_the_references(
    drawn: dict[str, Any], loss: Any, target: str, weights: str, counted: Counted
) -> None:
    of = random_case(5, 200, 4, target=target, weights=weights, categorical=0.0)
    recipe = replace(Recipe(loss, 12, 0.3, GROWTH), **drawn)
    assert_rounds_are_the_references(recipe, of, counted)


@pytest.mark.parametrize(
    "growth",
    [
        DepthWise(Limits(8, 3, min_samples_leaf=5)),
        LeafWise(Limits(6, 8)),
        LeafWise(Limits(6, 8, min_samples_leaf=3)),
        DepthWise(Limits(8, 3, reg_alpha=0.2, directions=(1, 0, -1, 0))),
        LeafWise(Limits(6, 8, min_samples_leaf=3, max_delta_step=0.4)),
        Oblivious(Limits(16, 4)),
    ],
    ids=str,
)
@pytest.mark.parametrize("drawn", [{**ROWS, **COLUMNS}, {"sampling": MVS(0.5), **COLUMNS}], ids=["rows", "mvs"])
def test_rounds_of_other_trees_are_repeated(growth: Any, drawn: dict[str, Any], counted: Counted) -> None:
    case = random_case(17, 200, 4, target="binary", categorical=0.0)
    recipe = replace(Recipe(Logistic(), 12, 0.3, growth), **drawn)
    assert watched(recipe, case, Cpu(1), together=5) == watched(recipe, case, Reference())
    assert counted.calls == [5, 5, 1]


def test_one_kernel_serves_for_all_draws(counted: Counted) -> None:
    """The process that compiles it draws rows alone."""
    case, plain = random_case(5, 200, 4, categorical=0.0), Recipe(SquaredError(), 3, 0.3, GROWTH)
    boost(replace(plain, **ROWS), case.data, Cpu(1), together=5)
    before = len(kernel.repeat.overloads)
    for drawn in DRAWN:
        boost(replace(plain, **drawn), case.data, Cpu(1), together=5)
    assert counted.calls == [2] * (1 + len(DRAWN))
    assert len(kernel.repeat.overloads) == before


@pytest.mark.slow
def test_features_of_categories_are_drawn(counted: Counted) -> None:
    """The first trees go through the verbs, until one of them has drawn a feature of categories."""
    case = random_case(15, 200, 5, target="binary", categorical=0.9)
    assert case.data.cuts.is_categorical.any()
    recipe = replace(Recipe(Logistic(), 40, 0.3, GROWTH), **ROWS, **COLUMNS)
    assert watched(recipe, case, Cpu(1), together=8) == watched(recipe, case, Reference())
    assert sum(counted.calls) > 8


def test_a_round_may_draw_no_row(counted: Counted) -> None:
    case = random_case(16, 30, 3, categorical=0.0)
    recipe = Recipe(SquaredError(), 30, 0.3, GROWTH, UniformSampling(0.02))
    assert watched(recipe, case, Cpu(1), together=16) == watched(recipe, case, Reference())
    assert counted.calls == [16, 13]


def test_a_model_is_continued(counted: Counted) -> None:
    case = random_case(8, 150, 4, categorical=0.0)
    recipe = replace(Recipe(SquaredError(), 6, 0.3, GROWTH), **ROWS, **COLUMNS)

    def twice(backend: Any, **given: Any) -> tuple[Any, ...]:
        first = boost(recipe, case.data, backend, **given)
        return watched(replace(recipe, learning_rate=0.1), case, backend, resume=first, **given)

    assert twice(Cpu(1), together=4) == twice(Reference())
    assert counted.calls == [4, 1, 4, 1]


def test_a_tree_without_room_is_grown_by_the_verbs(counted: Counted, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(histograms, "FIRST_SLOTS", 2)
    monkeypatch.setattr(histograms, "FIRST_BYTES", 0)
    monkeypatch.setattr(Workspace, "room", lambda self, name: 0)
    random = np.random.default_rng(0)
    case = random_case(9, 400, 4, categorical=0.0)
    data = replace(case.data, y=np.where(np.arange(400) < 4, 50.0, random.normal(size=400)))
    recipe = replace(Recipe(SquaredError(), 30, 0.5, DepthWise(Limits(64, 6))), **ROWS)
    case = replace(case, data=data)
    assert watched(recipe, case, Cpu(1), together=8) == watched(recipe, case, Reference())
    assert 0 in counted.calls


@pytest.mark.parametrize("log", [(), LOG], ids=["no log", "a log with gaps"])
def test_rounds_after_repeated_ones_go_on_with_their_tickets(
    log: tuple[Built, ...], counted: Counted, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The streams of a round are those of its ticket; after a log with gaps the next ones do not follow one another."""
    repeat = RepeatedRounds.repeat
    monkeypatch.setattr(
        RepeatedRounds, "repeat", lambda *given: repeat(*given) if counted.calls[-1:] != [4] else pause()
    )

    def pause() -> tuple[()]:
        counted.calls.append(0)
        return ()

    case = random_case(8, 150, 4, categorical=0.0)
    recipe = replace(Recipe(SquaredError(), 20, 0.3, GROWTH), **ROWS, **COLUMNS)
    assert watched(recipe, case, Cpu(1), together=4, log=log) == watched(recipe, case, Reference(), log=log)
    assert counted.calls == ([] if log else [4, 0, 4, 0, 4, 0, 4])


def test_gradients_that_are_no_numbers_are_refused_by_the_verbs(counted: Counted) -> None:
    case = random_case(10, 60, 2, categorical=0.0)
    recipe = replace(Recipe(SquaredError(), 200, 1e6, GROWTH), **ROWS)
    with pytest.raises(InputError, match="gradients must be finite numbers"):
        boost(recipe, case.data, Cpu(1), together=8)
    assert counted.calls[0] > counted.calls[-1]


@pytest.mark.parametrize("growth", [DepthWise, LeafWise])
@pytest.mark.parametrize("least", daily([1, 7], 1))
@pytest.mark.parametrize("loss", daily([SquaredError(), Softmax(3)], 1))
@pytest.mark.parametrize("categorical", daily([0.0, 0.5], 1))
@pytest.mark.parametrize(
    "drawn",
    [
        {"learners": RandomByNode(2)},
        {"learners": RandomByLevel(2)},
        {"extra": True},
        {"extra": True, "learners": RandomByNode(3), **ROWS},
        {"extra": True, **COLUMNS},
        {"strength": 1.0},
        {"strength": 0.5, "extra": True, "learners": RandomByNode(3), **ROWS},
    ],
    ids=str,
)
def test_rounds_whose_nodes_draw_cuts_features_or_noise(
    growth: Any, least: int, loss: Any, categorical: float, drawn: dict[str, Any], counted: Counted
) -> None:
    target = "3" if isinstance(loss, Softmax) else "real"
    case = random_case(8, 250, 4, categorical=categorical, target=target)
    by_output = {"extra_trees": drawn.get("extra", False), "random_strength": drawn.get("strength", 0.0)}
    rules = {name: rule for name, rule in drawn.items() if name not in ("extra", "strength")}
    limits = Limits(31, 5, least, **by_output)
    recipe = replace(Recipe(loss, 12, 0.3, growth(limits)), **rules)
    assert watched(recipe, case, Cpu(1), together=5) == watched(recipe, case, Reference())
    repeats = not (any(by_output.values()) and target == "3")  # several trees draw these from several streams
    assert counted.calls == ([5, 5, 1] if repeats else [0] * 11)


@pytest.mark.parametrize(
    "differing",
    [
        {"sampling": ImportanceSampling(0.5, score="loss")},
        {"sampling": Half()},
        {"sampling": ImportanceSampling(0.5, score="gradient", variance_control="none")},
        {"sampling": ImportanceSampling(0.5, variance_control="node")},
        {"learners": RandomGroups(2, "root")},
        {"learners": RandomByLevel(2), "growth": Oblivious(Limits(4, 2))},
        {**ROWS, "loss": Softmax(3), "growth": DepthWise(Limits(4, 2, random_strength=1.0))},
        {**ROWS, "loss": Softmax(3), "growth": DepthWise(Limits(4, 2, extra_trees=True))},
        {"sampling": UniformSampling(0.5, variance_control="horvitz_thompson")},
    ],
    ids=str,
)
def test_other_draws_go_through_the_loop(differing: dict[str, Any], counted: Counted) -> None:
    target = "3" if "loss" in differing else "real"
    case = random_case(11, 100, 3, categorical=0.0, target=target)
    recipe = replace(Recipe(SquaredError(), 4, 0.3, GROWTH), **differing)
    assert watched(recipe, case, Cpu(1), together=8) == watched(recipe, case, Reference())
    assert set(counted.calls) <= {0}


@pytest.mark.parametrize("drawn", [ROWS, COLUMNS])
def test_sparse_and_many_rows_go_through_the_loop(
    drawn: dict[str, Any], counted: Counted, monkeypatch: pytest.MonkeyPatch
) -> None:
    case = random_case(6, 120, 4)
    recipe = replace(Recipe(SquaredError(), 4, 0.3, GROWTH), **drawn)
    of_sparse = replace(case, data=sparse(case.data))
    assert watched(recipe, of_sparse, Cpu(1), together=8) == watched(recipe, of_sparse, Reference())
    assert counted.calls == [0, 0, 0]
    if drawn is ROWS:
        counted.calls.clear()
        monkeypatch.setattr(repeated_draws, "MOST", 119)
        assert watched(recipe, case, Cpu(1), together=8) == watched(recipe, case, Reference())
        assert counted.calls == [0, 0, 0]


@pytest.mark.parametrize("early", [None, 3])
@pytest.mark.parametrize("classes", daily([2, 3], 1))
@pytest.mark.parametrize("sampling", daily([0.4, gb.ImportanceSampling(0.4, floor=0.0), gb.WeightTrimming(0.8)], 2))
def test_the_report_is_that_of_rounds_one_by_one(
    sampling: Any, classes: int, early: int | None, counted: Counted, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Also of fewer rounds than were done, where the fit stops early."""
    rng = np.random.default_rng(classes)
    x, weight = rng.normal(size=(300, 4)), rng.integers(0, 3, 300)
    y = np.minimum((x[:, 0] + rng.normal(size=300) > 0) * 1 + (x[:, 1] > 1), classes - 1)
    model = gb.GradientBoostingClassifier(
        n_estimators=60, learning_rate=0.9, max_depth=3, sampling=sampling, learners=0.5, device="cpu", n_jobs=1,
        random_state=0, early_stopping_rounds=early,
    )  # fmt: skip
    given = {"sample_weight": weight, "eval_set": [(x[:90], y[:90])]}
    repeated = clone(model).fit(x, y, **given)
    assert sum(counted.calls) > 7
    monkeypatch.setattr(RepeatedRounds, "repeat", lambda *_: ())
    one_by_one = clone(model).fit(x, y, **given)
    assert gb.dumps(repeated) == gb.dumps(one_by_one)
    assert repeated.evals_result_ == one_by_one.evals_result_
    report = repeated.fit_report_.sampling
    assert report == one_by_one.fit_report_.sampling
    assert len(report.rates) == repeated.fit_report_.rounds


def test_a_recipe_says_whether_a_cpu_repeats_its_rounds() -> None:
    plain = Recipe(SquaredError(), 4)
    extra, noisy = DepthWise(Limits(4, 2, extra_trees=True)), DepthWise(Limits(4, 2, random_strength=1.0))
    known = [ROWS, {"sampling": MVS(0.5), **COLUMNS}, {"learners": RandomByNode(2), "growth": extra}, {"growth": noisy}]
    others = [
        {"sampling": ImportanceSampling(0.5, score="loss")}, {"learners": RandomGroups(2, "root")},
        {"loss": Softmax(3), "growth": noisy}, {"loss": Softmax(3), "growth": extra},
    ]  # fmt: skip
    assert [may_repeat_on_cpu(replace(plain, **drawn)) for drawn in ({}, *known, *others)] == [True] * 5 + [False] * 4
