"""forced_splits through the estimators, as LightGBM means ``forcedsplits_filename``."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import gpuboost as gb
from gpuboost.cli import main
from gpuboost.errors import DeviceError, InputError, RecipeError

RNG = np.random.default_rng(0)
X = np.round(2.0 * RNG.normal(size=(500, 3))) / 2.0
Y = X[:, 0] + np.where(X[:, 1] > 1.0, 3.0, 0.0) + 0.1 * X[:, 2] + 0.5 * RNG.normal(size=500)
PLAN = {"feature": 2, "threshold": 0.1, "left": {"feature": 1, "threshold": 0.0}, "right": None}
SMALL = {"n_estimators": 3, "max_depth": 3, "random_state": 0, "n_jobs": 1}


def roots(model: Any) -> set[tuple[int, int, int]]:
    """Features of the first nodes of each tree."""
    return {tuple(tree.nodes.feature[:2].tolist()) for tree in model.ensemble_.trees}


@pytest.mark.parametrize("growth", ["depthwise", "leafwise"])
def test_every_tree_begins_with_them(growth: str, tmp_path: Path) -> None:
    params = {**SMALL, "growth": growth}
    model = gb.GradientBoostingRegressor(**params, forced_splits=PLAN).fit(X, Y)
    assert roots(model) == {(2, 1)}
    cuts = model.ensemble_.cuts.thresholds[2]
    assert cuts[model.ensemble_.trees[0].nodes.bin[0]] == cuts[cuts >= 0.1].min()
    (tmp_path / "plan.json").write_text(json.dumps(PLAN))
    for path in (tmp_path / "plan.json", str(tmp_path / "plan.json")):
        again = gb.GradientBoostingRegressor(**params, forced_splits=path).fit(X, Y)
        np.testing.assert_array_equal(again.predict(X), model.predict(X))
    loaded = gb.loads(gb.dumps(model))
    assert loaded.forced_splits == PLAN
    np.testing.assert_array_equal(loaded.fit(X, Y).predict(X), model.predict(X))
    assert "forced_splits" not in gb.dumps(gb.GradientBoostingRegressor(n_estimators=1).fit(X, Y))


def test_names_classes_datasets_and_workers() -> None:
    pd = pytest.importorskip("pandas")
    frame = pd.DataFrame(X, columns=["a", "b", "c"])
    named = {"feature": "c", "threshold": 0.1}
    assert {r[0] for r in roots(gb.GradientBoostingRegressor(**SMALL, forced_splits=named).fit(frame, Y))} == {2}
    data = gb.Dataset(frame, Y)
    assert {r[0] for r in roots(gb.GradientBoostingRegressor(**SMALL, forced_splits=named).fit(data))} == {2}
    y = np.digitize(Y, [0.0, 1.0])
    model = gb.GradientBoostingClassifier(**SMALL, forced_splits=PLAN, execution=gb.Asynchronous(2), sampling=0.7)
    assert {r[0] for r in roots(model.fit(X, y))} == {2}


def test_lightgbm_grows_the_same_trees(tmp_path: Path) -> None:
    """Without missing values, which LightGBM sends left, and away from 0, which has a bin of its own there."""
    lightgbm = pytest.importorskip("lightgbm")
    left, right = {"feature": 1, "threshold": -1.0}, {"feature": 0, "threshold": 0.6}
    plan = {"feature": 1, "threshold": 0.3, "left": left, "right": right}
    (tmp_path / "plan.json").write_text(json.dumps(plan))
    params = {"reg_lambda": 1.0, "min_child_weight": 0.0, "n_estimators": 3, "learning_rate": 0.3, "max_depth": 4}
    x, ours = X[:, :2], {"growth": "leafwise", "max_leaves": 6, "forced_splits": plan}
    theirs = {"num_leaves": 6, "min_child_samples": 1, "min_data_in_bin": 1, "verbose": -1}
    theirs["forcedsplits_filename"] = str(tmp_path / "plan.json")
    model = gb.GradientBoostingRegressor(**params, **ours, n_jobs=1).fit(x, Y)
    other = lightgbm.LGBMRegressor(**params, **theirs, n_jobs=1).fit(x, Y)
    assert model.predict(x) == pytest.approx(other.predict(x), abs=1e-6)


@pytest.mark.parametrize(
    "plan",
    [{"feature": 0, "threshold": 99.0}, {"feature": 0, "threshold": 1.9, "right": {"feature": 0, "threshold": 0.0}}],
)
def test_a_split_that_cannot_be_made_warns_once(plan: dict[str, Any]) -> None:
    with pytest.warns(UserWarning, match="forced_splits: 3 of 3 trees lack some of the") as caught:
        gb.GradientBoostingRegressor(**SMALL, forced_splits=plan).fit(X, Y)
    assert len(caught) == 1


def test_the_command_line(tmp_path: Path) -> None:
    lines = [",".join(map(str, row)) for row in np.column_stack([X, Y]).round(4).tolist()]
    (tmp_path / "rows.csv").write_text("a,b,c,y\n" + "\n".join(lines) + "\n")
    (tmp_path / "plan.json").write_text(json.dumps({"feature": "c", "threshold": 0.1}))
    command = ["train", str(tmp_path / "rows.csv"), "--target", "y", "--model", str(tmp_path / "m.json"), "--quiet"]
    assert main([*command, "--n-estimators", "2", "--forced-splits", str(tmp_path / "plan.json")]) == 0
    assert {r[0] for r in roots(gb.load_model(tmp_path / "m.json"))} == {2}


def nested(levels: int) -> dict[str, Any]:
    split: dict[str, Any] = {"feature": 0, "threshold": 0.0}
    for _ in range(levels - 1):
        split = {"feature": 0, "threshold": 0.0, "left": split}
    return split


@pytest.mark.parametrize(
    ("params", "text"),
    [
        ({"forced_splits": [PLAN]}, "forced_splits: must be None, a split such as"),
        ({"forced_splits": {"feature": 0}}, "forced_splits: must be None, a split such as"),
        ({"forced_splits": {**PLAN, "middle": 3}}, "forced_splits: must be None, a split such as"),
        (
            {"forced_splits": {**PLAN, "threshold": np.nan}},
            "a threshold must be a finite number; got nan",
        ),
        ({"forced_splits": {**PLAN, "feature": 3}}, "forced_splits: an index must be an integer from 0 to 2; got 3."),
        ({"forced_splits": {**PLAN, "feature": "a"}}, "forced_splits: X has no column names to find 'a' in"),
        ({"forced_splits": nested(11)}, "forced_splits: at most 10 levels"),
        ({"categorical_features": [2]}, "forced_splits: categories have no order to split at a threshold; column 2"),
        ({"growth": "oblivious"}, "forced_splits: growth='oblivious' has one split for several nodes"),
        ({"growth": "sign_stump", "max_depth": 1}, "forced_splits: growth='sign_stump' has one split"),
        ({"learners": 2}, "draws columns, and that of a forced split may not be among them"),
        ({"extra_trees": True}, "forced_splits: extra_trees draws the cuts that compete"),
        ({"interaction_cst": "pairwise"}, "forced_splits: interaction_cst may forbid a forced column"),
        ({"langevin": gb.Langevin(random_from=1)}, "forced_splits: shapes drawn at random"),
        ({"base_learner": gb.learners.Spline()}, "forced_splits: splits are of trees, and base_learner is none"),
    ],
)
def test_what_is_refused(params: dict[str, Any], text: str) -> None:
    with pytest.raises(RecipeError) as caught:
        gb.GradientBoostingRegressor(**{"forced_splits": PLAN, **params}).fit(X, Y)
    assert text in str(caught.value)


def test_files_and_devices(tmp_path: Path) -> None:
    (tmp_path / "plan.json").write_text("{")
    for path in (tmp_path / "plan.json", "nowhere.json"):
        with pytest.raises(InputError, match=r"forced_splits: must be .* cannot be read"):
            gb.GradientBoostingRegressor(forced_splits=path).fit(X, Y)
    with pytest.raises(DeviceError, match="device: forced splits are made on the CPU; got device='cuda'"):
        gb.GradientBoostingRegressor(forced_splits=PLAN, device="cuda").fit(X, Y)
    automatic = gb.GradientBoostingRegressor(**SMALL, forced_splits=PLAN, device="auto").fit(X, Y)
    assert automatic.fit_report_.device == "cpu"
    text = gb.dumps(gb.GradientBoostingRegressor(**SMALL, forced_splits=PLAN).fit(X, Y))
    with pytest.raises(InputError, match=r"model file: parameters\.forced_splits: must be"):
        gb.loads(text.replace('"threshold":0.1', '"limit":0.1', 1))
