"""The command: what it writes, what it returns, and what it says when something is wrong."""

import json
import os
import subprocess
import sys
import warnings
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from problems import break_classes
from scipy import sparse
from stand_ins import raising

import sl1max
from sl1max.cli import _evaluate
from sl1max.cli import _main as cli
from sl1max.cli._errors import NOT_CONVERGED
from sl1max.datasets import fetch_reuters21578, fetch_webkb
from sl1max.svmlight import write_svmlight

REUTERS = Path(__file__).resolve().parents[3] / "shared" / "data" / "reuters21578"


def make_data(n_samples=80, n_features=12, n_classes=3, seed=0):
    rng = np.random.default_rng(seed)
    X = (rng.random((n_samples, n_features)) < 0.3).astype(float)
    y = rng.integers(0, n_classes, n_samples)
    X[np.arange(n_samples), y] = 1
    X[0, -1] = 1
    return sparse.csr_array(X), y


@pytest.fixture
def files(tmp_path, monkeypatch):
    """A folder with train.svm, test.svm and model.sl1max; the current one."""
    monkeypatch.chdir(tmp_path)
    X, y = make_data()
    write_svmlight(X[:60], y[:60], "train.svm")
    write_svmlight(X[60:], y[60:], "test.svm")
    assert cli.main(["train", "model.sl1max", "train.svm", "--json"]) == 0
    return tmp_path


def run(capsys, *args):
    """Exit code, standard output and standard error of one call."""
    capsys.readouterr()
    try:
        code = cli.main([str(arg) for arg in args])
    except SystemExit as error:
        code = error.code
    out, err = capsys.readouterr()
    return code, out, err


def run_json(capsys, *args):
    code, out, _ = run(capsys, *args, "--json")
    assert code == 0
    return json.loads(out)


def check_complaint(capsys, *args, says):
    """Exit code 2 and one line on stderr."""
    code, out, err = run(capsys, *args)
    assert (code, out) == (cli.BAD_INPUT, "")
    assert err.startswith("sl1max: error: ") and err.count("\n") == 1
    assert says in err


# Whole runs


@pytest.mark.parametrize("ending", ["", ".gz", ".xz"])
def test_webkb(tmp_path, capsys, ending):
    data = fetch_webkb()
    taken, held_out = data.folds > (2 if ending else 0), data.folds == 0
    train, test, model = (tmp_path / name for name in (f"train.svm{ending}", f"test.svm{ending}", "m.sl1max"))
    write_svmlight(data.X_train[taken], data.y_train[taken], train)
    write_svmlight(data.X_train[held_out], data.y_train[held_out], test)
    report = run_json(capsys, "train", model, train, "--tol", "1e-3", "--n-features", data.X_train.shape[1])
    assert report["converged"] and report["n_classes"] == 4
    fitted = sl1max.fit(data.X_train[taken], data.y_train[taken], tol=1e-3)
    expected = fitted.predict(data.X_train[held_out])
    code, out, err = run(capsys, "predict", model, test)
    assert (code, err) == (0, "")
    np.testing.assert_array_equal(np.array(out.split(), int), expected)
    report = run_json(capsys, "evaluate", model, test)
    assert report["error"] == pytest.approx(np.mean(expected != data.y_train[held_out]))
    assert report["error"] < 0.15
    names = tmp_path / "words.txt"
    names.write_text("".join(f"{name}\n" for name in data.feature_names))
    code, out, _ = run(capsys, "inspect", model, "--feature-names", names, "--class", "0", "--top", "30")
    assert code == 0 and "publications" in out.split("class 0:")[1]


@pytest.mark.shared
@pytest.mark.slow
@pytest.mark.skipif(not REUTERS.is_dir(), reason="the data sets are not beside the checkout")
def test_reuters(tmp_path, capsys, monkeypatch):
    monkeypatch.setenv("SL1MAX_DATA", str(REUTERS.parent))
    data = fetch_reuters21578("unigram")
    train, test, model = tmp_path / "train.svm.gz", tmp_path / "test.svm", tmp_path / "model.sl1max"
    write_svmlight(data.X_train, data.y_train, train)
    write_svmlight(data.X_test, data.y_test, test)
    report = run_json(capsys, "train", model, train, "--distribution", "class-conditional", "--tol", "1e-2")
    assert report["label_sets"] and report["label_mode"] == "independent" and report["n_classes"] == 90
    report = run_json(capsys, "evaluate", model, test)
    assert report["examples"] == 3299 and report["unseen_labels"] == []
    assert report["error"] < 0.25  # the 280 stories without a topic always count as wrong: 0.085 of them
    code, out, _ = run(capsys, "predict", model, test, "--top", "1")
    assert code == 0 and out.count("\n") == 3299


def test_options_reach_fit(files, capsys):
    X, y = make_data()
    report = run_json(
        capsys, "train", "other.sl1max", "train.svm", "--distribution", "joint", "--label-mode", "independent",
        "--beta", "2", "--beta-rule", "count", "--tol", "1e-6", "--jobs", "2", "--no-intercept",
        "--solver", "auto", "--max-iter", "500",
    )  # fmt: skip
    assert report["n_examples"] == 60 and report["bytes"] == os.path.getsize("other.sl1max")
    model = sl1max.load("other.sl1max")
    expected = sl1max.fit(
        X[:60], y[:60], distribution="joint", label_mode="independent", beta=2, beta_rule="count", tol=1e-6,
        fit_intercept=False,
    )  # fmt: skip
    np.testing.assert_array_equal(model.weights.toarray(), expected.weights.toarray())
    assert (model.beta, model.beta_rule, model.tol) == (2.0, "count", 1e-6)
    report = run_json(capsys, "train", "again.sl1max", "train.svm", "--C", "4")
    assert (report["beta"], report["beta_rule"]) == (0.25, "count")
    args = ["train", "m.sl1max", "train.svm", "--C", "4", "--beta", "0.25"]
    check_complaint(capsys, *args, says="--beta and --C set the same penalty (beta = 1/C): give one of them")


def test_holdout_is_chosen_by_the_seed(files, capsys):
    def reports(seed):
        report = run_json(capsys, "train", "held.sl1max", "train.svm", "--holdout", "0.25", "--seed", seed)
        assert report["n_examples"] == 45 and report["holdout"]["examples"] == 15
        return report["holdout"], report["objective"]

    assert reports(1) == reports(1)
    assert reports(1) != reports(2)
    code, out, _ = run(capsys, "train", "held.sl1max", "train.svm", "--holdout", "0.25")
    assert code == 0 and "holdout:\n  examples: 15\n  error: 0." in out


def test_label_sets(tmp_path, monkeypatch, capsys):
    """Labels 3, 5 and 8.5; sets of any size, empty too."""
    monkeypatch.chdir(tmp_path)
    X, y = make_data()
    indicator = np.column_stack([y == 0, y >= 1, y == 2])
    indicator[3] = False
    write_svmlight(X, indicator.astype(int), "sets.svm", classes=[3, 5, 8.5])
    report = run_json(capsys, "train", "model.sl1max", "sets.svm")
    assert report["label_sets"] and report["label_mode"] == "independent"
    model = sl1max.load("model.sl1max")
    assert model.classes.tolist() == [3, 5, 8.5]
    expected = model.predict(X).toarray()
    _, out, _ = run(capsys, "predict", "model.sl1max", "sets.svm")
    for line, row in zip(out.split("\n"), expected, strict=False):
        assert line == ",".join(str(label) for label in model.classes[row == 1].tolist())
    _, out, _ = run(capsys, "predict", "model.sl1max", "sets.svm", "--json")
    assert [json.loads(line)["labels"] for line in out.splitlines()] == [
        model.classes[row == 1].tolist() for row in expected
    ]
    report = run_json(capsys, "evaluate", "model.sl1max", "sets.svm")
    hits = (expected * indicator).sum()
    assert report["precision"] == pytest.approx(hits / expected.sum())
    assert report["recall"] == pytest.approx(hits / indicator.sum())
    assert report["f_measure"] == pytest.approx(2 * hits / (expected.sum() + indicator.sum()))
    assert "log_loss" not in report
    tied = ("--label-mode", "exclusive", "--multilabel-weighting", "equal")
    report = run_json(capsys, "train", "tied.sl1max", "sets.svm", *tied)
    assert report["label_mode"] == "exclusive" and report["n_examples"] == 79
    _, out, _ = run(capsys, "predict", "tied.sl1max", "sets.svm")
    assert set(out.split()) <= {"3.0", "5.0", "8.5"}


def test_label_sets_on_request(files, capsys):
    report = run_json(capsys, "train", "sets.sl1max", "train.svm", "--label-sets")
    assert report["label_sets"] and report["label_mode"] == "independent"
    report = run_json(capsys, "evaluate", "sets.sl1max", "test.svm")
    assert 0 < report["f_measure"] <= 1


def test_npz(tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    X, y = make_data()
    labels = np.array(["ham", "spam", "eggs"])[y]
    sparse.save_npz("X.npz", X)
    np.save("y.npy", labels)
    np.save("indicator.npy", np.eye(3)[y])
    sparse.save_npz("indicator.npz", sparse.csr_array(np.eye(3)[y]))
    assert not run_json(capsys, "train", "m.sl1max", "X.npz", "--labels", "y.npy")["label_sets"]
    assert sl1max.load("m.sl1max").classes.tolist() == ["eggs", "ham", "spam"]
    _, out, _ = run(capsys, "predict", "m.sl1max", "X.npz")
    assert out.split() == sl1max.fit(X, labels).predict(X).tolist()
    assert run_json(capsys, "evaluate", "m.sl1max", "X.npz", "--labels", "y.npy")["error"] < 0.5
    for name in ("indicator.npy", "indicator.npz"):
        report = run_json(capsys, "train", "i.sl1max", "X.npz", "--labels", name)
        assert report["label_sets"] and report["n_classes"] == 3
        assert run_json(capsys, "evaluate", "i.sl1max", "X.npz", "--labels", name)["error"] < 0.5
    assert run_json(capsys, "train", "s.sl1max", "X.npz", "--labels", "y.npy", "--label-sets")["label_sets"]
    assert sl1max.load("s.sl1max").classes.tolist() == ["eggs", "ham", "spam"]


def test_zero_based(tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    X, y = make_data()
    write_svmlight(X, y, "zero.svm", zero_based=True)
    assert run_json(capsys, "train", "m.sl1max", "zero.svm", "--zero-based")["n_features"] == 12
    assert run_json(capsys, "evaluate", "m.sl1max", "zero.svm", "--zero-based")["examples"] == 80
    check_complaint(capsys, "train", "m.sl1max", "zero.svm", says="feature index 0 in a one-based file")


# Output


def test_predictions(files, capsys):
    model = sl1max.load("model.sl1max")
    X, _ = make_data()
    proba = model.predict_proba(X[60:])
    _, out, _ = run(capsys, "predict", "model.sl1max", "test.svm", "--proba")
    lines = [line.split("\t") for line in out.splitlines()]
    assert lines[0] == ["0", "1", "2"]
    np.testing.assert_allclose(np.array(lines[1:], float), proba, rtol=1e-5)
    _, out, _ = run(capsys, "predict", "model.sl1max", "test.svm", "--proba", "--json")
    assert [json.loads(line)["proba"]["1"] for line in out.splitlines()] == pytest.approx(proba[:, 1])
    _, out, _ = run(capsys, "predict", "model.sl1max", "test.svm", "--top", "2")
    first = [pair.split(":") for pair in out.splitlines()[0].split()]
    assert [int(label) for label, _ in first] == np.argsort(-proba[0])[:2].tolist()
    assert float(first[0][1]) == pytest.approx(proba[0].max(), rel=1e-5)
    _, out, _ = run(capsys, "predict", "model.sl1max", "test.svm", "--top", "9", "--json")
    top = json.loads(out.splitlines()[0])["top"]
    assert [pair["proba"] for pair in top] == pytest.approx(sorted(proba[0], reverse=True))
    assert top[0]["label"] == proba[0].argmax()
    _, out, _ = run(capsys, "predict", "model.sl1max", "test.svm", "--json")
    assert [json.loads(line)["label"] for line in out.splitlines()] == model.predict(X[60:]).tolist()


def test_predictions_in_pieces(files, capsys, monkeypatch):
    whole = run(capsys, "predict", "model.sl1max", "test.svm")
    report = run_json(capsys, "evaluate", "model.sl1max", "test.svm")
    monkeypatch.setattr(_evaluate, "CELLS_AT_ONCE", 10)
    assert run(capsys, "predict", "model.sl1max", "test.svm") == whole
    again = run_json(capsys, "evaluate", "model.sl1max", "test.svm")
    assert again.pop("unseen_labels") == report.pop("unseen_labels")
    assert again == pytest.approx(report)


def test_output_file(files, capsys):
    _, expected, _ = run(capsys, "predict", "model.sl1max", "test.svm")
    assert run(capsys, "predict", "model.sl1max", "test.svm", "--output", "out.txt") == (0, "", "")
    assert Path("out.txt").read_text() == expected


def test_evaluate_against_the_formulas(files, capsys):
    model = sl1max.load("model.sl1max")
    X, y = make_data()
    report = run_json(capsys, "evaluate", "model.sl1max", "test.svm")
    assert report["error"] == pytest.approx(np.mean(model.predict(X[60:]) != y[60:]))
    assert report["log_loss"] == pytest.approx(-model.predict_log_proba(X[60:])[np.arange(20), y[60:]].mean())
    assert report["unseen_labels"] == [] and "f_measure" not in report


def test_inspect(files, capsys):
    Path("names.txt").write_text("".join(f"word{j}\n" for j in range(12)))
    code, out, _ = run(capsys, "inspect", "model.sl1max", "--feature-names", "names.txt")
    assert code == 0 and "distribution: conditional\n" in out and " word0:-" in out and " word1:+" in out
    code, out, _ = run(capsys, "inspect", "model.sl1max", "--class", "1", "--class", "2", "--top", "1")
    assert code == 0 and "\nclass 1:\nfeature  weight\n" in out and "\nclass 2:\n" in out
    report = run_json(capsys, "inspect", "model.sl1max", "--class", "1", "--feature-names", "names.txt")
    (top,) = report["top_features"]
    assert top["class"] == 1 and top["features"][1]["feature"] == "word1"
    check_complaint(capsys, "inspect", "model.sl1max", "--class", "9", says="'9' is not a class of the model")
    Path("names.txt").write_text("one\n")
    check_complaint(
        capsys, "inspect", "model.sl1max", "--feature-names", "names.txt",
        says="names.txt: 1 names, but the model has 12 features",
    )  # fmt: skip


def test_inspect_a_class_without_weights(files, capsys):
    run_json(capsys, "train", "flat.sl1max", "train.svm", "--beta", "inf")
    code, out, _ = run(capsys, "inspect", "flat.sl1max", "--class", "0")
    assert code == 0 and out.endswith("class 0: no weights\n")
    assert run_json(capsys, "inspect", "flat.sl1max")["beta"] is None


def save_text_model(labels):
    """A model of two text labels, as text.sl1max."""
    X, y = make_data()
    sl1max.fit(X, np.array(labels)[y % 2]).save("text.sl1max")


@pytest.mark.parametrize("command", ["predict", "predict --proba", "predict --output out", "inspect"])
def test_labels_that_the_encoding_lacks(files, capsys, command):
    """A label may be any text, with halves of surrogate pairs."""
    save_text_model(["\ud800", "b"])
    command, *options = command.split()
    args = [command, "text.sl1max", *["test.svm"] * (command == "predict"), *options]
    code, _, err = run(capsys, *args)
    expected = "sl1max: error: '\\ud800' cannot be written in the encoding utf-8: --json writes ASCII\n"
    assert (code, err.lower()) == (cli.BAD_INPUT, expected.lower())
    assert not os.path.exists("out")
    assert run(capsys, *args, "--json")[0] == 0


@pytest.mark.parametrize(
    ("label", "options", "refused"),
    [("a\nb", [], True), ("a\tb", [], False), ("a\tb", ["--proba"], True), ("a\u2028b", ["--top", "1"], True)],
)
def test_labels_that_break_lines(files, capsys, label, options, refused):
    save_text_model([label, "c"])
    args = ["predict", "text.sl1max", "test.svm", *options]
    if refused:
        check_complaint(capsys, *args, says="contains a separator of labels or lines: use --json")
    else:
        assert run(capsys, *args)[1].count("\n") == 20
    assert run(capsys, *args, "--json")[0] == 0


def test_labels_with_commas_in_sets(files, capsys):
    X, y = make_data()
    sl1max.fit(X, np.eye(3)[y]).save("sets.sl1max")
    assert run(capsys, "predict", "sets.sl1max", "test.svm")[0] == 0
    model = sl1max.fit(X, np.eye(3)[y])
    replace(model, classes=np.array(["a,b", "c", "d"])).save("sets.sl1max")
    check_complaint(capsys, "predict", "sets.sl1max", "test.svm", says="the label 'a,b' contains a separator of labels")
    assert run(capsys, "predict", "sets.sl1max", "test.svm", "--top", "2")[0] == 0


def test_progress_on_a_terminal_only(files, capsys, monkeypatch):
    seen = []
    fit = sl1max.fit

    def watched(*args, **options):
        seen.append(options["verbose"])
        return fit(*args, **options)

    monkeypatch.setattr(sl1max, "fit", watched)
    run(capsys, "train", "m.sl1max", "train.svm")
    monkeypatch.setattr(sys.stderr, "isatty", lambda: True)
    code, out, err = run(capsys, "train", "m.sl1max", "train.svm", "--json")
    assert code == 0 and json.loads(out) and "gap" in err
    assert run(capsys, "train", "m.sl1max", "train.svm", "--quiet")[2] == ""
    assert seen == [0, 1, 0]


@pytest.mark.parametrize("command", [(), ("train",), ("predict",), ("evaluate",), ("inspect",), ("report",)])
def test_help(command, capsys):
    code, out, _ = run(capsys, *command, "--help")
    assert code == 0 and "examples:" in out and "exit codes:" in out
    assert max(map(len, out.splitlines())) <= 110


def test_without_arguments(capsys):
    assert run(capsys) == run(capsys, "--help")


def test_version(capsys):
    assert run(capsys, "--version") == (0, f"sl1max {sl1max.__version__}\n", "")


# Exit codes and errors


def test_not_converged(files, capsys):
    hard = ("--max-iter", "1", "--tol", "1e-12")
    code, out, err = run(capsys, "train", "m.sl1max", "train.svm", *hard, "--json")
    assert code == NOT_CONVERGED and not json.loads(out)["converged"]
    assert err.startswith("sl1max: warning: sl1max.fit did not converge") and err.count("\n") == 1
    assert not sl1max.load("m.sl1max").converged


@pytest.mark.parametrize(
    "args",
    [
        ("learn",),
        ("train", "train.svm"),
        ("train", "m", "train.svm", "--distribution", "odd"),
        ("train", "m", "train.svm", "--beta", "much"),
        ("predict", "model.sl1max", "test.svm", "--top", "0"),
        ("predict", "model.sl1max", "test.svm", "--top", "1", "--proba"),
    ],
)
def test_usage(files, capsys, args):
    code, out, err = run(capsys, *args)
    assert (code, out) == (2, "") and err.startswith("usage: sl1max")


def test_impossible_options(files, capsys):
    for option, value, says in (
        ("--beta", "-1", "error: --beta -1 must be a number >= 0"),
        ("--tol", "0", "error: --tol 0 must be a positive number"),
        ("--jobs", "0", "error: --jobs 0 must be an integer other than 0"),
        ("--max-iter", "0", "error: --max-iter 0 must be a positive integer"),
        ("--n-features", "-1", "error: --n-features -1 must be a positive integer"),
        ("--C", "0", "error: --C 0 must be a positive number"),
        ("--folds", "1", "error: --folds 1 must be at least 2"),
        ("--holdout", "1", "error: --holdout 1 must be between 0 and 1"),
        ("--holdout", "0.999", "error: --holdout 0.999 leaves none of the 60 examples of train.svm for training"),
    ):
        check_complaint(capsys, "train", "m.sl1max", "train.svm", option, value, says=says)
    code, _, err = run(capsys, "train", "m.sl1max", "train.svm", "--learner", "adaboost", "--n-estimators", "abc")
    assert code == 2 and err.endswith("error: argument --n-estimators: 'abc' is not a positive integer\n")


def test_files_that_are_not_there(files, capsys):
    check_complaint(capsys, "train", "m", "none.svm", says="none.svm: No such file")
    says = "none.svm: No such file or directory; the model comes first: sl1max train MODEL DATA"
    check_complaint(capsys, "train", "train.svm", "none.svm", says=says)
    check_complaint(capsys, "predict", "none.sl1max", "test.svm", says="none.sl1max: No such file")
    check_complaint(capsys, "evaluate", "model.sl1max", "none.svm", says="none.svm: No such file")
    check_complaint(capsys, "train", "m", ".", says=".: Is a directory")


def test_empty_files(files, capsys):
    for name in ("empty.svm", "empty.npz", "empty.sl1max"):
        Path(name).touch()
    check_complaint(capsys, "train", "m", "empty.svm", says="empty.svm: the file is empty (0 bytes)")
    check_complaint(capsys, "train", "m", "empty.npz", says="empty.npz: the file is empty (0 bytes)")
    check_complaint(capsys, "predict", "empty.sl1max", "test.svm", says="empty.sl1max: the file is empty")
    check_complaint(capsys, "predict", "model.sl1max", "empty.svm", says="empty.svm: the file is empty")


def test_bad_line(files, capsys):
    Path("bad.svm").write_text("1 1:1\n0 2:1\n0 two:1\n")
    for args in (("train", "m", "bad.svm"), ("predict", "model.sl1max", "bad.svm")):
        check_complaint(capsys, *args, says="bad.svm:3: ")


def test_models_that_are_none(files, capsys):
    check_complaint(capsys, "predict", "train.svm", "test.svm", says="train.svm: not a sl1max model")
    Path("cut.sl1max").write_bytes(Path("model.sl1max").read_bytes()[:-9])
    check_complaint(capsys, "inspect", "cut.sl1max", says="cut.sl1max: truncated")


def test_paths_that_cannot_be_written(files, capsys, monkeypatch):
    def never(*_, **__):
        raise AssertionError("trained for nothing")

    monkeypatch.setattr(sl1max, "fit", never)
    check_complaint(capsys, "train", "none/m.sl1max", "train.svm", says="there is no folder")
    check_complaint(capsys, "train", ".", "train.svm", says="this is a folder")
    monkeypatch.setattr(os, "access", lambda *_: False)
    check_complaint(capsys, "train", "m.sl1max", "train.svm", says="no permission to write")
    output = ("--output", "out")
    check_complaint(capsys, "predict", "model.sl1max", "test.svm", *output, says="no permission to write")


def test_other_number_of_features(files, capsys):
    X, y = make_data(n_features=20)
    write_svmlight(X, y, "wide.svm")
    sparse.save_npz("wide.npz", X)
    check_complaint(capsys, "predict", "model.sl1max", "wide.svm", says="wide.svm:")
    check_complaint(capsys, "evaluate", "model.sl1max", "wide.svm", says="n_features is 12")
    check_complaint(capsys, "predict", "model.sl1max", "wide.npz", says="20 features, where 12 are needed")
    write_svmlight(X[:, :5], y, "narrow.svm")
    assert run(capsys, "predict", "model.sl1max", "narrow.svm")[0] == 0


def test_unseen_labels(files, capsys):
    X, y = make_data()
    y[70:75], y[75:] = 7, 9
    write_svmlight(X[60:], y[60:], "unseen.svm")
    code, out, err = run(capsys, "evaluate", "model.sl1max", "unseen.svm", "--json")
    assert code == 0
    assert err == "sl1max: warning: unseen.svm: labels that the model has not seen: 7, 9\n"
    report = json.loads(out)
    predicted = sl1max.load("model.sl1max").predict(X[60:])
    assert report["error"] == pytest.approx(np.mean(predicted != y[60:]))
    assert report["unseen_labels"] == [7, 9]
    np.save("text.npy", np.array(["a", "b"] * 10))
    sparse.save_npz("test.npz", X[60:])
    check_complaint(
        capsys, "evaluate", "model.sl1max", "test.npz", "--labels", "text.npy",
        says="test.npz: its labels are <U1, those of the model int64",
    )  # fmt: skip


def test_only_unseen_labels(files, capsys):
    X, _ = make_data()
    write_svmlight(X[60:], np.full(20, 9), "unseen.svm")
    report = run_json(capsys, "evaluate", "model.sl1max", "unseen.svm")
    assert report["error"] == 1 and report["log_loss"] is None


def test_unseen_labels_of_sets_are_missed(files, capsys):
    run_json(capsys, "train", "sets.sl1max", "train.svm", "--label-sets")
    X, y = make_data()
    sets = np.eye(4)[y]
    sets[:, 3] = 1
    write_svmlight(X, sets, "unseen.svm")
    report = run_json(capsys, "evaluate", "sets.sl1max", "unseen.svm")
    expected = sl1max.load("sets.sl1max").predict(X).toarray()
    assert report["recall"] == pytest.approx((expected * sets[:, :3]).sum() / 160)


def test_class_without_examples(files, capsys):
    X, y = make_data()
    sparse.save_npz("X.npz", X)
    np.save("y.npy", np.eye(4)[y])
    check_complaint(
        capsys, "train", "m", "X.npz", "--labels", "y.npy", "--label-mode", "exclusive",
        says="X.npz: y has no example of class 3",
    )  # fmt: skip
    code, _, err = run(capsys, "train", "m.sl1max", "X.npz", "--labels", "y.npy")
    assert code == 0
    assert err == "sl1max: warning: y gives no example to class 3: its predictions will be constant\n"
    Path("one.svm").write_text("1 1:1\n1 2:1\n")
    check_complaint(capsys, "train", "m", "one.svm", says="one.svm: y has one class only, 1")


def test_bad_npz(files, capsys):
    X, y = make_data()
    sparse.save_npz("X.npz", X)
    Path("broken.npz").write_bytes(Path("X.npz").read_bytes()[:200])
    np.savez("other.npz", a=y)
    np.save("short.npy", y[:5])
    np.save("objects.npy", np.array([1, "a", None] * 10, object))
    np.save("cube.npy", np.zeros((80, 2, 2)))
    check_complaint(capsys, "train", "m", "X.npz", says="X.npz: a .npz has no labels: name their file with")
    check_complaint(capsys, "train", "m", "train.svm", "--labels", "short.npy", says="--labels is for .npz")
    check_complaint(capsys, "predict", "model.sl1max", "broken.npz", says="broken.npz: ")
    check_complaint(capsys, "predict", "model.sl1max", "other.npz", says="other.npz: ")
    for name, says in (
        ("short.npy", "short.npy: 5 labels, but X.npz has 80 examples"),
        ("objects.npy", "objects.npy: "),
        ("cube.npy", "cube.npy: labels must be a vector or an indicator"),
        ("train.svm", "train.svm: "),
        ("none.npy", "none.npy: No such file"),
    ):
        check_complaint(capsys, "train", "m", "X.npz", "--labels", name, says=says)


def test_interrupt_and_lack_of_memory(files, capsys, monkeypatch):
    monkeypatch.setattr(sl1max, "fit", raising(KeyboardInterrupt()))
    assert run(capsys, "train", "m", "train.svm") == (cli.INTERRUPTED, "", "sl1max: interrupted\n")
    monkeypatch.setattr(sl1max, "fit", raising(MemoryError("lower n_jobs")))
    check_complaint(capsys, "train", "m", "train.svm", says="not enough memory: lower n_jobs")
    assert not Path("m").exists()


def test_checkpoint(files, capsys, monkeypatch):
    train = ("train", "m", "train.svm", "--label-mode", "independent", "--checkpoint", "m.ckpt")
    assert run(capsys, *train)[0] == 0
    first = Path("m").read_bytes()
    assert run(capsys, *train)[0] == 0
    assert Path("m").read_bytes() == first
    check_complaint(capsys, *train, "--beta", "2", says="m.ckpt: the checkpoint is of another fit: beta is 0.5 there")
    check_complaint(capsys, *train, "--learner", "adaboost", says="--checkpoint is for --learner maxent, not adaboost")

    def interrupted(*_, **__):
        raise KeyboardInterrupt

    monkeypatch.setattr(sl1max, "fit", interrupted)
    says = "sl1max: what is finished is in m.ckpt: the same command goes on\nsl1max: interrupted\n"
    assert run(capsys, *train) == (cli.INTERRUPTED, "", says)


def test_classes_that_fail(files, capsys, monkeypatch):
    """The others are saved; without any others it is an error."""
    break_classes(monkeypatch, MemoryError("1 GiB"), [1])
    code, _, err = run(capsys, "train", "part", "train.svm", "--label-mode", "independent")
    assert code == NOT_CONVERGED
    assert err.startswith("sl1max: warning: not enough memory to train class 1 (MemoryError: 1 GiB): lower n_jobs")
    assert sl1max.load("part").unfinished.tolist() == [1]
    break_classes(monkeypatch, MemoryError("1 GiB"), [None])
    check_complaint(capsys, "train", "m", "train.svm", says="not enough memory to train the model (MemoryError: 1 GiB)")


def test_save_interrupted(files, capsys, monkeypatch):
    break_classes(monkeypatch, KeyboardInterrupt(), [1])
    train = ("train", "part", "train.svm", "--label-mode", "independent")
    assert run(capsys, *train)[0] == cli.INTERRUPTED
    assert not Path("part").exists()
    code, _, err = run(capsys, *train, "--save-interrupted")
    assert code == NOT_CONVERGED and "sl1max.fit was interrupted: " in err
    assert len(sl1max.load("part").unfinished) > 0


def test_warnings_are_left_as_they_were(files, capsys):
    before = warnings.showwarning, list(warnings.filters)
    run(capsys, "train", "m.sl1max", "train.svm")
    assert (warnings.showwarning, list(warnings.filters)) == before


# As a process


def test_as_a_module(files):
    code = (
        "import runpy, sys; sys.argv = ['sl1max', 'evaluate', 'model.sl1max', 'test.svm', '--json']\n"
        "try: runpy.run_module('sl1max', run_name='__main__')\n"
        "except SystemExit as stop: code = stop.code\n"
        "loaded = {name.split('.')[0] for name in sys.modules}\n"
        "assert not loaded & {'sklearn', 'matplotlib', 'pandas'}, loaded\n"
        "sys.exit(code)"
    )
    done = subprocess.run([sys.executable, "-P", "-c", code], capture_output=True, text=True, check=False)
    assert (done.returncode, done.stderr) == (0, "")
    assert json.loads(done.stdout)["examples"] == 20


def test_a_reader_that_has_seen_enough(files):
    X, y = make_data(n_samples=30_000)
    write_svmlight(X, y, "long.svm")
    command = [sys.executable, "-P", "-m", "sl1max", "predict", "model.sl1max", "long.svm"]
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE) as process:
        process.stdout.readline()
        process.stdout.close()
        assert process.stderr.read() == b""
    assert process.returncode == 0


# Learners


def test_elastic_net_and_signs(files, capsys):
    X, y = make_data()
    for given, options in (
        (["--beta", 0.3, "--l2", 0.4], {"beta": 0.3, "l2": 0.4}),
        (["--C", 2, "--l1-ratio", 0.25], {"C": 2, "l1_ratio": 0.25}),
        (["--positive"], {"positive": True}),
    ):
        run_json(capsys, "train", "m.sl1max", "train.svm", "--force", *given)
        model, expected = sl1max.load("m.sl1max"), sl1max.fit(X[:60], y[:60], **options)
        np.testing.assert_array_equal(model.weights.toarray(), expected.weights.toarray())
        assert model.penalty == expected.penalty
    report = run_json(capsys, "train", "m.sl1max", "train.svm", "--force", "--cv", "--betas", 3, "--l1-ratio", 0.5)
    assert report
    assert sl1max.load("m.sl1max").penalty["l2"] > 0


@pytest.mark.parametrize(
    "given, message",
    [
        (["--l1-ratio", 0.5], "--l1-ratio divides the strength 1/C"),
        (["--C", 1, "--l1-ratio", 0.5, "--l2", 1], "give one of them"),
        (["--l1-ratio", 2], "--l1-ratio 2 must be a number from 0 to 1"),
        (["--l2", -1], "--l2 -1 must be a finite number >= 0"),
        (["--learner", "svm", "--l2", 1], "--l2 is for --learner maxent, not svm"),
    ],
)
def test_messages_of_the_elastic_net(files, capsys, given, message):
    code, _, err = run(capsys, "train", "m.sl1max", "train.svm", *given)
    assert code != 0 and message in err


def test_adaboost(files, capsys):
    report = run_json(capsys, "train", "boosted", "train.svm", "--learner", "adaboost", "--n-estimators", 40)
    assert (report["learner"], report["solver"]) == ("adaboost", "adaboost")
    X, y = make_data()
    estimator = sl1max.AdaBoostClassifier(n_estimators=40).fit(X[:60], y[:60])
    np.testing.assert_array_equal(sl1max.load("boosted").predict_proba(X), estimator.model_.predict_proba(X))
    assert run_json(capsys, "evaluate", "boosted", "test.svm")["error"] < 0.5
    assert run(capsys, "predict", "boosted", "test.svm", "--proba")[0] == 0


def test_svm(files, capsys):
    report = run_json(capsys, "train", "machine", "train.svm", "--learner", "svm", "--C", 0.1)
    assert (report["learner"], report["objective"]) == ("svm", None)
    X, y = make_data()
    estimator = sl1max.get_learner("svm", C=0.1, random_state=0).fit(X[:60], y[:60])
    expected = [str(label) for label in estimator.predict(X[60:])]
    assert run(capsys, "predict", "machine", "test.svm")[1].split() == expected


def test_auto(files, capsys):
    report = run_json(capsys, "train", "best", "train.svm", "--learner", "auto", "--folds", 2)
    assert report["chosen"]["learner"] == report["learner"]
    assert report["chosen"]["score"] == max(row["score"] for row in report["tried"])
    assert {row["learner"] for row in report["tried"]} == {"maxent", "adaboost", "svm"}
    code, out, _ = run(capsys, "train", "best", "train.svm", "--learner", "auto", "--folds", 2)
    assert code == 0 and "tried:\nlearner   settings" in out and "chosen:\n" in out


def test_auto_with_validation_examples(files, capsys):
    args = ("train", "best", "train.svm", "--learner", "auto", "--validation", "test.svm")
    report = run_json(capsys, *args)
    X, y = make_data()
    auto = sl1max.get_learner("auto", random_state=0).fit(X[:60], y[:60], X_val=X[60:], y_val=y[60:])
    assert report["chosen"] == {"row": auto.best_index_, "score": auto.best_score_} | auto.best_params_
    assert report["n_examples"] == 60
    check_complaint(capsys, *args, "--folds", "3", says="--folds is for cross-validation")
    check_complaint(capsys, *args[:3], "--validation", "x", says="--validation is for --learner auto, not maxent")
    check_complaint(capsys, *args[:-1], "nowhere.svm", says="nowhere.svm: No such file")
    Path("sets.svm").write_text("0,1 1:1\n2 2:1\n")
    check_complaint(capsys, *args[:-1], "sets.svm", says="sets.svm: its examples have sets of labels")
    Path("wide.svm").write_text("0 99:1\n")
    check_complaint(capsys, *args[:-1], "wide.svm", says="wide.svm:1: ")


def test_auto_with_validation_sets(tmp_path, capsys, monkeypatch):
    """The columns of an indicator are matched by their labels, and one that training lacks is an error everywhere."""
    monkeypatch.chdir(tmp_path)
    X, y = make_data()
    write_svmlight(X[:60], 10 * y[:60] + 10, "train.svm")
    write_svmlight(X[60:], np.where(y[60:] == 1, 99, 10 * y[60:] + 10), "test.svm")
    args = ("train", "best", "train.svm", "--label-sets", "--learner", "auto", "--validation", "test.svm", "--json")
    code, out, err = run(capsys, *args)
    assert code == 0 and err == "sl1max: warning: test.svm: labels that the model has not seen: 99\n"
    model, score = sl1max.load("best"), json.loads(out)["chosen"]["score"]
    top = model.decision_function(X[60:]).argmax(axis=1)
    assert score == pytest.approx(np.mean((top == y[60:]) & (y[60:] != 1)))


def test_more_folds_than_examples(files, capsys):
    args = ("train", "best", "train.svm", "--learner", "auto", "--folds", 50)
    check_complaint(capsys, *args, says="--folds 50 needs as many examples, but train.svm has no class of more than 2")
    says = "--folds 99 needs as many examples, but train.svm has 60: lower it"
    check_complaint(capsys, *args[:-1], 99, "--label-sets", says=says)
    X, y = make_data()
    write_svmlight(X, np.where(np.arange(80) < 2, 7, y), "rare.svm")
    code, _, err = run(capsys, "train", "best", "rare.svm", "--learner", "auto", "--folds", 3)
    says = "--folds 3: class 7 of rare.svm has 2 examples only, so that some folds have none"
    assert (code, err) == (0, f"sl1max: warning: {says}\n")


def test_label_sets_of_other_learners(tmp_path, capsys):
    X, y = make_data()
    Y = sparse.csr_array(np.eye(3)[y])
    path = tmp_path / "sets.svm"
    write_svmlight(X, Y, path)
    for learner in ("adaboost", "svm"):
        model = tmp_path / learner
        run_json(capsys, "train", model, path, "--label-sets", "--learner", learner)
        assert sl1max.load(model).trained_on_indicator


def test_options_of_another_learner(files, capsys):
    for learner, option, owner in [
        ("svm", ["--beta", "0.3"], "maxent"),
        ("maxent", ["--n-estimators", "5"], "adaboost"),
        ("auto", ["--C", "5"], "maxent or svm"),
    ]:
        args = ["train", "other", "train.svm", "--learner", learner, *option]
        check_complaint(capsys, *args, says=f"{option[0]} is for --learner {owner}, not {learner}")
