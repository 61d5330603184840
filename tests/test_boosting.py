"""Boosting: the core against its twin, and the properties that the bound promises."""

import signal
import threading
import time

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from reference_boosting import BoostTwin
from scipy import sparse
from strategies import random_X

from sl1max._core._boosting import Booster
from sl1max.inputs import core_buffers


def make_twin(seed, n_samples=60, n_features=12, values="binary", **options):
    rng = np.random.default_rng(seed)
    X = random_X(rng, n_samples, n_features, values)
    sign = np.where(X[:, 0] + X[:, -1] + 0.5 * rng.normal(size=n_samples) > 0.7, 1.0, -1.0)
    mass = rng.integers(1, 4, n_samples)
    return BoostTwin(X, sign, mass / mass.sum(), **options)


def make_booster(twin, dense=False, **options):
    X = np.asfortranarray(twin.X) if dense else sparse.csc_array(twin.X)
    binary = not dense and bool((X.data == 1).all())
    extent = np.append(np.abs(twin.X).max(axis=0), 1.0)
    return Booster(
        core_buffers(X, binary), extent, twin.sign * twin.mass, exponential=twin.exponential,
        intercept=twin.intercept, smoothing=twin.smoothing, **options,
    )  # fmt: skip


def run_rounds(booster, n_rounds):
    """(coordinate, delta, gain) of each round, the losses, and the last status."""
    rounds, losses, status = [], [booster.objective], "running"
    while len(rounds) < n_rounds:
        status = booster.run(1)
        if status != "running":
            break
        rounds.append(booster.last_step)
        losses.append(booster.objective)
    return rounds, losses, status


def check_rounds(found, expected):
    assert [j for j, _, _ in found] == [j for j, _, _ in expected]
    np.testing.assert_allclose([step[1:] for step in found], [step[1:] for step in expected], rtol=1e-7)


TWINS = st.builds(
    make_twin,
    seed=st.integers(0, 10**6),
    n_features=st.sampled_from([1, 5, 30, 150]),
    values=st.sampled_from(["binary", "unit", "real"]),
    exponential=st.booleans(),
    intercept=st.booleans(),
    smoothing=st.sampled_from([1e-3, 0.01, 0.1]),
)


@given(twin=TWINS, dense=st.booleans(), partial=st.booleans())
def test_steps_are_those_of_the_twin(twin, dense, partial):
    booster = make_booster(twin, dense, pricing="partial" if partial else "full")
    found, losses, _ = run_rounds(booster, 20)
    expected, expected_losses = twin.run(20, partial)
    check_rounds(found, expected)
    np.testing.assert_allclose(losses, expected_losses, rtol=1e-9)


@given(twin=TWINS)
def test_no_step_decreases_less_than_promised(twin):
    rounds, losses, _ = run_rounds(make_booster(twin), 60)
    decrease = -np.diff(losses)
    gains = np.array([gain for _, _, gain in rounds])
    assert (gains > 0).all()
    assert (decrease >= gains - 1e-14).all()
    if twin.exponential and set(np.unique(twin.X)) <= {0.0, 1.0}:
        np.testing.assert_allclose(decrease, gains, rtol=1e-9, atol=1e-14)


def test_first_step_by_hand():
    # W+ = 3/8, W- = 1/8 of logistic weights: delta = ln(3) / 2.
    X = np.array([[1.0], [1], [1], [1]])
    sign = np.array([1.0, 1, 1, -1])
    booster = make_booster(BoostTwin(X, sign, np.full(4, 0.25), intercept=False))
    assert booster.objective == booster.objective_zero == pytest.approx(np.log(2))
    assert booster.run(1) == "running"
    j, delta, gain = booster.last_step
    assert (j, delta) == (0, pytest.approx(np.log(3) / 2))
    assert gain == pytest.approx((np.sqrt(3 / 8) - np.sqrt(1 / 8)) ** 2)


def test_intercept_alone_reaches_the_log_odds():
    twin = BoostTwin(np.zeros((8, 2)), np.array([1.0] * 6 + [-1] * 2), np.full(8, 1 / 8))
    booster = make_booster(twin)
    assert booster.run(1000) == "stalled"
    np.testing.assert_allclose(booster.coefficients(), [0, 0, np.log(3)], atol=1e-6)
    exponential = make_booster(BoostTwin(twin.X, twin.sign, twin.mass, exponential=True))
    assert exponential.run(10) == "stalled"
    np.testing.assert_allclose(exponential.coefficients(), [0, 0, np.log(3) / 2])


def test_separating_feature_without_smoothing():
    """W- = 0 has no finite minimiser: the step is cut off."""
    sign = np.array([1.0, 1, -1, -1])
    for exponential in (False, True):
        booster = make_booster(BoostTwin(sign[:, None].copy(), sign, np.full(4, 0.25), exponential, False))
        assert booster.run(5) in ("running", "stalled")
        assert booster.coefficients()[0] >= 30
        assert 0 <= booster.objective < 1e-12


def test_tiny_and_empty_columns_are_left_alone():
    twin = make_twin(0)
    twin.X[:, 3] = 0
    twin.X[:, 4] *= 1e-300
    booster = make_booster(twin)
    booster.run(200)
    weights = booster.coefficients()
    assert np.isfinite(weights).all() and weights[3] == weights[4] == 0


def test_steps_add_up_and_runs_continue():
    twin = make_twin(1, n_features=150, smoothing=0.01)
    once, pieces = make_booster(twin), make_booster(twin)
    once.run(100)
    for n in (1, 9, 0, 40, 50):
        pieces.run(n)
    np.testing.assert_array_equal(once.coefficients(), pieces.coefficients())
    cols, deltas = pieces.steps()
    assert pieces.n_iter == len(cols) == pieces.counters["updates"] == 100
    np.testing.assert_allclose(np.bincount(cols, deltas, minlength=151), once.coefficients(), atol=1e-12)


def test_partial_pricing_walks_fewer_columns():
    twin = make_twin(2, n_samples=200, n_features=1000, smoothing=0.01)
    partial, full = make_booster(twin), make_booster(twin, pricing="full")
    partial.run(200), full.run(200)
    assert partial.counters["column_walks"] < 0.5 * full.counters["column_walks"]
    assert partial.objective < 1.2 * full.objective


def test_stop_flag():
    booster = make_booster(make_twin(3))
    assert booster.run(10, np.ones(1, np.int32)) == "interrupted"
    assert booster.n_iter == 0


def test_ctrl_c():
    booster = make_booster(make_twin(4, n_samples=500, n_features=2000, values="real", smoothing=1e-3))
    threading.Timer(0.2, signal.raise_signal, (signal.SIGINT,)).start()
    start = time.monotonic()
    with pytest.raises(KeyboardInterrupt):
        booster.run(10**8)
    assert time.monotonic() - start < 3
    assert len(booster.steps()[0]) == booster.n_iter > 0
