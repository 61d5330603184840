"""The project in tests/cython_example, built against the installed package and used."""

import importlib.util
import os
import shutil
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
from numpy.testing import assert_allclose
from scipy import sparse
from strategies import random_data

import sl1max

EXAMPLE = Path(__file__).with_name("cython_example")
ROOT = Path(sl1max.__file__).parents[1]

pytestmark = [
    pytest.mark.slow,
    pytest.mark.skipif(
        str(ROOT) not in sys.path, reason="an editable install: Cython finds the .pxd of an installed wheel only"
    ),
    pytest.mark.skipif(importlib.util.find_spec("mesonpy") is None, reason="needs meson-python"),
]


@pytest.fixture(scope="module")
def example(tmp_path_factory):
    """The module, built offline with the tools of this environment, and imported."""
    folder = tmp_path_factory.mktemp("cython_example")
    shutil.copytree(EXAMPLE, folder / "source")
    command = [sys.executable, "-m", "pip", "install", "--no-index", "--no-deps", "--no-build-isolation"]
    done = subprocess.run(
        [*command, "--target", folder / "site", folder / "source"],
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        env={**os.environ, "PYTHONPATH": str(ROOT)},
    )
    assert done.returncode == 0, done.stdout
    (path,) = (folder / "site").glob("sl1max_example.*")
    spec = importlib.util.spec_from_file_location("sl1max_example", path)
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def make_data(n_classes=2):
    return random_data(np.random.default_rng(0), 200, 20, n_classes)


def test_logistic_regression(example):
    X, y = make_data()
    columns = sparse.csc_array(X)
    weights, intercept, gap = example.logistic_regression(
        columns.indptr.astype(np.int64), columns.indices.astype(np.int32), columns.data, len(X),
        (y == 1).astype(float), 0.5 / len(X),
    )  # fmt: skip
    model = sl1max.fit(X, y, beta=0.5, beta_rule="count", tol=1e-8)
    difference = model.weights[[1]] - model.weights[[0]]
    assert gap < 1e-8
    assert_allclose(weights, difference.toarray().ravel(), atol=1e-4)
    assert_allclose(intercept, model.intercept[1] - model.intercept[0], atol=1e-4)


def test_errors_have_messages(example):
    with pytest.raises(ValueError, match="beta is negative or NaN"):
        example.logistic_regression(
            np.array([0, 1]), np.array([0], np.int32), np.ones(1), 2, np.array([0.0, 1.0]), -1.0
        )


def test_hard_em(example):
    rng = np.random.default_rng(1)
    y = rng.integers(0, 3, 300)
    X = rng.random((300, 30)) < np.where(np.arange(30) % 3 == y[:, None], 0.6, 0.1)
    labelled = np.where(np.arange(300) < 30, y, -1).astype(float)
    rows = sparse.csr_array(X.astype(float))
    arrays = rows.indptr.astype(np.int64), rows.indices.astype(np.int32)
    scores = example.hard_em(*arrays, 30, labelled, 3, 0.005, 10)
    assert (scores.argmax(axis=1) == y).mean() > 0.8


def test_one_weight(example):
    feature = np.array([0.0, 0, 0, 1])
    lam, gain = example.fit_one_weight(feature, 0.5, 0.1, 3)
    assert_allclose(np.exp(lam) / (3 + np.exp(lam)), 0.4)  # the near end of the interval 0.5 +- 0.1
    assert 0 <= gain < 1e-12


def test_constants(example):
    assert example.converged == 1
