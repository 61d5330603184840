"""Tokenisations of Reuters-21578 compared on its training stories: ``ci/bench tokenisations``.

Four-fold cross-validation on the 9603 training stories, for one or several divisions into folds; test stories are
never looked at. The error is that of the top class in %, the F-measure is micro-averaged at the best threshold; beside
them the difference in error to the first tokenisation, story by story, and the standard error of this difference.
"""

import argparse
import fnmatch
import os
import re
import warnings
from collections import Counter
from functools import cache, partial

os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")  # set before numpy is imported

import numpy as np
import scipy.sparse as sp

import sl1max
from sl1max.datasets import _porter, _reuters, _store
from sl1max.metrics import optimal_f_measure

N_FOLDS = 4
MODELS = {
    "Q3(lambda^c)": {"distribution": "conditional"},
    "Q1(lambda^c)": {"distribution": "joint"},
    "Q2": {"distribution": "class-conditional"},
}
LETTERS, LETTERS_AND_DIGITS, INNER_DOTS = r"[a-z]+", r"[a-z0-9]+", r"[a-z0-9]+(?:[.,'\-/][a-z0-9]+)*"
stem = cache(_porter.stem)


def features(
    story: _reuters.Story, *, pattern=LETTERS_AND_DIGITS, stems=True, digits=None, window=0, occurrences=1,
    title=False, paragraph=False, opening=0,
) -> list[str]:  # fmt: skip
    """Extract the features of a story.

    Parameters
    ----------
    pattern : str
        Of a word.
    stems : bool
        Porter stems of the words.
    digits : str, optional
        Replacement of every digit.
    window : int
        Pairs of words that are at most so far apart.
    occurrences : int
        The second occurrence of a word is a feature of its own, and so on up to this one.
    title, paragraph : bool
        Add the words of the title, or of the first paragraph, with a mark.
    opening : int
        The same for the first so many words of the body.
    """

    def words(text):
        tokens = re.findall(pattern, text)
        if digits is not None:
            tokens = [re.sub(r"\d", digits, token) for token in tokens]
        return [stem(token) for token in tokens] if stems else tokens

    tokens = words(story.text)
    counts = Counter(tokens)
    found = [f"{word}@{k}" for word, n in counts.items() for k in range(1, min(n, occurrences) + 1)]
    for gap in range(1, window + 1):
        found += [f"{first}_{second}" for first, second in zip(tokens, tokens[gap:], strict=False)]
    found += [f"title:{word}" for word in words(story.title)] if title else []
    found += [f"lead:{word}" for word in words(story.first_paragraph)] if paragraph else []
    return found + [f"opening:{word}" for word in words(story.body)[:opening]]


# Name: the least number of training stories with a feature, options of `features`.
TOKENISATIONS = {
    "stems (unigram)": (1, {}),
    "stems, digits as #": (1, {"digits": "#"}),
    "stems and pairs": (10, {"window": 1}),
    "stems and pairs, window 2": (17, {"window": 2}),
    "stems and pairs, window 3": (24, {"window": 3}),
    "stems with inner dots, pairs": (9, {"pattern": INNER_DOTS, "window": 1}),
    "stems, 2nd occurrence": (1, {"occurrences": 2}),
    "stems, all occurrences": (3, {"occurrences": 1000}),
    "stems, opening of 40 words": (2, {"opening": 40}),
    "stems, title": (2, {"title": True}),
    "words, title": (2, {"stems": False, "title": True}),
    "stems of letters, title, 2nd occurrence": (2, {"pattern": LETTERS, "title": True, "occurrences": 2}),
    "stems and pairs, title": (10, {"window": 1, "title": True}),
    "stems, title, 2nd occurrence": (2, {"title": True, "occurrences": 2}),
    "stems, title, opening of 40 words": (2, {"title": True, "opening": 40}),
    "stems, title, first paragraph (zones)": (2, {"title": True, "paragraph": True}),
    "stems, title, first paragraph, 2nd occurrence": (3, {"title": True, "paragraph": True, "occurrences": 2}),
}


def training_stories() -> list[_reuters.Story]:
    texts = _store.raw_texts(_reuters.SOURCE, download_if_missing=True)
    stories = (story for _, text in texts for story in _reuters.read_stories(text.decode("latin-1")))
    return [story for story in stories if story.split == "TRAIN"]


def indicator_of(stories) -> sp.csr_array:
    """Indicator of the 90 topics with training and test stories."""
    names = _reuters.fetch_reuters21578("unigram").class_names
    return _store.binary_matrix((story.topics for story in stories), {name: c for c, name in enumerate(names)})


def matrix_of(rows, min_stories) -> sp.csr_array:
    """Binary features, from the set of each story."""
    n_stories = Counter(feature for row in rows for feature in row)
    return _store.binary_matrix(rows, _store.make_vocabulary(n_stories, min_stories))


def cross_validate(X, Y, seed, **options) -> tuple[np.ndarray, float]:
    """Return the error of each story (1.0 or 0.0) and the optimal F-measure."""
    folds = np.random.RandomState(seed).permutation(X.shape[0]) % N_FOLDS
    scores = np.full(Y.shape, -np.inf)
    for fold in range(N_FOLDS):
        train, held = np.flatnonzero(folds != fold), np.flatnonzero(folds == fold)
        seen = np.flatnonzero(Y[train].sum(axis=0))
        model = sl1max.fit(X[train], Y[train][:, seen], label_mode="independent", **options)
        scores[np.ix_(held, seen)] = model.decision_function(X[held])
    scores[np.isneginf(scores)] = scores[np.isfinite(scores)].min() - 1
    wrong = Y.toarray()[np.arange(len(scores)), scores.argmax(axis=1)] == 0
    return wrong.astype(float), optimal_f_measure(Y, scores)


def compare(names, models, divisions, tol):
    """Print a row for each tokenisation as it is measured."""
    stories = training_stories()
    Y, first = indicator_of(stories), {}
    print(f"| | features | per story | {' | '.join(models)} |\n|---|---:|---:|{'---:|' * len(models)}")
    for name in names:
        min_stories, options = TOKENISATIONS[name]
        X = matrix_of(list(map(set, map(partial(features, **options), stories))), min_stories)
        cells = [name, f"{X.shape[1]:,}", f"{X.nnz / X.shape[0]:.1f}"]
        for model in models:
            found = [cross_validate(X, Y, seed, tol=tol, **MODELS[model]) for seed in divisions]
            wrong = np.mean([wrong for wrong, _ in found], axis=0)
            more = 100 * (wrong - first.setdefault(model, wrong))
            f_measure = 100 * np.mean([f_measure for _, f_measure in found])
            error = more.std() / np.sqrt(len(more))
            cells.append(f"{100 * wrong.mean():.2f} / {f_measure:.2f} ({more.mean():+.2f} ± {error:.2f})")
        print(f"| {' | '.join(cells)} |", flush=True)


def main():
    parser = argparse.ArgumentParser(prog="ci/bench tokenisations", description=__doc__.split("\n")[0])
    parser.add_argument("--only", default="*", metavar="PATTERN", help="tokenisations, besides the first one (*)")
    parser.add_argument("--model", choices=MODELS, default=["Q3(lambda^c)"], nargs="+", help="Q3(lambda^c)")
    parser.add_argument("--divisions", type=int, default=[0], nargs="+", metavar="SEED", help="into folds (0)")
    parser.add_argument("--tol", type=float, default=1e-4, help="relative duality gap to reach (1e-4)")
    options = parser.parse_args()
    names = [name for k, name in enumerate(TOKENISATIONS) if k == 0 or fnmatch.fnmatch(name, options.only)]
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # classes that a fold lacks
        compare(names, options.model, options.divisions, options.tol)


if __name__ == "__main__":
    main()
