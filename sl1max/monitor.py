"""Running a solver under the caller's eye: callback, progress lines, stopping."""

from __future__ import annotations

import sys
import threading
import time
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

DEFAULT_MAX_ITER = {"newton": 1000, "sequential": 1_000_000}
CHUNK = {"newton": 1, "sequential": 1000}  # iterations between two reports
SECONDS_BETWEEN_LINES = 1.0


@dataclass(frozen=True)
class FitProgress:
    """How far one problem has come; what ``callback`` gets.

    Attributes
    ----------
    class_label : object
        The class whose problem it is; None when the classes are fitted together.
    n_iter : int
    objective : float
    dual_gap : float
        The objective is at most this far above its minimum.
    target : float
        The dual gap at which the problem counts as solved.
    """

    class_label: object
    n_iter: int
    objective: float
    dual_gap: float
    target: float


class Monitor:
    """Runs solvers to their end or until someone says stop.

    ``stop`` is shared by all threads of a fit: once it is nonzero every solver returns at once. Calls of the
    callback never overlap.
    """

    def __init__(self, *, algorithm, tol, max_iter=None, callback: Callable | None = None, verbose=0):
        self.algorithm = algorithm
        self.tol = tol
        self.max_iter = DEFAULT_MAX_ITER[algorithm] if max_iter is None else int(max_iter)
        self.stop = np.zeros(1, np.int32)
        self._callback = callback
        self._verbose = verbose
        self._lock = threading.Lock()

    def run(self, solver, class_label) -> str:
        """Run a solver; the status is the core's or, when the callback ended it, ``"stopped"``."""
        watched = self._callback is not None or self._verbose
        chunk = CHUNK[self.algorithm] if watched else self.max_iter
        status, last_line = "running", time.monotonic()
        while status == "running" and solver.n_iter < self.max_iter:
            status = solver.run(min(chunk, self.max_iter - solver.n_iter), self.stop)
            if not watched or status == "interrupted":
                continue
            target = self.tol * abs(solver.objective_zero)
            progress = FitProgress(class_label, solver.n_iter, solver.objective, solver.dual_gap, target)
            with self._lock:
                if self._callback is not None and self._callback(progress) and status == "running":
                    status = "stopped"
                now = time.monotonic()
                if self._verbose and (status != "running" or now > last_line + SECONDS_BETWEEN_LINES):
                    last_line = now
                    print_progress(progress, status)
        return status


def print_progress(progress: FitProgress, status):
    """One plain line on stderr."""
    name = "all classes" if progress.class_label is None else f"class {progress.class_label}"
    print(
        f"sl1max: {name}: {progress.n_iter} iterations, objective {progress.objective:.6g}, "
        f"gap {progress.dual_gap:.2e} (target {progress.target:.2e}), {status}",
        file=sys.stderr,
    )
