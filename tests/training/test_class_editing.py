"""A class more, less or anew: what `fit` with all classes would give, and not a bit of the others changes."""

import os
import signal

import numpy as np
import pytest
from problems import break_classes, make_data
from scipy import sparse
from strategies import one_hot

import sl1max
from sl1max.exceptions import FitError
from sl1max.training._class_editing import PER_CLASS

DISTRIBUTIONS = ["conditional", "joint", "class-conditional"]


def assert_same(left, right, but=()):
    """Every attribute, bit for bit."""
    np.testing.assert_array_equal(left.classes, right.classes)
    assert left.classes.dtype == right.classes.dtype
    matrices = [(left.weights, right.weights)]
    if left._parts is not None:
        matrices += zip(left._parts, right._parts, strict=True)
    for one, other in matrices:
        for name in ("indptr", "indices", "data"):
            np.testing.assert_array_equal(getattr(one, name), getattr(other, name))
    for name in (
        *PER_CLASS,
        "total_weight",
        "beta",
        "beta_rule",
        "solver",
        "tol",
        "label_mode",
        "trained_on_indicator",
    ):
        if name not in but:
            np.testing.assert_array_equal(getattr(left, name), getattr(right, name), err_msg=name)


def make_labels(seed=4):
    X, y = make_data(seed, values="real")
    Y = np.maximum(one_hot(y), np.random.default_rng(seed).random((60, 3)) < 0.2).astype(float)
    return X, y, Y


@pytest.mark.parametrize("solver", ["auto", "sequential"])
@pytest.mark.parametrize("fit_intercept", [True, False])
@pytest.mark.parametrize("distribution", DISTRIBUTIONS)
def test_the_same_as_all_at_once(distribution, fit_intercept, solver):
    X, _, Y = make_labels()
    X = np.abs(X) / np.abs(X).max()
    options = {"distribution": distribution, "fit_intercept": fit_intercept, "solver": solver, "tol": 1e-3}
    weight = np.random.default_rng(0).integers(0, 3, 60)
    whole = sl1max.fit(X, Y, sample_weight=weight, **options)
    part = sl1max.fit(X, Y[:, :2], sample_weight=weight, **options)
    assert_same(sl1max.with_class(part, 2, X, Y[:, 2], sample_weight=weight), whole)
    assert_same(sl1max.without_class(whole, 2), part)
    assert_same(sl1max.with_class(whole, 1, X, sparse.csr_array(Y[:, [1]]), sample_weight=weight), whole)


@pytest.mark.parametrize("names", [["a", "b", "c"], [3, 5, 9], [-1.0, 0.0, 2.0]])
@pytest.mark.parametrize("distribution", ["joint", "class-conditional"])
def test_exclusive_classes(distribution, names):
    X, y, _ = make_labels()
    y = np.array(names)[y]
    model = sl1max.fit(X, y, distribution=distribution)
    for label in names:
        less = sl1max.without_class(model, label)
        assert less.classes.tolist() == [name for name in names if name != label]
        again = sl1max.with_class(less, label, X, y == label)
        of_all = ("objective", "objective_zero", "dual_gap", "n_iter") if distribution == "joint" else ()
        assert_same(again, model, of_all)
        if distribution == "joint":
            assert np.isnan(less.objective) and model.dual_gap <= again.dual_gap <= 2 * model.dual_gap


def test_the_objective_of_a_joint_model_adds_up():
    X, y, _ = make_labels()
    model = sl1max.fit(X[y < 2], y[y < 2], distribution="joint")
    more = sl1max.with_class(model, 7, X, y == 2)
    assert more.classes.tolist() == [0, 1, 7]
    assert more.objective > model.objective and more.dual_gap > model.dual_gap and more.converged


@pytest.mark.parametrize("label_mode", ["exclusive", "independent"])
@pytest.mark.parametrize("distribution", DISTRIBUTIONS)
def test_the_examples_twice(distribution, label_mode):
    """A class that is trained on all examples twice, which makes no difference but to beta, is as likely as before."""
    if (distribution, label_mode) == ("conditional", "exclusive"):
        return
    X, y, _ = make_labels()
    model = sl1max.fit(X, y, distribution=distribution, label_mode=label_mode, beta=0.5, beta_rule="count", tol=1e-10)
    twice = sl1max.with_class(model, 1, np.vstack([X, X]), np.tile(y, 2) == 1, beta=1.0)
    in_model = twice.class_prior[1] / (2 if label_mode == "exclusive" else 1)
    assert in_model == pytest.approx(model.class_prior[1])
    shift = np.log(2) if label_mode == "exclusive" else 0.0  # there are twice as many of it
    np.testing.assert_allclose(twice.decision_function(X) - [0, shift, 0], model.decision_function(X), atol=1e-5)


@pytest.mark.parametrize("distribution", DISTRIBUTIONS)
def test_the_others_stay(distribution):
    X, _, Y = make_labels()
    model = sl1max.fit(X, Y, distribution=distribution)
    anew = sl1max.with_class(model, 1, X, Y[:, 1], beta=0.05)
    assert anew.weights[[1]].nnz > model.weights[[1]].nnz
    for other in (anew, sl1max.with_class(model, 3, X, Y[:, 0] * Y[:, 1])):
        less = sl1max.without_class(other, 1)
        assert_same(sl1max.without_class(less, 3) if other.n_classes > 3 else less, sl1max.without_class(model, 1))


@pytest.mark.parametrize("distribution", DISTRIBUTIONS)
def test_offsets_and_shares(distribution):
    X, _, Y = make_labels()
    rng = np.random.default_rng(0)
    offset, Y = rng.normal(size=60), Y * rng.uniform(0.5, 1, (60, 3))
    whole = sl1max.fit(X, Y, distribution=distribution, offset=offset)
    part = sl1max.fit(X, Y[:, :2], distribution=distribution, offset=offset)
    assert_same(sl1max.with_class(part, 2, X, Y[:, 2], offset=offset), whole)


@pytest.mark.parametrize("value", [0, 1])
def test_constant_classes(value):
    X, _, Y = make_labels()
    model = sl1max.fit(X, Y)
    share = "every" if value else "no"
    with pytest.warns(UserWarning, match=f"^y gives {share} example to class 3: its predictions will be constant$"):
        more = sl1max.with_class(model, 3, X, np.full(60, value))
    assert (more.predict_proba(X)[:, 3] == value).all()
    with pytest.raises(ValueError, match=r"^y has no example of class 3: there is nothing to train it on$"):
        sl1max.with_class(sl1max.fit(X, Y, distribution="class-conditional"), 3, X, np.zeros(60))


@pytest.mark.parametrize(("value", "says"), [(0, "has no example of"), (1, "gives every example to")])
def test_constant_exclusive_classes(value, says):
    X, y, _ = make_labels()
    with pytest.raises(ValueError, match=f"^y {says} class 7: "):
        sl1max.with_class(sl1max.fit(X, y, distribution="joint"), 7, X, np.full(60, value))


def test_a_class_that_was_left_out(monkeypatch):
    X, y, _ = make_labels()
    whole = sl1max.fit(X, y, label_mode="independent")
    with monkeypatch.context() as patch:
        break_classes(patch, MemoryError(), [1])
        with pytest.raises(FitError) as caught:
            sl1max.fit(X, y, label_mode="independent")
    assert_same(sl1max.with_class(caught.value.model, 1, X, y == 1), whole)


def test_labels():
    X, y, Y = make_labels()
    model = sl1max.fit(X, np.array(["b", "d", "f"])[y], distribution="joint")
    for label, expected in (("a", "abdf"), ("c", "bcdf"), ("g", "bdfg")):
        assert "".join(sl1max.with_class(model, label, X, y == 0).classes) == expected
    assert sl1max.with_class(model, "long name", X, y == 0).classes.tolist() == ["b", "d", "f", "long name"]
    named = sl1max.fit(X, np.array(["b", "d", "f"], object)[y], distribution="joint")
    assert sl1max.with_class(named, "c", X, y == 0).classes.tolist() == ["b", "c", "d", "f"]
    assert sl1max.with_class(sl1max.fit(X, Y), -5, X, y == 0).classes.tolist() == [0, 1, 2, -5]
    with pytest.raises(ValueError, match="label 3 is of another type than the classes of the model, <U1"):
        sl1max.with_class(model, 3, X, y == 0)


def test_refusals():
    X, y, Y = make_labels()
    for options, kind in (
        ({}, "conditional model"),
        ({"distribution": "joint", "fit_intercept": False}, "joint model without"),
    ):
        model = sl1max.fit(X, y, **options)
        with pytest.raises(ValueError, match=f"^with_class: the exclusive classes of a {kind}.* are trained together"):
            sl1max.with_class(model, 3, X, y == 1)
        with pytest.raises(ValueError, match=r"^without_class: the exclusive classes .* fit all anew"):
            sl1max.without_class(model, 1)
    model = sl1max.fit(X, Y)
    with pytest.raises(ValueError, match="9 is not a class of the model"):
        sl1max.without_class(model, 9)
    with pytest.raises(ValueError, match="without_class: 0 is the only class"):
        sl1max.without_class(sl1max.without_class(sl1max.without_class(model, 2), 1), 0)
    with pytest.raises(ValueError, match="X has 9 features, but the model was trained with 10"):
        sl1max.with_class(model, 3, X[:, 1:], y == 1)
    with pytest.raises(ValueError, match="y must be between 0 and 1"):
        sl1max.with_class(model, 3, X, y)
    for wrong in (Y, np.array(["a"] * 60)):
        with pytest.raises(ValueError, match="y must say of each example whether it is in the class"):
            sl1max.with_class(model, 3, X, wrong)
    with pytest.raises(ValueError, match="beta was an array when the model was trained"):
        sl1max.with_class(sl1max.fit(X, Y, beta=np.ones(10)), 3, X, y == 1)
    boosting = pytest.importorskip("sl1max.estimators._adaboost")
    with pytest.raises(ValueError, match="with_class: the model is of adaboost, not of maximum entropy"):
        sl1max.with_class(boosting.boost(X, one_hot(y), n_estimators=5).model(), 3, X, y == 1)


def test_warning_and_interruption():
    X, y, Y = make_labels()
    model = sl1max.fit(X, Y, tol=1e-12)
    with pytest.warns(sl1max.ConvergenceWarning, match="with_class did not converge for class 3, at a duality gap of"):
        more = sl1max.with_class(model, 3, X, y == 1, max_iter=1)
    assert more.converged.tolist() == [True, True, True, False]
    with pytest.raises(KeyboardInterrupt):
        sl1max.with_class(model, 3, X, y == 1, callback=lambda progress: os.kill(os.getpid(), signal.SIGINT))
