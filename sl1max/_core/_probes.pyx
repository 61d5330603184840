"""Python doors onto the inline kernels, for tests and kernel benchmarks; nothing else uses them."""
from libc.math cimport INFINITY, fabs
from libc.stdint cimport uint64_t
from libc.string cimport memset

import numpy as np

from sl1max._core cimport _column, _dense, _hessian, _normalizer, _order, _quadratic_model, _step, _working_set
from sl1max._core cimport _penalty as penalties
from sl1max._core._options import DEFAULT_OPTIONS
from sl1max._core._penalty cimport l1, penalty_t
from sl1max._core._types cimport column_t, columns_t, idx_t, options_t, problem_t, ptr_t, state_t

MAX_STEP = _step.MAX_STEP
MAX_CHANGE = _normalizer.MAX_CHANGE

cdef enum kernel_t:
    DOT
    AXPY
    MOMENTS
    UPDATE

KERNELS = {"dot": DOT, "axpy": AXPY, "moments": MOMENTS, "update": UPDATE}


# Steps


cdef penalty_t _penalty(penalty):
    """From a number, beta, or a tuple (lower, upper, l2, low, high)."""
    cdef penalty_t found
    if not isinstance(penalty, tuple):
        return l1(penalty)
    found.lower, found.upper, found.l2, found.low, found.high = penalty
    found.limited = found.low > -INFINITY or found.high < INFINITY
    return found


def penalty_value(penalty, double x):
    return penalties.penalty_value(_penalty(penalty), x)


def penalty_change(double lam, double delta, penalty):
    return penalties.penalty_change(_penalty(penalty), lam, delta)


def conjugate(penalty, double u):
    return penalties.conjugate(_penalty(penalty), u)


def slackness(penalty, double lam, double u):
    return penalties.slackness(_penalty(penalty), lam, u)


def needed_mixing(penalty, double gradient):
    return penalties.needed_mixing(_penalty(penalty), gradient)


def paper_bound(double delta, double p, double q, penalty, double lam):
    return _step.paper_bound(delta, p, q, _penalty(penalty), lam)


def paper_root(double r, double q):
    return _step.paper_root(r, q)


def paper_step(double p, double q, penalty, double lam):
    """(delta, gain)"""
    step = _step.paper_step(p, q, _penalty(penalty), lam)
    return step.delta, step.gain


def concordant_bound(double delta, double slope, double curvature, double reach, penalty, double lam):
    return _step.concordant_bound(delta, slope, curvature, reach, _penalty(penalty), lam)


def concordant_root(double slope, double curvature, double reach):
    return _step.concordant_root(slope, curvature, reach)


def concordant_step(double p, double q, double curvature, double reach, penalty, double lam):
    """(delta, gain)"""
    step = _step.concordant_step(p, q, curvature, reach, _penalty(penalty), lam)
    return step.delta, step.gain


def violation(double gradient, penalty, double lam):
    return penalties.violation(_penalty(penalty), gradient, lam)


def minimise_quadratic(double slope, double curvature, penalty, double lam):
    return penalties.minimise_quadratic(_penalty(penalty), slope, curvature, lam)


def kth_largest(values, ptr_t k):
    cdef double[::1] scratch = np.array(values, np.float64)
    return _working_set.kth_largest(&scratch[0], scratch.shape[0], k)


def exp_all(values):
    cdef double[::1] x = np.array(values, np.float64)
    if x.shape[0] > 0:
        _dense.exp_all(&x[0], x.shape[0])
    return np.asarray(x)


def shuffled(ptr_t size, ptr_t n_times):
    """The orders of so many sweeps over a working set of this size, (n_times, size)."""
    cdef idx_t[::1] order = np.empty(size, np.int32)
    cdef uint64_t seed = 0
    cdef ptr_t _time
    _order.start_order(&order[0], size)
    orders = []
    for _time in range(n_times):
        _order.shuffle(&order[0], size, &seed)
        orders.append(np.array(order))
    return np.array(orders)


def repeat_steps(const double[:, ::1] cases, ptr_t n, *, bint paper):
    """Benchmark: the steps for all rows (p, q, curvature, reach, beta, lam), n times; sum of their gains."""
    cdef double total = 0.0
    cdef ptr_t _repeat, row
    with nogil:
        for _repeat in range(n):
            for row in range(cases.shape[0]):
                if paper:
                    total += _step.paper_step(cases[row, 0], cases[row, 1], l1(cases[row, 4]), cases[row, 5]).gain
                else:
                    total += _step.concordant_step(cases[row, 0], cases[row, 1], cases[row, 2], cases[row, 3],
                                                   l1(cases[row, 4]), cases[row, 5]).gain
    return total


# Columns


cdef class Column:
    """One column: rows None is every row in order, values None is ones.

    Parameters
    ----------
    size : int
    rows : int32 array or None
    values : float64 array or None
    """
    cdef column_t view
    cdef object owned

    def __init__(self, ptr_t size, const idx_t[::1] rows, const double[::1] values):
        self.owned = (rows, values)
        self.view.size = size
        self.view.rows = NULL if rows is None or size == 0 else &rows[0]
        self.view.values = NULL if values is None or size == 0 else &values[0]

    def dot(self, const double[::1] vector):
        return _column.column_dot(self.view, &vector[0])

    def axpy(self, double a, double[::1] vector):
        _column.column_axpy(self.view, a, &vector[0])

    def moments_pooled(self, const double[::1] weight):
        moments = _column.column_moments_pooled(self.view, &weight[0])
        return moments.first, moments.second

    def moments(self, const double[::1] weight, const double[::1] inv_z, const double[::1] mass,
                double common_mass):
        moments = _column.column_moments(self.view, &weight[0], &inv_z[0], &mass[0], common_mass)
        return moments.first, moments.second

    def moments_binary(self, const double[::1] q, const double[::1] mass, double common_mass):
        moments = _column.column_moments_binary(self.view, &q[0], &mass[0], common_mass)
        return moments.first, moments.second

    def tilt(self, double delta, double[::1] q):
        _column.column_tilt(self.view, delta, &q[0])

    def scale(self, double delta, double[::1] weight):
        return _column.column_scale(self.view, delta, &weight[0])

    def scale_each(self, double delta, double[::1] weight, double[::1] z, double[::1] inv_z):
        return bool(_column.column_scale_each(self.view, delta, &weight[0], &z[0], &inv_z[0]))


# Normalisers


cdef double* address(array):
    cdef double[::1] flat = array.reshape(-1)
    return &flat[0]


cdef class State:
    """Weights, Zs and the problem they belong to, without penalties or targets.

    Parameters
    ----------
    X : tuple (n_rows, n_cols, indptr, indices, values)
        As for `_solver.Columns`.
    mass : float64 array of shape (n_rows,)
    lam : float64 array of shape (n_blocks, n_cols + 1)
        Copied; the last column holds the intercepts.
    pooled, reference : bool
    offset : float64 array of shape (n_blocks, n_rows) or None
    """
    cdef problem_t problem
    cdef state_t state
    cdef object owned
    cdef readonly object lam, score, weight, z, inv_z, shift

    def __init__(self, X, const double[::1] mass, lam, *, bint pooled, bint reference=False,
                 const double[:, ::1] offset=None):
        n_rows, n_cols, indptr, indices, values = X
        n_blocks = len(lam)
        n_z = 1 if pooled else n_rows
        self._set_columns(n_rows, n_cols, indptr, indices, values)
        self.lam = np.array(lam, np.float64)
        self.score = np.zeros((n_blocks, n_rows))
        self.weight = np.zeros((n_blocks, n_rows))
        self.z, self.inv_z, self.shift = np.zeros(n_z), np.zeros(n_z), np.zeros(n_z)
        cdef double[::1] extent = self._extent()
        cdef ptr_t[::1] included = np.arange(n_blocks * (n_cols + 1))
        cdef ptr_t[::1] included_start = np.arange(n_blocks + 1) * (n_cols + 1)
        self.owned += (mass, offset, extent, included, included_start)
        self.problem.n_blocks = n_blocks
        self.problem.n_coords = n_cols + 1
        self.problem.included = &included[0]
        self.problem.included_start = &included_start[0]
        self.problem.pooled = pooled
        self.problem.reference = reference
        self.problem.common_mass = mass[0] if np.ptp(mass) == 0.0 else 0.0
        self.problem.mass = &mass[0]
        self.problem.offset = NULL if offset is None else &offset[0, 0]
        self.problem.extent = &extent[0]
        self.state.next_poll = 1 << 62      # nobody to ask whether to go on
        self.state.lam = address(self.lam)
        self.state.score = address(self.score)
        self.state.weight = address(self.weight)
        self.state.z = address(self.z)
        self.state.inv_z = address(self.inv_z)
        self.state.shift = address(self.shift)
        self.refresh()

    def _set_columns(self, idx_t n_rows, idx_t n_cols, const ptr_t[::1] indptr, const idx_t[::1] indices,
                     const double[::1] values):
        cdef columns_t* X = &self.problem.X
        self.owned = (indptr, indices, values)
        X.n_rows = n_rows
        X.n_cols = n_cols
        X.indptr = NULL if indptr is None else &indptr[0]
        X.rows = NULL if indices is None or indices.shape[0] == 0 else &indices[0]
        X.values = NULL if values is None or values.shape[0] == 0 else &values[0]

    def _extent(self):
        cdef double[::1] extent = np.zeros(self.problem.X.n_cols + 1)
        cdef column_t column
        cdef ptr_t j, p
        for j in range(extent.shape[0]):
            column = _column.get_column(&self.problem.X, j)
            for p in range(column.size):
                extent[j] = max(extent[j], fabs(_column.value_at(column, p)))
        return np.asarray(extent)

    def column(self, ptr_t j):
        """Rows and values of column j, as the walkers see them."""
        column = _column.get_column(&self.problem.X, j)
        rows = [_column.row_at(column, p) for p in range(column.size)]
        return np.array(rows, np.int32), np.array([_column.value_at(column, p) for p in range(column.size)])

    def refresh(self):
        _normalizer.refresh_normalizer(&self.problem, &self.state)

    def normalise(self):
        """Make weight the probability, for a cell and its reference."""
        _normalizer.normalise_cells(&self.problem, &self.state)

    def apply_steps(self, const ptr_t[::1] blocks, const ptr_t[::1] cols, const double[::1] deltas):
        """lam[blocks[k], cols[k]] += deltas[k], one after the other, the weights and Zs kept up in place."""
        cdef ptr_t k
        with nogil:
            for k in range(deltas.shape[0]):
                _normalizer.apply_step(&self.problem, &self.state, blocks[k], cols[k], deltas[k])

    def moments(self, ptr_t c, ptr_t j):
        """Model mean and curvature of a coordinate."""
        moments = _normalizer.coordinate_moments(&self.problem, &self.state, c, j)
        return moments.first, moments.second

    def cell_mass(self, ptr_t c):
        """Probability mass of the cells of a block."""
        cdef double[::1] mass = np.empty(self.problem.X.n_rows)
        _normalizer.fill_cell_mass(&self.problem, &self.state, c, &mass[0])
        return np.asarray(mass)

    def hessian(self, const ptr_t[::1] coords, double precision, ptr_t n=1):
        """The Hessian at the given coordinates, ascending, formed n times over; empirical means count as zero."""
        cdef ptr_t size = coords.shape[0], m = self.problem.X.n_rows, k, _repeat
        cdef bint coupled = not self.problem.pooled and self.problem.n_blocks > 1
        cdef _working_set.working_set_t working
        cdef _hessian.entries_t entries
        cdef _quadratic_model.quadratic_t model
        cdef options_t options = vars(DEFAULT_OPTIONS)
        cdef double[::1] emp_mean = np.zeros(self.problem.n_blocks * self.problem.n_coords)
        cdef double[::1] row_curvature = np.empty(m), cell_curvature = np.empty(m)
        cdef ptr_t[::1] own = np.array(coords)
        cdef idx_t[::1] row_start = np.empty(m + 1, np.int32), row_end = np.empty(m, np.int32)
        cdef unsigned char[::1] is_partial = np.empty(m, np.uint8)
        cdef double[:, ::1] hessian = np.empty((size, size))
        memset(&working, 0, sizeof(working))
        memset(&entries, 0, sizeof(entries))
        memset(&model, 0, sizeof(model))
        working.coords, working.size = &own[0], size
        entries.row_start, entries.row_end, entries.is_partial = &row_start[0], &row_end[0], &is_partial[0]
        entries.row_curvature, entries.cell_curvature = &row_curvature[0], &cell_curvature[0]
        self.problem.emp_mean = &emp_mean[0]
        cdef bint done = _quadratic_model.reserve_vectors(&model, size)
        with nogil:
            for _repeat in range(n):
                done = done and _hessian.form_hessian(
                    &self.problem, &self.state, &options, &working, &entries, &model, coupled, precision)
        if not done:
            raise MemoryError
        for k in range(size * size):
            hessian[k // size, k % size] = _quadratic_model.hessian_at(&model, k // size, k % size)
        _hessian.release_entries(&entries)
        _quadratic_model.release_model(&model)
        return np.asarray(hessian)

    def log_z(self):
        return _normalizer.log_z(&self.problem, &self.state)

    change_bound = property(lambda self: (<State> self).state.change_bound)
    counters = property(lambda self: dict((<State> self).state.counters))

    def walk_all(self, kernel, ptr_t n):
        """Benchmark: one of `KERNELS` on every column, first block, n times; a number made of what was read.

        "update" steps by turns up and down, so that an even n leaves the weights where they were.
        """
        cdef int chosen = KERNELS[kernel]
        cdef ptr_t k, j
        cdef double total = 0.0, delta
        cdef problem_t* problem = &self.problem
        cdef state_t* state = &self.state
        with nogil:
            for k in range(n):
                delta = 1e-3 if k % 2 == 0 else -1e-3
                for j in range(problem.X.n_cols):
                    if chosen == DOT:
                        total += _column.column_dot(_column.get_column(&problem.X, j), state.weight)
                    elif chosen == AXPY:
                        _column.column_axpy(_column.get_column(&problem.X, j), delta, state.score)
                    elif chosen == MOMENTS:
                        total += _normalizer.coordinate_moments(problem, state, 0, j).second
                    else:
                        _normalizer.apply_step(problem, state, 0, j, delta)
        return total
