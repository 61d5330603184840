"""The general penalty of a weight: its functions one by one, then problems solved with it."""

from dataclasses import replace

import numpy as np
import pytest
import reference as ref
from hypothesis import given
from hypothesis import strategies as st
from numpy.testing import assert_allclose, assert_array_equal
from problems import make_columns, make_solver
from scipy.optimize import minimize_scalar
from strategies import NORMALIZERS, random_data, random_twin

from sl1max._core import _probes as probes
from sl1max._core._solver import Problem

widths = st.one_of(st.just(0.0), st.floats(1e-3, 2))
l2s = st.one_of(st.just(0.0), st.floats(1e-3, 5))
ends = st.one_of(st.sampled_from([0.0, np.inf]), st.floats(0.01, 5))
penalties = st.tuples(widths, widths, l2s, ends.map(lambda x: -x), ends)
numbers = st.floats(-4, 4)
means = st.floats(0.001, 0.999)


def value(penalty, x):
    lower, upper, l2, _, _ = penalty
    return lower * max(x, 0) + upper * max(-x, 0) + 0.5 * l2 * x**2


def within(penalty, x):
    return float(np.clip(x, penalty[3], penalty[4]))


def least(function, low, high):
    """The minimum of a convex function on an interval, by search on both sides of zero."""
    found = [function(x) for x in (low, high, 0.0) if low <= x <= high]
    for a, b in ((low, min(high, 0.0)), (max(low, 0.0), high)):
        if a < b:
            found.append(minimize_scalar(function, bounds=(a, b), method="bounded", options={"xatol": 1e-11}).fun)
    return min(found)


@given(penalties, numbers, st.floats(-5, 5))
def test_penalty_change(penalty, lam, delta):
    expected = value(penalty, lam + delta) - value(penalty, lam)
    assert_allclose(probes.penalty_change(lam, delta, penalty), expected, rtol=1e-12, atol=1e-12)
    assert_allclose(probes.penalty_value(penalty, lam), value(penalty, lam), rtol=1e-13)


@given(penalties, numbers)
def test_conjugate_is_the_greatest_difference(penalty, u):
    lower, upper, l2, low, high = penalty
    expected = ref.conjugate(penalty, u)
    if np.isinf(expected):
        assert probes.conjugate(penalty, u) == 0  # the mixing sees to it
        assert probes.needed_mixing(penalty, -u) == pytest.approx(1 - (lower if u > 0 else upper) / abs(u))
        return
    reach = abs(u) / l2 if l2 > 0 else 0.0
    bound = -least(lambda x: value(penalty, x) - u * x, max(low, -reach if l2 else -9), min(high, reach if l2 else 9))
    assert_allclose(probes.conjugate(penalty, u), expected, rtol=1e-12, atol=1e-15)
    assert_allclose(expected, bound, rtol=1e-6, atol=1e-9)
    assert probes.needed_mixing(penalty, -u) == 0


@given(penalties, numbers, numbers)
def test_slackness_is_not_negative(penalty, x, u):
    lam = within(penalty, x)
    slackness = probes.slackness(penalty, lam, u)
    assert slackness >= 0
    if np.isfinite(ref.conjugate(penalty, u)):
        expected = value(penalty, lam) + ref.conjugate(penalty, u) - lam * u
        assert_allclose(slackness, expected, rtol=1e-9, atol=1e-12)


@given(penalties, numbers, numbers)
def test_violation_is_the_distance_from_the_subdifferential(penalty, gradient, x):
    lower, upper, l2, low, high = penalty
    lam = within(penalty, x)
    first, last = (lower, lower) if lam > 0 else (-upper, -upper) if lam < 0 else (-upper, lower)
    first, last = (-np.inf if lam <= low else first), (np.inf if lam >= high else last)
    total = gradient + l2 * lam
    expected = abs(total + np.clip(-total, first, last))
    assert_allclose(probes.violation(gradient, penalty, lam), expected, rtol=1e-12, atol=1e-14)


@given(penalties, numbers, st.floats(1e-3, 10), numbers)
def test_minimise_quadratic(penalty, slope, curvature, x):
    lam = within(penalty, x)
    delta = probes.minimise_quadratic(slope, curvature, penalty, lam)
    assert within(penalty, lam + delta) == pytest.approx(lam + delta, abs=1e-12)

    def model(new):
        return slope * (new - lam) + curvature / 2 * (new - lam) ** 2 + value(penalty, new)

    best = least(model, max(penalty[3], -1e4), min(penalty[4], 1e4))
    assert model(lam + delta) <= best + 1e-9 * (1 + abs(best))


@pytest.mark.parametrize("kind", ["paper", "concordant"])
@given(penalties, means, means, st.floats(1e-3, 2), st.floats(0.1, 5), numbers)
def test_step_minimises_its_bound(kind, penalty, p, q, curvature, reach, x):
    lam = within(penalty, x)
    if kind == "paper":
        delta, gain = probes.paper_step(p, q, penalty, lam)
        longest = probes.MAX_STEP

        def bound(delta):
            return probes.paper_bound(delta, p, q, penalty, lam)
    else:
        delta, gain = probes.concordant_step(p, q, curvature, reach, penalty, lam)
        longest = probes.MAX_STEP / reach

        def bound(delta):
            return probes.concordant_bound(delta, q - p, curvature, reach, penalty, lam)

    assert within(penalty, lam + delta) == pytest.approx(lam + delta, abs=1e-12)
    low, high = max(penalty[3], lam - longest), min(penalty[4], lam + longest)
    best = least(lambda new: bound(new - lam), low, high)
    assert gain >= 0
    assert_allclose(gain, max(-best, 0.0), rtol=1e-6, atol=1e-9)


# ------------------------------------------------------------------------------------------------- problems

KINDS = {
    "elastic net": lambda rng, beta: {"l2": beta * rng.choice([0.01, 1, 10])},
    "asymmetric": lambda rng, beta: {"beta_upper": beta * rng.uniform(0, 3, beta.shape)},
    "positive": lambda rng, beta: {"beta_upper": np.full_like(beta, np.inf)},
    "limits": lambda rng, beta: {
        "low": -rng.uniform(0, 1, beta.shape) * (rng.random(beta.shape) < 0.8), "high": rng.uniform(0, 0.5, beta.shape),
    },
    "ridge": lambda rng, beta: {"beta": 0 * beta, "l2": beta * rng.choice([0.01, 1, 10])},
    "positive without beta": lambda rng, beta: {
        "beta": 0 * beta, "beta_upper": np.full_like(beta, np.inf), "high": np.full_like(beta, 3.0),
    },
    "all": lambda rng, beta: {
        "beta": np.where(rng.random(beta.shape) < 0.3, np.inf, beta),
        "beta_upper": np.where(rng.random(beta.shape) < 0.3, np.inf, beta),
        "l2": beta * rng.choice([0, 1], beta.shape), "high": np.where(rng.random(beta.shape) < 0.3, 0.2, np.inf),
    },
}  # fmt: skip


def general_twin(seed, normalizer, kind, values="binary"):
    rng = np.random.default_rng(seed)
    X, y = random_data(rng, int(rng.integers(20, 100)), int(rng.integers(2, 30)), 3, values)
    twin = random_twin(rng, X, y, normalizer, beta=rng.choice([0.1, 0.5, 2]), intercept=bool(seed % 3))
    return replace(twin, **KINDS[kind](rng, twin.beta))


def assert_solved(twin, solver, tol):
    best = ref.oracle(twin)
    rounding = 1e-12 * (1 + abs(solver.objective_zero))
    lam = solver.weights[:, :-1]
    assert_allclose(solver.objective, twin.objective(lam, solver.intercept()), rtol=1e-11)
    assert solver.objective - best.objective <= solver.dual_gap + rounding
    assert solver.dual_gap <= tol * abs(solver.objective_zero)
    _, _, _, low, high = twin.general
    assert (lam >= low).all() and (lam <= high).all()


@pytest.mark.parametrize("values", ["binary", "real"])
@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("normalizer", NORMALIZERS)
def test_newton_reaches_the_optimum(normalizer, kind, values):
    for seed in range(3):
        twin = general_twin(seed, normalizer, kind, values)
        solver = make_solver(twin, tol=1e-8)
        assert solver.run(300) == "converged"
        assert_solved(twin, solver, 1e-8)


@pytest.mark.parametrize("kind", ["elastic net", "asymmetric", "positive", "limits"])
def test_sequential_reaches_the_optimum(kind):
    for seed, normalizer in enumerate(NORMALIZERS):
        twin = general_twin(seed, normalizer, kind)
        solver = make_solver(twin, algorithm="sequential", tol=1e-3)
        assert solver.run(20_000) == "converged"
        assert_solved(twin, solver, 1e-3)


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("normalizer", NORMALIZERS)
def test_gap_is_the_general_certificate(normalizer, kind):
    """At weights near the optimum, with the mixing that the solver chose, and no worse than with the interval's."""
    twin = general_twin(1, normalizer, kind)
    best = ref.oracle(twin)
    _, _, _, low, high = twin.general
    for shrink in (1.0, 0.99, 0.5):
        lam = np.clip(best.lam * shrink, low, high)
        b = ref.solve_intercept(twin, lam)
        blocks, cols = np.nonzero(lam)
        start = blocks.astype(np.int32), cols.astype(np.int32), lam[blocks, cols], b
        solver = make_solver(twin, warm_start=start, tol=0.0, tight=False)
        solver.run(0)
        assert solver.dual_gap >= twin.objective(lam, b) - best.objective - 1e-12
        if kind != "positive without beta":  # there more coordinates have to meet an equality than in the twin
            assert_allclose(solver.dual_gap, ref.general_gap(twin, lam, b, solver.mixing), rtol=1e-6, atol=1e-12)
        if kind == "elastic net":
            intervals = ref.certificate(twin, lam, b).t
            assert solver.dual_gap <= ref.general_gap(twin, lam, b, intervals) * (1 + 1e-9) + 1e-12


def test_weights_given_are_limited():
    twin = replace(general_twin(0, "reference", "limits"), low=None, high=np.full((1, 1), 0.25))
    start = np.zeros(1, np.int32), np.zeros(1, np.int32), np.array([2.0]), np.zeros(1)
    solver = make_solver(twin, warm_start=start)
    assert solver.weights[0, 0] == 0.25
    solver.weights[0, 0] = 7.0
    solver.restart()
    assert solver.weights[0, 0] == 0.25


def make(beta, **penalty):
    shape = np.shape(beta)
    columns = make_columns(np.array([[0.0, 1.0, 2.0], [1.0, 0.0, 1.0]]), "sparse")
    target, mass = np.array([[1.0, 0.0]]), np.full(2, 0.5)
    return Problem(columns, np.full(shape, 0.3), np.array(beta), target, mass, pooled=False, reference=True, **penalty)


def test_only_what_matters_is_kept():
    beta = np.array([[0.1, 0.2, 0.1]])
    problem = make(beta, beta_upper=beta.copy(), l2=np.zeros((1, 3)), low=np.full((1, 3), -np.inf))
    assert problem.beta_upper is problem.beta
    assert problem.l2 is None and problem.low is None and problem.high is None


def test_infinite_costs_are_limits_of_zero():
    inf = np.inf
    problem = make(np.array([[0.01, inf, inf]]), beta_upper=np.array([[inf, 0.02, inf]]))
    assert_array_equal(problem.beta[0], [0.01, 0.02, inf, inf])
    assert_array_equal(problem.low[0, :2], [0, -inf])
    assert_array_equal(problem.high[0, :2], [inf, 0])
