"""Devices of an estimator: that of a fit, the backend that predicts, kept between calls, and data on a device."""

from __future__ import annotations

import os
import threading
from collections.abc import Callable, Mapping
from typing import Any, cast
from weakref import WeakKeyDictionary

import numpy as np
from numpy.typing import NDArray

from gpuboost import backends
from gpuboost.backends.cuda.device.dry_run import DryRun
from gpuboost.backends.cuda.device.gpus import gpu_of, open_gpu
from gpuboost.backends.devices import Choice, choose
from gpuboost.backends.optional_verbs import Evaluator
from gpuboost.backends.protocol import Backend
from gpuboost.data.dataset import Dataset
from gpuboost.data.row_metadata import RowMetadata
from gpuboost.data.tables import Table
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
from gpuboost.scoring.answers import Answer
from gpuboost.training.monitoring import Monitoring, RawEvalSet
from gpuboost.training.parameters.base_learners import families_on_gpus, not_on_gpus
from gpuboost.training.placement.first_fits import by_numpy_first
from gpuboost.training.placement.sharding import GPUS, shards_choice
from gpuboost.types import Array, Cuts, DeviceMatrix


class _Kept(threading.local):
    """Backend of an estimator, per thread, since a backend serves one caller at a time; freed with the estimator."""

    def __init__(self) -> None:
        self.machines: WeakKeyDictionary[object, tuple[tuple[str, int], Backend]] = WeakKeyDictionary()


_kept = _Kept()


def machine_of(owner: object, device: str, threads: int) -> Backend:
    """The backend of that kind that ``owner`` used last in this thread, or a new one."""
    held = _kept.machines.get(owner)
    if held is None or held[0] != (device, threads):
        held = (device, threads), backends.get(device, threads)
        _kept.machines[owner] = held
    return held[1]


def as_device_array(X: Any, device: object) -> Any:
    """X, or a ``DeviceMatrix`` if X is on a GPU. Raises DeviceError if ``device`` is another one."""
    where = gpu_of(X)
    if where is None:
        return X
    from gpuboost.backends.cuda.inputs.matrix import CudaMatrix  # it imports numba

    return CudaMatrix.of(open_gpu(choose(device, on=where).name), X)


def uploader(on: str) -> Callable[[NDArray[Any]], DeviceMatrix] | None:
    """The function that copies a host array to the GPU that trains; None if the CPU does, or several GPUs."""

    def upload(array: NDArray[Any]) -> DeviceMatrix:
        from gpuboost.backends.cuda.inputs.matrix import CudaMatrix  # it imports numba

        runtime = open_gpu(on)
        return CudaMatrix.of(runtime, runtime.upload(array))

    return upload if on.startswith("cuda") else None


def on_host(values: Any) -> Any:
    """Target or weights as a host array, copied if they are on a GPU."""
    where = gpu_of(values)
    if where is None:
        return values
    runtime = open_gpu(where)
    return runtime.download(runtime.as_device_array(values))


def to_caller_device(machine: Backend, x: Any, found: Array, answer: Answer | None = None) -> Any:
    """The answer of a backend's result, or the result itself: on the device if x is there, unless it is text.

    Where the answer has no rule for a device, the host makes it of a copy of the result.
    """
    if isinstance(x, np.ndarray) or not isinstance(x, DeviceMatrix):
        return found if answer is None else answer(found)
    if answer is None or answer.rule is not None:
        there = found if answer is None else cast(Evaluator, machine).answer(answer, found)
        x.wait()
        return there
    of_host = np.asarray(answer(machine.to_host(found)))
    return x.on_same_device(of_host) if of_host.dtype.kind in "biuf" else of_host


def _forget() -> None:
    _kept.machines.clear()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_forget)  # a backend's threads do not exist in a forked child


def size_of(x: Table | Dataset) -> tuple[int, str | None]:
    """The number of stored values, and the GPU that holds them; None if they are in the host's memory."""
    if isinstance(x, Dataset):
        return x.n_values, x.device
    matrix = x.matrix
    if isinstance(matrix, DeviceMatrix):
        return matrix.shape[0] * matrix.shape[1], matrix.device
    return int(matrix.nnz) if hasattr(matrix, "nnz") else x.shape[0] * x.shape[1], None


def machine(params: Mapping[str, Any], values: int, place: str | None) -> Choice:
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
    reason = _of_search(params) if sharded else _why_on_the_cpu(params, automatic=False)
    if reason is not None:
        what, instead = reason
        raise DeviceError(f"device: {what} on the CPU, and no memory of a GPU is taken. Use {instead}.")


def _why_on_the_cpu(params: Mapping[str, Any], *, automatic: bool) -> tuple[str, str] | None:
    """The work that GPUs have no kernels for, and what to use instead; None if a GPU can run the recipe."""
    learner = not_on_gpus(params.get("base_learner"))
    if learner is not None:
        return f"base_learner={learner} is fitted", f"base_learner=None (trees), or of {families_on_gpus()}"
    search = _of_search(params)
    if search is not None:
        return search
    execution = params.get("execution")
    if not declared(ExecutionTraits, execution).has_workers:
        return None
    return _why_of_workers(params, execution, automatic=automatic)


def _why_of_workers(params: Mapping[str, Any], execution: Any, *, automatic: bool) -> tuple[str, str] | None:
    """The same for several workers."""
    if params.get("base_learner") is not None:
        return "base learners other than trees are fitted by several workers", "execution=None"
    if not in_process(execution):
        return "trees of workers in other processes are built", "engine='threads', a stream for each worker"
    if automatic:
        return "several workers use several cores", "device='cuda'"
    return None


def _of_search(params: Mapping[str, Any]) -> tuple[str, str] | None:
    """The same of the search for splits."""
    if declared(SelectionTraits, params.get("learners")).keeps_gains:
        return "gains of past rounds choose the learners", "gb.CyclicGroups(1)"
    if params.get("feature_costs") is not None:
        return "trees with feature costs are grown", "feature_costs=None"
    return None if params.get("forced_splits") is None else ("forced splits are made", "forced_splits=None")


def backend_of(choice: Choice, threads: int, recipe: Recipe, rows: Any, cuts: Cuts, watched: int = 0) -> Backend:
    """The backend of a fit. The first small fits on a machine are NumPy's: see ``first_fits``.

    rows: (n, d) numbers, or the Dataset that has them. watched: number of values of metrics in a round.
    """
    by_numpy = by_numpy_first(threads, recipe, rows, cuts, watched) if choice.name == "cpu" else None
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
