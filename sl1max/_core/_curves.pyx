"""Scores of additive models: a piecewise quadratic function of each covariate, and products of two.

Linear and quadratic terms, hinges, thresholds and indicators of one covariate add up to one curve, whose pieces are
found by bisection; so a score costs a few comparisons for each covariate, whatever the number of terms.
"""
from libc.math cimport NAN

from sl1max._core._types cimport idx_t, ptr_t

cdef ptr_t POINTS_AT_ONCE = 2048  # the scores of so many stay in the first cache while the covariates take their turns


cdef inline double clean(double v, double missing, double low, double high) noexcept nogil:
    """A value within its range; nan if it is missing."""
    if v == missing:
        return NAN
    return low if v < low else high if v > high else v


def add_curves(const double[:, ::1] values, const double[::1] missing, const double[::1] low, const double[::1] high,
               const ptr_t[::1] start, const double[:, ::1] pieces, double[::1] score_out):
    """Add a curve of each covariate to the scores of points.

    A piece of a curve covers the values above its end, up to the end of the next one. There it is
    constant + d (slope + d curvature), d the distance from its origin. The first piece begins at -inf. A missing
    value makes the score nan.

    Parameters
    ----------
    values : array of shape (n_covariates, n_points)
    missing : array of shape (n_covariates,)
        The value of each covariate that stands for a missing one; nan if there is none.
    low, high : arrays of shape (n_covariates,)
        Values beyond count as these.
    start : array of shape (n_covariates + 1,)
        Where the pieces of each covariate begin. Each covariate has at least one.
    pieces : array of shape (5, n_pieces)
        End, origin, constant, slope and curvature.
    score_out : array of shape (n_points,)
    """
    cdef ptr_t n = values.shape[1], block, first, last, i, j, p, half, size
    cdef const double* end = &pieces[0, 0]
    cdef double v, distance
    with nogil:
        for block in range(n // POINTS_AT_ONCE + 1):
            first = block * POINTS_AT_ONCE
            last = min(first + POINTS_AT_ONCE, n)
            for j in range(values.shape[0]):
                for i in range(first, last):
                    v = clean(values[j, i], missing[j], low[j], high[j])
                    p, size = start[j], start[j + 1] - start[j]
                    while size > 1:
                        half = size >> 1
                        p = p + half if end[p + half] < v else p
                        size -= half
                    distance = v - pieces[1, p]
                    score_out[i] += pieces[2, p] + distance * (pieces[3, p] + distance * pieces[4, p])


def add_products(const double[:, ::1] values, const double[::1] missing, const double[::1] low,
                 const double[::1] high, const idx_t[::1] first, const idx_t[::1] second, const double[:, ::1] terms,
                 bint clamp, double[::1] score_out):
    """Add weight * (v w - low) / extent to the scores, for pairs of covariates v, w.

    Parameters
    ----------
    values, missing, low, high, score_out
        As those of `add_curves`.
    first, second : arrays of shape (n_products,)
        Numbers of the covariates.
    terms : array of shape (3, n_products)
        Low, extent and weight.
    clamp : bool
        Limit (v w - low) / extent to [0, 1].
    """
    cdef ptr_t n = values.shape[1], block, begin, end, i, k
    cdef double v, w, x
    with nogil:
        for block in range(n // POINTS_AT_ONCE + 1):
            begin = block * POINTS_AT_ONCE
            end = min(begin + POINTS_AT_ONCE, n)
            for k in range(first.shape[0]):
                for i in range(begin, end):
                    v = clean(values[first[k], i], missing[first[k]], low[first[k]], high[first[k]])
                    w = clean(values[second[k], i], missing[second[k]], low[second[k]], high[second[k]])
                    x = (v * w - terms[0, k]) / terms[1, k]
                    if clamp:
                        x = 0.0 if x < 0.0 else 1.0 if x > 1.0 else x
                    score_out[i] += terms[2, k] * x
