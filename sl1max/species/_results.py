"""Figures of models in the form of the maxentResults.csv of Maxent 3.4.4."""

from __future__ import annotations

import csv
import io
import os
from collections.abc import Mapping, Sequence
from typing import Any

from sl1max._utils.files import atomic_write
from sl1max.model._explain import Table
from sl1max.species._evaluation import Evaluation

JACKKNIFE = {  # column of the table: heading
    "gain_without": "Training gain without {}",
    "gain_only": "Training gain with only {}",
    "test_gain_without": "Test gain without {}",
    "test_gain_only": "Test gain with only {}",
    "test_auc_without": "AUC without {}",
    "test_auc_only": "AUC with only {}",
}
THRESHOLD = {  # column of the table: heading
    "cumulative": "{rule} cumulative threshold",
    "suitability": "{rule} {output} threshold",
    "area": "{rule} area",
    "training_omission": "{rule} training omission",
    "test_omission": "{rule} test omission",
    "p_value": "{rule} binomial probability",
}
PREVALENCE = "Prevalence (average probability of presence over background sites)"


def results_row(
    species: str,
    evaluation: Evaluation,
    *,
    contribution: Table | None = None,
    importance: Table | None = None,
    jackknife: Table | None = None,
) -> dict[str, Any]:
    """The figures of a model, named and ordered as in a maxentResults.csv.

    Parameters
    ----------
    species : str
    evaluation : Evaluation
    contribution, importance, jackknife : Table, optional
        What `percent_contribution`, `permutation_importance` and `jackknife` return.

    Returns
    -------
    dict

    Examples
    --------
    >>> import numpy as np
    >>> from sl1max.species import SpeciesModel, evaluate, results_row
    >>> rng = np.random.default_rng(0)
    >>> X = np.concatenate([rng.uniform(0, 10, (500, 1)), rng.normal(7, 1, (40, 1))])
    >>> y = np.arange(540) >= 500
    >>> row = results_row("fir", evaluate(SpeciesModel().fit(X, y), X, y))
    >>> row["Species"], row["#Training samples"], round(row["Training AUC"], 2)
    ('fir', 40, 0.82)
    """
    row = {
        "Species": species,
        "#Training samples": _count(evaluation.n_presences),
        "Regularized training gain": evaluation.gain,
        "Unregularized training gain": evaluation.unregularized_gain,
        "Iterations": evaluation.n_iter,
        "Training AUC": evaluation.auc,
    }
    if evaluation.n_test:
        row |= {
            "#Test samples": evaluation.n_test,
            "Test gain": evaluation.test_gain,
            "Test AUC": evaluation.test_auc,
            "AUC Standard Deviation": evaluation.test_auc_std,
        }
    row["#Background points"] = _count(evaluation.n_background)
    for table, column, heading in (
        (contribution, "contribution", "{} contribution"),
        (importance, "importance", "{} permutation importance"),
        *((jackknife, column, heading) for column, heading in JACKKNIFE.items()),
    ):
        if table is not None and column in table.columns:
            row |= _by_covariate(table, column, heading)
    row |= {"Entropy": evaluation.entropy, PREVALENCE: evaluation.prevalence}
    thresholds, output = evaluation.thresholds, evaluation.output.capitalize()
    for k, rule in enumerate(thresholds["rule"].tolist()):
        rule = rule[0].upper() + rule[1:]
        for column, heading in THRESHOLD.items():
            if column in thresholds.columns:
                row[heading.format(rule=rule, output=output)] = thresholds[column][k].item()
    return row


def _count(value):
    return int(value) if value == int(value) else value


def _by_covariate(table, column, heading):
    return {
        heading.format(name): value
        for name, value in zip(table["covariate"].tolist(), table[column].tolist(), strict=True)
    }


def write_results(path: str | os.PathLike[str], rows: Sequence[Mapping[str, Any]]) -> None:
    """Write the figures of several models to a CSV file like maxentResults.csv.

    Parameters
    ----------
    path : str or path-like
    rows : sequence of dict
        What `results_row` returns. A figure that a row lacks is left empty.
    """
    names = list(dict.fromkeys(name for row in rows for name in row))
    text = io.StringIO(newline="")
    writer = csv.DictWriter(text, names, restval="", lineterminator="\n")
    writer.writeheader()
    writer.writerows({name: _format(value) for name, value in row.items()} for row in rows)
    with atomic_write(path) as stream:
        stream.write(text.getvalue().encode())


def _format(value):
    return f"{value:.6g}" if isinstance(value, float) else value
