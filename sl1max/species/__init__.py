"""Species distributions by maximum entropy (Maxent): presences against a background.

The features, the regularisation and the outputs are those of the Java program Maxent 3.4.4, whose files are read and
written. The estimators need scikit-learn; they are imported when asked for.
"""

from sl1max.species._lambdas import LambdasModel, read_lambdas
from sl1max.species._raster import RasterStack, predict_raster
from sl1max.species._swd import SWDTable, read_swd

__all__ = [
    "EnvironmentalSimilarity",
    "Evaluation",
    "LambdasModel",
    "MaxentFeatures",
    "RasterStack",
    "SWDTable",
    "SpeciesModel",
    "clamping_effect",
    "evaluate",
    "jackknife",
    "percent_contribution",
    "permutation_importance",
    "predict_raster",
    "read_lambdas",
    "read_swd",
    "response_curve",
    "results_row",
    "write_results",
]

_LAZY = {
    "EnvironmentalSimilarity": "sl1max.species._novelty",
    "Evaluation": "sl1max.species._evaluation",
    "MaxentFeatures": "sl1max.species._transformer",
    "SpeciesModel": "sl1max.species._model",
    "clamping_effect": "sl1max.species._novelty",
    "evaluate": "sl1max.species._evaluation",
    "jackknife": "sl1max.species._importance",
    "percent_contribution": "sl1max.species._importance",
    "permutation_importance": "sl1max.species._importance",
    "response_curve": "sl1max.species._response",
    "results_row": "sl1max.species._results",
    "write_results": "sl1max.species._results",
}


def __getattr__(name):
    if name not in _LAZY:
        raise AttributeError(f"module 'sl1max.species' has no attribute {name!r}")
    import importlib

    return getattr(importlib.import_module(_LAZY[name]), name)


def __dir__():
    return sorted(set(globals()) | set(_LAZY))
