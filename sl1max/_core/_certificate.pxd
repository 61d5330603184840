from sl1max._core._conjugate cimport system_t
from sl1max._core._types cimport problem_t, ptr_t, state_t


cdef struct dual_t:
    # The dual correction of the certificate: direction_score = X @ correction.
    double* correction          # (n_blocks, n_coords)
    ptr_t n_violators
    ptr_t* violators            # ascending, so block by block
    double* curvature           # (n_violators,)
    double* mean                # (n_violators,) q[f]
    double* cell_curvature      # (n_samples,) curvature of the loss in the scores of one block
    double failed               # the mixing from which no tighter gap was found last
    system_t free               # the coordinates with beta 0; scale is the mean square of the column


cdef double duality_gap(const problem_t* problem, state_t* state, double t) noexcept nogil
cdef bint certify(const problem_t* problem, state_t* state, dual_t* dual) noexcept nogil
cdef bint tighten(const problem_t* problem, state_t* state, dual_t* dual, double target) noexcept nogil
