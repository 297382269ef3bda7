"""Contract tests of a row-sampling policy: the properties that the training loop, model files and backends rely on.

Subclass ``SamplingContract`` in a test module, and pytest collects its tests::

    from gpuboost.testing import SamplingContract

    class TestMySampling(SamplingContract):
        sampling = MySampling(rate=0.3)
        bad_arguments = ({"rate": 0.0}, {"rate": 1.5})
"""

from __future__ import annotations

import pickle
import warnings
from collections.abc import Mapping, Sequence
from dataclasses import fields, is_dataclass, replace
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from gpuboost.backends.cpu.backend import Cpu
from gpuboost.backends.protocol import Backend
from gpuboost.backends.reference.backend import Reference
from gpuboost.errors import RecipeError
from gpuboost.keys import Key, Stream
from gpuboost.records import declared
from gpuboost.sampling.protocol import SamplingTraits
from gpuboost.types import Gradients, Sample

DRAWS, STANDARD_ERRORS = 300, 6.0  # keys are fixed, so a right policy passes always or never
SEVERAL_THREADS = 40_000  # number of rows from which the CPU backend uses several threads


class SamplingContract:
    """A suite of tests of one row-sampling policy.

    Attributes
    ----------
    sampling
        The policy: a frozen dataclass with ``draw``, as ``gpuboost.sampling.Sampling`` describes it.
    bad_arguments
        Fields out of their range, each of which must raise ``RecipeError`` when the policy is made with it.
    random
        True if different rounds draw different rows; False for a policy that selects rows by their gradients alone.
    """

    sampling: ClassVar[Any]
    bad_arguments: ClassVar[Sequence[Mapping[str, Any]]] = ()
    random: ClassVar[bool] = True

    # for subclasses to override

    def machines(self) -> Sequence[Backend]:
        """Backends that must draw the same rows."""
        return Reference(), Cpu(1), Cpu(3)

    def on_host(self, machine: Backend, sample: Any) -> Sample:
        """The sample in NumPy arrays. Override it for a machine that keeps samples elsewhere."""
        result: Sample = sample
        return result

    def gradients(self, n: int, *, outputs: int = 1, weighted: bool = False) -> Gradients:
        """Gradients of ``n`` rows: g normal, h in (0, 1), and one row in ten without a gradient."""
        rng = np.random.default_rng(n + outputs)
        g, h = rng.normal(size=(outputs, n)), rng.uniform(0.01, 1.0, (outputs, n))
        g[:, rng.random(n) < 0.1] = 0.0
        times = rng.integers(1, 5, n).astype(np.int32) if weighted else None
        return Gradients(g.astype(np.float32), h.astype(np.float32), times)

    # the tests

    def test_rows_are_listed_once_with_a_probability_in_0_to_1(self) -> None:
        for machine in self.machines():
            for outputs, weighted in ((1, False), (1, True), (3, False)):
                n = 1_000
                sample = self._draw(machine, self.gradients(n, outputs=outputs, weighted=weighted), 0)
                if sample.rows is None:
                    assert sample.inverse_probability is None, "every row: there are no probabilities"
                    continue
                rows, inverse = sample.rows, sample.inverse_probability
                assert inverse is not None
                assert (rows.dtype, inverse.dtype) == (np.int32, np.float32)
                assert rows.shape == inverse.shape == (len(rows),)
                assert (np.diff(rows) > 0).all(), "rows are in increasing order, each once"
                assert len(rows) == 0 or (rows[0] >= 0 and rows[-1] < n)
                assert np.isfinite(inverse).all(), "p > 0 for a row that is drawn"
                assert (inverse >= 1.0).all(), "p <= 1"
                assert 0 <= sample.n_excluded <= n - len(rows)

    def test_sums_weighted_by_the_inverse_probability_are_unbiased(self) -> None:
        """Sums of g, h and 1 over the rows with a gradient, unless the policy declares that it is not ``unbiased``."""
        if declared(SamplingTraits, self.sampling).unbiased is False:
            import pytest

            pytest.skip("the policy says that its sums are biased")
        n, machine = 2_000, Cpu(1)
        gradients = self.gradients(n)
        terms = np.stack([gradients.g[0], gradients.h[0], np.ones(n)]).astype(np.float64)
        terms[:, gradients.g[0] == 0.0] = 0.0
        sums = np.stack([terms @ self._weights(self._draw(machine, gradients, step), n) for step in range(DRAWS)])
        expected, error = terms.sum(axis=1), sums.std(axis=0) / np.sqrt(DRAWS)
        assert (np.abs(sums.mean(axis=0) - expected) <= STANDARD_ERRORS * error + 1e-6 * np.abs(expected)).all()

    def test_every_machine_draws_the_same_rows(self) -> None:
        for n, outputs, weighted in ((1, 1, False), (257, 1, True), (1_000, 3, False)):
            gradients = self.gradients(n, outputs=outputs, weighted=weighted)
            draws = [_bytes(self._draw(machine, gradients, 3)) for machine in self.machines()]
            assert len(set(draws)) == 1

    def test_the_number_of_threads_does_not_matter(self) -> None:
        gradients = self.gradients(SEVERAL_THREADS)
        draws = [_bytes(self._draw(Cpu(threads), gradients, 0)) for threads in (1, 2, 3)]
        assert len(set(draws)) == 1

    def test_a_draw_is_a_function_of_seed_and_round(self) -> None:
        gradients, machine = self.gradients(1_000), Cpu(1)
        state = _global_state()
        first, again = (_bytes(self._draw(machine, gradients, 5)) for _ in range(2))
        assert first == again, "the key decides, and nothing else"
        assert _global_state() == state, "NumPy's global random numbers are not touched"
        others = {_bytes(self._draw(machine, gradients, step, seed)) for seed, step in ((0, 6), (0, 7), (1, 5))}
        assert others == {first} if not self.random else len(others | {first}) == 4

    def test_gradients_are_only_read(self) -> None:
        for machine in self.machines():
            gradients = self.gradients(500, weighted=True)
            before = gradients.g.tobytes(), gradients.h.tobytes(), np.asarray(gradients.multiplicity).tobytes()
            self._draw(machine, gradients, 0)
            after = gradients.g.tobytes(), gradients.h.tobytes(), np.asarray(gradients.multiplicity).tobytes()
            assert after == before

    def test_the_policy_is_a_value(self) -> None:
        """Comparison and hash by fields; pickling keeps equality."""
        policy: Any = self.sampling
        assert is_dataclass(policy), "fields of a dataclass are what is saved, compared and searched over"
        twin, copy = replace(self.sampling), pickle.loads(pickle.dumps(self.sampling))
        assert self.sampling == twin == copy
        assert hash(self.sampling) == hash(twin)
        gradients = self.gradients(300)
        assert _bytes(self._draw(Cpu(1), gradients, 1)) == _bytes(self._draw(Cpu(1), gradients, 1, policy=copy))

    def test_its_repr_names_every_field(self) -> None:
        text = repr(self.sampling)
        assert text.startswith(type(self.sampling).__name__)
        assert " at 0x" not in text
        for field in fields(self.sampling):
            assert not field.repr or f"{field.name}=" in text

    def test_an_estimator_knows_its_fields_as_parameters(self) -> None:
        from sklearn.base import clone

        from gpuboost import GradientBoostingRegressor

        model = GradientBoostingRegressor(sampling=self.sampling)
        params = model.get_params()
        for field in fields(self.sampling):
            name = f"sampling__{field.name}"
            assert params[name] == getattr(self.sampling, field.name)
            model.set_params(**{name: params[name]})
        assert model.sampling == self.sampling
        assert clone(model).sampling == self.sampling

    def test_arguments_out_of_their_range_are_refused(self) -> None:
        assert self.bad_arguments or not fields(self.sampling), "bad_arguments: name some for this policy"
        for arguments in self.bad_arguments:
            message = ""
            try:
                replace(self.sampling, **arguments)
            except RecipeError as error:
                message = str(error)
            assert message, f"{arguments!r} is accepted"
            assert message.startswith("sampling: "), "an error names the parameter that it is about"

    def test_a_fit_does_not_depend_on_the_number_of_threads(self) -> None:
        from gpuboost import GradientBoostingRegressor

        rng = np.random.default_rng(0)
        x = rng.normal(size=(400, 3))
        y = x[:, 0] + rng.normal(size=400)
        predictions = []
        for threads in (1, 3):
            model = GradientBoostingRegressor(
                n_estimators=3, sampling=self.sampling, random_state=1, n_jobs=threads, device="cpu"
            )
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")  # findings of theory about the policy are not tested here
                predictions.append(model.fit(x, y).predict(x).tobytes())
        assert predictions[0] == predictions[1]

    # parts of the above

    def _draw(self, machine: Backend, gradients: Gradients, step: int, seed: int = 0, policy: Any = None) -> Sample:
        policy, key = self.sampling if policy is None else policy, Key.root(seed) / Stream.ROWS / step
        if declared(SamplingTraits, policy).weighs_losses:
            losses = np.abs(gradients.g[0]).astype(np.float64)
            return self.on_host(machine, policy.draw(machine, gradients, key, lambda: losses))
        return self.on_host(machine, policy.draw(machine, gradients, key))

    def _weights(self, sample: Sample, n: int) -> NDArray[np.float64]:
        """(n,) 1 / p for the rows drawn, 0 for the others."""
        if sample.rows is None:
            return np.ones(n)
        weights = np.zeros(n)
        weights[sample.rows] = sample.inverse_probability
        return weights


def _bytes(sample: Sample) -> tuple[bytes, bytes] | None:
    if sample.rows is None or sample.inverse_probability is None:
        return None
    return sample.rows.tobytes(), sample.inverse_probability.tobytes()


def _global_state() -> bytes:
    return pickle.dumps(np.random.get_state())  # noqa: NPY002, what it is about
