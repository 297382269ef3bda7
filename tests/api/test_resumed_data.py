"""An interrupted fit goes on with its own X, however that is held."""

from __future__ import annotations

import json
import pickle
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
from scipy.sparse import csc_matrix, csr_matrix

import gpuboost as gb
from gpuboost.training.checkpoint import fingerprint_beside_values

rng = np.random.default_rng(0)
X = rng.integers(-8, 8, (60, 3)) / 4.0
X[3, 1] = np.nan
Y = np.nan_to_num(X).sum(axis=1)
FEW: dict[str, Any] = {"n_estimators": 3, "max_depth": 2, "n_jobs": 1, "random_state": 0}


def begun(x: Any, path: Path) -> None:
    gb.GradientBoostingRegressor(callbacks=[gb.callbacks.Checkpoint(path)], **FEW).fit(x, Y)


def resumed(x: Any, path: Path) -> gb.GradientBoostingRegressor:
    return gb.GradientBoostingRegressor(**FEW | {"n_estimators": 5}).fit(x, Y, resume_from=path)


def changed(x: Any) -> Any:
    other = x.copy()
    other[7, 2] += 0.25
    return other


def test_another_x_is_refused_and_the_same_in_another_form_is_not(tmp_path: Path) -> None:
    path = tmp_path / "run.json"
    mapped = np.memmap(tmp_path / "x", np.float64, "w+", shape=X.shape)
    mapped[:] = X
    begun(X, path)
    whole = gb.GradientBoostingRegressor(**FEW | {"n_estimators": 5}).fit(X, Y)
    for same in (X.astype(np.float32), np.asfortranarray(X), mapped, pd.DataFrame(X).values, gb.Dataset(X, Y)):
        given = (same,) if isinstance(same, gb.Dataset) else (same, Y)
        model = gb.GradientBoostingRegressor(**FEW | {"n_estimators": 5}).fit(*given, resume_from=path)
        assert np.array_equal(model.predict(X), whole.predict(X))
    with pytest.raises(gb.InputError, match=r"resume_from: these are not the data.*checksum of X: \d+ then, \d+ now"):
        resumed(changed(X), path)


def test_sparse_rows_and_frames_with_categories(tmp_path: Path) -> None:
    path = tmp_path / "run.json"
    sparse = csr_matrix(np.nan_to_num(X))
    begun(sparse, path)
    resumed(csc_matrix(sparse), path)
    with pytest.raises(gb.InputError, match="checksum of X"):
        resumed(sparse * 2.0, path)
    frame = pd.DataFrame({"a": X[:, 0], "kind": pd.Categorical(np.where(X[:, 2] > 0, "up", "down"))})
    begun(frame, path)
    resumed(frame, path)
    with pytest.raises(gb.InputError, match="checksum of X"):
        resumed(frame.assign(kind=frame["kind"].to_numpy()[::-1]), path)


def test_a_checkpoint_without_a_checksum_of_x_is_resumed(tmp_path: Path) -> None:
    path = tmp_path / "run.json"
    begun(X, path)
    content = json.loads(path.read_text())
    run = content["extra"]["run"]
    run["data"][2] %= 2**32
    del run["checksum"]
    path.write_text(json.dumps(content))
    whole = gb.GradientBoostingRegressor(**FEW | {"n_estimators": 5}).fit(X, Y)
    assert np.array_equal(resumed(X, path).predict(X), whole.predict(X))


def test_checksum_of_equal_numbers() -> None:
    plain = (60, 3, 17)
    zeros, signed = np.zeros((5, 2)), np.full((5, 2), -0.0)
    assert fingerprint_beside_values(plain, zeros) == fingerprint_beside_values(plain, signed)
    assert fingerprint_beside_values(plain, zeros) != fingerprint_beside_values(plain, zeros + 1e-300)
    missing = np.full((5, 2), np.nan)
    assert fingerprint_beside_values(plain, missing) == fingerprint_beside_values(plain, -missing)
    many = np.arange(300_000.0)[:, None]
    assert fingerprint_beside_values(plain, many, threads=1) == fingerprint_beside_values(plain, many, threads=3)
    assert fingerprint_beside_values(plain, many) != fingerprint_beside_values(plain, np.roll(many, 2**18, axis=0))
    assert fingerprint_beside_values(plain, X)[2] < 2**62
    assert fingerprint_beside_values(plain, object()) == plain


def test_an_estimator_with_a_checkpoint_is_pickled_after_the_fit(tmp_path: Path) -> None:
    model = gb.GradientBoostingRegressor(callbacks=[gb.callbacks.Checkpoint(tmp_path / "run.json")], **FEW).fit(X, Y)
    again = pickle.loads(pickle.dumps(model))
    assert np.array_equal(again.predict(X), model.predict(X))
    assert again.fit(X, Y).n_iter_ == 3
