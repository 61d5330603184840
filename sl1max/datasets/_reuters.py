"""Reuters-21578, Distribution 1.0: from the original SGML to the ModApte split with its 90 topics."""

from __future__ import annotations

import html
import re
from collections import Counter
from collections.abc import Callable, Iterable
from dataclasses import dataclass, replace
from functools import partial
from itertools import pairwise
from typing import Any

import numpy as np

from sl1max.datasets._porter import stem
from sl1max.datasets._store import (
    Dataset,
    Remote,
    Source,
    binary_matrix,
    load_or_make,
    make_arrays,
    make_vocabulary,
    words,
)

_ARCHIVE = Remote(
    "reuters21578.tar.gz",
    "3bae43c9b14e387f76a61b6d82bf98a4fb5d3ef99ef7e7075ff2ccbcf59f9d30",
    (
        "https://archive.ics.uci.edu/ml/machine-learning-databases/reuters21578-mld/reuters21578.tar.gz",
        "https://kdd.ics.uci.edu/databases/reuters21578/reuters21578.tar.gz",
        "http://www.daviddlewis.com/resources/testcollections/reuters21578/reuters21578.tar.gz",
    ),
)
SOURCE = Source(
    title="Reuters-21578",
    folder="reuters21578",
    texts=tuple(f"reut2-{k:03d}.sgm" for k in range(22)),
    remotes=(_ARCHIVE,),
    by_hand=f"{_ARCHIVE.file} (from {_ARCHIVE.urls[0]})\nor its files reut2-000.sgm to reut2-021.sgm",
)
SIZES = {
    "X_train": 9603,
    "Y_train": 9603,
    "ids_train": 9603,
    "X_test": 3299,
    "Y_test": 3299,
    "ids_test": 3299,
    "labels": 90,
    "features": None,
}

_DESCRIPTION = """\
Reuters-21578, Distribution 1.0. ModApte split: 9603 training and 3299 test stories, those without topics
included; the 90 topics with at least one training and one test story. Copyright of text and annotations with
Reuters Ltd.; free distribution for research purposes only; results must name the collection as above.
Text is title, dateline and body in lower case; features are binary: {making},
those in at least {min_stories} training stories."""


@dataclass(frozen=True)
class Story:
    """A story; its title, dateline and body are in lower case."""

    id: int
    split: str
    topics: frozenset[str]
    title: str
    dateline: str
    body: str

    @property
    def text(self) -> str:
        return f"{self.title} {self.dateline} {self.body}"

    @property
    def first_paragraph(self) -> str:
        """Paragraphs begin on a new line, after blanks."""
        return re.split(r"\n {2,}", self.body.strip("\n"), maxsplit=1)[0]


@dataclass(frozen=True)
class Tokenisation:
    """Function from a story to its features, and the minimum number of training stories of a feature."""

    features: Callable[[Story], Iterable[str]]
    min_stories: int
    making: str
    variant: str | None


def _words_and_pairs(story):
    tokens = re.findall(r"[a-z][a-z0-9'\-]*", story.text)
    return tokens + [f"{first}_{second}" for first, second in pairwise(tokens)]


def _stems(text):
    return [stem(token) for token in re.findall(r"[a-z0-9]+", text)]


def _stems_of_zones(story):
    """Stems of all words, and additional marked stems of the title and of the first paragraph."""
    title = [f"title:{token}" for token in _stems(story.title)]
    return _stems(story.text) + title + [f"lead:{token}" for token in _stems(story.first_paragraph)]


TOKENISATIONS = {
    "zones": Tokenisation(
        _stems_of_zones, 2, "Porter stems of all words, of title and first paragraph once more, marked", "zones"
    ),
    "unigram": Tokenisation(lambda story: _stems(story.text), 1, "Porter stems of all words and numbers", "unigram"),
    "pairs": Tokenisation(_words_and_pairs, 9, "words and pairs of neighbouring words", ""),
}


def fetch_reuters21578(
    tokenisation: str | Callable[[str], Iterable[str]] = "zones",
    *,
    min_stories: int | None = None,
    download_if_missing: bool = True,
) -> Dataset:
    """Reuters-21578, ModApte split, 90 topics, multi-label.

    Read from ``$SL1MAX_DATA/reuters21578`` or the cache folder, otherwise downloaded (8 MB, for research purposes
    only). The features are stored in the cache folder.

    Parameters
    ----------
    tokenisation : {"zones", "unigram", "pairs"} or callable, default="zones"
        "zones": Porter stems, and those of the title and of the first paragraph also as ``title:...`` and ``lead:...``,
        in at least 2 training stories (22,822 features, 105.8 per story). "unigram": the stems only, all that occur in
        training (22,225 and 79.7). "pairs": words and pairs of neighbours in at least 9
        training stories (22,472 and 126.9; the paper has 22,758 and 126.7). A function maps the lower-case text of a
        story to its features; this needs the original texts and is not stored.
    min_stories : int, optional
        Minimum number of training stories of a feature; 1 for a function.
    download_if_missing : bool, default=True
        Download missing data; otherwise raise an error.

    Returns
    -------
    Dataset
        ``extras``: "ids_train" and "ids_test", the NEWID of every story. 1833 training and 280 test stories
        have none of the 90 topics.

    Examples
    --------
    >>> from sl1max.datasets import fetch_reuters21578
    >>> data = fetch_reuters21578()  # doctest: +SKIP
    >>> data.X_train.shape, data.y_train.shape  # doctest: +SKIP
    ((9603, 22822), (9603, 90))
    """
    how = _tokenisation(tokenisation, min_stories)
    make = partial(arrays_of, how=how)
    if how.variant is None:
        arrays = make_arrays(SOURCE, make, SIZES, download_if_missing)
    else:
        arrays = load_or_make(SOURCE, how.variant, make, SIZES, download_if_missing)
    return Dataset(
        name="Reuters-21578",
        X_train=arrays["X_train"],
        y_train=arrays["Y_train"],
        X_test=arrays["X_test"],
        y_test=arrays["Y_test"],
        feature_names=arrays["features"],
        class_names=arrays["labels"],
        extras={name: arrays[name].astype(np.int64) for name in ("ids_train", "ids_test")},
        description=_DESCRIPTION.format(making=how.making, min_stories=how.min_stories),
    )


def _tokenisation(tokenisation, min_stories):
    if callable(tokenisation):
        how = Tokenisation(lambda story: tokenisation(story.text), 1, "made by a function of the user", None)
    elif tokenisation in TOKENISATIONS:
        how = TOKENISATIONS[tokenisation]
    else:
        names = ", ".join(map(repr, TOKENISATIONS))
        raise ValueError(f"tokenisation must be {names} or a function, got {tokenisation!r}")
    if min_stories is None or min_stories == how.min_stories:
        return how
    return replace(how, min_stories=min_stories, variant=None)


def read_stories(sgml: str) -> Iterable[Story]:
    """Read the stories of one SGML file that belong to ModApte: those with TOPICS="YES"."""
    for match in re.finditer(r"<REUTERS\s+([^>]*)>(.*?)</REUTERS>", sgml, re.DOTALL):
        attributes, content = _attributes(match[1]), match[2]
        if attributes["TOPICS"] == "YES":
            topics = frozenset(re.findall(r"<D>(.*?)</D>", _element(content, "TOPICS")))
            yield Story(int(attributes["NEWID"]), attributes["LEWISSPLIT"], topics, *_parts(content))


def _attributes(tag):
    return dict(re.findall(r'([A-Z\-]+)="([^"]*)"', tag))


def _element(content, tag):
    match = re.search(rf"<{tag}[^>]*>(.*?)</{tag}>", content, re.DOTALL)
    return match[1] if match else ""


def _parts(content):
    """Title, dateline and body; all of the text where it has no mark-up of its own. In lower case."""
    found = re.search(r"<TEXT([^>]*)>(.*?)</TEXT>", content, re.DOTALL)
    if found is None:
        raise ValueError("a story has no TEXT element")
    tag, text = found.groups()
    if _attributes(tag).get("TYPE") == "UNPROC":
        parts = ["", "", re.sub(r"<[^>]*>", " ", text)]
    else:
        parts = [_element(text, name) for name in ("TITLE", "DATELINE", "BODY")]
    # Numeric entities are control characters of the news wire.
    return [html.unescape(re.sub(r"&#\d+;", " ", part)).lower() for part in parts]


def arrays_of(texts, how: Tokenisation) -> dict:
    """The matrices of both parts, their labels and names, from the SGML files."""
    stories = [story for _, content in texts for story in read_stories(content.decode("latin-1"))]
    parts = {part: [s for s in stories if s.split == part.upper()] for part in ("train", "test")}
    topics = [{topic for story in stories for topic in story.topics} for stories in parts.values()]
    labels = {topic: c for c, topic in enumerate(sorted(set.intersection(*topics)))}
    rows = {part: [set(how.features(story)) for story in stories] for part, stories in parts.items()}
    n_stories = Counter(feature for row in rows["train"] for feature in row)
    vocabulary = make_vocabulary(n_stories, how.min_stories)
    arrays: dict[str, Any] = {"labels": words(labels), "features": words(vocabulary)}
    for part, stories in parts.items():
        arrays[f"X_{part}"] = binary_matrix(rows[part], vocabulary)
        arrays[f"Y_{part}"] = binary_matrix((story.topics for story in stories), labels)
        arrays[f"ids_{part}"] = np.array([story.id for story in stories])
    return arrays
