"""Exclusive classes, from three to thousands: Newton steps on a model of the objective in the space of the rows.

    minimise  sum_i u_i ln Z_i  -  sum_c (lam_c . p~_c + b_c p~_c)  +  sum_cj beta_cj |lam_cj|,
    Z_i = sum_c exp(b_c + lam_c . x_i + offset_ic)

Kept are the probabilities q_ic and, during a step, its scores a_ic = d_c . x_i: two numbers per cell. Above a limit of
memory they are not stored: a class at hand gets them from its weights, ln Z and the step.

The quadratic model of the objective couples all classes. With t_i = sum_c q_ic a_ic its slope at (c, j) is
g_cj + sum_i u_i x_ij q_ic (a_ic - t_i), so no Hessian of all classes is formed. The block of one class, with t held,
has the matrix X_c' diag(u q_c (1 - q_c)) X_c of the class's working set, less what the intercept explains of it. It is
formed once per Newton step, in single precision since slopes come from the rows, and the block is minimised on it,
class after class (Gauss-Seidel). Extrapolation over the last passes (Anderson) is kept where the model falls.

The minimum of the model gives the dual point p_ic = q_ic max(0, 1 + a_ic + s_c - mu_i). mu_i makes the probabilities of
a row add up to one and s_c gives each class its share, as its free intercept demands. Then p~ is mixed in as far as the
other constraints need it. At a minimum of the model without negative factors none is needed within the working set.
"""
from cpython.exc cimport PyErr_CheckSignals
from libc.math cimport INFINITY, fabs, log, sqrt
from libc.string cimport memcpy, memset

import numpy as np

from sl1max._core._column cimport (
    column_axpy, column_dot, column_moments, column_scale_each, get_column, value_at,
)
from sl1max._core._dense cimport axpy_single, dot, dot4x2, exp_all
from sl1max._core._divergence cimport excess
from sl1max._core._lock cimport ExclusiveLock
from sl1max._core._options import DEFAULT_OPTIONS
from sl1max._core._penalty cimport l1, minimise_quadratic, violation
from sl1max._core._solver cimport Columns
from sl1max._core._step cimport concordant_step, step_t
from sl1max._core._types cimport column_t, columns_t, idx_t, pair_t, ptr_t
from sl1max._core._working_set cimport kth_largest

cdef enum:
    WIDTH = 8           # classes that are priced at once: their means of a feature fill a line of the cache
    HISTORY = 5         # passes that an extrapolation is made of
    MOST_SWEEPS = 50    # over a block
    CHUNK = 256         # rows of dense columns that a Gram matrix is formed of at once


cdef extern from *:
    """
    /* out[k] = sum of x * panel[WIDTH * row + k] along a column, k < 8 */
    SL1MAX_CLONES static void sl1max_panel_sums(const int32_t *rows, const double *values, int64_t size,
                                                const double *panel, double *restrict out)
    {
        double sum[8] = {0.0};
        for (int64_t p = 0; p < size; ++p) {
            const double *cell = panel + 8 * (rows ? (int64_t) rows[p] : p);
            const double x = values ? values[p] : 1.0;
            if (rows && p + 12 < size)
                SL1MAX_PREFETCH(panel + 8 * (int64_t) rows[p + 12]);
            for (int k = 0; k < 8; ++k)
                sum[k] += x * cell[k];
        }
        for (int k = 0; k < 8; ++k)
            out[k] = sum[k];
    }

    /* flow = u q (a - t) */
    SL1MAX_CLONES static void sl1max_flow(const double *restrict u, const double *restrict q, const double *restrict a,
                                          const double *restrict t, double *restrict flow, int64_t size)
    {
        for (int64_t i = 0; i < size; ++i)
            flow[i] = u[i] * (q[i] * (a[i] - t[i]));
    }

    /* a += change + constant, t += q (change + constant); change becomes zero again. Returns sum u q a a. */
    SL1MAX_CLONES static double sl1max_move(const double *restrict u, const double *restrict q, double constant,
                                            double *restrict change, double *restrict a, double *restrict t,
                                            int64_t size)
    {
        double sum[4] = {0.0};
        int64_t i = 0;
        for (; i + 4 <= size; i += 4)
            for (int k = 0; k < 4; ++k) {
                const double d = change[i + k] + constant;
                const double after = a[i + k] + d;
                change[i + k] = 0.0;
                a[i + k] = after;
                t[i + k] += q[i + k] * d;
                sum[k] += u[i + k] * (q[i + k] * (after * after));
            }
        for (; i < size; ++i) {
            const double d = change[i] + constant;
            change[i] = 0.0;
            a[i] += d;
            t[i] += q[i] * d;
            sum[0] += u[i] * (q[i] * (a[i] * a[i]));
        }
        return (sum[0] + sum[1]) + (sum[2] + sum[3]);
    }

    /* t += q a; returns sum u q a a */
    SL1MAX_CLONES static double sl1max_enter(const double *restrict u, const double *restrict q,
                                             const double *restrict a, double *restrict t, int64_t size)
    {
        double sum[4] = {0.0};
        int64_t i = 0;
        for (; i + 4 <= size; i += 4)
            for (int k = 0; k < 4; ++k) {
                t[i + k] += q[i + k] * a[i + k];
                sum[k] += u[i + k] * (q[i + k] * (a[i + k] * a[i + k]));
            }
        for (; i < size; ++i) {
            t[i] += q[i] * a[i];
            sum[0] += u[i] * (q[i] * (a[i] * a[i]));
        }
        return (sum[0] + sum[1]) + (sum[2] + sum[3]);
    }

    /* Factors 1 + a + shift - mu, clipped at zero: sums of q times these, and of the q that are not clipped, are added
       to mass and free. */
    SL1MAX_CLONES static void sl1max_add_clipped(const double *restrict q, const double *restrict a, double shift,
                                                 const double *restrict mu, double *restrict mass,
                                                 double *restrict open, int64_t size)
    {
        for (int64_t i = 0; i < size; ++i) {
            const double factor = (1.0 + shift) + (a[i] - mu[i]);
            const double held = factor > 0.0 ? q[i] : 0.0;
            mass[i] += held * factor;
            open[i] += held;
        }
    }
    """
    void panel_sums "sl1max_panel_sums"(const idx_t* rows, const double* values, ptr_t size, const double* panel,
                                        double* out) noexcept nogil
    void fill_flow "sl1max_flow"(const double* u, const double* q, const double* a, const double* t, double* flow,
                                 ptr_t size) noexcept nogil
    double move_cells "sl1max_move"(const double* u, const double* q, double constant, double* change, double* a,
                                    double* t, ptr_t size) noexcept nogil
    double enter_cells "sl1max_enter"(const double* u, const double* q, const double* a, double* t,
                                      ptr_t size) noexcept nogil
    void add_clipped "sl1max_add_clipped"(const double* q, const double* a, double shift, const double* mu,
                                          double* mass, double* open, ptr_t size) noexcept nogil


cdef double EPSILON = 2.220446049250313e-16


cdef class ManyClassesSolver:
    """The conditional model of exclusive classes on its way to the optimum.

    Parameters
    ----------
    columns : Columns
    mass : float64 array of shape (n_samples,)
        u_i, summing to one.
    labels : tuple (start, rows, share)
        The examples of each class, and its share of each.
    means : tuple (start, cols, mean, beta)
        Features that a class has, ascending: their empirical means and their penalties.
    beta : float64 array of shape (n_features,)
        Penalties of the features that a class lacks. inf: left out; no penalty is zero.
    intercept : bool
    tol : float
        Converged when dual_gap <= tol * objective_zero.
    offset : float64 array of shape (n_classes, n_samples) or None
    warm_start : tuple (blocks, cols, values, intercept) or None
    options : SolverOptions or None
    """
    cdef readonly Columns columns
    cdef columns_t X
    cdef ptr_t m, n, n_classes, extra
    cdef const double[::1] mass, label_share, own_mean, own_beta, common_beta, rms, extent
    cdef const ptr_t[::1] label_start, own_start
    cdef const idx_t[::1] label_rows, own_cols
    cdef const double[:, ::1] offset
    cdef double[::1] prior
    cdef ExclusiveLock lock
    cdef object stop, pending
    cdef object options
    cdef bint stopped
    cdef readonly double tol, objective, objective_zero, log_z, rounding
    cdef double least                   # what the objective is at least
    cdef readonly ptr_t n_iter
    cdef bint evaluated                 # whether gradient and working set are those of the weights
    cdef bint stored                    # whether q and a of all cells are
    cdef double[:, ::1] prob, score
    # Over rows
    cdef double[::1] log_zs, z, inv_z, top, row_mean, mu, row_scale, given, open, flow, change, cell, curve, target
    cdef double[::1] panel
    # Over features
    cdef double[::1] mean, dense_mean, dense_beta, ranked, priority
    cdef idx_t[::1] found
    # The working set, class by class: columns ascending, the intercept last
    cdef ptr_t[::1] start, next_start
    cdef idx_t[::1] cols, next_cols
    cdef double[::1] lam, new, beta, emp, gradient
    cdef double[::1] next_lam, next_new, next_beta, next_emp, next_gradient
    cdef double[::1] slope, move, curvature
    # Of each class
    cdef double[::1] met, energy, shift, taken, missing, share
    cdef ptr_t[::1] gram_start
    cdef float[::1] gram
    cdef ptr_t n_blocks
    cdef ptr_t[::1] block_start, block_end, block_class
    cdef double[::1] steepness, cross
    # Rows of a class's working set
    cdef ptr_t[::1] row_start
    cdef idx_t[::1] row_slots
    cdef double[::1] row_values
    cdef double radius
    cdef readonly double violator_ratio, mixing, ratio, worst
    cdef readonly ptr_t n_passes, n_updates, n_nonzeros, next_poll

    def __init__(self, Columns columns, const double[::1] mass, labels, means, const double[::1] beta, *,
                 bint intercept, double tol=1e-4, const double[:, ::1] offset=None, warm_start=None, options=None):
        cdef ptr_t c, p
        self.columns = columns
        self.X = columns.get_view()
        self.mass = mass
        self.label_start, self.label_rows, self.label_share = labels
        self.own_start, self.own_cols, self.own_mean, self.own_beta = means
        self.common_beta = beta
        self.offset = offset
        self.m, self.n, self.n_classes, self.extra = (
            columns.view.n_rows, columns.view.n_cols, self.label_start.shape[0] - 1, intercept)
        self.rms, self.extent = columns.rms, columns.extent
        self.tol = tol
        self.options = DEFAULT_OPTIONS if options is None else options
        self.lock = ExclusiveLock("this solver is at work in another thread")
        self.prior = np.zeros(self.n_classes)
        for c in range(self.n_classes):
            for p in range(self.label_start[c], self.label_start[c + 1]):
                self.prior[c] += mass[self.label_rows[p]] * self.label_share[p]
        self._allocate()
        self._start_from_zero()
        if warm_start is not None:
            self._load(*warm_start)

    def _allocate(self):
        cdef ptr_t m = self.m, n = self.n, n_classes = self.n_classes
        self.stored = 16 * n_classes * m <= self.options.many_classes_memory
        rows = n_classes if self.stored else 1
        self.prob, self.score = np.zeros((rows, m)), np.zeros((rows, m))
        self.log_zs, self.z, self.inv_z, self.top, self.row_mean, self.mu, self.row_scale = np.zeros((7, m))
        self.given, self.open, self.flow, self.change, self.cell, self.curve, self.target = np.zeros((7, m))
        self.panel = np.zeros(WIDTH * m)
        self.mean = np.zeros(WIDTH * (n + 1))
        self.dense_mean, self.dense_beta = np.zeros(n), np.zeros(n)
        self.ranked, self.priority = np.zeros(n + 1), np.zeros(n + 1)
        self.found = np.zeros(n + 1, np.int32)
        self.met, self.energy, self.shift = np.zeros(n_classes), np.zeros(n_classes), np.zeros(n_classes)
        self.taken, self.missing, self.share = np.zeros(n_classes), np.zeros(n_classes), np.zeros(n_classes)
        self.gram = np.zeros(1, np.float32)
        self.steepness = np.zeros(n_classes)
        self.row_start = np.zeros(m + 1, np.int64)
        self.row_slots, self.row_values = np.zeros(1, np.int32), np.zeros(1)

    def _start_from_zero(self):
        cdef ptr_t n_classes = self.n_classes, k = n_classes * self.extra
        prior = np.asarray(self.prior)
        intercept = np.log(prior) if self.extra else np.zeros(0)
        self._take_lists(np.arange(n_classes + 1) * self.extra, np.full(k, self.n, np.int32), intercept, intercept,
                         np.zeros(k), prior[:k].copy())
        self.radius = self.options.first_radius
        self.least = -INFINITY
        self.log_z = np.nan
        self.refresh()
        self.objective_zero = self.objective
        if self.offset is not None and self.extra:
            self._fit_intercepts()

    def _fit_intercepts(self):
        """objective_zero, where offsets leave the intercepts no closed form."""
        cdef ptr_t _step
        for _step in range(30):
            before = self.objective
            self._newton(1e-9, 0.0)
            if not self._search() or before - self.objective <= 1e-12 * fabs(before):
                break
        self.objective_zero = self.objective

    def _load(self, blocks, cols, values, intercept):
        """Weights to begin with: blocks ascending."""
        blocks, cols, values = np.asarray(blocks), np.asarray(cols), np.asarray(values, float)
        means, betas = np.empty(len(cols)), np.empty(len(cols))
        starts, parts = [0], []
        edges = np.searchsorted(blocks, np.arange(self.n_classes + 1))
        for c in range(self.n_classes):
            held = np.arange(edges[c], edges[c + 1])
            held = held[np.argsort(cols[held], kind="stable")]
            self.fill_class(c)
            means[held] = np.asarray(self.dense_mean)[cols[held]]
            betas[held] = np.asarray(self.dense_beta)[cols[held]]
            held = held[np.isfinite(betas[held]) & (values[held] != 0)]
            own = [cols[held], values[held], betas[held], means[held]]
            if self.extra:
                last = [self.n, intercept[c], 0.0, self.prior[c]]
                own = [np.append(part, value) for part, value in zip(own, last, strict=True)]
            parts.append(own)
            starts.append(starts[len(starts) - 1] + len(own[0]))
        cols, values, betas, means = (np.concatenate(part) for part in zip(*parts, strict=True))
        self._take_lists(np.array(starts), cols.astype(np.int32), values.astype(float), values.astype(float),
                         betas.astype(float), means.astype(float))
        self.refresh()

    def _take_lists(self, start, cols, lam, new, beta, emp):
        """A working set."""
        self.start = np.ascontiguousarray(start, np.int64)
        self.cols, self.lam, self.new = cols.copy(), lam.copy(), new.copy()
        self.beta, self.emp = beta.copy(), emp.copy()
        self.gradient = np.zeros(len(cols))
        self._fit_lists()

    def _fit_lists(self):
        size = self.cols.shape[0]
        self.slope, self.move, self.curvature, self.cross = np.zeros((4, size))

    # Weights to cells

    cdef double* load_row(self, double[:, ::1] cells, ptr_t c) noexcept nogil:
        return &cells[c if self.stored else 0, 0]

    cdef void fill_scores(self, ptr_t c, double* out) noexcept nogil:
        """Scores of a class."""
        cdef ptr_t k, i
        cdef double b = self.lam[self.start[c + 1] - 1] if self.extra else 0.0
        for i in range(self.m):
            out[i] = b
        if self.offset is not None:
            for i in range(self.m):
                out[i] += self.offset[c, i]
        for k in range(self.start[c], self.start[c + 1] - self.extra):
            if self.lam[k] != 0.0:
                column_axpy(self.walk(k), self.lam[k], out)

    cdef column_t walk(self, ptr_t k) noexcept nogil:
        """The column of a coordinate, counted."""
        cdef column_t column = get_column(&self.X, self.cols[k])
        self.n_nonzeros += column.size
        return column

    cdef double* load_prob(self, ptr_t c) noexcept nogil:
        """q of a class."""
        cdef double* prob = self.load_row(self.prob, c)
        cdef ptr_t i
        if not self.stored:
            self.fill_scores(c, prob)
            for i in range(self.m):
                prob[i] -= self.log_zs[i]
            exp_all(prob, self.m)
        return prob

    cdef double* load_score(self, ptr_t c) noexcept nogil:
        """The step's scores of a class."""
        cdef double* score = self.load_row(self.score, c)
        if not self.stored:
            self.fill_step(c, score)
        return score

    cdef void fill_step(self, ptr_t c, double* out) noexcept nogil:
        cdef ptr_t k, i
        cdef double rise = 0.0
        if self.extra:
            k = self.start[c + 1] - 1
            rise = self.new[k] - self.lam[k]
        for i in range(self.m):
            out[i] = rise
        for k in range(self.start[c], self.start[c + 1] - self.extra):
            if self.new[k] != self.lam[k]:
                column_axpy(self.walk(k), self.new[k] - self.lam[k], out)

    cdef bint interrupted(self) noexcept nogil:
        if self.n_nonzeros >= self.next_poll and not self.stopped:
            self.next_poll = self.n_nonzeros + 20_000_000
            with gil:
                self.stopped = self.should_stop()
        return self.stopped

    cdef bint should_stop(self):
        """Called with the GIL now and then."""
        if self.stop is not None and self.stop[0]:
            return True
        try:
            PyErr_CheckSignals()
        except BaseException as error:
            self.pending = error
            return True
        return False

    cdef void refresh(self) noexcept nogil:
        """Probabilities, ln Z and the objective from the weights."""
        cdef ptr_t m = self.m, c, i, k
        cdef double* cells
        cdef double loss = 0.0, linear = 0.0, penalty = 0.0, size = 0.0
        for i in range(m):
            self.top[i] = -INFINITY
            self.z[i] = 0.0
        for c in range(self.n_classes):
            cells = self.load_row(self.prob, c)
            self.fill_scores(c, cells)
            for i in range(m):
                self.top[i] = max(self.top[i], cells[i])
            self.n_nonzeros += m
        for c in range(self.n_classes):
            cells = self.load_row(self.prob, c)
            if not self.stored:
                self.fill_scores(c, cells)
            for i in range(m):
                cells[i] -= self.top[i]
            exp_all(cells, m)
            for i in range(m):
                self.z[i] += cells[i]
        for i in range(m):
            self.log_zs[i] = self.top[i] + log(self.z[i])
            loss += self.mass[i] * self.log_zs[i]
            size += self.mass[i] * fabs(self.log_zs[i])
            self.inv_z[i] = 1.0 / self.z[i]
        if self.stored:
            for c in range(self.n_classes):
                cells = &self.prob[c, 0]
                for i in range(m):
                    cells[i] *= self.inv_z[i]
        for k in range(self.start[self.n_classes]):
            linear += self.lam[k] * self.emp[k]
            size += fabs(self.lam[k] * self.emp[k])
            if self.lam[k] != 0.0 and self.beta[k] > 0.0:
                penalty += self.beta[k] * fabs(self.lam[k])
        self.objective = loss - linear + penalty
        self.rounding = 4.0 * EPSILON * (size + penalty)
        self.evaluated = False

    # Sweeps

    cdef void sweep(self, ptr_t n_sweeps, bint only_new) noexcept nogil:
        """Closed-form steps on one weight after another, and the intercepts; the weights of the cells follow.

        If only_new, on violators alone, as priced, that have no weight yet.
        """
        cdef ptr_t c, k, i, _sweep, m = self.m
        cdef step_t step
        cdef pair_t moments
        cdef double* weight
        cdef bint lost
        for i in range(m):
            self.z[i] = self.inv_z[i] = 1.0
        for _sweep in range(n_sweeps):
            for c in range(self.n_classes):
                if self.interrupted():
                    break
                weight = NULL
                lost = False
                for k in range(self.start[c], self.start[c + 1]):
                    if only_new and not (self.lam[k] == 0.0 and fabs(self.gradient[k]) > self.beta[k] > 0.0):
                        continue
                    if self.beta[k] == 0.0 and 0 < _sweep < n_sweeps - 1:
                        continue
                    if weight == NULL:
                        weight = self.load_prob(c)
                    moments = column_moments(self.walk(k), weight, &self.inv_z[0], &self.mass[0], 0.0)
                    if not moments.second > 0.0:
                        continue
                    step = concordant_step(self.emp[k], moments.first, moments.second, self.extent[self.cols[k]],
                                           l1(self.beta[k]), self.lam[k])
                    if step.delta == 0.0:
                        continue
                    self.lam[k] = 0.0 if step.delta == -self.lam[k] else self.lam[k] + step.delta
                    self.n_updates += 1
                    lost |= column_scale_each(self.walk(k), step.delta, weight, &self.z[0], &self.inv_z[0])
                if weight == NULL:
                    continue
                if not self.stored:
                    for i in range(m):
                        self.log_zs[i] += log(self.z[i])
                        self.z[i] = self.inv_z[i] = 1.0
                elif lost:
                    for k in range(self.start[self.n_classes]):
                        self.new[k] = self.lam[k]
                    self.refresh()
                    for i in range(m):
                        self.z[i] = self.inv_z[i] = 1.0
        for k in range(self.start[self.n_classes]):
            self.new[k] = self.lam[k]
        self.refresh()

    # The quadratic model

    cdef void fill_class(self, ptr_t c) noexcept nogil:
        """Empirical means and penalties of all features of a class."""
        cdef ptr_t p
        memset(&self.dense_mean[0], 0, self.n * sizeof(double))
        memcpy(&self.dense_beta[0], &self.common_beta[0], self.n * sizeof(double))
        for p in range(self.own_start[c], self.own_start[c + 1]):
            self.dense_mean[self.own_cols[p]] = self.own_mean[p]
            self.dense_beta[self.own_cols[p]] = self.own_beta[p]

    cdef void form_blocks(self) noexcept nogil:
        """Slopes at the weights, curvatures, and the matrix of each block."""
        cdef ptr_t block, c, k, i, intercept, last = -1
        cdef double* prob
        cdef double steepness
        for block in range(self.n_blocks):
            if self.interrupted():
                return
            c = self.block_class[block]
            intercept = self.start[c + 1] - 1
            if c != last:
                prob = self.load_prob(c)
                for i in range(self.m):
                    self.flow[i] = self.mass[i] * prob[i]
                    self.curve[i] = self.flow[i] * (1.0 - prob[i])
                steepness = 1.0 / self.prior[c]
                if self.extra:
                    self.gradient[intercept] = column_dot(self.walk(intercept), &self.flow[0]) - self.emp[intercept]
                    self.curvature[intercept] = column_dot(self.walk(intercept), &self.curve[0])
                last = c
            for k in range(self.block_start[block], self.block_end[block]):
                self.gradient[k] = column_dot(self.walk(k), &self.flow[0]) - self.emp[k]
                steepness = max(steepness, (fabs(self.emp[k]) / self.prior[c] + self.beta[k]) / self.beta[k])
                self.cross[k] = column_dot(self.walk(k), &self.curve[0]) if self.extra else 0.0
            self.steepness[c] = steepness
            self.form_gram(block, &self.gram[self.gram_start[block]])

    cdef void form_gram(self, ptr_t block, float* gram) noexcept nogil:
        """X' diag(curve) X of the coordinates of a block, curve that of its class, without what the intercept explains.

        A column that is nothing else gets no curvature.
        """
        cdef ptr_t first = self.block_start[block], size = self.block_end[block] - first, k, j, n_nonzeros = 0
        cdef ptr_t intercept = self.start[self.block_class[block] + 1] - 1
        cdef double scale, rest
        memset(gram, 0, size * size * sizeof(float))
        for k in range(size):
            n_nonzeros += get_column(&self.X, self.cols[first + k]).size
        if 8 * n_nonzeros > size * self.m:
            self.form_gram_by_columns(first, size, gram)
        else:
            self.form_gram_by_rows(first, size, gram)
        if self.extra and self.curvature[intercept] > 0.0:
            for k in range(size):
                scale = self.cross[first + k] / self.curvature[intercept]
                rest = gram[k * size + k]
                for j in range(k + 1):
                    gram[k * size + j] -= <float> (scale * self.cross[first + j])
                if gram[k * size + k] < 1e-5 * rest:
                    gram[k * size + k] = 0.0
        for k in range(size):
            self.curvature[first + k] = gram[k * size + k]
            for j in range(k):
                gram[j * size + k] = gram[k * size + j]

    cdef void form_gram_by_rows(self, ptr_t first, ptr_t size, float* gram) noexcept nogil:
        """Below the diagonal, from the nonzeros of each row."""
        cdef ptr_t k, j, p, q, i
        cdef column_t column
        cdef double w, x
        cdef float* row
        memset(&self.row_start[0], 0, (self.m + 1) * sizeof(ptr_t))
        for k in range(size):
            column = self.walk(first + k)
            for p in range(column.size):
                self.row_start[column.rows[p] + 1] += 1
        for i in range(self.m):
            self.row_start[i + 1] += self.row_start[i]
        for k in range(size):
            column = get_column(&self.X, self.cols[first + k])
            for p in range(column.size):
                q = self.row_start[column.rows[p]]
                self.row_slots[q] = <idx_t> k
                self.row_values[q] = value_at(column, p)
                self.row_start[column.rows[p]] = q + 1
        q = 0
        for i in range(self.m):
            w = self.curve[i]
            if w > 0.0:
                for p in range(q, self.row_start[i]):
                    row = gram + self.row_slots[p] * size
                    x = w * self.row_values[p]
                    for j in range(q, p + 1):
                        row[self.row_slots[j]] += <float> (x * self.row_values[j])
                self.n_nonzeros += (self.row_start[i] - q) * (self.row_start[i] - q) // 2
            q = self.row_start[i]

    cdef void form_gram_by_columns(self, ptr_t first, ptr_t size, float* gram) noexcept nogil:
        """Below the diagonal, for columns with few zeros: some rows at a time."""
        cdef ptr_t k, j, p, i, low, chunk, width
        cdef column_t column
        cdef double* plain = &self.row_values[0]
        cdef double* weighted = plain + size * CHUNK
        cdef double sums[8]
        for k in range(size):
            self.row_start[k] = 0
        for chunk in range((self.m + CHUNK - 1) // CHUNK):
            low = CHUNK * chunk
            width = min(<ptr_t> CHUNK, self.m - low)
            memset(plain, 0, size * CHUNK * sizeof(double))
            for k in range(size):
                column = get_column(&self.X, self.cols[first + k])
                if column.rows == NULL:
                    for i in range(width):
                        plain[k * CHUNK + i] = value_at(column, low + i)
                else:
                    p = self.row_start[k]
                    while p < column.size and column.rows[p] < low + width:
                        plain[k * CHUNK + column.rows[p] - low] = value_at(column, p)
                        p += 1
                    self.row_start[k] = p
                for i in range(width):
                    weighted[k * CHUNK + i] = plain[k * CHUNK + i] * self.curve[low + i]
            self.n_nonzeros += size * size * width // 16
            for k in range(0, size - 1, 2):
                j = 0
                while j + 4 <= size and j <= k + 1:
                    dot4x2(plain + j * CHUNK, CHUNK, weighted + k * CHUNK, weighted + (k + 1) * CHUNK, width, sums)
                    for i in range(4):
                        if j + i <= k:
                            gram[k * size + j + i] += <float> sums[i]
                        if j + i <= k + 1:
                            gram[(k + 1) * size + j + i] += <float> sums[4 + i]
                    j += 4
                while j <= k + 1:
                    if j <= k:
                        gram[k * size + j] += <float> dot(plain + j * CHUNK, weighted + k * CHUNK, width)
                    gram[(k + 1) * size + j] += <float> dot(plain + j * CHUNK, weighted + (k + 1) * CHUNK, width)
                    j += 1
            if size % 2:
                k = size - 1
                for j in range(size):
                    gram[k * size + j] += <float> dot(plain + j * CHUNK, weighted + k * CHUNK, width)

    cdef double solve_block(self, ptr_t block, double precision) noexcept nogil:
        """Minimise the model over a block and the intercept with the others held, given slopes.

        Returns the violation met at first. What the weights gain is in move.
        """
        cdef ptr_t first = self.block_start[block], size = self.block_end[block] - first, k, _sweep
        cdef ptr_t c = self.block_class[block], intercept = self.start[c + 1] - 1
        cdef const float* gram = &self.gram[self.gram_start[block]]
        cdef double worst = 0.0, met, delta, goal, rise
        cdef bint free = self.extra and self.curvature[intercept] > 0.0
        for k in range(first, first + size):
            self.move[k] = 0.0
            worst = max(worst, self.distance(k))
        if free:
            self.move[intercept] = 0.0
            worst = max(worst, fabs(self.slope[intercept]) * self.steepness[c])
        if worst <= precision:
            return worst
        if free:
            rise = -self.slope[intercept] / self.curvature[intercept]
            for k in range(first, first + size):
                self.slope[k] += rise * self.cross[k]
        goal = max(0.1 * precision, 1e-3 * worst)
        for _sweep in range(MOST_SWEEPS):
            met = 0.0
            for k in range(size):
                met = max(met, self.distance(first + k))
                delta = self.best_move(first + k)
                if delta != 0.0:
                    axpy_single(delta, gram + k * size, &self.slope[first], size)
                    self.n_nonzeros += size // 8
            if met <= goal:
                break
        if free:
            for k in range(first, first + size):
                rise -= self.move[k] * self.cross[k] / self.curvature[intercept]
            self.move[intercept] = rise
            self.new[intercept] += rise
        return worst

    cdef inline double distance(self, ptr_t k) noexcept nogil:
        """How far a slope is from what the minimum asks of it, over beta."""
        cdef double step = self.new[k] - self.lam[k], most = self.radius / self.extent[self.cols[k]]
        if not self.curvature[k] > 0.0 or (fabs(step) >= most * (1.0 - 1e-9) and step * self.slope[k] < 0.0):
            return 0.0
        return violation(l1(self.beta[k]), self.slope[k], self.new[k]) / self.beta[k]

    cdef inline double best_move(self, ptr_t k) noexcept nogil:
        """Minimise over one coordinate, within the radius; returns its change."""
        cdef double delta, before = self.new[k], most
        if not self.curvature[k] > 0.0:
            return 0.0
        delta = minimise_quadratic(l1(self.beta[k]), self.slope[k], self.curvature[k], before)
        if self.beta[k] > 0.0 and delta == -before:
            self.new[k] = 0.0
        else:
            self.new[k] = before + delta
        most = self.radius / self.extent[self.cols[k]]
        if fabs(self.new[k] - self.lam[k]) > most:
            self.new[k] = min(max(self.new[k], self.lam[k] - most), self.lam[k] + most)
        delta = self.new[k] - before
        self.move[k] += delta
        return delta

    cdef double visit(self, ptr_t block, double precision) noexcept nogil:
        """Minimise the model over a block; returns the violation met."""
        cdef ptr_t c = self.block_class[block], first = self.block_start[block], last = self.block_end[block], k
        cdef ptr_t intercept = self.start[c + 1] - 1
        cdef double* prob = self.load_prob(c)
        cdef double* score = self.load_score(c)
        cdef double worst, rise = 0.0
        cdef bint moved
        fill_flow(&self.mass[0], prob, score, &self.row_mean[0], &self.flow[0], self.m)
        for k in range(first, last):
            self.slope[k] = self.gradient[k] + column_dot(self.walk(k), &self.flow[0])
        if self.extra:
            self.slope[intercept] = self.gradient[intercept] + column_dot(self.walk(intercept), &self.flow[0])
            self.move[intercept] = 0.0
        worst = self.solve_block(block, precision)
        if self.extra:
            rise = self.move[intercept]
        moved = rise != 0.0
        for k in range(first, last):
            if self.move[k] != 0.0:
                moved = True
                column_axpy(self.walk(k), self.move[k], &self.change[0])
        if moved:
            self.energy[c] = move_cells(&self.mass[0], prob, rise, &self.change[0], score, &self.row_mean[0], self.m)
        self.n_nonzeros += self.m
        return worst

    cdef double model_value(self) noexcept nogil:
        """The change of the model by the step."""
        cdef ptr_t k, c, i
        cdef double total = 0.0, quadratic = 0.0
        for k in range(self.start[self.n_classes]):
            if self.new[k] != self.lam[k]:
                total += self.gradient[k] * (self.new[k] - self.lam[k])
                if self.beta[k] > 0.0:
                    total += self.beta[k] * (fabs(self.new[k]) - fabs(self.lam[k]))
        for c in range(self.n_classes):
            quadratic += self.energy[c]
        for i in range(self.m):
            quadratic -= self.mass[i] * self.row_mean[i] * self.row_mean[i]
        return total + 0.5 * quadratic

    cdef void enter_step(self) noexcept nogil:
        """Scores of the step and their means from the weights."""
        cdef ptr_t c
        cdef double* score
        memset(&self.row_mean[0], 0, self.m * sizeof(double))
        for c in range(self.n_classes):
            if self.interrupted():
                return
            score = self.load_row(self.score, c)
            self.fill_step(c, score)
            self.energy[c] = enter_cells(&self.mass[0], self.load_prob(c), score, &self.row_mean[0], self.m)

    cdef double one_pass(self, double precision, bint whole, double worst) noexcept nogil:
        """Visit the blocks, or those that met much; returns the worst violation met."""
        cdef ptr_t block
        cdef double met = 0.0
        for block in range(self.n_blocks):
            if self.interrupted():
                return 0.0
            if whole or self.met[block] > 0.1 * worst:
                self.met[block] = self.visit(block, precision)
            met = max(met, self.met[block])
        self.n_passes += 1
        return met

    def _divide(self):
        """Divide the working set of each class into blocks, of which the matrices fit into memory."""
        cdef ptr_t size = self.options.max_block_size, c, k, n_nonzeros, widest, most_nonzeros = 1
        start = np.asarray(self.start)
        sizes = np.diff(start) - self.extra
        most = max(self.options.many_classes_memory - 16 * self.prob.size, self.options.many_classes_memory // 4) // 4
        while size > 16:
            n_parts = np.maximum(-(-sizes // size), 1)
            if (n_parts * np.ceil(sizes / n_parts) ** 2).sum() <= most:
                break
            size //= 2
        n_parts = np.maximum(-(-sizes // size), 1)
        first, end = [], []
        for c in range(self.n_classes):
            edges = np.linspace(start[c], start[c] + sizes[c], n_parts[c] + 1).astype(np.int64)
            first.extend(edges[: n_parts[c]])
            end.extend(edges[1:])
        self.block_start, self.block_end = np.array(first, np.int64), np.array(end, np.int64)
        self.block_class = np.repeat(np.arange(self.n_classes), n_parts)
        sizes = np.subtract(end, first)
        self.n_blocks = len(first)
        self.met = np.zeros(self.n_blocks)
        self.gram_start = np.concatenate([[0], np.cumsum(sizes**2)]).astype(np.int64)
        widest = sizes.max(initial=1)
        for c in range(self.n_blocks):
            n_nonzeros = 0
            for k in range(self.block_start[c], self.block_end[c]):
                n_nonzeros += get_column(&self.X, self.cols[k]).size
            most_nonzeros = max(most_nonzeros, min(n_nonzeros, self.m * widest // 8 + 1))
        if self.gram_start[self.n_blocks] >= self.gram.shape[0]:
            self.gram = None
            self.gram = np.empty(self.gram_start[self.n_blocks] + 1, np.float32)
        if most_nonzeros > self.row_slots.shape[0]:
            self.row_slots = np.empty(most_nonzeros, np.int32)
        if max(most_nonzeros, 2 * widest * CHUNK) > self.row_values.shape[0]:
            self.row_values = np.empty(max(most_nonzeros, 2 * widest * CHUNK))
        if self.row_start.shape[0] < widest + 1:
            self.row_start = np.empty(widest + 1, np.int64)

    def _newton(self, double precision, double least):
        """Minimise the model until no violation is above precision; the step is from lam to new.

        Or until the last passes add less than a share `least` of the whole decrease.
        """
        cdef ptr_t n_pass
        cdef double worst = INFINITY, value = 0.0, before
        self._divide()
        self.new[:] = self.lam
        with nogil:
            self.form_blocks()
            self.enter_step()
        history = [np.array(self.new)]
        for n_pass in range(self.options.max_passes):
            with nogil:
                worst = self.one_pass(precision, n_pass % HISTORY == 0, worst)
                if worst <= precision and n_pass % HISTORY > 0:
                    worst = self.one_pass(precision, True, 0.0)
            if worst <= precision or self.stopped:
                break
            history.append(np.array(self.new))
            if len(history) > HISTORY:
                self._extrapolate(history)
                history = [np.array(self.new)]
                before, value = value, self.model_value()
                if before - value <= least * -value:
                    break
        self.worst = worst

    def _extrapolate(self, history):
        """Move to the combination of the last passes that leaves the least change, if the model is lower there."""
        differences = np.diff(history, axis=0)
        products = np.einsum("ak,bk->ab", differences, differences)  # a BLAS adds up in another order by its threads
        scale = np.trace(products)
        if not scale > 0.0:
            return
        try:
            weights = np.linalg.solve(products + 1e-12 * scale * np.eye(len(products)), np.ones(len(products)))
        except np.linalg.LinAlgError:
            return
        weights /= weights.sum()
        before = history[len(history) - 1]
        after = np.zeros_like(before)
        for weight, point in zip(weights, history[1:], strict=True):
            after += weight * point
        lam, beta = np.asarray(self.lam), np.asarray(self.beta)
        # No weight leaves zero, and none crosses it.
        after[(beta > 0.0) & (after * before <= 0.0)] = 0.0
        most = self.radius / np.asarray(self.extent)[np.asarray(self.cols)]
        np.clip(after, lam - most, lam + most, out=after)
        value = self.model_value()
        np.asarray(self.new)[:] = after
        with nogil:
            self.enter_step()
        if not self.model_value() < value and not self.stopped:
            np.asarray(self.new)[:] = before
            with nogil:
                self.enter_step()

    # The dual point

    cdef void normalise_rows(self) noexcept nogil:
        """mu for which the clipped factors of every row add up to one."""
        cdef ptr_t c, i, _iteration
        cdef double worst
        for _iteration in range(40):
            memset(&self.row_scale[0], 0, self.m * sizeof(double))
            memset(&self.open[0], 0, self.m * sizeof(double))
            for c in range(self.n_classes):
                add_clipped(self.load_prob(c), self.load_score(c), self.shift[c], &self.mu[0], &self.row_scale[0],
                            &self.open[0], self.m)
            worst = 0.0
            for i in range(self.m):
                worst = max(worst, fabs(self.row_scale[i] - 1.0))
            if worst <= 1e-12:
                break
            for i in range(self.m):
                if self.open[i] > 0.0:
                    self.mu[i] += (self.row_scale[i] - 1.0) / self.open[i]
            self.n_nonzeros += self.n_classes * self.m // 4
            if self.interrupted():
                break
        for i in range(self.m):
            self.row_scale[i] = 1.0 / self.row_scale[i]

    cdef void fill_dual(self, ptr_t c, double* out) noexcept nogil:
        """The dual point of a class, before classes give and take."""
        cdef const double* prob = self.load_prob(c)
        cdef const double* score = self.load_score(c)
        cdef double shift = 1.0 + self.shift[c], factor
        cdef ptr_t i
        for i in range(self.m):
            factor = shift + (score[i] - self.mu[i])
            out[i] = prob[i] * self.row_scale[i] * factor if factor > 0.0 else 0.0

    cdef double fill_missing(self) noexcept nogil:
        """What each class lacks of its share; returns the sum of absolute values."""
        cdef ptr_t c, i
        cdef double share, total = 0.0
        for c in range(self.n_classes):
            self.fill_dual(c, &self.cell[0])
            share = 0.0
            for i in range(self.m):
                share += self.mass[i] * self.cell[i]
            self.share[c] = share
            self.missing[c] = self.prior[c] - share
            total += fabs(self.missing[c])
        return total

    cdef void shift_product(self, const double* direction, double* out) noexcept nogil:
        """The covariance of the classes, over cells that are not clipped, times a direction of shifts."""
        cdef ptr_t c, i
        cdef const double* prob
        cdef const double* score
        cdef double total, limit
        memset(&self.flow[0], 0, self.m * sizeof(double))
        for c in range(self.n_classes):
            prob, score, limit = self.load_prob(c), self.load_score(c), -1.0 - self.shift[c]
            for i in range(self.m):
                self.flow[i] += direction[c] * (prob[i] if score[i] - self.mu[i] > limit else 0.0)
        for i in range(self.m):
            self.flow[i] = self.flow[i] / self.open[i] if self.open[i] > 0.0 else 0.0
        for c in range(self.n_classes):
            prob, score, limit = self.load_prob(c), self.load_score(c), -1.0 - self.shift[c]
            total = 0.0
            for i in range(self.m):
                total += self.mass[i] * (prob[i] if score[i] - self.mu[i] > limit else 0.0) * (
                    direction[c] - self.flow[i])
            out[c] = total
        self.n_nonzeros += self.n_classes * self.m // 2

    def _restore_shares(self, double goal):
        """Shift the factors of each class so that the classes have their shares."""
        cdef double[::1] direction, product
        cdef ptr_t _round, _iteration
        with nogil:
            self.normalise_rows()
            missed = self.fill_missing()
        if not self.extra:
            return
        for _round in range(6):
            if missed <= goal or self.stopped:
                return
            before = np.array(self.shift), np.array(self.mu), missed
            scale = np.maximum(np.asarray(self.share), 1e-300)
            residual = np.array(self.missing)
            residual -= residual.mean()
            solution = np.zeros(self.n_classes)
            image = np.empty(self.n_classes)
            z = residual / scale
            step, norm = z.copy(), float(np.sum(residual * z))
            first = norm
            for _iteration in range(30):
                direction, product = step, image
                with nogil:
                    self.shift_product(&direction[0], &product[0])
                curvature = float(np.sum(step * image))
                if not curvature > 0.0 or self.interrupted():
                    break
                length = norm / curvature
                solution += length * step
                residual -= length * image
                z = residual / scale
                norm, last = float(np.sum(residual * z)), norm
                if norm <= 1e-6 * first or np.abs(residual).sum() <= 0.3 * goal:
                    break
                step = z + norm / last * step
            np.asarray(self.shift)[:] += solution
            with nogil:
                self.normalise_rows()
                missed = self.fill_missing()
            if not missed < before[2]:
                np.asarray(self.shift)[:], np.asarray(self.mu)[:] = before[:2]
                with nogil:
                    self.normalise_rows()
                    self.fill_missing()
                return

    cdef void settle_shares(self) noexcept nogil:
        """Let classes with more than their share give to those with less: what is left after the shifts."""
        cdef ptr_t c, i
        cdef double missed = 0.0
        memset(&self.given[0], 0, self.m * sizeof(double))
        for c in range(self.n_classes):
            self.taken[c] = 0.0
            if self.extra and self.missing[c] < 0.0:
                self.taken[c] = -self.missing[c] / self.share[c]
                self.fill_dual(c, &self.cell[0])
                for i in range(self.m):
                    self.given[i] += self.taken[c] * self.cell[i]
            missed += max(self.missing[c], 0.0)
        for c in range(self.n_classes):
            self.missing[c] = max(self.missing[c], 0.0) / missed if self.extra and missed > 0.0 else 0.0

    cdef void fill_point(self, ptr_t c, double* out) noexcept nogil:
        """The dual point of a class."""
        cdef ptr_t i
        self.fill_dual(c, out)
        if self.taken[c] > 0.0:
            for i in range(self.m):
                out[i] *= 1.0 - self.taken[c]
        if self.missing[c] > 0.0:
            for i in range(self.m):
                out[i] += self.missing[c] * self.given[i]

    cdef double fill_panel(self, ptr_t low, ptr_t high) noexcept nogil:
        cdef ptr_t c, i, k
        if high - low < WIDTH:
            memset(&self.panel[0], 0, WIDTH * self.m * sizeof(double))
        for c in range(low, high):
            self.fill_point(c, &self.cell[0])
            k = c - low
            for i in range(self.m):
                self.panel[WIDTH * i + k] = self.mass[i] * self.cell[i]
        for k in range(self.n):
            panel_sums(get_column(&self.X, k).rows, get_column(&self.X, k).values, get_column(&self.X, k).size,
                       &self.panel[0], &self.mean[WIDTH * k])
            self.n_nonzeros += get_column(&self.X, k).size

    cdef void select(self, ptr_t c, ptr_t slot, double near, double* ratio, ptr_t* n_all) noexcept nogil:
        """Append the working set of a class to the next one: weights, and the violators that promise most."""
        cdef ptr_t j, k = self.start[c], last = self.start[c + 1] - self.extra, size = 0, n_weights = 0
        cdef ptr_t room, ties, place
        cdef double g, beta, threshold = 0.0, gain
        cdef ptr_t n_examples = self.label_start[c + 1] - self.label_start[c]
        self.fill_class(c)
        for j in range(self.n):
            beta = self.dense_beta[j]
            while k < last and self.cols[k] < j:
                k += 1
            if beta == INFINITY or self.extent[j] == 0.0:
                continue
            g = fabs(self.mean[WIDTH * j + slot] - self.dense_mean[j])
            ratio[0] = max(ratio[0], g / beta)
            if k < last and self.cols[k] == j and (self.lam[k] != 0.0 or self.new[k] != 0.0):
                self.priority[j] = INFINITY
                n_weights += 1
            elif g > near * beta:
                gain = (g - near * beta) / self.rms[j]
                n_all[0] += g > beta
                self.priority[j] = gain
                self.ranked[size] = gain
                size += 1
            else:
                self.priority[j] = 0.0
                continue
            self.found[n_weights + size - 1] = <idx_t> j
        room = max(2 * n_weights, 100 + <ptr_t> (10 * sqrt(<double> n_examples)))
        if size > room:
            threshold = kth_largest(&self.ranked[0], size, room - 1)
        ties = room
        for place in range(n_weights + size):
            ties -= threshold < self.priority[self.found[place]] < INFINITY
        k = self.start[c]
        place = self.next_start[c]
        for size in range(n_weights + size):
            j = self.found[size]
            if self.priority[j] < threshold or (self.priority[j] == threshold and ties == 0):
                continue
            ties -= self.priority[j] == threshold
            while k < last and self.cols[k] < j:
                k += 1
            self.next_cols[place] = <idx_t> j
            self.next_lam[place] = self.next_new[place] = 0.0
            if k < last and self.cols[k] == j:
                self.next_lam[place], self.next_new[place] = self.lam[k], self.new[k]
            self.next_beta[place], self.next_emp[place] = self.dense_beta[j], self.dense_mean[j]
            self.next_gradient[place] = self.mean[WIDTH * j + slot] - self.dense_mean[j]
            place += 1
        if self.extra:
            self.next_cols[place] = <idx_t> self.n
            self.next_lam[place], self.next_new[place] = self.lam[last], self.new[last]
            self.next_beta[place], self.next_emp[place] = 0.0, self.prior[c]
            self.next_gradient[place] = 0.0
            place += 1
        self.next_start[c + 1] = place

    cdef double divergence(self, double t) noexcept nogil:
        """KL of the dual point, with a share t of p~, against q."""
        cdef ptr_t c, i, p
        cdef double total = 0.0, part, held, rest = 1.0 - t
        cdef const double* prob
        memset(&self.target[0], 0, self.m * sizeof(double))
        for c in range(self.n_classes):
            self.fill_point(c, &self.cell[0])
            prob = self.load_prob(c)
            for p in range(self.label_start[c], self.label_start[c + 1]):
                self.target[self.label_rows[p]] = t * self.label_share[p]
            part = 0.0
            for i in range(self.m):
                held = rest * self.cell[i] + self.target[i]
                if prob[i] > 0.0:
                    part += self.mass[i] * (prob[i] * excess(held / prob[i] - 1.0))
                elif held > 0.0 and self.mass[i] > 0.0:
                    part = INFINITY
            total += part
            for p in range(self.label_start[c], self.label_start[c + 1]):
                self.target[self.label_rows[p]] = 0.0
            self.n_nonzeros += 4 * self.m
            if self.interrupted():
                return INFINITY
        return total

    def _certify(self, bint with_step):
        """A dual point from the step, or from q; its gradient, what it proves, and the working set that it asks for.

        Returns false if it was interrupted.
        """
        cdef ptr_t low, high, c, k, room, n_all = 0
        cdef double ratio = 0.0, t, gap, loose
        cdef double near = self.options.near_violator
        if not with_step:
            self.new[:] = self.lam
            with nogil:
                self.enter_step()
        self.shift[:] = 0.0
        self.mu[:] = self.row_mean
        gap = min(self.objective - self.least, fabs(self.objective_zero))
        self._restore_shares(1e-3 * max(self.tol * fabs(self.objective_zero), gap))
        with nogil:
            self.settle_shares()
        self.next_start = np.zeros(self.n_classes + 1, np.int64)
        room = 0
        for c in range(self.n_classes):
            k = self.start[c + 1] - self.start[c]
            room += 1 + min(k + max(2 * k, 110 + <ptr_t> (10 * sqrt(<double> (
                self.label_start[c + 1] - self.label_start[c])))), self.n)
        self.next_cols = np.empty(room, np.int32)
        self.next_lam, self.next_new, self.next_beta = np.empty(room), np.empty(room), np.empty(room)
        self.next_emp, self.next_gradient = np.empty(room), np.empty(room)
        with nogil:
            for k in range((self.n_classes + WIDTH - 1) // WIDTH):
                low = WIDTH * k
                high = min(low + <ptr_t> WIDTH, self.n_classes)
                self.fill_panel(low, high)
                if self.interrupted():
                    break
                for c in range(low, high):
                    self.select(c, c - low, near, &ratio, &n_all)
        if self.stopped:
            return False
        size = self.next_start[self.n_classes]
        self.ratio = ratio
        t = 1.0 - 1.0 / max(ratio, 1.0)
        with nogil:
            gap = self.divergence(t)
        if self.stopped:
            return False
        cdef ptr_t n_weights = 0
        for k in range(size):
            if self.next_lam[k] != 0.0 and self.next_beta[k] > 0.0:
                loose = (self.next_beta[k] * fabs(self.next_lam[k])
                         + (1.0 - t) * self.next_lam[k] * self.next_gradient[k])
                gap += max(loose, 0.0)
                n_weights += 1
        self.mixing = t
        self.violator_ratio = n_all / (1.0 + n_weights)
        if gap == gap:
            self.least = max(self.least, self.objective - gap)
        self.start, self.cols = self.next_start, np.array(np.asarray(self.next_cols)[:size])
        self.lam, self.new = np.array(np.asarray(self.next_lam)[:size]), np.array(np.asarray(self.next_new)[:size])
        self.beta, self.emp = np.array(np.asarray(self.next_beta)[:size]), np.array(np.asarray(self.next_emp)[:size])
        self.gradient = np.array(np.asarray(self.next_gradient)[:size])
        self._fit_lists()
        self.next_cols = None
        self.next_lam = self.next_new = self.next_beta = self.next_emp = self.next_gradient = None
        return True

    # The face of a solver

    def _search(self):
        """Move by the step, or a part of it that makes the objective fall; returns the part, 0 if there is none."""
        cdef double length = 1.0, before = self.objective
        old, new = np.array(self.lam), np.array(self.new)
        while length > 1e-4:
            np.asarray(self.lam)[:] = new if length == 1.0 else old + length * (new - old)
            with nogil:
                self.refresh()
            if self.objective < before:
                break
            length *= 0.5
        else:
            np.asarray(self.lam)[:] = old
            with nogil:
                self.refresh()
            length = 0.0
        self.new[:] = self.lam
        return length

    @property
    def dual_gap(self):
        return max(self.objective - self.least, 0.0) + self.rounding

    def run(self, ptr_t n, stop=None):
        """Go on for at most n rounds; returns "converged", "running", "stalled" or "interrupted"."""
        with self.lock:
            self.stop, self.pending, self.stopped = stop, None, False
            status = self._run(n)
            pending, self.pending = self.pending, None
        if pending is not None:
            raise pending
        return status

    def _run(self, n):
        cdef ptr_t n_sweeps
        target = self.tol * fabs(self.objective_zero)
        for k in range(n + 1):
            if not self.evaluated and not self.dual_gap <= target:
                if not self._certify(False):
                    return "interrupted"
                self.evaluated = True
            gap = self.dual_gap
            if gap <= target:
                return "converged"
            if k == n:
                return "running"
            self.stopped = self.should_stop()
            if self.stopped:
                return "interrupted"
            self.n_iter += 1
            if self.violator_ratio > 1.0 and self.n_iter <= self.options.max_sweep_rounds:
                n_sweeps = self.options.first_sweeps
                with nogil:
                    self.sweep(n_sweeps, False)
            else:
                length = self._step(gap / fabs(self.objective_zero))
                if length == 0.0 and not self.dual_gap < gap and not self.stopped:
                    return "stalled"
            if self.stopped:
                return "interrupted"
        return "running"

    def _step(self, relative):
        """One Newton step at this gap relative to the objective of zero weights; returns the part of it that is made.

        Violators without a weight come first by themselves: where q is small, so is their curvature, and the model's
        step would be far too long.
        """
        with nogil:
            self.sweep(1, True)
        if self.stopped:
            return 0.0
        self._newton(min(max(0.1 * relative**1.5, 0.2 * self.tol), 0.03),
                     0.02 if relative > self.options.far_relative_gap else 0.0)
        if self.stopped or not self._certify(True):
            self.new[:] = self.lam
            return 0.0
        length = self._search()
        self.evaluated = length == 1.0
        self.radius *= 2.0 if length == 1.0 else 1.0 if length == 0.5 else 0.5
        return length

    def largest_ratio(self):
        """The largest |q[f] - p~[f]| / beta."""
        self._certify(False)
        return self.ratio

    def coefficients(self):
        """Nonzero weights as (blocks, cols, values)."""
        blocks = np.repeat(np.arange(self.n_classes, dtype=np.int32), np.diff(self.start))
        held = (np.asarray(self.lam) != 0.0) & (np.asarray(self.cols) < self.n)
        return blocks[held], np.asarray(self.cols)[held], np.asarray(self.lam)[held]

    def intercept(self):
        if not self.extra:
            return np.zeros(self.n_classes)
        return np.asarray(self.lam)[np.asarray(self.start)[1:] - 1].copy()

    @property
    def counters(self):
        return {"column_walks": 0, "updates": self.n_updates, "nonzeros": self.n_nonzeros}
