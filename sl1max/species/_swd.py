"""Files of "samples with data": CSV with the columns species, x, y and covariates."""

from __future__ import annotations

import contextlib
import csv
import os
import re
import warnings
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from sl1max._data.covariates import NamedColumns
from sl1max.species._raster import RasterStack

LARGEST_NUMBER = np.finfo(np.float32).max.item()
RESULTS_NAME = "maxentResults.csv"


@dataclass(frozen=True, eq=False, repr=False)
class SWDTable:
    """The rows of a file of samples with data.

    Attributes
    ----------
    species : array of str, of shape (n_rows,)
    coordinates : float array of shape (n_rows, 2)
    covariates : float32 array of shape (n_rows, n_covariates)
        nan where a value is missing. Float32, as the Java program reads them.
    names : list of str
        Of the covariates.
    """

    species: np.ndarray
    coordinates: np.ndarray
    covariates: np.ndarray
    names: list[str]

    def __len__(self) -> int:
        return len(self.species)

    def __repr__(self) -> str:
        n_species = len(np.unique(self.species))
        return f"<sl1max.species.SWDTable: {len(self)} rows, {n_species} species, {len(self.names)} covariates>"

    def __getitem__(self, rows) -> SWDTable:
        return SWDTable(self.species[rows], self.coordinates[rows], self.covariates[rows], self.names)

    @property
    def X(self) -> NamedColumns:
        """The covariates with their names, in double precision, as models take them."""
        return NamedColumns(self.covariates.astype(float), self.names)

    def select(self, names: Sequence[str]) -> SWDTable:
        """Some of the covariates, in this order.

        Parameters
        ----------
        names : sequence of str

        Returns
        -------
        SWDTable
        """
        missing = [name for name in names if name not in self.names]
        if missing:
            raise ValueError(f"there is no covariate {missing[0]!r}; there are {', '.join(self.names)}")
        columns = [self.names.index(name) for name in names]
        return SWDTable(self.species, self.coordinates, self.covariates[:, columns], list(names))

    def of(self, species: str) -> SWDTable:
        """The rows of one species.

        Parameters
        ----------
        species : str

        Returns
        -------
        SWDTable
        """
        rows = self.species == species
        if not rows.any():
            raise ValueError(f"there is no row of the species {species!r}")
        return self[rows]


def read_swd(
    path: str | os.PathLike[str], *, remove_duplicates: bool = False, missing: float | None = -9999.0
) -> SWDTable:
    """Read a CSV file of samples with data.

    Parameters
    ----------
    path : str or path-like
        The first line names the columns: species, x, y (whatever they are called), then the covariates.
    remove_duplicates : bool
        Keep only the first row of each species at the same x and y, as the Java program does with presences.
    missing : float, optional
        The number that stands for a missing value, beside empty fields and "nan".

    Returns
    -------
    SWDTable
    """
    with open(path, encoding="utf-8-sig", newline="") as stream, _blamed_on(path):
        lines = csv.reader(stream)
        header = next(lines, [])
        if len(header) < 4:
            raise ValueError(f"{os.fspath(path)} must begin with a line that names species, x, y and covariates")
        species, numbers = [], []
        for row in filter(None, lines):
            if len(row) != len(header):
                raise ValueError(
                    f"{os.fspath(path)}, line {lines.line_num}: {len(row)} fields, the first line has {len(header)}"
                )
            species.append(row[0].strip())
            numbers.append([_number(field, path, lines.line_num) for field in row[1:]])
    names = [name.strip() for name in header[3:]]
    values = np.array(numbers, float).reshape(len(species), len(header) - 1)
    covariates = values[:, 2:].astype(np.float32)
    if missing is not None:
        covariates[covariates == np.float32(missing)] = np.nan
    table = SWDTable(np.array(species, str), values[:, :2], covariates, names)
    return table[_first_of_each(table.species, table.coordinates)] if remove_duplicates else table


def read_occurrences(
    path: str | os.PathLike[str],
    layers: RasterStack,
    *,
    crs: Any = None,
    remove_duplicates: bool = True,
) -> SWDTable:
    """Read a CSV file of places, and the covariates there from rasters.

    Parameters
    ----------
    path : str or path-like
        The first line names the columns: species, x, y (whatever they are called). Further columns are not used.
    layers : RasterStack
    crs : str or rasterio.crs.CRS, optional
        That of x and y, such as "EPSG:4326", if it is not that of the layers.
    remove_duplicates : bool
        Keep only the first row of each species in each cell, as the Java program does with presences.

    Returns
    -------
    SWDTable
        Places where a layer has no data are left out.

    Warns
    -----
    UserWarning
        Some places are outside of the layers or where one has no data.
    """
    with open(path, encoding="utf-8-sig", newline="") as stream, _blamed_on(path):
        lines = csv.reader(stream)
        if len(next(lines, [])) < 3:
            raise ValueError(f"{os.fspath(path)} must begin with a line that names species, x and y")
        species, places = [], []
        for row in filter(None, lines):
            if len(row) < 3:
                raise ValueError(f"{os.fspath(path)}, line {lines.line_num}: {len(row)} fields, there must be three")
            species.append(row[0].strip())
            places.append([_number(field, path, lines.line_num) for field in row[1:3]])
    coordinates = np.array(places, float).reshape(-1, 2)
    covariates = layers.sample(coordinates, crs=crs).astype(np.float32)
    table = SWDTable(np.array(species, str), coordinates, covariates, list(layers.names))
    known = ~np.isnan(covariates).any(axis=1)
    if not known.any():
        raise ValueError(f"{os.fspath(path)}: there is no place where every layer has data")
    if not known.all():
        n_unknown = np.count_nonzero(~known)
        warnings.warn(
            f"{os.fspath(path)}: {n_unknown} of {len(covariates)} places are left out, where a layer has no data",
            stacklevel=2,
        )
    table = table[known]
    if remove_duplicates:
        rows, columns = layers.find_cells(table.coordinates, crs=crs)
        table = table[_first_of_each(table.species, np.column_stack([rows, columns]))]
    return table


def draw_background(layers: RasterStack, n_points: int = 10_000, **options: Any) -> SWDTable:
    """Background points drawn from rasters, as a table.

    Parameters
    ----------
    layers : RasterStack
    n_points : int
    **options
        As those of `RasterStack.draw_background`.

    Returns
    -------
    SWDTable
    """
    places, covariates = layers.draw_background(n_points, **options)
    species = np.full(len(places), "background")
    return SWDTable(species, places, covariates.astype(np.float32), list(layers.names))


def training_set(presences: SWDTable, background: SWDTable) -> tuple[NamedColumns, np.ndarray]:
    """What `SpeciesModel.fit` takes, from two tables.

    Parameters
    ----------
    presences, background : SWDTable
        The covariates are found by name; those that only one of the tables has are not used.

    Returns
    -------
    X : NamedColumns
        The covariates of the background, then those of the presences, in the order of the background.
    y : int array
        0 for the background, 1 for presences.

    Examples
    --------
    >>> import os, tempfile
    >>> from sl1max.species import read_swd, training_set
    >>> path = os.path.join(tempfile.mkdtemp(), "fir.csv")
    >>> with open(path, "w") as stream:
    ...     _ = stream.write("species,x,y,warmth\\nfir,10,50,7.5\\nfir,11,50,8\\n")
    >>> X, y = training_set(read_swd(path), read_swd(path))
    >>> X["warmth"].tolist(), y.tolist()
    ([7.5, 8.0, 7.5, 8.0], [0, 0, 1, 1])
    """
    names = [name for name in background.names if name in presences.names]
    if not names:
        raise ValueError(
            f"presences and background have no covariate in common: {', '.join(presences.names)}; "
            f"{', '.join(background.names)}"
        )
    tables = [background.select(names), presences.select(names)]
    X = NamedColumns(np.concatenate([table.covariates for table in tables]).astype(float), names)
    return X, np.repeat([0, 1], [len(table) for table in tables])


@contextlib.contextmanager
def _blamed_on(path):
    """Turn errors of a text or its CSV into a ValueError that names the file."""
    try:
        yield
    except (UnicodeDecodeError, csv.Error) as error:
        raise ValueError(f"{os.fspath(path)} is not a CSV file: {error}") from None


def _number(field, path, line):
    field = field.strip()
    if not field:
        return np.nan
    try:
        number = float(field)
    except ValueError:
        raise ValueError(f"{os.fspath(path)}, line {line}: {field!r} is not a number") from None
    if abs(number) > LARGEST_NUMBER:
        raise ValueError(f"{os.fspath(path)}, line {line}: {field!r} is beyond single precision")
    return number


def _first_of_each(species, places):
    """Rows that are the first of their species at their place."""
    seen: dict[tuple, int] = {}
    for row, (name, place) in enumerate(zip(species.tolist(), places.tolist(), strict=True)):
        seen.setdefault((name, *place), row)
    return np.fromiter(seen.values(), int)


def file_names(names: Sequence[str]) -> dict[str, str]:
    """Names of files by species, without what file systems do not take; distinct."""
    stems = {name: re.sub(r"[^\w.-]+", "_", name).strip(".") or "_" for name in names}
    seen: dict[str, str] = {}
    for name, stem in stems.items():
        other = seen.setdefault(stem.lower(), name)
        if other != name:
            raise ValueError(f"the files of {other!r} and {name!r} would have the same name, {stem}")
    return stems
