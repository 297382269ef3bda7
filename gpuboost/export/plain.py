"""The common form of all exports: scaled trees with thresholds and category codes in place of bins."""

from __future__ import annotations

import json
from dataclasses import dataclass
from importlib import import_module
from typing import Any

import numpy as np
from numpy.typing import NDArray

from gpuboost.errors import InputError
from gpuboost.losses.base import BaseLoss, Link, facts_of, stated_link
from gpuboost.losses.protocol import Loss, n_targets
from gpuboost.types import EVERY_VALUE, Cuts, Ensemble, Nodes

_PROBES = np.linspace(-4.0, 4.0, 17)  # scores
_MOST_CODE = 2**24  # integers below it are float32


@dataclass(frozen=True, slots=True)
class PlainTree:
    """x goes left at a numeric node if x <= threshold, or if it is missing and ``missing_left``.

    At a categorical one, the codes of ``listed`` go one way, and all else, what is missing included, the other.
    """

    output: int
    column: NDArray[np.int32]  # (v,) -1 at a leaf
    threshold: NDArray[np.float64]  # (v,)
    missing_left: NDArray[np.bool_]  # (v,)
    left: NDArray[np.int32]  # (v,)
    right: NDArray[np.int32]  # (v,)
    value: NDArray[np.float64]  # (v,) score of a leaf
    gain: NDArray[np.float64]  # (v,)
    rows: NDArray[np.float64]  # (v,) of the training data; a millionth where there were none, as readers divide by it
    listed: dict[int, list[int]]  # codes of each categorical node
    listed_left: dict[int, bool]  # True if they go left


@dataclass(frozen=True, slots=True)
class PlainModel:
    """score = bias + sum of trees; prediction = link(score), as the estimator predicts."""

    trees: list[PlainTree]
    bias: NDArray[np.float64]  # (k,); above 1 with link "logistic": k labels, or shares, of a row
    n_columns: int
    is_categorical: NDArray[np.bool_]  # (n_columns,)
    link: str  # "identity", "logistic", "softmax" or "log"
    classifies: bool  # True if the link makes probabilities of classes or labels
    xgboost_objective: str  # empty for the usual one of the link function
    names: list[str] | None
    classes: NDArray[Any] | None
    categories: list[list[str | int | float]] | None  # of each column, in the order of the codes; None if not known

    @property
    def notes(self) -> dict[str, str]:
        """Values that the codes of categories and classes stand for, as JSON, where a format has no field for them."""
        notes = {}
        if self.categories is not None and any(self.categories):
            listed = {str(column): values for column, values in enumerate(self.categories) if values}
            notes["gpuboost_categories"] = json.dumps(listed)
        if self.classes is not None:
            notes["gpuboost_classes"] = json.dumps(np.asarray(self.classes).tolist(), default=str)
        return notes


def ensemble_of(model: Any) -> Ensemble:
    """The ensemble of a fitted estimator, or the ensemble itself; raises InputError if it is neither."""
    ensemble = model if isinstance(model, Ensemble) else getattr(model, "ensemble_", None)
    if not isinstance(ensemble, Ensemble):
        raise InputError(f"model: a fitted gpuboost estimator or an Ensemble can be exported; got {model!r}. Fit it.")
    return ensemble


def output_label(model: Any, ensemble: Ensemble, output: int) -> Any:
    """The class of an output, or its number if the model has no classes; None for a model of one output."""
    if ensemble.n_outputs == 1:
        return None
    classes = getattr(model, "classes_", None)
    return output if classes is None else np.asarray(classes)[output].item()


def plain(model: Any) -> PlainModel:
    """The model of a fitted estimator, or of an ensemble, whose scores are then what is predicted.

    Without trees there are leaves of value 0 all the same, as readers refuse a forest without trees.

    Raises:
        InputError: if it is neither, or predicts by a function that other libraries do not have, or splits by a
            category code that float32 or an index does not hold.
    """
    ensemble = ensemble_of(model)
    if ensemble.components:
        raise InputError(
            "model: other libraries read trees; this model was made of other base learners. Those of gb.learners that "
            "add up are written by gb.export.to_table."
        )
    _refuse_offsets(model)
    _refuse_missing(model)
    if getattr(getattr(model, "columns_", None), "statistics", None) is not None:
        raise InputError(
            "model: its trees see target statistics of categories, which other libraries cannot compute from X. Save "
            "it with save_model, or fit it with categorical_encoding='partition'."
        )
    names, classes = getattr(model, "feature_names_in_", None), getattr(model, "classes_", None)
    loss, columns = getattr(model, "loss_", None), getattr(model, "columns_", None)
    link, by = ("identity", 1.0) if loss is None else _link(loss, is_classifier=classes is not None)
    # the mean, where spreads are scores too
    mean_only = link == "identity" and loss is not None and n_targets(loss) == 1
    k = 1 if mean_only else ensemble.n_outputs
    is_categorical = np.zeros(ensemble.cuts.n_columns, np.bool_)
    is_categorical[ensemble.cuts.columns] = ensemble.cuts.is_categorical
    trees = [
        _tree(tree.nodes, by * (ensemble.scale * (factor * tree.value)), tree.output, ensemble.cuts)
        for tree, factor in zip(ensemble.trees, ensemble.factors, strict=True)
        if tree.output < k
    ]
    return PlainModel(
        trees=trees or [_nothing(output) for output in range(k)],
        bias=by * ensemble.bias[:k],
        n_columns=ensemble.cuts.n_columns,
        is_categorical=is_categorical,
        link=link,
        classifies=loss is not None and link in ("logistic", "softmax") and loss.task != "regression",
        xgboost_objective="" if loss is None else facts_of(loss).xgboost_objective,
        names=None if names is None else [str(name) for name in names],
        classes=classes,
        categories=None if columns is None else [list(values or ()) for values in columns.categories],
    )


def _refuse_offsets(model: Any) -> None:
    """Raise InputError if the estimator was fitted with offsets, which a reader would leave out in silence."""
    if vars(model).get("_offsets", False) if hasattr(model, "__dict__") else False:
        raise InputError(
            "model: it was fitted with init_score, and readers of this format predict without. Export "
            "model.ensemble_, whose predictions are scores, and add the offsets and apply the link function there."
        )


def _refuse_missing(model: Any) -> None:
    """Raise InputError if a number stands for missing values, which a reader would take for a value in silence."""
    missing = getattr(getattr(model, "columns_", None), "missing", None)
    if missing is not None:
        raise InputError(
            f"model: {missing:g} stands for missing values in it, and readers of this format know NaN only. Export "
            "model.ensemble_, and give it the rows of model.columns_.encode(X), which have NaN there."
        )


def float32_below(values: NDArray[np.float64]) -> NDArray[np.float32]:
    """The largest float32 that are not above: x <= value is the same for every float32 x."""
    with np.errstate(over="ignore"):
        rounded = values.astype(np.float32)
    return np.where(rounded > values, np.nextafter(rounded, np.float32(-np.inf)), rounded)


def required(package: str, function: str) -> Any:
    """The package, imported.

    Raises:
        ImportError: if it is not installed; the message says how to install it.
    """
    try:
        return import_module(package)
    except ImportError as error:
        name = package.partition(".")[0]
        raise ImportError(f"{function}: needs the package {name!r}; install it with: pip install {name}") from error


def _link(loss: Loss, *, is_classifier: bool) -> tuple[Link, float]:
    """The link function of the predictions, and the factor of its scores. Raises InputError if others lack it."""
    if isinstance(loss, BaseLoss) and stated_link(loss) != "other":
        return loss.facts.link, loss.link_scale
    probes = np.tile(_PROBES, (loss.n_outputs, 1))
    if is_classifier or not np.array_equal(loss.inverse_link(probes), _PROBES):
        raise InputError(
            f"model: predictions with the loss {loss.name!r} are made by a function of its own, which other libraries "
            "do not have. Export model.ensemble_, whose predictions are the scores, and apply the function there."
        )
    return "identity", 1.0


def _tree(nodes: Nodes, value: NDArray[np.float64], output: int, cuts: Cuts) -> PlainTree:
    column, threshold = np.full(len(nodes.feature), -1, np.int32), np.zeros(len(nodes.feature))
    listed, listed_left = {}, {}
    for i in np.flatnonzero(nodes.feature >= 0).tolist():
        f = int(nodes.feature[i])
        codes, cut = cuts.categories[f], int(nodes.bin[i])
        column[i] = cuts.columns[f] if cuts.source is not None else f
        if codes is None:
            threshold[i] = cuts.thresholds[f][cut] if cut < len(cuts.thresholds[f]) else EVERY_VALUE
            continue
        bins = np.arange(len(codes))
        goes_left = (nodes.left_set[i][bins // 32] >> (bins % 32).astype(np.uint32) & 1).astype(np.bool_)
        listed_left[i] = not bool(nodes.missing_left[i])  # unknown codes are missing ones: they go with the rest
        listed[i] = _checked(sorted(codes[goes_left == listed_left[i]].tolist()), int(column[i]))
    return PlainTree(
        output=output,
        column=column,
        threshold=threshold,
        missing_left=nodes.missing_left,
        left=nodes.left,
        right=nodes.right,
        value=value,
        gain=nodes.gain,
        rows=np.maximum(nodes.count.astype(np.float64), 1e-6),
        listed=listed,
        listed_left=listed_left,
    )


def _checked(codes: list[int], column: int) -> list[int]:
    if codes and not 0 <= codes[0] <= codes[-1] < _MOST_CODE:
        raise InputError(
            f"model: other libraries know category codes of 0 to {_MOST_CODE - 1}; column {column} has {codes[0]} to "
            f"{codes[-1]}. Train on codes counted from 0."
        )
    return codes


def _nothing(output: int) -> PlainTree:
    zero, none = np.zeros(1), np.zeros(1, np.int32)
    return PlainTree(output, none - 1, zero, zero > 0, none, none, zero, zero, zero + 1.0, {}, {})
