"""MaxentClassifier: scikit-learn's habits, and the same numbers as `sl1max.fit`."""

import inspect
import os
import pickle
import subprocess
import sys
import tracemalloc
import warnings

import joblib
import numpy as np
import pytest
import sklearn
from scipy import sparse
from sklearn.base import clone
from sklearn.calibration import CalibratedClassifierCV
from sklearn.exceptions import DataConversionWarning, NotFittedError
from sklearn.feature_extraction.text import CountVectorizer
from sklearn.feature_selection import SelectFromModel
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import GridSearchCV, cross_val_predict, cross_validate
from sklearn.multiclass import OneVsRestClassifier
from sklearn.pipeline import make_pipeline
from sklearn.utils.estimator_checks import parametrize_with_checks

import sl1max
from sl1max import MaxentClassifier

MODELS = [
    (distribution, label_mode)
    for distribution in ("conditional", "joint", "class-conditional")
    for label_mode in ("exclusive", "independent")
]
TEXTS = [
    "wheat and corn", "corn price", "gold mine", "gold and silver", "wheat crop", "silver price", "oil well",
    "oil price", "crude oil", "corn crop", "silver mine", "crude price",
]  # fmt: skip
TOPICS = np.array(["grain", "grain", "metal", "metal", "grain", "metal", "oil", "oil", "oil", "grain", "metal", "oil"])


def make_data(n_classes=3, n_samples=90, n_features=8, seed=0):
    rng = np.random.default_rng(seed)
    y = rng.integers(0, n_classes, n_samples)
    X = (rng.random((n_samples, n_features)) < 0.3).astype(float)
    X[np.arange(n_samples), y] += rng.random(n_samples) < 0.7
    return np.minimum(X, 1), y


def make_indicator(seed=0):
    """Features and an indicator with rows of none, one and more labels."""
    X, _ = make_data(seed=seed)
    return X, (X[:, :3] * (np.random.default_rng(seed).random((len(X), 3)) < 0.9)).astype(int)


@parametrize_with_checks(
    [MaxentClassifier(distribution=distribution, label_mode=kind) for distribution, kind in MODELS]
)
def test_scikit_learn_checks(estimator, check):
    check(estimator)


def test_scikit_learn_checks_array_api_input():
    """scikit-learn skips this check unless a variable is set before scipy is imported."""
    code = (
        "from sklearn.utils.estimator_checks import check_estimator\n"
        "from sl1max import MaxentClassifier\n"
        f"for distribution, label_mode in {MODELS}:\n"
        "    estimator = MaxentClassifier(distribution=distribution, label_mode=label_mode)\n"
        "    for check in check_estimator(estimator, on_fail=None):\n"
        "        if check['check_name'] == 'check_array_api_input':\n"
        "            print(check['status'], check['exception'])\n"
    )
    environment = os.environ | {"SCIPY_ARRAY_API": "1"}
    done = subprocess.run(
        [sys.executable, "-P", "-c", code], env=environment, capture_output=True, text=True, check=True
    )
    assert done.stdout.splitlines() == ["passed None"] * len(MODELS)


def test_same_parameters_as_fit():
    defaults = {
        name: parameter.default
        for name, parameter in inspect.signature(sl1max.fit).parameters.items()
        if name not in ("X", "y", "sample_weight", "offset", "warm_start")
    }
    params = MaxentClassifier().get_params()
    assert {name: params[name] for name in defaults} == defaults


# The same numbers as fit


@pytest.mark.parametrize(("distribution", "label_mode"), MODELS)
def test_label_vector(distribution, label_mode):
    X, y = make_data()
    names = np.array(["b", "a", "c"])[y]
    estimator = MaxentClassifier(distribution=distribution, label_mode=label_mode).fit(X, names)
    model = sl1max.fit(X, names, distribution=distribution, label_mode=label_mode)
    np.testing.assert_array_equal(estimator.classes_, ["a", "b", "c"])
    np.testing.assert_array_equal(estimator.coef_, model.weights.toarray())
    assert isinstance(estimator.sparse_coef_, sparse.csr_array)
    np.testing.assert_array_equal(estimator.intercept_, model.intercept)
    for name in ("n_iter", "dual_gap", "objective"):
        np.testing.assert_array_equal(getattr(estimator, f"{name}_"), getattr(model, name))
    np.testing.assert_array_equal(estimator.decision_function(X), model.decision_function(X))
    np.testing.assert_allclose(estimator.decision_function(X), X @ estimator.coef_.T + estimator.intercept_)
    np.testing.assert_array_equal(estimator.predict(X), model.predict(X))
    proba = estimator.predict_proba(X)
    np.testing.assert_allclose(proba.sum(axis=1), 1)
    np.testing.assert_allclose(np.exp(estimator.predict_log_proba(X)), proba)
    np.testing.assert_array_equal(estimator.classes_[proba.argmax(axis=1)], estimator.predict(X))
    assert estimator.score(X, names) == np.mean(estimator.predict(X) == names) > 0.6


@pytest.mark.parametrize(("distribution", "label_mode"), MODELS)
def test_two_labels(distribution, label_mode):
    X, y = make_data(n_classes=2)
    estimator = MaxentClassifier(distribution=distribution, label_mode=label_mode).fit(X, y)
    decision = estimator.decision_function(X)
    assert decision.shape == (len(X),)
    assert estimator.coef_.shape == estimator.sparse_coef_.shape == (1, X.shape[1])
    assert estimator.intercept_.shape == (1,)
    np.testing.assert_allclose(decision, X @ estimator.coef_[0] + estimator.intercept_[0])
    np.testing.assert_array_equal(decision > 0, estimator.predict(X) == 1)
    np.testing.assert_array_equal(decision > 0, estimator.predict_proba(X)[:, 1] > 0.5)


@pytest.mark.parametrize("distribution", ["conditional", "joint"])
def test_raw_probabilities_of_independent_classes(distribution):
    X, y = make_data()
    estimator = MaxentClassifier(distribution=distribution, label_mode="independent").fit(X, y)
    raw = estimator.predict_proba_independent(X)
    np.testing.assert_array_equal(raw, estimator.model_.predict_proba_independent(X))
    assert np.abs(raw.sum(axis=1) - 1).max() > 0.01
    np.testing.assert_allclose(estimator.predict_proba(X), raw / raw.sum(axis=1, keepdims=True))
    with pytest.raises(ValueError, match="independent"):
        MaxentClassifier().fit(X, y).predict_proba_independent(X)


@pytest.mark.parametrize("distribution", ["conditional", "joint", "class-conditional"])
def test_indicator(distribution):
    X, Y = make_indicator()
    estimator = MaxentClassifier(distribution=distribution).fit(X, Y)
    proba = estimator.predict_proba(X)
    np.testing.assert_array_equal(proba, sl1max.fit(X, Y, distribution=distribution).predict_proba(X))
    np.testing.assert_array_equal(proba, estimator.predict_proba_independent(X))
    np.testing.assert_array_equal(estimator.predict(X), (proba > 0.5).astype(int))
    np.testing.assert_array_equal(estimator.classes_, [0, 1, 2])
    assert estimator.decision_function(X).shape == Y.shape
    assert estimator.score(X, Y) > 0.6


def test_indicator_as_the_neighbours_have_it():
    X, Y = make_indicator()
    neighbour = OneVsRestClassifier(LogisticRegression())
    for labels in (Y, Y.tolist(), sparse.csr_matrix(Y), sparse.csr_array(Y)):
        ours, theirs = (model.fit(X, labels).predict(X) for model in (MaxentClassifier(), neighbour))
        assert sparse.issparse(ours) == sparse.issparse(theirs)
        assert ours.shape == theirs.shape and ours.dtype.kind == "i"
    assert MaxentClassifier().fit(X, Y).predict_proba(X).shape == neighbour.fit(X, Y).predict_proba(X).shape


def test_exclusive_indicator():
    X, Y = make_indicator()
    estimator = MaxentClassifier(label_mode="exclusive", multilabel_weighting="equal").fit(X, Y)
    labels = estimator.predict(X)
    np.testing.assert_array_equal(labels.sum(axis=1), 1)
    np.testing.assert_array_equal(labels.argmax(axis=1), estimator.decision_function(X).argmax(axis=1))
    np.testing.assert_allclose(estimator.predict_proba(X).sum(axis=1), 1)


def test_soft_labels():
    X, y = make_data()
    soft = np.full((len(y), 3), 0.1)
    soft[np.arange(len(y)), y] = 0.8
    for labels in (soft, sparse.csr_array(soft)):
        estimator = MaxentClassifier(label_mode="exclusive").fit(X, labels)
        assert estimator.objective_ == sl1max.fit(X, soft, label_mode="exclusive").objective


def test_column_of_labels():
    X, y = make_data()
    with pytest.warns(DataConversionWarning):
        estimator = MaxentClassifier().fit(X, y[:, None])
    np.testing.assert_array_equal(estimator.coef_, MaxentClassifier().fit(X, y).coef_)


def test_top_k():
    X, y = make_data(n_classes=5)
    names = np.array(list("abcde"))[y]
    estimator = MaxentClassifier().fit(X, names)
    order = np.argsort(-estimator.decision_function(X), axis=1, kind="stable")
    for k in (1, 3, 5):
        np.testing.assert_array_equal(estimator.predict_top_k(X, k), estimator.classes_[order[:, :k]])
    np.testing.assert_array_equal(estimator.predict_top_k(X, 1)[:, 0], estimator.predict(X))
    for k in (0, 6, 1.5):
        with pytest.raises(ValueError, match="k="):
            estimator.predict_top_k(X, k)


def test_top_k_memory():
    """No examples x classes array, which would take 320 MB."""
    n_samples, n_classes = 20000, 2000
    rng = np.random.default_rng(0)
    y = rng.integers(0, n_classes, n_samples)
    y[:n_classes] = np.arange(n_classes)
    X = sparse.csr_array((np.ones(n_samples), y, np.arange(n_samples + 1)), shape=(n_samples, n_classes))
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        estimator = MaxentClassifier(distribution="class-conditional", max_iter=1).fit(X[:n_classes], y[:n_classes])
    tracemalloc.start()
    try:
        top = estimator.predict_top_k(X, 3)
        peak = tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
    assert top.shape == (n_samples, 3)
    assert peak < 30e6


# Parameters of the estimator


def test_class_weight():
    X, y = make_data()
    weight = np.array([3.0, 1.0, 0.5])[y]
    weighted = MaxentClassifier(class_weight={0: 3.0, 2: 0.5}).fit(X, y)
    assert weighted.objective_ == MaxentClassifier().fit(X, y, sample_weight=weight).objective_
    own = np.random.default_rng(0).random(len(y))
    both = MaxentClassifier(class_weight={0: 3.0, 2: 0.5}).fit(X, y, sample_weight=own)
    assert both.objective_ == MaxentClassifier().fit(X, y, sample_weight=own * weight).objective_
    rare = (y != 0) | (np.arange(len(y)) % 5 == 0)
    balanced = MaxentClassifier(class_weight="balanced").fit(X[rare], y[rare])
    np.testing.assert_allclose(balanced.model_.class_prior, 1 / 3)
    X, Y = make_indicator()
    factors = np.where(Y[:, 0] == 1, 2.0, 1.0)
    weighted = MaxentClassifier(class_weight=[{0: 1, 1: 2}, {0: 1, 1: 1}, {0: 1, 1: 1}]).fit(X, Y)
    np.testing.assert_array_equal(weighted.objective_, MaxentClassifier().fit(X, Y, sample_weight=factors).objective_)


def test_warm_start():
    X, y = make_data()
    cold = MaxentClassifier(tol=1e-7).fit(X, y)
    again = MaxentClassifier(tol=1e-7, warm_start=True).fit(X, y)
    assert again.n_iter_ == cold.n_iter_ > 0
    assert again.set_params(tol=1e-6).fit(X, y).n_iter_ == 0
    assert cold.fit(X, y).n_iter_ > 0
    with pytest.raises(ValueError, match="warm_start has other classes"):
        again.fit(X, y + 1)


@pytest.mark.parametrize("distribution", ["conditional", "joint"])
def test_threads(distribution):
    X, y = make_data()
    one, two = (
        MaxentClassifier(distribution=distribution, label_mode="independent", n_jobs=n_jobs).fit(X, y)
        for n_jobs in (1, 2)
    )
    np.testing.assert_array_equal(one.coef_, two.coef_)
    np.testing.assert_array_equal(one.predict_proba(X), two.predict_proba(X))


def test_verbose(capsys):
    X, y = make_data()
    MaxentClassifier(label_mode="independent", verbose=1).fit(X, y)
    assert len(capsys.readouterr().err.splitlines()) == 3


def test_callback():
    X, y = make_data()
    seen = []
    MaxentClassifier(callback=seen.append).fit(X, y)
    assert seen and all(isinstance(progress, sl1max.FitProgress) for progress in seen)


# Early stopping


def overfitted_data(seed=0):
    """More features than examples, half of the labels noise."""
    rng = np.random.default_rng(seed)
    X = (rng.random((240, 300)) < 0.3).astype(float)
    y = np.where(rng.random(240) < 0.4, rng.integers(0, 3, 240), X[:, 0] + X[:, 1]).astype(int)
    return X, y


@pytest.mark.parametrize("solver", ["auto", "sequential"])
@pytest.mark.parametrize("distribution", ["conditional", "joint", "class-conditional"])
def test_early_stopping_on_a_given_set(distribution, solver):
    X, y = overfitted_data()
    X, y, X_val, y_val = X[:120], y[:120], X[120:], y[120:]
    options = {"distribution": distribution, "solver": solver, "beta": 0.01}
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        estimator = MaxentClassifier(early_stopping=True, **options).fit(X, y, X_val=X_val, y_val=y_val)
    errors = estimator.validation_errors_
    assert 1 - estimator.score(X_val, y_val) == pytest.approx(errors.min())
    assert len(errors) - 1 - errors.argmin() <= 10
    full = MaxentClassifier(**options).set_params(solver="auto").fit(X, y)
    assert np.all(estimator.objective_ >= full.objective_ - full.dual_gap_)


def test_early_stopping_on_a_fraction():
    X, y = overfitted_data()
    options = {"early_stopping": True, "solver": "sequential", "beta": 0.01, "random_state": 3}
    one, two = (MaxentClassifier(**options).fit(X, y) for _ in range(2))
    np.testing.assert_array_equal(one.coef_, two.coef_)
    assert one.model_.total_weight == 216
    other = MaxentClassifier(**(options | {"random_state": 4})).fit(X, y, sample_weight=np.full(240, 2.0))
    assert other.model_.total_weight == 432
    assert other.sparse_coef_.nnz > 0


def test_early_stopping_of_an_indicator():
    X, Y = make_indicator()
    for labels in (Y, sparse.csr_array(Y)):
        estimator = MaxentClassifier(early_stopping=True, label_mode="exclusive", random_state=0).fit(X, labels)
        assert len(estimator.validation_errors_) > 0


def test_early_stopping_reports(capsys):
    X, y = make_data()
    MaxentClassifier(early_stopping=True, verbose=1).fit(X, y)
    lines = capsys.readouterr().err.splitlines()
    assert lines[0].startswith("sl1max: round 1: validation error 0.")


def test_early_stopping_refusals():
    X, y = make_data()
    X_ind, Y = make_indicator()
    for estimator, labels in ((MaxentClassifier(label_mode="independent"), y), (MaxentClassifier(), Y)):
        with pytest.raises(ValueError, match="early_stopping needs exclusive classes"):
            estimator.set_params(early_stopping=True).fit(X_ind, labels)
    with pytest.raises(ValueError, match="early_stopping is False"):
        MaxentClassifier().fit(X, y, X_val=X, y_val=y)
    with pytest.raises(ValueError, match="given together"):
        MaxentClassifier(early_stopping=True).fit(X, y, X_val=X)
    with pytest.raises(ValueError, match=r"validation_fraction=1.5 must be between 0 and 1"):
        MaxentClassifier(early_stopping=True, validation_fraction=1.5).fit(X, y)
    with pytest.raises(ValueError, match="X has 7 features, but MaxentClassifier is expecting 8"):
        MaxentClassifier(early_stopping=True).fit(X, y, X_val=X[:, 1:], y_val=y)


# In the company of scikit-learn


def test_pipeline_and_grid_search():
    pipeline = make_pipeline(CountVectorizer(binary=True), MaxentClassifier())
    search = GridSearchCV(pipeline, {"maxentclassifier__beta": [0.01, 0.1]}, cv=2).fit(TEXTS, TOPICS)
    assert search.best_estimator_.predict(["gold", "corn", "oil"]).tolist() == ["metal", "grain", "oil"]


def test_cross_val_predict():
    X, y = make_data()
    for label_mode in ("exclusive", "independent"):
        proba = cross_val_predict(MaxentClassifier(label_mode=label_mode), X, y, method="predict_proba")
        np.testing.assert_allclose(proba.sum(axis=1), 1)
    assert cross_val_predict(MaxentClassifier(), *make_indicator()).shape == (90, 3)


@pytest.mark.parametrize("n_classes", [2, 3])
def test_calibration(n_classes):
    X, y = make_data(n_classes)
    calibrated = CalibratedClassifierCV(MaxentClassifier(distribution="joint")).fit(X, y)
    assert calibrated.score(X, y) > 0.6


def test_select_from_model():
    X, y = make_data()
    selector = SelectFromModel(MaxentClassifier(beta=2.0), threshold=1e-12).fit(X, y)
    kept = np.abs(selector.estimator_.coef_).sum(axis=0) > 0
    assert 0 < kept.sum() < X.shape[1]
    np.testing.assert_array_equal(selector.get_support(), kept)


@pytest.mark.parametrize("copy", [lambda model: pickle.loads(pickle.dumps(model)), "joblib"])
def test_pickle_and_joblib(copy, tmp_path):
    X, y = make_data()
    estimator = MaxentClassifier(distribution="joint").fit(X, y)
    estimator.predict(X)
    if copy == "joblib":
        joblib.dump(estimator, tmp_path / "model.joblib")
        again = joblib.load(tmp_path / "model.joblib")
    else:
        again = copy(estimator)
    np.testing.assert_array_equal(again.predict_proba(X), estimator.predict_proba(X))


def test_clone():
    estimator = MaxentClassifier(beta=np.array([1.0, np.inf]), class_weight={0: 2}, callback=print)
    again = clone(estimator.set_params(tol=1e-3))
    assert again.tol == 1e-3 and again.callback is print and again.class_weight == {0: 2}
    np.testing.assert_array_equal(again.beta, [1.0, np.inf])
    assert not hasattr(again, "coef_")
    with pytest.raises(NotFittedError):
        again.predict([[0, 1]])


def test_C_in_place_of_beta():
    X, y = make_data()
    for options in ({}, {"early_stopping": True, "X_val": X, "y_val": y}):
        stop = options.pop("early_stopping", False)
        estimator = MaxentClassifier(C=4.0, early_stopping=stop).fit(X, y, **options)
        other = MaxentClassifier(beta=0.25, beta_rule="count", early_stopping=stop).fit(X, y, **options)
        np.testing.assert_array_equal(estimator.coef_, other.coef_)
        assert (estimator.model_.beta, estimator.model_.beta_rule) == (0.25, "count")
    search = GridSearchCV(MaxentClassifier(), {"C": [0.5, 2.0]}, cv=2).fit(X, y)
    assert search.best_estimator_.model_.beta == 1 / search.best_params_["C"]
    with pytest.raises(ValueError, match=r"^beta and C are two names of one strength"):
        MaxentClassifier(beta=0.5, C=2.0).fit(X, y)


def test_metadata_routing():
    X, y = make_data()
    weight = np.random.default_rng(0).integers(0, 3, len(y)).astype(float)
    with sklearn.config_context(enable_metadata_routing=True):
        estimator = MaxentClassifier().set_fit_request(sample_weight=True).set_score_request(sample_weight=True)
        pipeline = make_pipeline(estimator)
        pipeline.fit(X, y, sample_weight=weight)
        results = cross_validate(estimator, X, y, params={"sample_weight": weight})
    assert np.isfinite(results["test_score"]).all()
    np.testing.assert_array_equal(pipeline[-1].coef_, MaxentClassifier().fit(X, y, sample_weight=weight).coef_)


@pytest.mark.parametrize("library", ["pandas", "polars"])
def test_frames(library):
    frames = pytest.importorskip(library)
    X, y = make_data(n_features=4)
    frame = frames.DataFrame({name: X[:, j] for j, name in enumerate("abcd")})
    estimator = MaxentClassifier().fit(frame, y)
    assert estimator.feature_names_in_.tolist() == list("abcd")
    assert estimator.n_features_in_ == 4
    np.testing.assert_array_equal(estimator.coef_, MaxentClassifier().fit(X, y).coef_)
    np.testing.assert_array_equal(estimator.predict(frame), MaxentClassifier().fit(X, y).predict(X))
    with pytest.raises(ValueError, match="feature names"):
        estimator.predict(frame[["b", "a", "c", "d"]])


def test_nullable_frame():
    pandas = pytest.importorskip("pandas")
    X, y = make_data(n_features=4)
    frame = pandas.DataFrame(X, columns=list("abcd")).astype("Int64")
    np.testing.assert_array_equal(MaxentClassifier().fit(frame, y).coef_, MaxentClassifier().fit(X, y).coef_)
    frame.iloc[3, 2] = pandas.NA
    with pytest.raises(ValueError, match=r"X has NaN in row 3, column 'c'$"):
        MaxentClassifier().fit(frame, y)


# Bad input


@pytest.mark.parametrize("library", ["pandas", "polars"])
def test_missing_value_names_the_column(library):
    frames = pytest.importorskip(library)
    X, y = make_data(n_features=4)
    whole = frames.DataFrame({name: X[:, j] for j, name in enumerate("abcd")})
    X[3, 2] = np.nan
    frame = frames.DataFrame({name: X[:, j] for j, name in enumerate("abcd")})
    message = r"^X has NaN in row 3, column 'c'$"
    with pytest.raises(ValueError, match=message):
        MaxentClassifier().fit(frame, y)
    with pytest.raises(ValueError, match=message):
        MaxentClassifier().fit(whole, y).predict(frame)
    with pytest.raises(ValueError, match=message):
        sl1max.fit(frame, y)


def test_text():
    message = r"X is text: vectorise it first, e.g. with sklearn.feature_extraction.text.CountVectorizer"
    pandas = pytest.importorskip("pandas")
    for texts in (TEXTS, np.array(TEXTS), pandas.Series(TEXTS), pandas.DataFrame({"text": TEXTS})):
        with pytest.raises(ValueError, match=message):
            MaxentClassifier().fit(texts, TOPICS)
    with pytest.raises(ValueError, match=message):
        MaxentClassifier().fit(*make_data()).predict(TEXTS)


@pytest.mark.parametrize("method", ["predict", "predict_proba", "decision_function"])
def test_number_of_features(method):
    X, y = make_data()
    estimator = MaxentClassifier().fit(X, y)
    for bad in (X[:, :-1], sparse.csr_array(X[:, :-1])):
        with pytest.raises(ValueError, match="X has 7 features, but MaxentClassifier is expecting 8 features"):
            getattr(estimator, method)(bad)


def test_labels():
    X, y = make_data()
    with pytest.raises(ValueError, match="Unknown label type: continuous"):
        MaxentClassifier().fit(X, y + 0.5)
    with pytest.raises(ValueError, match="Unknown label type: multiclass-multioutput"):
        MaxentClassifier().fit(X, np.stack([y, y], axis=1))
    with pytest.raises(ValueError, match="y has one class only"):
        MaxentClassifier().fit(X, np.zeros(len(y)))
    with pytest.raises(ValueError, match="distribution='jiont' is unknown: it must be one of"):
        MaxentClassifier(distribution="jiont").fit(X, y)


@pytest.mark.parametrize("make", [MaxentClassifier, lambda: sl1max.MaxentClassifierCV(betas=2, cv=2)])
def test_labels_that_are_none(make):
    X, _ = make_data()
    n = len(X)
    for y, message in (
        ([{"a"}, {"a", "b"}] * (n // 2), r"^y has several labels in each place: .*MultiLabelBinarizer"),
        ([["a"], ["a", "b"]] * (n // 2), r"^y has several labels in each place: .*MultiLabelBinarizer"),
        (np.linspace(0, 1, n), r"^y is continuous, .* \(Unknown label type: continuous\)$"),
        ([None, "a"] * (n // 2), r"^y has None at index 0: each example needs a label$"),
    ):
        with pytest.raises(ValueError, match=message):
            make().fit(X, y)


def test_without_scikit_learn():
    code = """
import sys
sys.modules["sklearn"] = None
import inspect, pydoc
import sl1max
from sl1max import MaxentClassifier
model = sl1max.fit([[0, 1], [1, 0], [1, 1], [0, 0]], [0, 1, 1, 0])
sl1max.path([[0, 1], [1, 0], [1, 1], [0, 0]], [0, 1, 1, 0], betas=3)
assert {name for name, _ in inspect.getmembers(sl1max)} >= set(sl1max.__all__)
assert hasattr(sl1max, "MaxentClassifier") and not hasattr(sl1max, "MaxentClasifier")
assert "MaxentClassifierCV needs scikit-learn" in pydoc.render_doc(sl1max)
for make in (MaxentClassifier, sl1max.MaxentClassifierCV, sl1max.get_learner):
    try:
        make(n_jobs=2)
    except ImportError as error:
        print(error)
"""
    done = subprocess.run([sys.executable, "-P", "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.splitlines() == [
        f"{name} needs scikit-learn >= 1.6: pip install scikit-learn"
        for name in ("MaxentClassifier", "MaxentClassifierCV", "get_learner")
    ]


def test_names_of_a_frame():
    pandas = pytest.importorskip("pandas")
    X, y = make_data()
    X = pandas.DataFrame(X, columns=[f"word {j}" for j in range(X.shape[1])])
    Y = pandas.DataFrame(np.eye(3, dtype=int)[y], columns=["ham", "eggs", "spam"])
    estimator = MaxentClassifier(warm_start=True).fit(X, Y)
    for _ in range(2):
        assert estimator.classes_.tolist() == ["ham", "eggs", "spam"]
        assert estimator.model_.feature_names.tolist() == estimator.feature_names_in_.tolist() == list(X.columns)
        assert estimator.predict(X).shape == Y.shape
        estimator.fit(X, Y)
    np.testing.assert_array_equal(estimator.model_.predict(X), estimator.predict(X))
    assert MaxentClassifier().fit(X, Y.to_numpy()).classes_.tolist() == [0, 1, 2]
