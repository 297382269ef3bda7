"""A machine to be tested, the cases that it is tested on, and its comparison with the machine that defines results."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from dataclasses import replace
from functools import wraps
from typing import Any, ClassVar, TypeVar

import numpy as np

from gpuboost.backends.protocol import Backend, Capabilities
from gpuboost.backends.reference.backend import Reference
from gpuboost.testing.cases import Case, random_case
from gpuboost.testing.verbs import Work
from gpuboost.types import Gradients, Sample, TrainingSet

Contract = TypeVar("Contract", bound="MachineCases")


def needs(*capabilities: str) -> Callable[[Callable[[Contract], None]], Callable[[Contract], None]]:
    """Skip the test on machines that do not offer all of these ``Capabilities``."""

    def decorate(test: Callable[[Contract], None]) -> Callable[[Contract], None]:
        @wraps(test)
        def run(contract: Contract) -> None:
            missing = [name for name in capabilities if not getattr(contract.machine().offers, name)]
            if missing:
                import pytest

                pytest.skip(f"the machine does not offer {' and '.join(missing)}")
            test(contract)

        run.needs = capabilities  # type: ignore[attr-defined]
        return run

    return decorate


def needed_by(test: Callable[..., None]) -> tuple[str, ...]:
    """The ``Capabilities`` without which the test is skipped."""
    named: tuple[str, ...] = getattr(test, "needs", ())
    return named


class MachineCases(ABC):
    """A machine, the sizes of its cases, and its results in NumPy arrays.

    Attributes
    ----------
    rows
        Rows of a training set. Enough for a machine that shares them out to do so.
    summed
        Rows over which a loss is summed. Stretches of the fixed order of summation have 4,096.
    rounds
        Rounds of a fit.
    """

    rows: ClassVar[int] = 300
    summed: ClassVar[Sequence[int]] = (1, 15, 17, 4_095, 4_097, 65_537, 140_000)
    rounds: ClassVar[int] = 3

    # for subclasses to override

    @abstractmethod
    def machine(self) -> Backend:
        """The machine; a new one, or one that earlier tests had."""

    def training_set(self, machine: Backend, case: Case) -> TrainingSet:
        """The training set as the machine is to have it. Override it for one that keeps the rows elsewhere."""
        return case.data

    def host_gradients(self, machine: Backend, gradients: Gradients) -> Gradients:
        """Gradients in NumPy arrays, (k, m). Override it for a machine whose handles have room for more."""
        m = None if gradients.multiplicity is None else machine.to_host(gradients.multiplicity)
        return Gradients(machine.to_host(gradients.g), machine.to_host(gradients.h), m)

    def host_sample(self, machine: Backend, sample: Sample) -> Sample:
        """The sample in NumPy arrays, (m,). Override it for a machine whose handles have room for more."""
        return Sample(machine.to_host(sample.rows), machine.to_host(sample.inverse_probability), sample.n_excluded)

    @classmethod
    def applicable(cls, offers: Capabilities) -> list[str]:
        """Names of the tests that a machine with these capabilities is held to."""
        tests = [name for name in dir(cls) if name.startswith("test_")]
        return [
            name for name in tests if all(getattr(offers, capability) for capability in needed_by(getattr(cls, name)))
        ]

    # cases and comparisons

    def _case(self, seed: int, **kinds: Any) -> Case:
        return random_case(seed, self.rows, 5, **kinds)

    def _lists(self) -> Case:
        """Thirty documents to a query."""
        case = self._case(19, target="4")
        start = np.append(np.arange(0, self.rows, 30), self.rows).astype(np.int64)
        return replace(case, data=replace(case.data, query_start=start))

    def _as_defined(self, case: Case, work: Work) -> None:
        """The work has the same results on the machine as on the one that defines them."""
        machine = self.machine()
        assert list(work(machine, self.training_set(machine, case))) == list(work(Reference(), case.data))

    def _bytes(self, machine: Backend, gradients: Gradients) -> tuple[bytes, bytes]:
        host = gradients if isinstance(machine, Reference) else self.host_gradients(machine, gradients)
        return host.g.tobytes(), host.h.tobytes()
