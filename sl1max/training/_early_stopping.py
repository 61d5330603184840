"""Training with early stopping.

All problems of a model go some way, a round, and then the model as it stands is judged. Each round is a call
of `fit` that goes on from the last model, so that models of many classes need no more memory than otherwise.
"""

from __future__ import annotations

import numbers
from dataclasses import replace

import numpy as np
from scipy import sparse

from sl1max._data.inputs import check_options
from sl1max._execution.control import Deadline
from sl1max._utils.progress import print_line
from sl1max.metrics import top_class_error
from sl1max.model._model import BLOCK_CELLS, Model
from sl1max.training._fit import prepare, train, warn_constant
from sl1max.training._path import CHECKED, split_options

ROUND = {"auto": 1, "sequential": 100}  # iterations of each problem in a round; later a tenth of those made


def fit_early_stopping(
    X,
    y,
    X_val,
    y_val,
    *,
    label_mode="auto",
    solver="auto",
    max_iter=None,
    n_iter_no_change=10,
    beta=None,
    C=None,
    warm_start=None,
    callback=None,
    verbose=0,
    **options,
) -> tuple[Model, np.ndarray]:
    """Train a model of exclusive classes with early stopping.

    The error is looked at after every round: a Newton round for ``solver="newton"``, of which there are few, so
    that the optimum may be passed in one; 100 single updates for ``solver="sequential"``, later a tenth of
    those made so far, which is the finer choice.

    Parameters
    ----------
    X, y : training set, as in `sl1max.fit`
    X_val, y_val : validation set, of the same form
    n_iter_no_change : int
        Stop after this many rounds without improvement of the validation error. Training also stops at the optimum.
    max_iter : int, optional
        Maximum number of iterations of each problem over all rounds.
    label_mode, solver, beta, C, warm_start, callback, verbose, **options :
        As in `sl1max.fit`. If the callback returns a true value, training stops.

    Returns
    -------
    model : Model
        The first model with the smallest validation error.
    errors : ndarray
        Validation error after every round.

    Examples
    --------
    >>> import numpy as np
    >>> from sl1max.training._early_stopping import fit_early_stopping
    >>> rng = np.random.default_rng(0)
    >>> X = rng.integers(0, 2, (300, 20))
    >>> y = X[:, 0] + X[:, 1] ^ (rng.random(300) < 0.1)
    >>> model, errors = fit_early_stopping(X[:200], y[:200], X[200:], y[200:], solver="sequential")
    >>> bool(errors.min() < 0.2)
    True
    """
    check_patience(n_iter_no_change)
    if label_mode == "independent" or (label_mode == "auto" and np.ndim(y) == 2):
        raise ValueError("early_stopping needs exclusive classes: independent ones have no validation error in common")
    for name in ("checkpoint", "on_interrupt"):
        if options.get(name) not in (None, "raise"):
            raise ValueError(f"{name} cannot be used with early stopping, which trains many models")
    stop_asked = []

    def end_round(progress):
        if callback is not None and callback(progress):
            stop_asked.append(progress)
        return True

    of_data, of_fit = split_options(options | {"label_mode": label_mode, "solver": solver})
    check_options(**{name: value for name, value in (of_data | of_fit).items() if name in CHECKED})
    deadline = Deadline(of_fit.pop("max_time", None))
    reduction = prepare(X, y, beta=beta, C=C, warm_start=warm_start, **of_data)
    warn_constant(reduction.data)
    model, best, errors, n_iter = warm_start, None, [], 0
    allowed = 0  # iterations of each problem so far, at most
    while not stop_asked and (max_iter is None or allowed < max_iter):
        size = max(ROUND.get(solver, 1), allowed // 10)
        if max_iter is not None:
            size = min(size, max_iter - allowed)
        before = model
        start = reduction.times(1.0, model)
        model = train(start, max_iter=size, deadline=deadline, callback=end_round, **of_fit)
        allowed += size
        n_iter = n_iter + model.n_iter
        errors.append(model_error(model, X_val, y_val))
        least = int(np.argmin(errors))
        if least == len(errors) - 1:
            best = replace(model, n_iter=n_iter)
        if verbose:
            print_line(
                f"round {len(errors)}: validation error {errors[-1]:.4f}, "
                f"least {errors[least]:.4f} in round {least + 1}"
            )
        stuck = len(errors) > 1 and np.all(model.objective >= before.objective)
        if len(errors) - 1 - least >= n_iter_no_change or np.all(model.converged) or stuck or deadline.is_over:
            break
    return best, np.array(errors)


def model_error(model: Model, X, y) -> float:
    """Compute the error rate in pieces, so that scores need little memory."""
    labels = None if model.trained_on_indicator else model.classes
    X, y = (value.tocsr() if sparse.issparse(value) else np.asarray(value) for value in (X, y))
    size = max(1, BLOCK_CELLS // model.n_classes)
    n_errors = 0.0
    for first in range(0, X.shape[0], size):
        part = slice(first, first + size)
        scores = model._decide(X[part])
        n_errors += len(scores) * top_class_error(y[part], scores, labels=labels)
    return n_errors / X.shape[0]


def check_validation_set(X_val, y_val, early_stopping):
    """Check that validation examples were given if and only if needed."""
    if (X_val is None) != (y_val is None):
        raise ValueError("X_val and y_val must be given together")
    if X_val is not None and not early_stopping:
        raise ValueError("X_val and y_val are for early stopping, but early_stopping is False")


def check_patience(n_iter_no_change):
    """Check that n_iter_no_change is a positive integer."""
    if not isinstance(n_iter_no_change, numbers.Integral) or n_iter_no_change < 1:
        raise ValueError(f"n_iter_no_change={n_iter_no_change!r} must be a positive integer")


def split_validation(y, fraction, random_state):
    """Split the rows at random for training and validation; every class keeps a training example.

    Parameters
    ----------
    y : array of shape (n_samples,), or array or sparse matrix of shape (n_samples, n_classes)
    fraction : float
        Share of validation examples, in (0, 1).
    random_state : numpy.random.RandomState or numpy.random.Generator

    Returns
    -------
    train, validation : ndarray of row numbers, ascending
    """
    if not 0 < fraction < 1:
        raise ValueError(f"validation_fraction={fraction!r} must be between 0 and 1")
    n_samples = y.shape[0]
    order = random_state.permutation(n_samples)
    if y.ndim == 1:
        _, first = np.unique(y[order], return_index=True)
    else:
        shuffled = sparse.csc_array(sparse.csr_array(y)[order])
        shuffled.sort_indices()
        first = shuffled.indices[shuffled.indptr[:-1][np.diff(shuffled.indptr) > 0]]
    validation = np.delete(order, first)[: max(1, round(fraction * n_samples))]
    if not len(validation):
        raise ValueError("early_stopping needs more examples than classes, to set some aside for validation")
    return np.delete(np.arange(n_samples), validation), np.sort(validation)
