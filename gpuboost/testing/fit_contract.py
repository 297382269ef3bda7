"""Contract of whole fits: the model of a backend is that of the definition, byte for byte."""

from __future__ import annotations

from abc import ABC
from dataclasses import replace
from itertools import product

from gpuboost import losses
from gpuboost.backends.protocol import Backend
from gpuboost.boosting import boost
from gpuboost.growth import DepthWise, Growth, LeafWise, Oblivious
from gpuboost.langevin import Langevin
from gpuboost.learners import Linear, RandomByLevel, RandomByNode, RandomGroups, Spline
from gpuboost.recipe import Recipe
from gpuboost.sampling import GOSS, MVS, ImportanceSampling, Sampling, UniformSampling, WeightTrimming
from gpuboost.steps import GradientStep, LineSearchStep, NewtonStep, automatic
from gpuboost.testing.cases import Case, model_bytes
from gpuboost.testing.machine_cases import MachineCases, needs
from gpuboost.types import Limits, Progress, TrainingSet


class FitContract(MachineCases, ABC):
    """Fits of every kind."""

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

    @needs("repeated_rounds")
    def test_a_fit_whose_rounds_are_repeated(self) -> None:
        """The rounds are those of one by one, and none is in the model after a stop, however many have been done."""
        plain = Recipe(losses.Logistic(), 4 * self.rounds, 0.3, DepthWise(Limits(8, 3)))
        drawn = replace(plain, sampling=UniformSampling(0.6), learners=RandomByNode(2))
        for stop, recipe in ((4 * self.rounds, plain), (2 * self.rounds + 1, plain), (4 * self.rounds, drawn)):

            def work(machine: Backend, data: TrainingSet, stop: int = stop, recipe: Recipe = recipe) -> list[bytes]:
                seen: list[bytes] = []

                def watch(progress: Progress) -> bool:
                    line, versions = progress.log[-1], [tree.version for tree in progress.trees]
                    numbers = progress.round, progress.n_rounds, line.ticket, line.pulled, *versions
                    seen.append(str(numbers).encode())
                    return progress.n_rounds == stop

                return [model_bytes(boost(recipe, data, machine, watch=watch, together=5)), *seen]

            self._as_defined(self._case(20, target="binary", weights="whole"), work)

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

    def _fit(self, case: Case, recipe: Recipe) -> None:
        def work(machine: Backend, data: TrainingSet) -> list[bytes]:
            seen: list[bytes] = []

            def watch(progress: Progress) -> bool:
                seen.append(machine.to_host(progress.scores).tobytes())
                return False

            return [model_bytes(boost(recipe, data, machine, seed=3, watch=watch)), *seen]

        self._as_defined(case, work)
