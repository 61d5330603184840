"""Running a solver under the caller's eye: callback, progress, stopping."""

from __future__ import annotations

import contextlib
import math
import shutil
import sys
import threading
import time
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

DEFAULT_MAX_ITER = {"newton": 1000, "sequential": 1_000_000}
CHUNK = {"newton": 1, "sequential": 1000, "boosting": 100}  # iterations between two reports
SECONDS_BETWEEN_LINES = 1.0
SECONDS_BETWEEN_BARS = 0.1
BAR_WIDTH = 24


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
        The objective is at most this far above its minimum. NaN where nothing is known of it, in boosting.
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
        self._display = None
        self._lock = threading.Lock()

    @contextlib.contextmanager
    def watching(self, class_labels):
        """Show the progress of problems with these labels meanwhile, if ``verbose`` asks for it."""
        if not self._verbose:
            yield
            return
        self._display = Bar(class_labels) if sys.stderr.isatty() else Lines()
        try:
            yield
        finally:
            self._display.close()
            self._display = None

    def run(self, solver, class_label) -> str:
        """Run a solver; the status is the core's or, when the callback ended it, ``"stopped"``."""
        watched = self._callback is not None or self._display is not None
        chunk = CHUNK[self.algorithm] if watched else self.max_iter
        status = "running"
        while status == "running" and solver.n_iter < self.max_iter:
            status = solver.run(min(chunk, self.max_iter - solver.n_iter), self.stop)
            if not watched or status == "interrupted":
                continue
            target = self.tol * abs(solver.objective_zero)
            progress = FitProgress(class_label, solver.n_iter, solver.objective, solver.dual_gap, target)
            with self._lock:
                if self._callback is not None and self._callback(progress) and status == "running":
                    status = "stopped"
                if self._display is not None:
                    ended = status != "running" or solver.n_iter >= self.max_iter
                    self._display.show(progress, status, ended)
        return status


class Lines:
    """Plain lines on stderr: one when a problem ends, and meanwhile one a second."""

    def __init__(self):
        self._last = time.monotonic()

    def show(self, progress: FitProgress, status, ended):
        now = time.monotonic()
        if not ended and now < self._last + SECONDS_BETWEEN_LINES:
            return
        self._last = now
        name = "all classes" if progress.class_label is None else f"class {progress.class_label}"
        gap = f", gap {progress.dual_gap:.2e} (target {progress.target:.2e})"
        print_line(
            f"{name}: {progress.n_iter} iterations, objective {progress.objective:.6g}"
            f"{'' if math.isnan(progress.dual_gap) else gap}, {status}"
        )

    def close(self):
        pass


class Bar:
    """One line on a terminal, written over and over: classes done, gap, time left.

    A problem that runs counts for the part of its way that its gap has come, from its first to its target,
    on a logarithmic scale.
    """

    def __init__(self, class_labels):
        self._open = Counter(class_labels)
        self._n_problems = len(class_labels)
        self._n_classes = len(self._open)
        self._done = 0
        self._begun = {}  # dual gap at the first report of each class that runs
        self._parts = {}
        self._start = time.monotonic()
        self._last = -math.inf

    def show(self, progress: FitProgress, status, ended):
        label = progress.class_label
        if ended:
            self._done += 1
            self._open -= Counter([label])
            self._begun.pop(label, None)
            self._parts.pop(label, None)
        else:
            first = self._begun.setdefault(label, progress.dual_gap)
            self._parts[label] = way_done(first, progress.dual_gap, progress.target)
        now = time.monotonic()
        if now > self._last + SECONDS_BETWEEN_BARS or self._done == self._n_problems:
            self._last = now
            self._draw(progress, now - self._start)

    def _draw(self, progress, seconds):
        part = (self._done + sum(self._parts.values())) / self._n_problems
        bar = "#" * round(part * BAR_WIDTH)
        left = format_seconds(seconds * (1 - part) / part) if part > 0 else "?"
        done = f"{self._n_classes - len(self._open)}/{self._n_classes}"
        gap = f"gap {progress.dual_gap:.1e}"
        line = (
            f"sl1max: {'all' if progress.class_label is None else done} classes [{bar:-<{BAR_WIDTH}}] "
            f"{f'loss {progress.objective:.3g}' if math.isnan(progress.dual_gap) else gap}, {left} left"
        )
        width = shutil.get_terminal_size().columns - 1
        print(f"\r{line[:width]:<{width}}", end="", file=sys.stderr, flush=True)

    def close(self):
        print(file=sys.stderr)


def way_done(first, gap, target):
    """Share of the way from the first gap to its target, on a logarithmic scale."""
    if not 0 < target < first < math.inf or gap <= 0:
        return 0.0
    return min(max(math.log(first / gap) / math.log(first / target), 0.0), 1.0)


def format_seconds(seconds):
    minutes, seconds = divmod(round(seconds), 60)
    hours, minutes = divmod(minutes, 60)
    return f"{hours}:{minutes:02}:{seconds:02}" if hours else f"{minutes}:{seconds:02}"


def print_line(text):
    """One plain line of progress on stderr."""
    print(f"sl1max: {text}", file=sys.stderr)
