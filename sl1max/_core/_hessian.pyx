"""The Hessian of the loss on a working set, and its slope.

With u q the flow of a block and x the column of a coordinate it is:

    one Z            sum_i q_c x_a x_b [same block]  -  W_a W_b
    one Z per row    sum_i u q_c x_a x_b ([same block] - q_d)

What rows hold that bend the loss little is not multiplied out but taken as if they were all alike. The intercept is
one more column, of ones, without penalty.
"""
from libc.math cimport fabs, sqrt
from libc.string cimport memcpy, memset

from sl1max._core._column cimport column_dot, get_column, row_at, value_at
from sl1max._core._dense cimport dot4x2
from sl1max._core._normalizer cimport block_flow, cell_curvature, coordinate_moments, interrupted, walk
from sl1max._core._types cimport column_t, idx_t, pair_t, problem_t, ptr_t, state_t
from sl1max._core._working_set cimport reserve_entries, reserve_hessian, reserve_marks, workset_t


cdef extern from *:
    """
    /* What a Hessian may lack of the curvature of a coordinate, about, off its diagonal. */
    #define SL1MAX_MAX_NEGLIGIBLE 0.3
    /* What it always may where each row has its own Z and the gap, over the objective of zero weights, is larger than
       that: saves 5 to 10 % of the time of WebKB's and Reuters' classes to 1e-6. Nearer to the optimum it kept a model
       that is flat along some directions from getting there for twenty rounds; and one Z gives few rows most of the
       mass, so that convergence suffers: 12 % more time. */
    #define SL1MAX_LEAST_NEGLIGIBLE 0.08
    #define SL1MAX_FAR_GAP 1e-3
    /* Rows of dense columns that it takes at a time: some hundred columns of them fit into the second cache. */
    #define SL1MAX_TILE 256
    /* Rows and columns of a matrix that are mirrored at a time. */
    #define SL1MAX_SQUARE 32
    """
    const double MAX_NEGLIGIBLE "SL1MAX_MAX_NEGLIGIBLE"
    const double LEAST_NEGLIGIBLE "SL1MAX_LEAST_NEGLIGIBLE"
    const double FAR_GAP "SL1MAX_FAR_GAP"
    enum: TILE "SL1MAX_TILE"
    const ptr_t SQUARE "SL1MAX_SQUARE"


cdef ptr_t count_entries(const problem_t* problem, const workset_t* work) noexcept nogil:
    """Nonzeros of the working set's columns."""
    cdef ptr_t slot, total = 0
    for slot in range(work.size):
        total += get_column(&problem.X, work.coords[slot] % problem.n_coords).size
    return total


cdef void row_curvature(const problem_t* problem, state_t* state) noexcept nogil:
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


cdef void cell_flow(const problem_t* problem, state_t* state, ptr_t c, bint coupled) noexcept nogil:
    """flow = what the entries of a row in block c pull at each other with; where others couple with it, before q_d."""
    if coupled:
        block_flow(problem, state, c, state.flow)
    else:
        cell_curvature(problem, state, c, c, state.flow)


cdef void choose_entries(const problem_t* problem, state_t* state, workset_t* work, double least) noexcept nogil:
    """kept: the entries whose row bends the loss at least by this part of what the rows of their column do on average.

    Two entries of a row are multiplied if both are kept. The slope is always that of all entries, and so is the
    Hessian's diagonal: what the rest of it lacks costs a little of the speed of convergence, and nothing of where to.
    """
    cdef ptr_t m = problem.X.n_rows, i, slot, p, e = 0
    cdef double threshold
    cdef unsigned char keep
    cdef column_t column
    row_curvature(problem, state)
    memset(work.row_start, 0, (m + 1) * sizeof(idx_t))
    memset(work.partial, 0, m)
    for slot in range(work.size):
        column = walk(problem, state, work.coords[slot] % problem.n_coords)
        threshold = least * work.step[slot] / column.size
        for p in range(column.size):
            i = row_at(column, p)
            keep = state.flow[i] * value_at(column, p) * value_at(column, p) >= threshold
            work.kept[e] = keep
            work.row_start[i + 1] += keep
            work.partial[i] |= not keep
            e += 1
    for i in range(m):
        work.row_start[i + 1] += work.row_start[i]


cdef inline idx_t enter_row(const problem_t* problem, const state_t* state, workset_t* work, ptr_t slot, idx_t i,
                            double value, bint coupled) noexcept nogil:
    """Put an entry of a slot's column behind those that row i has of the slots before it; returns where."""
    cdef idx_t place = work.row_end[i]
    cdef ptr_t c
    work.row_end[i] = place + 1
    work.entry_slot[place] = <idx_t> slot
    if problem.X.values != NULL:
        work.entry_value[place] = value
    if coupled:
        c = work.coords[slot] // problem.n_coords
        work.entry_prob[place] = state.weight[c * problem.X.n_rows + i] * state.inv_z[i]
    return place


cdef void hessian_row(const problem_t* problem, state_t* state, workset_t* work, ptr_t slot, ptr_t block_slot,
                      bint coupled, const unsigned char* kept, double* row_out) noexcept nogil:
    """Add to one row of the Hessian up to its diagonal what the rows of X hold in which an entry of the slot was kept.

    Slots come in ascending order: what a row of X holds by then are the entries up to this slot's.
    """
    cdef column_t column = walk(problem, state, work.coords[slot] % problem.n_coords)
    cdef bint binary = problem.X.values == NULL
    cdef ptr_t p
    cdef idx_t i, e, start, place
    cdef double pull
    for p in range(column.size):
        if not kept[p]:
            continue
        i = row_at(column, p)
        place = enter_row(problem, state, work, slot, i, value_at(column, p), coupled)
        pull = state.flow[i] * value_at(column, p)
        start = work.row_start[i]
        state.counters.nonzeros += place + 1 - start
        if coupled:
            for e in range(start, place + 1):
                row_out[work.entry_slot[e]] -= pull * work.entry_prob[e] * (1.0 if binary else work.entry_value[e])
        while work.entry_slot[start] < block_slot:
            start += 1
        for e in range(start, place + 1):
            row_out[work.entry_slot[e]] += pull if binary else pull * work.entry_value[e]


cdef void form_slope(const problem_t* problem, state_t* state, workset_t* work) noexcept nogil:
    """slope = model_mean - emp_mean on the working set's coordinates"""
    cdef ptr_t slot, k, c, last = -1
    for slot in range(work.size):
        k = work.coords[slot]
        c = k // problem.n_coords
        if c != last:
            block_flow(problem, state, c, state.flow)
            last = c
        work.slope[slot] = (column_dot(walk(problem, state, k % problem.n_coords), state.flow)
                            - problem.emp_mean[k])


cdef ptr_t block_end(const problem_t* problem, const workset_t* work, ptr_t slot) noexcept nogil:
    """The first slot after the given one whose block is another."""
    cdef ptr_t c = work.coords[slot] // problem.n_coords
    while slot < work.size and work.coords[slot] // problem.n_coords == c:
        slot += 1
    return slot


cdef double partial_flow(const problem_t* problem, state_t* state, const workset_t* work, ptr_t c) noexcept nogil:
    """flow = curvature of block c in the rows of which not all was kept; returns its sum."""
    cdef ptr_t i
    cdef double total = 0.0
    cell_curvature(problem, state, c, c, state.flow)
    for i in range(problem.X.n_rows):
        if not work.partial[i]:
            state.flow[i] = 0.0
        total += state.flow[i]
    return total


cdef void form_dropped(const problem_t* problem, state_t* state, workset_t* work, bint coupled) noexcept nogil:
    """What was not kept adds all[a] all[b] - part[a] part[b] to entry (a, b) within a block.

    Of rows x = kept + dropped whose weights sum to T, dropped is taken as the same in all of them. With all and part
    the weighted sums of x and kept, over the root of T, that gives their second moment: it bends no way down. Coupled
    blocks leave less to take from, so there what was dropped stands alone.
    """
    cdef ptr_t slot, first = 0, end, p, e = 0
    cdef double total, whole, kept
    cdef column_t column
    while first < work.size:
        end = block_end(problem, work, first)
        total = partial_flow(problem, state, work, work.coords[first] // problem.n_coords)
        for slot in range(first, end):
            column = walk(problem, state, work.coords[slot] % problem.n_coords)
            whole = kept = 0.0
            for p in range(column.size):
                whole += value_at(column, p) * state.flow[row_at(column, p)]
                if work.kept[e]:
                    kept += value_at(column, p) * state.flow[row_at(column, p)]
                e += 1
            if coupled:
                whole -= kept
                kept = 0.0
            work.all[slot] = whole / sqrt(total) if total > 0.0 else 0.0
            work.part[slot] = kept / sqrt(total) if total > 0.0 else 0.0
        first = end


cdef inline double model_mean(const problem_t* problem, const workset_t* work, ptr_t slot) noexcept nogil:
    return work.slope[slot] + problem.emp_mean[work.coords[slot]]


cdef void store_row(const problem_t* problem, workset_t* work, ptr_t slot, double* row) noexcept nogil:
    """Round one row of the Hessian up to its diagonal; under one Z less W_a W_b, before digits are lost.

    The diagonal is the exact one. Where the row has more than that, the slot is scaled down to it.
    """
    cdef ptr_t other
    cdef double* scale = work.scale
    cdef float* row_out = work.hessian + slot * work.size
    if problem.pooled:
        for other in range(slot + 1):
            row[other] -= model_mean(problem, work, slot) * model_mean(problem, work, other)
    scale[slot] = sqrt(max(work.step[slot], 0.0) / row[slot]) if row[slot] > work.step[slot] else 1.0
    for other in range(slot):
        row_out[other] = <float> (row[other] * scale[slot] * scale[other])
    row_out[slot] = <float> work.step[slot]


cdef void hessian_by_rows(const problem_t* problem, state_t* state, workset_t* work, bint coupled) noexcept nogil:
    """Lower triangle of sum_i ..., for sparse columns: what a row does not hold costs nothing."""
    cdef ptr_t slot, other, block_slot = 0, block_ends = 0, e = 0
    memcpy(work.row_end, work.row_start, problem.X.n_rows * sizeof(idx_t))
    for slot in range(work.size):
        if slot == block_ends:
            block_slot = slot
            block_ends = block_end(problem, work, slot)
            cell_flow(problem, state, work.coords[slot] // problem.n_coords, coupled)
        memset(work.product, 0, (slot + 1) * sizeof(double))
        hessian_row(problem, state, work, slot, block_slot, coupled, work.kept + e, work.product)
        e += get_column(&problem.X, work.coords[slot] % problem.n_coords).size
        for other in range(block_slot, slot + 1):
            work.product[other] += work.all[slot] * work.all[other] - work.part[slot] * work.part[other]
        store_row(problem, work, slot, work.product)
        if interrupted(state):
            return


cdef inline const double* dense_values(const problem_t* problem, const workset_t* work, ptr_t place, ptr_t start,
                                       const double* ones) noexcept nogil:
    """Values of a dense column from row start on; the intercept's are ones."""
    cdef column_t column = get_column(&problem.X, work.coords[place] % problem.n_coords)
    return ones if column.values == NULL else column.values + start


cdef void hessian_tile(const problem_t* problem, state_t* state, workset_t* work, ptr_t size, ptr_t first, ptr_t end,
                       ptr_t other_first, ptr_t other_end, ptr_t start, ptr_t length) noexcept nogil:
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
            x = dense_values(problem, work, a + min(r, band - 1), start, ones)
            for i in range(length):
                pulled[r * TILE + i] = state.flow[start + i] * x[i]
        limit = min(other_end, a + band)
        for b in range(other_first, limit, 2):
            dot4x2(pulled, TILE, dense_values(problem, work, b, start, ones),
                   dense_values(problem, work, min(b + 1, limit - 1), start, ones), length, sums)
            for r in range(band):
                work.exact[(a + r) * size + b] += sums[r]
                if b + 1 < limit:
                    work.exact[(a + r) * size + b + 1] += sums[4 + r]


cdef void hessian_by_tiles(const problem_t* problem, state_t* state, workset_t* work) noexcept nogil:
    """Lower triangle of sum_i ..., for dense columns: a few hundred rows at a time, which stay in the cache."""
    cdef ptr_t size = work.size, m = problem.X.n_rows, first = 0, end, other_first, other_end, start
    while first < size:
        end = block_end(problem, work, first)
        # Under one Z the blocks do not meet but in the product of means.
        other_first = first if problem.pooled else 0
        while other_first < end:
            other_end = block_end(problem, work, other_first)
            cell_curvature(problem, state, work.coords[first] // problem.n_coords,
                           work.coords[other_first] // problem.n_coords, state.flow)
            start = 0
            while start < m:
                hessian_tile(problem, state, work, size, first, end, other_first, other_end, start,
                             min(<ptr_t> TILE, m - start))
                state.counters.nonzeros += (end - first) * (other_end - other_first) * TILE // 8
                if interrupted(state):
                    return
                start += TILE
            other_first = other_end
        first = end


cdef void finish_tiles(const problem_t* problem, workset_t* work) noexcept nogil:
    """Less W_a W_b under one Z, and the upper triangle."""
    cdef ptr_t size = work.size, a, b
    for a in range(size):
        for b in range(a):
            if problem.pooled:
                work.exact[a * size + b] -= model_mean(problem, work, a) * model_mean(problem, work, b)
            work.exact[b * size + a] = work.exact[a * size + b]
        work.exact[a * size + a] = work.step[a]


cdef void mirror(float* matrix, ptr_t size) noexcept nogil:
    """The upper triangle from the lower one, square by square."""
    cdef ptr_t a = 0, b, i, j
    while a < size:
        b = 0
        while b <= a:
            for i in range(a, min(a + SQUARE, size)):
                for j in range(b, min(b + SQUARE, i)):
                    matrix[j * size + i] = matrix[i * size + j]
            b += SQUARE
        a += SQUARE


cdef double negligible(const problem_t* problem, const state_t* state, double precision) noexcept nogil:
    """What a Hessian may lack whose model is minimised to this precision: see choose_entries."""
    cdef bint far = not problem.pooled and state.dual_gap > FAR_GAP * fabs(state.objective_zero)
    if precision <= EXACT:
        return 0.0
    return min(max(10.0 * precision, LEAST_NEGLIGIBLE if far else 0.0), MAX_NEGLIGIBLE)


cdef bint form_hessian(const problem_t* problem, state_t* state, workset_t* work, bint coupled,
                       double precision) noexcept nogil:
    """The Hessian, about as precise as its model will be minimised, and the slope; false if out of memory."""
    cdef ptr_t size = work.size, slot, k
    cdef pair_t moments
    cdef bint dense = problem.X.indptr == NULL
    if not reserve_hessian(work, size, dense):
        return False
    for slot in range(size):
        k = work.coords[slot]
        moments = coordinate_moments(problem, state, k // problem.n_coords, k % problem.n_coords)
        work.slope[slot] = moments.first - problem.emp_mean[k]
        work.step[slot] = moments.second
    if dense:
        memset(work.exact, 0, size * size * sizeof(double))
        hessian_by_tiles(problem, state, work)
        finish_tiles(problem, work)
    else:
        if not reserve_marks(work, count_entries(problem, work)):
            return False
        choose_entries(problem, state, work, negligible(problem, state, precision))
        if not reserve_entries(work, work.row_start[problem.X.n_rows], problem.X.values != NULL, coupled):
            return False
        form_dropped(problem, state, work, coupled)
        hessian_by_rows(problem, state, work, coupled)
        mirror(work.hessian, size)
    return True
