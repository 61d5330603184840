"""The tuning constants of the solvers, in one place."""

from dataclasses import dataclass


@dataclass(frozen=True)
class SolverOptions:
    """Tuning constants of the compiled solver.

    They change how fast a fit converges, not what it converges to. `Solver` takes an instance; the compiled code reads
    the fields through a struct of the same names (``options_t`` in ``_types.pxd``).
    """

    # Pricing

    # Rows from which on vectors over the rows outgrow the caches, so that gradients are computed row by row. With
    # 938,455 rows and 17 million nonzeros: 20 ms instead of 28 when the probabilities of all rows differ, far less when
    # few do.
    many_rows: int = 1 << 16
    # The tol from which on the certificate is tightened. For smaller values Newton steps converge so fast that the
    # model's own gap is small enough one round later, and then the weights are as accurate as the gap says.
    tight_tol: float = 1e-5
    # And the number of cells: with fewer, a round costs little more than tightening. On the 90 topics of Reuters it
    # took 3 to 15 % of the time; on a class of SuperTags it saves rounds of seconds.
    tight_cells: int = 1 << 16

    # Working set

    # Violators that a working set may always include.
    min_violators: int = 100
    # Closed-form sweeps over the working set before a Newton step: while its size still changes, and later.
    first_sweeps: int = 3
    later_sweeps: int = 2
    # Number of violators, relative to the nonzero weights, from which on sweeps are repeated before the next Hessian.
    many_violators: float = 0.05

    # Hessian

    # Nonzeros of a working set whose Newton steps cost so little that they are solved exactly.
    few_entries: int = 4096
    # Coordinates in one Hessian, which takes 576 MB at most.
    max_hessian_size: int = 12288
    # Newton steps with one Hessian.
    max_hessian_steps: int = 8
    # Share of a coordinate's curvature that may be missing off the Hessian's diagonal.
    max_negligible: float = 0.3
    # Share that may always be missing where each row has its own Z and the gap, relative to the objective of zero
    # weights, is larger than far_gap. It saves 5 to 10 % of the time of WebKB's and Reuters' classes to 1e-6. Nearer to
    # the optimum it delayed the convergence of a nearly singular problem by twenty rounds. With one Z, where few rows
    # have most of the mass, it cost 12 % more time.
    least_negligible: float = 0.08
    far_gap: float = 1e-3
    # A precision at which nothing is neglected.
    exact_precision: float = 1e-9

    # Quadratic model

    # A sweep skips weights that would gain less than this share of the average gain in the last sweep.
    min_relative_gain: float = 1.0
    # Sweeps before a Cholesky factor; and in models that are too large for a factor: most of those sweeps change few
    # weights and cost next to nothing beside another Hessian.
    max_model_sweeps: int = 100
    max_large_model_sweeps: int = 500
    # The precision below which a Cholesky factor of the active set may be computed.
    factor_precision: float = 3e-4
    # Number of factors for one model, and the limit of number * size^3, if there is more than one.
    max_factors: int = 200
    max_factor_work: float = 3e7
    # Coordinates in one factor.
    max_factor_size: int = 2048

    # Many exclusive classes

    # Bytes for the two numbers that are kept of every cell, class by example; above, they are computed when needed.
    many_classes_memory: int = 1 << 30
    # Rounds that may be sweeps alone, while there are more violators than weights.
    max_sweep_rounds: int = 10
    # The longest step of a weight times the largest value of its column, in the first Newton step.
    first_radius: float = 2.0
    # Coordinates of a class in one matrix.
    max_block_size: int = 500
    # A feature without a weight joins the working set if its gradient exceeds this share of its penalty.
    near_violator: float = 0.9
    # A gap, relative to the objective of zero weights, above which a model is not solved to its last digits: passes end
    # once they add little.
    far_relative_gap: float = 0.1
    # Passes over the classes in one Newton step.
    max_passes: int = 100


DEFAULT_OPTIONS = SolverOptions()
