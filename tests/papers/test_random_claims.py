"""Standing guard: verdicts, reports and guarantees of random compositions, against what the test computes itself."""

from __future__ import annotations

import warnings
from collections import Counter
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from support.compositions import Composition, composition, mean_losses
from support.examples import examples_of

import gpuboost as gb
from gpuboost.errors import GpuBoostError, RecipeError
from gpuboost.keys import Key, Stream

pytestmark = pytest.mark.slow

Array = np.ndarray

DESCENT = "linear rate", "sublinear rate", "monotone descent"
ROUNDING = 2e-6  # gradients are float32; relative to the mean loss


def fitted(case: Composition, **more: Any) -> Any:
    """The fitted model; None if the composition is refused, which the check has to have said."""
    model = case.estimator()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        before = model.check(case.x, case.y, case.weight)
        try:
            model.fit(case.x, case.y, sample_weight=case.weight, **more)
        except RecipeError:
            assert before.kind in ("refused", "unproven") or more, before
            return None
        if not more and "langevin" not in case.params:
            assert model.fit_report_.verdict.kind == before.kind
    return model


def slack(losses: Array) -> Array:
    return ROUNDING * np.maximum(1.0, np.maximum(np.abs(losses[:-1]), np.abs(losses[1:])))


def check_descent(model: Any, losses: Array) -> None:
    """Nothing that promises descent, before or after the fit, saw the training loss rise."""
    rises = np.diff(losses) - slack(losses)
    guarantee = model.guarantee_
    for part in guarantee.parts or (guarantee,):
        if part.kind in DESCENT:
            first, last = part.rounds
            assert (rises[first - 1 : last] <= 0.0).all(), (part, losses)
    if guarantee.kind in DESCENT:
        assert (rises <= 0.0).all()
    report = model.fit_report_
    if report.verdict.kind == "sound" and "never rises" in str(report.verdict):
        assert (rises[len(losses) - 1 - report.rounds :] <= 0.0).all(), (report.verdict, losses)


def check_edges(model: Any, losses: Array) -> None:
    """Each promised fall came."""
    edges = model.fit_report_.edges
    if edges is None:
        return
    assert all(0.0 <= edge <= 1.0 for edge in edges.edges)
    count = len(edges.promised)
    fell = -np.diff(losses)[len(losses) - 1 - count :]
    assert (fell >= np.array(edges.promised) - slack(losses)[len(losses) - 1 - count :]).all(), (edges, losses)


def check_sampling(model: Any, case: Composition) -> None:
    """Shares and weights of drawn rows."""
    report, policy = model.fit_report_.sampling, case.params["sampling"]
    n, rounds = model.fit_report_.rows, model.fit_report_.rounds
    if policy is None or policy == 1.0:
        assert report is None
    elif report is not None:
        langevin = case.params.get("langevin")
        if langevin is None or langevin.random_from is None:
            assert len(report.rates) == rounds
        assert len(report.rates) <= rounds  # rounds of random shapes draw no rows
        assert all(0.0 <= rate <= 1.0 for rate in report.rates)
        assert all(w >= 1.0 or rate == 0.0 for w, rate in zip(report.largest_weights, report.rates, strict=True))
        if policy == 0.5:
            assert abs(report.mean_rate - 0.5) <= 6.0 * np.sqrt(0.25 / (n * len(report.rates))) + 1.0 / n
            assert set(report.largest_weights) <= {2.0, 0.0}


def check_rounds(model: Any, case: Composition, first: int) -> None:
    """Rounds, versions and staleness."""
    report, trees = model.fit_report_, model.ensemble_.trees or model.ensemble_.components
    assert report.rounds == case.params["n_estimators"]
    assert report.rounds_kept == model.n_iter_ == len(trees) // model.ensemble_.n_outputs
    assert model.guarantee_.rounds == (1, model.n_iter_)
    assert [part.rounds for part in model.guarantee_.parts] in ([], [(1, first), (first + 1, model.n_iter_)])
    applied = report.log.applied
    assert [line.applied for line in applied] == list(range(first, model.n_iter_))
    assert [tree.version for tree in trees[first * model.ensemble_.n_outputs :: model.ensemble_.n_outputs]] == [
        line.pulled for line in applied
    ]
    execution = case.params["execution"]
    workers = getattr(execution, "workers", 1)
    limit = getattr(execution, "max_staleness", None)
    most = max(workers - 1, 0) * 3 if limit is None else limit
    assert (report.log.staleness <= most).all()
    if workers == 1:
        assert (report.log.staleness == 0).all()


def check_law(model: Any, case: Composition) -> None:
    """A stationary law is claimed only where the theorem's assumptions can be seen to hold."""
    policy, guarantee = case.params.get("langevin"), model.guarantee_
    assert (model._fit_record().chain is not None) == (policy is not None)
    if guarantee.kind != "stationary law":
        return
    assert policy is not None
    assert policy.structure_noise
    assert policy.leaf_noise
    assert policy.shrinkage != 0.0
    sampling = case.params["sampling"]
    frozen = getattr(sampling, "frozen_from", None) is not None
    assert sampling in (None, 0.5, 1.0) or (frozen and policy.noise_scale == "weight")
    assert case.params["min_split_gain"] == 0.0
    assert getattr(case.params["execution"], "workers", 1) == 1 or isinstance(case.params["execution"], gb.DataParallel)
    loss, curvature = model.loss_, 1.0 if case.params["step"] != "constant" else model.loss_.smoothness
    assert loss.lipschitz is not None
    known = {one.name: one.value for one in guarantee.constants}
    assert (known["Lipschitz"], known["sigma"], known["C1"]) == (loss.lipschitz, loss.smoothness, 0.0)
    assert known["lambda*"] == pytest.approx(known["beta"] * known["gamma"])
    assert case.params["learning_rate"] * loss.smoothness / curvature < 1.0


def check_steps(model: Any, case: Composition, losses: Array, first: int) -> None:
    """The certificate bounds the steps that were taken, and every round fell."""
    steps = model.fit_report_.steps
    if steps is None:
        return
    scores = np.stack([np.repeat(model.ensemble_.bias[:, None], len(case.y), axis=1), *model.trace(case.x)])
    moved = np.diff(scores[first:], axis=0)
    if moved.shape[1] > 1:
        moved = moved - moved.min(axis=1, keepdims=True)
    rates = np.array(model.ensemble_.factors[first * moved.shape[1] :: moved.shape[1]]) * min(moved.shape[1], 2)
    rates = rates * model.ensemble_.scale  # of a chain that was continued without noise
    u = np.abs(moved).max(axis=(1, 2))
    assert ((np.exp(u) - 1.0 - u) * rates <= u * u * (1.0 + 1e-6) + 1e-12).all(), (
        "the third derivative is below the second"
    )
    assert (np.diff(losses[first:]) <= slack(losses[first:])).all()


def check(case: Composition, start: Any = None) -> Any:
    """Fit, and hold what the model says against its numbers. start: a model of the same rows to continue."""
    model = fitted(case) if start is None else fitted(case, init_model=start)
    if model is None:
        return None
    first = 0 if start is None else start.n_iter_
    losses = mean_losses(model, case)
    check_descent(model, losses)
    check_edges(model, losses)
    check_sampling(model, case)
    check_rounds(model, case, first)
    check_law(model, case)
    check_steps(model, case, losses, first)
    return model


def run(count: int, seed: int, folder: Path) -> Counter[str]:
    """How often each kind of guarantee was made."""
    rng, kinds = np.random.default_rng(seed), Counter[str]()
    for number in range(count):
        case = composition(rng)
        try:
            model = check(case)
            if model is not None and number % 4 == 0:
                check_continued(case, model, rng)
            if model is not None and number % 8 == 0:
                check_saved(model, folder)
        except (AssertionError, GpuBoostError) as error:
            raise AssertionError(f"composition {number} of seed {seed}: {case.params}") from error
        kinds["refused" if model is None else model.guarantee_.kind] += 1
    return kinds


def check_continued(case: Composition, model: Any, rng: np.random.Generator) -> None:
    """Another composition goes on with the model."""
    other = composition(rng).params
    kept = {name: case.params[name] for name in ("loss", "base_learner", "monotonic_cst") if name in case.params}
    other = {name: value for name, value in other.items() if name not in ("loss", "base_learner", "monotonic_cst")}
    other |= {"categorical_features": case.params["categorical_features"]} | kept
    if "base_learner" in kept:
        other["learners"] = None
    check(replace(case, params=other), model)


def check_saved(model: Any, folder: Path) -> None:
    """The file says what the fit said, and parameters that are set later change nothing."""
    before = model.guarantee_
    model.save_model(folder / "model.json")
    assert gb.load_model(folder / "model.json").guarantee_ == before
    assert model.set_params(learning_rate=0.01, step="auto").guarantee_ == before


def test_random_compositions_say_what_is_so(tmp_path: Path) -> None:
    kinds = run(200, 1, tmp_path)
    assert kinds["monotone descent"] >= 40, kinds
    assert kinds["none"] >= 20, kinds
    assert kinds["refused"] <= 120, kinds


@pytest.mark.slow
@pytest.mark.thorough
@pytest.mark.parametrize("seed", examples_of([2, 5, 6, 7, 8], at_least=2))
def test_many_random_compositions_say_what_is_so(seed: int, tmp_path: Path) -> None:
    kinds = run(1000, seed, tmp_path)  # and up to 250 that go on with one of them
    assert min(kinds["monotone descent"], kinds["none"]) >= 200, kinds
    assert min(kinds["linear rate"] + kinds["sublinear rate"], kinds["stationary law"]) >= 2, kinds


# theorem 4.1: the stump that was taken is the best of those drawn, and the bound holds


def stump_case(rng: np.random.Generator) -> Composition:
    """A random composition of stumps with a strongly convex loss, near the borders of the theorem."""
    binary = bool(rng.random() < 0.3)
    n = int(rng.integers(6, 40))
    x = rng.integers(0, int(rng.integers(2, 6)), (n, int(rng.integers(1, 4)))).astype(float)
    y: Array = rng.normal(size=n) * 3.0
    if binary:
        y = (y + x[:, 0] > np.median(y + x[:, 0])).astype(int)
        y[:2] = 0, 1
    options = rng.integers(0, 4)
    weight = (None, rng.integers(1, 4, n).astype(float), rng.uniform(0.05, 3.0, n), None)[options]
    pick = lambda *values: values[int(rng.integers(len(values)))]  # noqa: E731
    params: dict[str, Any] = {
        "loss": gb.losses.Logistic(float(pick(0.05, 1.0))) if binary else "squared_error",
        "n_estimators": 8,
        "n_jobs": 1,
        "random_state": int(rng.integers(1000)),
        "learning_rate": pick(1.0, 1.0, 0.5, 1.6),
        "step": pick("constant", "constant", "newton", "line_search"),
        "growth": pick("sign_stump", "depthwise", "oblivious"),
        "max_depth": 1,
        "reg_lambda": pick(0.0, 0.0, 0.0, 0.5),
        "min_child_weight": pick(0.0, 0.0, 0.0, 1.0, 0.3, 2.0),
        "random_strength": pick(0.0, 0.0, 0.0, 1.0),
        "learners": pick(None, None, None, 1, gb.RandomLearners(3)),
        "categorical_features": pick("from_dtype", "from_dtype", "from_dtype", [0]),
        "sampling": None,
        "execution": None,
    }
    if params["categorical_features"] != "from_dtype":
        params["learners"] = None
    return Composition("binary" if binary else "regression", params, x, y, weight)


class Stumps:
    """All stumps of a fit, by enumeration: a matrix of sides, and the (feature, cut) of each."""

    def __init__(self, model: Any, case: Composition) -> None:
        cuts = model.ensemble_.cuts
        self.pairs = [(f, b) for f, t in enumerate(cuts.thresholds) for b in range(len(t))]
        self.left = np.array([case.x[:, f] <= cuts.thresholds[f][b] for f, b in self.pairs]).reshape(-1, len(case.y))
        self.signed = case.params["growth"] == "sign_stump"

    def projections(self, r: Array, weight: Array) -> Array:
        """|P r|^2 of each stump, and of the constant learner, in the weighted inner product."""
        sums = self.left @ (weight * r)
        rest, total = (weight * r).sum() - sums, (weight * r).sum() ** 2 / weight.sum()
        if self.signed:
            return np.append((sums - rest) ** 2 / weight.sum(), total)
        h = self.left @ weight
        both = sums**2 / np.maximum(h, 1e-300) + rest**2 / np.maximum(weight.sum() - h, 1e-300)
        return np.append(np.where((h > 0.0) & (h < weight.sum()), both, total), total)

    def drawn(self, model: Any, case: Composition, number: int) -> Array:
        """Mask of the stumps that competed in a round; the constant always did."""
        rule = {1: gb.RandomGroups(1)}.get(case.params["learners"], case.params["learners"])
        if rule is None:
            return np.ones(len(self.pairs) + 1, bool)
        cuts, d = model.ensemble_.cuts, case.x.shape[1]
        key = Key.root(model.fit_report_.seed) / Stream.LEARNERS / number
        drawn = rule.prepared(cuts, d).draw(d, key)
        bits = {int(f): None if drawn.root is None else drawn.root[i] for i, f in enumerate(drawn.features)}
        allowed = [f in bits and (bits[f] is None or bool(bits[f][b >> 5] >> (b & 31) & 1)) for f, b in self.pairs]
        return np.array([*allowed, True])


def residual(model: Any, y: Array, f: Array) -> Array:
    if model.loss_.name == "squared_error":
        return y - f
    return y - 1.0 / (1.0 + np.exp(-f)) - model.loss_.parameter * f


def least_loss(model: Any, case: Composition, basis: Array, weight: Array) -> float:
    """The least summed loss in the span of the stumps, by Newton's method."""
    y, beta = case.y.astype(float), np.zeros(basis.shape[1])
    ridge = 0.0 if model.loss_.name == "squared_error" else model.loss_.parameter
    for _ in range(60):
        f = basis @ beta
        p = 1.0 / (1.0 + np.exp(-f))
        h = np.ones(len(y)) if model.loss_.name == "squared_error" else p * (1.0 - p) + ridge
        g = basis.T @ (weight * residual(model, y, f))
        move = np.linalg.lstsq(basis.T @ ((weight * h)[:, None] * basis), g, rcond=None)[0]
        beta = beta + move
        if np.abs(move).max() < 1e-13:
            break
    return summed_loss(model, y, basis @ beta, weight)


def summed_loss(model: Any, y: Array, f: Array, weight: Array) -> float:
    if model.loss_.name == "squared_error":
        return float((0.5 * weight * (y - f) ** 2).sum())
    each = np.logaddexp(0.0, np.where(y > 0.5, -f, f)) + 0.5 * model.loss_.parameter * f * f
    return float((weight * each).sum())


def check_theorem(model: Any, case: Composition) -> bool:
    """Each round took the best of the drawn stumps; True if the bound was compared, too."""
    assert not model.ensemble_.cuts.is_categorical.any()
    weight = np.ones(len(case.y)) if case.weight is None else case.weight
    y, stumps = case.y.astype(float), Stumps(model, case)
    scores = [np.full(len(y), model.ensemble_.bias[0]), *model.trace(case.x)[:, 0]]
    for number, tree in enumerate(model.ensemble_.trees):
        r = residual(model, y, scores[number])
        projections = stumps.projections(r, weight)
        best = projections[stumps.drawn(model, case, number)].max()
        nodes = tree.nodes
        took = len(stumps.pairs) if nodes.feature[0] < 0 else stumps.pairs.index((nodes.feature[0], int(nodes.bin[0])))
        size = (weight * r * r).sum()
        near = 1e-8 * max(size, (weight * y * y).sum())
        assert projections[took] >= best * (1.0 - 1e-4) - near, (number, nodes.feature)
    if case.params["learners"] is not None:
        return False
    learners, _ = gb.theory.sign_stumps(case.x, sample_weight=case.weight)
    sizes = np.linalg.eigvalsh(learners @ learners.T)
    xi = sizes[sizes > 1e-9 * sizes.max()].min() / learners.shape[1]
    basis = learners / np.sqrt(weight / weight.sum())[:, None]
    least = least_loss(model, case, basis, weight)
    gaps = [summed_loss(model, y, f, weight) - least for f in scores]
    rounding = 1e-7 * (1.0 + summed_loss(model, y, scores[0], weight))
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # xi must be that of the weighted rows, and is
        bounds = [model.guarantee_.bound(rounds, gaps[0], xi=xi) for rounds in range(len(gaps))]
    assert (np.array(gaps) <= np.array(bounds) * (1.0 + 1e-5) + rounding).all(), (gaps, bounds)
    return True


def run_stumps(count: int, seed: int) -> tuple[int, int, int]:
    """How many claimed theorem 4.1, had their bound compared, and claimed something else."""
    rng, claimed, bounded, other = np.random.default_rng(seed), 0, 0, 0
    for number in range(count):
        case = stump_case(rng)
        model = fitted(case)
        if model is None:
            continue
        try:
            check_descent(model, mean_losses(model, case))
            if model.guarantee_.kind == "linear rate":
                bounded += check_theorem(model, case)
                claimed += 1
            else:
                other += 1
        except AssertionError as error:
            raise AssertionError(f"stumps {number} of seed {seed}: {case.params}") from error
    return claimed, bounded, other


def test_theorem_4_1_is_claimed_of_the_best_stump_only() -> None:
    claimed, bounded, other = run_stumps(300, 3)
    assert claimed >= 40
    assert bounded >= 25
    assert other >= 100


@pytest.mark.slow
def test_theorem_4_1_of_many_stumps() -> None:
    assert min(run_stumps(1000, 4)) >= 80
