"""X is converted once for a training set, however many models are trained on it."""

import numpy as np
import pytest
from problems import assert_equal_models, make_data
from scipy import sparse

import sl1max
from sl1max._core import _solver
from sl1max._data import inputs

N_FOLDS = 3
MANY_ROWS = _solver.DEFAULT_OPTIONS.many_rows


@pytest.fixture
def conversions(monkeypatch):
    """The shapes of the matrices that have been converted to columns."""
    shapes = []
    to_columns = inputs._to_columns

    def count(X):
        shapes.append(X.shape)
        return to_columns(X)

    monkeypatch.setattr(inputs, "_to_columns", count)
    return shapes


@pytest.mark.parametrize("form", [sparse.csr_array, sparse.csc_array, np.asarray])
def test_functions_convert_once(form, conversions):
    X, y = make_data()
    X = form(X)
    for train in (
        lambda: sl1max.fit(X, y),
        lambda: sl1max.fit(X, y, label_mode="independent", n_jobs=2),
        lambda: sl1max.path(X, y, betas=4),
        lambda: sl1max.zero_beta(X, y),
        lambda: sl1max.Solver(sl1max.Problem(X, y)).step(5),
    ):
        conversions.clear()
        train()
        assert conversions == [X.shape]


@pytest.mark.parametrize("form", [sparse.csr_array, sparse.csc_array, np.asarray])
def test_estimators_convert_once(form, conversions):
    pytest.importorskip("sklearn")
    X, y = make_data()
    X = form(X)
    sl1max.MaxentClassifier().fit(X, y)
    assert conversions == [X.shape]
    conversions.clear()
    sl1max.MaxentClassifier(early_stopping=True).fit(X, y, X_val=X, y_val=y)
    assert conversions == [X.shape]


@pytest.mark.filterwarnings("ignore:The best beta")
@pytest.mark.parametrize("distribution", ["conditional", ["conditional", "joint"]])
def test_cross_validation_converts_each_training_set_once(distribution, conversions):
    pytest.importorskip("sklearn")
    X, y = make_data()
    search = sl1max.MaxentClassifierCV(betas=4, cv=N_FOLDS, distribution=distribution, n_jobs=2)
    search.fit(sparse.csr_array(X), y)
    assert len(conversions) == 1 + N_FOLDS  # the whole set, and that of each fold
    assert sorted(n_rows for n_rows, _ in conversions)[-1] == len(y)


def make_many_rows(values):
    rng = np.random.default_rng(0)
    X = sparse.random_array((MANY_ROWS, 20), density=0.05, rng=rng, format="csr")
    X.data[:] = 1.0 if values == "ones" else 0.5 + rng.random(X.nnz)
    return X, rng.integers(0, 2, MANY_ROWS)


@pytest.mark.parametrize("values", ["ones", "reals"])
def test_rows_are_not_turned_to_columns_and_back(values):
    """The rows of many examples are those that were given, where these are canonical."""
    X, y = make_many_rows(values)
    features = inputs.read_features(X)
    start, cols, data = features.row_index
    assert np.shares_memory(cols, X.indices)
    assert data is None if values == "ones" else np.shares_memory(data, X.data)
    np.testing.assert_array_equal(start, X.indptr)
    assert features.columns.indexed_by_rows
    options = {"distribution": "joint", "tol": 1e-3}
    assert_equal_models(sl1max.fit(X, y, **options), sl1max.fit(X.tocsc(), y, **options))
    weight = np.arange(MANY_ROWS) % 3 != 0.0
    assert_equal_models(
        sl1max.fit(X, y, sample_weight=weight, **options), sl1max.fit(X.tocsc(), y, sample_weight=weight, **options)
    )


def test_rows_that_are_not_canonical_are_turned():
    X, _ = make_many_rows("reals")
    zeros = X.copy()
    zeros.data[::7] = 0
    backwards = X.copy()
    for first, end in zip(X.indptr[:-1], X.indptr[1:], strict=True):
        backwards.indices[first:end] = backwards.indices[first:end][::-1]
        backwards.data[first:end] = backwards.data[first:end][::-1]
    for given in (zeros, backwards):
        features = inputs.read_features(sparse.csr_array((given.data, given.indices, given.indptr), shape=X.shape))
        assert features.row_index is None and features.columns.indexed_by_rows
    assert inputs.read_features(X[:-1]).row_index is None
    assert inputs.read_features(X.tocsc()).row_index is None
