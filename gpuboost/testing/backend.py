"""The contract of a backend: verbs that bin, differentiate, grow, refine, add up and predict as ``Reference`` does.

Subclass ``BackendContract`` in a test module, and pytest collects its tests::

    from gpuboost.testing import BackendContract

    class TestMyMachine(BackendContract):
        def machine(self):
            return MyMachine()

Tests of what the machine does not declare in its ``offers`` are skipped.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from dataclasses import fields, replace
from functools import wraps
from itertools import pairwise, product
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray
from scipy import sparse as scipy_sparse

from gpuboost import losses
from gpuboost.backends.protocol import Backend, Capabilities
from gpuboost.backends.reference.backend import Reference
from gpuboost.boosting import boost
from gpuboost.growth import DepthWise, Growth, LeafWise, Oblivious, SignStump
from gpuboost.langevin import Langevin
from gpuboost.learners import Linear, RandomByLevel, RandomByNode, RandomGroups, Spline
from gpuboost.losses import Loss
from gpuboost.recipe import Recipe
from gpuboost.sampling import GOSS, MVS, ImportanceSampling, Sampling, ThresholdRule, UniformSampling, WeightTrimming
from gpuboost.steps import GradientStep, LineSearchStep, NewtonStep, automatic
from gpuboost.testing.cases import Case, as_sparse, model_bytes, node_bytes, random_case, stump
from gpuboost.testing.verbs import (
    KEY,
    Work,
    bins_of,
    collected,
    every_feature,
    grow_once,
    listed,
    mean_loss,
    one_tree,
    varied_scores,
)
from gpuboost.types import (
    Candidates,
    CategoryLimits,
    Cuts,
    Ensemble,
    FittedTree,
    Gradients,
    Interactions,
    Limits,
    Nodes,
    Noise,
    Progress,
    Sample,
    Target,
    TrainingSet,
)

Array = NDArray[Any]
Test = Callable[["BackendContract"], None]

LEFT, RIGHT = (1.0, 2.0, 3.0), (8.0, 10.0, 10.0, 10.0)  # targets on either side of the one cut of ``_two_leaves``


def needs(*capabilities: str) -> Callable[[Test], Test]:
    """Skip the test on machines that do not offer all of these ``Capabilities``."""

    def decorate(test: Test) -> Test:
        @wraps(test)
        def run(contract: BackendContract) -> None:
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


class BackendContract(ABC):
    """A suite of tests of one machine.

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
            name for name in tests if all(getattr(offers, one) for one in getattr(cls, name).__dict__.get("needs", ()))
        ]

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
                found = machine.to_host(scores)
                assert found.dtype == np.float64
                assert np.array_equal(found, np.repeat(bias[:, None], self.rows, 1) + np.eye(len(bias), 1))

    def test_gradients_are_the_formula_in_float64_times_the_weight_rounded_once(self) -> None:
        of_losses: tuple[tuple[Loss, str], ...] = ((losses.Huber(0.5), "real"), (losses.Softmax(3), "3"))
        for (loss, target), weights, curvature in product(of_losses, ("none", "real", "whole"), (None, 0.0, 0.3)):
            case, machine = self._case(1, target=target, weights=weights), self.machine()
            data = self.training_set(machine, case)
            scores = varied_scores(machine, data, loss.n_outputs)
            before = machine.to_host(scores).copy()
            found = self.host_gradients(machine, machine.gradients(loss, scores, data, curvature))
            assert np.array_equal(machine.to_host(scores), before)
            g, h = np.empty_like(before), np.empty_like(before)
            for i, y in enumerate(case.data.y):
                if loss.n_outputs == 1:
                    g[0, i], h[0, i] = loss.derivatives(y, before[0, i], loss.parameter)
                else:
                    loss.row_derivatives(y, before[:, i], g[:, i], h[:, i], loss.parameter)
            weight = 1.0 if case.data.weight is None else case.data.weight
            h = h if curvature is None else np.full_like(h, curvature)
            for values, expected in ((found.g, g * weight), (found.h, h * weight)):
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
            found: list[Any] = [machine.to_host(machine.losses(loss, scores, data)).tobytes()]
            for kappa, rule in ((0.1, ThresholdRule(rate=0.4)), (0.0, ThresholdRule(rho=0.7, floor=0.1))):
                sample = machine.draw(gradients, kappa, rule, KEY)
                host = sample if isinstance(machine, Reference) else self.host_sample(machine, sample)
                assert host.rows is not None
                found += [host.rows.tobytes(), self._bytes(machine, machine.weigh(gradients, sample))]
            return found

        for weights in ("none", "whole"):
            self._as_defined(self._case(2, target="3", weights=weights), work)

    @needs("langevin")
    def test_noise_is_each_rows_own(self) -> None:
        def work(machine: Backend, data: TrainingSet) -> list[Any]:
            gradients = machine.gradients(losses.Softmax(3), varied_scores(machine, data, 3), data, None)
            return [self._bytes(machine, machine.noise(gradients, None, Noise(0.7, KEY)))]

        for weights in ("none", "whole"):
            self._as_defined(self._case(2, target="3", weights=weights), work)

    # the tree

    def test_a_tree_has_the_leaves_that_it_may(self) -> None:
        """It has the output and the version that it was grown for; its rows are in the leaves that it sends them to."""
        case, machine = self._case(3, full=True, categorical=0.0), self.machine()
        data = self.training_set(machine, case)
        gradients = machine.gradients(losses.GaussianNLL(), varied_scores(machine, data, 2), data, None)
        growths: tuple[Callable[[Limits], Growth], ...] = (DepthWise, LeafWise, Oblivious)
        for growth, leaves in product(growths, (1, 2, 4)):
            tree, leaf = one_tree(machine, data, gradients, growth(Limits(leaves, 5)), output=1, version=5)
            host = collected(machine, tree, data.cuts)
            assert (host.output, host.version) == (1, 5)
            assert host.nodes.is_leaf.sum() == leaves
            leaf_of_row = machine.to_host(leaf)
            assert leaf_of_row.dtype == np.int32
            assert np.array_equal(np.bincount(leaf_of_row, minlength=2 * leaves - 1) > 0, host.nodes.is_leaf)

    def test_the_tree_is_that_of_the_definition(self) -> None:
        growths: tuple[Growth, ...] = (
            DepthWise(Limits(16, 4)), LeafWise(Limits(9, 6, min_samples_leaf=5)), Oblivious(Limits(16, 4)),
            SignStump(Limits(2, 1)), DepthWise(Limits(16, 4, random_strength=0.5)),
        )  # fmt: skip
        for seed, (growth, weights) in enumerate(product(growths, ("none", "real", "whole"))):
            case = self._case(seed, target="positive", weights=weights)
            self._as_defined(case, grow_once(losses.Poisson(), growth))
            if growth.limits.random_strength == 0.0 and weights == "none":
                numeric = self._case(seed, target="positive", categorical=0.0)
                self._as_defined(listed(numeric), grow_once(losses.Poisson(), growth))

    def test_the_limits_of_categorical_splits_are_kept_to(self) -> None:
        loose, tight = CategoryLimits(0.0, 0.0, 0.0, 2.0), CategoryLimits(3.0, 1.5, 4.0, 25.0)
        case = self._case(6, target="positive", categorical=1.0)
        for limits in (loose, tight):
            level, stump = Limits(9, 4, categories=limits), Limits(2, 1, categories=limits)
            for growth in (DepthWise(level), LeafWise(level), Oblivious(level), SignStump(stump)):
                self._as_defined(case, grow_once(losses.Poisson(), growth))

    def test_the_candidates_of_the_root_and_of_every_node_are_kept_to(self) -> None:
        bits = np.zeros((3, 8), np.uint32)
        bits[1:, 0] = 0b101
        features = np.array([0, 2, 4], np.int32)
        for candidates in (Candidates(features), Candidates(features, bits), Candidates(features, by_node=(2, KEY))):
            for growth in (DepthWise(Limits(12, 4)), LeafWise(Limits(7, 5))):
                case = self._case(4, target="real", categorical=0.0)
                self._as_defined(case, grow_once(losses.SquaredError(), growth, candidates))

    @needs("langevin")
    def test_with_a_key_the_gradients_are_not_looked_at(self) -> None:
        case, machine = self._case(3), self.machine()
        data = self.training_set(machine, case)
        shapes = []
        for loss in (losses.SquaredError(), losses.AbsoluteError()):
            gradients = machine.gradients(loss, varied_scores(machine, data, 1), data, 1.0)
            tree, _ = one_tree(machine, data, gradients, DepthWise(Limits(8, 3)), key=KEY)
            shapes.append(collected(machine, tree, data.cuts).nodes)
        assert node_bytes(shapes[0]) == node_bytes(shapes[1])
        assert shapes[0].is_leaf.sum() == 8
        assert shapes[0].count[0] == self.rows
        for growth in (DepthWise(Limits(8, 3)), LeafWise(Limits(6, 5)), Oblivious(Limits(8, 3))):
            self._as_defined(self._case(3, weights="whole"), grow_once(losses.SquaredError(), growth, key=KEY))

    def test_the_arrays_of_a_tree_have_their_dtypes(self) -> None:
        machine = self.machine()
        data = self.training_set(machine, self._case(4))
        gradients = machine.gradients(losses.SquaredError(), varied_scores(machine, data, 1), data, None)
        tree, _ = one_tree(machine, data, gradients, DepthWise(Limits(8, 3)))
        host = collected(machine, tree, data.cuts)
        dtypes = {"feature": np.int32, "bin": np.int32, "missing_left": np.bool_, "left": np.int32, "right": np.int32,
                  "gain": np.float64, "cover": np.float64, "count": np.int64, "left_set": np.uint32}  # fmt: skip
        assert {field.name for field in fields(Nodes)} == set(dtypes)
        for name, dtype in dtypes.items():
            array = getattr(host.nodes, name)
            assert array.dtype == dtype
            assert array.shape == ((15, 8) if name == "left_set" else (15,))
        assert host.value.dtype == np.float64
        assert host.value.shape == (15,)

    @needs("sampling")
    def test_a_tree_of_a_sample_counts_the_sample(self) -> None:
        machine = self.machine()
        for case in (self._case(5), listed(self._case(5, categorical=0.0))):
            data = self.training_set(machine, case)
            gradients = machine.gradients(losses.SquaredError(), varied_scores(machine, data, 1), data, None)
            sample = machine.sample(0.5, self.rows, KEY)
            rows = self.host_sample(machine, sample).rows
            assert rows is not None
            tree, leaf = one_tree(machine, data, gradients, DepthWise(Limits(8, 3)), sample=sample)
            host = collected(machine, tree, data.cuts)
            assert host.nodes.count[0] == len(rows)
            after = self.host_sample(machine, sample).rows
            assert after is not None
            assert np.array_equal(after, rows), "the sample is only read"
            assert machine.to_host(leaf).shape == (self.rows,), "every row has a leaf, drawn or not"

    @needs("sampling")
    def test_the_tree_of_a_sample_is_that_of_the_definition(self) -> None:
        for growth in (DepthWise(Limits(8, 3)), LeafWise(Limits(8, 5)), Oblivious(Limits(8, 3))):
            for weights in ("none", "whole"):
                work = grow_once(losses.Poisson(), growth, probability=0.4)
                self._as_defined(self._case(7, target="positive", weights=weights), work)

    def test_leaf_values_are_those_of_all_rows_at_the_version_asked_for(self) -> None:
        case, machine = self._case(6, weights="whole", target="positive"), self.machine()
        data = self.training_set(machine, case)
        loss, times = losses.Poisson(), case.data.multiplicity
        assert times is not None
        for version, drawn in product((0, 1), (False, True) if machine.offers.sampling else (False,)):
            scores = varied_scores(machine, data, 1)
            old = new = machine.gradients(loss, scores, data, None)
            sample = machine.sample(0.5, self.rows, KEY) if drawn else Sample()
            fitted = machine.weigh(old, sample)
            growth = DepthWise(Limits(8, 3, reg_lambda=0.5))
            structure = growth.structure(machine, data, Target(0, sample.rows, fitted), 0, every_feature(data))
            if version:
                machine.add_tree(scores, stump(3, 2, True, (-0.5, 0.7)), 1.0, data.bins, data.cuts)
                new = machine.gradients(loss, scores, data, None)
            handle, leaf = machine.leaf_values(structure, new, data, growth.limits, version)
            tree, leaf_of_row = collected(machine, handle, data.cuts), machine.to_host(leaf)
            assert (tree.output, tree.version) == (0, 0)
            assert tree.nodes.is_leaf[leaf_of_row].all()
            assert not tree.value[~tree.nodes.is_leaf].any()
            now = self.host_gradients(machine, new)
            for v in np.unique(leaf_of_row):
                in_leaf = leaf_of_row == v
                g, h = (float((values[0] * times)[in_leaf].sum(dtype=float)) for values in (now.g, now.h))
                assert np.isclose(tree.value[v], -g / (h + 0.5), rtol=1e-4, atol=1e-6)

    def test_a_leaf_without_curvature_has_the_value_0(self) -> None:
        machine = self.machine()
        data = self.training_set(machine, self._case(6))
        flat = machine.gradients(losses.SquaredError(), varied_scores(machine, data, 1), data, 0.0)
        tree, _ = one_tree(machine, data, flat, DepthWise(Limits(4, 2, 1, 0.0, 0.0)))
        value = collected(machine, tree, data.cuts).value
        assert value.tolist() == [0.0]
        assert not np.signbit(value).any()

    def test_bounded_leaves_are_those_of_the_definition(self) -> None:
        limits = Limits(12, 4, directions=(1, -1, 0, 1, -1))
        for growth in (DepthWise(limits), LeafWise(limits)):
            work = grow_once(losses.Poisson(), growth, bounded=True)
            self._as_defined(self._case(8, target="positive", categorical=0.0), work)

    def test_sets_of_columns_and_penalties_are_kept_to(self) -> None:
        in_sets = Limits(12, 4, interactions=Interactions(((0, 1, 2), (2, 3, 4))))
        for limits in (in_sets, replace(in_sets, interactions=None, reg_alpha=2.0, max_delta_step=0.1)):
            for growth in (DepthWise(limits), LeafWise(limits), Oblivious(limits)):
                self._as_defined(self._case(8, target="positive"), grow_once(losses.Poisson(), growth))

    @needs("langevin")
    def test_noise_on_leaf_values_is_that_of_the_definition(self) -> None:
        noise = Noise(0.3, KEY)
        self._as_defined(self._case(8), grow_once(losses.SquaredError(), DepthWise(Limits(8, 3)), noise=noise))

    # the length of a step

    def test_leaf_quantiles_replace_the_values_of_leaves_alone(self) -> None:
        machine = self.machine()
        data, tree, leaf = self._two_leaves(machine)
        scores = machine.start(data, np.ones(1))
        found = machine.leaf_quantiles(tree, leaf, losses.AbsoluteError(), scores, data)
        assert collected(machine, found, data.cuts).value.tolist() == [0.0, 1.0, 9.0]

    @needs("line_search")
    def test_a_line_search_per_tree_is_one_length_for_all_values(self) -> None:
        """For squared error the length is <r, f> / |f|^2; 0 if f points uphill."""
        for start, uphill in ((0.0, False), (20.0, True)):
            machine = self.machine()
            data, tree, leaf = self._two_leaves(machine)
            left, right = collected(machine, tree, data.cuts).value[1:]
            data, tree, leaf = self._two_leaves(machine)
            scores = machine.start(data, np.full(1, start))
            found = machine.line_search(tree, leaf, losses.SquaredError(), scores, data, False)
            r, f = np.array([*LEFT, *RIGHT]) - start, np.array([left] * len(LEFT) + [right] * len(RIGHT))
            rho = 0.0 if uphill else float(r @ f / (f @ f))
            value = collected(machine, found, data.cuts).value
            assert np.allclose(value, [0.0, rho * left, rho * right], rtol=1e-6, atol=0.0)

    @needs("line_search")
    def test_a_line_search_per_leaf_finds_the_best_value_of_each(self) -> None:
        """The mean for squared error, its logarithm for Poisson, the median for the absolute error."""
        best: tuple[tuple[Loss, Callable[[tuple[float, ...]], float]], ...] = (
            (losses.SquaredError(), lambda y: float(np.mean(y))),
            (losses.Poisson(), lambda y: float(np.log(np.mean(y)))),
            (losses.AbsoluteError(), lambda y: float(np.median(y))),
        )
        for loss, value_of in best:
            machine = self.machine()
            data, tree, leaf = self._two_leaves(machine)
            found = machine.line_search(tree, leaf, loss, machine.start(data, np.zeros(1)), data, True)
            value = collected(machine, found, data.cuts).value
            # 20 evaluations, from a value of 9.5 whose exponential is far too long, come so near
            assert np.allclose(value, [0.0, value_of(LEFT), value_of(RIGHT)], rtol=1e-4), loss.name

    @needs("line_search")
    def test_every_length_is_that_of_the_definition(self) -> None:
        searched: tuple[Loss, ...] = (losses.Poisson(), losses.Huber(0.7), losses.AbsoluteError())
        for loss, per_leaf in product(searched, (False, True)):
            case = self._case(9, target="positive", weights="real")
            self._as_defined(case, grow_once(loss, DepthWise(Limits(6, 3)), search="leaf" if per_leaf else "tree"))

    @needs("line_search")
    def test_the_length_along_a_direction_is_that_of_the_definition(self) -> None:
        along = np.random.default_rng(0).normal(size=self.rows)

        def work(machine: Backend, data: TrainingSet) -> list[Any]:
            scores = varied_scores(machine, data, 3)
            return [machine.length_along(losses.Softmax(3), scores, 1, sign * along, data) for sign in (1.0, -1.0)]

        self._as_defined(self._case(9, target="3"), work)

    # the model

    def test_adding_a_tree_writes_its_own_output_in_place(self) -> None:
        cuts, machine = Cuts((np.array([0.0, 1.0]),), (None,)), self.machine()
        x = np.array([[-1.0], [0.5], [3.0], [np.nan]] * 20)
        host: Any = Reference().quantise(x, cuts)
        for layout in (machine.quantise(x, cuts), host, as_sparse(host, cuts.n_bins)):
            for missing_left, expected in ((False, [1.0, 1.0, 4.0, 4.0]), (True, [1.0, 1.0, 4.0, 1.0])):
                scores = machine.start(TrainingSet(layout, cuts, np.zeros(80)), np.zeros(2))
                machine.add_tree(scores, stump(0, 1, missing_left, (2.0, 8.0), 1), 0.5, layout, cuts)
                found = machine.to_host(scores)
                assert not found[0].any()
                assert found[1].tolist() == expected * 20

    def test_adding_leaves_is_adding_their_tree(self) -> None:
        for case in (self._case(10), listed(self._case(10, categorical=0.0))):
            machine = self.machine()
            data = self.training_set(machine, case)
            gradients = machine.gradients(losses.GaussianNLL(), varied_scores(machine, data, 2), data, None)
            by_leaves, by_bins = varied_scores(machine, data, 2), varied_scores(machine, data, 2)
            tree, leaf = one_tree(machine, data, gradients, DepthWise(Limits(8, 4)), output=1)
            machine.add_leaves(by_leaves, tree, 0.3, leaf)
            machine.add_tree(by_bins, collected(machine, tree, data.cuts), 0.3, data.bins, data.cuts)
            assert machine.to_host(by_leaves).tobytes() == machine.to_host(by_bins).tobytes()
            assert (
                machine.to_host(by_leaves)[0].tobytes() == machine.to_host(varied_scores(machine, data, 2))[0].tobytes()
            )

    def test_shrunken_scores_are_bias_plus_scale_times_the_sums(self) -> None:
        machine, bias = self.machine(), np.array([0.1, -3.0])
        data = self.training_set(machine, self._case(10))
        sums, out = varied_scores(machine, data, 2), machine.start(data, np.zeros(2))
        machine.scores(sums, bias, 0.7, out)
        assert machine.to_host(out).tobytes() == (bias[:, None] + 0.7 * machine.to_host(sums)).tobytes()

    def test_the_loss_is_a_weighted_mean_summed_in_a_fixed_order(self) -> None:
        of_losses: tuple[tuple[Loss, str], ...] = ((losses.Poisson(), "positive"), (losses.Softmax(3), "3"))
        for (loss, target), weights in product(of_losses, ("none", "real", "whole")):
            case, machine = self._case(7, target=target, weights=weights), self.machine()
            weight = None if weights == "none" else case.data.row_weight()
            for data in (self.training_set(machine, case), case.data):  # to train on, and of an eval set
                scores = varied_scores(machine, data, loss.n_outputs)
                expected = mean_loss(loss, machine.to_host(scores), case.data.y, weight)
                assert machine.loss_value(loss, scores, data.y, weight) == expected

    def test_every_machine_sums_in_the_same_order(self) -> None:
        machine, cuts, loss = self.machine(), Cuts((np.empty(0),), (None,)), losses.SquaredError()
        for n in self.summed:
            x, y = np.zeros((n, 1)), np.random.default_rng(n).normal(size=n) * 1e3
            means = set()
            for each in (machine, Reference()):
                scores = each.start(TrainingSet(each.quantise(x, cuts), cuts, y), np.array([0.25]))
                means.add(each.loss_value(loss, scores, y, None))
            assert len(means) == 1

    def test_prediction_by_values_is_that_by_bins(self) -> None:
        machine, (ensemble, case) = self.machine(), self._trained()
        data, x = case.data, case.x
        scores = machine.start(data, ensemble.bias)
        for tree, factor in zip(ensemble.trees, ensemble.factors, strict=True):
            machine.add_tree(scores, tree, factor, data.bins, data.cuts)
        found = machine.predict(ensemble, x)
        assert found.shape == (3, len(x))
        assert found.tobytes() == machine.to_host(scores).tobytes()
        for i in (0, 77, len(x) - 1):  # a row does not depend on the others
            row = np.ascontiguousarray(found[:, i : i + 1])
            assert machine.predict(ensemble, x[i : i + 1]).tobytes() == row.tobytes()
        assert machine.predict(ensemble, x[:0]).shape == (3, 0)

    def test_stages_are_the_scores_after_each_round(self) -> None:
        machine, (ensemble, case) = self.machine(), self._trained()
        stages = list(machine.staged_predict(ensemble, case.x))
        assert len(stages) == ensemble.n_rounds
        for i, stage in enumerate(stages):
            assert np.array_equal(stage, machine.predict(ensemble.first(i + 1), case.x))
        assert not any(np.shares_memory(*pair) for pair in pairwise(stages))

    def test_leaves_are_where_rows_come_to_rest(self) -> None:
        machine, (ensemble, case) = self.machine(), self._trained()
        found = machine.leaves(ensemble, case.x)
        assert found.shape == (len(case.x), len(ensemble.trees))
        assert found.dtype == np.int32
        for t, tree in enumerate(ensemble.trees):
            counts = np.bincount(found[:, t], minlength=len(tree.value))
            assert np.array_equal(counts[tree.nodes.is_leaf], tree.nodes.count[tree.nodes.is_leaf])
        assert machine.leaves(Ensemble(np.zeros(1), ensemble.cuts), case.x).shape == (len(case.x), 0)

    def test_contributions_add_up_to_the_scores(self) -> None:
        machine, (ensemble, case) = self.machine(), self._trained()
        found = machine.contributions(ensemble, case.x)
        assert found.shape == (len(case.x), 3, ensemble.cuts.n_columns + 1)
        assert np.allclose(found.sum(axis=2).T, machine.predict(ensemble, case.x), atol=1e-10)

    def test_interactions_add_up_to_the_contributions(self) -> None:
        machine, (ensemble, case) = self.machine(), self._trained()
        found = machine.interactions(ensemble, case.x)
        assert found.shape == (len(case.x), 3, *(ensemble.cuts.n_columns + 1,) * 2)
        assert np.array_equal(found, found.swapaxes(2, 3))
        assert np.allclose(found.sum(axis=3), machine.contributions(ensemble, case.x), atol=1e-10)

    def test_a_shrunken_ensemble_is_bias_plus_scale_times_the_sum(self) -> None:
        machine, (ensemble, case) = self.machine(), self._trained()
        bare = replace(ensemble, bias=np.zeros(3))
        expected = ensemble.bias[:, None] + 0.5 * machine.predict(bare, case.x)
        assert machine.predict(replace(ensemble, scale=0.5), case.x).tobytes() == expected.tobytes()

    # fits, byte for byte those of the definition

    def test_a_fit_of_trees(self) -> None:
        growths: tuple[Growth, ...] = (DepthWise(Limits(8, 3)), LeafWise(Limits(6, 5)), Oblivious(Limits(8, 3)))
        for growth, weights in product(growths, ("none", "whole")):
            case = self._case(11, target="3", weights=weights)
            self._fit(case, Recipe(losses.Softmax(3), self.rounds, 0.3, growth))

    def test_a_fit_whose_leaves_are_quantiles(self) -> None:
        loss = losses.Quantile(0.3)
        for weights in ("none", "real", "whole"):
            recipe = Recipe(loss, self.rounds, 0.3, DepthWise(Limits(8, 3)), step=automatic(loss))
            self._fit(self._case(12, weights=weights), recipe)

    def test_a_fit_that_draws_features_and_disturbs_gains(self) -> None:
        case, loss = self._case(13, target="binary"), losses.Logistic()
        self._fit(case, Recipe(loss, self.rounds, 0.3, DepthWise(Limits(8, 3)), learners=RandomByNode(2)))
        self._fit(case, Recipe(loss, self.rounds, 0.3, LeafWise(Limits(6, 4)), learners=RandomGroups(2)))
        self._fit(case, Recipe(loss, self.rounds, 0.3, Oblivious(Limits(8, 3, random_strength=1.0))))
        extra = LeafWise(Limits(6, 4, extra_trees=True))
        self._fit(case, Recipe(loss, self.rounds, 0.3, extra, learners=RandomByLevel(2)))

    @needs("sampling")
    def test_a_fit_to_drawn_rows(self) -> None:
        rules: tuple[Sampling, ...] = (
            UniformSampling(0.5), ImportanceSampling(0.4, score="loss", floor=0.1), MVS(0.4), GOSS(),
            WeightTrimming(0.9),
        )  # fmt: skip
        for rule in rules:
            self._fit(self._case(14, target="binary"), Recipe(losses.Logistic(), self.rounds, 0.3, sampling=rule))

    @needs("sampling")
    def test_a_fit_with_control_variates(self) -> None:
        for control in ("node", "previous_leaf"):
            rule = ImportanceSampling(0.4, variance_control=control, lag=2, eta=0.7)
            recipe = Recipe(losses.Logistic(), self.rounds + 2, 0.3, DepthWise(Limits(8, 3)), rule)
            self._fit(self._case(15, target="binary", weights="whole"), recipe)

    @needs("langevin")
    def test_a_fit_with_noise_and_random_shapes(self) -> None:
        noisy = Langevin(inverse_temperature=3e3, shrinkage=0.1, allow_unproven=True)
        recipe = Recipe(losses.Softmax(3), self.rounds, 0.3, DepthWise(Limits(8, 3)), step=NewtonStep(), langevin=noisy)
        self._fit(self._case(16, target="3"), recipe)
        blind = Langevin(inverse_temperature=3e3, shrinkage=0.1, random_from=1)
        recipe = Recipe(
            losses.Logistic(), self.rounds, 0.3, DepthWise(Limits(8, 3)), step=GradientStep(), langevin=blind
        )
        self._fit(self._case(16, target="binary"), recipe)

    @needs("line_search")
    def test_a_fit_by_line_search(self) -> None:
        for loss, per in ((losses.Poisson(), "tree"), (losses.AbsoluteError(), "leaf")):
            step = LineSearchStep(per)
            self._fit(
                self._case(17, target="positive"), Recipe(loss, self.rounds, 0.5, DepthWise(Limits(6, 3)), step=step)
            )

    @needs("base_learners")
    def test_a_fit_of_lines_and_splines(self) -> None:
        from gpuboost.base_learners.best_of_families import BestOfFamilies

        case = self._case(18, categorical=0.0)
        case = replace(case, data=replace(case.data, x=case.x))
        competition = BestOfFamilies((Linear(), Spline(knots=4)))
        self._fit(case, Recipe(losses.SquaredError(), self.rounds, 0.3, base_learner=competition))

    @needs("list_losses")
    def test_a_fit_to_lists(self) -> None:
        self._fit(self._lists(), Recipe(losses.LambdaMART(), self.rounds, 0.3, DepthWise(Limits(8, 3))))

    # parts of the above

    def _case(self, seed: int, **kinds: Any) -> Case:
        return random_case(seed, self.rows, 5, **kinds)

    def _lists(self) -> Case:
        """Thirty documents to a query."""
        case = self._case(19, target="4")
        start = np.append(np.arange(0, self.rows, 30), self.rows).astype(np.int64)
        return replace(case, data=replace(case.data, query_start=start))

    def _two_leaves(self, machine: Backend) -> tuple[TrainingSet, FittedTree, Any]:
        """Rows with targets ``LEFT`` and ``RIGHT``, over and over, and a stump that parts them; all on the machine."""
        times = self.rows // 7
        x, y = np.repeat([0.0, 1.0], [3, 4]), np.array([*LEFT, *RIGHT])
        cuts = Cuts((np.array([0.5]),), (None,))
        values = np.tile(x, times)[:, None]
        case = Case(values, TrainingSet(Reference().quantise(values, cuts), cuts, np.tile(y, times)))
        data = self.training_set(machine, case)
        gradients = machine.gradients(losses.SquaredError(), machine.start(data, np.zeros(1)), data, None)
        return data, *one_tree(machine, data, gradients, DepthWise(Limits(2, 1)))

    def _trained(self) -> tuple[Ensemble, Case]:
        case = random_case(8, 150, 4, target="3")
        loss = losses.Softmax(3)
        recipe = Recipe(loss, 4, 0.3, DepthWise(Limits(6, 3)), step=automatic(loss))
        return boost(recipe, case.data, Reference()), case

    def _as_defined(self, case: Case, work: Work) -> None:
        """The work has the same results on the machine as on the one that defines them."""
        machine = self.machine()
        assert list(work(machine, self.training_set(machine, case))) == list(work(Reference(), case.data))

    def _fit(self, case: Case, recipe: Recipe) -> None:
        def work(machine: Backend, data: TrainingSet) -> list[bytes]:
            seen: list[bytes] = []

            def watch(progress: Progress) -> bool:
                seen.append(machine.to_host(progress.scores).tobytes())
                return False

            return [model_bytes(boost(recipe, data, machine, seed=3, watch=watch)), *seen]

        self._as_defined(case, work)

    def _bytes(self, machine: Backend, gradients: Gradients) -> tuple[bytes, bytes]:
        host = gradients if isinstance(machine, Reference) else self.host_gradients(machine, gradients)
        return host.g.tobytes(), host.h.tobytes()
