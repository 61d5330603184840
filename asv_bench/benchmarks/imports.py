"""Import time of sl1max in addition to numpy and scipy."""


def timeraw_import():
    return "import sl1max"


def timeraw_import_added():
    return "import sl1max", "import numpy, scipy.sparse"
