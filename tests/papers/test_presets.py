"""Presets of the papers, held to a few lines of NumPy of what the papers print."""

from __future__ import annotations

import inspect
import warnings
from itertools import pairwise

import numpy as np
import pytest

import gpuboost as gb

rng = np.random.default_rng(0)
N = 200
X = rng.integers(0, 6, (N, 3)).astype(float)
Y = X[:, 0] - 2.0 * (X[:, 1] > 3) + rng.normal(size=N)
LABELS = (X[:, 0] + rng.normal(size=N) > 2.5).astype(int)
SIGNS = 2.0 * LABELS - 1.0
PRESETS = [getattr(gb.presets, name) for name in dir(gb.presets) if name.endswith("_paper")]


def half_gradient(f):
    """Of logistic loss in half log-odds: 2 (psi - y)."""
    return 2.0 * (1.0 / (1.0 + np.exp(-2.0 * f)) - LABELS)


def leaves(tree, x=X):
    """(n,) node of each row."""
    node = np.zeros(len(x), int)
    for _ in range(30):
        inner = tree.nodes.feature[node] >= 0
        if not inner.any():
            break
        below = x[np.arange(len(x)), np.maximum(tree.nodes.feature[node], 0)] <= threshold(tree, node)
        node = np.where(inner, np.where(below, tree.nodes.left[node], tree.nodes.right[node]), node)
    return node


CUTS = [np.unique(column)[:-1] / 2 + np.unique(column)[1:] / 2 for column in X.T]


def threshold(tree, node):
    splits = zip(tree.nodes.feature[node], tree.nodes.bin[node], strict=True)
    return np.array([CUTS[feature][cut] if feature >= 0 else 0.0 for feature, cut in splits])


def means(values, groups):
    return (np.bincount(groups, values) / np.maximum(np.bincount(groups), 1))[groups]


@pytest.mark.parametrize("preset", PRESETS, ids=lambda preset: preset.__name__)
def test_presets_are_keyword_sets_of_the_estimators_without_a_warning(preset):
    params = {**preset(), "n_estimators": 3, "random_state": 0, "n_jobs": 1}
    kind = gb.GradientBoostingClassifier
    assert set(params) <= set(inspect.signature(kind).parameters)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert kind(**params).fit(X, LABELS).n_iter_ == 3
    assert "Deviations." in preset.__doc__


def test_there_is_a_preset_for_each_paper():
    names = {"sglb_paper", "rgbm_paper", "smart_paper", "asynch_sgbdt_paper", "functional_paper"}
    assert {preset.__name__ for preset in PRESETS} == names


def test_sglb_is_shrunk_means_of_the_gradient_from_0():
    """Algorithm 2 with next to no noise: F <- (1 - gamma eps) F - eps mean g, from F_0 = 0."""
    params = gb.presets.sglb_paper(n_estimators=6, max_depth=2, inverse_temperature=1e20, shrinkage=0.5)
    model = gb.GradientBoostingRegressor("huber", random_state=0, n_jobs=1, **params).fit(X, Y)
    f = np.zeros(N)
    for tree in model.ensemble_.trees:
        g = np.clip(f - Y, -model.loss_.parameter, model.loss_.parameter)
        f = (1 - 0.5 * 0.1) * f - 0.1 * means(g, leaves(tree))
    np.testing.assert_allclose(model.predict(X), f, atol=1e-5)


@pytest.mark.slow
def test_sglb_has_the_noise_of_the_printed_formula():
    params = gb.presets.sglb_paper(n_estimators=1, inverse_temperature=50.0)
    values = []
    for seed in range(300):
        model = gb.GradientBoostingRegressor("huber", random_state=seed, n_jobs=1, **params).fit(X, np.zeros(N))
        values.append(model.predict(X).mean() * np.sqrt(N))
    assert np.std(values) == pytest.approx(0.1 * np.sqrt(2 * N / (0.1 * 50.0)), rel=0.15)  # eps s


def test_sglb_has_the_borders_of_greedy_log_sum():
    x = rng.normal(size=(800, 1))
    model = gb.GradientBoostingRegressor("huber", n_jobs=1, **gb.presets.sglb_paper(n_estimators=1)).fit(x, x[:, 0])
    below = (x <= model.ensemble_.cuts.thresholds[0]).mean(axis=0)
    np.testing.assert_allclose(below, [1 / 8, 1 / 4, 3 / 8, 1 / 2, 3 / 4], atol=0.003)


@pytest.mark.parametrize("step", ["constant", "line_search"])
def test_rgbm_takes_the_stump_most_parallel_to_the_residual(step):
    """Algorithm 3, type 0, with the stumps of equation 5, on a strongly convex loss."""
    d, rounds = 0.05, 8
    params = gb.presets.rgbm_paper(selection=0, step=step, n_estimators=rounds)
    model = gb.GradientBoostingClassifier(gb.losses.Logistic(d), n_jobs=1, **params).fit(X, LABELS)
    stumps = [np.where(X[:, j] <= cut, 1.0, -1.0) / np.sqrt(N) for j in range(3) for cut in CUTS[j]]
    learners = np.column_stack([*stumps, np.ones(N) / np.sqrt(N)])
    f = np.zeros(N)

    def gradient(f):
        return -SIGNS / (1.0 + np.exp(SIGNS * f)) + d * f

    for _ in range(rounds):
        r = -gradient(f)
        j = np.argmax(np.abs(learners.T @ r))
        b = learners[:, j]
        rho = b @ r / (0.25 + d)
        if step == "line_search":
            low, high = 0.0, 10.0 * rho
            for _ in range(60):
                middle = 0.5 * (low + high)
                low, high = (middle, high) if (gradient(f + middle * b) @ b) * np.sign(rho) < 0 else (low, middle)
            rho = low
        f = f + rho * b
    np.testing.assert_allclose(model.decision_function(X), f, atol=2e-5)


@pytest.mark.parametrize(
    ("selection", "rule"),
    [(0, None), (1, gb.RandomLearners(4)), (2, gb.RandomGroup([0, 0, 1])), (3, gb.RandomGroups(4, [0, 0, 1]))],
)
def test_rgbm_has_the_four_types(selection, rule):
    groups = [0, 0, 1] if selection in (2, 3) else "feature"
    params = gb.presets.rgbm_paper(selection=selection, t=4, groups=groups)
    assert params["learners"] == rule
    assert gb.presets.rgbm_paper(stump="leaf")["growth"] == "depthwise"
    assert gb.presets.rgbm_paper(stump="sign")["growth"] == "sign_stump"


class Seen:
    """A sampling rule that notes the samples of another one."""

    def __init__(self, rule):
        self.rule, self.samples = rule, []
        self.variance_control, self.lag, self.eta = rule.variance_control, rule.lag, rule.eta

    def draw(self, backend, gradients, key):
        self.samples.append(self.rule.draw(backend, gradients, key))
        return self.samples[-1]


@pytest.mark.parametrize("rho", [0.4, 1e6])
def test_smart_order_1_is_newton_on_the_weighted_sample(rho):
    """Algorithm 2: p = min(1, rho |g|), leaf value - sum (g / p) / sum (h / p) over the rows drawn, from F_0 = 0."""
    params = gb.presets.smart_paper(1, rho=rho, n_estimators=4, learning_rate=0.2) | {"max_depth": 1}
    seen = Seen(params["sampling"])
    model = gb.GradientBoostingClassifier(random_state=0, n_jobs=1, **{**params, "sampling": seen}).fit(X, LABELS)
    f = np.zeros(N)
    for tree, sample in zip(model.ensemble_.trees, seen.samples, strict=True):
        g = half_gradient(f)
        h = np.abs(g) * (2.0 - np.abs(g))
        p = np.minimum(1.0, rho * np.abs(g))
        rows = sample.rows
        np.testing.assert_allclose(1.0 / sample.inverse_probability, p[rows], rtol=1e-4)
        leaf = leaves(tree)
        sums = [np.bincount(leaf[rows], part[rows] / p[rows], tree.size) for part in (g, h)]
        f = f - 0.2 * (sums[0] / np.where(sums[1] > 0, sums[1], 1.0))[leaf]
    np.testing.assert_allclose(model.decision_function(X), f, rtol=1e-3, atol=1e-4)


@pytest.mark.parametrize(("control", "rho"), [("node", 0.4), ("node", 1e6), ("previous_leaf", 0.7), ("none", 0.4)])
def test_smart_order_2_is_newton_on_corrected_gradients(control, rho):
    """Algorithm 3: p = min(1, rho h), g~ = q / p (g - g') + the mean of g', g' being the gradient one tree back.

    "node": the mean over all rows of the leaf being built, so that its sum is that of g'. "previous_leaf": over all
    rows of a leaf of the last tree, for the drawn rows, times q / p. "none": without the correction. F_0 = 0.
    """
    params = gb.presets.smart_paper(2, rho=rho, n_estimators=5, learning_rate=0.2, variance_control=control)
    seen = Seen(params["sampling"])
    given = {**params, "max_depth": 1, "min_samples_leaf": 20, "sampling": seen}
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # "previous_leaf" says that it stalls
        model = gb.GradientBoostingClassifier(random_state=0, n_jobs=1, **given).fit(X, LABELS)
    f, before, last = np.zeros(N), None, None
    for tree, sample in zip(model.ensemble_.trees, seen.samples, strict=True):
        g = half_gradient(f)
        h = np.abs(g) * (2.0 - np.abs(g))
        p, q = np.minimum(1.0, rho * h), np.ones(N)
        if sample.rows is not None:
            q = np.isin(np.arange(N), sample.rows).astype(float)
            np.testing.assert_allclose(1.0 / sample.inverse_probability, p[sample.rows], rtol=1e-4)
        weight = q / p
        if before is None or control == "none":
            corrected = weight * g
        elif control == "node":
            corrected = weight * (g - before) + before
        else:
            corrected = weight * (g - before + means(before, last))
        leaf = leaves(tree)
        sums = [np.bincount(leaf, part, tree.size) for part in (corrected, weight * h)]
        f = f - 0.2 * (sums[0] / np.where(sums[1] > 0, sums[1], 1.0))[leaf]
        before, last = g, leaf
    np.testing.assert_allclose(model.decision_function(X), f, rtol=1e-3, atol=1e-4)


def test_smart_order_2_draws_by_curvature_in_the_asked_reading():
    rule = gb.presets.smart_paper(2, rho=0.7)["sampling"]
    assert (rule.score, rule.rho, rule.floor, rule.variance_control) == ("hessian", 0.7, 0.0, "node")
    assert gb.presets.smart_paper(2, variance_control="previous_leaf")["sampling"].variance_control == "previous_leaf"
    assert "loss" not in gb.presets.smart_paper(loss=None)


def test_asynch_sgbdt_adds_old_means_of_the_drawn_rows_to_the_mean_label():
    """Equation 14 with all rows drawn: F <- F - v mean g of the version that the worker pulled."""
    params = gb.presets.asynch_sgbdt_paper(
        4, rate=1.0, n_estimators=9, max_leaves=4, learning_rate=0.1, build_time=1.0, server_time=0.01
    )
    model = gb.GradientBoostingClassifier(random_state=0, n_jobs=1, **params).fit(X, LABELS)
    versions = [np.full(N, np.float64(np.float32(LABELS.mean())))]
    for tree, line in zip(model.ensemble_.trees, model.log_.applied, strict=True):
        g = half_gradient(versions[line.pulled])
        versions.append(versions[-1] - 0.1 * means(g, leaves(tree)))
    assert max(line.applied - line.pulled for line in model.log_.applied) == 3
    np.testing.assert_allclose(model.decision_function(X), versions[-1], rtol=0, atol=1e-5)


def test_asynch_sgbdt_divides_by_all_rows_of_a_leaf():
    """Equation 14 with a half of the rows drawn: sums of g / p over the drawn rows, over all rows of the leaf."""
    params = gb.presets.asynch_sgbdt_paper(
        1, rate=0.5, n_estimators=1, max_leaves=2, learning_rate=1.0, build_time=1.0, server_time=0.01
    )
    model = gb.GradientBoostingClassifier(random_state=0, n_jobs=1, **params).fit(X, LABELS)
    start = np.full(N, np.float64(np.float32(LABELS.mean())))
    f, g = model.decision_function(X), half_gradient(start)
    for node in np.unique(leaves(model.ensemble_.trees[0])):
        rows = leaves(model.ensemble_.trees[0]) == node
        size = np.round((start - f)[rows][0] * rows.sum() / 2.0, 4)  # a sum of gradients of two values, 1 / p is 2
        values, counts = np.unique(np.round(g[rows], 9), return_counts=True)
        sums = [a * values[0] + b * values[-1] for a in range(counts[0] + 1) for b in range(counts[-1] + 1)]
        assert np.abs(np.array(sums) - size).min() < 1e-3


def test_asynch_sgbdt_draws_rows_by_version_and_four_fifths_of_the_features():
    params = gb.presets.asynch_sgbdt_paper(3, rate=0.6)
    assert (params["sampling"], params["learners"]) == (
        gb.UniformSampling(0.6, variance_control="horvitz_thompson"),
        0.8,
    )
    execution = params["execution"]
    assert (type(execution), execution.workers, execution.sample_at) == (gb.Asynchronous, 3, "version")
    assert (params["max_leaves"], params["max_depth"], params["n_estimators"]) == (100, None, 400)
    assert gb.presets.asynch_sgbdt_paper(start="half_log_odds")["start"] == "half_log_odds"


@pytest.mark.parametrize("learner", [None, gb.learners.Spline(), gb.learners.Linear()], ids=["trees", "spline", "line"])
def test_functional_descent_goes_to_the_minimum_along_each_learner(learner):
    params = gb.presets.functional_paper(learner, n_estimators=4)
    counts = np.rint(np.exp(0.3 * X[:, 0]))
    depth = {"max_depth": 2} if learner is None else {}
    model = gb.GradientBoostingRegressor("poisson", n_jobs=1, **depth, **params)
    stages = [np.log(counts.mean()) + np.zeros(N), *map(np.log, model.fit(X, counts).staged_predict(X))]
    for before, after in pairwise(stages):
        h = after - before
        assert abs((np.exp(after) - counts) @ h) <= 1e-4 * abs((np.exp(before) - counts) @ h)


@pytest.mark.parametrize(
    ("call", "name"),
    [
        (lambda: gb.presets.rgbm_paper(selection=4), "selection"),
        (lambda: gb.presets.rgbm_paper(step="newton"), "step"),
        (lambda: gb.presets.rgbm_paper(stump="both"), "stump"),
        (lambda: gb.presets.smart_paper(3), "order"),
        (lambda: gb.presets.smart_paper(True), "order"),
        (lambda: gb.presets.smart_paper(1, variance_control="node"), "variance_control"),
    ],
)
def test_unknown_variants_are_refused(call, name):
    with pytest.raises(ValueError, match=f"^{name}: "):
        call()
