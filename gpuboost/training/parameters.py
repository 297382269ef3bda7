"""Validation of the constructor's parameters, and their assembly into a recipe."""

from __future__ import annotations

import math
import os
import warnings
from collections.abc import Callable, Mapping
from functools import partial
from numbers import Integral, Real
from typing import Any

from gpuboost.backends.devices import usable_threads
from gpuboost.composition.inert import inert_findings
from gpuboost.composition.learners import MOST_PAIRS_PER_FEATURE, is_stump, not_enumerable
from gpuboost.data.dataset import MOST_THREADS
from gpuboost.data.encoding import AUTO, OrderedTargetStatistics, checked_encoding
from gpuboost.errors import RecipeError, shown
from gpuboost.execution import Execution, Serial
from gpuboost.growth import CategoricalSplits, DepthWise, Growth, LeafWise, Oblivious, SignStump
from gpuboost.langevin import Dynamics, Langevin, NoNoise, TemperatureSchedule
from gpuboost.learners import AllLearners, RandomGroups, RandomLearners, Selection, WeightedGroups, weighted
from gpuboost.learners.partition import partition
from gpuboost.learners.selection import SelectionTraits
from gpuboost.learning_rates import Averaging, Rates, rates_of
from gpuboost.losses.protocol import Loss, is_list_loss
from gpuboost.losses.start_values import OPTIMUM, start_rule
from gpuboost.multi_output import MultiOutput, OneTree, OneTreePerOutput
from gpuboost.recipe import Recipe
from gpuboost.records import declared
from gpuboost.sampling import EveryRow, Sampling, UniformSampling
from gpuboost.sampling.protocol import SamplingTraits
from gpuboost.steps import ConstantStep, GradientStep, LineSearchStep, NewtonStep, Step, automatic
from gpuboost.training.automatic import provisional
from gpuboost.training.base_learners import base_learner
from gpuboost.training.constraints.by_column import NOTHING, ByColumn
from gpuboost.types import Limits
from gpuboost.watch.early_stopping import stops_early

GROWTHS: dict[str, Callable[[Limits], Growth]] = {
    "depthwise": DepthWise,
    "leafwise": LeafWise,
    "oblivious": Oblivious,
    "sign_stump": SignStump,
}
STEPS: dict[str, Callable[[], Step]] = {
    "newton": NewtonStep,
    "gradient": GradientStep,
    "constant": ConstantStep,
    "line_search": LineSearchStep,
}
LEAVES = 31  # of leaf-wise trees, unless max_leaves is given; LightGBM's default
RIDGE, RIDGE_OF_LISTS, RIDGE_OF_ONE_TREE = 3.0, 1.0, 1.0  # reg_lambda, unless it is given
_MOST = 2**63 - 1


def integer(name: str, value: Any, low: int, high: int | None = None) -> int:
    """The value as an int from low to high; raises RecipeError otherwise."""
    rule = f"an integer of at least {low}" if high is None else f"an integer from {low} to {high}"
    if not isinstance(value, Integral) or isinstance(value, bool):
        raise RecipeError(f"{name}: must be {rule}; got {shown(value)}.")
    number = int(value)
    if high is None and number > _MOST:
        rule = f"{rule}, and below 2**63"
    if not low <= number <= (_MOST if high is None else high):
        raise RecipeError(f"{name}: must be {rule}; got {shown(value)}.")
    return number


def real(name: str, value: Any, *, positive: bool = False) -> float:
    """The value as a finite float >= 0 (or > 0); raises RecipeError otherwise."""
    rule = "a finite number above 0" if positive else "a finite number, 0 or more"
    if not isinstance(value, Real) or isinstance(value, bool):
        raise RecipeError(f"{name}: must be {rule}; got {shown(value)}.")
    number = as_float(value)
    if not math.isfinite(number) or number < 0.0 or (positive and number == 0.0):
        raise RecipeError(f"{name}: must be {rule}; got {shown(value)}.")
    return number


def flag(name: str, value: Any) -> bool:
    """The value as a bool; raises RecipeError unless it is one."""
    if not isinstance(value, bool):
        raise RecipeError(f"{name}: must be True or False; got {shown(value)}.")
    return value


def as_float(value: Real) -> float:
    """The number as float64; infinite if it is too large for that."""
    try:
        return float(value)
    except OverflowError:
        return math.inf


def choice(name: str, value: Any, options: Mapping[str, Any]) -> Any:
    """Value of the option; raises RecipeError if the option is unknown."""
    if not isinstance(value, str) or value not in options:
        raise RecipeError(f"{name}: must be one of {', '.join(map(repr, options))}; got {value!r}.")
    return options[value]


def limits(
    params: Mapping[str, Any], loss: Loss, n_rows: int, by_column: ByColumn = NOTHING, counted: int | None = None
) -> Limits:
    """Limits of a tree's growth. ``max_depth`` or ``max_leaves`` alone decides if the other one is None.

    Without ``max_leaves``, leaf-wise growth would give the trees of depth-wise growth, so it has LEAVES leaves.
    counted: rows as their weights count them, if that is another number, for the limits of categories.
    """
    depth = None if params["max_depth"] is None else integer("max_depth", params["max_depth"], 1)
    leaves = None if params["max_leaves"] is None else integer("max_leaves", params["max_leaves"], 2)
    if params["growth"] == "leafwise" and leaves is None:
        leaves = LEAVES if depth is None else min(LEAVES, 2 ** min(depth, LEAVES))
    if depth is None and leaves is None:
        raise RecipeError("max_depth: a tree needs a limit, and max_leaves is None too; give one of the two.")
    if params["growth"] == "leafwise" and depth is not None and leaves is not None and leaves > 2**depth:
        warnings.warn(
            f"max_leaves: {leaves} leaves cannot be reached, since max_depth={depth} allows {2**depth}; "
            "pass max_depth=None to let max_leaves alone decide.",
            stacklevel=2,
        )
    leaf_bound = max(2, n_rows)  # a leaf holds a row
    depth = leaf_bound if depth is None else min(depth, leaf_bound)
    if params["growth"] == "oblivious":
        leaf_bound *= depth  # a leaf may be empty, but of every level no more nodes are split than there are rows
    if depth < leaf_bound.bit_length():
        leaf_bound = min(leaf_bound, 2**depth)
    return Limits(
        max_leaves=leaf_bound if leaves is None else min(leaves, leaf_bound),
        max_depth=depth,
        min_samples_leaf=integer("min_samples_leaf", params["min_samples_leaf"], 1),
        min_child_weight=real("min_child_weight", params["min_child_weight"]),
        reg_lambda=_reg_lambda(params, loss),
        min_split_gain=real("min_split_gain", params["min_split_gain"]),
        random_strength=real("random_strength", params.get("random_strength", 0.0)),
        extra_trees=flag("extra_trees", params.get("extra_trees", False)),
        reg_alpha=real("reg_alpha", params.get("reg_alpha", 0.0)),
        max_delta_step=real("max_delta_step", params.get("max_delta_step", 0.0)),
        path_smooth=real("path_smooth", params.get("path_smooth", 0.0)),
        categories=categorical_splits(params.get("categorical_splits")).limits(counted or n_rows),
        **by_column.of_limits,
    )


def categorical_splits(value: Any) -> CategoricalSplits:
    """Regularisation of categorical splits; None is the default one."""
    if value is None or isinstance(value, CategoricalSplits):
        return value or CategoricalSplits()
    raise RecipeError(f"categorical_splits: must be None or a gb.CategoricalSplits; got {shown(value)}.")


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
    policy: Sampling = _policy("sampling", value, ("draw",), rule)
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
    policy: Selection = _policy("learners", value, ("draw",), rule)
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
    policy: Execution = _policy("execution", value, ("open",), rule)
    return policy


def _check_posterior_samples(params: Mapping[str, Any]) -> None:
    """Raise RecipeError before the fit for values that ``predict_uncertainty`` would refuse after it."""
    asked = params.get("posterior_samples")
    if asked is None:
        return
    samples = integer("posterior_samples", asked, 1)
    if not isinstance(params["langevin"], Langevin):
        raise RecipeError("posterior_samples: draws come from a chain with noise; pass langevin=gb.Langevin() too.")
    if params["early_stopping_rounds"] is not None:
        raise RecipeError(
            "posterior_samples: early stopping picks the best iterate, which is no draw from the posterior; set "
            "early_stopping_rounds to None."
        )
    if stops_early(params.get("callbacks")):
        raise RecipeError(
            "posterior_samples: early stopping picks the best iterate, which is no draw from the posterior; leave "
            "EarlyStopping out of callbacks."
        )
    _check_schedule(params["langevin"].schedule, params["n_estimators"])
    frozen = declared(SamplingTraits, params["sampling"]).frozen_from
    if frozen is not None and 2 * frozen > params["n_estimators"]:
        raise RecipeError(
            "posterior_samples: draws come from the last half of the rounds, and the probabilities of the rows change "
            f"there until round {frozen}. Use frozen_from of at most {params['n_estimators'] // 2}."
        )
    if params["n_estimators"] < 2 * samples:
        raise RecipeError(
            f"posterior_samples: {samples} draws need {2 * samples} rounds, as half of them are burn-in; "
            f"n_estimators is {params['n_estimators']}."
        )


def _check_schedule(schedule: Any, rounds: int) -> None:
    """Raise RecipeError if the temperature still changes in the second half of the rounds, where draws come from."""
    if schedule is None:
        return
    constant = schedule.constant_from if isinstance(schedule, TemperatureSchedule) else None
    if constant is None or 2 * constant > rounds:
        raise RecipeError(
            f"posterior_samples: draws come from the last half of the rounds, at one temperature, and schedule="
            f"{schedule!r} changes it there. Anneal for at most {rounds // 2} rounds, or leave posterior_samples out."
        )


def _reg_lambda(params: Mapping[str, Any], loss: Loss) -> float:
    """``reg_lambda``; None: see docs/decisions/0010, and 0 with Langevin, whose leaves are plain averages."""
    if params["reg_lambda"] is not None:
        return real("reg_lambda", params["reg_lambda"])
    if isinstance(params.get("langevin"), Langevin):
        return 0.0
    if multi_output(params, loss) == OneTree():  # without a sketch
        return RIDGE_OF_ONE_TREE
    return RIDGE_OF_LISTS if is_list_loss(loss) else RIDGE


def step(value: Any, loss: Loss, dynamics: Dynamics) -> Step:
    """Step rule of a name, or of a policy with ``curvature`` and ``refine``."""
    if isinstance(value, str):
        auto = GradientStep if isinstance(dynamics, Langevin) else partial(automatic, loss)
        made: Step = choice("step", value, {"auto": auto, **STEPS})()
        return made
    rule = "'auto', 'newton', 'gradient', 'constant', 'line_search', or a policy such as NewtonStep()"
    policy: Step = _policy("step", value, ("curvature", "refine"), rule)
    return policy


def _policy(name: str, value: Any, methods: tuple[str, ...], rule: str) -> Any:
    if isinstance(value, type) or not all(callable(getattr(value, method, None)) for method in methods):
        raise RecipeError(f"{name}: must be {rule}; got {shown(value)}.")
    return value


def learning_rate(value: Any, rounds: int, first: int = 0) -> tuple[float, Rates]:
    """The largest rate of the fit, and the rates of all rounds of the model if they are not one number."""
    if isinstance(value, Real):
        return real("learning_rate", value, positive=True), ()
    rates = rates_of(value, first + rounds)
    return max(rates[first : first + rounds] or rates_of(value, 1)), rates


def recipe(
    params: Mapping[str, Any],
    loss: Loss,
    n_rows: int,
    n_columns: int | None = None,
    by_column: ByColumn = NOTHING,
    *,
    first: int = 0,
    counted: int | None = None,
) -> Recipe:
    """The recipe of the parameters, for a known number of rows and an optional number of columns.

    by_column: what parameters say of single columns. first: rounds of the model that the fit begins with. counted: rows
    as their weights count them, if that is another number.

    Raises
    ------
    RecipeError
        If a parameter is out of its range, or pieces contradict each other; the message names them.
    """
    params = provisional(params, counted or n_rows)
    dynamics = langevin(params.get("langevin"))
    growth: Growth = choice("growth", params["growth"], GROWTHS)(limits(params, loss, n_rows, by_column, counted))
    drawn = weighted(learners(params["learners"]), by_column.weights)
    if n_columns is not None and params.get("base_learner") is None:
        _check_learners(drawn, growth.limits, n_columns, params["max_bins"])
    drawn_rows, rounds = sampling(params["sampling"]), integer("n_estimators", params["n_estimators"], 0)
    learner = base_learner(params.get("base_learner"), drawn_rows)
    rate, rates = learning_rate(params["learning_rate"], rounds, first)
    made = Recipe(
        loss=loss,
        rounds=rounds,
        learning_rate=rate,
        growth=growth,
        sampling=drawn_rows,
        learners=drawn,
        step=step(params["step"], loss, dynamics),
        langevin=dynamics,
        execution=execution(params.get("execution")),
        base_learner=learner,
        start_at=start_rule(params.get("start", OPTIMUM), loss),
        inert=inert_findings(params, learner, dynamics, rounds),
        permutations=_permutations(params),
        rates=rates,
        averages=isinstance(params["learning_rate"], Averaging),
        multi_output=multi_output(params, loss),
    )
    _check_posterior_samples(params)
    return made


def _permutations(params: Mapping[str, Any]) -> int:
    """Permutations of ordered target statistics; 0 if they are not asked for by name."""
    encoding = checked_encoding(params.get("categorical_encoding", AUTO))
    return encoding.permutations if isinstance(encoding, OrderedTargetStatistics) else 0


def _check_learners(selection: Selection, limits: Limits, n_columns: int, max_bins: Any) -> None:
    """Refuse rules that do not fit the columns or the limits, before the data are binned. Raises RecipeError."""
    groups = declared(SelectionTraits, selection).groups
    if isinstance(selection, RandomGroups) and groups == "feature" and selection.t > n_columns:
        warnings.warn(f"learners: {selection.t} are asked for, and there are {n_columns} features.", stacklevel=2)
    if isinstance(groups, tuple):
        partition(groups, n_columns)
    if isinstance(selection, WeightedGroups):
        selection.check(n_columns)
    if not isinstance(selection, RandomLearners):
        return
    if not is_stump(limits):
        raise RecipeError(not_enumerable(limits, n_columns, integer("max_bins", max_bins, 2) - 1))
    if isinstance(selection.t, Integral) and selection.t >= MOST_PAIRS_PER_FEATURE * n_columns:
        warnings.warn(
            f"learners: {selection.t} pairs of {n_columns} features are about all of the features; RandomGroups(t) "
            "draws from the same at less cost.",
            stacklevel=2,
        )


def multi_output(params: Mapping[str, Any], loss: Loss) -> MultiOutput:
    """The trees of several outputs, and the sketch of one for all of them; of one output there is nothing to choose."""
    sketch: Any = params.get("sketch")
    options = {"one_tree_per_output": False, "one_tree": True}
    one_tree = choice("multi_output", params.get("multi_output", "one_tree_per_output"), options)
    if sketch is not None:
        _policy("sketch", sketch, ("of",), "None, or a policy such as gb.RandomProjection(5)")
        if not one_tree:
            raise RecipeError(
                f"sketch: {sketch!r} is for the search of one tree for all outputs, and each output has its own. Use "
                "multi_output='one_tree', or sketch=None."
            )
    if not one_tree or loss.n_outputs == 1:
        return OneTreePerOutput()
    return OneTree() if sketch is None else OneTree(sketch)


def threads(n_jobs: Any) -> int:
    """Number of threads for ``n_jobs``: all that this process may use for None and -1, all but one for -2."""
    if n_jobs is None:
        return usable_threads()
    asked = int(n_jobs) if isinstance(n_jobs, Integral) and not isinstance(n_jobs, bool) else 0
    if asked == 0:
        raise RecipeError(f"n_jobs: must be None, a number of threads, or -1 for all; got {n_jobs!r}.")
    if abs(asked) > MOST_THREADS:
        raise RecipeError(f"n_jobs: must be at most {MOST_THREADS} threads; got {shown(n_jobs)}.")
    return asked if asked > 0 else max(1, usable_threads() + 1 + asked)
