"""Training of one class on merged rows.

Rows that are identical in the features with a nonzero weight have the same probability, if they have equal weights and
no offsets. A class is therefore trained on groups of rows that are identical in its working set, each group being one
weighted row. This is the same problem, not an approximation. A rare class has few groups: all rows without any of its
features are one group. Gradients of features outside the working set are computed on all rows, and the certificate is
that of the whole problem.

If the working set divides the rows into too many groups, the solver of the whole problem continues from the current
weights.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from sl1max._core._partition import Partition
from sl1max._core._solver import Columns, Problem, Solver

# Largest number of groups, as a share of the rows. Conditional classes of 45, 150, 299 and 777 of the 938,455 examples
# of SuperTags took 2.8, 3.9, 4.8 and 4.0 s on all rows from the start; 0.7, 2.1, 4.6 and 4.2 s with a limit of 0.3;
# 0.7, 2.2, 3.2 and 4.2 s with 0.6; and 0.9, 1.9, 3.3 and 3.8 s without a limit.
LARGEST_SHARE = 0.6
# Largest number of examples of a conditional class that starts with groups. Classes of 2,029, 3,025, 5,007, 10,287 and
# 47,002 examples took 6.8, 16.3, 15.7, 5.1 and 34 s on groups first, and 7.8, 14.1, 7.2, 4.0 and 26 s on all rows. With
# one normaliser both take about the same time.
MOST_EXAMPLES = 3000
MANY_GROUPS = 0.3  # of the rows
MAX_ROUNDS = 1000  # rounds on one set of groups
LEAST_ROOM = 100  # minimum number of violators added to a working set, if there are as many
FIRST_SHARE = 0.01  # share of the rows that new violators may touch in the first round; then four times as many


class MergedSolver:
    """Solver of one block on groups of rows, with the interface of `_core.Solver`.

    Parameters
    ----------
    columns : Columns
        Columns with an index of rows.
    emp_mean, beta : ndarray of shape (n_features,)
        beta is positive, or infinite for what is left out.
    rows, target : ndarray
        Examples with individual targets, and the targets.
    common_target, mass : float
        Target of all other examples; the mass of every example.
    pooled, intercept : bool
        One Z, or one per example with a reference class.
    tol : float
    whole : callable
        Makes the solver of the whole problem, given a warm start.
    """

    def __init__(
        self, columns: Columns, emp_mean, beta, rows, target, common_target, mass, *, pooled, intercept, tol,
        whole: Callable,
    ):  # fmt: skip
        self._columns = columns
        self._emp_mean = emp_mean
        self._beta = beta
        self._rows = rows
        self._target = target
        self._common_target = common_target
        self._mass = mass
        self._pooled = pooled
        self._intercept = intercept
        self._whole = whole
        kinds = np.unique(target, return_inverse=True)[1].astype(np.int32)
        self._groups = Partition(columns, rows, kinds)
        self._refined = np.zeros(columns.n_cols, bool)
        self._work = np.empty(0, np.int64)
        self._solver = None
        self._is_whole = False
        self._gradient = self._flat_flow() * columns.total[:-1] - emp_mean
        self.tol = tol
        self.n_iter = 0
        self.dual_gap = np.inf

    def _flat_flow(self):
        """Probability mass of every row with zero weights."""
        n_rows = self._columns.n_rows
        if self._pooled:
            return 1 / n_rows
        if not self._intercept:
            return 0.5 * self._mass
        return (self._target.sum() + self._common_target * (n_rows - len(self._rows))) * self._mass / n_rows

    # Interface of a solver

    objective = property(lambda self: self._inner.objective)
    objective_zero = property(lambda self: self._inner.objective_zero)
    log_z = property(lambda self: self._inner.log_z)
    counters = property(lambda self: self._inner.counters)

    @property
    def _inner(self) -> Solver:
        if self._solver is None:
            self._merge()
        return self._solver

    def run(self, n, stop=None) -> str:
        """Run at most n rounds; return "converged", "running", "stalled" or "interrupted"."""
        for _ in range(n):
            if not self._is_whole:
                self._choose_work()
            if self._is_whole:
                return self._run_whole(n, stop)
            if self._solver.run(MAX_ROUNDS, stop) == "interrupted":
                return "interrupted"
            self.n_iter += 1
            self._price()
            target = self.tol * abs(self.objective_zero)
            if self.dual_gap <= target or (self._are_many() and self._promises(target) and self._tighten(stop)):
                return "converged"
        return "running"

    def coefficients(self):
        """Nonzero weights as (blocks, cols, values)."""
        blocks, cols, values = self._inner.coefficients()
        return blocks, cols if self._is_whole else self._work[cols].astype(np.int32), values

    def intercept(self):
        return self._inner.intercept()

    def expectations(self):
        """Update Z to the weights."""
        return self._inner.expectations()

    # Rounds

    def _run_whole(self, n, stop):
        before = self._solver.n_iter
        status = self._solver.run(n, stop)
        self.n_iter += self._solver.n_iter - before
        self.dual_gap = self._solver.dual_gap
        return status

    def _violations(self):
        """Excess of the absolute gradient of each feature over its penalty."""
        return np.maximum(np.abs(self._gradient) - self._beta, 0)

    def _violators(self, weighted):
        """Select the largest violators without a weight, up to the limit."""
        excess = self._violations()
        excess[weighted] = 0
        violators = np.flatnonzero(excess)
        urgency = excess[violators] / self._columns.rms[violators]
        violators = violators[np.argsort(-urgency, kind="stable")[: max(2 * len(weighted), LEAST_ROOM)]]
        # Rare features first: frequent ones often need no weight after them.
        n_touched = np.cumsum(self._columns.sizes[violators])
        room = FIRST_SHARE * self._columns.n_rows * 4.0 ** min(self.n_iter, 20)
        return violators[: max(np.searchsorted(n_touched, room), 10)]

    def _choose_work(self):
        """Choose the working set and group the rows, or switch to the whole problem."""
        weighted = self._work[:0] if self._solver is None else np.unique(self.coefficients()[1])
        work = np.union1d(weighted, self._violators(weighted)).astype(np.int64)
        start = None if self._solver is None else (*self.coefficients(), self.intercept())
        gains_nothing = self._solver is not None and self._tol_reached() and np.isin(work, self._work).all()
        new = work[~self._refined[work]]
        self._refined[new] = True
        if not gains_nothing and self._groups.refine(new, int(LARGEST_SHARE * self._columns.n_rows)):
            self._work = work
            self._merge(start)
        else:
            self._solver = self._whole(start)
            self._is_whole = True
            self._groups = None

    def _tol_reached(self):
        return self._solver.tol <= 0.3 * self.tol

    def _merge(self, start=None):
        """Make the solver of the groups, at the given weights."""
        sizes = self._groups.sizes()
        share = sizes if self._pooled else 1
        target = np.full(len(sizes), self._common_target) * share
        held = self._groups.of_rows(self._rows)
        target[held] = self._target * (sizes[held] if self._pooled else 1)
        problem = Problem(
            self._groups.restricted(self._work),
            self._emp_mean[None, self._work],
            self._beta[None, self._work],
            target[None],
            sizes * self._mass,
            pooled=self._pooled,
            reference=not self._pooled,
            intercept=self._intercept,
        )
        if start is not None:
            start = start[0], np.searchsorted(self._work, start[1]).astype(np.int32), *start[2:]
        self._solver = Solver(problem, tol=self._inner_tol(), warm_start=start, tight=False)

    def _inner_tol(self):
        """Tolerance of the next working set: a part of the remaining gap."""
        if self._solver is None:
            return 0.03
        return max(0.3 * self.tol, min(0.1 * self.dual_gap / abs(self.objective_zero), 0.03))

    def _price(self):
        """Compute gradients of all features, and the gap of the whole problem."""
        flow = self._solver.certificate_flow()[0]
        self._gradient = self._groups.price(flow) - self._emp_mean
        with np.errstate(divide="ignore", invalid="ignore"):
            share = np.where(self._violations() > 0, 1 - self._beta / np.abs(self._gradient), 0.0)
        self.dual_gap = self._solver.dual_gap_at(share.max(initial=0.0))

    def _are_many(self):
        """Whether another round on the groups takes longer than a certificate on all rows."""
        return self._groups.n_groups > MANY_GROUPS * self._columns.n_rows

    def _promises(self, target):
        """Whether the estimated remaining decrease is below the target, so that a tighter gap may meet it."""
        _, cols, lam = self.coefficients()
        excess = self._violations()
        excess[cols] = np.abs(self._gradient[cols] + np.sign(lam) * self._beta[cols])
        violators = np.flatnonzero(excess)
        # For values of zero and one a coordinate's curvature is at most its mean.
        curvature = np.abs(self._gradient + self._emp_mean)[violators] * self._columns.extent[violators]
        return np.sum(excess[violators] ** 2 / (2 * np.maximum(curvature, np.finfo(float).tiny))) <= 0.1 * target

    def _tighten(self, stop):
        """Whether the solver of the whole problem, with its dual correction, proves the gap."""
        solver = self._whole((*self.coefficients(), self.intercept()))
        if solver.run(0, stop) != "converged":
            return False
        self._solver, self._is_whole, self.dual_gap = solver, True, solver.dual_gap
        return True
