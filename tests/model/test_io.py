"""Models as files: everything comes back, damage is always noticed; and models as LogisticRegression."""

import hashlib
import json
import os
import stat
import struct
import subprocess
import sys
import threading
import tracemalloc
import zlib
from dataclasses import fields, replace
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import sparse

import sl1max
from sl1max.exceptions import ModelFileError
from sl1max.model import _io

CASES = [
    (distribution, label_mode)
    for distribution in ("conditional", "joint", "class-conditional")
    for label_mode in ("exclusive", "independent")
]
DATA = Path(__file__).parents[1] / "data"
HEAD = struct.Struct("<8sIQ32s")


def make_data(n_classes=3, seed=0):
    rng = np.random.default_rng(seed)
    X = (rng.random((60, 12)) < 0.3).astype(float)
    y = rng.integers(0, n_classes, 60)
    X[np.arange(60), y] = 1
    return X, y


@pytest.fixture(scope="module")
def model():
    return sl1max.fit(*make_data())


@pytest.fixture(scope="module")
def content(model, tmp_path_factory):
    path = tmp_path_factory.mktemp("model") / "model.sl1max"
    model.save(path)
    return path.read_bytes()


def assert_equal_models(first, second):
    for field in fields(sl1max.Model):
        one, two = getattr(first, field.name), getattr(second, field.name)
        if field.name == "_parts":
            assert (one is None) == (two is None)
            ones, twos = (one or ()), (two or ())
        else:
            ones, twos = (one,), (two,)
        for a, b in zip(ones, twos, strict=True):
            assert isinstance(a, type(b)), field.name
            if sparse.issparse(a):
                assert a.shape == b.shape and b.has_canonical_format
                np.testing.assert_array_equal(a.indptr, b.indptr)
                np.testing.assert_array_equal(a.indices, b.indices)
                np.testing.assert_array_equal(a.data, b.data)
            else:
                assert getattr(a, "dtype", None) == getattr(b, "dtype", None), field.name
                np.testing.assert_array_equal(a, b)


def save_and_load(model, folder):
    model.save(folder / "model.sl1max")
    return sl1max.load(folder / "model.sl1max")


def write_body(path, text, arrays=b"", version=2):
    """A file with a right head and any body."""
    text = json.dumps(text).encode()
    body = zlib.compress(struct.pack("<I", len(text)) + text + arrays)
    checksum = hashlib.sha256(struct.pack("<IQ", version, len(body)) + body).digest()
    path.write_bytes(HEAD.pack(b"\x93SL1MAX\n", version, len(body), checksum) + body)


# Round trips


@pytest.mark.parametrize("indicator", [False, True])
@pytest.mark.parametrize(("distribution", "label_mode"), CASES)
def test_every_model_comes_back(distribution, label_mode, indicator, tmp_path):
    X, y = make_data()
    model = sl1max.fit(X, np.eye(3)[y] if indicator else y, distribution=distribution, label_mode=label_mode)
    again = save_and_load(model, tmp_path)
    assert_equal_models(model, again)
    np.testing.assert_array_equal(model.predict_log_proba(X), again.predict_log_proba(X))
    assert os.listdir(tmp_path) == ["model.sl1max"]


def test_settings_come_back(tmp_path):
    X, y = make_data()
    for options in (
        {"beta": np.full(12, 0.5)},
        {"beta": np.inf, "beta_rule": "count"},
        {"solver": "sequential", "tol": 1e-3},
    ):
        model = sl1max.fit(X, y, **options)
        assert_equal_models(model, save_and_load(model, tmp_path))


def test_constant_class_comes_back(tmp_path):
    X, y = make_data()
    with pytest.warns(UserWarning, match="constant"):
        model = sl1max.fit(X, np.column_stack([y == 0, np.zeros(60), np.ones(60)]))
    assert_equal_models(model, save_and_load(model, tmp_path))


@pytest.mark.parametrize(
    "labels",
    [
        ["a", "bb", "ccc"],
        ["", "ŝpäm", "日本語"],
        [-1, 0, 7],
        np.array([0, 1, 255], np.uint8),
        np.array([1, 2, 3], ">i4"),
        [-5.0, 0.0, 1e300],
        np.array([0, 1, 2], np.float32),
        np.array(["a", "b", "c" * 300], object),
    ],
    ids=str,
)
def test_labels_come_back(labels, tmp_path):
    labels = np.asarray(labels)
    X, y = make_data()
    model = sl1max.fit(X, labels[y])
    again = save_and_load(model, tmp_path)
    np.testing.assert_array_equal(again.classes, labels)
    assert again.classes.dtype == labels.dtype.newbyteorder("=")
    np.testing.assert_array_equal(again.predict(X), model.predict(X))


def test_boolean_labels_come_back(tmp_path):
    X, y = make_data(2)
    again = save_and_load(sl1max.fit(X, y == 1), tmp_path)
    assert again.classes.dtype == bool and again.classes.tolist() == [False, True]


@pytest.mark.skipif(not hasattr(np.dtypes, "StringDType"), reason="numpy 1 has no StringDType")
def test_variable_width_labels_come_back(model, tmp_path):
    labels = np.array(["a", "", "long enough"], np.dtypes.StringDType())
    again = save_and_load(replace(model, classes=labels), tmp_path)
    assert again.classes.dtype == labels.dtype and again.classes.tolist() == labels.tolist()


@pytest.mark.parametrize("labels", [np.array([1, "a", None], object), np.array([1, 2, 3], "M8[D]")])
def test_other_labels_are_refused(model, labels, tmp_path):
    with pytest.raises(ValueError, match=r"class labels of type .* cannot be saved"):
        replace(model, classes=labels).save(tmp_path / "model")
    assert not os.listdir(tmp_path)


@settings(max_examples=40)
@given(st.integers(1, 30), st.integers(1, 10**6), st.integers(0, 200), st.integers(0, 2**32 - 1))
def test_any_weights_come_back(n_classes, n_features, n_weights, seed):
    rng = np.random.default_rng(seed)
    cells = rng.choice(n_classes * n_features, min(n_weights, n_classes * n_features), replace=False)
    values = rng.normal(size=len(cells)) * 10.0 ** rng.integers(-300, 300, len(cells))
    rows, columns = np.divmod(cells, n_features)
    matrix = sparse.csr_array((values, (rows, columns)), shape=(n_classes, n_features))
    arrays = _io._encode_sparse("weights", matrix)
    again = _io._decode_sparse("weights", arrays, matrix.shape)
    for name in ("indptr", "indices", "data"):
        np.testing.assert_array_equal(getattr(matrix, name), getattr(again, name))


def test_large_model_is_small(tmp_path):
    """4,700 classes x 95,000 features, 50,000 weights that no compressor can guess."""
    rng = np.random.default_rng(0)
    n_classes, n_features = shape = 4700, 95_000
    cells = rng.choice(n_classes * n_features, 50_000, replace=False)
    parts = [
        sparse.csr_array((rng.normal(size=len(part)), np.divmod(part, n_features)), shape=shape)
        for part in (cells[:40_000], cells[40_000:])
    ]
    model = sl1max.Model(
        distribution="conditional",
        label_mode="independent",
        trained_on_indicator=False,
        sparse_output=False,
        feature_names=None,
        fit_intercept=True,
        classes=np.array([f"tag {c}" for c in range(n_classes)]),
        weights=(parts[0] - parts[1]).tocsr(),
        _parts=tuple(parts),
        intercept=rng.normal(size=n_classes),
        log_z=None,
        class_prior=rng.random(n_classes),
        total_weight=938_455.0,
        objective=rng.random(n_classes),
        objective_zero=rng.random(n_classes),
        dual_gap=rng.random(n_classes),
        n_iter=rng.integers(0, 30, n_classes),
        converged=np.ones(n_classes, bool),
        beta=0.5,
        beta_rule="deviation",
        solver="auto",
        tol=1e-4,
    )
    assert_equal_models(model, save_and_load(model, tmp_path))
    assert os.path.getsize(tmp_path / "model.sl1max") < 700_000


# Writing


def test_a_failed_write_leaves_the_old_file(model, content, tmp_path, monkeypatch):
    path = tmp_path / "model.sl1max"
    path.write_bytes(b"old")

    def fail(*_):
        raise OSError(28, "No space left on device")

    for name in ("fsync", "replace"):
        with monkeypatch.context() as patch:
            patch.setattr(os, name, fail)
            with pytest.raises(OSError, match="No space left"):
                model.save(path)
        assert path.read_bytes() == b"old"
        assert os.listdir(tmp_path) == ["model.sl1max"]
    model.save(path)
    assert path.read_bytes() == content


def test_a_killed_write_leaves_the_old_file(tmp_path):
    path = tmp_path / "model.sl1max"
    path.write_bytes(b"old")
    code = (
        "import os, sys, sl1max; os.fsync = lambda _: os._exit(9); "
        "sl1max.fit([[1.0], [0], [0]], [1, 0, 0]).save(sys.argv[1])"
    )
    done = subprocess.run([sys.executable, "-P", "-c", code, path], check=False)
    assert done.returncode == 9
    assert path.read_bytes() == b"old"


def test_mode_and_links_are_kept(model, content, tmp_path):
    path, link = tmp_path / "model.sl1max", tmp_path / "link"
    path.write_bytes(b"old")
    path.chmod(0o640)
    link.symlink_to(path)
    model.save(link)
    assert link.is_symlink() and path.read_bytes() == content
    assert stat.S_IMODE(path.stat().st_mode) == 0o640


def test_paths_that_cannot_be_written(model, tmp_path):
    with pytest.raises(FileNotFoundError, match=r"there is no folder .*missing"):
        model.save(tmp_path / "missing" / "model")
    with pytest.raises(IsADirectoryError, match="this is a folder"):
        model.save(tmp_path)
    with pytest.raises(OSError, match="not a regular file"):
        model.save(os.devnull)
    with pytest.raises(FileNotFoundError):
        sl1max.load(tmp_path / "missing")


@pytest.mark.skipif(not hasattr(os, "geteuid") or os.geteuid() == 0, reason="root may write anywhere")
def test_folder_without_permission(model, tmp_path):
    tmp_path.chmod(0o500)
    with pytest.raises(PermissionError, match="no permission to write"):
        model.save(tmp_path / "model")


# Damage


@settings(max_examples=200)
@given(st.data())
def test_any_flipped_byte_is_noticed(content, tmp_path_factory, data):
    position = data.draw(st.integers(0, len(content) - 1))
    flip = data.draw(st.integers(1, 255))
    damaged = bytearray(content)
    damaged[position] ^= flip
    check_refused(bytes(damaged), tmp_path_factory)


@pytest.mark.parametrize("position", range(HEAD.size))
def test_every_byte_of_the_head_counts(content, position, tmp_path_factory):
    for flip in (1, 128, 255):
        damaged = bytearray(content)
        damaged[position] ^= flip
        check_refused(bytes(damaged), tmp_path_factory)


@settings(max_examples=200)
@given(st.data())
def test_any_truncation_is_noticed(content, tmp_path_factory, data):
    size = data.draw(st.integers(0, len(content) - 1))
    check_refused(content[:size], tmp_path_factory)


@settings(max_examples=100)
@given(st.binary(max_size=300), st.booleans())
def test_any_other_bytes_are_refused(tmp_path_factory, other, with_magic):
    check_refused((_io.MAGIC if with_magic else b"") + other, tmp_path_factory)


@settings(max_examples=100)
@given(st.data())
def test_damage_under_a_right_checksum_is_no_crash(content, tmp_path_factory, data):
    """What a wicked writer could make: the head is right, the body is not."""
    raw = bytearray(zlib.decompress(content[HEAD.size :]))
    for _ in range(data.draw(st.integers(1, 3))):
        raw[data.draw(st.integers(0, len(raw) - 1))] = data.draw(st.integers(0, 255))
    body = zlib.compress(bytes(raw))
    checksum = hashlib.sha256(struct.pack("<IQ", 1, len(body)) + body).digest()
    path = tmp_path_factory.getbasetemp() / "wicked"
    path.write_bytes(HEAD.pack(_io.MAGIC, 1, len(body), checksum) + body)
    try:
        sl1max.load(path)
    except ModelFileError as error:
        assert str(path) in str(error)


def check_refused(damaged, tmp_path_factory):
    path = tmp_path_factory.getbasetemp() / "damaged"
    path.write_bytes(damaged)
    with pytest.raises(ModelFileError) as caught:
        sl1max.load(path)
    assert str(path) in str(caught.value)
    assert "\n" not in str(caught.value)


def test_what_the_errors_say(content, tmp_path):
    path = tmp_path / "model"
    damaged = bytearray(content)
    damaged[-1] ^= 1
    write_body(path, {}, version=3)
    newer = path.read_bytes()
    for bad, says in (
        (b"", "the file is empty"),
        (b"\x80\x04\x95 a pickle, say", "not a sl1max model"),
        (content[:20], "truncated"),
        (content[:-1], "truncated or damaged: it holds"),
        (bytes(damaged), "damaged: its checksum or length is wrong"),
        (content + b"more", "damaged"),
        (newer, "written by a newer sl1max: its format is 3, and this sl1max reads 1 to 2"),
    ):
        path.write_bytes(bad)
        with pytest.raises(ModelFileError, match=says):
            sl1max.load(path)


@pytest.mark.parametrize(
    ("table", "arrays"),
    [
        ([], b""),
        ([], b"left over"),
        ([["classes", "|O", 1]], b"12345678"),
        ([["classes", "<f8", 2]], b"12345678"),
        ([["classes", "|u1", -1]], b""),
        ([["classes", "|u1", 1]], b"1"),
    ],
)
def test_bodies_that_make_no_model(table, arrays, tmp_path):
    path = tmp_path / "model"
    for label_type in ("number", "odd"):
        write_body(path, {"arrays": table, "label_type": label_type, "n_features": 1, "values": {}}, arrays)
        with pytest.raises(ModelFileError, match="not a valid sl1max model"):
            sl1max.load(path)
    for text in ({}, [], {"arrays": table}):
        write_body(path, text, arrays)
        with pytest.raises(ModelFileError, match="not a valid sl1max model"):
            sl1max.load(path)


@pytest.mark.parametrize(
    ("name", "wrong"),
    [
        ("distribution", "normal"),
        ("label_mode", None),
        ("trained_on_indicator", 1),
        ("total_weight", "<f8"),
        ("objective", {}),
        ("dual_gap", "0"),
        ("n_iter", 0.5),
        ("converged", "yes"),
        ("beta", "0.5"),
        ("solver", []),
        ("tol", None),
        ("tol", 2**64),
    ],
)
def test_field_of_another_type_is_refused(content, tmp_path, name, wrong):
    body = zlib.decompress(content[HEAD.size :])
    (size,) = struct.unpack_from("<I", body)
    text = json.loads(body[4 : 4 + size])
    write_body(tmp_path / "model", text, body[4 + size :])
    sl1max.load(tmp_path / "model")
    text["values"][name] = wrong
    write_body(tmp_path / "model", text, body[4 + size :])
    with pytest.raises(ModelFileError, match=f"not a valid sl1max model .{name} is "):
        sl1max.load(tmp_path / "model")


@pytest.mark.parametrize("labels", [np.array([1, 2, 1]), np.array(["a", "b", "a"])])
def test_model_with_a_class_twice_is_refused(labels, tmp_path):
    X, y = make_data()
    model = sl1max.fit(X, y % 3)
    replace(model, classes=labels).save(tmp_path / "model")
    with pytest.raises(ModelFileError, match="a class is there twice"):
        sl1max.load(tmp_path / "model")


@pytest.mark.parametrize("wrong", [np.nan, np.inf])
def test_weight_that_is_not_finite_is_refused(tmp_path, wrong):
    X, y = make_data(3)
    model = sl1max.fit(X, y)
    model.weights.data[0] = wrong
    model.save(tmp_path / "model")
    with pytest.raises(ModelFileError, match="a weight or an intercept is not a number"):
        sl1max.load(tmp_path / "model")


# Memory


def write_large(path, n_bytes, declared=None):
    """A file of a few kilobytes that holds an array of so many zeros."""
    table = [["classes", "|u1", n_bytes if declared is None else declared]]
    write_body(path, {"arrays": table, "label_type": "number", "n_features": 1, "values": {}}, bytes(n_bytes))


def test_size_in_memory_is_limited(tmp_path):
    path = tmp_path / "model"
    write_large(path, 1 << 20)
    assert path.stat().st_size < 5000
    with pytest.raises(ModelFileError, match=r"a model of 1048576 bytes, more than max_bytes=1048575; a larger max_b"):
        sl1max.load(path, max_bytes=(1 << 20) - 1)
    with pytest.raises(ModelFileError, match="not a valid sl1max model"):  # for want of the other arrays
        sl1max.load(path, max_bytes=1 << 20)


def test_size_in_memory_is_limited_to_4_gib(tmp_path):
    path = tmp_path / "model"
    write_large(path, 1000, declared=(4 << 30) + 1)
    with pytest.raises(ModelFileError, match="a model of 4294967297 bytes, more than max_bytes=4294967296"):
        sl1max.load(path)


@pytest.mark.parametrize(("n_bytes", "declared"), [(10**7, 1000), (1000, 10**7), (1000, 999)])
def test_no_more_is_inflated_than_declared(tmp_path, n_bytes, declared):
    path = tmp_path / "model"
    write_large(path, n_bytes, declared)
    tracemalloc.start()
    with pytest.raises(ModelFileError, match=r"bytes too few|bytes after the last array"):
        sl1max.load(path)
    _, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert peak < 10**6


def test_text_of_a_model_is_limited(tmp_path):
    path = tmp_path / "model"
    write_body(path, " " * (1 << 21))
    with pytest.raises(ModelFileError, match="its text has 2097154 bytes"):
        sl1max.load(path)


def test_labels_that_numpy_would_pad_are_limited(model, tmp_path):
    """Every label of a numpy array of text has the room of the longest one."""
    path = tmp_path / "model"
    replace(model, classes=np.array(["a", "b", "c" * 10_000])).save(path)
    assert sl1max.load(path).classes[2] == "c" * 10_000
    with pytest.raises(ModelFileError, match="a model of 120000 bytes"):
        sl1max.load(path, max_bytes=100_000)


@pytest.mark.parametrize("device", ["/dev/full", "/dev/zero"])
def test_head_is_read_before_the_rest(device):
    if not os.path.exists(device):
        pytest.skip(f"needs {device}")
    with pytest.raises(ModelFileError, match="not a sl1max model"):
        sl1max.load(device)


@pytest.mark.skipif(not hasattr(os, "mkfifo"), reason="needs named pipes")
def test_model_from_a_pipe(model, content, tmp_path):
    path = tmp_path / "pipe"
    os.mkfifo(path)
    writer = threading.Thread(target=path.write_bytes, args=(content,))
    writer.start()
    assert_equal_models(sl1max.load(path), model)
    writer.join()


# Files of earlier versions


def test_model_of_0_1_0_is_read():
    model = sl1max.load(DATA / "model-0.1.0-exclusive.sl1max")
    assert model.classes.tolist() == ["ham", "spam", "été"] and model._parts is None
    assert (model.distribution, model.label_mode, model.trained_on_indicator) == ("conditional", "exclusive", False)
    assert model.fit_intercept and not model.sparse_output and model.feature_names is None
    assert (model.beta, model.beta_rule, model.solver, model.tol) == (0.5, "deviation", "newton", 1e-4)
    assert model.weights.shape == (3, 8)
    np.testing.assert_allclose(model.weights[[2]].toarray()[0, [2, 6, 7]], [3.28249854, -1.69490982, -0.7324222])
    np.testing.assert_allclose(model.intercept, [0.32830929, 0.10257221, -0.4308815], rtol=1e-6)
    assert model.converged and model.objective == pytest.approx(0.6265001457534631)
    assert model.predict(np.eye(8)[:3]).tolist() == ["ham", "spam", "été"]


def test_model_with_two_parts_of_0_1_0_is_read():
    model = sl1max.load(DATA / "model-0.1.0-independent.sl1max")
    assert model.classes.tolist() == [0, 1, 2] and model.beta is None
    assert (model.distribution, model.label_mode, model.trained_on_indicator) == ("joint", "independent", True)
    assert model.sparse_output and model.total_weight == 40
    np.testing.assert_array_equal((model._parts[0] - model._parts[1]).toarray(), model.weights.toarray())
    np.testing.assert_allclose(model.weights.toarray()[:, 2], [-2.23223379, -2.01380518, 5.15415655])
    np.testing.assert_allclose(model.objective, [3.95675503, 4.05264799, 4.02101834])
    assert model.converged.all()
