"""The svmlight text format: a byte parser over a whole file in memory, and a formatter of rows.

    line  =  [label {"," label}] ["qid:" integer] {index ":" value} ["#" comment]

The parser reads numbers by hand when the result is exact (up to 2^53 and 10^+-22) and asks Python's own
converter for the rest, which unlike strtod does not depend on the locale. Text is a bytes object: its closing
NUL ends every scan, so no scan tests for the end of the buffer. Errors leave the loop as a status with line
and token, and become a ParseError in one place.
"""

from cpython.bytes cimport PyBytes_AS_STRING, PyBytes_FromStringAndSize
from cpython.mem cimport PyMem_Free
from libc.stdint cimport int32_t, int64_t, uint64_t
from libc.string cimport memcpy, strlen

cdef extern from "Python.h":
    double PyOS_string_to_double(const char *text, char **end_out, object overflow) except? -1.0
    char *PyOS_double_to_string(
        double number, char format, int precision, int flags, int *type_out) except NULL

ctypedef const unsigned char *text_t

cdef enum status_t:
    OK = 0
    BAD_LABEL
    INFINITE_LABEL
    BAD_FEATURE
    BAD_VALUE
    INFINITE_VALUE
    LARGE_INDEX
    UNSORTED_INDEX
    BAD_QUERY

MESSAGES = {
    BAD_LABEL: "label {!r} is not a number",
    INFINITE_LABEL: "label {!r} is not finite",
    BAD_FEATURE: "expected index:value, found {!r}",
    BAD_VALUE: "the value of {!r} is not a number",
    INFINITE_VALUE: "the value of {!r} is not finite",
    LARGE_INDEX: "the feature index of {!r} is above 2147483646",
    UNSORTED_INDEX: "the feature index of {!r} is not above the one before it",
    BAD_QUERY: "the query number of {!r} is not an integer",
}

cdef struct report_t:
    status_t status
    int64_t line
    text_t token
    int64_t n_rows
    int64_t n_labels
    int64_t n_entries
    int64_t min_index
    int64_t max_index
    int64_t max_line

cdef double[23] POWERS_OF_TEN = [
    1e0, 1e1, 1e2, 1e3, 1e4, 1e5, 1e6, 1e7, 1e8, 1e9, 1e10, 1e11,
    1e12, 1e13, 1e14, 1e15, 1e16, 1e17, 1e18, 1e19, 1e20, 1e21, 1e22,
]


class ParseError(Exception):
    """Arguments: the line, counted from 1, and what is wrong with it."""


cdef inline bint is_digit(unsigned char c) noexcept nogil:
    return <unsigned char>(c - c'0') <= 9


cdef inline bint is_blank(unsigned char c) noexcept nogil:
    return c == c' ' or c == c'\t' or c == c'\r' or c == c'\v' or c == c'\f'


cdef inline bint ends_token(unsigned char c) noexcept nogil:
    return is_blank(c) or c == c'\n' or c == c'#' or c == 0


cdef inline text_t skip_blanks(text_t p) noexcept nogil:
    while is_blank(p[0]):
        p += 1
    return p


cdef inline text_t skip_token(text_t p) noexcept nogil:
    while not ends_token(p[0]):
        p += 1
    return p


cdef inline text_t skip_line(text_t p, text_t end) noexcept nogil:
    while p < end and p[0] != c'\n':
        p += 1
    return p + 1


cdef inline bint starts_qid(text_t p) noexcept nogil:
    return p[0] == c'q' and p[1] == c'i' and p[2] == c'd' and p[3] == c':'


cdef text_t scan_hard_number(text_t p, double *number_out) noexcept with gil:
    """Any number at all, by Python's own converter. The end of it, or NULL."""
    cdef char *end = NULL
    # A number out of range becomes an infinity, which the caller refuses.
    try:
        number_out[0] = PyOS_string_to_double(<const char *>p, &end, OverflowError)
    except OverflowError:
        number_out[0] = float("inf")
        return skip_token(p)
    except ValueError:
        return NULL
    return <text_t>end


cdef inline text_t scan_number(text_t p, double *number_out) noexcept nogil:
    """A number at p. The end of it, or NULL if there is none."""
    cdef text_t start = p
    cdef text_t mark
    cdef uint64_t mantissa = 0
    cdef int64_t n_digits, exponent = 0, written = 0
    cdef bint negative = p[0] == c'-', negative_exponent
    if negative or p[0] == c'+':
        p += 1
    mark = p
    while is_digit(p[0]):
        mantissa = 10 * mantissa + (p[0] - c'0')
        p += 1
    n_digits = p - mark
    if p[0] == c'.':
        p += 1
        mark = p
        while is_digit(p[0]):
            mantissa = 10 * mantissa + (p[0] - c'0')
            p += 1
        n_digits += p - mark
        exponent = mark - p
    if n_digits and (p[0] == c'e' or p[0] == c'E'):
        negative_exponent = p[1] == c'-'
        p += 2 if negative_exponent or p[1] == c'+' else 1
        mark = p
        while is_digit(p[0]) and p - mark < 4:
            written = 10 * written + (p[0] - c'0')
            p += 1
        if p == mark:
            return NULL
        exponent += -written if negative_exponent else written
    # Exact: an integer below 2^53 times or over a power of ten that is itself exact, rounded once.
    if (n_digits == 0 or n_digits > 18 or mantissa > (<uint64_t>1 << 53) or exponent < -22 or exponent > 22
            or is_digit(p[0])):
        return scan_hard_number(start, number_out)
    number_out[0] = <double>mantissa
    if exponent < 0:
        number_out[0] /= POWERS_OF_TEN[-exponent]
    else:
        number_out[0] *= POWERS_OF_TEN[exponent]
    if negative:
        number_out[0] = -number_out[0]
    return p


cdef inline bint is_finite(double number) noexcept nogil:
    return number - number == 0.0


cdef text_t parse_labels(text_t p, double *labels, report_t *report) noexcept nogil:
    """The labels of a line; a first token with a colon is a feature, and the line has none."""
    cdef text_t token = p
    cdef text_t stop
    cdef double number = 0.0
    report.token = token
    if starts_qid(p):
        return p
    while True:
        stop = scan_number(p, &number)
        if stop == NULL:
            report.status = BAD_LABEL
            return p
        if stop[0] == c':' and p == token:
            return p
        if stop[0] != c',' and not ends_token(stop[0]):
            report.status = BAD_LABEL
            return p
        if not is_finite(number):
            report.status = INFINITE_LABEL
            return p
        labels[report.n_labels] = number
        report.n_labels += 1
        if stop[0] != c',':
            return stop
        p = stop + 1


cdef text_t parse_features(
    text_t p, text_t end, int32_t *indices, double *values, report_t *report,
) noexcept nogil:
    """The features of a line, up to the comment or the end of the line."""
    cdef int64_t index, previous = -1
    cdef double number = 0.0
    p = skip_blanks(p)
    if starts_qid(p):
        report.token = p
        p += 5 if p[4] == c'-' else 4
        if not is_digit(p[0]):
            report.status = BAD_QUERY
            return p
        while is_digit(p[0]):
            p += 1
        if not ends_token(p[0]):
            report.status = BAD_QUERY
            return p
        p = skip_blanks(p)
    while p < end and p[0] != c'\n' and p[0] != c'#':
        report.token = p
        index = 0
        while is_digit(p[0]) and p - report.token < 11:
            index = 10 * index + (p[0] - c'0')
            p += 1
        if index > 2147483646:
            report.status = LARGE_INDEX
            return p
        if p == report.token or p[0] != c':':
            report.status = BAD_FEATURE
            return p
        if index <= previous:
            report.status = UNSORTED_INDEX
            return p
        previous = index
        p = scan_number(p + 1, &number)
        if p == NULL or not ends_token(p[0]):
            report.status = BAD_VALUE
            return p
        if not is_finite(number):
            report.status = INFINITE_VALUE
            return p
        if report.n_entries == 0 or index < report.min_index:
            report.min_index = index
        if index > report.max_index:
            report.max_index = index
            report.max_line = report.line
        indices[report.n_entries] = <int32_t>index
        values[report.n_entries] = number
        report.n_entries += 1
        p = skip_blanks(p)
    return p


cdef void run_parse(
    text_t p, text_t end, double *labels, int64_t *label_ptr, int32_t *indices, double *values,
    int64_t *indptr, int64_t *lines, report_t *report,
) noexcept nogil:
    while p < end:
        report.line += 1
        p = skip_blanks(p)
        if p < end and p[0] != c'\n' and p[0] != c'#':
            p = parse_labels(p, labels, report)
            if report.status == OK:
                p = parse_features(p, end, indices, values, report)
            if report.status != OK:
                return
            lines[report.n_rows] = report.line
            report.n_rows += 1
            label_ptr[report.n_rows] = report.n_labels
            indptr[report.n_rows] = report.n_entries
        p = skip_line(p, end)


def count(bytes text):
    """Upper bounds on the numbers of rows, labels and entries of a text, for :func:`parse`."""
    cdef text_t p = <text_t>PyBytes_AS_STRING(text)
    cdef int64_t n_bytes = len(text), i, n_lines = 1, n_commas = 0, n_colons = 0
    with nogil:
        for i in range(n_bytes):
            n_lines += p[i] == c'\n'
            n_commas += p[i] == c','
            n_colons += p[i] == c':'
    return n_lines, n_lines + n_commas, n_colons


def parse(
    bytes text, double[::1] labels, int64_t[::1] label_ptr, int32_t[::1] indices, double[::1] values,
    int64_t[::1] indptr, int64_t[::1] lines,
):
    """Fill the arrays, which have the sizes that :func:`count` gives (pointers one more).

    ``lines`` gets the line of every row. Returns the numbers of rows, labels and entries filled, the least
    and the greatest feature index (-1 if there is none) and the line of the greatest.
    """
    cdef text_t start = <text_t>PyBytes_AS_STRING(text)
    cdef int64_t n_bytes = len(text), first
    cdef report_t report
    report.status = OK
    report.token = start
    report.line = report.n_rows = report.n_labels = report.n_entries = report.max_line = 0
    report.min_index = report.max_index = -1
    label_ptr[0] = indptr[0] = 0
    # Arrays without entries have no first element to point to.
    cdef int32_t *index_buffer = &indices[0] if indices.shape[0] else NULL
    cdef double *value_buffer = &values[0] if values.shape[0] else NULL
    with nogil:
        run_parse(start, start + n_bytes, &labels[0], &label_ptr[0], index_buffer, value_buffer, &indptr[0],
                  &lines[0], &report)
    if report.status != OK:
        first = report.token - start
        token = text[first:skip_token(report.token + 1) - start][:40].decode("utf-8", "replace")
        raise ParseError(report.line, MESSAGES[report.status].format(token))
    return (
        report.n_rows, report.n_labels, report.n_entries,
        report.min_index, report.max_index, report.max_line,
    )


cdef char *write_number(char *out, double number) except NULL:
    """The shortest text that reads back as the same number. The end of it."""
    cdef char *text
    cdef size_t n_bytes
    cdef char[20] digits
    cdef int n_digits = 0
    cdef int64_t whole
    if -1e15 < number < 1e15 and number == <double><int64_t>number:
        whole = <int64_t>number
        if whole < 0:
            out[0] = c'-'
            out += 1
            whole = -whole
        while True:
            digits[n_digits] = <char>(c'0' + whole % 10)
            n_digits += 1
            whole //= 10
            if whole == 0:
                break
        while n_digits:
            n_digits -= 1
            out[0] = digits[n_digits]
            out += 1
        return out
    text = PyOS_double_to_string(number, c'r', 0, 0, NULL)
    n_bytes = strlen(text)
    memcpy(out, text, n_bytes)
    PyMem_Free(text)
    return out + n_bytes


def format_rows(
    const double[::1] labels, const int64_t[::1] label_ptr, const int32_t[::1] indices,
    const double[::1] values, const int64_t[::1] indptr, int64_t first_row, int64_t last_row, int64_t base,
):
    """Rows first_row <= i < last_row as text; ``base`` is the index written for the first feature.

    A row with neither labels nor features would be a blank line, which readers skip: it gets a zero.
    """
    cdef int64_t n_labels = label_ptr[last_row] - label_ptr[first_row]
    cdef int64_t n_entries = indptr[last_row] - indptr[first_row]
    # A number takes 24 characters at most, an index 10, each one separator.
    cdef int64_t most = 25 * n_labels + 36 * n_entries + 6 * (last_row - first_row)
    cdef bytes text = PyBytes_FromStringAndSize(NULL, most)
    cdef char *start = PyBytes_AS_STRING(text)
    cdef char *out = start
    cdef int64_t i, p
    for i in range(first_row, last_row):
        for p in range(label_ptr[i], label_ptr[i + 1]):
            if p > label_ptr[i]:
                out[0] = c','
                out += 1
            out = write_number(out, labels[p])
        if label_ptr[i] == label_ptr[i + 1] and indptr[i] == indptr[i + 1]:
            out[0] = c' '
            out = write_number(out + 1, base)
            out[0] = c':'
            out[1] = c'0'
            out += 2
        for p in range(indptr[i], indptr[i + 1]):
            out[0] = c' '
            out = write_number(out + 1, indices[p] + base)
            out[0] = c':'
            out = write_number(out + 1, values[p])
        out[0] = c'\n'
        out += 1
    return text[:out - start]
