"""The style of all figures in the gallery."""

STYLE = {
    "figure.figsize": (6.4, 4.0),
    "figure.constrained_layout.use": True,
    "font.size": 14,
    "axes.spines.top": False,
    "axes.spines.right": False,
    "axes.grid": True,
    "axes.axisbelow": True,
    "grid.color": "#E4E4E4",
    "grid.linewidth": 0.6,
    "legend.frameon": False,
    "lines.linewidth": 2,
}
COLORS = ("#0072B2", "#D55E00", "#009E73", "#CC79A7", "#E69F00", "#56B4E9", "#000000")


def set_style(gallery_conf, fname):
    """Set matplotlib's defaults; sphinx-gallery calls this before each example."""
    import matplotlib as mpl

    mpl.rcParams.update({**STYLE, "axes.prop_cycle": mpl.cycler(color=COLORS)})
