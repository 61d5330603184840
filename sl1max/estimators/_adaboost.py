"""AdaBoost with features as weak learners, one class against the others.

The step of every round is stored, so the model of the first k rounds is available for every k. With validation
examples, training stops when their error has not decreased for some time, and the best k is chosen without training
again.
"""

from __future__ import annotations

import numbers
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any, Literal, Self, TypeAlias, get_args

import numpy as np
from numpy.typing import ArrayLike
from scipy import sparse
from sklearn.utils import check_random_state

from sl1max._core._boosting import Booster, weigh_inactive
from sl1max._data.inputs import Data, check_options, read_data
from sl1max._data.moments import IN_CLASS, Moments
from sl1max._data.precision import LARGEST_VALUE
from sl1max._execution.control import FitControl
from sl1max._execution.parallel import solve_all
from sl1max._models.reduction import Plan
from sl1max._utils.progress import FitProgress, print_line
from sl1max._utils.typing import Matrix
from sl1max.estimators._maxent import MaxentPredictor, weigh_classes
from sl1max.model._model import BLOCK_CELLS, Model
from sl1max.training._early_stopping import check_patience, check_validation_set, model_error, split_validation
from sl1max.training._fit import explaining_memory_errors, raise_failures, warn_constant

Loss: TypeAlias = Literal["logistic", "exponential"]
LOSSES = get_args(Loss)
BOOST_OPTIONS = (
    "loss",
    "n_estimators",
    "fit_intercept",
    "smoothing",
    "n_jobs",
    "callback",
    "verbose",
)  # of an estimator
FIRST_LOOK = 10  # rounds before the first check of the validation error; later a tenth of the rounds so far
KEPT_BYTES = 1 << 30  # of the states of all classes that are kept between two checks


def boost(
    X: Matrix,
    y: Matrix,
    *,
    loss: Loss = "logistic",
    n_estimators: int = 500,
    fit_intercept: bool = True,
    smoothing: float = 0.5,
    sample_weight: ArrayLike | None = None,
    n_jobs: int | None = None,
    callback: Callable[[FitProgress], object] | None = None,
    verbose: int = 0,
) -> Rounds:
    """Boost every class against the others.

    Parameters
    ----------
    X, y, sample_weight :
        As in `sl1max.fit`; an indicator must hold zeros and ones only.
    loss, n_estimators, fit_intercept, smoothing, n_jobs, callback, verbose :
        As in `AdaBoostClassifier`.

    Returns
    -------
    Rounds

    Examples
    --------
    >>> from sl1max.estimators._adaboost import boost
    >>> rounds = boost([[1, 0], [1, 1], [0, 1], [0, 1]], ["spam", "spam", "ham", "ham"], n_estimators=20)
    >>> rounds.model(5).predict([[1, 0], [0, 1]])
    array(['spam', 'ham'], dtype='<U4')
    """
    check_options(n_jobs=n_jobs, callback=callback)
    boosting = _read_boosting(X, y, n_estimators, loss, fit_intercept, smoothing, sample_weight)
    return boosting.make_rounds(n_estimators, n_jobs, callback, verbose)


def boost_early_stopping(
    X: Matrix,
    y: Matrix,
    X_val: Matrix,
    y_val: Matrix,
    *,
    n_estimators: int = 500,
    n_iter_no_change: int = 10,
    n_jobs: int | None = None,
    callback: Callable[[FitProgress], object] | None = None,
    verbose: int = 0,
    **options: Any,
) -> tuple[Rounds, np.ndarray, np.ndarray]:
    """Boost every class against the others, with early stopping on validation examples.

    Parameters
    ----------
    X, y : training set, as in `sl1max.fit`
    X_val, y_val : validation set, of the same form
    n_estimators, n_iter_no_change, n_jobs, callback, verbose :
        As in `AdaBoostClassifier`.
    **options :
        Other options of `boost`.

    Returns
    -------
    rounds : Rounds
        All rounds.
    looks : ndarray of int
        The numbers of rounds after which the error was computed: 10, 20 and so on, from 100 on a tenth more each time.
    errors : ndarray
        Share of validation examples whose most likely class is not among their labels, after each of these numbers of
        rounds.

    Examples
    --------
    >>> from sl1max.estimators._adaboost import boost_early_stopping
    >>> X, y = [[1, 0], [1, 1], [0, 1], [0, 1]], ["spam", "spam", "ham", "ham"]
    >>> rounds, looks, errors = boost_early_stopping(X, y, X, y, n_iter_no_change=2)
    >>> looks.tolist(), errors.tolist()
    ([10, 20, 30], [0.0, 0.0, 0.0])
    """
    check_options(n_jobs=n_jobs, callback=callback)
    check_patience(n_iter_no_change)
    boosting = _read_boosting(X, y, n_estimators, **options)
    boosting.keep_states()
    looks, errors, made = [], [], 0
    for look in look_rounds(n_estimators):
        if look > made:
            made = look if boosting.has_states else min(max(look, 2 * made), n_estimators)
            rounds = boosting.make_rounds(made, n_jobs, callback)
        looks.append(min(look, rounds.n_estimators))
        errors.append(model_error(rounds.first(looks[-1]), X_val, y_val))
        least = int(np.argmin(errors))
        if verbose:
            print_line(
                f"{looks[-1]} rounds: validation error {errors[-1]:.4f}, least {errors[least]:.4f} after {looks[least]}"
            )
        ended = looks[-1] == rounds.n_estimators and boosting.has_ended
        if len(errors) - 1 - least >= n_iter_no_change or ended:
            break
    return rounds, np.array(looks), np.array(errors)


def _read_boosting(
    X, y, n_estimators, loss="logistic", fit_intercept=True, smoothing=0.5, sample_weight=None
) -> Boosting:
    """Check all arguments and return the training set."""
    _check_boosting(loss, n_estimators, smoothing)
    with explaining_memory_errors():
        return Boosting(read_classes(X, y, sample_weight), loss, bool(fit_intercept), smoothing)


def _check_boosting(loss, n_estimators, smoothing):
    if loss not in LOSSES:
        raise ValueError(f"loss={loss!r} is unknown: it must be one of {', '.join(map(repr, LOSSES))}")
    if not isinstance(n_estimators, numbers.Integral) or n_estimators < 1:
        raise ValueError(f"n_estimators={n_estimators!r} must be a positive integer")
    if not isinstance(smoothing, numbers.Real) or not 0 <= smoothing <= LARGEST_VALUE:
        raise ValueError(f"smoothing={smoothing!r} must be a number >= 0, at most {LARGEST_VALUE:g}")


@dataclass(frozen=True, eq=False)
class Steps:
    """The rounds of one class; column n_features is the intercept."""

    c: int
    cols: np.ndarray
    deltas: np.ndarray
    objective: float
    status: str


class Boosting:
    """A training set with the loss and the rounds so far.

    It has the interface of a `Reduction` for `solve_all`. A class continues from its state if that is stored.
    Otherwise, e.g. in another process, it repeats its rounds, with the same result.
    """

    memory_advice = "lower n_jobs, or train on fewer examples or features"

    def __init__(self, data: Data, loss, fit_intercept, smoothing):
        self.data = data
        self.moments = Moments(data)
        self.exponential = loss == "exponential"
        self.fit_intercept = fit_intercept
        self.smoothing = smoothing / self.moments.mass
        self._mass = data.mass / self.moments.mass
        data.columns.index_rows()
        self._idle = weigh_inactive(data.columns, self._mass)
        self._made = {}  # the Steps of each class so far
        self._states = {}  # the Booster of each class, where they are kept
        self._keeps_states = False

    def __getstate__(self):
        """Leave out the states, which other processes do not use."""
        return self.__dict__ | {"_made": {}, "_states": {}, "_keeps_states": False}

    def __setstate__(self, state):
        """Make the columns again in another process."""
        self.__dict__.update(state)
        self.data.columns.index_rows()

    def keep_states(self):
        """Keep the states of the classes between calls of `make_rounds`, if memory allows."""
        n_samples, n_features = self.data.matrix.shape
        size = 48 * n_features + 56 * n_samples + 6 * self.data.columns.nnz  # approximate size of a Booster in bytes
        self._keeps_states = size * len(classes_to_train(self.data)) <= KEPT_BYTES

    @property
    def has_states(self) -> bool:
        return bool(self._states)

    @property
    def has_ended(self) -> bool:
        """Whether all classes are finished."""
        return not self.plans("boosting")

    def make_rounds(self, n_estimators, n_jobs=None, callback=None, verbose=0) -> Rounds:
        """Make the first rounds of all classes, including those made before."""
        control = FitControl(algorithm="boosting", tol=0.0, max_iter=n_estimators, callback=callback, verbose=verbose)
        outcome = solve_all(self, control, n_jobs)
        raise_failures(outcome, self, None)
        self._made |= {steps.c: steps for steps in outcome.solutions}
        return Rounds(self, [self._made[c] for c in sorted(self._made)])

    def plans(self, algorithm):
        """The classes that are not finished, in order."""
        ended = {c for c, steps in self._made.items() if steps.status != "running"}
        still_open = [c for c in classes_to_train(self.data) if c not in ended]
        return [Plan(c, ((c, IN_CLASS),), pooled=False) for c in still_open]

    def class_label(self, plan: Plan):
        return self.data.classes[plan.group]

    def effort(self, plan: Plan) -> float:
        """Rounds of large classes touch more rows: with 260 examples they took about four times as long as with one."""
        return 1.0 + np.log(len(self._examples(plan.group)))

    def _examples(self, c) -> np.ndarray:
        labels = self.data.labels
        return labels.indices[labels.indptr[c] : labels.indptr[c + 1]]

    def make_solver(self, plan: Plan, algorithm, tol, begun=None, n_threads=1) -> Booster:
        """The booster of one class in its current state."""
        return self._states.pop(plan.group, None) or self._begin(plan.group)

    def solution(self, plan: Plan, booster: Booster, status, begun=None) -> Steps:
        """All rounds of one class."""
        if self._keeps_states and status == "running":
            self._states[plan.group] = booster
        return Steps(plan.group, *booster.steps(), booster.objective, status)

    def _begin(self, c) -> Booster:
        examples = self._examples(c)
        signed_mass = -self._mass
        signed_mass[examples] = self._mass[examples]
        return Booster(
            self.data.columns, self._idle, signed_mass, exponential=self.exponential,
            intercept=self.fit_intercept, smoothing=self.smoothing,
        )  # fmt: skip

    def last_progress(self, steps: Steps, tol) -> FitProgress:
        return FitProgress(self.data.classes[steps.c], len(steps.cols), steps.objective, np.nan, np.nan)


class Rounds:
    """The steps of all rounds of all classes, and the models made of them.

    Attributes
    ----------
    n_estimators : int
        The largest number of rounds of a class.
    """

    def __init__(self, boosting: Boosting, steps: list[Steps]):
        self._boosting = boosting
        self._steps = steps
        self.n_estimators = max((len(found.cols) for found in steps), default=0)

    def _weights(self, n_estimators: int) -> sparse.csr_array:
        """The weights of the log-odds after the first rounds, an array (n_classes, n_features + 1).

        The intercept is the last column. The exponential loss is least at half of the log-odds.
        """
        data = self._boosting.data
        shape = len(data.classes), data.matrix.shape[1] + 1
        rows = [np.full(len(found.cols[:n_estimators]), found.c) for found in self._steps]
        cols = [found.cols[:n_estimators] for found in self._steps]
        deltas = [found.deltas[:n_estimators] for found in self._steps]
        if not rows:
            return sparse.csr_array(shape)
        cells = np.concatenate(rows), np.concatenate(cols)
        scale = 2.0 if self._boosting.exponential else 1.0
        weights = sparse.csr_array((scale * np.concatenate(deltas), cells), shape=shape)
        if is_mirrored(data):
            weights = sparse.vstack([-weights[[1]], weights[[1]]], format="csr")
        weights.eliminate_zeros()
        return weights

    def model(self, n_estimators: int | None = None) -> Model:
        """The model of the first rounds, or of all.

        Its scores are log-odds, and its penalty is zero. Boosting has no certificate: ``dual_gap`` is NaN and
        ``converged`` is true if the callback did not stop the rounds. ``objective`` is the mean loss.
        """
        n_estimators = self.n_estimators if n_estimators is None else n_estimators
        model = self.first(n_estimators)
        return model if n_estimators >= self.n_estimators else replace(model, objective=self._losses(model))

    def first(self, n_estimators: int) -> Model:
        """Like `model`, but ``objective`` is that of all rounds, which needs no pass over the examples."""
        data, prior = self._boosting.data, self._boosting.moments.class_prior
        weights = self._weights(n_estimators)
        n_iter, converged, losses = self._collect()
        return join_classes(
            data, weights[:, :-1], weights[:, [-1]].toarray().ravel(),
            fit_intercept=self._boosting.fit_intercept, class_prior=prior,
            objective=losses, objective_zero=self._prior_losses(prior),
            n_iter=np.minimum(n_iter, n_estimators), converged=converged, beta=0.0, solver="adaboost", tol=0.0,
        )  # fmt: skip

    def _collect(self):
        """Number of rounds of each class, whether they were all made, and the loss after them."""
        n_iter = np.zeros(len(self._boosting.data.classes), np.int64)
        converged, losses = np.ones(len(n_iter), bool), np.zeros(len(n_iter))
        for found in self._steps:
            every = slice(None) if is_mirrored(self._boosting.data) else found.c
            n_iter[every] = len(found.cols)
            converged[every] = found.status != "stopped"
            losses[every] = found.objective
        return n_iter, converged, losses

    def _prior_losses(self, prior):
        """The least losses of a constant score; without an intercept that score is zero."""
        if not self._boosting.fit_intercept:
            prior = np.where(self._boosting.data.constant == 0, 0.5, prior)
        if self._boosting.exponential:
            return 2 * np.sqrt(prior * (1 - prior))
        logs = np.log([np.where(prior > 0, prior, 1), np.where(prior < 1, 1 - prior, 1)])
        return -(prior * logs[0] + (1 - prior) * logs[1])

    def _losses(self, model):
        """Mean loss of each class on the training set."""
        data = self._boosting.data
        X = data.matrix.tocsr() if sparse.issparse(data.matrix) else data.matrix
        labels = data.labels.tocsr()
        losses = np.zeros(model.n_classes)
        size = max(1, BLOCK_CELLS // model.n_classes)
        for first in range(0, X.shape[0], size):
            block = slice(first, first + size)
            margin = model._decide(X[block]) * (2 * labels[block].toarray() - 1)
            loss = np.exp(-margin / 2) if self._boosting.exponential else np.logaddexp(0, -margin)
            losses += data.mass[block] @ loss
        return losses / data.mass.sum()


def read_classes(X, y, sample_weight) -> Data:
    """Read a training set for one binary problem per class."""
    data = read_data(
        X, y, distribution="conditional", label_mode="independent", multilabel_weighting="equal", solver="auto",
        sample_weight=sample_weight, offset=None,
    )  # fmt: skip
    if (data.labels.data != 1).any():
        raise ValueError("y has values other than 0 and 1: soft labels are for maximum entropy only")
    warn_constant(data)
    return data


def is_mirrored(data):
    """Whether there are two labels, so that the weights of the first are those of the second with opposite signs."""
    return not data.indicator and len(data.classes) == 2


def classes_to_train(data):
    return [1] if is_mirrored(data) else np.flatnonzero(data.constant == 0).tolist()


def join_classes(data, weights, intercept, **report) -> Model:
    """Make the model of separately trained classes, without a duality gap.

    ``weights`` is a csr_array (n_classes, n_features), ``intercept`` (n_classes,); the rest is as in `Model`.
    """
    intercept = np.where(data.constant == 0, intercept, np.copysign(np.inf, data.constant))
    return Model(
        distribution="conditional",
        label_mode="independent",
        trained_on_indicator=data.indicator,
        sparse_output=data.sparse_output,
        classes=data.classes,
        feature_names=data.feature_names,
        weights=weights,
        _parts=(weights, sparse.csr_array(weights.shape)),
        intercept=intercept,
        log_z=None,
        total_weight=float(data.mass.sum()),
        dual_gap=np.full(len(data.classes), np.nan),
        beta_rule="count",
        **report,
    )


def look_rounds(n_estimators):
    """10, 20 and so on, from 100 on a tenth more each time, and n_estimators."""
    looks = [min(FIRST_LOOK, n_estimators)]
    while looks[-1] < n_estimators:
        looks.append(min(looks[-1] + max(FIRST_LOOK, looks[-1] // 10), n_estimators))
    return looks


class AdaBoostClassifier(MaxentPredictor):
    """AdaBoost on sparse features, with the logistic or the exponential loss.

    Every class is boosted against the others. A round changes one weight by the step 1/2 ln(W+ / W-): that of the
    feature with the largest guaranteed decrease of the loss. This is the sequential update of Collins, Schapire and
    Singer. W+ and W- are the weights of the examples on which the feature is right and wrong,
    an example weighing -loss'(margin) times the feature's absolute value. The number of rounds regularises the model:
    choose it with ``early_stopping`` or by cross-validation.

    Parameters
    ----------
    loss : {"logistic", "exponential"}
        ln(1 + e^-z) or e^-z of the margin z.
    n_estimators : int
        Rounds for each class; with early stopping, at most.
    fit_intercept : bool
        Add a constant feature.
    smoothing : float
        Number of examples added to W+ and to W-, so that a feature that occurs on one side only has a finite step, and
        a small one if it is rare.
    class_weight : dict, "balanced" or list of dict, optional
        As in `MaxentClassifier`.
    early_stopping : bool
        Hold out validation examples, or use those given to `fit`, and keep the number of rounds with the smallest error
        on them. The error is computed after 10 rounds, 20 and so on, from 100 on after a tenth more each time. Training
        stops when it has not decreased for some time.
    validation_fraction : float
        Share of the examples that early stopping holds out. Every class keeps a training example.
    n_iter_no_change : int
        Stop after this many checks without improvement of the validation error.
    n_jobs : int, optional
        Number of threads, over classes and for predictions; the result does not depend on it.
    callback : callable, optional
        Called with a `FitProgress` every 100 rounds of a class and at their end, with early stopping also after every
        check of the validation error; if it returns a true value, this class stops.
    random_state : int or RandomState, optional
        Random state of the choice of validation examples.
    verbose : int
        1: progress on stderr.

    Attributes
    ----------
    model_ : Model
        Conditional, independent classes; its scores are the log-odds of each class, which for the exponential
        loss are twice the sums of the steps. ``objective`` is the mean loss, ``dual_gap`` is NaN.
    n_estimators_ : int
        Rounds of ``model_``; with early stopping, the chosen number.
    validation_rounds_, validation_errors_ : ndarray
        Early stopping only: the checked numbers of rounds, and the validation error of each.
    classes_, coef_, sparse_coef_, intercept_, n_iter_, objective_, n_features_in_, feature_names_in_ :
        As in `MaxentClassifier`.

    See Also
    --------
    sl1max.get_learner : Choose among learners by name.

    References
    ----------
    M. Collins, R. E. Schapire and Y. Singer, Logistic regression, AdaBoost and Bregman distances, Machine
    Learning 48, 2002. R. E. Schapire and Y. Singer, BoosTexter, Machine Learning 39, 2000.

    Examples
    --------
    >>> from sklearn.feature_extraction.text import CountVectorizer
    >>> from sklearn.pipeline import make_pipeline
    >>> from sl1max import AdaBoostClassifier
    >>> texts = ["wheat and corn", "corn price", "gold mine", "gold and silver", "wheat crop", "silver price"]
    >>> topics = ["grain", "grain", "metal", "metal", "grain", "metal"]
    >>> model = make_pipeline(CountVectorizer(binary=True), AdaBoostClassifier(n_estimators=20)).fit(texts, topics)
    >>> model.predict(["gold prices", "wheat"]).tolist()
    ['metal', 'grain']
    """

    def __init__(
        self,
        *,
        loss: Loss = "logistic",
        n_estimators: int = 500,
        fit_intercept: bool = True,
        smoothing: float = 0.5,
        class_weight: Any = None,
        early_stopping: bool = False,
        validation_fraction: float = 0.1,
        n_iter_no_change: int = 10,
        n_jobs: int | None = None,
        callback: Callable[[FitProgress], object] | None = None,
        random_state: int | np.random.RandomState | None = None,
        verbose: int = 0,
    ) -> None:
        self.loss = loss
        self.n_estimators = n_estimators
        self.fit_intercept = fit_intercept
        self.smoothing = smoothing
        self.class_weight = class_weight
        self.early_stopping = early_stopping
        self.validation_fraction = validation_fraction
        self.n_iter_no_change = n_iter_no_change
        self.n_jobs = n_jobs
        self.callback = callback
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
        """Train on examples.

        Parameters
        ----------
        X : array, sparse matrix or frame of shape (n_samples, n_features)
        y : array of shape (n_samples,) or array or sparse matrix of shape (n_samples, n_classes)
            Labels, or an indicator of zeros and ones of the classes of each example.
        sample_weight : array of shape (n_samples,), optional
            Weight 2 equals two copies of the example.
        X_val, y_val : as X and y, optional
            Validation examples for early stopping, instead of held-out training examples.

        Returns
        -------
        AdaBoostClassifier
            Itself.
        """
        check_validation_set(X_val, y_val, self.early_stopping)
        X, y = self._read_training_set(X, y, sample_weight)
        weight = weigh_classes(self.class_weight, y, sample_weight)
        if X_val is not None:
            X_val, y_val = self._read_validation_set(X_val, y_val, y)
        elif self.early_stopping:
            train, held = split_validation(y, self.validation_fraction, check_random_state(self.random_state))
            X, y, X_val, y_val = X[train], y[train], X[held], y[held]
            weight = None if weight is None else np.asarray(weight)[train]
        options = {name: getattr(self, name) for name in BOOST_OPTIONS} | {"sample_weight": weight}
        for name in ("validation_rounds_", "validation_errors_"):
            self.__dict__.pop(name, None)
        if self.early_stopping:
            self._boost_early_stopping(X, y, X_val, y_val, options)
        else:
            rounds = boost(X, y, **options)
            self.n_estimators_, self.model_ = rounds.n_estimators, rounds.model()
        self.model_ = self._name(self.model_)
        return self

    def _boost_early_stopping(self, X, y, X_val, y_val, options):
        rounds, looks, errors = boost_early_stopping(
            X, y, X_val, y_val, n_iter_no_change=self.n_iter_no_change, **options
        )
        best = errors.argmin()
        self.n_estimators_ = int(looks[best])
        self.validation_rounds_, self.validation_errors_ = looks, errors
        self.model_ = rounds.model(self.n_estimators_)
        if self.verbose:
            print_line(f"{self.n_estimators_} of {rounds.n_estimators} rounds: validation error {errors[best]:.4f}")
