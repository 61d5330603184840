"""One thread at a time: a lock that is never waited for."""
from cpython.pythread cimport PyThread_type_lock


cdef class ExclusiveLock:
    cdef PyThread_type_lock lock
    cdef object message

    # Whether the lock was free, and is now held.
    cdef bint acquire(self) noexcept nogil
    cdef void release(self) noexcept nogil
