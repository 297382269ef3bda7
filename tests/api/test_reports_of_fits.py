"""The report of a fit says what happened in it."""

from __future__ import annotations

import numpy as np
import pytest

import gpuboost as gb

rng = np.random.default_rng(0)
X = rng.normal(size=(400, 2))
Y = X[:, 0] + 0.3 * rng.normal(size=400)


def test_a_fit_of_too_few_rows_is_warned_of():
    few = np.arange(7.0)[:, None]
    with pytest.warns(UserWarning, match=r"there are 7 rows.*curvature of at most 1\.75.*no tree will have a split"):
        model = gb.GradientBoostingClassifier(n_jobs=1).fit(few, np.arange(7) > 3)
    assert np.ptp(model.predict_proba(few)[:, 1]) == 0.0
    assert model.fit_report_.rounds_without_split == 100
    gb.GradientBoostingClassifier(n_jobs=1, min_child_weight=0.5).fit(few, np.arange(7) > 3)
    gb.GradientBoostingRegressor(n_jobs=1).fit(few, np.arange(7.0))


def test_leaves_that_need_more_rows_than_there_are_are_warned_of():
    few, weight = np.arange(30.0)[:, None], np.arange(30) % 2
    small = gb.GradientBoostingRegressor("absolute_error", n_estimators=3, min_samples_leaf=15, n_jobs=1)
    small.fit(few, few[:, 0])
    with pytest.warns(UserWarning, match=r"min_samples_leaf: there are 15 rows, and two leaves need 30 .* no tree"):
        small.fit(few, few[:, 0], sample_weight=weight)
    assert small.fit_report_.rounds_without_split == 3


def test_rounds_without_a_split_are_counted():
    model = gb.GradientBoostingClassifier(n_estimators=150, reg_lambda=0.0, n_jobs=1, learning_rate=0.5).fit(
        X, X[:, 0] > 0
    )
    stumps = sum(len(tree.nodes.feature) == 1 for tree in model.ensemble_.trees)
    assert 0 < stumps == model.fit_report_.rounds_without_split < 150
    assert f"{stumps} found no split" in str(model.fit_report_)
    assert "no split" not in str(gb.GradientBoostingRegressor(n_estimators=3, n_jobs=1).fit(X, Y).fit_report_)


def test_rounds_without_progress_of_other_base_learners_are_counted():
    lines = gb.GradientBoostingRegressor(n_estimators=4, base_learner=gb.learners.Linear(), n_jobs=1)
    assert lines.fit(X, np.ones(400)).fit_report_.rounds_without_split == 4
    assert lines.fit(X, Y).fit_report_.rounds_without_split == 0


def test_the_report_of_a_continued_fit_tells_old_rounds_from_new_ones():
    first = gb.GradientBoostingRegressor(n_estimators=50, n_jobs=1).fit(X, Y)
    report = gb.GradientBoostingRegressor(n_estimators=10, n_jobs=1).fit(X, Y, init_model=first).fit_report_
    assert (report.rounds_before, report.rounds, report.rounds_kept) == (50, 10, 60)
    assert "10 rounds after 50 earlier ones (60 kept)" in str(report)
    assert "3 rounds (3 kept)" in str(gb.GradientBoostingRegressor(n_estimators=3, n_jobs=1).fit(X, Y).fit_report_)


def test_a_default_classifier_is_not_said_to_rise():
    model = gb.GradientBoostingClassifier(n_estimators=3, n_jobs=1).fit(X, X[:, 0] > 0)
    assert "the training loss never rose" in str(model.guarantee_)
    assert "could rise" not in str(model.guarantee_) + str(model.fit_report_)


def test_docstrings_name_all_that_is_random_and_whose_leaves_are_sampled():
    for kind in (gb.GradientBoostingRegressor, gb.GradientBoostingClassifier, gb.GradientBoostingRanker):
        text = kind.__doc__
        assert "nothing else is random" not in text
        assert "always those of all rows" not in text
        assert all(word in text for word in ("random_strength", "each ``random_state``", "variance_control"))


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("forced_splits", {"feature": 0, "threshold": 0.1}),
        ("feature_costs", gb.FeatureCosts(1.0)),
        ("extra_trees", True),
    ],
)
def test_a_search_without_a_rate_is_heuristic(name: str, value: object) -> None:
    x = np.random.default_rng(0).normal(size=(50, 2))
    plain = gb.GradientBoostingRegressor(n_estimators=1, step="gradient", device="cpu").fit(x, x[:, 0])
    assert plain.fit_report_.verdict.kind == "sound"
    verdict = plain.set_params(**{name: value}).fit(x, x[:, 0]).fit_report_.verdict
    assert verdict.kind == "heuristic"
    assert verdict.reasons[0].startswith(f"{name}: no rate is known")
