"""Files of texts, and vectorisers that are kept with a model."""

import bz2
import io
import json

import numpy as np
import pytest

import sl1max
from sl1max.exceptions import ModelFileError
from sl1max.model import _io
from sl1max.text import attach_vectorizer, get_vectorizer, read_texts, text_format

TEXTS = ["Wheat and maize, maize", "wheat ripens", "crude OIL", "oil and gas", "the price of oil", "maize prices"]
TOPICS = ["grain", "grain", "fuel", "fuel", "fuel", "grain"]


@pytest.fixture(scope="module")
def sklearn_text():
    return pytest.importorskip("sklearn.feature_extraction.text")


def read(content, **options):
    return read_texts(io.BytesIO(content), **options)


def fit_texts(vectorizer):
    return attach_vectorizer(sl1max.fit(vectorizer.fit_transform(TEXTS), TOPICS, beta=0.1), vectorizer)


# Vectorisers


@pytest.mark.parametrize(
    ("name", "settings"),
    [
        ("CountVectorizer", {}),
        ("CountVectorizer", {"binary": True, "ngram_range": (1, 2), "min_df": 2}),
        ("CountVectorizer", {"analyzer": "char_wb", "ngram_range": (2, 3), "lowercase": False}),
        ("CountVectorizer", {"stop_words": ["the", "of"], "dtype": np.float32}),
        ("TfidfVectorizer", {"sublinear_tf": True, "stop_words": "english", "max_features": 5}),
        ("TfidfVectorizer", {"use_idf": False, "norm": "l1", "strip_accents": "unicode"}),
        ("TfidfVectorizer", {"token_pattern": r"\w+", "smooth_idf": False}),
    ],
)
def test_vectorizer_comes_back_from_a_file(sklearn_text, tmp_path, name, settings):
    vectorizer = getattr(sklearn_text, name)(**settings)
    model = fit_texts(vectorizer)
    model.save(tmp_path / "model")
    loaded = sl1max.load(tmp_path / "model")
    again = get_vectorizer(loaded)
    assert type(again) is type(vectorizer) and again.dtype == vectorizer.dtype
    new = [*TEXTS, "new words of wheat, gas and gas", ""]
    expected = vectorizer.transform(new)
    found = again.transform(new)
    np.testing.assert_array_equal(found.toarray(), expected.toarray())
    np.testing.assert_array_equal(loaded.predict_proba(found), model.predict_proba(expected))
    np.testing.assert_array_equal(loaded.feature_names, vectorizer.get_feature_names_out())
    assert loaded.top_features("grain", 1)["feature"].dtype.kind == "O"


def test_vectorizers_that_cannot_be_kept(sklearn_text):
    model = sl1max.fit(np.eye(2), [0, 1])
    with pytest.raises(TypeError, match="must be one of CountVectorizer and TfidfVectorizer"):
        attach_vectorizer(model, sklearn_text.HashingVectorizer())
    counter = sklearn_text.CountVectorizer(tokenizer=str.split, token_pattern=None).fit(["a b"])
    with pytest.raises(ValueError, match="tokenizer of the vectoriser is a function"):
        attach_vectorizer(model, counter)
    with pytest.raises(ValueError, match="the vectoriser has 3 words, but the model 2 features"):
        attach_vectorizer(model, sklearn_text.CountVectorizer().fit(["one two three"]))
    with pytest.raises(ValueError, match="the model keeps no vectoriser"):
        get_vectorizer(model)


def test_settings_that_scikit_learn_does_not_know(sklearn_text):
    model = fit_texts(sklearn_text.CountVectorizer())
    model.source["settings"]["colour"] = "red"
    with pytest.raises(ValueError, match="does not know colour of CountVectorizer"):
        get_vectorizer(model)


@pytest.mark.parametrize("change", [{"idf": np.ones(3)}, {"kind": "odd"}, {"settings": 3}, {"first_feature": 2}])
def test_impossible_sources_are_refused(sklearn_text, tmp_path, change):
    model = fit_texts(sklearn_text.TfidfVectorizer())
    model.source.update(change)
    _io.write_model(model, tmp_path / "model")
    with pytest.raises(ModelFileError, match="not a valid sl1max model"):
        sl1max.load(tmp_path / "model")


# Files


def test_formats_by_name():
    names = ["a.csv", "b.TSV", "c.jsonl.gz", "d.ndjson", "e.txt.xz", "f.svm", "g.gz"]
    assert [text_format(name) for name in names] == ["csv", "tsv", "jsonl", "jsonl", "lines", None, None]


def test_tables(tmp_path):
    content = '\ufeffid,text,label\n1,"two\nlines, ""quoted""",a\n2,,b\n'.encode()
    assert read(content, label_column="label", format="csv") == (['two\nlines, "quoted"', ""], ["a", "b"])
    assert read(b"text\tlabel\nx\ta; b\ny\t\n", label_column="label", label_separator=";", format="tsv") == (
        ["x", "y"],
        [["a", "b"], []],
    )
    (tmp_path / "t.csv.bz2").write_bytes(bz2.compress(b"words\n" + b"x" * 200_000 + b"\n"))
    assert len(read_texts(tmp_path / "t.csv.bz2", text_column="words").texts[0]) == 200_000


def test_json_lines():
    rows = [{"text": "x", "label": 3}, {"text": "y", "label": [1, 2]}]
    content = "\n\n".join(map(json.dumps, rows)).encode()
    assert read(content, label_column="label", format="jsonl") == (["x", "y"], [[3], [1, 2]])
    assert read(b"one text\nand another\n", format="lines") == (["one text", "and another"], None)


@pytest.mark.parametrize(
    ("content", "options", "says"),
    [
        (b"text\n\xff\n", {"format": "csv"}, "<stream>:2: the text is not UTF-8"),
        (b"words\nx\n", {"format": "csv"}, "<stream>:2: there is no column 'text'; there are words"),
        (b"text,label\nx\n", {"format": "csv", "label_column": "label"}, "<stream>:2: 'label' is missing"),
        (b"text\nx,y\n", {"format": "csv"}, "<stream>:2: more cells than the 1 columns"),
        (b'text\n"x\n', {"format": "csv"}, "<stream>:1: unexpected end of data"),
        (b"text\n", {"format": "csv"}, "<stream>: there are no texts"),
        (b"text,label\nx,\n", {"format": "csv", "label_column": "label"}, "<stream>:2: the label is empty"),
        (b"text\nx\n", {}, "the ending of the name is none of .csv"),
        (b"text\nx\n", {"format": "odd"}, "format='odd' is unknown"),
        (b"x\n", {"format": "lines", "label_column": "y"}, "plain lines of text have no labels"),
        (b"{\n", {"format": "jsonl"}, "<stream>:1: not JSON: "),
        (b"\n3\n", {"format": "jsonl"}, "<stream>:2: not a JSON object"),
        (b"[" * 100_000, {"format": "jsonl"}, "<stream>:1: not JSON: "),
        (b'{"text": 3}', {"format": "jsonl"}, "<stream>:1: 'text' is 3, not a text"),
        (b'{"text": "x", "label": 0.5}', {"format": "jsonl", "label_column": "label"}, "the label 0.5 is neither"),
        (b"", {"format": "csv"}, "the file is empty"),
        (
            b'{"text": "x", "label": 1}\n{"text": "x", "label": "a"}',
            {"format": "jsonl", "label_column": "label"},
            "<stream>: some labels are text and others integers",
        ),
    ],
)
def test_bad_files(content, options, says):
    with pytest.raises(ValueError) as caught:
        read(content, **options)
    assert says in str(caught.value)
