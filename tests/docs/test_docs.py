"""What a reader would copy from the README and the pages of the site works, and prints what they say."""

import ast
import contextlib
import importlib.util
import io
import re
import shlex
import subprocess
import sys
from pathlib import Path

import pytest

import sl1max
from sl1max import exceptions

ROOT = Path(__file__).resolve().parents[2]
DOCS = ROOT / "docs"
PAGES = [ROOT / "README.md", *sorted(DOCS.glob("*.md")), *sorted(DOCS.glob("benchmarks/*.md"))]
BLOCK = re.compile(r"^```(\w+)\n(.*?)^```$", re.MULTILINE | re.DOTALL)
NUMBER = re.compile(r"\d+(?:\.\d+)?")


def blocks(page):
    """(language, content) of the fenced blocks of a page."""
    return BLOCK.findall(page.read_text(encoding="utf-8"))


def assert_same_output(printed, expected):
    """The same words, and numbers within 2%: the last digits are the solver's business."""
    assert NUMBER.split(printed) == NUMBER.split(expected)
    numbers = [float(number) for number in NUMBER.findall(expected)]
    assert [float(number) for number in NUMBER.findall(printed)] == pytest.approx(numbers, rel=0.02)


def run_python(code, names, page):
    stream = io.StringIO()
    with contextlib.redirect_stdout(stream):
        exec(compile(code, page.name, "exec"), names)
    return stream.getvalue()


def run_commands(script):
    """The lines that call `sl1max`, by this Python; pip and the scripts in ci/ are not for here."""
    for line in script.splitlines():
        program, *arguments = shlex.split(line, comments=True)
        if program == "sl1max":
            command = [sys.executable, "-m", "sl1max", *arguments]
            subprocess.run(command, check=True, stdout=subprocess.DEVNULL)


def name_of(page):
    return page.relative_to(ROOT).as_posix()


@pytest.mark.parametrize("page", [page for page in PAGES if blocks(page)], ids=name_of)
def test_blocks(page, tmp_path, monkeypatch):
    """The blocks of a page run in order in one empty folder; a text block is the output of the Python before it."""
    for package in re.findall(r"^(?:from|import) (sklearn|dask)\b", page.read_text(encoding="utf-8"), re.MULTILINE):
        pytest.importorskip(package)
    monkeypatch.chdir(tmp_path)
    names, printed = {}, ""
    for language, content in blocks(page):
        if language == "python":
            printed = run_python(content, names, page)
        elif language == "bash":
            run_commands(content)
        elif language == "text":
            assert_same_output(printed, content)


REFERENCE = set(re.findall(r"^ +([\w.]+)$", (DOCS / "api" / "index.rst").read_text(), re.MULTILINE))


def test_every_public_name_is_in_the_reference():
    public = {*sl1max.__all__, *sl1max._LAZY}
    public |= {name for name, value in vars(exceptions).items() if isinstance(value, type)}
    assert public <= REFERENCE


def test_docstrings_refer_to_what_is_in_the_reference():
    """Sphinx finds that too, but later."""
    for path in (ROOT / "sl1max").rglob("*.py"):
        named = re.findall(r"see `sl1max\.([\w.]+)`", path.read_text())
        assert set(named) <= REFERENCE, path.name


def test_references_of_the_architecture_page_exist():
    """Each reference `file::name` names a function, class or method that the file defines."""
    references = re.findall(r"`([\w/]+\.pyx?)::(\w+)`", (DOCS / "architecture.md").read_text(encoding="utf-8"))
    assert len(references) > 20
    for file, name in references:
        source = (ROOT / "sl1max" / file).read_text(encoding="utf-8")
        assert re.search(rf"^ *(?:cdef |cpdef |def |class )[^=\n]*\b{name}\b", source, re.MULTILINE), (file, name)


@pytest.mark.parametrize("example", sorted(DOCS.glob("gallery/plot_*.py")), ids=name_of)
def test_gallery_needs_nothing_beside_the_package(example):
    """An example begins with its title and reads no data but WebKB, which comes with the package."""
    tree = ast.parse(example.read_text(encoding="utf-8"))
    title, rule, *_ = ast.get_docstring(tree).splitlines()
    assert set(rule) == {"="} and len(rule) == len(title)
    fetched = {node.id for node in ast.walk(tree) if isinstance(node, ast.Name) and node.id.startswith("fetch_")}
    assert fetched <= {"fetch_webkb"}


def load_script(name):
    spec = importlib.util.spec_from_file_location(name, ROOT / "ci" / f"{name}.py")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def test_links_are_checked(tmp_path):
    """`ci/links.py` finds a missing page, a missing anchor and a script from the network, and nothing else."""
    (tmp_path / "sub").mkdir()
    (tmp_path / "sub" / "index.html").write_text('<p id="top"> <a href="../a.html#here">a</a> <a href="#top">x</a>')
    (tmp_path / "a.html").write_text(
        '<p id="here"> <a href="sub">fine</a> <a href="https://example.org">out</a> <a href="b.html">?</a>'
        '<a href="sub/index.html#no">?</a> <script src="https://example.org/x.js"></script>'
    )
    complaints, n_within, n_out = load_script("links").check(tmp_path)
    assert complaints == [
        "a.html: loads https://example.org/x.js from the network",
        "a.html: b.html has no target",
        "a.html: sub/index.html#no names a missing anchor",
    ]
    assert (n_within, n_out) == (5, 2)


def test_versions_agree():
    """The version stands in three files: the package says what meson builds and what is to be cited."""
    built = re.search(r"^  version: '(.+)',$", (ROOT / "meson.build").read_text(), re.MULTILINE)
    cited = re.search(r"^version: (.+)$", (ROOT / "CITATION.cff").read_text(), re.MULTILINE)
    assert built[1] == cited[1] == sl1max.__version__
