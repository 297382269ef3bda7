"""fit_posterior: temperature and prior by held-out likelihood, and what is refused."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import gpuboost as gb
from gpuboost.errors import InputError, RecipeError

Array = np.ndarray

pytestmark = pytest.mark.filterwarnings("ignore:n_estimators. the chain forgets:gpuboost.errors.OutsideTheoryWarning")


def regressor(**params: Any) -> gb.GradientBoostingRegressor:
    given = {"n_estimators": 200, "learning_rate": 0.25, "max_depth": 2, "random_state": 0}
    return gb.GradientBoostingRegressor(**{**given, "langevin": gb.Langevin(random_from=40), **params})


def classifier(**params: Any) -> gb.GradientBoostingClassifier:
    given = {"n_estimators": 100, "learning_rate": 0.5, "max_depth": 2, "random_state": 0}
    return gb.GradientBoostingClassifier(**{**given, "langevin": gb.Langevin(random_from=20), **params})


def steps(noise: float, n: int = 400) -> tuple[Array, Array]:
    rng = np.random.default_rng(0)
    x = rng.normal(size=(n, 2))
    return x, (x[:, 0] > 0.0) + noise * rng.normal(size=n)


@pytest.mark.slow
@pytest.mark.parametrize(("noise", "unit"), [(0.25, 1000.0), (1.0, 1.0)])
def test_the_temperature_of_the_squared_error_is_one_over_the_noise(noise: float, unit: float) -> None:
    x, y = steps(noise)
    found = gb.fit_posterior(regressor(), x, unit * y)
    assert found.temperature * (unit * noise) ** 2 == pytest.approx(1.0, rel=0.75)
    assert found.model.langevin.temperature == found.temperature
    assert found.model.langevin.prior_variance == found.prior_variance
    assert found.losses[found.temperature, found.prior_variance] == min(found.losses.values())
    assert str(found).count("chosen") == 1
    assert len(str(found).splitlines()) == 1 + len(found.losses)


@pytest.mark.slow
@pytest.mark.parametrize("labels", [["no", "yes"], [False, True]])
def test_clean_labels_ask_for_a_cold_posterior_and_coins_for_a_warmer_one(labels: list[Any]) -> None:
    x, _ = steps(0.0)
    names = np.array(labels)
    clean = gb.fit_posterior(classifier(), x, names[(x[:, 0] > 0.0).astype(int)])
    coins = gb.fit_posterior(classifier(), x, names[np.random.default_rng(1).integers(0, 2, len(x))])
    assert clean.temperature >= 64.0
    assert coins.temperature < clean.temperature
    assert clean.losses[256.0, 4.0] < 0.8 * clean.losses[1.0, 4.0]
    assert set(coins.model.classes_) == set(labels)


def test_it_is_the_model_of_all_rows_at_the_chosen_policy() -> None:
    x, y = steps(0.5)
    model = regressor()
    found = gb.fit_posterior(model, x, y, temperatures=[2.0, 4.0], prior_variances=[0.5])
    assert sorted(found.losses) == [(2.0, 0.5), (4.0, 0.5)], "a grid that is given is not added to"
    policy = gb.Langevin(temperature=found.temperature, prior_variance=0.5, random_from=40)
    assert found.model.predict(x).tobytes() == regressor(langevin=policy).fit(x, y).predict(x).tobytes()
    assert model.langevin == gb.Langevin(random_from=40), "not changed"
    assert not hasattr(model, "ensemble_")
    again = gb.fit_posterior(model, gb.Dataset(x, y), temperatures=[2.0, 4.0], prior_variances=[0.5])
    assert again.losses == found.losses
    other = gb.fit_posterior(regressor(random_state=1), x, y, temperatures=[2.0], prior_variances=[0.5])
    assert other.losses[2.0, 0.5] != found.losses[2.0, 0.5], "the seed draws the rows that are held out"


def test_weights_say_which_rows_are_judged() -> None:
    """Half of the labels are coins; where they weigh next to nothing, the others are predicted as if alone."""
    rng = np.random.default_rng(2)
    x = rng.normal(size=(400, 2))
    bad = np.arange(400) % 2 == 1
    y = np.where(bad, rng.integers(0, 2, 400), x[:, 0] > 0.0).astype(int)
    grid = {"temperatures": [64.0], "prior_variances": [4.0]}
    (mixed,) = gb.fit_posterior(classifier(), x, y, **grid).losses.values()
    (clean,) = gb.fit_posterior(classifier(), x, y, **grid, sample_weight=np.where(bad, 1e-6, 1.0)).losses.values()
    assert clean < 0.2
    assert mixed > 0.4


def test_a_learned_spread_keeps_its_temperature_and_a_policy_of_none_is_the_usual_one() -> None:
    x, y = steps(0.5, 300)
    found = gb.fit_posterior(regressor(loss="gaussian_nll", learning_rate=0.05, n_estimators=60, langevin=None), x, y)
    assert found.temperature == 1.0
    assert len(found.losses) == 3
    assert found.model.langevin.random_from is None


def test_a_class_of_one_row_is_learned_from() -> None:
    x = np.random.default_rng(3).normal(size=(81, 2))
    y = np.r_[np.repeat([0, 1], 40), 2]
    found = gb.fit_posterior(classifier(n_estimators=40), x, y, temperatures=[1.0])
    assert np.isfinite(list(found.losses.values())).all()


@pytest.mark.parametrize(
    ("model", "options", "error", "text"),
    [
        ("tree", {}, RecipeError, "model: must be an estimator of gpuboost; got str"),
        (regressor(loss="huber"), {}, RecipeError, "loss: held-out rows need a likelihood"),
        (regressor(early_stopping_rounds=3), {}, RecipeError, "early_stopping_rounds: a chain that stops"),
        (regressor(langevin="on"), {}, RecipeError, "langevin: must be None or gb.Langevin"),
        (regressor(), {"held_out": 1.0}, RecipeError, "held_out: must be a share between 0 and 1; got 1.0"),
        (regressor(), {"held_out": 0.001}, InputError, "held_out: 0.001 of 60 rows leaves none to judge by"),
        (regressor(), {"temperatures": []}, RecipeError, "temperatures: must hold at least one number"),
        (regressor(), {"temperatures": [0.0]}, RecipeError, "temperatures: must be finite numbers above 0; got 0.0"),
        (regressor(), {"prior_variances": [np.inf]}, RecipeError, "prior_variances: must be finite numbers above 0"),
        (regressor(), {"prior_variances": [True]}, RecipeError, "prior_variances: must be finite numbers above 0"),
        (regressor(), {"y": np.ones(60)}, InputError, "y: all targets that are learned from are equal"),
        (regressor(), {"y": None}, InputError, "y: a target is needed"),
    ],
)
def test_what_cannot_be_chosen_is_refused(
    model: Any, options: dict[str, Any], error: type[Exception], text: str
) -> None:
    x, y = steps(0.5, 60)
    with pytest.raises(error, match=text):
        gb.fit_posterior(model, x, **{"y": y, **options})
