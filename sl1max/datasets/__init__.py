"""The data sets of the paper: Reuters-21578, WebKB, and a public stand-in for its SuperTags; and svmlight files.

A set is looked for in the folder that the environment variable ``SL1MAX_DATA`` names, then in the cache
folder (``$XDG_CACHE_HOME/sl1max``, usually ``~/.cache/sl1max``), and is downloaded from its public source if
it is in neither. WebKB comes with the package. Sets of your own are read from and written to svmlight files by
`sl1max.svmlight.read_svmlight` and its neighbours.
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
