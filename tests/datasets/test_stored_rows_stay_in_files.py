"""A fit of a Dataset that was loaded reads its bins, and its features only where they are needed."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

import gpuboost as gb
from gpuboost.data.formats.stored_rows import StoredMatrix


def test_trees_read_no_features_of_a_stored_dataset(
    regression_data: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    gb.Dataset(*regression_data).save(tmp_path / "rows.gbd")
    model = gb.GradientBoostingRegressor(n_estimators=2, max_depth=2, random_state=0, n_jobs=1)
    expected = gb.dumps(model.fit(gb.Dataset(*regression_data)))

    def read(self: Any) -> Any:
        raise AssertionError("features were read")

    monkeypatch.setattr(StoredMatrix, "read", read)
    data = gb.Dataset.load(tmp_path / "rows.gbd")
    assert gb.dumps(model.fit(data)) == expected
