"""Feature selection by nonzero weights."""

import numpy as np
import pytest
from scipy import sparse
from sklearn.pipeline import make_pipeline
from sklearn.utils.estimator_checks import parametrize_with_checks

from sl1max import AdaBoostClassifier, MaxentClassifier, NonzeroSelector


def make_data(n_classes=3):
    rng = np.random.default_rng(0)
    X = (rng.random((150, 12)) < 0.4).astype(float)
    return X, np.minimum(X[:, 1] + X[:, 5], n_classes - 1).astype(int)


@parametrize_with_checks([NonzeroSelector()])
def test_selector_against_the_checks_of_scikit_learn(estimator, check):
    check(estimator)


@pytest.mark.parametrize("as_sparse", [False, True])
@pytest.mark.parametrize("n_classes", [2, 3])
@pytest.mark.parametrize("estimator", [None, MaxentClassifier(beta=2.0), AdaBoostClassifier(n_estimators=6)])
def test_selector_keeps_exactly_the_nonzero_features(estimator, n_classes, as_sparse):
    X, y = make_data(n_classes)
    X = sparse.csr_array(X) if as_sparse else X
    selector = NonzeroSelector(estimator).fit(X, y)
    weights = selector.estimator_.model_.weights.toarray()
    np.testing.assert_array_equal(selector.get_support(), (weights != 0).any(axis=0))
    kept = selector.transform(X)
    assert kept.shape[1] == selector.get_support().sum() < 12
    dense = [one.toarray() if as_sparse else one for one in (X, kept)]
    np.testing.assert_array_equal(dense[1], dense[0][:, selector.get_support()])


def test_selector_in_a_pipeline_gives_names_and_frames():
    pandas = pytest.importorskip("pandas")
    X, y = make_data()
    frame = pandas.DataFrame(X, columns=[f"f{j}" for j in range(12)])
    selector = NonzeroSelector(MaxentClassifier(beta=2.0)).set_output(transform="pandas").fit(frame, y)
    assert list(selector.transform(frame).columns) == selector.get_feature_names_out().tolist()
    pipeline = make_pipeline(NonzeroSelector(), MaxentClassifier()).fit(X, y)
    assert pipeline.score(X, y) > 0.9


def test_selector_passes_sample_weights_on():
    X, y = make_data()
    weight = np.where(y == 0, 0.0, 1.0)
    selector = NonzeroSelector().fit(X, y, sample_weight=weight)
    expected = MaxentClassifier().fit(X, y, sample_weight=weight)
    np.testing.assert_array_equal(selector.estimator_.coef_, expected.coef_)
