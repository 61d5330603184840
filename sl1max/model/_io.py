"""Models as files.

A file is a fixed head and a compressed body::

    magic     8 bytes   \\x93SL1MAX\\n
    version   uint32    of the body's layout; the head stays the same in all versions
    size      uint64    of the body, in bytes
    checksum  32 bytes  SHA-256 of version, size and body

The body, once decompressed, is the length of a JSON text (uint32), the text, and the bytes of the arrays that
the text lists. The bytes of an array are grouped by significance, all first bytes before all second bytes:
the high bytes of small integers and the exponents of similar numbers then compress to little. Sparse matrices
are kept by row sizes and the steps from one column number to the next. No content is executed.
"""

from __future__ import annotations

import hashlib
import json
import os
import struct
import zlib
from collections.abc import Callable, Sequence
from dataclasses import fields
from typing import TYPE_CHECKING, Any

import numpy as np
from scipy import sparse

from sl1max._utils.arrays import check_sparse
from sl1max._utils.files import atomic_write
from sl1max.exceptions import ModelFileError

if TYPE_CHECKING:
    from sl1max.model._model import Model

MAGIC = b"\x93SL1MAX\n"
VERSION = 2
# Version 1 is that of sl1max 0.1.0: the same layout, other names of fields.
_NAMES_OF_VERSION_1 = {"kind": "label_mode", "mass": "total_weight", "indicator": "trained_on_indicator"}
_HEAD = struct.Struct("<8sIQ32s")
_TEXT_SIZE = struct.Struct("<I")
MAX_BYTES = 4 << 30  # of a model in memory, unless `max_bytes` says otherwise
MAX_TEXT_BYTES = 1 << 20
CHUNK_BYTES = 1 << 24  # read at once
_PARTS = ("in_class", "non_class")
_PENALTIES = {"beta_upper", "l2", "min_weight", "max_weight"}
_CHOICES = {
    "distribution": ("conditional", "joint", "class-conditional"),
    "label_mode": ("exclusive", "independent"),
    "trained_on_indicator": (False, True),
    "sparse_output": (False, True),
    "fit_intercept": (False, True),
}
_SCALAR_TYPES = {
    "trained_on_indicator": (bool,),
    "sparse_output": (bool,),
    "fit_intercept": (bool,),
    "total_weight": (float, int),
    "beta": (float, int, type(None)),
    "beta_rule": (str,),
    "solver": (str,),
    "tol": (float, int),
}
# Type codes of numpy; a number, or an array with one for each class.
_NUMBER_KINDS = {
    "log_z": "f",
    "objective": "f",
    "objective_zero": "f",
    "dual_gap": "f",
    "n_iter": "iu",
    "converged": "b",
}
_DECODING_ERRORS = (ValueError, KeyError, TypeError, OverflowError, RecursionError, struct.error, zlib.error)


def write_model(model: Model, path: str | os.PathLike[str]) -> None:
    """Write a model to one file atomically."""
    body = zlib.compress(_encode(model), 9)
    head = _HEAD.pack(MAGIC, VERSION, len(body), _checksum(VERSION, body))
    with atomic_write(path) as stream:
        stream.write(head)
        stream.write(body)


def read_model(path: str | os.PathLike[str], names: Sequence[str], max_bytes: int = MAX_BYTES) -> dict[str, Any]:
    """Read fields of the model in a file, whose arrays take at most ``max_bytes``."""
    path = os.fspath(path)
    with open(path, "rb") as stream:
        version, body = _read_body(stream, path, max_bytes)
    try:
        return _decode(_Inflater(body), version, names, max_bytes)
    except _TooLarge as error:
        raise _too_large(path, error.args[0], max_bytes) from None
    except _DECODING_ERRORS as error:
        raise ModelFileError(f"{path}: not a valid sl1max model ({error})") from error


# Files


def _checksum(version, body):
    state = hashlib.sha256(struct.pack("<IQ", version, len(body)))
    state.update(body)
    return state.digest()


def _read_body(stream, path, max_bytes):
    """Read version and body of a file with a valid header; no more is read than the header says."""
    head = stream.read(_HEAD.size)
    if not head:
        raise ModelFileError(f"{path}: the file is empty (0 bytes)")
    if head[: len(MAGIC)] != MAGIC[: len(head)]:
        raise ModelFileError(f"{path}: not a sl1max model")
    if len(head) < _HEAD.size:
        raise ModelFileError(f"{path}: truncated: {len(head)} bytes are less than the head of a model")
    _, version, size, checksum = _HEAD.unpack(head)
    body = bytearray()
    while len(body) <= size:
        if len(body) > max_bytes:
            raise _too_large(path, size, max_bytes)
        chunk = stream.read(min(CHUNK_BYTES, size + 1 - len(body)))
        if not chunk:
            break
        body += chunk
    if len(body) < size:
        raise ModelFileError(f"{path}: truncated or damaged: it holds {len(body)} of {size} bytes")
    if len(body) > size or checksum != _checksum(version, body):
        raise ModelFileError(f"{path}: damaged: its checksum or length is wrong")
    if not 1 <= version <= VERSION:
        newer = "written by a newer sl1max" if version > VERSION else "of an unknown version"
        raise ModelFileError(f"{path}: {newer}: its format is {version}, and this sl1max reads 1 to {VERSION}")
    return version, body


class _TooLarge(Exception):
    """The arrays of a model are too large; the argument is their size in bytes."""


def _too_large(path, size, max_bytes):
    return ModelFileError(
        f"{path}: a model of {size} bytes, more than max_bytes={max_bytes}; a larger max_bytes allows it"
    )


class _Inflater:
    """Compressed bytes, read as a stream of decompressed ones."""

    def __init__(self, body):
        self._inflate = zlib.decompressobj()
        self._rest = body

    def read(self, size):
        """Read exactly this many bytes."""
        parts, missing = [], size
        while missing:
            part = self._inflate.decompress(self._rest, missing)
            self._rest = self._inflate.unconsumed_tail
            if not part:
                raise ValueError(f"{missing} bytes too few")
            parts.append(part)
            missing -= len(part)
        return b"".join(parts)

    def check_end(self):
        """Raise ValueError if this is not the end of the stream."""
        if self._inflate.decompress(self._rest, 1) or not self._inflate.eof or self._inflate.unused_data:
            raise ValueError("there are bytes after the last array")


# Models to bytes and back


def _encode(model):
    values, arrays = {}, {}
    for name in (field.name for field in fields(model)):
        value = getattr(model, name)
        if name in ("classes", "feature_names", "weights", "_parts", "source"):
            continue
        if isinstance(value, np.ndarray):
            arrays[name] = value
        else:
            values[name] = value.item() if isinstance(value, np.generic) else value
    source = None
    if model.source is not None:
        source = {key: value for key, value in model.source.items() if not isinstance(value, np.ndarray)}
        arrays |= {f"source.{key}": value for key, value in model.source.items() if key not in source}
    label_type, label_arrays = _encode_labels("classes", model.classes)
    arrays.update(label_arrays)
    if model.feature_names is not None:
        arrays.update(_encode_labels("feature_names", model.feature_names)[1])
    matrices = {"weights": model.weights}
    if model._parts is not None:  # whose difference `weights` is
        matrices = dict(zip(_PARTS, model._parts, strict=True))
    for name, matrix in matrices.items():
        arrays.update(_encode_sparse(name, matrix))

    arrays = {name: np.ascontiguousarray(a, a.dtype.newbyteorder("<")) for name, a in arrays.items()}
    header = {
        "values": values,
        "source": source,
        "label_type": label_type,
        "n_features": int(model.n_features),
        "arrays": [[name, array.dtype.str, len(array)] for name, array in arrays.items()],
    }
    text = json.dumps(header).encode()
    return b"".join([_TEXT_SIZE.pack(len(text)), text, *map(_shuffle, arrays.values())])


def _decode(content, version, names, max_bytes) -> dict[str, Any]:
    (size,) = _TEXT_SIZE.unpack(content.read(_TEXT_SIZE.size))
    if size > MAX_TEXT_BYTES:
        raise ValueError(f"its text has {size} bytes")
    text = json.loads(content.read(size))
    arrays = _read_arrays(content, text["arrays"], max_bytes)
    classes = _decode_labels("classes", text["label_type"], arrays, max_bytes)
    if len(np.unique(classes)) < len(classes):
        raise ValueError("a class is there twice")
    shape = (len(classes), text["n_features"])
    feature_names = None
    if "feature_names.sizes" in arrays:
        feature_names = _decode_labels("feature_names", "object", arrays, max_bytes)
        if len(feature_names) != shape[1]:
            raise ValueError(f"there are {len(feature_names)} names of {shape[1]} features")
    parts = None
    if _PARTS[0] + ".columns" in arrays:
        parts = tuple(_decode_sparse(name, arrays, shape) for name in _PARTS)
        weights = (parts[0] - parts[1]).tocsr()
    else:
        weights = _decode_sparse("weights", arrays, shape)
    source = text.get("source")
    if source is not None:
        inner = {name: arrays.pop(name) for name in list(arrays) if name.startswith("source.")}
        source = _check_source(
            source | {name.removeprefix("source."): array for name, array in inner.items()}, shape[1]
        )
    found = {"penalty": None} | text["values"] | arrays | {"source": source}
    if version == 1:
        found = _update_version_1(found)
    values = found | {"classes": classes, "feature_names": feature_names, "weights": weights, "_parts": parts}
    for name, array in arrays.items():
        if name in names and len(array) != len(classes):
            raise ValueError(f"{name} has {len(array)} values for {len(classes)} classes")
    _check_types(values)
    return {name: values[name] for name in names}


def _check_source(source, n_features):
    """Check and return the description of the source of the features."""
    first, idf = source.get("first_feature", 0), source.get("idf", np.zeros(n_features))
    if source["kind"] not in ("svmlight", "npz", "text") or first not in (0, 1):
        raise ValueError(f"source is {source['kind']!r}, its first feature {first!r}")
    if not isinstance(idf, np.ndarray) or idf.shape != (n_features,) or not np.isfinite(idf).all():
        raise ValueError(f"source.idf is not {n_features} numbers")
    if source["kind"] == "text" and not (
        isinstance(source["settings"], dict) and isinstance(source["text_column"], str)
    ):
        raise ValueError("source has no settings of a vectoriser")
    return source


def _update_version_1(found):
    """Convert the fields of a model of version 1 to those of version 2."""
    found = {_NAMES_OF_VERSION_1.get(name, name): value for name, value in found.items()}
    if found["distribution"] == "joint":
        fit_intercept = not np.any(found["log_z"])
    else:
        finite = found["intercept"][np.isfinite(found["intercept"])]
        fit_intercept = not len(finite) or bool(np.any(finite))
    solver = "newton" if found["solver"] == "auto" else found["solver"]
    return found | {
        "sparse_output": found["trained_on_indicator"], "fit_intercept": fit_intercept, "solver": solver,
    }  # fmt: skip


def _check_types(values):
    """Check that each field of a model is of its type, and that weights and intercepts are numbers."""
    for name, choices in _CHOICES.items():
        if values[name] not in choices:
            raise ValueError(f"{name} is {values[name]!r}")
    for name, types in _SCALAR_TYPES.items():
        value = values[name]
        if type(value) not in types or (type(value) is int and abs(value) > 2**53):
            raise ValueError(f"{name} is {values[name]!r}")
    penalty = values["penalty"]
    if penalty is not None and not (
        isinstance(penalty, dict)
        and set(penalty) <= _PENALTIES
        and all(value is None or isinstance(value, float) for value in penalty.values())
    ):
        raise ValueError(f"penalty is {penalty!r}")
    for name, kinds in _NUMBER_KINDS.items():
        value = values[name]
        if np.asarray(value).dtype.kind not in kinds and not (value is None and name == "log_z"):
            raise ValueError(f"{name} is {value!r}")
    matrices = [values["weights"], *(values["_parts"] or ())]
    arrays = [values["intercept"], values["class_prior"], *(matrix.data for matrix in matrices)]
    if any(getattr(array, "dtype", None) != np.float64 for array in arrays):
        raise ValueError("weights, intercept and class_prior must be of the type float64")
    if not all(np.isfinite(matrix.data).all() for matrix in matrices) or np.isnan(values["intercept"]).any():
        raise ValueError("a weight or an intercept is not a number")


def _shuffle(array):
    """Reorder the bytes of an array by significance."""
    return array.view(np.uint8).reshape(len(array), array.itemsize).T.tobytes()


def _read_arrays(content, table, max_bytes):
    """Read the arrays listed in a table of (name, dtype, length), which make up the whole content."""
    table = [(name, np.dtype(dtype), length) for name, dtype, length in table]
    for name, dtype, length in table:
        if dtype.kind not in "biuf" or not isinstance(length, int) or length < 0:
            raise ValueError(f"{name} has the impossible type {dtype}")
    size = sum(dtype.itemsize * length for _, dtype, length in table)
    if size > max_bytes:
        raise _TooLarge(size)
    arrays = {}
    for name, dtype, length in table:
        octets = np.frombuffer(content.read(length * dtype.itemsize), np.uint8).reshape(dtype.itemsize, length)
        arrays[name] = np.ascontiguousarray(octets.T).view(dtype).ravel().astype(dtype.newbyteorder("="))
    content.check_end()
    return arrays


def _encode_sparse(name, matrix):
    """Return row sizes, values, and the differences of the sorted column numbers of each row."""
    matrix = matrix.sorted_indices()
    steps = np.diff(matrix.indices, prepend=0)
    starts = matrix.indptr[:-1][np.diff(matrix.indptr) > 0]
    steps[starts] = matrix.indices[starts]
    sizes = np.diff(matrix.indptr).astype(np.uint32)
    return {f"{name}.sizes": sizes, f"{name}.columns": steps.astype(np.uint32), f"{name}.values": matrix.data}


def _decode_sparse(name, arrays, shape):
    sizes, steps, values = (arrays.pop(f"{name}.{what}") for what in ("sizes", "columns", "values"))
    indptr = np.concatenate([[0], np.cumsum(sizes, dtype=np.int64)])
    if indptr[-1] != len(steps) or len(sizes) != shape[0]:
        raise ValueError(f"{name} has rows of the wrong size")
    # Within a row: the cumulative sum minus its value before the row.
    total = np.concatenate([[0], np.cumsum(steps, dtype=np.int64)])
    columns = total[1:] - np.repeat(total[indptr[:-1]], sizes)
    matrix = sparse.csr_array((values, columns.astype(np.int32), indptr.astype(np.int32)), shape=shape)
    check_sparse(matrix)
    return matrix


def _encode_labels(name, classes):
    """Return the type of class labels or feature names, and the arrays that store them."""
    if classes.dtype.kind in "biuf" and classes.itemsize <= 8:
        return "number", {name: classes}
    kind = {"U": "text", "T": "string", "O": "object"}.get(classes.dtype.kind)
    labels = classes.tolist()
    if kind is None or not all(isinstance(label, str) for label in labels):
        raise ValueError(
            f"class labels of type {classes.dtype} cannot be saved: they must be text, integers, floats or booleans"
        )
    labels = [label.encode("utf-8", "surrogatepass") for label in labels]
    sizes = np.array([len(label) for label in labels], np.uint32)
    return kind, {f"{name}.sizes": sizes, f"{name}.text": np.frombuffer(b"".join(labels), np.uint8)}


def _decode_labels(name, kind, arrays, max_bytes):
    if kind == "number":
        return arrays.pop(name)
    sizes, text = arrays.pop(f"{name}.sizes"), arrays.pop(f"{name}.text").tobytes()
    ends = np.cumsum(sizes, dtype=np.int64)
    if (ends[-1] if len(ends) else 0) != len(text):
        raise ValueError(f"{name} has the wrong length")
    if kind == "text" and len(sizes):  # numpy stores every label with the size of the longest one
        room = 4 * len(sizes) * int(sizes.max())
        if room > max_bytes:
            raise _TooLarge(room)
    labels = [
        text[end - size : end].decode("utf-8", "surrogatepass")
        for end, size in zip(ends.tolist(), sizes.tolist(), strict=True)
    ]
    dtypes: dict[str, Callable[[], Any]] = {
        "text": lambda: str,
        "object": lambda: object,
        "string": np.dtypes.StringDType,
    }
    return np.array(labels, dtype=dtypes[kind]())
