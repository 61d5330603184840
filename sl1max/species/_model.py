"""Species distribution models as a scikit-learn classifier: presences against a background."""

from __future__ import annotations

import os
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Self

import numpy as np
from numpy.typing import ArrayLike
from sklearn.base import BaseEstimator, ClassifierMixin, clone
from sklearn.metrics import roc_auc_score
from sklearn.utils import assert_all_finite, check_consistent_length, column_or_1d
from sklearn.utils.multiclass import check_classification_targets
from sklearn.utils.validation import check_is_fitted

from sl1max._data.covariates import FROM_DTYPE, Covariates
from sl1max._data.feature_table import CATEGORY, LETTERS, LINEAR
from sl1max._data.inputs import check_options, read_sample_weight
from sl1max.model._explain import make_table
from sl1max.species._lambdas import OUTPUTS, LambdasModel, cumulate
from sl1max.species._transformer import encode_covariates, open_covariates
from sl1max.training._presences import SampleSpace, pose_presences, row_key

MISSING = ("error", "drop")


@dataclass(frozen=True, eq=False)
class LabelledRows:
    """Rows of a training set that can be used.

    Attributes
    ----------
    V : float array of shape (n_rows, n_covariates)
        Encoded covariates.
    weight : float array of shape (n_rows,)
    background, presences : int arrays
        Numbers of the rows.
    """

    V: np.ndarray
    weight: np.ndarray
    background: np.ndarray
    presences: np.ndarray

    def sample_space(self) -> SampleSpace:
        """All of them as a sample space with presences."""
        background, presences = self.background, self.presences
        return SampleSpace(self.V[background], self.weight[background], self.V[presences], self.weight[presences])


class SpeciesModel(ClassifierMixin, BaseEstimator):
    """Maxent: the distribution of maximum entropy over a background, from presences.

    The model of the Java program Maxent 3.4.4 at its default settings, trained to a certified optimum. Points of the
    background with weights are the sample space; presences whose covariates equal no background point are added to it.

    Parameters
    ----------
    features : str
        "auto" or letters of "lqpht": linear, quadratic, product, hinge, threshold. "auto", by the number of
        presences: linear; quadratic from 10; hinge from 15; product from 80. Categories always have indicators.
    beta_multiplier : float
        Factor of all penalties.
    output : {"cloglog", "logistic", "raw", "cumulative"}
        What `predict_suitability` gives.
    clamp : bool
        In predictions, keep covariates, then features, within their range in training.
    categorical_features : "from_dtype", None or list
        Which columns are categories: those of a frame that are not numbers, none, or those listed, by number, by name
        or as a mask.
    beta_lqp, beta_categorical, beta_threshold, beta_hinge : float, optional
        The constant of a class of features, in place of the default, which depends on the number of presences.
    l2 : float
        Elastic net: adds l2 / 2 times the square of each weight, times the penalty of its feature.
        Hinges and thresholds with adjacent knots then share a weight: with many knots, training takes much longer.
    min_weight, max_weight : float, optional
        Limits of all weights; 0 must be between them.
    positive : bool
        No negative weights, the same as ``min_weight=0``. With features "l" the model then rises with every covariate.
    remove_duplicates : bool
        Keep one of the presences that have equal covariates.
    missing : {"error", "drop"}
        Refuse rows with missing values; or leave them out of training, and predict nan for them.
    tol : float
        Stop when the duality gap, in nats, is at most tol times the log of the number of points.
    max_iter : int
        Maximum number of rounds.

    Attributes
    ----------
    classes_ : ndarray of shape (2,)
        The labels; the second is that of presences.
    covariates_ : Covariates
        Names of the covariates, and which are categories.
    model_ : LambdasModel
    gain_ : float
        Regularised training gain.
    unregularized_gain_ : float
    entropy_ : float
        Of the raw distribution over the sample space.
    dual_gap_ : float
        Certified upper bound on the distance of ``gain_`` to its maximum.
    converged_ : bool
    n_iter_ : int
    n_presences_ : float
        The number of presences, or the sum of their weights.
    n_background_ : float
        The number of points of the sample space, or the sum of their weights.
    n_features_expanded_ : int
        How many features there were to choose from.
    features_ : Table
        The features with a weight: their name, weight, range and penalty.
    feature_classes_ : str
        Letters of the feature classes.
    n_features_in_ : int
    feature_names_in_ : ndarray of str

    Examples
    --------
    >>> import numpy as np
    >>> from sl1max.species import SpeciesModel
    >>> rng = np.random.default_rng(0)
    >>> X = np.concatenate([rng.uniform(0, 10, (500, 1)), rng.normal(7, 1, (40, 1))])
    >>> y = np.arange(540) >= 500
    >>> model = SpeciesModel().fit(X, y)
    >>> model.predict_suitability([[2.0], [7.0]]).round(1)
    array([0. , 0.8])
    """

    def __init__(
        self,
        features: str = "auto",
        *,
        beta_multiplier: float = 1.0,
        output: str = "cloglog",
        clamp: bool = True,
        categorical_features: Any = FROM_DTYPE,
        beta_lqp: float | None = None,
        beta_categorical: float | None = None,
        beta_threshold: float | None = None,
        beta_hinge: float | None = None,
        l2: float = 0.0,
        min_weight: float | None = None,
        max_weight: float | None = None,
        positive: bool = False,
        remove_duplicates: bool = False,
        missing: str = "error",
        tol: float = 1e-6,
        max_iter: int = 1000,
    ):
        self.features = features
        self.beta_multiplier = beta_multiplier
        self.output = output
        self.clamp = clamp
        self.categorical_features = categorical_features
        self.beta_lqp = beta_lqp
        self.beta_categorical = beta_categorical
        self.beta_threshold = beta_threshold
        self.beta_hinge = beta_hinge
        self.l2 = l2
        self.min_weight = min_weight
        self.max_weight = max_weight
        self.positive = positive
        self.remove_duplicates = remove_duplicates
        self.missing = missing
        self.tol = tol
        self.max_iter = max_iter

    def __sklearn_tags__(self):
        tags = super().__sklearn_tags__()
        tags.classifier_tags.multi_class = False
        tags.input_tags.categorical = True
        tags.input_tags.string = True
        tags.input_tags.allow_nan = self.missing == "drop"
        return tags

    @classmethod
    def from_lambdas(cls, model: LambdasModel, *, labels: Sequence[Any] = (0, 1), **options: Any) -> Self:
        """A trained model from one that `read_lambdas` has read, such as one of the Java program.

        It predicts, and it can be evaluated and explained like any other. What a file does not hold is nan: the
        regularised gain, the duality gap, penalties.

        Parameters
        ----------
        model : LambdasModel
        labels : sequence of two labels
            That of the background, then that of presences.
        **options
            Of `SpeciesModel`, such as ``output`` and ``clamp``.

        Returns
        -------
        SpeciesModel
        """
        one = cls(**options)
        one._check_options()
        one.classes_ = np.asarray(labels)
        if one.classes_.shape != (2,) or one.classes_[0] >= one.classes_[1]:
            raise ValueError(f"labels must be two that ascend, got {labels!r}")
        one.covariates_, one.n_features_in_ = model.covariates, len(model.covariates.names)
        one.feature_names_in_ = np.array(model.covariates.names, object)
        one.model_, one.entropy_, one.n_background_ = model, model.entropy, model.n_background
        used = np.flatnonzero(model.weights)
        one.features_ = _weights_table(
            model.table[used], model.weights[used], np.full(len(used), np.nan), model.covariates
        )
        one.gain_ = one.unregularized_gain_ = one.dual_gap_ = one.n_presences_ = np.nan
        one.converged_, one.n_iter_, one.n_features_expanded_ = False, 0, len(model.table)
        one.feature_classes_ = "".join(letter for letter, kind in LETTERS.items() if (model.table.kind == kind).any())
        return one

    # Training

    def fit(self, X: Any, y: ArrayLike, sample_weight: ArrayLike | None = None) -> Self:
        """Train the model.

        Parameters
        ----------
        X : array or frame of shape (n_rows, n_covariates)
            Covariates of background points and presences.
        y : array of shape (n_rows,)
            Two labels; the greater one, such as 1 or True, is that of presences.
        sample_weight : array of shape (n_rows,), optional
            Weight 2 is the same as having the row twice: a presence counts twice, a background point has twice the
            default probability.

        Returns
        -------
        SpeciesModel
            Itself.
        """
        self._check_options()
        X = open_covariates(self, X, reset=True, allow_missing=self._allows_missing)
        presence = self._read_labels(X, y)
        self.covariates_ = Covariates.of(X, self.categorical_features)
        self._train(self._read_rows(X, presence, sample_weight).sample_space())
        return self

    def _train(self, space):
        problem = self._pose(space)
        self._keep(problem, problem.train(tol=self.tol, max_iter=self.max_iter), space)

    def _pose(self, space):
        return pose_presences(
            space,
            self.features,
            list(self.covariates_.categories),
            beta_multiplier=self.beta_multiplier,
            beta_lqp=self.beta_lqp,
            beta_categorical=self.beta_categorical,
            beta_threshold=self.beta_threshold,
            beta_hinge=self.beta_hinge,
            l2=self.l2,
            min_weight=self.min_weight,
            max_weight=self.max_weight,
            positive=self.positive,
        )

    def _check_options(self):
        if self.output not in OUTPUTS:
            raise ValueError(f"output must be one of {', '.join(OUTPUTS)}, got {self.output!r}")
        if self.missing not in MISSING:
            raise ValueError(f'missing must be "error" or "drop", got {self.missing!r}')
        if not 0 < self.beta_multiplier < np.inf:
            raise ValueError(f"beta_multiplier must be positive and finite, got {self.beta_multiplier!r}")
        check_options(tol=self.tol, max_iter=self.max_iter)

    def _read_labels(self, X, y):
        """Sets classes_; returns which rows are presences."""
        if y is None:
            raise ValueError("SpeciesModel requires y to be passed, but the target y is None")
        y = column_or_1d(y, warn=True)
        check_consistent_length(X, y)
        if y.dtype.kind == "f":
            assert_all_finite(y, input_name="y")
        check_classification_targets(y)
        self.classes_, codes = np.unique(y, return_inverse=True)
        if len(self.classes_) != 2:
            kind = "Only binary classification is supported. " if len(self.classes_) > 2 else ""
            raise ValueError(
                f"{kind}y must hold two labels, one class for presences and one for the background, not "
                f"{len(self.classes_)} class{'es' if len(self.classes_) > 1 else ''}"
            )
        return codes == 1

    def _read_rows(self, X, presence, sample_weight):
        V = encode_covariates(self.covariates_, X, allow_missing=self._allows_missing)
        weight = read_sample_weight(sample_weight, len(V))
        kept = (weight > 0) & ~np.isnan(V).any(axis=1)
        if self.remove_duplicates:
            kept[presence & kept] &= _is_first(V[presence & kept])
        background, presences = np.flatnonzero(kept & ~presence), np.flatnonzero(kept & presence)
        for label, rows in zip(self.classes_, (background, presences), strict=True):
            if not len(rows):
                raise ValueError(f"the class {label!s} has no row that has a weight and no missing value")
        return LabelledRows(V, weight, background, presences)

    @property
    def _allows_missing(self):
        return self.missing == "drop"

    def _keep(self, problem, fit, space):
        table = problem.table
        score = fit.scores - fit.scores.max()
        mass = np.exp(score)
        density_normalizer = space.weight @ mass
        raw = mass / density_normalizer
        entropy = -(space.weight * raw) @ (score - np.log(density_normalizer))
        # Without a weight: linear features, whose ranges clamp the covariates, and categories.
        shown = np.union1d(np.flatnonzero(np.isin(table.kind, (LINEAR, CATEGORY))), fit.used)
        weights = np.zeros(len(table))
        weights[fit.used] = fit.weights
        self.model_ = LambdasModel(
            self.covariates_,
            table[shown],
            weights[shown],
            float(fit.scores.max()),
            float(density_normalizer),
            float(space.weight.sum()),
            float(entropy),
            *cumulate(raw, space.weight),
        )
        used = table[fit.used]
        self.features_ = _weights_table(used, fit.weights, problem.penalties[fit.used], self.covariates_)
        self.gain_ = -fit.objective
        self.unregularized_gain_ = float(fit.weights @ problem.means[fit.used] - fit.log_z)
        self.entropy_ = self.model_.entropy
        self.dual_gap_, self.converged_, self.n_iter_ = fit.dual_gap, fit.converged, fit.n_iter
        self.n_presences_, self.n_background_ = problem.n_presences, self.model_.n_background
        self.feature_classes_, self.n_features_expanded_ = problem.classes, len(table)

    # Predictions

    def _encode(self, X):
        check_is_fitted(self)
        X = open_covariates(self, X, reset=False, allow_missing=self._allows_missing)
        return encode_covariates(self.covariates_, X, allow_missing=self._allows_missing)

    def _score(self, X):
        V = self._encode(X)
        return self.model_.score(V, clamp=self.clamp)

    def decision_function(self, X: Any) -> np.ndarray:
        """ln(raw e^H) - ln ln 2, H the entropy: 0 where the cloglog output is 1/2.

        Parameters
        ----------
        X : array or frame of shape (n_points, n_covariates)

        Returns
        -------
        ndarray of shape (n_points,)
        """
        score = self._score(X)
        return self.model_.decide(score)

    def predict_suitability(self, X: Any, output: str | None = None) -> np.ndarray:
        """The prediction of Maxent, larger where conditions suit the species better.

        Parameters
        ----------
        X : array or frame of shape (n_points, n_covariates)
        output : {"cloglog", "logistic", "raw", "cumulative"}, optional
            Instead of that of the model. See `LambdasModel.predict`.

        Returns
        -------
        ndarray of shape (n_points,)
        """
        score = self._score(X)
        return self.model_.transform_score(score, self.output if output is None else output)

    def predict_proba(self, X: Any) -> np.ndarray:
        """Probability of absence and of presence: the cloglog output, or the logistic one if ``output`` is that.

        Parameters
        ----------
        X : array or frame of shape (n_points, n_covariates)

        Returns
        -------
        ndarray of shape (n_points, 2)
        """
        presence = self.predict_suitability(X, "logistic" if self.output == "logistic" else "cloglog")
        return np.column_stack([1 - presence, presence])

    def predict(self, X: Any) -> np.ndarray:
        """The label of presences where the cloglog output is above 1/2.

        Parameters
        ----------
        X : array or frame of shape (n_points, n_covariates)

        Returns
        -------
        ndarray of shape (n_points,)
        """
        above = self.decision_function(X) > 0
        return self.classes_[above.astype(int)]

    def score(self, X: Any, y: ArrayLike, sample_weight: ArrayLike | None = None) -> float:
        """Area under the ROC curve: how often a presence is predicted above a background point or absence.

        Parameters
        ----------
        X : array or frame of shape (n_points, n_covariates)
        y : array of shape (n_points,)
        sample_weight : array of shape (n_points,), optional

        Returns
        -------
        float
        """
        decision = self.decision_function(X)
        return float(roc_auc_score(np.asarray(y) == self.classes_[1], decision, sample_weight=sample_weight))

    def to_lambdas(self, path: str | os.PathLike[str]) -> None:
        """Write the model to a .lambdas file, which the Java program reads.

        Parameters
        ----------
        path : str or path-like
        """
        check_is_fitted(self)
        self.model_.to_lambdas(path)


def read_rows(model: SpeciesModel, X: Any, y: ArrayLike, sample_weight: ArrayLike | None = None) -> LabelledRows:
    """The rows of data with the labels and covariates of a trained model.

    Parameters
    ----------
    model : SpeciesModel
    X : array or frame of shape (n_rows, n_covariates)
    y : array of shape (n_rows,)
    sample_weight : array of shape (n_rows,), optional

    Returns
    -------
    LabelledRows
    """
    check_is_fitted(model)
    X = open_covariates(model, X, reset=False, allow_missing=model.missing == "drop")
    y = column_or_1d(y, warn=True)
    check_consistent_length(X, y)
    unknown = y[~np.isin(y, model.classes_)]
    if len(unknown):
        raise ValueError(f"y holds {unknown[0]!s}, which is not a label of the model: {model.classes_.tolist()}")
    return model._read_rows(X, y == model.classes_[1], sample_weight)


def read_points(model: SpeciesModel, X: Any) -> np.ndarray:
    """Encoded covariates of points for a trained model; points with missing values are left out if it allows them."""
    V = model._encode(X)
    V = V[~np.isnan(V).any(axis=1)]
    if not len(V):
        raise ValueError("every point has a missing value")
    return V


def train_on_space(model: SpeciesModel, space: SampleSpace, columns: Sequence[int] | None = None) -> SpeciesModel:
    """A model with the same options, trained on a sample space, on some covariates of a trained model or on all.

    Parameters
    ----------
    model : SpeciesModel
        Trained; it is not changed.
    space : SampleSpace
        Of all covariates.
    columns : sequence of int, optional
        The numbers of the covariates. Their names are those of arrays where the model was trained on an array.

    Returns
    -------
    SpeciesModel
    """
    one = clone(model)
    one.classes_, one.covariates_, one.n_features_in_ = model.classes_, model.covariates_, model.n_features_in_
    if columns is not None:
        one.covariates_, one.n_features_in_ = model.covariates_.select(columns), len(columns)
        space = space.select(columns)
    if hasattr(model, "feature_names_in_"):
        one.feature_names_in_ = np.array(one.covariates_.names, object)
    one._train(space)
    return one


def _weights_table(table, weights, penalties, covariates):
    return make_table(
        feature=np.array(table.term_names(covariates.names), str),
        weight=weights,
        low=table.low,
        high=table.high,
        penalty=penalties,
    )


def _is_first(rows):
    """Whether a row is the first of those that equal it."""
    seen = set()
    return np.array([not (row_key(row) in seen or seen.add(row_key(row))) for row in rows], bool)
