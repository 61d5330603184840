"""Inputs that double precision cannot certify are refused or never marked as converged, by every way to train."""

import re

import numpy as np
import pytest
from problems import MODELS
from scipy import sparse

import sl1max
from sl1max._data.precision import ENTRIES_AT_ONCE, find_imprecision, smallest_nonzero
from sl1max.estimators._adaboost import boost
from sl1max.species import SpeciesModel

pytestmark = pytest.mark.filterwarnings("error::RuntimeWarning")
N_SAMPLES = 40


def make_data(n_classes=3):
    rng = np.random.default_rng(0)
    X = rng.normal(size=(N_SAMPLES, 4))
    y = rng.permutation(np.arange(N_SAMPLES) % n_classes)
    return X, y


def spoil(case):
    """A training set with one property that double precision cannot deal with; and other options."""
    X, y = make_data()
    options = {"beta": 1e-4, "beta_rule": "count"}
    match case:
        case "small values":
            X[:, 2] = np.where(y == 0, X[:, 2], 1e-17 * X[:, 2])
            options["beta"] = 1e-14
        case "subnormal values":
            X[:, 2] = np.arange(N_SAMPLES) % 3 * 5e-324
        case "narrow column":
            X[:, 2] = 1 + 1e-14 * (np.arange(N_SAMPLES) % 7)
            options["beta_rule"] = "deviation"
        case "weights":
            options |= {"sample_weight": 10.0 ** np.linspace(-10, 10, N_SAMPLES), "beta": 1e-20}
        case "offset":
            offset = np.zeros((N_SAMPLES, 3))
            offset[:, 0] = np.linspace(0, 1e13, N_SAMPLES)
            options["offset"] = offset
    return X, y, options


REASONS = {
    "small values": r"X has values from \S+ to \S+ in size in column 2, a range that double precision cannot certify",
    "subnormal values": "X has values of at most 9.88e-324 in column 2, too small for double precision to certify",
    "narrow column": r"X has values in column 2 that differ by 6e-14 at a size of 1, which double precision cannot",
    "weights": "the weights of the examples go from 1e-10 to 1e.10, a range that double precision cannot certify",
    "offset": r"the offsets differ by 1e\+13, more than 1e\+12, which double precision cannot certify",
}
CASES = list(REASONS)


@pytest.mark.parametrize("case", CASES)
@pytest.mark.parametrize(("distribution", "label_mode"), MODELS)
@pytest.mark.parametrize("kind", [np.asarray, sparse.csr_array])
def test_model_of_what_cannot_be_certified_is_not_converged(case, distribution, label_mode, kind):
    X, y, options = spoil(case)
    options |= {"distribution": distribution, "label_mode": label_mode}
    with pytest.warns(sl1max.ConvergenceWarning, match=REASONS[case]):
        model = sl1max.fit(kind(X), np.eye(3)[y], max_iter=30, **options)
    assert not np.any(model.converged)
    assert np.isfinite(model.objective).all()
    assert not np.isnan(model.dual_gap).any()


@pytest.mark.parametrize("case", CASES)
@pytest.mark.parametrize("distribution", ["conditional", "joint", "class-conditional"])
def test_solver_of_what_cannot_be_certified_never_converges(case, distribution):
    X, y, options = spoil(case)
    solver = sl1max.Solver(sl1max.Problem(X, y, distribution=distribution, **options))
    assert solver.step(100) != "converged"
    assert not np.any(solver.result().converged)


def test_solver_that_is_reweighted():
    X, y = make_data()
    solver = sl1max.Solver(sl1max.Problem(X, y, beta=1e-20, beta_rule="count"), tol=0.9)
    solver.reweight(10.0 ** np.linspace(-10, 10, N_SAMPLES))
    solver.step(20)
    assert not np.any(solver.result().converged)
    assert solver.status != "converged"


def test_path_and_class_added_later():
    X, y, _ = spoil("narrow column")
    with pytest.warns(sl1max.ConvergenceWarning, match=REASONS["narrow column"]):
        found = sl1max.path(X, y, betas=3, distribution="class-conditional")
    assert not any(np.any(model.converged) for model in found.models)
    others = np.delete(X, 2, axis=1)
    model = sl1max.fit(others, y, distribution="class-conditional")
    narrow = np.insert(others[:, 1:], 1, X[:, 2], axis=1)
    with pytest.warns(sl1max.ConvergenceWarning, match="with_class did not converge .* differ by"):
        added = sl1max.with_class(model, 7, narrow, y == 0)
    np.testing.assert_array_equal(added.converged, [True, True, True, False])


@pytest.mark.parametrize("case", ["small values", "subnormal values", "narrow column"])
def test_moments_over_what_cannot_be_certified(case):
    X, _, _ = spoil(case)
    reason = REASONS[case].replace("X has", "background has")
    with pytest.warns(sl1max.ConvergenceWarning, match=reason):
        model = sl1max.fit_moments(X[:20].mean(axis=0), 1e-18, X)
    assert not model.converged
    assert np.isfinite(model.objective)


@pytest.mark.parametrize("case", ["subnormal values", "narrow column"])
def test_density_over_what_cannot_be_certified(case):
    X, _, _ = spoil(case)
    with pytest.warns(sl1max.ConvergenceWarning, match=REASONS[case]):
        density = sl1max.MaxentDensity(X, features="lqpht").fit(X[:15])
    assert not density.converged_
    assert np.isfinite(density.score_samples(X)).all()


def test_density_of_presences_whose_weights_differ_too_much():
    X, _, options = spoil("weights")
    with pytest.warns(sl1max.ConvergenceWarning, match=REASONS["weights"]):
        density = sl1max.MaxentDensity(X, features="l", beta_multiplier=1e-12, tol=0.9)
        density.fit(X, sample_weight=options["sample_weight"])
    assert not density.converged_


@pytest.mark.parametrize("scale", [1e-320, 1e-300, 1e-150])
def test_density_and_map_of_covariates_that_are_too_small(scale):
    """The slopes of their features would overflow."""
    X, y, _ = spoil("")
    X[:, 1] *= scale
    reason = r"X has values of at most \S+ in column 1, too small for double precision to certify: scale the column"
    with pytest.warns(sl1max.ConvergenceWarning, match=reason):
        model = SpeciesModel("lqph").fit(X, y == 0)
    assert not model.converged_
    beyond = np.concatenate([X, X - 1, X + 1])
    assert np.isfinite(model.predict_proba(beyond)).all()
    with pytest.warns(sl1max.ConvergenceWarning, match=reason):
        density = sl1max.MaxentDensity(X, features="lqph").fit(X[:20])
    assert np.isfinite(density.score_samples(beyond)).all()


@pytest.mark.parametrize(("distribution", "label_mode"), MODELS)
def test_path_over_a_column_whose_penalty_underflows(distribution, label_mode):
    X, y, _ = spoil("subnormal values")
    options = {"distribution": distribution, "label_mode": label_mode}
    others = sl1max.zero_beta(np.delete(X, 2, axis=1), y, **options)
    assert sl1max.zero_beta(X, y, **options) == pytest.approx(others)
    with pytest.warns(sl1max.ConvergenceWarning, match=REASONS["subnormal values"]):
        found = sl1max.path(X, y, betas=3, **options)
    assert np.isfinite(found.betas).all() and np.isfinite(found.objective).all()


@pytest.mark.parametrize("loss", ["logistic", "exponential"])
@pytest.mark.parametrize("case", CASES[:4])
def test_boosting_stays_finite(case, loss):
    X, y, options = spoil(case)
    model = boost(X, y, loss=loss, n_estimators=20, sample_weight=options.get("sample_weight")).model()
    assert np.isfinite(model.objective).all()
    assert np.isfinite(model.weights.data).all()


# What cannot be trained at all


@pytest.mark.parametrize("total", [1e-200, 1e300])
def test_weights_whose_total_is_out_of_range_are_refused(total):
    X, y = make_data()
    message = re.escape(f"sample_weight adds up to {total:.3g}, not in 1e-100 to 1e+100: multiply it by a constant")
    weight = np.full(N_SAMPLES, total / N_SAMPLES)
    with pytest.raises(ValueError, match=f"^{message}$"):
        sl1max.fit(X, y, sample_weight=weight)
    with pytest.raises(ValueError, match=f"^{message}$"):
        boost(X, y, sample_weight=weight)
    solver = sl1max.Solver(sl1max.Problem(X, y))
    with pytest.raises(ValueError, match=f"^{message}$"):
        solver.reweight(weight)
    assert solver.step(100) == "converged"
    with pytest.raises(ValueError, match=r"^q0 adds up to"):
        sl1max.fit_moments(X.mean(axis=0), 0.1, X, q0=weight)


def test_values_that_are_too_large_are_refused():
    X, y = make_data()
    with pytest.raises(ValueError, match=r"^offset has values beyond 1e\+100 in size$"):
        sl1max.fit(X, y, offset=np.full((N_SAMPLES, 3), 1e200))
    with pytest.raises(ValueError, match=r"^y has values beyond 1e\+100$"):
        sl1max.fit(X, np.eye(3)[y] * 1e200, label_mode="exclusive")
    with pytest.raises(ValueError, match=r"^means has values beyond 1e\+100 in size: scale them first$"):
        sl1max.fit_moments([1e200] * 4, 0.1, X)
    with pytest.raises(ValueError, match=r"^X has values beyond 1e\+100 in size: scale them first$"):
        sl1max.MaxentDensity(X).fit(X * 1e200)


def test_penalties_that_overflow_leave_features_out():
    X, y = make_data()
    X *= 1e90
    for distribution in ("conditional", "joint", "class-conditional"):
        model = sl1max.fit(X, y, beta=[1e300, 1e300, 0.1, 0.1], distribution=distribution)
        assert np.all(model.converged)
        assert not model.weights[:, :2].nnz


def test_objective_that_overflows_is_an_error_with_a_reason(monkeypatch):
    from sl1max._core._solver import Solver

    monkeypatch.setattr("sl1max._models.reduction.Solver", type("Overflown", (Solver,), {"objective": -np.inf}))
    X, y = make_data(2)
    with pytest.raises(sl1max.FitError, match="the objective overflows: scale the columns of X, or raise beta"):
        sl1max.fit(X, y, distribution="joint", fit_intercept=False)


def test_weights_and_shares_that_underflow_are_taken_to_be_zero():
    X, y = make_data()
    weight = np.ones(N_SAMPLES)
    weight[5:10] = 1e-120
    kept = np.delete(np.arange(N_SAMPLES), np.arange(5, 10))
    model, expected = sl1max.fit(X, y, sample_weight=weight), sl1max.fit(X[kept], y[kept])
    assert model.objective == expected.objective
    shares = np.eye(3)[y]
    assert sl1max.fit(X, shares + 1e-120).objective.tolist() == sl1max.fit(X, shares).objective.tolist()


# What does not matter


def test_small_values_that_cannot_matter_do_not_prevent_convergence():
    """Features such as exp(-distance) have values of any size; the penalty keeps their weights from being huge."""
    X, y = make_data()
    distance = (X[:, None, :] - X[None, :8, :]) ** 2
    X = np.exp(-20 * distance.sum(axis=2))
    assert (smallest_nonzero(X) < 1e-30).all()
    model = sl1max.fit(X, y, tol=1e-8)
    assert model.converged
    rounded = np.where(X < 1e-17, 0, X)
    assert abs(sl1max.fit(rounded, y, tol=1e-8).objective - model.objective) <= 2e-8


def test_weights_that_cannot_matter_do_not_prevent_convergence():
    X, y = make_data()
    weight = np.where(np.arange(N_SAMPLES) < 10, 1e-25, 1.0)
    model = sl1max.fit(X, y, sample_weight=weight, tol=1e-8)
    assert model.converged
    assert abs(sl1max.fit(X[10:], y[10:], tol=1e-8).objective - model.objective) <= 2e-8


def test_nearly_constant_column_whose_level_is_penalised_does_not_prevent_convergence():
    X, y, _ = spoil("narrow column")
    model = sl1max.fit(X, y, tol=1e-8)
    assert model.converged
    X[:, 2] = 1
    assert abs(sl1max.fit(X, y, tol=1e-8).objective - model.objective) <= 2e-8


@pytest.mark.parametrize("small", [1e-16, 3e-9])
def test_only_values_that_can_matter_are_found(small):
    """Between those that are too small to matter and those that are large enough."""
    matrix = np.array([[1.0], [1e-300], [small], [0.0]])
    found = find_imprecision(
        matrix, np.array([1.0]), np.array([1.0]), np.array([1e-11]), smallest=smallest_nonzero(matrix)
    )
    assert (found is None) == (small > 1e-15)


@pytest.mark.parametrize("kind", [np.asfortranarray, sparse.csc_array])
@pytest.mark.parametrize("entries_at_once", [1, 7, ENTRIES_AT_ONCE])
def test_smallest_nonzero(kind, entries_at_once, monkeypatch):
    monkeypatch.setattr("sl1max._data.precision.ENTRIES_AT_ONCE", entries_at_once)
    rng = np.random.default_rng(1)
    X = rng.normal(size=(9, 12)) * (rng.random((9, 12)) < 0.3)
    expected = np.where(X != 0, np.abs(X), np.inf).min(axis=0)
    assert np.isinf(expected).any()
    np.testing.assert_array_equal(smallest_nonzero(kind(X)), expected)
