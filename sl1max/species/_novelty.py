"""Environments unlike those of training: similarity of points, and what clamping changes there."""

from __future__ import annotations

import os
from typing import Any

import numpy as np

from sl1max._data.covariates import FROM_DTYPE, Covariates
from sl1max.species._model import SpeciesModel
from sl1max.species._raster import Layers, RasterStack, as_stack, write_map


class EnvironmentalSimilarity:
    """Multivariate environmental similarity surface (MESS; Elith, Kearney and Phillips 2010).

    The similarity of a point in one covariate is 100 where it is the median of the reference points, 0 at their least
    and greatest value, negative beyond: by how many percent of their range. A category has 100 if the reference points
    have it and -100 otherwise. The similarity of a point is that in its most dissimilar covariate.

    Parameters
    ----------
    reference : array or frame of shape (n_reference, n_covariates)
        Points that a model was trained on, such as its background. Rows with missing values are left out.
    categorical_features : "from_dtype", None or list
        Which columns are categories; see `SpeciesModel`.

    Attributes
    ----------
    covariates : Covariates

    Examples
    --------
    >>> from sl1max.species import EnvironmentalSimilarity
    >>> similarity = EnvironmentalSimilarity([[0.0, 5.0], [1.0, 6.0], [2.0, 7.0], [4.0, 9.0]])
    >>> similarity.score([[2.0, 7.0], [5.0, 7.0]])
    array([100., -25.])
    >>> similarity.most_dissimilar([[2.0, 7.0], [5.0, 7.0]]).tolist()
    ['x0', 'x0']
    """

    def __init__(self, reference: Any, categorical_features: Any = FROM_DTYPE):
        reference = reference if hasattr(reference, "columns") else np.asarray(reference)
        self.covariates = Covariates.of(reference, categorical_features)
        V = self.covariates.encode(reference)
        V = V[~np.isnan(V).any(axis=1)]
        if not len(V):
            raise ValueError("reference has no row without a missing value")
        self._values = [np.sort(column) for column in V.T]

    def by_covariate(self, X: Any) -> np.ndarray:
        """Similarity in each covariate.

        Parameters
        ----------
        X : array or frame of shape (n_points, n_covariates)

        Returns
        -------
        ndarray of shape (n_points, n_covariates)
            Nan where a value is missing.
        """
        V = self.covariates.encode(X)
        out = np.empty(V.shape)
        for j, values in enumerate(self._values):
            is_category = j in self.covariates.categories
            out[:, j] = (_similarity_of_categories if is_category else _similarity)(V[:, j], values)
        out[np.isnan(V)] = np.nan
        return out

    def score(self, X: Any) -> np.ndarray:
        """Similarity of points: the least over the covariates; at most 100.

        Parameters
        ----------
        X : array or frame of shape (n_points, n_covariates)

        Returns
        -------
        ndarray of shape (n_points,)
            Nan where a value is missing.
        """
        return self.by_covariate(X).min(axis=1)

    def map(
        self,
        layers: RasterStack | Layers,
        path: str | os.PathLike[str],
        *,
        n_jobs: int | None = None,
        verbose: int = 0,
    ) -> None:
        """Write the map of the similarity.

        Parameters
        ----------
        layers : RasterStack, dict, path or list of paths
            The covariates, by the names of those of the reference points; see `RasterStack`.
        path : str or path-like
            GeoTIFF (.tif) or ASCII grid (.asc).
        n_jobs : int, optional
            Threads.
        verbose : int
            Positive: progress on stderr.
        """
        stack = as_stack(layers).select(self.covariates.names)
        write_map(lambda values: self.score(values.T), stack, path, n_jobs=n_jobs, verbose=verbose)

    def most_dissimilar(self, X: Any) -> np.ndarray:
        """Name of the covariate in which a point is least similar to the reference points.

        Parameters
        ----------
        X : array or frame of shape (n_points, n_covariates)

        Returns
        -------
        ndarray of str, of shape (n_points,)
            Empty where a value is missing.
        """
        similarity = self.by_covariate(X)
        names = np.array([*self.covariates.names, ""])
        missing = np.isnan(similarity).any(axis=1)
        return names[np.where(missing, -1, np.where(np.isnan(similarity), np.inf, similarity).argmin(axis=1))]


def _similarity(v, values):
    low, high = values[0], values[-1]
    extent = high - low or 1.0
    below = 100 * np.searchsorted(values, v) / len(values)  # percent of the reference points
    inside = np.where(below <= 50, 2 * below, 2 * (100 - below))
    return np.where(v <= low, 100 * (v - low) / extent, np.where(v >= high, 100 * (high - v) / extent, inside))


def _similarity_of_categories(v, values):
    return np.where(np.isin(v, values), 100.0, -100.0)


def clamping_effect(model: SpeciesModel, X: Any, *, output: str | None = None) -> np.ndarray:
    """How much predictions change when covariates are kept within their range in training.

    Parameters
    ----------
    model : SpeciesModel
        Trained.
    X : array or frame of shape (n_points, n_covariates)
    output : {"cloglog", "logistic", "raw", "cumulative"}, optional
        Instead of that of the model.

    Returns
    -------
    ndarray of shape (n_points,)
        The absolute difference of the predictions with and without clamping: large where the prediction depends on how
        the model is continued beyond the conditions it was trained in.

    Examples
    --------
    >>> import numpy as np
    >>> from sl1max.species import SpeciesModel, clamping_effect
    >>> rng = np.random.default_rng(0)
    >>> X = np.concatenate([rng.uniform(0, 10, (500, 1)), rng.normal(7, 1, (40, 1))])
    >>> model = SpeciesModel("l").fit(X, np.arange(540) >= 500)
    >>> clamping_effect(model, [[5.0], [14.0]]).round(1)
    array([0. , 0.1])
    """
    return _effect(model.model_, model.output if output is None else output)(model._encode(X).T)


def clamping_map(
    model: SpeciesModel,
    layers: RasterStack | Layers,
    path: str | os.PathLike[str],
    *,
    output: str | None = None,
    n_jobs: int | None = None,
    verbose: int = 0,
) -> None:
    """Write the map of `clamping_effect`.

    Parameters
    ----------
    model : SpeciesModel
        Trained.
    layers : RasterStack, dict, path or list of paths
        The covariates; see `RasterStack`.
    path : str or path-like
        GeoTIFF (.tif) or ASCII grid (.asc).
    output : {"cloglog", "logistic", "raw", "cumulative"}, optional
        Instead of that of the model.
    n_jobs : int, optional
        Threads.
    verbose : int
        Positive: progress on stderr.
    """
    effect = _effect(model.model_, model.output if output is None else output)
    stack = as_stack(layers).select(model.model_.feature_names)
    write_map(effect, stack, path, n_jobs=n_jobs, verbose=verbose)


def _effect(lambdas, output):
    """How much clamping changes the predictions of points (n_covariates, n_points)."""
    curves = [lambdas.curves(clamp=clamp) for clamp in (True, False)]

    def effect(values):
        clamped, free = (
            lambdas.transform_score(one.score(values) - lambdas.linear_predictor_normalizer, output) for one in curves
        )
        return np.abs(clamped - free)

    return effect
