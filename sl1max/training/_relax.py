"""Relaxed fits: the penalty chooses the features, and hardly shrinks their weights."""

from __future__ import annotations

import numbers
from dataclasses import replace
from typing import Any

import numpy as np
from numpy.typing import ArrayLike
from scipy import sparse

from sl1max._data.inputs import check_options
from sl1max._data.moments import IN_CLASS
from sl1max._models.reduction import Reduction
from sl1max._utils.typing import Matrix
from sl1max.model._model import Model
from sl1max.training._fit import reduction_of, train


def relax(
    model: Model,
    X: Matrix,
    y: Matrix,
    *,
    penalty_factor: float = 0.0,
    blend: float = 0.0,
    beta: ArrayLike | None = None,
    tol: float | None = None,
    max_iter: int | None = None,
    sample_weight: ArrayLike | None = None,
    offset: ArrayLike | None = None,
    multilabel_weighting: str = "duplicate",
    n_jobs: int | None = None,
) -> Model:
    """Refit a model on the features that it has chosen, with less of the penalty or none of it.

    The relaxed lasso (Meinshausen 2007): for each class the features with a nonzero weight stay, the others are left
    out, and training goes on from the weights.

    Parameters
    ----------
    model : Model
    X, y, sample_weight, offset, multilabel_weighting :
        The training set, as given to `sl1max.fit`.
    penalty_factor : float
        The part of the penalty that stays, from 0 to 1: beta and l2 are multiplied by it. Limits of the weights stay.
    blend : float
        glmnet's gamma, from 0 to 1: the share of the original weights in a mixture with the refitted ones. A mixture is
        the optimum of no objective: ``objective`` and ``dual_gap`` are those of the original penalties, and
        ``converged`` is false unless the gap happens to be small.
    beta : array, optional
        As given to `sl1max.fit`, where that was an array; the model remembers a number.
    tol, max_iter, n_jobs :
        As in `sl1max.fit`; tol is that of the model unless given.

    Returns
    -------
    Model
        Its objective and gap are those of the refit.

    Warns
    -----
    ConvergenceWarning
        The refit has no optimum, since the chosen features separate some classes, which are named.

    Examples
    --------
    >>> import numpy as np
    >>> import sl1max
    >>> rng = np.random.default_rng(0)
    >>> X = rng.normal(size=(200, 6))
    >>> y = X[:, 0] - X[:, 1] + rng.logistic(size=200) > 0
    >>> model = sl1max.fit(X, y, beta=3)
    >>> relaxed = sl1max.relax(model, X, y)
    >>> bool(abs(relaxed.weights).sum() > abs(model.weights).sum())
    True
    """
    check_relaxation(penalty_factor, blend, "penalty_factor")
    tol = model.tol if tol is None else tol
    check_options(tol=tol, max_iter=max_iter, n_jobs=n_jobs)
    reduction = reduction_of(model, X, y, "relax", beta, sample_weight, offset, multilabel_weighting)
    return relax_fit(reduction, model, penalty_factor, blend, tol=tol, max_iter=max_iter, n_jobs=n_jobs)


def check_relaxation(factor, blend, factor_name="relax_factor"):
    """Refuse numbers outside of [0, 1]; a factor of None is for no relaxation."""
    for name, value in ((factor_name, factor), ("blend", blend)):
        if value is not None and not (isinstance(value, numbers.Real) and 0 <= float(value) <= 1):
            raise ValueError(f"{name}={value!r} must be a number from 0 to 1")


def relax_fit(reduction: Reduction, model: Model, penalty_factor, blend, **options: Any) -> Model:
    """`relax` for the training set of the model, with the penalties that it was trained with."""
    strengths = reduction.penalties.strengths.times(penalty_factor)
    restricted = reduction.penalties.with_strengths(strengths).restricted(_support(model))
    relaxed = train(replace(reduction, penalties=restricted, warm_start=model), **options)
    return _blend(reduction, model, relaxed, blend) if blend else relaxed


def _support(model):
    """The features with a weight in each block of classes, as a function of (class, side)."""
    if model.label_mode == "exclusive":
        if model.distribution == "conditional" and model.n_classes == 2:
            difference = np.unique(model.weights.indices[model.weights.data != 0])
            return lambda c, side: difference
        sides = model.weights, model.weights
    elif model.distribution == "joint":
        sides = model._parts
    else:
        sides = model.weights, model.weights

    def support(c, side):
        matrix = sides[0] if side == IN_CLASS else sides[1]
        row = slice(matrix.indptr[c], matrix.indptr[c + 1])
        return matrix.indices[row][matrix.data[row] != 0]

    return support


def _blend(reduction, model, relaxed, share):
    """A mixture of the weights of two models; what depends on these is computed with the first one's penalties."""

    def mix(first, second):
        return share * first + (1 - share) * second

    parts = None
    if model._parts is not None:
        parts = tuple(sparse.csr_array(mix(*pair)) for pair in zip(model._parts, relaxed._parts, strict=True))
    with np.errstate(invalid="ignore"):
        intercept = np.where(np.isfinite(model.intercept), mix(model.intercept, relaxed.intercept), model.intercept)
    weights = sparse.csr_array(mix(model.weights, relaxed.weights))
    mixed = replace(model, weights=weights, intercept=intercept, _parts=parts)
    reduction = replace(reduction, warm_start=mixed)
    solutions = []
    for plan in reduction.plans("newton"):
        solver = reduction.make_solver(plan, "newton", model.tol, changes=True)
        solutions.append(reduction.solution(plan, solver, solver.run(0)))
    settings = {name: getattr(model, name) for name in ("beta", "beta_rule", "solver", "tol", "penalty")}
    return reduction.join(solutions, settings)[0]
