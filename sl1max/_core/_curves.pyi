from numpy.typing import NDArray

def add_curves(
    values: NDArray,
    missing: NDArray,
    low: NDArray,
    high: NDArray,
    start: NDArray,
    pieces: NDArray,
    score_out: NDArray,
) -> None: ...
def add_products(
    values: NDArray,
    missing: NDArray,
    low: NDArray,
    high: NDArray,
    first: NDArray,
    second: NDArray,
    terms: NDArray,
    clamp: bool,
    score_out: NDArray,
) -> None: ...
