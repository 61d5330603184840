from libc.stdint cimport uint64_t

from sl1max._core._dense cimport axpy, axpy_single
from sl1max._core._types cimport idx_t, problem_t, ptr_t, state_t


cdef extern from *:
    """
    /* The least number of violators that a working set takes in. */
    #define SL1MAX_MIN_ROOM 100
    /* Coordinates in one Cholesky factor. */
    #define SL1MAX_MAX_FACTOR 2048
    """
    const ptr_t MIN_ROOM "SL1MAX_MIN_ROOM"
    const ptr_t MAX_FACTOR "SL1MAX_MAX_FACTOR"


cdef struct workset_t:
    ptr_t size
    ptr_t* coords               # ascending, so block by block
    idx_t* order                # (n_coords of the problem,) the slots in the order of a sweep
    uint64_t seed
    double* priority            # scratch of select_working_set, as is ranked: one entry per coordinate of the problem
    double* ranked
    # The entries of the working set's columns, and the Newton system; grown as needed.
    ptr_t mark_capacity
    unsigned char* kept         # whether an entry has a say in the Hessian off its diagonal, column by column
    unsigned char* partial      # (n_samples,) whether an entry of the row was not kept
    ptr_t entry_capacity
    idx_t* row_start            # (n_samples + 1,) of the entries that were kept, by rows
    idx_t* row_end              # (n_samples,)
    idx_t* entry_slot
    double* entry_value         # only of values other than one
    double* entry_prob          # q_i(c) of the entry's cell; only where rows couple the blocks
    ptr_t hessian_capacity
    float* hessian              # (K, K) of sparse columns: a step need not be exact, and large ones wait for memory
    double* exact               # (K, K) of dense columns, which may depend on each other and cost far more to multiply
    ptr_t face_capacity
    double* face                # (A, A) its rows and columns at the active slots, in rows of K
    ptr_t vector_capacity
    ptr_t n_active
    ptr_t n_factored            # how many of the active slots, from the first, the factor in face holds
    idx_t* active               # (A,)
    bint* listed                # (K,) whether a slot stands in active
    double* slope               # (K,) gradient of the loss
    double* step                # (K,)
    double* product             # (K,) hessian @ step
    double* all                 # (K,) see form_dropped
    double* part                # (K,)
    double* scale               # (K,) see store_row
    double* face_slope          # (A,)
    double* face_step
    double* face_direction
    double* face_pivot


cdef bint reserve_marks(workset_t* work, ptr_t n_entries) noexcept nogil
cdef bint reserve_entries(workset_t* work, ptr_t n_entries, bint valued, bint coupled) noexcept nogil
cdef bint reserve_vectors(workset_t* work, ptr_t n_slots) noexcept nogil
cdef bint reserve_hessian(workset_t* work, ptr_t n_slots, bint dense) noexcept nogil


cdef inline double hessian_at(const workset_t* work, ptr_t a, ptr_t b) noexcept nogil:
    return work.hessian[a * work.size + b] if work.exact == NULL else work.exact[a * work.size + b]


cdef inline void add_hessian_row(workset_t* work, ptr_t slot, double delta) noexcept nogil:
    """product += delta * hessian[slot]"""
    if work.exact == NULL:
        axpy_single(delta, work.hessian + slot * work.size, work.product, work.size)
    else:
        axpy(delta, work.exact + slot * work.size, work.product, work.size)


cdef bint reserve_face(workset_t* work, ptr_t n_slots) noexcept nogil
cdef void release(workset_t* work) noexcept nogil
cdef double kth_largest(double* values, ptr_t size, ptr_t k) noexcept nogil
cdef double select_working_set(const problem_t* problem, const state_t* state, workset_t* work) noexcept nogil
