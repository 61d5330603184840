"""Time to a given accuracy of sl1max and other L1 solvers: ``python -m peers`` or ``ci/bench peers``."""
