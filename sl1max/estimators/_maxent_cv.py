"""Choice of beta, and of the model, by cross-validation."""

from __future__ import annotations

import itertools
import numbers
import threading
import time
import warnings
from collections.abc import Callable, Sequence
from typing import Any, Literal, Self, TypeAlias, get_args

import numpy as np
from numpy.typing import ArrayLike
from scipy import sparse, stats
from sklearn import get_config
from sklearn.base import clone
from sklearn.metrics import check_scoring
from sklearn.model_selection import check_cv
from sklearn.utils.metadata_routing import MetadataRouter, MethodMapping, process_routing

from sl1max._data.inputs import Features, check_options, read_features
from sl1max._execution.control import Deadline
from sl1max._utils.progress import print_line
from sl1max._utils.threads import count_threads
from sl1max._utils.typing import Algorithm, BetaRule, Distribution, LabelMode, Matrix, MultilabelWeighting
from sl1max.estimators._maxent import MaxentClassifier, MaxentPredictor, weigh_classes
from sl1max.estimators._parallel import run_parallel
from sl1max.training._fit import prepare
from sl1max.training._path import CHECKED, read_betas, spaced_betas, split_options
from sl1max.training._relax import check_relaxation

SHARED = (
    "beta_rule", "l2", "beta_lower", "beta_upper", "min_weight", "max_weight", "positive", "fit_intercept", "solver",
    "tol", "max_iter", "multilabel_weighting", "class_weight",
)  # fmt: skip
Selection: TypeAlias = Literal["best", "one_standard_error"]
SELECTIONS = get_args(Selection)
SEARCH_SHARE = 0.8  # of max_time: for cross-validation; the rest is for training on all examples

LEAST_TIME = 1e-3  # seconds: less than any fit, so that each trains one model and ends


class MaxentClassifierCV(MaxentPredictor):
    """Maximum-entropy classifier with beta, and optionally the model, chosen by cross-validation.

    In each fold, models are trained at decreasing betas, each starting from the weights of the previous one. The beta
    with the best mean score, the largest if several are equal, is used for training on all examples.

    Parameters
    ----------
    betas : int or array
        The betas, or their number: they are then evenly spaced on a logarithmic scale from the smallest beta at which
        all weights are zero to a thousandth of it.
    distribution : str or list of str
        As in `MaxentClassifier`, or a list to choose from.
    label_mode : str or list of str
        As in `MaxentClassifier`, or a list to choose from.
    l1_ratio : float or list of float
        Elastic net: the L1 share of the strengths ``betas``; of several, cross-validation chooses.
    l2, beta_lower, beta_upper : float or array
        As in `MaxentClassifier`, times the beta that is tried.
    beta_rule, min_weight, max_weight, positive, fit_intercept, solver, tol, max_iter, multilabel_weighting, \
class_weight :
        As in `MaxentClassifier`.
    relax_factor, blend : float, optional
        Relax each model before it is scored, with this penalty_factor and blend of `sl1max.relax`.
    scoring : str or callable, optional
        Name of a scorer of scikit-learn, or ``scorer(estimator, X, y)``; larger is better. The default is the accuracy.
        Sample weights are passed to the score, except if it is a callable.
    selection : {"best", "one_standard_error"}
        "best": the beta of the best mean score. "one_standard_error": the largest beta, for the same model, whose mean
        score is at most one standard error below the best one: fewer weights without a significant loss.
    max_time : float, optional
        Limit on the time of `fit` in seconds: four fifths for cross-validation, in equal parts for each fold and model,
        the rest for training on all examples. Betas that are not reached in a fold have the score NaN and are not
        chosen.
    cv : int, splitter or iterable, optional
        Folds: by default five, stratified if y is a vector of labels.
    n_jobs : int, optional
        Number of threads, over folds and models and for predictions; the result does not depend on it.
    verbose : int
        1: a line on stderr for each fold.

    Attributes
    ----------
    best_params_ : dict
        The chosen ``"beta"``, ``"distribution"`` and ``"label_mode"``; and ``"l1_ratio"``, unless that is 1.
    beta_ : float
        The chosen beta.
    best_score_ : float
        Its mean score.
    best_index_ : int
        Its index in ``cv_results_``.
    standard_error_ : float
        Standard error of the best mean score over the folds.
    cv_results_ : dict of arrays
        A column for each key, a row for each combination, as in scikit-learn's GridSearchCV: ``"params"``,
        ``"param_beta"``, ``"param_distribution"``, ``"param_label_mode"``, ``"split0_test_score"`` and so on,
        ``"mean_test_score"``, ``"std_test_score"``, ``"rank_test_score"``, ``"mean_fit_time"``,
        ``"mean_n_nonzero"``.
    n_splits_ : int
        Number of folds.
    model_, classes_, coef_, sparse_coef_, intercept_, n_iter_, dual_gap_, objective_ :
        Those of the chosen model trained on all examples, as in `MaxentClassifier`.
    n_features_in_, feature_names_in_ :
        As in `MaxentClassifier`.

    Warns
    -----
    UserWarning
        The best mean score is that of the smallest beta, or of the largest given one: extend the grid.

    See Also
    --------
    sl1max.plot.plot_cv : The scores against beta.

    Examples
    --------
    >>> import numpy as np
    >>> from sl1max import MaxentClassifierCV
    >>> rng = np.random.default_rng(0)
    >>> X = rng.integers(0, 2, (200, 10))
    >>> y = np.where(rng.random(200) < 0.1, 0, X[:, 0] + X[:, 1])
    >>> search = MaxentClassifierCV(betas=5, cv=3, scoring="neg_log_loss").fit(X, y)
    >>> bool(search.beta_ == search.cv_results_["param_beta"][search.best_index_])
    True
    """

    def __init__(
        self,
        *,
        betas: int | ArrayLike = 10,
        distribution: Distribution | Sequence[Distribution] = "conditional",
        label_mode: LabelMode | Sequence[LabelMode] = "auto",
        beta_rule: BetaRule = "deviation",
        l1_ratio: float | Sequence[float] = 1.0,
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
        multilabel_weighting: MultilabelWeighting = "duplicate",
        class_weight: Any = None,
        relax_factor: float | None = None,
        blend: float = 0.0,
        scoring: str | Callable[..., float] | None = None,
        selection: Selection = "best",
        cv: Any = None,
        n_jobs: int | None = None,
        verbose: int = 0,
    ) -> None:
        self.betas = betas
        self.distribution = distribution
        self.label_mode = label_mode
        self.beta_rule = beta_rule
        self.l1_ratio = l1_ratio
        self.l2 = l2
        self.beta_lower = beta_lower
        self.beta_upper = beta_upper
        self.min_weight = min_weight
        self.max_weight = max_weight
        self.positive = positive
        self.fit_intercept = fit_intercept
        self.solver = solver
        self.tol = tol
        self.max_iter = max_iter
        self.max_time = max_time
        self.multilabel_weighting = multilabel_weighting
        self.class_weight = class_weight
        self.relax_factor = relax_factor
        self.blend = blend
        self.scoring = scoring
        self.selection = selection
        self.cv = cv
        self.n_jobs = n_jobs
        self.verbose = verbose

    def fit(self, X: Matrix, y: Matrix, sample_weight: ArrayLike | None = None, **params: Any) -> Self:
        """Choose beta and train with it.

        Parameters
        ----------
        X : array, sparse matrix or frame of shape (n_samples, n_features)
        y : array of shape (n_samples,) or array or sparse matrix of shape (n_samples, n_classes)
            Labels, or an indicator of the classes of each example.
        sample_weight : array of shape (n_samples,), optional
            Weight 2 equals two copies of the example.
        **params :
            ``groups`` for the splitter, or what metadata routing passes to splitter and scorer.

        Returns
        -------
        MaxentClassifierCV
            Itself.
        """
        if self.selection not in SELECTIONS:
            raise ValueError(
                f"selection={self.selection!r} is unknown: it must be one of {', '.join(map(repr, SELECTIONS))}"
            )
        check_options(max_time=self.max_time)
        check_relaxation(self.relax_factor, self.blend)
        deadline = Deadline(self.max_time)
        X, y = self._read_training_set(X, y, sample_weight)
        X = X.tocsr() if sparse.issparse(X) else X
        split_params, score_params = self._route(sample_weight, params)
        folds = list(check_cv(self.cv, y, classifier=True).split(X, y, **split_params))
        scorer = check_scoring(MaxentClassifier(), scoring=self.scoring)
        weight = None if sample_weight is None else np.asarray(sample_weight)
        models = [
            MaxentClassifier(
                distribution=distribution, label_mode=label_mode, l1_ratio=l1_ratio, warm_start=True, **self._shared()
            )
            for distribution, label_mode, l1_ratio in itertools.product(
                as_list(self.distribution), as_list(self.label_mode), np.atleast_1d(self.l1_ratio).tolist()
            )
        ]
        features = read_features(X)
        grids = [self._grid(model, features, y, sample_weight) for model in models]
        report = report_fold if self.verbose else None
        n_at_once = min(count_threads(self.n_jobs), len(models) * len(folds))
        share = SEARCH_SHARE * max(deadline.remaining, LEAST_TIME) * n_at_once / (len(models) * len(folds))
        for model in models:
            model.max_time = share if deadline.is_limited else None
        shared = [SharedFeatures(X, train, len(models)) for train, _ in folds]
        relaxation = {"relax_factor": self.relax_factor, "blend": self.blend}
        arguments = [
            (model, "beta", betas, X, y, weight, fold, scorer, score_params, report, features_of_fold, relaxation)
            for model, betas in zip(models, grids, strict=True)
            for fold, features_of_fold in zip(folds, shared, strict=True)
        ]
        found = run_parallel(score_path, arguments, self.n_jobs)
        self._set_results(models, grids, found, len(folds))
        rest = max(deadline.remaining, LEAST_TIME) if deadline.is_limited else None
        best = MaxentClassifier(n_jobs=self.n_jobs, max_time=rest, **self.best_params_, **self._shared())
        (best,) = best._fit_betas([best.beta], features, y, sample_weight, **relaxation)
        self.model_ = self._name(best.model_)
        return self

    def _shared(self):
        return {name: getattr(self, name) for name in SHARED}

    def _grid(self, model, X, y, sample_weight):
        """Descending betas for one model."""
        if not isinstance(self.betas, numbers.Integral):
            return read_betas(self.betas)
        of_data, _ = split_options(model.get_params())
        check_options(**{name: getattr(model, name) for name in CHECKED})
        weight = weigh_classes(self.class_weight, y, sample_weight)
        return spaced_betas(prepare(X, y, beta=1.0, of_path=True, sample_weight=weight, **of_data), self.betas)

    def _set_results(self, models, grids, found, n_splits):
        """Make the table of results from those of `score_path`, and find the best row."""
        tables = [np.stack(found[k : k + n_splits], axis=2) for k in range(0, len(found), n_splits)]
        scores, times, n_nonzero = np.concatenate(tables, axis=1)
        params = [
            {"beta": float(beta), "distribution": model.distribution, "label_mode": model.label_mode}
            | ({} if np.ndim(self.l1_ratio) == 0 and self.l1_ratio == 1 else {"l1_ratio": model.l1_ratio})
            for model, betas in zip(models, grids, strict=True)
            for beta in betas
        ]
        mean = scores.mean(axis=1)
        comparable = np.where(np.isnan(mean), -np.inf, mean)
        self.cv_results_ = {
            "params": params,
            **{f"param_{name}": np.array([row[name] for row in params]) for name in params[0]},
            **{f"split{k}_test_score": scores[:, k] for k in range(n_splits)},
            "mean_test_score": mean,
            "std_test_score": scores.std(axis=1),
            "rank_test_score": stats.rankdata(-comparable, method="min").astype(np.int32),
            "mean_fit_time": times.mean(axis=1),
            "mean_n_nonzero": n_nonzero.mean(axis=1),
        }
        best = int(comparable.argmax())
        self.standard_error_ = float(scores[best].std(ddof=1) / np.sqrt(n_splits)) if n_splits > 1 else 0.0
        ends = np.cumsum([len(betas) for betas in grids])
        k = int(np.searchsorted(ends, best, side="right"))
        grid = slice(int(ends[k] - len(grids[k])), int(ends[k]))  # the candidates of the best model
        if self.selection == "one_standard_error":
            enough = comparable[grid] >= comparable[best] - self.standard_error_
            best = grid.start + int(enough.argmax())  # betas descend
        else:
            self._warn_at_the_end(best, grid)
        self.best_index_ = best
        self.best_params_ = params[self.best_index_]
        self.beta_ = self.best_params_["beta"]
        self.best_score_ = float(mean[self.best_index_])
        self.n_splits_ = n_splits

    def _warn_at_the_end(self, best, grid):
        """Warn that a beta outside the grid may be better."""
        given = not isinstance(self.betas, numbers.Integral)  # else all weights are zero at the largest one
        beta = self.cv_results_["param_beta"][best]
        if grid.stop - grid.start > 1 and (best == grid.stop - 1 or (best == grid.start and given)):
            end, other = ("smallest", "smaller") if best == grid.stop - 1 else ("largest", "larger")
            warnings.warn(
                f"The best beta, {beta:.4g}, is the {end} of those tried: a {other} one may be better. Give `betas` "
                "that go further",
                UserWarning,
                stacklevel=4,
            )

    def score(self, X: Matrix, y: Matrix, sample_weight: ArrayLike | None = None) -> float:
        """Compute the score ``scoring`` on other examples.

        Parameters
        ----------
        X : array, sparse matrix or frame of shape (n_samples, n_features)
        y : as in `fit`
        sample_weight : array of shape (n_samples,), optional

        Returns
        -------
        float
        """
        if self.scoring is None:
            return super().score(X, y, sample_weight)
        weight = {} if sample_weight is None else {"sample_weight": sample_weight}
        return check_scoring(self, scoring=self.scoring)(self, X, y, **weight)

    # Metadata

    def get_metadata_routing(self) -> MetadataRouter:
        """Metadata requested by splitter and scorer; see scikit-learn's user guide on metadata routing."""
        mapping = MethodMapping().add(caller="fit", callee="score")
        return (
            MetadataRouter(owner=self)
            .add_self_request(self)
            .add(splitter=check_cv(self.cv), method_mapping=MethodMapping().add(caller="fit", callee="split"))
            .add(scorer=check_scoring(MaxentClassifier(), scoring=self.scoring), method_mapping=mapping)
        )

    def _route(self, sample_weight, params):
        """Keyword arguments of the splitter and of the scorer."""
        weight = {} if sample_weight is None else {"sample_weight": sample_weight}
        if get_config()["enable_metadata_routing"]:
            routed = process_routing(self, "fit", **weight, **params)
            return routed.splitter.split, routed.scorer.score
        if unknown := params.keys() - {"groups"}:
            raise TypeError(f"fit takes {', '.join(sorted(unknown))} only with metadata routing enabled")
        return params, {} if callable(self.scoring) else weight


def as_list(value: Any) -> list:
    return [value] if isinstance(value, str) else list(value)


class SharedFeatures:
    """The training rows of one fold, converted once for all models and kept until the last has taken them.

    Parameters
    ----------
    X : ndarray or csr_array
    rows : ndarray of int
    n_models : int
    """

    def __init__(self, X: Any, rows: np.ndarray, n_models: int) -> None:
        self._X = X
        self._rows = rows
        self._n_left = n_models
        self._features: Features | None = None
        self._lock = threading.Lock()

    def take(self) -> Features:
        """The converted rows, for one of the models."""
        with self._lock:
            features = self._features or read_features(self._X[self._rows])
            self._n_left -= 1
            self._features = features if self._n_left > 0 else None
            return features


def score_path(
    model, name, values, X, y, weight, fold, scorer, score_params, report=None, shared=None, relaxation=None
):
    """Scores, fit times and numbers of weights at the values of a parameter in one fold, (3, n_values).

    ``report`` is called with the model and the table. ``shared`` holds the `SharedFeatures` of the fold.
    """
    train, test = fold
    model = clone(model)
    score_params = {key: np.asarray(value)[test] for key, value in score_params.items()}
    rows, start = [], time.perf_counter()
    weight = None if weight is None else weight[train]
    X_train = X[train] if shared is None else shared.take()
    for fitted in fit_values(model, name, values, X_train, y[train], weight, relaxation or {}):
        seconds = time.perf_counter() - start
        rows.append((scorer(fitted, X[test], y[test], **score_params), seconds, fitted.sparse_coef_.nnz))
        start = time.perf_counter()
    rows += [(np.nan,) * 3] * (len(values) - len(rows))
    table = np.transpose(rows)
    if report is not None:
        report(model, table)
    return table


def fit_values(model, name, values, X, y, weight, relaxation):
    """Fit a model at each value of a parameter; yields it after each. X and y have been validated."""
    if name == "beta":
        yield from model._fit_betas(values, X, y, weight, **relaxation)
        return
    for value in values:
        yield model.set_params(**{name: value}).fit(X, y, sample_weight=weight)


def report_fold(model, table):
    best = int(np.nanargmax(table[0]))
    print_line(
        f"{model.distribution}, {model.label_mode} classes: best score of the fold {table[0, best]:.4g}, "
        f"with {table[2, best]:.0f} weights"
    )
