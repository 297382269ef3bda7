"""Oracles TF-1 to TF-8: functional gradient descent with any base learner."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import gpuboost as gb
from gpuboost.backends import get
from gpuboost.backends.numerics.line_search import pinball
from gpuboost.base_learners import line
from gpuboost.components import EstimatorComponent, SmoothTerm
from gpuboost.learners import CategoricalRidge, Linear, Spline, TensorSpline
from gpuboost.learners.families.basis import Axes, b_splines
from gpuboost.types import Cuts, TrainingSet

pytestmark = pytest.mark.slow

CPU = get("cpu", 2)


def rows(n: int = 300, seed: int = 0) -> tuple[np.ndarray, np.ndarray]:
    """Features of 40 distinct values, so that bins lose nothing."""
    rng = np.random.default_rng(seed)
    x = np.round(rng.normal(size=(n, 3)) * 8.0) / 8.0
    return x, x[:, 0] - 0.5 * x[:, 1] + np.sin(2.0 * x[:, 2]) + 0.1 * rng.normal(size=n)


class Direction:
    """A regressor that is one random vector, or a given one, whatever it is fitted to."""

    def __init__(self, size: float = 1.0, random_state: int = 0) -> None:
        self.size, self.random_state = size, random_state

    def get_params(self, deep: bool = True) -> dict[str, Any]:
        return {"size": self.size, "random_state": self.random_state}

    def set_params(self, **params: Any) -> Direction:
        for name, value in params.items():
            setattr(self, name, value)
        return self

    def fit(self, X: np.ndarray, y: np.ndarray) -> Direction:
        self.weights_ = np.random.default_rng(self.random_state).normal(size=X.shape[1])
        if (X @ self.weights_) @ y < 0.0:
            self.weights_ = -self.weights_  # an edge
        return self

    def predict(self, X: np.ndarray) -> np.ndarray:
        return self.size * (X @ self.weights_)


@pytest.mark.parametrize("family", [Linear(), CategoricalRidge(df=1000.0)], ids=lambda one: type(one).__name__)
def test_tf1_a_projection_is_as_long_as_a_line_search_wants_it(family: Any) -> None:
    """rho = beta, and the same as the constant step of squared error, whose sigma is 1."""
    x, y = rows()
    codes = {"categorical_features": [0, 1, 2]} if isinstance(family, CategoricalRidge) else {}
    given = {"base_learner": family, "n_estimators": 5, "learning_rate": 1.0, **codes}
    x = np.abs(x * 8.0) if codes else x
    constant = gb.GradientBoostingRegressor(step="constant", **given).fit(x, y)
    searched = gb.GradientBoostingRegressor(step="line_search", **given).fit(x, y)
    residual = y - float(constant.ensemble_.bias[0])
    for one, other in zip(constant.ensemble_.components, searched.ensemble_.components, strict=True):
        assert isinstance(one, SmoothTerm)
        assert isinstance(other, SmoothTerm)
        assert one.space.grid.features == other.space.grid.features
        np.testing.assert_allclose(one.coefficients, other.coefficients, rtol=1e-5, atol=1e-7)
        feature = one.space.grid.features[0]
        if isinstance(family, Linear):  # beta is that of a least-squares fit to the residuals
            slope, at = np.polyfit(x[:, feature] - x[:, feature].mean(), residual, 1)
            assert one.coefficients == pytest.approx([at, slope], abs=1e-5)
            residual = residual - slope * (x[:, feature] - x[:, feature].mean()) - at
        else:
            means = {value: residual[x[:, feature] == value].mean() for value in np.unique(x[:, feature])}
            residual = residual - np.array([means[value] for value in x[:, feature]])
    np.testing.assert_allclose(y - constant.predict(x), residual, atol=1e-5)


@pytest.mark.parametrize(
    ("loss", "task"),
    [("squared_error", "r"), ("huber", "r"), ("logistic", "c")],
)
def test_tf2_every_round_keeps_the_descent_lemma(loss: str, task: str) -> None:
    """L(F + rho h) <= L(F) - e^2 |r|^2 / (2 sigma) for a random h, with the constant step and rate 1."""
    x, y = rows()
    kind = gb.GradientBoostingRegressor if task == "r" else gb.GradientBoostingClassifier
    target = y if task == "r" else (y > 0.0).astype(int)
    given = {"loss": loss, "step": "constant", "learning_rate": 1.0, "random_state": 3}
    model = kind(base_learner=Direction(), n_estimators=40, **given).fit(x, target)
    sigma, made = model.loss_.smoothness, 0
    data = TrainingSet(CPU.quantise(x, model.ensemble_.cuts), model.ensemble_.cuts, target.astype(float), x=x)
    scores = CPU.start(data, model.ensemble_.bias)
    for one, factor in zip(model.ensemble_.components, model.ensemble_.factors, strict=True):
        before = CPU.losses(model.loss_, scores, data).sum()
        gradients = CPU.gradients(model.loss_, scores, data, sigma)
        one.add(CPU, scores, factor, data)
        after = CPU.losses(model.loss_, scores, data).sum()
        if isinstance(one, EstimatorComponent):
            made += 1
            e = line.edge(line.vectors(CPU, gradients, 0)[0], one.values(x))
            assert e > 0.0
            size = float((gradients.g.astype(float) ** 2).sum())
            assert after <= before - e * e * size / (2.0 * sigma) + 1e-6 * size
        else:
            assert after == before
    assert made > 30


@pytest.mark.parametrize("step", ["newton", "constant", "gradient", "line_search"])
def test_tf3_how_long_a_direction_is_does_not_matter(step: str) -> None:
    x, y = rows()
    target = y > 0.0
    given = {"step": step, "n_estimators": 15, "random_state": 1}
    short = gb.GradientBoostingClassifier(base_learner=Direction(1e-3), **given).fit(x, target)
    long = gb.GradientBoostingClassifier(base_learner=Direction(1e3), **given).fit(x, target)
    np.testing.assert_allclose(
        short.decision_function(x), long.decision_function(x), rtol=1e-4 if step == "line_search" else 1e-9
    )


def test_tf4_small_steps_feature_by_feature_come_to_ordinary_least_squares() -> None:
    x, y = rows(seed=4)
    model = gb.GradientBoostingRegressor(base_learner=Linear(), n_estimators=3000, learning_rate=0.05).fit(x, y)
    exact = np.linalg.lstsq(np.column_stack([np.ones(len(x)), x]), y, rcond=None)[0]
    slopes = np.zeros(3)
    for one, factor in zip(model.ensemble_.components, model.ensemble_.factors, strict=True):
        if isinstance(one, SmoothTerm):
            slopes[one.space.grid.features[0]] += factor * one.coefficients[1]
    np.testing.assert_allclose(slopes, exact[1:], atol=1e-5)
    np.testing.assert_allclose(model.predict(x), np.column_stack([np.ones(len(x)), x]) @ exact, atol=1e-5)


def training_set(x: np.ndarray, weight: np.ndarray | None = None) -> TrainingSet:
    cuts: Cuts = gb.Dataset(x).cuts
    return TrainingSet(CPU.quantise(x, cuts), cuts, np.zeros(len(x)), weight, x=x)


@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize(
    "family",
    [
        Spline(),
        Spline(df=7.5, knots=9, degree=2, difference=1, scale="value"),
        Spline(df=3.0, difference=1),
        TensorSpline(pairs=((0, 1),), df=6.0),
        CategoricalRidge(df=5.0, columns=(2,)),
    ],
)
def test_tf5_a_smoother_is_symmetric_shrinks_and_has_its_degrees_of_freedom(family: Any, weighted: bool) -> None:
    x, _ = rows(120)
    x[:20, 0] = np.nan
    weight = np.random.default_rng(1).uniform(0.5, 2.0, len(x)) if weighted else None
    data = training_set(x, weight)
    w = data.row_weight()
    for space in family.spaces(Axes(data, CPU.smoothing())):
        codes = [cells[data.bins.columns[f]] for f, cells in zip(space.grid.features, space.grid.cells, strict=True)]
        basis = np.zeros((space.grid.n_cells, space.size))
        for c, (first, own) in enumerate(zip(space.first, space.basis, strict=True)):
            stop = min(len(own), space.size - first)
            basis[c, first : first + stop] = own[:stop]
        b = basis[sum(codes)]
        penalty = np.zeros((space.size, space.size))
        for j in range(space.penalty.shape[1]):
            own = space.penalty[: space.size - j, j]
            penalty += np.diag(own, j) + (np.diag(own, -j) if j else 0.0)
        root = np.sqrt(w)[:, None] * b
        s = root @ np.linalg.pinv(root.T @ root + space.ridge * w.sum() * penalty) @ root.T
        np.testing.assert_allclose(s, s.T, atol=1e-9)
        eigenvalues = np.linalg.eigvalsh((s + s.T) / 2.0)
        assert eigenvalues.min() > -1e-9
        assert eigenvalues.max() < 1.0 + 1e-9
        assert np.trace(2.0 * s - s.T @ s) == pytest.approx(family.df, abs=1e-6)


class OneTree:
    """A regressor that is one tree of this library: the built-in learner, through the door for anybody's."""

    def __init__(self, max_depth: int = 3) -> None:
        self.max_depth = max_depth

    def fit(self, X: np.ndarray, y: np.ndarray, sample_weight: np.ndarray | None = None) -> OneTree:
        tree = gb.GradientBoostingRegressor(
            n_estimators=1, learning_rate=1.0, max_depth=self.max_depth, reg_lambda=0.0, min_child_weight=0.0
        )
        self.tree_ = tree.fit(X, y, sample_weight)
        return self

    def predict(self, X: np.ndarray) -> np.ndarray:
        return self.tree_.predict(X)


def test_tf6_the_built_in_tree_as_an_estimator_gives_the_same_model() -> None:
    x, y = rows()
    given = {"n_estimators": 20, "learning_rate": 0.3}
    trees = gb.GradientBoostingRegressor(max_depth=3, reg_lambda=0.0, min_child_weight=0.0, **given).fit(x, y)
    wrapped = gb.GradientBoostingRegressor(base_learner=OneTree(), **given).fit(x, y)
    np.testing.assert_allclose(wrapped.predict(x), trees.predict(x), atol=1e-5)


@pytest.mark.parametrize("alpha", [0.5, 0.2, 0.9])
def test_tf7_a_line_search_of_a_quantile_loss_is_the_best_of_all_lengths(alpha: float) -> None:
    rng = np.random.default_rng(5)
    for _ in range(20):
        residual, f, weight = rng.normal(size=60), rng.normal(size=60) + 0.3 * rng.normal(), rng.uniform(0.1, 3.0, 60)
        f *= np.sign(f @ np.where(residual > 0.0, alpha, alpha - 1.0))  # a way down

        def loss(rho: float, r: np.ndarray = residual, f: np.ndarray = f, w: np.ndarray = weight) -> float:
            u = r - rho * f
            return float((w * np.where(u > 0.0, alpha * u, (alpha - 1.0) * u)).sum())

        found = pinball(residual, f, weight, alpha)
        assert found >= 0.0
        candidates = [0.0, *(residual / f)[residual / f > 0.0]]
        assert loss(found) == pytest.approx(min(map(loss, candidates)), abs=1e-9)


def test_tf7_it_is_what_a_component_of_the_absolute_loss_is_scaled_by() -> None:
    x, y = rows()
    model = gb.GradientBoostingRegressor(
        "absolute_error", n_estimators=1, learning_rate=1.0, base_learner=Direction()
    ).fit(x, y)
    (one,) = model.ensemble_.components
    assert isinstance(one, EstimatorComponent)
    residual, f = y - model.ensemble_.bias[0], one.values(x)
    losses = [np.abs(residual - rho * f).sum() for rho in residual / f]
    assert np.abs(residual - one.coefficient * f).sum() == pytest.approx(min(losses), abs=1e-9)


@pytest.mark.parametrize("loss", ["squared_error", "huber", "poisson", "absolute_error"])
def test_tf7_a_tree_goes_as_far_as_an_estimator_of_the_same_shape(loss: str) -> None:
    x, y = rows()
    y = np.exp(y) if loss == "poisson" else y
    given = {"loss": loss, "n_estimators": 6, "learning_rate": 0.5, "step": "line_search"}
    trees = gb.GradientBoostingRegressor(max_depth=3, reg_lambda=0.0, min_child_weight=0.0, **given).fit(x, y)
    wrapped = gb.GradientBoostingRegressor(base_learner=OneTree(), **given).fit(x, y)
    np.testing.assert_allclose(wrapped.predict(x), trees.predict(x), rtol=1e-5, atol=1e-5)


@pytest.mark.parametrize("loss", ["squared_error", "poisson"])
def test_tf8_what_is_added_up_predicts_what_its_rounds_do(loss: str) -> None:
    x, y = rows()
    x[::17, 1] = np.nan
    y = np.exp(0.3 * y) if loss == "poisson" else y
    families = [Linear(), Spline(), TensorSpline(pairs=((0, 2),)), gb.learners.Tree()]
    model = gb.GradientBoostingRegressor(loss, n_estimators=200, base_learner=families).fit(x, y)
    kinds = {type(one).__name__ for one in model.ensemble_.components}
    assert kinds >= {"SmoothTerm"}
    np.testing.assert_allclose(list(model.staged_predict(x))[-1], model.predict(x), rtol=1e-12, atol=1e-12)


def test_a_model_of_many_rounds_predicts_as_fast_as_its_spaces() -> None:
    x, y = rows()
    seen: list[int] = []

    class Counting:
        def __init__(self, inner: Any) -> None:
            self.inner = inner

        def __getattr__(self, name: str) -> Any:
            return getattr(self.inner, name)

        def add_all(self, scores: Any, tables: Any, bins: Any) -> None:
            seen.append(len(tables))
            self.inner.add_all(scores, tables, bins)

    model = gb.GradientBoostingRegressor(n_estimators=500, base_learner=[Linear(), Spline()]).fit(x, y)
    cpu = get("cpu", 1)
    cpu._smoothing = Counting(cpu.smoothing())  # type: ignore[attr-defined]
    cpu.predict(model.ensemble_, x)
    assert len(seen) == 1
    assert 0 < seen[0] <= 3  # one table for each feature, whatever the rounds and families


def test_b_splines_are_those_of_scipy() -> None:
    from scipy.interpolate import BSpline

    u = np.sort(np.random.default_rng(2).uniform(-3.0, 5.0, 50))
    for pieces, degree in ((1, 0), (5, 3), (7, 2), (3, 5)):
        first, values = b_splines(u, pieces, degree)
        step = (u[-1] - u[0]) / pieces
        knots = u[0] + step * np.arange(-degree, pieces + degree + 1)
        dense = np.zeros((len(u), pieces + degree))
        for row, at, own in zip(dense, first, values, strict=True):
            row[at : at + degree + 1] = own
        at = np.minimum(u, u[-1] - 1e-9)
        np.testing.assert_allclose(dense, BSpline.design_matrix(at, knots, degree).toarray(), atol=1e-6)


def test_the_more_flexible_family_does_not_always_win() -> None:
    """Equal degrees of freedom: where the truth is a category's effect, splines of a numeric feature rarely win."""
    rng = np.random.default_rng(7)
    x = np.column_stack([rng.normal(size=500), rng.integers(0, 30, 500)])
    y = rng.normal(size=30)[x[:, 1].astype(int)] + 0.5 * rng.normal(size=500)
    won: list[str] = []

    def note(progress: Any) -> None:
        (one,) = progress.ensemble.components[-1:]
        won.append(one.space.family if isinstance(one, SmoothTerm) else "none")

    gb.GradientBoostingRegressor(
        n_estimators=20, base_learner=[Spline(), CategoricalRidge()], categorical_features=[1], callbacks=[note]
    ).fit(x, y)
    assert won.count("categorical") >= 18
