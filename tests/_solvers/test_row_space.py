"""Exclusive classes in the space of the rows: the same problem as with one Hessian, with a gap that is one."""

import itertools
import signal

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from numpy.testing import assert_allclose, assert_array_equal
from problems import assert_optimal, choosing, reference_optima
from scipy import sparse

import sl1max
from sl1max._core._options import SolverOptions
from sl1max._models import costs
from sl1max._models.costs import choose_solver
from sl1max.training._path import zero_beta


def made(n_rows=300, n_features=60, n_classes=6, values="binary", seed=0):
    """Examples that a model of some weights tells apart, some of them labelled by chance."""
    rng = np.random.default_rng(seed)
    X = sparse.random_array((n_rows, n_features), density=0.08, rng=rng, format="csc")
    X.data = np.ones(X.nnz) if values == "binary" else rng.normal(size=X.nnz)
    scores = X @ (2 * rng.normal(size=(n_features, n_classes))) + rng.gumbel(size=(n_rows, n_classes))
    y = scores.argmax(axis=1)
    y[:n_classes] = np.arange(n_classes)
    return (X.toarray() if values == "dense" else X), y


def fit_both(X, y, tol=1e-8, **settings):
    with choosing(costs.ROWS):
        ours = sl1max.fit(X, y, tol=tol, **settings)
    with choosing(costs.GRAM):
        return ours, sl1max.fit(X, y, tol=1e-9, **settings)


def assert_same(ours, theirs, tol=1e-8):
    assert ours.converged
    assert ours.dual_gap <= tol * ours.objective_zero
    assert_allclose(ours.objective_zero, theirs.objective_zero, rtol=1e-9)
    excess = ours.objective - theirs.objective
    assert -theirs.dual_gap - 1e-12 <= excess <= ours.dual_gap + 1e-12


def make_solver(X, y, tol, options=None, **settings):
    problem = sl1max.Problem(X, y, **settings)
    reduced = problem._reduce(problem._data, problem._strengths)
    (plan,) = reduced.plans("newton")
    return reduced._row_space_solver(plan, tol, options=options)


class TestSameProblem:
    @pytest.mark.parametrize("values", ["binary", "real", "dense"])
    @pytest.mark.parametrize("fit_intercept", [True, False])
    @pytest.mark.parametrize("beta", [0.5, 2.0])
    def test_as_with_one_hessian(self, values, fit_intercept, beta):
        X, y = made(values=values)
        ours, theirs = fit_both(X, y, fit_intercept=fit_intercept, beta=beta)
        assert_same(ours, theirs)
        assert_allclose(ours.predict_proba(X), theirs.predict_proba(X), atol=1e-3)

    @pytest.mark.parametrize("n_classes", [3, 4, 17, 40])
    def test_numbers_of_classes(self, n_classes):
        X, y = made(n_rows=400, n_features=80, n_classes=n_classes, seed=1)
        assert_same(*fit_both(X, y, beta=1.0))

    def test_violators_that_promise_the_same(self):
        """No more of them join the working set than it has room for."""
        X, y = made(n_features=40, n_classes=4)
        X = sparse.hstack([X] + 60 * [X[:, :20]], format="csc")
        assert_same(*fit_both(X, y, beta=0.2, tol=1e-6), tol=1e-6)

    @pytest.mark.parametrize("beta_rule", ["deviation", "count"])
    def test_rules_of_beta(self, beta_rule):
        X, y = made(n_classes=5)
        assert_same(*fit_both(X, y, beta_rule=beta_rule, beta=1.0))

    def test_penalties_of_their_own_and_features_left_out(self):
        X, y = made(n_classes=4)
        beta = np.random.default_rng(2).uniform(0.3, 2, size=(4, X.shape[1]))
        beta[1, :10] = np.inf
        ours, theirs = fit_both(X, y, beta=beta)
        assert_same(ours, theirs)
        assert not ours.weights[[1], :10].nnz

    def test_weights_of_examples_and_soft_labels(self):
        X, y = made(n_classes=4)
        rng = np.random.default_rng(5)
        shares = rng.dirichlet(np.full(4, 0.3), size=len(y))
        weight = rng.uniform(0.2, 3, len(y))
        weight[::7] = 0
        assert_same(*fit_both(X, shares, label_mode="exclusive", sample_weight=weight))

    @pytest.mark.parametrize("fit_intercept", [True, False])
    def test_offsets(self, fit_intercept):
        X, y = made(n_classes=4)
        offset = np.random.default_rng(3).normal(size=(len(y), 4))
        assert_same(*fit_both(X, y, offset=offset, fit_intercept=fit_intercept))

    @given(st.integers(0, 10_000), st.integers(3, 6), st.floats(0.3, 3.0), st.booleans(), st.sampled_from(["b", "r"]))
    def test_optimum_of_the_reference(self, seed, n_classes, beta, fit_intercept, values):
        X, y = made(40, 8, n_classes, "binary" if values == "b" else "real", seed)
        (optimum,) = np.atleast_1d(
            reference_optima(
                X.toarray(), np.eye(n_classes)[y], "conditional", "exclusive", beta=beta, intercept=fit_intercept
            )
        )
        with choosing(costs.ROWS):
            model = sl1max.fit(X, y, beta=beta, fit_intercept=fit_intercept, tol=1e-9)
        assert_optimal(model, optimum)

    @given(st.integers(0, 10_000), st.integers(3, 9), st.floats(0.3, 3.0), st.booleans())
    def test_gap_is_one_after_every_round(self, seed, n_classes, beta, fit_intercept):
        X, y = made(n_rows=80, n_features=25, n_classes=n_classes, seed=seed)
        with choosing(costs.GRAM):
            optimum = sl1max.fit(X, y, beta=beta, fit_intercept=fit_intercept, tol=1e-9)
        seen = []
        with choosing(costs.ROWS):
            sl1max.fit(X, y, beta=beta, fit_intercept=fit_intercept, tol=1e-6, callback=lambda one: seen.append(one))
        least = optimum.objective - optimum.dual_gap
        assert all(progress.objective - optimum.objective <= progress.dual_gap + 1e-12 for progress in seen)
        assert all(progress.objective >= least - 1e-12 for progress in seen)
        objectives = [progress.objective for progress in seen]
        assert all(later <= earlier + 1e-12 for earlier, later in itertools.pairwise(objectives))
        assert seen[-1].dual_gap <= seen[-1].target

    def test_gap_follows_the_distance(self):
        X, y = made(n_rows=1000, n_features=200, n_classes=12)
        with choosing(costs.GRAM):
            optimum = sl1max.fit(X, y, tol=1e-10)
        seen = []
        with choosing(costs.ROWS):
            sl1max.fit(X, y, tol=1e-6, callback=lambda one: seen.append(one))
        ratios = [one.dual_gap / (one.objective - optimum.objective) for one in seen[-3:-1]]
        assert max(ratios) < 1000


class TestMemory:
    """Above the limit, class blocks are computed when needed; matrices that do not fit are divided."""

    @pytest.mark.parametrize("fit_intercept", [True, False])
    @pytest.mark.parametrize("values", ["binary", "real", "dense"])
    def test_streamed(self, fit_intercept, values):
        X, y = made(values=values)
        stored, streamed = (
            make_solver(X, y, 1e-7, SolverOptions(many_classes_memory=memory), fit_intercept=fit_intercept)
            for memory in (1 << 30, 20_000)
        )
        assert stored.run(50) == streamed.run(50) == "converged"
        assert_allclose(streamed.objective, stored.objective, atol=2e-7)

    def test_small_blocks(self):
        X, y = made(n_rows=400, n_features=150, n_classes=3)
        whole, divided = (make_solver(X, y, 1e-7, SolverOptions(max_block_size=size)) for size in (500, 20))
        assert whole.run(50) == divided.run(50) == "converged"
        assert_allclose(divided.objective, whole.objective, atol=2e-7)


class TestBadLuck:
    def test_a_class_of_one_example(self):
        X, y = made()
        y[17] = 6
        assert_same(*fit_both(X, y))

    def test_a_class_whose_every_feature_is_unique(self):
        X, y = made()
        own = np.flatnonzero(y == 2)
        keep = sparse.diags_array((y != 2).astype(float))
        unique = sparse.csc_array((np.ones(len(own)), (own, np.arange(len(own)))), shape=(len(y), len(own)))
        X = sparse.hstack([keep @ X, unique], format="csc")
        X.eliminate_zeros()
        assert_same(*fit_both(X, y))

    def test_a_feature_in_every_row_an_empty_one_and_two_equal_ones(self):
        X, y = made(n_classes=4)
        n_rows = X.shape[0]
        X = sparse.hstack([X, np.ones((n_rows, 1)), sparse.csc_array((n_rows, 1)), X[:, :5]], format="csc")
        for fit_intercept in (True, False):
            assert_same(*fit_both(X, y, fit_intercept=fit_intercept))

    def test_features_that_tell_nothing(self):
        X, y = made(n_classes=4)
        with choosing(costs.ROWS):
            model = sl1max.fit(X, y, beta=1e3)
        assert model.converged and model.weights.nnz == 0
        assert_allclose(model.objective, model.objective_zero)

    def test_no_features_at_all(self):
        with choosing(costs.ROWS):
            model = sl1max.fit(sparse.csc_array((30, 4)), np.arange(30) % 3)
        assert model.converged and model.weights.nnz == 0

    def test_weights_far_from_zero(self):
        """Rows of a class hold a feature of their own, and there is next to no penalty."""
        y = np.repeat(np.arange(5), 20)
        X = sparse.csc_array((np.ones(100), (np.arange(100), y)), shape=(100, 5))
        assert_same(*fit_both(X, y, beta=1e-6, tol=1e-6), tol=1e-6)

    @pytest.mark.parametrize("scale", [1e-6, 1e6])
    def test_columns_of_other_sizes(self, scale):
        X, y = made(values="real", n_classes=4)
        X = X @ sparse.diags_array(np.where(np.arange(X.shape[1]) % 2, 1.0, scale))
        assert_same(*fit_both(X.tocsc(), y, tol=1e-6), tol=1e-6)


class TestStopping:
    def test_max_iter(self):
        X, y = made()
        with choosing(costs.ROWS), pytest.warns(sl1max.ConvergenceWarning, match="max_iter"):
            model = sl1max.fit(X, y, tol=1e-6, max_iter=2)
        assert model.n_iter == 2 and not model.converged

    def test_stop_flag(self):
        X, y = made()
        solver = make_solver(X, y, 1e-6)
        assert solver.run(2) == "running"
        assert solver.run(2, np.ones(1, np.int32)) == "interrupted"
        assert solver.run(100) == "converged"

    def test_ctrl_c_within_a_round(self):
        X, y = made(n_rows=20_000, n_features=200, n_classes=60)
        solver = make_solver(X, y, 1e-9)
        before = signal.signal(signal.SIGALRM, signal.default_int_handler)
        signal.setitimer(signal.ITIMER_REAL, 0.05)
        try:
            with pytest.raises(KeyboardInterrupt):
                solver.run(1000)
        finally:
            signal.setitimer(signal.ITIMER_REAL, 0)
            signal.signal(signal.SIGALRM, before)
        assert np.isfinite(solver.objective) and solver.objective <= solver.objective_zero


class TestStart:
    def test_where_an_earlier_model_ended(self):
        X, y = made(n_classes=8)
        with choosing(costs.ROWS):
            model = sl1max.fit(X, y, tol=1e-9)
            again = sl1max.fit(X, y, tol=1e-4, warm_start=model)
        assert again.n_iter == 0 and again.converged
        assert_allclose(again.objective, model.objective, rtol=1e-9)
        assert_allclose(again.predict_proba(X), model.predict_proba(X), rtol=1e-6)

    def test_from_a_checkpoint(self, tmp_path):
        X, y = made()
        path = tmp_path / "fit.checkpoint"
        with choosing(costs.ROWS):
            with pytest.warns(sl1max.ConvergenceWarning):
                begun = sl1max.fit(X, y, tol=1e-6, max_iter=2, checkpoint=path)
            done = sl1max.fit(X, y, tol=1e-6, checkpoint=path)
        assert done.converged and done.n_iter > begun.n_iter

    def test_least_beta_without_weights(self):
        X, y = made()
        found = []
        for name in (costs.ROWS, costs.GRAM):
            with choosing(name):
                found.append(zero_beta(X, y))
        assert_allclose(*found, rtol=1e-9)

    def test_the_same_bits_twice(self):
        X, y = made(n_classes=9)
        with choosing(costs.ROWS):
            first, second = (sl1max.fit(X, y, n_jobs=n_jobs) for n_jobs in (1, 2))
        assert_array_equal(first.weights.toarray(), second.weights.toarray())
        assert first.dual_gap == second.dual_gap


SIZE = {"dense": False, "memory": 1 << 30, "can_stream": True}


class TestCosts:
    @pytest.mark.parametrize("name", [costs.GRAM, costs.ROWS, costs.CLASSES])
    def test_are_told(self, name, capsys):
        X, y = made()
        with choosing(name):
            sl1max.fit(X, y, tol=1e-2, verbose=2)
        assert f"solver: {costs.DESCRIPTIONS[name]}\n" in capsys.readouterr().err

    def test_many_sparse_classes(self):
        assert choose_solver(200, 40_000, 1_600_000, **SIZE) == costs.ROWS

    def test_few_dense_classes(self):
        assert choose_solver(3, 20_000, 20_000 * 100, **(SIZE | {"dense": True})) == costs.GRAM

    def test_more_cells_than_memory(self):
        assert choose_solver(4755, 938_455, 17_000_000, **SIZE) == costs.CLASSES
        assert choose_solver(4755, 938_455, 17_000_000, **(SIZE | {"can_stream": False})) == costs.ROWS

    def test_grow_with_what_they_count(self):
        assert costs.hessian_cost(10, 100, 20, True) < costs.hessian_cost(20, 100, 20, True)
        assert costs.pass_cost(10, 100, 20) < costs.pass_cost(20, 100, 20) < costs.pass_cost(20, 100, 40)
