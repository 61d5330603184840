"""The rules that turn beta into one penalty per class and feature, beta_cj."""

from __future__ import annotations

import numpy as np
from scipy import sparse

from sl1max.inputs import Data
from sl1max.moments import ClassSums, Moments


class Penalties:
    """beta_cj of every block of classes, one row at a time.

    With m the total weight of the examples, for class-conditional models that of the class's own examples:

    - ``"count"``: beta / m;
    - ``"deviation"``: beta sigma_cj / sqrt(m), sigma_cj the standard deviation of the feature under the
      empirical distribution of the model: over the class's own examples (class-conditional), else over all
      cells, the feature being zero outside its class. It is at least that of a feature seen once,
      range sqrt(1/m (1 - 1/m)), and half the range for m below 2, so that a feature that the class lacks, or
      has in all its examples, does not go unpenalised.

    A feature that cannot differ between the cells of a block has no effect and is left out (inf).

    Parameters
    ----------
    data, moments : the training set
    distribution, beta_rule : str
    beta : ndarray of shape (), (n_features,) or (n_classes, n_features)
        Entries of 0 stay 0 (unpenalised), inf stays inf (leave out).
    """

    def __init__(self, data: Data, moments: Moments, distribution, beta, beta_rule):
        self._moments = moments
        self._beta = beta
        self._rule = beta_rule
        self._within_class = distribution == "class-conditional"
        low, high = data.columns.low[:-1], data.columns.high[:-1]
        if not self._within_class:
            low, high = np.minimum(low, 0), np.maximum(high, 0)
        self._range = high - low
        if beta_rule == "deviation":
            self._set_up_deviation(data, low, high)

    def _set_up_deviation(self, data, low, high):
        """Moments of the columns, shifted and scaled to [-1, 1] so that nothing is lost to rounding."""
        if data.binary:
            self._scale = np.ones(len(low))
            self._first = self._second = self._moments.sums
            return
        shift = low if self._within_class else np.zeros(len(low))
        if sparse.issparse(data.matrix):
            shift = np.where(np.diff(data.matrix.indptr) == data.matrix.shape[0], shift, 0)
        self._scale = np.maximum(high - shift, shift - low)
        self._scale[self._scale == 0] = 1
        unit = scale_columns(data.matrix, shift, self._scale)
        self._first = ClassSums(unit, self._moments.cells, data.mass)
        self._second = ClassSums(unit * unit, self._moments.cells, data.mass)

    def block(self, c, side):
        """beta_cj of block (c, side), a new array (n_features,)."""
        mass = self._moments.block_mass(c, side) if self._within_class else self._moments.mass
        unit = 1 / mass if self._rule == "count" else self._deviation(c, side, mass) / np.sqrt(mass)
        varies = self._range > 0
        beta = self._beta[c] if self._beta.ndim == 2 else self._beta
        return np.where(varies, beta * np.where(varies, unit, 1), np.inf)

    def _deviation(self, c, side, mass):
        mean = self._first.block(c, side) / mass
        variance = self._second.block(c, side) / mass - mean**2
        seen_once = 0.5 if mass < 2 else np.sqrt(1 / mass * (1 - 1 / mass))
        return np.maximum(self._scale * np.sqrt(np.maximum(variance, 0)), seen_once * self._range)


def scale_columns(matrix, shift, scale):
    """(matrix - shift) / scale, where shift is 0 in every column with zeros that are not stored."""
    if not sparse.issparse(matrix):
        return (matrix - shift) / scale
    column = np.repeat(np.arange(matrix.shape[1]), np.diff(matrix.indptr))
    data = (matrix.data - shift[column]) / scale[column]
    return sparse.csc_array((data, matrix.indices, matrix.indptr), shape=matrix.shape)
