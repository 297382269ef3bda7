"""A model file loads, and every later call works and gives the numbers of docs/model_file.md; or it is refused.

Files are drawn from a grammar of the format, and changed at random. ``support.file_predictor`` has the formula of the
page in plain Python.
"""

from __future__ import annotations

import json
import math
import pickle
import warnings
from collections import Counter
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from sklearn.base import clone
from support.examples import daily
from support.file_predictor import Score, scores
from support.hostile.model_grammar import Grammar, mutated

import gpuboost as gb
from gpuboost.scoring.answers import Answer

FEW, CASES, MANY = 60, 200, 2_000


@pytest.fixture(autouse=True)
def quiet() -> Any:
    """Names of columns are missing in some rows, and scores overflow in exp: neither matters here."""
    with warnings.catch_warnings(action="ignore"), np.errstate(all="ignore"):
        yield


@pytest.mark.parametrize("seeds", daily([range(FEW), range(FEW, CASES)], 1), ids=str)
def test_files_of_the_grammar_load_and_predict_what_they_say(seeds: range, tmp_path: Path) -> None:
    for seed in seeds:
        _check_valid(seed, tmp_path)


@pytest.mark.slow
@pytest.mark.thorough
def test_many_files_of_the_grammar(tmp_path: Path) -> None:
    for seed in range(CASES, CASES + MANY):
        _check_valid(seed, tmp_path)


def test_changed_files_are_refused_or_predict_what_they_say(tmp_path: Path) -> None:
    seen = _check_changed(range(CASES), tmp_path)
    assert seen["loads"] >= CASES / 20, "changes that keep a file valid"
    assert seen["refused"] >= CASES / 3


@pytest.mark.slow
def test_many_changed_files(tmp_path: Path) -> None:
    assert _check_changed(range(CASES, CASES + MANY), tmp_path).total() == MANY


def _check_valid(seed: int, folder: Path) -> None:
    grammar = Grammar(seed)
    document = grammar.document()
    try:
        use(document, grammar, folder)
    except Exception as error:
        error.add_note(f"the file of seed {seed}: {json.dumps(document)[:3000]}")
        raise


def _check_changed(seeds: range, folder: Path) -> Counter[str]:
    """Counts of files that load and of those that are refused."""
    seen: Counter[str] = Counter()
    for seed in seeds:
        grammar = Grammar(seed)
        document = mutated(grammar.document(), seed)
        try:
            use(document, grammar, folder)
            seen["loads"] += 1
        except RefusedError:
            seen["refused"] += 1
        except Exception as error:
            error.add_note(f"the changed file of seed {seed}: {json.dumps(document)[:3000]}")
            raise
    return seen


class RefusedError(Exception):
    """``load_model`` raised InputError."""


def use(document: Any, grammar: Grammar, folder: Path) -> None:
    """Load the file, make every call, and compare with the formula. Raises RefusedError if it does not load."""
    place = folder / "model.json"
    place.write_text(json.dumps(document))
    try:
        model = gb.load_model(place)
    except gb.InputError as error:
        raise RefusedError(str(error)) from None
    rows = grammar.rows(document)
    x = np.array(rows, dtype=object if document["columns"]["categories"] else np.float64)
    expected = scores(document, rows)
    compare(raw_scores(model, x), expected)
    check_predictions(model, x, expected)
    for n_rounds, staged in enumerate(model.staged_predict(x), start=1):
        assert len(staged) == len(x)
        if identity(model):
            compare(np.asarray(staged)[:, None], scores(document, rows, n_rounds))
    if model.ensemble_.components:
        with pytest.raises(gb.InputError, match="models of trees"):
            model.apply(x)
    else:
        assert model.apply(x).shape == (len(x), len(document.get("trees", ())))
        check_contributions(model, x, expected)
        model.feature_importance("mean_cover")
    again = folder / "again.json"
    model.save_model(again)
    assert np.array_equal(raw_scores(gb.load_model(again), x), raw_scores(model, x))
    assert np.array_equal(raw_scores(pickle.loads(pickle.dumps(model)), x), raw_scores(model, x))
    assert repr(clone(model))
    assert model.guarantee_.kind


def raw_scores(model: Any, x: Any) -> Any:
    """(n, k)"""
    return model._answer(x, lambda: Answer(lambda scores: scores.T.copy()))


def compare(seen: Any, expected: list[list[Score]]) -> None:
    """Equal up to the rounding of a sum of the terms."""
    for row, (numbers, right) in enumerate(zip(seen, expected, strict=True)):
        for number, score in zip(numbers, right, strict=True):
            assert abs(float(number) - score.value) <= tolerance(score), (row, numbers, right)


def tolerance(score: Score) -> float:
    return 1e-12 * score.size + 1e-300


def identity(model: Any) -> bool:
    """True if predictions are the scores."""
    return model.loss_.name in ("squared_error", "absolute_error", "huber", "quantile", "lambdamart")


def check_predictions(model: Any, x: Any, expected: list[list[Score]]) -> None:
    predictions = model.predict(x)
    assert len(predictions) == len(x)
    if identity(model):
        compare(predictions[:, None], expected)
    if hasattr(model, "predict_proba"):
        p = model.predict_proba(x)
        assert p.shape == (len(x), len(model.classes_))
        if model.loss_.name == "per_output":
            positive = [[score.value > 0.0 for score in row] for row in expected]
            unclear = [[abs(score.value) <= 1e-9 * score.size for score in row] for row in expected]
            assert ((predictions == positive) | np.array(unclear)).all()
            assert ((p >= 0.0) & (p <= 1.0)).all()
            return
        assert np.allclose(p.sum(axis=1), 1.0)
        assert set(predictions.tolist()) <= set(model.classes_.tolist())
        if model.loss_.name == "logistic":
            logistic = [1.0 / (1.0 + math.exp(-max(-700.0, min(700.0, score.value)))) for (score,) in expected]
            assert np.allclose(p[:, 1], logistic, rtol=1e-6, atol=1e-9)


def check_contributions(model: Any, x: Any, expected: list[list[Score]]) -> None:
    """They sum to the score."""
    sums = model.predict_contributions(x).sum(axis=-1).reshape(len(x), -1)
    largest = max(abs(tree.value * factor).max() for tree, factor in parts(model)) if parts(model) else 0.0
    for row in range(len(x)):
        for number, score in zip(sums[row], expected[row], strict=True):
            assert abs(number - score.value) <= 1e-9 * (score.size + len(parts(model)) * largest) + 1e-300


def parts(model: Any) -> list[Any]:
    return list(zip(model.ensemble_.trees, model.ensemble_.factors, strict=True))
