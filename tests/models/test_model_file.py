"""Save and load is the identity: of bytes, of arrays and of predictions."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from dataclasses import fields
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from support.examples import examples
from support.strategies import Array, probing_rows, random_ensemble

from gpuboost.backends.prediction import predictor
from gpuboost.errors import InputError
from gpuboost.model import file
from gpuboost.types import Cuts, Ensemble, FittedTree, Nodes

PARTS = ({"name": "squared"}, {"names": ["a", "b\u00e9"]}, {"learning_rate": 0.1, "max_depth": None}, {"best": 3})


def assert_equal(left: object, right: object) -> None:
    """The same arrays, dtypes included, all the way down."""
    assert type(left) is type(right)
    if isinstance(left, np.ndarray):
        assert isinstance(right, np.ndarray)
        assert left.dtype == right.dtype
        np.testing.assert_array_equal(left, right)
    elif isinstance(left, (Ensemble, Cuts, FittedTree, Nodes)):
        for field in fields(left):
            assert_equal(getattr(left, field.name), getattr(right, field.name))
    elif isinstance(left, tuple):
        assert isinstance(right, tuple)
        for a, b in zip(left, right, strict=True):
            assert_equal(a, b)
    else:
        assert left == right


def predicted(ensemble: Ensemble, x: Array) -> Array:
    out = np.empty((ensemble.n_outputs, len(x)))
    predictor.predict(predictor.ForestPredictor.of(ensemble), x, 0, len(x), out)
    return out


@settings(max_examples=examples(25))
@given(
    seed=st.integers(0, 10_000),
    k=st.sampled_from([1, 4]),
    rounds=st.sampled_from([0, 1, 5]),
    categorical=st.sampled_from([0.0, 0.5, 1.0]),
    scale=st.sampled_from([1.0, 0.37]),
)
def test_round_trip(seed: int, k: int, rounds: int, categorical: float, scale: float) -> None:
    ensemble = random_ensemble(seed, rounds=rounds, n_outputs=k, categorical=categorical, scale=scale, max_leaves=40)
    text = file.to_json(ensemble, *PARTS)
    record = file.from_json(text)
    assert_equal(record.ensemble, ensemble)
    assert (record.loss, record.columns, record.parameters, record.extra) == PARTS
    assert file.to_json(record.ensemble, *PARTS) == text
    x = probing_rows(ensemble, 80, seed)
    np.testing.assert_array_equal(predicted(record.ensemble, x), predicted(ensemble, x))


def test_text_is_ascii_lines_in_a_fixed_order() -> None:
    text = file.to_json(random_ensemble(1, n_columns=3, rounds=2, categorical=0.0), *PARTS)
    assert text.isascii()
    assert text.endswith("\n}\n")
    found = json.loads(text)
    assert list(found) == list(file.KEYS)
    assert len(text.splitlines()) == 2 + len(file.KEYS) + (3 + 1) + (2 + 1)
    shuffled = {"max_depth": None, "learning_rate": 0.1}
    assert text == file.to_json(
        random_ensemble(1, n_columns=3, rounds=2, categorical=0.0), PARTS[0], PARTS[1], shuffled, PARTS[3]
    )


def test_bytes_do_not_depend_on_the_process() -> None:
    ensemble = "random_ensemble(9, rounds=3, categorical=0.5)"
    code = (
        f"import sys; sys.path.insert(0, {str(Path(__file__).parents[1])!r})\n"
        f"from support.strategies import random_ensemble\nfrom gpuboost.model import file\n"
        f"sys.stdout.write(file.to_json({ensemble}, {{}}, {{'b': 1, 'a': 2}}, {{}}, {{}}))"
    )
    outputs = {
        subprocess.run(
            [sys.executable, "-c", code], env={**os.environ, "PYTHONHASHSEED": seed}, capture_output=True, check=True
        ).stdout
        for seed in ("1", "2")
    }
    here = file.to_json(random_ensemble(9, rounds=3, categorical=0.5), {}, {"a": 2, "b": 1}, {}, {})
    assert outputs == {here.encode()}


def test_extreme_numbers_survive() -> None:
    thresholds = np.array([-1.7976931348623157e308, -5e-324, -0.0, 5e-324, 0.1, 1.7976931348623157e308])
    cuts = Cuts((thresholds,), (None,))
    codes = Cuts((np.empty(0),), (np.array([-(2**63), 2**63 - 1, 0]),))
    for held in (cuts, codes):
        ensemble = Ensemble(np.array([-0.0, 1e-310]), held)
        assert_equal(file.from_json(file.to_json(ensemble, {}, {}, {}, {})).ensemble, ensemble)
    again = file.from_json(file.to_json(Ensemble(np.array([-0.0]), cuts), {}, {}, {}, {})).ensemble
    assert np.signbit(again.bias[0])
    assert np.signbit(again.cuts.thresholds[0][2])


def test_save_and_load(tmp_path: Path) -> None:
    text = file.to_json(random_ensemble(2), *PARTS)
    place = tmp_path / "model.json"
    file.save(place, text)
    file.save(str(place), text)
    assert place.read_text(encoding="ascii") == text
    assert [entry.name for entry in tmp_path.iterdir()] == ["model.json"]
    assert_equal(file.load(place).ensemble, random_ensemble(2))
    with open(tmp_path / "other", "w", encoding="ascii"):
        assert (tmp_path / "other").stat().st_mode == place.stat().st_mode


def test_a_failed_save_leaves_the_old_file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    place = tmp_path / "model.json"
    file.save(place, "old")

    def full(_: int) -> None:
        raise OSError("no space left on device")

    monkeypatch.setattr(os, "fsync", full)
    with pytest.raises(OSError, match="no space left"):
        file.save(place, "new")
    assert place.read_text(encoding="ascii") == "old"
    assert [entry.name for entry in tmp_path.iterdir()] == ["model.json"]


def test_a_folder_that_is_not_there_is_named(tmp_path: Path) -> None:
    with pytest.raises(FileNotFoundError, match=r"nowhere'$"):
        file.save(tmp_path / "nowhere" / "model.json", "{}")


def test_a_place_that_cannot_be_written_is_the_one_that_is_named(tmp_path: Path) -> None:
    with pytest.raises(IsADirectoryError) as of_a_folder:
        file.save(tmp_path, "{}")
    assert of_a_folder.value.filename == str(tmp_path)
    place = tmp_path / ("m" * 250 + ".json")  # the file beside it has too long a name
    with pytest.raises(OSError) as too_long:  # noqa: PT011, systems differ in their words
        file.save(place, "{}")
    assert too_long.value.filename == str(place)
    assert not list(tmp_path.iterdir())
    with pytest.raises(FileNotFoundError, match=r"absent\.json"):
        file.load(tmp_path / "absent.json")


@pytest.mark.parametrize("bad", [float("nan"), float("inf"), {1, 2}, np.float32(0.5), b"bytes"])
def test_what_json_cannot_hold_is_refused(bad: object) -> None:
    with pytest.raises(InputError, match="parameters: a model file holds finite numbers"):
        file.to_json(random_ensemble(3), {}, {}, {"a": bad}, {})


def test_a_model_that_is_not_finite_is_refused() -> None:
    ensemble = random_ensemble(3)
    with pytest.raises(InputError, match="bias"):
        file.to_json(Ensemble(np.array([np.nan]), ensemble.cuts), {}, {}, {}, {})
    with pytest.raises(InputError, match="trees"):
        file.to_json(Ensemble(ensemble.bias, ensemble.cuts, ensemble.trees[:1], (np.inf,)), {}, {}, {}, {})


def test_the_documented_example_is_the_format() -> None:
    page = (Path(__file__).parents[2] / "docs" / "model_file.md").read_text(encoding="utf-8")
    example = page.split("```json\n")[1].split("```")[0]
    record = file.from_json(example)
    again = file.to_json(record.ensemble, record.loss, record.columns, record.parameters, record.extra)
    assert again == example
    x = np.array([[1.5, 0.0], [0.0, 30.0], [np.nan, 20.0], [2.0, 10.0]])
    np.testing.assert_array_equal(predicted(record.ensemble, x)[0], 0.25 + 0.1 * np.array([0.3, 0.3, -0.2, 0.1]))
