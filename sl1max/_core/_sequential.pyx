"""The paper's algorithm: in each step, update the coordinate of greatest guaranteed decrease.

Full pricing computes the decrease of every coordinate before each step. Partial pricing does so for a list of the best
coordinates, and for all when the best of the list falls below half of the best at the last full pricing: every step has
its guaranteed decrease, and the algorithm ends only after a full pricing. (A proof that the list still contains the
best of all, from the probability mass moved since, was tried: it rarely holds, since the first steps move far more mass
than a rare feature has.)
"""
from libc.math cimport INFINITY

from sl1max._core._column cimport column_dot
from sl1max._core._normalizer cimport apply_step, coordinate_moments, fill_cell_mass, interrupted, walk
from sl1max._core._penalty cimport get_penalty, limit_weight
from sl1max._core._step cimport paper_step, step_t
from sl1max._core._types cimport problem_t, ptr_t, state_t
from sl1max._core._working_set cimport kth_largest


cdef inline void consider(const problem_t* problem, const state_t* state, ptr_t k, double mean,
                          choice_t* best) noexcept nogil:
    """best = the better of best and coordinate k, whose model mean is given; the first of equals."""
    cdef step_t step = paper_step(problem.emp_mean[k], mean, get_penalty(problem, k), state.lam[k])
    if step.gain > best.gain:
        best.coord, best.delta, best.gain = k, step.delta, step.gain


cdef choice_t price_all(const problem_t* problem, state_t* state, prices_t* prices) noexcept nogil:
    cdef ptr_t c, j, k
    cdef choice_t best, own
    best.coord, best.delta, best.gain = -1, 0.0, 0.0
    for c in range(problem.n_blocks):
        fill_cell_mass(problem, state, c, state.cell_mass)
        for j in range(problem.n_coords):
            k = c * problem.n_coords + j
            own.coord, own.delta, own.gain = -1, 0.0, 0.0
            if problem.beta[k] < INFINITY:
                consider(problem, state, k, column_dot(walk(problem, state, j), state.cell_mass), &own)
            prices.gain[k] = own.gain
            if own.gain > best.gain:
                best = own
        if interrupted(state):
            break
    prices.best = best.gain
    return best


cdef void choose_candidates(const problem_t* problem, prices_t* prices) noexcept nogil:
    """The hundredth of the coordinates, 64 at least, with the greatest gains."""
    cdef ptr_t n_all = problem.n_blocks * problem.n_coords, k, room = min(64 + n_all // 100, n_all)
    cdef double threshold
    for k in range(n_all):
        prices.ranked[k] = prices.gain[k]
    threshold = kth_largest(prices.ranked, n_all, room - 1)
    prices.n_candidates = 0
    for k in range(n_all):
        if prices.gain[k] > 0.0 and prices.gain[k] >= threshold and prices.n_candidates < room:
            prices.candidates[prices.n_candidates] = k
            prices.n_candidates += 1


cdef choice_t best_candidate(const problem_t* problem, state_t* state, const prices_t* prices) noexcept nogil:
    cdef ptr_t place, k
    cdef choice_t best
    best.coord, best.delta, best.gain = -1, 0.0, 0.0
    for place in range(prices.n_candidates):
        k = prices.candidates[place]
        consider(problem, state, k,
                 coordinate_moments(problem, state, k // problem.n_coords, k % problem.n_coords).first, &best)
    if best.gain < 0.5 * prices.best:
        best.coord = -1
    return best


cdef choice_t sequential_step(const problem_t* problem, state_t* state, prices_t* prices, bint full) noexcept nogil:
    """Choose a coordinate and take its step; coord -1 if no step decreases the objective."""
    cdef choice_t choice
    choice.coord = -1
    if not full and prices.n_candidates > 0:
        choice = best_candidate(problem, state, prices)
    if choice.coord < 0:
        choice = price_all(problem, state, prices)
        if not full:
            choose_candidates(problem, prices)
    if choice.coord >= 0 and not state.stopped:
        apply_step(problem, state, choice.coord // problem.n_coords, choice.coord % problem.n_coords, choice.delta)
        state.lam[choice.coord] = limit_weight(problem, choice.coord, state.lam[choice.coord])
    return choice
