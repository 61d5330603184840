"""The working set: the coordinates that one round updates, and how they are chosen."""
from libc.math cimport INFINITY

from sl1max._core._normalizer cimport coordinate_moments
from sl1max._core._penalty cimport is_free, violation_at
from sl1max._core._types cimport options_t, pair_t, problem_t, ptr_t, state_t


cdef double kth_largest(double* values, ptr_t size, ptr_t k) noexcept nogil:
    """The k-th largest of the values, counted from 0. Reorders the values (Hoare's quickselect)."""
    cdef ptr_t low = 0, high = size - 1, i, j
    cdef double pivot, held
    while low < high:
        pivot = values[(low + high) // 2]
        i = low
        j = high
        while i <= j:
            while values[i] > pivot:
                i += 1
            while values[j] < pivot:
                j -= 1
            if i <= j:
                held = values[i]
                values[i] = values[j]
                values[j] = held
                i += 1
                j -= 1
        if k <= j:
            high = j
        elif k >= i:
            low = i
        else:
            break
    return values[k]


cdef double gain_bound(const problem_t* problem, const state_t* state, ptr_t k) noexcept nogil:
    """About what a step on a coordinate of weight zero can gain: violation^2 over a bound of its curvature."""
    cdef double v = violation_at(problem, k, state.gradient[k], state.lam[k])
    if v > 0.0:
        v /= problem.rms[k % problem.n_coords]
    return v * v


cdef double select_working_set(const problem_t* problem, const state_t* state, const options_t* options,
                               working_set_t* working) noexcept nogil:
    """Select the nonzero weights, the unpenalised coordinates, and the worst violators.

    The number of violators is at most twice that of the others, or `options.min_violators` and one per block if that is
    more. Returns the number of all violators over that of the others: large far from the optimum, small near it.
    """
    cdef ptr_t place, k, n_support = 0, n_violators = 0, n_kept = 0, room
    cdef double priority, threshold = 0.0
    working.size = 0
    for place in range(problem.included_start[problem.n_blocks]):
        k = problem.included[place]
        if state.lam[k] != 0.0 or is_free(problem, k):
            n_support += 1
            priority = INFINITY
        else:
            priority = gain_bound(problem, state, k)
            if not priority > 0.0:
                continue
            working.ranked[n_violators] = priority
            n_violators += 1
        working.coords[working.size] = k
        working.priority[working.size] = priority
        working.size += 1
    room = max(2 * n_support, options.min_violators + problem.n_blocks)
    if n_violators > room:
        threshold = kth_largest(working.ranked, n_violators, room - 1)
    for place in range(working.size):
        if working.priority[place] >= threshold:
            working.coords[n_kept] = working.coords[place]
            n_kept += 1
    working.size = n_kept
    return n_violators / (1.0 + n_support)


cdef void keep_worst(const problem_t* problem, state_t* state, working_set_t* working, ptr_t max_size) noexcept nogil:
    """Reduce the working set to the coordinates with the largest violation relative to their penalty's width.

    Relative to the penalty, since between nearly equal columns steps gain little long before the constraints are met.
    """
    cdef ptr_t pos, k, size = 0
    cdef double distance, width, threshold
    cdef pair_t moments
    for pos in range(working.size):
        k = working.coords[pos]
        moments = coordinate_moments(problem, state, k // problem.n_coords, k % problem.n_coords)
        distance = violation_at(problem, k, moments.first - problem.emp_mean[k], state.lam[k])
        width = 0.5 * (problem.beta[k] + problem.beta_upper[k])
        working.priority[pos] = (INFINITY if is_free(problem, k)
                                 else distance / (width if width > 0.0 else problem.rms[k % problem.n_coords]))
        working.ranked[pos] = working.priority[pos]
    threshold = kth_largest(working.ranked, working.size, max_size - 1)
    for pos in range(working.size):
        if working.priority[pos] >= threshold and size < max_size:
            working.coords[size] = working.coords[pos]
            size += 1
    working.size = size


cdef void keep_nonzero(const problem_t* problem, const state_t* state, working_set_t* working) noexcept nogil:
    """Drop penalised coordinates of weight zero: after the sweeps most of them would stay at zero, and the cost of a
    Hessian grows with the square of the size."""
    cdef ptr_t pos, k, size = 0
    for pos in range(working.size):
        k = working.coords[pos]
        if state.lam[k] != 0.0 or is_free(problem, k):
            working.coords[size] = k
            size += 1
    working.size = size
