from sl1max._core._hessian cimport entries_t
from sl1max._core._quadratic_model cimport factor_t, quadratic_t
from sl1max._core._types cimport options_t, problem_t, state_t
from sl1max._core._working_set cimport working_set_t


cdef struct newton_t:
    # The memory of Newton steps.
    entries_t entries
    quadratic_t model
    factor_t factor
    double* z_growth            # (n_samples,) where each example has its Z: change of z along the step
    double* z_moved             # (n_samples,) and the z there


cdef void release_newton(newton_t* newton) noexcept nogil
cdef void sweep(const problem_t* problem, state_t* state, working_set_t* working, int n_times) noexcept nogil
cdef int newton_steps(const problem_t* problem, state_t* state, const options_t* options, working_set_t* working,
                      newton_t* newton, double target, double precision) noexcept nogil
