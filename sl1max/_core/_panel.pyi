from collections.abc import Sequence

import numpy as np

from sl1max._core._solver import Columns

PANEL_WIDTH: int

class Panel:
    n_classes: int
    def __init__(self, columns: Columns, weights: Sequence[tuple[np.ndarray, np.ndarray]], b: np.ndarray) -> None: ...
    def scores(self, slot: int, rows: np.ndarray) -> np.ndarray: ...
    def add_up(
        self, log_z: np.ndarray, inv_z: np.ndarray, mass: np.ndarray, share_of_each: np.ndarray | None = None
    ) -> tuple[np.ndarray, np.ndarray]: ...
    def price(
        self, log_z: np.ndarray, inv_z: np.ndarray, mass: np.ndarray, notable: float
    ) -> tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray, list[np.ndarray]]: ...
