"""The public C interface: what other compiled code may rely on.

    from sl1max cimport cython_api

From C the same functions are found in `sl1max.cython_api.__pyx_capi__`, a dict of capsules whose names are their
signatures. This file stands alone. Functions may be added to it; those that are here keep their signatures and the
constants their values (tests/cython_api.txt holds both, and a test compares).

Rules for all functions
-----------------------
- None raises, and none needs the GIL to be held. `columns_*`, `solver_new`, `solver_set_*` and `*_free` take it while
  they work; all others run without.
- Arguments are checked. A status below zero is an error, `status_message` says which; where it is an argument's,
  nothing was changed.
- Arrays are the caller's: C-contiguous, read only (those named *_out are written), by reference unless said otherwise.
  They stay alive and unchanged until the handle is freed or given others.
- A handle is used by one thread at a time: solver_step returns IN_USE where another thread is at work on it. Solvers
  that share columns may run in threads of their own.

A problem
---------
Examples i, features j and blocks c, one for each class that has weights of its own. A cell (c, i) has the score

    score[c, i] = sum_j weights[c, j] X[i, j] + intercept[c] + offset[c, i]

and minimised is, over weights and intercepts,

    sum_g w_g ln Z_g - sum_ci p(c, i) (score[c, i] - offset[c, i]) + sum_cj beta[c, j] |weights[c, j]|

    POOLED         one Z = sum_ci mass[i] exp(score[c, i]), w = 1. target[c, i] = p(c, i) is a distribution over the
                   cells and sums to one; mass is the base measure, e.g. all ones. One block: a class-conditional model;
                   more: a joint one.
    CONDITIONAL    Z_i = sum_c exp(score[c, i]), w_i = mass[i], which sum to one; p(c, i) = mass[i] target[c, i], where
                   target[c, i] is the share of class c in example i; they sum to one over c. Multinomial regression.
    LOGISTIC       one block, Z_i = 1 + exp(score[i]), otherwise the same; target[i], in [0, 1], is the class's share.

sl1max.Solver is the same from Python; README.md and tests/cython_example show how to use either.
"""

# Status of a solver, and errors.
cdef enum:
    RUNNING = 0             # more steps will bring more
    CONVERGED = 1           # dual_gap <= tol * objective_zero
    STALLED = 2             # no further decrease in floating point, though the gap is above its target
    INTERRUPTED = 3         # the stop flag was seen; the solver may go on
    OK = 0

    OUT_OF_MEMORY = -1
    NULL_POINTER = -2
    BAD_SHAPE = -3          # a size below one, or a number of blocks that does not go with the normaliser
    BAD_INDPTR = -4         # does not start at 0, or falls
    BAD_INDEX = -5          # an index out of range, or not above the one before it
    BAD_VALUE = -6          # a value that is NaN, infinite or beyond 1e100; or, SEQUENTIAL, outside [0, 1]
    BAD_TARGET = -7         # negative or NaN, a wrong sum, or a block without examples where it has an intercept
    BAD_MASS = -8           # negative or NaN, or a wrong sum
    BAD_BETA = -9           # negative or NaN
    BAD_OFFSET = -10        # NaN or infinite
    BAD_WEIGHT = -11        # NaN or infinite
    BAD_OPTION = -12        # an unknown normaliser or algorithm, tol not positive, a negative number of steps
    FAILED = -13            # Ctrl-C while the GIL was held, which Python will see again; or an error that should not be
    IN_USE = -14            # another thread is at work on the solver; nothing was done

# Normalisers
cdef enum:
    POOLED = 0
    CONDITIONAL = 1
    LOGISTIC = 2

# Algorithms
cdef enum:
    NEWTON = 0              # a step is a round of sweeps and Newton steps over a working set
    SEQUENTIAL = 1          # a step is one update of one weight, as in the paper; for values in [0, 1]

cdef struct columns_handle
cdef struct solver_handle


cdef const char* status_message(int status) noexcept nogil


# Examples. `values` NULL: all ones. Indices ascend within a column (csc) or row (csr) and occur once.
#
# columns_csc refers to the three arrays. columns_csr makes columns of its own (12 bytes for each nonzero, 4 where
# values is NULL) and no longer needs the arrays when it returns. Either is freed with columns_free, at any time: a
# solver keeps what it needs.

cdef int columns_csc(columns_handle** columns_out, int n_samples, int n_features, const long long* indptr,
                     const int* indices, const double* values) noexcept nogil

cdef int columns_csr(columns_handle** columns_out, int n_samples, int n_features, const long long* indptr,
                     const int* indices, const double* values) noexcept nogil

# columns_index_rows keeps a copy by rows beside the columns, as large as that of columns_csr: for solvers made after it
# a look at all features is two to three times as fast from some ten thousand rows on.

cdef int columns_index_rows(columns_handle* columns) noexcept nogil

cdef void columns_free(columns_handle* columns) noexcept nogil


# A solver at weights zero. target (n_blocks, n_samples), mass (n_samples,), beta (n_blocks, n_features), offset
# (n_blocks, n_samples) or NULL. beta is copied, since the core keeps it beside the intercept's: 0 leaves a weight
# unpenalised, INFINITY leaves it out. `intercept`: give every block an unpenalised constant.

cdef int solver_new(solver_handle** solver_out, const columns_handle* columns, int n_blocks, int normalizer,
                    bint intercept, const double* target, const double* mass, const double* beta,
                    const double* offset, int algorithm, double tol) noexcept nogil

cdef void solver_free(solver_handle* solver) noexcept nogil


# At most n steps; 0 brings objective and gap up to date. Returns RUNNING, CONVERGED, STALLED, INTERRUPTED or an error.
# Ctrl-C is not looked at: keep n small and ask Python between two calls, or let another thread set stop[0], which is
# read every 20 million nonzeros or so (NULL: none).

cdef int solver_step(solver_handle* solver, long long n, const int* stop) noexcept nogil


# Changes. The solver keeps its weights and goes on from them; no columns are copied, empirical means are computed anew.
# set_target: NULL stands for the array that the solver has, so that arrays changed in place need no other call than
# (NULL, NULL). set_offset: NULL takes the offset away. set_weights: intercept NULL: zeros; weights with infinite beta
# stay zero.

cdef int solver_set_target(solver_handle* solver, const double* target, const double* mass) noexcept nogil

cdef int solver_set_beta(solver_handle* solver, const double* beta) noexcept nogil

cdef int solver_set_offset(solver_handle* solver, const double* offset) noexcept nogil

cdef int solver_set_weights(solver_handle* solver, const double* weights, const double* intercept) noexcept nogil


# Reading. weights_out (n_blocks, n_features), intercept_out (n_blocks,). The numbers are NaN (n_iter: -1) for NULL; the
# first three and ln Z also before the first step and between a change or interruption and the next one. log_z is NaN
# unless POOLED.

cdef int solver_weights(const solver_handle* solver, double* weights_out) noexcept nogil

cdef int solver_intercept(const solver_handle* solver, double* intercept_out) noexcept nogil

cdef double solver_objective(const solver_handle* solver) noexcept nogil

cdef double solver_dual_gap(const solver_handle* solver) noexcept nogil

cdef double solver_log_z(const solver_handle* solver) noexcept nogil

cdef double solver_objective_zero(const solver_handle* solver) noexcept nogil

cdef long long solver_n_iter(const solver_handle* solver) noexcept nogil


# Scores, offsets included. Of the solver's own examples: scores_out (n_blocks, n_samples). Of other rows: scores_out
# (n_rows, n_blocks), offset the same or NULL; their indices need not ascend.

cdef int solver_scores(const solver_handle* solver, double* scores_out) noexcept nogil

cdef int solver_score_csr(const solver_handle* solver, int n_rows, const long long* indptr, const int* indices,
                          const double* values, const double* offset, double* scores_out) noexcept nogil


# The bounds on the change of the objective when a weight lam becomes lam + delta, and the delta that minimises each, in
# closed form. p is the feature's empirical mean, q its mean under the model. gain_out (may be NULL) gets the decrease
# that the bound promises. NaN where an argument is NaN or out of range: beta < 0, curvature < 0, reach <= 0, and for
# the paper's bound p or q outside [0, 1].
#
# paper_*: values in [0, 1], every normaliser; exact for binary features under one Z. concordant_*: any values;
# curvature is the second derivative of the loss along the weight, reach the largest |X[i, j]| or, POOLED, the range
# of the column.

cdef double paper_bound(double delta, double p, double q, double beta, double lam) noexcept nogil

cdef double paper_delta(double p, double q, double beta, double lam, double* gain_out) noexcept nogil

cdef double concordant_bound(double delta, double p, double q, double curvature, double reach, double beta,
                             double lam) noexcept nogil

cdef double concordant_delta(double p, double q, double curvature, double reach, double beta, double lam,
                             double* gain_out) noexcept nogil
