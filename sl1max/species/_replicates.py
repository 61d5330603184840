"""Models of parts of the presences, tested on the others: replicates, and models of random presences."""

from __future__ import annotations

from dataclasses import dataclass
from numbers import Integral, Real
from typing import Any

import numpy as np
from numpy.typing import ArrayLike
from sklearn.utils import check_random_state, check_scalar

from sl1max.estimators._parallel import run_parallel
from sl1max.model._explain import Table, make_table
from sl1max.species._evaluation import auc, auc_and_error, unregularized_gain
from sl1max.species._model import LabelledRows, SpeciesModel, read_points, read_rows, train_on_space
from sl1max.training._presences import SampleSpace

KINDS = ("cross_validation", "bootstrap", "subsample")
FIGURES = (
    *("n_training", "n_test", "gain", "auc", "test_gain", "test_auc", "test_auc_std", "auc_diff"),
    *("omission_minimum", "omission_10_percentile"),
)


@dataclass(frozen=True, eq=False, repr=False)
class Replicates:
    """Models of parts of the presences, and how they do on the others.

    Attributes
    ----------
    table : Table
        A row for each replicate: ``replicate``, its number or its group; ``n_training``, ``n_test``, numbers of
        presences; ``gain`` and ``auc`` in training; ``test_gain``, ``test_auc``, ``test_auc_std``; ``auc_diff``, the
        training AUC minus the test AUC; ``omission_minimum`` and ``omission_10_percentile``, the share of the test
        presences below the least and below the 10th percentile of the training presences.
    models : list of SpeciesModel
    """

    table: Table
    models: list[SpeciesModel]

    def __repr__(self) -> str:
        mean, std = (getattr(np, f"nan{name}")(self.table["test_auc"]) for name in ("mean", "std"))
        return f"<sl1max.species.Replicates: {len(self.table)} replicates, test AUC {mean:.4f} ± {std:.4f}>"

    @property
    def summary(self) -> Table:
        """Mean and standard deviation of each figure over the replicates.

        Returns
        -------
        Table
            Columns ``figure``, ``mean`` and ``std``.
        """
        values = np.array([self.table[name] for name in FIGURES], float)
        std = values.std(axis=1, ddof=1) if values.shape[1] > 1 else np.full(len(FIGURES), np.nan)
        return make_table(figure=np.array(FIGURES), mean=values.mean(axis=1), std=std)


@dataclass(frozen=True, eq=False)
class Fold:
    """Rows that a replicate is trained on and tested on.

    Attributes
    ----------
    name : int or str
    background, training, test : int arrays
        Rows; training presences that occur twice count twice.
    """

    name: Any
    background: np.ndarray
    training: np.ndarray
    test: np.ndarray


def replicate(
    model: SpeciesModel,
    X: Any,
    y: ArrayLike,
    *,
    kind: str = "cross_validation",
    n_replicates: int = 5,
    test_share: float = 0.25,
    groups: ArrayLike | None = None,
    sample_weight: ArrayLike | None = None,
    n_jobs: int | None = None,
    random_state: Any = None,
) -> Replicates:
    """Train models on parts of the presences and test them on the others.

    Parameters
    ----------
    model : SpeciesModel
        Trained on all of them; the replicates have its options.
    X : array or frame of shape (n_rows, n_covariates)
        The training set.
    y : array of shape (n_rows,)
        Its labels.
    kind : {"cross_validation", "bootstrap", "subsample"}
        Parts of equal size, each the test set of a replicate; as many presences drawn with replacement, tested on those
        that were not drawn; or a random part set aside for the test.
    n_replicates : int
        At most the number of presences for cross-validation.
    test_share : float
        Of the presences, for "subsample".
    groups : array of shape (n_rows,), optional
        Such as those of `spatial_blocks` or `checkerboard`. There is a replicate for each, instead of ``kind``, that is
        trained without the presences and the background of that group. All are tested against the whole background.
    sample_weight : array of shape (n_rows,), optional
    n_jobs : int, optional
        Models trained at the same time.
    random_state : int, RandomState or None

    Returns
    -------
    Replicates

    Examples
    --------
    >>> import numpy as np
    >>> from sl1max.species import SpeciesModel, replicate
    >>> rng = np.random.default_rng(0)
    >>> X = np.concatenate([rng.uniform(0, 10, (500, 1)), rng.normal(7, 1, (40, 1))])
    >>> y = np.arange(540) >= 500
    >>> model = SpeciesModel("lq").fit(X, y)
    >>> replicate(model, X, y, random_state=0).table["n_test"].tolist()
    [8, 8, 8, 8, 8]
    """
    rows = read_rows(model, X, y, sample_weight)
    folds = make_folds(rows, kind, n_replicates, test_share, groups, random_state)
    done = run_parallel(train_fold, [(model, rows, fold) for fold in folds], n_jobs)
    figures = np.array([one for _, one in done])
    columns = {name: figures[:, k] for k, name in enumerate(FIGURES)}
    columns |= {name: columns[name].astype(int) for name in ("n_training", "n_test")}
    table = make_table(replicate=np.array([fold.name for fold in folds]), **columns)
    return Replicates(table, [one for one, _ in done])


def make_folds(
    rows: LabelledRows, kind: str, n_replicates: int, test_share: float, groups: Any, random_state: Any
) -> list[Fold]:
    """The parts of presences and background; see `replicate`."""
    if kind not in KINDS:
        raise ValueError(f"kind must be one of {', '.join(KINDS)}, got {kind!r}")
    presences, n = rows.presences, len(rows.presences)
    if n < 2:
        raise ValueError("there is one presence, which cannot be divided into presences for training and for the test")
    if groups is not None:
        return _folds_of_groups(rows, np.asarray(groups))
    check_scalar(n_replicates, "n_replicates", Integral, min_val=1)
    rng = check_random_state(random_state)
    folds = []
    if kind == "cross_validation":
        if not 2 <= n_replicates <= n:
            raise ValueError(f"n_replicates must lie between 2 and the number of presences, {n}, got {n_replicates}")
        for k, test in enumerate(np.array_split(rng.permutation(n), n_replicates)):
            folds.append(Fold(k, rows.background, np.delete(presences, test), presences[test]))
    elif kind == "bootstrap":
        for k in range(n_replicates):
            drawn = rng.randint(n, size=n)
            while len(np.unique(drawn)) == n:  # none is left for the test; rare but for few presences
                drawn = rng.randint(n, size=n)
            folds.append(Fold(k, rows.background, presences[np.sort(drawn)], np.delete(presences, np.unique(drawn))))
    else:
        check_scalar(test_share, "test_share", Real, min_val=0, max_val=1, include_boundaries="neither")
        n_test = min(max(1, round(test_share * n)), n - 1)
        for k in range(n_replicates):
            test = rng.permutation(n)[:n_test]
            folds.append(Fold(k, rows.background, np.delete(presences, test), presences[test]))
    return folds


def _folds_of_groups(rows, groups):
    if groups.shape != (len(rows.V),):
        raise ValueError(f"groups must have an entry for each of the {len(rows.V)} rows of X")
    names = np.unique(groups[rows.presences])
    if len(names) < 2:
        raise ValueError("the presences are all of one group: there must be two groups at least")
    folds = []
    for name in names:
        held_out = [groups[one] == name for one in (rows.background, rows.presences)]
        background = rows.background[~held_out[0]]
        if not len(background):
            raise ValueError(f"without the group {name} there is no background")
        folds.append(Fold(name, background, rows.presences[~held_out[1]], rows.presences[held_out[1]]))
    return folds


def train_fold(model: SpeciesModel, rows: LabelledRows, fold: Fold) -> tuple[SpeciesModel, list[float]]:
    """The model of a fold, and its `FIGURES`."""
    V, weight = rows.V, rows.weight
    space = SampleSpace(V[fold.background], weight[fold.background], V[fold.training], weight[fold.training])
    one = train_on_space(model, space)
    lambdas = one.model_
    added = space.points[space.n_background :]
    points = lambdas.score(np.concatenate([V[rows.background], added]), clamp=one.clamp)
    mass = np.concatenate([weight[rows.background], space.weight[space.n_background :]])
    training, test = (lambdas.score(V[which], clamp=one.clamp) for which in (fold.training, fold.test))
    test_auc, test_auc_std = auc_and_error(test, points, mass)
    training_auc = auc(training, points, weight[fold.training], mass)
    percentile = np.sort(training)[len(training) // 10]
    return one, [
        *(len(training), len(test), one.gain_, training_auc),
        *(unregularized_gain(one, test, weight[fold.test]), test_auc, test_auc_std, training_auc - test_auc),
        *(np.mean(test < training.min()), np.mean(test < percentile)),
    ]


def null_models(
    model: SpeciesModel,
    X: Any,
    y: ArrayLike,
    *,
    n_models: int = 100,
    test_presences: Any = None,
    sample_weight: ArrayLike | None = None,
    n_jobs: int | None = None,
    random_state: Any = None,
) -> Table:
    """Compare a model with models of as many random background points in place of the presences.

    Even random points are told apart from the background to some degree, more so the fewer they are. A model that
    knows more of its species than that has figures beyond those of nearly all null models (Raes and ter Steege 2007;
    Bohl, Kass and Anderson 2019).

    Parameters
    ----------
    model : SpeciesModel
        Trained; the null models have its options.
    X : array or frame of shape (n_rows, n_covariates)
        The training set.
    y : array of shape (n_rows,)
        Its labels.
    n_models : int
    test_presences : array or frame of shape (n_test, n_covariates), optional
        Covariates of presences that were not used in training.
    sample_weight : array of shape (n_rows,), optional
        Background points are drawn in proportion to it.
    n_jobs : int, optional
        Models trained at the same time.
    random_state : int, RandomState or None

    Returns
    -------
    Table
        A row each for ``gain``, ``auc`` and, with test presences, ``test_auc``. Columns ``figure``, ``observed``,
        ``null_mean``, ``null_std``, ``effect``, by how many standard deviations the observed figure is above the mean,
        and ``p_value``, (1 + null models with a figure as great) / (1 + null models).

    Examples
    --------
    >>> import numpy as np
    >>> from sl1max.species import SpeciesModel, null_models
    >>> rng = np.random.default_rng(0)
    >>> X = np.concatenate([rng.uniform(0, 10, (500, 1)), rng.normal(7, 1, (40, 1))])
    >>> y = np.arange(540) >= 500
    >>> model = SpeciesModel("lq").fit(X, y)
    >>> null_models(model, X, y, n_models=19, random_state=0)["p_value"].tolist()
    [0.05, 0.05]
    """
    check_scalar(n_models, "n_models", Integral, min_val=2)
    rows = read_rows(model, X, y, sample_weight)
    test = None if test_presences is None else read_points(model, test_presences)
    n, rng = len(rows.presences), check_random_state(random_state)
    if n > len(rows.background):
        raise ValueError(f"the background has fewer points than there are presences, {n}, to draw in their place")
    share = rows.weight[rows.background] / rows.weight[rows.background].sum()
    draws = [rng.choice(rows.background, n, replace=False, p=share) for _ in range(n_models)]
    observed = _figures(model, rows.sample_space(), test)
    tasks = [(model, rows, drawn, test) for drawn in draws]
    null = np.array(run_parallel(_train_null, tasks, n_jobs))
    mean, std = null.mean(axis=0), null.std(axis=0, ddof=1)
    with np.errstate(divide="ignore", invalid="ignore"):
        effect = (observed - mean) / std
    return make_table(
        figure=np.array(["gain", "auc", "test_auc"][: len(observed)]),
        observed=np.array(observed),
        null_mean=mean,
        null_std=std,
        effect=effect,
        p_value=(1 + (null >= observed).sum(axis=0)) / (1 + n_models),
    )


def _train_null(model, rows, drawn, test):
    background, weight = rows.V[rows.background], rows.weight[rows.background]
    space = SampleSpace(background, weight, rows.V[drawn], rows.weight[rows.presences])
    return _figures(train_on_space(model, space), space, test)


def _figures(model, space, test):
    points, presences = (model.model_.score(V, clamp=model.clamp) for V in (space.points, space.presences))
    figures = [model.gain_, auc(presences, points, space.presence_weight, space.weight)]
    if test is not None:
        figures.append(auc(model.model_.score(test, clamp=model.clamp), points, None, space.weight))
    return np.array(figures)
