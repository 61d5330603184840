"""sl1max.fit_moments: from means and intervals alone."""

import warnings

import numpy as np
import pytest
import reference as ref
from hypothesis import given
from hypothesis import strategies as st
from numpy.testing import assert_allclose
from scipy import sparse
from scipy.optimize import linprog
from scipy.special import rel_entr
from strategies import one_hot, random_data, random_X

import sl1max
from sl1max.training import _moments
from sl1max.training._moments import excess

SEEDS = st.integers(0, 2**32 - 1)


def make_moments(seed, n_points=60, n_features=10, values="real", exact=0.2):
    """Means of some distribution, and betas of which a share is zero."""
    rng = np.random.default_rng(seed)
    X = random_X(rng, n_points, n_features, values)
    p = rng.dirichlet(np.full(n_points, 0.3))
    betas = 0.1 * rng.random(n_features) * (rng.random(n_features) >= exact)
    return rng, X, p @ X, betas


def as_twin(X, means, betas, q0=None):
    q0 = np.full(len(X), 1 / len(X)) if q0 is None else q0 / q0.sum()
    return ref.Twin(X=X, emp_mean=means[None], beta=betas[None], target=q0[None], mass=q0, pooled=True)


def least_stretch(X, means, betas):
    """By how much the betas must be multiplied for a distribution to meet them, by linear programming."""
    n_points = len(X)
    cost = np.append(np.zeros(n_points), 1.0)
    above = np.hstack([X.T, -betas[:, None]])
    below = np.hstack([-X.T, -betas[:, None]])
    total = np.append(np.ones(n_points), 0.0)[None]
    done = linprog(cost, np.vstack([above, below]), np.concatenate([means, -means]), total, [1.0])
    return done.x[-1]


# ------------------------------------------------------------------------------------------------- the optimum


@given(SEEDS, st.sampled_from(["binary", "unit", "real"]), st.booleans())
def test_meets_the_means_and_the_optimum(seed, values, with_default):
    rng, X, means, betas = make_moments(seed, values=values)
    q0 = rng.random(len(X)) if with_default else None
    model = sl1max.fit_moments(means, betas, X, q0=q0, tol=1e-8)
    twin = as_twin(X, means, betas, q0)
    assert model.converged and model.dual_gap <= 1e-8 * np.log(len(X))
    assert_allclose(model.objective, twin.objective(model.weights[None]), rtol=1e-9, atol=1e-12)
    assert_allclose(model.proba.sum(), 1)
    assert_allclose(model.expectations, model.proba @ X, atol=1e-12)
    miss = 1e-3  # the gap is of second order in it
    assert (np.abs(model.expectations - means) <= betas + miss).all()
    divergence = rel_entr(model.proba, twin.mass).sum()
    assert_allclose(model.objective, -divergence, atol=miss * np.abs(model.weights).sum())


@given(SEEDS)
def test_the_gap_is_one(seed):
    """No weights do better than the gap allows: a good solution found otherwise, and the same from a tighter fit."""
    _, X, means, betas = make_moments(seed, exact=0.0)
    betas += 0.01
    model = sl1max.fit_moments(means, betas, X, tol=1e-2)
    twin = as_twin(X, means, betas)
    best = ref.oracle(twin)
    assert model.objective - twin.objective(best.lam) <= model.dual_gap + 1e-10
    tight = sl1max.fit_moments(means, betas, X, tol=1e-10)
    assert model.objective - tight.objective <= model.dual_gap + 1e-12
    assert tight.objective <= twin.objective(best.lam) + 1e-8


def test_a_die():
    die = sl1max.fit_moments([4.5], 0.0, np.arange(1, 7)[:, None], tol=1e-10)
    expected = [0.05435, 0.07877, 0.11416, 0.16545, 0.23977, 0.34749]  # Jaynes' dice
    assert_allclose(die.proba, expected, atol=1e-5)
    assert repr(die) == "<sl1max.MomentModel: 6 points, 1 features, 1 weights, converged>"


def test_nothing_asked_for_is_the_default():
    X = random_X(np.random.default_rng(0), 20, 3, "unit")
    q0 = np.arange(20.0)
    model = sl1max.fit_moments(np.zeros(3), np.inf, X, q0=q0)
    assert_allclose(model.proba, q0 / q0.sum())
    assert model.objective == pytest.approx(0, abs=1e-12) and model.dual_gap == pytest.approx(0, abs=1e-12)
    assert model.n_iter == 0


def test_a_mean_at_the_edge():
    """A feature that must be absent: the weights would grow for ever, the gap still closes."""
    X = np.array([[0, 0], [0, 1], [1, 0], [1, 1]])
    model = sl1max.fit_moments([0.0, 0.3], [0.0, 0.05], X, tol=1e-6)
    assert model.converged
    assert_allclose(model.proba, [0.65, 0.35, 0, 0], atol=1e-5)


def test_features_that_do_not_vary_or_depend_on_each_other():
    _, X, means, betas = make_moments(4)
    X = np.column_stack([X, np.ones(len(X)), X[:, 0], X[:, 0] + X[:, 1]])
    means = np.concatenate([means, [1.0, means[0], means[0] + means[1]]])
    betas = np.concatenate([betas, [0.0, betas[0], betas[0] + betas[1]]])
    model = sl1max.fit_moments(means, betas, X, tol=1e-8)
    assert model.converged
    fewer = sl1max.fit_moments(means[:10], betas[:10], X[:, :10], tol=1e-8)
    assert_allclose(model.proba, fewer.proba, atol=1e-4)


@pytest.mark.parametrize("kind", [sparse.csr_array, sparse.csc_matrix, np.asfortranarray, np.ndarray.tolist])
def test_any_form_of_background(kind):
    _, X, means, betas = make_moments(1)
    model = sl1max.fit_moments(means, betas, kind(X), tol=1e-12)
    assert_allclose(model.proba, sl1max.fit_moments(means, betas, X, tol=1e-12).proba, rtol=1e-6)
    assert_allclose(np.exp(model.log_ratio(kind(X))) / len(X), model.proba, rtol=1e-10)


# ------------------------------------------------------------------------------------------- the same as fit


@pytest.mark.parametrize("values", ["binary", "unit", "real"])
def test_moments_of_data_give_the_weights_of_fit(values):
    rng = np.random.default_rng(2)
    X, y = random_data(rng, 120, 15, 3, values)
    model = sl1max.fit(X, y, distribution="class-conditional", beta=0.5, beta_rule="count", tol=1e-11)
    for c in range(3):
        own = X[y == c]
        found = sl1max.fit_moments(own.mean(axis=0), 0.5 / len(own), X, tol=1e-11)
        assert_allclose(found.weights, model.weights[[c]].toarray().ravel(), atol=1e-6)
        assert_allclose(found.log_z + np.log(len(X)), model.log_z[c], atol=1e-7)
        assert_allclose(found.objective + np.log(len(X)), model.objective[c], atol=1e-9)


def test_q0_is_an_offset():
    rng = np.random.default_rng(3)
    X, y = random_data(rng, 120, 15, 3, "unit")
    q0 = rng.dirichlet(np.full(120, 2.0))
    options = {"distribution": "class-conditional", "beta": 0.5, "beta_rule": "count", "tol": 1e-11}
    model = sl1max.fit(X, y, offset=np.log(q0), **options)
    for c in range(3):
        own = X[y == c]
        found = sl1max.fit_moments(own.mean(axis=0), 0.5 / len(own), X, q0=q0, tol=1e-11)
        assert_allclose(found.weights, model.weights[[c]].toarray().ravel(), atol=1e-6)
        assert_allclose(found.log_z, model.log_z[c], atol=1e-7)


def test_the_scale_of_q0_does_not_matter_and_zero_leaves_out():
    rng, X, means, betas = make_moments(6)
    q0 = rng.random(len(X))
    model = sl1max.fit_moments(means, betas + 0.3, X, q0=q0, tol=1e-8)
    assert_allclose(sl1max.fit_moments(means, betas + 0.3, X, q0=7 * q0, tol=1e-8).proba, model.proba, rtol=1e-6)
    q0[::3] = 0
    rest = sl1max.fit_moments(means, betas + 0.3, np.delete(X, np.s_[::3], axis=0), q0=q0[q0 > 0], tol=1e-8)
    model = sl1max.fit_moments(means, betas + 0.3, X, q0=q0, tol=1e-8)
    assert not model.proba[::3].any()
    assert_allclose(model.proba[q0 > 0], rest.proba, rtol=1e-6)


def test_q0_is_the_class_model_of_another():
    """Two fits in a row: what the second adds to the first as its default."""
    _, X, means, betas = make_moments(8)
    first = sl1max.fit_moments(means, betas, X, tol=1e-9)
    again = sl1max.fit_moments(means, betas + 1e-3, X, q0=first.proba, tol=1e-9)
    assert not again.weights.any()


def test_labels_are_not_needed_where_one_hot_columns_stand_for_them():
    """The joint model from moments: the background has a point for every cell."""
    rng = np.random.default_rng(5)
    X, y = random_data(rng, 60, 6, 2, "unit")
    cells = np.vstack([np.hstack([X, 0 * X]), np.hstack([0 * X, X])])
    labels = one_hot(y)
    means = np.concatenate([labels[:, 0] @ X, labels[:, 1] @ X]) / len(X)
    model = sl1max.fit(X, y, distribution="joint", fit_intercept=False, beta=0.5, beta_rule="count", tol=1e-11)
    found = sl1max.fit_moments(means, 0.5 / len(X), cells, tol=1e-11)
    assert_allclose(found.weights, model.weights.toarray().ravel(), atol=1e-6)


# --------------------------------------------------------------------------------------------------- refused


@given(SEEDS)
def test_infeasible_is_what_linear_programming_finds_infeasible(seed):
    rng, X, means, betas = make_moments(seed, n_points=25, n_features=8, exact=0.0)
    means = means + 0.3 * rng.normal(size=len(means))
    betas = betas + 0.01
    betas *= least_stretch(X, means, betas)
    if not betas.any():  # met as they are
        return
    for share in (1e-2, 1e-4):
        with pytest.raises(sl1max.InfeasibleMomentsError, match="cannot be met"):
            sl1max.fit_moments(means, (1 - share) * betas, X)
        assert sl1max.fit_moments(means, (1 + share) * betas, X).converged


def test_one_mean_out_of_range_is_named():
    X = np.array([[0, 1.0], [2, 1], [1, 0]])
    with pytest.raises(
        sl1max.InfeasibleMomentsError,
        match=r"means\[0\] = 2.5 with betas\[0\] = 0.1 cannot be met: feature 0 goes from 0 to 2 over the background",
    ):
        sl1max.fit_moments([2.5, 0.5], 0.1, X)
    with pytest.raises(sl1max.InfeasibleMomentsError, match=r"means\[1\] = -0.2"):
        sl1max.fit_moments([1.0, -0.2], 0.1, X)
    with pytest.raises(sl1max.InfeasibleMomentsError, match=r"feature 2 goes from 1 to 1"):
        sl1max.fit_moments([1.0, 0.5, 0.5], 0.1, np.column_stack([X, np.ones(3)]))


def test_means_that_cannot_be_met_together_are_named():
    """The second feature is never there without the first."""
    X = np.array([[0, 0, 0], [1, 0, 1], [1, 1, 0]])
    message = (
        r"together: of (\+1 feature\[1\] -\S+ feature\[0\]|-1 feature\[0\] \+\S+ feature\[1\]) they ask, within "
        r"their betas, for a mean of at least 0.2\d*, but over the background it is at most 0"
    )
    with pytest.raises(sl1max.InfeasibleMomentsError, match=message):
        sl1max.fit_moments([0.3, 0.7, 0.1], [0.1, 0.1, 0.5], X)
    assert issubclass(sl1max.InfeasibleMomentsError, ValueError)


def test_points_of_no_default_probability_do_not_help():
    X = np.array([[0.0], [1], [5]])
    assert sl1max.fit_moments([3.0], 0.1, X).converged
    with pytest.raises(sl1max.InfeasibleMomentsError, match="feature 0 goes from 0 to 1"):
        sl1max.fit_moments([3.0], 0.1, X, q0=[1, 1, 0])


def test_max_iter_warns():
    _, X, means, betas = make_moments(7, n_points=200, n_features=40)
    with pytest.warns(sl1max.ConvergenceWarning, match="max_iter was reached at a duality gap of"):
        model = sl1max.fit_moments(means, betas, X, tol=1e-14, max_iter=1)
    assert not model.converged and "not converged" in repr(model)


def test_a_solver_that_is_stuck_warns(monkeypatch):
    class Stuck:
        weights, n_iter = np.zeros((1, 2)), 3

        def run(self, n):
            return "stalled"

    monkeypatch.setattr(_moments, "_make_solver", lambda data: Stuck())
    with pytest.warns(sl1max.ConvergenceWarning, match="no further decrease is possible in floating point"):
        model = sl1max.fit_moments([0.9], 0.1, [[0.0], [1.0]])
    assert not model.converged and model.n_iter == 3 and model.dual_gap > 0


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (([[0.5]], 0.1, [[0.0], [1.0]]), r"means has shape \(1, 1\), but background has 1 features"),
        (([np.nan], 0.1, [[0.0], [1.0]]), "means has NaN"),
        (([0.5], -1.0, [[0.0], [1.0]]), "betas must not be negative"),
        (([0.5], np.nan, [[0.0], [1.0]]), "betas has NaN"),
        (([0.5], [1.0, 2.0], [[0.0], [1.0]]), r"betas has shape \(2,\)"),
        (([0.5], "x", [[0.0], [1.0]]), "betas must be a number"),
        (([0.5], 0.1, [[0.0], [np.inf]]), "background has inf in row 1, column 0"),
        (([0.5], 0.1, [0.0, 1.0]), "background must have 2 dimensions"),
        (([0.5], 0.1, [["a"], ["b"]]), "background is text"),
        (([0.5], 0.1, [[0.0], [1e101]]), "background has values beyond 1e"),
        (([0.5], 0.1, [[0.0], [1.0], [1.0, 2.0]]), "background is not a matrix"),
    ],
)
def test_input_is_checked(arguments, message):
    with pytest.raises(ValueError, match=message):
        sl1max.fit_moments(*arguments)


@pytest.mark.parametrize(
    ("q0", "message"),
    [
        ([1.0], r"q0 has shape \(1,\): it must be \(2,\)"),
        ([1, -1], "q0 is negative at index 1"),
        ([0, 0], "q0 is zero"),
    ],
)
def test_q0_is_checked(q0, message):
    with pytest.raises(ValueError, match=message):
        sl1max.fit_moments([0.5], 0.1, [[0.0], [1.0]], q0=q0)


def test_options_are_checked():
    with pytest.raises(ValueError, match="tol=0 must be"):
        sl1max.fit_moments([0.5], 0.1, [[0.0], [1.0]], tol=0)
    with pytest.raises(ValueError, match="max_iter=0 must be"):
        sl1max.fit_moments([0.5], 0.1, [[0.0], [1.0]], max_iter=0)


def test_excess():
    r = np.array([-1.0, -0.5, 0.0, 1e-9, 2.0])
    assert_allclose(excess(r), [1, 0.5 * np.log(0.5) + 0.5, 0, 5e-19, 3 * np.log(3) - 2], rtol=1e-6, atol=1e-17)


class TestIntervals:
    faces = np.arange(1, 7)[:, None]

    def test_ends_are_centre_and_half_width(self):
        rng = np.random.default_rng(0)
        points = rng.normal(size=(50, 4))
        low = points[:20].mean(axis=0) - [0.1, 0.2, 0.0, 0.3]
        high = points[:20].mean(axis=0) + [0.3, 0.2, 0.0, 0.1]
        ends = sl1max.fit_moments((low, high), None, points, tol=1e-9)
        centre = sl1max.fit_moments((low + high) / 2, (high - low) / 2, points, tol=1e-9)
        assert_allclose(ends.proba, centre.proba, atol=1e-6)
        assert (ends.expectations >= low - 1e-6).all() and (ends.expectations <= high + 1e-6).all()

    def test_open_ends(self):
        at_most = sl1max.fit_moments((-np.inf, 3), None, self.faces, tol=1e-9)
        assert_allclose(at_most.expectations, 3, atol=1e-6)
        assert at_most.weights[0] < 0
        loose = sl1max.fit_moments((-np.inf, 5), None, self.faces)
        assert_allclose(loose.proba, 1 / 6)
        both = sl1max.fit_moments((-np.inf, np.inf), None, self.faces)
        assert_allclose(both.proba, 1 / 6)

    def test_out_of_reach(self):
        with pytest.raises(sl1max.InfeasibleMomentsError, match="cannot be met"):
            sl1max.fit_moments((10, np.inf), None, self.faces)

    @pytest.mark.parametrize(
        "ends, message",
        [
            (3.5, "must be a pair"),
            (([1, 2], 3), "low has shape"),
            ((4, 3), r"low\[0\] = 4 is not at most high\[0\] = 3"),
            ((np.nan, 3), "is not at most"),
        ],
    )
    def test_messages(self, ends, message):
        with pytest.raises(ValueError, match=message):
            sl1max.fit_moments(ends, None, self.faces)


@pytest.mark.parametrize("seed", range(3))
def test_gap_is_honest_for_a_column_of_almost_equal_values(seed):
    rng = np.random.default_rng(seed)
    X, level = rng.normal(size=(50, 4)), np.array([1e5, 0, 0, 0])
    X[:, 0] *= 1e-3
    p = rng.exponential(size=50)
    means, betas = p / p.sum() @ X, 3e-4 * np.ptp(X, axis=0)
    best = sl1max.fit_moments(means, betas, X, tol=1e-10)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", sl1max.ConvergenceWarning)
        model = sl1max.fit_moments(means + level, betas, X + level)
    assert best.converged
    assert model.objective - best.objective <= model.dual_gap + 1e-7
