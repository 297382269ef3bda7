"""The contract of a loss: what the training loop, the machines and model files rely on.

Subclass ``LossContract`` in a test module, and pytest collects its tests::

    from gpuboost.testing.losses import LossContract

    class TestMyLoss(LossContract):
        loss = MyLoss(delta=2.0)
        outside = ([1.0, float("nan")],)

        def targets(self, rng, n):
            return rng.normal(size=n)
"""

from __future__ import annotations

import copy
import json
import math
import pickle
from abc import ABC
from collections.abc import Callable, Sequence
from typing import Any, ClassVar, cast

import numpy as np
from numpy.typing import NDArray

from gpuboost import losses
from gpuboost.backends.cpu.backend import Cpu
from gpuboost.backends.protocol import Backend
from gpuboost.backends.reference.backend import Reference
from gpuboost.errors import InputError
from gpuboost.keys import Key, Stream
from gpuboost.losses import BaseLoss, Loss
from gpuboost.losses.protocol import is_drawn
from gpuboost.types import Gradients, TrainingSet

Numbers = NDArray[np.float64]

STEP = 2.0**-17  # of finite differences


def _message(kind: type[Exception] | tuple[type[Exception], ...], call: Callable[..., Any], *arguments: Any) -> str:
    """The text of the error that the call raises; empty if it raises none."""
    try:
        call(*arguments)
    except kind as error:
        return str(error)
    return ""


class _AnyLoss(ABC):
    """Properties of losses of rows and of losses of lists."""

    loss: ClassVar[Any]
    outside: ClassVar[Sequence[Any]] = ()
    in_model_files: ClassVar[bool] = True

    # for subclasses to override

    def targets(self, rng: np.random.Generator, n: int) -> Numbers:
        """(n,) float64 targets inside the domain of the loss."""
        raise NotImplementedError("a contract of a loss needs targets that the loss accepts")

    def machines(self) -> Sequence[Backend]:
        """Machines whose derivatives must be those of the reference to the last bit."""
        return Cpu(1), Cpu(3)

    def training_set(self, rng: np.random.Generator, n: int) -> TrainingSet:
        """Rows with targets, and with all else that the loss needs to know of them."""
        return TrainingSet(None, None, self.targets(rng, n))  # type: ignore[arg-type] # gradients look at no bins

    # the contract

    def test_every_machine_computes_the_same_bits(self) -> None:
        rng = np.random.default_rng(1)
        data, reference = self.training_set(rng, 3_000), Reference()
        scores = rng.normal(size=(self.loss.n_outputs, 3_000)) * 20.0
        curvatures = (None,) if self.loss.smoothness is None else (None, self.loss.smoothness)
        for curvature in curvatures:
            expected = self._gradients(reference, scores, data, curvature)
            for machine in self.machines():
                computed = self._gradients(machine, scores, data, curvature)
                for name in ("g", "h"):
                    ours, theirs = (machine.to_host(getattr(gradients, name)) for gradients in (computed, expected))
                    assert ours.dtype == np.float32
                    np.testing.assert_array_equal(ours.view(np.int32), theirs.view(np.int32), err_msg=name)

    def test_targets_inside_the_domain_are_accepted(self) -> None:
        self.loss.check_target(self.targets(np.random.default_rng(3), 200))

    def test_targets_outside_the_domain_are_refused(self) -> None:
        """Missing and infinite numbers, no rows, and what the subclass lists."""
        inside = float(self.targets(np.random.default_rng(3), 1)[0])
        for y in ([inside, math.nan], [math.inf, inside], [], *self.outside):
            message = _message(InputError, self.loss.check_target, np.array(y))
            assert message.startswith("y: "), f"targets {y!r}: must be refused, y: being named; {message!r}"

    def test_the_start_is_one_finite_float32_number_for_each_output(self) -> None:
        start = self.loss.start(self.targets(np.random.default_rng(3), 200), np.ones(200))
        assert (start.dtype, start.shape) == (np.float64, (self.loss.n_outputs,))
        assert np.isfinite(start).all()
        np.testing.assert_array_equal(start, start.astype(np.float32))

    def test_predictions_are_finite_for_every_finite_score(self) -> None:
        k = self.loss.n_outputs
        scores = np.random.default_rng(0).normal(size=(k, 50)) * 3.0
        scores[:, 0], scores[0, 1] = 1e300, -1e300
        predicted = self.loss.inverse_link(scores)
        assert predicted.shape[0] == 50
        assert np.isfinite(predicted).all()

    def test_it_is_a_value(self) -> None:
        """Copies and pickles are equal to it, also as keys; nothing of it can be changed."""
        for other in (pickle.loads(pickle.dumps(self.loss)), copy.deepcopy(self.loss)):
            assert type(other) is type(self.loss)
            assert other == self.loss
            assert hash(other) == hash(self.loss)
        assert "\n" not in repr(self.loss)
        assert _message((AttributeError, TypeError), setattr, self.loss, "parameter", 3.0), "it can be changed"

    def test_a_model_file_gives_it_back(self) -> None:
        if self.in_model_files:
            stored = losses.to_json(self.loss)
            again = losses.from_json(json.loads(json.dumps(stored)))
            assert again == self.loss
            assert type(again) is type(self.loss)
            assert losses.to_json(again) == stored

    def _gradients(self, machine: Backend, scores: Numbers, data: TrainingSet, curvature: float | None) -> Gradients:
        """The derivatives by the verb of the loss, which may draw."""
        if is_drawn(self.loss):
            key = Key.root(1) / Stream.SCORE_NOISE / 5
            return machine.drawn_gradients(self.loss, scores, data, curvature, key)
        return machine.gradients(self.loss, scores, data, curvature)


class LossContract(_AnyLoss):
    """A suite of tests of one loss of rows, of one output or of several.

    Attributes
    ----------
    loss
        The loss, as ``gpuboost.losses.Loss`` describes it.
    outside
        Targets outside its domain, each a list of numbers; ``check_target`` must raise ``InputError`` for each.
        Missing and infinite numbers are tried anyway.
    starts_at_least
        Whether ``start`` gives the constant with the least loss. False for a loss that starts elsewhere on purpose.
    starts_beside
        Whether ``start_beside`` has a formula. False for a loss whose fits with ``init_score`` begin at 0.
    in_model_files
        Whether ``losses.to_json`` knows the loss. False for a loss that is not registered.
    """

    loss: ClassVar[Loss]
    starts_at_least: ClassVar[bool] = True
    starts_beside: ClassVar[bool] = True

    # for subclasses to override

    def kinks(self, y: float) -> Sequence[float]:
        """Scores at which a derivative jumps, for a target y."""
        return ()

    def curvature(self, y: float, f: Numbers, bend: Numbers) -> Numbers:
        """(k,) the h that the loss should give, from the second derivatives ``bend``, which are the usual choice."""
        return bend

    # the contract

    def test_derivatives_are_those_of_the_value(self) -> None:
        """Finite differences of the value, and of the gradient."""
        rng = np.random.default_rng(7)
        for y in self.targets(rng, 200).tolist():
            f = rng.uniform(-12.0, 12.0, self.loss.n_outputs)
            if any(abs(f[0] - kink) < 4 * STEP for kink in self.kinks(y)):
                continue
            g, h = self._derivatives(y, f)
            slope, bend = np.empty_like(f), np.empty_like(f)
            for c in range(len(f)):
                above, below = f.copy(), f.copy()
                above[c] += STEP
                below[c] -= STEP
                slope[c] = (self._value(y, above) - self._value(y, below)) / (2 * STEP)
                bend[c] = (self._derivatives(y, above)[0][c] - self._derivatives(y, below)[0][c]) / (2 * STEP)
            near = 1e-9 * (1.0 + float(np.abs(g).max()) + abs(self._value(y, f)))
            where = f"y = {y!r}, f = {f!r}"
            np.testing.assert_allclose(slope, g, rtol=1e-6, atol=10.0 * near, err_msg=where)
            np.testing.assert_allclose(self.curvature(y, f, bend), h, rtol=1e-6, atol=10.0 * near, err_msg=where)

    def test_derivatives_are_finite_for_every_finite_score(self) -> None:
        rng = np.random.default_rng(4)
        for y in self.targets(rng, 50).tolist():
            for size in (0.0, 1.0, 50.0, 800.0, 1e30, 1e140):
                f = size * rng.uniform(-1.0, 1.0, self.loss.n_outputs)
                g, h = self._derivatives(y, f)
                assert np.isfinite(g).all(), (y, f)
                assert np.isfinite(h).all(), (y, f)
                assert (h >= 0.0).all(), (y, f)
                assert math.isfinite(self._value(y, f)), (y, f)

    def test_curvature_lies_between_the_constants_of_the_loss(self) -> None:
        """``strong_convexity`` and ``smoothness``, if the loss states one."""
        rng, smoothness = np.random.default_rng(5), self.loss.smoothness
        if smoothness is None:
            return
        for y in self.targets(rng, 400).tolist():
            for f in (rng.uniform(-20.0, 20.0, self.loss.n_outputs), np.zeros(self.loss.n_outputs)):
                h = self._derivatives(y, f)[1]
                assert h.max() <= smoothness, (y, f)
                assert h.min() >= self.loss.strong_convexity, (y, f)

    def test_the_start_is_the_constant_of_least_loss(self) -> None:
        if not self.starts_at_least:
            return
        rng = np.random.default_rng(5)
        y = self.targets(rng, 200)
        for weight in (np.ones(200), rng.gamma(1.0, 1.0, 200)):
            start = self.loss.start(y, weight)
            slope = sum(w * np.abs(self._derivatives(t, start)[0]).max() for t, w in zip(y, weight, strict=True))
            rounding = 2.0**-23 * float(np.abs(start).max()) * slope  # F_0 is rounded to float32
            least = self._total(y, weight, start) - rounding
            for size in (1e-3, 1e-2, 0.1, 1.0):
                for step in (*np.eye(len(start)), *rng.normal(size=(3, len(start)))):
                    assert least <= self._total(y, weight, start + size * step), (start, size * step)
                    assert least <= self._total(y, weight, start - size * step), (start, size * step)

    def test_beside_offsets_of_zero_the_start_is_the_same(self) -> None:
        """``start_beside``, from which fits with ``init_score`` begin, and those that continue another model."""
        if not self.starts_beside:
            return
        y, weight = self.targets(np.random.default_rng(7), 200), np.random.default_rng(7).gamma(1.0, 1.0, 200)
        beside = cast(BaseLoss, self.loss).start_beside(y, weight, np.zeros((self.loss.n_outputs, 200)))
        np.testing.assert_allclose(beside, self.loss.start(y, weight), rtol=1e-5, atol=1e-5)

    def test_a_weight_of_three_is_a_row_repeated_three_times(self) -> None:
        rng = np.random.default_rng(8)
        for _ in range(20):
            y, weight = self.targets(rng, 37), rng.integers(1, 7, 37)
            repeated = np.repeat(y, weight)
            np.testing.assert_array_equal(
                self.loss.start(y, weight.astype(np.float64)), self.loss.start(repeated, np.ones(len(repeated)))
            )

    def test_the_start_does_not_depend_on_the_order_of_rows(self) -> None:
        rng = np.random.default_rng(3)
        y, weight = self.targets(rng, 200), rng.integers(1, 5, 200).astype(np.float64)
        order = rng.permutation(200)
        np.testing.assert_array_equal(self.loss.start(y, weight), self.loss.start(y[order], weight[order]))

    def test_the_formulas_of_the_other_kind_are_undefined(self) -> None:
        """``value`` and ``derivatives`` of a loss of several outputs, ``row_value`` and the other of a loss of one."""
        several = self.loss.n_outputs > 1
        other: Any = (
            (self.loss.value, self.loss.derivatives) if several else (self.loss.row_value, self.loss.row_derivatives)
        )
        for formula in other:
            assert "a loss of one output has value and derivatives" in _message(TypeError, formula, 1.0, 0.0, 0.0)

    # one text for losses of one output and of several

    def _value(self, y: float, f: Numbers) -> float:
        if self.loss.n_outputs > 1:
            return float(self.loss.row_value(y, f, self.loss.parameter))
        return float(self.loss.value(y, float(f[0]), self.loss.parameter))

    def _derivatives(self, y: float, f: Numbers) -> tuple[Numbers, Numbers]:
        if self.loss.n_outputs > 1:
            g, h = np.empty(len(f)), np.empty(len(f))
            self.loss.row_derivatives(y, f, g, h, self.loss.parameter)
            return g, h
        first, second = self.loss.derivatives(y, float(f[0]), self.loss.parameter)
        return np.array([first]), np.array([second])

    def _total(self, y: Numbers, weight: Numbers, f: Numbers) -> float:
        return math.fsum(w * self._value(t, f) for t, w in zip(y.tolist(), weight.tolist(), strict=True))


class ListLossContract(_AnyLoss):
    """A suite of tests of one loss of lists: labels are whole numbers, rows belong to queries.

    Attributes
    ----------
    loss
        The loss, as ``gpuboost.losses.protocol.ListLoss`` describes it.
    outside, in_model_files
        As in ``LossContract``.
    """

    def targets(self, rng: np.random.Generator, n: int) -> Numbers:
        return rng.integers(0, 5, n).astype(np.float64)

    def training_set(self, rng: np.random.Generator, n: int) -> TrainingSet:
        starts = np.arange(0, n + 1, 30)
        return TrainingSet(None, None, self.targets(rng, n), query_start=starts)  # type: ignore[arg-type]

    def test_a_list_of_one_label_has_no_derivatives(self) -> None:
        data = TrainingSet(None, None, np.full(30, 2.0), query_start=np.array([0, 30]))  # type: ignore[arg-type]
        for machine in (Reference(), *self.machines()):
            gradients = self._gradients(machine, np.linspace(-3.0, 3.0, 30)[None], data, None)
            assert not machine.to_host(gradients.g).any()
            assert not machine.to_host(gradients.h).any()

    def test_the_formulas_of_rows_are_undefined(self) -> None:
        for formula in (self.loss.value, self.loss.derivatives, self.loss.row_value, self.loss.row_derivatives):
            assert "pair_weight" in _message(TypeError, formula, 1.0, 2.0, 3.0)
