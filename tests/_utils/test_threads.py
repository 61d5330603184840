"""Threads that share work: results in order, errors and interrupts that end it, no hang where none can start."""

import _thread
import threading
import time

import joblib
import numpy as np
import pytest
from problems import choosing
from scipy import sparse

import sl1max
from sl1max._models import costs
from sl1max._utils.threads import call_later, count_threads, map_threads
from sl1max.exceptions import ThreadStartError


@pytest.mark.parametrize("n_threads", [1, 2, 7])
@pytest.mark.parametrize("n_items", [0, 1, 100])
def test_results_are_in_order(n_items, n_threads):
    assert map_threads(lambda k: k * k, range(n_items), n_threads) == [k * k for k in range(n_items)]


def test_all_threads_work():
    together = threading.Barrier(3, timeout=30)
    assert len(set(map_threads(lambda _: together.wait() + 10 * threading.get_ident(), range(3), 3))) == 3


@pytest.mark.parametrize("kind", [ValueError, KeyboardInterrupt])
@pytest.mark.parametrize("n_threads", [1, 2, 3])
def test_error_ends_the_work(n_threads, kind):
    begun = []

    def fail(k):
        begun.append(k)
        if k == 5:
            raise kind("five")
        time.sleep(0.001)

    with pytest.raises(kind, match="five"):
        map_threads(fail, range(1000), n_threads)
    assert 5 < len(begun) + 1 < 20


def refuse_threads(monkeypatch, error, n_allowed=0):
    start, n_started = _thread.start_new_thread, []

    def start_new_thread(*args):
        if len(n_started) == n_allowed:
            raise error
        n_started.append(1)
        return start(*args)

    monkeypatch.setattr(_thread, "start_new_thread", start_new_thread)


REFUSALS = [
    (RuntimeError("can't start new thread"), ThreadStartError, r"cannot start 4 threads \(can't start new thread\)"),
    (MemoryError(), MemoryError, "not enough memory to start 4 threads: lower n_jobs"),
]


@pytest.mark.parametrize("n_allowed", [0, 2])
@pytest.mark.parametrize(("error", "kind", "message"), REFUSALS)
def test_threads_that_cannot_start(monkeypatch, error, kind, message, n_allowed):
    refuse_threads(monkeypatch, error, n_allowed)
    called = []
    with pytest.raises(kind, match=message):
        map_threads(called.append, range(10), 4)
    assert not called


@pytest.mark.parametrize(("error", "kind", "message"), REFUSALS)
def test_fit_and_predict_where_threads_cannot_start(monkeypatch, error, kind, message):
    rng = np.random.default_rng(0)
    X, y = rng.random((4000, 5)), rng.integers(0, 5, 4000)
    model = sl1max.fit(X, y, label_mode="independent")
    refuse_threads(monkeypatch, error)
    monkeypatch.setattr("sl1max.model._model.BLOCK_CELLS", 1000)
    with pytest.raises(kind, match=message):
        sl1max.fit(X, y, label_mode="independent", n_jobs=4)
    with pytest.raises(kind, match=message):
        model.predict_proba(X, n_jobs=4)


@pytest.mark.parametrize(("error", "message"), [(error, message) for error, _, message in REFUSALS])
def test_fit_of_many_classes_where_threads_cannot_start(monkeypatch, error, message):
    rng = np.random.default_rng(0)
    X, y = sparse.csr_array((rng.random((400, 9)) < 0.2) * 1.0), rng.integers(0, 40, 400)
    monkeypatch.setattr("sl1max._solvers.many_classes.PANEL_WIDTH", 4)
    refuse_threads(monkeypatch, error)
    with choosing(costs.CLASSES), pytest.raises(sl1max.FitError, match=message):
        sl1max.fit(X, y, n_jobs=4)


@pytest.mark.parametrize(
    ("error", "kind", "message"),
    [(RuntimeError("no"), ThreadStartError, r"cannot start a thread \(no\)"), (MemoryError(), MemoryError, "a thread")],
)
def test_time_limit_where_its_thread_cannot_start(monkeypatch, error, kind, message):
    refuse_threads(monkeypatch, error)
    X, y = np.random.default_rng(0).random((30, 3)), np.arange(30) % 3
    with pytest.raises(kind, match=message):
        sl1max.fit(X, y, max_time=100.0)


@pytest.mark.filterwarnings("error::pytest.PytestUnhandledThreadExceptionWarning")
def test_limit_of_billions_of_years():
    with call_later(pytest.fail, 1e300):
        time.sleep(0.05)
    X, y = np.random.default_rng(0).random((30, 3)), np.arange(30) % 3
    for limit in (1e300, np.inf):
        assert sl1max.fit(X, y, max_time=limit).converged


@pytest.mark.parametrize(
    "name", ["LinearSVMClassifier", "MaxentClassifierCV", "HierarchyClassifier", "AdaBoostClassifier"]
)
def test_estimators_where_threads_cannot_start(monkeypatch, name):
    pytest.importorskip("sklearn")
    rng = np.random.default_rng(0)
    X, y = rng.random((60, 5)), rng.integers(0, 5, 60)
    estimator = getattr(sl1max, name)(n_jobs=3)
    refuse_threads(monkeypatch, RuntimeError("can't start new thread"))
    with pytest.raises(ThreadStartError, match="cannot start 3 threads"):
        estimator.fit(X, y)


def test_number_of_threads():
    assert count_threads(None) == count_threads(1) == 1
    assert count_threads(5) == 5
    assert count_threads(-1) == joblib.cpu_count()
    with joblib.parallel_config("threading", n_jobs=3):
        assert count_threads(None) == 3
