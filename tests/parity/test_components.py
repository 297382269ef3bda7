"""Functions of bins: every machine's models, sums and scores are the reference's; files are read with suspicion."""

from __future__ import annotations

import json
from collections import Counter
from dataclasses import replace
from functools import cache
from typing import Any

import numpy as np
import pytest
from emulator import emulated_runtime
from emulator.sanitizer import sanitized
from hypothesis import given, settings
from hypothesis import strategies as st
from support.builders import GRADIENT_KINDS, random_case, random_gradients, sparse
from support.examples import daily, examples
from support.training import device

import gpuboost as gb
from gpuboost import boosting, losses, public
from gpuboost.backends import get
from gpuboost.backends.cuda import components
from gpuboost.backends.cuda.backend import Cuda
from gpuboost.backends.cuda.trees.tree_ring import SLOTS
from gpuboost.backends.protocol import Backend
from gpuboost.backends.reference.backend import Reference
from gpuboost.backends.smoothing import SmoothingPlan
from gpuboost.base_learners.best_of_families import BestOfFamilies
from gpuboost.components import EmptyComponent, Grid, SmoothTerm, Space, TreeComponent
from gpuboost.data.weights import split_weights
from gpuboost.errors import DeviceError, InputError
from gpuboost.learners import CategoricalRidge, Linear, LinearTree, RandomGroups, Spline, TensorSpline, Tree
from gpuboost.model import file
from gpuboost.recipe import Recipe
from gpuboost.sampling import GOSS, EveryRow, ImportanceSampling, UniformSampling
from gpuboost.steps import ConstantStep, LineSearchStep, NewtonStep, automatic
from gpuboost.types import Cuts, Ensemble, Gradients, SparseBins, TrainingSet

FAMILIES: list[tuple[Any, ...]] = [
    (Linear(), Spline(knots=5)),
    (Spline(knots=4, degree=1, difference=1, scale="value"), CategoricalRidge(df=2.0)),
    (LinearTree(max_depth=2),),
    (TensorSpline(pairs=((0, 1), (1, 0)), knots=2, cells=5), Linear()),
    (Linear(), Tree(max_depth=2), CategoricalRidge(df=2.0), Tree(max_depth=2), Tree(max_depth=4)),
    (Tree(max_depth=3),),
]
CLASSES = {"logistic": 2, "softmax": 3}


def test_every_family_is_among_them() -> None:
    found = {type(family) for families in FAMILIES for family in families}
    assert found == set(map(public.loaded, public.FAMILIES)), "each family is in FAMILIES of this file"


def rows(
    seed: int, n: int, weighted: str, loss: str = "logistic"
) -> tuple[np.ndarray, np.ndarray, np.ndarray | None, Cuts]:
    rng = np.random.default_rng(seed)
    x = np.round(np.column_stack([rng.normal(size=(n, 2)) * 4, rng.integers(0, 5, n)]), 1)
    x[rng.random(n) < 0.1, 0] = np.nan
    y = np.nan_to_num(x[:, 0]) + rng.normal(size=n)
    if loss in CLASSES:
        y = np.digitize(y, [0.0, 3.0][: CLASSES[loss] - 1]).astype(float)
        y[: CLASSES[loss]] = np.arange(CLASSES[loss])
    weight = {"no": None, "whole": rng.integers(1, 4, n), "any": rng.uniform(0.1, 3.0, n)}[weighted]
    dataset = gb.Dataset(x, categorical_features=[2], max_bins=20)
    return dataset.x, y, None if weight is None else np.asarray(weight, np.float64), dataset.cuts


def grown(backend: Backend, recipe: Recipe, x: np.ndarray, y: np.ndarray, weight: Any, cuts: Cuts) -> Ensemble:
    data = TrainingSet(backend.quantise(x, cuts), cuts, y, *split_weights(weight), x=x)
    return boosting.boost(recipe, data, backend, seed=3)


def text(ensemble: Ensemble) -> str:
    return file.to_json(ensemble, {}, {}, {}, {})


@pytest.mark.parametrize(
    "families", daily(FAMILIES, 2), ids=lambda given: "+".join(type(one).__name__ for one in given)
)
@settings(max_examples=examples(10), deadline=None, derandomize=True)
@given(
    seed=st.integers(0, 1000),
    n=st.sampled_from([20, 70, 150]),
    weighted=st.sampled_from(["no", "whole", "any"]),
    loss=st.sampled_from(["squared_error", "absolute_error", "huber", "logistic", "softmax"]),
    step=st.sampled_from([NewtonStep(), ConstantStep(), LineSearchStep(), LineSearchStep("leaf")]),
    sampling=st.sampled_from([EveryRow(), UniformSampling(0.6), ImportanceSampling(0.5), GOSS(0.2, 0.3)]),
    few=st.booleans(),
)
def test_every_machine_grows_what_the_reference_grows(
    families: tuple[Any, ...], seed: int, n: int, weighted: str, loss: str, step: Any, sampling: Any, few: bool
) -> None:
    x, y, weight, cuts = rows(seed, n, weighted, loss)
    if loss == "absolute_error" or (loss == "huber" and isinstance(step, NewtonStep)):
        step = automatic(losses.registry.get(loss))
    recipe = Recipe(
        losses.registry.get(loss, n_classes=CLASSES.get(loss)), rounds=4, step=step, sampling=sampling,
        base_learner=BestOfFamilies(families), learners=RandomGroups(1) if few else RandomGroups(1.0),
    )  # fmt: skip
    on_device = [] if any(isinstance(family, LinearTree) for family in families) else [Cuda(device("random"))]
    machines = [Reference(), get("cpu", 1), get("cpu", 3), *on_device]
    models = [grown(machine, recipe, x, y, weight, cuts) for machine in machines]
    assert {text(model) for model in models} == {text(models[0])}
    if on_device:
        assert {type(one) for one in models[0].components} <= {SmoothTerm, EmptyComponent, TreeComponent}
    expected, again = models[0], file.from_json(text(models[0])).ensemble
    assert text(again) == text(expected)
    assert machines[1].predict(again, x).tobytes() == machines[0].predict(expected, x).tobytes()
    for machine in machines[1:]:
        assert machine.predict(expected, x).tobytes() == machines[0].predict(expected, x).tobytes()
        staged = zip(machine.staged_predict(expected, x), machines[0].staged_predict(expected, x), strict=True)
        assert [a.tobytes() == b.tobytes() for a, b in staged] == [True] * 4


def test_a_shrunken_model_predicts_the_same() -> None:
    x, y, _, cuts = rows(1, 200, "no", "squared_error")
    recipe = Recipe(losses.SquaredError(), rounds=3, base_learner=BestOfFamilies((Spline(knots=4),)))
    made = replace(grown(Reference(), recipe, x, y, None, cuts), scale=0.25, scales=(1.0, 0.5, 0.25))
    for machine in (get("cpu", 2), Cuda(device("random"))):
        assert machine.predict(made, x).tobytes() == Reference().predict(made, x).tobytes()
        staged = zip(machine.staged_predict(made, x), Reference().staged_predict(made, x), strict=True)
        assert all(a.tobytes() == b.tobytes() for a, b in staged)


def test_sparse_rows_are_as_good_as_dense_ones() -> None:
    from scipy.sparse import csr_matrix

    rng = np.random.default_rng(0)
    x = np.where(rng.random((500, 4)) < 0.1, rng.normal(size=(500, 4)), 0.0)
    y, cuts = x[:, 0] - x[:, 1], gb.Dataset(x).cuts
    recipe = Recipe(losses.SquaredError(), rounds=5, base_learner=BestOfFamilies((Linear(), Spline(knots=3))))
    expected = grown(Reference(), recipe, x, y, None, cuts)
    for machine in (get("cpu", 1), Cuda(device("random"))):
        for given_x in (x, csr_matrix(x)):
            assert text(grown(machine, recipe, given_x, y, None, cuts)) == text(expected)
    assert isinstance(get("cpu", 1).quantise(csr_matrix(x), cuts), SparseBins)
    assert (
        Cuda(device("random")).predict(expected, csr_matrix(x)).tobytes() == Reference().predict(expected, x).tobytes()
    )


# the verbs


def grids_of(cuts: Cuts, large: bool) -> tuple[Grid, ...]:
    """Each feature alone, and pairs of neighbours: with a cell for each pair of bins, if large."""
    one = np.arange(256, dtype=np.int32)
    alone = [Grid((f,), (np.minimum(one, b + 1).astype(np.int32),), int(b) + 3) for f, b in enumerate(cuts.n_bins)]
    width = 256 if large else 7
    pairs = [
        Grid((f, f + 1), ((one % width * width).astype(np.int32), (one % width).astype(np.int32)), width * width)
        for f in range(cuts.n_features - 1)
    ]
    return *alone, *pairs


@settings(max_examples=examples(25), deadline=None, derandomize=True)
@given(
    st.integers(0, 1000),
    st.sampled_from([1, 33, 2_047, 6_500]),
    st.sampled_from([1, 3, 30]),
    st.sampled_from(GRADIENT_KINDS),
    st.booleans(),
    st.booleans(),
    st.booleans(),
    st.sampled_from(["forward", "reverse", "random"]),
)
def test_sums_of_cells(
    seed: int, n: int, d: int, kind: str, times: bool, some: bool, large: bool, order: str
) -> None:  # fmt: skip
    """One grid of 65,536 cells is summed where it lies; thirty features take several blocks."""
    data = random_case(seed, n, d, most_cuts=200).data
    rng = np.random.default_rng(seed)
    drawn = np.flatnonzero(rng.random(n) < 0.4).astype(np.int32) if some else None
    if drawn is not None and not len(drawn):
        drawn = np.zeros(1, np.int32)
    m = n if drawn is None else len(drawn)
    gradients = random_gradients(rng, m, kind, rng.integers(1, 5, m).astype(np.int32) if times else None)
    expected, found = Reference().smoothing(), Cuda(device(order)).smoothing()
    for grid in grids_of(data.cuts, large and d == 3):
        sums = expected.cells(gradients, drawn, 0, grid, data.bins)
        assert found.cells(gradients, drawn, 0, grid, data.bins).tobytes() == sums.tobytes()


@pytest.mark.parametrize("d", [1, 9, 40])
def test_fits_of_some_spaces_of_a_plan(d: int) -> None:
    """Grids that were asked for in another fit, and are not now, leave nothing behind."""
    case, rng = random_case(3, 900, d, most_cuts=150), np.random.default_rng(4)
    spaces = []
    for grid in grids_of(case.data.cuts, large=False):
        c = grid.n_cells - 1
        first = (np.arange(c) % 3).astype(np.int32)
        basis, penalty = rng.normal(size=(c, 2)), np.tile([2.0, -1.0], (4, 1))
        spaces.append(Space("spline", grid, first, basis, np.full(4, 0.25), penalty, 0.1))
    plan, backend = SmoothingPlan.of(tuple(spaces)), Cuda(device("random"), threads=1 if d == 9 else 3)
    for _ in range(4):
        chosen = np.flatnonzero(rng.random(len(spaces)) < 0.4).astype(np.int32)
        chosen = chosen if len(chosen) else np.array([0], np.int32)
        gradients = random_gradients(rng, 900, "plain")
        asked = plan, gradients, None, 0, chosen, case.data.bins
        expected, found = Reference().smoothing().fit(*asked), backend.smoothing().fit(*asked)
        for name in ("drop", "slope", "curvature"):
            assert getattr(found, name).tobytes() == getattr(expected, name).tobytes()
        for a, b in zip(found.coefficients, expected.coefficients, strict=True):
            assert a.tobytes() == b.tobytes()


def test_batches_of_grids_fill_a_block() -> None:
    """No more grids than a block holds, nor more cells than several blocks of a multiprocessor can have at a time."""
    begins = np.concatenate([[0], np.cumsum([10] * 9 + [2_000, 100, 7_000, 6_000, 5])]).astype(np.int32)
    starts, near = components._batches(begins)
    assert starts.tolist() == [0, 8, 10, 11, 12, 13, 14]
    assert near == 6_000
    assert 8 * components.NEAR_CELLS + 16 * components.MOST_TOGETHER <= 48 << 10


def test_tables_are_added_in_order() -> None:
    """On dense and sparse bins of the host, and on rows that the device has binned: the reference's sums."""
    case, rng = random_case(8, 700, 12, most_cuts=100), np.random.default_rng(9)
    tables = [(grid, rng.normal(size=grid.n_cells) * 10.0**k) for k, grid in enumerate(grids_of(case.data.cuts, False))]
    scores = rng.normal(size=700)
    expected, backend = scores.copy(), Cuda(device("random"))
    Reference().smoothing().add_all(expected, tables, case.data.bins)
    for bins in (case.data.bins, sparse(case.data).bins, backend.quantise(case.x, case.data.cuts)):
        found = device("random").upload(scores)
        backend.smoothing().add_all(found, tables, bins)
        assert device("random").download(found).tobytes() == expected.tobytes()
        assert all(
            backend.smoothing().codes(bins, f).tobytes() == Reference().smoothing().codes(case.data.bins, f).tobytes()
            for f in range(12)
        )


@pytest.mark.parametrize(
    "loss", [losses.Logistic(), losses.AbsoluteError(), losses.Softmax(3)], ids=lambda one: one.name
)
def test_lengths_along_any_direction(loss: Any) -> None:
    target = {"binary": "binary", "multiclass": "3"}.get(loss.task, "real")
    data = random_case(2, 5_000, 2, target=target, weights="real").data
    rng, k = np.random.default_rng(1), loss.n_outputs
    scores = rng.normal(size=(k, 5_000))
    for along in (rng.normal(size=5_000), np.zeros(5_000), np.where(data.y > 0, 1.0, -1.0)):
        expected = Reference().length_along(loss, scores, k - 1, along, data)
        assert (
            Cuda(device("random")).length_along(loss, device("random").upload(scores), k - 1, along, data) == expected
        )


def test_what_is_no_number_is_refused() -> None:
    data = random_case(0, 50, 2).data
    grid = grids_of(data.cuts, large=False)[0]
    g = np.ones((1, 50), np.float32)
    g[0, 7] = np.nan
    for backend in (Reference(), get("cpu", 1), Cuda(device("random"))):
        with pytest.raises(InputError, match=r"finite"):
            backend.smoothing().cells(Gradients(g, np.ones((1, 50), np.float32)), None, 0, grid, data.bins)


def test_lines_in_leaves_are_refused() -> None:
    x, y, _, cuts = rows(1, 60, "no", "squared_error")
    recipe = Recipe(losses.SquaredError(), rounds=1, base_learner=BestOfFamilies((LinearTree(max_depth=1),)))
    made = grown(get("cpu", 1), recipe, x, y, None, cuts)
    with pytest.raises(DeviceError, match=r"base_learner: lines in the leaves.*added on the CPU.*device='cpu'"):
        Cuda(device("random")).predict(made, x)


# what it costs


def counted(rounds: int, n: int = 400, **more: Any) -> Counter[str]:
    x, y, _, cuts = rows(2, n, "no", "squared_error")
    runtime = emulated_runtime()
    recipe = Recipe(losses.SquaredError(), rounds, base_learner=BestOfFamilies((Spline(knots=4), Linear())), **more)
    grown(Cuda(runtime), recipe, x, y, None, cuts)
    return Counter(runtime.cp.counts)


@pytest.mark.parametrize("learners", [RandomGroups(1.0), RandomGroups(1)], ids=["all", "one"])
def test_a_round_is_three_launches_and_no_graph(learners: Any) -> None:
    """Gradients, sums of all grids, and the step. The host waits for the sums, and for its table to be sent."""
    few, more = counted(3, learners=learners), counted(9, learners=learners)
    spent = more - few
    assert {kind: count for kind, count in spent.items() if kind.startswith("kernel ")} == {
        "kernel gradients": 6, "kernel cell_sums": 6, "kernel add_cells": 6
    }  # fmt: skip
    assert more["graph"] == few["graph"] == 0
    assert spent["sync"] == 2 * 6


def test_more_rows_take_no_more_launches() -> None:
    assert counted(3, 400)["kernel cell_sums"] == counted(3, 4_000)["kernel cell_sums"] == 3


def test_trees_are_recorded_again_after_other_learners() -> None:
    """One backend, one training after the other."""
    x, y, _, cuts = rows(4, 300, "no", "squared_error")
    backend, splines = Cuda(runtime := emulated_runtime()), BestOfFamilies((Spline(knots=4),))
    for base in (None, splines, None, splines):
        recipe = Recipe(losses.SquaredError(), 4, base_learner=base)
        before = runtime.cp.counts["graph"]
        assert text(grown(backend, recipe, x, y, None, cuts)) == text(grown(Reference(), recipe, x, y, None, cuts))
        assert runtime.cp.counts["graph"] - before == (2 if base is None else 0)


@pytest.mark.slow
def test_trees_that_win_now_and_then_outlive_their_places() -> None:
    """Three outputs, of which a tree wins here and a line there, for more rounds than the device has places."""
    x, y, weight, cuts = rows(5, 200, "whole", "softmax")
    trees = (Tree(max_depth=1, reg_lambda=ridge) for ridge in (0.5, 1.0, 2.0))
    families = BestOfFamilies((Linear(), CategoricalRidge(df=2.0), *trees))
    recipe = Recipe(losses.Softmax(3), 110, 0.3, base_learner=families, learners=RandomGroups(1))
    runtime = emulated_runtime()
    found, expected = (grown(one, recipe, x, y, weight, cuts) for one in (Cuda(runtime), get("cpu", 2)))
    assert SLOTS < sum(isinstance(one, TreeComponent) for one in expected.components) < 3 * 110
    assert text(found) == text(expected)
    assert runtime.cp.counts["graph"] == 0


# what a file holds


@cache
def saved() -> str:
    """A model of functions of bins, of trees with lines in their leaves, and of nothing."""
    x, y, _, cuts = rows(1, 60, "no")
    families = (Spline(knots=3), CategoricalRidge(df=2.0), LinearTree(max_depth=1))
    recipe = Recipe(losses.SquaredError(), rounds=9, learners=RandomGroups(1), base_learner=BestOfFamilies(families))
    ensemble = grown(get("cpu", 1), recipe, x, y, None, cuts)
    nothing = replace(
        ensemble, components=(*ensemble.components, EmptyComponent(0, 9)), factors=(*ensemble.factors, 0.1)
    )
    found = json.loads(text(nothing))
    assert {one["kind"] for one in found["components"]} == {"smooth", "lines", "nothing"}
    return json.dumps(found)


def first_of(kind: str, components: list[dict[str, Any]]) -> int:
    return next(i for i, one in enumerate(components) if one["kind"] == kind)


@pytest.mark.parametrize(
    ("path", "value", "words"),
    [
        (("version",), 6, "made by a newer gpuboost"),
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
        (("components", "smooth", "space"), 77, r"components\[{at}\].space"),
        (("components", "smooth", "coefficients"), [1.0], r"components\[{at}\].coefficients"),
        (("components", "smooth", "output"), 1, r"components\[{at}\].output"),
        (("components", "smooth", "kind"), "magic", r"components\[{at}\].kind"),
        (("components", "smooth"), 3, r"components\[{at}\]: an object"),
        (("components", "lines", "along"), [], r"components\[{at}\].along"),
        (("components", "lines", "along", 0, 0), 99, r"components\[{at}\].along\[0\]\[0\]"),
        (("components", "lines", "slopes"), [], r"components\[{at}\].slopes"),
        (("components", "lines", "value", 0), 1.0, r"components\[{at}\].value"),
        (("centres",), [], "centres: lines in leaves need them"),
        (("centres", 0), [1.0], r"centres\[0\]"),
        (("spaces",), {}, "spaces: a list"),
    ],
)
def test_a_damaged_file_is_refused_where_it_is_damaged(path: tuple[Any, ...], value: Any, words: str) -> None:
    """``{at}``: the place of the first component of the kind that the path names."""
    found = json.loads(saved())
    file.from_json(json.dumps(found))
    if path[0] == "components":
        place = first_of(path[1], found["components"])
        path, words = (path[0], place, *path[2:]), words.replace("{at}", str(place))
    at = found
    for key in path[:-1]:
        at = at[key]
    at[path[-1]] = value
    with pytest.raises(gb.InputError, match=words):
        file.from_json(json.dumps(found))


@pytest.mark.parametrize("key", ["family", "cells", "mean"])
def test_a_missing_or_unknown_entry_is_refused(key: str) -> None:
    for change in (lambda one: one.pop(key), lambda one: one.update(more=1)):
        found = json.loads(saved())
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


SANITIZED = """
import numpy as np
from support.builders import random_case, random_gradients
from emulator import emulated_runtime
from gpuboost.backends.cuda.backend import Cuda
from gpuboost.backends.reference.backend import Reference
from gpuboost.components import Grid

data, rng = random_case(1, 2_100, 3, most_cuts=30).data, np.random.default_rng(0)
gradients = random_gradients(rng, 2_100, "plain")
backend, own = Cuda(runtime := emulated_runtime("random")), np.arange(256, dtype=np.int32)
for grid in (Grid((1,), (own,), 257), Grid((0, 2), (own * 256, own), 65_536)):
    expected = Reference().smoothing().cells(gradients, None, 0, grid, data.bins)
    assert backend.smoothing().cells(gradients, None, 0, grid, data.bins).tobytes() == expected.tobytes()
    steps, scores = rng.normal(size=grid.n_cells), np.zeros(2_100)
    found = runtime.upload(scores)
    backend.smoothing().add(found, steps, grid, data.bins)
    Reference().smoothing().add(scores, steps, grid, data.bins)
    assert runtime.download(found).tobytes() == scores.tobytes()
"""


@pytest.mark.slow
@pytest.mark.parametrize("sanitize", ["address", "thread"])
def test_no_kernel_races_or_strays(sanitize: str) -> None:
    result = sanitized(sanitize, SANITIZED)
    assert result.returncode == 0, result.stdout
