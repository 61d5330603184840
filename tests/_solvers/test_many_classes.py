"""Many exclusive classes, one at a time: the same problem as all at once, with a gap that is one."""

import itertools
import os
import signal
from types import SimpleNamespace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from numpy.testing import assert_allclose, assert_array_equal
from problems import choosing
from scipy import sparse, special

import sl1max
from sl1max._core._solver import Columns
from sl1max._data.inputs import take_rows
from sl1max._execution import parallel
from sl1max._models import costs, reduction
from sl1max._solvers import many_classes
from sl1max._solvers.many_classes import ByClassSolver
from sl1max.exceptions import FitMemoryError


def made(n_rows=300, n_features=60, n_classes=6, values="binary", seed=0):
    """Examples that a model of some weights tells apart, some of them labelled by chance."""
    rng = np.random.default_rng(seed)
    X = sparse.random_array((n_rows, n_features), density=0.08, rng=rng, format="csc")
    X.data = np.ones(X.nnz) if values == "binary" else rng.normal(size=X.nnz)
    scores = X @ (2 * rng.normal(size=(n_features, n_classes))) + rng.gumbel(size=(n_rows, n_classes))
    y = scores.argmax(axis=1)
    y[:n_classes] = np.arange(n_classes)
    return X, y


@pytest.fixture
def one_by_one():
    with choosing(costs.CLASSES):
        yield


@pytest.fixture
def none_is_light(monkeypatch):
    monkeypatch.setattr(many_classes, "LIGHT_SHARE", -1.0)


def fit_both(X, y, tol=1e-3, **settings):
    """The models by this solver and, well solved, by that of all classes at once."""
    with choosing(costs.CLASSES):
        ours = sl1max.fit(X, y, tol=tol, **settings)
    with choosing(costs.GRAM):
        return ours, sl1max.fit(X, y, tol=1e-7, **settings)


def assert_certified(ours, theirs, tol):
    assert ours.converged
    assert ours.dual_gap <= tol * ours.objective_zero
    assert_allclose(ours.objective_zero, theirs.objective_zero, rtol=1e-9)
    excess = ours.objective - theirs.objective
    assert -theirs.dual_gap - 1e-12 <= excess <= ours.dual_gap + 1e-12


class TestSameProblem:
    @pytest.mark.parametrize("values", ["binary", "real"])
    @pytest.mark.parametrize("fit_intercept", [True, False])
    @pytest.mark.parametrize("beta", [0.5, 2.0])
    def test_as_all_at_once(self, values, fit_intercept, beta):
        X, y = made(values=values)
        ours, theirs = fit_both(X, y, fit_intercept=fit_intercept, beta=beta)
        assert_certified(ours, theirs, 1e-3)
        assert np.abs(ours.predict_proba(X) - theirs.predict_proba(X)).max() < 0.05

    def test_to_many_digits(self):
        X, y = made()
        ours, theirs = fit_both(X, y, tol=1e-6)
        assert_certified(ours, theirs, 1e-6)
        assert_allclose(ours.predict_proba(X), theirs.predict_proba(X), atol=1e-3)

    def test_with_many_classes_most_of_them_light(self):
        X, y = made(n_rows=800, n_features=300, n_classes=40, seed=1)
        ours, theirs = fit_both(X, y, beta=1.0)
        assert_certified(ours, theirs, 1e-3)

    def test_without_light_classes(self, none_is_light):
        X, y = made(n_classes=12)
        ours, theirs = fit_both(X, y)
        assert_certified(ours, theirs, 1e-3)

    def test_weights_of_examples_and_soft_labels(self):
        X, y = made(n_classes=4)
        rng = np.random.default_rng(5)
        shares = rng.dirichlet(np.full(4, 0.3), size=len(y))
        ours, theirs = fit_both(X, shares, label_mode="exclusive", sample_weight=rng.uniform(0.2, 3, len(y)))
        assert_certified(ours, theirs, 1e-3)

    @pytest.mark.parametrize("beta_rule", ["deviation", "count"])
    def test_rules_of_beta(self, beta_rule):
        X, y = made(n_classes=5)
        ours, theirs = fit_both(X, y, beta_rule=beta_rule, beta=1.0)
        assert_certified(ours, theirs, 1e-3)

    def test_penalties_of_their_own_and_features_left_out(self):
        X, y = made(n_classes=4)
        beta = np.random.default_rng(2).uniform(0.3, 2, size=(4, X.shape[1]))
        beta[1, :10] = np.inf
        ours, theirs = fit_both(X, y, beta=beta)
        assert_certified(ours, theirs, 1e-3)
        assert not ours.weights[[1], :10].nnz

    @given(st.integers(0, 10_000), st.integers(3, 9), st.floats(0.3, 3.0), st.booleans())
    def test_gap_is_one_after_every_pass(self, seed, n_classes, beta, fit_intercept):
        X, y = made(n_rows=80, n_features=25, n_classes=n_classes, seed=seed)
        optimum = sl1max.fit(X, y, beta=beta, fit_intercept=fit_intercept, tol=1e-9)
        seen = []
        with choosing(costs.CLASSES):
            sl1max.fit(
                X, y, beta=beta, fit_intercept=fit_intercept, tol=1e-2, callback=lambda progress: seen.append(progress)
            )
        least = optimum.objective - optimum.dual_gap
        assert all(progress.objective - optimum.objective <= progress.dual_gap + 1e-12 for progress in seen)
        assert all(progress.objective >= least - 1e-12 for progress in seen)
        objectives = [progress.objective for progress in seen]
        assert all(later <= earlier + 1e-9 for earlier, later in itertools.pairwise(objectives))
        assert seen[-1].dual_gap <= seen[-1].target


class TestBadLuck:
    def test_a_class_of_one_example(self):
        X, y = made()
        y[17] = 6
        assert_certified(*fit_both(X, y), 1e-3)

    def test_a_class_whose_every_feature_is_unique(self):
        X, y = made()
        own = np.flatnonzero(y == 2)
        keep = sparse.diags_array((y != 2).astype(float))
        unique = sparse.csc_array((np.ones(len(own)), (own, np.arange(len(own)))), shape=(len(y), len(own)))
        X = sparse.hstack([keep @ X, unique], format="csc")
        X.eliminate_zeros()
        assert_certified(*fit_both(X, y), 1e-3)

    def test_identical_rows_with_different_labels(self):
        X, y = made(n_classes=4)
        X, y = sparse.vstack([X, X], format="csc"), np.concatenate([y, (y + 1) % 4])
        assert_certified(*fit_both(X, y), 1e-3)

    def test_a_feature_in_every_row_and_an_empty_one(self):
        X, y = made(n_classes=4)
        n_rows = X.shape[0]
        X = sparse.hstack([X, np.ones((n_rows, 1)), sparse.csc_array((n_rows, 1))], format="csc")
        assert_certified(*fit_both(X, y), 1e-3)

    def test_features_that_tell_nothing(self, one_by_one):
        X, y = made(n_classes=4)
        model = sl1max.fit(X, y, beta=1e3)
        assert model.converged and model.weights.nnz == 0
        assert_allclose(model.objective, model.objective_zero)

    def test_no_features_at_all(self, one_by_one):
        model = sl1max.fit(sparse.csc_array((30, 4)), np.arange(30) % 3)
        assert model.converged and model.weights.nnz == 0

    def test_weights_far_from_zero(self):
        """Rows of a class hold a feature of their own, and there is next to no penalty."""
        y = np.repeat(np.arange(5), 20)
        X = sparse.csc_array((np.ones(100), (np.arange(100), y)), shape=(100, 5))
        ours, theirs = fit_both(X, y, beta=1e-6, tol=1e-4)
        assert_certified(ours, theirs, 1e-4)

    def test_a_step_that_is_of_no_use_gives_way_to_visits(self, one_by_one, monkeypatch):
        X, y = made()
        optimum = sl1max.fit(X, y, tol=1e-4)
        monkeypatch.setattr(many_classes, "HALVINGS", 0)
        monkeypatch.setattr(many_classes, "BALANCES", 0)
        model = sl1max.fit(X, y, tol=1e-2, max_iter=500)
        assert model.converged
        assert model.objective - optimum.objective <= model.dual_gap

    def test_rare_features_first(self, monkeypatch):
        monkeypatch.setattr(many_classes, "FIRST_ROWS", 30)
        monkeypatch.setattr(many_classes, "ROWS_PER_EXAMPLE", 0)
        X, y = made()
        assert_certified(*fit_both(X, y), 1e-3)

    def test_what_a_visit_takes_in_touches_few_rows(self, one_by_one, monkeypatch):
        monkeypatch.setattr(many_classes, "FIRST_ROWS", 100)
        monkeypatch.setattr(many_classes, "ROWS_PER_EXAMPLE", 0)
        X, y = made()
        solver = make_solver(X, y, 1e-3)
        solver.n_iter = 1
        sizes = np.diff(X.indptr)
        price = SimpleNamespace(work=np.array([2, 5, 7, 40, 41]), weights=np.array([0, 0.5, 0, 0, 0]))
        work = solver._rare_first(0, price)
        assert sizes[work].sum() < 100 and 5 not in work
        assert sizes[work].max() <= min(sizes[c] for c in (2, 7, 40, 41) if c not in work)
        solver.n_iter = 2
        assert solver._rare_first(0, price) is price.work

    def test_a_class_that_a_step_takes_too_far_is_put_back(self, one_by_one):
        X, y = made()
        solver = make_solver(X, y, 1e-2)
        solver.run(100)
        solver._was = solver.tasks.prior
        weights, b = list(solver.weights), solver.b.copy()
        solver.weights = [(cols, 0.9 * values) for cols, values in weights]
        solver.b = b + np.array([0, 0, 5.0, 0, 0, 0])
        moved = solver.weights
        solver._refresh(None)
        assert solver._tame(weights, b, None)
        assert solver.b[2] == b[2] and solver.weights[2] is weights[2] and solver.weights[3] is moved[3]
        total = solver.log_zs.copy()
        solver._refresh(None)
        assert_allclose(solver.log_zs, total, atol=1e-12)

    def test_max_iter(self, one_by_one):
        X, y = made()
        with pytest.warns(sl1max.ConvergenceWarning, match="max_iter"):
            model = sl1max.fit(X, y, tol=1e-6, max_iter=2)
        assert model.n_iter == 2 and not model.converged


class TestMixture:
    """What mixing p~ in adds to the divergence, against all cells in full."""

    @pytest.mark.parametrize("soft", [False, True])
    def test_divergence(self, soft):
        rng = np.random.default_rng(0)
        n_rows, n_classes = 30, 4
        q = rng.dirichlet(np.ones(n_classes), size=n_rows)
        mass = rng.dirichlet(np.ones(n_rows))
        label = np.eye(n_classes)[np.arange(n_rows) % n_classes]
        if soft:
            label = rng.dirichlet(np.full(n_classes, 0.3), size=n_rows)
        taken, missing = np.array([0.1, 0.0, 0.3, 0.0]), np.array([-1.0, 0.02, -1.0, 0.05])
        given = q @ taken
        p = q * (1 - taken) + given[:, None] * np.maximum(missing, 0) / 0.07
        assert_allclose(p.sum(axis=1), 1)
        held = [np.flatnonzero(label[:, c]).astype(np.int32) for c in range(n_classes)]
        owner = SimpleNamespace(
            b=np.zeros(n_classes), mass=mass, tasks=SimpleNamespace(examples=lambda c: (held[c], label[held[c], c]))
        )
        ledger = SimpleNamespace(
            own=[np.log(q[rows, c]) for c, rows in enumerate(held)], taken=taken, given=given,
            prices=[SimpleNamespace(missing=value) for value in missing],
        )  # fmt: skip
        mixture = many_classes.Mixture(owner, ledger, 0.07)

        def divergence(p):
            return mass @ special.rel_entr(p, q).sum(axis=1)

        for t in (0.0, 1e-6, 0.01, 0.3, 1.0):
            mixed = divergence((1 - t) * p + t * label)
            assert_allclose(mixture.divergence(t) + (1 - t) * divergence(p), mixed, rtol=1e-9)
        share = mixture.largest_share(0.5, 0.05)
        assert mixture.divergence(share) + 0.5 * share <= 0.05 < mixture.divergence(1.3 * share) + 0.65 * share


@pytest.fixture
def coarse_first(one_by_one, monkeypatch):
    monkeypatch.setattr(reduction, "LEAST_ROWS", 20)


class TestCoarseStart:
    @pytest.mark.parametrize("fit_intercept", [True, False])
    def test_leads_to_the_same_optimum(self, coarse_first, fit_intercept):
        X, y = made(n_rows=600, n_classes=9, seed=2)
        y[y == 8], y[7] = 0, 8  # a class of one example, that the coarse model may lack
        ours, theirs = fit_both(X, y, fit_intercept=fit_intercept)
        assert_certified(ours, theirs, 1e-3)

    def test_is_better_than_none(self, coarse_first):
        X, y = made(n_rows=2000)
        solver = make_solver(X, y, 1e-3)
        solver.run(0)
        assert solver.objective < 0.9 * solver.objective_zero and solver.n_iter == 0
        assert solver.run(100) == "converged"

    def test_interrupted(self, coarse_first):
        X, y = made(n_rows=600)
        solver = make_solver(X, y, 1e-3)
        assert solver.run(5, np.ones(1, np.int32)) == "interrupted"
        assert solver.run(100) == "converged"

    def test_does_not_depend_on_threads(self, coarse_first):
        X, y = made(n_rows=600, n_classes=40)
        alone, together = (sl1max.fit(X, y, tol=1e-2, n_jobs=n_jobs) for n_jobs in (1, 3))
        assert_array_equal(alone.weights.toarray(), together.weights.toarray())

    def test_takes_rows(self):
        X, y = made(n_rows=40)
        data = sl1max.Problem(X, y)._data
        rows = np.array([1, 2, 9, 30])
        some = take_rows(data, rows)
        assert_array_equal(some.matrix.toarray(), X.toarray()[rows])
        assert_array_equal(some.labels.toarray().argmax(axis=1), y[rows])
        assert_array_equal(some.constant, [0 if c in y[rows] else -1 for c in range(6)])


class TestStopping:
    def test_a_callback_ends_it(self, one_by_one):
        X, y = made()
        model = sl1max.fit(X, y, tol=1e-6, callback=lambda progress: progress.n_iter >= 3)
        assert model.n_iter == 3 and not model.converged
        assert np.isfinite(model.dual_gap)

    def test_ctrl_c_returns_what_there_is(self, one_by_one, monkeypatch):
        X, y = made()
        optimum = sl1max.fit(X, y, tol=1e-4)
        price = many_classes.Ledger.price

        def interrupt(ledger, classes):
            if ledger._owner.n_iter == 2:
                signal.raise_signal(signal.SIGINT)
            return price(ledger, classes)

        monkeypatch.setattr(many_classes.Ledger, "price", interrupt)
        before = signal.signal(signal.SIGINT, signal.default_int_handler)
        try:
            with pytest.warns(sl1max.ConvergenceWarning, match="interrupted"):
                model = sl1max.fit(X, y, tol=1e-6, on_interrupt="return")
        finally:
            signal.signal(signal.SIGINT, before)
        assert model.weights.nnz and not model.converged
        assert model.objective - optimum.objective <= model.dual_gap

    @pytest.mark.parametrize("within", ["_step", "_balance"])
    @pytest.mark.parametrize("raising", [True, False])
    def test_interrupted_while_weights_are_tried(self, one_by_one, monkeypatch, within, raising):
        X, y = made()
        solver = make_solver(X, y, 1e-6)
        stop = np.zeros(1, np.int32)
        original, add_up, seen = getattr(ByClassSolver, within), many_classes.Ledger.add_up, []

        def watch(owner, *arguments):
            seen.append((owner.coefficients(), owner.intercept()))
            monkeypatch.setattr(many_classes.Ledger, "add_up", interrupt)
            monkeypatch.setattr(many_classes, "SIDE_BY_SIDE", 1)
            owner._panels = [np.array([c]) for c in range(6)]
            return original(owner, *arguments)

        def interrupt(ledger, classes):
            if classes[0] == 4 and raising:
                raise KeyboardInterrupt
            stop[0] = classes[0] == 4
            return add_up(ledger, classes)

        monkeypatch.setattr(ByClassSolver, within, watch)
        if raising:
            with pytest.raises(KeyboardInterrupt):
                solver.run(100, stop)
        else:
            assert solver.run(100, stop) == "interrupted"
        ((coefficients, intercept),) = seen
        for now, before in zip(solver.coefficients(), coefficients, strict=True):
            assert_array_equal(now, before)
        assert_array_equal(solver.intercept(), intercept)

    def test_stop_flag(self, one_by_one):
        X, y = made()
        solver = make_solver(X, y, 1e-6)
        assert solver.run(2) == "running"
        assert solver.run(2, np.ones(1, np.int32)) == "interrupted"
        assert solver.run(100) == "converged"


def make_solver(X, y, tol, **settings):
    problem = sl1max.Problem(X, y, **settings)
    reduced = problem._reduce(problem._data, problem._strengths)
    (plan,) = reduced.plans("newton")
    return reduced.make_solver(plan, "newton", tol)


class TestThreads:
    def test_the_result_does_not_depend_on_them(self, one_by_one):
        X, y = made(n_rows=800, n_features=300, n_classes=40, seed=1)
        alone, together = (sl1max.fit(X, y, beta=1.0, tol=1e-3, n_jobs=n_jobs) for n_jobs in (1, 3))
        assert_array_equal(alone.weights.toarray(), together.weights.toarray())
        assert_array_equal(alone.intercept, together.intercept)
        assert alone.dual_gap == together.dual_gap

    def test_an_error_in_one_is_told(self, one_by_one, monkeypatch):
        X, y = made()

        def fail(visit):
            raise MemoryError("no room")

        monkeypatch.setattr(many_classes.Visit, "_solver", fail)
        with pytest.raises(FitMemoryError, match="no room"):
            sl1max.fit(X, y, n_jobs=2)

    @pytest.mark.parametrize(("n_jobs", "n_threads"), [(None, 1), (1, 1), (5, 5), (-1, 8), (-2, 7), (-20, 1)])
    def test_what_n_jobs_means(self, monkeypatch, n_jobs, n_threads):
        monkeypatch.setattr(os, "cpu_count", lambda: 8)
        assert parallel.n_threads_of(n_jobs) == n_threads


class TestStart:
    def test_where_an_earlier_model_ended(self, one_by_one):
        X, y = made(n_classes=8)
        model = sl1max.fit(X, y, tol=1e-5)
        again = sl1max.fit(X, y, tol=1e-4, warm_start=model)
        assert again.n_iter == 0 and again.converged
        assert_allclose(again.objective, model.objective, rtol=1e-9)
        assert_allclose(again.predict_proba(X), model.predict_proba(X), rtol=1e-9)

    def test_from_a_checkpoint(self, one_by_one, tmp_path):
        X, y = made()
        path = tmp_path / "fit.checkpoint"
        with pytest.warns(sl1max.ConvergenceWarning):
            begun = sl1max.fit(X, y, tol=1e-5, max_iter=3, checkpoint=path)
        done = sl1max.fit(X, y, tol=1e-5, checkpoint=path)
        assert done.converged and done.n_iter > begun.n_iter

    def test_least_beta_without_weights(self, one_by_one):
        X, y = made()
        least = sl1max.training._path.zero_beta(X, y)
        with choosing(costs.GRAM):
            assert_allclose(least, sl1max.training._path.zero_beta(X, y), rtol=1e-9)

    def test_left_to_the_other_solver(self, one_by_one):
        """Without a penalty there is an equality for each weight; dense columns touch all rows."""
        X, y = made()
        assert isinstance(make_solver(X, y, 1e-3), ByClassSolver)
        for matrix, settings in [(X, {"beta": 0.0}), (X.toarray() + 1.0, {}), (X, {"offset": np.zeros((300, 6))})]:
            assert not isinstance(make_solver(matrix, y, 1e-3, **settings), ByClassSolver)


class TestPieces:
    def test_columns_add_scores_of_some_columns(self):
        X, _ = made(values="real")
        columns = Columns(*X.shape, X.indptr.astype(np.int64), X.indices.astype(np.int32), X.data)
        score = np.ones(X.shape[0])
        columns.add_scores(np.array([3, 59], np.int32), np.array([0.5, -2.0]), score)
        assert_allclose(score, 1 + X[:, [3, 59]] @ [0.5, -2.0])
