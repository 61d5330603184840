"""The sequential algorithm for features without stored columns, and the gain of each feature.

Weights begin at zero. A step moves the weight of the feature whose step is sure to decrease the loss most, by the bound
of the closed-form step; damped at first, so that the first feature does not take what others can give as well. The
decrease of the loss is credited to the feature. What features gain depends on this path: of two that can replace each
other, the one chosen first gets the credit.
"""

from __future__ import annotations

import numpy as np

from sl1max._data.feature_table import CATEGORY, THRESHOLD
from sl1max.training._presences import PresenceProblem

MAX_STEPS = 500
DAMPING = (10, 50.0), (20, 10.0), (50, 3.0)  # before that step, steps are divided by that
STOP_EVERY, STOP_DECREASE = 20, 1e-5  # end when the loss decreases by less in so many steps
PRICE_EVERY = 10  # steps, between two pricings of all features
N_CANDIDATES = 60  # that steps choose from in between
LEAST_MASS = 1e-6  # a feature with a mean this near to 0 or 1 is taken to be constant


def sequential_gains(problem: PresenceProblem) -> np.ndarray:
    """Compute the contribution of each feature to the regularised gain along the sequential algorithm.

    Parameters
    ----------
    problem : PresenceProblem

    Returns
    -------
    float array of shape (n_features,)
        None is negative. The sum is near the gain of the optimum, from below.
    """
    path = _Path(problem)
    last = 0.0
    for step in range(MAX_STEPS):
        if step % PRICE_EVERY == 0:
            path.choose_candidates()
        path.step(next((divisor for end, divisor in DAMPING if step < end), 1.0))
        if step and step % STOP_EVERY == 0:
            if last - path.loss < STOP_DECREASE:
                break
            last = path.loss
    return path.gains


class _Path:
    def __init__(self, problem):
        self._problem = problem
        self._lam = np.zeros(len(problem.table))
        self.gains = np.zeros(len(problem.table))
        self._mass = problem.q0.copy()
        self.loss = 0.0
        self._candidates, self._columns = np.empty(0, int), np.empty((0, len(problem.q0)))
        binary = np.isin(problem.table.kind, (CATEGORY, THRESHOLD))
        self._is_binary, self._usable = binary, np.isfinite(problem.penalties)

    def choose_candidates(self):
        """Select the features with a weight, and the best feature of every neighbourhood."""
        problem = self._problem
        _, bound = self._closed_form(np.arange(len(self._lam)), problem.columns.means(self._mass))
        group = problem.columns.group
        before = np.append(np.inf, np.where(group[1:] == group[:-1], bound[:-1], np.inf))
        after = np.append(np.where(group[1:] == group[:-1], bound[1:], np.inf), np.inf)
        found = np.flatnonzero((bound < 0) & (bound < before) & (bound <= after))
        found = found[np.argsort(bound[found], kind="stable")[:N_CANDIDATES]]
        candidates = np.union1d(found, np.flatnonzero(self._lam))
        columns = np.empty((len(candidates), len(problem.q0)))
        known = np.isin(candidates, self._candidates)
        columns[known] = self._columns[np.searchsorted(self._candidates, candidates[known])]
        fresh = np.empty((np.count_nonzero(~known), len(problem.q0)))
        problem.columns.fill(candidates[~known], fresh)
        columns[~known] = fresh
        self._candidates, self._columns = candidates, columns

    def _closed_form(self, which, means):
        """Closed-form steps of features, with an upper bound on the change of the loss."""
        lam, beta = self._lam[which], self._problem.penalties[which]
        n1, w1 = self._problem.means[which], means
        n0, w0 = 1 - n1, 1 - w1
        with np.errstate(divide="ignore", invalid="ignore", over="ignore"):
            up = np.log((n1 - beta) * w0 / ((n0 + beta) * w1))
            down = np.log((n1 + beta) * w0 / ((n0 - beta) * w1))
            ends_up, ends_down = (n1 - beta > LEAST_MASS) & (up + lam > 0), (n0 - beta > LEAST_MASS) & (down + lam < 0)
            step = np.where(ends_up, up, np.where(ends_down, down, -lam))
            step[(w0 < LEAST_MASS) | (w1 < LEAST_MASS) | ~self._usable[which]] = 0.0
            bound = -n1 * step + np.log(w0 + w1 * np.exp(step)) + beta * (np.abs(lam + step) - np.abs(lam))
        bound[~np.isfinite(bound) | (step == 0)] = 0.0
        return step, bound

    def step(self, divisor):
        """Change the weight of one feature and record the change of the loss."""
        means = np.einsum("ij,j->i", self._columns, self._mass)  # not BLAS, whose threads are slower here
        steps, bounds = self._closed_form(self._candidates, means)
        if not len(bounds) or not bounds.min() < 0:
            return
        k = int(np.argmin(bounds))
        j, column = self._candidates[k], self._columns[k]
        step = steps[k] / divisor if self._is_binary[j] else self._newton_step(j, column, means[k]) / divisor
        change, mass = self._try(j, column, step)
        if not self._is_binary[j] and change > bounds[k]:
            other = self._try(j, column, steps[k] / divisor)
            if other[0] < change:
                step, (change, mass) = steps[k] / divisor, other
        undone = step * self._lam[j] < 0
        self._lam[j] += step
        self._mass = mass
        self.loss += change
        self.gains[j] = max(0.0, self.gains[j] + change if undone else self.gains[j] - change)

    def _newton_step(self, j, column, mean):
        variance = (self._mass * column**2).sum() - mean**2
        slope, beta, lam = mean - self._problem.means[j], self._problem.penalties[j], self._lam[j]
        slope += beta * (np.sign(lam) if lam else -np.sign(slope))
        if variance < LEAST_MASS**2:
            return 0.0
        step = -slope / variance
        return -lam if (lam + step) * lam < 0 else step

    def _try(self, j, column, step):
        """The change of the loss, and the distribution after the step."""
        mass = self._mass * np.exp(step * column)
        total = mass.sum()
        penalty = self._problem.penalties[j] * (abs(self._lam[j] + step) - abs(self._lam[j]))
        return np.log(total) - step * self._problem.means[j] + penalty, mass / total
