from sl1max._core._quadratic_model cimport quadratic_t
from sl1max._core._types cimport idx_t, options_t, problem_t, ptr_t, state_t
from sl1max._core._working_set cimport working_set_t


cdef struct entries_t:
    # Nonzeros of the working set's columns: all of them column by column, and those that are kept also row by row.
    double* row_curvature       # (n_samples,) curvature of the loss in the scores of a row, summed over blocks
    double* cell_curvature      # (n_samples,) the same of one cell of each row, in the block at hand
    ptr_t mark_capacity
    unsigned char* is_kept      # (all entries,) whether it is multiplied with the others of its row
    unsigned char* is_partial   # (n_samples,) whether an entry of the row was not kept
    ptr_t capacity
    idx_t* row_start            # (n_samples + 1,) of the entries that were kept, by rows
    idx_t* row_end              # (n_samples,)
    idx_t* pos                  # position in the working set
    double* value               # only of values other than one
    double* prob                # q_i(c) of the entry's cell; only where rows couple the blocks
    ptr_t vector_capacity
    double* row                 # (K,) one row of the Hessian
    double* scale               # (K,) see store_row
    double* all                 # (K,) see form_dropped
    double* part                # (K,)


cdef ptr_t count_entries(const problem_t* problem, const working_set_t* working) noexcept nogil
cdef void release_entries(entries_t* entries) noexcept nogil
cdef void form_slope(const problem_t* problem, state_t* state, const working_set_t* working,
                     quadratic_t* model) noexcept nogil
cdef bint form_hessian(const problem_t* problem, state_t* state, const options_t* options,
                       const working_set_t* working, entries_t* entries, quadratic_t* model, bint coupled,
                       double precision) noexcept nogil
