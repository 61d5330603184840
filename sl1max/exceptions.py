"""Warnings and errors of the library."""


class ConvergenceWarning(UserWarning):
    """The duality gap stayed above its target: the model is the best found, not a certified optimum."""


class ModelFileError(ValueError):
    """A file is not a model, is damaged, or comes from a newer version of the library."""


class InfeasibleMomentsError(ValueError):
    """No distribution over the sample space has the means that were asked for, within their intervals."""
