"""SMART: importance sampling and the improved diagonal approximation. The oracles TS-1 to TS-13 and more.

TS-2, on thresholds, is in tests/parity/test_draw.py. Statistical tests have fixed seeds, and say how many standard
errors they allow.
"""

from __future__ import annotations

import itertools
from dataclasses import replace
from math import inf
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from emulator import emulated_gpu
from hypothesis import given, settings
from hypothesis import strategies as st
from support.builders import TEAMS, eager_threads, model_bytes, random_case, random_gradients
from support.examples import examples

import gpuboost as gb
from gpuboost import losses
from gpuboost.backends.cpu.backend import Cpu
from gpuboost.backends.numerics.leaf_values import newton_values
from gpuboost.backends.numerics.probabilities import GossRule, ProbabilityRule, ThresholdRule
from gpuboost.backends.numerics.random_numbers import uniform_bits
from gpuboost.backends.reference.backend import Reference
from gpuboost.backends.reference.sampling import probabilities, scores_of
from gpuboost.benchmarks.data import real
from gpuboost.benchmarks.harness.store import Data
from gpuboost.benchmarks.suites import smart
from gpuboost.boosting import boost
from gpuboost.errors import OutsideTheoryWarning
from gpuboost.growth import DepthWise
from gpuboost.keys import Key
from gpuboost.losses import Logistic, LogitBoost
from gpuboost.recipe import Recipe
from gpuboost.sampling import GOSS, EveryRow, ImportanceSampling, Sampling, smart_first_order, smart_second_order
from gpuboost.steps import ConstantStep, GradientStep, NewtonStep, Step
from gpuboost.types import Cuts, Gradients, Limits, Progress, Sample, TrainingSet

Array = np.ndarray
CPU = TEAMS[2]


def key(step: int, seed: int = 1) -> Key:
    return Key.root(seed) / "rows" / step


def logistic_gradients(n: int, seed: int = 6) -> Gradients:
    """Of a mis-specified model: confident, and often wrong."""
    rng = np.random.default_rng(seed)
    p = 1.0 / (1.0 + np.exp(-3.0 * rng.normal(size=n)))
    y = rng.random(n) < 0.5
    return Gradients((p - y).astype(np.float32)[None], (p * (1.0 - p)).astype(np.float32)[None])


def summed(gradients: Gradients, sample: Sample) -> tuple[float, float]:
    weighted = CPU.weigh(gradients, sample)
    return float(weighted.g[0].sum(dtype=float)), float(weighted.h[0].sum(dtype=float))


def run(recipe: Recipe, data: TrainingSet, seed: int = 0) -> list[float]:
    """The mean training loss after each round."""
    found: list[float] = []

    def watch(progress: Progress) -> bool:
        found.append(CPU.loss_value(recipe.loss, progress.scores, data.y, data.weight))
        return False

    boost(recipe, data, CPU, seed=seed, watch=watch)
    return found


# TS-1, TS-7: sampled sums


@pytest.mark.parametrize(
    ("kappa", "rule"),
    [
        (0.0, ThresholdRule(rate=0.1)),
        (0.0, ThresholdRule(rho=0.3)),
        (0.1, ThresholdRule(rate=0.1, floor=0.01)),
        (inf, ThresholdRule(rate=0.1)),
        (0.0, GossRule(0.1, 0.1)),
    ],
    ids=repr,
)
def test_ts1_sums_keep_their_expectation(kappa: float, rule: ProbabilityRule) -> None:
    """The mean over 1,500 draws within four standard errors, and Var = sum (1/p - 1) g^2 within 20 %."""
    gradients, draws = logistic_gradients(400), 1500
    p = probabilities(scores_of(gradients, kappa, None), rule)
    g = gradients.g[0].astype(float)
    sums = [summed(gradients, CPU.draw(gradients, kappa, rule, key(step)))[0] for step in range(draws)]
    variance = float(((1.0 / p - 1.0) * g * g).sum())
    assert abs(np.mean(sums) - g.sum()) < 4.0 * np.sqrt(variance / draws)
    assert np.var(sums) == pytest.approx(variance, rel=0.2 if kappa == 0.0 else 0.4)  # 1/p has a heavy tail for h


def test_mvs_has_the_least_variance_of_its_kind() -> None:
    """At the same rate, no other p has a smaller sum of (g^2 + kappa h^2) / p."""
    gradients, rng = logistic_gradients(2000), np.random.default_rng(0)
    scores = scores_of(gradients, 0.1, None).astype(float)
    p = probabilities(scores.astype(np.float32), ThresholdRule(rate=0.2))
    best = (scores**2 / p).sum()
    for scale in (0.01, 0.1, 0.5):
        for _ in range(50):
            other = np.clip(p * np.exp(scale * rng.normal(size=len(p))), 1e-9, 1.0)
            other = np.minimum(other * (p.sum() / other.sum()), 1.0)  # at most as many rows
            assert (scores**2 / other).sum() >= best * (1.0 - 1e-9)


@pytest.mark.parametrize("floor", [0.0, 0.02])
def test_ts7_rows_without_a_gradient_bias_the_hessian_unless_there_is_a_floor(floor: float) -> None:
    """Squared error, 30 % exact zeros: E[H] / H is 0.70 without a floor and 1 with one; 1,000 draws, 4 s.e."""
    rng, n, draws = np.random.default_rng(2), 500, 1000
    g = np.where(np.arange(n) < 0.3 * n, 0.0, rng.normal(size=n))
    gradients = Gradients(g.astype(np.float32)[None], np.ones((1, n), np.float32))
    rule = ThresholdRule(rate=0.2, floor=floor)
    found = np.array([summed(gradients, CPU.draw(gradients, 0.0, rule, key(step)))[1] / n for step in range(draws)])
    assert abs(found.mean() - (1.0 if floor else 0.7)) < 4.0 * found.std() / np.sqrt(draws)


def test_ts7_is_told_to_the_user() -> None:
    """30 % of the rows have the value that the model starts from."""
    rng = np.random.default_rng(0)
    x, half = rng.normal(size=(500, 2)), rng.normal(size=175)
    y = np.concatenate([np.zeros(150), half, -half])
    model = gb.GradientBoostingRegressor(
        sampling=smart_first_order(0.5, paper=True), n_estimators=1, random_state=0, device="cpu"
    )
    with pytest.warns(
        OutsideTheoryWarning, match=r"30\.0% of rows have sampling probability 0.*biased by factor 0\.70"
    ):
        model.fit(x, y)
    model.set_params(sampling__floor=0.01).fit(x, y)  # and warnings are errors here


# TS-3, TS-8: structure and leaves


@pytest.mark.parametrize("rule", [ImportanceSampling(1.0), ImportanceSampling(1.0, floor=0.5), gb.WeightTrimming(1.0)])
@pytest.mark.parametrize("target", ["binary", "3"])
def test_ts3_a_rate_of_one_is_no_sampling(rule: Sampling, target: str) -> None:
    case = random_case(3, 300, 4, target=target)
    recipe = Recipe(Logistic() if target == "binary" else losses.Softmax(3), 4, 0.3, DepthWise(Limits(12, 4)))
    plain = boost(recipe, case.data, CPU, seed=5)
    assert model_bytes(boost(replace(recipe, sampling=rule), case.data, CPU, seed=5)) == model_bytes(plain)


@pytest.mark.parametrize("rule", [ImportanceSampling(0.1), smart_second_order(0.05, variance_control="leaf_refit")])
@pytest.mark.parametrize("step", [NewtonStep(), GradientStep()])
def test_ts8_leaf_values_are_those_of_all_rows(rule: Sampling, step: Step) -> None:
    """Independently: float64 sums over the rows that the tree, as a model, sends to each leaf."""
    case = random_case(5, 2000, 4, target="binary")
    data, loss = case.data, Logistic()
    limits = Limits(12, 4)
    ensemble = boost(Recipe(loss, 4, 0.5, DepthWise(limits), rule, step=step), data, CPU, seed=2)
    assert max(len(tree.value) for tree in ensemble.trees) > 3
    for t, tree in enumerate(ensemble.trees):
        scores = CPU.predict(ensemble.first(t), case.x)
        p = 1.0 / (1.0 + np.exp(-scores[0]))
        g, h = p - data.y, p * (1.0 - p) if isinstance(step, NewtonStep) else np.ones(len(p))
        leaf = CPU.leaves(ensemble, case.x)[:, t]
        sums = tuple(np.bincount(leaf, values, len(tree.value)) for values in (g, h))
        np.testing.assert_allclose(tree.value, newton_values(tree.nodes, sums, limits), rtol=1e-3, atol=1e-4)


@pytest.mark.parametrize("rule", [ImportanceSampling(0.05), GOSS(0.02, 0.02), gb.WeightTrimming(0.3)], ids=repr)
@pytest.mark.parametrize(("loss", "target"), [(Logistic(), "binary"), (losses.SquaredError(), "real")], ids=["01", "2"])
def test_ts8_a_constant_step_never_raises_the_loss(rule: Sampling, loss: losses.Loss, target: str) -> None:
    case = random_case(6, 1500, 4, target=target)
    found = run(Recipe(loss, 40, 1.0, DepthWise(Limits(16, 4)), rule, step=ConstantStep()), case.data)
    assert all(after <= before * (1.0 + 1e-12) for before, after in itertools.pairwise(found))
    assert found[-1] < 0.95 * found[0]


# TS-4, TS-11: what makes the two orders of the paper simple


def test_ts4_sampled_gradients_are_all_of_one_size() -> None:
    """p in proportion to |g| makes every |g / p| 1 / rho, and p in proportion to h every h / p."""
    gradients, rho = logistic_gradients(5000), 0.5
    by_g = CPU.weigh(gradients, CPU.draw(gradients, 0.0, ThresholdRule(rho=rho), key(0)))
    by_h = CPU.weigh(gradients, CPU.draw(gradients, inf, ThresholdRule(rho=rho), key(0)))
    np.testing.assert_allclose(np.abs(by_g.g), 1.0 / rho, rtol=3e-7)
    np.testing.assert_allclose(by_h.h, 1.0 / rho, rtol=3e-7)


def test_ts11_second_order_samples_need_no_weights() -> None:
    """The weighted least-squares fit of -g / h on a linear learner is the unweighted one, if no row is clipped."""
    gradients, rng = logistic_gradients(5000), np.random.default_rng(3)
    sample = CPU.draw(gradients, inf, ThresholdRule(rho=0.5), key(1))
    weighted = CPU.weigh(gradients, sample)
    x = np.c_[np.ones(len(sample.rows)), rng.normal(size=(len(sample.rows), 3))]
    target = -gradients.g[0, sample.rows].astype(float) / gradients.h[0, sample.rows].astype(float)
    root = np.sqrt(weighted.h[0].astype(float))
    with_weights = np.linalg.lstsq(x * root[:, None], target * root, rcond=None)[0]
    without = np.linalg.lstsq(x, target, rcond=None)[0]
    np.testing.assert_allclose(with_weights, without, rtol=1e-5, atol=1e-5)


# TS-5, TS-6: the improved diagonal approximation


def test_ts5_with_every_row_the_control_by_node_changes_nothing() -> None:
    """Reading B at p = 1, eta = 1: the gradients are the plain ones, to the last bit of a float32."""
    before, now = logistic_gradients(3000, 1), logistic_gradients(3000, 2)
    for backend in (Reference(), CPU):
        controlled = backend.node_control_variate(now, Sample(), before, 1.0)
        np.testing.assert_allclose(controlled.g, now.g, rtol=2e-7)
        assert np.array_equal(controlled.h, now.h)
    case = random_case(8, 800, 4, target="binary")
    recipe = Recipe(Logistic(), 12, 0.3, DepthWise(Limits(12, 4)))
    plain, controlled = run(recipe, case.data), run(replace(recipe, sampling=smart_second_order(1.0)), case.data)
    np.testing.assert_allclose(controlled, plain, rtol=1e-5)


def test_ts5_the_mean_of_a_fixed_node_is_that_of_all_rows() -> None:
    """1,000 draws within 4 standard errors; and the control variate takes away most of the variance."""
    n, draws = 600, 1000
    before = logistic_gradients(n, 1)
    rng = np.random.default_rng(0)
    now = Gradients(before.g + np.float32(0.05) * rng.normal(size=(1, n)).astype(np.float32), before.h)
    rule, node = ThresholdRule(rate=0.2, floor=0.02), np.arange(n) < 200
    controlled, plain = [], []
    for step in range(draws):
        sample = CPU.draw(now, inf, rule, key(step))
        controlled.append(CPU.node_control_variate(now, sample, before, 1.0).g[0, node].sum(dtype=float))
        drawn = node[sample.rows]
        plain.append(CPU.weigh(now, sample).g[0, drawn].sum(dtype=float))
    truth = now.g[0, node].sum(dtype=float)
    for found in (controlled, plain):
        assert abs(np.mean(found) - truth) < 4.0 * np.std(found) / np.sqrt(draws)
    assert np.var(controlled) < 0.05 * np.var(plain)


def test_eta_below_one_damps_the_gradient() -> None:
    """E sum = sum g + (eta - 1) sum g'."""
    now, before = logistic_gradients(500, 1), logistic_gradients(500, 2)
    found = CPU.node_control_variate(now, Sample(), before, 0.25).g[0].sum(dtype=float)
    expected = now.g[0].sum(dtype=float) - 0.75 * before.g[0].sum(dtype=float)
    assert found == pytest.approx(expected, rel=1e-4, abs=1e-3)


def smooth_case(seed: int, n: int, d: int, target: str) -> TrainingSet:
    """Values of a function of d normal features in 32 bins, with noise; or labels that it makes likely."""
    rng = np.random.default_rng(seed)
    x = rng.normal(size=(n, d))
    z = 2.0 * np.sin(2.0 * x[:, 0]) + 2.0 * x[:, d // 4] * x[:, d // 3] + 1.5 * (x[:, d // 2] > 0.4) - x[:, -1]
    y = (
        z + 0.3 * rng.normal(size=n)
        if target == "real"
        else (rng.random(n) < 1.0 / (1.0 + np.exp(-2.0 * z))).astype(float)
    )
    cuts = Cuts(tuple(np.quantile(column, np.arange(1, 32) / 32) for column in x.T), (None,) * d)
    return TrainingSet(CPU.quantise(x, cuts), cuts, y)


@pytest.mark.parametrize("rate", [1.0, 0.3])
def test_ts6_the_control_by_the_previous_leaf_stalls(rate: float) -> None:
    """Reading A on squared error, one feature: no later tree cuts where the first did not, so the loss ends there."""
    data, growth = smooth_case(9, 1500, 1, "real"), DepthWise(Limits(4, 2, reg_lambda=0.0))
    rule = ImportanceSampling(rate, score="mvs", variance_control="previous_leaf")
    recipe = Recipe(losses.SquaredError(), 25, 0.3, growth, rule)
    first, *later = boost(recipe, data, CPU, seed=1).trees
    cuts = {int(bin_) for bin_ in first.nodes.bin[~first.nodes.is_leaf]}
    largest = first.nodes.gain.max()
    for tree in later:
        gained = tree.nodes.gain > 1e-6 * largest
        assert {int(bin_) for bin_ in tree.nodes.bin[gained]} <= cuts
    leaf = np.searchsorted(sorted(cuts), data.bins.rows[:, 0])
    means = np.bincount(leaf, data.y) / np.bincount(leaf)
    bound = 0.5 * np.mean((data.y - means[leaf]) ** 2)
    found, plain = run(recipe, data, 1), run(replace(recipe, sampling=EveryRow()), data, 1)
    assert min(found) > bound * (1.0 - 1e-4)
    assert plain[-1] < 0.9 * bound


@pytest.mark.slow
def test_the_readings_rank_as_they_should() -> None:
    """Logistic, nu = 0.2, lambda = 1, rate 0.1: loss after 100 rounds, mean of three seeds.

    Reading A is stuck, h without a correction is far off; B and leaf_refit are near all rows.
    """
    limits = Limits(16, 4, min_child_weight=0.0)
    found = {}
    rules: dict[str, Sampling] = {
        "all": EveryRow(),
        "A": ImportanceSampling(0.1, score="hessian", variance_control="previous_leaf"),
        "B": smart_second_order(0.1),
        "h": ImportanceSampling(0.1, score="hessian", floor=0.0, variance_control="none"),
        "refit": ImportanceSampling(0.1),
    }
    for name, rule in rules.items():
        each = [
            run(Recipe(Logistic(), 100, 0.2, DepthWise(limits), rule), smooth_case(seed, 8000, 8, "binary"), seed)[-1]
            for seed in range(3)
        ]
        found[name] = float(np.mean(each))
    assert max(found["B"], found["refit"]) < 1.3 * found["all"]
    assert max(found["B"], found["refit"]) < 0.8 * min(found["A"], found["h"])


# TS-9, TS-10


@settings(max_examples=examples(60))
@given(st.integers(1, 2000), st.integers(1, 2000), st.integers(0, 2**64 - 1))
def test_ts9_a_row_is_drawn_by_its_own_number_alone(n: int, m: int, seed: int) -> None:
    """With a fixed rho: whatever other rows there are, however many threads."""
    name, gradients = Key.root(seed) / "rows" / 7, logistic_gradients(2000)
    few, many = sorted((n, m))

    def drawn(size: int, threads: int) -> Array:
        part = Gradients(gradients.g[:, :size].copy(), gradients.h[:, :size].copy())
        return TEAMS[threads].draw(part, 0.1, ThresholdRule(rho=0.6), name).rows

    rows = drawn(many, 1)
    assert np.array_equal(drawn(few, 2), rows[rows < few])
    p = probabilities(scores_of(gradients, 0.1, None), ThresholdRule(rho=0.6))[:many]
    assert np.array_equal(rows, np.flatnonzero(uniform_bits(many, name) / 2.0**32 < p))


def test_ts9_a_sample_does_not_depend_on_the_threads() -> None:
    """Of a rate that is solved for, 100,000 rows: 1, 2 and 16 threads, each with rows of its own."""
    gradients, found = logistic_gradients(100_000), set()
    with eager_threads():
        for threads in (1, 2, 16):
            sample = Cpu(threads).draw(gradients, 0.1, ThresholdRule(rate=0.1, floor=0.01), key(0))
            found.add((sample.rows.tobytes(), sample.inverse_probability.tobytes()))
    assert len(found) == 1


def test_ts10_goss_takes_the_top_and_weighs_the_rest() -> None:
    gradients, n = random_gradients(np.random.default_rng(4), 1000, "plain"), 1000
    sizes = np.abs(gradients.g[0])
    sample = GOSS(0.2, 0.1).draw(CPU, gradients, key(0))
    top = sizes[sample.rows] >= np.sort(sizes)[-200]
    assert top.sum() == 200
    assert (sample.inverse_probability[top] == 1.0).all()
    assert (sample.inverse_probability[~top] == np.float32((n - 200) / 100)).all()
    others = [len(GOSS(0.2, 0.1).draw(CPU, gradients, key(step)).rows) - 200 for step in range(300)]
    assert abs(np.mean(others) - 100.0) < 4.0 * np.sqrt(100.0 * 0.875 / 300)


def test_goss_treats_ties_alike() -> None:
    """Every row the same: each is among the top 20 % or among the others' eighth, so p = 0.3 for all."""
    flat = Gradients(np.full((1, 4000), -0.5, np.float32), np.ones((1, 4000), np.float32))
    sample = GOSS(0.2, 0.1).draw(CPU, flat, key(0))
    np.testing.assert_allclose(sample.inverse_probability, 1.0 / 0.3, rtol=1e-6)
    assert abs(len(sample.rows) - 1200) < 4.0 * np.sqrt(4000 * 0.3 * 0.7)


# TS-12: rankings


def test_ts12_gradients_of_whole_lists_sum_to_zero_and_samples_do_so_on_average() -> None:
    """Per query: 0 for complete lists, 0 in expectation over 2,000 draws (4 s.e.), and not 0 in one draw."""
    rng, lists, length, draws = np.random.default_rng(7), 6, 20, 2000
    n = lists * length
    data = random_case(1, n, 2).data
    start = np.arange(0, n + 1, length)
    data = replace(data, y=rng.integers(0, 5, n).astype(float), query_start=start)
    gradients = CPU.gradients(losses.LambdaMART(), rng.normal(size=(1, n)), data, None)
    query, size = np.repeat(np.arange(lists), length), np.abs(gradients.g).max()
    assert np.abs(np.bincount(query, gradients.g[0])).max() < 1e-5 * size
    sums = np.zeros((draws, lists))
    for step in range(draws):
        sample = CPU.draw(gradients, 0.1, ThresholdRule(rate=0.3, floor=0.03), key(step))
        sums[step] = np.bincount(query[sample.rows], CPU.weigh(gradients, sample).g[0], lists)
    assert (np.abs(sums.mean(axis=0)) < 4.0 * sums.std(axis=0) / np.sqrt(draws)).all()
    assert (np.abs(sums[0]) > 1e-3 * size).all()


# TS-13, and the report


def test_ts13_the_report_has_the_rate_of_every_round(binary_data: tuple[Array, Array]) -> None:
    drawn: list[int] = []

    class Counting:
        """Uniform sampling that counts."""

        def draw(self, backend: object, gradients: Gradients, name: Key) -> Sample:
            sample = gb.MVS(0.4).draw(CPU, gradients, name)
            drawn.append(len(sample.rows))
            return sample

    model = gb.GradientBoostingClassifier(n_estimators=8, sampling=Counting(), random_state=1, device="cpu")
    report = model.fit(*binary_data).fit_report_.sampling
    assert report.rates == tuple(count / 300 for count in drawn)
    assert report.mean_rate == pytest.approx(np.mean(drawn) / 300)
    assert 1.0 <= report.largest_weight <= 25.0
    assert report.never == (0.0,) * 8
    assert all(1.0 <= rows <= max(drawn) for rows in report.effective_rows)
    assert all(1.0 <= rows <= count for rows, count in zip(report.effective, drawn, strict=True))
    assert [one.round for one in report.by_leaf] == list(range(8))
    assert report.by_leaf[-1].least == min(report.effective_rows)
    assert report.by_leaf[-1].median == np.median(report.effective_rows)
    assert f"{report.mean_rate:.4g} of the rows a round" in str(model.fit_report_)


def test_effective_rows_of_equal_weights_are_their_number() -> None:
    x = np.arange(400.0)[:, None]
    model = gb.GradientBoostingRegressor(
        n_estimators=1, max_depth=1, sampling=0.5, random_state=0, device="cpu", min_child_weight=0.0
    ).fit(x, np.repeat([0.0, 1.0], 200))
    report = model.fit_report_.sampling
    assert sum(report.effective_rows) == pytest.approx(report.rates[0] * 400)
    assert report.effective == pytest.approx((report.rates[0] * 400,))
    assert gb.GradientBoostingRegressor(n_estimators=1, device="cpu").fit(x, x[:, 0]).fit_report_.sampling is None


def test_leaves_are_counted_in_the_first_rounds_and_in_every_sixteenth() -> None:
    x = np.random.default_rng(0).normal(size=(300, 2))
    model = gb.GradientBoostingRegressor(n_estimators=40, sampling=gb.MVS(0.3), random_state=0, device="cpu")
    report = model.fit(x, x[:, 0]).fit_report_.sampling
    assert [one.round for one in report.by_leaf] == [*range(16), 16, 32]
    assert all(0.0 < one.least <= one.median <= 300.0 for one in report.by_leaf)
    assert len(report.effective) == len(report.rates) == 40


# LogitBoost's units: the trap of a factor of four


@given(st.floats(-30.0, 30.0), st.sampled_from([0.0, 1.0]))
def test_half_log_odds_have_twice_the_gradient_and_four_times_the_curvature(f: float, y: float) -> None:
    g, h = LogitBoost.derivatives(y, f, 0.0)
    whole_g, whole_h = Logistic.derivatives(y, 2.0 * f, 0.0)
    assert (g, h) == (2.0 * whole_g, 4.0 * whole_h)
    assert LogitBoost.value(y, f, 0.0) == Logistic.value(y, 2.0 * f, 0.0)
    phi = abs(g) / 2.0
    assert h == pytest.approx(abs(g) * (2.0 - abs(g)), rel=1e-12, abs=1e-12)
    if phi < 0.999:
        assert g * g / h == pytest.approx(phi / (1.0 - phi), rel=1e-9)


@pytest.mark.parametrize(
    ("half", "whole"),
    [
        ({"reg_lambda": 0.0, "min_child_weight": 0.4}, {"reg_lambda": 0.0, "min_child_weight": 0.1}),
        ({"reg_lambda": 4.0}, {"reg_lambda": 1.0, "min_child_weight": 0.00025}),
        ({"step": "gradient", "reg_lambda": 0.0, "learning_rate": 0.05},
         {"step": "gradient", "reg_lambda": 0.0, "learning_rate": 0.2}),
        ({"reg_lambda": 0.0, "sampling": smart_first_order(rho=0.4)},
         {"reg_lambda": 0.0, "min_child_weight": 0.00025, "sampling": smart_first_order(rho=0.8)}),
        ({"reg_lambda": 0.0, "sampling": smart_second_order(rho=0.4, variance_control="leaf_refit")},
         {"reg_lambda": 0.0, "min_child_weight": 0.00025,
          "sampling": smart_second_order(rho=1.6, variance_control="leaf_refit")}),
    ],
    ids=["newton", "ridge", "gradient step", "first order", "second order"],
)  # fmt: skip
def test_numbers_translate_between_the_two_units(
    half: dict[str, object], whole: dict[str, object], binary_data: tuple[Array, Array]
) -> None:
    def probability(loss: str, params: dict[str, object]) -> Array:
        model = gb.GradientBoostingClassifier(
            **{"loss": loss, "n_estimators": 10, "max_depth": 3, "random_state": 0, "device": "cpu", **params}
        )
        return model.fit(*binary_data).predict_proba(binary_data[0])[:, 1]

    np.testing.assert_allclose(probability("logitboost", half), probability("logistic", whole), atol=2e-5)
    wrong = probability("logistic", half)  # the trap: the same numbers in the other units
    if "reg_lambda" in half and half["reg_lambda"] == 4.0:
        assert np.abs(wrong - probability("logistic", whole)).max() > 0.01


# a8a, the paper's own data


def held_out_losses(data: Data, sampling: object, seeds: int, rounds: int) -> Array:
    """(seeds, rounds) test losses, with the settings that bring the baseline to the paper's 60 rounds."""
    train, held_out, found = gb.Dataset(data.X, data.y), (data.X_test, data.y_test), []
    for seed in range(seeds):
        model = gb.GradientBoostingClassifier(
            **{**smart.CALIBRATED, "n_estimators": rounds, "sampling": sampling, "random_state": seed, "device": "cpu"}
        )
        found.append(model.fit(train, eval_set=held_out).evals_result_["validation_0"]["logloss"])
    return np.array(found)


@pytest.mark.slow
@pytest.mark.thorough
def test_a8a_a_sample_of_three_tenths_is_as_good_as_all_rows(data_dir: Path) -> None:
    """Means of 20 seeds. Best test loss: within 0.5 % of the baseline's for "mvs" and "gradient", and below uniform's.

    Rounds to a loss of 0.325: second order with a control variate by node needs no more than the baseline. The paper
    has 34 against 60; no reading of it does that (``gpuboost bench smart --case a8a``).
    """
    data, seeds = real.a8a(), 20
    baseline = held_out_losses(data, None, 1, 150)[0]
    assert np.argmax(baseline < smart.TARGET) + 1 == 60
    rules = {"mvs": gb.MVS(0.3), "gradient": smart_first_order(0.3), "uniform": gb.UniformSampling(0.3)}
    best = {name: held_out_losses(data, rule, seeds, 150).min(axis=1) for name, rule in rules.items()}
    for name in ("mvs", "gradient"):
        assert best[name].mean() < 1.005 * baseline.min()
        assert best[name].mean() < best["uniform"].mean()
    assert 0.316 < best["uniform"].mean() < 0.319  # uniform sampling is no worse than the baseline, either
    controlled = held_out_losses(data, smart_second_order(0.3), seeds, 75) < smart.TARGET
    assert controlled.any(axis=1).all()
    assert (np.argmax(controlled, axis=1) + 1).mean() <= 60


LISTS = np.arange(60) // 12
QUERIES = np.random.default_rng(5).normal(size=(60, 3))
GRADES = np.random.default_rng(6).integers(0, 4, 60).astype(float)
GRADES[LISTS == 3] = 1.0  # a list without order


@pytest.mark.parametrize("loss", [losses.LambdaMART(truncation=5), losses.PairwiseLogistic(), losses.StochasticRank()])
def test_a_document_has_the_loss_of_its_list(loss: Any) -> None:
    """1 - NDCG at the loss's truncation, by its gains, document by document."""
    start = np.arange(0, 61, 12)
    data = replace(random_case(1, 60, 1).data, y=GRADES, query_start=start)
    scores = np.round(QUERIES[:, :1].T, 1)  # ties are in order of the rows
    found = Reference().losses(loss, scores, data)
    assert found.tobytes() == Cpu(2).losses(loss, scores, data).tobytes()
    places = len(GRADES) if loss.truncation is None else loss.truncation
    gains = GRADES if not len(loss.gains()) else 2.0**GRADES - 1.0
    for list_ in range(5):
        rows = np.flatnonzero(list_ == LISTS)
        order = rows[np.argsort(-scores[0][rows], kind="stable")][:places]
        best = np.sort(gains[rows])[::-1][:places]
        discounts = 1.0 / np.log2(np.arange(len(order)) + 2.0)
        expected = 1.0 - (gains[order] @ discounts) / (best @ discounts)
        np.testing.assert_allclose(found[rows], expected, atol=1e-12)
        assert found[rows].max() > 0.0 or list_ == 3


def test_documents_are_drawn_by_the_losses_of_their_lists(tmp_path: Path) -> None:
    """SMART's loss-based row, for rankings. A GPU and shards compute no losses of lists, and say so."""
    kw: dict[str, Any] = {"n_estimators": 6, "max_depth": 2, "random_state": 0, "n_jobs": 1, "min_child_weight": 0.0}
    rule = gb.ImportanceSampling(0.5, score="loss")
    model = gb.GradientBoostingRanker(sampling=rule, **kw).fit(QUERIES, GRADES, group=LISTS)
    again = gb.GradientBoostingRanker(sampling=rule, **{**kw, "n_jobs": 2}).fit(QUERIES, GRADES, group=LISTS)
    assert model.predict(QUERIES).tobytes() == again.predict(QUERIES).tobytes()
    uniform = gb.GradientBoostingRanker(sampling=0.5, **kw).fit(QUERIES, GRADES, group=LISTS)
    assert model.predict(QUERIES).tobytes() != uniform.predict(QUERIES).tobytes()
    assert np.mean(model.fit_report_.sampling.rates) == pytest.approx(0.5, abs=0.15)
    kept = gb.ImportanceSampling(0.5, score="loss", frozen_from=2)
    whole = gb.GradientBoostingRanker(sampling=kept, **kw).fit(QUERIES, GRADES, group=LISTS)
    first = gb.GradientBoostingRanker(sampling=kept, **{**kw, "n_estimators": 4}).fit(QUERIES, GRADES, group=LISTS)
    rest = gb.GradientBoostingRanker(sampling=kept, **{**kw, "n_estimators": 2})
    assert rest.fit(QUERIES, GRADES, group=LISTS, init_model=first).predict(QUERIES).tobytes() == (
        whole.predict(QUERIES).tobytes()
    )
    shards = gb.GradientBoostingRanker(sampling=rule, execution=gb.DataParallel(2), **kw)
    assert "losses of lists are computed on one CPU" in str(shards.check(QUERIES, GRADES, group=LISTS))
    with emulated_gpu():
        ranker = gb.GradientBoostingRanker(sampling=rule, device="cuda", **kw)
        with pytest.raises(gb.DeviceError, match="takes the loss of a row's list, computed on the CPU"):
            ranker.fit(QUERIES, GRADES, group=LISTS)
    with pytest.raises(gb.DeviceError, match="computed on the CPU"):
        gb.estimate_memory(1000, 3, ranker)
