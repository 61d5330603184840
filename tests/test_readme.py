"""What a new user would copy from the README works, and prints what the README says."""

import contextlib
import io
import re
from pathlib import Path

import pytest

README = Path(__file__).resolve().parents[1] / "README.md"
BLOCK = re.compile(r"^```(\w+)\n(.*?)^```$", re.MULTILINE | re.DOTALL)
NUMBER = re.compile(r"\d+(?:\.\d+)?")


def assert_same_output(printed, expected):
    """The same words, and numbers within 2%: the last digits are the solver's business."""
    assert NUMBER.split(printed) == NUMBER.split(expected)
    numbers = [float(number) for number in NUMBER.findall(expected)]
    assert [float(number) for number in NUMBER.findall(printed)] == pytest.approx(numbers, rel=0.02)


def test_blocks(tmp_path, monkeypatch):
    """The Python blocks run in order in one empty folder; a text block right after one is its output."""
    monkeypatch.chdir(tmp_path)
    blocks = BLOCK.findall(README.read_text(encoding="utf-8"))
    names, printed = {}, None
    for language, content in blocks:
        if language == "python":
            stream = io.StringIO()
            with contextlib.redirect_stdout(stream):
                exec(compile(content, README.name, "exec"), names)
            printed = stream.getvalue()
        elif language == "text":
            assert_same_output(printed, content)
        else:
            printed = None
    assert names
