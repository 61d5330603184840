from libc.stdint cimport uint64_t

from sl1max._core._types cimport idx_t, options_t, problem_t, ptr_t, state_t


cdef struct working_set_t:
    # The coordinates that one round updates, and the order of a sweep over them.
    ptr_t size
    ptr_t* coords               # ascending, so block by block
    idx_t* order                # positions in the working set
    uint64_t seed
    double* priority            # one entry per coordinate of the problem
    double* ranked              # a copy of the priorities, for kth_largest


cdef double kth_largest(double* values, ptr_t size, ptr_t k) noexcept nogil
cdef double select_working_set(const problem_t* problem, const state_t* state, const options_t* options,
                               working_set_t* working) noexcept nogil
cdef void keep_worst(const problem_t* problem, state_t* state, working_set_t* working, ptr_t max_size) noexcept nogil
cdef void keep_nonzero(const problem_t* problem, const state_t* state, working_set_t* working) noexcept nogil
