"""Response curves: how the prediction depends on one covariate."""

from __future__ import annotations

from numbers import Integral
from typing import Any

import numpy as np
from numpy.typing import ArrayLike
from sklearn.utils import check_scalar

from sl1max.model._explain import Table, make_table
from sl1max.species._model import SpeciesModel, read_rows, train_on_space

BEYOND = 0.1  # of the range of a covariate, by which its curve goes on at either end
KINDS = ("marginal", "alone")


def response_curve(
    model: SpeciesModel,
    X: Any,
    y: ArrayLike,
    covariate: str | int,
    *,
    kind: str = "marginal",
    output: str | None = None,
    n_points: int = 101,
    sample_weight: ArrayLike | None = None,
) -> Table:
    """The prediction as a function of one covariate.

    Parameters
    ----------
    model : SpeciesModel
        Trained.
    X : array or frame of shape (n_rows, n_covariates)
        The training set.
    y : array of shape (n_rows,)
        Its labels.
    covariate : str or int
        Its name or number.
    kind : {"marginal", "alone"}
        "marginal": the others are at their mean over the presences, categories at their most frequent one. Hard to read
        where covariates are correlated. "alone": of another model, trained with this covariate only.
    output : {"cloglog", "logistic", "raw", "cumulative"}, optional
        Instead of that of the model.
    n_points : int
        How many values, from a tenth of the range below the least in training to a tenth above the greatest. A category
        has all its values.
    sample_weight : array of shape (n_rows,), optional

    Returns
    -------
    Table
        Columns ``value`` and ``response``; ``inside``, whether the value is within the range in training.

    Examples
    --------
    >>> import numpy as np
    >>> from sl1max.species import SpeciesModel, response_curve
    >>> rng = np.random.default_rng(0)
    >>> X = np.concatenate([rng.uniform(0, 10, (500, 1)), rng.normal(7, 1, (40, 1))])
    >>> y = np.arange(540) >= 500
    >>> curve = response_curve(SpeciesModel("lq").fit(X, y), X, y, 0)
    >>> int(curve["value"][curve["response"].argmax()].round())
    7
    """
    if kind not in KINDS:
        raise ValueError(f'kind must be "marginal" or "alone", got {kind!r}')
    check_scalar(n_points, "n_points", Integral, min_val=2)
    space = read_rows(model, X, y, sample_weight).sample_space()
    j = find_covariate(model, covariate)
    values, inside = _values_of(model, space, j, n_points)
    if kind == "alone":
        model = train_on_space(model, space, [j])
        V = values[:, None]
    else:
        V = np.tile(_typical_presence(model, space), (len(values), 1))
        V[:, j] = values
    response = model.model_.transform_score(
        model.model_.score(V, clamp=model.clamp), model.output if output is None else output
    )
    categories = model.covariates_.categories.get(0 if kind == "alone" else j)
    if categories is not None and categories.dtype.kind != "f":
        values = np.array([str(categories[int(value)]) for value in values])
    return make_table(value=values, response=response, inside=inside)


def find_covariate(model: SpeciesModel, covariate: str | int) -> int:
    """The number of a covariate that is given by name or number."""
    names = model.covariates_.names
    if isinstance(covariate, str):
        if covariate in names:
            return names.index(covariate)
    elif -len(names) <= covariate < len(names):
        return int(covariate) % len(names)
    raise ValueError(f"the model has no covariate {covariate!r}; it has {', '.join(names)}")


def _values_of(model, space, j, n_points):
    """Values that the curve is drawn at, and which are within the range in training."""
    v = space.points[:, j]
    if j in model.covariates_.categories:
        values = np.unique(v)
        return values, np.ones(len(values), bool)
    low, high = v.min(), v.max()
    margin = BEYOND * (high - low) or BEYOND
    values = np.linspace(low - margin, high + margin, n_points)
    return values, (values >= low) & (values <= high)


def _typical_presence(model, space):
    """Means of the covariates over the presences, the most frequent category of each that is one."""
    weight = space.presence_weight
    typical = weight @ space.presences / weight.sum()
    for j in model.covariates_.categories:
        values, which = np.unique(space.presences[:, j], return_inverse=True)
        typical[j] = values[np.argmax(np.bincount(which, weight))]
    return typical
