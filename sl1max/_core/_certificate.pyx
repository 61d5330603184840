"""Pricing every coordinate, and the duality gap.

For any distribution p that meets the paper's constraints |p[f] - p~[f]| <= beta,

    objective(lam) - entropy(p) = KL(p || q) + sum_k (beta_k |lam_k| + lam_k (p[f_k] - p~[f_k]))  >=  0,

a sum of terms that are never negative, so that nothing cancels. The p offered is the model itself, tilted by one
linear correction so that the free (unpenalised) coordinates, intercepts among them, meet their equalities, then mixed
with p~ just enough to meet the rest: p_t = (1 - t) q (1 + tilt) + t p~. With t = 1 it is p~, which meets them all.

That gap is linear in the worst violation, and the objective quadratic: near the optimum the tilt takes in the violated
coordinates as well, by as much as a Newton step would, and the gap is quadratic too.
"""
from libc.math cimport INFINITY, exp, fabs, log1p, sqrt
from libc.string cimport memset

from sl1max._core._column cimport column_axpy, column_dot, column_push, row_axpy
from sl1max._core._conjugate cimport conjugate_gradients, system_t, tilt_at, tilted_flow
from sl1max._core._normalizer cimport cell_curvature, center_slope, coordinate_moments, interrupted, walk
from sl1max._core._step cimport minimise_quadratic, violation
from sl1max._core._types cimport column_t, pair_t, problem_t, ptr_t, state_t


cdef extern from *:
    """
    /* An equality counts as met when it holds to this many root mean squares of its column: rounding error. */
    #define SL1MAX_EQUALITY 1e-13
    """
    const double EQUALITY "SL1MAX_EQUALITY"


cdef void form_tilt(const problem_t* problem, state_t* state, const dual_t* dual) noexcept nogil:
    """slope = X @ tilt over all cells, and its mean lift."""
    cdef ptr_t m = problem.X.n_rows, c, j
    cdef const double* tilt
    memset(state.slope, 0, problem.n_blocks * m * sizeof(double))
    for c in range(problem.n_blocks):
        tilt = dual.tilt + c * problem.n_coords
        for j in range(problem.n_coords):
            if tilt[j] != 0.0:
                column_axpy(walk(problem, state, j), tilt[j], state.slope + c * m)
    center_slope(problem, state)


cdef double free_residual(const problem_t* problem, state_t* state, dual_t* dual) noexcept nogil:
    """residual = p~ - p on the free coordinates, p the tilted model; returns the largest in root mean squares."""
    cdef ptr_t k, c, last = -1
    cdef double worst = 0.0
    cdef system_t* free = &dual.free
    for k in range(free.size):
        c = free.coords[k] // problem.n_coords
        if c != last:
            tilted_flow(problem, state, c, 1.0)
            last = c
        free.residual[k] = problem.emp_mean[free.coords[k]] - column_dot(
            walk(problem, state, free.coords[k] % problem.n_coords), state.flow)
        worst = max(worst, fabs(free.residual[k]) / sqrt(free.scale[k]))
    return worst


cdef bint is_distribution(const problem_t* problem, const state_t* state) noexcept nogil:
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


cdef bint meet_free(const problem_t* problem, state_t* state, dual_t* dual) noexcept nogil:
    """Tilt the model by as much more of the free coordinates as gives each of them its empirical mean.

    Slope and lift are those of the tilt. False, and no tilt at all, if it is not found or would leave no distribution:
    too far from the optimum yet.
    """
    cdef ptr_t _attempt, k
    cdef double worst
    cdef system_t* free = &dual.free
    form_tilt(problem, state, dual)
    worst = free_residual(problem, state, dual)
    for _attempt in range(3):
        if worst <= EQUALITY:
            break
        memset(free.solution, 0, free.size * sizeof(double))
        conjugate_gradients(problem, state, free, 2 * free.size + 10, 0.1 * EQUALITY / worst)
        for k in range(free.size):
            dual.tilt[free.coords[k]] += free.solution[k]
        form_tilt(problem, state, dual)
        worst = free_residual(problem, state, dual)
    if worst <= EQUALITY and is_distribution(problem, state):
        return True
    memset(dual.tilt, 0, problem.n_blocks * problem.n_coords * sizeof(double))
    form_tilt(problem, state, dual)
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


cdef void price_by_rows(const problem_t* problem, state_t* state, ptr_t c) noexcept nogil:
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


cdef void price_by_columns(const problem_t* problem, state_t* state, ptr_t c) noexcept nogil:
    cdef ptr_t place, k
    for place in range(problem.live_start[c], problem.live_start[c + 1]):
        k = problem.live[place]
        state.gradient[k] = (column_dot(walk(problem, state, k - c * problem.n_coords), state.flow)
                             - problem.emp_mean[k])


cdef void price(const problem_t* problem, state_t* state) noexcept nogil:
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


cdef inline double excess(double r) noexcept nogil:
    """(1 + r) ln(1 + r) - r: what a cell of mass q adds to KL(p || q), per q, when p = (1 + r) q."""
    if -1e-4 < r < 1e-4:
        return r * r * (0.5 - r * (1.0 / 6.0 - r / 12.0))      # the next term is below the last digit
    return 1.0 if r <= -1.0 else (1.0 + r) * log1p(r) - r


cdef inline double cell_divergence(double q, double tilt, double target, double t, double emptied) noexcept nogil:
    """emptied is excess(-t), for the many cells that p~ gives nothing."""
    if target == 0.0 and tilt == 0.0:
        return q * emptied
    if q > 0.0:
        return q * excess((1.0 - t) * tilt + t * (target / q - 1.0))
    return INFINITY if t * target > 0.0 else 0.0


cdef double mixed_divergence(const problem_t* problem, state_t* state, double t) noexcept nogil:
    """KL(p_t || q), weighted over the examples where each has its own Z."""
    cdef ptr_t m = problem.X.n_rows, c, i
    cdef double total = 0.0, emptied = excess(-t), q, rest, tilt
    for c in range(problem.n_blocks):
        for i in range(m):
            tilt = tilt_at(problem, state, c, i)
            q = state.weight[c * m + i] * state.inv_z[0 if problem.pooled else i]
            if problem.mass[i] > 0.0:
                total += ((1.0 if problem.pooled else problem.mass[i])
                          * cell_divergence(q, tilt, problem.target[c * m + i], t, emptied))
    if problem.reference > 0.0:
        for i in range(m):
            rest = 1.0 - problem.target[i]
            q = problem.reference * exp(-state.shift[i]) * state.inv_z[i]
            if problem.mass[i] > 0.0:
                total += problem.mass[i] * cell_divergence(q, -state.lift[i], rest, t, emptied)
    return total


cdef double largest_mixing(const problem_t* problem, const state_t* state) noexcept nogil:
    """The least t that makes p_t meet every penalised coordinate's interval."""
    cdef ptr_t place, k
    cdef double t = 0.0
    for place in range(problem.live_start[problem.n_blocks]):
        k = problem.live[place]
        if fabs(state.gradient[k]) > problem.beta[k] > 0.0:
            t = max(t, mixing(state.gradient[k], problem.beta[k]))
    return t


cdef double slack(const problem_t* problem, const state_t* state, double t) noexcept nogil:
    """What p_t leaves of the complementary slackness of the weights."""
    cdef ptr_t place, k
    cdef double total = 0.0
    for place in range(problem.live_start[problem.n_blocks]):
        k = problem.live[place]
        if state.lam[k] != 0.0 and problem.beta[k] > 0.0:
            total += max(problem.beta[k] * fabs(state.lam[k]) + (1.0 - t) * state.lam[k] * state.gradient[k], 0.0)
    return total


cdef double duality_gap(const problem_t* problem, state_t* state, double t) noexcept nogil:
    """The gap at the current weights for p_t, from slope, lift and gradient as form_tilt and price left them.

    Infinite where a term overflows: there is no bound.
    """
    cdef double gap = slack(problem, state, t) + mixed_divergence(problem, state, t)
    return gap if gap == gap else INFINITY


cdef bint certify(const problem_t* problem, state_t* state, dual_t* dual) noexcept nogil:
    """gradient and dual_gap at the current weights, p tilted for the free coordinates; false if the owner said stop."""
    cdef bint tilted
    memset(dual.tilt, 0, problem.n_blocks * problem.n_coords * sizeof(double))
    tilted = meet_free(problem, state, dual)
    price(problem, state)
    if state.stopped:
        return False
    state.mixing = largest_mixing(problem, state) if tilted else 1.0
    state.dual_gap = duality_gap(problem, state, state.mixing)
    return True


cdef double list_violators(const problem_t* problem, state_t* state, dual_t* dual, double limit) noexcept nogil:
    """The coordinates whose interval p misses, and weights that it leaves much slack.

    Returns about what a step on each would gain; more than the limit if there is no point in listing the rest.
    """
    cdef ptr_t n_all = problem.n_blocks * problem.n_coords, k, n_weights = 1
    cdef double pull, loose, gain = 0.0
    cdef pair_t moments
    for k in range(n_all):
        n_weights += state.lam[k] != 0.0
    dual.n_violators = 0
    for k in range(n_all):
        if not 0.0 < problem.beta[k] < INFINITY:
            continue
        loose = problem.beta[k] * fabs(state.lam[k]) + state.lam[k] * state.gradient[k]
        if fabs(state.gradient[k]) > problem.beta[k] or loose > 0.2 * limit / n_weights:
            moments = coordinate_moments(problem, state, k // problem.n_coords, k % problem.n_coords)
            pull = violation(state.gradient[k], problem.beta[k], state.lam[k])
            gain += 0.5 * pull * pull / moments.second if moments.second > 0.0 else INFINITY
            if gain > limit:
                break
            dual.violators[dual.n_violators] = k
            dual.curvature[dual.n_violators] = moments.second
            dual.mean[dual.n_violators] = moments.first
            dual.n_violators += 1
    return gain


cdef inline double push(const problem_t* problem, state_t* state, dual_t* dual, ptr_t v, double lifted) noexcept nogil:
    """Tilt along one violator as far as the model of a Newton step would have its weight go, and the flow with it.

    Under one Z all cells were lifted by so much since the flow was taken; returns by how much more they are.
    """
    cdef ptr_t k = dual.violators[v]
    cdef column_t column = walk(problem, state, k % problem.n_coords)
    cdef double mu
    if not dual.curvature[v] > 0.0:
        return 0.0
    mu = minimise_quadratic(column_dot(column, state.flow) - lifted * dual.mean[v] - problem.emp_mean[k],
                            dual.curvature[v], problem.beta[k], state.lam[k] + dual.tilt[k])
    if mu == 0.0:
        return 0.0
    dual.tilt[k] += mu
    column_push(column, mu, dual.bend, state.flow)
    return mu * dual.mean[v] if problem.pooled else 0.0


cdef void lift_rows(const problem_t* problem, state_t* state, const dual_t* dual, ptr_t c) noexcept nogil:
    """lift, where each example has its own Z, from how the flow of block c has changed."""
    cdef ptr_t m = problem.X.n_rows, i
    cdef double q, flow
    for i in range(m):
        if dual.bend[i] > 0.0:
            q = state.weight[c * m + i] * state.inv_z[i]
            flow = problem.mass[i] * q * (1.0 + tilt_at(problem, state, c, i))
            state.lift[i] += (state.flow[i] - flow) * q / dual.bend[i]


cdef void push_violators(const problem_t* problem, state_t* state, dual_t* dual) noexcept nogil:
    """Tilt along each violator in turn, block by block, twice over. Slope and lift are left to form_tilt."""
    cdef ptr_t v, c, first = 0, end
    cdef double lifted
    cdef int _sweep
    while first < dual.n_violators:
        c = dual.violators[first] // problem.n_coords
        end = first
        while end < dual.n_violators and dual.violators[end] // problem.n_coords == c:
            end += 1
        cell_curvature(problem, state, c, c, dual.bend)
        tilted_flow(problem, state, c, 1.0)
        lifted = 0.0
        for _sweep in range(2):
            for v in range(first, end):
                lifted += push(problem, state, dual, v, lifted)
        if problem.pooled:
            state.lift[0] += lifted
        elif problem.n_blocks > 1:
            lift_rows(problem, state, dual, c)
        first = end


cdef bint tighten(const problem_t* problem, state_t* state, dual_t* dual, double target) noexcept nogil:
    """After certify: a gap of at most the target if a p gives it that is tilted along what it violates; else prices
    and gap as they were. False if the owner said stop."""
    cdef double last = INFINITY
    if state.mixing > 0.3 * dual.failed or list_violators(problem, state, dual, 0.2 * target) > 0.2 * target:
        return True
    dual.failed = state.mixing
    while state.mixing < 0.5 * last and not state.stopped:
        last = state.mixing
        push_violators(problem, state, dual)
        if not meet_free(problem, state, dual):
            break
        price(problem, state)
        state.mixing = largest_mixing(problem, state)
        state.dual_gap = duality_gap(problem, state, state.mixing)
        if state.dual_gap <= target:
            return not state.stopped
        if duality_gap(problem, state, 0.0) > 0.7 * target:
            break
        list_violators(problem, state, dual, target)
    return certify(problem, state, dual)
