"""Shared parts of the benchmarks: models, sizes, and fits that report counts."""

from unittest import mock

import sl1max
import sl1max._models.reduction

from .made_data import made_indicator, made_text

MODELS = {
    "joint/exclusive": ("joint", "exclusive"),
    "class-conditional": ("class-conditional", "exclusive"),
    "conditional/exclusive": ("conditional", "exclusive"),
    "joint/independent": ("joint", "independent"),
    "conditional/independent": ("conditional", "independent"),
}
SIZES = {"small": (500, 1000, 4), "medium": (2000, 5000, 6)}  # examples, features, classes


def made_problem(model, size):
    """X, y and the arguments of `sl1max.fit` for one of the models on one of the sizes."""
    distribution, label_mode = MODELS[model]
    n_samples, n_features, n_classes = SIZES[size]
    X, y = made_text(n_samples, n_features, n_classes)
    if label_mode == "independent":
        y = made_indicator(y, n_classes)
    return X, y, {"distribution": distribution, "label_mode": label_mode, "n_jobs": 1}


def count_fit(X, y, options):
    """Counters of the core over all problems of a fit, its rounds, objective and gap."""
    solvers = []

    def recorded(*args, **kwargs):
        solvers.append(made(*args, **kwargs))
        return solvers[-1]

    made = sl1max._models.reduction.Solver
    with mock.patch.object(sl1max._models.reduction, "Solver", recorded):
        sl1max.fit(X, y, **options)
    counts = {name: sum(solver.counters[name] for solver in solvers) for name in solvers[0].counters}
    return counts | {
        "rounds": sum(solver.n_iter for solver in solvers),
        "objective": sum(solver.objective for solver in solvers),
        "gap": max(solver.dual_gap for solver in solvers),
    }
