"""Fits: seconds, and counts that do not depend on the load of the machine."""

import sl1max

from .common import MODELS, SIZES, count_fit, made_problem


class Fit:
    params = (list(MODELS), list(SIZES))
    param_names = ("model", "size")
    timeout = 120
    warmup_time = 0.0

    def setup(self, model, size):
        self.X, self.y, self.options = made_problem(model, size)

    def time_fit(self, model, size):
        sl1max.fit(self.X, self.y, **self.options)


class Counts:
    """Counts of the fits of medium size, summed over their problems; the gap is the largest."""

    params = tuple(MODELS)
    param_names = ("model",)
    timeout = 120

    def setup_cache(self):
        return {model: count_fit(*made_problem(model, "medium")) for model in MODELS}


Counts.setup_cache.timeout = 300


def _track(name, unit):
    def track(self, counts, model):
        return counts[model][name]

    track.unit = unit
    track.pretty_name = f"fit.Counts.{name}"
    return track


for _name, _unit in {
    "column_walks": "walks",
    "updates": "updates",
    "nonzeros": "nonzeros",
    "rounds": "rounds",
    "objective": "nats",
    "gap": "nats",
}.items():
    setattr(Counts, f"track_{_name}", _track(_name, _unit))


class Sequential:
    """The paper's own algorithm, on the small problem."""

    params = ("joint/exclusive", "class-conditional")
    param_names = ("model",)
    timeout = 120

    def setup(self, model):
        self.X, self.y, self.options = made_problem(model, "small")

    def time_fit(self, model):
        sl1max.fit(self.X, self.y, solver="sequential", **self.options)


class Threads:
    """Independent classes on one and two threads."""

    params = (1, 2)
    param_names = ("n_jobs",)
    timeout = 120
    warmup_time = 0.0

    def setup(self, n_jobs):
        self.X, self.y, self.options = made_problem("conditional/independent", "medium")

    def time_fit(self, n_jobs):
        sl1max.fit(self.X, self.y, **(self.options | {"n_jobs": n_jobs}))
