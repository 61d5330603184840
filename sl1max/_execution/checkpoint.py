"""Checkpoints: solutions are written to a file during a fit, and a second call continues from them.

A file is a head and records, which are appended and never changed::

    magic     8 bytes   \\x93SL1CKP\\n
    version   uint32    of the layout of the records
    size      uint32    of the text
    checksum  32 bytes  SHA-256 of the text
    text      JSON: a digest of every part of the training set and every relevant setting

    marker    8 bytes   \\x93SL1REC\\n
    size      uint64    of the body of a record
    checksum  16 bytes  BLAKE2b of size and body; its key is the checksum of the head
    body      number of the problem, report, intercepts, weights

The last record of a problem counts. Records of unfinished problems hold the weights so far. An incomplete record at
the end, which a crash leaves, is cut off. After a damaged record in the middle, reading continues at the next marker.
All numbers are validated on load, and `Reduction.check` certifies the weights on the training set.

A record is written when its problem is finished. It is synchronised with the disk at once or, where that takes long,
between the iterations that follow: synchronising takes a twentieth of the time at most.
"""

from __future__ import annotations

import hashlib
import json
import math
import os
import struct
import threading
import time
import warnings

import numpy as np

from sl1max._data.inputs import Data, core_buffers
from sl1max._models.reduction import Solution
from sl1max._utils.files import atomic_write, check_writable, lock_file, sync
from sl1max.exceptions import CheckpointError

MAGIC = b"\x93SL1CKP\n"
MARKER = b"\x93SL1REC\n"
VERSION = 2  # 1: of sl1max 0.1.0, records without markers
STATUSES = ("converged", "stalled", "running", "stopped", "interrupted", "time_limit")
SECONDS_BETWEEN_NOTES = 60.0  # seconds between two records of an unfinished problem
SYNC_SHARE = 0.05  # largest share of the time spent on synchronising with the disk
MAX_DAMAGED = 100  # places; a file with more is refused
MAX_TEXT_BYTES = 1 << 20
CHUNK_BYTES = 1 << 20  # searched for a marker at once
_HEAD = struct.Struct("<8sII32s")
_RECORD = struct.Struct("<8sQ16s")
_SIZE = struct.Struct("<Q")
_REPORT = struct.Struct("<qBqddddII")  # number, status, n_iter, four figures, numbers of intercepts and rows
_ROW = struct.Struct("<qBq")  # class, side, number of weights


# Identification of a fit


def fingerprint(data: Data, warm_start, **settings) -> dict[str, str]:
    """Return a short text for each part of the training set and each setting."""
    offset = () if data.offset is None else data.offset.T[: 1 if data.offset.strides[1] == 0 else None]
    parts = {
        "X": digest(*core_buffers(data.matrix, data.binary)),
        "y": digest(*_plain(data.labels), *data.classes.tolist()),
        "sample_weight": digest(data.mass),
        "offset": digest(*offset),
        "warm_start": digest() if warm_start is None else digest(*_plain(warm_start.weights), warm_start.intercept),
        "label_mode": "exclusive" if data.exclusive else "independent",
    }
    for name, value in settings.items():
        parts[name] = digest(value) if isinstance(value, np.ndarray) and value.ndim else str(value)
    return parts


def _plain(matrix):
    """Return the arrays of a sparse matrix, with integers of one width."""
    return matrix.indptr.astype(np.int64), matrix.indices.astype(np.int64), matrix.data


def digest(*parts) -> str:
    """Return a digest of arrays, by type and values, and of other objects, by their text."""
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
    """An open checkpoint, for reading and for further records.

    Parameters
    ----------
    path : str or path-like
        Created if it does not exist.
    belongs_to : dict of str
        From `fingerprint`.

    Raises
    ------
    CheckpointError
        The file is not a checkpoint, belongs to another training set or other settings, or is used by another fit.
    OSError
        The file cannot be created, read or written.
    """

    def __init__(self, path, belongs_to):
        self.path = os.fspath(path)
        self._lock = threading.Lock()
        self._waiting = []  # records that are not written yet
        self._recent = []  # records written since the last synchronisation
        self._warned = False
        self._synced = time.monotonic()
        self._sync_seconds = 0.0  # seconds of the last synchronisation
        check_writable(self.path)
        if not os.path.exists(self.path):
            with atomic_write(self.path) as stream:
                stream.write(_pack_head(belongs_to))
        self._file = open(self.path, "r+b", buffering=0)
        try:
            if not lock_file(self._file):
                raise CheckpointError(f"{self.path}: another fit is using this checkpoint")
            self._key, self._found, self._size, self._n_damaged = _read(self._file, belongs_to, self.path)
            self._file.truncate(self._size)
        except BaseException:
            self._file.close()
            raise
        self._synced_size = self._size

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.close()

    def solutions(self, plans, n_features) -> dict[int, Solution]:
        """Return the last record of every problem; warn of records that are damaged or have invalid numbers."""
        found, n_damaged = {}, self._n_damaged
        for body in self._found:
            try:
                k, solution = _decode(body, plans, n_features)
            except (ValueError, struct.error):
                n_damaged += 1
            else:
                found[k] = solution
        if n_damaged:
            records = "1 record is" if n_damaged == 1 else f"{n_damaged} records are"
            text = f"{self.path}: {records} damaged; what they held is trained again"
            warnings.warn(text, UserWarning, stacklevel=2)
        return found

    def add(self, k, solution):
        """Write a record; if this fails, it is kept and written with the next one."""
        record = _pack_record(_encode(k, solution), self._key)
        with self._lock:
            self._waiting.append(record)
            self._write()

    def note_taker(self, k):
        """Return a function that writes a record of an unfinished problem, at most once in a given time."""
        last = time.monotonic()

        def note(make_solution):
            nonlocal last
            now = time.monotonic()
            if now >= last + SECONDS_BETWEEN_NOTES:
                last = now
                self.add(k, make_solution())
            elif self._recent:
                with self._lock:
                    self._write()

        return note

    def _write(self, final=False):
        """Write the pending records; synchronise if that is due, or ``final``."""
        try:
            while self._waiting:
                self._append(self._waiting[0])
                self._recent.append(self._waiting.pop(0))
            if self._recent and (final or time.monotonic() >= self._synced + self._sync_seconds / SYNC_SHARE):
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
        """Append a complete record or, after an error, nothing."""
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
        """Synchronise with the disk; after an error the recent records are pending again."""
        start = time.monotonic()
        try:
            sync(self._file)
        except OSError:
            self._waiting[:0] = self._recent
            self._recent.clear()
            self._size = self._synced_size
            self._file.truncate(self._size)
            raise
        self._recent.clear()
        self._synced_size = self._size
        self._synced = time.monotonic()
        self._sync_seconds = self._synced - start

    @property
    def n_waiting(self) -> int:
        """Number of records that are not on the disk."""
        return len(self._waiting)

    def close(self):
        with self._lock:
            self._write(final=True)
            self._file.close()


def write_some(file, content) -> int:
    """Write the first of some bytes; return how many."""
    return file.write(content)


def _pack_head(belongs_to):
    text = json.dumps(belongs_to).encode()
    return _HEAD.pack(MAGIC, VERSION, len(text), hashlib.sha256(text).digest()) + text


def _pack_record(body, key):
    return _RECORD.pack(MARKER, len(body), _checksum(body, key)) + body


def _checksum(body, key):
    state = hashlib.blake2b(_SIZE.pack(len(body)), digest_size=16, key=key)
    state.update(body)
    return state.digest()


# Reading


def _read(file, belongs_to, path):
    """Read the records: key of the checksums, last body of every problem, end of the last record, damaged places."""
    end = os.fstat(file.fileno()).st_size
    with open(file.fileno(), "rb", buffering=CHUNK_BYTES, closefd=False) as stream:
        key, start = _read_head(stream, end, belongs_to, path)
        found, n_damaged, n_places, position = {}, 0, 0, start
        while position < end:
            body = _read_record(stream, position, end, key)
            if body is None:
                n_places += 1
                if n_places > MAX_DAMAGED:
                    raise CheckpointError(f"{path}: damaged in more than {MAX_DAMAGED} places: delete it")
                position = _find_marker(stream, position + 1, end)
                continue
            n_damaged = n_places  # the rest is an incomplete record
            found[_REPORT.unpack_from(body)[0]] = body
            position = start = position + _RECORD.size + len(body)
    return key, list(found.values()), start, n_damaged


def _read_head(stream, end, belongs_to, path):
    """Read the key of the checksums and the size of the head; CheckpointError if it belongs to another fit."""
    head = stream.read(_HEAD.size)
    if len(head) < _HEAD.size or not head.startswith(MAGIC):
        raise CheckpointError(f"{path}: not a checkpoint of sl1max")
    _, version, size, checksum = _HEAD.unpack(head)
    if version != VERSION:
        raise CheckpointError(
            f"{path}: a checkpoint of format {version}, and this sl1max reads {VERSION}. Name another file, or delete "
            "this one to start anew"
        )
    text = stream.read(size) if size <= min(MAX_TEXT_BYTES, end) else b""
    if len(text) < size or hashlib.sha256(text).digest() != checksum:
        raise CheckpointError(f"{path}: damaged: the head of the checkpoint is not whole")
    try:
        made_for = json.loads(text)
    except (ValueError, RecursionError):
        made_for = None
    if not isinstance(made_for, dict):
        raise CheckpointError(f"{path}: damaged: the head of the checkpoint describes no fit")
    if made_for.get("solver") == "auto":  # of version 0.1.0
        made_for["solver"] = "newton"
    others = [name for name in belongs_to if made_for.get(name) != belongs_to[name]]
    if others:
        raise CheckpointError(
            f"{path}: the checkpoint is of another fit: {', '.join(_describe(made_for, belongs_to, others))}. Name "
            "another file, or delete this one to start anew"
        )
    return checksum, _HEAD.size + size


def _read_record(stream, position, end, key):
    """Read the body of the record at a position; None if it is damaged or incomplete."""
    stream.seek(position)
    head = stream.read(_RECORD.size)
    if len(head) < _RECORD.size:
        return None
    marker, size, checksum = _RECORD.unpack(head)
    if marker != MARKER or not _REPORT.size <= size <= end - position - _RECORD.size:
        return None
    body = stream.read(size)
    return body if len(body) == size and _checksum(body, key) == checksum else None


def _find_marker(stream, position, end):
    """Find the start of the next marker; the end if there is none."""
    while position < end:
        stream.seek(position)
        chunk = stream.read(CHUNK_BYTES)
        found = chunk.find(MARKER)
        if found >= 0:
            return position + found
        position += max(len(chunk) - len(MARKER) + 1, 1)
    return end


def _describe(made_for, belongs_to, others):
    """Describe a difference, e.g. "X differs" or "beta is 0.5 there and 1.0 here"; digests are not shown."""
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


def _decode(body, plans, n_features) -> tuple[int, Solution]:
    """Decode the number of a problem and its solution; ValueError or struct.error if it is invalid."""
    k, status, n_iter, *figures, n_intercepts, n_rows = _REPORT.unpack_from(body)
    _require(0 <= k < len(plans) and status < len(STATUSES) and n_iter >= 0)
    plan = plans[k]
    objective, objective_zero, dual_gap, log_z = figures
    _require(math.isfinite(objective) and math.isfinite(objective_zero) and not math.isnan(dual_gap))
    _require(math.isfinite(log_z) if plan.pooled else math.isnan(log_z))
    blocks = plan.blocks if plan.rival is None else (*plan.blocks, plan.rival)
    _require(n_intercepts == len(plan.blocks) and n_rows == len(blocks))
    intercept, start = _take(body, "<f8", n_intercepts, _REPORT.size)
    _require(np.isfinite(intercept).all())
    rows = []
    for block in blocks:
        *found, size = _ROW.unpack_from(body, start)
        _require(tuple(found) == block and 0 <= size <= n_features)
        cols, start = _take(body, "<i4", size, start + _ROW.size)
        values, start = _take(body, "<f8", size, start)
        _require(size == 0 or (cols[0] >= 0 and cols[-1] < n_features and (cols[1:] > cols[:-1]).all()))
        _require(np.isfinite(values).all())
        rows.append((block, cols, values))
    _require(start == len(body))
    return k, Solution(plan, rows, intercept, log_z, objective, objective_zero, dual_gap, n_iter, STATUSES[status])


def _require(condition):
    if not condition:
        raise ValueError


def _take(body, dtype, size, start):
    """Return an array that is part of some bytes, and its end."""
    if size == 0:
        return np.empty(0, np.dtype(dtype).newbyteorder("=")), start
    array = np.frombuffer(body, dtype, size, start)
    return array.astype(array.dtype.newbyteorder("=")), start + array.nbytes
