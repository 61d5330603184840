"""Slow numpy version of the library, written from the paper's formulas: the specification of every kernel.

Everything is dense and recomputed from scratch; nothing is imported from the package. Notation:
rows ``i``, columns ``j``, blocks ``c`` (a block holds the weights of one class, or of class / non-class).
A cell (c, i) has the score ``lam[c] @ X[i] + b[c] + offset[c, i]``. A coordinate is a pair ``(c, j)``;
``j = n_features`` is the intercept of block c, an unpenalised feature that is 1 everywhere.

minimise  sum_g w_g ln Z_g - sum_cj lam_cj p~_cj - sum_c b_c p~_c + sum_cj beta_cj |lam_cj|

or, in general, with the penalty r(x) = lower max(x, 0) + upper max(-x, 0) + l2 / 2 x^2, low <= x <= high, of each
weight, with one Z over all cells (``pooled``) or one per example, in which case ``reference`` adds a cell of score 0.
"""

from dataclasses import dataclass, replace
from typing import NamedTuple

import numpy as np
from scipy.optimize import minimize, minimize_scalar
from scipy.special import logsumexp, rel_entr

# ---------------------------------------------------------------------------------------------------- problem


@dataclass(frozen=True)
class Twin:
    """One convex problem.

    Parameters
    ----------
    X : ndarray of shape (n_samples, n_features)
    emp_mean, beta : ndarray of shape (n_blocks, n_features)
        Empirical means p~[f_cj] and penalties (0: unpenalised, inf: left out).
    target : ndarray of shape (n_blocks, n_samples)
        Empirical distribution: over all cells (pooled), or over the blocks given the example.
    mass : ndarray of shape (n_samples,)
        Base measure of an example (pooled), or its share of the loss (sums to 1).
    pooled, reference, intercept : bool
    offset : ndarray of shape (n_blocks, n_samples), optional
    beta_upper, l2, low, high : ndarray of shape (n_blocks, n_features), optional
        The general penalty, where beta is the cost of positive weights alone.
    """

    X: np.ndarray
    emp_mean: np.ndarray
    beta: np.ndarray
    target: np.ndarray
    mass: np.ndarray
    pooled: bool
    reference: bool = False
    intercept: bool = False
    offset: np.ndarray | None = None
    beta_upper: np.ndarray | None = None
    l2: np.ndarray | None = None
    low: np.ndarray | None = None
    high: np.ndarray | None = None

    @property
    def general(self):
        """(lower, upper, l2, low, high), arrays (n_blocks, n_features); an infinite cost is a limit of zero."""
        none = np.zeros_like(self.beta)
        lower, upper = self.beta, self.beta if self.beta_upper is None else self.beta_upper
        low = np.where(np.isinf(upper), 0, -np.inf if self.low is None else self.low)
        high = np.where(np.isinf(lower), 0, np.inf if self.high is None else self.high)
        return lower, upper, none if self.l2 is None else self.l2 + none, low + none, high + none

    @property
    def n_blocks(self):
        return len(self.emp_mean)

    @property
    def n_features(self):
        return self.X.shape[1]

    @property
    def cell_axis(self):
        """Axes of a (cells, samples) array that one normaliser sums over."""
        return None if self.pooled else 0

    @property
    def base(self):
        """Base measure of every cell, the reference cell last."""
        offset = np.zeros_like(self.target) if self.offset is None else self.offset
        base = np.exp(self._with_reference(offset))
        return base * self.mass if self.pooled else base

    @property
    def target_cells(self):
        """Empirical distribution over every cell, the reference cell last."""
        return np.vstack([self.target, 1 - self.target.sum(axis=0)]) if self.reference else self.target

    @property
    def class_prior(self):
        """p~(c): what the intercepts have to reproduce."""
        return self.target.sum(axis=1) if self.pooled else self.target @ self.mass

    def _with_reference(self, cells):
        return np.vstack([cells, np.zeros(cells.shape[1])]) if self.reference else cells

    def score(self, lam, b=None):
        """lam.f(x_i, c) + b_c, offset left out."""
        b = np.zeros(self.n_blocks) if b is None else b
        return lam @ self.X.T + b[:, None]

    def log_cells(self, lam, b=None):
        """Log of the unnormalised weight of every cell, the reference cell last."""
        score = self.score(lam, b) + (0 if self.offset is None else self.offset)
        with np.errstate(divide="ignore"):
            return self._with_reference(score) + (np.log(self.mass) if self.pooled else 0)

    def log_z(self, lam, b=None):
        """ln Z (pooled), or ln Z_i of every example."""
        return logsumexp(self.log_cells(lam, b), axis=self.cell_axis)

    def cell_prob(self, lam, b=None):
        """q of every cell, the reference cell last."""
        return np.exp(self.log_cells(lam, b) - self.log_z(lam, b))

    def prob(self, lam, b=None):
        """q(x_i, c) (pooled), or q(c | x_i)."""
        return self.cell_prob(lam, b)[: self.n_blocks]

    def mean(self, prob):
        """p[f_cj] for any distribution over the cells; the last column is p(c)."""
        weight = prob[: self.n_blocks] * (1 if self.pooled else self.mass)
        return np.column_stack([weight @ self.X, weight.sum(axis=1)])

    def model_mean(self, lam, b=None):
        """q[f_cj]."""
        return self.mean(self.cell_prob(lam, b))[:, :-1]

    def neg_log_lik(self, lam, b=None):
        """The loss without the penalty."""
        log_z = self.log_z(lam, b)
        linear = np.sum(lam * self.emp_mean) + (0 if b is None else b @ self.class_prior)
        return float((log_z if self.pooled else self.mass @ log_z) - linear)

    def penalty(self, lam):
        lower, upper, l2, _, _ = self.general
        up, down = lam > 0, lam < 0
        return float(lower[up] @ lam[up] - upper[down] @ lam[down] + 0.5 * np.sum(l2 * lam**2))

    def objective(self, lam, b=None):
        return self.neg_log_lik(lam, b) + self.penalty(lam)

    def gradient(self, lam, b=None):
        """Gradient of `neg_log_lik`, (n_blocks, n_features + 1); the intercepts are the last column."""
        return self.mean(self.cell_prob(lam, b)) - np.column_stack([self.emp_mean, self.class_prior])

    def cell_features(self, coords):
        """f_k(c, i) of the coordinates k, (n_coords, n_cells, n_samples); zero on the reference cell."""
        columns = np.column_stack([self.X, np.ones(len(self.X))])
        features = np.zeros((len(coords), self.n_blocks + self.reference, len(self.X)))
        for k, (c, j) in enumerate(coords):
            features[k, c] = columns[:, j]
        return features

    def hessian(self, coords, lam, b=None):
        """Covariance of the coordinates under q, averaged over the normalisers."""
        prob = self.cell_prob(lam, b)
        features = self.cell_features(coords)
        if self.pooled:
            flat = features.reshape(len(coords), -1)
            centred = flat - (flat @ prob.ravel())[:, None]
            return (centred * prob.ravel()) @ centred.T
        centred = features - np.sum(features * prob, axis=1, keepdims=True)
        flat = centred.reshape(len(coords), -1)
        return (flat * (prob * self.mass).ravel()) @ flat.T

    def column_moments(self, c, j, lam, b=None):
        """(W, H) of a coordinate: q[f_cj], and the second derivative of the loss along it."""
        x, q = self.X[:, j], self.prob(lam, b)[c]
        if self.pooled:
            mean = q @ x
            return mean, q @ (x - mean) ** 2 + (1 - q.sum()) * mean**2  # f is 0 in the other blocks
        return (self.mass * q) @ x, (self.mass * q * (1 - q)) @ x**2


# ----------------------------------------------------------------------------------------------------- bounds
#
# Each bound says by how much at most the objective changes when one weight goes from lam to lam + delta.
# p = p~[f], q = q[f]; rho = sum_i u_i x_i; curvature = H; radius = R.


def penalty_change(delta, lam, beta):
    if delta == 0:
        return 0.0
    return beta * (abs(lam + delta) - abs(lam))


def bound_paper(delta, p, q, lam, beta):
    """Eq. (bound) and (nbound) of the paper, x in [0, 1]; exact for binary features if pooled."""
    return bound_column(delta, p, q, 1.0, lam, beta)


def bound_column(delta, p, q, rho, lam, beta):
    """Jensen over the rows of the column only; one normaliser per example, x in [0, 1]."""
    log_ratio = 0.0
    if rho > 0:
        # ln(1 - q + q e^delta), the share q / rho of the column's rows being tilted
        log_ratio = rho * logsumexp([0.0, delta], b=[1 - q / rho, q / rho])
    return -delta * p + log_ratio + penalty_change(delta, lam, beta)


def bound_curvature(delta, p, q, curvature, radius, lam, beta):
    """Generalised self-concordance, |phi'''| <= R phi''; any normaliser, any real x."""
    step = radius * abs(delta)
    excess = curvature / radius**2 * (np.expm1(step) - step) if radius > 0 else 0.0
    return (q - p) * delta + excess + penalty_change(delta, lam, beta)


def closed_form_delta(root, lam, beta):
    """Minimiser of a bound whose smooth part plus ``slope * delta`` is least at ``root(slope)``."""
    delta = root(beta)
    if lam + delta > 0:
        return delta
    delta = root(-beta)
    if lam + delta < 0:
        return delta
    return -lam


def delta_paper(p, q, lam, beta):
    """Minimiser of `bound_paper`."""
    return delta_column(p, q, 1.0, lam, beta)


def delta_column(p, q, rho, lam, beta):
    """Minimiser of `bound_column`; infinite where the bound has no minimum."""

    def root(slope):
        mean = p - slope  # what q[f] has to become
        if q <= 0 or q >= rho:  # the bound is a straight line of slope q - mean
            return -np.inf * np.sign(q - mean) if q != mean else 0.0
        if mean <= 0:
            return -np.inf
        if mean >= rho:
            return np.inf
        return np.log(mean * (rho - q) / ((rho - mean) * q))

    return closed_form_delta(root, lam, beta)


def delta_curvature(p, q, curvature, radius, lam, beta):
    """Minimiser of `bound_curvature`; infinite where the bound has no minimum."""

    def root(slope):
        gradient = q - p + slope
        if gradient == 0:
            return 0.0
        if curvature <= 0 or radius <= 0 or np.isinf(gradient):
            return -np.inf * np.sign(gradient)
        return -np.sign(gradient) * np.log1p(radius * abs(gradient) / curvature) / radius

    return closed_form_delta(root, lam, beta)


def brute_force_delta(bound, lam, span=40.0):
    """Minimiser of the convex ``bound(delta)`` in [-lam - span, -lam + span], kink included, by search."""
    if np.isinf(bound(-lam + 1.0)):  # beta = inf
        return -lam
    best = [-lam]
    for low, high in ((-lam - span, -lam), (-lam, -lam + span)):
        options = {"xatol": 1e-12, "maxiter": 1000}
        found = minimize_scalar(bound, bounds=(low, high), method="bounded", options=options)
        best += [low, found.x, high]
    return min(best, key=bound)


# ------------------------------------------------------------------------------------------------ certificate


class Certificate(NamedTuple):
    """``t`` and ``prob`` of p_t = (1 - t) p + t p~, its entropy, and the duality gap."""

    t: float
    prob: np.ndarray
    entropy: float
    gap: float


def equality_coords(twin):
    """Coordinates whose expectation a primal-feasible distribution has to reproduce exactly."""
    lower, upper, l2, low, high = twin.general
    coords = np.argwhere((lower == 0) & (upper == 0) & (l2 == 0) & np.isinf(low) & np.isinf(high))
    coords = [(int(c), int(j)) for c, j in coords]
    return coords + [(c, twin.n_features) for c in range(twin.n_blocks)] * twin.intercept


def satisfy_equalities(twin, lam, b=None):
    """q, corrected to first order so that unpenalised features and intercepts have their empirical mean.

    p = q (1 + f.alpha - q[f.alpha]), with alpha from the small linear system H alpha = p~[f] - q[f].
    """
    prob = twin.cell_prob(lam, b)
    coords = equality_coords(twin)
    if not coords:
        return prob
    short = -np.array([twin.gradient(lam, b)[c, j] for c, j in coords])
    alpha = np.linalg.lstsq(twin.hessian(coords, lam, b), short, rcond=None)[0]
    tilt = np.tensordot(alpha, twin.cell_features(coords), axes=1)
    return prob * (1 + tilt - np.sum(prob * tilt, axis=twin.cell_axis))


def entropy(twin, prob):
    """Entropy of a distribution over the cells, relative to the base measure."""
    relative = rel_entr(prob, twin.base)
    return -float(np.sum(relative if twin.pooled else relative * twin.mass))


def certificate(twin, lam, b=None):
    """The duality gap: objective - entropy(p_t), with the smallest t that makes p_t feasible.

    Where a first-order correction of q cannot meet the equalities, t = 1: p~ itself meets every constraint.
    """
    prob = satisfy_equalities(twin, lam, b)
    emp_mean = np.column_stack([twin.emp_mean, twin.class_prior])
    off = np.abs(twin.mean(prob) - emp_mean)
    unmet = [off[c, j] > 1e-10 * (1 + abs(emp_mean[c, j])) for c, j in equality_coords(twin)]
    violated = (twin.beta > 0) & (off[:, :-1] > twin.beta)
    t = float(np.max(1 - twin.beta[violated] / off[:, :-1][violated], initial=0.0))
    if any(unmet) or prob.min() < -1e-13:
        t = 1.0
    mixed = (1 - t) * np.maximum(prob, 0) + t * twin.target_cells
    value = entropy(twin, mixed)
    return Certificate(t, mixed, value, twin.objective(lam, b) - value)


def conjugate(penalty, u):
    """r*(u) = max over x of u x - r(x), of one penalty (lower, upper, l2, low, high); inf where there is no maximum."""
    lower, upper, l2, low, high = penalty
    width, end = (lower, high) if u > 0 else (upper, -low)
    beyond = abs(u) - width
    if not beyond > 0 or end == 0:
        return 0.0
    x = min(end, beyond / l2 if l2 > 0 else np.inf)
    return np.inf if np.isinf(x) else x * beyond - 0.5 * l2 * x**2


def general_gap(twin, lam, b, t):
    """KL(p_t || q) + sum_k r(lam_k) + r*(u_k) - lam_k u_k, u = p~ - p_t[f], p_t as in `certificate`.

    Free coordinates, of which p_t has the empirical mean, are left out of the sum.
    """
    prob = (1 - t) * satisfy_equalities(twin, lam, b) + t * twin.target_cells
    relative = rel_entr(prob, twin.cell_prob(lam, b))
    gap = float(np.sum(relative if twin.pooled else relative * twin.mass))
    u = twin.emp_mean - twin.mean(prob)[:, :-1]
    u -= np.sign(u) * np.minimum(np.abs(u), 1e-14)  # an end of an interval is met to rounding errors
    lower, upper, l2, low, high = twin.general
    for k in np.ndindex(*lam.shape):
        if lower[k] == upper[k] == l2[k] == 0 and np.isinf([low[k], high[k]]).all():
            continue
        penalty = lower[k], upper[k], l2[k], low[k], high[k]
        own = lower[k] * lam[k] if lam[k] > 0 else -upper[k] * lam[k] if lam[k] < 0 else 0.0
        gap += own + 0.5 * l2[k] * lam[k] ** 2 + conjugate(penalty, u[k]) - lam[k] * u[k]
    return gap


def solve_intercept(twin, lam, n_steps=100):
    """The intercepts that minimise the objective for given weights, by damped Newton steps."""
    b = np.zeros(twin.n_blocks)
    if not twin.intercept:
        return b
    if twin.pooled:
        with np.errstate(divide="ignore"):
            return np.log(twin.class_prior) - logsumexp(twin.log_cells(lam), axis=1)
    coords = [(c, twin.n_features) for c in range(twin.n_blocks)]
    for _ in range(n_steps):
        gradient = twin.gradient(lam, b)[:, -1]
        step = np.linalg.lstsq(twin.hessian(coords, lam, b), -gradient, rcond=1e-13)[0]
        step *= min(1.0, 2.0 / max(np.abs(step).max(), 1e-300))
        b = b + step
        if np.abs(step).max() < 1e-15:
            break
    return b


def objective_zero(twin):
    """The objective with all weights zero and the intercept fitted."""
    lam = np.zeros_like(twin.emp_mean)
    return twin.objective(lam, solve_intercept(twin, lam))


# -------------------------------------------------------------------------------------------- the five models


def deviation_scale(second_moment, mean, value_range, size):
    """sigma~[f] / sqrt(m), sigma~ no smaller than that of a feature seen once among m examples."""
    once = value_range * (np.sqrt(1 / size * (1 - 1 / size)) if size >= 2 else 0.5)
    return np.maximum(np.sqrt(np.maximum(second_moment - mean**2, 0)), once) / np.sqrt(size)


def beta_of_rule(X, target, size, beta=0.5, beta_rule="deviation", within_class=False):
    """beta_cj for the empirical distribution ``target`` (blocks, samples) of ``size`` examples.

    The range of a feature f_cj takes in zero, its value in the cells of the other classes if there are any.
    """
    scale = np.full((len(target), X.shape[1]), 1 / size)
    if beta_rule == "deviation":
        others = X[:0] if within_class else np.zeros((1, X.shape[1]))
        value_range = np.ptp(np.vstack([X, others]), axis=0)
        scale = deviation_scale(target @ X**2, target @ X, value_range, size)
    beta = np.broadcast_to(beta, scale.shape)
    return np.where(np.isinf(beta), np.inf, np.where(np.isinf(beta), 0, beta) * scale)


def exclusive_labels(X, Y, sample_weight, multilabel_weighting="duplicate"):
    """Rows with a label, their p~(c|x_i), and their weight: w_i K_i (duplicate) or w_i (equal)."""
    n_labels = Y.sum(axis=1)
    keep = n_labels > 0
    weight = sample_weight * n_labels if multilabel_weighting == "duplicate" else sample_weight
    return X[keep], Y[keep] / n_labels[keep, None], weight[keep]


def class_indicator(y):
    """Non-class and class as two exclusive labels, in this order."""
    return np.column_stack([1 - y, y])


def joint(X, labels, sample_weight, beta=0.5, beta_rule="deviation", intercept=True, offset=None):
    """Q1: one Z over all cells. With `class_indicator` labels: Q1(lambda^c)."""
    size = sample_weight.sum()
    target = (labels * sample_weight[:, None]).T / size
    beta = beta_of_rule(X, target, size, beta, beta_rule)
    return Twin(X, target @ X, beta, target, sample_weight, pooled=True, intercept=intercept, offset=offset)


def class_conditional(X, labels, sample_weight, c, beta=0.5, beta_rule="deviation", offset=None):
    """Q2 of class c: one Z over the examples; means and m are those of the class."""
    class_weight = sample_weight * labels[:, c]
    target = (class_weight / class_weight.sum())[None]
    beta = beta_of_rule(X, target, class_weight.sum(), beta, beta_rule, within_class=True)
    return Twin(X, target @ X, beta, target, sample_weight, pooled=True, offset=offset)


def conditional(X, labels, sample_weight, beta=0.5, beta_rule="deviation", intercept=True, offset=None):
    """Q3: one Z per example. With `class_indicator` labels: Q3(lambda^c), two weight vectors."""
    size = sample_weight.sum()
    mass = sample_weight / size
    cells = labels.T * mass
    beta = beta_of_rule(X, cells, size, beta, beta_rule)
    return Twin(X, cells @ X, beta, labels.T, mass, pooled=False, intercept=intercept, offset=offset)


def conditional_reference(X, y, sample_weight, beta=0.5, beta_rule="deviation", intercept=True, offset=None):
    """Q3(lambda^c) on lambda_1 - lambda_0, with the smaller of the two penalties."""
    both = conditional(X, class_indicator(y), sample_weight, beta, beta_rule, intercept)
    return replace(
        both,
        emp_mean=both.emp_mean[1:],
        beta=both.beta.min(axis=0, keepdims=True),
        target=both.target[1:],
        reference=True,
        offset=offset,
    )


def model_twins(
    X, Y, distribution, label_mode, *, sample_weight=None, multilabel_weighting="duplicate", offset=None, beta=0.5,
    beta_rule="deviation", intercept=True,
):  # fmt: skip
    """The problems that make up one of the five models, from an indicator Y: one, or one per class.

    Examples of weight zero are left out, and with exclusive classes those without a label. ``offset`` is None or an
    array (n_samples, n_classes). A problem of an independent class has the blocks non-class and class.
    """
    weight = np.ones(len(X)) if sample_weight is None else sample_weight
    keep = weight > 0
    if label_mode == "exclusive":
        keep = keep & (Y.sum(axis=1) > 0)
    X, Y, weight = X[keep], Y[keep], weight[keep]
    offset = None if offset is None else offset[keep]
    if label_mode == "exclusive":
        X, Y, weight = exclusive_labels(X, Y, weight, multilabel_weighting)
    options = {"beta_rule": beta_rule}
    betas = [beta[c] if np.ndim(beta) == 2 else beta for c in range(Y.shape[1])]
    if distribution == "class-conditional":
        offsets = [None if offset is None else offset[:, [c]].T for c in range(Y.shape[1])]
        return [
            class_conditional(X, Y, weight, c, offset=offsets[c], beta=betas[c], **options) for c in range(Y.shape[1])
        ]
    make = {"joint": joint, "conditional": conditional}[distribution]
    options["intercept"] = intercept
    if label_mode == "exclusive":
        return [make(X, Y, weight, offset=None if offset is None else offset.T, beta=beta, **options)]
    none = np.zeros(len(X))
    offsets = [None if offset is None else np.stack([none, offset[:, c]]) for c in range(Y.shape[1])]
    return [
        make(X, class_indicator(Y[:, c]), weight, offset=offsets[c], beta=betas[c], **options)
        for c in range(Y.shape[1])
    ]


# ----------------------------------------------------------------------------------------------------- oracle


LEAST_DAMPING = 1e-13  # of the Hessian of a Newton step, relative to its trace


class Optimum(NamedTuple):
    lam: np.ndarray
    b: np.ndarray
    objective: float


def oracle(twin, tol=1e-15, max_iter=2000):
    """The optimum by L-BFGS-B on lam = pos - neg, pos, neg >= 0, then active-set Newton steps.

    ``tol`` is the largest slope left, with every column scaled to max |x| = 1.
    Coordinates with beta = inf stay at zero.
    """
    scale = np.abs(twin.X).max(axis=0)
    scale[scale == 0] = 1
    lower, upper, l2, low, high = twin.general
    scaled = replace(
        twin, X=twin.X / scale, emp_mean=twin.emp_mean / scale, beta=lower / scale, beta_upper=upper / scale,
        l2=l2 / scale**2, low=low * scale, high=high * scale,
    )  # fmt: skip
    theta = polish(scaled, split_minimum(scaled, max_iter), tol)
    lam, b = theta[:, :-1] / scale, theta[:, -1]
    if not twin.reference:
        b = b - b.mean()  # a shift of all classes changes nothing, but a great one would cost digits
    return Optimum(lam, b, twin.objective(lam, b))


def all_penalties(twin):
    """(lower, upper, l2, low, high) with one more column for the intercepts: free, or inf where there are none."""
    free = 0.0 if twin.intercept else np.inf
    intercepts = free, free, 0.0, -np.inf, np.inf
    columns = zip(twin.general, intercepts, strict=True)
    return [np.column_stack([array, np.full(twin.n_blocks, value)]) for array, value in columns]


def split_minimum(twin, max_iter):
    """L-BFGS-B on the split variables; weights and intercepts as one (n_blocks, n_features + 1) array."""
    lower, upper, l2, low, high = all_penalties(twin)
    used_pos, used_neg = np.isfinite(lower) & (high > 0), np.isfinite(upper) & (low < 0)
    n_pos = used_pos.sum()
    start = np.zeros(lower.shape)
    start[:, -1] = solve_intercept(twin, start[:, :-1])

    def join(split):
        theta = np.zeros(lower.shape)
        theta[used_pos] += split[:n_pos]
        theta[used_neg] -= split[n_pos:]
        return theta

    def evaluate(split):
        theta = join(split)
        lam, b = theta[:, :-1], theta[:, -1]
        gradient = twin.gradient(lam, b)
        pos, neg = gradient[used_pos] + lower[used_pos], -gradient[used_neg] + upper[used_neg]
        l2s = np.concatenate([l2[used_pos], l2[used_neg]])
        costs = np.concatenate([lower[used_pos], upper[used_neg]])
        value = twin.neg_log_lik(lam, b) + costs @ split + 0.5 * l2s @ split**2
        return value, np.concatenate([pos, neg]) + l2s * split

    split = np.concatenate([np.maximum(start[used_pos], 0), np.maximum(-start[used_neg], 0)])
    if not split.size:
        return start
    options = {"maxiter": max_iter, "maxfun": 10 * max_iter, "ftol": 1e-16, "gtol": 1e-13, "maxcor": 30}
    bounds = [(0, end) for end in np.concatenate([high[used_pos], -low[used_neg]])]
    for _ in range(3):
        split = minimize(evaluate, split, method="L-BFGS-B", jac=True, bounds=bounds, options=options).x
    return join(split)


def polish(twin, theta, tol, max_steps=200):
    """Newton steps on the weights that are, or want to be, nonzero; one that would cross zero stops there.

    So does one at its limit. A step is taken when it lowers the objective or, at the limit of floating point, the
    largest slope. Where steps have to be short, the Hessian is nearly singular: its diagonal is raised until they are
    not.
    """
    damping = LEAST_DAMPING
    lower, upper, l2, low, high = all_penalties(twin)
    kinked = (lower > 0) | (upper > 0)

    def evaluate(theta):
        gradient = twin.gradient(theta[:, :-1], theta[:, -1]) + l2 * theta
        sign = np.where(theta != 0, np.sign(theta), -np.sign(gradient))
        with np.errstate(invalid="ignore"):
            full = gradient + np.where(sign > 0, lower, -upper)
            moves = np.where(theta != 0, True, np.where(sign > 0, full < 0, full > 0)) | ~kinked
            moves &= ~((theta >= high) & (full < 0)) & ~((theta <= low) & (full > 0)) & np.isfinite(full)
        slope = np.where(moves, full, 0.0)
        return twin.objective(theta[:, :-1], theta[:, -1]), slope, sign, moves

    value, slope, sign, free = evaluate(theta)
    for _ in range(max_steps):
        worst = np.abs(slope).max()
        if worst <= tol:
            break
        curvature = twin.hessian(np.argwhere(free), theta[:, :-1], theta[:, -1]) + np.diag(l2[free])
        ridge = damping * (np.trace(curvature) + LEAST_DAMPING) * np.eye(len(curvature))
        direction = np.zeros_like(theta)
        direction[free] = -np.linalg.solve(curvature + ridge, slope[free])
        for step in 0.5 ** np.arange(40):
            trial = theta + step * direction
            trial[(trial * sign < 0) & kinked] = 0
            trial = np.clip(trial, low, high)
            trial_value, *rest = evaluate(trial)
            rounding = 4e-16 * (1 + abs(value))
            if trial_value < value - rounding or (trial_value <= value + rounding and np.abs(rest[0]).max() < worst):
                break
        else:
            break
        theta, value, (slope, sign, free) = trial, trial_value, rest
        damping = min(100 * damping, 1.0) if step < 0.1 else max(damping / 10, LEAST_DAMPING)
    return theta


# -------------------------------------------------------------------------------------- the paper's algorithm


def sequential(twin, n_updates):
    """The paper's algorithm: full pricing, `bound_paper`, one weight at a time; no intercept, x in [0, 1].

    Returns the weights, the coordinates in the order chosen, and the objective at the start and after every
    update.
    """
    lam = np.zeros_like(twin.emp_mean)
    chosen, objective = [], [twin.objective(lam)]
    for _ in range(n_updates):
        model_mean = twin.model_mean(lam)
        delta = np.vectorize(delta_paper, otypes=[float])(twin.emp_mean, model_mean, lam, twin.beta)
        gain = -np.vectorize(bound_paper, otypes=[float])(delta, twin.emp_mean, model_mean, lam, twin.beta)
        c, j = np.unravel_index(np.argmax(gain), gain.shape)
        if gain[c, j] <= 0:
            break
        lam[c, j] += delta[c, j]
        chosen.append((int(c), int(j)))
        objective.append(twin.objective(lam))
    return lam, chosen, objective
