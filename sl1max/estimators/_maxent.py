"""scikit-learn estimator for `sl1max.fit`."""

from __future__ import annotations

import os
from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Any, Literal, Self, overload

import numpy as np
from numpy.typing import ArrayLike
from scipy import sparse
from sklearn.base import BaseEstimator, ClassifierMixin
from sklearn.utils import check_consistent_length, check_random_state, column_or_1d
from sklearn.utils.class_weight import compute_sample_weight
from sklearn.utils.multiclass import type_of_target
from sklearn.utils.validation import check_is_fitted, validate_data

from sl1max._data.inputs import as_array, check_finite, check_options, class_names, open_labels, read_validation_labels
from sl1max._execution.control import Deadline
from sl1max._utils.progress import FitProgress
from sl1max._utils.typing import (
    Algorithm,
    BetaRule,
    Distribution,
    LabelMode,
    Matrix,
    MultilabelWeighting,
    OnInterrupt,
)
from sl1max.model._explain import Explanation, Ranking, Sign, Table
from sl1max.model._model import Model
from sl1max.training._early_stopping import check_validation_set, fit_early_stopping, split_validation
from sl1max.training._fit import fit, prepare, train, warn_constant
from sl1max.training._path import CHECKED, split_options
from sl1max.training._relax import relax_fit

TARGETS = ("binary", "multiclass", "multilabel-indicator", "continuous-multioutput")  # the last: soft labels
FORMATS = ("csr", "csc")
FIT_OPTIONS = (
    "distribution", "label_mode", "beta", "C", "beta_rule", "l1_ratio", "l2", "beta_lower", "beta_upper", "min_weight",
    "max_weight", "positive", "fit_intercept", "solver", "tol", "max_iter", "max_time",
    "multilabel_weighting", "n_jobs", "callback", "verbose", "checkpoint", "on_interrupt",
)  # fmt: skip


class MaxentPredictor(ClassifierMixin, BaseEstimator):
    """Predictions and fitted attributes of the estimators, computed from ``model_``."""

    model_: Model

    def __sklearn_tags__(self):
        tags = super().__sklearn_tags__()
        tags.input_tags.sparse = True
        tags.classifier_tags.multi_label = True
        return tags

    # Reading

    def _read_training_set(self, X, y, sample_weight):
        refuse_text(X)
        columns = getattr(X, "columns", None)
        self._class_names = class_names(y)
        y = y if y is None else open_labels(y)
        X, y = validate_data(self, X, y, accept_sparse=FORMATS, multi_output=True, ensure_all_finite=False)
        check_finite(X, "X", columns)
        check_consistent_length(X, sample_weight)
        if not sparse.issparse(y) and y.ndim == 2 and y.shape[1] == 1:
            y = column_or_1d(y, warn=True)
        target = "multilabel-indicator" if sparse.issparse(y) else type_of_target(y, "y", raise_unknown=True)
        if target not in TARGETS:
            raise ValueError(
                f"Unknown label type: {target}. y must be a vector of labels or an indicator of the classes, e.g. of "
                "sklearn.preprocessing.MultiLabelBinarizer"
            )
        return X, y

    def _name(self, model):
        """Return the model with the feature names and classes of the training set."""
        changes = {"feature_names": getattr(self, "feature_names_in_", None)}
        if model.trained_on_indicator and self._class_names is not None:
            changes["classes"] = self._class_names
        return replace(model, **changes)

    def _read_rows(self, X):
        check_is_fitted(self)
        return self._read_features(X)

    def _read_features(self, X):
        refuse_text(X)
        columns = getattr(X, "columns", None)
        X = validate_data(self, X, reset=False, accept_sparse=FORMATS, ensure_all_finite=False)
        check_finite(X, "X", columns)
        return X

    def _read_validation_set(self, X_val, y_val, y):
        """Validate the validation examples, of the same form as the training set."""
        X_val = self._read_features(X_val)
        return X_val, read_validation_labels(y_val, X_val.shape[0], y)

    # Predictions

    def decision_function(self, X: Matrix) -> np.ndarray:
        """Compute the decision value of each class.

        Parameters
        ----------
        X : array, sparse matrix or frame of shape (n_samples, n_features)

        Returns
        -------
        ndarray of shape (n_samples, n_classes), or (n_samples,) for a vector of two labels
            For two labels, the value of the second minus that of the first. See `Model.decision_function`.
        """
        return self._fitted_model().decision_function(self._read_features(X), n_jobs=self.n_jobs)

    def predict(self, X: Matrix) -> np.ndarray | sparse.csr_array:
        """The most likely label of each example, or an indicator if trained on one.

        Parameters
        ----------
        X : array, sparse matrix or frame of shape (n_samples, n_features)

        Returns
        -------
        ndarray of shape (n_samples,), or ndarray or csr_array of int of shape (n_samples, n_classes)
            The indicator, sparse if that of the training set was, has ones where p(y_c = 1|x) > 0.5; with
            exclusive classes, a one for the most likely class.
        """
        return self._fitted_model().predict(self._read_features(X), n_jobs=self.n_jobs)

    def predict_log_proba(self, X: Matrix) -> np.ndarray:
        """Log of `predict_proba`."""
        return self._fitted_model().predict_log_proba(self._read_features(X), n_jobs=self.n_jobs)

    def predict_proba(self, X: Matrix) -> np.ndarray:
        """Probability of each class.

        Parameters
        ----------
        X : array, sparse matrix or frame of shape (n_samples, n_features)

        Returns
        -------
        ndarray of shape (n_samples, n_classes)
            After training on a vector of labels each row sums to one, for independent classes too, whose
            p(y_c = 1|x) are given by `predict_proba_independent`. After training on an indicator:
            p(y_c = 1|x), or p(c|x) of exclusive classes.
        """
        return self._fitted_model().predict_proba(self._read_features(X), n_jobs=self.n_jobs)

    def predict_proba_independent(self, X: Matrix) -> np.ndarray:
        """Probabilities p(y_c = 1|x) of independent classes; rows need not sum to one.

        Parameters
        ----------
        X : array, sparse matrix or frame of shape (n_samples, n_features)

        Returns
        -------
        ndarray of shape (n_samples, n_classes)
        """
        return self._fitted_model().predict_proba_independent(self._read_features(X), n_jobs=self.n_jobs)

    @overload
    def predict_top_k(self, X: Matrix, k: int, *, return_decision: Literal[False] = False) -> np.ndarray: ...

    @overload
    def predict_top_k(self, X: Matrix, k: int, *, return_decision: Literal[True]) -> tuple[np.ndarray, np.ndarray]: ...

    def predict_top_k(
        self, X: Matrix, k: int, *, return_decision: bool = False
    ) -> np.ndarray | tuple[np.ndarray, np.ndarray]:
        """The k most likely classes of each example, best first; no array (n_samples, n_classes) is made.

        Parameters
        ----------
        X : array, sparse matrix or frame of shape (n_samples, n_features)
        k : int
            At most the number of classes.
        return_decision : bool
            Return the decision values too.

        Returns
        -------
        labels : ndarray of shape (n_samples, k)
            Labels; column numbers or names for an indicator.
        decision : ndarray of shape (n_samples, k)
            Their decision values; if ``return_decision``.
        """
        model = self._fitted_model()
        return model.predict_top_k(self._read_features(X), k, return_decision=return_decision, n_jobs=self.n_jobs)

    # Explanations

    def top_features(
        self,
        label: Any,
        n: int = 10,
        *,
        by: Ranking = "weight",
        sign: Sign = "both",
        against: Any = None,
        X: Matrix | None = None,
        feature_names: Sequence[str] | None = None,
    ) -> Table:
        """List the most important features of a class, see `Model.top_features`.

        Parameters
        ----------
        label : object
            The class; for an estimator trained on an indicator the number of its column.
        n : int
            Maximum number of features.
        by : {"weight", "effect"}
            "effect": weight times the standard deviation of the feature in ``X``.
        sign : {"both", "positive", "negative"}
            List only positive or only negative weights.
        against : object, optional
            Another class, whose weights are subtracted.
        X : array, sparse matrix or frame of shape (n_samples, n_features), optional
            Examples for ``by="effect"``.
        feature_names : sequence of str of length n_features, optional
            Names of the features; ``feature_names_in_`` unless given.

        Returns
        -------
        Table
        """
        X = None if X is None else self._read_rows(X)
        names = self._names_of_features(feature_names)
        return self._fitted_model().top_features(label, n, by=by, sign=sign, against=against, X=X, feature_names=names)

    def explain(
        self,
        x: Matrix,
        label: Any = None,
        *,
        against: Any = None,
        feature_names: Sequence[str] | None = None,
    ) -> Explanation:
        """Explain the score of one example by its features, see `Model.explain`.

        Parameters
        ----------
        x : array, sparse matrix or frame of shape (1, n_features)
            The example.
        label : object, optional
            The class whose score is explained; unless given, the one with the greatest score.
        against : object, optional
            Another class: the difference of the two scores is explained.
        feature_names : sequence of str of length n_features, optional
            Names of the features; ``feature_names_in_`` unless given.

        Returns
        -------
        Explanation
        """
        names = self._names_of_features(feature_names)
        return self._fitted_model().explain(self._read_rows(x), label, against=against, feature_names=names)

    def _names_of_features(self, feature_names):
        return getattr(self, "feature_names_in_", None) if feature_names is None else feature_names

    # Fitted attributes

    def _fitted_model(self) -> Model:
        check_is_fitted(self)
        return self.model_

    @property
    def classes_(self) -> np.ndarray:
        return self._fitted_model().classes

    @property
    def sparse_coef_(self) -> sparse.csr_array:
        weights = self._fitted_model().weights
        return weights[[1]] - weights[[0]] if self.model_._has_two_labels else weights

    @property
    def coef_(self) -> np.ndarray:
        return self.sparse_coef_.toarray()

    @property
    def intercept_(self) -> np.ndarray:
        intercept = self._fitted_model().intercept
        return intercept[[1]] - intercept[[0]] if self.model_._has_two_labels else intercept

    @property
    def n_iter_(self) -> int | np.ndarray:
        return self._fitted_model().n_iter

    @property
    def dual_gap_(self) -> float | np.ndarray:
        return self._fitted_model().dual_gap

    @property
    def objective_(self) -> float | np.ndarray:
        return self._fitted_model().objective


class MaxentClassifier(MaxentPredictor):
    """L1-regularised maximum-entropy classifier.

    Joint, class-conditional and conditional models of exclusive or independent classes, trained to a
    certified duality gap. The conditional ones are L1-regularised multinomial and logistic regression.

    Parameters
    ----------
    distribution : {"conditional", "joint", "class-conditional"}
        What is modelled: p(c|x), p(x, c) or p(x|c).
    label_mode : {"auto", "exclusive", "independent"}
        Whether each example has one class, or each class is a binary problem. "auto":
        exclusive for a vector of labels, independent for an indicator.
    beta : float or array of shape (n_features,) or (n_classes, n_features), optional
        Strength of the regularisation, 0.5 unless beta or C is given. 0 means unpenalised, inf leaves the feature out.
    C : float or array of shape (n_features,) or (n_classes, n_features), optional
        Inverse strength, as in scikit-learn's LogisticRegression, in place of beta: the same as ``beta=1/C`` with
        ``beta_rule="count"``, whatever ``beta_rule`` is.
    beta_rule : {"deviation", "count"}
        Conversion of beta to the penalty of a weight, see `sl1max.fit`.
    l1_ratio : float
        Elastic net, with C: the L1 share of the strength 1/C; the rest is L2.
    l2 : float or array of shape (n_features,) or (n_classes, n_features)
        Elastic net, with beta: adds l2 / 2 times the square of each weight, scaled by the rule, see `sl1max.fit`.
    beta_lower, beta_upper : float or array of shape (n_features,) or (n_classes, n_features), optional
        What positive weights cost, and what negative ones cost; beta unless given.
    min_weight, max_weight : float or array of shape (n_features,) or (n_classes, n_features), optional
        Limits of the weights, min_weight <= 0 <= max_weight.
    positive : bool
        No weight in favour of a class is negative: ``coef_ >= 0``, but for joint and class-conditional models of two
        labels, of which each class has weights >= 0.
    fit_intercept : bool
        Fit an unpenalised intercept for each class.
    solver : {"auto", "newton", "sequential"}
        "newton": working sets with Newton steps, what "auto" chooses.
        "sequential" is the algorithm of the paper, one weight at a time, for values in [0, 1].
    tol : float
        Stop when the duality gap is at most tol times the objective with all weights zero.
    max_iter : int, optional
        Most rounds ("newton": 1000) or single updates ("sequential": 1,000,000) for each problem.
    max_time : float, optional
        Limit on the training time in seconds. If it is reached, the model is the best one found, with a
        ConvergenceWarning.
    multilabel_weighting : {"duplicate", "equal"}
        With exclusive classes, an example with K labels counts K times ("duplicate"), or once with weight 1/K per label
        ("equal").
    class_weight : dict, "balanced" or list of dict, optional
        Factors of the sample weights by label; "balanced" gives all classes the same total weight. For an indicator,
        "balanced" or one dict per column, whose factors are multiplied as in scikit-learn's ``compute_sample_weight``.
    warm_start : bool
        Start from the weights of the previous `fit`, which must have had the same classes and features.
    early_stopping : bool
        Set examples aside, or use those given to `fit`, and keep the model with the least share of wrong top
        classes among them, unweighted. For exclusive classes only. The error is looked at after each Newton
        round for ``solver="newton"``; for ``solver="sequential"``, which suits it better, after each 100
        updates, later a tenth of those made.
    validation_fraction : float
        Share of the examples that early stopping holds out. Every class keeps a training example.
    n_iter_no_change : int
        Stop after this many checks without improvement of the validation error.
    n_jobs : int, optional
        Number of threads, for predictions and for models trained class by class; the result does not depend on it.
    callback : callable, optional
        Called with a `FitProgress` after each round; if it returns a true value, training of this problem stops.
    random_state : int or RandomState, optional
        Random state of the choice of validation examples.
    verbose : int
        1: progress on stderr, a bar on a terminal, else plain lines.
    checkpoint : str or path-like, optional
        A file to which every finished class is written; if it exists, `fit` continues from it. Not with early stopping.
    on_interrupt : {"raise", "return"}
        "return": Ctrl-C ends `fit` with the model trained so far, see `sl1max.fit`. Not with early stopping.

    Attributes
    ----------
    model_ : Model
        The model returned by `sl1max.fit`.
    classes_ : ndarray of shape (n_classes,)
        Labels; for an indicator column numbers, or the column names of a data frame.
    coef_ : ndarray of shape (n_classes, n_features), or (1, n_features) for a vector of two labels
        Weights, converted to a dense array at each access. For two labels, those of the second minus those of the
        first.
    sparse_coef_ : csr_array
        The same, as stored.
    intercept_ : ndarray of shape (n_classes,) or (1,)
    n_features_in_ : int
    feature_names_in_ : ndarray of shape (n_features,)
        Column names, if X was a frame with strings for names.
    n_iter_, dual_gap_, objective_ : number or ndarray of shape (n_classes,)
        One for each objective: see `Model`.
    validation_errors_ : ndarray
        Early stopping only: the validation error after each round; that of ``model_`` is the smallest.

    See Also
    --------
    sl1max.fit : Train a model without scikit-learn.
    MaxentClassifierCV : Choose beta by cross-validation.

    Examples
    --------
    >>> from sklearn.feature_extraction.text import CountVectorizer
    >>> from sklearn.pipeline import make_pipeline
    >>> from sl1max import MaxentClassifier
    >>> texts = ["wheat and corn", "corn price", "gold mine", "gold and silver", "wheat crop", "silver price"]
    >>> topics = ["grain", "grain", "metal", "metal", "grain", "metal"]
    >>> model = make_pipeline(CountVectorizer(binary=True), MaxentClassifier(beta=0.1)).fit(texts, topics)
    >>> model.predict(["gold prices", "wheat"]).tolist()
    ['metal', 'grain']
    """

    def __init__(
        self,
        *,
        distribution: Distribution = "conditional",
        label_mode: LabelMode = "auto",
        beta: ArrayLike | None = None,
        C: ArrayLike | None = None,
        beta_rule: BetaRule = "deviation",
        l1_ratio: float = 1.0,
        l2: ArrayLike = 0.0,
        beta_lower: ArrayLike | None = None,
        beta_upper: ArrayLike | None = None,
        min_weight: ArrayLike | None = None,
        max_weight: ArrayLike | None = None,
        positive: bool = False,
        fit_intercept: bool = True,
        solver: Algorithm = "auto",
        tol: float = 1e-4,
        max_iter: int | None = None,
        max_time: float | None = None,
        multilabel_weighting: MultilabelWeighting = "duplicate",
        class_weight: Any = None,
        warm_start: bool = False,
        early_stopping: bool = False,
        validation_fraction: float = 0.1,
        n_iter_no_change: int = 10,
        n_jobs: int | None = None,
        callback: Callable[[FitProgress], object] | None = None,
        random_state: int | np.random.RandomState | None = None,
        verbose: int = 0,
        checkpoint: str | os.PathLike[str] | None = None,
        on_interrupt: OnInterrupt = "raise",
    ) -> None:
        self.distribution = distribution
        self.label_mode = label_mode
        self.beta = beta
        self.C = C
        self.beta_rule = beta_rule
        self.l1_ratio = l1_ratio
        self.l2 = l2
        self.beta_lower = beta_lower
        self.beta_upper = beta_upper
        self.min_weight = min_weight
        self.max_weight = max_weight
        self.positive = positive
        self.fit_intercept = fit_intercept
        self.solver = solver
        self.tol = tol
        self.max_iter = max_iter
        self.max_time = max_time
        self.multilabel_weighting = multilabel_weighting
        self.class_weight = class_weight
        self.warm_start = warm_start
        self.early_stopping = early_stopping
        self.validation_fraction = validation_fraction
        self.n_iter_no_change = n_iter_no_change
        self.n_jobs = n_jobs
        self.callback = callback
        self.random_state = random_state
        self.verbose = verbose
        self.checkpoint = checkpoint
        self.on_interrupt = on_interrupt

    def fit(
        self,
        X: Matrix,
        y: Matrix,
        sample_weight: ArrayLike | None = None,
        *,
        X_val: Matrix | None = None,
        y_val: Matrix | None = None,
    ) -> Self:
        """Train on examples.

        Parameters
        ----------
        X : array, sparse matrix or frame of shape (n_samples, n_features)
        y : array of shape (n_samples,) or array or sparse matrix of shape (n_samples, n_classes)
            Labels, or an indicator of the classes of each example, which may be soft.
        sample_weight : array of shape (n_samples,), optional
            Weight 2 equals two copies of the example.
        X_val, y_val : as X and y, optional
            Validation examples for early stopping, instead of held-out training examples.

        Returns
        -------
        MaxentClassifier
            Itself.
        """
        check_validation_set(X_val, y_val, self.early_stopping)
        X, y = self._read_training_set(X, y, sample_weight)
        options = {name: getattr(self, name) for name in FIT_OPTIONS}
        options["sample_weight"] = weigh_classes(self.class_weight, y, sample_weight)
        options["warm_start"] = self._earlier_model()
        self.__dict__.pop("validation_errors_", None)
        if self.early_stopping:
            self._fit_early_stopping(X, y, X_val, y_val, options)
        else:
            self.model_ = fit(X, y, **options)
        self.model_ = self._name(self.model_)
        return self

    def _earlier_model(self):
        """Return the model for a warm start; after training on an indicator its classes are column numbers again."""
        model = getattr(self, "model_", None) if self.warm_start else None
        if model is None or not model.trained_on_indicator:
            return model
        return replace(model, classes=np.arange(model.n_classes))

    def _fit_betas(self, betas, X, y, sample_weight=None, relax_factor=None, blend=0.0):
        """Fit at each beta, starting from the weights of the previous one; yield the estimator after each.

        If max_time is reached, it ends after at least one beta. X, an array, a sparse matrix or `Features`, has been
        validated and is converted once.
        """
        of_data, of_fit = split_options(
            {name: getattr(self, name) for name in FIT_OPTIONS if name not in ("beta", "C")}
        )
        check_options(**{name: getattr(self, name) for name in CHECKED})
        deadline = Deadline(of_fit.pop("max_time"))
        weight = weigh_classes(self.class_weight, y, sample_weight)
        reduction = prepare(X, y, beta=1.0, of_path=True, sample_weight=weight, **of_data)
        warn_constant(reduction.data)
        self.n_features_in_ = X.shape[1]
        model = self._earlier_model()
        for beta in betas:
            self.beta = beta
            at_beta = reduction.times(float(beta), model)
            self.model_ = model = train(at_beta, deadline=deadline, **of_fit)
            if relax_factor is not None:
                self.model_ = relax_fit(at_beta, model, relax_factor, blend, deadline=deadline, **of_fit)
            yield self
            if deadline.is_over:
                break

    def _fit_early_stopping(self, X, y, X_val, y_val, options):
        if X_val is not None:
            X_val, y_val = self._read_validation_set(X_val, y_val, y)
        else:
            train, held = split_validation(y, self.validation_fraction, check_random_state(self.random_state))
            X, y, X_val, y_val = X[train], y[train], X[held], y[held]
            if options["sample_weight"] is not None:
                options["sample_weight"] = np.asarray(options["sample_weight"])[train]
        self.model_, self.validation_errors_ = fit_early_stopping(
            X, y, X_val, y_val, n_iter_no_change=self.n_iter_no_change, **options
        )


def refuse_text(X: Any) -> None:
    """Raise an error with advice for text input, before scikit-learn's checks."""
    as_array(X[:1] if hasattr(X, "columns") else X)


def weigh_classes(class_weight: Any, y: Matrix, sample_weight: ArrayLike | None) -> ArrayLike | None:
    """Multiply sample weights by the factors of their classes."""
    if class_weight is None:
        return sample_weight
    factors = compute_sample_weight(class_weight, y)
    return factors if sample_weight is None else factors * np.asarray(sample_weight)
