"""Training that ends at the least validation error."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import sparse

import sl1max
from sl1max.training._early_stopping import fit_early_stopping, model_error, split_validation


def make_data(seed=0):
    """A training set with noisy labels and a validation set."""
    rng = np.random.default_rng(seed)
    X = (rng.random((300, 150)) < 0.3).astype(float)
    y = np.where(rng.random(300) < 0.4, rng.integers(0, 3, 300), X[:, 0] + X[:, 1]).astype(int)
    return X[:150], y[:150], X[150:], y[150:]


@given(st.lists(st.integers(0, 4), min_size=2, max_size=40), st.floats(0.05, 0.9), st.integers(0, 99))
def test_every_class_keeps_an_example(labels, fraction, seed):
    y = np.array(labels)
    if len(np.unique(y)) == len(y):
        with pytest.raises(ValueError, match="more examples than classes"):
            split_validation(y, fraction, np.random.default_rng(seed))
        return
    indicator = (y[:, None] == np.arange(5)).astype(int)
    for form in (y, indicator, sparse.csr_array(indicator)):
        train, validation = split_validation(form, fraction, np.random.default_rng(seed))
        np.testing.assert_array_equal(np.sort(np.concatenate([train, validation])), np.arange(len(y)))
        assert set(y[train]) == set(y)
        assert 1 <= len(validation) <= max(1, round(fraction * len(y)))


@pytest.mark.parametrize("solver", ["auto", "sequential"])
@pytest.mark.parametrize("distribution", ["conditional", "joint", "class-conditional"])
def test_the_first_of_the_best_is_kept(distribution, solver):
    X, y, X_val, y_val = make_data()
    options = {"distribution": distribution, "solver": solver, "beta": 0.05}
    model, errors = fit_early_stopping(X, y, X_val, y_val, **options)
    assert np.mean(model.predict(X_val) != y_val) == pytest.approx(errors.min())
    best = int(errors.argmin())
    assert len(errors) <= best + 11
    assert np.all(model.n_iter > 0)


def test_the_optimum_ends_it():
    X, y, X_val, y_val = make_data()
    model, errors = fit_early_stopping(X, y, X_val, y_val, beta=1.0, n_iter_no_change=1000)
    assert len(errors) < 50
    full = sl1max.fit(X, y, beta=1.0)
    assert np.mean(full.predict(X_val) != y_val) == pytest.approx(errors[-1], abs=0.03)
    assert model.objective >= full.objective - full.dual_gap


def test_limits():
    X, y, X_val, y_val = make_data()
    options = {"solver": "sequential", "beta": 0.01, "n_iter_no_change": 100}
    model, errors = fit_early_stopping(X, y, X_val, y_val, max_iter=250, **options)
    assert len(errors) == 3 and model.n_iter <= 250
    seen = []

    def stop_at_third(progress):
        seen.append(progress)
        return len(seen) == 3

    _, errors = fit_early_stopping(X, y, X_val, y_val, callback=stop_at_third, **options)
    assert len(errors) == len(seen) == 3


def test_labels_without_weight():
    """A class whose examples all weigh nothing is not among those of the model."""
    X, y, X_val, y_val = make_data()
    model, errors = fit_early_stopping(X, y, X_val, y_val, sample_weight=(y != 1).astype(float))
    np.testing.assert_array_equal(model.classes, [0, 2])
    assert errors.min() == pytest.approx(np.mean(model.predict(X_val) != y_val))


def test_error_of_a_model_some_examples_at_a_time(monkeypatch):
    """With vectors of labels, some unknown, and with indicators, dense and sparse."""
    rng = np.random.default_rng(0)
    X, y = rng.integers(0, 2, (50, 6)), rng.integers(0, 3, 50)
    names = np.array(["a", "b", "c"])[y]
    indicator = np.eye(3, dtype=int)[y]
    named, numbered = sl1max.fit(X, names), sl1max.fit(X, indicator, label_mode="exclusive")
    unknown = np.where(np.arange(50) % 9, names, "z")
    cases = [(named, names), (named, unknown), (numbered, indicator), (numbered, sparse.csc_array(indicator))]
    whole = [model_error(model, X, truth) for model, truth in cases]
    assert whole[0] == np.mean(named.predict(X) != names) and whole[1] > whole[0]
    monkeypatch.setattr("sl1max.training._early_stopping.BLOCK_CELLS", 21)
    for (model, truth), error in zip(cases, whole, strict=True):
        assert model_error(model, sparse.csc_array(X), truth) == pytest.approx(error)
