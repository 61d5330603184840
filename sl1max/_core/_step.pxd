"""The bounds and their closed forms: scalar functions, nothing else.

All take the coordinate's empirical mean p, model mean q, weight lam and penalty beta, and return the step delta that
minimises an upper bound on the change of the objective, with the decrease (gain) that the bound promises.
In every case: the root that assumes lam + delta > 0, else the one that assumes lam + delta < 0, else delta = -lam.
"""
from libc.math cimport copysign, expm1, fabs, log, log1p


cdef extern from *:
    """
    /* No single step multiplies a weight by more than exp(30): where a bound has no minimum, walk, do not jump. */
    #define SL1MAX_MAX_STEP 30.0
    """
    const double MAX_STEP "SL1MAX_MAX_STEP"


cdef struct step_t:
    double delta
    double gain


cdef inline double penalty_change(double lam, double delta, double beta) noexcept nogil:
    """beta * (|lam + delta| - |lam|), to the last digit where the weight keeps its sign."""
    if lam > 0.0 and lam + delta >= 0.0:
        return beta * delta
    if lam < 0.0 and lam + delta <= 0.0:
        return -beta * delta
    return beta * (fabs(lam + delta) - fabs(lam))


cdef inline double paper_bound(double delta, double p, double q, double beta, double lam) noexcept nogil:
    """Right side of Eq. (bound) and Eq. (nbound), for values in [0, 1]."""
    cdef double log_mean = (log1p(expm1(delta) * q) if delta > 0.0      # the same, but nothing cancels for q near 1
                            else delta + log1p(expm1(-delta) * (1.0 - q)))
    return -delta * p + log_mean + penalty_change(lam, delta, beta)


cdef inline double paper_root(double r, double q) noexcept nogil:
    """delta at which the tilted mean q e^delta / (1 - q + q e^delta) equals r; +-MAX_STEP where there is none."""
    if r <= 0.0 or q >= 1.0:
        return -MAX_STEP
    if r >= 1.0 or q <= 0.0:
        return MAX_STEP
    cdef double delta = log(r * (1.0 - q) / ((1.0 - r) * q))
    return min(max(delta, -MAX_STEP), MAX_STEP)


cdef inline double paper_delta(double p, double q, double beta, double lam) noexcept nogil:
    cdef double delta
    if q <= 0.0 or q >= 1.0:
        # The bound is linear in delta with slope q - p: a constant feature, or one the model gives no mass.
        if fabs(q - p) <= beta:
            return -lam if beta > 0.0 else 0.0
    if p - beta > 0.0:
        delta = paper_root(p - beta, q)
        if lam + delta > 0.0:
            return delta
    if p + beta < 1.0:
        delta = paper_root(p + beta, q)
        if lam + delta < 0.0:
            return delta
    return -lam


cdef inline step_t paper_step(double p, double q, double beta, double lam) noexcept nogil:
    """Minimiser of the paper's bound. Exact for binary features under one Z, safe for values in [0, 1]."""
    cdef step_t step
    step.delta = paper_delta(p, q, beta, lam)
    step.gain = -paper_bound(step.delta, p, q, beta, lam) if step.delta != 0.0 else 0.0
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
                                    double beta, double lam) noexcept nogil:
    """Generalised self-concordance: |phi'''| <= reach * phi''. Any real values, every normaliser."""
    cdef double size = reach * fabs(delta)
    return (slope * delta + curvature / (reach * reach) * (expm1(size) - size)
            + penalty_change(lam, delta, beta))


cdef inline step_t concordant_step(double p, double q, double curvature, double reach,
                                   double beta, double lam) noexcept nogil:
    """Minimiser of the self-concordant bound: Newton's step near the optimum, safe far from it."""
    cdef step_t step
    cdef double slope = q - p
    step.delta = concordant_root(slope + beta, curvature, reach)
    if not lam + step.delta > 0.0:
        step.delta = concordant_root(slope - beta, curvature, reach)
        if not lam + step.delta < 0.0:
            step.delta = -lam
    step.gain = (-concordant_bound(step.delta, slope, curvature, reach, beta, lam)
                 if step.delta != 0.0 else 0.0)
    if not step.gain > 0.0:
        step.delta = 0.0
        step.gain = 0.0
    return step


cdef inline double violation(double gradient, double beta, double lam) noexcept nogil:
    """Distance of zero from the subdifferential: how far the coordinate is from its optimality condition."""
    if lam > 0.0:
        return fabs(gradient + beta)
    if lam < 0.0:
        return fabs(gradient - beta)
    return max(fabs(gradient) - beta, 0.0)


cdef inline double minimise_quadratic(double slope, double curvature, double beta, double lam) noexcept nogil:
    """delta minimising slope * delta + curvature / 2 * delta^2 + beta |lam + delta|."""
    if slope + beta < curvature * lam:
        return -(slope + beta) / curvature
    if slope - beta > curvature * lam:
        return -(slope - beta) / curvature
    return -lam


cdef inline double needed_mixing(double gradient, double beta) noexcept nogil:
    """Smallest t with (1 - t) |gradient| <= beta, for a penalised coordinate."""
    return 1.0 - beta / fabs(gradient) if fabs(gradient) > beta else 0.0
