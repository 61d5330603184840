"""Comparisons of sl1max with itself: ``python -m bars`` or ``ci/bench bars``.

On all 90 topics of Reuters-21578, or on made data where that is absent: two threads against one, the default solver
against the paper's own algorithm, time over the number of rows, predictions against scikit-learn's. On made data: dense
columns against CSR of the same matrix, small tolerances against the default one, exclusive against independent classes.
Times are medians of runs that take turns.
"""

import argparse
import functools
import os
import statistics
import time
from collections.abc import Callable
from typing import NamedTuple

os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")  # set before numpy is imported

import scipy.sparse as sp
from benchmarks.made_data import made_indicator, made_text, made_zipf
from peers.problems import data_dir, made_dense, made_dense_exclusive
from sklearn.linear_model import LogisticRegression

import sl1max
from sl1max.datasets import fetch_reuters21578

SHARES = (0.25, 0.5, 1.0)  # of the rows


class Task(NamedTuple):
    X: sp.csr_array
    Y: sp.csr_array
    X_test: sp.csr_array


def load(quick) -> Task:
    if quick or data_dir() is None:
        size = (600, 500, 5) if quick else (8000, 20000, 90)
        X, y = made_text(*size)
        n_train = 3 * size[0] // 4
        return Task(X[:n_train], made_indicator(y, size[2])[:n_train], X[n_train:])
    os.environ["SL1MAX_DATA"] = str(data_dir())
    data = fetch_reuters21578("unigram", download_if_missing=False)
    return Task(data.X_train, data.y_train, data.X_test)


def seconds_of(ways: dict[str, Callable], runs: int) -> dict[str, float]:
    """Measure each function in alternation; return median seconds."""
    found = {name: [] for name in ways}
    for _ in range(runs):
        for name, way in ways.items():
            start = time.perf_counter()
            way()
            found[name].append(time.perf_counter() - start)
    return {name: statistics.median(times) for name, times in found.items()}


def fit(task: Task, distribution="conditional", label_mode="independent", share=1.0, **options):
    n_rows = round(share * task.X.shape[0])
    return sl1max.fit(
        task.X[:n_rows], task.Y[:n_rows], distribution=distribution, label_mode=label_mode, beta=0.5, **options
    )


def compare_threads(task, runs):
    times = seconds_of({str(n): functools.partial(fit, task, n_jobs=n) for n in (1, 2)}, runs)
    yield "two threads against one, conditional, independent, gap 1e-4", times["1"], times["2"], 1.7


def compare_algorithms(task, runs, tol=1e-6):
    """Compare the solvers; the paper's algorithm is run once, since it takes minutes."""
    for distribution, label_mode in (
        ("class-conditional", "exclusive"),
        ("joint", "exclusive"),
        ("joint", "independent"),
    ):
        ways = {
            solver: functools.partial(fit, task, distribution, label_mode, tol=tol, solver=solver)
            for solver in ("sequential", "auto")
        }
        times = seconds_of(ways, 1)
        yield (
            f"against sequential updates, {distribution}, {label_mode}, {tol:g}",
            times["sequential"],
            times["auto"],
            10,
        )


def compare_predictions(task, runs):
    """Compare predictions of sl1max and of scikit-learn with the same weights."""
    ours = fit(task)
    theirs = LogisticRegression()
    theirs.coef_, theirs.intercept_ = ours.weights.toarray(), ours.intercept
    theirs.classes_ = ours.classes
    X = sp.csr_matrix(task.X_test, dtype=float)
    ways = {"ours": lambda: ours.predict_top_k(X, 1), "theirs": lambda: theirs.predict(X)}
    times = seconds_of(ways, max(10 * runs, 20))
    yield "top class of the test set, against scikit-learn's predict", times["theirs"], times["ours"], 3


def compare_rows(task, runs):
    """Compare the time per row on a part of the rows with that on all rows; below one if time grows faster than the
    number of rows."""
    times = seconds_of({str(share): functools.partial(fit, task, share=share) for share in SHARES}, runs)
    for share in SHARES[:-1]:
        yield f"time a row, {share:g} of the rows against all", times[str(share)] / share, times["1.0"], 1


def compare_dense(task, runs):
    """One class-conditional model of dense columns, and of the same matrix in CSR format."""
    quick = task.X.shape[0] < 1000
    X, y = made_dense(500, 20) if quick else made_dense(50000, 50)
    options = {"distribution": "class-conditional", "beta_rule": "count", "beta": 1.0}
    ways = {
        "csr": functools.partial(sl1max.fit, sp.csr_matrix(X), y, **options),
        "dense": functools.partial(sl1max.fit, X, y, **options),
    }
    times = seconds_of(ways, runs)
    yield "dense columns against CSR, class-conditional, gap 1e-4", times["csr"], times["dense"], 3


def compare_tolerances(task, runs):
    """Time to a gap of 1e-8 against that to 1e-4; dense exclusive classes."""
    quick = task.X.shape[0] < 1000
    X, y = made_dense_exclusive(400, 60, 3) if quick else made_dense_exclusive(20000, 100, 5)
    for C in (0.1, 1.0, 10.0):
        ways = {
            str(tol): functools.partial(sl1max.fit, X, y, beta=1 / C, beta_rule="count", tol=tol)
            for tol in (1e-4, 1e-8)
        }
        times = seconds_of(ways, runs)
        yield f"gap 1e-4 against 1e-8, dense exclusive, C = {C:g}", times["0.0001"], times["1e-08"], 0.67


def compare_label_modes(task, runs):
    """Exclusive classes against independent ones: 200 classes of made text."""
    X, y = made_zipf(600, 300, 10) if task.X.shape[0] < 1000 else made_zipf()
    ways = {mode: functools.partial(sl1max.fit, X, y, label_mode=mode) for mode in ("independent", "exclusive")}
    times = seconds_of(ways, runs)
    yield "independent against exclusive, zipf200, gap 1e-4", times["independent"], times["exclusive"], 0.33


COMPARISONS = {
    "threads": compare_threads,
    "predictions": compare_predictions,
    "rows": compare_rows,
    "algorithms": compare_algorithms,
    "dense": compare_dense,
    "tolerances": compare_tolerances,
    "label modes": compare_label_modes,
}


def main(arguments=None):
    parser = argparse.ArgumentParser(prog="ci/bench bars", description=__doc__)
    parser.add_argument("--runs", type=int, default=3)
    parser.add_argument("--quick", action="store_true", help="small made data")
    parser.add_argument("--only", nargs="*", choices=COMPARISONS, default=list(COMPARISONS), help="some of them")
    options = parser.parse_args(arguments)
    task = load(options.quick)
    print("| what | seconds | sl1max | ratio | bar |\n|---|---:|---:|---:|---:|")
    for name in options.only:
        for what, other, ours, bar in COMPARISONS[name](task, options.runs):
            print(f"| {what} | {other:.4g} | {ours:.4g} | {other / ours:.1f} | {bar} |", flush=True)


if __name__ == "__main__":
    main()
