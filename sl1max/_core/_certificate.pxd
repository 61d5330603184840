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
    ptr_t n_unbound             # coordinates that may have to meet an equality: beta, or one side of it, is 0
    ptr_t* unbound
    system_t free               # those that have to, at the weights of the last certificate


cdef double duality_gap(const problem_t* problem, state_t* state, double t) noexcept nogil
cdef bint certify(const problem_t* problem, state_t* state, dual_t* dual) noexcept nogil
cdef bint tighten(const problem_t* problem, state_t* state, dual_t* dual, double target) noexcept nogil
