"""Iterative scaling, which the benchmark compares with: its steps descend, and end where L-BFGS does."""

import sys
from pathlib import Path

import numpy as np
import pytest
import scipy.sparse as sp

sys.path.insert(0, str(Path(__file__).resolve().parents[2] / "asv_bench"))

iterative_scaling = pytest.importorskip("iterative_scaling")
Problem, gis, iis, lbfgs = (getattr(iterative_scaling, name) for name in ("Problem", "gis", "iis", "lbfgs"))


def make_problem(n_samples=60, n_features=6, n_classes=3, seed=0, binary=True):
    rng = np.random.default_rng(seed)
    X = (rng.random((n_samples, n_features)) < 0.4).astype(float)
    if not binary:
        X *= rng.random(X.shape)
    y = rng.integers(0, n_classes, n_samples)
    l2 = np.append(np.full(n_features, 1 / n_samples), 0.0)
    return Problem(iterative_scaling.with_constant(sp.csr_array(X)), y, l2)


@pytest.mark.parametrize("method", [gis, iis])
@pytest.mark.parametrize("binary", [True, False])
def test_objective_falls_to_the_optimum(method, binary):
    problem = make_problem(binary=binary)
    trace = method(problem, max_iter=5000, tol=1e-13)
    assert np.all(np.diff(trace.objectives) <= 1e-12)
    expected = lbfgs(problem)
    assert trace.objectives[-1] == pytest.approx(expected.objectives[-1], rel=1e-8)
    np.testing.assert_allclose(trace.weights[:, :-1], expected.weights[:, :-1], atol=1e-3)


def test_improved_scaling_needs_fewer_iterations():
    problem = make_problem()
    target = lbfgs(problem).objectives[-1] * (1 + 1e-6)
    counts = [len(method(problem, max_iter=5000, tol=0.0, until=target).objectives) for method in (gis, iis)]
    assert counts[1] < counts[0]


def test_feature_that_a_class_lacks():
    """Its weight stays finite, thanks to the prior; a feature that is nowhere needs no prior to stay at 0."""
    problem = make_problem()
    dense = problem.X.toarray()
    dense[problem.y == 0, 1] = 0
    dense[:, 2] = 0
    l2 = problem.l2.copy()
    l2[2] = 0
    problem = Problem(sp.csr_array(dense), problem.y, l2)
    trace = iis(problem, max_iter=3000, tol=1e-13)
    assert np.isfinite(trace.weights).all() and (trace.weights[:, 2] == 0).all()
    assert trace.weights[0, 1] < 0


def test_objective_is_that_of_the_formula():
    problem = make_problem()
    weights = np.random.default_rng(1).normal(size=(3, problem.X.shape[1]))
    scores = problem.X.toarray() @ weights.T
    prob = np.exp(scores) / np.exp(scores).sum(axis=1, keepdims=True)
    ours, loss = problem.posterior(weights)
    np.testing.assert_allclose(ours, prob)
    assert loss == pytest.approx(-np.log(prob[np.arange(60), problem.y]).mean())


@pytest.mark.parametrize("method", [gis, iis, lbfgs])
def test_a_trace_begins_at_zero_weights(method):
    problem = make_problem()
    trace = method(problem, max_iter=5)
    assert trace.n_iter == 5 and len(trace.seconds) == 6
    assert trace.objectives[0] == pytest.approx(np.log(3))
    _, loss = problem.posterior(trace.weights)
    assert trace.objectives[-1] == pytest.approx(loss + problem.penalty(trace.weights))


def test_trace():
    trace = iterative_scaling.Trace(np.zeros(1), np.array([3.0, 2.0, 1.0]), np.array([0.1, 0.2, 0.3]))
    assert trace.seconds_to(2.5) == 0.2 and trace.seconds_to(0.5) == np.inf


def test_most_informative():
    X = np.zeros((40, 5))
    y = np.arange(40) % 2
    X[:, 3] = y
    X[:20, 1] = 1
    X[:, 4] = np.where(np.arange(40) < 30, y, 0)
    assert iterative_scaling.most_informative(sp.csr_array(X), y, 2).tolist() == [3, 4]
