"""The certificate: the gradient of every coordinate (pricing), and a proved duality gap.

For any distribution p that meets the paper's constraints |p[f] - p~[f]| <= beta,

    objective(lam) - entropy(p) = KL(p || q) + sum_k (beta_k |lam_k| + lam_k (p[f_k] - p~[f_k]))  >=  0,

a sum of nonnegative terms, so that nothing cancels. The p used is the model with a linear dual correction, so that the
free (unpenalised) coordinates, intercepts among them, meet their equalities, and mixed with p~ just enough to meet the
other constraints: p_t = (1 - t) q (1 + s) + t p~, where s is the score of the correction, centred under q. p~ itself,
t = 1, meets all constraints.

With a general penalty r (see _penalty.pxd) the same holds for any p, with u = p~ - p[f] and r* the conjugate of r:

    objective(lam) - min objective  <=  KL(p || q) + sum_k (r(lam_k) + r*(u_k) - lam_k u_k)

An l2 penalty or a finite limit makes r* finite outside the interval too. Then less of p~ may give a smaller gap than
what the intervals need: t is chosen to minimise it.

This gap is linear in the worst violation, whereas the objective is quadratic. Near the optimum the correction therefore
includes the violated coordinates, each with about its Newton step, and the gap is quadratic too.
"""
from libc.math cimport INFINITY, exp, fabs, sqrt
from libc.string cimport memset

from sl1max._core._column cimport column_add_weighted, column_axpy, column_dot, row_axpy
from sl1max._core._conjugate cimport centred_score, conjugate_gradients, fill_moved_mass, system_t
from sl1max._core._divergence cimport excess
from sl1max._core._normalizer cimport center_direction, coordinate_moments, fill_cell_curvature, interrupted, walk
from sl1max._core._penalty cimport (
    get_penalty, interval_mixing, is_between_limits, is_free, l1, minimise_quadratic, needed_mixing, needed_mixing_at,
    penalty_t, slackness, slackness_at, violation_at,
)
from sl1max._core._types cimport column_t, pair_t, problem_t, ptr_t, state_t


cdef extern from *:
    """
    /* An equality counts as met when its error, in root mean squares of the column, is at most this: rounding error. */
    #define SL1MAX_EQUALITY 1e-13
    """
    const double EQUALITY "SL1MAX_EQUALITY"


cdef void form_direction(const problem_t* problem, state_t* state, const dual_t* dual) noexcept nogil:
    """direction_score = X @ correction over all cells, and its mean."""
    cdef ptr_t m = problem.X.n_rows, c, j
    cdef const double* correction
    memset(state.direction_score, 0, problem.n_blocks * m * sizeof(double))
    for c in range(problem.n_blocks):
        correction = dual.correction + c * problem.n_coords
        for j in range(problem.n_coords):
            if correction[j] != 0.0:
                column_axpy(walk(problem, state, j), correction[j], state.direction_score + c * m)
    center_direction(problem, state)


cdef void list_free(const problem_t* problem, const state_t* state, dual_t* dual) noexcept nogil:
    """The free coordinates, and the weights that no penalty holds where they are: of those p has the empirical mean."""
    cdef ptr_t place, k
    cdef double lam
    dual.free.size = 0
    for place in range(dual.n_unbound):
        k = dual.unbound[place]
        lam = state.lam[k]
        if is_free(problem, k) or (is_between_limits(problem, k, lam) and (
                (problem.beta[k] == 0.0 and lam > 0.0) or (problem.beta_upper[k] == 0.0 and lam < 0.0))):
            dual.free.coords[dual.free.size] = k
            dual.free.scale[dual.free.size] = problem.rms[k % problem.n_coords] * problem.rms[k % problem.n_coords]
            dual.free.size += 1


cdef double free_residual(const problem_t* problem, state_t* state, dual_t* dual) noexcept nogil:
    """residual = p~ - p on the free coordinates, p the corrected model; returns the largest in root mean squares."""
    cdef ptr_t k, c, last = -1
    cdef double worst = 0.0
    cdef system_t* free = &dual.free
    for k in range(free.size):
        c = free.coords[k] // problem.n_coords
        if c != last:
            fill_moved_mass(problem, state, c, 1.0)
            last = c
        free.residual[k] = problem.emp_mean[free.coords[k]] - column_dot(
            walk(problem, state, free.coords[k] % problem.n_coords), state.cell_mass)
        worst = max(worst, fabs(free.residual[k]) / sqrt(free.scale[k]))
    return worst


cdef bint is_distribution(const problem_t* problem, const state_t* state) noexcept nogil:
    """Whether the corrected model has no negative probability."""
    cdef ptr_t m = problem.X.n_rows, c, i
    for c in range(problem.n_blocks):
        for i in range(m):
            if not centred_score(problem, state, c, i) >= -1.0:
                return False
    if problem.reference > 0.0:
        for i in range(m):
            if not state.direction_mean[i] <= 1.0:
                return False
    return True


cdef bint meet_free(const problem_t* problem, state_t* state, dual_t* dual) noexcept nogil:
    """Extend the correction so that each free coordinate has its empirical mean; forms its scores and their mean.

    Returns false, with a correction of zero, if none is found or if it would give negative probabilities: too far from
    the optimum yet.
    """
    cdef ptr_t _attempt, k
    cdef double worst
    cdef system_t* free = &dual.free
    form_direction(problem, state, dual)
    worst = free_residual(problem, state, dual)
    for _attempt in range(3):
        if worst <= EQUALITY:
            break
        memset(free.solution, 0, free.size * sizeof(double))
        conjugate_gradients(problem, state, free, 2 * free.size + 10, 0.1 * EQUALITY / worst)
        for k in range(free.size):
            dual.correction[free.coords[k]] += free.solution[k]
        form_direction(problem, state, dual)
        worst = free_residual(problem, state, dual)
    if worst <= EQUALITY and is_distribution(problem, state):
        return True
    memset(dual.correction, 0, problem.n_blocks * problem.n_coords * sizeof(double))
    form_direction(problem, state, dual)
    return False


cdef inline double most_frequent(const double* values, ptr_t size) noexcept nogil:
    """The value of more than half of the elements; if there is none, one of the values (Boyer-Moore vote)."""
    cdef ptr_t i, lead = 0
    cdef double chosen = 0.0
    for i in range(size):
        if lead == 0:
            chosen = values[i]
        lead += 1 if values[i] == chosen else -1
    return chosen


cdef void gradient_by_rows(const problem_t* problem, state_t* state, ptr_t c) noexcept nogil:
    """gradient of block c from its cell_mass: as if all rows had the most frequent mass, corrected for the others.

    Rows without a feature of nonzero weight have equal mass. For a rare class these are most rows. Otherwise it is
    still cheaper to write to the gradient, which fits into a cache, than to read masses, which do not.
    """
    cdef ptr_t i, j, n_walked = 0
    cdef double common = most_frequent(state.cell_mass, problem.X.n_rows), rest = 0.0
    cdef double* gradient = state.gradient + c * problem.n_coords
    for j in range(problem.n_coords):
        gradient[j] = common * problem.X.total[j] - problem.emp_mean[c * problem.n_coords + j]
    for i in range(problem.X.n_rows):
        if state.cell_mass[i] != common:
            n_walked += row_axpy(&problem.X, i, state.cell_mass[i] - common, gradient)
            rest += state.cell_mass[i] - common
    gradient[problem.X.n_cols] += rest
    state.counters.nonzeros += n_walked


cdef void gradient_by_columns(const problem_t* problem, state_t* state, ptr_t c) noexcept nogil:
    cdef ptr_t place, k
    for place in range(problem.included_start[c], problem.included_start[c + 1]):
        k = problem.included[place]
        state.gradient[k] = (column_dot(walk(problem, state, k - c * problem.n_coords), state.cell_mass)
                             - problem.emp_mean[k])


cdef void price(const problem_t* problem, state_t* state) noexcept nogil:
    """Pricing: gradient = p[f] - p~[f] for every coordinate that is not left out, p the corrected model."""
    cdef ptr_t c
    for c in range(problem.n_blocks):
        fill_moved_mass(problem, state, c, 1.0)
        if problem.X.row_start != NULL:
            gradient_by_rows(problem, state, c)
        else:
            gradient_by_columns(problem, state, c)
        if interrupted(state):
            return


cdef inline double cell_divergence(double q, double correction, double target, double t, double emptied) noexcept nogil:
    """KL contribution of a cell with this centred correction; emptied is excess(-t), for cells with target 0."""
    if target == 0.0 and correction == 0.0:
        return q * emptied
    if q > 0.0:
        return q * excess((1.0 - t) * correction + t * (target / q - 1.0))
    return INFINITY if t * target > 0.0 else 0.0


cdef double mixed_divergence(const problem_t* problem, state_t* state, double t) noexcept nogil:
    """KL(p_t || q), weighted over the examples where each has its own Z."""
    cdef ptr_t m = problem.X.n_rows, c, i
    cdef double total = 0.0, emptied = excess(-t), q, rest, correction
    for c in range(problem.n_blocks):
        for i in range(m):
            correction = centred_score(problem, state, c, i)
            q = state.weight[c * m + i] * state.inv_z[0 if problem.pooled else i]
            if problem.mass[i] > 0.0:
                total += ((1.0 if problem.pooled else problem.mass[i])
                          * cell_divergence(q, correction, problem.target[c * m + i], t, emptied))
    if problem.reference > 0.0:
        for i in range(m):
            rest = 1.0 - problem.target[i]
            q = problem.reference * exp(-state.shift[i]) * state.inv_z[i]
            if problem.mass[i] > 0.0:
                total += problem.mass[i] * cell_divergence(q, -state.direction_mean[i], rest, t, emptied)
    return total


cdef double largest_mixing(const problem_t* problem, const state_t* state) noexcept nogil:
    """The smallest t for which p_t meets the constraint of every penalised coordinate."""
    cdef ptr_t place, k
    cdef double t = 0.0
    for place in range(problem.included_start[problem.n_blocks]):
        k = problem.included[place]
        if fabs(state.gradient[k]) > problem.beta[k] > 0.0:
            t = max(t, needed_mixing(l1(problem.beta[k]), state.gradient[k]))
    return t


cdef pair_t general_mixing(const problem_t* problem, const state_t* state) noexcept nogil:
    """The smallest t for which the gap is finite, and the smallest for which all intervals are met."""
    cdef ptr_t place, k
    cdef pair_t t
    cdef penalty_t penalty
    t.first = t.second = 0.0
    for place in range(problem.included_start[problem.n_blocks]):
        k = problem.included[place]
        penalty = get_penalty(problem, k)
        # Equalities are met to rounding errors.
        if not is_free(problem, k) and fabs(state.gradient[k]) > EQUALITY * problem.rms[k % problem.n_coords]:
            t.first = max(t.first, needed_mixing(penalty, state.gradient[k]))
            t.second = max(t.second, interval_mixing(penalty, state.gradient[k], state.lam[k]))
    return t


cdef double slack(const problem_t* problem, const state_t* state, double t) noexcept nogil:
    """sum_k r(lam_k) + r*(u_k) - lam_k u_k, u = p~ - p_t[f]: the violation of complementary slackness."""
    cdef ptr_t place, k
    cdef double total = 0.0
    for place in range(problem.included_start[problem.n_blocks]):
        k = problem.included[place]
        if problem.general:
            if not is_free(problem, k):
                total += slackness(get_penalty(problem, k), state.lam[k], (t - 1.0) * state.gradient[k])
        elif state.lam[k] != 0.0 and problem.beta[k] > 0.0:
            total += slackness(l1(problem.beta[k]), state.lam[k], (t - 1.0) * state.gradient[k])
    return total


cdef double duality_gap(const problem_t* problem, state_t* state, double t) noexcept nogil:
    """The gap at the current weights for p_t, after form_direction and price.

    Infinite where a term overflows.
    """
    cdef double gap = slack(problem, state, t) + mixed_divergence(problem, state, t)
    return gap if gap == gap else INFINITY


cdef void choose_mixing(const problem_t* problem, state_t* state) noexcept nogil:
    """mixing and dual_gap, after form_direction and price.

    The gap is convex in t. It is evaluated at the smallest t for which it is finite, at the smallest for which all
    intervals are met, and between the two at shrinking fractions of the latter for as long as it decreases.
    """
    cdef pair_t bounds
    cdef double t, gap
    if not problem.general:
        state.mixing = largest_mixing(problem, state)
        state.dual_gap = duality_gap(problem, state, state.mixing)
        return
    bounds = general_mixing(problem, state)
    state.mixing = bounds.first
    state.dual_gap = duality_gap(problem, state, bounds.first)
    t = bounds.second
    while t > bounds.first and t > 1e-3 * bounds.second:
        gap = duality_gap(problem, state, t)
        if gap < state.dual_gap:
            state.mixing, state.dual_gap = t, gap
        elif t < bounds.second:
            return
        t *= 0.25


cdef bint certify(const problem_t* problem, state_t* state, dual_t* dual) noexcept nogil:
    """gradient and dual_gap at the current weights, p corrected for the free coordinates; false if asked to stop."""
    cdef bint is_corrected
    memset(dual.correction, 0, problem.n_blocks * problem.n_coords * sizeof(double))
    list_free(problem, state, dual)
    is_corrected = meet_free(problem, state, dual)
    price(problem, state)
    if state.stopped:
        return False
    if is_corrected:
        choose_mixing(problem, state)
    else:
        state.mixing = 1.0
        state.dual_gap = duality_gap(problem, state, 1.0)
    return True


cdef double list_violators(const problem_t* problem, state_t* state, dual_t* dual, double limit) noexcept nogil:
    """List the coordinates whose constraint p violates, and weights with much slack.

    Returns about the sum of what a step on each would gain; listing ends once it is more than the limit.
    """
    cdef ptr_t n_all = problem.n_blocks * problem.n_coords, k, n_weights = 1
    cdef double distance, gain = 0.0
    cdef pair_t moments
    for k in range(n_all):
        n_weights += state.lam[k] != 0.0
    dual.n_violators = 0
    for k in range(n_all):
        if problem.beta[k] == INFINITY or is_free(problem, k):
            continue
        if needed_mixing_at(problem, k, state.gradient[k]) > 0.0 or (
                slackness_at(problem, k, state.lam[k], -state.gradient[k]) > 0.2 * limit / n_weights):
            distance = violation_at(problem, k, state.gradient[k], state.lam[k])
            moments = coordinate_moments(problem, state, k // problem.n_coords, k % problem.n_coords)
            gain += 0.5 * distance * distance / moments.second if moments.second > 0.0 else INFINITY
            if gain > limit:
                break
            dual.violators[dual.n_violators] = k
            dual.curvature[dual.n_violators] = moments.second
            dual.mean[dual.n_violators] = moments.first
            dual.n_violators += 1
    return gain


cdef inline double correct_violator(const problem_t* problem, state_t* state, dual_t* dual, ptr_t v,
                                    double mean_change) noexcept nogil:
    """Extend the correction along one violator, by about its Newton step, and update cell_mass.

    Under one Z the mean of the direction has changed by `mean_change` since cell_mass was computed; returns by how much
    it changes now.
    """
    cdef ptr_t k = dual.violators[v]
    cdef column_t column = walk(problem, state, k % problem.n_coords)
    cdef double mu
    if not dual.curvature[v] > 0.0:
        return 0.0
    mu = minimise_quadratic(get_penalty(problem, k),
                            column_dot(column, state.cell_mass) - mean_change * dual.mean[v] - problem.emp_mean[k],
                            dual.curvature[v], state.lam[k] + dual.correction[k])
    if mu == 0.0:
        return 0.0
    dual.correction[k] += mu
    column_add_weighted(column, mu, dual.cell_curvature, state.cell_mass)
    return mu * dual.mean[v] if problem.pooled else 0.0


cdef void update_direction_mean(const problem_t* problem, state_t* state, const dual_t* dual, ptr_t c) noexcept nogil:
    """direction_mean, where each example has its own Z, from the change of cell_mass of block c."""
    cdef ptr_t m = problem.X.n_rows, i
    cdef double q, before
    for i in range(m):
        if dual.cell_curvature[i] > 0.0:
            q = state.weight[c * m + i] * state.inv_z[i]
            before = problem.mass[i] * q * (1.0 + centred_score(problem, state, c, i))
            state.direction_mean[i] += (state.cell_mass[i] - before) * q / dual.cell_curvature[i]


cdef void correct_violators(const problem_t* problem, state_t* state, dual_t* dual) noexcept nogil:
    """Extend the correction along each violator in turn, twice, block by block. form_direction has to follow."""
    cdef ptr_t v, c, first = 0, end
    cdef double mean_change
    cdef int _sweep
    while first < dual.n_violators:
        c = dual.violators[first] // problem.n_coords
        end = first
        while end < dual.n_violators and dual.violators[end] // problem.n_coords == c:
            end += 1
        fill_cell_curvature(problem, state, c, c, dual.cell_curvature)
        fill_moved_mass(problem, state, c, 1.0)
        mean_change = 0.0
        for _sweep in range(2):
            for v in range(first, end):
                mean_change += correct_violator(problem, state, dual, v, mean_change)
        if problem.pooled:
            state.direction_mean[0] += mean_change
        elif problem.n_blocks > 1:
            update_direction_mean(problem, state, dual, c)
        first = end


cdef bint tighten(const problem_t* problem, state_t* state, dual_t* dual, double target) noexcept nogil:
    """After certify: look for a gap of at most the target, with a correction along the violated coordinates.

    If there is none, gradient and gap are those of certify. Returns false if asked to stop.
    """
    cdef double last = INFINITY
    if state.mixing > 0.3 * dual.failed or list_violators(problem, state, dual, 0.2 * target) > 0.2 * target:
        return True
    dual.failed = state.mixing
    while state.mixing < 0.5 * last and not state.stopped:
        last = state.mixing
        correct_violators(problem, state, dual)
        if not meet_free(problem, state, dual):
            break
        price(problem, state)
        choose_mixing(problem, state)
        if state.dual_gap <= target:
            return not state.stopped
        if duality_gap(problem, state, 0.0) > 0.7 * target:
            break
        list_violators(problem, state, dual, target)
    return certify(problem, state, dual)
