"""Models on hinges and other features of covariates that need no columns: additive models of any of the five kinds.

The features are those of a `FeatureTable`, a function of one covariate each, or of two. Each problem of a model, see
`sl1max._models.reduction`, is solved on the columns of a working set; then the gradient of all features is computed
from sums over bins of equal values, and violators that are the worst of their neighbourhood join the working set.

The certificate covers every feature, as in `sl1max.training._density`: mixing the model's distribution with the
empirical one makes every violation smaller by the same factor, so that the worst violation says how much must be mixed
in, and the core says what the gap is then.
"""

from __future__ import annotations

import warnings
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from sl1max._data.binned import BinnedPoints, FeatureColumns
from sl1max._data.feature_table import LINEAR, FeatureTable, expand
from sl1max._utils.threads import count_threads, map_threads
from sl1max.exceptions import ConvergenceWarning
from sl1max.model._model import Model
from sl1max.training._density import ROUNDING, choose_violators, find_mixing
from sl1max.training._fit import prepare, warn_constant

INNER_ROUNDS = 5  # of the core, between two passes over all features
INNER_TOL = 0.1  # of the gap of all features: that of a working set is smaller
MAX_STALLED = 3  # passes without a new feature or a smaller gap after which training ends
MAX_ITER = 1000


@dataclass(frozen=True, eq=False)
class AdditiveFit:
    """A model of features that were chosen among many.

    Attributes
    ----------
    model : Model
        Its features are those of the table.
    table : FeatureTable
        The features with a weight in some class.
    n_features : int
        How many there were to choose from.
    """

    model: Model
    table: FeatureTable
    n_features: int


def fit_additive(
    X: np.ndarray,
    y: Any,
    features: str,
    categorical: tuple[int, ...] = (),
    *,
    distribution: str = "conditional",
    label_mode: str = "auto",
    beta: float = 0.5,
    beta_rule: str = "deviation",
    fit_intercept: bool = True,
    sample_weight: np.ndarray | None = None,
    tol: float = 1e-4,
    max_iter: int | None = None,
    n_jobs: int | None = None,
) -> AdditiveFit:
    """Train a model on the features of covariates, to a certified duality gap over all of them.

    Parameters
    ----------
    X : float array of shape (n_samples, n_covariates)
    y : array or sparse matrix
        Labels, or an indicator, as `sl1max.fit` takes them.
    features : str
        Letters out of "lqpht".
    categorical : tuple of int
        Covariates whose values are categories.
    distribution, label_mode, beta, beta_rule, fit_intercept, sample_weight, tol, max_iter, n_jobs :
        As those of `sl1max.fit`; beta is one number.

    Returns
    -------
    AdditiveFit

    Warns
    -----
    ConvergenceWarning
        The duality gap stayed above its target.
    """
    options = {
        "distribution": distribution,
        "label_mode": label_mode,
        "beta": beta,
        "beta_rule": beta_rule,
        "fit_intercept": fit_intercept,
        "sample_weight": sample_weight,
    }
    points = BinnedPoints(X)
    table = expand(points.points, points.points, features, categorical, points.values)
    if "l" not in features:
        table = table[table.kind != LINEAR]
    table = table[table.high > table.low]
    source = FeatureColumns(table, points)
    if not len(table):
        raise ValueError("X has no column with two values: there are no features")

    def reduce(which):
        columns = np.empty((len(which), len(X)))
        source.fill(which, columns)
        return prepare(columns.T, y, **options)

    whole = reduce(np.arange(1))
    if len(whole.data.mass) < len(X):
        raise ValueError("rows without weight must be left out")
    warn_constant(whole.data)
    max_iter = MAX_ITER if max_iter is None else max_iter
    plans = whole.plans("newton")
    results = map_threads(
        lambda plan: _Solve(source, reduce, plan, beta, beta_rule, tol, max_iter).run(), plans, count_threads(n_jobs)
    )
    used = np.unique(np.concatenate([np.empty(0, int), *(one.used for one in results)]))
    kept = used if len(used) else np.arange(1)  # a model has a feature at least
    final = reduce(kept)
    solutions = [one.solution(kept) for one in results]
    settings = {"beta": float(beta), "beta_rule": beta_rule, "solver": "auto", "tol": tol}
    model, statuses = final.join(solutions, settings)
    failed = [status for status in statuses if status not in ("converged", "imprecise")]
    if failed or "imprecise" in statuses:
        why = final.imprecision or (
            "max_iter was reached" if "running" in failed else "no further decrease is possible"
        )
        warnings.warn(
            f"training did not converge: {why}, at a duality gap of {np.max(model.dual_gap):.3g}",
            ConvergenceWarning,
            stacklevel=3,
        )
    return AdditiveFit(model, table[kept], len(table))


class _Solve:
    """One problem: a working set of features, and a solver for each state of it."""

    def __init__(self, source, reduce, plan, beta, beta_rule, tol, max_iter):
        self._source, self._reduce, self._plan = source, reduce, plan
        self._beta, self._rule, self._tol, self._max_iter = beta, beta_rule, tol, max_iter
        self._features = np.empty(0, int)
        self._found: Any = None  # the Solution of the last state

    @property
    def used(self):
        """The features with a weight."""
        return self._features[np.unique(np.concatenate([cols for _, cols, _ in self._found.rows]))]

    def solution(self, features):
        """The solution, with columns numbered as these features, which ascend."""
        rows = []
        for block, cols, values in self._found.rows:
            cols = np.searchsorted(features, self._features[cols]).astype(np.int32)
            order = np.argsort(cols)
            rows.append((block, cols[order], values[order]))
        return replace(self._found, rows=rows)

    def run(self):
        """Solve the problem; returns itself."""
        reduction = self._extend(np.arange(1))
        cells, base = reduction.cell_targets(self._plan)
        means = np.stack([self._source.means(block) for block in cells * base])
        penalties = self._penalties(reduction)
        gap, n_stalled = np.inf, 0
        while True:
            solver = reduction.make_solver(self._plan, "newton", INNER_TOL * self._tol, self._found, changes=True)
            n_done = 0 if self._found is None else self._found.n_iter
            status = solver.run(min(INNER_ROUNDS, self._max_iter - n_done))
            flow = solver.certificate_flow()
            expectations = np.stack([self._source.means(block) for block in flow])
            distance = np.abs(means - expectations) + ROUNDING * np.abs(flow).sum(axis=1)[:, None]
            before, gap = gap, solver.dual_gap_at(find_mixing(distance, penalties))
            self._found = reduction.solution(self._plan, solver, status, self._found)
            if gap <= self._tol * abs(solver.objective_zero):
                status = "converged"
                break
            new = self._choose(distance - penalties)
            n_stalled = n_stalled + 1 if not len(new) and status != "running" and gap >= before else 0
            if n_stalled == MAX_STALLED or self._found.n_iter >= self._max_iter:
                status = "stalled" if n_stalled == MAX_STALLED else "running"
                break
            if len(new):
                reduction = self._extend(new)
        self._found = replace(self._found, dual_gap=gap, status=status)
        return self

    def _extend(self, new):
        self._features = np.concatenate([self._features, new])
        return self._reduce(self._features)

    def _choose(self, violation):
        """Violators of every block."""
        member = np.zeros(violation.shape[1], bool)
        member[self._features] = True
        n_weights = 0 if self._found is None else sum(len(cols) for _, cols, _ in self._found.rows)
        found = [choose_violators(one, self._source.group, member, n_weights) for one in violation]
        return np.unique(np.concatenate(found))

    def _penalties(self, reduction):
        """beta of every feature, in every block of the problem: the rule of `Penalties`, without columns."""
        plan, moments = self._plan, reduction.moments
        within = reduction.distribution == "class-conditional"
        mass = [moments.block_mass(*block) if within else moments.mass for block in plan.blocks]
        penalties = np.stack([self._block(reduction, block, m) for block, m in zip(plan.blocks, mass, strict=True)])
        if plan.rival is not None:
            np.minimum(penalties, self._block(reduction, plan.rival, mass[0]), out=penalties)
        if reduction.separates:
            penalties /= moments.block_prior(*plan.blocks[0])
        return penalties

    def _block(self, reduction, block, mass):
        if self._rule == "count":
            return np.full(len(self._source.group), self._beta / mass)
        held = reduction.block_cells(block) / mass
        first, second = self._source.means(held), self._source.squares(held)
        least = 0.5 if mass < 2 else np.sqrt(1 / mass * (1 - 1 / mass))
        return self._beta * np.maximum(np.sqrt(np.maximum(second - first**2, 0.0)), least) / np.sqrt(mass)
