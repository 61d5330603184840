"""Some classes side by side, over all rows: their probabilities, what these add up to, and the means of the features.

    q_ic = exp(b_c + lam_c . x_i) / Z_i

Row by row, WIDTH classes at once. Looked up by feature, the weights of a row are few; and where a feature's means of
all these classes are in a row of an array, the loop that adds to them is one of vectors. Of 938,455 rows with 17
million nonzeros, 4,755 classes take 50 to 80 s so; class by class the means alone take 20 ms each, which makes 95 s.
"""
from libc.math cimport exp
from libc.string cimport memcpy

import numpy as np

from sl1max._core._column cimport prefetch
from sl1max._core._solver cimport Columns
from sl1max._core._types cimport columns_t, idx_t, ptr_t

cdef enum:
    WIDTH = 32          # classes
    AHEAD = 16          # nonzeros: means that will be needed
    LINE = 8            # numbers of a line of the caches
    BLOCK = 1 << 14     # rows whose cells are gathered at once

PANEL_WIDTH = WIDTH


cdef extern from *:
    """
    /* Logs of products of weights that do not overflow. */
    #define SL1MAX_FAR 600.0
    """
    const double FAR "SL1MAX_FAR"


cdef struct sample_t:
    # The cells of a block of rows, as they are found.
    double notable
    double* sums        # (WIDTH,) what is not notable adds up to
    idx_t* rows
    idx_t* slots
    double* prob
    ptr_t size


cdef class Panel:
    """The weights of some classes, by feature.

    Parameters
    ----------
    columns : Columns
        With an index of rows.
    weights : sequence of (cols, values)
        Of each class, at most PANEL_WIDTH of them.
    b : float64 array
        Their intercepts.
    """
    cdef Columns columns
    cdef ptr_t[::1] start       # (n_cols + 1,)
    cdef idx_t[::1] slots
    cdef double[::1] lam, growth
    cdef double[::1] b, base
    cdef bint far
    cdef readonly ptr_t n_classes

    def __init__(self, Columns columns, weights, b):
        sizes = [len(cols) for cols, _ in weights]
        cols, values = (np.concatenate(parts) for parts in zip(*weights, strict=True))
        order = np.argsort(cols, kind="stable")
        self.columns = columns
        self.n_classes = len(sizes)
        self.slots = np.repeat(np.arange(len(sizes), dtype=np.int32), sizes)[order]
        self.lam = values[order]
        self.start = np.searchsorted(cols[order], np.arange(columns.n_cols + 1)).astype(np.int64)
        self.b = np.append(b, np.full(WIDTH - len(sizes), -np.inf))
        largest = np.max(np.abs(values) * columns.extent[cols], initial=0.0) * columns.longest_row
        self.far = np.max(np.abs(b)) + largest > FAR
        with np.errstate(over="ignore"):
            self.growth, self.base = np.exp(self.lam), np.exp(self.b)

    cdef void weigh_row(self, ptr_t i, double inv_z, double log_z, double* prob) noexcept nogil:
        """q of the classes in row i"""
        cdef const columns_t* X = &self.columns.view
        cdef ptr_t p, t
        cdef idx_t j
        cdef int k
        if self.far:
            memcpy(prob, &self.b[0], WIDTH * sizeof(double))
        else:
            memcpy(prob, &self.base[0], WIDTH * sizeof(double))
        for p in range(X.row_start[i], X.row_start[i + 1]):
            j = X.row_cols[p]
            for t in range(self.start[j], self.start[j + 1]):
                if self.far:
                    prob[self.slots[t]] += self.lam[t] * (1.0 if X.row_values == NULL else X.row_values[p])
                else:
                    prob[self.slots[t]] *= (
                        self.growth[t] if X.row_values == NULL else exp(self.lam[t] * X.row_values[p]))
        for k in range(WIDTH):
            prob[k] = exp(prob[k] - log_z) if self.far else prob[k] * inv_z

    def scores(self, idx_t slot, const idx_t[::1] rows):
        """b + lam . x_i of one of the classes in some rows"""
        cdef const columns_t* X = &self.columns.view
        cdef double[::1] score = np.full(rows.shape[0], self.b[slot])
        cdef ptr_t i, p, t
        with nogil:
            for i in range(rows.shape[0]):
                for p in range(X.row_start[rows[i]], X.row_start[rows[i] + 1]):
                    for t in range(self.start[X.row_cols[p]], self.start[X.row_cols[p] + 1]):
                        if self.slots[t] == slot:
                            score[i] += self.lam[t] * (1.0 if X.row_values == NULL else X.row_values[p])
        return np.asarray(score)

    def add_up(self, const double[::1] log_z, const double[::1] inv_z, const double[::1] mass,
               const double[::1] share_of_each=None):
        """(total, share): sums over the classes of q, or of a part of each, and over the examples of u q."""
        total, share = np.empty(mass.shape[0]), np.zeros(WIDTH)
        cdef double[::1] total_out = total, share_out = share, part = np.ones(WIDTH)
        cdef double prob[WIDTH]
        cdef double row_total
        cdef ptr_t i
        cdef int k
        if share_of_each is not None:
            np.asarray(part)[: self.n_classes] = share_of_each
        with nogil:
            for i in range(mass.shape[0]):
                self.weigh_row(i, inv_z[i], log_z[i], prob)
                row_total = 0.0
                for k in range(WIDTH):
                    row_total += part[k] * prob[k]
                    share_out[k] += mass[i] * prob[k]
                total_out[i] = row_total
        return total, share[: self.n_classes]

    def price(self, const double[::1] log_z, const double[::1] inv_z, const double[::1] mass, double notable):
        """(total, share, least, means, cells) of the classes.

        total and share as by `add_up`; least : the least q of each; means (n_classes, n_cols): u q x added up over the
        examples; cells (rows, classes, q): all q above ``notable`` and a sample of the others, in which one that counts
        as ``notable`` stands for as many as add up to that.
        """
        cdef ptr_t n_rows = mass.shape[0], i, block, n
        total, share, least = np.empty(n_rows), np.zeros(WIDTH), np.full(WIDTH, np.inf)
        means = np.zeros((self.columns.n_cols, WIDTH))
        cdef double[::1] total_out = total, share_out = share, least_out = least, sums = np.zeros(WIDTH)
        cdef double[:, ::1] means_out = means
        cdef idx_t[::1] rows = np.empty(BLOCK * WIDTH, np.int32), slots = np.empty(BLOCK * WIDTH, np.int32)
        cdef double[::1] probs = np.empty(BLOCK * WIDTH)
        cdef double prob[WIDTH]
        cdef double flow[WIDTH]
        cdef double row_total
        cdef int k
        cdef sample_t sample
        sample.notable, sample.sums = notable, &sums[0]
        sample.rows, sample.slots, sample.prob = &rows[0], &slots[0], &probs[0]
        cells = []
        for block in range(0, n_rows, BLOCK):
            sample.size = 0
            with nogil:
                for i in range(block, min(block + BLOCK, n_rows)):
                    self.weigh_row(i, inv_z[i], log_z[i], prob)
                    row_total = 0.0
                    for k in range(WIDTH):
                        row_total += prob[k]
                        flow[k] = mass[i] * prob[k]
                        share_out[k] += flow[k]
                        least_out[k] = min(least_out[k], prob[k])
                    total_out[i] = row_total
                    add_outer(&self.columns.view, i, flow, &means_out[0, 0])
                    sample_row(i, prob, &sample)
            n = sample.size
            cells.append((np.array(rows[:n]), np.array(slots[:n]), np.array(probs[:n])))
        n = self.n_classes
        cells = [np.concatenate(parts) for parts in zip(*cells, strict=True)]
        return total, share[:n], least[:n], transposed(means_out)[:n], cells


cdef inline void add_outer(const columns_t* X, ptr_t i, const double* flow, double* means) noexcept nogil:
    """means += outer(row i of X, flow)"""
    cdef ptr_t p, last = X.row_start[X.n_rows] - 1
    cdef double* mean
    cdef double x
    cdef int k
    for p in range(X.row_start[i], X.row_start[i + 1]):
        mean = means + WIDTH * <ptr_t> X.row_cols[min(p + AHEAD, last)]
        for k in range(WIDTH // LINE):
            prefetch(mean + LINE * k)
        mean = means + WIDTH * <ptr_t> X.row_cols[p]
        if X.row_values == NULL:
            for k in range(WIDTH):
                mean[k] += flow[k]
        else:
            x = X.row_values[p]
            for k in range(WIDTH):
                mean[k] += flow[k] * x


cdef transposed(const double[:, ::1] means):
    """By class; some features at a time, so that both sides stay in the caches."""
    cdef double[:, ::1] by_class = np.empty((WIDTH, means.shape[0]))
    cdef ptr_t line, j
    cdef int k
    with nogil:
        for line in range((means.shape[0] + LINE - 1) // LINE):
            for k in range(WIDTH):
                for j in range(LINE * line, min(LINE * (line + 1), means.shape[0])):
                    by_class[k, j] = means[j, k]
    return np.asarray(by_class)


cdef inline void sample_row(ptr_t i, const double* prob, sample_t* sample) noexcept nogil:
    """Enter what a row has of the sample: where sums of what is not notable pass (n + 1/2) notable."""
    cdef int k
    for k in range(WIDTH):
        if prob[k] <= sample.notable:
            sample.sums[k] += prob[k]
            if sample.sums[k] < 0.5 * sample.notable:
                continue
            sample.sums[k] -= sample.notable
        sample.rows[sample.size] = <idx_t> i
        sample.slots[sample.size] = k
        sample.prob[sample.size] = max(prob[k], sample.notable)
        sample.size += 1
