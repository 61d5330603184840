"""Warnings of the library."""


class ConvergenceWarning(UserWarning):
    """The duality gap stayed above its target: the model is the best found, not a certified optimum."""
