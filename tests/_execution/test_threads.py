"""Python threads that train and predict side by side get what each would get alone; with and without the GIL."""

import subprocess
import sys
import sysconfig
import threading
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest
from numpy.testing import assert_array_equal
from strategies import random_data

import sl1max

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


@pytest.mark.parametrize(("distribution", "classes"), MODELS)
def test_fits_side_by_side(distribution, classes):
    X, y = make_data()

    def fit(k):
        return sl1max.fit(X, y, distribution=distribution, classes=classes, beta=0.1 * (k + 1))

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


def test_predictions_of_one_model():
    X, y = make_data()
    model = sl1max.fit(X, y)
    expected = sl1max.fit(X, y).proba(X)
    for proba in run_together(lambda k: model.proba(X, n_jobs=2)):
        assert_array_equal(proba, expected)


@pytest.mark.skipif(not sysconfig.get_config_var("Py_GIL_DISABLED"), reason="not a free-threaded Python")
def test_the_gil_stays_off():
    modules = ["sl1max.cython_api", *(f"sl1max._core.{name}" for name in ("_boosting", "_solver", "_svmlight"))]
    code = f"import sys, {', '.join(modules)}; assert not sys._is_gil_enabled()"
    subprocess.run([sys.executable, "-P", "-W", "error", "-c", code], check=True)
