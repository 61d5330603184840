"""Reading of data files, models and lists of names."""

from __future__ import annotations

import itertools
import os
import sys
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace

import numpy as np
from scipy import sparse

from sl1max._utils.arrays import load_array, load_sparse
from sl1max.cli._errors import InputError, blamed_on
from sl1max.model._model import Model, load
from sl1max.svmlight import read_bytes, read_svmlight, read_svmlight_pieces
from sl1max.text import ENDINGS, get_vectorizer, read_texts, text_format

STREAM = "-"  # standard input, as a name of a data file
TABLES = ("csv", "tsv", "jsonl")
TEXTS_AT_ONCE = 10_000


@dataclass(frozen=True, eq=False)
class Examples:
    """A data file: X, or texts; y, a vector of labels or an indicator; the labels of the indicator's columns."""

    X: sparse.csr_array | None
    y: np.ndarray | sparse.csr_array | None
    columns: np.ndarray | None = None
    texts: Sequence[str] | None = None

    def __len__(self):
        return self.X.shape[0] if self.texts is None else len(self.texts)

    def take(self, rows):
        """Select examples, and the columns of an indicator that occur in them."""
        X = None if self.X is None else self.X[rows]
        texts = None if self.texts is None else [self.texts[i] for i in rows]
        if self.columns is None:
            return Examples(X, self.y[rows], None, texts)
        y = self.y[rows]
        seen = np.flatnonzero(np.asarray(y.sum(axis=0)).ravel())
        return Examples(X, y[:, seen], self.columns[seen], texts)


@dataclass(frozen=True)
class TextOptions:
    """Location of texts and labels in text files."""

    text_column: str = "text"
    label_column: str = "label"
    label_separator: str | None = None
    format: str | None = None


def text_options(args, text_column="text") -> TextOptions:
    """The options of a command for files of texts."""
    given = {name: getattr(args, name) for name in ("label_column", "label_separator") if name in args}
    return TextOptions(args.text_column or text_column, format=args.text_format, **given)


def is_texts(path, args) -> bool:
    """Whether a training set is a file of texts."""
    return args.text or args.text_format is not None or text_format(path) in TABLES


def first_feature(model: Model, zero_based=False) -> int:
    """Return the number of the first feature in svmlight files of a model."""
    source = model.source or {}
    return 0 if zero_based or (source.get("kind") == "svmlight" and source.get("first_feature") == 0) else 1


def read_training_set(args) -> Examples:
    """The examples of ``sl1max train``."""
    if is_texts(args.data, args):
        if args.labels is not None:
            raise InputError("--labels is for .npz; a file of texts has a column of labels, see --label-column")
        options = text_options(args)
        if args.text and options.format is None and args.data != STREAM:
            options = replace(options, format=text_format(args.data) or "csv")
        return read_text_examples(args.data, options, args.label_sets)
    return read_examples(
        args.data, labels=args.labels, label_sets=args.label_sets, zero_based=args.zero_based,
        n_features=args.n_features,
    )  # fmt: skip


def read_labelled(model: Model, args) -> Examples:
    """Read labelled examples for a model, for ``evaluate`` and ``report``."""
    if reads_texts(model):
        examples = read_text_examples(args.data, text_options(args, model.source["text_column"]))
        return replace(examples, X=transform(model, examples.texts))
    refuse_texts(args.data)
    return read_examples(
        args.data, labels=args.labels, zero_based=not first_feature(model, args.zero_based),
        n_features=model.n_features, kind="text" if has_text_labels(model) else "number",
    )  # fmt: skip


def reads_texts(model: Model) -> bool:
    return model.source is not None and model.source["kind"] == "text"


def refuse_texts(path):
    if text_format(path) is not None:
        raise InputError(f"{path}: the model was trained on features, not on texts")


def has_text_labels(model: Model) -> bool:
    return model.classes.dtype.kind in "UTO"


def labels_kind(examples: Examples) -> str:
    """Return the kind of labels that other files must have: numbers or text."""
    labels = examples.y if examples.columns is None else examples.columns
    return "text" if labels.dtype.kind in "UTO" else "number"


def read_text_examples(path, options: TextOptions, label_sets=False, with_y=True) -> Examples:
    """Read examples of a text file, not yet vectorised."""
    form = options.format or text_format(path)
    if path == STREAM and form is None:
        if with_y:
            raise InputError("texts from standard input need --text-format")
        form = "lines"
    if form is None:
        raise InputError(f"{path}: the name does not end in {', '.join(ENDINGS)}: give --text-format")
    with blamed_on(path):
        texts, labels = read_texts(
            open_data(path), text_column=options.text_column, label_column=options.label_column if with_y else None,
            label_separator=options.label_separator, format=form,
        )  # fmt: skip
    if labels is None:
        return Examples(None, None, texts=texts)
    if label_sets and not any(isinstance(label, list) for label in labels):
        labels = [[label] for label in labels]
    if not isinstance(labels[0], list):
        return Examples(None, np.array(labels), texts=texts)
    columns, codes = np.unique(list(itertools.chain.from_iterable(labels)), return_inverse=True)
    indptr = np.cumsum([0, *map(len, labels)])
    y = sparse.csr_array((np.ones(len(codes)), codes, indptr), shape=(len(labels), len(columns)))
    y.sum_duplicates()
    y.data[:] = 1
    return Examples(None, y, columns, texts)


def transform(model: Model, texts) -> sparse.csr_array:
    """Convert texts to features for a model that was trained on texts."""
    try:
        return sparse.csr_array(get_vectorizer(model).transform(texts), dtype=np.float64)
    except (ImportError, ValueError) as error:
        raise InputError(error) from error


def read_examples(
    path, *, labels=None, label_sets=False, zero_based=False, n_features=None, with_y=True, kind="auto"
) -> Examples:
    """Examples of a svmlight or .npz file; ``kind`` is that of the labels in a svmlight file."""
    with blamed_on(path):
        if not is_npz(path):
            if labels is not None:
                raise ValueError("--labels is for .npz; a svmlight file holds its own labels")
            X, y, columns = read_svmlight(
                open_data(path), multilabel=label_sets or "auto", zero_based=zero_based, n_features=n_features,
                labels=kind,
            )  # fmt: skip
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


def read_rows(model: Model, args) -> Iterator[sparse.csr_array]:
    """Yield the examples of a file in pieces, so that a svmlight file is never in memory as a whole."""
    path = args.data
    if reads_texts(model):
        texts = read_text_examples(path, text_options(args, model.source["text_column"]), with_y=False).texts
        for start in range(0, len(texts), TEXTS_AT_ONCE):
            yield transform(model, texts[start : start + TEXTS_AT_ONCE])
        return
    refuse_texts(path)
    if is_npz(path):
        yield read_examples(path, n_features=model.n_features, with_y=False).X
        return
    with blamed_on(path):
        n_rows = 0
        # Labels are not looked at, so that any number of them will do.
        for piece in read_svmlight_pieces(
            open_data(path), multilabel=True, zero_based=not first_feature(model, args.zero_based),
            n_features=model.n_features, labels="text" if has_text_labels(model) else "number",
        ):  # fmt: skip
            n_rows += piece.X.shape[0]
            yield piece.X
        if not n_rows:
            raise ValueError("no examples, only blank lines and comments")


def open_data(path):
    """The path, or the stream of standard input."""
    return sys.stdin.buffer if path == STREAM else path


def is_npz(path):
    if path == STREAM:
        return False
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
    """Convert floating-point labels that are whole numbers to integers."""
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
