"""Figures of models, of their training and of species distributions.

Every function draws into the axes that it is given, or into a new figure, and returns the axes. matplotlib is
imported when a figure is asked for.
"""

from sl1max.plot._models import (
    plot_calibration,
    plot_convergence,
    plot_cv,
    plot_path,
    plot_reject,
    plot_top_features,
)
from sl1max.plot._species import (
    plot_jackknife,
    plot_map,
    plot_omission,
    plot_response,
    plot_roc,
    plot_tuning,
)

__all__ = [
    "plot_calibration",
    "plot_convergence",
    "plot_cv",
    "plot_jackknife",
    "plot_map",
    "plot_omission",
    "plot_path",
    "plot_reject",
    "plot_response",
    "plot_roc",
    "plot_top_features",
    "plot_tuning",
]
