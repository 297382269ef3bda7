"""Pickles and deep imports of version 0.1.0 go on working although modules have moved."""

from __future__ import annotations

import base64
import json
import pickle
import subprocess
import sys
from importlib import import_module
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from gpuboost._imports.moved import MOVED

OLD: dict[str, Any] = json.loads((Path(__file__).parents[1] / "data" / "pickles-0.1.0.json").read_text())


def unpickled(text: str) -> Any:
    return pickle.loads(base64.b64decode(text))


@pytest.mark.parametrize("name", OLD["models"])
def test_a_model_pickled_by_0_1_0_predicts_the_same(name: str) -> None:
    model = unpickled(OLD["models"][name]["pickle"])
    assert np.array_equal(model.predict(np.array(OLD["probe"])), OLD["models"][name]["predict"])
    assert str(model.fit_report_)
    assert model.guarantee_.kind


@pytest.mark.parametrize("name", OLD["records"])
def test_a_record_pickled_by_0_1_0_loads(name: str) -> None:
    record = unpickled(OLD["records"][name])
    assert repr(record)
    assert pickle.loads(pickle.dumps(record)) is not None


@pytest.mark.parametrize("name", MOVED)
def test_an_old_module_name_finds_the_module(name: str) -> None:
    module = import_module(name)
    assert module is import_module(MOVED[name])
    assert module.__name__ == MOVED[name]
    assert module.__spec__ is not None
    assert module.__spec__.name == MOVED[name]


def test_an_old_name_is_found_in_a_new_process() -> None:
    code = "from gpuboost.backends.cuda import gpus; import gpuboost.backends.odds; print(gpus.__name__)"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == MOVED["gpuboost.backends.cuda.gpus"]


def test_other_names_are_as_unknown_as_ever() -> None:
    with pytest.raises(ModuleNotFoundError, match=r"gpuboost\.api\.nothing"):
        import_module("gpuboost.api.nothing")
