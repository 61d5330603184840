"""The C interface, called through its capsules as a C program would: ctypes holds no GIL during a call."""

import ctypes
import gc
import re
import sys
import threading
import time
from concurrent.futures import ThreadPoolExecutor
from ctypes import byref, c_char_p, c_double, c_int, c_longlong, c_void_p
from pathlib import Path

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from problems import make_twin
from reference import Twin
from scipy import sparse
from strategies import random_data

import sl1max
from sl1max import cython_api
from sl1max._core import _probes as probes

SNAPSHOT = Path(__file__).with_name("cython_api.txt")
PXD = Path(sl1max.__file__).with_name("cython_api.pxd")
CTYPES = {
    "int": c_int,
    "double": c_double,
    "PY_LONG_LONG": c_longlong,
    "char const *": c_char_p,
    "void": None,
}
CONSTANT = re.compile(r"^    ([A-Z_]+) = (-?\d+)", re.MULTILINE)


def signatures():
    """Name to signature of every exported function."""
    get_name = ctypes.pythonapi.PyCapsule_GetName
    get_name.restype, get_name.argtypes = c_char_p, [ctypes.py_object]
    return {name: get_name(capsule).decode() for name, capsule in cython_api.__pyx_capi__.items()}


def load_functions():
    get_pointer = ctypes.pythonapi.PyCapsule_GetPointer
    get_pointer.restype, get_pointer.argtypes = c_void_p, [ctypes.py_object, c_char_p]
    functions = {}
    for name, signature in signatures().items():
        result, arguments = re.fullmatch(r"(.*?) ?\((.*)\)", signature).groups()
        arguments = [CTYPES.get(argument, c_void_p) for argument in arguments.split(", ")]
        address = get_pointer(cython_api.__pyx_capi__[name], signature.encode())
        functions[name] = ctypes.CFUNCTYPE(CTYPES[result], *arguments)(address)
    return functions


C = type("C", (), {name: staticmethod(function) for name, function in load_functions().items()})
K = type("K", (), {name: int(value) for name, value in CONSTANT.findall(PXD.read_text())})


def pointer(array):
    return None if array is None else array.ctypes.data


def as_csc(X, binary=False):
    """(indptr, indices, values) as the interface takes them."""
    X = sparse.csc_array(X)
    return X.indptr.astype(np.int64), X.indices.astype(np.int32), None if binary else X.data


def as_csr(X, binary=False):
    X = sparse.csr_array(X)
    return X.indptr.astype(np.int64), X.indices.astype(np.int32), None if binary else X.data


class Handles:
    """Columns and a solver for the problem of a twin; keeps the arrays alive."""

    def __init__(self, twin, by_rows=False, algorithm=K.NEWTON, tol=1e-8):
        self.twin = twin
        binary = np.isin(twin.X, (0, 1)).all()
        self.arrays = as_csr(twin.X, binary) if by_rows else as_csc(twin.X, binary)
        self.columns, self.solver = c_void_p(), c_void_p()
        make = C.columns_csr if by_rows else C.columns_csc
        assert make(byref(self.columns), *twin.X.shape, *map(pointer, self.arrays)) == K.OK
        self.take(twin)
        self.make_solver(algorithm, tol)

    def make_solver(self, algorithm=K.NEWTON, tol=1e-8):
        twin = self.twin
        normalizer = K.POOLED if twin.pooled else K.LOGISTIC if twin.reference else K.CONDITIONAL
        status = C.solver_new(
            byref(self.solver), self.columns, twin.n_blocks, normalizer, twin.intercept, pointer(self.target),
            pointer(self.mass), pointer(self.beta), pointer(self.offset), algorithm, tol,
        )  # fmt: skip
        assert status == K.OK

    def take(self, twin):
        self.target, self.mass, self.beta = map(np.ascontiguousarray, (twin.target, twin.mass, twin.beta))
        self.offset = twin.offset

    def weights(self):
        lam, b = np.empty(self.twin.emp_mean.shape), np.empty(self.twin.n_blocks)
        assert C.solver_weights(self.solver, pointer(lam)) == K.OK
        assert C.solver_intercept(self.solver, pointer(b)) == K.OK
        return lam, b

    def __enter__(self):
        return self

    def __exit__(self, *_):
        C.columns_free(self.columns)
        C.solver_free(self.solver)


NORMALIZERS = ("pooled", "pooled_blocks", "reference", "blocks")


def close_to(twin, lam, b, tol):
    """Whether the objective is within tol of that of a better solution."""
    with Handles(twin, tol=1e-11) as best:
        C.solver_step(best.solver, 1000, None)
        return twin.objective(lam, b) - twin.objective(*best.weights()) <= tol * abs(
            C.solver_objective_zero(best.solver)
        )


# ------------------------------------------------------------------------------------------------ the promise


def test_signatures_and_constants_are_kept():
    """What was released stays. A new function or constant gets a line of its own in tests/cython_api.txt."""
    promised = dict(line.split(": ", 1) for line in SNAPSHOT.read_text().splitlines())
    found = signatures() | dict(CONSTANT.findall(PXD.read_text()))
    changed = {name: found.get(name) for name, value in promised.items() if found.get(name) != value}
    assert not changed, "compiled code that is out there relies on these"
    assert found.keys() == promised.keys(), "add the new ones to tests/cython_api.txt"


def test_the_interface_stands_alone():
    text = PXD.read_text()
    assert not re.findall(r"^\s*(?:from .* )?c?import\b", text.split('"""')[2], re.MULTILINE)
    declared = re.findall(r"^cdef (?!enum|struct)[\w* ]+ (\w+)\([^()]*\)(.*)$", text, re.MULTILINE)
    assert {name for name, _ in declared} == set(cython_api.__pyx_capi__)
    assert {end for _, end in declared} == {" noexcept nogil"}


def test_every_status_has_a_message():
    statuses = range(K.FAILED, K.TIME_LIMIT + 1)
    messages = [C.status_message(status) for status in statuses]
    assert len(set(messages)) == len(statuses)
    assert C.status_message(99) == C.status_message(-99) == b"no such status"
    assert C.status_message(K.BAD_BETA) == b"beta is negative or NaN"


# -------------------------------------------------------------------------------------------------- solving


@pytest.mark.parametrize("by_rows", [False, True])
@pytest.mark.parametrize("values", ["binary", "unit"])
@pytest.mark.parametrize("algorithm", ["NEWTON", "SEQUENTIAL"])
@pytest.mark.parametrize("with_offset", [False, True])
@pytest.mark.parametrize("normalizer", NORMALIZERS)
def test_steps_to_the_optimum(normalizer, with_offset, algorithm, values, by_rows):
    twin = make_twin(normalizer, values=values, weighted=True, with_offset=with_offset)
    tol = {"NEWTON": 1e-8, "SEQUENTIAL": 1e-4}[algorithm]
    with Handles(twin, by_rows, getattr(K, algorithm), tol) as h:
        assert np.isnan(C.solver_objective(h.solver)) and C.solver_n_iter(h.solver) == 0
        assert C.solver_step(h.solver, 1, None) in (K.RUNNING, K.CONVERGED)
        assert C.solver_step(h.solver, 100_000, None) == K.CONVERGED
        lam, b = h.weights()
        assert_allclose(C.solver_objective(h.solver), twin.objective(lam, b), rtol=1e-12)
        assert C.solver_dual_gap(h.solver) <= tol * C.solver_objective_zero(h.solver)
        assert close_to(twin, lam, b, tol)
        if twin.pooled:
            assert_allclose(C.solver_log_z(h.solver), twin.log_z(lam, b), rtol=1e-12)
        else:
            assert np.isnan(C.solver_log_z(h.solver))


@pytest.mark.parametrize("normalizer", NORMALIZERS)
def test_general_penalty(normalizer):
    twin = make_twin(normalizer, values="unit")
    upper, l2 = 2 * twin.beta, 0.5 * twin.beta
    low, high = np.full(twin.beta.shape, -0.3), np.full(twin.beta.shape, np.inf)
    with Handles(twin) as h:
        C.solver_step(h.solver, 2, None)
        given = [pointer(array) for array in (upper, l2, low, high)]
        assert C.solver_set_penalty(h.solver, None, *given) == K.OK
        # Other changes keep it.
        assert C.solver_set_target(h.solver, pointer(h.target), pointer(h.mass)) == K.OK
        assert C.solver_set_beta(h.solver, pointer(h.beta)) == K.OK
        assert C.solver_step(h.solver, 1000, None) == K.CONVERGED
        general = type(twin)(**vars(twin) | {"beta_upper": upper, "l2": l2, "low": low, "high": high})
        assert close_to(general, *h.weights(), 1e-8)
        assert (h.weights()[0] >= -0.3).all()
        assert C.solver_set_penalty(h.solver, pointer(h.beta), None, None, None, None) == K.OK
        assert C.solver_step(h.solver, 1000, None) == K.CONVERGED
        assert close_to(twin, *h.weights(), 1e-8)


@pytest.mark.parametrize("normalizer", NORMALIZERS)
def test_changes_between_steps(normalizer):
    rng = np.random.default_rng(5)
    first = make_twin(normalizer, seed=1, values="unit")
    second = make_twin(normalizer, seed=1, values="unit", weighted=True)
    with Handles(first) as h:
        assert C.solver_step(h.solver, 1000, None) == K.CONVERGED
        before = h.weights()
        h.take(second)
        assert C.solver_set_target(h.solver, pointer(h.target), pointer(h.mass)) == K.OK
        assert_array_equal(h.weights()[0], before[0])
        assert np.isnan(C.solver_dual_gap(h.solver))
        assert C.solver_set_beta(h.solver, pointer(h.beta)) == K.OK
        assert C.solver_step(h.solver, 1000, None) == K.CONVERGED
        assert close_to(second, *h.weights(), 1e-8)

        offset = rng.normal(size=second.target.shape)
        assert C.solver_set_offset(h.solver, pointer(offset)) == K.OK
        assert C.solver_step(h.solver, 1000, None) == K.CONVERGED
        moved = type(second)(**vars(second) | {"offset": offset})
        assert_allclose(C.solver_objective(h.solver), moved.objective(*h.weights()), rtol=1e-12)
        assert close_to(moved, *h.weights(), 1e-8)
        assert C.solver_set_offset(h.solver, None) == K.OK
        assert C.solver_step(h.solver, 1000, None) == K.CONVERGED
        assert close_to(second, *h.weights(), 1e-8)


@pytest.mark.parametrize("values", ["binary", "unit"])
@pytest.mark.parametrize("normalizer", NORMALIZERS)
def test_rows_beside_the_columns(normalizer, values):
    twin = make_twin(normalizer, values=values, shape=(60, 12))
    with Handles(twin) as plain, Handles(twin) as h:
        for _ in range(2):
            assert C.columns_index_rows(h.columns) == K.OK
        C.solver_free(h.solver)
        h.make_solver()
        for handles in (plain, h):
            assert C.solver_step(handles.solver, 1000, None) == K.CONVERGED
        assert_allclose(h.weights()[0], plain.weights()[0], atol=1e-4)
        assert close_to(twin, *h.weights(), 1e-8)


def test_set_target_takes_up_constraints_that_the_old_target_always_met():
    """The column has mass 0.3: while half of it is positive, no weight can violate |p - q| <= 0.2."""
    X = np.zeros((20, 1))
    X[:6] = 1.0
    mass, beta, offset = np.full(20, 0.05), np.full((1, 1), 0.2), np.full((1, 20), -6.0)

    def twin_of(target):
        emp_mean = (target * mass) @ X
        return Twin(X, emp_mean, beta, target, mass, pooled=False, reference=True, intercept=False, offset=offset)

    first, second = twin_of(np.tile([1.0, 0.0], 10)[np.newaxis]), twin_of(np.ones((1, 20)))
    with Handles(first) as h:
        assert C.solver_step(h.solver, 100, None) == K.CONVERGED
        h.take(second)
        assert C.solver_set_target(h.solver, pointer(h.target), None) == K.OK
        assert C.solver_step(h.solver, 100, None) == K.CONVERGED
        assert h.weights()[0] > 1.0
        assert close_to(second, *h.weights(), 1e-8)


def test_solver_in_use_by_another_thread_is_refused():
    twin = make_twin("reference", values="unit", shape=(5000, 60))
    with Handles(twin, tol=1e-15) as h:

        def step(k):
            found = set()
            for _ in range(50):
                found.add(C.solver_set_target(h.solver, None, None))
                found.add(C.solver_step(h.solver, 5, None))
            return found

        with ThreadPoolExecutor(4) as pool:
            found = set().union(*pool.map(step, range(4)))
        assert K.IN_USE in found
        assert found <= {K.OK, K.RUNNING, K.CONVERGED, K.STALLED, K.IN_USE}
        assert C.solver_set_target(h.solver, None, None) == K.OK


def test_arrays_changed_in_place():
    twin = make_twin("reference", values="unit")
    with Handles(twin) as h:
        h.target = h.target.copy()
        assert C.solver_set_target(h.solver, pointer(h.target), None) == K.OK
        h.target[:] = 1 - h.target
        assert C.solver_set_target(h.solver, None, None) == K.OK
        assert C.solver_step(h.solver, 1000, None) == K.CONVERGED
        means = (h.target * h.mass) @ twin.X
        turned = type(twin)(**vars(twin) | {"target": h.target, "emp_mean": means})
        assert close_to(turned, *h.weights(), 1e-8)


def test_weights_are_taken_and_left_out_ones_stay_zero():
    twin = make_twin("blocks", values="unit", intercept=True)
    beta = twin.beta.copy()
    beta[:, 2] = np.inf
    twin = type(twin)(**vars(twin) | {"beta": beta})
    rng = np.random.default_rng(0)
    lam, b = rng.normal(size=twin.beta.shape), rng.normal(size=twin.n_blocks)
    with Handles(twin) as h:
        assert C.solver_set_weights(h.solver, pointer(lam), pointer(b)) == K.OK
        lam[:, 2] = 0
        assert_array_equal(h.weights()[0], lam)
        assert_array_equal(h.weights()[1], b)
        assert C.solver_step(h.solver, 0, None) == K.RUNNING
        assert_allclose(C.solver_objective(h.solver), twin.objective(lam, b), rtol=1e-12)
        assert C.solver_set_weights(h.solver, pointer(lam), None) == K.OK
        assert_array_equal(h.weights()[1], 0)


@pytest.mark.parametrize("with_offset", [False, True])
@pytest.mark.parametrize("values", ["binary", "unit"])
def test_scores(values, with_offset):
    twin = make_twin("blocks", values=values, with_offset=with_offset)
    offset = np.zeros(twin.target.shape) if twin.offset is None else twin.offset
    with Handles(twin) as h:
        C.solver_step(h.solver, 3, None)
        lam, b = h.weights()
        expected = lam @ twin.X.T + b[:, None] + offset
        scores = np.empty(twin.target.shape)
        assert C.solver_scores(h.solver, pointer(scores)) == K.OK
        assert_allclose(scores, expected, rtol=1e-12, atol=1e-13)
        by_row = np.empty(twin.target.shape[::-1])
        rows = as_csr(twin.X, values == "binary")
        row_offset = np.ascontiguousarray(offset.T) if with_offset else None
        arguments = *map(pointer, rows), pointer(row_offset), pointer(by_row)
        assert C.solver_score_csr(h.solver, len(twin.X), *arguments) == K.OK
        assert_allclose(by_row, expected.T, rtol=1e-12, atol=1e-13)


def test_no_nonzeros_at_all():
    twin = make_twin("reference", shape=(10, 3), values="binary")
    twin = type(twin)(**vars(twin) | {"X": np.zeros((10, 3)), "emp_mean": np.zeros((1, 3))})
    for by_rows in (False, True):
        with Handles(twin, by_rows) as h:
            assert C.solver_step(h.solver, 5, None) == K.CONVERGED
            assert not h.weights()[0].any()


def test_columns_may_go_before_the_solver():
    twin = make_twin("blocks", values="unit")
    h = Handles(twin, by_rows=True)
    C.columns_free(h.columns)
    gc.collect()
    assert C.solver_step(h.solver, 1000, None) == K.CONVERGED
    C.solver_free(h.solver)


def test_nothing_is_leaked():
    twin = make_twin("blocks", values="unit")

    def use():
        with Handles(twin, by_rows=True) as h:
            C.solver_step(h.solver, 2, None)
            C.solver_set_target(h.solver, None, None)

    def blocks_after(n_uses):
        for _ in range(n_uses):
            use()
        gc.collect()
        return sys.getallocatedblocks()

    before = blocks_after(200)  # caches fill
    assert blocks_after(200) - before < 200  # one object kept by each use would be more


def test_the_same_bits_in_threads():
    twin = make_twin("blocks", values="unit", shape=(100, 20))
    found = []

    def solve():
        with Handles(twin) as h:
            C.solver_step(h.solver, 1000, None)
            found.append(h.weights()[0])

    threads = [threading.Thread(target=solve) for _ in range(6)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(found) == 6
    for weights in found[1:]:
        assert_array_equal(weights, found[0])


def test_the_stop_flag():
    rng = np.random.default_rng(0)
    X, y = random_data(rng, 4000, 400, values="binary")
    problem = make_twin("reference", values="unit")
    first = (y == 0).astype(float)[None]
    mass = np.full(len(X), 1 / len(X))
    twin = type(problem)(
        X=X, emp_mean=(first * mass) @ X, beta=np.full((1, 400), 1e-9), target=first, mass=mass, pooled=False,
        reference=True, intercept=True,
    )  # fmt: skip
    stop = c_int(0)
    with Handles(twin, algorithm=K.SEQUENTIAL, tol=1e-12) as h:
        statuses = []
        thread = threading.Thread(
            target=lambda: statuses.append(C.solver_step(h.solver, 10**9, ctypes.addressof(stop)))
        )
        thread.start()
        while C.solver_n_iter(h.solver) < 5:
            time.sleep(0.001)
        stop.value = 1
        thread.join()
        assert statuses == [K.INTERRUPTED]
        assert np.isnan(C.solver_objective(h.solver))
        stop.value = K.TIME_IS_OVER
        assert C.solver_step(h.solver, 1, ctypes.addressof(stop)) == K.TIME_LIMIT
        stop.value = 0
        assert C.solver_step(h.solver, 1, ctypes.addressof(stop)) == K.RUNNING
        assert np.isfinite(C.solver_objective(h.solver))


def test_stalled():
    twin = make_twin("pooled", values="unit", shape=(60, 4))
    with Handles(twin, algorithm=K.SEQUENTIAL, tol=1e-300) as h:
        assert C.solver_step(h.solver, 1_000_000, None) == K.STALLED


# --------------------------------------------------------------------------------------------------- errors


class TestErrors:
    """Every status below zero."""

    def columns(self, make=None, n_samples=3, n_features=2, **changed):
        arrays = {
            "indptr": np.array([0, 2, 3], np.int64),
            "indices": np.array([0, 2, 1], np.int32),
            "values": np.ones(3),
        } | changed
        out = c_void_p()
        status = (make or C.columns_csc)(byref(out), n_samples, n_features, *map(pointer, arrays.values()))
        if status == K.OK:
            C.columns_free(out)
        return status

    def test_columns(self):
        assert self.columns() == self.columns(values=None) == K.OK
        assert C.columns_csc(None, 3, 2, None, None, None) == K.NULL_POINTER
        assert self.columns(indptr=None) == self.columns(indices=None) == K.NULL_POINTER
        assert self.columns(n_samples=0) == self.columns(n_features=-1) == K.BAD_SHAPE
        assert self.columns(indptr=np.array([1, 2, 3], np.int64)) == K.BAD_INDPTR
        assert self.columns(indptr=np.array([0, 2, 1], np.int64)) == K.BAD_INDPTR
        for indices in ([0, 3, 1], [0, -1, 1], [2, 0, 1], [1, 1, 1]):
            assert self.columns(indices=np.array(indices, np.int32)) == K.BAD_INDEX
        for value in (np.nan, np.inf, 1e101):
            assert self.columns(values=np.array([1.0, value, 1.0])) == K.BAD_VALUE

    @pytest.mark.parametrize(("error", "status"), [(MemoryError, "OUT_OF_MEMORY"), (RuntimeError, "FAILED")])
    def test_python_fails(self, monkeypatch, error, status):
        def fail(*_, **__):
            raise error

        twin = make_twin("blocks", values="unit")
        with Handles(twin) as h:
            for name in ("Columns", "Problem"):
                monkeypatch.setattr(cython_api, name, fail)
            assert self.columns() == self.columns(C.columns_csr, 2, 3) == getattr(K, status)
            out = c_void_p()
            arrays = map(pointer, (h.target, h.mass, h.beta))
            made = C.solver_new(byref(out), h.columns, 3, K.CONDITIONAL, 0, *arrays, None, K.NEWTON, 1e-4)
            assert made == getattr(K, status) and out.value is None

    def test_ctrl_c_is_not_lost(self, monkeypatch):
        statuses = []

        def interrupt(*_, **__):
            raise KeyboardInterrupt

        monkeypatch.setattr(cython_api, "Columns", interrupt)
        with pytest.raises(KeyboardInterrupt):
            statuses.append(self.columns())
            time.sleep(10)
        assert statuses in ([], [K.FAILED])

    def test_rows(self):
        assert self.columns(C.columns_csr, 2, 3) == K.OK
        assert self.columns(C.columns_csr, 2, 2) == K.BAD_INDEX
        assert self.columns(C.columns_csr, 2, 3, values=np.full(3, np.nan)) == K.BAD_VALUE
        assert self.columns(C.columns_csr, 2, 3, indptr=None) == K.NULL_POINTER

    def solver(self, kind="blocks", values="unit", **changed):
        twin = make_twin(kind, values=values, intercept=True)
        arguments = {
            "n_blocks": twin.n_blocks,
            "normalizer": {"pooled": K.POOLED, "reference": K.LOGISTIC}.get(kind, K.CONDITIONAL),
            "intercept": 1,
            "target": twin.target,
            "mass": twin.mass,
            "beta": twin.beta,
            "offset": None,
            "algorithm": K.NEWTON,
            "tol": 1e-4,
        } | changed
        for name in ("target", "mass", "beta", "offset"):
            array = arguments[name]
            arguments[name] = None if array is None else np.ascontiguousarray(array)
        kept = list(arguments.values())
        arguments = [pointer(value) if isinstance(value, np.ndarray) else value for value in kept]
        arrays, columns, out = as_csc(twin.X), c_void_p(), c_void_p()
        assert C.columns_csc(byref(columns), *twin.X.shape, *map(pointer, arrays)) == K.OK
        status = C.solver_new(byref(out), columns, *arguments)
        assert (out.value is None) == (status != K.OK)
        C.solver_free(out)
        C.columns_free(columns)
        return status

    @pytest.mark.parametrize("name", ["target", "mass", "beta"])
    def test_null(self, name):
        assert self.solver(**{name: None}) == K.NULL_POINTER

    def test_null_handles(self):
        array = np.zeros(1)
        some = pointer(array)
        assert C.solver_new(None, None, 1, 0, 0, some, some, some, None, 0, 1e-4) == K.NULL_POINTER
        assert C.solver_step(None, 1, None) == K.NULL_POINTER
        assert C.solver_set_target(None, some, some) == C.solver_set_beta(None, some) == K.NULL_POINTER
        assert C.solver_set_offset(None, some) == C.solver_set_weights(None, some, some) == K.NULL_POINTER
        assert C.solver_weights(None, some) == C.solver_intercept(None, some) == K.NULL_POINTER
        assert C.solver_scores(None, some) == K.NULL_POINTER
        assert C.solver_score_csr(None, 1, some, some, some, None, some) == K.NULL_POINTER
        numbers = C.solver_objective, C.solver_dual_gap, C.solver_objective_zero, C.solver_log_z
        assert np.isnan([number(None) for number in numbers]).all()
        assert C.solver_n_iter(None) == -1
        assert C.columns_index_rows(None) == K.NULL_POINTER
        C.columns_free(None)
        C.solver_free(None)

    def test_options(self):
        assert self.solver() == K.OK
        assert self.solver(normalizer=-1) == self.solver(normalizer=3) == K.BAD_OPTION
        assert self.solver(algorithm=-1) == self.solver(algorithm=2) == K.BAD_OPTION
        for tol in (0.0, -1.0, np.nan, np.inf):
            assert self.solver(tol=tol) == K.BAD_OPTION
        assert self.solver(n_blocks=0) == self.solver(n_blocks=1) == K.BAD_SHAPE
        assert self.solver(normalizer=K.LOGISTIC) == K.BAD_SHAPE

    def test_values(self):
        assert self.solver(values="real") == K.OK
        assert self.solver(values="real", algorithm=K.SEQUENTIAL) == K.BAD_VALUE

    def spoiled(self, name, value, normalizer="blocks"):
        array = np.array(getattr(make_twin(normalizer, values="unit", intercept=True), name))
        array.flat[1] = value
        return self.solver(normalizer, **{name: array})

    @pytest.mark.parametrize("value", [-0.1, np.nan, np.inf, 0.123])
    @pytest.mark.parametrize("normalizer", ["pooled", "reference", "blocks"])
    def test_target(self, normalizer, value):
        expected = K.OK if (normalizer, value) == ("reference", 0.123) else K.BAD_TARGET
        assert self.spoiled("target", value, normalizer) == expected

    @pytest.mark.parametrize("share", [0.0, 1.0])
    def test_all_or_nothing(self, share):
        target = np.full((1, 40), share)
        assert self.solver("reference", target=target) == K.BAD_TARGET
        assert self.solver("reference", target=target, intercept=0) == K.OK

    def test_a_block_without_examples(self):
        target = np.zeros((3, 40))
        target[0] = 1
        assert self.solver(target=target) == K.BAD_TARGET
        assert self.solver(target=target, intercept=0) == K.OK

    @pytest.mark.parametrize("value", [-0.1, np.nan, np.inf, 0.123])
    def test_mass(self, value):
        assert self.spoiled("mass", value) == K.BAD_MASS

    def test_pooled_mass(self):
        assert self.solver("pooled", mass=np.zeros(40)) == K.BAD_MASS
        mass = np.ones(40)
        mass[np.flatnonzero(make_twin("pooled", values="unit", intercept=True).target[0])[0]] = 0
        assert self.solver("pooled", mass=mass) == K.BAD_TARGET  # a cell that cannot have what it should

    @pytest.mark.parametrize(("value", "expected"), [(-1.0, "BAD_BETA"), (np.nan, "BAD_BETA"), (np.inf, "OK")])
    def test_beta(self, value, expected):
        assert self.spoiled("beta", value) == getattr(K, expected)

    @pytest.mark.parametrize(
        ("name", "value"),
        [("beta_upper", -1.0), ("beta_upper", np.nan), ("l2", -1.0), ("l2", np.inf), ("low", 1.0), ("high", -1.0)],
    )
    def test_penalty(self, name, value):
        twin = make_twin("blocks", values="unit")
        names = "beta_upper", "l2", "low", "high"
        with Handles(twin) as h:
            wrong = np.full(twin.beta.shape, value)
            given = [pointer(wrong) if name == other else None for other in names]
            assert C.solver_set_penalty(h.solver, None, *given) == K.BAD_PENALTY
            assert C.solver_set_penalty(h.solver, pointer(wrong * np.nan), *[None] * 4) == K.BAD_BETA
            assert C.solver_set_penalty(None, None, *[None] * 4) == K.NULL_POINTER

    @pytest.mark.parametrize("value", [np.nan, np.inf])
    def test_offset(self, value):
        offset = np.zeros((3, 40))
        offset[1, 1] = value
        assert self.solver(offset=offset) == K.BAD_OFFSET

    def test_a_refused_change_changes_nothing(self):
        twin = make_twin("blocks", values="unit")
        with Handles(twin) as h:
            C.solver_step(h.solver, 1000, None)
            before, objective = h.weights(), C.solver_objective(h.solver)
            bad = np.full(twin.target.shape, -1.0)
            nan = np.full(twin.beta.shape, np.nan)
            assert C.solver_step(h.solver, -1, None) == K.BAD_OPTION
            assert C.solver_set_target(h.solver, pointer(bad), None) == K.BAD_TARGET
            assert C.solver_set_target(h.solver, None, pointer(bad)) == K.BAD_MASS
            assert C.solver_set_beta(h.solver, pointer(nan)) == K.BAD_BETA
            assert C.solver_set_beta(h.solver, None) == K.NULL_POINTER
            assert C.solver_set_offset(h.solver, pointer(bad * np.nan)) == K.BAD_OFFSET
            assert C.solver_set_weights(h.solver, pointer(nan), None) == K.BAD_WEIGHT
            assert C.solver_set_weights(h.solver, pointer(before[0]), pointer(nan)) == K.BAD_WEIGHT
            assert C.solver_set_weights(h.solver, None, None) == K.NULL_POINTER
            assert C.solver_objective(h.solver) == objective
            assert_array_equal(h.weights()[0], before[0])

    def test_scoring(self):
        twin = make_twin("blocks", values="unit")
        scores = np.empty((1, 3))
        indptr, indices = np.array([0, 1], np.int64), np.array([12], np.int32)
        out, starts, places = pointer(scores), pointer(indptr), pointer(indices)
        with Handles(twin) as h:
            assert C.solver_scores(h.solver, None) == C.solver_weights(h.solver, None) == K.NULL_POINTER
            assert C.solver_intercept(h.solver, None) == K.NULL_POINTER
            assert C.solver_score_csr(h.solver, 1, starts, places, None, None, out) == K.BAD_INDEX
            assert C.solver_score_csr(h.solver, -1, starts, places, None, None, out) == K.BAD_SHAPE
            assert C.solver_score_csr(h.solver, 1, starts, None, None, None, out) == K.NULL_POINTER
            assert C.solver_score_csr(h.solver, 1, None, places, None, None, out) == K.NULL_POINTER
            assert C.solver_score_csr(h.solver, 1, starts, places, None, None, None) == K.NULL_POINTER
            indptr[1] = -1
            assert C.solver_score_csr(h.solver, 1, starts, places, None, None, out) == K.BAD_INDPTR


# ---------------------------------------------------------------------------------------------------- steps


def test_steps_are_those_of_the_core():
    rng = np.random.default_rng(0)
    gain = c_double()
    for p, q, beta, lam, curvature, reach in rng.random((200, 6)) + [0, 0, 0, -0.5, 0, 0.1]:
        delta, promised = probes.paper_step(p, q, beta, lam)
        assert C.paper_delta(p, q, beta, lam, byref(gain)) == delta == C.paper_delta(p, q, beta, lam, None)
        assert gain.value == promised
        assert C.paper_bound(delta, p, q, beta, lam) == probes.paper_bound(delta, p, q, beta, lam)
        delta, promised = probes.concordant_step(p, q, curvature, reach, beta, lam)
        assert C.concordant_delta(p, q, curvature, reach, beta, lam, byref(gain)) == delta
        assert gain.value == promised
        bound = probes.concordant_bound(0.3, q - p, curvature, reach, beta, lam)
        assert C.concordant_bound(0.3, p, q, curvature, reach, beta, lam) == bound


@pytest.mark.parametrize("place", range(4))
def test_nan_in_nan_out(place):
    arguments = [0.3, 0.4, 0.1, 0.2]
    gain = c_double(0)
    for bad in [np.nan, -0.1] if place < 3 else [np.nan]:
        spoiled = [*arguments[:place], bad, *arguments[place + 1 :]]
        assert np.isnan(C.paper_delta(*spoiled, byref(gain))) and np.isnan(gain.value)
        assert np.isnan(C.paper_bound(0.1, *spoiled))
    spoiled = [*arguments[:place], np.nan, *arguments[place + 1 :]]
    assert np.isnan(C.concordant_delta(*spoiled[:2], 1.0, 1.0, *spoiled[2:], None))
    assert np.isnan(C.concordant_bound(0.1, *spoiled[:2], 1.0, 1.0, *spoiled[2:]))


def test_curvature_and_reach_out_of_range():
    assert np.isnan(C.concordant_delta(0.3, 0.4, -1.0, 1.0, 0.1, 0.0, None))
    assert np.isnan(C.concordant_delta(0.3, 0.4, 1.0, 0.0, 0.1, 0.0, None))
    assert np.isnan(C.concordant_bound(np.nan, 0.3, 0.4, 1.0, 1.0, 0.1, 0.0))
