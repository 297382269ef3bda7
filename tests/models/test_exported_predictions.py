"""Exported models predict what the estimator predicts, or are refused."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import gpuboost as gb
from gpuboost.errors import InputError
from gpuboost.losses.base import link_of

Rng = np.random.Generator


@pytest.fixture(scope="module")
def rows() -> tuple[Any, Any]:
    rng = np.random.default_rng(0)
    x = rng.normal(size=(300, 3)).astype(np.float32)
    return x, x[:, 0] + 0.3 * rng.normal(size=300)


SQUARE: tuple[Callable[[float, float], float], ...]
SQUARE = lambda y, f: (f - y) ** 2, lambda y, f: 2 * (f - y), lambda y, f: 2.0  # the same ones, compiled once


def squares(link: Callable[[Any], Any] | None = None) -> Any:
    return gb.losses.custom(*SQUARE, inverse_link=link)


def through_onnx(model: Any, x: Any) -> list[Any]:
    runtime = pytest.importorskip("onnxruntime")
    text = gb.export.to_onnx(model).SerializeToString()
    return list(runtime.InferenceSession(text, providers=["CPUExecutionProvider"]).run(None, {"X": x}))


def test_smoothed_zero_one_exports_probabilities_and_labels(rows: tuple[Any, Any], tmp_path: Path) -> None:
    x, y = rows
    loss = gb.losses.SmoothedZeroOne(0.5)
    model = gb.GradientBoostingClassifier(loss=loss, n_estimators=20, random_state=0).fit(x, y > 0)
    want = model.predict_proba(x)
    label, found = through_onnx(model, x)
    np.testing.assert_allclose(found, want, atol=1e-5)
    assert (label.astype(bool) == model.predict(x)).mean() > 0.99
    xgboost = pytest.importorskip("xgboost")
    gb.export.to_xgboost(model, tmp_path / "m.json")
    booster = xgboost.Booster(model_file=str(tmp_path / "m.json"))
    np.testing.assert_allclose(booster.predict(xgboost.DMatrix(x)), want[:, 1], atol=1e-5)


def test_only_the_mean_of_two_scores_is_exported_as_it_is_predicted(rows: tuple[Any, Any]) -> None:
    x, y = rows
    model = gb.GradientBoostingRegressor(loss="gaussian_nll", n_estimators=10, random_state=0).fit(x, y)
    (found,) = through_onnx(model, x)
    np.testing.assert_allclose(found[:, 0], model.predict(x), atol=1e-5)
    assert found.shape[1] == 1
    assert through_onnx(model.ensemble_, x)[0].shape[1] == 2


def test_custom_losses_without_a_link_export_scores_of_regressions_only(rows: tuple[Any, Any], tmp_path: Path) -> None:
    x, y = rows
    regressor = gb.GradientBoostingRegressor(loss=squares(), n_estimators=5, random_state=0).fit(x, y)
    np.testing.assert_allclose(through_onnx(regressor, x)[0][:, 0], regressor.predict(x), atol=1e-5)
    linked = gb.GradientBoostingRegressor(loss=squares(np.exp), n_estimators=5, random_state=0).fit(x, y)
    classifier = gb.GradientBoostingClassifier(loss=squares(), n_estimators=5, random_state=0).fit(x, y > 0)
    for model in (linked, classifier):
        for export in (
            gb.export.to_onnx,
            gb.export.to_treelite,
            lambda m: gb.export.to_xgboost(m, tmp_path / "m.json"),
        ):
            with pytest.raises(InputError, match=r"a function of its own.*Export model\.ensemble_"):
                export(model)
        assert through_onnx(model.ensemble_, x)[0].shape == (300, 1)


@pytest.mark.parametrize("loss", ["gamma", "poisson", "tweedie", "aft", "cross_entropy"])
def test_treelite_reads_files_for_xgboost(loss: str, rows: tuple[Any, Any], tmp_path: Path) -> None:
    treelite = pytest.importorskip("treelite")
    x, y = rows
    target = 1.0 / (1.0 + np.exp(-y)) if loss == "cross_entropy" else np.exp(y)
    model = gb.GradientBoostingRegressor(loss, n_estimators=5, n_jobs=1).fit(x, target)
    gb.export.to_xgboost(model, tmp_path / "m.json")
    read = treelite.frontend.load_xgboost_model(str(tmp_path / "m.json"))
    np.testing.assert_allclose(treelite.gtil.predict(read, x).ravel(), model.predict(x), rtol=1e-5)


class Exponential(gb.losses.SquaredError):
    """Squares of the logarithm: a loss of this package with a link function of its own."""

    def inverse_link(self, scores: Any) -> Any:
        return np.exp(scores[0])


def test_a_link_function_that_a_derived_loss_has_is_not_taken_for_that_of_its_base(rows: tuple[Any, Any]) -> None:
    model = gb.GradientBoostingRegressor(loss=Exponential(), n_estimators=2, n_jobs=1).fit(*rows)
    assert link_of(model.loss_)[0] == "other"
    with pytest.raises(InputError, match=r"a function of its own.*Export model\.ensemble_"):
        gb.export.to_c(model)
    assert "They are the predictions" in gb.export.to_c(model.ensemble_)


def mixed_frame() -> Any:
    """A frame of two categorical columns and a number, and labels that depend on the categories."""
    pd = pytest.importorskip("pandas")
    rng = np.random.default_rng(1)
    colour, number = rng.choice(["red", "green", "blue"], size=300), rng.choice([9, 2, 5], size=300)
    frame = pd.DataFrame({"colour": colour, "b": rng.normal(size=300), "number": number})
    frame = frame.astype({"colour": "category", "number": "category"})
    score = (colour == "red") + 0.5 * (number == 5) + 0.3 * rng.normal(size=300)
    return frame, np.array(["low", "mid", "high"])[np.digitize(score, [0.4, 1.0])]


def test_xgboost_reads_categories_in_any_order(tmp_path: Path) -> None:
    xgboost = pytest.importorskip("xgboost")
    x, y = mixed_frame()
    model = gb.GradientBoostingClassifier(n_estimators=10, random_state=0).fit(x, y)
    gb.export.to_xgboost(model, tmp_path / "m.json")
    booster = xgboost.Booster(model_file=str(tmp_path / "m.json"))
    other = x.copy()
    for name in ("colour", "number"):
        other[name] = x[name].cat.reorder_categories(list(x[name].cat.categories)[::-1])
    found = booster.predict(xgboost.DMatrix(other, enable_categorical=True))
    np.testing.assert_allclose(found, model.predict_proba(x), atol=1e-5)
    labels = json.loads(booster.attr("gpuboost_classes"))
    np.testing.assert_array_equal(np.array(labels)[found.argmax(axis=1)], model.predict(x))


def test_onnx_holds_the_categories_of_its_codes() -> None:
    onnx_runtime = pytest.importorskip("onnxruntime")
    x, y = mixed_frame()
    model = gb.GradientBoostingClassifier(n_estimators=10, random_state=0).fit(x, y)
    text = gb.export.to_onnx(model).SerializeToString()
    session = onnx_runtime.InferenceSession(text, providers=["CPUExecutionProvider"])
    categories = json.loads(session.get_modelmeta().custom_metadata_map["gpuboost_categories"])
    codes = np.stack(
        [
            [categories["0"].index(value) for value in x["colour"]],
            x["b"],
            [categories["2"].index(value) for value in x["number"]],
        ],
        axis=1,
    )
    label, found = session.run(None, {"X": codes.astype(np.float32)})
    np.testing.assert_allclose(found, model.predict_proba(x), atol=1e-5)
    np.testing.assert_array_equal(label, model.predict(x))


@pytest.mark.parametrize(
    ("column", "renamed", "why"),
    [
        ("colour", {"green": "gr\u00fcn"}, "letters beyond ASCII; got 'gr\u00fcn'"),
        ("number", {2: 2.5, 5: 5.0, 9: 9.0}, "texts or integers; got 2.5"),
    ],
)
def test_categories_that_xgboost_confuses_are_refused(column: str, renamed: Any, why: str, tmp_path: Path) -> None:
    x, y = mixed_frame()
    x[column] = x[column].cat.rename_categories(renamed)
    model = gb.GradientBoostingClassifier(n_estimators=2).fit(x, y)
    with pytest.raises(InputError, match=why):
        gb.export.to_xgboost(model, tmp_path / "m.json")
