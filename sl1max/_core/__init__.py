"""Compiled kernels. Nothing here validates: :mod:`sl1max._data.inputs` does."""
