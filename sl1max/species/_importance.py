"""What each covariate contributes to a model: permutation importance, percent contribution, jackknife."""

from __future__ import annotations

from numbers import Integral
from typing import Any

import numpy as np
from numpy.typing import ArrayLike
from sklearn.utils import check_random_state, check_scalar

from sl1max.estimators._parallel import run_parallel
from sl1max.model._explain import Table, make_table
from sl1max.species._evaluation import auc, unregularized_gain
from sl1max.species._model import SpeciesModel, read_points, read_rows, train_on_space
from sl1max.training._presences import SampleSpace
from sl1max.training._sequential import sequential_gains


def permutation_importance(
    model: SpeciesModel,
    X: Any,
    y: ArrayLike,
    *,
    n_repeats: int = 10,
    sample_weight: ArrayLike | None = None,
    n_jobs: int | None = None,
    random_state: Any = None,
) -> Table:
    """How much the training AUC falls when a covariate is permuted among presences and background.

    Parameters
    ----------
    model : SpeciesModel
        Trained; it is not trained again.
    X : array or frame of shape (n_rows, n_covariates)
        The training set.
    y : array of shape (n_rows,)
        Its labels.
    n_repeats : int
        How many permutations of each covariate; the program has one.
    sample_weight : array of shape (n_rows,), optional
    n_jobs : int, optional
        Threads.
    random_state : int, RandomState or None

    Returns
    -------
    Table
        Columns ``covariate``; ``importance``, the mean fall of the AUC in percent of the sum of all; ``auc_drop``, the
        mean fall; ``std``, its standard deviation over the permutations.

    Examples
    --------
    >>> import numpy as np
    >>> from sl1max.species import SpeciesModel, permutation_importance
    >>> rng = np.random.default_rng(0)
    >>> X = np.concatenate([rng.uniform(0, 10, (500, 2)), rng.normal(7, 1, (40, 2)) * [1, 0] + [0, 5]])
    >>> y = np.arange(540) >= 500
    >>> model = SpeciesModel("lq").fit(X, y)
    >>> permutation_importance(model, X, y, random_state=0)["covariate"]
    array(['x0', 'x1'], dtype='<U2')
    """
    check_scalar(n_repeats, "n_repeats", Integral, min_val=1)
    space = read_rows(model, X, y, sample_weight).sample_space()
    rng = check_random_state(random_state)
    seeds = rng.randint(np.iinfo(np.int32).max, size=len(model.covariates_.names))
    n_points = len(space.presences) + space.n_background
    before = _auc_of_rows(model, space, *_stack(space))

    def drops(j, seed):
        rng = np.random.RandomState(seed)
        orders = [rng.permutation(n_points) for _ in range(n_repeats)]
        return [before - permuted_auc(model, space, j, order) for order in orders]

    drop = np.array(run_parallel(drops, enumerate(seeds), n_jobs, threads=True))
    mean = np.maximum(drop.mean(axis=1), 0.0)
    return make_table(
        covariate=np.array(model.covariates_.names, str),
        importance=_percent(mean),
        auc_drop=drop.mean(axis=1),
        std=drop.std(axis=1),
    )


def permuted_auc(model: SpeciesModel, space: SampleSpace, column: int, order: np.ndarray) -> float:
    """The training AUC after a permutation of one covariate.

    Parameters
    ----------
    model : SpeciesModel
    space : SampleSpace
    column : int
        The covariate.
    order : int array
        A permutation of the presences and the background, in this order; added presences are not repeated.

    Returns
    -------
    float
    """
    V, weight = _stack(space)
    V[:, column] = V[order, column]
    return _auc_of_rows(model, space, V, weight)


def _stack(space):
    """Presences and background, and their weights."""
    V = np.concatenate([space.presences, space.points[: space.n_background]])
    return V, np.concatenate([space.presence_weight, space.weight[: space.n_background]])


def _auc_of_rows(model, space, V, weight):
    score, n = model.model_.score(V, clamp=model.clamp), len(space.presences)
    return auc(score[:n], score[n:], weight[:n], weight[n:])


def _percent(values):
    total = values.sum()
    return 100 * values / total if total > 0 else np.zeros(len(values))


def percent_contribution(model: SpeciesModel, X: Any, y: ArrayLike, *, sample_weight: ArrayLike | None = None) -> Table:
    """What each covariate adds to the gain on the path of the sequential algorithm.

    Every step of that algorithm changes the weight of one feature and is credited to its covariates, a product's half
    to each. The figures depend on the path: of two correlated covariates, the one that is chosen first has the credit,
    and another algorithm would give it to the other. `jackknife` has a contribution that does not depend on a path.

    Parameters
    ----------
    model : SpeciesModel
        Trained.
    X : array or frame of shape (n_rows, n_covariates)
        The training set.
    y : array of shape (n_rows,)
        Its labels.
    sample_weight : array of shape (n_rows,), optional

    Returns
    -------
    Table
        Columns ``covariate`` and ``contribution``, in percent of the sum.

    Examples
    --------
    >>> import numpy as np
    >>> from sl1max.species import SpeciesModel, percent_contribution
    >>> rng = np.random.default_rng(0)
    >>> X = np.concatenate([rng.uniform(0, 10, (500, 2)), rng.normal(7, 1, (40, 2)) * [1, 0] + [0, 5]])
    >>> y = np.arange(540) >= 500
    >>> table = percent_contribution(SpeciesModel("l").fit(X, y), X, y)
    >>> round(table["contribution"].sum())
    100
    """
    problem = model._pose(read_rows(model, X, y, sample_weight).sample_space())
    gains = sequential_gains(problem)
    share = np.zeros(len(model.covariates_.names))
    np.add.at(share, problem.table.first, gains / 2)
    np.add.at(share, problem.table.second, gains / 2)
    return make_table(covariate=np.array(model.covariates_.names, str), contribution=_percent(share))


def jackknife(
    model: SpeciesModel,
    X: Any,
    y: ArrayLike,
    *,
    test_presences: Any = None,
    sample_weight: ArrayLike | None = None,
    n_jobs: int | None = None,
) -> Table:
    """Gain and AUC of models without each covariate, and with it alone.

    Parameters
    ----------
    model : SpeciesModel
        Trained; the others have its options and its sample space.
    X : array or frame of shape (n_rows, n_covariates)
        The training set.
    y : array of shape (n_rows,)
        Its labels.
    test_presences : array or frame of shape (n_test, n_covariates), optional
        Covariates of presences that were not used in training.
    sample_weight : array of shape (n_rows,), optional
    n_jobs : int, optional
        Models trained at the same time.

    Returns
    -------
    Table
        Columns ``covariate``; ``gain_drop``, the regularised gain that is lost without the covariate, which depends on
        the optima alone and not on a path; ``gain_without``, ``gain_only``, ``auc_without``, ``auc_only``; with test
        presences ``test_gain_without``, ``test_gain_only``, ``test_auc_without``, ``test_auc_only``. A model of no
        covariate has the gain 0.

    Examples
    --------
    >>> import numpy as np
    >>> from sl1max.species import SpeciesModel, jackknife
    >>> rng = np.random.default_rng(0)
    >>> X = np.concatenate([rng.uniform(0, 10, (500, 2)), rng.normal(7, 1, (40, 2)) * [1, 0] + [0, 5]])
    >>> y = np.arange(540) >= 500
    >>> jackknife(SpeciesModel("l").fit(X, y), X, y).columns
    ('covariate', 'gain_drop', 'gain_without', 'gain_only', 'auc_without', 'auc_only')
    """
    space = read_rows(model, X, y, sample_weight).sample_space()
    test = None if test_presences is None else read_points(model, test_presences)
    n = len(model.covariates_.names)
    without = [[k for k in range(n) if k != j] for j in range(n)]
    tasks = [(model, space, test, columns) for columns in [*without, *([j] for j in range(n))]]
    rows = np.array(run_parallel(_figures_of_subset, tasks, n_jobs)).reshape(2, n, -1)
    names = ("gain", "auc") if test is None else ("gain", "auc", "test_gain", "test_auc")
    figures = {
        f"{name}_{which}": rows[i, :, k] for k, name in enumerate(names) for i, which in enumerate(("without", "only"))
    }
    covariates = np.array(model.covariates_.names, str)
    return make_table(covariate=covariates, gain_drop=model.gain_ - rows[0, :, 0], **figures)


def _figures_of_subset(model, space, test, columns):
    """Gain and AUC, training and test, of a model of some covariates."""
    if not columns:
        return [0.0, 0.5] if test is None else [0.0, 0.5, 0.0, 0.5]
    one = train_on_space(model, space, columns)
    score = one.model_.score(space.points[:, columns], clamp=one.clamp)
    presence = one.model_.score(space.presences[:, columns], clamp=one.clamp)
    figures = [one.gain_, auc(presence, score, space.presence_weight, space.weight)]
    if test is not None:
        tested = one.model_.score(test[:, columns], clamp=one.clamp)
        figures += [unregularized_gain(one, tested, np.ones(len(tested))), auc(tested, score, None, space.weight)]
    return figures
