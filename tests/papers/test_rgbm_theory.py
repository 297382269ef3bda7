"""RGBM (Lu and Mazumder, SIAM J. Optim. 2020): oracles TR-1 to TR-16. TR-9, TR-12 and others also in test_rgbm_step.

Statistical ones run fixed seeds. A mean is held to its theory within 4 standard errors, which a right library misses
once in 16,000; these are known to pass.
"""

from __future__ import annotations

from collections import Counter
from dataclasses import replace
from itertools import combinations, product
from math import comb
from typing import Any

import numpy as np
import pytest
from scipy import stats
from scipy.linalg import hadamard
from scipy.optimize import brentq
from support.builders import TEAMS, model_bytes, random_case, sparse

from gpuboost import losses, theory
from gpuboost.backends.prediction.routing import dense_rows
from gpuboost.backends.protocol import Backend
from gpuboost.backends.reference.backend import Reference
from gpuboost.boosting import boost
from gpuboost.growth import DepthWise, SignStump
from gpuboost.keys import Key
from gpuboost.learners import (
    AllLearners,
    RandomByNode,
    RandomGroup,
    RandomGroups,
    RandomLearners,
    Selection,
    prepared,
)
from gpuboost.losses import Loss
from gpuboost.recipe import Recipe
from gpuboost.steps import ConstantStep, LineSearchStep, NewtonStep
from gpuboost.theory import SelectionNorm
from gpuboost.types import Cuts, Ensemble, Limits, Progress, TrainingSet

pytestmark = pytest.mark.slow

Array = np.ndarray
CPU = TEAMS[1]
STUMPS = Limits(2, 1, 1, 0.0, 0.0)
SMOOTH: list[tuple[Loss, str]] = [
    (losses.SquaredError(), "real"),
    (losses.Huber(0.4), "real"),
    (losses.Logistic(), "binary"),
    (losses.Logistic(0.05), "binary"),
    (losses.Softmax(3), "3"),
]
ONE_SCORE = SMOOTH[:-1]


def stump_recipe(loss: Loss, rounds: int, learners: Selection, growth: Any = DepthWise, **pieces: Any) -> Recipe:
    return Recipe(loss, rounds, 1.0, growth(STUMPS), learners=learners, **{"step": ConstantStep(), **pieces})


# TR-1, TR-2, TR-14: the same models


@pytest.mark.parametrize("growth", [DepthWise, SignStump])
@pytest.mark.parametrize(("loss", "target"), ONE_SCORE)
def test_tr_1_drawing_everything_is_type_0(loss: Loss, target: str, growth: Any) -> None:
    data = random_case(4, 150, 6, target=target, categorical=0.0).data
    everything = RandomLearners(10_000), RandomLearners(1.0), RandomGroups(6), RandomGroups(3, tuple("aabbcc"))
    for backend in (Reference(), TEAMS[2]):
        expected = model_bytes(boost(stump_recipe(loss, 5, AllLearners(), growth), data, backend))
        for rule in (*everything, RandomGroups(6, "root"), RandomByNode(6)):
            for rows in (data, sparse(data)):
                assert model_bytes(boost(stump_recipe(loss, 5, rule, growth), rows, backend)) == expected


def test_tr_1_one_pair_less_than_all_is_another_rule() -> None:
    data = random_case(4, 150, 2, categorical=0.0, missing=0.0, full=True).data
    pairs = int((data.cuts.n_bins - 1).sum())
    every = model_bytes(boost(stump_recipe(losses.SquaredError(), 60, AllLearners()), data, CPU))
    assert model_bytes(boost(stump_recipe(losses.SquaredError(), 60, RandomLearners(pairs + 1)), data, CPU)) == every
    assert model_bytes(boost(stump_recipe(losses.SquaredError(), 60, RandomLearners(pairs)), data, CPU)) != every


@pytest.mark.parametrize("groups", ["feature", "root", tuple("abbac")])
def test_tr_2_type_2_is_type_3_with_one_group(groups: Any) -> None:
    data = random_case(5, 120, 5, target="binary").data
    recipes = [
        Recipe(losses.Logistic(), 6, 0.5, DepthWise(Limits(8, 3)), learners=rule)
        for rule in (RandomGroup(groups), RandomGroups(1, groups))
    ]
    assert len({model_bytes(boost(recipe, data, CPU, seed=3)) for recipe in recipes}) == 1
    assert model_bytes(boost(recipes[0], data, CPU, seed=3)) != model_bytes(boost(recipes[0], data, CPU, seed=4))


@pytest.mark.parametrize("backend", [Reference(), TEAMS[2]])
def test_tr_14_for_stumps_features_of_a_node_are_features_of_a_tree(backend: Backend) -> None:
    data = random_case(6, 150, 6, target="binary").data
    for t in (1, 3, 0.7):
        by_tree, by_node = (
            model_bytes(boost(stump_recipe(losses.Logistic(), 6, rule), data, backend))
            for rule in (RandomGroups(t), RandomByNode(t))
        )
        assert by_tree == by_node


# TR-3, TR-4: how likely, and what it comes to


@pytest.mark.parametrize(("k", "t"), [(9, 4), (9, 1), (9, 9), (40, 3)])
def test_tr_3_chances_are_those_of_all_subsets(k: int, t: int) -> None:
    chances = theory.rank_chances(k, t)
    assert chances == pytest.approx([comb(k - j, t - 1) / comb(k, t) for j in range(1, k + 1)], rel=1e-12, abs=0)
    assert chances.sum() == pytest.approx(1.0)
    if k < 10:
        best = Counter(min(subset) for subset in combinations(range(k), t))
        assert chances == pytest.approx([best[j] / comb(k, t) for j in range(k)], rel=1e-12, abs=0)


TRIALS = 6000
CUTS = Cuts((np.arange(3.0), np.arange(1.0), np.arange(4.0)), (None,) * 3)  # 3, 1 and 4 pairs, and the constant: 9


def pairs_of(found: Any) -> tuple[tuple[int, int], ...]:
    """The (feature, cut) pairs that were drawn."""
    bins, out = CUTS.n_bins, []
    for f, words in zip(found.features, found.root, strict=True):
        bits = np.flatnonzero(np.unpackbits(words.view(np.uint8), bitorder="little")).tolist()
        assert set(bits) <= set(range(bins[f]))
        assert (bins[f] - 1 in bits) == (bins[f] - 2 in bits), "the last cut asks for missing values too"
        out += [(int(f), c) for c in bits if c < bins[f] - 1]
    return tuple(out)


def test_tr_3_of_pairs_the_best_has_the_ranks_of_the_theory() -> None:
    """Type 1: all C(9, t) subsets are equally likely, the constant learner among them."""
    pairs = [(0, 0), (0, 1), (0, 2), (1, 0), (2, 0), (2, 1), (2, 2), (2, 3)]
    rank = {pair: r for r, pair in enumerate(np.random.default_rng(1).permutation(9).tolist())}
    for t in (1, 2, 4):
        rule, counts, subsets = prepared(RandomLearners(t), CUTS, 3), np.zeros(9), Counter()
        for step in range(TRIALS):
            drawn = pairs_of(rule.draw(3, Key.root(2) / "learners" / step))
            assert len(drawn) in (t, t - 1), "one less where the constant is among them"
            numbers = [pairs.index(pair) for pair in drawn] + [8] * (t - len(drawn))
            subsets[tuple(numbers)] += 1
            counts[min(rank[number] for number in numbers)] += 1
        expected = theory.rank_chances(9, t) * TRIALS
        assert stats.chisquare(counts[expected > 0], expected[expected > 0]).pvalue > 1e-4
        if t < 4:
            assert stats.chisquare([subsets[s] for s in combinations(range(9), t)]).pvalue > 1e-4


def test_tr_3_of_groups_the_best_has_the_ranks_of_the_theory() -> None:
    labels = ("x", "y", "x", "z", "w", "v", "w", "x")  # five groups
    group = {"x": 0, "y": 1, "z": 2, "w": 3, "v": 4}
    for t in (1, 2, 3):
        counts = np.zeros(5)
        for step in range(TRIALS):
            drawn = RandomGroups(t, labels).draw(8, Key.root(4) / "learners" / step).features
            groups = {group[labels[f]] for f in drawn}
            assert len(groups) == t
            assert sorted(drawn) == [f for f in range(8) if group[labels[f]] in groups]
            counts[min(groups)] += 1
        expected = theory.rank_chances(5, t) * TRIALS
        assert stats.chisquare(counts[expected > 0], expected[expected > 0]).pvalue > 1e-4


def test_tr_4_the_norms_are_mean_largest_correlations() -> None:
    a = np.random.default_rng(3).normal(size=8)
    groups = (0, 0, 1, 2, 2, 2, 3, 4)
    largest = [max(abs(a[j]) for j in range(8) if groups[j] == g) for g in range(5)]
    assert SelectionNorm()(a) == np.abs(a).max()
    for t in range(1, 9):
        every = [max(abs(a[j]) for j in subset) for subset in combinations(range(8), t)]
        assert SelectionNorm(t)(a) == pytest.approx(np.mean(every), rel=1e-14)
    assert SelectionNorm(1, groups)(a) == pytest.approx(np.mean(largest), rel=1e-14)
    for t in range(1, 6):
        every = [max(largest[g] for g in subset) for subset in combinations(range(5), t)]
        assert SelectionNorm(t, groups)(a) == pytest.approx(np.mean(every), rel=1e-14)
    matrix = np.stack([a, -2 * a], axis=1)
    assert SelectionNorm(2, groups)(matrix) == pytest.approx(SelectionNorm(2, groups)(a) * np.array([1, 2]))


# TR-5, TR-16: stumps of one value


@pytest.mark.parametrize("learners", [AllLearners(), RandomGroups(2), RandomLearners(9)])
@pytest.mark.parametrize(("loss", "target"), ONE_SCORE)
def test_tr_5_boosting_is_coordinate_descent_on_coefficients(loss: Loss, target: str, learners: Selection) -> None:
    """Proposition 2.1: f = B beta, the coordinate of the largest |gradient| in J, a step of 1 / sigma along it."""
    data = random_case(7, 80, 4, target=target, categorical=0.0, missing=0.0, most_cuts=6, full=True).data
    rounds, root = 12, Key.root(5)
    ensemble = boost(stump_recipe(loss, rounds, learners, SignStump), data, CPU, seed=5)
    codes, n, rule = dense_rows(data.bins), data.n_rows, prepared(learners, data.cuts, 4)
    names = [(f, c) for f in range(4) for c in range(data.cuts.n_bins[f] - 1)]
    columns = [np.where(codes[:, f] <= c, 1.0, -1.0) for f, c in names]
    b = np.stack([*columns, np.ones(n)], axis=1) / np.sqrt(n)  # the constant last
    beta, start = np.zeros(b.shape[1]), ensemble.bias[0]
    for step, tree in enumerate(ensemble.trees):
        drawn = rule.draw(4, root / "learners" / step)
        among = [i for i, (f, c) in enumerate(names) if may_be_cut(drawn, f, c)] + [len(names)]
        f = start + b @ beta
        r = -np.array([loss.derivatives(y, s, loss.parameter)[0] for y, s in zip(data.y, f, strict=True)])
        j = max(among, key=lambda i: abs(b[:, i] @ r))
        assert abs(b[:, j] @ r) == pytest.approx(max(abs(b[:, among].T @ r)))
        beta[j] += b[:, j] @ r / loss.smoothness
        if j == len(names):
            assert len(tree.nodes.feature) == 1
        else:
            chosen = b[:, names.index((int(tree.nodes.feature[0]), int(tree.nodes.bin[0])))]
            assert abs(chosen @ b[:, j]) == pytest.approx(1.0), "the same partition of the rows"
    scores = CPU.start(data, ensemble.bias)
    for tree, factor in zip(ensemble.trees, ensemble.factors, strict=True):
        CPU.add_tree(scores, tree, factor, data.bins, data.cuts)
    assert scores[0] == pytest.approx(start + b @ beta, rel=1e-4, abs=1e-5)


def may_be_cut(drawn: Any, f: int, c: int) -> bool:
    place = np.flatnonzero(drawn.features == f)
    if not len(place):
        return False
    return drawn.root is None or bool(drawn.root[place[0], c >> 5] >> np.uint32(c & 31) & np.uint32(1))


@pytest.mark.parametrize("weights", ["none", "whole", "real"])
@pytest.mark.parametrize(("loss", "target"), ONE_SCORE)
def test_tr_16_a_stump_of_one_value(loss: Loss, target: str, weights: str) -> None:
    """Its coefficient is (R_L - R_R) / (sigma n), and no cut has it nearer to r than the stump of two values is."""
    data = random_case(8, 90, 3, target=target, weights=weights, categorical=0.0, missing=0.0).data
    found = boost(stump_recipe(loss, 1, AllLearners(), SignStump), data, CPU)
    tree, codes, w = found.trees[0], dense_rows(data.bins), data.row_weight()
    r = -np.array([loss.derivatives(y, found.bias[0], loss.parameter)[0] for y in data.y]) * w
    f, c = int(tree.nodes.feature[0]), int(tree.nodes.bin[0])
    left = codes[:, f] <= c
    expected = (r[left].sum() - r[~left].sum()) / (loss.smoothness * w.sum())
    assert tree.value[1] == -tree.value[2] == pytest.approx(expected, rel=1e-4)
    best = 0.0
    for g, cut in product(range(3), range(20)):
        side = codes[:, g] <= cut
        if 0 < side.sum() < len(side):
            one = (r[side].sum() - r[~side].sum()) ** 2 / w.sum()
            two = r[side].sum() ** 2 / w[side].sum() + r[~side].sum() ** 2 / w[~side].sum()
            assert one <= two * (1 + 1e-12)
            best = max(best, one)
    assert (r[left].sum() - r[~left].sum()) ** 2 / w.sum() == pytest.approx(best, rel=1e-4)


# TR-6, TR-7, TR-8: rates. Columns of a Hadamard matrix are orthogonal stumps of one value.

N = 16
H = hadamard(N).astype(float)
P = N - 1  # learners, beside the constant


def hadamard_rows(y: Array) -> TrainingSet:
    cuts = Cuts((np.zeros(1),) * P, (None,) * P)
    return TrainingSet(Reference().quantise(H[:, 1:], cuts), cuts, y)


def target_of(kind: str) -> Array:
    """(16,) of mean 0: as much of every learner, of one alone, or at random."""
    if kind == "flat":
        return H[:, 1:].sum(axis=1) / N
    return H[:, 3] / 4.0 if kind == "spike" else H[:, 1:] @ np.random.default_rng(1).normal(size=P) / N


def gaps(loss: Loss, data: TrainingSet, t: int, rounds: int, seed: int, least: float) -> list[float]:
    """L - L*, summed, before and after each round."""
    out: list[float] = []

    def total(scores: Array) -> float:
        return CPU.loss_value(loss, scores, data.y, None) * data.n_rows - least

    def watch(progress: Progress) -> bool:
        out.append(total(progress.scores))
        return False

    recipe = stump_recipe(loss, rounds, RandomGroups(t), SignStump)
    ensemble = boost(recipe, data, CPU, seed=seed, watch=watch)
    return [total(CPU.start(data, ensemble.bias)), *out]


def test_tr_6_one_random_learner_shrinks_the_gap_by_exactly_one_pth() -> None:
    """E L_M = (1 - 1 / p)^M L_0 of orthonormal learners and squared error; 300 runs, 4 standard errors."""
    data, rounds = hadamard_rows(target_of("random")), 8
    runs = np.array([gaps(losses.SquaredError(), data, 1, rounds, seed, 0.0) for seed in range(300)])
    expected = runs[0, 0] * (1.0 - 1.0 / P) ** np.arange(rounds + 1)
    error = runs.std(axis=0, ddof=1) / np.sqrt(len(runs))
    assert (np.abs(runs.mean(axis=0) - expected) <= 4.0 * error + 1e-9).all()
    assert error[1:].max() < 0.02 * runs[0, 0], "the test is sharp"


@pytest.mark.parametrize("t", [1, 2, 4, 8, 15])
def test_tr_7_from_a_flat_residual_every_t_takes_one_pth(t: int) -> None:
    data = hadamard_rows(target_of("flat"))
    for seed in range(5):
        before, after = gaps(losses.SquaredError(), data, t, 1, seed, 0.0)
        assert after / before == pytest.approx(1.0 - 1.0 / P, rel=1e-6)


@pytest.mark.parametrize("kind", ["flat", "spike", "random"])
@pytest.mark.parametrize("t", [1, 2, 4, 8, 15])
def test_tr_8_theorem_4_1_holds_with_xi_and_with_theta(t: int, kind: str) -> None:
    data, rounds = hadamard_rows(target_of(kind)), 10
    runs = np.array([gaps(losses.SquaredError(), data, t, rounds, seed, 0.0) for seed in range(60)])
    xi, theta = theory.orthonormal_edge(P), theory.orthonormal_angle(P, t)
    assert xi >= theta**2
    error = runs.std(axis=0, ddof=1) / np.sqrt(len(runs))
    for edge in (xi, theta**2):
        bounds = [theory.linear_bound(runs[0, 0], m, 1.0, 1.0, edge) for m in range(rounds + 1)]
        assert (runs.mean(axis=0) <= bounds + 4.0 * error + 1e-9 * runs[0, 0]).all()
    if kind == "flat" and t == P:
        assert runs.mean(axis=0)[1] == pytest.approx(theory.linear_bound(runs[0, 0], 1, 1.0, 1.0, xi), rel=1e-6)


@pytest.mark.parametrize("t", [1, 4, 15])
def test_tr_8_of_regularised_logistic_loss_too(t: int) -> None:
    ridge, rounds = 0.05, 30
    loss = losses.Logistic(ridge)
    data = hadamard_rows((np.random.default_rng(2).random(N) < 0.4).astype(float))
    root = stats_root(ridge)
    least = sum(loss.value(float(y), root if y else -root, ridge) for y in data.y)
    b = np.stack([column for j in range(1, N) for column in (H[:, j], H[:, 0])], axis=1)
    edge = theory.smallest_expected_edge(b, SelectionNorm(t, np.repeat(np.arange(P), 2)))
    assert 0.0 < edge.lower <= edge.value
    runs = np.array([gaps(loss, data, t, rounds, seed, least) for seed in range(40)])
    error = runs.std(axis=0, ddof=1) / np.sqrt(len(runs))
    bounds = [theory.linear_bound(runs[0, 0], m, 0.25 + ridge, ridge, edge.lower) for m in range(rounds + 1)]
    assert (runs >= -1e-9).all()
    assert (runs.mean(axis=0) <= bounds + 4.0 * error).all()


def stats_root(ridge: float) -> float:
    """Where log(1 + e^-f) + ridge f^2 / 2 is least."""
    return float(brentq(lambda f: -1.0 / (1.0 + np.exp(f)) + ridge * f, 0.0, 40.0, xtol=1e-12))


# TR-9: the lemma, as the fit report tells it


@pytest.mark.parametrize("weights", [None, "whole", "real"])
@pytest.mark.parametrize("growth", ["depthwise", "sign_stump"])
@pytest.mark.parametrize("step", ["constant", "gradient", "line_search"])
@pytest.mark.parametrize("reg_lambda", [0.0, 3.0])
def test_tr_9_each_round_goes_down_by_what_the_report_promises(
    weights: str | None, growth: str, step: str, reg_lambda: float
) -> None:
    import gpuboost as gb

    rng = np.random.default_rng(9)
    x, y = rng.normal(size=(120, 3)), rng.random(120) < 0.4
    w = None if weights is None else rng.integers(1, 4, 120) if weights == "whole" else rng.random(120) + 0.1
    seen: list[float] = []
    shared = {"growth": growth, "max_depth": 2, "learning_rate": 0.9, "reg_lambda": reg_lambda, "n_estimators": 12}
    model = gb.GradientBoostingClassifier(
        loss=losses.Logistic(0.02), step=step, learners=2, random_state=1, n_jobs=1, **shared,
        callbacks=[lambda record: seen.append(record.training_loss())],
    ).fit(x, y, sample_weight=w)  # fmt: skip
    report = model.fit_report_.edges
    start = model.loss_.start(y.astype(float), np.ones(120) if w is None else w.astype(float))
    loss = CPU.loss_value(model.loss_, np.full((1, 120), start[0]), y.astype(float), None if w is None else w * 1.0)
    fell = -np.diff([loss, *seen])
    assert len(report.edges) == len(fell) == 12
    assert (fell >= np.array(report.promised) - 1e-7).all()
    assert (np.array(report.promised) > 0.0).all()
    assert all(0.0 < edge <= 1.0 for edge in report.edges)
    assert all(0.0 < factor < 1.0 for factor in report.factors)


# TR-10: line search


@pytest.mark.parametrize(("loss", "target"), SMOOTH)
@pytest.mark.parametrize("growth", [DepthWise(Limits(6, 3, 1, 0.0, 0.0)), SignStump(STUMPS)])
def test_tr_10_a_line_search_never_does_worse_than_the_constant_step(loss: Loss, target: str, growth: Any) -> None:
    for seed in range(6):
        data = random_case(seed, 100, 4, target=target, weights=["none", "real", "whole"][seed % 3]).data
        begin = boost(Recipe(loss, 3, 0.5, growth, learners=RandomGroups(2), step=ConstantStep()), data, CPU)

        def after(step: Any, per_tree: Ensemble = begin, rows: TrainingSet = data) -> float:
            recipe = Recipe(loss, 1, 1.0, growth, learners=RandomGroups(2), step=step)
            reached: list[float] = []
            boost(recipe, rows, CPU, resume=per_tree, watch=lambda p: bool(reached.append(mean_loss(loss, p, rows))))
            return reached[0]

        constant, tree = after(ConstantStep()), after(LineSearchStep())
        assert tree <= constant + 1e-9
        if loss.n_outputs == 1 and not growth.limits.signed:
            assert after(LineSearchStep("leaf")) <= tree + 1e-9


def mean_loss(loss: Loss, progress: Progress, data: TrainingSet) -> float:
    return CPU.loss_value(loss, progress.scores, data.y, data.row_weight())


@pytest.mark.parametrize("alpha", [0.5, 0.2])
def test_tr_10_for_quantiles_it_is_the_weighted_quantile_of_ratios(alpha: float) -> None:
    loss: Loss = losses.Quantile(alpha)
    data = random_case(3, 90, 4, weights="real").data
    recipe = Recipe(loss, 1, 1.0, DepthWise(Limits(4, 2)), step=LineSearchStep())
    found = boost(recipe, data, CPU)
    tree, scores = found.trees[0], CPU.start(data, found.bias)
    best = losses_along(loss, data, scores, tree, 1.0)
    for length in np.linspace(0.0, 3.0, 301):
        assert best <= losses_along(loss, data, scores, tree, length) + 1e-12


def losses_along(loss: Loss, data: TrainingSet, scores: Array, tree: Any, length: float) -> float:
    trial = scores.copy()
    CPU.add_tree(trial, tree, length, data.bins, data.cuts)
    return CPU.loss_value(loss, trial, data.y, data.weight)


def test_a_line_search_is_guarded_where_newton_would_overflow() -> None:
    """Of losses that grow exponentially, from a start far off; and a pure leaf, whose minimum is nowhere."""
    for loss, target in (
        (losses.Exponential(), "binary"),
        (losses.Poisson(), "positive"),
        (losses.Logistic(), "binary"),
    ):
        data = random_case(2, 200, 4, target=target).data
        data = replace(data, y=data.y * 50.0) if target == "positive" else data
        for per in ("tree", "leaf"):
            seen: list[float] = []
            recipe = Recipe(loss, 15, 1.0, DepthWise(Limits(32, 5, 1, 0.0, 0.0)), step=LineSearchStep(per))
            boost(recipe, data, CPU, watch=lambda p, of=loss, d=data, s=seen: bool(s.append(mean_loss(of, p, d))))
            assert np.isfinite(seen).all()
            assert (np.diff(seen) <= 1e-9).all()


# TR-11, TR-13: angles and theorem 4.2


@pytest.mark.parametrize("p", [2, 3, 4])
def test_tr_11_of_all_ternary_vectors(p: int) -> None:
    b = np.array([v for v in product((-1, 0, 1), repeat=p) if any(v)], float).T
    expected = {2: 0.92388, 3: 0.88645, 4: 0.86246}[p]
    assert theory.ternary_angle(p) == pytest.approx(expected, abs=5e-6)
    found = theory.minimal_cosine_angle(b)
    assert found.value == pytest.approx(expected, abs=2e-4)
    assert found.value >= expected - 5e-6, "it is a minimum, so whatever is found is not below"
    assert found.lower <= expected
    assert found.kind == ("upper bound" if p == 4 else "grid")


@pytest.mark.parametrize("t", [1, 2, 3, 5])
def test_tr_11_of_orthonormal_learners(t: int) -> None:
    q = np.linalg.qr(np.random.default_rng(0).normal(size=(9, 5)))[0]
    angle = theory.minimal_cosine_angle(3.0 * q, SelectionNorm(t))
    assert (angle.kind, angle.value) == ("exact", min(t / 5, 1 / np.sqrt(5)))
    assert theory.minimal_cosine_angle(q).value == pytest.approx(1 / np.sqrt(5))
    edge = theory.smallest_expected_edge(q, SelectionNorm(t))
    assert (edge.kind, edge.value) == ("exact", 0.2)
    assert edge.value >= angle.value**2
    directions = np.linalg.qr(np.random.default_rng(1).normal(size=(5, 5)))[0]
    assert (SelectionNorm(t)(directions**2) >= 0.2 - 1e-12).all()


def test_an_upper_bound_is_no_certificate_and_a_lower_one_is() -> None:
    b, feature = theory.sign_stumps(np.random.default_rng(1).normal(size=(60, 3)), max_bins=5)
    assert b.shape == (60, len(feature))
    assert (b**2).sum(axis=0) == pytest.approx(1.0)
    assert feature.tolist() == [0] * 4 + [1] * 4 + [2] * 4 + [-1]
    norm = SelectionNorm(2, feature)
    edge = theory.smallest_expected_edge(b, norm)
    assert edge.kind == "upper bound"
    c = b @ np.random.default_rng(2).normal(size=(b.shape[1], 2000))
    seen = norm((b.T @ (c / np.sqrt((c * c).sum(axis=0)))) ** 2).min()
    assert edge.lower <= edge.value <= seen + 1e-12


def test_tr_13_theorem_4_2_for_the_huber_loss() -> None:
    """Single rows as learners, all competing. Dist in closed form, and by looking for the farthest point."""
    n, delta, loss = 6, 0.5, losses.Huber(0.5)
    y = np.array([3.0, -2.0, 1.5, 4.0, -3.0, 2.0])
    f = np.zeros(n)

    def total(scores: Array) -> float:
        return sum(loss.value(a, b, delta) for a, b in zip(y, scores, strict=True))

    start = total(f)
    assert start >= n * delta**2 / 2
    dist = theory.huber_distance(start, delta, n)
    rng, farthest = np.random.default_rng(0), 0.0
    for _ in range(4000):
        away = rng.choice([-1.0, 1.0], n) * (delta + rng.dirichlet(np.ones(n)) * (dist - n * delta))
        assert total(y + away) <= start + 1e-9
        farthest = max(farthest, float(np.abs(away).sum()))
        along = rng.normal(size=n)
        reach = brentq(lambda s, d=along: total(y + s * d) - start, 0.0, 1e3)  # the end of the level set in a direction
        assert np.abs(reach * along).sum() <= dist + 1e-6
    assert farthest == pytest.approx(dist)
    gap = start
    for rounds in range(1, 201):
        r = -np.array([loss.derivatives(a, b, delta)[0] for a, b in zip(y, f, strict=True)])
        best = int(np.argmax(np.abs(r)))
        f[best] += r[best]
        assert total(f) <= theory.sublinear_bound(gap, rounds, 1.0, dist) + 1e-12
        assert theory.sublinear_bound(gap, rounds, 1.0, dist) <= 2.0 * dist**2 / rounds


# TR-15: constants


@pytest.mark.parametrize(("loss", "targets"), [
    (losses.SquaredError(), [0.3]), (losses.Huber(0.4), [0.3]), (losses.Logistic(), [0.0, 1.0]),
    (losses.Logistic(0.05), [0.0, 1.0]), (losses.SmoothedZeroOne(0.5), [0.0, 1.0]),
])  # fmt: skip
def test_tr_15_smoothness_bounds_the_curvature(loss: Loss, targets: list[float]) -> None:
    step, most, least = 1e-4, 0.0, np.inf
    for y in targets:
        for f in np.linspace(-6.0, 6.0, 2401):
            g = [loss.derivatives(y, f + s, loss.parameter)[0] for s in (-step, step)]
            h = (g[1] - g[0]) / (2.0 * step)
            most, least = max(most, abs(h)), min(least, h)
    assert most <= loss.smoothness * (1.0 + 1e-6)
    assert least >= loss.strong_convexity - 1e-6 or not loss.convex
    if isinstance(loss, losses.Logistic):
        assert loss.derivatives(1.0, 0.0, loss.parameter)[1] == loss.smoothness, "attained at f = 0"


def test_level_sets_are_bounded_where_the_loss_says_so() -> None:
    """Table of losses: what theorem 4.2 may assume of each."""
    bounded = [losses.SquaredError(), losses.Huber(), losses.AbsoluteError(), losses.Quantile(0.3), losses.Gamma()]
    not_bounded = [losses.Logistic(), losses.Exponential(), losses.Poisson(), losses.Softmax(3), losses.LambdaMART()]
    assert all(loss.bounded_level_sets for loss in [*bounded, losses.Logistic(0.01)])
    assert not any(loss.bounded_level_sets for loss in not_bounded)


def test_tr_12_the_same_with_stumps_of_one_value() -> None:
    """The constant step is Newton where every h is sigma: of squared error, both are the same model."""
    data = random_case(3, 90, 4).data
    recipes = [stump_recipe(losses.SquaredError(), 5, RandomGroups(2), SignStump, step=s) for s in STEPS]
    assert len({model_bytes(boost(recipe, data, CPU)) for recipe in recipes}) == 1


STEPS = (ConstantStep(), NewtonStep())
