"""Made training sets: every fit against a slow independent one, and dense input against sparse.

Properties: the duality gap is at least the distance to the best objective that the reference finds; the objective is
that of the weights; what is marked as converged has a gap within its target; numbers are finite; no RuntimeWarning;
dense, CSR and CSC input give the same model, or the same error.
"""

from __future__ import annotations

import warnings
from dataclasses import replace

import numpy as np
import reference as ref
from problems import MODELS
from scipy import sparse

import sl1max
from fuzz.campaign import Campaign, check, check_equal_models, check_message, strict_warnings

VALUES = ("binary", "unit", "signed", "counts", "lattice", "heavy", "hostile", "extreme")
LARGEST = 1e100  # values beyond are refused


def make_values(rng, kind, n_samples, n_features):
    """A matrix of one kind of values."""
    shape = n_samples, n_features
    present = rng.random(shape) < rng.choice([0.05, 0.2, 0.5, 1.0])
    if kind == "binary":
        return present.astype(float)
    if kind == "unit":
        return present * rng.random(shape)
    if kind == "signed":
        return present * rng.integers(-1, 2, shape).astype(float)
    if kind == "counts":
        return present * (rng.zipf(1.7, shape) % 10_000).astype(float)
    if kind == "lattice":
        return present * rng.integers(-4, 5, shape) / 4
    if kind == "heavy":
        return present * np.clip(rng.standard_cauchy(shape), -1e6, 1e6)
    X = present * rng.normal(size=shape)
    spoil = _spoil if kind == "hostile" else _spoil_extremely
    for j in rng.integers(0, n_features, rng.integers(1, n_features + 1)):
        X[:, j] = spoil(rng, X, j)
    return X


def _spoil(rng, X, j):
    """A column that is hard on a solver."""
    n_samples = len(X)
    other = X[:, rng.integers(X.shape[1])]
    match rng.integers(9):
        case 0:
            return X[:, j] * 10.0 ** rng.integers(-8, 9)
        case 1:
            return np.full(n_samples, rng.choice([1.0, -3.0, 1e4, 0.0]))
        case 2:
            return other
        case 3:
            return -other
        case 4:
            return other * (1 + 1e-9 * rng.normal(size=n_samples))
        case 5:
            return rng.choice([1.0, 1e3, 1e6]) + 1e-3 * rng.normal(size=n_samples)
        case 6:
            return (np.arange(n_samples) == rng.integers(n_samples)) * 10.0 ** rng.integers(-3, 4)
        case 7:
            return (np.arange(n_samples) % 2) * 2.0 - 1  # sums to zero, or nearly
        case _:
            return np.sort(X[:, j])  # labels rise with the rows, too


def _spoil_extremely(rng, X, j):
    """A column at the limits of double precision."""
    n_samples = len(X)
    match rng.integers(6):
        case 0:
            return X[:, j] * 10.0 ** rng.integers(-320, 99)
        case 1:
            return np.full(n_samples, 1.0) + rng.integers(0, 2, n_samples) * 10.0 ** rng.integers(-17, -8)
        case 2:
            return np.where(rng.random(n_samples) < 0.5, X[:, j], 10.0 ** rng.integers(-30, -10))
        case 3:
            return rng.integers(0, 3, n_samples) * 5e-324
        case 4:
            return np.where(np.arange(n_samples) == 0, 10.0 ** rng.integers(1, 99), X[:, j])
        case _:
            return X[:, j] * 10.0 ** rng.integers(98, 120)  # to be refused, in part


def make_labels(rng, n_samples, n_classes, label_mode):
    """y as a caller gives it, and its indicator."""
    codes = np.sort(rng.integers(0, n_classes, n_samples))
    codes = codes if rng.random() < 0.3 else rng.permutation(codes)
    first = min(n_classes, n_samples)
    codes[:first] = np.arange(first)
    indicator = np.eye(n_classes)[codes]
    kind = rng.choice(["vector", "indicator", "soft"])
    if kind == "vector":
        return np.array(["abcdefgh"[code] for code in codes]), indicator[:, np.unique(codes)]
    if kind == "indicator":
        Y = np.maximum(indicator, rng.random(indicator.shape) < 0.2)
        if rng.random() < 0.3:
            Y[rng.random(n_samples) < 0.1] = 0
    else:
        Y = indicator * 0.8 + rng.random(indicator.shape) * 0.2
        if label_mode == "exclusive" and rng.random() < 0.5:
            Y = Y * rng.uniform(0.1, 10, (n_samples, 1))
        else:
            Y = np.minimum(Y, 1)
    return (sparse.csr_array(Y) if rng.random() < 0.5 else Y), Y


def make_weight(rng, n_samples):
    match rng.integers(7):
        case 0:
            return rng.integers(0, 4, n_samples).astype(float)
        case 1:
            return rng.uniform(0.1, 3, n_samples)
        case 2:
            return 10.0 ** rng.uniform(-3, 3, n_samples)
        case 3:
            return 10.0 ** rng.uniform(-10, 10) * rng.uniform(0.5, 2, n_samples)
        case _:
            return None


def make_beta(rng, n_classes, n_features):
    beta = 10.0 ** rng.uniform(-1.7, 0.7)
    match rng.integers(8):
        case 0:
            beta = beta * rng.uniform(0.5, 2, n_features)
        case 1:
            beta = beta * rng.uniform(0.5, 2, (n_classes, n_features))
        case _:
            return beta
    if rng.random() < 0.3:
        beta[rng.random(beta.shape) < 0.2] = np.inf
    if rng.random() < 0.2:
        beta[rng.random(beta.shape) < 0.1] = 0
    return beta


def make_problem(rng):
    """X, y, its indicator, and the options of a fit."""
    distribution, label_mode = MODELS[rng.integers(len(MODELS))]
    n_classes = int(rng.integers(2, 6))
    n_samples = int(rng.choice([rng.integers(n_classes, 12), rng.integers(12, 60), rng.integers(60, 200)]))
    n_features = int(rng.integers(1, rng.choice([4, 12, 30])))
    kind = str(rng.choice(VALUES))
    X = make_values(rng, kind, n_samples, n_features)
    y, Y = make_labels(rng, n_samples, n_classes, label_mode)
    offset = None
    if rng.random() < 0.25:
        offset = rng.normal(size=(n_samples, Y.shape[1])) * rng.choice([1, 10])
        if rng.random() < 0.3 and (distribution, label_mode) != ("conditional", "exclusive"):
            offset = offset[:, 0]
    options = {
        "distribution": distribution,
        "label_mode": label_mode,
        "beta": make_beta(rng, Y.shape[1], n_features),
        "beta_rule": str(rng.choice(["deviation", "count"])),
        "fit_intercept": bool(rng.random() < 0.7),
        "solver": "sequential" if kind in ("binary", "unit") and rng.random() < 0.3 else "auto",
        "tol": float(10.0 ** rng.integers(-9, -1)),
        "sample_weight": make_weight(rng, n_samples),
        "offset": offset,
        "multilabel_weighting": str(rng.choice(["duplicate", "equal"])),
        "n_jobs": int(rng.integers(1, 3)),
    }
    if rng.random() < 0.1:
        options["max_iter"] = int(rng.integers(1, 20))
    return kind, X, y, Y, options


def attempt(X, y, options):
    """A model, or the error that refuses the problem."""
    with strict_warnings() as seen:
        try:
            model = sl1max.fit(X, y, **options)
        except ValueError as error:
            check_message(error)
            return error, seen
    for warning in seen:
        check(issubclass(warning.category, UserWarning), f"{warning.category.__name__}: {warning.message}")
    return model, seen


def twins_of(X, y, Y, options):
    """The problems of the model for the reference."""
    if not isinstance(y, sparse.sparray) and np.ndim(y) == 1:  # labels that no example of positive weight has are none
        weight = options["sample_weight"]
        Y = Y[:, Y[slice(None) if weight is None else weight > 0].any(axis=0)]
    offset = options["offset"]
    if offset is not None and offset.ndim == 1:
        offset = np.repeat(offset[:, None], Y.shape[1], axis=1)
    return ref.model_twins(
        X, Y, options["distribution"], options["label_mode"], sample_weight=options["sample_weight"],
        multilabel_weighting=options["multilabel_weighting"], offset=offset, beta=options["beta"],
        beta_rule=options["beta_rule"], intercept=options["fit_intercept"],
    )  # fmt: skip


def one_block(twin):
    """Two blocks of a conditional model as their difference, which has the smaller of the two penalties.

    The offset of the first block must be 0. A problem of one block is returned as it is.
    """
    if twin.reference:
        return twin
    return replace(
        twin, emp_mean=twin.emp_mean[1:], beta=twin.beta.min(axis=0, keepdims=True), target=twin.target[1:],
        reference=True, offset=None if twin.offset is None else twin.offset[1:],
    )  # fmt: skip


def weights_in(model, c, twin):
    """A problem in its shortest form, the model's weights and intercepts there, and what its objective has beside it.

    No intercepts where those that are best for the weights have a closed form.
    """
    constant = 0.0
    if not twin.pooled and twin.n_blocks == 2 and twin.offset is not None:
        constant = float(twin.mass @ twin.offset[0])
        twin = replace(twin, offset=twin.offset - twin.offset[0])
    return *_weights_in(model, c, twin), constant


def _weights_in(model, c, twin):
    if model.label_mode == "exclusive" and model.distribution != "class-conditional":
        lam = model.weights.toarray()
        if model.distribution == "joint":
            return twin, lam, None
        if len(lam) == 2:
            return one_block(twin), lam[1:] - lam[:1], np.diff(model.intercept)
        return twin, lam, model.intercept
    if model.distribution == "joint":
        in_class, non_class = (part[[c]].toarray() for part in model._parts)
        return twin, np.vstack([non_class, in_class]), None
    if model.distribution == "conditional":
        return one_block(twin), model.weights[[c]].toarray(), model.intercept[[c]]
    part = model.weights if model._parts is None else model._parts[0]
    return twin, part[[c]].toarray(), None


def value_and_size(twin, lam, b):
    """The objective, and the size of its terms, to which rounding is relative."""
    b = ref.solve_intercept(twin, lam) if b is None else b
    score = twin.score(np.abs(lam), np.abs(b)) if lam.size else np.zeros(1)
    terms = [
        np.max(np.abs(score), initial=0),
        0 if twin.offset is None else np.max(np.abs(twin.offset)),
        twin.penalty(lam),
        np.sum(np.abs(lam * twin.emp_mean)),
        abs(np.log(twin.mass.sum())),
    ]
    return twin.objective(lam, b), 1 + float(np.sum(terms))


def check_certificate(model, twins, optima):
    """Objective and gap of every problem against the reference; `optima` keeps what it finds, by problem."""
    objectives, gaps = np.atleast_1d(model.objective), np.atleast_1d(model.dual_gap)
    for c, whole in enumerate(twins):
        if model.label_mode == "independent" and not 0 < model.class_prior[c] < 1:
            continue  # constant: there is nothing to train
        objective, gap = objectives[c], gaps[c]
        twin, lam, b, constant = weights_in(model, c, whole)
        value, size = value_and_size(twin, lam, b)
        objective, size = objective - constant, size + abs(constant)
        rounding = 1e-11 * size
        converged = np.atleast_1d(model.converged)[c]
        check(
            (value - rounding <= objective or not converged) and objective <= value + gap + rounding,
            f"problem {c}: objective {objective!r}, but {value!r} by the reference at the same weights (gap {gap:.3g})",
        )
        if c not in optima:
            best = ref.oracle(twin, max_iter=300)
            optima[c] = best, value_and_size(twin, best.lam, best.b)[1]
        best, best_size = optima[c]
        if not np.isfinite(best.objective):
            continue
        rounding = 1e-11 * (size + best_size)
        check(
            objective - best.objective <= gap + rounding,
            f"problem {c}: {objective - best.objective:.6g} above the optimum, but its gap is {gap:.6g} "
            f"(objective {objective!r}, converged {converged})",
        )


def check_model(model, X, seen, options):
    """What holds for a model whatever the reference says."""
    constant = (model.class_prior <= 0) | (model.class_prior >= 1) if model.label_mode == "independent" else False
    finite = {
        "weights": model.weights.data,
        "intercept": model.intercept[~np.broadcast_to(constant, model.intercept.shape)],
        "objective": model.objective,
        "log_proba": model.predict_log_proba(X),
        "decision": model._decide(X)[:, ~np.broadcast_to(constant, model.intercept.shape)],
    }
    for name, values in finite.items():
        if name == "log_proba":
            check(not np.isnan(values).any() and (values <= 0).all(), "log_proba is NaN or above 0")
        else:
            check(np.isfinite(values).all(), f"{name} is not finite")
    converged = np.atleast_1d(model.converged)
    check(not np.isnan(model.dual_gap).any() and np.all(model.dual_gap >= 0), f"dual_gap is {model.dual_gap}")
    # The level of the offsets is in objective_zero, not in what tol is relative to.
    level = 0.0 if options["offset"] is None else np.max(np.abs(options["offset"]))
    gap, target = np.atleast_1d(model.dual_gap), options["tol"] * (np.atleast_1d(np.abs(model.objective_zero)) + level)
    certified = gap <= target * (1 + 1e-12) + 1e-15
    check(np.all(certified | ~converged), f"converged at a gap of {gap} above its target of {target}")
    warned = any(issubclass(warning.category, sl1max.ConvergenceWarning) for warning in seen)
    check(warned or converged.all(), "not converged, and no warning")


def check_same(results, X):
    """Dense, CSR and CSC input: the same errors, or models as equal as their gaps say."""
    dense, by_rows, by_columns = results
    texts = [str(result) if isinstance(result, ValueError) else None for result in results]
    check(texts[0] == texts[1] == texts[2], f"errors differ: {texts}")
    if texts[0] is not None:
        return
    check_equal_models(by_rows, by_columns, "CSR and CSC")
    sizes = [np.abs(model.weights).dot(np.abs(X).max(axis=0)).sum() for model in (dense, by_rows)]
    rounding = 1e-11 * (1 + np.abs(dense.objective) + max(sizes))
    allowed = np.maximum(dense.dual_gap, by_rows.dual_gap) + rounding
    difference = np.abs(np.subtract(dense.objective, by_rows.objective))
    check(
        np.all(difference <= allowed),
        f"dense and CSR differ by {difference} in the objective, beside gaps of {dense.dual_gap}, {by_rows.dual_gap}",
    )


def set_up(folder):
    return run


def run(rng):
    kind, X, y, Y, options = make_problem(rng)
    forms = [X, sparse.csr_array(X), sparse.csc_matrix(X)]
    outcomes = [attempt(form, y, options) for form in forms]
    results = [result for result, _ in outcomes]
    check_same(results, X)
    if isinstance(results[0], ValueError):
        check(kind == "extreme" or _may_be_refused(results[0], options), f"refused: {results[0]}")
        return "refused"
    for model, seen in outcomes:
        with strict_warnings():
            check_model(model, X, seen, options)
    with np.errstate(all="ignore"), warnings.catch_warnings():
        warnings.simplefilter("ignore")
        try:
            twins, optima = twins_of(X, y, Y, options), {}
            for model in (results[0], results[1])[: 1 + (kind != "extreme")]:
                check_certificate(model, twins, optima)
        except np.linalg.LinAlgError:
            return "no reference"
    if np.all([np.all(model.converged) for model in results]):
        return "converged"
    return "max_iter reached" if "max_iter" in options else "stalled, extreme" if kind == "extreme" else "stalled"


def _may_be_refused(error, options):
    """A class without examples; weights of zero may leave fewer classes than beta and offset are for."""
    weight = options["sample_weight"]
    return "no example of class" in str(error) or (weight is not None and (weight == 0).any())


CAMPAIGN = Campaign(set_up, share=6.0)
