"""Models as the files of the Java program Maxent hold them, with the suffix .lambdas: prediction, reading, writing.

A file has a line "name, lambda, min, max" for each feature, and four of totals:

    v, v^2, v*w      linear, quadratic, product; min and max scale them to [0, 1]
    'v, `v           forward and reverse hinge, from min to max
    (k<v), (v=a)     threshold and category
    linearPredictorNormalizer, densityNormalizer, numBackgroundPoints, entropy
"""

from __future__ import annotations

import os
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from sl1max._data.covariates import Covariates
from sl1max._data.curves import Curves
from sl1max._data.feature_table import (
    CATEGORY,
    HINGE,
    LINEAR,
    PRODUCT,
    QUADRATIC,
    REVERSE_HINGE,
    THRESHOLD,
    FeatureTable,
)
from sl1max._utils.files import atomic_write
from sl1max.exceptions import ModelFileError

OUTPUTS = ("cloglog", "logistic", "raw", "cumulative")
DEFAULT_PREVALENCE = 0.5
LARGEST_NUMBER = 1e50  # of a file; products of weights and features stay finite
LARGEST_ENTROPY = 700.0  # exp of it stays finite
CUMULATIVE = "raw_values", "cumulative_values"
SAME = 1e-10  # relative difference of raw values that are equal but for rounding
TOTALS = ("linearPredictorNormalizer", "densityNormalizer", "numBackgroundPoints", "entropy")


@dataclass(frozen=True, eq=False, repr=False)
class LambdasModel:
    """A Maxent model: features with their weights, and the totals that turn scores into probabilities.

    Attributes
    ----------
    covariates : Covariates
    table : FeatureTable
    weights : float array of shape (n_features,)
        lambda.
    linear_predictor_normalizer : float
        The greatest score over the sample space, which is subtracted from every score.
    density_normalizer : float
        Sum of exp(score) over the sample space.
    n_background : float
        Number of points of the sample space.
    entropy : float
        H of the raw distribution over the sample space.
    raw_values, cumulative_values : float arrays, optional
        Raw values of the sample space, ascending, and their cumulative values: for the cumulative output. A .lambdas
        file does not have them.
    """

    covariates: Covariates
    table: FeatureTable
    weights: np.ndarray
    linear_predictor_normalizer: float
    density_normalizer: float
    n_background: float
    entropy: float
    raw_values: np.ndarray | None = None
    cumulative_values: np.ndarray | None = None

    def __repr__(self) -> str:
        return (
            f"<sl1max.species.LambdasModel: {len(self.covariates.names)} covariates, "
            f"{np.count_nonzero(self.weights)} features with a weight, {self.n_background:g} background points>"
        )

    @property
    def feature_names(self) -> list[str]:
        """Names of the covariates, in the order of the columns of an array X."""
        return list(self.covariates.names)

    def linear_predictor(self, X: Any, *, clamp: bool = True) -> np.ndarray:
        """Scores: at most 0 over the sample space.

        Parameters
        ----------
        X : array or frame of shape (n_points, n_covariates)
            The columns of a frame are found by name. A point with a missing value has the score nan.
        clamp : bool
            Keep covariates, then features, within their range in training.

        Returns
        -------
        float array of shape (n_points,)
        """
        return self.score(self.covariates.encode(X), clamp=clamp)

    def score(self, V: np.ndarray, *, clamp: bool = True) -> np.ndarray:
        """`linear_predictor` of encoded covariates."""
        return self.curves(clamp=clamp).score(V.T) - self.linear_predictor_normalizer

    def curves(self, *, clamp: bool = True) -> Curves:
        """The scores as curves of the covariates, before linear_predictor_normalizer is subtracted."""
        return Curves(self.table, self.weights, len(self.covariates.names), clamp=clamp)

    def predict(self, X: Any, *, output: str = "cloglog", clamp: bool = True) -> np.ndarray:
        """Predictions as the Java program makes them.

        Parameters
        ----------
        X : array or frame of shape (n_points, n_covariates)
            The columns of a frame are found by name. A point with a missing value has the prediction nan.
        output : {"cloglog", "logistic", "raw", "cumulative"}
            raw: probability, which sums to one over the sample space; at most 1. cloglog: 1 - exp(-raw e^H).
            logistic: t raw e^H / (1 - t + t raw e^H) with t = 1/2. cumulative: 100 times the share of the sample space,
            by probability, where raw is at most that of the point.
        clamp : bool
            Keep covariates, then features, within their range in training.

        Returns
        -------
        float array of shape (n_points,)
        """
        return self.transform_score(self.linear_predictor(X, clamp=clamp), output)

    def transform_score(self, score: np.ndarray, output: str) -> np.ndarray:
        """Predictions from scores."""
        if output not in OUTPUTS:
            raise ValueError(f"output must be one of {', '.join(OUTPUTS)}, got {output!r}")
        raw = np.exp(np.minimum(score - np.log(self.density_normalizer), 0.0))
        if output == "raw":
            return raw
        if output == "cumulative":
            return self._cumulative(raw)
        odds = raw * np.exp(self.entropy)
        if output == "cloglog":
            return -np.expm1(-odds)
        return DEFAULT_PREVALENCE * odds / (1 - DEFAULT_PREVALENCE + DEFAULT_PREVALENCE * odds)

    def _cumulative(self, raw):
        if self.raw_values is None:
            raise ValueError("the cumulative output needs the raw values of the background, which .lambdas files lack")
        # In between, values are interpolated; below the least, towards 0.
        return np.interp(raw, np.append(0.0, self.raw_values), np.append(0.0, self.cumulative_values))

    def with_background(self, X: Any) -> LambdasModel:
        """The same model with the raw values of the points it was trained on, for the cumulative output.

        Parameters
        ----------
        X : array or frame of shape (n_points, n_covariates)
            The background; points with a missing value are left out.

        Returns
        -------
        LambdasModel
        """
        raw = self.predict(X, output="raw")
        raw = raw[~np.isnan(raw)]
        if not len(raw):
            raise ValueError("every point of the background has a missing value")
        return replace(self, **dict(zip(CUMULATIVE, cumulate(raw, np.ones(len(raw))), strict=True)))

    def decision_function(self, X: Any, *, clamp: bool = True) -> np.ndarray:
        """ln(raw e^H) - ln ln 2: 0 where cloglog is 1/2.

        Parameters
        ----------
        X : array or frame of shape (n_points, n_covariates)
        clamp : bool

        Returns
        -------
        float array of shape (n_points,)
        """
        return self.decide(self.linear_predictor(X, clamp=clamp))

    def decide(self, score: np.ndarray) -> np.ndarray:
        """`decision_function` from scores."""
        return score - np.log(self.density_normalizer) + self.entropy - np.log(np.log(2.0))

    def to_lambdas(self, path: str | os.PathLike[str]) -> None:
        """Write the model to a .lambdas file, which the Java program reads.

        Features without a weight are left out, except linear ones, whose ranges clamp the covariates, and the first
        category of each covariate, which says that it is one.

        Parameters
        ----------
        path : str or path-like
        """
        if not self.covariates.have_numeric_categories:
            raise ValueError("a .lambdas file holds categories that are numbers only; replace the others by numbers")
        for name in self.covariates.names:
            if any(mark in name for mark in ",*=<'`()^\n"):
                raise ValueError(f"a .lambdas file cannot hold a covariate named {name!r}")
        table, names = self.table, self.table.term_names(self.covariates.names)
        shown = (self.weights != 0) | (table.kind == LINEAR)
        category = np.flatnonzero(table.kind == CATEGORY)
        shown[category[np.unique(table.first[category], return_index=True)[1]]] = True
        lines = [
            f"{names[j]}, {self.weights[j].item()!r}, {table.low[j].item()!r}, {table.high[j].item()!r}"
            for j in np.flatnonzero(shown)
        ]
        totals = (self.linear_predictor_normalizer, self.density_normalizer, self.n_background, self.entropy)
        lines += [
            f"{name}, {int(value) if name == 'numBackgroundPoints' else float(value)!r}"
            for name, value in zip(TOTALS, totals, strict=True)
        ]
        with atomic_write(path) as stream:
            stream.write("".join(f"{line}\n" for line in lines).encode())


def cumulate(raw: np.ndarray, weight: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Distinct raw values, ascending, and the percentage of the mass at points with at most that value."""
    order = np.argsort(raw, kind="stable")
    cumulative = np.cumsum((weight * raw)[order])
    raw = raw[order]
    last = np.append(np.diff(raw) > SAME * raw[1:], True)
    return raw[last], cumulative[last] * (100 / cumulative[-1])


def read_lambdas(path: str | os.PathLike[str], *, feature_names: Sequence[str] | None = None) -> LambdasModel:
    """Read a .lambdas file of Maxent or of `LambdasModel.to_lambdas`.

    Parameters
    ----------
    path : str or path-like
    feature_names : sequence of str, optional
        The covariates in the order of the columns of arrays that predictions will be made for. By default those that
        are categories come first, then the others in the order of the file.

    Returns
    -------
    LambdasModel

    Raises
    ------
    ModelFileError
        The file is not such a model.
    """
    with open(path, encoding="utf-8") as stream:
        try:
            lines = [line.strip() for line in stream]
        except UnicodeDecodeError as error:
            raise ModelFileError(f"{os.fspath(path)} is not a .lambdas file: {error}") from None
    rows, totals = [], {}
    for n, line in enumerate(lines, 1):
        if not line:
            continue
        try:
            name, *numbers = line.split(",")
            numbers = [float(number) for number in numbers]
            if name in TOTALS:
                (totals[name],) = numbers
                _check_total(name, *numbers)
            else:
                rows.append((*_parse_term(name, numbers), *numbers))
                _check_term(*rows[-1])
        except ValueError:
            raise ModelFileError(
                f"{os.fspath(path)}, line {n}: not a feature of a .lambdas file: {line[:60]!r}"
            ) from None
    missing = [name for name in TOTALS if name not in totals]
    if missing:
        raise ModelFileError(f"{os.fspath(path)} is not a .lambdas file, or is cut short: it has no {missing[0]}")
    if not rows:
        raise ModelFileError(f"{os.fspath(path)} has no features")
    return _make_model(rows, totals, feature_names, path)


def _parse_term(name, numbers):
    """(kind, first, second, value) of a feature."""
    _weight, _low, _high = numbers
    if "*" in name:
        first, second = name.split("*")
        return PRODUCT, first, second, np.nan
    if name.endswith("^2"):
        return QUADRATIC, name[:-2], name[:-2], np.nan
    if name.startswith("(") and name.endswith(")"):
        if "=" in name:
            covariate, value = name[1:-1].rsplit("=", 1)
            return CATEGORY, covariate, covariate, float(value)
        value, covariate = name[1:-1].split("<", 1)
        return THRESHOLD, covariate, covariate, float(value)
    if name[:1] in ("'", "`"):
        return HINGE if name[0] == "'" else REVERSE_HINGE, name[1:], name[1:], np.nan
    if not name:
        raise ValueError
    return LINEAR, name, name, np.nan


def _check_total(name, value):
    """Raise ValueError if a number is impossible."""
    low, high = {
        "densityNormalizer": (0.0, np.inf),
        "entropy": (-LARGEST_ENTROPY, LARGEST_ENTROPY),
        "numBackgroundPoints": (0.0, LARGEST_NUMBER),
    }.get(name, (-LARGEST_NUMBER, LARGEST_NUMBER))
    if not low <= value <= high or (name == "densityNormalizer" and not 0 < value < np.inf):
        raise ValueError


def _check_term(kind, first, second, value, weight, low, high):
    """Raise ValueError if a number is impossible."""
    sizes = [abs(number) for number in (weight, low, high, *[value] * (kind in (CATEGORY, THRESHOLD)))]
    if not all(size <= LARGEST_NUMBER for size in sizes) or low > high or (kind == QUADRATIC and low < 0):
        raise ValueError


def _make_model(rows, totals, feature_names, path):
    found = dict.fromkeys(name for row in rows for name in row[1:3])
    categorical = {row[1] for row in rows if row[0] == CATEGORY}
    both = categorical & {name for row in rows if row[0] != CATEGORY for name in row[1:3]}
    if both:
        raise ModelFileError(f"{os.fspath(path)}: {min(both)!r} has categories and other features")
    names = (
        list(feature_names) if feature_names is not None else sorted(found, key=lambda name: name not in categorical)
    )
    missing = [name for name in found if name not in names]
    if missing:
        raise ValueError(f"feature_names lacks {missing[0]!r}, a covariate of {os.fspath(path)}")
    place = {name: j for j, name in enumerate(names)}
    kind, first, second, value, weights, low, high = zip(*rows, strict=True)
    table = FeatureTable(
        np.array(kind, np.int8),
        np.array([place[name] for name in first], np.int32),
        np.array([place[name] for name in second], np.int32),
        *(np.array(part, float) for part in (value, low, high)),
    )
    categories = {
        place[name]: np.unique(table.value[(table.kind == CATEGORY) & (table.first == place[name])])
        for name in found
        if name in categorical
    }
    return LambdasModel(
        Covariates(tuple(names), categories),
        table,
        np.array(weights, float),
        *(totals[name] for name in TOTALS),
    )
