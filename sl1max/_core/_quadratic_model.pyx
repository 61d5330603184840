"""The quadratic model of the objective on a working set, and its minimum.

    minimise over d:   slope @ d  +  d @ hessian @ d / 2  +  sum_k beta_k |lam_k + d_k|

within the limits of the weights; l2 penalties are in slope and hessian, and a positive weight may cost another beta
than a negative one.
Coordinate descent: one sweep costs K^2 flops, not a pass over the data. Where sweeps converge slowly, a Cholesky factor
of the Hessian on the active set (the nonzero and the unpenalised weights, if they are at no limit) gives Newton's step
for the model.
"""
from libc.math cimport INFINITY, fabs
from libc.stdlib cimport free
from libc.string cimport memset

from sl1max._core._dense cimport dot, factorise, substitute
from sl1max._core._memory cimport replace_buffer
from sl1max._core._normalizer cimport interrupted
from sl1max._core._order cimport shuffle, start_order
from sl1max._core._penalty cimport is_between_limits, is_free, is_smooth, linear_change_at, minimise_model_at
from sl1max._core._types cimport idx_t, options_t, problem_t, ptr_t, state_t
from sl1max._core._working_set cimport working_set_t


cdef bint reserve_vectors(quadratic_t* model, ptr_t size) noexcept nogil:
    cdef ptr_t n_bytes = size * sizeof(double)
    if size > model.vector_capacity:
        model.vector_capacity = 0
        if not (replace_buffer(<void**> &model.slope, n_bytes)
                and replace_buffer(<void**> &model.diagonal, n_bytes)
                and replace_buffer(<void**> &model.step, n_bytes)
                and replace_buffer(<void**> &model.product, n_bytes)):
            return False
        model.vector_capacity = size
    return True


cdef bint reserve_matrix(quadratic_t* model, ptr_t size, bint dense) noexcept nogil:
    if size > model.matrix_capacity:
        model.matrix_capacity = 0
        if not (replace_buffer(<void**> &model.exact, size * size * sizeof(double)) if dense
                else replace_buffer(<void**> &model.single, size * size * sizeof(float))):
            return False
        model.matrix_capacity = size
    return True


cdef bint reserve_active(factor_t* factor, ptr_t size) noexcept nogil:
    """Room for lists of the active set of a model of this size; see also reserve_factor."""
    cdef ptr_t n_bytes = size * sizeof(double)
    if size > factor.vector_capacity:
        factor.vector_capacity = 0
        if not (replace_buffer(<void**> &factor.active, size * sizeof(idx_t))
                and replace_buffer(<void**> &factor.is_listed, size * sizeof(bint))
                and replace_buffer(<void**> &factor.slope, n_bytes)
                and replace_buffer(<void**> &factor.step, n_bytes)
                and replace_buffer(<void**> &factor.shortened, n_bytes)
                and replace_buffer(<void**> &factor.pivot, n_bytes)):
            return False
        factor.vector_capacity = size
    return True


cdef bint reserve_factor(factor_t* factor, ptr_t size, ptr_t max_size) noexcept nogil:
    """Room for a factor of the active set, listed already; false if it is too large or there is no memory."""
    cdef ptr_t n_entries = min(size, max_size) * size
    if factor.n_active > max_size:
        return False
    if n_entries > factor.matrix_capacity:
        factor.matrix_capacity = 0
        if not replace_buffer(<void**> &factor.matrix, n_entries * sizeof(double)):
            return False
        factor.matrix_capacity = n_entries
    return True


cdef void release_model(quadratic_t* model) noexcept nogil:
    free(model.single)
    free(model.exact)
    free(model.slope)
    free(model.diagonal)
    free(model.step)
    free(model.product)


cdef void release_factor(factor_t* factor) noexcept nogil:
    free(factor.matrix)
    free(factor.active)
    free(factor.is_listed)
    free(factor.slope)
    free(factor.step)
    free(factor.shortened)
    free(factor.pivot)


cdef double sweep_model(const problem_t* problem, state_t* state, working_set_t* working, quadratic_t* model,
                        double least) noexcept nogil:
    """Minimise the model over each weight in turn; returns the decrease.

    Weights that would gain less than `least` are skipped: to find out costs nothing, a step costs a row of the Hessian.
    """
    cdef ptr_t pos, k, place
    cdef double curvature, delta, lam, gain, decrease = 0.0
    shuffle(working.order, model.size, &working.seed)
    for place in range(model.size):
        pos = working.order[place]
        curvature = hessian_at(model, pos, pos)
        if curvature <= 0.0:
            continue
        k = working.coords[pos]
        lam = state.lam[k] + model.step[pos]
        delta = minimise_model_at(problem, k, model.slope[pos] + model.product[pos], curvature, lam)
        if delta == 0.0:
            continue
        gain = -(delta * (model.slope[pos] + model.product[pos] + 0.5 * delta * curvature)
                 + linear_change_at(problem, k, lam, delta))
        if gain >= least:
            decrease += gain
            change_step(model, pos, delta)
            state.counters.nonzeros += model.size
    return decrease


cdef bint is_active(const problem_t* problem, const state_t* state, const working_set_t* working,
                    const quadratic_t* model, ptr_t pos) noexcept nogil:
    """Whether the penalty is smooth at the weight: it is nonzero, or unpenalised, and at no limit."""
    cdef ptr_t k = working.coords[pos]
    cdef double lam = state.lam[k] + model.step[pos]
    return hessian_at(model, pos, pos) > 0.0 and (lam != 0.0 or is_smooth(problem, k)) and is_between_limits(
        problem, k, lam)


cdef void list_active(const problem_t* problem, const state_t* state, const working_set_t* working,
                      const quadratic_t* model, factor_t* factor) noexcept nogil:
    """List the active set, small weights last: rows of the factor before one that leaves the set stay valid."""
    cdef ptr_t pos, rank
    cdef double total = 0.0, n_weights = 1.0, lam
    for pos in range(model.size):
        lam = fabs(state.lam[working.coords[pos]])
        total += lam
        n_weights += lam > 0.0
        factor.is_listed[pos] = False
    factor.n_active = 0
    factor.n_factored = 0
    for rank in range(3):
        for pos in range(model.size):
            lam = fabs(state.lam[working.coords[pos]])
            if rank == (0 if lam > 0.3 * total / n_weights else 1 if lam > 0.0 else 2):
                if is_active(problem, state, working, model, pos):
                    factor.active[factor.n_active] = <idx_t> pos
                    factor.is_listed[pos] = True
                    factor.n_active += 1


cdef void update_active(const problem_t* problem, const state_t* state, const working_set_t* working,
                        const quadratic_t* model, factor_t* factor) noexcept nogil:
    """Remove weights that are no longer active from the list, and append those that have become active."""
    cdef ptr_t a, pos, n_kept = 0
    for a in range(factor.n_active):
        pos = factor.active[a]
        if is_active(problem, state, working, model, pos):
            factor.active[n_kept] = <idx_t> pos
            n_kept += 1
        else:
            factor.is_listed[pos] = False
            factor.n_factored = min(factor.n_factored, n_kept)
    factor.n_active = n_kept
    for pos in range(model.size):
        if not factor.is_listed[pos] and is_active(problem, state, working, model, pos):
            factor.active[factor.n_active] = <idx_t> pos
            factor.is_listed[pos] = True
            factor.n_active += 1


cdef void factor_active(const problem_t* problem, state_t* state, const working_set_t* working,
                        const quadratic_t* model, factor_t* factor) noexcept nogil:
    """Copy the Hessian's rows and columns of the active set, and factor them below the diagonal."""
    cdef ptr_t size = model.size, a, b, start = factor.n_factored, done = start - start % 2
    for a in range(factor.n_active):
        for b in range(0 if a >= done else start, factor.n_active):
            factor.matrix[a * size + b] = hessian_at(model, factor.active[a], factor.active[b])
    # Of a row that depends on those before it: a penalised weight takes a long step, until a weight reaches zero; an
    # unpenalised one stays where it is, since the others determine it.
    for a in range(done, factor.n_active):
        factor.pivot[a] = INFINITY if is_free(problem, working.coords[factor.active[a]]) else 1e-5
    factorise(factor.matrix, size, done, factor.n_active, factor.pivot)
    factor.n_factored = factor.n_active
    state.counters.nonzeros += factor.n_active * factor.n_active * ((factor.n_active - start) // 8)


cdef double shorten_step(const problem_t* problem, const state_t* state, const working_set_t* working,
                         const quadratic_t* model, factor_t* factor, double length) noexcept nogil:
    """shortened = length * step, penalised weights stopped at zero, and all at their limits.

    Returns the change of the model.
    """
    cdef ptr_t size = factor.n_active, a, k
    cdef double lam, delta, change = 0.0
    cdef double* row
    for a in range(size):
        k = working.coords[factor.active[a]]
        lam = state.lam[k] + model.step[factor.active[a]]
        delta = length * factor.step[a]
        if not is_smooth(problem, k) and (lam + delta) * lam <= 1e-14 * lam * lam:
            delta = -lam
        if problem.low != NULL:
            delta = min(max(delta, problem.low[k] - lam), problem.high[k] - lam)
        factor.shortened[a] = delta
        change += factor.slope[a] * delta       # the penalty is linear: no weight crosses zero
    # + x @ hessian @ x / 2, from the upper triangle
    for a in range(size):
        delta = factor.shortened[a]
        row = factor.matrix + a * model.size
        if delta != 0.0:
            change += delta * (0.5 * delta * row[a] + dot(row + a + 1, factor.shortened + a + 1, size - a - 1))
    return change


cdef double first_zero(const problem_t* problem, const state_t* state, const working_set_t* working,
                       const quadratic_t* model, const factor_t* factor) noexcept nogil:
    """The length at which the first penalised weight reaches zero, or a weight its limit; more than 1 if none does."""
    cdef ptr_t a, k
    cdef double lam, first = 2.0
    for a in range(factor.n_active):
        k = working.coords[factor.active[a]]
        lam = state.lam[k] + model.step[factor.active[a]]
        if not is_smooth(problem, k) and (lam + factor.step[a]) * lam < 0.0:
            first = min(first, -lam / factor.step[a])
        if problem.low != NULL and not problem.low[k] <= lam + factor.step[a] <= problem.high[k]:
            first = min(first, ((problem.high[k] if factor.step[a] > 0.0 else problem.low[k]) - lam) / factor.step[a])
    return first


cdef double minimise_active(const problem_t* problem, state_t* state, const options_t* options,
                            const working_set_t* working, quadratic_t* model, factor_t* factor) noexcept nogil:
    """Newton's step for the model on the active set, shortened where it would not decrease; returns the decrease."""
    cdef ptr_t a, pos, k
    cdef double length = 1.0, first, change, lam
    if factor.n_factored == 0:
        list_active(problem, state, working, model, factor)
    else:
        update_active(problem, state, working, model, factor)
    if not reserve_factor(factor, model.size, options.max_factor_size):
        factor.n_factored = 0
        return 0.0
    if factor.n_factored < factor.n_active:
        factor_active(problem, state, working, model, factor)
    for a in range(factor.n_active):
        pos = factor.active[a]
        k = working.coords[pos]
        lam = state.lam[k] + model.step[pos]
        factor.slope[a] = (
            model.slope[pos] + model.product[pos]
            + (problem.beta[k] if lam > 0.0 else -problem.beta_upper[k] if lam < 0.0 else 0.0))
        factor.step[a] = -factor.slope[a]
    substitute(factor.matrix, model.size, factor.n_active, factor.pivot, factor.step)
    # The whole step, weights stopped at zero; or only until the first weight reaches zero, if that is better.
    first = first_zero(problem, state, working, model, factor)
    if first < 1.0 and shorten_step(problem, state, working, model, factor, 1.0) >= shorten_step(
            problem, state, working, model, factor, first):
        length = first
    change = shorten_step(problem, state, working, model, factor, length)
    if not change < 0.0:
        return 0.0
    for a in range(factor.n_active):
        if factor.shortened[a] != 0.0:
            change_step(model, factor.active[a], factor.shortened[a])
    return -change


cdef bint may_factor(const options_t* options, const factor_t* factor, ptr_t n_factors,
                     double precision) noexcept nogil:
    """Whether one more Cholesky factor pays: one where precision is needed, several while they are small."""
    cdef double size = factor.n_active
    return precision < options.factor_precision and (n_factors == 0 or (
        n_factors <= options.max_factors and n_factors * size * size * size < options.max_factor_work))


cdef void minimise_model(const problem_t* problem, state_t* state, const options_t* options, working_set_t* working,
                         quadratic_t* model, factor_t* factor, double precision) noexcept nogil:
    """step = argmin slope @ d + d @ hessian @ d / 2 + beta @ |lam + d|; product = hessian @ step.

    Sweeps until one adds less than `precision` of the whole decrease. They are slow along directions of little
    curvature; steps on the active set are not.
    """
    cdef ptr_t size = model.size, n_sweeps = 0, n_factors = 0, max_sweeps = options.max_model_sweeps
    cdef double decrease = 0.0, gain, least, total = 0.0
    cdef bint converged
    if size > options.max_factor_size and precision < options.factor_precision:
        max_sweeps = options.max_large_model_sweeps
    memset(model.step, 0, size * sizeof(double))
    memset(model.product, 0, size * sizeof(double))
    start_order(working.order, size)
    while not interrupted(state):
        least = options.min_relative_gain * decrease / size
        decrease = sweep_model(problem, state, working, model, least)
        if decrease == 0.0 and least > 0.0:
            decrease = sweep_model(problem, state, working, model, 0.0)
        n_sweeps += 1
        total += decrease
        converged = not decrease > precision * total
        if not converged and n_sweeps < (max_sweeps if n_factors == 0 else 2):
            continue
        if ((converged and n_factors == 0 and precision > options.exact_precision)
                or not may_factor(options, factor, n_factors, precision)):
            return
        gain = minimise_active(problem, state, options, working, model, factor)
        total += gain
        if converged and not gain > precision * total:
            return
        n_factors += 1
        n_sweeps = 0
