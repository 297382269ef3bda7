"""Importance sampling under SGLB: kept scores, and noise before the weight, have the law of all rows (section 6.2)."""

from __future__ import annotations

import dataclasses
import pickle
from typing import Any

import numpy as np
import pytest
from emulator import emulated_runtime
from support.builders import model_bytes, random_case

import gpuboost as gb
from gpuboost import losses
from gpuboost.backends.cpu.backend import Cpu
from gpuboost.backends.cuda.backend import Cuda
from gpuboost.backends.prediction.routing import dense_rows
from gpuboost.backends.reference.backend import Reference
from gpuboost.boosting import boost
from gpuboost.growth import DepthWise
from gpuboost.keys import Key
from gpuboost.recipe import Recipe
from gpuboost.steps import ConstantStep, GradientStep
from gpuboost.types import Cuts, Limits, Progress, Target, TrainingSet

Array = np.ndarray
STUMP = DepthWise(Limits(max_leaves=2, max_depth=1, reg_lambda=0.0, min_child_weight=0.0))
rng = np.random.default_rng(0)
X = rng.normal(size=(80, 2))
Y = X[:, 0] + rng.normal(size=80)


def few_rows(n: int) -> TrainingSet:
    """Five rows of target 0 on one feature, an even split on the other; targets of the rest are far from 0."""
    draws = np.random.default_rng(0)
    x = np.column_stack([np.arange(n) < 5, draws.permuted(np.arange(n) % 2)]).astype(float)
    y = np.where(x[:, 0] == 1.0, 0.0, 3.0 * draws.normal(size=n))
    cuts = Cuts((np.array([0.5]), np.array([0.5])), (None, None))
    return TrainingSet(Reference().quantise(x, cuts), cuts, y)


LAW = 0.2 / 0.9
"""The variance of the mean score of the five rows: 1 / 5 by the law, over 1 - rate / 2 for steps of that length."""


def variances(
    sampling: Any, seeds: int, rounds: int, n: int = 200, rate: float = 0.2, burn_in: int = 1000, **noise: Any
) -> Array:
    """(seeds,) mean square, about the mean of all chains, of the mean score of the five rows."""
    policy = gb.Langevin(temperature=1.0, shrinkage=1e-4, **noise)
    recipe = Recipe(losses.Huber(12.0), rounds, rate, STUMP, step=GradientStep(), sampling=sampling, langevin=policy)
    data, chains = few_rows(n), []
    assert dense_rows(data.bins)[:5, 0].all()
    for seed in range(seeds):
        seen: list[float] = []

        def watch(progress: Progress, seen: list[float] = seen) -> bool:
            if progress.round >= burn_in:
                seen.append(progress.scores[0, :5].mean())
            return False

        boost(recipe, data, Cpu(1), seed=seed, watch=watch)
        chains.append(seen)
    scores = np.array(chains)
    return np.asarray(((scores - scores.mean()) ** 2).mean(axis=1))


def measured(sampling: Any, **noise: Any) -> tuple[float, float]:
    """The variance of six chains, and its standard error."""
    of_chains = variances(sampling, 6, 6_000, **noise)
    error = of_chains.std(ddof=1) / np.sqrt(len(of_chains))
    assert error < 0.025
    return of_chains.mean(), error


@pytest.mark.slow
@pytest.mark.long
@pytest.mark.parametrize(
    "exact", [gb.MVS(0.1, frozen_from=300), pytest.param(gb.UniformSampling(0.1), marks=pytest.mark.thorough)]
)
def test_kept_scores_have_the_law_if_noise_is_added_before_the_weight(exact: Any) -> None:
    variance, error = measured(exact, noise_scale="weight")
    assert variance == pytest.approx(LAW, abs=3.0 * error)


@pytest.mark.slow
@pytest.mark.thorough
def test_other_noise_and_scores_of_every_round_have_another_law() -> None:
    """Variances of 0.186 and 0.144.

    pi(F) is in proportion to the law over the chance that the five rows' split is taken at F. Noise of scale 1 / p
    makes this chance the same for every F, noise of scale 1 / sqrt(p) does not, nor do scores of every round: see
    docs/theory/langevin.md, section 3.
    """
    kept, error_of_kept = measured(gb.MVS(0.1, frozen_from=300))
    followed, error_of_followed = measured(gb.MVS(0.1), noise_scale="weight")
    assert kept < LAW - 2.0 * error_of_kept
    assert followed < LAW - 3.0 * error_of_followed


@pytest.mark.parametrize("step", [GradientStep(), ConstantStep()])
def test_noise_before_the_weight_is_as_large_as_the_weight(step: Any) -> None:
    """Standard deviation s w / p on the gradient of a row of weight w and probability p; constant steps have c times
    the curvature, and s for steps of rate / c."""
    n = 6_000
    weight = np.where(np.arange(n) % 3, 0.5, 2.0)
    data = random_case(1, n, 1, target="binary", weights="none").data
    data = dataclasses.replace(data, weight=weight)
    loss, rate, machine = losses.Logistic(), 0.3, Cpu(1)
    curvature = step.curvature(loss)
    policy = gb.Langevin(temperature=2.0, noise_scale="weight")
    chain = policy.chain(data, rate, curvature, Limits(max_leaves=4))
    gradients = machine.gradients(loss, machine.start(data, np.zeros(1)), data, curvature)
    key = Key.root(3) / "rows" / 0
    sample = gb.RowProbabilities(np.where(np.arange(n) % 2, 0.2, 0.8)).draw(machine, gradients, key)
    drawn = machine.weigh(gradients, sample)
    noisy = chain.perturb(machine, Target(0, sample.rows, drawn), Key.root(3) / "noise" / 0)
    noise = (noisy.gradients.g - drawn.g)[0][: len(sample.rows)]
    expected = np.sqrt(2.0 / (rate * 2.0)) * np.sqrt(curvature) * weight[sample.rows] * sample.inverse_probability
    for size in np.unique(expected):
        group = noise[expected == size]
        assert group.std() == pytest.approx(size, rel=4.0 / np.sqrt(2.0 * len(group)))


@pytest.mark.parametrize("weights", ["none", "whole"])
def test_noise_before_the_weight_has_the_same_bytes_on_every_machine(weights: str) -> None:
    data = random_case(4, 300, 3, target="binary", weights=weights).data
    policy = gb.Langevin(shrinkage=0.05, noise_scale="weight")
    recipe = Recipe(
        losses.Logistic(), 5, 0.1, DepthWise(Limits(max_leaves=8)), step=GradientStep(), langevin=policy,
        sampling=gb.MVS(0.3, frozen_from=2),
    )  # fmt: skip
    machines = (Reference(), Cpu(1), Cpu(3), Cuda(emulated_runtime()))
    assert len({model_bytes(boost(recipe, data, machine, seed=3)) for machine in machines}) == 1
    root = dataclasses.replace(recipe, langevin=dataclasses.replace(policy, noise_scale=None))
    assert model_bytes(boost(root, data, Cpu(1), seed=3)) != model_bytes(boost(recipe, data, Cpu(1), seed=3))


def test_noise_before_the_weight_is_sound_and_saved(tmp_path: Any) -> None:
    kw: dict[str, Any] = {"n_estimators": 40, "n_jobs": 1, "random_state": 0, "sampling": gb.MVS(0.5, frozen_from=5)}
    policy = gb.Langevin(shrinkage=0.01, noise_scale="weight")
    model = gb.GradientBoostingRegressor("huber", langevin=policy, **kw).fit(X, Y)
    assert model.guarantee_.kind == "stationary law"
    assert "from round 5 on the probabilities of the rows are fixed" in str(model.fit_report_.verdict)
    model.save_model(tmp_path / "m.json")
    assert gb.load_model(tmp_path / "m.json").langevin == policy
    assert model.set_params(sampling=gb.MVS(0.5)).check(X, Y).kind == "heuristic"
    assert model.set_params(sampling=0.5).check(X, Y).kind == "sound"
    for bad in ("sqrt", 1, True, Recipe):
        with pytest.raises(ValueError, match="noise_scale: Langevin needs None, 'weight' or a function"):
            gb.Langevin(noise_scale=bad)


def test_the_verdict_is_heuristic_with_the_reason() -> None:
    def check(sampling: Any, **more: Any) -> Any:
        policy = gb.Langevin(shrinkage=0.01)
        return gb.GradientBoostingRegressor(
            "huber", n_estimators=20, langevin=policy, sampling=sampling, n_jobs=1, **more
        ).check(X, Y)

    assert check(gb.MVS(0.5)).kind == "heuristic"
    kept = check(gb.MVS(0.5, frozen_from=5))
    assert kept.kind == "heuristic"
    assert "from round 5 on the probabilities of the rows are fixed" in str(kept)
    assert "variances were measured below the law. Use gb.Langevin(noise_scale='weight')" in str(kept)
    assert check(gb.MVS(0.5, frozen_from=20)).kind == "heuristic"
    for chosen_by in ("gradient", "loss"):  # rows of score 0 at round 5 may have a gradient later
        unbounded = gb.ImportanceSampling(rho=1.0, score=chosen_by, frozen_from=5)
        assert check(unbounded).kind == "refused"
    for execution in (gb.SimulatedWorkers(3), gb.DataParallel(2)):
        seen = gb.GradientBoostingRegressor(sampling=gb.MVS(0.5, frozen_from=5), execution=execution).check(X, Y)
        assert seen.kind == "refused"
        assert "frozen_from" in str(seen)
    assert "Use frozen_from of at most 10" in str(check(gb.MVS(0.5, frozen_from=11), posterior_samples=5))
    for bad in (-1, 1.5, True, "late"):
        with pytest.raises(ValueError, match="frozen_from must be None or a round"):
            gb.MVS(0.5, frozen_from=bad)


def test_kept_scores_are_those_of_their_round_also_in_a_continued_fit(tmp_path: Any) -> None:
    made = gb.ImportanceSampling(0.4, floor=0.05, frozen_from=3, factor=np.linspace(1.0, 2.0, 80))
    kw: dict[str, Any] = {"sampling": made, "n_jobs": 1, "random_state": 0, "max_depth": 2}
    full = gb.GradientBoostingRegressor(n_estimators=8, **kw).fit(X, Y)
    for first in (2, 3, 4, 6):
        start = gb.GradientBoostingRegressor(n_estimators=first, **kw).fit(X, Y)
        more = gb.GradientBoostingRegressor(n_estimators=8 - first, **kw).fit(X, Y, init_model=start)
        assert more.predict(X).tobytes() == full.predict(X).tobytes(), first
    assert (
        full.predict(X).tobytes()
        != gb.GradientBoostingRegressor(
            n_estimators=8, **{**kw, "sampling": gb.ImportanceSampling(0.4, floor=0.05, factor=made.factor)}
        )
        .fit(X, Y)
        .predict(X)
        .tobytes()
    )
    plain = gb.MVS(0.4, frozen_from=3)
    assert pickle.loads(pickle.dumps(plain)) == plain
    gb.GradientBoostingRegressor(n_estimators=4, sampling=plain, n_jobs=1).fit(X, Y).save_model(tmp_path / "m.json")
    assert gb.load_model(tmp_path / "m.json").sampling == plain


@pytest.mark.parametrize("weights", ["none", "whole"])
def test_every_machine_keeps_the_same_scores(weights: str) -> None:
    data = random_case(4, 300, 3, target="binary", weights=weights).data
    for score in ("mvs", "loss"):
        sampling = gb.ImportanceSampling(0.3, score=score, frozen_from=3)
        recipe = Recipe(losses.Logistic(), rounds=7, growth=DepthWise(Limits(max_leaves=8)), sampling=sampling)
        machines = (Reference(), Cpu(1), Cpu(3), Cuda(emulated_runtime()))
        assert len({model_bytes(boost(recipe, data, machine, seed=3)) for machine in machines}) == 1


def test_kept_scores_need_one_sequence_of_exact_gradients() -> None:
    categories = np.arange(80) % 20
    x = np.column_stack([categories, X[:, 0]])
    several = gb.OrderedTargetStatistics(permutations=2)
    kw: dict[str, Any] = {"n_estimators": 4, "sampling": gb.MVS(0.5, frozen_from=1), "n_jobs": 1}
    model = gb.GradientBoostingRegressor(categorical_features=[0], categorical_encoding=several, **kw)
    with pytest.raises(ValueError, match="frozen_from=1 keeps the scores of a round"):
        model.fit(x, Y)
    model.set_params(categorical_encoding=gb.OrderedTargetStatistics(permutations=1)).fit(x, Y)
    ranker = gb.GradientBoostingRanker("stochastic_rank", **kw)
    with pytest.raises(ValueError, match="gradients of loss 'stochastic_rank' are drawn anew in each round"):
        ranker.fit(X, categories % 3, group=np.repeat(np.arange(8), 10))
