"""Problems that do as they are told, in place of a `Reduction`; a module of its own, so that workers can import it."""

import os
import signal
import time
from types import SimpleNamespace

import numpy as np

from sl1max._utils.progress import FitProgress


class Solved(SimpleNamespace):
    def is_final(self, max_iter):
        return True


class Problems:
    """A problem for every word: "fine" is solved, "error" and "memory" raise, "deadly" ends its process."""

    def __init__(self, words, seconds=0.0):
        self.words = words
        self.seconds = seconds
        self.data = SimpleNamespace(matrix=np.zeros((1, 1)), columns=None)

    def plans(self, algorithm):
        return list(range(len(self.words)))

    def effort(self, plan):
        return 1.0

    def class_label(self, plan):
        return f"class {plan}"

    def last_progress(self, solution, tol):
        return FitProgress(self.class_label(solution.plan), 1, 0.0, 0.0, 0.0)

    def make_solver(self, plan, algorithm, tol, begun=None, n_threads=1):
        word = self.words[plan]
        time.sleep(self.seconds)
        if word == "error":
            raise ArithmeticError(f"no solution of {plan}")
        if word == "memory":
            raise MemoryError
        if word == "deadly":
            os.kill(os.getpid(), signal.SIGKILL)
        return SimpleNamespace(n_iter=0, run=lambda n, stop: "converged")

    def solution(self, plan, solver, status, begun=None):
        return Solved(plan=plan, status=status, process=os.getpid())


def raising(error):
    """A function that takes anything and raises the error."""

    def fail(*_, **__):
        raise error

    return fail
