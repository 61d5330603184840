"""Sums over the points on one side of every knot of a covariate, and sums of products of covariates.

A hinge or threshold between each two values of a covariate needs no column: the points are put into bins of equal
values once, a distribution over points becomes one over bins, and one pass over the bins gives the means of all hinges
and thresholds. The sums are built from the far end, by additions of numbers that are not negative:

    S_i = S_(i+1) + (k_(i+1) - k_i) M_(i+1) + sum over k_i < v <= k_(i+1) of m(v) (v - k_i)

for S_i = sum over v > k_i of m(v) (v - k_i) and M_i = sum over v > k_i of m(v). The difference of two sums,
sum m v - k sum m, would lose its digits where k is near the greatest value.
"""
from sl1max._core._types cimport idx_t, ptr_t


def bin_masses(const idx_t[::1] bins, const double[::1] mass, double[::1] binned_out):
    """Sums of the masses of the points in each bin: np.bincount(bins, mass)."""
    cdef ptr_t i
    with nogil:
        binned_out[:] = 0.0
        for i in range(bins.shape[0]):
            binned_out[bins[i]] += mass[i]


def sums_above(const double[::1] values, const double[::1] binned, const double[::1] knots,
               double[::1] mass_out, double[::1] first_out, double[::1] second_out=None):
    """Sums over the bins with a value above each knot: of mass, mass (value - knot) and mass (value - knot)^2.

    Values and knots ascend.
    """
    cdef ptr_t i = values.shape[0] - 1, t
    cdef double mass = 0.0, first = 0.0, second = 0.0, gap = 0.0, distance
    cdef bint squares = second_out is not None
    with nogil:
        for t in range(knots.shape[0] - 1, -1, -1):
            if t + 1 < knots.shape[0]:
                gap = knots[t + 1] - knots[t]
            second += gap * (2.0 * first + gap * mass)
            first += gap * mass
            while i >= 0 and values[i] > knots[t]:
                distance = values[i] - knots[t]
                mass += binned[i]
                first += binned[i] * distance
                second += binned[i] * distance * distance
                i -= 1
            mass_out[t] = mass
            first_out[t] = first
            if squares:
                second_out[t] = second


def sums_below(const double[::1] values, const double[::1] binned, const double[::1] knots,
               double[::1] mass_out, double[::1] first_out, double[::1] second_out=None):
    """Sums over the bins with a value below each knot: of mass, mass (knot - value) and mass (knot - value)^2.

    Values and knots ascend.
    """
    cdef ptr_t i = 0, t
    cdef double mass = 0.0, first = 0.0, second = 0.0, gap = 0.0, distance
    cdef bint squares = second_out is not None
    with nogil:
        for t in range(knots.shape[0]):
            if t > 0:
                gap = knots[t] - knots[t - 1]
            second += gap * (2.0 * first + gap * mass)
            first += gap * mass
            while i < values.shape[0] and values[i] < knots[t]:
                distance = knots[t] - values[i]
                mass += binned[i]
                first += binned[i] * distance
                second += binned[i] * distance * distance
                i += 1
            mass_out[t] = mass
            first_out[t] = first
            if squares:
                second_out[t] = second


def product_sums(const double[::1, :] points, const double[::1] mass, const idx_t[::1] first, const idx_t[::1] second,
                 const double[::1] low, double[::1] sums_out):
    """Sums of mass (v w - low) over the points, for pairs of columns v, w of a column-major matrix."""
    cdef ptr_t n = points.shape[0], k, i
    cdef const double* v
    cdef const double* w
    cdef double even, odd, least
    with nogil:
        for k in range(first.shape[0]):
            v, w = &points[0, first[k]], &points[0, second[k]]
            least = low[k]
            even = odd = 0.0  # two chains of additions, which do not wait for each other
            for i in range(0, n - 1, 2):
                even += mass[i] * (v[i] * w[i] - least)
                odd += mass[i + 1] * (v[i + 1] * w[i + 1] - least)
            if n % 2:
                even += mass[n - 1] * (v[n - 1] * w[n - 1] - least)
            sums_out[k] = even + odd
