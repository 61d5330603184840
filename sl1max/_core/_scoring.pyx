"""Scores of examples under sparse weights, and the best classes of each, for prediction.

    score[i, c] = constant[c] + offset[i, c] + sum_j X[i, j] lam[c, j]

The weights are stored by feature: for each its classes and their lam. A row of X adds up the lists of its
nonzeros, so it costs the weights it meets, whatever the number of features and classes; scipy's dense
product costs n_classes per nonzero. What the plain loop over short lists loses is wrong guesses of their
ends, so features without weights are sorted out first and lists are filled up to multiples of GROUP with
zeros for classes that do not exist (measured: 1.8 times as fast). Dense rows are taken LANES at a time, so
that each weight is read once for all of them and the adding is vectorised. The top k are picked while the
row of scores is still in cache: one row for each call, never n_samples x n_classes.

Threads are the caller's: every function does the rows first..last of arrays that several calls may share.
"""
from libc.string cimport memcpy

import numpy as np

from sl1max._core._column cimport get_column, row_at, value_at
from sl1max._core._types cimport column_t, columns_t, idx_t, ptr_t


cdef enum:
    GROUP = 4
    LANES = 8


cdef struct weights_t:
    idx_t n_classes             # scores have GROUP more entries, for the classes that do not exist
    const idx_t* start          # (n_features + 1,) in groups
    const idx_t* classes        # GROUP * start[n_features]
    const double* values


cdef struct ranked_t:
    double score
    idx_t c


cdef class Rows:
    """The rows of X, by reference.

    Parameters
    ----------
    n_rows, n_features : int
    indptr : int64 array of shape (n_rows + 1,), or None for dense rows
    indices : int32 array of column numbers, or None for dense rows
    values : float64 array beside `indices`, or None if every value is one; dense: the matrix, row after row
    """
    cdef columns_t view         # the columns of X transposed
    cdef ptr_t longest          # the most entries in a sparse row, and one at least
    cdef object owned

    def __init__(self, idx_t n_rows, idx_t n_features, const ptr_t[::1] indptr, const idx_t[::1] indices,
                 const double[::1] values):
        self.owned = (indptr, indices, values)
        self.view.n_rows = n_features
        self.view.n_cols = n_rows
        self.view.indptr = NULL if indptr is None else &indptr[0]
        self.view.rows = NULL if indices is None or indices.shape[0] == 0 else &indices[0]
        self.view.values = NULL if values is None or values.shape[0] == 0 else &values[0]
        self.longest = 1 if indptr is None else max(np.diff(indptr).max(initial=0), 1)

    n_rows = property(lambda self: (<Rows> self).view.n_cols)


cdef class Weights:
    """The weights by feature: j has ``values[p]`` for class ``classes[p]``, p in indptr[j]..indptr[j + 1].

    Parameters
    ----------
    n_classes : int
    indptr, classes : int arrays of shape (n_features + 1,) and (n_weights,)
    values : float64 array of shape (n_weights,)
    """
    cdef weights_t view
    cdef object owned

    def __init__(self, idx_t n_classes, indptr, classes, values):
        cdef const idx_t[::1] start, all_classes
        cdef const double[::1] all_values
        counts = np.diff(indptr)
        n_groups = (counts + GROUP - 1) // GROUP
        starts = np.zeros(len(indptr), np.int32)
        np.cumsum(n_groups, out=starts[1:])
        # At least one group, so that there is something to point at.
        size = GROUP * max(n_groups.sum(), 1)
        padded_classes = n_classes + np.arange(size, dtype=np.int32) % GROUP
        padded_values = np.zeros(size)
        place = np.arange(len(classes)) + np.repeat((GROUP * starts - indptr)[:len(counts)], counts)
        padded_classes[place] = classes
        padded_values[place] = values
        start, all_classes, all_values = starts, padded_classes, padded_values
        self.owned = (start, all_classes, all_values)
        self.view.n_classes = n_classes
        self.view.start = &start[0]
        self.view.classes = &all_classes[0]
        self.view.values = &all_values[0]

    n_classes = property(lambda self: (<Weights> self).view.n_classes)


cdef class Scratch:
    """Scores of one row, and what it takes to make them."""
    cdef double[::1] score
    cdef double[::1] lanes      # (n_classes + GROUP, LANES), for dense rows
    cdef idx_t[::1] met         # for sparse rows: the nonzeros whose features have weights

    def __init__(self, Weights weights, Rows rows):
        size = weights.view.n_classes + GROUP
        self.score = np.zeros(size)
        self.lanes = np.zeros(size * LANES if rows.view.indptr == NULL else 1)
        self.met = np.empty(rows.longest, np.int32)


cdef inline double start_at(const double[::1] constant, const double[:, :] offset,
                            ptr_t i, ptr_t c) noexcept nogil:
    return constant[c] if offset is None else constant[c] + offset[i, c]


cdef inline void add_sparse(const weights_t* weights, column_t row, idx_t* met,
                            double* score_out) noexcept nogil:
    """score += lam @ x"""
    cdef ptr_t k, p, n_met = 0
    cdef idx_t j, group
    cdef double x
    for k in range(row.size):
        j = row_at(row, k)
        met[n_met] = <idx_t> k
        n_met += weights.start[j] < weights.start[j + 1]
    for k in range(n_met):
        j = row_at(row, met[k])
        x = value_at(row, met[k])
        for group in range(weights.start[j], weights.start[j + 1]):
            for p in range(<ptr_t> GROUP * group, <ptr_t> GROUP * group + GROUP):
                score_out[weights.classes[p]] += x * weights.values[p]


cdef inline void add_lanes(const double* x, double value, double* score_out) noexcept nogil:
    # score += value * x, by way of a sum that cannot overlap x: else the compiler does not vectorise it
    cdef double[LANES] total
    cdef int lane
    for lane in range(LANES):
        total[lane] = score_out[lane] + value * x[lane]
    for lane in range(LANES):
        score_out[lane] = total[lane]


cdef inline void add_dense(const weights_t* weights, const columns_t* X, ptr_t i, ptr_t n_lanes,
                           double* lanes_out) noexcept nogil:
    """lanes += lam @ X[i:i + n_lanes].T"""
    cdef ptr_t n_features = X.n_rows, j, p, lane
    cdef double[LANES] x
    for lane in range(LANES):
        x[lane] = 0.0
    for j in range(n_features):
        if weights.start[j] < weights.start[j + 1]:
            for lane in range(n_lanes):
                x[lane] = X.values[(i + lane) * n_features + j]
            for p in range(<ptr_t> GROUP * weights.start[j], <ptr_t> GROUP * weights.start[j + 1]):
                add_lanes(x, weights.values[p], lanes_out + LANES * weights.classes[p])


cdef inline void score_row(const weights_t* weights, const columns_t* X, const double[::1] constant,
                           const double[:, :] offset, ptr_t first, ptr_t last, ptr_t i,
                           Scratch scratch) noexcept nogil:
    """scratch.score = constant + offset[i] + lam @ X[i], for i = first, first + 1, ..., last - 1 in turn"""
    cdef ptr_t c, lane = (i - first) % LANES, n_lanes = min(LANES, last - i)
    cdef double* score = &scratch.score[0]
    cdef double* lanes = &scratch.lanes[0]
    if X.indptr != NULL:
        for c in range(weights.n_classes):
            score[c] = start_at(constant, offset, i, c)
        add_sparse(weights, get_column(X, i), &scratch.met[0], score)
        return
    if lane == 0:
        for c in range(weights.n_classes):
            for lane in range(n_lanes):
                lanes[LANES * c + lane] = start_at(constant, offset, i + lane, c)
        add_dense(weights, X, i, n_lanes, lanes)
        lane = 0
    for c in range(weights.n_classes):
        score[c] = lanes[LANES * c + lane]


cdef inline bint outranks(ranked_t a, ranked_t b) noexcept nogil:
    """A greater score; among equals the lower class."""
    return a.score > b.score or (a.score == b.score and a.c < b.c)


cdef inline void sift_down(ranked_t* heap, ptr_t size, ptr_t place) noexcept nogil:
    """Restore the heap, whose root is the one that all others outrank, below `place`."""
    cdef ranked_t moved = heap[place]
    cdef ptr_t child = 2 * place + 1
    while child < size:
        if child + 1 < size and outranks(heap[child], heap[child + 1]):
            child += 1
        if not outranks(moved, heap[child]):
            break
        heap[place] = heap[child]
        place = child
        child = 2 * place + 1
    heap[place] = moved


cdef inline void rank_classes(const double* score, ptr_t n_classes, ranked_t* heap,
                              ptr_t n_top) noexcept nogil:
    """heap = the n_top best classes, best first."""
    cdef ptr_t place
    cdef idx_t c
    cdef ranked_t last
    for c in range(<idx_t> n_top):
        heap[c].score, heap[c].c = score[c], c
    for place in range(n_top // 2 - 1, -1, -1):
        sift_down(heap, n_top, place)
    for c in range(<idx_t> n_top, <idx_t> n_classes):
        if score[c] > heap[0].score:
            heap[0].score, heap[0].c = score[c], c
            sift_down(heap, n_top, 0)
    for place in range(n_top - 1, 0, -1):
        last = heap[place]
        heap[place] = heap[0]
        heap[0] = last
        sift_down(heap, place, 0)


def score_rows(Weights weights, Rows rows, const double[::1] constant, const double[:, :] offset,
               ptr_t first, ptr_t last, double[:, ::1] score_out):
    """Scores of rows first..last for every class, into the rows 0..last - first of score_out."""
    cdef ptr_t i
    cdef Scratch scratch = Scratch(weights, rows)
    with nogil:
        for i in range(first, last):
            score_row(&weights.view, &rows.view, constant, offset, first, last, i, scratch)
            memcpy(&score_out[i - first, 0], &scratch.score[0], weights.view.n_classes * sizeof(double))


def top_rows(Weights weights, Rows rows, const double[::1] constant, const double[:, :] offset,
             ptr_t first, ptr_t last, idx_t[:, ::1] classes_out, double[:, ::1] score_out):
    """The best classes of rows first..last and their scores, best first, equals by class.

    They go into those rows of the arrays, as many as there are columns: at most n_classes, at least one.
    """
    cdef ptr_t i, place, n_top = classes_out.shape[1]
    cdef Scratch scratch = Scratch(weights, rows)
    cdef ranked_t[::1] heap = np.empty(n_top, np.dtype([("score", np.float64), ("c", np.int32)], align=True))
    with nogil:
        for i in range(first, last):
            score_row(&weights.view, &rows.view, constant, offset, first, last, i, scratch)
            rank_classes(&scratch.score[0], weights.view.n_classes, &heap[0], n_top)
            for place in range(n_top):
                classes_out[i, place] = heap[place].c
                score_out[i, place] = heap[place].score
