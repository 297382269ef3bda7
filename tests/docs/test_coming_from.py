"""The pages for users of other libraries: their code runs, both libraries reach one score, and the names exist."""

from __future__ import annotations

import functools
import inspect
import re
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from threadpoolctl import threadpool_limits

import gpuboost as gb

ROOT = Path(__file__).parents[2]
PAGES = {"xgboost": "xgboost", "lightgbm": "lightgbm", "catboost": "catboost", "scikit_learn": "sklearn"}
"""Page -> the other library's package."""


def page(name: str) -> str:
    return (ROOT / "docs" / "coming_from" / f"{name}.md").read_text(encoding="utf-8")


@pytest.mark.slow
@pytest.mark.parametrize("name", PAGES)
def test_translated_parameters_reach_the_same_score(name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    pytest.importorskip(PAGES[name])
    monkeypatch.chdir(tmp_path)
    (source,) = re.findall(r"^```python\n(.*?)^```", page(name), flags=re.MULTILINE | re.DOTALL)
    names: dict[str, Any] = {"__name__": "page"}
    with threadpool_limits(1, "openmp"):  # threads of other libraries wait in a loop
        exec(compile(source, name, "exec"), names)
    theirs, ours = names["scores"]
    assert theirs > 0.8
    assert abs(ours - theirs) < 0.01


@pytest.mark.parametrize("name", PAGES)
def test_each_page_translates_thirty_parameters(name: str) -> None:
    assert len(rows(name)) >= 28


@pytest.mark.parametrize("name", PAGES)
def test_parameters_of_gpuboost_exist(name: str) -> None:
    known = {"gb"}
    for estimator in (gb.GradientBoostingRegressor, gb.GradientBoostingClassifier, gb.GradientBoostingRanker):
        known |= set(inspect.signature(estimator).parameters) | set(inspect.signature(estimator.fit).parameters)
    known |= {"fit", "predict"} | set(inspect.signature(gb.GradientBoostingRegressor.predict).parameters)
    for row in rows(name):
        for code in re.findall(r"`([^`]+)`", row[2]):
            word = re.match(r"[A-Za-z_]+", code)
            if word and not code.startswith(("gb.", "category")):
                assert word[0] in known, row
            for path in re.findall(r"gb(?:\.\w+)+", code):
                value: Any = gb
                for part in path.split(".")[1:]:
                    value = getattr(value, part)


@pytest.mark.parametrize("name", PAGES)
def test_methods_and_arguments_of_gpuboost_exist(name: str) -> None:
    """Methods after ``model.``, and names of arguments in calls of what ``gb`` has."""
    last = [line.strip("|").split("|")[-1] for line in page(name).splitlines() if line.startswith("|")]
    methods = re.findall(r'(?<!")\bmodel\.(\w+)', " ".join(last))
    assert methods
    assert not [method for method in methods if not hasattr(gb.GradientBoostingClassifier, method)]
    calls = re.findall(r"\bgb\.([\w.]+)\(([^()]*)\)", page(name).split("## Parameters")[1])
    assert calls
    for path, arguments in calls:
        function = functools.reduce(getattr, path.split("."), gb)
        named = set(re.findall(r"(\w+)=", arguments))
        assert named <= set(inspect.signature(function).parameters), path


def rows(name: str) -> list[list[str]]:
    """Cells of the table of parameters."""
    table = page(name).split("## Parameters")[1].split("\n## ")[0]
    lines = [line for line in table.splitlines() if line.startswith("|")][2:]
    return [[cell.strip() for cell in line.strip("|").split("|")] for line in lines]


@pytest.mark.parametrize(
    ("theirs", "ours"),
    [("gain", "mean_gain"), ("total_gain", "gain"), ("weight", "split"), ("total_cover", "cover")],
)
def test_importances_of_xgboost_are_shares_of_the_kinds_on_the_page(theirs: str, ours: str) -> None:
    xgboost = pytest.importorskip("xgboost")
    assert any(f'"{theirs}"' in row and f'"{ours}"' in row for row in page("xgboost").splitlines())
    x = np.random.default_rng(0).integers(0, 9, (300, 3)).astype(float)  # cuts of both are those between whole numbers
    y = x[:, 0] + x[:, 1] * (x[:, 2] > 4)
    shared = {"n_estimators": 5, "max_depth": 3, "learning_rate": 0.3, "reg_lambda": 1, "n_jobs": 1}
    booster = xgboost.XGBRegressor(**shared, base_score=y.mean()).fit(x, y).get_booster()
    found = booster.get_score(importance_type=theirs)
    shares = np.array([found[f"f{column}"] for column in range(3)]) / sum(found.values())
    model = gb.GradientBoostingRegressor(**shared, random_state=0).fit(x, y)
    np.testing.assert_allclose(model.feature_importance(ours), shares, rtol=1e-5)
