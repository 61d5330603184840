"""Density estimation: the distribution of maximum entropy over a sample space, from features that need no columns.

Asked for are the weights lam that minimise

    ln sum_i q0_i exp(lam . f(i))  -  lam . p~[f]  +  sum_j beta_j |lam_j|

over the points i of a sample space with default distribution q0, p~ the distribution of the presences over these
points. There may be tens of thousands of features, most of them with weight zero at the optimum. The features come from
a `ColumnSource`, which gives the means of all of them under a distribution ("pricing") and the columns of a few. The
core's solver works on the columns of a working set; then all features are priced, and the violators that are the worst
of their neighbourhood join the working set, the solver going on from its weights.

The certificate covers every feature. The core offers a distribution p near the model q whose mixture with p~

    p_t = (1 - t) p + t p~

meets the constraints |p_t[f_j] - p~[f_j]| <= beta_j of the working set from some t on; pricing under p gives the t from
which it meets those of all features, since mixing makes each violation smaller by the factor 1 - t.

Weights may also have an L2 penalty and limits. For the penalty r_j of a weight, with r_j* its conjugate and u_j =
p~[f_j] - p_t[f_j], each feature outside of the working set adds r_j*(u_j) to the gap: nothing within the interval, and
outside of it something finite where r_j* is. Then t is chosen to make the gap small.
"""

from __future__ import annotations

import warnings
from dataclasses import dataclass
from typing import Protocol

import numpy as np
from scipy import sparse

from sl1max._core._solver import Columns, Problem, Solver
from sl1max._data.penalties import BlockPenalties
from sl1max.exceptions import ConvergenceWarning

FEW = 30  # violators that may join the working set at once; more if many have a weight
INNER_ROUNDS = 3  # of the core, between two pricings
# Rounding error of a mean under a distribution, for features in [0, 1]: added to every violation.
ROUNDING = 1e-14
COARSE_POINTS = 1 << 16  # from which on training begins with a model of fewer points:
COARSE_SHARE = 8  # one of so many, and all presences,
COARSE_TOL = 1e-5  # to this tolerance at least
COLUMNS_AT_ONCE = 8  # when columns are made
MAX_CELLS = 1 << 27  # of the columns of a working set, before those without a weight leave it
SMALLEST_SHARE = 1e-3  # of the mixing that meets all intervals, when less of it is tried
MAX_STALLED = 3  # pricings without a new feature or a smaller gap after which training ends


class ColumnSource(Protocol):
    """Features of the points of a sample space.

    Attributes
    ----------
    group : int array of shape (n_features,)
        Features next to each other that have the same number are neighbours, such as hinges with adjacent knots. Of
        neighbours only local maxima of the violation join the working set.
    """

    group: np.ndarray

    def means(self, mass: np.ndarray) -> np.ndarray:
        """Mean of every feature under a distribution over the points."""

    def fill(self, which: np.ndarray, columns_out: np.ndarray) -> None:
        """Write the columns of some features to the rows of an array (len(which), n_points)."""

    def take(self, rows: np.ndarray) -> ColumnSource:
        """The same features of some of the points."""


class MatrixColumns:
    """The columns of a dense or sparse matrix as a source of features."""

    def __init__(self, matrix):
        self._matrix = sparse.csc_array(matrix) if sparse.issparse(matrix) else np.asarray(matrix, float)
        self.group = np.arange(matrix.shape[1])

    def means(self, mass):
        return self._matrix.T @ mass

    def fill(self, which, columns_out):
        columns = self._matrix[:, which]
        columns_out[...] = (columns.toarray() if sparse.issparse(columns) else columns).T

    def take(self, rows):
        return MatrixColumns(self._matrix[rows])


@dataclass(frozen=True, eq=False)
class DensityFit:
    """A distribution over a sample space.

    Attributes
    ----------
    used : int array
        Numbers of the features that have a weight.
    weights : float array
        Their weights.
    scores : float array of shape (n_points,)
        lam . f of every point.
    log_z : float
        ln sum_i q0_i exp(score_i), q0 summing to one.
    objective : float
        Minus the regularised gain over q0.
    dual_gap : float
        Certified upper bound on the distance of the objective to its minimum.
    n_iter : int
        Rounds of the compiled solver.
    n_pricings : int
        Number of times that the gradients of all features were computed.
    n_columns : int
        Size of the working set at the end.
    converged : bool
    """

    used: np.ndarray
    weights: np.ndarray
    scores: np.ndarray
    log_z: float
    objective: float
    dual_gap: float
    n_iter: int
    n_pricings: int
    n_columns: int
    converged: bool


def fit_density(
    source: ColumnSource,
    means: np.ndarray,
    penalties: np.ndarray | BlockPenalties,
    presence: np.ndarray,
    q0: np.ndarray,
    *,
    tol: float = 1e-6,
    max_iter: int = 1000,
    warm_start: tuple[np.ndarray, np.ndarray] | None = None,
) -> DensityFit:
    """Train a density to a certified duality gap over all features.

    Parameters
    ----------
    source : ColumnSource
    means : float array of shape (n_features,)
        p~[f].
    penalties : float array of shape (n_features,) or BlockPenalties
        beta; or half-widths of both sides, L2 penalties and limits. A penalty of inf leaves the feature out.
    presence, q0 : float arrays of shape (n_points,)
        The distributions p~ and q0 over the points; each sums to one.
    tol : float
        Stop when the duality gap, in nats, is at most tol times the log of the number of points.
    max_iter : int
        Maximum number of rounds of the compiled solver.
    warm_start : pair of arrays, optional
        Numbers of features, and their start weights.

    Returns
    -------
    DensityFit

    Warns
    -----
    ConvergenceWarning
        The duality gap is above its target.
    """
    target = tol * np.log(max(len(q0), 2))
    costs = penalties if isinstance(penalties, BlockPenalties) else plain_penalties(penalties)
    if warm_start is None and len(q0) >= COARSE_POINTS:
        warm_start = _start_coarse(source, means, penalties, presence, q0, tol, max_iter)
    working = _WorkingSet(source, means, costs, presence, q0, target)
    violation = find_violation(costs, means - source.means(q0))
    if warm_start is not None:
        working.extend(*warm_start)
    gap, n_pricings, n_stalled = np.inf, 1, 0
    while True:
        n_new = working.extend(choose_violators(violation, source.group, working.member, working.n_weights))
        status = working.run(min(INNER_ROUNDS, max_iter - working.n_iter))
        p = working.distribution()
        missing = means - source.means(p)
        n_pricings += 1
        violation = find_violation(costs, missing)
        before, gap = gap, working.gap(missing)
        n_stalled = n_stalled + 1 if n_new == 0 and status != "running" and gap >= before else 0
        if gap <= target or working.n_iter >= max_iter or n_stalled == MAX_STALLED:
            break
    if not gap <= target:
        why = "max_iter was reached" if working.n_iter >= max_iter else "no further decrease is possible"
        warnings.warn(
            f"training did not converge: {why} at a duality gap of {gap:.3g}, above its target of {target:.3g}",
            ConvergenceWarning,
            stacklevel=3,
        )
    return working.result(gap, n_pricings, bool(gap <= target))


def _start_coarse(source, means, penalties, presence, q0, tol, max_iter):
    """Compute start weights from a model of some of the points, including presences."""
    others = np.flatnonzero(presence == 0)
    others = others[:: max(2, COARSE_SHARE * len(others) // len(q0))]
    rows = np.union1d(np.flatnonzero(presence), others)
    mass = q0[rows].copy()
    taken = presence[rows] == 0
    mass[taken] *= (1 - mass[~taken].sum()) / mass[taken].sum()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        fit = fit_density(
            source.take(rows), means, penalties, presence[rows], mass, tol=max(tol, COARSE_TOL), max_iter=max_iter
        )
    return fit.used, fit.weights


def find_mixing(distance: np.ndarray, penalties: np.ndarray) -> float:
    """The least t with (1 - t) distance <= penalties."""
    outside = distance > penalties
    return (1.0 - penalties[outside] / distance[outside]).max(initial=0.0)


def plain_penalties(beta: np.ndarray) -> BlockPenalties:
    """L1 penalties that are the same for positive and negative weights, which have no limits."""
    none = np.zeros(len(beta))
    return BlockPenalties(beta, beta, none, none - np.inf, none + np.inf)


def find_violation(costs: BlockPenalties, missing: np.ndarray) -> np.ndarray:
    """By how much each feature leaves its interval, to the side where its weight of zero can move; -inf on the other.

    Parameters
    ----------
    costs : BlockPenalties
    missing : float array of shape (n_features,)
        p~[f] - p[f].

    Returns
    -------
    float array of shape (n_features,)
    """
    width, limit = _side(costs, missing)
    return np.where(limit > 0, np.abs(missing) + ROUNDING - width, -np.inf)


def _side(costs, missing):
    """Half-width and limit on the side to which the weight would go."""
    rises = missing > 0
    return np.where(rises, costs.lower, costs.upper), np.where(rises, costs.high, -costs.low)


class Outside:
    """The part of a certificate that features outside of the working set have in it.

    Parameters
    ----------
    costs : BlockPenalties
    missing : float array of shape (n_features,)
        p~[f] - p[f], before mixing.
    member : bool array of shape (n_features,)
        Features that are in the working set or left out.

    Attributes
    ----------
    least : float
        The smallest t for which the gap is finite.
    enough : float
        The smallest t for which every interval is met.
    """

    def __init__(self, costs: BlockPenalties, missing: np.ndarray, member: np.ndarray):
        distance = np.abs(missing) + ROUNDING
        width, limit = _side(costs, missing)
        soft = (costs.l2 > 0) | np.isfinite(limit)
        self.least = find_mixing(distance[~soft], width[~soft])
        mine = soft & ~member & (distance > width) & (limit > 0)
        self._distance, self._width, self._l2, self._limit = distance[mine], width[mine], costs.l2[mine], limit[mine]
        self.enough = max(self.least, find_mixing(self._distance, self._width))

    def conjugate(self, mixing: float) -> float:
        """Sum of the conjugates of the penalties."""
        beyond = np.maximum((1 - mixing) * self._distance - self._width, 0.0)
        with np.errstate(divide="ignore", over="ignore"):
            weight = np.where(self._l2 > 0, beyond / np.where(self._l2 > 0, self._l2, 1.0), np.inf)
        weight = np.minimum(weight, self._limit)
        return float((weight * (beyond - 0.5 * self._l2 * weight)).sum())


def choose_violators(violation: np.ndarray, group: np.ndarray, member: np.ndarray, n_weights: int) -> np.ndarray:
    """Select the largest violations among those that exceed their neighbours.

    Parameters
    ----------
    violation : float array of shape (n_features,)
        By how much each feature misses its interval; positive for violators.
    group : int array of shape (n_features,)
        See `ColumnSource`.
    member : bool array of shape (n_features,)
        Features that do not join.
    n_weights : int
        How many features have a weight: the more, the more may join.

    Returns
    -------
    int array
    """
    violation = np.where(member, -np.inf, violation)
    padded = np.concatenate([[-np.inf], violation, [-np.inf]])
    same = np.concatenate([[False], group[1:] == group[:-1], [False]])
    left, right = (np.where(edge, side, -np.inf) for edge, side in ((same[:-1], padded[:-2]), (same[1:], padded[2:])))
    found = np.flatnonzero((violation > 0) & (violation > left) & (violation >= right))
    return found[np.argsort(-violation[found], kind="stable")[: max(FEW, 2 * n_weights)]]


class _WorkingSet:
    """Features with columns, and the compiled solver for them."""

    def __init__(self, source, means, costs, presence, q0, target):
        self._source, self._means, self._costs = source, means, costs
        self._presence, self._q0, self._target = presence, q0, target
        self._features = np.empty(0, int)
        self._columns = np.empty((0, len(q0)))  # a row for each feature, and room for more
        self._solver = None
        self._rounds_before = 0
        self.member = ~np.isfinite(costs.lower)
        self._general = not _is_plain(costs)

    @property
    def n_iter(self):
        return self._rounds_before + (0 if self._solver is None else self._solver.n_iter)

    @property
    def _lam(self):
        return np.zeros(len(self._features)) if self._solver is None else self._solver.weights[0, :-1]

    @property
    def n_weights(self):
        return np.count_nonzero(self._lam)

    def extend(self, features, weights=0.0):
        """Add features and return their number. The solver continues from its weights."""
        if self._solver is not None and not len(features):
            return 0
        lam, self._rounds_before = self._lam.copy(), self.n_iter
        self._solver = None  # it refers to the columns
        lam = self._make_room(lam, len(features))
        n_before, n_points = len(self._features), len(self._q0)
        self._features = np.append(self._features, features).astype(int)
        lam = np.append(lam, np.broadcast_to(weights, len(features)))
        self.member[features] = True
        n_columns = len(self._features)
        for start in range(n_before, n_columns, COLUMNS_AT_ONCE):
            stop = min(start + COLUMNS_AT_ONCE, n_columns)
            self._source.fill(self._features[start:stop], self._columns[start:stop])
        columns = Columns(n_points, n_columns, None, None, self._columns[:n_columns].ravel())
        means = self._means[self._features][None]
        lower, upper, l2, low, high = (values[self._features][None] for values in self._costs)
        general = {"beta_upper": upper, "l2": l2, "low": low, "high": high} if self._general else {}
        problem = Problem(columns, means, lower, self._presence[None], self._q0, pooled=True, **general)
        start = np.flatnonzero(lam)
        warm_start = np.zeros(len(start), np.int32), start.astype(np.int32), lam[start], np.zeros(1)
        # Rounds go on until the gap over all features is small: that of the working set must be smaller.
        self._solver = Solver(problem, tol=0.1 * self._target, objective_zero=1.0, warm_start=warm_start, tight=False)
        return len(features)

    def _make_room(self, lam, n_new):
        """Make room for more columns, without zero weights if there are too many; return the weights."""
        n_points = len(self._q0)
        if (len(lam) + n_new) * n_points > MAX_CELLS and not lam.all():
            kept = np.flatnonzero(lam)
            self.member[self._features[lam == 0]] = False
            for place, k in enumerate(kept):
                self._columns[place] = self._columns[k]
            self._features, lam = self._features[kept], lam[kept]
        needed = len(lam) + n_new
        if needed > len(self._columns):
            columns = np.empty((max(needed, min(needed + max(needed, 2 * FEW), MAX_CELLS // n_points)), n_points))
            columns[: len(lam)] = self._columns[: len(lam)]
            self._columns = columns
        return lam

    def run(self, n_rounds):
        return self._solver.run(n_rounds)

    def distribution(self):
        """The distribution p of the certificate, before mixing."""
        flow = self._solver.certificate_flow()[0]
        return flow / flow.sum()

    def gap(self, missing):
        """The gap over all features, missing being p~[f] - p[f] of the distribution of the certificate."""
        outside = Outside(self._costs, missing, self.member)
        gap, share = self._gap_at(outside, outside.enough), 1.0
        if outside.enough > outside.least:
            gap = min(gap, self._gap_at(outside, outside.least))
        while share * outside.enough > outside.least and share > SMALLEST_SHARE:
            share *= 0.25
            before, gap = gap, min(gap, self._gap_at(outside, max(outside.least, share * outside.enough)))
            if gap == before and share < 0.25:
                break
        return gap

    def _gap_at(self, outside, mixing):
        mixing = max(mixing, self._solver.mixing)
        return self._solver.dual_gap_at(mixing) + outside.conjugate(mixing)

    def result(self, gap, n_pricings, converged):
        order = np.argsort(self._features)
        order = order[self._lam[order] != 0]
        used, weights = self._features[order], self._lam[order]
        scores = np.zeros(len(self._q0))
        for k, weight in zip(order, weights, strict=True):
            scores += weight * self._columns[k]
        shift = scores.max()
        log_z = shift + np.log(self._q0 @ np.exp(scores - shift))
        return DensityFit(
            used=used,
            weights=weights,
            scores=scores,
            log_z=float(log_z),
            objective=float(log_z - weights @ self._means[used] + _total_cost(self._costs, used, weights)),
            dual_gap=float(gap),
            n_iter=self.n_iter,
            n_pricings=n_pricings,
            n_columns=len(self._features),
            converged=converged,
        )


def _is_plain(costs):
    """Whether the penalties are those of L1 alone."""
    return (
        not costs.l2.any()
        and not np.isfinite(costs.low).any()
        and not np.isfinite(costs.high).any()
        and np.array_equal(costs.lower, costs.upper)
    )


def _total_cost(costs, which, weights):
    lower, upper, l2 = (values[which] for values in costs[:3])
    return np.where(weights > 0, lower, upper) @ np.abs(weights) + 0.5 * l2 @ weights**2
