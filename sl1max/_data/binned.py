"""The features of a table over a sample space without their columns: means from sums over bins of equal values."""

from __future__ import annotations

import numpy as np

from sl1max._core._knots import bin_masses, product_sums, sums_above, sums_below
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


class BinnedPoints:
    """Points whose covariates are put into bins of equal values, once for all features and species.

    Attributes
    ----------
    points : float array of shape (n_points, n_covariates), column by column in memory
    values : list of float array
        The distinct values of each covariate, ascending.
    bins : list of int32 array of shape (n_points,)
        The place of each point's value among them.
    """

    def __init__(self, points: np.ndarray):
        self.points = np.asfortranarray(points, float)
        self.values, self.bins = [], []
        for column in self.points.T:
            values, bins = np.unique(column, return_inverse=True)
            self.values.append(values)
            self.bins.append(bins.astype(np.int32))

    def take(self, rows: np.ndarray) -> BinnedPoints:
        """Some of the points, in the same bins."""
        taken = object.__new__(BinnedPoints)
        taken.points, taken.values = np.asfortranarray(self.points[rows]), self.values
        taken.bins = [bins[rows] for bins in self.bins]
        return taken

    def __len__(self) -> int:
        return len(self.points)


class FeatureColumns:
    """A source of features for `sl1max.training._density.fit_density`.

    Parameters
    ----------
    table : FeatureTable
        The knots of a covariate ascend, as those of `expand`.
    points : BinnedPoints
    """

    def __init__(self, table: FeatureTable, points: BinnedPoints):
        self._table, self._points = table, points
        self._by_covariate: dict[int, list[tuple[int, np.ndarray]]] = {}
        for kind, where in table.by_kind():
            if kind == PRODUCT:
                self._products = where
                continue
            for j in np.unique(table.first[where]):
                self._by_covariate.setdefault(int(j), []).append((kind, where[table.first[where] == j]))
        if not (table.kind == PRODUCT).any():
            self._products = np.empty(0, int)
        self.group = self._number_groups()

    def _number_groups(self) -> np.ndarray:
        """Knots of one kind and covariate are neighbours; other features have none."""
        table = self._table
        group = np.arange(len(table))
        for j, parts in self._by_covariate.items():
            for kind, where in parts:
                if kind in (THRESHOLD, HINGE, REVERSE_HINGE):
                    group[where] = len(table) + 7 * j + kind
        return group

    def fill(self, which: np.ndarray, columns_out: np.ndarray) -> None:
        """Make the columns of some features.

        Parameters
        ----------
        which : int array
        columns_out : float array of shape (len(which), n_points)
            A row for each feature.
        """
        self._table[which].columns(self._points.points, out=columns_out.T)

    def take(self, rows: np.ndarray) -> FeatureColumns:
        """The same features of some of the points.

        Parameters
        ----------
        rows : int array

        Returns
        -------
        FeatureColumns
        """
        return FeatureColumns(self._table, self._points.take(rows))

    def means(self, mass: np.ndarray) -> np.ndarray:
        """Mean of every feature under a distribution over the points.

        Parameters
        ----------
        mass : float array of shape (n_points,)

        Returns
        -------
        float array of shape (n_features,)
        """
        out = self._sum_by_kind(self._means_of_kind, mass)
        products = self._table[self._products]
        sums = np.empty(len(products))
        product_sums(self._points.points, mass, products.first, products.second, products.low, sums)
        out[self._products] = sums / products.extent
        return out

    def squares(self, mass: np.ndarray) -> np.ndarray:
        """Sum of mass times the square of every feature.

        Parameters
        ----------
        mass : float array of shape (n_points,)

        Returns
        -------
        float array of shape (n_features,)
        """
        out = self._sum_by_kind(self._squares_of_kind, mass)
        for k in self._products:
            out[k] = mass @ self._table[[k]].columns(self._points.points)[:, 0] ** 2
        return out

    def _sum_by_kind(self, sums_of_kind, mass):
        """Apply a function to the features of each kind of each covariate; products are left empty."""
        out = np.empty(len(self._table))
        for j, parts in self._by_covariate.items():
            values = self._points.values[j]
            binned = np.empty(len(values))
            bin_masses(self._points.bins[j], mass, binned)
            for kind, where in parts:
                out[where] = sums_of_kind(kind, where, values, binned)
        return out

    def _squares_of_kind(self, kind, where, values, binned):
        table = self._table[where]
        if kind in (CATEGORY, THRESHOLD):
            return self._means_of_kind(kind, where, values, binned)
        if kind in (LINEAR, QUADRATIC):
            raw = values if kind == LINEAR else values**2
            return (((raw - table.low) / table.extent) ** 2 * binned).sum()
        knots = table.low if kind == HINGE else table.high
        mass, first, second = np.empty((3, len(knots)))
        (sums_below if kind == REVERSE_HINGE else sums_above)(values, binned, knots, mass, first, second)
        return second / table.extent**2

    def _means_of_kind(self, kind, where, values, binned):
        table = self._table[where]
        if kind == CATEGORY:
            place = np.minimum(np.searchsorted(values, table.value), len(values) - 1)
            return np.where(values[place] == table.value, binned[place], 0.0)
        if kind in (LINEAR, QUADRATIC):
            raw = values if kind == LINEAR else values**2
            return ((raw - table.low) * binned).sum() / table.extent
        knots = {THRESHOLD: table.value, HINGE: table.low, REVERSE_HINGE: table.high}[kind]
        mass, first = np.empty((2, len(knots)))
        (sums_below if kind == REVERSE_HINGE else sums_above)(values, binned, knots, mass, first)
        return mass if kind == THRESHOLD else first / table.extent
