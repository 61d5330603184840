"""The rows of X in groups that are alike.

A model that has weights on some columns only cannot tell rows apart that hold the same of these: it gives them one
probability. So a problem on those columns is one on the groups, each counting as many rows as it has; exactly.
"""
import numpy as np

from sl1max._core._column cimport get_column, row_axpy
from sl1max._core._lock cimport ExclusiveLock
from sl1max._core._solver cimport Columns
from sl1max._core._types cimport column_t, idx_t, ptr_t


cdef enum:
    SIZE        # rows of the group
    CHILD       # where those of them go that hold the column at hand
    SEEN        # the number of the column that met the group last
    N_FIELDS


cdef class Partition:
    """Groups of rows, refined column by column.

    Parameters
    ----------
    columns : Columns
        With an index of rows.
    rows, kinds : int32 arrays
        Rows that are unlike all others from the start, and which of them are alike: of the same kind 0, 1, ...
    """
    cdef readonly Columns columns
    cdef idx_t[::1] group       # (n_rows,) the number of the row's group
    cdef idx_t[:, ::1] about    # (capacity, N_FIELDS) of each group; numbers of empty groups are used again
    cdef idx_t[::1] met         # groups that the column at hand met
    cdef idx_t[::1] empty       # numbers to use again
    cdef ptr_t n_numbers, n_empty, n_columns
    cdef ExclusiveLock lock

    def __init__(self, Columns columns, const idx_t[::1] rows, const idx_t[::1] kinds):
        cdef ptr_t k
        self.columns = columns
        self.lock = ExclusiveLock("this Partition is at work in another thread")
        self.group = np.zeros(columns.view.n_rows, np.int32)
        self.n_numbers = 2 + np.max(kinds, initial=-1)
        self.about = np.empty((0, N_FIELDS), np.int32)
        self._reserve(0)
        self.about[0, SIZE] = columns.view.n_rows - <idx_t> rows.shape[0]
        for k in range(rows.shape[0]):
            self.group[rows[k]] = 1 + kinds[k]
            self.about[1 + kinds[k], SIZE] += 1

    def _reserve(self, ptr_t n_new):
        """Room for so many more numbers."""
        cdef ptr_t needed = self.n_numbers + n_new, held = self.about.shape[0]
        if needed <= held:
            return
        about = np.zeros((2 * needed, N_FIELDS), np.int32)
        empty = np.empty(2 * needed, np.int32)
        if held > 0:
            about[:held] = self.about
            empty[: self.n_empty] = self.empty[: self.n_empty]
        self.about, self.empty, self.met = about, empty, np.empty(2 * needed, np.int32)

    cdef idx_t new_number(self) noexcept nogil:
        if self.n_empty > 0:
            self.n_empty -= 1
            return self.empty[self.n_empty]
        self.n_numbers += 1
        return <idx_t> (self.n_numbers - 1)

    cdef void split(self, column_t column) noexcept nogil:
        """Part the rows that hold the column from those of their groups that do not.

        Where its values differ, each of these rows is taken to be unlike all others.
        """
        cdef ptr_t p, n_met = 0
        cdef idx_t i, g, turn
        self.n_columns += 1
        turn = <idx_t> self.n_columns
        for p in range(column.size):
            i = column.rows[p]
            g = self.group[i]
            if self.about[g, SEEN] != turn or column.values != NULL:
                if self.about[g, SEEN] != turn:
                    self.about[g, SEEN] = turn
                    self.met[n_met] = g
                    n_met += 1
                self.about[g, CHILD] = self.new_number()
                self.about[self.about[g, CHILD], SIZE] = 0
                self.about[self.about[g, CHILD], SEEN] = 0
            self.about[g, SIZE] -= 1
            self.group[i] = self.about[g, CHILD]
            self.about[self.group[i], SIZE] += 1
        for p in range(n_met):
            if self.about[self.met[p], SIZE] == 0:
                self.empty[self.n_empty] = self.met[p]
                self.n_empty += 1

    def refine(self, const ptr_t[::1] cols, ptr_t limit):
        """Split by columns in turn; false, and not by all of them, once there are more groups than the limit."""
        cdef column_t column
        cdef ptr_t k
        with self.lock:
            for k in range(cols.shape[0]):
                column = get_column(&self.columns.view, cols[k])
                self._reserve(column.size if column.values != NULL else min(column.size, self.n_groups))
                with nogil:
                    self.split(column)
                if self.n_groups > limit:
                    return False
        return True

    @property
    def n_groups(self):
        return self.n_numbers - self.n_empty

    def _places(self):
        """The place of each number among those in use; -1 if it is not."""
        used = np.asarray(self.about)[: self.n_numbers, SIZE] > 0
        return np.where(used, np.cumsum(used) - 1, -1).astype(np.int32)

    def sizes(self):
        """Rows of each group."""
        sizes = np.asarray(self.about)[: self.n_numbers, SIZE]
        return sizes[sizes > 0]

    def of_rows(self, const idx_t[::1] rows):
        """The group of each of these rows."""
        return self._places()[np.asarray(self.group)[np.asarray(rows)]]

    def restricted(self, const ptr_t[::1] cols):
        """`Columns` of these columns, which have refined the groups, on a row for each group."""
        cdef idx_t[::1] place = self._places()
        cdef ptr_t[::1] indptr = np.zeros(cols.shape[0] + 1, np.int64)
        cdef ptr_t capacity = 0, k, p, end = 0
        cdef bint binary = self.columns.view.values == NULL
        cdef column_t column
        cdef idx_t g, turn
        for k in range(cols.shape[0]):
            capacity += min(<ptr_t> get_column(&self.columns.view, cols[k]).size, <ptr_t> self.n_groups)
        cdef idx_t[::1] indices = np.empty(capacity, np.int32)
        cdef double[::1] values = None if binary else np.empty(capacity)
        with self.lock, nogil:
            for k in range(cols.shape[0]):
                column = get_column(&self.columns.view, cols[k])
                self.n_columns += 1
                turn = <idx_t> self.n_columns
                for p in range(column.size):
                    g = self.group[column.rows[p]]
                    if self.about[g, SEEN] != turn:
                        self.about[g, SEEN] = turn
                        indices[end] = place[g]
                        if not binary:
                            values[end] = column.values[p]
                        end += 1
                indptr[k + 1] = end
        return type(self.columns)(self.n_groups, <idx_t> cols.shape[0], indptr, indices[:end],
                                  None if binary else values[:end], by_rows=False)

    def price(self, const double[::1] flow):
        """X' f (n_cols,), where f is the flow of each group shared equally among its rows."""
        cdef double[::1] shared = np.zeros(self.n_numbers)
        cdef double[::1] mean
        cdef double common
        cdef ptr_t i
        sizes = np.asarray(self.about)[: self.n_numbers, SIZE]
        np.asarray(shared)[sizes > 0] = np.asarray(flow) / sizes[sizes > 0]
        common = shared[<ptr_t> np.argmax(sizes)]
        mean = common * self.columns.total
        with nogil:
            for i in range(self.columns.view.n_rows):
                if shared[self.group[i]] != common:
                    row_axpy(&self.columns.view, i, shared[self.group[i]] - common, &mean[0])
        return np.asarray(mean)[: self.columns.view.n_cols]
