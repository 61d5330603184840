"""What a campaign is, and the checks that several of them share."""

from __future__ import annotations

import contextlib
import os
import shutil
import warnings
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import numpy as np

ModelFields = (
    "class_prior",
    "dual_gap",
    "intercept",
    "log_z",
    "total_weight",
    "objective",
    "objective_zero",
    "converged",
)


class Finding(Exception):
    """A property does not hold."""


@dataclass(frozen=True)
class Campaign:
    """Cases of one kind.

    Attributes
    ----------
    set_up : callable
        Given an empty folder, returns the function that runs one case: it takes a `numpy.random.Generator`, returns
        what came of the case in a word or two, and raises on a finding.
    share : float
        Of the time, against that of the other campaigns.
    time_limit : float
        Seconds after which a case counts as hanging.
    obstacle : callable
        Why the campaign cannot run here, or None.
    clean_up : callable
        Given the folder, undoes what hinders its removal by the same process.
    """

    set_up: Callable[[Path], Callable[[np.random.Generator], str]]
    share: float = 1.0
    time_limit: float = 60.0
    obstacle: Callable[[], str | None] = lambda: None
    clean_up: Callable[[Path], None] = lambda folder: None


def check(condition, message):
    if not condition:
        raise Finding(message)


@contextlib.contextmanager
def strict_warnings():
    """A RuntimeWarning is an error; the list takes the other warnings."""
    with warnings.catch_warnings(record=True) as seen:
        warnings.simplefilter("always")
        warnings.simplefilter("error", RuntimeWarning)
        yield seen


def check_equal_models(left, right, what):
    """Bit for bit."""
    check(left.weights.shape == right.weights.shape, f"{what}: other shape")
    for name in ("indptr", "indices", "data"):
        same = np.array_equal(getattr(left.weights, name), getattr(right.weights, name))
        check(same, f"{what}: weights.{name} differs")
    check(np.array_equal(left.classes, right.classes), f"{what}: classes differ")
    for name in ModelFields:
        one, other = getattr(left, name), getattr(right, name)
        if one is None or other is None:
            check(one is other, f"{what}: {name} differs")
        else:
            check(np.array_equal(one, other, equal_nan=True), f"{what}: {name} differs ({one} and {other})")


def check_message(error):
    """An error says something, in one sentence without a traceback."""
    text = str(error).strip()
    check(text, f"{type(error).__name__} without a message")
    check("Traceback" not in text and not text.endswith("-> None"), f"{type(error).__name__}: {text!r}")


def empty(folder):
    """Remove all that is in a folder."""
    for entry in folder.iterdir():
        if entry.is_dir():
            shutil.rmtree(entry)
        else:
            entry.unlink()


def limit_memory(n_bytes):
    """Let this process take so many bytes of address space; not under a sanitizer, which takes terabytes."""
    if "asan" in os.environ.get("LD_PRELOAD", ""):
        return
    with contextlib.suppress(ImportError):
        import resource

        resource.setrlimit(resource.RLIMIT_AS, (n_bytes, resource.getrlimit(resource.RLIMIT_AS)[1]))
