"""sl1max.HierarchyClassifier: trees, given and learnt, and the models at their nodes."""

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal

pytest.importorskip("sklearn")

from scipy import sparse
from sklearn.exceptions import NotFittedError
from sklearn.linear_model import LogisticRegression
from sklearn.utils.estimator_checks import parametrize_with_checks
from strategies import random_data

from sl1max import HierarchyClassifier, MaxentClassifier
from sl1max.datasets import fetch_webkb
from sl1max.estimators._hierarchy import learn_tree, leaves_of, read_tree, walk_tree

NAMES = np.array(["corn", "gold", "silver", "wheat"])


def make_data(seed=0, n_samples=300):
    """Grain or metal, and which; plus noise."""
    rng = np.random.default_rng(seed)
    y = rng.integers(0, 4, n_samples)
    signal = np.column_stack([np.isin(y, [0, 3]), y == 3, y == 1]) ^ (rng.random((n_samples, 3)) < 0.1)
    return np.hstack([signal, rng.random((n_samples, 5)) < 0.3]).astype(float), NAMES[y]


@parametrize_with_checks([HierarchyClassifier()])
def test_scikit_learn_checks(estimator, check):
    check(estimator)


# ---------------------------------------------------------------------------------------------------- trees


def test_a_tree_is_learnt_from_the_class_means():
    X, y = make_data()
    for form in (np.asarray, sparse.csr_array, sparse.csc_matrix):
        tree = HierarchyClassifier().fit(form(X), y).tree_
        assert {frozenset(branch) for branch in tree} == {frozenset({"gold", "silver"}), frozenset({"corn", "wheat"})}


def test_learnt_distances_are_those_of_centred_means():
    """Of three classes the two whose centred means have the greatest cosine are joined first."""
    for seed in range(5):
        X, codes = random_data(np.random.default_rng(seed), 60, 10, 3, "real")
        weight = np.random.default_rng(seed).random(60) + 0.1
        means = np.array([np.average(X[codes == c], axis=0, weights=weight[codes == c]) for c in range(3)])
        centred = means - np.average(X, axis=0, weights=weight)
        unit = centred / np.linalg.norm(centred, axis=1, keepdims=True)
        cosine = unit @ unit.T - 9 * np.eye(3)
        nearest = set(np.unravel_index(cosine.argmax(), (3, 3)))
        for form in (X, sparse.csr_array(X)):
            (joined,) = [branch for branch in learn_tree(form, codes, weight) if isinstance(branch, tuple)]
            assert set(joined) == nearest


def test_classes_with_the_same_mean():
    X = np.zeros((8, 2))
    assert sorted(leaves_of(learn_tree(X, np.arange(8) % 4))) == [0, 1, 2, 3]


def test_trees_are_walked_from_the_root():
    assert list(walk_tree(((0, 2), 1))) == [[[0, 2], [1]], [[0], [2]]]


def test_given_trees_lose_empty_and_single_branches():
    classes = np.array(["a", "b", "c"])
    assert read_tree(["a", ["b", "c"]], classes) == (0, (1, 2))
    assert read_tree([["a"], [["b"], ("c", "absent")], ["missing"]], classes) == (0, (1, 2))
    assert read_tree([[["a", "b", "c"]]], classes) == (0, 1, 2)
    assert read_tree((np.int64(2), (1, 0)), np.array([0, 1, 2])) == (2, (1, 0))


@pytest.mark.parametrize(
    ("tree", "message"),
    [
        ([["corn", "wheat"], "gold"], "tree has class silver 0 times"),
        ([["corn", "wheat"], ["gold", "silver"], "corn"], "tree has class corn 2 times"),
        ("learn", "tree='learn' must be \"auto\" or nested lists of labels"),
        (None, "tree=None must be"),
    ],
)
def test_wrong_trees(tree, message):
    with pytest.raises(ValueError, match=message):
        HierarchyClassifier(tree=tree).fit(*make_data())


# ---------------------------------------------------------------------------------------------------- models


def test_probabilities_are_products_along_the_path():
    X, y = make_data()
    model = HierarchyClassifier(tree=[["corn", "wheat"], ["gold", "silver"]]).fit(X, y)
    root, grain, metal = model.estimators_
    top, of_grain, of_metal = (node.predict_proba(X) for node in (root, grain, metal))
    expected = np.column_stack(
        [top[:, 0] * of_grain[:, 0], top[:, 1] * of_metal[:, 0], top[:, 1] * of_metal[:, 1], top[:, 0] * of_grain[:, 1]]
    )
    assert_allclose(model.predict_proba(X), expected)
    assert_allclose(model.predict_proba(X).sum(axis=1), 1)
    assert_array_equal(model.predict(X), NAMES[expected.argmax(axis=1)])
    assert model.tree_ == (("corn", "wheat"), ("gold", "silver"))


def test_nodes_are_trained_on_their_own_examples():
    X, y = make_data()
    weight = np.random.default_rng(1).random(len(y))
    model = HierarchyClassifier(tree=[["corn", "wheat"], ["gold", "silver"]]).fit(X, y, weight)
    own = np.isin(y, ["gold", "silver"])
    alone = MaxentClassifier().fit(X[own], y[own], weight[own])
    assert_allclose(model.estimators_[2].predict_proba(X), alone.predict_proba(X))


def test_a_flat_tree_is_the_plain_model():
    X, y = make_data()
    flat = HierarchyClassifier(tree=NAMES.tolist()).fit(X, y)
    assert_allclose(flat.predict_proba(X), MaxentClassifier().fit(X, y).predict_proba(X))


def test_two_classes_are_the_plain_model():
    X, y = make_data()
    own = np.isin(y, ["gold", "silver"])
    X, y = X[own], y[own]
    model = HierarchyClassifier().fit(X, y)
    plain = MaxentClassifier().fit(X, y)
    assert_array_equal(model.predict(X), plain.predict(X))


def test_weight_zero_leaves_a_class_out():
    X, y = make_data()
    model = HierarchyClassifier().fit(X, y, (y != "corn").astype(float))
    assert_array_equal(model.classes_, ["gold", "silver", "wheat"])


def test_any_classifier_will_do():
    X, y = make_data()
    model = HierarchyClassifier(LogisticRegression()).fit(X, y)
    assert all(isinstance(node, LogisticRegression) for node in model.estimators_)
    assert model.score(X, y) > 0.7


def test_threads_do_not_matter():
    X, y = make_data()
    one, two = (HierarchyClassifier(n_jobs=n).fit(X, y) for n in (None, 2))
    assert_array_equal(one.predict_proba(X), two.predict_proba(X))


def test_errors():
    X, _ = make_data()
    with pytest.raises(ValueError, match="y has one class only"):
        HierarchyClassifier().fit(X, np.zeros(len(X)))
    with pytest.raises(NotFittedError):
        HierarchyClassifier().predict(X)


@pytest.mark.slow
def test_webkb():
    """Within a point of the plain model, for which docs/gallery/plot_hierarchy.py has the figures."""
    data = fetch_webkb()
    X, y, X_test, y_test = next(data.splits())
    plain = MaxentClassifier().fit(X, y).score(X_test, y_test)
    assert HierarchyClassifier().fit(X, y).score(X_test, y_test) > plain - 0.01
