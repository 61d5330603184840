"""What type checkers make of the package: a script of a user passes, and one with a typing error does not."""

import subprocess
import sys
from pathlib import Path

import pytest

pytest.importorskip("mypy")
pytest.importorskip("sklearn")

SCRIPT = Path(__file__).parent / "typing" / "user_script.py"
PACKAGE = Path(__file__).parents[1] / "sl1max"
pytestmark = pytest.mark.slow

TYPOS = [
    ('distribution="joint", label_mode="exclusive"', 'distribution="joined", label_mode="exclusive"', "arg-type"),
    ('label_mode="exclusive"', 'label_mode="excluded"', "arg-type"),
    ('beta_rule="deviation"', 'beta_rule="deviating"', "arg-type"),
    ('solver="newton"', 'solver="newtons"', "arg-type"),
    ('multilabel_weighting="equal"', 'multilabel_weighting="equals"', "arg-type"),
    ('on_interrupt="return"', 'on_interrupt="returned"', "arg-type"),
    ("C=2.0, multilabel", "c=2.0, multilabel", "call-arg"),
    ('betas=5, distribution="conditional"', 'betas=5, distribution="conditioned"', "arg-type"),
    ("tol=1e-3", "tolerance=1e-3", "call-arg"),
    ('solver="sequential"', 'solver="sequence"', "arg-type"),
    ('label_mode="independent"', 'label_mode="independently"', "arg-type"),
    ('MaxentClassifier(distribution="joint"', 'MaxentClassifier(distribution="joined"', "arg-type"),
    ("C=2.0, callback", "c=2.0, callback", "call-arg"),
    ("sl1max.MaxentClassifierCV(", "sl1max.MaxentClassifiersCV(", "attr-defined"),
    ('selection="one_standard_error"', 'selection="one_standard_fault"', "arg-type"),
    ("n_estimators=100", "n_rounds=100", "call-arg"),
    ('loss="logistic"', 'loss="logistics"', "arg-type"),
    ('get_learner("auto"', 'get_learner("automatic"', "arg-type"),
    ("fit_moments(", "fit_moment(", "attr-defined"),
    ("error.model", "error.models", "attr-defined"),
]


def run_mypy(*arguments, cwd):
    # Not from a cache of other sources. Errors of the package itself are those of another check.
    command = [sys.executable, "-m", "mypy", "--strict", "--config-file=", "--follow-imports=silent", *arguments]
    done = subprocess.run(command, cwd=cwd, capture_output=True, text=True)
    assert done.returncode in (0, 1), done.stderr + done.stdout
    return done.stdout


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    """A folder with the package beside scripts, so that the sources are read and not an installed version."""
    folder = tmp_path_factory.mktemp("typing")
    (folder / "sl1max").symlink_to(PACKAGE, target_is_directory=True)
    return folder


def test_a_script_of_a_user_passes(folder):
    (folder / "script.py").write_text(SCRIPT.read_text())
    assert run_mypy("script.py", cwd=folder) == "Success: no issues found in 1 source file\n"


def test_typing_errors_are_found(folder):
    """Each typing error is reported, in its line; all in one run, since reading numpy's types takes seconds."""
    text = SCRIPT.read_text()
    names = []
    for k, (right, wrong, _) in enumerate(TYPOS):
        assert text.count(right) == 1, right
        names.append(f"typo_{k}.py")
        (folder / names[-1]).write_text(text.replace(right, wrong))
    found = run_mypy(*names, cwd=folder)
    for k, (_, wrong, code) in enumerate(TYPOS):
        errors = [line for line in found.splitlines() if line.startswith(f"typo_{k}.py:") and " error: " in line]
        assert len(errors) == 1 and errors[0].endswith(f"[{code}]"), (wrong, errors)
        line = int(errors[0].split(":")[1])
        assert wrong in (folder / names[k]).read_text().splitlines()[line - 1]
