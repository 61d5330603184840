"""svmlight files: what is read, what is written, and what is said of a bad line."""

import bz2
import errno
import gzip
import io
import lzma
import os

import numpy as np
import pytest
import scipy.sparse as sp
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp

from sl1max.svmlight import read_svmlight, read_svmlight_pieces, write_svmlight

FINITE = st.floats(allow_nan=False, allow_infinity=False)
# scikit-learn writes 16 digits, which takes the largest numbers over the edge.
MODERATE = st.floats(-1e300, 1e300)
DECIMAL = r"[+-]?[0-9]{1,22}(\.[0-9]{0,22})?([eE][+-]?[0-9]{1,3})?"


def read(text, **options):
    return read_svmlight(io.BytesIO(text), **options)


@pytest.fixture(scope="module")
def datasets():
    return pytest.importorskip("sklearn.datasets")


@st.composite
def matrices(draw, values=FINITE):
    shape = (draw(st.integers(1, 6)), draw(st.integers(1, 8)))
    elements = st.one_of(st.just(0.0), st.just(1.0), values)
    return draw(hnp.arrays(np.float64, shape, elements=elements))


def point_outside(X):
    X = sp.csr_array(X)
    X.indices[0] = 1000
    return X


class TestReading:
    def test_single_label(self):
        X, y, classes = read(b"1 1:0.5 3:-2\n-1 2:1e-3\n")
        np.testing.assert_array_equal(X.toarray(), [[0.5, 0, -2], [0, 1e-3, 0]])
        np.testing.assert_array_equal(y, [1, -1])
        assert classes is None

    def test_multi_label(self):
        X, y, classes = read(b"7,2 1:1\n 2:1\n2 1:1 2:1\n2,2\n")
        np.testing.assert_array_equal(X.toarray(), [[1, 0], [0, 1], [1, 1], [0, 0]])
        np.testing.assert_array_equal(y.toarray(), [[1, 1], [0, 0], [1, 0], [1, 0]])
        np.testing.assert_array_equal(classes, [2, 7])

    def test_labels_that_are_words(self):
        text = b"spam 1:1 # a comment\n\n# 2:1\nham,eggs\t2:0.5\n3:1\n# end\neggs qid:4 1:2"
        X, y, classes = read(text, labels="auto")
        np.testing.assert_array_equal(X.toarray(), [[1, 0, 0], [0, 0.5, 0], [0, 0, 1], [2, 0, 0]])
        np.testing.assert_array_equal(y.toarray(), [[0, 0, 1], [1, 1, 0], [0, 0, 0], [1, 0, 0]])
        assert classes.tolist() == ["eggs", "ham", "spam"]
        assert read(b"spam 1:1\n7 2:1\n", labels="text").y.tolist() == ["spam", "7"]
        assert read(b"1 1:1\n2 2:1\n", labels="auto").y.tolist() == [1, 2]
        assert read(b"2:1\nspam 1:1\n", labels="auto").classes.tolist() == ["spam"]
        assert read(b"1:1\n", labels="auto").classes.tolist() == []

    def test_pieces_with_labels_that_are_words(self):
        lines = [b"spam 1:1\n", b"ham 2:1\n", b"eggs 3:1\n"]
        pieces = list(read_svmlight_pieces(io.BytesIO(b"".join(lines)), n_features=3, labels="text", n_bytes=10))
        assert [label for piece in pieces for label in piece.y.tolist()] == ["spam", "ham", "eggs"]
        with pytest.raises(ValueError, match="labels='auto' is for whole files"):
            next(read_svmlight_pieces(io.BytesIO(b""), labels="auto"))

    @pytest.mark.parametrize(
        ("text", "says"),
        [
            (b"spam 1:1\na,,b 1:1\n", "<stream>:2: an empty label in 'a,,b'"),
            (b"spam 1:1\n\xff 1:1\n", "<stream>:2: the label is not UTF-8"),
            (b"spam 1:1\nham 1:x\n", "<stream>:2: "),
        ],
    )
    def test_bad_words_as_labels(self, text, says):
        with pytest.raises(ValueError) as caught:
            read(text, labels="auto")
        assert says in str(caught.value)
        with pytest.raises(ValueError, match="labels must be one of 'number', 'text', 'auto', got 'word'"):
            read(text, labels="word")

    def test_multi_label_on_request(self):
        _, y, classes = read(b"3 1:1\n5 1:1\n", multilabel=True)
        np.testing.assert_array_equal(y.toarray(), [[1, 0], [0, 1]])
        np.testing.assert_array_equal(classes, [3, 5])

    @pytest.mark.parametrize(
        "text",
        [
            b"1 1:2 3:4\n2 2:5\n",
            b"1 1:2 3:4\n2 2:5",
            b"1 1:2 3:4\r\n2 2:5\r\n",
            b"# head\n\n1\t1:2   3:4 \n  \n2 2:5#tail\n\n",
            b"  +1.0 1:2. 3:+4e0 # 9:9\n2 2:.5E1\n#",
            b"1 qid:7 1:2 3:4\n2 qid:-8 2:5\n",
            b"1 01:2 3:00004.0000000000000000000000\n2 2:5000000000000000000000e-21\n",
        ],
    )
    def test_forms_of_the_same_data(self, text):
        X, y, _ = read(text)
        np.testing.assert_array_equal(X.toarray(), [[2, 0, 4], [0, 5, 0]])
        np.testing.assert_array_equal(y, [1, 2])

    def test_query_id_without_label(self):
        X, y, _ = read(b"qid:3 1:1\n1 1:2\n")
        assert X.nnz == 2
        np.testing.assert_array_equal(y.toarray(), [[0], [1]])

    def test_no_features_at_all(self):
        X, y, _ = read(b"1\n2\n")
        assert X.shape == (2, 0)
        assert read(b"1\n2\n", n_features=4).X.shape == (2, 4)
        np.testing.assert_array_equal(y, [1, 2])

    def test_zero_based(self):
        assert read(b"1 0:1 2:1\n").X.shape == (1, 3)
        assert read(b"1 1:1 2:1\n").X.shape == (1, 2)
        assert read(b"1 1:1 2:1\n", zero_based=True).X.shape == (1, 3)
        assert read(b"1 1:1 2:1\n", zero_based=False).X.shape == (1, 2)

    def test_n_features(self):
        assert read(b"1 1:1 2:1\n", n_features=5).X.shape == (1, 5)

    @pytest.mark.parametrize("compress", [gzip.compress, lzma.compress, bz2.compress])
    def test_compression_is_told_by_content(self, compress, tmp_path):
        path = tmp_path / "data.svm"
        path.write_bytes(compress(b"1 1:2\n"))
        assert read_svmlight(path).X[0, 0] == 2
        assert read_svmlight(str(path)).X[0, 0] == 2

    @given(st.one_of(FINITE.map(repr), st.from_regex(DECIMAL, fullmatch=True)))
    def test_numbers_are_those_of_python(self, text):
        if np.isfinite(float(text)):
            X, y, _ = read(f"{text} 1:{text}\n".encode())
            assert y[0] == float(text)
            assert X[0, 0] == float(text)

    def test_index_type(self):
        X = read(b"1 1:2\n").X
        assert X.indices.dtype == X.indptr.dtype == np.int32
        assert X.has_canonical_format


class TestAgainstScikitLearn:
    @given(matrices(MODERATE), st.booleans(), st.data())
    def test_single_label(self, datasets, X, zero_based, data):
        y = data.draw(hnp.arrays(np.float64, len(X), elements=MODERATE))
        stream = io.BytesIO()
        datasets.dump_svmlight_file(X, y, stream, zero_based=zero_based)
        theirs = datasets.load_svmlight_file(io.BytesIO(stream.getvalue()))
        ours = read(stream.getvalue(), multilabel=False)
        np.testing.assert_array_equal(ours.y, theirs[1])
        # A file without features has a column with scikit-learn, and none here.
        n_features = theirs[0].shape[1] if theirs[0].nnz else 0
        assert ours.X.shape == (len(X), n_features)
        np.testing.assert_array_equal(ours.X.toarray(), theirs[0].toarray()[:, :n_features])

    @given(matrices(MODERATE), st.data())
    def test_multi_label(self, datasets, X, data):
        X[:, 0] = 1.0
        Y = data.draw(hnp.arrays(np.int8, (len(X), 3), elements=st.integers(0, 1)))
        stream = io.BytesIO()
        datasets.dump_svmlight_file(X, Y, stream, multilabel=True)
        theirs = datasets.load_svmlight_file(io.BytesIO(stream.getvalue()), multilabel=True)
        ours = read(stream.getvalue(), multilabel=True)
        assert [tuple(ours.classes[row == 1]) for row in ours.y.toarray()] == theirs[1]
        np.testing.assert_array_equal(ours.X.toarray(), theirs[0].toarray())


class TestRoundTrip:
    @given(matrices(), st.booleans(), st.data())
    def test_single_label(self, tmp_path_factory, X, zero_based, data):
        path = tmp_path_factory.mktemp("svmlight") / "data.svm"
        y = data.draw(hnp.arrays(np.float64, len(X), elements=FINITE))
        write_svmlight(sp.csr_array(X), y, path, zero_based=zero_based)
        again = read_svmlight(path, zero_based=zero_based, n_features=X.shape[1], multilabel=False)
        np.testing.assert_array_equal(again.X.toarray(), X)
        np.testing.assert_array_equal(again.y, y)

    @given(matrices(), st.data())
    def test_multi_label(self, tmp_path_factory, X, data):
        path = tmp_path_factory.mktemp("svmlight") / "data.svm"
        Y = data.draw(hnp.arrays(np.int8, (len(X), 3), elements=st.integers(0, 1)))
        Y[0] = 1
        write_svmlight(X, sp.csr_array(Y), path, classes=[1, 5, 9])
        again = read_svmlight(path, n_features=X.shape[1], multilabel=True)
        np.testing.assert_array_equal(again.X.toarray(), X)
        np.testing.assert_array_equal(again.y.toarray(), Y)
        np.testing.assert_array_equal(again.classes, [1, 5, 9])

    @pytest.mark.parametrize(("ending", "magic"), [(".gz", b"\x1f\x8b"), (".xz", b"\xfd7zXZ"), (".bz2", b"BZh")])
    def test_compressed(self, ending, magic, tmp_path):
        path = tmp_path / f"data.svm{ending}"
        write_svmlight([[1.5, 0]], [3], path)
        assert path.read_bytes().startswith(magic)
        assert read_svmlight(path).X[0, 0] == 1.5

    def test_blocks(self, tmp_path, monkeypatch):
        monkeypatch.setattr("sl1max.svmlight._BLOCK_ENTRIES", 7)
        X = sp.random_array((40, 30), density=0.2, format="csr", rng=np.random.default_rng(0))
        write_svmlight(X, np.arange(40), tmp_path / "data.svm")
        again = read_svmlight(tmp_path / "data.svm", n_features=30)
        np.testing.assert_array_equal(again.X.toarray(), X.toarray())
        np.testing.assert_array_equal(again.y, np.arange(40))

    def test_input_is_left_alone(self, tmp_path):
        X = sp.csr_array((np.ones(3), np.array([2, 0, 0]), np.array([0, 3])), shape=(1, 3))
        write_svmlight(X, [1], tmp_path / "data.svm")
        assert (tmp_path / "data.svm").read_text() == "1 1:2 3:1\n"
        np.testing.assert_array_equal(X.indices, [2, 0, 0])

    def test_read_only_input(self, tmp_path):
        X = sp.csr_array(np.eye(3))
        for array in (X.data, X.indices, X.indptr):
            array.flags.writeable = False
        write_svmlight(X, [1, 2, 3], tmp_path / "data.svm")
        np.testing.assert_array_equal(read_svmlight(tmp_path / "data.svm").X.toarray(), np.eye(3))


class TestBadFiles:
    @pytest.mark.parametrize(
        ("line", "message"),
        [
            ("earn 1:1", "label 'earn' is not a number"),
            ("1x 1:1", "label '1x' is not a number"),
            ("1,,2 1:1", "label '1,,2' is not a number"),
            ("1, 1:1", "label '1,' is not a number"),
            ("1,2:3", "label '1,2:3' is not a number"),
            ("1e 1:1", "label '1e' is not a number"),
            ("1_0 1:1", "label '1_0' is not a number"),
            ("nan 1:1", "label 'nan' is not finite"),
            ("1 1:1 2", "expected index:value, found '2'"),
            ("1 a:1", "expected index:value, found 'a:1'"),
            ("1 -1:1", "expected index:value, found '-1:1'"),
            ("1 1.5:1", "expected index:value, found '1.5:1'"),
            ("1 :1", "expected index:value, found ':1'"),
            ("1 1:1 qid:3", "expected index:value, found 'qid:3'"),
            ("1 qid:3 qid:4", "expected index:value, found 'qid:4'"),
            ("1 qid:31:1 2:1", "the query number of 'qid:31:1' is not an integer"),
            ("qid:31:1 2:1", "the query number of 'qid:31:1' is not an integer"),
            ("1 qid: 2:1", "the query number of 'qid:' is not an integer"),
            ("1 qid:-", "the query number of 'qid:-' is not an integer"),
            ("1 qid:x 2:1", "the query number of 'qid:x' is not an integer"),
            ("1 1:1\x002:1", r"expected index:value, found '\x002:1'"),
            ("1 1:", "the value of '1:' is not a number"),
            ("1 1: 2", "the value of '1:' is not a number"),
            ("1 1:x", "the value of '1:x' is not a number"),
            ("1 1:2:3", "the value of '1:2:3' is not a number"),
            ("1 1:0x10", "the value of '1:0x10' is not a number"),
            ("1 1:1.2.3", "the value of '1:1.2.3' is not a number"),
            ("1 1:nan", "the value of '1:nan' is not finite"),
            ("1 1:-inf", "the value of '1:-inf' is not finite"),
            ("1 1:1e999", "the value of '1:1e999' is not finite"),
            ("1 2:1 1:1", "the feature index of '1:1' is not above the one before it"),
            ("1 2:1 2:1", "the feature index of '2:1' is not above the one before it"),
            ("1 2147483647:1", "the feature index of '2147483647:1' is above 2147483646"),
            ("1 99999999999999999999999:1", "is above 2147483646"),
        ],
    )
    def test_malformed_line(self, line, message, tmp_path):
        path = tmp_path / "bad.svm"
        path.write_bytes(f"1 1:1\n# comment\n\n{line}\n1 1:1\n".encode())
        with pytest.raises(ValueError) as caught:
            read_svmlight(path)
        assert str(caught.value).startswith(f"{path}:4: ")
        assert message in str(caught.value)
        path.write_bytes(line.encode())
        with pytest.raises(ValueError, match=r"bad.svm:1: "):
            read_svmlight(path)

    def test_no_or_several_labels_in_a_single_label_file(self):
        with pytest.raises(ValueError, match="<stream>:3: no label in a single-label file"):
            read(b"1 1:1\n\n 1:1\n", multilabel=False)
        with pytest.raises(ValueError, match="<stream>:2: 3 labels in a single-label file"):
            read(b"1 1:1\n1,2,3 1:1\n", multilabel=False)

    def test_more_features_than_said(self):
        with pytest.raises(ValueError, match="<stream>:2: feature index 4, but n_features is 3"):
            read(b"1 1:1\n1 2:1 4:1\n1 1:1\n", n_features=3)

    def test_index_zero_in_a_one_based_file(self):
        with pytest.raises(ValueError, match="<stream>:3: feature index 0 in a one-based file"):
            read(b"1 1:1\n1\n1 0:1 4:1\n1 0:1\n", zero_based=False)

    def test_empty(self, tmp_path):
        path = tmp_path / "empty.svm"
        path.write_bytes(b"")
        with pytest.raises(ValueError, match=r"empty.svm: the file is empty \(0 bytes\)"):
            read_svmlight(path)
        path.write_bytes(gzip.compress(b""))
        with pytest.raises(ValueError, match=r"empty.svm: the file is empty \(0 bytes when decompressed\)"):
            read_svmlight(path)
        path.write_bytes(b"\n# nothing\n")
        with pytest.raises(ValueError, match=r"empty.svm: no examples, only blank lines and comments"):
            read_svmlight(path)

    @pytest.mark.parametrize("compress", [gzip.compress, lzma.compress, bz2.compress])
    def test_truncated_archive(self, compress, tmp_path):
        path = tmp_path / "cut.svm"
        path.write_bytes(compress(b"1 1:2\n" * 1000)[:-10])
        with pytest.raises(ValueError, match=r"cut.svm: damaged (gzip|lzma|bz2) file"):
            read_svmlight(path)

    def test_missing(self, tmp_path):
        with pytest.raises(FileNotFoundError, match=r"nowhere.svm"):
            read_svmlight(tmp_path / "nowhere.svm")

    def test_text_stream(self):
        with pytest.raises(TypeError, match="binary mode"):
            read_svmlight(io.StringIO("1 1:1\n"))

    @pytest.mark.parametrize("option", ["multilabel", "zero_based"])
    def test_options(self, option):
        with pytest.raises(ValueError, match=f"{option} must be True, False or 'auto'"):
            read(b"1 1:1\n", **{option: "yes"})

    @given(st.binary(max_size=60))
    def test_garbage_is_read_or_refused(self, text):
        try:
            X, _, _ = read(text)
        except ValueError as error:
            assert str(error).startswith("<stream>:")
        else:
            assert X.shape[0] >= 1


class TestBadData:
    @pytest.mark.parametrize(
        ("X", "y", "options", "message"),
        [
            ([[np.nan]], [1], {}, "X holds NaN or an infinity"),
            (point_outside([[1.0]]), [1], {}, "indices must be < 1"),
            ([[1.0]], [np.inf], {}, "y holds NaN or an infinity"),
            ([[1.0]], [1, 2], {}, "X has 1 examples but y has 2"),
            ([[1.0]], ["earn"], {}, "svmlight labels are numbers"),
            ([[1.0]], [[2]], {}, "0 and 1 only"),
            ([[1.0]], [[1]], {"classes": [1, 2]}, "classes must be 1 numbers"),
            ([[1.0]], [[1]], {"classes": ["a"]}, "classes must be 1 numbers"),
            ([[1.0]], [[[1]]], {}, "got 3 dimensions"),
        ],
    )
    def test_messages(self, X, y, options, message, tmp_path):
        with pytest.raises(ValueError, match=message):
            write_svmlight(X, y, tmp_path / "data.svm", **options)
        assert not (tmp_path / "data.svm").exists()

    def test_unwritable(self, tmp_path):
        with pytest.raises(OSError, match="nowhere"):
            write_svmlight([[1.0]], [1], tmp_path / "nowhere" / "data.svm")


class TestPieces:
    TEXT = b"# a comment\n1 1:1 3:0.5\n\n2 2:1\n1 1:1 4:2\n3 3:1"

    @pytest.mark.parametrize("ending", ["", ".gz", ".xz", ".bz2"])
    @pytest.mark.parametrize("n_bytes", [1, 5, 14, 30, 1000])
    def test_the_same_as_the_whole(self, tmp_path, ending, n_bytes):
        compress = {"": bytes, ".gz": gzip.compress, ".xz": lzma.compress, ".bz2": bz2.compress}[ending]
        path = tmp_path / "data.svm"
        path.write_bytes(compress(self.TEXT))
        pieces = list(read_svmlight_pieces(path, n_features=4, n_bytes=n_bytes))
        whole = read(self.TEXT, zero_based=False)
        assert len(pieces) > 1  # the last line has no end of line
        np.testing.assert_array_equal(sp.vstack([piece.X for piece in pieces]).toarray(), whole.X.toarray())
        np.testing.assert_array_equal(np.concatenate([piece.y for piece in pieces]), whole.y)

    def test_several_labels(self, tmp_path):
        path = tmp_path / "data.svm"
        path.write_bytes(b"1,3 1:1\n 2:1\n2 1:1\n")
        first, second, third = read_svmlight_pieces(path, multilabel=True, n_bytes=1)
        assert first.classes.tolist() == [1, 3] and third.classes.tolist() == [2]
        assert second.y.shape == (1, 0) and second.X.shape == (1, 2)

    @pytest.mark.parametrize(
        ("line", "message"),
        [
            (b"1 x:1", "expected index:value"),
            (b"1 0:1", "feature index 0 in a one-based file"),
            (b"1 9:1", "feature index 9, but n_features is 4"),
            (b"1,2 1:1", "2 labels in a single-label file"),
        ],
    )
    def test_lines_are_counted_through(self, tmp_path, line, message):
        path = tmp_path / "data.svm"
        path.write_bytes(self.TEXT + b"\n" + line)
        with pytest.raises(ValueError, match=rf"data\.svm:7: {message}"):
            list(read_svmlight_pieces(path, n_features=4, n_bytes=8))

    def test_bad_files(self, tmp_path):
        path = tmp_path / "data.svm"
        path.write_bytes(b"")
        with pytest.raises(ValueError, match="the file is empty"):
            list(read_svmlight_pieces(path))
        path.write_bytes(gzip.compress(self.TEXT)[:-12])
        with pytest.raises(ValueError, match="damaged gzip file"):
            list(read_svmlight_pieces(path))
        path.write_bytes(b"# nothing\n")
        assert list(read_svmlight_pieces(path)) == []


# Limits


@pytest.mark.parametrize(("zero_based", "last"), [(False, 1 << 24), (True, (1 << 24) - 1)])
def test_features_beyond_the_limit_are_refused(tmp_path, zero_based, last):
    path = tmp_path / "data.svm"
    path.write_text(f"1 1:1\n0 {last}:1\n")
    assert read_svmlight(path, zero_based=zero_based).X.shape == (2, 1 << 24)
    path.write_text(f"1 1:1\n0 {last + 1}:1\n")
    message = rf"data.svm:2: feature index {last + 1} makes 16777217 features, more than 16777216: .*n_features"
    with pytest.raises(ValueError, match=message):
        read_svmlight(path, zero_based=zero_based)
    with pytest.raises(ValueError, match=message):
        list(read_svmlight_pieces(path, zero_based=zero_based))
    assert read_svmlight(path, zero_based=zero_based, n_features=2147483646).X.shape == (2, 2147483646)


@pytest.mark.parametrize("device", ["/dev/full", "/dev/zero"])
def test_devices_without_end_are_refused(device):
    if not os.path.exists(device):
        pytest.skip(f"needs {device}")
    with pytest.raises(OSError, match="this is a device"):
        read_svmlight(device)
    with pytest.raises(OSError, match="this is a device"):
        next(read_svmlight_pieces(device))


@pytest.mark.parametrize("ending", ["", ".gz", ".xz", ".bz2"])
def test_failed_write_leaves_the_old_file(tmp_path, monkeypatch, ending):
    path = tmp_path / f"data.svm{ending}"
    write_svmlight([[1.0, 0.0]], [1], path)
    old = path.read_bytes()

    def fail(*_):
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    monkeypatch.setattr(os, "fsync", fail)
    with pytest.raises(OSError, match="No space left on device") as caught:
        write_svmlight([[0.0, 1.0]], [0], path)
    assert caught.value.filename == str(path)
    assert path.read_bytes() == old and os.listdir(tmp_path) == [path.name]
