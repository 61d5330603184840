"""Training from presences against a background: the sample space, the features and penalties of Maxent."""

from __future__ import annotations

import copy
import warnings
from collections.abc import Sequence
from dataclasses import dataclass, replace
from numbers import Real

import numpy as np

from sl1max._data.binned import BinnedPoints, FeatureColumns
from sl1max._data.feature_table import (
    LINEAR,
    FeatureTable,
    choose_classes,
    default_betas,
    expand,
    means_and_penalties,
)
from sl1max._data.inputs import read_strengths
from sl1max._data.penalties import BlockPenalties
from sl1max._data.precision import check_values, find_imprecision
from sl1max.exceptions import ConvergenceWarning
from sl1max.training._density import DensityFit, fit_density, plain_penalties

SMALLEST_COVARIATE = 1e-100  # of the largest value: features are made of the squares and products


class SampleSpace:
    """The points of a background, and the presences that equal none of them.

    Parameters
    ----------
    background : float array of shape (n_background, n_covariates)
    background_weight : float array of shape (n_background,)
    presences : float array of shape (n_presences, n_covariates)
    presence_weight : float array of shape (n_presences,)
    unit : float
        Weight of an added presence of weight 1, as a point of the sample space.

    Attributes
    ----------
    points : float array of shape (n_points, n_covariates)
        The background, then the added presences.
    weight : float array of shape (n_points,)
        The default distribution q0, not normalised.
    n_background : int
    presences, presence_weight : float arrays
    presence : float array of shape (n_points,)
        The distribution of the presences over the points; sums to one.
    """

    def __init__(
        self,
        background: np.ndarray,
        background_weight: np.ndarray,
        presences: np.ndarray,
        presence_weight: np.ndarray,
        *,
        unit: float = 1.0,
    ):
        place = find_rows(presences, background)
        added = place < 0
        self.presences, self.presence_weight = presences, presence_weight
        self.points = np.concatenate([background, presences[added]])
        self.weight = np.concatenate([background_weight, unit * presence_weight[added]])
        place[added] = len(background) + np.arange(np.count_nonzero(added))
        self.presence = np.bincount(place, presence_weight / presence_weight.sum(), len(self.points))
        self.n_background = len(background)

    def select(self, covariates: Sequence[int]) -> SampleSpace:
        """Select covariates of the same points."""
        one = copy.copy(self)
        one.points, one.presences = self.points[:, covariates], self.presences[:, covariates]
        return one


@dataclass(frozen=True, eq=False)
class PresenceProblem:
    """The problem of training a model from presences.

    Attributes
    ----------
    table : FeatureTable
    columns : FeatureColumns
        The features at the points of the sample space.
    means : float array of shape (n_features,)
    costs : BlockPenalties
        A half-width of inf leaves the feature out.
    presence, q0 : float arrays of shape (n_points,)
        The distribution of the presences and the default distribution; each sums to one.
    classes : str
        Letters of the feature classes.
    n_presences : float
        The number of presences, or the sum of their weights.
    imprecision : str or None
        Why double precision cannot certify a model; None if it can.
    """

    table: FeatureTable
    columns: FeatureColumns
    means: np.ndarray
    costs: BlockPenalties
    presence: np.ndarray
    q0: np.ndarray
    classes: str
    n_presences: float
    imprecision: str | None

    @property
    def penalties(self) -> np.ndarray:
        """The half-width of the interval of every feature (n_features,)."""
        return self.costs.lower

    def train(self, *, tol: float = 1e-6, max_iter: int = 1000) -> DensityFit:
        """Train to the optimum, see `fit_density`."""
        fit = fit_density(self.columns, self.means, self.costs, self.presence, self.q0, tol=tol, max_iter=max_iter)
        if self.imprecision:
            warnings.warn(f"the model cannot be certified: {self.imprecision}", ConvergenceWarning, stacklevel=3)
            fit = replace(fit, converged=False)
        return fit


def pose_presences(
    space: SampleSpace,
    features: str,
    categorical: Sequence[int] = (),
    *,
    beta_multiplier: float = 1.0,
    beta_lqp: float | None = None,
    beta_categorical: float | None = None,
    beta_threshold: float | None = None,
    beta_hinge: float | None = None,
    l2: float = 0.0,
    min_weight: float | None = None,
    max_weight: float | None = None,
    positive: bool = False,
) -> PresenceProblem:
    """The features and penalties of Maxent for presences in a sample space.

    Parameters
    ----------
    space : SampleSpace
    features : str
        "auto" or letters of "lqpht".
    categorical : sequence of int
        Covariates whose values are categories.
    beta_multiplier, beta_lqp, beta_categorical, beta_threshold, beta_hinge :
        See `sl1max._data.feature_table.default_betas`.
    l2 : float
        Adds l2 / 2 times the square of each weight, times the penalty of its feature.
    min_weight, max_weight : float, optional
        Limits of all weights.
    positive : bool
        The same as a min_weight of 0.

    Returns
    -------
    PresenceProblem
    """
    strengths = read_strengths(
        1,
        1,
        l2=_number(l2, "l2"),
        min_weight=_number(min_weight, "min_weight"),
        max_weight=_number(max_weight, "max_weight"),
        positive=positive,
    )
    n = float(space.presence_weight.sum())
    check_values(space.points)
    spread = np.ptp(space.points, axis=0)
    spread[list(categorical)] = 0
    extent = np.abs(space.points).max(axis=0)
    imprecision = find_imprecision(space.points, extent, spread, 0.0, smallest_extent=SMALLEST_COVARIATE)
    classes = choose_classes(features, n)
    points = BinnedPoints(space.points)
    table = expand(points.points, space.presences, classes, categorical, points.values)
    betas = default_betas(
        n,
        classes,
        beta_multiplier,
        lqp=beta_lqp,
        categorical=beta_categorical,
        threshold=beta_threshold,
        hinge=beta_hinge,
    )
    means, penalties = means_and_penalties(table, space.presences, betas, space.presence_weight)
    if "l" not in classes:
        penalties[table.kind == LINEAR] = np.inf
    if imprecision is None:  # features are in [0, 1]
        ones = np.ones(len(penalties))
        imprecision = find_imprecision(None, ones, ones, penalties, mass=space.presence_weight)
    q0 = space.weight / space.weight.sum()
    columns = FeatureColumns(table, points)
    costs = plain_penalties(penalties)
    if strengths.l2 is not None:
        costs = costs._replace(l2=np.where(np.isinf(penalties), 0.0, strengths.l2 * penalties))
    if strengths.low is not None:
        costs = costs._replace(low=np.broadcast_to(strengths.low, penalties.shape))
    if strengths.high is not None:
        costs = costs._replace(high=np.broadcast_to(strengths.high, penalties.shape))
    return PresenceProblem(table, columns, means, costs, space.presence, q0, classes, n, imprecision)


def _number(value, name):
    if value is not None and (not isinstance(value, Real) or isinstance(value, bool)):
        raise ValueError(f"{name}={value!r} must be a number")
    return value


def find_rows(rows: np.ndarray, among: np.ndarray) -> np.ndarray:
    """Find the first equal row of another matrix, -1 if there is none."""
    candidates = np.arange(len(among))
    for j in range(rows.shape[1]):
        candidates = candidates[np.isin(among[candidates, j], rows[:, j])]
    place: dict[bytes, int] = {}
    for i in candidates.tolist():
        place.setdefault(row_key(among[i]), i)
    return np.array([place.get(row_key(row), -1) for row in rows], int)


def row_key(row: np.ndarray) -> bytes:
    """Return keys that are equal for equal rows, with 0.0 equal to -0.0."""
    return (row + 0.0).tobytes()
