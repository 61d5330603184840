"""Models as ONNX graphs, for onnxruntime and other runtimes without Python.

Importing this module registers `MaxentClassifier` and `MaxentClassifierCV` with skl2onnx, if it is installed, so that
pipelines that hold them can be converted. It needs the package ``onnx``: ``pip install onnx skl2onnx``.
"""

import importlib.util

from sl1max.onnx._graph import to_onnx

if importlib.util.find_spec("skl2onnx") is not None:
    from sl1max.onnx import _skl2onnx  # noqa: F401  registers the estimators

__all__ = ["to_onnx"]
