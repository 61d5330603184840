"""Solving the problems of a model in threads of this process or, through joblib, in other processes.

Problems are independent, and solutions are stored when they are finished: an error in one problem, a worker that dies
or Ctrl-C does not affect the others. The longest problems start first, so that no processor is idle at the end.

Threads are the default. If ``joblib.parallel_config`` selects a backend without shared memory ("dask", "ray", "loky"),
the training set is sent to its workers once, and short problems are sent in groups.
"""

from __future__ import annotations

import contextlib
import os
import sys
import threading
import uuid
import warnings
from collections import deque
from concurrent.futures import BrokenExecutor
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import numpy as np
from scipy import sparse

from sl1max._execution.control import STOPPED, FitControl, check_solution, solve_problem
from sl1max._utils.threads import count_threads, map_threads

if TYPE_CHECKING:
    from sl1max._utils.typing import DataMatrix

GROUPS_PER_WORKER = 16
LARGEST_GROUP = 64
AHEAD = 24  # groups sent ahead; dask removes data from workers if fewer than 20 tasks wait for it
ROUND_PER_WORKER = 8  # groups, for backends that return results only when all are done
# Exceptions of joblib's backends when a worker dies; by name, so that no backend is imported.
WORKER_DEATHS = {
    "ActorDiedError", "CancelledError", "CommClosedError", "FutureCancelledError", "KilledWorker", "LostWorkerError",
    "NodeDiedError", "OutOfMemoryError", "RayActorError", "TerminatedWorkerError", "WorkerCrashedError",
}  # fmt: skip


@dataclass(frozen=True)
class Failure:
    """Why a problem has no solution: the type and the text of the error."""

    kind: str
    text: str

    def __str__(self):
        return f"{self.kind}: {self.text}" if self.text else self.kind


@dataclass(eq=False)
class Outcome:
    """Results of the problems, by their number in ``plans``."""

    plans: list
    solved: dict[int, Any] = field(default_factory=dict)
    failed: dict[int, Failure] = field(default_factory=dict)
    interrupt: KeyboardInterrupt | None = None
    time_is_over: bool = False

    @property
    def solutions(self) -> list:
        """The solutions, in the order of the plans."""
        return [self.solved[k] for k in sorted(self.solved)]

    @property
    def missing(self) -> list:
        """The plans without a solution."""
        return [plan for k, plan in enumerate(self.plans) if k not in self.solved]


def solve_all(reduction, control: FitControl, n_jobs, journal=None) -> Outcome:
    """Solve the problems of a model.

    Parameters
    ----------
    reduction : Reduction, or what stands in its place
    control : FitControl
    n_jobs : int or None
    journal : Journal, optional
        Storage for solutions, also those of an earlier call.

    Returns
    -------
    Outcome
        Ctrl-C is recorded there, not raised. So is a reached time limit; at least one problem then has a solution.
    """
    work = Work(reduction, control, journal)
    labels = [reduction.class_label(plan) for plan in work.outcome.plans]
    with control.deadline.watch(control.stop):
        with work.interruptible():
            _run_in_threads(work, work.check_begun, list(work.begun), n_jobs)
        if control.interrupt is None:
            with control.observer.displaying(labels, work.efforts, list(work.outcome.solved)), work.interruptible():
                _run(work, n_jobs)
    work.outcome.interrupt = control.interrupt
    if control.time_is_over:
        work.outcome.time_is_over = True
        work.start_one()
    return work.outcome


def _run(work, n_jobs):
    order = work.order()
    if len(order) > 1 and "joblib" in sys.modules:
        from joblib.parallel import get_active_backend

        backend, _ = get_active_backend(prefer="threads")
        if not getattr(backend, "supports_sharedmem", False):
            Elsewhere(work, backend, n_jobs).run(order)
            return
    _run_in_threads(work, work.solve, order, n_jobs)


def _run_in_threads(work, function, numbers, n_jobs):
    """Call a function with the numbers of problems; a single problem may use all threads."""
    alone = len(numbers) <= 1
    work.control.n_threads = n_threads_of(n_jobs) if alone else 1
    if not alone:
        work.reduction.data.columns  # noqa: B018  computed here, before threads use it
    map_threads(function, numbers, 1 if alone else count_threads(n_jobs))


def n_threads_of(n_jobs) -> int:
    """Convert n_jobs to a number of threads for a single problem: -1 all processors, -2 all but one."""
    if n_jobs is None or n_jobs > 0:
        return n_jobs or 1
    return max((os.cpu_count() or 1) + 1 + n_jobs, 1)


class Work:
    """The problems and their results so far."""

    def __init__(self, reduction, control, journal=None):
        self.reduction = reduction
        self.control = control
        self.journal = journal
        self.outcome = Outcome(reduction.plans(control.algorithm))
        self.efforts = [reduction.effort(plan) for plan in self.outcome.plans]
        self.begun = {}  # solutions of an earlier call to continue from
        self._n_running = 0
        self._changed = threading.Condition()
        if journal is not None:
            self.begun = journal.solutions(self.outcome.plans, reduction.data.matrix.shape[1])

    def check_begun(self, k):
        """Use a solution of an earlier call unchanged, as a start, or not at all."""
        solution = self.begun[k]
        verdict = check_solution(self.reduction, solution, self.control)
        if verdict == "confirmed" and solution.is_final(self.control.max_iter):
            self.outcome.solved[k] = solution
        if verdict == "useless" or k in self.outcome.solved:
            del self.begun[k]

    @contextlib.contextmanager
    def interruptible(self):
        """Record Ctrl-C and wait until all threads have stopped."""
        try:
            yield
        except KeyboardInterrupt as error:
            self.control.interrupt = error
            self.control.stop[0] = STOPPED
            self.wait()
        except BaseException:
            self.control.stop[0] = STOPPED
            raise

    def order(self):
        """Return the numbers of the unsolved problems, longest first."""
        still_open = [k for k in range(len(self.outcome.plans)) if k not in self.outcome.solved]
        return sorted(still_open, key=lambda k: -self.efforts[k])

    def solve(self, k):
        """Solve one problem in this process."""
        with self._changed:
            self._n_running += 1
        try:
            note = None if self.journal is None else self.journal.note_taker(k)
            found = attempt(self.reduction, self.outcome.plans[k], self.control, self.begun.get(k), note)
            if found is not None:
                self.keep(k, found)
        finally:
            with self._changed:
                self._n_running -= 1
                self._changed.notify_all()

    def start_one(self):
        """Make sure that a class has a solution: the first one as it is before its first iteration."""
        if self.outcome.solved or self.outcome.failed:
            return
        labels = [self.reduction.class_label(plan) for plan in self.outcome.plans]
        order = self.order()
        for k in order:
            if labels[k] == labels[order[0]]:
                plan, begun = self.outcome.plans[k], self.begun.get(k)
                self.keep(k, self.reduction.first_solution(plan, self.control.algorithm, self.control.tol, begun))

    def wait(self):
        """Until no thread solves any more, after they were told to stop."""
        with self._changed:
            self._changed.wait_for(lambda: self._n_running == 0)

    def keep(self, k, found):
        """Take in a solution or a failure."""
        with self._changed:
            if isinstance(found, Failure):
                self.outcome.failed[k] = found
                return
            self.outcome.solved[k] = found
        if self.journal is not None:
            self.journal.add(k, found)


def attempt(reduction, plan, control, begun=None, note=None):
    """A solution, None if the fit was stopped before it began, or the failure that came instead."""
    try:
        return solve_problem(reduction, plan, control, begun, note)
    except Exception as error:
        if control.stop[0]:  # the callback's
            raise
        return Failure(type(error).__name__, str(error))


# Elsewhere


class Shared:
    """A training set on its way to other processes.

    Engines that unpickle the arguments of every task get the same object again, if ``keep`` is true.
    """

    def __init__(self, reduction, settings, keep, token=None):
        self.reduction = reduction
        self.settings = settings
        self.keep = keep
        self.token = token or uuid.uuid4().hex

    def __reduce__(self):
        return restore, (self.reduction, self.settings, self.keep, self.token)

    def __sizeof__(self):
        """Bytes of the matrix, most of what is sent."""
        matrix: DataMatrix = self.reduction.data.matrix
        arrays = (matrix.indptr, matrix.indices, matrix.data) if sparse.issparse(matrix) else (matrix,)
        return sum(array.nbytes for array in arrays)

    def __dask_tokenize__(self):
        return self.token


_last: dict[str, Shared] = {}  # the training set that came to this process last, by its token
_making_columns = threading.Lock()


def restore(reduction, settings, keep, token) -> Shared:
    """A `Shared` in another process."""
    if token in _last:
        return _last[token]
    _last.clear()
    shared = Shared(reduction, settings, keep, token)
    if keep:
        _last[token] = shared
    return shared


def solve_group(shared: Shared, group) -> list:
    """Solve some problems in a worker; the result has their numbers and solutions or failures."""
    with _making_columns:
        shared.reduction.data.columns  # noqa: B018
    found = []
    control = FitControl(**shared.settings)
    with control.deadline.watch(control.stop):
        for k, plan, begun in group:
            found.append((k, attempt(shared.reduction, plan, control, begun)))
    return [(k, solution) for k, solution in found if solution is not None]


class Elsewhere:
    """Workers of a joblib backend without shared memory.

    When a worker dies, and the engine does not see to it by itself, the problems that were under way are tried
    again after all others, one by one: a problem that is alone when its worker dies is to blame.
    """

    def __init__(self, work: Work, backend, n_jobs):
        self._work = work
        self._backend = backend
        self._n_jobs = n_jobs
        self._is_dask = hasattr(backend, "client")
        self._streams = backend.supports_return_generator
        self._shared = self._share()

    def _share(self):
        return Shared(self._work.reduction, self._work.control.settings, keep=not self._is_dask)

    def run(self, order):
        n_workers = self._backend.effective_n_jobs(self._n_jobs)
        groups = deque(make_groups(order, self._work.efforts, n_workers))
        suspects = []
        while groups:
            # Engines that give back nothing before all is done get a part at a time.
            size = len(groups) if self._streams else min(ROUND_PER_WORKER * n_workers, len(groups))
            part = deque(groups.popleft() for _ in range(size))
            lost, _ = self._solve(part)
            suspects += lost
            groups.extendleft(reversed(part))
        for k in (k for group in suspects for k in group):
            self._solve_alone(k)

    def _solve_alone(self, k):
        """Solve a problem whose worker died alone, at most twice, since workers may also die for other reasons."""
        for _ in range(2):
            lost, death = self._solve(deque([[k]]))
            if not lost:
                return
        why = " ".join(str(death).split())
        self._work.keep(k, Failure(type(death).__name__, f"its worker died ({why})"))

    def _solve(self, groups):
        """Solve groups until all are done or a worker dies; return the lost groups and the error."""
        from joblib import Parallel

        sent: list[list[int]] = []
        return_as = "generator_unordered" if self._streams else "list"
        ahead = AHEAD if self._is_dask else 0
        with self._engine(), contextlib.ExitStack() as ending:
            try:
                parallel = Parallel(
                    n_jobs=self._n_jobs, batch_size=1, return_as=return_as, pre_dispatch=f"{ahead} + 2 * n_jobs"
                )
                found = parallel(self._tasks(groups, sent))
                if self._streams:
                    ending.callback(close_quietly, found)
                for results in found:
                    self._keep(results)
            except Exception as error:
                if not is_death(error):
                    raise
                return [group for group in sent if not self._is_done(group)], error
        return [], None

    @contextlib.contextmanager
    def _engine(self):
        """Configure joblib so that every worker of a cluster has the training set."""
        if not self._is_dask:
            yield
            return
        from joblib.parallel import get_active_backend, parallel_config

        given = self._backend
        self._shared = self._share()  # under a name of its own: what the cluster has of an earlier one may be going
        with parallel_config(
            "dask", client=given.client, scatter=[self._shared],
            wait_for_workers_timeout=given.wait_for_workers_timeout, **given.submit_kwargs,
        ):  # fmt: skip
            backend, _ = get_active_backend()
            n_workers = backend.effective_n_jobs
            backend.effective_n_jobs = lambda n_jobs: max(
                n_workers(n_jobs), 2
            )  # joblib itself would do the work of one
            try:
                yield
            finally:
                backend.data_futures.clear()  # the workers need not keep it until this process collects garbage

    def _tasks(self, groups, sent):
        from joblib import delayed

        while groups:
            group = groups.popleft()
            sent.append(group)
            work = self._work
            yield delayed(solve_group)(self._shared, [(k, work.outcome.plans[k], work.begun.get(k)) for k in group])

    def _keep(self, results):
        work = self._work
        for k, found in results:
            work.keep(k, found)
            if not isinstance(found, Failure):
                progress = work.reduction.last_progress(found, work.control.tol)
                work.control.report(progress, found.status, True, work.efforts[k])

    def _is_done(self, group):
        outcome = self._work.outcome
        return all(k in outcome.solved or k in outcome.failed for k in group)


def close_quietly(found):
    """Close a generator of joblib without its warning about cancelled tasks."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        found.close()


def is_death(error) -> bool:
    """Whether an error of a backend means that a worker has died."""
    names = {kind.__name__ for kind in type(error).__mro__}
    return isinstance(error, BrokenExecutor) or bool(names & WORKER_DEATHS)


def make_groups(order, efforts, n_workers) -> list[list[int]]:
    """Group problems in the given order; short ones share a group."""
    share = np.sum([efforts[k] for k in order]) / (GROUPS_PER_WORKER * max(n_workers, 1))
    groups: list[list[int]] = []
    effort = np.inf
    for k in order:
        if effort + efforts[k] > share or len(groups[-1]) == LARGEST_GROUP:
            groups.append([])
            effort = 0.0
        groups[-1].append(k)
        effort += efforts[k]
    return groups
