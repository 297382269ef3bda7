"""Leaf values from drawn rows over all rows of a leaf: Asynch-SGBDT, equation 14, and its alternatives."""

from __future__ import annotations

import pickle
from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from emulator import emulated_runtime
from support.builders import model_bytes, random_case

import gpuboost as gb
from gpuboost import losses
from gpuboost.backends.cpu.backend import Cpu
from gpuboost.backends.cuda.backend import Cuda
from gpuboost.backends.reference.backend import Reference
from gpuboost.boosting import boost
from gpuboost.growth import DepthWise
from gpuboost.recipe import Recipe
from gpuboost.steps import GradientStep, NewtonStep
from gpuboost.types import Limits

rng = np.random.default_rng(0)
X = rng.integers(0, 4, (120, 2)).astype(float)
Y = X[:, 0] + rng.normal(size=120)
KW: dict[str, Any] = {"n_jobs": 1, "random_state": 0, "learning_rate": 1.0, "reg_lambda": 0.0, "max_depth": 2}


class Seen:
    """A rule that notes its samples."""

    def __init__(self, rule: Any) -> None:
        self.rule, self.samples = rule, []
        self.variance_control = rule.variance_control

    def draw(self, *arguments: Any) -> Any:
        self.samples.append(self.rule.draw(*arguments))
        return self.samples[-1]


@pytest.mark.parametrize("execution", [None, gb.SimulatedWorkers(1, leaf_values="worker")])
@pytest.mark.parametrize("control", ["horvitz_thompson", "none"])
def test_leaf_values_are_those_of_the_definition(control: str, execution: Any) -> None:
    rule = Seen(gb.UniformSampling(0.4, variance_control=control))
    model = gb.GradientBoostingRegressor(n_estimators=3, step="gradient", sampling=rule, execution=execution, **KW)
    model.fit(X, Y)
    scores = np.full(120, model.ensemble_.bias[0])
    assert len(rule.samples) == 3
    for sample, leaf, after in zip(rule.samples, model.apply(X).T, model.trace(X)[:, 0], strict=True):
        weight = np.zeros(120)
        weight[sample.rows] = sample.inverse_probability
        for number in np.unique(leaf):
            rows = leaf == number
            below = rows.sum() if control == "horvitz_thompson" else weight[rows].sum()
            expected = (weight * (Y - scores))[rows].sum() / below
            np.testing.assert_allclose((after - scores)[rows], expected, rtol=1e-4, atol=1e-5)
        scores = after


def test_values_of_known_leaves_are_unbiased() -> None:
    """The first tree of one leaf each for two values of x: over draws its values are the means of the residuals."""
    x = (np.arange(60) < 20).astype(float)[:, None]
    y = np.where(x[:, 0] == 1.0, 3.0, -1.0) + rng.normal(size=60)
    rule = gb.UniformSampling(0.3, variance_control="horvitz_thompson")
    found = []
    for seed in range(60):
        kw = {**KW, "random_state": seed, "max_depth": 1}
        model = gb.GradientBoostingRegressor(n_estimators=1, step="gradient", start=0.0, sampling=rule, **kw)
        found.append(model.fit(x, y).predict(np.array([[0.0], [1.0]])))
    mean, error = np.mean(found, axis=0), np.std(found, axis=0) / np.sqrt(60)
    assert (np.abs(mean - [y[20:].mean(), y[:20].mean()]) < 4.0 * error).all()


@pytest.mark.parametrize("weights", ["none", "whole"])
def test_every_machine_has_the_same_bytes(weights: str) -> None:
    data = random_case(4, 300, 3, target="binary", weights=weights).data
    uniform = gb.UniformSampling(0.4, variance_control="horvitz_thompson")
    mvs = gb.ImportanceSampling(0.3, variance_control="horvitz_thompson")
    for sampling, step in ((uniform, GradientStep()), (mvs, NewtonStep())):
        recipe = Recipe(losses.Logistic(), 3, growth=DepthWise(Limits(max_leaves=8)), sampling=sampling, step=step)
        machines = (Reference(), Cpu(1), Cpu(3), Cuda(emulated_runtime()))
        made = {model_bytes(boost(recipe, data, machine, seed=3)) for machine in machines}
        assert len(made) == 1
        exact = boost(replace(recipe, sampling=replace(sampling, variance_control="leaf_refit")), data, Cpu(1), seed=3)
        assert model_bytes(exact) not in made


def test_shards_have_the_same_bytes() -> None:
    kw = {**KW, "n_estimators": 3, "sampling": gb.UniformSampling(0.4, variance_control="horvitz_thompson")}
    one = gb.GradientBoostingRegressor(**kw).fit(X, Y)
    two = gb.GradientBoostingRegressor(execution=gb.DataParallel(2), **kw).fit(X, Y)
    assert one.predict(X).tobytes() == two.predict(X).tobytes()


def test_verdict_file_and_pickle(tmp_path: Any) -> None:
    rule = gb.UniformSampling(0.4, variance_control="horvitz_thompson")
    model = gb.GradientBoostingRegressor(n_estimators=2, sampling=rule, **KW).fit(X, Y)
    assert model.check(X, Y).kind == "heuristic"
    assert "divided by all rows of a leaf" in str(model.fit_report_.verdict)
    assert model.guarantee_.kind == "none"
    assert gb.GradientBoostingRegressor(sampling=rule, langevin=gb.Langevin()).check(X, Y).kind == "refused"
    model.save_model(tmp_path / "model.json")
    assert gb.load_model(tmp_path / "model.json").sampling == rule == pickle.loads(pickle.dumps(rule))
    plain = gb.UniformSampling(0.5)
    gb.GradientBoostingRegressor(n_estimators=2, sampling=plain, **KW).fit(X, Y).save_model(tmp_path / "model.json")
    assert "variance_control" not in (tmp_path / "model.json").read_text()
    old = object.__new__(gb.UniformSampling)
    old.__setstate__([0.5])
    assert old == plain
    for policy in (gb.UniformSampling, gb.ImportanceSampling, gb.WeightTrimming):
        with pytest.raises(ValueError, match="variance_control must be one of"):
            policy(0.5, variance_control="ht")
    with pytest.raises(ValueError, match="variance_control must be one of"):
        gb.WeightTrimming(variance_control="horvitz_thompson")
