"""Species distributions by maximum entropy (Maxent): presences against a background.

The features, the regularisation and the outputs are those of the Java program Maxent 3.4.4, whose files are read and
written. The estimators need scikit-learn; they are imported when asked for.
"""

from sl1max.species._lambdas import LambdasModel, read_lambdas
from sl1max.species._swd import SWDTable, read_swd

__all__ = ["LambdasModel", "MaxentFeatures", "SWDTable", "SpeciesModel", "read_lambdas", "read_swd"]

_LAZY = {"MaxentFeatures": "sl1max.species._transformer", "SpeciesModel": "sl1max.species._model"}


def __getattr__(name):
    if name not in _LAZY:
        raise AttributeError(f"module 'sl1max.species' has no attribute {name!r}")
    import importlib

    return getattr(importlib.import_module(_LAZY[name]), name)


def __dir__():
    return sorted(set(globals()) | set(_LAZY))
