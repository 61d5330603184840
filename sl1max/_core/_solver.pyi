import numpy as np

from sl1max._core._options import SolverOptions

class Columns:
    low: np.ndarray
    high: np.ndarray
    extent: np.ndarray
    reach: np.ndarray
    reach_with_zero: np.ndarray
    rms: np.ndarray
    total: np.ndarray
    def __init__(
        self,
        n_rows: int,
        n_cols: int,
        indptr: np.ndarray | None,
        indices: np.ndarray | None,
        values: np.ndarray | None,
        *,
        by_rows: bool | None = None,
        row_index: tuple[np.ndarray, np.ndarray, np.ndarray | None] | None = None,
    ) -> None: ...
    @property
    def n_rows(self) -> int: ...
    @property
    def n_cols(self) -> int: ...
    @property
    def nnz(self) -> int: ...
    @property
    def dense(self) -> bool: ...
    @property
    def binary(self) -> bool: ...
    @property
    def indexed_by_rows(self) -> bool: ...
    @property
    def sizes(self) -> np.ndarray: ...
    def index_rows(self) -> None: ...
    def means(self, cells: np.ndarray) -> np.ndarray: ...
    def touched_rows(self, cols: np.ndarray, also: np.ndarray) -> np.ndarray: ...
    def restricted(self, cols: np.ndarray, rows: np.ndarray) -> Columns: ...
    def add_scores(self, cols: np.ndarray, weights: np.ndarray, score_out: np.ndarray) -> None: ...
    def price(self, rows: np.ndarray, flow: np.ndarray, common: float) -> np.ndarray: ...

class Problem:
    columns: Columns
    emp_mean: np.ndarray
    given_beta: np.ndarray
    given_penalty: dict[str, np.ndarray | None]
    beta: np.ndarray
    beta_upper: np.ndarray
    l2: np.ndarray | None
    low: np.ndarray | None
    high: np.ndarray | None
    def __init__(
        self,
        columns: Columns,
        emp_mean: np.ndarray,
        beta: np.ndarray,
        target: np.ndarray,
        mass: np.ndarray,
        *,
        pooled: bool,
        reference: bool = False,
        intercept: bool = False,
        offset: np.ndarray | None = None,
        beta_upper: np.ndarray | None = None,
        l2: np.ndarray | None = None,
        low: np.ndarray | None = None,
        high: np.ndarray | None = None,
    ) -> None: ...

class Solver:
    problem: Problem
    tol: float
    def __init__(
        self,
        problem: Problem,
        *,
        algorithm: str = "newton",
        tol: float = 1e-4,
        pricing: str = "partial",
        warm_start: tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray] | None = None,
        objective_zero: float | None = None,
        tight: bool = True,
        options: SolverOptions | None = None,
    ) -> None: ...
    def certificate_flow(self) -> np.ndarray: ...
    def dual_gap_at(self, t: float) -> float: ...
    def run(self, n: int, stop: np.ndarray | None = None) -> str: ...
    def change(self, problem: Problem) -> None: ...
    def restart(self) -> None: ...
    def set_weights(self, weights: np.ndarray, intercept: np.ndarray | float) -> None: ...
    @property
    def objective(self) -> float: ...
    @property
    def dual_gap(self) -> float: ...
    @property
    def mixing(self) -> float: ...
    @property
    def objective_zero(self) -> float: ...
    @property
    def n_iter(self) -> int: ...
    @property
    def log_z(self) -> float: ...
    @property
    def counters(self) -> dict[str, int]: ...
    @property
    def last_step(self) -> tuple[int, int, float, float] | None: ...
    @property
    def weights(self) -> np.ndarray: ...
    def coefficients(self) -> tuple[np.ndarray, np.ndarray, np.ndarray]: ...
    def intercept(self) -> np.ndarray: ...
    def expectations(self) -> np.ndarray: ...
