"""Columns for other modules of the core; and a solver from compiled code, without the GIL."""
from sl1max._core._types cimport columns_t, ptr_t, state_t, status_t


cdef class Columns:
    cdef columns_t view
    cdef object lock                 # guards the index of rows and last_weighted
    cdef object owned, row_index
    cdef readonly object low, high   # least and greatest value of each column, implicit zeros included
    cdef readonly object extent      # largest absolute value of each column
    cdef readonly object reach       # range of each column
    cdef readonly object reach_with_zero    # the same with zero added to its values
    cdef readonly object rms         # root mean square of each column
    cdef readonly object total       # sum of each column
    cdef object last_weighted        # (masses, root mean square of each column under them), as last asked for
    cdef readonly ptr_t longest_row  # nonzeros of the row that has most, where rows are indexed

    cdef columns_t get_view(self)


# The void* is a Solver, which the caller keeps alive.

# Go on for at most n iterations, or until stop[0] is found to be nonzero (looked at now and then; NULL: never).
cdef status_t run_solver(void* solver, ptr_t n, const int* stop) noexcept nogil

# Weights, objective, gap and so on as they stand; valid as long as the solver.
cdef const state_t* solver_state(void* solver) noexcept nogil
