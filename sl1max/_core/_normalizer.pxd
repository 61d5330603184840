from libc.math cimport fabs

from sl1max._core._column cimport (
    MIN_Z, column_moments, column_moments_binary, column_moments_pooled, column_scale, column_scale_each, column_tilt,
    get_column,
)
from sl1max._core._types cimport column_t, pair_t, problem_t, ptr_t, state_t


cdef extern from *:
    """
    /* Weights start in (0, 1]; they are refreshed before steps change one by exp(300): exp overflows at 709. */
    #define SL1MAX_MAX_CHANGE 300.0
    """
    const double MAX_CHANGE "SL1MAX_MAX_CHANGE"


cdef inline bint interrupted(state_t* state) noexcept nogil:
    """Ask the owner, now and then, whether to stop."""
    if state.counters.nonzeros >= state.next_poll:
        state.next_poll = state.counters.nonzeros + 20_000_000
        state.stopped |= state.poll(state.owner)
    return state.stopped


cdef inline column_t walk(const problem_t* problem, state_t* state, ptr_t j) noexcept nogil:
    """Column j, counted."""
    cdef column_t column = get_column(&problem.X, j)
    state.counters.column_walks += 1
    state.counters.nonzeros += column.size
    return column


cdef void refresh_scores(const problem_t* problem, state_t* state) noexcept nogil
cdef void refresh_weights(const problem_t* problem, state_t* state) noexcept nogil
cdef void refresh_normalizer(const problem_t* problem, state_t* state) noexcept nogil
cdef double log_z(const problem_t* problem, const state_t* state) noexcept nogil
cdef double objective(const problem_t* problem, const state_t* state) noexcept nogil


cdef inline pair_t coordinate_moments(const problem_t* problem, state_t* state, ptr_t c, ptr_t j) noexcept nogil:
    """Model mean of coordinate (c, j) and the curvature of the loss along it, by one walk of its column."""
    cdef column_t column = walk(problem, state, j)
    cdef double* weight = state.weight + c * problem.X.n_rows
    cdef pair_t moments
    if state.normalised:
        return column_moments_binary(column, weight, problem.mass, problem.common_mass)
    if not problem.pooled:
        return column_moments(column, weight, state.inv_z, problem.mass, problem.common_mass)
    moments = column_moments_pooled(column, weight)
    moments.first *= state.inv_z[0]
    moments.second = max(moments.second * state.inv_z[0] - moments.first * moments.first, 0.0)
    return moments


cdef inline void apply_step(const problem_t* problem, state_t* state, ptr_t c, ptr_t j, double delta) noexcept nogil:
    """lam[c, j] += delta, and the weights and Zs along the column; the scores are not updated."""
    cdef column_t column = walk(problem, state, j)
    cdef double* weight = state.weight + c * problem.X.n_rows
    state.lam[c * problem.n_coords + j] += delta
    state.counters.updates += 1
    if not state.normalised:
        state.change_bound += fabs(delta) * problem.extent[j]
    if state.change_bound > MAX_CHANGE:
        refresh_normalizer(problem, state)
        return
    if problem.pooled:
        state.z[0] += column_scale(column, delta, weight)
        state.inv_z[0] = 1.0 / state.z[0]
        state.largest_z = max(state.largest_z, state.z[0])
        state.lost_digits |= state.z[0] < MIN_Z * state.largest_z
    elif state.normalised:
        column_tilt(column, delta, weight)
    else:
        state.lost_digits |= column_scale_each(column, delta, weight, state.z, state.inv_z)
    if state.lost_digits:
        refresh_normalizer(problem, state)


cdef void normalise_cells(const problem_t* problem, state_t* state) noexcept nogil
cdef void fill_cell_mass(const problem_t* problem, const state_t* state, ptr_t c, double* out) noexcept nogil
cdef void fill_cell_curvature(const problem_t* problem, const state_t* state, ptr_t c, ptr_t d,
                              double* out) noexcept nogil
cdef void center_direction(const problem_t* problem, state_t* state) noexcept nogil
