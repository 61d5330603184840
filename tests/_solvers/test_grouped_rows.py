"""One class on merged rows: the same problem as the whole one, and the same certificate."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from numpy.testing import assert_allclose, assert_array_equal
from problems import merge_few_rows
from scipy import sparse

import sl1max
from sl1max._core._partition import Partition
from sl1max._core._solver import Columns, Problem, Solver
from sl1max._solvers import grouped_rows
from sl1max._solvers.grouped_rows import MergedSolver

N_ROWS, N_COLS = 400, 120


def rare_matrix(values, seed=0):
    """Few nonzeros a row, so that rare classes touch few rows."""
    rng = np.random.default_rng(seed)
    X = sparse.random_array((N_ROWS, N_COLS), density=0.02, rng=rng, format="csc")
    X.data = np.ones(X.nnz) if values == "binary" else rng.normal(size=X.nnz)
    X.sort_indices()
    return X


def make_columns(X, values, by_rows=True):
    data = None if values == "binary" else X.data
    return Columns(*X.shape, X.indptr.astype(np.int64), X.indices.astype(np.int32), data, by_rows=by_rows)


def make_problem(columns, X, rows, *, pooled, intercept):
    """(arguments of both solvers) of a class that holds the given rows."""
    share = 1 / len(rows) if pooled else 1.0
    mass = 1.0 if pooled else 1 / N_ROWS
    target = np.zeros((1, N_ROWS))
    target[0, rows] = share
    emp_mean = (X.T @ (target[0] * (1 if pooled else mass)))[None]
    beta = np.full((1, N_COLS), 0.1 if pooled else 0.3 / N_ROWS)
    problem = Problem(
        columns, emp_mean, beta, target, np.full(N_ROWS, mass),
        pooled=pooled, reference=not pooled, intercept=intercept,
    )  # fmt: skip
    return problem, (emp_mean[0], beta[0], rows, np.full(len(rows), share), 0.0, mass)


MODELS = {
    "pooled": {"pooled": True, "intercept": False},
    "logistic": {"pooled": False, "intercept": True},
    "logistic without intercept": {"pooled": False, "intercept": False},
}


@pytest.mark.parametrize("values", ["binary", "real"])
class TestColumns:
    def test_index_of_rows_prices_the_same(self, values):
        X = rare_matrix(values)
        columns = make_columns(X, values)
        rows = np.array([3, 50, 399], np.int32)
        flow, common = np.array([0.5, -0.25, 2.0]), 0.125
        full = np.full(N_ROWS, common)
        full[rows] += flow
        assert_allclose(columns.price(rows, flow, common), X.T @ full, rtol=1e-12, atol=1e-14)

    def test_sums_and_sizes(self, values):
        X = rare_matrix(values)
        columns = make_columns(X, values)
        assert_allclose(columns.total, np.append(X.sum(axis=0), N_ROWS), rtol=1e-12, atol=1e-14)
        assert_array_equal(columns.sizes, np.diff(X.indptr))
        assert columns.indexed_by_rows
        assert not make_columns(X, values, by_rows=None).indexed_by_rows

    def test_restricted_to_touched_rows(self, values):
        X = rare_matrix(values)
        columns = make_columns(X, values)
        cols, also = np.array([2, 7, 90]), np.array([5, 399], np.int32)
        rows = columns.touched_rows(cols, also)
        assert_array_equal(rows, np.union1d(np.unique(X[:, cols].tocoo().row), also))
        small = columns.restricted(cols, rows)
        assert (small.n_rows, small.n_cols) == (len(rows) + 1, 3)
        cells = np.random.default_rng(0).random((1, N_ROWS))
        inside = np.append(cells[:, rows], [[1e6]], axis=1)
        assert_allclose(small.means(inside)[0], X[:, cols].T @ cells[0], rtol=1e-12, atol=1e-14)


@pytest.mark.parametrize("values", ["binary", "real"])
class TestPartition:
    def test_rows_alike_in_the_columns_and_in_kind_share_a_group(self, values):
        X = rare_matrix(values)
        special = np.array([3, 8, 9, 200], np.int32)
        groups = Partition(make_columns(X, values), special, np.array([0, 1, 0, 0], np.int32))
        assert_array_equal(np.sort(groups.sizes()), [1, 3, N_ROWS - 4])
        cols = np.array([2, 7, 90, 91, 92])
        assert groups.refine(cols[:2], N_ROWS)
        assert groups.refine(cols[2:], N_ROWS)
        kind = np.zeros(N_ROWS)
        kind[special] = [1, 2, 1, 1]
        held = X[:, cols].toarray()
        if values == "real":  # a row that holds one of them is unlike all others
            kind[held.any(axis=1)] = 2 + np.arange(held.any(axis=1).sum())
        _, expected = np.unique(np.column_stack([kind, held]), axis=0, return_inverse=True)
        found = groups.of_rows(np.arange(N_ROWS, dtype=np.int32))
        assert groups.n_groups == len(groups.sizes()) == expected.max() + 1
        pairs = np.unique(np.column_stack([expected.ravel(), found]), axis=0)
        assert len(pairs) == groups.n_groups
        assert_array_equal(np.bincount(found), groups.sizes())

    def test_restricted_and_price(self, values):
        X = rare_matrix(values)
        groups = Partition(make_columns(X, values), np.array([5, 399], np.int32), np.zeros(2, np.int32))
        cols = np.array([2, 7, 90])
        groups.refine(cols, N_ROWS)
        small = groups.restricted(cols)
        assert (small.n_rows, small.n_cols) == (groups.n_groups, 3)
        flow = np.random.default_rng(0).random(groups.n_groups)
        cells = (flow / groups.sizes())[groups.of_rows(np.arange(N_ROWS, dtype=np.int32))]
        assert_allclose(small.means(flow[None])[0], X[:, cols].T @ cells, rtol=1e-12, atol=1e-14)
        assert_allclose(groups.price(flow), X.T @ cells, rtol=1e-12, atol=1e-14)

    def test_stops_at_the_limit(self, values):
        groups = Partition(make_columns(rare_matrix(values), values), np.zeros(0, np.int32), np.zeros(0, np.int32))
        assert not groups.refine(np.arange(N_COLS), 5)
        assert 5 < groups.n_groups < N_ROWS


@given(st.data())
def test_groups_of_any_binary_matrix(data):
    """Refined in any order and in any portions, rows share a group just when they are the same."""
    n_rows, n_cols = data.draw(st.integers(1, 30)), data.draw(st.integers(1, 6))
    dense = np.array(data.draw(st.lists(st.booleans(), min_size=n_rows * n_cols, max_size=n_rows * n_cols)))
    dense = dense.reshape(n_rows, n_cols)
    X = sparse.csc_array(dense.astype(float))
    groups = Partition(make_columns(X, "binary"), np.zeros(0, np.int32), np.zeros(0, np.int32))
    for col in data.draw(st.permutations(range(n_cols))):
        groups.refine(np.array([col]), n_rows)
    _, expected = np.unique(dense, axis=0, return_inverse=True)
    found = groups.of_rows(np.arange(n_rows, dtype=np.int32))
    assert len(np.unique(np.column_stack([expected.ravel(), found]), axis=0)) == groups.n_groups == expected.max() + 1


@pytest.mark.parametrize("values", ["binary", "real"])
@pytest.mark.parametrize("model", MODELS)
class TestSolver:
    @pytest.mark.parametrize("n_examples", [1, 2, 7])
    @pytest.mark.parametrize("tol", [1e-3, 1e-9])
    def test_same_optimum_as_the_whole_problem(self, model, values, n_examples, tol):
        X = rare_matrix(values)
        columns = make_columns(X, values)
        rows = np.sort(np.random.default_rng(1).choice(N_ROWS, n_examples, replace=False)).astype(np.int32)
        problem, arguments = make_problem(columns, X, rows, **MODELS[model])
        best = Solver(problem, tol=1e-12)
        best.run(1000)
        solver = MergedSolver(
            columns,
            *arguments,
            **MODELS[model],
            tol=tol,
            whole=lambda start: Solver(problem, tol=tol, warm_start=start),
        )
        assert_allclose(solver.objective_zero, best.objective_zero, rtol=1e-12)
        assert solver.run(1000) == "converged"
        assert solver.dual_gap <= tol * abs(solver.objective_zero)
        excess = solver.objective - best.objective
        rounding = 1e-13 * abs(solver.objective_zero)
        assert -rounding <= excess <= solver.dual_gap + best.dual_gap + rounding
        if tol < 1e-6:
            lam = np.zeros((2, N_COLS))
            for row, found in zip(lam, (solver, best), strict=True):
                row[found.coefficients()[1]] = found.coefficients()[2]
            assert_allclose(lam[0], lam[1], atol=1e-3)
            assert_allclose(solver.intercept(), best.intercept(), atol=1e-3)
            if MODELS[model]["pooled"]:
                assert_allclose(solver.log_z, best.log_z, atol=1e-6)

    def test_hands_on_what_splits_too_much(self, model, values, monkeypatch):
        monkeypatch.setattr(grouped_rows, "LARGEST_SHARE", 0.0)
        X = rare_matrix(values)
        columns = make_columns(X, values)
        problem, arguments = make_problem(columns, X, np.array([3, 8], np.int32), **MODELS[model])
        starts = []

        def whole(start):
            starts.append(start)
            return Solver(problem, tol=1e-6, warm_start=start)

        solver = MergedSolver(columns, *arguments, **MODELS[model], tol=1e-6, whole=whole)
        assert solver.run(1000) == "converged"
        assert starts == [None]
        assert solver.n_iter > 0
        plain = whole(None)
        plain.run(1000)
        assert solver.objective == plain.objective
        assert_array_equal(solver.coefficients(), plain.coefficients())

    def test_goes_on_from_where_it_stands(self, model, values):
        X = rare_matrix(values)
        columns = make_columns(X, values)
        problem, arguments = make_problem(columns, X, np.array([3, 8, 9], np.int32), **MODELS[model])

        def solver():
            return MergedSolver(
                columns, *arguments, **MODELS[model], tol=1e-8,
                whole=lambda start: Solver(problem, tol=1e-8, warm_start=start),
            )  # fmt: skip

        at_once, by_steps = solver(), solver()
        at_once.run(1000)
        while by_steps.run(1) == "running":
            pass
        assert by_steps.objective == at_once.objective

    def test_stop_flag(self, model, values):
        X = rare_matrix(values)
        columns = make_columns(X, values)
        problem, arguments = make_problem(columns, X, np.array([3, 8, 9], np.int32), **MODELS[model])
        solver = MergedSolver(columns, *arguments, **MODELS[model], tol=1e-8, whole=lambda start: Solver(problem))
        assert solver.run(1000, np.ones(1, np.int32)) == "interrupted"
        assert solver.expectations().shape[0] == 1


@pytest.mark.parametrize(
    ("distribution", "label_mode"),
    [
        ("conditional", "independent"),
        ("class-conditional", "exclusive"),
        ("joint", "exclusive"),
        ("joint", "independent"),
    ],
)
def test_fit_with_and_without(distribution, label_mode, monkeypatch):
    """A fit that may use it gives the model of one that may not."""
    rng = np.random.default_rng(0)
    X = sparse.random_array((30_000, 60), density=0.01, rng=rng, format="csr")
    X.data[:] = 1
    y = np.zeros(30_000, int)
    y[rng.choice(30_000, 6, replace=False)] = [1, 2, 2, 3, 3, 3]
    options = {"distribution": distribution, "label_mode": label_mode, "beta": 0.5, "tol": 1e-6}
    plain = sl1max.fit(X, y, **options)
    made = merge_few_rows(monkeypatch)
    rare = sl1max.fit(X, y, **options)
    # Two for each class if its rest has a problem of its own; of a frequent class with a Z for each example, none.
    n_merged = {("joint", "independent"): 8, ("conditional", "independent"): 3}
    assert len(made) == n_merged.get((distribution, label_mode), 4)
    assert_allclose(rare.objective, plain.objective, rtol=2e-6)
    assert_allclose(rare.weights.toarray(), plain.weights.toarray(), atol=0.02)
    assert_allclose(rare.intercept, plain.intercept, atol=0.02)
