"""Matrices larger than memory: written to files in pieces and mapped into memory.

A stored matrix is a folder with the arrays of a CSR or CSC matrix, indptr.npy, indices.npy and data.npy, and its shape
in matrix.json. `sl1max.fit` reads stored columns, and predictions stored rows, without a copy; worker processes that
can open the folder map it themselves and do not receive its content.
"""

from __future__ import annotations

import contextlib
import json
import os
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path
from types import SimpleNamespace
from typing import Any, TypeAlias, cast

import numpy as np
from scipy import sparse

from sl1max._data.inputs import MAX_INDEX, read_piece
from sl1max._utils.arrays import load_array, write_array
from sl1max._utils.files import atomic_write
from sl1max._utils.typing import Matrix

ARRAYS = ("indptr", "indices", "data")
Pieces: TypeAlias = Matrix | Iterable[Matrix] | Callable[[], Iterable[Matrix]]


def store_columns(
    pieces: Pieces,
    folder: str | os.PathLike[str],
    *,
    n_features: int | None = None,
) -> sparse.csc_array:
    """Store a matrix, given in pieces of rows, by columns in files for `sl1max.fit`.

    The pieces are read twice: to count the entries and to store them.

    Parameters
    ----------
    pieces : iterable of arrays or sparse matrices, or function that returns one
        The rows, from first to last. Use a function that returns a new iterator if they can be iterated only once. A
        single matrix is accepted too.
    folder : str or path-like
        Created if it does not exist. A matrix in it is replaced when the new one is complete.
    n_features : int, optional
        Number of columns, if no piece has all of them.

    Returns
    -------
    csc_array
        The matrix, mapped into memory, read-only. If all entries are ones, they are stored as bytes.

    Examples
    --------
    >>> import tempfile
    >>> import numpy as np
    >>> import sl1max
    >>> from sl1max.chunks import store_columns
    >>> X, y = np.array([[1, 0], [1, 1], [0, 1], [0, 1]]), ["spam", "spam", "ham", "ham"]
    >>> columns = store_columns([X[:2], X[2:]], tempfile.mkdtemp())
    >>> sl1max.fit(columns, y).predict(X).tolist()
    ['spam', 'spam', 'ham', 'ham']
    """
    count = _Count.of(pieces, n_features)
    with _stored(folder, "csc", count) as stored:
        end = np.concatenate([[0], np.cumsum(count.in_column)])
        stored.indptr[:] = end
        free = end[:-1].copy()
        first = 0
        for piece in _open_pieces(pieces):
            columns = piece.tocsc()
            sizes = np.diff(columns.indptr)
            place = np.arange(columns.nnz) + np.repeat(free[: len(sizes)] - columns.indptr[:-1], sizes)
            stored.indices[place] = columns.indices + first
            stored.data[place] = columns.data
            free[: len(sizes)] += sizes
            first += columns.shape[0]
    return cast("sparse.csc_array", open_matrix(folder))


def store_rows(
    pieces: Pieces,
    folder: str | os.PathLike[str],
    *,
    n_features: int | None = None,
) -> sparse.csr_array:
    """Store a matrix, given in pieces of rows, by rows in files for predictions.

    Parameters
    ----------
    pieces, folder, n_features :
        As in `store_columns`.

    Returns
    -------
    csr_array
        The matrix, mapped into memory, read-only.

    Examples
    --------
    >>> import tempfile
    >>> import numpy as np
    >>> from sl1max.chunks import store_rows
    >>> X = np.array([[1, 0], [1, 1], [0, 1]])
    >>> store_rows([X[:2], X[2:]], tempfile.mkdtemp()).toarray()
    array([[1, 0],
           [1, 1],
           [0, 1]], dtype=int8)
    """
    count = _Count.of(pieces, n_features)
    with _stored(folder, "csr", count) as stored:
        stored.indptr[0] = 0
        first = entry = 0
        for piece in _open_pieces(pieces):
            last, end = first + piece.shape[0], entry + piece.nnz
            stored.indptr[first + 1 : last + 1] = entry + piece.indptr[1:].astype(np.int64)
            stored.indices[entry:end] = piece.indices
            stored.data[entry:end] = piece.data
            first, entry = last, end
    return cast("sparse.csr_array", open_matrix(folder))


def open_matrix(folder: str | os.PathLike[str]) -> sparse.csr_array | sparse.csc_array:
    """Open a stored matrix, mapped into memory, read-only.

    Raises
    ------
    ValueError
        The folder has no complete stored matrix.

    Examples
    --------
    >>> import tempfile
    >>> from sl1max.chunks import open_matrix, store_rows
    >>> folder = tempfile.mkdtemp()
    >>> store_rows([[[1, 0, 2]]], folder).shape
    (1, 3)
    >>> open_matrix(folder).shape
    (1, 3)
    """
    folder = Path(folder)
    try:
        text = json.loads((folder / "matrix.json").read_text())
        arrays = [load_array(folder / f"{name}.npy", mapped=True) for name in ("data", "indices", "indptr")]
        if any(array.dtype.kind != "i" for array in arrays[1:]):
            raise ValueError("indices that are not integers")
        kind = {"csr": sparse.csr_array, "csc": sparse.csc_array}[text["format"]]
        return kind(tuple(arrays), shape=tuple(text["shape"]))
    except (FileNotFoundError, KeyError, TypeError, ValueError) as error:
        raise ValueError(f"{folder}: not a matrix that sl1max.chunks has stored ({error})") from error


def row_pieces(X: Matrix, n_rows: int = 1 << 16) -> Iterator[Matrix]:
    """Yield the rows of a matrix in pieces.

    Examples
    --------
    >>> import numpy as np
    >>> from sl1max.chunks import row_pieces
    >>> [piece.shape for piece in row_pieces(np.eye(5), 2)]
    [(2, 5), (2, 5), (1, 5)]
    """
    matrix: Any = X  # with rows to be sliced
    for first in range(0, matrix.shape[0], n_rows):
        yield matrix[first : first + n_rows]


def _open_pieces(pieces: Pieces) -> Iterator[sparse.csr_array]:
    """Canonical csr_arrays."""
    found: Any = pieces
    if sparse.issparse(pieces) or getattr(pieces, "ndim", None) == 2:
        found = row_pieces(found.tocsr() if sparse.issparse(pieces) else found)
    for piece in found() if callable(found) else found:
        yield read_piece(piece)


@dataclass(frozen=True)
class _Count:
    """Shape of a matrix and number of entries of each column."""

    shape: tuple[int, int]
    in_column: np.ndarray
    dtype: np.dtype

    @classmethod
    def of(cls, pieces, n_features):
        if isinstance(pieces, Iterator):
            raise ValueError(
                "pieces can be gone through only once: give a list, or a function that returns an iterator"
            )
        dtype: np.dtype
        n_rows, in_column, dtype = 0, np.zeros(n_features or 0, np.int64), np.dtype(np.int8)
        for piece in _open_pieces(pieces):
            if n_features is not None and piece.shape[1] > n_features:
                raise ValueError(f"a piece has {piece.shape[1]} features, but n_features is {n_features}")
            n_rows += piece.shape[0]
            found = np.bincount(piece.indices, minlength=max(piece.shape[1], len(in_column)))
            found[: len(in_column)] += in_column
            in_column = found
            if dtype != np.float64 and not (piece.data == 1).all():
                dtype = np.dtype(np.float64)
        if not n_rows or not len(in_column):
            raise ValueError("there are no rows or no features in the pieces")
        return cls((n_rows, len(in_column)), in_column, dtype)


@contextlib.contextmanager
def _stored(folder, kind, count):
    """Create the arrays of a matrix in files, to be filled.

    They replace those in the folder once the context is left without an error.
    """
    folder = Path(folder)
    folder.mkdir(parents=True, exist_ok=True)
    n_entries = int(count.in_column.sum())
    index = np.int32 if n_entries <= MAX_INDEX else np.int64
    sizes = {
        "indptr": (index, count.shape[kind == "csc"] + 1),
        "indices": (index, n_entries),
        "data": (count.dtype, n_entries),
    }
    with contextlib.ExitStack() as files:
        arrays = SimpleNamespace()
        for name, (dtype, size) in sizes.items():
            stream = files.enter_context(atomic_write(folder / f"{name}.npy"))
            setattr(arrays, name, _map_array(stream, dtype, size))
        yield arrays
        while arrays.__dict__:
            _, array = arrays.__dict__.popitem()
            if len(array):
                array.flush()
            del array  # Windows cannot rename mapped files
        # The arrays are replaced one by one; until all are replaced, the folder has no matrix.
        (folder / "matrix.json").unlink(missing_ok=True)
    with atomic_write(folder / "matrix.json") as stream:
        stream.write(json.dumps({"format": kind, "shape": [int(size) for size in count.shape]}).encode())


def _map_array(stream, dtype, size):
    """Create an array in a new file and reserve its disk space.

    Without reserved space, writing to the map could kill the process."""
    if not size:
        write_array(stream, np.empty(0, dtype))
        return np.empty(0, dtype)
    array = np.lib.format.open_memmap(stream.name, mode="w+", dtype=dtype, shape=(size,))
    if hasattr(os, "posix_fallocate"):
        os.posix_fallocate(stream.fileno(), 0, os.path.getsize(stream.name))
    return array
