from sl1max._core._types cimport problem_t, ptr_t, state_t
from sl1max._core._working_set cimport workset_t


cdef extern from *:
    """
    /* A precision that leaves out nothing. */
    #define SL1MAX_EXACT 1e-9
    """
    const double EXACT "SL1MAX_EXACT"


cdef ptr_t count_entries(const problem_t* problem, const workset_t* work) noexcept nogil
cdef void form_slope(const problem_t* problem, state_t* state, workset_t* work) noexcept nogil
cdef bint form_hessian(const problem_t* problem, state_t* state, workset_t* work, bint coupled,
                       double precision) noexcept nogil
