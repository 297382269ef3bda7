"""Recipes whose rounds a machine may repeat: they differ by nothing, or by the numbers of their random streams."""

from __future__ import annotations

from gpuboost.arguments import is_one_of
from gpuboost.backends.protocol import Capabilities
from gpuboost.composition.pieces import Pieces
from gpuboost.execution import Serial
from gpuboost.growth import DepthWise, LeafWise, Oblivious, SignStump
from gpuboost.langevin import Dynamics, Langevin, NoNoise
from gpuboost.learners import AllLearners, RandomByLevel, RandomByNode, RandomGroups
from gpuboost.learners.selection import SelectionTraits
from gpuboost.losses.protocol import is_drawn
from gpuboost.multi_output import OneTreePerOutput
from gpuboost.records import declared
from gpuboost.sampling import EveryRow
from gpuboost.sampling.protocol import SamplingTraits
from gpuboost.steps import ConstantStep, GradientStep, NewtonStep, QuantileStep


def may_repeat(recipe: Pieces, offers: Capabilities) -> bool:
    """True if a machine that offers this may repeat the rounds."""
    return rounds_are_equal(recipe) or (rounds_are_counted(recipe) and offers.counted_rounds)


def may_repeat_on_cpu(recipe: Pieces) -> bool:
    """True if a CPU repeats the rounds: they draw rows, features, and cuts and noise on gains of one output."""
    features, limits, langevin = recipe.learners, recipe.growth.limits, recipe.langevin
    known = isinstance(features, AllLearners | RandomGroups | RandomByNode | RandomByLevel)
    if isinstance(features, RandomGroups):
        known = is_one_of(features.groups, ("feature",))
    known = known and not declared(SamplingTraits, recipe.sampling).weighs_losses
    plain = recipe.loss.n_outputs == 1 or not (limits.extra_trees or limits.random_strength > 0.0)
    plain = plain and (not isinstance(langevin, Langevin) or langevin.noise_scale is None)
    return known and plain and _are_counted_beside_features(recipe)


def rounds_are_equal(recipe: Pieces) -> bool:
    """True if each round does the same on the scores that it finds: nothing is drawn, and no rate changes."""
    limits, kinds = recipe.growth.limits, (type(recipe.sampling), type(recipe.learners), type(recipe.langevin))
    drawn = limits.random_strength > 0.0 or limits.extra_trees or kinds != (EveryRow, AllLearners, NoNoise)
    return rounds_are_counted(recipe) and not drawn


def rounds_are_counted(recipe: Pieces) -> bool:
    """True if rounds differ by the numbers of their random streams alone, each one more than in the round before.

    What is drawn is then drawn by kernels: rows, features of trees, levels and nodes, noise on gains, single cuts,
    noise on gradients and leaf values. The scale of a model that shrinks follows from that of the round before.
    """
    return declared(SelectionTraits, recipe.learners).repeatable and _are_counted_beside_features(recipe)


def _are_counted_beside_features(recipe: Pieces) -> bool:
    if (type(recipe.execution), type(recipe.multi_output)) != (Serial, OneTreePerOutput):
        return False
    known = type(recipe.growth) in (DepthWise, LeafWise, Oblivious, SignStump)
    known = known and type(recipe.step) in (NewtonStep, GradientStep, ConstantStep, QuantileStep)
    rows = declared(SamplingTraits, recipe.sampling)
    known = known and rows.repeatable and rows.variance_control in ("none", "leaf_refit")  # others remember a round
    varies = recipe.base_learner is not None or recipe.rates or recipe.averages or recipe.permutations > 1
    return known and not (varies or is_drawn(recipe.loss)) and _is_constant(recipe.langevin)


def _is_constant(noise: Dynamics) -> bool:
    return type(noise) is NoNoise or (type(noise) is Langevin and noise.is_constant)
