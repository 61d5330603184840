"""Atomic writes: the old content or the new one, no temporary file that stays, errors that name the target."""

import errno
import os
import subprocess
import sys
import threading

import pytest

from sl1max._utils import files
from sl1max._utils.files import atomic_write

NEEDS_LOCKS = pytest.mark.skipif(files.fcntl is None, reason="this system has no flock")
KILLED = """
import os, sys
from sl1max._utils.files import atomic_write
with atomic_write(sys.argv[1]) as stream:
    stream.write(b"half")
    stream.flush()
    os._exit(9)
"""


def leave_temporary_file(path):
    """What a writer that is killed leaves."""
    done = subprocess.run([sys.executable, "-P", "-c", KILLED, path], check=False)
    assert done.returncode == 9
    (found,) = [name for name in os.listdir(path.parent) if name.endswith(".part")]
    return found


def write(path, content=b"new"):
    with atomic_write(path) as stream:
        stream.write(content)


def test_temporary_file_of_killed_writer_is_removed_by_next_write(tmp_path):
    path = tmp_path / "model"
    path.write_bytes(b"old")
    leave_temporary_file(path)
    assert path.read_bytes() == b"old"
    write(path)
    assert os.listdir(tmp_path) == ["model"] and path.read_bytes() == b"new"


def test_temporary_files_of_other_targets_are_kept(tmp_path):
    left = leave_temporary_file(tmp_path / "model.a")
    write(tmp_path / "model")
    write(tmp_path / "other")
    assert sorted(os.listdir(tmp_path)) == sorted(["model", "other", left])


@NEEDS_LOCKS
def test_temporary_file_of_another_writer_is_kept(tmp_path):
    path = tmp_path / "model"
    with atomic_write(path) as first:
        first.write(b"first")
        write(path, b"second")
        assert path.read_bytes() == b"second"
    assert path.read_bytes() == b"first"
    assert os.listdir(tmp_path) == ["model"]


def test_many_threads_write_the_same_path(tmp_path):
    path = tmp_path / "model"
    errors = []

    def run(content):
        try:
            for _ in range(20):
                write(path, content)
        except BaseException as error:
            errors.append(error)

    threads = [threading.Thread(target=run, args=(bytes([k]) * 5000,)) for k in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not errors
    assert os.listdir(tmp_path) == ["model"]
    content = path.read_bytes()
    assert len(content) == 5000 and len(set(content)) == 1


@pytest.mark.parametrize("name", ["fsync", "replace"])
def test_error_names_the_target_alone(tmp_path, monkeypatch, name):
    path = tmp_path / "model"

    def fail(*_):
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    monkeypatch.setattr(os, name, fail)
    with pytest.raises(OSError) as caught:
        write(path)
    assert caught.value.errno == errno.ENOSPC
    assert str(caught.value) == f"[Errno {errno.ENOSPC}] {os.strerror(errno.ENOSPC)}: {str(path)!r}"
    assert not os.listdir(tmp_path)


@pytest.mark.skipif(not os.path.exists("/dev/full"), reason="needs /dev/full")
def test_write_error_names_the_target_alone(tmp_path):
    path = tmp_path / "model"
    with pytest.raises(OSError) as caught, atomic_write(path) as stream:
        with open("/dev/full", "wb") as full:
            os.dup2(full.fileno(), stream.fileno())
        stream.write(bytes(1 << 20))
    assert caught.value.filename == str(path) and caught.value.filename2 is None
    assert "->" not in str(caught.value)
    assert not os.listdir(tmp_path)


def test_error_of_another_file_keeps_its_name(tmp_path):
    missing = tmp_path / "missing"
    with pytest.raises(FileNotFoundError) as caught, atomic_write(tmp_path / "model"):
        missing.read_bytes()
    assert caught.value.filename == str(missing)
    assert not os.listdir(tmp_path)


@pytest.mark.parametrize("letter", ["a", "é", "語"])
def test_longest_name(tmp_path, letter):
    """Names of 255 bytes, the most of common file systems."""
    path = tmp_path / (letter * (255 // len(letter.encode())))
    write(path)
    assert os.listdir(tmp_path) == [path.name]


def test_interrupt_leaves_no_file(tmp_path):
    with pytest.raises(KeyboardInterrupt), atomic_write(tmp_path / "model") as stream:
        stream.write(b"half")
        raise KeyboardInterrupt
    assert not os.listdir(tmp_path)
