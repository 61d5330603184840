"""Feature selection by the weights of a sparse model."""

from __future__ import annotations

from typing import Any, Self

import numpy as np
from numpy.typing import ArrayLike
from sklearn.base import BaseEstimator, MetaEstimatorMixin, clone
from sklearn.feature_selection import SelectorMixin
from sklearn.utils.validation import check_is_fitted

from sl1max._utils.typing import Matrix
from sl1max.estimators._maxent import MaxentClassifier, MaxentPredictor


class NonzeroSelector(SelectorMixin, MetaEstimatorMixin, BaseEstimator):
    """Selector of the features that have a nonzero weight for some class.

    scikit-learn's SelectFromModel compares the sizes of weights with a threshold, which removes used features or keeps
    unused ones, and needs the weights as a dense array. The weights of an L1-regularised model are exactly zero for the
    features that it does not use.

    Parameters
    ----------
    estimator : estimator of sl1max, optional
        A clone of it is fitted; ``MaxentClassifier()`` by default. Larger betas keep fewer features.

    Attributes
    ----------
    estimator_ : estimator
        The fitted clone.
    n_features_in_, feature_names_in_ :
        Those of the data given to `fit`.

    Examples
    --------
    >>> import numpy as np
    >>> from sl1max import MaxentClassifier, NonzeroSelector
    >>> X = np.random.default_rng(0).integers(0, 2, (200, 10))
    >>> selector = NonzeroSelector(MaxentClassifier(beta=2.0)).fit(X, X[:, 3] & X[:, 7])
    >>> selector.get_support(indices=True)
    array([3, 7])
    >>> selector.transform(X).shape
    (200, 2)
    """

    def __init__(self, estimator=None):
        self.estimator = estimator

    def __sklearn_tags__(self):
        tags = super().__sklearn_tags__()
        tags.input_tags.sparse = True
        tags.target_tags.required = True
        return tags

    def fit(self, X: Matrix, y: Matrix, sample_weight: ArrayLike | None = None) -> Self:
        """Fit the estimator.

        Parameters
        ----------
        X : array, sparse matrix or frame of shape (n_samples, n_features)
        y : array of shape (n_samples,) or array or sparse matrix of shape (n_samples, n_classes)
        sample_weight : array of shape (n_samples,), optional

        Returns
        -------
        NonzeroSelector
            Itself.
        """
        estimator: MaxentPredictor | Any = MaxentClassifier() if self.estimator is None else clone(self.estimator)
        weight = {} if sample_weight is None else {"sample_weight": sample_weight}
        self.estimator_ = estimator.fit(X, y, **weight)
        self.n_features_in_ = self.estimator_.n_features_in_
        self.__dict__.pop("feature_names_in_", None)
        if hasattr(self.estimator_, "feature_names_in_"):
            self.feature_names_in_ = self.estimator_.feature_names_in_
        return self

    def _get_support_mask(self):
        check_is_fitted(self)
        mask = np.zeros(self.n_features_in_, bool)
        weights = self.estimator_.sparse_coef_
        mask[weights.indices[weights.data != 0]] = True
        return mask
