"""The normalisers: computed from the scores, updated by single steps; objective, probabilities, moments.

There is one Z for all cells (pooled), or one per example (the paper, section 5). Other modules ask for moments of a
column, apply a step, or read the probability mass of a block, and need not distinguish the two cases.
"""
from libc.math cimport INFINITY, log

from sl1max._core._column cimport column_axpy
from sl1max._core._dense cimport exp_all
from sl1max._core._penalty cimport penalty_value_at
from sl1max._core._types cimport problem_t, ptr_t, state_t


cdef void refresh_scores(const problem_t* problem, state_t* state) noexcept nogil:
    """score = offset + X @ lam, computed from scratch."""
    cdef ptr_t m = problem.X.n_rows, c, place, k
    for c in range(problem.n_blocks * m):
        state.score[c] = 0.0 if problem.offset == NULL else problem.offset[c]
    for c in range(problem.n_blocks):
        for place in range(problem.included_start[c], problem.included_start[c + 1]):
            k = problem.included[place]
            if state.lam[k] != 0.0:
                column_axpy(walk(problem, state, k - c * problem.n_coords), state.lam[k], state.score + c * m)


cdef void refresh_weights_pooled(const problem_t* problem, state_t* state) noexcept nogil:
    # shift = score.max(); weight = mass * exp(score - shift); z = weight.sum(), over the examples that have a mass
    cdef ptr_t m = problem.X.n_rows, c, i
    cdef double shift = -INFINITY, z = 0.0, block_z
    for c in range(problem.n_blocks):
        for i in range(m):
            if problem.mass[i] > 0.0:
                shift = max(shift, state.score[c * m + i])
    for c in range(problem.n_blocks):
        block_z = 0.0
        for i in range(m):
            state.weight[c * m + i] = state.score[c * m + i] - shift
        exp_all(state.weight + c * m, m)
        for i in range(m):
            state.weight[c * m + i] *= problem.mass[i]
            block_z += state.weight[c * m + i]
        z += block_z
    state.shift[0] = shift
    state.z[0] = state.largest_z = z
    state.inv_z[0] = 1.0 / z


cdef void refresh_weights_each(const problem_t* problem, state_t* state) noexcept nogil:
    # shift = score.max(axis=0); weight = exp(score - shift); z = reference * exp(-shift) + weight.sum(axis=0)
    cdef ptr_t m = problem.X.n_rows, c, i
    cdef bint has_reference = problem.reference > 0.0
    cdef double* score
    cdef double* weight
    for i in range(m):
        state.shift[i] = max(state.score[i], 0.0) if has_reference else state.score[i]
    for c in range(1, problem.n_blocks):
        score = state.score + c * m
        for i in range(m):
            state.shift[i] = max(state.shift[i], score[i])
    for i in range(m):
        state.z[i] = -state.shift[i] if has_reference else -INFINITY
    exp_all(state.z, m)
    for c in range(problem.n_blocks):
        score, weight = state.score + c * m, state.weight + c * m
        for i in range(m):
            weight[i] = score[i] - state.shift[i]
        exp_all(weight, m)
        for i in range(m):
            state.z[i] += weight[i]
    for i in range(m):
        state.inv_z[i] = 1.0 / state.z[i]


cdef void refresh_weights(const problem_t* problem, state_t* state) noexcept nogil:
    """weight, z and inv_z from the scores."""
    if problem.pooled:
        refresh_weights_pooled(problem, state)
    else:
        refresh_weights_each(problem, state)
    state.change_bound = 0.0
    state.lost_digits = False
    state.normalised = False


cdef void refresh_normalizer(const problem_t* problem, state_t* state) noexcept nogil:
    refresh_scores(problem, state)
    refresh_weights(problem, state)


cdef double log_z(const problem_t* problem, const state_t* state) noexcept nogil:
    """sum_g w_g ln Z_g: ln Z, or the mean over examples of ln Z(x)."""
    cdef double total = 0.0
    cdef ptr_t i
    if problem.pooled:
        return state.shift[0] + log(state.z[0])
    for i in range(problem.X.n_rows):
        total += problem.mass[i] * (state.shift[i] + log(state.z[i]))
    return total


cdef double objective(const problem_t* problem, const state_t* state) noexcept nogil:
    """L^beta_p~: log Z - lam . p~ + beta . |lam|, or what other penalty there is"""
    cdef double linear = 0.0
    cdef ptr_t place, k
    for place in range(problem.included_start[problem.n_blocks]):
        k = problem.included[place]
        if state.lam[k] != 0.0:
            linear += penalty_value_at(problem, k, state.lam[k]) - state.lam[k] * problem.emp_mean[k]
    return log_z(problem, state) + linear


cdef void normalise_cells(const problem_t* problem, state_t* state) noexcept nogil:
    """Make every z one, where each example has one cell and its reference: then weight is q, and a step changes
    nothing else. The weight of the reference is not known until the next refresh."""
    cdef ptr_t i
    for i in range(problem.X.n_rows):
        state.weight[i] *= state.inv_z[i]
        state.z[i] = state.inv_z[i] = 1.0
    state.normalised = True


cdef void fill_cell_mass(const problem_t* problem, const state_t* state, ptr_t c, double* out) noexcept nogil:
    """Probability mass of every cell of block c: u_i q_i(c), or q(x_i, c)."""
    cdef const double* weight = state.weight + c * problem.X.n_rows
    cdef ptr_t i
    if problem.pooled:
        for i in range(problem.X.n_rows):
            out[i] = weight[i] * state.inv_z[0]
    else:
        for i in range(problem.X.n_rows):
            out[i] = problem.mass[i] * (weight[i] * state.inv_z[i])


cdef void fill_cell_curvature(const problem_t* problem, const state_t* state, ptr_t c, ptr_t d,
                              double* out) noexcept nogil:
    """Second derivative of the loss in the scores of an example's cells in blocks c and d, without W_a W_b."""
    cdef ptr_t m = problem.X.n_rows, i
    fill_cell_mass(problem, state, c, out)
    if not problem.pooled:
        for i in range(m):
            out[i] *= (1.0 if c == d else 0.0) - state.weight[d * m + i] * state.inv_z[i]


cdef void center_direction(const problem_t* problem, state_t* state) noexcept nogil:
    """direction_mean = mean of direction_score under q, for every normaliser; the reference cell has score 0."""
    # pooled: (q * direction_score).sum(); else (q * direction_score).sum(axis=0)
    cdef ptr_t m = problem.X.n_rows, c, i
    cdef double total = 0.0
    if problem.pooled:
        for c in range(problem.n_blocks * m):
            total += state.weight[c] * state.direction_score[c]
        state.direction_mean[0] = total * state.inv_z[0]
        return
    for i in range(m):
        state.direction_mean[i] = 0.0
    for c in range(problem.n_blocks):
        for i in range(m):
            state.direction_mean[i] += state.weight[c * m + i] * state.inv_z[i] * state.direction_score[c * m + i]
