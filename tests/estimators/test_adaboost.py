"""Boosting: the core against its twin, and the properties that the bound promises."""

import signal
import threading

import joblib
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from reference_boosting import BoostTwin
from scipy import sparse
from sklearn.utils.estimator_checks import parametrize_with_checks
from stand_ins import raising
from strategies import random_X

import sl1max
from sl1max import AdaBoostClassifier
from sl1max._core._boosting import Booster, weigh_inactive
from sl1max._core._solver import Columns
from sl1max._data.inputs import core_buffers
from sl1max.datasets import fetch_webkb
from sl1max.exceptions import FitMemoryError


def make_twin(seed, n_samples=60, n_features=12, values="binary", **options):
    rng = np.random.default_rng(seed)
    X = random_X(rng, n_samples, n_features, values)
    sign = np.where(X[:, 0] + X[:, -1] + 0.5 * rng.normal(size=n_samples) > 0.7, 1.0, -1.0)
    mass = rng.integers(1, 4, n_samples)
    return BoostTwin(X, sign, mass / mass.sum(), **options)


def make_booster(twin, form="rows"):
    """By rows, W+ and W- are kept; by columns, or dense, they are taken anew in every round."""
    X = np.asfortranarray(twin.X) if form == "dense" else sparse.csc_array(twin.X)
    binary = form != "dense" and bool((X.data == 1).all())
    columns = Columns(*core_buffers(X, binary), by_rows=form == "rows")
    return Booster(
        columns, weigh_inactive(columns, twin.mass), twin.sign * twin.mass, exponential=twin.exponential,
        intercept=twin.intercept, smoothing=twin.smoothing,
    )  # fmt: skip


def run_rounds(booster, n_estimators):
    """(coordinate, delta, gain) of each round, the losses, and the last status."""
    rounds, losses, status = [], [booster.objective], "running"
    while len(rounds) < n_estimators:
        status = booster.run(1)
        if status != "running":
            break
        rounds.append(booster.last_step)
        losses.append(booster.objective)
    return rounds, losses, status


def check_rounds(found, expected):
    assert [j for j, _, _ in found] == [j for j, _, _ in expected]
    np.testing.assert_allclose([step[1:] for step in found], [step[1:] for step in expected], rtol=1e-7)


TWINS = st.builds(
    make_twin,
    seed=st.integers(0, 10**6),
    n_features=st.sampled_from([1, 5, 30, 150]),
    values=st.sampled_from(["binary", "unit", "real"]),
    exponential=st.booleans(),
    intercept=st.booleans(),
    smoothing=st.sampled_from([1e-3, 0.01, 0.1]),
)


@given(twin=TWINS, form=st.sampled_from(["rows", "columns", "dense"]))
def test_steps_are_those_of_the_twin(twin, form):
    found, losses, _ = run_rounds(make_booster(twin, form), 20)
    expected, expected_losses = twin.run(20)
    check_rounds(found, expected)
    np.testing.assert_allclose(losses, expected_losses, rtol=1e-9)


def make_rare(seed, n_inside, values, **options):
    """A class of few among many examples, most of which hold none of the features that tell it from the others."""
    rng = np.random.default_rng(seed)
    X = sparse.random_array((600, 200), density=0.02, rng=rng).toarray()
    X = {"binary": X > 0, "unit": X, "real": X * rng.choice([-3.0, 1.0], X.shape)}[values].astype(float)
    mass = rng.integers(1, 4, 600)
    sign = np.where(np.arange(600) < n_inside, 1.0, -1.0)
    return BoostTwin(X, sign, mass / mass.sum(), **options)


@given(
    twin=st.builds(
        make_rare,
        seed=st.integers(0, 10**6),
        n_inside=st.sampled_from([1, 5, 50, 400]),
        values=st.sampled_from(["binary", "unit", "real"]),
        exponential=st.booleans(),
        intercept=st.booleans(),
        smoothing=st.sampled_from([0.0, 1e-3]),
    )
)
def test_sums_that_are_kept_choose_as_fresh_ones(twin):
    kept, fresh = (make_booster(twin, form) for form in ("rows", "columns"))
    for n_estimators in (1, 30, 170):
        assert kept.run(n_estimators) == fresh.run(n_estimators)
        assert kept.objective == pytest.approx(fresh.objective, rel=1e-9)
    np.testing.assert_array_equal(kept.steps()[0], fresh.steps()[0])
    np.testing.assert_allclose(kept.steps()[1], fresh.steps()[1], rtol=1e-7)


@pytest.mark.parametrize("form", ["rows", "columns"])
def test_the_first_of_equal_columns_is_chosen(form):
    twin = make_rare(0, 20, "real", smoothing=1e-3)
    order = np.random.default_rng(0).permutation(400) % 200
    booster = make_booster(BoostTwin(twin.X[:, order], twin.sign, twin.mass, smoothing=1e-3), form)
    booster.run(300)
    first = np.array([np.flatnonzero(order == column)[0] for column in range(200)])
    assert set(booster.steps()[0]) <= {*first, 400}


def test_a_round_costs_what_its_rows_hold():
    twin = make_rare(1, 5, "binary", smoothing=1e-3)
    kept, fresh = (make_booster(twin, form) for form in ("rows", "columns"))
    kept.run(200), fresh.run(200)
    looked_at = 200 * 201
    n_nonzeros = 200 * (np.count_nonzero(twin.X) + 600)
    assert fresh.counters["nonzeros"] > n_nonzeros
    assert kept.counters["nonzeros"] - looked_at < 0.2 * n_nonzeros


@pytest.mark.parametrize("form", ["rows", "columns"])
def test_the_end_of_the_rounds(form):
    """Examples inside and outside the class that nothing tells apart: the optimum is reached."""
    twin = make_rare(2, 10, "binary", smoothing=1e-3)
    X, sign = np.vstack([twin.X, twin.X]), np.concatenate([twin.sign, -twin.sign])
    booster = make_booster(BoostTwin(X, sign, np.full(1200, 1 / 1200), smoothing=1e-3), form)
    assert booster.run(10**5) == "stalled"
    assert booster.objective == pytest.approx(np.log(2))
    two = BoostTwin(np.array([[1.0, 0], [1, 0], [1, 1], [0, 1], [0, 1], [0, 0]]), np.array([1.0, 1, -1, 1, -1, -1]),
                    np.full(6, 1 / 6))  # fmt: skip
    booster = make_booster(two, form)
    assert booster.run(10**5) == "stalled"
    weight = two.sign * two.weight(booster.coefficients())
    np.testing.assert_allclose(weight @ two.features, 0, atol=1e-7)


@given(twin=TWINS)
def test_no_step_decreases_less_than_promised(twin):
    rounds, losses, _ = run_rounds(make_booster(twin), 60)
    decrease = -np.diff(losses)
    gains = np.array([gain for _, _, gain in rounds])
    assert (gains > 0).all()
    assert (decrease >= gains - 1e-14).all()
    if twin.exponential and set(np.unique(twin.X)) <= {0.0, 1.0}:
        np.testing.assert_allclose(decrease, gains, rtol=1e-9, atol=1e-14)


def test_first_step_by_hand():
    # W+ = 3/8, W- = 1/8 of logistic weights: delta = ln(3) / 2.
    X = np.array([[1.0], [1], [1], [1]])
    sign = np.array([1.0, 1, 1, -1])
    booster = make_booster(BoostTwin(X, sign, np.full(4, 0.25), intercept=False))
    assert booster.objective == booster.objective_zero == pytest.approx(np.log(2))
    assert booster.run(1) == "running"
    j, delta, gain = booster.last_step
    assert (j, delta) == (0, pytest.approx(np.log(3) / 2))
    assert gain == pytest.approx((np.sqrt(3 / 8) - np.sqrt(1 / 8)) ** 2)


def test_intercept_alone_reaches_the_log_odds():
    twin = BoostTwin(np.zeros((8, 2)), np.array([1.0] * 6 + [-1] * 2), np.full(8, 1 / 8))
    booster = make_booster(twin)
    assert booster.run(1000) == "stalled"
    np.testing.assert_allclose(booster.coefficients(), [0, 0, np.log(3)], atol=1e-6)
    exponential = make_booster(BoostTwin(twin.X, twin.sign, twin.mass, exponential=True))
    assert exponential.run(10) == "stalled"
    np.testing.assert_allclose(exponential.coefficients(), [0, 0, np.log(3) / 2])


def test_separating_feature_without_smoothing():
    """W- = 0 has no finite minimiser: the step is cut off."""
    sign = np.array([1.0, 1, -1, -1])
    for exponential in (False, True):
        booster = make_booster(BoostTwin(sign[:, None].copy(), sign, np.full(4, 0.25), exponential, False))
        booster.run(5)
        assert booster.coefficients()[0] >= 30
        assert 0 <= booster.objective < 1e-12


def test_tiny_and_empty_columns_are_left_alone():
    twin = make_twin(0)
    twin.X[:, 3] = 0
    twin.X[:, 4] *= 1e-300
    booster = make_booster(twin)
    booster.run(200)
    weights = booster.coefficients()
    assert np.isfinite(weights).all() and weights[3] == weights[4] == 0


def test_more_rounds_than_any_class_needs():
    """Room for the steps is not taken before they are made."""
    model = AdaBoostClassifier(n_estimators=10**12).fit(np.zeros((8, 2)), [1] * 6 + [0] * 2)
    assert 0 < model.n_estimators_ < 1000 and model.model_.converged.all()


def test_steps_add_up_and_runs_continue():
    twin = make_twin(1, n_features=150, smoothing=0.01)
    once, pieces = make_booster(twin), make_booster(twin)
    once.run(100)
    for n in (1, 9, 0, 40, 50):
        pieces.run(n)
    np.testing.assert_array_equal(once.coefficients(), pieces.coefficients())
    cols, deltas = pieces.steps()
    assert pieces.n_iter == len(cols) == pieces.counters["updates"] == 100
    np.testing.assert_allclose(np.bincount(cols, deltas, minlength=151), once.coefficients(), atol=1e-12)


def test_stop_flag():
    booster = make_booster(make_twin(3))
    assert booster.run(10, np.ones(1, np.int32)) == "interrupted"
    assert booster.n_iter == 0


def test_ctrl_c():
    booster = make_booster(make_twin(4, n_samples=500, n_features=2000, values="real", smoothing=1e-3))
    threading.Timer(0.2, signal.raise_signal, (signal.SIGINT,)).start()
    with pytest.raises(KeyboardInterrupt):
        booster.run(10**8)
    assert len(booster.steps()[0]) == booster.n_iter


# The estimator


def make_data(n_classes=3, n_samples=120, n_features=10, seed=0):
    rng = np.random.default_rng(seed)
    y = rng.integers(0, n_classes, n_samples)
    X = (rng.random((n_samples, n_features)) < 0.3).astype(float)
    X[np.arange(n_samples), y] += rng.random(n_samples) < 0.8
    return np.minimum(X, 1), y


@parametrize_with_checks([AdaBoostClassifier(n_estimators=100)])
def test_scikit_learn_checks(estimator, check):
    check(estimator)


@pytest.mark.parametrize("loss", ["logistic", "exponential"])
def test_weights_are_those_of_the_twin(loss):
    X, y = make_data()
    estimator = AdaBoostClassifier(loss=loss, n_estimators=30).fit(X, y)
    for c in range(3):
        sign = np.where(y == c, 1.0, -1.0)
        twin = BoostTwin(X, sign, np.full(120, 1 / 120), loss == "exponential", smoothing=1 / 240)
        rounds, losses = twin.run(30)
        cols, deltas, _ = zip(*rounds, strict=True)
        expected = np.bincount(cols, deltas, minlength=11) * (2 if loss == "exponential" else 1)
        np.testing.assert_allclose(np.append(estimator.coef_[c], estimator.intercept_[c]), expected, atol=1e-9)
        np.testing.assert_allclose(estimator.objective_[c], losses[-1])
    assert (estimator.model_.objective < estimator.model_.objective_zero).all()
    assert estimator.score(X, y) > 0.6
    decision, proba = estimator.decision_function(X), estimator.predict_proba(X)
    np.testing.assert_array_equal(decision.argmax(axis=1), estimator.predict(X))
    odds = 1 / (1 + np.exp(-decision))
    np.testing.assert_allclose(estimator.predict_proba_independent(X), odds)
    np.testing.assert_allclose(proba, odds / odds.sum(axis=1, keepdims=True))
    np.testing.assert_array_equal(estimator.predict_top_k(X, 2)[:, 0], estimator.predict(X))


def test_two_labels_are_one_problem():
    X, y = make_data(n_classes=2)
    estimator = AdaBoostClassifier(n_estimators=40).fit(X, np.array(["no", "yes"])[y])
    turned = AdaBoostClassifier(n_estimators=40).fit(X, np.array(["yes", "no"])[y])
    np.testing.assert_allclose(estimator.decision_function(X), -turned.decision_function(X))
    indicator = AdaBoostClassifier(n_estimators=40).fit(X, np.eye(2)[y])
    np.testing.assert_allclose(indicator.model_.weights.toarray(), estimator.model_.weights.toarray())
    np.testing.assert_allclose(indicator.intercept_, estimator.model_.intercept)


@pytest.mark.parametrize("form", [np.asarray, sparse.csr_array])
def test_label_sets(form):
    X, _ = make_data()
    Y = X[:, :3].astype(int)
    estimator = AdaBoostClassifier(n_estimators=30).fit(X, form(Y))
    predicted = estimator.predict(X)
    assert sparse.issparse(predicted) == (form is not np.asarray)
    np.testing.assert_array_equal(sparse.csr_array(predicted).toarray(), Y)
    np.testing.assert_array_equal(estimator.predict_proba(X) > 0.5, Y)


def test_constant_class():
    X, y = make_data()
    Y = np.column_stack([np.eye(3)[y], np.zeros(len(y)), np.ones(len(y))])
    with pytest.warns(UserWarning, match="constant"):
        estimator = AdaBoostClassifier(n_estimators=30).fit(X, Y)
    np.testing.assert_array_equal(estimator.predict(X)[:, 3:], [[0, 1]] * len(y))
    assert estimator.n_iter_.tolist() == [30, 30, 30, 0, 0]


def test_sample_weights_repeat_examples():
    X, y = make_data()
    times = np.random.default_rng(0).integers(0, 4, len(y))
    weighted = AdaBoostClassifier(n_estimators=50).fit(X, y, sample_weight=times)
    repeated = AdaBoostClassifier(n_estimators=50).fit(np.repeat(X, times, axis=0), np.repeat(y, times))
    np.testing.assert_allclose(weighted.coef_, repeated.coef_, rtol=1e-6)
    balanced = AdaBoostClassifier(n_estimators=50, class_weight={0: 2, 1: 1, 2: 1}).fit(X, y)
    by_hand = AdaBoostClassifier(n_estimators=50).fit(X, y, sample_weight=np.where(y == 0, 2, 1))
    np.testing.assert_array_equal(balanced.coef_, by_hand.coef_)


def test_values_of_any_scale():
    """Each column is divided by its greatest absolute value."""
    X, y = make_data()
    scale = np.array([1, -3, 0.01, 1e6, 1, 1, 1, 1, 1, 1])
    plain, scaled = (AdaBoostClassifier(n_estimators=60).fit(form, y) for form in (X, X * scale))
    np.testing.assert_allclose(scaled.coef_ * scale, plain.coef_, rtol=1e-7)


@pytest.mark.parametrize("early_stopping", [False, True])
def test_threads_do_not_change_the_result(early_stopping):
    X, y = make_data(n_classes=5)
    options = {"n_estimators": 50, "early_stopping": early_stopping, "random_state": 0}
    one, two = (AdaBoostClassifier(**options, n_jobs=n_jobs).fit(X, y) for n_jobs in (None, 2))
    np.testing.assert_array_equal(one.coef_, two.coef_)
    np.testing.assert_array_equal(one.model_.objective, two.model_.objective)


@pytest.mark.parametrize(("loss", "of_zero"), [("logistic", np.log(2)), ("exponential", 1.0)])
def test_loss_of_zero_weights_without_an_intercept(loss, of_zero):
    X, y = make_data()
    model = AdaBoostClassifier(loss=loss, n_estimators=50, fit_intercept=False).fit(X, y).model_
    np.testing.assert_allclose(model.objective_zero, of_zero)
    assert (model.objective < model.objective_zero).all()


@pytest.mark.parametrize("loss", ["logistic", "exponential"])
def test_early_stopping_keeps_the_best_rounds(loss):
    X, y = make_data(n_samples=300, n_features=60)
    estimator = AdaBoostClassifier(loss=loss, n_estimators=400, early_stopping=True)
    estimator.fit(X[:150], y[:150], X_val=X[150:], y_val=y[150:])
    best = estimator.validation_errors_.argmin()
    assert estimator.n_estimators_ == estimator.validation_rounds_[best]
    assert estimator.validation_rounds_[-1] < 400 and len(estimator.validation_rounds_) == best + 11
    straight = AdaBoostClassifier(loss=loss, n_estimators=estimator.n_estimators_).fit(X[:150], y[:150])
    np.testing.assert_allclose(estimator.coef_, straight.coef_)
    np.testing.assert_allclose(estimator.objective_, straight.objective_)
    np.testing.assert_array_equal(estimator.n_iter_, straight.n_iter_)
    assert straight.score(X[150:], y[150:]) == pytest.approx(1 - estimator.validation_errors_[best])
    drawn = AdaBoostClassifier(n_estimators=50, early_stopping=True, random_state=0).fit(sparse.csc_array(X), y)
    assert 0 < drawn.model_.total_weight < 300 and drawn.n_estimators_ <= 50
    assert not hasattr(drawn.set_params(early_stopping=False).fit(X, y), "validation_errors_")


class CountedRounds:
    """Rounds that all classes together have had, those made again counting twice."""

    def __init__(self, patch):
        self.n = 0
        run = Booster.run

        class Counting(Booster):
            def run(booster, n, stop=None):
                before = booster.n_iter
                status = run(booster, n, stop)
                self.n += booster.n_iter - before
                return status

        patch.setattr("sl1max.estimators._adaboost.Booster", Counting)


def test_early_stopping_makes_no_more_rounds(monkeypatch):
    X, y = make_data(n_samples=300, n_features=60)
    counted = CountedRounds(monkeypatch)
    patient = AdaBoostClassifier(n_estimators=400, early_stopping=True, n_iter_no_change=100, random_state=0).fit(X, y)
    assert patient.validation_rounds_[-1] == 400 and counted.n == 3 * 400
    counted.n = 0
    eager = AdaBoostClassifier(n_estimators=400, early_stopping=True, n_iter_no_change=2, random_state=0).fit(X, y)
    n_looks = len(eager.validation_rounds_)
    assert eager.validation_errors_.argmin() == n_looks - 3
    np.testing.assert_array_equal(eager.validation_errors_, patient.validation_errors_[:n_looks])
    assert counted.n == 3 * eager.validation_rounds_[-1] < 3 * 400


@pytest.mark.parametrize("engine", ["loky", "no room"])
def test_early_stopping_without_states(engine, monkeypatch):
    """Rounds that are made anew, for want of memory or in other processes, are the same."""
    X, y = make_data(n_samples=200, n_features=40)
    options = {"n_estimators": 200, "early_stopping": True, "random_state": 0, "n_iter_no_change": 4}
    plain = AdaBoostClassifier(**options).fit(X, y)
    if engine == "no room":
        monkeypatch.setattr("sl1max.estimators._adaboost.KEPT_BYTES", 0)
        other = AdaBoostClassifier(**options).fit(X, y)
    else:
        with joblib.parallel_config(engine, n_jobs=2):
            other = AdaBoostClassifier(**options).fit(X, y)
    np.testing.assert_array_equal(other.validation_rounds_, plain.validation_rounds_)
    np.testing.assert_array_equal(other.validation_errors_, plain.validation_errors_)
    np.testing.assert_array_equal(other.coef_, plain.coef_)


def test_early_stopping_ends_with_the_rounds():
    """No class has anything to gain after a few rounds, or the callback has ended all of them."""
    X, y = np.ones((4, 1)), np.array([0, 0, 0, 1])
    options = {"early_stopping": True, "n_iter_no_change": 1000}
    stalled = AdaBoostClassifier(n_estimators=1000, **options).fit(X, y, X_val=X, y_val=y)
    plain = AdaBoostClassifier(n_estimators=1000).fit(X, y)
    assert stalled.validation_rounds_[-1] == plain.n_estimators_ < 1000
    ended = AdaBoostClassifier(n_estimators=1000, callback=lambda progress: progress.n_iter >= 30, **options)
    assert ended.fit(*make_data()).validation_rounds_.tolist() == [10, 20, 30]


def test_early_stopping_on_label_sets():
    X, y = make_data()
    Y = sparse.csr_array(np.eye(3)[y])
    sets = AdaBoostClassifier(n_estimators=50, early_stopping=True).fit(X, Y, X_val=X, y_val=Y)
    vector = AdaBoostClassifier(n_estimators=50, early_stopping=True).fit(X, y, X_val=X, y_val=y)
    np.testing.assert_allclose(sets.validation_errors_, vector.validation_errors_)


def test_callback_and_progress(capsys):
    X, y = make_data()
    seen = []
    estimator = AdaBoostClassifier(n_estimators=1000, callback=lambda progress: seen.append(progress) or True)
    estimator.fit(X, y)
    assert estimator.n_estimators_ == 100 and not estimator.model_.converged.any()
    assert sorted(progress.class_label for progress in seen) == [0, 1, 2]
    AdaBoostClassifier(n_estimators=50, verbose=1, early_stopping=True).fit(X, y)
    lines = capsys.readouterr().err.splitlines()
    assert len(lines) == 6 and "nan" not in "".join(lines) and "of 50 rounds" in lines[-1]
    assert lines[0].startswith("sl1max: 10 rounds: validation error 0.")


def test_saved_and_loaded(tmp_path):
    X, y = make_data()
    model = AdaBoostClassifier(n_estimators=50).fit(X, y).model_
    model.save(tmp_path / "model")
    np.testing.assert_array_equal(sl1max.load(tmp_path / "model").predict_proba(X), model.predict_proba(X))


@pytest.mark.parametrize(
    ("options", "says"),
    [
        ({"loss": "hinge"}, "loss='hinge'"),
        ({"n_estimators": 0}, "n_estimators=0"),
        ({"smoothing": -1}, "smoothing=-1"),
        ({"n_jobs": 0}, "n_jobs=0"),
        ({"validation_fraction": 2, "early_stopping": True}, "validation_fraction=2"),
        ({"n_iter_no_change": 0, "early_stopping": True}, "n_iter_no_change=0 must be a positive integer"),
    ],
)
def test_impossible_options(options, says):
    with pytest.raises(ValueError, match=says):
        AdaBoostClassifier(**options).fit(*make_data())


def test_impossible_data():
    X, y = make_data()
    with pytest.raises(ValueError, match="soft labels"):
        AdaBoostClassifier().fit(X, np.eye(3)[y] * 0.5)
    with pytest.raises(ValueError, match="early stopping"):
        AdaBoostClassifier().fit(X, y, X_val=X, y_val=y)
    with pytest.raises(ValueError, match="together"):
        AdaBoostClassifier(early_stopping=True).fit(X, y, X_val=X)
    with pytest.raises(ValueError, match=r"^y_val has 3 examples, but X_val has 120$"):
        AdaBoostClassifier(early_stopping=True).fit(X, y, X_val=X, y_val=y[:3])


def test_memory_runs_out(monkeypatch):
    X, y = make_data()
    with monkeypatch.context() as patch:
        patch.setattr("sl1max.estimators._adaboost.Booster", raising(MemoryError("1 GiB")))
        with pytest.raises(FitMemoryError, match=r"class 0 and 2 more \(.*\): lower n_jobs, or train on fewer"):
            AdaBoostClassifier().fit(X, y)
    monkeypatch.setattr("sl1max.estimators._adaboost.weigh_inactive", raising(MemoryError("1 GiB")))
    with pytest.raises(MemoryError, match=r"not enough memory for the training set \(1 GiB\)"):
        AdaBoostClassifier().fit(X, y)


@pytest.mark.slow
def test_webkb_is_no_worse_than_the_paper():
    """7.10 % over four folds; the rounds are chosen on a tenth of the training pages."""
    data = fetch_webkb()
    X, y = sparse.csr_array(data.X_train), data.y_train
    wrong = 0
    for fold in range(4):
        train = data.folds != fold
        estimator = AdaBoostClassifier(early_stopping=True, random_state=0).fit(X[train], y[train])
        wrong += np.sum(estimator.predict(X[~train]) != y[~train])
    assert wrong / len(y) < 0.0710
