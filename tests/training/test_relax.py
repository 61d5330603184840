"""Relaxed fits: the penalty chooses the features, and hardly shrinks their weights."""

import warnings

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from problems import MODELS, make_data

import sl1max
from sl1max import ConvergenceWarning, MaxentClassifierCV

ALL = pytest.mark.parametrize("distribution, label_mode", MODELS)


def make_model(distribution, label_mode, seed=2, **options):
    X, y = make_data(seed, n_samples=150)
    y = np.where(np.random.default_rng(seed).random(150) < 0.3, np.roll(y, 1), y)  # no support separates the classes
    options = {"beta": 1.0, "tol": 1e-9} | options
    return X, y, sl1max.fit(X, y, distribution=distribution, label_mode=label_mode, **options)


def support(model):
    return model.weights.toarray() != 0


@ALL
def test_refit_on_the_support(distribution, label_mode):
    """The same as a fit whose beta leaves all else out."""
    X, y, model = make_model(distribution, label_mode)
    for factor in (0.0, 0.3):
        relaxed = sl1max.relax(model, X, y, penalty_factor=factor)
        assert np.all(relaxed.converged)
        assert not (support(relaxed) & ~support(model)).any()
        if distribution == "joint" and label_mode == "independent":  # class and non-class have supports of their own
            continue
        beta = np.where(support(model), factor * 1.0, np.inf)
        if distribution == "conditional" and label_mode == "independent":
            beta = np.where(support(model), factor, np.inf)
        alone = sl1max.fit(X, y, distribution=distribution, label_mode=label_mode, beta=beta, tol=1e-9)
        assert_allclose(relaxed.objective, alone.objective, rtol=1e-8)


@ALL
def test_a_factor_of_one_changes_nothing(distribution, label_mode):
    X, y, model = make_model(distribution, label_mode)
    relaxed = sl1max.relax(model, X, y, penalty_factor=1)
    assert_allclose(relaxed.objective, model.objective, rtol=1e-8)
    assert_allclose(relaxed.weights.toarray(), model.weights.toarray(), atol=1e-3)


@ALL
def test_blend_is_a_mixture(distribution, label_mode):
    X, y, model = make_model(distribution, label_mode)
    relaxed = sl1max.relax(model, X, y, penalty_factor=0.1)
    mixed = sl1max.relax(model, X, y, penalty_factor=0.1, blend=0.25)
    expected = 0.25 * model.weights.toarray() + 0.75 * relaxed.weights.toarray()
    assert_allclose(mixed.weights.toarray(), expected, rtol=1e-12, atol=1e-15)
    if distribution == "conditional":
        shift = mixed.intercept - (0.25 * model.intercept + 0.75 * relaxed.intercept)
        assert_allclose(shift, 0, atol=1e-9)
    # The gap is that of the original penalties, whose optimum is known.
    assert np.all(mixed.dual_gap >= mixed.objective - model.objective - 1e-12)
    assert not np.any(mixed.converged)
    proba = mixed.predict_proba(X)
    assert np.isfinite(proba).all()


def test_limits_stay():
    X, y, model = make_model("conditional", "exclusive", max_weight=0.4, min_weight=-0.4)
    relaxed = sl1max.relax(model, X, y)
    assert (np.abs(relaxed.weights.data) <= 0.4).all()


def test_separable_support_is_named():
    rng = np.random.default_rng(0)
    X = (rng.random((60, 4)) < 0.5).astype(float)
    y = np.array(["no", "yes"])[X[:, 0].astype(int)]
    model = sl1max.fit(X, y, beta=0.5, label_mode="independent")
    with pytest.warns(ConvergenceWarning, match="Separable data have no optimum.*classes no, yes"):
        sl1max.relax(model, X, y)


def test_path_of_relaxed_models():
    X, y, _ = make_model("conditional", "exclusive")
    betas = [2.0, 1.0]
    plain = sl1max.path(X, y, betas, tol=1e-8)
    relaxed = sl1max.path(X, y, betas, tol=1e-8, relax_factor=0.2)
    mixed = sl1max.path(X, y, betas, tol=1e-8, relax_factor=0.2, blend=0.5)
    for k in range(2):
        alone = sl1max.relax(plain.models[k], X, y, penalty_factor=0.2)
        assert_allclose(relaxed.models[k].weights.toarray(), alone.weights.toarray(), atol=1e-4)
        average = (plain.models[k].weights.toarray() + relaxed.models[k].weights.toarray()) / 2
        assert_allclose(mixed.models[k].weights.toarray(), average, atol=1e-4)


def test_cross_validation_of_relaxed_models():
    X, y, _ = make_model("conditional", "exclusive")
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        plain = MaxentClassifierCV(betas=[3.0, 1.0], cv=3, scoring="neg_log_loss").fit(X, y)
        relaxed = MaxentClassifierCV(betas=[3.0, 1.0], cv=3, scoring="neg_log_loss", relax_factor=0.1).fit(X, y)
    assert not np.allclose(plain.cv_results_["mean_test_score"], relaxed.cv_results_["mean_test_score"])
    at = relaxed.beta_
    alone = sl1max.relax(sl1max.fit(X, y, beta=at), X, y, penalty_factor=0.1)
    assert_array_equal(relaxed.coef_ != 0, alone.weights.toarray() != 0)


@pytest.mark.parametrize("name", ["penalty_factor", "blend"])
def test_messages(name):
    X, y, model = make_model("conditional", "exclusive")
    with pytest.raises(ValueError, match=f"{name}=2 must be a number from 0 to 1"):
        sl1max.relax(model, X, y, **{name: 2})
    with pytest.raises(ValueError, match="y has other classes than the model: relax needs the training set"):
        sl1max.relax(model, X, y == 1)
    with pytest.raises(ValueError, match="relax_factor=-1 must be"):
        sl1max.path(X, y, [1.0], relax_factor=-1)
