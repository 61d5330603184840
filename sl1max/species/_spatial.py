"""Places: blocks of them for cross-validation, and the area of cells of a grid in degrees."""

from __future__ import annotations

from numbers import Integral, Real
from typing import Any

import numpy as np
from numpy.typing import ArrayLike
from sklearn.utils import check_scalar


def spatial_blocks(coordinates: Any, y: ArrayLike, n_blocks: int = 4) -> np.ndarray:
    """Blocks of places with equally many presences each, for `replicate` and `tune`.

    The presences are halved by a line across their longer extent, then the halves, and so on.

    Parameters
    ----------
    coordinates : array of shape (n_rows, 2)
        x and y of background points and presences.
    y : array of shape (n_rows,)
        Two labels; the greater one is that of presences.
    n_blocks : int
        At most the number of presences.

    Returns
    -------
    ndarray of int, of shape (n_rows,)
        The block of every row, from 0 on.

    Examples
    --------
    >>> import numpy as np
    >>> from sl1max.species import spatial_blocks
    >>> places = np.array([[0, 0], [1, 0], [5, 0], [6, 0], [2, 1]])
    >>> spatial_blocks(places, [1, 1, 1, 1, 0], 2).tolist()
    [0, 0, 1, 1, 0]
    """
    coordinates, y = _read_coordinates(coordinates), np.asarray(y)
    if y.shape != (len(coordinates),):
        raise ValueError(f"y must have an entry for each of the {len(coordinates)} coordinates")
    labels = np.unique(y)
    if len(labels) != 2:
        raise ValueError(f"y must hold two labels, one for presences and one for the background, not {len(labels)}")
    presence = y == labels[1]
    check_scalar(n_blocks, "n_blocks", Integral, min_val=2, max_val=np.count_nonzero(presence))
    block = np.zeros(len(coordinates), int)
    _split(coordinates, presence, np.arange(len(coordinates)), n_blocks, block)
    return block


def _split(coordinates, presence, rows, n_blocks, block_out):
    """Number the blocks of some rows, from the number that they have."""
    if n_blocks == 1:
        return
    places = coordinates[rows[presence[rows]]]
    axis = int(np.argmax(np.ptp(places, axis=0)))
    n_low = n_blocks // 2
    ranked = np.sort(places[:, axis])
    k = min(max(n_low, round(len(ranked) * n_low / n_blocks)), len(ranked) - (n_blocks - n_low))
    if ranked[k - 1] == ranked[k]:  # a line between presences that differ, the nearest one
        edges = np.flatnonzero(np.diff(ranked)) + 1
        edges = edges[(edges >= n_low) & (edges <= len(ranked) - (n_blocks - n_low))]
        if not len(edges):
            raise ValueError(f"the presences are at too few places for {n_blocks} more blocks of them")
        k = edges[np.argmin(np.abs(edges - k))]
    low = coordinates[rows, axis] <= (ranked[k - 1] + ranked[k]) / 2
    block_out[rows[~low]] += n_low
    _split(coordinates, presence, rows[low], n_low, block_out)
    _split(coordinates, presence, rows[~low], n_blocks - n_low, block_out)


def checkerboard(coordinates: Any, size: float) -> np.ndarray:
    """Squares of two colours, for `replicate` and `tune`.

    Parameters
    ----------
    coordinates : array of shape (n_rows, 2)
    size : float
        Length of a side of a square, in the units of the coordinates.

    Returns
    -------
    ndarray of int, of shape (n_rows,)
        0 or 1 for every row.

    Examples
    --------
    >>> from sl1max.species import checkerboard
    >>> checkerboard([[0.5, 0.5], [1.5, 0.5], [1.5, 1.5]], 1.0).tolist()
    [0, 1, 0]
    """
    check_scalar(size, "size", Real, min_val=0, include_boundaries="neither")
    return (np.floor(_read_coordinates(coordinates) / size).sum(axis=1) % 2).astype(int)


def cell_area(latitude: ArrayLike) -> np.ndarray:
    """Relative area of the cells of a grid in degrees: weights of background points drawn cell by cell.

    Parameters
    ----------
    latitude : array
        Of the centres of the cells, in degrees.

    Returns
    -------
    ndarray
        The cosine: 1 at the equator.

    Examples
    --------
    >>> from sl1max.species import cell_area
    >>> cell_area([0.0, 60.0]).round(3).tolist()
    [1.0, 0.5]
    """
    latitude = np.asarray(latitude, float)
    if not (np.abs(latitude) <= 90).all():
        raise ValueError("a latitude must lie between -90 and 90: are longitude and latitude swapped?")
    return np.cos(np.radians(latitude))


def _read_coordinates(coordinates):
    coordinates = np.asarray(coordinates, float)
    if coordinates.ndim != 2 or coordinates.shape[1] != 2 or not np.isfinite(coordinates).all():
        raise ValueError(f"coordinates must hold x and y of every row, without gaps; the shape is {coordinates.shape}")
    return coordinates
