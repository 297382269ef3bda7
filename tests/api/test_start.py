"""``start``: the score of every row before the first tree."""

from __future__ import annotations

import copy
import pickle

import numpy as np
import pytest

import gpuboost as gb
from gpuboost.cli import main

rng = np.random.default_rng(0)
X = rng.normal(size=(200, 3))
Y = 5.0 + X[:, 0] + 0.1 * rng.normal(size=200)
LABELS = (X[:, 0] + rng.normal(size=200) > 0.5).astype(int)
WEIGHT = rng.uniform(0.5, 2.0, 200)


def regressor(rounds=0, **params):
    return gb.GradientBoostingRegressor(n_estimators=rounds, n_jobs=1, random_state=0, **params)


def classifier(rounds=0, **params):
    return gb.GradientBoostingClassifier(n_estimators=rounds, n_jobs=1, random_state=0, **params)


def test_a_number_is_the_score_of_every_row():
    assert (regressor(start=0.0).fit(X, Y).predict(X) == 0.0).all()
    assert (regressor(start=-1.5).fit(X, Y).predict(X) == -1.5).all()
    assert (regressor(loss="poisson", start=0).fit(X, np.rint(Y)).predict(X) == 1.0).all()
    three = classifier(start=0.0).fit(X, rng.integers(0, 3, 200))
    np.testing.assert_allclose(three.predict_proba(X), 1 / 3)


def test_the_mean_is_that_of_the_targets_as_a_score():
    model = regressor(start="mean", loss="absolute_error").fit(X, Y, WEIGHT)
    assert model.predict(X)[0] == pytest.approx(np.average(Y, weights=WEIGHT), abs=1e-6)
    scores = classifier(start="mean").fit(X, LABELS).decision_function(X)
    assert scores[0] == pytest.approx(LABELS.mean(), abs=1e-6)  # of labels, not their log-odds


def test_half_log_odds_are_half_the_best_constant_of_logistic_loss():
    p = np.average(LABELS, weights=WEIGHT)
    scores = classifier(start="half_log_odds").fit(X, LABELS, WEIGHT).decision_function(X)
    assert scores[0] == pytest.approx(0.5 * np.log(p / (1 - p)), abs=1e-6)
    half, best = (classifier(3, loss="exponential", start=start) for start in ("half_log_odds", "optimum"))
    assert half.fit(X, LABELS).predict_proba(X).tobytes() == best.fit(X, LABELS).predict_proba(X).tobytes()


def test_the_optimum_is_the_default_and_0_is_that_of_the_published_langevin():
    assert regressor(3, start="optimum").fit(X, Y).predict(X).tobytes() == regressor(3).fit(X, Y).predict(X).tobytes()
    paper = regressor(3, langevin=gb.Langevin(paper=True, shrinkage=0.01)).fit(X, Y)
    zero = regressor(3, langevin=gb.Langevin(shrinkage=0.01), start=0.0).fit(X, Y)
    assert paper.predict(X).tobytes() == zero.predict(X).tobytes()
    assert (regressor(langevin=gb.Langevin(paper=True), start=2.0).fit(X, Y).predict(X) == 2.0).all()


def test_trees_begin_with_the_gradients_at_the_start():
    model = regressor(1, start=0.0, max_depth=1, learning_rate=1.0, reg_lambda=0.0).fit(X, Y)
    left = X[:, 0] <= model.ensemble_.cuts.thresholds[0][model.ensemble_.trees[0].nodes.bin[0]]
    assert model.predict(X[left])[0] == pytest.approx(Y[left].mean(), abs=1e-5)


@pytest.mark.parametrize("start", ["best", True, None, np.nan, np.inf, [0.0], 1e40])
def test_other_starts_are_refused(start):
    rule = r"start: must be 'optimum', 'mean', 'half_log_odds' or a number from -1e\+30 to 1e\+30; got"
    with pytest.raises(ValueError, match=rule):
        regressor(start=start).fit(X, Y)


def test_starts_that_a_loss_does_not_have_are_refused():
    with pytest.raises(ValueError, match="'half_log_odds' is for losses of two classes"):
        regressor(start="half_log_odds").fit(X, Y)
    with pytest.raises(ValueError, match="'mean' is for losses of one target and one score"):
        classifier(start="mean").fit(X, rng.integers(0, 3, 200))
    ranker = gb.GradientBoostingRanker(n_estimators=1, start="mean")
    assert ranker.check(X, LABELS, group=np.repeat(np.arange(20), 10)).kind == "refused"


def test_a_saved_model_keeps_its_start_and_a_continued_one_says_whose_it_is(tmp_path):
    model = regressor(3, start=0.0).fit(X, Y)
    model.save_model(tmp_path / "model.json")
    loaded = gb.load_model(tmp_path / "model.json")
    assert loaded.start == 0.0
    assert loaded.predict(X).tobytes() == model.predict(X).tobytes()
    whole = regressor(6, start=0.0).fit(X, Y)
    assert regressor(3, start=0.0).fit(X, Y, init_model=model).predict(X).tobytes() == whole.predict(X).tobytes()
    with pytest.warns(UserWarning, match=r"start: 'mean' has no effect"):
        regressor(3, start="mean").fit(X, Y, init_model=model)


def test_pickles_of_versions_without_the_parameter_load():
    model = regressor(2).fit(X, Y)
    state = model.__getstate__()
    del state["start"]
    old = copy.copy(model)
    old.__dict__.clear()
    old.__setstate__(state)
    assert old.get_params()["start"] == "optimum"
    report = pickle.loads(pickle.dumps(model)).fit_report_
    assert str(report) == str(model.fit_report_)
    shorter = copy.copy(report)
    shorter.__setstate__([getattr(report, name) for name in report.__slots__[:-2]])
    assert shorter.rounds_before == 0


@pytest.mark.parametrize(("text", "start"), [("mean", "mean"), ("0", 0.0), ("-1.5", -1.5)])
def test_the_command_line_has_it(text, start, tmp_path):
    table, model = tmp_path / "rows.csv", tmp_path / "model.json"
    np.savetxt(table, np.column_stack([X, Y]), delimiter=",", header="a,b,c,y", comments="")
    command = ["train", str(table), "--target", "y", "--start", text, "--model", str(model), "--n-estimators", "2"]
    assert main([*command, "--quiet"]) == 0
    assert gb.load_model(model).start == start
