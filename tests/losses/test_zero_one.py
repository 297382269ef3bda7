"""The smoothed 0-1 loss: its values, its bounds, and what it refuses."""

from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import gpuboost as gb
from gpuboost import losses, metrics
from gpuboost.errors import InputError, RecipeError
from gpuboost.losses import SmoothedZeroOne
from gpuboost.recipe import Recipe
from gpuboost.steps import GradientStep, automatic

SCALES = [0.01, 0.1, 1.0, 30.0]


@pytest.mark.parametrize("scale", SCALES)
@given(st.floats(-30.0, 30.0), st.sampled_from([0.0, 1.0]))
def test_value_and_gradient_are_those_of_the_paper(scale: float, u: float, y: float) -> None:
    loss, f = SmoothedZeroOne(scale), u * scale
    margin = (2.0 * y - 1.0) * f
    p = 1.0 / (1.0 + math.exp(-margin / scale))
    assert loss.value(y, f, scale) == pytest.approx(1.0 - p, rel=1e-12, abs=1e-15)
    g, h = loss.derivatives(y, f, scale)
    assert g == pytest.approx(-(2.0 * y - 1.0) / scale * p * (1.0 - p), rel=1e-9, abs=1e-15 / scale)
    assert abs(g) <= loss.lipschitz * (1.0 + 1e-15)
    assert h == pytest.approx(loss.smoothness, rel=1e-12)


@given(st.floats(-1e300, 1e300) | st.floats(-50.0, 50.0), st.sampled_from(SCALES))
def test_gradients_are_normal_float32_numbers_and_mirror_each_other(f: float, scale: float) -> None:
    g, h = SmoothedZeroOne(scale).derivatives(1.0, f, scale)
    assert 1e-37 < -g < 1e37
    assert SmoothedZeroOne(scale).derivatives(0.0, -f, scale) == (-g, h)


@pytest.mark.parametrize("scale", SCALES)
def test_the_bounds_are_the_least_ones(scale: float) -> None:
    loss, f = SmoothedZeroOne(scale), scale * np.linspace(-8.0, 8.0, 20_001)
    g = np.array([loss.derivatives(1.0, float(at), scale)[0] for at in f])
    assert np.abs(g).max() == pytest.approx(loss.lipschitz, rel=1e-6)
    bend = np.diff(g) / np.diff(f)
    assert bend.max() == pytest.approx(loss.smoothness, rel=1e-5)
    assert bend.min() == pytest.approx(-loss.smoothness, rel=1e-5)


def test_it_starts_at_0_whatever_the_classes_share() -> None:
    y = np.array([1.0, 1.0, 1.0, 0.0])
    assert SmoothedZeroOne().start(y, np.ones(4)).tolist() == [0.0]


def test_newton_steps_are_refused_since_it_is_not_convex() -> None:
    assert automatic(SmoothedZeroOne()) == GradientStep()
    with pytest.raises(RecipeError, match=r"negative for some scores of loss 'smoothed_zero_one', as it is not convex"):
        Recipe(SmoothedZeroOne())


@pytest.mark.parametrize("scale", [0.0, -1.0, 1e7, math.nan, math.inf, True, "small"])
def test_scales_out_of_range_are_refused(scale: object) -> None:
    with pytest.raises(RecipeError, match="scale: SmoothedZeroOne needs a"):
        SmoothedZeroOne(scale)


def test_targets_are_0_and_1() -> None:
    with pytest.raises(InputError, match="SmoothedZeroOne needs labels 0 and 1"):
        SmoothedZeroOne().check_target(np.array([0.0, 0.5]))


def test_it_is_saved_with_its_scale_and_found_by_name() -> None:
    stored = losses.to_json(SmoothedZeroOne(0.25))
    assert stored == {"name": "smoothed_zero_one", "scale": 0.25}
    assert losses.from_json(stored) == SmoothedZeroOne(0.25)
    assert losses.get("smoothed_zero_one") == SmoothedZeroOne(0.1)


def test_metrics_know_its_scale() -> None:
    loss, scores = SmoothedZeroOne(0.1), np.array([[0.05, -0.2, 0.3, -0.01]])
    y = np.array([1.0, 0.0, 0.0, 1.0])
    assert metrics.default_metric(loss).name == "error"
    assert metrics.get("error", loss)(y, scores, None, loss) == 0.5
    p = loss.inverse_link(scores)
    expected = -np.mean(np.where(y > 0.5, np.log(p), np.log(1.0 - p)))
    assert metrics.get("logloss", loss)(y, scores, None, loss) == pytest.approx(expected, rel=1e-12)


def test_a_classifier_learns_by_it(binary_data: tuple[np.ndarray, np.ndarray], tmp_path) -> None:
    x, y = binary_data
    model = gb.GradientBoostingClassifier("smoothed_zero_one", 40, 0.1, max_depth=3).fit(x, y, eval_set=(x, y))
    assert model.score(x, y) > 0.8
    np.testing.assert_array_equal(model.predict(x), (model.decision_function(x) > 0.0).astype(int))
    np.testing.assert_array_equal(model.predict_proba(x)[:, 1] > 0.5, model.predict(x) == 1)
    assert model.evals_result_["validation_0"]["error"][-1] == pytest.approx(1.0 - model.score(x, y))
    model.save_model(tmp_path / "model.json")
    loaded = gb.load_model(tmp_path / "model.json")
    assert loaded.predict_proba(x).tobytes() == model.predict_proba(x).tobytes()
    assert model.check(x, y).kind == "sound"
