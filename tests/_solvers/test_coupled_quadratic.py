"""All classes at once to second order: the Hessian, the step."""

from types import SimpleNamespace

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from scipy import sparse

from sl1max._core._coupled import Descent, places_of
from sl1max._core._solver import Columns
from sl1max._solvers import coupled_quadratic
from sl1max._solvers.coupled_quadratic import Quadratic, cumulate

N_ROWS, N_FEATURES, N_CLASSES = 40, 7, 3


def columns_of(X):
    values = None if (X.data == 1).all() else X.data
    return Columns(*X.shape, X.indptr.astype(np.int64), X.indices.astype(np.int32), values, by_rows=True)


class Made:
    """A problem of few classes, each with some of the features at work, and its Hessian in full."""

    def __init__(self, values="binary", seed=0, intercept=True):
        rng = np.random.default_rng(seed)
        X = sparse.random_array((N_ROWS, N_FEATURES), density=0.4, rng=rng, format="csc")
        X.data = np.ones(X.nnz) if values == "binary" else rng.normal(size=X.nnz)
        self.columns = columns_of(X)
        self.mass = rng.dirichlet(np.full(N_ROWS, 5.0))
        self.work = [np.array(cols, np.int32) for cols in ([0, 2, 5], [1, 2, 3, 6], [4])]
        self.prob = rng.dirichlet(np.ones(N_CLASSES), size=N_ROWS)
        dense = np.column_stack([X.toarray(), np.ones(N_ROWS)])
        self.block = [dense[:, [*work, N_FEATURES]] for work in self.work]
        self.intercept = intercept
        self.prices = [self._price(rng, c) for c in range(N_CLASSES)]

    def _price(self, rng, c):
        flow = self.mass * self.prob[:, c]
        n = len(self.work[c])
        weights = rng.normal(size=n) * (rng.random(n) < 0.7)
        mean = self.block[c].T @ flow
        return SimpleNamespace(
            work=self.work[c], weights=weights, beta=rng.uniform(0.001, 0.01, n), mean=mean[:-1], share=mean[-1],
            gradient=rng.normal(scale=0.02, size=n), missing=[0.02, -0.03, 0.01][c],
        )  # fmt: skip

    def cells(self):
        rows = np.arange(N_ROWS, dtype=np.int32)
        return [(rows, self.prob[:, c].copy()) for c in range(N_CLASSES)]

    def quadratic(self):
        return Quadratic(self.columns, self.mass, self.prices, self.cells(), self.intercept)

    def hessian(self):
        """sum_i u_i x_i x_i' q_c (1[c = d] - q_d), block by block."""

        def block(c, d):
            curve = self.mass * self.prob[:, c] * ((c == d) - self.prob[:, d])
            return self.block[c].T @ (curve[:, None] * self.block[d])

        return np.block([[block(c, d) for d in range(N_CLASSES)] for c in range(N_CLASSES)])

    def gathered(self, name, last):
        return np.concatenate([np.append(getattr(price, name), last(price)) for price in self.prices])

    def step_of(self, quadratic, length=1.0):
        weights, rise = quadratic.moved(length)
        steps = []
        for price, (cols, values), b in zip(self.prices, weights, rise, strict=True):
            new = np.zeros(len(price.work))
            new[np.searchsorted(price.work, cols)] = values
            steps += [new - price.weights, [b]]
        return np.concatenate(steps)


@pytest.fixture
def far_reaching(monkeypatch):
    monkeypatch.setattr(coupled_quadratic, "RADIUS", np.inf)
    monkeypatch.setattr(coupled_quadratic, "MAX_RUNS", 1000)


class TestStep:
    @pytest.mark.parametrize("values", ["binary", "real"])
    @pytest.mark.parametrize("intercept", [True, False])
    def test_is_the_optimum_of_the_model(self, far_reaching, values, intercept):
        task = Made(values, intercept=intercept)
        quadratic = task.quadratic()
        assert quadratic.solve(1e-10)
        step = task.step_of(quadratic)
        slope = task.gathered("gradient", lambda price: -price.missing) + task.hessian() @ step
        new = task.gathered("weights", lambda _: 0.0) + step
        beta = task.gathered("beta", lambda _: 0.0)
        penalised = beta > 0
        assert_allclose((slope + beta * np.sign(new))[penalised & (new != 0)], 0, atol=1e-8)
        assert (np.abs(slope) <= beta + 1e-8)[penalised & (new == 0)].all()
        assert_allclose((slope if intercept else step)[~penalised], 0, atol=1e-8)

    def test_change_of_the_model(self):
        task = Made()
        quadratic = task.quadratic()
        quadratic.solve(1e-3)
        step = task.step_of(quadratic)
        weights, beta = (task.gathered(name, lambda _: 0.0) for name in ("weights", "beta"))
        change = task.gathered("gradient", lambda price: -price.missing) @ step + 0.5 * step @ task.hessian() @ step
        change += beta @ (np.abs(weights + step) - np.abs(weights))
        assert_allclose(quadratic._descent.change_of_model(), change, rtol=1e-9)
        assert change < 0

    def test_is_no_longer_than_the_radius(self, monkeypatch):
        monkeypatch.setattr(coupled_quadratic, "RADIUS", 0.01)
        task = Made()
        quadratic = task.quadratic()
        quadratic.solve(0.0)
        assert np.abs(task.step_of(quadratic)).max() <= 0.01 + 1e-12
        assert_allclose(task.step_of(quadratic, 0.5), 0.5 * task.step_of(quadratic), atol=1e-15)

    def test_stop(self):
        assert not Made().quadratic().solve(0.0, np.ones(1, np.int32))

    def test_what_the_cells_leave_out_is_a_diagonal(self):
        """Without any cell each coordinate is on its own."""
        nothing = np.empty(0, np.int32)
        one = np.array([0, 2], np.int64), np.zeros(2, np.int64), np.zeros(3, np.int64), nothing, None, nothing
        descent = Descent(
            *one, np.empty(0), np.ones(5), np.array([3.0, 1.0]), np.zeros(2), np.array([1.0, 0.0]),
            np.array([4.0, 2.0]), 10.0,
        )  # fmt: skip
        assert descent.run(8, 1, 0.0) == 2.0
        assert_allclose(descent.step, [-0.5, -0.5])

    def test_balance(self):
        task = Made()
        missing = np.array([price.missing for price in task.prices])
        share = task.prob.T @ task.mass
        rise = task.quadratic().balance(missing, share)
        hessian = np.diag(share) - task.prob.T @ (task.mass[:, None] * task.prob)
        assert_allclose(hessian @ rise, missing, atol=1e-4)


class TestCells:
    def test_places(self):
        X = sparse.csc_array(np.array([[0, 2.0, 0], [3, 0, 0], [0, 4, 5]]))
        indptr, places, values = places_of(columns_of(X), np.array([1, 2], np.int32), np.array([2, 0], np.int32))
        assert_array_equal(indptr, [0, 2, 3])
        assert_array_equal(places, [0, 1, 0])
        assert_array_equal(values, [4, 2, 5])

    def test_cumulate(self):
        assert_array_equal(cumulate([2, 0, 3]), [0, 2, 2, 5])
