"""The public C interface over the core's `Columns`, `Problem` and `Solver`; cython_api.pxd says what is promised.

A handle owns references to the core's Python objects and keeps beside them the pointers that reading and scoring
need, so that these, like stepping, run without the GIL. (A core without Python objects would spare the GIL at creation
too, at the price of a second way to make, grow and free every array of a solver.) Checks come before the GIL is taken.
"""
from cpython.exc cimport PyErr_SetInterrupt
from cpython.ref cimport Py_DECREF, Py_INCREF, PyObject
from libc.math cimport INFINITY, NAN, fabs, isfinite, isnan, log
from libc.stdlib cimport calloc, free
from libc.string cimport memcpy

import numpy as np

from sl1max._core cimport _step
from sl1max._core._column cimport column_axpy, get_column, transpose_rows
from sl1max._core._penalty cimport l1
from sl1max._core._solver cimport run_solver, solver_state
from sl1max._core._types cimport (
    IN_USE as CORE_IN_USE, OUT_OF_MEMORY as CORE_OUT_OF_MEMORY, columns_t, idx_t, ptr_t, state_t, status_t,
)

from sl1max._core._lock import InUseError
from sl1max._core._solver import Columns, Problem, Solver


cdef extern from *:
    """
    /* As in inputs.py: squares of the values, and their sums, must stay finite. */
    #define SL1MAX_MAX_VALUE 1e100
    /* How far a distribution may be from summing to one. */
    #define SL1MAX_SUM_TOLERANCE 1e-9
    """
    const double MAX_VALUE "SL1MAX_MAX_VALUE"
    const double SUM_TOLERANCE "SL1MAX_SUM_TOLERANCE"


cdef struct columns_handle:
    PyObject* columns           # a Columns
    columns_t view
    bint unit                   # all values are in [0, 1]


cdef struct solver_handle:
    PyObject* solver            # a Solver, which keeps the Columns alive
    columns_t X
    ptr_t n_blocks
    int normalizer
    bint intercept
    const double* target
    const double* mass
    const double* offset
    bint evaluated              # objective, gap and ln Z are those of the weights


cdef const char* status_message(int status) noexcept nogil:
    if status == RUNNING:
        return "running: more steps will bring more"
    if status == CONVERGED:
        return "converged"
    if status == STALLED:
        return "stalled: no further decrease is possible in floating point, though the gap is above its target"
    if status == INTERRUPTED:
        return "interrupted"
    if status == TIME_LIMIT:
        return "time limit"
    if status == OUT_OF_MEMORY:
        return "out of memory"
    if status == NULL_POINTER:
        return "a pointer that must not be NULL is"
    if status == BAD_SHAPE:
        return "a size is below one, or the number of blocks does not go with the normalizer"
    if status == BAD_INDPTR:
        return "indptr does not start at 0, or falls"
    if status == BAD_INDEX:
        return "an index is out of range, or not above the one before it"
    if status == BAD_VALUE:
        return "a value is NaN, infinite or beyond 1e100, or outside [0, 1] where the algorithm is SEQUENTIAL"
    if status == BAD_TARGET:
        return "target is negative or NaN, does not sum to one, or leaves a block with an intercept all or nothing"
    if status == BAD_MASS:
        return "mass is negative or NaN, or does not sum to one"
    if status == BAD_BETA:
        return "beta is negative or NaN"
    if status == BAD_OFFSET:
        return "offset is NaN or infinite"
    if status == BAD_WEIGHT:
        return "a weight is NaN or infinite"
    if status == BAD_OPTION:
        return "normalizer or algorithm is unknown, tol is not positive, or the number of steps is negative"
    if status == FAILED:
        return "Python failed, or was interrupted"
    if status == IN_USE:
        return "another thread is at work on the solver: give each thread a solver of its own"
    if status == BAD_PENALTY:
        return "beta_upper or l2 is negative or NaN, l2 is infinite, or the limits of a weight exclude zero"
    return "no such status"


# Checks: OK or an error


cdef int check_indptr(ptr_t n, const long long* indptr) noexcept nogil:
    cdef ptr_t k
    if indptr[0] != 0:
        return BAD_INDPTR
    for k in range(n):
        if indptr[k + 1] < indptr[k]:
            return BAD_INDPTR
    return OK


cdef int check_matrix(int n_samples, int n_features, const columns_handle* const* columns_out, ptr_t n_major,
                      int n_minor, const long long* indptr, const int* indices, const double* values,
                      bint* unit_out) noexcept nogil:
    """A compressed matrix of n_major columns or rows; unit_out: whether its values are in [0, 1]."""
    cdef ptr_t k, p
    cdef int status
    if columns_out == NULL or indptr == NULL:
        return NULL_POINTER
    if n_samples < 1 or n_features < 1:
        return BAD_SHAPE
    status = check_indptr(n_major, indptr)
    if status != OK:
        return status
    if indices == NULL and indptr[n_major] > 0:
        return NULL_POINTER
    unit_out[0] = True
    for k in range(n_major):
        for p in range(indptr[k], indptr[k + 1]):
            if not 0 <= indices[p] < n_minor or (p > indptr[k] and indices[p] <= indices[p - 1]):
                return BAD_INDEX
            if values != NULL:
                if not fabs(values[p]) <= MAX_VALUE:
                    return BAD_VALUE
                unit_out[0] &= 0.0 <= values[p] <= 1.0
    return OK


cdef int check_mass(const solver_handle* problem, const double* mass) noexcept nogil:
    cdef ptr_t i
    cdef double total = 0.0
    for i in range(problem.X.n_rows):
        if not 0.0 <= mass[i] < INFINITY:
            return BAD_MASS
        total += mass[i]
    if problem.normalizer == POOLED:
        return OK if 0.0 < total < INFINITY else BAD_MASS
    return OK if fabs(total - 1.0) <= SUM_TOLERANCE else BAD_MASS


cdef int check_target(const solver_handle* problem, const double* target, const double* mass) noexcept nogil:
    """Entries and sums; mass has been checked."""
    cdef ptr_t m = problem.X.n_rows, c, i
    cdef double total = 0.0, share, prior
    for c in range(problem.n_blocks):
        prior = 0.0
        for i in range(m):
            if not 0.0 <= target[c * m + i] < INFINITY or (mass[i] == 0.0 and target[c * m + i] > 0.0
                                                           and problem.normalizer == POOLED):
                return BAD_TARGET
            prior += target[c * m + i] if problem.normalizer == POOLED else mass[i] * target[c * m + i]
        total += prior
        if problem.intercept and not 0.0 < prior:
            return BAD_TARGET
    if problem.normalizer == POOLED:
        return OK if fabs(total - 1.0) <= SUM_TOLERANCE else BAD_TARGET
    if problem.intercept and problem.normalizer == LOGISTIC and not total < 1.0:
        return BAD_TARGET
    for i in range(m):
        share = 0.0
        for c in range(problem.n_blocks):
            share += target[c * m + i]
        if share > 1.0 + SUM_TOLERANCE or (problem.normalizer == CONDITIONAL and mass[i] > 0.0
                                           and share < 1.0 - SUM_TOLERANCE):
            return BAD_TARGET
    return OK


cdef int check_beta(const solver_handle* problem, const double* beta) noexcept nogil:
    cdef ptr_t k
    for k in range(problem.n_blocks * problem.X.n_cols):
        if not beta[k] >= 0.0:
            return BAD_BETA
    return OK


cdef int check_finite(ptr_t n, const double* array, int error) noexcept nogil:
    """All entries are finite; NULL has none."""
    cdef ptr_t k
    if array != NULL:
        for k in range(n):
            if not isfinite(array[k]):
                return error
    return OK


cdef int check_options(const columns_handle* columns, ptr_t n_blocks, int normalizer, int algorithm,
                       double tol) noexcept nogil:
    if normalizer not in (POOLED, CONDITIONAL, LOGISTIC) or algorithm not in (NEWTON, SEQUENTIAL):
        return BAD_OPTION
    if not 0.0 < tol < INFINITY:
        return BAD_OPTION
    if n_blocks < 1 or (normalizer == LOGISTIC and n_blocks != 1) or (normalizer == CONDITIONAL and n_blocks < 2):
        return BAD_SHAPE
    return BAD_VALUE if algorithm == SEQUENTIAL and not columns.unit else OK


# With the GIL


cdef int caught(error) noexcept:
    """The status of an exception. Ctrl-C is put off until Python looks for it again."""
    if isinstance(error, KeyboardInterrupt):
        PyErr_SetInterrupt()
    if isinstance(error, InUseError):
        return IN_USE
    return OUT_OF_MEMORY if isinstance(error, MemoryError) else FAILED


cdef object view_doubles(const double* array, ptr_t n):
    """The caller's array as a numpy array."""
    return np.asarray(<double[:n]> <double*> array)


cdef object view_cells(const solver_handle* problem, const double* cells):
    """(n_blocks, n_samples)"""
    return view_doubles(cells, problem.n_blocks * problem.X.n_rows).reshape(problem.n_blocks, problem.X.n_rows)


cdef int hand_out_columns(columns_handle** columns_out, int n_samples, int n_features, const ptr_t[::1] indptr,
                          const idx_t[::1] indices, const double[::1] values, bint unit) except *:
    cdef columns_handle* handle = <columns_handle*> calloc(1, sizeof(columns_handle))
    if handle == NULL:
        return OUT_OF_MEMORY
    try:
        columns = Columns(n_samples, n_features, indptr, indices, values, by_rows=False)
    except BaseException:
        free(handle)
        raise
    Py_INCREF(columns)
    handle.columns = <PyObject*> columns
    handle.unit = unit
    handle.view.n_rows, handle.view.n_cols = n_samples, n_features
    handle.view.indptr = &indptr[0]
    handle.view.rows = &indices[0] if indices.shape[0] else NULL
    handle.view.values = &values[0] if values is not None and values.shape[0] else NULL
    columns_out[0] = handle
    return OK


cdef int refer_to_columns(columns_handle** columns_out, int n_samples, int n_features, const long long* indptr,
                          const int* indices, const double* values, bint unit) noexcept with gil:
    cdef ptr_t nnz = indptr[n_features]
    try:
        return hand_out_columns(
            columns_out, n_samples, n_features, <ptr_t[:n_features + 1]> <ptr_t*> indptr,
            <idx_t[:nnz]> <idx_t*> indices if nnz else np.empty(0, np.int32),
            None if values == NULL else view_doubles(values, nnz) if nnz else np.empty(0), unit)
    except BaseException as error:
        return caught(error)


cdef int turn_rows(columns_handle** columns_out, int n_samples, int n_features, const long long* indptr,
                   const int* indices, const double* values, bint unit) noexcept with gil:
    cdef ptr_t[::1] starts
    cdef idx_t[::1] rows
    cdef double[::1] turned = None
    cdef ptr_t nnz = indptr[n_samples]
    try:
        starts, rows = np.zeros(n_features + 1, np.int64), np.empty(nnz, np.int32)
        if values != NULL:
            turned = np.empty(nnz)
        if nnz:
            transpose_rows(n_samples, n_features, <const ptr_t*> indptr, <const idx_t*> indices, values, &starts[0],
                           &rows[0], NULL if turned is None else &turned[0])
        return hand_out_columns(columns_out, n_samples, n_features, starts, rows, turned, unit)
    except BaseException as error:
        return caught(error)


cdef object empirical_means(const solver_handle* problem, columns, target, mass):
    return columns.means(target if problem.normalizer == POOLED else np.ascontiguousarray(target * mass))


cdef object make_problem(const solver_handle* handle, columns, means, penalties, target, mass, offset, more=()):
    return Problem(columns, means, np.array(penalties), target, mass, pooled=handle.normalizer == POOLED,
                   reference=handle.normalizer == LOGISTIC, intercept=handle.intercept, offset=offset, **dict(more))


cdef int make_solver(const columns_handle* columns, const double* beta, int algorithm, double tol,
                     solver_handle* handle) noexcept with gil:
    """The Solver of a handle in which all the rest is set."""
    try:
        target, mass = view_cells(handle, handle.target), view_doubles(handle.mass, handle.X.n_rows)
        penalties = view_doubles(beta, handle.n_blocks * handle.X.n_cols).reshape(handle.n_blocks, handle.X.n_cols)
        means = empirical_means(handle, <object> columns.columns, target, mass)
        problem = make_problem(handle, <object> columns.columns, means, penalties, target, mass,
                               None if handle.offset == NULL else view_cells(handle, handle.offset))
        solver = Solver(problem, algorithm="newton" if algorithm == NEWTON else "sequential", tol=tol)
        Py_INCREF(solver)
        handle.solver = <PyObject*> solver
        return OK
    except BaseException as error:
        return caught(error)


cdef int change_problem(solver_handle* handle, const double* target, const double* mass, const double* beta,
                        const double* offset) noexcept with gil:
    """Checked arrays in place of the old; beta NULL keeps the old."""
    try:
        solver = <object> handle.solver
        problem = solver.problem
        targets, masses = view_cells(handle, target), view_doubles(mass, handle.X.n_rows)
        if beta == NULL:
            penalties = problem.given_beta
            means = empirical_means(handle, problem.columns, targets, masses)
        else:
            penalties = view_doubles(beta, handle.n_blocks * handle.X.n_cols).reshape(handle.n_blocks, -1)
            means = problem.emp_mean[:, :-1]
        solver.change(make_problem(handle, problem.columns, means, penalties, targets, masses,
                                   None if offset == NULL else view_cells(handle, offset), problem.given_penalty))
        handle.target, handle.mass, handle.offset = target, mass, offset
        handle.evaluated = False
        return OK
    except BaseException as error:
        return caught(error)


cdef int load_weights(solver_handle* handle, const double* weights, const double* intercept) noexcept with gil:
    try:
        solver = <object> handle.solver
        solver.set_weights(view_doubles(weights, handle.n_blocks * handle.X.n_cols).reshape(handle.n_blocks, -1),
                           0.0 if intercept == NULL else view_doubles(intercept, handle.n_blocks))
        handle.evaluated = False
        return OK
    except BaseException as error:
        return caught(error)


cdef int index_rows(PyObject* columns) noexcept with gil:
    try:
        (<object> columns).index_rows()
        return OK
    except BaseException as error:
        return caught(error)


cdef void drop(PyObject* owned) noexcept with gil:
    Py_DECREF(<object> owned)


# Making and freeing


cdef int columns_csc(columns_handle** columns_out, int n_samples, int n_features, const long long* indptr,
                     const int* indices, const double* values) noexcept nogil:
    cdef bint unit
    cdef int status = check_matrix(n_samples, n_features, columns_out, n_features, n_samples, indptr, indices, values,
                                   &unit)
    if status != OK:
        return status
    return refer_to_columns(columns_out, n_samples, n_features, indptr, indices, values, unit)


cdef int columns_csr(columns_handle** columns_out, int n_samples, int n_features, const long long* indptr,
                     const int* indices, const double* values) noexcept nogil:
    cdef bint unit
    cdef int status = check_matrix(n_samples, n_features, columns_out, n_samples, n_features, indptr, indices, values,
                                   &unit)
    if status != OK:
        return status
    return turn_rows(columns_out, n_samples, n_features, indptr, indices, values, unit)


cdef int columns_index_rows(columns_handle* columns) noexcept nogil:
    return index_rows(columns.columns) if columns != NULL else NULL_POINTER


cdef void columns_free(columns_handle* columns) noexcept nogil:
    if columns != NULL:
        drop(columns.columns)
        free(columns)


cdef int check_problem(const columns_handle* columns, const solver_handle* problem, const double* beta, int algorithm,
                       double tol) noexcept nogil:
    cdef int status = check_options(columns, problem.n_blocks, problem.normalizer, algorithm, tol)
    if status == OK:
        status = check_mass(problem, problem.mass)
    if status == OK:
        status = check_target(problem, problem.target, problem.mass)
    if status == OK:
        status = check_beta(problem, beta)
    if status == OK:
        status = check_finite(problem.n_blocks * problem.X.n_rows, problem.offset, BAD_OFFSET)
    return status


cdef int solver_new(solver_handle** solver_out, const columns_handle* columns, int n_blocks, int normalizer,
                    bint intercept, const double* target, const double* mass, const double* beta,
                    const double* offset, int algorithm, double tol) noexcept nogil:
    cdef solver_handle* handle
    cdef int status
    if solver_out == NULL or columns == NULL or target == NULL or mass == NULL or beta == NULL:
        return NULL_POINTER
    handle = <solver_handle*> calloc(1, sizeof(solver_handle))
    if handle == NULL:
        return OUT_OF_MEMORY
    handle.X, handle.n_blocks, handle.normalizer, handle.intercept = columns.view, n_blocks, normalizer, intercept
    handle.target, handle.mass, handle.offset = target, mass, offset
    status = check_problem(columns, handle, beta, algorithm, tol)
    if status == OK:
        status = make_solver(columns, beta, algorithm, tol, handle)
    if status == OK:
        solver_out[0] = handle
    else:
        free(handle)
    return status


cdef void solver_free(solver_handle* solver) noexcept nogil:
    if solver != NULL:
        drop(solver.solver)
        free(solver)


# Stepping and changing


cdef int solver_step(solver_handle* solver, long long n, const int* stop) noexcept nogil:
    cdef status_t status
    if solver == NULL:
        return NULL_POINTER
    if n < 0:
        return BAD_OPTION
    status = run_solver(solver.solver, n, stop)
    if status == CORE_IN_USE:
        return IN_USE
    if status == CORE_OUT_OF_MEMORY:
        solver.evaluated = False
        return OUT_OF_MEMORY
    solver.evaluated = <int> status != INTERRUPTED
    if <int> status == INTERRUPTED and stop != NULL and stop[0] == TIME_IS_OVER:
        return TIME_LIMIT
    return <int> status


cdef int solver_set_target(solver_handle* solver, const double* target, const double* mass) noexcept nogil:
    cdef int status
    if solver == NULL:
        return NULL_POINTER
    if target == NULL:
        target = solver.target
    if mass == NULL:
        mass = solver.mass
    status = check_mass(solver, mass)
    if status == OK:
        status = check_target(solver, target, mass)
    return change_problem(solver, target, mass, NULL, solver.offset) if status == OK else status


cdef int solver_set_beta(solver_handle* solver, const double* beta) noexcept nogil:
    cdef int status
    if solver == NULL or beta == NULL:
        return NULL_POINTER
    status = check_beta(solver, beta)
    return change_problem(solver, solver.target, solver.mass, beta, solver.offset) if status == OK else status


cdef object copy_penalty(const solver_handle* handle, const double* values):
    if values == NULL:
        return None
    return np.array(view_doubles(values, handle.n_blocks * handle.X.n_cols)).reshape(handle.n_blocks, -1)


cdef int change_penalty(solver_handle* handle, const double* beta, const double* beta_upper, const double* l2,
                        const double* low, const double* high) noexcept with gil:
    try:
        solver = <object> handle.solver
        problem = solver.problem
        penalties = problem.given_beta if beta == NULL else copy_penalty(handle, beta)
        more = {"beta_upper": copy_penalty(handle, beta_upper), "l2": copy_penalty(handle, l2),
                "low": copy_penalty(handle, low), "high": copy_penalty(handle, high)}
        solver.change(make_problem(handle, problem.columns, problem.emp_mean[:, :-1], penalties,
                                   view_cells(handle, handle.target), view_doubles(handle.mass, handle.X.n_rows),
                                   None if handle.offset == NULL else view_cells(handle, handle.offset), more))
        handle.evaluated = False
        return OK
    except BaseException as error:
        return caught(error)


cdef int check_penalty(const solver_handle* problem, const double* beta_upper, const double* l2, const double* low,
                       const double* high) noexcept nogil:
    cdef ptr_t k
    for k in range(problem.n_blocks * problem.X.n_cols):
        if ((beta_upper != NULL and not beta_upper[k] >= 0.0) or (l2 != NULL and not 0.0 <= l2[k] < INFINITY)
                or (low != NULL and not low[k] <= 0.0) or (high != NULL and not high[k] >= 0.0)):
            return BAD_PENALTY
    return OK


cdef int solver_set_penalty(solver_handle* solver, const double* beta, const double* beta_upper, const double* l2,
                            const double* low, const double* high) noexcept nogil:
    cdef int status = OK
    if solver == NULL:
        return NULL_POINTER
    if beta != NULL:
        status = check_beta(solver, beta)
    if status == OK:
        status = check_penalty(solver, beta_upper, l2, low, high)
    return change_penalty(solver, beta, beta_upper, l2, low, high) if status == OK else status


cdef int solver_set_offset(solver_handle* solver, const double* offset) noexcept nogil:
    cdef int status
    if solver == NULL:
        return NULL_POINTER
    status = check_finite(solver.n_blocks * solver.X.n_rows, offset, BAD_OFFSET)
    return change_problem(solver, solver.target, solver.mass, NULL, offset) if status == OK else status


cdef int solver_set_weights(solver_handle* solver, const double* weights, const double* intercept) noexcept nogil:
    cdef int status
    if solver == NULL or weights == NULL:
        return NULL_POINTER
    status = check_finite(solver.n_blocks * solver.X.n_cols, weights, BAD_WEIGHT)
    if status == OK:
        status = check_finite(solver.n_blocks, intercept, BAD_WEIGHT)
    return load_weights(solver, weights, intercept) if status == OK else status


# Reading and scoring


cdef inline const double* weights_of(const solver_handle* solver, ptr_t c) noexcept nogil:
    """The weights of a block, its intercept after them."""
    return solver_state(solver.solver).lam + c * (solver.X.n_cols + 1)


cdef int solver_weights(const solver_handle* solver, double* weights_out) noexcept nogil:
    cdef ptr_t c
    if solver == NULL or weights_out == NULL:
        return NULL_POINTER
    for c in range(solver.n_blocks):
        memcpy(weights_out + c * solver.X.n_cols, weights_of(solver, c), solver.X.n_cols * sizeof(double))
    return OK


cdef int solver_intercept(const solver_handle* solver, double* intercept_out) noexcept nogil:
    cdef ptr_t c
    if solver == NULL or intercept_out == NULL:
        return NULL_POINTER
    for c in range(solver.n_blocks):
        intercept_out[c] = weights_of(solver, c)[solver.X.n_cols]
    return OK


cdef double solver_objective(const solver_handle* solver) noexcept nogil:
    return solver_state(solver.solver).objective if solver != NULL and solver.evaluated else NAN


cdef double solver_dual_gap(const solver_handle* solver) noexcept nogil:
    return solver_state(solver.solver).dual_gap if solver != NULL and solver.evaluated else NAN


cdef double solver_log_z(const solver_handle* solver) noexcept nogil:
    cdef const state_t* state
    if solver == NULL or not solver.evaluated or solver.normalizer != POOLED:
        return NAN
    state = solver_state(solver.solver)
    return state.shift[0] + log(state.z[0])


cdef double solver_objective_zero(const solver_handle* solver) noexcept nogil:
    return solver_state(solver.solver).objective_zero if solver != NULL else NAN


cdef long long solver_n_iter(const solver_handle* solver) noexcept nogil:
    return solver_state(solver.solver).n_iter if solver != NULL else -1


cdef int solver_scores(const solver_handle* solver, double* scores_out) noexcept nogil:
    cdef ptr_t m, c, i, j
    cdef const double* weights
    if solver == NULL or scores_out == NULL:
        return NULL_POINTER
    m = solver.X.n_rows
    for c in range(solver.n_blocks):
        weights = weights_of(solver, c)
        for i in range(m):
            scores_out[c * m + i] = 0.0 if solver.offset == NULL else solver.offset[c * m + i]
        for j in range(solver.X.n_cols + 1):
            if weights[j] != 0.0:
                column_axpy(get_column(&solver.X, j), weights[j], scores_out + c * m)
    return OK


cdef int solver_score_csr(const solver_handle* solver, int n_rows, const long long* indptr, const int* indices,
                          const double* values, const double* offset, double* scores_out) noexcept nogil:
    cdef ptr_t i, c, p
    cdef const double* weights
    cdef double score
    cdef int status
    if solver == NULL or indptr == NULL or scores_out == NULL:
        return NULL_POINTER
    if n_rows < 0:
        return BAD_SHAPE
    status = check_indptr(n_rows, indptr)
    if status != OK:
        return status
    if indices == NULL and indptr[n_rows] > 0:
        return NULL_POINTER
    for p in range(indptr[n_rows]):
        if not 0 <= indices[p] < solver.X.n_cols:
            return BAD_INDEX
    for c in range(solver.n_blocks):
        weights = weights_of(solver, c)
        for i in range(n_rows):
            score = weights[solver.X.n_cols] + (0.0 if offset == NULL else offset[i * solver.n_blocks + c])
            for p in range(indptr[i], indptr[i + 1]):
                score += weights[indices[p]] * (1.0 if values == NULL else values[p])
            scores_out[i * solver.n_blocks + c] = score
    return OK


# Bounds and steps


cdef inline bint valid(double delta, double p, double q, double beta, double lam) noexcept nogil:
    return beta >= 0.0 and not (isnan(delta) or isnan(p) or isnan(q) or isnan(lam))


cdef inline bint in_unit(double p, double q) noexcept nogil:
    return 0.0 <= p <= 1.0 and 0.0 <= q <= 1.0


cdef inline double hand_out_step(_step.step_t step, double* gain_out) noexcept nogil:
    if gain_out != NULL:
        gain_out[0] = step.gain
    return step.delta


cdef inline double no_step(double* gain_out) noexcept nogil:
    if gain_out != NULL:
        gain_out[0] = NAN
    return NAN


cdef double paper_bound(double delta, double p, double q, double beta, double lam) noexcept nogil:
    if not (valid(delta, p, q, beta, lam) and in_unit(p, q)):
        return NAN
    return _step.paper_bound(delta, p, q, l1(beta), lam)


cdef double paper_delta(double p, double q, double beta, double lam, double* gain_out) noexcept nogil:
    if not (valid(0.0, p, q, beta, lam) and in_unit(p, q)):
        return no_step(gain_out)
    return hand_out_step(_step.paper_step(p, q, l1(beta), lam), gain_out)


cdef double concordant_bound(double delta, double p, double q, double curvature, double reach, double beta,
                             double lam) noexcept nogil:
    if not (valid(delta, p, q, beta, lam) and curvature >= 0.0 and reach > 0.0):
        return NAN
    return _step.concordant_bound(delta, q - p, curvature, reach, l1(beta), lam)


cdef double concordant_delta(double p, double q, double curvature, double reach, double beta, double lam,
                             double* gain_out) noexcept nogil:
    if not (valid(0.0, p, q, beta, lam) and curvature >= 0.0 and reach > 0.0):
        return no_step(gain_out)
    return hand_out_step(_step.concordant_step(p, q, curvature, reach, l1(beta), lam), gain_out)
