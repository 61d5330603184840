from sl1max._core._dense cimport axpy, axpy_single
from sl1max._core._types cimport idx_t, options_t, problem_t, ptr_t, state_t
from sl1max._core._working_set cimport working_set_t


cdef struct quadratic_t:
    # slope @ d + d @ hessian @ d / 2, over steps d of the K weights of a working set.
    ptr_t size                  # K
    ptr_t matrix_capacity
    float* single               # (K, K) for sparse columns: a step need not be exact, and large ones wait for memory
    double* exact               # (K, K) for dense columns, which may be collinear and cost far more to multiply
    ptr_t vector_capacity
    double* slope               # (K,) gradient of the loss
    double* diagonal            # (K,) of the Hessian, before it is rounded
    double* step                # (K,) d
    double* product             # (K,) hessian @ d


cdef struct factor_t:
    # The Cholesky factor of the Hessian's rows and columns on the active set, A of the K weights.
    ptr_t matrix_capacity
    double* matrix              # (A, A) in rows of K; the factor's strict lower triangle, the Hessian's upper one
    ptr_t vector_capacity
    ptr_t n_active
    ptr_t n_factored            # how many rows, from the first, are factored
    idx_t* active               # (A,) positions in the working set
    bint* is_listed             # (K,) whether a position stands in active
    double* slope               # (A,) gradient of the model plus penalty
    double* step                # (A,) Newton's step on the active set
    double* shortened           # (A,) the step as taken: no weight crosses zero
    double* pivot               # (A,) diagonal of the factor


cdef inline double hessian_at(const quadratic_t* model, ptr_t a, ptr_t b) noexcept nogil:
    return model.single[a * model.size + b] if model.exact == NULL else model.exact[a * model.size + b]


cdef inline void change_step(quadratic_t* model, ptr_t pos, double delta) noexcept nogil:
    """step[pos] += delta, and the product with it."""
    model.step[pos] += delta
    if model.exact == NULL:
        axpy_single(delta, model.single + pos * model.size, model.product, model.size)
    else:
        axpy(delta, model.exact + pos * model.size, model.product, model.size)


cdef bint reserve_vectors(quadratic_t* model, ptr_t size) noexcept nogil
cdef bint reserve_matrix(quadratic_t* model, ptr_t size, bint dense) noexcept nogil
cdef bint reserve_active(factor_t* factor, ptr_t size) noexcept nogil
cdef void release_model(quadratic_t* model) noexcept nogil
cdef void release_factor(factor_t* factor) noexcept nogil
cdef void minimise_model(const problem_t* problem, state_t* state, const options_t* options, working_set_t* working,
                         quadratic_t* model, factor_t* factor, double precision) noexcept nogil
