"""Training sets with what large ones always have somewhere: every model gets to its optimum all the same."""

import numpy as np
import pytest
from problems import MODELS, TOL, assert_optimal, make_data, merge_few_rows, reference_optima
from scipy import sparse
from strategies import one_hot

import sl1max
from sl1max._solvers import grouped_rows


def one_example():
    """A class with one example."""
    X, y = make_data()
    y[y == 2] = 1
    y[7] = 2
    return X, y


def one_example_of_its_own():
    """A class with one example, whose features no other example has."""
    X, y = one_example()
    X[7] = 0
    X = np.column_stack([X, np.zeros((60, 2))])
    X[7, -2:] = 1
    return X, y


def unique_features():
    """A class whose every feature is unique to it, and in one example each."""
    X, y = make_data()
    own = np.flatnonzero(y == 2)
    X[own] = 0
    unique = np.zeros((60, len(own)))
    unique[own, np.arange(len(own))] = 1
    return np.column_stack([X, unique]), y


def feature_everywhere():
    """A feature in every row, and one in none."""
    X, y = make_data()
    return np.column_stack([X, np.ones(60), np.zeros(60)]), y


def same_rows():
    """Every row twice or more, with different labels."""
    X, y = make_data(n_samples=30)
    return np.vstack([X, X]), np.concatenate([y, (y + 1) % 3])


def rows_without_features():
    """Rows that are all zeros, of every class."""
    X, y = make_data()
    X[::4] = 0
    X[[np.flatnonzero(y == c)[0] for c in range(3)]] = 0
    return X, y


CASES = [one_example, one_example_of_its_own, unique_features, feature_everywhere, same_rows, rows_without_features]


@pytest.mark.parametrize("case", CASES)
@pytest.mark.parametrize("fit_intercept", [True, False])
@pytest.mark.parametrize("beta_rule", ["deviation", "count"])
@pytest.mark.parametrize(("distribution", "label_mode"), MODELS)
def test_optimum(distribution, label_mode, beta_rule, fit_intercept, case):
    X, y = case()
    options = {"beta": 0.3, "beta_rule": beta_rule}
    model = sl1max.fit(
        sparse.csr_array(X), y, distribution=distribution, label_mode=label_mode, fit_intercept=fit_intercept, tol=TOL,
        **options,
    )  # fmt: skip
    optimum = reference_optima(X, one_hot(y), distribution, label_mode, intercept=fit_intercept, **options)
    assert_optimal(model, optimum)
    assert np.isfinite(model.weights.data).all() and np.isfinite(model.intercept).all()
    assert np.isfinite(model.predict_log_proba(X)).all()


@pytest.mark.parametrize("case", CASES)
@pytest.mark.parametrize("beta_rule", ["deviation", "count"])
@pytest.mark.parametrize(("distribution", "label_mode"), MODELS[1:])
def test_optimum_on_merged_rows(distribution, label_mode, beta_rule, case, monkeypatch):
    """As among many examples, where a class is trained on groups of them."""
    monkeypatch.setattr(grouped_rows, "LARGEST_SHARE", 1.0)
    made = merge_few_rows(monkeypatch)
    X, y = case()
    options = {"beta": 0.3, "beta_rule": beta_rule}
    model = sl1max.fit(sparse.csr_array(X), y, distribution=distribution, label_mode=label_mode, tol=TOL, **options)
    assert_optimal(model, reference_optima(X, one_hot(y), distribution, label_mode, intercept=True, **options))
    assert len(made) >= 3 and not any(solver._is_whole for solver in made)


@pytest.mark.parametrize("case", CASES)
@pytest.mark.parametrize(("distribution", "label_mode"), MODELS)
def test_labels_of_sets(distribution, label_mode, case):
    """The same with an indicator, some rows of which have no label or two."""
    X, y = case()
    Y = one_hot(y).astype(float)
    Y[10:20, 0] = 1
    if label_mode == "independent":
        Y[20:25, :2] = 0
    model = sl1max.fit(sparse.csc_array(X), Y, distribution=distribution, label_mode=label_mode, tol=1e-6)
    assert np.all(model.converged)
    assert np.isfinite(model.predict_proba(X)).all()


@pytest.mark.parametrize(("distribution", "label_mode"), MODELS)
def test_many_rare_classes(distribution, label_mode):
    """Two hundred classes of one example each beside two frequent ones, and features that occur once."""
    rng = np.random.default_rng(0)
    n_samples, n_rare = 1000, 200
    X = sparse.random(n_samples, 300, density=0.02, format="lil", random_state=0)
    X[:, 0] = 1
    X[np.arange(n_rare), 100 + np.arange(n_rare)] = 1
    X = sparse.csr_array(X)
    X.data[:] = 1
    y = rng.integers(0, 2, n_samples)
    y[:n_rare] = 2 + np.arange(n_rare)
    model = sl1max.fit(X, y, distribution=distribution, label_mode=label_mode, tol=1e-3, n_jobs=2)
    assert np.all(model.converged)
    assert model.n_classes == n_rare + 2
    labels, decision = model.predict_top_k(X, 5, return_decision=True)
    assert labels.shape == (n_samples, 5) and np.isfinite(decision).all()
