"""The working set: which coordinates, the room for their Newton system, and how they are chosen."""
from libc.math cimport INFINITY
from libc.stdint cimport INT32_MAX
from libc.stdlib cimport free as c_free, malloc

from sl1max._core._step cimport violation
from sl1max._core._types cimport idx_t, problem_t, ptr_t, state_t


cdef bint grow(void** buffer, ptr_t n_bytes) noexcept nogil:
    """More room, what was in it is lost."""
    c_free(buffer[0])
    buffer[0] = malloc(n_bytes)
    return buffer[0] != NULL


cdef bint reserve_marks(workset_t* work, ptr_t n_entries) noexcept nogil:
    if n_entries > INT32_MAX:       # rows count their entries in idx_t
        return False
    if n_entries > work.mark_capacity:
        work.mark_capacity = 0
        if not grow(<void**> &work.kept, n_entries):
            return False
        work.mark_capacity = n_entries
    return True


cdef bint reserve_entries(workset_t* work, ptr_t n_entries, bint valued, bint coupled) noexcept nogil:
    """Room for entries that are kept; whether they have values, and couple blocks, is the same every time."""
    if n_entries > work.entry_capacity:
        work.entry_capacity = 0
        if not (grow(<void**> &work.entry_slot, n_entries * sizeof(idx_t))
                and (not valued or grow(<void**> &work.entry_value, n_entries * sizeof(double)))
                and (not coupled or grow(<void**> &work.entry_prob, n_entries * sizeof(double)))):
            return False
        work.entry_capacity = n_entries
    return True


cdef bint reserve_vectors(workset_t* work, ptr_t n_slots) noexcept nogil:
    if n_slots > work.vector_capacity:
        work.vector_capacity = 0
        if not (grow(<void**> &work.active, n_slots * sizeof(idx_t))
                and grow(<void**> &work.listed, n_slots * sizeof(bint))
                and grow(<void**> &work.slope, n_slots * sizeof(double))
                and grow(<void**> &work.step, n_slots * sizeof(double))
                and grow(<void**> &work.product, n_slots * sizeof(double))
                and grow(<void**> &work.all, n_slots * sizeof(double))
                and grow(<void**> &work.part, n_slots * sizeof(double))
                and grow(<void**> &work.scale, n_slots * sizeof(double))
                and grow(<void**> &work.face_slope, n_slots * sizeof(double))
                and grow(<void**> &work.face_step, n_slots * sizeof(double))
                and grow(<void**> &work.face_direction, n_slots * sizeof(double))
                and grow(<void**> &work.face_pivot, n_slots * sizeof(double))):
            return False
        work.vector_capacity = n_slots
    return True


cdef bint reserve_hessian(workset_t* work, ptr_t n_slots, bint dense) noexcept nogil:
    if n_slots > work.hessian_capacity:
        work.hessian_capacity = 0
        if not (grow(<void**> &work.exact, n_slots * n_slots * sizeof(double)) if dense
                else grow(<void**> &work.hessian, n_slots * n_slots * sizeof(float))):
            return False
        work.hessian_capacity = n_slots
    return True


cdef bint reserve_face(workset_t* work, ptr_t n_slots) noexcept nogil:
    """Room for a Cholesky factor of the active slots; false if they are too many, or memory ran out."""
    cdef ptr_t n_entries = min(n_slots, MAX_FACTOR) * n_slots
    if work.n_active > MAX_FACTOR:
        return False
    if n_entries > work.face_capacity:
        work.face_capacity = 0
        if not grow(<void**> &work.face, n_entries * sizeof(double)):
            return False
        work.face_capacity = n_entries
    return True


cdef void release(workset_t* work) noexcept nogil:
    c_free(work.kept)
    c_free(work.entry_slot)
    c_free(work.entry_value)
    c_free(work.entry_prob)
    c_free(work.hessian)
    c_free(work.exact)
    c_free(work.face)
    c_free(work.active)
    c_free(work.listed)
    c_free(work.slope)
    c_free(work.step)
    c_free(work.product)
    c_free(work.all)
    c_free(work.part)
    c_free(work.scale)
    c_free(work.face_slope)
    c_free(work.face_step)
    c_free(work.face_direction)
    c_free(work.face_pivot)


cdef double kth_largest(double* values, ptr_t size, ptr_t k) noexcept nogil:
    """The k-th largest of values (from 0), which are left in another order: Hoare's quickselect."""
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


cdef inline double urgency(const problem_t* problem, const state_t* state, ptr_t k) noexcept nogil:
    """What a step on a coordinate outside the support may gain: violation^2 over a bound of its curvature."""
    cdef double v = violation(state.gradient[k], problem.beta[k], state.lam[k])
    if v > 0.0:
        v /= problem.rms[k % problem.n_coords]
    return v * v


cdef double select_working_set(const problem_t* problem, const state_t* state, workset_t* work) noexcept nogil:
    """The support, the free coordinates, and the worst violators: twice as many, and a hundred at least.

    Returns how many violate, against the support: far from the optimum while it is near one.
    """
    cdef ptr_t place, k, n_support = 0, n_violators = 0, n_kept = 0, room
    cdef double urgent, threshold = 0.0
    work.size = 0
    for place in range(problem.live_start[problem.n_blocks]):
        k = problem.live[place]
        if state.lam[k] != 0.0 or problem.beta[k] == 0.0:
            n_support += 1
            urgent = INFINITY
        else:
            urgent = urgency(problem, state, k)
            if not urgent > 0.0:
                continue
            work.ranked[n_violators] = urgent
            n_violators += 1
        work.coords[work.size] = k
        work.priority[work.size] = urgent
        work.size += 1
    room = max(2 * n_support, MIN_ROOM + problem.n_blocks)
    if n_violators > room:
        threshold = kth_largest(work.ranked, n_violators, room - 1)
    for place in range(work.size):
        if work.priority[place] >= threshold:
            work.coords[n_kept] = work.coords[place]
            n_kept += 1
    work.size = n_kept
    return n_violators / (1.0 + n_support)
