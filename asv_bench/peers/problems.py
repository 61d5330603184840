"""The problems: data, objective, and a lower bound on the optimum that needs no solver.

Every solver minimises the same function of the weights (and of the intercept, which is never penalised):

    mean_i [ logsumexp_c score_ic - score_i,y(i) ]  +  1 / (C m) * sum [ r |weight| + (1 - r) / 2 weight^2 ]

with score = X @ weight + intercept and r = l1_ratio, which is 1 but for elastic nets. A binary problem has one weight
vector and the scores (0, X @ w + b).
"""

import os
from collections.abc import Callable
from dataclasses import dataclass
from functools import cache
from pathlib import Path

import numpy as np
import scipy.sparse as sp
from benchmarks.made_data import made_one_hot, made_text, made_zipf
from scipy.special import logsumexp, xlogy

WEBKB_CLASSES = ("course", "faculty", "project", "student")
REUTERS_CLASSES = ("earn", "acq", "grain", "wheat", "oat", "corn")
SINGLE_LABEL_MIN = 20  # Reuters single-label: minimum number of stories of a class


@dataclass(frozen=True)
class Problem:
    """One problem of the comparison; its data are loaded on first use.

    ``group`` names the row of the table of bars; ``load`` returns X (CSR or C-ordered array) and the class
    codes y (m,), 0/1 for a binary problem.
    """

    name: str
    group: str
    C: float
    load: Callable[[], tuple]
    intercept: bool = False
    exclusive: bool = False
    l1_ratio: float = 1.0

    @property
    def X(self):
        return self.load()[0]

    @property
    def y(self):
        return self.load()[1]

    @property
    def n_classes(self):
        return int(self.y.max()) + 1

    @property
    def beta(self):
        """Weight of the L1 norm in the mean objective."""
        return self.l1_ratio / (self.C * self.X.shape[0])

    @property
    def l2(self):
        """Weight of half the squared L2 norm in the mean objective."""
        return (1.0 - self.l1_ratio) / (self.C * self.X.shape[0])

    def with_intercept(self):
        return Problem(f"{self.name}/intercept", self.group, self.C, self.load, True, self.exclusive, self.l1_ratio)

    def scores(self, coef, intercept):
        """Scores (m, n_classes); a binary problem's first column is zero."""
        scores = np.asarray(self.X @ coef.T) + intercept
        return scores if self.exclusive else np.column_stack([np.zeros(len(scores)), scores])

    def objective(self, coef, intercept):
        """Value at coef (n_outputs, n_features), intercept (n_outputs,), in float64."""
        scores = self.scores(coef, intercept)
        loss = logsumexp(scores, axis=1) - scores[np.arange(len(scores)), self.y]
        return float(loss.mean() + self.beta * np.abs(coef).sum() + 0.5 * self.l2 * (coef**2).sum())

    @property
    def objective_zero(self):
        """The objective of zero weights, of the best intercepts if there are some."""
        if not self.intercept:
            return float(np.log(self.n_classes))
        share = np.bincount(self.y) / len(self.y)
        return float(-xlogy(share, share).sum())

    def lower_bound(self, coef, intercept):
        """A lower bound on the optimum: the entropy of (1 - t) q + t p~, t just large enough to be feasible.

        With an L2 penalty q itself may be better: it misses the constraints at a finite cost.
        With an intercept the bound holds only where q(c) = p~(c), so it is first fitted to the weights.
        """
        scores = self.scores(coef, intercept)
        onehot = np.eye(self.n_classes)[self.y]
        if self.intercept:
            scores = _fit_intercept(scores, onehot)
        prob = np.exp(scores - logsumexp(scores, axis=1, keepdims=True))
        outputs = slice(None) if self.exclusive else slice(1, None)
        violations = np.abs(np.asarray(self.X.T @ (prob - onehot)[:, outputs])) / len(scores)
        violation = violations.max()
        keep = min(1.0, self.beta / violation) if violation > 0 else 1.0
        mixed = keep * prob + (1 - keep) * onehot
        bound = float(-xlogy(mixed, mixed).sum(axis=1).mean())
        if self.l2 == 0:
            return bound
        cost = 0.5 * (np.maximum(violations - self.beta, 0) ** 2).sum() / self.l2
        return max(bound, float(-xlogy(prob, prob).sum(axis=1).mean() - cost))


def _fit_intercept(scores, onehot, n_steps=50):
    """Scores moved by one constant per class until the mean probabilities equal the class shares (Newton)."""
    share = onehot.mean(axis=0)
    for _ in range(n_steps):
        prob = np.exp(scores - logsumexp(scores, axis=1, keepdims=True))
        gradient = prob.mean(axis=0) - share
        if np.abs(gradient).max() < 1e-15:
            break
        hessian = np.diag(prob.mean(axis=0)) - prob.T @ prob / len(prob)
        scores = scores - np.clip(np.linalg.lstsq(hessian, gradient, rcond=None)[0], -1.0, 1.0)
    return scores


def data_dir():
    """The folder of other data sets, SL1MAX_DATA or else shared/data beside the clone; None where there is none."""
    beside = Path(__file__).resolve().parents[2].parent / "shared" / "data"
    path = Path(os.environ.get("SL1MAX_DATA", beside))
    return path if (path / "reuters21578").is_dir() else None


def _csr(path):
    return sp.csr_matrix(sp.load_npz(path)).astype(np.float64)


@cache
def _reuters():
    folder = data_dir() / "reuters21578"
    return (
        _csr(folder / "X_train.npz"),
        _csr(folder / "Y_train.npz"),
        (folder / "labels.txt").read_text().split(),
    )


@cache
def _reuters_class(label):
    X, Y, labels = _reuters()
    return X, Y[:, [labels.index(label)]].toarray().ravel().astype(np.int64)


@cache
def _reuters_tfidf(label):
    X, y = _reuters_class(label)
    idf = np.log(X.shape[0] / np.maximum(np.bincount(X.indices, minlength=X.shape[1]), 1)) + 1.0
    X = X @ sp.diags(idf)
    norm = np.sqrt(np.asarray(X.multiply(X).sum(axis=1)).ravel())
    return sp.csr_matrix(sp.diags(1.0 / np.maximum(norm, 1e-300)) @ X), y


@cache
def _reuters_single():
    X, Y, _ = _reuters()
    rows = np.flatnonzero(np.asarray(Y.sum(axis=1)).ravel() == 1)
    codes = np.asarray(Y[rows].argmax(axis=1)).ravel()
    kept = np.bincount(codes, minlength=Y.shape[1]) >= SINGLE_LABEL_MIN
    new_code = np.cumsum(kept) - 1
    return X[rows[kept[codes]]], new_code[codes[kept[codes]]]


@cache
def _webkb():
    from sl1max.datasets import fetch_webkb

    data = fetch_webkb()
    assert tuple(data.class_names) == WEBKB_CLASSES
    return sp.csr_matrix(data.X_train).astype(np.float64), np.asarray(data.y_train, np.int64)


@cache
def _webkb_class(label):
    X, y = _webkb()
    return X, (y == WEBKB_CLASSES.index(label)).astype(np.int64)


@cache
def made_dense(n_samples, n_features):
    from sklearn.datasets import make_classification

    X, y = make_classification(
        n_samples,
        n_features,
        n_informative=n_features // 10,
        n_redundant=n_features // 10,
        flip_y=0.05,
        random_state=0,
    )
    return np.ascontiguousarray(X), y.astype(np.int64)


@cache
def made_dense_exclusive(n_samples, n_features, n_classes):
    from sklearn.datasets import make_classification

    X, y = make_classification(n_samples, n_features, n_informative=40, n_classes=n_classes, random_state=0)
    return np.ascontiguousarray(X), y.astype(np.int64)


def _call(function, *args):
    return lambda: function(*args)


def _text():
    binary = [(f"webkb/{label}", _call(_webkb_class, label)) for label in WEBKB_CLASSES]
    exclusive = [("webkb", _webkb)]
    if data_dir():
        binary += [(f"reuters/{label}", _call(_reuters_class, label)) for label in REUTERS_CLASSES]
        exclusive += [("reuters-single", _reuters_single)]
    for name, load in binary:
        yield from (Problem(f"{name}/C{C:g}", "independent", C, load) for C in (0.1, 1, 10))
    for name, load in exclusive:
        yield from (Problem(f"{name}/exclusive/C{C:g}", "exclusive", C, load, exclusive=True) for C in (0.1, 1))
    if data_dir():
        for label in ("earn", "grain"):
            load = _call(_reuters_tfidf, label)
            yield from (Problem(f"tfidf/{label}/C{C:g}", "real-valued", C, load) for C in (1, 10))


def _made():
    for C in (0.1, 1, 10):
        yield Problem(f"made/text/C{C:g}", "independent", C, _call(made_text, 8000, 20000, 2))
    for C in (0.1, 1):
        yield Problem(f"made/exclusive/C{C:g}", "exclusive", C, _call(made_text, 4000, 10000, 5), exclusive=True)
    for C in (0.1, 1, 10):
        yield Problem(f"one-hot/32000x120/C{C:g}", "one-hot", C, made_one_hot)
    for C in (0.1, 1):
        yield Problem(f"dense/20000x200/C{C:g}", "real-valued", C, _call(made_dense, 20000, 200))
        yield Problem(f"dense/50000x50/C{C:g}", "real-valued", C, _call(made_dense, 50000, 50))
    for C in (0.1, 1, 10):
        load = _call(made_dense_exclusive, 20000, 100, 5)
        yield Problem(f"dense/20000x100x5/C{C:g}", "dense exclusive", C, load, exclusive=True)
    for C in (0.1, 1):
        load = _call(made_text, 8000, 20000, 2)
        yield Problem(f"made/text/elastic/C{C:g}", "elastic net", C, load, l1_ratio=0.5)
        load = _call(made_text, 4000, 10000, 5)
        yield Problem(f"made/exclusive/elastic/C{C:g}", "elastic net", C, load, exclusive=True, l1_ratio=0.5)
        load = _call(made_dense, 20000, 200)
        yield Problem(f"dense/20000x200/elastic/C{C:g}", "elastic net, dense", C, load, l1_ratio=0.5)
        load = _call(made_dense_exclusive, 20000, 100, 5)
        yield Problem(f"dense/20000x100x5/elastic/C{C:g}", "elastic net, dense", C, load, exclusive=True, l1_ratio=0.5)
    yield Problem("zipf200/C1", "many classes", 1.0, made_zipf, exclusive=True)


def all_problems():
    """WebKB, synthetic data, and the other data sets if they are available."""
    yield from _text()
    yield from _made()


def quick_problems():
    """Two small problems, the same on every machine."""
    yield Problem("quick/text/C1", "independent", 1.0, _call(made_text, 1500, 3000, 2))
    yield Problem("quick/exclusive/C1", "exclusive", 1.0, _call(made_text, 600, 1000, 4), exclusive=True)


def tiny_like(problem):
    """Make a tiny problem of the same kind, to warm up just-in-time compilers and lazy imports."""
    if sp.issparse(problem.X):
        load = _call(made_text, 60, 40, 3 if problem.exclusive else 2)
    else:
        load = _call(made_dense, 60, 20)
    return Problem("tiny", problem.group, 1.0, load, problem.intercept, problem.exclusive, problem.l1_ratio)
