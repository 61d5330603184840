"""sl1max.species.MaxentFeatures: conventions of scikit-learn, frames, categories, weights."""

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal

pytest.importorskip("sklearn")

from sklearn.pipeline import make_pipeline
from sklearn.utils.estimator_checks import parametrize_with_checks
from species_data import make_species

from sl1max import MaxentClassifier
from sl1max._data.feature_table import default_betas, expand, means_and_penalties
from sl1max.species import MaxentFeatures


@parametrize_with_checks([MaxentFeatures(), MaxentFeatures(features="lqpht", beta_multiplier=2.0)])
def test_scikit_learn_checks(estimator, check):
    check(estimator)


def test_columns_means_and_penalties_are_those_of_the_table():
    background, presences = make_species()
    X, presence = np.concatenate([background, presences]), np.arange(100) >= 80
    expander = MaxentFeatures("lqpht", categorical_features=[3], beta_multiplier=2.0, beta_hinge=0.3)
    columns = expander.fit_transform(X, presence=presence)
    table = expand(X, presences, "lqpht", [3])
    means, penalties = means_and_penalties(table, presences, default_betas(20, "lqpht", 2.0, hinge=0.3))
    assert_array_equal(columns, table.columns(X))
    assert_array_equal(expander.means_, means)
    assert_array_equal(expander.penalties_, penalties)
    assert_array_equal(expander.get_feature_names_out(), table.names(["x0", "x1", "x2", "x3"]))


def test_classes_are_chosen_by_the_number_of_presences():
    background, presences = make_species()
    X, presence = np.concatenate([background, presences]), np.arange(100) >= 80
    assert MaxentFeatures().fit(X, presence=presence).classes_of_features_ == "lqh"
    assert MaxentFeatures().fit(X).classes_of_features_ == "lqhp"


def test_linear_features_need_their_letter():
    X = make_species()[0]
    assert not set(MaxentFeatures("h").fit(X).get_feature_names_out()) & {"x0", "x1", "x2", "x3"}


def test_weights_equal_repeated_rows():
    X = make_species()[0]
    repeats = np.random.default_rng(0).integers(0, 3, len(X))
    weighted = MaxentFeatures("lqpht").fit(X, sample_weight=repeats)
    repeated = MaxentFeatures("lqpht").fit(np.repeat(X, repeats, axis=0))
    assert_array_equal(weighted.get_feature_names_out(), repeated.get_feature_names_out())
    assert_allclose(weighted.penalties_, repeated.penalties_, rtol=1e-12)


def test_clamping_limits_new_points():
    X = make_species()[0]
    far = X + 1e4
    assert MaxentFeatures("lqpht").fit(X).transform(far).max() == 1
    assert MaxentFeatures("lqpht", clamp=False).fit(X).transform(far).max() > 1


@pytest.mark.parametrize("library", ["pandas", "polars"])
def test_categories_of_a_frame_are_found(library):
    frames = pytest.importorskip(library)
    X = make_species()[0]
    names = np.array(["bog", "fen", "heath", "wood"])[X[:, 3].astype(int) - 1]
    columns = {"rain": X[:, 0], "soil": names}
    if library == "pandas":
        frame = frames.DataFrame(columns).astype({"soil": "category"})
    else:
        frame = frames.DataFrame(columns, schema_overrides={"soil": frames.Categorical})
    expander = MaxentFeatures("l").fit(frame)
    columns = expander.transform(frame)
    assert_array_equal(expander.get_feature_names_out()[-1], "rain")
    assert_array_equal(columns[:, :4], names[:, None] == ["bog", "fen", "heath", "wood"])


@pytest.mark.parametrize("listed", [[3], ["soil"], [-1], [False, False, False, True]])
def test_categories_can_be_listed(listed):
    pd = pytest.importorskip("pandas")
    frame = pd.DataFrame(make_species()[0], columns=["a", "b", "c", "soil"])
    assert list(MaxentFeatures("l", categorical_features=listed).fit(frame).covariates_.categories) == [3]


@pytest.mark.parametrize("listed", [[7], ["nothing"], [True, False]])
def test_unknown_categorical_columns_are_refused(listed):
    with pytest.raises(ValueError, match="categorical_features"):
        MaxentFeatures("l", categorical_features=listed).fit(make_species()[0])


def test_unseen_categories_have_no_feature():
    pd = pytest.importorskip("pandas")
    expander = MaxentFeatures("l").fit(pd.DataFrame({"soil": ["bog", "fen", "bog"], "rain": [1.0, 2.0, 3.0]}))
    assert_array_equal(expander.transform(pd.DataFrame({"soil": ["wood"], "rain": [3.0]})), [[0, 0, 1]])


def test_text_in_a_number_column_is_refused():
    pd = pytest.importorskip("pandas")
    expander = MaxentFeatures("l").fit(pd.DataFrame({"rain": [1.0, 2.0]}))
    with pytest.raises(ValueError, match="'rain' holds 'wet'"):
        expander.transform(pd.DataFrame({"rain": ["wet"]}))


def test_missing_values_are_refused():
    pd = pytest.importorskip("pandas")
    with pytest.raises(ValueError, match="NaN in row 1, column 'rain'"):
        MaxentFeatures("l").fit(pd.DataFrame({"rain": [1.0, np.nan]}))


@pytest.mark.parametrize("presence", [np.zeros(80), np.ones(79), np.full(80, 2)])
def test_wrong_presences_are_refused(presence):
    with pytest.raises(ValueError, match="presence"):
        MaxentFeatures("l").fit(make_species()[0], presence=presence)


def test_additive_classifier_in_a_pipeline():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(200, 2))
    y = np.abs(X[:, 0]) > 0.7
    model = make_pipeline(MaxentFeatures("lh"), MaxentClassifier(beta=0.05)).fit(X, y)
    assert model.score(X, y) > 0.95
