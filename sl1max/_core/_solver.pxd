"""A solver from compiled code, without the GIL. The void* is a Solver, which the caller keeps alive."""
from sl1max._core._types cimport ptr_t, state_t, status_t


# Go on for at most n iterations, or until stop[0] is found to be nonzero (looked at now and then; NULL: never).
cdef status_t run_solver(void* solver, ptr_t n, const int* stop) noexcept nogil

# Weights, objective, gap and so on as they stand; valid as long as the solver.
cdef const state_t* solver_state(void* solver) noexcept nogil
