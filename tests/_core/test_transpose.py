"""Rows become columns: the same as scipy's, whatever the rows look like."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import sparse
from strategies import random_X

import sl1max
from sl1max._core._transpose import transpose
from sl1max._data.inputs import read_data


def read(X):
    return read_data(
        X, np.ones((X.shape[0], 1)), distribution="conditional", label_mode="auto", multilabel_weighting="duplicate",
        solver="auto", sample_weight=None, offset=None,
    )  # fmt: skip


def read_only(array):
    array.flags.writeable = False
    return array


@st.composite
def sparse_rows(draw):
    """A read-only csr_matrix: of either width of indices, sorted or not, with rows and columns that are empty."""
    rng = np.random.default_rng(draw(st.integers(0, 2**32 - 1)))
    shape = draw(st.integers(1, 40)), draw(st.integers(1, 30))
    X = sparse.csr_matrix(random_X(rng, *shape, draw(st.sampled_from(["binary", "real"])), draw(st.floats(0, 0.6))))
    if draw(st.booleans()):
        for a, b in zip(X.indptr, X.indptr[1:], strict=False):
            order = rng.permutation(b - a) + a
            X.indices[a:b], X.data[a:b] = X.indices[order], X.data[order]
    width = draw(st.sampled_from([np.int32, np.int64]))
    X.indices, X.indptr = read_only(X.indices.astype(width)), read_only(X.indptr.astype(width))
    X.data = read_only(X.data)
    return X


@given(sparse_rows(), st.booleans())
def test_rows_become_columns(X, repeated):
    if repeated:
        X = sparse.csr_matrix((np.repeat(X.data, 2), np.repeat(X.indices, 2), X.indptr * 2), shape=X.shape)
    binary = bool((X.data == 1).all())
    indptr, indices = X.indptr.astype(np.int64), X.indices.astype(np.int32)
    (starts, rows, values), ascending = transpose(X.shape[1], indptr, indices, None if binary else X.data)
    expected = X.tocsc()
    assert ascending == sparse.csr_array((X.data, indices, indptr), shape=X.shape).has_canonical_format
    np.testing.assert_array_equal(starts, expected.indptr)
    np.testing.assert_array_equal(rows, expected.indices)
    assert values is None if binary else np.array_equal(values, expected.data)


@given(sparse_rows())
def test_matrix_of_rows(X):
    data = read(X)
    expected = sparse.csc_array(X)
    expected.sum_duplicates()
    assert data.binary == bool((X.data == 1).all())
    assert data.matrix.data.dtype == (np.int8 if data.binary else np.float64)
    assert data.matrix.indices.dtype == data.matrix.indptr.dtype == np.int32
    for name in ("indptr", "indices", "data"):
        np.testing.assert_array_equal(getattr(data.matrix, name), getattr(expected, name))


@pytest.mark.parametrize("value", [1, 0.5])
def test_rows_with_duplicates_and_zeros(value):
    X = sparse.csr_array(([value, 0, value, value, 0], [2, 1, 0, 0, 2], [0, 2, 4, 5]), shape=(3, 3))
    matrix = read(X).matrix
    np.testing.assert_array_equal(matrix.toarray(), [[0, 0, value], [2 * value, 0, 0], [0, 0, 0]])
    assert matrix.nnz == 2


def test_mapped_rows(tmp_path):
    rng = np.random.default_rng(0)
    X, y = sparse.csr_matrix(random_X(rng, 40, 12, "real")), rng.integers(0, 3, 40)
    arrays = []
    for name in ("data", "indices", "indptr"):
        np.save(tmp_path / f"{name}.npy", getattr(X, name))
        arrays.append(np.load(tmp_path / f"{name}.npy", mmap_mode="r"))
    mapped, plain = sl1max.fit(sparse.csr_matrix(tuple(arrays), shape=X.shape), y), sl1max.fit(X.tocsc(), y)
    np.testing.assert_array_equal(mapped.weights.toarray(), plain.weights.toarray())
    assert mapped.objective == plain.objective and plain.weights.nnz > 0


@pytest.mark.parametrize("value", [np.nan, np.inf])
def test_what_is_not_finite_is_found_by_rows(value):
    X = sparse.csr_array(([1.0, 1.0, value], [1, 0, 2], [0, 1, 3]), shape=(2, 3))
    with pytest.raises(ValueError, match=f"^X has {'NaN' if np.isnan(value) else 'inf'} in row 1, column 2$"):
        read(X)


@pytest.mark.parametrize("column", [-1, 3, 2**40])
def test_columns_that_do_not_exist_are_refused(column):
    X = sparse.csr_array(([1.0, 1.0], np.array([1, 0]), [0, 1, 2]), shape=(2, 3))
    X.indices = np.array([1, column])
    with pytest.raises(ValueError, match=r"^X is not a valid sparse matrix: "):
        read(X)
