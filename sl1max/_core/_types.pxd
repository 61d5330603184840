"""The words of the core: typedefs and structs, declarations only.

The paper's letters, once and for all:

    m, n, l          n_samples, n_features, n_classes (inside a problem: n_blocks)
    x_i, v_j(x_i)    row i, column j of X
    f_{d,j}          coordinate (c, j); its number is c * n_coords + j
    lambda_{d,j}     lam[c, j];  the intercept b_c is lam[c, n_features], a constant column with beta 0
    p~[f_{d,j}]      emp_mean[c, j]
    q_lambda[f]      model_mean;  in _step.pxd the two scalars are p and q, as in the paper's bound
    lambda . f       score[c, i];  exp(score - shift) is weight[c, i] (pooled: times the example's mass)
    Z, Z(c), Z(x)    z, its reciprocal inv_z, log_z
    beta_{d,j}       beta[c, j];  inf leaves the coordinate out. The penalty in general: _penalty.pxd
"""
from libc.stdint cimport int32_t, int64_t

ctypedef int32_t idx_t      # a row, a column, a class
ctypedef int64_t ptr_t      # a position among the nonzeros, a coordinate, a count


cdef struct column_t:
    # rows NULL: every row, in order;  values NULL: every value is one.
    # So: index list (binary), index + value (sparse), values alone (dense), neither (the intercept).
    ptr_t size
    const idx_t* rows
    const double* values


cdef struct columns_t:
    idx_t n_rows
    idx_t n_cols
    const ptr_t* indptr     # NULL: dense, column-major values
    const idx_t* rows
    const double* values    # NULL: binary
    # The same by rows, where there are many; else NULL.
    const ptr_t* row_start  # (n_rows + 1,)
    const idx_t* row_cols
    const double* row_values
    const double* total     # (n_cols + 1,) sum of every column, and of the intercept's


cdef struct problem_t:
    # What does not change while a problem is solved. See Problem in _solver.pyx for the meaning.
    columns_t X
    idx_t n_blocks
    ptr_t n_coords              # per block: n_features, then the intercept
    bint pooled
    double reference            # mass of the reference cell of every example (per-example Z only): 0 or 1
    double common_mass          # the mass of every example when they are equal, else 0
    const double* mass          # (n_samples,)
    const double* target        # (n_blocks, n_samples)
    const double* offset        # (n_blocks, n_samples) or NULL
    const double* emp_mean      # (n_blocks, n_coords)
    const double* beta          # (n_blocks, n_coords) cost of a positive weight
    const double* beta_upper    # (n_blocks, n_coords) cost of a negative weight: the same array where they are equal
    const double* l2            # (n_blocks, n_coords) or NULL
    const double* low           # (n_blocks, n_coords) limits of the weights, or NULL
    const double* high
    bint general                # whether beta is not all of the penalty: read it through _penalty.pxd
    const ptr_t* included       # the coordinates that are not left out, ascending, so block by block
    const ptr_t* included_start  # (n_blocks + 1,) where in included each block begins
    const double* reach         # (n_coords,) R of bound (c): pooled, the range of the column; else its extent
    const double* extent        # (n_coords,) largest absolute value of the column
    const double* rms           # (n_coords,) root mean square of the column
    bint exact_bound            # binary columns under one Z: the paper's bound is exact


cdef struct options_t:
    # Tuning constants: the fields of SolverOptions in _options.py that the compiled solver uses; see there.
    ptr_t many_rows
    double tight_tol
    ptr_t tight_cells
    ptr_t min_violators
    int first_sweeps
    int later_sweeps
    double many_violators
    ptr_t few_entries
    ptr_t max_hessian_size
    int max_hessian_steps
    double max_negligible
    double least_negligible
    double far_gap
    double exact_precision
    double min_relative_gain
    ptr_t max_model_sweeps
    ptr_t max_large_model_sweeps
    double factor_precision
    ptr_t max_factors
    double max_factor_work
    ptr_t max_factor_size


cdef struct counters_t:
    ptr_t column_walks
    ptr_t updates
    ptr_t nonzeros


cdef enum status_t:
    RUNNING = 0
    CONVERGED = 1
    STALLED = 2
    INTERRUPTED = 3
    OUT_OF_MEMORY = 4
    IN_USE = 5                  # another thread is at work on the solver


ctypedef bint (*poll_t)(void* owner) noexcept nogil


cdef struct state_t:
    # What changes. Arrays over cells are (n_blocks, n_samples); z, inv_z and shift have one entry per normaliser.
    double* lam                 # (n_blocks, n_coords)
    double* score               # exact after refresh_normalizer, not maintained by apply_step
    double* weight
    double* z
    double* inv_z
    double* shift               # log Z = shift + log(z)
    double largest_z            # pooled: since the last refresh; a z far below it has lost its digits
    double* cell_mass           # (n_samples,) probability mass of the cells of one block, u_i q_i(c)
    double* gradient            # (n_blocks, n_coords) p[f] - p~[f] as last priced, p that of the certificate
    double* direction_score     # cells: scores of a direction in lam (a step, or the certificate's correction)
    double* direction_mean      # per normaliser: mean of direction_score under q
    double change_bound         # of log weights since the last refresh: sum of |delta| extent
    bint normalised             # a cell and its reference: every z is one, weight is q
    bint lost_digits            # in a z: refresh before the next walk
    double objective
    double dual_gap
    double mixing               # t of the p_t that proves it
    double objective_zero
    ptr_t n_iter
    counters_t counters
    ptr_t next_poll             # poll when counters.nonzeros reaches it
    bint stopped                # the owner said stop
    poll_t poll
    void* owner


cdef struct pair_t:
    double first
    double second
