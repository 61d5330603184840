"""Checkpoints: what is finished stays, a second call goes on, and nothing else is mistaken for it."""

import errno
import hashlib
import itertools
import os
import shutil
import signal
import struct
import subprocess
import sys
import time
import warnings
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
def path_of_0_1_0(path):
    shutil.copy(Path(__file__).parents[1] / "data" / "checkpoint-0.1.0.ckpt", path)
    return path


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
@pytest.mark.parametrize(("distribution", "label_mode"), MODELS)
def test_the_second_call_has_nothing_to_do(path, solved, distribution, label_mode, fit_intercept, solver):
    X, y = make_data()
    options = {"distribution": distribution, "label_mode": label_mode, "fit_intercept": fit_intercept, "solver": solver}
    model = sl1max.fit(X, y, checkpoint=path, **options)
    assert_equal_models(model, sl1max.fit(X, y, **options))
    solved.clear()
    assert_equal_models(sl1max.fit(X, y, checkpoint=path, **options), model)
    assert solved == []


@pytest.mark.parametrize("n_jobs", [1, 2])
@pytest.mark.parametrize(("distribution", "label_mode"), MODELS[1:])
def test_going_on_after_ctrl_c(path, solved, distribution, label_mode, n_jobs):
    X, y = long_problem()
    options = {"distribution": distribution, "label_mode": label_mode, "beta": 0.3, "n_jobs": n_jobs}
    with pytest.raises(KeyboardInterrupt):
        sl1max.fit(X, y, checkpoint=path, callback=interrupt_after(5), **options)
    n_begun = len(solved)
    solved.clear()
    model = sl1max.fit(X, y, checkpoint=path, **options)
    n_problems = 40 * (2 if (distribution, label_mode) == ("joint", "independent") else 1)
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
        sl1max.fit(X, y, label_mode="independent", tol=1e-9, max_iter=1, checkpoint=path)
    model = sl1max.fit(X, y, label_mode="independent", tol=1e-9, checkpoint=path)
    assert model.converged.all()
    assert_close_models(model, sl1max.fit(X, y, label_mode="independent", tol=1e-9), X)


def test_a_class_fails(path, solved, monkeypatch):
    X, y = make_data()
    with monkeypatch.context() as patch:
        break_classes(patch, MemoryError("1 GiB"), [1])
        with pytest.raises(FitMemoryError, match="class 1"):
            sl1max.fit(X, y, label_mode="independent", checkpoint=path)
    solved.clear()
    model = sl1max.fit(X, y, label_mode="independent", checkpoint=path)
    assert solved == [1]
    assert_equal_models(model, sl1max.fit(X, y, label_mode="independent"))


def test_not_for_many_models(path):
    X, y = make_data()
    for option in ({"checkpoint": path}, {"on_interrupt": "return"}):
        (name,) = option
        with pytest.raises(TypeError, match=f"unexpected keyword argument '{name}'"):
            sl1max.path(X, y, **option)
        with pytest.raises(ValueError, match=f"{name} cannot be used with early stopping, which trains many models"):
            fit_early_stopping(X[:40], y[:40], X[40:], y[40:], **option)
    assert not path.exists()


# Which fit it belongs to


def change(**changes):
    X, y = make_data(values="real")
    options = {"X": X, "y": y, "label_mode": "independent"}
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
        ({"label_mode": "exclusive"}, "label_mode is independent there and exclusive here"),
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
    with pytest.raises(CheckpointError, match="a checkpoint of format 7, and this sl1max reads 2"):
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


def test_zeros_at_the_end_are_cut_off(path, solved):
    """What a power cut leaves of records that were not synchronised."""
    model = sl1max.fit(**change(), checkpoint=path)
    content = path.read_bytes()
    for n_zeros in (1, 8, 100, 5000):
        path.write_bytes(content + bytes(n_zeros))
        solved.clear()
        assert_equal_models(sl1max.fit(**change(), checkpoint=path), model)
        assert solved == [] and path.read_bytes() == content


def record_bounds(content):
    """Where the records of a checkpoint begin, and its end."""
    starts = [k for k in range(len(content)) if content.startswith(checkpoint.MARKER, k)]
    return [*starts, len(content)]


@pytest.mark.parametrize("where", ["marker", "size", "checksum", "body", "removed"])
def test_records_after_a_damaged_one_are_used(path, solved, where):
    model = sl1max.fit(**change(), checkpoint=path)
    content = path.read_bytes()
    start, stop = record_bounds(content)[1:3]
    damaged = bytearray(content)
    if where == "removed":
        del damaged[start + 5 : stop - 5]
    else:
        damaged[start + {"marker": 2, "size": 9, "checksum": 20, "body": 50}[where]] ^= 1
    path.write_bytes(damaged)
    solved.clear()
    with pytest.warns(UserWarning, match="1 record is damaged; what they held is trained again"):
        assert_equal_models(sl1max.fit(**change(), checkpoint=path), model)
    assert solved == [1]


def test_damage_in_many_places_is_refused(path, monkeypatch):
    monkeypatch.setattr(checkpoint, "MAX_DAMAGED", 3)
    sl1max.fit(**change(), checkpoint=path)
    path.write_bytes(path.read_bytes() + 4 * (checkpoint.MARKER + bytes(100)))
    with pytest.raises(CheckpointError, match="damaged in more than 3 places: delete it"):
        sl1max.fit(**change(), checkpoint=path)


def test_checkpoint_of_0_1_0_is_refused_by_its_format(path_of_0_1_0):
    with pytest.raises(CheckpointError, match="a checkpoint of format 1, and this sl1max reads 2"):
        sl1max.fit(**change(), checkpoint=path_of_0_1_0)


@pytest.mark.parametrize("text", [b"[]", b"1", b"not JSON", b"\xff", b"[" * 100_000], ids=lambda text: text[:9])
def test_heads_that_describe_no_fit(path, text):
    head = checkpoint._HEAD.pack(checkpoint.MAGIC, checkpoint.VERSION, len(text), hashlib.sha256(text).digest())
    path.write_bytes(head + text)
    with pytest.raises(CheckpointError, match="the head of the checkpoint describes no fit"):
        sl1max.fit(**change(), checkpoint=path)


@pytest.mark.parametrize("target", ["/dev/full", "/dev/zero"])
def test_devices_are_refused(target):
    if not os.path.exists(target):
        pytest.skip(f"needs {target}")
    with pytest.raises(OSError, match="not a regular file"):
        sl1max.fit(**change(), checkpoint=target)


def write_records(path, content, bodies):
    """The head of a checkpoint and records with these bodies, their checksums made anew."""
    key = checkpoint._HEAD.unpack_from(content)[3]
    head = content[: record_bounds(content)[0]]
    path.write_bytes(head + b"".join(checkpoint._pack_record(body, key) for body in bodies))


def read_bodies(content):
    bounds = record_bounds(content)
    return [content[start + checkpoint._RECORD.size : stop] for start, stop in itertools.pairwise(bounds)]


REPORT = checkpoint._REPORT.size
IMPOSSIBLE = {
    "number": (0, "<q", 3),
    "negative number": (0, "<q", -1),
    "status": (8, "<B", 200),
    "n_iter": (9, "<q", -2),
    "objective": (17, "<d", np.nan),
    "objective_zero": (25, "<d", np.inf),
    "dual_gap": (33, "<d", np.nan),
    "log_z": (41, "<d", 1.0),
    "number of intercepts": (49, "<I", 2**32 - 1),
    "number of rows": (53, "<I", 1),
    "intercept": (REPORT, "<d", np.inf),
    "class": (REPORT + 8, "<q", 77),
    "side": (REPORT + 16, "<B", 2),
    "size of a row": (REPORT + 17, "<q", 2**62),
    "negative size of a row": (REPORT + 17, "<q", -1),
    "column": (REPORT + 25, "<i", 10**9),
    "negative column": (REPORT + 25, "<i", -5),
}


@pytest.mark.parametrize("what", [*IMPOSSIBLE, "weight", "length"])
def test_impossible_numbers_are_noticed(path, solved, what):
    """With right checksums: the class is trained again."""
    model = sl1max.fit(**change(), checkpoint=path)
    content = path.read_bytes()
    bodies = read_bodies(content)
    body = bytearray(bodies[0])
    if what == "length":
        body = body[:-8]
    elif what == "weight":
        (size,) = struct.unpack_from("<q", body, REPORT + 17)
        struct.pack_into("<d", body, REPORT + 25 + 4 * size, np.nan)
    else:
        start, form, value = IMPOSSIBLE[what]
        struct.pack_into(form, body, start, value)
    write_records(path, content, [bytes(body), *bodies[1:]])
    solved.clear()
    with pytest.warns(UserWarning, match="1 record is damaged"):
        assert_equal_models(sl1max.fit(**change(), checkpoint=path), model)
    assert solved == [0]


@pytest.mark.parametrize(
    ("start", "form", "value"), [(17, "<d", 0.1), (33, "<d", 5e-9), (8, "<B", 2), (REPORT, "<d", 1e5)]
)
def test_numbers_that_are_not_those_of_the_weights_are_noticed(path, solved, start, form, value):
    """Objective, gap and status are computed again; a start that is worse than zero weights is not used."""
    options = change(tol=1e-8)
    model = sl1max.fit(**options, checkpoint=path)
    content = path.read_bytes()
    bodies = read_bodies(content)
    body = bytearray(bodies[0])
    struct.pack_into(form, body, start, value)
    write_records(path, content, [bytes(body), *bodies[1:]])
    solved.clear()
    again = sl1max.fit(**options, checkpoint=path)
    assert solved == [0] and again.converged.all()
    np.testing.assert_allclose(again.objective, model.objective, rtol=1e-7)


def mutate(rng, bodies):
    """Some bytes, numbers, lengths or records changed."""
    bodies = [bytearray(body) for body in bodies]
    for _ in range(rng.integers(1, 4)):
        k = rng.integers(len(bodies))
        body = bodies[k]
        place = int(rng.integers(len(body))) if len(body) else 0
        kind = rng.integers(6)
        if kind == 0 and len(body):
            body[place] ^= 1 << int(rng.integers(8))
        elif kind == 1:
            body[place : place + 8] = rng.bytes(8)
        elif kind == 2:
            extreme = (0.0, -0.0, 1e308, -1e308, 5e-324, np.inf, -np.inf, np.nan, 1e10)
            place -= place % 8
            body[place : place + 8] = struct.pack("<d", extreme[rng.integers(len(extreme))])
        elif kind == 3:
            del body[place : place + int(rng.integers(1, 20))]
        elif kind == 4:
            body[place:place] = rng.bytes(int(rng.integers(1, 20)))
        else:
            bodies[k] = bytearray(bodies[rng.integers(len(bodies))])
    return [bytes(body) for body in bodies]


@pytest.mark.parametrize("n_mutations", [200, pytest.param(10_000, marks=pytest.mark.full)])
def test_mutated_records_give_an_error_or_an_equal_model(path, n_mutations):
    """Their checksums are made anew: a model is certified, and equal to the one of an undisturbed fit."""
    rng = np.random.default_rng(0)
    problems = []
    for distribution, label_mode in MODELS:
        options = change(distribution=distribution, label_mode=label_mode, tol=1e-7, X=make_data(n_samples=40)[0][:40])
        options["y"] = options["y"][:40]
        path.unlink(missing_ok=True)
        model = sl1max.fit(**options, checkpoint=path)
        problems.append((options, model, path.read_bytes()))
    n_equal = 0
    for k in range(n_mutations):
        options, model, content = problems[k % len(problems)]
        write_records(path, content, mutate(rng, read_bodies(content)))
        with warnings.catch_warnings():
            warnings.simplefilter("error", RuntimeWarning)
            warnings.simplefilter("ignore", UserWarning)
            try:
                again = sl1max.fit(**options, checkpoint=path)
            except CheckpointError:
                continue
        n_equal += 1
        assert np.all(again.converged), k
        np.testing.assert_allclose(again.objective, model.objective, rtol=1e-6, err_msg=str(k))
        np.testing.assert_allclose(
            again.predict_log_proba(options["X"]), model.predict_log_proba(options["X"]), atol=0.02
        )
    assert n_equal > n_mutations // 2


def test_records_are_synchronised_when_a_class_is_finished(path, monkeypatch):
    """Where that is fast: each record before the next class begins."""
    sizes = []
    monkeypatch.setattr(checkpoint, "sync", lambda stream: sizes.append(os.path.getsize(path)))
    monkeypatch.setattr(checkpoint, "SYNC_SHARE", np.inf)
    sl1max.fit(**change(), checkpoint=path)
    assert sizes == record_bounds(path.read_bytes())[1:]


def test_records_are_written_again_after_a_failed_synchronisation(path, solved, monkeypatch):
    model = sl1max.fit(**change())
    n_calls = 0

    def fail_once(stream):
        nonlocal n_calls
        n_calls += 1
        if n_calls == 1:
            raise OSError(errno.EIO, os.strerror(errno.EIO))

    monkeypatch.setattr(checkpoint, "sync", fail_once)
    with pytest.warns(UserWarning, match="the checkpoint cannot be written"):
        sl1max.fit(**change(), checkpoint=path)
    solved.clear()
    assert_equal_models(sl1max.fit(**change(), checkpoint=path), model)
    assert solved == []


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
    plain = sl1max.fit(X, y, label_mode="independent")
    with monkeypatch.context() as patch:
        fill_disk(patch, 500)
        with pytest.warns(UserWarning, match="cannot be written .No space left on device.; the fit goes on") as record:
            model = sl1max.fit(X, y, label_mode="independent", checkpoint=path)
    assert len(record) == 1
    assert_equal_models(model, plain)
    solved.clear()
    assert_equal_models(sl1max.fit(X, y, label_mode="independent", checkpoint=path), plain)
    assert 0 < len(solved) < 6


def test_a_disk_that_has_room_again(path, solved, monkeypatch):
    X, y = make_data(n_classes=6, n_samples=200)
    state = fill_disk(monkeypatch, 500)

    def make_room(progress):
        if len(set(solved)) == 5:
            state["room"] = 10**6

    with pytest.warns(UserWarning, match="cannot be written"):
        sl1max.fit(X, y, label_mode="independent", checkpoint=path, callback=make_room)
    solved.clear()
    sl1max.fit(X, y, label_mode="independent", checkpoint=path)
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
sl1max.fit(*long_problem(), label_mode="independent", beta=0.3, checkpoint=sys.argv[2])
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
    options = {"label_mode": "independent", "beta": 0.3}
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
    sl1max.fit(X, y, label_mode="independent", checkpoint=sys.argv[2], callback=limit)
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
        X, y, label_mode="independent", checkpoint=path, callback=lambda progress: seen.add(progress.class_label)
    )
    assert len(seen) == int(n_failed) and model.converged.all()
