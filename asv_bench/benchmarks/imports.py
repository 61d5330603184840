"""What ``import sl1max`` adds to what its users have imported anyway."""


def timeraw_import():
    return "import sl1max"


def timeraw_import_added():
    return "import sl1max", "import numpy, scipy.sparse"
