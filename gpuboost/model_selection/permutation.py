"""Permutation importance of held-out rows."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.utils.validation import check_is_fitted

from gpuboost.api.base import GradientBoosting
from gpuboost.api.offsets import offset_of
from gpuboost.data.dataset import Dataset
from gpuboost.data.frames import collected
from gpuboost.data.queries import query_start
from gpuboost.data.query_column import without_group
from gpuboost.data.tables import as_table
from gpuboost.errors import GpuBoostError, RecipeError, shown
from gpuboost.losses.protocol import is_list_loss
from gpuboost.metrics import Metric
from gpuboost.model.used_columns import used_columns
from gpuboost.model_selection.model_check import check_model
from gpuboost.training.monitoring import metrics_of
from gpuboost.training.parameters.values import integer
from gpuboost.training.placement.device_arrays import on_host
from gpuboost.training.rows import LabelledRows, check_columns, labelled, labelled_dataset
from gpuboost.training.targets import known_classes, ranking, regression

Floats = NDArray[np.float64]

MOST_REPEATS = 10_000


@dataclass(frozen=True, slots=True, eq=False)
class PermutationImportance:
    """The result of ``permutation_importance``; its first three fields have the names that scikit-learn gives them."""

    importances_mean: Floats  # (d,)
    importances_std: Floats  # (d,) over the repeats
    importances: Floats  # (d, n_repeats) how much worse the metric is without the column
    names: tuple[str, ...]  # (d,) of the columns; their numbers if the model has no names
    metric: str
    score: float  # of the rows as they are

    def __str__(self) -> str:
        order = np.argsort(-self.importances_mean, kind="stable")
        wide = max(map(len, self.names))
        lines = [f"{self.metric} {self.score:.6g}; worse by, if a column is permuted:"]
        lines += [
            f"  {self.names[f]:<{wide}}  {self.importances_mean[f]:.6g} +- {self.importances_std[f]:.2g}" for f in order
        ]
        return "\n".join(lines)


def permutation_importance(
    model: Any,
    X: Any,
    y: Any = None,
    sample_weight: Any = None,
    *,
    group: Any = None,
    init_score: Any = None,
    metric: Any = None,
    n_repeats: int = 5,
    random_state: int = 0,
) -> PermutationImportance:
    """Loss of a metric of held-out rows when one column of them is permuted (Breiman 2001).

    As ``sklearn.inspection.permutation_importance``, with the metrics, weights, queries and offsets of this library
    (CatBoost: ``LossFunctionChange`` is of the same use). A column that no tree is split by costs nothing. All columns
    are permuted alike in one repeat.

    Parameters
    ----------
    model : fitted estimator
    X : rows that the model was not fitted to, as for ``predict``, or a ``gb.Dataset``
    y : (n,) target, unless the Dataset holds it
    sample_weight, group, init_score : as for ``fit``, optional
    metric : str, metric or function, optional
        As ``eval_metric``; None is the model's first one.
    n_repeats : int, 1 to 10,000
    random_state : int
        Seed of the permutations.

    Raises
    ------
    RecipeError
        If a parameter is out of its range, or the model is no fitted estimator of gpuboost.
    InputError
        If the rows do not fit the model, or the metric does not fit its loss.
    """
    check_model(model)
    check_is_fitted(model)
    integer("n_repeats", n_repeats, 1, MOST_REPEATS)
    integer("random_state", random_state, 0, 2**32 - 1)
    rows = _labelled(X, y, sample_weight, group, init_score)
    check_columns(rows.y, model.loss_)
    measured = _Measured(model, rows, metric)
    score = measured(measured.rows)
    sign = 1.0 if measured.metric.higher_is_better else -1.0
    importances = np.zeros((model.n_features_in_, n_repeats))
    used = used_columns(model.ensemble_, [encoded.columns for encoded in model.columns_.layout])
    random = np.random.default_rng(random_state)
    for repeat in range(n_repeats):
        for column, x in _permuted(measured.rows, used, random.permutation(len(rows.y))):
            importances[column, repeat] = sign * (score - measured(x))
    names = getattr(model, "feature_names_in_", None)
    named = tuple(map(str, range(model.n_features_in_) if names is None else names))
    spread = importances.std(axis=1)
    return PermutationImportance(importances.mean(axis=1), spread, importances, named, measured.metric.name, score)


class _Measured:
    """The metric of a model, of rows with other columns than those that it was made with."""

    def __init__(self, model: GradientBoosting, rows: LabelledRows, metric: Any) -> None:
        _, self._machine = model._rows_and_backend(rows.x)  # refuses what does not fit the model
        columns = replace(model.columns_, statistics=None)
        self.rows = rows.x.x[:] if isinstance(rows.x, Dataset) else columns.encode(rows.x)
        self._model, self._loss, self._weight = model, model.loss_, rows.metadata.weight
        self._y = _target(model, rows)
        self.metric = _metric(model, metric)
        group = rows.metadata.group
        self._start = query_start(group) if group is not None and is_list_loss(self._loss) else None
        offsets = None if rows.metadata.offset is None else rows.metadata.offset.T
        n, k = len(rows.y), model.ensemble_.n_outputs
        self._offset = offset_of(None, offsets, n, k, warn_of_none=model._has_offsets())

    def __call__(self, rows: Any) -> float:
        """The metric of rows (n, d), categories as codes."""
        x = self._model.columns_.with_statistics(rows)
        scores = self._machine.predict(self._model.ensemble_, x)
        scores = scores if self._offset is None else scores + self._offset
        return self.metric(self._y, scores, self._weight, self._loss, self._start)


def _metric(model: GradientBoosting, asked: Any) -> Metric:
    """The metric that is asked for; the model's first one if that is None."""
    at = getattr(model, "eval_at", None)
    if asked is None:
        return metrics_of(model.eval_metric, model.loss_, at)[0]
    if isinstance(asked, (list, tuple)):
        raise RecipeError(f"metric: must be one metric, a name or a function; got {shown(asked)}. Call it for each.")
    try:
        return metrics_of(asked, model.loss_, at)[0]
    except GpuBoostError as error:
        raise type(error)(str(error).replace("eval_metric: ", "metric: ", 1)) from None


def _target(model: GradientBoosting, rows: LabelledRows) -> Floats:
    """(n,) the target as the loss reads it."""
    if is_list_loss(model.loss_):
        return ranking(model.loss_, rows).y
    classes = getattr(model, "classes_", None)
    return (regression(model.loss_, rows) if classes is None else known_classes(model.loss_, None, classes, rows)).y


def _labelled(X: Any, y: Any, weight: Any, group: Any, offset: Any) -> LabelledRows:
    X, group = without_group(X, group)
    y, weight, offset = on_host(y), on_host(weight), on_host(offset)
    if isinstance(X, Dataset):
        return labelled_dataset(X, y, weight, group, offset)
    features = collected(on_host(X))
    return labelled(features, y, weight, as_table(features).shape[0], group, offset)


def _permuted(rows: Any, columns: list[int], order: NDArray[np.intp]) -> Iterator[tuple[int, Any]]:
    """Each column, and the rows with that column in another order; valid until the next."""
    if hasattr(rows, "tocsc"):
        from scipy.sparse import hstack

        by_column = rows.tocsc()
        for f in columns:
            yield f, hstack([by_column[:, :f], by_column[:, [f]].tocsr()[order], by_column[:, f + 1 :]], format="csr")
        return
    changed = np.array(rows)
    for f in columns:
        changed[:, f] = rows[order, f]
        yield f, changed
        changed[:, f] = rows[:, f]
