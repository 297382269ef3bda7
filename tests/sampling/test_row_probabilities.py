"""Probabilities and factors that the user gives for each row."""

from __future__ import annotations

import pickle
from dataclasses import replace

import numpy as np
import pytest
from emulator import emulated_gpu, emulated_runtime
from sklearn.base import clone
from support.builders import model_bytes, random_case

import gpuboost as gb
from gpuboost import losses
from gpuboost.backends.cpu.backend import Cpu
from gpuboost.backends.cuda.backend import Cuda
from gpuboost.backends.reference.backend import Reference
from gpuboost.boosting import boost
from gpuboost.growth import DepthWise
from gpuboost.recipe import Recipe
from gpuboost.types import Limits

rng = np.random.default_rng(0)
X = rng.normal(size=(400, 3))
Y = X[:, 0] + 0.3 * rng.normal(size=400)
P = np.where(np.arange(400) < 100, 1.0, 0.2)


def regressor(rounds=6, **params):
    return gb.GradientBoostingRegressor(n_estimators=rounds, n_jobs=1, random_state=0, **params)


class Seen:
    """A sampling rule that notes the samples of another one."""

    def __init__(self, rule):
        self.rule, self.samples = rule, []

    def draw(self, backend, gradients, key):
        self.samples.append(self.rule.draw(backend, gradients, key))
        return self.samples[-1]


def test_each_row_is_drawn_with_its_probability_and_weighted_by_its_inverse():
    seen = Seen(gb.RowProbabilities(P))
    regressor(200, sampling=seen, max_depth=1).fit(X, Y)
    counts = np.zeros(400)
    for sample in seen.samples:
        counts[sample.rows] += 1
        np.testing.assert_allclose(sample.inverse_probability, 1.0 / P[sample.rows], rtol=1e-6)
    assert (counts[:100] == 200).all()
    assert counts[100:].mean() / 200 == pytest.approx(0.2, abs=0.01)
    spread = counts[100:].std() / np.sqrt(200 * 0.2 * 0.8)
    assert spread == pytest.approx(1.0, abs=0.2)


def test_equal_probabilities_are_uniform_sampling_in_law_and_all_1_is_every_row():
    report = regressor(50, sampling=gb.RowProbabilities(np.full(400, 0.3))).fit(X, Y).fit_report_.sampling
    assert report.mean_rate == pytest.approx(0.3, abs=0.02)
    assert report.largest_weight == pytest.approx(1 / 0.3)
    every = regressor(sampling=gb.RowProbabilities(np.ones(400))).fit(X, Y)
    assert every.predict(X).tobytes() == regressor().fit(X, Y).predict(X).tobytes()


@pytest.mark.parametrize("rule", [gb.RowProbabilities, lambda c: gb.ImportanceSampling(0.3, factor=c)])
def test_numbers_follow_their_rows_through_weights_and_the_validation_fraction(rule):
    weight = np.where(np.arange(400) % 4 == 0, 0.0, 1.0)
    there = weight > 0.0
    chances = np.linspace(0.05, 1.0, 400)
    for params in ({}, {"validation_fraction": 0.25}):
        whole = regressor(sampling=rule(chances), **params).fit(X, Y, weight)
        part = regressor(sampling=rule(chances[there]), **params).fit(X[there], Y[there])
        assert whole.predict(X).tobytes() == part.predict(X).tobytes()


def test_multiplicity_does_not_change_a_probability():
    seen = gb.RowProbabilities(P)
    times = rng.integers(1, 60, 400)
    report = regressor(30, sampling=seen).fit(X, Y, times).fit_report_.sampling
    assert report.mean_rate == pytest.approx(P.mean(), abs=0.02)
    assert report.largest_weight == pytest.approx(5.0, rel=1e-5)


def test_a_factor_multiplies_the_scores():
    factor = np.where(np.arange(400) < 100, 5.0, 1.0)
    seen = Seen(gb.ImportanceSampling(rho=0.05, score="gradient", floor=0.0, factor=factor))
    regressor(200, sampling=seen, learning_rate=1e-9, max_depth=1).fit(X, Y)
    counts = np.zeros(400)
    for sample in seen.samples:
        counts[sample.rows] += 1
    p = np.minimum(1.0, 0.05 * factor * np.abs(Y - Y.mean()))
    assert np.abs(counts / 200 - p).max() < 5 * np.sqrt(0.25 / 200)
    assert np.corrcoef(counts / 200, p)[0, 1] > 0.97
    by_loss = gb.ImportanceSampling(0.3, score="loss", factor=factor)
    assert regressor(sampling=by_loss).fit(X, Y).fit_report_.sampling.mean_rate == pytest.approx(0.3, abs=0.05)
    ones, none = (gb.ImportanceSampling(0.3, factor=c) for c in (np.ones(400), None))
    assert (
        regressor(sampling=ones).fit(X, Y).predict(X).tobytes()
        == regressor(sampling=none).fit(X, Y).predict(X).tobytes()
    )


def test_verdicts_know_which_rows_are_never_drawn():
    langevin = {"langevin": gb.Langevin(shrinkage=0.01), "loss": "huber"}
    assert regressor(sampling=gb.RowProbabilities(P), **langevin).check(X, Y).kind == "sound"
    never = gb.RowProbabilities(np.where(P < 1.0, 0.0, 1.0))
    assert "requires unbiased gradients" in str(regressor(sampling=never, **langevin).check(X, Y))
    assert not gb.ImportanceSampling(rho=1.0, score="gradient", factor=[0.0, 1.0]).unbiased
    assert not gb.ImportanceSampling(rho=1.0, score="gradient", factor=[0.0, 1.0]).bounded
    assert gb.ImportanceSampling(0.5, factor=[0.0, 1.0]).unbiased  # it has a floor


@pytest.mark.parametrize("bad", [[0.5, 1.5], [0.0, 0.0], [0.5, np.nan], [-0.1, 0.5], [[0.5]], "half", 0.5, []])
def test_other_probabilities_are_refused(bad):
    with pytest.raises(ValueError, match="sampling: p must be"):
        gb.RowProbabilities(bad)


def test_other_factors_and_numbers_of_rows_are_refused():
    for bad in ([-1.0], [np.inf], [0.0, 0.0], 2.0):
        with pytest.raises(ValueError, match="sampling: factor must"):
            gb.ImportanceSampling(0.5, factor=bad)
    for rule in (gb.RowProbabilities(P[:9]), gb.ImportanceSampling(0.5, factor=P[:9])):
        model = regressor(sampling=rule)
        assert "numbers for 9 rows; X has 400" in str(model.check(X, Y))
        with pytest.raises(ValueError, match="numbers for 9 rows; X has 400"):
            model.fit(X, Y)
    shards = regressor(sampling=gb.RowProbabilities(P), execution=gb.DataParallel(2))
    assert "shards of DataParallel hold the rows" in str(shards.check(X, Y))


def test_factors_run_on_a_gpu():
    rule = gb.ImportanceSampling(0.5, factor=P)
    host = regressor(sampling=rule, device="cpu").fit(X, Y).predict(X).tobytes()
    with emulated_gpu():
        model = regressor(sampling=rule, device="cuda").fit(X, Y)
        assert model.predict(X).tobytes() == host
    assert model.fit_report_.device.startswith("cuda")


def test_rules_are_cloned_pickled_and_not_written(tmp_path):
    for rule in (gb.RowProbabilities(P), gb.ImportanceSampling(0.5, factor=P)):
        model = clone(regressor(sampling=rule)).fit(X, Y)
        assert pickle.loads(pickle.dumps(rule)) == rule
        model.save_model(tmp_path / "model.json")
        loaded = gb.load_model(tmp_path / "model.json")
        assert loaded.sampling is None
        assert loaded.predict(X).tobytes() == model.predict(X).tobytes()
    assert (
        repr(gb.RowProbabilities(P)) == "RowProbabilities(400 rows, 0.4 of them drawn, variance_control='leaf_refit')"
    )
    plain = regressor(sampling=gb.ImportanceSampling(0.5)).fit(X, Y)
    plain.save_model(tmp_path / "plain.json")
    assert "factor" not in (tmp_path / "plain.json").read_text().split('"trees"')[0].replace("factors", "")


def test_pickles_of_rules_without_factors_load():
    rule = gb.ImportanceSampling(0.5)
    old = object.__new__(gb.ImportanceSampling)
    old.__setstate__([getattr(rule, name) for name in rule.__slots__[:-1]])
    assert old == rule


@pytest.mark.parametrize("weights", ["none", "whole"])
def test_every_machine_draws_the_same_rows(weights):
    data = random_case(4, 300, 3, target="binary", weights=weights).data
    rule = gb.RowProbabilities(rng.uniform(0.1, 1.0, data.n_rows))
    recipe = Recipe(losses.Logistic(), rounds=3, growth=DepthWise(Limits(max_leaves=8)), sampling=rule)
    machines = (Reference(), Cpu(1), Cpu(3), Cuda(emulated_runtime()))
    assert len({model_bytes(boost(recipe, data, machine, seed=3)) for machine in machines}) == 1
    factor = replace(recipe, sampling=gb.ImportanceSampling(0.3, factor=rule.p))
    assert len({model_bytes(boost(factor, data, machine, seed=3)) for machine in machines}) == 1
