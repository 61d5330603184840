"""Control of a fit: limits, stop flag, and the loop that advances one solver."""

from __future__ import annotations

import contextlib
import time
from collections.abc import Callable

import numpy as np

from sl1max._utils.progress import FitProgress, Observer
from sl1max._utils.threads import call_later

DEFAULT_MAX_ITER = {"newton": 1000, "sequential": 1_000_000}
# Relative difference of values computed twice from the same weights; for dual gaps relative to their target.
FIGURES_RTOL = 1e-8
GAP_RTOL = 1e-3
STOPPED, TIME_IS_OVER = 1, 2  # values of the flag that stops a fit, beside 0
CHUNK = {"newton": 1, "sequential": 1000, "boosting": 100}  # iterations between two reports


class Deadline:
    """Time limit of a computation.

    Parameters
    ----------
    seconds : float or None
        From now on. None: no limit.
    """

    def __init__(self, seconds: float | None = None):
        self._end = np.inf if seconds is None else time.monotonic() + float(seconds)

    def __reduce__(self):
        # The monotonic clock of another process may have another origin, so the remaining time is sent.
        return Deadline, (self.remaining if self.is_limited else None,)

    @property
    def is_limited(self) -> bool:
        return bool(np.isfinite(self._end))

    @property
    def remaining(self) -> float:
        """Seconds that are left, 0 if none are."""
        return max(self._end - time.monotonic(), 0.0)

    @property
    def is_over(self) -> bool:
        return time.monotonic() >= self._end

    @contextlib.contextmanager
    def watch(self, flag):
        """In the block, set ``flag[0]`` to TIME_IS_OVER once the time is over, unless it is nonzero already."""
        if not self.is_limited:
            yield
            return

        def end():
            if not flag[0]:
                flag[0] = TIME_IS_OVER

        if self.is_over:
            end()
        with call_later(end, self.remaining):
            yield


class FitControl:
    """Limits and shared state of one fit.

    Attributes
    ----------
    algorithm, tol, max_iter :
        What every problem is solved with.
    deadline : Deadline
        Of all problems together.
    stop : ndarray of int32 of shape (1,)
        Shared by all threads of the fit: once it is nonzero every solver returns at once.
    interrupt : KeyboardInterrupt or None
        The interrupt that ended a solver.
    n_threads : int
        Threads that one problem may use.
    observer : Observer
    """

    def __init__(
        self, *, algorithm, tol, max_iter=None, deadline: Deadline | None = None, callback: Callable | None = None,
        verbose=0, advice="",
    ):  # fmt: skip
        self.algorithm = algorithm
        self.tol = tol
        self.max_iter = DEFAULT_MAX_ITER[algorithm] if max_iter is None else int(max_iter)
        self.deadline = Deadline() if deadline is None else deadline
        self.stop = np.zeros(1, np.int32)
        self.n_threads = 1
        self.interrupt: KeyboardInterrupt | None = None
        self.observer = Observer(callback, verbose, advice)

    @property
    def settings(self) -> dict:
        """The arguments of a control in another process, without observers."""
        return {
            "algorithm": self.algorithm, "tol": self.tol, "max_iter": self.max_iter, "deadline": self.deadline,
        }  # fmt: skip

    @property
    def time_is_over(self) -> bool:
        """Whether the fit was stopped since its time was over."""
        return bool(self.stop[0] == TIME_IS_OVER)

    def advance(self, solver, class_label, effort=1.0, checkpoint: Callable | None = None) -> str:
        """Run a solver until it ends, reaches a limit or is interrupted.

        Parameters
        ----------
        solver : object with ``run(n, stop)``, ``n_iter``, ``objective``, ``objective_zero`` and ``dual_gap``
        class_label : object
            The class whose problem it is.
        effort : float
            Expected time, for the display.
        checkpoint : callable, optional
            Called between iterations.

        Returns
        -------
        str
            The solver's status, "stopped" if the callback ended it, "interrupted" after Ctrl-C, or "time_limit".
        """
        chunked = self.observer.active or checkpoint is not None
        chunk = CHUNK[self.algorithm] if chunked else self.max_iter
        status = "running"
        try:
            while status == "running" and solver.n_iter < self.max_iter:
                status = solver.run(min(chunk, self.max_iter - solver.n_iter), self.stop)
                if chunked and status != "interrupted":
                    ended = status != "running" or solver.n_iter >= self.max_iter
                    if self._report(solver, class_label, status, ended, effort):
                        status = "stopped"
                    elif checkpoint is not None and not ended:
                        checkpoint()
        except KeyboardInterrupt as error:
            self.stop[0], self.interrupt = STOPPED, error
            status = "interrupted" if status == "running" else status
        return "time_limit" if status == "interrupted" and self.time_is_over else status

    def _report(self, solver, class_label, status, ended, effort):
        """Report the state of a solver; True if the callback ends a problem that is still running."""
        target = self.tol * abs(solver.objective_zero)
        n_nonzero = count_weights(solver)
        progress = FitProgress(class_label, solver.n_iter, solver.objective, solver.dual_gap, target, n_nonzero)
        return self.report(progress, status, ended, effort) and status == "running"

    def report(self, progress: FitProgress, status, ended, effort=1.0) -> bool:
        """Pass a report to the observer; an error in the callback stops all threads of the fit."""
        try:
            return self.observer.report(progress, status, ended, effort)
        except BaseException:
            self.stop[0] = STOPPED
            raise


def count_weights(solver) -> int:
    """Number of nonzero weights of a solver, those of boosting with their intercept."""
    found = solver.coefficients()
    return len(found[2]) if isinstance(found, tuple) else int(np.count_nonzero(found))


def solve_problem(problems, plan, control: FitControl, begun=None, note=None):
    """Solve one problem of a model.

    Parameters
    ----------
    problems : Reduction, or an object with the same methods
    plan : Plan
    control : FitControl
    begun : Solution, optional
        Start of the solver.
    note : callable, optional
        Called between iterations with a function that makes a `Solution` of the current weights.

    Returns
    -------
    Solution or None
        None if the fit was stopped before the problem was started.
    """
    if control.stop[0]:
        return None
    solver = problems.make_solver(plan, control.algorithm, control.tol, begun, n_threads=control.n_threads)
    checkpoint = None if note is None else lambda: note(lambda: problems.solution(plan, solver, "running", begun))
    status = control.advance(solver, problems.class_label(plan), problems.effort(plan), checkpoint)
    return problems.solution(plan, solver, status, begun)


def check_solution(problems, solution, control: FitControl) -> str:
    """Check a solution read from a file against its weights on the training set.

    Returns
    -------
    str
        "confirmed": the objective and the duality gap are those of the weights. "start": they are not, but the weights
        are no worse than zeros. "useless": the weights are worse.
    """
    plan = solution.plan
    try:
        solver = problems.make_solver(plan, control.algorithm, control.tol, solution, n_threads=control.n_threads)
        status = solver.run(0, control.stop)
    except MemoryError:  # `solve_problem` reports it
        return "start"
    if status == "interrupted":
        return "start"
    if not solver.objective <= solver.objective_zero + FIGURES_RTOL * abs(solver.objective_zero):
        return "useless"
    found = problems.solution(plan, solver, status)
    scale = FIGURES_RTOL * max(abs(found.objective), abs(found.objective_zero))
    accuracy = {"objective": scale, "objective_zero": scale}
    accuracy["dual_gap"] = min(scale, GAP_RTOL * control.tol * abs(solver.objective_zero))
    if plan.pooled:
        accuracy["log_z"] = FIGURES_RTOL * max(abs(found.log_z), 1.0)
    same = all(abs(getattr(solution, name) - getattr(found, name)) <= accuracy[name] for name in accuracy)
    return "confirmed" if same and solution.status == status else "start"
