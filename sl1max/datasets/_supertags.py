"""A public stand-in for the paper's SuperTags, made from a Universal Dependencies treebank of Icelandic."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator
from importlib import resources

import numpy as np
import scipy.sparse as sp

from sl1max.datasets._store import Dataset, Remote, Source, load_or_make, words

_COMMIT = "ca72a59affd87c4b7b9067ae56efa7a694a7b4c4"
_REPOSITORY = "UniversalDependencies/UD_Icelandic-IcePaHC"
_FOLDER = "not-to-release/CoNLLU"

SIZES = {
    "X_train": 938455,
    "y_train": 938455,
    "sentence_train": 938455,
    "X_test": 46433,
    "y_test": 46433,
    "sentence_test": 46433,
    "labels": 4755,
    "features": None,
}
# The last part of each text is for testing.
_TEST_SHARE = 0.0485
# Minimum number of training tokens of a feature.
_MIN_TOKENS = 5
_CORE_RELATIONS = frozenset({"nsubj", "csubj", "obj", "iobj", "ccomp", "xcomp", "expl", "cop"})
_WINDOW = 3

_DESCRIPTION = """\
Supertags made from UD_Icelandic-IcePaHC (Universal Dependencies, CC BY-SA 4.0), as large and as sparse as the
paper's SuperTags, which come from the Penn Treebank and are not public. 938,455 training and 46,433 test
tokens, 4755 labels. A label is what an elementary tree says of its anchor: part of speech (m: middle voice),
relation, side of the head, core dependents left and right. Features are binary and of the surface only: the
words at -3 to +3, prefixes, suffixes and shape of the word, suffixes of its neighbours; those in at least 5
training tokens."""


def _source():
    manifest = resources.files("sl1max.datasets").joinpath("data", "supertags.sha256").read_text("utf-8")
    base = f"https://raw.githubusercontent.com/{_REPOSITORY}/{_COMMIT}/{_FOLDER}"
    pairs = (line.split("  ", 1) for line in manifest.splitlines())
    remotes = tuple(Remote(file, sha256, (f"{base}/{file}",)) for sha256, file in pairs)
    return Source(
        title="UD_Icelandic-IcePaHC (supertags)",
        folder="supertag",
        texts=tuple(remote.file for remote in remotes),
        remotes=remotes,
        by_hand=f"the .conllu files of https://github.com/{_REPOSITORY}/tree/{_COMMIT}/{_FOLDER}",
    )


SOURCE = _source()


def fetch_supertags(*, download_if_missing: bool = True) -> Dataset:
    """Supertags: 938,455 + 46,433 tokens, 4755 classes, 95,706 features.

    Read from ``$SL1MAX_DATA/supertag`` or the cache folder, otherwise downloaded (80 MB). The features are stored in
    the cache folder.

    Parameters
    ----------
    download_if_missing : bool, default=True
        Download missing data; otherwise raise an error.

    Returns
    -------
    Dataset
        ``y_test`` is -1 for the 94 tokens whose label does not occur in training. ``extras``: "sentence_train"
        and "sentence_test", the sentence of every token.

    Examples
    --------
    >>> from sl1max.datasets import fetch_supertags
    >>> data = fetch_supertags()  # doctest: +SKIP
    >>> data.X_train.shape  # doctest: +SKIP
    (938455, 95706)
    """
    arrays = load_or_make(SOURCE, "", arrays_of, SIZES, download_if_missing)
    return Dataset(
        name="SuperTags (IcePaHC)",
        X_train=arrays["X_train"],
        y_train=arrays["y_train"].astype(np.int64),
        X_test=arrays["X_test"],
        y_test=arrays["y_test"].astype(np.int64),
        feature_names=arrays["features"],
        class_names=arrays["labels"],
        extras={name: arrays[name] for name in ("sentence_train", "sentence_test")},
        description=_DESCRIPTION,
    )


def arrays_of(texts) -> dict:
    """The matrices of both parts, their labels and names, from the CoNLL-U files."""
    numbers = _Numbers()
    before, after = [numbers["<s>"]] * _WINDOW, [numbers["</s>"]] * _WINDOW
    windows, shapes, labels, sentence_sizes, sentence_in_test = [], [], [], [], []
    for _, content in texts:
        sentences = list(read_sentences(content.decode("utf-8")))
        n_tokens, n_before = sum(map(len, sentences)), 0
        for sentence in sentences:
            sentence_in_test.append(n_before >= n_tokens * (1 - _TEST_SHARE))
            sentence_sizes.append(len(sentence))
            n_before += len(sentence)
            forms = [numbers[token[1].lower()] for token in sentence]
            padded = before + forms + after
            windows += [padded[i : i + 2 * _WINDOW + 1] for i in range(len(forms))]
            shapes += [word_shape(token[1], i == 0) for i, token in enumerate(sentence)]
            labels += sentence_labels(sentence)
    sentence_of = np.repeat(np.arange(len(sentence_sizes), dtype=np.int32), sentence_sizes)
    test = np.repeat(sentence_in_test, sentence_sizes)
    classes = sorted({label for label, held_out in zip(labels, test, strict=True) if not held_out})
    codes = {label: c for c, label in enumerate(classes)}
    y = np.array([codes.get(label, -1) for label in labels], dtype=np.int32)
    X, features = _make_matrix(np.array(windows, dtype=np.int32), list(numbers), shapes, ~test)
    return {
        "X_train": X[np.flatnonzero(~test)],
        "X_test": X[np.flatnonzero(test)],
        "y_train": y[~test],
        "y_test": y[test],
        "sentence_train": sentence_of[~test],
        "sentence_test": sentence_of[test],
        "labels": words(classes),
        "features": words(features),
    }


class _Numbers(defaultdict):
    """A number for every word, by first appearance."""

    def __missing__(self, word):
        self[word] = len(self)
        return self[word]


def read_sentences(conllu: str) -> Iterator[list[list[str]]]:
    """The sentences of a CoNLL-U text, each a list of the fields of its words; without multi-word tokens."""
    for block in conllu.split("\n\n"):
        rows = [line.split("\t") for line in block.split("\n") if line and not line.startswith("#")]
        sentence = [fields for fields in rows if fields[0].isdigit()]
        if sentence:
            yield sentence


def sentence_labels(sentence) -> list[str]:
    """The supertag of every word, such as ``VERB/conj/L/nsubj_obj+xcomp``."""
    heads = [int(token[6]) - 1 for token in sentence]
    relations = [token[7].partition(":")[0] for token in sentence]
    left: defaultdict[int, list[str]] = defaultdict(list)
    right: defaultdict[int, list[str]] = defaultdict(list)
    for i, head in enumerate(heads):
        if head >= 0 and relations[i] in _CORE_RELATIONS:
            (left if i < head else right)[head].append(relations[i])
    labels = []
    for i, (token, head) in enumerate(zip(sentence, heads, strict=True)):
        voice = "m" if "Voice=Mid" in token[5] else ""
        side = "0" if head < 0 else "L" if head < i else "R"
        labels.append(f"{token[3]}{voice}/{token[7]}/{side}/{'+'.join(left[i])}_{'+'.join(right[i])}")
    return labels


def word_shape(word: str, first: bool) -> str | None:
    """Return the shape of a word; None for lower case."""
    if word.isdigit():
        return "digits"
    if any(letter.isdigit() for letter in word):
        return "hasdigit"
    if not any(letter.isalpha() for letter in word):
        return "punct"
    if word.isupper() and len(word) > 1:
        return "ALLCAPS"
    if word[0].isupper():
        return "Cap1st" if first else "Cap"
    return "hyphen" if "-" in word else None


def _suffix(length):
    return lambda word: word[-length:] if len(word) > length or word[0] == "<" else f"={word}"


def _prefix(length):
    return lambda word: word[:length] if len(word) > length or word[0] == "<" else f"={word}"


def _templates():
    """Name, relative position, and part of the word at that position."""
    for place in (0, -3, -2, -1, 1, 2, 3):
        yield f"w{place:+d}" if place else "w0", place, str
    for length in (2, 3, 4):
        yield f"suf{length}", 0, _suffix(length)
    for length in (1, 2, 3):
        yield f"pre{length}", 0, _prefix(length)
    for place in (-2, -1, 1, 2):
        yield f"suf2{place:+d}", place, _suffix(2)
    for place in (-1, 1):
        yield f"suf3{place:+d}", place, _suffix(3)


def _make_matrix(windows, vocabulary, shapes, train):
    """The feature matrix of all tokens, and the names of its columns."""
    columns: list[np.ndarray] = []
    features: list[str] = []

    def add(name, values, codes):
        counts = np.bincount(codes[train & (codes >= 0)], minlength=len(values))
        kept = np.flatnonzero(counts >= _MIN_TOKENS)
        # The last entry is for code -1: no feature.
        column = np.full(len(values) + 1, -1, dtype=np.int32)
        column[kept] = len(features) + np.arange(len(kept))
        columns.append(column[codes])
        features.extend(f"{name}={values[k]}" for k in kept)

    for name, place, part in _templates():
        parts = _Numbers()
        part_of = np.array([parts[part(word)] for word in vocabulary], dtype=np.int32)
        add(name, list(parts), part_of[windows[:, _WINDOW + place]])
    parts = _Numbers()
    codes = np.array([-1 if shape is None else parts[shape] for shape in shapes], dtype=np.int32)
    add("shape", list(parts), codes)
    # Columns increase with the template, so the indices of a row are sorted.
    indices = np.stack(columns, axis=1)
    indptr = np.concatenate([[0], np.cumsum((indices >= 0).sum(axis=1))]).astype(np.int32)
    indices = indices[indices >= 0]
    shape = (len(windows), len(features))
    return sp.csr_array((np.ones(len(indices)), indices, indptr), shape=shape), features
