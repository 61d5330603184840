"""Losses of the margin y * score, and the step of boosting on them: scalar functions, nothing else.

With W+ the weight of the examples whose margin a feature raises and W- that of those whose margin it lowers, the step
delta changes either loss by at most

    W+ (e^-delta - 1) + W- (e^delta - 1)

where an example weighs -loss'(margin) |x| and |x| <= 1 (Collins, Schapire and Singer 2002, sequential updates). For the
exponential loss and values in {-1, 0, 1} that is the change itself. Its minimiser is 1/2 ln(W+ / W-).
"""
from libc.math cimport exp, expm1, fabs, log, log1p

from sl1max._core._step cimport MAX_STEP, step_t


cdef inline double margin_loss(double margin, bint exponential) noexcept nogil:
    """e^-margin, or ln(1 + e^-margin)"""
    if exponential:
        return exp(-margin)
    return max(-margin, 0.0) + log1p(exp(-fabs(margin)))


cdef inline double margin_weight(double margin, bint exponential) noexcept nogil:
    """-loss'(margin): e^-margin, or 1 / (1 + e^margin)"""
    return exp(-margin) if exponential else 1.0 / (1.0 + exp(margin))


cdef inline double boost_delta(double raised, double lowered, double smoothing) noexcept nogil:
    """1/2 ln((W+ + smoothing) / (W- + smoothing)), at most MAX_STEP in size."""
    cdef double above = raised + smoothing, below = lowered + smoothing
    if above == below:
        return 0.0
    if below <= 0.0:
        return MAX_STEP
    if above <= 0.0:
        return -MAX_STEP
    return min(max(0.5 * log(above / below), -MAX_STEP), MAX_STEP)


cdef inline step_t boost_step(double raised, double lowered, double smoothing) noexcept nogil:
    """The smoothed step, which lies between 0 and the minimiser of the bound, and the decrease promised for it."""
    cdef step_t step
    step.delta = boost_delta(raised, lowered, smoothing)
    step.gain = -raised * expm1(-step.delta) - lowered * expm1(step.delta)
    if not step.gain > 0.0:
        step.delta = 0.0
        step.gain = 0.0
    return step
