"""Thousands of exclusive classes: one class at a time, with one shared normaliser Z per example.

    minimise  sum_i u_i ln Z_i  -  sum_c (lam_c . p~_c + b_c p~_c)  +  sum_cj beta_cj |lam_cj|,
    Z_i = sum_c exp(b_c + lam_c . x_i)

Only ln Z, one number per example, and the sparse weights are stored; no array has the size classes x examples or
classes x features. A pass computes the gradients of every class, several classes at a time (`sl1max._core._panel`), and
the duality gap. Then it decreases the objective in two ways.

Class subproblems (`Visit`): with the weights of the other classes fixed, class c is a problem of one block with a
reference class and offsets -ln(Z_i - exp a_ic). It is solved for its weights and violators on the rows that contain one
of these features. All other rows have the score b_c and are represented by one row. For a class that touches few rows,
the change of e^b, the same for all other Z, is stored as one number until these Z are needed.

Newton steps: solving one class after the other converges slowly for classes that compete for the same rows (on 1/32 of
SuperTags 0.9 of the violation is left after a pass). Training therefore starts with class subproblems and continues
with Newton steps in the weights and violators of all classes (`sl1max._solvers.coupled_quadratic`). Each is followed by
the subproblems of classes that are still far from their optimum, and by steps in all intercepts, since the sums of the
classes contribute most to the gap. Newton steps alone are not sufficient: after subproblems without frequent features,
they reached an objective of 1.37 on 1/8 of SuperTags after eight passes, with an optimum of 1.17.
"""

from __future__ import annotations

import itertools
import threading
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from sl1max._core._panel import PANEL_WIDTH, Panel
from sl1max._core._solver import Columns, Problem, Solver
from sl1max._data.moments import weigh
from sl1max._solvers.coupled_quadratic import Quadratic
from sl1max._utils.threads import map_threads

LIGHT_SHARE = 0.1  # share of the rows; a class whose features touch fewer rows is computed only there
NOTABLE = 1e-3  # least probability of a pair in the coupled model; a light class has less in all rows not its own
FAR = 300.0  # a log of Z beyond which no class is light, since exp would overflow
LEAST_ROOM = 100  # violators added in a subproblem, if there are as many; plus ten times the root of its examples
FIRST_ROWS = 30_000  # rows that the violators of a first subproblem may touch; four times as many in the next pass
ROWS_PER_EXAMPLE = 20  # or this many per example of the class
MAX_ROUNDS = 10  # rounds of the solver in one subproblem
EARLY = 3.0  # violations are capped at this value
BATCH = 2  # classes solved at the same time, if there are threads
SIDE_BY_SIDE = 4  # panels of classes processed at the same time
FIRST_PASSES = 1  # passes with class subproblems only
FAR_OFF = 0.3  # violation from which on a class is solved again after a step
MOST_VISITS = 0.1  # largest share of the classes that are solved again, the worst ones
WORST = 0.03  # share that is solved again anyway, unless the violation is small
PRECISION = 0.05  # accuracy of a step, relative to the violation
HALVINGS = 5  # step lengths that are tried
BALANCES = 2  # steps in all intercepts
NEAR = 0.5  # log of target share over current share up to which Newton's step is used
WILD = 3.0  # largest factor by which a step may exceed the target or previous share of a class
TINY = np.finfo(float).tiny
MOST = 1 - 1e-15  # largest probability, below one
NONE = np.empty(0, np.int32)


@dataclass(frozen=True, eq=False)
class ClassTasks:
    """Data of each class, computed on request.

    Attributes
    ----------
    prior : ndarray of shape (n_classes,)
        p~(c).
    emp_mean, beta : callable
        Arrays (n_features,) of a class, or of some columns. beta is positive, or infinite for features that are left
        out.
    examples : callable
        Examples of a class, ascending, and its share of each.
    """

    prior: np.ndarray
    emp_mean: Callable
    beta: Callable
    examples: Callable


@dataclass(frozen=True, eq=False)
class Price:
    """Results of a class for the certificate and the next pass.

    Attributes
    ----------
    share, missing : float
        q(c), and p~(c) - q(c).
    ratio : float
        The largest |p[f] - p~[f]| / beta.
    violation : float
        Largest violation of the optimality conditions, relative to beta.
    penalty, slope : float
        sum beta |lam| and lam . (p[f] - p~[f]).
    least : float
        Lower bound on the log of the smallest probability of the class.
    work : ndarray
        Features with a weight and the largest violators; ascending.
    weights, beta, gradient, mean : ndarray
        lam, beta, q[f] - p~[f] and q[f] of these features.
    """

    share: float
    missing: float
    ratio: float
    violation: float
    penalty: float
    slope: float
    least: float
    work: np.ndarray
    weights: np.ndarray
    beta: np.ndarray
    gradient: np.ndarray
    mean: np.ndarray


class ByClassSolver:
    """Solver of a conditional model of many exclusive classes, with the interface of `_core.Solver`.

    Parameters
    ----------
    columns : Columns
        Sparse columns; an index of rows is made if there is none.
    tasks : ClassTasks
    mass : ndarray of shape (n_samples,)
        u_i, summing to one.
    intercept : bool
    tol : float
        Converged when dual_gap <= tol * objective_zero.
    warm_start : tuple (blocks, cols, values, intercept) or None
        Blocks ascending.
    n_threads : int
        The result does not depend on it.
    begin : callable, optional
        Called in the first run with the stop flag; returns a warm start, or None if interrupted.
    """

    def __init__(
        self, columns: Columns, tasks: ClassTasks, mass, *, intercept, tol, warm_start=None, n_threads=1,
        begin=None,
    ):  # fmt: skip
        columns.index_rows()
        prior = tasks.prior
        n_rows, n_classes = columns.n_rows, len(prior)
        self.columns = columns
        self.tasks = tasks
        self.mass = mass
        self.has_intercept = intercept
        self.weights = [(NONE, np.empty(0))] * n_classes
        self.b = np.log(prior) if intercept else np.zeros(n_classes)
        self.log_zs = np.full(n_rows, 0.0 if intercept else np.log(n_classes))
        self.pending = 0.0
        self._reciprocals = None
        self._all_rows = np.arange(n_rows, dtype=np.int32)
        self._sizes = columns.sizes
        self._panels = batches(np.argsort(-prior, kind="stable"), PANEL_WIDTH)
        self._n_threads = n_threads
        self._own = threading.local()  # an array of zeros for the scores
        self._begin = begin
        self._prices = None
        self._cells = None  # of all classes, as `Quadratic` takes them
        self._share = None  # of each class, when Z was last computed from the weights
        self._was = None  # what it was at the last prices
        self._wild = None  # whether the last tried step exceeded the limit for a class
        self.objective_zero = float(-(prior @ np.log(prior)) if intercept else np.log(n_classes))
        self.objective = self.objective_zero
        self.dual_gap = np.inf
        self._goal = np.nan  # the violation to come down to
        self._least = -np.inf  # what the objective is at least
        self.log_z = np.nan
        self.tol = tol
        self.n_iter = 0
        self.counters = {"column_walks": 0, "updates": 0, "nonzeros": 0}
        if warm_start is not None:
            self._load(*warm_start)

    def _load(self, blocks, cols, values, intercept):
        edges = np.searchsorted(blocks, np.arange(len(self.b) + 1))
        for c, ends in enumerate(itertools.pairwise(edges)):
            held = slice(*ends)
            held = held.start + np.flatnonzero(np.isfinite(self.tasks.beta(c, cols[held])))
            held = held[np.argsort(cols[held])]
            self.weights[c] = cols[held], values[held]
        if self.has_intercept:
            self.b = np.array(intercept, float)
        self._refresh(None)

    # Interface of a solver

    def run(self, n, stop=None) -> str:
        """Run at most n passes; return "converged", "running", "stalled" or "interrupted"."""
        if self._begin is not None and not self._start(stop):
            return "interrupted"
        for k in range(n + 1):
            if self._prices is None and not self._price_all(stop):
                return "interrupted"
            if self.dual_gap <= self.tol * self.objective_zero:
                return "converged"
            if k == n:
                return "running"
            before = self.objective, self.dual_gap
            if not self._improve(stop) or not self._price_all(stop):
                return "interrupted"  # objective and gap are those of the last prices, and have not become worse
            if self.objective >= before[0] and self.dual_gap >= before[1] > self.tol * self.objective_zero:
                return "stalled"
        return "running"

    def _start(self, stop):
        """Set the start weights and approximate class sums; False if interrupted."""
        found = self._begin(stop)
        if found is None:
            return False
        self._begin = None
        self._load(*found)
        if self.has_intercept:
            self._refresh(None)
            self.b += np.log(self.tasks.prior / self._share)
        return self._refresh(None)

    def largest_ratio(self):
        """The largest |q[f] - p~[f]| / beta."""
        self._price_all(None)
        return max(price.ratio for price in self._prices)

    def coefficients(self):
        """Nonzero weights as (blocks, cols, values)."""
        sizes = [len(cols) for cols, _ in self.weights]
        cols, values = (np.concatenate(parts) for parts in zip(*self.weights, strict=True))
        return np.repeat(np.arange(len(sizes), dtype=np.int32), sizes), cols, values

    def intercept(self):
        return self.b.copy()

    # Z

    def settle(self):
        """Apply the accumulated changes of light classes to all Z."""
        if self.pending:
            self.log_zs += np.log1p(self.pending * np.exp(-self.log_zs))
            self.pending = 0.0
            self._reciprocals = None

    def reciprocals(self) -> Reciprocals:
        """Reciprocals of Z at the last change of a class that is not light."""
        if self._reciprocals is None:
            self.settle()
            self._reciprocals = Reciprocals(self.mass, self.log_zs)
        return self._reciprocals

    def log_z_at(self, rows):
        """Return ln Z of some rows."""
        log_z = self.log_zs[rows]
        return np.log(np.exp(log_z) + self.pending) if self.pending else log_z

    def shift(self, rows, change):
        """Add to ln Z of some rows, or of all."""
        self.log_zs[rows] += change
        self._reciprocals = None

    def is_light(self, c, n_touched):
        """Whether class c, whose features touch so many rows, has a notable probability in few rows."""
        z = self.reciprocals()
        return (
            n_touched <= LIGHT_SHARE * len(self.mass)
            and self.b[c] - z.least < np.log(NOTABLE)
            and max(abs(z.least), abs(z.greatest)) < FAR
            and abs(self.pending) < NOTABLE * np.exp(z.least)
        )

    def scores_at(self, cols, values, b, rows):
        """Scores of rows, which hold all that the columns touch."""
        if not hasattr(self._own, "scores"):
            self._own.scores = np.zeros(len(self.mass))
        scores = self._own.scores
        self.columns.add_scores(cols, values, scores)
        score = scores[rows] + b
        scores[rows] = 0.0
        return score

    # Class subproblems and steps

    def _improve(self, stop):
        """Visits at first, then steps; False if that was interrupted."""
        prices, self._prices = self._prices, None
        self._was = np.array([price.share for price in prices])
        self.n_iter += 1
        far = violating = np.array([price.violation for price in prices]) > 0.3 * self._goal
        if self.n_iter <= FIRST_PASSES:
            return self._visit(prices, violating, stop)
        quadratic = Quadratic(self.columns, self.mass, prices, self._cells, self.has_intercept)
        self._cells = None
        excess = np.array([price.ratio for price in prices]) - 1
        if not quadratic.solve(max(0.3 * self._goal, PRECISION * min(excess.max(), 1.0)), stop):
            return False
        moved = self._step(quadratic, stop)
        if moved:
            most, least = np.quantile(excess, (1 - MOST_VISITS, 1 - WORST))
            far = (excess > max(self._goal, min(least, max(FAR_OFF, most)))) | self._wild
        return moved is not None and self._visit(prices, far, stop) and self._balance(quadratic, stop)

    def _visit(self, prices, chosen, stop):
        """Solve some classes, the frequent ones first; False if that was interrupted."""
        goal = self._goal

        def solve(c):
            visit = Visit(self, c, self._rare_first(c, prices[c]))
            return visit, visit.solve(0.1 * np.clip(prices[c].violation, goal, EARLY), stop)

        order = [c for c in np.argsort(-self.tasks.prior, kind="stable") if chosen[c]]
        for batch in batches(order, BATCH):
            self.reciprocals()  # here, not in a thread
            for visit, weights in self._map(solve, batch):
                if weights is None:
                    return False
                visit.take(weights)
        return True

    def _rare_first(self, c, price):
        """The work of a class without what touches many rows: often rare features leave nothing for it to explain."""
        room = max(FIRST_ROWS, ROWS_PER_EXAMPLE * len(self.tasks.examples(c)[0])) * 4.0 ** min(self.n_iter - 1, 20)
        if room >= len(self.mass):
            return price.work
        violators = price.work[price.weights == 0]
        violators = violators[np.argsort(self._sizes[violators], kind="stable")]
        n_touched = np.cumsum(self._sizes[violators])
        return violators[: np.searchsorted(n_touched, room)]

    def _step(self, quadratic, stop):
        """Move all classes by the step or a part of it; returns whether that was of use, None if interrupted."""

        def part(length):
            weights, rise = quadratic.moved(length)
            return weights, self.b + rise

        return self._try((part(0.5**k) for k in range(HALVINGS)), stop)

    def _balance(self, quadratic, stop):
        """Give the classes their sums, by all intercepts at once; False if that was interrupted."""
        moved = self.has_intercept
        for _ in range(BALANCES):
            if moved:
                if not self._refresh(stop):
                    return False
                moved = self._try([(self.weights, self.b + rise) for rise in self._rises(quadratic)], stop)
        return moved is not None

    def _rises(self, quadratic):
        """Steps on all intercepts: Newton's, and that of iterative scaling, which never fails, first if it is far."""
        scaling = np.log(self.tasks.prior / self._share)
        newton = quadratic.balance(self.tasks.prior - self._share, self._share)
        return (newton, scaling) if np.abs(scaling).max() < NEAR else (scaling, newton)

    def _try(self, candidates, stop):
        """Take the first (weights, intercepts) that make the objective fall.

        Returns whether there are any; None if that was interrupted. Unless some are taken all is as before, also if
        something is raised, as by Ctrl-C.
        """
        self.settle()
        before = self.weights, self.b, self.log_zs
        value, taken = self._loss() + self._penalty(), False
        try:
            for weights, b in candidates:
                self.weights, self.b = weights, b
                if not self._refresh(stop) or not self._tame(*before[:2], stop):
                    return None
                taken = self._loss() + self._penalty() < value
                if taken:
                    return True
                self.weights, self.b, self.log_zs = before
                self._reciprocals = None
            return False
        finally:
            if not taken:
                self.weights, self.b, self.log_zs = before
                self._reciprocals = None

    def _tame(self, weights, b, stop):
        """Give classes back their weights and intercepts that have far too large a share; False if interrupted.

        A class with next to no probability hardly bends the objective as it is, so that a step may take it too far:
        one of a single example had the sum of 1,500.
        """
        self._wild = wild = self._share > WILD * np.maximum(self.tasks.prior, self._was)
        if not wild.any():
            return True
        self.weights = [old if back else new for old, new, back in zip(weights, self.weights, wild, strict=True)]
        self.b = np.where(wild, b, self.b)
        return self._refresh(stop)

    def _refresh(self, stop):
        """Z from the weights, and the shares of the classes by the Z before; False if that was interrupted."""
        ledger = Ledger(self)
        if not self._for_all(ledger.add_up, ledger.enter, stop):
            return False
        self.log_zs = self.log_zs + np.log(ledger.total)
        self._reciprocals = None
        self._share = ledger.share
        return True

    def _for_all(self, look, enter, stop):
        """Process the panels and enter the results in order; False if interrupted."""
        for batch in batches(self._panels, SIDE_BY_SIDE):
            if stop is not None and stop[0]:
                return False
            for entry in self._map(look, batch):
                enter(*entry)
        return True

    def _map(self, function, values):
        """Map a function in threads, with results in order."""
        return map_threads(function, values, min(self._n_threads, SIDE_BY_SIDE))

    # Gradients and the certificate

    def _price_all(self, stop):
        """Compute the gradients of all classes and the duality gap; False if interrupted."""
        ledger = Ledger(self)
        if not self._for_all(ledger.price, ledger.enter_prices, stop):
            return False
        if not self._for_all(ledger.give, ledger.enter_given, stop):
            return False
        self.shift(slice(None), np.log(ledger.total))
        self._certify(ledger)
        self._prices, self._cells = ledger.prices, ledger.cells
        return True

    def _certify(self, ledger):
        """The duality gap.

        Classes with more than their share transfer probability in proportion to their cells. In every row it is
        assigned to the classes with less, in proportion to what they miss. Rows and classes then have the right sums;
        finally p~ is mixed in by `Mixture`.
        """
        tasks, prices = self.tasks, ledger.prices
        penalty = sum(price.penalty for price in prices)
        slope = sum(price.slope for price in prices)
        ratio = max(price.ratio for price in prices)
        missed = sum(max(price.missing, 0.0) for price in prices)
        divergence = 0.0
        if missed > 0:
            gift = self.columns.price(self._all_rows, self.mass * ledger.given / missed, 0.0)
            for c, price in enumerate(prices):
                if price.missing > 0:
                    cols, values = self.weights[c]
                    ratio = max(ratio, price.ratio + price.missing * float((gift / tasks.beta(c)).max(initial=0.0)))
                    slope += price.missing * (values @ gift[cols])
                    divergence += price.missing * np.logaddexp(0.0, -price.least)
                else:
                    divergence += price.missing**2 / ledger.share[c]
        t = max(1 - 1 / ratio, 0.0) if ratio > 0 else 0.0
        mixture = Mixture(self, ledger, missed)
        self.objective = self._loss() + penalty
        gap = max(mixture.divergence(t) + (1 - t) * divergence + penalty + (1 - t) * slope, 0.0)
        self._goal = mixture.largest_share(penalty, 0.5 * self.tol * self.objective_zero)
        self._least = max(self._least, self.objective - gap)
        self.dual_gap = self.objective - self._least
        self.worst = ratio

    def _penalty(self):
        return float(sum(np.abs(values) @ self.tasks.beta(c, cols) for c, (cols, values) in enumerate(self.weights)))

    def _loss(self):
        linear = sum(values @ self.tasks.emp_mean(c, cols) for c, (cols, values) in enumerate(self.weights))
        return weigh(self.log_zs, self.mass) - float(linear + self.b @ self.tasks.prior)


class Mixture:
    """KL((1 - t) p + t p~ || q) minus (1 - t) KL(p || q), where p is q with corrected class sums.

    Only pairs with a label differ: with s = (1 - t) p / q, all others contribute q s ln s, which is (1 - t) KL(p || q)
    up to (1 - t) ln (1 - t). The upper bound t KL(p~ || q) would be far too large for small t.
    """

    def __init__(self, owner: ByClassSolver, ledger: Ledger, missed):
        examples = [owner.tasks.examples(c) for c in range(len(owner.b))]
        sizes = [len(rows) for rows, _ in examples]
        rows, self._label = (np.concatenate(parts) for parts in zip(*examples, strict=True))
        self._mass = owner.mass[rows]
        self._log_q = np.concatenate(ledger.own)
        q = np.exp(self._log_q)
        self._p = q * np.repeat(1 - ledger.taken, sizes)
        if missed > 0:
            missing = [max(price.missing, 0.0) / missed for price in ledger.prices]
            self._p += np.repeat(missing, sizes) * ledger.given[rows]
        self._log_ratio = np.log(np.maximum(self._p, TINY)) - self._log_q

    def divergence(self, t):
        """For a share t of p~."""
        rest, p = 1 - t, (1 - t) * self._p + t * self._label
        log_rest = np.log(max(rest, TINY))
        change = p * (np.log(np.maximum(p, TINY)) - self._log_q) - rest * self._p * (log_rest + self._log_ratio)
        return float(rest * log_rest + weigh(change, self._mass))

    def largest_share(self, penalty, limit):
        """Approximate largest t below one half that keeps the gap below a limit."""
        t = 0.5
        while self.divergence(t) + t * penalty > limit and t > 1e-9:
            t *= 0.8
        return t


class Reciprocals:
    """1 / Z of every row, sums of u / Z and u / Z^2, and the range of ln Z."""

    def __init__(self, mass, log_zs):
        self.each = np.exp(-log_zs)
        flow = mass * self.each
        self.first = flow.sum()
        self.second = weigh(flow, self.each)
        self.least, self.greatest = log_zs.min(), log_zs.max()


class Ledger:
    """Sums of the classes in every row, and their gradients, accumulated panel by panel."""

    def __init__(self, owner: ByClassSolver):
        self._owner = owner
        owner.settle()
        self._z = owner.log_zs, owner.reciprocals().each, owner.mass
        n_rows, n_classes = len(owner.mass), len(owner.b)
        self.total = np.zeros(n_rows)  # sum of the probabilities of every row: one, but for rounding
        self.given = np.zeros(n_rows)  # what every row has to give away
        self.share, self.taken = np.zeros(n_classes), np.zeros(n_classes)
        self._notable = NOTABLE if owner.n_iter >= FIRST_PASSES else np.inf  # class subproblems need no pairs
        self.prices = [None] * n_classes
        self.cells = [None] * n_classes
        self.own = [None] * n_classes  # ln q of each class in its own examples

    def _panel(self, classes):
        owner = self._owner
        return Panel(owner.columns, [owner.weights[c] for c in classes], owner.b[classes])

    def add_up(self, classes):
        """Compute the sums of some classes, for `enter`."""
        return classes, *self._panel(classes).add_up(*self._z)

    def enter(self, classes, total, share):
        """Add up some classes."""
        self.total += total
        self.share[classes] = share

    def price(self, classes):
        """Compute the gradients of some classes, for `enter_prices`."""
        panel = self._panel(classes)
        total, share, least, means, cells = panel.price(*self._z, self._notable)
        with np.errstate(divide="ignore"):
            least = np.log(least)
        prices = [self._price(c, *about) for c, *about in zip(classes, means, share, least, strict=True)]
        own = [self._own(panel, slot, c) for slot, c in enumerate(classes)]
        return classes, total, share, prices, split_cells(*cells, len(classes)), own

    def enter_prices(self, classes, total, share, prices, cells, own):
        """Add the sums of some classes and store their gradients."""
        self.enter(classes, total, share)
        for c, (price, taken), held, log_q in zip(classes, prices, cells, own, strict=True):
            self.prices[c], self.taken[c], self.cells[c], self.own[c] = price, taken, held, log_q

    def _own(self, panel, slot, c):
        """ln q of a class in its own examples."""
        rows = self._owner.tasks.examples(c)[0]
        return panel.scores(slot, rows) - self._owner.log_zs[rows]

    def give(self, classes):
        """Probability that some classes transfer in every row, for `enter_given`."""
        taken = self.taken[classes]
        return (self._panel(classes).add_up(*self._z, taken)[0] if taken.any() else 0.0,)

    def enter_given(self, given):
        self.given += given

    def _price(self, c, mean, share, least):
        """Compute the `Price` of a class, and the share of its probability to transfer."""
        owner = self._owner
        cols, values = owner.weights[c]
        missing = owner.tasks.prior[c] - share if owner.has_intercept else 0.0
        taken = max(-missing / share, 0.0)
        beta = owner.tasks.beta(c)
        gradient = mean - owner.tasks.emp_mean(c)
        excess = np.maximum(np.abs(gradient) - beta, 0)
        excess[cols] = 0
        slack = np.abs(gradient[cols] / beta[cols] + np.sign(values)).max(initial=0.0)
        violation = max((excess / beta).max(initial=0.0), slack)
        work = np.union1d(cols, self._violators(excess, c))
        weights = np.zeros(len(work))
        weights[np.searchsorted(work, cols)] = values
        work_gradient = gradient[work]
        gradient -= taken * mean
        price = Price(
            share=float(share),
            missing=float(missing),
            ratio=float((np.abs(gradient) / beta).max(initial=0.0)),
            violation=float(violation),
            penalty=float(np.abs(values) @ beta[cols]),
            slope=float(values @ gradient[cols]),
            least=float(least),
            work=work,
            weights=weights,
            beta=beta[work],
            gradient=work_gradient,
            mean=mean[work],
        )
        return price, taken

    def _violators(self, excess, c):
        """Select the features without a weight whose gradients exceed their penalties the most."""
        found = np.flatnonzero(excess)
        n_weights, n_examples = len(self._owner.weights[c][0]), len(self._owner.tasks.examples(c)[0])
        room = max(2 * n_weights, LEAST_ROOM + int(10 * np.sqrt(n_examples)))
        if len(found) > room:
            urgency = excess[found] / self._owner.columns.rms[found]
            found = np.sort(found[np.argpartition(-urgency, room)[:room]])
        return found.astype(np.int32)


class Visit:
    """Subproblem of a class: working set, touched rows with scores and Z, sums of the other rows."""

    def __init__(self, owner: ByClassSolver, c, work):
        self._owner = owner
        self._c = c
        self._b = owner.b[c]
        self._cols, self._values = owner.weights[c]
        self._work = np.union1d(self._cols, work).astype(np.int64)
        self._held, self._share = owner.tasks.examples(c)
        self._rows = owner.columns.touched_rows(self._work, self._held)
        self._score = owner.scores_at(self._cols, self._values, self._b, self._rows)
        self._look()

    def _look(self):
        """Read the current Z."""
        owner = self._owner
        self._light = owner.is_light(self._c, len(self._rows))
        self._log_z = owner.log_z_at(self._rows)
        self._prob = np.minimum(np.exp(self._score - self._log_z), MOST)
        self._rest = self._sum_light() if self._light else self._sum_others()

    def _sum_light(self):
        """Sums of u q and u q^2 over the other rows."""
        z, common = self._owner.reciprocals(), np.exp(self._b)
        inv_z = z.each[self._rows]
        flow = self._owner.mass[self._rows] * inv_z
        return common * max(z.first - flow.sum(), 0.0), common**2 * max(z.second - weigh(flow, inv_z), 0.0)

    def _sum_others(self):
        """The same sums, row by row."""
        owner = self._owner
        others = np.ones(len(owner.mass), bool)
        others[self._rows] = False
        self._others = np.flatnonzero(others)
        self._other_prob = np.minimum(np.exp(self._b - owner.log_z_at(self._others)), MOST)
        flow = owner.mass[self._others] * self._other_prob
        return flow.sum(), weigh(flow, self._other_prob)

    def solve(self, precision, stop):
        """Solve the subproblem; return the weights with the intercept last, or None if interrupted."""
        solver = self._solver()
        loss = solver.objective_zero * self._owner.objective / self._owner.objective_zero  # about that of the class
        for _ in range(MAX_ROUNDS):
            status = solver.run(1, stop)
            if status == "interrupted":
                return None
            if status != "running" or (solver.mixing <= precision and solver.dual_gap <= precision * loss):
                break
        return solver.weights[0]

    def take(self, new):
        """Accept new weights, unless the objective increases because other classes have changed meanwhile."""
        self._look()
        slots = np.flatnonzero(new[:-1])
        b = new[-1] if self._owner.has_intercept else 0.0
        self.move(self._work[slots].astype(np.int32), new[slots], b, only_if_better=True)

    def _solver(self):
        """Make the compiled solver of the class on its rows and one row for all others.

        The mass and the offset of that row reproduce the probability and the curvature of the others.
        """
        owner, rows, tasks = self._owner, self._rows, self._owner.tasks
        first, second = self._rest
        rest_mass = rest_offset = 0.0
        if second > 0:
            rest_mass, rest_prob = first**2 / second, min(second / first, MOST)
            rest_offset = np.log(rest_prob) - np.log1p(-rest_prob) - self._b
        target = np.zeros((1, len(rows) + 1))
        target[0, np.searchsorted(rows, self._held)] = self._share
        problem = Problem(
            owner.columns.restricted(self._work, rows),
            tasks.emp_mean(self._c, self._work)[None],
            tasks.beta(self._c, self._work)[None],
            target,
            np.append(owner.mass[rows], rest_mass),
            pooled=False,
            reference=True,
            intercept=owner.has_intercept,
            offset=np.append(-(self._log_z + np.log1p(-self._prob)), rest_offset)[None],
        )
        slots = np.searchsorted(self._work, self._cols).astype(np.int32)
        start = np.zeros(len(slots), np.int32), slots, self._values, np.array([self._b])
        prior = tasks.prior[self._c]
        scale = -prior * np.log(prior) - (1 - prior) * np.log1p(-prior)
        return Solver(problem, tol=1e-12, warm_start=start, objective_zero=scale, tight=False)

    def move(self, cols, values, b, only_if_better=False):
        """Set the weights of the class on columns of the working set."""
        owner, c, rows = self._owner, self._c, self._rows
        change = owner.scores_at(cols, values, b, rows) - self._score
        z_change = np.log1p(self._prob * np.expm1(change))
        rise = b - self._b
        if only_if_better and not self._objective_change(cols, values, rise, z_change) <= 0:
            return
        owner.weights[c] = cols, values
        owner.b[c] = b
        if self._light:
            owner.pending += np.exp(b) - np.exp(self._b)
            owner.log_zs[rows] = np.log(np.exp(self._log_z + z_change) - owner.pending)
        else:
            owner.settle()
            owner.shift(rows, z_change)
            owner.shift(self._others, np.log1p(self._other_prob * np.expm1(rise)))

    def _objective_change(self, cols, values, rise, z_change):
        """Change of the objective: exact for the rows of the class, to second order for the others."""
        owner, tasks = self._owner, self._owner.tasks

        def linear_and_penalty(cols, values):
            return values @ tasks.emp_mean(self._c, cols), np.abs(values) @ tasks.beta(self._c, cols)

        first, second = self._rest
        growth = np.expm1(rise)
        loss = weigh(z_change, owner.mass[self._rows]) + first * growth - 0.5 * second * growth**2
        linear, penalty = linear_and_penalty(cols, values)
        old_linear, old_penalty = linear_and_penalty(self._cols, self._values)
        return loss - (linear - old_linear + rise * tasks.prior[self._c]) + penalty - old_penalty


def split_cells(rows, slots, prob, n_classes):
    """(rows, prob) of each class."""
    order = np.argsort(slots, kind="stable")
    edges = np.searchsorted(slots[order], np.arange(n_classes + 1))
    return [(rows[order[low:high]], prob[order[low:high]]) for low, high in itertools.pairwise(edges)]


def batches(values, size):
    """Split into batches of this size."""
    return [values[k : k + size] for k in range(0, len(values), size)]
