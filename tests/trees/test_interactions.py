"""interaction_cst: predictions are sums of functions of the columns that may interact, as scikit-learn means it."""

from __future__ import annotations

from itertools import combinations
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from sklearn.base import clone
from sklearn.ensemble import HistGradientBoostingRegressor
from threadpoolctl import threadpool_limits

import gpuboost as gb

Array = np.ndarray
RNG = np.random.default_rng(0)
X = RNG.uniform(-1.0, 1.0, (400, 4))
Y = 2.0 * X[:, 0] * X[:, 1] + X[:, 2] * X[:, 3] + X[:, 0] * X[:, 3] + 0.1 * RNG.normal(size=400)


def interaction(model: Any, first: int, second: int) -> float:
    """The largest second difference of predictions in two columns: 0 where they do not interact."""
    rows = X[:60].copy()
    moved = []
    for a in (-0.5, 0.5):
        for b in (-0.5, 0.5):
            rows[:, first], rows[:, second] = a, b
            moved.append(model.predict(rows))
    return float(np.abs(moved[0] - moved[1] - moved[2] + moved[3]).max())


def may_interact(sets: list[list[int]]) -> set[tuple[int, int]]:
    return {tuple(sorted(pair)) for one in sets for pair in combinations(one, 2)}  # type: ignore[misc]


RECIPES: list[dict[str, Any]] = [
    {},
    {"growth": "leafwise", "max_depth": None, "max_leaves": 20, "min_samples_leaf": 4},
    {"growth": "oblivious", "max_depth": 4},
    {"learners": gb.RandomByNode(3), "sampling": 0.5, "random_strength": 1.0},
    {"langevin": gb.Langevin(), "n_estimators": 10},
    {"execution": gb.SimulatedWorkers(3), "sampling": gb.ImportanceSampling(0.5)},
    {"execution": gb.DataParallel(2)},
    {"monotonic_cst": [1, 0, 0, -1]},
]


@pytest.mark.parametrize("params", RECIPES, ids=[str(list(one.items())[:1]) for one in RECIPES])
def test_only_columns_of_one_set_interact(params: dict[str, Any]) -> None:
    sets = [[0, 1], [1, 2, 3]]
    free = gb.GradientBoostingRegressor(**{"n_estimators": 25, "random_state": 0, "n_jobs": 2} | params).fit(X, Y)
    bound = clone(free).set_params(interaction_cst=sets).fit(X, Y)
    for pair in combinations(range(4), 2):
        assert (interaction(bound, *pair) > 1e-9) <= (pair in may_interact(sets))
    assert interaction(bound, 0, 1) > 0.1
    assert interaction(free, 0, 3) > 0.01


@pytest.mark.parametrize(
    ("given", "sets"),
    [
        ("no_interactions", [[0], [1], [2], [3]]),
        ("pairwise", [list(pair) for pair in combinations(range(4), 2)]),
        ([[0, 1]], [[0, 1], [2, 3]]),  # columns of no set are one more
        ([{2, 3}, (0,)], [[0], [1], [2, 3]]),
        (None, [[0, 1, 2, 3]]),
        ([range(4), [0, 1]], [[0, 1, 2, 3]]),
    ],
)
def test_words_names_and_columns_of_no_set(given: Any, sets: list[list[int]]) -> None:
    """Indices, names and a Dataset make the model of the sets written out; one set of all columns forbids nothing."""
    model = gb.GradientBoostingRegressor(n_estimators=5, interaction_cst=given, n_jobs=1).fit(X, Y)
    listed = gb.GradientBoostingRegressor(n_estimators=5, interaction_cst=sets, n_jobs=1).fit(X, Y)
    assert (model.predict(X) == listed.predict(X)).all()
    frame = pytest.importorskip("pandas").DataFrame(X, columns=list("abcd"))
    names = [["abcd"[f] for f in one] for one in sets]
    by_name = gb.GradientBoostingRegressor(n_estimators=5, interaction_cst=names, n_jobs=1)
    assert (by_name.fit(gb.Dataset(frame, Y)).predict(frame) == model.predict(X)).all()


@pytest.mark.slow
@pytest.mark.parametrize(
    ("sets", "forbidden"),
    [
        ("pairwise", []),
        ("no_interactions", list(combinations(range(4), 2))),
        ([[0, 1]], [(0, 2), (0, 3), (1, 2), (1, 3)]),
        ([[0, 3], [1, 2, 3]], [(0, 1), (0, 2)]),
    ],
)
def test_scikit_learn_forbids_the_same(sets: Any, forbidden: list[tuple[int, int]]) -> None:
    """What is lost by the constraints is alike."""
    ours = gb.GradientBoostingRegressor(n_estimators=60, reg_lambda=0.0, interaction_cst=sets, n_jobs=1).fit(X, Y)
    with threadpool_limits(1, "openmp"):
        theirs = HistGradientBoostingRegressor(
            max_iter=60, interaction_cst=sets, max_depth=6, min_samples_leaf=1, early_stopping=False
        ).fit(X, Y)
        for pair in forbidden:
            assert interaction(ours, *pair) < 1e-9 > interaction(theirs, *pair)
        assert ours.score(X, Y) == pytest.approx(theirs.score(X, Y), abs=0.08)


def test_a_constraint_is_part_of_the_model_file(tmp_path: Path) -> None:
    frame = pytest.importorskip("pandas").DataFrame(X, columns=list("abcd"))
    model = gb.GradientBoostingRegressor(n_estimators=3, interaction_cst=[{"b", "a"}, ("c", "d")]).fit(frame, Y)
    model.save_model(tmp_path / "model.json")
    loaded = gb.load_model(tmp_path / "model.json")
    assert loaded.interaction_cst == [["a", "b"], ["c", "d"]]
    again = loaded.set_params(n_estimators=3).fit(frame, Y)
    assert (again.predict(frame) == model.predict(frame)).all()
    assert '"interaction_cst"' not in gb.dumps(gb.GradientBoostingRegressor(n_estimators=1).fit(X, Y))


def test_statistics_of_a_category_belong_to_its_column() -> None:
    """Also those of several classes and of counts; a combination is in the sets that hold all of its columns."""
    pd = pytest.importorskip("pandas")
    rng = np.random.default_rng(1)
    town, job, age = rng.integers(0, 30, 600), rng.integers(0, 20, 600), rng.normal(size=600)
    y = (np.sin(town) * np.cos(job) + np.sin(job) * age > 0.0) * 1 + (np.sin(town) > 0.7)
    frame = pd.DataFrame({"town": town.astype(str), "job": job.astype(str), "age": age})
    frame = frame.astype({"town": "category", "job": "category"})
    for given, most in (("no_interactions", 1), ([["town", "job"], ["age"]], 2)):
        model = gb.GradientBoostingClassifier(
            n_estimators=4, max_depth=4, categorical_encoding="ordered", interaction_cst=given, n_jobs=1
        ).fit(frame, y)
        layout, used = model._saved().columns.layout, set()
        for tree in model.ensemble_.trees:
            nodes, above = tree.nodes, {0: frozenset[int]()}
            for v in np.flatnonzero(nodes.feature >= 0).tolist():
                of = layout[int(model.ensemble_.cuts.columns[nodes.feature[v]])].columns
                above[int(nodes.left[v])] = above[int(nodes.right[v])] = above[v] | set(of)
            used |= set(above.values())
        assert max(map(len, used)) == most
        assert all(one <= {0, 1} or one <= {2} for one in used)
