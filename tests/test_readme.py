"""What a new user would copy from the README works, and prints what the README says."""

import contextlib
import io
import re
import shlex
import subprocess
import sys
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


def run_python(code, names):
    stream = io.StringIO()
    with contextlib.redirect_stdout(stream):
        exec(compile(code, README.name, "exec"), names)
    return stream.getvalue()


def run_commands(script):
    """The lines that call `sl1max`, by this Python; the scripts in ci/ are not for here."""
    for line in script.splitlines():
        program, *arguments = shlex.split(line, comments=True)
        if program == "sl1max":
            command = [sys.executable, "-m", "sl1max", *arguments]
            subprocess.run(command, check=True, stdout=subprocess.DEVNULL)


def test_blocks(tmp_path, monkeypatch):
    """The blocks run in order in one empty folder; a text block right after a Python one is its output."""
    pytest.importorskip("sklearn")
    monkeypatch.chdir(tmp_path)
    names, printed = {}, ""
    for language, content in BLOCK.findall(README.read_text(encoding="utf-8")):
        if language == "python":
            printed = run_python(content, names)
        elif language == "bash":
            run_commands(content)
        else:
            assert_same_output(printed, content)
    assert (tmp_path / "labels.txt").read_text().count("\n") == names["X_test"].shape[0]
