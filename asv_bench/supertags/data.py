"""The training sets: the public stand-in for SuperTags or synthetic data, complete or in part."""

import os
from pathlib import Path
from typing import NamedTuple

import numpy as np
import scipy.sparse as sp

from sl1max.datasets import fetch_supertags

SHAPE = (938_455, 95_706, 4_755)  # rows, features, classes


class Task(NamedTuple):
    """Training and test data; without test examples if classes are left out."""

    X: sp.csr_array
    y: np.ndarray | sp.csr_array
    X_test: sp.csr_array | None
    y_test: np.ndarray | None


def data_dir():
    """The folder of the real data sets, or None."""
    beside = Path(__file__).resolve().parents[2].parent / "shared" / "data"
    path = Path(os.environ.get("SL1MAX_DATA", beside))
    return path if (path / "supertag").is_dir() else None


def load(made):
    """X, y, X_test, y_test of the real data or, if ``made`` is (rows, features, classes), of made ones."""
    if made:
        n_rows, n_features, n_classes = made
        X, y = made_tokens(n_rows + n_rows // 20, n_features, n_classes)
        return X[:n_rows], y[:n_rows], X[n_rows:], y[n_rows:]
    os.environ["SL1MAX_DATA"] = str(data_dir())
    data = fetch_supertags(download_if_missing=False)
    return data.X_train, data.y_train, data.X_test, data.y_test


def make_task(made, exclusive, n_classes=None, rows=1.0) -> Task:
    """The task, or a part of it.

    ``rows`` is the share of the training examples, drawn at random. ``n_classes`` are spread evenly over the
    classes from the most frequent to the rarest; all rows are kept: those of other classes make up one more
    class (exclusive classes), or belong to none.
    """
    X, y, X_test, y_test = load(made)
    if rows < 1:
        chosen = np.sort(np.random.default_rng(0).permutation(X.shape[0])[: round(rows * X.shape[0])])
        X, y = X[chosen], y[chosen]
    sizes = np.bincount(y)
    ranked = np.argsort(-sizes, kind="stable")[: np.count_nonzero(sizes)]
    if n_classes is None or n_classes >= len(ranked):
        return Task(X, y, X_test, y_test)
    kept = ranked[np.linspace(0, len(ranked) - 1, n_classes).astype(int)]
    code = np.full(len(sizes), -1)
    code[kept] = np.arange(n_classes)
    y = code[y]
    if exclusive:
        return Task(X, np.where(y < 0, n_classes, y), None, None)
    held = np.flatnonzero(y >= 0)
    return Task(X, sp.csr_array((np.ones(len(held)), (held, y[held])), shape=(len(y), n_classes)), None, None)


def made_tokens(n_rows, n_features, n_classes, per_row=18, seed=0):
    """Binary rows and class codes with frequencies as in natural language; a few features depend on the class."""
    rng = np.random.default_rng(seed)
    y = zipf(rng, n_classes, n_rows, 1.3)
    y[:n_classes] = np.arange(n_classes)
    told = per_row // 4
    cues = zipf(rng, n_features, n_classes * 12, 0.8).reshape(n_classes, 12)
    columns = np.empty((n_rows, per_row), np.int32)
    columns[:, :told] = cues[y[:, None], rng.integers(0, 12, (n_rows, told))]
    columns[:, told:] = zipf(rng, n_features, n_rows * (per_row - told), 1.0).reshape(n_rows, -1)
    indptr = np.arange(0, n_rows * per_row + 1, per_row)
    X = sp.csr_array((np.ones(columns.size), columns.ravel(), indptr), shape=(n_rows, n_features))
    X.sum_duplicates()
    X.data[:] = 1
    return X, y


def zipf(rng, n_kinds, size, exponent):
    """Numbers 0..n_kinds - 1, the k-th with a frequency of 1 / (k + 1)**exponent."""
    total = np.cumsum(np.arange(1, n_kinds + 1) ** -exponent)
    return np.searchsorted(total, rng.random(size) * total[-1]).astype(np.int32)
