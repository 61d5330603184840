"""Warnings and errors of the library."""


class ConvergenceWarning(UserWarning):
    """The duality gap is above its target: the model is the best one found, but not certified as optimal."""


class ModelFileError(ValueError):
    """A file is not a model, is damaged, or comes from a newer version of the library."""


class InfeasibleMomentsError(ValueError):
    """No distribution over the sample space has the given means within their intervals."""


class CheckpointError(ValueError):
    """A file is not a checkpoint, belongs to another fit, or is in use."""


class FitError(RuntimeError):
    """Some classes could not be trained; the others were trained.

    Attributes
    ----------
    failed : dict
        The reason for each class label; the key is None if all classes are trained together.
    model : Model or None
        The model of the trained classes; failed classes are never predicted. None if no class was trained.
    """

    def __init__(self, message, failed, model):
        super().__init__(message)
        self.failed = failed
        self.model = model

    def __reduce__(self):
        return type(self), (self.args[0], self.failed, self.model)


class FitMemoryError(FitError, MemoryError):
    """Memory was insufficient for some classes; the others were trained."""


class ThreadStartError(RuntimeError):
    """The system cannot start ``n_jobs`` threads."""
