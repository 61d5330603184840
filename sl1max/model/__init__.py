"""The fitted model: predictions, weights, files."""

from sl1max.model._model import Model

__all__ = ["Model"]
