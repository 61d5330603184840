"""The constraints of a fitted model: required and actual expectations of the features.

A maximum-entropy model is the flattest distribution q whose expectation of every feature lies in the interval
p~ - beta ... p~ + beta around its mean p~ in the training set. A weight is the multiplier of such a
constraint: zero unless the expectation has come to an end of its interval.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from sl1max._data.moments import IN_CLASS
from sl1max._utils.typing import Matrix, MultilabelWeighting
from sl1max.model import Model
from sl1max.model._explain import Table, class_number, make_table, name_features, read_names
from sl1max.training._fit import reduction_of


def constraints(
    model: Model,
    X: Matrix,
    y: Matrix,
    *,
    label: Any = None,
    features: Any = None,
    feature_names: Sequence[str] | None = None,
    beta: ArrayLike | None = None,
    sample_weight: ArrayLike | None = None,
    offset: ArrayLike | None = None,
    multilabel_weighting: MultilabelWeighting = "duplicate",
) -> Table:
    """List required and actual expectation of each feature of a fitted model.

    The target p~ is the mean of a feature in the training set, in the units of X: over the cells (x, c) of
    the class, so that the share of the class is in it, or for class-conditional models over the class's own
    examples. The model may depart from it by beta, which is what the rule makes of ``beta``.

    Parameters
    ----------
    model : Model
    X, y, sample_weight, offset, multilabel_weighting :
        The training set, as given to `sl1max.fit`.
    label : object or list, optional
        The class or classes; by default all.
    features : int, str or list of these, optional
        The features, by column number or name; by default those with an active constraint.
    feature_names : sequence of str of length n_features, optional
        Names for the column ``feature``, which otherwise holds column numbers.
    beta : array, optional
        As given to `sl1max.fit`, if it was an array; the model stores a number.

    Returns
    -------
    Table
        Sorted by class and descending absolute weight, with the columns

        - ``class``, and for independent classes ``side``: "class" or "non-class", since both have weights;
        - ``feature``;
        - ``target``: p~, and ``lower``, ``upper``: p~ - beta and p~ + beta, or what beta_lower, beta_upper and signs
          of the weights make of these. An L2 penalty or a limit of the weights lets the expectation leave them;
        - ``expectation``: of the model;
        - ``binds``: the weight is not zero, or the expectation is at an end of the interval or beyond;
        - ``weight``: the multiplier of the constraint.

        Classes that hold all or none of the examples are constant and have no rows.

    Raises
    ------
    ValueError
        X and y are not the training set of the model.

    Examples
    --------
    >>> import sl1max
    >>> X = [[1, 0, 1], [1, 1, 0], [0, 1, 1], [0, 1, 0]]
    >>> y = ["spam", "spam", "ham", "ham"]
    >>> model = sl1max.fit(X, y, distribution="joint", beta=0.5, tol=1e-10)
    >>> sl1max.constraints(model, X, y, label="spam", features=[0, 1], feature_names=["win", "hello", "free"])
    class  feature  target   lower   upper  expectation  binds  weight
    spam   win         0.5   0.375   0.625        0.375  yes     1.099
    spam   hello      0.25  0.1417  0.3583       0.3125  no          0
    """
    names = read_names(feature_names, model.n_features)
    asked = None if features is None else _column_numbers(features, names, model.n_features)
    wanted = range(model.n_classes) if label is None else [class_number(model, one) for one in _listed(label)]
    reduction = reduction_of(model, X, y, "constraints", beta, sample_weight, offset, multilabel_weighting)
    found = {}
    # The sequential solver's plans give every block weights of its own, as plain L1 has them.
    general = reduction.penalties.strengths.is_general
    for plan in reduction.plans("newton" if general else "sequential"):
        if not {c for c, _ in plan.blocks}.isdisjoint(wanted):
            found.update(_look_at(reduction, plan, asked))
    blocks = [(c, side) for c in wanted for side in (IN_CLASS, 1 - IN_CLASS) if (c, side) in found]
    return _join(model, names, blocks, [found[block] for block in blocks])


def _look_at(reduction, plan, asked):
    """Yield columns, targets, beta, expectations, active constraints and weights of every block of a problem."""
    solver = reduction.make_solver(plan, "newton", tol=1.0, changes=True)
    weights = np.zeros_like(solver.problem.beta)
    blocks, cols, values = solver.coefficients()
    weights[blocks, cols] = values
    expectations = solver.expectations()
    for b, block in enumerate(plan.blocks):
        # A joint model that separates is solved within the class; its constraints are on p(x, c).
        share = reduction.moments.block_prior(*block) if reduction.separates else 1.0
        target = solver.problem.emp_mean[b, :-1] * share
        lower, upper = (width[b, :-1] * share for width in widths(solver.problem))
        expectation, weight = expectations[b] * share, weights[b, :-1]
        binds = (weight != 0) | (expectation - target >= upper) | (target - expectation >= lower)
        chosen = np.flatnonzero(binds) if asked is None else asked
        chosen = chosen[np.argsort(-np.abs(weight[chosen]), kind="stable")]
        yield block, (chosen, *(values[chosen] for values in (target, lower, upper, expectation, binds, weight)))


def widths(problem):
    """By how much an expectation may be below its target, and above it, (n_blocks, n_features + 1).

    Where the weight may not be positive, or not be negative, that is any amount.
    """
    if problem.low is None:
        return problem.beta, problem.beta_upper
    return np.where(problem.high == 0, np.inf, problem.beta), np.where(problem.low == 0, np.inf, problem.beta_upper)


def _join(model, names, blocks, rows):
    sizes = [len(columns) for columns, *_ in rows]
    empty = (np.empty(0, np.int64), *[np.empty(0)] * 4, np.empty(0, bool), np.empty(0))
    columns, target, lower, upper, expectation, binds, weight = map(np.concatenate, zip(empty, *rows, strict=True))
    number = np.repeat(np.array([c for c, _ in blocks], np.int64), sizes)
    side = {}
    if model.label_mode == "independent":
        names_of_sides = np.array(["non-class", "class"])
        side = {"side": names_of_sides[np.repeat(np.array([s for _, s in blocks], np.int64), sizes)]}
    return make_table(
        **{"class": model.classes[number]}, **side, feature=name_features(columns, names), target=target,
        lower=target - lower, upper=target + upper, expectation=expectation, binds=binds, weight=weight,
    )  # fmt: skip


def _listed(value):
    return value if isinstance(value, list | tuple | np.ndarray) else [value]


def _column_numbers(features, names, n_features):
    numbers = {} if names is None else {name: j for j, name in enumerate(names.tolist())}
    found = []
    for feature in _listed(features):
        if isinstance(feature, str):
            if feature not in numbers:
                raise ValueError(f"features has {feature!r}, which is not among feature_names")
            found.append(numbers[feature])
        elif 0 <= feature < n_features:
            found.append(int(feature))
        else:
            raise ValueError(f"features has {feature}: column numbers go from 0 to {n_features - 1}")
    return np.array(found, np.int64)
