"""Type aliases of the public interface."""

from __future__ import annotations

from typing import TypeAlias

from numpy.typing import ArrayLike
from scipy import sparse

Matrix: TypeAlias = ArrayLike | sparse.sparray | sparse.spmatrix
