"""L1-regularised maximum-entropy classifiers: joint, class-conditional and conditional."""

import importlib
from typing import TYPE_CHECKING

from sl1max._utils.progress import FitProgress
from sl1max.exceptions import (
    CheckpointError,
    ConvergenceWarning,
    FitError,
    FitMemoryError,
    InfeasibleMomentsError,
    ModelFileError,
    ThreadStartError,
)
from sl1max.model._model import Model
from sl1max.training._fit import fit
from sl1max.training._incremental import Problem, Solver
from sl1max.training._path import PathResult, path, zero_beta
from sl1max.training._relax import relax

if TYPE_CHECKING:
    from sl1max._report import report
    from sl1max.estimators._adaboost import AdaBoostClassifier
    from sl1max.estimators._additive import AdditiveClassifier
    from sl1max.estimators._density import MaxentDensity
    from sl1max.estimators._hierarchy import HierarchyClassifier
    from sl1max.estimators._learners import AutoClassifier, LinearSVMClassifier, get_learner
    from sl1max.estimators._maxent import MaxentClassifier
    from sl1max.estimators._maxent_cv import MaxentClassifierCV
    from sl1max.estimators._output_codes import OutputCodeClassifier
    from sl1max.estimators._selection import NonzeroSelector
    from sl1max.model._explain import Explanation, Table
    from sl1max.model._model import load
    from sl1max.training._class_editing import with_class, without_class
    from sl1max.training._constraints import constraints
    from sl1max.training._moments import MomentModel, fit_moments

__all__ = [
    "AdaBoostClassifier",
    "AdditiveClassifier",
    "AutoClassifier",
    "CheckpointError",
    "ConvergenceWarning",
    "Explanation",
    "FitError",
    "FitMemoryError",
    "FitProgress",
    "HierarchyClassifier",
    "InfeasibleMomentsError",
    "LinearSVMClassifier",
    "MaxentClassifier",
    "MaxentClassifierCV",
    "MaxentDensity",
    "Model",
    "ModelFileError",
    "MomentModel",
    "NonzeroSelector",
    "OutputCodeClassifier",
    "PathResult",
    "Problem",
    "Solver",
    "Table",
    "ThreadStartError",
    "constraints",
    "fit",
    "fit_moments",
    "get_learner",
    "load",
    "path",
    "relax",
    "report",
    "with_class",
    "without_class",
    "zero_beta",
]
__version__ = "0.1.0"

# Imported when asked for.
_LAZY = {
    "AdaBoostClassifier": "sl1max.estimators._adaboost",
    "AdditiveClassifier": "sl1max.estimators._additive",
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
    "get_learner": "sl1max.estimators._learners",
    "load": "sl1max.model._model",
    "report": "sl1max._report",
    "with_class": "sl1max.training._class_editing",
    "without_class": "sl1max.training._class_editing",
}


if not TYPE_CHECKING:  # type checkers would take every name for one of the module's

    def __getattr__(name):
        if name not in _LAZY:
            raise AttributeError(f"module 'sl1max' has no attribute {name!r}")
        try:
            value = getattr(importlib.import_module(_LAZY[name]), name)
        except ImportError as error:
            if (error.name or "").split(".")[0] != "sklearn":
                raise
            return _make_stand_in(name)
        globals()[name] = value
        return value


def _make_stand_in(name: str) -> type:
    """A class in place of one that needs scikit-learn, so that the module can be inspected; its use is an error."""
    message = f"{name} needs scikit-learn >= 1.6: pip install scikit-learn"

    def refuse(self: object, *args: object, **options: object) -> None:
        raise ImportError(message)

    return type(name, (), {"__doc__": message, "__module__": "sl1max", "__init__": refuse})


def __dir__() -> list[str]:
    return sorted(set(globals()) | set(_LAZY))
