import numpy as np

from sl1max._core._options import SolverOptions
from sl1max._core._solver import Columns

class ManyClassesSolver:
    columns: Columns
    tol: float
    objective: float
    objective_zero: float
    log_z: float
    n_iter: int
    n_passes: int
    mixing: float
    ratio: float
    def __init__(
        self,
        columns: Columns,
        mass: np.ndarray,
        labels: tuple[np.ndarray, np.ndarray, np.ndarray],
        means: tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray],
        beta: np.ndarray,
        *,
        intercept: bool,
        tol: float = 1e-4,
        offset: np.ndarray | None = None,
        warm_start: tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray] | None = None,
        options: SolverOptions | None = None,
    ) -> None: ...
    def run(self, n: int, stop: np.ndarray | None = None) -> str: ...
    def largest_ratio(self) -> float: ...
    @property
    def dual_gap(self) -> float: ...
    @property
    def counters(self) -> dict[str, int]: ...
    def coefficients(self) -> tuple[np.ndarray, np.ndarray, np.ndarray]: ...
    def intercept(self) -> np.ndarray: ...
