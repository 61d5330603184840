import numpy as np

class ParseError(Exception): ...

def count(text: bytes) -> tuple[int, int, int]: ...
def parse(
    text: bytes,
    labels: np.ndarray,
    label_ptr: np.ndarray,
    indices: np.ndarray,
    values: np.ndarray,
    indptr: np.ndarray,
    lines: np.ndarray,
) -> tuple[int, int, int, int, int, int]: ...
def format_rows(
    labels: np.ndarray,
    label_ptr: np.ndarray,
    indices: np.ndarray,
    values: np.ndarray,
    indptr: np.ndarray,
    first_row: int,
    last_row: int,
    base: int,
) -> bytes: ...
