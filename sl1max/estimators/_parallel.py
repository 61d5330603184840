"""Independent fits side by side: in threads of this process, or by the workers that joblib is configured for."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any, TypeVar

import sklearn
from joblib.parallel import get_active_backend
from sklearn.utils.parallel import Parallel, delayed

from sl1max._utils.threads import count_threads, map_threads

Result = TypeVar("Result")


def run_parallel(
    function: Callable[..., Result],
    arguments: Iterable[tuple[Any, ...]],
    n_jobs: int | None,
    *,
    threads: bool = False,
    on_done: Callable[[], object] | None = None,
) -> list[Result]:
    """The results of a function for several tuples of arguments, in their order.

    Parameters
    ----------
    function : callable
    arguments : iterable of tuple
    n_jobs : int or None
    threads : bool
        Use threads even if joblib is configured for workers without shared memory.
    on_done : callable, optional
        Called after each result.

    Returns
    -------
    list
    """
    backend, _ = get_active_backend(prefer="threads")
    report = on_done or (lambda: None)
    if not threads and not getattr(backend, "supports_sharedmem", False):
        parallel = Parallel(n_jobs=n_jobs, prefer="threads", return_as="generator")
        results = []
        for result in parallel(delayed(function)(*one) for one in arguments):
            results.append(result)
            report()
        return results
    config = sklearn.get_config()  # of this thread

    def call(one: tuple[Any, ...]) -> Result:
        with sklearn.config_context(**config):
            result = function(*one)
        report()
        return result

    return map_threads(call, arguments, count_threads(n_jobs))
