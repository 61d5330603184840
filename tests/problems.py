"""Problems that several test files train on, and comparisons of models."""

import contextlib
import os
import signal
from dataclasses import replace

import numpy as np
import reference as ref
from scipy import sparse
from strategies import one_hot, random_data, random_twin

from sl1max._core import _solver
from sl1max._core._options import SolverOptions
from sl1max._core._solver import Columns, Problem, Solver
from sl1max._execution.control import FitControl
from sl1max._models import costs
from sl1max._solvers.grouped_rows import MergedSolver

MODELS = [
    (distribution, label_mode)
    for distribution in ("conditional", "joint", "class-conditional")
    for label_mode in ("exclusive", "independent")
]
TOL = 1e-9


def make_data(seed=0, n_samples=60, n_features=10, n_classes=3, values="binary"):
    rng = np.random.default_rng(seed)
    X, y = random_data(rng, n_samples, n_features, n_classes, values)
    X[np.arange(n_samples), y] += rng.random(n_samples) < 0.5
    return (np.minimum(X, 1) if values == "binary" else X), y


def reference_optima(
    X, Y, distribution, label_mode, *, weight=None, multilabel_weighting="duplicate", offset=None, **options
):
    """The least objective, by the slow twin: one number, or one per class."""
    twins = ref.model_twins(
        X,
        Y,
        distribution,
        label_mode,
        sample_weight=weight,
        multilabel_weighting=multilabel_weighting,
        offset=offset,
        **options,
    )
    optima = [ref.oracle(twin).objective for twin in twins]
    return optima[0] if label_mode == "exclusive" and distribution != "class-conditional" else np.array(optima)


def strengths_of(twin_of, options):
    """lower, upper, l2 of the twins of some labels, scaled by the rule; `twin_of` makes one for a beta."""
    unit = twin_of(1.0).beta
    lower = options.get("beta_lower", options.get("beta"))
    upper = options.get("beta_upper", options.get("beta"))

    def scaled(strength):
        return np.where(np.isinf(unit) | np.isinf(strength), np.inf, np.where(np.isinf(strength), 0, strength) * unit)

    return scaled(lower + 0 * unit), scaled(upper + 0 * unit), unit


def general_twins(X, y, distribution, label_mode, beta_rule, options):
    """One twin for each objective of a model with a general penalty.

    Conditional models of two classes are one problem, of the difference of the two.
    """
    labels, weight, m = one_hot(y), np.ones(len(X)), len(X)
    n = X.shape[1]

    def squared(unit, size):
        l2 = options.get("l2", 0.0) + np.zeros(n)
        return l2 * (unit if beta_rule == "count" else unit**2 * np.sqrt(size))

    def limits(shape):
        low = np.broadcast_to(options.get("min_weight", -np.inf), shape)
        return low, np.broadcast_to(options.get("max_weight", np.inf), shape)

    def exclusive(make, size):
        twin = make(1.0)
        lower, upper, unit = strengths_of(make, options)
        low, high = limits(unit.shape)
        return replace(twin, beta=lower, beta_upper=upper, l2=squared(unit, size), low=low, high=high)

    def difference(own, rival):
        both = np.column_stack([rival, own])
        lower, upper, unit = strengths_of(lambda beta: ref.conditional(X, both, weight, beta, beta_rule), options)
        low, high = limits((1, n))
        return replace(
            ref.conditional_reference(X, own, weight, beta=1.0, beta_rule=beta_rule), beta=lower.min(0, keepdims=True),
            beta_upper=upper.min(0, keepdims=True), l2=squared(unit[1:], m), low=low, high=high,
        )  # fmt: skip

    def with_non_class(own):
        both = ref.class_indicator(own)
        lower, upper, unit = strengths_of(lambda beta: ref.joint(X, both, weight, beta, beta_rule), options)
        low, high = limits((1, n))
        return replace(
            ref.joint(X, both, weight, 1.0, beta_rule), beta=np.stack([upper[0], lower[1]]),
            beta_upper=np.stack([lower[0], upper[1]]), l2=squared(unit, m), low=np.concatenate([-high, low]),
            high=np.concatenate([-low, high]),
        )  # fmt: skip

    if distribution == "class-conditional":
        return [
            exclusive(
                lambda beta, c=c: ref.class_conditional(X, labels, weight, c, beta, beta_rule), labels[:, c].sum()
            )
            for c in range(labels.shape[1])
        ]
    if label_mode == "independent":
        make = difference if distribution == "conditional" else lambda own, _: with_non_class(own)
        return [make(labels[:, c], 1 - labels[:, c]) for c in range(labels.shape[1])]
    if distribution == "conditional" and labels.shape[1] == 2:
        return [difference(labels[:, 1], labels[:, 0])]
    make = {"joint": ref.joint, "conditional": ref.conditional}[distribution]
    return [exclusive(lambda beta: make(X, labels, weight, beta, beta_rule), m)]


def assert_optimal(model, optimum):
    """The gap is met, and is no less than the true distance to the optimum."""
    assert np.all(model.converged)
    rounding = 1e-12 * np.abs(optimum)
    assert np.all(model.objective >= optimum - rounding)
    assert np.all(model.objective - optimum <= model.dual_gap + rounding)
    np.testing.assert_allclose(model.objective, optimum, rtol=3e-9)


def assert_equal_models(left, right):
    """Assert that models are equal bit for bit."""
    for name in ("indptr", "indices", "data"):
        np.testing.assert_array_equal(getattr(left.weights, name), getattr(right.weights, name))
    for name in ("intercept", "objective", "dual_gap", "n_iter"):
        np.testing.assert_array_equal(getattr(left, name), getattr(right, name))


def assert_close_models(left, right, X, atol=1e-5):
    np.testing.assert_allclose(left.objective, right.objective, rtol=1e-8)
    np.testing.assert_allclose(left.predict_log_proba(X), right.predict_log_proba(X), atol=atol)


@contextlib.contextmanager
def choosing(name):
    """Let exclusive classes have one solver, whatever the cost, where it can solve the problem."""

    def chosen(*size, can_stream, **about):
        return name if can_stream or name != costs.CLASSES else costs.ROWS

    choose, costs.choose_solver = costs.choose_solver, chosen
    try:
        yield
    finally:
        costs.choose_solver = choose


def break_classes(monkeypatch, error, labels):
    """Let the solver fail for some classes."""
    advance = FitControl.advance

    def fail(self, solver, class_label, *args):
        if class_label in labels:
            raise error
        return advance(self, solver, class_label, *args)

    monkeypatch.setattr(FitControl, "advance", fail)


def interrupt_after(n_classes):
    """Return a callback that simulates Ctrl-C after so many finished classes."""
    ended = set()

    def look(progress):
        if progress.dual_gap <= progress.target:
            ended.add(progress.class_label)
        if len(ended) == n_classes:
            os.kill(os.getpid(), signal.SIGINT)
            ended.add("asked")

    return look


def long_problem():
    rng = np.random.default_rng(0)
    X = sparse.random(5000, 500, density=0.02, random_state=0, format="csc")
    X.data[:] = 1
    y = np.minimum(rng.zipf(1.6, 5000), 40)
    return X, y


def many_rows():
    """More than a BLAS adds up with one thread."""
    rng = np.random.default_rng(0)
    X = sparse.random(30_000, 50, density=0.1, format="csc", random_state=0)
    return X, rng.integers(0, 3, 30_000), rng.normal(size=30_000), rng.uniform(0.5, 2, 30_000)


def make_twin(normalizer, seed=0, shape=(40, 12), values="real", n_classes=3, odd=(), **options):
    rng = np.random.default_rng(seed)
    X, y = random_data(rng, *shape, n_classes=n_classes, values=values, odd=odd)
    return random_twin(rng, X, y, normalizer, **options)


def merge_few_rows(monkeypatch) -> list[MergedSolver]:
    """Let rows be merged however few they are; the list takes the solvers that are made."""
    made = []

    def note(*args, **options):
        made.append(MergedSolver(*args, **options))
        return made[-1]

    monkeypatch.setattr(_solver, "DEFAULT_OPTIONS", SolverOptions(many_rows=1))
    monkeypatch.setattr("sl1max._models.reduction.MergedSolver", note)
    return made


def wide_problem():
    """Examples enough, no two alike, for the arrays of a class to be a large part of the memory."""
    rng = np.random.default_rng(0)
    X = sparse.random(100_000, 60, density=0.05, random_state=0, format="csc")
    return X, np.minimum(rng.zipf(1.6, 100_000), 15)


def make_columns(X, form, by_rows=None):
    """X as an index list (ones only), as indices and values, or as dense columns."""
    if form == "dense":
        return Columns(*X.shape, None, None, X.ravel(order="F"))
    columns = sparse.csc_array(X)
    values = None if form == "binary" else columns.data
    return Columns(*X.shape, columns.indptr.astype(np.int64), columns.indices.astype(np.int32), values, by_rows=by_rows)


def natural_form(X):
    return "binary" if np.isin(X, (0, 1)).all() else "sparse"


def make_problem(twin, columns):
    return Problem(
        columns,
        np.ascontiguousarray(twin.emp_mean),
        np.ascontiguousarray(twin.beta),
        np.ascontiguousarray(twin.target),
        np.ascontiguousarray(twin.mass),
        pooled=twin.pooled,
        reference=twin.reference,
        intercept=twin.intercept,
        offset=twin.offset,
        **{name: getattr(twin, name) for name in ("beta_upper", "l2", "low", "high")},
    )


def make_solver(twin, form=None, by_rows=None, **options):
    return Solver(make_problem(twin, make_columns(twin.X, form or natural_form(twin.X), by_rows)), **options)
