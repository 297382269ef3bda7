"""Mutants of everything the library writes: a file is refused in one line, or every later call works on it."""

from __future__ import annotations

import json
import pickle
import warnings
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from sklearn.base import clone
from support.file_predictor import scores
from support.hostile.campaign import Tally, described, is_refusal, many, no_longer_than, outcome
from support.hostile.corpus import Corpus
from support.hostile.mutants import mutants, resealed

import gpuboost as gb
from gpuboost.scoring.answers import Answer


@pytest.mark.parametrize("seed", [1])
def test_mutants_of_models(seed: int, corpus: Corpus, tally: Tally, tmp_path: Path) -> None:
    _models(corpus, tally, tmp_path, seed, each=6)


@pytest.mark.thorough
def test_many_mutants_of_models(corpus: Corpus, tally: Tally, tmp_path: Path) -> None:
    _models(corpus, tally, tmp_path, seed=2, each=many(200))


def _models(corpus: Corpus, tally: Tally, folder: Path, seed: int, each: int) -> None:
    place = folder / "mutant.json"
    for number, (kind, text) in enumerate(corpus.models.items()):
        rng = np.random.default_rng([seed, number])
        for what, changed in mutants(text, each, rng):
            place.write_bytes(changed if tally.counts.get("mutants", 0) % 2 else resealed(changed))
            tally.add("mutants")
            _judge(f"{kind}, seed {seed}: {what}", place, corpus, tally)
    tally.check()


def _judge(case: str, place: Path, corpus: Corpus, tally: Tally) -> None:
    loaded: list[Any] = []
    error = outcome(lambda: loaded.append(gb.load_model(place)))
    if error is not None:
        tally.add("refused")
        if not isinstance(error, gb.InputError):
            tally.fault(case, described(error))
        return
    tally.add("loaded")
    error = outcome(lambda: _use(loaded[0], place, corpus))
    if error is not None:
        tally.fault(case, f"after loading: {described(error)}")


def _use(model: Any, place: Path, corpus: Corpus) -> None:
    """Every later call."""
    x = _rows_for(model, corpus.x)
    predictions = model.predict(x)
    assert len(predictions) == len(x)
    for answer in model.staged_predict(x[:3]):
        assert len(answer) == min(3, len(x))
    if hasattr(model, "predict_proba"):
        assert np.allclose(model.predict_proba(x).sum(axis=1), 1.0)
    _compare(model, x, json.loads(place.read_bytes()))
    if not model.ensemble_.components:
        model.apply(x)
        model.predict_contributions(x[:5])
        model.feature_importance("cover")
    assert repr(model)
    assert model._repr_html_()
    assert model.guarantee_.kind
    again = place.with_name("again.json")
    model.save_model(again)
    assert np.array_equal(gb.load_model(again).predict(x), predictions)
    assert np.array_equal(pickle.loads(pickle.dumps(model)).predict(x), predictions)
    fresh = clone(model)
    _refit(fresh, corpus)


def _rows_for(model: Any, x: Any) -> Any:
    """Rows of as many columns as the model has."""
    d = model.n_features_in_
    if d > 1000:  # a file may say so
        return np.zeros((1, d))
    return np.ascontiguousarray(np.tile(x, (1, 1 + d // x.shape[1]))[:, :d])


def _compare(model: Any, x: Any, document: Any) -> None:
    """Scores are those of the page of the model file, up to the rounding of a sum of their terms."""
    tables = document["columns"]["categories"].values()
    if any(isinstance(category, str) for table in tables for category in table):
        return
    answers = model._answer(x[:10], lambda: Answer(np.transpose))
    for row, expected in zip(answers, scores(document, x[:10].tolist()), strict=True):
        for number, score in zip(row, expected, strict=True):
            assert abs(number - score.value) <= 1e-12 * score.size + 1e-300, (row, expected)


def _refit(model: Any, corpus: Corpus) -> None:
    """With the parameters of the file; they may not fit the data, and then the library says so."""
    labels = np.digitize(corpus.y, [0.0, 1.0]) if hasattr(model, "class_weight") else np.abs(corpus.y)
    given = {"group": corpus.group} if hasattr(model, "eval_at") else {}
    model.set_params(n_estimators=2, n_jobs=1, **({} if given else {"posterior_samples": None}))
    target = np.digitize(corpus.y, [0.0, 1.0]) if given else labels
    error = outcome(lambda: model.fit(corpus.x, target, **given))
    assert error is None or is_refusal(error), described(error)


@pytest.mark.parametrize("kind", ["regressor", "classifier", "ranker", "effects", "checkpoint"])
def test_mutants_of_the_model_to_go_on_with(kind: str, corpus: Corpus, tally: Tally, tmp_path: Path) -> None:
    _going_on(kind, corpus, tally, tmp_path, 15)


@pytest.mark.thorough
@pytest.mark.parametrize("kind", ["regressor", "classifier", "ranker", "effects", "checkpoint"])
def test_many_mutants_of_the_model_to_go_on_with(kind: str, corpus: Corpus, tally: Tally, tmp_path: Path) -> None:
    _going_on(kind, corpus, tally, tmp_path, many(200))


def _going_on(kind: str, corpus: Corpus, tally: Tally, folder: Path, number: int) -> None:
    place = folder / "mutant.json"
    for what, changed in mutants(corpus.models[kind], number, np.random.default_rng(5)):
        place.write_bytes(resealed(changed))
        tally.add("mutants")
        model, given = _like(kind, corpus)
        error = outcome(lambda model=model, given=given: model.fit(*given[0], init_model=place, **given[1]))
        if error is None:
            tally.add("went on")
            assert len(model.predict(corpus.x)) == len(corpus.x)
        elif is_refusal(error):
            tally.add("refused")
        else:
            tally.fault(what, described(error))
    tally.check()


def _like(kind: str, corpus: Corpus) -> tuple[Any, tuple[tuple[Any, Any], dict[str, Any]]]:
    """An estimator that could go on with the model of that kind, and its data."""
    few: dict[str, Any] = {"n_estimators": 1, "n_jobs": 1}
    if kind == "ranker":
        grades = np.digitize(corpus.y, [0.0, 1.0])
        return gb.GradientBoostingRanker(**few), ((corpus.x, grades), {"group": corpus.group})
    if kind == "classifier":
        labels = np.array(["no", "yes"])[(corpus.y > 0.5).astype(int)]
        return gb.GradientBoostingClassifier(**few), ((corpus.x, labels), {})
    family = gb.learners.Spline() if kind == "effects" else None
    return gb.GradientBoostingRegressor(**few, base_learner=family), ((corpus.x, corpus.y), {})


def test_mutants_of_logs(corpus: Corpus, tally: Tally, tmp_path: Path) -> None:
    _logs(corpus, tally, tmp_path, 60)


@pytest.mark.thorough
def test_many_mutants_of_logs(corpus: Corpus, tally: Tally, tmp_path: Path) -> None:
    _logs(corpus, tally, tmp_path, many(1000))


def _logs(corpus: Corpus, tally: Tally, folder: Path, each: int) -> None:
    place = folder / "log.json"
    for number, text in enumerate(corpus.logs):
        for what, changed in mutants(text, each, np.random.default_rng([9, number])):
            place.write_bytes(changed)
            tally.add("mutants")
            made: list[Any] = []
            error = outcome(lambda made=made: made.append(gb.Replay(place)))
            if error is None:
                tally.add("loaded")
                error = outcome(lambda made=made: _replay(made[0], corpus))
            if error is not None and not is_refusal(error):
                tally.fault(what, described(error))
    tally.check()


def _replay(execution: Any, corpus: Corpus) -> None:
    log = execution.log
    assert str(log)
    assert log.seconds is not None
    model = gb.GradientBoostingRegressor(n_estimators=4, max_depth=2, n_jobs=1, random_state=0, execution=execution)
    model.fit(corpus.x, corpus.y)


def test_unchanged_files_give_the_scores_of_the_documented_formula(corpus: Corpus, tmp_path: Path) -> None:
    place = tmp_path / "model.json"
    for text in corpus.models.values():
        place.write_text(text)
        with warnings.catch_warnings(action="ignore"), no_longer_than():
            _use(gb.load_model(place), place, corpus)
