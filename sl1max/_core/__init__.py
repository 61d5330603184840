"""Compiled kernels. Nothing here validates: :mod:`sl1max._data.inputs` does."""

import importlib.util

if importlib.util.find_spec("sl1max._core._solver") is None:
    raise ImportError(
        "sl1max is not compiled in this folder of sources: install it there (pip install .), then start Python in "
        "another folder or as python -P"
    )
