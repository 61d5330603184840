"""What solvers of exclusive classes cost, and the choice between them.

One unit is a multiplication and an addition in order of memory, about half a nanosecond. Estimates count a Newton step,
since all solvers make about as many.
"""

from __future__ import annotations

GRAM = "gram"
ROWS = "rows"
CLASSES = "classes"
DESCRIPTIONS = {
    GRAM: "Newton steps with one Hessian for each problem",
    ROWS: "all classes in the space of the rows, with a matrix for each class",
    CLASSES: "one class at a time",
}

# Passes over the classes in one Newton step in the space of the rows: these, and more for few classes, which compete
# for the same rows. 3 classes took 60, 4 took 40, 8 and more took 7 to 11.
LEAST_PASSES = 10
PASSES_OF_FEW = 100
# What a unit costs in a coupled Hessian of sparse columns, which jumps about in a matrix of all coordinates; and in one
# of dense columns, whose products are blocked.
SPARSE_HESSIAN = 4.0
DENSE_HESSIAN = 0.3
# What a nonzero costs in a pass: it is looked up twice by the number of its row.
LOOK_UP = 4.0
BYTES = 16  # of a cell in the space of the rows


def choose_solver(n_classes, n_rows, n_entries, *, dense, memory, can_stream):
    """The cheapest solver of exclusive classes that have one Z per example.

    Parameters
    ----------
    n_classes, n_rows, n_entries : int
        The size of the problem; entries are the nonzeros of X, all of its numbers if it is dense.
    dense : bool
    memory : int
        Bytes that cells may take.
    can_stream : bool
        Whether the solver of one class at a time takes the problem.

    Returns
    -------
    str
        GRAM: one coupled Hessian of all classes. ROWS: the model in the space of the rows, with a matrix for each
        class. CLASSES: one class at a time, nothing as large as classes x examples.

    Notes
    -----
    Both were measured with 3 to 20 classes on an AMD EPYC with CPython 3.11.7 on 2026-11-19, other processes at work;
    default penalties, tol 1e-4. GRAM over ROWS in processor time, and by `hessian_cost` over `pass_cost`:

    =========================================  ========  =========
    examples x features x classes              measured  estimated
    =========================================  ========  =========
    4000 x 20 x 3, dense                           0.87     0.04
    4000 x 60 x 5, dense                           0.87     0.29
    3000 x 40 x 10, dense                          1.2      0.58
    4000 x 300 x 3, 15 nonzeros a row              0.34     0.44
    4000 x 1000 x 8, 30 nonzeros a row             4.9      4.3
    4000 x 1000 x 20, 30 nonzeros a row           14        15
    40000 x 60 x 4, 6 nonzeros a row               2.7      0.25
    =========================================  ========  =========
    """
    if can_stream and BYTES * n_classes * n_rows > memory:
        return CLASSES
    entries = n_entries / max(n_rows, 1)
    in_rows = pass_cost(n_classes, n_rows, entries)
    return ROWS if in_rows < hessian_cost(n_classes, n_rows, entries, dense) else GRAM


def hessian_cost(n_classes, n_rows, entries, dense):
    """A coupled Hessian: the square of the coordinates that a row holds, over all classes."""
    return (DENSE_HESSIAN if dense else SPARSE_HESSIAN) * n_rows * (n_classes * entries) ** 2 / 2


def pass_cost(n_classes, n_rows, entries):
    """Passes over cells and nonzeros, and the matrices of the classes."""
    n_passes = LEAST_PASSES + PASSES_OF_FEW / n_classes
    cell = n_passes * (8 + LOOK_UP * entries) + entries**2 / 2
    return n_rows * n_classes * cell
