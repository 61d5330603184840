"""Independent fits side by side: in threads of this process, or by the workers that joblib is configured for."""

from __future__ import annotations

from collections.abc import Callable, Iterable

import sklearn
from joblib.parallel import get_active_backend
from sklearn.utils.parallel import Parallel, delayed

from sl1max._utils.threads import count_threads, map_threads


def run_parallel(function: Callable, arguments: Iterable[tuple], n_jobs: int | None, *, threads: bool = False) -> list:
    """The results of a function for several tuples of arguments, in their order.

    Parameters
    ----------
    function : callable
    arguments : iterable of tuple
    n_jobs : int or None
    threads : bool
        Use threads even if joblib is configured for workers without shared memory.

    Returns
    -------
    list
    """
    backend, _ = get_active_backend(prefer="threads")
    if not threads and not getattr(backend, "supports_sharedmem", False):
        return Parallel(n_jobs=n_jobs, prefer="threads")(delayed(function)(*one) for one in arguments)
    config = sklearn.get_config()  # of this thread

    def call(one):
        with sklearn.config_context(**config):
            return function(*one)

    return map_threads(call, arguments, count_threads(n_jobs))
