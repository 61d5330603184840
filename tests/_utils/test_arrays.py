"""Reading .npy and .npz files."""

import numpy as np
import pytest
from scipy import sparse

from sl1max._utils.arrays import check_sparse, load_array, load_sparse


@pytest.fixture
def npy(tmp_path):
    np.save(tmp_path / "numbers.npy", np.arange(6.0))
    return tmp_path / "numbers.npy"


@pytest.fixture
def npz(tmp_path):
    sparse.save_npz(tmp_path / "matrix.npz", sparse.csr_array(np.eye(3)))
    return tmp_path / "matrix.npz"


@pytest.mark.parametrize("mapped", [False, True])
def test_array_is_read(npy, mapped):
    np.testing.assert_array_equal(load_array(npy, mapped=mapped), np.arange(6.0))


def test_sparse_matrix_is_read(npz):
    np.testing.assert_array_equal(load_sparse(npz).toarray(), np.eye(3))


def test_npz_for_npy_is_refused(npz):
    with pytest.raises(ValueError, match=r"matrix\.npz: a \.npz file, where a \.npy file is needed"):
        load_array(npz)


def test_pickled_array_is_refused(npy):
    np.save(npy, np.array([{}], object), allow_pickle=True)
    with pytest.raises(ValueError):
        load_array(npy)


@pytest.mark.parametrize("mapped", [False, True])
@pytest.mark.parametrize("wrong", [b"", b"\x93NUMPY", b"{", b"'''", b"\0" * 40, b"(" * 40])
def test_damaged_array_is_a_value_error(npy, mapped, wrong):
    """numpy parses the head of the file as Python: TokenError, SyntaxError and others come from there."""
    content = npy.read_bytes()
    npy.write_bytes(content[:12] + wrong + content[12 + len(wrong) :] if wrong else b"")
    with pytest.raises(ValueError):
        load_array(npy, mapped=mapped)


def test_every_damaged_byte_of_a_sparse_matrix(npz):
    """NotImplementedError and RuntimeError come from the flags of zip files."""
    content = npz.read_bytes()
    n_refused = 0
    for place in range(0, len(content), 3):
        for value in (0, 0x21, 0xFF):
            npz.write_bytes(content[:place] + bytes([value]) + content[place + 1 :])
            try:
                load_sparse(npz)
            except (ValueError, OSError):
                n_refused += 1
    assert n_refused > 100


@pytest.mark.parametrize("kind", [sparse.csr_array, sparse.csc_array])
@pytest.mark.parametrize(
    ("part", "place", "number"),
    [("indices", 1, 3), ("indices", 1, -1), ("indptr", 1, 7), ("indptr", 1, -1), ("indptr", -1, 0), ("indptr", -1, 99)],
)
def test_indices_that_point_outside_are_refused(kind, part, place, number):
    matrix = kind(np.ones((3, 3)))
    check_sparse(matrix)
    getattr(matrix, part)[place] = number
    with pytest.raises(ValueError):
        check_sparse(matrix)
