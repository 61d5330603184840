"""sl1max.AdditiveClassifier: the conventions of scikit-learn, response curves."""

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import GridSearchCV, cross_val_score
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.utils.estimator_checks import parametrize_with_checks

from sl1max import AdditiveClassifier, load


def make_data(seed=0, n=300):
    rng = np.random.default_rng(seed)
    X = rng.uniform(-3, 3, (n, 3)).round(2)
    return X, np.where(np.abs(X[:, 0]) + 0.5 * X[:, 1] + rng.normal(size=n) / 2 > 1.5, "yes", "no")


# The check has fewer examples than columns. The outermost hinges hold one example each and are equal in all columns
# where that is the same one: the optimum is not unique, and which of them has the weight may depend on rounding. It
# compares predictions for examples that have no weight in training.
NOT_UNIQUE = {"check_sample_weight_equivalence_on_dense_data": "the optimum is not unique"}


@parametrize_with_checks(
    [AdditiveClassifier(), AdditiveClassifier("lht", distribution="joint", beta=2.0)],
    expected_failed_checks=lambda estimator: NOT_UNIQUE if estimator.distribution == "conditional" else {},
)
def test_scikit_learn_checks(estimator, check):
    check(estimator)


def test_hinges_find_what_a_linear_model_cannot():
    X, y = make_data()
    additive = cross_val_score(AdditiveClassifier(), X, y).mean()
    linear = cross_val_score(LogisticRegression(), X, y).mean()
    assert additive > linear + 0.05 and additive > 0.78


def test_response_curves_add_up_to_the_decision_function():
    X, y = make_data()
    model = AdditiveClassifier("lqht", beta=0.3).fit(X, y)
    values = X[:5]
    total = np.zeros(5)
    for j in range(3):
        curve = model.response_curve(j, n_points=20001)
        # Thresholds are jumps: interpolation between two values may be off next to them.
        total += np.interp(values[:, j], curve["value"], curve["response"])
    offset = model.decision_function(values) - total
    assert_allclose(offset, np.median(offset), atol=0.02)
    low, high = X[:, 0].min(), X[:, 0].max()
    curve = model.response_curve(0)
    inside = (curve["value"] >= low) & (curve["value"] <= high)
    assert len(np.unique(curve["response"][curve["value"] < low])) == 1 and inside.sum() > 80
    with pytest.raises(ValueError, match="there is no column 3"):
        model.response_curve(3)
    with pytest.raises(ValueError, match=r"label must be one of \['yes'\], got 'no'"):
        model.response_curve(0, "no")


def test_response_of_a_category_and_of_several_classes():
    rng = np.random.default_rng(0)
    X = np.column_stack([rng.integers(0, 4, 300), rng.normal(size=300)])
    y = np.where(rng.random(300) < 0.8, X[:, 0] % 3, 2).astype(int)
    model = AdditiveClassifier(categorical_features=[0], beta=0.5).fit(X, y)
    curve = model.response_curve(0, 1)
    assert curve["value"][curve["response"].argmax()] == 1
    assert_array_equal(model.predict([[9.0, 0.0]]).shape, [1])  # a category that was not seen
    with pytest.raises(ValueError, match="label must be one of"):
        model.response_curve(0)
    with pytest.raises(ValueError, match="categorical_features names 2, which is not a column of X"):
        AdditiveClassifier(categorical_features=[2]).fit(X, y)


def test_frames_name_features_and_columns():
    pd = pytest.importorskip("pandas")
    X, y = make_data()
    frame = pd.DataFrame(X, columns=["warmth", "rain", "noise"])
    model = AdditiveClassifier().fit(frame, y)
    plain = AdditiveClassifier().fit(X, y)
    assert_array_equal(model.predict_proba(frame), plain.predict_proba(X))
    assert any("warmth" in name for name in model.features_["feature"])
    assert_array_equal(model.response_curve("warmth")["response"], plain.response_curve(0)["response"])
    assert model.features_.columns == ("feature", "low", "high", "weight of no", "weight of yes")
    assert set(model.top_features("yes", 3)["feature"]) <= set(model.features_["feature"])
    assert len(model.feature_names_in_) == 3


def test_points_beyond_the_training_range_count_as_at_its_end():
    X, y = make_data()
    model = AdditiveClassifier("lqp").fit(X, y)
    edge = np.clip([[99.0, -99.0, 0.0]], X.min(axis=0), X.max(axis=0))
    assert_array_equal(model.decision_function([[99.0, -99.0, 0.0]]), model.decision_function(edge))


def test_grid_search_and_pipeline():
    X, y = make_data(n=150)
    search = GridSearchCV(AdditiveClassifier(), {"beta": [0.5, 50.0]}, cv=3).fit(X, y)
    assert search.best_params_ == {"beta": 0.5}
    assert make_pipeline(StandardScaler(), AdditiveClassifier()).fit(X, y).score(X, y) > 0.8


def test_certificate_covers_all_features():
    X, y = make_data()
    model = AdditiveClassifier(tol=1e-8, beta=0.2).fit(X, y)
    assert model.n_features_expanded_ > 1400 > 100 > len(model.features_)
    assert np.max(model.dual_gap_) <= 1e-8 * np.max(np.abs(model.model_.objective_zero))


def test_model_is_saved_with_the_names_of_its_features(tmp_path):
    X, y = make_data()
    model = AdditiveClassifier().fit(X, y)
    model.model_.save(tmp_path / "additive.sl1max")
    again = load(tmp_path / "additive.sl1max")
    assert list(again.feature_names) == model.features_["feature"].tolist()


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"features": "x"}, 'features must be letters out of "lqpht"'),
        ({"features": ""}, 'features must be letters out of "lqpht"'),
        ({"beta": 0}, "beta == 0, must be > 0"),
        ({"distribution": "none"}, "distribution"),
        ({"tol": -1}, "tol"),
    ],
)
def test_options_that_cannot_be(options, message):
    with pytest.raises(ValueError, match=message):
        AdditiveClassifier(**options).fit(*make_data(n=20))


def test_rows_without_weight_are_left_out():
    X, y = make_data(n=200)
    weight = np.arange(200) % 2
    weighted = AdditiveClassifier(tol=1e-9).fit(X, y, sample_weight=weight)
    kept = AdditiveClassifier(tol=1e-9).fit(X[weight > 0], y[weight > 0])
    assert_allclose(weighted.decision_function(X), kept.decision_function(X), atol=1e-9)
