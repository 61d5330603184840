"""What `sl1max` exports, and what importing it from its sources says."""

import inspect
import pkgutil
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

import sl1max

SOURCES = Path(__file__).parents[1] / "sl1max"
EXPORTED = {
    "AdaBoostClassifier", "AdditiveClassifier", "AutoClassifier", "CheckpointError", "ConvergenceWarning", "FitError",
    "FitMemoryError",
    "HierarchyClassifier", "InfeasibleMomentsError", "LinearSVMClassifier", "MaxentClassifier", "MaxentClassifierCV",
    "MaxentDensity", "Model", "ModelFileError", "NonzeroSelector", "OutputCodeClassifier", "Problem", "Solver", "Table",
    "constraints", "fit", "fit_moments", "get_learner", "load", "path", "relax", "report", "with_class",
    "without_class", "zero_beta",
}  # fmt: skip
RENAMED = {"make_classifier", "classify", "kind"}


def test_exports():
    pytest.importorskip("sklearn")
    assert EXPORTED <= set(sl1max.__all__) == set(sl1max._LAZY) | set(sl1max.__all__)
    assert sl1max.__all__ == sorted(sl1max.__all__)
    for name in sl1max.__all__:
        assert getattr(sl1max, name).__name__ == name
        assert name in dir(sl1max)
    assert {name for name, _ in inspect.getmembers(sl1max)} >= set(sl1max.__all__)


def test_exports_are_known_to_type_checkers():
    """Names that are imported when asked for are imported for type checkers too, from the same modules."""
    text = (SOURCES / "__init__.py").read_text()
    static = text[text.index("if TYPE_CHECKING:") : text.index("__all__")]
    found = {}
    for line in static.splitlines():
        if line.startswith("    from "):
            module, names = line.removeprefix("    from ").split(" import ")
            found |= dict.fromkeys(names.split(", "), module)
    assert found == sl1max._LAZY


def test_no_public_function_hides_a_module():
    modules = {module.name for module in pkgutil.iter_modules(sl1max.__path__)}
    assert "metrics" in modules
    assert not modules & (set(sl1max.__all__) | set(sl1max._LAZY))


def test_no_earlier_names_are_left():
    assert not RENAMED & set(dir(sl1max))
    assert not {"proba", "log_proba", "top_k", "mass", "indicator", "kind", "parts", "part"} & set(dir(sl1max.Model))
    for function in (sl1max.fit, sl1max.Problem, sl1max.zero_beta):
        assert not {"classes", "multilabel"} & set(inspect.signature(function).parameters)


def test_sources_that_are_not_compiled_say_what_to_do(tmp_path):
    shutil.copytree(SOURCES, tmp_path / "sl1max", ignore=shutil.ignore_patterns("*.so", "*.pyd", "__pycache__", "data"))
    done = subprocess.run([sys.executable, "-c", "import sl1max"], cwd=tmp_path, capture_output=True, text=True)
    assert done.returncode == 1
    assert done.stderr.splitlines()[-1] == (
        "ImportError: sl1max is not compiled in this folder of sources: install it there (pip install .), then start "
        "Python in another folder or as python -P"
    )
