"""Made data, the same on every machine."""

from functools import cache

import numpy as np
import scipy.sparse as sp


@cache
def made_text(n_samples, n_features, n_classes, mean_length=80, seed=0):
    """Binary bag of Zipf-distributed words (CSR); class codes drawn from a planted sparse model."""
    rng = np.random.default_rng(seed)
    frequency = 1.0 / np.arange(1, n_features + 1)
    lengths = rng.poisson(mean_length, n_samples) + 1
    words = rng.choice(n_features, size=lengths.sum(), p=frequency / frequency.sum())
    rows = np.repeat(np.arange(n_samples), lengths)
    X = sp.csr_matrix((np.ones(len(words)), (rows, words)), shape=(n_samples, n_features))
    X.sum_duplicates()
    X.data[:] = 1.0
    weights = rng.normal(size=(n_features, n_classes)) * (rng.random((n_features, n_classes)) < 0.05)
    noisy = 3.0 * (X @ weights) + rng.gumbel(size=(n_samples, n_classes))
    y = noisy.argmax(axis=1)
    y[:n_classes] = np.arange(n_classes)  # no class stays empty
    return X, y


def made_indicator(y, n_classes, seed=0):
    """Sparse indicator (n_samples, n_classes): the class of each example, for a third of them one more."""
    rng = np.random.default_rng(seed)
    second = np.flatnonzero(rng.random(len(y)) < 1 / 3)
    rows = np.concatenate([np.arange(len(y)), second])
    labels = np.concatenate([y, rng.integers(n_classes, size=len(second))])
    Y = sp.csr_matrix((np.ones(len(rows)), (rows, labels)), shape=(len(y), n_classes))
    Y.data[:] = 1.0
    Y.sum_duplicates()
    Y.data[:] = 1.0
    return Y
