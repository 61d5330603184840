"""Who may import whom: classifier -> fit -> {inputs, regularization, reduction, model, ...} -> _core."""

import ast
import re
import subprocess
import sys
from pathlib import Path

PACKAGE = Path(__file__).parent.parent / "sl1max"

HEAVY = {"joblib", "sklearn", "pandas", "polars", "matplotlib"}


def imported_names(path, top_level_only=False):
    """Dotted names of all that a Python file imports."""
    tree = ast.parse(path.read_text())
    for node in tree.body if top_level_only else ast.walk(tree):
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            assert node.level == 0, f"{path.name}: imports are absolute"
            yield node.module


def test_modules_of_the_package_are_imported_at_the_top():
    """An import within a function would hide a cycle from ci/layers.py."""
    for path in PACKAGE.rglob("*.py"):
        tree = ast.parse(path.read_text())
        for function in ast.walk(tree):
            if isinstance(function, ast.FunctionDef):
                for node in ast.walk(function):
                    if isinstance(node, ast.Import | ast.ImportFrom):
                        names = [node.module] if isinstance(node, ast.ImportFrom) else [a.name for a in node.names]
                        assert not [name for name in names if name.split(".")[0] == "sl1max"], path


def test_heavy_modules_are_not_imported_at_the_top():
    """Only the estimators of scikit-learn do, which `sl1max` imports lazily."""
    for path in PACKAGE.rglob("*.py"):
        if not {"estimators", "species"} & set(path.parts):
            top = {name.split(".")[0] for name in imported_names(path, top_level_only=True)}
            assert not top & HEAVY, path


def test_the_core_imports_nothing_above_it():
    for path in PACKAGE.glob("_core/*.p*"):
        if path.suffix in (".pyx", ".pxd", ".py"):
            for name in re.findall(r"^\s*(?:from|import|cimport)\s+(\S+)", path.read_text(), re.MULTILINE):
                assert not name.startswith("sl1max") or name.startswith("sl1max._core"), path.name
                assert name.split(".")[0] not in HEAVY | {"scipy"}, path.name


def test_the_c_interface_rests_on_the_core_alone():
    names = re.findall(r"^\s*(?:from|import|cimport)\s+(\S+)", (PACKAGE / "cython_api.pyx").read_text(), re.MULTILINE)
    assert {name.split(".")[0] for name in names} <= {"sl1max", "cpython", "libc", "numpy"}
    assert all(name.startswith("sl1max._core") for name in names if name.startswith("sl1max"))


def run_python(code):
    done = subprocess.run([sys.executable, "-P", "-c", code], capture_output=True, text=True, check=True)
    return done.stdout


def test_import_loads_no_heavy_module():
    loaded = run_python("import sys, sl1max; print(*{name.split('.')[0] for name in sys.modules})").split()
    assert "sl1max" in loaded
    assert not HEAVY & set(loaded)


def test_import_is_light():
    """Nothing that takes long to import comes along: beside its own modules only small ones of the standard library."""
    code = (
        "import sys, numpy, scipy.sparse; before = set(sys.modules); import sl1max; "
        "print(*sorted(set(sys.modules) - before))"
    )
    modules = run_python(code).split()
    assert not [name for name in modules if name.startswith("scipy")]
    brought = {name.split(".")[0] for name in modules} - {"sl1max"}
    heavy = {"joblib", "sklearn", "pandas", "polars", "matplotlib", "tqdm", "multiprocessing", "concurrent", "lzma"}
    assert not brought & heavy
    assert len(brought) <= 12, brought


def test_every_module_is_installed():
    listed = set()
    for build in PACKAGE.rglob("meson.build"):
        folder = build.parent.relative_to(PACKAGE)
        listed |= {(folder / name).as_posix() for name in re.findall(r"'([\w/]+\.py)'", build.read_text())}
    assert {path.relative_to(PACKAGE).as_posix() for path in PACKAGE.rglob("*.py")} <= listed
