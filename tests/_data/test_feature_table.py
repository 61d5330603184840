"""The features of Maxent and their penalties, against a slow twin and numbers made by hand."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from numpy.testing import assert_allclose, assert_array_equal
from species_data import make_species, twin_features, twin_knots, twin_penalty, twin_precision

from sl1max._data.feature_table import (
    HINGE,
    LINEAR,
    REVERSE_HINGE,
    THRESHOLD,
    FeatureTable,
    choose_classes,
    default_betas,
    expand,
    make_table,
    means_and_penalties,
    place_knots,
    value_precision,
)

numbers = st.one_of(
    st.integers(-2000, 2000).map(float),
    st.floats(-100, 100).map(lambda value: round(value, 3)),
    st.floats(1e-4, 1e6).map(lambda value: float(f"{value:.8g}")),
)


def expand_presences(background, presences, classes, categorical=(3,)):
    return expand(np.concatenate([background, presences]), presences, classes, list(categorical))


# ------------------------------------------------------------------------------------------------------ knots


@pytest.mark.parametrize(
    ("value", "precision"),
    [(0.0, 0.0), (5.0, 0.5), (123.0, 0.5), (-123.0, 0.5), (100.0, 50.0), (0.25, 0.005), (123456.0, 0.5), (1 / 3, 5e-7)],
)
def test_precision_of_known_values(value, precision):
    assert_allclose(value_precision(np.array([value])), precision, rtol=1e-9)


@given(st.lists(numbers, min_size=1, max_size=30))
def test_precision_equals_the_twin(values):
    assert_array_equal(value_precision(np.array(values)), [twin_precision(value) for value in values])


@given(st.lists(numbers, min_size=1, max_size=40))
def test_knots_equal_the_twin(values):
    distinct = np.unique(values)
    assert_array_equal(place_knots(distinct, value_precision(distinct).min()), twin_knots(values))


def test_knots_skip_values_within_the_precision():
    assert_array_equal(place_knots(np.array([1.0, 1.25, 1.5, 1.75, 2.5]), 0.3), [1.25, 2.0])
    assert_array_equal(place_knots(np.array([1.0, 1.25, 1.5, 1.75, 2.5]), 0.2), [1.125, 1.375, 1.625, 2.125])


def test_constant_covariate_has_no_knots():
    assert_array_equal(expand(np.full((5, 1), 3.0), np.full((1, 1), 3.0), "lht").kind, [LINEAR])


# --------------------------------------------------------------------------------------------------- features


@pytest.mark.parametrize("kind", ["counts", "decimals"])
@pytest.mark.parametrize("classes", ["l", "lq", "lqp", "lqpht"])
def test_features_equal_the_twin(kind, classes):
    background, presences = make_species(kind=kind)
    points = np.concatenate([background, presences])
    table = expand(points, presences, classes, [3])
    twin = twin_features(points, presences, classes, [3])
    assert table.names([f"x{j}" for j in range(4)]) == [name for name, _ in twin]
    expected = np.array([[feature(row) for _, feature in twin] for row in points])
    assert_allclose(table.columns(points), expected, rtol=1e-14, atol=1e-15)


@pytest.mark.parametrize("classes", ["l", "lqph", "lqpht"])
def test_features_lie_between_zero_and_one_over_the_sample_space(classes):
    background, presences = make_species(kind="decimals")
    columns = expand_presences(background, presences, classes).columns(np.concatenate([background, presences]))
    assert (columns >= 0).all() and (columns <= 1).all()


def test_clamped_features_stay_within_their_range():
    background, presences = make_species()
    table = expand_presences(background, presences, "lqpht")
    far = np.concatenate([background - 1000, background + 1000])
    assert table.columns(far).max() > 1
    clamped = table.columns(far, clamp=True)
    assert clamped.min() == 0 and clamped.max() == 1


def test_linear_features_are_made_without_their_letter():
    background, presences = make_species()
    assert_array_equal(expand_presences(background, presences, "h").kind[:7] == LINEAR, [0, 0, 0, 0, 1, 1, 1])


def test_categories_without_presences_are_left_out():
    background, presences = make_species()
    presences[:, 3] = np.where(presences[:, 3] > 2, 2, 1)
    table = expand_presences(background, presences, "l")
    assert_array_equal(table.value[:2], [1, 2]) and len(table) == 5


def test_thresholds_lie_within_the_range_of_the_presences():
    table = expand(np.arange(10.0)[:, None], np.array([[2.0], [5.0]]), "t")
    assert_array_equal(table.value[table.kind == THRESHOLD], [2.5, 3.5, 4.5])


@pytest.mark.parametrize(
    ("n", "letters"), [(1, "l"), (9, "l"), (10, "lq"), (14, "lq"), (15, "lqh"), (79, "lqh"), (80, "lqhp")]
)
def test_automatic_classes_depend_on_the_number_of_presences(n, letters):
    assert choose_classes("auto", n) == letters


@pytest.mark.parametrize("features", ["", "x", "lqx", None, 3])
def test_unknown_feature_class_is_refused(features):
    with pytest.raises(ValueError, match="features must be"):
        choose_classes(features, 10)


# ------------------------------------------------------------------------------------------------ penalties


@pytest.mark.parametrize(
    ("n", "classes", "lqp"),
    [
        (1, "l", 1.0),
        (20, "l", 0.6),
        (200, "l", 0.05),
        (5, "lq", 1.05),
        (17, "lqh", 0.5),
        (100, "lq", 0.05),
        (0, "lqp", 2.6),
        (65, "lqph", 0.3),
    ],
)
def test_betas_of_linear_quadratic_and_product_features(n, classes, lqp):
    assert_allclose(default_betas(n, classes).lqp, lqp, rtol=1e-14)
    assert_allclose(default_betas(n, classes, 3.0).lqp, 3 * lqp, rtol=1e-14)


@pytest.mark.parametrize(
    ("n", "categorical", "threshold"), [(5, 0.575, 1.95), (10, 0.5, 1.9), (17, 0.25, 1.83), (300, 0.25, 1.0)]
)
def test_betas_of_categories_thresholds_and_hinges(n, categorical, threshold):
    betas = default_betas(n, "l")
    assert_allclose([betas.categorical, betas.threshold, betas.hinge], [categorical, threshold, 0.5], rtol=1e-14)


def test_given_betas_replace_the_defaults():
    betas = default_betas(50, "lqpht", 2.0, lqp=0.1, categorical=0.2, threshold=0.3, hinge=0.4)
    assert_allclose(betas.of_kinds(np.arange(7)), 2 * np.array([0.2, 0.1, 0.1, 0.1, 0.3, 0.4, 0.4]))


@pytest.mark.parametrize("n_presences", [1, 2, 3, 9, 20])
@pytest.mark.parametrize("multiplier", [1.0, 0.25, 4.0])
def test_means_and_penalties_equal_the_twin(n_presences, multiplier):
    background, presences = make_species(n_presences=n_presences, kind="decimals")
    points = np.concatenate([background, presences])
    table = expand(points, presences, "lqpht", [3])
    betas = default_betas(n_presences, "lqpht", multiplier)
    means, penalties = means_and_penalties(table, presences, betas)
    expected = []
    for (name, feature), beta in zip(
        twin_features(points, presences, "lqpht", [3]), betas.of_kinds(table.kind), strict=True
    ):
        values = [feature(row) for row in presences]
        over_points = [feature(row) for row in points]
        # The program takes the range of a hinge or threshold to be 1, which it is.
        extent = 1.0 if name[0] in "'`" or "<" in name else max(over_points) - min(over_points)
        expected.append((np.mean(values), twin_penalty(name, values, extent, beta, multiplier)))
    assert_allclose(means, [mean for mean, _ in expected], rtol=1e-12, atol=1e-14)
    assert_allclose(penalties, [penalty for _, penalty in expected], rtol=1e-11)


def test_category_of_all_presences_has_its_own_penalty():
    background, presences = make_species()
    presences[:, 3] = 2.0
    table = expand_presences(background, presences, "l")
    _, penalties = means_and_penalties(table, presences, default_betas(20, "l"))
    assert_allclose(penalties[0], 1 / 40)


def test_weights_equal_repeated_presences():
    background, presences = make_species()
    repeats = np.random.default_rng(1).integers(1, 4, len(presences))
    table, betas = expand_presences(background, presences, "lqpht"), default_betas(repeats.sum(), "lqpht")
    weighted = means_and_penalties(table, presences, betas, repeats.astype(float))
    repeated = means_and_penalties(table, np.repeat(presences, repeats, axis=0), betas)
    for one, other in zip(weighted, repeated, strict=True):
        assert_allclose(one, other, rtol=1e-12)


def test_names_show_the_kind_and_the_knot():
    tables = [
        make_table(LINEAR, 0, 0.0, 4.0),
        make_table(THRESHOLD, 1, 0.0, 1.0, value=0.5),
        make_table(HINGE, 0, 1.5, 4.0),
        make_table(REVERSE_HINGE, 0, 0.0, 1.5),
    ]
    table = FeatureTable.concatenate(tables)
    assert table.term_names(["a", "b"]) == ["a", "(0.5<b)", "'a", "`a"]
    assert table.names(["a", "b"])[2:] == ["'a(1.5,4.0)", "`a(0.0,1.5)"]
