"""Random-forest mode: models that are the mean of their rounds."""

from __future__ import annotations

import numpy as np
import pytest
from sklearn.datasets import make_friedman1
from support.builders import random_case
from support.training import MACHINES, assert_parity

import gpuboost as gb
from gpuboost import losses
from gpuboost.learners import RandomGroups
from gpuboost.recipe import Recipe
from gpuboost.sampling import UniformSampling
from gpuboost.steps import QuantileStep

rng = np.random.default_rng(0)
X = rng.normal(size=(200, 3))
Y = X[:, 0] - X[:, 1] + 0.3 * rng.normal(size=200)
GRADES = np.digitize(X[:, 0], [-0.5, 0.5])
SAMPLED = gb.UniformSampling(0.5, variance_control="none")


def forest(rounds=6, *, estimator=gb.GradientBoostingRegressor, **params):
    usual = {"learning_rate": gb.Averaging(), "sampling": SAMPLED, "max_depth": 3, "n_jobs": 1, "random_state": 0}
    return estimator(n_estimators=rounds, **{**usual, **params})


def single_trees(model):
    """(rounds, n) each tree's prediction less the start."""
    leaves = model.apply(X)
    return np.array([tree.value[leaves[:, i]] for i, tree in enumerate(model.ensemble_.trees)])


@pytest.mark.parametrize(
    "params", [{}, {"loss": "absolute_error"}, {"loss": "huber", "step": "line_search"}, {"sampling": 0.5}]
)
def test_a_model_is_its_start_and_the_mean_of_its_trees_after_every_round(params):
    model = forest(**params).fit(X, Y)
    trees, start = single_trees(model), model.ensemble_.bias[0]
    for rounds, staged in enumerate(model.staged_predict(X), 1):
        np.testing.assert_allclose(staged, start + trees[:rounds].mean(axis=0), rtol=1e-12, atol=1e-14)
        assert model[:rounds].predict(X).tobytes() == staged.tobytes()
    assert len({tree.value.tobytes() for tree in model.ensemble_.trees}) == 6


def test_every_tree_is_fitted_at_the_start():
    """Trees of all rows and features are one tree, whose mean it is."""
    model = forest(sampling=None).fit(X, Y)
    assert len({tree.value.tobytes() for tree in model.ensemble_.trees}) == 1
    one = forest(1, sampling=None, learning_rate=1.0).fit(X, Y)
    np.testing.assert_allclose(model.predict(X), one.predict(X), rtol=1e-12)


@pytest.mark.slow
@pytest.mark.parametrize("machine", MACHINES)
def test_every_machine_makes_the_same_model(machine):
    data = random_case(4, 200, 3, target="binary").data
    rates = tuple(gb.Averaging()(t) for t in range(4))
    made = {"rounds": 4, "learning_rate": 1.0, "rates": rates, "averages": True, "learners": RandomGroups(2)}
    assert_parity(Recipe(losses.Logistic(), sampling=UniformSampling(0.6, "none"), **made), data, machine)
    assert_parity(Recipe(losses.AbsoluteError(), step=QuantileStep(), **made), data, machine)


@pytest.mark.slow
def test_a_preset_is_as_good_as_scikit_learns_forest():
    from sklearn.ensemble import RandomForestRegressor

    x, y = make_friedman1(900, noise=1.0, random_state=0)
    ours = gb.GradientBoostingRegressor(**gb.presets.random_forest(n_estimators=50), n_jobs=1, random_state=0)
    theirs = RandomForestRegressor(50, max_features=1 / 3, random_state=0, n_jobs=1)
    scores = [model.fit(x[:600], y[:600]).score(x[600:], y[600:]) for model in (ours, theirs)]
    assert scores[0] > scores[1] - 0.01 > 0.7


@pytest.mark.slow
def test_classes_rankings_and_other_learners():
    classifier = forest(estimator=gb.GradientBoostingClassifier).fit(X, GRADES)
    assert classifier.score(X, GRADES) > 0.8
    ranker = forest(estimator=gb.GradientBoostingRanker, sampling=None).fit(X, GRADES, group=[20] * 10)
    assert ranker.score(X, GRADES, group=[20] * 10) > 0.8
    lines = forest(base_learner=gb.learners.Linear(), learners=1 / 3, sampling=0.5, max_depth=6).fit(X, Y)
    assert np.isfinite(lines.predict(X)).all()


def test_model_files_exports_and_contributions(tmp_path):
    model = forest().fit(X, Y)
    loaded = gb.loads(gb.dumps(model))
    assert loaded.learning_rate == gb.Averaging()
    assert gb.dumps(loaded) == gb.dumps(model)
    assert loaded.predict(X).tobytes() == model.predict(X).tobytes()
    np.testing.assert_allclose(model.predict_contributions(X).sum(axis=1), model.predict(X), rtol=1e-9, atol=1e-12)
    np.testing.assert_allclose(model.predictor().predict(X), model.predict(X), rtol=1e-12)
    table = gb.export.trees_to_table(model)
    assert abs(float(np.max(table["value"]))) < 1.0 if "value" in table else len(table)


def test_a_forest_goes_on(tmp_path):
    whole = forest().fit(X, Y)
    half = forest(3).fit(X, Y)
    assert forest(3).fit(X, Y, init_model=half).predict(X).tobytes() == whole.predict(X).tobytes()
    path = tmp_path / "checkpoint.json"
    forest(3, callbacks=[gb.callbacks.Checkpoint(path, every=3)]).fit(X, Y)
    assert gb.dumps(forest().fit(X, Y, resume_from=path)) == gb.dumps(whole)
    with pytest.raises(gb.RecipeError, match=r"learning_rate: gb.Averaging.* the model to continue is a sum"):
        forest(3).fit(X, Y, init_model=forest(3, learning_rate=0.1).fit(X, Y))
    boosted = forest(20, learning_rate=0.3, sampling=None).fit(X, Y, init_model=half)
    assert boosted.score(X, Y) > half.score(X, Y)


def test_eval_sets_see_the_mean_and_early_stopping_keeps_it():
    model = forest(30, early_stopping_rounds=4).fit(X[:120], Y[:120], eval_set=(X[120:], Y[120:]))
    seen = model.evals_result_["validation_0"]["rmse"]
    best = np.sqrt(np.mean((model.predict(X[120:]) - Y[120:]) ** 2))
    assert best == pytest.approx(min(seen), rel=1e-12)
    assert model.n_iter_ == np.argmin(seen) + 1


def test_theory_promises_no_descent():
    model = forest(sampling=None)
    assert model.check(X, Y).kind == "heuristic"
    assert "no descent" in str(model.check(X, Y))
    assert model.fit(X, Y).guarantee_.kind == "none"


def test_workers_build_a_forest_and_replay_it():
    workers = gb.SimulatedWorkers(3, build_time=1.0, server_time=0.2)
    model = forest(execution=workers).fit(X, Y)
    np.testing.assert_allclose(model.predict(X), model.ensemble_.bias[0] + single_trees(model).mean(axis=0), rtol=1e-12)
    assert gb.dumps(forest(execution=gb.Replay(model.log_)).fit(X, Y)) == gb.dumps(model)


def test_pieces_that_make_no_mean_are_refused():
    pd = pytest.importorskip("pandas")
    damp = gb.SimulatedWorkers(3, build_time=1.0, server_time=0.2, staleness="damp")
    for params, why in (
        ({"execution": damp}, "in which no tree counts less for coming late"),
        ({"sampling": gb.ImportanceSampling(0.5, variance_control="node")}, "takes every gradient at the start"),
        ({"sampling": gb.ImportanceSampling(0.5, floor=0.3, frozen_from=2)}, "takes every gradient at the start"),
        ({"langevin": gb.Langevin(), "sampling": None}, "the theorem of Langevin boosting is for one rate"),
    ):
        with pytest.raises(gb.RecipeError, match=f"learning_rate: .*{why}"):
            forest(**params).fit(X, Y)
    frame = pd.DataFrame({"a": X[:, 0], "b": pd.Categorical(GRADES)})
    with pytest.raises(gb.RecipeError, match="several permutations"):
        forest(categorical_encoding=gb.OrderedTargetStatistics(permutations=2)).fit(frame, Y)
    with pytest.raises(gb.RecipeError, match="init_score: a mean of trees"):
        forest().fit(X, Y, init_score=np.ones(200))
    with pytest.raises(gb.InputError, match=r"refit: .*all fitted at the start"):
        forest().fit(X, Y).refit(X, Y)
