"""Langevin boosting around its law: one model everywhere, prefixes, early stopping, weights, what it is good for."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import stats
from support.builders import TEAMS, eager_threads, model_bytes, random_case, sparse
from support.examples import examples

import gpuboost as gb
from gpuboost import losses
from gpuboost.backends.cpu.backend import Cpu
from gpuboost.backends.protocol import Backend
from gpuboost.backends.reference.backend import Reference
from gpuboost.boosting import boost
from gpuboost.growth import DepthWise, Growth, LeafWise, Oblivious
from gpuboost.keys import Key
from gpuboost.langevin import Langevin, NoNoise
from gpuboost.losses import Loss
from gpuboost.recipe import Recipe
from gpuboost.sampling import EveryRow, Sampling, UniformSampling
from gpuboost.steps import ConstantStep, GradientStep
from gpuboost.types import Ensemble, Gradients, Limits, Noise, Progress, Target, TrainingSet

Array = np.ndarray
LOSSES: list[tuple[Loss, str]] = [
    (losses.SquaredError(), "real"),
    (losses.Huber(0.3), "real"),
    (losses.Logistic(), "binary"),
    (losses.SmoothedZeroOne(0.2), "binary"),
    (losses.Softmax(3), "3"),
]


def run(
    recipe: Recipe, data: TrainingSet, backend: Backend, resume: Ensemble | None = None
) -> tuple[Ensemble, list[Array]]:
    """The ensemble, and the scores after each round."""
    scores: list[Array] = []

    def watch(progress: Progress) -> bool:
        scores.append(progress.scores.copy())
        return False

    return boost(recipe, data, backend, seed=11, watch=watch, resume=resume), scores


# the same bits everywhere


@pytest.mark.slow
@settings(max_examples=examples(25))
@given(
    st.integers(0, 2**32 - 1),
    st.sampled_from(LOSSES),
    st.sampled_from([2, 9, 60, 300]),
    st.sampled_from(["none", "real", "whole"]),
    st.sampled_from([DepthWise, LeafWise, Oblivious]),
    st.sampled_from([EveryRow(), UniformSampling(0.3)]),
    st.sampled_from([0.0, 0.02, 1.0]),
    st.sampled_from([0.0, 1.0]),
    st.sampled_from([GradientStep(), ConstantStep()]),
    st.sampled_from([None, 0, 1]),
)
def test_one_model_and_one_score_whatever_the_backend_and_the_threads(
    seed: int, loss: tuple[Loss, str], n: int, weights: str, growth: Callable[[Limits], Growth], sampling: Sampling,
    shrinkage: float, ridge: float, step: GradientStep, random_from: int | None,
) -> None:  # fmt: skip
    case = random_case(seed, n, 4, target=loss[1], weights=weights)
    shrinkage = min(shrinkage, 0.5 * (loss[0].smoothness or 1.0))
    langevin = Langevin(temperature=0.5, shrinkage=shrinkage, random_from=random_from)
    limits = Limits(9, 4, reg_lambda=ridge)
    recipe = Recipe(loss[0], 3, 0.5, growth(limits), sampling, step=step, langevin=langevin)
    expected, scores = run(recipe, case.data, Reference())
    with eager_threads(rows=8, narrow=30):
        for threads in (1, 2):
            for data in (case.data, sparse(case.data, seed)):
                found, running = run(recipe, data, TEAMS[threads])
                assert model_bytes(found) == model_bytes(expected)
                assert found.scales == expected.scales
                assert [one.tobytes() for one in running] == [one.tobytes() for one in scores]
        for backend in (Reference(), TEAMS[2]):
            staged = list(backend.staged_predict(expected, case.x))
            for k, one in enumerate(scores, start=1):
                assert backend.predict(expected.first(k), case.x).tobytes() == one.tobytes(), (
                    "the model that was scored"
                )
                assert staged[k - 1].tobytes() == one.tobytes()


def test_without_noise_and_shrinkage_it_is_plain_boosting_to_the_last_bit() -> None:
    case = random_case(3, 200, 4)
    still = Langevin(shrinkage=0.0, structure_noise=False, leaf_noise=False)
    recipe = Recipe(losses.SquaredError(), 8, 0.3, step=GradientStep(), langevin=still)
    for backend in (Reference(), TEAMS[2]):
        plain = boost(replace(recipe, langevin=NoNoise()), case.data, backend, seed=1)
        assert model_bytes(boost(recipe, case.data, backend, seed=1)) == model_bytes(plain)


def test_a_short_run_is_the_beginning_of_a_long_one() -> None:
    case = random_case(4, 250, 4, target="3")
    recipe = Recipe(losses.Softmax(3), 9, 0.3, step=GradientStep(), langevin=Langevin(shrinkage=0.1))
    long = boost(recipe, case.data, TEAMS[1], seed=2)
    for rounds in (0, 1, 4):
        short = boost(replace(recipe, rounds=rounds), case.data, TEAMS[1], seed=2)
        assert model_bytes(long.first(rounds)) == model_bytes(short)
        assert long.first(rounds).scales == short.scales


@pytest.mark.parametrize("first_shrinkage", [None, 0.0, 0.2])
@pytest.mark.parametrize("backend", [Reference(), TEAMS[2]], ids=["reference", "cpu"])
def test_a_model_is_carried_on_whether_it_was_shrunk_or_not(first_shrinkage: float | None, backend: Backend) -> None:
    case = random_case(5, 150, 3)
    plain = Recipe(losses.SquaredError(), 4, 0.3, step=GradientStep())
    shrunk = replace(plain, langevin=Langevin(shrinkage=0.2))
    begin = plain if first_shrinkage is None else replace(plain, langevin=Langevin(shrinkage=first_shrinkage))
    before, scores = run(begin, case.data, backend)
    for then in (plain, shrunk):
        after, more = run(then, case.data, backend, before)
        assert after.n_rounds == 8
        assert model_bytes(after.first(4)) == model_bytes(before)
        for k, one in enumerate(scores + more, start=1):
            assert backend.predict(after.first(k), case.x).tobytes() == one.tobytes()
        staged = list(backend.staged_predict(after, case.x))
        assert [one.tobytes() for one in staged] == [one.tobytes() for one in scores + more]
    whole = boost(replace(shrunk, rounds=8), case.data, backend, seed=11)
    if first_shrinkage == 0.2:
        assert model_bytes(after) == model_bytes(whole)


# the model that was scored (finding 6: the start value is shrunk by all rounds, the trees by those kept)


@pytest.mark.parametrize("far", [50.0, 1000.0])
def test_early_stopping_returns_the_model_that_was_scored(far: float, tmp_path: Path) -> None:
    rng = np.random.default_rng(0)
    x = rng.normal(size=(400, 3))
    y = far + x[:, 0] + 0.3 * rng.normal(size=400)
    model = gb.GradientBoostingRegressor(
        n_estimators=400, learning_rate=0.1, max_depth=3, langevin=gb.Langevin(temperature=1000.0, shrinkage=0.5),
        early_stopping_rounds=50, random_state=1,
    )  # fmt: skip
    model.fit(x[:200], y[:200], eval_set=(x[200:], y[200:]))
    assert model.fit_report_.rounds > model.n_iter_ == model.best_iteration_ + 1
    rmse = np.sqrt(np.mean((model.predict(x[200:]) - y[200:]) ** 2))
    assert rmse == pytest.approx(model.best_score_, rel=1e-12)
    assert rmse == pytest.approx(min(model.evals_result_["validation_0"]["rmse"]), rel=1e-12)
    assert rmse < 0.6
    model.save_model(tmp_path / "model.json")
    loaded = gb.load_model(tmp_path / "model.json")
    assert loaded.predict(x).tobytes() == model.predict(x).tobytes()
    assert loaded.ensemble_.scales == model.ensemble_.scales
    for one, other in zip(loaded.staged_predict(x[:9]), model.staged_predict(x[:9]), strict=True):
        assert one.tobytes() == other.tobytes()
    loaded.save_model(tmp_path / "again.json")
    assert (tmp_path / "again.json").read_bytes() == (tmp_path / "model.json").read_bytes()
    longer = gb.GradientBoostingRegressor(**model.get_params(deep=False)).set_params(
        n_estimators=3, early_stopping_rounds=None
    )
    longer.fit(x[:200], y[:200], init_model=str(tmp_path / "model.json"))
    assert list(longer.staged_predict(x))[model.n_iter_ - 1].tobytes() == model.predict(x).tobytes()


def test_the_start_value_is_not_shrunk_and_paper_mode_begins_at_0() -> None:
    rng = np.random.default_rng(0)
    x, y = rng.normal(size=(200, 2)), 1000.0 + rng.normal(size=200)
    made = {
        paper: gb.GradientBoostingRegressor(
            n_estimators=500, max_depth=2, langevin=gb.Langevin(shrinkage=1.0, paper=paper), random_state=0
        ).fit(x, y)
        for paper in (False, True)
    }
    assert made[False].ensemble_.bias[0] == pytest.approx(y.mean(), rel=1e-6)
    assert made[True].ensemble_.bias[0] == 0.0
    assert abs(made[False].predict(x).mean() - 1000.0) < 1.0
    assert 300.0 < made[True].predict(x).mean() < 700.0, "shrunk towards 0, half way as gamma = 1"


# weights and samples


def test_a_row_of_weight_two_is_two_rows_in_law() -> None:
    """The noise on G of a node has variance sigma^2 times its weight, whichever way the weights are held."""
    n, draws = 50, 4000
    ones = np.ones((1, n), np.float32)
    rng = np.random.default_rng(1)
    weight, times = rng.exponential(size=n) + 0.1, rng.integers(1, 6, n).astype(np.int32)
    backend, zero = Cpu(1), np.zeros((1, n), np.float32)
    cases = {
        "weight": (Gradients(zero, (ones * weight).astype(np.float32)), np.ones(n), weight.sum()),
        "multiplicity": (Gradients(zero, ones, times), times, times.sum()),
    }
    for name, (gradients, counted, total) in cases.items():
        sums = [
            np.sum(backend.noise(gradients, None, Noise(1.5, Key.root(2) / "structure noise" / i)).g[0] * counted)
            for i in range(draws)
        ]
        assert abs(np.var(sums) / (1.5**2 * total) - 1.0) < 4.0 * np.sqrt(2.0 / draws), name


def test_a_sample_carries_the_noise_of_all_rows() -> None:
    """Drawn with probability p and weighted by 1 / p: the noise on a sum has the variance that all rows would give."""
    n, draws, data = 4000, 300, random_case(0, 4000, 1).data
    backend, chain = Cpu(1), Langevin(temperature=2.0).chain(data, 0.1, 1.0, Limits(2))
    gradients = Gradients(np.zeros((1, n), np.float32), np.ones((1, n), np.float32))
    sums = []
    for i in range(draws):
        sample = backend.sample(0.25, n, Key.root(1) / "rows" / i)
        target = Target(0, sample.rows, backend.weigh(gradients, sample))
        sums.append(chain.perturb(backend, target, Key.root(1) / "structure noise" / i).gradients.g.sum())
    assert abs(np.var(sums) / (2.0 / (0.1 * 2.0) * n) - 1.0) < 4.0 * np.sqrt(2.0 / draws)


def test_leaf_values_are_of_all_rows_whatever_the_sample() -> None:
    case = random_case(8, 500, 4)
    quiet = Langevin(leaf_noise=False)
    recipe = Recipe(
        losses.SquaredError(), 1, 0.1, DepthWise(Limits(8, 3, reg_lambda=0.0)), UniformSampling(0.2),
        step=GradientStep(), langevin=quiet,
    )  # fmt: skip
    ensemble = boost(recipe, case.data, TEAMS[1])
    tree, residual = ensemble.trees[0], case.data.y - ensemble.bias[0]
    leaf = TEAMS[1].leaves(ensemble, case.x)[:, 0]
    for v in np.unique(leaf):
        assert tree.value[v] == pytest.approx(residual[leaf == v].mean(), rel=1e-3, abs=1e-4)


def test_outputs_have_noise_of_their_own() -> None:
    case = random_case(2, 300, 3, target="3")
    recipe = Recipe(losses.Softmax(3), 1, 0.1, step=GradientStep(), langevin=Langevin(structure_noise=False))
    recipe = replace(recipe, growth=DepthWise(Limits(2, 1, reg_lambda=0.0)))
    quiet = boost(replace(recipe, langevin=replace(recipe.langevin, leaf_noise=False)), case.data, TEAMS[1])
    z = []
    for seed in range(800):
        trees = boost(recipe, case.data, TEAMS[1], seed=seed).trees
        z.append([tree.value[1] - still.value[1] for tree, still in zip(trees, quiet.trees, strict=True)])
    correlation = np.corrcoef(np.array(z).T)
    assert np.abs(correlation[np.triu_indices(3, 1)]).max() < 4.0 / np.sqrt(800)


# what it is good for


def parity(fold: int) -> tuple[Array, Array]:
    """The problem of the paper's Table 1."""
    rng = np.random.default_rng(fold)
    x = rng.normal(size=(2000, 3))
    return x, (np.sin(x.prod(axis=1)) + rng.normal(size=2000) > 0.0).astype(np.int64)


def parity_error(fold: int, langevin: Langevin | None) -> float:
    x, y = parity(fold)
    model = gb.GradientBoostingClassifier(
        gb.losses.SmoothedZeroOne(0.1), 600, 0.1, max_depth=1, max_bins=6, step="gradient", reg_lambda=0.0,
        langevin=langevin, random_state=fold, n_jobs=1,
    )  # fmt: skip
    return 1.0 - model.fit(x[:1000], y[:1000]).score(x[1000:], y[1000:])


@pytest.mark.slow
def test_noise_leaves_the_local_optimum_that_plain_boosting_stays_in() -> None:
    """Table 1 in small: 20 folds, paired."""
    plain = np.array([parity_error(fold, None) for fold in range(20)])
    found = np.array([parity_error(fold, Langevin(temperature=100.0, shrinkage=0.01)) for fold in range(20)])
    assert stats.ttest_rel(plain, found, alternative="greater").pvalue < 1e-3
