"""``model.predictor()`` and ``gb.load_predictor``: the bytes of the estimator, with and without kernels."""

from __future__ import annotations

import pickle
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
from scipy.sparse import csr_matrix

import gpuboost as gb
from gpuboost import predictor as predictors

SETTINGS: dict[str, Any] = {"n_estimators": 12, "n_jobs": 1, "device": "cpu", "random_state": 0}
random = np.random.default_rng(3)
X = random.normal(size=(400, 6))
X[:, 4] = random.integers(0, 40, 400)
X[:, 5] = random.integers(-3, 5, 400)
Y = X[:, 0] * X[:, 1] + np.cos(X[:, 4]) + 0.1 * random.normal(size=400)
X[random.random(X.shape) < 0.1] = np.nan
UNSEEN = np.vstack([X[:150], [[np.nan] * 6, [0.0, -0.0, 1e30, -1e30, 77.0, 2.5]]])
ODD = {"categorical_features": [4, 5]}


def _models() -> dict[str, Any]:
    regressor, classifier = gb.GradientBoostingRegressor, gb.GradientBoostingClassifier
    grades = (Y > 0.5).astype(int)
    return {
        "numbers": regressor(**SETTINGS).fit(X, Y),
        "leafwise": regressor(**SETTINGS, growth="leafwise", max_leaves=9).fit(X, Y),
        "categories": regressor(**SETTINGS, **ODD, categorical_encoding="partition").fit(X, Y),
        "target statistics": regressor(**SETTINGS, **ODD, categorical_encoding="ordered").fit(X, Y),
        "a link": regressor(**SETTINGS, loss="poisson").fit(X, np.exp(Y)),
        "shrunk in every round": regressor(**SETTINGS, langevin=gb.Langevin()).fit(X, Y),
        "no split": regressor(**SETTINGS, max_depth=1, min_split_gain=1e9).fit(X, Y),
        "two classes": classifier(**SETTINGS).fit(X, np.where(Y > 0.0, "yes", "no")),
        "four classes": classifier(**SETTINGS).fit(X, np.digitize(Y, [-1.0, 0.0, 1.0])),
        "ranking": gb.GradientBoostingRanker(**SETTINGS).fit(X, grades, group=np.arange(400) // 20),
    }


@pytest.fixture(scope="module")
def models() -> dict[str, Any]:
    return _models()


NAMES = (
    "numbers", "leafwise", "categories", "target statistics", "a link", "shrunk in every round", "no split",
    "two classes", "four classes", "ranking",
)  # fmt: skip


def _same(one: Any, model: Any, x: Any, **rounds: Any) -> None:
    for method in ("predict", "predict_proba", "decision_function"):
        assert hasattr(one, method) == hasattr(model, method)
        if hasattr(model, method):
            expected = getattr(model, method)(x, **rounds)
            found = getattr(one, method)(x)
            assert found.dtype == expected.dtype
            np.testing.assert_array_equal(found, expected)


@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize("kernels", [True, False], ids=["kernels", "NumPy"])
def test_the_bytes_of_the_estimator(
    models: dict[str, Any], name: str, kernels: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    model = models[name]
    if not kernels:
        monkeypatch.setattr(predictors, "KERNELS", "no such module")
    one = pickle.loads(pickle.dumps(model.predictor()))  # without what the first call loads
    for rows in (UNSEEN[:1], UNSEEN[-7:], UNSEEN, UNSEEN.astype(np.float32), np.asfortranarray(UNSEEN)[::2]):
        _same(one, model, rows)
    assert (one._kernels is not None) == kernels
    assert one.predict(UNSEEN[:0]).shape == (0,)


@pytest.mark.parametrize("part", [0, 5, (3, 9)])
def test_some_of_the_rounds(models: dict[str, Any], part: Any, tmp_path: Path) -> None:
    for name in ("numbers", "shrunk in every round", "four classes"):
        model, file = models[name], tmp_path / "model.json"
        model.save_model(file)
        for one in (model.predictor(n_rounds=part), gb.load_predictor(file, n_rounds=part)):
            assert one.n_rounds == (part if isinstance(part, int) else 6)
            _same(one, model, UNSEEN, n_rounds=part)


def test_a_new_process_predicts_without_numba_and_scikit_learn(models: dict[str, Any], tmp_path: Path) -> None:
    np.save(tmp_path / "x.npy", UNSEEN)
    for number, name in enumerate(NAMES):
        models[name].save_model(tmp_path / f"{number}.json")
    code = f"""
import sys
import numpy as np
import gpuboost as gb
x = np.load("x.npy")
for number in range({len(NAMES)}):
    np.save(f"{{number}}.npy", gb.load_predictor(f"{{number}}.json").predict(x))
print([name for name in ("numba", "sklearn", "scipy", "pandas") if name in sys.modules])
"""
    done = subprocess.run([sys.executable, "-c", code], cwd=tmp_path, capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"
    for number, name in enumerate(NAMES):
        np.testing.assert_array_equal(np.load(tmp_path / f"{number}.npy"), models[name].predict(UNSEEN), err_msg=name)


def test_kernels_are_loaded_once_there_is_work_for_them(
    models: dict[str, Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(predictors, "KERNELS", "no such module")
    monkeypatch.setattr(predictors, "WORK_WITHOUT_KERNELS", 3 * 12)
    model = models["numbers"]
    one = pickle.loads(pickle.dumps(model.predictor()))
    for _ in range(5):
        _same(one, model, UNSEEN[:1])
    assert one._kernels is not None
    assert one._numpy is None
    early = pickle.loads(pickle.dumps(one))
    early.warm_up()
    assert early._kernels is not None
    _same(early, model, UNSEEN)


def test_threads_share_one(models: dict[str, Any], tmp_path: Path) -> None:
    model = models["four classes"]
    model.save_model(tmp_path / "model.json")
    one, expected = gb.load_predictor(tmp_path / "model.json"), model.predict_proba(UNSEEN)
    with ThreadPoolExecutor(4) as threads:
        for row, found in enumerate(threads.map(one.predict_proba, [UNSEEN[i : i + 1] for i in range(100)])):
            np.testing.assert_array_equal(found[0], expected[row])


def test_few_rows_of_the_estimator_are_those_of_many(models: dict[str, Any]) -> None:
    for model in models.values():
        whole = model.predict(UNSEEN)
        for size in (1, 5, 9):
            parts = [model.predict(UNSEEN[i : i + size]) for i in range(0, len(UNSEEN), size)]
            np.testing.assert_array_equal(np.concatenate(parts), whole)


@pytest.mark.parametrize(
    ("x", "error", "message"),
    [
        (pd.DataFrame(UNSEEN), TypeError, "got DataFrame"),
        (csr_matrix(np.nan_to_num(UNSEEN)), TypeError, "lists of rows; got csr"),
        (np.ma.masked_invalid(UNSEEN), TypeError, "got MaskedArray"),
        (UNSEEN.astype(str), TypeError, "takes numbers; got an array of <U"),
        ([[1.0, None, 0.0, 0.0, 0.0, 0.0]], TypeError, "got an array of object"),
        ([[1.0], [2.0, 3.0]], gb.InputError, "rows must be of equal length"),
        (UNSEEN[0], gb.InputError, r"must have shape \(rows, 6\); got \(6,\)"),
        (UNSEEN[:, :5], gb.InputError, r"must have shape \(rows, 6\); got \(152, 5\)"),
        (np.full((1, 6), -np.inf), gb.InputError, "infinity"),
    ],
    ids=["frame", "sparse", "masked", "text", "objects", "ragged", "row", "narrow", "infinite"],
)
def test_what_is_no_array_of_numbers_is_refused(models: dict[str, Any], x: Any, error: Any, message: str) -> None:
    with pytest.raises(error, match=message):
        models["numbers"].predictor().predict(x)


def test_lists_and_whole_numbers_are_numbers(models: dict[str, Any]) -> None:
    model, whole = models["numbers"], np.arange(12).reshape(2, 6)
    np.testing.assert_array_equal(model.predictor().predict(whole.tolist()), model.predict(whole))
    np.testing.assert_array_equal(model.predictor().predict(whole.astype(np.int8)), model.predict(whole))


def test_models_that_need_their_estimator_are_refused(tmp_path: Path) -> None:
    model = gb.GradientBoostingRegressor(**SETTINGS)
    frame = pd.DataFrame({"size": X[:, 0], "town": pd.Categorical(np.where(X[:, 1] > 0.0, "Bonn", "Ulm"))})
    refused = {
        "text of column 'town'": model.fit(frame, Y)._saved(),
        "fitted with offsets": model.fit(X, Y, init_score=Y)._saved(),
        "models of trees": gb.GradientBoostingRegressor(**SETTINGS, base_learner=gb.learners.Linear())
        .fit(X, Y)
        ._saved(),
    }
    for message, saved in refused.items():
        with pytest.raises(gb.InputError, match=message):
            predictors.predictor_of(saved)
    model.fit(X, Y).save_model(tmp_path / "model.json")
    with pytest.raises(gb.InputError, match="n_rounds: must be None"):
        gb.load_predictor(tmp_path / "model.json", n_rounds=13)
    with pytest.raises(FileNotFoundError):
        gb.load_predictor(tmp_path / "none.json")


def test_ids_beyond_the_floats_are_the_estimators_categories() -> None:
    ids = 2**53 + np.arange(400)[:, None] % 4
    model = gb.GradientBoostingRegressor(**SETTINGS, categorical_features=[0]).fit(ids, ids[:, 0] % 2)
    predicted = model.predict(ids)
    assert predicted[0] != predicted[1]
    np.testing.assert_array_equal(model.predictor().predict(ids), predicted)
    np.testing.assert_array_equal(model.predictor().predict(ids.tolist()), predicted)
