"""Semi-greedy selection: the group of the largest gain when it was last searched."""

from __future__ import annotations

import pickle
from typing import Any

import numpy as np
import pytest

import gpuboost as gb

rng = np.random.default_rng(0)
X = rng.integers(0, 9, (150, 4)).astype(float)
Y = X[:, 0] + 0.5 * X[:, 2] + 0.1 * X[:, 3] + rng.normal(size=150)
KW: dict[str, Any] = {
    "max_depth": 1, "n_jobs": 1, "random_state": 0, "reg_lambda": 0.0, "min_child_weight": 0.0, "learning_rate": 0.3,
}  # fmt: skip


def best_gain(r: np.ndarray, columns: np.ndarray) -> float:
    """The largest fall of half the squared residuals, times 2, by a stump on one of the columns."""
    best = 0.0
    for column in columns.T:
        for cut in np.unique(column)[:-1]:
            left = column <= cut
            parts = [r[side].sum() ** 2 / side.sum() for side in (left, ~left)]
            best = max(best, sum(parts) - r.sum() ** 2 / len(r))
    return best


@pytest.mark.parametrize("labels", [None, ["a", "b", "a", "c"]])
def test_the_queue_is_that_of_the_definition(labels: Any) -> None:
    rule = gb.SemiGreedyGroups() if labels is None else gb.SemiGreedyGroups(labels)
    model = gb.GradientBoostingRegressor(n_estimators=25, learners=rule, **KW).fit(X, Y)
    numbers = np.arange(4) if labels is None else np.array([0, 1, 0, 2])
    queue, f = np.full(numbers.max() + 1, np.inf), np.full(150, model.ensemble_.bias[0])
    for tree, after in zip(model.ensemble_.trees, model.trace(X)[:, 0], strict=True):
        group = int(np.argmax(queue))
        assert numbers[tree.nodes.feature[0]] == group
        queue[group] = best_gain(Y - f, X[:, numbers == group])
        f = after
    taken = np.bincount([numbers[tree.nodes.feature[0]] for tree in model.ensemble_.trees])
    assert taken.argmax() == 0
    assert taken.min() >= 1


def test_a_continued_fit_knows_the_queue(tmp_path: Any) -> None:
    kw = {**KW, "learners": gb.SemiGreedyGroups()}
    full = gb.GradientBoostingRegressor(n_estimators=12, **kw).fit(X, Y)
    for first in (2, 7):
        start = gb.GradientBoostingRegressor(n_estimators=first, **kw).fit(X, Y)
        start.save_model(tmp_path / "model.json")
        loaded = gb.load_model(tmp_path / "model.json")
        assert loaded.learners == gb.SemiGreedyGroups() == pickle.loads(pickle.dumps(loaded.learners))
        more = gb.GradientBoostingRegressor(n_estimators=12 - first, **kw).fit(X, Y, init_model=loaded)
        assert more.predict(X).tobytes() == full.predict(X).tobytes()


def test_several_outputs_add_their_gains() -> None:
    labels = np.digitize(Y, np.quantile(Y, [0.3, 0.7]))
    model = gb.GradientBoostingClassifier(n_estimators=9, learners=gb.SemiGreedyGroups(), **KW).fit(X, labels)
    queue = np.full(4, np.inf)
    for first in range(0, 27, 3):
        nodes = [tree.nodes for tree in model.ensemble_.trees[first : first + 3]]
        assert {int(one.feature[0]) for one in nodes} <= {int(np.argmax(queue)), -1}
        queue[np.argmax(queue)] = sum(float(one.gain[0]) for one in nodes)


def test_verdicts() -> None:
    def kind(**more: Any) -> str:
        model = gb.GradientBoostingRegressor(**{**KW, "learners": gb.SemiGreedyGroups(), **more})
        return str(model.check(X, Y).kind)

    assert kind() == "heuristic"
    for refused in (
        {"max_depth": 2}, {"execution": gb.SimulatedWorkers(2)}, {"execution": gb.DataParallel(2)},
        {"base_learner": gb.learners.Linear()}, {"langevin": gb.Langevin(random_from=2)},
    ):  # fmt: skip
        assert kind(**refused) == "refused", refused
    with pytest.raises(ValueError, match="SemiGreedyGroups takes features"):
        gb.SemiGreedyGroups("root")
    with pytest.raises(RuntimeError, match="gains of past rounds choose the learners on the CPU"):
        gb.GradientBoostingRegressor(learners=gb.SemiGreedyGroups(), device="cuda", **KW).fit(X, Y)


def test_the_queue_is_not_of_statistics_that_change() -> None:
    kw = {**KW, "n_estimators": 3, "learners": gb.SemiGreedyGroups(), "categorical_features": [0]}
    model = gb.GradientBoostingRegressor(categorical_encoding=gb.OrderedTargetStatistics(), **kw)
    with pytest.raises(ValueError, match="keeps a queue of gains, and columns of statistics change"):
        model.fit(X, Y)
    model.set_params(categorical_encoding="partition").fit(X, Y)
