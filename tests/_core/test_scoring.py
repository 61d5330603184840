"""The compiled scores and rankings against scipy and a stable sort."""

import pickle
from concurrent.futures import ThreadPoolExecutor
from functools import partial

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from numpy.testing import assert_allclose, assert_array_equal
from scipy import sparse

import sl1max
from sl1max._core._scoring import Rows, Weights, score_rows, top_rows

FORMS = ("binary", "sparse", "dense")


def make_rows(X, form):
    """X as an index list (ones only), as indices and values, or dense, row after row."""
    if form == "dense":
        return Rows(*X.shape, None, None, X.ravel())
    rows = sparse.csr_array(X)
    values = None if form == "binary" else rows.data
    return Rows(*X.shape, rows.indptr.astype(np.int64), rows.indices.astype(np.int32), values)


def make_weights(lam):
    by_feature = sparse.csc_array(lam)
    return Weights(len(lam), by_feature.indptr, by_feature.indices, by_feature.data)


def score(X, lam, constant, offset=None, form="sparse"):
    out = np.full((len(X), len(lam)), np.nan)
    score_rows(make_weights(lam), make_rows(X, form), constant, offset, 0, len(X), out)
    return out


def top(X, lam, constant, k, offset=None, form="sparse"):
    classes, scores = np.full((len(X), k), -1, np.int32), np.full((len(X), k), np.nan)
    top_rows(make_weights(lam), make_rows(X, form), constant, offset, 0, len(X), classes, scores)
    return classes, scores


def stable_top(scores, k):
    """Best first, equals by class."""
    order = np.argsort(-scores, axis=1, kind="stable")[:, :k]
    return order, np.take_along_axis(scores, order, axis=1)


def random_case(rng, n_samples, n_features, n_classes, binary=False, density=0.3):
    X = (rng.random((n_samples, n_features)) < density) * (1.0 if binary else rng.normal(size=n_features))
    lam = (rng.random((n_classes, n_features)) < density) * rng.normal(size=(n_classes, n_features))
    return X, lam, rng.normal(size=n_classes)


@pytest.mark.parametrize("with_offset", [False, True])
@pytest.mark.parametrize("form", FORMS)
@given(
    shape=st.tuples(st.integers(1, 20), st.integers(1, 40), st.integers(1, 30)),
    density=st.sampled_from([0.0, 0.05, 0.3, 1.0]),
    seed=st.integers(0, 2**32 - 1),
    data=st.data(),
)
def test_against_numpy(form, with_offset, shape, density, seed, data):
    rng = np.random.default_rng(seed)
    X, lam, constant = random_case(rng, *shape, binary=form == "binary", density=density)
    offset = rng.normal(size=(len(X), len(lam))) if with_offset else None
    scores = score(X, lam, constant, offset, form)
    assert_allclose(scores, X @ lam.T + constant + (offset if with_offset else 0), rtol=1e-12, atol=1e-12)
    k = data.draw(st.integers(1, len(lam)))
    classes, best = top(X, lam, constant, k, offset, form)
    expected_classes, expected = stable_top(scores, k)
    assert_array_equal(classes, expected_classes)
    assert_array_equal(best, expected)


@pytest.mark.parametrize("form", FORMS)
def test_a_broadcast_offset_and_an_infinite_constant(form):
    rng = np.random.default_rng(0)
    X, lam, constant = random_case(rng, 9, 7, 5, binary=True)
    constant[[1, 3]] = np.inf, -np.inf
    offset = np.broadcast_to(rng.normal(size=(9, 1)), (9, 5))
    scores = score(X, lam, constant, offset, form)
    assert_allclose(scores, X @ lam.T + constant + offset)
    classes, _ = top(X, lam, constant, 5, offset, form)
    assert (classes[:, 0] == 1).all() and (classes[:, -1] == 3).all()


@given(st.integers(1, 12), st.integers(0, 2**32 - 1))
def test_equal_scores_go_by_class(k, seed):
    rng = np.random.default_rng(seed)
    X = rng.integers(0, 2, (30, 6)).astype(float)
    lam = rng.integers(-1, 2, (12, 6)).astype(float)
    constant = rng.integers(0, 2, 12).astype(float)
    classes, scores = top(X, lam, constant, k)
    expected_classes, expected = stable_top(X @ lam.T + constant, k)
    assert_array_equal(classes, expected_classes)
    assert_array_equal(scores, expected)


@pytest.mark.parametrize("form", FORMS)
def test_empty_rows_and_no_weights(form):
    rng = np.random.default_rng(1)
    X, lam, constant = random_case(rng, 8, 6, 4, binary=True)
    X[[0, 5]] = 0
    assert_array_equal(score(X, lam, constant, form=form)[[0, 5]], np.tile(constant, (2, 1)))
    assert_array_equal(score(X, 0 * lam, constant, form=form), np.tile(constant, (8, 1)))
    assert_array_equal(score(0 * X, lam, constant, form=form), np.tile(constant, (8, 1)))
    assert_array_equal(top(0 * X, lam, constant, 1, form=form)[0], np.full((8, 1), constant.argmax()))


def test_blocks_of_rows_and_threads_give_the_same_bits():
    rng = np.random.default_rng(2)
    X, lam, constant = random_case(rng, 500, 60, 40)
    weights, rows = make_weights(lam), make_rows(X, "sparse")
    whole = score(X, lam, constant)
    whole_top = top(X, lam, constant, 3)
    parts, classes, best = np.empty_like(whole), np.empty((500, 3), np.int32), np.empty((500, 3))

    def run(first):
        score_rows(weights, rows, constant, None, first, first + 50, parts[first : first + 50])
        top_rows(weights, rows, constant, None, first, first + 50, classes, best)

    with ThreadPoolExecutor(4) as pool:
        list(pool.map(run, range(0, 500, 50)))
    assert_array_equal(parts, whole)
    assert_array_equal(classes, whole_top[0])
    assert_array_equal(best, whole_top[1])


def test_read_only_buffers():
    rng = np.random.default_rng(3)
    X, lam, constant = random_case(rng, 20, 10, 5)
    expected = score(X, lam, constant)
    rows = sparse.csr_array(X)
    arrays = rows.indptr.astype(np.int64), rows.indices.astype(np.int32), rows.data
    for array in (*arrays, constant):
        array.flags.writeable = False
    out = np.empty_like(expected)
    score_rows(make_weights(lam), Rows(20, 10, *arrays), constant, None, 0, 20, out)
    assert_array_equal(out, expected)


# -------------------------------------------------------------------------------- through the model


def fit_model(n_classes=7, indicator=False, n_samples=2000, **options):
    rng = np.random.default_rng(4)
    X = (rng.random((n_samples, 30)) < 0.2).astype(float)
    y = rng.integers(0, n_classes, n_samples)
    X[np.arange(n_samples), y] = 1
    return sl1max.fit(X, np.eye(n_classes, dtype=int)[y] if indicator else y, **options), X


@pytest.fixture
def small_blocks(monkeypatch):
    """Many blocks of rows for few rows."""
    monkeypatch.setattr("sl1max.model._model.BLOCK_CELLS", 1)


def in_many_kinds(X):
    kinds = [sparse.csr_array, sparse.csr_matrix, sparse.csc_array, sparse.coo_array, np.asfortranarray]
    yield from (kind(X) for kind in kinds)
    yield from (X.astype(dtype) for dtype in (np.float32, np.int8, bool, ">f8"))
    yield np.repeat(X, 2, axis=1)[:, ::2]
    wide = sparse.csr_array(X)
    wide.indices, wide.indptr = wide.indices.astype(np.int64), wide.indptr.astype(np.int64)
    yield wide
    rows = sparse.coo_array(X)
    order = np.random.default_rng(5).permutation(rows.nnz)  # unsorted, and every entry in two halves
    halves = np.concatenate([rows.data[order], rows.data]) / 2
    row, col = (np.concatenate([index[order], index]) for index in (rows.row, rows.col))
    by_row = np.argsort(row, kind="stable")
    indptr = np.searchsorted(row[by_row], np.arange(len(X) + 1))
    yield sparse.csr_array((halves[by_row], col[by_row], indptr), shape=X.shape)


def test_all_kinds_of_X():
    model, X = fit_model()
    expected = X @ model.weights.toarray().T + model.intercept
    for given_X in in_many_kinds(X):
        decision = model.decision_function(given_X)
        assert_allclose(decision, expected, rtol=1e-12, atol=1e-12)
        labels, best = model.predict_top_k(given_X, 3, return_decision=True)
        order, values = stable_top(decision, 3)
        assert_array_equal(labels, model.classes[order])
        assert_array_equal(best, values)
        assert_array_equal(model.predict(given_X), labels[:, 0])


@pytest.mark.parametrize("distribution", ["conditional", "joint", "class-conditional"])
@pytest.mark.parametrize("indicator", [False, True])
def test_threads_give_the_same_bits(distribution, indicator, small_blocks):
    model, X = fit_model(indicator=indicator, distribution=distribution)
    X = sparse.csr_array(X)
    runs = (model.decision_function, model.predict_proba, model.predict, partial(model.predict_top_k, k=2))
    for run in runs:
        alone, together = run(X, n_jobs=None), run(X, n_jobs=2)
        if sparse.issparse(alone):
            alone, together = alone.toarray(), together.toarray()
        assert_array_equal(together, alone)


@pytest.mark.parametrize("distribution", ["conditional", "joint", "class-conditional"])
def test_predicted_indicator(distribution, small_blocks):
    model, X = fit_model(indicator=True, distribution=distribution)
    predicted = model.predict(X)
    assert predicted.dtype == np.int64
    assert_array_equal(predicted, model.predict_proba(X) > 0.5)


def test_predict_with_offset(small_blocks):
    model, X = fit_model()
    offset = np.random.default_rng(6).normal(size=(len(X), 7))
    assert_array_equal(model.predict(X, offset), model.decision_function(X, offset).argmax(axis=1))


def test_bad_k():
    model, X = fit_model(n_samples=100)
    for k in (0, 8, 1.5, "2"):
        with pytest.raises(ValueError, match=r"^k=.* must be an integer from 1 to the number of classes, 7$"):
            model.predict_top_k(X, k)


def test_the_cached_weights_are_not_pickled():
    model, X = fit_model(n_samples=100)
    fresh = len(pickle.dumps(model))
    decision = model.decision_function(X)
    assert len(pickle.dumps(model)) == fresh
    assert_array_equal(pickle.loads(pickle.dumps(model)).decision_function(X), decision)
