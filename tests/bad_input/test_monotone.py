"""Constraints that cannot be: each is refused with what to do, before any work."""

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
        ([1, 0], "monotonic_cst: must have one entry for each of the 3 columns of X; got 2. Give 0 for those"),
        ([1, 0, 2], "monotonic_cst: must be None, one of -1 (falls), 0 (free) and 1 (rises) for each column, or a "),
        ([1, 0, 2], "got 2 for column 2."),
        ([1, 0, 0.5], "got 0.5 for column 2."),
        ([1, 0, np.nan], "got nan for column 2."),
        ([1, 0, True], "got True for column 2."),
        ([1, 0, "1"], "got '1' for column 2."),
        ([[1, 0, 0]], "; got [[1, 0, 0]]."),
        (1, "; got 1."),
        ("abc", "; got 'abc'."),
        ({"age": 1}, "monotonic_cst: X has no column names to find 'age' in; give indices."),
        ({3: 1}, "monotonic_cst: an index must be an integer from 0 to 2; got 3."),
        ({0: 2}, "got 2 for column 0."),
    ],
)
def test_constraints(given: Any, text: str) -> None:
    model = gb.GradientBoostingRegressor(monotonic_cst=given)
    with pytest.raises(RecipeError) as caught:
        model.fit(X, Y)
    assert text in str(caught.value)
    assert text in str(model.check(X, Y))


def test_names() -> None:
    frame = pytest.importorskip("pandas").DataFrame(X, columns=["age", "income", "rent"])
    with pytest.raises(RecipeError, match=r"monotonic_cst: X has no column 'incomes'; close to it: 'income'\."):
        gb.GradientBoostingRegressor(monotonic_cst={"age": 1, "incomes": 1}).fit(frame, Y)


@pytest.mark.slow
def test_a_categorical_column() -> None:
    frame = pytest.importorskip("pandas").DataFrame(X, columns=["age", "income", "town"])
    frame["town"] = RNG.choice(["a", "b"], 60)
    frame = frame.astype({"town": "category"})
    model = gb.GradientBoostingRegressor(monotonic_cst={"town": -1})
    text = "categories have no order for predictions to rise or fall with; got -1 for the categorical column 'town'"
    for rows in (frame, gb.Dataset(frame, Y)):
        with pytest.raises(RecipeError, match=text):
            model.fit(rows, None if isinstance(rows, gb.Dataset) else Y)
    assert text in str(model.check(frame, Y))
    assert model.set_params(monotonic_cst={"town": 0, "age": 1}, n_estimators=2).fit(frame, Y).n_iter_ == 2


@pytest.mark.parametrize(
    ("params", "text"),
    [
        ({"growth": "oblivious"}, "all nodes of a level of an oblivious tree share a split"),
        ({"growth": "sign_stump"}, "growth='sign_stump' takes one value with both signs"),
        ({"base_learner": gb.learners.Spline()}, "constraints are on the leaf values of trees"),
        ({"langevin": gb.Langevin(random_from=3, allow_unproven=True)}, "shapes drawn at random (random_from)"),
        ({"langevin": gb.Langevin()}, "leaf values are held to their order after the noise"),
        ({"loss": gb.losses.GaussianNLL()}, "loss 'gaussian_nll' has 2, of mean and spread. Use a loss of one score"),
    ],
)
def test_what_constraints_do_not_go_with(params: dict[str, Any], text: str) -> None:
    model = gb.GradientBoostingRegressor(monotonic_cst=[1, 0, 0], **params)
    with pytest.raises(RecipeError) as caught:
        model.fit(X, Y)
    assert str(caught.value).startswith("monotonic_cst: ")
    assert text in str(caught.value)
    assert model.check(X, Y).kind in ("refused", "unproven")


def test_several_classes() -> None:
    with pytest.raises(RecipeError, match=r"and loss 'softmax' has 3: what one class gains another loses\. Use them"):
        gb.GradientBoostingClassifier(monotonic_cst=[1, 0, 0]).fit(X, np.arange(60) % 3)
