"""Texts: files of them, and vectorisers of scikit-learn that are saved with a model, without pickle."""

from __future__ import annotations

import csv
import dataclasses
import io
import json
import os
from typing import TYPE_CHECKING, Any, BinaryIO, Literal, NamedTuple, TypeAlias

import numpy as np

from sl1max.model._model import Model
from sl1max.svmlight import COMPRESSIONS, read_bytes

if TYPE_CHECKING:
    from sklearn.feature_extraction.text import CountVectorizer

__all__ = ["Texts", "attach_vectorizer", "get_vectorizer", "read_texts", "text_format"]

Format: TypeAlias = Literal["csv", "tsv", "jsonl", "lines"]
FORMATS = ("csv", "tsv", "jsonl", "lines")
ENDINGS: dict[str, Format] = {
    ".csv": "csv",
    ".tsv": "tsv",
    ".jsonl": "jsonl",
    ".ndjson": "jsonl",
    ".txt": "lines",
}
_CLASSES = ("CountVectorizer", "TfidfVectorizer")
_LARGEST_FIELD = 1 << 30  # bytes of a cell of a table; the csv module allows 128 KiB


class Texts(NamedTuple):
    """What :func:`read_texts` returns.

    Attributes
    ----------
    texts : list of str
    labels : list or None
        A label, or a list of labels, for each text; None if there is no column of labels.
    """

    texts: list[str]
    labels: list | None


def text_format(path: str | os.PathLike[str]) -> Format | None:
    """The format of a file of texts by the ending of its name, or None.

    Examples
    --------
    >>> from sl1max.text import text_format
    >>> text_format("news.csv.gz"), text_format("news.svm")
    ('csv', None)
    """
    stem, ending = os.path.splitext(os.fspath(path))
    if ending in COMPRESSIONS:
        ending = os.path.splitext(stem)[1]
    return ENDINGS.get(ending.lower())


def read_texts(
    file: str | os.PathLike[str] | BinaryIO,
    *,
    text_column: str = "text",
    label_column: str | None = None,
    label_separator: str | None = None,
    format: Format | Literal["auto"] = "auto",
) -> Texts:
    """Read texts, and their labels, from a table, from JSON lines or from plain lines.

    Parameters
    ----------
    file : str, path-like or binary file object
        UTF-8, plain, gzip, xz or bzip2.
    text_column : str
        The column, or the key of the JSON objects, that holds the texts.
    label_column : str, optional
        That of the labels. A list in a JSON object is a set of labels.
    label_separator : str, optional
        Between the labels of a set, in a cell of a table, such as ``";"``; without it a cell is one label.
    format : {"auto", "csv", "tsv", "jsonl", "lines"}
        "auto": by the ending of the name. "lines": a text in each line, without labels.

    Returns
    -------
    Texts
        ``(texts, labels)``.

    Raises
    ------
    ValueError
        The message has the form ``file:line: message`` if a line is invalid.

    Examples
    --------
    >>> import io
    >>> from sl1max.text import read_texts
    >>> read_texts(io.BytesIO(b"text,topic\\nwheat rises,grain\\n"), label_column="topic", format="csv")
    Texts(texts=['wheat rises'], labels=['grain'])
    """
    name, content = read_bytes(file)
    if format == "auto":
        found_format = text_format(name)
        if found_format is None:
            raise ValueError(f"{name}: the ending of the name is none of {', '.join(ENDINGS)}: give the format")
        format = found_format
    if format not in FORMATS:
        raise ValueError(f"format={format!r} is unknown: it must be one of {', '.join(map(repr, FORMATS))}")
    try:
        text = content.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        line = content.count(b"\n", 0, error.start) + 1
        raise ValueError(f"{name}:{line}: the text is not UTF-8 ({error.reason})") from None
    if format == "lines":
        if label_column is not None:
            raise ValueError(f"{name}: plain lines of text have no labels")
        return Texts(text.splitlines(), None)
    rows = _json_rows(name, text) if format == "jsonl" else _table_rows(name, text, "\t" if format == "tsv" else ",")
    texts, labels = [], []
    for line, row in rows:
        found = _cell(name, line, row, text_column)
        if not isinstance(found, str):
            raise ValueError(f"{name}:{line}: {text_column!r} is {found!r}, not a text")
        texts.append(found)
        if label_column is not None:
            labels.append(_read_label(name, line, _cell(name, line, row, label_column), label_separator))
    if not texts:
        raise ValueError(f"{name}: there are no texts")
    if label_column is None:
        return Texts(texts, None)
    return Texts(texts, _one_type(name, labels))


def _table_rows(name, text, delimiter):
    """Line numbers and rows, as dictionaries."""
    before = csv.field_size_limit(_LARGEST_FIELD)
    try:
        reader = csv.DictReader(io.StringIO(text, newline=""), delimiter=delimiter, strict=True)
        for row in reader:
            if None in row:
                raise ValueError(
                    f"{name}:{reader.line_num}: more cells than the {len(reader.fieldnames or ())} columns"
                )
            yield reader.line_num, row
    except csv.Error as error:
        raise ValueError(f"{name}:{reader.line_num}: {error}") from None
    finally:
        csv.field_size_limit(before)


def _json_rows(name, text):
    for number, line in enumerate(text.split("\n"), start=1):
        if not line.strip():
            continue
        try:
            row = json.loads(line)
        except (ValueError, RecursionError) as error:
            raise ValueError(f"{name}:{number}: not JSON: {error}") from None
        if not isinstance(row, dict):
            raise ValueError(f"{name}:{number}: not a JSON object")
        yield number, row


def _cell(name, line, row, column):
    if column not in row:
        raise ValueError(f"{name}:{line}: there is no column {column!r}; there are {', '.join(map(str, row))}")
    if row[column] is None:
        raise ValueError(f"{name}:{line}: {column!r} is missing")
    return row[column]


def _read_label(name, line, value, separator):
    """A label, or a list of labels."""
    if separator is not None and isinstance(value, str):
        value = [label.strip() for label in value.split(separator) if label.strip()]
    labels = value if isinstance(value, list) else [value]
    for label in labels:
        if isinstance(label, bool) or not isinstance(label, (str, int)):
            raise ValueError(f"{name}:{line}: the label {label!r} is neither text nor an integer")
        if label == "":
            raise ValueError(f"{name}:{line}: the label is empty")
    return value


def _one_type(name, labels):
    """The labels, all of which are sets if one is; they must be all text or all integers."""
    if any(isinstance(label, list) for label in labels):
        labels = [label if isinstance(label, list) else [label] for label in labels]
        every = {type(label) for found in labels for label in found}
    else:
        every = set(map(type, labels))
    if len(every) > 1:
        raise ValueError(f"{name}: some labels are text and others integers")
    return labels


def attach_vectorizer(model: Model, vectorizer: CountVectorizer, text_column: str = "text") -> Model:
    """A model that keeps the vectoriser which made its features; it is saved with the model, without pickle.

    Parameters
    ----------
    model : Model
    vectorizer : CountVectorizer or TfidfVectorizer
        Fitted. Its settings must be plain values: no function as analyzer, tokenizer or preprocessor.
    text_column : str
        The column that holds the texts, in the files from which the command ``sl1max`` predicts.

    Returns
    -------
    Model
        With the vocabulary as `feature_names`.

    See Also
    --------
    get_vectorizer : The vectoriser of such a model.

    Examples
    --------
    >>> import sl1max
    >>> from sklearn.feature_extraction.text import TfidfVectorizer
    >>> from sl1max.text import attach_vectorizer, get_vectorizer
    >>> texts, y = ["wheat and maize", "wheat", "crude oil", "oil"], ["grain", "grain", "fuel", "fuel"]
    >>> vectorizer = TfidfVectorizer()
    >>> model = attach_vectorizer(sl1max.fit(vectorizer.fit_transform(texts), y), vectorizer)
    >>> model.predict(get_vectorizer(model).transform(["wheat prices"])).tolist()
    ['grain']
    """
    kind = type(vectorizer).__name__
    if kind not in _CLASSES or type(vectorizer).__module__ != "sklearn.feature_extraction.text":
        raise TypeError(f"vectorizer must be one of {' and '.join(_CLASSES)} of scikit-learn, not {kind}")
    settings = {}
    for name, value in vectorizer.get_params(deep=False).items():
        if name in ("vocabulary", "max_df", "min_df", "max_features"):  # what is left of them is the vocabulary
            continue
        if name == "dtype":
            value = np.dtype(value).name
        if callable(value):
            raise ValueError(f"{name} of the vectoriser is a function, which cannot be saved")
        settings[name] = list(value) if isinstance(value, tuple) else value
    names = vectorizer.get_feature_names_out()
    if len(names) != model.n_features:
        raise ValueError(f"the vectoriser has {len(names)} words, but the model {model.n_features} features")
    source = {"kind": "text", "text_column": text_column, "vectorizer": kind, "settings": settings}
    if getattr(vectorizer, "use_idf", False):
        source["idf"] = np.asarray(vectorizer.idf_, float)
    return dataclasses.replace(model, feature_names=names.astype(object), source=source)


def get_vectorizer(model: Model) -> CountVectorizer:
    """The vectoriser that a model keeps.

    Parameters
    ----------
    model : Model

    Returns
    -------
    CountVectorizer or TfidfVectorizer
        Ready for ``transform``.

    See Also
    --------
    attach_vectorizer : Gives a model its vectoriser.
    """
    source: dict[str, Any] = model.source or {}
    if source.get("kind") != "text" or source.get("vectorizer") not in _CLASSES or model.feature_names is None:
        raise ValueError("the model keeps no vectoriser: it was not trained on texts")
    try:
        from sklearn.feature_extraction import text
    except ImportError as error:
        raise ImportError("models of texts need scikit-learn >= 1.6: pip install scikit-learn") from error
    settings = {name: tuple(v) if name == "ngram_range" else v for name, v in source["settings"].items()}
    settings["dtype"] = np.dtype(settings["dtype"]).type
    kind = getattr(text, source["vectorizer"])
    if unknown := settings.keys() - kind().get_params().keys():
        raise ValueError(f"this version of scikit-learn does not know {', '.join(sorted(unknown))} of {kind.__name__}")
    vectorizer = kind(**settings, vocabulary={word: j for j, word in enumerate(model.feature_names.tolist())})
    with np.errstate(divide="ignore"):
        vectorizer.fit([""])  # the vocabulary is fixed: this only marks it as fitted
    if "idf" in source:
        vectorizer.idf_ = source["idf"]
    return vectorizer
