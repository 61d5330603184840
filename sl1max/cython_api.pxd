"""The public C interface of sl1max: train models and compute scores from Cython or C.

    from sl1max cimport cython_api

In C, the functions are capsules in the dict `sl1max.cython_api.__pyx_capi__`. The name of a capsule is the signature
of its function. This file includes no other file. Functions may be added; existing signatures and the values of
constants do not change (a test compares them with tests/cython_api.txt).

Rules for all functions
-----------------------
- No function raises. No function needs the GIL. `columns_*`, `solver_new`, `solver_set_*` and `*_free` acquire the
  GIL while they run; all other functions do not.
- Arguments are validated. A negative status is an error; `status_message` returns its text. A function that rejects an
  argument changes nothing.
- Arrays belong to the caller. They are C-contiguous and read only, except arguments named *_out, which are written.
  They are not copied unless stated. The caller keeps them alive and unchanged until the handle is freed or receives
  other arrays.
- One thread at a time may use a handle: solver_step returns IN_USE while another thread uses the solver. Solvers that
  share columns may run in different threads.

Problem
-------
i is an example, j a feature, c a class block: a class with its own weights. A cell (c, i) has the score

    score[c, i] = sum_j weights[c, j] X[i, j] + intercept[c] + offset[c, i]

The solver minimises over weights and intercepts

    sum_g w_g ln Z_g - sum_ci p(c, i) (score[c, i] - offset[c, i]) + sum_cj beta[c, j] |weights[c, j]|

The normaliser determines Z_g, w_g and p:

    POOLED         one Z = sum_ci mass[i] exp(score[c, i]), w = 1. target[c, i] = p(c, i) is a distribution over the
                   cells and sums to one. mass is the base measure, e.g. all ones. One block is a class-conditional
                   model, several blocks are a joint model.
    CONDITIONAL    Z_i = sum_c exp(score[c, i]), w_i = mass[i]; mass sums to one. p(c, i) = mass[i] target[c, i], where
                   target[c, i] is the share of class c in example i and sums to one over c. This is multinomial
                   logistic regression.
    LOGISTIC       one block, Z_i = 1 + exp(score[i]), w_i and p as for CONDITIONAL. target[i], in [0, 1], is the share
                   of the class in example i.

sl1max.Solver offers the same in Python. tests/cython_example uses this interface.
"""

# Status of a solver, and errors
cdef enum:
    RUNNING = 0             # the solver can make further steps
    CONVERGED = 1           # dual_gap <= tol * objective_zero
    STALLED = 2             # floating point allows no further decrease, and the gap exceeds its target
    INTERRUPTED = 3         # the stop flag was set; further steps are possible
    TIME_LIMIT = 4          # the same, where the stop flag was set to TIME_IS_OVER
    OK = 0

    OUT_OF_MEMORY = -1
    NULL_POINTER = -2
    BAD_SHAPE = -3          # a size below one, or a number of blocks that the normaliser does not allow
    BAD_INDPTR = -4         # does not start at 0, or decreases
    BAD_INDEX = -5          # an index out of range, or not greater than its predecessor
    BAD_VALUE = -6          # a value that is NaN, infinite or above 1e100 in size; SEQUENTIAL: outside [0, 1]
    BAD_TARGET = -7         # negative or NaN, a wrong sum, or a block with an intercept but no examples
    BAD_MASS = -8           # negative or NaN, or a wrong sum
    BAD_BETA = -9           # negative or NaN
    BAD_OFFSET = -10        # NaN or infinite
    BAD_WEIGHT = -11        # NaN or infinite
    BAD_OPTION = -12        # an unknown normaliser or algorithm, tol <= 0, or a negative number of steps
    FAILED = -13            # Ctrl-C while the GIL was held (Python raises it later), or an internal error
    IN_USE = -14            # another thread uses the solver; nothing was done
    BAD_PENALTY = -15       # beta_upper or l2 negative or NaN, l2 infinite, or limits that exclude zero

# Values of the stop flag other than 0
cdef enum:
    STOP = 1                # solver_step returns INTERRUPTED
    TIME_IS_OVER = 2        # solver_step returns TIME_LIMIT

# Normalisers
cdef enum:
    POOLED = 0
    CONDITIONAL = 1
    LOGISTIC = 2

# Algorithms
cdef enum:
    NEWTON = 0              # a step is one round of sweeps and Newton steps over a working set
    SEQUENTIAL = 1          # a step is one update of one weight, as in the paper; needs values in [0, 1]

cdef struct columns_handle
cdef struct solver_handle


cdef const char* status_message(int status) noexcept nogil


# Examples. If `values` is NULL, all values are one. Indices increase strictly within a column (csc) or row (csr).
#
# columns_csc refers to the three arrays. columns_csr copies them into columns (12 bytes per nonzero; 4 if values is
# NULL); the caller may free the arrays after it returns. columns_free may be called before the solvers are freed: they
# keep what they need. The arrays of columns_csc must stay alive as long as one of these solvers.

cdef int columns_csc(columns_handle** columns_out, int n_samples, int n_features, const long long* indptr,
                     const int* indices, const double* values) noexcept nogil

cdef int columns_csr(columns_handle** columns_out, int n_samples, int n_features, const long long* indptr,
                     const int* indices, const double* values) noexcept nogil

# columns_index_rows adds a copy by rows, as large as that of columns_csr. Solvers created afterwards compute all
# gradients two to three times as fast if there are more than some ten thousand rows.

cdef int columns_index_rows(columns_handle* columns) noexcept nogil

cdef void columns_free(columns_handle* columns) noexcept nogil


# solver_new creates a solver with all weights zero. Shapes: target (n_blocks, n_samples), mass (n_samples,), beta
# (n_blocks, n_features), offset (n_blocks, n_samples) or NULL. beta is copied. A weight with beta 0 is not penalised; a
# weight with beta INFINITY stays zero. `intercept` adds an unpenalised intercept to every block.

cdef int solver_new(solver_handle** solver_out, const columns_handle* columns, int n_blocks, int normalizer,
                    bint intercept, const double* target, const double* mass, const double* beta,
                    const double* offset, int algorithm, double tol) noexcept nogil

cdef void solver_free(solver_handle* solver) noexcept nogil


# solver_step makes at most n steps; n = 0 only updates objective and gap. It returns RUNNING, CONVERGED, STALLED,
# INTERRUPTED, TIME_LIMIT or an error. It does not check for Ctrl-C: use a small n and call PyErr_CheckSignals between
# calls, or let another thread set stop[0], which is read about every 20 million nonzeros. stop may be NULL.

cdef int solver_step(solver_handle* solver, long long n, const int* stop) noexcept nogil


# Changes of the problem. The solver keeps its weights and continues from them. No columns are copied; empirical means
# are computed again.
#
# solver_set_target: NULL means the array that the solver has. After changing the arrays in place, call it with
# (NULL, NULL). solver_set_offset: NULL removes the offset. solver_set_weights: if intercept is NULL, the intercepts
# become zero; weights with infinite beta stay zero.

cdef int solver_set_target(solver_handle* solver, const double* target, const double* mass) noexcept nogil

cdef int solver_set_beta(solver_handle* solver, const double* beta) noexcept nogil

# solver_set_penalty gives each weight x the penalty
#
#     beta max(x, 0) + beta_upper max(-x, 0) + l2 / 2 x^2,    low <= x <= high,
#
# with low <= 0 <= high; an infinite beta is a limit high = 0, an infinite beta_upper a limit low = 0. Arrays
# (n_blocks, n_features), which are copied. NULL: beta as it is, beta_upper = beta, l2 = 0, no limit. Weights beyond a
# limit move to it. solver_set_beta changes only beta (and beta_upper, if it was NULL).

cdef int solver_set_penalty(solver_handle* solver, const double* beta, const double* beta_upper, const double* l2,
                            const double* low, const double* high) noexcept nogil

cdef int solver_set_offset(solver_handle* solver, const double* offset) noexcept nogil

cdef int solver_set_weights(solver_handle* solver, const double* weights, const double* intercept) noexcept nogil


# Results. Shapes: weights_out (n_blocks, n_features), intercept_out (n_blocks,). For a NULL solver the numbers are NaN
# (n_iter: -1). objective, dual_gap and log_z are also NaN before the first step, and after a change or an
# interruption until the next step. log_z is NaN unless the normaliser is POOLED.

cdef int solver_weights(const solver_handle* solver, double* weights_out) noexcept nogil

cdef int solver_intercept(const solver_handle* solver, double* intercept_out) noexcept nogil

cdef double solver_objective(const solver_handle* solver) noexcept nogil

cdef double solver_dual_gap(const solver_handle* solver) noexcept nogil

cdef double solver_log_z(const solver_handle* solver) noexcept nogil

cdef double solver_objective_zero(const solver_handle* solver) noexcept nogil

cdef long long solver_n_iter(const solver_handle* solver) noexcept nogil


# Scores, offsets included. solver_scores: the training examples; scores_out (n_blocks, n_samples). solver_score_csr:
# other rows; scores_out (n_rows, n_blocks), offset of the same shape or NULL; indices may be unsorted.

cdef int solver_scores(const solver_handle* solver, double* scores_out) noexcept nogil

cdef int solver_score_csr(const solver_handle* solver, int n_rows, const long long* indptr, const int* indices,
                          const double* values, const double* offset, double* scores_out) noexcept nogil


# Single steps. A weight changes from lam to lam + delta. *_bound returns an upper bound of the change of the objective,
# *_delta the delta that minimises this bound, in closed form. p is the empirical mean of the feature, q its mean under
# the model. gain_out (may be NULL) receives the decrease that the bound guarantees. The result is NaN if an argument is
# NaN or out of range: beta < 0, curvature < 0, reach <= 0, and for paper_* p or q outside [0, 1].
#
# paper_*: for values in [0, 1] and every normaliser; exact for binary features under one Z. concordant_*: for any
# values. curvature is the second derivative of the loss with respect to the weight. reach is the largest |X[i, j]| of
# the column; for POOLED, the range of the column.

cdef double paper_bound(double delta, double p, double q, double beta, double lam) noexcept nogil

cdef double paper_delta(double p, double q, double beta, double lam, double* gain_out) noexcept nogil

cdef double concordant_bound(double delta, double p, double q, double curvature, double reach, double beta,
                             double lam) noexcept nogil

cdef double concordant_delta(double p, double q, double curvature, double reach, double beta, double lam,
                             double* gain_out) noexcept nogil
