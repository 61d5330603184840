"""How a column, or a row, is walked: what the core does along one for a vector over the other is here.

`_hessian` goes along columns by `row_at` and `value_at` of here; `_panel` goes along rows for many classes at once;
`_boosting`, `_coupled` and `_partition` look rows up to give them other numbers.

Each walker is written once; the tests on rows and values do not change inside its loop and the compiler takes
them out of it (measured: no dearer than four copies of the loop). Sums over a gather use several accumulators, since
without -ffast-math the compiler must not split one.
"""
from libc.math cimport exp, expm1, fabs

from sl1max._core._dense cimport exp_all
from sl1max._core._margin cimport margin_weight
from sl1max._core._types cimport column_t, columns_t, idx_t, pair_t, ptr_t


cdef extern from *:
    """
    #include <stdint.h>
    /* Fresh, a z per example lies between 1 and the number of cells. Kept up by differences outside these bounds
       it would lose too many digits. */
    #define SL1MAX_MIN_Z 1e-4
    #define SL1MAX_MAX_Z 1e6
    /* Values of a column whose exponentials are taken at once. */
    #define SL1MAX_ROOM 64
    /* Rows far apart come from memory one by one, unless they are asked for before they are needed. */
    #if defined(__GNUC__)
    #define SL1MAX_PREFETCH(place) __builtin_prefetch(place)
    #else
    #define SL1MAX_PREFETCH(place) ((void) (place))
    #endif
    /* Two at a time, since what a tilt waits for is its division: returns how many rows are done. */
    static inline int64_t sl1max_tilt_pairs(const int32_t *rows, int64_t size, double growth, double *q)
    {
        int64_t p = 0;
    #if defined(__GNUC__)
        typedef double pair __attribute__((vector_size(16)));
        for (; p + 2 <= size; p += 2) {
            const pair before = {q[rows[p]], q[rows[p + 1]]}, rise = before * growth;
            const pair after = (before + rise) / (1.0 + rise);
            q[rows[p]] = after[0];
            q[rows[p + 1]] = after[1];
        }
    #endif
        return p;
    }
    """
    const double MIN_Z "SL1MAX_MIN_Z"
    const double MAX_Z "SL1MAX_MAX_Z"
    enum: ROOM "SL1MAX_ROOM"
    void prefetch "SL1MAX_PREFETCH"(const void* place) noexcept nogil
    ptr_t tilt_pairs "sl1max_tilt_pairs"(const idx_t* rows, ptr_t size, double growth, double* q) noexcept nogil


cdef inline column_t get_column(const columns_t* X, ptr_t j) noexcept nogil:
    """Column j of X; column n_cols is the constant one of the intercept."""
    cdef column_t column
    cdef ptr_t start
    if j == X.n_cols:
        column.size, column.rows, column.values = X.n_rows, NULL, NULL
    elif X.indptr == NULL:
        column.size, column.rows, column.values = X.n_rows, NULL, X.values + j * X.n_rows
    else:
        start = X.indptr[j]
        column.size = X.indptr[j + 1] - start
        column.rows = X.rows + start
        column.values = NULL if X.values == NULL else X.values + start
    return column


cdef inline idx_t row_at(column_t column, ptr_t p) noexcept nogil:
    return <idx_t> p if column.rows == NULL else column.rows[p]


cdef inline double value_at(column_t column, ptr_t p) noexcept nogil:
    return 1.0 if column.values == NULL else column.values[p]


cdef inline double column_dot(column_t column, const double* vector) noexcept nogil:
    """x @ vector"""
    cdef double sum0 = 0.0, sum1 = 0.0, sum2 = 0.0, sum3 = 0.0
    cdef ptr_t p = 0, end = column.size - 3
    while p < end:
        sum0 += value_at(column, p) * vector[row_at(column, p)]
        sum1 += value_at(column, p + 1) * vector[row_at(column, p + 1)]
        sum2 += value_at(column, p + 2) * vector[row_at(column, p + 2)]
        sum3 += value_at(column, p + 3) * vector[row_at(column, p + 3)]
        p += 4
    while p < column.size:
        sum0 += value_at(column, p) * vector[row_at(column, p)]
        p += 1
    return (sum0 + sum1) + (sum2 + sum3)


cdef inline void column_axpy(column_t column, double a, double* vector) noexcept nogil:
    """vector += a * x"""
    cdef ptr_t p
    for p in range(column.size):
        vector[row_at(column, p)] += a * value_at(column, p)


cdef inline bint transpose_rows(ptr_t n_rows, ptr_t n_cols, const ptr_t* indptr, const idx_t* indices,
                                const double* values, ptr_t* start_out, idx_t* rows_out,
                                double* values_out) noexcept nogil:
    """Columns from rows, or rows from columns, each in order of what it is made from. start_out holds zeros.

    Returns whether the indices of each row ascend, so that none is there twice.
    """
    cdef ptr_t i, j, p, place
    cdef idx_t before
    cdef bint ascending = True
    for i in range(n_rows):
        before = -1
        for p in range(indptr[i], indptr[i + 1]):
            ascending &= indices[p] > before
            before = indices[p]
            start_out[before + 1] += 1
    for j in range(n_cols):
        start_out[j + 1] += start_out[j]
    for i in range(n_rows):
        for p in range(indptr[i], indptr[i + 1]):
            place = start_out[indices[p]]
            start_out[indices[p]] = place + 1
            rows_out[place] = <idx_t> i
            if values != NULL:
                values_out[place] = values[p]
    # Filling moved every start to the next column's: move them back.
    for j in range(n_cols, 0, -1):
        start_out[j] = start_out[j - 1]
    start_out[0] = 0
    return ascending


cdef inline ptr_t row_axpy(const columns_t* X, ptr_t i, double a, double* vector) noexcept nogil:
    """vector += a * (row i of X), by the index of rows; returns how many nonzeros the row has."""
    cdef ptr_t p, start = X.row_start[i], end = X.row_start[i + 1]
    for p in range(start, end):
        vector[X.row_cols[p]] += a if X.row_values == NULL else a * X.row_values[p]
    return end - start


cdef inline void expect_row(const columns_t* X, ptr_t i) noexcept nogil:
    """Row i will be walked soon."""
    prefetch(X.row_cols + X.row_start[i])
    prefetch(X.row_cols + X.row_start[i + 1] - 1)
    if X.row_values != NULL:
        prefetch(X.row_values + X.row_start[i])


cdef inline ptr_t row_axpy_split(const columns_t* X, ptr_t i, double a, double* above, double* below) noexcept nogil:
    """above += a * max(x, 0) and below += a * max(-x, 0), where x is row i of X; returns its number of nonzeros."""
    cdef ptr_t p, start = X.row_start[i], end = X.row_start[i + 1]
    if X.row_values == NULL:
        return row_axpy(X, i, a, above)
    for p in range(start, end):
        if X.row_values[p] > 0.0:
            above[X.row_cols[p]] += a * X.row_values[p]
        else:
            below[X.row_cols[p]] -= a * X.row_values[p]
    return end - start


cdef inline pair_t column_moments_pooled(column_t column, const double* weight) noexcept nogil:
    """x @ weight, (x * x) @ weight: to be divided by the one z."""
    cdef pair_t moments
    cdef double x, first0 = 0.0, first1 = 0.0, second0 = 0.0, second1 = 0.0, w
    cdef ptr_t p = 0, end = column.size - 1
    if column.values == NULL:
        moments.first = column_dot(column, weight)
        moments.second = moments.first
        return moments
    while p < end:
        x = value_at(column, p)
        w = x * weight[row_at(column, p)]
        first0 += w
        second0 += x * w
        x = value_at(column, p + 1)
        w = x * weight[row_at(column, p + 1)]
        first1 += w
        second1 += x * w
        p += 2
    if p < column.size:
        x = value_at(column, p)
        w = x * weight[row_at(column, p)]
        first0 += w
        second0 += x * w
    moments.first = first0 + first1
    moments.second = second0 + second1
    return moments


cdef inline pair_t column_moments(column_t column, const double* weight, const double* inv_z,
                                  const double* mass, double common_mass) noexcept nogil:
    """(u * x) @ q and (u * x * x) @ (q * (1 - q)), where q = weight * inv_z: one z per example."""
    cdef pair_t moments
    cdef double x, q, first = 0.0, second = 0.0, u
    cdef idx_t i
    cdef ptr_t p
    if common_mass > 0.0:
        for p in range(column.size):
            i = row_at(column, p)
            x = value_at(column, p)
            q = weight[i] * inv_z[i]
            first += x * q
            second += x * x * (q - q * q)
        moments.first = first * common_mass
        moments.second = second * common_mass
        return moments
    for p in range(column.size):
        i = row_at(column, p)
        x = value_at(column, p)
        q = weight[i] * inv_z[i]
        u = mass[i]
        first += u * (x * q)
        second += u * (x * x * (q - q * q))
    moments.first = first
    moments.second = second
    return moments


cdef inline pair_t column_moments_binary(column_t column, const double* q, const double* mass,
                                         double common_mass) noexcept nogil:
    """(u * x) @ q and (u * x * x) @ (q * (1 - q)): a cell and its reference, q the probability of the cell."""
    cdef pair_t moments
    cdef double x, first0 = 0.0, first1 = 0.0, second0 = 0.0, second1 = 0.0, u, v
    cdef idx_t i, k
    cdef ptr_t p = 0, end = column.size - 1
    cdef bint common = common_mass > 0.0
    while p < end:
        i = row_at(column, p)
        k = row_at(column, p + 1)
        u = q[i] * value_at(column, p)
        v = q[k] * value_at(column, p + 1)
        if not common:
            u *= mass[i]
            v *= mass[k]
        first0 += u
        first1 += v
        second0 += u * (value_at(column, p) * (1.0 - q[i]))
        second1 += v * (value_at(column, p + 1) * (1.0 - q[k]))
        p += 2
    if p < column.size:
        i = row_at(column, p)
        x = value_at(column, p)
        u = q[i] * x if common else q[i] * x * mass[i]
        first0 += u
        second0 += u * (x * (1.0 - q[i]))
    moments.first = first0 + first1
    moments.second = second0 + second1
    if common:
        moments.first *= common_mass
        moments.second *= common_mass
    return moments


cdef inline ptr_t grow_values(column_t column, ptr_t p, double delta, double* growth_out) noexcept nogil:
    """e^{delta x} of the values from p on, as many as there is room for; returns how many."""
    cdef ptr_t k, size = min(<ptr_t> ROOM, column.size - p)
    for k in range(size):
        growth_out[k] = delta * column.values[p + k]
    exp_all(growth_out, size)
    return size


cdef inline void column_tilt(column_t column, double delta, double* q) noexcept nogil:
    """q = q e^{delta x} / (1 - q + q e^{delta x}): a cell against its reference."""
    cdef double common = expm1(delta), rise
    cdef double growth[ROOM]
    cdef idx_t i
    cdef ptr_t p = 0, k, size
    if column.values == NULL:
        if column.rows != NULL:
            p = tilt_pairs(column.rows, column.size, common, q)
        for p in range(p, column.size):
            i = row_at(column, p)
            rise = q[i] * common
            q[i] = (q[i] + rise) / (1.0 + rise)
        return
    while p < column.size:
        size = grow_values(column, p, delta, growth)
        for k in range(size):
            i = row_at(column, p + k)
            rise = q[i] * (growth[k] - 1.0)
            q[i] = (q[i] + rise) / (1.0 + rise)
        p += size


cdef inline void column_add_weighted(column_t column, double a, const double* weight, double* vector) noexcept nogil:
    """vector += a * x * weight"""
    cdef idx_t i
    cdef ptr_t p
    for p in range(column.size):
        i = row_at(column, p)
        vector[i] += a * value_at(column, p) * weight[i]


cdef inline double column_scale(column_t column, double delta, double* weight) noexcept nogil:
    """weight *= exp(delta * x), for one z; returns by how much the sum of weights grew, to the last digit."""
    cdef double factor = exp(delta), growth = expm1(delta), added, change = 0.0
    cdef idx_t i
    cdef ptr_t p
    if column.values == NULL:
        for p in range(column.size):
            i = row_at(column, p)
            change += weight[i]
            weight[i] *= factor
        return growth * change
    for p in range(column.size):
        i = row_at(column, p)
        added = weight[i] * expm1(delta * value_at(column, p))
        weight[i] += added
        change += added
    return change


cdef inline bint scale_cell(idx_t i, double factor, double* weight, double* z, double* inv_z) noexcept nogil:
    """weight[i] *= factor and the z of the example; true if that has to be refreshed."""
    cdef double before = weight[i], after = before * factor, new_z = z[i] + (after - before)
    weight[i] = after
    z[i] = new_z
    inv_z[i] = 1.0 / new_z
    return not MIN_Z < new_z < MAX_Z


cdef inline bint column_scale_each(column_t column, double delta, double* weight,
                                   double* z, double* inv_z) noexcept nogil:
    """weight *= exp(delta * x) and the z of every example it touches; true if one has to be refreshed."""
    cdef double factor = exp(delta)
    cdef double growth[ROOM]
    cdef bint lost = False
    cdef ptr_t p = 0, k, size
    if column.values == NULL:
        for p in range(column.size):
            lost |= scale_cell(row_at(column, p), factor, weight, z, inv_z)
        return lost
    while p < column.size:
        size = grow_values(column, p, delta, growth)
        for k in range(size):
            lost |= scale_cell(row_at(column, p + k), growth[k], weight, z, inv_z)
        p += size
    return lost


cdef inline pair_t column_split(column_t column, const double* vector) noexcept nogil:
    """Sums of the positive and of the negative x * vector, both as positive numbers."""
    cdef pair_t sums
    cdef double product, above0 = 0.0, above1 = 0.0, below0 = 0.0, below1 = 0.0
    cdef ptr_t p = 0, end = column.size - 1
    while p < end:
        product = value_at(column, p) * vector[row_at(column, p)]
        above0 += max(product, 0.0)
        below0 += max(-product, 0.0)
        product = value_at(column, p + 1) * vector[row_at(column, p + 1)]
        above1 += max(product, 0.0)
        below1 += max(-product, 0.0)
        p += 2
    if p < column.size:
        product = value_at(column, p) * vector[row_at(column, p)]
        above0 += max(product, 0.0)
        below0 += max(-product, 0.0)
    sums.first = above0 + above1
    sums.second = below0 + below1
    return sums


cdef inline void column_boost(column_t column, double delta, const double* signed_mass, double* score, double* flow,
                              double* growth_out, bint exponential) noexcept nogil:
    """score += delta * x and, for the rows it touches, flow = signed_mass * margin_weight; growth of |flow| in each."""
    cdef double before
    cdef idx_t i
    cdef ptr_t p
    for p in range(column.size):
        i = row_at(column, p)
        before = fabs(flow[i])
        score[i] += delta * value_at(column, p)
        flow[i] = signed_mass[i] * margin_weight(score[i] if signed_mass[i] > 0.0 else -score[i], exponential)
        growth_out[p] = fabs(flow[i]) - before
