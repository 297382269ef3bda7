"""How much memory of a GPU a training takes, before it begins."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, cast

import numpy as np
from numpy.typing import NDArray

from gpuboost import components, losses
from gpuboost.api import parameters
from gpuboost.api.base_learners import not_on_gpus, with_numbers
from gpuboost.api.directions import constrains
from gpuboost.api.purposes import OF_ROWS, PURPOSES, Labelled
from gpuboost.backends.cuda.gpus import open_gpu
from gpuboost.backends.cuda.rehearsal import CountedArray, Rehearsal
from gpuboost.backends.devices import choose
from gpuboost.backends.protocol import Backend
from gpuboost.boosting import boost
from gpuboost.data.cuts import check_max_bins
from gpuboost.data.queries import query_start
from gpuboost.data.weights import kept_rows, split_weights
from gpuboost.errors import DeviceError, RecipeError
from gpuboost.execution.in_turn import in_turn
from gpuboost.fitting.competition import Competition
from gpuboost.fitting.on_paper import OnPaper
from gpuboost.losses.protocol import Loss, is_list_loss
from gpuboost.recipe import Recipe
from gpuboost.types import (
    Array,
    Cuts,
    Ensemble,
    Progress,
    TrainingSet,
)

if TYPE_CHECKING:  # it imports kernels, which take a while
    from gpuboost.backends.cuda.backend import Cuda

SM_COUNT = 132  # of an H100 or H200: what is assumed where there is no GPU to ask
QUERY = 100  # rows of a query, where nothing is said of queries
ROUNDS = 3  # after two, everything that a training holds is there


@dataclass(frozen=True, slots=True)
class MemoryEstimate:
    """Bytes of device memory, to the byte what a training asks for. CuPy rounds every array up to 512 bytes."""

    n_rows: int
    n_features: int
    breakdown: dict[str, int]  # by purpose

    @property
    def total(self) -> int:
        """At the moment when it is the most."""
        return sum(self.breakdown.values())

    @property
    def bytes_per_row(self) -> float:
        """Of what grows with the rows."""
        return sum(self.breakdown[purpose] for purpose in OF_ROWS) / self.n_rows

    def __str__(self) -> str:
        lines = [f"{self.n_rows:,} rows x {self.n_features:,} features: {_size(self.total)} on the device"]
        for purpose, size in self.breakdown.items():
            if size:
                lines.append(f"  {_size(size):>10}  {PURPOSES[purpose]}")
        return "\n".join([*lines, f"  {self.bytes_per_row:.1f} bytes a row"])


def estimate_memory(
    n_rows: int,
    n_features: int,
    estimator: Any = None,
    *,
    n_classes: int | None = None,
    weighted: bool = False,
    eval_rows: int = 0,
    n_queries: int | None = None,
    **params: Any,
) -> MemoryEstimate:
    """The memory of a GPU that a fit takes, without a fit and without a GPU.

    The driver of the CUDA backend is run on these sizes with nothing computed, so the figures are what it allocates.
    Every feature is taken to be numeric and to have ``max_bins`` bins: data with fewer take less.

    Parameters
    ----------
    n_rows, n_features : int
    estimator : estimator, optional
        Whose parameters count; ``params`` take precedence. None: a regressor of default parameters, or a classifier if
        ``n_classes`` is given.
    n_classes : int, optional
    weighted : bool
        Whether rows have weights that are not all 1.
    eval_rows : int
        Rows of all eval sets together.
    n_queries : int, optional
        Of a ranker, each of as many rows; None: one for every hundred rows.
    **params
        Parameters of the estimator.

    Returns
    -------
    MemoryEstimate
        ``breakdown``, ``total``, ``bytes_per_row``; printing it shows a table.

    Raises
    ------
    RecipeError
        If a number or a parameter is out of its range.
    DeviceError
        If a GPU cannot do it, as with a loss that is no arithmetic.
    """
    n, d = parameters.integer("n_rows", n_rows, 1), parameters.integer("n_features", n_features, 1)
    watched = parameters.integer("eval_rows", eval_rows, 0)
    queries = parameters.integer("n_queries", -(-n // QUERY) if n_queries is None else n_queries, 1)
    classes = None if n_classes is None else parameters.integer("n_classes", n_classes, 2)
    given = _parameters(estimator, classes, params)
    check_max_bins(given["max_bins"])
    loss = _loss(given["loss"], classes)
    held = (1,) * d if constrains(given["monotonic_cst"]) else None  # which way, and how many, changes no size
    recipe = with_numbers(parameters.recipe(given, loss, n, directions=held), None)
    if (learner := not_on_gpus(given["base_learner"])) is not None:
        raise DeviceError(f"base_learner: {learner} is fitted on the CPU, and takes no memory of a GPU.")
    thresholds = np.arange(given["max_bins"] - 1, dtype=np.float64)
    cuts = Cuts((thresholds,) * d, (None,) * d)
    weight = np.linspace(0.5, 1.5, n) if weighted else None
    lists = np.arange(queries + 1, dtype=np.int64) * n // queries if is_list_loss(loss) else None
    return rehearsed(recipe, n, cuts, _sm_count(given["device"]), weight, (watched,) if watched else (), lists)


def check_room(
    device: str, recipe: Recipe, n: int, cuts: Cuts, weight: NDArray[np.float64] | None, eval_rows: tuple[int, ...],
    group: NDArray[Any] | None = None,
) -> None:  # fmt: skip
    """Raise DeviceError, with the numbers, if the GPU has not enough free memory for the training."""
    runtime = open_gpu(device)
    kept = kept_rows(weight)
    if kept is not None and weight is not None:
        n, weight, group = len(kept), weight[kept], None if group is None else group[kept]
    lists = None if group is None else query_start(group)
    fewer = "with fewer workers, " if hasattr(recipe.execution, "leaf_values") else ""
    needed, free = rehearsed(recipe, n, cuts, runtime.sm_count, weight, eval_rows, lists), runtime.free_memory
    if needed.total > free:
        raise DeviceError(
            f"device: {device} has {_size(free)} free, and the training takes {_size(needed.total)} "
            f"({needed.bytes_per_row:.0f} bytes for each of {n:,} rows; gpuboost.estimate_memory says for what). "
            f"Train on fewer rows or features, {fewer}with a smaller max_depth or max_bins, or on device='cpu'."
        )


def rehearsed(
    recipe: Recipe,
    n: int,
    cuts: Cuts,
    sm_count: int,
    weight: NDArray[np.float64] | None = None,
    eval_rows: tuple[int, ...] = (),
    lists: NDArray[np.int64] | None = None,
) -> MemoryEstimate:
    """What the driver allocates for a training of this recipe on n rows cut like this; ``lists``: ``query_start``."""
    from gpuboost.backends.cuda.backend import Cuda

    runtime = Rehearsal(sm_count)
    machine = Cuda(runtime)
    backend = Labelled(machine, runtime)
    bins = backend.quantise(CountedArray((n, cuts.n_columns), np.float32), cuts)
    with runtime.purpose("labels"):
        data = TrainingSet(bins, cuts, runtime.empty(n, np.float64), *split_weights(weight), lists)
    with runtime.purpose("eval sets"):
        watched = [_watched(machine, runtime, rows, recipe.loss.n_outputs, cuts) for rows in eval_rows]

    def watch(progress: Progress) -> bool:
        with runtime.purpose("eval sets"):
            for rows, scores in watched:
                for one in progress.trees:
                    components.add(machine, scores, one, progress.factor, rows)
                if lists is None:  # what rankings are judged by is computed by the host
                    machine.loss_value(recipe.loss, scores, rows.y, None)
        return False

    if isinstance(recipe.base_learner, Competition):
        recipe = replace(recipe, base_learner=OnPaper(recipe.base_learner.families))
    begin = Ensemble(np.zeros(recipe.loss.n_outputs), cuts)
    few = replace(recipe, rounds=min(recipe.rounds, ROUNDS), execution=in_turn(recipe.execution))
    boost(few, data, cast(Backend, backend), watch=watch, resume=begin)
    return MemoryEstimate(n, cuts.n_features, backend.breakdown(data))


def _watched(machine: Cuda, runtime: Rehearsal, n: int, k: int, cuts: Cuts) -> tuple[TrainingSet, Array]:
    rows = TrainingSet(
        machine.quantise(CountedArray((n, cuts.n_columns), np.float32), cuts), cuts, runtime.empty(n, np.float64)
    )
    return rows, machine.start(rows, np.zeros(k))


def _parameters(estimator: Any, n_classes: int | None, params: Mapping[str, Any]) -> dict[str, Any]:
    """Of the estimator, changed as asked."""
    from gpuboost.api.classifier import GradientBoostingClassifier
    from gpuboost.api.regressor import GradientBoostingRegressor

    if estimator is None:
        estimator = GradientBoostingRegressor() if n_classes is None else GradientBoostingClassifier()
    known: dict[str, Any] = estimator.get_params(deep=False)
    for name in params:
        if name not in known:
            raise RecipeError(f"{name}: {type(estimator).__name__} has no such parameter.")
    return known | dict(params)


def _loss(given: Any, n_classes: int | None) -> Loss:
    if given == "logistic" and n_classes is not None and n_classes > 2:
        return losses.Softmax(n_classes)
    return losses.get(given, n_classes)


def _sm_count(device: str) -> int:
    """Of the GPU that ``device`` names, if it is there."""
    try:
        name = choose("cuda" if device in ("auto", "cpu") else device).name
        return open_gpu(name).sm_count
    except DeviceError:
        return SM_COUNT


def _size(n: int) -> str:
    for unit, factor in (("GiB", 2**30), ("MiB", 2**20), ("KiB", 2**10)):
        if n >= factor:
            return f"{n / factor:.1f} {unit}"
    return f"{n} B"
