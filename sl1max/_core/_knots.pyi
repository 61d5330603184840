import numpy as np

def bin_masses(bins: np.ndarray, mass: np.ndarray, binned_out: np.ndarray) -> None: ...
def sums_above(
    values: np.ndarray,
    binned: np.ndarray,
    knots: np.ndarray,
    mass_out: np.ndarray,
    first_out: np.ndarray,
    second_out: np.ndarray | None = None,
) -> None: ...
def sums_below(
    values: np.ndarray,
    binned: np.ndarray,
    knots: np.ndarray,
    mass_out: np.ndarray,
    first_out: np.ndarray,
    second_out: np.ndarray | None = None,
) -> None: ...
def product_sums(
    points: np.ndarray,
    mass: np.ndarray,
    first: np.ndarray,
    second: np.ndarray,
    low: np.ndarray,
    sums_out: np.ndarray,
) -> None: ...
