"""Links from short names in docstrings, such as `Model`, to their documentation."""

from sphinx.util.nodes import make_refnode


def find_short_name(app, env, node, contnode):
    """Link to the only documented object whose dotted name ends with the short name."""
    if node.get("refdomain") != "py":
        return None
    objects = env.get_domain("py").objects
    asked = node["reftarget"]
    found = [name for name in objects if name.startswith("sl1max.") and name.endswith(f".{asked}")]
    found = [f"sl1max.{asked}"] if f"sl1max.{asked}" in found else found
    if len(found) != 1:
        return None
    entry = objects[found[0]]
    return make_refnode(app.builder, node["refdoc"], entry.docname, entry.node_id, contnode, found[0])


def skip_scikit_learn(app, what, name, obj, skip, options):
    """Skip members that estimators inherit from scikit-learn."""
    return True if str(getattr(obj, "__module__", "")).startswith("sklearn.") else None


def setup(app):
    app.connect("missing-reference", find_short_name)
    app.connect("autodoc-skip-member", skip_scikit_learn)
    return {"parallel_read_safe": True, "parallel_write_safe": True}
