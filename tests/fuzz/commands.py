"""Command lines with files of all kinds in all places.

Properties: an exit code that is documented and no traceback; one line on stderr says what is wrong; no file that was
there is changed, unless it is empty or of the kind that the command writes.
"""

from __future__ import annotations

import contextlib
import hashlib
import io

import numpy as np
from scipy import sparse

import sl1max
from fuzz.campaign import Campaign, check, empty, strict_warnings
from sl1max.cli import main
from sl1max.svmlight import write_svmlight

NUMBERS = (
    "0",
    "1",
    "2",
    "3",
    "-1",
    "0.5",
    "1e-3",
    "1e9",
    "nan",
    "inf",
    "-inf",
    "x",
    "",
    "99999999999999999999",
    "1e400",
)
CHOICES = {
    "--distribution": ("conditional", "joint", "class-conditional", "none"),
    "--label-mode": ("auto", "exclusive", "independent"),
    "--beta-rule": ("deviation", "count", "both"),
    "--multilabel-weighting": ("duplicate", "equal"),
    "--solver": ("auto", "sequential", "fast"),
    "--learner": ("maxent", "adaboost", "svm", "auto"),
    "--loss": ("logistic", "exponential"),
}
NUMERIC = {
    "train": (
        "--beta",
        "--tol",
        "--max-iter",
        "--n-features",
        "--holdout",
        "--seed",
        "--n-estimators",
        "--C",
        "--folds",
        "--jobs",
    ),
    "predict": ("--top",),
    "evaluate": (),
    "inspect": ("--top", "--class"),
}
SWITCHES = {
    "train": ("--zero-based", "--label-sets", "--no-intercept", "--json", "--quiet", "--save-interrupted", "--force"),
    "predict": ("--zero-based", "--proba", "--json", "--force"),
    "evaluate": ("--zero-based", "--json"),
    "inspect": ("--json",),
}
FILES = {
    "train": ("--labels", "--validation", "--validation-labels", "--checkpoint"),
    "predict": ("--output",),
    "evaluate": ("--labels",),
    "inspect": ("--feature-names",),
}
WRITTEN = ("MODEL", "--checkpoint", "--output")
KINDS = {  # by the first bytes
    "cut.sl1max": "MODEL", "model.sl1max": "MODEL", "sets.sl1max": "MODEL", "fit.checkpoint": "--checkpoint",
    "labels.txt": "--output",
}  # fmt: skip


def make_files(folder):
    """Files of every kind by name."""
    rng = np.random.default_rng(0)
    X = sparse.csr_array((rng.random((40, 8)) < 0.3) * rng.integers(1, 4, (40, 8)) / 4)
    y = rng.integers(0, 3, 40)
    Y = np.eye(3, dtype=int)[y]
    Y[:5, 0] = 1
    write_svmlight(X, y, folder / "train.svm")
    write_svmlight(X[:10], y[:10], folder / "test.svm.gz")
    write_svmlight(X, Y, folder / "sets.svm")
    sparse.save_npz(folder / "X.npz", X)
    np.save(folder / "y.npy", y)
    sparse.save_npz(folder / "Y.npz", sparse.csr_array(Y))
    sl1max.fit(X, y.astype(float), checkpoint=folder / "fit.checkpoint").save(folder / "model.sl1max")
    sl1max.fit(X, Y).save(folder / "sets.sl1max")
    (folder / "labels.txt").write_text("1\n2\n0\n")
    (folder / "names.txt").write_text("".join(f"word{j}\n" for j in range(8)))
    (folder / "empty").write_bytes(b"")
    (folder / "noise").write_bytes(rng.bytes(300))
    (folder / "cut.sl1max").write_bytes((folder / "model.sl1max").read_bytes()[:90])
    (folder / "cut.svm.gz").write_bytes((folder / "test.svm.gz").read_bytes()[:60])
    (folder / "cut.npz").write_bytes((folder / "X.npz").read_bytes()[:200])
    content = {path.name: path.read_bytes() for path in folder.iterdir()}
    empty(folder)
    return content


def make_command(rng, names):
    """Arguments, and what each file is named as."""
    command = str(rng.choice(["train", "predict", "evaluate", "inspect"]))
    roles = {}

    def name(role, usual):
        chosen = usual[rng.integers(len(usual))] if rng.random() < 0.75 else names[rng.integers(len(names))]
        roles.setdefault(chosen, set()).add(role)
        return chosen

    data = ("train.svm", "test.svm.gz", "sets.svm", "X.npz")
    if command == "train":
        arguments = [name("MODEL", ("new", "model.sl1max")), name("DATA", data)]
    elif command == "inspect":
        arguments = [name("model", ("model.sl1max", "sets.sl1max"))]
    else:
        arguments = [name("model", ("model.sl1max", "sets.sl1max")), name("DATA", data)]
    if "X.npz" in arguments and command != "predict" and rng.random() < 0.8:
        arguments += ["--labels", name("--labels", ("y.npy", "Y.npz"))]
    usual = {"--output": ("new", "labels.txt"), "--checkpoint": ("new.checkpoint", "fit.checkpoint")}
    for option in rng.permutation(FILES[command]):
        if rng.random() < 0.15:
            arguments += [str(option), name(str(option), usual.get(str(option), names))]
    for option in NUMERIC[command]:
        if rng.random() < 0.06:
            arguments += [option, str(rng.choice(NUMBERS))]
    for option, values in CHOICES.items():
        if command == "train" and rng.random() < 0.1:
            arguments += [option, str(rng.choice(values))]
    arguments += [option for option in SWITCHES[command] if rng.random() < 0.15]
    if rng.random() < 0.05:
        arguments.append("--" + bytes(rng.integers(97, 123, 4).tolist()).decode())
    return [command, *arguments], roles


def call(arguments):
    """Exit code, standard output and standard error of a command in this process."""
    out, err = (io.TextIOWrapper(io.BytesIO(), "utf-8", write_through=True) for _ in range(2))
    with contextlib.redirect_stdout(out), contextlib.redirect_stderr(err), strict_warnings():
        try:
            code = main(arguments)
        except SystemExit as error:
            code = error.code
    return code, *(stream.buffer.getvalue().decode() for stream in (out, err))


def _may_replace(name, content, role):
    """Whether a command may write onto a file without --force."""
    return role in WRITTEN and (not content or KINDS.get(name) == role)


def set_up(folder):
    contents = make_files(folder)
    names = [*contents, "absent", "folder", "folder/absent", "", "-", "/dev/null"]

    def run(rng):
        empty(folder)
        (folder / "folder").mkdir()
        for name, content in contents.items():
            (folder / name).write_bytes(content)
        arguments, roles = make_command(rng, names)
        with contextlib.chdir(folder):
            code, _, err = call(arguments)
        line = "sl1max " + " ".join(arguments)
        check(code in (0, 2, 3), f"{line}: exit code {code}")
        check("Traceback" not in err, f"{line}: a traceback")
        if code == 2:
            said = [text for text in err.splitlines() if ": error: " in text]
            check(len(said) == 1 and err.splitlines()[-1] == said[0], f"{line}: stderr is {err!r}")
        for name, content in contents.items():
            check((folder / name).exists(), f"{line}: {name} is gone")
            unchanged = hashlib.sha256((folder / name).read_bytes()).digest() == hashlib.sha256(content).digest()
            own = len(roles.get(name, ())) == 1 and _may_replace(name, content, *roles[name])
            forced = "--force" in arguments and roles.get(name, set()) & set(WRITTEN)
            check(unchanged or own or forced, f"{line}: {name} has changed")
        left = (
            {path.name for path in folder.iterdir()} - set(contents) - set(roles) - {"folder", "new", "new.checkpoint"}
        )
        check(not left, f"{line}: left behind: {left}")
        return f"{arguments[0]}: {code}"

    return run


CAMPAIGN = Campaign(set_up, share=1.0)
