"""Data files, models and lists of names that commands read."""

from __future__ import annotations

import os
from dataclasses import dataclass, replace

import numpy as np
from scipy import sparse

from sl1max._utils.arrays import load_array, load_sparse
from sl1max.cli._errors import InputError, blamed_on
from sl1max.model._model import Model, load
from sl1max.svmlight import read_bytes, read_svmlight, read_svmlight_pieces


@dataclass(frozen=True, eq=False)
class Examples:
    """A data file: X; y, a vector of labels or an indicator; the labels of the indicator's columns."""

    X: sparse.csr_array
    y: np.ndarray | sparse.csr_array | None
    columns: np.ndarray | None = None

    def __len__(self):
        return self.X.shape[0]

    def take(self, rows):
        """Some of the examples, and of an indicator's columns those that they have."""
        if self.columns is None:
            return replace(self, X=self.X[rows], y=self.y[rows])
        y = self.y[rows]
        seen = np.flatnonzero(np.asarray(y.sum(axis=0)).ravel())
        return Examples(self.X[rows], y[:, seen], self.columns[seen])


def read_examples(path, *, labels=None, label_sets=False, zero_based=False, n_features=None, with_y=True):
    """Examples of a svmlight or .npz file."""
    with blamed_on(path):
        if not is_npz(path):
            if labels is not None:
                raise ValueError("--labels is for .npz; a svmlight file holds its own labels")
            X, y, columns = read_svmlight(
                path, multilabel=label_sets or "auto", zero_based=zero_based, n_features=n_features
            )
            return Examples(X, *(_tidy(y, columns)))
        X = sparse.csr_array(load_sparse(path))
    if n_features is not None and X.shape[1] != n_features:
        raise InputError(f"{path}: {X.shape[1]} features, where {n_features} are needed")
    if not with_y:
        return Examples(X, None)
    if labels is None:
        raise InputError(f"{path}: a .npz has no labels: name their file with --labels")
    with blamed_on(labels):
        y = _read_labels(labels)
        if y.shape[0] != X.shape[0]:
            raise ValueError(f"{y.shape[0]} labels, but {path} has {X.shape[0]} examples")
    if y.ndim == 1 and not label_sets:
        return Examples(X, _whole_numbers(y))
    if y.ndim == 1:
        columns, codes = np.unique(_whole_numbers(y), return_inverse=True)
        y = sparse.csr_array((np.ones(len(y)), codes, np.arange(len(y) + 1)), shape=(len(y), len(columns)))
        return Examples(X, y, columns)
    return Examples(X, sparse.csr_array(y), np.arange(y.shape[1]))


def read_rows(path, zero_based, n_features):
    """The examples of a file in pieces; a svmlight file is never in memory as a whole."""
    if is_npz(path):
        yield read_examples(path, n_features=n_features, with_y=False).X
        return
    with blamed_on(path):
        n_rows = 0
        # Labels are not looked at, so that any number of them will do.
        for piece in read_svmlight_pieces(path, multilabel=True, zero_based=zero_based, n_features=n_features):
            n_rows += piece.X.shape[0]
            yield piece.X
        if not n_rows:
            raise ValueError("no examples, only blank lines and comments")


def is_npz(path):
    with open(path, "rb") as stream:
        start = stream.read(4)
    if not start:
        raise InputError(f"{path}: the file is empty (0 bytes)")
    return start == b"PK\x03\x04" or os.fspath(path).endswith(".npz")


def _read_labels(path):
    if is_npz(path):
        return load_sparse(path)
    y = load_array(path)
    if y.ndim not in (1, 2):
        raise ValueError(f"labels must be a vector or an indicator: their shape is {y.shape}")
    return y


def _tidy(y, columns):
    return (_whole_numbers(y), None) if columns is None else (y, _whole_numbers(columns))


def _whole_numbers(labels):
    """Floating-point labels that are whole numbers as integers."""
    if labels.dtype.kind != "f" or not (np.abs(labels) < 2**53).all() or (labels % 1).any():
        return labels
    return labels.astype(np.int64)


def read_names(path, n_features):
    """One name for each feature."""
    with blamed_on(path):
        _, content = read_bytes(path)
        names = content.decode().splitlines()
        if len(names) != n_features:
            raise ValueError(f"{len(names)} names, but the model has {n_features} features")
    return names


def load_model(path) -> Model:
    with blamed_on(path):
        return load(path)
