import numpy as np

def transpose(
    n_cols: int, indptr: np.ndarray, indices: np.ndarray, values: np.ndarray | None
) -> tuple[tuple[np.ndarray, np.ndarray, np.ndarray | None], bool]: ...
