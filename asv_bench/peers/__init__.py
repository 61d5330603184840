"""Time to a given accuracy, sl1max beside the other L1 solvers: ``python -m peers`` or ``ci/bench peers``."""
