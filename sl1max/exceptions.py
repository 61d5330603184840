"""Warnings and errors of the library."""


class ConvergenceWarning(UserWarning):
    """The duality gap stayed above its target: the model is the best found, not a certified optimum."""


class ModelFileError(ValueError):
    """A file is not a model, is damaged, or comes from a newer version of the library."""


class InfeasibleMomentsError(ValueError):
    """No distribution over the sample space has the means that were asked for, within their intervals."""


class CheckpointError(ValueError):
    """A file is not a checkpoint, or one of another fit, or in use."""


class FitError(RuntimeError):
    """Some classes could not be trained; the others have been.

    Attributes
    ----------
    failed : dict
        Why, by class label; the key is None where all classes are trained together.
    model : Model or None
        All that was trained. Classes that failed are never predicted. None if there is nothing.
    """

    def __init__(self, message, failed, model):
        super().__init__(message)
        self.failed = failed
        self.model = model

    def __reduce__(self):
        return type(self), (self.args[0], self.failed, self.model)


class FitMemoryError(FitError, MemoryError):
    """Memory ran out for some classes; the others have been trained."""


class ThreadStartError(RuntimeError):
    """The system does not let as many threads start as ``n_jobs`` asks for."""
