"""Every kind of input gives the same model, nothing of the caller's changes, errors are one sentence."""

import numpy as np
import pytest
from scipy import sparse

import sl1max
from sl1max._data.inputs import DENSE_FRACTION, read_data

N_SAMPLES, N_FEATURES = 40, 12


def make_data(binary=True, seed=0):
    rng = np.random.default_rng(seed)
    X = (rng.random((N_SAMPLES, N_FEATURES)) < 0.2).astype(np.float64)
    if not binary:
        X *= rng.integers(1, 5, X.shape) / 4  # exact in float32
    y = rng.integers(0, 3, N_SAMPLES)
    X[y == 1, 0] = 1
    return X, y


def read(X, y, **options):
    options = {
        "distribution": "conditional",
        "label_mode": "auto",
        "multilabel_weighting": "duplicate",
        "solver": "auto",
        "sample_weight": None,
        "offset": None,
    } | options
    return read_data(X, y, **options)


def assert_same_model(left, right):
    """Bit for bit."""
    assert left.weights.nnz > 0
    for name in ("indptr", "indices", "data"):
        np.testing.assert_array_equal(getattr(left.weights, name), getattr(right.weights, name))
    for name in ("intercept", "objective", "dual_gap", "n_iter", "class_prior"):
        np.testing.assert_array_equal(getattr(left, name), getattr(right, name))


def read_only(array):
    array = array.copy()
    array.flags.writeable = False
    return array


def with_duplicates(X):
    """CSR in which every entry is stored as two halves, in descending order of columns."""
    csr = sparse.csr_array(X)
    order = np.concatenate([np.arange(b - 1, a - 1, -1) for a, b in zip(csr.indptr, csr.indptr[1:], strict=False)])
    data, indices = np.repeat(csr.data[order] / 2, 2), np.repeat(csr.indices[order], 2)
    return sparse.csr_matrix((data, indices, csr.indptr * 2), shape=X.shape)


def with_zeros(X):
    """CSC that stores every entry, zeros too."""
    n_samples, n_features = X.shape
    indices, indptr = np.tile(np.arange(n_samples), n_features), np.arange(n_features + 1) * n_samples
    return sparse.csc_array((X.ravel(order="F"), indices, indptr), shape=X.shape)


def with_int64(X):
    X = sparse.csc_matrix(X)
    X.indices, X.indptr = X.indices.astype(np.int64), X.indptr.astype(np.int64)
    return X


def read_only_sparse(X):
    X = sparse.csc_array(X)
    for name in ("data", "indices", "indptr"):
        setattr(X, name, read_only(getattr(X, name)))
    return X


def unsorted(X):
    X = sparse.csc_array(X)
    for a, b in zip(X.indptr, X.indptr[1:], strict=False):
        X.indices[a:b] = X.indices[a:b][::-1].copy()
        X.data[a:b] = X.data[a:b][::-1].copy()
    X.has_sorted_indices = True  # a note that is wrong must not mislead
    return X


KINDS = {
    "csr_matrix": sparse.csr_matrix,
    "csc_matrix": sparse.csc_matrix,
    "coo_matrix": sparse.coo_matrix,
    "lil_matrix": sparse.lil_matrix,
    "dok_matrix": sparse.dok_matrix,
    "bsr_matrix": sparse.bsr_matrix,
    "dia_matrix": sparse.dia_matrix,
    "csr_array": sparse.csr_array,
    "csc_array": sparse.csc_array,
    "coo_array": sparse.coo_array,
    "int64 indices": with_int64,
    "duplicates": with_duplicates,
    "unsorted": unsorted,
    "explicit zeros": with_zeros,
    "read-only sparse": read_only_sparse,
    "float32 csr": lambda X: sparse.csr_array(X.astype(np.float32)),
    "C order": np.ascontiguousarray,
    "F order": np.asfortranarray,
    "float32": lambda X: X.astype(np.float32),
    "strided": lambda X: np.repeat(X, 2, axis=1)[:, ::2],
    "list": lambda X: X.tolist(),
    "read-only": read_only,
    "big-endian": lambda X: X.astype(">f8"),
}
BINARY_KINDS = {
    "bool": lambda X: X.astype(bool),
    "int": lambda X: X.astype(np.int64),
    "uint8": lambda X: X.astype(np.uint8),
    "bool csr": lambda X: sparse.csr_matrix(X.astype(bool)),
    "int8 csc": lambda X: sparse.csc_matrix(X.astype(np.int8)),
    "int8 coo": lambda X: sparse.coo_matrix(X.astype(np.int8)),
}


@pytest.mark.parametrize("kind", KINDS | BINARY_KINDS)
def test_all_kinds_give_the_same_model_binary(kind):
    X, y = make_data()
    given = (KINDS | BINARY_KINDS)[kind](X)
    assert read(given, y).columns.binary
    assert_same_model(sl1max.fit(given, y), sl1max.fit(sparse.csc_array(X), y))


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("distribution", ["conditional", "class-conditional"])
def test_all_kinds_give_the_same_model(kind, distribution):
    X, y = make_data(binary=False)
    given = KINDS[kind](X)
    assert not read(given, y).columns.binary
    model = sl1max.fit(given, y, distribution=distribution)
    assert_same_model(model, sl1max.fit(sparse.csc_array(X), y, distribution=distribution))


def test_memory_map(tmp_path):
    X, y = make_data(binary=False)
    np.save(tmp_path / "X.npy", X)
    np.save(tmp_path / "y.npy", y)
    mapped = [np.load(tmp_path / name, mmap_mode="r") for name in ("X.npy", "y.npy")]
    assert_same_model(sl1max.fit(*mapped), sl1max.fit(X, y))


def test_frames():
    pandas = pytest.importorskip("pandas")
    X, y = make_data(binary=False)
    labels = pandas.Series(y).map({0: "a", 1: "b", 2: "c"})
    plain = sl1max.fit(X, np.array(["a", "b", "c"])[y])
    for given in (labels, labels.astype("category"), labels.astype("string"), pandas.Categorical(labels)):
        model = sl1max.fit(pandas.DataFrame(X), given)
        assert_same_model(model, plain)
        assert model.classes.tolist() == ["a", "b", "c"]


def test_dense_and_sparse_storage():
    X, y = make_data(binary=False)
    assert np.count_nonzero(X) <= DENSE_FRACTION * X.size
    assert not read(X, y).columns.dense
    full = X + 1
    data = read(full, y)
    assert data.columns.dense
    dense, stored = sl1max.fit(full, y, tol=1e-10), sl1max.fit(sparse.csr_array(full), y, tol=1e-10)
    assert dense.objective == pytest.approx(stored.objective, rel=1e-9)
    for kind in (np.asfortranarray, read_only, np.float32, lambda X: X.tolist()):
        assert_same_model(sl1max.fit(kind(full), y), sl1max.fit(full, y))


def test_canonical_input_is_not_copied():
    X, y = make_data()
    binary = sparse.csc_matrix(X)
    data = read(binary, y)
    assert np.shares_memory(data.matrix.indices, binary.indices)
    valued = sparse.csc_array(make_data(binary=False)[0])
    data = read(valued, y)
    assert np.shares_memory(data.matrix.indices, valued.indices)
    assert np.shares_memory(data.matrix.data, valued.data)
    dense = np.asfortranarray(X + 1)
    assert np.shares_memory(read(dense, y).matrix, dense)


@pytest.mark.parametrize("kind", KINDS)
def test_nothing_is_modified(kind):
    X, y = make_data(binary=False)
    given = KINDS[kind](X)

    def contents():
        if not sparse.issparse(given):
            return [np.array(given)]
        names = ("data", "indices", "indptr", "row", "col", "offsets", "rows")
        if given.format == "dok":
            return [given.toarray()]
        return [getattr(given, name).copy() for name in names if hasattr(given, name)]

    Y = sparse.csr_matrix(np.eye(3)[y])
    weight, offset = np.linspace(0, 2, N_SAMPLES), np.ones((N_SAMPLES, 3))
    before = contents()
    copies = Y.copy(), weight.copy(), offset.copy()
    model = sl1max.fit(given, Y, label_mode="exclusive", sample_weight=weight, offset=offset)
    model.predict_proba(given, offset)
    for left, right in zip(before, contents(), strict=True):
        np.testing.assert_array_equal(left, right)
    np.testing.assert_array_equal(Y.toarray(), copies[0].toarray())
    np.testing.assert_array_equal(weight, copies[1])
    np.testing.assert_array_equal(offset, copies[2])


def test_duplicates_of_small_integers_are_summed():
    rows, cols = np.repeat([0, 1, 2, 3], 100), np.zeros(400, int)
    for dtype in (bool, np.int8):
        X = sparse.coo_matrix((np.ones(400, dtype), (rows, cols)), shape=(4, 2))
        X_csr = sparse.csr_array((np.ones(400, dtype), cols, np.arange(0, 401, 100)), shape=(4, 2))
        for given in (X, X_csr):
            matrix = read(given, [0, 0, 1, 1]).matrix
            np.testing.assert_array_equal(matrix.toarray()[:, 0], np.full(4, 100.0))


def test_labels_of_any_type():
    X, y = make_data()
    plain = sl1max.fit(X, y)
    for names in (
        ["b", "c", "d"],
        [b"b", b"c", b"d"],
        [1.0, 2.0, 4.0],
        [-1, 0, 7],
        np.arange(3).astype("M8[D]"),
    ):
        names = np.asarray(names)
        model = sl1max.fit(X, names[y])
        assert_same_model(model, plain)
        np.testing.assert_array_equal(model.classes, names)
        np.testing.assert_array_equal(model.predict(X), names[plain.predict(X)])
    model = sl1max.fit(X, np.array(["x", "y", "z"], dtype=object)[y])
    assert_same_model(model, plain)


@pytest.mark.parametrize(
    "kind",
    [
        np.asarray, sparse.csr_matrix, sparse.csc_array, sparse.coo_array, lambda Y: Y.astype(bool),
        lambda Y: Y.astype(np.int8), lambda Y: Y.tolist(), with_zeros, with_duplicates,
        lambda Y: sparse.csr_matrix(Y.astype(bool)),
    ],
)  # fmt: skip
def test_indicators(kind):
    X, y = make_data()
    Y = np.eye(3)[y]
    model = sl1max.fit(X, kind(Y))
    assert model.label_mode == "independent"
    assert_same_model(model, sl1max.fit(X, y, label_mode="independent"))
    exclusive = sl1max.fit(X, kind(Y), label_mode="exclusive")
    assert_same_model(exclusive, sl1max.fit(X, y))


def bad(X=None, y=None, **options):
    """Arguments of a call that must fail; X and y change what is otherwise good data."""
    good_X, good_y = make_data()
    return (good_X if X is None else X(good_X) if callable(X) else X), (good_y if y is None else y), options


def put(value, i=3, j=5):
    def change(X):
        X = X.copy()
        X[i, j] = value
        return X

    return change


def ends_at_zero(X):
    """A matrix whose indptr falls back to 0 at its end: as if it had no entries."""
    X = sparse.csc_array(X)
    X.indptr[-1] = 0
    return X


def malformed(X):
    X = sparse.csr_matrix(X)
    X.indices[0] = 1000
    return X


INDICATOR = np.eye(3)[make_data()[1]]
TEXT = (
    r"^X is text: vectorise it first, e\.g\. with "
    r"sklearn\.feature_extraction\.text\.CountVectorizer\(binary=True\)$"
)
LABEL_SETS = (
    r"^y has several labels in each place: make an indicator of them first, e\.g\. with "
    r"sklearn\.preprocessing\.MultiLabelBinarizer\(sparse_output=True\)$"
)
ERRORS = {
    "text": (bad("some text"), TEXT),
    "list of texts": (bad(["some text"] * N_SAMPLES), TEXT),
    "array of texts": (bad(np.array([["some"], ["text"]])), TEXT),
    "object texts": (bad(np.array(["some", "text"], dtype=object)), TEXT),
    "ragged": (bad([[1, 2], [3]]), "^X is not a matrix: its rows differ in length$"),
    "complex": (bad(lambda X: X.astype(complex)), "^X has dtype complex128: it must hold real numbers$"),
    "object": (bad(lambda X: X.astype(object)), "^X has dtype object: it must hold real numbers$"),
    "complex sparse": (bad(lambda X: sparse.csr_array(X.astype(complex))), "^X has dtype complex128"),
    "1-D": (bad(lambda X: X[:, 0]), r"^X must have 2 dimensions, one row per example: its shape is \(40,\)$"),
    "3-D": (bad(lambda X: X[None]), r"^X must have 2 dimensions.* \(1, 40, 12\)$"),
    "no rows": (bad(lambda X: X[:0]), r"^X is empty: its shape is \(0, 12\)$"),
    "no columns": (bad(lambda X: sparse.csr_matrix(X)[:, :0]), r"^X is empty: its shape is \(40, 0\)$"),
    "rows": (bad(sparse.coo_array((2**31, 2))), r"^X must have fewer than 2\*\*31 rows and columns"),
    "NaN": (bad(put(np.nan)), "^X has NaN in row 3, column 5$"),
    "inf": (bad(put(-np.inf)), "^X has inf in row 3, column 5$"),
    "NaN csr": (bad(lambda X: sparse.csr_array(put(np.nan)(X))), "^X has NaN in row 3, column 5$"),
    "NaN csc": (bad(lambda X: sparse.csc_array(put(np.nan)(X))), "^X has NaN in row 3, column 5$"),
    "NaN coo": (bad(lambda X: sparse.coo_array(put(np.nan)(X))), "^X has NaN in row 3, column 5$"),
    "NaNs": (
        bad(lambda X: put(np.nan)(put(np.nan, 7)(X))),
        "^X has NaN in row 3, column 5 and in 1 more places$",
    ),
    "huge": (bad(put(1e200)), r"^X has values beyond 1e\+100 in size: scale them first$"),
    "malformed": (bad(malformed), "^X is not a valid sparse matrix: "),
    "malformed, last entry 0": (bad(ends_at_zero), "^X is not a valid sparse matrix: indptr must be a non-decreasing"),
    "values for sequential": (
        bad(put(2.0), solver="sequential"),
        r'^X has values outside \[0, 1\], which solver="sequential" cannot take: '
        r'solver="newton" takes any real values$',
    ),
    "negative for sequential": (bad(put(-0.5), solver="sequential"), r"^X has values outside \[0, 1\]"),
    "y length": (bad(y=[0, 1]), "^y has 2 examples, but X has 40$"),
    "y sparse length": (bad(y=sparse.csr_array(np.eye(3))), "^y has 3 examples, but X has 40$"),
    "y scalar": (bad(y=1), "^y must be a vector of labels or an indicator matrix"),
    "y 3-D": (bad(y=np.zeros((40, 2, 2))), "^y must be a vector of labels or an indicator matrix"),
    "y NaN": (
        bad(y=np.r_[np.nan, np.arange(39) % 2]),
        "^y has NaN or complex values: each example needs a label$",
    ),
    "y None": (bad(y=[None] + ["a", "b", "c"] * 13), "^y has None at index 0: each example needs a label$"),
    "y NaN object": (
        bad(y=np.array(["a", np.nan] + ["b"] * 38, dtype=object)),
        "^y has nan at index 1: each example needs a label$",
    ),
    "y mixed": (bad(y=np.array([1, "a"] * 20, dtype=object)), "^y has labels that cannot be compared with each other$"),
    "y continuous": (
        bad(y=np.linspace(0, 1, 40)),
        r"^y is continuous, 0\.025641 at index 1: labels are text or whole numbers, so bin it first, e\.g\. with "
        r"numpy\.digitize; shares of the classes are given as an indicator \(Unknown label type: continuous\)$",
    ),
    "y continuous objects": (bad(y=np.array([1, 0.5] * 20, dtype=object)), r"^y is continuous, 0\.5 at index 1: "),
    "y sets": (bad(y=[{"a"}, {"a", "b"}] * 20), LABEL_SETS),
    "y frozensets": (bad(y=[frozenset("a"), frozenset("ab")] * 20), LABEL_SETS),
    "y tuples": (bad(y=[("a",), ("a", "b")] * 20), LABEL_SETS),
    "y lists": (bad(y=[["a"], ["a", "b"]] * 20), LABEL_SETS),
    "y lists of one length": (bad(y=[["a", "c"], ["a", "b"]] * 20), LABEL_SETS),
    "y lists of numbers": (bad(y=[[1], [2, 3]] * 20), LABEL_SETS),
    "y lists in an array": (bad(y=np.array([["a"], ["a", "b"]] * 20, dtype=object)), LABEL_SETS),
    "one class": (bad(y=["a"] * N_SAMPLES), "^y has one class only, a: at least two are needed$"),
    "one class left": (
        bad(y=np.arange(40) == 0, sample_weight=np.arange(40) > 0),
        "^y has one class only, False: at least two are needed$",
    ),
    "one exclusive column": (
        bad(y=INDICATOR[:, :1], label_mode="exclusive"),
        "^y has one class only: exclusive",
    ),
    "y text matrix": (bad(y=INDICATOR.astype(str)), LABEL_SETS),
    "y text column": (bad(y=INDICATOR[:, :1].astype(str)), "^y has dtype <U32: it must hold real numbers$"),
    "y NaN matrix": (bad(y=INDICATOR * np.nan), "^y has NaN in row 0, column 0"),
    "y negative": (bad(y=-INDICATOR), "^y has negative values: an indicator must be non-negative$"),
    "y above 1": (
        bad(y=2 * INDICATOR),
        r"^y has values above 1: for independent classes they must be in \[0, 1\]$",
    ),
    "empty exclusive class": (
        bad(y=np.c_[INDICATOR, np.zeros(40)], label_mode="exclusive"),
        "^y has no example of class 3: exclusive classes need some of each class$",
    ),
    "empty class-conditional": (
        bad(y=np.c_[INDICATOR, np.zeros(40)], distribution="class-conditional"),
        "^y has no example of class 3: a class-conditional model needs some of each class$",
    ),
    "weight length": (bad(sample_weight=np.ones(7)), r"^sample_weight has shape \(7,\): it must be \(40,\)$"),
    "weight NaN": (
        bad(sample_weight=np.r_[1, np.nan, np.ones(38)]),
        "^sample_weight has NaN or inf at index 1$",
    ),
    "weight negative": (
        bad(sample_weight=np.r_[1, 1, -1, np.ones(37)]),
        "^sample_weight is negative at index 2$",
    ),
    "weight zero": (bad(sample_weight=np.zeros(40)), "^sample_weight is zero for every example$"),
    "weight text": (bad(sample_weight=["a"] * 40), "^sample_weight must hold real numbers, not <U1$"),
    "offset length": (
        bad(offset=np.zeros((40, 2))),
        r"^offset has shape \(40, 2\): it must be \(40,\) or \(40, 3\)$",
    ),
    "offset inf": (bad(offset=np.full((40, 3), np.inf)), "^offset has NaN or inf at index 0, 0$"),
    "offset cancels": (
        bad(offset=np.zeros(40)),
        "^offset with one value per example cancels in a conditional model",
    ),
    "beta negative": (bad(beta=-0.1), "^beta must not be negative: it is -0.1$"),
    "beta array negative": (bad(beta=np.r_[np.ones(11), -2]), "^beta must not be negative: it is -2$"),
    "beta NaN": (bad(beta=np.nan), "^beta has NaN: it must be a number >= 0, or an array of them$"),
    "beta text": (bad(beta="strong"), "^beta must be a number or an array of numbers$"),
    "C zero": (bad(C=0), "^C must be positive: it is 0$"),
    "C array negative": (bad(C=np.r_[np.ones(11), -2]), "^C must be positive: it is -2$"),
    "C NaN": (bad(C=np.nan), "^C must be positive: it is nan$"),
    "C text": (bad(C="weak"), "^C must be a number or an array of numbers$"),
    "C shape": (bad(C=np.ones(5)), r"^C has shape \(5,\): it must be a number or an array of shape \(12,\) or"),
    "beta and C": (bad(beta=0.5, C=2), "^beta and C are two names of one strength, beta = 1/C: give one of them$"),
    "beta shape": (
        bad(beta=np.ones(5)),
        r"^beta has shape \(5,\): it must be a number or an array of shape \(12,\) or \(3, 12\)$",
    ),
    "distribution": (
        bad(distribution="marginal"),
        "^distribution='marginal' is unknown: it must be one of 'conditional', 'joint', 'class-conditional'$",
    ),
    "label_mode": (
        bad(label_mode=3),
        "^label_mode=3 is unknown: it must be one of 'auto', 'exclusive', 'independent'$",
    ),
    "beta_rule": (bad(beta_rule="l1"), "^beta_rule='l1' is unknown: it must be one of 'deviation', 'count'$"),
    "solver": (bad(solver="saga"), "^solver='saga' is unknown: it must be one of 'auto', 'newton', 'sequential'$"),
    "multilabel_weighting": (
        bad(multilabel_weighting="x"),
        "^multilabel_weighting='x' is unknown: it must be one of 'duplicate', 'equal'$",
    ),
    "tol": (bad(tol=0), "^tol=0 must be a positive number$"),
    "tol NaN": (bad(tol=np.nan), "^tol=nan must be a positive number$"),
    "tol too large": (bad(tol=10**400), "^tol=1000* must be a positive number$"),
    "max_time too large": (bad(max_time=10**400), "^max_time=1000* must be a positive number of seconds or None$"),
    "max_iter too large": (bad(max_iter=2**63), "^max_iter=9223372036854775808 must be a positive integer or None$"),
    "beta too large": (bad(beta=10**400), "^beta must be a number or an array of numbers$"),
    "max_iter": (bad(max_iter=0), "^max_iter=0 must be a positive integer or None$"),
    "max_iter float": (bad(max_iter=1.5), "^max_iter=1.5 must be a positive integer or None$"),
    "n_jobs": (bad(n_jobs=0), "^n_jobs=0 must be an integer other than 0, or None$"),
    "callback": (bad(callback=3), "^callback=3 must be callable or None$"),
    "warm_start": (bad(warm_start=3), "^warm_start must be a Model, not int$"),
}


@pytest.mark.parametrize("case", ERRORS)
def test_errors(case):
    (X, y, options), message = ERRORS[case]
    with pytest.raises(ValueError, match=message):
        sl1max.fit(X, y, **options)


def test_too_many_entries_are_refused(monkeypatch):
    monkeypatch.setattr("sl1max._data.inputs.MAX_INDEX", 50)
    X, y = make_data()
    for given in (X, sparse.csr_array(X)):
        with pytest.raises(ValueError, match=r"^X must have fewer than 2\*\*31 entries$"):
            sl1max.fit(given, y)


def test_warm_start_must_fit():
    X, y = make_data()
    model = sl1max.fit(X, y)
    for message, call in {
        "^warm_start is a conditional model of exclusive classes: it cannot start a joint model": (
            lambda: sl1max.fit(X, y, distribution="joint", warm_start=model)
        ),
        "^warm_start is a conditional model of exclusive classes: it cannot start a conditional": (
            lambda: sl1max.fit(X, y, label_mode="independent", warm_start=model)
        ),
        "^warm_start has 12 features, but X has 11$": lambda: sl1max.fit(X[:, 1:], y, warm_start=model),
        "^warm_start has other classes than y$": lambda: sl1max.fit(X, y + 1, warm_start=model),
    }.items():
        with pytest.raises(ValueError, match=message):
            call()


@pytest.mark.parametrize("share", [0, 1])
@pytest.mark.parametrize("distribution", ["conditional", "joint"])
@pytest.mark.parametrize("fit_intercept", [True, False])
def test_constant_independent_class(share, distribution, fit_intercept):
    X, y = make_data()
    Y = np.c_[np.full(N_SAMPLES, share), np.eye(3)[y]]
    word = "every" if share else "no"
    with pytest.warns(UserWarning, match=f"^y gives {word} example to class 0: its predictions will be constant$"):
        model = sl1max.fit(X, Y, distribution=distribution, fit_intercept=fit_intercept)
    assert model.converged.all()
    np.testing.assert_array_equal(model.predict_proba(X)[:, 0], np.full(N_SAMPLES, share))
    np.testing.assert_array_equal(model.predict(X)[:, 0], np.full(N_SAMPLES, share))
    assert not np.isnan(model.predict_proba(X, np.ones(N_SAMPLES))).any()
    rest = sl1max.fit(X, Y[:, 1:], distribution=distribution, fit_intercept=fit_intercept)
    np.testing.assert_array_equal(model.predict_proba(X)[:, 1:], rest.predict_proba(X))
    with pytest.warns(UserWarning, match="constant"):
        again = sl1max.fit(X, Y, distribution=distribution, fit_intercept=fit_intercept, warm_start=model)
    np.testing.assert_allclose(again.predict_proba(X), model.predict_proba(X), atol=1e-3)


def test_only_constant_classes():
    X, _ = make_data()
    with pytest.warns(UserWarning, match="every example to class 0"):
        model = sl1max.fit(X, np.ones((N_SAMPLES, 1)))
    assert model.predict_proba(X).tolist() == [[1.0]] * N_SAMPLES


def test_examples_that_do_not_count():
    X, y = make_data(binary=False)
    weight = np.ones(N_SAMPLES)
    weight[::3] = 0
    assert_same_model(sl1max.fit(X, y, sample_weight=weight), sl1max.fit(X[weight > 0], y[weight > 0]))
    Y = np.eye(3)[y]
    Y[::4] = 0
    labelled = Y.sum(axis=1) > 0
    assert_same_model(sl1max.fit(sparse.csr_array(X), Y, label_mode="exclusive"), sl1max.fit(X[labelled], y[labelled]))
    independent = sl1max.fit(X, Y)
    assert independent.total_weight == N_SAMPLES
