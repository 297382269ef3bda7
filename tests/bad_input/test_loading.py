"""``load_model`` refuses files whose parts are well formed and would fail, or predict something else, later on."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import gpuboost as gb

Json = dict[str, Any]


@pytest.fixture(scope="module")
def additive(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A model of the effects of two categorical columns, of 3 and 5 categories."""
    rng = np.random.default_rng(0)
    x = np.column_stack([rng.integers(0, 3, 300), rng.integers(0, 5, 300)]).astype(float)
    model = gb.GradientBoostingRegressor(
        n_estimators=4, base_learner=gb.learners.CategoricalRidge(), categorical_features=[0, 1], n_jobs=1
    )
    place = tmp_path_factory.mktemp("models") / "additive.json"
    model.fit(x, x[:, 0] - x[:, 1]).save_model(place)
    return place


@pytest.fixture(scope="module")
def classifier(tmp_path_factory: pytest.TempPathFactory) -> Path:
    x = np.arange(40.0)[:, None]
    place = tmp_path_factory.mktemp("models") / "classifier.json"
    gb.GradientBoostingClassifier(n_estimators=3, n_jobs=1).fit(x, np.arange(40) > 19).save_model(place)
    return place


def changed(path: Path, change: Callable[[Json], object]) -> Path:
    document = json.loads(path.read_text())
    change(document)
    place = path.with_name("changed.json")
    place.write_text(json.dumps(document))
    return place


def test_the_files_load_as_they_are(additive: Path, classifier: Path) -> None:
    assert gb.load_model(additive).n_iter_ == 4
    assert gb.load_model(classifier).classes_.tolist() == [False, True]


@pytest.mark.parametrize("code", [-1, 5, -(2**32), 10**9, 2**62])
def test_category_codes_are_positions_in_the_columns_table(additive: Path, code: int) -> None:
    def change(document: Json) -> None:
        document["features"][1]["categories"][0] = code

    with pytest.raises(gb.InputError, match=r"features\[1\]\.categories: codes of 0 to 4, .* were expected"):
        gb.load_model(changed(additive, change))


@pytest.mark.parametrize(
    ("dtype", "values"),
    [
        ("int64", [0.2, 0.7]),
        ("bool", [2, 5]),
        ("float16", [1e9, 1e10]),
        ("float32", [1.0, 1.00000001]),
        ("float64", [2**53, 2**53 + 1]),
        ("str", ["a", "a\0"]),
        ("int64", [True, 5]),
        (["int64"], [0, 1]),
        ({}, [0, 1]),
    ],
)
def test_labels_are_those_of_the_file_to_the_last_digit(classifier: Path, dtype: object, values: list[object]) -> None:
    def change(document: Json) -> None:
        document["extra"]["classes"] = {"dtype": dtype, "values": values}

    with pytest.raises(gb.InputError, match="classes: two or more labels of one type, sorted, were expected"):
        gb.load_model(changed(classifier, change))


def test_scores_that_overflow_are_refused(classifier: Path, additive: Path) -> None:
    def huge_factor(document: Json) -> None:
        for tree in document["trees"]:
            tree["factor"], tree["value"] = 1e308, [1e10 * value for value in tree["value"]]

    def huge_coefficients(document: Json) -> None:
        for component in document["components"]:
            component["coefficients"] = [1e308] * len(component["coefficients"])

    def huge_scale(document: Json) -> None:
        document["scale"] = 1e305
        for tree in document["trees"]:
            tree["value"] = [1e10 * value for value in tree["value"]]

    for change in (huge_factor, huge_scale):
        with pytest.raises(gb.InputError, match="trees: scores that float64 can hold were expected"):
            gb.load_model(changed(classifier, change))
    with pytest.raises(gb.InputError, match="components: scores that float64 can hold were expected"):
        gb.load_model(changed(additive, huge_coefficients))


@pytest.mark.parametrize("best", [-5, 3, 10**9])
def test_the_best_iteration_is_one_of_the_model(classifier: Path, best: int) -> None:
    with pytest.raises(gb.InputError, match=r"extra\.best_iteration: 0 to 2 was expected"):
        gb.load_model(changed(classifier, lambda document: document["extra"].update(best_iteration=best)))


def test_the_state_of_a_checkpoint_is_whole(classifier: Path) -> None:
    with pytest.raises(gb.InputError, match=r"extra\.run: the entry '\w+' is missing"):
        gb.load_model(changed(classifier, lambda document: document["extra"].update(run={"seed": 1})))


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("learning_rate", -1e30),
        ("max_leaves", -2),
        ("growth", ["depthwise"]),
        ("min_child_weight", ["x"]),
        ("max_bins", 10**6),
        ("sampling", 7.0),
        ("n_estimators", -1),
        ("categorical_features", {"policy": "Langevin"}),
        ("validation_fraction", 7.0),
        ("early_stopping_rounds", "soon"),
        ("class_weight", 3),
        ("random_state", "seed"),
    ],
)
def test_parameters_are_what_an_estimator_accepts(classifier: Path, name: str, value: object) -> None:
    with pytest.raises(gb.InputError, match=f"parameters: {name}: "):
        gb.load_model(changed(classifier, lambda document: document["parameters"].update({name: value})))


@pytest.mark.parametrize("depth", [150, 900, 5_000])
def test_deep_nesting_is_refused(classifier: Path, depth: int) -> None:
    text = classifier.read_text().replace(
        '"parameters": {', '"parameters": {"a":' + "[" * depth + "1" + "]" * depth + ","
    )
    place = classifier.with_name("deep.json")
    place.write_text(text)
    with pytest.raises(gb.InputError, match="nested"):
        gb.load_model(place)


def test_deep_nesting_of_a_log_is_refused(tmp_path: Path) -> None:
    (tmp_path / "log.json").write_text("[" * 100_000)
    with pytest.raises(gb.InputError, match="is not JSON"):
        gb.Log.load(tmp_path / "log.json")


def test_a_newer_file_is_told_from_a_damaged_one(classifier: Path) -> None:
    with pytest.raises(gb.InputError, match=r"reads up to \d\. Load it with"):
        gb.load_model(changed(classifier, lambda document: document.update(version=9)))
