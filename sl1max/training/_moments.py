"""Maximum entropy from moments: a distribution over a sample space from means and intervals.

Asked for is the distribution over the points x of a background that is nearest to a default q0,

    minimise KL(p || q0)  subject to  |p[f_j] - means_j| <= betas_j  for every feature j,

which is q(x) = q0(x) exp(weights . x) / Z, with the weights that minimise the core's objective

    ln Z - weights . means + sum_j betas_j |weights_j|  >=  -KL(p || q0)  for every p that meets the constraints.

The certificate of `sl1max.fit` mixes the model with the empirical distribution, which meets every constraint. Means
alone come with no such distribution, and there may be none that has them exactly: published figures are rounded, and it
is their intervals that must be met. What is offered here is the model itself, corrected to first order (see
`Certificate`): it exists when the model is near the optimum, and the gap is infinite until then. That needs no second
problem to be solved, and what it adds to the gap is of second order in the correction. A p that meets the constraints
with room to spare, from a linear programme, say, would give a gap from the first step, but at the cost of a problem as
large as the one itself, and none where the constraints have no inner point, as with a beta of zero.

If no distribution meets the constraints the objective falls for ever, along weights that prove it: over all points
weights . x is less than the least value that the intervals allow. Each round looks for that proof; where the
constraints are missed by little it is long in coming, and a linear programme finds it.
"""

from __future__ import annotations

import warnings
from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike
from scipy import linalg, sparse
from scipy.optimize import linprog
from scipy.special import xlog1py

from sl1max._core._scoring import Weights, score_rows
from sl1max._core._solver import Problem, Solver
from sl1max._data.inputs import MomentData, check_options, read_moments, read_rows
from sl1max._data.penalties import scale_columns
from sl1max._data.precision import find_imprecision, smallest_nonzero
from sl1max._utils.typing import Matrix
from sl1max.exceptions import ConvergenceWarning, InfeasibleMomentsError

ROUNDING = 1e-12  # of a mean, relative to the largest value of its feature
SMALLEST_VARIANCE = 1e-200  # variance of a feature, relative to the square of its largest value, that a correction uses
LARGEST_TILT = 1e100  # beyond, the correction has diverged
MAX_CORRECTED = 4000  # maximum number of constraints in a correction, which solves a system of this size
MAX_ATTEMPTS = 5
PATIENCE = 50  # rounds after which linear programming checks whether there is a solution
N_SHOWN = 5


@dataclass(frozen=True, eq=False, repr=False)
class MomentModel:
    """Distribution over a sample space, returned by `fit_moments`.

    Attributes
    ----------
    weights : ndarray of shape (n_features,)
        lambda: q(x) = q0(x) exp(weights . x - log_z).
    log_z : float
    proba : ndarray of shape (n_background,)
        q over the rows of the background; sums to one.
    expectations : ndarray of shape (n_features,)
        q[f_j], the means of the features under q.
    objective : float
        ``ln Z - weights . means + sum_j betas_j |weights_j|``: at the optimum -KL(q || q0).
    dual_gap : float
        Certified upper bound on the distance of the objective to its minimum; inf if there is none.
    n_iter : int
        Rounds.
    converged : bool
        dual_gap <= tol * ln(number of points), and double precision can certify it.
    """

    weights: np.ndarray
    log_z: float
    proba: np.ndarray
    expectations: np.ndarray
    objective: float
    dual_gap: float
    n_iter: int
    converged: bool

    def __repr__(self) -> str:
        state = "converged" if self.converged else "not converged"
        return (
            f"<sl1max.MomentModel: {len(self.proba)} points, {len(self.weights)} features, "
            f"{np.count_nonzero(self.weights)} weights, {state}>"
        )

    def log_ratio(self, X: Matrix) -> np.ndarray:
        """ln q(x) / q0(x) = weights . x - log_z, for points of the background or any others.

        Parameters
        ----------
        X : array or sparse matrix of shape (n_points, n_features)

        Returns
        -------
        ndarray of shape (n_points,)

        Examples
        --------
        >>> import numpy as np
        >>> import sl1max
        >>> points = np.array([[0, 0], [0, 1], [1, 0], [1, 1]])
        >>> model = sl1max.fit_moments([0.7, 0.5], 0.05, points)
        >>> np.allclose(np.exp(model.log_ratio(points)) / 4, model.proba)
        True
        """
        rows = read_rows(X, len(self.weights))
        by_feature = sparse.csc_array(self.weights[None])
        weights = Weights(1, by_feature.indptr, by_feature.indices, by_feature.data)
        ratio = np.empty((rows.n_rows, 1))
        score_rows(weights, rows, np.array([-self.log_z]), None, 0, rows.n_rows, ratio)
        return ratio[:, 0]


def fit_moments(
    means: ArrayLike | tuple[ArrayLike, ArrayLike],
    betas: ArrayLike | None,
    background: Matrix,
    *,
    q0: ArrayLike | None = None,
    tol: float = 1e-4,
    max_iter: int = 1000,
) -> MomentModel:
    """Fit the distribution of maximum entropy with given means over a sample space.

    Needs no examples, only what is published of them. With the means of a class's own examples and the training set
    as background this is the class-conditional model of `sl1max.fit`.

    Parameters
    ----------
    means : array of shape (n_features,), or a pair of such arrays
        A pair (low, high), with betas None, holds the ends of the intervals; an infinite one is open.
    betas : float, array of shape (n_features,) or None
        Half-widths of the intervals of the means. 0: the mean must be met exactly; inf: the feature is left out.
    background : array or sparse matrix of shape (n_background, n_features)
        The sample space, a row for each point.
    q0 : array of shape (n_background,), optional
        Default distribution, on any scale, to which the model is as close as the means allow. Points with default
        probability zero have probability zero. Uniform by default. For `sl1max.fit` it is ``offset=np.log(q0)``.
    tol : float
        Stop when the duality gap, in nats, is at most tol times the log of the number of points.
    max_iter : int
        Maximum number of rounds.

    Returns
    -------
    MomentModel

    Raises
    ------
    InfeasibleMomentsError
        No distribution over the background has these means within their intervals. The error names them.

    Warns
    -----
    ConvergenceWarning
        The duality gap is above its target; the model is the best one found.

    Examples
    --------
    A die whose mean is known to be 4.5, give or take 0.1:

    >>> import numpy as np
    >>> import sl1max
    >>> faces = np.arange(1, 7)[:, None]
    >>> die = sl1max.fit_moments([4.5], 0.1, faces)
    >>> die.proba.round(3)
    array([0.063, 0.087, 0.121, 0.169, 0.234, 0.325])
    >>> die.expectations.round(3)
    array([4.4])

    The same by the ends of the interval; and a mean that is at least 4:

    >>> bool(sl1max.fit_moments(([4.4], [4.6]), None, faces).expectations.round(3) == 4.4)
    True
    >>> sl1max.fit_moments((4, np.inf), None, faces).expectations.round(3)
    array([4.])
    """
    check_options(tol=tol, max_iter=max_iter)
    data = read_moments(means, betas, background, q0)
    _check_ranges(data)
    certificate = Certificate(data)
    target = tol * np.log(len(data.q0))
    imprecision = find_imprecision(
        data.matrix, data.columns.extent[:-1], data.columns.reach[:-1], data.betas,
        smallest=smallest_nonzero(data.matrix), name="background",
    )  # fmt: skip
    solver = _make_solver(data)
    lam = solver.weights[0, :-1]
    for n_rounds in [0] + [1] * max_iter:
        status = solver.run(n_rounds)
        decrease = certificate.move(lam)
        # A correction costs as much as a round and does not exist far from the optimum.
        last = status != "running" or solver.n_iter == max_iter
        gap = certificate.gap() if last or decrease <= 10 * target else np.inf
        if gap <= target or last:
            break
        _check_feasible(data, lam, certificate.scores)
        if solver.n_iter == PATIENCE:
            _check_feasible_exactly(data, certificate.bound)
    if not gap <= target:
        _check_feasible_exactly(data, certificate.bound)
        _warn_unconverged(gap, target, status, imprecision)
    elif imprecision:
        warnings.warn(f"fit_moments cannot certify the model: {imprecision}", ConvergenceWarning, stacklevel=2)
    proba = np.zeros(len(data.place))
    proba[data.place] = certificate.q
    return MomentModel(
        weights=lam.copy(),
        log_z=float(certificate.log_z),
        proba=proba,
        expectations=data.matrix.T @ certificate.q,
        objective=float(certificate.objective),
        dual_gap=float(gap),
        n_iter=solver.n_iter,
        converged=bool(gap <= target and imprecision is None),
    )


def _make_solver(data: MomentData) -> Solver:
    """Make the compiled solver of one block, without its own stopping rule, whose gap does not apply here.

    It mixes the model with a target. Of a single, unlikely point none is ever mixed in for nothing, so that with a
    tolerance of 0 the core stops only where the model needs no mixing: then its gap is one.
    """
    target = np.zeros((1, len(data.q0)))
    target[0, np.argmin(data.q0)] = 1.0
    problem = Problem(data.columns, data.means[None], data.betas[None], target, data.q0, pooled=True)
    return Solver(problem, tol=0.0)


class Certificate:
    """The model at given weights, and the duality gap there.

    For every distribution p that meets the constraints

        objective(lam) + KL(p || q0) = KL(p || q) + sum_j (betas_j |lam_j| + lam_j (p[f_j] - means_j))  >=  0

    bounds how far the objective is above its minimum, and no term of the sum is negative. The p offered is
    q (1 + tilt), the tilt being linear in the features and such that p has, of every feature with a weight, the end of
    the interval that the weight's sign calls for, and of every feature whose interval q has left, the end where it left
    it. If p is not a distribution or misses another interval (five times, after that was added), there is no gap yet.
    """

    def __init__(self, data: MomentData):
        self._data = data
        self._extent = data.columns.extent[:-1]
        self.bound = np.isfinite(data.betas) & (data.columns.reach[:-1] > 0)  # which features constrain the model
        self._end = np.where(self.bound, data.betas, 0.0)
        self.objective = np.inf

    def move(self, lam):
        """Compute scores, q, log_z and objective at lam. Return the decrease of the objective."""
        data = self._data
        before = self.objective
        self._lam = lam
        self.scores = data.matrix @ lam
        shift = self.scores.max()
        weight = data.q0 * np.exp(self.scores - shift)
        self.q = weight / weight.sum()
        self.log_z = shift + np.log(weight.sum())
        self.objective = self.log_z - lam @ data.means + np.abs(lam) @ self._end
        return before - self.objective

    def gap(self):
        """The duality gap, or inf."""
        lam, found = self._lam, self._correct()
        if found is None:
            return np.inf
        tilt, miss = found
        slack = np.maximum(self._end * np.abs(lam) + lam * miss, 0.0)
        return self.q @ excess(tilt) + slack.sum()

    def _correct(self):
        """(tilt, p[f] - means), or None."""
        lam = self._lam
        miss = self._miss(self.q)
        held = self.bound & ((lam != 0) | (self._end == 0))
        aim = -np.sign(lam) * self._end
        for _ in range(MAX_ATTEMPTS):
            outside = self.bound & (np.abs(miss) > self._end + ROUNDING * self._extent) & ~held
            aim[outside] = np.sign(miss[outside]) * self._end[outside]
            held |= outside
            if np.count_nonzero(held) > MAX_CORRECTED:
                return None
            tilt = self._tilt(held, aim)
            if tilt is None or not tilt.min() >= -1.0:
                return None
            miss = self._miss(self.q * (1 + tilt))
            if (np.abs(miss) <= self._end + ROUNDING * self._extent)[self.bound].all():
                return tilt, miss
        return None

    def _miss(self, p):
        return self._data.matrix.T @ p - self._data.means

    def _tilt(self, held, aim):
        """Compute the dual correction that gives the selected features the target means, or None.

        With X the held columns it is X s - q . X s, where cov(X) s is what is missing of the means. A ridge keeps the
        factor from failing on columns that depend on each other; repeating the step makes up for it.
        """
        extent, q = self._extent[held], self.q
        columns = scale_columns(self._data.matrix[:, np.flatnonzero(held)], np.zeros(len(extent)), extent)
        mean = columns.T @ q
        covariance = weighted_gram(columns, q) - np.outer(mean, mean)
        scale = np.sqrt(np.where(np.diag(covariance) > SMALLEST_VARIANCE, np.diag(covariance), 1.0))
        ridge = 1e-10 * np.eye(len(scale))
        try:
            factor = linalg.cho_factor(covariance / np.outer(scale, scale) + ridge)
        except linalg.LinAlgError:
            return None
        tilt = np.zeros(len(q))
        wanted = (self._data.means[held] + aim[held]) / extent
        for _ in range(MAX_ATTEMPTS):
            missing = wanted - columns.T @ (q * (1 + tilt))
            if (np.abs(missing) <= 0.1 * ROUNDING).all():
                break
            change = columns @ (linalg.cho_solve(factor, missing / scale) / scale)
            tilt += change
            # That p sums to one is not left to rounding: a column of almost equal values would hide what it misses.
            total = q @ tilt
            tilt = (tilt - total) / (1 + total)
            if not np.abs(tilt).max() < LARGEST_TILT:
                return None
        return tilt


def excess(r):
    """(1 + r) ln(1 + r) - r: what a point adds to KL(p || q), per q, when p = (1 + r) q."""
    return xlog1py(1 + r, r) - r


def weighted_gram(columns, weight):
    """columns' diag(weight) columns, a dense array."""
    if sparse.issparse(columns):
        return (columns.T @ sparse.diags_array(weight) @ columns).toarray()
    return columns.T @ (columns * weight[:, None])


# Infeasible constraints


def _check_ranges(data):
    """Check that each interval contains possible values of its feature."""
    low, high = data.columns.low[:-1], data.columns.high[:-1]
    slack = ROUNDING * data.columns.extent[:-1]
    outside = (data.means - data.betas > high + slack) | (data.means + data.betas < low - slack)
    if outside.any():
        j = np.flatnonzero(outside)[0]
        raise InfeasibleMomentsError(
            f"means[{j}] = {data.means[j]:g} with betas[{j}] = {data.betas[j]:g} cannot be met: feature {j} goes from "
            f"{low[j]:g} to {high[j]:g} over the background"
        )


def _check_feasible(data, lam, scores):
    """Check whether lam proves that the constraints are infeasible."""
    end = np.where(lam != 0, data.betas, 0.0)
    least = lam @ data.means - np.abs(lam) @ end
    rounding = 1e-9 * (np.abs(lam) @ (np.abs(data.means) + end))
    if scores.max() < least - rounding:
        raise InfeasibleMomentsError(_describe_proof(lam, least, scores.max()))


def _check_feasible_exactly(data, bound):
    """Check feasibility by linear programming.

    The linear programme makes the intervals wider, by as little as it can in all, until some p is in them,

        minimise sum_j s_j  subject to  |p[f_j] - means_j| <= betas_j + s_j,  p a distribution,

    and its multipliers are those weights.
    """
    extent = data.columns.extent[:-1][bound]
    matrix = scale_columns(data.matrix[:, np.flatnonzero(bound)], np.zeros(len(extent)), extent)
    matrix, means, betas = sparse.csr_array(matrix.T), data.means[bound] / extent, data.betas[bound] / extent
    n_features, n_points = matrix.shape
    slack = -sparse.eye_array(n_features)
    done = linprog(
        np.concatenate([np.zeros(n_points), np.ones(n_features)]),
        sparse.block_array([[matrix, slack], [-matrix, slack]], format="csc"),
        np.concatenate([means + betas, betas - means]),
        np.concatenate([np.ones(n_points), np.zeros(n_features)])[None],
        [1.0],
        method="highs",
    )
    if done.status == 0:
        above, below = done.ineqlin.marginals.reshape(2, n_features)
        lam = np.zeros(len(bound))
        lam[bound] = (above - below) / extent
        _check_feasible(data, lam, data.matrix @ lam)


def _describe_proof(lam, least, most):
    """Describe the combination of features that proves the infeasibility."""
    scale = np.abs(lam).max()
    rounding = 1e-12 * max(abs(least), abs(most))
    least, most = (0.0 if abs(mean) < rounding else mean / scale for mean in (least, most))
    order = np.argsort(-np.abs(lam), kind="stable")[: np.count_nonzero(lam)]
    terms = [f"{lam[j] / scale:+.3g} feature[{j}]" for j in order[:N_SHOWN]]
    more = f" and {len(order) - N_SHOWN} more terms" if len(order) > N_SHOWN else ""
    return (
        f"the means cannot be met together: of {' '.join(terms)}{more} they ask, within their betas, for a mean of at "
        f"least {least:.6g}, but over the background it is at most {most:.6g}"
    )


def _warn_unconverged(gap, target, status, imprecision):
    why = "max_iter was reached" if status == "running" else "no further decrease is possible in floating point"
    warnings.warn(
        f"fit_moments did not converge: {why} at a duality gap of {gap:.3g}, above its target of {target:.3g}"
        + (f": {imprecision}" if imprecision else ""),
        ConvergenceWarning,
        stacklevel=3,
    )
