"""Validation and conversion of all arguments; later modules do not validate again.

Each error is one sentence that names the argument. The caller's objects are not modified, and data in the required form
(a CSC matrix with sorted int32 indices, a column-major float64 array) are not copied.
"""

from __future__ import annotations

import numbers
import os
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any, get_args

import numpy as np
from scipy import sparse

from sl1max._core._options import DEFAULT_OPTIONS
from sl1max._core._scoring import Rows
from sl1max._core._solver import Columns
from sl1max._core._transpose import transpose
from sl1max._data.precision import (
    LARGEST_VALUE,
    SMALLEST_PART,
    check_mass,
    check_offset,
    check_values,
    smallest_nonzero,
)
from sl1max._utils.arrays import check_sparse
from sl1max._utils.typing import Algorithm, BetaRule, Distribution, LabelMode, MultilabelWeighting, OnInterrupt

OPTIONS = {
    "distribution": get_args(Distribution),
    "label_mode": get_args(LabelMode),
    "beta_rule": get_args(BetaRule),
    "solver": get_args(Algorithm),
    "multilabel_weighting": get_args(MultilabelWeighting),
    "on_interrupt": get_args(OnInterrupt),
}

DEFAULT_BETA = 0.5
MISSING_TYPES = ("NoneType", "NAType", "NaTType")  # the latter two: of pandas
LABEL_SETS = (
    "y has several labels in each place: make an indicator of them first, e.g. with "
    "sklearn.preprocessing.MultiLabelBinarizer(sparse_output=True)"
)
DENSE_FRACTION = 0.25  # a dense array with fewer nonzeros than this is stored sparse
MAX_INDEX = 2**31 - 1  # the core's row and column numbers are int32
LARGEST_OPTION = 1e300
MOST_ITERATIONS = 2**62
ENTRIES_AT_ONCE = 1 << 24  # of a matrix for prediction


@dataclass(frozen=True, eq=False)
class Data:
    """A validated training set.

    Attributes
    ----------
    matrix : csc_array or ndarray of shape (n_samples, n_features)
        The rows with positive weight and, with exclusive classes, at least one label; or all rows. Canonical.
    binary : bool
        The matrix is sparse and all its entries are ones.
    mass : ndarray of shape (n_samples,)
        Weight of each example; 0 only if all rows are kept.
    labels : csc_array of shape (n_samples, n_classes)
        Share of each class in each example: cell (i, c) weighs ``mass[i] * labels[i, c]``. The rows of
        exclusive classes sum to 1.
    classes : ndarray of shape (n_classes,)
        Class labels; column numbers for an indicator.
    exclusive : bool
        Each example has one class; otherwise each class is a binary problem.
    indicator : bool
        y was an indicator matrix, not a vector of labels.
    sparse_output : bool
        y was a sparse indicator.
    feature_names : ndarray of shape (n_features,) or None
        Column names, if X was a data frame with text for names.
    constant : ndarray of int8 of shape (n_classes,)
        +1 for an independent class that holds every example, -1 for one that holds none, else 0.
    offset : ndarray of shape (n_samples, n_classes) or None
        Added to the scores.
    """

    matrix: sparse.csc_array | np.ndarray
    binary: bool
    mass: np.ndarray
    labels: sparse.csc_array
    classes: np.ndarray
    exclusive: bool
    indicator: bool
    sparse_output: bool
    constant: np.ndarray
    offset: np.ndarray | None
    feature_names: np.ndarray | None

    @cached_property
    def columns(self) -> Columns:
        """The matrix for the core, sharing its buffers."""
        return Columns(*core_buffers(self.matrix, self.binary))

    @cached_property
    def smallest(self) -> np.ndarray:
        """The least absolute nonzero value of every feature."""
        return np.ones(self.matrix.shape[1]) if self.binary else smallest_nonzero(self.matrix)

    def __getstate__(self):
        """Leave out ``columns``, which another process makes again.

        An offset shared by all classes is sent once; of a matrix in files only the names are sent.
        """
        state = {name: value for name, value in self.__dict__.items() if name != "columns"}
        state["matrix"] = _refer(self.matrix)
        if self.offset is not None and self.offset.strides[1] == 0:
            state["offset"] = self.offset[:, :1]
        return state

    def __setstate__(self, state):
        state["matrix"] = _resolve(state["matrix"])
        if state["offset"] is not None:
            state["offset"] = np.broadcast_to(state["offset"], state["labels"].shape)
        self.__dict__.update(state)


@dataclass(frozen=True, eq=False)
class Features:
    """A converted feature matrix, from which several training sets can be made.

    Attributes
    ----------
    matrix : csc_array or ndarray of shape (n_samples, n_features)
        Canonical.
    binary : bool
        The matrix is sparse and all its entries are ones.
    names : ndarray of shape (n_features,) or None
        Column names, if the matrix was a data frame with text for names.
    row_index : tuple of arrays or None
        The matrix by rows, as `Columns` takes it, if it was given so and the core will need it so.
    """

    matrix: sparse.csc_array | np.ndarray
    binary: bool
    names: np.ndarray | None = None
    row_index: tuple[np.ndarray, np.ndarray, np.ndarray | None] | None = None

    @classmethod
    def convert(cls, X, names=None) -> Features:
        """Those of a matrix that `_open_features` returned."""
        matrix, binary = _to_columns(X)
        return cls(matrix, binary, names, _index_rows(X, matrix, binary))

    @property
    def shape(self) -> tuple[int, int]:
        return self.matrix.shape

    @cached_property
    def columns(self) -> Columns:
        """The matrix for the core, sharing its buffers."""
        return Columns(*core_buffers(self.matrix, self.binary), row_index=self.row_index)


def read_features(X) -> Features:
    """Validate and convert a feature matrix."""
    return X if isinstance(X, Features) else Features.convert(_open_features(X), column_names(X))


def column_names(frame) -> np.ndarray | None:
    """Column names of a data frame (pandas, polars) as an array of objects; None unless all of them are text."""
    names = list(getattr(frame, "columns", None) if hasattr(frame, "columns") else ())
    if not names or not all(isinstance(name, str) for name in names):
        return None
    return np.array(names, dtype=object)


def class_names(y) -> np.ndarray | None:
    """Column names of an indicator in a data frame, text or integers, as an array of labels; else None."""
    names = np.array(list(y.columns)) if hasattr(y, "columns") else np.empty(0)
    if names.ndim != 1 or names.dtype.kind not in "Uiu" or not len(names):
        return None
    if len(np.unique(names)) < len(names):
        raise ValueError("y has two columns of the same name: each class needs a name of its own")
    return names


def check_feature_names(X, names):
    """Check that X, if it is a data frame, has the columns of the training set in the same order."""
    found = column_names(X)
    if found is None or names is None or np.array_equal(found, names):
        return
    missing, unknown = np.setdiff1d(names, found), np.setdiff1d(found, names)
    if len(missing) or len(unknown):
        what = [
            f"{title} {', '.join(map(repr, some[:5]))}{', ...' if len(some) > 5 else ''}"
            for title, some in (("without", missing), ("with unknown", unknown))
            if len(some)
        ]
        raise ValueError(f"X must have the columns that the model was trained on: it is {' and '.join(what)}")
    raise ValueError("X has the columns that the model was trained on, but in another order")


def read_data(
    X, y, *, distribution, label_mode, multilabel_weighting, solver, sample_weight, offset, keep_all=False
) -> Data:
    """Validate and convert a training set; drop examples without weight or label, unless all are to be kept.

    X may be `Features`, which are not converted again.
    """
    converted = X if isinstance(X, Features) else None
    feature_names = column_names(X) if converted is None else converted.names
    X = _open_features(X) if converted is None else converted.matrix
    n_samples = X.shape[0]
    cells, keep = _read_cells(
        y, n_samples, distribution=distribution, label_mode=label_mode, multilabel_weighting=multilabel_weighting,
        sample_weight=sample_weight,
    )  # fmt: skip
    if offset is not None:
        cancels = distribution == "conditional" and cells["exclusive"]
        offset = read_offset(offset, n_samples, len(cells["classes"]), per_example_cancels=cancels)
    if keep_all:
        cells = _spread_cells(cells, keep)
    elif not keep.all():
        X = (X.tocsr() if sparse.issparse(X) else X)[np.flatnonzero(keep)]
        offset = _take_offset(offset, keep) if offset is not None else None
        converted = None
    features = Features.convert(X) if converted is None else converted
    check_values(features.matrix)
    check_algorithm(features.matrix, solver)
    check_mass(cells["mass"])
    data = Data(matrix=features.matrix, binary=features.binary, offset=offset, feature_names=feature_names, **cells)
    if converted is not None or features.row_index is not None:
        vars(data)["columns"] = features.columns
    return data


def change_labels(data: Data, y, *, distribution, multilabel_weighting, sample_weight) -> Data:
    """Replace labels and weights of a training set of which all examples were kept."""
    cells, keep = _read_cells(
        y, len(data.mass), distribution=distribution, label_mode="exclusive" if data.exclusive else "independent",
        multilabel_weighting=multilabel_weighting, sample_weight=sample_weight, names=data.classes,
    )  # fmt: skip
    check_mass(cells["mass"])
    return _on_same_columns(
        data, **_spread_cells(cells, keep) | {"indicator": data.indicator, "sparse_output": data.sparse_output}
    )


def change_offset(data: Data, offset, *, distribution) -> Data:
    """Replace the offset of a training set, or remove it."""
    if offset is not None:
        cancels = distribution == "conditional" and data.exclusive
        offset = read_offset(offset, *data.labels.shape, per_example_cancels=cancels)
    return _on_same_columns(data, offset=offset)


def take_rows(data: Data, rows) -> Data:
    """Select examples, without offsets; classes without selected examples are constant."""
    labels = data.labels.tocsr()[rows].tocsc()
    constant = np.where(np.diff(labels.indptr) == 0, -1, data.constant).astype(np.int8)
    matrix = data.matrix[rows] if isinstance(data.matrix, np.ndarray) else data.matrix.tocsr()[rows].tocsc()
    return replace(data, matrix=matrix, mass=data.mass[rows], labels=labels, constant=constant, offset=None)


def _on_same_columns(data, **changed):
    changed = replace(data, **changed)
    vars(changed).update(columns=data.columns, smallest=data.smallest)
    return changed


@dataclass(frozen=True, eq=False)
class MomentData:
    """Means and intervals over a sample space.

    Attributes
    ----------
    matrix : csc_array or ndarray of shape (n_points, n_features)
        The points of positive default probability.
    columns : Columns
        The same for the core, sharing its buffers.
    q0 : ndarray of shape (n_points,)
        The default distribution, summing to one.
    place : ndarray of bool of shape (n_background,)
        Rows of the background that have these points.
    means, betas : ndarray of shape (n_features,)
    """

    matrix: sparse.csc_array | np.ndarray
    columns: Columns
    q0: np.ndarray
    place: np.ndarray
    means: np.ndarray
    betas: np.ndarray


def read_moments(means, betas, background, q0) -> MomentData:
    """Convert means, half-widths of their intervals, sample space and default distribution.

    Without half-widths ``means`` is a pair of arrays, the ends of the intervals.
    """
    X = _open_features(background, "background")
    n_points, n_features = X.shape
    if betas is None:
        ends = _read_intervals(means, n_features)
    else:
        means = _read_numbers(means, "means")
        if means.shape != (n_features,):
            raise ValueError(f"means has shape {means.shape}, but background has {n_features} features")
        check_values(means, "means")
        betas = np.broadcast_to(read_beta(betas, 1, n_features, "betas"), (1, n_features))[0].copy()
    q0 = read_sample_weight(q0, n_points, "q0")
    place = q0 > 0
    if not place.all():
        X = (X.tocsr() if sparse.issparse(X) else X)[np.flatnonzero(place)]
    matrix, binary = _to_columns(X)
    check_values(matrix, "background")
    columns = Columns(*core_buffers(matrix, binary))
    if betas is None:
        means, betas = _centre_intervals(*ends, columns)
    betas[betas > columns.extent[:-1] + np.abs(means)] = np.inf  # no distribution misses such an interval
    return MomentData(matrix, columns, q0[place] / q0.sum(), place, means, betas)


def _read_intervals(intervals, n_features):
    """The ends (low, high) of intervals; infinite where one is open."""
    try:
        low, high = intervals
    except (TypeError, ValueError):
        raise ValueError("without betas, means must be a pair (low, high): the ends of the intervals") from None
    ends = []
    for end, name in ((low, "low"), (high, "high")):
        try:
            end = np.asarray(end, dtype=np.float64)
        except (TypeError, ValueError):
            raise ValueError(f"{name} must be a number or an array of numbers") from None
        if end.shape not in ((), (n_features,)):
            raise ValueError(f"{name} has shape {end.shape}, but background has {n_features} features")
        ends.append(np.broadcast_to(end, n_features))
    wrong = np.flatnonzero(~(ends[0] <= ends[1]))
    if len(wrong):
        j = wrong[0]
        raise ValueError(f"low[{j}] = {ends[0][j]:g} is not at most high[{j}] = {ends[1][j]:g}")
    return ends


def _centre_intervals(low, high, columns):
    """Centres and half-widths of intervals. An open end is that of the feature's values, which no mean is beyond."""
    left_out = np.isinf(low) & np.isinf(high)
    low = np.where(np.isinf(low), np.minimum(columns.low[:-1], high), low)
    high = np.where(np.isinf(high), np.maximum(columns.high[:-1], low), high)
    means, betas = 0.5 * low + 0.5 * high, 0.5 * high - 0.5 * low
    return np.where(left_out, 0.0, means), np.where(left_out, np.inf, betas)


def read_rows(X, n_features, names=None) -> Rows:
    """Validate X for prediction: number of features and, for a data frame, their names."""
    check_feature_names(X, names)
    X = _open_features(X)
    if X.shape[1] != n_features:
        raise ValueError(f"X has {X.shape[1]} features, but the model was trained with {n_features}")
    X = _as_float(X)
    if not sparse.issparse(X):
        return Rows(*X.shape, None, None, np.ascontiguousarray(X).reshape(-1))
    X = X.tocsr()
    indices = np.ascontiguousarray(X.indices, dtype=np.int32)
    return Rows(*X.shape, X.indptr.astype(np.int64), indices, np.ascontiguousarray(X.data))


def read_row_pieces(X, n_features, names=None):
    """Yield X for prediction as `Rows`, in pieces if it is large, so that conversion needs little memory."""
    check_feature_names(X, names)
    X = as_array(X)
    width = X.nnz / max(X.shape[0], 1) if sparse.issparse(X) else n_features
    size = max(int(ENTRIES_AT_ONCE / max(width, 1)), 1)
    if X.ndim != 2 or X.shape[0] <= size or getattr(X, "format", "csr") != "csr":
        yield read_rows(X, n_features)
        return
    for first in range(0, X.shape[0], size):
        yield read_rows(X[first : first + size], n_features)


def read_piece(X) -> sparse.csr_array:
    """Convert rows to a canonical csr_array; also without rows."""
    X = sparse.csr_array(_as_float(_open_features(X)) if min(np.shape(X)) else X, copy=True)
    X.sum_duplicates()
    X.eliminate_zeros()
    return X


# Arrays in files


@dataclass(frozen=True)
class Mapped:
    """Position of an array in a file, so that another process can map it."""

    path: str
    dtype: np.dtype
    shape: tuple
    offset: int

    @classmethod
    def find(cls, array):
        """That of an array that is mapped, else None."""
        base = array
        while base is not None and not isinstance(base, np.memmap):
            base = getattr(base, "base", None)
        if base is None or base.filename is None or not array.flags.c_contiguous or not array.size:
            return None
        while isinstance(base.base, np.memmap):
            base = base.base
        shift = array.__array_interface__["data"][0] - base.__array_interface__["data"][0]
        return cls(os.path.abspath(base.filename), array.dtype, array.shape, base.offset + shift)

    def open(self):
        return np.memmap(self.path, self.dtype, "r", self.offset, self.shape)


def _refer(matrix):
    """Convert a sparse matrix with arrays in files to (shape, references); return others unchanged."""
    if not sparse.issparse(matrix):
        return matrix
    found = [Mapped.find(array) for array in (matrix.data, matrix.indices)]
    return matrix if None in found else (matrix.shape, found, matrix.indptr)


def _resolve(matrix):
    if not isinstance(matrix, tuple):
        return matrix
    shape, (data, indices), indptr = matrix
    return sparse.csc_array((data.open(), indices.open(), indptr), shape=shape)


# Matrices


def _open_features(X, name="X"):
    """Like `_open_matrix`, also for a data frame or a list."""
    return _open_matrix(as_array(X, name), name, getattr(X, "columns", None))


def as_array(X, name="X"):
    """Convert X to an ndarray unless it is sparse; refuse text and ragged lists."""
    if sparse.issparse(X):
        return X
    try:
        array = np.asarray(X)
    except ValueError as error:
        raise ValueError(f"{name} is not a matrix: its rows differ in length") from error
    first = array.flat[0] if array.size else None
    if array.dtype.kind in "UST" or isinstance(first, str):
        raise ValueError(
            f"{name} is text: vectorise it first, e.g. with "
            "sklearn.feature_extraction.text.CountVectorizer(binary=True)"
        )
    return array


def _open_matrix(X, name, columns=None):
    """Validate X as a csr_array, csc_array or ndarray: real, finite, two-dimensional, not empty; without a copy."""
    if X.dtype.kind not in "buif":
        raise ValueError(f"{name} has dtype {X.dtype}: it must hold real numbers")
    if X.ndim != 2:
        raise ValueError(f"{name} must have 2 dimensions, one row per example: its shape is {X.shape}")
    if 0 in X.shape:
        raise ValueError(f"{name} is empty: its shape is {X.shape}")
    if max(X.shape) > MAX_INDEX:
        raise ValueError(f"{name} must have fewer than 2**31 rows and columns: its shape is {X.shape}")
    if (X.nnz if sparse.issparse(X) else X.size) > MAX_INDEX:
        raise ValueError(f"{name} must have fewer than 2**31 entries")
    if sparse.issparse(X):
        X = _open_sparse(X, name)
    check_finite(X, name, columns)
    return X


def _open_sparse(X, name):
    """Make a new csr_array or csc_array, so that scipy sets no flags on the caller's object."""
    try:
        if X.format in ("csr", "csc"):
            kind = sparse.csr_array if X.format == "csr" else sparse.csc_array
            X = kind((X.data, X.indices, X.indptr), shape=X.shape)
            check_sparse(X)
            return X
        X = X.tocoo(copy=False)
        return sparse.coo_array((X.data.astype(np.float64), (X.row, X.col)), shape=X.shape).tocsr()
    except ValueError as error:
        raise ValueError(f"{name} is not a valid sparse matrix: {error}") from error


def check_finite(X, name, columns=None):
    """Refuse NaN and inf and name the position; ``columns`` are the names of a frame's columns."""
    values = X.data if sparse.issparse(X) else X
    if values.dtype.kind != "f" or np.isfinite(values).all():
        return
    where = np.argwhere(~np.isfinite(values))
    value = values[tuple(where[0])]
    if sparse.issparse(X):
        (p,) = where[0]
        i, j = np.searchsorted(X.indptr, p, side="right") - 1, X.indices[p]
        i, j = (i, j) if X.format == "csr" else (j, i)
    else:
        i, j = where[0]
    j = j if columns is None else repr(columns[j])
    more = f" and in {len(where) - 1} more places" if len(where) > 1 else ""
    raise ValueError(f"{name} has {'NaN' if np.isnan(value) else 'inf'} in row {i}, column {j}{more}")


def _to_columns(X):
    """Canonical csc_array or column-major ndarray of X, and whether all its entries are ones."""
    if not sparse.issparse(X):
        if np.count_nonzero(X) > DENSE_FRACTION * X.size:
            return np.asfortranarray(X, dtype=np.float64), False
        X = _store_nonzeros(X)
    ones = bool((X.data == 1).all())
    X = _turn_rows(X, ones) if X.format == "csr" else _with_data(X, _byte_ones(X.data)) if ones else _as_float(X)
    if not X.has_canonical_format:
        X = sparse.csc_array((X.data.astype(np.float64), X.indices.copy(), X.indptr.copy()), shape=X.shape)
        X.sum_duplicates()
        ones = False
    if ones:
        return X, True
    if not X.data.all():
        X = X.copy()
        X.eliminate_zeros()
    if (X.data == 1).all():
        return _with_data(X, _byte_ones(X.data)), True
    return X, False


def _index_rows(X, matrix, binary):
    """The arrays of a csr_array for `Columns`, if it has the entries of its columns and enough rows; else None."""
    if not sparse.issparse(X) or X.format != "csr" or X.shape[0] < DEFAULT_OPTIONS.many_rows or not X.nnz:
        return None
    if X.nnz != matrix.nnz or not X.has_canonical_format:
        return None
    values = None if binary else np.ascontiguousarray(X.data, dtype=np.float64)
    return X.indptr.astype(np.int64), np.ascontiguousarray(X.indices, dtype=np.int32), values


def _store_nonzeros(X):
    """The csc_array of an ndarray."""
    cols, rows = np.nonzero(X.T)
    indptr = np.searchsorted(cols, np.arange(X.shape[1] + 1)).astype(np.int32)
    return sparse.csc_array((X[rows, cols].astype(np.float64), rows.astype(np.int32), indptr), shape=X.shape)


def _turn_rows(X, ones):
    """Convert a csr_array to a csc_array with float64 data, or bytes if all are ones."""
    indptr, indices = X.indptr.astype(np.int64), np.ascontiguousarray(X.indices, dtype=np.int32)
    values = None if ones else np.ascontiguousarray(X.data, dtype=np.float64)
    (indptr, rows, values), ascending = transpose(X.shape[1], indptr, indices, values)
    values = np.ones(len(rows), np.int8) if ones else values
    turned = sparse.csc_array((values, rows, indptr.astype(np.int32)), shape=X.shape)
    if ascending:  # else scipy looks whether it is
        turned.has_canonical_format = True
    return turned


def _byte_ones(data):
    """Return as many ones as bytes; bytes are returned unchanged, e.g. in a file."""
    return data if data.dtype == np.int8 else np.ones(len(data), np.int8)


def _with_data(X, data):
    return type(X)((data, X.indices, X.indptr), shape=X.shape)


def _as_float(X):
    if sparse.issparse(X):
        return _with_data(X, X.data.astype(np.float64, copy=False))
    return X.astype(np.float64, copy=False)


def check_algorithm(matrix, solver):
    """Whether the solver can take the values of the matrix."""
    values = matrix.data if sparse.issparse(matrix) else matrix
    if solver == "sequential" and (values.min(initial=0) < 0 or values.max(initial=0) > 1):
        raise ValueError(
            'X has values outside [0, 1], which solver="sequential" cannot take: solver="newton" takes any real values'
        )


def core_buffers(matrix, binary):
    """(n_samples, n_features, indptr, indices, values) of a matrix as the core takes them."""
    n_samples, n_features = matrix.shape
    if not sparse.issparse(matrix):
        return n_samples, n_features, None, None, matrix.T.reshape(-1)
    return (
        n_samples,
        n_features,
        matrix.indptr.astype(np.int64),
        np.ascontiguousarray(matrix.indices, dtype=np.int32),
        None if binary else np.ascontiguousarray(matrix.data),
    )


# Labels


def _read_cells(y, n_samples, *, distribution, label_mode, multilabel_weighting, sample_weight, names=None):
    """Read y and the weights for `Data`, and find the examples with weight and label."""
    weight = read_sample_weight(sample_weight, n_samples)
    keep = weight > 0
    labels, names, indicator = _read_labels(y, n_samples, keep, names)
    exclusive = label_mode == "exclusive" or (label_mode == "auto" and not indicator)
    constant = np.zeros(len(names), np.int8)
    if exclusive:
        labels, n_labels = _share_labels(labels.tocsr(), names)
        keep[keep] = n_labels > 0
        mass = weight[keep]
        if multilabel_weighting == "duplicate":
            mass = mass * n_labels[n_labels > 0]
    else:
        labels, mass = _drop_small_shares(labels).tocsc(), weight[keep]
        if labels.data.max(initial=0.0) > 1:
            raise ValueError("y has values above 1: for independent classes they must be in [0, 1]")
        if distribution == "class-conditional":
            _check_examples(labels, names, "a class-conditional model needs")
        else:
            constant = find_constant(labels)
    cells = {"mass": mass, "labels": labels, "classes": names, "exclusive": exclusive, "constant": constant}
    return cells | {"indicator": indicator, "sparse_output": indicator and sparse.issparse(y)}, keep


def _spread_cells(cells, keep):
    """Expand the labels to all examples; dropped ones have no mass and no labels."""
    if keep.all():
        return cells
    mass = np.zeros(len(keep))
    mass[keep] = cells["mass"]
    kept = cells["labels"]
    rows = np.flatnonzero(keep)[kept.indices]
    labels = sparse.csc_array((kept.data, rows, kept.indptr), shape=(len(keep), kept.shape[1]))
    return cells | {"mass": mass, "labels": labels}


def _read_labels(y, n_samples, keep, names=None):
    """Labels of the kept examples, a csr_array or csc_array; the classes; and whether y is an indicator.

    The classes are those in y, or the given names.
    """
    own_names = class_names(y)
    y = open_labels(y)
    if y.shape[0] != n_samples:
        raise ValueError(f"y has {y.shape[0]} examples, but X has {n_samples}")
    if not sparse.issparse(y) and y.ndim == 1:
        return *_read_label_vector(y[keep], names), False
    labels = _keep_labels(_open_matrix(y, "y"), keep)
    if labels.data.min(initial=0.0) < 0:
        raise ValueError("y has negative values: an indicator must be non-negative")
    if labels.data.max(initial=0.0) > LARGEST_VALUE:
        raise ValueError(f"y has values beyond {LARGEST_VALUE:g}")
    if names is None:
        names = np.arange(labels.shape[1]) if own_names is None else own_names
    elif len(names) != labels.shape[1]:
        raise ValueError(f"y has {labels.shape[1]} classes, but the problem has {len(names)}")
    return labels, names, True


def open_labels(y):
    """y as a sparse matrix or an ndarray of one or two dimensions; what can be neither labels nor shares is refused."""
    if sparse.issparse(y):
        return y
    try:
        y = np.asarray(y)
    except ValueError as error:  # lists that differ in length
        raise ValueError(LABEL_SETS) from error
    if y.ndim not in (1, 2):
        raise ValueError(f"y must be a vector of labels or an indicator matrix: its shape is {y.shape}")
    if y.ndim == 2:
        text = y.dtype.kind in "UST" or (y.dtype.kind == "O" and str in set(map(type, y.flat)))
        if text and y.shape[1] != 1:
            raise ValueError(LABEL_SETS)
        return y
    if y.dtype.kind == "f":
        _refuse_continuous(y)
    elif y.dtype.kind == "O":
        _check_objects(y)
    return y


def _check_objects(y):
    """Whether objects can be labels."""
    kinds = set(map(type, y))
    if any(issubclass(kind, (list, tuple, set, frozenset, dict, np.ndarray)) for kind in kinds):
        raise ValueError(LABEL_SETS)
    missing = [i for i, label in enumerate(y) if type(label).__name__ in MISSING_TYPES or _is_nan(label)]
    if missing:
        raise ValueError(f"y has {y[missing[0]]} at index {missing[0]}: each example needs a label")
    if kinds and all(issubclass(kind, numbers.Real) for kind in kinds):
        _refuse_continuous(y.astype(np.float64))


def _is_nan(label):
    return isinstance(label, numbers.Real) and label != label


def _refuse_continuous(y):
    """Refuse numbers that name no classes; NaN and inf are refused elsewhere, as missing."""
    fractional = np.flatnonzero(np.isfinite(y) & (y != np.floor(y)))
    if len(fractional):
        i = fractional[0]
        raise ValueError(
            f"y is continuous, {y[i]:g} at index {i}: labels are text or whole numbers, so bin it first, e.g. with "
            "numpy.digitize; shares of the classes are given as an indicator (Unknown label type: continuous)"
        )


def _keep_labels(y, keep):
    """Select rows of an indicator: a new sparse array, canonical and without zeros."""
    if not sparse.issparse(y):
        return _store_nonzeros(y if keep.all() else y[keep])
    labels = sparse.csr_array(_as_float(y), copy=True)[np.flatnonzero(keep)]
    labels.sum_duplicates()
    labels.eliminate_zeros()
    return labels


def read_validation_labels(y_val, n_samples, y):
    """Validate y_val: an array or a csr_array of the same form as y and the length of X_val."""
    y_val = open_labels(y_val)
    if y_val.ndim != np.ndim(y) or (y_val.ndim == 2 and y_val.shape[1] != y.shape[1]):
        form = "a vector of labels" if np.ndim(y) == 1 else f"an indicator of {y.shape[1]} classes"
        raise ValueError(f"y_val must be {form}, as y is: its shape is {y_val.shape}")
    if y_val.shape[0] != n_samples:
        raise ValueError(f"y_val has {y_val.shape[0]} examples, but X_val has {n_samples}")
    return y_val.tocsr() if sparse.issparse(y_val) else y_val


def _read_label_vector(y, names=None):
    if y.dtype.kind == "c" or (y.dtype.kind in "fmM" and not (y == y).all()):
        raise ValueError("y has NaN or complex values: each example needs a label")
    try:
        classes, codes = np.unique(y, return_inverse=True)
    except TypeError as error:
        raise ValueError("y has labels that cannot be compared with each other") from error
    if names is not None:
        if not np.isin(classes, names).all():
            raise ValueError(f"y has label {classes[~np.isin(classes, names)][0]}, not a class of the problem")
        classes, codes = names, np.searchsorted(names, classes)[codes]
    if len(classes) < 2:
        raise ValueError(f"y has one class only, {classes[0]}: at least two are needed")
    shape = (len(y), len(classes))
    return sparse.csr_array((np.ones(len(y)), codes, np.arange(len(y) + 1)), shape=shape), classes


def _share_labels(labels, classes):
    """Divide each example among its labels, dropping those without; also returns the number of labels."""
    if len(classes) < 2:
        raise ValueError("y has one class only: exclusive classes need at least two")
    n_labels = np.asarray(labels.sum(axis=1)).ravel()
    labels = labels[np.flatnonzero(n_labels)]
    labels.data /= np.repeat(n_labels[n_labels > 0], np.diff(labels.indptr))
    labels = _drop_small_shares(labels).tocsc()
    _check_examples(labels, classes, "exclusive classes need")
    return labels, n_labels


def _drop_small_shares(labels):
    """Remove labels that are too small to be multiplied by a weight."""
    labels.data[labels.data < SMALLEST_PART] = 0
    labels.eliminate_zeros()
    return labels


def _check_examples(labels, classes, who_needs):
    """Check that every class has examples."""
    empty = np.flatnonzero(np.diff(labels.indptr) == 0)
    if len(empty):
        raise ValueError(f"y has no example of class {classes[empty[0]]}: {who_needs} some of each class")


def find_constant(labels):
    """Return +1 for a class that holds every example, -1 for one that holds none, else 0."""
    size = np.diff(labels.indptr)
    constant = -(size == 0).astype(np.int8)
    for c in np.flatnonzero(size == labels.shape[0]):
        constant[c] = (labels.data[labels.indptr[c] : labels.indptr[c + 1]] == 1).all()
    return constant


# Weights, offset, beta, options


def _read_numbers(value, name):
    """Convert value to a finite float64 array."""
    array = np.asarray(value)
    if array.dtype.kind not in "buif":
        raise ValueError(f"{name} must hold real numbers, not {array.dtype}")
    array = array.astype(np.float64)
    if not np.isfinite(array).all():
        where = ", ".join(map(str, np.argwhere(~np.isfinite(array))[0]))
        raise ValueError(f"{name} has NaN or inf at index {where}")
    return array


def read_sample_weight(sample_weight, n_samples, name="sample_weight"):
    if sample_weight is None:
        return np.ones(n_samples)
    weight = _read_numbers(sample_weight, name)
    if weight.shape != (n_samples,):
        raise ValueError(f"{name} has shape {weight.shape}: it must be ({n_samples},)")
    if (weight < 0).any():
        raise ValueError(f"{name} is negative at index {np.flatnonzero(weight < 0)[0]}")
    if not weight.any():
        raise ValueError(f"{name} is zero for every example")
    check_mass(weight, name)
    weight[weight < SMALLEST_PART * weight.max()] = 0
    return weight


def read_offset(offset, n_samples, n_classes, *, per_example_cancels):
    """offset as an array (n_samples, n_classes)."""
    offset = _read_numbers(offset, "offset")
    check_offset(offset)
    if offset.shape not in ((n_samples,), (n_samples, n_classes)):
        raise ValueError(f"offset has shape {offset.shape}: it must be ({n_samples},) or ({n_samples}, {n_classes})")
    if offset.ndim == 2:
        return offset
    if per_example_cancels:
        raise ValueError(
            "offset with one value per example cancels in a conditional model of exclusive classes: "
            "give one per example and class"
        )
    return np.broadcast_to(offset[:, None], (n_samples, n_classes))


def _take_offset(offset, keep):
    """Select the offsets of some examples; offsets shared by all classes stay one number per example."""
    if offset.strides[1] == 0:
        return np.broadcast_to(offset[keep, :1], (keep.sum(), offset.shape[1]))
    return offset[keep]


@dataclass(frozen=True, eq=False)
class Strengths:
    """The regularisation as it was asked for, before a rule makes penalties of it.

    Arrays of shape (), (n_features,) or (n_classes, n_features); see `sl1max.fit`.

    Attributes
    ----------
    beta : ndarray
        Cost of positive weights.
    rule : str
    beta_upper : ndarray or None
        Cost of negative weights; None: the same.
    l2 : ndarray or None
        None: 0.
    low, high : ndarray or None
        Limits of the weights; None: none.
    l1_ratio : float
        Share of the L1 part, where these are the strengths of a path at 1.
    """

    beta: np.ndarray
    rule: str
    beta_upper: np.ndarray | None = None
    l2: np.ndarray | None = None
    low: np.ndarray | None = None
    high: np.ndarray | None = None
    l1_ratio: float = 1.0

    @property
    def is_general(self) -> bool:
        """Whether beta is not all of it."""
        return any(value is not None for value in (self.beta_upper, self.l2, self.low, self.high))

    @property
    def some_free(self) -> bool:
        """Whether some weight has neither an L1 nor an L2 penalty on one of its sides."""
        free = self.beta == 0 if self.beta_upper is None else (self.beta == 0) | (self.beta_upper == 0)
        return bool(np.any(free if self.l2 is None else free & (self.l2 == 0)))

    @property
    def general(self) -> dict[str, np.ndarray]:
        """What there is beside beta, by the names of the options of `sl1max.fit`."""
        named = {"beta_upper": self.beta_upper, "l2": self.l2, "min_weight": self.low, "max_weight": self.high}
        return {name: value for name, value in named.items() if value is not None}

    @property
    def remembered(self) -> dict[str, Any] | None:
        """`general` as a model remembers it: numbers; None for an array. None if there is nothing but beta."""
        numbers_only = {name: float(value) if value.ndim == 0 else None for name, value in self.general.items()}
        return numbers_only or None

    def times(self, factor) -> Strengths:
        """All penalties multiplied by a number; limits stay."""

        def multiply(value):
            return None if value is None else np.where(np.isinf(value), value, value * factor)[()]

        return replace(
            self, beta=np.asarray(multiply(self.beta)), beta_upper=_as_array(multiply(self.beta_upper)),
            l2=_as_array(multiply(self.l2)),
        )  # fmt: skip


def _as_array(value):
    return None if value is None else np.asarray(value)


LEAST_L1_RATIO = 1e-3  # that the first strength of a path is computed with


def read_strengths(
    n_classes, n_features, *, beta=None, C=None, beta_rule="deviation", l1_ratio=1.0, l2=0.0, beta_lower=None,
    beta_upper=None, min_weight=None, max_weight=None, positive=False, of_path=False,
) -> Strengths:  # fmt: skip
    """The options of `sl1max.fit` about regularisation; for a path, those at a strength of 1."""
    if not isinstance(l1_ratio, numbers.Real) or not 0 <= l1_ratio <= 1:
        raise ValueError(f"l1_ratio={l1_ratio!r} must be a number from 0 to 1")
    if C is None:
        if l1_ratio != 1 and not of_path:
            raise ValueError("l1_ratio divides the strength 1/C: give C with it, or l2 with beta")
        strength = read_beta(DEFAULT_BETA if beta is None else beta, n_classes, n_features)
    else:
        if beta is not None:
            raise ValueError("beta and C are two names of one strength, beta = 1/C: give one of them")
        C = _read_strengths(C, n_classes, n_features, "C")
        if not (C > 0).all():
            raise ValueError(f"C must be positive: it is {C.min():g}")
        with np.errstate(over="ignore"):
            strength = np.asarray(1 / C)
        beta_rule = "count"
    l2 = read_beta(l2, n_classes, n_features, "l2")
    if np.isinf(l2).any():
        raise ValueError("l2 must be finite: a feature is left out by beta=inf")
    if l1_ratio != 1:
        if l2.any():
            raise ValueError("l1_ratio and l2 are two ways to ask for an L2 penalty: give one of them")
        infinite = np.isinf(strength)
        l2 = np.where(infinite, 0.0, (1 - l1_ratio) * np.where(infinite, 0.0, strength))
        strength = np.where(infinite, strength, l1_ratio * np.where(infinite, 0.0, strength))
    lower, upper = strength, None
    if beta_lower is not None:
        lower, upper = read_beta(beta_lower, n_classes, n_features, "beta_lower"), strength
    if beta_upper is not None:
        upper = read_beta(beta_upper, n_classes, n_features, "beta_upper")
    low, high = (
        None if value is None else _read_limit(value, n_classes, n_features, name, sign)
        for value, name, sign in ((min_weight, "min_weight", -1), (max_weight, "max_weight", 1))
    )
    if not isinstance(positive, bool | np.bool_):
        raise ValueError(f"positive={positive!r} must be True or False")
    if positive:
        low = np.zeros(())
    return Strengths(
        np.asarray(lower), beta_rule, _as_array(upper), np.asarray(l2) if l2.any() else None, low, high, float(l1_ratio)
    )


def strengths_of(model, beta, n_classes) -> Strengths:
    """The strengths that a model was trained with; beta as the caller gives it: it may have been an array."""
    penalty = model.penalty or {}
    if forgotten := [name for name, value in penalty.items() if value is None]:
        raise ValueError(
            f"{forgotten[0]} was an array when the model was trained, and the model remembers numbers only"
        )
    values = {name: np.asarray(value) for name, value in penalty.items()}
    return Strengths(
        read_beta(beta, n_classes, model.n_features), model.beta_rule, values.get("beta_upper"), values.get("l2"),
        values.get("min_weight"), values.get("max_weight"),
    )  # fmt: skip


def _read_limit(value, n_classes, n_features, name, sign):
    value = _read_strengths(value, n_classes, n_features, name)
    if not (sign * value >= 0).all():
        wrong = value[~(sign * value >= 0)].flat[0]
        side = "at least" if sign > 0 else "at most"
        raise ValueError(f"{name} must be {side} 0, so that weights can be zero: it is {wrong:g}")
    return value


def read_beta(beta, n_classes, n_features, name="beta"):
    """beta as a float64 array of shape (), (n_features,) or (n_classes, n_features); inf is allowed."""
    beta = _read_strengths(beta, n_classes, n_features, name)
    if np.isnan(beta).any():
        raise ValueError(f"{name} has NaN: it must be a number >= 0, or an array of them")
    if (beta < 0).any():
        raise ValueError(f"{name} must not be negative: it is {beta.min():g}")
    return beta


def _read_strengths(value, n_classes, n_features, name):
    """Validate a number, or an array per feature or per class and feature."""
    try:
        value = np.asarray(value, dtype=np.float64)
    except (TypeError, ValueError, OverflowError):
        raise ValueError(f"{name} must be a number or an array of numbers") from None
    if value.shape not in ((), (n_features,), (n_classes, n_features)):
        shapes = f"({n_features},) or ({n_classes}, {n_features})"
        raise ValueError(f"{name} has shape {value.shape}: it must be a number or an array of shape {shapes}")
    return value


def check_options(*, tol=1e-4, max_iter=None, max_time=None, n_jobs=None, callback=None, **named):
    """Refuse unknown names and invalid numbers."""
    for name, value in named.items():
        if not isinstance(value, str) or value not in OPTIONS[name]:
            valid = ", ".join(map(repr, OPTIONS[name]))
            raise ValueError(f"{name}={value!r} is unknown: it must be one of {valid}")
    if not isinstance(tol, numbers.Real) or not 0 < tol <= LARGEST_OPTION:
        raise ValueError(f"tol={tol!r} must be a positive number")
    if max_iter is not None and (not isinstance(max_iter, numbers.Integral) or not 1 <= max_iter <= MOST_ITERATIONS):
        raise ValueError(f"max_iter={max_iter!r} must be a positive integer or None")
    if max_time is not None and not (
        isinstance(max_time, numbers.Real) and (0 < max_time <= LARGEST_OPTION or max_time == np.inf)
    ):
        raise ValueError(f"max_time={max_time!r} must be a positive number of seconds or None")
    if n_jobs is not None and (not isinstance(n_jobs, numbers.Integral) or n_jobs == 0):
        raise ValueError(f"n_jobs={n_jobs!r} must be an integer other than 0, or None")
    if callback is not None and not callable(callback):
        raise ValueError(f"callback={callback!r} must be callable or None")


def check_warm_start(model, data, distribution):
    """Check that an earlier model has the same classes, features and distribution."""
    if not all(hasattr(model, name) for name in ("distribution", "label_mode", "weights")):
        raise ValueError(f"warm_start must be a Model, not {type(model).__name__}")
    label_mode = "exclusive" if data.exclusive else "independent"
    if (model.distribution, model.label_mode) != (distribution, label_mode):
        raise ValueError(
            f"warm_start is a {model.distribution} model of {model.label_mode} classes: "
            f"it cannot start a {distribution} model of {label_mode} classes"
        )
    if model.n_features != data.matrix.shape[1]:
        raise ValueError(f"warm_start has {model.n_features} features, but X has {data.matrix.shape[1]}")
    if not np.array_equal(model.classes, data.classes):
        raise ValueError("warm_start has other classes than y")
