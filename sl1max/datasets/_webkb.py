"""WebKB, four classes: the matrix in the package, and the code that made it from the pages."""

from __future__ import annotations

import html
import io
import re
from collections import Counter
from importlib import resources

import numpy as np
import scipy.sparse as sp

from sl1max.datasets._store import Dataset, binary_matrix, make_vocabulary, words

CLASSES = ("course", "faculty", "project", "student")
UNIVERSITIES = ("cornell", "misc", "texas", "washington", "wisconsin")
N_FOLDS = 4

_DESCRIPTION = """\
WebKB, gathered by the World Wide Knowledge Base project of Carnegie Mellon University in 1997 for research;
the pages belong to their authors. 4199 pages of four classes: 930 course, 1124 faculty, 504 project, 1641
student. MIME header, comments and tags dropped, entities decoded, lower case; features are binary: the words
of letters and digits, every digit as '#', that occur at least twice in the collection. Stratified folds 0 to
3."""


def fetch_webkb() -> Dataset:
    """Load WebKB: 4199 pages of four classes, in four folds; part of the package.

    Returns
    -------
    Dataset
        All pages are in ``X_train``; ``folds`` is a stratified division in four. ``extras``: "university", the
        university of every page.

    Examples
    --------
    >>> from sl1max.datasets import fetch_webkb
    >>> fetch_webkb()
    <Dataset WebKB: 4199 examples, 23744 features, 4 classes>
    """
    content = resources.files("sl1max.datasets").joinpath("data", "webkb.npz").read_bytes()
    return unpack(content)


def make_dataset(pages) -> Dataset:
    """Make the data set from the original pages: ``(class/university/file, content)``, sorted by name."""
    names = [name.split("/") for name, _ in pages]
    tokens = [_tokens(content.decode("latin-1")) for _, content in pages]
    vocabulary = make_vocabulary(Counter(token for page in tokens for token in page), 2)
    y = np.array([CLASSES.index(name[0]) for name in names])
    return Dataset(
        name="WebKB",
        X_train=binary_matrix(map(set, tokens), vocabulary),
        y_train=y,
        feature_names=words(vocabulary),
        class_names=words(CLASSES),
        folds=_stratified_folds(y),
        extras={"university": words(name[1] for name in names)},
        description=_DESCRIPTION,
    )


def _tokens(page):
    header = re.search(r"\r?\n\r?\n", page)
    if header:
        page = page[header.end() :]
    page = re.sub(r"<!--.*?-->", " ", page, flags=re.DOTALL)
    page = html.unescape(re.sub(r"<[^>]*>", " ", page)).lower()
    return [re.sub(r"\d", "#", token) for token in re.findall(r"[a-z0-9]+", page)]


def _stratified_folds(y):
    # The stream of this generator never changes, so the folds are fixed.
    rng = np.random.RandomState(0)
    folds = np.empty(len(y), dtype=np.int64)
    start = 0
    for c in range(len(CLASSES)):
        members = np.flatnonzero(y == c)
        rng.shuffle(members)
        folds[members] = (np.arange(len(members)) + start) % N_FOLDS
        start += len(members)
    return folds


def pack(data: Dataset) -> bytes:
    """Compress the data set to one npz: the rows of each column as differences, low and high bytes separate."""
    columns = sp.csc_array(data.X_train)
    columns.sort_indices()
    steps = np.diff(columns.indices, prepend=0)
    starts = columns.indptr[:-1][np.diff(columns.indptr) > 0]
    steps[starts] = columns.indices[starts]
    stream = io.BytesIO()
    np.savez_compressed(
        stream,
        n_samples=np.int64(columns.shape[0]),
        column_sizes=np.diff(columns.indptr).astype(np.uint16),
        steps_low=(steps & 255).astype(np.uint8),
        steps_high=(steps >> 8).astype(np.uint8),
        names=np.frombuffer("\n".join(data.feature_names).encode(), dtype=np.uint8),
        y=data.y_train.astype(np.uint8),
        folds=data.folds.astype(np.uint8),
        university=np.searchsorted(UNIVERSITIES, data.extras["university"].astype(str)).astype(np.uint8),
    )
    return stream.getvalue()


def unpack(content: bytes) -> Dataset:
    """Restore the data set from the output of :func:`pack`."""
    with np.load(io.BytesIO(content)) as packed:
        arrays = dict(packed)
    indptr = np.concatenate([[0], np.cumsum(arrays["column_sizes"], dtype=np.int64)])
    steps = arrays["steps_low"] + (arrays["steps_high"].astype(np.int64) << 8)
    # Within a column: the cumulative sum minus its value before the column.
    total = np.concatenate([[0], np.cumsum(steps)])
    rows = total[1:] - np.repeat(total[indptr[:-1]], arrays["column_sizes"])
    shape = (int(arrays["n_samples"]), len(indptr) - 1)
    columns = sp.csc_array((np.ones(len(rows)), rows.astype(np.int32), indptr.astype(np.int32)), shape=shape)
    return Dataset(
        name="WebKB",
        X_train=columns.tocsr(),
        y_train=arrays["y"].astype(np.int64),
        feature_names=words(arrays["names"].tobytes().decode().split("\n")),
        class_names=words(CLASSES),
        folds=arrays["folds"].astype(np.int64),
        extras={"university": words(np.array(UNIVERSITIES)[arrays["university"]])},
        description=_DESCRIPTION,
    )
