"""Error-correcting output codes with maximum-entropy models."""

from __future__ import annotations

from typing import Self

import numpy as np
from joblib import parallel_config
from numpy.typing import ArrayLike
from sklearn import multiclass
from sklearn.base import BaseEstimator
from sklearn.utils.validation import check_is_fitted, validate_data

from sl1max._utils.typing import Matrix
from sl1max.estimators._maxent import FORMATS, MaxentClassifier

CODE_SIZE = 1.5  # bits for each class, as in scikit-learn
MIN_BITS = 16  # with fewer random bits two classes often have the same word


class OutputCodeClassifier(multiclass.OutputCodeClassifier):
    """Error-correcting output codes: a binary classifier for each bit of the code words of the classes.

    The method is that of scikit-learn's OutputCodeClassifier, with other defaults. It predicts the code word nearest to
    the decision values. If these are log-odds, this is the most likely word: all words have the same length, so the
    nearest one has the largest product with the decision values, sum_b +-log-odds_b, which is twice its log-likelihood
    up to a constant.

    Parameters
    ----------
    estimator : classifier, optional
        Classifier for one bit; ``MaxentClassifier()`` by default.
    code_size : float, optional
        Bits per class. By default 1.5, and at least 16 bits in total.
    random_state : int or RandomState, optional
        Random state of the code book.
    n_jobs : int, optional
        Number of threads for training the bits.

    Attributes
    ----------
    classes_ : ndarray of shape (n_classes,)
    code_book_ : ndarray of shape (n_classes, n_bits)
        -1 or 1.
    estimators_ : list of n_bits classifiers
    n_features_in_ : int

    See Also
    --------
    HierarchyClassifier : Classifier for classes in a tree.

    Examples
    --------
    >>> import numpy as np
    >>> from sl1max import OutputCodeClassifier
    >>> rng = np.random.default_rng(0)
    >>> y = rng.integers(0, 5, 200)
    >>> X = rng.random((200, 20)) < np.where(np.arange(20) % 5 == y[:, None], 0.6, 0.1)
    >>> model = OutputCodeClassifier(random_state=0).fit(X, y)
    >>> model.code_book_.shape
    (5, 16)
    >>> bool(model.score(X, y) > 0.8)
    True
    """

    def __init__(
        self,
        estimator: BaseEstimator | None = None,
        *,
        code_size: float | None = None,
        random_state: int | np.random.RandomState | None = None,
        n_jobs: int | None = None,
    ):
        super().__init__(estimator, code_size=code_size, random_state=random_state, n_jobs=n_jobs)

    def _scheme(self, n_classes=MIN_BITS):
        """Make scikit-learn's classifier with the default values filled in."""
        estimator = MaxentClassifier() if self.estimator is None else self.estimator
        code_size = max(CODE_SIZE, MIN_BITS / n_classes) if self.code_size is None else self.code_size
        return multiclass.OutputCodeClassifier(
            estimator, code_size=code_size, random_state=self.random_state, n_jobs=self.n_jobs
        )

    def __sklearn_tags__(self):
        return self._scheme().__sklearn_tags__()

    def get_metadata_routing(self):
        """As scikit-learn's."""
        return self._scheme().get_metadata_routing()

    def fit(self, X: Matrix, y: ArrayLike) -> Self:
        """Train a classifier for each bit.

        Parameters
        ----------
        X : array, sparse matrix or frame of shape (n_samples, n_features)
        y : array of shape (n_samples,)

        Returns
        -------
        OutputCodeClassifier
            Itself.
        """
        X, y = validate_data(self, X, y, accept_sparse=FORMATS)
        scheme = self._scheme(len(np.unique(y)))
        with parallel_config(backend="threading"):
            scheme.fit(X, y)
        self.classes_, self.code_book_, self.estimators_ = scheme.classes_, scheme.code_book_, scheme.estimators_
        return self

    def predict(self, X: Matrix) -> np.ndarray:
        """Predict the class with the most likely code word.

        Parameters
        ----------
        X : array, sparse matrix or frame of shape (n_samples, n_features)

        Returns
        -------
        ndarray of shape (n_samples,)
        """
        check_is_fitted(self)
        return super().predict(validate_data(self, X, reset=False, accept_sparse=FORMATS))
