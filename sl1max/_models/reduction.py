"""The five models: problems of a training set, and a model of their solutions.

The five models differ in which class blocks share a problem, and in how these are normalised:

========================  ==========================================================================
conditional, independent  one per class: the difference of the class's and its non-class's weights
conditional, exclusive    two classes: the same, the second against the first; else one problem, for which `costs`
                          chooses a solver
class-conditional         one per class
joint with intercept      separates: one class-conditional problem per block, with beta_cj / p~(c)
joint without intercept   exclusive: one problem; independent: one per class, with its non-class
========================  ==========================================================================

The sequential solver follows the paper and gives the non-class, or the first of two classes, its own weights.
"""

from __future__ import annotations

import itertools
import math
from dataclasses import dataclass, replace
from functools import cached_property, partial

import numpy as np
from scipy import sparse

from sl1max._core._options import DEFAULT_OPTIONS
from sl1max._core._solver import Problem, Solver
from sl1max._data.inputs import Data, take_rows
from sl1max._data.moments import IN_CLASS, NON_CLASS, Moments, weigh
from sl1max._data.penalties import Penalties
from sl1max._data.precision import find_imprecision
from sl1max._models import costs
from sl1max._solvers.grouped_rows import MOST_EXAMPLES, MergedSolver
from sl1max._solvers.many_classes import ByClassSolver, ClassTasks
from sl1max._solvers.row_space import make_row_space_solver
from sl1max._utils.progress import FitProgress
from sl1max.model._model import Model

# Solving exclusive classes one by one starts from a model of one in COARSER examples, if these are at least LEAST_ROWS.
# It is trained as long as a pass decreases the objective below the share COARSE_FALL.
COARSER = 8
LEAST_ROWS = 10_000
COARSE_FALL = 0.98
COARSE_TOL = 1e-2


@dataclass(frozen=True, eq=False)
class Plan:
    """One problem, before its arrays are made.

    Attributes
    ----------
    group : int
        Problems of one group share one objective: a class, or 0 when all classes do.
    blocks : tuple of (c, side)
    pooled : bool
        One normaliser over the examples, not one per example.
    rival : (c, side) or None
        The reference class block, whose scores are subtracted and which has no weights.
    own_mass : bool
        Means are over the examples of the block, not over all examples.
    """

    group: int
    blocks: tuple
    pooled: bool
    rival: tuple | None = None
    own_mass: bool = False


@dataclass(frozen=True, eq=False)
class Solution:
    """Result of a solver; ``rows`` has (block, columns, weights), ``intercept`` a value per block."""

    plan: Plan
    rows: list
    intercept: np.ndarray
    log_z: float
    objective: float
    objective_zero: float
    dual_gap: float
    n_iter: int
    status: str

    def is_final(self, max_iter) -> bool:
        """Whether a second call need not continue it."""
        return self.status == "converged" or (self.status == "running" and self.n_iter >= max_iter)


@dataclass(frozen=True, eq=False)
class Reduction:
    """A training set with the model to be fitted to it."""

    data: Data
    moments: Moments
    penalties: Penalties
    distribution: str
    fit_intercept: bool
    warm_start: Model | None

    def times(self, factor, warm_start: Model | None = None) -> Reduction:
        """The same training set with all penalties multiplied by a number, and another model to start from."""
        strengths = self.penalties.strengths.times(factor)
        return replace(self, penalties=self.penalties.with_strengths(strengths), warm_start=warm_start)

    @cached_property
    def imprecision(self) -> str | None:
        """Why double precision cannot certify a model, None if it can."""
        data, columns = self.data, self.data.columns
        return find_imprecision(
            data.matrix, columns.extent[:-1], columns.reach[:-1], self.penalties.least,
            smallest=data.smallest, mass=self.moments.cells.data, offset=data.offset,
        )  # fmt: skip

    @property
    def separates(self):
        """Whether the joint model separates into one class-conditional problem per block."""
        return self.distribution == "joint" and self.fit_intercept

    @property
    def memory_advice(self):
        """Advice for the case that memory is insufficient for a problem."""
        if self.data.exclusive and self.distribution != "class-conditional" and not self.separates:
            return 'train on fewer examples, features or classes, or with label_mode="independent", one class at a time'
        return "lower n_jobs, raise beta, or train on fewer examples"

    # Data to problems

    def plans(self, algorithm):
        """List the problems in class order."""
        classes = [int(c) for c in np.flatnonzero(self.data.constant == 0)]
        if self.distribution == "class-conditional":
            return [Plan(c, ((c, IN_CLASS),), pooled=True, own_mass=True) for c in classes]
        if self.data.exclusive:
            together = [tuple((c, IN_CLASS) for c in classes)]
        else:
            together = [((c, IN_CLASS), (c, NON_CLASS)) for c in classes]
        groups = [0] if self.data.exclusive else classes
        if self.separates:
            return [
                Plan(group, (block,), pooled=True, own_mass=True)
                for group, blocks in zip(groups, together, strict=True)
                for block in blocks
            ]
        pooled = self.distribution == "joint"
        if pooled or algorithm == "sequential" or len(together[0] if together else ()) != 2:
            return [Plan(group, blocks, pooled) for group, blocks in zip(groups, together, strict=True)]
        # Of two exclusive classes, the second is modelled against the first, like a class against its non-class.
        pairs = [blocks[::-1] if self.data.exclusive else blocks for blocks in together]
        return [Plan(group, (block,), pooled, rival) for group, (block, rival) in zip(groups, pairs, strict=True)]

    def class_label(self, plan: Plan):
        """Return the class of a problem; None if the classes are fitted together."""
        together = self.data.exclusive and not plan.own_mass
        return None if together else self.data.classes[plan.blocks[0][0]]

    def zero_beta(self, plan: Plan) -> float:
        """Compute the smallest beta at which all weights of a problem are zero; for penalties of beta = 1."""
        name = self.solver_name(plan)
        if name != costs.GRAM:
            make = self._row_space_solver if name == costs.ROWS else self._by_class_solver
            return make(plan, tol=0.0).largest_ratio()
        penalty, emp_mean = self._penalty(plan), self._emp_mean(plan)
        problem = self._problem(plan, emp_mean, penalty)
        distance = Solver(problem, algorithm="newton").expectations() - emp_mean
        unit = penalty["beta"]
        if "beta_upper" in penalty:
            # Below the mean that is asked for a positive weight would help, if one is allowed; above, a negative one.
            unit = np.where(distance < 0, unit, penalty["beta_upper"])
            helps = np.where(distance < 0, penalty["high"] > 0, penalty["low"] < 0)
            distance = np.where(helps, distance, 0.0)
        distance = np.abs(distance)
        # A penalty that underflowed to 0 is that of a column of subnormal values: no beta does anything about it.
        return float(np.divide(distance, unit, out=np.zeros_like(distance), where=unit > 0).max())

    def effort(self, plan: Plan) -> float:
        """Estimate the relative time of a problem: it grows with the smaller of a block and the other examples."""
        own = self.moments.block_mass(*plan.blocks[0])
        return float(np.sqrt(max(min(own, self.moments.mass - own), 1.0)))

    def make_solver(
        self, plan: Plan, algorithm, tol, begun: Solution | None = None, *, changes=False, n_threads=1
    ) -> Solver:
        """Make the solver of one problem, with the weights of an earlier solution or model as start.

        If the problem changes later, it is a solver of all rows, for `change_solver`.
        """
        name = costs.GRAM if changes or algorithm != "newton" else self.solver_name(plan)
        if name != costs.GRAM:
            start = self._start(plan) if begun is None else self._start_again(plan, begun)
            if name == costs.ROWS:
                return self._row_space_solver(plan, tol, start)
            return self._by_class_solver(plan, tol, start, n_threads)
        penalty, emp_mean = self._penalty(plan), self._emp_mean(plan)
        start = self._start(plan) if begun is None else self._start_again(plan, begun)

        def whole(start):
            problem = self._problem(plan, emp_mean, penalty)
            return Solver(problem, algorithm=algorithm, tol=tol, warm_start=start)

        if changes or start is not None or algorithm != "newton" or not self._can_merge(plan, penalty):
            return whole(start)
        return MergedSolver(
            self.data.columns, emp_mean[0], penalty["beta"][0], *self._class_target(plan, plan.blocks[0]),
            self._common_base(plan), pooled=plan.pooled, intercept=self.fit_intercept and not plan.pooled, tol=tol,
            whole=whole,
        )  # fmt: skip

    def solver_name(self, plan) -> str:
        """Name the solver of a problem; see `costs.choose_solver`."""
        columns, n_rows = self.data.columns, len(self.data.mass)
        penalties = self.penalties
        is_plain = not (penalties.strengths.is_general or penalties.some_free or penalties.is_restricted)
        if plan.pooled or len(plan.blocks) < 3 or not is_plain:
            return costs.GRAM
        if not (self.penalties.least[columns.extent[:-1] > 0] > 0).all():  # underflow
            return costs.GRAM
        can_stream = (
            not columns.dense and columns.nnz > 0 and self.data.offset is None and bool((self.data.mass > 0).all())
        )
        return costs.choose_solver(
            len(plan.blocks), n_rows, columns.nnz, dense=columns.dense, memory=DEFAULT_OPTIONS.many_classes_memory,
            can_stream=can_stream,
        )  # fmt: skip

    def describe_solver(self, algorithm) -> str:
        """Describe the solver of the problems, for a line of progress."""
        plans = self.plans(algorithm)
        if algorithm != "newton" or not plans:
            return algorithm
        return costs.DESCRIPTIONS[self.solver_name(plans[0])]

    def _row_space_solver(self, plan, tol, start=None, options=None):
        blocks = plan.blocks
        return make_row_space_solver(
            self.data.columns, self._base(plan), len(blocks),
            examples=lambda b: self._class_target(plan, blocks[b])[:2],
            features=lambda b: self.moments.features(blocks[b][0]),
            emp_mean=lambda b: self.moments.sums.block(*blocks[b]) / self.moments.mass,
            beta=lambda b: self.penalties.block(*blocks[b]),
            common_beta=self.penalties.of_others(),
            intercept=self.fit_intercept, offset=self._offset(plan), tol=tol, warm_start=start, options=options,
        )  # fmt: skip

    def _by_class_solver(self, plan, tol, start=None, n_threads=1):
        blocks = plan.blocks
        prior = np.array([self.moments.block_prior(*block) for block in blocks])
        tasks = ClassTasks(
            prior=prior,
            emp_mean=lambda b, cols=None: self.moments.sums.block(*blocks[b], cols) / self.moments.mass,
            beta=lambda b, cols=None: self.penalties.block(*blocks[b], cols),
            examples=lambda b: self._class_target(plan, blocks[b])[:2],
        )
        return ByClassSolver(
            self.data.columns, tasks, self._base(plan), intercept=self.fit_intercept, tol=tol,
            warm_start=start, n_threads=n_threads,
            begin=partial(self._start_coarsely, plan, n_threads) if start is None and self._is_large else None,
        )  # fmt: skip

    def _start_coarsely(self, plan, n_threads, stop):
        """Compute start weights by briefly training a model of some examples; None if interrupted.

        This finds most of the decrease of the objective at a small part of the cost.
        """
        n_rows = len(self.data.mass)
        rows = np.sort(np.random.default_rng(0).permutation(n_rows)[: n_rows // COARSER])
        data = take_rows(self.data, rows)
        moments = Moments(data)
        coarse = replace(self, data=data, moments=moments, penalties=self.penalties.on(data, moments), warm_start=None)
        (part,) = coarse.plans("newton")
        solver = coarse._by_class_solver(part, COARSE_TOL, n_threads=n_threads)
        before, status = np.inf, "running"
        while status == "running" and solver.objective < COARSE_FALL * before:
            before = solver.objective
            status = solver.run(1, stop)
        if status == "interrupted":
            return None
        number = {block: b for b, block in enumerate(plan.blocks)}
        number = np.array([number[block] for block in part.blocks])
        blocks, cols, values = solver.coefficients()
        intercept = np.log([self.moments.block_prior(*block) for block in plan.blocks])
        intercept[number] = solver.intercept()
        return number[blocks].astype(np.int32), cols, values, intercept

    def _can_merge(self, plan, penalty):
        """Whether many rows may be identical in the working set."""
        _, *more = plan.blocks
        return (
            self.data.columns.indexed_by_rows
            and not more
            and (plan.pooled or (plan.rival is not None and len(self._held(plan.blocks[0][0])[0]) <= MOST_EXAMPLES))
            and self.data.offset is None
            and self._has_common_mass
            and len(penalty) == 1
            and not (penalty["beta"] == 0).any()
        )

    @property
    def _is_large(self):
        return len(self.data.mass) >= COARSER * LEAST_ROWS

    @cached_property
    def _has_common_mass(self):
        return bool((self.data.mass == self.data.mass[0]).all())

    def _common_base(self, plan):
        """`_base` of an example if it is the same for all."""
        return float(self.data.mass[0] / (1 if plan.pooled else self.moments.mass))

    def change_solver(self, plan: Plan, solver: Solver):
        """Replace the problem of a solver made for the same plan of another training set on these columns."""
        solver.change(self._problem(plan, self._emp_mean(plan), self._penalty(plan)))

    def solution(self, plan: Plan, solver: Solver, status, begun: Solution | None = None) -> Solution | None:
        """Read the solution from a solver that started from ``begun``.

        If a solver was stopped before its first iteration, or while its groups of rows change, the result is ``begun``.
        """
        stopped = status in ("interrupted", "time_limit")
        if stopped and (solver.n_iter == 0 or isinstance(solver, MergedSolver)):
            return begun
        if stopped and plan.pooled:
            solver.expectations()  # makes Z that of the weights
        if not math.isfinite(solver.objective):
            raise ArithmeticError("the objective overflows: scale the columns of X, or raise beta")
        share = self._offset_share(plan)
        return Solution(
            plan,
            self._split(plan, *solver.coefficients()),
            solver.intercept(),
            solver.log_z + share,
            solver.objective + share,
            solver.objective_zero + share,
            solver.dual_gap,
            solver.n_iter + (0 if begun is None else begun.n_iter),
            status,
        )

    def first_solution(self, plan: Plan, algorithm, tol, begun: Solution | None = None) -> Solution:
        """Solution of a problem without time for its first iteration; its status is "time_limit"."""
        solver = self.make_solver(plan, algorithm, tol, begun, changes=len(plan.blocks) == 1)
        solver.run(0)
        return replace(self.solution(plan, solver, "running", begun), status="time_limit")

    def last_progress(self, solution: Solution, tol) -> FitProgress:
        """Last progress report of a problem that was solved by another process."""
        offset = self._offset_share(solution.plan)
        return FitProgress(
            self.class_label(solution.plan),
            solution.n_iter,
            solution.objective - offset,
            solution.dual_gap,
            tol * abs(solution.objective_zero - offset),
            sum(len(columns) for _, columns, _ in solution.rows),
        )

    def _problem(self, plan, emp_mean, penalty):
        return Problem(
            self.data.columns,
            emp_mean,
            target=self._targets(plan),
            mass=self._base(plan),
            **penalty,
            pooled=plan.pooled,
            reference=plan.rival is not None,
            intercept=self.fit_intercept and not plan.pooled,
            offset=self._offset(plan),
        )

    def _targets(self, plan):
        return np.stack([self._target(plan, block) for block in plan.blocks])

    def cell_targets(self, plan: Plan) -> tuple[np.ndarray, np.ndarray]:
        """The empirical distribution of a problem's blocks (n_blocks, n_samples), and what each cell counts.

        Their product is the mass of every cell: that of `Solver.certificate_flow`.
        """
        return self._targets(plan), np.ones(len(self.data.mass)) if plan.pooled else self._base(plan)

    def block_cells(self, block: tuple[int, int]) -> np.ndarray:
        """Weight of every example in a block (n_samples,)."""
        rows, share = self._held(block[0])
        cells = np.zeros(len(self.data.mass))
        cells[rows] = share
        return (cells if block[1] == IN_CLASS else 1 - cells) * self.data.mass

    def _base(self, plan):
        """Mass of the examples: the base measure of one normaliser, or the shares of the loss."""
        return self.data.mass if plan.pooled else self.data.mass / self.moments.mass

    def _emp_mean(self, plan):
        """Observed mean p~ of every feature (n_blocks, n_features)."""
        return np.stack([self.moments.sums.block(*block) / self._mass(plan, block) for block in plan.blocks])

    def _mass(self, plan, block):
        return self.moments.block_mass(*block) if plan.own_mass else self.moments.mass

    def _penalty(self, plan):
        """Penalties as the core takes them, arrays (n_blocks, n_features) by name; only beta if that is all."""
        if not self.penalties.strengths.is_general:
            return {"beta": self._beta(plan)}
        blocks = [self.penalties.general(*block) for block in plan.blocks]
        if plan.rival is not None:
            rival = self.penalties.general(*plan.rival)
            blocks = [
                own._replace(lower=np.minimum(own.lower, rival.lower), upper=np.minimum(own.upper, rival.upper))
                for own in blocks
            ]
        blocks = [own if side == IN_CLASS else own.mirrored for own, (_, side) in zip(blocks, plan.blocks, strict=True)]
        names = "beta", "beta_upper", "l2", "low", "high"
        penalty = {name: np.stack(arrays) for name, arrays in zip(names, zip(*blocks, strict=True), strict=True)}
        if self.separates:
            with np.errstate(over="ignore"):
                for name in ("beta", "beta_upper", "l2"):
                    penalty[name] /= self.moments.block_prior(*plan.blocks[0])
        return penalty

    def _beta(self, plan):
        """Penalties (n_blocks, n_features); for a difference of two weights the smaller of the two."""
        beta = np.stack([self.penalties.block(*block) for block in plan.blocks])
        if plan.rival is not None:
            np.minimum(beta, self.penalties.block(*plan.rival), out=beta)
        if self.separates:
            with np.errstate(over="ignore"):  # inf leaves a feature out, as a penalty so large would
                beta /= self.moments.block_prior(*plan.blocks[0])
        return beta

    def _target(self, plan, block):
        """Empirical distribution of a block over its examples (pooled), or its share of each example."""
        rows, share = self._held(block[0])
        target = np.zeros(len(self.data.mass))
        target[rows] = share
        if block[1] == NON_CLASS:
            target = 1 - target
        return target * self.data.mass / self._mass(plan, block) if plan.pooled else target

    def _held(self, c):
        """Return the examples of class c, and its share of each."""
        labels = self.data.labels
        held = slice(labels.indptr[c], labels.indptr[c + 1])
        return labels.indices[held], labels.data[held]

    def _class_target(self, plan, block):
        """Like `_target`, for equal masses: the examples of the class, their values, and the value of all others."""
        rows, share = self._held(block[0])
        unit = self.data.mass[0] / self._mass(plan, block) if plan.pooled else 1.0
        if block[1] == NON_CLASS:
            return rows.astype(np.int32), (1 - share) * unit, unit
        return rows.astype(np.int32), share * unit, 0.0

    def _offset(self, plan):
        """Offsets (n_blocks, n_samples) or None; those of independent classes apply to the class only."""
        if self.data.offset is None:
            return None
        offset = self._stack_offsets(plan)
        return offset - (self._level(plan) if plan.rival is None else self._block_offset(plan.rival))

    def _stack_offsets(self, plan):
        return np.stack([self._block_offset(block) for block in plan.blocks])

    def _level(self, plan):
        """Level of the offsets for every normaliser: log of the mean of their exponentials.

        With this level subtracted, the objective at zero weights, and the target of the gap, are those without an
        offset, for any scale of q0. With a q0 that sums to one the objective would be zero.
        """
        offset = self._stack_offsets(plan)
        if plan.pooled:
            base = self._base(plan)
            offset = offset + np.log(base, where=base > 0, out=np.full(len(base), -np.inf))
        top = offset.max() if plan.pooled else offset.max(axis=0)
        if plan.pooled:
            return top + np.log(np.exp(offset - top).sum(axis=1).mean() / self.moments.mass)
        return top + np.log(np.exp(offset - top).mean(axis=0))

    def _offset_share(self, plan):
        """Part of the objective, and of ln Z of a pooled problem, that was subtracted from the offsets."""
        if self.data.offset is None:
            return 0.0
        if plan.rival is not None:
            return weigh(self._block_offset(plan.rival), self.data.mass) / self.moments.mass
        return self._level(plan) if plan.pooled else weigh(self._level(plan), self.data.mass) / self.moments.mass

    def _block_offset(self, block):
        c, side = block
        return self.data.offset[:, c] if side == IN_CLASS else np.zeros(len(self.data.mass))

    def _start(self, plan):
        """Weights and intercepts of the earlier model, in the solver's format, block by block."""
        if self.warm_start is None:
            return None
        lam = sparse.vstack([self._start_row(block) for block in plan.blocks], format="csr")
        intercept = np.array([self._start_intercept(block) for block in plan.blocks])
        if plan.rival is not None:
            lam = lam - self._start_row(plan.rival)
            intercept -= self._start_intercept(plan.rival)
        lam.eliminate_zeros()
        if plan.pooled or not self.fit_intercept:
            intercept[:] = 0
        blocks = np.repeat(np.arange(len(plan.blocks), dtype=np.int32), np.diff(lam.indptr))
        return blocks, lam.indices.astype(np.int32), lam.data, intercept

    def _start_again(self, plan, begun):
        """Weights and intercepts of an earlier solution, in the solver's format."""
        cols = np.concatenate([cols for _, cols, _ in begun.rows])
        values = np.concatenate([-values if block == plan.rival else values for block, _, values in begun.rows])
        number = {block: b for b, block in enumerate(plan.blocks)} | {plan.rival: 0}
        blocks = np.repeat([number[block] for block, _, _ in begun.rows], [len(cols) for _, cols, _ in begun.rows])
        return blocks.astype(np.int32), cols, values, begun.intercept

    def _start_row(self, block):
        c, side = block
        return self.warm_start._part(side)[[c]]

    def _start_intercept(self, block):
        c, side = block
        value = self.warm_start.intercept[c]
        return value if side == IN_CLASS and np.isfinite(value) else 0.0

    def _split(self, plan, blocks, cols, values):
        """(block, columns, weights) of a solution; a difference belongs to the side with the smaller penalty."""
        order = np.lexsort((cols, blocks))
        blocks, cols, values = blocks[order], cols[order], values[order]
        if plan.rival is None:
            edges = np.searchsorted(blocks, np.arange(len(plan.blocks) + 1))
            parts = [slice(*edge) for edge in itertools.pairwise(edges)]
            return [(block, cols[part], values[part]) for block, part in zip(plan.blocks, parts, strict=True)]
        (block,) = plan.blocks
        if self.penalties.strengths.is_general:  # limits and l2 are those of the class
            return [(block, cols, values), (plan.rival, cols[:0], values[:0])]
        here = self.penalties.block(*block, cols) <= self.penalties.block(*plan.rival, cols)
        return [(block, cols[here], values[here]), (plan.rival, cols[~here], -values[~here])]

    # Solutions to model

    @property
    def _shape(self):
        """Shape of the objective: () or (n_classes,)."""
        shared = self.data.exclusive and self.distribution != "class-conditional"
        return () if shared else (len(self.data.classes),)

    def join(self, solutions, settings, missing=()) -> tuple[Model, list]:
        """Join all solutions to one model; also return the status of each objective.

        Classes with a plan in ``missing`` were not solved; they have no weights and are never predicted.
        """
        absent = {c for plan in missing for c, _ in plan.blocks}
        solutions = [solution for solution in solutions if absent.isdisjoint(c for c, _ in solution.plan.blocks)]
        groups = [[] for _ in range(*self._shape or (1,))]
        for solution in solutions:
            groups[solution.plan.group].append(solution)
        reports = [self._report(group, settings["tol"]) for group in groups]
        for group in {plan.group for plan in missing}:
            reports[group] = UNFINISHED | {"n_iter": reports[group]["n_iter"]}
        parts = self._stack_rows(solutions, IN_CLASS), self._stack_rows(solutions, NON_CLASS)
        exclusive = self.data.exclusive
        model = Model(
            distribution=self.distribution,
            label_mode="exclusive" if exclusive else "independent",
            trained_on_indicator=self.data.indicator,
            sparse_output=self.data.sparse_output,
            classes=self.data.classes,
            feature_names=self.data.feature_names,
            fit_intercept=self.fit_intercept,
            weights=parts[0] if exclusive else (parts[0] - parts[1]).tocsr(),
            _parts=None if exclusive else parts,
            intercept=self._join_intercepts(solutions, list(absent)),
            log_z=self._join_log_z(groups, list(absent)),
            class_prior=self.moments.class_prior,
            total_weight=float(self.moments.mass),
            **{name: self._shaped([report[name] for report in reports]) for name in REPORTED},
            **settings,
        )
        return model, [report["status"] for report in reports]

    def _report(self, group, tol):
        """Sum objective and gap of the problems that make up one objective.

        A joint model that separates has the objective sum_c p~(c) L_c + H(p~(c)).
        """
        if not group:  # a constant class: uniform over the examples, or certain
            objective = np.log(self.moments.mass) if self.distribution == "joint" else 0.0
            report = dict.fromkeys(("objective", "objective_zero"), objective)
            return report | {"dual_gap": 0.0, "n_iter": 0, "converged": True, "status": "converged"}
        share, entropy = np.ones(len(group)), 0.0
        if self.separates:
            share = np.array([self.moments.block_prior(*solution.plan.blocks[0]) for solution in group])
            entropy = -(share @ np.log(share))
        report = {
            name: float(share @ [getattr(solution, name) for solution in group])
            for name in ("objective", "objective_zero", "dual_gap")
        }
        report["objective"] += entropy
        report["objective_zero"] += entropy
        report["n_iter"] = sum(solution.n_iter for solution in group)
        open_ends = [solution.status for solution in group if solution.status != "converged"]
        certified = not open_ends or report["dual_gap"] <= tol * abs(report["objective_zero"])
        report["converged"] = certified and self.imprecision is None
        report["status"] = open_ends[0] if not certified else "converged" if report["converged"] else "imprecise"
        return report

    def _shaped(self, values):
        return np.array(values) if self._shape else values[0]

    def _stack_rows(self, solutions, side):
        """Weights of one side as a csr_array, a row per class."""
        rows = [(np.empty(0, np.int32), np.empty(0))] * len(self.data.classes)
        for solution in solutions:
            for (c, row_side), cols, values in solution.rows:
                if row_side == side:
                    rows[c] = cols, values
        cols, values = zip(*rows, strict=True)
        indptr = np.concatenate([[0], np.cumsum([len(row) for row in cols])])
        shape = len(self.data.classes), self.data.matrix.shape[1]
        return sparse.csr_array((np.concatenate(values), np.concatenate(cols), indptr), shape=shape)

    def _join_intercepts(self, solutions, absent):
        """Constants of the decision function: of the class, minus that of the non-class, if any."""
        intercept = np.zeros(len(self.data.classes))
        intercept[self.data.constant > 0] = np.inf
        intercept[self.data.constant < 0] = -np.inf
        intercept[absent] = -np.inf
        for solution in solutions:
            for (c, side), value in zip(solution.plan.blocks, solution.intercept, strict=True):
                if solution.plan.own_mass:
                    value = np.log(self.moments.block_prior(c, side)) - solution.log_z
                intercept[c] += value if side == IN_CLASS else -value
        if self.distribution == "conditional" and self.data.exclusive:
            intercept -= intercept.mean()  # softmax determines them up to one constant
        return intercept

    def _join_log_z(self, groups, absent):
        if self.distribution == "conditional":
            return None
        if self.separates:  # the intercepts make it 1
            return self._shaped([0.0] * len(groups))
        log_z = self._shaped([group[0].log_z if group else np.log(self.moments.mass) for group in groups])
        if absent:
            log_z[absent] = np.nan
        return log_z


REPORTED = ("objective", "objective_zero", "dual_gap", "n_iter", "converged")
UNFINISHED = {
    "objective": np.nan, "objective_zero": np.nan, "dual_gap": np.inf, "converged": False, "status": "unfinished",
}  # fmt: skip
