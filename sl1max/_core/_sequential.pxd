from sl1max._core._types cimport problem_t, ptr_t, state_t


cdef struct choice_t:
    ptr_t coord                 # -1: none
    double delta
    double gain


cdef struct prices_t:
    double* gain                # (n_blocks, n_coords) at the last full pricing
    double* ranked              # scratch: a copy of gain
    double best                 # the largest of them
    ptr_t n_candidates          # 0: never priced
    ptr_t* candidates


cdef choice_t sequential_step(const problem_t* problem, state_t* state, prices_t* prices, bint full) noexcept nogil
