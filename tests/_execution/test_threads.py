"""Python threads that train and predict side by side get what each would get alone; with and without the GIL."""

import subprocess
import sys
import sysconfig
import threading
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import numpy as np
import pytest
from numpy.testing import assert_array_equal
from scipy import sparse
from strategies import random_data

import sl1max
from sl1max._core._solver import Columns, Problem, Solver

N_THREADS = 4
MODELS = [
    ("joint", "exclusive"),
    ("class-conditional", "exclusive"),
    ("conditional", "exclusive"),
    ("joint", "independent"),
    ("conditional", "independent"),
]


def run_together(task):
    """Results of ``task(k)``, each in a thread of its own, all started at once."""
    barrier = threading.Barrier(N_THREADS)

    def run(k):
        barrier.wait()
        return task(k)

    with ThreadPoolExecutor(N_THREADS) as pool:
        return list(pool.map(run, range(N_THREADS)))


def make_data():
    return random_data(np.random.default_rng(0), 400, 60, 3)


@pytest.mark.parametrize(("distribution", "label_mode"), MODELS)
def test_fits_side_by_side(distribution, label_mode):
    X, y = make_data()

    def fit(k):
        return sl1max.fit(X, y, distribution=distribution, label_mode=label_mode, beta=0.1 * (k + 1))

    for k, model in enumerate(run_together(fit)):
        assert_array_equal(model.weights.toarray(), fit(k).weights.toarray())


def test_solvers_of_one_problem():
    X, y = make_data()
    problem = sl1max.Problem(X, y, beta=0.2)

    def solve(k):
        solver = sl1max.Solver(problem)
        for weight in (1, 2, 3):
            solver.reweight(1 + weight * (np.arange(len(y)) % (k + 2) == 0))
            solver.step(4)
        return solver.result()

    for k, model in enumerate(run_together(solve)):
        assert_array_equal(model.weights.toarray(), solve(k).weights.toarray())


def count_in_use(work):
    """Call ``work(k)`` in several threads at once, 20 times each; how many calls were refused."""

    def repeat(k):
        refused = 0
        for _ in range(20):
            try:
                work(k)
            except RuntimeError as error:
                assert "thread of its own" in str(error) or "Solver of its own" in str(error)
                refused += 1
        return refused

    return sum(run_together(repeat))


def test_solver_in_use_by_another_thread_is_refused():
    """Without a lock this ends in a double free."""
    X, y = random_data(np.random.default_rng(0), 3000, 200, 3)
    solver = sl1max.Solver(sl1max.Problem(X, y, beta=0.2), tol=1e-12)

    def work(k):
        solver.reweight(1 + (np.arange(len(y)) % (k + 2) == 0))
        solver.step(3)

    assert count_in_use(work) > 0
    solver.reweight(None)
    assert solver.step(1000) in ("converged", "stalled")
    alone = sl1max.Solver(sl1max.Problem(X, y, beta=0.2), tol=1e-6)
    assert alone.step(1000) == "converged"
    assert abs(alone.objective - solver.objective) <= alone.dual_gap + solver.dual_gap


def core_problem(n=20_000):
    rng = np.random.default_rng(0)
    X = rng.normal(size=(n, 20))
    target = rng.random((1, n))
    columns = Columns(n, 20, None, None, X.ravel(order="F"))
    mass = np.full(n, 1 / n)
    return Problem(columns, (target * mass) @ X, np.full((1, 20), 1e-4), target, mass, pooled=False, reference=True)


def test_core_solver_in_use_by_another_thread_is_refused():
    solver = Solver(core_problem(), tol=1e-14)

    def work(k):
        (solver.restart if k % 2 else solver.expectations)()
        solver.run(2)

    assert count_in_use(work) > 0
    assert solver.run(1000) in ("converged", "stalled")


def test_row_index_made_by_threads_at_once():
    """Every thread sees the index whole or not at all."""
    X = sparse.csc_array(sparse.random(4000, 50, density=0.3, random_state=0))
    flow = np.arange(4000.0)
    rows = np.arange(4000, dtype=np.int32)
    for _ in range(5):
        columns = Columns(4000, 50, X.indptr.astype(np.int64), X.indices, X.data, by_rows=False)

        def price(k, columns=columns):
            columns.index_rows()
            assert columns.indexed_by_rows
            columns.weighted_rms(1.0 + k % 2 * flow)
            return columns.price(rows, flow, 0.0)

        for mean in run_together(price):
            np.testing.assert_allclose(mean, flow @ X, rtol=1e-12)


def test_problem_shared_by_threads():
    problem = core_problem()
    alone = Solver(problem, tol=1e-10)
    alone.run(100)

    def solve(k):
        solver = Solver(problem, tol=1e-10)
        solver.run(100)
        return solver.weights

    for weights in run_together(solve):
        assert_array_equal(weights, alone.weights)


def test_predictions_of_one_model():
    X, y = make_data()
    model = sl1max.fit(X, y)
    expected = sl1max.fit(X, y).predict_proba(X)
    for proba in run_together(lambda k: model.predict_proba(X, n_jobs=2)):
        assert_array_equal(proba, expected)


@pytest.mark.skipif(not sysconfig.get_config_var("Py_GIL_DISABLED"), reason="not a free-threaded Python")
def test_the_gil_stays_off():
    suffix = sysconfig.get_config_var("EXT_SUFFIX")
    files = [path for folder in sl1max._core.__path__ for path in Path(folder).glob("*" + suffix)]
    names = [path.name.removesuffix(suffix) for path in files] or ["_boosting", "_solver", "_svmlight"]
    modules = ["sl1max.cython_api", *(f"sl1max._core.{name}" for name in names)]
    code = f"import sys, {', '.join(modules)}; assert not sys._is_gil_enabled()"
    subprocess.run([sys.executable, "-P", "-W", "error", "-c", code], check=True)
