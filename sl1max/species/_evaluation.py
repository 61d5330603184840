"""How well a model tells presences from the background: gains, AUC, omission against predicted area, thresholds.

A point counts as predicted present where the raw output is at least the threshold. The area is the share of the sample
space that is predicted present, the omission the share of presences that is not.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import ArrayLike
from scipy.stats import binom

from sl1max.model._explain import Table, make_table
from sl1max.species._model import SpeciesModel, read_points, read_rows
from sl1max.training._presences import SampleSpace

FIXED_CUMULATIVE = (1, 5, 10)
PERCENTILE = 10  # of the training presences
# The balance threshold minimises this sum.
BALANCE_OMISSION, BALANCE_CUMULATIVE, BALANCE_AREA = 6.0, 0.04, 1.6


@dataclass(frozen=True, eq=False, repr=False)
class Evaluation:
    """Figures of a trained model.

    Attributes
    ----------
    n_presences, n_background : float
        Numbers of training presences and of points of the sample space, or the sums of their weights.
    gain, unregularized_gain : float
        Over the uniform distribution, at the training presences; ``gain`` is nan of a model read from a file.
    n_iter : int
        Rounds of training.
    auc : float
        Area under the ROC curve, training presences against the sample space.
    entropy : float
        Of the raw distribution.
    prevalence : float
        Mean suitability of the sample space.
    n_test : int
        Number of test presences.
    test_gain, test_auc, test_auc_std : float
        Unregularised gain and AUC at the test presences, and the standard deviation of the AUC (DeLong, DeLong
        and Clarke-Pearson 1988); nan without test presences.
    thresholds : Table
        Columns ``rule``, ``cumulative``, ``suitability`` and ``raw`` (the threshold in each output), ``area``,
        ``training_omission``; with test presences also ``test_omission`` and ``p_value``, that of the one-sided
        binomial test whether as many of them would lie in an area of that size by chance.
    curve : Table
        The same columns for every threshold: each raw value of presences or sample space.
    output : {"cloglog", "logistic"}
        Which output ``suitability`` is.
    """

    n_presences: float
    n_background: float
    gain: float
    unregularized_gain: float
    n_iter: int
    auc: float
    entropy: float
    prevalence: float
    n_test: int
    test_gain: float
    test_auc: float
    test_auc_std: float
    thresholds: Table
    curve: Table
    output: str

    def __repr__(self) -> str:
        test = f", test AUC {self.test_auc:.4f} of {self.n_test}" if self.n_test else ""
        return (
            f"<sl1max.species.Evaluation: {self.n_presences:g} presences, gain {self.gain:.4f}, "
            f"AUC {self.auc:.4f}{test}>"
        )


def evaluate(
    model: SpeciesModel,
    X: Any,
    y: ArrayLike,
    *,
    test_presences: Any = None,
    sample_weight: ArrayLike | None = None,
) -> Evaluation:
    """Gains, AUC, omission against predicted area and thresholds, as in the maxentResults.csv of Maxent 3.4.4.

    Parameters
    ----------
    model : SpeciesModel
        Trained.
    X : array or frame of shape (n_rows, n_covariates)
        The training set: background points and presences.
    y : array of shape (n_rows,)
        Its labels.
    test_presences : array or frame of shape (n_test, n_covariates), optional
        Covariates of presences that were not used in training.
    sample_weight : array of shape (n_rows,), optional
        The weights used in training.

    Returns
    -------
    Evaluation

    Examples
    --------
    >>> import numpy as np
    >>> from sl1max.species import SpeciesModel, evaluate
    >>> rng = np.random.default_rng(0)
    >>> X = np.concatenate([rng.uniform(0, 10, (500, 1)), rng.normal(7, 1, (40, 1))])
    >>> y = np.arange(540) >= 500
    >>> model = SpeciesModel().fit(X, y)
    >>> evaluate(model, X, y).thresholds["rule"][3].item()
    'minimum training presence'
    """
    space = read_rows(model, X, y, sample_weight).sample_space()
    test = None if test_presences is None else read_points(model, test_presences)
    return evaluate_space(model, space, test)


def evaluate_space(model: SpeciesModel, space: SampleSpace, test: np.ndarray | None = None) -> Evaluation:
    """`evaluate` on encoded covariates."""
    suitability_of = "logistic" if model.output == "logistic" else "cloglog"
    lambdas = model.model_
    score = lambdas.score(space.points, clamp=model.clamp)
    presence = lambdas.score(space.presences, clamp=model.clamp)
    raw, presence_raw = (lambdas.transform_score(one, "raw") for one in (score, presence))
    if test is not None and len(test):
        test_score = lambdas.score(test, clamp=model.clamp)
        test_raw = lambdas.transform_score(test_score, "raw")
        test_auc, test_auc_std = auc_and_error(test_score, score, space.weight)
        test_gain = unregularized_gain(model, test_score, np.ones(len(test)))
    else:
        test_raw, test_auc, test_auc_std, test_gain = None, np.nan, np.nan, np.nan
    curve = _omission_curve(raw, space.weight, presence_raw, space.presence_weight, test_raw)
    curve["suitability"] = _suitability(lambdas, curve["raw"], suitability_of)
    rules = find_thresholds(curve, presence_raw, space.presence_weight, np.exp(model.entropy_) / space.weight.sum())
    return Evaluation(
        n_presences=float(space.presence_weight.sum()),
        n_background=float(space.weight.sum()),
        gain=model.gain_,
        unregularized_gain=unregularized_gain(model, presence, space.presence_weight),
        n_iter=model.n_iter_,
        auc=auc(presence, score, space.presence_weight, space.weight),
        entropy=model.entropy_,
        prevalence=float(space.weight @ lambdas.transform_score(score, suitability_of) / space.weight.sum()),
        n_test=0 if test_raw is None else len(test_raw),
        test_gain=test_gain,
        test_auc=test_auc,
        test_auc_std=test_auc_std,
        thresholds=_threshold_table(rules, curve),
        curve=make_table(**curve),
        output=suitability_of,
    )


def unregularized_gain(model: SpeciesModel, score: np.ndarray, weight: np.ndarray) -> float:
    """Mean log of the raw output at presences with these scores, above that of the uniform distribution."""
    lambdas = model.model_
    log_raw = np.minimum(score - np.log(lambdas.density_normalizer), 0.0)
    return float(weight @ log_raw / weight.sum() + np.log(lambdas.n_background))


def _suitability(lambdas, raw, output):
    return lambdas.transform_score(np.log(raw) + np.log(lambdas.density_normalizer), output)


# Area under the ROC curve


def auc(
    presence: np.ndarray,
    background: np.ndarray,
    presence_weight: np.ndarray | None = None,
    background_weight: np.ndarray | None = None,
) -> float:
    """How often a presence scores above a background point; ties count half.

    Parameters
    ----------
    presence, background : float arrays
        Scores.
    presence_weight, background_weight : float arrays, optional

    Returns
    -------
    float
    """
    weight = np.ones(len(presence)) if presence_weight is None else presence_weight
    below, tied, total = _count_below(presence, background, background_weight)
    return float(weight @ (below + tied / 2) / (weight.sum() * total))


def auc_and_error(
    presence: np.ndarray, background: np.ndarray, background_weight: np.ndarray | None = None
) -> tuple[float, float]:
    """`auc` and its standard deviation, by the unbiased estimate of DeLong, DeLong and Clarke-Pearson (1988, eq. 2).

    Parameters
    ----------
    presence, background : float arrays
        Scores.
    background_weight : float array, optional
        Weight 2 is the same as having the point twice.

    Returns
    -------
    auc, std : float
        The standard deviation is nan for one presence or one background point.
    """
    weight = np.ones(len(background)) if background_weight is None else background_weight
    n = len(presence)
    below, tied, total = _count_below(presence, background, weight)
    wins = below + tied / 2
    area = float(wins.mean() / total)
    if n < 2 or total <= 1:
        return area, np.nan
    above, tied_above, _ = _count_below(-background, -presence)
    losses = above + tied_above / 2
    # Means of products of two comparisons: of a presence with two points, of a point with two presences, with itself.
    squares = below + tied / 4
    e10 = ((wins**2 - squares) / (total * (total - 1))).mean() - area**2
    e01 = weight @ (losses**2 - above - tied_above / 4) / (total * n * (n - 1)) - area**2
    e11 = squares.mean() / total - area**2
    variance = ((total - 1) * e10 + (n - 1) * e01 + e11) / (n * total)
    return area, float(np.sqrt(max(variance, 0.0)))


def _count_below(scores, others, weight=None):
    """The weight of the others below each score, that of those equal to it, and that of all."""
    order = np.argsort(others, kind="stable")
    others = others[order]
    mass = np.append(0.0, np.cumsum(np.ones(len(others)) if weight is None else weight[order]))
    left, right = (mass[np.searchsorted(others, scores, side)] for side in ("left", "right"))
    return left, right - left, mass[-1]


# Thresholds


def _omission_curve(raw, weight, presence, presence_weight, test=None):
    """Columns of the curve, one entry for every distinct raw value, ascending."""
    value = np.unique(np.concatenate([raw, presence, *([] if test is None else [test])]))
    known = np.unique(raw)
    mass, total = _mass_below(raw, weight * raw, known, "right")
    below, n_points = _mass_below(raw, weight, value, "left")
    omitted, n_presences = _mass_below(presence, presence_weight, value, "left")
    curve = {
        "cumulative": np.interp(value, np.append(0.0, known), np.append(0.0, 100 * mass / total)),
        "suitability": np.empty(len(value)),
        "raw": value,
        "area": 1 - below / n_points,
        "training_omission": omitted / n_presences,
    }
    if test is not None:
        omitted, n = _mass_below(test, np.ones(len(test)), value, "left")
        curve["test_omission"] = omitted / n
        curve["p_value"] = binom.sf(n - omitted - 1, int(n), np.clip(curve["area"], 0.0, 1.0))
    return curve


def _mass_below(scores, weight, value, side):
    """The weight below each value ("left"), or up to it ("right"); and all of it."""
    order = np.argsort(scores, kind="stable")
    mass = np.append(0.0, np.cumsum(weight[order]))
    return mass[np.searchsorted(scores[order], value, side)], mass[-1]


def find_thresholds(
    curve: dict[str, np.ndarray], presence: np.ndarray, presence_weight: np.ndarray, entropy_area: float
) -> dict[str, int]:
    """Places of the thresholds of Maxent 3.4.4 in an omission curve.

    Parameters
    ----------
    curve : dict of float arrays
        ``cumulative``, ``raw``, ``area``, ``training_omission``, maybe ``test_omission``; raw ascends.
    presence, presence_weight : float arrays
        Raw values and weights of the training presences.
    entropy_area : float
        The area of the uniform distribution that has the entropy of the model.

    Returns
    -------
    dict of str to int
        The first threshold that meets the rule. A rule that no threshold meets is left out.
    """
    cumulative, raw, area = curve["cumulative"], curve["raw"], curve["area"]
    rules = {f"fixed cumulative value {value}": _first(cumulative >= value) for value in FIXED_CUMULATIVE}
    order = np.argsort(presence, kind="stable")
    below = np.append(0.0, np.cumsum(presence_weight[order]))[:-1]
    percentile = presence[order][np.flatnonzero(below <= presence_weight.sum() * PERCENTILE / 100)[-1]]
    rules["minimum training presence"] = _first(raw >= presence.min())
    rules[f"{PERCENTILE} percentile training presence"] = _first(raw >= percentile)
    for name in ("training", "test"):
        omission = curve.get(f"{name}_omission")
        if omission is not None:
            rules[f"equal {name} sensitivity and specificity"] = int(np.argmin(np.abs(omission - area)))
            rules[f"maximum {name} sensitivity plus specificity"] = int(np.argmin(omission + area))
    omission = curve["training_omission"]
    balance = BALANCE_OMISSION * omission + BALANCE_CUMULATIVE * cumulative + BALANCE_AREA * area
    rules["balance training omission, predicted area and threshold value"] = int(np.argmin(balance))
    rules["equate entropy of thresholded and original distributions"] = _first(area < entropy_area)
    return {rule: place for rule, place in rules.items() if place is not None}


def _first(mask):
    return int(np.argmax(mask)) if mask.any() else None


def _threshold_table(rules, curve):
    place = np.fromiter(rules.values(), int)
    columns = {name: column[place] for name, column in curve.items()}
    for k, rule in enumerate(rules):
        if rule.startswith("fixed"):
            columns["cumulative"][k] = float(rule.split()[-1])
    return make_table(rule=np.array(list(rules)), **columns)
