"""The report of a fit speaks of theory to those who use its pieces."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import gpuboost as gb

rng = np.random.default_rng(0)
X = rng.normal(size=(200, 3))
Y = X[:, 0] + 0.3 * rng.normal(size=200)
PLAIN: list[dict[str, Any]] = [{}, {"step": "newton"}, {"sampling": 0.8, "max_depth": 3}, {"loss": "absolute_error"}]
THEORY: list[dict[str, Any]] = [
    {"langevin": gb.Langevin()},
    {"sampling": gb.MVS(0.5)},
    {"learners": 0.5},
    {"step": "constant"},
    {"growth": "sign_stump"},
    {"base_learner": gb.learners.Linear()},
    {"execution": gb.SimulatedWorkers(3)},
]


@pytest.mark.parametrize("parameters", PLAIN, ids=str)
def test_a_plain_fit_is_reported_without_a_verdict(parameters: dict[str, Any]) -> None:
    model = gb.GradientBoostingRegressor(n_estimators=3, n_jobs=1, **parameters).fit(X, Y)
    assert model.fit_report_.verdict.kind in ("sound", "heuristic")
    for text in (str(model.fit_report_), model._repr_mimebundle_()["text/html"].split("</style>")[-1]):
        assert f"{model.fit_report_.verdict.kind}:" not in text


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("parameters", THEORY, ids=str)
def test_a_piece_of_theory_is_answered_with_the_verdict(parameters: dict[str, Any]) -> None:
    model = gb.GradientBoostingRegressor(n_estimators=3, n_jobs=1, **parameters).fit(X, Y)
    assert str(model.fit_report_).endswith(str(model.fit_report_.verdict))
    assert (
        f'theory</th><td style="text-align:left">{model.fit_report_.verdict.kind}:'
        in model._repr_mimebundle_()["text/html"]
    )
