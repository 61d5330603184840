"""Buffers that grow as needed."""
from libc.stdlib cimport free, malloc

from sl1max._core._types cimport ptr_t


cdef inline bint replace_buffer(void** buffer, ptr_t n_bytes) noexcept nogil:
    """Allocate a new buffer in place of the old one, whose contents are lost; false if there is no memory."""
    free(buffer[0])
    buffer[0] = malloc(n_bytes)
    return buffer[0] != NULL
