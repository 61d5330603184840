"""sl1max.OutputCodeClassifier: scikit-learn's scheme, our defaults."""

import numpy as np
import pytest
from numpy.testing import assert_array_equal

pytest.importorskip("sklearn")

from sklearn import multiclass
from sklearn.base import clone
from sklearn.linear_model import LogisticRegression
from sklearn.utils.estimator_checks import parametrize_with_checks
from strategies import random_data

from sl1max import MaxentClassifier, OutputCodeClassifier
from sl1max.datasets import fetch_webkb


def make_data(n_classes=4):
    return random_data(np.random.default_rng(0), 200, 30, n_classes)


@parametrize_with_checks([OutputCodeClassifier(random_state=0)])
def test_scikit_learn_checks(estimator, check):
    check(estimator)


@pytest.mark.parametrize("estimator", [None, LogisticRegression()])
def test_is_scikit_learns_scheme(estimator):
    X, y = make_data()
    ours = OutputCodeClassifier(estimator, code_size=3, random_state=1).fit(X, y)
    base = MaxentClassifier() if estimator is None else estimator
    theirs = multiclass.OutputCodeClassifier(base, code_size=3, random_state=1).fit(X, y)
    assert_array_equal(ours.code_book_, theirs.code_book_)
    assert_array_equal(ours.predict(X), theirs.predict(X))
    assert ours.estimator is estimator
    assert all(isinstance(bit, type(base) | multiclass._ConstantPredictor) for bit in ours.estimators_)


def test_the_nearest_word_is_the_likeliest():
    X, y = make_data()
    model = OutputCodeClassifier(random_state=1).fit(X, y)
    log_odds = np.column_stack([bit.decision_function(X) for bit in model.estimators_])
    log_likelihood = -np.logaddexp(0, -log_odds[:, None] * model.code_book_).sum(axis=2)
    assert_array_equal(model.predict(X), model.classes_[log_likelihood.argmax(axis=1)])


def test_number_of_bits():
    for n_classes, n_bits in (2, 16), (4, 16), (12, 18):
        X, y = make_data(n_classes)
        assert OutputCodeClassifier(random_state=0).fit(X, y).code_book_.shape == (n_classes, n_bits)


def test_threads_do_not_matter():
    X, y = make_data()
    model = OutputCodeClassifier(random_state=0)
    assert_array_equal(model.fit(X, y).predict(X), clone(model).set_params(n_jobs=2).fit(X, y).predict(X))


def test_a_wrong_size_is_refused():
    with pytest.raises(ValueError, match="code_size"):
        OutputCodeClassifier(code_size=-1).fit(*make_data())


@pytest.mark.slow
def test_webkb():
    """Within a point of the plain model, for which docs/gallery/plot_output_codes.py has the figures."""
    data = fetch_webkb()
    X, y, X_test, y_test = next(data.splits())
    plain = MaxentClassifier().fit(X, y).score(X_test, y_test)
    assert OutputCodeClassifier(random_state=0).fit(X, y).score(X_test, y_test) > plain - 0.01
