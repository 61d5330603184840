"""One problem, solved: the state, the two algorithms' outer loops, and their Python face.

    minimise  sum_g w_g ln Z_g  -  sum_k lam_k p~_k  +  sum_k beta_k |lam_k|

over the weights lam of all coordinates k = (c, j), given the columns of X, the empirical means p~, the penalties beta,
the target distribution over cells and the mass of each example. One Z over all cells (pooled) gives the paper's Q1, Q2
and Q1(lambda^c); one Z per example gives Q3 and, with a reference cell, Q3(lambda^c) as logistic regression.

`Problem` is what does not change while it is solved, `Solver` what does. `Solver.run` goes on from where it stands and
returns a status; it cannot fail on input, which `sl1max._data.inputs` has seen to. Between two runs a solver may be
given another problem on the same columns (`Solver.change`). Threads may share columns and problems, never a solver.
"""
from cpython.exc cimport PyErr_CheckSignals
from libc.math cimport INFINITY, NAN, fabs, sqrt
from libc.string cimport memcpy

import threading

import numpy as np

from sl1max._core._certificate cimport certify, dual_t, duality_gap, tighten
from sl1max._core._column cimport (
    column_axpy, column_dot, column_moments_pooled, get_column, row_axpy, transpose_rows,
)
from sl1max._core._conjugate cimport fill_moved_mass
from sl1max._core._lock cimport ExclusiveLock
from sl1max._core._newton cimport newton_steps, newton_t, release_newton, sweep
from sl1max._core._normalizer cimport fill_cell_mass, log_z, objective, refresh_normalizer
from sl1max._core._options import DEFAULT_OPTIONS
from sl1max._core._penalty cimport limit_weight
from sl1max._core._sequential cimport choice_t, prices_t, sequential_step
from sl1max._core._types cimport (
    CONVERGED, IN_USE, INTERRUPTED, OUT_OF_MEMORY, RUNNING, STALLED, column_t, columns_t, idx_t, options_t, problem_t,
    ptr_t, state_t, status_t,
)
from sl1max._core._working_set cimport keep_nonzero, select_working_set, working_set_t

cdef double ROUNDING = 1e-13
STATUS = {RUNNING: "running", CONVERGED: "converged", STALLED: "stalled", INTERRUPTED: "interrupted"}


cdef class Columns:
    """The columns of X, by reference. Threads may share it: a lock guards what is computed later.

    Parameters
    ----------
    n_rows, n_cols : int
    indptr : int64 array of shape (n_cols + 1,), or None for dense columns
    indices : int32 array of row numbers, or None for dense columns
    values : float64 array beside `indices`, or None if every stored value is one; dense: the matrix, column by column
    by_rows : bool or None
        Keep sparse columns by rows too; None: from as many rows on as make that the faster way to price.
    row_index : tuple of arrays or None
        The same matrix by rows, (start, cols, values) like `indptr`, `indices` and `values`, columns ascending within a
        row: kept by reference, in place of one that is made.
    """
    def __init__(self, idx_t n_rows, idx_t n_cols, const ptr_t[::1] indptr, const idx_t[::1] indices,
                 const double[::1] values, *, by_rows=None, row_index=None):
        self.lock = threading.Lock()
        self.owned = (indptr, indices, values)
        self.view.n_rows = n_rows
        self.view.n_cols = n_cols
        self.view.indptr = NULL if indptr is None else &indptr[0]
        self.view.rows = NULL if indices is None or indices.shape[0] == 0 else &indices[0]
        self.view.values = NULL if values is None or values.shape[0] == 0 else &values[0]
        self._measure()
        if row_index is not None:
            self._set_row_index(*row_index)
        elif n_rows >= DEFAULT_OPTIONS.many_rows if by_rows is None else by_rows:
            self.index_rows()

    def index_rows(self):
        """Keep sparse columns by rows too, for problems made from now on: columns ascend within a row."""
        if self.view.indptr == NULL or self.nnz == 0:
            return
        with self.lock:
            if self.view.row_start == NULL:
                self._index_rows()

    cdef columns_t get_view(self):
        """A copy of the pointers, with the index of rows or without."""
        cdef columns_t view
        with self.lock:
            view = self.view
        return view

    def _index_rows(self):
        cdef ptr_t[::1] start = np.zeros(self.view.n_rows + 1, np.int64)
        cdef idx_t[::1] cols = np.empty(self.nnz, np.int32)
        cdef double[::1] values = None if self.view.values == NULL else np.empty(self.nnz)
        with nogil:
            transpose_rows(self.view.n_cols, self.view.n_rows, self.view.indptr, self.view.rows, self.view.values,
                           &start[0], &cols[0], NULL if values is None else &values[0])
        self._set_row_index(start, cols, values)

    def _set_row_index(self, const ptr_t[::1] start, const idx_t[::1] cols, const double[::1] values):
        self.row_index = (start, cols, values)
        self.longest_row = np.diff(start).max()
        self.view.row_start = &start[0]
        self.view.row_cols = &cols[0]
        self.view.row_values = NULL if values is None else &values[0]

    def _measure(self):
        """Range, rms and total of every column, and of the intercept's column of ones after them."""
        cdef ptr_t n = self.view.n_cols, j, p
        cdef double[::1] rms = np.ones(n + 1)
        cdef double[::1] low = np.ones(n + 1), high = np.ones(n + 1), extent = np.ones(n + 1)
        cdef double[::1] total = np.full(n + 1, <double> self.view.n_rows)
        cdef double square, x
        for j in range(n):
            column = get_column(&self.view, j)
            if column.values == NULL:
                low[j], high[j] = column.size == self.view.n_rows, column.size > 0
                square = total[j] = column.size
            else:
                low[j] = 0.0 if column.size < self.view.n_rows else INFINITY
                high[j] = -low[j]
                square = total[j] = 0.0
                for p in range(column.size):
                    x = column.values[p]
                    low[j] = min(low[j], x)
                    high[j] = max(high[j], x)
                    square += x * x
                    total[j] += x
            extent[j] = max(fabs(low[j]), fabs(high[j]))
            rms[j] = sqrt(square / self.view.n_rows)
        self.low, self.high, self.extent = np.asarray(low), np.asarray(high), np.asarray(extent)
        self.rms = np.asarray(rms)
        self.reach, self.reach_with_zero = self.high - self.low, np.maximum(self.high, 0.0) - np.minimum(self.low, 0.0)
        self.total = np.asarray(total)
        self.view.total = &total[0]

    def weighted_rms(self, const double[::1] mass):
        """Root mean square of each column, an example counting as its mass; so that mass 2 is the row twice.

        Those of the last masses are kept: the classes of a model share them.
        """
        with self.lock:
            kept = self.last_weighted
            if kept is None or not np.array_equal(kept[0], mass):
                kept = self.last_weighted = np.array(mass), self._weighted_rms(mass)
        return kept[1]

    def _weighted_rms(self, const double[::1] mass):
        cdef double[::1] rms = np.ones(self.view.n_cols + 1)
        cdef double total = np.sum(mass)
        cdef ptr_t j
        for j in range(self.view.n_cols):
            rms[j] = sqrt(column_moments_pooled(get_column(&self.view, j), &mass[0]).second / total)
        return np.asarray(rms)

    def means(self, const double[:, ::1] cells):
        """cells @ X, an array (n_blocks, n_cols): the empirical means where cells are an empirical distribution."""
        cdef double[:, ::1] mean = np.empty((cells.shape[0], self.view.n_cols))
        cdef ptr_t c, j
        with nogil:
            for c in range(mean.shape[0]):
                for j in range(mean.shape[1]):
                    mean[c, j] = column_dot(get_column(&self.view, j), &cells[c, 0])
        return np.asarray(mean)

    def touched_rows(self, const ptr_t[::1] cols, const idx_t[::1] also):
        """Rows, ascending, that hold a nonzero in one of the columns; and some others."""
        cdef unsigned char[::1] marks = np.zeros(self.view.n_rows, np.uint8)
        cdef column_t column
        cdef ptr_t k, p
        with nogil:
            for k in range(cols.shape[0]):
                column = get_column(&self.view, cols[k])
                for p in range(column.size):
                    marks[column.rows[p]] = 1
            for p in range(also.shape[0]):
                marks[also[p]] = 1
        return np.flatnonzero(marks).astype(np.int32)

    def restricted(self, const ptr_t[::1] cols, const idx_t[::1] rows):
        """`Columns` of these columns on these rows, which hold all their nonzeros, and on one empty row after them."""
        cdef idx_t[::1] place = np.empty(self.view.n_rows, np.int32)
        cdef ptr_t[::1] indptr = np.zeros(cols.shape[0] + 1, np.int64)
        cdef column_t column
        cdef ptr_t k, p
        for p in range(rows.shape[0]):
            place[rows[p]] = <idx_t> p
        for k in range(cols.shape[0]):
            indptr[k + 1] = indptr[k] + get_column(&self.view, cols[k]).size
        cdef idx_t[::1] indices = np.empty(indptr[cols.shape[0]], np.int32)
        cdef double[::1] values = None if self.view.values == NULL else np.empty(indptr[cols.shape[0]])
        with nogil:
            for k in range(cols.shape[0]):
                column = get_column(&self.view, cols[k])
                for p in range(column.size):
                    indices[indptr[k] + p] = place[column.rows[p]]
                if column.values != NULL and column.size > 0:
                    memcpy(&values[indptr[k]], column.values, column.size * sizeof(double))
        return Columns(<idx_t> rows.shape[0] + 1, <idx_t> cols.shape[0], indptr, indices, values, by_rows=False)

    def price(self, const idx_t[::1] rows, const double[::1] flow, double common):
        """X' f (n_cols,), where f is flow + common in these rows and common in all others: by the index of rows."""
        cdef double[::1] mean = common * self.total
        cdef ptr_t k
        with nogil:
            for k in range(rows.shape[0]):
                row_axpy(&self.view, rows[k], flow[k], &mean[0])
        return np.asarray(mean)[: self.view.n_cols]

    def add_scores(self, const idx_t[::1] cols, const double[::1] weights, double[::1] score_out):
        """score_out += X[:, cols] @ weights"""
        cdef ptr_t k
        with nogil:
            for k in range(cols.shape[0]):
                column_axpy(get_column(&self.view, cols[k]), weights[k], &score_out[0])

    @property
    def sizes(self):
        """How many nonzeros each column holds."""
        if self.view.indptr == NULL:
            return np.full(self.view.n_cols, self.view.n_rows)
        return np.diff(self.owned[0])

    indexed_by_rows = property(lambda self: (<Columns> self).get_view().row_start != NULL)
    n_rows = property(lambda self: (<Columns> self).view.n_rows)
    n_cols = property(lambda self: (<Columns> self).view.n_cols)
    dense = property(lambda self: (<Columns> self).view.indptr == NULL)
    binary = property(lambda self: (<Columns> self).view.values == NULL and (<Columns> self).view.indptr != NULL)

    @property
    def nnz(self):
        if self.view.indptr == NULL:
            return int(self.view.n_rows) * int(self.view.n_cols)
        return self.view.indptr[self.view.n_cols]


cdef class Problem:
    """What is to be minimised. It never changes, so threads may share it; the arrays are taken by reference.

    Parameters
    ----------
    columns : Columns
    emp_mean, beta : float64 arrays of shape (n_blocks, n_features)
        Empirical mean and penalty of every coordinate. beta 0: unpenalised; inf: left out.
    target : float64 array of shape (n_blocks, n_samples)
        pooled: the empirical distribution over all cells, summing to one. Else p~(c | x_i), summing to one over c
        (with a reference cell: to at most one).
    mass : float64 array of shape (n_samples,)
        pooled: the base measure of an example, its sample weight. Else u_i, summing to one.
    pooled : bool
        One Z over all cells, or one per example.
    reference : bool
        Give every example one more cell, of score 0 (only with one block and one Z per example).
    intercept : bool
        Give every block an unpenalised constant feature.
    offset : float64 array of shape (n_blocks, n_samples) or None
        Added to the scores: the log of a base measure over cells.
    beta_upper, l2, low, high : float64 arrays of shape (n_blocks, n_features) or None
        Penalty of negative weights, where beta is that of positive ones alone (None: the same); l2 penalty (None: 0);
        limits of the weights, low <= 0 <= high (None: none). An infinite beta allows no positive weight, an infinite
        beta_upper no negative one.
    """
    cdef problem_t view
    cdef object owned
    cdef bint intercept
    cdef readonly Columns columns
    cdef readonly object emp_mean
    cdef readonly object given_beta     # as it came
    cdef readonly object given_penalty  # what came beside beta, by name
    cdef readonly object beta           # with inf for what needs no weight, and the intercepts'
    cdef readonly object beta_upper     # the same array where the two are equal
    cdef readonly object l2, low, high  # None or with the intercepts'

    def __init__(self, Columns columns, emp_mean, beta, const double[:, ::1] target, const double[::1] mass, *,
                 bint pooled, bint reference=False, bint intercept=False, const double[:, ::1] offset=None,
                 beta_upper=None, l2=None, low=None, high=None):
        self.columns = columns
        self.given_beta = beta
        self.given_penalty = {"beta_upper": beta_upper, "l2": l2, "low": low, "high": high}
        self.intercept = intercept
        self.view.X = columns.get_view()
        self.view.n_blocks = target.shape[0]
        self.view.n_coords = columns.view.n_cols + 1
        self.view.pooled = pooled
        self.view.reference = reference
        self.view.exact_bound = pooled and columns.binary
        self._set_penalty(beta, beta_upper, l2, low, high)
        self._measure(emp_mean, target, mass, offset)

    def _set_penalty(self, beta, beta_upper, l2, low, high):
        """The penalty arrays, the intercepts' included, in the form that _penalty.pxd reads: only those that matter."""
        cdef ptr_t n_blocks = self.view.n_blocks, n = self.view.n_coords
        cdef double[:, ::1] lower, upper, squared, least, most
        shape = n_blocks, n - 1

        def pad(array, intercept):
            padded = np.empty((n_blocks, n))
            padded[:, :-1], padded[:, -1] = array, intercept
            return padded

        if beta_upper is not None or low is not None or high is not None:
            # A side with an infinite beta is one that a limit of zero closes.
            upper_given = np.broadcast_to(beta if beta_upper is None else beta_upper, shape)
            high = np.where(np.isinf(beta), 0.0, np.inf if high is None else high)
            low = np.where(np.isinf(upper_given), 0.0, -np.inf if low is None else low)
            closed = (low == 0.0) & (high == 0.0)
            beta, beta_upper = (np.where(np.isinf(beta) & ~closed, upper_given, beta),
                                np.where(np.isinf(upper_given) & ~closed, beta, upper_given))
            beta[closed] = beta_upper[closed] = np.inf
            if np.array_equal(beta, beta_upper):
                beta_upper = None
            if np.isinf(low[~closed]).all() and np.isinf(high[~closed]).all():
                low = high = None
        if l2 is not None and not np.any(l2):
            l2 = None
        intercept = 0.0 if self.intercept else np.inf
        lower = self.beta = pad(beta, intercept)
        upper = self.beta_upper = self.beta if beta_upper is None else pad(beta_upper, intercept)
        self.view.beta, self.view.beta_upper = &lower[0, 0], &upper[0, 0]
        if l2 is not None:
            squared = self.l2 = pad(l2, 0.0)
            self.view.l2 = &squared[0, 0]
        if low is not None:
            least = self.low = pad(low, -np.inf)
            most = self.high = pad(high, np.inf)
            self.view.low, self.view.high = &least[0, 0], &most[0, 0]
        self.view.general = beta_upper is not None or l2 is not None or low is not None

    def _measure(self, emp_mean, const double[:, ::1] target, const double[::1] mass,
                 const double[:, ::1] offset):
        cdef Columns columns = self.columns
        cdef ptr_t n_blocks = self.view.n_blocks, n = columns.view.n_cols
        cdef bint pooled = self.view.pooled
        cdef const double[:, ::1] padded_mean
        cdef const double[::1] reach, extent, rms
        shares, common = np.asarray(target), np.ptp(mass) == 0.0
        # einsum, not @: a BLAS adds up in another order for each number of its threads.
        prior = shares.sum(axis=1) if pooled else np.einsum("ci,i->c", shares, np.asarray(mass))
        self.emp_mean = np.empty((n_blocks, n + 1))
        self.emp_mean[:, :n], self.emp_mean[:, n] = emp_mean, prior
        extent = columns.extent
        rms = columns.rms if common else columns.weighted_rms(mass)
        # Under one Z what counts is the range of f_cj: over all the cells, other blocks' zeros included.
        reach = extent if not pooled else columns.reach if n_blocks == 1 else columns.reach_with_zero
        padded_mean = self.emp_mean
        self.owned = (target, mass, offset, padded_mean, reach, extent, rms)
        self.view.common_mass = mass[0] if common else 0.0
        self.view.mass = &mass[0]
        self.view.target = &target[0, 0]
        self.view.offset = NULL if offset is None else &offset[0, 0]
        self.view.emp_mean = &padded_mean[0, 0]
        self.view.reach = &reach[0]
        self.view.extent = &extent[0]
        self.view.rms = &rms[0]
        self._leave_out()

    def _leave_out(self):
        """Give coordinates that need no weight an infinite beta, and list the others."""
        cdef problem_t* problem = &self.view
        cdef ptr_t n = problem.n_coords, c, j, size = 0
        cdef ptr_t[::1] included = np.empty(problem.n_blocks * n, np.int64)
        cdef ptr_t[::1] start = np.zeros(problem.n_blocks + 1, np.int64)
        cdef double[:, ::1] beta = self.beta, beta_upper = self.beta_upper
        cdef const double[::1] low = self.columns.low
        for c in range(problem.n_blocks):
            for j in range(n):
                if beta[c, j] == INFINITY or cannot_move(problem, j) or (
                        low[j] >= 0.0 and is_always_met(problem, c * n + j, j)):
                    beta[c, j] = beta_upper[c, j] = INFINITY
                else:
                    included[size] = c * n + j
                    size += 1
            start[c + 1] = size
        self.owned += (included, start)
        problem.included = &included[0]
        problem.included_start = &start[0]


cdef inline bint cannot_move(const problem_t* problem, ptr_t j) noexcept nogil:
    """Whether column j cannot move the model: an empty one, or under the one Z of a block a constant one."""
    return problem.reach[j] == 0.0 or (problem.pooled and problem.n_blocks == 1 and j == problem.X.n_cols)


cdef inline bint is_always_met(const problem_t* problem, ptr_t k, ptr_t j) noexcept nogil:
    """Whether every distribution meets the constraint of coordinate k: then its weight is zero, and nobody need look.

    Of values that are not negative the mean is between zero and that of all of them.
    """
    cdef double p = problem.emp_mean[k], most = problem.common_mass * problem.X.total[j]
    cdef bint rises = problem.high == NULL or problem.high[k] > 0.0, falls = problem.low == NULL or problem.low[k] < 0.0
    return (not problem.pooled and problem.common_mass > 0.0
            and (not rises or p <= problem.beta[k] * (1.0 + ROUNDING))
            and (not falls or most - p <= problem.beta_upper[k] * (1.0 + ROUNDING)))


cdef bint poll_owner(void* owner) noexcept nogil:
    with gil:
        return (<Solver> owner).should_stop()


cdef class Solver:
    """A problem on its way to the optimum.

    Parameters
    ----------
    problem : Problem
    algorithm : {"newton", "sequential"}
        Working sets, closed-form sweeps and Newton steps; or the paper's greedy steps, for values in [0, 1].
    tol : float
        Converged when dual_gap <= tol * objective_zero.
    pricing : {"partial", "full"}
        "sequential" only: look at every coordinate before each step, or only at those that can matter.
    warm_start : tuple (blocks, cols, values, intercept) or None
    objective_zero : float or None
        What `tol` is relative to; None: the objective of the intercepts alone, which are then fitted first.
    tight : bool
        Whether to look for a tighter gap than the model's own distribution gives, unless tol is very small or a round
        costs little.
    options : SolverOptions or None
    """
    cdef readonly Problem problem
    cdef state_t state
    cdef working_set_t working
    cdef newton_t newton
    cdef options_t options
    cdef dual_t dual
    cdef prices_t prices
    cdef choice_t last
    cdef dict arrays
    cdef bint sequential, full_pricing, tight, many_rows
    cdef bint polished               # whether the last round ended with a Newton system
    cdef bint evaluated              # whether objective, gap and gradient are those of the weights
    cdef bint exact                  # whether scores and normalisers are, as Newton steps leave them
    cdef ptr_t next_check            # "sequential": look at the gap when n_iter reaches it
    cdef readonly double tol
    cdef ExclusiveLock lock          # held while the state changes
    cdef object stop, pending

    def __init__(self, Problem problem, *, algorithm="newton", double tol=1e-4, pricing="partial", warm_start=None,
                 objective_zero=None, bint tight=True, options=None):
        self.problem = problem
        self.options = vars(DEFAULT_OPTIONS if options is None else options)
        self.lock = ExclusiveLock("this Solver is at work in another thread: give each thread a Solver of its own")
        self.tight = (tight and tol >= self.options.tight_tol
                      and problem.view.n_blocks * problem.view.X.n_rows >= self.options.tight_cells)
        self.tol = tol
        self.sequential = algorithm == "sequential"
        self.full_pricing = pricing == "full"
        self.many_rows = problem.view.X.n_rows >= self.options.many_rows
        self.arrays = {}
        self._allocate()
        self.state.poll = poll_owner
        self.state.owner = <void*> self
        if objective_zero is None:
            self._fit_intercepts()
        else:
            self.state.objective_zero = objective_zero
        if warm_start is not None:
            self._load(*warm_start)

    def __dealloc__(self):
        release_newton(&self.newton)

    cdef double* _array(self, name, ptr_t size):
        """Zeros; those of an earlier call where the size is the same."""
        cdef double[::1] array = self.arrays.get(name)
        if array is not None and array.shape[0] == max(size, 1):
            array[:] = 0.0
        else:
            array = np.zeros(max(size, 1))      # costs nothing where nobody looks at it
            self.arrays[name] = array
        return &array[0]

    cdef ptr_t* _index(self, name, array):
        cdef ptr_t[::1] index = array
        self.arrays[name] = index
        return &index[0]

    def _allocate(self):
        cdef problem_t* problem = &self.problem.view
        cdef ptr_t m = problem.X.n_rows, n_all = problem.n_blocks * problem.n_coords, n_cells = problem.n_blocks * m
        cdef ptr_t n_z = 1 if problem.pooled else m
        self.state.lam = self._array("lam", n_all)
        self.state.gradient = self._array("gradient", n_all)
        self.state.score = self._array("score", n_cells)
        self.state.weight = self._array("weight", n_cells)
        self.state.direction_score = self._array("direction_score", n_cells)
        self.state.z = self._array("z", n_z)
        self.state.inv_z = self._array("inv_z", n_z)
        self.state.shift = self._array("shift", n_z)
        self.state.direction_mean = self._array("direction_mean", n_z)
        self.state.cell_mass = self._array("cell_mass", m)
        self.working.priority = self._array("priority", n_all)
        self.working.ranked = self._array("ranked", n_all)
        self.working.coords = self._index("coords", np.zeros(n_all, np.int64))
        cdef idx_t[::1] order = np.zeros(n_all, np.int32)
        self.arrays["order"] = order
        self.working.order = &order[0]
        self.working.seed = 0
        cdef idx_t[::1] row_start = np.zeros(m + 1, np.int32), row_end = np.zeros(m, np.int32)
        self.arrays["row_start"], self.arrays["row_end"] = row_start, row_end
        self.newton.entries.row_start, self.newton.entries.row_end = &row_start[0], &row_end[0]
        cdef unsigned char[::1] is_partial = np.zeros(m, np.uint8)
        self.arrays["is_partial"] = is_partial
        self.newton.entries.is_partial = &is_partial[0]
        self.newton.entries.row_curvature = self._array("row_curvature", m)
        self.newton.entries.cell_curvature = self._array("cell_curvature", m)
        self.newton.z_growth = self._array("z_growth", 1 if problem.pooled else m)
        self.newton.z_moved = self._array("z_moved", 1 if problem.pooled else m)
        if self.sequential:
            self.prices.gain = self._array("gain", n_all)
            self.prices.ranked = self.working.ranked
            self.prices.candidates = self._index("candidates", np.zeros(n_all, np.int64))
            self.prices.n_candidates = 0
            self.last.coord = -1
        may_be_free = (self.problem.beta == 0.0) | (self.problem.beta_upper == 0.0)
        if self.problem.l2 is not None:
            may_be_free &= self.problem.l2 == 0.0
        unbound = np.flatnonzero(may_be_free.ravel()).astype(np.int64)
        free = unbound.copy()
        self.dual.failed = INFINITY
        self.dual.correction = self._array("correction", n_all)
        self.dual.curvature = self._array("violator_curvature", n_all)
        self.dual.mean = self._array("violator_mean", n_all)
        self.dual.cell_curvature = self._array("dual_curvature", m)
        self.dual.violators = self._index("violators", np.zeros(n_all, np.int64))
        self.dual.n_unbound = unbound.size
        self.dual.unbound = self._index("unbound", unbound if unbound.size else np.zeros(1, np.int64))
        self.dual.free.size = 0
        self.dual.free.coords = self._index("free", free if free.size else np.zeros(1, np.int64))
        self.dual.free.scale = self._array("free_scale", free.size)
        self.dual.free.solution = self._array("free_solution", free.size)
        self.dual.free.residual = self._array("free_residual", free.size)
        self.dual.free.direction = self._array("free_direction", free.size)
        self.dual.free.product = self._array("free_product", free.size)

    def _fit_intercepts(self):
        """objective_zero: the intercepts alone, from their closed form where no offset disturbs it."""
        cdef problem_t* problem = &self.problem.view
        cdef ptr_t c, k
        cdef int _steps
        prior = self.problem.emp_mean[:, -1]
        self.working.size = 0
        for c in range(problem.n_blocks):
            k = c * problem.n_coords + problem.X.n_cols
            if problem.beta[k] == 0.0:
                self.state.lam[k] = np.log(prior[c]) - (np.log1p(-prior[c]) if problem.reference > 0.0 else 0.0)
                self.working.coords[self.working.size] = k
                self.working.size += 1
        refresh_normalizer(problem, &self.state)
        self.state.objective_zero = objective(problem, &self.state)
        if self.working.size > 0 and problem.offset != NULL:
            for _steps in range(20):
                if newton_steps(problem, &self.state, &self.options, &self.working, &self.newton, 0.0, 1e-6) <= 0:
                    break
            self.state.objective_zero = objective(problem, &self.state)

    def _load(self, blocks, cols, values, intercept):
        cdef ptr_t c, k
        for block, col, value in zip(blocks, cols, values, strict=True):
            k = block * self.problem.view.n_coords + col
            if self.problem.view.beta[k] != INFINITY:
                self.state.lam[k] = limit_weight(&self.problem.view, k, value)
        for c in range(self.problem.view.n_blocks):
            k = c * self.problem.view.n_coords + self.problem.view.X.n_cols
            if self.problem.view.beta[k] == 0.0:
                self.state.lam[k] = intercept[c]

    def change(self, Problem problem):
        """Go on from the current weights with another problem on the same columns; see `restart`."""
        if (problem.columns is not self.problem.columns or problem.view.n_blocks != self.problem.view.n_blocks
                or problem.view.pooled != self.problem.view.pooled
                or problem.view.reference != self.problem.view.reference):
            raise ValueError("the other problem must have the same columns, blocks and normaliser")
        with self.lock:
            self.problem = problem
            self._restart()

    def restart(self):
        """Go on from the current weights after they were changed, without those of coordinates that are left out."""
        with self.lock:
            self._restart()

    def set_weights(self, weights, intercept):
        """Go on from other weights (n_blocks, n_features) and intercepts (n_blocks,)."""
        with self.lock:
            self.weights[:, :-1], self.weights[:, -1] = weights, intercept
            self._restart()

    def _restart(self):
        lam = self.weights.copy()
        self._allocate()
        self._fit_intercepts()
        if self.problem.low is not None:
            lam = np.clip(lam, self.problem.low, self.problem.high)
        self.weights[...] = np.where(np.isfinite(self.problem.beta), lam, 0.0)
        self.evaluated = self.exact = False
        self.next_check = self.state.n_iter

    cdef bint should_stop(self):
        """Called with the GIL now and then from inside `run`."""
        if self.stop is not None and self.stop[0]:
            return True
        try:
            PyErr_CheckSignals()
        except BaseException as error:
            self.pending = error
            return True
        return False

    def run(self, ptr_t n, stop=None):
        """Go on for at most n iterations; returns "converged", "running", "stalled" or "interrupted"."""
        cdef status_t status
        with self.lock:
            self.stop = stop
            self.pending = None
            self.state.stopped = False
            self.state.next_poll = 0
            with nogil:
                status = self.run_sequential(n) if self.sequential else self.run_newton(n)
            pending, self.pending = self.pending, None
        if pending is not None:
            raise pending
        if status == OUT_OF_MEMORY:
            raise MemoryError("not enough memory for a Newton step; lower n_jobs or raise beta")
        return STATUS[status]

    cdef void evaluate(self) noexcept nogil:
        """objective, gradient and dual_gap at the current weights."""
        cdef problem_t* problem = &self.problem.view
        if not self.exact:
            refresh_normalizer(problem, &self.state)
        cdef double target = self.tol * fabs(self.state.objective_zero)
        self.state.objective = objective(problem, &self.state)
        self.evaluated = certify(problem, &self.state, &self.dual)
        if self.tight and self.evaluated and self.state.dual_gap > target and 0.0 < self.state.mixing < 1.0:
            self.evaluated = tighten(problem, &self.state, &self.dual, target)

    cdef status_t run_newton(self, ptr_t n_rounds) noexcept nogil:
        cdef problem_t* problem = &self.problem.view
        cdef state_t* state = &self.state
        cdef working_set_t* working = &self.working
        cdef const options_t* options = &self.options
        cdef double target = self.tol * fabs(state.objective_zero), before, violator_ratio, precision
        cdef ptr_t n
        cdef int n_steps, n_sweeps
        cdef bint again
        for n in range(n_rounds + 1):
            if not self.evaluated:
                self.evaluate()
            if state.stopped:
                return INTERRUPTED
            if state.dual_gap <= target:
                return CONVERGED
            if n == n_rounds:
                return RUNNING
            before = state.objective
            violator_ratio = select_working_set(problem, state, options, working)
            self.evaluated = self.exact = False
            state.n_iter += 1
            # Under dense columns every step moves every row: beside a Hessian sweeps cost much, and solving the Newton
            # system well costs little.
            precision = 1e-4
            if problem.X.indptr != NULL:
                # Newcomers change what the others are worth: where there are many, they come before the next Hessian,
                # unless a look at all rows costs as much.
                again = (violator_ratio > 1.0 and state.n_iter <= 10) or (
                    self.polished and violator_ratio > options.many_violators and not self.many_rows)
                n_sweeps = options.first_sweeps if again or violator_ratio > 0.3 else options.later_sweeps
                sweep(problem, state, working, n_sweeps)
                self.polished = not again
                if again:
                    continue
                refresh_normalizer(problem, state)
                # A Newton system is worth solving well once the working set hardly changes.
                precision = min(max(0.03 * violator_ratio, 1e-4), 0.1)
                keep_nonzero(problem, state, working)
            # What is outside the working set is known to the last gap only: no use to go far below it inside.
            n_steps = newton_steps(problem, state, options, working, &self.newton,
                                   0.3 * max(target, state.dual_gap), precision)
            if n_steps < 0:
                return OUT_OF_MEMORY
            # Dense columns never sweep: without a refresh now and then their scores would gather rounding errors.
            self.exact = problem.X.indptr != NULL
            if n_steps == 0 and not state.stopped:
                self.evaluate()
                if state.dual_gap > target and state.objective >= before:
                    return STALLED
        return RUNNING

    cdef status_t run_sequential(self, ptr_t n_updates) noexcept nogil:
        cdef problem_t* problem = &self.problem.view
        cdef state_t* state = &self.state
        cdef double target = self.tol * fabs(state.objective_zero)
        cdef ptr_t n = 0
        cdef bint exhausted = False
        while True:
            if state.n_iter >= self.next_check or n == n_updates or exhausted:
                if not self.evaluated:
                    self.evaluate()
                if state.stopped:
                    return INTERRUPTED
                if state.dual_gap <= target:
                    return CONVERGED
                if exhausted:
                    return STALLED
                if n == n_updates:
                    return RUNNING
                # The gap costs a pass over the data: look again after a tenth as many updates as were made.
                if state.n_iter >= self.next_check:
                    self.next_check = state.n_iter + 50 + state.n_iter // 10
            self.last = sequential_step(problem, state, &self.prices, self.full_pricing)
            if state.stopped:
                return INTERRUPTED
            exhausted = self.last.coord < 0 or self.last.gain < 1e-16 * fabs(state.objective_zero)
            if self.last.coord >= 0:
                self.evaluated = False
                state.n_iter += 1
                n += 1

    @property
    def last_step(self):
        """The last single-weight update as (block, col, delta, gain); None before the first."""
        if not self.sequential or self.last.coord < 0:
            return None
        block, col = divmod(self.last.coord, self.problem.view.n_coords)
        return block, col, self.last.delta, self.last.gain

    objective = property(lambda self: (<Solver> self).state.objective)
    dual_gap = property(lambda self: (<Solver> self).state.dual_gap)
    mixing = property(lambda self: (<Solver> self).state.mixing)     # t of the p_t that proves the gap
    objective_zero = property(lambda self: (<Solver> self).state.objective_zero)
    n_iter = property(lambda self: (<Solver> self).state.n_iter)

    @property
    def log_z(self):
        """ln Z of a pooled problem, else nan."""
        return log_z(&self.problem.view, &self.state) if self.problem.view.pooled else NAN

    @property
    def counters(self):
        return {"column_walks": self.state.counters.column_walks, "updates": self.state.counters.updates,
                "nonzeros": self.state.counters.nonzeros}

    @property
    def weights(self):
        """The solver's own array (n_blocks, n_features + 1) of weights, intercepts last."""
        cdef problem_t* problem = &self.problem.view
        return np.asarray(self.arrays["lam"]).reshape(problem.n_blocks, problem.n_coords)

    def coefficients(self):
        """Nonzero weights as (blocks, cols, values)."""
        lam = self.weights[:, :-1]
        blocks, cols = np.nonzero(lam)
        return blocks.astype(np.int32), cols.astype(np.int32), lam[blocks, cols]

    def intercept(self):
        return self.weights[:, -1].copy()

    def certificate_flow(self):
        """Probability mass of every cell (n_blocks, n_samples) in the tilted model that the gap is proved with."""
        cdef problem_t* problem = &self.problem.view
        cdef double[:, ::1] flow = np.empty((problem.n_blocks, problem.X.n_rows))
        cdef ptr_t c
        with self.lock:
            if not self.evaluated:
                self.evaluate()
            for c in range(problem.n_blocks):
                fill_moved_mass(problem, &self.state, c, 1.0)
                memcpy(&flow[c, 0], self.state.cell_mass, problem.X.n_rows * sizeof(double))
        return np.asarray(flow)

    def dual_gap_at(self, double t):
        """The gap when features outside the problem call for a mixing share of t at least; after certificate_flow."""
        with self.lock:
            return duality_gap(&self.problem.view, &self.state, max(t, self.state.mixing))

    def expectations(self):
        """q[f_cj] for every coordinate, an array of shape (n_blocks, n_features)."""
        cdef problem_t* problem = &self.problem.view
        cdef double[:, ::1] mean = np.empty((problem.n_blocks, problem.X.n_cols))
        cdef ptr_t c, j
        with self.lock, nogil:
            refresh_normalizer(problem, &self.state)
            for c in range(problem.n_blocks):
                fill_cell_mass(problem, &self.state, c, self.state.cell_mass)
                for j in range(problem.X.n_cols):
                    mean[c, j] = column_dot(get_column(&problem.X, j), self.state.cell_mass)
        return np.asarray(mean)


# Without the GIL, by the address of a Solver that the caller keeps alive: see _solver.pxd.


cdef bint poll_flag(void* stop) noexcept nogil:
    return stop != NULL and (<const volatile int*> stop)[0] != 0


cdef status_t run_with_flag(Solver solver, ptr_t n, const int* stop) noexcept nogil:
    cdef status_t status
    if not solver.lock.acquire():
        return IN_USE
    solver.state.poll = poll_flag
    solver.state.owner = <void*> stop
    solver.state.stopped = False
    solver.state.next_poll = 0
    status = solver.run_sequential(n) if solver.sequential else solver.run_newton(n)
    solver.state.poll = poll_owner
    solver.state.owner = <void*> solver
    solver.lock.release()
    return status


cdef const state_t* get_state(Solver solver) noexcept nogil:
    return &solver.state


cdef status_t run_solver(void* solver, ptr_t n, const int* stop) noexcept nogil:
    return (<status_t (*)(void*, ptr_t, const int*) noexcept nogil> run_with_flag)(solver, n, stop)


cdef const state_t* solver_state(void* solver) noexcept nogil:
    return (<const state_t* (*)(void*) noexcept nogil> get_state)(solver)
