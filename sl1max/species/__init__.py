"""Species distributions by maximum entropy (Maxent): presences against a background.

The features, the regularisation and the outputs are those of the Java program Maxent 3.4.4, whose files are read and
written. The estimators need scikit-learn; they are imported when asked for.
"""

from sl1max.species._lambdas import LambdasModel, read_lambdas
from sl1max.species._raster import RasterStack, predict_raster
from sl1max.species._swd import SWDTable, draw_background, read_occurrences, read_swd, training_set

__all__ = [
    "EnvironmentalSimilarity",
    "Evaluation",
    "Figures",
    "LambdasModel",
    "MaxentFeatures",
    "RasterStack",
    "Replicates",
    "SWDTable",
    "SpeciesBatch",
    "SpeciesModel",
    "Tuning",
    "cell_area",
    "checkerboard",
    "clamping_effect",
    "clamping_map",
    "compute_figures",
    "draw_background",
    "evaluate",
    "fit_species",
    "jackknife",
    "null_models",
    "percent_contribution",
    "permutation_importance",
    "predict_raster",
    "read_lambdas",
    "read_occurrences",
    "read_swd",
    "replicate",
    "response_curve",
    "results_row",
    "spatial_blocks",
    "training_set",
    "tune",
    "write_report",
    "write_results",
]

_LAZY = {
    "EnvironmentalSimilarity": "sl1max.species._novelty",
    "Evaluation": "sl1max.species._evaluation",
    "Figures": "sl1max.species._report",
    "MaxentFeatures": "sl1max.species._transformer",
    "Replicates": "sl1max.species._replicates",
    "SpeciesBatch": "sl1max.species._batch",
    "SpeciesModel": "sl1max.species._model",
    "Tuning": "sl1max.species._tuning",
    "cell_area": "sl1max.species._spatial",
    "checkerboard": "sl1max.species._spatial",
    "clamping_effect": "sl1max.species._novelty",
    "clamping_map": "sl1max.species._novelty",
    "compute_figures": "sl1max.species._report",
    "evaluate": "sl1max.species._evaluation",
    "fit_species": "sl1max.species._batch",
    "jackknife": "sl1max.species._importance",
    "null_models": "sl1max.species._replicates",
    "percent_contribution": "sl1max.species._importance",
    "permutation_importance": "sl1max.species._importance",
    "replicate": "sl1max.species._replicates",
    "response_curve": "sl1max.species._response",
    "results_row": "sl1max.species._results",
    "spatial_blocks": "sl1max.species._spatial",
    "tune": "sl1max.species._tuning",
    "write_report": "sl1max.species._report",
    "write_results": "sl1max.species._results",
}


def __getattr__(name):
    if name not in _LAZY:
        raise AttributeError(f"module 'sl1max.species' has no attribute {name!r}")
    import importlib

    return getattr(importlib.import_module(_LAZY[name]), name)


def __dir__():
    return sorted(set(globals()) | set(_LAZY))
