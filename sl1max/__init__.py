"""L1-regularised maximum-entropy classifiers: joint, class-conditional and conditional."""

from sl1max.exceptions import ConvergenceWarning
from sl1max.fit import fit
from sl1max.model import Model
from sl1max.monitor import FitProgress

__all__ = ["ConvergenceWarning", "FitProgress", "Model", "fit"]
__version__ = "0.1.0"
