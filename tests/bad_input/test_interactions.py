"""Interaction constraints that cannot be: each is refused with what to do, before any work."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import gpuboost as gb
from gpuboost.errors import RecipeError

RNG = np.random.default_rng(0)
X = RNG.normal(size=(60, 3))
Y = X[:, 0] + RNG.normal(size=60)


@pytest.mark.parametrize(
    ("given", "text"),
    [
        ("pairs", 'interaction_cst: must be None, "pairwise", "no_interactions", or sets of columns by name or index'),
        ([], "; got []."),
        ([0, 1], "; got [0, 1]."),
        ([[0, 1], []], "; got [[0, 1], []]."),
        ({"a": 1}, "; got {'a': 1}."),
        (3, "; got 3."),
        (["ab"], "; got ['ab']."),
        ([[0, 3]], "interaction_cst: an index must be an integer from 0 to 2; got 3."),
        ([[0, 1.5]], "an index must be an integer from 0 to 2; got 1.5."),
        ([[True, 0]], "an index must be an integer from 0 to 2; got True."),
        ([["age"]], "interaction_cst: X has no column names to find 'age' in; give indices."),
    ],
)
def test_sets(given: Any, text: str) -> None:
    model = gb.GradientBoostingRegressor(interaction_cst=given)
    with pytest.raises(RecipeError) as caught:
        model.fit(X, Y)
    assert text in str(caught.value)
    assert text in str(model.check(X, Y))


def test_names() -> None:
    frame = pytest.importorskip("pandas").DataFrame(X, columns=["age", "income", "rent"])
    with pytest.raises(RecipeError, match=r"interaction_cst: X has no column 'incomes'; close to it: 'income'\."):
        gb.GradientBoostingRegressor(interaction_cst=[["age", "incomes"]]).fit(frame, Y)


@pytest.mark.parametrize(
    ("params", "text"),
    [
        ({"base_learner": gb.learners.Spline()}, "sets of columns are for the splits of trees"),
        ({"langevin": gb.Langevin(random_from=3, allow_unproven=True)}, "shapes drawn at random (random_from)"),
    ],
)
def test_what_constraints_do_not_go_with(params: dict[str, Any], text: str) -> None:
    model = gb.GradientBoostingRegressor(interaction_cst=[[0, 1]], **params)
    with pytest.raises(RecipeError) as caught:
        model.fit(X, Y)
    assert str(caught.value).startswith("interaction_cst: ")
    assert text in str(caught.value)
    assert model.check(X, Y).kind == "refused"
