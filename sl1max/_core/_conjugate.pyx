"""Conjugate gradients with the Hessian of the loss on some coordinates: no matrix, two walks of a column for a product.

They do not mind a singular one: an intercept for each class, a column twice.
"""
from libc.string cimport memset

from sl1max._core._column cimport column_axpy, column_dot
from sl1max._core._normalizer cimport block_flow, center_slope, interrupted, walk
from sl1max._core._types cimport problem_t, ptr_t, state_t


cdef void direction_slope(const problem_t* problem, state_t* state, ptr_t size, const ptr_t* coords,
                          const double* direction) noexcept nogil:
    """slope = X @ direction over all cells, the direction given on some coordinates."""
    cdef ptr_t k, c
    memset(state.slope, 0, problem.n_blocks * problem.X.n_rows * sizeof(double))
    for k in range(size):
        if direction[k] != 0.0:
            c = coords[k] // problem.n_coords
            column_axpy(walk(problem, state, coords[k] % problem.n_coords), direction[k],
                        state.slope + c * problem.X.n_rows)


cdef void tilted_flow(const problem_t* problem, state_t* state, ptr_t c, double one) noexcept nogil:
    """flow of block c times (one + tilt): one = 1 the tilted model, one = 0 the change alone."""
    cdef ptr_t i
    block_flow(problem, state, c, state.flow)
    for i in range(problem.X.n_rows):
        state.flow[i] *= one + tilt_at(problem, state, c, i)


cdef void covariance_product(const problem_t* problem, state_t* state, system_t* system) noexcept nogil:
    """product = (Hessian on the coordinates) @ direction"""
    cdef ptr_t k, c, last = -1
    direction_slope(problem, state, system.size, system.coords, system.direction)
    center_slope(problem, state)
    for k in range(system.size):
        c = system.coords[k] // problem.n_coords
        if c != last:
            tilted_flow(problem, state, c, 0.0)
            last = c
        system.product[k] = column_dot(walk(problem, state, system.coords[k] % problem.n_coords), state.flow)


cdef void conjugate_gradients(const problem_t* problem, state_t* state, system_t* system, ptr_t n_most,
                              double precision) noexcept nogil:
    """Go on from the solution at hand, until the residual's norm is that part of what it was."""
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
