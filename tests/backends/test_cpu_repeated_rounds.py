"""Rounds that a CPU repeats in one call: the model, and what a watch sees, are those of rounds one by one."""

from __future__ import annotations

import json
import sys
from dataclasses import replace
from typing import Any
from weakref import ref

import numpy as np
import pytest
from support.builders import model_bytes, random_case, sparse
from support.examples import crossed, daily
from support.kernel_calls import noted_calls
from support.repeated_rounds import Counted, counted, watched

import gpuboost as gb
from gpuboost import losses
from gpuboost.backends.cpu import repeated_rounds
from gpuboost.backends.cpu.backend import Cpu
from gpuboost.backends.cpu.compilation import background
from gpuboost.backends.cpu.compilation.first_fit import FIRST_FITS
from gpuboost.backends.cpu.repeated_rounds import RepeatedRounds
from gpuboost.backends.cpu.trees import histograms
from gpuboost.backends.reference.backend import Reference
from gpuboost.boosting import boost
from gpuboost.errors import InputError
from gpuboost.growth import DepthWise, LeafWise, Oblivious
from gpuboost.kernels.growth import repeated_rounds as kernel
from gpuboost.kernels.growth import small_stump
from gpuboost.learners import RandomByLevel, RandomByNode, RandomGroups
from gpuboost.recipe import Recipe
from gpuboost.sampling import UniformSampling
from gpuboost.steps import GradientStep, automatic
from gpuboost.types import Interactions, Limits, Progress

__all__ = ["counted"]

GROWTH = DepthWise(Limits(8, 3))
QUANTILES = {"loss": losses.AbsoluteError(), "step": automatic(losses.AbsoluteError())}
LEAF_WISE = [LeafWise(Limits(*limits)) for limits in ((2, 62), (31, 62), (31, 4), (255, 62))]


@pytest.mark.parametrize(
    ("loss", "target", "weights"),
    [
        (losses.SquaredError(), "real", "real"),
        (losses.Logistic(), "binary", "whole"),
        pytest.param(losses.Softmax(3), "3", "none", marks=pytest.mark.slow),
        pytest.param(losses.Softmax(3), "3", "real", marks=pytest.mark.slow),
        pytest.param(losses.Poisson(), "positive", "whole", marks=pytest.mark.slow),
    ],
)
@pytest.mark.parametrize("threads", [1, 3])
def test_repeated_rounds_are_the_references(
    loss: Any, target: str, weights: str, threads: int, counted: Counted
) -> None:
    case = random_case(5, 200, 4, target=target, weights=weights)
    recipe = Recipe(loss, 12, 0.3, GROWTH)
    assert watched(recipe, case, Cpu(threads), together=5) == watched(recipe, case, Reference())
    assert counted.calls == [5, 5, 1]


@pytest.mark.parametrize("growth", LEAF_WISE, ids=lambda growth: f"{growth.limits.max_leaves}")
@pytest.mark.parametrize(
    ("loss", "target", "weights"),
    [
        (losses.SquaredError(), "real", "real"),
        pytest.param(losses.Softmax(3), "3", "whole", marks=pytest.mark.slow),
    ],
)
@pytest.mark.parametrize("categorical", daily([0.0, 0.5], 1))
def test_rounds_of_leaf_wise_trees(
    growth: LeafWise, loss: Any, target: str, weights: str, categorical: float, counted: Counted
) -> None:
    case = random_case(5, 300, 4, target=target, weights=weights, categorical=categorical)
    recipe = Recipe(loss, 12, 0.3, growth)
    expected = watched(recipe, case, Reference())
    assert watched(recipe, case, Cpu(1), together=5) == expected
    assert counted.calls == [5, 5, 1]
    case = replace(case, data=sparse(case.data))
    assert watched(recipe, case, Cpu(1), together=5) == expected


@pytest.mark.parametrize(
    ("limits", "loss", "target", "weights", "categorical"),
    crossed(
        [Limits(64, 6), Limits(20, 6), Limits(100, 7, min_child_weight=0.0)],
        [
            (losses.SquaredError(), "real", "real"),
            (losses.Poisson(), "positive", "none"),
            (losses.Softmax(3), "3", "whole"),
        ],
        [0.0, 0.5],
        most=2,  # kernels of several outputs take seconds to compile
    ),
)
def test_rounds_of_oblivious_trees(
    limits: Limits, loss: Any, target: str, weights: str, categorical: float, counted: Counted
) -> None:
    case = random_case(5, 300, 4, target=target, weights=weights, categorical=categorical)
    recipe = Recipe(loss, 12, 0.3, Oblivious(limits))
    expected = watched(recipe, case, Reference())
    for rows in (case.data, sparse(case.data)):
        counted.calls.clear()
        assert watched(recipe, replace(case, data=rows), Cpu(1), together=5) == expected
        assert counted.calls == [5, 5, 1]


@pytest.mark.parametrize("growth", [DepthWise(Limits(32, 5, 7)), LeafWise(Limits(31, 62, 7))], ids=["depth", "leaf"])
@pytest.mark.parametrize(
    ("loss", "target", "weights"),
    [
        (losses.SquaredError(), "real", "real"),
        (losses.Logistic(), "binary", "whole"),
        pytest.param(losses.Softmax(3), "3", "whole", marks=pytest.mark.slow),
    ],
)
@pytest.mark.parametrize("categorical", daily([0.0, 0.5], 1))
def test_rounds_of_trees_whose_leaves_need_several_rows(
    growth: Any, loss: Any, target: str, weights: str, categorical: float, counted: Counted
) -> None:
    case = random_case(5, 300, 4, target=target, weights=weights, categorical=categorical)
    recipe = Recipe(loss, 12, 0.3, growth)
    expected = watched(recipe, case, Reference())
    for rows in (case.data, sparse(case.data)):
        counted.calls.clear()
        assert watched(recipe, replace(case, data=rows), Cpu(1), together=5) == expected
        assert counted.calls == [5, 5, 1]


HELD: list[dict[str, Any]] = [
    {"reg_alpha": 0.1},
    {"directions": (1, 0, -1, 0)},
    {"max_delta_step": 0.3, "directions": (0, 1, 0, 1), "min_samples_leaf": 7},
    {"reg_alpha": 0.1, "max_delta_step": 0.3},
    {"path_smooth": 3.0},
    {"path_smooth": 0.5, "directions": (1, 0, -1, 0), "max_delta_step": 0.3},
]


KINDS = [DepthWise(Limits(32, 5)), LeafWise(Limits(31, 62))]


@pytest.mark.parametrize(
    ("held", "growth", "loss", "target", "weights"),
    crossed(
        HELD,
        KINDS,
        [
            (losses.Logistic(), "binary", "whole"),
            (losses.SquaredError(), "real", "real"),
            (losses.Poisson(), "positive", "none"),
        ],
    ),
)
@pytest.mark.parametrize("categorical", daily([0.0, 0.5], 1))
def test_rounds_of_leaf_values_within_bounds(
    held: dict[str, Any], growth: Any, loss: Any, target: str, weights: str, categorical: float, counted: Counted
) -> None:
    assert_repeated_within_bounds(held, growth, loss, target, weights, categorical, counted)


@pytest.mark.slow  # a kernel of its own
@pytest.mark.parametrize("categorical", [0.0, 0.5])
@pytest.mark.parametrize("growth", KINDS, ids=["depth", "leaf"])
@pytest.mark.parametrize("held", HELD, ids=str)
def test_rounds_of_several_leaf_values_within_bounds(
    held: dict[str, Any], growth: Any, categorical: float, counted: Counted
) -> None:
    assert_repeated_within_bounds(held, growth, losses.Softmax(3), "3", "none", categorical, counted)


def assert_repeated_within_bounds(
    held: dict[str, Any], growth: Any, loss: Any, target: str, weights: str, categorical: float, counted: Counted
) -> None:
    case = random_case(5, 300, 4, target=target, weights=weights, categorical=categorical)
    if "directions" in held:  # of one score a row, and of numbers
        of_numbers = np.where(case.data.cuts.is_categorical, 0, held["directions"])
        held = {**held, "directions": tuple(of_numbers.tolist()) if loss.n_outputs == 1 else None}
    recipe = Recipe(loss, 12, 0.3, replace(growth, limits=replace(growth.limits, **held)))
    expected = watched(recipe, case, Reference())
    for rows in (case.data, sparse(case.data)):
        counted.calls.clear()
        assert watched(recipe, replace(case, data=rows), Cpu(1), together=5) == expected
        assert counted.calls == [5, 5, 1]


@pytest.mark.parametrize(
    ("more", "growth", "rule"),
    crossed(
        [
            {},
            {"learners": RandomByNode(2)},
            {"learners": RandomByLevel(3), "sampling": UniformSampling(0.6)},
            {"learners": RandomGroups(3), "limits": {"reg_alpha": 0.1}},
            {"limits": {"directions": (1, 0, -1, 0), "extra_trees": True}, "step": GradientStep()},
            {"limits": {"min_samples_leaf": 7, "random_strength": 1.0}},
            {"langevin": gb.Langevin(allow_unproven=True)},
            {"loss": losses.Softmax(3)},
        ],
        [DepthWise(Limits(32, 5)), LeafWise(Limits(31, 62))],
        [(Interactions(((0, 1), (1, 2, 3))),), (Interactions(((0, 1, 2, 3),), 2, (0, 0, 1, 2)),)],
        most=7,
    ),
)
def test_rounds_of_trees_whose_paths_are_restricted(
    more: dict[str, Any], growth: Any, rule: Interactions, counted: Counted
) -> None:
    more = {"loss": losses.SquaredError(), **more}
    several = more["loss"].n_outputs > 1
    case = random_case(5, 300, 4, target="3" if several else "real", categorical=0.0, weights="whole")
    limits = replace(growth.limits, interactions=rule, **more.pop("limits", {}))
    recipe = Recipe(more.pop("loss"), 12, 0.3, replace(growth, limits=limits), **more)
    assert watched(recipe, case, Cpu(1), together=5) == watched(recipe, case, Reference())
    assert counted.calls == [5, 5, 1]


@pytest.mark.parametrize(
    "more",
    daily(
        [
            {"sampling": UniformSampling(0.6), "learners": RandomGroups(3)},
            {"sampling": UniformSampling(0.6), "langevin": gb.Langevin(allow_unproven=True)},
        ],
        1,
    ),
    ids=["draws", "noise"],
)
def test_leaf_values_along_paths_of_sums_of_all_rows(more: dict[str, Any], counted: Counted) -> None:
    case = random_case(5, 300, 4, categorical=0.0, weights="whole")
    growth = DepthWise(Limits(32, 5, path_smooth=3.0))
    recipe = Recipe(losses.SquaredError(), 12, 0.3, growth, **more)
    assert watched(recipe, case, Cpu(1), together=5) == watched(recipe, case, Reference())
    assert counted.calls == [5, 5, 1]


@pytest.mark.parametrize(
    ("loss", "target", "weights"),
    [
        (losses.SquaredError(), "real", "real"),
        (losses.Logistic(), "binary", "whole"),
        pytest.param(losses.Softmax(3), "3", "none", marks=pytest.mark.slow),
    ],
)
def test_stumps_are_repeated_from_the_third_round_on(loss: Any, target: str, weights: str, counted: Counted) -> None:
    """The first is grown by a kernel of its own, the second as other trees are."""
    case = random_case(5, 200, 4, target=target, weights=weights, categorical=0.0)
    recipe = Recipe(loss, 12, 0.3, DepthWise(Limits(2, 1)))
    for threads in (1, 3):
        counted.calls.clear()
        assert watched(recipe, case, Cpu(threads), together=5) == watched(recipe, case, Reference())
        assert counted.calls == [0, 5, 5]


@pytest.mark.parametrize(("compiled", "kept"), [(True, 1), (False, 0)])
def test_stumps_that_are_not_repeated_are_grown_by_their_own_kernel(
    compiled: bool, kept: int, counted: Counted, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(repeated_rounds, "MOST_NODES", 2)  # a stump has three
    monkeypatch.setattr(RepeatedRounds, "_has", lambda *_: compiled)
    grown = noted_calls(small_stump, monkeypatch)
    case = random_case(5, 200, 4, categorical=0.0)
    recipe = Recipe(losses.SquaredError(), 12, 0.3, DepthWise(Limits(2, 1)))
    assert watched(recipe, case, Cpu(1), together=5) == watched(recipe, case, Reference())
    assert counted.calls == [0] * 11
    assert len(grown) == 12 - kept


def test_sparse_rows_and_deep_trees(counted: Counted) -> None:
    case = random_case(6, 300, 4)
    case = replace(case, data=sparse(case.data))
    recipe = Recipe(losses.SquaredError(), 8, 0.3, DepthWise(Limits(300, 9)))
    assert watched(recipe, case, Cpu(1), together=8) == watched(recipe, case, Reference())
    assert counted.calls == [7]


@pytest.mark.parametrize("stop", [2, 5, 9])
def test_rounds_after_a_stop_are_not_in_the_model(stop: int, counted: Counted) -> None:
    case = random_case(7, 150, 3, target="binary")
    recipe = Recipe(losses.Logistic(), 20, 0.3, GROWTH)
    found = watched(recipe, case, Cpu(1), stop, together=16)
    assert found == watched(recipe, case, Reference(), stop)
    assert counted.calls == [16]


def test_a_model_is_continued(counted: Counted) -> None:
    case, backend = random_case(8, 150, 3), Cpu(1)
    recipe = Recipe(losses.SquaredError(), 6, 0.3, GROWTH)

    def twice(backend: Any, **given: Any) -> tuple[Any, ...]:
        first = boost(recipe, case.data, backend, **given)
        return watched(replace(recipe, learning_rate=0.1), case, backend, resume=first, **given)

    assert twice(backend, together=4) == twice(Reference())
    assert counted.calls == [4, 1, 4, 1]


@pytest.mark.parametrize(
    ("growth", "first"),
    [(DepthWise(Limits(64, 6)), 5), (DepthWise(Limits(64, 6)), 2), (LeafWise(Limits(64, 62)), 2)],
    ids=["depth-5", "depth-2", "leaf-2"],
)
def test_a_tree_without_room_is_grown_by_the_verbs(
    growth: Any, first: int, counted: Counted, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A pure noise of many rounds needs more histograms at some time than the trees before it did."""
    monkeypatch.setattr(histograms, "FIRST_SLOTS", first)
    monkeypatch.setattr(histograms, "FIRST_BYTES", 0)
    random = np.random.default_rng(0)
    case = random_case(9, 400, 4)
    data = replace(case.data, y=np.where(np.arange(400) < 4, 50.0, random.normal(size=400)))
    case = replace(case, data=data)
    recipe = Recipe(losses.SquaredError(), 30, 0.5, growth)
    assert watched(recipe, case, Cpu(1), together=8) == watched(recipe, case, Reference())
    assert 0 in counted.calls
    assert sum(counted.calls) > 8


def test_a_call_ends_before_a_leaf_wise_tree_without_room(counted: Counted, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(histograms, "FIRST_SLOTS", 4)
    monkeypatch.setattr(histograms, "FIRST_BYTES", 0)
    noise = np.where(np.arange(400) < 4, 50.0, np.random.default_rng(0).normal(size=400))
    case = random_case(9, 400, 4)
    data = replace(case.data, y=noise)
    recipe = Recipe(losses.SquaredError(), 30, 0.5, LeafWise(Limits(64, 62)))
    found, expected = (boost(recipe, data, machine, together=8) for machine in (Cpu(1), Reference()))
    assert model_bytes(found) == model_bytes(expected)
    assert counted.calls[:2] == [2, 0]
    assert sum(counted.calls) > 8


def test_gradients_that_are_no_numbers_are_refused_by_the_verbs(counted: Counted) -> None:
    case = random_case(10, 60, 2)
    recipe = Recipe(losses.SquaredError(), 200, 1e6, GROWTH)
    with pytest.raises(InputError, match="gradients must be finite numbers"):
        boost(recipe, case.data, Cpu(1), together=8)
    assert counted.calls[-1] < 8


@pytest.mark.parametrize(
    "differing",
    [
        QUANTILES,
        {"growth": Oblivious(Limits(4, 2, min_samples_leaf=3))},
        {"growth": Oblivious(Limits(4, 2, path_smooth=3.0))},
        {**QUANTILES, "growth": DepthWise(Limits(4, 2, directions=(1, 0, 0)))},
        {"growth": Oblivious(Limits(4, 2, reg_alpha=0.1))},
        {"growth": Oblivious(Limits(4, 2, interactions=Interactions(((0, 1), (2,)))))},
        {"growth": LeafWise(Limits(4_000, 62, min_samples_leaf=3))},
        {"growth": LeafWise(Limits(4_000, 62))},  # splits of which are speculative
    ],
    ids=str,
)
def test_other_rounds_go_through_the_loop(differing: dict[str, Any], counted: Counted) -> None:
    case = random_case(11, 100, 3, categorical=0.0)
    recipe = replace(Recipe(losses.SquaredError(), 4, 0.3, GROWTH), **differing)
    assert watched(recipe, case, Cpu(1), together=8) == watched(recipe, case, Reference())
    assert counted.calls == [0, 0, 0]


def test_a_call_is_short(counted: Counted, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(repeated_rounds, "MOST_WORK", 1)
    case = random_case(12, 100, 3, categorical=0.0)
    boost(Recipe(losses.SquaredError(), 5, 0.3, GROWTH), case.data, Cpu(1), together=8)
    assert counted.calls == [1, 1, 1, 1]


def test_large_trees_of_many_outputs_take_no_memory_for_many_rounds(
    counted: Counted, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(repeated_rounds, "MOST_NODES", 20)
    case = random_case(12, 100, 3, categorical=0.0)
    boost(Recipe(losses.SquaredError(), 4, 0.3, GROWTH), case.data, Cpu(1), together=8)
    assert counted.calls == [1, 1, 1]  # of at most 15 nodes
    counted.calls.clear()
    boost(Recipe(losses.SquaredError(), 3, 0.3, DepthWise(Limits(16, 4))), case.data, Cpu(1), together=8)
    assert counted.calls == [0, 0]


def test_nothing_is_kept_of_a_fit() -> None:
    case, machine, kept = random_case(13, 80, 2), Cpu(1), []

    def watch(progress: Progress) -> bool:
        assert progress.drawn is not None
        kept.append(ref(progress.drawn.gradients.g))
        return False

    boost(Recipe(losses.SquaredError(), 3, 0.3, GROWTH), case.data, machine, watch=watch)
    assert [one() is None for one in kept] == [True] * 3


@pytest.mark.parametrize(("is_there", "repeats"), [(False, False), (True, True)])
def test_no_fit_waits_for_the_kernel(
    is_there: bool, repeats: bool, counted: Counted, monkeypatch: pytest.MonkeyPatch
) -> None:
    case = random_case(5, 200, 4, target="binary", weights="whole")
    recipe = Recipe(losses.Logistic(), 6, 0.3, GROWTH)
    boost(recipe, case.data, Cpu(1), together=5)
    assert counted.calls == [5]  # so the kernel is there
    asked: list[str] = []

    def ready(_: Any, kind: str) -> bool:
        asked.append(kind)
        return is_there

    monkeypatch.setattr(RepeatedRounds, "waits", True)
    monkeypatch.setattr(repeated_rounds, "BACKGROUND", type("Background", (), {"request": ready})())
    monkeypatch.setattr(repeated_rounds, "PAYS", 3)
    counted.calls.clear()
    boost(recipe, case.data, Cpu(1), together=5)
    assert counted.calls == ([5] if repeats else [0] * 5)  # and it is not asked for each round
    assert asked == ["rounds-one-categorical"]


def test_a_kernel_for_other_types_is_not_compiled(counted: Counted, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(RepeatedRounds, "waits", True)
    monkeypatch.setattr(repeated_rounds, "BACKGROUND", type("Ready", (), {"request": lambda self, kind: True})())
    monkeypatch.setattr(repeated_rounds, "PAYS", 1)
    case, before = random_case(5, 60, 2), len(kernel.repeat.overloads)
    target = case.data.y.copy()
    target.setflags(write=False)  # numba has a type of its own for such arrays
    case = replace(case, data=replace(case.data, y=target))
    recipe = Recipe(losses.SquaredError(), 4, 0.3, GROWTH)
    assert watched(recipe, case, Cpu(1), together=5) == watched(recipe, case, Reference())
    assert counted.calls == [0, 0, 0]
    assert len(kernel.repeat.overloads) == before


@pytest.mark.parametrize("with_weights", [False, True])
def test_read_only_targets_and_weights_as_pandas_gives_them_need_no_kernels_of_their_own(
    with_weights: bool, counted: Counted
) -> None:
    rng = np.random.default_rng(0)
    x, y, weight = rng.normal(size=(200, 4)), rng.normal(size=200), rng.uniform(0.5, 1.5, 200)
    made = []
    for _ in range(2):
        counted.calls.clear()
        model = gb.GradientBoostingRegressor(n_estimators=6, max_depth=2, random_state=0, n_jobs=1, device="cpu")
        made.append(gb.dumps(model.fit(x, y, sample_weight=weight if with_weights else None)))
        overloads = len(kernel.repeat.overloads)
        assert sum(counted.calls) == 5
        y.setflags(write=False)
        weight.setflags(write=False)
    assert made[0] == made[1]
    assert len(kernel.repeat.overloads) == overloads


@pytest.mark.parametrize(
    "kind",
    [
        "rounds-one-numeric",
        *(
            pytest.param(f"rounds-{kind}", marks=pytest.mark.slow)
            for kind in (
                "several-numeric", "one-categorical", "several-categorical", "one-numeric-draws", "one-numeric-noise",
            )
        ),
    ],
)  # fmt: skip
def test_what_is_compiled_in_the_background_is_the_kernel_of_its_kind(
    kind: str, counted: Counted, monkeypatch: pytest.MonkeyPatch
) -> None:
    asked: list[str] = []
    plain = repeated_rounds.repeated_kind

    def noted(**given: bool) -> str:
        asked.append(plain(**given))
        return asked[-1]

    monkeypatch.setattr(repeated_rounds, "repeated_kind", noted)
    monkeypatch.setattr(background, "note_kind", lambda noted: asked.append(f"noted {noted}"))
    monkeypatch.setattr(FIRST_FITS, "end", lambda: None)
    monkeypatch.setattr("sys.argv", ["-c", json.dumps(sys.path), kind])
    exec(background._RUN_ROUNDS, {})
    assert asked == [kind, f"noted {kind}"]
    assert sum(counted.calls) == 2


@pytest.mark.parametrize("held", [{"reg_alpha": 0.5}, {"monotonic_cst": [1, -1, 0]}, {"growth": "oblivious"}], ids=str)
def test_a_fit_of_other_trees_may_stop_early(held: dict[str, Any], counted: Counted) -> None:
    rng = np.random.default_rng(3)
    x = rng.normal(size=(300, 3))
    x[rng.random((300, 3)) < 0.1] = np.nan
    y = np.nan_to_num(x[:, 0]) + rng.normal(size=300) > 0
    model = gb.GradientBoostingClassifier(
        n_estimators=60, learning_rate=0.5, max_depth=4, device="cpu", n_jobs=1, early_stopping_rounds=5, **held
    )
    model.fit(x[100:], y[100:], eval_set=[(x[:100], y[:100])])
    found = model.evals_result_, model.best_iteration_, model_bytes(model.ensemble_)
    assert sum(counted.calls) > 5
    model.set_params(callbacks=[lambda record: None])  # then rounds are done one by one
    model.fit(x[100:], y[100:], eval_set=[(x[:100], y[:100])])
    assert (model.evals_result_, model.best_iteration_, model_bytes(model.ensemble_)) == found


@pytest.mark.parametrize("classes", daily([2, 3], 1))
@pytest.mark.parametrize("early", [None, 3])
def test_eval_sets_of_few_rows_and_of_many_have_the_metrics_of_rounds_one_by_one(
    classes: int, early: int | None, counted: Counted
) -> None:
    """Also beside a set whose rows are not few, with metrics that take an array of scores, and with weights."""
    rng = np.random.default_rng(classes)
    x = rng.normal(size=(300, 3))
    y = np.minimum((x[:, 0] + 0.5 * rng.normal(size=300) > 0) * 1 + (x[:, 1] > 1), classes - 1)
    sets = {
        "few": (x[:90], y[:90]),
        "many": (np.tile(x[:60], (70, 1)), np.tile(y[:60], 70)),
        "weighed": (x[50:99], y[50:99], rng.random(49)),
    }
    metrics = ["accuracy", "logloss" if classes == 2 else "mlogloss", half]
    model = gb.GradientBoostingClassifier(n_estimators=30, learning_rate=0.9, max_depth=3, device="cpu", n_jobs=1)
    model.set_params(eval_metric=metrics, early_stopping_rounds=early)

    def fit() -> tuple[Any, ...]:
        model.fit(x[100:], y[100:], eval_set=sets)
        return model.evals_result_, model.best_iteration_, model_bytes(model.ensemble_)

    found = fit()
    assert sum(counted.calls) > 5
    counted.calls.clear()
    model.set_params(callbacks=[lambda record: None])  # it is called for each round, when it is done
    assert fit() == found
    assert counted.calls == []


def half(y: Any, p: Any, weight: Any = None) -> float:
    """A metric of one's own: half of the mean distance to 1 of the probability of class 0."""
    return float(np.mean(1.0 - np.asarray(p).reshape(len(y), -1)[:, 0])) / 2
