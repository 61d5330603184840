"""The twin against numbers worked out by hand, against finite differences and against brute force."""

from dataclasses import replace
from math import exp, inf, log, sqrt

import numpy as np
import pytest
import reference as ref
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.testing import assert_allclose
from strategies import NORMALIZERS, one_hot, random_data, random_twin, twins

LOG3 = log(3)


def make_twin(normalizer="reference", seed=0, shape=(30, 8), **options):
    rng = np.random.default_rng(seed)
    X, y = random_data(rng, *shape, values=options.pop("values", "real"), odd=options.pop("odd", ()))
    return random_twin(rng, X, y, normalizer, **options)


def random_weights(twin, seed=1, scale=0.5):
    rng = np.random.default_rng(seed)
    b = rng.normal(size=twin.n_blocks) if twin.intercept else np.zeros(twin.n_blocks)
    return rng.normal(size=twin.emp_mean.shape) * scale, b


def coin(beta=0.0, **options):
    """Pooled, two examples, x = 0 and 1, p~ = 1/4 and 3/4: q[f] is the sigmoid of lam."""
    options = {"mass": np.ones(2), "pooled": True} | options
    return ref.Twin(
        X=np.array([[0.0], [1.0]]),
        emp_mean=np.array([[0.75]]),
        beta=np.array([[beta]]),
        target=np.array([[0.25, 0.75]]),
        **options,
    )


def logistic(beta=0.0, **options):
    """Binary conditional, two examples x = 1 (y = 1) and x = 0 (y = 0)."""
    return ref.Twin(
        X=np.array([[1.0], [0.0]]),
        emp_mean=np.array([[0.5]]),
        beta=np.array([[beta]]),
        target=np.array([[1.0, 0.0]]),
        mass=np.array([0.5, 0.5]),
        pooled=False,
        reference=True,
        **options,
    )


class TestByHand:
    def test_pooled(self):
        lam = np.array([[LOG3]])
        twin = coin(beta=0.1)
        assert_allclose(twin.log_z(lam), log(4))
        assert_allclose(twin.prob(lam), [[0.25, 0.75]])
        assert_allclose(twin.model_mean(lam), [[0.75]])
        assert_allclose(twin.neg_log_lik(lam), log(4) - 0.75 * LOG3)
        assert_allclose(twin.objective(lam), log(4) - 0.75 * LOG3 + 0.1 * LOG3)
        assert_allclose(twin.column_moments(0, 0, lam), (0.75, 0.1875))

    def test_pooled_base_measure(self):
        zero = np.zeros((1, 1))
        assert_allclose(coin(mass=np.array([1.0, 3.0])).prob(zero), [[0.25, 0.75]])
        assert_allclose(coin(offset=np.array([[0, LOG3]])).prob(zero), [[0.25, 0.75]])
        assert_allclose(coin(mass=np.array([0.0, 3.0])).prob(zero), [[0.0, 1.0]])

    def test_pooled_blocks_share_one_z(self):
        twin = ref.joint(np.array([[1.0], [0.0]]), np.eye(2), np.ones(2), intercept=False)
        lam = np.array([[LOG3], [0.0]])
        assert_allclose(twin.prob(lam), [[3 / 6, 1 / 6], [1 / 6, 1 / 6]])
        assert_allclose(twin.model_mean(lam), [[1 / 2], [1 / 6]])
        assert_allclose(twin.emp_mean, [[1 / 2], [0]])
        assert_allclose(twin.neg_log_lik(lam), log(6) - LOG3 / 2)

    def test_reference(self):
        lam = np.array([[LOG3]])
        twin = logistic()
        assert_allclose(twin.log_z(lam), [log(4), log(2)])
        assert_allclose(twin.prob(lam), [[0.75, 0.5]])
        assert_allclose(twin.model_mean(lam), [[0.375]])
        assert_allclose(twin.neg_log_lik(lam), 0.5 * log(4) + 0.5 * log(2) - 0.5 * LOG3)
        assert_allclose(twin.column_moments(0, 0, lam), (0.375, 0.09375))

    def test_reference_is_the_mean_log_loss(self):
        twin = make_twin("reference", intercept=True)
        lam, b = random_weights(twin)
        score = (twin.X @ lam[0]) + b[0]
        sign = 2 * twin.target[0] - 1
        assert_allclose(twin.neg_log_lik(lam, b), np.mean(np.log1p(np.exp(-sign * score))))

    def test_blocks(self):
        labels = np.array([[0.0, 0.0, 1.0]])
        twin = ref.conditional(np.array([[1.0]]), labels, np.ones(1), intercept=False)
        lam = np.log([[1.0], [2.0], [3.0]])
        assert_allclose(twin.prob(lam)[:, 0], [1 / 6, 2 / 6, 3 / 6])
        assert_allclose(twin.neg_log_lik(lam), log(2))

    def test_blocks_loss_is_the_mean_negative_log_probability(self):
        twin = make_twin("blocks", intercept=True)
        lam, b = random_weights(twin)
        prob_of_label = np.sum(twin.prob(lam, b) * twin.target, axis=0)
        assert_allclose(twin.neg_log_lik(lam, b), -np.mean(np.log(prob_of_label)))

    def test_scores_of_a_thousand_do_not_overflow(self):
        assert coin().objective(np.array([[1000.0]])) == pytest.approx(250)
        assert logistic().objective(np.array([[-1000.0]])) == pytest.approx(500 + 0.5 * log(2))

    def test_left_out_weight_costs_nothing_at_zero(self):
        assert coin(beta=inf).objective(np.zeros((1, 1))) == pytest.approx(log(2))


@pytest.mark.parametrize("with_offset", [False, True])
@pytest.mark.parametrize("intercept", [False, True])
@pytest.mark.parametrize("normalizer", NORMALIZERS)
class TestDerivatives:
    def coords(self, twin):
        return [(c, j) for c in range(twin.n_blocks) for j in range(twin.n_features + twin.intercept)]

    def shifted(self, coord, lam, b, step):
        theta = np.column_stack([lam, b])
        theta[coord] += step
        return theta[:, :-1], theta[:, -1]

    def test_gradient(self, normalizer, intercept, with_offset):
        twin = make_twin(normalizer, intercept=intercept, with_offset=with_offset, weighted=True)
        lam, b = random_weights(twin)
        for coord in self.coords(twin):
            plus, minus = (twin.neg_log_lik(*self.shifted(coord, lam, b, step)) for step in (1e-5, -1e-5))
            assert_allclose(twin.gradient(lam, b)[coord], (plus - minus) / 2e-5, atol=1e-8)

    def test_hessian(self, normalizer, intercept, with_offset):
        twin = make_twin(normalizer, intercept=intercept, with_offset=with_offset, weighted=True)
        lam, b = random_weights(twin)
        coords = self.coords(twin)
        rows, cols = np.transpose(coords)
        hessian = twin.hessian(coords, lam, b)
        for k, coord in enumerate(coords):
            plus, minus = (twin.gradient(*self.shifted(coord, lam, b, step)) for step in (1e-5, -1e-5))
            assert_allclose(hessian[k], ((plus - minus) / 2e-5)[rows, cols], atol=1e-7)

    def test_column_moments(self, normalizer, intercept, with_offset):
        twin = make_twin(normalizer, intercept=intercept, with_offset=with_offset, weighted=True)
        lam, b = random_weights(twin)
        for c, j in [(0, 0), (twin.n_blocks - 1, 3)]:
            mean, curvature = twin.column_moments(c, j, lam, b)
            assert_allclose(mean, twin.model_mean(lam, b)[c, j])
            assert_allclose(curvature, twin.hessian([(c, j)], lam, b)[0, 0])


PROBABILITY = st.floats(0.01, 0.99)
WEIGHT = st.one_of(st.just(0.0), st.floats(-4, 4))
PENALTY = st.one_of(st.just(0.0), st.floats(0.001, 2))


def assert_minimises(delta, bound, lam, span=40.0):
    """The closed form is as good as a search; an infinite step is a search that ends at its boundary."""
    found = ref.brute_force_delta(bound, lam, span)
    delta = float(np.clip(delta, -lam - span, -lam + span))
    assert abs(bound(delta) - bound(found)) <= 1e-9 * (1 + abs(bound(found)))


class TestClosedForms:
    @given(PROBABILITY, PROBABILITY, WEIGHT, PENALTY)
    def test_paper(self, p, q, lam, beta):
        assert_minimises(ref.delta_paper(p, q, lam, beta), lambda d: ref.bound_paper(d, p, q, lam, beta), lam)

    @given(PROBABILITY, PROBABILITY, st.floats(0.01, 1), WEIGHT, PENALTY)
    def test_column(self, p, q, rho, lam, beta):
        p, q = p * rho, q * rho
        assert_minimises(
            ref.delta_column(p, q, rho, lam, beta), lambda d: ref.bound_column(d, p, q, rho, lam, beta), lam
        )

    @given(st.floats(-3, 3), st.floats(-3, 3), st.floats(0.01, 2), st.floats(0.1, 5), WEIGHT, PENALTY)
    def test_curvature(self, p, q, curvature, radius, lam, beta):
        def bound(delta):
            return ref.bound_curvature(delta, p, q, curvature, radius, lam, beta)

        assert_minimises(ref.delta_curvature(p, q, curvature, radius, lam, beta), bound, lam)

    @pytest.mark.parametrize(
        "p, q, rho, lam, beta, delta",
        [
            (0.75, 0.5, 1, 0, 0.0, LOG3),  # no penalty: q becomes p
            (0.85, 0.5, 1, 0, 0.1, LOG3),  # q becomes p - beta
            (0.15, 0.5, 1, 0, 0.1, -LOG3),  # q becomes p + beta
            (0.6, 0.5, 1, 0, 0.1, 0),  # |p - q| <= beta: stays at zero
            (0.375, 0.25, 0.5, 0, 0.0, LOG3),  # the same as the first, in a column of half the mass
            (0.5, 0.5, 1, 0.01, 0.1, -0.01),  # shrinks to zero and stops there
            (0.15, 0.5, 1, LOG3 / 2, 0.1, -LOG3),  # crosses zero
            (0.05, 0.5, 1, 2.0, 0.1, -2.0),  # p - beta < 0, and the other root does not reach below zero
            (0.05, 0.5, 1, 1.0, 0.1, log(0.15 / 0.85)),  # p - beta < 0, and the other root does
            (0.95, 0.5, 1, -2.0, 0.1, 2.0),  # p + beta > 1
            (0.95, 0.5, 1, -1.0, 0.1, log(0.85 / 0.15)),
            (0.0, 0.5, 1, 0, 0.1, log(0.1 / 0.9)),  # the feature is absent from the class
            (1.0, 0.5, 1, 0, 0.1, log(0.9 / 0.1)),  # the feature is in all its examples
            (0.0, 0.5, 1, 0, 0.0, -inf),  # ... and unpenalised: no minimum
            (1.0, 0.5, 1, 0, 0.0, inf),
            (0.0, 0.5, 1, 0, 0.5, 0),
            (0.0, 0.5, 1, 0, 0.7, 0),  # p + beta > q: nothing to gain
            (0.0, 0.0, 1, 0, 0.1, 0),  # W = 0
            (0.0, 0.0, 1, 0, 0.0, 0),
            (1.0, 1.0, 1, 0, 0.1, 0),  # W = 1: a constant column
            (1.0, 1.0, 1, 1.5, 0.1, -1.5),
            (1.0, 1.0, 1, -1.5, 0.1, 1.5),
            (1.0, 1.0, 1, 1.5, 0.0, 0),
            (0.0, 0.0, 0, 0, 0.1, 0),  # rho = 0: an empty column
            (0.0, 0.0, 0, 1.5, 0.1, -1.5),
            (0.0, 0.0, 0, 1.5, 0.0, 0),
            (0.7, 0.2, 1, 0, inf, 0),  # left out
        ],
    )
    def test_column_branches(self, p, q, rho, lam, beta, delta):
        assert_allclose(ref.delta_column(p, q, rho, lam, beta), delta)
        if np.isfinite(delta):
            assert_minimises(delta, lambda d: ref.bound_column(d, p, q, rho, lam, beta), lam, span=20.0)

    @pytest.mark.parametrize(
        "gradient, curvature, radius, lam, beta, delta",
        [
            (-0.5, 0.25, 1, 0, 0.0, LOG3),
            (0.5, 0.25, 1, 0, 0.0, -LOG3),
            (-0.5, 0.5, 2, 0, 0.0, LOG3 / 2),  # a column twice as large takes half the step
            (-0.6, 0.25, 1, 0, 0.1, LOG3),
            (-0.1, 0.25, 1, 0, 0.1, 0),
            (0.0, 0.25, 1, 0.2, 0.1, -0.2),  # stops at zero
            (0.6, 0.25, 1, LOG3 / 2, 0.1, -LOG3),  # crosses zero
            (0.0, 0.0, 1, 2, 0.0, 0),  # constant column
            (0.0, 0.0, 1, 2, 0.1, -2),
            (0.0, 0.0, 0, 2, 0.1, -2),  # empty column
            (0.0, 0.0, 0, 2, 0.0, 0),
            (0.5, 0.0, 1, 0, 0.1, -inf),  # saturated: a slope without curvature
            (-0.5, 0.0, 1, 0, 0.1, inf),
            (-0.5, 0.25, 1, 0, inf, 0),
        ],
    )
    def test_curvature_branches(self, gradient, curvature, radius, lam, beta, delta):
        assert_allclose(ref.delta_curvature(0.0, gradient, curvature, radius, lam, beta), delta)
        if np.isfinite(delta):
            scalars = 0.0, gradient, curvature, radius, lam, beta
            assert_minimises(delta, lambda d: ref.bound_curvature(d, *scalars), lam, span=20.0)


def true_change(twin, c, j, delta, lam, b):
    moved = lam.copy()
    moved[c, j] += delta
    return twin.objective(moved, b) - twin.objective(lam, b)


@given(
    twins(max_samples=20, max_features=5, odd=("constant", "duplicate", "zero")),
    st.integers(0, 100),
    st.floats(-3, 3),
)
def test_bounds_hold(twin, seed, delta):
    lam, b = random_weights(twin, seed, scale=2.0)
    c, j = seed % twin.n_blocks, seed % twin.n_features
    x = twin.X[:, j]
    mean, curvature = twin.column_moments(c, j, lam, b)
    scalars = twin.emp_mean[c, j], mean
    change = true_change(twin, c, j, delta, lam, b) - 1e-12
    radius = max(x.max(), 0) - min(x.min(), 0) if twin.pooled else np.abs(x).max()
    assert ref.bound_curvature(delta, *scalars, curvature, radius, lam[c, j], twin.beta[c, j]) >= change
    if x.min() < 0 or x.max() > 1:
        return
    paper = ref.bound_paper(delta, *scalars, lam[c, j], twin.beta[c, j])
    assert paper >= change
    if twin.pooled and set(x) <= {0, 1}:
        assert_allclose(paper, change, atol=1e-9)
    if not twin.pooled:
        column = ref.bound_column(delta, *scalars, twin.mass @ x, lam[c, j], twin.beta[c, j])
        assert paper + 1e-12 >= column >= change


class TestCertificate:
    def test_by_hand(self):
        # q = 1/2, p~ = 3/4, beta = 1/8: half way to p~ is feasible, p_t = (3/8, 5/8).
        found = ref.certificate(coin(beta=0.125), np.zeros((1, 1)))
        entropy = -(3 / 8 * log(3 / 8) + 5 / 8 * log(5 / 8))
        assert_allclose(found.t, 0.5)
        assert_allclose(found.prob, [[3 / 8, 5 / 8]])
        assert_allclose((found.entropy, found.gap), (entropy, log(2) - entropy))

    def test_by_hand_reference(self):
        # q = 1/2 on both rows; beta = 1/8 = half of |q[f] - p~[f]|: t = 1/2, p_t = 3/4 and 1/4.
        found = ref.certificate(logistic(beta=0.125), np.zeros((1, 1)))
        entropy = -(3 / 4 * log(3 / 4) + 1 / 4 * log(1 / 4))
        assert_allclose((found.t, found.gap), (0.5, log(2) - entropy))
        assert_allclose(found.prob, [[0.75, 0.25], [0.25, 0.75]])

    def test_feasible_at_once(self):
        found = ref.certificate(coin(beta=0.25), np.zeros((1, 1)))
        assert found.t == 0
        assert_allclose(found.gap, 0, atol=1e-15)

    def test_unpenalised_by_hand(self):
        # q = 1/2 moves to p~ = 3/4 exactly: alpha = (1/4) / (1/4) = 1, p = (1/4, 3/4).
        found = ref.certificate(coin(beta=0.0), np.zeros((1, 1)))
        assert_allclose(found.prob, [[0.25, 0.75]])
        assert_allclose(found.gap, log(2) - (0.25 * log(4) + 0.75 * log(4 / 3)))

    def test_unpenalised_too_far(self):
        X, target = np.array([[0.0], [1.0], [2.0]]), np.array([[0.0, 0.2, 0.8]])
        twin = ref.Twin(X, target @ X, np.zeros((1, 1)), target, np.ones(3), pooled=True)
        far, near = (ref.certificate(twin, np.array([[lam]])) for lam in (-3.0, 1.5))
        assert_allclose(far.prob, target)
        assert_allclose(far.entropy, -(0.2 * log(0.2) + 0.8 * log(0.8)))
        assert far.t == 1 and near.t == 0 and near.gap < 0.1

    def test_offset_is_a_base_measure(self):
        # p~ = q when the offset alone explains the data.
        twin = coin(beta=0.1, offset=np.array([[0, LOG3]]))
        assert_allclose(ref.certificate(twin, np.zeros((1, 1))).gap, 0, atol=1e-15)
        assert_allclose(twin.objective(np.zeros((1, 1))), log(4))

    @settings(max_examples=60)
    @given(twins(max_samples=30, max_features=8), st.integers(0, 100))
    def test_never_below_the_distance_to_the_optimum(self, twin, seed):
        best = ref.oracle(twin)
        lam = best.lam + random_weights(twin, seed, scale=0.2)[0] / np.maximum(np.abs(twin.X).max(axis=0), 1)
        b = ref.solve_intercept(twin, lam)
        found = ref.certificate(twin, lam, b)
        assert found.gap >= twin.objective(lam, b) - best.objective - 1e-10
        assert_allclose(found.prob.sum(axis=twin.cell_axis), 1)
        off = np.abs(twin.mean(found.prob)[:, :-1] - twin.emp_mean)
        scale = np.maximum(np.abs(twin.X).max(axis=0), 1)
        assert np.all(off <= twin.beta + 1e-9 * scale)
        if twin.intercept:
            assert_allclose(twin.mean(found.prob)[:, -1], twin.class_prior, atol=1e-9)

    @pytest.mark.parametrize("normalizer", NORMALIZERS)
    def test_unpenalised_features(self, normalizer):
        twin = make_twin(normalizer, beta=np.array([0, 0.5, 0.5, 0, 0.5, inf, 0.5, 0.5]), seed=3)
        best = ref.oracle(twin)
        assert np.all(best.lam[:, 5] == 0)
        assert abs(ref.certificate(twin, *best[:2]).gap) < 1e-11
        near = best.lam * 0.99
        b = ref.solve_intercept(twin, near)
        found = ref.certificate(twin, near, b)
        assert_allclose(twin.mean(found.prob)[:, [0, 3]], twin.emp_mean[:, [0, 3]], atol=1e-12)
        assert inf > found.gap >= twin.objective(near, b) - best.objective

    @pytest.mark.parametrize("normalizer", NORMALIZERS)
    def test_solved_intercept(self, normalizer):
        twin = make_twin(normalizer, intercept=True, with_offset=True)
        lam, _ = random_weights(twin)
        gradient = twin.gradient(lam, ref.solve_intercept(twin, lam))[:, -1]
        assert_allclose(gradient, 0, atol=1e-13)


class TestModels:
    def data(self, seed=0, n_classes=3, shape=(40, 10)):
        rng = np.random.default_rng(seed)
        X, y = random_data(rng, *shape, n_classes=n_classes)
        return X, y, rng.integers(1, 4, len(X)).astype(float)

    def test_beta_rules_by_hand(self):
        X = np.array([[1.0, 0.0, 2.0], [1.0, 0.0, 0.0], [0.0, 0.0, 2.0], [0.0, 0.0, 2.0]])
        labels = one_hot(np.array([0, 0, 1, 1]))
        joint = ref.joint(X, labels, np.ones(4), beta=1.0)
        once = sqrt(1 / 4 * 3 / 4)
        # f_00 and f_12 are seen in half the cells, f_10 never, f_02 once.
        assert_allclose(joint.beta, np.array([[1 / 2, 0, 2 * once], [once, 0, 1]]) / sqrt(4))
        one_class = ref.class_conditional(X, labels, np.ones(4), 0, beta=1.0)
        assert_allclose(one_class.beta, np.array([[1 / 2, 0, 2 * 1 / 2]]) / sqrt(2))
        counted = ref.class_conditional(X, labels, np.ones(4), 0, beta=1.0, beta_rule="count")
        assert_allclose(counted.beta, 1 / 2)
        assert_allclose(ref.conditional(X, labels, np.ones(4), beta=1.0).beta, joint.beta)
        binary = ref.conditional_reference(X, labels[:, 1], np.ones(4), beta=1.0)
        assert_allclose(binary.beta, joint.beta.min(axis=0, keepdims=True))

    def test_beta_of_a_single_example_is_half_the_range(self):
        twin = ref.class_conditional(np.array([[3.0], [0.0]]), np.eye(2), np.ones(2), 0, beta=1.0)
        assert_allclose(twin.beta, 1.5)

    def test_beta_within_a_class_does_not_see_a_shift(self):
        X = np.array([[3.0], [1.0], [2.0]])
        labels = one_hot(np.array([0, 1, 1]))
        here, there = (ref.class_conditional(X + shift, labels, np.ones(3), 1, beta=1.0) for shift in (0, 7))
        assert_allclose(here.beta, there.beta)
        assert_allclose(here.beta, 2 * sqrt(1 / 2 * 1 / 2) / sqrt(2))
        assert_allclose(ref.joint(X, labels, np.ones(3), beta=1.0).beta[0], 3 * sqrt(1 / 3 * 2 / 3) / sqrt(3))

    def test_beta_arrays(self):
        X, y, weight = self.data()
        beta = np.full((3, 10), 2.0)
        beta[0, 1], beta[2, 3] = 0, inf
        twin = ref.joint(X, one_hot(y), weight, beta=beta)
        plain = ref.joint(X, one_hot(y), weight, beta=1.0)
        assert twin.beta[0, 1] == 0 and twin.beta[2, 3] == inf
        assert_allclose(twin.beta[1], 2 * plain.beta[1])

    def test_multilabel_duplication_by_hand(self):
        X = np.arange(6.0).reshape(3, 2)
        Y = np.array([[1.0, 1.0], [0.0, 0.0], [0.0, 1.0]])
        rows, labels, weight = ref.exclusive_labels(X, Y, np.array([1.0, 5.0, 3.0]))
        assert_allclose(rows, X[[0, 2]])
        assert_allclose(labels, [[0.5, 0.5], [0, 1]])
        assert_allclose(weight, [2, 3])
        assert_allclose(ref.exclusive_labels(X, Y, np.ones(3), "equal")[2], [1, 1])

    def test_duplication_repeats_the_row(self):
        X, y, weight = self.data()
        Y = one_hot(y)
        Y[:5, 2] = 1
        rows, labels, row_weight = ref.exclusive_labels(X, Y, weight)
        i, c = np.nonzero(Y)
        for model in (ref.joint, ref.conditional):
            twin = model(rows, labels, row_weight)
            repeated = model(X[i], one_hot(c), weight[i])
            assert_allclose(twin.beta, repeated.beta)
            assert_allclose(twin.emp_mean, repeated.emp_mean)

    @pytest.mark.parametrize("normalizer", NORMALIZERS)
    def test_weight_two_is_the_row_twice(self, normalizer):
        X, y, _ = self.data()
        rng = np.random.default_rng(5)
        weighted = random_twin(rng, X, y, normalizer, weighted=True)
        times = (weighted.mass / weighted.mass.min()).round().astype(int)
        repeated = random_twin(rng, np.repeat(X, times, axis=0), np.repeat(y, times), normalizer)
        assert_allclose(weighted.beta, repeated.beta)
        lam, b = random_weights(weighted)
        assert_allclose(weighted.objective(lam, b), repeated.objective(lam, b))
        assert_allclose(weighted.model_mean(lam, b), repeated.model_mean(lam, b))

    def test_joint_with_intercept_separates_into_classes(self):
        X, y, weight = self.data()
        labels = one_hot(y)
        twin = ref.joint(X, labels, weight)
        prior = twin.class_prior
        parts = [ref.class_conditional(X, labels, weight, c) for c in range(3)]
        parts = [replace(part, beta=twin.beta[[c]] / prior[c]) for c, part in enumerate(parts)]
        best = [ref.oracle(part) for part in parts]
        lam = np.vstack([part.lam for part in best])
        b = np.log(prior) - [part.log_z(found.lam) for part, found in zip(parts, best, strict=True)]
        joined = prior @ [found.objective for found in best] - prior @ np.log(prior)
        assert_allclose(twin.objective(lam, b), joined, rtol=1e-12)
        assert_allclose(ref.oracle(twin).objective, joined, rtol=1e-12)

    def test_two_weight_vectors_equal_their_difference(self):
        X, y, weight = self.data()
        first = (y == 0).astype(float)
        pair = ref.conditional(X, ref.class_indicator(first), weight)
        binary = ref.conditional_reference(X, first, weight)
        lam, b = random_weights(pair)
        assert_allclose(pair.prob(lam, b)[1:], binary.prob(lam[1:] - lam[:1], b[1:] - b[:1]))
        best, best_pair = ref.oracle(binary), ref.oracle(pair)
        assert_allclose(best.objective, best_pair.objective, rtol=1e-12)
        assert_allclose(best_pair.lam[1] - best_pair.lam[0], best.lam[0], atol=1e-6)

    @pytest.mark.parametrize("normalizer", NORMALIZERS)
    def test_scale_of_a_feature_is_immaterial(self, normalizer):
        twin = make_twin(normalizer, values="unit")
        scale = np.array([1, 2, 0.5, 1, 10, 1, 1, 3])
        rng = np.random.default_rng(0)
        X, y = random_data(rng, 30, 8, values="unit")
        larger = random_twin(rng, X * scale, y, normalizer)
        assert_allclose(larger.beta, twin.beta * scale)
        assert_allclose(ref.oracle(larger).objective, ref.oracle(twin).objective, rtol=1e-12)


class TestOracle:
    def test_coin_by_hand(self):
        best = ref.oracle(coin(beta=0.1))
        assert_allclose(best.lam, [[log(0.65 / 0.35)]], rtol=1e-10)
        assert_allclose(best.objective, -(0.65 * log(0.65) + 0.35 * log(0.35)), rtol=1e-14)

    def test_penalty_too_large(self):
        best = ref.oracle(coin(beta=0.3))
        assert best.lam[0, 0] == 0 and best.objective == pytest.approx(log(2))

    def test_unpenalised(self):
        assert_allclose(ref.oracle(coin(beta=0.0)).lam, [[LOG3]], rtol=1e-10)

    def test_left_out(self):
        assert ref.oracle(coin(beta=inf)).lam[0, 0] == 0

    def test_intercept_alone(self):
        X = np.zeros((4, 1))
        best = ref.oracle(ref.conditional_reference(X, np.array([1.0, 1.0, 1.0, 0.0]), np.ones(4)))
        assert_allclose(best.b, [LOG3], rtol=1e-12)

    @pytest.mark.parametrize("intercept", [False, True])
    @pytest.mark.parametrize("normalizer", NORMALIZERS)
    def test_optimality_conditions(self, normalizer, intercept):
        twin = make_twin(normalizer, intercept=intercept, shape=(80, 30), with_offset=True, weighted=True)
        lam, b, _ = ref.oracle(twin)
        gradient = twin.gradient(lam, b)[:, :-1]
        assert 0 < np.count_nonzero(lam) < lam.size
        assert np.all(np.abs(gradient) <= twin.beta + 1e-12)
        used = lam != 0
        assert_allclose(gradient[used], -(np.sign(lam) * twin.beta)[used], atol=1e-12)

    @given(twins())
    def test_certified(self, twin):
        best = ref.oracle(twin)
        found = ref.certificate(twin, best.lam, best.b)
        # A mean of magnitude 1e6 is known to 1e-10 at best.
        rounding = 1e-14 * np.max(np.abs(twin.X).max(axis=0) / np.where(twin.beta > 0, twin.beta, inf))
        assert found.gap <= 1e-10 + 100 * rounding
        assert found.gap >= -1e-10

    def test_separable_without_penalty_stays_finite(self):
        best = ref.oracle(logistic(beta=0.0))
        assert np.isfinite(best.lam).all() and best.objective < 0.5 * log(2) + 1e-6


class TestSequential:
    def test_one_update_by_hand(self):
        lam, chosen, objective = ref.sequential(coin(beta=0.1), 5)
        assert chosen[0] == (0, 0)
        assert_allclose(lam, [[log(0.65 / 0.35)]])
        assert_allclose(objective[1], -(0.65 * log(0.65) + 0.35 * log(0.35)))

    @pytest.mark.parametrize("normalizer", NORMALIZERS)
    @pytest.mark.parametrize("values", ["binary", "unit"])
    def test_descends_to_the_optimum(self, normalizer, values):
        twin = make_twin(normalizer, values=values, shape=(20, 5), intercept=False)
        lam, _, objective = ref.sequential(twin, 400)
        assert np.all(np.diff(objective) <= 1e-14)
        assert_allclose(objective[-1], ref.oracle(twin).objective, rtol=1e-4)
        assert_allclose(objective[-1], twin.objective(lam))


def test_exponentials_of_the_first_row():
    """q(c|x) of a three-class model with an offset, from the exponentials themselves."""
    offset = np.array([[0.0], [log(2)], [0.0]])
    twin = replace(ref.conditional(np.ones((1, 1)), np.array([[1.0, 0, 0]]), np.ones(1)), offset=offset)
    lam, b = np.array([[1.0], [0.0], [-1.0]]), np.array([0.0, 1.0, 2.0])
    weight = np.array([exp(1), 2 * exp(1), exp(1)])
    assert_allclose(twin.prob(lam, b)[:, 0], weight / weight.sum())
