"""Targets far from 0, numbers beyond float64, too many threads, damaged logs, callbacks that write to the model."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import gpuboost as gb
from gpuboost.data.formats.files import read_table
from gpuboost.losses import Poisson, SquaredError

HUGE = 10**400
X = np.random.default_rng(0).normal(size=(300, 3))
Y = 3.0 * X[:, 0] + 0.1 * np.random.default_rng(1).normal(size=300)


def regressor(**params: Any) -> gb.GradientBoostingRegressor:
    return gb.GradientBoostingRegressor(**{"n_estimators": 2, "n_jobs": 1, **params})


def explained(y: np.ndarray, predictions: np.ndarray) -> float:
    """R^2."""
    return float(1.0 - np.sum((predictions - y) ** 2) / np.sum((y - y.mean()) ** 2))


@pytest.mark.parametrize(("offset", "least"), [(0.0, 0.99), (1e10, 0.99), (1e12, 0.99), (1e15, 0.95)])
def test_a_target_far_from_0_is_learned_as_well_as_float64_allows(offset: float, least: float) -> None:
    y = Y + offset
    assert explained(y, regressor(n_estimators=100).fit(X, y).predict(X)) > least


@pytest.mark.parametrize("value", [3.7, 0.1, 16_777_217.0, 123_456_789.0, 1e15 + 1.0, -1e-300])
@pytest.mark.parametrize("loss", ["squared_error", "absolute_error", "huber"])
def test_a_constant_target_is_predicted_exactly(loss: str, value: float) -> None:
    model = regressor(loss=loss).fit(X, np.full(300, value), sample_weight=np.linspace(0.1, 2.0, 300))
    assert set(model.predict(X)) == {value}


def test_the_start_of_an_ordinary_target_is_rounded_as_ever() -> None:
    y = Y + 100.0
    assert SquaredError().start(y, np.ones(300))[0] == np.float32(y.mean())
    assert Poisson().start(np.abs(y), np.ones(300))[0] == np.float32(np.log(np.abs(y).mean()))


@given(st.floats(-1e20, 1e20), st.floats(0.0, 1e6), st.integers(1, 5))
def test_a_start_lies_within_the_target_and_counts_weights_as_rows(mean: float, spread: float, times: int) -> None:
    y = mean + spread * Y[:20]
    (start,) = SquaredError().start(y, np.full(20, float(times)))
    slack = 2.0**-23 * abs(mean)
    assert y.min() - slack <= start <= y.max() + slack
    assert SquaredError().start(np.repeat(y, times), np.ones(20 * times))[0] == start


@pytest.mark.parametrize(
    "name",
    [
        *("learning_rate", "min_child_weight", "reg_lambda", "min_split_gain", "random_strength"),
        *("n_estimators", "max_depth", "max_leaves", "validation_fraction", "n_jobs"),
    ],
)
def test_numbers_beyond_float64_are_refused_by_name(name: str) -> None:
    with pytest.raises(gb.RecipeError, match=f"^{name}: .*an integer of 1329 bits"):
        regressor(**{name: HUGE}).fit(X, Y)


REFUSED: dict[str, tuple[Callable[[], object], str]] = {
    "threads": (lambda: regressor(n_jobs=10**5).fit(X, Y), "n_jobs: must be at most 4096 threads; got 100000"),
    "threads from above": (lambda: regressor(n_jobs=-(10**5)).fit(X, Y), "n_jobs: must be at most 4096"),
    "threads of a Dataset": (lambda: gb.Dataset(X, Y, n_jobs=10**9), "n_jobs: must be at most 4096"),
    "weights": (lambda: regressor().fit(X, Y, sample_weight=np.full(300, 1e308)), "sample_weight: .*finite sum"),
    "complex weights": (lambda: regressor().fit(X, Y, sample_weight=np.ones(300) + 1j), "sample_weight: must hold"),
    "complex target": (lambda: regressor().fit(X, Y + 1j), "y: must hold real numbers; got complex128"),
    "huge target": (lambda: regressor().fit(X, [HUGE, *Y.tolist()[1:]]), "y: must hold numbers"),
    "class weights": (
        lambda: gb.GradientBoostingClassifier(class_weight={False: "a"}).fit(X, Y > 0),
        "class_weight: weights must be finite",
    ),
    "folds of text": (lambda: gb.cv(regressor(), X, Y, folds="x"), "folds: must be an int, a splitter"),
    "more folds than rows": (lambda: gb.cv(regressor(), X, Y, folds=301), "folds: each needs one of the 300 rows"),
    "unfitted": (lambda: regressor().fit(X, Y, init_model=regressor()), "init_model: must be fitted"),
    "eval set": (lambda: regressor().fit(X, Y, eval_set={3: (X, Y)}), "eval_set: names must be text; got 3"),
    "no row": (lambda: regressor(validation_fraction=1e-300).fit(X, Y), "validation_fraction: 1e-300 of 300 is no row"),
    "answer": (
        lambda: regressor(callbacks=[lambda _: "stop"]).fit(X, Y),
        "callbacks: a callback returns True to stop, else False or None; .* returned 'stop'",
    ),
    "end of an iterator": (
        lambda: regressor(callbacks=[lambda _: next(iter(()))]).fit(X, Y),
        r"callbacks: a callback returns True to stop, else False or None; .* raised StopIteration\(\)",
    ),
    "no place": (
        lambda: gb.GradientBoostingRanker(eval_at=[]).fit(X, np.zeros(300), group=[300]),
        "eval_at: needs one place or more",
    ),
    "infinite query": (
        lambda: gb.GradientBoostingRanker().fit(X, np.zeros(300), group=np.full(300, np.inf)),
        "group: a query id is text or a finite number; row 0 holds",
    ),
    "objects": (
        lambda: gb.GradientBoostingRanker().fit(X, np.zeros(300), group=np.array([object()] * 300)),
        "group: a query id is text or a finite number; row 0 holds a object",
    ),
}


@pytest.mark.parametrize("case", REFUSED)
def test_wrong_arguments_are_refused_by_name(case: str) -> None:
    call, message = REFUSED[case]
    with pytest.raises((gb.InputError, gb.RecipeError), match=message):
        call()


@pytest.mark.parametrize("path", [None, 3, "", "a\0b"])
def test_a_path_is_text_or_a_path(path: Any) -> None:
    model = regressor().fit(X, Y)
    for call in (model.save_model, gb.load_model, gb.callbacks.Checkpoint, gb.Log.load):
        with pytest.raises(gb.InputError, match=r"^path: must"):
            call(path)


def test_a_callback_cannot_write_to_the_model() -> None:
    def spoil(record: Any) -> None:
        for array in (record.ensemble.trees[-1].value, record.ensemble.trees[0].nodes.feature):
            with pytest.raises(ValueError, match="read-only"):
                array[:] = 7

    watched = regressor(n_estimators=3, callbacks=[spoil]).fit(X, Y)
    assert np.array_equal(watched.predict(X), regressor(n_estimators=3).fit(X, Y).predict(X))


@pytest.mark.parametrize("index", [2**31 - 2, 99_999_999_999_999])
def test_a_libsvm_index_that_stands_for_too_many_columns(index: int, tmp_path: Path) -> None:
    place = tmp_path / "rows.svm"
    place.write_text(f"1 0:1\n0 {index}:1\n" * 20)
    with pytest.raises(gb.InputError, match=f"line 2: indices must be below 16,777,216; found {index}"):
        read_table(place, None)


@pytest.mark.parametrize(
    ("name", "value"),
    [
        *(("ticket", -1), ("ticket", 2**70), ("worker", -2), ("share", -3.0), ("share", 1.5)),
        *(("began", float("nan")), ("outcome", "x"), ("outcome", "dropped")),
    ],
)
def test_a_log_holds_what_a_run_writes(name: str, value: object) -> None:
    record = regressor(execution=gb.SimulatedWorkers(2)).fit(X, Y).log_.to_json()
    record["lines"][0][record["fields"].index(name)] = value
    with pytest.raises(gb.InputError, match=f"log: line 0: {name}: "):
        gb.Log.from_json(record)


def test_a_log_has_workers_and_no_line_twice(tmp_path: Path) -> None:
    record = regressor(execution=gb.SimulatedWorkers(2)).fit(X, Y).log_.to_json()
    with pytest.raises(gb.InputError, match="log: workers: must be 1 or more"):
        gb.Log.from_json(record | {"workers": -3})
    with pytest.raises(gb.InputError, match=r"log: line 2: ticket: .* is that of an earlier line"):
        gb.Log.from_json(record | {"lines": [*record["lines"][:2], record["lines"][0]]})
    assert len(gb.Log.from_json(json.loads(json.dumps(record)))) >= 2


@pytest.mark.slow
def test_contributions_of_a_tree_that_is_far_too_deep(tmp_path: Path) -> None:
    """A valid file: 20,000 splits, one below the other."""
    splits = 20_000
    place = tmp_path / "model.json"
    regressor(n_estimators=1).fit(X, Y).save_model(place)
    document = json.loads(place.read_text())
    inner = [1, 0] * splits + [0]
    zeros = [0] * len(inner)
    document["trees"] = [
        {
            **{"output": 0, "version": 0, "factor": 0.1, "bin": zeros, "missing_left": zeros, "sets": []},
            **{"cover": [1.0] * len(inner), "count": [1] * len(inner), "gain": [float(i) for i in inner]},
            **{"feature": [i - 1 for i in inner], "value": [0.0 if i else 0.5 for i in inner]},
            **{"left": [(n + 1) * i for n, i in enumerate(inner)], "right": [(n + 2) * i for n, i in enumerate(inner)]},
        }
    ]
    place.write_text(json.dumps(document))
    model = gb.load_model(place)
    assert np.isfinite(model.predict(X)).all()
    with pytest.raises(gb.InputError, match="predict_interactions: a tree of 20,001 leaves is too deep"):
        model.predict_contributions(X)


@pytest.mark.slow
def test_a_numba_that_compiles_nothing_is_named() -> None:
    code = "import os; os.environ['NUMBA_DISABLE_JIT'] = '1'; import gpuboost as gb"
    code += "; gb.GradientBoostingRegressor().fit([[0.0], [1.0]], [0.0, 1.0])"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert "DeviceError: NUMBA_DISABLE_JIT: gpuboost computes in kernels that numba compiles" in done.stderr


@pytest.mark.slow
def test_the_command_line_takes_the_names_of_the_parameters_and_a_reader_that_leaves(tmp_path: Path) -> None:
    table = np.column_stack([X, Y])
    np.savetxt(tmp_path / "rows.csv", table, delimiter=",", header="a,b,c,t", comments="")
    command = [sys.executable, "-c", "import sys; from gpuboost.cli import main; sys.exit(main())"]
    options = ["train", "rows.csv", "--target", "t", "--quiet", "--model", "m.json", "--n-estimators", "1"]
    options += ["--n-jobs", "1", "--random-state", "3"]
    assert subprocess.run([*command, *options], cwd=tmp_path, check=False).returncode == 0
    with subprocess.Popen([*command, "info"], stdout=subprocess.PIPE, stderr=subprocess.PIPE) as info:
        assert info.stdout is not None
        info.stdout.close()
        assert info.wait() == 0
