"""Contract of the verbs that refine a tree, add it to scores, and predict."""

from __future__ import annotations

from abc import ABC
from collections.abc import Callable
from dataclasses import replace
from itertools import pairwise, product
from typing import Any, cast

import numpy as np

from gpuboost import losses
from gpuboost.backends.optional_verbs import Evaluator, RoundEvaluator
from gpuboost.backends.protocol import Backend
from gpuboost.backends.reference.backend import Reference
from gpuboost.boosting import boost
from gpuboost.growth import DepthWise
from gpuboost.losses import Loss
from gpuboost.metrics import get as get_metric
from gpuboost.model.answers import FIRST_SCORE, decision_answer, labels_answer, predictions_answer, probabilities_answer
from gpuboost.recipe import Recipe
from gpuboost.steps import automatic
from gpuboost.testing.cases import Case, as_sparse, random_case, stump
from gpuboost.testing.machine_cases import MachineCases, needs
from gpuboost.testing.verbs import collected, grow_once, listed, mean_loss, one_tree, varied_scores
from gpuboost.types import Cuts, Ensemble, FittedTree, Limits, TrainingSet

LEFT, RIGHT = (1.0, 2.0, 3.0), (8.0, 10.0, 10.0, 10.0)  # targets on either side of the one cut of ``_two_leaves``


class ModelContract(MachineCases, ABC):
    """Tests of the verbs that use a tree."""

    # the length of a step

    def test_leaf_quantiles_replace_the_values_of_leaves_alone(self) -> None:
        machine = self.machine()
        data, tree, leaf = self._two_leaves(machine)
        scores = machine.start(data, np.ones(1))
        quantile_tree = machine.leaf_quantiles(tree, leaf, losses.AbsoluteError(), scores, data)
        assert collected(machine, quantile_tree, data.cuts).value.tolist() == [0.0, 1.0, 9.0]

    @needs("line_search")
    def test_a_line_search_per_tree_is_one_length_for_all_values(self) -> None:
        """For squared error the length is <r, f> / |f|^2; 0 if f points uphill."""
        for start, uphill in ((0.0, False), (20.0, True)):
            machine = self.machine()
            data, tree, leaf = self._two_leaves(machine)
            left, right = collected(machine, tree, data.cuts).value[1:]
            data, tree, leaf = self._two_leaves(machine)
            scores = machine.start(data, np.full(1, start))
            searched_tree = machine.line_search(tree, leaf, losses.SquaredError(), scores, data, False)
            r, f = np.array([*LEFT, *RIGHT]) - start, np.array([left] * len(LEFT) + [right] * len(RIGHT))
            rho = 0.0 if uphill else float(r @ f / (f @ f))
            value = collected(machine, searched_tree, data.cuts).value
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
            searched_tree = machine.line_search(tree, leaf, loss, machine.start(data, np.zeros(1)), data, True)
            value = collected(machine, searched_tree, data.cuts).value
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
                host_scores = machine.to_host(scores)
                assert not host_scores[0].any()
                assert host_scores[1].tolist() == expected * 20

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

    @needs("metrics")
    def test_metrics_of_scores_have_the_bits_of_their_definitions(self) -> None:
        machine, two, several, lists = self.machine(), losses.Logistic(), losses.Softmax(3), losses.LambdaMART()
        of_losses: tuple[tuple[Loss, Case, tuple[str, ...]], ...] = (
            (two, self._case(7, target="binary", weights="real"), ("auc", "average_precision", "error", "f1", "brier")),
            (several, self._case(7, target="3", weights="whole"), ("accuracy", "top_k_accuracy@2", "mcc", "auc_ovr")),
            (lists, self._lists(), ("ndcg@5", "map", "mrr", "precision@3", "recall")),
        )
        for loss, case, names in of_losses:
            data, weight = case.data, case.data.row_weight()
            scores = varied_scores(machine, data, loss.n_outputs)
            for metric in (get_metric(name, loss) for name in names):
                assert metric.score_metric is not None
                asked = metric.score_metric(data.y, weight, loss, data.query_start)
                assert asked is not None
                answers = [cast(Evaluator, machine).score_metric(asked, scores) for _ in range(3)]
                expected = metric(data.y, machine.to_host(scores), weight, loss, data.query_start)
                assert [metric.finish(answer()) for answer in answers] == 3 * [expected]

    @needs("metrics")
    def test_answers_have_the_bits_of_the_functions_of_scores(self) -> None:
        classes, counts = np.array([0.0, 2.5, 7.0]), predictions_answer(losses.Poisson())
        for loss in (losses.Exponential(), losses.Softmax(3)):
            machine, case = self.machine(), self._case(7, target="binary" if loss.n_outputs == 1 else "3")
            scores = varied_scores(machine, case.data, loss.n_outputs)
            questions = (
                probabilities_answer(loss),
                labels_answer(loss, classes[: max(2, loss.n_outputs)]),
                decision_answer(loss),
            )
            for asked in (*questions, FIRST_SCORE, *([counts] if loss.n_outputs == 1 else [])):
                answer = machine.to_host(cast(Evaluator, machine).answer(asked, scores))
                expected = np.asarray(asked(machine.to_host(scores)))
                assert (answer.dtype, answer.shape) == (expected.dtype, expected.shape)
                assert answer.tobytes() == expected.tobytes()

    @needs("recorded_metrics")
    def test_metrics_in_rounds_are_those_of_the_scores_after_each(self) -> None:
        machine, loss, case = self.machine(), losses.Logistic(), self._case(7, target="binary", weights="real")
        data, weight, metric = case.data, case.data.row_weight(), get_metric("auc", loss)
        sums, scores = varied_scores(machine, data, 1), machine.start(data, np.zeros(1))
        evaluator, begun, expected = cast(RoundEvaluator, machine), [], []
        assert metric.score_metric is not None
        asked = metric.score_metric(data.y, weight, loss, data.query_start)
        assert asked is not None
        for step in range(6):  # of which the last ones are replayed
            with machine.recorded(step):
                machine.scores(sums, np.zeros(1), 0.5 - step, scores)
                area = evaluator.recorded_metric(asked, scores)
                mean = evaluator.recorded_mean(loss, scores, data.y, weight)
            begun += [area.next(), mean.next()]
            expected.append(metric(data.y, machine.to_host(scores), weight, loss))
            expected.append(machine.loss_value(loss, scores, data.y, weight))
            if step == 3:
                assert [value() for value in begun] == expected
        assert [value() for value in begun] == expected

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
        predictions = machine.predict(ensemble, x)
        assert predictions.shape == (3, len(x))
        assert predictions.tobytes() == machine.to_host(scores).tobytes()
        for i in (0, 77, len(x) - 1):  # a row does not depend on the others
            row = np.ascontiguousarray(predictions[:, i : i + 1])
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
        leaves = machine.leaves(ensemble, case.x)
        assert leaves.shape == (len(case.x), len(ensemble.trees))
        assert leaves.dtype == np.int32
        for t, tree in enumerate(ensemble.trees):
            counts = np.bincount(leaves[:, t], minlength=len(tree.value))
            assert np.array_equal(counts[tree.nodes.is_leaf], tree.nodes.count[tree.nodes.is_leaf])
        assert machine.leaves(Ensemble(np.zeros(1), ensemble.cuts), case.x).shape == (len(case.x), 0)

    def test_contributions_add_up_to_the_scores(self) -> None:
        machine, (ensemble, case) = self.machine(), self._trained()
        contributions = machine.contributions(ensemble, case.x)
        assert contributions.shape == (len(case.x), 3, ensemble.cuts.n_columns + 1)
        assert np.allclose(contributions.sum(axis=2).T, machine.predict(ensemble, case.x), atol=1e-10)

    def test_interactions_add_up_to_the_contributions(self) -> None:
        machine, (ensemble, case) = self.machine(), self._trained()
        interactions = machine.interactions(ensemble, case.x)
        assert interactions.shape == (len(case.x), 3, *(ensemble.cuts.n_columns + 1,) * 2)
        assert np.array_equal(interactions, interactions.swapaxes(2, 3))
        assert np.allclose(interactions.sum(axis=3), machine.contributions(ensemble, case.x), atol=1e-10)

    def test_a_shrunken_ensemble_is_bias_plus_scale_times_the_sum(self) -> None:
        machine, (ensemble, case) = self.machine(), self._trained()
        bare = replace(ensemble, bias=np.zeros(3))
        expected = ensemble.bias[:, None] + 0.5 * machine.predict(bare, case.x)
        assert machine.predict(replace(ensemble, scale=0.5), case.x).tobytes() == expected.tobytes()

    # parts of the above

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
