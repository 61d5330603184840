"""The inline kernels, through `sl1max._core._probes`: ns per step, and per nonzero of a walked column."""

from timeit import repeat

import numpy as np

from sl1max._core import _probes

from .made_data import made_text

N_REPEATS = 5  # the fastest of so many counts


def fastest_ns(function, n_items):
    """Nanoseconds per item of the fastest run."""
    return 1e9 * min(repeat(function, number=1, repeat=N_REPEATS)) / n_items


def made_columns(kind):
    """(n_rows, n_cols, indptr, indices, values) as the core takes them, and how many entries they hold."""
    X, _ = made_text(3000, 6000, 2)
    if kind == "dense":
        values = np.random.default_rng(0).random(3000 * 60)
        return (3000, 60, None, None, values), values.size
    X = X.tocsc()
    values = None if kind == "binary" else np.random.default_rng(0).random(X.nnz)
    return (*X.shape, X.indptr.astype(np.int64), X.indices.astype(np.int32), values), X.nnz


class Step:
    params = ("paper", "concordant")
    param_names = ("bound",)
    unit = "ns"

    def setup(self, bound):
        rng = np.random.default_rng(0)
        p, q = rng.uniform(0.01, 0.99, (2, 1000))
        lam = np.where(rng.random(1000) < 0.5, 0.0, rng.normal(size=1000))
        self.cases = np.column_stack([p, q, q * (1 - q), np.ones(1000), np.full(1000, 0.01), lam])

    def track_step(self, bound):
        n_times = 100
        paper = bound == "paper"
        return fastest_ns(lambda: _probes.repeat_steps(self.cases, n_times, paper=paper), n_times * len(self.cases))


COLUMNS = ("binary", "real", "dense")


class Column:
    """Kernels that know nothing of a normaliser."""

    params = (("dot", "axpy"), COLUMNS)
    param_names = ("kernel", "columns")
    unit = "ns per nonzero"
    pooled = True

    def setup(self, kernel, columns):
        X, self.n_entries = made_columns(columns)
        n_rows, n_cols = X[:2]
        mass = np.full(n_rows, 1.0 if self.pooled else 1.0 / n_rows)
        lam = np.zeros((1, n_cols + 1))
        self.state = _probes.State(X, mass, lam, pooled=self.pooled, reference=not self.pooled)

    def track_walk(self, kernel, columns):
        n_times = 10
        return fastest_ns(lambda: self.state.walk_all(kernel, n_times), n_times * self.n_entries)


class Pooled(Column):
    """Moments of a column, and the update after a step, under one Z."""

    params = (("moments", "update"), COLUMNS)


class Conditional(Pooled):
    """The same with one Z per example."""

    pooled = False


class Gram(Column):
    """The Hessian of the hundred most frequent columns; per pair of entries that meet in a row."""

    params = (("exact", "rough"), COLUMNS)
    unit = "ns per pair"
    pooled = False

    def track_walk(self, kernel, columns):
        n_times = 3
        sizes = [len(self.state.column(j)[0]) for j in range(self.state.lam.shape[1] - 1)]
        coords = np.sort(np.argsort(sizes)[-100:])
        per_row = np.bincount(np.concatenate([self.state.column(j)[0] for j in coords]))
        precision = 0.0 if kernel == "exact" else 0.1
        return fastest_ns(
            lambda: self.state.hessian(coords, precision, n_times), n_times * (per_row * (per_row + 1) / 2).sum()
        )
