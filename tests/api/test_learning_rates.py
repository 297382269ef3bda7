"""Learning rates that change from round to round."""

from __future__ import annotations

from itertools import pairwise

import numpy as np
import pytest
from sklearn.base import clone
from support.builders import random_case
from support.training import MACHINES, assert_parity

import gpuboost as gb
from gpuboost import losses
from gpuboost.recipe import Recipe

rng = np.random.default_rng(0)
X = rng.normal(size=(200, 3))
Y = X[:, 0] - X[:, 1] + 0.3 * rng.normal(size=200)
GRADES = np.digitize(X[:, 0], [-0.5, 0.5])
RATES = [0.5, 0.3, 0.2, 0.1, 0.05, 0.02]


def regressor(rate, rounds=6, **params):
    return gb.GradientBoostingRegressor(
        n_estimators=rounds, learning_rate=rate, max_depth=2, n_jobs=1, random_state=0, **params
    )


def half(round):
    return 0.5 / (1.0 + round)


def same(one, other):
    return one.predict(X).tobytes() == other.predict(X).tobytes()


def test_cosine_decay_is_half_a_cosine_and_stays_at_its_end():
    decay = gb.CosineDecay(0.5, 0.1, 8)
    expected = [0.1 + 0.4 * (1.0 + np.cos(np.pi * min(t, 8) / 8)) / 2.0 for t in range(12)]
    np.testing.assert_allclose([decay(t) for t in range(12)], expected, rtol=1e-15)
    assert decay(0) == 0.5
    assert decay(8) == decay(11) == 0.1


def test_exponential_decay_falls_by_one_factor():
    rates = [gb.ExponentialDecay(0.8, 0.1, 3)(t) for t in range(5)]
    np.testing.assert_allclose(rates, [0.8, 0.4, 0.2, 0.1, 0.1], rtol=1e-15)
    assert all(later < earlier for earlier, later in pairwise(rates[:4]))


@pytest.mark.parametrize(
    "rate",
    [
        RATES,
        tuple(RATES),
        np.array(RATES),
        lambda t: RATES[t],
        gb.CosineDecay(0.5, 0.1, 4),
        gb.ExponentialDecay(1, 0.1, 4),
    ],
)
def test_a_tree_is_multiplied_by_the_rate_of_its_round(rate):
    asked = [rate(t) for t in range(6)] if callable(rate) else RATES
    assert list(regressor(rate).fit(X, Y).ensemble_.factors) == asked


def test_one_rate_in_every_round_is_that_number():
    assert same(regressor([0.3] * 6).fit(X, Y), regressor(0.3).fit(X, Y))


def test_rounds_count_from_the_first_of_the_model(tmp_path):
    whole = regressor(half).fit(X, Y)
    begun = regressor(half, 2).fit(X, Y)
    assert same(regressor(half, 4).fit(X, Y, init_model=begun), whole)
    assert same(regressor([half(t) for t in range(6)], 4).fit(X, Y, init_model=begun), whole)
    with pytest.raises(gb.RecipeError, match="a rate for each round of the model, 6 here; got 4"):
        regressor(RATES[:4], 4).fit(X, Y, init_model=begun)
    warm = regressor(half, 2, warm_start=True).fit(X, Y)
    assert same(warm.set_params(n_estimators=6).fit(X, Y), whole)
    path = tmp_path / "checkpoint.json"
    regressor(half, 3, callbacks=[gb.callbacks.Checkpoint(path, every=3)]).fit(X, Y)
    assert same(regressor(half).fit(X, Y, resume_from=path), whole)


def test_an_interrupted_fit_goes_on_with_the_same_policy_only(tmp_path):
    path, decay = tmp_path / "checkpoint.json", gb.CosineDecay(0.5, 0.1, 6)
    regressor(decay, 3, callbacks=[gb.callbacks.Checkpoint(path, every=3)]).fit(X, Y)
    assert same(regressor(decay).fit(X, Y, resume_from=path), regressor(decay).fit(X, Y))
    with pytest.raises(gb.RecipeError, match="learning_rate was"):
        regressor(gb.CosineDecay(0.5, 0.2, 6)).fit(X, Y, resume_from=path)


def test_the_model_file_holds_the_rates(tmp_path):
    path = tmp_path / "model.json"
    for rate in (RATES, gb.CosineDecay(0.5, 0.1, 4), gb.ExponentialDecay(0.5, 0.1, 4), half):
        model = regressor(rate).fit(X, Y)
        model.save_model(path)
        loaded = gb.load_model(path)
        assert loaded.learning_rate == (rate if rate is not half else [half(t) for t in range(6)])
        assert same(loaded, model)
        assert same(clone(loaded).fit(X, Y), model)
        assert gb.dumps(loaded) == path.read_text()


def test_early_stopping_keeps_the_rates_of_its_rounds():
    model = regressor(half, 40, early_stopping_rounds=3).fit(X, Y, eval_set=(X, -Y))
    assert model.n_iter_ < 40
    assert list(model.ensemble_.factors) == [half(t) for t in range(model.n_iter_)]
    assert gb.loads(gb.dumps(model)).learning_rate == [half(t) for t in range(40)]


def test_sequences_of_trees_have_the_rate_of_their_round():
    pd = pytest.importorskip("pandas")
    frame = pd.DataFrame({"a": X[:, 0], "b": pd.Categorical(GRADES)})
    statistics = gb.OrderedTargetStatistics(permutations=2)
    model = regressor(RATES, categorical_encoding=statistics).fit(frame, Y)
    assert list(model.ensemble_.factors) == [rate / 2.0 for rate in RATES for _ in range(2)]
    assert gb.loads(gb.dumps(model)).learning_rate == RATES


def test_workers_whose_trees_come_late_have_the_rate_of_the_round_that_they_are_added_in():
    workers = gb.SimulatedWorkers(3, build_time=1.0, server_time=0.2)
    model = regressor(RATES, sampling=0.5, execution=workers).fit(X, Y)
    assert list(model.ensemble_.factors) == RATES
    replayed = regressor(RATES, sampling=0.5, execution=gb.Replay(model.log_)).fit(X, Y)
    assert gb.dumps(replayed) == gb.dumps(model)


def test_bounds_on_the_step_hold_for_the_largest_rate():
    workers = gb.SimulatedWorkers(8, build_time=1.0, server_time=0.2, leaf_values="worker")
    late = {"sampling": 0.5, "step": "gradient", "execution": workers}
    assert regressor([0.1] * 6, **late).check(X, Y).kind == "heuristic"
    assert "stability limit" in str(regressor([0.1] * 5 + [0.9], **late).check(X, Y))
    assert regressor([0.5, 1.9] * 3).check(X, Y).kind == "sound"
    assert regressor([0.5, 2.1] * 3).check(X, Y).kind == "heuristic"
    stump = {"max_depth": 1, "step": "constant", "reg_lambda": 0.0, "min_child_weight": 0.0}
    assert regressor(0.5).set_params(**stump).fit(X, Y).guarantee_.kind == "linear rate"
    changing = regressor(RATES).set_params(**stump).fit(X, Y).guarantee_
    assert changing.kind == "monotone descent"
    assert changing.missing == ("the rates are for one learning_rate in all rounds.",)


def test_langevin_boosting_has_one_rate():
    model = regressor(RATES, loss="huber", langevin=gb.Langevin(shrinkage=0.05))
    verdict = model.check(X, Y)
    assert verdict.kind == "refused"
    assert model.set_params(**verdict.alternative).check(X, Y).kind == "sound"
    with pytest.raises(gb.RecipeError, match="learning_rate: the theorem of Langevin boosting is for one rate"):
        regressor(gb.CosineDecay(0.5, 0.1, 4), loss="huber", langevin=gb.Langevin()).fit(X, Y)
    with pytest.raises(gb.RecipeError, match="learning_rate: the theorem of Langevin"):
        gb.GradientBoostingRegressor(**gb.presets.sglb_paper(n_estimators=6, learning_rate=RATES)).fit(X, Y)


@pytest.mark.parametrize("machine", MACHINES)
def test_every_machine_makes_the_same_model(machine):
    data = random_case(4, 200, 3, target="binary").data
    rates = tuple(gb.CosineDecay(0.7, 0.1, 4)(t) for t in range(5))
    assert_parity(Recipe(losses.Logistic(), rounds=5, learning_rate=0.7, rates=rates), data, machine)


def test_nested_parameters_and_other_estimators():
    model = regressor(gb.CosineDecay(0.5, 0.1, 4)).set_params(learning_rate__end=0.2)
    assert model.learning_rate == gb.CosineDecay(0.5, 0.2, 4)
    few = {"n_estimators": 3, "learning_rate": RATES, "n_jobs": 1}
    classifier = gb.GradientBoostingClassifier(**few).fit(X, GRADES)
    assert list(classifier.ensemble_.factors[::3]) == RATES[:3]
    ranker = gb.GradientBoostingRanker(**few).fit(X, GRADES, group=np.repeat(np.arange(20), 10))
    assert list(ranker.ensemble_.factors) == RATES[:3]


@pytest.mark.parametrize(
    "rate",
    [
        [],
        [0.1],
        [0.1, 0.0] * 3,
        [0.1, np.nan] * 3,
        [0.1, "a"] * 3,
        np.ones((6, 1)),
        {"a": 1},
        gb.CosineDecay,
        "fast",
        True,
    ],
)
def test_other_values_are_refused(rate):
    with pytest.raises(gb.RecipeError, match=r"^learning_rate: "):
        regressor(rate).fit(X, Y)


@pytest.mark.parametrize("answer", [-0.1, 0.0, np.inf, None, True, "fast"])
def test_functions_that_give_no_rate_are_refused_before_the_fit(answer):
    model = regressor(lambda t: answer if t == 3 else 0.1)
    assert "in round 3" in str(model.check(X, Y))
    with pytest.raises(gb.RecipeError, match=r"learning_rate: the rate of a round must be .* in round 3"):
        model.fit(X, Y)


@pytest.mark.parametrize("make", [gb.CosineDecay, gb.ExponentialDecay])
@pytest.mark.parametrize(
    "arguments",
    [(0.0, 0.1, 5), (0.1, -1.0, 5), (np.inf, 0.1, 5), ("10", 0.1, 5), (0.1, 0.1, 0), (0.1, 0.1, 2.5), (True, 0.1, 5)],
)
def test_numbers_out_of_range_are_refused(make, arguments):
    with pytest.raises(gb.RecipeError, match=r"learning_rate: (CosineDecay|ExponentialDecay) needs"):
        make(*arguments)


def test_an_error_of_the_function_names_the_round() -> None:
    def rate(round: int) -> float:
        return 1.0 / (2 - round)

    model = gb.GradientBoostingRegressor(n_estimators=4, learning_rate=rate)
    with pytest.raises(gb.RecipeError, match=r"learning_rate: the function .* raised ZeroDivisionError in round 2"):
        model.fit(np.arange(20.0)[:, None], np.arange(20.0))
