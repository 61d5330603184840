"""Random problems: data with the columns that break solvers, and twins of every kind of normaliser.

A hypothesis example is a small description (shape, kinds, seed); the numbers come from numpy's generator,
so that problems of 200 x 100 cost nothing to draw.
"""

import numpy as np
import reference as ref
from hypothesis import strategies as st

VALUES = ("binary", "unit", "real")
ODD_COLUMNS = ("constant", "duplicate", "zero", "huge", "separating")
NORMALIZERS = ("pooled", "pooled_blocks", "reference", "two_blocks", "blocks")


def random_X(rng, n_samples, n_features, values="binary", density=0.3):
    """Columns of zeros and ones, of values in [0, 1], or of any sign."""
    X = (rng.random((n_samples, n_features)) < density).astype(float)
    if values == "unit":
        X *= rng.random(X.shape)
    elif values == "real":
        X *= rng.normal(size=X.shape) * 3
    return X


def random_y(rng, n_samples, n_classes):
    """Class codes; every class has at least one example, and classes are of unequal size."""
    share = rng.random(n_samples) ** 2
    y = (share * n_classes).astype(int)
    y[:n_classes] = np.arange(n_classes)
    return y


def one_hot(y, n_classes=None):
    return np.eye(y.max() + 1 if n_classes is None else n_classes)[y]


def spoil_column(rng, X, y, j, odd):
    """Turn column j into one of the `ODD_COLUMNS`."""
    if odd == "constant":
        X[:, j] = 1
    elif odd == "duplicate":
        X[:, j] = X[:, 0]
    elif odd == "zero":
        X[:, j] = 0
    elif odd == "huge":
        X[:, j] = rng.normal(size=len(X)) * 1e6
    elif odd == "separating":
        X[:, j] = y == 0


def random_data(rng, n_samples, n_features, n_classes=3, values="binary", odd=()):
    """X and class codes y; the last columns of X are odd ones."""
    X = random_X(rng, n_samples, n_features, values)
    y = random_y(rng, n_samples, n_classes)
    for k, kind in enumerate(odd[:n_features]):
        spoil_column(rng, X, y, n_features - 1 - k, kind)
    return X, y


def random_twin(
    rng, X, y, normalizer, beta=0.5, beta_rule="deviation", intercept=True, weighted=False, with_offset=False
):
    """The twin of one normaliser on the given data."""
    n_samples, labels = len(X), one_hot(y)
    first = (y == 0).astype(float)
    weight = rng.integers(1, 4, n_samples).astype(float) if weighted else np.ones(n_samples)
    n_blocks = {"pooled": 1, "reference": 1, "two_blocks": 2}.get(normalizer, labels.shape[1])
    offset = rng.normal(size=(n_blocks, n_samples)) if with_offset else None
    rule = {"beta": beta, "beta_rule": beta_rule, "offset": offset}
    if normalizer == "pooled":
        return ref.class_conditional(X, labels, weight, 0, **rule)
    if normalizer == "pooled_blocks":
        return ref.joint(X, labels, weight, intercept=intercept, **rule)
    if normalizer == "reference":
        return ref.conditional_reference(X, first, weight, intercept=intercept, **rule)
    if normalizer == "two_blocks":
        labels = ref.class_indicator(first)
    return ref.conditional(X, labels, weight, intercept=intercept, **rule)


@st.composite
def data(draw, max_samples=200, max_features=100, values=VALUES, odd=ODD_COLUMNS):
    """(rng, X, y): tiny to ``max_samples`` x ``max_features``, sometimes with one example per class."""
    rng = np.random.default_rng(draw(st.integers(0, 2**32 - 1)))
    n_classes = draw(st.integers(2, 4))
    one_each = draw(st.booleans()) and draw(st.booleans())
    n_samples = n_classes if one_each else draw(st.integers(n_classes, max_samples))
    n_features = draw(st.integers(1, max_features))
    odd_kinds = draw(st.lists(st.sampled_from(odd), max_size=3)) if odd else []
    return rng, *random_data(rng, n_samples, n_features, n_classes, draw(st.sampled_from(values)), odd_kinds)


@st.composite
def twins(draw, normalizers=NORMALIZERS, betas=(0.1, 0.5, 2.0), intercept=None, offset=None, **data_options):
    """A `reference.Twin` of any normaliser, with and without intercept, offset and sample weights."""
    rng, X, y = draw(data(**data_options))
    return random_twin(
        rng,
        X,
        y,
        draw(st.sampled_from(normalizers)),
        beta=draw(st.sampled_from(betas)),
        beta_rule=draw(st.sampled_from(("deviation", "count"))),
        intercept=draw(st.booleans()) if intercept is None else intercept,
        weighted=draw(st.booleans()),
        with_offset=draw(st.booleans()) if offset is None else offset,
    )
