"""Progress of a fit, for callbacks and for the display of ``verbose``."""

from __future__ import annotations

import contextlib
import math
import shutil
import sys
import threading
import time
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any, Protocol, TextIO

SECONDS_BETWEEN_LINES = 1.0
SECONDS_BETWEEN_BARS = 0.1
SECONDS_BEFORE_ADVICE = 10.0
MANY_PROBLEMS = 50  # with more problems, not every finished one gets a line


@dataclass(frozen=True)
class FitProgress:
    """Progress of one problem; the argument of ``callback``.

    Attributes
    ----------
    class_label : object
        The class of the problem; None if the classes are fitted together.
    n_iter : int
    objective : float
    dual_gap : float
        Upper bound on the distance of the objective to its minimum. NaN in boosting, which has no bound.
    target : float
        The dual gap at which the problem is converged.
    n_nonzero : int
        Number of nonzero weights; 0 if unknown.
    """

    class_label: object
    n_iter: int
    objective: float
    dual_gap: float
    target: float
    n_nonzero: int = 0


class Counting(Protocol):
    """A display of how much is done: `CountLines`, or a bar of tqdm."""

    def update(self, amount: int) -> object: ...
    def close(self) -> None: ...


class Observer:
    """Passes the progress of a fit to its callback and display, one report at a time.

    Parameters
    ----------
    callback : callable, optional
        Called with a `FitProgress`.
    verbose : int
        Positive: progress on stderr while `displaying`.
    advice : str
        Advice on how to make the fit faster, displayed once if it takes long.
    """

    def __init__(self, callback: Callable[[FitProgress], object] | None = None, verbose: int = 0, advice: str = ""):
        self._callback = callback
        self._verbose = verbose
        self._advice = advice
        self._start = math.inf
        self._display: Bar | Lines | None = None
        self._lock = threading.Lock()

    @property
    def active(self) -> bool:
        """Whether there is a callback or a display."""
        return self._callback is not None or self._display is not None

    @contextlib.contextmanager
    def displaying(
        self, class_labels: Sequence[object], efforts: Sequence[float] | None = None, done: Iterable[int] = ()
    ) -> Iterator[None]:
        """Display the progress of some problems, if ``verbose`` asks for it.

        Parameters
        ----------
        class_labels : list
            The class of each problem.
        efforts : list of float, optional
            Expected time of each, in any unit; used to estimate the time left.
        done : iterable of int
            The numbers of the problems that are already solved.
        """
        if not self._verbose:
            yield
            return
        self._display = make_display(class_labels, efforts, done)
        self._start = time.monotonic()
        try:
            yield
        finally:
            self._display.close()
            self._display = None

    def report(self, progress: FitProgress, status: str, ended: bool, effort: float = 1.0) -> bool:
        """Pass on a report; return True if the callback stops this problem."""
        with self._lock:
            asked = self._callback is not None and bool(self._callback(progress))
            if self._display is not None:
                if asked and not ended:
                    status, ended = "stopped", True
                self._display.show(progress, status, ended, effort)
                if self._advice and time.monotonic() > self._start + SECONDS_BEFORE_ADVICE:
                    self._display.say(self._advice)
                    self._advice = ""
            return asked


def make_display(
    class_labels: Sequence[object], efforts: Sequence[float] | None = None, done: Iterable[int] = ()
) -> Bar | Lines:
    """Make a bar of tqdm on a terminal or in a notebook, if tqdm is installed, otherwise plain lines."""
    tqdm = find_tqdm()
    return Lines(class_labels, efforts, done) if tqdm is None else Bar(tqdm, class_labels, efforts, done)


def find_tqdm() -> Any:
    """Find the class of bars; None without a terminal or notebook, or without tqdm."""
    if not (sys.stderr.isatty() or "ipykernel" in sys.modules):
        return None
    try:
        from tqdm.auto import tqdm
    except ImportError:
        return None
    return tqdm


class Tally:
    """Total progress: finished classes, and the finished share of the expected effort.

    A problem that runs counts for the part of its way that its gap has come, from its first to its target,
    on a logarithmic scale. The time left is what the rest takes at the pace so far.
    """

    def __init__(
        self, class_labels: Sequence[object], efforts: Sequence[float] | None = None, done: Iterable[int] = ()
    ):
        self._open = Counter(class_labels)
        self.n_problems = len(class_labels)
        self.n_classes = len(self._open)
        self.n_done = 0
        self._effort_open = float(sum([1.0] * len(class_labels) if efforts is None else efforts))
        self._effort_done = 0.0
        # For each running class: first dual gap, finished part, effort.
        self._running: dict[object, tuple[float, float, float]] = {}
        self._start = time.monotonic()
        for k in done:
            self._close(class_labels[k])
            self._effort_open -= 1.0 if efforts is None else efforts[k]

    def _close(self, label: object) -> None:
        self.n_done += 1
        self._open[label] -= 1
        if not self._open[label]:
            del self._open[label]

    def add(self, progress: FitProgress, ended: bool, effort: float) -> None:
        label = progress.class_label
        if ended:
            self._close(label)
            self._effort_done += effort
            self._running.pop(label, None)
            return
        first, _, _ = self._running.get(label, (progress.dual_gap, 0.0, effort))
        self._running[label] = first, way_done(first, progress.dual_gap, progress.target), effort

    @property
    def classes(self) -> str:
        return f"{self.n_classes - len(self._open)}/{self.n_classes} classes"

    @property
    def part(self) -> float:
        """Finished share of the expected effort since the start."""
        running = sum(part * effort for _, part, effort in self._running.values())
        return min((self._effort_done + running) / self._effort_open, 1.0) if self._effort_open > 0 else 1.0

    @property
    def time_left(self) -> str:
        return time_left(time.monotonic() - self._start, self.part)


class Lines:
    """Plain lines on stderr: one for each finished problem, and one per second.

    Where there are many problems one a second is all, with the classes done so far.
    """

    def __init__(
        self, class_labels: Sequence[object], efforts: Sequence[float] | None = None, done: Iterable[int] = ()
    ):
        self._tally = Tally(class_labels, efforts, done)
        self._many = len(class_labels) > MANY_PROBLEMS
        self._last = time.monotonic()

    def show(self, progress: FitProgress, status: str, ended: bool, effort: float = 1.0) -> None:
        self._tally.add(progress, ended, effort)
        now = time.monotonic()
        all_done = self._tally.n_done == self._tally.n_problems
        if not (all_done if self._many else ended) and now < self._last + SECONDS_BETWEEN_LINES:
            return
        self._last = now
        name = "all classes" if progress.class_label is None else f"class {progress.class_label}"
        line = f"{name}: {progress.n_iter} iterations, {format_state(progress, 6)}, {status}"
        print_line(f"{self._tally.classes}, {self._tally.time_left} left; {line}" if self._many else line)

    def say(self, text: str) -> None:
        """Show a line of text once."""
        print_line(text)

    def close(self) -> None:
        pass


class Bar:
    """A bar of tqdm: finished share of the expected effort, classes, objective, gap, weights, time left."""

    def __init__(
        self,
        tqdm: Any,
        class_labels: Sequence[object],
        efforts: Sequence[float] | None = None,
        done: Iterable[int] = (),
    ):
        self._tally = Tally(class_labels, efforts, done)
        self._tqdm = tqdm
        self._bar: Any = None

    def show(self, progress: FitProgress, status: str, ended: bool, effort: float = 1.0) -> None:
        if self._bar is None:
            self._bar = self._tqdm(
                total=1.0, file=sys.stderr, smoothing=0, mininterval=SECONDS_BETWEEN_BARS, dynamic_ncols=True,
                bar_format="sl1max: {percentage:3.0f}%|{bar:24}| {desc}{remaining} left",
            )  # fmt: skip
        self._tally.add(progress, ended, effort)
        classes = "all classes" if progress.class_label is None else self._tally.classes
        self._bar.set_description_str(f"{classes}, {format_state(progress, 4)}, ", refresh=False)
        all_done = self._tally.n_done == self._tally.n_problems
        self._bar.update((1.0 if all_done else self._tally.part) - self._bar.n)

    def say(self, text: str) -> None:
        """Show a line of text once."""
        self._tqdm.write(f"sl1max: {text}", file=sys.stderr)

    def close(self) -> None:
        if self._bar is not None:
            self._bar.close()


def format_state(progress: FitProgress, digits: int) -> str:
    """Format objective, gap and weights of a problem, if known."""
    parts = [f"objective {progress.objective:.{digits}g}"]
    if not math.isnan(progress.dual_gap):
        parts.append(f"gap {progress.dual_gap:.2e} (target {progress.target:.2e})")
    if progress.n_nonzero:
        parts.append(f"{progress.n_nonzero} weights")
    return ", ".join(parts)


@contextlib.contextmanager
def counting(total: int, what: str, verbose: int = 1) -> Iterator[Callable[[int], None]]:
    """Display the progress of a known amount of work: a bar of tqdm, or plain lines on stderr.

    Parameters
    ----------
    total : int
    what : str
        What is counted.
    verbose : int
        Nothing is displayed if this is 0.

    Yields
    ------
    callable
        Call it with each finished amount; it is thread-safe.

    Examples
    --------
    >>> from sl1max._utils.progress import counting
    >>> with counting(10, "cells", verbose=0) as add:
    ...     add(10)
    """
    if not verbose:
        yield lambda amount: None
        return
    tqdm = find_tqdm()
    counter: Counting
    if tqdm is None:
        counter = CountLines(total, what)
    else:
        counter = tqdm(
            total=total, desc="sl1max", unit=f" {what}", unit_scale=True, file=sys.stderr, dynamic_ncols=True
        )
    lock = threading.Lock()

    def add(amount: int) -> None:
        with lock:
            counter.update(amount)

    try:
        yield add
    finally:
        counter.close()


class CountLines:
    """Plain lines on stderr: one per second, and one at the end."""

    def __init__(self, total: int, what: str):
        self._total, self._what = total, what
        self._done = 0
        self._start = self._last = time.monotonic()

    def update(self, amount: int) -> None:
        self._done += amount
        now = time.monotonic()
        if self._done < self._total and now < self._last + SECONDS_BETWEEN_LINES:
            return
        self._last = now
        left = time_left(now - self._start, self._done / self._total)
        print_line(f"{self._done} of {self._total} {self._what}, {left} left")

    def close(self) -> None:
        pass


def way_done(first: float, gap: float, target: float) -> float:
    """Progress from the first gap to its target, on a logarithmic scale."""
    if not 0 < target < first < math.inf or gap <= 0:
        return 0.0
    return min(max(math.log(first / gap) / math.log(first / target), 0.0), 1.0)


def time_left(seconds: float, part: float) -> str:
    """Estimate the remaining time from the finished part."""
    return format_seconds(seconds * (1 - part) / part) if part > 0 else "?"


def bar_of(part: float, width: int) -> str:
    return f"[{'#' * round(part * width):-<{width}}]"


def write_over(line: str, stream: TextIO) -> None:
    """Format a line that overwrites the last one of a terminal."""
    width = shutil.get_terminal_size().columns - 1
    print(f"\r{line[:width]:<{width}}", end="", file=stream, flush=True)


def format_seconds(seconds: float) -> str:
    minutes, rest = divmod(round(seconds), 60)
    hours, minutes = divmod(minutes, 60)
    return f"{hours}:{minutes:02}:{rest:02}" if hours else f"{minutes}:{rest:02}"


def print_line(text: str) -> None:
    """Print one line of progress to stderr."""
    print(f"sl1max: {text}", file=sys.stderr)
