"""Estimators that know how sure they are: draws, intervals, chains, and what is refused."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
from scipy.special import ndtri
from sklearn.base import clone
from sklearn.metrics import roc_auc_score

import gpuboost as gb
from gpuboost.errors import InputError, OutsideTheoryWarning, RecipeError
from gpuboost.posterior.uncertainty import interval, uncertainty

Array = np.ndarray

pytestmark = pytest.mark.filterwarnings("ignore:n_estimators. the chain forgets:gpuboost.errors.OutsideTheoryWarning")


def regressor(**params: Any) -> gb.GradientBoostingRegressor:
    given = {"n_estimators": 60, "max_depth": 3, "langevin": gb.Langevin(shrinkage=0.1), "random_state": 3}
    return gb.GradientBoostingRegressor(**{**given, **params})


def classifier(**params: Any) -> gb.GradientBoostingClassifier:
    given = {"n_estimators": 60, "max_depth": 3, "langevin": gb.Langevin(shrinkage=0.1), "random_state": 3}
    return gb.GradientBoostingClassifier(**{**given, **params})


@pytest.mark.parametrize("burn_in", [0.0, 0.5])
def test_a_member_is_the_model_of_a_shorter_run(regression_data: tuple[Array, Array], burn_in: float) -> None:
    x, y = regression_data
    members = regressor().fit(x, y).posterior_members(x, samples=6, burn_in=burn_in)
    assert members.shape == (6, 1, len(x))
    thinning = 10 if burn_in == 0.0 else 5
    for k in (0, 3, 5):
        alone = regressor(n_estimators=60 - thinning * (5 - k)).fit(x, y)
        assert alone.predict(x).tobytes() == members[k, 0].tobytes()


def test_uncertainty_of_each_kind_of_target(
    regression_data: tuple[Array, Array], binary_data: tuple[Array, Array], multiclass_data: tuple[Array, Array]
) -> None:
    for model, (x, y) in (
        (regressor(), regression_data),
        (regressor(loss="gaussian_nll"), regression_data),
        (classifier(), binary_data),
        (classifier(), multiclass_data),
        (classifier(loss=gb.losses.SmoothedZeroOne(0.5)), binary_data),
    ):
        found = model.fit(x, y).predict_uncertainty(x)
        n_classes = len(getattr(model, "classes_", []))
        assert found.mean.shape == ((len(x), n_classes) if n_classes else (len(x),))
        np.testing.assert_allclose(found.total, found.data + found.knowledge, rtol=1e-9, atol=1e-12)
        assert (found.knowledge >= 0.0).all()
        assert (found.knowledge > 0.0).mean() > 0.9
        if n_classes:
            np.testing.assert_allclose(found.mean.sum(axis=1), 1.0, rtol=1e-12)
            assert (found.total <= np.log(n_classes) + 1e-12).all()
        else:
            spread = np.sqrt(found.knowledge)
            assert (np.abs(found.mean - model.predict(x)) < 6.0 * spread).all(), "the model is one of the draws"


def test_posterior_samples_is_how_many_are_drawn(regression_data: tuple[Array, Array]) -> None:
    x, y = regression_data
    assert len(regressor().fit(x, y).posterior_members(x)) == 10
    assert len(regressor(posterior_samples=30).fit(x, y).posterior_members(x)) == 30
    assert len(regressor(posterior_samples=30).fit(x, y).posterior_members(x, samples=2)) == 2


def test_a_saved_model_draws_the_same(regression_data: tuple[Array, Array], tmp_path: Path) -> None:
    x, y = regression_data
    model = regressor(posterior_samples=5, langevin=gb.Langevin(inverse_temperature=500.0, shrinkage=0.1)).fit(x, y)
    model.save_model(tmp_path / "model.json")
    loaded = gb.load_model(tmp_path / "model.json")
    assert loaded.posterior_members(x).tobytes() == model.posterior_members(x).tobytes()
    for one, other in zip(
        (model.predict_uncertainty(x).data, model.predict_interval(x, kind="observation")),
        (loaded.predict_uncertainty(x).data, loaded.predict_interval(x, kind="observation")),
        strict=True,
    ):
        assert one.tobytes() == other.tobytes()
    assert model.predict_uncertainty(x).data == pytest.approx(len(x) / 500.0), "the noise that T = beta / N stands for"


def test_a_spread_that_depends_on_x_is_learned() -> None:
    rng = np.random.default_rng(0)
    x = rng.uniform(-1.0, 1.0, size=(2000, 1))
    sd = np.where(x[:, 0] > 0.0, 1.2, 0.4)
    y = x[:, 0] + sd * rng.normal(size=len(x))
    plain = gb.GradientBoostingRegressor("gaussian_nll", 60, max_depth=2, learning_rate=0.2).fit(x, y)
    assert np.sqrt(np.mean((plain.predict(x) - x[:, 0]) ** 2)) < 0.15
    chain = regressor(
        loss="gaussian_nll", n_estimators=800, learning_rate=0.03, max_depth=2, langevin=gb.Langevin(shrinkage=0.01)
    ).fit(x, y)
    found = np.sqrt(chain.predict_uncertainty(x).data)
    assert np.median(found[x[:, 0] > 0.1]) == pytest.approx(1.2, rel=0.1)
    assert np.median(found[x[:, 0] < -0.1]) == pytest.approx(0.4, rel=0.1)


def test_knowledge_tells_rows_that_are_far_from_the_data() -> None:
    """Held against the very same rows' data uncertainty, which cannot."""
    rng = np.random.default_rng(1)
    x = rng.normal(size=(800, 2))
    y = (x[:, 0] + x[:, 1] + 0.3 * rng.normal(size=800) > 0.0).astype(int)
    hole = np.hypot(x[:, 0] - 1.0, x[:, 1] + 1.0) < 0.9  # no training rows here, on the boundary of the classes
    model = classifier(n_estimators=300, posterior_samples=30, langevin=gb.Langevin(shrinkage=0.05))
    model.fit(x[~hole], y[~hole])
    far = np.array([1.0, -1.0]) + 0.3 * rng.normal(size=(200, 2))
    near = x[~hole][:400]
    rows, is_far = np.concatenate([near, far]), np.r_[np.zeros(400), np.ones(200)]
    assert roc_auc_score(is_far, model.predict_uncertainty(rows).knowledge) > 0.75


def test_chains_agree_or_are_flagged(regression_data: tuple[Array, Array]) -> None:
    x, y = regression_data
    fast = regressor(n_estimators=800, learning_rate=0.5, max_depth=2, langevin=gb.Langevin(shrinkage=0.3))
    good = gb.chains(fast, x, y, n_chains=3)
    found = good.diagnose(x[:5])
    assert found.mixed, found
    assert found.r_hat.shape == (1, 5)
    short = gb.chains(regressor(n_estimators=20, langevin=gb.Langevin(shrinkage=0.001)), x, y, n_chains=3)
    assert not short.diagnose(x[:5], burn_in=0.0).mixed
    assert len(good.posterior_members(x, samples=4)) == 12
    assert good.traces(x[:2]).shape == (3, 800, 1, 2)
    assert good.predict_interval(x).shape == (len(x), 2)
    whole, one = good.predict_uncertainty(x), good.models[0].predict_uncertainty(x)
    assert whole.mean.shape == one.mean.shape
    again = clone(fast).set_params(random_state=4)
    assert again.fit(x, y).predict(x).tobytes() == good.models[1].predict(x).tobytes(), "seeds count up"


# refusals


@pytest.mark.parametrize(
    ("params", "text"),
    [
        ({"langevin": None}, "posterior_samples: draws come from a chain with noise"),
        ({"early_stopping_rounds": 5}, "posterior_samples: early stopping picks the best iterate"),
        ({"n_estimators": 19}, "posterior_samples: 10 draws need 20 rounds"),
        ({"posterior_samples": 0}, "posterior_samples: must be an integer of at least 1"),
        ({"posterior_samples": 2.5}, "posterior_samples: must be an integer of at least 1"),
    ],
)
def test_what_could_not_be_drawn_from_is_refused_before_the_fit(
    params: dict[str, Any], text: str, regression_data: tuple[Array, Array]
) -> None:
    x, y = regression_data
    model = regressor(**{"posterior_samples": 10, **params})
    with pytest.raises(RecipeError, match=text):
        model.fit(x, y, eval_set=(x, y))
    assert model.check(x, y).kind == "refused"


def test_a_model_without_noise_has_nothing_to_draw_from(regression_data: tuple[Array, Array]) -> None:
    x, y = regression_data
    with pytest.raises(RecipeError, match="langevin: uncertainty is that of draws from a posterior"):
        regressor(langevin=None).fit(x, y).predict_uncertainty(x)
    with pytest.raises(RecipeError, match="model: chains need an estimator with langevin"):
        gb.chains(regressor(langevin=None), x, y)
    with pytest.raises(RecipeError, match="early_stopping_rounds: chains are compared round by round"):
        gb.chains(regressor(early_stopping_rounds=3), x, y)


def test_draws_before_an_early_stop_are_warned_of(regression_data: tuple[Array, Array]) -> None:
    x, y = regression_data
    model = regressor(early_stopping_rounds=5, n_estimators=200).fit(x, y, eval_set=(x, y))
    with pytest.warns(OutsideTheoryWarning, match="may still be on the way to the posterior"):
        model.predict_uncertainty(x, samples=1)


def test_more_draws_than_rounds_are_refused(regression_data: tuple[Array, Array]) -> None:
    x, y = regression_data
    with pytest.raises(InputError, match="samples: 40 members need 40 rounds after the burn-in"):
        regressor().fit(x, y).predict_uncertainty(x, samples=40)


def test_the_variances_of_uncertainty_and_of_intervals() -> None:
    loss, members = gb.losses.SquaredError(), np.array([1.0, 2.0, 6.0]).reshape(3, 1, 1)
    found = uncertainty(loss, members, temperature=4.0)
    assert found.knowledge == members.var()
    assert found.total == members.var() + 0.25
    low, high = interval(loss, members, 0.9, "mean")[0]
    np.testing.assert_allclose(high - low, 2.0 * ndtri(0.95) * members.std(ddof=1), rtol=1e-12)
