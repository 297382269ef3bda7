"""Dataset files hold offsets of scores."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

import gpuboost as gb


@pytest.mark.parametrize("k", [1, 3])
def test_offsets_are_saved(tmp_path: Path, k: int) -> None:
    rng = np.random.default_rng(0)
    X, y = rng.normal(size=(60, 3)), rng.integers(0, 2 if k == 1 else k, 60)
    offset = rng.normal(size=60) if k == 1 else rng.normal(size=(60, k))
    data = gb.Dataset(X, y, init_score=offset)
    data.save(tmp_path / "data.gpuboost")
    loaded = gb.Dataset.load(tmp_path / "data.gpuboost")
    assert loaded.init_score is not None
    assert np.array_equal(loaded.init_score, offset)
    models = [gb.GradientBoostingClassifier(n_estimators=3, random_state=0).fit(rows) for rows in (data, loaded)]
    assert np.array_equal(models[0].predict_proba(data), models[1].predict_proba(data))
