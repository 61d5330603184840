"""CSV files of samples with data."""

import numpy as np
import pytest
from numpy.testing import assert_array_equal

from sl1max._data.covariates import NamedColumns
from sl1max.species import SpeciesModel, read_swd, training_set

FILE = """species,lon,lat,rain,warm
oak,1.5,2.5,10,0.1
elm,1.5,2.5,11,
oak,1.5,2.5,12,0.3
"oak",1.5,3.5,-9999,0.4
"""


@pytest.fixture
def path(tmp_path):
    path = tmp_path / "points.csv"
    path.write_text(FILE)
    return path


def test_rows_and_missing_values_are_read(path):
    table = read_swd(path)
    assert table.names == ["rain", "warm"] and len(table) == 4
    assert_array_equal(table.species, ["oak", "elm", "oak", "oak"])
    assert_array_equal(table.coordinates[0], [1.5, 2.5])
    assert table.covariates.dtype == np.float32
    assert_array_equal(table.covariates, np.array([[10, 0.1], [11, np.nan], [12, 0.3], [np.nan, 0.4]], np.float32))
    assert_array_equal(read_swd(path, missing=None).covariates[3, 0], -9999)


def test_duplicates_are_removed_within_a_species(path):
    table = read_swd(path, remove_duplicates=True)
    assert_array_equal(table.species, ["oak", "elm", "oak"])
    assert_array_equal(table.of("oak").covariates[0, 0], 10)


def test_unknown_species_is_named(path):
    with pytest.raises(ValueError, match="'ash'"):
        read_swd(path).of("ash")


@pytest.mark.parametrize(
    ("old", "new", "message"),
    [
        ("12,0.3", "12", "line 4: 4 fields"),
        ("11,", "wet,", "line 3: 'wet' is not a number"),
        ("species,lon,lat,rain,warm", "species,lon,lat", "must begin with a line"),
        ("11,", "1e39,", "line 3: '1e39' is beyond single precision"),
        ("11,", "-inf,", "line 3: '-inf' is beyond single precision"),
        ("11,", "\xe9" * 200_000 + ",", "is not a CSV file: field larger than field limit"),
    ],
)
def test_malformed_file_is_refused(path, old, new, message):
    path.write_text(FILE.replace(old, new))
    with pytest.raises(ValueError, match=message):
        read_swd(path)


def test_file_without_rows_is_read(path):
    path.write_text(FILE.splitlines()[0])
    assert read_swd(path).covariates.shape == (0, 2)


def test_training_set_has_the_covariates_of_both_tables(path, tmp_path):
    other = tmp_path / "other.csv"
    other.write_text("species,x,y,warm,depth,rain\nbackground,0,0,0.5,1,20\nbackground,1,0,0.6,2,30\n")
    X, y = training_set(read_swd(path), read_swd(other))
    assert X.columns == ["warm", "rain"] and y.tolist() == [0, 0, 1, 1, 1, 1]
    assert_array_equal(X["rain"], [20, 30, 10, 11, 12, np.nan])
    assert X.values.dtype == float
    other.write_text("species,x,y,depth\nbackground,0,0,1\n")
    with pytest.raises(ValueError, match="presences and background have no covariate in common: rain, warm; depth"):
        training_set(read_swd(path), read_swd(other))


def test_select_names_a_covariate_that_is_not_there(path):
    table = read_swd(path)
    assert_array_equal(table.select(["warm"]).covariates[:, 0], table.covariates[:, 1])
    with pytest.raises(ValueError, match="there is no covariate 'wind'; there are rain, warm"):
        table.select(["wind"])


def test_named_columns_train_and_predict_by_name():
    rng = np.random.default_rng(0)
    values, y = rng.normal(size=(60, 2)), np.arange(60) >= 40
    X = NamedColumns(values, ["warm", "rain"])
    model = SpeciesModel("lq").fit(X, y)
    assert model.covariates_.names == ("warm", "rain")
    turned = NamedColumns(np.column_stack([values[:, 1], np.zeros(60), values[:, 0]]), ["rain", "wind", "warm"])
    assert_array_equal(model.predict_suitability(turned), model.predict_suitability(X))
    assert_array_equal(model.predict_suitability(X[:5]), model.predict_suitability(X)[:5])
    assert_array_equal(np.asarray(X), values)
    with pytest.raises(ValueError, match="X lacks the covariate 'warm'"):
        model.predict(NamedColumns(values, ["rain", "wind"]))
    with pytest.raises(ValueError, match="there are 1 names for values of shape"):
        NamedColumns(values, ["rain"])
