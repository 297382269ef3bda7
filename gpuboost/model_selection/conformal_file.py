"""The JSON file of a conformal predictor: its models, as their model files have them, and the calibration scores."""

from __future__ import annotations

import json
import os
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from gpuboost.api.loading import loads, to_dict
from gpuboost.errors import InputError
from gpuboost.model import strict_json
from gpuboost.model.file import CONFORMAL
from gpuboost.model_selection.conformal_methods import CLASSIFICATION, REGRESSION, check_models, method_of
from gpuboost.model_selection.conformal_scores import CalibrationScores
from gpuboost.posterior import check_coverage
from gpuboost.storage import checked_path, write

_VERSION = 1
_KEYS = ("format", "version", "method", "coverage", "scores", "weights", "models")


@dataclass(frozen=True, slots=True)
class SavedPredictor:
    """The content of a file."""

    models: tuple[Any, ...]
    method: str
    coverage: float
    calibration: CalibrationScores


def save(saved: SavedPredictor, path: str | os.PathLike[str]) -> None:
    """Write the file. Raises TypeError or InputError as ``gb.dumps``, for each model."""
    content = {
        "format": CONFORMAL,
        "version": _VERSION,
        "method": saved.method,
        "coverage": saved.coverage,
        "scores": saved.calibration.scores.tolist(),
        "weights": saved.calibration.weight.tolist(),
        "models": [to_dict(model) for model in saved.models],
    }
    write(path, json.dumps(content, allow_nan=False).encode())


def read(path: str | os.PathLike[str]) -> SavedPredictor:
    """Read a file that ``save`` wrote. Raises InputError if the file is damaged or another."""
    checked_path(path)
    try:
        return _from_json(strict_json.parse(Path(path).read_text("utf-8")))
    except UnicodeDecodeError as error:
        raise InputError(f"conformal file {os.fspath(path)!r}: this is not text ({error.reason}).") from None
    except InputError as error:
        why = str(error).removeprefix("model file: ")
        raise InputError(f"conformal file {os.fspath(path)!r}: {why}") from None


def _from_json(content: Any) -> SavedPredictor:
    if not isinstance(content, dict) or content.get("format") != CONFORMAL:
        strict_json.refuse("", f"the format {CONFORMAL!r} was expected", advice="gb.load_model reads model files.")
    if content.get("version") != _VERSION:
        strict_json.refuse("version", f"{_VERSION} was expected", content.get("version"), "Update gpuboost.")
    entries = strict_json.record(content, "", _KEYS)
    models = tuple(loads(json.dumps(entry)) for entry in strict_json.items(entries["models"], "models"))
    check_models(models)
    method, known = entries["method"], CLASSIFICATION if hasattr(models[0], "classes_") else REGRESSION
    if method_of(models, method, known) != method:
        strict_json.refuse("method", f"one of {', '.join(known)} was expected", method)
    coverage = strict_json.number(entries["coverage"], "coverage")
    check_coverage(coverage)
    return SavedPredictor(models, method, coverage, _calibration(entries))


def _calibration(entries: dict[str, Any]) -> CalibrationScores:
    scores, weight = (
        np.array([strict_json.number(x, name) for x in strict_json.items(entries[name], name)])
        for name in ("scores", "weights")
    )
    if not len(scores) or scores.shape != weight.shape or (np.diff(scores) < 0.0).any():
        strict_json.refuse("scores", "increasing scores with as many weights were expected")
    return CalibrationScores.of(scores, weight)
