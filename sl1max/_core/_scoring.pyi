import numpy as np

class Rows:
    def __init__(
        self,
        n_rows: int,
        n_features: int,
        indptr: np.ndarray | None,
        indices: np.ndarray | None,
        values: np.ndarray | None,
    ) -> None: ...
    @property
    def n_rows(self) -> int: ...

class Weights:
    def __init__(self, n_classes: int, indptr: np.ndarray, classes: np.ndarray, values: np.ndarray) -> None: ...
    @property
    def n_classes(self) -> int: ...

def score_rows(
    weights: Weights,
    rows: Rows,
    constant: np.ndarray,
    offset: np.ndarray | None,
    first: int,
    last: int,
    score_out: np.ndarray,
) -> None: ...
def top_rows(
    weights: Weights,
    rows: Rows,
    constant: np.ndarray,
    offset: np.ndarray | None,
    first: int,
    last: int,
    classes_out: np.ndarray,
    score_out: np.ndarray,
) -> None: ...
