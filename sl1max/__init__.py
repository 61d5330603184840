"""L1-regularised maximum-entropy classifiers: joint, class-conditional and conditional."""

from sl1max.exceptions import ConvergenceWarning, InfeasibleMomentsError
from sl1max.fit import fit
from sl1max.model import Model
from sl1max.monitor import FitProgress
from sl1max.paths import PathResult, path
from sl1max.stepping import Problem, Solver

__all__ = [
    "ConvergenceWarning",
    "FitProgress",
    "InfeasibleMomentsError",
    "Model",
    "MomentModel",
    "PathResult",
    "Problem",
    "Solver",
    "fit",
    "fit_moments",
    "load",
    "path",
]
__version__ = "0.1.0"

# Imported when asked for.
_LAZY = {
    "AdaBoostClassifier": "sl1max.boosting",
    "HierarchyClassifier": "sl1max.hierarchy",
    "MaxentClassifier": "sl1max.classifier",
    "MaxentClassifierCV": "sl1max.selection",
    "MomentModel": "sl1max.from_moments",
    "OutputCodeClassifier": "sl1max.output_codes",
    "fit_moments": "sl1max.from_moments",
    "load": "sl1max.persistence",
    "make_classifier": "sl1max.learners",
}


def __getattr__(name):
    if name not in _LAZY:
        raise AttributeError(f"module 'sl1max' has no attribute {name!r}")
    import importlib

    try:
        value = getattr(importlib.import_module(_LAZY[name]), name)
    except ImportError as error:
        if (error.name or "").split(".")[0] != "sklearn":
            raise
        raise ImportError(f"{name} needs scikit-learn >= 1.6: pip install sl1max[sklearn]") from error
    globals()[name] = value
    return value


def __dir__():
    return sorted(set(globals()) | set(_LAZY))
