"""The fast solver's pieces: a working set, closed-form sweeps over it, Newton steps in Gram space.

A Newton step on K coordinates forms their K x K Hessian, minimises the quadratic model plus penalty on that matrix (a
sweep costs K^2 flops, not a pass over the data; every few sweeps are extrapolated, and near the end a Cholesky factor
of the active part takes over) and goes along the result with a monotone line search. The Hessian serves several steps.
With u q the flow of a block and x the column of a coordinate it is:

    one Z            sum_i q_c x_a x_b [same block]  -  W_a W_b
    one Z per row    sum_i u q_c x_a x_b ([same block] - q_d)

Rows that bend the loss little are not multiplied out but taken as if they were all alike. The intercept is one more
column, of ones, without penalty.
"""
from libc.math cimport INFINITY, copysign, exp, expm1, fabs, frexp, ldexp, log, log1p
from libc.stdlib cimport free as c_free, realloc
from libc.string cimport memcpy, memset

from sl1max._core._certificate cimport mixing
from sl1max._core._column cimport column_axpy, column_dot, get_column, row_at, value_at
from sl1max._core._dense cimport axpy, dot, dot4x2, factorise, substitute
from sl1max._core._normalizer cimport (
    apply_step, block_flow, coordinate_moments, interrupted, normalise_cells, refresh_normalizer, refresh_weights, walk,
)
from sl1max._core._step cimport (
    concordant_step, minimise_quadratic, paper_step, penalty_change, step_t, violation,
)
from sl1max._core._types cimport column_t, idx_t, pair_t, problem_t, ptr_t, state_t


cdef extern from *:
    """
    /* Coordinates in one Newton system: its matrix takes 288 MB at most. More are taken in parts, which is slow. And
       in one Cholesky factor. */
    #define SL1MAX_MAX_NEWTON 6144
    #define SL1MAX_MAX_FACTOR 2048
    /* The least number of violators that a working set takes in. */
    #define SL1MAX_MIN_ROOM 100
    /* Sweeps over a working set that has yet to find its size, and over one that has, before a Newton system; what its
       Hessian may lack; steps with one Hessian. */
    #define SL1MAX_FIRST_SWEEPS 3
    #define SL1MAX_LATER_SWEEPS 2
    #define SL1MAX_MAX_NEGLIGIBLE 0.3
    #define SL1MAX_MAX_STEPS 8
    /* Sweeps over a model before it is left, or given to a Cholesky factor; the precision from which on it is; and how
       many small factors there may be, and what they may cost together. */
    #define SL1MAX_MAX_MODEL_SWEEPS 100
    #define SL1MAX_FACE_PRECISION 3e-4
    #define SL1MAX_MAX_FACES 200
    #define SL1MAX_MAX_FACE_WORK 3e7
    /* Rows of dense columns that a Hessian takes at a time: some hundred columns of them fit into the second cache. */
    #define SL1MAX_TILE 256
    /* Sweeps between two extrapolations. */
    #define SL1MAX_DEPTH 5
    """
    const ptr_t MAX_NEWTON "SL1MAX_MAX_NEWTON"
    const ptr_t MAX_FACTOR "SL1MAX_MAX_FACTOR"
    const ptr_t MIN_ROOM "SL1MAX_MIN_ROOM"
    const int FIRST_SWEEPS "SL1MAX_FIRST_SWEEPS"
    const int LATER_SWEEPS "SL1MAX_LATER_SWEEPS"
    const double MAX_NEGLIGIBLE "SL1MAX_MAX_NEGLIGIBLE"
    const int MAX_STEPS "SL1MAX_MAX_STEPS"
    const ptr_t MAX_MODEL_SWEEPS "SL1MAX_MAX_MODEL_SWEEPS"
    const ptr_t MAX_FACES "SL1MAX_MAX_FACES"
    const double MAX_FACE_WORK "SL1MAX_MAX_FACE_WORK"
    const double FACE_PRECISION "SL1MAX_FACE_PRECISION"
    enum: TILE "SL1MAX_TILE"
    enum: DEPTH "SL1MAX_DEPTH"


cdef struct workset_t:
    ptr_t size
    ptr_t* coords               # ascending, so block by block
    double* priority            # scratch of select_working_set, one entry per coordinate of the problem
    # The rows of the working set's columns, and the Newton system; grown as needed.
    ptr_t n_entries
    ptr_t entry_capacity
    ptr_t* row_start            # (n_samples + 1,)
    ptr_t* row_end              # (n_samples,)
    unsigned char* kept         # (n_samples,) whether the row has a say in the Hessian off its diagonal
    idx_t* entry_slot
    double* entry_value
    double* entry_prob          # q_i(c) of the entry's cell; only where rows couple the blocks
    ptr_t slot_capacity
    double* hessian             # (K, K)
    ptr_t face_capacity
    double* face                # (A, A) its rows and columns at the active slots, in rows of K
    ptr_t n_active
    ptr_t n_factored            # how many of the active slots, from the first, the factor in face holds
    idx_t* active               # (A,)
    bint* listed                # (K,) whether a slot stands in active
    double* slope               # (K,) gradient of the loss
    double* step                # (K,)
    double* product             # (K,) hessian @ step
    double* history             # (DEPTH + 1, 2, K) step and product after each of the last sweeps
    double* mixed               # (2, K) step and product, extrapolated
    double* face_slope          # (A,)
    double* face_step
    double* face_direction
    double* face_pivot


cdef inline bint grow(void** buffer, ptr_t n_bytes) noexcept nogil:
    cdef void* grown = realloc(buffer[0], n_bytes)
    if grown == NULL:
        return False
    buffer[0] = grown
    return True


cdef inline bint reserve(workset_t* work, ptr_t n_slots, ptr_t n_entries, bint coupled) noexcept nogil:
    """Room for a Newton system; false if memory ran out."""
    if n_entries > work.entry_capacity:
        work.entry_capacity = 0
        if not (grow(<void**> &work.entry_slot, n_entries * sizeof(idx_t))
                and grow(<void**> &work.entry_value, n_entries * sizeof(double))
                and (not coupled or grow(<void**> &work.entry_prob, n_entries * sizeof(double)))):
            return False
        work.entry_capacity = n_entries
    if n_slots > work.slot_capacity:
        work.slot_capacity = 0
        if not (grow(<void**> &work.hessian, n_slots * n_slots * sizeof(double))
                and grow(<void**> &work.active, n_slots * sizeof(idx_t))
                and grow(<void**> &work.listed, n_slots * sizeof(bint))
                and grow(<void**> &work.slope, n_slots * sizeof(double))
                and grow(<void**> &work.step, n_slots * sizeof(double))
                and grow(<void**> &work.product, n_slots * sizeof(double))
                and grow(<void**> &work.history, 2 * (DEPTH + 1) * n_slots * sizeof(double))
                and grow(<void**> &work.mixed, 2 * n_slots * sizeof(double))
                and grow(<void**> &work.face_slope, n_slots * sizeof(double))
                and grow(<void**> &work.face_step, n_slots * sizeof(double))
                and grow(<void**> &work.face_direction, n_slots * sizeof(double))
                and grow(<void**> &work.face_pivot, n_slots * sizeof(double))):
            return False
        work.slot_capacity = n_slots
    return True


cdef inline bint reserve_face(workset_t* work, ptr_t n_slots) noexcept nogil:
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


cdef inline void release(workset_t* work) noexcept nogil:
    c_free(work.entry_slot)
    c_free(work.entry_value)
    c_free(work.entry_prob)
    c_free(work.hessian)
    c_free(work.face)
    c_free(work.active)
    c_free(work.listed)
    c_free(work.slope)
    c_free(work.step)
    c_free(work.product)
    c_free(work.history)
    c_free(work.mixed)
    c_free(work.face_slope)
    c_free(work.face_step)
    c_free(work.face_direction)
    c_free(work.face_pivot)


cdef inline double kth_largest(double* values, ptr_t size, ptr_t k) noexcept nogil:
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
    cdef double v = violation(state.gradient[k], problem.beta[k], state.lam[k]) / problem.rms[k % problem.n_coords]
    return v * v


cdef inline double select_working_set(const problem_t* problem, const state_t* state,
                                      workset_t* work) noexcept nogil:
    """The support, the free coordinates, and the worst violators: twice as many, and a hundred at least.

    Returns how many violate, against the support: far from the optimum while it is near one.
    """
    cdef ptr_t n_all = problem.n_blocks * problem.n_coords, k, n_support = 0, n_violators = 0, room
    cdef double urgent = 0.0, threshold = 0.0
    for k in range(n_all):
        if problem.beta[k] == INFINITY:
            continue
        if state.lam[k] != 0.0 or problem.beta[k] == 0.0:
            n_support += 1
        else:
            urgent = urgency(problem, state, k)
            if urgent > 0.0:
                work.priority[n_violators] = urgent
                n_violators += 1
    room = max(2 * n_support, MIN_ROOM + problem.n_blocks)
    if n_violators > room:
        threshold = kth_largest(work.priority, n_violators, room - 1)
    work.size = 0
    for k in range(n_all):
        if problem.beta[k] == INFINITY:
            continue
        if state.lam[k] == 0.0 and problem.beta[k] > 0.0:
            urgent = urgency(problem, state, k)
            if not urgent > 0.0 or urgent < threshold:
                continue
        work.coords[work.size] = k
        work.size += 1
    return n_violators / (1.0 + n_support)


cdef inline void sweep(const problem_t* problem, state_t* state, workset_t* work, int n_times) noexcept nogil:
    """Closed-form steps on every coordinate of the working set, so many times; then all is refreshed."""
    cdef ptr_t k, c, j, slot
    cdef int _time
    cdef pair_t moments
    cdef step_t step
    if problem.reference > 0.0:
        normalise_cells(problem, state)
    for _time in range(n_times):
        for slot in range(work.size):
            k = work.coords[slot]
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
    refresh_normalizer(problem, state)


cdef inline void row_curvature(const problem_t* problem, state_t* state) noexcept nogil:
    """flow = how much the scores of a row's cells bend the loss: sum_c of u q_c (1 - q_c), or of q_c under one Z."""
    cdef ptr_t m = problem.X.n_rows, c, i
    cdef double q
    memset(state.flow, 0, m * sizeof(double))
    for c in range(problem.n_blocks):
        for i in range(m):
            if problem.pooled:
                state.flow[i] += state.weight[c * m + i] * state.inv_z[0]
            else:
                q = state.weight[c * m + i] * state.inv_z[i]
                state.flow[i] += problem.mass[i] * (q - q * q)


cdef inline void choose_rows(const problem_t* problem, state_t* state, workset_t* work,
                             ptr_t low, ptr_t high, double negligible) noexcept nogil:
    """Mark the rows that matter to some slot: together the others hold less than this part of its curvature.

    The slope is always that of all rows, and so is the Hessian's diagonal: what the rest of it lacks costs a little of
    the speed of convergence, and nothing of where to.
    """
    cdef ptr_t size = high - low, slot, k, p
    cdef idx_t i
    cdef double threshold
    cdef column_t column
    row_curvature(problem, state)
    memset(work.kept, 0, problem.X.n_rows)
    for slot in range(size):
        k = work.coords[low + slot]
        column = walk(problem, state, k % problem.n_coords)
        threshold = negligible * work.hessian[slot * size + slot] / column.size
        for p in range(column.size):
            i = row_at(column, p)
            work.kept[i] |= state.flow[i] * value_at(column, p) * value_at(column, p) >= threshold


cdef inline void gather_rows(const problem_t* problem, state_t* state, workset_t* work, ptr_t low, ptr_t high,
                             bint coupled) noexcept nogil:
    """The working set's columns low..high by rows: slots ascend within a row."""
    cdef ptr_t m = problem.X.n_rows, i, p, slot, c, place
    cdef column_t column
    cdef ptr_t* start = work.row_start
    for i in range(m + 1):
        start[i] = 0
    for slot in range(low, high):
        column = get_column(&problem.X, work.coords[slot] % problem.n_coords)
        for p in range(column.size):
            i = row_at(column, p)
            start[i + 1] += work.kept[i]
    for i in range(m):
        start[i + 1] += start[i]
    for slot in range(low, high):
        c = work.coords[slot] // problem.n_coords
        column = walk(problem, state, work.coords[slot] % problem.n_coords)
        for p in range(column.size):
            i = row_at(column, p)
            if not work.kept[i]:
                continue
            place = start[i]
            start[i] = place + 1
            work.entry_slot[place] = <idx_t> (slot - low)
            work.entry_value[place] = value_at(column, p)
            if coupled:
                work.entry_prob[place] = state.weight[c * m + i] * state.inv_z[i]
    # Filling moved every start to the next row's: move them back.
    for i in range(m, 0, -1):
        start[i] = start[i - 1]
    start[0] = 0


cdef inline void hessian_row(const problem_t* problem, state_t* state, workset_t* work, column_t column,
                             ptr_t block_slot, bint coupled, double* row_out) noexcept nogil:
    """One row of the Hessian up to its diagonal, from the flow of its block: the column, and each row that it meets.

    Slots ascend within a row and are taken in turn: row_end[i] is where this slot's entry of row i stands.
    """
    cdef ptr_t p, e, end
    cdef idx_t i
    cdef double pull
    for p in range(column.size):
        i = row_at(column, p)
        if not work.kept[i]:
            continue
        end = work.row_end[i] + 1
        work.row_end[i] = end
        pull = state.flow[i] * value_at(column, p)
        if pull == 0.0:
            continue
        state.counters.nonzeros += end - work.row_start[i]
        if coupled:
            for e in range(work.row_start[i], end):
                row_out[work.entry_slot[e]] -= pull * work.entry_value[e] * work.entry_prob[e]
        if problem.n_blocks == 1:
            for e in range(work.row_start[i], end):
                row_out[work.entry_slot[e]] += (
                    pull if problem.X.values == NULL and problem.X.indptr != NULL else pull * work.entry_value[e])
        else:
            e = end - 1
            while e >= work.row_start[i] and work.entry_slot[e] >= block_slot:
                row_out[work.entry_slot[e]] += pull * work.entry_value[e]
                e -= 1


cdef inline void form_slope(const problem_t* problem, state_t* state, workset_t* work,
                            ptr_t low, ptr_t high) noexcept nogil:
    """slope = model_mean - emp_mean on the working set's coordinates low..high"""
    cdef ptr_t slot, k, c, last = -1
    for slot in range(low, high):
        k = work.coords[slot]
        c = k // problem.n_coords
        if c != last:
            block_flow(problem, state, c, state.flow)
            last = c
        work.slope[slot - low] = (column_dot(walk(problem, state, k % problem.n_coords), state.flow)
                                  - problem.emp_mean[k])


cdef inline void hessian_by_rows(const problem_t* problem, state_t* state, workset_t* work, ptr_t low, ptr_t high,
                                 bint coupled) noexcept nogil:
    """Lower triangle of sum_i ..., for sparse columns: what a row does not hold costs nothing."""
    cdef ptr_t size = high - low, m = problem.X.n_rows, slot, i, k, c, last = -1, block_slot = 0
    for i in range(m):
        work.row_end[i] = work.row_start[i]
    for slot in range(size):
        k = work.coords[low + slot]
        c = k // problem.n_coords
        if c != last:
            block_flow(problem, state, c, state.flow)
            if not problem.pooled and not coupled:
                for i in range(m):
                    state.flow[i] *= 1.0 - state.weight[c * m + i] * state.inv_z[i]
            block_slot = slot
            last = c
        hessian_row(problem, state, work, walk(problem, state, k % problem.n_coords), block_slot, coupled,
                    work.hessian + slot * size)
        if interrupted(state):
            return


cdef inline ptr_t block_end(const problem_t* problem, const workset_t* work, ptr_t low, ptr_t high,
                            ptr_t slot) noexcept nogil:
    """The first slot after the given one whose block is another."""
    cdef ptr_t c = work.coords[low + slot] // problem.n_coords
    while low + slot < high and work.coords[low + slot] // problem.n_coords == c:
        slot += 1
    return slot


cdef inline void cell_curvature(const problem_t* problem, state_t* state, ptr_t c, ptr_t d) noexcept nogil:
    """flow = second derivative of the loss by the scores of an example's cells in blocks c and d, less W_a W_b."""
    cdef ptr_t m = problem.X.n_rows, i
    block_flow(problem, state, c, state.flow)
    if not problem.pooled:
        for i in range(m):
            state.flow[i] *= (1.0 if c == d else 0.0) - state.weight[d * m + i] * state.inv_z[i]


cdef inline const double* dense_values(const problem_t* problem, const workset_t* work, ptr_t place,
                                       ptr_t start, const double* ones) noexcept nogil:
    """Values of a dense column from row start on; the intercept's are ones."""
    cdef column_t column = get_column(&problem.X, work.coords[place] % problem.n_coords)
    return ones if column.values == NULL else column.values + start


cdef inline void hessian_tile(const problem_t* problem, state_t* state, workset_t* work, ptr_t low, ptr_t size,
                              ptr_t first, ptr_t end, ptr_t other_first, ptr_t other_end,
                              ptr_t start, ptr_t length) noexcept nogil:
    """Add to rows first..end, columns other_first..other_end what rows start..start+length of X have to say.

    x_a * flow for four slots at a time, each against every x_b, two at a time.
    """
    cdef ptr_t a, b, r, i, band, limit
    cdef double pulled[4 * TILE]
    cdef double ones[TILE]
    cdef double sums[8]
    cdef const double* x
    for i in range(TILE):
        ones[i] = 1.0
    for a in range(first, end, 4):
        band = min(4, end - a)
        for r in range(4):
            x = dense_values(problem, work, low + a + min(r, band - 1), start, ones)
            for i in range(length):
                pulled[r * TILE + i] = state.flow[start + i] * x[i]
        limit = min(other_end, a + band)
        for b in range(other_first, limit, 2):
            dot4x2(pulled, TILE, dense_values(problem, work, low + b, start, ones),
                   dense_values(problem, work, low + min(b + 1, limit - 1), start, ones), length, sums)
            for r in range(band):
                work.hessian[(a + r) * size + b] += sums[r]
                if b + 1 < limit:
                    work.hessian[(a + r) * size + b + 1] += sums[4 + r]


cdef inline void hessian_by_tiles(const problem_t* problem, state_t* state, workset_t* work,
                                  ptr_t low, ptr_t high) noexcept nogil:
    """Lower triangle of sum_i ..., for dense columns: a few hundred rows at a time, which stay in the cache."""
    cdef ptr_t size = high - low, m = problem.X.n_rows, first = 0, end, other_first, other_end, start
    while first < size:
        end = block_end(problem, work, low, high, first)
        # Under one Z the blocks do not meet but in the product of means.
        other_first = first if problem.pooled else 0
        while other_first < end:
            other_end = block_end(problem, work, low, high, other_first)
            cell_curvature(problem, state, work.coords[low + first] // problem.n_coords,
                           work.coords[low + other_first] // problem.n_coords)
            start = 0
            while start < m:
                hessian_tile(problem, state, work, low, size, first, end, other_first, other_end, start,
                             min(<ptr_t> TILE, m - start))
                state.counters.nonzeros += (end - first) * (other_end - other_first) * TILE // 8
                if interrupted(state):
                    return
                start += TILE
            other_first = other_end
        first = end


cdef inline double dropped_flow(const problem_t* problem, state_t* state, const workset_t* work,
                                ptr_t c) noexcept nogil:
    """flow = curvature of block c in the rows that were not kept; returns its sum."""
    cdef ptr_t i
    cdef double total = 0.0
    cell_curvature(problem, state, c, c)
    for i in range(problem.X.n_rows):
        if work.kept[i]:
            state.flow[i] = 0.0
        total += state.flow[i]
    return total


cdef inline void add_dropped(const problem_t* problem, state_t* state, workset_t* work,
                             ptr_t low, ptr_t high) noexcept nogil:
    """What the rows not kept add to the Hessian's lower triangle below its diagonal, as if they were all alike."""
    cdef ptr_t size = high - low, slot, other, first = 0, end
    cdef double total
    while first < size:
        end = block_end(problem, work, low, high, first)
        total = dropped_flow(problem, state, work, work.coords[low + first] // problem.n_coords)
        if total > 0.0:
            for slot in range(first, end):
                work.product[slot] = column_dot(
                    walk(problem, state, work.coords[low + slot] % problem.n_coords), state.flow)
                for other in range(first, slot):
                    work.hessian[slot * size + other] += work.product[slot] * work.product[other] / total
        first = end


cdef inline void form_hessian(const problem_t* problem, state_t* state, workset_t* work, ptr_t low, ptr_t high,
                              bint coupled, double precision) noexcept nogil:
    """The Hessian, about as precise as its model will be minimised, and the slope."""
    cdef ptr_t size = high - low, slot, other, k
    cdef double* hessian = work.hessian
    cdef double mean
    cdef pair_t moments
    memset(hessian, 0, size * size * sizeof(double))
    for slot in range(size):
        k = work.coords[low + slot]
        moments = coordinate_moments(problem, state, k // problem.n_coords, k % problem.n_coords)
        work.slope[slot] = moments.first - problem.emp_mean[k]
        work.step[slot] = moments.second
        hessian[slot * size + slot] = moments.second
    if problem.X.indptr == NULL:
        hessian_by_tiles(problem, state, work, low, high)
    else:
        choose_rows(problem, state, work, low, high, min(10.0 * precision, MAX_NEGLIGIBLE))
        gather_rows(problem, state, work, low, high, coupled)
        hessian_by_rows(problem, state, work, low, high, coupled)
        add_dropped(problem, state, work, low, high)
    for slot in range(size):
        k = work.coords[low + slot]
        mean = work.slope[slot] + problem.emp_mean[k]
        hessian[slot * size + slot] = work.step[slot]
        for other in range(slot):
            if problem.pooled:
                hessian[slot * size + other] -= mean * (
                    work.slope[other] + problem.emp_mean[work.coords[low + other]])
            hessian[other * size + slot] = hessian[slot * size + other]


cdef inline double model_sweep(const problem_t* problem, state_t* state, workset_t* work,
                               ptr_t low, ptr_t high) noexcept nogil:
    """Minimise the model over each slot in turn; returns the decrease."""
    cdef ptr_t size = high - low, slot, k
    cdef double delta, lam, decrease = 0.0
    cdef double* row
    for slot in range(size):
        row = work.hessian + slot * size
        if row[slot] <= 0.0:
            continue
        k = work.coords[low + slot]
        lam = state.lam[k] + work.step[slot]
        delta = minimise_quadratic(work.slope[slot] + work.product[slot], row[slot], problem.beta[k], lam)
        if delta != 0.0:
            decrease -= (delta * (work.slope[slot] + work.product[slot] + 0.5 * delta * row[slot])
                         + penalty_change(lam, delta, problem.beta[k]))
            work.step[slot] += delta
            axpy(delta, row, work.product, size)
            state.counters.nonzeros += size
    return decrease


cdef inline bint is_active(const problem_t* problem, const state_t* state, const workset_t* work,
                           ptr_t low, ptr_t size, ptr_t slot) noexcept nogil:
    """Whether the slot has a weight, or none to pay for."""
    cdef ptr_t k = work.coords[low + slot]
    return work.hessian[slot * size + slot] > 0.0 and (
        state.lam[k] + work.step[slot] != 0.0 or problem.beta[k] == 0.0)


cdef inline void order_face(const problem_t* problem, const state_t* state, workset_t* work,
                            ptr_t low, ptr_t size) noexcept nogil:
    """List the active slots so that those which may leave come last: what stands before a leaver stays factored."""
    cdef ptr_t slot, rank
    cdef double total = 0.0, n_weights = 1.0, lam
    for slot in range(size):
        lam = fabs(state.lam[work.coords[low + slot]])
        total += lam
        n_weights += lam > 0.0
        work.listed[slot] = False
    work.n_active = 0
    work.n_factored = 0
    for rank in range(3):
        for slot in range(size):
            lam = fabs(state.lam[work.coords[low + slot]])
            if rank == (0 if lam > 0.3 * total / n_weights else 1 if lam > 0.0 else 2):
                if is_active(problem, state, work, low, size, slot):
                    work.active[work.n_active] = <idx_t> slot
                    work.listed[slot] = True
                    work.n_active += 1


cdef inline void update_face(const problem_t* problem, const state_t* state, workset_t* work,
                             ptr_t low, ptr_t size) noexcept nogil:
    """Strike the slots that are active no more from the list, and add the new ones at its end."""
    cdef ptr_t a, slot, n_kept = 0
    for a in range(work.n_active):
        slot = work.active[a]
        if is_active(problem, state, work, low, size, slot):
            work.active[n_kept] = <idx_t> slot
            n_kept += 1
        else:
            work.listed[slot] = False
            work.n_factored = min(work.n_factored, n_kept)
    work.n_active = n_kept
    for slot in range(size):
        if not work.listed[slot] and is_active(problem, state, work, low, size, slot):
            work.active[work.n_active] = <idx_t> slot
            work.listed[slot] = True
            work.n_active += 1


cdef inline void factor_face(const problem_t* problem, state_t* state, workset_t* work,
                             ptr_t low, ptr_t size) noexcept nogil:
    """The Hessian's rows and columns at the active slots: above the diagonal as they are, below it their factor."""
    cdef ptr_t a, b, start = work.n_factored, done = start - start % 2
    cdef double* row
    for a in range(work.n_active):
        row = work.hessian + work.active[a] * size
        for b in range(0 if a >= done else start, work.n_active):
            work.face[a * size + b] = row[work.active[b]]
    # A penalised weight may go far, until one of them is zero; an intercept among intercepts has nowhere to go.
    for a in range(done, work.n_active):
        work.face_pivot[a] = 1e-5 if problem.beta[work.coords[low + work.active[a]]] > 0.0 else INFINITY
    factorise(work.face, size, done, work.n_active, work.face_pivot)
    work.n_factored = work.n_active
    state.counters.nonzeros += work.n_active * work.n_active * ((work.n_active - start) // 8)


cdef inline double move_on_face(const problem_t* problem, const state_t* state, workset_t* work, ptr_t low,
                                ptr_t stride, double length) noexcept nogil:
    """face_direction = length * face_step, weights stopped at zero; returns the change of the model."""
    cdef ptr_t size = work.n_active, a, k
    cdef double lam, delta, change = 0.0
    cdef double* row
    for a in range(size):
        k = work.coords[low + work.active[a]]
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


cdef inline double first_zero(const problem_t* problem, const state_t* state, const workset_t* work,
                              ptr_t low) noexcept nogil:
    """The length at which face_step takes the first penalised weight to zero; more than 1 if none gets there."""
    cdef ptr_t a, k
    cdef double lam, first = 2.0
    for a in range(work.n_active):
        k = work.coords[low + work.active[a]]
        lam = state.lam[k] + work.step[work.active[a]]
        if problem.beta[k] > 0.0 and (lam + work.face_step[a]) * lam < 0.0:
            first = min(first, -lam / work.face_step[a])
    return first


cdef inline double minimise_face(const problem_t* problem, state_t* state, workset_t* work,
                                 ptr_t low, ptr_t high) noexcept nogil:
    """Newton's step for the model on the active slots, cut where it would not decrease it; returns the decrease."""
    cdef ptr_t size = high - low, a, slot, k
    cdef double length = 1.0, first, change, lam
    if work.n_factored == 0:
        order_face(problem, state, work, low, size)
    else:
        update_face(problem, state, work, low, size)
    if not reserve_face(work, size):
        work.n_factored = 0
        return 0.0
    if work.n_factored < work.n_active:
        factor_face(problem, state, work, low, size)
    for a in range(work.n_active):
        slot = work.active[a]
        k = work.coords[low + slot]
        lam = state.lam[k] + work.step[slot]
        work.face_slope[a] = (
            work.slope[slot] + work.product[slot] + (copysign(problem.beta[k], lam) if lam != 0.0 else 0.0))
        work.face_step[a] = -work.face_slope[a]
    substitute(work.face, size, work.n_active, work.face_pivot, work.face_step)
    # All the way, weights stopped at zero; or, where the face is flat, just until the first of them gets there.
    first = first_zero(problem, state, work, low)
    if first < 1.0 and move_on_face(problem, state, work, low, size, 1.0) >= move_on_face(
            problem, state, work, low, size, first):
        length = first
    change = move_on_face(problem, state, work, low, size, length)
    if not change < 0.0:
        return 0.0
    for a in range(work.n_active):
        if work.face_direction[a] != 0.0:
            slot = work.active[a]
            work.step[slot] += work.face_direction[a]
            axpy(work.face_direction[a], work.hessian + slot * size, work.product, size)
    return -change


cdef inline double model_value(const problem_t* problem, const state_t* state, const workset_t* work, ptr_t low,
                               ptr_t size, const double* step, const double* product) noexcept nogil:
    """Change of the model with its penalty."""
    cdef ptr_t slot, k
    cdef double value = 0.0
    for slot in range(size):
        k = work.coords[low + slot]
        value += (step[slot] * (work.slope[slot] + 0.5 * product[slot])
                  + penalty_change(state.lam[k], step[slot], problem.beta[k]))
    return value


cdef inline bint mixing_shares(const workset_t* work, ptr_t size, double* shares) noexcept nogil:
    """Weights, of sum one, that make the last changes of step cancel best: DEPTH least squares. False if none do."""
    cdef double gram[DEPTH * DEPTH]
    cdef double pivot[DEPTH]
    cdef double trace = 0.0, total = 0.0
    cdef ptr_t a, b, slot
    for a in range(DEPTH):
        for b in range(a + 1):
            gram[a * DEPTH + b] = 0.0
    for slot in range(size):
        for a in range(DEPTH):
            pivot[a] = work.history[(a + 1) * 2 * size + slot] - work.history[a * 2 * size + slot]
        for a in range(DEPTH):
            for b in range(a + 1):
                gram[a * DEPTH + b] += pivot[a] * pivot[b]
    for a in range(DEPTH):
        trace += gram[a * DEPTH + a]
    if not trace > 0.0:
        return False
    for a in range(DEPTH):
        gram[a * DEPTH + a] += 1e-12 * trace
        pivot[a] = 1e-5
        shares[a] = 1.0
    factorise(gram, DEPTH, 0, DEPTH, pivot)
    substitute(gram, DEPTH, DEPTH, pivot, shares)
    for a in range(DEPTH):
        total += shares[a]
    if not fabs(total) > 0.0:
        return False
    for a in range(DEPTH):
        shares[a] /= total
    return True


cdef inline double extrapolate(const problem_t* problem, state_t* state, workset_t* work,
                               ptr_t low, ptr_t size) noexcept nogil:
    """Anderson's extrapolation of the last sweeps, if it is better than the last of them; returns the decrease."""
    cdef double shares[DEPTH]
    cdef double gain
    cdef ptr_t a
    if not mixing_shares(work, size, shares):
        return 0.0
    memset(work.mixed, 0, 2 * size * sizeof(double))
    for a in range(DEPTH):
        axpy(shares[a], work.history + (a + 1) * 2 * size, work.mixed, 2 * size)
    gain = (model_value(problem, state, work, low, size, work.step, work.product)
            - model_value(problem, state, work, low, size, work.mixed, work.mixed + size))
    if not gain > 0.0:
        return 0.0
    memcpy(work.step, work.mixed, size * sizeof(double))
    memcpy(work.product, work.mixed + size, size * sizeof(double))
    return gain


cdef inline void remember(workset_t* work, ptr_t size, ptr_t place) noexcept nogil:
    memcpy(work.history + place * 2 * size, work.step, size * sizeof(double))
    memcpy(work.history + (place * 2 + 1) * size, work.product, size * sizeof(double))


cdef inline bint may_factor(const workset_t* work, ptr_t n_faces, double precision) noexcept nogil:
    """Whether one more Cholesky factor pays: one where precision is called for, and many while they are small."""
    cdef double size = work.n_active
    return precision < FACE_PRECISION and (
        n_faces == 0 or (n_faces <= MAX_FACES and n_faces * size * size * size < MAX_FACE_WORK))


cdef inline void minimise_model(const problem_t* problem, state_t* state, workset_t* work,
                                ptr_t low, ptr_t high, double precision) noexcept nogil:
    """step = argmin slope @ d + d @ hessian @ d / 2 + beta @ |lam + d|; product = hessian @ step.

    Sweeps, extrapolated every few, until one adds less than precision of the whole decrease. Along directions in which
    the model is flat they creep; a Cholesky factor of the active slots' matrix knows no such directions.
    """
    cdef ptr_t size = high - low, n_sweeps = 0, n_faces = 0, place = 0
    cdef double decrease, total = 0.0
    cdef bint settled
    memset(work.step, 0, size * sizeof(double))
    memset(work.product, 0, size * sizeof(double))
    while not interrupted(state):
        if place == 0:
            remember(work, size, place)
        decrease = model_sweep(problem, state, work, low, high)
        n_sweeps += 1
        place += 1
        remember(work, size, place)
        if place == DEPTH:
            decrease += extrapolate(problem, state, work, low, size)
            place = 0
        total += decrease
        settled = not decrease > precision * total
        if not settled and n_sweeps < (MAX_MODEL_SWEEPS if n_faces == 0 else 2):
            continue
        if not may_factor(work, n_faces, precision):
            return
        decrease = minimise_face(problem, state, work, low, high)
        total += decrease
        if settled and not decrease > precision * total:
            return
        n_faces += 1
        n_sweeps = 0
        place = 0


cdef inline void step_slope(const problem_t* problem, state_t* state, workset_t* work,
                            ptr_t low, ptr_t high) noexcept nogil:
    """state.slope = X @ step over all cells"""
    cdef ptr_t m = problem.X.n_rows, slot, c
    memset(state.slope, 0, problem.n_blocks * m * sizeof(double))
    for slot in range(low, high):
        if work.step[slot - low] != 0.0:
            c = work.coords[slot] // problem.n_coords
            column_axpy(walk(problem, state, work.coords[slot] % problem.n_coords), work.step[slot - low],
                        state.slope + c * m)


cdef inline double log_ratio(double added, double total, double inv_z) noexcept nogil:
    """ln(total / z), where total = z + added: from the difference unless most of z is gone; infinite if all is."""
    if not 0.0 < total * inv_z < INFINITY:
        return INFINITY
    return log1p(added * inv_z) if added * inv_z > -0.5 else log(total * inv_z)


cdef inline double log_z_change(const problem_t* problem, state_t* state, double length) noexcept nogil:
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


cdef inline double objective_change(const problem_t* problem, state_t* state, workset_t* work,
                                    ptr_t low, ptr_t high, double length) noexcept nogil:
    """objective(lam + length * step) - objective(lam), as a sum of changes: no two objectives are subtracted."""
    cdef ptr_t slot, k
    cdef double delta, change = log_z_change(problem, state, length)
    for slot in range(low, high):
        k = work.coords[slot]
        delta = length * work.step[slot - low]
        change += penalty_change(state.lam[k], delta, problem.beta[k]) - delta * problem.emp_mean[k]
    return change


cdef inline double search_line(const problem_t* problem, state_t* state, workset_t* work,
                               ptr_t low, ptr_t high) noexcept nogil:
    """Longest of 1, 1/2, 1/4, ... that gives a fair part of the decrease the model promises; 0 if none does.

    Where the whole step gains more than the model's half of the promise, the loss falls off like an exponential, as it
    does for data that are all but separable: then twice as far, and again, while it pays.
    """
    cdef ptr_t slot, k
    cdef double promised = 0.0, length = 1.0, rounding = 2e-15 * fabs(state.objective_zero), change, further
    for slot in range(low, high):
        k = work.coords[slot]
        promised += (work.slope[slot - low] * work.step[slot - low]
                     + penalty_change(state.lam[k], work.step[slot - low], problem.beta[k]))
    if not promised < 0.0:
        return 0.0
    change = objective_change(problem, state, work, low, high, length)
    while length < 1024.0 and change < 0.55 * promised and promised < -rounding:
        further = objective_change(problem, state, work, low, high, 2.0 * length)
        if not further < change:
            return length
        length *= 2.0
        change = further
    while length > 1e-8:
        if change <= 1e-2 * length * promised + rounding:
            return length
        length *= 0.5
        change = objective_change(problem, state, work, low, high, length)
    return 0.0


cdef inline void take_step(const problem_t* problem, state_t* state, workset_t* work,
                           ptr_t low, ptr_t high, double length) noexcept nogil:
    cdef ptr_t slot, cell
    for cell in range(problem.n_blocks * problem.X.n_rows):
        state.score[cell] += length * state.slope[cell]
    for slot in range(low, high):
        state.lam[work.coords[slot]] += length * work.step[slot - low]
    state.counters.updates += high - low
    refresh_weights(problem, state)


cdef inline double slots_gap(const problem_t* problem, const state_t* state, const workset_t* work,
                             ptr_t low, ptr_t high) noexcept nogil:
    """About the duality gap if these coordinates were all there are: cheap, first order, no certificate."""
    cdef ptr_t slot, k
    cdef double t = 0.0, slack = 0.0
    for slot in range(low, high):
        k = work.coords[slot]
        if problem.beta[k] > 0.0:
            t = max(t, mixing(work.slope[slot - low], problem.beta[k]))
            slack += max(problem.beta[k] * fabs(state.lam[k]) + work.slope[slot - low] * state.lam[k], 0.0)
    return slack + t * fabs(state.objective_zero)


cdef inline int newton_steps(const problem_t* problem, state_t* state, workset_t* work,
                             ptr_t low, ptr_t high, double target, double precision) noexcept nogil:
    """Newton steps on the working set's coordinates low..high with one Hessian: how many, or -1 if out of memory.

    The Hessian is that of the first step: where it no longer fits, a step gains little, and that is the end.
    The scores must be exact on entry, and are on exit.
    """
    cdef bint coupled = not problem.pooled and problem.n_blocks > 1
    cdef ptr_t n_entries = 0, slot
    cdef int n_steps
    cdef double length, gap = INFINITY, last
    if problem.X.indptr != NULL:
        for slot in range(low, high):
            n_entries += get_column(&problem.X, work.coords[slot] % problem.n_coords).size
    if not reserve(work, high - low, n_entries, coupled):
        return -1
    form_hessian(problem, state, work, low, high, coupled, precision)
    work.n_factored = 0
    for n_steps in range(MAX_STEPS):
        if state.stopped:
            break
        minimise_model(problem, state, work, low, high, precision)
        step_slope(problem, state, work, low, high)
        length = search_line(problem, state, work, low, high)
        if length == 0.0:
            return n_steps
        take_step(problem, state, work, low, high, length)
        form_slope(problem, state, work, low, high)
        last = gap
        gap = slots_gap(problem, state, work, low, high)
        if gap <= target or gap > 0.3 * last:
            return n_steps + 1
    return MAX_STEPS
