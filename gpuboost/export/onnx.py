"""ONNX models: TreeEnsembleRegressor of ai.onnx.ml 3, which every runtime has, and plain operators for the link.

Not TreeEnsembleClassifier (wrong for binary models in some versions of onnxruntime, issue 27533), nor TreeEnsemble of
ai.onnx.ml 5 (onnxruntime up to 1.23 adds up two trees wrongly, issue 24679). A categorical node becomes a chain of
equality questions, one for each listed code, all of which lead to the same subtree.
"""

from __future__ import annotations

import os
from typing import Any

import numpy as np
from numpy.typing import NDArray

from gpuboost.errors import InputError
from gpuboost.export.plain import PlainModel, PlainTree, float32_below, plain, required
from gpuboost.storage import write

_NODE = ("nodeids", "modes", "featureids", "values", "truenodeids", "falsenodeids", "missing_value_tracks_true")
_OPERATORS = {"identity": "Identity", "log": "Exp", "logistic": "Sigmoid"}
"""Operator for the link function of a regression"""


def to_onnx(model: Any, path: str | os.PathLike[str] | None = None) -> Any:
    """The model as an ``onnx.ModelProto``, written to the path if one is given.

    Input ``X``: (n, d) float32. Outputs: ``variable`` (n, k) for regression; ``label`` (n,), int64 or text, and
    ``probabilities`` (n, classes) float32 for classification, and both (n, k) for k labels of a row. A categorical
    column of ``X`` holds codes, the places of its values in the metadata entry ``gpuboost_categories``;
    ``model.columns_.encode(X)`` makes them.

    Raises:
        ImportError: if onnx is not installed.
        InputError: if other libraries cannot hold the model, or ONNX a label of it.
    """
    plain_model = plain(model)
    onnx = required("onnx", "to_onnx")
    bias = [float(value) for value in plain_model.bias]
    trees = onnx.helper.make_node(
        "TreeEnsembleRegressor", ["X"], ["scores"], domain="ai.onnx.ml", n_targets=len(bias), base_values=bias,
        aggregate_function="SUM", post_transform="NONE", **_attributes(plain_model),
    )  # fmt: skip
    nodes, constants, outputs = _link(onnx, plain_model)
    x = onnx.helper.make_tensor_value_info("X", onnx.TensorProto.FLOAT, [None, plain_model.n_columns])
    graph = onnx.helper.make_graph([trees, *nodes], "gpuboost", [x], outputs, constants)
    versions = [onnx.helper.make_opsetid("", 15), onnx.helper.make_opsetid("ai.onnx.ml", 3)]
    model_proto = onnx.helper.make_model(graph, opset_imports=versions, ir_version=8, producer_name="gpuboost")
    onnx.helper.set_model_props(model_proto, plain_model.notes)
    onnx.checker.check_model(model_proto)
    if path is not None:
        write(path, model_proto.SerializeToString())
    return model_proto


def _attributes(model: PlainModel) -> dict[str, list[Any]]:
    names = [f"nodes_{name}" for name in ("treeids", *_NODE)]
    names += ["target_treeids", "target_nodeids", "target_ids", "target_weights"]
    lists: dict[str, list[Any]] = {name: [] for name in names}
    for t, tree in enumerate(model.trees):
        nodes = _nodes(tree)
        lists["nodes_treeids"] += [t] * len(nodes)
        for name, values in zip(_NODE, zip(*nodes, strict=True), strict=True):
            lists[f"nodes_{name}"] += values
        leaves = np.flatnonzero(tree.column < 0).tolist()
        lists["target_treeids"] += [t] * len(leaves)
        lists["target_nodeids"] += leaves
        lists["target_ids"] += [tree.output] * len(leaves)
        lists["target_weights"] += tree.value[leaves].tolist()
    return lists


def _nodes(tree: PlainTree) -> list[tuple[int, str, int, float, int, int, int]]:
    """Rows of _NODE: those of the tree under their own numbers, then the later links of chains."""
    nodes: list[tuple[int, str, int, float, int, int, int]] = []
    links: list[tuple[int, str, int, float, int, int, int]] = []
    threshold = float32_below(tree.threshold).astype(np.float64)
    for i in range(len(tree.column)):
        column, ways = int(tree.column[i]), (int(tree.left[i]), int(tree.right[i]))
        if column < 0:
            nodes.append((i, "LEAF", 0, 0.0, 0, 0, 0))
        elif not tree.listed.get(i, [0]):  # none listed: all go the other way
            rest = ways[0] if not tree.listed_left[i] else ways[1]
            nodes.append((i, "BRANCH_EQ", column, 0.0, rest, rest, 0))
        elif i in tree.listed:
            here, rest = ways if tree.listed_left[i] else ways[::-1]
            codes, ids = tree.listed[i], [i]
            for _ in codes[1:]:
                ids.append(len(tree.column) + len(links) + len(ids) - 1)
            chain = [
                (number, "BRANCH_EQ", column, float(code), here, after, 0)
                for number, code, after in zip(ids, codes, [*ids[1:], rest], strict=True)
            ]
            nodes.append(chain[0])
            links += chain[1:]
        else:
            nodes.append((i, "BRANCH_LEQ", column, float(threshold[i]), *ways, int(tree.missing_left[i])))
    return nodes + links


def _link(onnx: Any, model: PlainModel) -> tuple[list[Any], list[Any], list[Any]]:
    """Nodes, constants and outputs that turn scores into predictions."""
    node, info = onnx.helper.make_node, onnx.helper.make_tensor_value_info
    number, constant = onnx.TensorProto.FLOAT, onnx.numpy_helper.from_array
    if not model.classifies:
        last = node(_OPERATORS[model.link], ["scores"], ["variable"])
        return [last], [], [info("variable", number, [None, len(model.bias)])]
    if model.link == "logistic" and len(model.bias) > 1:
        whole, shape = onnx.TensorProto.INT64, [None, len(model.bias)]
        nodes = [
            node("Sigmoid", ["scores"], ["probabilities"]),
            node("Greater", ["scores", "zero"], ["positive"]),
            node("Cast", ["positive"], ["label"], to=whole),
        ]
        outputs = [info("label", whole, shape), info("probabilities", number, shape)]
        return nodes, [constant(np.zeros(1, np.float32), "zero")], outputs
    if model.link == "logistic":
        nodes = [
            node("Sigmoid", ["scores"], ["p1"]),
            node("Sub", ["one", "p1"], ["p0"]),
            node("Concat", ["p0", "p1"], ["probabilities"], axis=1),
        ]
        n_classes, constants = 2, [constant(np.ones(1, np.float32), "one")]
    else:
        nodes = [node("Softmax", ["scores"], ["probabilities"], axis=1)]
        n_classes, constants = len(model.bias), []
    classes = np.arange(n_classes) if model.classes is None else np.asarray(model.classes)
    kind = onnx.TensorProto.INT64 if _are_whole(classes) else onnx.TensorProto.STRING
    labels = _whole_numbers(classes) if kind == onnx.TensorProto.INT64 else _texts(classes)
    nodes += [
        node("ArgMax", ["probabilities"], ["place"], axis=1, keepdims=0),
        node("Gather", ["classes", "place"], ["label"]),
    ]
    outputs = [info("label", kind, [None]), info("probabilities", number, [None, n_classes])]
    return nodes, [*constants, constant(labels, "classes")], outputs


def _are_whole(classes: NDArray[Any]) -> bool:
    """True for integers, and for floats such as 0.0 and 1.0, which are integers for skl2onnx, too."""
    return classes.dtype.kind in "iub" or (classes.dtype.kind == "f" and bool((classes == np.floor(classes)).all()))


def _whole_numbers(classes: NDArray[Any]) -> NDArray[np.int64]:
    """(K,) labels as int64. InputError if one is beyond that, as those of uint64 may be."""
    bounds = np.iinfo(np.int64)
    for label in (classes.min(), classes.max()):
        if not bounds.min <= int(label) <= bounds.max:
            raise InputError(
                f"model: ONNX has labels of int64, which cannot hold the class {label}. Fit the model to labels of "
                "text, or to smaller numbers."
            )
    return classes.astype(np.int64)


def _texts(classes: NDArray[Any]) -> NDArray[Any]:
    """(K,) labels as text. InputError if ONNX, which holds text in UTF-8, cannot hold one."""
    texts: NDArray[Any] = classes.astype(str).astype(object)
    for text in texts:
        try:
            text.encode()
        except UnicodeEncodeError:
            raise InputError(f"model: ONNX has text in UTF-8, which cannot hold the class {text!r}.") from None
    return texts
