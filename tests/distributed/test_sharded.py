"""Rows shared out to 1, 2, 4 or any number of shards: one model, byte for byte, and one machine's at that."""

from __future__ import annotations

from dataclasses import replace
from itertools import pairwise, product

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from support.builders import Case, eager_threads, model_bytes, random_case
from support.cpu_shards import csr, even, place
from support.examples import crossed, examples

import gpuboost as gb
from gpuboost import losses
from gpuboost.backends.cpu.backend import Cpu
from gpuboost.backends.numerics.exact_sums import fixed_order_sum
from gpuboost.backends.protocol import Backend
from gpuboost.backends.sharded import ordered
from gpuboost.backends.sharded.worker_group import LocalWorkerGroup
from gpuboost.boosting import boost
from gpuboost.errors import InputError, RecipeError
from gpuboost.growth import DepthWise, Growth, LeafWise, Oblivious, SignStump
from gpuboost.langevin import Langevin
from gpuboost.learners import AllLearners, RandomByLevel, RandomByNode, RandomGroups, RandomLearners, Selection
from gpuboost.losses import Loss
from gpuboost.recipe import Recipe
from gpuboost.sampling import GOSS, EveryRow, ImportanceSampling, Sampling, UniformSampling, WeightTrimming
from gpuboost.steps import GradientStep, automatic
from gpuboost.types import Cuts, Ensemble, Limits, Progress, TrainingSet

Array = np.ndarray


def run(recipe: Recipe, data: TrainingSet, backend: Backend, resume: Ensemble | None = None) -> list[bytes]:
    """The model, and after each round the scores and the mean loss."""
    seen: list[bytes] = []
    weight = None if data.weight is None and data.multiplicity is None else data.row_weight()

    def watch(progress: Progress) -> bool:
        seen.append(backend.to_host(progress.scores).tobytes())
        if recipe.loss.task != "ranking":
            loss = backend.loss_value(recipe.loss, progress.scores, data.y, weight)
            seen.append(np.float64(loss).tobytes())
        return False

    return [model_bytes(boost(recipe, data, backend, seed=3, watch=watch, resume=resume)), *seen]


def assert_one_machine(recipe: Recipe, case: Case, *all_ends: list[int], threads: int = 1) -> None:
    expected = run(recipe, case.data, Cpu(1))
    for ends in all_ends:
        backend, data = place(case, ends, threads=threads)
        assert run(recipe, data, backend) == expected


LOSSES: list[tuple[Loss, str]] = [
    (losses.SquaredError(), "real"),
    (losses.Quantile(0.3), "real"),
    (losses.Quantile([0.3, 0.6]), "real"),
    (losses.Logistic(), "binary"),
    (losses.Poisson(), "positive"),
    (losses.Softmax(3), "3"),
    (losses.GaussianNLL(), "real"),
]
SAMPLINGS: list[Sampling] = [
    EveryRow(),
    UniformSampling(0.4),
    ImportanceSampling(rate=0.3),
    ImportanceSampling(rho=0.5, score="gradient", variance_control="none"),
    ImportanceSampling(rate=0.3, score="loss"),
    ImportanceSampling(rate=0.5, variance_control="node"),
    ImportanceSampling(rate=0.5, variance_control="previous_leaf"),
    GOSS(),
    WeightTrimming(0.1),
]


@pytest.mark.parametrize(("sampling", "weights"), crossed(SAMPLINGS, ["none", "real", "whole"]), ids=str)
def test_every_way_to_draw_rows(sampling: Sampling, weights: str) -> None:
    case = random_case(5, 420, 4, target="binary", weights=weights)
    recipe = Recipe(losses.Logistic(), 3, 0.5, DepthWise(Limits(12, 4)), sampling=sampling)
    assert_one_machine(recipe, case, [420], [200, 420], even(420, 4), [3, 258, 260, 420])


@pytest.mark.parametrize(
    ("loss", "target", "weights"),
    crossed(LOSSES, ["none", "real", "whole"]),
    ids=lambda value: getattr(value, "name", None),
)
def test_losses_and_their_steps(loss: Loss, target: str, weights: str) -> None:
    case = random_case(8, 300, 5, target=target, weights=weights)
    recipe = Recipe(loss, 3, 0.3, LeafWise(Limits(9, 6)), step=automatic(loss))
    assert_one_machine(recipe, case, [300], [111, 300], even(300, 4))


@pytest.mark.parametrize(
    ("growth", "bins", "least"),
    crossed(list(product([DepthWise, LeafWise, Oblivious], ["dense", "sparse", "mixed"])), [1, 7]),
)
def test_growth_and_layouts(growth: type, least: int, bins: str) -> None:
    case = random_case(2, 400, 6, categorical=0.0, missing=0.05)
    empty = 0.9 if bins == "sparse" else 0.5
    x = np.where(np.random.default_rng(0).random(case.x.shape) < empty, 0.0, case.x)
    if bins == "mixed":  # rows without zeros: the second shard would keep its bins dense, the first need not
        x[200:] = np.where(x[200:] == 0.0, 0.7, x[200:])
        x[:200] = np.where(np.random.default_rng(1).random((200, 6)) < 0.9, 0.0, x[:200])
    given_as = x if bins == "dense" else csr(x)
    data = replace(case.data, bins=Cpu(1).quantise(given_as, case.data.cuts))
    case = Case(x, data)
    recipe = Recipe(losses.SquaredError(), 3, 0.5, growth(Limits(16, 5, min_samples_leaf=least)))
    expected = run(recipe, data, Cpu(1))
    for ends in ([200, 400], even(400, 4)):
        backend, sharded = place(case, ends, given_as)
        assert run(recipe, sharded, backend) == expected


@pytest.mark.parametrize(
    "langevin",
    [Langevin(temperature=1.0), Langevin(inverse_temperature=50.0, shrinkage=0.1), Langevin(random_from=1)],
    ids=repr,
)
@pytest.mark.parametrize("sampling", [EveryRow(), UniformSampling(0.5)], ids=repr)
def test_langevin_noise_is_that_of_the_row_and_not_of_the_shard(langevin: Langevin, sampling: Sampling) -> None:
    case = random_case(4, 350, 4, target="binary", weights="whole")
    dynamics = replace(langevin, allow_unproven=True)
    growth = DepthWise(Limits(8, 3, reg_lambda=0.0))
    recipe = Recipe(losses.Logistic(), 3, 0.1, growth, sampling, step=GradientStep(), langevin=dynamics)
    assert_one_machine(recipe, case, [117, 350], even(350, 4))


DRAWN: list[tuple[Selection, Growth, bool]] = [  # and whether features may be categorical
    (RandomLearners(7), DepthWise(Limits(2, 1)), False),
    (RandomGroups(1, "root"), DepthWise(Limits(12, 4, 3)), True),
    (RandomGroups(1, "root"), LeafWise(Limits(9, 6)), True),
    (RandomByNode(2), DepthWise(Limits(12, 4)), True),
    (RandomByNode(2), LeafWise(Limits(9, 6, 3)), True),
    (RandomByLevel(2), Oblivious(Limits(16, 4)), True),
    (AllLearners(), SignStump(Limits(2, 1)), True),
    (RandomLearners(7), SignStump(Limits(2, 1, 4)), False),
    (AllLearners(), DepthWise(Limits(12, 4, 3, random_strength=1.0)), True),
    (RandomByNode(3), LeafWise(Limits(9, 6, random_strength=0.5)), True),
    (AllLearners(), Oblivious(Limits(16, 4, random_strength=1.0)), True),
    (AllLearners(), LeafWise(Limits(9, 6, extra_trees=True)), True),
    (AllLearners(), Oblivious(Limits(16, 4, extra_trees=True)), True),
]


PLAIN = {"random_strength": 0.0, "extra_trees": False}


@pytest.mark.slow
@pytest.mark.parametrize(
    ("learners", "growth", "categories", "weights"), crossed(DRAWN, ["none", "real", "whole"]), ids=str
)
def test_which_splits_compete_is_drawn_by_the_driver(
    learners: Selection, growth: Growth, categories: bool, weights: str
) -> None:
    """``Candidates.root`` and ``by_node``, signed stumps, and ``Limits.random_strength``."""
    case = random_case(5, 400, 5, target="binary", weights=weights, categorical=0.4 if categories else 0.0)
    for sampling in (EveryRow(), UniformSampling(0.6), ImportanceSampling(rate=0.5)):
        recipe = Recipe(losses.Logistic(), 4, 0.5, growth, sampling, learners)
        assert_one_machine(recipe, case, [400], [130, 400], even(400, 3), threads=2)
        kind = DepthWise if isinstance(growth, SignStump) else type(growth)
        plain = replace(recipe, learners=AllLearners(), growth=kind(replace(growth.limits, **PLAIN)))
        assert run(plain, case.data, Cpu(1)) != run(recipe, case.data, Cpu(1)), "it has to matter"


@pytest.mark.parametrize("growth", [DepthWise, LeafWise, Oblivious])
@pytest.mark.parametrize("begin", [0, 2])
def test_random_shapes_of_every_growth(growth: type, begin: int) -> None:
    case = random_case(9, 300, 5, categorical=0.4, weights="whole")
    limits = Limits(8, 3, reg_lambda=0.0, random_strength=1.0)
    for learners in (AllLearners(), RandomGroups(2)):
        pieces = {"learners": learners, "step": GradientStep(), "langevin": Langevin(shrinkage=0.1, random_from=begin)}
        recipe = Recipe(losses.SquaredError(), 4, 0.3, growth(limits), **pieces)
        assert_one_machine(recipe, case, [300], [7, 300], even(300, 3))


ESTIMATORS: list[dict[str, object]] = [
    {"learners": gb.RandomLearners(9), "max_depth": 1},
    {"learners": gb.RandomGroups(2, "root")},
    {"learners": gb.RandomByNode(2), "growth": "leafwise"},
    {"growth": "sign_stump"},
    {"random_strength": 1.0},
    {"growth": "oblivious", "random_strength": 1.0},
    {"growth": "oblivious", "langevin": gb.Langevin(shrinkage=0.1, random_from=1), "step": "gradient"},
]


@pytest.mark.parametrize("params", ESTIMATORS, ids=str)
def test_estimators_that_draw_are_one_machine(params: dict[str, object]) -> None:
    case = random_case(1, 300, 4, target="binary", categorical=0.0)
    found = []
    for execution in (None, gb.DataParallel(1), gb.DataParallel(2), gb.DataParallel(3, threads_per_shard=2)):
        model = gb.GradientBoostingClassifier(n_estimators=4, random_state=3, execution=execution, **params)
        found.append(model_bytes(model.fit(case.x, case.data.y).ensemble_))
    assert len(set(found)) == 1


@pytest.mark.parametrize(
    ("params", "text"),
    [
        ({"learners": gb.RandomByNode(2), "growth": "oblivious"}, "learners: .* treats one node unlike others"),
        ({"learners": gb.RandomGroups(2, "root"), "growth": "oblivious"}, "learners: .* treats one node unlike others"),
        ({"learners": gb.RandomByNode(2), "langevin": gb.Langevin(random_from=0)}, "random_from: RandomByNode"),
        ({"growth": "sign_stump", "langevin": gb.Langevin(random_from=0)}, "growth: Langevin boosting needs leaves"),
    ],
)
def test_what_is_refused_on_one_machine_starts_no_shard(
    params: dict[str, object], text: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    started: list[object] = []
    monkeypatch.setattr(LocalWorkerGroup, "__init__", lambda *given: started.append(given))
    case = random_case(1, 50, 4, target="binary", categorical=0.0)
    with pytest.raises(RecipeError, match=text):
        gb.GradientBoostingClassifier(execution=gb.DataParallel(2), step="gradient", **params).fit(case.x, case.data.y)
    assert not started


def test_lists_stay_whole() -> None:
    rng = np.random.default_rng(6)
    lengths = rng.integers(1, 30, 40)
    starts = np.concatenate([[0], np.cumsum(lengths)]).astype(np.int64)
    case = random_case(6, int(starts[-1]), 5)
    labels = rng.integers(0, 4, starts[-1]).astype(np.float64)
    case = Case(case.x, replace(case.data, y=labels, query_start=starts))
    for sampling in (EveryRow(), ImportanceSampling(rate=0.5)):
        recipe = Recipe(losses.LambdaMART(), 3, 0.3, DepthWise(Limits(8, 3)), sampling)
        assert_one_machine(recipe, case, [int(starts[17]), int(starts[-1])])


@settings(max_examples=examples(25))
@given(data=st.data())
def test_any_boundaries_any_shape(data: st.DataObject) -> None:
    n = data.draw(st.integers(2, 500))
    inner = data.draw(st.lists(st.integers(1, n - 1), max_size=5, unique=True))
    loss, target = data.draw(st.sampled_from(LOSSES))
    case = random_case(
        data.draw(st.integers(0, 10_000)), n, data.draw(st.integers(1, 7)), target=target,
        weights=data.draw(st.sampled_from(["none", "real", "whole"])),
    )  # fmt: skip
    growth = data.draw(st.sampled_from([DepthWise, LeafWise, Oblivious]))
    depth = data.draw(st.integers(1, 6))
    limits = Limits(2**depth, depth, min_samples_leaf=data.draw(st.sampled_from([1, 5])))
    sampling = data.draw(st.sampled_from(SAMPLINGS[:5]))
    recipe = Recipe(loss, 2, 0.4, growth(limits), sampling, step=automatic(loss))
    with eager_threads(rows=8, narrow=data.draw(st.sampled_from([3, 40, None]))):
        assert_one_machine(recipe, case, [*sorted(inner), n], threads=data.draw(st.sampled_from([1, 3])))


@pytest.mark.slow
@pytest.mark.parametrize("ends", [[70_000], [30_000, 70_000], [4_096, 65_536, 65_537, 70_000]])
def test_more_rows_than_a_block_and_several_threads(ends: list[int]) -> None:
    """Where sums have blocks and stretches, a shard several threads, and a node more rows than fit a packed pair."""
    case = random_case(11, 70_000, 3, target="positive", weights="none")
    with eager_threads(narrow=None):
        for sampling in (EveryRow(), UniformSampling(0.93)):
            recipe = Recipe(losses.Poisson(), 2, 0.3, DepthWise(Limits(8, 3)), sampling)
            assert_one_machine(recipe, case, ends, threads=2)


def test_an_ensemble_is_carried_on() -> None:
    case = random_case(3, 200, 4)
    recipe = Recipe(losses.SquaredError(), 2, 0.3, DepthWise(Limits(8, 3)))
    begun = boost(recipe, case.data, Cpu(1), seed=3)
    backend, data = place(case, [70, 200])
    assert run(recipe, data, backend, begun) == run(recipe, case.data, Cpu(1), begun)


def test_gradients_that_are_no_numbers_are_refused() -> None:
    case = random_case(3, 200, 4)
    wrong = replace(case.data, y=np.where(np.arange(200) == 150, 1e39, case.data.y))
    backend, data = place(Case(case.x, wrong), [70, 200])
    for sampling in (EveryRow(), ImportanceSampling(rate=0.5, score="gradient")):
        with pytest.raises(InputError, match="gradients must be finite"):
            boost(Recipe(losses.SquaredError(), 1, sampling=sampling), data, backend)


@settings(max_examples=examples(60))
@given(data=st.data())
def test_a_sum_cut_anywhere_is_the_sum(data: st.DataObject) -> None:
    n = data.draw(st.sampled_from([1, 15, 4_095, 4_096, 4_097, 9_000, 65_536, 70_001, 140_000]))
    inner = data.draw(st.lists(st.integers(0, n), max_size=6))
    numbers = np.random.default_rng(n).lognormal(sigma=8.0, size=n)
    edges = [0, *sorted(inner), n]
    parts = [ordered.part_of_numbers(a, numbers[a:b]) for a, b in pairwise(edges)]
    assert ordered.joined(parts) == fixed_order_sum(numbers)
    assert all(len(part.head) < 4_096 and len(part.tail) < 4_096 for part in parts)


def test_what_is_dropped_here_is_dropped_there() -> None:
    case = random_case(3, 200, 4)
    recipe = Recipe(losses.SquaredError(), 6, 0.3, DepthWise(Limits(8, 3)), UniformSampling(0.5))
    backend, data = place(case, [70, 200])
    held: list[int] = []
    boost(recipe, data, backend, watch=lambda _: bool(held.append(len(backend._driver.workers._shards[0]._objects))))
    assert max(held[2:]) <= held[1]


def test_no_rows_of_the_shards_are_with_the_driver() -> None:
    """Cuts, target and weights are; features, scores and gradients are not."""
    case = random_case(3, 200, 4)
    backend, data = place(case, [70, 200])
    assert isinstance(data.cuts, Cuts)
    arrays = [value for value in vars(backend).values() if isinstance(value, np.ndarray)]
    assert not arrays
    assert not isinstance(data.bins.rows, np.ndarray)
