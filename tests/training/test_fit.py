"""`sl1max.fit` as a whole: the five models against the reference, and what must not change a model."""

import os
import signal
import threading
import warnings

import numpy as np
import pytest
from numpy.testing import assert_allclose
from problems import MODELS, TOL, assert_close_models, assert_equal_models, assert_optimal, make_data, reference_optima
from scipy import sparse
from strategies import one_hot, random_data

import sl1max
from sl1max.datasets import fetch_webkb

# The five models


@pytest.mark.parametrize("values", ["binary", "real"])
@pytest.mark.parametrize("fit_intercept", [True, False])
@pytest.mark.parametrize("beta_rule", ["deviation", "count"])
@pytest.mark.parametrize(("distribution", "label_mode"), MODELS)
def test_optimum(distribution, label_mode, beta_rule, fit_intercept, values):
    X, y = make_data(values=values)
    options = {"beta": 0.3, "beta_rule": beta_rule}
    model = sl1max.fit(
        X, y, distribution=distribution, label_mode=label_mode, fit_intercept=fit_intercept, tol=TOL, **options
    )
    optimum = reference_optima(X, one_hot(y), distribution, label_mode, intercept=fit_intercept, **options)
    assert_optimal(model, optimum)


@pytest.mark.parametrize("fit_intercept", [True, False])
@pytest.mark.parametrize("distribution", ["conditional", "joint", "class-conditional"])
def test_two_exclusive_classes(distribution, fit_intercept):
    X, y = make_data(n_classes=2)
    offset = np.random.default_rng(5).normal(size=(60, 2))
    model = sl1max.fit(X, y, distribution=distribution, fit_intercept=fit_intercept, offset=offset, tol=TOL)
    optimum = reference_optima(X, one_hot(y), distribution, "exclusive", offset=offset, intercept=fit_intercept)
    assert_optimal(model, optimum)


@pytest.mark.parametrize("multilabel_weighting", ["duplicate", "equal"])
@pytest.mark.parametrize(("distribution", "label_mode"), MODELS)
def test_several_labels(distribution, label_mode, multilabel_weighting):
    """Rows with none, one and more labels, weighted."""
    X, y = make_data(1)
    rng = np.random.default_rng(1)
    Y = np.maximum(one_hot(y), rng.random((60, 3)) < 0.2)
    Y[::7] = 0
    weight = rng.uniform(0.5, 3, 60)
    options = {"multilabel_weighting": multilabel_weighting}
    model = sl1max.fit(
        X,
        sparse.csr_array(Y),
        distribution=distribution,
        label_mode=label_mode,
        sample_weight=weight,
        tol=TOL,
        **options,
    )
    assert_optimal(model, reference_optima(X, Y, distribution, label_mode, weight=weight, **options))


@pytest.mark.parametrize(("distribution", "label_mode"), MODELS)
def test_soft_labels(distribution, label_mode):
    X, _ = make_data(2)
    Y = np.random.default_rng(2).dirichlet(np.ones(3), 60)
    model = sl1max.fit(X, Y, distribution=distribution, label_mode=label_mode, beta=0.1, tol=TOL)
    assert_optimal(model, reference_optima(X, Y, distribution, label_mode, beta=0.1))


@pytest.mark.parametrize("fit_intercept", [True, False])
@pytest.mark.parametrize(("distribution", "label_mode"), MODELS)
def test_offset(distribution, label_mode, fit_intercept):
    X, y = make_data(3)
    offset = np.random.default_rng(3).normal(size=(60, 3))
    options = {"distribution": distribution, "label_mode": label_mode, "fit_intercept": fit_intercept, "tol": TOL}
    model = sl1max.fit(X, y, offset=offset, **options)
    optimum = reference_optima(X, one_hot(y), distribution, label_mode, offset=offset, intercept=fit_intercept)
    assert_optimal(model, optimum)
    if (distribution, label_mode) != ("conditional", "exclusive"):
        per_example = sl1max.fit(X, y, offset=offset[:, 0], **options)
        repeated = sl1max.fit(X, y, offset=np.repeat(offset[:, :1], 3, axis=1), **options)
        assert_equal_models(per_example, repeated)


@pytest.mark.parametrize("distribution", ["conditional", "joint", "class-conditional"])
def test_the_scale_of_q0_does_not_matter(distribution):
    """A default distribution that sums to one has ln Z = 0 at weights zero: tol must not be relative to that."""
    rng = np.random.default_rng(3)
    X, y = random_data(rng, 60, 12)
    axis = 1 if distribution == "conditional" else 0
    q0 = rng.random((60, 3))
    options = {"distribution": distribution, "tol": 1e-6}
    model = sl1max.fit(X, y, offset=np.log(q0 / q0.sum(axis=axis, keepdims=True)), **options)
    other = sl1max.fit(X, y, offset=np.log(q0 / q0.sum(axis=axis, keepdims=True)) + 50, **options)
    assert np.all(model.converged) and np.all(other.converged)
    assert np.array_equal(model.n_iter, other.n_iter)
    assert_allclose(model.weights.toarray(), other.weights.toarray(), atol=1e-6)
    assert_allclose(np.subtract(other.objective, model.objective), 50)
    if distribution != "conditional":
        assert_allclose(model.predict_proba(X, offset=np.log(q0)), other.predict_proba(X, offset=np.log(q0)), atol=1e-6)


def test_offset_of_zero_changes_nothing():
    X, y = make_data()
    for distribution, label_mode in MODELS:
        options = {"distribution": distribution, "label_mode": label_mode, "tol": TOL}
        plain = sl1max.fit(X, y, **options)
        assert_close_models(sl1max.fit(X, y, offset=np.zeros((60, 3)), **options), plain, X)


def test_constraints_hold_at_the_optimum():
    """|q[f_cj] - p~_cj| <= beta_cj, with equality where the weight is not zero."""
    X, y = make_data()
    beta = 0.02
    model = sl1max.fit(X, y, beta=beta * 60, beta_rule="count", tol=1e-11)
    slack = np.abs((model.predict_proba(X) - one_hot(y)).T @ X / 60)
    active = model.weights.toarray() != 0
    assert active.any() and not active.all()
    np.testing.assert_allclose(slack[active], beta, rtol=1e-5)
    assert (slack <= beta * (1 + 1e-5)).all()


def test_count_rule_is_scikit_learns_C():
    linear_model = pytest.importorskip("sklearn.linear_model")
    X, y = make_data(n_classes=2)
    model = sl1max.fit(X, y, beta=0.5, beta_rule="count", fit_intercept=False, tol=TOL)
    liblinear = linear_model.LogisticRegression(
        C=2.0, l1_ratio=1, solver="liblinear", fit_intercept=False, tol=1e-10, max_iter=10000
    )
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        coef = liblinear.set_params(penalty="l1").fit(X, y).coef_
    np.testing.assert_allclose((model.weights[[1]] - model.weights[[0]]).toarray(), coef, atol=1e-4)
    margin = np.where(y == 1, 1, -1) * (X @ coef.ravel())
    objective = np.logaddexp(0, -margin).mean() + np.abs(coef).sum() / (2.0 * len(y))
    np.testing.assert_allclose(model.objective, objective, rtol=1e-9)


def test_C_is_the_inverse_of_beta_by_the_count_rule():
    X, y = make_data()
    C = np.linspace(0.5, 5, X.shape[1])
    C[2] = np.inf
    for given in (2.0, C, np.tile(C, (3, 1))):
        model = sl1max.fit(X, y, C=given, beta_rule="deviation", tol=TOL)
        assert_equal_models(model, sl1max.fit(X, y, beta=1 / np.asarray(given), beta_rule="count", tol=TOL))
        assert model.beta_rule == "count"
    assert sl1max.fit(X, y, C=4).beta == 0.25
    assert sl1max.fit(X, y).beta == sl1max.fit(X, y, beta=None, C=None).beta == 0.5
    assert sl1max.fit(X, y).beta_rule == "deviation"


def test_indicator_of_one_column():
    X, y = make_data(n_classes=2)
    model = sl1max.fit(X, y[:, None], tol=TOL)
    assert model.label_mode == "independent" and model.weights.shape == (1, 10)
    two = sl1max.fit(X, y, tol=TOL)
    np.testing.assert_allclose(model.predict_proba(X)[:, 0], two.predict_proba(X)[:, 1], atol=1e-6)
    assert model.objective[0] == pytest.approx(two.objective, rel=1e-9)


# What must not change a model


@pytest.mark.parametrize(("distribution", "label_mode"), MODELS)
def test_weight_two_is_the_row_twice(distribution, label_mode):
    X, y = make_data()
    weight = np.random.default_rng(0).integers(0, 4, 60)
    options = {"distribution": distribution, "label_mode": label_mode, "tol": TOL}
    weighted = sl1max.fit(X, y, sample_weight=weight, **options)
    repeated = sl1max.fit(np.repeat(X, weight, axis=0), np.repeat(y, weight), **options)
    assert_close_models(weighted, repeated, X)
    assert weighted.total_weight == repeated.total_weight


@pytest.mark.parametrize(("distribution", "label_mode"), MODELS)
def test_permutations(distribution, label_mode):
    X, y = make_data()
    rng = np.random.default_rng(0)
    rows, cols, names = rng.permutation(60), rng.permutation(10), rng.permutation(3)
    options = {"distribution": distribution, "label_mode": label_mode, "tol": TOL}
    plain = sl1max.fit(X, y, **options)
    moved = sl1max.fit(X[rows][:, cols], names[y][rows], **options)
    np.testing.assert_allclose(moved.predict_log_proba(X[:, cols])[:, names], plain.predict_log_proba(X), atol=1e-5)


@pytest.mark.parametrize("beta_rule", ["deviation", "count"])
@pytest.mark.parametrize(("distribution", "label_mode"), MODELS)
def test_scaling(distribution, label_mode, beta_rule):
    """Feature j times k, and beta_j too: the same model. The deviation sees to beta itself."""
    X, y = make_data(values="real")
    scale = 2.0 ** np.arange(-5, 5)
    options = {"distribution": distribution, "label_mode": label_mode, "beta_rule": beta_rule, "tol": TOL}
    plain = sl1max.fit(X, y, beta=0.5, **options)
    scaled = sl1max.fit(X * scale, y, beta=0.5 * scale if beta_rule == "count" else 0.5, **options)
    np.testing.assert_allclose(scaled.objective, plain.objective, rtol=1e-9)
    np.testing.assert_allclose(scaled.weights.toarray() * scale, plain.weights.toarray(), atol=1e-4)


@pytest.mark.parametrize(("distribution", "label_mode"), MODELS)
def test_threads_give_the_same_bits(distribution, label_mode):
    X, y = make_data(n_samples=200, n_features=30, n_classes=8)
    options = {"distribution": distribution, "label_mode": label_mode}
    alone = sl1max.fit(X, y, **options)
    for n_jobs in (1, 2, 3, -1):
        assert_equal_models(sl1max.fit(X, y, n_jobs=n_jobs, **options), alone)


def test_threads_under_a_process_backend():
    joblib = pytest.importorskip("joblib")
    X, y = make_data()
    with joblib.parallel_config("loky", n_jobs=2):
        model = sl1max.fit(X, y, label_mode="independent")
    assert_equal_models(model, sl1max.fit(X, y, label_mode="independent"))


def test_reports_give_the_same_bits():
    X, y = make_data()
    for distribution, label_mode in MODELS:
        options = {"distribution": distribution, "label_mode": label_mode}
        watched = sl1max.fit(X, y, callback=lambda progress: None, **options)
        assert_equal_models(watched, sl1max.fit(X, y, **options))


# The paper's algorithm


@pytest.mark.parametrize("fit_intercept", [True, False])
@pytest.mark.parametrize("n_classes", [2, 3])
@pytest.mark.parametrize(("distribution", "label_mode"), MODELS)
def test_sequential(distribution, label_mode, n_classes, fit_intercept):
    X, y = make_data(n_classes=n_classes)
    options = {"distribution": distribution, "label_mode": label_mode, "fit_intercept": fit_intercept}
    paper = sl1max.fit(X, y, solver="sequential", tol=1e-6, **options)
    fast = sl1max.fit(X, y, tol=TOL, **options)
    assert np.all(paper.converged)
    np.testing.assert_allclose(paper.objective, fast.objective, rtol=2e-6)
    np.testing.assert_allclose(paper.objective_zero, fast.objective_zero, rtol=1e-12)
    np.testing.assert_allclose(paper.predict_proba(X), fast.predict_proba(X), atol=0.01)


def test_sequential_keeps_both_parts():
    X, y = make_data()
    model = sl1max.fit(X, y, label_mode="independent", solver="sequential", beta_rule="count")
    lam_1, lam_0 = model._parts
    assert lam_1.nnz > 0 and lam_0.nnz > 0
    np.testing.assert_array_equal((lam_1 - lam_0).toarray(), model.weights.toarray())


# Warm start


@pytest.mark.parametrize("n_classes", [2, 3])
@pytest.mark.parametrize("fit_intercept", [True, False])
@pytest.mark.parametrize(("distribution", "label_mode"), MODELS)
def test_warm_start_at_the_optimum(distribution, label_mode, fit_intercept, n_classes):
    X, y = make_data(n_classes=n_classes)
    options = {"distribution": distribution, "label_mode": label_mode, "fit_intercept": fit_intercept}
    model = sl1max.fit(X, y, tol=1e-9, **options)
    assert np.all(model.n_iter > 0)
    again = sl1max.fit(X, y, tol=1e-7, warm_start=model, **options)
    assert np.all(again.n_iter == 0) and np.all(again.converged)
    np.testing.assert_allclose(again.objective, model.objective, rtol=1e-12)


def test_warm_start_elsewhere():
    X, y = make_data()
    for distribution, label_mode in MODELS:
        options = {"distribution": distribution, "label_mode": label_mode, "tol": TOL}
        start = sl1max.fit(X, y, beta=0.05, **options)
        beta = np.full(10, 0.5)
        beta[0] = np.inf
        warm, cold = (sl1max.fit(X, y, beta=beta, warm_start=model, **options) for model in (start, None))
        assert_close_models(warm, cold, X)


# Progress, stopping, warnings


def test_callback():
    X, y = make_data()
    seen = []
    model = sl1max.fit(X, y, label_mode="independent", tol=TOL, callback=seen.append)
    assert {progress.class_label for progress in seen} == {0, 1, 2}
    for c in range(3):
        own = [progress for progress in seen if progress.class_label == c]
        assert own[-1].n_iter == model.n_iter[c]
        assert own[-1].dual_gap == model.dual_gap[c] <= own[-1].target
        assert (np.diff([progress.objective for progress in own]) <= 1e-15).all()
    seen.clear()
    sl1max.fit(X, y, callback=seen.append)
    assert all(progress.class_label is None for progress in seen)


@pytest.mark.parametrize("n_jobs", [1, 2])
def test_callback_stops(n_jobs):
    X, y = make_data()
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        model = sl1max.fit(
            X,
            y,
            label_mode="independent",
            tol=TOL,
            n_jobs=n_jobs,
            callback=lambda progress: progress.class_label == 1,
        )
    assert model.converged.tolist() == [True, False, True]
    assert model.n_iter[1] == 1


@pytest.mark.parametrize("n_jobs", [1, 2])
def test_error_in_callback(n_jobs):
    X, y = make_data()

    def fail(progress):
        raise RuntimeError("from the callback")

    with pytest.raises(RuntimeError, match="from the callback"):
        sl1max.fit(X, y, label_mode="independent", n_jobs=n_jobs, callback=fail)


def test_verbose(capsys):
    X, y = make_data()
    sl1max.fit(X, y, label_mode="independent", verbose=1)
    captured = capsys.readouterr()
    lines = captured.err.splitlines()
    assert captured.out == ""
    assert len(lines) == 3
    assert all(line.startswith("sl1max: class ") and line.endswith("converged") for line in lines)
    sl1max.fit(X, y)
    assert capsys.readouterr() == ("", "")


def test_convergence_warning():
    X, y = make_data()
    with pytest.warns(sl1max.ConvergenceWarning) as record:
        model = sl1max.fit(X, y, max_iter=1, tol=1e-14)
    message = str(record[0].message)
    assert f"max_iter was reached at a duality gap of {model.dual_gap:.3g}, above its target of" in message
    assert f"{1e-14 * model.objective_zero:.3g}" in message
    assert record[0].filename == __file__
    assert not model.converged
    assert "not converged" in repr(model)
    with pytest.warns(sl1max.ConvergenceWarning, match=r"^sl1max.fit did not converge for 3 of 3 classes, the worst"):
        sl1max.fit(X, y, label_mode="independent", max_iter=1, tol=1e-14)


@pytest.mark.parametrize("distribution", ["conditional", "joint"])
@pytest.mark.parametrize("label_mode", ["exclusive", "independent"])
def test_separable_without_penalty(distribution, label_mode):
    X, y = make_data()
    X[:, :3] = one_hot(y)
    with pytest.warns(sl1max.ConvergenceWarning, match="Separable data have no optimum where beta is 0"):
        model = sl1max.fit(X, y, distribution=distribution, label_mode=label_mode, beta=0, max_iter=3, tol=1e-12)
    assert np.isfinite(model.weights.data).all() and np.isfinite(model.intercept).all()
    assert np.isfinite(model.objective).all()
    assert (model.predict(X) == y).all()


@pytest.mark.slow
@pytest.mark.parametrize("distribution, label_mode", MODELS)
def test_web_pages_to_eight_digits(distribution, label_mode):
    """4,199 pages, 23,744 words, 4 classes: every model to a relative gap of 1e-8, its constraints met."""
    data = fetch_webkb()
    model = sl1max.fit(data.X_train, data.y_train, distribution=distribution, label_mode=label_mode, tol=1e-8)
    assert np.all(model.converged)
    assert np.all(model.dual_gap <= 1e-8 * model.objective_zero)
    table = sl1max.constraints(model, data.X_train, data.y_train, label=model.classes[0])
    width = table["upper"] - table["lower"]
    assert np.all(table["expectation"] >= table["lower"] - 1e-6 * width)
    assert np.all(table["expectation"] <= table["upper"] + 1e-6 * width)


def test_interruption():
    """Ctrl-C ends a fit that would take minutes, with threads and without; the next fit works."""
    rng = np.random.default_rng(0)
    X = sparse.random(60000, 1500, density=0.02, random_state=0, format="csc")
    X.data[:] = 1
    y = rng.integers(0, 40, 60000)
    small = make_data()
    expected = sl1max.fit(*small)
    for n_jobs in (1, 2):
        timer = threading.Timer(0.7, os.kill, (os.getpid(), signal.SIGINT))
        timer.start()
        with pytest.raises(KeyboardInterrupt):
            sl1max.fit(X, y, label_mode="independent", beta=0.01, tol=1e-9, n_jobs=n_jobs)
        assert_equal_models(sl1max.fit(*small), expected)


# The columns count words; weights over six orders of magnitude, and offsets that are almost certain of some classes.
OVERFLOWING = """
0 608.389 -4.0 6 47 1 2 2 1 1 1 1 3 1 1 1 1
1 247.778 -11.7 5 2 1 1 1 4 1 1 2 4 1 9 3 1
0 277.865 6.5 1 2 1 1 19 3 1 37 1 1 3 1 1 1
1 81.6 -2.9 1 1 90 1 1 3 1 1 1 3 2 7 1 1
1 6.885 5.1 3 1 1 4 1 1 3 1 78 3 5 3 99 2
0 3.547 -0.2 1 1 3 3 1 1 1 1 5 1 2 1 17 2
0 5.723 -11.9 4 1 57 1 1 1 9 28 1 1 1 2 1 10
0 721.427 20.0 1 1 7 1 88 1 1 6 6 1 3 24 9 2
1 25.262 1.5 1 3 2 2 267 1 1 10 1 5 4 1 8 9
0 0.001 0.3 4 1 5152 1 100 1 1 2 7 16 1 1 1 64
1 11.241 0.9 5 1 2 1 6 2 1 106 4 2 117 1 19 4
1 209.78 3.9 2 30 7 8 2 1 2 5 1 4 1 1 2 1
0 3.966 -11.7 1 2 26 2 3 1 2 2 1 25 1 29 8 3
0 64.604 -8.7 2 3 1 1 658 1 4 9 6 2 1 4 28 1
0 5.718 7.6 2 2 1 3 1 28 1 1 1 2 647 1 1 1
0 130.952 7.2 3 1 10 1 1 2 1 1 50 1 6 1 1 1
1 242.274 8.3 10 1 3 1 1 24 2 1 32 1 2 2 1 1
0 636.642 17.2 3 1 2 1 1 12 1 3 1 303 1 17 1 1
0 13.877 1.4 8 1 1 2 1 1 1 1 3 32 33 2 4 216
0 0.004 11.6 3 4 1 3 1 1 1 1 3 7 2 31 16 2
1 0.014 10.1 5 1 1 5 13 3 1 3 3 1 2 1 1 25
"""


def test_gap_that_overflows_is_infinite():
    rows = np.array([line.split() for line in OVERFLOWING.strip().splitlines()], float)
    y, weight, offset, X = rows[:, :1], rows[:, 1], rows[:, 2], rows[:, 3:]
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", sl1max.ConvergenceWarning)
        model = sl1max.fit(X, y, label_mode="independent", beta=0.127, sample_weight=weight, offset=offset, tol=1e-9)
    assert (model.dual_gap >= 0).all()


@pytest.mark.parametrize("distribution", ["conditional", "joint", "class-conditional"])
def test_class_of_every_example_has_a_prior_of_one(distribution):
    for seed in range(10):  # sums of the same weights in other orders differ by rounding
        rng = np.random.default_rng(seed)
        n_samples = int(rng.integers(3, 9))
        X, weight = np.eye(n_samples), rng.uniform(0.5, 2, n_samples)
        Y = np.column_stack([np.ones(n_samples), np.arange(n_samples) > 0])
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", UserWarning)
            model = sl1max.fit(X, Y, distribution=distribution, label_mode="independent", sample_weight=weight)
        assert model.class_prior[0] == 1
