"""Files that a command writes: none that it reads, and none of another kind, unless --force says so."""

import os
import shutil

import numpy as np
import pytest
from scipy import sparse

import sl1max
from sl1max._utils import threads
from sl1max.cli import _main as cli
from sl1max.cli import main
from sl1max.cli._outputs import is_figure, is_markdown_table, is_prediction
from sl1max.exceptions import ThreadStartError
from sl1max.svmlight import write_svmlight


@pytest.fixture
def files(tmp_path, monkeypatch):
    """The current folder, with data, labels and a model of them."""
    monkeypatch.chdir(tmp_path)
    rng = np.random.default_rng(0)
    X, y = sparse.csr_array((rng.random((40, 6)) < 0.4).astype(float)), rng.integers(0, 3, 40)
    write_svmlight(X, y, "data.svm")
    sparse.save_npz("X.npz", X)
    np.save("y.npy", y)
    sl1max.fit(X, y).save("model.sl1max")
    (tmp_path / "notes.txt").write_text("Remember the milk.\n")
    os.symlink("data.svm", "link")
    os.link("data.svm", "hard")
    return tmp_path


def contents(folder):
    return {path.name: path.read_bytes() for path in folder.iterdir()}


def refuse(files, capsys, *arguments, says):
    before = contents(files)
    capsys.readouterr()
    assert main([str(argument) for argument in arguments]) == 2
    err = capsys.readouterr().err
    assert err.startswith("sl1max: error: ") and err.count("\n") == 1 and says in err
    assert contents(files) == before


READ = "the command reads this file; --force writes onto it"


@pytest.mark.parametrize(
    ("arguments", "says"),
    [
        (["train", "data.svm", "data.svm"], f"data.svm: {READ}"),
        (["train", "link", "data.svm"], f"link: {READ}"),
        (["train", "hard", "data.svm"], f"hard: {READ}"),
        (["train", "./data.svm", "data.svm"], READ),
        (["train", "y.npy", "X.npz", "--labels", "y.npy"], f"y.npy: {READ}"),
        (["train", "X.npz", "data.svm"], "X.npz: this file is there and is not a model; --force replaces it"),
        (["train", "notes.txt", "data.svm"], "notes.txt: this file is there and is not a model"),
        (["train", "model.sl1max", "data.svm", "--checkpoint", "data.svm"], "not a checkpoint of sl1max"),
        (["train", "model.sl1max", "data.svm", "--checkpoint", "model.sl1max"], "two results cannot go to the same"),
        (["train", "new", "data.svm", "--checkpoint", "./new"], "two results cannot go to the same file"),
        (["predict", "model.sl1max", "data.svm", "--output", "data.svm"], f"data.svm: {READ}"),
        (["predict", "model.sl1max", "data.svm", "--output", "model.sl1max"], f"model.sl1max: {READ}"),
        (["predict", "model.sl1max", "data.svm", "--output", "X.npz"], "is not a file of predictions; --force"),
        (["predict", "model.sl1max", "X.npz", "--output", "data.svm"], "is not a file of predictions; --force"),
        (["predict", "model.sl1max", "data.svm", "--output", "notes.txt"], "is not a file of predictions; --force"),
        (["reproduce", "webkb", "--markdown", "notes.txt"], "notes.txt: this file is there and is not a table of"),
        (["reproduce", "webkb", "--plot", "X.npz.png"], "is not a figure in the format .png; --force"),
        (["reproduce", "webkb", "--plot", "new.svg", "--markdown", "new.svg"], "two results cannot go to the same"),
    ],
)
def test_files_that_are_not_overwritten(files, capsys, monkeypatch, arguments, says):
    if "--plot" in arguments:
        pytest.importorskip("matplotlib")
        shutil.copy("X.npz", "X.npz.png")
    refuse(files, capsys, *arguments, says=says)


@pytest.mark.parametrize("target", ["data.svm", "notes.txt"])
def test_force(files, capsys, target):
    assert main(["train", target, "data.svm", "--force", "--quiet"]) == 0
    assert sl1max.load(target).n_features == 6
    assert main(["predict", "model.sl1max", "X.npz", "--output", target, "--force"]) == 0
    assert len((files / target).read_text().splitlines()) == 40


def test_files_of_their_own_kind_are_replaced(files, capsys):
    (files / "empty").write_bytes(b"")
    for target in ("model.sl1max", "empty"):
        assert main(["train", target, "data.svm", "--quiet"]) == 0
    (files / "out").write_bytes(b"")
    for options in ([], ["--top", "2"], ["--proba"], ["--json"], ["--proba", "--json"], ["--top", "2", "--json"], []):
        assert main(["predict", "model.sl1max", "data.svm", "--output", "out", *options]) == 0


@pytest.mark.parametrize(
    ("text", "fits"),
    [
        ("a\nb b\na,b b\n\n", True),
        ("b b:0.5 a:0.25\n", False),
        ("a:0.75 c:1e-07\n", True),
        ("a\tb b\tc\n0.5\t0.25\t0.25\n", True),
        ('{"label": "a"}\n', True),
        ('{"model": "a"}\n', False),
        ("[" * 100_000, False),
        ("a 1:0.5\n", False),
        ("0.5\n1.5\n", False),
        ("a\nd\n", False),
        ("\x00\x01", False),
    ],
)
def test_predictions_are_recognised(text, fits):
    assert is_prediction(["a", "b b", "c"])(text.encode()) == fits


def test_long_predictions_are_recognised():
    assert is_prediction(["one"])(("one\n" * 20_000).encode()[: 1 << 16])
    assert not is_prediction(["one"])(("two\n" * 20_000).encode()[: 1 << 16])


def test_tables_and_figures_are_recognised():
    assert is_markdown_table(b"| Table 3: error % | WebKB |") and not is_markdown_table(b"# Notes\n")
    assert is_figure(".svg")(b"<?xml version") and is_figure("")(b"\x89PNG\r\n") and not is_figure(".pdf")(b"\x89PNG")


def test_threads_that_cannot_start_are_one_line(files, capsys, monkeypatch):
    def fail(*_):
        raise RuntimeError("can't start new thread")

    monkeypatch.setattr(threads._thread, "start_new_thread", fail)
    arguments = ["train", "new", "data.svm", "--label-mode", "independent", "--jobs", "3"]
    refuse(files, capsys, *arguments, says="the system cannot start 3 threads (can't start new thread): lower n_jobs")
    assert issubclass(ThreadStartError, RuntimeError) and cli.BAD_INPUT == 2


def test_large_index(files, capsys):
    (files / "large.svm").write_text("1 2147483646:1\n0 1:1\n")
    refuse(files, capsys, "train", "new", "large.svm", says="large.svm:1: feature index 2147483646 makes 2147483646 fe")
