"""Every built-in loss passes the suite that a loss of one's own is held to."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import numpy as np
import pytest
from scipy.special import polygamma

from gpuboost import losses
from gpuboost.backends.reference.backend import Reference
from gpuboost.losses import (
    AFT,
    XENDCG,
    AbsoluteError,
    CrossEntropy,
    Expectile,
    Exponential,
    Gamma,
    GammaNLL,
    GaussianNLL,
    Huber,
    LambdaMART,
    Logistic,
    LogitBoost,
    LogNormalNLL,
    NegativeBinomialNLL,
    PairLogit,
    PairwiseLogistic,
    Poisson,
    Quantile,
    Quantiles,
    SmoothedZeroOne,
    Softmax,
    SquaredError,
    StochasticRank,
    Tweedie,
    UnbiasedLambdaMART,
)
from gpuboost.testing.losses import ListLossContract, LossContract
from gpuboost.types import Pairs, TrainingSet

Array = np.ndarray


class Real(LossContract):
    outside = ([1.0, 1e31],)

    def targets(self, rng: np.random.Generator, n: int) -> Array:
        return rng.normal(size=n) * 3.0 + 1.0


class Count(LossContract):
    outside = ([1.0, -1.0], [1e18, 1.0], [0.0, 0.0])

    def targets(self, rng: np.random.Generator, n: int) -> Array:
        return rng.poisson(2.0, n).astype(np.float64)


class Positive(LossContract):
    outside = ([1.0, -1.0], [1e18, 1.0], [1.0, 0.0], [1.0, 1e-20])

    def targets(self, rng: np.random.Generator, n: int) -> Array:
        return rng.gamma(2.0, 3.0, n)


class Binary(LossContract):
    outside = ([0.0, 2.0], [-1.0, 1.0], [0.0, 0.5])

    def targets(self, rng: np.random.Generator, n: int) -> Array:
        return (rng.random(n) < 0.3).astype(np.float64)


class Shares(LossContract):
    outside = ([0.0, 1.5], [-0.1, 1.0])

    def targets(self, rng: np.random.Generator, n: int) -> Array:
        return np.round(rng.beta(0.7, 1.5, n), 2)  # some are 0 and 1


class Times(LossContract):
    loss: AFT
    outside = ([1.0, 0.0], [1e18, 1.0], [1.0, 1e-20], [-1.0, -2.0])

    def targets(self, rng: np.random.Generator, n: int) -> Array:
        return rng.gamma(2.0, 3.0, n) * np.where(np.arange(n) % 3 == 1, -1.0, 1.0)


class Classes(LossContract):
    loss: Softmax
    outside = ([0.0, -1.0], [0.0, 1.5])

    def targets(self, rng: np.random.Generator, n: int) -> Array:
        return rng.integers(0, self.loss.n_classes, n).astype(np.float64)

    def curvature(self, y: float, f: Array, bend: Array) -> Array:
        """That of Friedman's step: k / (k - 1) times the second derivative."""
        return bend * self.loss.n_classes / (self.loss.n_classes - 1)


class TestSquaredError(Real):
    loss = SquaredError()


class TestHuber(Real):
    loss = Huber()
    starts_at_least = False  # it starts at the median

    def kinks(self, y: float) -> Sequence[float]:
        return y - self.loss.parameter, y + self.loss.parameter


class TestHuberOfSmallDelta(TestHuber):
    loss = Huber(delta=0.3)


class Kinked(Real):
    def kinks(self, y: float) -> Sequence[float]:
        return (y,)


class TestAbsoluteError(Kinked):
    loss = AbsoluteError()


class TestQuantile(Kinked):
    loss = Quantile()


class TestQuantileNearOne(Kinked):
    loss = Quantile(alpha=0.9)


class TestExpectile(Kinked):
    loss = Expectile()


class TestExpectileNearOne(Kinked):
    loss = Expectile(alpha=0.9)


class TestQuantiles(Real):
    loss = Quantiles((0.05, 0.5, 0.9))


class TestPoisson(Count):
    loss = Poisson()


class TestGamma(Positive):
    loss = Gamma()


class TestTweedie(Count):
    loss = Tweedie()

    def targets(self, rng: np.random.Generator, n: int) -> Array:
        return rng.gamma(2.0, 3.0, n) * (rng.random(n) < 0.5)


class TestTweedieNearPoisson(TestTweedie):
    loss = Tweedie(power=1.1)


class TestTweedieNearGamma(TestTweedie):
    loss = Tweedie(power=1.9)


class TestCrossEntropy(Shares):
    loss = CrossEntropy()


class TestAFT(Times):
    loss = AFT()


class TestAFTOfALogistic(Times):
    loss = AFT("logistic", 0.5)

    def curvature(self, y: float, f: Array, bend: Array) -> Array:
        """Of events that of the quadratic through the least loss."""
        z = (np.log(abs(y)) - f) / self.loss.scale
        return np.tanh(0.5 * z) / z / self.loss.scale**2 if y > 0.0 else bend


class TestAFTOfAnExtremeValue(Times):
    loss = AFT("extreme", 2.0)

    def curvature(self, y: float, f: Array, bend: Array) -> Array:
        """Of late predictions of events that of the quadratic through the least loss."""
        z = (np.log(abs(y)) - f) / self.loss.scale
        return np.expm1(z) / z / self.loss.scale**2 if y > 0.0 and z[0] < 0.0 else bend


class TestLogistic(Binary):
    loss = Logistic()


class TestLogisticWithRidge(Binary):
    loss = Logistic(ridge=0.5)


class TestExponential(Binary):
    loss = Exponential()


class TestLogitBoost(Binary):
    loss = LogitBoost()


class TestSmoothedZeroOne(Binary):
    loss = SmoothedZeroOne(0.4)
    starts_at_least = False  # it is not convex, and starts at 0

    def curvature(self, y: float, f: Array, bend: Array) -> Array:
        """A bound on it, as it may be negative."""
        return np.full(1, self.loss.smoothness)


class TestGaussianNLL(Real):
    loss = GaussianNLL()
    outside = ([1.0, 1e10],)

    def curvature(self, y: float, f: Array, bend: Array) -> Array:
        """The Fisher information."""
        return np.array([bend[0], 2.0])


class TestLogNormalNLL(Positive):
    loss = LogNormalNLL()

    def curvature(self, y: float, f: Array, bend: Array) -> Array:
        """The Fisher information, three times that of the spread."""
        return np.array([bend[0], 6.0])


class TestGammaNLL(Positive):
    loss = GammaNLL()

    def curvature(self, y: float, f: Array, bend: Array) -> Array:
        """The Fisher information, three times that of the shape."""
        k = float(np.exp(f[1]))
        return np.array([k, 3.0 * (k * k * float(polygamma(1, k)) - k)])


class TestNegativeBinomialNLL(Count):
    loss = NegativeBinomialNLL()
    outside = (*Count.outside, [1.0, 0.5])
    starts_at_least = False  # it starts at the moments of the target
    starts_beside = False  # no formula

    def curvature(self, y: float, f: Array, bend: Array) -> Array:
        """The Fisher information, and three times the square of the gradient, whose mean it is."""
        mean, r = np.exp(f)
        slope = self._derivatives(y, f)[0][1]
        return np.array([mean * r / (mean + r), 3.0 * max(slope * slope, 1e-6)])


class TestSoftmaxOfTwoClasses(Classes):
    loss = Softmax(2)
    starts_beside = False  # no formula


class TestSoftmaxOfFiveClasses(Classes):
    loss = Softmax(5)
    starts_beside = False  # no formula


class TestLambdaMART(ListLossContract):
    loss = LambdaMART()
    outside = ([0.0, 32.0], [1.0, 0.5], [-1.0, 1.0])


class TestLambdaMARTOfGivenGains(ListLossContract):
    loss = LambdaMART(sigma=3.0, truncation=3, gain=(0.0, 1.0, 1.0, 7.0, 20.0), normalise=False)
    outside = ([0.0, 5.0],)


class TestLambdaMARTOfMAP(ListLossContract):
    loss = LambdaMART(metric="map")
    outside = ([0.0, 2.0], [1.0, 0.5])

    def targets(self, rng: np.random.Generator, n: int) -> Array:
        return rng.integers(0, 2, n).astype(np.float64)

    def test_a_list_of_one_label_has_no_derivatives(self) -> None:
        for label in (0.0, 1.0):
            data = TrainingSet(None, None, np.full(30, label), query_start=np.array([0, 30]))
            for machine in (Reference(), *self.machines()):
                gradients = self._gradients(machine, np.linspace(-3.0, 3.0, 30)[None], data, None)
                assert not machine.to_host(gradients.g).any()
                assert not machine.to_host(gradients.h).any()


class TestPairwiseLogistic(ListLossContract):
    loss = PairwiseLogistic()
    outside = ([1.0, 0.5], [-1.0, 1.0])


class TestPairwiseLogisticOfFirstPlaces(ListLossContract):
    loss = PairwiseLogistic(truncation=20, normalise=False)


class TestPairLogit(ListLossContract):
    loss = PairLogit()

    def training_set(self, rng: np.random.Generator, n: int) -> TrainingSet:
        pairs = Pairs(*rng.integers(0, n, (2, 2 * n)), rng.exponential(size=2 * n))
        return replace(super().training_set(rng, n), pairs=pairs)

    def test_a_list_of_one_label_has_no_derivatives(self) -> None:
        """Labels say nothing; rows without pairs have none."""
        data = replace(self.training_set(np.random.default_rng(0), 30), pairs=Pairs(*np.array([[1, 2], [3, 4]])))
        for machine in (Reference(), *self.machines()):
            gradients = self._gradients(machine, np.linspace(-3.0, 3.0, 30)[None], data, None)
            assert not machine.to_host(gradients.g)[0, 5:].any()
            assert (machine.to_host(gradients.h)[0, 1:5] > 0.0).all()


class TestUnbiasedLambdaMART(ListLossContract):
    loss = UnbiasedLambdaMART()
    outside = ([0.0, 32.0], [1.0, 0.5], [-1.0, 1.0])


class TestStochasticRank(ListLossContract):
    loss = StochasticRank()
    outside = ([0.0, 32.0], [1.0, 0.5], [-1.0, 1.0])


class TestStochasticRankOfSeveralDraws(ListLossContract):
    loss = StochasticRank(sigma=5.0, truncation=None, gain=(0.0, 1.0, 1.0, 7.0, 20.0), mu=0.5, samples=2)
    outside = ([0.0, 5.0],)


class TestXENDCG(ListLossContract):
    loss = XENDCG()
    outside = ([0.0, 32.0], [1.0, 0.5], [-1.0, 1.0])

    def test_a_list_of_one_label_has_no_derivatives(self) -> None:
        """It has, as its labels are perturbed; a list of one document has none."""
        data = TrainingSet(None, None, np.full(30, 2.0), query_start=np.arange(31))
        for machine in (Reference(), *self.machines()):
            gradients = self._gradients(machine, np.linspace(-3.0, 3.0, 30)[None], data, None)
            assert not machine.to_host(gradients.g).any()
            assert not machine.to_host(gradients.h).any()


SUITES = [one for name, one in list(globals().items()) if name.startswith("Test")]


def test_every_built_in_loss_has_a_suite() -> None:
    assert {one.loss.name for one in SUITES} == set(losses.NAMES), "each loss has a class in this file: CONTRIBUTING.md"


@pytest.mark.parametrize("suite", SUITES, ids=lambda suite: suite.__name__)
def test_a_loss_is_written_as_it_is_made(suite: type[LossContract]) -> None:
    assert eval(repr(suite.loss), {name: getattr(losses, name) for name in losses.__all__}) == suite.loss


# The suite finds what is wrong.


class Tilted:
    """A squared error with one defect. What is not said here is the squared error's."""

    def __init__(self, defect: str) -> None:
        self.defect = defect

    def __getattr__(self, name: str) -> object:
        if name.startswith("__") or name == "defect":
            raise AttributeError(name)
        return getattr(SquaredError(), name)

    def derivatives(self, y: float, f: float, a: float) -> tuple[float, float]:
        tilt = 1e-3 if self.defect == "gradient" else 0.0
        return f - y + tilt, 1.0 + (1e-3 if self.defect == "hessian" else 0.0)

    def check_target(self, y: Array) -> None:
        if self.defect != "domain":
            SquaredError().check_target(y)

    def start(self, y: Array, weight: Array) -> Array:
        shift = 0.25 if self.defect == "start" else 0.0
        return SquaredError().start(y, weight) + shift


@pytest.mark.parametrize(
    ("defect", "test"),
    [
        ("gradient", "test_derivatives_are_those_of_the_value"),
        ("hessian", "test_derivatives_are_those_of_the_value"),
        ("hessian", "test_curvature_lies_between_the_constants_of_the_loss"),
        ("start", "test_the_start_is_the_constant_of_least_loss"),
        ("domain", "test_targets_outside_the_domain_are_refused"),
        ("value", "test_it_is_a_value"),
    ],
)
def test_a_defect_is_found(defect: str, test: str) -> None:
    suite = type("Suite", (Real,), {"loss": Tilted(defect)})()
    with pytest.raises(AssertionError):
        getattr(suite, test)()
    if defect != "value":
        suite.test_the_start_does_not_depend_on_the_order_of_rows()
