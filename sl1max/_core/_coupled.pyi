import numpy as np

from sl1max._core._solver import Columns

def places_of(
    columns: Columns, cols: np.ndarray, rows: np.ndarray
) -> tuple[np.ndarray, np.ndarray, np.ndarray | None]: ...

class Descent:
    step: np.ndarray
    def __init__(
        self,
        coord_start: np.ndarray,
        cell_start: np.ndarray,
        indptr: np.ndarray,
        places: np.ndarray,
        values: np.ndarray | None,
        rows: np.ndarray,
        prob: np.ndarray,
        mass: np.ndarray,
        gradient: np.ndarray,
        weights: np.ndarray,
        beta: np.ndarray,
        rest: np.ndarray,
        radius: float,
    ) -> None: ...
    def run(self, n_sweeps: int, n_inner: int, goal: float) -> float: ...
    def change_of_model(self) -> float: ...
