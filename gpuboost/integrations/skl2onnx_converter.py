"""Conversion by skl2onnx: estimators of this library as steps of pipelines."""

from __future__ import annotations

from typing import Any

import numpy as np
import onnx
from numpy.typing import NDArray
from skl2onnx import update_registered_converter
from skl2onnx.common.data_types import DoubleTensorType, FloatTensorType
from skl2onnx.common.shape_calculator import (
    calculate_linear_classifier_output_shapes,
    calculate_linear_regressor_output_shapes,
)

from gpuboost.api import GradientBoostingClassifier, GradientBoostingRanker, GradientBoostingRegressor
from gpuboost.export import to_onnx
from gpuboost.model.outputs import decision


def register_skl2onnx() -> None:
    """Register the three estimators with skl2onnx, so that ``skl2onnx.to_onnx`` converts pipelines that hold them.

    The nodes are those of ``gb.export.to_onnx``. It may be called again. An input of float64 has answers of
    float64, for which the option ``zipmap`` of a classifier must be False: ONNX has it for float32 only.
    """
    options = {
        "zipmap": [True, False, "columns"],
        "nocl": [True, False],
        "output_class_labels": [False, True],
        "raw_scores": [False, True],  # set by the converter of CalibratedClassifierCV, which reads decision_function
    }
    for kind in (GradientBoostingRegressor, GradientBoostingRanker):
        update_registered_converter(kind, f"gpuboost{kind.__name__}", _regressor_shapes, _convert)
    update_registered_converter(
        GradientBoostingClassifier,
        "gpuboostGradientBoostingClassifier",
        _classifier_shapes,
        _convert,
        options=options,
    )


def _regressor_shapes(operator: Any) -> None:
    calculate_linear_regressor_output_shapes(operator)
    _declare_own_shapes(operator)


def _classifier_shapes(operator: Any) -> None:
    calculate_linear_classifier_output_shapes(operator)
    _declare_own_shapes(operator)


def _declare_own_shapes(operator: Any) -> None:
    """Give the outputs the shapes of the model's own graph: skl2onnx has none of several targets or labels."""
    rows = operator.inputs[0].get_first_dimension()
    for output, own in zip(operator.outputs, to_onnx(operator.raw_operator).graph.output, strict=True):
        output.type.shape = [rows, *(size.dim_value for size in own.type.tensor_type.shape.dim[1:])]


def _convert(scope: Any, operator: Any, container: Any) -> None:
    """Add the nodes and constants of the model's own graph to the container."""
    model = operator.raw_operator
    graph = _graph(model, container)
    model_input = operator.inputs[0]
    names: dict[str, str] = {"X": model_input.full_name}
    if not isinstance(model_input.type, FloatTensorType):
        names["X"] = scope.get_unique_variable_name("X_float")
        _add_cast(scope, container, model_input.full_name, names["X"], onnx.TensorProto.FLOAT)
    for graph_output, wanted in zip(graph.output, operator.outputs, strict=True):
        names[graph_output.name] = _named_output(scope, container, wanted)

    def name_of(name: str) -> str:
        if name not in names:
            names[name] = str(scope.get_unique_variable_name(f"gpuboost_{name}"))
        return names[name]

    if hasattr(model, "classes_") and container.get_options(model, {"raw_scores": False})["raw_scores"]:
        decisions, names["probabilities"] = names["probabilities"], scope.get_unique_variable_name("probabilities")
        factors, matrix = _decisions_of_scores(model), name_of("decisions_of_scores")
        container.add_initializer(matrix, onnx.TensorProto.FLOAT, list(factors.shape), factors.ravel().tolist())
        name = scope.get_unique_operator_name("MatMul")
        container.add_node("MatMul", [name_of("scores"), matrix], decisions, op_version=15, name=name)
    for constant in graph.initializer:
        values = onnx.numpy_helper.to_array(constant)
        listed = values.astype(str).tolist() if values.dtype == object else values.tolist()
        container.add_initializer(name_of(constant.name), constant.data_type, list(values.shape), listed)
    for node in graph.node:
        attributes = {attribute.name: onnx.helper.get_attribute_value(attribute) for attribute in node.attribute}
        container.add_node(
            node.op_type,
            [name_of(name) for name in node.input],
            [name_of(name) for name in node.output],
            op_domain=node.domain,
            op_version=3 if node.domain else 15,
            name=scope.get_unique_operator_name(node.op_type),
            **attributes,
        )


def _graph(model: Any, container: Any) -> Any:
    """The graph of the model; with skl2onnx's option ``nocl`` labels are the numbers of classes."""
    graph = to_onnx(model).graph
    if hasattr(model, "classes_") and container.get_options(model, {"nocl": False})["nocl"]:
        for constant in graph.initializer:
            if constant.name == "classes":
                constant.CopyFrom(onnx.numpy_helper.from_array(np.arange(constant.dims[0]), "classes"))
    return graph


def _named_output(scope: Any, container: Any, wanted: Any) -> str:
    """The name of an output of the graph, which is cast where a double is wanted, as of an input of float64."""
    name: str = wanted.full_name
    if not isinstance(wanted.type, DoubleTensorType):
        return name
    single: str = scope.get_unique_variable_name(f"{name}_float")
    _add_cast(scope, container, single, name, onnx.TensorProto.DOUBLE)
    return single


def _add_cast(scope: Any, container: Any, source: str, target: str, kind: int) -> None:
    container.add_node("Cast", source, target, name=scope.get_unique_operator_name("Cast"), to=kind)


def _decisions_of_scores(model: Any) -> NDArray[np.float64]:
    """(k, columns) matrix that turns scores of the graph into ``decision_function``, with a column for each class."""
    loss, k = model.loss_, model.ensemble_.n_outputs
    columns = decision(loss, np.eye(k) / getattr(loss, "link_scale", 1.0))  # of linear functions their factors
    return columns if columns.ndim == 2 else np.column_stack([-columns, columns])
