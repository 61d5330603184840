"""Threads: two that share a problem, a model or a matrix get what one alone gets; two on one solver are told so."""

from __future__ import annotations

import threading

import numpy as np
from problems import MODELS
from scipy import sparse

import sl1max
from fuzz.campaign import Campaign, Finding, check, check_equal_models

DATA_SHAPES = ((60, 12, 3), (400, 60, 4))


def make(rng):
    distribution, label_mode = MODELS[rng.integers(len(MODELS))]
    n_samples, n_features, n_classes = DATA_SHAPES[rng.integers(len(DATA_SHAPES))]
    X = (rng.random((n_samples, n_features)) < 0.2).astype(float)
    if rng.random() < 0.5:
        X *= rng.normal(size=X.shape)
    y = rng.integers(0, n_classes, n_samples)
    y[:n_classes] = np.arange(n_classes)
    X = X if rng.random() < 0.3 else sparse.csc_array(X)
    return X, y, {"distribution": distribution, "label_mode": label_mode, "beta": 0.1}


def together(*functions):
    """Call functions at once, each in a thread of its own; their results, or the errors that ended them."""
    barrier = threading.Barrier(len(functions))
    results = [None] * len(functions)

    def call(k):
        barrier.wait()
        try:
            results[k] = functions[k]()
        except Exception as error:
            results[k] = error

    threads = [threading.Thread(target=call, args=(k,)) for k in range(len(functions))]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    return results


def run_to_end(problem, solver="auto"):
    steps = sl1max.Solver(problem, solver=solver, tol=1e-6)
    while steps.step(3) == "running":
        pass
    return steps.result()


def share_problem(rng):
    """Each thread has a solver of its own, of one problem."""
    X, y, options = make(rng)
    problem = sl1max.Problem(X, y, **options)
    alone = run_to_end(sl1max.Problem(X, y, **options))
    for result in together(*[lambda: run_to_end(problem)] * int(rng.integers(2, 5))):
        if isinstance(result, Exception):
            raise result
        check_equal_models(result, alone, "solvers of one problem")
    return "problem shared"


def share_solver(rng):
    """One solver for two threads: each call works, or raises a clear RuntimeError; the solver goes on."""
    X, y, options = make(rng)
    problem = sl1max.Problem(X, y, **options)
    solver = sl1max.Solver(problem, tol=1e-6)
    weight = rng.uniform(0.5, 2, len(y))
    errors = []

    def use(k):
        def call():
            for i in range(10):
                try:
                    match (i + k) % 5:
                        case 0:
                            solver.reweight(weight)
                        case 1:
                            solver.result()
                        case 2:
                            solver.set_beta(0.2)
                        case 3:
                            solver.weights(y[0])
                        case _:
                            solver.step(2)
                except RuntimeError as error:
                    errors.append(error)
                except ValueError as error:
                    if "no weights of its own" not in str(error):
                        raise

        return call  # fmt: skip

    for result in together(*[use(int(k)) for k in rng.integers(0, 5, rng.integers(2, 4))]):
        if isinstance(result, Exception):
            raise result
    for error in errors:
        check("in use by another thread" in str(error), f"{type(error).__name__}: {error}")
    solver.reweight(None)
    solver.set_beta(options["beta"])
    for _ in range(1000):
        if solver.step(10) != "running":
            break
    again, alone = solver.result(), run_to_end(problem)
    allowed = again.dual_gap + alone.dual_gap + 1e-9
    check(np.all(np.abs(again.objective - alone.objective) <= allowed), "after two threads the solver goes elsewhere")
    return "solver shared, refused" if errors else "solver shared"


def share_model(rng):
    """Predictions and fits side by side."""
    X, y, options = make(rng)
    model = sl1max.fit(X, y, **options)
    expected = model.predict_proba(X)
    fresh = sl1max.fit(X, y, **options)

    def predict():
        if not np.array_equal(fresh.predict_proba(X), expected):
            raise Finding("another thread's prediction differs")
        fresh.predict_top_k(X, 2)
        return fresh.predict(X)

    def fit():
        check_equal_models(sl1max.fit(X, y, **options, n_jobs=2), model, "fits side by side")

    for result in together(predict, fit, predict, fit):
        if isinstance(result, Exception):
            raise result
    check(np.array_equal(model.predict_proba(X), expected), "predictions differ")
    return "model shared"


def set_up(folder):
    cases = share_problem, share_solver, share_model
    return lambda rng: cases[rng.integers(len(cases))](rng)


CAMPAIGN = Campaign(set_up, share=0.7)
