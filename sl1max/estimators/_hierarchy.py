"""Hierarchical classification: a maximum-entropy model at each inner node of a tree of classes."""

from __future__ import annotations

from typing import Any, Self

import numpy as np
from numpy.typing import ArrayLike
from scipy import sparse
from scipy.cluster.hierarchy import average, to_tree
from scipy.spatial.distance import squareform
from sklearn.base import BaseEstimator, ClassifierMixin, clone
from sklearn.utils.multiclass import check_classification_targets
from sklearn.utils.validation import _check_sample_weight, check_is_fitted, validate_data

from sl1max._utils.typing import Matrix
from sl1max.estimators._maxent import FORMATS, MaxentClassifier
from sl1max.estimators._parallel import run_parallel


class HierarchyClassifier(ClassifierMixin, BaseEstimator):
    """Classifier for classes in a tree, with a classifier at each inner node.

    The probability of a class is the product of the probabilities of the branches that lead to it. A node is trained
    only on the examples of its classes, so a large tree costs little more than its root. Each node selects its own
    features.

    Parameters
    ----------
    estimator : classifier, optional
        Classifier for one node, with `predict_proba`; ``MaxentClassifier()`` by default.
    tree : "auto" or nested lists or tuples of labels
        E.g. ``[["wheat", "corn"], ["gold", "silver"], "oil"]``: every class once; classes without examples are ignored.
        "auto": a binary tree by agglomerative clustering with average linkage. The similarity of two classes is the
        cosine between the deviations of their means from the mean of all examples.
    n_jobs : int, optional
        Number of threads for training the nodes.

    Attributes
    ----------
    classes_ : ndarray of shape (n_classes,)
    tree_ : tuple
        The tree as nested tuples of labels.
    estimators_ : list
        Classifiers of the inner nodes, each before those below it; their classes are the numbers of the branches.
    n_features_in_ : int

    See Also
    --------
    OutputCodeClassifier : Error-correcting output codes.

    Examples
    --------
    >>> import numpy as np
    >>> from sl1max import HierarchyClassifier
    >>> rng = np.random.default_rng(0)
    >>> y = rng.choice(["corn", "gold", "silver", "wheat"], 200)
    >>> X = np.column_stack([np.isin(y, ["corn", "wheat"]), y == "wheat", y == "gold"]) ^ (rng.random((200, 3)) < 0.05)
    >>> model = HierarchyClassifier().fit(X, y)
    >>> model.tree_
    (('gold', 'silver'), ('corn', 'wheat'))
    >>> bool(model.score(X, y) > 0.85)
    True
    """

    def __init__(self, estimator: BaseEstimator | None = None, *, tree: Any = "auto", n_jobs: int | None = None):
        self.estimator = estimator
        self.tree = tree
        self.n_jobs = n_jobs

    def __sklearn_tags__(self):
        tags = super().__sklearn_tags__()
        tags.input_tags.sparse = True
        return tags

    def fit(self, X: Matrix, y: ArrayLike, sample_weight: ArrayLike | None = None) -> Self:
        """Learn the tree, unless it is given, and train its nodes.

        Parameters
        ----------
        X : array, sparse matrix or frame of shape (n_samples, n_features)
        y : array of shape (n_samples,)
        sample_weight : array of shape (n_samples,), optional

        Returns
        -------
        HierarchyClassifier
            Itself.
        """
        X, y = validate_data(self, X, y, accept_sparse="csr")
        check_classification_targets(y)
        if sample_weight is not None:
            sample_weight = _check_sample_weight(sample_weight, X, ensure_non_negative=True)
            counts = sample_weight > 0
            X, y, sample_weight = X[counts], y[counts], sample_weight[counts]
        self.classes_, codes = np.unique(y, return_inverse=True)
        if len(self.classes_) < 2:
            raise ValueError("y has one class only: at least two are needed")
        if isinstance(self.tree, str) and self.tree == "auto":
            tree = learn_tree(X, codes, sample_weight)
        else:
            tree = read_tree(self.tree, self.classes_)
        self.tree_ = label_tree(tree, self.classes_)
        self._nodes = list(walk_tree(tree))
        arguments = [(branches, X, codes, sample_weight) for branches in self._nodes]
        self.estimators_ = run_parallel(self._fit_node, arguments, self.n_jobs, threads=True)
        return self

    def _fit_node(self, branches, X, codes, sample_weight):
        branch_of = np.full(len(self.classes_), -1)
        for k, leaves in enumerate(branches):
            branch_of[leaves] = k
        rows = np.flatnonzero(branch_of[codes] >= 0)
        estimator = MaxentClassifier() if self.estimator is None else clone(self.estimator)
        weighted = {} if sample_weight is None else {"sample_weight": sample_weight[rows]}
        return estimator.fit(X[rows], branch_of[codes[rows]], **weighted)

    def predict_log_proba(self, X: Matrix) -> np.ndarray:
        """Log of `predict_proba`.

        Parameters
        ----------
        X : array, sparse matrix or frame of shape (n_samples, n_features)

        Returns
        -------
        ndarray of shape (n_samples, n_classes)
        """
        check_is_fitted(self)
        X = validate_data(self, X, reset=False, accept_sparse=FORMATS)
        log_proba = np.zeros((X.shape[0], len(self.classes_)))
        for branches, estimator in zip(self._nodes, self.estimators_, strict=True):
            of_branch = estimator.predict_log_proba(X)
            for k, leaves in enumerate(branches):
                log_proba[:, leaves] += of_branch[:, [k]]
        return log_proba

    def predict_proba(self, X: Matrix) -> np.ndarray:
        """p(c|x): the product of the probabilities of the branches that lead to the class.

        Parameters
        ----------
        X : array, sparse matrix or frame of shape (n_samples, n_features)

        Returns
        -------
        ndarray of shape (n_samples, n_classes)
            Each row sums to one.
        """
        return np.exp(self.predict_log_proba(X))

    def predict(self, X: Matrix) -> np.ndarray:
        """The most likely class.

        Parameters
        ----------
        X : array, sparse matrix or frame of shape (n_samples, n_features)

        Returns
        -------
        ndarray of shape (n_samples,)
        """
        log_proba = self.predict_log_proba(X)
        return self.classes_[log_proba.argmax(axis=1)]


# Trees: an inner node is a tuple of branches, a leaf the number of a class.


def read_tree(tree, classes):
    """Convert a tree of labels to class numbers, without empty and single branches."""
    number = {label: c for c, label in enumerate(classes.tolist())}
    found = []

    def read(node):
        if not isinstance(node, list | tuple):
            label = node.item() if isinstance(node, np.generic) else node
            if label not in number:
                return None
            found.append(label)
            return number[label]
        branches = tuple(branch for branch in map(read, node) if branch is not None)
        return branches[0] if len(branches) == 1 else branches or None

    if not isinstance(tree, list | tuple):
        raise ValueError(f'tree={tree!r} must be "auto" or nested lists of labels')
    numbered = read(tree)
    for label in number:
        if found.count(label) != 1:
            raise ValueError(f"tree has class {label} {found.count(label)} times: every class of y must be in it once")
    return numbered


def learn_tree(X, codes, sample_weight=None):
    """Cluster the classes by average linkage of the cosines between the deviations of their means."""
    weight = np.ones(len(codes)) if sample_weight is None else sample_weight
    mass = np.bincount(codes, weight)
    share = sparse.csr_array((weight / mass[codes], (codes, np.arange(len(codes)))), shape=(len(mass), len(codes)))
    means = share @ X
    products = means @ means.T
    products = products.toarray() if sparse.issparse(products) else products
    # (means - centre) @ (means - centre).T, where centre = prior @ means: so that no dense array of means is made
    prior = mass / mass.sum()
    to_centre = products @ prior
    products = products - to_centre - to_centre[:, None] + prior @ to_centre
    length = np.sqrt(np.maximum(np.diag(products), np.finfo(float).tiny))
    distance = np.clip(1 - products / np.outer(length, length), 0, 2)
    np.fill_diagonal(distance, 0)

    def convert(node):
        return int(node.id) if node.is_leaf() else (convert(node.left), convert(node.right))

    return convert(to_tree(average(squareform(distance, checks=False))))


def label_tree(tree, classes):
    """Convert a tree of class numbers to labels."""
    return tuple(label_tree(branch, classes) for branch in tree) if isinstance(tree, tuple) else classes.tolist()[tree]


def leaves_of(tree):
    return [leaf for branch in tree for leaf in leaves_of(branch)] if isinstance(tree, tuple) else [tree]


def walk_tree(tree):
    """The branches of every inner node, as lists of the classes below; a node comes before those below it."""
    if isinstance(tree, tuple):
        yield [leaves_of(branch) for branch in tree]
        for branch in tree:
            yield from walk_tree(branch)
