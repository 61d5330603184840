"""sl1max.MaxentDensity: the model, its scores and samples, the conventions of scikit-learn."""

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal

pytest.importorskip("sklearn")

from sklearn.model_selection import GridSearchCV
from sklearn.utils.estimator_checks import parametrize_with_checks

from sl1max import MaxentDensity, fit_moments
from sl1max._data.feature_table import default_betas, expand, means_and_penalties


@parametrize_with_checks([MaxentDensity(n_background=200, tol=1e-12, random_state=0)])
def test_scikit_learn_checks(estimator, check):
    check(estimator)


def make_data(n=60, seed=0):
    rng = np.random.default_rng(seed)
    background = np.round(rng.uniform(-3, 3, (400, 2)), 2)
    return background, np.round(rng.normal(size=(n, 2)) * [0.5, 1.0], 2)


def test_model_equals_that_from_moments():
    background, X = make_data()
    density = MaxentDensity(background, features="lq", tol=1e-12).fit(X)
    table = expand(density.points_, X, "lq")
    means, penalties = means_and_penalties(table, X, default_betas(60, "lq"))
    reference = fit_moments(means, penalties, table.columns(density.points_), tol=1e-9)
    assert_allclose(density.proba_, reference.proba, rtol=1e-4)
    assert_allclose(density.gain_, -reference.objective, atol=1e-8)


def test_scores_are_log_ratios_over_the_sample_space():
    background, X = make_data()
    weight = np.random.default_rng(1).random(400)
    density = MaxentDensity(background, background_weight=weight).fit(X)
    assert density.converged_
    assert_allclose(density.q0_.sum(), 1)
    assert_allclose(density.proba_.sum(), 1)
    assert_allclose(density.score_samples(density.points_), np.log(density.proba_ / density.q0_), atol=1e-10)
    assert_allclose(density.score(X), density.score_samples(X).mean())
    assert density.score(X) > density.gain_ > 0


def test_scale_of_the_background_weights_does_not_matter():
    background, X = make_data()
    weight = np.random.default_rng(1).random(400)
    scores = [
        MaxentDensity(background, background_weight=scale * weight).fit(X).score_samples(X) for scale in (1, 1e-6)
    ]
    assert_allclose(scores[0], scores[1], rtol=1e-6, atol=1e-8)


def test_points_without_default_probability_are_left_out():
    background, X = make_data()
    weight = (background[:, 0] > -1).astype(float)
    density = MaxentDensity(background, background_weight=weight).fit(X)
    kept = MaxentDensity(background[weight > 0]).fit(X)
    assert_array_equal(density.score_samples(X), kept.score_samples(X))


def test_weights_equal_repeated_examples():
    background, X = make_data()
    weight = np.random.default_rng(1).integers(0, 3, len(X))
    weighted = MaxentDensity(background, tol=1e-12).fit(X, sample_weight=weight)
    repeated = MaxentDensity(background, tol=1e-12).fit(np.repeat(X, weight, axis=0))
    assert_allclose(weighted.score_samples(X), repeated.score_samples(X), atol=1e-5)


def test_samples_follow_the_model():
    background, X = make_data()
    density = MaxentDensity(background, random_state=0).fit(X)
    sample = density.sample(20_000)
    assert sample.shape == (20_000, 2)
    mean = density.proba_ @ density.points_
    deviation = np.sqrt(density.proba_ @ (density.points_ - mean) ** 2)
    assert (np.abs(sample.mean(axis=0) - mean) < 5 * deviation / np.sqrt(20_000)).all()
    assert_array_equal(sample, density.sample(20_000))
    assert not np.array_equal(sample, density.sample(20_000, random_state=1))


def test_uniform_background_is_drawn_by_default():
    _, X = make_data(n=300)
    density = MaxentDensity(random_state=0).fit(X)
    assert len(density.points_) == 10_300
    low, high = X.min(axis=0), X.max(axis=0)
    margin = 0.1 * (high - low)
    assert (density.points_ >= low - margin).all() and (density.points_ <= high + margin).all()
    assert (density.points_.min(axis=0) < low).all() and (density.points_.max(axis=0) > high).all()
    volume = np.prod(1.2 * (high - low))
    true = -0.5 * (1 / 0.25 * 0.3**2 + 0.2**2) - np.log(2 * np.pi * 0.5)
    assert_allclose(density.score_samples([[0.3, 0.2]]) - np.log(volume), true, atol=0.25)


def test_points_outside_the_range_have_the_score_of_its_end():
    background, X = make_data()
    density = MaxentDensity(background).fit(X)
    end = density.points_.max(axis=0)
    assert_allclose(density.score_samples([end + 10]), density.score_samples([end]))


def test_multiplier_is_chosen_by_cross_validation():
    background, X = make_data()
    search = GridSearchCV(MaxentDensity(background), {"beta_multiplier": [0.1, 1, 50]}, cv=3).fit(X)
    assert search.best_params_["beta_multiplier"] < 50


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"background": np.zeros((5, 3))}, "background has 3 columns"),
        ({"background": np.zeros((5, 2)), "background_weight": np.ones(4)}, "background_weight has shape"),
        ({"background": np.full((5, 2), np.nan)}, "background contains NaN"),
        ({"features": "xyz"}, "features must be"),
        ({"beta_multiplier": -1}, "beta_multiplier"),
    ],
)
def test_wrong_options_are_refused(options, message):
    with pytest.raises(ValueError, match=message):
        MaxentDensity(**options).fit(make_data()[1])


def test_positive_weights_give_a_density_that_rises():
    rng = np.random.default_rng(5)
    background = rng.uniform(0, 1, (300, 2))
    X = np.column_stack([rng.uniform(0.4, 1, 40), rng.uniform(0, 0.6, 40)])
    free = MaxentDensity(background, features="l").fit(X)
    rising = MaxentDensity(background, features="l", positive=True).fit(X)
    ends = np.array([[0.1, 0.5], [0.9, 0.5], [0.5, 0.1], [0.5, 0.9]])
    assert np.diff(free.score_samples(ends))[2] < -0.5
    rise = np.diff(rising.score_samples(ends))
    assert rise[0] > 0.5 and rise[2] == 0.0
    assert rising.converged_ and rising.gain_ < free.gain_ - 0.01
    limited = MaxentDensity(background, features="l", min_weight=-0.2, max_weight=0.1).fit(X)
    assert limited.converged_
    assert_allclose(limited.score_samples([[1.0, 0.5]]) - limited.score_samples([[0.0, 0.5]]), 0.1, rtol=0.05)


def test_l2_makes_a_flatter_density():
    X = np.random.default_rng(6).normal(size=(60, 1))
    background = np.linspace(-4, 4, 81)[:, None]
    sharp, flat = (MaxentDensity(background, features="lq", l2=l2).fit(X) for l2 in (0.0, 20.0))
    assert flat.converged_ and flat.gain_ < sharp.gain_
    assert np.ptp(flat.score_samples(X)) < np.ptp(sharp.score_samples(X))


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"l2": -1.0}, "l2"),
        ({"l2": [1.0, 2.0]}, r"l2=\[1.0, 2.0\] must be a number"),
        ({"l2": np.inf}, "l2 must be finite"),
        ({"min_weight": 0.5}, "min_weight must be at most 0"),
        ({"max_weight": -0.5}, "max_weight must be at least 0"),
        ({"max_weight": "1"}, "max_weight='1' must be a number"),
        ({"positive": 1}, "positive=1 must be True or False"),
    ],
)
def test_wrong_penalties_are_refused(options, message):
    with pytest.raises(ValueError, match=message):
        MaxentDensity(**options).fit(np.arange(20.0)[:, None])
