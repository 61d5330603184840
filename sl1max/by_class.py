"""Exclusive classes by the thousands: one class at a time, with one Z per example that all of them share.

    minimise  sum_i u_i ln Z_i  -  sum_c (lam_c . p~_c + b_c p~_c)  +  sum_cj beta_cj |lam_cj|,
    Z_i = sum_c exp(b_c + lam_c . x_i)

While the other classes keep their weights, class c has the problem of one block of the core, with a reference cell and
offsets -ln(Z_i - exp a_ic). So ln Z is kept, one number per example, and the weights, which are sparse; nothing is as
large as classes x examples or classes x features. A pass prices every class, which proves a duality gap, then visits
those whose prices violate their penalties: a class is solved on its weights and the violators alone, on the rows that
hold one of these. All other rows have the score b_c, and one row stands for them.

A class that touches few rows is never looked at elsewhere. With V_j = sum_i u_i x_ij / Z_i, which all classes share,
its model means are e^b V_j and what its own rows add to that; a change of e^b, the same for all other Z, is kept as one
number until somebody needs these.

Classes that compete for the same rows hold each other back: one after the other, each at its optimum, they creep (of
the violation 0.9 is left after a pass over a thirty-second of SuperTags). Three things cure that. A visit goes beyond
the optimum of its class, as successive over-relaxation does for linear systems (0.6 is left). Where the sums of the
classes are what keeps the gap up, a Newton step is made on all intercepts at once. And now and then all weights leap
along the way of the last passes, until the objective rises: weights of two classes that grow together change hardly
anything but the penalty.
"""

from __future__ import annotations

import contextlib
import threading
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from scipy import sparse

from sl1max._core._solver import Columns, Problem, Solver

LIGHT_SHARE = 0.1  # of the rows: a class whose features touch fewer is never looked at elsewhere
NOTABLE = 1e-3  # a probability that the coupling of classes takes notice of; in no other row may a light class have it
FAR = 300.0  # a log of Z beyond which no class is light, since exp would overflow
LEAST_ROOM = 100  # violators that a visit takes in, if there are as many; and ten times the root of the examples
MAX_ROUNDS = 10  # of the solver in one visit
EARLY = 3.0  # a violation beyond which it does not matter how large it is
OVER = 1.5  # how far beyond its optimum a class goes: see `Visit._overshoot`
PASSES_A_LEAP = 5
LAST_PASSES = 2  # whose way a leap goes on with
LONGEST_LEAP = 2000.0
NEAR = 30.0  # violations, against the goal, from which on the sums of the classes matter
BATCH = 2  # classes that are visited, or priced, at once if there are threads for them
URGENT = 0.03  # of the worst violation: classes with less can wait, unless they are among the FEW worst
CYCLES = 6  # of visits in one pass, once few classes violate; in the last two none goes beyond its optimum
FEW = 0.25  # share of the classes
STABLE = 0.1  # share of the weights that may come or go in a visit that does
MOST = 1 - 1e-15  # a probability that leaves something for the other classes
TINY = np.finfo(float).tiny
NONE = np.empty(0, np.int32)


@dataclass(frozen=True, eq=False)
class ClassTasks:
    """What is known of each class, asked for one at a time.

    Attributes
    ----------
    prior : ndarray of shape (n_classes,)
        p~(c).
    emp_mean, beta : callable
        Arrays (n_features,) of a class. beta is positive, or infinite for what is left out.
    examples : callable
        The examples of a class, ascending, and its share of each.
    """

    prior: np.ndarray
    emp_mean: Callable
    beta: Callable
    examples: Callable


@dataclass(frozen=True, eq=False)
class Price:
    """What the certificate and the next pass need of a class.

    Attributes
    ----------
    missing : float
        p~(c) - q(c).
    ratio : float
        The largest |p[f] - p~[f]| / beta.
    violation : float
        How far from what the optimum asks of it the worst |q[f] - p~[f]| is, over beta.
    penalty, slope : float
        sum beta |lam| and lam . (p[f] - p~[f]).
    least : float
        Log of the least probability of the class, or less.
    violators : ndarray
        Features to take in, the most urgent ones.
    """

    missing: float
    ratio: float
    violation: float
    penalty: float
    slope: float
    least: float
    violators: np.ndarray


class ByClassSolver:
    """Conditional model of many exclusive classes; the face of `_core.Solver`.

    Parameters
    ----------
    columns : Columns
        Sparse ones; an index of rows is made if there is none.
    tasks : ClassTasks
    mass : ndarray of shape (n_samples,)
        u_i, summing to one.
    label_entropy : float
        Mean over the examples of the entropy of their shares: zero if each has one class.
    intercept : bool
    tol : float
        Converged when dual_gap <= tol * objective_zero.
    warm_start : tuple (blocks, cols, values, intercept) or None
        Blocks ascending.
    n_threads : int
        The result does not depend on it.
    """

    def __init__(
        self, columns: Columns, tasks: ClassTasks, mass, *, intercept, tol, label_entropy=0.0, warm_start=None,
        n_threads=1,
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
        self._n_threads = n_threads
        self._threads = None
        self._own = threading.local()  # an array of zeros for the scores
        self._label_entropy = label_entropy
        self._prices = None
        self._way = []  # weights and intercepts before the last passes
        self.objective_zero = float(-(prior @ np.log(prior)) if intercept else np.log(n_classes))
        self.objective = self.objective_zero
        self.dual_gap = np.inf
        self._least = -np.inf  # what the objective is at least
        self.log_z = np.nan
        self.tol = tol
        self.n_iter = 0
        self.counters = {"column_walks": 0, "updates": 0, "nonzeros": 0}
        if warm_start is not None:
            self._load(*warm_start)

    def _load(self, blocks, cols, values, intercept):
        edges = np.searchsorted(blocks, np.arange(len(self.b) + 1))
        for c, b in enumerate(intercept):
            held = slice(edges[c], edges[c + 1])
            held = held.start + np.flatnonzero(np.isfinite(self.tasks.beta(c)[cols[held]]))
            held = held[np.argsort(cols[held])]
            Visit(self, c, cols[held]).move(cols[held], values[held], b if self.has_intercept else 0.0)

    # The face of a solver

    def run(self, n, stop=None) -> str:
        """Go on for at most n passes; returns "converged", "running", "stalled" or "interrupted"."""
        for k in range(n + 1):
            if self._prices is None and not self._price_all(stop):
                return "interrupted"
            if self.dual_gap <= self.tol * self.objective_zero:
                return "converged"
            if k == n:
                return "running"
            before = self.objective, self.dual_gap
            self._way = [*self._way, (list(self.weights), self.b.copy())][-LAST_PASSES:]
            if not self._visit_all(stop) or not self._price_all(stop):
                return "interrupted"  # objective and gap are those of the last prices, and have not become worse
            if self.objective >= before[0] and self.dual_gap >= before[1] > self.tol * self.objective_zero:
                return "stalled"
        return "running"

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
        """Bring what light classes have added to all Z into them."""
        if self.pending:
            self.log_zs += np.log1p(self.pending * np.exp(-self.log_zs))
            self.pending = 0.0
            self._reciprocals = None

    def reciprocals(self) -> Reciprocals:
        """Those of Z as they were when a class last moved that is not light."""
        if self._reciprocals is None:
            self.settle()
            self._reciprocals = Reciprocals(self.mass, self.log_zs)
        return self._reciprocals

    def log_z_at(self, rows):
        """ln Z of some rows."""
        log_z = self.log_zs[rows]
        return np.log(np.exp(log_z) + self.pending) if self.pending else log_z

    def shift(self, rows, change):
        """Add to ln Z of some rows, or of all."""
        self.log_zs[rows] += change
        self._reciprocals = None

    def is_light(self, c, n_touched):
        """Whether class c, whose features touch so many rows, matters in few."""
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

    # Visits

    def _visit_all(self, stop):
        """Solve the classes that violate, the frequent ones first; False if that was interrupted."""
        prices, self._prices = self._prices, None
        goal = self._goal()
        violation = np.minimum([price.violation for price in prices], EARLY)
        least = max(0.3 * goal, min(URGENT * violation.max(), np.quantile(violation, 1 - FEW)))
        order = [c for c in np.argsort(-self.tasks.prior, kind="stable") if violation[c] > least]
        self.n_iter += 1

        def solve(c):
            visit = Visit(self, c, prices[c].violators)
            return visit, visit.solve(0.1 * max(goal, 0.3**cycle * violation[c]), stop)

        n_cycles = CYCLES if len(order) <= FEW * len(prices) else 1
        for cycle in range(n_cycles):
            over = OVER if cycle == 0 or cycle < n_cycles - 2 else 1.0
            for batch in batches(order):
                self.reciprocals()  # here, not in a thread
                for visit, weights in self._map(solve, batch):
                    if weights is None:
                        return False
                    visit.take(weights, over)
        if self.n_iter % PASSES_A_LEAP == 0:
            self._leap()
        return True

    def _map(self, function, values):
        """The results in order, by threads if there are some."""
        if self._n_threads == 1 or len(values) == 1:
            return [function(value) for value in values]
        if self._threads is None:
            from concurrent.futures import ThreadPoolExecutor

            self._threads = ThreadPoolExecutor(min(self._n_threads, BATCH))
        return list(self._threads.map(function, values))

    def _goal(self):
        """The violation to come down to: the gap is about the worst one times the objective."""
        return self.tol * self.objective_zero / self.objective

    def _leap(self):
        """Go on along the way of the last passes, twice as far each time while the objective falls."""
        first, first_b = self._way[0]
        last, last_b = self.weights.copy(), self.b.copy()

        def go(length):
            for c, (cols, values) in enumerate(last):
                cols, values = extrapolate(*first[c], cols, values, length)
                Visit(self, c, cols).move(cols, values, last_b[c] + length * (last_b[c] - first_b[c]))
            self.settle()
            return self._loss() + self._penalty()

        length, best = 2.0, self._loss() + self._penalty()
        with self._trying():
            while length < LONGEST_LEAP and (value := go(length)) < best:
                length, best = 2 * length, value
            go(0.5 * length if length > 2 else 0.0)

    @contextlib.contextmanager
    def _trying(self):
        """Put the weights back if something is raised meanwhile, as by Ctrl-C; not Z: nobody goes on after that."""
        weights, b = self.weights.copy(), self.b.copy()
        try:
            yield
        except BaseException:
            self.weights, self.b = weights, b
            raise

    # Prices and the certificate

    def _price_all(self, stop):
        """Prices of all classes and the duality gap; False if that was interrupted.

        Where it is the sums of the classes that keep the gap up, their intercepts are balanced and all is priced again.
        """
        for last in (False, True):
            self.settle()
            ledger = Ledger(self)
            for batch in batches(range(len(self.b))):
                if stop is not None and stop[0]:
                    return False
                for entry in self._map(ledger.look_at, batch):
                    ledger.enter(*entry)
            self.shift(slice(None), np.log(ledger.total()))
            own, given = self._certify(ledger)
            if last or own > NEAR * self._goal() or given < 0.5 * max(own, self._goal()):
                break
            self._balance(ledger)
        self._prices = ledger.prices
        return True

    def _balance(self, ledger):
        """A Newton step on all intercepts: diag(q(c)) - sum_i u_i q_i q_i' is their Hessian.

        What is notable of q_i is known; the rest of it is taken as spread over the classes alike in all rows.
        """
        share = ledger.share
        probs = ledger.notable()
        tail = np.maximum(share - probs.T @ self.mass, 0.0)
        row_tail = np.maximum(1 - probs.sum(axis=1), 0.0)
        spread = tail / max(tail.sum(), TINY)
        row_tail *= tail.sum() / max(weigh(row_tail, self.mass), TINY)

        def product(v):
            mean = self.mass * (probs @ v + row_tail * (spread @ v))
            return share * v - probs.T @ mean - spread * (row_tail @ mean)

        rise = conjugate_gradients(product, self.tasks.prior - share, 1 / share)
        start, loss = self.b.copy(), self._loss()
        with self._trying():
            for length in (1.0, 0.5, 0.25, 0.0):
                for c, b in enumerate(start + length * rise):
                    Visit(self, c, NONE).move(*self.weights[c], b)
                self.settle()
                if self._loss() <= loss:
                    break

    def _certify(self, ledger):
        """The duality gap; returns the worst violation, and what missing sums add to it.

        Classes with more than their share give of every cell in proportion; what a row has to give goes to those with
        less in proportion to what they miss. So rows and classes have their sums; then p~ is mixed in.
        """
        tasks, prices = self.tasks, ledger.prices
        penalty = sum(price.penalty for price in prices)
        slope = sum(price.slope for price in prices)
        own = ratio = max(price.ratio for price in prices)
        missed = sum(max(price.missing, 0.0) for price in prices)
        divergence = 0.0
        if missed > 0:
            gift = self.columns.price(self._all_rows, self.mass * ledger.given() / missed, 0.0)
            for c, price in enumerate(prices):
                if price.missing > 0:
                    cols, values = self.weights[c]
                    ratio = max(ratio, price.ratio + price.missing * float((gift / tasks.beta(c)).max(initial=0.0)))
                    slope += price.missing * (values @ gift[cols])
                    divergence += price.missing * np.logaddexp(0.0, -price.least)
                else:
                    divergence += price.missing**2 / ledger.share[c]
        t = max(1 - 1 / ratio, 0.0) if ratio > 0 else 0.0
        loss = self._loss()
        self.objective = loss + penalty
        gap = t * (loss - self._label_entropy) + (1 - t) * divergence + penalty + (1 - t) * slope
        self._least = max(self._least, self.objective - gap)
        self.dual_gap = self.objective - self._least
        self.worst = ratio
        return own - 1, ratio - own

    def _penalty(self):
        return float(sum(np.abs(values) @ self.tasks.beta(c)[cols] for c, (cols, values) in enumerate(self.weights)))

    def _loss(self):
        linear = sum(values @ self.tasks.emp_mean(c)[cols] for c, (cols, values) in enumerate(self.weights))
        return weigh(self.log_zs, self.mass) - float(linear + self.b @ self.tasks.prior)


class Reciprocals:
    """1 / Z of every row, sums of u / Z and u / Z^2, and the range of ln Z."""

    def __init__(self, mass, log_zs):
        self.each = np.exp(-log_zs)
        flow = mass * self.each
        self.first = flow.sum()
        self.second = weigh(flow, self.each)
        self.least, self.greatest = log_zs.min(), log_zs.max()


class Ledger:
    """What the classes add up to in every row, and their prices, entered one by one.

    Parts that are the same number over Z in all rows are kept apart.
    """

    def __init__(self, owner: ByClassSolver):
        self._owner = owner
        self._z = owner.reciprocals()
        n_rows = len(owner.mass)
        self._base = owner.columns.price(owner._all_rows, owner.mass * self._z.each, 0.0)
        self._total, self._given = np.zeros(n_rows), np.zeros(n_rows)
        self._common_total = self._common_given = 0.0
        self._notable = []
        self.share = np.zeros(len(owner.b))
        self.prices = []

    def total(self):
        """Sum of the probabilities of every row: one, but for rounding."""
        return self._total + self._common_total * self._z.each

    def given(self):
        """What every row has to give away."""
        return self._given + self._common_given * self._z.each

    def notable(self):
        """The probabilities that are, a csr_array (n_samples, n_classes)."""
        rows, probs = zip(*self._notable, strict=True)
        indptr = np.concatenate([[0], np.cumsum([len(part) for part in rows])])
        shape = len(self._owner.mass), len(rows)
        return sparse.csc_array((np.concatenate(probs), np.concatenate(rows), indptr), shape=shape).tocsr()

    def look_at(self, c):
        """Price a class; returns what `enter` takes."""
        owner, z = self._owner, self._z
        cols, values = owner.weights[c]
        b, mass = owner.b[c], owner.mass
        rows = owner.columns.touched_rows(cols.astype(np.int64), NONE)
        if owner.is_light(c, len(rows)):
            score = owner.scores_at(cols, values, b, rows)
            common = np.exp(b)
            prob = np.exp(score) * z.each[rows]
            above = prob - common * z.each[rows]
            flow = mass[rows] * above
            mean = owner.columns.price(rows, flow, 0.0)
            mean += common * self._base
            share = common * z.first + flow.sum()
            lowest = score.min(initial=b)
            index = rows
        else:
            index, rows, common = slice(None), owner._all_rows, 0.0
            score = owner.scores_at(cols, values, b, index)
            above = prob = np.exp(score - owner.log_zs)
            flow = mass * prob
            mean = owner.columns.price(rows, flow, 0.0)
            share = flow.sum()
            lowest = score.min()
        price, taken = self._price(c, mean, share, lowest - z.greatest)
        seen = prob > NOTABLE
        return c, price, share, taken, (index, above, common), (rows[seen], prob[seen])

    def enter(self, c, price, share, taken, parts, notable):
        """Add a class up, in the order of the classes."""
        index, above, common = parts
        self._total[index] += above
        self._common_total += common
        if taken > 0:
            self._given[index] += taken * above
            self._common_given += taken * common
        self.share[c] = share
        self._notable.append(notable)
        self.prices.append(price)

    def _price(self, c, mean, share, least):
        """The price, and the part of its probability that the class has to give away."""
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
        gradient -= taken * mean
        price = Price(
            missing=float(missing),
            ratio=float((np.abs(gradient) / beta).max(initial=0.0)),
            violation=float(violation),
            penalty=float(np.abs(values) @ beta[cols]),
            slope=float(values @ gradient[cols]),
            least=float(least),
            violators=self._violators(excess, c),
        )
        return price, taken

    def _violators(self, excess, c):
        """Features without a weight whose prices exceed their penalties: the most urgent ones."""
        found = np.flatnonzero(excess)
        n_weights, n_examples = len(self._owner.weights[c][0]), len(self._owner.tasks.examples(c)[0])
        room = max(2 * n_weights, LEAST_ROOM + int(10 * np.sqrt(n_examples)))
        if len(found) > room:
            urgency = excess[found] / self._owner.columns.rms[found]
            found = np.sort(found[np.argpartition(-urgency, room)[:room]])
        return found.astype(np.int32)


class Visit:
    """A class with a working set: the rows that it touches, their scores and Z, and what the other rows add up to."""

    def __init__(self, owner: ByClassSolver, c, violators):
        self._owner = owner
        self._c = c
        self._b = owner.b[c]
        self._cols, self._values = owner.weights[c]
        self._work = np.union1d(self._cols, violators).astype(np.int64)
        self._held, self._share = owner.tasks.examples(c)
        self._rows = owner.columns.touched_rows(self._work, self._held)
        self._score = owner.scores_at(self._cols, self._values, self._b, self._rows)
        self._look()

    def _look(self):
        """Take Z as they are now."""
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
        """The same, row by row."""
        owner = self._owner
        others = np.ones(len(owner.mass), bool)
        others[self._rows] = False
        self._others = np.flatnonzero(others)
        self._other_prob = np.minimum(np.exp(self._b - owner.log_z_at(self._others)), MOST)
        flow = owner.mass[self._others] * self._other_prob
        return flow.sum(), weigh(flow, self._other_prob)

    def solve(self, precision, stop):
        """Weights near the optimum of the class, intercept last; None if that was interrupted."""
        solver = self._solver()
        loss = solver.objective_zero * self._owner.objective / self._owner.objective_zero  # about that of the class
        for _ in range(MAX_ROUNDS):
            status = solver.run(1, stop)
            if status == "interrupted":
                return None
            if status != "running" or (solver.mixing <= precision and solver.dual_gap <= precision * loss):
                break
        return solver.weights[0]

    def take(self, new, over):
        """Move to new weights or a little beyond, unless other classes that have moved meanwhile make that worse."""
        self._look()
        if not self._move_to(self._overshoot(new, over)):
            self._move_to(new)

    def _solver(self):
        """The core's solver of the class on its rows, and on one more for all others.

        That has the mass and the offset that give it their probability and their curvature.
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
            tasks.emp_mean(self._c)[None, self._work],
            tasks.beta(self._c)[None, self._work],
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

    def _overshoot(self, new, over):
        """Weights, intercept last, so many times their change from the old ones, if they have about the old support."""
        old = np.zeros(len(new))
        old[np.searchsorted(self._work, self._cols)] = self._values
        old[-1] = self._b
        kept = (old != 0) & (new != 0)
        if np.count_nonzero(kept[:-1]) < (1 - STABLE) * np.count_nonzero(new[:-1]):
            return new
        beyond = np.where(kept, old + over * (new - old), new)
        beyond[:-1] = np.where(beyond * new < 0, new, beyond)[:-1]
        return beyond

    def _move_to(self, new):
        slots = np.flatnonzero(new[:-1])
        b = new[-1] if self._owner.has_intercept else 0.0
        return self.move(self._work[slots].astype(np.int32), new[slots], b, only_if_better=True)

    def move(self, cols, values, b, only_if_better=False):
        """Give the class other weights, on columns of the working set; whether that was done."""
        owner, c, rows = self._owner, self._c, self._rows
        change = owner.scores_at(cols, values, b, rows) - self._score
        z_change = np.log1p(self._prob * np.expm1(change))
        rise = b - self._b
        if only_if_better and not self._objective_change(cols, values, rise, z_change) <= 0:
            return False
        owner.weights[c] = cols, values
        owner.b[c] = b
        if self._light:
            owner.pending += np.exp(b) - np.exp(self._b)
            owner.log_zs[rows] = np.log(np.exp(self._log_z + z_change) - owner.pending)
        else:
            owner.settle()
            owner.shift(rows, z_change)
            owner.shift(self._others, np.log1p(self._other_prob * np.expm1(rise)))
        return True

    def _objective_change(self, cols, values, rise, z_change):
        """Exact for the rows that the class touches; for the others to second order."""
        owner, tasks = self._owner, self._owner.tasks
        emp_mean, beta = tasks.emp_mean(self._c), tasks.beta(self._c)
        first, second = self._rest
        growth = np.expm1(rise)
        loss = weigh(z_change, owner.mass[self._rows]) + first * growth - 0.5 * second * growth**2
        loss -= values @ emp_mean[cols] - self._values @ emp_mean[self._cols] + rise * tasks.prior[self._c]
        return loss + np.abs(values) @ beta[cols] - np.abs(self._values) @ beta[self._cols]


def batches(values):
    """So many at a time."""
    return [values[k : k + BATCH] for k in range(0, len(values), BATCH)]


def extrapolate(old_cols, old_values, cols, values, length):
    """Sparse weights, so many times their change beyond them; none changes its sign, and none that is new goes on."""
    _, slots, old_slots = np.intersect1d(cols, old_cols, assume_unique=True, return_indices=True)
    beyond = values.copy()
    beyond[slots] += length * (values[slots] - old_values[old_slots])
    kept = beyond * values > 0
    return cols[kept], beyond[kept]


def conjugate_gradients(product, target, preconditioner, precision=1e-3, max_steps=300):
    """About the solution of product(x) = target, for a symmetric positive semidefinite product."""
    solution, residual = np.zeros(len(target)), target.copy()
    direction = preconditioner * residual
    norm = first = residual @ direction
    for _ in range(max_steps):
        image = product(direction)
        curvature = direction @ image
        if not curvature > 0 or norm <= precision**2 * first:
            break
        solution += norm / curvature * direction
        residual -= norm / curvature * image
        better = preconditioner * residual
        norm, old = residual @ better, norm
        direction = better + norm / old * direction
    return solution


def weigh(values, mass):
    """values @ mass, whose last bit does not depend on the number of threads of a BLAS."""
    return float(np.einsum("i,i", values, mass))
