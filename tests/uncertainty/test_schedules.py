"""Temperature schedules of Langevin boosting."""

from __future__ import annotations

import pickle

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
from gpuboost.steps import GradientStep
from gpuboost.types import Limits

rng = np.random.default_rng(0)
X = rng.normal(size=(200, 2))
Y = X[:, 0] + rng.normal(size=200)


def regressor(rounds=12, *, schedule=None, **params):
    policy = gb.Langevin(shrinkage=0.05, schedule=schedule)
    return gb.GradientBoostingRegressor(
        loss="huber", n_estimators=rounds, langevin=policy, max_depth=2, n_jobs=1, random_state=0, **params
    )


def test_geometric_annealing_falls_to_the_temperature_and_stays_there():
    factors = [gb.GeometricAnnealing(100.0, 4)(t) for t in range(7)]
    np.testing.assert_allclose(factors, [100.0, 100**0.75, 10.0, 100**0.25, 1.0, 1.0, 1.0], rtol=1e-12)
    assert factors[4:] == [1.0, 1.0, 1.0]


def test_cycles_begin_hot_and_end_at_the_temperature():
    factors = [gb.CyclicalTemperature(9.0, 3)(t) for t in range(6)]
    np.testing.assert_allclose(factors, [9.0, 3.0, 1.0, 9.0, 3.0, 1.0], rtol=1e-12)


def test_a_factor_of_the_temperature_is_its_square_root_of_the_noise():
    """A constant factor of 4 is a beta of a fourth, if shrinkage is given."""
    four = regressor(schedule=lambda t: 4.0).fit(X, Y)
    policy = gb.Langevin(shrinkage=0.05, inverse_temperature=50.0)
    colder = regressor().set_params(langevin=policy).fit(X, Y)
    assert four.predict(X).tobytes() == colder.predict(X).tobytes()
    one, plain, constant = (regressor(schedule=s).fit(X, Y).predict(X) for s in (lambda t: 1.0, None, "constant"))
    assert one.tobytes() == plain.tobytes() == constant.tobytes()


def test_no_noise_at_temperature_0_and_rounds_count_from_the_models_first():
    still = regressor(schedule=lambda t: 0.0).fit(X, Y)
    calm = regressor().set_params(langevin=gb.Langevin(shrinkage=0.05, structure_noise=False, leaf_noise=False))
    assert still.predict(X).tobytes() == calm.fit(X, Y).predict(X).tobytes()
    annealed = gb.GeometricAnnealing(50.0, 5)
    whole = regressor(schedule=annealed).fit(X, Y)
    half = regressor(6, schedule=annealed).fit(X, Y)
    assert regressor(6, schedule=annealed).fit(X, Y, init_model=half).predict(X).tobytes() == whole.predict(X).tobytes()


def test_every_machine_anneals_alike():
    data = random_case(4, 200, 3, target="binary").data
    policy = gb.Langevin(shrinkage=0.01, schedule=gb.CyclicalTemperature(20.0, 3))
    recipe = Recipe(
        losses.Logistic(), rounds=5, growth=DepthWise(Limits(max_leaves=8)), langevin=policy, step=GradientStep()
    )
    machines = (Reference(), Cpu(2), Cuda(emulated_runtime()))
    assert len({model_bytes(boost(recipe, data, machine, seed=3)) for machine in machines}) == 1


def test_verdicts_say_what_theory_gives():
    def check(schedule, rounds=12):
        return regressor(rounds, schedule=schedule).check(X, Y)

    assert check("constant").kind == check(None).kind == "sound"
    reached = check(gb.GeometricAnnealing(10.0, 6))
    assert reached.kind == "sound"
    assert "from round 6 on" in str(reached)
    assert "logarithmic schedule" in str(reached)
    for never in (gb.GeometricAnnealing(10.0, 12), gb.CyclicalTemperature(10.0, 4), lambda t: 2.0):
        assert check(never).kind == "heuristic"
        assert "law" in str(check(never))
    assert regressor(schedule=gb.GeometricAnnealing(10.0, 6)).fit(X, Y).guarantee_.kind == "stationary law"
    assert regressor(schedule=gb.GeometricAnnealing(10.0, 99)).fit(X, Y).guarantee_.kind == "none"


@pytest.mark.filterwarnings("ignore:n_estimators. the chain forgets:gpuboost.errors.OutsideTheoryWarning")
def test_draws_need_a_constant_temperature_in_the_last_half():
    drawn = regressor(20, schedule=gb.GeometricAnnealing(10.0, 10), posterior_samples=4).fit(X, Y)
    assert drawn.predict_uncertainty(X).knowledge.min() >= 0.0
    for schedule in (gb.GeometricAnnealing(10.0, 11), gb.CyclicalTemperature(10.0, 4), lambda t: 1.0):
        with pytest.raises(ValueError, match="posterior_samples: draws come from the last half of the rounds"):
            regressor(20, schedule=schedule, posterior_samples=4).fit(X, Y)


@pytest.mark.parametrize("bad", ["geometric", 2.0, gb.GeometricAnnealing, [1.0]])
def test_other_schedules_are_refused(bad):
    with pytest.raises(ValueError, match="schedule: must be None, 'constant'"):
        gb.Langevin(schedule=bad)


@pytest.mark.parametrize("answer", [-1.0, np.nan, None, True, "hot"])
def test_functions_that_give_no_factor_are_refused_before_the_fit(answer):
    model = regressor(schedule=lambda t: answer if t == 3 else 1.0)
    assert "in round 3" in str(model.check(X, Y))
    with pytest.raises(ValueError, match=r"schedule: the factor on the temperature must be .* in round 3"):
        model.fit(X, Y)


@pytest.mark.parametrize("make", [gb.GeometricAnnealing, gb.CyclicalTemperature])
@pytest.mark.parametrize("arguments", [(0.0, 5), (-1.0, 5), (np.inf, 5), ("10", 5), (10.0, 0), (10.0, 2.5), (True, 5)])
def test_numbers_out_of_range_are_refused(make, arguments):
    with pytest.raises(ValueError, match=r"schedule: (GeometricAnnealing|CyclicalTemperature) needs"):
        make(*arguments)


def test_schedules_are_saved_and_functions_are_left_out(tmp_path):
    path = tmp_path / "model.json"
    for schedule in (gb.GeometricAnnealing(10.0, 3), gb.CyclicalTemperature(10.0, 3)):
        model = regressor(schedule=schedule, posterior_samples=None).fit(X, Y)
        model.save_model(path)
        assert gb.load_model(path).langevin == model.langevin
    plain = regressor().fit(X, Y)
    plain.save_model(path)
    assert "schedule" not in path.read_text()
    assert gb.load_model(path).langevin == plain.langevin
    own = regressor(schedule=lambda t: 1.0).fit(X, Y)
    own.save_model(path)
    loaded = gb.load_model(path)
    assert loaded.langevin is None
    assert loaded.predict(X).tobytes() == own.predict(X).tobytes()


def test_pickles_of_policies_without_schedules_load():
    policy = gb.Langevin(shrinkage=0.1)
    old = object.__new__(gb.Langevin)
    old.__setstate__([getattr(policy, name) for name in policy.__slots__[:-1]])
    assert old == policy == pickle.loads(pickle.dumps(policy))
