"""Checks before a command writes a file: it is neither an input file nor a file of another kind."""

from __future__ import annotations

import json
import os
from collections.abc import Callable, Iterable

from sl1max._utils.files import check_writable
from sl1max.model._io import MAGIC

HEAD_BYTES = 1 << 16
FIGURES = {
    "png": (b"\x89PNG",), "pdf": (b"%PDF",), "svg": (b"<?xml", b"<svg"), "svgz": (b"\x1f\x8b",), "eps": (b"%!PS",),
    "ps": (b"%!PS",), "jpg": (b"\xff\xd8",), "jpeg": (b"\xff\xd8",), "webp": (b"RIFF",), "tif": (b"II", b"MM"),
    "tiff": (b"II", b"MM"), "gif": (b"GIF8",),
}  # fmt: skip
PREDICTED = {"label", "labels", "proba", "top"}  # keys of a prediction as JSON


def check_output(
    path: str, inputs: Iterable[str | None], kind: str, is_of_kind: Callable[[bytes], bool], force: bool = False
) -> None:
    """Raise an OSError or a ValueError if a command must not write a file.

    Parameters
    ----------
    path : str
        The file to write.
    inputs : iterable of str or None
        Files that the command reads.
    kind : str
        What it writes, with its article; for the message.
    is_of_kind : callable
        Whether the beginning of a file, which is not empty, shows that kind.
    force : bool
        Whether files that the command reads and files of other kinds may be replaced.
    """
    check_writable(path)
    if force or not os.path.exists(path):
        return
    if any(other is not None and os.path.exists(other) and os.path.samefile(path, other) for other in inputs):
        raise ValueError(f"{path}: the command reads this file; --force writes onto it")
    with open(path, "rb") as stream:
        head = stream.read(HEAD_BYTES)
    if head and not is_of_kind(head):
        raise ValueError(f"{path}: this file is there and is not {kind}; --force replaces it")


def check_distinct(*paths: str | None) -> None:
    """Raise a ValueError if two files to write are the same."""
    seen = set()
    for path in paths:
        if path is not None and os.path.realpath(path) in seen:
            raise ValueError(f"{path}: two results cannot go to the same file")
        seen.add(path if path is None else os.path.realpath(path))


def is_model(head: bytes) -> bool:
    return head.startswith(MAGIC)


def is_markdown_table(head: bytes) -> bool:
    return head.startswith(b"| Table ")


def is_html(head: bytes) -> bool:
    return head.lstrip()[:15].lower().startswith((b"<!doctype html", b"<html"))


def is_raster(head: bytes) -> bool:
    return head.startswith((b"II", b"MM")) or head.lstrip()[:5].lower() == b"ncols"


def is_suitability(header: str) -> Callable[[bytes], bool]:
    """Return a test for tables of ``sl1max species predict`` with this first line."""
    return lambda head: head.decode("utf-8", "replace").split("\n")[0] == header


def is_figure(ending: str) -> Callable[[bytes], bool]:
    """Return a test for figures of a format."""
    return lambda head: head.startswith(FIGURES.get(ending.lower().removeprefix("."), (b"\x89PNG",)))


def is_prediction(labels: Iterable) -> Callable[[bytes], bool]:
    """Return a test for the output of ``sl1max predict`` with these labels."""
    labels = {str(label) for label in labels}

    def fits(line):
        if line.startswith("{"):
            try:
                return not PREDICTED.isdisjoint(json.loads(line))
            except (ValueError, RecursionError):
                return False
        if line in labels or all(label in labels for label in line.split(",") if line):
            return True
        ranked = line.split(" ")
        return all(word.rpartition(":")[0] in labels and _is_number(word.rpartition(":")[2]) for word in ranked)

    def test(head):
        lines = head.decode("utf-8", "replace").split("\n")
        if len(head) < HEAD_BYTES and lines[-1] == "":
            lines.pop()
        elif len(lines) > 1:  # the last one may be cut off
            lines.pop()
        if len(lines[0].split("\t")) == len(labels) > 1 and set(lines[0].split("\t")) == labels:
            return all(_is_number(word) for line in lines[1:] for word in line.split("\t"))
        return all(map(fits, lines))

    return test


def _is_number(text):
    try:
        float(text)
    except ValueError:
        return False
    return True
