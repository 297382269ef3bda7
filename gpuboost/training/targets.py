"""The target of a fit: float64 values, the loss, and the weights and queries of the rows."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace
from functools import partial
from numbers import Real
from typing import Any, cast

import numpy as np
from numpy.typing import NDArray
from sklearn.utils.multiclass import check_classification_targets

from gpuboost import losses
from gpuboost.arguments import as_float, is_one_of
from gpuboost.data.labels import whole_labels
from gpuboost.data.queries import check_query_weight
from gpuboost.data.row_metadata import RowMetadata
from gpuboost.data.targets import as_numbers, signed_times
from gpuboost.errors import InputError, RecipeError, shown
from gpuboost.losses.base import facts_of
from gpuboost.losses.per_output import MULTILABEL, OneOutputLoss, PerOutput
from gpuboost.losses.protocol import Loss, debiases, is_list_loss, needs_pairs
from gpuboost.losses.registry import may_have_columns
from gpuboost.losses.start_values import needs_one_score
from gpuboost.records import dataclass
from gpuboost.training.rows import LabelledRows

Floats = NDArray[np.float64]

_SIBLINGS = {
    "logistic": " For shares, numbers from 0 to 1, there is loss='cross_entropy'.",
    "cross_entropy": " For classes there is loss='logistic'.",
}
"""Name of a loss -> end of the error that it is for another kind of target"""


@dataclass(frozen=True, slots=True)
class TrainingTarget:
    """The target of a fit."""

    loss: Loss
    y: Floats  # (n,), or (n, k) of k targets, as the loss expects it
    rows: RowMetadata  # weights include class weights; queries of rankings only
    classes: NDArray[Any] | None  # (K,) sorted; None for regression
    encode: Callable[[NDArray[Any]], Floats]  # other targets of the same kind; raises InputError


def regression(loss: Any, rows: LabelledRows) -> TrainingTarget:
    """Target of a regression.

    Raises
    ------
    RecipeError
        If the loss is for classes.
    InputError
        If the target does not hold numbers, or some are outside the loss's domain.
    """
    loss_object = _regression_loss(loss)
    loss_object = of_columns(loss_object, rows.y.shape[1]) if rows.y.ndim == 2 else loss_object

    encode = partial(_checked_numbers, loss_object)
    return TrainingTarget(loss_object, encode(rows.y), _without_queries(rows.metadata), None, encode)


def ranking(loss: Any, rows: LabelledRows) -> TrainingTarget:
    """Target of a ranking: relevance labels of documents, query by query.

    Raises
    ------
    RecipeError
        If the loss is not for lists.
    InputError
        If no queries are given, the rows of one differ in weight, or labels are outside the loss's domain.
    """
    loss_object = losses.get(loss)
    if not is_list_loss(loss_object):
        raise RecipeError(
            f"loss: {loss_object.name!r} is not for rankings; use 'lambdamart' or 'pairwise_logistic', or "
            "GradientBoostingRegressor."
        )
    if rows.y.ndim == 2:
        raise InputError(f"y: a ranking has one label for each row; got shape {rows.y.shape}.")
    checked_queries(rows.metadata)
    encode = partial(_checked_numbers, loss_object)
    return TrainingTarget(loss_object, encode(rows.y), rows.metadata, None, encode)


def _checked_numbers(loss: Loss, y: NDArray[Any]) -> Floats:
    """y as float64. Raises InputError if it does not hold numbers, or some are outside the loss's domain."""
    values = signed_times(y) if facts_of(loss).censored_target else as_numbers(y)
    loss.check_target(values)
    return values


def checked_queries(rows: RowMetadata) -> NDArray[Any]:
    """(n,) query number of each row. Raises InputError if none is given, or the rows of one differ in weight."""
    if rows.group is None:
        raise InputError(
            "group: a ranker must know which rows belong together; none is given. Pass group=, the query id of each "
            "row or the sizes of the queries, or a Dataset with one."
        )
    check_query_weight(rows.weight, rows.group)
    return rows.group


def check_facts_of_rows(target: TrainingTarget) -> None:
    """Raise InputError if the loss needs pairs and there are none, RecipeError if it has no use for given facts."""
    has_pairs, needed = target.rows.pairs is not None, needs_pairs(target.loss)
    if needed and not has_pairs:
        raise InputError(
            f"pairs: loss {target.loss.name!r} learns from pairs of rows, and none are given; pass pairs=, "
            "or use loss='pairwise_logistic', which makes them of the labels."
        )
    if has_pairs and not needed:
        raise RecipeError(
            f"loss: {target.loss.name!r} does not look at given pairs; use loss='pair_logit', or leave pairs out."
        )
    if target.rows.position is not None and not debiases(target.loss):
        raise RecipeError(
            f"loss: {target.loss.name!r} does not look at positions; use loss='unbiased_lambdamart', or leave position "
            "out."
        )


def _without_queries(rows: RowMetadata) -> RowMetadata:
    return rows if rows.group is None else replace(rows, group=None, query_start=None)


def classification(loss: Any, class_weight: Any, rows: LabelledRows) -> TrainingTarget:
    """Target of a classification: labels of any kind, as 0 .. K - 1 in sorted order; or (n, k) of 0 and 1.

    Raises
    ------
    RecipeError
        If the loss is not for that many classes, or ``class_weight`` does not fit them.
    InputError
        If the target is continuous, or holds fewer than two classes.
    """
    if rows.y.ndim == 2:
        return _labels(of_columns(_label_loss(loss), rows.y.shape[1]), class_weight, rows)
    classes, codes = _coded(rows.y)
    totals = np.bincount(codes, rows.metadata.weight, len(classes))
    if (totals > 0.0).sum() < 2:
        raise InputError(
            "y: a classifier needs two classes or more; the rows of positive weight hold 1 class, "
            f"{classes[totals.argmax()]}. Check how the rows were chosen."
        )
    loss_object = _classification_loss(loss, len(classes))

    metadata = _with_class_weight(_without_queries(rows.metadata), class_weight, classes, codes)
    if class_weight is not None:
        totals = np.bincount(codes, metadata.weight, len(classes))
        if (totals > 0.0).sum() < 2:
            raise RecipeError(
                f"class_weight: must leave two classes or more at a weight above 0; only {classes[totals.argmax()]} is "
                "left. Give another class a weight."
            )
    y = rows.y if _are_places(rows.y, classes) else codes.astype(np.float64)
    return TrainingTarget(loss_object, y, metadata, classes, partial(_places, classes))


def _are_places(y: NDArray[Any], classes: NDArray[Any]) -> bool:
    """True if the labels are the float64 numbers 0 .. K - 1 already, so that no copy of them is needed."""
    plain = y.dtype == np.float64 and y.flags.c_contiguous and np.array_equal(classes, np.arange(len(classes)))
    return plain and not np.signbit(y).any()  # a negative zero is another number to the last bit


def known_classes(loss: Loss, class_weight: Any, classes: NDArray[Any], rows: LabelledRows) -> TrainingTarget:
    """Target of a classification by the classes of a fitted model, of which the rows may hold some.

    Raises
    ------
    RecipeError, InputError
        As ``classification``; InputError for a label that is none of the classes.
    """
    if loss.task == MULTILABEL:
        return _labels(loss, class_weight, rows)
    y = _places(classes, rows.y)
    metadata = _with_class_weight(_without_queries(rows.metadata), class_weight, classes, y.astype(np.intp))
    return TrainingTarget(loss, y, metadata, classes, partial(_places, classes))


def _labels(loss: Loss, class_weight: Any, rows: LabelledRows) -> TrainingTarget:
    """Target of several labels for each row, (n, k) of 0 and 1, which ``classes`` numbers."""
    if class_weight is not None:
        raise RecipeError(
            f"class_weight: it weighs the rows of a class, and rows of several labels are in many; got "
            f"{shown(class_weight)}. Use sample_weight."
        )
    classes = np.arange(loss.n_outputs)
    return TrainingTarget(
        loss, _indicator(rows.y), _without_queries(rows.metadata), classes, partial(_encoded_labels, loss)
    )


def _encoded_labels(loss: Loss, y: NDArray[Any]) -> Floats:
    values = _indicator(y)
    loss.check_target(values)
    return values


def _indicator(y: NDArray[Any]) -> Floats:
    """(n, k) float64. Raises InputError unless all are 0 or 1."""
    values = as_numbers(y)
    wrong = (values != 0.0) & (values != 1.0)
    if wrong.any():
        row = int(np.argmax(wrong.reshape(len(wrong), -1).any(axis=1)))
        raise InputError(
            f"y: of several columns each says with 0 or 1 if a label holds; row {row} holds {y[row]}. For columns of "
            "more than two classes fit a classifier for each."
        )
    return values


def of_columns(loss: Loss, columns: int) -> Loss:
    """The sum of the loss over so many columns of y, 2 or more. Raises RecipeError if it is of another kind."""
    if isinstance(loss, PerOutput):
        return loss
    if not may_have_columns(loss):
        raise RecipeError(
            f"loss: y has {columns} columns, and loss {loss.name!r} is not of one target and one score. Use one of "
            "this library's losses that are, such as 'squared_error', or fit a model for each column."
        )
    return PerOutput(cast(OneOutputLoss, loss), columns)


def takes_columns(loss: Loss, start: Any) -> bool:
    """True if y may have several columns."""
    return may_have_columns(loss) and not needs_one_score(start)


def _places(classes: NDArray[Any], y: NDArray[Any]) -> Floats:
    """(n,) float64 number of each label among the sorted classes. Raises InputError for a label that is none."""
    try:
        places = np.searchsorted(classes, y).clip(max=len(classes) - 1)
    except TypeError as error:  # text beside numbers
        raise InputError(f"y: labels must be of the kind of the training data's, {classes.dtype}; {error}.") from None
    unknown = classes[places] != y
    if np.any(unknown):
        row = int(np.argmax(unknown))
        raise InputError(f"y: only classes of the training data can be judged; row {row} holds {y[row]}.")
    return places.astype(np.float64)


def _with_class_weight(
    rows: RowMetadata, class_weight: Any, classes: NDArray[Any], codes: NDArray[np.intp]
) -> RowMetadata:
    if class_weight is None:
        return rows
    return RowMetadata.of(rows.n_rows, _weighted(rows.weight, class_weight, classes, codes), offset=rows.offset)


def _coded(y: NDArray[Any]) -> tuple[NDArray[Any], NDArray[np.intp]]:
    """(K,) sorted classes, and (n,) the index of each label among them."""
    is_bytes = y.dtype.kind == "S" or (y.dtype.kind == "O" and any(isinstance(label, bytes) for label in y.tolist()))
    if is_bytes or y.dtype.kind in "mM" or (y.dtype.kind == "f" and y.dtype.itemsize > 8):
        got = "bytes" if is_bytes else y.dtype
        raise InputError(
            f"y: labels are text or numbers of up to 64 bits, which a model file holds; got {got}. Give text of "
            "them: y.astype(str)."
        )
    coded = whole_labels(y)
    if coded is not None and 2 * len(coded[0]) <= len(y):  # of more classes than that, scikit-learn has a warning
        return coded
    try:
        check_classification_targets(y)
    except ValueError as error:  # scikit-learn's words, which its own checks look for
        kinds = sorted({type(label).__name__ for label in y.tolist()}) if y.dtype.kind == "O" else []
        several = f"Unknown label type: labels of one kind are needed; got {' and '.join(kinds)}."
        raise InputError(f"y: {several if len(kinds) > 1 else error}") from None
    return np.unique(y, return_inverse=True) if coded is None else coded


def _regression_loss(loss: Any) -> Loss:
    if is_one_of(loss, ("softmax",)):
        raise RecipeError("loss: 'softmax' is for classes; use GradientBoostingClassifier.")
    loss_object = losses.get(loss)
    if is_list_loss(loss_object):
        raise RecipeError(f"loss: {loss_object.name!r} is for rankings; use GradientBoostingRanker.")
    if loss_object.task not in ("regression", "any"):
        rule = f"loss: {loss_object.name!r} is for classes; use GradientBoostingClassifier."
        raise RecipeError(rule + _SIBLINGS.get(loss_object.name, ""))
    return loss_object


def _label_loss(loss: Any) -> Loss:
    """The loss of one of several labels."""
    if is_one_of(loss, ("softmax",)):
        raise RecipeError("loss: 'softmax' is for one label of several; y has columns, each a label. Use 'logistic'.")
    return _classification_loss(loss, 2)


def _classification_loss(loss: Any, n_classes: int) -> Loss:
    if is_one_of(loss, ("logistic",)) and n_classes > 2:
        return losses.Softmax(n_classes)
    loss_object = losses.get(loss, n_classes)
    if is_list_loss(loss_object):
        raise RecipeError(f"loss: {loss_object.name!r} is for rankings; use GradientBoostingRanker.")
    if loss_object.task == "regression":
        rule = f"loss: {loss_object.name!r} is for numbers; use GradientBoostingRegressor."
        raise RecipeError(rule + _SIBLINGS.get(loss_object.name, ""))
    max_classes = 2 if loss_object.n_outputs == 1 else loss_object.n_outputs
    if n_classes != max_classes:
        rule = f"loss: {loss_object.name!r} is for {max_classes} classes, and y holds {n_classes}. Use loss='softmax'."
        if max_classes == 2:  # in the words that scikit-learn's checks look for
            rule += " Only binary classification is supported."
        raise RecipeError(rule)
    return loss_object


def _weighted(weight: Floats | None, class_weight: Any, classes: NDArray[Any], codes: NDArray[np.intp]) -> Floats:
    """Row weights times class weights. "balanced" gives every class the same total."""
    rows = np.ones(len(codes)) if weight is None else weight
    if isinstance(class_weight, str) and class_weight == "balanced":
        totals = np.bincount(codes, rows, len(classes))
        with np.errstate(divide="ignore"):
            factors = np.where(totals > 0.0, rows.sum() / (len(classes) * totals), 0.0)
    elif isinstance(class_weight, Mapping):
        factors = _given_weights(class_weight, classes)
    else:
        raise RecipeError(f"class_weight: must be None, 'balanced' or a mapping from classes; got {class_weight!r}.")
    product: Floats = rows * factors[codes]
    if not product.any():
        raise RecipeError("class_weight: together with sample_weight it leaves every row at weight zero.")
    return product


def _given_weights(class_weight: Mapping[Any, Any], classes: NDArray[Any]) -> Floats:
    """(K,) weight of each class; 1 for classes that the mapping leaves out."""
    known = classes.tolist()
    unknown = [label for label in class_weight if label not in known]
    if unknown:
        raise RecipeError(f"class_weight: {unknown[0]!r} is none of the classes {known}.")
    weights = [class_weight.get(label, 1.0) for label in known]
    real = [isinstance(weight, Real) and not isinstance(weight, bool) for weight in weights]
    factors = np.array([as_float(weight) for weight in weights]) if all(real) else np.array([np.nan])
    if not (np.isfinite(factors) & (factors >= 0.0)).all():
        raise RecipeError(
            f"class_weight: weights must be finite, 0 or more; got {{{', '.join(map(_pair, class_weight.items()))}}}."
        )
    return factors


def _pair(item: tuple[Any, Any]) -> str:
    return f"{item[0]!r}: {shown(item[1])}"
