"""sl1max.Problem and sl1max.Solver: steps, and what may be changed between them."""

from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from scipy import sparse
from strategies import random_data

import sl1max
from sl1max._core import _solver
from sl1max._core._options import SolverOptions

MODELS = [
    (distribution, label_mode)
    for distribution in ("conditional", "joint", "class-conditional")
    for label_mode in ("exclusive", "independent")
]
TOL = 1e-8


def make_data(seed=0, n_samples=80, n_features=12, n_classes=3, values="binary"):
    rng = np.random.default_rng(seed)
    X, y = random_data(rng, n_samples, n_features, n_classes, values)
    return rng, X, np.array(["a", "b", "c", "d"])[y]


def run(solver, n=1000):
    assert solver.step(n) == "converged"
    return solver.result()


def assert_same_model(model, other, tol=TOL):
    """Objectives within their gaps, and the probabilities that go with them."""
    slack = np.abs(other.objective_zero) * 2 * tol
    assert np.all(np.abs(model.objective - other.objective) <= slack)
    assert_allclose(model.objective_zero, other.objective_zero, rtol=1e-12)
    assert_allclose(model.weights.toarray(), other.weights.toarray(), atol=1e-2)
    assert_allclose(model.class_prior, other.class_prior, rtol=1e-12)


def test_C_in_place_of_beta():
    _, X, y = make_data()
    model = run(sl1max.Solver(sl1max.Problem(X, y, C=4.0), tol=TOL))
    assert_same_model(model, sl1max.fit(X, y, C=4.0, tol=TOL))
    assert (model.beta, model.beta_rule) == (0.25, "count")
    with pytest.raises(ValueError, match=r"^beta and C are two names of one strength"):
        sl1max.Problem(X, y, beta=0.5, C=2.0)


@pytest.mark.parametrize("fit_intercept", [True, False])
@pytest.mark.parametrize(("distribution", "label_mode"), MODELS)
class TestEveryModel:
    def test_steps_to_the_model_of_fit(self, distribution, label_mode, fit_intercept):
        _, X, y = make_data()
        options = {"distribution": distribution, "label_mode": label_mode, "fit_intercept": fit_intercept}
        solver = sl1max.Solver(sl1max.Problem(X, y, **options), tol=TOL)
        while solver.step() == "running":
            assert np.any(solver.dual_gap > TOL * np.abs(solver.result().objective_zero))
        assert_same_model(solver.result(), sl1max.fit(X, y, tol=TOL, **options))

    def test_changes_lead_to_the_model_of_fit(self, distribution, label_mode, fit_intercept):
        rng, X, y = make_data(values="unit")
        options = {"distribution": distribution, "label_mode": label_mode, "fit_intercept": fit_intercept}
        solver = sl1max.Solver(sl1max.Problem(X, y, **options), tol=TOL)
        run(solver)
        weight = rng.random(len(y)) + 0.1
        solver.reweight(weight)
        assert_same_model(run(solver), sl1max.fit(X, y, sample_weight=weight, tol=TOL, **options))
        y = rng.permutation(y)
        solver.set_target(y)
        assert_same_model(run(solver), sl1max.fit(X, y, sample_weight=weight, tol=TOL, **options))
        solver.set_beta(0.2)
        expected = sl1max.fit(X, y, sample_weight=weight, beta=0.2, tol=TOL, **options)
        assert_same_model(run(solver), expected)
        assert solver.result().beta == 0.2

    def test_weight_zero_leaves_examples_out(self, distribution, label_mode, fit_intercept):
        _, X, y = make_data()
        options = {"distribution": distribution, "label_mode": label_mode, "fit_intercept": fit_intercept}
        options |= {"beta_rule": "count", "beta": 0.3}
        half = np.arange(len(y)) % 2
        solver = sl1max.Solver(sl1max.Problem(X, y, **options), tol=TOL)
        solver.step(3)
        solver.reweight(half)
        assert_same_model(run(solver), sl1max.fit(X, y, sample_weight=half, tol=TOL, **options))
        solver.reweight(None)
        assert_same_model(run(solver), sl1max.fit(X, y, tol=TOL, **options))

    def test_the_weights_are_kept(self, distribution, label_mode, fit_intercept):
        _, X, y = make_data(values="unit")
        problem = sl1max.Problem(X, y, distribution=distribution, label_mode=label_mode, fit_intercept=fit_intercept)
        solver = sl1max.Solver(problem, tol=1e-6)
        run(solver)
        before, n_iter = solver.weights("c").copy(), np.sum(solver.n_iter)
        assert before.any()
        solver.reweight(np.full(len(y), 2.0))  # for beta_rule="deviation" another problem, but not a very other one
        assert_array_equal(solver.weights("c"), before)
        solver.reweight(None)
        run(solver)
        assert np.sum(solver.n_iter) == n_iter
        assert_array_equal(solver.weights("c"), before)


@pytest.mark.parametrize(("distribution", "label_mode"), MODELS)
def test_an_example_without_weight_is_not_heard_however_loud(distribution, label_mode):
    """Its score would leave nothing of the others' weights."""
    _, X, y = make_data(values="unit")
    X[0] = 1e4 * np.sign(np.arange(X.shape[1]) % 2 - 0.5)
    weight = np.ones(len(y))
    weight[0] = 0
    options = {"distribution": distribution, "label_mode": label_mode, "beta_rule": "count", "sample_weight": weight}
    solver = sl1max.Solver(sl1max.Problem(X, y, **options), tol=1e-6)
    assert_same_model(run(solver), sl1max.fit(X, y, tol=1e-6, **options), tol=1e-6)


def test_soft_labels():
    rng, X, _ = make_data()
    shares, other = rng.dirichlet(np.ones(3), size=(2, len(X)))
    solver = sl1max.Solver(sl1max.Problem(X, shares, label_mode="exclusive", beta=0.2), tol=TOL)
    run(solver)
    solver.set_target(other)
    assert_same_model(run(solver), sl1max.fit(X, other, label_mode="exclusive", beta=0.2, tol=TOL))
    assert solver.result().trained_on_indicator


def test_target_and_weights_at_once():
    rng, X, y = make_data()
    weight, other = rng.random(len(y)), rng.permutation(y)
    solver = sl1max.Solver(sl1max.Problem(X, y), tol=TOL)
    solver.set_target(other, weight)
    assert_same_model(run(solver), sl1max.fit(X, other, sample_weight=weight, tol=TOL))


def test_offset_stays():
    rng, X, y = make_data()
    offset = rng.normal(size=(len(y), 3))
    weight = rng.random(len(y))
    solver = sl1max.Solver(sl1max.Problem(X, y, offset=offset), tol=TOL)
    solver.reweight(weight)
    assert_same_model(run(solver), sl1max.fit(X, y, offset=offset, sample_weight=weight, tol=TOL))


@pytest.mark.parametrize(("distribution", "label_mode"), MODELS)
def test_another_offset(distribution, label_mode):
    rng, X, y = make_data()
    first, second = rng.normal(size=(2, len(y), 3))
    options = {"distribution": distribution, "label_mode": label_mode}
    solver = sl1max.Solver(sl1max.Problem(X, y, offset=first, **options), tol=TOL)
    run(solver)
    solver.set_offset(second)
    assert_same_model(run(solver), sl1max.fit(X, y, offset=second, tol=TOL, **options))
    solver.set_offset(None)
    assert_same_model(run(solver), sl1max.fit(X, y, tol=TOL, **options))


def test_unlabelled_examples_wait_for_their_labels():
    rng, X, _ = make_data()
    shares = rng.dirichlet(np.ones(3), size=len(X))
    some = shares * (np.arange(len(X)) % 2)[:, None]
    solver = sl1max.Solver(sl1max.Problem(X, some, label_mode="exclusive"), tol=TOL)
    assert_same_model(run(solver), sl1max.fit(X[1::2], some[1::2], label_mode="exclusive", tol=TOL))
    solver.set_target(shares)
    assert_same_model(run(solver), sl1max.fit(X, shares, label_mode="exclusive", tol=TOL))


def test_a_constant_class_comes_to_life_and_back():
    _, X, _ = make_data()
    Y = np.zeros((len(X), 2))
    Y[::3, 0] = 1
    with pytest.warns(UserWarning, match="no example to class 1"):
        problem = sl1max.Problem(X, Y)
    solver = sl1max.Solver(problem, tol=TOL)
    assert run(solver).intercept[1] == -np.inf
    with pytest.raises(ValueError, match="label=1 has no weights of its own"):
        solver.weights(1)
    full = Y.copy()
    full[1::3, 1] = 1
    solver.set_target(full)
    assert_same_model(run(solver), sl1max.fit(X, full, tol=TOL))
    solver.set_target(Y)
    assert run(solver).intercept[1] == -np.inf


@pytest.mark.parametrize("distribution", ["conditional", "class-conditional"])
def test_a_rare_class_among_very_many_examples(monkeypatch, distribution):
    """`sl1max.fit` solves it on the few rows that it touches: a solver that may change looks at all."""
    monkeypatch.setattr(_solver, "DEFAULT_OPTIONS", SolverOptions(many_rows=1))
    rng, X, y = make_data(n_samples=300)
    y[:] = np.where(np.arange(300) < 6, "a", "b")
    options = {"distribution": distribution, "label_mode": "independent"}
    solver = sl1max.Solver(sl1max.Problem(sparse.csc_array(X), y, **options), tol=TOL)
    assert_same_model(run(solver), sl1max.fit(X, y, tol=TOL, **options))
    weight = rng.random(len(y)) + 0.1
    solver.reweight(weight)
    assert_same_model(run(solver), sl1max.fit(X, y, sample_weight=weight, tol=TOL, **options))


def test_solvers_share_a_problem():
    rng, X, y = make_data()
    problem = sl1max.Problem(X, y)
    one, other = sl1max.Solver(problem, tol=TOL), sl1max.Solver(problem, tol=TOL)
    weight = rng.random(len(y))
    other.reweight(weight)
    assert_same_model(run(one), sl1max.fit(X, y, tol=TOL))
    assert_same_model(run(other), sl1max.fit(X, y, sample_weight=weight, tol=TOL))


def test_sequential_steps_are_single_updates():
    _, X, y = make_data(values="unit")
    solver = sl1max.Solver(sl1max.Problem(X, y), solver="sequential")
    assert solver.step(3) == "running"
    assert solver.n_iter == 3
    first = solver.objective
    solver.step(20)
    assert solver.objective < first
    solver.set_beta(5.0)
    run(solver, 100_000)
    assert_allclose(solver.objective, sl1max.fit(X, y, beta=5.0).objective, rtol=1e-3)


def test_warm_start():
    _, X, y = make_data()
    model = sl1max.fit(X, y, tol=1e-9)
    solver = sl1max.Solver(sl1max.Problem(X, y), tol=1e-6, warm_start=model)
    run(solver)
    assert solver.n_iter == 0


def test_a_result_is_not_changed_by_later_steps():
    _, X, y = make_data()
    solver = sl1max.Solver(sl1max.Problem(X, y), tol=TOL)
    solver.step(1)
    early = solver.result()
    weights = early.weights.toarray()
    run(solver)
    assert_array_equal(early.weights.toarray(), weights)
    assert solver.result() is solver.result() is not early


def test_the_callers_arrays_are_left_alone():
    _, X, y = make_data()
    shares = np.eye(3)[np.unique(y, return_inverse=True)[1]]
    solver = sl1max.Solver(sl1max.Problem(X, shares, label_mode="exclusive"), tol=TOL)
    before = run(solver)
    kept = shares.copy()
    shares[:] = 1 / 3  # after the fact: the solver has its own
    solver.reweight(np.ones(len(y)))
    assert_same_model(run(solver), before)
    assert_same_model(before, sl1max.fit(X, kept, label_mode="exclusive", tol=TOL))


class TestNoCopies:
    @pytest.mark.parametrize("values", ["binary", "unit"])
    def test_sparse_columns(self, values):
        _, X, y = make_data(values=values)
        X = sparse.csc_array(X)
        problem = sl1max.Problem(X, y)
        assert np.shares_memory(problem._data.matrix.indices, X.indices)
        if values == "unit":
            assert np.shares_memory(problem._data.matrix.data, X.data)
        solver = sl1max.Solver(problem)
        matrix, columns = solver._data.matrix, solver._data.columns
        solver.reweight(np.arange(len(y)) + 1.0)
        solver.set_target(y)
        solver.set_offset(np.zeros((len(y), 3)))
        assert solver._data.matrix is matrix and solver._data.columns is columns

    def test_dense_columns(self):
        rng, _, y = make_data()
        X = np.asfortranarray(rng.random((len(y), 4)))
        assert np.shares_memory(sl1max.Problem(X, y)._data.matrix, X)

    @pytest.mark.parametrize(("distribution", "label_mode"), MODELS)
    def test_weights_are_a_view(self, distribution, label_mode):
        _, X, y = make_data()
        solver = sl1max.Solver(sl1max.Problem(X, y, distribution=distribution, label_mode=label_mode), tol=TOL)
        view = solver.weights("b")
        assert not view.any() and not view.flags.writeable
        model = run(solver)
        assert view.any() and np.shares_memory(view, solver.weights("b"))
        if label_mode == "exclusive" or distribution == "conditional":
            assert_array_equal(view, model.weights[[1]].toarray().ravel())
        solver.set_beta(1.0)
        assert np.shares_memory(view, solver.weights("b"))


class TestErrors:
    def make(self):
        _, X, y = make_data()
        return sl1max.Solver(sl1max.Problem(X, y)), y

    def test_problem(self):
        with pytest.raises(ValueError, match=r"problem must be a sl1max.Problem, not list"):
            sl1max.Solver([])

    def test_options(self):
        _, X, y = make_data()
        with pytest.raises(ValueError, match="distribution='no' is unknown"):
            sl1max.Problem(X, y, distribution="no")
        with pytest.raises(ValueError, match="tol=0 must be"):
            sl1max.Solver(sl1max.Problem(X, y), tol=0)
        with pytest.raises(ValueError, match="outside \\[0, 1\\]"):
            sl1max.Solver(sl1max.Problem(-X, y), solver="sequential")
        with pytest.raises(ValueError, match="warm_start has 2 features"):
            sl1max.Solver(sl1max.Problem(X, y), warm_start=sl1max.fit(X[:, :2], y))

    @pytest.mark.parametrize("n", [-1, 0.5, "3"])
    def test_n(self, n):
        with pytest.raises(ValueError, match="must be an integer >= 0"):
            self.make()[0].step(n)

    def test_label(self):
        with pytest.raises(ValueError, match="label='x' is not a class"):
            self.make()[0].weights("x")
        _, X, y = make_data(n_classes=2)
        with pytest.raises(ValueError, match="label='a' has no weights of its own"):
            sl1max.Solver(sl1max.Problem(X, y)).weights("a")

    def test_targets(self):
        solver, y = self.make()
        before = solver.result().objective
        with pytest.raises(ValueError, match="y has label x, not a class of the problem"):
            solver.set_target(np.where(y == "a", "x", y))
        with pytest.raises(ValueError, match="y has 2 classes, but the problem has 3"):
            solver.set_target(np.ones((len(y), 2)))
        with pytest.raises(ValueError, match="y has 3 examples, but X has 80"):
            solver.set_target(y[:3])
        with pytest.raises(ValueError, match="no example of class c"):
            solver.set_target(np.where(y == "c", "a", y))
        with pytest.raises(ValueError, match="sample_weight is negative"):
            solver.reweight(-np.ones(len(y)))
        with pytest.raises(ValueError, match="beta must not be negative"):
            solver.set_beta(-1)
        with pytest.raises(ValueError, match="offset with one value per example cancels"):
            solver.set_offset(np.zeros(len(y)))
        assert solver.result().objective == before


# Threads


CALLS = {
    "step": lambda solver, y: solver.step(1),
    "reweight": lambda solver, y: solver.reweight(None),
    "set_target": lambda solver, y: solver.set_target(y),
    "set_beta": lambda solver, y: solver.set_beta(0.3),
    "set_offset": lambda solver, y: solver.set_offset(None),
    "result": lambda solver, y: solver.result(),
}


@pytest.mark.parametrize("call", CALLS)
def test_solver_in_use_by_another_thread_raises(call):
    _, X, y = make_data()
    solver = sl1max.Solver(sl1max.Problem(X, y), tol=TOL)
    with ThreadPoolExecutor(1) as pool, solver._lock:
        with pytest.raises(RuntimeError, match="in use by another thread: give each thread a Solver of its own"):
            pool.submit(CALLS[call], solver, y).result()
    CALLS[call](solver, y)
    run(solver)


@pytest.mark.parametrize("form", [np.asarray, sparse.csr_array, sparse.csc_array])
def test_threads_share_a_problem(form):
    _, X, y = make_data()
    problem = sl1max.Problem(form(X), y)
    alone = run(sl1max.Solver(sl1max.Problem(form(X), y), tol=TOL))
    with ThreadPoolExecutor(4) as pool:
        for model in pool.map(lambda _: run(sl1max.Solver(problem, tol=TOL)), range(8)):
            assert_array_equal(model.weights.toarray(), alone.weights.toarray())
            assert_array_equal(model.dual_gap, alone.dual_gap)
