"""CSV files of samples with data."""

import numpy as np
import pytest
from numpy.testing import assert_array_equal

from sl1max.species import read_swd

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
    ],
)
def test_malformed_file_is_refused(path, old, new, message):
    path.write_text(FILE.replace(old, new))
    with pytest.raises(ValueError, match=message):
        read_swd(path)


def test_file_without_rows_is_read(path):
    path.write_text(FILE.splitlines()[0])
    assert read_swd(path).covariates.shape == (0, 2)
