"""Training of a model: the function `fit` and its parts."""

from __future__ import annotations

import contextlib
import os
import sys
import warnings
from collections.abc import Callable

import numpy as np
from numpy.typing import ArrayLike

from sl1max._data.inputs import (
    Strengths,
    check_options,
    check_warm_start,
    read_data,
    read_strengths,
    strengths_of,
)
from sl1max._data.moments import Moments
from sl1max._data.penalties import Penalties
from sl1max._execution.checkpoint import Journal, fingerprint
from sl1max._execution.control import Deadline, FitControl
from sl1max._execution.parallel import Outcome, solve_all
from sl1max._models.reduction import Reduction
from sl1max._utils.progress import FitProgress
from sl1max._utils.typing import Algorithm, BetaRule, Distribution, LabelMode, Matrix, MultilabelWeighting, OnInterrupt
from sl1max.exceptions import ConvergenceWarning, FitError, FitMemoryError
from sl1max.model._model import Model

N_SHOWN = 5  # classes that a warning names
FAR = 30.0  # a score; classes with the opposite score have a negligible probability
ALGORITHMS = {"auto": "newton", "newton": "newton", "sequential": "sequential"}


def fit(
    X: Matrix,
    y: Matrix,
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
    sample_weight: ArrayLike | None = None,
    offset: ArrayLike | None = None,
    multilabel_weighting: MultilabelWeighting = "duplicate",
    warm_start: Model | None = None,
    n_jobs: int | None = None,
    callback: Callable[[FitProgress], object] | None = None,
    verbose: int = 0,
    checkpoint: str | os.PathLike[str] | None = None,
    on_interrupt: OnInterrupt = "raise",
) -> Model:
    """Train an L1-regularised maximum-entropy classifier.

    Parameters
    ----------
    X : array or sparse matrix of shape (n_samples, n_features)
        Features, any real values; usually sparse.
    y : array of shape (n_samples,) or array or sparse matrix of shape (n_samples, n_classes)
        A label for each example, of any type; or an indicator of its classes, which may be fractional (non-negative;
        for independent classes in [0, 1]).
    distribution : {"conditional", "joint", "class-conditional"}
        What is modelled: p(c|x), p(x, c) or p(x|c).
    label_mode : {"auto", "exclusive", "independent"}
        Whether each example has one class, or each class is a binary problem. "auto": exclusive for a vector of labels,
        independent for an indicator.
    beta : float or array of shape (n_features,) or (n_classes, n_features), optional
        Strength of the regularisation, 0.5 unless beta or C is given. 0 means unpenalised, inf leaves the feature out.
    C : float or array of shape (n_features,) or (n_classes, n_features), optional
        Inverse strength, as in scikit-learn's LogisticRegression, in place of beta: the same as ``beta=1/C`` with
        ``beta_rule="count"``, whatever ``beta_rule`` is.
    beta_rule : {"deviation", "count"}
        How beta becomes the penalty of a weight, m being the number of examples, or the total of their
        weights (class-conditional: those of the class). "deviation": beta sigma / sqrt(m), with sigma the standard
        deviation of feature times class indicator over the training set (class-conditional: of the feature over the
        examples of the class). "count": beta / m, so that beta is 1/C of scikit-learn's
        LogisticRegression. An array is scaled in the same way.
    l1_ratio : float
        Elastic net, with C: the L1 share of the strength 1/C, from 1 (all) to 0 (none). The same as
        ``beta=l1_ratio / C, l2=(1 - l1_ratio) / C, beta_rule="count"``.
    l2 : float or array of shape (n_features,) or (n_classes, n_features)
        Elastic net: adds l2 / 2 times the square of each weight, times 1 / m (``beta_rule="count"``) or
        sigma^2 / sqrt(m) ("deviation"). With beta = 0 it is all of the penalty (ridge).
    beta_lower, beta_upper : float or array of shape (n_features,) or (n_classes, n_features), optional
        Half-widths of the interval around the mean of each feature, beta unless given: what positive weights cost, and
        what negative ones cost. An infinite beta_upper leaves weights >= 0 only, an infinite beta_lower weights <= 0.
    min_weight, max_weight : float or array of shape (n_features,) or (n_classes, n_features), optional
        Limits of the weights, min_weight <= 0 <= max_weight.
    positive : bool
        No weight in favour of a class is negative: the same as ``min_weight=0``.
    fit_intercept : bool
        Fit an unpenalised intercept for each class. It cancels in class-conditional models.
    solver : {"auto", "newton", "sequential"}
        "newton": working sets with Newton steps, for any values; what "auto" chooses.
        "sequential" is the algorithm of the paper, one weight at a time, for values in [0, 1].
    tol : float
        Stop when the duality gap is at most tol times the objective with all weights zero. tol is unaffected by adding
        a constant to offset.
    max_iter : int, optional
        Most rounds ("newton": 1000) or single updates ("sequential": 1,000,000) for each problem.
    max_time : float, optional
        Seconds that all problems together may take. Then the model is the best found so far, with a warning;
        independent classes that were not begun have no weights and are listed in ``model.unfinished``.
    sample_weight : array of shape (n_samples,), optional
        Weight 2 equals two copies of the example.
    offset : array of shape (n_samples,) or (n_samples, n_classes), optional
        Added to the scores: the log of a default distribution q0, up to a constant. Without nonzero weights the model
        equals q0. For independent classes it is added to the log-odds.
    multilabel_weighting : {"duplicate", "equal"}
        With exclusive classes, an example with K labels counts K times ("duplicate"), or once with weight 1/K per label
        ("equal"). Examples without a label are left out.
    warm_start : Model, optional
        Start from the weights of a model with the same classes, features and distribution.
    n_jobs : int, optional
        Number of threads, for models that are trained class by class; the result does not depend on it. Within
        ``joblib.parallel_config("dask")``, or another backend without shared memory, its workers are used.
    callback : callable, optional
        Called with a `FitProgress` after each round. If it returns a true value, training of this problem stops; it is
        not marked as converged, and there is no warning. Problems solved by other processes are reported when they are
        finished.
    verbose : int
        1: progress on stderr; 2: and which solver was chosen.
    checkpoint : str or path-like, optional
        A file to which every finished class is written. If it exists, the fit continues from it.
    on_interrupt : {"raise", "return"}
        Effect of Ctrl-C. "return": return the model trained so far. Classes that were not started have no weights, are
        never predicted and are listed in ``model.unfinished``; unfinished ones are kept with their current weights.

    Returns
    -------
    Model

    Raises
    ------
    FitError
        Some classes could not be trained, e.g. because their worker died; the error names them and has the model of the
        others. It is a `FitMemoryError`, which is also a MemoryError, if memory was insufficient.
    CheckpointError
        The checkpoint belongs to other data or settings; the error says which differ.

    Warns
    -----
    ConvergenceWarning
        The duality gap is above its target, or the fit was interrupted; the model is the best one found.
    UserWarning
        An independent class has all or none of the examples; its predictions are constant.
    """
    check_options(
        distribution=distribution, label_mode=label_mode, beta_rule=beta_rule, solver=solver,
        multilabel_weighting=multilabel_weighting, tol=tol, max_iter=max_iter, max_time=max_time, n_jobs=n_jobs,
        callback=callback, on_interrupt=on_interrupt,
    )  # fmt: skip
    deadline = Deadline(max_time)
    reduction = prepare(
        X, y, distribution=distribution, label_mode=label_mode, beta=beta, C=C, beta_rule=beta_rule, l1_ratio=l1_ratio,
        l2=l2, beta_lower=beta_lower, beta_upper=beta_upper, min_weight=min_weight, max_weight=max_weight,
        positive=positive, fit_intercept=fit_intercept, solver=solver, sample_weight=sample_weight, offset=offset,
        multilabel_weighting=multilabel_weighting, warm_start=warm_start,
    )  # fmt: skip
    warn_constant(reduction.data)
    return train(
        reduction, solver=solver, tol=tol, max_iter=max_iter, deadline=deadline, n_jobs=n_jobs, callback=callback,
        verbose=verbose, checkpoint=checkpoint, on_interrupt=on_interrupt,
    )  # fmt: skip


def prepare(
    X, y, *, distribution="conditional", label_mode="auto", fit_intercept=True, solver="auto", sample_weight=None,
    offset=None, multilabel_weighting="duplicate", warm_start=None, **regularisation,
) -> Reduction:  # fmt: skip
    """Validate and convert a training set; everything that `train` needs of it. The names of options must be valid.

    Of the options about ``regularisation`` see `read_strengths`.
    """
    with explaining_memory_errors():
        data = read_data(
            X, y, distribution=distribution, label_mode=label_mode, multilabel_weighting=multilabel_weighting,
            solver=solver, sample_weight=sample_weight, offset=offset,
        )  # fmt: skip
        strengths = read_strengths(len(data.classes), data.matrix.shape[1], **regularisation)
        check_identified(strengths, data, distribution, solver)
        if warm_start is not None:
            check_warm_start(warm_start, data, distribution)
        return reduce_data(data, distribution, strengths, fit_intercept, warm_start)


def check_identified(strengths: Strengths, data, distribution, solver):
    """Refuse the sequential solver where it gives weights to both of two classes and only their difference counts."""
    both = distribution == "conditional" and (not data.exclusive or len(data.classes) == 2)
    if solver == "sequential" and strengths.is_general and both:
        raise ValueError(
            f'solver="sequential" keeps weights of both classes, and {", ".join(strengths.general)} would apply to '
            'their difference: use solver="auto", or beta alone'
        )


def train(
    reduction: Reduction, *, solver="auto", tol=1e-4, max_iter=None, deadline=None, n_jobs=None, callback=None,
    verbose=0, checkpoint=None, on_interrupt="raise",
) -> Model:  # fmt: skip
    """Solve the problems of a training set and join their solutions to a model, with the warnings of `fit`."""
    strengths = reduction.penalties.strengths
    beta = strengths.beta
    control = FitControl(
        algorithm=ALGORITHMS[solver], tol=tol, max_iter=max_iter, deadline=deadline, callback=callback, verbose=verbose,
        advice=advise(reduction, solver, tol, n_jobs),
    )  # fmt: skip
    if verbose > 1:
        sys.stderr.write(f"solver: {reduction.describe_solver(control.algorithm)}\n")
    settings = {"beta": beta, "beta_rule": strengths.rule, "solver": ALGORITHMS[solver], "tol": tol}
    with open_checkpoint(checkpoint, reduction, settings | strengths.general) as journal:
        outcome = solve_all(reduction, control, n_jobs, journal)

    settings |= {"beta": float(beta) if beta.ndim == 0 else None, "penalty": strengths.remembered}
    model = None
    if outcome.solved or not outcome.plans:
        model, statuses = reduction.join(outcome.solutions, settings, outcome.missing)
    if outcome.interrupt is not None and (on_interrupt == "raise" or model is None):
        raise outcome.interrupt
    raise_failures(outcome, reduction, model)
    if outcome.interrupt is not None:
        _warn_stopped("sl1max.fit was interrupted", model, outcome)
        return model
    if outcome.time_is_over and "time_limit" in [*statuses, *(solution.status for solution in outcome.solutions)]:
        _warn_stopped("sl1max.fit reached max_time", model, outcome)
        return model
    unpenalised = strengths.some_free
    _warn_unconverged(model, statuses, unpenalised, reduction.imprecision)
    if unpenalised:
        _warn_separated(model, statuses, reduction.data.columns.extent[:-1])
    return model


def advise(reduction: Reduction, solver, tol, n_jobs) -> str:
    """Advice on how to make a long fit faster."""
    data, found = reduction.data, []
    if solver == "sequential":
        found.append('solver="auto"')
    together = data.exclusive and reduction.distribution != "class-conditional"
    if together and len(data.classes) > 2:
        found.append('label_mode="independent", which trains the classes one by one, in n_jobs threads')
    elif n_jobs in (None, 1) and len(data.classes) > 2:
        found.append("n_jobs=-1, threads on all processors")
    if tol < 1e-2:
        found.append(f"a larger tol than {tol:g}")
    return f"faster may be: {'; '.join(found)}" if found else ""


@contextlib.contextmanager
def explaining_memory_errors():
    """Add advice to the MemoryError of a training set that does not fit."""
    try:
        yield
    except MemoryError as error:
        raise MemoryError(
            f"not enough memory for the training set ({error}): train on fewer examples or features, or give X as a "
            "scipy.sparse matrix, in CSC format to save a copy, that may be memory-mapped"
        ) from error


def open_checkpoint(path, reduction: Reduction, settings):
    """Create or open the checkpoint of a fit; a null context if there is no path."""
    if path is None:
        return contextlib.nullcontext()
    belongs_to = fingerprint(
        reduction.data, reduction.warm_start, distribution=reduction.distribution,
        fit_intercept=reduction.fit_intercept, **settings,
    )  # fmt: skip
    return Journal(path, belongs_to)


def raise_failures(outcome: Outcome, reduction, model):
    """Raise a `FitError` that names the failed classes, if any, of an outcome that was not interrupted."""
    if outcome.interrupt is not None and model is None:
        raise outcome.interrupt
    if not outcome.failed:
        return
    failed = {reduction.class_label(outcome.plans[k]): failure for k, failure in sorted(outcome.failed.items())}
    memory = [label for label, failure in failed.items() if failure.kind in ("MemoryError", "_ArrayMemoryError")]
    first = memory[0] if memory else next(iter(failed))
    name = "the model" if first is None else f"class {first}"
    others = f" and {len(failed) - 1} more" if len(failed) > 1 else ""
    rest = ""
    if first is not None:
        rest = ". The other classes have been trained and are in the error's `model`" if model is not None else ""
    if memory:
        raise FitMemoryError(
            f"not enough memory to train {name}{others} ({failed[first]}): {reduction.memory_advice}{rest}",
            failed,
            model,
        )
    raise FitError(f"{name}{others} could not be trained: {failed[first]}{rest}", failed, model)


def _warn_stopped(why, model, outcome):
    """Warn which classes of a stopped fit are finished."""
    n_classes = len({c for plan in outcome.plans for c, _ in plan.blocks})
    begun = [solution.plan for solution in outcome.solutions if solution.status in ("interrupted", "time_limit")]
    n_open = len({c for plan in begun for c, _ in plan.blocks})
    n_missing = len(model.unfinished)
    if len(outcome.plans) == 1:
        text = f"the model is as it was then, at a duality gap of {np.max(model.dual_gap):.3g}"
    else:
        text = (
            f"{n_classes - n_open - n_missing} of {n_classes} classes are finished, {n_open} were under way, and "
            f"{n_missing} were not begun and are never predicted"
        )
    warnings.warn(f"{why}: {text}", ConvergenceWarning, stacklevel=4)


def reduce_data(data, distribution, strengths, fit_intercept, warm_start=None) -> Reduction:
    """Compute moments and penalties of a training set."""
    moments = Moments(data)
    penalties = Penalties(data, moments, distribution, strengths)
    return Reduction(data, moments, penalties, distribution, bool(fit_intercept), warm_start)


def reduction_of(
    model: Model, X, y, caller, beta=None, sample_weight=None, offset=None, multilabel_weighting="duplicate"
) -> Reduction:
    """The training set of a model with the model as its starting point, after making sure that it is the one."""
    data = read_data(
        X, y, distribution=model.distribution, label_mode=model.label_mode, multilabel_weighting=multilabel_weighting,
        solver="auto", sample_weight=sample_weight, offset=offset,
    )  # fmt: skip
    if data.matrix.shape[1] != model.n_features:
        raise ValueError(f"X has {data.matrix.shape[1]} features, but the model was trained with {model.n_features}")
    known = len(data.classes) == model.n_classes and (
        model.trained_on_indicator or np.array_equal(data.classes, model.classes)
    )
    if data.indicator != model.trained_on_indicator or not known:
        raise ValueError(f"y has other classes than the model: {caller} needs the training set")
    moments = Moments(data)
    if not np.isclose(moments.mass, model.total_weight) or not np.allclose(moments.class_prior, model.class_prior):
        raise ValueError(
            f"X and y are not the training set of the model: their weight is {moments.mass:g}, that of the "
            f"training set {model.total_weight:g}, or their classes differ in size"
        )
    if beta is None and model.beta is None:
        raise ValueError(f"beta was an array when the model was trained: {caller} needs it again")
    strengths = strengths_of(model, model.beta if beta is None else beta, model.n_classes)
    penalties = Penalties(data, moments, model.distribution, strengths)
    return Reduction(data, moments, penalties, model.distribution, model.fit_intercept, model)


def warn_constant(data, labels=None):
    """Warn of independent classes that have all or none of the examples; ``labels`` are other names of the classes."""
    labels = data.classes if labels is None else labels
    for c in np.flatnonzero(data.constant):
        share = "every example" if data.constant[c] > 0 else "no example"
        warnings.warn(
            f"y gives {share} to class {labels[c]}: its predictions will be constant",
            UserWarning,
            stacklevel=3,
        )


def _warn_unconverged(model, statuses, unpenalised, imprecision):
    """Give one warning for all gaps above their target, except where the callback stopped the fit.

    If double precision cannot certify a problem, it gives the reason.
    """
    if "imprecise" in statuses:
        warnings.warn(f"sl1max.fit cannot certify the model: {imprecision}", ConvergenceWarning, stacklevel=4)
        return
    gaps, targets = np.atleast_1d(model.dual_gap), np.atleast_1d(model.tol * np.abs(model.objective_zero))
    failed = [k for k, status in enumerate(statuses) if status in ("running", "stalled")]
    if not failed:
        return
    with np.errstate(over="ignore"):
        share = gaps / np.maximum(targets, np.finfo(float).tiny)
    worst = max(failed, key=share.__getitem__)
    which = ""
    if len(statuses) > 1:
        which = f" for {len(failed)} of {len(statuses)} classes, the worst being {model.classes[worst]}"
        if unpenalised and len(failed) > 1:
            which += f" ({_list_classes(model.classes[failed])})"
    why = {"running": "max_iter was reached", "stalled": "no further decrease is possible in floating point"}
    hint = ". Separable data have no optimum where beta is 0, which may be the cause" if unpenalised else ""
    hint = f": {imprecision}" if imprecision else hint
    warnings.warn(
        f"sl1max.fit did not converge{which}: {why[statuses[worst]]} at a duality gap of {gaps[worst]:.3g}, "
        f"above its target of {targets[worst]:.3g}{hint}",
        ConvergenceWarning,
        stacklevel=4,
    )


def _list_classes(names):
    shown = ", ".join(map(str, names[:N_SHOWN]))
    more = f" and {len(names) - N_SHOWN} more" if len(names) > N_SHOWN else ""
    return f"class{'es' if len(names) > 1 else ''} {shown}{more}"


def _warn_separated(model, statuses, extent):
    """Warn if unpenalised weights of separable data diverge.

    The loss of a conditional model then tends to zero; in the other models the probability of some examples does.
    """
    targets = 2 * np.atleast_1d(model.tol * np.abs(model.objective_zero))
    gone = np.atleast_1d(model.objective) <= targets if model.distribution == "conditional" else False
    far = np.zeros(model.n_classes, bool)
    if model.weights.nnz:
        far = np.asarray((np.abs(model.weights) * extent).max(axis=1).todense()).ravel() > FAR
    ended = np.array([status == "converged" for status in statuses])
    separated = np.broadcast_to(ended & (gone | (far if len(statuses) > 1 else far.any())), model.n_classes)
    if separated.any():
        # Classes that share an objective are told apart by their weights, if some of these are large.
        names = model.classes[separated & far if (separated & far).any() else separated]
        warnings.warn(
            "Separable data have no optimum where beta is 0: the weights would grow for ever, and are only as large "
            f"as tol asks for, of {_list_classes(names)}",
            ConvergenceWarning,
            stacklevel=4,
        )
