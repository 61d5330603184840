"""Closed-form sweeps over a working set, and Newton steps on it.

A Newton step forms the Hessian on the working set, minimises the quadratic model plus penalty, and follows the result
with a monotone line search. One Hessian serves several steps.
"""
from libc.math cimport INFINITY, exp, expm1, fabs, log, log1p

from sl1max._core._conjugate cimport direction_scores
from sl1max._core._hessian cimport count_entries, form_hessian, form_slope, release_entries
from sl1max._core._normalizer cimport (
    apply_step, coordinate_moments, interrupted, normalise_cells, refresh_weights,
)
from sl1max._core._order cimport shuffle, start_order
from sl1max._core._quadratic_model cimport (
    minimise_model, quadratic_t, release_factor, release_model, reserve_active, reserve_vectors,
)
from sl1max._core._penalty cimport (
    get_penalty, is_smooth, l1, limit_weight, linear_change_at, needed_mixing_at, penalty_change_at, penalty_t,
    slackness_at,
)
from sl1max._core._step cimport concordant_step, paper_step, step_t
from sl1max._core._types cimport options_t, pair_t, problem_t, ptr_t, state_t
from sl1max._core._working_set cimport keep_worst, working_set_t


cdef void release_newton(newton_t* newton) noexcept nogil:
    release_entries(&newton.entries)
    release_model(&newton.model)
    release_factor(&newton.factor)


cdef inline step_t best_step(const problem_t* problem, ptr_t k, ptr_t j, pair_t moments, penalty_t penalty,
                             double lam) noexcept nogil:
    if problem.exact_bound and j < problem.X.n_cols:
        return paper_step(problem.emp_mean[k], moments.first, penalty, lam)
    return concordant_step(problem.emp_mean[k], moments.first, moments.second, problem.reach[j], penalty, lam)


cdef void sweep(const problem_t* problem, state_t* state, working_set_t* working, int n_times) noexcept nogil:
    """Closed-form steps on every coordinate of the working set, n_times; the scores are not updated."""
    cdef ptr_t k, c, j, place
    cdef int _time
    cdef pair_t moments
    cdef step_t step
    if problem.reference > 0.0:
        normalise_cells(problem, state)
    start_order(working.order, working.size)
    for _time in range(n_times):
        shuffle(working.order, working.size, &working.seed)
        for place in range(working.size):
            k = working.coords[working.order[place]]
            c = k // problem.n_coords
            j = k % problem.n_coords
            moments = coordinate_moments(problem, state, c, j)
            if problem.general:
                step = best_step(problem, k, j, moments, get_penalty(problem, k), state.lam[k])
            else:
                step = best_step(problem, k, j, moments, l1(problem.beta[k]), state.lam[k])
            if step.delta != 0.0:
                apply_step(problem, state, c, j, step.delta)
                state.lam[k] = limit_weight(problem, k, state.lam[k])
            if interrupted(state):
                return


cdef inline double log_ratio(double added, double total, double inv_z) noexcept nogil:
    """ln(total / z), where total = z + added: from the difference unless most of z is gone; infinite if all is."""
    if not 0.0 < total * inv_z < INFINITY:
        return INFINITY
    return log1p(added * inv_z) if added * inv_z > -0.5 else log(total * inv_z)


cdef double log_z_change(const problem_t* problem, const state_t* state, newton_t* newton,
                         double length) noexcept nogil:
    """Change of sum_g w_g ln Z_g when the scores move by length * direction_score."""
    # pooled: log((weight * exp(length * direction_score)).sum() / z); else the weighted sum of it over the examples
    cdef ptr_t m = problem.X.n_rows, c, i, cell
    cdef double change = 0.0, added = 0.0, total = 0.0, growth, weight
    if not problem.pooled:
        for i in range(m):
            newton.z_growth[i] = 0.0
            newton.z_moved[i] = problem.reference * exp(-state.shift[i]) if problem.reference > 0.0 else 0.0
    for c in range(problem.n_blocks):
        for i in range(m):
            cell = c * m + i
            weight = state.weight[cell]
            growth = length * state.direction_score[cell]
            if growth == 0.0:
                total = 1.0
            elif growth > -1.0:
                growth = expm1(growth)
                total = 1.0 + growth
            else:
                total = exp(growth)
                growth = total - 1.0
            if problem.pooled:
                added += weight * growth
                change += weight * total
            else:
                newton.z_growth[i] += weight * growth
                newton.z_moved[i] += weight * total
    if problem.pooled:
        return log_ratio(added, change, state.inv_z[0])
    for i in range(m):
        if newton.z_growth[i] != 0.0:
            change += problem.mass[i] * log_ratio(newton.z_growth[i], newton.z_moved[i], state.inv_z[i])
    return change


cdef double objective_change(const problem_t* problem, const state_t* state, const working_set_t* working,
                             newton_t* newton, double length) noexcept nogil:
    """objective(lam + length * step) - objective(lam), as a sum of changes: no two objectives are subtracted."""
    cdef ptr_t pos, k
    cdef double delta, change = log_z_change(problem, state, newton, length)
    for pos in range(working.size):
        k = working.coords[pos]
        delta = length * newton.model.step[pos]
        change += penalty_change_at(problem, k, state.lam[k], delta) - delta * problem.emp_mean[k]
    return change


cdef bint within_limits(const problem_t* problem, const state_t* state, const working_set_t* working,
                        const double* step, double length) noexcept nogil:
    """Whether no weight is beyond a limit after a step of this length. A length of 1 is within."""
    cdef ptr_t pos, k
    if problem.low != NULL:
        for pos in range(working.size):
            k = working.coords[pos]
            if not problem.low[k] <= state.lam[k] + length * step[pos] <= problem.high[k]:
                return False
    return True


cdef double search_line(const problem_t* problem, const state_t* state, const working_set_t* working,
                        newton_t* newton) noexcept nogil:
    """Longest of 1, 1/2, 1/4, ... with enough of the decrease that the model promises; 0 if none has it.

    Where the whole step gains more than the model's quadratic term allows, the loss decreases like an exponential, as
    it does for nearly separable data: then lengths 2, 4, ... are tried as long as they improve.
    """
    cdef ptr_t pos, k
    cdef double promised = 0.0, length = 1.0, rounding = 2e-15 * fabs(state.objective_zero), change, further
    for pos in range(working.size):
        k = working.coords[pos]
        promised += (newton.model.slope[pos] * newton.model.step[pos]
                     + linear_change_at(problem, k, state.lam[k], newton.model.step[pos]))
    if not promised < 0.0:
        return 0.0
    change = objective_change(problem, state, working, newton, length)
    while (length < 1024.0 and change < 0.55 * promised and promised < -rounding
           and within_limits(problem, state, working, newton.model.step, 2.0 * length)):
        further = objective_change(problem, state, working, newton, 2.0 * length)
        if not further < change:
            return length
        length *= 2.0
        change = further
    while length > 1e-8:
        if change <= 1e-2 * length * promised + rounding:
            return length
        length *= 0.5
        change = objective_change(problem, state, working, newton, length)
    return 0.0


cdef void take_step(const problem_t* problem, state_t* state, const working_set_t* working, const double* step,
                    double length) noexcept nogil:
    cdef ptr_t pos, k, cell
    for cell in range(problem.n_blocks * problem.X.n_rows):
        state.score[cell] += length * state.direction_score[cell]
    for pos in range(working.size):
        k = working.coords[pos]
        state.lam[k] = limit_weight(problem, k, state.lam[k] + length * step[pos])
    state.counters.updates += working.size
    refresh_weights(problem, state)


cdef double estimate_gap(const problem_t* problem, const state_t* state, const working_set_t* working,
                         const double* slope) noexcept nogil:
    """About the duality gap if these coordinates were all there are: cheap, first order, no certificate."""
    cdef ptr_t pos, k
    cdef double t = 0.0, slack = 0.0, gradient
    for pos in range(working.size):
        k = working.coords[pos]
        if not is_smooth(problem, k):
            gradient = slope[pos] - (problem.l2[k] * state.lam[k] if problem.l2 != NULL else 0.0)
            t = max(t, needed_mixing_at(problem, k, gradient))
            slack += slackness_at(problem, k, state.lam[k], -gradient)
    return slack + t * fabs(state.objective_zero)


cdef void add_l2_to_slope(const problem_t* problem, const state_t* state, const working_set_t* working,
                          quadratic_t* model) noexcept nogil:
    cdef ptr_t pos
    if problem.l2 != NULL:
        for pos in range(working.size):
            model.slope[pos] += problem.l2[working.coords[pos]] * state.lam[working.coords[pos]]


cdef void add_l2_to_hessian(const problem_t* problem, const working_set_t* working, quadratic_t* model) noexcept nogil:
    cdef ptr_t pos
    if problem.l2 != NULL:
        for pos in range(working.size):
            model.diagonal[pos] += problem.l2[working.coords[pos]]
            if model.exact != NULL:
                model.exact[pos * (model.size + 1)] += problem.l2[working.coords[pos]]
            else:
                model.single[pos * (model.size + 1)] += <float> problem.l2[working.coords[pos]]


cdef int newton_steps(const problem_t* problem, state_t* state, const options_t* options, working_set_t* working,
                      newton_t* newton, double target, double precision) noexcept nogil:
    """Newton steps on the working set with one Hessian: returns their number, or -1 if out of memory.

    The Hessian is that of the first step. The steps end when it no longer fits: when a step gains little. The scores
    must be exact on entry, and are on exit.
    """
    cdef bint coupled = not problem.pooled and problem.n_blocks > 1
    cdef quadratic_t* model = &newton.model
    cdef int n_steps
    cdef double length, gap = INFINITY, last
    if working.size == 0:
        return 0
    if working.size > options.max_hessian_size:
        keep_worst(problem, state, working, options.max_hessian_size)
    if not (reserve_vectors(model, working.size) and reserve_active(&newton.factor, working.size)):
        return -1
    if count_entries(problem, working) <= options.few_entries:
        target, precision = 0.0, options.exact_precision
    if not form_hessian(problem, state, options, working, &newton.entries, model, coupled, precision):
        return -1
    add_l2_to_slope(problem, state, working, model)
    add_l2_to_hessian(problem, working, model)
    newton.factor.n_factored = 0
    for n_steps in range(options.max_hessian_steps):
        if state.stopped:
            break
        minimise_model(problem, state, options, working, model, &newton.factor, precision)
        direction_scores(problem, state, working.size, working.coords, model.step)
        length = search_line(problem, state, working, newton)
        if length == 0.0:
            return n_steps
        take_step(problem, state, working, model.step, length)
        form_slope(problem, state, working, model)
        add_l2_to_slope(problem, state, working, model)
        last = gap
        gap = estimate_gap(problem, state, working, model.slope)
        if gap <= target or gap > 0.3 * last:
            return n_steps + 1
    return options.max_hessian_steps
