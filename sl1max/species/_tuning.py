"""Choosing the feature classes and the strength of the regularisation."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import ArrayLike
from sklearn.base import clone

from sl1max.estimators._parallel import run_parallel
from sl1max.model._explain import Table, make_table
from sl1max.species._evaluation import auc
from sl1max.species._model import SpeciesModel, read_rows, train_on_space
from sl1max.species._replicates import FIGURES, make_folds, train_fold

RULES = ("aicc", "test_auc", "omission")
TESTED = ("test_gain", "test_auc", "auc_diff", "omission_minimum", "omission_10_percentile")


@dataclass(frozen=True, eq=False, repr=False)
class Tuning:
    """Models with different feature classes and penalties, compared.

    Attributes
    ----------
    table : Table
        A row for each setting: ``features``, ``beta_multiplier``; ``n_weights``, how many features have a weight;
        ``gain`` and ``auc`` in training; ``aicc``, Akaike's information criterion corrected for few presences, inf
        where there are as many weights as presences, less one; ``delta_aicc``, above the least; the means over the
        replicates of ``test_gain``, ``test_auc``, ``auc_diff``, ``omission_minimum``, ``omission_10_percentile`` (see
        `Replicates`); ``test_auc_std``, the standard deviation over the replicates.
    rule : {"aicc", "test_auc", "omission"}
    best : int
        The row that the rule chooses.
    model : SpeciesModel
        Trained on all presences with these settings.
    """

    table: Table
    rule: str
    best: int
    model: SpeciesModel

    def __repr__(self) -> str:
        features, beta = (self.table[name][self.best] for name in ("features", "beta_multiplier"))
        return f"<sl1max.species.Tuning: {len(self.table)} settings, best by {self.rule}: {features}, {beta:g}>"


def tune(
    model: SpeciesModel,
    X: Any,
    y: ArrayLike,
    *,
    features: Sequence[str] = ("l", "lq", "lqh", "lqph"),
    beta_multipliers: Sequence[float] = (0.5, 1.0, 2.0, 3.0, 4.0),
    rule: str = "aicc",
    kind: str = "cross_validation",
    n_replicates: int = 5,
    test_share: float = 0.25,
    groups: ArrayLike | None = None,
    sample_weight: ArrayLike | None = None,
    n_jobs: int | None = None,
    random_state: Any = None,
) -> Tuning:
    """Choose feature classes and beta multiplier by AICc, test AUC or test omission.

    Parameters
    ----------
    model : SpeciesModel
        Trained; the models compared have its other options.
    X : array or frame of shape (n_rows, n_covariates)
        The training set.
    y : array of shape (n_rows,)
        Its labels.
    features : sequence of str
        Letters of feature classes, or "auto".
    beta_multipliers : sequence of float
    rule : {"aicc", "test_auc", "omission"}
        The least AICc; the greatest mean test AUC; or the least mean omission at the 10th percentile of the training
        presences, of equal ones that with the greatest test AUC.
    kind, n_replicates, test_share, groups
        How test presences are set aside; see `replicate`. They are the same for all settings.
    sample_weight : array of shape (n_rows,), optional
    n_jobs : int, optional
        Models trained at the same time.
    random_state : int, RandomState or None

    Returns
    -------
    Tuning

    Examples
    --------
    >>> import numpy as np
    >>> from sl1max.species import SpeciesModel, tune
    >>> rng = np.random.default_rng(0)
    >>> X = np.concatenate([rng.uniform(0, 10, (500, 1)), rng.normal(7, 1, (40, 1))])
    >>> y = np.arange(540) >= 500
    >>> model = SpeciesModel().fit(X, y)
    >>> tuning = tune(model, X, y, features=["l", "lq"], beta_multipliers=[1, 2], random_state=0)
    >>> tuning.model.features
    'lq'
    """
    if rule not in RULES:
        raise ValueError(f"rule must be one of {', '.join(RULES)}, got {rule!r}")
    settings = [(one, float(beta)) for one in features for beta in beta_multipliers]
    if not settings:
        raise ValueError("features and beta_multipliers must name one setting at least")
    rows = read_rows(model, X, y, sample_weight)
    folds = make_folds(rows, kind, n_replicates, test_share, groups, random_state)
    space = rows.sample_space()
    models = [_with_settings(model, *setting) for setting in settings]
    whole = run_parallel(_train_whole, [(one, space) for one in models], n_jobs)
    measured = run_parallel(_test, [(one, rows, fold) for one in models for fold in folds], n_jobs)
    tested = np.array(measured).reshape(len(settings), len(folds), len(FIGURES))
    trained, figures = zip(*whole, strict=True)
    columns = {
        "features": np.array([one for one, _ in settings]),
        "beta_multiplier": np.array([beta for _, beta in settings]),
        "n_weights": np.array([len(one.features_) for one in trained]),
        "gain": np.array([one.gain_ for one in trained]),
        "auc": np.array([area for area, _ in figures]),
        "aicc": np.array([aicc for _, aicc in figures]),
    }
    least = columns["aicc"].min()
    columns["delta_aicc"] = columns["aicc"] - (least if np.isfinite(least) else 0.0)
    columns |= {name: tested[:, :, FIGURES.index(name)].mean(axis=1) for name in TESTED}
    columns["test_auc_std"] = tested[:, :, FIGURES.index("test_auc")].std(axis=1)
    best = _choose(columns, rule)
    return Tuning(make_table(**columns), rule, best, trained[best])


def _choose(columns, rule):
    if rule == "aicc":
        if not np.isfinite(columns["aicc"]).any():
            raise ValueError("no setting has an AICc, as each has too many weights for so few presences")
        return int(np.argmin(columns["aicc"]))
    if rule == "test_auc":
        return int(np.argmax(columns["test_auc"]))
    return int(np.lexsort((-columns["test_auc"], columns["omission_10_percentile"]))[0])


def _with_settings(model, features, beta_multiplier):
    """The trained model with other options, whose weights are not used."""
    one = clone(model).set_params(features=features, beta_multiplier=beta_multiplier)
    one._check_options()
    one.classes_, one.covariates_, one.n_features_in_ = model.classes_, model.covariates_, model.n_features_in_
    if hasattr(model, "feature_names_in_"):
        one.feature_names_in_ = model.feature_names_in_
    return one


def _train_whole(model, space):
    one = train_on_space(model, space)
    points, presences = (one.model_.score(V, clamp=one.clamp) for V in (space.points, space.presences))
    log_raw = presences - np.log(one.model_.density_normalizer)
    figures = auc(presences, points, space.presence_weight, space.weight), _aicc(one, space.presence_weight @ log_raw)
    return one, figures


def _aicc(model, log_likelihood):
    """Corrected for few presences; inf where there are too many weights for the correction."""
    n, k = model.n_presences_, len(model.features_)
    return 2 * k - 2 * log_likelihood + 2 * k * (k + 1) / (n - k - 1) if n > k + 1 else np.inf


def _test(model, rows, fold):
    return train_fold(model, rows, fold)[1]
