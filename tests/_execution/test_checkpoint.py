"""Checkpoints: what is finished stays, a second call goes on, and nothing else is mistaken for it."""

import errno
import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import numpy as np
import pytest
from problems import (
    MODELS,
    assert_close_models,
    assert_equal_models,
    break_classes,
    interrupt_after,
    long_problem,
    make_data,
    wide_problem,
)
from scipy import sparse

import sl1max
from sl1max._execution import checkpoint, parallel
from sl1max._execution.checkpoint import Journal
from sl1max.exceptions import CheckpointError, FitMemoryError
from sl1max.training._early_stopping import fit_early_stopping


@pytest.fixture
def path(tmp_path):
    return tmp_path / "fit.checkpoint"


@pytest.fixture
def solved(monkeypatch):
    """The classes that are solved rather than read."""
    labels = []
    attempt = parallel.attempt

    def counted(reduction, plan, *args):
        labels.append(reduction.class_label(plan))
        return attempt(reduction, plan, *args)

    monkeypatch.setattr(parallel, "attempt", counted)
    return labels


@pytest.mark.parametrize("solver", ["auto", "sequential"])
@pytest.mark.parametrize("fit_intercept", [True, False])
@pytest.mark.parametrize(("distribution", "classes"), MODELS)
def test_the_second_call_has_nothing_to_do(path, solved, distribution, classes, fit_intercept, solver):
    X, y = make_data()
    options = {"distribution": distribution, "classes": classes, "fit_intercept": fit_intercept, "solver": solver}
    model = sl1max.fit(X, y, checkpoint=path, **options)
    assert_equal_models(model, sl1max.fit(X, y, **options))
    solved.clear()
    assert_equal_models(sl1max.fit(X, y, checkpoint=path, **options), model)
    assert solved == []


@pytest.mark.parametrize("n_jobs", [1, 2])
@pytest.mark.parametrize(("distribution", "classes"), MODELS[1:])
def test_going_on_after_ctrl_c(path, solved, distribution, classes, n_jobs):
    X, y = long_problem()
    options = {"distribution": distribution, "classes": classes, "beta": 0.3, "n_jobs": n_jobs}
    with pytest.raises(KeyboardInterrupt):
        sl1max.fit(X, y, checkpoint=path, callback=interrupt_after(5), **options)
    n_begun = len(solved)
    solved.clear()
    model = sl1max.fit(X, y, checkpoint=path, **options)
    n_problems = 40 * (2 if (distribution, classes) == ("joint", "independent") else 1)
    assert 0 < len(solved) <= n_problems - 4
    assert n_begun + len(solved) >= n_problems
    assert np.all(model.converged)
    np.testing.assert_allclose(model.objective, sl1max.fit(X, y, **options).objective, rtol=2e-4)


def test_going_on_with_a_model_of_one_problem(path, monkeypatch):
    """Weights are noted on the way, and the next call starts from them."""
    X, y = make_data(n_samples=300, n_features=30, n_classes=5)
    monkeypatch.setattr(checkpoint, "SECONDS_BETWEEN_NOTES", 0.0)
    options = {"beta": 0.1, "tol": 1e-8}
    whole = sl1max.fit(X, y, **options)

    def fail(progress):
        if progress.n_iter == whole.n_iter - 1:
            raise RuntimeError("power cut")

    with pytest.raises(RuntimeError, match="power cut"):
        sl1max.fit(X, y, checkpoint=path, callback=fail, **options)
    seen = []
    model = sl1max.fit(X, y, checkpoint=path, callback=seen.append, **options)
    assert len(seen) < whole.n_iter
    assert model.n_iter >= whole.n_iter - 1
    assert model.converged
    assert_close_models(model, whole, X[:50], atol=1e-2)


def test_more_iterations_than_before(path):
    X, y = make_data()
    with pytest.warns(sl1max.ConvergenceWarning):
        sl1max.fit(X, y, classes="independent", tol=1e-9, max_iter=1, checkpoint=path)
    model = sl1max.fit(X, y, classes="independent", tol=1e-9, checkpoint=path)
    assert model.converged.all()
    assert_close_models(model, sl1max.fit(X, y, classes="independent", tol=1e-9), X)


def test_a_class_fails(path, solved, monkeypatch):
    X, y = make_data()
    with monkeypatch.context() as patch:
        break_classes(patch, MemoryError("1 GiB"), [1])
        with pytest.raises(FitMemoryError, match="class 1"):
            sl1max.fit(X, y, classes="independent", checkpoint=path)
    solved.clear()
    model = sl1max.fit(X, y, classes="independent", checkpoint=path)
    assert solved == [1]
    assert_equal_models(model, sl1max.fit(X, y, classes="independent"))


def test_not_for_many_models(path):
    X, y = make_data()
    for option in ({"checkpoint": path}, {"on_interrupt": "return"}):
        (name,) = option
        with pytest.raises(ValueError, match=f"{name} cannot be used for a path, which is many models"):
            sl1max.path(X, y, **option)
        with pytest.raises(ValueError, match=f"{name} cannot be used with early stopping, which trains many models"):
            fit_early_stopping(X[:40], y[:40], X[40:], y[40:], **option)
    assert not path.exists()


# Which fit it belongs to


def change(**changes):
    X, y = make_data(values="real")
    options = {"X": X, "y": y, "classes": "independent"}
    return options | changes


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"X": make_data(seed=1)[0]}, "X differs"),
        ({"y": 2 - make_data(values="real")[1]}, "y differs"),
        ({"sample_weight": np.arange(1.0, 61)}, "sample_weight differs"),
        ({"offset": np.ones(60)}, "offset differs"),
        ({"beta": 0.25}, "beta is 0.5 there and 0.25 here"),
        ({"beta": np.ones(10)}, "beta differs"),
        ({"beta_rule": "count"}, "beta_rule is deviation there and count here"),
        ({"distribution": "joint", "tol": 1e-3}, "is conditional there and joint here, tol is 0.0001 there"),
        ({"fit_intercept": False}, "fit_intercept is True there and False here"),
        ({"classes": "exclusive"}, "classes is independent there and exclusive here"),
    ],
)
def test_a_checkpoint_of_another_fit(path, changes, message):
    sl1max.fit(**change(), checkpoint=path)
    with pytest.raises(CheckpointError) as caught:
        sl1max.fit(**change(**changes), checkpoint=path)
    text = str(caught.value)
    assert "the checkpoint is of another fit: " in text and message in text
    assert text.endswith("Name another file, or delete this one to start anew")
    assert str(path) in text


def test_another_warm_start(path):
    start = sl1max.fit(**change())
    sl1max.fit(**change(), checkpoint=path)
    with pytest.raises(CheckpointError, match="warm_start differs"):
        sl1max.fit(**change(), checkpoint=path, warm_start=start)


def test_what_makes_no_difference(path, solved):
    """Formats of the same matrix, threads, reports."""
    options = change()
    X = sparse.csc_array(options.pop("X"))
    model = sl1max.fit(X, **options, checkpoint=path)
    solved.clear()
    for same in (sparse.csr_array(X), sparse.coo_matrix(X)):
        again = sl1max.fit(same, **options, n_jobs=2, callback=lambda progress: None, max_iter=500, checkpoint=path)
        assert_equal_models(again, model)
    assert solved == []


# Files


@pytest.mark.parametrize("content", [b"", b"\x93SL1MAX\n" + bytes(100), checkpoint.MAGIC])
def test_other_files_are_left_alone(path, content):
    path.write_bytes(content)
    with pytest.raises(CheckpointError, match="not a checkpoint of sl1max"):
        sl1max.fit(**change(), checkpoint=path)
    assert path.read_bytes() == content


def test_damaged_heads(path):
    sl1max.fit(**change(), checkpoint=path)
    content = path.read_bytes()
    path.write_bytes(content[:60])
    with pytest.raises(CheckpointError, match="the head of the checkpoint is not whole"):
        sl1max.fit(**change(), checkpoint=path)
    path.write_bytes(content[:8] + b"\x07" + content[9:])
    with pytest.raises(CheckpointError, match="a checkpoint of format 7, and this sl1max reads 1"):
        sl1max.fit(**change(), checkpoint=path)


def test_a_crash_in_the_middle_of_a_record(path, solved):
    model = sl1max.fit(**change(), checkpoint=path)
    content = path.read_bytes()
    for cut in (content[:-1], content[:-200], content[:-5] + b"abcde", content + b"\x01\x02\x03"):
        path.write_bytes(cut)
        solved.clear()
        assert_equal_models(sl1max.fit(**change(), checkpoint=path), model)
        assert len(solved) <= 2
        assert len(path.read_bytes()) == len(content)


def test_one_fit_at_a_time(path):
    pytest.importorskip("fcntl")

    def fit_again(progress):
        with pytest.raises(CheckpointError, match="another fit is using this checkpoint"):
            sl1max.fit(**change(), checkpoint=path)

    sl1max.fit(**change(), checkpoint=path, callback=fit_again)


def test_a_folder_that_is_not_there(tmp_path):
    with pytest.raises(FileNotFoundError, match="there is no folder"):
        sl1max.fit(**change(), checkpoint=tmp_path / "none" / "fit.checkpoint")


def fill_disk(monkeypatch, room):
    """Let a file take so many bytes more, as a full disk would; returns what empties it."""
    state = {"room": room}

    def write_some(file, content):
        if not state["room"]:
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
        taken = min(len(content), state["room"])
        state["room"] -= taken
        return file.write(content[:taken])

    monkeypatch.setattr(checkpoint, "write_some", write_some)
    return state


def test_a_full_disk(path, solved, monkeypatch):
    """The fit goes on, says so once, and what is on the disk stays readable."""
    X, y = make_data(n_classes=6, n_samples=200)
    plain = sl1max.fit(X, y, classes="independent")
    with monkeypatch.context() as patch:
        fill_disk(patch, 500)
        with pytest.warns(UserWarning, match="cannot be written .No space left on device.; the fit goes on") as record:
            model = sl1max.fit(X, y, classes="independent", checkpoint=path)
    assert len(record) == 1
    assert_equal_models(model, plain)
    solved.clear()
    assert_equal_models(sl1max.fit(X, y, classes="independent", checkpoint=path), plain)
    assert 0 < len(solved) < 6


def test_a_disk_that_has_room_again(path, solved, monkeypatch):
    X, y = make_data(n_classes=6, n_samples=200)
    state = fill_disk(monkeypatch, 500)

    def make_room(progress):
        if len(set(solved)) == 5:
            state["room"] = 10**6

    with pytest.warns(UserWarning, match="cannot be written"):
        sl1max.fit(X, y, classes="independent", checkpoint=path, callback=make_room)
    solved.clear()
    sl1max.fit(X, y, classes="independent", checkpoint=path)
    assert solved == []


def test_a_full_disk_at_the_start(path, monkeypatch):
    def no_room(*_):
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    monkeypatch.setattr("os.fsync", no_room)
    with pytest.raises(OSError, match="No space left"):
        sl1max.fit(**change(), checkpoint=path)
    assert not path.exists()


def test_records_wait_for_the_disk(path, monkeypatch):
    fill_disk(monkeypatch, 0)
    with Journal(path, {"X": "1"}) as journal, pytest.warns(UserWarning, match="cannot be written"):
        journal.add(0, sl1max._models.reduction.Solution(None, [], np.zeros(1), 0.0, 1.0, 1.0, 0.0, 3, "converged"))
        assert journal.n_waiting == 1


@pytest.mark.slow
def test_a_process_is_killed(path):
    """At any moment: what it had finished is there, and the result is that of an undisturbed fit, bit for bit."""
    code = """
import sys
sys.path.insert(0, sys.argv[1])
from problems import long_problem
import sl1max
sl1max.fit(*long_problem(), classes="independent", beta=0.3, checkpoint=sys.argv[2])
"""
    for _ in range(3):
        command = [sys.executable, "-P", "-c", code, str(Path(__file__).parents[1]), str(path)]
        process = subprocess.Popen(command)
        size = path.stat().st_size if path.exists() else 0
        while process.poll() is None and not (path.exists() and path.stat().st_size > size + 20_000):
            time.sleep(0.002)
        process.send_signal(signal.SIGKILL)
        process.wait()
    X, y = long_problem()
    options = {"classes": "independent", "beta": 0.3}
    assert_equal_models(sl1max.fit(X, y, checkpoint=path, **options), sl1max.fit(X, y, **options))


@pytest.mark.slow
@pytest.mark.skipif(not sys.platform.startswith("linux"), reason="limits memory as Linux does")
def test_memory_runs_out(path):
    """For real, in the middle of a fit: the message says what to lower, and what was finished is there."""
    code = """
import resource, sys
sys.path.insert(0, sys.argv[1])
from problems import wide_problem
import sl1max
n_ended = 0
def limit(progress):
    global n_ended
    n_ended += progress.dual_gap <= progress.target
    if n_ended == 5:
        used = int(open("/proc/self/statm").read().split()[0]) * resource.getpagesize()
        resource.setrlimit(resource.RLIMIT_AS, (used - 2**22, -1))
X, y = wide_problem()
try:
    sl1max.fit(X, y, classes="independent", checkpoint=sys.argv[2], callback=limit)
except MemoryError as error:
    resource.setrlimit(resource.RLIMIT_AS, (-1, -1))
    print(len(error.failed), len(error.model.unfinished), error)
"""
    command = [sys.executable, "-P", "-c", code, str(Path(__file__).parents[1]), str(path)]
    done = subprocess.run(command, capture_output=True, text=True, timeout=120)
    assert done.returncode == 0, done.stderr
    n_failed, n_unfinished, message = done.stdout.split(maxsplit=2)
    assert 0 < int(n_failed) == int(n_unfinished) <= 10
    assert "not enough memory to train class" in message and "lower n_jobs" in message
    X, y = wide_problem()
    seen = set()
    model = sl1max.fit(
        X, y, classes="independent", checkpoint=path, callback=lambda progress: seen.add(progress.class_label)
    )
    assert len(seen) == int(n_failed) and model.converged.all()
