"""Models along a path of decreasing betas."""

from __future__ import annotations

import numbers
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from sl1max._data.inputs import LEAST_L1_RATIO, check_options
from sl1max._execution.control import Deadline
from sl1max._models.reduction import Reduction
from sl1max._utils import html
from sl1max._utils.progress import FitProgress
from sl1max._utils.typing import Algorithm, BetaRule, Distribution, LabelMode, Matrix, MultilabelWeighting
from sl1max.model._display import gap_share
from sl1max.model._model import Model
from sl1max.training._fit import prepare, train, warn_constant
from sl1max.training._relax import check_relaxation, relax_fit

DATA_OPTIONS = (
    "distribution", "label_mode", "beta_rule", "l1_ratio", "l2", "beta_lower", "beta_upper", "min_weight", "max_weight",
    "positive", "fit_intercept", "solver", "sample_weight", "offset", "multilabel_weighting",
)  # fmt: skip
CHECKED = (
    "distribution",
    "label_mode",
    "beta_rule",
    "solver",
    "multilabel_weighting",
    "tol",
    "max_iter",
    "max_time",
    "n_jobs",
    "callback",
)
N_BETAS = 30
LEAST_SHARE = 1e-3  # the last beta of a path that was not given, as a share of the first


@dataclass(frozen=True, eq=False)
class PathResult:
    """Models of one training set at descending betas.

    Attributes
    ----------
    betas : ndarray of shape (n_betas,)
    models : list of Model
    """

    betas: np.ndarray
    models: list[Model]

    def __len__(self) -> int:
        return len(self.models)

    def __repr__(self) -> str:
        n_weights = self.n_nonzero
        return (
            f"<sl1max.PathResult: {len(self)} models, beta from {self.betas[0]:.4g} to {self.betas[-1]:.4g}, "
            f"{n_weights[0]} to {n_weights[-1]} weights>"
        )

    def _repr_html_(self) -> str:
        gaps = [gap_share(model).max() for model in self.models]
        rows = zip(self.betas.tolist(), self.n_nonzero.tolist(), gaps, strict=True)
        return html.table(["beta", "nonzero weights", "relative duality gap"], rows)

    @property
    def objective(self) -> np.ndarray:
        """Objectives, (n_betas,) or (n_betas, n_classes)."""
        return np.array([model.objective for model in self.models])

    @property
    def gaps(self) -> np.ndarray:
        """Duality gaps, shaped like the objectives."""
        return np.array([model.dual_gap for model in self.models])

    @property
    def n_nonzero(self) -> np.ndarray:
        """Number of nonzero weights of each model, (n_betas,)."""
        return np.array([model.weights.nnz for model in self.models])

    def coef(self, label: Any) -> np.ndarray:
        """Weights of one class along the path, a dense array (n_betas, n_features)."""
        (found,) = np.nonzero(self.models[0].classes == label)
        if not len(found):
            raise ValueError(f"label={label!r} is not a class of the models")
        return np.vstack([model.weights[found].toarray() for model in self.models])


def path(
    X: Matrix,
    y: Matrix,
    betas: int | ArrayLike | None = None,
    *,
    distribution: Distribution = "conditional",
    label_mode: LabelMode = "auto",
    beta_rule: BetaRule = "deviation",
    fit_intercept: bool = True,
    solver: Algorithm = "auto",
    tol: float = 1e-4,
    max_iter: int | None = None,
    max_time: float | None = None,
    sample_weight: ArrayLike | None = None,
    offset: ArrayLike | None = None,
    multilabel_weighting: MultilabelWeighting = "duplicate",
    warm_start: Model | None = None,
    l1_ratio: float = 1.0,
    l2: ArrayLike = 0.0,
    beta_lower: ArrayLike | None = None,
    beta_upper: ArrayLike | None = None,
    min_weight: ArrayLike | None = None,
    max_weight: ArrayLike | None = None,
    positive: bool = False,
    relax_factor: float | None = None,
    blend: float = 0.0,
    n_jobs: int | None = None,
    callback: Callable[[FitProgress], object] | None = None,
    verbose: int = 0,
) -> PathResult:
    """Train models at descending betas, each starting from the weights of the previous one.

    Parameters
    ----------
    X, y : training set, as in `sl1max.fit`
    betas : int or array, optional
        The betas, in any order; or their number, evenly spaced on a logarithmic scale from `zero_beta`, at which all
        weights are zero, to a thousandth of it. 30 by default. Values of C are ``betas=1 / np.asarray(Cs)`` with
        ``beta_rule="count"``. With l1_ratio they are strengths, of which beta has that
        share and l2 the rest; l2, beta_lower and beta_upper are multiplied by them.
    distribution, label_mode, beta_rule, fit_intercept, solver, tol, max_iter, sample_weight, offset :
        As in `sl1max.fit`.
    multilabel_weighting, n_jobs, callback, verbose :
        As in `sl1max.fit`.
    max_time : float, optional
        Seconds for all models together; the path ends early when they are over.
    warm_start : Model, optional
        Start of the first model.
    l1_ratio, l2, beta_lower, beta_upper, min_weight, max_weight, positive :
        As in `sl1max.fit`.
    relax_factor, blend : float, optional
        Relax each model with this penalty_factor and blend, see `sl1max.relax`. The path itself goes on from the models
        that are not relaxed.

    Returns
    -------
    PathResult

    Examples
    --------
    >>> import numpy as np
    >>> import sl1max
    >>> rng = np.random.default_rng(0)
    >>> X = rng.integers(0, 2, (100, 8))
    >>> y = X[:, 0] + X[:, 1]
    >>> result = sl1max.path(X, y, betas=5)
    >>> int(result.n_nonzero[0]), bool(result.n_nonzero[-1] > 0)
    (0, True)
    """
    check_relaxation(relax_factor, blend)
    check_options(
        distribution=distribution, label_mode=label_mode, beta_rule=beta_rule, solver=solver,
        multilabel_weighting=multilabel_weighting, tol=tol, max_iter=max_iter, max_time=max_time, n_jobs=n_jobs,
        callback=callback,
    )  # fmt: skip
    deadline = Deadline(max_time)
    reduction = prepare(
        X, y, distribution=distribution, label_mode=label_mode, beta=1.0, beta_rule=beta_rule, of_path=True,
        l1_ratio=l1_ratio, l2=l2, beta_lower=beta_lower, beta_upper=beta_upper, min_weight=min_weight,
        max_weight=max_weight, positive=positive,
        fit_intercept=fit_intercept, solver=solver, sample_weight=sample_weight, offset=offset,
        multilabel_weighting=multilabel_weighting, warm_start=warm_start,
    )  # fmt: skip
    warn_constant(reduction.data)
    if betas is None or isinstance(betas, numbers.Integral):
        betas = spaced_betas(reduction, N_BETAS if betas is None else betas)
    models: list[Model] = []
    results: list[Model] = []
    betas = read_betas(betas)
    for beta in betas:
        if models and deadline.is_over:
            break
        start = models[-1] if models else warm_start
        at_beta = reduction.times(beta, start)
        of_fit = {
            "solver": solver, "tol": tol, "max_iter": max_iter, "deadline": deadline, "n_jobs": n_jobs,
            "callback": callback, "verbose": verbose,
        }  # fmt: skip
        model = train(at_beta, **of_fit)
        models.append(model)
        results.append(model if relax_factor is None else relax_fit(at_beta, model, relax_factor, blend, **of_fit))
    return PathResult(betas[: len(models)], results)


def split_options(options):
    """Split options of `fit` into those of `prepare` and those of `train`; the solver belongs to both."""
    of_data = {name: value for name, value in options.items() if name in DATA_OPTIONS}
    of_fit = {name: value for name, value in options.items() if name not in DATA_OPTIONS or name == "solver"}
    return of_data, of_fit


def zero_beta(
    X: Matrix,
    y: Matrix,
    *,
    distribution: Distribution = "conditional",
    label_mode: LabelMode = "auto",
    beta_rule: BetaRule = "deviation",
    fit_intercept: bool = True,
    solver: Algorithm = "auto",
    sample_weight: ArrayLike | None = None,
    offset: ArrayLike | None = None,
    multilabel_weighting: MultilabelWeighting = "duplicate",
    l1_ratio: float = 1.0,
    l2: ArrayLike = 0.0,
    beta_lower: ArrayLike | None = None,
    beta_upper: ArrayLike | None = None,
    min_weight: ArrayLike | None = None,
    max_weight: ArrayLike | None = None,
    positive: bool = False,
) -> float:
    """Compute the smallest beta at which all weights of the model are zero.

    Without weights the model's expectation of a feature differs from the empirical one by some amount;
    a weight stays at zero as long as its penalty is no less, or as no limit lets it help. With l1_ratio it is the least
    strength; it is computed with an l1_ratio of 0.001 at least, as glmnet does.

    Parameters
    ----------
    X, y, distribution, label_mode, beta_rule, fit_intercept, solver, sample_weight, offset, multilabel_weighting :
        As in `sl1max.fit`.
    l1_ratio, l2, beta_lower, beta_upper, min_weight, max_weight, positive :
        As in `sl1max.path`.

    Returns
    -------
    float

    Examples
    --------
    >>> import numpy as np
    >>> import sl1max
    >>> X, y = np.array([[1, 0], [1, 1], [0, 1], [0, 0]]), [1, 1, 1, 0]
    >>> beta = sl1max.zero_beta(X, y)
    >>> [sl1max.fit(X, y, beta=share * beta).weights.nnz > 0 for share in (1.01, 0.9)]
    [False, True]
    """
    check_options(
        distribution=distribution,
        label_mode=label_mode,
        beta_rule=beta_rule,
        solver=solver,
        multilabel_weighting=multilabel_weighting,
    )
    reduction = prepare(
        X, y, distribution=distribution, label_mode=label_mode, beta=1.0, beta_rule=beta_rule, of_path=True,
        l1_ratio=l1_ratio, l2=l2, beta_lower=beta_lower, beta_upper=beta_upper, min_weight=min_weight,
        max_weight=max_weight, positive=positive, fit_intercept=fit_intercept, solver=solver,
        sample_weight=sample_weight, offset=offset, multilabel_weighting=multilabel_weighting,
    )  # fmt: skip
    return largest_beta(reduction)


def largest_beta(reduction: Reduction) -> float:
    """`zero_beta` of a training set with a strength of 1."""
    strengths = reduction.penalties.strengths
    if strengths.l1_ratio < LEAST_L1_RATIO:
        strengths = replace(strengths, beta=np.full((), LEAST_L1_RATIO))
        reduction = replace(reduction, penalties=reduction.penalties.with_strengths(strengths))
    return max((reduction.zero_beta(plan) for plan in reduction.plans("newton")), default=0.0)


def spaced_betas(reduction: Reduction, n_betas: int) -> np.ndarray:
    """Space n_betas betas on a logarithmic scale from `zero_beta` downward; for a training set with beta = 1."""
    if n_betas < 1:
        raise ValueError(f"betas={n_betas!r} must be a positive number of them, or an array")
    first = largest_beta(reduction) or 1.0  # 0: no feature is informative, any beta gives zero weights
    return first * np.geomspace(1, LEAST_SHARE, n_betas)


def read_betas(betas: Any) -> np.ndarray:
    """Convert betas to a descending array without duplicates."""
    try:
        betas = np.unique(np.asarray(betas, dtype=np.float64).ravel())[::-1]
    except (TypeError, ValueError, OverflowError):
        raise ValueError("betas must be an integer or an array of numbers") from None
    if not len(betas) or not (betas >= 0).all():
        raise ValueError("betas must be an integer or an array of numbers >= 0, at least one")
    return betas
