import numpy as np

def add_curves(
    values: np.ndarray,
    missing: np.ndarray,
    low: np.ndarray,
    high: np.ndarray,
    start: np.ndarray,
    pieces: np.ndarray,
    score_out: np.ndarray,
) -> None: ...
def add_products(
    values: np.ndarray,
    missing: np.ndarray,
    low: np.ndarray,
    high: np.ndarray,
    first: np.ndarray,
    second: np.ndarray,
    terms: np.ndarray,
    clamp: bool,
    score_out: np.ndarray,
) -> None: ...
