"""Graphs of models in the format ONNX."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Literal

import numpy as np

from sl1max.model._model import LOG_BELOW_ONE, Model

if TYPE_CHECKING:
    from onnx import ModelProto

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
    shape: list[str | int | None] = ["n_samples", model.n_classes]
    label = helper.np_dtype_to_tensor_dtype(graph.label_dtype)
    label_shape = shape if is_sets(model) else shape[:1]
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
    labels = read_labels(model)
    used = np.unique(model.weights.indices)
    if len(used) * model.n_classes * dtype.itemsize > MAX_BYTES:
        raise ValueError(
            f"{len(used)} used features x {model.n_classes} classes are more than the 2 GB of an ONNX graph"
        )
    graph = Graph(np.dtype(np.int64) if is_sets(model) else labels.dtype)
    weights = model.weights[:, used].toarray().T.astype(dtype)
    held = graph.add("Gather", ["X", used.astype(np.int64)], "used", axis=1)
    products = graph.add("MatMul", [held, np.ascontiguousarray(weights)], "products")
    scores = graph.add("Add", [products, model.intercept.astype(dtype)], "scores")
    _add_probabilities(graph, model, scores, dtype)
    if is_sets(model):
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


def is_sets(model: Model) -> bool:
    """Whether predictions are sets of labels."""
    return model.trained_on_indicator and model.label_mode == "independent"


def read_labels(model: Model) -> np.ndarray:
    """The labels as integers, floats, or objects that are strings."""
    classes = np.asarray(model.classes.tolist())
    if classes.dtype.kind in "biu":
        return classes.astype(np.int64)
    if classes.dtype.kind == "f":
        return classes.astype(np.float32)
    if classes.dtype.kind == "U":
        return classes.astype(object)
    raise ValueError(f"labels of type {model.classes.dtype} cannot be stored in an ONNX graph")
