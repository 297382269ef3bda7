"""Contract of the verbs before a tree: bins, scores, gradients, samples and noise."""

from __future__ import annotations

from abc import ABC
from itertools import product
from typing import Any

import numpy as np
from scipy import sparse as scipy_sparse

from gpuboost import losses
from gpuboost.backends.protocol import Backend, Capabilities
from gpuboost.backends.reference.backend import Reference
from gpuboost.losses import Loss
from gpuboost.sampling import ThresholdRule
from gpuboost.testing.cases import stump
from gpuboost.testing.machine_cases import MachineCases, needs
from gpuboost.testing.verbs import KEY, bins_of, varied_scores
from gpuboost.types import Cuts, Noise, TrainingSet


class TargetContract(MachineCases, ABC):
    """Tests of the verbs that bin, differentiate and draw."""

    # the session

    def test_a_machine_has_a_name_and_declares_what_it_offers(self) -> None:
        machine = self.machine()
        assert isinstance(machine.name, str)
        assert machine.name
        assert isinstance(machine.offers, Capabilities)

    # the data, once

    def test_a_bin_holds_what_is_above_its_lower_cut_and_up_to_its_upper_one(self) -> None:
        cuts = Cuts((np.array([-1.5, 0.0, 2.0]), np.empty(0)), (None, None))
        for dtype in (np.float32, np.float64):
            after = np.nextafter(dtype(-1.5), dtype(0))
            column = [-np.inf, -1.5, after, -0.0, 0.0, 1e-30, 2.0, 2.5, np.inf, np.nan]
            x = np.stack([column, [7.0] * 9 + [np.nan]], axis=1).astype(dtype)
            for values in (x, np.asfortranarray(x), np.repeat(x, 2, axis=0)[::2]):
                bins = bins_of(self.machine(), values, cuts)
                assert bins[0].tolist() == [0, 0, 1, 1, 1, 2, 2, 3, 3, 4]
                assert bins[1].tolist() == [0] * 9 + [1]

    def test_categories_are_coded_by_their_place_and_all_else_is_missing(self) -> None:
        cuts = Cuts((np.empty(0),), (np.array([5, 0, 3]),))
        x = np.array([[5.0], [0.0], [3.0], [-0.0], [1.0], [-1.0], [3.5], [1e18], [np.nan]])
        assert bins_of(self.machine(), x, cuts)[0].tolist() == [0, 1, 2, 1, 3, 3, 3, 3, 3]

    def test_sparse_values_get_the_bins_of_dense_ones(self) -> None:
        rng = np.random.default_rng(0)
        cuts = Cuts(tuple(np.unique(np.round(rng.normal(size=5), 1)) for _ in range(7)), (None,) * 7)
        for density in (0.02, 0.6):
            x = np.where(rng.random((80, 7)) < density, rng.normal(size=(80, 7)), 0.0)
            x[3, 2] = np.nan
            expected = bins_of(Reference(), x, cuts)
            for form in (scipy_sparse.csr_array(x), scipy_sparse.csc_array(x)):
                assert np.array_equal(bins_of(self.machine(), form, cuts), expected)

    # the target, once a round

    def test_start_scores_are_the_bias(self) -> None:
        case, machine = self._case(0), self.machine()
        data = self.training_set(machine, case)
        for bias in (np.array([2.5]), np.arange(1.0, 4.0)):
            for rows in (data, case.data):  # those to train on, and those of an eval set
                scores = machine.start(rows, bias)
                machine.add_tree(scores, stump(0, 0, True, (1.0, 1.0)), 1.0, rows.bins, rows.cuts)
                assert bias[0] == (2.5 if len(bias) == 1 else 1.0)
                host_scores = machine.to_host(scores)
                assert host_scores.dtype == np.float64
                assert np.array_equal(host_scores, np.repeat(bias[:, None], self.rows, 1) + np.eye(len(bias), 1))

    def test_gradients_are_the_formula_in_float64_times_the_weight_rounded_once(self) -> None:
        of_losses: tuple[tuple[Loss, str], ...] = ((losses.Huber(0.5), "real"), (losses.Softmax(3), "3"))
        for (loss, target), weights, curvature in product(of_losses, ("none", "real", "whole"), (None, 0.0, 0.3)):
            case, machine = self._case(1, target=target, weights=weights), self.machine()
            data = self.training_set(machine, case)
            scores = varied_scores(machine, data, loss.n_outputs)
            before = machine.to_host(scores).copy()
            gradients = self.host_gradients(machine, machine.gradients(loss, scores, data, curvature))
            assert np.array_equal(machine.to_host(scores), before)
            g, h = np.empty_like(before), np.empty_like(before)
            for i, y in enumerate(case.data.y):
                if loss.n_outputs == 1:
                    g[0, i], h[0, i] = loss.derivatives(y, before[0, i], loss.parameter)
                else:
                    loss.row_derivatives(y, before[:, i], g[:, i], h[:, i], loss.parameter)
            weight = 1.0 if case.data.weight is None else case.data.weight
            h = h if curvature is None else np.full_like(h, curvature)
            for values, expected in ((gradients.g, g * weight), (gradients.h, h * weight)):
                assert values.dtype == np.float32
                assert np.array_equal(values, expected.astype(np.float32))

    @needs("list_losses")
    def test_gradients_of_lists_are_those_of_the_definition(self) -> None:
        def work(machine: Backend, data: TrainingSet) -> list[Any]:
            scores = varied_scores(machine, data, 1)
            return [self._bytes(machine, machine.gradients(losses.LambdaMART(), scores, data, None))]

        self._as_defined(self._lists(), work)

    @needs("sampling")
    def test_a_sample_lists_rows_and_what_one_over_p_is(self) -> None:
        machine = self.machine()
        data = self.training_set(machine, self._case(2))
        machine.start(data, np.zeros(1))
        sample = self.host_sample(machine, machine.sample(0.25, self.rows, KEY))
        expected = Reference().sample(0.25, self.rows, KEY)
        assert sample.rows is not None
        assert sample.inverse_probability is not None
        assert (sample.rows.dtype, sample.inverse_probability.dtype) == (np.int32, np.float32)
        assert expected.rows is not None
        assert np.array_equal(sample.rows, expected.rows)
        assert sample.inverse_probability.tolist() == [4.0] * len(sample.rows)
        none = self.host_sample(machine, machine.sample(1e-12, self.rows, KEY))
        assert none.rows is not None
        assert len(none.rows) == 0

    @needs("sampling")
    def test_rows_are_drawn_by_their_scores_and_weighed(self) -> None:
        def work(machine: Backend, data: TrainingSet) -> list[Any]:
            loss = losses.Softmax(3)
            scores = varied_scores(machine, data, 3)
            gradients = machine.gradients(loss, scores, data, None)
            computed: list[Any] = [machine.to_host(machine.losses(loss, scores, data)).tobytes()]
            for kappa, rule in ((0.1, ThresholdRule(rate=0.4)), (0.0, ThresholdRule(rho=0.7, floor=0.1))):
                sample = machine.draw(gradients, kappa, rule, KEY)
                host = sample if isinstance(machine, Reference) else self.host_sample(machine, sample)
                assert host.rows is not None
                computed += [host.rows.tobytes(), self._bytes(machine, machine.weigh(gradients, sample))]
            return computed

        for weights in ("none", "whole"):
            self._as_defined(self._case(2, target="3", weights=weights), work)

    @needs("langevin")
    def test_noise_is_each_rows_own(self) -> None:
        def work(machine: Backend, data: TrainingSet) -> list[Any]:
            gradients = machine.gradients(losses.Softmax(3), varied_scores(machine, data, 3), data, None)
            return [self._bytes(machine, machine.noise(gradients, None, Noise(0.7, KEY)))]

        for weights in ("none", "whole"):
            self._as_defined(self._case(2, target="3", weights=weights), work)
