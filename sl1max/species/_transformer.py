"""The features of Maxent as a scikit-learn transformer."""

from __future__ import annotations

from typing import Any, Self

import numpy as np
from numpy.typing import ArrayLike
from sklearn.base import BaseEstimator, TransformerMixin
from sklearn.utils.validation import check_is_fitted, validate_data

from sl1max._data.covariates import FROM_DTYPE, Covariates, NamedColumns, is_frame
from sl1max._data.feature_table import LINEAR, choose_classes, default_betas, expand, means_and_penalties
from sl1max._data.inputs import check_finite, read_sample_weight


def open_covariates(estimator: BaseEstimator, X: Any, *, reset: bool, allow_missing: bool = False) -> Any:
    """Validate X, as scikit-learn's ``validate_data`` does; a frame stays one, with its categories."""
    if not is_frame(X):
        X = validate_data(estimator, X, reset=reset, dtype=np.float64, ensure_all_finite=False)
        if not allow_missing:
            check_finite(X, "X")
        return X
    if isinstance(X, NamedColumns):  # found by name, in whatever order
        if reset:
            estimator.n_features_in_ = X.shape[1]
    else:
        validate_data(estimator, X, reset=reset, skip_check_array=True)
    if not len(X):
        raise ValueError("X has no rows")
    return X


def encode_covariates(covariates: Covariates, X: Any, *, allow_missing: bool = False) -> np.ndarray:
    """Covariates as floats; missing values are refused unless they are allowed, infinite ones always."""
    V = covariates.encode(X)
    check_finite(np.where(np.isnan(V), 0.0, V) if allow_missing else V, "X", covariates.names if is_frame(X) else None)
    return V


def as_mask(presence: ArrayLike, n_rows: int) -> np.ndarray:
    """Which rows are presences, as a bool array of this length."""
    presence = np.asarray(presence)
    if presence.shape != (n_rows,) or not np.isin(presence, (0, 1)).all():
        raise ValueError(f"presence must hold True or False for each of the {n_rows} rows of X")
    return presence.astype(bool)


class MaxentFeatures(TransformerMixin, BaseEstimator):
    """Expand covariates into the features of Maxent 3.4.4.

    Linear, quadratic, product, hinge and threshold features of numbers, and one indicator per category, all scaled to
    [0, 1]. There is a hinge of either direction, and a threshold, between each two values of a covariate: thousands of
    columns. `sl1max.species.SpeciesModel` has the same features without making the columns.

    Parameters
    ----------
    features : str
        "auto" or letters of "lqpht": linear, quadratic, product, hinge, threshold. "auto", by the number of
        presences: linear; quadratic from 10; hinge from 15; product from 80. Categories always have indicators.
    categorical_features : "from_dtype", None or list
        Which columns are categories: those of a frame that are not numbers, none, or those listed, by number, by name
        or as a mask.
    clamp : bool
        Keep covariates, then features, within their range in training.
    beta_multiplier : float
        Factor of all penalties.
    beta_lqp, beta_categorical, beta_threshold, beta_hinge : float, optional
        The constant of a class of features, in place of the default, which depends on the number of presences.

    Attributes
    ----------
    means_ : ndarray of shape (n_features_out,)
        Mean of each feature over the presences.
    penalties_ : ndarray of shape (n_features_out,)
        Penalty of each feature: beta s / sqrt(n), s its standard deviation over the n presences.
    classes_of_features_ : str
        Letters of the feature classes.
    n_features_out_ : int
    n_features_in_ : int
    feature_names_in_ : ndarray of str

    Examples
    --------
    >>> import numpy as np
    >>> from sl1max.species import MaxentFeatures
    >>> points = np.array([[0.0], [1.0], [3.0]])
    >>> expander = MaxentFeatures(features="lqh").fit(points)
    >>> expander.get_feature_names_out().tolist()
    ['x0', 'x0^2', "'x0(0.5,3.0)", "'x0(2.0,3.0)", '`x0(0.0,0.5)', '`x0(0.0,2.0)']
    >>> expander.transform([[2.0]]).round(2)
    array([[0.67, 0.44, 0.6 , 0.  , 0.  , 0.  ]])
    """

    def __init__(
        self,
        features: str = "auto",
        *,
        categorical_features: Any = FROM_DTYPE,
        clamp: bool = True,
        beta_multiplier: float = 1.0,
        beta_lqp: float | None = None,
        beta_categorical: float | None = None,
        beta_threshold: float | None = None,
        beta_hinge: float | None = None,
    ):
        self.features = features
        self.categorical_features = categorical_features
        self.clamp = clamp
        self.beta_multiplier = beta_multiplier
        self.beta_lqp = beta_lqp
        self.beta_categorical = beta_categorical
        self.beta_threshold = beta_threshold
        self.beta_hinge = beta_hinge

    def __sklearn_tags__(self):
        tags = super().__sklearn_tags__()
        tags.input_tags.categorical = True
        tags.input_tags.string = True
        return tags

    def fit(
        self,
        X: Any,
        y: Any = None,
        *,
        presence: ArrayLike | None = None,
        sample_weight: ArrayLike | None = None,
    ) -> Self:
        """Find the ranges and knots over all rows, the means and penalties over the presences.

        Parameters
        ----------
        X : array or frame of shape (n_rows, n_covariates)
        y : ignored
        presence : bool array of shape (n_rows,), optional
            Which rows are presences; all rows are the sample space. All by default.
        sample_weight : array of shape (n_rows,), optional
            Weight 2 is the same as having the row twice.

        Returns
        -------
        MaxentFeatures
            Itself.
        """
        X = open_covariates(self, X, reset=True)
        self.covariates_ = Covariates.of(X, self.categorical_features)
        points = encode_covariates(self.covariates_, X)
        mask = np.ones(len(points), bool) if presence is None else as_mask(presence, len(points))
        weight = read_sample_weight(sample_weight, len(points))
        points, mask, weight = points[weight > 0], mask[weight > 0], weight[weight > 0]
        if not mask.any():
            raise ValueError("there is no presence")
        presences, weight = points[mask], weight[mask]
        classes = choose_classes(self.features, weight.sum())
        self.table_ = expand(points, presences, classes, list(self.covariates_.categories))
        betas = default_betas(
            weight.sum(),
            classes,
            self.beta_multiplier,
            lqp=self.beta_lqp,
            categorical=self.beta_categorical,
            threshold=self.beta_threshold,
            hinge=self.beta_hinge,
        )
        means, penalties = means_and_penalties(self.table_, presences, betas, weight)
        self._shown = np.flatnonzero((self.table_.kind != LINEAR) | ("l" in classes))
        self.means_, self.penalties_ = means[self._shown], penalties[self._shown]
        self.classes_of_features_ = classes
        self.n_features_out_ = len(self._shown)
        return self

    def transform(self, X: Any) -> np.ndarray:
        """The features of points.

        Parameters
        ----------
        X : array or frame of shape (n_rows, n_covariates)

        Returns
        -------
        ndarray of shape (n_rows, n_features_out), column by column in memory
        """
        check_is_fitted(self)
        V = encode_covariates(self.covariates_, open_covariates(self, X, reset=False))
        if self.clamp:
            V = np.clip(V, *self.table_.range_of_covariates(V.shape[1]))
        return self.table_[self._shown].columns(V, clamp=self.clamp)

    def get_feature_names_out(self, input_features: ArrayLike | None = None) -> np.ndarray:
        """Names of the features, in the form of the Java program, with the range of hinges added.

        Parameters
        ----------
        input_features : array of str, optional
            Names of the covariates; by default those of the frame that `fit` saw, or x0, x1, ...

        Returns
        -------
        ndarray of str objects
        """
        check_is_fitted(self)
        given: Any = input_features
        names = self.covariates_.names if given is None else list(map(str, given))
        if len(names) != self.n_features_in_:
            raise ValueError(f"input_features should have length equal to {self.n_features_in_}, got {len(names)}")
        seen = getattr(self, "feature_names_in_", None)
        if seen is not None and list(seen) != list(names):
            raise ValueError("input_features is not equal to feature_names_in_")
        return np.array(self.table_[self._shown].names(names), object)
