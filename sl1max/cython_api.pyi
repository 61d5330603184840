# The functions of cython_api.pxd, for compiled code alone: a capsule each, named after its signature.
__pyx_capi__: dict[str, object]
