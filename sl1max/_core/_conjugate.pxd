from sl1max._core._types cimport problem_t, ptr_t, state_t


cdef struct system_t:
    # Hessian @ solution = right-hand side, on some coordinates; residual is the difference.
    ptr_t size
    ptr_t* coords               # ascending, so block by block
    double* scale               # about the diagonal of the Hessian
    double* solution
    double* residual
    double* direction
    double* product


cdef void direction_scores(const problem_t* problem, state_t* state, ptr_t size, const ptr_t* coords,
                           const double* direction) noexcept nogil


cdef inline double centred_score(const problem_t* problem, const state_t* state, ptr_t c, ptr_t i) noexcept nogil:
    """Score of the direction less its mean under q: the first-order relative change of the cell's probability."""
    return state.direction_score[c * problem.X.n_rows + i] - state.direction_mean[0 if problem.pooled else i]


cdef void fill_moved_mass(const problem_t* problem, state_t* state, ptr_t c, double one) noexcept nogil
cdef void conjugate_gradients(const problem_t* problem, state_t* state, system_t* system, ptr_t n_most,
                              double precision) noexcept nogil
