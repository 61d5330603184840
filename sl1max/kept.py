"""A folder that keeps the measurements of `sl1max.reproduce`, and the fits that are not finished.

A measurement is a small JSON file; a fit has its checkpoint beside it until it is measured. Fits of one run, or of
several, one after another or at once, make one report as long as they are of the same data and settings.
"""

from __future__ import annotations

import json
import re
import shutil
import time
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from sl1max.exceptions import CheckpointError
from sl1max.persistence import replacing

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

    def load(self) -> dict | None:
        """The measurement, if there is one."""
        if not self.path.exists():
            return None
        try:
            kept = json.loads(self.path.read_text("utf-8"))
            there, measured = kept["about"], kept["measured"]
        except (ValueError, KeyError, TypeError) as error:
            raise CheckpointError(f"{self.path} is damaged: delete it") from error
        others = [name for name in self.about if there.get(name) != self.about[name]]
        if others:
            differences = ", ".join(f"{name} is {there.get(name)} there and {self.about[name]} here" for name in others)
            raise CheckpointError(f"{self.path}: of another run: {differences}. Name another folder")
        return measured

    def save(self, measured: dict) -> None:
        """Keep a measurement; what was left of the fit goes."""
        with replacing(self.path) as stream:
            stream.write(json.dumps({"about": self.about, "measured": measured}, indent=1).encode())
        self._clock.unlink(missing_ok=True)
        self.checkpoint.unlink(missing_ok=True)
        shutil.rmtree(self.parts, ignore_errors=True)

    @property
    def checkpoint(self) -> Path:
        """For `sl1max.fit`."""
        return self.path.with_suffix(".checkpoint")

    @property
    def parts(self) -> Path:
        """A folder for the models of some of the classes, where a learner has no checkpoint of its own."""
        return self.path.with_suffix(".parts")

    @property
    def _clock(self) -> Path:
        return self.path.with_suffix(".seconds")

    @contextmanager
    def timing(self):
        """A `Clock` that goes on from where it was when the fit was broken off."""
        clock = Clock(float(self._clock.read_text()) if self._clock.exists() else 0.0, self._clock)
        try:
            yield clock
        finally:
            clock.note()


class Clock:
    """Seconds of a fit, over all of its runs; written to a file now and then, unless there is none."""

    def __init__(self, before=0.0, path: Path | None = None):
        self._path = path
        self._start = time.perf_counter() - before
        self._noted = time.monotonic()

    @property
    def seconds(self) -> float:
        return time.perf_counter() - self._start

    def tick(self):
        """To be called often."""
        if self._path is not None and time.monotonic() > self._noted + SECONDS_BETWEEN_NOTES:
            self.note()

    def note(self):
        if self._path is not None:
            self._noted = time.monotonic()
            self._path.write_text(f"{self.seconds:.3f}")


def file_name(*words) -> str:
    """A name from words and numbers that any file system takes."""
    return "-".join(re.sub(r"[^A-Za-z0-9.]+", "", str(word)) for word in words)
