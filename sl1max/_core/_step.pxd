"""The bounds and their closed forms: scalar functions, nothing else.

All take the coordinate's empirical mean p, model mean q, weight lam and penalty, and return the step delta that
minimises an upper bound on the change of the objective, with the decrease (gain) that the bound promises.
In every case: the root that assumes lam + delta > 0, else the one that assumes lam + delta < 0, else delta = -lam.
Limits of the weight cut the step short: the bounds are convex. With an l2 penalty no root has a closed form: it is
found by Newton's method, within an interval that contains it.
"""
from libc.math cimport copysign, exp, expm1, fabs, log, log1p

from sl1max._core._penalty cimport limit_step, penalty_change, penalty_t


cdef extern from *:
    """
    /* No single step multiplies a weight by more than exp(30): where a bound has no minimum, walk, do not jump. */
    #define SL1MAX_MAX_STEP 30.0
    #define SL1MAX_LARGEST_EXPONENT 700.0
    /* A root is found this precisely, relative to the step: the bound is quadratic there. */
    #define SL1MAX_ROOT_PRECISION 1e-9
    """
    const double MAX_STEP "SL1MAX_MAX_STEP"
    const double LARGEST_EXPONENT "SL1MAX_LARGEST_EXPONENT"
    const double ROOT_PRECISION "SL1MAX_ROOT_PRECISION"

cdef enum:
    MOST_ITERATIONS = 60


cdef struct step_t:
    double delta
    double gain


cdef inline double paper_bound(double delta, double p, double q, penalty_t penalty, double lam) noexcept nogil:
    """Right side of Eq. (bound) and Eq. (nbound), for values in [0, 1]."""
    cdef double log_mean = (log1p(expm1(delta) * q) if delta > 0.0      # the same, but nothing cancels for q near 1
                            else delta + log1p(expm1(-delta) * (1.0 - q)))
    return -delta * p + log_mean + penalty_change(penalty, lam, delta)


cdef inline double paper_root(double r, double q) noexcept nogil:
    """delta at which the tilted mean q e^delta / (1 - q + q e^delta) equals r; +-MAX_STEP where there is none."""
    if r <= 0.0 or q >= 1.0:
        return -MAX_STEP
    if r >= 1.0 or q <= 0.0:
        return MAX_STEP
    cdef double delta = log(r * (1.0 - q) / ((1.0 - r) * q))
    return min(max(delta, -MAX_STEP), MAX_STEP)


cdef inline double slope_of_bound(bint paper, double delta, double p, double q, double curvature,
                                  double reach) noexcept nogil:
    """Derivative of the paper's bound, or of the self-concordant one, without the penalty."""
    if not paper:
        return q - p + copysign(curvature / reach * expm1(min(reach * fabs(delta), LARGEST_EXPONENT)), delta)
    if q <= 0.0 or q >= 1.0:
        return q - p
    return 1.0 / (1.0 + (1.0 - q) / q * exp(-delta)) - p


cdef inline double curvature_of_bound(bint paper, double delta, double p, double q, double curvature,
                                      double reach) noexcept nogil:
    cdef double mean
    if not paper:
        return curvature * exp(min(reach * fabs(delta), LARGEST_EXPONENT))
    mean = slope_of_bound(True, delta, p, q, curvature, reach) + p
    return mean * (1.0 - mean)


cdef inline double l2_delta(bint paper, double p, double q, double curvature, double reach, penalty_t penalty,
                            double lam) noexcept nogil:
    """Minimiser of a bound plus a penalty with l2: a root of their derivative, which increases."""
    cdef double at_zero = slope_of_bound(paper, -lam, p, q, curvature, reach), longest = MAX_STEP / reach
    cdef double first = -lam, last, width, slope, delta, step
    cdef int _iteration
    if at_zero + penalty.lower < 0.0:
        width = penalty.lower
    elif at_zero - penalty.upper > 0.0:
        width = -penalty.upper
    else:
        return min(max(limit_step(penalty, lam, -lam), -longest), longest)
    # Between zero and the root the bound's slope is nearer to zero than at zero: l2 takes up no more than that.
    first = min(max(first, -longest), longest)
    last = min(max(limit_step(penalty, lam, -lam - (at_zero + width) / penalty.l2), -longest), longest)
    slope = slope_of_bound(paper, last, p, q, curvature, reach) + width + penalty.l2 * (lam + last)
    if slope * (at_zero + width) >= 0.0:
        return last
    first, last = min(first, last), max(first, last)
    delta = min(max(0.0, first), last)
    for _iteration in range(MOST_ITERATIONS):
        slope = slope_of_bound(paper, delta, p, q, curvature, reach) + width + penalty.l2 * (lam + delta)
        if slope > 0.0:
            last = delta
        else:
            first = delta
        step = -slope / (curvature_of_bound(paper, delta, p, q, curvature, reach) + penalty.l2)
        if not first < delta + step < last:
            step = 0.5 * (first + last) - delta
        delta += step
        if fabs(step) <= ROOT_PRECISION * fabs(delta):
            break
    return delta


cdef inline double paper_delta(double p, double q, penalty_t penalty, double lam) noexcept nogil:
    cdef double delta
    if penalty.l2 > 0.0:
        return l2_delta(True, p, q, 0.0, 1.0, penalty, lam)
    if q <= 0.0 or q >= 1.0:
        # The bound is linear in delta with slope q - p: a constant feature, or one the model gives no mass.
        if p - q <= penalty.lower and q - p <= penalty.upper:
            return -lam if penalty.lower > 0.0 or penalty.upper > 0.0 else 0.0
    if p - penalty.lower > 0.0:
        delta = paper_root(p - penalty.lower, q)
        if lam + delta > 0.0:
            return limit_step(penalty, lam, delta)
    if p + penalty.upper < 1.0:
        delta = paper_root(p + penalty.upper, q)
        if lam + delta < 0.0:
            return limit_step(penalty, lam, delta)
    return -lam


cdef inline step_t paper_step(double p, double q, penalty_t penalty, double lam) noexcept nogil:
    """Minimiser of the paper's bound. Exact for binary features under one Z, safe for values in [0, 1]."""
    cdef step_t step
    step.delta = paper_delta(p, q, penalty, lam)
    step.gain = -paper_bound(step.delta, p, q, penalty, lam) if step.delta != 0.0 else 0.0
    if not step.gain > 0.0:
        step.delta = 0.0
        step.gain = 0.0
    return step


cdef inline double concordant_root(double slope, double curvature, double reach) noexcept nogil:
    """Minimiser of slope * delta + curvature / reach^2 * (e^{reach |delta|} - reach |delta| - 1)."""
    cdef double size
    if slope == 0.0:
        return 0.0
    if curvature <= 0.0:
        size = 1.0
    else:
        size = min(log1p(reach * fabs(slope) / curvature), MAX_STEP)
    return -copysign(size / reach, slope)


cdef inline double concordant_bound(double delta, double slope, double curvature, double reach,
                                    penalty_t penalty, double lam) noexcept nogil:
    """Generalised self-concordance: |phi'''| <= reach * phi''. Any real values, every normaliser."""
    cdef double size = reach * fabs(delta)
    return (slope * delta + curvature / (reach * reach) * (expm1(size) - size)
            + penalty_change(penalty, lam, delta))


cdef inline step_t concordant_step(double p, double q, double curvature, double reach,
                                   penalty_t penalty, double lam) noexcept nogil:
    """Minimiser of the self-concordant bound: Newton's step near the optimum, safe far from it."""
    cdef step_t step
    cdef double slope = q - p
    if penalty.l2 > 0.0:
        step.delta = l2_delta(False, p, q, curvature, reach, penalty, lam)
    else:
        step.delta = concordant_root(slope + penalty.lower, curvature, reach)
        if not lam + step.delta > 0.0:
            step.delta = concordant_root(slope - penalty.upper, curvature, reach)
            if not lam + step.delta < 0.0:
                step.delta = -lam
        step.delta = limit_step(penalty, lam, step.delta)
    step.gain = (-concordant_bound(step.delta, slope, curvature, reach, penalty, lam)
                 if step.delta != 0.0 else 0.0)
    if not step.gain > 0.0:
        step.delta = 0.0
        step.gain = 0.0
    return step
