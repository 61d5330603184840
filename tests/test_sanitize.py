"""Whether the tests that ci/sanitize runs reach every compiled module."""

import re
from pathlib import Path

ROOT = Path(__file__).parents[1]
IMPORT = re.compile(r"^\s*(?:from\s+(\S+)\s+c?import\s+(.+)|c?import\s+(\S+))", re.MULTILINE)


def sanitized_tests():
    """The test files that ci/sanitize names, or that are in its folders."""
    (listed,) = re.findall(r"^tests=\((.*?)\)", (ROOT / "ci" / "sanitize").read_text(), re.MULTILINE | re.DOTALL)
    for name in listed.split():
        path = ROOT / name
        assert path.exists(), f"ci/sanitize names {name}, which does not exist"
        yield from path.rglob("test_*.py") if path.is_dir() else [path]


def module_names(path):
    """Dotted names of the modules of sl1max, and of the helpers of the tests, that a file imports or cimports."""
    for module, names, plain in IMPORT.findall(path.read_text()):
        yield plain or module
        yield from (f"{module}.{name}" for name in re.findall(r"\w+", names))


def find_modules():
    """Files by the dotted name of the module that they belong to: its body, and its declarations."""
    found = {}
    for path in sorted((ROOT / "sl1max").rglob("*.p*")):
        if path.suffix in (".py", ".pyx", ".pxd"):
            parts = path.relative_to(ROOT).with_suffix("").parts
            found.setdefault(".".join(parts).removesuffix(".__init__"), []).append(path)
    return found | {path.stem: [path] for path in (ROOT / "tests").glob("*.py")}


def test_every_compiled_module_is_reached():
    """From a test of ci/sanitize there is a chain of imports to it that does not begin with the whole package."""
    modules = find_modules()
    compiled = {name for name, paths in modules.items() if any(path.suffix == ".pyx" for path in paths)}
    assert {"sl1max._core._solver", "sl1max._core._svmlight", "sl1max.cython_api"} <= compiled
    reached, waiting = set(), set()
    for test in sanitized_tests():
        waiting |= set(module_names(test)) & set(modules)
    waiting.discard("sl1max")
    while waiting:
        name = waiting.pop()
        reached.add(name)
        for path in modules[name]:
            waiting |= (set(module_names(path)) & set(modules)) - reached - {"sl1max"}
    assert not compiled - reached
