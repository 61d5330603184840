"""Pricing every coordinate, and the duality gap.

For any distribution p that meets the paper's constraints |p[f] - p~[f]| <= beta,

    objective(lam) - entropy(p) = KL(p || q) + sum_k (beta_k |lam_k| + lam_k (p[f_k] - p~[f_k]))  >=  0,

a sum of terms that are never negative, so that nothing cancels. The p offered is the model itself, tilted by one
linear correction so that the free (unpenalised) coordinates, intercepts among them, meet their equalities, then mixed
with p~ just enough to meet the rest: p_t = (1 - t) q (1 + tilt) + t p~. With t = 1 it is p~, which meets them all.
"""
from libc.math cimport INFINITY, exp, fabs, log1p

from sl1max._core._column cimport column_axpy, column_dot, row_axpy
from sl1max._core._normalizer cimport block_flow, center_slope, interrupted, walk
from sl1max._core._types cimport problem_t, ptr_t, state_t


cdef extern from *:
    """
    /* An equality counts as met when it holds to this many root mean squares of its column: rounding error. */
    #define SL1MAX_EQUALITY 1e-13
    """
    const double EQUALITY "SL1MAX_EQUALITY"


cdef struct free_t:
    # The coordinates with beta 0, and the vectors of the conjugate gradients on them.
    ptr_t size
    ptr_t* coords
    double* rms                 # root mean square of the coordinate's column
    double* solution
    double* residual
    double* direction
    double* product


cdef inline void direction_slope(const problem_t* problem, state_t* state, const free_t* free,
                                 const double* direction) noexcept nogil:
    """slope = X_U @ direction over all cells, and its mean lift."""
    cdef ptr_t m = problem.X.n_rows, k, c
    for k in range(problem.n_blocks * m):
        state.slope[k] = 0.0
    for k in range(free.size):
        if direction[k] != 0.0:
            c = free.coords[k] // problem.n_coords
            column_axpy(walk(problem, state, free.coords[k] % problem.n_coords), direction[k],
                        state.slope + c * m)
    center_slope(problem, state)


cdef inline double tilt_at(const problem_t* problem, const state_t* state, ptr_t c, ptr_t i) noexcept nogil:
    return state.slope[c * problem.X.n_rows + i] - state.lift[0 if problem.pooled else i]


cdef inline void tilted_flow(const problem_t* problem, state_t* state, ptr_t c, double one) noexcept nogil:
    """flow of block c times (one + tilt): one = 1 the tilted model, one = 0 the change alone."""
    cdef ptr_t i
    block_flow(problem, state, c, state.flow)
    for i in range(problem.X.n_rows):
        state.flow[i] *= one + tilt_at(problem, state, c, i)


cdef inline double free_residual(const problem_t* problem, state_t* state, free_t* free) noexcept nogil:
    """residual = p~ - p on the free coordinates, p the tilted model; returns the largest in root mean squares."""
    cdef ptr_t k, c, last = -1
    cdef double worst = 0.0
    for k in range(free.size):
        c = free.coords[k] // problem.n_coords
        if c != last:
            tilted_flow(problem, state, c, 1.0)
            last = c
        free.residual[k] = problem.emp_mean[free.coords[k]] - column_dot(
            walk(problem, state, free.coords[k] % problem.n_coords), state.flow)
        worst = max(worst, fabs(free.residual[k]) / free.rms[k])
    return worst


cdef inline void covariance_product(const problem_t* problem, state_t* state, free_t* free) noexcept nogil:
    """product = (Hessian on the free coordinates) @ direction"""
    cdef ptr_t k, c, last = -1
    direction_slope(problem, state, free, free.direction)
    for k in range(free.size):
        c = free.coords[k] // problem.n_coords
        if c != last:
            tilted_flow(problem, state, c, 0.0)
            last = c
        free.product[k] = column_dot(walk(problem, state, free.coords[k] % problem.n_coords), state.flow)


cdef inline void conjugate_gradients(const problem_t* problem, state_t* state, free_t* free) noexcept nogil:
    """solution += argmin of the quadratic with the Hessian on the free coordinates and gradient -residual.

    They need no matrix and do not mind that it is singular (an intercept per class, a duplicate column).
    """
    cdef ptr_t k, _iteration
    cdef double norm = 0.0, old_norm, curvature, step, worst
    for k in range(free.size):
        free.direction[k] = free.residual[k] / (free.rms[k] * free.rms[k])
        norm += free.residual[k] * free.direction[k]
    for _iteration in range(2 * free.size + 10):
        covariance_product(problem, state, free)
        curvature = 0.0
        for k in range(free.size):
            curvature += free.direction[k] * free.product[k]
        if not curvature > 0.0 or interrupted(state):
            return
        step = norm / curvature
        old_norm = norm
        norm = 0.0
        worst = 0.0
        for k in range(free.size):
            free.solution[k] += step * free.direction[k]
            free.residual[k] -= step * free.product[k]
            worst = max(worst, fabs(free.residual[k]) / free.rms[k])
            norm += free.residual[k] * free.residual[k] / (free.rms[k] * free.rms[k])
        if worst <= 0.1 * EQUALITY:
            return
        for k in range(free.size):
            free.direction[k] = (free.residual[k] / (free.rms[k] * free.rms[k])
                                 + norm / old_norm * free.direction[k])


cdef inline bint is_distribution(const problem_t* problem, const state_t* state) noexcept nogil:
    """Whether no tilt takes more than there is."""
    cdef ptr_t m = problem.X.n_rows, c, i
    for c in range(problem.n_blocks):
        for i in range(m):
            if not tilt_at(problem, state, c, i) >= -1.0:
                return False
    if problem.reference > 0.0:
        for i in range(m):
            if not state.lift[i] <= 1.0:
                return False
    return True


cdef inline bint solve_tilt(const problem_t* problem, state_t* state, free_t* free) noexcept nogil:
    """Leave in slope and lift the tilt that gives every free coordinate its empirical mean.

    False, and no tilt, if it is not found or would leave no distribution: too far from the optimum yet.
    """
    cdef ptr_t k, _attempt
    cdef bint found
    for k in range(free.size):
        free.solution[k] = 0.0
    direction_slope(problem, state, free, free.solution)
    for _attempt in range(3):
        found = free_residual(problem, state, free) <= EQUALITY
        if found:
            break
        conjugate_gradients(problem, state, free)
        direction_slope(problem, state, free, free.solution)
    if (found or free_residual(problem, state, free) <= EQUALITY) and is_distribution(problem, state):
        return True
    for k in range(free.size):
        free.solution[k] = 0.0
    direction_slope(problem, state, free, free.solution)
    return False


cdef inline double most_frequent(const double* values, ptr_t size) noexcept nogil:
    """The value that more than half of them have; if there is none, any of them (Boyer and Moore's vote)."""
    cdef ptr_t i, lead = 0
    cdef double chosen = 0.0
    for i in range(size):
        if lead == 0:
            chosen = values[i]
        lead += 1 if values[i] == chosen else -1
    return chosen


cdef inline void price_by_rows(const problem_t* problem, state_t* state, ptr_t c) noexcept nogil:
    """gradient of block c from its flow: what it would be if all rows had the same, and the rows that have not.

    Rows without a feature that has a weight have the same flow. For a rare class that is most of them; and where it is
    few, writing to the gradient, which a cache holds, is still cheaper than reading from a flow that it does not.
    """
    cdef ptr_t i, j, n_walked = 0
    cdef double common = most_frequent(state.flow, problem.X.n_rows), rest = 0.0
    cdef double* gradient = state.gradient + c * problem.n_coords
    for j in range(problem.n_coords):
        gradient[j] = common * problem.X.total[j] - problem.emp_mean[c * problem.n_coords + j]
    for i in range(problem.X.n_rows):
        if state.flow[i] != common:
            n_walked += row_axpy(&problem.X, i, state.flow[i] - common, gradient)
            rest += state.flow[i] - common
    gradient[problem.X.n_cols] += rest
    state.counters.nonzeros += n_walked


cdef inline void price_by_columns(const problem_t* problem, state_t* state, ptr_t c) noexcept nogil:
    cdef ptr_t j, k
    for j in range(problem.n_coords):
        k = c * problem.n_coords + j
        if problem.beta[k] != INFINITY:
            state.gradient[k] = column_dot(walk(problem, state, j), state.flow) - problem.emp_mean[k]


cdef inline void price(const problem_t* problem, state_t* state) noexcept nogil:
    """gradient = p[f] - p~[f] for every coordinate that is not left out, p the tilted model."""
    cdef ptr_t c
    for c in range(problem.n_blocks):
        tilted_flow(problem, state, c, 1.0)
        if problem.X.row_start != NULL:
            price_by_rows(problem, state, c)
        else:
            price_by_columns(problem, state, c)
        if interrupted(state):
            return


cdef inline double mixing(double gradient, double beta) noexcept nogil:
    """Smallest t with (1 - t) |gradient| <= beta, for a penalised coordinate."""
    return 1.0 - beta / fabs(gradient) if fabs(gradient) > beta else 0.0


cdef inline double excess(double r) noexcept nogil:
    """(1 + r) ln(1 + r) - r: what a cell of mass q adds to KL(p || q), per q, when p = (1 + r) q."""
    if -1e-4 < r < 1e-4:
        return r * r * (0.5 - r * (1.0 / 6.0 - r / 12.0))      # the next term is below the last digit
    return 1.0 if r <= -1.0 else (1.0 + r) * log1p(r) - r


cdef inline double cell_divergence(double q, double tilt, double target, double t) noexcept nogil:
    if q > 0.0:
        return q * excess((1.0 - t) * tilt + t * (target / q - 1.0))
    return INFINITY if t * target > 0.0 else 0.0


cdef inline double mixed_divergence(const problem_t* problem, state_t* state, double t) noexcept nogil:
    """KL(p_t || q), weighted over the examples where each has its own Z."""
    cdef ptr_t m = problem.X.n_rows, c, i
    cdef double total = 0.0, q, rest, tilt
    for c in range(problem.n_blocks):
        for i in range(m):
            tilt = tilt_at(problem, state, c, i)
            q = state.weight[c * m + i] * state.inv_z[0 if problem.pooled else i]
            if problem.mass[i] > 0.0:
                total += ((1.0 if problem.pooled else problem.mass[i])
                          * cell_divergence(q, tilt, problem.target[c * m + i], t))
    if problem.reference > 0.0:
        for i in range(m):
            rest = 1.0 - problem.target[i]
            q = problem.reference * exp(-state.shift[i]) * state.inv_z[i]
            if problem.mass[i] > 0.0:
                total += problem.mass[i] * cell_divergence(q, -state.lift[i], rest, t)
    return total


cdef inline double largest_mixing(const problem_t* problem, const state_t* state) noexcept nogil:
    """The least t that makes p_t meet every penalised coordinate's interval."""
    cdef ptr_t k
    cdef double t = 0.0
    for k in range(problem.n_blocks * problem.n_coords):
        if 0.0 < problem.beta[k] < INFINITY:
            t = max(t, mixing(state.gradient[k], problem.beta[k]))
    return t


cdef inline double duality_gap(const problem_t* problem, state_t* state, double t) noexcept nogil:
    """The gap at the current weights for p_t, from slope, lift and gradient as solve_tilt and price left them."""
    cdef ptr_t k
    cdef double slack = 0.0
    for k in range(problem.n_blocks * problem.n_coords):
        if state.lam[k] != 0.0 and problem.beta[k] > 0.0:
            slack += max(problem.beta[k] * fabs(state.lam[k]) + (1.0 - t) * state.lam[k] * state.gradient[k], 0.0)
    return slack + mixed_divergence(problem, state, t)
