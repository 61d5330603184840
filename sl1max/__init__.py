"""L1-regularised maximum-entropy classifiers: joint, class-conditional and conditional."""

from sl1max._utils.progress import FitProgress
from sl1max.exceptions import (
    CheckpointError,
    ConvergenceWarning,
    FitError,
    FitMemoryError,
    InfeasibleMomentsError,
    ModelFileError,
)
from sl1max.model._model import Model
from sl1max.training._fit import fit
from sl1max.training._incremental import Problem, Solver
from sl1max.training._path import PathResult, path, zero_beta

__all__ = [
    "CheckpointError",
    "ConvergenceWarning",
    "Explanation",
    "FitError",
    "FitMemoryError",
    "FitProgress",
    "InfeasibleMomentsError",
    "Model",
    "ModelFileError",
    "MomentModel",
    "PathResult",
    "Problem",
    "Solver",
    "Table",
    "constraints",
    "fit",
    "fit_moments",
    "load",
    "path",
    "report",
    "with_class",
    "without_class",
    "zero_beta",
]
__version__ = "0.1.0"

# Imported when asked for.
_LAZY = {
    "AdaBoostClassifier": "sl1max.estimators._adaboost",
    "AutoClassifier": "sl1max.estimators._learners",
    "Explanation": "sl1max.model._explain",
    "HierarchyClassifier": "sl1max.estimators._hierarchy",
    "LinearSVMClassifier": "sl1max.estimators._learners",
    "MaxentClassifier": "sl1max.estimators._maxent",
    "MaxentClassifierCV": "sl1max.estimators._maxent_cv",
    "MaxentDensity": "sl1max.estimators._density",
    "MomentModel": "sl1max.training._moments",
    "NonzeroSelector": "sl1max.estimators._selection",
    "OutputCodeClassifier": "sl1max.estimators._output_codes",
    "Table": "sl1max.model._explain",
    "constraints": "sl1max.training._constraints",
    "fit_moments": "sl1max.training._moments",
    "load": "sl1max.model._model",
    "get_learner": "sl1max.estimators._learners",
    "report": "sl1max._report",
    "with_class": "sl1max.training._class_editing",
    "without_class": "sl1max.training._class_editing",
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
