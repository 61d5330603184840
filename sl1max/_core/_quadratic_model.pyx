"""The quadratic model of the objective on a working set, and its minimum.

A sweep costs K^2 flops, not a pass over the data. In changing orders sweeps settle soon; where they do not, a
Cholesky factor of the active part of the Hessian takes over.
"""
from libc.math cimport INFINITY, copysign, fabs
from libc.string cimport memset

from sl1max._core._dense cimport dot, factorise, substitute
from sl1max._core._hessian cimport EXACT
from sl1max._core._normalizer cimport interrupted
from sl1max._core._order cimport shuffle, start_order
from sl1max._core._step cimport minimise_quadratic, penalty_change
from sl1max._core._types cimport idx_t, problem_t, ptr_t, state_t
from sl1max._core._working_set cimport MAX_FACTOR, add_hessian_row, hessian_at, reserve_face, workset_t


cdef extern from *:
    """
    /* A slot is left out of a sweep if it would gain less than this part of what the slots gained in the last, on the
       average. */
    #define SL1MAX_WORTHWHILE 1.0
    /* Sweeps over a model before it is given to a Cholesky factor; and over one that is too large for a factor, since
       most of them move few slots and cost next to nothing beside another Hessian. */
    #define SL1MAX_MAX_MODEL_SWEEPS 100
    #define SL1MAX_MAX_LARGE_SWEEPS 500
    /* The precision from which on a factor may be made; how many small ones there may be, and what they may cost
       together. */
    #define SL1MAX_FACE_PRECISION 3e-4
    #define SL1MAX_MAX_FACES 200
    #define SL1MAX_MAX_FACE_WORK 3e7
    """
    const ptr_t MAX_MODEL_SWEEPS "SL1MAX_MAX_MODEL_SWEEPS"
    const ptr_t MAX_LARGE_SWEEPS "SL1MAX_MAX_LARGE_SWEEPS"
    const double WORTHWHILE "SL1MAX_WORTHWHILE"
    const double FACE_PRECISION "SL1MAX_FACE_PRECISION"
    const ptr_t MAX_FACES "SL1MAX_MAX_FACES"
    const double MAX_FACE_WORK "SL1MAX_MAX_FACE_WORK"


cdef double model_sweep(const problem_t* problem, state_t* state, workset_t* work, double least) noexcept nogil:
    """Minimise the model over each slot in turn, but those that would gain less than the least; returns the decrease.

    To find out costs a slot nothing, and to go there a row of the Hessian.
    """
    cdef ptr_t size = work.size, slot, k, place
    cdef double curvature, delta, lam, gain, decrease = 0.0
    shuffle(work.order, size, &work.seed)
    for place in range(size):
        slot = work.order[place]
        curvature = hessian_at(work, slot, slot)
        if curvature <= 0.0:
            continue
        k = work.coords[slot]
        lam = state.lam[k] + work.step[slot]
        delta = minimise_quadratic(work.slope[slot] + work.product[slot], curvature, problem.beta[k], lam)
        if delta == 0.0:
            continue
        gain = -(delta * (work.slope[slot] + work.product[slot] + 0.5 * delta * curvature)
                 + penalty_change(lam, delta, problem.beta[k]))
        if gain >= least:
            decrease += gain
            work.step[slot] += delta
            add_hessian_row(work, slot, delta)
            state.counters.nonzeros += size
    return decrease


cdef bint is_active(const problem_t* problem, const state_t* state, const workset_t* work, ptr_t slot) noexcept nogil:
    """Whether the slot has a weight, or none to pay for."""
    cdef ptr_t k = work.coords[slot]
    return hessian_at(work, slot, slot) > 0.0 and (
        state.lam[k] + work.step[slot] != 0.0 or problem.beta[k] == 0.0)


cdef void order_face(const problem_t* problem, const state_t* state, workset_t* work, ptr_t size) noexcept nogil:
    """List the active slots so that those which may leave come last: what stands before a leaver stays factored."""
    cdef ptr_t slot, rank
    cdef double total = 0.0, n_weights = 1.0, lam
    for slot in range(size):
        lam = fabs(state.lam[work.coords[slot]])
        total += lam
        n_weights += lam > 0.0
        work.listed[slot] = False
    work.n_active = 0
    work.n_factored = 0
    for rank in range(3):
        for slot in range(size):
            lam = fabs(state.lam[work.coords[slot]])
            if rank == (0 if lam > 0.3 * total / n_weights else 1 if lam > 0.0 else 2):
                if is_active(problem, state, work, slot):
                    work.active[work.n_active] = <idx_t> slot
                    work.listed[slot] = True
                    work.n_active += 1


cdef void update_face(const problem_t* problem, const state_t* state, workset_t* work, ptr_t size) noexcept nogil:
    """Strike the slots that are active no more from the list, and add the new ones at its end."""
    cdef ptr_t a, slot, n_kept = 0
    for a in range(work.n_active):
        slot = work.active[a]
        if is_active(problem, state, work, slot):
            work.active[n_kept] = <idx_t> slot
            n_kept += 1
        else:
            work.listed[slot] = False
            work.n_factored = min(work.n_factored, n_kept)
    work.n_active = n_kept
    for slot in range(size):
        if not work.listed[slot] and is_active(problem, state, work, slot):
            work.active[work.n_active] = <idx_t> slot
            work.listed[slot] = True
            work.n_active += 1


cdef void factor_face(const problem_t* problem, state_t* state, workset_t* work, ptr_t size) noexcept nogil:
    """The Hessian's rows and columns at the active slots: above the diagonal as they are, below it their factor."""
    cdef ptr_t a, b, start = work.n_factored, done = start - start % 2
    for a in range(work.n_active):
        for b in range(0 if a >= done else start, work.n_active):
            work.face[a * size + b] = hessian_at(work, work.active[a], work.active[b])
    # A penalised weight may go far, until one of them is zero; an intercept among intercepts has nowhere to go.
    for a in range(done, work.n_active):
        work.face_pivot[a] = 1e-5 if problem.beta[work.coords[work.active[a]]] > 0.0 else INFINITY
    factorise(work.face, size, done, work.n_active, work.face_pivot)
    work.n_factored = work.n_active
    state.counters.nonzeros += work.n_active * work.n_active * ((work.n_active - start) // 8)


cdef double move_on_face(const problem_t* problem, const state_t* state, workset_t* work, ptr_t stride,
                         double length) noexcept nogil:
    """face_direction = length * face_step, weights stopped at zero; returns the change of the model."""
    cdef ptr_t size = work.n_active, a, k
    cdef double lam, delta, change = 0.0
    cdef double* row
    for a in range(size):
        k = work.coords[work.active[a]]
        lam = state.lam[k] + work.step[work.active[a]]
        delta = length * work.face_step[a]
        if problem.beta[k] > 0.0 and (lam + delta) * lam <= 1e-14 * lam * lam:
            delta = -lam
        work.face_direction[a] = delta
        change += work.face_slope[a] * delta        # the penalty is linear: no weight crosses zero
    # + x @ face @ x / 2, from the upper triangle
    for a in range(size):
        delta = work.face_direction[a]
        row = work.face + a * stride
        if delta != 0.0:
            change += delta * (0.5 * delta * row[a] + dot(row + a + 1, work.face_direction + a + 1, size - a - 1))
    return change


cdef double first_zero(const problem_t* problem, const state_t* state, const workset_t* work) noexcept nogil:
    """The length at which face_step takes the first penalised weight to zero; more than 1 if none gets there."""
    cdef ptr_t a, k
    cdef double lam, first = 2.0
    for a in range(work.n_active):
        k = work.coords[work.active[a]]
        lam = state.lam[k] + work.step[work.active[a]]
        if problem.beta[k] > 0.0 and (lam + work.face_step[a]) * lam < 0.0:
            first = min(first, -lam / work.face_step[a])
    return first


cdef double minimise_face(const problem_t* problem, state_t* state, workset_t* work) noexcept nogil:
    """Newton's step for the model on the active slots, cut where it would not decrease it; returns the decrease."""
    cdef ptr_t size = work.size, a, slot, k
    cdef double length = 1.0, first, change, lam
    if work.n_factored == 0:
        order_face(problem, state, work, size)
    else:
        update_face(problem, state, work, size)
    if not reserve_face(work, size):
        work.n_factored = 0
        return 0.0
    if work.n_factored < work.n_active:
        factor_face(problem, state, work, size)
    for a in range(work.n_active):
        slot = work.active[a]
        k = work.coords[slot]
        lam = state.lam[k] + work.step[slot]
        work.face_slope[a] = (
            work.slope[slot] + work.product[slot] + (copysign(problem.beta[k], lam) if lam != 0.0 else 0.0))
        work.face_step[a] = -work.face_slope[a]
    substitute(work.face, size, work.n_active, work.face_pivot, work.face_step)
    # All the way, weights stopped at zero; or, where the face is flat, just until the first of them gets there.
    first = first_zero(problem, state, work)
    if first < 1.0 and move_on_face(problem, state, work, size, 1.0) >= move_on_face(
            problem, state, work, size, first):
        length = first
    change = move_on_face(problem, state, work, size, length)
    if not change < 0.0:
        return 0.0
    for a in range(work.n_active):
        if work.face_direction[a] != 0.0:
            slot = work.active[a]
            work.step[slot] += work.face_direction[a]
            add_hessian_row(work, slot, work.face_direction[a])
    return -change


cdef bint may_factor(const workset_t* work, ptr_t n_faces, double precision) noexcept nogil:
    """Whether one more Cholesky factor pays: one where precision is called for, and many while they are small."""
    cdef double size = work.n_active
    return precision < FACE_PRECISION and (
        n_faces == 0 or (n_faces <= MAX_FACES and n_faces * size * size * size < MAX_FACE_WORK))


cdef void minimise_model(const problem_t* problem, state_t* state, workset_t* work, double precision) noexcept nogil:
    """step = argmin slope @ d + d @ hessian @ d / 2 + beta @ |lam + d|; product = hessian @ step.

    Sweeps, until one adds less than precision of the whole decrease. Along directions in which the model is flat they
    creep, and do not get there; a Cholesky factor of the active slots' matrix knows no such directions.
    """
    cdef ptr_t size = work.size, n_sweeps = 0, n_faces = 0
    cdef double decrease = 0.0, gain, least, total = 0.0
    cdef bint settled, alone = size > MAX_FACTOR and precision < FACE_PRECISION
    cdef ptr_t max_sweeps = MAX_LARGE_SWEEPS if alone else MAX_MODEL_SWEEPS
    memset(work.step, 0, size * sizeof(double))
    memset(work.product, 0, size * sizeof(double))
    start_order(work.order, work.size)
    while not interrupted(state):
        least = WORTHWHILE * decrease / size
        decrease = model_sweep(problem, state, work, least)
        if decrease == 0.0 and least > 0.0:
            decrease = model_sweep(problem, state, work, 0.0)
        n_sweeps += 1
        total += decrease
        settled = not decrease > precision * total
        if not settled and n_sweeps < (max_sweeps if n_faces == 0 else 2):
            continue
        if (settled and n_faces == 0 and precision > EXACT) or not may_factor(work, n_faces, precision):
            return
        gain = minimise_face(problem, state, work)
        total += gain
        if settled and not gain > precision * total:
            return
        n_faces += 1
        n_sweeps = 0
