"""Dense vectors, and a Cholesky factor: what a Newton system spends its time in.

The loops are written so that a compiler may use vectors without changing a bit: several sums side by side, added up in
one fixed order. Where the platform can choose at load time, an AVX2 copy is made beside the baseline one; both give the
same bits.
"""
from libc.math cimport sqrt

from sl1max._core._types cimport ptr_t


cdef extern from *:
    """
    #include <stdint.h>
    #if defined(__GNUC__) && !defined(__clang__) && defined(__x86_64__) && defined(__gnu_linux__) \\
        && !defined(__SANITIZE_ADDRESS__)
    #define SL1MAX_CLONES __attribute__((target_clones("avx2", "default")))
    #else
    #define SL1MAX_CLONES
    #endif

    SL1MAX_CLONES static double sl1max_dot(const double *x, const double *y, int64_t size)
    {
        double sum[8] = {0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0};
        int64_t a = 0;
        for (; a + 8 <= size; a += 8)
            for (int k = 0; k < 8; ++k)
                sum[k] += x[a + k] * y[a + k];
        for (; a < size; ++a)
            sum[0] += x[a] * y[a];
        return ((sum[0] + sum[1]) + (sum[2] + sum[3])) + ((sum[4] + sum[5]) + (sum[6] + sum[7]));
    }

    /* Four dots with one y: what a Cholesky factor is made of. */
    SL1MAX_CLONES static void sl1max_dot4(const double *x, int64_t stride, const double *y, int64_t size, double *out)
    {
        double sum0[4] = {0.0}, sum1[4] = {0.0}, sum2[4] = {0.0}, sum3[4] = {0.0};
        const double *x1 = x + stride, *x2 = x1 + stride, *x3 = x2 + stride;
        int64_t a = 0;
        for (; a + 4 <= size; a += 4)
            for (int k = 0; k < 4; ++k) {
                sum0[k] += x[a + k] * y[a + k];
                sum1[k] += x1[a + k] * y[a + k];
                sum2[k] += x2[a + k] * y[a + k];
                sum3[k] += x3[a + k] * y[a + k];
            }
        for (; a < size; ++a) {
            sum0[0] += x[a] * y[a];
            sum1[0] += x1[a] * y[a];
            sum2[0] += x2[a] * y[a];
            sum3[0] += x3[a] * y[a];
        }
        out[0] = (sum0[0] + sum0[1]) + (sum0[2] + sum0[3]);
        out[1] = (sum1[0] + sum1[1]) + (sum1[2] + sum1[3]);
        out[2] = (sum2[0] + sum2[1]) + (sum2[2] + sum2[3]);
        out[3] = (sum3[0] + sum3[1]) + (sum3[2] + sum3[3]);
    }

    SL1MAX_CLONES static void sl1max_axpy(double a, const double *restrict x, double *restrict y, int64_t size)
    {
        for (int64_t k = 0; k < size; ++k)
            y[k] += a * x[k];
    }
    """
    # x @ y
    double dot "sl1max_dot"(const double* x, const double* y, ptr_t size) noexcept nogil
    # out[r] = x[r * stride:][:size] @ y, r = 0..3
    void dot4 "sl1max_dot4"(const double* x, ptr_t stride, const double* y, ptr_t size, double* out) noexcept nogil
    # y += a * x
    void axpy "sl1max_axpy"(double a, const double* x, double* y, ptr_t size) noexcept nogil


cdef inline double root_pivot(const double* row, ptr_t j, double flat) noexcept nogil:
    cdef double rest = row[j] - dot(row, row, j)
    return sqrt(rest) if rest > 1e-10 * row[j] else flat * sqrt(row[j])


cdef inline void factorise(double* matrix, ptr_t stride, ptr_t start, ptr_t size, double* pivot_out) noexcept nogil:
    """Cholesky: the strict lower triangle of matrix becomes that of L, whose diagonal is pivot; the upper one stays.

    Rows before start are done already. On entry pivot says, relative to the diagonal's root, what a row is given that
    depends on those before it: something small, and the solution goes far along the direction in which the matrix is
    flat; infinity, and it stays where it is.
    """
    cdef ptr_t i, j, r, band
    cdef double sums[4]
    for i in range(start, size, 4):
        band = min(4, size - i)
        for j in range(i + band):
            # entries (i..i+3, j), from rows i..i+3 against row j as far as L is known
            if band == 4 and j < i:
                dot4(matrix + i * stride, stride, matrix + j * stride, j, sums)
            else:
                for r in range(max(j + 1 - i, 0), band):
                    sums[r] = dot(matrix + (i + r) * stride, matrix + j * stride, j)
            if j >= i:
                pivot_out[j] = root_pivot(matrix + j * stride, j, pivot_out[j])
            for r in range(max(j + 1 - i, 0), band):
                matrix[(i + r) * stride + j] = (matrix[(i + r) * stride + j] - sums[r]) / pivot_out[j]


cdef inline void substitute(const double* matrix, ptr_t stride, ptr_t size, const double* pivot,
                            double* x) noexcept nogil:
    """Solve L L' x = x in place, L as factorise left it."""
    cdef ptr_t i
    for i in range(size):
        x[i] = (x[i] - dot(matrix + i * stride, x, i)) / pivot[i]
    for i in range(size - 1, -1, -1):
        x[i] /= pivot[i]
        axpy(-x[i], matrix + i * stride, x, i)
