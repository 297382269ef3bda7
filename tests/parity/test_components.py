"""Components of the CPU backend are those of the reference, byte for byte, and are read from files with suspicion."""

from __future__ import annotations

import json
from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import gpuboost as gb
from gpuboost import boosting, losses
from gpuboost.backends import get
from gpuboost.backends.protocol import Backend
from gpuboost.base_learners.competition import Competition
from gpuboost.components import EmptyComponent, SmoothTerm
from gpuboost.data.weights import split_weights
from gpuboost.learners import CategoricalRidge, Linear, LinearTree, RandomGroups, Spline, TensorSpline, Tree
from gpuboost.model import file
from gpuboost.recipe import Recipe
from gpuboost.sampling import EveryRow, ImportanceSampling
from gpuboost.steps import ConstantStep, LineSearchStep, NewtonStep
from gpuboost.types import Cuts, Ensemble, SparseBins, TrainingSet

FAMILIES: list[tuple[Any, ...]] = [
    (Linear(), Spline(knots=5)),
    (Spline(knots=4, degree=1, difference=1, scale="value"), CategoricalRidge(df=2.0)),
    (TensorSpline(pairs=((0, 1),), knots=2, cells=5), Linear()),
    (Tree(max_depth=2), CategoricalRidge(df=2.0)),
    (LinearTree(max_depth=2),),
]


def rows(seed: int, n: int, weighted: str) -> tuple[np.ndarray, np.ndarray, np.ndarray | None, Cuts]:
    rng = np.random.default_rng(seed)
    x = np.round(np.column_stack([rng.normal(size=(n, 2)) * 4, rng.integers(0, 5, n)]), 1)
    x[rng.random(n) < 0.1, 0] = np.nan
    y = (np.nan_to_num(x[:, 0]) + rng.normal(size=n) > 0.0).astype(float)
    y[:2] = 0.0, 1.0
    weight = {"no": None, "whole": rng.integers(1, 4, n), "any": rng.uniform(0.1, 3.0, n)}[weighted]
    dataset = gb.Dataset(x, categorical_features=[2], max_bins=20)
    return dataset.x, y, None if weight is None else np.asarray(weight, np.float64), dataset.cuts


def grown(backend: Backend, recipe: Recipe, x: np.ndarray, y: np.ndarray, weight: Any, cuts: Cuts) -> Ensemble:
    data = TrainingSet(backend.quantise(x, cuts), cuts, y, *split_weights(weight), x=x)
    return boosting.boost(recipe, data, backend, seed=3)


def text(ensemble: Ensemble) -> str:
    return file.to_json(ensemble, {}, {}, {}, {})


@pytest.mark.parametrize("families", FAMILIES, ids=lambda given: "+".join(type(one).__name__ for one in given))
@settings(max_examples=8, deadline=None)
@given(
    seed=st.integers(0, 1000),
    n=st.integers(20, 70),
    weighted=st.sampled_from(["no", "whole", "any"]),
    step=st.sampled_from([NewtonStep(), ConstantStep(), LineSearchStep()]),
    sampling=st.sampled_from([EveryRow(), ImportanceSampling(0.5)]),
    few=st.booleans(),
)
def test_the_cpu_grows_what_the_reference_grows(
    families: tuple[Any, ...], seed: int, n: int, weighted: str, step: Any, sampling: Any, few: bool
) -> None:
    x, y, weight, cuts = rows(seed, n, weighted)
    recipe = Recipe(
        losses.Logistic(), rounds=4, step=step, sampling=sampling, base_learner=Competition(families),
        learners=RandomGroups(1) if few else RandomGroups(1.0),
    )  # fmt: skip
    reference, cpu, threads = get("reference"), get("cpu", 1), get("cpu", 3)
    models = [grown(backend, recipe, x, y, weight, cuts) for backend in (reference, cpu, threads)]
    assert text(models[0]) == text(models[1]) == text(models[2])
    scores = [backend.predict(models[0], x) for backend in (reference, cpu, threads)]
    assert scores[0].tobytes() == scores[1].tobytes() == scores[2].tobytes()
    again = file.from_json(text(models[0])).ensemble
    assert text(again) == text(models[0])
    assert cpu.predict(again, x).tobytes() == scores[0].tobytes()


def test_sparse_rows_are_as_good_as_dense_ones() -> None:
    from scipy.sparse import csr_matrix

    rng = np.random.default_rng(0)
    x = np.where(rng.random((500, 4)) < 0.1, rng.normal(size=(500, 4)), 0.0)
    y, cuts = x[:, 0] - x[:, 1], gb.Dataset(x).cuts
    cpu = get("cpu", 1)
    recipe = Recipe(losses.SquaredError(), rounds=5, base_learner=Competition((Linear(), Spline(knots=3))))
    found = []
    for given_x in (x, csr_matrix(x)):
        bins = cpu.quantise(given_x, cuts)
        found.append(boosting.boost(recipe, TrainingSet(bins, cuts, y, x=given_x), cpu))
        assert isinstance(bins, SparseBins) == (given_x is not x)
    assert text(found[0]) == text(found[1])


def saved() -> dict[str, Any]:
    x, y, _, cuts = rows(1, 60, "no")
    families = (Spline(knots=3), CategoricalRidge(df=2.0), LinearTree(max_depth=1))
    recipe = Recipe(losses.SquaredError(), rounds=9, learners=RandomGroups(1), base_learner=Competition(families))
    ensemble = grown(get("cpu", 1), recipe, x, y, None, cuts)
    nothing = replace(
        ensemble, components=(*ensemble.components, EmptyComponent(0, 9)), factors=(*ensemble.factors, 0.1)
    )
    found: dict[str, Any] = json.loads(text(nothing))
    assert {one["kind"] for one in found["components"]} == {"smooth", "lines", "nothing"}
    return found


SAVED = saved()
SMOOTH = next(i for i, one in enumerate(SAVED["components"]) if one["kind"] == "smooth")
LINES = next(i for i, one in enumerate(SAVED["components"]) if one["kind"] == "lines")


@pytest.mark.parametrize(
    ("path", "value", "words"),
    [
        (("version",), 3, "made by a newer gpuboost"),
        (("version",), 1, "the entry 'trees' is missing"),
        (("spaces", 0, "family"), "wavelet", r"spaces\[0\].family: one of linear"),
        (("spaces", 0, "features"), [], r"spaces\[0\].features: one feature or two"),
        (("spaces", 0, "features"), [99], r"spaces\[0\].features\[0\]"),
        (("spaces", 0, "cells"), [], r"spaces\[0\].cells: there is a list for each"),
        (("spaces", 0, "cells", 0, 255), 10**6, r"spaces\[0\].cells\[0\]\[255\]"),
        (("spaces", 0, "n_cells"), 0, r"spaces\[0\].n_cells"),
        (("spaces", 0, "n_cells"), 2, r"spaces\[0\]"),
        (("spaces", 0, "mean"), [], r"spaces\[0\].mean"),
        (("spaces", 0, "first", 0), -1, r"spaces\[0\].first\[0\]"),
        (("spaces", 0, "basis", 0), [1.0], r"spaces\[0\].basis"),
        (("spaces", 0, "basis", 0, 0), None, r"spaces\[0\].basis\[0\]\[0\]"),
        (("components", SMOOTH, "space"), 77, rf"components\[{SMOOTH}\].space"),
        (("components", SMOOTH, "coefficients"), [1.0], rf"components\[{SMOOTH}\].coefficients"),
        (("components", SMOOTH, "output"), 1, rf"components\[{SMOOTH}\].output"),
        (("components", SMOOTH, "kind"), "magic", rf"components\[{SMOOTH}\].kind"),
        (("components", SMOOTH), 3, rf"components\[{SMOOTH}\]: an object"),
        (("components", LINES, "along"), [], rf"components\[{LINES}\].along"),
        (("components", LINES, "along", 0, 0), 99, rf"components\[{LINES}\].along\[0\]\[0\]"),
        (("components", LINES, "slopes"), [], rf"components\[{LINES}\].slopes"),
        (("components", LINES, "value", 0), 1.0, rf"components\[{LINES}\].value"),
        (("centres",), [], "centres: lines in leaves need them"),
        (("centres", 0), [1.0], r"centres\[0\]"),
        (("spaces",), {}, "spaces: a list"),
    ],
)
def test_a_damaged_file_is_refused_where_it_is_damaged(path: tuple[Any, ...], value: Any, words: str) -> None:
    found = json.loads(json.dumps(SAVED))
    file.from_json(json.dumps(found))
    at = found
    for key in path[:-1]:
        at = at[key]
    at[path[-1]] = value
    with pytest.raises(gb.InputError, match=words):
        file.from_json(json.dumps(found))


@pytest.mark.parametrize("key", ["family", "cells", "mean"])
def test_a_missing_or_unknown_entry_is_refused(key: str) -> None:
    for change in (lambda one: one.pop(key), lambda one: one.update(more=1)):
        found = json.loads(json.dumps(SAVED))
        change(found["spaces"][0])
        with pytest.raises(gb.InputError, match=r"spaces\[0\]"):
            file.from_json(json.dumps(found))


def test_values_that_training_never_saw() -> None:
    """A missing value, or an unknown category, gets the average of the training rows where training had none."""
    rng = np.random.default_rng(2)
    x = np.column_stack([rng.normal(size=300), rng.integers(0, 4, 300)])
    y = x[:, 0] + np.array([1.0, -1.0, 0.5, 2.0])[x[:, 1].astype(int)]
    model = gb.GradientBoostingRegressor(
        n_estimators=20, base_learner=[Spline(), CategoricalRidge()], categorical_features=[1]
    ).fit(x, y)
    odd = x.copy()
    odd[:, 0] = np.nan
    own = [np.full((4, 2), [0.3, 0.0])]
    own[0][:, 1] = [0, 1, 2, 3]
    assert model.predict(odd).mean() == pytest.approx(model.predict(x).mean(), abs=0.05)
    unknown = np.array([[0.3, 99.0]])
    known = model.predict(own[0])
    share = np.bincount(x[:, 1].astype(int)) / 300
    assert model.predict(unknown)[0] == pytest.approx(float(known @ share), abs=1e-9)
    assert all(isinstance(one, SmoothTerm) for one in model.ensemble_.components)
