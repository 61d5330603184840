"""What a cell contributes to the divergence of a dual point from the model: used by every certificate."""
from libc.math cimport log1p


cdef inline double excess(double r) noexcept nogil:
    """(1 + r) ln(1 + r) - r: the contribution of a cell to KL(p || q), divided by q, where p = (1 + r) q."""
    if -1e-4 < r < 1e-4:
        return r * r * (0.5 - r * (1.0 / 6.0 - r / 12.0))      # the next term is below the last digit
    return 1.0 if r <= -1.0 else (1.0 + r) * log1p(r) - r
