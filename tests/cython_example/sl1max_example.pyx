"""What compiled code can do with sl1max: a few lines for each part of its C interface.

All between `with nogil` and its end runs without the GIL, so that threads of Python run it side by side.
"""
from cpython.exc cimport PyErr_CheckSignals

import numpy as np

from sl1max cimport cython_api
from sl1max.cython_api cimport (
    CONDITIONAL, CONVERGED, LOGISTIC, NEWTON, RUNNING, columns_csc, columns_csr, columns_free, columns_handle,
    solver_dual_gap, solver_free, solver_handle, solver_intercept, solver_new, solver_score_csr, solver_scores,
    solver_set_target, solver_step, solver_weights, status_message,
)


cdef int check(int status) except -1:
    """An exception, if it is an error: a status below zero."""
    if status < 0:
        raise ValueError(status_message(status).decode())
    return status


def logistic_regression(const long long[::1] indptr, const int[::1] indices, const double[::1] values,
                        int n_samples, const double[::1] target, double beta):
    """L1-regularised logistic regression on the columns of a CSC matrix: weights, intercept and duality gap."""
    cdef int n_features = indptr.shape[0] - 1
    cdef double[::1] mass = np.full(n_samples, 1 / n_samples)
    cdef double[::1] betas = np.full(n_features, beta)
    cdef double[::1] weights = np.empty(n_features)
    cdef double intercept
    cdef columns_handle* columns = NULL
    cdef solver_handle* solver = NULL
    cdef int status
    try:
        check(columns_csc(&columns, n_samples, n_features, &indptr[0], &indices[0], &values[0]))
        check(solver_new(&solver, columns, 1, LOGISTIC, True, &target[0], &mass[0], &betas[0], NULL, NEWTON, 1e-8))
        status = RUNNING
        while status == RUNNING:
            with nogil:
                status = solver_step(solver, 10, NULL)
            check(status)
            PyErr_CheckSignals()    # Ctrl-C, between two calls
        check(solver_weights(solver, &weights[0]))
        check(solver_intercept(solver, &intercept))
        return np.asarray(weights), intercept, solver_dual_gap(solver)
    finally:
        solver_free(solver)
        columns_free(columns)


cdef void responsibilities(const double* scores, int n_blocks, int n_samples, const double* labelled,
                           double* target_out) noexcept nogil:
    """The E-step: an unlabelled example (-1 in `labelled`) goes to its most likely class, any other to its own."""
    cdef int i, c, best
    for i in range(n_samples):
        best = <int> labelled[i]
        if best < 0:
            best = 0
            for c in range(1, n_blocks):
                if scores[c * n_samples + i] > scores[best * n_samples + i]:
                    best = c
        for c in range(n_blocks):
            target_out[c * n_samples + i] = c == best


def hard_em(const long long[::1] indptr, const int[::1] indices, int n_features, const double[::1] labelled,
            int n_blocks, double beta, int n_rounds):
    """Multinomial regression that labels its unlabelled examples itself, from the rows of a binary CSR matrix.

    Targets and weights of the examples are changed in place between the steps, and the solver goes on from its
    weights. At first the labelled examples count alone. Returns the scores (n_samples, n_blocks) of all examples.
    """
    cdef int n_samples = indptr.shape[0] - 1, status, i, _round
    cdef double[::1] mass = (np.asarray(labelled) >= 0) / np.count_nonzero(np.asarray(labelled) >= 0)
    cdef double[:, ::1] betas = np.full((n_blocks, n_features), beta)
    cdef double[:, ::1] target = np.full((n_blocks, n_samples), 1 / n_blocks)
    cdef double[:, ::1] scores = np.zeros((n_blocks, n_samples))
    cdef double[:, ::1] by_row = np.empty((n_samples, n_blocks))
    cdef columns_handle* columns = NULL
    cdef solver_handle* solver = NULL
    responsibilities(&scores[0, 0], n_blocks, n_samples, &labelled[0], &target[0, 0])
    try:
        check(columns_csr(&columns, n_samples, n_features, &indptr[0], &indices[0], NULL))
        check(solver_new(&solver, columns, n_blocks, CONDITIONAL, True, &target[0, 0], &mass[0], &betas[0, 0], NULL,
                         NEWTON, 1e-6))
        with nogil:
            for _round in range(n_rounds):
                status = solver_step(solver, 5, NULL)
                if status < 0:
                    break
                solver_scores(solver, &scores[0, 0])
                responsibilities(&scores[0, 0], n_blocks, n_samples, &labelled[0], &target[0, 0])
                for i in range(n_samples):
                    mass[i] = 1.0 / n_samples
                status = solver_set_target(solver, NULL, NULL)
                if status < 0:
                    break
        check(status)
        check(solver_score_csr(solver, n_samples, &indptr[0], &indices[0], NULL, NULL, &by_row[0, 0]))
        return np.asarray(by_row)
    finally:
        solver_free(solver)
        columns_free(columns)


def fit_one_weight(const double[::1] feature, double mean, double beta, int n_steps):
    """The one weight of a feature with values 0 and 1 whose mean is given, by the paper's closed form alone."""
    cdef double lam = 0.0, weight, z, q, gain = 0.0
    cdef int i, _step
    with nogil:
        for _step in range(n_steps):
            q = z = 0.0
            for i in range(feature.shape[0]):
                weight = 2.718281828459045 ** (lam * feature[i])
                z += weight
                q += weight * feature[i]
            lam += cython_api.paper_delta(mean, q / z, beta, lam, &gain)
    return lam, gain


converged = CONVERGED   # constants are there at compile time
