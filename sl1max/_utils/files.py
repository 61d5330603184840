"""Atomic replacement of files, synchronised with the disk."""

from __future__ import annotations

import contextlib
import errno
import os
import re
import secrets
import shutil
import stat
from collections.abc import Iterator
from typing import IO, Any, BinaryIO

try:
    import fcntl
except ImportError:  # Windows
    fcntl = None  # type: ignore[assignment]  # that there is no such module

MAX_NAME_BYTES = 200  # of the target's name within the name of a temporary file; file systems allow 255 bytes in all


@contextlib.contextmanager
def atomic_write(path: str | os.PathLike[str]) -> Iterator[BinaryIO]:
    """Write a file atomically: after an error or a crash, ``path`` still has its previous content.

    The content goes to a temporary file in the same folder, which is synchronised with the disk and renamed when the
    context ends without an error. A process that is killed leaves its temporary file; the next write to the same
    path removes it.

    Parameters
    ----------
    path : str or path-like
        A regular file, replaced if it exists; its mode is kept. A symbolic link is followed.

    Yields
    ------
    binary stream

    Raises
    ------
    OSError
        The file cannot be written; the error names ``path``.

    Examples
    --------
    >>> import os, tempfile
    >>> from sl1max._utils.files import atomic_write
    >>> path = os.path.join(tempfile.mkdtemp(), "numbers.txt")
    >>> with atomic_write(path) as stream:
    ...     _ = stream.write(b"1 2 3")
    >>> open(path).read()
    '1 2 3'
    """
    target = os.path.realpath(path)
    check_writable(target)
    folder, name = os.path.split(target)
    _remove_abandoned(folder, name)
    part = None
    try:
        stream, part = _open_temporary(folder, name)
        with stream:
            yield stream
            stream.flush()
            sync(stream)
            if os.path.exists(target):
                shutil.copymode(target, part)
            if fcntl is not None:
                os.replace(part, target)  # while the lock is held
        if fcntl is None:
            os.replace(part, target)  # Windows renames closed files only
        sync_folder(folder)
    except BaseException as error:
        if part is not None:
            with contextlib.suppress(OSError):
                os.unlink(part)
        if isinstance(error, OSError) and error.errno is not None and error.filename in (None, part):
            raise _named(error, target) from error
        raise


def check_writable(path: str | os.PathLike[str]) -> None:
    """Raise the OSError that `atomic_write` would raise, if it can be known beforehand."""
    path = os.path.realpath(path)
    folder = os.path.dirname(path)
    if not os.path.isdir(folder):
        raise FileNotFoundError(f"{path}: there is no folder {folder}")
    if os.path.isdir(path):
        raise IsADirectoryError(f"{path}: this is a folder")
    if os.path.exists(path) and not stat.S_ISREG(os.stat(path).st_mode):
        raise OSError(f"{path}: this is not a regular file")
    if not os.access(folder, os.W_OK | os.X_OK):
        raise PermissionError(f"{path}: no permission to write in {folder}")


def open_to_read(path: str | os.PathLike[str]) -> BinaryIO:
    """A binary stream of a file or a pipe; OSError for devices such as /dev/zero, which have no end."""
    stream = open(path, "rb")
    if stat.S_ISCHR(os.fstat(stream.fileno()).st_mode) and not stream.isatty():
        stream.close()
        raise OSError(f"{os.fspath(path)}: this is a device")
    return stream


def sync(stream: IO[Any]) -> None:
    """Flush an open file to the disk."""
    if hasattr(fcntl, "F_FULLFSYNC"):  # macOS: fsync leaves the data in the cache of the disk
        with contextlib.suppress(OSError):  # file systems without it
            fcntl.fcntl(stream.fileno(), fcntl.F_FULLFSYNC)
            return
    os.fsync(stream.fileno())


def sync_folder(folder: str | os.PathLike[str]) -> None:
    """Flush a folder to the disk, if the system can open folders."""
    if os.name != "posix":
        return
    handle = os.open(folder, os.O_RDONLY)
    try:
        os.fsync(handle)
    except OSError as error:
        if error.errno != errno.EINVAL:  # a file system that cannot synchronise folders
            raise
    finally:
        os.close(handle)


def lock_file(stream: IO[Any]) -> bool:
    """Lock an open file until it is closed; False if another stream holds the lock.

    True, without a lock, where the system or the file system has no locks.
    """
    if fcntl is None:
        return True
    try:
        fcntl.flock(stream, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    except OSError:
        pass
    return True


def _open_temporary(folder: str, name: str) -> tuple[BinaryIO, str]:
    """A new temporary file, locked, and its path."""
    while True:
        part = os.path.join(folder, f"{_prefix(name)}{secrets.token_hex(6)}.part")
        try:
            stream = open(part, "xb")
        except OSError as error:
            raise _named(error, os.path.join(folder, name)) from error
        # Between these two calls another process may consider it abandoned.
        if lock_file(stream) and os.path.exists(part):
            return stream, part
        stream.close()


def _prefix(name: str) -> str:
    """Prefix of the names of the temporary files of a target."""
    while len(os.fsencode(name)) > MAX_NAME_BYTES:
        name = name[:-1]
    return f".{name}."


def _remove_abandoned(folder: str, name: str) -> None:
    """Remove the temporary files of killed processes: those that are not locked, or on Windows not open."""
    pattern = re.compile(re.escape(_prefix(name)) + r"[0-9a-f]{12}\.part")
    with contextlib.suppress(OSError):
        for found in os.listdir(folder):
            if pattern.fullmatch(found):
                with contextlib.suppress(OSError):
                    _remove_unlocked(os.path.join(folder, found))


def _remove_unlocked(path: str) -> None:
    if fcntl is None:
        os.unlink(path)
        return
    with open(path, "rb") as stream:
        fcntl.flock(stream, fcntl.LOCK_EX | fcntl.LOCK_NB)
        os.unlink(path)


def _named(error: OSError, path: str) -> OSError:
    """The same error with the name of the file that was to be written, not that of the temporary file."""
    return OSError(error.errno, error.strerror, path)
