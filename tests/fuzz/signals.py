"""Ctrl-C at any moment, and kill -9 while something is written.

A fit that is interrupted raises KeyboardInterrupt or returns a model that says so, and the next fit is undisturbed. A
file that a killed process was writing is whole or as before, and the next writer leaves no temporary file behind. From
a checkpoint the next fit gets to the model of an undisturbed one.
"""

from __future__ import annotations

import itertools
import os
import signal
import threading
import time
import warnings

import numpy as np
from problems import MODELS
from scipy import sparse

import sl1max
from fuzz.campaign import Campaign, check, check_equal_models, empty
from sl1max.chunks import open_matrix, store_columns
from sl1max.svmlight import read_svmlight, write_svmlight


def make_fit(seed):
    """A fit of some hundredths of a second, and its options."""
    rng = np.random.default_rng(seed)
    distribution, label_mode = MODELS[seed % len(MODELS)]
    X = sparse.random_array((1500, 200), density=0.03, rng=rng, format="csc")
    if seed % 2:
        X.data[:] = 1
    y = np.minimum(rng.zipf(1.6, 1500), 12)
    return X, y, {"distribution": distribution, "label_mode": label_mode, "beta": 0.2, "tol": 1e-6}


class Bases:
    """Fits with their undisturbed models and how long they took, made when they are asked for."""

    def __init__(self, n):
        self._n = n
        self._made = {}

    def take(self, rng):
        k = int(rng.integers(self._n))
        if k not in self._made:
            X, y, options = make_fit(k)
            start = time.perf_counter()
            model = sl1max.fit(X, y, **options)
            self._made[k] = X, y, options, model, time.perf_counter() - start
        return self._made[k]


def check_folder(folder, allowed=()):
    """No temporary files are left."""
    left = set(os.listdir(folder)) - set(allowed)
    check(not left, f"left behind: {sorted(left)}")


# Ctrl-C


def interrupt_fit(rng, base, folder):
    X, y, options, model, seconds = base
    options = options | {"n_jobs": int(rng.integers(1, 3))}
    on_interrupt = str(rng.choice(["raise", "return"]))
    path = folder / "fit.checkpoint" if rng.random() < 0.5 else None
    timer = threading.Timer(rng.uniform(0, 1.2) * seconds, os.kill, (os.getpid(), signal.SIGINT))
    came = None
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", UserWarning)
        try:
            timer.start()
            came = sl1max.fit(X, y, checkpoint=path, on_interrupt=on_interrupt, **options)
            timer.join()
            time.sleep(0.001)  # for a signal that comes after the end
        except KeyboardInterrupt:
            timer.join()
        again = sl1max.fit(X, y, checkpoint=path, **options)
        if path is None or np.all(again.converged):
            allowed = 0 if path is None else again.dual_gap + model.dual_gap
            check(
                np.all(np.abs(again.objective - model.objective) <= allowed + 1e-9 * np.abs(model.objective)),
                "the fit after an interrupted one has another objective",
            )
        if path is None:
            check_equal_models(again, model, "the fit after an interrupted one")
    check_folder(folder, ["fit.checkpoint"])
    if came is None:
        return "interrupted"
    check(np.isfinite(came.weights.data).all(), "an interrupted model with weights that are not finite")
    check(not np.isnan(came.predict_log_proba(X)).any(), "an interrupted model with a probability that is NaN")
    return "interrupted, returned" if len(came.unfinished) or not np.all(came.converged) else "interrupted too late"


# kill -9


def killed(action, seconds):
    """Run an action in a child process and kill it after a while."""
    reading, writing = os.pipe()
    child = os.fork()
    if child == 0:
        try:
            action()
        except BaseException as error:
            os.write(writing, f"{type(error).__name__}: {error}".encode()[:4000])
        os._exit(0)
    time.sleep(seconds)
    os.kill(child, signal.SIGKILL)
    os.waitpid(child, 0)
    os.close(writing)
    with open(reading, "rb") as stream:
        failure = stream.read().decode()
    check(not failure, f"in the child: {failure}")


def kill_writer(rng, writers, folder):
    """A writer in a loop; then the file is one of those that it writes, and the next write leaves it alone."""
    name, write, is_whole = writers[rng.integers(len(writers))]
    path = folder / name
    if existed := rng.random() < 0.7:
        write(path, 0)

    def loop():
        for k in itertools.count(1):
            write(path, k % 2)

    killed(loop, rng.uniform(0, 0.02))
    check(path.exists() or not existed, f"{name}: the file is gone")
    if path.exists():
        check(is_whole(path), f"{name}: neither the old file nor the new one")
    write(path, 1)
    check(is_whole(path), f"{name}: not whole after the next write")
    check_folder(folder, [name])
    return f"killed, {name}"


def kill_fit(rng, base, folder):
    """A fit with a checkpoint, killed up to three times."""
    X, y, options, model, seconds = base
    path = folder / "fit.checkpoint"
    for _ in range(rng.integers(1, 4)):
        killed(lambda: sl1max.fit(X, y, checkpoint=path, **options), rng.uniform(0, 1.1) * seconds + 0.002)
    again = sl1max.fit(X, y, checkpoint=path, **options)
    # A class that was under way goes on from other weights, and ends with others within its gap.
    distance = np.abs(np.subtract(again.objective, model.objective))
    allowed = again.dual_gap + model.dual_gap + 1e-9 * np.abs(model.objective)
    check(np.all(distance <= allowed), f"after a kill: objectives differ by {np.max(distance):.3g}")
    check_folder(folder, [path.name])
    return "killed, resumed"


def make_writers(folder):
    """(name, write a version, whether a file is one of the versions)."""
    models, contents, matrices = [], [], []
    for seed in range(2):
        X, y, options = make_fit(seed)
        models.append(sl1max.fit(X, y, **options))
        models[-1].save(folder / "made")
        contents.append((folder / "made").read_bytes())
        matrices.append((X, y))
    (folder / "made").unlink()

    def is_model(path):
        return path.read_bytes() in contents

    def is_text(path):
        read = read_svmlight(path, n_features=200)
        return any(np.array_equal(read.y, y) and abs(read.X - X).nnz == 0 for X, y in matrices)

    def is_matrix(path):
        try:
            read = open_matrix(path)
        except (OSError, ValueError):
            return True  # said to be incomplete
        return any(read.shape == X.shape and abs(read - X).nnz == 0 for X, _ in matrices)

    return [
        ("model.sl1max", lambda path, k: models[k].save(path), is_model),
        ("data.svm", lambda path, k: write_svmlight(*matrices[k], path), is_text),
        ("data.svm.gz", lambda path, k: write_svmlight(*matrices[k], path), is_text),
        ("columns", lambda path, k: store_columns(matrices[k][0], path), is_matrix),
    ]


def set_up(folder):
    signal.signal(signal.SIGINT, signal.default_int_handler)
    bases = Bases(12)
    writers = make_writers(folder)

    def run(rng):
        empty(folder)
        match rng.integers(3):
            case 0:
                return interrupt_fit(rng, bases.take(rng), folder)
            case 1:
                return kill_writer(rng, writers, folder)
            case _:
                return kill_fit(rng, bases.take(rng), folder)

    return run


CAMPAIGN = Campaign(
    set_up, share=1.0, obstacle=lambda: None if hasattr(os, "fork") else "this system has no fork and no kill -9"
)
