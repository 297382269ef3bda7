"""The dictionary that ``shap.TreeExplainer`` takes for an ensemble of trees of another library."""

from __future__ import annotations

from typing import Any

import numpy as np

from gpuboost.errors import InputError
from gpuboost.export.plain import PlainTree, plain


def to_shap_dict(model: Any) -> dict[str, Any]:
    """``shap.TreeExplainer(to_shap_dict(model))`` explains the scores of the model.

    Of two classes, of labels and of shares it explains log-odds, which are twice the score with the loss
    ``exponential``. For plots and for the interventional values of shap; ``predict_contributions`` and
    ``predict_interactions`` need no other package, are faster, and support categories.

    Raises:
        InputError: if a tree splits by category, which shap reads wrongly (shap issues 1644 and 5079).
    """
    plain_model = plain(model)
    if any(tree.listed for tree in plain_model.trees):
        raise InputError("model: shap reads categorical splits wrongly. Use model.predict_contributions(X).")
    k = len(plain_model.bias)
    binary = plain_model.link == "logistic" and k == 1  # or of shares, whose scores are log-odds, too
    return {
        "trees": [_tree(tree, k) for tree in plain_model.trees],
        "base_offset": plain_model.bias.copy() if k > 1 else float(plain_model.bias[0]),
        "tree_output": "log_odds" if binary else "raw_value",
        "objective": "binary_crossentropy" if binary else "squared_error",
        "input_dtype": np.float64,
        "internal_dtype": np.float64,
    }


def _tree(tree: PlainTree, k: int) -> dict[str, Any]:
    """shap writes into these arrays, so that they are copies."""
    leaf = tree.column < 0
    values = np.zeros((len(leaf), k))
    values[:, tree.output] = tree.value
    left, right = np.where(leaf, -1, tree.left).astype(np.int32), np.where(leaf, -1, tree.right).astype(np.int32)
    return {
        "children_left": left,
        "children_right": right,
        "children_default": np.where(tree.missing_left, left, right),
        "features": tree.column.copy(),
        "thresholds": tree.threshold.copy(),
        "values": values,
        "node_sample_weight": tree.rows.copy(),
    }
