"""Reading and writing svmlight (libsvm) files, single- and multi-label, plain or compressed."""

import bz2
import contextlib
import gzip
import io
import itertools
import lzma
import os
import zlib
from collections.abc import Iterator
from typing import Any, BinaryIO, Literal, NamedTuple, TypeAlias, get_args

import numpy as np
import scipy.sparse as sp
from numpy.typing import ArrayLike

from sl1max._core import _svmlight
from sl1max._utils.arrays import check_sparse
from sl1max._utils.files import atomic_write, open_to_read

__all__ = ["SvmlightData", "read_svmlight", "read_svmlight_pieces", "write_svmlight"]

File: TypeAlias = str | os.PathLike[str]
Labels: TypeAlias = Literal["number", "text", "auto"]
Matrix: TypeAlias = ArrayLike | sp.sparray | sp.spmatrix

# Detected by the first bytes when reading, by the extension when writing.
COMPRESSIONS = {
    ".gz": (b"\x1f\x8b", gzip),
    ".xz": (b"\xfd7zXZ\x00", lzma),
    ".bz2": (b"BZh", bz2),
}
_DECOMPRESSION_ERRORS = (EOFError, OSError, ValueError, lzma.LZMAError, zlib.error)
# Maximum number of features of a file that is read without n_features.
MAX_FEATURES = 1 << 24
# Entries formatted at once by write_svmlight.
_BLOCK_ENTRIES = 1 << 18


class SvmlightData(NamedTuple):
    """What :func:`read_svmlight` returns.

    Attributes
    ----------
    X : scipy.sparse.csr_array of shape (n_samples, n_features)
        Features, float64.
    y : ndarray of shape (n_samples,) or csr_array of shape (n_samples, n_classes)
        Labels, float64 or text; for a multi-label file the indicator of 0 and 1.
    classes : ndarray of shape (n_classes,) or None
        For a multi-label file the label of each column of the indicator, in ascending order; else None.
    """

    X: sp.csr_array
    y: np.ndarray | sp.csr_array
    classes: np.ndarray | None


def read_svmlight(
    file: File | BinaryIO,
    *,
    multilabel: bool | Literal["auto"] = "auto",
    zero_based: bool | Literal["auto"] = "auto",
    n_features: int | None = None,
    labels: Labels = "number",
) -> SvmlightData:
    """Read a svmlight file.

    Blank lines, comments after ``#``, and query numbers (``qid:`` and an integer before the features) are ignored.

    Parameters
    ----------
    file : str, path-like or binary file object
        Plain, gzip, xz or bzip2, detected by content.
    multilabel : bool or "auto", default="auto"
        Whether an example may have no label or several, separated by commas. "auto": if some example has.
    zero_based : bool or "auto", default="auto"
        Whether the first feature is number 0 or 1 in the file. "auto": 0 if that number occurs, as in
        scikit-learn.
    n_features : int, optional
        Number of columns, if the file does not contain the last ones. A larger index is an error. Without it, a file
        with more than 2^24 features is refused.
    labels : {"number", "text", "auto"}, default="number"
        "text": the labels are words without blank, comma, colon and ``#``. "auto": if the first one is not a number.

    Returns
    -------
    SvmlightData
        ``(X, y, classes)``.

    Raises
    ------
    ValueError
        The message has the form ``file:line: message`` if a line is invalid.

    Examples
    --------
    >>> import io
    >>> from sl1max.svmlight import read_svmlight
    >>> X, y, classes = read_svmlight(io.BytesIO(b"1,3 1:0.5 4:2\\n3 2:1  # a comment\\n"))
    >>> X.toarray()
    array([[0.5, 0. , 0. , 2. ],
           [0. , 1. , 0. , 0. ]])
    >>> y.toarray()
    array([[1., 1.],
           [0., 1.]])
    >>> classes
    array([1., 3.])
    """
    _check_choices(multilabel, zero_based, labels)
    name, text = read_bytes(file)
    if labels == "auto":
        labels = "text" if _begins_with_text(text) else "number"
    data = _parse(name, text, 0, multilabel, zero_based, n_features, labels)
    if data is None:
        raise ValueError(f"{name}: no examples, only blank lines and comments")
    return data


def read_svmlight_pieces(
    file: File | BinaryIO,
    *,
    multilabel: bool = False,
    zero_based: bool = False,
    n_features: int | None = None,
    labels: Literal["number", "text"] = "number",
    n_bytes: int = 1 << 24,
) -> Iterator[SvmlightData]:
    """Read a svmlight file piece by piece, for files larger than memory.

    Parameters
    ----------
    file : str, path-like or binary file object
        Plain, gzip, xz or bzip2, detected by content; a file object must be plain.
    multilabel, zero_based : bool, default=False
        As in :func:`read_svmlight`; ``"auto"`` would need the whole file.
    n_features : int, optional
        Number of columns; by default, each piece is as wide as its largest index.
    labels : {"number", "text"}, default="number"
        As in :func:`read_svmlight`.
    n_bytes : int
        Size of the text parsed at a time; pieces end at a line end.

    Yields
    ------
    SvmlightData
        The next rows. For a multi-label file ``classes`` are those of the piece.

    Examples
    --------
    >>> import os, tempfile
    >>> from sl1max.svmlight import read_svmlight_pieces, write_svmlight
    >>> path = os.path.join(tempfile.mkdtemp(), "data.svm.gz")
    >>> write_svmlight([[0.5, 0, 2], [0, 1, 0], [0, 0, 1]], [1, 2, 1], path)
    >>> [piece.X.shape for piece in read_svmlight_pieces(path, n_features=3, n_bytes=20)]
    [(2, 3), (1, 3)]
    """
    _check_choices(multilabel, zero_based, labels)
    if labels == "auto":  # type: ignore[comparison-overlap]  # without a type checker
        raise ValueError("labels='auto' is for whole files: a piece does not show what the others have")
    stream = file if hasattr(file, "read") else None
    name, n_lines = name_of(file), 0
    for text in _text_pieces(name, n_bytes, stream):
        data = _parse(name, text, n_lines, multilabel, zero_based, n_features, labels)
        n_lines += text.count(b"\n")
        if data is not None:
            yield data


def _check_choices(multilabel, zero_based, labels):
    if labels not in get_args(Labels):
        raise ValueError(f"labels must be one of {', '.join(map(repr, get_args(Labels)))}, got {labels!r}")
    if multilabel not in (True, False, "auto"):
        raise ValueError(f"multilabel must be True, False or 'auto', got {multilabel!r}")
    if zero_based not in (True, False, "auto"):
        raise ValueError(f"zero_based must be True, False or 'auto', got {zero_based!r}")


def _begins_with_text(text):
    """Whether the first label of a file is not a number."""
    for line in io.BytesIO(text):
        words = line.partition(b"#")[0].split(None, 1)
        if words and b":" not in words[0]:
            try:
                float(words[0].split(b",")[0])
            except ValueError:
                return True
            return False
    return False


def _text_pieces(name, n_bytes, stream=None):
    """The decompressed text in pieces of whole lines, of a file or of a stream of plain text."""
    if stream is None:
        with open_to_read(name) as beginning:
            start = beginning.read(6)
        if not start:
            raise ValueError(f"{name}: the file is empty (0 bytes)")
        module = next((module for magic, module in COMPRESSIONS.values() if start.startswith(magic)), None)
        opened: Any = open(name, "rb") if module is None else module.open(name, "rb")
    else:
        module, opened = None, contextlib.nullcontext(stream)
    rest = b""
    with opened as stream:
        while True:
            try:
                text = stream.read(n_bytes)
            except _DECOMPRESSION_ERRORS as error:
                if module is None:
                    raise
                raise ValueError(f"{name}: damaged {module.__name__} file: {error}") from None
            if not text:
                break
            lines, end, rest_of_line = (rest + text).rpartition(b"\n")
            rest = rest_of_line
            if end:
                yield lines + end
    if rest:
        yield rest


def _parse(name, text, n_lines_before, multilabel, zero_based, n_features, kind):
    """Parse the examples of a text after this many lines; None if it has none."""
    words = None
    if kind == "text":
        text, words = _take_labels(name, text, n_lines_before)
    n_rows, n_labels, n_entries = _svmlight.count(text)
    labels, label_ptr = np.empty(n_labels), np.empty(n_rows + 1, dtype=np.int64)
    indices, values = np.empty(n_entries, dtype=np.int32), np.empty(n_entries)
    indptr, lines = np.empty(n_rows + 1, dtype=np.int64), np.empty(n_rows, dtype=np.int64)
    try:
        found = _svmlight.parse(text, labels, label_ptr, indices, values, indptr, lines)
    except _svmlight.ParseError as error:
        line, message = error.args
        raise ValueError(f"{name}:{n_lines_before + line}: {message}") from None
    n_rows, n_labels, n_entries, min_index, max_index, max_line = found
    if n_rows == 0:
        return None
    labels, label_ptr, lines = labels[:n_labels], label_ptr[: n_rows + 1], n_lines_before + lines[:n_rows]
    if words is not None:
        labels = np.array([word for found in words for word in found], str)
        label_ptr = np.concatenate([[0], np.cumsum([len(found) for found in words])])
    indices, values, indptr = indices[:n_entries], values[:n_entries], indptr[: n_rows + 1]

    one_based = min_index > 0 if zero_based == "auto" else not zero_based
    if one_based:
        if min_index == 0:
            row = np.searchsorted(indptr, np.flatnonzero(indices == 0)[0], side="right") - 1
            raise ValueError(f"{name}:{lines[row]}: feature index 0 in a one-based file")
        indices -= 1
    if n_features is None:
        n_features = max_index + 1 - one_based if n_entries else 0
        if n_features > MAX_FEATURES:
            raise ValueError(
                f"{name}:{n_lines_before + max_line}: feature index {max_index} makes {n_features} features, more than "
                f"{MAX_FEATURES}: if that is right, give their number as n_features (--n-features on the command line)"
            )
    elif max_index - one_based >= n_features:
        line = n_lines_before + max_line
        raise ValueError(f"{name}:{line}: feature index {max_index}, but n_features is {n_features}")
    X = _csr(values, indices, indptr, n_features)
    y, classes = _labels(name, multilabel, labels, label_ptr, lines)
    return SvmlightData(X, y, classes)


def _take_labels(name, text, n_lines_before):
    """Replace the labels of every line by 0; return the text and the labels as lists of words."""
    lines, words = [], []
    for number, line in enumerate(text.split(b"\n"), start=n_lines_before + 1):
        content = line.partition(b"#")[0].split(None, 1)
        if not content:
            lines.append(line)
            continue
        head, rest = (b"", content) if b":" in content[0] else (content[0], content[1:])
        found = head.split(b",") if head else []
        if not all(found):
            raise ValueError(f"{name}:{number}: an empty label in {head.decode('utf-8', 'replace')!r}")
        try:
            words.append([label.decode() for label in found])
        except UnicodeDecodeError:
            raise ValueError(f"{name}:{number}: the label is not UTF-8") from None
        lines.append(b" ".join([b"0", *rest]))
    return b"\n".join(lines), words


def write_svmlight(
    X: Matrix,
    y: Matrix,
    file: File,
    *,
    classes: ArrayLike | None = None,
    zero_based: bool = False,
) -> None:
    """Write a svmlight file; numbers are read back exactly.

    Parameters
    ----------
    X : array-like or sparse matrix of shape (n_samples, n_features)
        Features, finite.
    y : array-like of shape (n_samples,), or array-like or sparse matrix of shape (n_samples, n_classes)
        Numeric labels, or an indicator: an example may then have no label or several.
    file : str or path-like
        A regular file, written atomically. Compressed if the name ends in .gz, .xz or .bz2.
    classes : array-like of shape (n_classes,), optional
        For an indicator, the number to write for each column; 0, 1, ... by default.
    zero_based : bool, default=False
        Number the features from 0 instead of 1.

    Examples
    --------
    >>> import os, tempfile
    >>> from sl1max.svmlight import write_svmlight
    >>> path = os.path.join(tempfile.mkdtemp(), "data.svm")
    >>> write_svmlight([[0.5, 0, 2], [0, 1, 0]], [[1, 1], [0, 1]], path, classes=[1, 3])
    >>> print(open(path).read(), end="")
    1,3 1:0.5 3:2
    3 2:1
    """
    given: Any = X  # the types of scipy leave out some of what csr_array takes
    X = sp.csr_array(given, dtype=np.float64)
    check_sparse(X)
    if not X.has_canonical_format:
        X = X.copy()
        X.sum_duplicates()
    if not np.isfinite(X.data).all():
        raise ValueError("X holds NaN or an infinity")
    labels, label_ptr = _flat_labels(y, classes)
    if len(label_ptr) - 1 != X.shape[0]:
        raise ValueError(f"X has {X.shape[0]} examples but y has {len(label_ptr) - 1}")
    indices, indptr = X.indices.astype(np.int32, copy=False), X.indptr.astype(np.int64)
    starts = np.arange(0, indptr[-1] + len(indptr), _BLOCK_ENTRIES)
    # Blocks of whole rows, bounded in rows and entries together.
    bounds = np.unique(np.r_[np.searchsorted(indptr + np.arange(len(indptr)), starts), X.shape[0]])
    with atomic_write(file) as target, _compress(target, file) as stream:
        for first, last in itertools.pairwise(bounds):
            block = _svmlight.format_rows(
                labels, label_ptr, indices, X.data, indptr, first, last, 0 if zero_based else 1
            )
            stream.write(block)


def read_bytes(file: File | BinaryIO) -> tuple[str, bytes]:
    """The name of a file for messages, and its decompressed content."""
    name = name_of(file)
    if hasattr(file, "read"):
        text = file.read()
        if not isinstance(text, bytes):
            raise TypeError(f"{name}: open the file in binary mode")
    else:
        with open_to_read(name) as stream:
            text = stream.read()
    if not text:
        raise ValueError(f"{name}: the file is empty (0 bytes)")
    for magic, module in COMPRESSIONS.values():
        if text.startswith(magic):
            try:
                text = module.decompress(text)
            except _DECOMPRESSION_ERRORS as error:
                raise ValueError(f"{name}: damaged {module.__name__} file: {error}") from None
            if not text:
                raise ValueError(f"{name}: the file is empty (0 bytes when decompressed)")
    return name, text


def name_of(file: File | BinaryIO) -> str:
    """The name of a file or stream for messages."""
    return getattr(file, "name", "<stream>") if hasattr(file, "read") else os.fspath(file)


def _compress(stream, file):
    """Return a stream that compresses according to the name of the file."""
    name = os.fspath(file)
    if name.endswith(".gz"):
        return gzip.GzipFile(name, "wb", fileobj=stream)  # the name is written to the file
    if name.endswith(".xz"):
        return lzma.LZMAFile(stream, "wb")
    return bz2.BZ2File(stream, "wb") if name.endswith(".bz2") else contextlib.nullcontext(stream)


def _csr(values, indices, indptr, n_columns):
    # scipy needs the same index type for both.
    if indptr[-1] <= np.iinfo(np.int32).max:
        indptr = indptr.astype(np.int32)
    else:
        indices = indices.astype(np.int64)
    return sp.csr_array((values, indices, indptr), shape=(len(indptr) - 1, n_columns))


def _labels(name, multilabel, labels, label_ptr, lines):
    """The label vector and None, or the indicator and its classes."""
    n_labels = np.diff(label_ptr)
    odd = np.flatnonzero(n_labels != 1)
    if multilabel == "auto":
        multilabel = len(odd) > 0
    if not multilabel:
        if len(odd):
            what = "no label" if n_labels[odd[0]] == 0 else f"{n_labels[odd[0]]} labels"
            raise ValueError(f"{name}:{lines[odd[0]]}: {what} in a single-label file")
        return labels.copy(), None
    classes, codes = np.unique(labels, return_inverse=True)
    indicator = _csr(np.ones(len(codes)), codes.astype(np.int32), label_ptr, len(classes))
    indicator.sum_duplicates()
    indicator.data[:] = 1.0
    return indicator, classes


def _flat_labels(y, classes):
    """Return all labels in one array, and the offsets of the examples."""
    if not sp.issparse(y):
        y = np.asarray(y)
        if y.dtype.kind not in "biuf":
            raise ValueError("svmlight labels are numbers: encode y, e.g. np.unique(y, return_inverse=True)")
    if y.ndim == 1:
        labels, label_ptr = y.astype(np.float64), np.arange(len(y) + 1)
    elif y.ndim == 2:
        y = sp.csr_array(y, copy=True)
        y.sum_duplicates()
        y.eliminate_zeros()
        if (y.data != 1).any():
            raise ValueError("an indicator y must hold 0 and 1 only")
        classes = np.arange(y.shape[1]) if classes is None else np.asarray(classes)
        if classes.shape != (y.shape[1],) or classes.dtype.kind not in "biuf":
            raise ValueError(f"classes must be {y.shape[1]} numbers, one for each column of y")
        labels, label_ptr = classes[y.indices].astype(np.float64), y.indptr
    else:
        raise ValueError(f"y must be a vector or an indicator matrix, got {y.ndim} dimensions")
    if not np.isfinite(labels).all():
        raise ValueError("y holds NaN or an infinity")
    return labels, label_ptr.astype(np.int64)
