"""Reading and checking of arrays and sparse matrices from files that may be damaged."""

from __future__ import annotations

import contextlib
import os
import tokenize
import zipfile
import zlib
from collections.abc import Iterator
from types import SimpleNamespace
from typing import BinaryIO, cast

import numpy as np
from scipy import sparse

# Exceptions besides ValueError that numpy and zipfile raise for damaged content. RuntimeError: zipfile, for an
# encrypted file.
_DECODING_ERRORS = (
    EOFError, KeyError, OverflowError, RuntimeError, SyntaxError, TypeError, tokenize.TokenError, zipfile.BadZipFile,
    zlib.error,
)  # fmt: skip


@contextlib.contextmanager
def _decoding(path: str | os.PathLike[str]) -> Iterator[None]:
    try:
        yield
    except _DECODING_ERRORS as error:
        raise ValueError(f"{path}: damaged: {error}") from error


def write_array(stream: BinaryIO, array: np.ndarray) -> None:
    """Write an array as a .npy file; an OSError has its number, which numpy leaves out when it has a real file."""
    np.save(SimpleNamespace(write=stream.write), array, allow_pickle=False)


def load_array(path: str | os.PathLike[str], *, mapped: bool = False) -> np.ndarray:
    """Read a .npy file, without unpickling.

    Parameters
    ----------
    path : str or path-like
    mapped : bool
        Map the array into memory, read-only.

    Raises
    ------
    ValueError
        The content is damaged.
    OSError
        The file cannot be read.

    Examples
    --------
    >>> import os, tempfile
    >>> import numpy as np
    >>> from sl1max._utils.arrays import load_array
    >>> path = os.path.join(tempfile.mkdtemp(), "numbers.npy")
    >>> np.save(path, [1, 2, 3])
    >>> load_array(path)
    array([1, 2, 3])
    """
    with _decoding(path):
        array = np.load(path, mmap_mode="r" if mapped else None, allow_pickle=False)
    if not isinstance(array, np.ndarray):
        raise ValueError(f"{path}: a .npz file, where a .npy file is needed")
    return array


def load_sparse(path: str | os.PathLike[str]) -> sparse.sparray | sparse.spmatrix:
    """Read a sparse matrix from a .npz file, without unpickling.

    Raises
    ------
    ValueError
        The content is damaged, or no sparse matrix.
    OSError
        The file cannot be read.

    Examples
    --------
    >>> import os, tempfile
    >>> from scipy import sparse
    >>> from sl1max._utils.arrays import load_sparse
    >>> path = os.path.join(tempfile.mkdtemp(), "matrix.npz")
    >>> sparse.save_npz(path, sparse.csr_array([[0, 1], [2, 0]]))
    >>> load_sparse(path).toarray()
    array([[0, 1],
           [2, 0]])
    """
    with _decoding(path):
        return cast("sparse.sparray | sparse.spmatrix", sparse.load_npz(path))


def check_sparse(matrix: sparse.csr_array | sparse.csc_array) -> None:
    """Check that no index of a csr_array or csc_array points outside its arrays or its shape.

    Raises
    ------
    ValueError
        Says what is wrong.

    Examples
    --------
    >>> from scipy import sparse
    >>> from sl1max._utils.arrays import check_sparse
    >>> matrix = sparse.csr_array([[0, 1], [2, 0]])
    >>> matrix.indices[0] = 7
    >>> check_sparse(matrix)
    Traceback (most recent call last):
    ValueError: indices must be < 2
    """
    matrix.check_format(full_check=True)
    if (np.diff(matrix.indptr) < 0).any():  # scipy omits this check if the last entry is 0
        raise ValueError("indptr must be a non-decreasing sequence")
