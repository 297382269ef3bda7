"""The policies that parameters stand for: None, numbers and words are short for objects."""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping
from functools import partial
from numbers import Integral, Real
from typing import Any

from gpuboost.arguments import as_float
from gpuboost.data.encoding import AUTO, OrderedTargetStatistics, checked_encoding
from gpuboost.errors import RecipeError, shown
from gpuboost.execution import Execution, Serial
from gpuboost.langevin import Dynamics, Langevin, NoNoise
from gpuboost.learners import AllLearners, RandomGroups, Selection
from gpuboost.learning_rates import Rates, rates_of
from gpuboost.losses.protocol import Loss
from gpuboost.multi_output import MultiOutput, OneTree, OneTreePerOutput
from gpuboost.records import declared
from gpuboost.sampling import EveryRow, Sampling, UniformSampling
from gpuboost.sampling.protocol import SamplingTraits
from gpuboost.steps import ConstantStep, GradientStep, LineSearchStep, NewtonStep, Step, automatic
from gpuboost.training.parameters.values import choice, real, with_methods

STEPS: dict[str, Callable[[], Step]] = {
    "newton": NewtonStep,
    "gradient": GradientStep,
    "constant": ConstantStep,
    "line_search": LineSearchStep,
}


def sampling(value: Any) -> Sampling:
    """Row-sampling rule of None, a rate, or a policy with ``draw``."""
    if value is None:
        return EveryRow()
    if isinstance(value, Real) and not isinstance(value, bool):
        value = UniformSampling(as_float(value))
    if isinstance(value, (list, tuple)):
        raise RecipeError(
            f"sampling: a row is drawn by one sampler; got {len(value)}, {value!r}. Give one of them; "
            "ImportanceSampling(rate, floor=) mixes importance with uniform chances."
        )
    rule = "None, a rate in (0, 1], or a policy such as UniformSampling(0.5)"
    policy: Sampling = with_methods("sampling", value, ("draw",), rule)
    return EveryRow() if declared(SamplingTraits, policy).draws_every_row else policy


def learners(value: Any) -> Selection:
    """Selection rule of None, a count or share of the features, or a policy with ``draw``."""
    if value is None:
        return AllLearners()
    if not isinstance(value, bool) and isinstance(value, Real) and value == 1:
        raise RecipeError(
            f"learners: {value!r} may mean one feature or all of them; pass gb.RandomGroups(1) to draw one feature for "
            "each tree, or None for all features."
        )
    if isinstance(value, Integral) and not isinstance(value, bool):
        return RandomGroups(int(value))
    if isinstance(value, Real) and not isinstance(value, bool):
        return RandomGroups(as_float(value))
    rule = "None, a count or a share of the features, or a policy such as RandomGroups(10)"
    policy: Selection = with_methods("learners", value, ("draw",), rule)
    return policy


def langevin(value: Any) -> Dynamics:
    """Dynamics of None, or of a ``Langevin``."""
    if value is None:
        return NoNoise()
    if not isinstance(value, (Langevin, NoNoise)):
        rule = "None, or a policy such as Langevin(inverse_temperature=1000.0, shrinkage=0.01)"
        raise RecipeError(f"langevin: must be {rule}; got {shown(value)}.")
    return value


def execution(value: Any) -> Execution:
    """Execution policy of None, or of a policy with ``open``."""
    if value is None:
        return Serial()
    rule = "None, or a policy such as Asynchronous(4)"
    if isinstance(value, os.PathLike):  # it can be opened too
        raise RecipeError(f"execution: must be {rule}; got {value!r}. A log is replayed by gb.Replay(path).")
    policy: Execution = with_methods("execution", value, ("open",), rule)
    return policy


def step(value: Any, loss: Loss, dynamics: Dynamics) -> Step:
    """Step rule of a name, or of a policy with ``curvature`` and ``refine``."""
    if isinstance(value, str):
        auto = GradientStep if isinstance(dynamics, Langevin) else partial(automatic, loss)
        made: Step = choice("step", value, {"auto": auto, **STEPS})()
        return made
    rule = "'auto', 'newton', 'gradient', 'constant', 'line_search', or a policy such as NewtonStep()"
    policy: Step = with_methods("step", value, ("curvature", "refine"), rule)
    return policy


def learning_rate(value: Any, rounds: int, first: int = 0) -> tuple[float, Rates]:
    """The largest rate of the fit, and the rates of all rounds of the model if they are not one number."""
    if isinstance(value, Real):
        return real("learning_rate", value, positive=True), ()
    rates = rates_of(value, first + rounds)
    return max(rates[first : first + rounds] or rates_of(value, 1)), rates


def multi_output(params: Mapping[str, Any], loss: Loss) -> MultiOutput:
    """The trees of several outputs, and the sketch of one for all of them; of one output there is nothing to choose."""
    sketch: Any = params.get("sketch")
    options = {"one_tree_per_output": False, "one_tree": True}
    one_tree = choice("multi_output", params.get("multi_output", "one_tree_per_output"), options)
    if sketch is not None:
        with_methods("sketch", sketch, ("of",), "None, or a policy such as gb.RandomProjection(5)")
        if not one_tree:
            raise RecipeError(
                f"sketch: {sketch!r} is for the search of one tree for all outputs, and each output has its own. Use "
                "multi_output='one_tree', or sketch=None."
            )
    if not one_tree or loss.n_outputs == 1:
        return OneTreePerOutput()
    return OneTree() if sketch is None else OneTree(sketch)


def permutations(params: Mapping[str, Any]) -> int:
    """Permutations of ordered target statistics; 0 if they are not asked for by name."""
    encoding = checked_encoding(params.get("categorical_encoding", AUTO))
    return encoding.permutations if isinstance(encoding, OrderedTargetStatistics) else 0
