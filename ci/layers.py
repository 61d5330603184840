"""Check that every module imports only from the layers below its own.

import-linter checks the imports of .py files. This script checks the imports and cimports of .pyx and .pxd files. Both
use the list of layers in pyproject.toml.
"""

import re
import sys
import tomllib
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
# Compiled files that import-linter does not see, beside those of the layers.
COMPILED = {"cython_api": "plot"}  # in the same layer as
STATEMENT = re.compile(r"^\s*(?:from\s+(\S+)\s+c?import\s+(.+)|c?import\s+(\S+))", re.MULTILINE)


def layer_numbers(settings):
    """The number of the layer of each module or package directly below sl1max, the lowest 0."""
    (contract,) = [one for one in settings["contracts"] if one["type"] == "layers"]
    numbers = {
        name.strip(): n for n, layer in enumerate(reversed(contract["layers"])) for name in re.split("[|:]", layer)
    }
    return numbers | {name: numbers[other] for name, other in COMPILED.items()}


def imported_modules(text):
    """Dotted names of the modules of sl1max that a Cython file imports."""
    for module, names, plain in STATEMENT.findall(text):
        module = plain or module
        if module == "sl1max":
            for name in re.findall(r"\w+", names.split(" as ")[0]):
                yield f"sl1max.{name}"
        elif module.startswith("sl1max."):
            yield module


def compiled_imports(package):
    """Pairs (importer, imported) of the Cython files."""
    for path in sorted(package.rglob("*.p[yx][xd]")):
        importer = ".".join(path.relative_to(package.parent).with_suffix("").parts)
        for imported in imported_modules(path.read_text()):
            if imported != importer:
                yield importer, imported


def find_cycle(edges):
    """The modules of an import cycle, or an empty list."""
    below, done = {}, set()
    for importer, imported in edges:
        below.setdefault(importer, set()).add(imported)

    def visit(module, trail):
        if module in trail:
            return trail[trail.index(module) :] + [module]
        if module in done:
            return []
        for other in sorted(below.get(module, ())):
            if cycle := visit(other, [*trail, module]):
                return cycle
        done.add(module)
        return []

    return next((cycle for module in sorted(below) if (cycle := visit(module, []))), [])


def check_compiled(package, numbers):
    """One line for each forbidden import of a Cython file."""
    edges = list(compiled_imports(package))
    problems = []
    for importer, imported in edges:
        upper, lower = (name.split(".")[1] for name in (importer, imported))
        if lower not in numbers or upper not in numbers:
            problems.append(f"{importer} imports {imported}, which has no layer")
        elif upper != lower and numbers[lower] >= numbers[upper]:
            problems.append(f"{importer} imports {imported}, which is not in a lower layer")
    if cycle := find_cycle(edges):
        problems.append(f"cycle: {' -> '.join(cycle)}")
    print(f"Cython files: {len(edges)} imports of sl1max, {len(problems)} broken")
    return problems


def main():
    settings = tomllib.loads((ROOT / "pyproject.toml").read_text())["tool"]["importlinter"]
    problems = check_compiled(ROOT / "sl1max", layer_numbers(settings))
    print("\n".join(problems))
    # The sources, not an editable install, whose finder import-linter cannot read.
    sys.meta_path = [finder for finder in sys.meta_path if type(finder).__name__ != "MesonpyMetaFinder"]
    sys.path.insert(0, str(ROOT))
    from importlinter.cli import lint_imports

    status = lint_imports(config_filename=str(ROOT / "pyproject.toml"), no_cache=True)
    return 1 if problems else status


if __name__ == "__main__":
    sys.exit(main())
