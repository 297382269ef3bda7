"""The model format of XGBoost, as JSON: read by every XGBoost from 1.7 on, by treelite, FIL (nvForest) and shap.

Requirements of its readers, and their consequences here:

* x < c goes left, so that c is the float32 after the threshold. Categories of a node's list go right.
* Some versions never read the number of the right child: it is the left one's plus one.
* ``base_score`` means something else for each objective and version: it is neutral, and single-leaf trees in the
  first round hold the bias.
* ``cats`` has the values of categories, by which XGBoost from 3.1 on finds the codes of a frame's categories. Earlier
  versions take a frame's own codes. treelite 4.8, and with it FIL, refuses files that have them; ``to_treelite`` makes
  models of categories for both.
* ``sum_hessian`` holds numbers of rows, so that contributions are those of ``predict_contributions``.
"""

from __future__ import annotations

import json
import os
from typing import Any

import numpy as np

from gpuboost.errors import InputError
from gpuboost.export.plain import PlainModel, PlainTree, float32_below, plain
from gpuboost.storage import checked_path, write

_NO_PARENT = 2**31 - 1
_INT64_ARRAY = 15  # number of this kind of JSON value in XGBoost

_LOG_OBJECTIVES: dict[str, dict[str, dict[str, str]]] = {
    "count:poisson": {"poisson_regression_param": {"max_delta_step": "0.7"}},
    "reg:gamma": {"reg_loss_param": {"scale_pos_weight": "1"}},
    "survival:aft": {"aft_loss_param": {"aft_loss_distribution": "normal", "aft_loss_distribution_scale": "1"}},
    "reg:tweedie": {"tweedie_regression_param": {"tweedie_variance_power": "1.5"}},
}
"""The objectives of XGBoost whose predictions are e^score, and the parameters that a file must hold for each.

They are XGBoost's defaults: predictions do not depend on them."""


def to_xgboost(model: Any, path: str | os.PathLike[str]) -> None:
    """Write the model as an XGBoost model file.

    Load it with ``xgboost.Booster(model_file=path)``. Predictions agree to float32 rounding; a float64 value between a
    threshold and the float32 next to it may be sent the other way, as XGBoost reads values as float32.

    The file holds the values of categories, so that XGBoost from 3.1 on reads pandas categories in any order and
    refuses those that did not occur in training. Earlier versions need ``pandas.Categorical(column, categories)`` with
    the categories of training. The booster's attributes ``gpuboost_categories`` and ``gpuboost_classes`` list
    categories and class labels as JSON: XGBoost itself numbers classes from 0. The file has the names of the features
    unless one of them holds ``[``, ``]`` or ``<``, which XGBoost refuses.

    Args:
        model: a fitted estimator, or an ``Ensemble``: a regression that predicts the scores.
        path: ends with ``.json``, by which XGBoost recognises the format.

    Raises:
        InputError: if the path ends otherwise, a category is a fraction or has letters beyond ASCII, which XGBoost
            confuses, or a category code is negative or 2**24 or more.
    """
    place = checked_path(path)
    if place.suffix != ".json":
        raise InputError(f"path: must end with '.json', by which XGBoost recognises the format; got {str(place)!r}.")
    write(path, json.dumps(_document(plain(model)), separators=(",", ":")).encode("ascii"))


def _document(model: PlainModel) -> dict[str, Any]:
    k, trees = len(model.bias), [_leaf(float(bias)) for bias in model.bias]
    trees += [_tree(tree) for tree in model.trees]
    for i, tree in enumerate(trees):
        tree["id"] = i
        tree["tree_param"]["num_feature"] = str(model.n_columns)
    objective, parameters, neutral = _objective(model)
    categories = {"cats": _category_container(model.categories)} if "gpuboost_categories" in model.notes else {}
    kinds = ["c" if categorical else "q" for categorical in model.is_categorical]
    named = model.names is not None and not any(set(name) & set("[]<") for name in model.names)
    forest = {
        "gbtree_model_param": {"num_parallel_tree": "1", "num_trees": str(len(trees)), "size_leaf_vector": "0"},
        "iteration_indptr": list(range(0, len(trees) + 1, k)),
        "tree_info": [*range(k), *(tree.output for tree in model.trees)],
        "trees": trees,
        **categories,
    }
    return {
        "learner": {
            "attributes": model.notes,
            "feature_names": model.names if named else [],
            "feature_types": kinds if model.is_categorical.any() else [],
            "gradient_booster": {"model": forest, "name": "gbtree"},
            "learner_model_param": {
                "base_score": f"{neutral:.8E}",
                "boost_from_average": "1",
                "num_class": str(k if model.link == "softmax" else 0),
                "num_feature": str(model.n_columns),
                "num_target": str(1 if model.link == "softmax" else k),
            },
            "objective": {"name": objective, **parameters},
        },
        "version": [2, 1, 0],
    }


def _objective(model: PlainModel) -> tuple[str, dict[str, dict[str, str]], float]:
    """The objective's name, its parameters, and its neutral base score."""
    if model.link == "logistic":
        return model.xgboost_objective or "binary:logistic", {"reg_loss_param": {"scale_pos_weight": "1"}}, 0.5
    if model.link == "softmax":
        return "multi:softprob", {"softmax_multiclass_param": {"num_class": str(len(model.bias))}}, 0.0
    if model.link == "log":
        objective = model.xgboost_objective or "count:poisson"
        return objective, _LOG_OBJECTIVES[objective], 1.0
    return "reg:squarederror", {"reg_loss_param": {"scale_pos_weight": "1"}}, 0.0


def _category_container(categories: Any) -> dict[str, Any]:
    """Categories of all columns as XGBoost 3.1 holds them: texts joined, or numbers; and their sorting order."""
    encoders, ends, order = [], [0], []
    for values in categories:
        ends.append(ends[-1] + len(values))
        order += sorted(range(len(values)), key=values.__getitem__)
        if not values or isinstance(values[0], str):
            _refuse_beyond_ascii(values)
            offsets = np.cumsum([0, *map(len, values)]).tolist() if values else []
            encoders.append({"offsets": offsets, "values": list("".join(values).encode("ascii"))})
        else:
            encoders.append({"type": _INT64_ARRAY, "values": [_whole(value) for value in values]})
    return {"enc": encoders, "feature_segments": ends, "sorted_idx": order}


def _whole(category: float) -> int:
    """The category as an integer. Raises InputError for a fraction, which XGBoost refuses in frames."""
    if category != int(category):
        raise InputError(
            f"model: categories of XGBoost are texts or integers; got {category!r}. Train on texts of these numbers, "
            "or use gb.export.to_onnx."
        )
    return int(category)


def _refuse_beyond_ascii(texts: list[str]) -> None:
    """Raise InputError if a category has other letters: XGBoost 3.2 counts letters of a frame's texts as bytes."""
    for text in texts:
        if not text.isascii():
            raise InputError(
                f"model: XGBoost confuses categories with letters beyond ASCII; got {text!r}. Rename the categories "
                "before training, or use gb.export.to_onnx."
            )


def _leaf(value: float) -> dict[str, Any]:
    none, held, nothing = np.full(1, -1), np.full(1, value), np.zeros(1)
    return _columns(none, none, nothing > 0, held, held, nothing, np.ones(1), {})


def _tree(tree: PlainTree) -> dict[str, Any]:
    """The tree, its nodes numbered level by level."""
    order, left, right = [0], [], []
    for i in order:  # grows as it is read
        if tree.column[i] < 0:
            left.append(-1)
            right.append(-1)
            continue
        ways = (int(tree.left[i]), int(tree.right[i]))
        order += ways[::-1] if tree.listed_left.get(i) else ways
        left.append(len(order) - 2)
        right.append(len(order) - 1)
    old = np.array(order)
    number = {node: new for new, node in enumerate(order)}
    listed = {number[i]: codes for i, codes in tree.listed.items()}
    listed = dict(sorted(listed.items()))  # XGBoost reads them in step with the nodes
    missing_left = tree.missing_left[old]
    missing_left[list(listed)] = True  # all that is not listed goes left
    with np.errstate(over="ignore"):  # after the largest float32 comes infinity: every value goes left
        after = np.nextafter(float32_below(tree.threshold[old]), np.float32(np.inf))
    condition = np.where(tree.column[old] < 0, tree.value[old], after)
    for i, codes in listed.items():
        condition[i] = 0.0 if codes else np.inf  # none listed: all go left, which takes a numeric split to say
    return _columns(
        np.array(left), tree.column[old], missing_left, condition, tree.value[old], tree.gain[old], tree.rows[old],
        {i: codes for i, codes in listed.items() if codes},
    )  # fmt: skip


def _columns(
    left: Any, column: Any, missing_left: Any, condition: Any, value: Any, gain: Any, rows: Any, listed: dict[int, Any]
) -> dict[str, Any]:
    """A tree as XGBoost lists it; a right child is its left sibling's number plus one."""
    right, parents = np.where(left < 0, -1, left + 1), np.full(len(left), _NO_PARENT)
    inner = np.flatnonzero(left >= 0)
    parents[left[inner]] = parents[right[inner]] = inner
    sizes = [len(codes) for codes in listed.values()]
    kinds = np.zeros(len(left), np.int64)
    kinds[list(listed)] = 1
    return {
        "base_weights": _floats(np.where(left < 0, value, 0.0)),
        "categories": [code for codes in listed.values() for code in codes],
        "categories_nodes": list(listed),
        "categories_segments": [sum(sizes[:i]) for i in range(len(sizes))],
        "categories_sizes": sizes,
        "default_left": missing_left.astype(np.int64).tolist(),
        "left_children": left.tolist(),
        "loss_changes": _floats(gain),
        "parents": parents.tolist(),
        "right_children": right.tolist(),
        "split_conditions": _floats(condition),
        "split_indices": np.maximum(column, 0).tolist(),
        "split_type": kinds.tolist(),
        "sum_hessian": _floats(rows),
        "tree_param": {"num_deleted": "0", "num_nodes": str(len(left)), "size_leaf_vector": "1"},
    }


def _floats(values: Any) -> list[float]:
    """Rounded to float32, as XGBoost holds them."""
    rounded: list[float] = values.astype(np.float32).tolist()
    return rounded
