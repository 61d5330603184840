"""Additive models: the optimum of all hinges, whose columns are never made."""

import numpy as np
import pytest
from numpy.testing import assert_allclose
from scipy import sparse

import sl1max
from sl1max._data.binned import BinnedPoints, FeatureColumns
from sl1max._data.feature_table import LINEAR, expand
from sl1max.exceptions import ConvergenceWarning
from sl1max.training._additive import fit_additive


def make_data(seed=0, n=200, n_classes=3):
    rng = np.random.default_rng(seed)
    X = np.column_stack([rng.normal(size=(n, 2)).round(2), rng.integers(0, 5, n)])
    scores = np.column_stack([np.abs(X[:, 0]) * 2, np.sin(2 * X[:, 1]) + 1, np.full(n, 0.7)])[:, :n_classes]
    return X, (scores + rng.gumbel(size=scores.shape)).argmax(axis=1)


def columns_of(X, features, categorical=()):
    table = expand(X, X, features, categorical)
    table = table[table.high > table.low]
    return (table if "l" in features else table[table.kind != LINEAR]).columns(X)


@pytest.mark.parametrize("fit_intercept", [True, False])
@pytest.mark.parametrize("label_mode", ["exclusive", "independent"])
@pytest.mark.parametrize("distribution", ["conditional", "joint", "class-conditional"])
def test_objective_is_that_of_explicit_columns(distribution, label_mode, fit_intercept):
    """Of all five models: the gaps of both cover the difference."""
    for n_classes, rule in ((3, "deviation"), (2, "count")):
        X, y = make_data(n_classes=n_classes)
        options = dict(
            distribution=distribution, label_mode=label_mode, fit_intercept=fit_intercept, beta_rule=rule, tol=1e-6,
            beta=1.0,
        )  # fmt: skip
        found = fit_additive(X, y, "lqht", (2,), **options)
        whole = sl1max.fit(columns_of(X, "lqht", (2,)), y, **options)
        gap = np.asarray(found.model.dual_gap) + np.asarray(whole.dual_gap)
        assert (np.abs(np.asarray(found.model.objective) - whole.objective) <= gap + 1e-12).all()
        assert np.all(found.model.converged) and found.n_features > 900 > 10 * len(found.table)
        assert_allclose(found.model.objective_zero, whole.objective_zero, rtol=1e-12)


def test_weights_and_soft_labels():
    X, y = make_data(n=120)
    weight = np.random.default_rng(1).integers(1, 4, len(y)).astype(float)
    options = dict(tol=1e-9, beta=2.0, label_mode="exclusive")
    weighted = fit_additive(X, y, "lh", sample_weight=weight, **options)
    times = weight.astype(int)
    repeated = fit_additive(np.repeat(X, times, axis=0), np.repeat(y, times), "lh", **options)
    assert_allclose(weighted.model.objective, repeated.model.objective, rtol=1e-8)
    soft = np.random.default_rng(2).dirichlet(np.ones(3), len(y))
    found = fit_additive(X, soft, "lh", **options).model
    whole = sl1max.fit(columns_of(X, "lh"), soft, **options)
    assert_allclose(found.objective, whole.objective, rtol=1e-7)
    indicator = sparse.csr_array(np.eye(3)[y])
    assert_allclose(fit_additive(X, indicator, "lh", **options).model.objective,
                    fit_additive(X, y, "lh", **options).model.objective, rtol=1e-7)  # fmt: skip


def test_gap_covers_features_outside_the_working_set():
    """A model that has not converged has a gap that is at least its distance to the optimum."""
    X, y = make_data()
    best = fit_additive(X, y, "lqh", tol=1e-9, beta=0.5, label_mode="exclusive").model
    for max_iter in (1, 2, 4):
        with pytest.warns(ConvergenceWarning, match="max_iter was reached"):
            found = fit_additive(X, y, "lqh", tol=1e-9, beta=0.5, label_mode="exclusive", max_iter=max_iter).model
        assert found.objective - best.objective <= found.dual_gap + 1e-12 and not found.converged


def test_threads_give_the_same_model():
    X, y = make_data()
    one, two = (fit_additive(X, y, "lh", label_mode="independent", n_jobs=n).model for n in (1, 2))
    assert (one.weights != two.weights).nnz == 0 and one.objective.tolist() == two.objective.tolist()


def test_squares_of_implicit_features_are_those_of_their_columns():
    X, _ = make_data(n=60)
    table = expand(X, X, "lqpht", (2,))
    mass = np.random.default_rng(0).random(len(X))
    source = FeatureColumns(table, BinnedPoints(X))
    columns = table.columns(X)
    assert_allclose(source.squares(mass), mass @ columns**2, rtol=1e-12, atol=1e-14)


def test_constant_columns_are_refused():
    with pytest.raises(ValueError, match="X has no column with two values"):
        fit_additive(np.ones((4, 2)), [0, 1, 0, 1], "lh")
