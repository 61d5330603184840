from libc.math cimport fabs

from sl1max._core._conjugate cimport system_t
from sl1max._core._types cimport problem_t, ptr_t, state_t


cdef struct dual_t:
    # The tilt of the model that is offered as p: slope = X @ tilt.
    double* tilt                # (n_blocks, n_coords)
    ptr_t n_violators
    ptr_t* violators            # ascending, so block by block
    double* curvature           # (n_violators,)
    double* mean                # (n_violators,) q[f]
    double* bend                # (n_samples,) scratch: how much a block's scores bend the loss
    double failed               # the mixing from which no tighter gap was found last
    system_t free               # the coordinates with beta 0; scale is the mean square of the column


cdef inline double mixing(double gradient, double beta) noexcept nogil:
    """Smallest t with (1 - t) |gradient| <= beta, for a penalised coordinate."""
    return 1.0 - beta / fabs(gradient) if fabs(gradient) > beta else 0.0


cdef double duality_gap(const problem_t* problem, state_t* state, double t) noexcept nogil
cdef bint certify(const problem_t* problem, state_t* state, dual_t* dual) noexcept nogil
cdef bint tighten(const problem_t* problem, state_t* state, dual_t* dual, double target) noexcept nogil
