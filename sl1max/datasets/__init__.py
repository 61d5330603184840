"""The data sets of the paper: Reuters-21578, WebKB, and a public stand-in for its SuperTags.

A set is looked for in the folder that the environment variable ``SL1MAX_DATA`` names, then in the cache
folder (``$XDG_CACHE_HOME/sl1max``, usually ``~/.cache/sl1max``), and is downloaded from its public source if
it is in neither. WebKB comes with the package.
"""

from sl1max.datasets._reuters import fetch_reuters21578
from sl1max.datasets._store import Dataset
from sl1max.datasets._supertags import fetch_supertags
from sl1max.datasets._webkb import fetch_webkb

__all__ = ["Dataset", "fetch_reuters21578", "fetch_supertags", "fetch_webkb"]
