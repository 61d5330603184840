"""What a fitted model says: scores, probabilities, predictions."""

import pickle

import numpy as np
import pytest
from scipy import sparse
from scipy.special import expit, log_softmax

import sl1max

CASES = [
    (distribution, label_mode)
    for distribution in ("conditional", "joint", "class-conditional")
    for label_mode in ("exclusive", "independent")
]


def make_data(n_classes=3, seed=0):
    rng = np.random.default_rng(seed)
    X = (rng.random((80, 15)) < 0.3).astype(float)
    y = rng.integers(0, n_classes, 80)
    X[np.arange(80), y] = 1
    return X, y


@pytest.mark.parametrize("n_classes", [2, 3])
@pytest.mark.parametrize(("distribution", "label_mode"), CASES)
def test_attributes(distribution, label_mode, n_classes):
    X, y = make_data(n_classes)
    model = sl1max.fit(X, y, distribution=distribution, label_mode=label_mode)
    assert (model.distribution, model.label_mode, model.trained_on_indicator) == (distribution, label_mode, False)
    assert model.weights.format == "csr"
    assert model.weights.shape == (n_classes, 15)
    assert model.weights.has_canonical_format and model.weights.data.all()
    assert model.intercept.shape == model.class_prior.shape == (n_classes,)
    np.testing.assert_allclose(model.class_prior, np.bincount(y) / 80)
    one = label_mode == "exclusive" and distribution != "class-conditional"
    for name in ("objective", "objective_zero", "dual_gap", "n_iter", "converged"):
        assert np.shape(getattr(model, name)) == (() if one else (n_classes,))
    assert np.all(model.converged)
    assert np.all(model.dual_gap <= model.tol * model.objective_zero)
    assert np.all(model.objective <= model.objective_zero)
    assert repr(model).startswith(f"<sl1max.Model: {distribution}, {n_classes} {label_mode} classes, 15 features, ")
    assert repr(model).endswith("converged>")


@pytest.mark.parametrize(("distribution", "label_mode"), CASES)
def test_probabilities(distribution, label_mode):
    X, y = make_data()
    model = sl1max.fit(X, y, distribution=distribution, label_mode=label_mode)
    decision = model.decision_function(X)
    np.testing.assert_allclose(decision, X @ model.weights.toarray().T + model.intercept)
    if label_mode == "exclusive":
        expected = log_softmax(decision, axis=1)
    elif distribution == "class-conditional":
        expected = np.minimum(np.log1p(-(2.0**-53)), decision + np.log(80))
    else:
        expected = np.log(expit(decision))
    if label_mode == "independent":
        np.testing.assert_allclose(model.predict_proba_independent(X), np.exp(expected), atol=1e-12)
        expected = log_softmax(decision if distribution == "class-conditional" else expected, axis=1)
    np.testing.assert_allclose(model.predict_log_proba(X), expected, atol=1e-12)
    np.testing.assert_allclose(model.predict_proba(X), np.exp(expected), atol=1e-12)
    np.testing.assert_array_equal(model.predict(X), decision.argmax(axis=1))
    assert (model.predict(X) == y).mean() > 0.5


@pytest.mark.parametrize("label_mode", ["exclusive", "independent"])
def test_class_conditional_decision(label_mode):
    """lambda_c . x - ln Z(c) + ln p~(c), with Z over the training examples."""
    X, y = make_data()
    model = sl1max.fit(X, y, distribution="class-conditional", label_mode=label_mode)
    scores = model.scores(X)
    log_z = np.log(np.exp(scores).sum(axis=0))
    np.testing.assert_allclose(model.log_z, log_z)
    np.testing.assert_allclose(model.decision_function(X), scores - log_z + np.log(model.class_prior))


@pytest.mark.parametrize("fit_intercept", [True, False])
def test_joint_normalisers(fit_intercept):
    X, y = make_data()
    model = sl1max.fit(X, y, distribution="joint", fit_intercept=fit_intercept, tol=1e-9)
    joint = model.decision_function(X) - model.log_z
    assert np.exp(joint).sum() == pytest.approx(1)
    if fit_intercept:
        np.testing.assert_allclose(np.exp(joint).sum(axis=0), model.class_prior)
    independent = sl1max.fit(X, y, distribution="joint", label_mode="independent", fit_intercept=fit_intercept)
    assert independent.log_z.shape == (3,)
    assert sl1max.fit(X, y).log_z is None


def test_parts():
    X, y = make_data()
    for distribution in ("conditional", "joint", "class-conditional"):
        model = sl1max.fit(X, y, distribution=distribution, label_mode="independent")
        lam_1, lam_0 = model._parts
        np.testing.assert_array_equal((lam_1 - lam_0).toarray(), model.weights.toarray())
        assert (lam_0.nnz > 0) == (distribution != "class-conditional")
    assert sl1max.fit(X, y)._parts is None


def test_difference_sits_where_it_costs_least():
    """Few positives: class-and-feature is rarer than non-class-and-feature, and so cheaper."""
    X, _ = make_data()
    y = np.zeros(80, int)
    y[:12] = 1
    X[:8, 0] = 1
    model = sl1max.fit(X, y[:, None], beta=0.1)
    lam_1, lam_0 = model._parts
    assert lam_1.nnz > 0 and not np.any((lam_1.toarray() != 0) & (lam_0.toarray() != 0))
    tie = sl1max.fit(X, y[:, None], beta=0.1, beta_rule="count")
    assert tie._parts[1].nnz == 0
    for c in (0, 1):
        beta = np.ones((2, 15))
        beta[c] = 2
        rows = sl1max.fit(X, y, beta=beta, beta_rule="count").weights
        assert rows[[c]].nnz == 0 and rows[[1 - c]].nnz > 0


def test_predict_indicator():
    X, y = make_data()
    Y = np.eye(3, dtype=int)[y]
    labels = sl1max.fit(X, y).predict(X)
    for given, form in (
        (Y, np.ndarray),
        (sparse.csr_array(Y), sparse.csr_array),
        (sparse.coo_matrix(Y), sparse.csr_array),
    ):
        model = sl1max.fit(X, given)
        predicted = model.predict(X)
        assert type(predicted) is form and predicted.dtype == np.int64
        np.testing.assert_array_equal(sparse.csr_array(predicted).toarray(), model.predict_proba(X) > 0.5)
        exclusive = sl1max.fit(X, given, label_mode="exclusive").predict(X)
        assert type(exclusive) is form and exclusive.dtype == np.int64
        np.testing.assert_array_equal(sparse.csr_array(exclusive).toarray(), np.eye(3)[labels])


@pytest.mark.parametrize("distribution", ["conditional", "joint", "class-conditional"])
@pytest.mark.parametrize("label_mode", ["exclusive", "independent"])
def test_two_labels_have_one_decision_value(distribution, label_mode):
    X, y = make_data(2)
    model = sl1max.fit(X, np.array(["no", "yes"])[y], distribution=distribution, label_mode=label_mode)
    decision = model.decision_function(X)
    assert decision.shape == (len(X),)
    np.testing.assert_array_equal(np.where(decision > 0, "yes", "no"), model.predict(X))
    np.testing.assert_array_equal(decision > 0, model.predict_proba(X)[:, 1] > 0.5)
    np.testing.assert_allclose(model.predict_proba(X).sum(axis=1), 1)
    _, both = model.predict_top_k(X, 2, return_decision=True)
    np.testing.assert_allclose(both[:, 0] - both[:, 1], np.abs(decision))
    assert sl1max.fit(X, np.eye(2)[y], distribution=distribution).decision_function(X).shape == (len(X), 2)


def test_probabilities_of_independent_classes_need_such_a_model():
    X, y = make_data()
    with pytest.raises(ValueError, match=r'^predict_proba_independent needs a model with label_mode="independent"$'):
        sl1max.fit(X, y).predict_proba_independent(X)


def test_kinds_of_X_at_prediction():
    X, y = make_data()
    model = sl1max.fit(X, y)
    expected = model.decision_function(X)
    kinds = (
        sparse.csr_matrix,
        sparse.csc_array,
        sparse.coo_array,
        np.asfortranarray,
        np.float32,
        np.int64,
        bool,
    )
    for kind in kinds:
        given = X.astype(kind) if isinstance(kind, type) and issubclass(kind, (np.generic, bool)) else kind(X)
        decision = model.decision_function(given)
        assert type(decision) is np.ndarray and decision.dtype == np.float64
        np.testing.assert_allclose(decision, expected, atol=1e-14)
    assert model.decision_function(X[:1].tolist()).shape == (1, 3)


def test_prediction_errors():
    X, y = make_data()
    model = sl1max.fit(X, y)
    for given, message in (
        (X[:, :7], "^X has 7 features, but the model was trained with 15$"),
        (X[0], r"^X must have 2 dimensions, one row per example: its shape is \(15,\)$"),
        (np.full((2, 15), np.nan), "^X has NaN in row 0, column 0"),
        (["a text"], "^X is text: vectorise it first"),
    ):
        with pytest.raises(ValueError, match=message):
            model.predict(given)
    with pytest.raises(ValueError, match=r"^offset with one value per example cancels"):
        model.predict(X, np.zeros(80))
    with pytest.raises(ValueError, match=r"^offset has shape \(3,\): it must be \(80,\) or \(80, 3\)$"):
        model.predict_proba(X, np.zeros(3))


def test_offset_at_prediction():
    X, y = make_data()
    rng = np.random.default_rng(0)
    offset = rng.normal(size=(80, 3))
    model = sl1max.fit(X, y, offset=offset)
    np.testing.assert_allclose(model.decision_function(X, offset), model.decision_function(X) + offset)
    independent = sl1max.fit(X, y, label_mode="independent")
    decision = independent.decision_function(X) + offset[:, :1]
    np.testing.assert_allclose(independent.decision_function(X, offset[:, 0]), decision)


def test_extreme_scores_stay_finite():
    X, y = make_data()
    for label_mode in ("exclusive", "independent"):
        model = sl1max.fit(X, y, label_mode=label_mode)
        log_proba = model.predict_log_proba(1e6 * X)
        assert not np.isnan(log_proba).any() and (log_proba <= 0).all()
        assert np.isfinite(model.predict_proba(1e6 * X)).all()


@pytest.mark.parametrize(("distribution", "label_mode"), CASES)
def test_pickle(distribution, label_mode):
    X, y = make_data()
    model = sl1max.fit(X, y, distribution=distribution, label_mode=label_mode)
    again = pickle.loads(pickle.dumps(model))
    np.testing.assert_array_equal(again.predict_proba(X), model.predict_proba(X))
    assert repr(again) == repr(model)


def test_probability_of_class_conditional_model_is_below_one():
    """Bayes' rule with equally likely training examples gives more than one for an unusual example of a rare class."""
    X = np.array([[1, 0]] * 2 + [[0, 1]] * 30)
    y = np.array([[1, 0]] * 2 + [[0, 1]] * 30)
    model = sl1max.fit(X, y, distribution="class-conditional", beta=0.01)
    assert model.decision_function([[9, 0]])[0, 0] + np.log(model.total_weight) > 0
    assert model.predict_log_proba([[9, 0]])[0, 0] == np.log1p(-(2.0**-53))
    assert model.predict_proba([[9, 0]])[0, 0] == 1 - 2.0**-53
    assert model.predict([[9, 0]]).tolist() == [[1, 0]]


# Names


@pytest.mark.parametrize("library", ["pandas", "polars"])
def test_column_names_are_kept_and_checked(library, tmp_path):
    frames = pytest.importorskip(library)
    X, y = make_data()
    names = [f"word {j}" for j in range(15)]
    frame = frames.DataFrame(dict(zip(names, X.T, strict=True)))
    model = sl1max.fit(frame, y)
    assert model.feature_names.tolist() == names and sl1max.fit(X, y).feature_names is None
    model.save(tmp_path / "model")
    model = sl1max.load(tmp_path / "model")
    np.testing.assert_array_equal(model.predict(frame), model.predict(X))
    assert set(model.top_features(1)["feature"]) <= set(names)
    for read in (model.predict, model.predict_proba, model.scores, lambda X: model.predict_top_k(X, 2)):
        with pytest.raises(
            ValueError, match=r"^X has the columns that the model was trained on, but in another order$"
        ):
            read(frame[names[::-1]])
    wrong = frames.DataFrame(dict(zip([*names[:-1], "other"], X.T, strict=True)))
    message = (
        "^X must have the columns that the model was trained on: it is without 'word 14' and with unknown 'other'$"
    )
    with pytest.raises(ValueError, match=message):
        model.predict(wrong)


def test_column_names_that_are_not_text_are_ignored():
    pandas = pytest.importorskip("pandas")
    X, y = make_data()
    model = sl1max.fit(pandas.DataFrame(X), y)
    assert model.feature_names is None
    np.testing.assert_array_equal(model.predict(pandas.DataFrame(X, columns=range(15, 30))), model.predict(X))


@pytest.mark.parametrize("library", ["pandas", "polars"])
def test_column_names_of_an_indicator_are_the_classes(library, tmp_path):
    frames = pytest.importorskip(library)
    X, y = make_data()
    Y = np.eye(3, dtype=int)[y]
    frame = frames.DataFrame(dict(zip(["ham", "eggs", "spam"], Y.T, strict=True)))
    for label_mode in ("auto", "exclusive"):
        model = sl1max.fit(X, frame, label_mode=label_mode)
        assert model.classes.tolist() == ["ham", "eggs", "spam"]
        np.testing.assert_array_equal(model.predict(X), sl1max.fit(X, Y, label_mode=label_mode).predict(X))
    model.save(tmp_path / "model")
    assert sl1max.load(tmp_path / "model").classes.tolist() == ["ham", "eggs", "spam"]


def test_equal_names_of_classes_are_refused():
    pandas = pytest.importorskip("pandas")
    X, y = make_data()
    with pytest.raises(ValueError, match=r"^y has two columns of the same name: each class needs a name of its own$"):
        sl1max.fit(X, pandas.DataFrame(np.eye(3)[y], columns=["a", "b", "a"]))
