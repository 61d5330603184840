"""Storage for the results of `sl1max.reproduction._reproduce` and for unfinished fits.

A result is a small JSON file. An unfinished fit has a file with its settings and the time spent, and a checkpoint
beside it. Fits of one or several runs, also simultaneous ones, make one report if they have the same data and settings;
others are refused.
"""

from __future__ import annotations

import contextlib
import json
import re
import shutil
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from sl1max._utils.files import atomic_write
from sl1max.exceptions import CheckpointError

SECONDS_BETWEEN_NOTES = 60.0


@dataclass(frozen=True)
class Kept:
    """Stored files of one fit.

    Attributes
    ----------
    path : Path
        Of the measurement, ``.json``.
    about : dict
        Data and settings of the result.
    """

    path: Path
    about: dict
    _TYPES = {"measured": dict, "seconds": float}  # noqa: RUF012

    def load(self) -> dict | None:
        """Return the result, or None."""
        return self._read(self.path, "measured")

    def save(self, measured: dict) -> None:
        """Store a result and remove the files of the unfinished fit."""
        self._write(self.path, measured=measured)
        self.checkpoint.unlink(missing_ok=True)
        shutil.rmtree(self.parts, ignore_errors=True)
        self._begun.unlink(missing_ok=True)

    @property
    def checkpoint(self) -> Path:
        """For `sl1max.fit`."""
        return self.path.with_suffix(".checkpoint")

    @property
    def parts(self) -> Path:
        """Folder for the models of groups of classes, for learners without checkpoints."""
        return self.path.with_suffix(".parts")

    @property
    def _begun(self) -> Path:
        return self.path.with_suffix(".begun")

    @contextlib.contextmanager
    def timing(self):
        """Return a `Clock` that continues from the time of an interrupted fit.

        Data and settings are written first, so that a fit of other data does not continue from it.
        """
        clock = Clock(self._read(self._begun, "seconds") or 0.0, self._note)
        self._note(clock.seconds)
        try:
            yield clock
        finally:
            clock.note()

    def _note(self, seconds):
        self._write(self._begun, seconds=round(seconds, 3))

    def _write(self, path, **content):
        with atomic_write(path) as stream:
            stream.write(json.dumps({"about": self.about, **content}, indent=1).encode())

    def _read(self, path, name):
        """Read the entry `name` of a file, if it exists; check data and settings."""
        if not path.exists():
            return None
        try:
            kept = json.loads(path.read_text("utf-8"))
            there, content = dict(kept["about"]), self._TYPES[name](kept[name])
        except (ValueError, KeyError, TypeError, RecursionError) as error:
            raise CheckpointError(f"{path} is damaged: delete it") from error
        others = [name for name in self.about if there.get(name) != self.about[name]]
        if others:
            differences = ", ".join(f"{name} is {there.get(name)} there and {self.about[name]} here" for name in others)
            raise CheckpointError(f"{path}: of another run: {differences}. Name another folder")
        return content


class Clock:
    """Seconds of a fit, summed over its runs; passed to `note` from time to time, unless it is None."""

    def __init__(self, before=0.0, note: Callable[[float], None] | None = None):
        self._note = note
        self._start = time.perf_counter() - before
        self._noted = time.monotonic()

    @property
    def seconds(self) -> float:
        return time.perf_counter() - self._start

    def tick(self):
        """To be called often."""
        if time.monotonic() > self._noted + SECONDS_BETWEEN_NOTES:
            self.note()

    def note(self):
        """Ignore a full disk: only the seconds since the last note would be lost."""
        self._noted = time.monotonic()
        if self._note is not None:
            with contextlib.suppress(OSError):
                self._note(self.seconds)


def file_name(*words) -> str:
    """Make a file name that is valid on all file systems."""
    return "-".join(re.sub(r"[^A-Za-z0-9.]+", "", str(word)) for word in words)
