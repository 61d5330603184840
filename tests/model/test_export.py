"""Models as classifiers of scikit-learn, as dictionaries, and with skops."""

import json
import sys

import numpy as np
import pytest
from scipy import sparse

import sl1max

pytest.importorskip("sklearn")


def make_data(n_classes=3):
    rng = np.random.default_rng(0)
    X = (rng.random((80, 12)) < 0.3).astype(float)
    y = rng.integers(0, n_classes, 80)
    X[np.arange(80), y] = 1
    return X, y


@pytest.mark.parametrize("n_classes", [2, 3])
@pytest.mark.parametrize("distribution", ["conditional", "joint", "class-conditional"])
def test_exclusive_classes_as_logistic_regression(distribution, n_classes):
    X, y = make_data(n_classes)
    labels = np.array(["one", "two", "three"])[y]
    model = sl1max.fit(X, labels, distribution=distribution)
    logistic = model.to_sklearn()
    np.testing.assert_allclose(logistic.predict_proba(X), model.predict_proba(X), atol=1e-12)
    np.testing.assert_array_equal(logistic.predict(X), model.predict(X))
    np.testing.assert_array_equal(logistic.predict(sparse.csr_matrix(X)), model.predict(X))
    assert logistic.coef_.shape == ((1 if n_classes == 2 else 3), 12)
    assert 0 < logistic.score(X, labels) <= 1


@pytest.mark.parametrize("distribution", ["conditional", "joint"])
def test_one_independent_class_as_logistic_regression(distribution):
    X, y = make_data()
    model = sl1max.fit(X, (y == 1)[:, None].astype(int), distribution=distribution)
    logistic = model.to_sklearn()
    np.testing.assert_allclose(logistic.predict_proba(X)[:, 1], model.predict_proba(X)[:, 0], atol=1e-12)
    np.testing.assert_array_equal(logistic.predict(X), model.predict(X)[:, 0])


@pytest.mark.parametrize("n_classes", [2, 3])
@pytest.mark.parametrize("distribution", ["conditional", "joint"])
def test_independent_classes_of_a_label_vector_as_one_against_rest(distribution, n_classes):
    X, y = make_data(n_classes)
    labels = np.array(["one", "two", "three"])[y]
    model = sl1max.fit(X, labels, distribution=distribution, label_mode="independent")
    together = model.to_sklearn()
    expected = model.predict_proba(X)
    for rows in (X, sparse.csr_matrix(X)):
        np.testing.assert_allclose(together.predict_proba(rows), expected, atol=1e-12)
        np.testing.assert_array_equal(together.predict(rows), model.predict(X))
    assert together.classes_.tolist() == model.classes.tolist()
    assert together.score(X, labels) == np.mean(model.predict(X) == labels)


@pytest.mark.parametrize("distribution", ["conditional", "joint"])
def test_label_sets_as_one_against_rest(distribution):
    X, y = make_data()
    Y = np.eye(3, dtype=int)[y]
    Y[:20, 1] = 1
    model = sl1max.fit(X, Y, distribution=distribution)
    together = model.to_sklearn()
    np.testing.assert_allclose(together.predict_proba(X), model.predict_proba(X), atol=1e-12)
    np.testing.assert_array_equal(together.predict(X), model.predict(X))


def test_a_constant_class_as_one_against_rest():
    X, y = make_data()
    Y = np.column_stack([np.eye(3, dtype=int)[y], np.ones(80, int), np.zeros(80, int)])
    with pytest.warns(UserWarning, match="constant"):
        model = sl1max.fit(X, Y)
    np.testing.assert_array_equal(model.to_sklearn().predict(X), model.predict(X))


def test_class_conditional_independent_classes_have_no_equivalent():
    X, y = make_data()
    with pytest.raises(ValueError, match="cut off at 1"):
        sl1max.fit(X, np.eye(3)[y], distribution="class-conditional").to_sklearn()


def test_to_sklearn_without_scikit_learn(monkeypatch):
    model = sl1max.fit(*make_data())
    monkeypatch.setitem(sys.modules, "sklearn.linear_model", None)
    with pytest.raises(ImportError, match=r"to_sklearn needs scikit-learn >= 1\.6: pip install scikit-learn"):
        model.to_sklearn()


# Dictionaries


@pytest.mark.parametrize("label_mode", ["exclusive", "independent"])
def test_dictionary_gives_the_decision_values(label_mode):
    X, y = make_data()
    model = sl1max.fit(X, np.array(["one", "two", "three"])[y], label_mode=label_mode, beta=0.1)
    found = json.loads(json.dumps(model.to_sparse_dict()))
    decision = np.array(
        [
            [one["intercept"] + sum(w * x[int(name)] for name, w in one["weights"].items()) for one in found["classes"]]
            for x in X
        ]
    )
    np.testing.assert_allclose(decision, model.scores(X) + model.intercept, rtol=1e-12, atol=1e-12)
    assert [one["label"] for one in found["classes"]] == model.classes.tolist()
    assert sum(len(one["weights"]) for one in found["classes"]) == model.weights.nnz


def test_dictionary_has_names_and_infinite_intercepts_as_text():
    X, y = make_data()
    names = [f"f{j}" for j in range(12)]
    with pytest.warns(UserWarning, match="constant"):
        model = sl1max.fit(X, np.column_stack([y == 0, np.ones(80), np.zeros(80)]).astype(int))
    found = model.to_sparse_dict(names)
    assert set(found["classes"][0]["weights"]) <= set(names)
    assert [one["intercept"] for one in found["classes"][1:]] == ["Infinity", "-Infinity"]
    json.dumps(found, allow_nan=False)


# skops


def test_estimators_are_kept_by_skops(tmp_path):
    skops = pytest.importorskip("skops.io")
    X, y = make_data()
    classifier = sl1max.MaxentClassifier(beta=0.1).fit(X, np.array(["one", "two", "three"])[y])
    skops.dump(classifier, tmp_path / "model.skops")
    own = skops.get_untrusted_types(file=tmp_path / "model.skops")
    assert set(own) == {
        "scipy.sparse._csr.csr_array", "sl1max.estimators._maxent.MaxentClassifier", "sl1max.model._model.Model",
    }  # fmt: skip
    again = skops.load(tmp_path / "model.skops", trusted=own)
    np.testing.assert_array_equal(again.predict_proba(X), classifier.predict_proba(X))
