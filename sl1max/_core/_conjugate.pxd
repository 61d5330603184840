from sl1max._core._types cimport problem_t, ptr_t, state_t


cdef struct system_t:
    # Hessian @ solution = residual, on some coordinates; the residual is what is left of it.
    ptr_t size
    ptr_t* coords               # ascending, so block by block
    double* scale               # about the diagonal of the Hessian
    double* solution
    double* residual
    double* direction
    double* product


cdef void direction_slope(const problem_t* problem, state_t* state, ptr_t size, const ptr_t* coords,
                          const double* direction) noexcept nogil


cdef inline double tilt_at(const problem_t* problem, const state_t* state, ptr_t c, ptr_t i) noexcept nogil:
    return state.slope[c * problem.X.n_rows + i] - state.lift[0 if problem.pooled else i]


cdef void tilted_flow(const problem_t* problem, state_t* state, ptr_t c, double one) noexcept nogil
cdef void conjugate_gradients(const problem_t* problem, state_t* state, system_t* system, ptr_t n_most,
                              double precision) noexcept nogil
