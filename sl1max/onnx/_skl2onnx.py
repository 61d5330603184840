"""Converters of the estimators for skl2onnx."""

from __future__ import annotations

import numpy as np
from onnx import helper
from skl2onnx import update_registered_converter
from skl2onnx.common.data_types import DoubleTensorType, FloatTensorType, Int64TensorType, StringTensorType

from sl1max.estimators._maxent import MaxentClassifier
from sl1max.estimators._maxent_cv import MaxentClassifierCV
from sl1max.onnx._graph import OPSET, build_graph, is_sets, read_labels


def _declare_outputs(operator):
    """Types and shapes of the outputs of an estimator."""
    model = operator.raw_operator.model_
    n_samples = operator.inputs[0].get_first_dimension()
    is_text = not is_sets(model) and read_labels(model).dtype == object
    shape = [n_samples, model.n_classes]
    operator.outputs[0].type = (StringTensorType if is_text else Int64TensorType)(
        shape if is_sets(model) else shape[:1]
    )
    is_double = isinstance(operator.inputs[0].type, DoubleTensorType)
    operator.outputs[1].type = (DoubleTensorType if is_double else FloatTensorType)(shape)


def _convert(scope, operator, container):
    """Add the nodes of an estimator to a graph of skl2onnx."""
    model = operator.raw_operator.model_
    source = operator.inputs[0]
    is_double = isinstance(source.type, DoubleTensorType)
    graph = build_graph(model, np.dtype(np.float64 if is_double else np.float32))
    names = {"label": operator.outputs[0].full_name, "probabilities": operator.outputs[1].full_name}
    names["X"] = source.full_name
    if not isinstance(source.type, (DoubleTensorType, FloatTensorType)):
        names["X"] = scope.get_unique_variable_name("as_float")
        container.add_node("Cast", source.full_name, names["X"], name=scope.get_unique_operator_name("Cast"), to=1)

    def name_of(name):
        return names.setdefault(name, scope.get_unique_variable_name(name))

    for name, array in graph.constants.items():
        kind = helper.np_dtype_to_tensor_dtype(array.dtype)
        values = [value.encode() for value in array.tolist()] if array.dtype == object else array.ravel().tolist()
        container.add_initializer(name_of(name), kind, list(array.shape), values)
    for op, inputs, output, settings in graph.nodes:
        container.add_node(
            op, [name_of(name) for name in inputs], name_of(output), op_version=OPSET,
            name=scope.get_unique_operator_name(op), **settings,
        )  # fmt: skip


for estimator in (MaxentClassifier, MaxentClassifierCV):
    update_registered_converter(
        estimator, f"Sl1max{estimator.__name__}", _declare_outputs, _convert,
        options={"zipmap": [True, False, "columns"], "nocl": [True, False], "output_class_labels": [False, True]},
    )  # fmt: skip
