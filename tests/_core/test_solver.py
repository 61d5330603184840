"""The compiled core against the slow twin: values at given weights, then the way to the optimum."""

from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest
import reference as ref
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.testing import assert_allclose, assert_array_equal
from problems import make_columns, make_problem, make_solver, make_twin
from strategies import NORMALIZERS, one_hot, random_data, random_twin, twins

from sl1max._core._options import SolverOptions

FORMS = {"binary": "binary", "sparse": "real", "dense": "real"}
ALGORITHMS = ("newton", "sequential")


def weights(solver, twin):
    """(lam, b) of the solver as dense arrays."""
    lam = np.zeros(twin.emp_mean.shape)
    blocks, cols, values = solver.coefficients()
    lam[blocks, cols] = values
    return lam, solver.intercept()


def as_warm_start(lam, b):
    blocks, cols = np.nonzero(lam)
    return blocks.astype(np.int32), cols.astype(np.int32), lam[blocks, cols], b


def rounding_of(twin):
    """What the objective cannot tell apart: the rounding error of the largest terms it is made of."""
    return 1e-12 * (1 + abs(ref.objective_zero(twin)))


def gap_rounding(twin):
    """An expectation of size max |x| is known to a few ulps of it, and the gap divides them by beta."""
    beta = np.where(twin.beta > 0, twin.beta, np.inf)
    return 1e-12 + 1e-13 * np.max(np.abs(twin.X).max(axis=0) / beta)


# ---------------------------------------------------------------------------------------- at given weights


def test_columns_describe_themselves():
    X = np.array([[1.0, 0.0], [1.0, 1.0], [0.0, 0.0]])
    for form in FORMS:
        columns = make_columns(X, form)
        assert (columns.n_rows, columns.n_cols, columns.nnz) == (3, 2, 6 if form == "dense" else 3)
        assert (columns.binary, columns.dense) == (form == "binary", form == "dense")
        assert_array_equal(columns.low, [0, 0, 1])
        assert_array_equal(columns.high, [1, 1, 1])
        assert_array_equal(make_columns(X[:2], form).reach, [0, 1, 0])


@pytest.mark.parametrize("with_offset", [False, True])
@pytest.mark.parametrize("intercept", [False, True])
@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize("normalizer", NORMALIZERS)
class TestAtGivenWeights:
    def make(self, normalizer, form, intercept, with_offset, beta=0.5):
        options = {"intercept": intercept, "with_offset": with_offset, "weighted": True, "beta": beta}
        return make_twin(normalizer, values=FORMS[form], **options)

    def warm(self, twin, form, scale):
        rng = np.random.default_rng(7)
        lam = rng.normal(size=twin.emp_mean.shape) * scale * (rng.random(twin.emp_mean.shape) < 0.5)
        b = rng.normal(size=twin.n_blocks) * scale if twin.intercept else np.zeros(twin.n_blocks)
        solver = make_solver(twin, form, warm_start=as_warm_start(lam, b), tol=0.0)
        solver.run(0)
        return solver, lam, b

    @pytest.mark.parametrize("scale", [0.1, 3.0, 300.0])
    def test_objective_and_expectations(self, normalizer, form, intercept, with_offset, scale):
        twin = self.make(normalizer, form, intercept, with_offset)
        solver, lam, b = self.warm(twin, form, scale)
        assert_allclose(solver.objective, twin.objective(lam, b), rtol=1e-12)
        assert_allclose(solver.expectations(), twin.model_mean(lam, b), rtol=1e-10, atol=1e-13)
        assert_array_equal(weights(solver, twin)[0], lam)
        assert_array_equal(weights(solver, twin)[1], b)

    def test_objective_zero(self, normalizer, form, intercept, with_offset):
        twin = self.make(normalizer, form, intercept, with_offset)
        assert_allclose(make_solver(twin, form).objective_zero, ref.objective_zero(twin), rtol=1e-12)

    def test_log_z(self, normalizer, form, intercept, with_offset):
        twin = self.make(normalizer, form, intercept, with_offset)
        solver, lam, b = self.warm(twin, form, 0.5)
        if twin.pooled:
            assert_allclose(solver.log_z, twin.log_z(lam, b), rtol=1e-12)
        else:
            assert np.isnan(solver.log_z)

    @pytest.mark.parametrize("scale", [0.01, 0.1, 1.0])
    def test_gap_is_the_certificate(self, normalizer, form, intercept, with_offset, scale):
        twin = self.make(normalizer, form, intercept, with_offset)
        _, lam, b = self.warm(twin, form, scale)
        b = ref.solve_intercept(twin, lam)
        solver = make_solver(twin, form, warm_start=as_warm_start(lam, b), tol=0.0)
        solver.run(0)
        assert_allclose(solver.dual_gap, ref.certificate(twin, lam, b).gap, rtol=1e-8, atol=1e-12)

    def test_gap_with_unpenalised_features(self, normalizer, form, intercept, with_offset):
        beta = np.full(12, 0.5)
        beta[[0, 5]], beta[3] = 0, np.inf
        twin = self.make(normalizer, form, intercept, with_offset, beta=beta)
        best = ref.oracle(twin)
        for shrink in (1.0, 0.98, 0.5):
            lam, b = best.lam * shrink, ref.solve_intercept(twin, best.lam * shrink)
            solver = make_solver(twin, form, warm_start=as_warm_start(lam, b), tol=0.0)
            solver.run(0)
            assert_allclose(solver.dual_gap, ref.certificate(twin, lam, b).gap, rtol=1e-7, atol=1e-11)


# ------------------------------------------------------------------------------------------- to the optimum


def assert_reaches_the_optimum(twin, algorithm, tol, n=100_000, form=None):
    solver = make_solver(twin, form, algorithm=algorithm, tol=tol)
    status = solver.run(n)
    best = ref.oracle(twin)
    distance = solver.objective - best.objective
    assert status == "converged", (status, solver.dual_gap, distance)
    assert solver.dual_gap <= tol * abs(solver.objective_zero)
    assert -rounding_of(twin) <= distance <= solver.dual_gap + rounding_of(twin)
    lam, b = weights(solver, twin)
    assert_allclose(solver.objective, twin.objective(lam, b), rtol=1e-12, atol=1e-15)
    return solver


@pytest.mark.parametrize("with_offset", [False, True])
@pytest.mark.parametrize("intercept", [False, True])
@pytest.mark.parametrize("normalizer", NORMALIZERS)
class TestOptimum:
    @pytest.mark.parametrize("form", FORMS)
    def test_newton(self, normalizer, intercept, with_offset, form):
        options = {"intercept": intercept, "with_offset": with_offset, "weighted": True}
        twin = make_twin(normalizer, shape=(80, 40), values=FORMS[form], beta=0.3, **options)
        assert_reaches_the_optimum(twin, "newton", tol=1e-8, n=200, form=form)

    @pytest.mark.parametrize("values", ["binary", "unit"])
    def test_sequential(self, normalizer, intercept, with_offset, values):
        options = {"intercept": intercept, "with_offset": with_offset, "weighted": True}
        twin = make_twin(normalizer, shape=(30, 8), values=values, beta=1.0, **options)
        assert_reaches_the_optimum(twin, "sequential", tol=1e-6)

    def test_unpenalised_and_left_out(self, normalizer, intercept, with_offset):
        beta = np.full(12, 0.5)
        beta[[0, 5]], beta[3] = 0, np.inf
        options = {"intercept": intercept, "with_offset": with_offset}
        twin = make_twin(normalizer, shape=(60, 12), beta=beta, **options)
        solver = assert_reaches_the_optimum(twin, "newton", tol=1e-8, n=200)
        assert 3 not in solver.coefficients()[1]

    def test_conditions_of_optimality(self, normalizer, intercept, with_offset):
        options = {"intercept": intercept, "with_offset": with_offset}
        twin = make_twin(normalizer, shape=(60, 20), **options)
        solver = make_solver(twin, tol=1e-12)
        solver.run(200)
        lam, _ = weights(solver, twin)
        off = solver.expectations() - twin.emp_mean
        assert np.all(np.abs(off) <= twin.beta + 1e-6)
        assert_allclose(off[lam != 0], -(np.sign(lam) * twin.beta)[lam != 0], atol=1e-6)


@pytest.mark.parametrize("values", ["binary", "unit"])
@pytest.mark.parametrize("normalizer", NORMALIZERS)
def test_sequential_chooses_as_the_paper_says(normalizer, values):
    twin = make_twin(normalizer, seed=4, shape=(50, 15), values=values, intercept=False, weighted=True)
    expected_lam, expected, expected_objective = ref.sequential(twin, 30)
    solver = make_solver(twin, algorithm="sequential", pricing="full", tol=0.0)
    before, chosen, objective = np.zeros(twin.emp_mean.shape), [], []
    for _ in expected:
        solver.run(1)
        lam, _ = weights(solver, twin)
        chosen += [tuple(map(int, coord)) for coord in np.argwhere(lam != before)]
        objective.append(solver.objective)
        before = lam
    assert chosen == expected
    assert_allclose(before, expected_lam, atol=1e-9)
    assert_allclose(objective, expected_objective[1:], rtol=1e-12)


@pytest.mark.parametrize("values", ["binary", "unit"])
@pytest.mark.parametrize("normalizer", NORMALIZERS)
def test_partial_pricing_takes_no_poor_step(normalizer, values):
    """It begins as full pricing does, and after as many steps has come about as far."""
    twin = make_twin(normalizer, seed=5, shape=(100, 80), values=values, beta=0.2, weighted=True)
    options = {"algorithm": "sequential", "tol": 0.0}
    full, partial = (make_solver(twin, pricing=pricing, **options) for pricing in ("full", "partial"))
    full.run(1)
    partial.run(1)
    assert full.last_step == partial.last_step
    full.run(150)
    partial.run(150)
    assert_allclose(partial.objective, full.objective, rtol=5e-3)
    walks = [solver.counters["column_walks"] for solver in (full, partial)]
    assert walks[1] <= walks[0] * 1.2


@settings(max_examples=40)
@given(twins(max_samples=60, max_features=20, values=("binary", "unit"), odd=("constant", "zero")))
def test_promised_decrease_is_never_more_than_the_true_one(twin):
    solver = make_solver(twin, algorithm="sequential", tol=0.0)
    solver.run(0)
    for _ in range(30):
        before = solver.objective
        if solver.run(1) != "running":
            break
        gain, decrease = solver.last_step[3], before - solver.objective
        assert decrease >= gain - rounding_of(twin)
        if twin.pooled and np.isin(twin.X, (0, 1)).all():
            assert_allclose(decrease, gain, rtol=1e-6, atol=rounding_of(twin))


def assert_descends(twin, algorithm, n_steps, pricing="partial"):
    """The objective never rises between steps, and the gap is never below the distance to the optimum."""
    best, rounding = ref.oracle(twin), rounding_of(twin)
    solver = make_solver(twin, algorithm=algorithm, tol=1e-8, pricing=pricing)
    last = solver.objective_zero
    for _ in range(n_steps):
        status = solver.run(1)
        assert solver.objective <= last + rounding
        assert solver.dual_gap >= solver.objective - best.objective - rounding
        last = solver.objective
        if status != "running":
            break
    return solver, status


class TestRandomProblems:
    @settings(max_examples=150)
    @given(twins())
    def test_newton(self, twin):
        solver, status = assert_descends(twin, "newton", 100)
        assert status == "converged" or solver.dual_gap <= gap_rounding(twin), (status, solver.dual_gap)

    @settings(max_examples=40)
    @given(
        twins(values=("binary", "unit"), odd=("constant", "duplicate", "zero", "separating")),
        st.sampled_from(("full", "partial")),
    )
    def test_sequential(self, twin, pricing):
        assert_descends(twin, "sequential", 60, pricing)

    @settings(max_examples=30)
    @given(
        twins(max_samples=40, max_features=15, values=("binary", "unit"), odd=("constant", "zero")),
        st.sampled_from(("full", "partial")),
    )
    def test_sequential_converges(self, twin, pricing):
        solver = make_solver(twin, algorithm="sequential", pricing=pricing, tol=1e-3)
        assert solver.run(200_000) == "converged"

    @settings(max_examples=60)
    @given(twins(max_samples=60, max_features=20), st.integers(0, 2**31))
    def test_gap_is_the_certificate(self, twin, seed):
        lam = np.random.default_rng(seed).normal(size=twin.emp_mean.shape)
        lam /= 10 * np.maximum(np.abs(twin.X).max(axis=0), 1)
        lam[np.isinf(make_solver(twin).problem.beta[:, :-1])] = 0
        b = ref.solve_intercept(twin, lam)
        solver = make_solver(twin, warm_start=as_warm_start(lam, b), tol=0.0)
        solver.run(0)
        expected = ref.certificate(twin, lam, b).gap
        assert_allclose(solver.dual_gap, expected, rtol=1e-6, atol=10 * gap_rounding(twin))


@pytest.mark.parametrize("normalizer", NORMALIZERS)
def test_a_tighter_gap(normalizer):
    """A p that is tilted along what it violates proves gaps that the model's own distribution does not; true ones."""
    n_rounds = {}
    for cells in (0, 1 << 40):
        options = SolverOptions(tight_cells=cells)
        n_rounds[cells] = 0
        for seed in range(4):
            twin = make_twin(normalizer, seed=seed, shape=(100, 60), values="binary", beta=0.2)
            solver = make_solver(twin, tol=1e-3, options=options)
            assert solver.run(100) == "converged"
            n_rounds[cells] += solver.n_iter
            distance = solver.objective - ref.oracle(twin).objective
            assert -rounding_of(twin) <= distance <= solver.dual_gap + rounding_of(twin)
            assert solver.dual_gap <= 1e-3 * abs(solver.objective_zero)
    assert n_rounds[0] <= n_rounds[1 << 40]


@pytest.mark.parametrize("seed", range(30))
def test_small_multinomial_converges(seed):
    """The case on which multinomial L1 solvers are said to fail (scikit-learn PR 34681)."""
    datasets = pytest.importorskip("sklearn.datasets")
    X, y = datasets.make_classification(20, 20, n_informative=10, n_classes=3, random_state=seed)
    for intercept in (False, True):
        twin = ref.conditional(X, one_hot(y), np.ones(20), beta=1.0, beta_rule="count", intercept=intercept)
        assert_reaches_the_optimum(twin, "newton", tol=1e-8, n=200, form="dense")


# -------------------------------------------------------------------------------------------------- the traps


@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize("odd", ["constant", "duplicate", "zero", "huge", "separating"])
@pytest.mark.parametrize("normalizer", NORMALIZERS)
def test_odd_columns(normalizer, odd, form):
    if form == "binary" and odd == "huge":
        pytest.skip("a binary column has no huge values")
    twin = make_twin(normalizer, values="binary", shape=(40, 6), odd=(odd, odd), beta=0.05, intercept=False)
    assert_reaches_the_optimum(twin, "newton", tol=1e-8, n=200, form=form)


@pytest.mark.parametrize("normalizer", ["pooled", "pooled_blocks"])
def test_columns_without_a_zero(normalizer):
    """The range of a column under one Z: other blocks give it the value zero, other rows do not."""
    rng = np.random.default_rng(0)
    X, y = random_data(rng, 40, 4, values="unit")
    X += np.array([1.0, 10.0, 0.0, -5.0])
    twin = random_twin(rng, X, y, normalizer, intercept=False)
    assert assert_descends(twin, "newton", 100)[1] == "converged"
    assert_reaches_the_optimum(twin, "newton", tol=1e-8, n=200, form="dense")


@pytest.mark.parametrize("algorithm", ALGORITHMS)
@pytest.mark.parametrize("normalizer", NORMALIZERS)
def test_one_example_per_class(normalizer, algorithm):
    twin = make_twin(normalizer, values="binary", shape=(3, 6))
    assert_reaches_the_optimum(twin, algorithm, tol=1e-6)


@pytest.mark.parametrize("algorithm", ALGORITHMS)
@pytest.mark.parametrize("normalizer", NORMALIZERS)
def test_separable_without_penalty_stays_finite(normalizer, algorithm):
    twin = make_twin(normalizer, values="binary", odd=("separating",), beta=0.0, shape=(20, 4))
    solver = make_solver(twin, algorithm=algorithm, tol=1e-6)
    solver.run(300)
    lam, b = weights(solver, twin)
    assert np.isfinite(lam).all() and np.isfinite(b).all()
    assert np.isfinite(solver.objective) and solver.objective <= solver.objective_zero
    assert_allclose(solver.objective, twin.objective(lam, b), rtol=1e-9, atol=1e-12)
    assert solver.dual_gap >= 0


@pytest.mark.parametrize("normalizer", NORMALIZERS)
def test_penalty_too_large_for_any_weight(normalizer):
    twin = make_twin(normalizer, beta=1e6)
    solver = make_solver(twin, tol=1e-10)
    assert solver.run(10) == "converged"
    assert len(solver.coefficients()[0]) == 0
    assert_allclose(solver.objective, solver.objective_zero, rtol=1e-14)


@pytest.mark.parametrize("values", ["binary", "unit", "real"])
@pytest.mark.parametrize("normalizer", ["reference", "two_blocks", "blocks"])
def test_constraints_that_every_distribution_meets(normalizer, values):
    """Rare features whose penalty no model could exceed are left out; that changes nothing about the optimum."""
    rng = np.random.default_rng(5)
    X, y = random_data(rng, 80, 30, n_classes=3, values=values)
    X[:, ::2] *= rng.random((80, 15)) < 0.1
    twin = random_twin(rng, X, y, normalizer, beta=2.5, beta_rule="count")
    solver = assert_reaches_the_optimum(twin, "newton", tol=1e-9)
    left_out = np.isinf(solver.problem.beta[:, :-1]) & np.any(X != 0, axis=0)
    assert left_out.any() and not left_out.all()
    assert not left_out[:, np.any(X < 0, axis=0)].any()
    # Whatever the scores, the means of what was left out stay within their intervals.
    for _ in range(20):
        means = twin.model_mean(rng.normal(scale=20, size=twin.emp_mean.shape), np.zeros(len(twin.emp_mean)))
        assert np.all(np.abs(means - twin.emp_mean)[left_out] <= twin.beta[left_out] * (1 + 1e-12))


@pytest.mark.parametrize("normalizer", NORMALIZERS)
def test_everything_left_out(normalizer):
    twin = make_twin(normalizer, beta=np.inf)
    solver = make_solver(twin, tol=1e-10)
    assert solver.run(10) == "converged"
    assert len(solver.coefficients()[0]) == 0


@pytest.mark.slow
@pytest.mark.parametrize("normalizer", NORMALIZERS)
def test_no_drift_in_many_updates(normalizer):
    twin = make_twin(normalizer, shape=(60, 30), values="unit", beta=0.001, intercept=False)
    solver = make_solver(twin, algorithm="sequential", tol=0.0)
    solver.run(100_000)
    lam, b = weights(solver, twin)
    assert_allclose(solver.objective, twin.objective(lam, b), rtol=1e-11)
    assert_allclose(solver.expectations(), twin.model_mean(lam, b), atol=1e-12)


# --------------------------------------------------------------------------------------------------- the face


@pytest.mark.parametrize("algorithm", ALGORITHMS)
@pytest.mark.parametrize("normalizer", NORMALIZERS)
class TestFace:
    def test_warm_start_at_the_optimum_makes_no_update(self, normalizer, algorithm):
        twin = make_twin(normalizer, values="binary")
        best = ref.oracle(twin)
        solver = make_solver(twin, algorithm=algorithm, tol=1e-8, warm_start=as_warm_start(best.lam, best.b))
        assert solver.run(100) == "converged"
        assert solver.n_iter == 0 and solver.counters["updates"] == 0

    def test_one_run_or_many(self, normalizer, algorithm):
        twin = make_twin(normalizer, values="unit")
        together, apart = (make_solver(twin, algorithm=algorithm, tol=1e-7) for _ in range(2))
        together.run(6)
        for _ in range(6):
            apart.run(1)
        assert together.n_iter == apart.n_iter
        assert_allclose(together.objective, apart.objective, rtol=1e-13)

    def test_stop_is_obeyed(self, normalizer, algorithm):
        twin = make_twin(normalizer, values="unit")
        solver = make_solver(twin, algorithm=algorithm, tol=0.0)
        assert solver.run(10, stop=np.ones(1, np.int32)) == "interrupted"
        assert solver.run(1, stop=np.zeros(1, np.int32)) in {"running", "converged", "stalled"}
        assert np.isfinite(solver.objective)

    def test_never_converged_without_the_gap(self, normalizer, algorithm):
        twin = make_twin(normalizer, values="unit")
        solver = make_solver(twin, algorithm=algorithm, tol=1e-3)
        while solver.run(1) == "running":
            assert solver.dual_gap > 1e-3 * solver.objective_zero
        assert solver.dual_gap <= 1e-3 * solver.objective_zero

    def test_read_only_buffers_are_left_alone(self, normalizer, algorithm):
        twin = make_twin(normalizer, values="unit", with_offset=True)
        arrays = [twin.X, twin.emp_mean, twin.beta, twin.target, twin.mass, twin.offset]
        before = [array.copy() for array in arrays]
        for array in arrays:
            array.setflags(write=False)
        make_solver(twin, "dense", algorithm=algorithm).run(5)
        for array, copy in zip(arrays, before, strict=True):
            assert_array_equal(array, copy)

    def test_threads_give_the_same_bits(self, normalizer, algorithm):
        twin = make_twin(normalizer, values="unit", shape=(100, 30))

        def solve(_):
            solver = make_solver(twin, algorithm=algorithm, tol=1e-6)
            solver.run(500)
            return solver.objective, *weights(solver, twin)

        alone = solve(0)
        with ThreadPoolExecutor(4) as pool:
            for found in pool.map(solve, range(8)):
                for one, other in zip(found, alone, strict=True):
                    assert_array_equal(one, other)


# ------------------------------------------------------------------------------------- the same columns again


def change_to(solver, twin):
    solver.change(make_problem(twin, solver.problem.columns))


@pytest.mark.parametrize("form", FORMS)
def test_means(form):
    rng = np.random.default_rng(1)
    X = random_data(rng, 30, 8, values=FORMS[form])[0]
    cells = rng.random((3, 30))
    assert_allclose(make_columns(X, form).means(cells), cells @ X, rtol=1e-12, atol=1e-14)


@pytest.mark.parametrize("with_offset", [False, True])
@pytest.mark.parametrize("algorithm", ALGORITHMS)
@pytest.mark.parametrize("normalizer", NORMALIZERS)
def test_a_changed_problem_goes_on_from_its_weights_to_its_own_optimum(normalizer, algorithm, with_offset):
    rng = np.random.default_rng(3)
    X, y = random_data(rng, 60, 12, n_classes=3, values="unit")
    first = random_twin(rng, X, y, normalizer, beta=0.5, with_offset=with_offset)
    second = random_twin(rng, X, rng.permutation(y), normalizer, beta=0.2, weighted=True, with_offset=with_offset)
    tol = {"newton": 1e-9, "sequential": 1e-5}[algorithm]
    solver = make_solver(first, algorithm=algorithm, tol=tol)
    assert solver.run(100_000) == "converged"
    weights_before = solver.weights.copy()
    change_to(solver, second)
    assert_array_equal(solver.weights, np.where(np.isfinite(solver.problem.beta), weights_before, 0))
    fresh = make_solver(second, algorithm=algorithm, tol=tol)
    assert_allclose(solver.objective_zero, fresh.objective_zero, rtol=1e-12)
    assert solver.run(100_000) == fresh.run(100_000) == "converged"
    assert abs(solver.objective - fresh.objective) <= solver.dual_gap + fresh.dual_gap + rounding_of(second)


def test_a_changed_problem_drops_what_is_left_out_and_frees_what_is_unpenalised():
    twin = make_twin("blocks", seed=5, shape=(80, 6))
    solver = make_solver(twin, tol=1e-9)
    solver.run(1000)
    held = solver.weights
    assert held[:, 0].any()
    beta = twin.beta.copy()
    beta[:, 0], beta[:, 1] = np.inf, 0.0
    changed = ref.replace(twin, beta=beta)
    change_to(solver, changed)
    assert np.shares_memory(held, solver.weights)
    assert not held[:, 0].any()
    assert solver.run(1000) == "converged"
    lam, b = weights(solver, changed)
    assert_allclose(changed.model_mean(lam, b)[:, 1], changed.emp_mean[:, 1], atol=1e-6)


def test_newton_step_on_empty_working_set():
    """An offset makes every sweep return to zero weights: the Newton system then has no coordinate."""
    X = np.zeros((20, 1))
    X[::2] = 1.0
    target, mass = np.ones((1, 20)), np.full(20, 0.05)
    beta, offset = np.full((1, 1), 0.4), np.full((1, 20), -3.0)
    twin = ref.Twin(X, (target * mass) @ X, beta, target, mass, False, True, False, offset)
    solver = make_solver(twin, tol=1e-6)
    solver.set_weights(np.full((1, 1), 1e-9), 0.0)
    assert solver.run(1000) == "converged"


def test_restart_at_the_optimum_makes_no_step():
    twin = make_twin("reference", shape=(80, 6))
    solver = make_solver(twin, tol=1e-6)
    assert solver.run(1000) == "converged"
    n_iter = solver.n_iter
    solver.restart()
    assert solver.run(1000) == "converged"
    assert solver.n_iter == n_iter


@pytest.mark.parametrize("form", ["binary", "sparse"])
@pytest.mark.parametrize("normalizer", NORMALIZERS)
def test_prices_by_rows(normalizer, form):
    """The index of rows changes how prices are added up, and nothing else."""
    rng = np.random.default_rng(0)
    twin = random_twin(rng, *random_data(rng, 60, 20, values=FORMS[form]), normalizer)
    by_columns, by_rows = (make_solver(twin, form, by_rows=by_rows, tol=1e-10) for by_rows in (False, True))
    for solver in (by_columns, by_rows):
        solver.run(0)
    assert_allclose(by_rows.dual_gap, by_columns.dual_gap, rtol=1e-9)
    for solver in (by_columns, by_rows):
        assert solver.run(1000) == "converged"
    assert_allclose(by_rows.objective, by_columns.objective, rtol=1e-9)
