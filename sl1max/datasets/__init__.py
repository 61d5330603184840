"""The data sets of the paper: Reuters-21578, WebKB, and a public stand-in for its SuperTags; and svmlight files.

A data set is searched in the folder of the environment variable ``SL1MAX_DATA``, then in the cache folder
(``$XDG_CACHE_HOME/sl1max``, usually ``~/.cache/sl1max``). If it is in neither, it is downloaded from its public source.
WebKB is part of the package. For your own data see `sl1max.svmlight.read_svmlight`.
"""

from sl1max.datasets._reuters import fetch_reuters21578
from sl1max.datasets._store import Dataset
from sl1max.datasets._supertags import fetch_supertags
from sl1max.datasets._webkb import fetch_webkb
from sl1max.svmlight import SvmlightData, read_svmlight, read_svmlight_pieces, write_svmlight

__all__ = [
    "Dataset",
    "SvmlightData",
    "fetch_reuters21578",
    "fetch_supertags",
    "fetch_webkb",
    "read_svmlight",
    "read_svmlight_pieces",
    "write_svmlight",
]
