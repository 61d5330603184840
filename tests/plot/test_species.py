"""Figures of species distributions: they show the numbers of the tables they are given."""

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal

from sl1max import plot
from sl1max.model._explain import make_table
from sl1max.species import SpeciesModel, evaluate, jackknife, response_curve, tune

matplotlib = pytest.importorskip("matplotlib")
plt = pytest.importorskip("matplotlib.pyplot")


@pytest.fixture(autouse=True)
def agg_backend():
    plt.switch_backend("agg")
    yield
    plt.close("all")


@pytest.fixture(scope="module")
def data():
    rng = np.random.default_rng(0)
    X = np.concatenate([rng.uniform(0, 10, (200, 2)), rng.normal(7, 1, (30, 2)) * [1, 0] + [0, 5]])
    y = np.arange(len(X)) >= 200
    return SpeciesModel("lq").fit(X, y), X, y


def test_response_curve_is_solid_within_the_range_in_training(data):
    model, X, y = data
    curve = response_curve(model, X, y, "x0", n_points=41)
    ax = plot.plot_response(curve, "warmth", label="marginal")
    solid, dashed = ax.get_lines()
    assert_array_equal(np.isnan(solid.get_ydata()), ~curve["inside"])
    assert_array_equal(dashed.get_ydata(), curve["response"])
    assert (ax.get_xlabel(), ax.get_ylabel(), ax.get_ylim()) == ("warmth", "cloglog", (0, 1))
    plot.plot_response(curve, "warmth", label="again", ax=ax)
    assert [text.get_text() for text in ax.get_legend().get_texts()] == ["marginal", "again"]
    assert ax.get_lines()[2].get_color() != solid.get_color()


@pytest.mark.parametrize("values", [np.array([1.0, 2.0, 5.0]), np.array(["forest", "meadow", "a name that is long"])])
def test_response_of_categories_is_bars(values):
    curve = make_table(value=values, response=np.array([0.1, 0.9, 0.4]), inside=np.ones(3, bool))
    ax = plot.plot_response(curve, "soil")
    assert_allclose([bar.get_height() for bar in ax.patches], [0.1, 0.9, 0.4])
    assert ax.get_xticklabels()[0].get_text() in ("1", "forest")


def test_omission_and_roc_show_the_curve_of_the_evaluation(data):
    model, X, y = data
    evaluation = evaluate(model, X, y, test_presences=X[y][:8])
    lines = {line.get_label(): line for line in plot.plot_omission(evaluation).get_lines()}
    assert set(lines) == {"predicted area", "training omission", "test omission", "omission expected"}
    assert_array_equal(lines["predicted area"].get_ydata(), evaluation.curve["area"])
    ax = plot.plot_roc(evaluation)
    training = ax.get_lines()[0]
    area = -np.trapezoid(training.get_ydata(), training.get_xdata())
    assert_allclose(area, evaluation.auc, atol=0.005)
    assert f"test, AUC {evaluation.test_auc:.3f}" in [line.get_label() for line in ax.get_lines()]


def test_jackknife_has_two_bars_for_each_covariate(data):
    model, X, y = data
    table = jackknife(model, X, y)
    ax = plot.plot_jackknife(table, whole=model.gain_)
    assert_allclose([bar.get_width() for bar in ax.patches], [*table["gain_without"], *table["gain_only"]])
    assert [text.get_text() for text in ax.get_yticklabels()] == ["x0", "x1"]
    assert ax.get_lines()[0].get_xdata()[0] == model.gain_
    assert plot.plot_jackknife(table, "auc").get_xlim()[0] <= 0.5
    with pytest.raises(ValueError, match="figure must be one of gain, auc, got 'test_auc'"):
        plot.plot_jackknife(table, "test_auc")


def test_tuning_marks_the_chosen_setting(data):
    model, X, y = data
    tuning = tune(model, X, y, features=["l", "lq"], beta_multipliers=[2, 1], n_replicates=2, random_state=0)
    ax = plot.plot_tuning(tuning)
    *lines, chosen = ax.get_lines()
    assert [line.get_label() for line in lines] == ["l", "lq"]
    assert_array_equal(lines[0].get_xdata(), [1, 2])
    assert chosen.get_ydata()[0] == tuning.table["aicc"].min()
    assert plot.plot_tuning(tuning, "test_auc").get_ylabel() == "test AUC"
    with pytest.raises(ValueError, match="figure must be one of aicc"):
        plot.plot_tuning(tuning, "beta")


def test_map_of_an_array_leaves_out_missing_cells():
    values = np.array([[0.0, np.nan], [0.5, 1.0]])
    ax = plot.plot_map(values, extent=(0, 2, 0, 2), points=[[0.5, 0.5]])
    (image,) = ax.get_images()
    assert_array_equal(image.get_array().mask, [[False, True], [False, False]])
    assert image.get_clim() == (0, 1)
    assert_array_equal(ax.get_lines()[0].get_xydata(), [[0.5, 0.5]])
    with pytest.raises(ValueError, match="values must have rows and columns"):
        plot.plot_map(np.zeros(3))


def test_map_of_a_large_raster_is_thinned_out(tmp_path, monkeypatch):
    rasterio = pytest.importorskip("rasterio")
    from sl1max.plot import _species

    monkeypatch.setattr(_species, "MOST_PIXELS", 10)
    values = np.arange(1200, dtype=np.float32).reshape(30, 40)
    values[0] = -9999
    profile = dict(height=30, width=40, count=1, dtype="float32", nodata=-9999)
    with rasterio.open(tmp_path / "map.tif", "w", transform=rasterio.Affine(1, 0, 5, 0, -1, 60), **profile) as raster:
        raster.write(values, 1)
    (image,) = plot.plot_map(tmp_path / "map.tif", name="raw").get_images()
    assert image.get_array().shape == (8, 10)
    assert image.get_extent() == [5, 45, 30, 60]
