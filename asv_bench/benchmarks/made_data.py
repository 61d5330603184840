"""Synthetic data, the same on every machine."""

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


@cache
def made_one_hot(n_samples=32000, n_columns=14, n_features=120, seed=0):
    """One-hot columns of categorical variables with Zipf-distributed categories (CSR); labels by a logistic rule.

    The variables have between 2 and about 20 categories, n_features in all.
    """
    rng = np.random.default_rng(seed)
    sizes = np.full(n_columns, 2)
    while sizes.sum() < n_features:
        sizes[rng.choice(n_columns, p=sizes / sizes.sum())] += 1
    first = np.concatenate([[0], np.cumsum(sizes)[:-1]])
    codes = []
    for size in sizes:
        frequency = 1.0 / np.arange(1, size + 1)
        codes.append(rng.choice(size, size=n_samples, p=frequency / frequency.sum()))
    columns = first[:, None] + np.array(codes)
    X = sp.csr_matrix((np.ones(columns.size), columns.T.ravel(), np.arange(n_samples + 1) * n_columns))
    score = X @ rng.normal(size=n_features) - 1.5
    return X, (rng.random(n_samples) < 1 / (1 + np.exp(-score))).astype(np.int64)


@cache
def made_zipf(n_samples=40000, n_features=20000, n_classes=200, row_length=40, seed=0):
    """Binary rows of `row_length` features by Zipf's law with exponent 1.3 (CSR); classes by a sparse linear rule.

    Every class has 30 features with standard normal weights, most of them frequent ones; the class of a row has the
    largest score, plus Gumbel noise of scale one half.
    """
    rng = np.random.default_rng(seed)
    frequency = np.arange(1, n_features + 1) ** -1.3
    frequency /= frequency.sum()
    words = rng.choice(n_features, size=(n_samples, row_length), p=frequency)
    X = sp.csr_matrix((np.ones(words.size), words.ravel(), np.arange(n_samples + 1) * row_length))
    X.resize(n_samples, n_features)
    X.sum_duplicates()
    X.data[:] = 1.0
    weights = np.zeros((n_features, n_classes))
    for c in range(n_classes):
        chosen = rng.choice(n_features, size=30, replace=False, p=np.sqrt(frequency) / np.sqrt(frequency).sum())
        weights[chosen, c] = 2.0 * rng.normal(size=30)
    score = X @ weights + 0.5 * rng.gumbel(size=(n_samples, n_classes))
    y = score.argmax(axis=1)
    y[:n_classes] = np.arange(n_classes)  # no class stays empty
    return X, y
