"""sl1max.species.SpeciesModel: its optimum, outputs, weights, labels, files and the conventions of scikit-learn."""

import pickle

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal

pytest.importorskip("sklearn")

from sklearn.base import clone
from sklearn.exceptions import NotFittedError
from sklearn.metrics import roc_auc_score
from sklearn.model_selection import GridSearchCV, cross_val_score
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.utils.estimator_checks import parametrize_with_checks
from species_data import jar_gain, jar_model, load_species, make_species, needs_shared

from sl1max import ConvergenceWarning
from sl1max.species import SpeciesModel, read_lambdas


@parametrize_with_checks([SpeciesModel(), SpeciesModel("lqpht", output="raw", missing="drop", tol=1e-12)])
def test_scikit_learn_checks(estimator, check):
    check(estimator)


def make_data(seed=0, n_presences=25, kind="counts"):
    background, presences = make_species(seed, n_presences=n_presences, kind=kind)
    return np.concatenate([background, presences]), np.arange(80 + n_presences) >= 80


def fit(X, y, features="auto", **options):
    return SpeciesModel(features, categorical_features=[3], **options).fit(X, y)


@pytest.fixture(scope="module")
def fitted():
    X, y = make_data()
    return fit(X, y), X, y


# --------------------------------------------------------------------------------------------------- the model


def test_raw_output_sums_to_one_over_the_sample_space(fitted):
    model, X, _ = fitted
    raw = model.predict_suitability(X, "raw")
    assert_allclose(raw.sum(), 1, rtol=1e-12)
    assert_allclose(model.entropy_, -raw @ np.log(raw), rtol=1e-12)
    assert model.n_background_ == len(X) and model.n_presences_ == 25


def test_outputs_equal_their_formulas(fitted):
    model, X, _ = fitted
    raw = model.predict_suitability(X, "raw")
    odds = raw * np.exp(model.entropy_)
    assert_allclose(model.predict_suitability(X), 1 - np.exp(-odds), rtol=1e-10)
    assert_allclose(model.predict_suitability(X, "logistic"), odds / (1 + odds), rtol=1e-10)
    cumulative = [100 * raw[raw <= value * (1 + 1e-10)].sum() for value in raw]
    assert_allclose(model.predict_suitability(X, "cumulative"), cumulative, rtol=1e-9)


def test_cumulative_output_goes_from_zero_to_a_hundred(fitted):
    model, _, _ = fitted
    raw = model.model_.raw_values
    score = np.log(np.array([raw[0] / 2, raw[-1], min(1.0, 2 * raw[-1])]) * model.model_.density_normalizer)
    lowest = model.model_.cumulative_values[0]
    assert_allclose(model.model_.transform_score(score, "cumulative"), [lowest / 2, 100, 100], rtol=1e-9)


def test_labels_follow_the_decision_function(fitted):
    model, X, _ = fitted
    decision, proba = model.decision_function(X), model.predict_proba(X)
    assert_array_equal(model.predict(X), decision > 0)
    assert_array_equal(decision > 0, proba[:, 1] > 0.5)
    assert_allclose(proba.sum(axis=1), 1)
    assert_allclose(proba[:, 1], 1 - 0.5 ** np.exp(decision), rtol=1e-9)


def test_logistic_output_is_the_probability_if_asked_for():
    X, y = make_data()
    model = fit(X, y, output="logistic")
    assert_array_equal(model.predict_proba(X)[:, 1], model.predict_suitability(X))


def test_gain_is_the_unregularised_gain_less_the_penalties(fitted):
    model, X, y = fitted
    raw = model.predict_suitability(X, "raw")
    assert_allclose(model.unregularized_gain_, np.log(len(X)) + np.log(raw[y]).mean(), rtol=1e-10)
    penalty = np.abs(model.features_["weight"]) @ model.features_["penalty"]
    assert_allclose(model.gain_, model.unregularized_gain_ - penalty, rtol=1e-10)


def test_fitted_attributes(fitted):
    model, _, _ = fitted
    assert model.converged_ and 0 <= model.dual_gap_ <= 1e-6 * np.log(105)
    assert model.feature_classes_ == "lqh"
    assert model.n_features_expanded_ > 200 > len(model.features_) > 0
    assert model.features_.columns == ("feature", "weight", "low", "high", "penalty")
    assert (model.features_["weight"] != 0).all()


def test_score_is_the_area_under_the_curve(fitted):
    model, X, y = fitted
    assert model.score(X, y) == roc_auc_score(y, model.decision_function(X))


def test_greater_multiplier_gives_a_smaller_gain():
    X, y = make_data()
    gains = [fit(X, y, beta_multiplier=multiplier).gain_ for multiplier in (0.5, 1, 2, 1000)]
    assert gains[0] > gains[1] > gains[2] > 0.01
    assert_allclose(gains[3], 0, atol=1e-15)


@pytest.mark.parametrize("name", ["beta_lqp", "beta_categorical", "beta_hinge"])
def test_constant_of_a_class_can_be_given(name):
    X, y = make_data()
    assert fit(X, y, **{name: 1e-6}).gain_ > fit(X, y).gain_ > fit(X, y, **{name: 10.0}).gain_


def test_features_without_linear_ones():
    X, y = make_data()
    model = fit(X, y, "h")
    assert not {"x0", "x1", "x2"} & set(model.features_["feature"])
    assert len(model.features_)


def test_clamping_limits_predictions_outside_the_range():
    X, y = make_data()
    far = X[:1] + [500, 0, 0, 0]
    clamped = fit(X, y)
    at_edge = X[:1].copy()
    at_edge[0, 0] = X[:, 0].max()
    assert_allclose(clamped.decision_function(far), clamped.decision_function(at_edge), rtol=1e-12)
    assert abs(fit(X, y, clamp=False).decision_function(far) - clamped.decision_function(far)) > 1


def test_max_iter_gives_a_warning():
    X, y = make_data()
    with pytest.warns(ConvergenceWarning):
        model = fit(X, y, max_iter=1)
    assert not model.converged_ and model.gain_ + model.dual_gap_ >= fit(X, y).gain_


def test_gap_bounds_the_distance_from_the_greatest_gain():
    X, y = make_data()
    best = fit(X, y, tol=1e-12).gain_
    for tol in (1e-1, 1e-2, 1e-4):
        model = fit(X, y, tol=tol)
        assert model.gain_ - 1e-12 <= best <= model.gain_ + model.dual_gap_ + 1e-12


# ---------------------------------------------------------------------------------------------- sample space


def test_presences_at_background_points_are_not_added():
    X, y = make_data()
    X = np.concatenate([X, X[:3], X[-2:]])
    y = np.concatenate([y, [True] * 3, [True] * 2])
    model = fit(X, y)
    assert model.n_presences_ == 30 and model.n_background_ == 80 + 25 + 2
    raw = model.predict_suitability(X, "raw")
    assert_allclose(raw[:105].sum() + raw[-2:].sum(), 1, rtol=1e-12)


def test_duplicates_are_removed_on_request():
    X, y = make_data()
    repeated = fit(np.concatenate([X, X[-5:]]), np.append(y, [True] * 5), remove_duplicates=True)
    once = fit(X, y)
    assert repeated.n_presences_ == 25
    assert_array_equal(repeated.predict_suitability(X), once.predict_suitability(X))


def test_weights_equal_repeated_rows():
    X, y = make_data()
    weight = np.random.default_rng(0).integers(0, 4, len(X))
    weighted = SpeciesModel("lqh", categorical_features=[3], tol=1e-12).fit(X, y, sample_weight=weight)
    repeated = fit(np.repeat(X, weight, axis=0), np.repeat(y, weight), "lqh", tol=1e-12)
    assert_allclose(weighted.gain_, repeated.gain_, rtol=1e-10)
    assert_allclose(weighted.entropy_, repeated.entropy_, rtol=1e-8)
    assert weighted.n_background_ == repeated.n_background_ == weight.sum()
    for output in ("raw", "cloglog", "cumulative"):
        one, other = (model.predict_suitability(X, output) for model in (weighted, repeated))
        assert_allclose(one, other, rtol=1e-4, atol=1e-6)


@pytest.mark.parametrize("n_presences", [1, 2, 3, 9, 14])
def test_few_presences(n_presences):
    X, y = make_data(n_presences=n_presences)
    model = fit(X, y)
    assert model.converged_ and model.gain_ > 0
    assert model.feature_classes_ == ("l" if n_presences < 10 else "lq")


def test_equal_presences():
    X, y = make_data()
    X[y] = X[-1]
    model = fit(X, y)
    assert model.converged_
    assert model.predict_suitability(X[-1:]) == model.predict_suitability(X).max()


def test_constant_covariate_has_no_weight():
    X, y = make_data()
    X[:, 2] = 7.0
    model = fit(X, y, "lqpht")
    assert model.converged_
    assert_allclose(model.predict_suitability(X + [0, 0, 1, 0]), model.predict_suitability(X))


def test_presences_outside_the_range_of_the_background():
    X, y = make_data()
    X[y, 0] += 1000
    model = fit(X, y, "lqpht")
    assert model.converged_
    assert_allclose(model.score(X, y), 1)


# ------------------------------------------------------------------------------------------ labels and frames


@pytest.mark.parametrize("labels", [(0, 1), (-1, 1), ("absence", "presence"), (2.0, 5.0)])
def test_any_two_labels_can_be_used(labels):
    X, y = make_data()
    model = fit(X, np.array(labels)[y.astype(int)])
    assert_array_equal(model.classes_, labels)
    assert_array_equal(model.predict(X) == labels[1], fit(X, y).predict(X))
    assert model.score(X, np.array(labels)[y.astype(int)]) == fit(X, y).score(X, y)


@pytest.mark.parametrize("y", [np.zeros(105), np.arange(105) % 3])
def test_other_than_two_labels_are_refused(y):
    with pytest.raises(ValueError, match="two labels"):
        fit(make_data()[0], y)


def test_categories_of_a_frame():
    pd = pytest.importorskip("pandas")
    X, y = make_data()
    names = np.array(["bog", "fen", "heath", "wood"])[X[:, 3].astype(int) - 1]
    frame = pd.DataFrame(X[:, :3], columns=["rain", "warm", "dry"]).assign(soil=pd.Categorical(names))
    model = SpeciesModel().fit(frame, y)
    assert_allclose(model.predict_suitability(frame), fit(X, y).predict_suitability(X), rtol=1e-9)
    unseen = frame[:1].assign(soil="rock")
    assert 0 < model.predict_suitability(unseen)[0] < 1
    with pytest.raises(ValueError, match="categories that are numbers"):
        model.to_lambdas("never.lambdas")


def test_missing_values_are_refused_or_dropped():
    X, y = make_data()
    gaps = X.copy()
    gaps[[3, 90], [1, 0]] = np.nan
    with pytest.raises(ValueError, match="NaN in row 3, column 1"):
        fit(gaps, y)
    model = fit(gaps, y, missing="drop")
    whole = np.setdiff1d(np.arange(105), [3, 90])
    assert_array_equal(model.predict_suitability(X), fit(X[whole], y[whole]).predict_suitability(X))
    assert_array_equal(np.flatnonzero(np.isnan(model.predict_suitability(gaps))), [3, 90])
    with pytest.raises(ValueError, match="the class True has no row"):
        fit(np.where(y[:, None], np.nan, X), y, missing="drop")


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"features": "xyz"}, "features must be"),
        ({"output": "odds"}, "output must be"),
        ({"missing": "ignore"}, "missing must be"),
        ({"beta_multiplier": 0}, "beta_multiplier must be"),
    ],
)
def test_wrong_options_are_refused(options, message):
    with pytest.raises(ValueError, match=message):
        SpeciesModel(**options).fit(*make_data())


def test_unfitted_model_cannot_predict(tmp_path):
    with pytest.raises(NotFittedError):
        SpeciesModel().predict([[1.0]])
    with pytest.raises(NotFittedError):
        SpeciesModel().to_lambdas(tmp_path / "none.lambdas")


# ------------------------------------------------------------------------------------------------ scikit-learn


def test_grid_search_and_cross_validation():
    X, y = make_data()
    search = GridSearchCV(SpeciesModel(), {"beta_multiplier": [0.5, 2], "features": ["l", "lq"]}, cv=3).fit(X, y)
    assert 0.5 < search.best_score_ <= 1
    assert len(cross_val_score(SpeciesModel(), X, y, cv=3, scoring="roc_auc")) == 3


def test_pipeline_and_pickle():
    X, y = make_data()
    model = make_pipeline(StandardScaler(), SpeciesModel()).fit(X, y)
    again = pickle.loads(pickle.dumps(model))
    assert_array_equal(again.predict_proba(X), model.predict_proba(X))
    assert clone(model[-1]).get_params() == SpeciesModel().get_params()


# ------------------------------------------------------------------------------------------------------ files


@pytest.mark.parametrize("clamp", [True, False])
def test_written_model_predicts_the_same(fitted, tmp_path, clamp):
    model, X, _ = fitted
    model.to_lambdas(tmp_path / "one.lambdas")
    again = read_lambdas(tmp_path / "one.lambdas", feature_names=["x0", "x1", "x2", "x3"])
    points = np.concatenate([X, X + 100])
    for output in ("cloglog", "logistic", "raw"):
        expected = model.model_.predict(points, output=output, clamp=clamp)
        assert_allclose(again.predict(points, output=output, clamp=clamp), expected, rtol=1e-12)


@pytest.mark.parametrize("setting", ["auto", "lqh", "thr", "logistic", "raw"])
@needs_shared[0]
@needs_shared[1]
def test_bradypus_has_a_greater_gain_than_the_program(setting):
    background, presences, names, categorical = load_species("bradypus")
    features, multiplier = (
        {"lqh": "lqh", "thr": "lqpht"}.get(setting, "auto"),
        {"logistic": 2, "raw": 0.5}.get(setting, 1),
    )
    X, y = np.concatenate([background, presences]), np.arange(1116) >= 1000
    model = SpeciesModel(features, beta_multiplier=multiplier, categorical_features=categorical).fit(X, y)
    program = jar_model(setting, "bradypus", names)
    assert model.converged_ and model.n_background_ == program.n_background
    assert model.gain_ > jar_gain(setting, "bradypus")
    assert np.corrcoef(model.decision_function(X), program.decision_function(X))[0, 1] > 0.97


def test_positive_weights_make_linear_responses_rise():
    X, y = make_data()
    model = SpeciesModel("l", positive=True, categorical_features=None).fit(X, y)
    assert model.converged_ and (np.asarray(model.features_["weight"]) > 0).all()
    free = SpeciesModel("l", categorical_features=None).fit(X, y)
    assert (np.asarray(free.features_["weight"]) < 0).any() and model.gain_ <= free.gain_


def test_l2_and_limits_hold_for_hinges():
    X, y = make_data()
    plain, smooth = (SpeciesModel("lqh", l2=l2).fit(X, y) for l2 in (0.0, 5.0))
    limited = SpeciesModel("lqh", min_weight=-0.3, max_weight=0.2).fit(X, y)
    weights = [np.asarray(model.features_["weight"]) for model in (plain, smooth, limited)]
    assert smooth.converged_ and limited.converged_
    assert np.abs(weights[1]).max() < np.abs(weights[0]).max()
    assert smooth.gain_ < plain.gain_ and limited.gain_ < plain.gain_
    assert weights[2].min() >= -0.3 and weights[2].max() <= 0.2
