"""Threads of this process that share a list of tasks."""

from __future__ import annotations

import _thread
import contextlib
import sys
import threading
from collections.abc import Callable, Iterable, Iterator
from typing import Any, Generic, TypeVar

from sl1max.exceptions import ThreadStartError

Item = TypeVar("Item")
Result = TypeVar("Result")


def count_threads(n_jobs: int | None) -> int:
    """Convert ``n_jobs`` to a number of threads, within the active ``joblib.parallel_config``.

    Examples
    --------
    >>> from sl1max._utils.threads import count_threads
    >>> count_threads(3)
    3
    """
    if n_jobs in (None, 1) and "joblib" not in sys.modules:
        return 1
    from joblib.parallel import get_active_backend  # a tenth of a second

    backend, configured = get_active_backend(require="sharedmem")
    return max(int(backend.effective_n_jobs(configured if n_jobs is None else n_jobs)), 1)


def map_threads(function: Callable[[Item], Result], items: Iterable[Item], n_threads: int) -> list[Result]:
    """Apply a function to all items in threads; return the results in order.

    The calling thread is one of them. No thread begins before all have been started. After an error no further item
    is begun.

    Parameters
    ----------
    function : callable
    items : iterable
    n_threads : int

    Returns
    -------
    list

    Raises
    ------
    ThreadStartError, MemoryError
        A thread could not be started. The function was not called.

    Examples
    --------
    >>> from sl1max._utils.threads import map_threads
    >>> map_threads(abs, [-1, 2, -3], 2)
    [1, 2, 3]
    """
    items = list(items)
    n_threads = min(n_threads, len(items))
    if n_threads <= 1:
        return [function(item) for item in items]
    team = _Team(function, items)
    # threading.Thread.start never returns if its thread has no memory to start.
    try:
        for _ in range(n_threads - 1):
            _thread.start_new_thread(team.help, ())
    except BaseException as error:
        team.stop = True
        raise _explained(error, n_threads) from error
    finally:
        team.begin.set()
    return team.finish()


@contextlib.contextmanager
def call_later(function: Callable[[], object], seconds: float) -> Iterator[None]:
    """Call a function in another thread if the block takes longer than some seconds.

    Parameters
    ----------
    function : callable
    seconds : float

    Raises
    ------
    ThreadStartError, MemoryError
        The thread could not be started; the block was not entered.

    Examples
    --------
    >>> from sl1max._utils.threads import call_later
    >>> with call_later(print, 3600.0):
    ...     pass
    """
    ended = threading.Event()

    def wait() -> None:
        if not ended.wait(min(seconds, threading.TIMEOUT_MAX)):
            function()

    try:
        _thread.start_new_thread(wait, ())  # see `map_threads`
    except (MemoryError, RuntimeError) as error:
        raise _explained(error, 1) from error
    try:
        yield
    finally:
        ended.set()


class _Team(Generic[Item, Result]):
    """Tasks, their results, and the number of threads at work."""

    def __init__(self, function: Callable[[Item], Result], items: list[Item]):
        self.function = function
        self.items = items
        self.results: list[Any] = [None] * len(items)  # a Result each, at the end
        self.begin = threading.Event()
        self.stop = False
        self._n_taken = 0
        self._n_busy = 0
        self._error: BaseException | None = None
        self._changed = threading.Condition()

    def help(self) -> None:
        """Work of an additional thread."""
        self.begin.wait()
        self._work()

    def finish(self) -> list[Result]:
        """Work of the calling thread; returns the results."""
        try:
            self._work()
            # KeyboardInterrupt is raised in the calling thread, which then does not wait for the others.
            while self._n_busy and (self._error is None or isinstance(self._error, Exception)):
                with self._changed:
                    self._changed.wait_for(lambda: not self._n_busy, 1.0)  # Windows: Ctrl-C is seen between waits
        except BaseException:
            self.stop = True
            raise
        if self._error is not None:
            raise self._error
        return self.results

    def _work(self) -> None:
        while True:
            with self._changed:
                if self.stop or self._n_taken == len(self.items):
                    return
                k = self._n_taken
                self._n_taken += 1
                self._n_busy += 1
            error: BaseException | None = None
            try:
                self.results[k] = self.function(self.items[k])
            except BaseException as caught:
                error = caught
            finally:
                with self._changed:
                    self._n_busy -= 1
                    self._error = self._error or error
                    self.stop = self.stop or error is not None
                    self._changed.notify_all()


def _explained(error: BaseException, n_threads: int) -> BaseException:
    count = "a thread" if n_threads == 1 else f"{n_threads} threads"
    if isinstance(error, MemoryError):
        return MemoryError(f"not enough memory to start {count}: lower n_jobs")
    if isinstance(error, RuntimeError):
        return ThreadStartError(
            f"the system cannot start {count} ({error}): lower n_jobs, or raise the limit on threads (ulimit -u)"
        )
    return error
