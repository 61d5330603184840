"""One process per solver: a fit that hangs or crashes stops nobody else, and compiled code stays warm."""

import gc
import multiprocessing
import time
import warnings

from .problems import tiny_like


def _fit_once(solver, problem, knob):
    """Fit on the clock, evaluate off it."""
    gc.collect()
    gc.disable()
    try:
        start = time.perf_counter()
        model = solver.fit(problem, knob)
        wall = time.perf_counter() - start
    finally:
        gc.enable()
    coef, intercept = solver.weights(model)
    return {
        "wall": wall,
        "seconds": wall if solver.seconds is None else float(solver.seconds),
        "objective": problem.objective(coef, intercept),
        "lower_bound": problem.lower_bound(coef, intercept),
        "n_nonzero": int((coef != 0).sum()),
    }


def _serve(pipe, solver, problems):
    """Answer (problem's name, knob) with the outcome of a fit or the text of an error; knob None: warm up."""
    warnings.simplefilter("ignore")  # early stops are the point of a sweep
    while True:
        name, knob = pipe.recv()
        problem = problems[name]
        try:
            if knob is None:
                answer = _fit_once(solver, tiny_like(problem), solver.knobs[0])
            else:
                answer = _fit_once(solver, problem, knob)
        except Exception as error:  # one solver's failure is a line of the table, not the end of the run
            answer = f"{type(error).__name__}: {error}".splitlines()[0]
        pipe.send(answer)


class Worker:
    """A solver in a process of its own.

    Parameters
    ----------
    solver : Solver
    problems : list of Problem
        All that it may be asked for.
    """

    def __init__(self, solver, problems):
        self.solver = solver
        self._problems = {problem.name: problem for problem in problems}
        self._process = None

    def _start(self):
        context = multiprocessing.get_context("fork")
        self._pipe, other = context.Pipe()
        self._process = context.Process(target=_serve, args=(other, self.solver, self._problems), daemon=True)
        self._process.start()
        other.close()

    def close(self):
        if self._process is not None:
            self._process.kill()
            self._process.join()
            self._process = None

    def ask(self, problem, knob, patience):
        """Outcome of one fit; RuntimeError if it failed or gave no answer within patience seconds."""
        if self._process is None:
            self._start()
        self._pipe.send((problem.name, knob))
        try:
            answer = self._pipe.recv() if self._pipe.poll(patience) else f"no answer in {patience:g} s"
        except EOFError:
            answer = "the process died"
        if self._process is not None and (
            not self._process.is_alive() or str(answer).startswith("no answer")
        ):
            self.close()
        if isinstance(answer, str):
            raise RuntimeError(f"{answer} (knob {knob})")
        return answer
