"""A full disk: a small tmpfs in a mount namespace of its own, which takes root.

Properties: what cannot be written is an OSError that says so, the file that was there stays, and no temporary file
does. A fit whose checkpoint cannot be written warns and ends with the same model.
"""

from __future__ import annotations

import contextlib
import ctypes
import errno
import os
import sys

import sl1max
from fuzz.campaign import Campaign, check, check_equal_models, check_message, empty, strict_warnings
from fuzz.commands import call
from fuzz.signals import check_folder, make_fit, make_writers
from sl1max.svmlight import write_svmlight

SIZE = 1 << 20
PAGE = 4096
CLONE_NEWNS, MS_REC, MS_PRIVATE = 0x20000, 0x4000, 1 << 18
MNT_DETACH = 2


def call_libc(name, *args):
    if getattr(ctypes.CDLL(None, use_errno=True), name)(*args) != 0:
        number = ctypes.get_errno()
        raise OSError(number, f"{name}: {os.strerror(number)}")


def mount_small_disk(folder):
    """Mount a tmpfs on a folder, for this process alone."""
    call_libc("unshare", CLONE_NEWNS)
    call_libc("mount", b"none", b"/", None, ctypes.c_ulong(MS_REC | MS_PRIVATE), None)
    call_libc("mount", b"none", os.fsencode(folder), b"tmpfs", ctypes.c_ulong(0), f"size={SIZE}".encode())


def unmount(folder):
    if os.path.ismount(folder / "disk"):
        call_libc("umount2", os.fsencode(folder / "disk"), MNT_DETACH)


def obstacle():
    """Why this process cannot mount a disk of its own."""
    if not sys.platform.startswith("linux"):
        return "needs the mount namespaces of Linux"
    child = os.fork()
    if child == 0:
        try:
            mount_small_disk("/tmp")
        except BaseException as error:
            os._exit(getattr(error, "errno", None) or 1)
        os._exit(0)
    _, status = os.waitpid(child, 0)
    code = os.waitstatus_to_exitcode(status)
    return None if code == 0 else f"cannot mount a tmpfs: {os.strerror(code)}"


def fill(folder, room):
    """Leave so many bytes, in whole pages."""
    state = os.statvfs(folder)
    size = max(state.f_bavail * state.f_frsize - room, 0)
    with open(folder / "filler", "wb") as stream, contextlib.suppress(OSError):
        stream.write(bytes(size // PAGE * PAGE))


def write_full(rng, writers, folder):
    """A file is replaced, or the error says that there is no room and the old one stays."""
    name, write, is_whole = writers[rng.integers(len(writers))]
    path = folder / name
    if existed := rng.random() < 0.7:
        write(path, 0)
    fill(folder, int(rng.integers(0, 30)) * PAGE)
    try:
        write(path, 1)
    except OSError as error:
        check(error.errno == errno.ENOSPC, f"{name}: {error!r}")
        check_message(error)
        check(name in str(error), f"{name}: the message does not name the file: {error}")
        outcome = f"{name}: no room"
    else:
        outcome = f"{name}: written"
        check(path.exists(), f"{name}: not there")
    check(path.exists() or not existed, f"{name}: the file is gone")
    if path.exists():
        check(is_whole(path), f"{name}: neither the old file nor the new one")
    check_folder(folder, [name, "filler"])
    os.unlink(folder / "filler")
    write(path, 1)
    check(is_whole(path), f"{name}: not whole with room again")
    return outcome


def fit_full(rng, base, folder):
    """A checkpoint without room for all classes; the next fit has it."""
    X, y, options, model = base
    path = folder / "fit.checkpoint"
    fill(folder, int(rng.integers(0, 8)) * PAGE)
    with strict_warnings() as seen:
        try:
            check_equal_models(sl1max.fit(X, y, checkpoint=path, **options), model, "with a full disk")
        except OSError as error:
            check(error.errno == errno.ENOSPC, repr(error))
            check_message(error)
            check_folder(folder, ["filler"])
            return "checkpoint: no room at the start"
    warned = [str(warning.message) for warning in seen]
    check(len(warned) <= 1, f"{len(warned)} warnings")
    check(all("checkpoint cannot be written" in text for text in warned), str(warned))
    os.unlink(folder / "filler")
    check_equal_models(sl1max.fit(X, y, checkpoint=path, **options), model, "with room again")
    return "checkpoint: no room later" if warned else "checkpoint: written"


def command_full(rng, data, folder):
    """The command line says in one line what is wrong."""
    model = folder / "model.sl1max"
    check(call(["train", str(model), str(data), "--quiet"])[0] == 0, "train failed on an empty disk")
    before = model.read_bytes()
    fill(folder, int(rng.integers(0, 3)) * PAGE)
    arguments = [
        ["train", str(model), str(data), "--quiet", "--beta", "0.2"],
        ["train", str(model), str(data), "--quiet", "--checkpoint", str(folder / "fit.checkpoint")],
        ["predict", str(model), str(data), "--proba", "--output", str(folder / "labels.txt")],
    ][rng.integers(3)]
    code, _, err = call(arguments)
    check(code in (0, 2), f"{arguments}: exit code {code}: {err}")
    if code == 2:
        check(model.read_bytes() == before, "the model has changed")
        check(err.count(": error: ") == 1 and "No space left" in err and "-> None" not in err, f"stderr is {err!r}")
    else:
        sl1max.load(model)
    check_folder(folder, ["model.sl1max", "filler", "fit.checkpoint", "labels.txt"])
    return f"{arguments[0]}: {code}"


def set_up(folder):
    data = folder / "train.svm"
    disk = folder / "disk"
    disk.mkdir()
    X, y, _ = make_fit(1)
    write_svmlight(X, y, data)
    writers = make_writers(folder / "disk")
    bases = []
    for seed in range(1, 6):
        X, y, options = make_fit(seed)
        bases.append((X, y, options, sl1max.fit(X, y, **options)))
    mount_small_disk(disk)

    def run(rng):
        empty(disk)
        match rng.integers(4):
            case 0 | 1:
                return write_full(rng, writers, disk)
            case 2:
                return fit_full(rng, bases[rng.integers(len(bases))], disk)
            case _:
                return command_full(rng, data, disk)

    return run


CAMPAIGN = Campaign(set_up, share=0.7, obstacle=obstacle, clean_up=unmount)
