"""The order of a sweep of coordinate descent.

In ascending order it creeps, among words that are alike: 70 closed-form sweeps over the working sets of a class of
WebKB, about 490 features, left 4e-3 of the objective to gain, in changing orders 2e-6.
"""
from libc.stdint cimport uint64_t

from sl1max._core._types cimport idx_t, ptr_t


cdef inline void start_order(idx_t* order, ptr_t size) noexcept nogil:
    cdef ptr_t place
    for place in range(size):
        order[place] = <idx_t> place


cdef inline void shuffle(idx_t* order, ptr_t size, uint64_t* seed) noexcept nogil:
    """Another order for the next sweep: Fisher and Yates, by a linear congruential generator."""
    cdef ptr_t last, other
    cdef idx_t held
    for last in range(size - 1, 0, -1):
        seed[0] = seed[0] * 6364136223846793005ULL + 1442695040888963407ULL
        other = <ptr_t> ((seed[0] >> 33) % <uint64_t> (last + 1))
        held = order[last]
        order[last] = order[other]
        order[other] = held
