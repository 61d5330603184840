"""Rare classes at the cost of the rows they touch.

A row that holds none of the features with a weight is like any other such row: with weights of the same mass and no
offsets they have the same probability. So a class is trained on the rows that its working set touches and on one more
row, without features, that stands for all the others: the same problem, not an approximation. What is outside the
working set is priced from the touched rows by the index of rows, and the certificate is that of the whole problem.

A class whose working set touches much of the data is handed on to the solver of the whole problem, with its weights.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from sl1max._core._solver import Columns, Problem, Solver

LARGEST_SHARE = 0.25  # of the rows: what touches more is solved as a whole
MAX_ROUNDS = 1000  # on one set of rows
LEAST_ROOM = 10  # violators that a working set takes in, if there are as many
FIRST_SHARE = 0.01  # of the rows, about: what the violators of the first round may touch; twice that in the next


class TouchedSolver:
    """A problem of one block, solved on the rows that its working set touches; the face of `_core.Solver`.

    Parameters
    ----------
    columns : Columns
        With an index of rows.
    emp_mean, beta : ndarray of shape (n_features,)
        beta is positive, or infinite for what is left out.
    rows, target : ndarray
        The examples that have a target, ascending, and what it is.
    mass : float
        That of every example.
    pooled, intercept : bool
        One Z, or one per example with a reference cell.
    tol : float
    whole : callable
        Makes the solver of the whole problem, given a warm start.
    """

    def __init__(
        self, columns: Columns, emp_mean, beta, rows, target, mass, *, pooled, intercept, tol, whole: Callable
    ):
        self._columns = columns
        self._emp_mean = emp_mean
        self._beta = beta
        self._labelled = rows
        self._target = target
        self._mass = mass
        self._pooled = pooled
        self._intercept = intercept
        self._whole = whole
        self._work = np.empty(0, np.int64)
        self._touched = rows
        self._solver = None
        self._is_whole = False
        self._gradient = self._flat_flow() * columns.total[:-1] - emp_mean
        self.tol = tol
        self.n_iter = 0
        self.dual_gap = np.inf

    def _flat_flow(self):
        """Probability mass of every row while all weights are zero."""
        if self._pooled:
            return 1 / self._columns.n_rows
        return self._mass * (self._target.sum() * self._mass if self._intercept else 0.5)

    # The face of a solver

    objective = property(lambda self: self._inner.objective)
    objective_zero = property(lambda self: self._inner.objective_zero)
    log_z = property(lambda self: self._inner.log_z)
    counters = property(lambda self: self._inner.counters)

    @property
    def _inner(self) -> Solver:
        if self._solver is None:
            self._take_rows()
        return self._solver

    def run(self, n, stop=None) -> str:
        """Go on for at most n rounds; returns "converged", "running", "stalled" or "interrupted"."""
        for _ in range(n):
            if not self._is_whole:
                self._choose_work()
            if self._is_whole:
                return self._run_whole(n, stop)
            if self._solver.run(MAX_ROUNDS, stop) == "interrupted":
                return "interrupted"
            self.n_iter += 1
            self._price()
            if self.dual_gap <= self.tol * abs(self.objective_zero):
                return "converged"
        return "running"

    def coefficients(self):
        """Nonzero weights as (blocks, cols, values)."""
        blocks, cols, values = self._inner.coefficients()
        return blocks, cols if self._is_whole else self._work[cols].astype(np.int32), values

    def intercept(self):
        return self._inner.intercept()

    def expectations(self):
        """Brings Z up to the weights."""
        return self._inner.expectations()

    # Rounds

    def _run_whole(self, n, stop):
        before = self._solver.n_iter
        status = self._solver.run(n, stop)
        self.n_iter += self._solver.n_iter - before
        self.dual_gap = self._solver.dual_gap
        return status

    def _violations(self):
        """By how much each price exceeds its penalty."""
        return np.maximum(np.abs(self._gradient) - self._beta, 0)

    def _choose_work(self):
        """The support and the worst violators; and the rows they touch, or the whole problem if these are too many."""
        weighted = self._work[:0] if self._solver is None else np.unique(self.coefficients()[1])
        excess = self._violations() / np.where(self._columns.rms[:-1] > 0, self._columns.rms[:-1], 1)
        excess[weighted] = 0
        violators = np.flatnonzero(excess)
        violators = violators[np.argsort(-excess[violators], kind="stable")]
        # Rare features first: often they leave nothing for the frequent ones to explain.
        n_touched = np.cumsum(self._columns.sizes[violators])
        room = FIRST_SHARE * self._columns.n_rows * 2**self.n_iter
        violators = violators[: max(np.searchsorted(n_touched, room), LEAST_ROOM)]
        work = np.union1d(weighted, violators).astype(np.int64)
        start = None if self._solver is None else (*self.coefficients(), self.intercept())
        touched = self._columns.touched_rows(work, self._labelled)
        gains_nothing = self._solver is not None and np.isin(work, self._work).all()
        if gains_nothing or len(touched) > LARGEST_SHARE * self._columns.n_rows:
            self._solver = self._whole(start)
            self._is_whole = True
        else:
            self._work, self._touched = work, touched
            self._take_rows(start)

    def _take_rows(self, start=None):
        """A solver of the rows that the working set touches, at the given weights."""
        columns, touched = self._columns, self._touched
        n_rest = columns.n_rows - len(touched)
        mass = np.append(np.full(len(touched), self._mass), n_rest * self._mass)
        target = np.zeros((1, len(touched) + 1))
        target[0, np.searchsorted(touched, self._labelled)] = self._target
        problem = Problem(
            columns.restricted(self._work, touched),
            self._emp_mean[None, self._work],
            self._beta[None, self._work],
            target,
            mass,
            pooled=self._pooled,
            reference=not self._pooled,
            intercept=self._intercept,
        )
        if start is not None:
            start = start[0], np.searchsorted(self._work, start[1]).astype(np.int32), *start[2:]
        self._solver = Solver(problem, tol=0.3 * self.tol, warm_start=start)

    def _price(self):
        """Prices of all features, and the gap of the whole problem."""
        flow = self._solver.certificate_flow()[0]
        n_rest = self._columns.n_rows - len(self._touched)
        common = flow[-1] / n_rest
        self._gradient = self._columns.price(self._touched, flow[:-1] - common, common) - self._emp_mean
        with np.errstate(divide="ignore", invalid="ignore"):
            share = np.where(self._violations() > 0, 1 - self._beta / np.abs(self._gradient), 0.0)
        self.dual_gap = self._solver.dual_gap_at(share.max(initial=0.0))
