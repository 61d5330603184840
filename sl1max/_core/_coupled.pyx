"""All classes at once, to second order: the step that minimises

    gradient . d  +  1/2 d' H d  +  sum_k beta_k |lam_k + d_k|,

H_(cj)(dk) = sum_i u_i x_ij x_ik q_ic (1[c = d] - q_id), over cells (i, c) that stand for all of them, and a diagonal
for what they leave out. Coordinate descent, class by class: while a class is at hand, what its own weights change stays
in arrays of its cells, and the rows that it shares with the others hear of it when it is done. A sweep costs about as
much as a product with H. On one model of a thirty-second of SuperTags, in about 1.7 s each, Anderson extrapolation and
a little over-relaxation came as far, accelerated proximal gradients less far, conjugate gradients on the face at hand
hardly anywhere.
"""
from libc.math cimport INFINITY, fabs

import numpy as np

from sl1max._core._column cimport column_add_weighted, column_axpy, column_dot, column_moments_pooled
from sl1max._core._lock cimport ExclusiveLock
from sl1max._core._solver cimport Columns
from sl1max._core._types cimport column_t, idx_t, ptr_t

cdef enum:
    EVERY = 8       # sweeps, of which one is over all classes


cdef extern from *:
    """
    /* Of the worst violation: classes that met less can wait. */
    #define SL1MAX_LITTLE 0.1
    """
    const double LITTLE "SL1MAX_LITTLE"


def places_of(Columns columns, const idx_t[::1] cols, const idx_t[::1] rows):
    """Where among some rows the columns are not zero: (indptr, places, values), values None if all are one.

    Needs the index of rows.
    """
    cdef ptr_t n = cols.shape[0], k, p, slot
    cdef idx_t[::1] slots = np.full(columns.view.n_cols, -1, np.int32)
    cdef ptr_t[::1] indptr = np.zeros(n + 1, np.int64)
    for k in range(n):
        slots[cols[k]] = <idx_t> k
    with nogil:
        for k in range(rows.shape[0]):
            for p in range(columns.view.row_start[rows[k]], columns.view.row_start[rows[k] + 1]):
                slot = slots[columns.view.row_cols[p]]
                if slot >= 0:
                    indptr[slot + 1] += 1
        for k in range(n):
            indptr[k + 1] += indptr[k]
    cdef idx_t[::1] places = np.empty(indptr[n], np.int32)
    cdef double[::1] values = None if columns.view.row_values == NULL else np.empty(indptr[n])
    cdef ptr_t[::1] free = np.array(indptr[:n])
    with nogil:
        for k in range(rows.shape[0]):
            for p in range(columns.view.row_start[rows[k]], columns.view.row_start[rows[k] + 1]):
                slot = slots[columns.view.row_cols[p]]
                if slot >= 0:
                    places[free[slot]] = <idx_t> k
                    if values is not None:
                        values[free[slot]] = columns.view.row_values[p]
                    free[slot] += 1
    return np.asarray(indptr), np.asarray(places), None if values is None else np.asarray(values)


cdef class Descent:
    """The model and the step so far.

    Parameters
    ----------
    coord_start, cell_start : int64 arrays of shape (n_classes + 1,)
        Where the coordinates and the cells of each class begin. The last coordinate of a class is its intercept.
    indptr, places, values : arrays
        Of each coordinate but the intercepts the cells, counted within the class, where it is not zero; as from
        `places_of`, of all classes in a row, with an empty range for intercepts.
    rows, prob : int32 and float64 arrays
        Row and q of each cell; those of a row add up to at most one.
    mass : float64 array of shape (n_samples,)
    gradient, weights, beta, rest : float64 arrays
        Of each coordinate; ``rest`` is the diagonal. beta 0 or inf: an intercept, that is free or left out.
    radius : float
        The longest step of a coordinate.
    """
    cdef const ptr_t[::1] coord_start, cell_start, indptr
    cdef const idx_t[::1] places, rows
    cdef const double[::1] values, prob, mass, gradient, weights, beta, rest
    cdef double[::1] slope, row_slope, curvature
    cdef double[::1] flow, curve, change       # of the class at hand
    cdef double[::1] met                       # violation over beta that each class met last
    cdef double radius
    cdef ExclusiveLock lock
    cdef readonly object step                  # the result
    cdef double[::1] delta

    def __init__(self, const ptr_t[::1] coord_start, const ptr_t[::1] cell_start, const ptr_t[::1] indptr,
                 const idx_t[::1] places, const double[::1] values, const idx_t[::1] rows, const double[::1] prob,
                 const double[::1] mass, const double[::1] gradient, const double[::1] weights,
                 const double[::1] beta, const double[::1] rest, double radius):
        cdef ptr_t largest = np.max(np.diff(cell_start), initial=1), c
        self.coord_start, self.cell_start, self.indptr = coord_start, cell_start, indptr
        self.places, self.values, self.rows, self.prob, self.mass = places, values, rows, prob, mass
        self.gradient, self.weights, self.beta, self.rest = gradient, weights, beta, rest
        self.radius = radius
        self.lock = ExclusiveLock("this Descent is at work in another thread")
        self.slope, self.row_slope = np.zeros(rows.shape[0]), np.zeros(mass.shape[0])
        self.curvature = np.empty(gradient.shape[0])
        self.flow, self.curve, self.change = np.empty(largest), np.empty(largest), np.empty(largest)
        self.met = np.zeros(coord_start.shape[0] - 1)
        self.step = np.zeros(gradient.shape[0])
        self.delta = self.step
        with nogil:
            for c in range(coord_start.shape[0] - 1):
                self.load(c)
                self.measure(c)

    cdef void load(self, ptr_t c) noexcept nogil:
        """The cells of a class: flow = u q (slope - row_slope), curve = u q (1 - q), change = 0."""
        cdef ptr_t start = self.cell_start[c], e
        cdef double share
        for e in range(start, self.cell_start[c + 1]):
            share = self.mass[self.rows[e]] * self.prob[e]
            self.flow[e - start] = share * (self.slope[e] - self.row_slope[self.rows[e]])
            self.curve[e - start] = share * (1.0 - self.prob[e])
            self.change[e - start] = 0.0

    cdef void unload(self, ptr_t c) noexcept nogil:
        cdef ptr_t start = self.cell_start[c], e
        for e in range(start, self.cell_start[c + 1]):
            self.slope[e] += self.change[e - start]
            self.row_slope[self.rows[e]] += self.prob[e] * self.change[e - start]

    cdef column_t column(self, ptr_t c, ptr_t k) noexcept nogil:
        cdef column_t column
        if k == self.coord_start[c + 1] - 1:
            column.size, column.rows, column.values = self.cell_start[c + 1] - self.cell_start[c], NULL, NULL
            return column
        column.size = self.indptr[k + 1] - self.indptr[k]
        column.rows = NULL if column.size == 0 else &self.places[self.indptr[k]]
        column.values = NULL if self.values is None or column.size == 0 else &self.values[self.indptr[k]]
        return column

    cdef void measure(self, ptr_t c) noexcept nogil:
        """curvature of each coordinate of a class"""
        cdef ptr_t k
        for k in range(self.coord_start[c], self.coord_start[c + 1]):
            self.curvature[k] = self.rest[k] + column_moments_pooled(self.column(c, k), &self.curve[0]).second

    cdef double move(self, ptr_t c, ptr_t k) noexcept nogil:
        """Minimise over one coordinate; returns how far its slope was from what the optimum asks."""
        cdef column_t column = self.column(c, k)
        cdef double old = self.delta[k], slope, curvature = self.curvature[k], new, weight = self.weights[k], beta, d
        if self.beta[k] == INFINITY or curvature <= 0.0:
            return 0.0
        beta = self.beta[k] / curvature
        slope = self.gradient[k] + self.rest[k] * old + column_dot(column, &self.flow[0])
        new = weight + old - slope / curvature
        new = new - beta if new > beta else new + beta if new < -beta else 0.0
        new = min(max(new - weight, -self.radius), self.radius)
        d = new - old
        if d == 0.0:
            return 0.0
        self.delta[k] = new
        column_axpy(column, d, &self.change[0])
        column_add_weighted(column, d, &self.curve[0], &self.flow[0])
        return fabs(d) * curvature

    cdef double sweep_class(self, ptr_t c, ptr_t n_sweeps) noexcept nogil:
        """Returns the worst violation that the first sweep met, over beta."""
        cdef ptr_t k, _sweep
        cdef double worst = 0.0, moved
        self.load(c)
        for _sweep in range(n_sweeps):
            for k in range(self.coord_start[c], self.coord_start[c + 1]):
                moved = self.move(c, k)
                if _sweep == 0 and self.beta[k] > 0.0 and moved > worst * self.beta[k]:
                    worst = moved / self.beta[k]
        self.unload(c)
        return worst

    def run(self, ptr_t n_sweeps, ptr_t n_inner, double goal):
        """Sweep over the classes so many times; returns the worst violation over beta that was met last.

        Every EVERY-th sweep is over all classes. In between, those that then met little of the worst are passed over.
        """
        cdef ptr_t c, _sweep
        cdef double worst = INFINITY
        with self.lock, nogil:
            for _sweep in range(n_sweeps):
                for c in range(self.met.shape[0]):
                    if _sweep % EVERY == 0 or self.met[c] > LITTLE * worst:
                        self.met[c] = self.sweep_class(c, n_inner)
                if _sweep % EVERY == 0:
                    worst = 0.0
                    for c in range(self.met.shape[0]):
                        worst = max(worst, self.met[c])
                    if worst <= goal:
                        break
        return worst

    def change_of_model(self):
        """gradient . d + 1/2 d' H d + sum beta (|lam + d| - |lam|)"""
        cdef ptr_t c, e, start
        cdef double total = 0.0
        step, beta = np.asarray(self.delta), np.asarray(self.beta)
        weights = np.asarray(self.weights)
        with self.lock, nogil:
            for c in range(self.coord_start.shape[0] - 1):
                self.load(c)
                start = self.cell_start[c]
                for e in range(start, self.cell_start[c + 1]):
                    total += 0.5 * self.slope[e] * self.flow[e - start]
        penalised = np.isfinite(beta)
        penalty = np.abs(weights + step) - np.abs(weights)
        return total + float(
            np.asarray(self.gradient) @ step + 0.5 * np.asarray(self.rest) @ step**2
            + beta[penalised] @ penalty[penalised]
        )
