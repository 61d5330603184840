"""Rasters: stacks of layers, points sampled from them, background, maps; on files made with rasterio."""

import sys
import threading
from dataclasses import replace

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal

from sl1max._utils import progress
from sl1max.species import (
    RasterStack,
    SpeciesModel,
    _raster,
    draw_background,
    predict_raster,
    read_lambdas,
    read_occurrences,
    training_set,
)

rasterio = pytest.importorskip("rasterio")

SHAPE = 40, 60
TRANSFORM = rasterio.Affine(0.5, 0, -80, 0, -0.5, 10)
NAMES = ["rain", "soil", "warmth"]
MISSING = [(0, 0), (3, 7), (39, 59)]  # cells


def make_grids(shape=SHAPE):
    rng = np.random.default_rng(0)
    smooth = np.cumsum(np.cumsum(rng.normal(size=(2, *shape)), axis=1), axis=2)
    rain, warmth = np.round(smooth / 10, 2).astype(np.float32)
    return {"rain": rain, "soil": rng.integers(1, 5, shape).astype(np.float32), "warmth": warmth}


def write_grid(path, grid, *, nodata=-9999.0, crs="EPSG:4326", transform=TRANSFORM, dtype="float32", **options):
    driver = "AAIGrid" if path.suffix == ".asc" else "GTiff"
    profile = dict(count=1, height=grid.shape[0], width=grid.shape[1], dtype=dtype, nodata=nodata, crs=crs)
    with rasterio.open(path, "w", driver=driver, transform=transform, **profile, **options) as raster:
        raster.write(grid.astype(dtype), 1)
    return path


@pytest.fixture
def layers(tmp_path):
    """Paths of three layers: floats with nodata, integers, nan for no data in tiles."""
    folder = tmp_path / "layers"
    folder.mkdir()
    grids = make_grids()
    grids["rain"][0, 0] = grids["soil"][3, 7] = -9999
    grids["warmth"][39, 59] = np.nan
    tiles = dict(tiled=True, blockxsize=16, blockysize=16, compress="deflate")
    return {
        "rain": write_grid(folder / "rain.tif", grids["rain"]),
        "soil": write_grid(folder / "soil.tif", grids["soil"], dtype="int16"),
        "warmth": write_grid(folder / "warmth.tif", grids["warmth"], nodata=np.nan, **tiles),
    }


@pytest.fixture(scope="module")
def model():
    grids = make_grids()
    values = np.column_stack([grids[name].ravel() for name in NAMES]).astype(float)
    rng = np.random.default_rng(1)
    rate = np.exp(-(((values[:, 0] - values[:, 0].mean()) / 5) ** 2) + (values[:, 1] == 2))
    presences = values[rng.choice(len(values), 60, p=rate / rate.sum())]
    X = np.concatenate([values[::3], presences])
    y = np.arange(len(X)) >= len(X) - 60
    return SpeciesModel(categorical_features=[1]).fit(X, y)


def rename(model, names=NAMES):
    """The model as a `LambdasModel` whose covariates have the names of the layers."""
    return replace(model.model_, covariates=replace(model.model_.covariates, names=tuple(names)))


def read(path):
    with rasterio.open(path) as raster:
        return raster.read(1), raster


def expected_map(model, output="cloglog"):
    grids = make_grids()
    values = np.column_stack([grids[name].ravel() for name in NAMES]).astype(float)
    out = model.predict(values, output=output).reshape(SHAPE).astype(np.float32)
    out[tuple(np.transpose(MISSING))] = -9999
    return out


# ----------------------------------------------------------------------------------------------------- maps


@pytest.mark.parametrize("output", ["cloglog", "logistic", "raw", "cumulative"])
def test_map_equals_predictions_for_its_cells(layers, model, tmp_path, output):
    model = rename(model)
    predict_raster(model, layers, tmp_path / "map.tif", output=output)
    found, raster = read(tmp_path / "map.tif")
    assert_array_equal(found, expected_map(model, output))
    assert raster.crs == "EPSG:4326" and raster.transform == TRANSFORM and raster.nodata == -9999
    assert raster.dtypes == ("float32",)


def test_settings_of_a_species_model_hold_for_its_maps(layers, model, tmp_path):
    named = {f"x{j}": layers[name] for j, name in enumerate(NAMES)}
    model.set_params(output="raw")
    predict_raster(model, named, tmp_path / "map.tif")
    model.set_params(output="cloglog")
    assert_array_equal(read(tmp_path / "map.tif")[0], expected_map(rename(model), "raw"))


@pytest.fixture
def tiled_layers(layers):
    """The layers with tiles of 16 x 16 or 32 x 16 cells."""
    for name, path in layers.items():
        with rasterio.open(path) as raster:
            grid, nodata, dtype = raster.read(1), raster.nodata, raster.dtypes[0]
        tiles = dict(tiled=True, blockxsize=16, blockysize=32 if name == "rain" else 16)
        write_grid(path, grid, nodata=nodata, dtype=dtype, **tiles)
    return layers


@pytest.mark.parametrize("form", ["layers", "tiled_layers"])
def test_map_does_not_depend_on_windows_and_threads(form, model, tmp_path, monkeypatch, request):
    layers, model = request.getfixturevalue(form), rename(model)
    monkeypatch.setattr(_raster, "TILE", 16)
    monkeypatch.setattr(_raster, "GDAL_CACHE", 1000)  # blocks leave the cache all the time
    for cells in (3, 500, 3000, 1 << 23):
        monkeypatch.setattr(_raster, "CELLS_AT_ONCE", cells)
        predict_raster(model, layers, tmp_path / f"{cells}.tif", n_jobs=3)
        assert_array_equal(read(tmp_path / f"{cells}.tif")[0], expected_map(model))


@pytest.mark.parametrize("cells", [1, 7, 700, 5000, 1 << 23])
@pytest.mark.parametrize("form", ["layers", "tiled_layers"])
def test_windows_cover_every_cell_once_in_bounded_memory(form, cells, monkeypatch, request):
    monkeypatch.setattr(_raster, "CELLS_AT_ONCE", cells)
    monkeypatch.setattr(_raster, "TILE", 16)
    count = np.zeros(SHAPE, int)
    least = 60 if form == "layers" else 32 * 16
    for row, column, height, width in RasterStack(request.getfixturevalue(form)).windows():
        count[row : row + height, column : column + width] += 1
        assert height * width <= max(cells // 3, least)
    assert_array_equal(count, 1)


def test_ascii_grids_are_read_and_written(model, tmp_path):
    grids = make_grids()
    grids["rain"][0, 0] = grids["soil"][3, 7] = grids["warmth"][39, 59] = -9999
    for name, grid in grids.items():
        write_grid(tmp_path / f"{name}.asc", grid)
    predict_raster(rename(model), tmp_path, tmp_path / "map.asc")
    found, raster = read(tmp_path / "map.asc")
    assert raster.driver == "AAIGrid" and raster.nodata == -9999 and raster.crs.is_geographic
    assert_allclose(found, expected_map(rename(model)), rtol=1e-5)
    assert (tmp_path / "map.asc").read_text().startswith("ncols")


def test_java_models_predict_rasters(layers, model, tmp_path):
    rename(model).to_lambdas(tmp_path / "species.lambdas")
    predict_raster(read_lambdas(tmp_path / "species.lambdas"), layers, tmp_path / "map.tif")
    assert_allclose(read(tmp_path / "map.tif")[0], expected_map(rename(model)), rtol=1e-6)


def test_a_map_that_fails_leaves_the_old_file(layers, model, tmp_path, monkeypatch):
    path = tmp_path / "map.tif"
    path.write_bytes(b"old")
    monkeypatch.setattr(_raster.Reader, "read", lambda self, window: 1 / 0)
    with pytest.raises(ZeroDivisionError):
        predict_raster(rename(model), layers, path)
    assert path.read_bytes() == b"old"
    assert sorted(child.name for child in tmp_path.iterdir()) == ["layers", "map.tif"]


@pytest.mark.parametrize("with_tqdm", [False, True])
def test_progress_counts_cells(layers, model, tmp_path, capsys, monkeypatch, with_tqdm):
    monkeypatch.setattr(sys.stderr, "isatty", lambda: with_tqdm)
    predict_raster(rename(model), layers, tmp_path / "map.tif", verbose=1)
    shown = capsys.readouterr().err
    assert ("2.40k/2.40k" if with_tqdm else "sl1max: 2400 of 2400 cells, 0:00 left") in shown


def test_threads_share_a_counter(capsys):
    with progress.counting(400, "cells") as add:
        threads = [threading.Thread(target=lambda: [add(1) for _ in range(100)]) for _ in range(4)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
    assert "400" in capsys.readouterr().err


def test_bad_arguments_of_maps(layers, model, tmp_path):
    named = rename(model)
    with pytest.raises(ValueError, match="there is no layer of the covariate 'soil'; layers: rain, warmth"):
        predict_raster(named, [layers["rain"], layers["warmth"]], tmp_path / "map.tif")
    with pytest.raises(ValueError, match=r"maps are written as \.tif"):
        predict_raster(named, layers, tmp_path / "map.png")
    with pytest.raises(ValueError, match="output must be one of"):
        predict_raster(named, layers, tmp_path / "map.tif", output="odds")
    with pytest.raises(FileNotFoundError, match="no folder"):
        predict_raster(named, layers, tmp_path / "none" / "map.tif")
    with pytest.raises(TypeError, match="fitted SpeciesModel"):
        predict_raster(SpeciesModel(), layers, tmp_path / "map.tif")


# --------------------------------------------------------------------------------------------------- stacks


def test_layers_from_a_folder_a_list_or_bands(layers, tmp_path):
    for form in (layers["rain"].parent, list(layers.values()), str(layers["rain"].parent)):
        assert RasterStack(form).names == NAMES
    grids = make_grids()
    profile = dict(count=3, height=SHAPE[0], width=SHAPE[1], dtype="float32", transform=TRANSFORM)
    with rasterio.open(tmp_path / "bands.tif", "w", crs="EPSG:4326", **profile) as raster:
        raster.write(np.stack(list(grids.values())))
        raster.descriptions = NAMES
    stack = RasterStack(tmp_path / "bands.tif")
    assert stack.names == NAMES
    assert_array_equal(stack.select(["warmth"]).sample([[-79.75, 9.75]]), [[grids["warmth"][0, 0]]])


def test_layers_that_do_not_fit_are_refused(layers, tmp_path):
    grid = make_grids()["rain"]
    smaller = write_grid(tmp_path / "smaller.tif", grid[1:])
    with pytest.raises(ValueError, match=r"smaller has 39 x 60 cells, rain 40 x 60"):
        RasterStack([layers["rain"], smaller])
    moved = write_grid(tmp_path / "moved.tif", grid, transform=rasterio.Affine(0.5, 0, -79, 0, -0.5, 10))
    with pytest.raises(ValueError, match="moved covers another extent than rain"):
        RasterStack([layers["rain"], moved])
    other = write_grid(tmp_path / "other.tif", grid, crs="EPSG:3857")
    with pytest.raises(ValueError, match="differ in their coordinate reference system: other has EPSG:3857"):
        RasterStack([layers["rain"], other])
    with pytest.raises(ValueError, match="two rasters are named 'rain'"):
        RasterStack([layers["rain"], layers["rain"]])
    with pytest.raises(ValueError, match="no raster in this folder"):
        (tmp_path / "empty").mkdir()
        RasterStack(tmp_path / "empty")
    with pytest.raises(ValueError, match="no layers"):
        RasterStack({})


def test_a_layer_without_reference_system_takes_that_of_the_others(layers, tmp_path):
    bare = write_grid(tmp_path / "bare.tif", make_grids()["rain"], crs=None)
    assert RasterStack([bare, layers["rain"]]).crs == "EPSG:4326"
    assert RasterStack([bare]).crs is None


def test_rasterio_is_asked_for(monkeypatch):
    monkeypatch.setitem(sys.modules, "rasterio", None)
    with pytest.raises(ImportError, match=r"^rasters require rasterio: pip install rasterio$"):
        RasterStack("layers")


# --------------------------------------------------------------------------------------------------- points


def test_points_have_the_values_of_their_cells(layers):
    grids = make_grids()
    rng = np.random.default_rng(0)
    rows, columns = rng.integers(1, 39, 200), rng.integers(0, 60, 200)
    offset = rng.random((2, 200))
    x, y = -80 + 0.5 * (columns + offset[0]), 10 - 0.5 * (rows + offset[1])
    found = RasterStack(layers).sample(np.column_stack([x, y]))
    expected = np.column_stack([grids[name][rows, columns] for name in NAMES])
    expected[(rows == 3) & (columns == 7), 1] = np.nan
    assert_array_equal(found, expected)


def test_points_outside_and_cells_without_data_are_nan(layers):
    found = RasterStack(layers).sample([[-79.75, 9.75], [-79.75, 9.25], [0.0, 0.0], [np.nan, 0.0], [-79.0, -5.0]])
    assert_array_equal(np.isnan(found[:, 0]), [True, False, True, True, False])
    assert not np.isnan(found[0, 1]) and np.isnan(found[2:4]).all()


def test_points_in_another_reference_system(layers):
    from rasterio.warp import transform

    x, y = transform("EPSG:4326", "EPSG:3857", [-70.1, -60.2], [5.2, -3.3])
    stack = RasterStack(layers)
    expected = stack.sample([[-70.1, 5.2], [-60.2, -3.3]])
    assert_array_equal(stack.sample(np.column_stack([x, y]), crs="EPSG:3857"), expected)


def test_swapped_coordinates_are_warned_of(layers):
    points = np.array([[-70.1, 5.2], [-60.2, -3.3], [-62.0, 1.0]])
    with pytest.warns(UserWarning, match="3 of 3 points are outside of the layers: are x and y, longitude"):
        RasterStack(layers).sample(points[:, ::-1])
    with pytest.warns(UserWarning, match="is their reference system another"):
        RasterStack(layers).sample(points * 1e5)
    with pytest.raises(ValueError, match="two columns"):
        RasterStack(layers).sample([1.0, 2.0])


# ----------------------------------------------------------------------------------------------- background


def test_background_is_drawn_without_replacement_among_cells_with_data(layers):
    stack = RasterStack(layers)
    coordinates, covariates = stack.draw_background(500, random_state=0)
    assert len(np.unique(coordinates, axis=0)) == 500
    assert_array_equal(stack.sample(coordinates), covariates)
    assert not np.isnan(covariates).any()
    again = stack.draw_background(500, random_state=0)
    assert_array_equal(again[0], coordinates)
    everything, _ = stack.draw_background(10_000)
    assert len(everything) == 2400 - len(MISSING)


def test_background_follows_a_bias_grid(layers, tmp_path):
    effort = np.ones(SHAPE)
    effort[:, 30:], effort[:20, :30] = 3.0, 0.0
    stack = RasterStack(layers)
    coordinates, _ = stack.draw_background(300, bias=write_grid(tmp_path / "bias.tif", effort), random_state=0)
    rows, columns = stack.find_cells(coordinates)
    assert not (effort[rows, columns] == 0).any()
    share = np.mean(columns >= 30)
    assert 0.78 < share < 0.92  # 3 * 1200 / (3 * 1200 + 600) without replacement
    with pytest.raises(ValueError, match="the bias grid has 39 x 60 cells"):
        stack.draw_background(bias=write_grid(tmp_path / "small.tif", effort[1:]))


def test_background_follows_the_area_of_cells(tmp_path):
    transform = rasterio.Affine(1, 0, 0, 0, -1, 80)
    path = write_grid(tmp_path / "v.tif", np.ones((80, 200)), transform=transform)
    coordinates, _ = RasterStack([path]).draw_background(4000, cell_area=True, random_state=0)
    assert np.mean(coordinates[:, 1] > 60) < 0.2  # a quarter of the cells


def test_layers_without_a_common_cell(layers, tmp_path):
    nothing = write_grid(tmp_path / "nothing.tif", np.full(SHAPE, -9999.0))
    with pytest.raises(ValueError, match="no cell where every layer has data"):
        RasterStack([layers["rain"], nothing]).draw_background()


# ------------------------------------------------------------------------------------------------- occurrences


def write_places(path, rows):
    path.write_text("species,lon,lat,note\n" + "".join(f"{name},{x},{y},seen\n" for name, x, y in rows))
    return path


def test_occurrences_have_the_covariates_of_their_cells(layers, tmp_path):
    stack, grids = RasterStack(layers), make_grids()
    places = [("fir", -79.4, 9.9), ("fir", -79.3, 9.8), ("oak", -79.4, 9.9), ("fir", -78.1, 9.1), ("fir", -79.9, 9.9)]
    path = write_places(tmp_path / "places.csv", [*places, ("oak", 0, 0)])
    with pytest.warns(UserWarning, match=r"places.csv: 2 of 6 places are left out, where a layer has no data"):
        table = read_occurrences(path, stack)
    assert table.species.tolist() == ["fir", "oak", "fir"]  # the second is in the cell of the first
    assert_array_equal(table.covariates[2], [grids[name][1, 3] for name in NAMES])
    with pytest.warns(UserWarning):
        assert len(read_occurrences(path, stack, remove_duplicates=False)) == 4


def test_occurrences_in_another_reference_system_are_moved(layers, tmp_path):
    from rasterio.warp import transform

    x, y = transform("EPSG:4326", "EPSG:3857", [-78.1], [9.1])
    path = write_places(tmp_path / "places.csv", [("fir", x[0], y[0])])
    table = read_occurrences(path, RasterStack(layers), crs="EPSG:3857")
    there = read_occurrences(write_places(tmp_path / "degrees.csv", [("fir", -78.1, 9.1)]), RasterStack(layers))
    assert_array_equal(table.covariates, there.covariates)


def test_occurrences_outside_are_refused_with_a_reason(layers, tmp_path):
    path = write_places(tmp_path / "places.csv", [("fir", 9.1, -78.1), ("fir", 9.0, -78.0)])
    with (
        pytest.warns(UserWarning, match="longitude and latitude, swapped"),
        pytest.raises(ValueError, match=r"places.csv: there is no place where every layer has data"),
    ):
        read_occurrences(path, RasterStack(layers))
    path.write_text("species,lon\nfir,1\n")
    with pytest.raises(ValueError, match="must begin with a line that names species, x and y"):
        read_occurrences(path, RasterStack(layers))
    path.write_text("species,lon,lat\nfir,1\n")
    with pytest.raises(ValueError, match="line 2: 2 fields, there must be three"):
        read_occurrences(path, RasterStack(layers))


def test_background_table_trains_with_occurrences(layers, tmp_path):
    stack = RasterStack(layers)
    rng = np.random.default_rng(0)
    rows = [("fir", x, y) for x, y in zip(rng.uniform(-79, -70, 40), rng.uniform(-5, 5, 40), strict=True)]
    presences = read_occurrences(write_places(tmp_path / "places.csv", rows), stack)
    background = draw_background(stack, 500, random_state=0)
    X, y = training_set(presences, background)
    trained = SpeciesModel(categorical_features=["soil"]).fit(X, y)
    predict_raster(trained, stack, tmp_path / "map.tif")
    values, _ = read(tmp_path / "map.tif")
    assert np.count_nonzero(values == -9999) == len(MISSING)
