"""Adding, removing and retraining single classes; the other classes do not change, bit for bit.

That is possible where classes are problems of their own: independent classes, class-conditional models, and joint
models with intercepts.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable
from dataclasses import replace
from typing import Any

import numpy as np
from numpy.typing import ArrayLike
from scipy import sparse

from sl1max._data.inputs import read_data, strengths_of
from sl1max._execution.control import FitControl, solve_problem
from sl1max._models.reduction import REPORTED
from sl1max._utils.progress import FitProgress
from sl1max._utils.typing import Matrix
from sl1max.exceptions import ConvergenceWarning
from sl1max.model._explain import class_number
from sl1max.model._model import Model
from sl1max.training._fit import ALGORITHMS, reduce_data, warn_constant

PER_CLASS = ("intercept", "class_prior", "log_z", *REPORTED)


def with_class(
    model: Model,
    label: Any,
    X: Matrix,
    y: ArrayLike,
    *,
    beta: ArrayLike | None = None,
    sample_weight: ArrayLike | None = None,
    offset: ArrayLike | None = None,
    max_iter: int | None = None,
    callback: Callable[[FitProgress], object] | None = None,
    verbose: int = 0,
) -> Model:
    """Add a class to a model, or retrain one.

    With the examples and weights that the others were trained on, the same as training all at once. Other examples
    will do as well: of exclusive classes the prior of the new one is then its weight relative to that of the
    examples of the model, so that it compares with those of the others, which stay.

    Parameters
    ----------
    model : Model
    label : object
        The class. If the model has it, it is replaced.
    X : array or sparse matrix of shape (n_samples, n_features)
        Examples of the class and others; usually the training set.
    y : array of shape (n_samples,)
        Which examples belong to the class: True or 1, or a share between 0 and 1.
    beta : float or array of shape (n_features,), optional
        By default that of the model.
    sample_weight, offset : array of shape (n_samples,), optional
    max_iter, callback, verbose :
        As in `sl1max.fit`. All other options are those of the model.

    Returns
    -------
    Model
        A new model. Sorted classes stay sorted; otherwise the new class is the last. ``objective`` and
        ``objective_zero`` of a joint model of exclusive classes refer to all classes and are NaN after one of them was
        replaced.

    Raises
    ------
    ValueError
        The classes of the model are trained together.

    Examples
    --------
    >>> import numpy as np
    >>> import sl1max
    >>> X, y = [[1, 0], [1, 1], [0, 1], [0, 1]], np.array(["spam", "spam", "ham", "ham"])
    >>> model = sl1max.fit(X, y, distribution="class-conditional")
    >>> sl1max.with_class(sl1max.without_class(model, "ham"), "ham", X, y == "ham").classes.tolist()
    ['ham', 'spam']
    """
    _check_separate(model, "with_class")
    if model.solver not in ALGORITHMS:
        raise ValueError(f"with_class: the model is of {model.solver}, not of maximum entropy")
    beta = model.beta if beta is None else beta
    if beta is None:
        raise ValueError("with_class: beta was an array when the model was trained, and must be given again")
    exclusive = model.label_mode == "exclusive"
    cells = _cells(y, exclusive)
    if exclusive or model.distribution == "class-conditional":
        _check_examples(cells, label)
    data = read_data(
        X, cells, distribution=model.distribution, label_mode=model.label_mode, multilabel_weighting="equal",
        solver=model.solver, sample_weight=sample_weight, offset=offset,
    )  # fmt: skip
    if data.matrix.shape[1] != model.n_features:
        raise ValueError(f"X has {data.matrix.shape[1]} features, but the model was trained with {model.n_features}")
    own = data.labels.shape[1] - 1
    strengths = strengths_of(model, beta, 1)
    reduction = reduce_data(data, model.distribution, strengths, model.fit_intercept)
    warn_constant(data, [label] * len(data.classes))
    control = FitControl(
        algorithm=ALGORITHMS[model.solver], tol=model.tol, max_iter=max_iter, callback=callback, verbose=verbose
    )
    solutions, others = _solve(reduction, own, control)
    settings = {name: getattr(model, name) for name in ("beta", "beta_rule", "solver", "tol", "penalty")}
    part, _ = reduction.join(solutions, settings, others)
    part = _report_share(part, solutions, reduction) if exclusive and model.distribution == "joint" else part
    _warn_unconverged(part, own, label, reduction.imprecision)
    return _put(model, _rescale(_take(part, [own]), model), label)


def without_class(model: Model, label: Any) -> Model:
    """Remove a class from a model.

    Parameters
    ----------
    model : Model
    label : object

    Returns
    -------
    Model
        A new model. The priors of the other classes, and their decision values, do not change. ``objective`` and
        ``objective_zero`` of a joint model of exclusive classes refer to all classes and become NaN; ``dual_gap`` is
        still a bound.

    Raises
    ------
    ValueError
        The classes of the model are trained together, or there is only this one.

    Examples
    --------
    >>> import sl1max
    >>> X, y = [[1, 0], [1, 1], [0, 1], [0, 0]], ["a", "b", "c", "c"]
    >>> sl1max.without_class(sl1max.fit(X, y, distribution="joint"), "b").classes.tolist()
    ['a', 'c']
    """
    _check_separate(model, "without_class")
    c = class_number(model, label)
    if model.n_classes == 1:
        raise ValueError(f"without_class: {label!r} is the only class")
    return _forget_objective(_take(model, np.delete(np.arange(model.n_classes), c)))


def _check_separate(model, what):
    """Refuse models whose classes are trained together."""
    together = model.label_mode == "exclusive" and (
        model.distribution == "conditional" or (model.distribution == "joint" and not model.fit_intercept)
    )
    if together:
        why = "" if model.distribution == "conditional" else " without intercepts"
        raise ValueError(
            f"{what}: the exclusive classes of a {model.distribution} model{why} are trained together: fit all anew"
        )


def _cells(y, exclusive):
    """Convert y to an indicator: of the class, preceded by that of all others if classes are exclusive."""
    y = np.asarray(y.toarray() if sparse.issparse(y) else y)
    y = y.ravel() if y.ndim == 2 and 1 in y.shape else y
    if y.ndim != 1 or y.dtype.kind not in "buif":
        raise ValueError("y must say of each example whether it is in the class: a vector of 0 and 1, or of shares")
    y = y.astype(np.float64)
    if not ((y >= 0) & (y <= 1)).all():
        raise ValueError("y must be between 0 and 1: which examples the class holds")
    return sparse.csr_array(np.stack([1 - y, y], axis=1) if exclusive else y[:, None])


def _check_examples(cells, label):
    """Check that the class has examples and, where needed, that the others have."""
    *others, own = cells.sum(axis=0)
    if not own:
        raise ValueError(f"y has no example of class {label}: there is nothing to train it on")
    if others and not others[0]:
        raise ValueError(f"y gives every example to class {label}: exclusive classes need some of others")


def _solve(reduction, own, control):
    """Solve the problems of the class; return the solutions and the other plans."""
    plans = reduction.plans(control.algorithm)
    wanted = [plan for plan in plans if plan.blocks[0][0] == own]
    labels = [reduction.class_label(plan) for plan in wanted]
    with control.observer.displaying(labels):
        solutions = [solve_problem(reduction, plan, control) for plan in wanted]
    if control.interrupt is not None:
        raise control.interrupt
    return solutions, [plan for plan in plans if plan.blocks[0][0] != own]


def _report_share(part, solutions, reduction):
    """Contribution of one class to the objective of a joint model of exclusive classes: p~(c) L_c - p~(c) ln p~(c)."""
    (solution,) = solutions
    share = reduction.moments.block_prior(*solution.plan.blocks[0])
    entropy = -share * np.log(share)
    return replace(
        part,
        objective=share * solution.objective + entropy,
        objective_zero=share * solution.objective_zero + entropy,
        dual_gap=share * solution.dual_gap,
        n_iter=solution.n_iter,
        converged=solution.status == "converged" and reduction.imprecision is None,
    )


def _rescale(part, model):
    """Convert a class trained with another total weight to that of the model.

    Its normaliser, if it has one of its own, is a sum over more or fewer examples, and its prior is a share of them.
    """
    log_ratio, exclusive = np.log(part.total_weight / model.total_weight), model.label_mode == "exclusive"
    if log_ratio == 0:
        return part
    changes, shift = {}, 0.0
    if model.distribution == "class-conditional":
        changes["log_z"] = part.log_z - log_ratio
    if model.distribution == "class-conditional" or exclusive:
        shift += log_ratio
    if exclusive:
        changes["class_prior"] = part.class_prior * np.exp(log_ratio)
        shift += log_ratio
    return replace(part, intercept=part.intercept + shift, **changes)


def _warn_unconverged(part, own, label, imprecision):
    converged, gap = (np.atleast_1d(value)[own if np.ndim(value) else 0] for value in (part.converged, part.dual_gap))
    if not converged:
        warnings.warn(
            f"with_class did not converge for class {label}, at a duality gap of {gap:.3g}"
            + (f": {imprecision}" if imprecision else ""),
            ConvergenceWarning,
            stacklevel=3,
        )


# Rows


def _take(model, rows):
    """Select classes of a model, in the given order."""
    changes = {"classes": model.classes[rows], "weights": model.weights[rows]}
    if model._parts is not None:
        changes["_parts"] = tuple(part[rows] for part in model._parts)
    for name in PER_CLASS:
        if np.ndim(getattr(model, name)):
            changes[name] = getattr(model, name)[rows]
    return replace(model, **changes)


def _put(model, part, label):
    """Insert the only class of another model at the position of its label."""
    (same,) = np.nonzero(model.classes == label)
    kept = model if not len(same) else _forget_objective(_take(model, np.delete(np.arange(model.n_classes), same)))
    classes = _add_label(kept.classes, label)
    place = int(same[0]) if len(same) else kept.n_classes
    if not len(same) and not model.trained_on_indicator and (kept.classes[:-1] < kept.classes[1:]).all():
        place = int(np.searchsorted(kept.classes, classes[-1]))
    joined = {name: _join(getattr(kept, name), getattr(part, name)) for name in PER_CLASS}
    joined |= {"classes": classes, "weights": sparse.vstack([kept.weights, part.weights], format="csr")}
    if kept._parts is not None:
        pairs = zip(kept._parts, part._parts, strict=True)
        joined["_parts"] = tuple(sparse.vstack(pair, format="csr") for pair in pairs)
    order = np.insert(np.arange(kept.n_classes), place, kept.n_classes)
    return _take(replace(kept, **joined), order)


def _join(kept, added):
    """Join the values of all classes and of one more; numbers that refer to all classes are added."""
    if np.ndim(kept):
        return np.append(kept, added)
    if isinstance(kept, bool | np.bool_):
        return bool(kept and added)
    return None if kept is None else kept + added


def _add_label(classes, label):
    added = np.asarray([label], dtype=object if classes.dtype.kind == "O" else None)
    text, new_text = (array.dtype.kind in "UT" for array in (classes, added))
    if text != new_text or added.ndim != 1:
        raise ValueError(f"label {label!r} is of another type than the classes of the model, {classes.dtype}")
    return np.concatenate([classes, added.astype(classes.dtype) if classes.dtype.kind == "T" else added])


def _forget_objective(model):
    """Set the objective of a joint model of exclusive classes to NaN, since the share of each class is not stored."""
    if np.ndim(model.objective):
        return model
    return replace(model, objective=np.nan, objective_zero=np.nan)
