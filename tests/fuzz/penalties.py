"""Elastic nets, intervals of two half-widths, signs and limits: every fit against a slow independent one.

Properties: those of `problems`; weights are within their limits and have their signs.
"""

from __future__ import annotations

import warnings

import numpy as np
from problems import MODELS, general_twins
from scipy import sparse

from fuzz.campaign import Campaign, check, strict_warnings
from fuzz.problems import attempt, check_certificate, check_model, check_same, make_values, weights_in

VALUES = ("binary", "unit", "signed", "counts", "lattice", "hostile")


def make_strengths(rng, n_features):
    """Options of the penalty for `fit`, and the same for the reference."""

    def strength(infinite=0.0):
        beta = 10.0 ** rng.uniform(-1.7, 0.5)
        if rng.random() < 0.5:
            return beta
        beta = beta * rng.uniform(0.5, 2, n_features)
        beta[rng.random(n_features) < infinite] = np.inf
        return beta

    if rng.random() < 0.15:
        C, share = 10.0 ** rng.uniform(-1, 2), rng.random()
        return {"C": C, "l1_ratio": share}, {"beta": share / C, "l2": (1 - share) / C}
    options = {"beta": strength()}
    if rng.random() < 0.4:
        options["beta_lower"] = strength(0.2)
    if rng.random() < 0.4:
        options["beta_upper"] = strength(0.2)
    if rng.random() < 0.5:
        options["l2"] = strength()
        if rng.random() < 0.3:
            options["beta"] = 0.0
    if rng.random() < 0.3:
        options["min_weight"] = -rng.uniform(0, 1, n_features) * rng.choice([0, 0.1, 3])
    if rng.random() < 0.3:
        options["max_weight"] = rng.uniform(0, 1) * rng.choice([0.1, 3])
    expected = dict(options)
    if "min_weight" not in options and rng.random() < 0.15:
        options["positive"] = True
        expected["min_weight"] = 0.0
    return options, expected


def check_limits(model, twins):
    """Weights are within their limits, which infinite strengths make zero."""
    for c, twin in enumerate(twins):
        _, lam, _, _ = weights_in(model, c, twin)
        _, _, _, low, high = twin.general
        check(np.all((lam >= low) & (lam <= high)), f"problem {c}: a weight outside of its limits")


def run(rng):
    distribution, label_mode = MODELS[rng.integers(len(MODELS))]
    n_classes, n_features = int(rng.integers(2, 5)), int(rng.integers(1, rng.choice([4, 12, 30])))
    n_samples = int(rng.choice([rng.integers(n_classes + 2, 14), rng.integers(14, 120)]))
    X = make_values(rng, str(rng.choice(VALUES)), n_samples, n_features)
    y = rng.permutation(np.concatenate([np.arange(n_classes), rng.integers(0, n_classes, n_samples - n_classes)]))
    strengths, expected = make_strengths(rng, n_features)
    rule = "count" if "C" in strengths else str(rng.choice(["deviation", "count"]))
    options = strengths | {
        "distribution": distribution, "label_mode": label_mode, "beta_rule": rule,
        "tol": float(10.0 ** rng.integers(-9, -2)), "offset": None,
    }  # fmt: skip
    outcomes = [attempt(form, y, options) for form in (X, sparse.csr_array(X), sparse.csc_matrix(X))]
    results = [result for result, _ in outcomes]
    check_same(results, X)
    check(not isinstance(results[0], ValueError), f"refused: {results[0]}")
    for model, seen in outcomes:
        with strict_warnings():
            check_model(model, X, seen, options)
    with np.errstate(all="ignore"), warnings.catch_warnings():
        warnings.simplefilter("ignore")
        twins, optima = general_twins(X, y, distribution, label_mode, rule, expected), {}
        for model in results[:2]:
            check_limits(model, twins)
        try:
            for model in results[:2]:
                check_certificate(model, twins, optima)
        except np.linalg.LinAlgError:
            return "no reference"
    return "converged" if np.all([np.all(model.converged) for model in results]) else "stalled"


def set_up(folder):
    return run


CAMPAIGN = Campaign(set_up, share=2.0)
