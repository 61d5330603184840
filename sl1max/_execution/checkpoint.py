"""Solutions on the disk while a fit goes on, for a second call to go on from.

A file is a head and records, which are added one by one and never changed::

    magic     8 bytes   \\x93SL1CKP\\n
    version   uint32    of the layout of the records
    size      uint32    of the text
    checksum  32 bytes  SHA-256 of the text
    text      JSON: a digest of every part of the training set and every setting that makes a difference

    size      uint32    of the body of a record
    checksum  uint32    CRC-32 of the body
    body      number of the problem, report, intercepts, weights

What a crash leaves of a last record is cut off. A problem may have several records: the last one counts. Records
of problems that have not come to their end hold the weights so far.
"""

from __future__ import annotations

import hashlib
import json
import os
import struct
import threading
import time
import warnings
import zlib

import numpy as np

from sl1max._data.inputs import Data, core_buffers
from sl1max._models.reduction import Solution
from sl1max._utils.files import atomic_write
from sl1max.exceptions import CheckpointError

try:
    import fcntl
except ImportError:  # Windows
    fcntl = None

MAGIC = b"\x93SL1CKP\n"
VERSION = 1
STATUSES = ("converged", "stalled", "running", "stopped", "interrupted")
SECONDS_BETWEEN_NOTES = 60.0  # records of one problem on its way
SECONDS_BETWEEN_SYNCS = 5.0
_HEAD = struct.Struct("<8sII32s")
_RECORD = struct.Struct("<II")
_REPORT = struct.Struct("<qBqddddII")  # number, status, n_iter, four figures, numbers of intercepts and rows
_ROW = struct.Struct("<qBq")  # class, side, number of weights


# What a checkpoint belongs to


def fingerprint(data: Data, warm_start, **settings) -> dict[str, str]:
    """A short text for each part of the training set and each setting; equal if these are."""
    offset = () if data.offset is None else data.offset.T[: 1 if data.offset.strides[1] == 0 else None]
    parts = {
        "X": digest(*core_buffers(data.matrix, data.binary)),
        "y": digest(*_plain(data.labels), *data.classes.tolist()),
        "sample_weight": digest(data.mass),
        "offset": digest(*offset),
        "warm_start": digest() if warm_start is None else digest(*_plain(warm_start.weights), warm_start.intercept),
        "classes": "exclusive" if data.exclusive else "independent",
    }
    for name, value in settings.items():
        parts[name] = digest(value) if isinstance(value, np.ndarray) and value.ndim else str(value)
    return parts


def _plain(matrix):
    """The arrays of a sparse matrix, its integers of one width."""
    return matrix.indptr.astype(np.int64), matrix.indices.astype(np.int64), matrix.data


def digest(*parts) -> str:
    """A digest of arrays, by type and values, and of other things, by their text."""
    state = hashlib.blake2b(digest_size=16)
    for part in parts:
        if isinstance(part, np.ndarray):
            state.update(f"array {part.dtype.str} {part.shape} ".encode())
            state.update(np.ascontiguousarray(part).reshape(-1).view(np.uint8).data)
        else:
            state.update(f"value {part!r} ".encode())
    return state.hexdigest()


# The file


class Journal:
    """A checkpoint that is open for reading and for more records.

    Parameters
    ----------
    path : str or path-like
        Made if it does not exist.
    belongs_to : dict of str
        From `fingerprint`.

    Raises
    ------
    CheckpointError
        The file is no checkpoint, or one of another training set or other settings, or another fit uses it.
    OSError
        The file cannot be made, read or written.
    """

    def __init__(self, path, belongs_to):
        self.path = os.fspath(path)
        self._lock = threading.Lock()
        self._waiting = []  # records that the disk has not taken
        self._warned = False
        self._synced = time.monotonic()
        if not os.path.exists(self.path):
            with atomic_write(self.path) as stream:
                stream.write(_pack_head(belongs_to))
        self._file = open(self.path, "r+b", buffering=0)
        try:
            self._reserve()
            self._found, self._size = _read(self._file.read(), belongs_to, self.path)
            self._file.truncate(self._size)
        except BaseException:
            self._file.close()
            raise

    def _reserve(self):
        """One fit at a time."""
        if fcntl is None:
            return
        try:
            fcntl.flock(self._file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError as error:
            raise CheckpointError(f"{self.path}: another fit is using this checkpoint") from error

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.close()

    def solutions(self, plans) -> dict[int, Solution]:
        """The last record of every problem."""
        return {k: _decode(body, plans[k]) for k, body in self._found.items() if k < len(plans)}

    def add(self, k, solution):
        """Write a record; if the disk does not take it, it waits for the next one."""
        body = _encode(k, solution)
        with self._lock:
            self._waiting.append(_RECORD.pack(len(body), zlib.crc32(body)) + body)
            self._write()

    def note_taker(self, k):
        """A function that writes a record of a problem on its way, unless it has just done so."""
        last = time.monotonic()

        def note(make_solution):
            nonlocal last
            now = time.monotonic()
            if now >= last + SECONDS_BETWEEN_NOTES:
                last = now
                self.add(k, make_solution())

        return note

    def _write(self):
        try:
            while self._waiting:
                self._append(self._waiting[0])
                del self._waiting[0]
            if time.monotonic() > self._synced + SECONDS_BETWEEN_SYNCS:
                self._sync()
        except OSError as error:
            if not self._warned:
                self._warned = True
                warnings.warn(
                    f"{self.path}: the checkpoint cannot be written ({error.strerror or error}); the fit goes on, and "
                    "tries again after each class",
                    UserWarning,
                    stacklevel=2,
                )

    def _append(self, record):
        """All of a record or, after an error, nothing of it."""
        self._file.seek(self._size)
        try:
            written = 0
            while written < len(record):
                written += write_some(self._file, record[written:])
        except OSError:
            self._file.truncate(self._size)
            raise
        self._size += len(record)

    def _sync(self):
        os.fsync(self._file.fileno())
        self._synced = time.monotonic()

    @property
    def n_waiting(self) -> int:
        """Records that are not on the disk."""
        return len(self._waiting)

    def close(self):
        with self._lock:
            self._write()
            try:
                self._sync()
            except OSError:
                pass  # the warning has been given
            self._file.close()


def write_some(file, content) -> int:
    """Write the beginning of some bytes; how many."""
    return file.write(content)


def _pack_head(belongs_to):
    text = json.dumps(belongs_to).encode()
    return _HEAD.pack(MAGIC, VERSION, len(text), hashlib.sha256(text).digest()) + text


def _read(content, belongs_to, path):
    """Bodies of the records by number of the problem, and where the last whole one ends."""
    start = _check_head(content, belongs_to, path)
    found = {}
    while start + _RECORD.size <= len(content):
        size, checksum = _RECORD.unpack_from(content, start)
        body = content[start + _RECORD.size : start + _RECORD.size + size]
        if len(body) < size or zlib.crc32(body) != checksum:
            break
        found[_REPORT.unpack_from(body)[0]] = body
        start += _RECORD.size + size
    return found, start


def _check_head(content, belongs_to, path):
    """The size of the head, after making sure that it is the right one."""
    if len(content) < _HEAD.size or content[: len(MAGIC)] != MAGIC:
        raise CheckpointError(f"{path}: not a checkpoint of sl1max")
    _, version, size, checksum = _HEAD.unpack_from(content)
    text = content[_HEAD.size : _HEAD.size + size]
    if len(text) < size or hashlib.sha256(text).digest() != checksum:
        raise CheckpointError(f"{path}: damaged: the head of the checkpoint is not whole")
    if version != VERSION:
        raise CheckpointError(f"{path}: a checkpoint of format {version}, and this sl1max reads {VERSION}")
    made_for = json.loads(text)
    others = [name for name in belongs_to if made_for.get(name) != belongs_to[name]]
    if others:
        raise CheckpointError(
            f"{path}: the checkpoint is of another fit: {', '.join(_describe(made_for, belongs_to, others))}. Name "
            "another file, or delete this one to start anew"
        )
    return _HEAD.size + size


def _describe(made_for, belongs_to, others):
    """As in "X differs" or "beta is 0.5 there and 1.0 here"; digests say nothing to people."""
    for name in others:
        there, here = str(made_for.get(name)), belongs_to[name]
        hidden = name in ("X", "y", "sample_weight", "offset", "warm_start") or max(len(there), len(here)) > 24
        yield f"{name} differs" if hidden else f"{name} is {there} there and {here} here"


def _encode(k, solution: Solution):
    figures = solution.objective, solution.objective_zero, solution.dual_gap, solution.log_z
    status = STATUSES.index(solution.status)
    parts = [
        _REPORT.pack(k, status, solution.n_iter, *figures, len(solution.intercept), len(solution.rows)),
        np.asarray(solution.intercept, "<f8").tobytes(),
    ]
    for (c, side), cols, values in solution.rows:
        parts += [_ROW.pack(c, side, len(cols)), np.asarray(cols, "<i4").tobytes(), np.asarray(values, "<f8").tobytes()]
    return b"".join(parts)


def _decode(body, plan) -> Solution:
    _, status, n_iter, *figures, n_intercepts, n_rows = _REPORT.unpack_from(body)
    objective, objective_zero, dual_gap, log_z = figures
    start = _REPORT.size
    intercept = np.frombuffer(body, "<f8", n_intercepts, start).astype(np.float64)
    start += intercept.nbytes
    rows = []
    for _ in range(n_rows):
        c, side, size = _ROW.unpack_from(body, start)
        start += _ROW.size
        cols = np.frombuffer(body, "<i4", size, start).astype(np.int32)
        start += cols.nbytes
        values = np.frombuffer(body, "<f8", size, start).astype(np.float64)
        start += values.nbytes
        rows.append(((c, side), cols, values))
    return Solution(plan, rows, intercept, log_z, objective, objective_zero, dual_gap, n_iter, STATUSES[status])
