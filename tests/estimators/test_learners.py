"""The switch between learners, the linear SVM, and the automatic choice."""

import tracemalloc

import numpy as np
import pytest
from scipy import sparse
from sklearn.exceptions import NotFittedError
from sklearn.model_selection import ShuffleSplit, cross_val_score
from sklearn.multiclass import OneVsRestClassifier
from sklearn.svm import LinearSVC
from sklearn.utils.estimator_checks import parametrize_with_checks

import sl1max
from sl1max import AdaBoostClassifier, MaxentClassifier, get_learner
from sl1max.estimators._learners import AutoClassifier, LinearSVMClassifier


def make_data(n_classes=3, n_samples=120, n_features=10, seed=0):
    rng = np.random.default_rng(seed)
    y = rng.integers(0, n_classes, n_samples)
    X = (rng.random((n_samples, n_features)) < 0.2).astype(float)
    X[np.arange(n_samples), y] += rng.random(n_samples) < 0.8
    return np.minimum(X, 1), y


QUICK = {"distribution": "conditional", "betas": [1, 0.5], "n_estimators": [20, 40], "Cs": [1, 0.1], "cv": 3}


@parametrize_with_checks(
    [LinearSVMClassifier(tol=1e-12), AutoClassifier(**QUICK | {"betas": [0.5], "n_estimators": [50], "Cs": [1]})]
)
def test_scikit_learn_checks(estimator, check):
    check(estimator)


# The switch


def test_switch():
    assert type(get_learner()) is MaxentClassifier
    assert get_learner("maxent", beta=0.3).beta == 0.3
    assert type(get_learner("adaboost", n_estimators=7)) is AdaBoostClassifier
    assert type(get_learner("svm", C=2)) is LinearSVMClassifier
    assert type(get_learner("auto")) is AutoClassifier
    assert sl1max.get_learner is get_learner
    with pytest.raises(ValueError, match="learner='forest' is unknown"):
        get_learner("forest")


@pytest.mark.parametrize("learner", ["maxent", "adaboost", "svm"])
def test_same_methods(learner, tmp_path):
    X, y = make_data()
    estimator = get_learner(learner).fit(X, y)
    assert estimator.decision_function(X).shape == (len(y), 3)
    np.testing.assert_array_equal(estimator.predict_top_k(X, 2)[:, 0], estimator.predict(X))
    assert cross_val_score(get_learner(learner), X, y).mean() > 0.5
    estimator.model_.save(tmp_path / "model")
    np.testing.assert_array_equal(sl1max.load(tmp_path / "model").predict(X), estimator.predict(X))
    assert "classes" in repr(estimator.model_)


# Linear SVM


@pytest.mark.parametrize("dual", ["auto", True, False])
def test_svm_is_that_of_scikit_learn(dual):
    X, y = make_data()
    ours = LinearSVMClassifier(random_state=0, dual=dual).fit(X, y)
    theirs = OneVsRestClassifier(LinearSVC(random_state=0, dual=dual, max_iter=10_000)).fit(X, y)
    np.testing.assert_allclose(ours.decision_function(X), theirs.decision_function(X), atol=1e-6)
    np.testing.assert_array_equal(ours.predict(X), theirs.predict(X))


@pytest.mark.parametrize("form", [np.asarray, sparse.csr_array])
def test_svm_on_label_sets(form):
    X, _ = make_data()
    Y = X[:, :3].astype(int)
    ours = LinearSVMClassifier(random_state=0, n_jobs=2).fit(sparse.csc_array(X), form(Y))
    theirs = OneVsRestClassifier(LinearSVC(random_state=0, max_iter=10_000)).fit(X, Y)
    np.testing.assert_allclose(ours.decision_function(X), theirs.decision_function(X), atol=1e-6)
    np.testing.assert_array_equal(sparse.csr_array(ours.predict(X)).toarray(), theirs.predict(X))


def test_svm_of_two_labels():
    X, y = make_data(n_classes=2)
    ours = LinearSVMClassifier(random_state=0).fit(X, y)
    theirs = LinearSVC(random_state=0, max_iter=10_000).fit(X, y)
    np.testing.assert_allclose(ours.decision_function(X), 2 * theirs.decision_function(X), atol=1e-6)
    np.testing.assert_array_equal(ours.predict(X), theirs.predict(X))


def test_svm_has_no_probabilities():
    X, y = make_data()
    estimator = LinearSVMClassifier().fit(X, y)
    for name in ("predict_proba", "predict_log_proba", "predict_proba_independent"):
        assert not hasattr(estimator, name)


def test_svm_constant_class_and_soft_labels(capsys):
    X, y = make_data()
    with pytest.warns(UserWarning, match="constant"):
        estimator = LinearSVMClassifier(verbose=1).fit(X, np.column_stack([np.eye(3)[y], np.ones(len(y))]))
    assert estimator.predict(X)[:, 3].all()
    assert len(capsys.readouterr().err.splitlines()) == 3
    with pytest.raises(ValueError, match="soft labels"):
        LinearSVMClassifier().fit(X, np.eye(3)[y] * 0.5)


def test_svm_makes_no_array_of_classes_and_features():
    n_classes, n_features = 200, 20_000
    X = sparse.eye_array(2 * n_classes, n_features, format="csr")
    tracemalloc.start()
    estimator = LinearSVMClassifier().fit(X, np.arange(2 * n_classes) % n_classes)
    _, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert estimator.sparse_coef_.shape == (n_classes, n_features)
    assert peak < 8 * n_classes * n_features / 2


# The choice


def test_table_and_choice():
    X, y = make_data()
    auto = AutoClassifier(**QUICK).fit(X, y)
    assert auto.results_["learner"].tolist() == ["maxent"] * 4 + ["adaboost"] * 2 + ["svm"] * 2
    assert auto.results_["settings"].tolist() == [
        "conditional, exclusive, beta=1", "conditional, exclusive, beta=0.5",
        "conditional, independent, beta=1", "conditional, independent, beta=0.5",
        "logistic, n_estimators=20", "logistic, n_estimators=40", "C=0.1", "C=1",
    ]  # fmt: skip
    assert auto.best_score_ == auto.results_["score"].max() == auto.results_["score"][auto.best_index_]
    assert auto.best_params_ == auto.candidates_[auto.best_index_]
    params = dict(auto.best_params_)
    chosen = get_learner(params.pop("learner"), **params).fit(X, y)
    np.testing.assert_array_equal(auto.predict(X), chosen.predict(X))
    assert not auto.errors_


@pytest.mark.parametrize("learner", ["maxent", "adaboost", "svm"])
def test_scores_are_those_of_cross_validation(learner):
    X, y = make_data()
    auto = AutoClassifier(**QUICK, learners=learner, random_state=0).fit(X, y)
    for candidate, score in zip(auto.candidates_, auto.results_["score"], strict=True):
        params = {name: value for name, value in candidate.items() if name != "learner"}
        expected = cross_val_score(get_learner(learner, **params), X, y, cv=3).mean()
        assert score == pytest.approx(expected, abs=0.004)


@pytest.mark.parametrize("seed", [int, np.random.RandomState])
def test_threads_do_not_change_the_choice(seed):
    X, y = make_data()
    one, two = (AutoClassifier(**QUICK, n_jobs=n_jobs, random_state=seed(0)).fit(X, y) for n_jobs in (None, 2))
    np.testing.assert_array_equal(one.results_["score"], two.results_["score"])


def test_validation_set():
    X, y = make_data(n_samples=200)
    auto = AutoClassifier(**QUICK).fit(X[:120], y[:120], X_val=X[120:], y_val=y[120:])
    assert auto.best_score_ == pytest.approx(auto.score(X[120:], y[120:]))
    assert auto.model_.total_weight == 120
    with pytest.raises(ValueError, match="together"):
        AutoClassifier().fit(X, y, X_val=X)
    with pytest.raises(ValueError, match=r"^y_val has 3 examples, but X_val has 200$"):
        AutoClassifier().fit(X, y, X_val=X, y_val=y[:3])
    with pytest.raises(ValueError, match=r"^y_val must be a vector of labels, as y is: its shape is \(200, 3\)$"):
        AutoClassifier().fit(X, y, X_val=X, y_val=np.eye(3)[y])
    with pytest.raises(ValueError, match=r"^y_val must be an indicator of 3 classes, as y is: its shape is \(200,\)$"):
        AutoClassifier().fit(X, np.eye(3)[y], X_val=X, y_val=y)


@pytest.mark.parametrize("name", ["learners", "distribution", "label_mode", "loss", "n_estimators", "Cs"])
def test_nothing_to_choose_from(name):
    with pytest.raises(ValueError, match=f"^{name} is empty: there is nothing to choose from$"):
        AutoClassifier(**{name: []}).fit(*make_data())


@pytest.mark.parametrize("form", [np.asarray, sparse.csr_array])
def test_label_sets(form):
    X, _ = make_data()
    Y = X[:, :3].astype(int)
    auto = AutoClassifier(**QUICK).fit(sparse.csr_array(X), form(Y), X_val=X, y_val=form(Y))
    assert auto.best_score_ == pytest.approx((Y.sum(axis=1) > 0).mean())
    assert sparse.issparse(auto.predict(X)) == (form is not np.asarray)


def test_scoring_and_weights():
    X, y = make_data()
    weight = np.where(y == 0, 5, 1)
    auto = AutoClassifier(**QUICK, scoring="neg_log_loss").fit(X, y, sample_weight=weight)
    is_svm = auto.results_["learner"] == "svm"
    assert (auto.results_["score"][~is_svm] < 0).all() and np.isnan(auto.results_["score"][is_svm]).all()
    assert all("predict_proba" in str(auto.errors_[row]) for row in np.flatnonzero(is_svm))
    assert auto.model_.total_weight == weight.sum()


def test_probabilities_depend_on_the_choice():
    X, y = make_data()
    with pytest.raises(NotFittedError):
        AutoClassifier().predict_proba(X)
    maxent = AutoClassifier(**QUICK, learners="maxent").fit(X, y)
    np.testing.assert_allclose(maxent.predict_proba(X).sum(axis=1), 1)
    assert not hasattr(AutoClassifier(**QUICK, learners="svm").fit(X, y), "predict_proba")


def test_failed_candidates_stay_in_the_table(capsys):
    """A class-conditional model cannot do with a class that has no example in a fold."""
    X, y = make_data()
    Y = np.column_stack([np.eye(3)[y], np.arange(len(y)) == 0])
    options = QUICK | {"distribution": ["conditional", "class-conditional"], "label_mode": "independent"}
    auto = AutoClassifier(**options, learners="maxent", verbose=1)
    with pytest.warns(UserWarning, match="constant"):
        auto.fit(X, Y)
    np.testing.assert_array_equal(np.isnan(auto.results_["score"]), [False, False, True, True])
    assert sorted(auto.errors_) == [2, 3] and "no example" in str(auto.errors_[2])
    assert auto.best_params_["distribution"] == "conditional"
    assert "failed, y has no example" in capsys.readouterr().err
    with pytest.raises(ValueError, match="no example"):
        AutoClassifier(**options | {"distribution": "class-conditional"}, learners="maxent").fit(X, Y)


def test_progress_is_shown(capsys):
    X, y = make_data()
    auto = AutoClassifier(**QUICK, verbose=1).fit(X, y)
    err = capsys.readouterr().err
    assert "12/12" in err and "left" in err
    assert repr(auto.results_) in err
    assert f"chose {auto.best_params_['learner']}" in err


def test_other_folds_and_bad_learners():
    X, y = make_data()
    auto = AutoClassifier(**QUICK | {"cv": ShuffleSplit(2, random_state=0)}, learners="svm").fit(X, y)
    assert len(auto.results_) == 2
    for learners in ("forest", []):
        with pytest.raises(ValueError, match="learners"):
            AutoClassifier(learners=learners).fit(X, y)
