"""The Hessian of the loss on a working set, and its gradient there.

With u q the probability mass of a cell and x the column of a coordinate it is:

    one Z            sum_i q_c x_a x_b [same block]  -  W_a W_b
    one Z per row    sum_i u q_c x_a x_b ([same block] - q_d)

Entries in rows of little curvature are not multiplied out: those of a column are taken as equal. The intercept is one
more column, of ones, without penalty.
"""
from libc.math cimport fabs, sqrt
from libc.stdint cimport INT32_MAX
from libc.stdlib cimport free
from libc.string cimport memcpy, memset

from sl1max._core._column cimport column_dot, get_column, row_at, value_at
from sl1max._core._dense cimport dot4x2
from sl1max._core._memory cimport replace_buffer
from sl1max._core._normalizer cimport (
    coordinate_moments, fill_cell_curvature, fill_cell_mass, interrupted, walk,
)
from sl1max._core._quadratic_model cimport quadratic_t, reserve_matrix
from sl1max._core._types cimport column_t, idx_t, options_t, pair_t, problem_t, ptr_t, state_t
from sl1max._core._working_set cimport working_set_t


cdef extern from *:
    """
    /* Rows of dense columns that are taken at a time: some hundred columns of them fit into the second-level cache. */
    #define SL1MAX_TILE 256
    /* Rows and columns of a matrix that are mirrored at a time. */
    #define SL1MAX_SQUARE 32
    """
    enum: TILE "SL1MAX_TILE"
    const ptr_t SQUARE "SL1MAX_SQUARE"


cdef bint reserve_marks(entries_t* entries, ptr_t n_entries) noexcept nogil:
    if n_entries > INT32_MAX:       # rows count their entries in idx_t
        return False
    if n_entries > entries.mark_capacity:
        entries.mark_capacity = 0
        if not replace_buffer(<void**> &entries.is_kept, n_entries):
            return False
        entries.mark_capacity = n_entries
    return True


cdef bint reserve_kept(entries_t* entries, ptr_t n_entries, bint valued, bint coupled) noexcept nogil:
    """Room for entries that are kept; whether they have values, and couple blocks, is the same every time."""
    if n_entries > entries.capacity:
        entries.capacity = 0
        if not (replace_buffer(<void**> &entries.pos, n_entries * sizeof(idx_t))
                and (not valued or replace_buffer(<void**> &entries.value, n_entries * sizeof(double)))
                and (not coupled or replace_buffer(<void**> &entries.prob, n_entries * sizeof(double)))):
            return False
        entries.capacity = n_entries
    return True


cdef bint reserve_rows(entries_t* entries, ptr_t size) noexcept nogil:
    cdef ptr_t n_bytes = size * sizeof(double)
    if size > entries.vector_capacity:
        entries.vector_capacity = 0
        if not (replace_buffer(<void**> &entries.row, n_bytes)
                and replace_buffer(<void**> &entries.scale, n_bytes)
                and replace_buffer(<void**> &entries.all, n_bytes)
                and replace_buffer(<void**> &entries.part, n_bytes)):
            return False
        entries.vector_capacity = size
    return True


cdef void release_entries(entries_t* entries) noexcept nogil:
    free(entries.is_kept)
    free(entries.pos)
    free(entries.value)
    free(entries.prob)
    free(entries.row)
    free(entries.scale)
    free(entries.all)
    free(entries.part)


cdef ptr_t count_entries(const problem_t* problem, const working_set_t* working) noexcept nogil:
    """Nonzeros of the working set's columns."""
    cdef ptr_t pos, total = 0
    for pos in range(working.size):
        total += get_column(&problem.X, working.coords[pos] % problem.n_coords).size
    return total


cdef void fill_row_curvature(const problem_t* problem, const state_t* state, double* out) noexcept nogil:
    """Sum over the blocks c of u q_c (1 - q_c), or of q_c under one Z, for every row."""
    cdef ptr_t m = problem.X.n_rows, c, i
    cdef double q
    memset(out, 0, m * sizeof(double))
    for c in range(problem.n_blocks):
        for i in range(m):
            if problem.pooled:
                out[i] += state.weight[c * m + i] * state.inv_z[0]
            else:
                q = state.weight[c * m + i] * state.inv_z[i]
                out[i] += problem.mass[i] * (q - q * q)


cdef void choose_entries(const problem_t* problem, state_t* state, const working_set_t* working, entries_t* entries,
                         const quadratic_t* model, double least) noexcept nogil:
    """is_kept: the entries that contribute at least `least` of the average contribution in their column.

    Two entries of a row are multiplied if both are kept. The slope and the Hessian's diagonal are always those of all
    entries: what the rest of the Hessian lacks slows convergence a little and does not change the limit.
    """
    cdef ptr_t m = problem.X.n_rows, i, pos, p, e = 0
    cdef double threshold
    cdef unsigned char keep
    cdef column_t column
    fill_row_curvature(problem, state, entries.row_curvature)
    memset(entries.row_start, 0, (m + 1) * sizeof(idx_t))
    memset(entries.is_partial, 0, m)
    for pos in range(working.size):
        column = walk(problem, state, working.coords[pos] % problem.n_coords)
        threshold = least * model.diagonal[pos] / column.size
        for p in range(column.size):
            i = row_at(column, p)
            keep = entries.row_curvature[i] * value_at(column, p) * value_at(column, p) >= threshold
            entries.is_kept[e] = keep
            entries.row_start[i + 1] += keep
            entries.is_partial[i] |= not keep
            e += 1
    for i in range(m):
        entries.row_start[i + 1] += entries.row_start[i]


cdef idx_t append_entry(const problem_t* problem, const state_t* state, const working_set_t* working,
                        entries_t* entries, ptr_t pos, idx_t i, double value, bint coupled) noexcept nogil:
    """Append an entry to those that row i has of the positions before; returns its place."""
    cdef idx_t place = entries.row_end[i]
    cdef ptr_t c
    entries.row_end[i] = place + 1
    entries.pos[place] = <idx_t> pos
    if problem.X.values != NULL:
        entries.value[place] = value
    if coupled:
        c = working.coords[pos] // problem.n_coords
        entries.prob[place] = state.weight[c * problem.X.n_rows + i] * state.inv_z[i]
    return place


cdef void add_entries(const problem_t* problem, state_t* state, const working_set_t* working, entries_t* entries,
                      ptr_t pos, ptr_t block_pos, bint coupled, const unsigned char* is_kept) noexcept nogil:
    """Add the products of the kept entries to one row of the Hessian, up to its diagonal.

    Positions come in ascending order: a row of X holds by then the entries up to this position's.
    """
    cdef column_t column = walk(problem, state, working.coords[pos] % problem.n_coords)
    cdef bint binary = problem.X.values == NULL
    cdef double* row_out = entries.row
    cdef ptr_t p
    cdef idx_t i, e, start, place
    cdef double factor
    for p in range(column.size):
        if not is_kept[p]:
            continue
        i = row_at(column, p)
        place = append_entry(problem, state, working, entries, pos, i, value_at(column, p), coupled)
        factor = entries.cell_curvature[i] * value_at(column, p)
        start = entries.row_start[i]
        state.counters.nonzeros += place + 1 - start
        if coupled:
            for e in range(start, place + 1):
                row_out[entries.pos[e]] -= factor * entries.prob[e] * (1.0 if binary else entries.value[e])
        while entries.pos[start] < block_pos:
            start += 1
        for e in range(start, place + 1):
            row_out[entries.pos[e]] += factor if binary else factor * entries.value[e]


cdef void form_slope(const problem_t* problem, state_t* state, const working_set_t* working,
                     quadratic_t* model) noexcept nogil:
    """slope = model_mean - emp_mean on the working set's coordinates"""
    cdef ptr_t pos, k, c, last = -1
    for pos in range(working.size):
        k = working.coords[pos]
        c = k // problem.n_coords
        if c != last:
            fill_cell_mass(problem, state, c, state.cell_mass)
            last = c
        model.slope[pos] = (column_dot(walk(problem, state, k % problem.n_coords), state.cell_mass)
                            - problem.emp_mean[k])


cdef ptr_t block_end(const problem_t* problem, const working_set_t* working, ptr_t pos) noexcept nogil:
    """The first position after the given one that belongs to another block."""
    cdef ptr_t c = working.coords[pos] // problem.n_coords
    while pos < working.size and working.coords[pos] // problem.n_coords == c:
        pos += 1
    return pos


cdef double select_partial_rows(const problem_t* problem, const state_t* state, entries_t* entries,
                                ptr_t c) noexcept nogil:
    """cell_curvature of block c, zero in rows whose entries were all kept; returns its sum."""
    cdef ptr_t i
    cdef double total = 0.0
    fill_cell_curvature(problem, state, c, c, entries.cell_curvature)
    for i in range(problem.X.n_rows):
        if not entries.is_partial[i]:
            entries.cell_curvature[i] = 0.0
        total += entries.cell_curvature[i]
    return total


cdef void form_dropped(const problem_t* problem, state_t* state, const working_set_t* working, entries_t* entries,
                       bint coupled) noexcept nogil:
    """Entries that were not kept add all[a] all[b] - part[a] part[b] to entry (a, b) of the Hessian within a block.

    In rows x = kept + dropped, whose weights sum to T, dropped is replaced by its mean. With all and part the weighted
    sums of x and of kept, divided by the root of T, that gives their second moment, so the result is positive
    semidefinite. Of coupled blocks less is subtracted: there the dropped entries count alone.
    """
    cdef ptr_t pos, first = 0, end, p, e = 0
    cdef double total, whole, kept
    cdef column_t column
    while first < working.size:
        end = block_end(problem, working, first)
        total = select_partial_rows(problem, state, entries, working.coords[first] // problem.n_coords)
        for pos in range(first, end):
            column = walk(problem, state, working.coords[pos] % problem.n_coords)
            whole = kept = 0.0
            for p in range(column.size):
                whole += value_at(column, p) * entries.cell_curvature[row_at(column, p)]
                if entries.is_kept[e]:
                    kept += value_at(column, p) * entries.cell_curvature[row_at(column, p)]
                e += 1
            if coupled:
                whole -= kept
                kept = 0.0
            entries.all[pos] = whole / sqrt(total) if total > 0.0 else 0.0
            entries.part[pos] = kept / sqrt(total) if total > 0.0 else 0.0
        first = end


cdef inline double model_mean(const problem_t* problem, const working_set_t* working, const quadratic_t* model,
                              ptr_t pos) noexcept nogil:
    return model.slope[pos] + problem.emp_mean[working.coords[pos]]


cdef void store_row(const problem_t* problem, const working_set_t* working, entries_t* entries, quadratic_t* model,
                    ptr_t pos) noexcept nogil:
    """Round one row of the Hessian up to its diagonal; under one Z, subtract W_a W_b first.

    The diagonal is the exact one. A row and column whose diagonal would be larger are scaled down to it.
    """
    cdef ptr_t other
    cdef double* row = entries.row
    cdef double* scale = entries.scale
    cdef double exact = model.diagonal[pos]
    cdef float* row_out = model.single + pos * model.size
    if problem.pooled:
        for other in range(pos + 1):
            row[other] -= model_mean(problem, working, model, pos) * model_mean(problem, working, model, other)
    scale[pos] = sqrt(max(exact, 0.0) / row[pos]) if row[pos] > exact else 1.0
    for other in range(pos):
        row_out[other] = <float> (row[other] * scale[pos] * scale[other])
    row_out[pos] = <float> exact


cdef void hessian_by_rows(const problem_t* problem, state_t* state, const working_set_t* working, entries_t* entries,
                          quadratic_t* model, bint coupled) noexcept nogil:
    """Lower triangle for sparse columns, from the entries of each row."""
    cdef ptr_t pos, other, block_pos = 0, next_block = 0, c, e = 0
    memcpy(entries.row_end, entries.row_start, problem.X.n_rows * sizeof(idx_t))
    for pos in range(working.size):
        if pos == next_block:
            block_pos = pos
            next_block = block_end(problem, working, pos)
            c = working.coords[pos] // problem.n_coords
            # Where blocks are coupled the second derivative is u q_c ([same block] - q_d): add_entries subtracts q_d.
            if coupled:
                fill_cell_mass(problem, state, c, entries.cell_curvature)
            else:
                fill_cell_curvature(problem, state, c, c, entries.cell_curvature)
        memset(entries.row, 0, (pos + 1) * sizeof(double))
        add_entries(problem, state, working, entries, pos, block_pos, coupled, entries.is_kept + e)
        e += get_column(&problem.X, working.coords[pos] % problem.n_coords).size
        for other in range(block_pos, pos + 1):
            entries.row[other] += entries.all[pos] * entries.all[other] - entries.part[pos] * entries.part[other]
        store_row(problem, working, entries, model, pos)
        if interrupted(state):
            return


cdef inline const double* dense_values(const problem_t* problem, const working_set_t* working, ptr_t pos, ptr_t start,
                                       const double* ones) noexcept nogil:
    """Values of a dense column from row start on; the intercept's are ones."""
    cdef column_t column = get_column(&problem.X, working.coords[pos] % problem.n_coords)
    return ones if column.values == NULL else column.values + start


cdef void add_tile(const problem_t* problem, const working_set_t* working, const double* curvature,
                   quadratic_t* model, ptr_t first, ptr_t end, ptr_t other_first, ptr_t other_end, ptr_t start,
                   ptr_t length) noexcept nogil:
    """Add the products in rows start..start+length of X to rows first..end, columns other_first..other_end.

    x_a * curvature for four positions at a time, each against every x_b, two at a time.
    """
    cdef ptr_t size = model.size, a, b, r, i, band, limit
    cdef double weighted[4 * TILE]
    cdef double ones[TILE]
    cdef double sums[8]
    cdef const double* x
    for i in range(TILE):
        ones[i] = 1.0
    for a in range(first, end, 4):
        band = min(4, end - a)
        for r in range(4):
            x = dense_values(problem, working, a + min(r, band - 1), start, ones)
            for i in range(length):
                weighted[r * TILE + i] = curvature[start + i] * x[i]
        limit = min(other_end, a + band)
        for b in range(other_first, limit, 2):
            dot4x2(weighted, TILE, dense_values(problem, working, b, start, ones),
                   dense_values(problem, working, min(b + 1, limit - 1), start, ones), length, sums)
            for r in range(band):
                model.exact[(a + r) * size + b] += sums[r]
                if b + 1 < limit:
                    model.exact[(a + r) * size + b + 1] += sums[4 + r]


cdef void hessian_by_tiles(const problem_t* problem, state_t* state, const working_set_t* working, entries_t* entries,
                           quadratic_t* model) noexcept nogil:
    """Lower triangle for dense columns: a few hundred rows at a time, which stay in the cache."""
    cdef ptr_t size = model.size, m = problem.X.n_rows, first = 0, end, other_first, other_end, start
    while first < size:
        end = block_end(problem, working, first)
        # Under one Z the blocks only share the product of means.
        other_first = first if problem.pooled else 0
        while other_first < end:
            other_end = block_end(problem, working, other_first)
            fill_cell_curvature(problem, state, working.coords[first] // problem.n_coords,
                                working.coords[other_first] // problem.n_coords, entries.cell_curvature)
            start = 0
            while start < m:
                add_tile(problem, working, entries.cell_curvature, model, first, end, other_first, other_end, start,
                         min(<ptr_t> TILE, m - start))
                state.counters.nonzeros += (end - first) * (other_end - other_first) * TILE // 8
                if interrupted(state):
                    return
                start += TILE
            other_first = other_end
        first = end


cdef void finish_tiles(const problem_t* problem, const working_set_t* working, quadratic_t* model) noexcept nogil:
    """Subtract W_a W_b under one Z, and fill the upper triangle."""
    cdef ptr_t size = model.size, a, b
    for a in range(size):
        for b in range(a):
            if problem.pooled:
                model.exact[a * size + b] -= (
                    model_mean(problem, working, model, a) * model_mean(problem, working, model, b))
            model.exact[b * size + a] = model.exact[a * size + b]
        model.exact[a * size + a] = model.diagonal[a]


cdef void mirror(float* matrix, ptr_t size) noexcept nogil:
    """Copy the lower triangle to the upper one, square by square."""
    cdef ptr_t a = 0, b, i, j
    while a < size:
        b = 0
        while b <= a:
            for i in range(a, min(a + SQUARE, size)):
                for j in range(b, min(b + SQUARE, i)):
                    matrix[j * size + i] = matrix[i * size + j]
            b += SQUARE
        a += SQUARE


cdef double negligible_share(const problem_t* problem, const state_t* state, const options_t* options,
                             double precision) noexcept nogil:
    """The `least` of choose_entries for a Hessian whose model is minimised to this precision."""
    cdef bint is_far = not problem.pooled and state.dual_gap > options.far_gap * fabs(state.objective_zero)
    if precision <= options.exact_precision:
        return 0.0
    return min(max(10.0 * precision, options.least_negligible if is_far else 0.0), options.max_negligible)


cdef bint form_hessian(const problem_t* problem, state_t* state, const options_t* options,
                       const working_set_t* working, entries_t* entries, quadratic_t* model, bint coupled,
                       double precision) noexcept nogil:
    """The Hessian, about as precise as the model will be minimised, and the slope; false if out of memory.

    There must be room for the vectors of the model.
    """
    cdef ptr_t size = working.size, pos, k
    cdef pair_t moments
    cdef bint dense = problem.X.indptr == NULL
    model.size = size
    if not reserve_matrix(model, size, dense):
        return False
    for pos in range(size):
        k = working.coords[pos]
        moments = coordinate_moments(problem, state, k // problem.n_coords, k % problem.n_coords)
        model.slope[pos] = moments.first - problem.emp_mean[k]
        model.diagonal[pos] = moments.second
    if dense:
        memset(model.exact, 0, size * size * sizeof(double))
        hessian_by_tiles(problem, state, working, entries, model)
        finish_tiles(problem, working, model)
    else:
        if not (reserve_rows(entries, size) and reserve_marks(entries, count_entries(problem, working))):
            return False
        choose_entries(problem, state, working, entries, model, negligible_share(problem, state, options, precision))
        if not reserve_kept(entries, entries.row_start[problem.X.n_rows], problem.X.values != NULL, coupled):
            return False
        form_dropped(problem, state, working, entries, coupled)
        hessian_by_rows(problem, state, working, entries, model, coupled)
        mirror(model.single, size)
    return True
