"""Scores from curves equal those from columns of features."""

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from species_data import make_species

from sl1max._data.curves import Curves
from sl1max._data.feature_table import expand


def make_model(kind="decimals", classes="lqpht", seed=0):
    """A table of features with weights, most of them zero, and points within and beyond its range."""
    background, presences = make_species(seed, kind=kind, n_presences=20, n_background=60)
    points = np.concatenate([background, presences])
    table = expand(points, presences, classes, [3])
    rng = np.random.default_rng(seed)
    weights = rng.normal(size=len(table)) * (rng.random(len(table)) < 0.3)
    beyond = points[rng.integers(0, len(points), (200, 4)), np.arange(4)]
    beyond[:, :3] += rng.normal(size=(200, 3)) * np.ptp(points[:, :3], axis=0) / 2
    return table, weights, np.concatenate([points, beyond, [[1e3, -1e3, 0.0, 77.0]]])


@pytest.mark.parametrize("kind", ["counts", "decimals"])
@pytest.mark.parametrize("classes", ["l", "q", "t", "h", "p", "lqpht"])
@pytest.mark.parametrize("clamp", [True, False])
def test_scores_equal_those_of_columns(kind, classes, clamp):
    table, weights, V = make_model(kind, classes)
    clamped = np.clip(V, *table.range_of_covariates(4)) if clamp else V
    columns = table.columns(clamped, clamp=clamp)
    scale = 1 + np.abs(columns * weights).sum(axis=1)
    score = Curves(table, weights, 4, clamp=clamp).score(V.T)
    assert (np.abs(score - columns @ weights) <= 1e-13 * scale).all()


def test_threshold_and_hinge_at_a_knot():
    table, *_ = make_model("counts", "ht")
    for j in range(len(table)):
        weights = np.zeros(len(table))
        weights[j] = 1.0
        knots = np.tile(np.array([table.value[j], table.low[j], table.high[j]])[:, None], 4)
        expected = table.columns(np.clip(knots, *table.range_of_covariates(4)), clamp=True)[:, j]
        expected = np.where(np.isnan(knots[:, 0]), np.nan, expected)
        assert_allclose(Curves(table, weights, 4).score(knots.T), expected, atol=1e-15)


@pytest.mark.parametrize("covariate", range(4))
def test_missing_values_make_the_score_nan(covariate):
    table, weights, V = make_model()
    for missing in (np.nan, -9999.0):
        V[5, covariate] = missing
        score = Curves(table, weights, 4).score(V.T, np.full(4, -9999.0))
        assert_array_equal(np.isnan(score), np.arange(len(V)) == 5)


def test_no_points_and_no_weights():
    table, weights, V = make_model()
    assert Curves(table, weights, 4).score(V[:0].T).shape == (0,)
    assert_array_equal(Curves(table, 0 * weights, 4).score(V.T), 0)


def test_many_points():
    table, weights, V = make_model()
    curves = Curves(table, weights, 4)
    assert_array_equal(curves.score(np.tile(V, (20, 1)).T), np.tile(curves.score(V.T), 20))
