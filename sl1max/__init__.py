"""L1-regularised maximum-entropy classifiers: joint, class-conditional and conditional."""

from sl1max.exceptions import ConvergenceWarning
from sl1max.fit import fit
from sl1max.model import Model
from sl1max.monitor import FitProgress

__all__ = ["ConvergenceWarning", "FitProgress", "Model", "fit", "load"]
__version__ = "0.1.0"

# Imported when asked for.
_LAZY = {"load": "sl1max.persistence"}


def __getattr__(name):
    if name not in _LAZY:
        raise AttributeError(f"module 'sl1max' has no attribute {name!r}")
    import importlib

    value = getattr(importlib.import_module(_LAZY[name]), name)
    globals()[name] = value
    return value


def __dir__():
    return sorted(set(globals()) | set(_LAZY))
