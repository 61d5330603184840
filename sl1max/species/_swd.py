"""Files of "samples with data": CSV with the columns species, x, y and covariates."""

from __future__ import annotations

import csv
import os
from dataclasses import dataclass

import numpy as np


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
    with open(path, encoding="utf-8-sig", newline="") as stream:
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
    numbers = np.array(numbers, float).reshape(len(species), len(header) - 1)
    covariates = numbers[:, 2:].astype(np.float32)
    if missing is not None:
        covariates[covariates == np.float32(missing)] = np.nan
    table = SWDTable(np.array(species, str), numbers[:, :2], covariates, names)
    return table[_first_of_each(table)] if remove_duplicates else table


def _number(field, path, line):
    field = field.strip()
    if not field:
        return np.nan
    try:
        return float(field)
    except ValueError:
        raise ValueError(f"{os.fspath(path)}, line {line}: {field!r} is not a number") from None


def _first_of_each(table):
    """Rows that are the first of their species at their x and y."""
    seen = {}
    for row, (species, place) in enumerate(zip(table.species, table.coordinates.tolist(), strict=True)):
        seen.setdefault((species, *place), row)
    return np.fromiter(seen.values(), int)
