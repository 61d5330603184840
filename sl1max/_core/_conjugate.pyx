"""Conjugate gradients with the Hessian of the loss on some coordinates, without forming it.

A product takes two passes over each column. The Hessian may be singular: intercepts of all classes, equal columns.
"""
from libc.string cimport memset

from sl1max._core._column cimport column_axpy, column_dot
from sl1max._core._normalizer cimport center_direction, fill_cell_mass, interrupted, walk
from sl1max._core._types cimport problem_t, ptr_t, state_t


cdef void direction_scores(const problem_t* problem, state_t* state, ptr_t size, const ptr_t* coords,
                           const double* direction) noexcept nogil:
    """direction_score = X @ direction over all cells, the direction given on some coordinates."""
    cdef ptr_t k, c
    memset(state.direction_score, 0, problem.n_blocks * problem.X.n_rows * sizeof(double))
    for k in range(size):
        if direction[k] != 0.0:
            c = coords[k] // problem.n_coords
            column_axpy(walk(problem, state, coords[k] % problem.n_coords), direction[k],
                        state.direction_score + c * problem.X.n_rows)


cdef void fill_moved_mass(const problem_t* problem, state_t* state, ptr_t c, double one) noexcept nogil:
    """cell_mass = mass of block c times (one + centred score): one = 1 the moved model, one = 0 the change alone."""
    cdef ptr_t i
    fill_cell_mass(problem, state, c, state.cell_mass)
    for i in range(problem.X.n_rows):
        state.cell_mass[i] *= one + centred_score(problem, state, c, i)


cdef void covariance_product(const problem_t* problem, state_t* state, system_t* system) noexcept nogil:
    """product = (Hessian on the coordinates) @ direction"""
    cdef ptr_t k, c, last = -1
    direction_scores(problem, state, system.size, system.coords, system.direction)
    center_direction(problem, state)
    for k in range(system.size):
        c = system.coords[k] // problem.n_coords
        if c != last:
            fill_moved_mass(problem, state, c, 0.0)
            last = c
        system.product[k] = column_dot(walk(problem, state, system.coords[k] % problem.n_coords), state.cell_mass)


cdef void conjugate_gradients(const problem_t* problem, state_t* state, system_t* system, ptr_t n_most,
                              double precision) noexcept nogil:
    """Improve the solution until the norm of the residual has decreased by the factor `precision`."""
    cdef ptr_t k, _iteration
    cdef double norm = 0.0, first, last, curvature, step
    for k in range(system.size):
        system.direction[k] = system.residual[k] / system.scale[k]
        norm += system.residual[k] * system.direction[k]
    first = norm
    for _iteration in range(n_most):
        covariance_product(problem, state, system)
        curvature = 0.0
        for k in range(system.size):
            curvature += system.direction[k] * system.product[k]
        if not curvature > 0.0 or interrupted(state):
            return
        step = norm / curvature
        last = norm
        norm = 0.0
        for k in range(system.size):
            system.solution[k] += step * system.direction[k]
            system.residual[k] -= step * system.product[k]
            norm += system.residual[k] * system.residual[k] / system.scale[k]
        if norm <= precision * precision * first:
            return
        for k in range(system.size):
            system.direction[k] = system.residual[k] / system.scale[k] + norm / last * system.direction[k]
