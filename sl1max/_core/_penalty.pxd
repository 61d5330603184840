"""The penalty of one weight, and everything that depends on it: scalar functions, nothing else.

    r(x) = lower max(x, 0) + upper max(-x, 0) + l2 / 2 x^2      for low <= x <= high, infinite elsewhere

with low <= 0 <= high. Plain L1 has lower = upper = beta and nothing else. In the dual problem `lower` and `upper` are
the half-widths of an interval, p~[f] - lower <= p[f] <= p~[f] + upper, which l2 and finite limits soften.

Each function takes a `penalty_t` by value. `l1(beta)` is the plain one: its constants are known to the compiler, which
leaves out what the general one needs. The functions named *_at choose between the two by `problem.general`.
"""
from libc.math cimport INFINITY, fabs

from sl1max._core._types cimport problem_t, ptr_t


cdef struct penalty_t:
    double lower                # cost of a positive weight
    double upper                # cost of a negative weight
    double l2
    bint limited                # whether low and high are finite, or one of them
    double low
    double high


cdef inline penalty_t l1(double beta) noexcept nogil:
    cdef penalty_t penalty
    penalty.lower = penalty.upper = beta
    penalty.l2 = 0.0
    penalty.limited = False
    penalty.low, penalty.high = -INFINITY, INFINITY
    return penalty


cdef inline penalty_t get_penalty(const problem_t* problem, ptr_t k) noexcept nogil:
    """The penalty of coordinate k; of the general kind, so `l1` is faster where `problem.general` is false."""
    cdef penalty_t penalty = l1(problem.beta[k])
    penalty.upper = problem.beta_upper[k]
    if problem.l2 != NULL:
        penalty.l2 = problem.l2[k]
    if problem.low != NULL:
        penalty.limited = True
        penalty.low, penalty.high = problem.low[k], problem.high[k]
    return penalty


cdef inline bint is_free(const problem_t* problem, ptr_t k) noexcept nogil:
    """Whether the weight is neither penalised nor limited: then p must have its empirical mean."""
    if problem.beta[k] != 0.0:
        return False
    return not problem.general or (
        problem.beta_upper[k] == 0.0 and (problem.l2 == NULL or problem.l2[k] == 0.0)
        and (problem.low == NULL or (problem.low[k] == -INFINITY and problem.high[k] == INFINITY)))


cdef inline bint is_smooth(const problem_t* problem, ptr_t k) noexcept nogil:
    """Whether the penalty has no kink at zero."""
    return problem.beta[k] == 0.0 and problem.beta_upper[k] == 0.0


cdef inline bint is_between_limits(const problem_t* problem, ptr_t k, double lam) noexcept nogil:
    """Whether the weight can move in both directions, by more than rounding errors."""
    return problem.low == NULL or problem.low[k] * (1.0 - 1e-14) < lam < problem.high[k] * (1.0 - 1e-14)


cdef inline double limit_weight(const problem_t* problem, ptr_t k, double lam) noexcept nogil:
    """The weight, or the limit that it is beyond."""
    return lam if problem.low == NULL else min(max(lam, problem.low[k]), problem.high[k])


cdef inline double limit_step(penalty_t penalty, double lam, double delta) noexcept nogil:
    """The step, or the one to the limit that it goes beyond."""
    if penalty.limited:
        return min(max(delta, penalty.low - lam), penalty.high - lam)
    return delta


cdef inline double linear_cost(penalty_t penalty, double x) noexcept nogil:
    """lower max(x, 0) + upper max(-x, 0)"""
    return penalty.lower * x if x > 0.0 else -penalty.upper * x if x < 0.0 else 0.0


cdef inline double penalty_value(penalty_t penalty, double x) noexcept nogil:
    """r(x), for x within the limits."""
    cdef double value = linear_cost(penalty, x)
    if penalty.l2 > 0.0:
        value += 0.5 * penalty.l2 * x * x
    return value


cdef inline double linear_change(penalty_t penalty, double lam, double delta) noexcept nogil:
    """Change of the linear cost, to the last digit where the weight keeps its sign."""
    if lam > 0.0 and lam + delta >= 0.0:
        return penalty.lower * delta
    if lam < 0.0 and lam + delta <= 0.0:
        return -penalty.upper * delta
    return linear_cost(penalty, lam + delta) - linear_cost(penalty, lam)


cdef inline double penalty_change(penalty_t penalty, double lam, double delta) noexcept nogil:
    """r(lam + delta) - r(lam), to the last digit where the weight keeps its sign."""
    cdef double change = linear_change(penalty, lam, delta)
    if penalty.l2 > 0.0:
        change += penalty.l2 * delta * (lam + 0.5 * delta)
    return change


cdef inline double violation(penalty_t penalty, double gradient, double lam) noexcept nogil:
    """Distance of zero from the subdifferential: how far the coordinate is from its optimality condition."""
    cdef double rise, fall      # the derivatives of loss plus penalty to the right, and to the left (negated)
    if penalty.l2 > 0.0:
        gradient += penalty.l2 * lam
    if not penalty.limited:
        if lam > 0.0:
            return fabs(gradient + penalty.lower)
        if lam < 0.0:
            return fabs(gradient - penalty.upper)
        return max(-gradient - penalty.lower, gradient - penalty.upper, 0.0)
    rise = gradient + (penalty.lower if lam >= 0.0 else -penalty.upper)
    fall = -gradient + (penalty.upper if lam <= 0.0 else -penalty.lower)
    return max(-rise if lam < penalty.high else 0.0, -fall if lam > penalty.low else 0.0, 0.0)


cdef inline double minimise_quadratic(penalty_t penalty, double slope, double curvature, double lam) noexcept nogil:
    """delta minimising slope * delta + curvature / 2 * delta^2 + r(lam + delta)."""
    cdef double right = slope + penalty.lower, left = slope - penalty.upper, delta = -lam
    if right < curvature * lam:
        delta = (-right / curvature if not penalty.l2 > 0.0
                 else -(right + penalty.l2 * lam) / (curvature + penalty.l2))
    elif left > curvature * lam:
        delta = (-left / curvature if not penalty.l2 > 0.0
                 else -(left + penalty.l2 * lam) / (curvature + penalty.l2))
    return limit_step(penalty, lam, delta)


cdef inline double needed_mixing(penalty_t penalty, double gradient) noexcept nogil:
    """Smallest t for which the conjugate of r is finite at -(1 - t) * gradient."""
    cdef double width = penalty.lower if gradient < 0.0 else penalty.upper
    if not fabs(gradient) > width or penalty.l2 > 0.0:
        return 0.0
    if penalty.limited and (penalty.high if gradient < 0.0 else -penalty.low) < INFINITY:
        return 0.0
    return 1.0 - width / fabs(gradient)


cdef inline double interval_mixing(penalty_t penalty, double gradient, double lam) noexcept nogil:
    """Smallest t for which (1 - t) * gradient is within the interval; 0 for a weight that a limit keeps there."""
    cdef double width = penalty.lower if gradient < 0.0 else penalty.upper
    if fabs(gradient) > width and not (penalty.limited and (lam >= penalty.high if gradient < 0.0
                                                            else lam <= penalty.low)):
        return 1.0 - width / fabs(gradient)
    return 0.0


cdef inline double conjugate(penalty_t penalty, double u) noexcept nogil:
    """r*(u) = max over x of u x - r(x); where that is infinite, 0: the caller has seen to it by its mixing."""
    cdef double beyond = u - penalty.lower if u > 0.0 else -u - penalty.upper, x
    if not beyond > 0.0 or not (penalty.l2 > 0.0 or penalty.limited):
        return 0.0
    x = beyond / penalty.l2 if penalty.l2 > 0.0 else INFINITY
    if penalty.limited:
        x = min(x, penalty.high if u > 0.0 else -penalty.low)
    if x == INFINITY:
        return 0.0
    return x * (beyond - 0.5 * penalty.l2 * x)


cdef inline double slackness(penalty_t penalty, double lam, double u) noexcept nogil:
    """r(lam) + r*(u) - lam u: not negative, and zero where lam and u fit each other."""
    return max(penalty_value(penalty, lam) - lam * u + conjugate(penalty, u), 0.0)


# For coordinate k of a problem


cdef inline double violation_at(const problem_t* problem, ptr_t k, double gradient, double lam) noexcept nogil:
    if problem.general:
        return violation(get_penalty(problem, k), gradient, lam)
    return violation(l1(problem.beta[k]), gradient, lam)


cdef inline double penalty_change_at(const problem_t* problem, ptr_t k, double lam, double delta) noexcept nogil:
    if problem.general:
        return penalty_change(get_penalty(problem, k), lam, delta)
    return penalty_change(l1(problem.beta[k]), lam, delta)


cdef inline double penalty_value_at(const problem_t* problem, ptr_t k, double x) noexcept nogil:
    if problem.general:
        return penalty_value(get_penalty(problem, k), x)
    return penalty_value(l1(problem.beta[k]), x)


cdef inline double slackness_at(const problem_t* problem, ptr_t k, double lam, double u) noexcept nogil:
    if problem.general:
        return slackness(get_penalty(problem, k), lam, u)
    return slackness(l1(problem.beta[k]), lam, u)


cdef inline double needed_mixing_at(const problem_t* problem, ptr_t k, double gradient) noexcept nogil:
    if problem.general:
        return needed_mixing(get_penalty(problem, k), gradient)
    return needed_mixing(l1(problem.beta[k]), gradient)


# The quadratic model has l2 in its Hessian and its slope: what is left of r is the linear cost and the limits.


cdef inline penalty_t get_linear(const problem_t* problem, ptr_t k) noexcept nogil:
    cdef penalty_t penalty = get_penalty(problem, k)
    penalty.l2 = 0.0
    return penalty


cdef inline double linear_change_at(const problem_t* problem, ptr_t k, double lam, double delta) noexcept nogil:
    if problem.general:
        return linear_change(get_linear(problem, k), lam, delta)
    return linear_change(l1(problem.beta[k]), lam, delta)


cdef inline double minimise_model_at(const problem_t* problem, ptr_t k, double slope, double curvature,
                                     double lam) noexcept nogil:
    """As `minimise_quadratic`, l2 being in slope and curvature already."""
    if problem.general:
        return minimise_quadratic(get_linear(problem, k), slope, curvature, lam)
    return minimise_quadratic(l1(problem.beta[k]), slope, curvature, lam)
