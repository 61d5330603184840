"""Moments of the training set: the total weight of every class, and the sum of every feature over it.

A block is the pair (c, side): class c itself (``IN_CLASS``) or, for independent classes, the examples outside
it (``NON_CLASS``). Sums of all classes come from one sparse product; a dense row is made for one block at a
time, so no array of classes x features is made.
"""

from __future__ import annotations

import itertools
from functools import cached_property
from typing import TYPE_CHECKING

import numpy as np
from scipy import sparse

from sl1max._data.inputs import Data, find_constant

if TYPE_CHECKING:
    from sl1max._core._solver import Columns
    from sl1max._utils.typing import DataMatrix

NON_CLASS, IN_CLASS = 0, 1

ROUNDING = 1e-12  # rounding error left after subtracting a sum from itself, relative to the sum
CANCELLED = 1e-3  # below this share of its terms, a difference is computed directly
CHUNK = 2_000_000  # entries of a sparse product between two checks for Ctrl-C
FEW_CLASSES = 8  # up to this many, counting column by column is faster than a sparse product


class ClassSums:
    """Sums over the cells of each block of every column of a matrix.

    Parameters
    ----------
    matrix : csc_array or ndarray of shape (n_samples, n_features)
    cells : csc_array of shape (n_samples, n_classes)
    mass : ndarray of shape (n_samples,)
    columns : Columns, optional
        The same as the matrix, if all sums are counts and therefore exact in any order of summation.

    Attributes
    ----------
    by_class : csc_array or ndarray of shape (n_features, n_classes)
        Sums over the cells of each class.
    """

    def __init__(
        self,
        matrix: DataMatrix,
        cells: sparse.csr_array | sparse.csc_array,
        mass: np.ndarray,
        columns: Columns | None = None,
    ):
        self.by_class: DataMatrix
        if columns is not None and cells.shape[1] <= FEW_CLASSES:
            self._total = columns.total[:-1].copy()
            self.by_class = columns.means(np.ascontiguousarray(cells.toarray().T)).T
        elif sparse.issparse(matrix):
            cells = cells.tocsr()
            self._total = np.concatenate([columns.T @ mass for columns in column_chunks(matrix)])
            self.by_class = sum_by_class(matrix, cells)
        else:
            self._total = matrix.T @ mass
            self.by_class = np.asfortranarray((cells.T @ matrix).T)

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
        if not sparse.issparse(self.by_class):
            return self.by_class[:, c].copy() if cols is None else self.by_class[cols, c]
        stored = slice(self.by_class.indptr[c], self.by_class.indptr[c + 1])
        indices, values = self.by_class.indices[stored], self.by_class.data[stored]
        if cols is None:
            in_class = np.zeros(len(self._total))
            in_class[indices] = values
            return in_class
        if not len(indices):
            return np.zeros(len(cols))
        place = np.minimum(np.searchsorted(indices, cols), len(indices) - 1)
        return np.where(indices[place] == cols, values[place], 0.0)


def sum_by_class(matrix: sparse.csc_array, cells: sparse.csr_array) -> sparse.csc_array:
    """matrix.T @ cells of a csc_array and a csr_array, as a csc_array (n_features, n_classes), its indices sorted.

    Sums that are exactly zero are not stored.
    """
    by_class = [columns.T @ cells for columns in column_chunks(matrix)]
    sums: sparse.csc_array = (by_class[0] if len(by_class) == 1 else sparse.vstack(by_class)).tocsc()
    sums.sort_indices()
    return sums


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
        self._class_mass[find_constant(data.labels) > 0] = self.mass  # the same terms, added in another order
        self.class_prior = self._class_mass / self.mass
        counts = data.binary and (data.mass == 1).all() and (self.cells.data == 1).all()
        self.sums = ClassSums(data.matrix, self.cells, data.mass, data.columns if counts else None)
        self._data = data

    def features(self, c):
        """Features with a nonzero value in an example of class c, ascending; None if the matrix is dense."""
        if self._pattern is None:
            return None
        return self._pattern.indices[self._pattern.indptr[c] : self._pattern.indptr[c + 1]]

    @cached_property
    def _pattern(self):
        """Nonzero pattern of features and classes, (n_features, n_classes).

        It comes from the positions of nonzeros, not from sums of values, which may cancel or underflow. Sums of ones
        with positive weights cannot, so they have this pattern themselves.
        """
        if self._data.binary:
            return self.sums.by_class if sparse.issparse(self.sums.by_class) else None
        matrix = self._data.matrix
        if not sparse.issparse(matrix):
            return None
        ones = np.ones(matrix.nnz, np.int8)
        counts = (self.cells > 0).astype(np.int32).tocsr()
        return sum_by_class(sparse.csc_array((ones, matrix.indices, matrix.indptr), shape=matrix.shape), counts)

    def block_mass(self, c, side):
        if side == IN_CLASS:
            return self._class_mass[c]
        rest = self.mass - self._class_mass[c]
        return rest if rest > CANCELLED * self.mass else self._add_rest(c)

    def _add_rest(self, c):
        """Compute the mass outside a class that has nearly all of it, since the difference would lose digits."""
        rest = self._data.mass.copy()
        own = slice(self.cells.indptr[c], self.cells.indptr[c + 1])
        rest[self.cells.indices[own]] -= self.cells.data[own]
        return rest.sum()

    def block_prior(self, c, side):
        return self.block_mass(c, side) / self.mass


def weigh(values, mass):
    """Compute values @ mass with a result that does not depend on the number of BLAS threads."""
    return np.einsum("...i,i->...", values, mass)
