"""A folder that keeps the measurements of `sl1max.reproduction._reproduce`, and the fits that are not finished.

A measurement is a small JSON file. Until there is one, a fit has a file that says what it is of and how long it has
taken, and its checkpoint beside that. Fits of one run, or of several, one after another or at once, make one report as
long as they are of the same data and settings; others are refused.
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
    """What is kept of one fit.

    Attributes
    ----------
    path : Path
        Of the measurement, ``.json``.
    about : dict
        What it was measured on: data and settings.
    """

    path: Path
    about: dict
    _TYPES = {"measured": dict, "seconds": float}  # noqa: RUF012

    def load(self) -> dict | None:
        """The measurement, if there is one."""
        return self._read(self.path, "measured")

    def save(self, measured: dict) -> None:
        """Keep a measurement; what was left of the fit goes."""
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
        """A folder for the models of some of the classes, where a learner has no checkpoint of its own."""
        return self.path.with_suffix(".parts")

    @property
    def _begun(self) -> Path:
        return self.path.with_suffix(".begun")

    @contextlib.contextmanager
    def timing(self):
        """A `Clock` that goes on from where it was when the fit was broken off.

        What the fit is of is written down before anything that it leaves: a fit of other data does not go on from it.
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
        """What a file has under `name`, if it is there, and of this data and these settings."""
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
    """Seconds of a fit, over all of its runs; given to `note` now and then, unless it is None."""

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
        """A full disk is no reason to end the fit: the seconds since the last note are lost if it is broken off."""
        self._noted = time.monotonic()
        if self._note is not None:
            with contextlib.suppress(OSError):
                self._note(self.seconds)


def file_name(*words) -> str:
    """A name from words and numbers that any file system takes."""
    return "-".join(re.sub(r"[^A-Za-z0-9.]+", "", str(word)) for word in words)
