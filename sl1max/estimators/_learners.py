"""Learners with one interface: maximum entropy, AdaBoost, linear SVM, and automatic choice."""

from __future__ import annotations

import numbers
import threading
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, Literal, Self, TypeAlias

import numpy as np
from numpy.typing import ArrayLike
from scipy import sparse
from sklearn.metrics import check_scoring
from sklearn.model_selection import check_cv
from sklearn.svm import LinearSVC
from sklearn.utils import check_random_state
from sklearn.utils.metaestimators import available_if

from sl1max._data.inputs import check_options
from sl1max._utils.progress import format_seconds, print_line
from sl1max._utils.typing import Distribution, LabelMode, Matrix
from sl1max.estimators._adaboost import (
    AdaBoostClassifier,
    Loss,
    classes_to_train,
    is_mirrored,
    join_classes,
    read_classes,
)
from sl1max.estimators._maxent import MaxentClassifier, MaxentPredictor, weigh_classes
from sl1max.estimators._maxent_cv import SharedFeatures, score_path
from sl1max.estimators._parallel import run_parallel
from sl1max.model._explain import Table
from sl1max.training._early_stopping import model_error
from sl1max.training._path import read_betas

Learner: TypeAlias = Literal["maxent", "adaboost", "svm"]


def get_learner(learner: Learner | Literal["auto"] = "maxent", **options: Any) -> MaxentPredictor:
    """Return a classifier by name; all have the same methods and a fitted `Model`.

    Parameters
    ----------
    learner : {"maxent", "adaboost", "svm", "auto"}
        `MaxentClassifier`, `AdaBoostClassifier`, scikit-learn's LinearSVC for each class (`LinearSVMClassifier`), or
        the best of them on held-out examples (`AutoClassifier`).
    **options :
        Parameters of that class.

    Returns
    -------
    MaxentClassifier, AdaBoostClassifier, LinearSVMClassifier or AutoClassifier

    Examples
    --------
    >>> import sl1max
    >>> X, y = [[1, 0], [1, 1], [0, 1], [0, 1]], ["spam", "spam", "ham", "ham"]
    >>> for learner in ("maxent", "adaboost", "svm"):
    ...     print(sl1max.get_learner(learner).fit(X, y).predict([[1, 0]]))
    ['spam']
    ['spam']
    ['spam']
    """
    if learner not in LEARNERS:
        raise ValueError(f"learner={learner!r} is unknown: it must be one of {', '.join(map(repr, LEARNERS))}")
    return LEARNERS[learner](**options)


class WithoutProbabilities:
    """`MaxentPredictor` without probabilities, for scores that are not log-odds."""

    @available_if(lambda self: self._has_probabilities())
    def predict_log_proba(self, X: Matrix) -> np.ndarray:
        """Log of `predict_proba`."""
        return super().predict_log_proba(X)

    @available_if(lambda self: self._has_probabilities())
    def predict_proba(self, X: Matrix) -> np.ndarray:
        """Probability of each class, as in `MaxentClassifier`."""
        return super().predict_proba(X)

    @available_if(lambda self: self._has_probabilities())
    def predict_proba_independent(self, X: Matrix) -> np.ndarray:
        """p(y_c = 1|x) of independent classes, as in `MaxentClassifier`."""
        return super().predict_proba_independent(X)


class LinearSVMClassifier(WithoutProbabilities, MaxentPredictor):
    """scikit-learn's LinearSVC, each class against the others, for labels and for label sets.

    It has no probabilities.

    Parameters
    ----------
    C : float
        Weight of the squared hinge loss beside the L2 penalty.
    fit_intercept : bool
        Fit an intercept for each class, which liblinear penalises too.
    dual : bool or "auto"
        Solve the dual problem rather than the primal one; "auto" as in LinearSVC, if there are fewer examples than
        features. For sparse X the dual is often faster for any number of examples.
    tol, max_iter : float, int
        Tolerance and maximum number of iterations of liblinear.
    class_weight : dict, "balanced" or list of dict, optional
        As in `MaxentClassifier`.
    n_jobs : int, optional
        Threads, over classes and for predictions.
    random_state : int or RandomState, optional
        Random state of the order of examples in the dual problem. All threads share one generator of liblinear: with
        several threads, weights are equal only up to ``tol``.
    verbose : int
        1: a line on stderr for each class.

    Attributes
    ----------
    model_ : Model
        Independent classes; its scores are margins, not log-odds. ``objective`` and ``dual_gap`` are NaN.
    classes_, coef_, sparse_coef_, intercept_, n_iter_, n_features_in_, feature_names_in_ :
        As in `MaxentClassifier`.

    Examples
    --------
    >>> from sl1max.estimators._learners import LinearSVMClassifier
    >>> X, Y = [[1, 0], [1, 1], [0, 1], [0, 0]], [[1, 0], [1, 1], [0, 1], [0, 0]]
    >>> LinearSVMClassifier().fit(X, Y).predict(X).tolist()
    [[1, 0], [1, 1], [0, 1], [0, 0]]
    """

    def __init__(
        self,
        *,
        C: float = 1.0,
        fit_intercept: bool = True,
        dual: bool | Literal["auto"] = "auto",
        tol: float = 1e-4,
        max_iter: int = 10_000,
        class_weight: Any = None,
        n_jobs: int | None = None,
        random_state: int | np.random.RandomState | None = None,
        verbose: int = 0,
    ) -> None:
        self.C = C
        self.fit_intercept = fit_intercept
        self.dual = dual
        self.tol = tol
        self.max_iter = max_iter
        self.class_weight = class_weight
        self.n_jobs = n_jobs
        self.random_state = random_state
        self.verbose = verbose

    def fit(self, X: Matrix, y: Matrix, sample_weight: ArrayLike | None = None) -> Self:
        """Train on examples.

        Parameters
        ----------
        X : array, sparse matrix or frame of shape (n_samples, n_features)
        y : array of shape (n_samples,) or array or sparse matrix of shape (n_samples, n_classes)
            Labels, or an indicator of zeros and ones of the classes of each example.
        sample_weight : array of shape (n_samples,), optional

        Returns
        -------
        LinearSVMClassifier
            Itself.
        """
        X, y = self._read_training_set(X, y, sample_weight)
        check_options(n_jobs=self.n_jobs)
        data = read_classes(X, y, weigh_classes(self.class_weight, y, sample_weight))
        self.model_ = self._name(self._fit_classes(data))
        return self

    def _fit_classes(self, data):
        X = data.matrix.tocsr() if sparse.issparse(data.matrix) else np.ascontiguousarray(data.matrix)
        classes = classes_to_train(data)
        seed = draw_seed(self.random_state)
        found = run_parallel(self._fit_class, [(X, data, c, seed) for c in classes], self.n_jobs)
        n_classes = len(data.classes)
        rows = [sparse.csr_array((1, X.shape[1]))] * n_classes
        intercept, n_iter = np.zeros(n_classes), np.zeros(n_classes, np.int64)
        for c, (row, constant, iterations) in zip(classes, found, strict=True):
            rows[c], intercept[c], n_iter[c] = row, constant, iterations
        if is_mirrored(data):
            rows[0], intercept[0], n_iter[0] = -rows[1], -intercept[1], n_iter[1]
        nothing = np.full(n_classes, np.nan)
        prior = np.asarray(data.labels.T @ data.mass) / data.mass.sum()
        return join_classes(
            data, sparse.vstack(rows, format="csr"), intercept, fit_intercept=bool(self.fit_intercept),
            class_prior=prior, objective=nothing, objective_zero=nothing,
            n_iter=n_iter, converged=n_iter < self.max_iter, beta=None, solver="liblinear", tol=self.tol,
        )  # fmt: skip

    def _fit_class(self, X, data, c, seed):
        """Weights of one class as a csr_array (1, n_features), its intercept, and the iterations made."""
        is_class = data.labels[:, [c]].toarray().ravel()
        machine = LinearSVC(
            C=self.C, fit_intercept=self.fit_intercept, dual=self.dual, tol=self.tol, max_iter=self.max_iter,
            random_state=seed,
        )  # fmt: skip
        machine.fit(X, is_class, sample_weight=data.mass)
        if self.verbose:
            print_line(f"class {data.classes[c]}: {machine.n_iter_} iterations")
        return sparse.csr_array(machine.coef_), np.ravel(machine.intercept_)[0], machine.n_iter_

    def _has_probabilities(self):
        return False


@dataclass(frozen=True, eq=False)
class Family:
    """A learner with the values of one parameter to try."""

    learner: str
    settings: dict
    name: str
    values: tuple

    def candidates(self) -> list[dict]:
        return [{"learner": self.learner, **self.settings, self.name: value} for value in self.values]


class AutoClassifier(WithoutProbabilities, MaxentPredictor):
    """Choice of learner, distribution, label_mode and beta by cross-validation or on validation examples.

    Candidates are maximum-entropy models with each distribution, label_mode and beta, AdaBoost with each loss and
    number of rounds, and linear SVMs with each C. The candidate with the best mean score, the first if several are
    equal, is trained on all examples.

    Parameters
    ----------
    learners : str or list of str
        Of "maxent", "adaboost" and "svm".
    distribution, label_mode : str or list of str
        Maxent: as in `MaxentClassifier`.
    betas : array
        Maxent: values of beta, used in descending order.
    loss : str or list of str
        AdaBoost: the losses.
    n_estimators : array of int
        AdaBoost: numbers of rounds.
    Cs : array
        SVM: values of C.
    fit_intercept, class_weight :
        As in `MaxentClassifier`, for all learners.
    scoring : str or callable, optional
        Name of a scorer of scikit-learn, or ``scorer(estimator, X, y)``; larger is better. The default is the share of
        examples whose most likely class is among their labels.
    cv : int, splitter or iterable, optional
        Folds: by default five, stratified if y is a vector of labels.
    n_jobs : int, optional
        Number of threads, over folds and candidates and for predictions; the result does not depend on it.
    random_state : int or RandomState, optional
        Of the SVM.
    verbose : int
        1: progress on stderr, then the table of candidates and the choice.

    Attributes
    ----------
    results_ : Table
        Candidates: learner, settings, mean score, its standard deviation over folds, number of weights, seconds of
        training. The score is NaN if training or scoring failed.
    candidates_ : list of dict
        The settings of each row of ``results_``.
    best_params_, best_score_, best_index_ : dict, float, int
        The choice: its settings with the learner, its score, its row.
    best_estimator_ : MaxentClassifier, AdaBoostClassifier or LinearSVMClassifier
        The chosen learner, trained on all examples except validation examples.
    errors_ : dict
        Reasons why training or scoring failed, by row of ``results_``.
    model_, classes_, coef_, sparse_coef_, intercept_, n_iter_, n_features_in_, feature_names_in_ :
        As in `MaxentClassifier`.

    Examples
    --------
    >>> import numpy as np
    >>> import sl1max
    >>> rng = np.random.default_rng(0)
    >>> X = rng.integers(0, 2, (200, 10))
    >>> y = np.where(rng.random(200) < 0.1, 0, X[:, 0] + X[:, 1])
    >>> auto = sl1max.get_learner("auto", distribution="conditional", betas=[0.5], n_estimators=[50], Cs=[1])
    >>> auto.fit(X, y).results_[["learner", "settings"]]
    learner   settings
    maxent    conditional, exclusive, beta=0.5
    maxent    conditional, independent, beta=0.5
    adaboost  logistic, n_estimators=50
    svm       C=1
    """

    def __init__(
        self,
        *,
        learners: Sequence[Learner] = ("maxent", "adaboost", "svm"),
        distribution: Distribution | Sequence[Distribution] = ("conditional", "joint", "class-conditional"),
        label_mode: LabelMode | Sequence[LabelMode] = ("exclusive", "independent"),
        betas: ArrayLike = (1.0, 0.5, 0.25),
        loss: Loss | Sequence[Loss] = "logistic",
        n_estimators: int | Sequence[int] = (50, 100, 200, 400),
        Cs: float | Sequence[float] = (0.01, 0.1, 1.0),
        fit_intercept: bool = True,
        class_weight: Any = None,
        scoring: str | Callable[..., float] | None = None,
        cv: Any = None,
        n_jobs: int | None = None,
        random_state: int | np.random.RandomState | None = None,
        verbose: int = 0,
    ) -> None:
        self.learners = learners
        self.distribution = distribution
        self.label_mode = label_mode
        self.betas = betas
        self.loss = loss
        self.n_estimators = n_estimators
        self.Cs = Cs
        self.fit_intercept = fit_intercept
        self.class_weight = class_weight
        self.scoring = scoring
        self.cv = cv
        self.n_jobs = n_jobs
        self.random_state = random_state
        self.verbose = verbose

    def fit(
        self,
        X: Matrix,
        y: Matrix,
        sample_weight: ArrayLike | None = None,
        *,
        X_val: Matrix | None = None,
        y_val: Matrix | None = None,
    ) -> Self:
        """Choose a learner and train it.

        Parameters
        ----------
        X : array, sparse matrix or frame of shape (n_samples, n_features)
        y : array of shape (n_samples,) or array or sparse matrix of shape (n_samples, n_classes)
            Labels, or an indicator of the classes of each example.
        sample_weight : array of shape (n_samples,), optional
            For training; not used for the scores.
        X_val, y_val : as X and y, optional
            Validation examples, instead of cross-validation.

        Returns
        -------
        AutoClassifier
            Itself.
        """
        if (X_val is None) != (y_val is None):
            raise ValueError("X_val and y_val must be given together")
        X, y = self._read_training_set(X, y, sample_weight)
        X = X.tocsr() if sparse.issparse(X) else X
        y = sparse.csr_array(y) if sparse.issparse(y) else y
        families = self._families()
        seed = draw_seed(self.random_state)
        if X_val is None:
            folds = list(check_cv(self.cv, y, classifier=True).split(X, y))
            found = self._score(families, X, y, sample_weight, folds, seed)
        else:
            X_val, y_val = self._read_validation_set(X_val, y_val, y)
            n_samples = X.shape[0]
            all_X, all_y = stack_rows(X, X_val), stack_rows(y, y_val)
            fold = np.arange(n_samples), np.arange(n_samples, all_X.shape[0])
            found = self._score(families, all_X, all_y, sample_weight, [fold], seed)
        self._set_results(families, found)
        self.best_estimator_ = get_learner(**self.best_params_, **self._shared(self.best_params_["learner"], seed))
        self.best_estimator_.set_params(n_jobs=self.n_jobs).fit(X, y, sample_weight=sample_weight)
        self.model_ = self._name(self.best_estimator_.model_)
        return self

    def _shared(self, learner, seed):
        """Settings that do not vary."""
        shared = {"fit_intercept": self.fit_intercept, "class_weight": self.class_weight}
        return shared | ({"random_state": seed} if learner == "svm" else {})

    def _families(self):
        families = []
        for learner in self._choices("learners"):
            if learner == "maxent":
                betas = tuple(read_betas(self.betas).tolist())
                families += [
                    Family(learner, {"distribution": distribution, "label_mode": label_mode}, "beta", betas)
                    for distribution in self._choices("distribution")
                    for label_mode in self._choices("label_mode")
                ]
            elif learner == "adaboost":
                n_estimators = tuple(sorted(self._choices("n_estimators")))
                families += [
                    Family(learner, {"loss": loss}, "n_estimators", n_estimators) for loss in self._choices("loss")
                ]
            elif learner == "svm":
                families.append(Family(learner, {}, "C", tuple(sorted(self._choices("Cs")))))
            else:
                raise ValueError(f"learners has {learner!r}: it must be some of 'maxent', 'adaboost', 'svm'")
        return families

    def _choices(self, name):
        """Return the values of a parameter that has one or several."""
        value = getattr(self, name)
        values = np.array([value] if np.isscalar(value) else list(value)).tolist()
        if not values:
            raise ValueError(f"{name} is empty: there is nothing to choose from")
        return values

    def _score(self, families, X, y, sample_weight, folds, seed):
        """Compute, for each family and fold, the table of `score_path` or the error of training or scoring."""
        weight = None if sample_weight is None else np.asarray(sample_weight)
        scorer = top_class_score if self.scoring is None else check_scoring(self, scoring=self.scoring)
        progress = Progress(len(families) * len(folds)) if self.verbose else None

        n_maxent = sum(family.learner == "maxent" for family in families)
        shared = [SharedFeatures(X, train, n_maxent) for train, _ in folds]

        def score(family, k):
            model = get_learner(family.learner, **family.settings, **self._shared(family.learner, seed))
            if family.learner == "maxent":
                model.set_params(warm_start=True)
            try:
                features = shared[k] if family.learner == "maxent" else None
                table = score_path(
                    model, family.name, family.values, X, y, weight, folds[k], scorer, {}, shared=features
                )
            except (ValueError, AttributeError) as error:  # the latter: a score that needs probabilities
                table = error
            if progress is not None:
                progress.show(family, table)
            return table

        found = run_parallel(score, [(family, k) for family in families for k in range(len(folds))], self.n_jobs)
        return [found[k : k + len(folds)] for k in range(0, len(found), len(folds))]

    def _set_results(self, families, found):
        """Make the table of candidates and find the best one."""
        self.candidates_, rows, self.errors_ = [], [], {}
        for family, tables in zip(families, found, strict=True):
            errors = [table for table in tables if isinstance(table, Exception)]
            nothing = np.full((3, len(family.values), 1), np.nan)
            scores, seconds, n_weights = nothing if errors else np.stack(tables, axis=2)
            for k, candidate in enumerate(family.candidates()):
                if errors:
                    self.errors_[len(rows)] = errors[0]
                self.candidates_.append(candidate)
                mean = scores[k].mean(), scores[k].std(), n_weights[k].mean(), seconds[k].mean()
                rows.append((family.learner, describe_settings(candidate), *mean))
        if len(self.errors_) == len(rows):
            raise self.errors_[0]
        width = max(len(row[1]) for row in rows)
        names = [("learner", "U8"), ("settings", f"U{width}")]
        names += [(name, float) for name in ("score", "deviation", "weights", "seconds")]
        self.results_ = Table(np.array(rows, names))
        scores = self.results_["score"]
        self.best_index_ = int(np.where(np.isnan(scores), -np.inf, scores).argmax())
        self.best_params_ = self.candidates_[self.best_index_]
        self.best_score_ = float(scores[self.best_index_])
        if self.verbose:
            chosen = f"{self.best_params_['learner']}, {describe_settings(self.best_params_)}"
            print_line(f"tried:\n{self.results_!r}")
            print_line(f"chose {chosen}: score {self.best_score_:.4g}")

    def _has_probabilities(self):
        return not hasattr(self, "best_params_") or self.best_params_["learner"] != "svm"


LEARNERS = {
    "maxent": MaxentClassifier,
    "adaboost": AdaBoostClassifier,
    "svm": LinearSVMClassifier,
    "auto": AutoClassifier,
}


def draw_seed(random_state) -> int:
    """Draw one seed for all threads, since a shared generator would make the result depend on their order."""
    if isinstance(random_state, numbers.Integral):
        return random_state
    return check_random_state(random_state).randint(np.iinfo(np.int32).max)


def describe_settings(candidate: dict) -> str:
    """Describe settings briefly: names unchanged, numbers with their parameter."""
    return ", ".join(
        value if isinstance(value, str) else f"{name}={value:g}"
        for name, value in candidate.items()
        if name != "learner"
    )


def top_class_score(estimator: MaxentPredictor, X: Matrix, y: Matrix) -> float:
    """Compute the share of examples whose most likely class is among their labels."""
    return 1 - model_error(estimator.model_, X, y)


def stack_rows(first, second):
    """Stack two matrices or two vectors."""
    if sparse.issparse(first) or sparse.issparse(second):
        return sparse.vstack([sparse.csr_array(first), sparse.csr_array(second)], format="csr")
    return np.concatenate([first, np.asarray(second)])


class Progress:
    """A line on stderr for each family and fold: how many are done, the best score, the time left."""

    def __init__(self, n_tasks):
        self._n_tasks = n_tasks
        self._done = 0
        self._start = time.monotonic()
        self._lock = threading.Lock()

    def show(self, family: Family, table):
        with self._lock:
            self._done += 1
            left = (time.monotonic() - self._start) * (self._n_tasks / self._done - 1)
            if isinstance(table, Exception):
                result = f"failed, {table}"
            else:
                best = int(np.argmax(table[0]))
                result = f"best score of the fold {table[0, best]:.4g} at {family.name}={family.values[best]:g}"
            name = ", ".join([family.learner, *family.settings.values()])
            print_line(f"{self._done}/{self._n_tasks} {name}: {result}; {format_seconds(left)} left")
