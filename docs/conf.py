"""Sphinx configuration of the site, which `ci/docs` builds."""

import sys
from importlib.util import find_spec
from pathlib import Path

import sl1max

HERE = Path(__file__).parent
sys.path.insert(0, str(HERE / "_ext"))

import page_parts  # noqa: E402

project = "sl1max"
author = "the sl1max developers"
copyright = "2026, the sl1max developers"
version = release = sl1max.__version__

extensions = [
    "myst_parser",
    "numpydoc",
    "sphinx.ext.autodoc",
    "sphinx.ext.autosummary",
    "sphinx_copybutton",
    "sphinx_design",
    "sphinx_gallery.gen_gallery",
    "references",
]
exclude_patterns = ["_build", "_generated", "gallery"]
templates_path = ["_templates"]
default_role = "py:obj"
smartquotes = False  # keep "--help" and "auto" as typed
nitpicky = True

# Pages in Markdown

myst_enable_extensions = ["attrs_inline", "colon_fence", "dollarmath", "amsmath", "substitution"]
myst_heading_anchors = 3
myst_substitutions = page_parts.substitutions(HERE)

# MathJax is copied into the site, so that formulas are shown without network access. This file draws SVG and needs no
# fonts. MathML needs no script but looks poor without a mathematical font.
MATHJAX = Path(find_spec("sphinx-mathjax-offline").origin).parent / "static" / "mathjax" / "tex-svg.js"
mathjax_path = MATHJAX.name

# Reference

autosummary_generate = True
autodoc_typehints = "none"
autodoc_member_order = "bysource"
numpydoc_show_class_members = False
numpydoc_xref_param_type = False

# Examples

sphinx_gallery_conf = {
    "examples_dirs": "gallery",
    "gallery_dirs": "examples",
    "backreferences_dir": "_generated/backreferences",
    "doc_module": ("sl1max",),
    "within_subsection_order": "FileNameSortKey",
    "write_computation_times": False,
    "download_all_examples": False,
    "show_signature": False,
    "thumbnail_size": (480, 320),
    "reset_modules": ("matplotlib", "gallery_style.set_style"),
    "abort_on_example_error": True,
}

# Looks

html_theme = "pydata_sphinx_theme"
html_title = f"sl1max {release}"
html_static_path = ["_static", str(MATHJAX)]
html_css_files = ["sl1max.css"]
html_favicon = "_static/favicon.svg"
html_show_sourcelink = False
html_copy_source = False
html_sidebars = {"index": [], "install": [], "start": []}
html_theme_options = {
    "logo": {"text": "sl1max", "image_light": "_static/favicon.svg", "image_dark": "_static/favicon.svg"},
    "header_links_before_dropdown": 6,
    "navbar_align": "left",
    "navbar_end": ["theme-switcher"],
    "show_prev_next": True,
    "secondary_sidebar_items": ["page-toc"],
    "footer_start": ["copyright"],
    "footer_end": [],
}
copybutton_exclude = ".linenos, .gp, .go"
