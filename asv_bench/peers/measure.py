"""Run the solvers on a problem: a sweep over their settings, then alternating repetitions of the relevant ones."""

import statistics

from .worker import NoAnswer

TARGETS = (1e-3, 1e-4, 1e-6)  # distance to the optimum, relative to the objective of zero weights
ENOUGH = 1e-7  # a sweep ends at this distance
NEAR_BEST_KNOB = 1.5  # repeat a setting if its first run is within this factor of the solver's fastest one
NEAR_BEST_PEER = 3.0  # and if the solver is within this factor of the fastest peer
PATIENCE = 3.0  # a fit is stopped after so many time limits
WARM_UP_PATIENCE = 120.0  # seconds


class Point:
    """One setting of one solver on one problem, and its runs."""

    def __init__(self, worker, problem, knob):
        self.worker, self.problem, self.knob = worker, problem, knob
        self.runs = []

    def run(self, time_limit):
        """Fit once more; the wall-clock seconds it took."""
        self.runs.append(self.worker.ask(self.problem, self.knob, PATIENCE * time_limit))
        return self.runs[-1]["wall"]

    @property
    def seconds(self):
        return statistics.median(run["seconds"] for run in self.runs)

    @property
    def objective(self):
        return statistics.median(run["objective"] for run in self.runs)

    @property
    def lower_bound(self):
        return max(run["lower_bound"] for run in self.runs)

    def as_dict(self):
        return {
            "knob": self.knob,
            "median_seconds": self.seconds,
            "objective": self.objective,
            "n_nonzero": self.runs[-1]["n_nonzero"],
            "seconds": [run["seconds"] for run in self.runs],
            "objectives": [run["objective"] for run in self.runs],
        }


def _reference(workers, problem, time_limit):
    """Compute an accurate solution, which tells the sweeps when to end; None if no solver has one."""
    for worker in workers:
        if worker.solver.is_reference:
            point = Point(worker, problem, worker.solver.knobs[-1])
            try:
                point.run(time_limit)
            except RuntimeError:
                continue
            return point
    return None


def _sweep(worker, problem, time_limit, best, points):
    """Run all settings from loose to tight, until the best known objective or the time limit is reached."""
    for knob in worker.solver.knobs:
        point = Point(worker, problem, knob)
        wall = point.run(time_limit)
        points.append(point)
        if point.objective <= best + ENOUGH * problem.objective_zero or wall > time_limit:
            break


def _fastest(points, goal):
    return min((point.seconds for point in points if point.objective <= goal), default=float("inf"))


def _worth_repeating(sweeps, optimum, objective_zero):
    """Select the settings that are nearly the fastest at some target, for sl1max and the competitive peers."""
    chosen = []
    for target in TARGETS:
        goal = optimum + target * objective_zero
        fastest = {name: _fastest(points, goal) for name, points in sweeps.items()}
        best_peer = min((fastest[name] for name in fastest if name != "sl1max"), default=float("inf"))
        for name, points in sweeps.items():
            if name == "sl1max" or fastest[name] <= NEAR_BEST_PEER * best_peer:
                near = NEAR_BEST_KNOB * fastest[name]
                chosen += [point for point in points if point.objective <= goal and point.seconds <= near]
    return list(dict.fromkeys(chosen))


def measure(problem, workers, n_runs, time_limit, say=print):
    """Measure all solvers on one problem; return a dictionary.

    Parameters
    ----------
    problem : Problem
    workers : list of Worker
    n_runs : int
        Number of runs of each competitive setting, including the sweep; solvers alternate.
    time_limit : float
        No tighter setting is run after a fit that takes longer, in seconds.
    say : callable
        Called with one line about each solver.

    Returns
    -------
    dict

    Notes
    -----
    ``optimum`` is the least objective seen, ``lower_bound`` the best certificate: the truth lies between.
    """
    sweeps, errors, given_up, warm_up = {}, {}, {}, {}
    workers = [worker for worker in workers if worker.solver.handles(problem)]
    reference = _reference(workers, problem, time_limit)
    best = reference.objective if reference else 0.0
    for worker in workers:
        name = worker.solver.name
        points = sweeps[name] = []
        try:
            warm_up[name] = worker.ask(problem, None, WARM_UP_PATIENCE)["wall"]
            _sweep(worker, problem, time_limit, best, points)
        except RuntimeError as error:
            errors[name] = f"{error} after {len(points)} settings"
            say(f"  {name:18s} {errors[name]}")
            if isinstance(error, NoAnswer):
                given_up[name] = error.seconds
        if points:
            last = points[-1]
            say(f"  {name:18s} {len(points):3d} knobs, last {last.seconds:9.3f} s {last.objective:.10f}")
    everything = [reference] if reference else []
    everything += [point for points in sweeps.values() for point in points]
    if not everything:
        raise RuntimeError(f"no solver at hand handles {problem.name}")
    optimum = min(point.objective for point in everything)
    contenders = _worth_repeating(sweeps, optimum, problem.objective_zero)
    for _ in range(n_runs - 1):
        for point in contenders:
            try:
                point.run(time_limit)
            except RuntimeError as error:
                errors[point.worker.solver.name] = str(error)
    return {
        "problem": problem.name,
        "group": problem.group,
        "C": problem.C,
        "intercept": problem.intercept,
        "exclusive": problem.exclusive,
        "shape": list(problem.X.shape),
        "n_classes": problem.n_classes,
        "objective_zero": problem.objective_zero,
        "optimum": min(run["objective"] for point in everything for run in point.runs),
        "lower_bound": max(point.lower_bound for point in everything),
        "n_runs": n_runs,
        "time_limit": time_limit,
        "warm_up_seconds": warm_up,
        "errors": errors,
        "given_up_seconds": given_up,
        "solvers": {name: [point.as_dict() for point in points] for name, points in sweeps.items()},
    }
