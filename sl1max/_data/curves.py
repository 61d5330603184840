"""Scores of a table of weighted features, computed from one curve per covariate instead of one column per feature."""

from __future__ import annotations

import numpy as np

from sl1max._core._curves import add_curves, add_products
from sl1max._data.feature_table import (
    CATEGORY,
    HINGE,
    LINEAR,
    PRODUCT,
    QUADRATIC,
    REVERSE_HINGE,
    THRESHOLD,
    FeatureTable,
    extent_of,
)


class Curves:
    """A weighted sum of features as piecewise quadratic functions of the covariates, and products of two of them.

    Parameters
    ----------
    table : FeatureTable
    weights : float array of shape (n_features,)
    n_covariates : int
    clamp : bool
        Keep covariates within the range of their linear features, then features within [0, 1].
    """

    def __init__(self, table: FeatureTable, weights: np.ndarray, n_covariates: int, *, clamp: bool = True):
        self._clamp = clamp
        self.low, self.high = table.range_of_covariates(n_covariates)
        if not clamp:
            self.low, self.high = np.full(n_covariates, -np.inf), np.full(n_covariates, np.inf)
        used = np.flatnonzero(weights)
        table, weights = table[used], np.asarray(weights, float)[used]
        is_product = table.kind == PRODUCT
        pieces = []
        for j in range(n_covariates):
            own = (table.first == j) & ~is_product
            pieces.append(self._make_pieces(table[own], weights[own], self.low[j], self.high[j]))
        self._start = np.cumsum([0] + [part.shape[1] for part in pieces])
        self._pieces = np.ascontiguousarray(np.concatenate(pieces, axis=1)) if pieces else np.empty((5, 0))
        products = table[is_product]
        self._first, self._second = products.first, products.second
        self._terms = np.array([products.low, products.extent, weights[is_product]])

    def _make_pieces(self, table, weights, low, high):
        """End, origin, constant, slope and curvature of each piece of the curve of one covariate."""
        ends = np.unique(np.concatenate([[]] + [self._ends(*row) for row in _rows(table)]))
        ends = ends[(ends >= low) & (ends < high)]
        upper, inside = np.append(ends, high), _between(low, ends, high)
        pieces = np.zeros((5, len(ends) + 1))
        pieces[0] = np.append(-np.inf, ends)
        pieces[1] = np.append(ends[:1] if len(ends) else inside, ends)
        for (kind, value, least, most), weight in zip(_rows(table), weights, strict=True):
            for p in range(pieces.shape[1]):
                found = self._coefficients(kind, value, least, most, inside[p], upper[p], pieces[1, p])
                pieces[2:, p] += weight * np.array(found)
        return pieces

    def _ends(self, kind, value, low, high):
        """Where a feature changes its form."""
        if kind == CATEGORY:
            return [np.nextafter(value, -np.inf), value]
        if kind == THRESHOLD:
            return [value]
        if kind == QUADRATIC:
            roots = np.sqrt([low, high])
            return [*-roots, *roots] if self._clamp else []
        if self._clamp:
            return [low, high]
        return {LINEAR: [], HINGE: [low], REVERSE_HINGE: [high]}[kind]

    def _coefficients(self, kind, value, low, high, inside, upper, origin):
        """Constant, slope and curvature of a feature around the origin, within the piece of a point."""
        if kind == CATEGORY:
            return float(upper == value), 0.0, 0.0
        if kind == THRESHOLD:
            return float(upper > value), 0.0, 0.0
        extent = extent_of(low, high)
        if kind == QUADRATIC:
            form = (origin**2 - low) / extent, 2 * origin / extent, 1 / extent
        elif kind == REVERSE_HINGE:
            form = (high - origin) / extent, -1 / extent, 0.0
        else:
            form = (origin - low) / extent, 1 / extent, 0.0
        distance = inside - origin
        height = form[0] + distance * (form[1] + distance * form[2])
        if height < 0 and (self._clamp or kind in (HINGE, REVERSE_HINGE)):
            return 0.0, 0.0, 0.0
        if height > 1 and self._clamp:
            return 1.0, 0.0, 0.0
        return form

    def score(self, values: np.ndarray, missing: np.ndarray | None = None) -> np.ndarray:
        """The weighted sum of the features at points; nan where a covariate is missing.

        Parameters
        ----------
        values : float array of shape (n_covariates, n_points)
        missing : float array of shape (n_covariates,), optional
            The value of each covariate that stands for a missing one, beside nan.

        Returns
        -------
        float array of shape (n_points,)
        """
        values = np.ascontiguousarray(values, float)
        missing = np.full(len(values), np.nan) if missing is None else missing
        score = np.zeros(values.shape[1])
        if not values.size:
            return score
        add_curves(values, missing, self.low, self.high, self._start, self._pieces, score)
        add_products(values, missing, self.low, self.high, self._first, self._second, self._terms, self._clamp, score)
        return score


def _between(low, ends, high):
    """A number between each two that follow each other; low and high may be infinite."""
    finite = [end for end in (low, *ends, high) if np.isfinite(end)] or [0.0]
    bounds = np.concatenate([[low], ends, [high]])
    bounds[0] = max(low, finite[0] - 1 - abs(finite[0]))
    bounds[-1] = min(high, finite[-1] + 1 + abs(finite[-1]))
    return bounds[:-1] / 2 + bounds[1:] / 2


def _rows(table):
    return zip(table.kind.tolist(), table.value, table.low, table.high, strict=True)
