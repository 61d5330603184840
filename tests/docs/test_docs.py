"""The code blocks of the README and of the pages run and print what they show; figures agree with measurements."""

import ast
import contextlib
import importlib.util
import io
import json
import re
import shlex
import subprocess
import sys
import tomllib
from pathlib import Path

import pytest
from joblib.externals.loky import get_reusable_executor

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
    """Assert equal words, and numbers within 2 %, since the last digits depend on the solver."""
    assert NUMBER.split(printed) == NUMBER.split(expected)
    numbers = [float(number) for number in NUMBER.findall(expected)]
    assert [float(number) for number in NUMBER.findall(printed)] == pytest.approx(numbers, rel=0.02)


def run_python(code, names, page):
    stream = io.StringIO()
    with contextlib.redirect_stdout(stream):
        exec(compile(code, page.name, "exec"), names)
    return stream.getvalue()


def run_commands(script):
    """Run the lines that call `sl1max` with this Python; skip pip and the scripts in ci/."""
    for line in script.splitlines():
        program, *arguments = shlex.split(line, comments=True)
        if program == "sl1max":
            command = [sys.executable, "-m", "sl1max", *arguments]
            subprocess.run(command, check=True, stdout=subprocess.DEVNULL)


def name_of(page):
    return page.relative_to(ROOT).as_posix()


@pytest.mark.parametrize("page", [page for page in PAGES if blocks(page)], ids=name_of)
def test_blocks(page, tmp_path, monkeypatch):
    """Blocks run in order in an empty folder; a text block is the output of the Python block before it."""
    for package in re.findall(r"^(?:from|import) (sklearn|dask)\b", page.read_text(encoding="utf-8"), re.MULTILINE):
        pytest.importorskip(package)
    monkeypatch.chdir(tmp_path)
    if "Parallel(" in page.read_text(encoding="utf-8"):  # workers of earlier tests are in another folder
        get_reusable_executor().shutdown(wait=True)
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


def words_of(text):
    """The text with single spaces, so that line breaks do not matter."""
    return " ".join(text.split())


ARCHITECTURE = words_of((DOCS / "architecture.md").read_text(encoding="utf-8"))
PLACE = r"`([\w/]+\.pyx?)::(\w+)`"


def source_of(file, name):
    """The lines of a function, method or class; None if the file does not define it."""
    lines = (ROOT / "sl1max" / file).read_text(encoding="utf-8").splitlines()
    for start, line in enumerate(lines):
        if re.match(rf" *(?:cdef |cpdef |def |class )[^=]*\b{name}\b", line):
            indent = len(line) - len(line.lstrip())
            inside = (k for k in range(start + 1, len(lines)) if lines[k].strip())
            end = next((k for k in inside if re.match(rf" {{0,{indent}}}[^ )]", lines[k])), len(lines))
            return "\n".join(lines[start:end])
    return None


def test_references_of_the_architecture_page_exist():
    """Each reference `file::name` names a function, class or method that the file defines."""
    references = re.findall(PLACE, ARCHITECTURE)
    assert len(references) > 30
    assert [place for place in references if source_of(*place) is None] == []


def test_calls_of_the_architecture_page_exist():
    """Where one function is said to call another, its source has the other's name."""
    calls = re.findall(rf"{PLACE},?(?: which)? calls {PLACE}", ARCHITECTURE)
    assert len(calls) > 10
    assert [call for call in calls if not re.search(rf"\b{call[3]}\b", source_of(*call[:2]))] == []


@pytest.mark.parametrize("example", sorted(DOCS.glob("gallery/plot_*.py")), ids=name_of)
def test_gallery_needs_nothing_beside_the_package(example):
    """An example begins with its title and reads no data but WebKB, which comes with the package."""
    tree = ast.parse(example.read_text(encoding="utf-8"))
    title, rule, *_ = ast.get_docstring(tree).splitlines()
    assert set(rule) == {"="} and len(rule) == len(title)
    fetched = {node.id for node in ast.walk(tree) if isinstance(node, ast.Name) and node.id.startswith("fetch_")}
    assert fetched <= {"fetch_webkb"}


RECIPE = (ROOT / "recipe" / "recipe.yaml").read_text(encoding="utf-8")
README = words_of((ROOT / "README.md").read_text(encoding="utf-8"))


def test_readme_has_the_measured_ratios(monkeypatch):
    """The comparison with other solvers is that of docs/benchmarks/peers.json."""
    monkeypatch.syspath_prepend(str(ROOT / "asv_bench"))
    from peers import front_page

    figures = front_page.figures(front_page.load_results())
    assert [text for text in figures.values() if text not in README] == []


def test_readme_has_the_measured_times():
    """Paths, weights and thousands of classes are those of docs/benchmarks/webkb.json and supertags.json."""
    webkb = json.loads((DOCS / "benchmarks" / "webkb.json").read_text())
    supertags = json.loads((DOCS / "benchmarks" / "supertags.json").read_text())
    chosen = next(row for row in supertags["models"] if row["model"] == "conditional, independent")
    for text in (
        f"path of {webkb['n_betas']} values of the penalty takes {webkb['path_one_class']:.2f} s for one class",
        f"{webkb['path_four_classes']:.2f} s for four independent classes",
        f"{webkb['fits'][0]['n_weights']} nonzero weights of {webkb['n_weights_possible']:,}",
        f"{supertags['n_classes']:,} classes on {supertags['n_samples']:,} examples take {chosen['minutes']} minutes",
        f"{chosen['peak_gb']} GB of memory",
    ):
        assert text in README


def rows_of(page, n_cells):
    """(name, other cells) of the rows named Q1 to Q3 in the tables with this number of columns, without emphasis."""
    lines = (DOCS / page).read_text(encoding="utf-8").splitlines()
    rows = ([cell.strip(" *") for cell in line.split("|")[1:-1]] for line in lines)
    return [(row[0], row[1:]) for row in rows if len(row) == n_cells and row[0].startswith("Q")]


def test_table_of_the_models_agrees_with_the_reproduction():
    """Errors, F-measures, weights and seconds on docs/models.md are those of docs/reproduction.md."""
    errors, costs = dict(rows_of("reproduction.md", 7)), dict(rows_of("reproduction.md", 9)[3:])
    shown = rows_of("models.md", 6)
    assert len(shown) == 5 and len(costs) == 3
    for name, (error, f_measure, webkb_error, weights, seconds) in shown:
        _, reuters, *_, webkb = errors[name]
        assert (f"{error} / {f_measure}", webkb_error) == (reuters, webkb)
        cost = costs.get(name.split(":")[0])
        assert cost is None or (weights, seconds) == (cost[0], cost[2])


def test_table_4_agrees_with_the_measurements():
    """The times and numbers of weights at beta = 0.5 in docs/reproduction.md are those of supertags.json."""
    models = json.loads((DOCS / "benchmarks" / "supertags.json").read_text())["models"]
    rows = dict(rows_of("reproduction.md", 9)[:3])
    text = (DOCS / "reproduction.md").read_text(encoding="utf-8")
    for name, model in (
        ("Q1(λᶜ)", "joint, independent"),
        ("Q2", "class-conditional"),
        ("Q3(λᶜ)", "conditional, independent"),
    ):
        row = next(row for row in models if row["model"] == model)
        assert rows[name][0] == f"{row['n_weights']:,}" and rows[name][4] == f"{row['minutes']} min"
    errors = {row["model"]: str(row["error"]) for row in models}
    order = ("joint, exclusive", "class-conditional", "conditional, exclusive", "joint, independent")
    assert (
        f"| here, the stand-in | {' | '.join(errors[model] for model in order)} | {errors['conditional, independent']}"
        in text
    )


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
    """The version stands in four files: the package says what meson builds, what is to be cited and what conda has."""
    built = re.search(r"^  version: '(.+)',$", (ROOT / "meson.build").read_text(), re.MULTILINE)
    cited = re.search(r"^version: (.+)$", (ROOT / "CITATION.cff").read_text(), re.MULTILINE)
    packed = re.search(r'^  version: "(.+)"$', RECIPE, re.MULTILINE)
    assert built[1] == cited[1] == packed[1] == sl1max.__version__


def test_recipe_has_the_dependencies_of_the_package():
    """The conda recipe and pyproject.toml ask for the same packages and versions."""
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))
    of_run = RECIPE.split("  run:\n")[1].split("\n\n")[0]
    of_build = RECIPE.split("  host:\n")[1].split("  run:\n")[0]
    asked = [re.sub(r"([a-z-]+)([<>=].*)", r"\1 \2", name.lower()) for name in project["project"]["dependencies"]]
    assert re.findall("- (.*)", of_run) == ["python", *asked]
    needed = [re.sub(r"([a-z-]+)([<>=].*)", r"\1 \2", name.lower()) for name in project["build-system"]["requires"]]
    assert re.findall("- (.*)", of_build) == ["python", "pip", *needed]
