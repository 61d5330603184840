"""Type aliases of the public interface."""

from __future__ import annotations

from typing import Literal, TypeAlias

import numpy as np
from numpy.typing import ArrayLike
from scipy import sparse

Matrix: TypeAlias = ArrayLike | sparse.sparray | sparse.spmatrix
DataMatrix: TypeAlias = np.ndarray | sparse.csc_array  # examples, converted

Distribution: TypeAlias = Literal["conditional", "joint", "class-conditional"]
LabelMode: TypeAlias = Literal["auto", "exclusive", "independent"]
BetaRule: TypeAlias = Literal["deviation", "count"]
Algorithm: TypeAlias = Literal["auto", "newton", "sequential"]
MultilabelWeighting: TypeAlias = Literal["duplicate", "equal"]
OnInterrupt: TypeAlias = Literal["raise", "return"]
