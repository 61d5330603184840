"""Matrices in files: made from pieces, trained on and predicted from without a copy."""

import errno
import os
import pickle

import numpy as np
import pytest
from problems import MODELS, assert_equal_models, make_data
from scipy import sparse

import sl1max
from sl1max._data import inputs
from sl1max._data.inputs import Mapped, read_data
from sl1max.chunks import open_matrix, row_pieces, store_columns, store_rows


def make_matrix(values="binary"):
    rng = np.random.default_rng(0)
    X = (rng.random((200, 30)) < 0.1).astype(float)
    X[:4, 0] = 1
    return sparse.csr_array(X if values == "binary" else X * rng.random(X.shape)), rng.integers(0, 4, 200)


@pytest.mark.parametrize("values", ["binary", "real"])
@pytest.mark.parametrize("store", [store_columns, store_rows])
def test_the_matrix_comes_back(tmp_path, store, values):
    X, _ = make_matrix(values)
    for n_rows in (1, 7, 200, 500):
        stored = store(list(row_pieces(X, n_rows)), tmp_path)
        assert stored.has_canonical_format
        assert stored.dtype == (np.int8 if values == "binary" else np.float64)
        assert stored.indices.dtype == np.int32
        np.testing.assert_array_equal(stored.toarray(), X.toarray())
        assert (open_matrix(tmp_path) != X).nnz == 0
        with pytest.raises(ValueError, match="read-only"):
            stored.data[0] = 2


@pytest.mark.parametrize("kind", [sparse.csr_array, sparse.csc_array, sparse.coo_array, sparse.csr_matrix, np.asarray])
def test_a_whole_matrix(tmp_path, kind):
    X, _ = make_matrix("real")
    for store in (store_columns, store_rows):
        np.testing.assert_array_equal(store(kind(X.toarray()), tmp_path).toarray(), X.toarray())


def test_pieces_of_any_kind(tmp_path):
    """Narrow and wide, dense and sparse, with zeros and duplicates, without rows; from a function."""
    twice = sparse.coo_array((np.array([0.5, 0.5, 0.0]), ([0, 0, 1], [1, 1, 0])), shape=(2, 3))
    pieces = [np.array([[1, 0]]), twice, sparse.csr_array((0, 5)), [[0, 0, 0, 1]]]
    expected = np.array([[1, 0, 0, 0, 0, 0], [0, 1, 0, 0, 0, 0], [0] * 6, [0, 0, 0, 1, 0, 0]])
    for store in (store_columns, store_rows):
        stored = store(lambda: iter(pieces), tmp_path / "new", n_features=6)
        np.testing.assert_array_equal(stored.toarray(), expected)
        assert store(pieces, tmp_path).shape == (4, 5)
        assert store([np.zeros((3, 2))], tmp_path).toarray().tolist() == [[0, 0]] * 3


@pytest.mark.parametrize(("distribution", "label_mode"), MODELS)
def test_training_and_prediction(tmp_path, distribution, label_mode):
    X, y = make_matrix()
    pieces = list(row_pieces(X, 50))
    options = {"distribution": distribution, "label_mode": label_mode}
    model = sl1max.fit(store_columns(pieces, tmp_path / "columns"), y, **options)
    assert_equal_models(model, sl1max.fit(X, y, **options))
    rows = store_rows(pieces, tmp_path / "rows")
    np.testing.assert_array_equal(model.predict(rows), model.predict(X))


def test_training_copies_nothing(tmp_path):
    X, y = make_matrix()
    stored = store_columns([X], tmp_path)
    data = read_data(
        stored, y, distribution="joint", label_mode="auto", multilabel_weighting="equal", solver="auto",
        sample_weight=None, offset=None,
    )  # fmt: skip
    for array in (data.matrix.indices, data.matrix.data):
        assert Mapped.find(array).path.startswith(str(tmp_path))
    buffers = inputs.core_buffers(data.matrix, data.binary)
    assert np.shares_memory(buffers[3], data.matrix.indices)


def test_files_are_sent_by_name(tmp_path):
    X, y = make_matrix("real")
    options = {
        "distribution": "joint", "label_mode": "auto", "multilabel_weighting": "equal", "solver": "auto",
        "sample_weight": None, "offset": None,
    }  # fmt: skip
    stored = read_data(store_columns([X], tmp_path), y, **options)
    again = pickle.loads(pickle.dumps(stored))
    assert (again.matrix != stored.matrix).nnz == 0
    assert Mapped.find(again.matrix.data).path == str(tmp_path / "data.npy")
    in_memory = read_data(X, y, **options)
    assert len(pickle.dumps(in_memory)) > len(pickle.dumps(stored)) + 10 * X.nnz
    assert (pickle.loads(pickle.dumps(in_memory)).matrix != stored.matrix).nnz == 0


def test_mapped_parts(tmp_path):
    whole = np.memmap(tmp_path / "a.bin", np.int32, "w+", shape=(100,))
    whole[:] = np.arange(100)
    part = np.asarray(whole[10:])[5:20]
    np.testing.assert_array_equal(Mapped.find(part).open(), np.arange(15, 30))
    later = np.memmap(tmp_path / "a.bin", np.int32, "r", offset=40, shape=(60,))
    np.testing.assert_array_equal(Mapped.find(later[3:9]).open(), np.arange(13, 19))
    assert Mapped.find(part[::2]) is None and Mapped.find(np.arange(3)) is None


@pytest.mark.parametrize("kind", [sparse.csr_array, np.asarray, sparse.csc_array])
def test_predictions_a_part_at_a_time(monkeypatch, kind):
    X, y = make_data()
    model = sl1max.fit(X, y)
    expected = model.predict_top_k(X, 2, return_decision=True), model.predict(X)
    monkeypatch.setattr(inputs, "ENTRIES_AT_ONCE", 50)
    labels, decision = model.predict_top_k(kind(X), 2, return_decision=True)
    np.testing.assert_array_equal(labels, expected[0][0])
    np.testing.assert_array_equal(decision, expected[0][1])
    np.testing.assert_array_equal(model.predict(kind(X)), expected[1])
    n_pieces = len(list(inputs.read_row_pieces(kind(X), 10)))
    assert n_pieces == (1 if kind is sparse.csc_array else 12 if kind is np.asarray else n_pieces) and n_pieces > 0


def test_errors(tmp_path):
    with pytest.raises(ValueError, match="pieces can be gone through only once"):
        store_columns(iter([np.eye(2)]), tmp_path)
    with pytest.raises(ValueError, match="a piece has 2 features, but n_features is 1"):
        store_columns([np.eye(2)], tmp_path, n_features=1)
    with pytest.raises(ValueError, match="there are no rows or no features"):
        store_rows([], tmp_path)
    with pytest.raises(ValueError, match="X has NaN in row 0"):
        store_rows([[[np.nan]]], tmp_path)
    with pytest.raises(ValueError, match=r"not a matrix that sl1max\.chunks has stored"):
        open_matrix(tmp_path)


def test_a_matrix_that_is_not_whole_is_not_opened(tmp_path, monkeypatch):
    """An error between the replacement of one array and that of the next."""
    store_rows([np.eye(3)], tmp_path)
    replace = os.replace

    def fail(source, target):
        if target.endswith("indices.npy"):
            raise OSError(errno.EIO, os.strerror(errno.EIO))
        replace(source, target)

    monkeypatch.setattr(os, "replace", fail)
    with pytest.raises(OSError, match=r"indices\.npy"):
        store_rows([np.eye(4)], tmp_path)
    with pytest.raises(ValueError, match="not a matrix"):
        open_matrix(tmp_path)
    assert not [name for name in os.listdir(tmp_path) if name.endswith(".part")]


@pytest.mark.skipif(not hasattr(os, "posix_fallocate"), reason="files cannot be reserved here")
def test_a_full_disk(tmp_path, monkeypatch):
    def no_room(*_):
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    monkeypatch.setattr(os, "posix_fallocate", no_room)
    with pytest.raises(OSError, match="No space left") as caught:
        store_columns([np.eye(3)], tmp_path)
    assert caught.value.filename == str(tmp_path / "indptr.npy")
    assert not os.listdir(tmp_path)


def test_failed_store_leaves_the_old_matrix(tmp_path):
    old = store_columns(np.eye(3), tmp_path).toarray()
    n_passes = 0

    def pieces():
        nonlocal n_passes
        n_passes += 1
        yield np.ones((2, 4))
        if n_passes == 2:
            raise RuntimeError("the source has gone")
        yield np.ones((2, 4))

    with pytest.raises(RuntimeError, match="the source has gone"):
        store_columns(pieces, tmp_path)
    np.testing.assert_array_equal(open_matrix(tmp_path).toarray(), old)
    assert sorted(os.listdir(tmp_path)) == ["data.npy", "indices.npy", "indptr.npy", "matrix.json"]


def test_store_onto_itself(tmp_path):
    """What is mapped keeps its content while its folder gets another matrix."""
    rng = np.random.default_rng(0)
    X = (rng.random((500, 40)) < 0.2) * rng.normal(size=(500, 40))
    mapped = store_rows(X, tmp_path)
    again = store_rows(lambda: (mapped[first : first + 50] * 2 for first in range(0, 500, 50)), tmp_path)
    np.testing.assert_array_equal(again.toarray(), 2 * X)
    np.testing.assert_array_equal(mapped.toarray(), X)
