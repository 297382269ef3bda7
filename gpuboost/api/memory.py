"""``estimate_memory``: the GPU memory of a fit, without a fit and without a GPU."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from gpuboost import losses
from gpuboost.api.base import GradientBoosting
from gpuboost.backends.cuda.device.dry_run import DryRun
from gpuboost.backends.cuda.device.gpus import open_gpu
from gpuboost.backends.devices import choose
from gpuboost.data.cuts import check_max_bins
from gpuboost.data.row_metadata import RowMetadata
from gpuboost.errors import DeviceError, RecipeError, shown
from gpuboost.losses.protocol import Loss, is_list_loss
from gpuboost.recipe import Recipe
from gpuboost.training.constraints.by_column import ByColumn
from gpuboost.training.constraints.interactions import of_size
from gpuboost.training.constraints.monotone import constrains
from gpuboost.training.memory.encoded import encoded_features
from gpuboost.training.memory.estimate import MemoryEstimate, training_memory
from gpuboost.training.memory.watched import Watching, eval_set_of
from gpuboost.training.monitoring import metrics_of
from gpuboost.training.parameters.assembly import recipe_from
from gpuboost.training.parameters.base_learners import with_numbers
from gpuboost.training.parameters.values import integer
from gpuboost.training.placement.devices import check_kernels, check_losses
from gpuboost.training.targets import of_columns

SM_COUNT = 132  # of an H100 or H200: what is assumed where there is no GPU to ask
MOST_ROWS = 2**31 - 1  # of a table on a GPU, which numbers rows by 32 bits
MOST_OUTPUTS = 65_535  # of a model on a GPU, whose grids have no more blocks in their second direction

QUERY = 100  # rows of a query, where nothing is said of queries


def estimate_memory(
    n_rows: int,
    n_features: int,
    estimator: Any = None,
    *,
    n_classes: int | None = None,
    n_outputs: int | None = None,
    weighted: bool = False,
    eval_rows: int = 0,
    eval_weighted: bool = False,
    n_queries: int | None = None,
    categories: Sequence[int] | None = None,
    **params: Any,
) -> MemoryEstimate:
    """The memory of a GPU that a fit takes, without a fit and without a GPU.

    The driver of the CUDA backend is run on these sizes with nothing computed, so the figures are what it allocates.
    Every numeric feature is taken to have ``max_bins`` bins: data with fewer take less. The breakdown is that of the
    moment when most memory is in use.

    Parameters
    ----------
    n_rows, n_features : int
    estimator : estimator, optional
        Whose parameters count; ``params`` take precedence. None: a regressor of default parameters, or a classifier if
        ``n_classes`` is given.
    n_classes : int, optional
    n_outputs : int, optional
        Columns of y, if there are several.
    weighted : bool
        Whether rows have weights that are not all 1.
    eval_rows : int
        Rows of all eval sets together, as those of one. The memory of their metrics counts too: of ``eval_metric``,
        one of ``params``, or of the metric that the loss has by default.
    eval_weighted : bool
        Whether eval sets have weights that are not all 1.
    n_queries : int, optional
        Of a ranker, each of as many rows; None: one for every hundred rows.
    categories : sequence of int, optional
        Number of categories of each categorical column, which are the first ones; None: all features are numeric.
        ``categorical_encoding``, one of ``params``, says what they become. Ordered target statistics need memory before
        the training: that of rows in the host's memory, of float64, is meant. A fit without so much computes them on
        the CPU.
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
        If a GPU has no kernels for it, as for a loss that is not arithmetic, or for ``feature_costs``.
    """
    n, d = integer("n_rows", n_rows, 1, MOST_ROWS), integer("n_features", n_features, 1)
    watched = integer("eval_rows", eval_rows, 0, MOST_ROWS)
    queries = integer("n_queries", -(-n // QUERY) if n_queries is None else n_queries, 1)
    classes = None if n_classes is None else integer("n_classes", n_classes, 2, MOST_OUTPUTS)
    known_params = _parameters(estimator, classes, params)
    check_max_bins(known_params["max_bins"])
    loss = _loss(known_params["loss"], classes)
    if n_outputs is not None:
        loss = of_columns(loss, integer("n_outputs", n_outputs, 2, MOST_OUTPUTS))
    runtime = DryRun(_sm_count(known_params["device"]))
    cuts, recipe = encoded_features(
        known_params, _recipe(known_params, loss, n, d), n, d, _categories(categories, d), runtime
    )
    start = np.arange(queries + 1, dtype=np.int64) * n // queries if is_list_loss(loss) else None
    rows = replace(RowMetadata.of(n, np.linspace(0.5, 1.5, n) if weighted else None), query_start=start)
    watching = Watching((), metrics_of(known_params["eval_metric"], loss, known_params.get("eval_at")))
    if watched:
        made = eval_set_of(watched, loss, weighted=eval_weighted, rows_of_query=max(1, n // queries))
        watching = replace(watching, sets=(made,))
    return training_memory(recipe, cuts, runtime, rows, watching)


def _categories(counts: Any, d: int) -> tuple[int, ...]:
    """Numbers of categories of the first columns. Raises RecipeError if they are none, or more than d."""
    listed = () if counts is None else counts
    if isinstance(listed, str) or not isinstance(listed, (Sequence, np.ndarray)) or len(listed) > d:
        raise RecipeError(f"categories: must be a list of at most {d} whole numbers, or None; got {shown(counts)}.")
    return tuple(integer("categories", m, 1, MOST_ROWS) for m in listed)


def _parameters(estimator: Any, n_classes: int | None, params: Mapping[str, Any]) -> dict[str, Any]:
    """Parameters of the estimator, with changes."""
    from gpuboost.api.classifier import GradientBoostingClassifier
    from gpuboost.api.regressor import GradientBoostingRegressor

    if estimator is None:
        estimator = GradientBoostingRegressor() if n_classes is None else GradientBoostingClassifier()
    if isinstance(estimator, type) or not isinstance(estimator, GradientBoosting):
        raise RecipeError(f"estimator: must be None, or an estimator of gpuboost; got {shown(estimator)}.")
    known: dict[str, Any] = estimator.get_params(deep=False)
    for name in params:
        if name not in known:
            raise RecipeError(f"{name}: {type(estimator).__name__} has no such parameter.")
    return known | dict(params)


def _recipe(params: Mapping[str, Any], loss: Loss, n: int, d: int) -> Recipe:
    """The recipe of n rows and d features. Raises DeviceError if a GPU cannot run it."""
    held = (1,) * d if constrains(params["monotonic_cst"]) else None  # which way, and how many, changes no size
    by_column = ByColumn(held, of_size(params["interaction_cst"], d))
    recipe = with_numbers(recipe_from(params, loss, n, by_column=by_column), None)
    check_kernels(params)
    check_losses(recipe)
    return recipe


def _loss(loss: Any, n_classes: int | None) -> Loss:
    if loss == "logistic" and n_classes is not None and n_classes > 2:
        return losses.Softmax(n_classes)
    return losses.get(loss, n_classes)


def _sm_count(device: str) -> int:
    """Multiprocessors of the GPU that ``device`` names, or of an H100 if it is not there."""
    try:
        name = choose("cuda" if device in ("auto", "cpu") else device).name
        return open_gpu(name).sm_count
    except DeviceError:
        return SM_COUNT
