"""Sums on one side of every knot, and sums of products, against their definitions."""

from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from numpy.testing import assert_allclose, assert_array_equal

from sl1max._core._knots import bin_masses, product_sums, sums_above, sums_below


def sums(function, values, binned, knots):
    out = np.empty((3, len(knots)))
    function(values, binned, knots, *out)
    return out


def sums_by_hand(values, masses, knots, sign):
    """The same in exact arithmetic."""
    triples = []
    for knot in map(Fraction, knots):
        pairs = [(Fraction(m), sign * (Fraction(v) - knot)) for v, m in zip(values, masses, strict=True)]
        pairs = [(m, d) for m, d in pairs if d > 0]
        triples.append([float(sum(m * d**power for m, d in pairs)) for power in range(3)])
    return np.array(triples).reshape(-1, 3).T


@given(
    st.lists(st.integers(-20, 20), min_size=1, max_size=30, unique=True),
    st.lists(st.integers(-25, 25), max_size=12, unique=True),
)
def test_sums_equal_their_definition(values, knots):
    values, knots = np.sort(np.array(values, float)), np.sort(np.array(knots, float))
    masses = 1.0 + np.arange(len(values)) % 3
    for function, sign in ((sums_above, 1), (sums_below, -1)):
        assert_allclose(sums(function, values, masses, knots), sums_by_hand(values, masses, knots, sign), rtol=1e-13)


@pytest.mark.parametrize(("function", "sign"), [(sums_above, 1), (sums_below, -1)])
def test_sums_keep_their_digits_far_from_zero(function, sign):
    rng = np.random.default_rng(0)
    values = np.sort(1e5 + rng.random(300))
    masses, knots = rng.random(300), (values[1:] + values[:-1]) / 2
    assert_allclose(sums(function, values, masses, knots), sums_by_hand(values, masses, knots, sign), rtol=300 * 2**-52)


def test_sums_without_squares():
    values, knots = np.arange(5.0), np.array([0.5, 2.5])
    mass, first = np.empty((2, 2))
    sums_above(values, np.ones(5), knots, mass, first)
    assert_array_equal(mass, [4, 2])
    assert_array_equal(first, [0.5 + 1.5 + 2.5 + 3.5, 0.5 + 1.5])


def test_masses_are_added_up_in_bins():
    binned = np.full(4, 7.0)
    bin_masses(np.array([2, 0, 2], np.int32), np.array([0.5, 1.0, 0.25]), binned)
    assert_array_equal(binned, [1, 0, 0.75, 0])


@pytest.mark.parametrize("n", [1, 2, 7, 8])
def test_product_sums_equal_their_definition(n):
    rng = np.random.default_rng(n)
    points, mass = np.asfortranarray(rng.normal(size=(n, 3))), rng.random(n)
    first, second, low = np.array([0, 0, 1], np.int32), np.array([1, 2, 1], np.int32), np.array([-1.0, 0.0, 2.0])
    out = np.empty(3)
    product_sums(points, mass, first, second, low, out)
    assert_allclose(out, mass @ (points[:, first] * points[:, second] - low), rtol=1e-13)
