"""Mutated matrices on disk, .npz files and folders of `sl1max.chunks`: a ValueError, or a matrix that can be used.

They have no checksum, so that other numbers are taken for what they are.
"""

from __future__ import annotations

import shutil

import numpy as np
from problems import MODELS
from scipy import sparse

import sl1max
from fuzz.campaign import Campaign, check, check_message, empty, limit_memory, strict_warnings
from fuzz.commands import call
from fuzz.files import damage
from sl1max.chunks import open_matrix, store_columns, store_rows

INDICES = (-(2**31), -3, -1, 0, 7, 8, 49, 50, 10**6, 2**31 - 1)


def damage_array(rng, path):
    """One number of a .npy file changed, its type or its length; or bytes anywhere."""
    if path.suffix != ".npy" or rng.random() < 0.4:
        path.write_bytes(damage(rng, path.read_bytes(), 2))
        return
    array = np.load(path)
    match rng.integers(4):
        case 0:
            array = array[: rng.integers(len(array))]
        case 1:
            array = array.astype(rng.choice(["i1", "i8", "u4", "f4", "f8", "c16", "b1", "U3"]))
        case _:
            wrong = INDICES if array.dtype.kind == "i" else (np.nan, np.inf, 1e308, -1.0, 5e-324)
            number = wrong[rng.integers(len(wrong))]
            with np.errstate(all="ignore"):
                array[rng.integers(len(array))] = np.array(number).astype(array.dtype)
    np.save(path, array)


def set_up(folder):
    rng = np.random.default_rng(0)
    X = sparse.csr_array((rng.random((50, 8)) < 0.3) * rng.integers(1, 3, (50, 8)).astype(float))
    y = np.arange(50) % 3
    model = sl1max.fit(X, y)
    kept, used = folder / "kept", folder / "used"
    for name, store in (("columns", store_columns), ("rows", store_rows)):
        (kept / name).mkdir(parents=True)
        store(X, kept / name)
    sparse.save_npz(folder / "X.npz", X)
    model.save(folder / "model.sl1max")
    whole = (folder / "X.npz").read_bytes()
    used.mkdir()
    limit_memory(4 << 30)

    def run(rng):
        empty(used)
        if rng.random() < 0.3:
            (used / "X.npz").write_bytes(damage(rng, whole, 2))
            code, _, err = call(["predict", str(folder / "model.sl1max"), str(used / "X.npz")])
            check(code in (0, 2), f"exit code {code}: {err}")
            check(code == 0 or err.count(": error: ") == 1, f"stderr is {err!r}")
            return f"npz: {code}"
        name = str(rng.choice(["columns", "rows"]))
        shutil.copytree(kept / name, used / name)
        files = sorted((used / name).iterdir())
        damage_array(rng, files[rng.integers(len(files))])
        distribution, label_mode = MODELS[rng.integers(len(MODELS))]
        with strict_warnings():
            try:
                matrix = open_matrix(used / name)
                if rng.random() < 0.5:
                    model.predict_proba(matrix)
                    return f"{name}: predicted"
                sl1max.fit(matrix, y, distribution=distribution, label_mode=label_mode, max_iter=50, tol=1e-2)
                return f"{name}: fitted"
            except ValueError as error:
                check_message(error)
                return f"{name}: refused"
            except MemoryError:  # a shape of billions is a shape
                return f"{name}: no memory"

    return run


CAMPAIGN = Campaign(set_up, share=0.5, time_limit=30.0)
