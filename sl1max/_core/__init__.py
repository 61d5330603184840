"""Compiled kernels. Nothing here validates: :mod:`sl1max.inputs` does."""
