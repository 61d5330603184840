"""Additive models: maximum-entropy classifiers on hinges and thresholds of every column, made only where needed."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from numbers import Integral
from typing import Any, Self

import numpy as np
from numpy.typing import ArrayLike
from sklearn.utils import check_scalar
from sklearn.utils.validation import check_is_fitted

from sl1max._data.curves import Curves
from sl1max._data.feature_table import LETTERS, PRODUCT
from sl1max._data.inputs import check_options, read_sample_weight
from sl1max._utils.typing import Matrix
from sl1max.estimators._maxent import MaxentPredictor, weigh_classes
from sl1max.model._explain import Table, make_table
from sl1max.training._additive import fit_additive

BEYOND = 0.05  # of the range of a column, by which a response curve goes on at either end


class AdditiveClassifier(MaxentPredictor):
    """L1-regularised additive model: the score of a class is a sum of functions of one column each.

    The functions are piecewise linear, with possible knots between all values of a column: sums of hinges, thresholds
    and linear terms, few of which get a weight. The columns of hinges and thresholds are made only for those that the
    training tries; the duality gap covers all of them. Products of two columns can be added.

    Parameters
    ----------
    features : str
        Letters out of "lqpht": linear, quadratic, product, hinge, threshold.
    beta : float
        Strength of the regularisation.
    distribution : {"conditional", "joint", "class-conditional"}
    label_mode : {"auto", "exclusive", "independent"}
    beta_rule : {"deviation", "count"}
        These three are those of `MaxentClassifier`.
    categorical_features : sequence of int, optional
        Columns whose values are categories, each with an indicator.
    fit_intercept : bool
    class_weight : dict, "balanced" or None
    tol : float
        Relative duality gap at which training stops.
    max_iter : int, optional
        Most iterations of the solver for each problem; 1000 unless given.
    n_jobs : int, optional
        Threads, for models of several problems and for predictions.

    Attributes
    ----------
    classes_ : ndarray
    model_ : Model
        On the features with a weight.
    features_ : Table
        These features: ``feature``, ``low`` and ``high``, the range in which it rises from 0 to 1 or falls, and a
        column of weights for each class.
    n_features_expanded_ : int
        How many features there were to choose from.
    dual_gap_ : float or ndarray
        Certified upper bound on how far the objective is above its minimum, over all features.
    n_features_in_ : int
    feature_names_in_ : ndarray of str

    Examples
    --------
    >>> import numpy as np
    >>> import sl1max
    >>> rng = np.random.default_rng(0)
    >>> X = rng.uniform(-3, 3, (400, 2))
    >>> y = np.abs(X[:, 0]) > 1.5
    >>> model = sl1max.AdditiveClassifier().fit(X, y)
    >>> model.predict([[-2.0, 0.0], [0.0, 0.0], [2.0, 0.0]])
    array([ True, False,  True])
    """

    def __init__(
        self,
        features: str = "lh",
        *,
        beta: float = 0.5,
        distribution: str = "conditional",
        label_mode: str = "auto",
        beta_rule: str = "deviation",
        categorical_features: Sequence[int] | None = None,
        fit_intercept: bool = True,
        class_weight: Any = None,
        tol: float = 1e-4,
        max_iter: int | None = None,
        n_jobs: int | None = None,
    ):
        self.features = features
        self.beta = beta
        self.distribution = distribution
        self.label_mode = label_mode
        self.beta_rule = beta_rule
        self.categorical_features = categorical_features
        self.fit_intercept = fit_intercept
        self.class_weight = class_weight
        self.tol = tol
        self.max_iter = max_iter
        self.n_jobs = n_jobs

    def __sklearn_tags__(self):
        tags = super().__sklearn_tags__()
        tags.input_tags.sparse = False
        return tags

    def fit(self, X: Any, y: Matrix, sample_weight: ArrayLike | None = None) -> Self:
        """Train the model.

        Parameters
        ----------
        X : array or frame of shape (n_samples, n_features)
        y : array of shape (n_samples,) or array or sparse matrix of shape (n_samples, n_classes)
            Labels, or an indicator of the classes of each example.
        sample_weight : array of shape (n_samples,), optional
            Weight 2 is the same as having the example twice.

        Returns
        -------
        AdditiveClassifier
            Itself.
        """
        check_options(
            tol=self.tol,
            max_iter=self.max_iter,
            n_jobs=self.n_jobs,
            distribution=self.distribution,
            label_mode=self.label_mode,
            beta_rule=self.beta_rule,
        )
        check_scalar(self.beta, "beta", (int, float, np.number), min_val=0, include_boundaries="neither")
        if not isinstance(self.features, str) or not self.features or set(self.features) - set(LETTERS):
            raise ValueError(f'features must be letters out of "lqpht", got {self.features!r}')
        X, y = self._read_training_set(X, y, sample_weight)
        weight = read_sample_weight(weigh_classes(self.class_weight, y, sample_weight), len(X))
        kept = weight > 0
        V = np.asfortranarray(np.asarray(X)[kept], float)
        if len(V) < 2:
            raise ValueError(f"an additive model needs two examples at least, got n_samples = {len(V)}")
        fit = fit_additive(
            V,
            np.asarray(y)[kept],
            self.features,
            tuple(self._find_categorical(V.shape[1])),
            distribution=self.distribution,
            label_mode=self.label_mode,
            beta=self.beta,
            beta_rule=self.beta_rule,
            fit_intercept=self.fit_intercept,
            sample_weight=weight[kept],
            tol=self.tol,
            max_iter=self.max_iter,
            n_jobs=self.n_jobs,
        )
        self._table, self._range = fit.table, (V.min(axis=0), V.max(axis=0))
        self.n_features_expanded_ = fit.n_features
        self.model_ = self._name(fit.model)
        columns = {
            f"weight of {label}": row for label, row in zip(self.classes_, self.model_.weights.toarray(), strict=True)
        }
        self.features_ = make_table(
            feature=np.array(self._names_of_features(None), str), low=fit.table.low, high=fit.table.high, **columns
        )
        return self

    def _name(self, model):
        """The model with the names of the classes that the training set had, and those of its features."""
        changes = {"feature_names": np.array(self._names_of_features(None), object)}
        if model.trained_on_indicator and self._class_names is not None:
            changes["classes"] = self._class_names
        return replace(model, **changes)

    def _names_of_features(self, feature_names):
        columns = getattr(self, "feature_names_in_", [f"x{j}" for j in range(self.n_features_in_)])
        return self._table.names(list(columns)) if feature_names is None else feature_names

    def _find_categorical(self, n_columns):
        listed = [] if self.categorical_features is None else list(self.categorical_features)
        names = list(getattr(self, "feature_names_in_", []))
        found = [names.index(one) if isinstance(one, str) and one in names else one for one in listed]
        for one in found:
            if not isinstance(one, Integral) or not 0 <= one < n_columns:
                raise ValueError(f"categorical_features names {one!r}, which is not a column of X")
        return sorted(set(found))

    def _read_features(self, X):
        check_is_fitted(self)
        V = np.asfortranarray(super()._read_features(X), float)
        return self._table.columns(np.clip(V, *self._clamp_range), clamp=True)

    @property
    def _clamp_range(self):
        """The range of every column in training; categories are not limited."""
        low, high = (bound.copy() for bound in self._range)
        categorical = self._find_categorical(self.n_features_in_)
        low[categorical], high[categorical] = -np.inf, np.inf
        return low, high

    def response_curve(self, column: int | str, label: Any = None, *, n_points: int = 101) -> Table:
        """What one column adds to the score of a class.

        Parameters
        ----------
        column : int or str
            Its number or name.
        label : object, optional
            The class; the last one if there are two, and then the score is that of the decision function.
        n_points : int
            How many values, from a little below the least in training to a little above the greatest. A category has
            the values that have an indicator with a weight.

        Returns
        -------
        Table
            Columns ``value`` and ``response``, which is zero on average over the values shown. Products are left out.
        """
        check_is_fitted(self)
        check_scalar(n_points, "n_points", Integral, min_val=2)
        (j,) = self._find_columns(column)
        coefficients = self._coefficients(label)
        own = (self._table.first == j) & (self._table.kind != PRODUCT)
        low, high = (bound[j] for bound in self._range)
        is_category = j in self._find_categorical(self.n_features_in_)
        if is_category:
            values = np.unique(self._table.value[own])
        else:
            margin = BEYOND * (high - low)
            values = np.linspace(low - margin, high + margin, n_points)
        V = np.zeros((self.n_features_in_, len(values)))
        V[j] = values if is_category else np.clip(values, low, high)
        response = Curves(self._table[own], coefficients[own], len(V), clamp=False).score(V)
        return make_table(value=values, response=response - (response.mean() if len(response) else 0.0))

    def _find_columns(self, column: int | str) -> list[int]:
        names = list(getattr(self, "feature_names_in_", []))
        if isinstance(column, str) and column in names:
            return [names.index(column)]
        if isinstance(column, Integral) and 0 <= column < self.n_features_in_:
            return [int(column)]
        raise ValueError(f"there is no column {column!r}")

    def _coefficients(self, label):
        coefficients = self.coef_
        known = self.classes_[-len(coefficients) :]
        if label is None and len(coefficients) == 1:
            return coefficients[0]
        place = [c for c, one in enumerate(known.tolist()) if one == label]
        if not place:
            raise ValueError(f"label must be one of {known.tolist()}, got {label!r}")
        return coefficients[place[0]]
