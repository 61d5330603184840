"""Training in steps, for learners that change weights or labels in between.

`Problem` holds the converted examples; any number of `Solver`s, e.g. one for each expert of a mixture, share its
columns and have targets, weights and penalties of their own. A solver that is given others keeps its weights and goes
on from them. Nothing of X is converted again; of real values ``beta_rule="deviation"`` squares a copy for a moment.
"""

from __future__ import annotations

import numbers
from dataclasses import replace
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from sl1max._core._lock import ExclusiveLock
from sl1max._data.inputs import (
    change_labels,
    change_offset,
    check_algorithm,
    check_options,
    check_warm_start,
    read_beta,
    read_data,
    read_strengths,
)
from sl1max._data.moments import IN_CLASS
from sl1max._execution.control import Deadline
from sl1max._utils.typing import Algorithm, BetaRule, Distribution, LabelMode, Matrix, MultilabelWeighting
from sl1max.model._model import Model
from sl1max.training._fit import ALGORITHMS, check_identified, reduce_data, warn_constant


class Problem:
    """A training set and the model to be fitted, for `Solver`.

    X is taken by reference where it has the form the core works on: a CSC matrix of float64 with sorted int32
    indices, or a column-major float64 array, at least a quarter of it nonzero. It must not be changed meanwhile. Of
    sparse examples by the ten thousands the core keeps the rows beside the columns, for speed: those of a CSR matrix
    with sorted indices and without stored zeros by reference, else a copy.

    Parameters
    ----------
    X, y, distribution, label_mode, beta, C, beta_rule, l1_ratio, l2, beta_lower, beta_upper, min_weight, max_weight, \
positive, fit_intercept, sample_weight, offset, multilabel_weighting :
        As in `sl1max.fit`. Examples of weight zero, or without a label, are kept, since a solver may change this.
        Unlike in `sl1max.fit` they therefore affect the range of each feature.

    Attributes
    ----------
    classes : ndarray of shape (n_classes,)
        Class labels; column numbers for an indicator.
    shape : (n_samples, n_features)

    Examples
    --------
    >>> import sl1max
    >>> problem = sl1max.Problem([[1, 0], [1, 1], [0, 1], [0, 1]], ["spam", "spam", "ham", "ham"], beta=0.1)
    >>> problem.classes.tolist(), problem.shape
    (['ham', 'spam'], (4, 2))
    """

    def __init__(
        self,
        X: Matrix,
        y: Matrix,
        *,
        distribution: Distribution = "conditional",
        label_mode: LabelMode = "auto",
        beta: ArrayLike | None = None,
        C: ArrayLike | None = None,
        beta_rule: BetaRule = "deviation",
        l1_ratio: float = 1.0,
        l2: ArrayLike = 0.0,
        beta_lower: ArrayLike | None = None,
        beta_upper: ArrayLike | None = None,
        min_weight: ArrayLike | None = None,
        max_weight: ArrayLike | None = None,
        positive: bool = False,
        fit_intercept: bool = True,
        sample_weight: ArrayLike | None = None,
        offset: ArrayLike | None = None,
        multilabel_weighting: MultilabelWeighting = "duplicate",
    ):
        check_options(
            distribution=distribution,
            label_mode=label_mode,
            beta_rule=beta_rule,
            multilabel_weighting=multilabel_weighting,
        )
        self._distribution = distribution
        self._fit_intercept = fit_intercept
        self._multilabel_weighting = multilabel_weighting
        self._data = read_data(
            X, y, distribution=distribution, label_mode=label_mode, multilabel_weighting=multilabel_weighting,
            solver="auto", sample_weight=sample_weight, offset=offset, keep_all=True,
        )  # fmt: skip
        n_classes, n_features = len(self._data.classes), self._data.matrix.shape[1]
        self._strengths = read_strengths(
            n_classes, n_features, beta=beta, C=C, beta_rule=beta_rule, l1_ratio=l1_ratio, l2=l2,
            beta_lower=beta_lower, beta_upper=beta_upper, min_weight=min_weight, max_weight=max_weight,
            positive=positive,
        )  # fmt: skip
        self._y = y.copy() if hasattr(y, "copy") else y
        self._sample_weight = sample_weight
        warn_constant(self._data)

    def _read_beta(self, beta):
        return read_beta(beta, len(self._data.classes), self._data.matrix.shape[1])

    def _label(self, data, y, sample_weight):
        return change_labels(
            data,
            y,
            distribution=self._distribution,
            multilabel_weighting=self._multilabel_weighting,
            sample_weight=sample_weight,
        )

    def _reduce(self, data, strengths, warm_start=None):
        return reduce_data(data, self._distribution, strengths, self._fit_intercept, warm_start)

    @property
    def classes(self) -> np.ndarray:
        return self._data.classes

    @property
    def shape(self) -> tuple[int, int]:
        return self._data.matrix.shape


class Solver:
    """Trains a model in steps.

    One thread at a time may use a solver; a second one gets a `RuntimeError`. Threads may share a `Problem`.

    Parameters
    ----------
    problem : Problem
        It is not changed, so several solvers can share it.
    solver : {"auto", "newton", "sequential"}
        What a step is: a round of sweeps and Newton steps over a working set, which "auto" chooses; or one update of
        one weight.
    tol : float
        Converged when the duality gap is at most tol times the objective with all weights zero.
    warm_start : Model, optional
        Start from the weights of a model with the same classes, features and distribution.

    Attributes
    ----------
    status : {"running", "converged", "stalled", "time_limit"}
        "stalled": no further decrease is possible in floating point, though the gap is above its target; or double
        precision cannot certify the optimum, see the page on reliability.
    objective, dual_gap, n_iter :
        Those of `result`.

    Examples
    --------
    >>> import numpy as np
    >>> import sl1max
    >>> X, y = [[1, 0], [1, 1], [0, 1], [0, 1]], ["spam", "spam", "ham", "ham"]
    >>> solver = sl1max.Solver(sl1max.Problem(X, y, beta=0.1))
    >>> while solver.step() == "running":
    ...     pass
    >>> solver.status, bool(solver.dual_gap < 1e-4)
    ('converged', True)
    >>> solver.reweight([1, 1, 1, 5])
    >>> solver.step(100)
    'converged'
    >>> solver.result()
    <sl1max.Model: conditional, 2 exclusive classes, 2 features, 1 weights, converged>
    """

    def __init__(
        self, problem: Problem, *, solver: Algorithm = "auto", tol: float = 1e-4, warm_start: Model | None = None
    ):
        check_options(solver=solver, tol=tol)
        if not isinstance(problem, Problem):
            raise ValueError(f"problem must be a sl1max.Problem, not {type(problem).__name__}")
        check_algorithm(problem._data.matrix, solver)
        check_identified(problem._strengths, problem._data, problem._distribution, solver)
        if warm_start is not None:
            check_warm_start(warm_start, problem._data, problem._distribution)
        self._lock = ExclusiveLock("this Solver is in use by another thread: give each thread a Solver of its own")
        self._problem = problem
        self._algorithm = ALGORITHMS[solver]
        self._tol = tol
        self._data = problem._data
        self._strengths = problem._strengths
        self._y, self._sample_weight = problem._y, problem._sample_weight
        self._solvers: dict[tuple, Any] = {}
        self._take_up(warm_start)

    def _take_up(self, warm_start=None):
        """Update the compiled solvers after a change of data or beta."""
        self._reduction = self._problem._reduce(self._data, self._strengths, warm_start)
        self._plans = {plan.blocks: plan for plan in self._reduction.plans(self._algorithm)}
        held = self._solvers
        self._solvers = {}
        for blocks, plan in self._plans.items():
            if blocks in held:
                self._reduction.change_solver(plan, held[blocks])
                self._solvers[blocks] = held[blocks]
            else:  # the first time, or an independent class that was constant
                self._solvers[blocks] = self._reduction.make_solver(plan, self._algorithm, self._tol, changes=True)
        self._ends = dict.fromkeys(self._solvers, "running")
        self.__dict__.pop("_model", None)

    def step(self, n: int = 1, *, max_time: float | None = None) -> str:
        """Take at most n steps in each problem of the model.

        Parameters
        ----------
        n : int
            0 updates objective and gap without a step.
        max_time : float, optional
            Limit on the time of all problems together, in seconds. If it is reached, the status is "time_limit", and
            further steps are possible.

        Returns
        -------
        str
            The status.
        """
        if not isinstance(n, numbers.Integral) or n < 0:
            raise ValueError(f"n={n!r} must be an integer >= 0")
        check_options(max_time=max_time)
        flag = np.zeros(1, np.int32)
        with self._lock, Deadline(max_time).watch(flag):
            self.__dict__.pop("_model", None)
            for blocks, solver in self._solvers.items():
                status = solver.run(n, flag)
                self._ends[blocks] = "time_limit" if status == "interrupted" else status
            return self.status

    @property
    def status(self) -> str:
        ends = set(self._ends.values()) - {"converged"}
        for unfinished in ("time_limit", "running"):
            if unfinished in ends:
                return unfinished
        return "stalled" if ends or (self._ends and self._reduction.imprecision) else "converged"

    def reweight(self, sample_weight: ArrayLike | None) -> None:
        """Change the weights of the examples; None: all one.

        Parameters
        ----------
        sample_weight : array of shape (n_samples,)
            Zero leaves an example out.
        """
        with self._lock:
            self._data = self._problem._label(self._data, self._y, sample_weight)
            self._sample_weight = sample_weight
            self._take_up()

    def set_target(self, y: Matrix, sample_weight: ArrayLike | None = None) -> None:
        """Change the labels of the examples, and the weights if given.

        Parameters
        ----------
        y : array of shape (n_samples,) or array or sparse matrix of shape (n_samples, n_classes)
            Labels among the problem's classes, or shares of the classes.
        sample_weight : array of shape (n_samples,), optional
        """
        with self._lock:
            weight = self._sample_weight if sample_weight is None else sample_weight
            self._data = self._problem._label(self._data, y, weight)
            self._y, self._sample_weight = y.copy() if hasattr(y, "copy") else y, weight
            self._take_up()

    def set_beta(self, beta: ArrayLike) -> None:
        """Change the strength of the regularisation; l2, beta_upper and limits stay as they are.

        Parameters
        ----------
        beta : float or array of shape (n_features,) or (n_classes, n_features)
        """
        with self._lock:
            self._strengths = replace(self._strengths, beta=self._problem._read_beta(beta))
            self._take_up()

    def set_offset(self, offset: ArrayLike | None) -> None:
        """Change the default distribution; None removes it.

        Parameters
        ----------
        offset : array of shape (n_samples,) or (n_samples, n_classes)
        """
        with self._lock:
            self._data = change_offset(self._data, offset, distribution=self._problem._distribution)
            self._take_up()

    def weights(self, label: Any) -> np.ndarray:
        """Return the current weights of a class, without a copy.

        Parameters
        ----------
        label : object
            A class. Of two exclusive classes of a conditional model the second, whose weights are relative to the
            first's; the weights of an independent class of one are relative to its non-class's.

        Returns
        -------
        ndarray of shape (n_features,)
            A read-only view of the solver's own array, which later steps change.
        """
        (found,) = np.nonzero(self._problem.classes == label)
        if not len(found):
            raise ValueError(f"label={label!r} is not a class of the problem")
        block = int(found[0]), IN_CLASS
        for blocks, solver in self._solvers.items():
            if block in blocks:
                view = solver.weights[blocks.index(block), :-1]
                view.flags.writeable = False
                return view
        raise ValueError(f"label={label!r} has no weights of its own: it is constant, or the others are relative to it")

    def result(self) -> Model:
        """Return the current model, converged or not.

        Returns
        -------
        Model
            A copy; later steps do not change it.
        """
        return self._model

    @cached_property
    def _model(self):
        with self._lock:
            for solver in self._solvers.values():
                solver.run(0)
            solutions = [
                self._reduction.solution(self._plans[blocks], solver, "running" if end == "time_limit" else end)
                for (blocks, solver), end in zip(self._solvers.items(), self._ends.values(), strict=True)
            ]
        settings = {
            "beta": float(self._strengths.beta) if self._strengths.beta.ndim == 0 else None,
            "beta_rule": self._strengths.rule,
            "penalty": self._strengths.remembered,
            "solver": self._algorithm,
            "tol": self._tol,
        }
        return self._reduction.join(solutions, settings)[0]

    @property
    def objective(self) -> float | np.ndarray:
        return self._model.objective

    @property
    def dual_gap(self) -> float | np.ndarray:
        return self._model.dual_gap

    @property
    def n_iter(self) -> int | np.ndarray:
        return self._model.n_iter
