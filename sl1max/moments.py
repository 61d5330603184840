"""What the training set says: the mass of every class, and the sum of every feature over it.

A block is the pair (c, side): class c itself (``IN_CLASS``) or, for independent classes, the examples outside
it (``NON_CLASS``). Sums of all classes come from one sparse product; a dense row is made for one block at a
time, so that no classes x features array exists.
"""

from __future__ import annotations

import itertools

import numpy as np
from scipy import sparse

from sl1max.inputs import Data

NON_CLASS, IN_CLASS = 0, 1

ROUNDING = 1e-12  # what is left of a sum after subtracting all of it, relative to the sum
CHUNK = 2_000_000  # entries of a sparse product between two chances for Ctrl-C
FEW_CLASSES = 8  # whose counts take less time one by one, column by column, than by a sparse product


class ClassSums:
    """Sums over the cells of each block of every column of a matrix.

    Parameters
    ----------
    matrix : csc_array or ndarray of shape (n_samples, n_features)
    cells : csc_array of shape (n_samples, n_classes)
    mass : ndarray of shape (n_samples,)
    columns : Columns, optional
        The same as the matrix, where all sums are counts: exact, in whatever order they are added up.
    """

    def __init__(self, matrix, cells, mass, columns=None):
        if columns is not None and cells.shape[1] <= FEW_CLASSES:
            self._total = columns.total[:-1].copy()
            self._by_class = columns.means(np.ascontiguousarray(cells.toarray().T)).T
        elif sparse.issparse(matrix):
            cells = cells.tocsr()
            products = [(columns.T @ mass, columns.T @ cells) for columns in column_chunks(matrix)]
            self._total = np.concatenate([total for total, _ in products])
            by_class = [product for _, product in products]
            self._by_class = (by_class[0] if len(by_class) == 1 else sparse.vstack(by_class)).tocsc()
            self._by_class.sort_indices()
        else:
            self._total = matrix.T @ mass
            self._by_class = np.asfortranarray((cells.T @ matrix).T)

    def held(self, c):
        """The features that class c has, ascending; None if all are looked at, in dense columns."""
        if not sparse.issparse(self._by_class):
            return None
        return self._by_class.indices[self._by_class.indptr[c] : self._by_class.indptr[c + 1]]

    def block(self, c, side, cols=None):
        """Sums over block (c, side), a new array (n_features,); or those of some columns. c is None: of no example."""
        total = self._total if cols is None else self._total[cols]
        in_class = np.zeros(len(total)) if c is None else self._in_class(c, cols)
        if side == IN_CLASS:
            return in_class
        rest = total - in_class
        rest[np.abs(rest) <= ROUNDING * np.abs(total)] = 0
        return rest

    def _in_class(self, c, cols):
        if not sparse.issparse(self._by_class):
            return self._by_class[:, c].copy() if cols is None else self._by_class[cols, c]
        indices, values = self.held(c), self._by_class.data[self._by_class.indptr[c] : self._by_class.indptr[c + 1]]
        if cols is None:
            in_class = np.zeros(len(self._total))
            in_class[indices] = values
            return in_class
        if not len(indices):
            return np.zeros(len(cols))
        place = np.minimum(np.searchsorted(indices, cols), len(indices) - 1)
        return np.where(indices[place] == cols, values[place], 0.0)


def column_chunks(matrix):
    """A csc_array in pieces of whole columns."""
    n_features = matrix.shape[1]
    if matrix.nnz <= CHUNK:
        yield matrix
        return
    ends = np.searchsorted(matrix.indptr, np.arange(CHUNK, matrix.nnz, CHUNK))
    edges = np.unique(np.concatenate([[0], ends, [n_features]]))
    for low, high in itertools.pairwise(edges):
        yield matrix[:, low:high]


class Moments:
    """Mass and feature sums of every block.

    Attributes
    ----------
    mass : float
        Total weight of the examples: m, their number, when there are no weights.
    class_prior : ndarray of shape (n_classes,)
        Share of each class in the mass.
    cells : csc_array of shape (n_samples, n_classes)
        Weight of every cell.
    """

    def __init__(self, data: Data):
        self.mass = data.mass.sum()
        self.cells = data.labels.copy()
        self.cells.data *= data.mass[self.cells.indices]
        self._class_mass = np.asarray(self.cells.sum(axis=0)).ravel()
        self.class_prior = self._class_mass / self.mass
        counts = data.binary and (data.mass == 1).all() and (self.cells.data == 1).all()
        self.sums = ClassSums(data.matrix, self.cells, data.mass, data.columns if counts else None)

    def block_mass(self, c, side):
        return self._class_mass[c] if side == IN_CLASS else self.mass - self._class_mass[c]

    def block_prior(self, c, side):
        return self.block_mass(c, side) / self.mass


def weigh(values, mass):
    """values @ mass, whose last bit does not depend on the number of threads of a BLAS."""
    return np.einsum("...i,i->...", values, mass)
