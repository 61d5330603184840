from sl1max._core._types cimport problem_t, ptr_t, state_t
from sl1max._core._working_set cimport workset_t


cdef extern from *:
    """
    /* Coordinates in one Hessian, which takes 576 MB at most. */
    #define SL1MAX_MAX_NEWTON 12288
    /* Sweeps over a working set that has yet to find its size or has many newcomers, and over one that has not, before
       a Newton system; newcomers against the support that are many; steps with one Hessian. */
    #define SL1MAX_FIRST_SWEEPS 3
    #define SL1MAX_LATER_SWEEPS 2
    #define SL1MAX_MANY_NEW 0.05
    #define SL1MAX_MAX_STEPS 8
    /* Entries of a working set whose Newton system costs so little that it is solved exactly. */
    #define SL1MAX_FEW_ENTRIES 4096
    """
    const ptr_t MAX_NEWTON "SL1MAX_MAX_NEWTON"
    const int FIRST_SWEEPS "SL1MAX_FIRST_SWEEPS"
    const int LATER_SWEEPS "SL1MAX_LATER_SWEEPS"
    const double MANY_NEW "SL1MAX_MANY_NEW"
    const int MAX_STEPS "SL1MAX_MAX_STEPS"
    const ptr_t FEW_ENTRIES "SL1MAX_FEW_ENTRIES"


cdef void sweep(const problem_t* problem, state_t* state, workset_t* work, int n_times) noexcept nogil
cdef void keep_moved(const problem_t* problem, const state_t* state, workset_t* work) noexcept nogil
cdef int newton_steps(const problem_t* problem, state_t* state, workset_t* work, double target,
                      double precision) noexcept nogil
