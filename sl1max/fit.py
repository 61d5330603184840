"""The functional interface: training set in, model out."""

from __future__ import annotations

import warnings
from collections.abc import Callable

import numpy as np
from numpy.typing import ArrayLike

from sl1max.exceptions import ConvergenceWarning
from sl1max.inputs import check_options, check_warm_start, read_beta, read_data
from sl1max.model import Matrix, Model
from sl1max.moments import Moments
from sl1max.monitor import FitProgress, Monitor
from sl1max.reduction import Reduction, solve_all
from sl1max.regularization import Penalties

ALGORITHMS = {"auto": "newton", "sequential": "sequential"}


def fit(
    X: Matrix,
    y: Matrix,
    *,
    distribution: str = "conditional",
    classes: str = "auto",
    beta: ArrayLike = 0.5,
    beta_rule: str = "deviation",
    fit_intercept: bool = True,
    solver: str = "auto",
    tol: float = 1e-4,
    max_iter: int | None = None,
    sample_weight: ArrayLike | None = None,
    offset: ArrayLike | None = None,
    multilabel: str = "duplicate",
    warm_start: Model | None = None,
    n_jobs: int | None = None,
    callback: Callable[[FitProgress], object] | None = None,
    verbose: int = 0,
) -> Model:
    """Train an L1-regularised maximum-entropy classifier.

    Parameters
    ----------
    X : array or sparse matrix of shape (n_samples, n_features)
        Features, any real values; most often few are nonzero, most often these are 1.
    y : array of shape (n_samples,) or array or sparse matrix of shape (n_samples, n_classes)
        A label for each example, of any type; or an indicator of the classes that it has, which may be soft
        (non-negative; for independent classes in [0, 1]).
    distribution : {"conditional", "joint", "class-conditional"}
        What is modelled: p(c|x), p(x, c) or p(x|c).
    classes : {"auto", "exclusive", "independent"}
        Whether each example has one class, or each class is a yes-or-no question of its own. "auto":
        exclusive for a vector of labels, independent for an indicator.
    beta : float or array of shape (n_features,) or (n_classes, n_features)
        Strength of the regularisation. 0 means unpenalised, inf leaves the feature out.
    beta_rule : {"deviation", "count"}
        How beta becomes the penalty of a weight, m being the number of examples, or the total of their
        weights (class-conditional: those of the class). "deviation": beta sigma / sqrt(m), with sigma the
        standard deviation of the feature. "count": beta / m, so that beta is 1/C of scikit-learn's
        LogisticRegression. An array is scaled by the rule too.
    fit_intercept : bool
        Fit an unpenalised constant for each class. It cancels in class-conditional models.
    solver : {"auto", "sequential"}
        "sequential" is the algorithm of the paper, one weight at a time, for values in [0, 1].
    tol : float
        Stop when the duality gap is at most tol times the objective with all weights zero; the scale of q0, which
        offset has the log of, makes no difference to it.
    max_iter : int, optional
        Most rounds ("auto": 1000) or single updates ("sequential": 1,000,000) for each problem.
    sample_weight : array of shape (n_samples,), optional
        Weight 2 is the same as having the example twice.
    offset : array of shape (n_samples,) or (n_samples, n_classes), optional
        Added to the scores: the log of a default distribution q0, up to a constant, which the model is where the
        features say nothing. For independent classes it adds to the log-odds.
    multilabel : {"duplicate", "equal"}
        With exclusive classes an example with K labels counts K times, or once, 1/K for each label. Examples
        without a label are left out.
    warm_start : Model, optional
        Start from the weights of a model with the same classes, features and distribution.
    n_jobs : int, optional
        Threads, for models that are solved class by class; the result does not depend on it.
    callback : callable, optional
        Called with a `FitProgress` now and then; if it returns a true value, that problem ends there, is not
        marked as converged, and no warning is given for it.
    verbose : int
        1: progress on stderr.

    Returns
    -------
    Model

    Warns
    -----
    ConvergenceWarning
        The duality gap stayed above its target; the model is the best found.
    UserWarning
        An independent class has all or none of the examples; its predictions are constant.
    """
    check_options(
        distribution=distribution, classes=classes, beta_rule=beta_rule, solver=solver, multilabel=multilabel,
        tol=tol, max_iter=max_iter, n_jobs=n_jobs, callback=callback,
    )  # fmt: skip
    data = read_data(
        X, y, distribution=distribution, classes=classes, multilabel=multilabel, solver=solver,
        sample_weight=sample_weight, offset=offset,
    )  # fmt: skip
    beta = read_beta(beta, len(data.classes), data.matrix.shape[1])
    if warm_start is not None:
        check_warm_start(warm_start, data, distribution)
    warn_constant(data)

    reduction = reduce_data(data, distribution, beta, beta_rule, fit_intercept, warm_start)
    algorithm = ALGORITHMS[solver]
    monitor = Monitor(algorithm=algorithm, tol=tol, max_iter=max_iter, callback=callback, verbose=verbose)
    solutions = solve_all(reduction, monitor, n_jobs)
    beta_kept = float(beta) if beta.ndim == 0 else None
    model, statuses = reduction.join(
        solutions, {"beta": beta_kept, "beta_rule": beta_rule, "solver": solver, "tol": tol}
    )
    unpenalised = bool((beta == 0).any())
    _warn_unconverged(model, statuses, unpenalised)
    if unpenalised:
        _warn_separated(model, statuses)
    return model


def reduce_data(data, distribution, beta, beta_rule, fit_intercept, warm_start=None) -> Reduction:
    """The training set with its moments and penalties, ready to be solved."""
    moments = Moments(data)
    penalties = Penalties(data, moments, distribution, beta, beta_rule)
    return Reduction(data, moments, penalties, distribution, bool(fit_intercept), warm_start)


def warn_constant(data):
    """Say which independent classes hold all or none of the examples."""
    for c in np.flatnonzero(data.constant):
        share = "every example" if data.constant[c] > 0 else "no example"
        warnings.warn(
            f"y gives {share} to class {data.classes[c]}: its predictions will be constant",
            UserWarning,
            stacklevel=3,
        )


def _warn_unconverged(model, statuses, unpenalised):
    """One warning for all gaps that stayed above their target, except where the callback ended the fit."""
    gaps, targets = np.atleast_1d(model.dual_gap), np.atleast_1d(model.tol * np.abs(model.objective_zero))
    failed = [k for k, status in enumerate(statuses) if status in ("running", "stalled")]
    if not failed:
        return
    worst = max(failed, key=lambda k: gaps[k] / max(targets[k], np.finfo(float).tiny))
    which = ""
    if len(statuses) > 1:
        which = f" for {len(failed)} of {len(statuses)} classes, the worst being {model.classes[worst]}"
    why = {"running": "max_iter was reached", "stalled": "no further decrease is possible in floating point"}
    hint = ". Separable data have no optimum where beta is 0, which may be the cause" if unpenalised else ""
    warnings.warn(
        f"sl1max.fit did not converge{which}: {why[statuses[worst]]} at a duality gap of {gaps[worst]:.3g}, "
        f"above its target of {targets[worst]:.3g}{hint}",
        ConvergenceWarning,
        stacklevel=3,
    )


def _warn_separated(model, statuses):
    """Without a penalty the conditional loss of separable data falls to zero and takes the weights to infinity."""
    targets = 2 * np.atleast_1d(model.tol * np.abs(model.objective_zero))
    gone = np.atleast_1d(model.objective) <= targets
    if model.distribution == "conditional" and any(
        status == "converged" and zero for status, zero in zip(statuses, gone, strict=True)
    ):
        warnings.warn(
            "Separable data have no optimum where beta is 0: the weights would grow for ever, and are only as large "
            "as tol asks for",
            ConvergenceWarning,
            stacklevel=3,
        )
