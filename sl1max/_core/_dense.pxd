"""Dense vectors, exponentials, and a Cholesky factor: what a Newton system spends its time in.

The loops are written so that a compiler may use vectors without changing a bit: several sums side by side, added up in
one fixed order. Where the platform can choose at load time, an AVX2 copy is made beside the baseline one; both give the
same bits.
"""
from libc.math cimport sqrt

from sl1max._core._types cimport ptr_t


cdef extern from *:
    """
    #include <stdint.h>
    #include <string.h>
    #if defined(__GNUC__) && !defined(__clang__) && defined(__x86_64__) && defined(__gnu_linux__) \\
        && !defined(__SANITIZE_ADDRESS__)
    #define SL1MAX_CLONES __attribute__((target_clones("avx2", "default")))
    #else
    #define SL1MAX_CLONES
    #endif

    /* Four sums side by side. Left to itself a compiler may transpose the rows instead: three times slower (gcc 12). */
    #if defined(__GNUC__)
    typedef double sl1max_lanes __attribute__((vector_size(32), aligned(8), may_alias));
    #define SL1MAX_ADD_PRODUCT(sum, x, y) ((sum) += *(const sl1max_lanes *) (x) * *(const sl1max_lanes *) (y))
    #else
    typedef double sl1max_lanes[4];
    #define SL1MAX_ADD_PRODUCT(sum, x, y) for (int k = 0; k < 4; ++k) (sum)[k] += (x)[k] * (y)[k]
    #endif
    #define SL1MAX_ADD_UP(sum) (((sum)[0] + (sum)[1]) + ((sum)[2] + (sum)[3]))

    SL1MAX_CLONES static double sl1max_dot(const double *x, const double *y, int64_t size)
    {
        sl1max_lanes low = {0.0}, high = {0.0};
        int64_t a = 0;
        for (; a + 8 <= size; a += 8) {
            SL1MAX_ADD_PRODUCT(low, x + a, y + a);
            SL1MAX_ADD_PRODUCT(high, x + a + 4, y + a + 4);
        }
        for (; a < size; ++a)
            low[0] += x[a] * y[a];
        return SL1MAX_ADD_UP(low) + SL1MAX_ADD_UP(high);
    }

    /* Dots of four rows x with two rows y, six loads for eight products: what Hessians of dense columns and Cholesky
       factors are made of. out[r] with the first y, out[4 + r] with the second. */
    SL1MAX_CLONES static void sl1max_dot4x2(const double *x, int64_t stride, const double *y0, const double *y1,
                                            int64_t size, double *out)
    {
        sl1max_lanes a0 = {0.0}, a1 = {0.0}, a2 = {0.0}, a3 = {0.0};
        sl1max_lanes b0 = {0.0}, b1 = {0.0}, b2 = {0.0}, b3 = {0.0};
        const double *x1 = x + stride, *x2 = x1 + stride, *x3 = x2 + stride;
        int64_t a = 0;
        for (; a + 4 <= size; a += 4) {
            SL1MAX_ADD_PRODUCT(a0, x + a, y0 + a);
            SL1MAX_ADD_PRODUCT(a1, x1 + a, y0 + a);
            SL1MAX_ADD_PRODUCT(a2, x2 + a, y0 + a);
            SL1MAX_ADD_PRODUCT(a3, x3 + a, y0 + a);
            SL1MAX_ADD_PRODUCT(b0, x + a, y1 + a);
            SL1MAX_ADD_PRODUCT(b1, x1 + a, y1 + a);
            SL1MAX_ADD_PRODUCT(b2, x2 + a, y1 + a);
            SL1MAX_ADD_PRODUCT(b3, x3 + a, y1 + a);
        }
        for (; a < size; ++a) {
            a0[0] += x[a] * y0[a];
            a1[0] += x1[a] * y0[a];
            a2[0] += x2[a] * y0[a];
            a3[0] += x3[a] * y0[a];
            b0[0] += x[a] * y1[a];
            b1[0] += x1[a] * y1[a];
            b2[0] += x2[a] * y1[a];
            b3[0] += x3[a] * y1[a];
        }
        out[0] = SL1MAX_ADD_UP(a0);
        out[1] = SL1MAX_ADD_UP(a1);
        out[2] = SL1MAX_ADD_UP(a2);
        out[3] = SL1MAX_ADD_UP(a3);
        out[4] = SL1MAX_ADD_UP(b0);
        out[5] = SL1MAX_ADD_UP(b1);
        out[6] = SL1MAX_ADD_UP(b2);
        out[7] = SL1MAX_ADD_UP(b3);
    }

    SL1MAX_CLONES static void sl1max_axpy(double a, const double *restrict x, double *restrict y, int64_t size)
    {
        for (int64_t k = 0; k < size; ++k)
            y[k] += a * x[k];
    }

    SL1MAX_CLONES static void sl1max_axpy_single(double a, const float *restrict x, double *restrict y, int64_t size)
    {
        for (int64_t k = 0; k < size; ++k)
            y[k] += a * x[k];
    }

    /* Exponentials: exp(x) = 2^n e^r with |r| <= ln(2) / 2, e^r by its series up to r^13 / 13!. Below e^-708 they are
       zero, and never more than e^709. A call of the C library's exp takes 5 ns, here it is 2 ns each, to 0.7 units of
       the last digit. */
    #define SL1MAX_EXP_LEAST (-708.0)
    #define SL1MAX_EXP_MOST 709.0
    #define SL1MAX_LOG2_E 1.4426950408889634
    #define SL1MAX_LN2_HIGH 6.93147180369123816490e-01
    #define SL1MAX_LN2_LOW 1.90821492927058770002e-10
    /* Added to a number, it leaves the nearest integer in the low bits. */
    #define SL1MAX_SHIFTER 6755399441055744.0
    /* (e^r - 1 - r) / r^2 */
    #define SL1MAX_EXP_SERIES(r) ((((((((((((1.0 / 6227020800.0) * (r) + 1.0 / 479001600.0) * (r) \\
        + 1.0 / 39916800.0) * (r) + 1.0 / 3628800.0) * (r) + 1.0 / 362880.0) * (r) + 1.0 / 40320.0) * (r) \\
        + 1.0 / 5040.0) * (r) + 1.0 / 720.0) * (r) + 1.0 / 120.0) * (r) + 1.0 / 24.0) * (r) + 1.0 / 6.0) * (r) + 0.5)

    static inline double sl1max_exp_one(double x)
    {
        const double c = x > SL1MAX_EXP_MOST ? SL1MAX_EXP_MOST : x;
        const double shifted = c * SL1MAX_LOG2_E + SL1MAX_SHIFTER, n = shifted - SL1MAX_SHIFTER;
        const double r = (c - n * SL1MAX_LN2_HIGH) - n * SL1MAX_LN2_LOW;
        uint64_t bits;
        double power;
        if (x < SL1MAX_EXP_LEAST)
            return 0.0;
        memcpy(&bits, &shifted, sizeof bits);
        bits = (bits + 1023u) << 52;
        memcpy(&power, &bits, sizeof power);
        return power * (1.0 + (r + r * r * SL1MAX_EXP_SERIES(r)));
    }

    SL1MAX_CLONES static void sl1max_exp_all(double *x, int64_t size)
    {
        int64_t k = 0;
    #if defined(__GNUC__)
        typedef uint64_t words __attribute__((vector_size(32), aligned(8), may_alias));
        const sl1max_lanes most = {SL1MAX_EXP_MOST, SL1MAX_EXP_MOST, SL1MAX_EXP_MOST, SL1MAX_EXP_MOST};
        for (; k + 4 <= size; k += 4) {
            const sl1max_lanes v = *(const sl1max_lanes *) (x + k);
            const words gone = (words) (v < SL1MAX_EXP_LEAST), much = (words) (v > SL1MAX_EXP_MOST);
            const sl1max_lanes c = (sl1max_lanes) ((~(gone | much) & (words) v) | (much & (words) most));
            const sl1max_lanes shifted = c * SL1MAX_LOG2_E + SL1MAX_SHIFTER, n = shifted - SL1MAX_SHIFTER;
            const sl1max_lanes r = (c - n * SL1MAX_LN2_HIGH) - n * SL1MAX_LN2_LOW;
            const sl1max_lanes power = (sl1max_lanes) (((words) shifted + 1023u) << 52);
            const sl1max_lanes grown = power * (1.0 + (r + r * r * SL1MAX_EXP_SERIES(r)));
            *(sl1max_lanes *) (x + k) = (sl1max_lanes) (~gone & (words) grown);
        }
    #endif
        for (; k < size; ++k)
            x[k] = sl1max_exp_one(x[k]);
    }
    """
    # x @ y
    double dot "sl1max_dot"(const double* x, const double* y, ptr_t size) noexcept nogil
    # out[r] = x[r * stride:][:size] @ y0, out[4 + r] = x[r * stride:][:size] @ y1, r = 0..3
    void dot4x2 "sl1max_dot4x2"(const double* x, ptr_t stride, const double* y0, const double* y1, ptr_t size,
                                double* out) noexcept nogil
    # y += a * x
    void axpy "sl1max_axpy"(double a, const double* x, double* y, ptr_t size) noexcept nogil
    void axpy_single "sl1max_axpy_single"(double a, const float* x, double* y, ptr_t size) noexcept nogil
    # x = exp(x)
    void exp_all "sl1max_exp_all"(double* x, ptr_t size) noexcept nogil


cdef inline double root_pivot(const double* row, ptr_t j, double flat) noexcept nogil:
    cdef double rest = row[j] - dot(row, row, j)
    return sqrt(rest) if rest > 1e-10 * row[j] else flat * sqrt(row[j])


cdef inline void factor_entry(double* matrix, ptr_t stride, ptr_t i, ptr_t j, const double* pivot) noexcept nogil:
    """Entry (i, j) of L, from rows i and j as far as they are known."""
    cdef double* row = matrix + i * stride
    row[j] = (row[j] - dot(row, matrix + j * stride, j)) / pivot[j]


cdef inline void factorise(double* matrix, ptr_t stride, ptr_t start, ptr_t size, double* pivot_out) noexcept nogil:
    """Cholesky: the strict lower triangle of matrix becomes that of L, whose diagonal is pivot; the upper one stays.

    Rows before start, an even number, are done already. On entry pivot says, relative to the diagonal's root, what a
    row is given that depends on those before it: something small, and the solution goes far along the direction in
    which the matrix is flat; infinity, and it stays where it is.
    """
    cdef ptr_t i, j, r, quad, band
    cdef double sums[8]
    cdef double* row
    for i in range(start, size, 16):
        band = min(16, size - i)
        # A band stays in the cache while the rows before it go by. Left of its own square: two columns and four rows
        # at a time.
        for j in range(0, i - 1, 2):
            for quad in range(i, i + band - 3, 4):
                dot4x2(matrix + quad * stride, stride, matrix + j * stride, matrix + (j + 1) * stride, j, sums)
                for r in range(4):
                    row = matrix + (quad + r) * stride
                    row[j] = (row[j] - sums[r]) / pivot_out[j]
                    row[j + 1] = (row[j + 1] - sums[4 + r] - row[j] * matrix[(j + 1) * stride + j]) / pivot_out[j + 1]
            for r in range(i + band - band % 4, i + band):
                factor_entry(matrix, stride, r, j, pivot_out)
                factor_entry(matrix, stride, r, j + 1, pivot_out)
        for r in range(i, i + band):
            for j in range(i, r):
                factor_entry(matrix, stride, r, j, pivot_out)
            pivot_out[r] = root_pivot(matrix + r * stride, r, pivot_out[r])


cdef inline void substitute(const double* matrix, ptr_t stride, ptr_t size, const double* pivot,
                            double* x) noexcept nogil:
    """Solve L L' x = x in place, L as factorise left it."""
    cdef ptr_t i
    for i in range(size):
        x[i] = (x[i] - dot(matrix + i * stride, x, i)) / pivot[i]
    for i in range(size - 1, -1, -1):
        x[i] /= pivot[i]
        axpy(-x[i], matrix + i * stride, x, i)
