"""Summaries of models for people: rows of a table, and HTML for notebooks."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from sl1max._utils import html

if TYPE_CHECKING:
    from sl1max.model._model import Model

DESCRIPTIONS = {
    ("conditional", "exclusive"): "multinomial logistic regression, p(c|x)",
    ("conditional", "independent"): "one logistic regression for each class, p(y_c|x)",
    ("joint", "exclusive"): "joint model of examples and exclusive classes, p(x, c)",
    ("joint", "independent"): "joint model of examples and each class, p(x, y_c)",
    ("class-conditional", "exclusive"): "class-conditional model of the examples of each class, p(x|c)",
    ("class-conditional", "independent"): "class-conditional model of the examples of each class, p(x|y_c)",
}


def summary_rows(model: Model) -> list[tuple[str, str]]:
    """Names and values that describe a model, for a table."""
    n_weights, n_cells = model.weights.nnz, model.n_classes * model.n_features
    used = len(np.unique(model.weights.indices))
    return [
        ("Model", DESCRIPTIONS[model.distribution, model.label_mode]),
        ("Classes", f"{model.n_classes:,}"),
        ("Features", f"{model.n_features:,}, of which {used:,} are used"),
        ("Nonzero weights", f"{n_weights:,} of {n_cells:,} ({n_weights / n_cells:.2%})"),
        ("Training examples", f"{model.total_weight:,.6g}"),
        ("Regularisation", f"beta {format_beta(model.beta)}, rule “{model.beta_rule}”"),
        ("Solver", f"{model.solver}, {np.sum(model.n_iter):,} iterations"),
        ("Duality gap", f"{gap_share(model).max():.2g} of the objective at zero, target {model.tol:g}"),
    ]


def gap_share(model: Model) -> np.ndarray:
    """The duality gap of each problem as a share of the objective with all weights zero; NaN where there is none."""
    gap, zero = np.atleast_1d(model.dual_gap), np.abs(np.atleast_1d(model.objective_zero))
    return np.divide(gap, zero, out=np.where(np.isnan(gap), np.nan, 0.0), where=zero != 0)


def format_beta(beta: float | None) -> str:
    """Beta as text."""
    return "an array" if beta is None else f"{beta:g}"


def model_html(model: Model) -> html.Html:
    """A model as HTML, for notebooks."""
    state = "converged" if np.all(model.converged) else "not converged"
    return html.block([html.Html(f"<strong>sl1max.Model</strong>, {state}"), html.table(["", ""], summary_rows(model))])
