from sl1max._core._types cimport problem_t, state_t
from sl1max._core._working_set cimport workset_t


cdef void minimise_model(const problem_t* problem, state_t* state, workset_t* work, double precision) noexcept nogil
