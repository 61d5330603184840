"""Problems solved in threads and by workers elsewhere: nothing is lost to errors, deaths and Ctrl-C."""

import os
import pickle
import signal
import subprocess
import sys
import threading
import warnings
from pathlib import Path

import numpy as np
import pytest
from problems import MODELS, assert_equal_models, break_classes, interrupt_after, long_problem, make_data
from stand_ins import Problems
from strategies import random_data

import sl1max
from sl1max._data.inputs import read_data
from sl1max._execution import parallel
from sl1max._execution.control import FitControl
from sl1max._execution.parallel import is_death, make_groups, solve_all
from sl1max.chunks import row_pieces, store_columns
from sl1max.exceptions import FitError, FitMemoryError

joblib = pytest.importorskip("joblib")


def solve_words(words, n_jobs=1):
    return solve_all(Problems(words), FitControl(algorithm="newton", tol=1e-3), n_jobs)


# Errors


@pytest.mark.parametrize("n_jobs", [1, 2])
def test_an_error_takes_nothing_from_the_others(n_jobs):
    outcome = solve_words(["fine", "error", "fine", "memory", "fine"], n_jobs)
    assert sorted(outcome.solved) == [0, 2, 4]
    assert outcome.missing == [1, 3]
    assert str(outcome.failed[1]) == "ArithmeticError: no solution of 1"
    assert str(outcome.failed[3]) == "MemoryError"


@pytest.mark.parametrize("n_jobs", [1, 2])
def test_a_class_that_fails_is_named(monkeypatch, n_jobs):
    X, y = make_data()
    whole = sl1max.fit(X, y, label_mode="independent")
    break_classes(monkeypatch, ArithmeticError("bad luck"), [1])
    with pytest.raises(FitError, match=r"^class 1 could not be trained: ArithmeticError: bad luck\.") as caught:
        sl1max.fit(X, y, label_mode="independent", n_jobs=n_jobs)
    error = pickle.loads(pickle.dumps(caught.value))
    assert list(error.failed) == [1]
    assert error.model.unfinished.tolist() == [1]
    assert error.model.converged.tolist() == [True, False, True]
    np.testing.assert_array_equal(error.model.weights[[0, 2]].toarray(), whole.weights[[0, 2]].toarray())
    assert 1 not in error.model.predict(X)


ONE_PROBLEM = (
    r"^not enough memory to train the model \(MemoryError: 1 GiB\): train on fewer examples, features or classes, or "
    r'with label_mode="independent", one class at a time$'
)


def test_memory_runs_out_for_a_class(monkeypatch):
    X, y = make_data()
    break_classes(monkeypatch, MemoryError("1 GiB"), [0, 2])
    with pytest.raises(MemoryError, match=r"train class 0 and 1 more \(MemoryError: 1 GiB\): lower n_jobs") as caught:
        sl1max.fit(X, y, label_mode="independent")
    assert isinstance(caught.value, FitMemoryError)
    assert caught.value.model.unfinished.tolist() == [0, 2]
    break_classes(monkeypatch, MemoryError("1 GiB"), [None])
    with pytest.raises(FitMemoryError, match=ONE_PROBLEM) as caught:
        sl1max.fit(X, y)
    assert caught.value.model is None


def test_memory_runs_out_while_reading(monkeypatch):
    def fail(*_):
        raise MemoryError("Unable to allocate 33. GiB")

    monkeypatch.setattr("sl1max._data.moments.ClassSums", fail)
    with pytest.raises(MemoryError, match=r"training set \(Unable to allocate 33. GiB\): train on fewer examples"):
        sl1max.fit(*make_data())


# Ctrl-C


@pytest.mark.parametrize("n_jobs", [1, 2])
@pytest.mark.parametrize(("distribution", "label_mode"), MODELS[1:])
def test_ctrl_c_returns_what_is_finished(distribution, label_mode, n_jobs):
    X, y = long_problem()
    options = {"distribution": distribution, "label_mode": label_mode, "beta": 0.3, "n_jobs": n_jobs}
    with pytest.warns(sl1max.ConvergenceWarning, match=r"interrupted: .* classes are finished, .* were not begun"):
        model = sl1max.fit(X, y, on_interrupt="return", callback=interrupt_after(5), **options)
    assert 0 < len(model.unfinished) < model.n_classes
    assert not np.all(model.converged) and "not converged" in repr(model)
    assert not np.isin(model.predict(X[:500]), model.unfinished).any()
    if np.ndim(model.dual_gap):
        gone = np.isin(model.classes, model.unfinished)
        assert np.isinf(model.dual_gap[gone]).all() and np.isfinite(model.dual_gap[~gone]).all()
        assert model.converged.sum() >= 2
    else:
        assert model.dual_gap == np.inf


def test_ctrl_c_in_a_model_of_one_problem():
    X, y = long_problem()

    def press(progress):
        if progress.n_iter == 2:
            os.kill(os.getpid(), signal.SIGINT)

    with pytest.warns(sl1max.ConvergenceWarning, match="interrupted: the model is as it was then, at a duality gap of"):
        model = sl1max.fit(X, y, beta=0.1, tol=1e-9, on_interrupt="return", callback=press)
    assert not model.converged and len(model.unfinished) == 0
    assert 0 < model.dual_gap < np.inf and model.weights.nnz > 0
    assert model.objective < model.objective_zero


def test_ctrl_c_before_anything_is_finished(monkeypatch):
    def press(*_):
        raise KeyboardInterrupt

    monkeypatch.setattr(parallel, "attempt", press)
    with pytest.raises(KeyboardInterrupt):
        sl1max.fit(*make_data(), label_mode="independent", on_interrupt="return")


def test_unknown_on_interrupt():
    with pytest.raises(ValueError, match="on_interrupt='ignore' is unknown: it must be one of 'raise', 'return'"):
        sl1max.fit(*make_data(), on_interrupt="ignore")


def test_a_model_with_unfinished_classes_can_be_kept(tmp_path, monkeypatch):
    X, y = make_data()
    break_classes(monkeypatch, ArithmeticError("bad luck"), [1])
    for distribution, label_mode in MODELS[1:]:
        with pytest.raises(FitError) as caught:
            sl1max.fit(X, y, distribution=distribution, label_mode=label_mode)
        model = caught.value.model
        model.save(tmp_path / "part.sl1max")
        again = sl1max.load(tmp_path / "part.sl1max")
        assert again.unfinished.tolist() == [1]
        np.testing.assert_array_equal(again.predict(X), model.predict(X))
        assert np.isfinite(model.predict_proba(X)).all()


# Order and groups


def test_longest_first():
    X, y = make_data(n_samples=200, n_classes=6)
    y = np.minimum(y, 5) ** 2 % 7
    seen = []
    sl1max.fit(X, y, label_mode="independent", callback=lambda progress: seen.append(progress.class_label))
    sizes = [(y == label).sum() for label in dict.fromkeys(seen)]
    assert sizes == sorted(sizes, reverse=True)


def test_groups():
    efforts = [100.0, 50.0, 50.0] + [1.0] * 500
    order = list(range(len(efforts)))
    groups = make_groups(order, efforts, 2)
    assert [k for group in groups for k in group] == order
    assert groups[:3] == [[0], [1], [2]]
    assert max(map(len, groups)) <= 64 and len(groups) < 60
    assert make_groups([3, 1], [1.0] * 4, 1000) == [[3], [1]]


def test_deaths():
    class KilledWorker(Exception):
        pass

    class Worse(KilledWorker):
        pass

    assert is_death(Worse()) and is_death(joblib.externals.loky.process_executor.BrokenProcessPool())
    assert not is_death(ValueError())


# Processes


def test_a_training_set_travels():
    rng = np.random.default_rng(0)
    X, y = random_data(rng, 50, 8, 3, "real")
    for offset in (None, rng.normal(size=50), rng.normal(size=(50, 3))):
        data = read_data(
            X, y, distribution="joint", label_mode="auto", multilabel_weighting="equal", solver="auto",
            sample_weight=np.arange(50), offset=offset,
        )  # fmt: skip
        content = pickle.dumps(data)
        again = pickle.loads(content)
        assert len(content) < 8000
        assert again.columns.nnz == data.columns.nnz
        if offset is not None:
            np.testing.assert_array_equal(again.offset, data.offset)


@pytest.mark.slow
@pytest.mark.parametrize(("distribution", "label_mode"), MODELS)
def test_processes_give_the_same_bits(distribution, label_mode, capsys):
    X, y = make_data(n_samples=200, n_features=30, n_classes=8)
    options = {"distribution": distribution, "label_mode": label_mode}
    seen = []
    with joblib.parallel_config("loky", n_jobs=2):
        model = sl1max.fit(X, y, callback=seen.append, verbose=1, **options)
    assert_equal_models(model, sl1max.fit(X, y, **options))
    if (distribution, label_mode) != ("conditional", "exclusive"):
        assert {progress.class_label for progress in seen} == set(range(8))
        assert len(capsys.readouterr().err.splitlines()) == len(seen)


def test_boosting_in_processes():
    boosting = pytest.importorskip("sl1max.estimators._adaboost")
    X, y = make_data(n_samples=200, n_features=30, n_classes=4)
    with joblib.parallel_config("loky", n_jobs=2):
        model = boosting.boost(X, y, n_estimators=20).model()
    assert_equal_models(model, boosting.boost(X, y, n_estimators=20).model())


def run_script(code, **variables):
    """In a process of its own, whose workers find the stand-ins."""
    environment = os.environ | {"PYTHONPATH": str(Path(__file__).parents[1])} | variables
    command = [sys.executable, "-P", "-c", code]
    done = subprocess.run(command, capture_output=True, text=True, env=environment, timeout=120)
    assert done.returncode == 0, done.stderr
    return done.stdout.splitlines()


@pytest.mark.slow
def test_threads_of_the_blas_make_no_difference():
    """Workers have other numbers of them than the process that calls."""
    code = """
import hashlib, numpy as np, sl1max
from problems import many_rows
for options in ({"label_mode": "independent"}, {"distribution": "joint", "label_mode": "independent"}):
    X, y, offset, weight = many_rows()
    model = sl1max.fit(X, y, offset=offset, sample_weight=weight, tol=1e-3, **options)
    bits = model.weights.data.tobytes() + model.intercept.tobytes() + model.objective.tobytes()
    print(hashlib.sha256(bits).hexdigest())
"""
    one, two = (run_script(code, OPENBLAS_NUM_THREADS=str(n)) for n in (1, 2))
    assert one == two


@pytest.mark.slow
def test_a_class_that_kills_its_process():
    code = """
import joblib
from stand_ins import Problems
from sl1max._execution.parallel import solve_all
from sl1max._execution.control import FitControl
words = ["fine", "fine", "deadly", "fine", "error"] + ["fine"] * 20
with joblib.parallel_config("loky", n_jobs=2):
    outcome = solve_all(Problems(words, seconds=0.05), FitControl(algorithm="newton", tol=1e-3), None)
print(sorted(set(range(25)) - set(outcome.solved)))
print(outcome.failed[2])
print(outcome.failed[4])
"""
    missing, death, error = run_script(code)
    assert missing == "[2, 4]"
    assert death.startswith("TerminatedWorkerError: its worker died (")
    assert error == "ArithmeticError: no solution of 4"


@pytest.mark.full
def test_a_class_that_kills_its_workers():
    """Those of a cluster, one after the other, until nobody has the training set any more."""
    pytest.importorskip("dask.distributed")
    code = """
import joblib
from dask.distributed import Client
from stand_ins import Problems
from sl1max._execution.parallel import solve_all
from sl1max._execution.control import FitControl
if __name__ == "__main__":
    words = ["fine", "fine", "deadly"] + ["fine"] * 9
    with Client(n_workers=2, threads_per_worker=1, dashboard_address=None), joblib.parallel_config("dask"):
        outcome = solve_all(Problems(words), FitControl(algorithm="newton", tol=1e-3), None)
    print(sorted(outcome.solved))
    print({k: "its worker died" in failure.text for k, failure in outcome.failed.items()})
"""
    solved, failed = run_script(code)
    assert solved == "[0, 1, 3, 4, 5, 6, 7, 8, 9, 10, 11]"
    assert failed == "{2: True}"


# A cluster


@pytest.fixture(scope="module")
def cluster():
    """Three worker processes, and a client."""
    distributed = pytest.importorskip("dask.distributed")
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        with (
            distributed.LocalCluster(n_workers=3, threads_per_worker=1, dashboard_address=None) as made,
            distributed.Client(made) as client,
        ):
            yield client


@pytest.mark.full
@pytest.mark.parametrize(("distribution", "label_mode"), MODELS)
def test_a_cluster_gives_the_same_bits(cluster, distribution, label_mode):
    X, y = make_data(n_samples=200, n_features=30, n_classes=8)
    options = {"distribution": distribution, "label_mode": label_mode}
    with joblib.parallel_config("dask"):
        model = sl1max.fit(X, y, **options)
    assert_equal_models(model, sl1max.fit(X, y, **options))


@pytest.mark.full
def test_the_matrix_goes_to_each_worker_once(cluster):
    def begin_to_count():
        parallel.n_come = 0
        restore = parallel.restore

        def counted(*args):
            parallel.n_come += 1
            return restore(*args)

        parallel.restore = counted

    def n_sent():
        return sum(cluster.run(lambda dask_worker: dask_worker.transfer_outgoing_bytes_total).values())

    X, y = long_problem()
    options = {"label_mode": "independent", "beta": 0.5, "tol": 1e-2}
    cluster.run(begin_to_count)
    before = n_sent()
    with joblib.parallel_config("dask"):
        model = sl1max.fit(X, y, **options)
    # Tasks are many; towards the end the cluster may take the matrix from an idle worker and give it back.
    assert max(cluster.run(lambda: parallel.n_come).values()) <= 2
    matrix, results = 5 * X.nnz, 12 * model.weights.nnz + 10_000 * model.n_classes
    assert n_sent() - before < 6 * matrix + results
    assert_equal_models(model, sl1max.fit(X, y, **options))


@pytest.mark.full
@pytest.mark.parametrize(("distribution", "label_mode"), MODELS[1:])
def test_a_cluster_maps_a_matrix_in_files(cluster, distribution, label_mode, tmp_path):
    """Workers are sent the names of the files, and come to the same bits."""
    X, y = long_problem()
    columns = store_columns(list(row_pieces(X.tocsr(), 1000)), tmp_path)
    options = {"distribution": distribution, "label_mode": label_mode, "beta": 0.5, "tol": 1e-2}
    with joblib.parallel_config("dask"):
        model = sl1max.fit(columns, y, **options)
    assert_equal_models(model, sl1max.fit(X, y, **options))


@pytest.mark.full
def test_ctrl_c_while_a_cluster_works(cluster):
    X, y = long_problem()
    timer = []

    def press(progress):
        if not timer:
            timer.append(threading.Timer(0.1, os.kill, (os.getpid(), signal.SIGINT)))
            timer[0].start()

    with joblib.parallel_config("dask"), pytest.warns(sl1max.ConvergenceWarning, match="interrupted"):
        model = sl1max.fit(X, y, label_mode="independent", beta=0.1, on_interrupt="return", callback=press)
    assert 0 < len(model.unfinished) < model.n_classes


@pytest.mark.full
def test_a_worker_is_killed(cluster):
    """In the middle of a fit; the cluster starts another one, and no class is lost.

    The last of these tests: until that one is up, data that are sent to all workers may wait for it.
    """
    X, y = long_problem()
    seen = []

    def kill_one(progress):
        seen.append(progress.class_label)
        if len(seen) == 4:
            os.kill(next(iter(cluster.run(os.getpid).values())), signal.SIGKILL)

    with joblib.parallel_config("dask"):
        model = sl1max.fit(X, y, label_mode="independent", beta=0.5, tol=1e-2, callback=kill_one)
    assert_equal_models(model, sl1max.fit(X, y, label_mode="independent", beta=0.5, tol=1e-2))
    assert sorted(seen) == sorted(model.classes)


@pytest.mark.full
def test_ray(tmp_path, monkeypatch):
    """Its workers look for modules where they are started, so not in the sources."""
    ray_joblib = pytest.importorskip("ray.util.joblib")
    monkeypatch.chdir(tmp_path)
    ray_joblib.register_ray()
    X, y = make_data(n_samples=200, n_features=30, n_classes=8)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        with joblib.parallel_config("ray", n_jobs=2):
            model = sl1max.fit(X, y, label_mode="independent")
    assert_equal_models(model, sl1max.fit(X, y, label_mode="independent"))
