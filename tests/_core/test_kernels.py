"""Every inline kernel of the core against the slow twin, through the doors of `_probes`."""

import numpy as np
import pytest
import reference as ref
from hypothesis import assume, example, given
from hypothesis import strategies as st
from numpy.testing import assert_allclose, assert_array_equal
from scipy import sparse
from strategies import NORMALIZERS, random_data, random_twin, twins

from sl1max._core import _probes as probes

FORMS = {"binary": "binary", "sparse": "real", "dense": "real"}

means = st.one_of(st.sampled_from([0.0, 1e-200, 1e-12, 0.5, 1 - 1e-12, 1.0]), st.floats(1e-200, 1))
betas = st.one_of(st.sampled_from([0.0, 1e-12, 0.5, 2.0, np.inf]), st.floats(0, 1))
lams = st.one_of(st.sampled_from([0.0, 1e-300, -1e-300]), st.floats(-5, 5))
curvatures = st.one_of(st.sampled_from([0.0, 1e-12]), st.floats(1e-6, 1e3))
reaches = st.one_of(st.sampled_from([1.0, 1e-6, 1e6]), st.floats(1e-3, 1e3))
slopes = st.floats(-10, 10)


# ------------------------------------------------------------------------------------------------- the steps


@given(st.floats(-20, 20), means, means, st.floats(0, 10), lams)
def test_paper_bound(delta, p, q, beta, lam):
    expected = ref.bound_paper(delta, p, q, lam, beta)
    assert_allclose(probes.paper_bound(delta, p, q, beta, lam), expected, rtol=1e-12, atol=1e-12)


@given(means, means, betas, lams)
def test_paper_step_is_the_twins(p, q, beta, lam):
    delta, gain = probes.paper_step(p, q, beta, lam)
    twin_delta = ref.delta_paper(p, q, lam, beta)
    clipped = np.clip(twin_delta, -probes.MAX_STEP, probes.MAX_STEP)
    if gain > 1e-13:
        assert_allclose(delta, clipped, rtol=1e-9, atol=1e-12)
        assert_allclose(gain, -ref.bound_paper(delta, p, q, lam, beta), rtol=1e-9, atol=1e-12)
    elif beta < np.inf:
        assert ref.bound_paper(clipped, p, q, lam, beta) > -1e-12


def assert_minimises(bound, step, lam, beta, rounding=1e-12):
    """No worse than the minimum found by search, among steps that are not too long; and it says so."""
    delta, gain = step
    assert gain >= 0 and (gain > 0) == (delta != 0)
    if beta == np.inf:
        assert delta == 0 if lam == 0 else abs(lam + delta) < abs(lam)
    else:
        best = bound(ref.brute_force_delta(bound, lam, span=probes.MAX_STEP - abs(lam)))
        assert -gain <= best + rounding * (1 + abs(best))


@given(means, means, betas, lams)
@example(p=0.3, q=0.0, beta=0.1, lam=0.0)
@example(p=0.3, q=1.0, beta=0.1, lam=2.0)
@example(p=0.0, q=0.4, beta=0.0, lam=1.0)
def test_paper_step_minimises_its_bound(p, q, beta, lam):
    step = probes.paper_step(p, q, beta, lam)
    least = 1 - q + q * np.exp(-probes.MAX_STEP)  # what the logarithm is taken of, known to an ulp of one
    assert_minimises(lambda delta: ref.bound_paper(delta, p, q, lam, beta), step, lam, beta, 1e-12 + 1e-15 / least)


@given(st.floats(-5, 5), means, means, curvatures, reaches, st.floats(0, 10), lams)
def test_concordant_bound(delta, p, q, curvature, reach, beta, lam):
    assume(reach * abs(delta) < 500)
    expected = ref.bound_curvature(delta, p, q, curvature, reach, lam, beta)
    # expm1(x) - x cancels where x is small, by as much as curvature / reach^2 * x * eps
    rounding = 1e-14 * (1 + curvature / reach * abs(delta))
    assert_allclose(probes.concordant_bound(delta, q - p, curvature, reach, beta, lam), expected, 1e-12, rounding)


@given(st.floats(-3, 3), st.floats(-3, 3), st.floats(1e-6, 1e3), st.floats(1e-2, 1e2), betas, lams)
def test_concordant_step_minimises_its_bound(p, q, curvature, reach, beta, lam):
    def bound(delta):
        size = min(reach * abs(delta), 700.0)  # beyond it only grows
        return ref.bound_curvature(np.sign(delta) * size / reach, p, q, curvature, reach, lam, beta)

    assert_minimises(bound, probes.concordant_step(p, q, curvature, reach, beta, lam), lam, beta, 1e-9)


@given(means, means, st.floats(1e-6, 1e3), st.floats(1e-2, 1e2), betas, lams)
def test_concordant_step_is_the_twins(p, q, curvature, reach, beta, lam):
    delta, gain = probes.concordant_step(p, q, curvature, reach, beta, lam)
    if 1e-9 < gain < np.inf:
        assert_allclose(delta, ref.delta_curvature(p, q, curvature, reach, lam, beta), rtol=1e-9)


# Every trap of the closed forms: arguments, and delta expected.

PAPER_TRAPS = {
    "p - beta below 0, p + beta inside": ((0.1, 0.4, 0.2, 0.0), np.log(0.3 * 0.6 / (0.7 * 0.4))),
    "p - beta inside, p + beta above 1": ((0.9, 0.4, 0.2, 0.0), np.log(0.7 * 0.6 / (0.3 * 0.4))),
    "p -+ beta both outside": ((0.5, 0.9, 0.6, 0.0), 0.0),
    "p -+ beta both outside, a weight to drop": ((0.5, 0.9, 0.6, 1.5), -1.5),
    "q = 0, p above beta": ((0.3, 0.0, 0.1, 0.0), probes.MAX_STEP),
    "q = 0, p within beta": ((0.1, 0.0, 0.3, 0.0), 0.0),
    "q = 0, p within beta, a weight to drop": ((0.1, 0.0, 0.3, -2.0), 2.0),
    "q = 1, p below 1 - beta": ((0.5, 1.0, 0.1, 0.0), -probes.MAX_STEP),
    "q = 1, p within beta": ((0.95, 1.0, 0.1, 0.0), 0.0),
    "a constant column: p = q = 1": ((1.0, 1.0, 0.0, 0.0), 0.0),
    "a constant column, a weight to drop": ((1.0, 1.0, 0.1, 3.0), -3.0),
    "an absent column: p = q = 0": ((0.0, 0.0, 0.0, 0.0), 0.0),
    "absent from the class, beta = 0": ((0.0, 0.4, 0.0, 0.0), -probes.MAX_STEP),
    "absent from the class, beta > 0": ((0.0, 0.4, 0.1, 0.0), np.log(0.1 * 0.6 / (0.9 * 0.4))),
    "in the whole class, beta = 0": ((1.0, 0.4, 0.0, 0.0), probes.MAX_STEP),
    "beta = 0 at the optimum": ((0.4, 0.4, 0.0, 1.0), 0.0),
    "beta = 0": ((0.3, 0.4, 0.0, 0.0), np.log(0.3 * 0.6 / (0.7 * 0.4))),
    "beta = inf": ((0.3, 0.4, np.inf, 0.0), 0.0),
    "beta = inf, a weight to drop": ((0.3, 0.4, np.inf, 1.0), -1.0),
    "the root crosses zero: stops there": ((0.4, 0.5, 0.2, 0.1), -0.1),
}


@pytest.mark.parametrize("trap", PAPER_TRAPS)
def test_traps_of_the_paper_step(trap):
    arguments, expected = PAPER_TRAPS[trap]
    delta, gain = probes.paper_step(*arguments)
    assert_allclose(delta, expected, rtol=1e-12)
    assert gain > 0 if expected else gain == 0
    p, q, beta, lam = arguments
    if beta < np.inf:
        assert_allclose(gain, -ref.bound_paper(delta, p, q, lam, beta), rtol=1e-12, atol=1e-15)


def test_dropping_a_great_weight_of_a_certain_feature_promises_no_more_than_there_is():
    delta, gain = probes.paper_step(0.5, 1.0, 0.6, 50.0)
    assert delta == -50
    assert_allclose(gain, 50 * (1 - 0.5 + 0.6))


CONCORDANT_TRAPS = {  # (p, q, curvature, reach, beta, lam)
    "no curvature: one over reach": ((0.3, 0.0, 0.0, 2.0, 0.1, 0.0), 0.5),
    "no curvature, within beta": ((0.1, 0.0, 0.0, 2.0, 0.3, 0.0), 0.0),
    "no curvature, a weight to drop": ((0.1, 0.0, 0.0, 2.0, 0.3, 0.2), -0.2),
    "an absent column: nothing to gain": ((0.0, 0.0, 0.0, 1.0, 0.0, 0.0), 0.0),
    "reach 0: nothing to gain": ((0.3, 0.5, 0.0, 0.0, 0.1, 0.0), 0.0),
    "reach 0 with curvature": ((0.3, 0.5, 0.2, 0.0, 0.1, 0.0), 0.0),
    "beta = 0": ((0.3, 0.5, 0.2, 1.0, 0.0, 0.0), -np.log1p(0.2 / 0.2)),
    "beta = 0 at the optimum": ((0.5, 0.5, 0.2, 1.0, 0.0, 1.0), 0.0),
    "beta = inf": ((0.3, 0.5, 0.2, 1.0, np.inf, 0.0), 0.0),
    "beta = inf, a weight to drop": ((0.3, 0.5, 0.2, 1.0, np.inf, 1.0), -1.0),
    "tiny curvature: the longest step": ((0.9, 0.1, 1e-300, 1.0, 0.1, 0.0), probes.MAX_STEP),
    "the root crosses zero: stops there": ((0.4, 0.5, 0.2, 1.0, 0.2, 0.1), -0.1),
    "negative values": ((-3.0, -1.0, 2.0, 4.0, 0.5, 0.0), -np.log1p(4 * 1.5 / 2) / 4),
}


@pytest.mark.parametrize("trap", CONCORDANT_TRAPS)
def test_traps_of_the_concordant_step(trap):
    arguments, expected = CONCORDANT_TRAPS[trap]
    delta, gain = probes.concordant_step(*arguments)
    if trap != "tiny curvature: the longest step":  # its bound is not below zero so far out
        assert_allclose(delta, expected, rtol=1e-12)
        assert gain > 0 if expected else gain == 0
    assert np.isfinite(delta) and gain >= 0


@given(means, means)
def test_paper_root_gives_the_mean_asked_for(r, q):
    delta = probes.paper_root(r, q)
    assert abs(delta) <= probes.MAX_STEP
    if 0 < r < 1 and 0 < q < 1 and abs(delta) < probes.MAX_STEP:
        tilted = q * np.exp(delta) / (1 - q + q * np.exp(delta))
        assert_allclose(tilted, r, rtol=1e-9)
        assert_allclose(1 - tilted, 1 - r, rtol=1e-3, atol=1e-15)


@given(slopes, st.floats(1e-3, 1e3), betas, lams)
def test_minimise_quadratic(slope, curvature, beta, lam):
    def model(delta):
        return slope * delta + curvature / 2 * delta**2 + ref.penalty_change(delta, lam, beta)

    delta = probes.minimise_quadratic(slope, curvature, beta, lam)
    if beta == np.inf:
        assert delta == -lam
        return
    best = model(ref.brute_force_delta(model, lam, span=2e4))
    assert model(delta) <= best + 1e-12 * (1 + abs(best))


@given(slopes, st.floats(0, 5), lams)
def test_violation(gradient, beta, lam):
    low, high = (beta, beta) if lam > 0 else (-beta, -beta) if lam < 0 else (-beta, beta)
    nearest = np.clip(-gradient, low, high)  # the subgradient of beta |lam| that cancels most
    assert_allclose(probes.violation(gradient, beta, lam), abs(gradient + nearest), atol=1e-15)


def test_penalty_change():
    assert probes.penalty_change(1.0, -3.0, 0.5) == 0.5
    assert probes.penalty_change(-1.0, 1.0, 0.5) == -0.5


@given(st.lists(st.floats(-708, 709), max_size=40))
def test_exp_all(values):
    """As numpy's, whatever the lane."""
    assert_allclose(probes.exp_all(np.array(values)), np.exp(values), rtol=4.5e-16)


def test_exp_all_at_its_ends():
    values = [-np.inf, -1e300, -708.1, -708.0, -0.0, 0.0, 1e-300, 709.0, 710.0, np.inf]
    found = probes.exp_all(np.array(values))
    assert_array_equal(found[:3], 0.0)
    assert_array_equal(found[4:7], 1.0)
    assert_allclose(found[[3, 7]], np.exp([-708.0, 709.0]), rtol=4.5e-16)
    assert_array_equal(found[8:], found[7])
    assert np.isnan(probes.exp_all(np.full(5, np.nan))).all()


@given(st.lists(st.floats(-5, 5), min_size=1, max_size=60), st.data())
def test_kth_largest(values, data):
    k = data.draw(st.integers(0, len(values) - 1))
    assert probes.kth_largest(values, k) == sorted(values, reverse=True)[k]


@pytest.mark.parametrize("values", [[1.0] * 50, list(range(50)), list(range(50, 0, -1)), [0.0, 1.0] * 25])
def test_kth_largest_of_orders_that_slow_quickselect(values):
    found = [probes.kth_largest(values, k) for k in range(len(values))]
    assert found == sorted(values, reverse=True)


def test_orders_of_sweeps():
    """Permutations, another each time, the same in every fit; every slot comes first about equally often."""
    orders = probes.shuffled(20, 4000)
    assert np.array_equal(np.sort(orders, axis=1), np.tile(np.arange(20), (4000, 1)))
    assert len(np.unique(orders, axis=0)) == 4000
    assert np.array_equal(orders[:50], probes.shuffled(20, 50))
    for place in (0, 7, 19):
        counts = np.bincount(orders[:, place], minlength=20)
        assert ((counts - 200) ** 2 / 200).sum() < 60  # chi-square with 19 degrees of freedom: one in 10^5 is above
    assert np.array_equal(probes.shuffled(1, 2), [[0], [0]])


# ------------------------------------------------------------------- what the steps promise of a real problem


def radius(twin, j):
    """R of bound (c): under one Z the range of f_cj over the cells, else the largest |x|."""
    x = twin.X[:, j]
    if not twin.pooled:
        return np.abs(x).max()
    return np.ptp(x) if twin.n_blocks == 1 else np.ptp(np.append(x, 0))


def random_weights(rng, twin):
    extent = np.maximum(np.abs(twin.X).max(axis=0), 1)
    return rng.normal(size=twin.beta.shape) * (rng.random(twin.beta.shape) < 0.5) / extent


def true_decrease(twin, lam, c, j, delta):
    after = lam.copy()
    after[c, j] += delta
    before = twin.objective(lam)
    return before - twin.objective(after), 1e-12 * (1 + abs(before))


@given(twins(values=("binary", "unit"), odd=("constant", "duplicate", "zero", "separating")), st.data())
def test_paper_step_keeps_its_promise(twin, data):
    c, j = data.draw(st.tuples(st.integers(0, twin.n_blocks - 1), st.integers(0, twin.n_features - 1)))
    lam = random_weights(np.random.default_rng(data.draw(st.integers(0, 99))), twin)
    q = twin.model_mean(lam)[c, j]
    delta, gain = probes.paper_step(twin.emp_mean[c, j], min(q, 1.0), twin.beta[c, j], lam[c, j])
    decrease, rounding = true_decrease(twin, lam, c, j, delta)
    assert 0 <= gain <= decrease + rounding
    if twin.pooled and np.isin(twin.X[:, j], (0, 1)).all():
        assert_allclose(gain, decrease, rtol=1e-6, atol=rounding)


@given(twins(), st.data())
def test_concordant_step_keeps_its_promise(twin, data):
    c, j = data.draw(st.tuples(st.integers(0, twin.n_blocks - 1), st.integers(0, twin.n_features - 1)))
    lam = random_weights(np.random.default_rng(data.draw(st.integers(0, 99))), twin)
    mean, curvature = twin.column_moments(c, j, lam)
    reach = radius(twin, j)
    assume(reach > 0)
    delta, gain = probes.concordant_step(twin.emp_mean[c, j], mean, curvature, reach, twin.beta[c, j], lam[c, j])
    decrease, rounding = true_decrease(twin, lam, c, j, delta)
    # The means are sums of terms as large as the column's values.
    rounding += 1e-12 * np.abs(twin.X[:, j]).max() * abs(delta)
    assert 0 <= gain <= decrease + rounding


# ----------------------------------------------------------------------------------------------- the walkers


def make_column(form, x):
    """A column of x in one of the four forms, and x as that form has it."""
    rows = np.flatnonzero(x).astype(np.int32)
    if form == "index list":
        return probes.Column(len(rows), rows, None), (x != 0).astype(float)
    if form == "index and value":
        return probes.Column(len(rows), rows, x[rows]), x
    if form == "dense":
        return probes.Column(len(x), None, x), x
    return probes.Column(len(x), None, None), np.ones_like(x)


@pytest.mark.parametrize("form", ["index list", "index and value", "dense", "intercept"])
@pytest.mark.parametrize("n_nonzeros", [0, 1, 2, 3, 4, 5, 23, 100])
class TestWalkers:
    def make(self, form, n_nonzeros):
        rng = np.random.default_rng(n_nonzeros)
        x = np.zeros(100)
        x[rng.permutation(100)[:n_nonzeros]] = rng.normal(size=n_nonzeros)
        return *make_column(form, x), rng

    def test_dot(self, form, n_nonzeros):
        column, x, rng = self.make(form, n_nonzeros)
        vector = rng.normal(size=100)
        assert_allclose(column.dot(vector), x @ vector, rtol=1e-12, atol=1e-12)

    def test_axpy(self, form, n_nonzeros):
        column, x, rng = self.make(form, n_nonzeros)
        vector = rng.normal(size=100)
        expected = vector - 0.7 * x
        column.axpy(-0.7, vector)
        assert_allclose(vector, expected, rtol=1e-14)

    def test_moments_pooled(self, form, n_nonzeros):
        column, x, rng = self.make(form, n_nonzeros)
        weight = rng.random(100)
        assert_allclose(column.moments_pooled(weight), (x @ weight, x**2 @ weight), rtol=1e-12, atol=1e-12)

    @pytest.mark.parametrize("common", [False, True])
    def test_moments(self, form, n_nonzeros, common):
        column, x, rng = self.make(form, n_nonzeros)
        weight, inv_z = rng.random(100), 1 / (1 + rng.random(100))
        mass = np.full(100, 0.01) if common else rng.dirichlet(np.ones(100))
        q = weight * inv_z
        expected = (mass * x) @ q, (mass * x**2) @ (q * (1 - q))
        found = column.moments(weight, inv_z, mass, 0.01 if common else 0.0)
        assert_allclose(found, expected, rtol=1e-12, atol=1e-15)

    @pytest.mark.parametrize("common", [False, True])
    def test_moments_binary(self, form, n_nonzeros, common):
        column, x, rng = self.make(form, n_nonzeros)
        q = rng.random(100)
        mass = np.full(100, 0.01) if common else rng.dirichlet(np.ones(100))
        expected = (mass * x) @ q, (mass * x**2) @ (q * (1 - q))
        assert_allclose(column.moments_binary(q, mass, 0.01 if common else 0.0), expected, rtol=1e-12, atol=1e-15)

    @pytest.mark.parametrize("delta", [0.3, -2.0, 1e-9])
    def test_tilt(self, form, n_nonzeros, delta):
        column, x, rng = self.make(form, n_nonzeros)
        q = rng.random(100)
        expected = 1 / (1 + (1 / q - 1) * np.exp(-delta * x))
        column.tilt(delta, q)
        assert_allclose(q, expected, rtol=1e-14)

    @pytest.mark.parametrize("delta", [0.3, -2.0, 1e-9])
    def test_scale(self, form, n_nonzeros, delta):
        column, x, rng = self.make(form, n_nonzeros)
        weight = rng.random(100)
        expected, growth = weight * np.exp(delta * x), weight @ np.expm1(delta * x)
        assert_allclose(column.scale(delta, weight), growth, rtol=1e-10, atol=1e-22)
        assert_allclose(weight, expected, rtol=1e-14)

    @pytest.mark.parametrize("delta", [0.3, -2.0])
    def test_scale_each(self, form, n_nonzeros, delta):
        column, x, rng = self.make(form, n_nonzeros)
        weight = rng.random(100)
        z = weight + 1
        inv_z, expected = 1 / z, weight * np.exp(delta * x)
        assert not column.scale_each(delta, weight, z, inv_z)
        assert_allclose(weight, expected, rtol=1e-14)
        assert_allclose(z, 1 + expected, rtol=1e-14)
        assert_allclose(inv_z * z, np.ones(100), rtol=1e-15)


def test_scale_each_tells_of_lost_digits():
    column = probes.Column(2, None, None)
    weight, z = np.ones(2), np.array([1.0, 2.0])
    assert column.scale_each(-25.0, weight, z, 1 / z)


# ------------------------------------------------------------------------------------------- the normalisers


def column_arrays(X, form):
    if form == "dense":
        return *X.shape, None, None, X.ravel(order="F")
    columns = sparse.csc_array(X)
    values = None if form == "binary" else columns.data
    return *X.shape, columns.indptr.astype(np.int64), columns.indices.astype(np.int32), values


def make_state(twin, lam, b, form):
    return probes.State(
        column_arrays(twin.X, form),
        np.ascontiguousarray(twin.mass),
        np.column_stack([lam, b]),
        pooled=twin.pooled,
        reference=twin.reference,
        offset=twin.offset,
    )


def make_case(normalizer, form, seed=0, shape=(40, 12), **options):
    rng = np.random.default_rng(seed)
    X, y = random_data(rng, *shape, values=FORMS[form])
    twin = random_twin(rng, X, y, normalizer, **options)
    lam = rng.normal(size=twin.beta.shape) * (rng.random(twin.beta.shape) < 0.5)
    return twin, lam, rng.normal(size=twin.n_blocks), rng


def with_constant(twin):
    """The twin with the intercept's column of ones as one more feature."""
    X = np.column_stack([twin.X, np.ones(len(twin.X))])
    unused = np.zeros((twin.n_blocks, X.shape[1]))
    return ref.Twin(X, unused, unused, twin.target, twin.mass, twin.pooled, twin.reference, False, twin.offset)


@pytest.mark.parametrize("form", FORMS)
def test_column_of_a_matrix(form):
    twin, lam, b, _ = make_case("pooled", form)
    state = make_state(twin, lam, b, form)
    for j in range(13):
        rows, values = state.column(j)
        x = np.zeros(40)
        x[rows] = values
        assert_array_equal(x, twin.X[:, j] if j < 12 else np.ones(40))


@pytest.mark.parametrize("options", [{}, {"weighted": True}, {"with_offset": True}], ids=str)
@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize("normalizer", NORMALIZERS)
class TestState:
    def assert_state(self, state, twin, lam, b):
        prob = twin.prob(lam, b) * (1 if twin.pooled else twin.mass)
        for c in range(twin.n_blocks):
            assert_allclose(state.cell_mass(c), prob[c], rtol=1e-10, atol=1e-15)
        assert_allclose(state.log_z(), np.sum(twin.log_z(lam, b) * (1 if twin.pooled else twin.mass)), rtol=1e-11)

    def test_refresh(self, normalizer, form, options):
        twin, lam, b, _ = make_case(normalizer, form, **options)
        state = make_state(twin, lam, b, form)
        offset = 0 if twin.offset is None else twin.offset
        assert_allclose(state.score, twin.score(lam, b) + offset, rtol=1e-12, atol=1e-13)
        assert_allclose(state.inv_z * state.z, np.ones(len(state.z)), rtol=1e-15)
        self.assert_state(state, twin, lam, b)

    def test_moments(self, normalizer, form, options):
        twin, lam, b, _ = make_case(normalizer, form, **options)
        state = make_state(twin, lam, b, form)
        wide, theta = with_constant(twin), np.column_stack([lam, b])
        for c in range(len(lam)):
            for j in range(13):
                expected = wide.column_moments(c, j, theta)
                assert_allclose(state.moments(c, j), expected, rtol=1e-9, atol=1e-14)

    def test_hessian(self, normalizer, form, options):
        twin, lam, b, rng = make_case(normalizer, form, shape=(1500, 12), **options)
        state = make_state(twin, lam, b, form)
        wide, theta = with_constant(twin), np.column_stack([lam, b])
        coords = np.sort(rng.choice(theta.size, min(theta.size, 15), replace=False))
        exact = wide.hessian([divmod(int(k), theta.shape[1]) for k in coords], theta)
        rounding = {"rtol": 1e-6, "atol": 1e-6 * np.abs(exact).max()}  # in single precision
        assert_allclose(state.hessian(coords, 0.0), exact, **rounding)
        # What is left out of it leaves the diagonal alone, and a matrix that bends no way down.
        rough = state.hessian(coords, 0.1)
        assert_allclose(np.diag(rough), np.diag(exact), **rounding)
        assert_allclose(rough, rough.T)
        assert np.linalg.eigvalsh(rough).min() > -1e-6 * np.abs(exact).max()

    def test_apply_steps(self, normalizer, form, options):
        twin, lam, b, rng = make_case(normalizer, form, **options)
        state = make_state(twin, lam, b, form)
        blocks, cols = rng.integers(0, len(lam), 30), rng.integers(0, 13, 30)
        deltas = rng.normal(size=30) * 0.5
        state.apply_steps(blocks, cols, deltas)
        theta = np.column_stack([lam, b])
        np.add.at(theta, (blocks, cols), deltas)
        assert_allclose(state.lam, theta, rtol=1e-12, atol=1e-14)
        self.assert_state(state, twin, theta[:, :-1], theta[:, -1])
        assert state.counters["updates"] == 30


@pytest.mark.parametrize("size", [1e-3, 0.3], ids=["never refreshed", "refreshed on the way"])
@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize("normalizer", NORMALIZERS)
def test_drift_of_z_after_many_updates(normalizer, form, size):
    """1e5 steps in place give the Z of a fresh start."""
    twin, lam, b, rng = make_case(normalizer, form, shape=(30, 8))
    n_steps = 100_000
    blocks, cols = rng.integers(0, len(lam), n_steps // 2), rng.integers(0, 8, n_steps // 2)
    deltas = rng.normal(size=n_steps // 2) * size / np.abs(twin.X).max()
    order = rng.permutation(n_steps)  # every step and its opposite, at another time
    state = make_state(twin, lam, b, form)
    state.apply_steps(np.tile(blocks, 2)[order], np.tile(cols, 2)[order], np.concatenate([deltas, -deltas])[order])
    assert (state.change_bound < 0.9 * np.abs(deltas).sum()) == (size == 0.3)
    flow = [state.cell_mass(c) for c in range(len(lam))]
    log_z = state.log_z()
    state.refresh()
    assert_allclose(flow, [state.cell_mass(c) for c in range(len(lam))], rtol=1e-9, atol=1e-18)
    assert_allclose(log_z, state.log_z(), rtol=1e-9)


@pytest.mark.parametrize("normalizer", NORMALIZERS)
def test_long_steps_stay_finite(normalizer):
    twin, lam, b, rng = make_case(normalizer, "binary")
    state = make_state(twin, lam, b, "binary")
    blocks, cols = rng.integers(0, len(lam), 200), rng.integers(0, 12, 200)
    deltas = rng.choice([-1.0, 1.0], 200) * probes.MAX_STEP
    state.apply_steps(blocks, cols, deltas)
    theta = np.column_stack([lam, b])
    np.add.at(theta, (blocks, cols), deltas)
    prob = twin.prob(theta[:, :-1], theta[:, -1]) * (1 if twin.pooled else twin.mass)
    assert_allclose([state.cell_mass(c) for c in range(len(lam))], prob, rtol=1e-8, atol=1e-12)


@pytest.mark.parametrize(
    "pooled",
    [
        True,
        False,
    ],
)
def test_a_z_that_shrinks_little_by_little(pooled):
    """Many steps of a factor e lose as many digits as one of all of them."""
    n_steps = 40
    X = np.ones((10, 1))
    X[0] = 0
    offset = np.zeros((1, 10))
    offset[0, 0] = -60.0
    mass = np.ones(10) if pooled else np.full(10, 0.1)
    state = probes.State(column_arrays(X, "binary"), mass, np.zeros((1, 2)), pooled=pooled, offset=offset)
    zeros = np.zeros(n_steps, np.int64)
    state.apply_steps(zeros, zeros, np.full(n_steps, -1.0))
    log_z, flow = state.log_z(), state.cell_mass(0)
    state.refresh()
    assert_allclose(log_z, state.log_z(), rtol=1e-9)
    assert_allclose(flow, state.cell_mass(0), rtol=1e-9)


# --------------------------------------------------------------------------------------- benchmark doors


@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize("normalizer", NORMALIZERS)
def test_walk_all(normalizer, form):
    twin, lam, b, _ = make_case(normalizer, form)
    state = make_state(twin, lam, b, form)
    assert_allclose(state.walk_all("dot", 2), 2 * np.sum(state.weight[0] @ twin.X), rtol=1e-10, atol=1e-12)
    curvature = sum(state.moments(0, j)[1] for j in range(12))
    assert_allclose(state.walk_all("moments", 3), 3 * curvature)
    before = state.lam.copy(), state.log_z()
    state.walk_all("update", 2)
    assert_allclose(state.lam, before[0], rtol=1e-14, atol=1e-17)
    assert_allclose(state.log_z(), before[1], rtol=1e-12)
    score = state.score[0].copy()
    state.walk_all("axpy", 1)
    assert_allclose(state.score[0], score + 1e-3 * twin.X.sum(axis=1))
    with pytest.raises(KeyError):
        state.walk_all("nothing", 1)


def test_repeat_steps():
    cases = np.random.default_rng(0).random((20, 6))
    paper = sum(probes.paper_step(p, q, beta, lam)[1] for p, q, _, _, beta, lam in cases)
    assert_allclose(probes.repeat_steps(cases, 3, paper=True), 3 * paper)
    concordant = sum(probes.concordant_step(*case)[1] for case in cases)
    assert_allclose(probes.repeat_steps(cases, 3, paper=False), 3 * concordant)
