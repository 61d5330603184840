"""One thread at a time: a lock that is never waited for."""
from cpython.pythread cimport (
    NOWAIT_LOCK, PyThread_acquire_lock, PyThread_allocate_lock, PyThread_free_lock, PyThread_release_lock,
)


class InUseError(RuntimeError):
    """Another thread is at work on the object."""


cdef class ExclusiveLock:
    """Context manager that raises InUseError where another thread, or a caller further up, is inside already.

    Parameters
    ----------
    message : str
        Of the error.
    """
    def __cinit__(self, message):
        self.message = message
        self.lock = PyThread_allocate_lock()
        if self.lock == NULL:
            raise MemoryError("no lock could be allocated")

    def __dealloc__(self):
        if self.lock != NULL:
            PyThread_free_lock(self.lock)

    cdef bint acquire(self) noexcept nogil:
        return PyThread_acquire_lock(self.lock, NOWAIT_LOCK)

    cdef void release(self) noexcept nogil:
        PyThread_release_lock(self.lock)

    def __enter__(self):
        if not self.acquire():
            raise InUseError(self.message)

    def __exit__(self, *error):
        self.release()
