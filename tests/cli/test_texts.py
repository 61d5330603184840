"""The command on texts, on standard input, with class weights and with a beta from cross-validation."""

import csv
import io
import json
import sys

import numpy as np
import pytest

import sl1max
from sl1max.cli import main
from sl1max.svmlight import read_svmlight, write_svmlight
from sl1max.text import get_vectorizer

pytest.importorskip("sklearn")
WORDS = {"grain": ["wheat", "maize", "corn"], "fuel": ["oil", "crude", "gas"], "money": ["bank", "rate", "yen"]}


@pytest.fixture
def files(tmp_path, monkeypatch):
    """A folder with train.csv, test.jsonl, sets.jsonl and train.svm, whose labels are words; the current one."""
    monkeypatch.chdir(tmp_path)
    rng = np.random.default_rng(0)
    topics = [str(rng.choice(list(WORDS))) for _ in range(90)]
    texts = [" ".join([*rng.choice(WORDS[topic], 2), *rng.choice(["the", "of", "and"], 4)]) for topic in topics]
    with open("train.csv", "w", newline="") as stream:
        csv.writer(stream).writerows([["body", "topic"], *zip(texts[:60], topics, strict=False)])
    with open("test.jsonl", "w") as stream:
        stream.writelines(
            json.dumps({"body": text, "topic": topic}) + "\n"
            for text, topic in zip(texts[60:], topics[60:], strict=True)
        )
    with open("sets.jsonl", "w") as stream:
        stream.writelines(
            json.dumps({"text": text, "label": [topic] + ["of"] * ("of" in text)}) + "\n"
            for text, topic in zip(texts, topics, strict=True)
        )
    X = np.array([[word in text.split() for found in WORDS.values() for word in found] for text in texts], float)
    write_svmlight(X, list(map(list(WORDS).index, topics)), "numbers.svm")
    lines = (tmp_path / "numbers.svm").read_text().splitlines()
    named = [f"{list(WORDS)[int(line[0])]}{line[1:]}" for line in lines]
    (tmp_path / "words.svm").write_text("\n".join(named) + "\n")
    return tmp_path


def run(capsys, *args):
    """Exit code, standard output and standard error of one call."""
    capsys.readouterr()
    code = main([str(arg) for arg in args])
    return code, *capsys.readouterr()


def run_json(capsys, *args):
    code, out, err = run(capsys, *args, "--json")
    assert (code, err) == (0, "")
    return json.loads(out)


def complain(capsys, *args, says):
    code, out, err = run(capsys, *args)
    assert (code, out) == (2, "") and err.count("\n") == 1
    assert says in err


def give(monkeypatch, text):
    monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(text.encode())))


COLUMNS = ("--text-column", "body", "--label-column", "topic")


@pytest.mark.parametrize("vectorizer", ["binary", "count", "tfidf"])
def test_texts(files, capsys, monkeypatch, vectorizer):
    report = run_json(capsys, "train", "news", "train.csv", *COLUMNS, "--vectorizer", vectorizer, "--ngrams", 2)
    assert report["n_classes"] == 3 and report["n_examples"] == 60
    model = sl1max.load("news")
    assert get_vectorizer(model).ngram_range == (1, 2)
    held = [json.loads(line) for line in (files / "test.jsonl").read_text().splitlines()]
    expected = model.predict(get_vectorizer(model).transform([row["body"] for row in held])).tolist()
    code, out, err = run(capsys, "predict", "news", "test.jsonl")
    assert (code, out.split(), err) == (0, expected, "")
    report = run_json(capsys, "evaluate", "news", "test.jsonl", "--label-column", "topic")
    assert report["error"] == pytest.approx(np.mean(np.array(expected) != [row["topic"] for row in held]))
    assert report["error"] < 0.1
    give(monkeypatch, "the wheat of maize\ncrude oil\n")
    assert run(capsys, "predict", "news", "-")[1].split() == ["grain", "fuel"]
    give(monkeypatch, "body\nbank of yen\n")
    assert run(capsys, "predict", "news", "-", "--text-format", "csv", "--output", "-")[1] == "money\n"
    code, out, _ = run(capsys, "inspect", "news", "--class", "grain", "--top", "3")
    assert code == 0 and {word for found in WORDS.values() for word in found} & set(
        out.split("class grain:")[1].split()
    )


def test_label_sets_of_texts(files, capsys):
    report = run_json(capsys, "train", "sets", "sets.jsonl", "--holdout", "0.2", "--min-df", 2)
    assert report["label_sets"] and report["n_classes"] == 4 and report["holdout"]["examples"] == 18
    assert run_json(capsys, "evaluate", "sets", "sets.jsonl")["f_measure"] > 0.9
    (files / "sets.tsv").write_text("text\tlabel\nthe wheat\tgrain;of\noil and\tfuel\n")
    assert run_json(capsys, "evaluate", "sets", "sets.tsv", "--label-separator", ";")["examples"] == 2


def test_label_sets_on_request(files, capsys):
    report = run_json(capsys, "train", "sets", "train.csv", *COLUMNS, "--label-sets")
    assert report["label_sets"] and report["n_classes"] == 3


def test_auto_on_texts(files, capsys):
    args = ("--learner", "auto", "--validation", "test.jsonl", *COLUMNS)
    report = run_json(capsys, "train", "best", "train.csv", *args)
    assert report["chosen"]["score"] == max(row["score"] for row in report["tried"])


def test_complaints_about_texts(files, capsys, monkeypatch):
    run_json(capsys, "train", "news", "train.csv", *COLUMNS)
    run_json(capsys, "train", "features", "words.svm")
    complain(capsys, "train", "m", "train.csv", says="train.csv:2: there is no column 'text'; there are body, topic")
    complain(capsys, "train", "m", "train.csv", "--labels", "y.npy", says="a file of texts has a column of labels")
    complain(capsys, "predict", "features", "train.csv", says="train.csv: the model was trained on features, not on")
    complain(capsys, "evaluate", "features", "train.csv", says="train.csv: the model was trained on features, not on")
    complain(
        capsys,
        "predict",
        "news",
        "words.svm",
        says="words.svm: the name does not end in .csv, .tsv, .jsonl, .ndjson, .txt: give --text-format",
    )
    complain(capsys, "evaluate", "news", "-", says="texts from standard input need --text-format")
    (files / "empty.csv").write_text("text,label\n,a\n,b\n")
    complain(capsys, "train", "m", "empty.csv", says="empty.csv: empty vocabulary")
    complain(capsys, "train", "-", "train.csv", *COLUMNS, says="a model cannot be written to standard output")
    monkeypatch.setitem(sys.modules, "sklearn.feature_extraction", None)
    complain(capsys, "train", "m", "train.csv", *COLUMNS, says="training on texts needs scikit-learn >= 1.6")


def test_texts_of_another_name(files, capsys):
    (files / "train.csv").rename("train.dat")
    assert run_json(capsys, "train", "news", "train.dat", "--text", *COLUMNS)["n_classes"] == 3
    report = run_json(capsys, "evaluate", "news", "train.dat", "--text-format", "csv", "--label-column", "topic")
    assert report["examples"] == 60


def test_labels_that_are_words(files, capsys):
    report = run_json(capsys, "train", "named", "words.svm", "--holdout", "0.1")
    assert report["holdout"]["unseen_labels"] == []
    run_json(capsys, "train", "numbered", "numbers.svm", "--holdout", "0.1")
    named, numbered = sl1max.load("named"), sl1max.load("numbered")
    assert named.classes.tolist() == sorted(WORDS)
    order = [list(WORDS).index(label) for label in named.classes]
    np.testing.assert_allclose(named.weights.toarray(), numbered.weights.toarray()[order], atol=1e-3)
    assert set(run(capsys, "predict", "named", "words.svm")[1].split()) == set(WORDS)
    assert run_json(capsys, "evaluate", "named", "words.svm")["error"] < 0.1
    (files / "odd.svm").write_text("1 1:1\ngrain 2:1\n")
    code, out, err = run(capsys, "evaluate", "named", "odd.svm", "--json")
    assert code == 0 and json.loads(out)["unseen_labels"] == ["1"] and "has not seen: 1" in err
    complain(capsys, "train", "m", "odd.svm", says="odd.svm:2: label 'grain' is not a number")


def test_standard_input(files, capsys, monkeypatch):
    text = (files / "words.svm").read_text()
    give(monkeypatch, text)
    run_json(capsys, "train", "streamed", "-")
    run_json(capsys, "train", "named", "words.svm")
    assert (files / "streamed").read_bytes() == (files / "named").read_bytes()
    expected = run(capsys, "predict", "named", "words.svm")
    give(monkeypatch, text)
    assert run(capsys, "predict", "named", "-") == expected
    give(monkeypatch, text)
    assert run_json(capsys, "evaluate", "named", "-") == run_json(capsys, "evaluate", "named", "words.svm")
    give(monkeypatch, "grain 1:x\n")
    complain(capsys, "predict", "named", "-", says="error: <stream>:1: ")


def test_features_are_numbered_as_in_the_file(files, capsys):
    X, y, _ = read_svmlight("numbers.svm")
    write_svmlight(X, y, "zero.svm", zero_based=True)
    for options, first in ((("numbers.svm",), 1), (("zero.svm", "--zero-based"), 0)):
        run_json(capsys, "train", "model", *options)
        model = sl1max.load("model")
        report = run_json(capsys, "inspect", "model", "--class", "0", "--top", 1)
        (top,) = report["top_features"][0]["features"]
        assert top["feature"] == model.top_features(0, 1)["feature"][0] + first
        assert report["first_feature"] == first
        assert run(capsys, "inspect", "model", "--class", "0", "--top", "1")[1].split()[-2] == str(top["feature"])
        expected = run(capsys, "predict", "model", options[0])[1].split()
        assert expected == [str(label) for label in model.predict(X).astype(int)]
    assert run_json(capsys, "inspect", "model", "--zero-based")["first_feature"] == 0
    sl1max.fit(X, y).save("python")
    assert run_json(capsys, "inspect", "python")["first_feature"] == 0


def test_class_weights(files, capsys):
    X, y, _ = read_svmlight("numbers.svm")
    run_json(capsys, "train", "weighted", "numbers.svm", "--class-weight", "1=3", "--class-weight", "0=0.5")
    expected = sl1max.fit(X, y, sample_weight=np.array([0.5, 3, 1])[y.astype(int)])
    np.testing.assert_array_equal(sl1max.load("weighted").weights.toarray(), expected.weights.toarray())
    run_json(capsys, "train", "balanced", "words.svm", "--class-weight", "balanced")
    np.testing.assert_allclose(sl1max.load("balanced").class_prior, 1 / 3)
    expected = sl1max.MaxentClassifier(class_weight="balanced").fit(X, y).model_.class_prior
    np.testing.assert_allclose(expected, 1 / 3)
    run_json(capsys, "train", "boosted", "words.svm", "--class-weight", "grain=2", "--learner", "adaboost")
    for given, says in (
        ("7=2", "there is no class '7'; it is LABEL=WEIGHT or balanced"),
        ("heavy", "there is no class ''"),
        ("1=x", "--class-weight 1=x: the weight must be a positive number"),
        ("1=0", "the weight must be a positive number"),
        ("1=inf", "the weight must be a positive number"),
    ):
        complain(capsys, "train", "m", "numbers.svm", "--class-weight", given, says=says)
    complain(capsys, "train", "m", "sets.jsonl", "--class-weight", "balanced", says="for examples of one class each")


def test_beta_by_cross_validation(files, capsys):
    X, y, _ = read_svmlight("numbers.svm")
    options = ("--cv", "--folds", 3, "--betas", 4, "--scoring", "neg_log_loss")
    report = run_json(capsys, "train", "m", "numbers.svm", *options)
    search = sl1max.MaxentClassifierCV(betas=4, cv=3, scoring="neg_log_loss").fit(X, y)
    assert report["chosen"]["beta"] == report["beta"] == search.beta_
    assert [row["beta"] for row in report["tried"]] == search.cv_results_["param_beta"].tolist()
    np.testing.assert_array_equal(sl1max.load("m").weights.toarray(), search.model_.weights.toarray())
    plainer = run_json(capsys, "train", "m", "numbers.svm", *options, "--one-standard-error")
    assert plainer["beta"] >= report["beta"]
    code, out, _ = run(capsys, "train", "m", "numbers.svm", *options)
    assert code == 0 and "tried:\n" in out and "chosen:\n" in out
    for extra in (["--beta", "1"], ["--C", "1"], ["--checkpoint", "c"], ["--save-interrupted"]):
        complain(capsys, "train", "m", "numbers.svm", "--cv", *extra, says=f"{extra[0]} cannot be used with --cv")
    complain(capsys, "train", "m", "numbers.svm", "--folds", "3", says="--folds needs --cv")
    complain(capsys, "train", "m", "numbers.svm", "--cv", "--betas", "1", says="--betas 1 must be at least 2")
    complain(capsys, "train", "m", "numbers.svm", "--cv", "--scoring", "odd", says="odd")


def test_report(files, capsys):
    pytest.importorskip("matplotlib")
    run_json(capsys, "train", "news", "train.csv", *COLUMNS)
    assert run(capsys, "report", "news", "test.jsonl", "news.html", "--label-column", "topic") == (0, "", "")
    assert "wheat" in (files / "news.html").read_text() and "Calibration" in (files / "news.html").read_text()
    run_json(capsys, "train", "sets", "sets.jsonl")
    assert run(capsys, "report", "sets", "sets.jsonl", "sets.html", "--title", "Sets & more") == (0, "", "")
    assert "<h1>Sets &amp; more</h1>" in (files / "sets.html").read_text()
    run_json(capsys, "train", "numbered", "numbers.svm")
    assert run(capsys, "report", "numbered", "alone.html") == (0, "", "")
    assert "feature 1<" in (files / "alone.html").read_text()
    (files / "names.txt").write_text("".join(f"{word}\n" for found in WORDS.values() for word in found))
    names = ("--feature-names", "names.txt")
    assert run(capsys, "report", "numbered", "numbers.svm", "alone.html", *names) == (0, "", "")
    assert "wheat" in (files / "alone.html").read_text()
    (files / "sets.svm").write_text("0,1 1:1\n")
    complain(capsys, "report", "numbered", "sets.svm", "x.html", says="its examples have sets of labels")
    complain(capsys, "report", "numbered", "numbers.svm", "numbers.svm", says="the command reads this file")
    complain(capsys, "report", "numbered", "none.svm", "x.html", says="none.svm: No such file")
    (files / "notes.txt").write_text("notes\n")
    complain(capsys, "report", "numbered", "notes.txt", says="this file is there and is not an HTML page")
