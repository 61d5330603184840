"""Density estimation by maximum entropy, with the conventions of scikit-learn's density estimators."""

from __future__ import annotations

from typing import Any, Self

import numpy as np
from numpy.typing import ArrayLike
from sklearn.base import BaseEstimator, DensityMixin
from sklearn.utils import check_random_state
from sklearn.utils.validation import check_array, check_is_fitted, validate_data

from sl1max._data.inputs import check_finite, check_options, read_sample_weight
from sl1max.training._presences import SampleSpace, pose_presences

# Of the bounding box, by which the default background is wider on either side: hinges between the outermost example and
# the outermost point of the background would hold that example alone, and give it a density of its own.
MARGIN = 0.1


class MaxentDensity(DensityMixin, BaseEstimator):
    """Density estimate of maximum entropy over a background.

    The estimate is the distribution closest to a default distribution q0 among those whose means of the features differ
    from those of the examples by at most the penalties. Examples that equal no point of the background are added to
    it; background and added examples are the sample space.

    Parameters
    ----------
    background : array of shape (n_background, n_features), optional
        The sample space. If not given, points drawn uniformly from the bounding box of the examples, made wider by a
        tenth of its extent on either side.
    background_weight : array of shape (n_background,), optional
        The default distribution q0, of any scale. Uniform if not given.
    features : str
        "auto" or letters of "lqpht": linear, quadratic, product, hinge, threshold features of the columns.
        "auto", by the number of examples: linear; quadratic from 10; hinge from 15; product from 80.
    beta_multiplier : float
        Factor of all penalties.
    l2 : float
        Elastic net: adds l2 / 2 times the square of each weight, times the penalty of its feature.
        Hinges and thresholds with adjacent knots then share a weight: with many knots, training takes much longer.
    min_weight, max_weight : float, optional
        Limits of all weights; 0 must be between them.
    positive : bool
        No negative weights, the same as ``min_weight=0``. With features "l" the model then rises with every column.
    n_background : int
        Number of points drawn if there is no background.
    tol : float
        Stop when the duality gap, in nats, is at most tol times the log of the number of points.
    max_iter : int
        Maximum number of rounds.
    random_state : int, RandomState or None
        For the points that are drawn, and for `sample`.

    Attributes
    ----------
    points_ : ndarray of shape (n_points, n_features)
        The sample space.
    q0_, proba_ : ndarrays of shape (n_points,)
        The default distribution and the model over it; each sums to one.
    gain_ : float
        Regularised gain over q0: the mean of ln(q(x) / q0(x)) over the examples, less the penalties.
    dual_gap_ : float
        Certified upper bound on the distance of ``gain_`` to its maximum.
    converged_ : bool
    n_iter_ : int
    n_features_in_ : int
    feature_names_in_ : ndarray of str

    Examples
    --------
    >>> import numpy as np
    >>> import sl1max
    >>> rng = np.random.default_rng(0)
    >>> density = sl1max.MaxentDensity(random_state=0).fit(rng.normal(size=(200, 1)))
    >>> density.score_samples([[0.0], [1.5]]).round(1)
    array([ 0.7, -0.2])
    """

    def __init__(
        self,
        background: Any = None,
        *,
        background_weight: ArrayLike | None = None,
        features: str = "auto",
        beta_multiplier: float = 1.0,
        l2: float = 0.0,
        min_weight: float | None = None,
        max_weight: float | None = None,
        positive: bool = False,
        n_background: int = 10_000,
        tol: float = 1e-6,
        max_iter: int = 1000,
        random_state: Any = None,
    ):
        self.background = background
        self.background_weight = background_weight
        self.features = features
        self.beta_multiplier = beta_multiplier
        self.l2 = l2
        self.min_weight = min_weight
        self.max_weight = max_weight
        self.positive = positive
        self.n_background = n_background
        self.tol = tol
        self.max_iter = max_iter
        self.random_state = random_state

    def fit(self, X: Any, y: Any = None, sample_weight: ArrayLike | None = None) -> Self:
        """Train the model.

        Parameters
        ----------
        X : array or frame of shape (n_samples, n_features)
            Examples.
        y : ignored
        sample_weight : array of shape (n_samples,), optional
            Weight 2 equals two copies of the example.

        Returns
        -------
        MaxentDensity
            Itself.
        """
        check_options(tol=self.tol, max_iter=self.max_iter)
        if not 0 < self.beta_multiplier < np.inf:
            raise ValueError(f"beta_multiplier must be positive and finite, got {self.beta_multiplier!r}")
        X = self._read(X, reset=True)
        weight = read_sample_weight(sample_weight, len(X))
        X, weight = X[weight > 0], weight[weight > 0]
        background = self._read_background(X)
        q0 = read_sample_weight(self.background_weight, len(background), "background_weight")
        background, q0 = background[q0 > 0], q0[q0 > 0]
        space = SampleSpace(background, q0, X, weight, unit=q0.mean())
        problem = pose_presences(
            space,
            self.features,
            beta_multiplier=self.beta_multiplier,
            l2=self.l2,
            min_weight=self.min_weight,
            max_weight=self.max_weight,
            positive=self.positive,
        )
        fit = problem.train(tol=self.tol, max_iter=self.max_iter)
        self.points_, self.q0_ = space.points, problem.q0
        self.proba_ = self.q0_ * np.exp(fit.scores - fit.log_z)
        self._table, self._weights, self._log_z = problem.table[fit.used], fit.weights, fit.log_z
        self._range = space.points.min(axis=0), space.points.max(axis=0)
        self.gain_, self.dual_gap_ = -fit.objective, fit.dual_gap
        self.converged_, self.n_iter_ = fit.converged, fit.n_iter
        return self

    def _read(self, X, *, reset):
        X = validate_data(self, X, reset=reset, dtype=np.float64, ensure_all_finite=False)
        check_finite(X, "X", getattr(self, "feature_names_in_", None))
        return X

    def _read_background(self, X):
        if self.background is None:
            rng = check_random_state(self.random_state)
            margin = MARGIN * np.ptp(X, axis=0)
            return rng.uniform(X.min(axis=0) - margin, X.max(axis=0) + margin, (self.n_background, X.shape[1]))
        background = check_array(self.background, dtype=np.float64, input_name="background")
        if background.shape[1] != X.shape[1]:
            raise ValueError(f"background has {background.shape[1]} columns, X has {X.shape[1]}")
        return background

    def score_samples(self, X: Any) -> np.ndarray:
        """ln(q(x) / q0(x)) of points, of the sample space or any others.

        Parameters
        ----------
        X : array or frame of shape (n_samples, n_features)
            Features outside their range in the sample space count as at its end.

        Returns
        -------
        ndarray of shape (n_samples,)
        """
        check_is_fitted(self)
        V = np.clip(self._read(X, reset=False), *self._range)
        return self._table.columns(V, clamp=True) @ self._weights - self._log_z

    def score(self, X: Any, y: Any = None) -> float:
        """Mean of `score_samples`.

        Parameters
        ----------
        X : array or frame of shape (n_samples, n_features)
        y : ignored

        Returns
        -------
        float
        """
        return float(self.score_samples(X).mean())

    def sample(self, n_samples: int = 1, random_state: Any = None) -> np.ndarray:
        """Points of the sample space, drawn from the model.

        Parameters
        ----------
        n_samples : int
        random_state : int, RandomState or None
            That of the estimator if None.

        Returns
        -------
        ndarray of shape (n_samples, n_features)
        """
        check_is_fitted(self)
        rng = check_random_state(self.random_state if random_state is None else random_state)
        return self.points_[rng.choice(len(self.points_), n_samples, p=self.proba_ / self.proba_.sum())]
