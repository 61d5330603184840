"""Output of the commands: models and metrics as text or JSON."""

from __future__ import annotations

import json

import numpy as np

from sl1max.model._model import Model


def describe(model: Model):
    """Describe a model by numbers and strings."""
    return {
        "distribution": model.distribution,
        "label_mode": model.label_mode,
        "label_sets": model.trained_on_indicator,
        "n_classes": model.n_classes,
        "n_features": model.n_features,
        "n_weights": int(model.weights.nnz),
        "n_examples": int(model.total_weight) if model.total_weight.is_integer() else model.total_weight,
        "beta": model.beta,
        "beta_rule": model.beta_rule,
        "solver": model.solver,
        "tol": model.tol,
        "objective": float(np.sum(model.objective)),
        "dual_gap": float(np.sum(model.dual_gap)),
        "converged": bool(np.all(model.converged)),
    }


def print_report(report, as_json):
    """Print JSON on one line, with null for infinities, or one line ``name: value`` per entry."""
    if as_json:
        print(json.dumps(finite(report)))
        return
    for name, value in report.items():
        if isinstance(value, dict):
            print(f"{name}:")
            for inner, inner_value in value.items():
                print(f"  {inner}: {_plain(inner_value)}")
        else:
            print(f"{name}: {_plain(value)}")


def records(table):
    return [dict(zip(table.columns, row, strict=True)) for row in table]


def finite(value):
    if isinstance(value, dict):
        return {name: finite(inner) for name, inner in value.items()}
    return None if isinstance(value, float) and not np.isfinite(value) else value


def _plain(value):
    if isinstance(value, bool):
        return "yes" if value else "no"
    if isinstance(value, list):
        return ", ".join(map(str, value)) if value else "none"
    return f"{value:.6g}" if isinstance(value, float) else "-" if value is None else str(value)
