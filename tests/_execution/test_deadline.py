"""Fits that end when their time is over."""

import pickle
import time
from types import SimpleNamespace

import numpy as np
import pytest
from problems import MODELS, make_data
from stand_ins import Problems
from strategies import random_data

import sl1max
from sl1max._execution.control import TIME_IS_OVER, Deadline, FitControl
from sl1max._execution.parallel import solve_all
from sl1max.exceptions import ConvergenceWarning

LEAST = 1e-9  # seconds: over before anything is computed


class Timed(Problems):
    def first_solution(self, plan, algorithm, tol, begun=None):
        return SimpleNamespace(plan=plan, status="time_limit", number=plan)


def slow_problem(n_classes=3):
    """A problem that takes minutes to solve."""
    rng = np.random.default_rng(0)
    X = rng.random((3000, 300)) + 5 * rng.random((3000, 1))
    return X, rng.integers(0, n_classes, 3000)


def test_deadline_without_a_limit_is_never_over():
    flag = np.zeros(1, np.int32)
    deadline = Deadline()
    with deadline.watch(flag):
        assert not deadline.is_limited and not deadline.is_over and deadline.remaining == np.inf
    assert flag[0] == 0


def test_deadline_sets_the_flag_when_the_time_is_over():
    flag = np.zeros(1, np.int32)
    with Deadline(0.05).watch(flag):
        assert flag[0] == 0
        end = time.monotonic() + 60
        while flag[0] == 0 and time.monotonic() < end:
            time.sleep(0.01)
    assert flag[0] == TIME_IS_OVER


def test_deadline_leaves_a_flag_that_is_set():
    flag = np.ones(1, np.int32)
    with Deadline(0.0).watch(flag):
        pass
    assert flag[0] == 1


def test_deadline_that_is_passed_on_keeps_the_time_that_is_left():
    copy = pickle.loads(pickle.dumps(Deadline(1000.0)))
    assert 900 < copy.remaining <= 1000
    assert not pickle.loads(pickle.dumps(Deadline())).is_limited


@pytest.mark.parametrize("max_time", [0, -1, "1", np.nan])
def test_max_time_must_be_positive(max_time):
    X, y = make_data()
    for train in (
        lambda: sl1max.fit(X, y, max_time=max_time),
        lambda: sl1max.path(X, y, max_time=max_time),
        lambda: sl1max.Solver(sl1max.Problem(X, y)).step(max_time=max_time),
    ):
        with pytest.raises(ValueError, match=r"^max_time=.* must be a positive number of seconds or None$"):
            train()


@pytest.mark.parametrize("distribution, label_mode", MODELS)
def test_fit_out_of_time_has_a_model_with_an_honest_gap(distribution, label_mode):
    X, y = make_data()
    options = {"distribution": distribution, "label_mode": label_mode}
    best = sl1max.fit(X, y, tol=1e-10, **options)
    with pytest.warns(ConvergenceWarning, match="sl1max.fit reached max_time"):
        model = sl1max.fit(X, y, max_time=LEAST, **options)
    assert not np.all(model.converged)
    begun = ~np.isin(model.classes, model.unfinished)
    assert begun.any()
    distance, gap = np.atleast_1d(model.objective - best.objective), np.atleast_1d(model.dual_gap)
    known = np.isfinite(distance)
    assert known.all() or len(model.unfinished)
    assert (distance[known] <= gap[known] + 1e-12).all() and np.isinf(gap[~known]).all()
    assert model.predict(X).shape == y.shape


def test_fit_with_time_enough_is_the_same_model():
    X, y = make_data()
    model, limited = sl1max.fit(X, y), sl1max.fit(X, y, max_time=600)
    np.testing.assert_array_equal(model.weights.toarray(), limited.weights.toarray())


@pytest.mark.parametrize("n_jobs", [1, 2])
def test_problems_that_were_not_begun_have_no_solution(n_jobs):
    control = FitControl(algorithm="newton", tol=1e-3, deadline=Deadline(0.0))
    outcome = solve_all(Timed(["fine"] * 5), control, n_jobs)
    assert outcome.time_is_over and outcome.interrupt is None
    assert len(outcome.solved) == 1 and outcome.solutions[0].status == "time_limit"
    assert len(outcome.missing) == 4


def test_checkpoint_is_kept_when_the_time_is_over(tmp_path):
    X, y = random_data(np.random.default_rng(1), 200, 20)
    file = tmp_path / "fit.checkpoint"
    options = {"label_mode": "independent", "checkpoint": file}
    with pytest.warns(ConvergenceWarning, match="max_time"):
        sl1max.fit(X, y, max_time=LEAST, **options)
    assert file.exists()
    model = sl1max.fit(X, y, **options)
    assert np.all(model.converged)
    whole = sl1max.fit(X, y, label_mode="independent")
    np.testing.assert_allclose(model.objective, whole.objective, rtol=1e-3)


def test_path_out_of_time_has_the_models_so_far():
    X, y = make_data()
    with pytest.warns(ConvergenceWarning, match="max_time"):
        result = sl1max.path(X, y, [1.0, 0.5, 0.1], tol=1e-12, max_time=LEAST)
    assert len(result) == len(result.betas) == 1
    assert len(sl1max.path(X, y, [1.0, 0.5], max_time=600)) == 2


def test_long_round_ends_soon_after_its_time():
    """Within a round, too: the solver looks at the flag every few milliseconds of work."""
    X, y = slow_problem()
    start = time.monotonic()
    with pytest.warns(ConvergenceWarning, match="max_time"):
        model = sl1max.fit(X, y, beta=1e-6, tol=1e-13, max_time=0.3)
    assert not model.converged
    assert time.monotonic() - start < 60  # minutes otherwise: the bound tells a limit from none


def test_solver_step_ends_at_its_time_and_goes_on():
    X, y = make_data()
    solver = sl1max.Solver(sl1max.Problem(X, y))
    assert solver.step(100, max_time=LEAST) == solver.status == "time_limit"
    assert np.isfinite(solver.objective)
    assert solver.step(100) == "converged"


def test_estimators_take_max_time():
    pytest.importorskip("sklearn")
    X, y = make_data()
    with pytest.warns(ConvergenceWarning, match="max_time"):
        assert not sl1max.MaxentClassifier(max_time=LEAST).fit(X, y).model_.converged
    search = sl1max.MaxentClassifierCV(betas=[1.0, 0.1], cv=2, max_time=LEAST)
    with pytest.warns(ConvergenceWarning, match="max_time"):
        search.fit(X, y)
    scores = search.cv_results_["mean_test_score"]
    assert np.isfinite(scores[0]) and np.isnan(scores[1]) and search.beta_ == 1.0
    search = sl1max.MaxentClassifierCV(betas=[1.0, 0.1], cv=2, max_time=600).fit(X, y)
    assert np.isfinite(search.cv_results_["mean_test_score"]).all()


def test_early_stopping_ends_when_the_time_is_over():
    pytest.importorskip("sklearn")
    X, y = random_data(np.random.default_rng(2), 100, 10)
    model = sl1max.MaxentClassifier(early_stopping=True, max_time=LEAST, random_state=0)
    with pytest.warns(ConvergenceWarning, match="max_time"):
        model.fit(X, y)
    assert len(model.validation_errors_) == 1
