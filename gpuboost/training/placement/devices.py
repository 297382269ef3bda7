"""The device of a fit, and its backend: chosen by the parameters, the data, and the memory and kernels of a GPU."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from gpuboost import backends
from gpuboost.backends.cuda.device.dry_run import DryRun
from gpuboost.backends.cuda.device.gpus import open_gpu
from gpuboost.backends.devices import Choice, choose
from gpuboost.backends.protocol import Backend
from gpuboost.data.row_metadata import RowMetadata
from gpuboost.errors import DeviceError
from gpuboost.execution import DataParallel
from gpuboost.execution.machines import in_process
from gpuboost.execution.protocol import ExecutionTraits
from gpuboost.learners.selection import SelectionTraits
from gpuboost.losses.protocol import is_list_loss
from gpuboost.losses.registry import CLASSES
from gpuboost.recipe import Recipe
from gpuboost.records import declared
from gpuboost.sampling.protocol import SamplingTraits
from gpuboost.training.monitoring import Monitoring, RawEvalSet
from gpuboost.training.parameters.base_learners import families_on_gpus, not_on_gpus
from gpuboost.training.placement.first_fits import by_numpy_first
from gpuboost.training.placement.sharding import GPUS, shards_choice
from gpuboost.types import Array, Cuts


def device_choice(params: Mapping[str, Any], values: int, place: str | None) -> Choice:
    """The device of a fit: the CPU if a GPU has no kernels for the recipe, or if workers are other processes.

    Raises
    ------
    RecipeError, DeviceError
        As ``choose``; and if ``device`` asks for a GPU in one of these cases.
    """
    if isinstance(params.get("execution"), DataParallel):
        return shards_choice(params, place)
    asked = params["device"]
    reason = _why_on_the_cpu(params, automatic=isinstance(asked, str) and asked == "auto" and place is None)
    if reason is None:
        return choose(asked, values, place)
    what, instead = reason
    if place is not None or (isinstance(asked, str) and asked.startswith("cuda")):
        seen = f"X is on {place}" if place is not None else f"got device={asked!r}"
        raise DeviceError(
            f"device: {what} on the CPU; {seen}. Use device='cpu' or 'auto', and data on the host; or {instead}."
        )
    choice = choose(asked)
    if asked != "auto":
        return choice
    return Choice("cpu", f"device='auto' took the CPU, where {what}.")


def check_kernels(params: Mapping[str, Any]) -> None:
    """Raise DeviceError, with the reason that a fit on a GPU has, if GPUs have no kernels for the recipe."""
    sharded = isinstance(params.get("execution"), DataParallel)
    reason = _why_by_search(params) if sharded else _why_on_the_cpu(params, automatic=False)
    if reason is not None:
        what, instead = reason
        raise DeviceError(f"device: {what} on the CPU, and no memory of a GPU is taken. Use {instead}.")


def _why_on_the_cpu(params: Mapping[str, Any], *, automatic: bool) -> tuple[str, str] | None:
    """The work that GPUs have no kernels for, and what to use instead; None if a GPU can run the recipe."""
    learner = not_on_gpus(params.get("base_learner"))
    if learner is not None:
        return f"base_learner={learner} is fitted", f"base_learner=None (trees), or of {families_on_gpus()}"
    search = _why_by_search(params)
    if search is not None:
        return search
    execution = params.get("execution")
    if not declared(ExecutionTraits, execution).has_workers:
        return None
    return _why_by_workers(params, execution, automatic=automatic)


def _why_by_workers(params: Mapping[str, Any], execution: Any, *, automatic: bool) -> tuple[str, str] | None:
    """As ``_why_on_the_cpu``, for trees that several workers build."""
    if params.get("base_learner") is not None:
        return "base learners other than trees are fitted by several workers", "execution=None"
    if not in_process(execution):
        return "trees of workers in other processes are built", "engine='threads', a stream for each worker"
    if automatic:
        return "several workers use several cores", "device='cuda'"
    return None


def _why_by_search(params: Mapping[str, Any]) -> tuple[str, str] | None:
    """As ``_why_on_the_cpu``, for the search for splits."""
    if declared(SelectionTraits, params.get("learners")).keeps_gains:
        return "gains of past rounds choose the learners", "gb.CyclicGroups(1)"
    if params.get("feature_costs") is not None:
        return "trees with feature costs are grown", "feature_costs=None"
    return None if params.get("forced_splits") is None else ("forced splits are made", "forced_splits=None")


def backend_of(
    choice: Choice, threads: int, recipe: Recipe, rows: Any, cuts: Cuts, query_start: Array | None, watched: int
) -> Backend:
    """The backend of a fit. The first small fits on a machine are NumPy's: see ``by_numpy_first``."""
    on_cpu = choice.name == "cpu"
    by_numpy = by_numpy_first(threads, recipe, rows, cuts, query_start, watched) if on_cpu else None
    return by_numpy or backends.get(choice.name, threads)


def check_losses(recipe: Recipe) -> None:
    """Raise DeviceError if rows are drawn by losses of lists, which GPUs do not compute."""
    if declared(SamplingTraits, recipe.sampling).weighs_losses and is_list_loss(recipe.loss):
        why = f"sampling: score='loss' with {recipe.loss.name!r} takes the loss of a row's list, computed on the CPU. "
        raise DeviceError(f"{why}Use device='cpu', or score='mvs' or 'gradient'.")


def checked_choice(
    choice: Choice,
    automatic: bool,
    recipe: Recipe,
    cuts: Cuts,
    rows: RowMetadata,
    sets: tuple[RawEvalSet, ...],
    monitoring: Monitoring,
) -> Choice:
    """The choice if that device can run the recipe; otherwise the CPU if the choice was automatic.

    sets: eval sets, which the metrics of ``monitoring`` judge.

    Raises
    ------
    DeviceError
        If a GPU was requested and has too little memory, or cannot run a function of the user.
    """
    if choice.name in ("cpu", GPUS):
        return choice
    from gpuboost.backends.cuda.user_kernels import functions_of_metrics
    from gpuboost.training.memory.estimate import check_room, training_needs
    from gpuboost.training.memory.watched import Watching

    known = ("", "loss") if type(recipe.loss) is CLASSES.get(recipe.loss.name) else ("",)
    try:
        check_losses(recipe)
        gpu = open_gpu(choice.name)
        needs = training_needs(recipe, cuts, DryRun(gpu.sm_count), rows, Watching(sets, monitoring.metrics))
        check_room(choice.name, recipe, needs.memory)
        of_the_user = tuple(function for function in needs.functions if function.argument not in known)
        gpu.check((*of_the_user, *functions_of_metrics(monitoring.means)))
        gpu.check(tuple(function for function in needs.functions if function.argument in known), beside=True)
    except DeviceError as error:
        if not automatic:
            raise
        return Choice("cpu", f"device='auto' took the CPU; on {choice.name}: {error}")
    return choice
