"""The fast solver's pieces: closed-form sweeps over a working set, Newton steps on it.

A Newton step forms the working set's Hessian, minimises the quadratic model plus penalty on that matrix and goes along
the result with a monotone line search. The Hessian serves several steps.
"""
from libc.math cimport INFINITY, exp, expm1, fabs, log, log1p

from sl1max._core._certificate cimport mixing
from sl1max._core._conjugate cimport direction_slope
from sl1max._core._hessian cimport EXACT, count_entries, form_hessian, form_slope
from sl1max._core._quadratic_model cimport minimise_model
from sl1max._core._normalizer cimport (
    apply_step, coordinate_moments, interrupted, normalise_cells, refresh_weights,
)
from sl1max._core._order cimport shuffle, start_order
from sl1max._core._step cimport concordant_step, paper_step, penalty_change, step_t, violation
from sl1max._core._types cimport pair_t, problem_t, ptr_t, state_t
from sl1max._core._working_set cimport kth_largest, reserve_vectors, workset_t


cdef void sweep(const problem_t* problem, state_t* state, workset_t* work, int n_times) noexcept nogil:
    """Closed-form steps on every coordinate of the working set, so many times; leaves the scores behind."""
    cdef ptr_t k, c, j, place
    cdef int _time
    cdef pair_t moments
    cdef step_t step
    if problem.reference > 0.0:
        normalise_cells(problem, state)
    start_order(work.order, work.size)
    for _time in range(n_times):
        shuffle(work.order, work.size, &work.seed)
        for place in range(work.size):
            k = work.coords[work.order[place]]
            c = k // problem.n_coords
            j = k % problem.n_coords
            moments = coordinate_moments(problem, state, c, j)
            if problem.exact_bound and j < problem.X.n_cols:
                step = paper_step(problem.emp_mean[k], moments.first, problem.beta[k], state.lam[k])
            else:
                step = concordant_step(problem.emp_mean[k], moments.first, moments.second, problem.reach[j],
                                       problem.beta[k], state.lam[k])
            if step.delta != 0.0:
                apply_step(problem, state, c, j, step.delta)
            if interrupted(state):
                return


cdef inline double log_ratio(double added, double total, double inv_z) noexcept nogil:
    """ln(total / z), where total = z + added: from the difference unless most of z is gone; infinite if all is."""
    if not 0.0 < total * inv_z < INFINITY:
        return INFINITY
    return log1p(added * inv_z) if added * inv_z > -0.5 else log(total * inv_z)


cdef double log_z_change(const problem_t* problem, state_t* state, double length) noexcept nogil:
    """Change of sum_g w_g ln Z_g when the scores move by length * slope."""
    # pooled: log((weight * exp(length * slope)).sum() / z); else the mass-weighted sum of the same for each example
    cdef ptr_t m = problem.X.n_rows, c, i, cell
    cdef double change = 0.0, added = 0.0, total = 0.0, growth, weight
    if not problem.pooled:
        for i in range(m):
            state.flow[i] = 0.0
            state.lift[i] = problem.reference * exp(-state.shift[i]) if problem.reference > 0.0 else 0.0
    for c in range(problem.n_blocks):
        for i in range(m):
            cell = c * m + i
            weight = state.weight[cell]
            growth = length * state.slope[cell]
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
                state.flow[i] += weight * growth
                state.lift[i] += weight * total
    if problem.pooled:
        return log_ratio(added, change, state.inv_z[0])
    for i in range(m):
        if state.flow[i] != 0.0:
            change += problem.mass[i] * log_ratio(state.flow[i], state.lift[i], state.inv_z[i])
    return change


cdef double objective_change(const problem_t* problem, state_t* state, workset_t* work, double length) noexcept nogil:
    """objective(lam + length * step) - objective(lam), as a sum of changes: no two objectives are subtracted."""
    cdef ptr_t slot, k
    cdef double delta, change = log_z_change(problem, state, length)
    for slot in range(work.size):
        k = work.coords[slot]
        delta = length * work.step[slot]
        change += penalty_change(state.lam[k], delta, problem.beta[k]) - delta * problem.emp_mean[k]
    return change


cdef double search_line(const problem_t* problem, state_t* state, workset_t* work) noexcept nogil:
    """Longest of 1, 1/2, 1/4, ... that gives a fair part of the decrease the model promises; 0 if none does.

    Where the whole step gains more than the model's half of the promise, the loss falls off like an exponential, as it
    does for data that are all but separable: then twice as far, and again, while it pays.
    """
    cdef ptr_t slot, k
    cdef double promised = 0.0, length = 1.0, rounding = 2e-15 * fabs(state.objective_zero), change, further
    for slot in range(work.size):
        k = work.coords[slot]
        promised += (work.slope[slot] * work.step[slot]
                     + penalty_change(state.lam[k], work.step[slot], problem.beta[k]))
    if not promised < 0.0:
        return 0.0
    change = objective_change(problem, state, work, length)
    while length < 1024.0 and change < 0.55 * promised and promised < -rounding:
        further = objective_change(problem, state, work, 2.0 * length)
        if not further < change:
            return length
        length *= 2.0
        change = further
    while length > 1e-8:
        if change <= 1e-2 * length * promised + rounding:
            return length
        length *= 0.5
        change = objective_change(problem, state, work, length)
    return 0.0


cdef void take_step(const problem_t* problem, state_t* state, workset_t* work, double length) noexcept nogil:
    cdef ptr_t slot, cell
    for cell in range(problem.n_blocks * problem.X.n_rows):
        state.score[cell] += length * state.slope[cell]
    for slot in range(work.size):
        state.lam[work.coords[slot]] += length * work.step[slot]
    state.counters.updates += work.size
    refresh_weights(problem, state)


cdef double slots_gap(const problem_t* problem, const state_t* state, const workset_t* work) noexcept nogil:
    """About the duality gap if these coordinates were all there are: cheap, first order, no certificate."""
    cdef ptr_t slot, k
    cdef double t = 0.0, slack = 0.0
    for slot in range(work.size):
        k = work.coords[slot]
        if problem.beta[k] > 0.0:
            t = max(t, mixing(work.slope[slot], problem.beta[k]))
            slack += max(problem.beta[k] * fabs(state.lam[k]) + work.slope[slot] * state.lam[k], 0.0)
    return slack + t * fabs(state.objective_zero)


cdef void narrow(const problem_t* problem, state_t* state, workset_t* work) noexcept nogil:
    """Keep of a working set that is too large for a Hessian the coordinates that miss their interval by most of its
    width: where columns are nearly alike, steps gain little long before their constraints are met."""
    cdef ptr_t slot, k, size = 0
    cdef double pull, threshold
    cdef pair_t moments
    for slot in range(work.size):
        k = work.coords[slot]
        moments = coordinate_moments(problem, state, k // problem.n_coords, k % problem.n_coords)
        pull = violation(moments.first - problem.emp_mean[k], problem.beta[k], state.lam[k])
        work.slope[slot] = work.step[slot] = pull / problem.beta[k] if problem.beta[k] > 0.0 else INFINITY
    threshold = kth_largest(work.step, work.size, MAX_NEWTON - 1)
    for slot in range(work.size):
        if work.slope[slot] >= threshold and size < MAX_NEWTON:
            work.coords[size] = work.coords[slot]
            size += 1
    work.size = size


cdef void keep_moved(const problem_t* problem, const state_t* state, workset_t* work) noexcept nogil:
    """Leave coordinates to the next pricing that the sweeps have left at zero: most of them would stay there, and a
    Hessian costs the square of their number."""
    cdef ptr_t slot, k, size = 0
    for slot in range(work.size):
        k = work.coords[slot]
        if state.lam[k] != 0.0 or problem.beta[k] == 0.0:
            work.coords[size] = k
            size += 1
    work.size = size


cdef int newton_steps(const problem_t* problem, state_t* state, workset_t* work, double target,
                      double precision) noexcept nogil:
    """Newton steps on the working set with one Hessian: how many, or -1 if out of memory.

    The Hessian is that of the first step: where it no longer fits, a step gains little, and that is the end.
    The scores must be exact on entry, and are on exit.
    """
    cdef bint coupled = not problem.pooled and problem.n_blocks > 1
    cdef int n_steps
    cdef double length, gap = INFINITY, last
    if work.size == 0:
        return 0
    if not reserve_vectors(work, work.size):
        return -1
    if work.size > MAX_NEWTON:
        narrow(problem, state, work)
    if count_entries(problem, work) <= FEW_ENTRIES:
        target, precision = 0.0, EXACT
    if not form_hessian(problem, state, work, coupled, precision):
        return -1
    work.n_factored = 0
    for n_steps in range(MAX_STEPS):
        if state.stopped:
            break
        minimise_model(problem, state, work, precision)
        direction_slope(problem, state, work.size, work.coords, work.step)
        length = search_line(problem, state, work)
        if length == 0.0:
            return n_steps
        take_step(problem, state, work, length)
        form_slope(problem, state, work)
        last = gap
        gap = slots_gap(problem, state, work)
        if gap <= target or gap > 0.3 * last:
            return n_steps + 1
    return MAX_STEPS
