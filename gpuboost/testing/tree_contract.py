"""Contract of the verbs that make a tree: ``grow`` and ``leaf_values``."""

from __future__ import annotations

from abc import ABC
from collections.abc import Callable
from dataclasses import fields, replace
from itertools import product
from typing import cast

import numpy as np

from gpuboost import losses
from gpuboost.backends.numerics.feature_subsets import subset
from gpuboost.backends.optional_verbs import OneTreeGrower
from gpuboost.backends.reference.backend import Reference
from gpuboost.growth import DepthWise, Growth, LeafWise, Oblivious, SignStump
from gpuboost.testing.cases import node_bytes, stump
from gpuboost.testing.machine_cases import MachineCases, needs
from gpuboost.testing.verbs import KEY, collected, every_feature, grow_once, listed, one_tree, varied_scores
from gpuboost.types import Candidates, CategoryLimits, Interactions, Limits, Nodes, Noise, Sample, Target


class TreeContract(MachineCases, ABC):
    """Tests of the verbs that grow a tree and value its leaves."""

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
        case = self._case(4, target="real", categorical=0.0)
        drawn = Candidates(subset(2, case.data.cuts.n_features, KEY), by_tree=(2, KEY))
        of_nodes = Candidates(features, by_node=(2, KEY))
        for candidates in (Candidates(features), Candidates(features, bits), drawn, of_nodes):
            for growth in (DepthWise(Limits(12, 4)), LeafWise(Limits(7, 5))):
                self._as_defined(case, grow_once(losses.SquaredError(), growth, candidates))

    @needs("one_tree")
    def test_one_tree_for_several_outputs_is_that_of_the_definition(self) -> None:
        machine, reference = self.machine(), Reference()
        growths: tuple[Growth, ...] = (DepthWise(Limits(12, 4)), LeafWise(Limits(9, 6, min_samples_leaf=3)))
        for seed, growth in enumerate(growths):
            case = self._case(seed, weights="whole")
            data = self.training_set(machine, case)
            made = machine.gradients(losses.GaussianNLL(), varied_scores(machine, data, 2), data, None)
            of_host = replace(self.host_gradients(machine, made), multiplicity=case.data.multiplicity)
            rest = every_feature(data), growth.limits
            grown = cast(OneTreeGrower, machine).grow_together(data, Target(3, None, made), made, *rest)
            expected = reference.grow_together(case.data, Target(3, None, of_host), of_host, *rest)
            for output, (ours, theirs) in enumerate(zip(grown, expected, strict=True)):
                assert (ours.output, ours.version) == (output, 3)
                tree, leaf = machine.leaf_values(ours, made, data, growth.limits, 3)
                right, right_leaf = reference.leaf_values(theirs, of_host, case.data, growth.limits, 3)
                host = collected(machine, tree, data.cuts)
                assert node_bytes(host.nodes) == node_bytes(right.nodes)
                assert host.value.tobytes() == right.value.tobytes()
                assert np.array_equal(machine.to_host(leaf), right_leaf)

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
