"""One model, whatever the backend, the number of threads and the layout of the bins: byte for byte, scores included."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from support.builders import TEAMS, Case, eager_threads, model_bytes, random_case, sparse

from gpuboost import losses
from gpuboost.backends.cpu.backend import Cpu
from gpuboost.backends.protocol import Backend
from gpuboost.backends.reference.backend import Reference
from gpuboost.boosting import boost
from gpuboost.errors import InputError, RecipeError
from gpuboost.growth import DepthWise, LeafWise, Oblivious
from gpuboost.learners import AllLearners, RandomGroups
from gpuboost.losses import Loss
from gpuboost.recipe import Recipe
from gpuboost.sampling import EveryRow, UniformSampling
from gpuboost.steps import ConstantStep, GradientStep, NewtonStep, QuantileStep, Step, automatic
from gpuboost.types import Ensemble, Limits, Progress, TrainingSet

Array = np.ndarray


def quartic(by: float) -> Loss:
    """by * (f - y)^4: a loss made of functions that remember a number."""
    return losses.custom(
        lambda y, f: by * (f - y) * (f - y) * (f - y) * (f - y),
        lambda y, f: 4.0 * by * (f - y) * (f - y) * (f - y),
        lambda y, f: 12.0 * by * (f - y) * (f - y),
        name="quartic",
        smoothness=50.0,
    )


LOSSES: list[tuple[Loss, str]] = [
    (losses.SquaredError(), "real"),
    (losses.Huber(0.3), "real"),
    (losses.AbsoluteError(), "real"),
    (losses.Quantile(0.2), "real"),
    (losses.Poisson(), "positive"),
    (losses.Gamma(), "positive"),
    (losses.Tweedie(), "positive"),
    (losses.Logistic(), "binary"),
    (losses.Logistic(0.1), "binary"),
    (losses.Exponential(), "binary"),
    (losses.LogitBoost(), "binary"),
    (losses.SmoothedZeroOne(0.4), "binary"),
    (losses.GaussianNLL(), "real"),
    (losses.Softmax(3), "3"),
    (losses.Softmax(2), "binary"),
    (quartic(1.0), "real"),
]
STEPS: list[Step] = [NewtonStep(), GradientStep(), ConstantStep(), QuantileStep()]


def allowed(loss: Loss) -> list[Step]:
    steps = []
    for step in STEPS:
        try:
            step.curvature(loss)
        except RecipeError:
            continue
        steps.append(step)
    return steps


def run(recipe: Recipe, data: TrainingSet, backend: Backend, seed: int) -> tuple[Ensemble, list[bytes]]:
    """The ensemble, and the bytes of the scores after each round."""
    scores: list[bytes] = []

    def watch(progress: Progress) -> bool:
        scores.append(progress.scores.tobytes())
        return False

    return boost(recipe, data, backend, seed=seed, watch=watch), scores


def assert_parity(recipe: Recipe, case: Case, seed: int = 7, threads: tuple[int, ...] = (1, 2, 3, 4)) -> Ensemble:
    data, reference = case.data, Reference()
    expected, scores = run(recipe, data, reference, seed)
    last = np.frombuffer(scores[-1]).reshape(-1, data.n_rows) if scores else reference.start(data, expected.bias)
    weight = data.row_weight()
    loss = np.float64(reference.loss_value(recipe.loss, last, data.y, weight)).tobytes()
    assert reference.predict(expected, case.x).tobytes() == last.tobytes()
    for count in threads:
        backend = TEAMS[count]
        for bins in (data, sparse(data, seed)):
            found, running = run(recipe, bins, backend, seed)
            assert model_bytes(found) == model_bytes(expected)
            assert running == scores
        assert backend.predict(found, case.x).tobytes() == last.tobytes()
        assert np.float64(backend.loss_value(recipe.loss, last, data.y, weight)).tobytes() == loss
    return expected


@pytest.mark.parametrize(
    ("loss", "target", "step"),
    [(loss, target, step) for loss, target in LOSSES for step in allowed(loss)],
    ids=lambda value: value.name if hasattr(value, "name") else type(value).__name__ * (not isinstance(value, str)),
)
@pytest.mark.parametrize("weights", ["none", "real", "whole"])
def test_every_loss_with_every_step_it_allows(loss: Loss, target: str, step: Step, weights: str) -> None:
    case = random_case(len(target), 130, 4, target=target, weights=weights)
    recipe = Recipe(loss, 3, 0.5, DepthWise(Limits(12, 4)), step=step)
    with eager_threads(narrow=60):
        ensemble = assert_parity(recipe, case, threads=(1, 3))
    assert max(len(tree.value) for tree in ensemble.trees) > 1


def test_every_loss_of_rows_is_in_the_list_above() -> None:
    of_lists = {"lambdamart", "pairwise_logistic"}  # see test_ranking
    assert {loss.name for loss, _ in LOSSES} - {"quartic"} == set(losses.NAMES) - of_lists


@settings(max_examples=60)
@given(
    st.integers(0, 2**32 - 1),
    st.sampled_from(LOSSES),
    st.sampled_from([1, 2, 7, 40, 200]),
    st.integers(1, 7),
    st.sampled_from(["none", "real", "whole"]),
    st.sampled_from([DepthWise, LeafWise, Oblivious]),
    st.builds(
        Limits,
        max_leaves=st.sampled_from([2, 7, 40]),
        max_depth=st.sampled_from([1, 3, 6]),
        min_samples_leaf=st.sampled_from([1, 1, 4]),
        min_child_weight=st.sampled_from([0.0, 1e-3, 0.5]),
        reg_lambda=st.sampled_from([0.0, 1.0]),
        min_split_gain=st.sampled_from([0.0, 0.1]),
    ),
    st.sampled_from([EveryRow(), UniformSampling(0.02), UniformSampling(0.5), UniformSampling(1.0)]),
    st.sampled_from([AllLearners(), RandomGroups(1), RandomGroups(0.4)]),
    st.sampled_from([0.05, 0.5, 1.0]),
)
def test_every_composition(
    seed: int, loss: tuple[Loss, str], n: int, d: int, weights: str, growth: Callable[[Limits], DepthWise],
    limits: Limits, sampling: UniformSampling, learners: RandomGroups, rate: float,
) -> None:  # fmt: skip
    case = random_case(seed, n, d, target=loss[1], weights=weights, most_cuts=40)
    recipe = Recipe(loss[0], 3, rate, growth(limits), sampling, learners, automatic(loss[0]))
    with eager_threads(rows=8, narrow=30):
        assert_parity(recipe, case, seed)


def test_two_custom_losses_of_one_text_are_two_losses() -> None:
    """They differ in a number that their functions remember: a kernel of the one must not serve the other."""
    case = random_case(2, 80, 3)
    models = []
    for by in (1.0, 3.0):
        recipe = Recipe(quartic(by), 3, 0.3, DepthWise(Limits(8, 3)), step=GradientStep())
        models.append(model_bytes(assert_parity(recipe, case, threads=(2,))))
    assert models[0] != models[1]


@pytest.mark.parametrize("kind", ["huge", "tiny", "heavy", "equal", "one differs"])
@pytest.mark.parametrize("growth", [DepthWise(Limits(16, 4)), LeafWise(Limits(16, 8)), Oblivious(Limits(16, 4))])
def test_extreme_targets(kind: str, growth: DepthWise) -> None:
    case, rng = random_case(1, 300, 4, full=True), np.random.default_rng(1)
    y = {
        "huge": case.data.y * 1e30,
        "tiny": case.data.y * 1e-30,
        "heavy": rng.standard_cauchy(300) * 1e6,
        "equal": np.full(300, 0.1),
        "one differs": np.where(np.arange(300) == 7, 1e20, 1.0),
    }[kind]
    for loss in (losses.SquaredError(), losses.Huber(1.0), losses.AbsoluteError()):
        recipe = Recipe(loss, 4, 0.7, growth, step=automatic(loss))
        with eager_threads():
            ensemble = assert_parity(recipe, Case(case.x, replace(case.data, y=y)), threads=(1, 3))
        assert all(np.isfinite(tree.value).all() for tree in ensemble.trees)
        if kind == "equal":
            assert all(len(tree.value) == 1 and abs(tree.value[0]) < 1e-8 for tree in ensemble.trees)


@pytest.mark.parametrize("backend", [Reference(), TEAMS[2]], ids=["reference", "cpu"])
def test_a_target_beyond_float32_is_refused_and_not_learned_wrongly(backend: Backend) -> None:
    case = random_case(1, 50, 2)
    data = replace(case.data, y=np.where(np.arange(50) == 3, 1e39, 0.0))
    with np.errstate(over="ignore"), pytest.raises(InputError, match="finite"):
        boost(Recipe(losses.SquaredError(), 1), data, backend)


def test_a_backend_that_has_served_other_data_gives_the_same_model() -> None:
    """And a second run gives what the first gave: nothing that a backend keeps may be seen."""
    recipe = Recipe(losses.Logistic(), 4, growth=LeafWise(Limits(15, 6)), sampling=UniformSampling(0.6))
    cases = [random_case(seed, 250, 5, target="binary") for seed in range(3)]
    backend = Cpu(3)
    with eager_threads():
        fresh = [model_bytes(boost(recipe, case.data, Cpu(3), seed=1)) for case in cases]
        for _ in range(2):
            for bins in (lambda data: data, sparse):
                assert [model_bytes(boost(recipe, bins(case.data), backend, seed=1)) for case in cases] == fresh


@pytest.mark.parametrize("sampling", [EveryRow(), UniformSampling(0.5)])
def test_enough_rows_to_share_out_without_any_tuning(sampling: UniformSampling) -> None:
    """40,000 rows: more than the sizes below which one thread works alone, and too many for the definition."""
    case = random_case(4, 40_000, 6, target="3", weights="whole", most_cuts=200)
    recipe = Recipe(losses.Softmax(3), 2, 0.3, DepthWise(Limits(64, 6)), sampling, RandomGroups(5))
    models = {model_bytes(boost(recipe, bins, TEAMS[t])) for t in (1, 2, 4) for bins in (case.data, sparse(case.data))}
    assert len(models) == 1
