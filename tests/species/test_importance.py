"""Importance of covariates: permutation, contribution on a path, jackknife; response curves; similarity."""

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal

pytest.importorskip("sklearn")

from species_data import load_species, make_species, needs_shared

from sl1max.species import (
    EnvironmentalSimilarity,
    SpeciesModel,
    clamping_effect,
    jackknife,
    percent_contribution,
    permutation_importance,
    response_curve,
)


@pytest.fixture(scope="module")
def fitted():
    background, presences = make_species(n_presences=25)
    X, y = np.concatenate([background, presences]), np.arange(105) >= 80
    return SpeciesModel("lqph", categorical_features=[3]).fit(X, y), X, y


# -------------------------------------------------------------------------------------------------- importance


def test_permutation_importance_is_the_fall_of_the_auc(fitted):
    model, X, y = fitted
    table = permutation_importance(model, X, y, n_repeats=20, random_state=0)
    assert_allclose(table["importance"].sum(), 100)
    assert table["importance"][:2].min() > table["importance"][2]
    assert (np.abs(table["auc_drop"]) <= 0.6).all() and (table["std"] >= 0).all()
    again = permutation_importance(model, X, y, n_repeats=20, random_state=0, n_jobs=2)
    assert_array_equal(table.rows, again.rows)
    other = permutation_importance(model, X, y, n_repeats=20, random_state=1)
    assert_allclose(other["auc_drop"], table["auc_drop"], atol=0.1)
    with pytest.raises(ValueError, match="n_repeats"):
        permutation_importance(model, X, y, n_repeats=0)


def test_covariate_without_a_weight_has_no_importance():
    rng = np.random.default_rng(0)
    X, y = rng.normal(size=(200, 2)), np.arange(200) >= 150
    X[y, 0] += 2
    X[:, 1] = 3.0
    model = SpeciesModel("lq").fit(X, y)
    assert_allclose(permutation_importance(model, X, y, random_state=0)["importance"], [100, 0])
    assert_allclose(percent_contribution(model, X, y)["contribution"], [100, 0])
    table = jackknife(model, X, y)
    assert_allclose(table["gain_drop"], [model.gain_, 0], atol=1e-5)
    assert_allclose(table["gain_only"], [model.gain_, 0], atol=1e-5)


def test_contribution_of_equal_covariates_goes_to_the_first():
    """Depends on the path; the gain lost without either is 0."""
    background, presences = make_species(n_presences=25)
    X, y = np.concatenate([background, presences])[:, [0, 0]], np.arange(105) >= 80
    model = SpeciesModel("lqh").fit(X, y)
    assert percent_contribution(model, X, y)["contribution"].max() > 60
    assert_allclose(jackknife(model, X, y)["gain_drop"], 0, atol=1e-4)


def test_contributions_sum_to_the_gain(fitted):
    from sl1max.species._model import read_rows
    from sl1max.training._sequential import sequential_gains

    model, X, y = fitted
    gains = sequential_gains(model._pose(read_rows(model, X, y).sample_space()))
    assert (gains >= 0).all()
    assert 0.9 * model.gain_ < gains.sum() < 1.1 * model.gain_
    table = percent_contribution(model, X, y)
    assert_allclose(table["contribution"].sum(), 100)


def test_jackknife_equals_models_of_fewer_covariates(fitted):
    model, X, y = fitted
    table = jackknife(model, X, y, test_presences=X[-5:], n_jobs=2)
    options = model.get_params() | {"categorical_features": [2]}
    without = SpeciesModel(**options).fit(X[:, [0, 1, 3]], y)
    # The sample space stays the same: all presences are added to it, though some equal a point in the other covariates.
    assert without.n_background_ == 105
    assert_allclose(table["gain_without"][2], without.gain_, atol=2e-5)
    assert_allclose(table["gain_drop"], model.gain_ - table["gain_without"])
    assert (table["gain_drop"] > -2e-5).all() and (table["gain_only"] <= model.gain_ + 2e-5).all()
    assert (table["auc_without"] > 0.5).all() and np.isfinite(table["test_gain_only"]).all()
    assert ((table["test_auc_without"] >= 0) & (table["test_auc_without"] <= 1)).all()


def test_jackknife_of_one_covariate():
    background, presences = make_species(n_presences=25)
    X, y = np.concatenate([background, presences])[:, :1], np.arange(105) >= 80
    table = jackknife(SpeciesModel("lq").fit(X, y), X, y)
    assert table["gain_without"].tolist() == [0.0] and table["auc_without"].tolist() == [0.5]


def read_reference(species, setting):
    import csv

    from species_data import SHARED

    folder = "bradypus" if species == "bradypus" else "sa"
    with open(SHARED / folder / f"jar_{setting}" / "maxentResults.csv", newline="") as stream:
        return {row["Species"]: row for row in csv.DictReader(stream)}[species]


@needs_shared[0]
@needs_shared[1]
@pytest.mark.slow
@pytest.mark.parametrize("species", ["bradypus", "sa07"])
def test_contributions_are_near_those_of_the_program(species):
    background, presences, names, categorical = load_species(species)
    X, y = np.concatenate([background, presences]), np.arange(len(background) + len(presences)) >= len(background)
    model = SpeciesModel(categorical_features=categorical, tol=1e-3).fit(X, y)
    reference = read_reference(species, "auto")
    theirs = np.array([float(reference[f"{name} contribution"]) for name in names])
    ours = percent_contribution(model, X, y)["contribution"]
    assert np.abs(ours - theirs).max() < 6 and np.corrcoef(ours, theirs)[0, 1] > 0.97


@needs_shared[0]
@needs_shared[1]
@pytest.mark.slow
def test_jackknife_gains_are_not_below_those_of_the_program():
    background, presences, names, categorical = load_species("bradypus")
    X, y = np.concatenate([background, presences]), np.arange(1116) >= 1000
    model = SpeciesModel(categorical_features=categorical).fit(X, y)
    table, reference = jackknife(model, X, y), read_reference("bradypus", "jack")
    for column, heading in (("gain_without", "without"), ("gain_only", "with only")):
        theirs = np.array([float(reference[f"Training gain {heading} {name}"]) for name in names])
        assert (table[column] > theirs - 0.6e-4).all()
        assert_allclose(table[column], theirs, atol=0.08)


# --------------------------------------------------------------------------------------------- response curves


def test_marginal_response_is_the_prediction_at_the_mean_presence(fitted):
    model, X, y = fitted
    curve = response_curve(model, X, y, 1, n_points=11, output="logistic")
    typical = np.append(X[y, :3].mean(axis=0), np.bincount(X[y, 3].astype(int)).argmax())
    points = np.tile(typical, (11, 1))
    points[:, 1] = curve["value"]
    assert_allclose(curve["response"], model.predict_suitability(points, "logistic"), rtol=1e-12)
    low, high = X[:, 1].min(), X[:, 1].max()
    assert_allclose(curve["value"][[0, -1]], [low - 0.1 * (high - low), high + 0.1 * (high - low)])
    assert curve["inside"].tolist() == [low <= value <= high for value in curve["value"]]


def test_response_alone_is_that_of_a_model_of_one_covariate():
    X, y = np.random.default_rng(0).normal(size=(105, 3)), np.arange(105) >= 80  # no presence equals another point
    X[y] += [1, -1, 0]
    model = SpeciesModel("lqph", tol=1e-10).fit(X, y)
    curve = response_curve(model, X, y, "x0", kind="alone", n_points=21)
    alone = SpeciesModel("lqph", tol=1e-10).fit(X[:, :1], y)
    assert_allclose(curve["response"], alone.predict_suitability(curve["value"][:, None]), rtol=1e-3)


def test_response_to_categories(fitted):
    pd = pytest.importorskip("pandas")
    model, X, y = fitted
    for kind in ("marginal", "alone"):
        curve = response_curve(model, X, y, 3, kind=kind)
        assert curve["value"].tolist() == [1, 2, 3, 4] and curve["inside"].all()
    frame = pd.DataFrame(X[:, :3], columns=["rain", "warm", "dry"]).assign(
        soil=list("abcd"[int(k) - 1] for k in X[:, 3])
    )
    named = SpeciesModel("lqph").fit(frame, y)
    for kind in ("marginal", "alone"):
        curve = response_curve(named, frame, y, "soil", kind=kind)
        assert curve["value"].tolist() == list("abcd")
        assert_allclose(curve["response"], response_curve(model, X, y, 3, kind=kind)["response"], rtol=1e-3)


def test_wrong_covariates_and_kinds_are_refused(fitted):
    model, X, y = fitted
    with pytest.raises(ValueError, match="no covariate 'rain'"):
        response_curve(model, X, y, "rain")
    with pytest.raises(ValueError, match="no covariate 4"):
        response_curve(model, X, y, 4)
    with pytest.raises(ValueError, match='kind must be "marginal" or "alone"'):
        response_curve(model, X, y, 0, kind="mean")


# -------------------------------------------------------------------------------------------------- similarity


def test_similarity_equals_its_definition():
    rng = np.random.default_rng(0)
    reference, X = rng.integers(0, 20, (50, 2)).astype(float), rng.integers(-5, 25, (60, 2)).astype(float)
    expected = np.empty(X.shape)
    for j in range(2):
        low, high = reference[:, j].min(), reference[:, j].max()
        for i, value in enumerate(X[:, j]):
            f = 100 * np.mean(reference[:, j] < value)
            if f == 0:
                expected[i, j] = 100 * (value - low) / (high - low)
            elif f <= 50:
                expected[i, j] = 2 * f
            elif f < 100 and value < high:
                expected[i, j] = 2 * (100 - f)
            else:
                expected[i, j] = 100 * (high - value) / (high - low)
    similarity = EnvironmentalSimilarity(reference)
    assert_allclose(similarity.by_covariate(X), expected)
    assert_allclose(similarity.score(X), expected.min(axis=1))
    assert_array_equal(similarity.most_dissimilar(X), np.array(["x0", "x1"])[expected.argmin(axis=1)])
    inside = np.all((X >= reference.min(axis=0)) & (X <= reference.max(axis=0)), axis=1)
    assert_array_equal(similarity.score(X) >= 0, inside)


def test_similarity_of_categories_and_missing_values():
    pd = pytest.importorskip("pandas")
    reference = pd.DataFrame({"rain": [1.0, 2.0, 3.0, np.nan], "soil": ["fen", "bog", "fen", "rock"]})
    similarity = EnvironmentalSimilarity(reference)
    X = pd.DataFrame({"soil": ["bog", "rock", "sand", "fen"], "rain": [2.0, 2.0, 9.0, np.nan]})
    assert similarity.by_covariate(X)[:, 1].tolist() == [100, -100, -100, 100]
    assert_allclose(similarity.score(X), [2 / 3 * 100, -100, -300, np.nan])
    assert similarity.most_dissimilar(X).tolist() == ["rain", "soil", "rain", ""]
    with pytest.raises(ValueError, match="no row without a missing value"):
        EnvironmentalSimilarity([[np.nan, 1.0]])


def test_clamping_has_no_effect_within_the_range_of_training(fitted):
    model, X, _ = fitted
    assert_allclose(clamping_effect(model, X), 0, rtol=0, atol=1e-14)
    assert clamping_effect(model, X[:1] + [500, 0, 0, 0], output="logistic") > 0
