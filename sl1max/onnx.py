"""Models as ONNX graphs, for onnxruntime and other runtimes without Python.

Importing this module registers `MaxentClassifier` and `MaxentClassifierCV` with skl2onnx, if it is installed, so that
pipelines that hold them can be converted. It needs the package ``onnx``: ``pip install onnx skl2onnx``.
"""

from __future__ import annotations

import importlib.util
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Literal

import numpy as np

from sl1max.model._model import LOG_BELOW_ONE, Model

if TYPE_CHECKING:
    from onnx import ModelProto

__all__ = ["to_onnx"]

OPSET = 13
MAX_BYTES = 2**31 - 1  # of a graph, a limit of protocol buffers


def to_onnx(model: Any, *, dtype: Literal["float32", "float64"] = "float32") -> ModelProto:
    """An ONNX graph that predicts the same as a model.

    Parameters
    ----------
    model : Model or fitted estimator with a ``model_``
    dtype : {"float32", "float64"}
        Type of the input, of the weights and of the outputs.

    Returns
    -------
    onnx.ModelProto
        Its input is ``X``, of shape (n_samples, n_features), dense. The outputs:

        - ``label``: labels of shape (n_samples,); for a model of label sets an indicator (n_samples, n_classes)
        - ``probabilities``: (n_samples, n_classes), what `MaxentClassifier.predict_proba` returns
        - ``scores``: (n_samples, n_classes), a decision value for each class

        Features without weights are dropped inside of the graph, whose size is that of the used ones.

    Raises
    ------
    ValueError
        The labels are neither numbers nor strings, or the graph would be larger than 2 GB.
    ImportError
        onnx is not installed.

    Examples
    --------
    >>> import sl1max
    >>> from sl1max.onnx import to_onnx
    >>> X, y = [[1, 0], [1, 1], [0, 1], [0, 1]], ["spam", "spam", "ham", "ham"]
    >>> graph = to_onnx(sl1max.fit(X, y))
    >>> [output.name for output in graph.graph.output]
    ['label', 'probabilities', 'scores']
    """
    try:
        from onnx import TensorProto, helper, numpy_helper
    except ImportError as error:
        raise ImportError("sl1max.onnx needs onnx: pip install onnx") from error

    if dtype not in ("float32", "float64"):
        raise ValueError(f"dtype={dtype!r} is unknown: it must be 'float32' or 'float64'")
    model = getattr(model, "model_", model)
    if not isinstance(model, Model):
        raise TypeError(f"model must be a Model or a fitted estimator of sl1max, not {type(model).__name__}")
    graph = build_graph(model, np.dtype(dtype))
    number = TensorProto.FLOAT if dtype == "float32" else TensorProto.DOUBLE
    shape = ["n_samples", model.n_classes]
    label = helper.np_dtype_to_tensor_dtype(graph.label_dtype)
    label_shape = shape if _is_sets(model) else shape[:1]
    return helper.make_model(
        helper.make_graph(
            [helper.make_node(op, inputs, [output], **settings) for op, inputs, output, settings in graph.nodes],
            "sl1max",
            [helper.make_tensor_value_info("X", number, ["n_samples", model.n_features])],
            [
                helper.make_tensor_value_info("label", label, label_shape),
                helper.make_tensor_value_info("probabilities", number, shape),
                helper.make_tensor_value_info("scores", number, shape),
            ],
            [numpy_helper.from_array(array, name) for name, array in graph.constants.items()],
        ),
        producer_name="sl1max",
        opset_imports=[helper.make_opsetid("", OPSET)],
        ir_version=8,
    )


@dataclass
class Graph:
    """Nodes and constants that compute ``label``, ``probabilities`` and ``scores`` from ``X``.

    Attributes
    ----------
    nodes : list of (operator, names of inputs, name of output, attributes)
    constants : dict of ndarray
    label_dtype : dtype
    """

    label_dtype: np.dtype
    nodes: list[tuple[str, list[str], str, dict]] = field(default_factory=list)
    constants: dict[str, np.ndarray] = field(default_factory=dict)

    def add(self, op, inputs, output, **settings):
        """Add a node, and the arrays among its inputs as constants; returns the name of its output."""
        names = []
        for k, value in enumerate(inputs):
            name = value
            if not isinstance(value, str):
                name = f"{output}_{k}"
                self.constants[name] = value
            names.append(name)
        self.nodes.append((op, names, output, settings))
        return output


def build_graph(model: Model, dtype: np.dtype) -> Graph:
    """The graph of a model, independent of the package that writes it."""
    labels = _labels(model)
    used = np.unique(model.weights.indices)
    if len(used) * model.n_classes * dtype.itemsize > MAX_BYTES:
        raise ValueError(
            f"{len(used)} used features x {model.n_classes} classes are more than the 2 GB of an ONNX graph"
        )
    graph = Graph(np.dtype(np.int64) if _is_sets(model) else labels.dtype)
    weights = model.weights[:, used].toarray().T.astype(dtype)
    held = graph.add("Gather", ["X", used.astype(np.int64)], "used", axis=1)
    products = graph.add("MatMul", [held, np.ascontiguousarray(weights)], "products")
    scores = graph.add("Add", [products, model.intercept.astype(dtype)], "scores")
    _add_probabilities(graph, model, scores, dtype)
    if _is_sets(model):
        likely = graph.add("Greater", ["probabilities", np.array(0.5, dtype)], "likely")
        graph.add("Cast", [likely], "label", to=7)  # int64
    else:
        best = graph.add("ArgMax", [scores], "best", axis=1, keepdims=0)
        graph.add("Gather", [labels, best], "label", axis=0)
    return graph


def _add_probabilities(graph, model, scores, dtype):
    """What the estimators' `predict_proba` computes."""
    if model.label_mode == "exclusive" or (
        model.distribution == "class-conditional" and not model.trained_on_indicator
    ):
        graph.add("Softmax", [scores], "probabilities", axis=1)
    elif model.distribution == "class-conditional":
        likelihood = graph.add("Exp", [scores], "likelihood")
        ratio = graph.add("Mul", [likelihood, np.array(model.total_weight, dtype)], "ratio")
        graph.add("Min", [ratio, np.array(np.exp(LOG_BELOW_ONE), dtype)], "probabilities")
    elif model.trained_on_indicator:
        graph.add("Sigmoid", [scores], "probabilities")
    else:
        # The sigmoids divided by their sum, computed as the softmax of their logs, min(d, 0) - log(1 + exp(-|d|)).
        size = graph.add("Abs", [scores], "size")
        minus = graph.add("Neg", [size], "minus_size")
        small = graph.add("Exp", [minus], "small")
        above = graph.add("Add", [small, np.array(1, dtype)], "above_one")
        excess = graph.add("Log", [above], "excess")
        below = graph.add("Min", [scores, np.array(0, dtype)], "below_zero")
        log_proba = graph.add("Sub", [below, excess], "log_proba")
        graph.add("Softmax", [log_proba], "probabilities", axis=1)


def _is_sets(model):
    return model.trained_on_indicator and model.label_mode == "independent"


def _labels(model):
    classes = np.asarray(model.classes.tolist())
    if classes.dtype.kind in "biu":
        return classes.astype(np.int64)
    if classes.dtype.kind == "f":
        return classes.astype(np.float32)
    if classes.dtype.kind == "U":
        return classes.astype(object)
    raise ValueError(f"labels of type {model.classes.dtype} cannot be stored in an ONNX graph")


# skl2onnx


def _declare_outputs(operator):
    """Types and shapes of the outputs of an estimator."""
    from skl2onnx.common.data_types import DoubleTensorType, Int64TensorType, StringTensorType

    model = operator.raw_operator.model_
    n_samples = operator.inputs[0].get_first_dimension()
    is_text = not _is_sets(model) and _labels(model).dtype == object
    shape = [n_samples, model.n_classes]
    operator.outputs[0].type = (StringTensorType if is_text else Int64TensorType)(
        shape if _is_sets(model) else shape[:1]
    )
    probabilities = type(operator.inputs[0].type)
    if probabilities is not DoubleTensorType:
        from skl2onnx.common.data_types import FloatTensorType as probabilities
    operator.outputs[1].type = probabilities(shape)


def _convert(scope, operator, container):
    """Add the nodes of an estimator to a graph of skl2onnx."""
    from onnx import helper
    from skl2onnx.common.data_types import DoubleTensorType, FloatTensorType

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


def _register():
    from skl2onnx import update_registered_converter

    from sl1max.estimators._maxent import MaxentClassifier
    from sl1max.estimators._maxent_cv import MaxentClassifierCV

    for estimator in (MaxentClassifier, MaxentClassifierCV):
        update_registered_converter(
            estimator, f"Sl1max{estimator.__name__}", _declare_outputs, _convert,
            options={"zipmap": [True, False, "columns"], "nocl": [True, False], "output_class_labels": [False, True]},
        )  # fmt: skip


if importlib.util.find_spec("skl2onnx") is not None:
    _register()
