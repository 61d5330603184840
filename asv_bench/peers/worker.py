"""One process per solver, so that a hanging or crashing fit does not affect the others."""

import gc
import multiprocessing
import os
import signal
import time
import warnings

from .problems import tiny_like


def _fit_once(solver, problem, knob):
    """Fit (timed), then evaluate (not timed).

    The clock is that of the processor, all threads together: with one thread it is the wall's on an idle machine, and
    other work disturbs it less. The wall's decides how long a solver may take.
    """
    gc.collect()
    gc.disable()
    try:
        start, processor = time.perf_counter(), time.process_time()
        model = solver.fit(problem, knob)
        wall, processor = time.perf_counter() - start, time.process_time() - processor
    finally:
        gc.enable()
    coef, intercept = solver.weights(model)
    return {
        "wall": wall,
        "seconds": processor if solver.seconds is None else float(solver.seconds),
        "objective": problem.objective(coef, intercept),
        "lower_bound": problem.lower_bound(coef, intercept),
        "n_nonzero": int((coef != 0).sum()),
    }


class NoAnswer(RuntimeError):
    """A fit was stopped after ``seconds``."""

    def __init__(self, seconds):
        super().__init__(f"no answer in {seconds:g} s")
        self.seconds = seconds


def _serve(pipe, solver, problems):
    """Answer (problem's name, knob) with the outcome of a fit or the text of an error; knob None: warm up."""
    os.setsid()  # a process group, so that child processes of a solver end with it
    warnings.simplefilter("ignore")  # a sweep stops early on purpose
    while True:
        name, knob = pipe.recv()
        problem = problems[name]
        try:
            if knob is None:
                answer = _fit_once(solver, tiny_like(problem), solver.knobs[0])
            else:
                answer = _fit_once(solver, problem, knob)
        except Exception as error:  # a failing solver gives a line of the table and does not stop the run
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
            if self._process.is_alive():
                os.killpg(self._process.pid, signal.SIGKILL)
            self._process.join()
            self._process = None

    def ask(self, problem, knob, patience):
        """Outcome of one fit; RuntimeError if it failed, NoAnswer if it took longer than patience seconds."""
        if self._process is None:
            self._start()
        self._pipe.send((problem.name, knob))
        if not self._pipe.poll(patience):
            self.close()
            raise NoAnswer(patience)
        try:
            answer = self._pipe.recv()
        except EOFError:
            self.close()
            answer = "the process died"
        if isinstance(answer, str):
            raise RuntimeError(answer)
        return answer
