"""Exit codes, and errors in the user's input."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator

OK, BAD_INPUT, NOT_CONVERGED, INTERRUPTED = 0, 2, 3, 130
EXIT_CODES = """\
exit codes:
  0    done
  2    wrong usage, unreadable or unwritable file, impossible data; one line on stderr says which
  3    train: the model was saved, but its duality gap stayed above the target, or classes are missing;
       species: some species failed, or their gap stayed above the target, and the others were saved
  130  interrupted
"""


class InputError(Exception):
    """An error in the user's input, described in one line."""


@contextlib.contextmanager
def blamed_on(path: object) -> Iterator[None]:
    """Turn errors of the content of a file or stream into an `InputError` that names it."""
    try:
        yield
    except ValueError as error:
        text = str(error)
        raise InputError(text if text.startswith((str(path), "<st")) else f"{path}: {text}") from error


@contextlib.contextmanager
def as_input_errors() -> Iterator[None]:
    """Turn the ValueErrors of checks of outputs into `InputError`."""
    try:
        yield
    except ValueError as error:
        raise InputError(error) from error
