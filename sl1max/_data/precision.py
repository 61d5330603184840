"""Limits of double precision: inputs that are refused, and inputs whose models are never marked as converged.

Numbers so large or so small that sums and squares of them overflow or vanish are refused. `find_imprecision` decides
about the rest, for all models: of a problem that it describes the duality gap may be wrong.
"""

from __future__ import annotations

import numpy as np
from scipy import sparse

from sl1max._utils.typing import DataMatrix

TINY = np.finfo(float).tiny  # smaller numbers, the subnormal ones, have few digits
LARGEST_VALUE = 1e100  # squares of the values, and their sums, must stay finite
MASS_LIMITS = 1e-100, 1e100  # of all examples together
SMALLEST_PART = 1e-100  # smaller weights, relative to the largest, and smaller shares of a label are treated as 0
SMALLEST_SHARE = 1e-15  # share of a nonzero value in the largest of its column: their sum has no digit of it
SMALLEST_SPREAD = 1e-12  # of the values of a column, relative to the largest: their differences have few digits
LARGEST_WEIGHT_RATIO = 1e15
LARGEST_OFFSET_SPREAD = 1e12  # a score that includes the offset has an error of 1e-4 then
# A weight |lambda_j| is at most the objective at zero over its penalty. Values below this share of the penalty
# therefore change the objective by no more than this share of itself, whatever the weights are.
NEGLIGIBLE = 1e-8
RESOLVED_PENALTY = 1e-12  # least penalty, relative to the largest value, that the error of an expectation cannot hide
ENTRIES_AT_ONCE = 1 << 22


def check_values(matrix: DataMatrix | sparse.csr_array, name: str = "X") -> None:
    """Refuse values that are too large."""
    values = matrix.data if sparse.issparse(matrix) else matrix
    if max(-values.min(initial=0), values.max(initial=0)) > LARGEST_VALUE:
        raise ValueError(f"{name} has values beyond {LARGEST_VALUE:g} in size: scale them first")


def check_mass(mass, name="sample_weight"):
    """Refuse weights whose total is too large or too small."""
    with np.errstate(over="ignore"):
        total = mass.sum()
    low, high = MASS_LIMITS
    if not low <= total <= high:
        raise ValueError(f"{name} adds up to {total:.3g}, not in {low:g} to {high:g}: multiply it by a constant")


def check_offset(offset):
    """Refuse offsets that are too large."""
    if offset is not None and np.abs(offset).max(initial=0) > LARGEST_VALUE:
        raise ValueError(f"offset has values beyond {LARGEST_VALUE:g} in size")


def find_imprecision(
    matrix, extent, spread, penalties, *, smallest=None, smallest_extent=TINY, mass=None, offset=None, name="X"
) -> str | None:
    """Describe what double precision cannot certify in a problem; None if it can certify it.

    Parameters
    ----------
    matrix : csc_array or ndarray of shape (n_samples, n_features), or None
        Used if ``smallest`` is given.
    extent, spread : ndarray of shape (n_features,)
        The largest absolute value and the range of the values of each column.
    penalties : float or ndarray of shape (n_features,)
        Lower bounds of the penalties of the weights.
    smallest : ndarray of shape (n_features,), optional
        From `smallest_nonzero`, where features are used as they are, not relative to their least value.
    smallest_extent : float
        The least largest value of a column.
    mass : ndarray, optional
        Weights of the examples, or of their labels.
    offset : ndarray, optional
    name : str
        Of the matrix.

    Returns
    -------
    str or None
    """
    negligible = np.where(penalties >= RESOLVED_PENALTY * extent, NEGLIGIBLE * penalties, 0.0)
    for j in np.flatnonzero(smallest < SMALLEST_SHARE * extent) if smallest is not None else ():
        size = np.abs(_column(matrix, j))
        if ((size > negligible[j]) & (size < SMALLEST_SHARE * extent[j])).any():
            return (
                f"{name} has values from {smallest[j]:.3g} to {extent[j]:.3g} in size in column {j}, a range that "
                "double precision cannot certify: set the small ones to 0"
            )
    found = np.flatnonzero((extent > 0) & (extent < smallest_extent))
    if len(found):
        j = found[0]
        return (
            f"{name} has values of at most {extent[j]:.3g} in column {j}, too small for double precision to certify: "
            "scale the column"
        )
    found = np.flatnonzero((spread > negligible) & (spread < SMALLEST_SPREAD * extent))
    if len(found):
        j = found[0]
        return (
            f"{name} has values in column {j} that differ by {spread[j]:.3g} at a size of {extent[j]:.3g}, which "
            "double precision cannot certify: subtract a constant from the column, or leave it out"
        )
    if mass is not None:
        largest, total, least = mass.max(initial=0), mass.sum(), mass.min(initial=np.inf, where=mass > 0)
        share = least / total
        matters = share > NEGLIGIBLE or (share * extent > NEGLIGIBLE * penalties)[spread > 0].any()
        if least < largest / LARGEST_WEIGHT_RATIO and matters:
            return (
                f"the weights of the examples go from {least:.3g} to {largest:.3g}, a range that double precision "
                "cannot certify: leave out the examples of the least weight"
            )
    if offset is not None and np.ptp(offset) > LARGEST_OFFSET_SPREAD:
        return (
            f"the offsets differ by {np.ptp(offset):.3g}, more than {LARGEST_OFFSET_SPREAD:g}, which double precision "
            "cannot certify"
        )
    return None


def _column(matrix: DataMatrix, j: int | np.integer) -> np.ndarray:
    """Return the stored values of a column."""
    return matrix.data[matrix.indptr[j] : matrix.indptr[j + 1]] if sparse.issparse(matrix) else matrix[:, j]


def smallest_nonzero(matrix: DataMatrix) -> np.ndarray:
    """The least absolute nonzero value of each column of a csc_array or ndarray; inf for columns without any."""
    n_features = matrix.shape[1]
    least = np.full(n_features, np.inf)
    if not sparse.issparse(matrix):
        width = max(1, ENTRIES_AT_ONCE // max(len(matrix), 1))
        for low in range(0, n_features, width):
            part = np.abs(matrix[:, low : low + width])
            least[low : low + width] = part.min(axis=0, initial=np.inf, where=part > 0)
        return least
    indptr = matrix.indptr
    low = 0
    while low < n_features:
        high = int(np.searchsorted(indptr, indptr[low] + ENTRIES_AT_ONCE, side="right")) - 1
        high = min(max(high, low + 1), n_features)
        starts = indptr[low:high] - indptr[low]
        stored = np.flatnonzero(np.diff(indptr[low : high + 1]))
        if len(stored):
            part = np.abs(matrix.data[indptr[low] : indptr[high]])
            least[low + stored] = np.minimum.reduceat(part, starts[stored])
        low = high
    return least
