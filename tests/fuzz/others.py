"""Other trainers on the training sets of `fuzz.problems`: given moments, AdaBoost, paths, steps with changes.

Properties: numbers are finite, no RuntimeWarning, errors are ValueErrors. Of given moments: those of a distribution are
never called infeasible, and the gap is at least the distance to the optimum of the reference.
"""

from __future__ import annotations

import warnings

import numpy as np
import reference as ref
from scipy import sparse

import sl1max
from fuzz.campaign import Campaign, check, check_message, strict_warnings
from fuzz.problems import VALUES, make_labels, make_values, make_weight


def make_X(rng):
    kind = str(rng.choice(VALUES))
    n_samples, n_features = int(rng.integers(2, 80)), int(rng.integers(1, 15))
    X = make_values(rng, kind, n_samples, n_features)
    return kind, X, (X if rng.random() < 0.5 else sparse.csr_array(X))


def check_warnings(seen):
    for warning in seen:
        check(issubclass(warning.category, UserWarning), f"{warning.category.__name__}: {warning.message}")


def moments(rng):
    kind, X, background = make_X(rng)
    n_points = len(X)
    q0 = rng.exponential(size=n_points) * (rng.random(n_points) < 0.9) if rng.random() < 0.5 else None
    base = np.ones(n_points) if q0 is None else q0
    share = base * rng.exponential(size=n_points)
    feasible = share.sum() > 0 and rng.random() < 0.7
    with np.errstate(all="ignore"):
        p = share / share.sum()
        means = p @ X if feasible else rng.normal(size=X.shape[1]) * np.abs(X).max(axis=0)
        betas = 10.0 ** rng.uniform(-4, 0) * np.ptp(X, axis=0)
    betas[~np.isfinite(betas) | (betas == 0)] = 0.1
    if rng.random() < 0.2:
        betas[rng.random(len(betas)) < 0.3] = np.inf
    with strict_warnings() as seen:
        try:
            model = sl1max.fit_moments(means, betas, background, q0=q0)
        except sl1max.InfeasibleMomentsError as error:
            check_message(error)
            check(not feasible or kind == "extreme", f"called infeasible: {error}")
            return "moments: infeasible"
        except ValueError as error:
            check_message(error)
            check(kind == "extreme" or not base.any(), f"refused: {error}")
            return "moments: refused"
    check_warnings(seen)
    check(np.isfinite(model.proba).all() and abs(model.proba.sum() - 1) < 1e-9, "proba is no distribution")
    check(not np.isnan(model.dual_gap) and model.dual_gap >= 0, f"dual_gap is {model.dual_gap}")
    if not model.converged:
        check(seen, "not converged, and no warning")
        return "moments: stalled"
    if not feasible:
        return "moments: converged"
    mass = base / base.sum()
    twin = ref.Twin(X, means[None], betas[None], p[None], mass, pooled=True)
    with np.errstate(all="ignore"), warnings.catch_warnings():
        warnings.simplefilter("ignore")
        lam = model.weights[None] if model.weights.ndim == 1 else model.weights
        value, best = twin.objective(lam), ref.oracle(twin, max_iter=300)
    if np.isfinite(value) and np.isfinite(best.objective):
        size = 1 + np.sum(np.abs(lam) * np.abs(X).max(axis=0)) + np.sum(np.abs(best.lam) * np.abs(X).max(axis=0))
        above = value - best.objective
        check(above <= model.dual_gap + 1e-11 * size, f"{above} above the optimum, but its gap is {model.dual_gap}")
    return "moments: converged"


def boosting(rng):
    _, X, given = make_X(rng)
    y, _ = make_labels(rng, len(X), int(rng.integers(2, 4)), "exclusive")
    if not isinstance(y, np.ndarray) or y.ndim != 1:
        y = rng.integers(0, 2, len(X))
        y[:2] = 0, 1
    with strict_warnings() as seen:
        try:
            model = sl1max.AdaBoostClassifier(
                n_estimators=int(rng.integers(1, 40)),
                loss=str(rng.choice(["logistic", "exponential"])),
                smoothing=float(rng.choice([0.1, 0.5, 1e-9])),
            ).fit(given, y, sample_weight=make_weight(rng, len(X)))
        except ValueError as error:
            check_message(error)
            return "boosting: refused"
        scores = model.decision_function(given)
        proba = model.predict_proba(given)
    check_warnings(seen)
    check(np.isfinite(scores).all(), "a score that is not finite")
    check(np.isfinite(proba).all(), "a probability that is not finite")
    return "boosting: fitted"


def path(rng):
    _, X, given = make_X(rng)
    y = rng.integers(0, 3, len(X))
    y[:2] = 0, 1
    distribution = str(rng.choice(["conditional", "joint", "class-conditional"]))
    with strict_warnings() as seen:
        try:
            result = sl1max.path(given, y, distribution=distribution, sample_weight=make_weight(rng, len(X)))
        except ValueError as error:
            check_message(error)
            return "path: refused"
        for model in result.models:
            check(np.isfinite(model.weights.data).all(), "a weight that is not finite")
            check(not np.isnan(model.predict_log_proba(given)).any(), "a probability that is NaN")
            check(np.isfinite(model.objective).all(), "an objective that is not finite")
    check_warnings(seen)
    return "path: fitted"


def steps(rng):
    """Weights, targets and betas that change between steps; at the end the same as from the start."""
    _, X, given = make_X(rng)
    n_classes = int(rng.integers(2, 4))
    codes = rng.integers(0, n_classes, len(X))
    options = {
        "distribution": str(rng.choice(["conditional", "joint", "class-conditional"])),
        "label_mode": str(rng.choice(["exclusive", "independent"])),
    }
    Y = np.eye(n_classes)[codes]
    tol = 1e-5
    with strict_warnings() as seen:
        try:
            solver = sl1max.Solver(sl1max.Problem(given, Y, beta=0.5, **options), tol=tol)
            for _ in range(rng.integers(1, 5)):
                solver.step(int(rng.integers(0, 4)))
                match rng.integers(3):
                    case 0:
                        solver.reweight(rng.uniform(0.5, 2, len(X)))
                    case 1:
                        solver.set_beta(float(rng.uniform(0.1, 2)))
                    case _:
                        solver.set_target(np.eye(n_classes)[rng.permutation(codes)])
            solver.reweight(None)
            solver.set_beta(0.5)
            solver.set_target(Y)
            for _ in range(100):
                if solver.step(10) != "running":
                    break
            model = solver.result()
            alone = sl1max.fit(given, Y, beta=0.5, tol=tol, **options)
        except ValueError as error:
            check_message(error)
            return "steps: refused"
    check_warnings(seen)
    check(not np.isnan(model.dual_gap).any(), f"dual_gap is {model.dual_gap}")
    if not (np.all(model.converged) and np.all(alone.converged)):
        return "steps: stalled"
    differ = np.abs(np.subtract(model.objective, alone.objective))
    size = 1 + np.abs(alone.objective) + np.abs(alone.weights).dot(np.abs(X).max(axis=0)).max()
    allowed = np.maximum(model.dual_gap, alone.dual_gap) + 1e-10 * size
    check(np.all(differ <= allowed), f"steps and fit differ by {differ}")
    return "steps: converged"


def set_up(folder):
    cases = moments, moments, boosting, path, steps
    return lambda rng: cases[rng.integers(len(cases))](rng)


CAMPAIGN = Campaign(set_up, share=2.0)
