"""Some classes side by side: probabilities, sums, means and the sample of cells, against numpy."""

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from scipy import sparse

from sl1max._core._panel import PANEL_WIDTH, Panel
from sl1max._core._solver import Columns

N_ROWS, N_FEATURES = 50, 23


class Made:
    """Classes with some weights each, Z that are not quite theirs, and q in full."""

    def __init__(self, values="binary", n_classes=5, scale=1.0, seed=0):
        rng = np.random.default_rng(seed)
        X = sparse.random_array((N_ROWS, N_FEATURES), density=0.3, rng=rng, format="csc")
        X.data = np.ones(X.nnz) if values == "binary" else rng.normal(size=X.nnz)
        self.X = X.toarray()
        stored = None if values == "binary" else X.data
        columns = Columns(*X.shape, X.indptr.astype(np.int64), X.indices.astype(np.int32), stored, by_rows=True)
        lam = scale * rng.normal(size=(n_classes, N_FEATURES)) * (rng.random((n_classes, N_FEATURES)) < 0.4)
        lam[0] = 0
        b = scale * rng.normal(size=n_classes)
        score = self.X @ lam.T + b
        self.mass = rng.dirichlet(np.full(N_ROWS, 5.0))
        self.log_z = np.logaddexp.reduce(score, axis=1) + 0.1 * rng.normal(size=N_ROWS)
        self.prob = np.exp(score - self.log_z[:, None])
        self.panel = Panel(columns, [(np.flatnonzero(row).astype(np.int32), row[row != 0]) for row in lam], b)
        self.z = self.log_z, np.exp(-self.log_z), self.mass


def sample(prob, notable):
    """Cells of one class: those above ``notable``, and so many of the others, of this q, as have their sum."""
    above = prob > notable
    cumulated = np.cumsum(np.where(above, 0, prob))
    n = int(cumulated[-1] / notable + 0.5)
    chosen = np.searchsorted(cumulated, (np.arange(n) + 0.5) * notable)
    rows = np.concatenate([np.flatnonzero(above), chosen])
    order = np.argsort(rows)
    return rows[order], np.maximum(prob[rows], notable)[order]


@pytest.fixture(params=["binary", "real"])
def values(request):
    return request.param


@pytest.mark.parametrize("n_classes", [1, 5, PANEL_WIDTH])
@pytest.mark.parametrize("scale", [1.0, 100.0])  # beyond the range of exp, too
class TestAgainstNumpy:
    def test_sums(self, values, n_classes, scale):
        made = Made(values, n_classes, scale)
        total, share = made.panel.add_up(*made.z)
        assert_allclose(total, made.prob.sum(axis=1), rtol=1e-10)
        assert_allclose(share, made.mass @ made.prob, rtol=1e-10)

    def test_sums_of_parts(self, values, n_classes, scale):
        made = Made(values, n_classes, scale)
        part = np.linspace(0, 1, n_classes)
        total, share = made.panel.add_up(*made.z, part)
        assert_allclose(total, made.prob @ part, rtol=1e-10, atol=1e-300)
        assert_allclose(share, made.mass @ made.prob, rtol=1e-10)

    def test_scores(self, values, n_classes, scale):
        made = Made(values, n_classes, scale)
        rows = np.array([3, 7, 49], np.int32)
        for c in range(n_classes):
            expected = np.log(np.maximum(made.prob[rows, c], 1e-300)) + made.log_z[rows]
            seen = made.prob[rows, c] > 1e-300
            assert_allclose(made.panel.scores(c, rows)[seen], expected[seen], rtol=1e-9, atol=1e-10)

    def test_prices(self, values, n_classes, scale):
        made = Made(values, n_classes, scale)
        total, share, least, means, _ = made.panel.price(*made.z, 0.01)
        assert_allclose(total, made.prob.sum(axis=1), rtol=1e-10)
        assert_allclose(share, made.mass @ made.prob, rtol=1e-10)
        assert_allclose(least, made.prob.min(axis=0), rtol=1e-10, atol=1e-300)
        assert_allclose(means, (made.mass[:, None] * made.prob).T @ made.X, rtol=1e-9, atol=1e-14)

    def test_cells(self, values, n_classes, scale):
        made = Made(values, n_classes, scale)
        rows, slots, prob = made.panel.price(*made.z, 0.15)[-1]
        assert (np.diff(rows) >= 0).all()
        for c in range(n_classes):
            expected_rows, expected = sample(made.prob[:, c], 0.15)
            assert_array_equal(rows[slots == c], expected_rows)
            assert_allclose(prob[slots == c], expected, rtol=1e-10)


def test_more_rows_than_a_block():
    n_rows = 40_000
    X = sparse.csc_array((np.arange(n_rows) % 3 == 0)[:, None].astype(float))
    columns = Columns(*X.shape, X.indptr.astype(np.int64), X.indices.astype(np.int32), None, by_rows=True)
    panel = Panel(columns, [(np.array([0], np.int32), np.array([1.0]))], np.array([-5.0]))
    prob = np.exp(-5 + X.toarray().ravel())
    mass = np.full(n_rows, 1 / n_rows)
    total, share, _, means, (rows, _, sampled) = panel.price(np.zeros(n_rows), np.ones(n_rows), mass, 0.1)
    assert_allclose(total, prob)
    assert_allclose(share, prob.mean())
    assert_allclose(means, [X.T @ prob / n_rows])
    assert (sampled == 0.1).all()
    assert abs(sampled.sum() - prob.sum()) <= 0.1
    assert rows[-1] > n_rows - 100
