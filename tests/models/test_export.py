"""Exports, read back by the libraries they are for, on rows that lie on the thresholds and next to them."""

from __future__ import annotations

import builtins
import json
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
from support.strategies import Array, probing_rows, random_ensemble

import gpuboost as gb
from gpuboost import losses
from gpuboost.backends.cpu.backend import Cpu
from gpuboost.backends.prediction import predictor
from gpuboost.backends.prediction.contributions import Explainer, contributions
from gpuboost.errors import InputError
from gpuboost.export import to_onnx, to_shap_dict, to_treelite, to_xgboost
from gpuboost.losses.per_output import PerOutput
from gpuboost.types import Cuts, Ensemble

SEEDS = range(8)


def example(seed: int, n_outputs: int = 1, categorical: float = 0.4) -> tuple[Ensemble, Array]:
    """An ensemble and float32 rows for it; codes are 0 or more, as the other libraries want them."""
    ensemble = random_ensemble(
        seed, n_columns=6, rounds=4, n_outputs=n_outputs, max_leaves=25, categorical=categorical, scale=0.7
    )
    x = probing_rows(ensemble, 400, seed, np.float32)
    codes = kinds(ensemble)
    x[:, codes] = np.where(x[:, codes] < 0, np.nan, x[:, codes])
    return ensemble, x


def kinds(ensemble: Ensemble) -> Array:
    found = np.zeros(ensemble.cuts.n_columns, np.bool_)
    found[ensemble.cuts.columns] = ensemble.cuts.is_categorical
    return found


def scores(ensemble: Ensemble, x: Array) -> Array:
    """(n, k)"""
    out = np.empty((ensemble.n_outputs, len(x)))
    predictor.predict(predictor.ForestPredictor.of(ensemble), x, 0, len(x), out)
    return out.T


def fitted(ensemble: Ensemble, loss: Any, **more: Any) -> SimpleNamespace:
    """What an export looks at in an estimator."""
    return SimpleNamespace(ensemble_=ensemble, loss_=loss, **more)


def every_value_left(ensemble: Ensemble) -> Ensemble:
    """All categorical sets and all cuts at their end: only missing values and unknown codes can go right."""
    trees = []
    for tree in ensemble.trees:
        nodes, full = tree.nodes, tree.nodes.left_set.copy()
        bins = nodes.bin.copy()
        for i in np.flatnonzero(nodes.feature >= 0):
            codes = ensemble.cuts.categories[nodes.feature[i]]
            if codes is None:
                bins[i] = len(ensemble.cuts.thresholds[nodes.feature[i]])
            else:
                for c in range(len(codes)):
                    full[i, c // 32] |= np.uint32(1 << (c % 32))
        trees.append(replace(tree, nodes=replace(nodes, left_set=full, bin=bins)))
    return replace(ensemble, trees=tuple(trees))


def cases() -> list[tuple[Ensemble, Array]]:
    made = [example(seed, 1 + seed % 3, [0.0, 0.5][seed % 2]) for seed in SEEDS]
    made += [(every_value_left(ensemble), x) for ensemble, x in made[:4]]
    ensemble, x = made[1]
    return [*made, (replace(ensemble, trees=(), factors=()), x)]


# XGBoost


def through_xgboost(model: Any, x: Array, folder: Path, **options: Any) -> Array:
    xgboost = pytest.importorskip("xgboost")
    ensemble = model if isinstance(model, Ensemble) else model.ensemble_
    to_xgboost(model, folder / "model.json")
    booster = xgboost.Booster(params={"nthread": 1}, model_file=str(folder / "model.json"))
    types = ["c" if categorical else "q" for categorical in kinds(ensemble)]
    names = booster.feature_names
    data = xgboost.DMatrix(x, feature_types=types, feature_names=names, enable_categorical=True, nthread=1)
    return np.asarray(booster.predict(data, **options))


@pytest.mark.parametrize("case", range(13))
def test_xgboost_gives_the_same_scores(case: int, tmp_path: Path) -> None:
    ensemble, x = cases()[case]
    want = scores(ensemble, x)
    got = through_xgboost(ensemble, x, tmp_path, output_margin=True).reshape(want.shape)
    np.testing.assert_allclose(got, want, rtol=0, atol=2e-6)


def with_counts_of(ensemble: Ensemble, x: Array) -> Ensemble:
    """Counts of the leaves' own rows, plus 1: with shares near 0 the float32 sums of XGBoost lose all digits."""
    leaves, trees = np.empty((len(x), len(ensemble.trees)), np.int32), []
    predictor.leaves(predictor.ForestPredictor.of(ensemble), x, 0, len(x), leaves)
    for t, tree in enumerate(ensemble.trees):
        count = np.bincount(leaves[:, t], minlength=len(tree.value)) + tree.nodes.is_leaf
        for i in range(len(count) - 1, -1, -1):
            if tree.nodes.feature[i] >= 0:
                count[i] = count[tree.nodes.left[i]] + count[tree.nodes.right[i]]
        trees.append(replace(tree, nodes=replace(tree.nodes, count=count)))
    return replace(ensemble, trees=tuple(trees))


@pytest.mark.parametrize("seed", range(4))
def test_xgboost_gives_the_same_contributions(seed: int, tmp_path: Path) -> None:
    ensemble, x = example(seed, categorical=0.0)
    ensemble = with_counts_of(ensemble, x)
    want = np.empty((400, 1, 7))
    contributions(Explainer.of(ensemble), x, 0, 400, want)
    got = through_xgboost(ensemble, x, tmp_path, pred_contribs=True)
    np.testing.assert_allclose(got, want[:, 0], rtol=0, atol=2e-5)
    pairs = through_xgboost(ensemble, x, tmp_path, pred_interactions=True)
    np.testing.assert_allclose(pairs, Cpu(2).interactions(ensemble, x)[:, 0], rtol=0, atol=2e-5)


@pytest.mark.parametrize(
    ("loss", "n_outputs"),
    [
        (losses.SquaredError(), 1),
        (losses.Quantile(0.3), 1),
        (losses.Logistic(), 1),
        (losses.Exponential(), 1),
        (losses.Poisson(), 1),
        (losses.Gamma(), 1),
        (losses.Tweedie(1.3), 1),
        (losses.CrossEntropy(), 1),
        (losses.AFT("logistic", 0.5), 1),
        (PerOutput(losses.CrossEntropy(), 2), 2),
        (losses.Softmax(3), 3),
    ],
)
def test_xgboost_gives_the_same_predictions(loss: Any, n_outputs: int, tmp_path: Path) -> None:
    ensemble, x = example(3, n_outputs, categorical=0.3)
    got = through_xgboost(fitted(ensemble, loss), x, tmp_path)
    np.testing.assert_allclose(got, loss.inverse_link(scores(ensemble, x).T), rtol=5e-6, atol=2e-6)


def test_xgboost_keeps_the_names_that_it_allows(tmp_path: Path) -> None:
    ensemble, _ = example(0, categorical=0.0)
    for names, kept in ((list("abcdef"), list("abcdef")), (["a<b", *"bcdef"], [])):
        to_xgboost(fitted(ensemble, losses.SquaredError(), feature_names_in_=np.array(names)), tmp_path / "m.json")
        found = json.loads((tmp_path / "m.json").read_text(encoding="ascii"))
        assert found["learner"]["feature_names"] == kept


def test_right_children_come_after_their_left_sibling(tmp_path: Path) -> None:
    ensemble, _ = example(5)
    to_xgboost(ensemble, tmp_path / "m.json")
    document = json.loads((tmp_path / "m.json").read_text(encoding="ascii"))
    for tree in document["learner"]["gradient_booster"]["model"]["trees"]:
        for i, (left, right) in enumerate(zip(tree["left_children"], tree["right_children"], strict=True)):
            assert right == (left + 1 if left >= 0 else -1)
            if left >= 0:
                assert tree["parents"][left] == tree["parents"][right] == i
        assert tree["categories_nodes"] == sorted(tree["categories_nodes"])


def test_a_path_of_another_kind_is_refused(tmp_path: Path) -> None:
    with pytest.raises(InputError, match=r"path: must end with '\.json'"):
        to_xgboost(example(1)[0], tmp_path / "model.ubj")


# ONNX


def through_onnx(model: Any, x: Array) -> list[Array]:
    pytest.importorskip("onnx")
    runtime = pytest.importorskip("onnxruntime")
    options = runtime.SessionOptions()
    options.intra_op_num_threads = 1
    text = to_onnx(model).SerializeToString()
    session = runtime.InferenceSession(text, options, providers=["CPUExecutionProvider"])
    return [np.asarray(output) for output in session.run(None, {"X": x})]


@pytest.mark.parametrize("case", range(13))
def test_onnx_gives_the_same_scores(case: int) -> None:
    ensemble, x = cases()[case]
    np.testing.assert_allclose(through_onnx(ensemble, x)[0], scores(ensemble, x), rtol=0, atol=2e-6)


def test_onnx_labels_and_probabilities() -> None:
    ensemble, x = example(3)
    for loss in (losses.Logistic(), losses.Exponential()):
        label, found = through_onnx(fitted(ensemble, loss, classes_=np.array([-1, 4])), x)
        p = loss.inverse_link(scores(ensemble, x).T)
        np.testing.assert_allclose(found, np.stack([1 - p, p], axis=1), rtol=0, atol=2e-6)
        np.testing.assert_array_equal(label, np.where(found[:, 1] > found[:, 0], 4, -1))
    ensemble, x = example(2, 3)
    names = np.array(["red", "green", "blue"])
    label, found = through_onnx(fitted(ensemble, losses.Softmax(3), classes_=names), x)
    np.testing.assert_allclose(found, losses.Softmax(3).inverse_link(scores(ensemble, x).T), rtol=0, atol=2e-6)
    np.testing.assert_array_equal(label, names[found.argmax(axis=1)])


def test_onnx_keeps_large_labels_and_refuses_those_beyond_int64() -> None:
    ensemble, x = example(3)
    largest = np.array([3, 2**63 - 1], np.uint64)
    label, _ = through_onnx(fitted(ensemble, losses.Logistic(), classes_=largest), x)
    assert set(label.tolist()) <= {3, 2**63 - 1}
    beyond = fitted(ensemble, losses.Logistic(), classes_=np.array([3, 2**63], np.uint64))
    with pytest.raises(gb.InputError, match=r"ONNX has labels of int64, .* the class 9223372036854775808"):
        gb.export.to_onnx(beyond)


def test_onnx_has_labels_that_are_whole_floats_as_integers() -> None:
    ensemble, x = example(3)
    label, _ = through_onnx(fitted(ensemble, losses.Logistic(), classes_=np.array([-1.0, 1.0])), x)
    assert label.dtype == np.int64
    assert set(label.tolist()) <= {-1, 1}


def test_onnx_log_link() -> None:
    ensemble, x = example(4)
    (found,) = through_onnx(fitted(ensemble, losses.Poisson()), x)
    np.testing.assert_allclose(found, np.exp(scores(ensemble, x)), rtol=5e-6)


def test_onnx_has_shares_as_numbers_and_not_as_probabilities_of_classes() -> None:
    ensemble, x = example(4)
    (found,) = through_onnx(fitted(ensemble, losses.CrossEntropy()), x)
    np.testing.assert_allclose(found, 1.0 / (1.0 + np.exp(-scores(ensemble, x))), rtol=5e-6)


def test_onnx_to_a_path(tmp_path: Path) -> None:
    onnx = pytest.importorskip("onnx")
    made = to_onnx(example(1)[0], tmp_path / "m.onnx")
    assert onnx.load(str(tmp_path / "m.onnx")) == made


# treelite


@pytest.mark.parametrize("case", range(13))
def test_treelite_gives_the_same_scores_in_float64(case: int) -> None:
    gtil = pytest.importorskip("treelite").gtil
    ensemble, x = cases()[case]
    want = scores(ensemble, x.astype(np.float64))
    got = gtil.predict(to_treelite(ensemble), x.astype(np.float64), nthread=1, pred_margin=True)
    np.testing.assert_allclose(np.asarray(got).reshape(want.shape), want, rtol=0, atol=1e-12)


@pytest.mark.parametrize(
    ("loss", "k"), [(losses.Logistic(), 1), (losses.Softmax(3), 3), (losses.Tweedie(), 1), (losses.CrossEntropy(), 1)]
)
def test_treelite_gives_the_same_predictions(loss: Any, k: int) -> None:
    gtil = pytest.importorskip("treelite").gtil
    ensemble, x = example(3, k)
    got = np.asarray(gtil.predict(to_treelite(fitted(ensemble, loss)), x.astype(np.float64), nthread=1))
    want = loss.inverse_link(scores(ensemble, x.astype(np.float64)).T)
    np.testing.assert_allclose(got.reshape(want.shape), want, rtol=1e-6, atol=1e-7)


# shap


@pytest.mark.parametrize("seed", SEEDS)
def test_shap_trees_read_as_shap_reads_them(seed: int) -> None:
    ensemble, x = example(seed, 1 + seed % 2, categorical=0.0)
    found = to_shap_dict(ensemble)
    total = np.tile(np.atleast_1d(found["base_offset"]), (len(x), 1))
    for tree in found["trees"]:
        assert (tree["node_sample_weight"] > 0).all()
        for r, row in enumerate(x.astype(np.float64)):
            at = 0
            while tree["children_left"][at] >= 0:
                value = row[tree["features"][at]]
                sides = ("children_default",) if np.isnan(value) else ("children_right", "children_left")
                at = tree[sides[0] if len(sides) == 1 else sides[int(value <= tree["thresholds"][at])]][at]
            total[r] += tree["values"][at]
    np.testing.assert_allclose(total, scores(ensemble, x.astype(np.float64)), rtol=0, atol=1e-12)


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore")  # shap's own, of NumPy and numba
@pytest.mark.parametrize("seed", range(4))
def test_shap_gives_the_same_contributions_and_interactions(seed: int) -> None:
    shap = pytest.importorskip("shap")
    ensemble, x = example(seed, categorical=0.0)
    ensemble, x = with_counts_of(ensemble, x), x.astype(np.float64)
    explainer = shap.TreeExplainer(to_shap_dict(ensemble))
    phi, pairs = Cpu(2).contributions(ensemble, x)[:, 0], Cpu(2).interactions(ensemble, x)[:, 0]
    np.testing.assert_allclose(explainer.shap_values(x), phi[:, :-1], rtol=0, atol=1e-9)
    np.testing.assert_allclose(explainer.shap_interaction_values(x), pairs[:, :-1, :-1], rtol=0, atol=1e-9)


def test_shap_refuses_categories() -> None:
    with pytest.raises(InputError, match="shap reads categorical splits wrongly"):
        to_shap_dict(example(1, categorical=1.0)[0])


# all of them


@pytest.mark.parametrize("export", [to_onnx, to_treelite, to_shap_dict, lambda model: to_xgboost(model, "m.json")])
def test_what_is_no_model_is_refused(export: Any) -> None:
    with pytest.raises(InputError, match="model: a fitted gpuboost estimator or an Ensemble can be exported; got 3"):
        export(3)


@pytest.mark.parametrize(("export", "package"), [(to_onnx, "onnx"), (to_treelite, "treelite")])
def test_a_missing_package_is_named(export: Any, package: str, monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(name: str, *_: Any, **__: Any) -> Any:
        raise ImportError(name)

    monkeypatch.setattr("gpuboost.export.plain.import_module", refuse)
    with pytest.raises(ImportError, match=f"needs the package '{package}'; install it with: pip install {package}"):
        export(example(1)[0])


@pytest.mark.parametrize("code", [-1, 2**24])
def test_a_code_beyond_float32_is_refused(code: int, tmp_path: Path) -> None:
    ensemble = random_ensemble(2, n_columns=1, categorical=1.0, max_leaves=30)
    codes = tuple(np.append(listed[:-1], code) for listed in ensemble.cuts.categories if listed is not None)
    cuts = Cuts(ensemble.cuts.thresholds, codes, ensemble.cuts.source)
    with pytest.raises(InputError, match="model: other libraries know category codes of 0 to 16777215; column 0 has"):
        to_xgboost(replace(ensemble, cuts=cuts), tmp_path / "m.json")


def test_importing_the_exports_imports_none_of_the_libraries(monkeypatch: pytest.MonkeyPatch) -> None:
    real = builtins.__import__

    def guarded(name: str, *rest: Any, **more: Any) -> Any:
        assert name.partition(".")[0] not in ("onnx", "treelite", "xgboost", "shap")
        return real(name, *rest, **more)

    import importlib
    import sys

    import gpuboost

    monkeypatch.setattr(gpuboost, "export", gpuboost.export)  # the import replaces it; this puts it back afterwards
    for name in [name for name in sys.modules if name.startswith("gpuboost.export")]:
        monkeypatch.delitem(sys.modules, name)
    monkeypatch.setattr(builtins, "__import__", guarded)
    importlib.import_module("gpuboost.export")


def test_text_that_is_not_unicode_is_refused(tmp_path: Path) -> None:
    pytest.importorskip("onnx")
    x = np.arange(40.0)[:, None]
    model = gb.GradientBoostingClassifier(n_estimators=2, n_jobs=1).fit(
        x, np.array(["a", "\ud800"], object)[[0, 1] * 20]
    )
    with pytest.raises(gb.InputError, match="model: ONNX has text in UTF-8"):
        gb.export.to_onnx(model)
    with pytest.raises(gb.InputError, match="path: must be text that names of files can have"):
        model.save_model(tmp_path / "\ud800.json")
    model.save_model(tmp_path / "model.json")
    assert gb.load_model(tmp_path / "model.json").classes_.tolist() == ["a", "\ud800"]
