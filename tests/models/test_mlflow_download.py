"""``gb.integrations.mlflow.load_model`` fetches models by MLflow's public door."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

import gpuboost as gb


@pytest.mark.slow  # importing MLflow takes seconds
@pytest.mark.filterwarnings("ignore")
def test_a_model_is_downloaded_to_a_new_folder(
    regression_data: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    mlflow = pytest.importorskip("mlflow")
    asked = []
    public = mlflow.artifacts.download_artifacts

    def download_artifacts(**options: Any) -> str:
        asked.append(options)
        return str(public(**options))

    monkeypatch.setattr(mlflow.artifacts, "download_artifacts", download_artifacts)
    x, y = regression_data
    model = gb.GradientBoostingRegressor(n_estimators=2, max_depth=2, random_state=0).fit(x, y)
    source, copy = tmp_path / "saved", tmp_path / "a" / "copy"
    gb.integrations.mlflow.save_model(model, str(source))
    loaded = gb.integrations.mlflow.load_model(source.as_uri(), dst_path=str(copy))
    assert gb.dumps(loaded) == gb.dumps(model)
    assert list(copy.rglob("model.json"))
    assert asked == [{"artifact_uri": source.as_uri(), "dst_path": str(copy)}]
