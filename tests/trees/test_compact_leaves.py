"""The leaves of rows in one or two bytes, while several trees of many rows wait for each other: the same models."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

import gpuboost as gb
from gpuboost.backends.cpu import leaves
from gpuboost.learners import LinearTree
from gpuboost.types import Gradients, Nodes, Structure

CASES: dict[str, dict[str, Any]] = {
    "a byte": {"max_depth": 3},
    "two bytes": {"max_depth": 12, "min_child_weight": 0.0},
    "line search": {"max_depth": 3, "step": gb.LineSearchStep(per="leaf")},
    "path smoothing": {"max_depth": 3, "path_smooth": 5.0},
    "previous leaves": {"max_depth": 3, "sampling": gb.ImportanceSampling(0.5, variance_control="previous_leaf")},
    "linear leaves": {"base_learner": LinearTree(max_depth=2)},
}


ONE, TWO = (Gradients(np.zeros((k, 1), np.float32), np.zeros((k, 1), np.float32)) for k in (1, 2))


def structure(rows: int, nodes: int) -> Structure:
    empty = np.zeros(nodes, np.int32)
    of_nodes = empty, empty, empty > 0, empty, empty, np.zeros(nodes), np.zeros(nodes), np.zeros(nodes, np.int64)
    leaf_of_row = (np.arange(rows) % nodes).astype(np.int32)
    return Structure(Nodes(*of_nodes, np.zeros((nodes, 8), np.uint32)), 0, 0, leaf_of_row, None)


@pytest.mark.parametrize(
    ("nodes", "dtype"), [(256, np.uint8), (257, np.uint16), (65_536, np.uint16), (65_537, np.int32)]
)
def test_the_least_type_that_holds_the_numbers_of_all_nodes(nodes: int, dtype: Any) -> None:
    given = structure(leaves.MANY + 10, nodes)
    found = leaves.compact(given, TWO).leaf_of_row
    assert found is not None
    assert given.leaf_of_row is not None
    assert found.dtype == dtype
    assert leaves.wide(found).dtype == np.int32
    assert leaves.wide(found).tolist() == given.leaf_of_row.tolist()


def test_one_tree_a_round_and_few_rows_are_left_as_they_are() -> None:
    assert leaves.compact(many := structure(leaves.MANY, 9), ONE) is many
    assert leaves.compact(few := structure(leaves.MANY - 1, 9), TWO) is few


@pytest.mark.filterwarnings("ignore::gpuboost.errors.OutsideTheoryWarning")
@pytest.mark.parametrize("case", CASES)
def test_models_have_the_same_bytes(case: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    rng = np.random.default_rng(0)
    x, y = rng.normal(size=(900, 4)), rng.integers(0, 3, 900)
    found = []
    for many in (leaves.MANY, 1):
        monkeypatch.setattr(leaves, "MANY", many)
        model = gb.GradientBoostingClassifier(n_estimators=3, device="cpu", n_jobs=1, random_state=0, **CASES[case])
        model.fit(x, y).save_model(tmp_path / "model")
        found.append((tmp_path / "model").read_bytes())
    assert found[0] == found[1]
