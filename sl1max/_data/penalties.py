"""Penalties beta_cj of each class and feature, computed from beta."""

from __future__ import annotations

import copy
from typing import NamedTuple

import numpy as np
from scipy import sparse

from sl1max._data.inputs import Data, Strengths
from sl1max._data.moments import IN_CLASS, ClassSums, Moments
from sl1max._utils.typing import DataMatrix


class BlockPenalties(NamedTuple):
    """What the weights of a block, or of some of its features, cost: arrays (n_features,)."""

    lower: np.ndarray  # of positive weights
    upper: np.ndarray  # of negative weights
    l2: np.ndarray
    low: np.ndarray  # limits
    high: np.ndarray

    @property
    def mirrored(self) -> BlockPenalties:
        """Those of the weights' negatives."""
        return BlockPenalties(self.upper, self.lower, self.l2, -self.high, -self.low)


class Penalties:
    """Penalties beta_cj of every class block, one row at a time.

    With m the total weight of the examples, for class-conditional models that of the class's own examples:

    - ``"count"``: beta / m;
    - ``"deviation"``: beta sigma_cj / sqrt(m), sigma_cj the standard deviation of the feature under the
      empirical distribution of the model: over the class's own examples (class-conditional), else over all pairs of
      example and class, the feature being zero outside its class. It is at least that of a feature that occurs once,
      range sqrt(1/m (1 - 1/m)), and half the range for m below 2. Otherwise a feature that the class lacks, or that all
      its examples have, would be unpenalised.

    The L2 penalty is l2 / m, or l2 sigma_cj^2 / sqrt(m) with the same sigma: scaling a feature changes nothing.

    A feature that cannot differ between the cells of a block has no effect and is left out (inf).

    Parameters
    ----------
    data, moments : the training set
    distribution : str
    strengths : Strengths
        Entries of 0 stay 0 (unpenalised), inf stays inf (leave out).
    """

    def __init__(self, data: Data, moments: Moments, distribution, strengths: Strengths):
        self._moments = moments
        self.strengths = strengths
        self.rule = strengths.rule
        self._support = None
        self._within_class = distribution == "class-conditional"
        self._of_none: dict[tuple[str, int], np.ndarray] = {}
        low, high = data.columns.low[:-1], data.columns.high[:-1]
        if not self._within_class:
            low, high = np.minimum(low, 0), np.maximum(high, 0)
        self._range = high - low
        if self.rule == "deviation":
            self._set_up_deviation(data, low, high)

    def _set_up_deviation(self, data, low, high):
        """Compute moments of the columns, shifted and scaled to [-1, 1] to avoid rounding errors."""
        if data.binary:
            self._scale = np.ones(len(low))
            self._first = self._second = self._moments.sums
            return
        shift = low if self._within_class else np.zeros(len(low))
        matrix: DataMatrix = data.matrix
        if sparse.issparse(matrix):
            shift = np.where(np.diff(matrix.indptr) == matrix.shape[0], shift, 0)
        self._scale = np.maximum(high - shift, shift - low)
        self._scale[self._scale == 0] = 1
        unit = scale_columns(data.matrix, shift, self._scale)
        self._first = ClassSums(unit, self._moments.cells, data.mass)
        self._second = ClassSums(square(unit), self._moments.cells, data.mass)

    def on(self, data: Data, moments: Moments) -> Penalties:
        """Return the penalties for other examples of the same classes."""
        return Penalties(data, moments, "class-conditional" if self._within_class else "", self.strengths)

    def with_strengths(self, strengths: Strengths) -> Penalties:
        """The same examples and rule, for other strengths."""
        other = copy.copy(self)
        other.strengths, other._of_none = strengths, {}
        return other

    def restricted(self, support) -> Penalties:
        """The same penalties with all other features left out: ``support(c, side)`` lists those of a block."""
        other = copy.copy(self)
        other._support = support
        return other

    @property
    def is_restricted(self) -> bool:
        """Whether features outside of a support are left out."""
        return self._support is not None

    @property
    def beta(self) -> np.ndarray:
        return self.strengths.beta

    def block(self, c, side, cols=None):
        """beta_cj of block (c, side), a new array (n_features,); or those of some columns."""
        return self._leave_out(self._scaled("beta", c, side, cols), c, side, cols)

    def general(self, c, side) -> BlockPenalties:
        """All about the weights of block (c, side), as if they were the class's: a non-class has them mirrored."""
        strengths = self.strengths
        lower = self.block(c, side)
        upper = lower
        if strengths.beta_upper is not None:
            upper = self._leave_out(self._scaled("beta_upper", c, side, None), c, side, None)
        l2 = np.zeros_like(lower) if strengths.l2 is None else self._scaled("l2", c, side, None)
        limits = (
            np.broadcast_to(none if value is None else value[c] if value.ndim == 2 else value, lower.shape)
            for value, none in ((strengths.low, -np.inf), (strengths.high, np.inf))
        )
        return BlockPenalties(lower, upper, np.where(np.isinf(l2), 0.0, l2), *limits)

    def _leave_out(self, beta, c, side, cols):
        """inf outside of the support, if there is one."""
        if self._support is None:
            return beta
        outside = np.ones(self._range.shape, bool)
        outside[self._support(c, side)] = False
        return np.where(_take(outside, cols), np.inf, beta)

    def _scaled(self, name, c, side, cols):
        """A strength times the unit of the rule.

        Features that the class lacks have what a class without examples would have: only the others are computed.
        """
        mass = self._mass_of(c, side)
        strength = getattr(self.strengths, name)
        if cols is not None or self.rule != "deviation" or strength.ndim == 2:
            return self._at(name, c, side, mass, cols)
        features = self._moments.features(c)
        if features is None:
            return self._at(name, c, side, mass, None)
        values = self._at(name, None, side, mass, None) if self._within_class else self._lacking(name, side).copy()
        values[features] = self._at(name, c, side, mass, features)
        return values

    def of_others(self):
        """beta_cj of a class without examples (n_features,): what classes have for the features that they lack."""
        if self.beta.ndim == 2:
            return self._at("beta", 0, IN_CLASS, self._moments.mass, None)
        return self._lacking("beta", IN_CLASS)

    @property
    def least(self) -> np.ndarray:
        """Lower bounds of the penalties of every feature (n_features,), over all blocks."""
        mass = self._moments.mass
        unit = 1 / mass if self.rule == "count" else _seen_once(mass) * self._range / np.sqrt(mass)
        upper = self.strengths.beta_upper
        beta = self.beta if upper is None else np.minimum(self.beta, upper)
        beta = beta.min(axis=0) if beta.ndim == 2 else beta
        return np.broadcast_to(_multiply(beta, unit), self._range.shape)

    @property
    def some_free(self) -> bool:
        """Whether some weight has no penalty."""
        return self.strengths.some_free

    def _mass_of(self, c, side):
        return self._moments.block_mass(c, side) if self._within_class else self._moments.mass

    def _lacking(self, name, side):
        """The penalties of a class without examples, over the mass of all."""
        if (name, side) not in self._of_none:
            self._of_none[name, side] = self._at(name, None, side, self._moments.mass, None)
        return self._of_none[name, side]

    def _at(self, name, c, side, mass, cols):
        """A strength times its unit, of some columns or of all; c is None: of a class without examples."""
        reach = _take(self._range, cols)
        power = 2 if name == "l2" else 1
        unit = 1 / mass if self.rule == "count" else self._deviation(c, side, mass, cols) ** power / np.sqrt(mass)
        varies = reach > 0
        beta = getattr(self.strengths, name)
        beta = beta[c] if beta.ndim == 2 else beta
        beta = _take(beta, cols) if beta.ndim else beta
        if np.ndim(unit):
            unit = np.where(varies, unit, 1)
        return np.where(varies, _multiply(beta, unit), np.inf)

    def _deviation(self, c, side, mass, cols):
        seen_once = _seen_once(mass)
        if c is None and side == IN_CLASS:
            return seen_once * _take(self._range, cols)
        mean = self._first.block(c, side, cols) / mass
        variance = self._second.block(c, side, cols) / mass - mean**2
        spread = _take(self._scale, cols) * np.sqrt(np.maximum(variance, 0))
        return np.maximum(spread, seen_once * _take(self._range, cols))


def _seen_once(mass):
    """Standard deviation of a feature that is 1 in one example and 0 in the others; 0.5 for a mass below two."""
    return 0.5 if mass < 2 else np.sqrt(1 / mass * (1 - 1 / mass))


def _multiply(beta, unit):
    """beta * unit; inf, which leaves a feature out, where beta is inf or the product overflows."""
    with np.errstate(over="ignore", invalid="ignore"):
        return np.where(np.isinf(beta), np.inf, beta * unit)


def _take(values, cols):
    return values if cols is None else values[cols]


def scale_columns(matrix: DataMatrix, shift: np.ndarray, scale: np.ndarray) -> DataMatrix:
    """(matrix - shift) / scale, where shift is 0 in every column with zeros that are not stored."""
    if not sparse.issparse(matrix):
        return (matrix - shift) / scale
    column = np.repeat(np.arange(matrix.shape[1]), np.diff(matrix.indptr))
    data = (matrix.data - shift[column]) / scale[column]
    return sparse.csc_array((data, matrix.indices, matrix.indptr), shape=matrix.shape)


def square(matrix: DataMatrix) -> DataMatrix:
    """Square the values of a matrix."""
    if not sparse.issparse(matrix):
        return matrix * matrix
    return sparse.csc_array((matrix.data**2, matrix.indices, matrix.indptr), shape=matrix.shape)
