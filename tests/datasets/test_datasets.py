"""Data sets: what comes with the package, how the others are found, fetched and made."""

import dataclasses
import functools
import hashlib
import http.server
import io
import lzma
import os
import tarfile
import threading
from importlib import resources
from pathlib import Path

import numpy as np
import pytest
import scipy.sparse as sp

from sl1max import datasets, svmlight
from sl1max.datasets import _reuters, _store, _supertags, _webkb
from sl1max.datasets._porter import stem

SHARED = Path(__file__).resolve().parents[3] / "shared" / "data"
needs_shared = [
    pytest.mark.shared,
    pytest.mark.skipif(not SHARED.is_dir(), reason="the data sets are not beside the checkout"),
]

STORY = """<REUTERS TOPICS="{attribute}" LEWISSPLIT="{split}" CGISPLIT="X" OLDID="1" NEWID="{id}">
<DATE>26-FEB-1987</DATE><TOPICS>{topics}</TOPICS><PLACES><D>usa</D></PLACES>
<TEXT{type}>&#2;
{text}&#3;</TEXT>
</REUTERS>
"""
BODY = "<TITLE>{title}</TITLE>\n<DATELINE>    OSLO, Feb 26 - </DATELINE><BODY>{body}\n</BODY>"


def story(number, split, topics, title="", body="", attribute="YES"):
    marked = "".join(f"<D>{topic}</D>" for topic in topics)
    text = BODY.format(title=title, body=body)
    return STORY.format(attribute=attribute, split=split, id=number, topics=marked, type="", text=text)


SGML = "".join(
    [
        "<!DOCTYPE lewis SYSTEM 'lewis.dtd'>\n",
        story(1, "TRAIN", ["earn", "acq"], "Profits rising", "A&lt;B> rose 5 pct"),
        story(2, "TRAIN", ["rye"], "Rye profits", "rose"),
        story(3, "TRAIN", [], "Nothing"),
        story(4, "TEST", ["earn", "oats"], "Profit fell", "unseen"),
        story(5, "TEST", ["acq"], "Rose"),
        story(6, "TRAIN", ["earn"], "left out", attribute="NO"),
        story(7, "NOT-USED", ["earn"], "left out"),
    ]
)
SMALL_SIZES = dict(X_train=3, Y_train=3, ids_train=3, X_test=2, Y_test=2, ids_test=2, labels=2, features=None)


def archive_of(files):
    stream = io.BytesIO()
    with tarfile.open(fileobj=stream, mode="w:gz") as archive:
        for name, content in files.items():
            member = tarfile.TarInfo(name)
            member.size = len(content)
            archive.addfile(member, io.BytesIO(content))
    return stream.getvalue()


ARCHIVE = archive_of({"README.txt": b"read me", "sgml/reut2-000.sgm": SGML.encode("latin-1")})


@pytest.fixture
def folders(tmp_path, monkeypatch):
    """An empty data folder and an empty cache folder."""
    monkeypatch.setenv("SL1MAX_DATA", str(tmp_path / "data"))
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    return tmp_path / "data" / "reuters21578", tmp_path / "cache" / "sl1max" / "reuters21578"


@pytest.fixture
def server(tmp_path):
    """A web server on this machine that has the small Reuters archive. Yields its address."""
    root = tmp_path / "www"
    root.mkdir()
    (root / "small.tar.gz").write_bytes(ARCHIVE)
    (root / "other.tar.gz").write_bytes(ARCHIVE + b"!")

    class Handler(http.server.SimpleHTTPRequestHandler):
        def do_GET(self):
            if self.path == "/garbage.tar.gz":
                self.wfile.write(b"what is this\r\n\r\n")
            else:
                super().do_GET()

        def log_message(self, *args):
            pass

    handler = functools.partial(Handler, directory=str(root))
    with http.server.ThreadingHTTPServer(("127.0.0.1", 0), handler) as running:
        threading.Thread(target=running.serve_forever, args=(0.01,), daemon=True).start()
        yield f"http://127.0.0.1:{running.server_port}"
        running.shutdown()


@pytest.fixture
def small_reuters(monkeypatch, folders):
    """Reuters with one small file; a function that sets the addresses it is downloaded from."""

    def from_urls(*urls):
        remote = _store.Remote("reuters21578.tar.gz", hashlib.sha256(ARCHIVE).hexdigest(), urls)
        source = dataclasses.replace(_reuters.SOURCE, texts=("reut2-000.sgm",), remotes=(remote,))
        monkeypatch.setattr(_reuters, "SOURCE", source)

    monkeypatch.setattr(_reuters, "SIZES", SMALL_SIZES)
    from_urls("http://127.0.0.1:9/nobody-listens")
    return from_urls


def assert_same(one, two):
    for name in ("X_train", "y_train", "X_test", "y_test"):
        ours, theirs = getattr(one, name), getattr(two, name)
        assert ours.shape == theirs.shape
        assert not (ours != theirs).sum()
    assert list(one.feature_names) == list(two.feature_names)
    assert list(one.class_names) == list(two.class_names)
    for name, values in one.extras.items():
        np.testing.assert_array_equal(values, two.extras[name])


class TestWebKB:
    @pytest.fixture(scope="class")
    @classmethod
    def webkb(cls):
        return datasets.fetch_webkb()

    def test_sizes(self, webkb):
        assert webkb.X_train.shape == (4199, 23744)
        assert webkb.X_train.nnz == 540354
        assert set(webkb.X_train.data) == {1.0}
        assert webkb.X_train.has_canonical_format
        np.testing.assert_array_equal(np.bincount(webkb.y_train), [930, 1124, 504, 1641])
        assert list(webkb.class_names) == ["course", "faculty", "project", "student"]
        assert len(set(webkb.feature_names)) == 23744
        assert len(webkb.extras["university"]) == 4199
        assert repr(webkb) == "<Dataset WebKB: 4199 examples, 23744 features, 4 classes>"
        assert webkb == webkb and webkb != dataclasses.replace(webkb) and hash(webkb)

    def test_content(self, webkb):
        digest = hashlib.sha256()
        X = webkb.X_train
        for values in (X.indptr, X.indices, webkb.y_train, webkb.folds):
            digest.update(np.ascontiguousarray(values, dtype="<i4").tobytes())
        digest.update("\n".join(webkb.feature_names).encode())
        assert digest.hexdigest() == "607d3832f8a93c67a2c38ac20577afca7df6d5406a4a84e4788b0bfc4daae7b1"

    def test_file_is_small(self):
        path = resources.files("sl1max.datasets").joinpath("data", "webkb.npz")
        assert len(path.read_bytes()) < 1_000_000

    def test_folds(self, webkb):
        counts = np.array([np.bincount(webkb.y_train[webkb.folds == k]) for k in range(4)])
        assert (np.ptp(counts, axis=0) <= 1).all()
        splits = list(webkb.splits())
        assert [X_test.shape[0] for _, _, X_test, _ in splits] == [1050, 1050, 1050, 1049]
        for k, (X_train, y_train, X_test, y_test) in enumerate(splits):
            assert X_train.shape[0] == len(y_train) == 4199 - len(y_test)
            np.testing.assert_array_equal(y_test, webkb.y_train[webkb.folds == k])
            assert X_test.nnz + X_train.nnz == webkb.X_train.nnz

    def test_making(self):
        page = "MIME: 1\r\n\r\n<!-- no --><h1 class=no>Caf&eacute; CS415</h1> cs501 {}".format
        names = ["course/cornell/a", "course/misc/b", "faculty/texas/c", "student/misc/d"]
        pages = [(name, page(word).encode("latin-1")) for name, word in zip(names, "xyxz", strict=True)]
        made = _webkb.make_dataset(pages)
        assert list(made.feature_names) == ["caf", "cs###", "x"]
        np.testing.assert_array_equal(made.X_train.toarray(), [[1, 1, 1], [1, 1, 0], [1, 1, 1], [1, 1, 0]])
        np.testing.assert_array_equal(made.y_train, [0, 0, 1, 3])
        again = _webkb.unpack(_webkb.pack(made))
        np.testing.assert_array_equal(again.X_train.toarray(), made.X_train.toarray())
        np.testing.assert_array_equal(again.folds, made.folds)
        assert list(again.feature_names) == list(made.feature_names)
        assert list(again.extras["university"]) == ["cornell", "misc", "texas", "misc"]

    @pytest.mark.parametrize("density", [0.0, 0.3, 1.0])
    def test_packing(self, density, webkb):
        X = sp.random_array((700, 5), density=density, format="csr", rng=np.random.default_rng(0))
        X.data[:] = 1.0
        small = dataclasses.replace(webkb, X_train=X, feature_names=_store.words("abcde"))
        np.testing.assert_array_equal(_webkb.unpack(_webkb.pack(small)).X_train.toarray(), X.toarray())


class TestPorter:
    @pytest.mark.parametrize(
        "pairs",
        [
            "caresses:caress ponies:poni ties:tie caress:caress cats:cat skies:sky flies:fli",
            "feed:feed agreed:agre plastered:plaster bled:bled motoring:motor sing:sing died:die denied:deni",
            "conflated:conflat troubled:troubl sized:size hopping:hop tanned:tan falling:fall hissing:hiss",
            "fizzed:fizz failing:fail filing:file happy:happi sky:sky enjoy:enjoy by:by say:say cry:cri",
            "relational:relat conditional:condit rational:ration valenci:valenc digitizer:digit",
            "conformabli:conform radicalli:radic differentli:differ vileli:vile analogousli:analog",
            "vietnamization:vietnam operator:oper feudalism:feudal hopefulness:hope sensitiviti:sensit",
            "sensibiliti:sensibl geologi:geolog triplicate:triplic formative:form electrical:electr",
            "goodness:good revival:reviv allowance:allow adjustable:adjust replacement:replac",
            "adoption:adopt union:union homologous:homolog bowdlerize:bowdler probate:probat rate:rate",
            "cease:ceas controll:control roll:roll news:news proceed:proceed 1987:1987 a:a owed:owe",
        ],
    )
    def test_words(self, pairs):
        for pair in pairs.split():
            word, expected = pair.split(":")
            assert stem(word) == expected, word


class TestReuters:
    def test_stories(self):
        stories = list(_reuters.read_stories(SGML))
        assert [s.id for s in stories] == [1, 2, 3, 4, 5, 7]
        assert stories[0].topics == {"earn", "acq"}
        assert stories[0].text.split() == "profits rising oslo, feb 26 - a<b> rose 5 pct".split()

    def test_first_paragraph(self):
        (only,) = _reuters.read_stories(story(1, "TRAIN", [], body="One\ntwo.\n    Three.\n  Four"))
        assert only.first_paragraph == "one\ntwo."
        indented = _reuters.Story(1, "TRAIN", frozenset(), "", "", "\n    one\n    two")
        assert indented.first_paragraph.strip() == "one"

    def test_zones(self, small_reuters, folders):
        given, _ = folders
        given.mkdir(parents=True)
        (given / "reut2-000.sgm").write_text(SGML)
        data = datasets.fetch_reuters21578()
        assert list(data.feature_names) == "26 feb lead:rose oslo profit rose title:profit".split()
        assert "at least 2 training stories" in data.description
        data = datasets.fetch_reuters21578(min_stories=1)
        assert {"lead:5", "title:rye", "title:noth"} < set(data.feature_names)
        assert "at least 1 training stories" in data.description

    def test_unprocessed_text_is_taken_whole(self):
        text = "******<A>SO &amp; On\n"
        unprocessed = dict(attribute="YES", split="TRAIN", id=9, topics="", type=' TYPE="UNPROC"', text=text)
        (only,) = _reuters.read_stories(STORY.format(**unprocessed))
        assert only.text.split() == ["******", "so", "&", "on"]

    def test_unigram(self, small_reuters, folders):
        given, _ = folders
        given.mkdir(parents=True)
        (given / "any-name.tar.gz").write_bytes(ARCHIVE)
        data = datasets.fetch_reuters21578("unigram")
        assert list(data.class_names) == ["acq", "earn"]
        assert list(data.feature_names) == "26 5 a b feb noth oslo pct profit rise rose rye".split()
        np.testing.assert_array_equal(data.y_train.toarray(), [[1, 1], [0, 0], [0, 0]])
        np.testing.assert_array_equal(data.y_test.toarray(), [[0, 1], [1, 0]])
        test_words = [set(data.feature_names[row.astype(bool)]) for row in data.X_test.toarray()]
        assert test_words == [{"profit", "oslo", "feb", "26"}, {"rose", "oslo", "feb", "26"}]
        np.testing.assert_array_equal(data.extras["ids_train"], [1, 2, 3])
        np.testing.assert_array_equal(data.extras["ids_test"], [4, 5])
        assert "Porter" in data.description
        assert repr(data) == "<Dataset Reuters-21578: 3 + 2 test examples, 12 features, 2 classes>"
        ((X_train, _, X_test, _),) = data.splits()
        assert X_train is data.X_train and X_test is data.X_test

    def test_pairs(self, small_reuters, folders):
        given, _ = folders
        given.mkdir(parents=True)
        (given / "reut2-000.sgm").write_text(SGML)
        data = datasets.fetch_reuters21578("pairs", min_stories=2)
        assert list(data.feature_names) == "feb oslo oslo_feb profits rose".split()
        assert datasets.fetch_reuters21578("pairs").X_train.shape == (3, 0)

    def test_function(self, small_reuters, folders):
        given, cache = folders
        given.mkdir(parents=True)
        (given / "reut2-000.sgm").write_text(SGML)
        data = datasets.fetch_reuters21578(str.split)
        assert "a<b>" in data.feature_names
        assert not cache.exists()

    def test_unknown_tokenisation(self):
        with pytest.raises(ValueError, match="'zones', 'unigram', 'pairs' or a function, got 'words'"):
            datasets.fetch_reuters21578("words")

    @pytest.mark.parametrize(("tokenisation", "variant"), [("zones", "zones"), ("pairs", "."), ("unigram", "unigram")])
    def test_made_matrices_are_kept(self, tokenisation, variant, small_reuters, folders):
        given, cache = folders
        given.mkdir(parents=True)
        (given / "reut2-000.sgm").write_text(SGML)
        made = datasets.fetch_reuters21578(tokenisation)
        assert (cache / variant / "X_train.npz").exists()
        assert not list(cache.rglob("*.part"))
        (given / "reut2-000.sgm").unlink()
        assert_same(datasets.fetch_reuters21578(tokenisation, download_if_missing=False), made)

    def test_cache_that_cannot_be_written(self, small_reuters, folders):
        given, cache = folders
        given.mkdir(parents=True)
        (given / "reut2-000.sgm").write_text(SGML)
        cache.parent.parent.mkdir(parents=True)
        cache.parent.write_text("a file in the way")
        with pytest.warns(UserWarning, match="could not keep Reuters-21578"):
            assert datasets.fetch_reuters21578().X_train.shape[0] == 3

    def test_other_texts(self, small_reuters, folders):
        given, _ = folders
        given.mkdir(parents=True)
        (given / "reut2-000.sgm").write_text(SGML + story(8, "TRAIN", []))
        with pytest.raises(ValueError, match=r"are not the original ones \(X_train has 4 rows, not 3\)"):
            datasets.fetch_reuters21578()


class TestFetching:
    def test_download(self, small_reuters, folders, server, capsys):
        _, cache = folders
        places = ("absent", "garbage", "other", "small")
        small_reuters(*(f"{server}/{name}.tar.gz" for name in places))
        data = datasets.fetch_reuters21578("unigram")
        assert data.X_train.shape == (3, 12)
        assert (cache / "reuters21578.tar.gz").read_bytes() == ARCHIVE
        assert not list(cache.rglob("*.part"))
        assert "downloading Reuters-21578 (1 file(s)) into" in capsys.readouterr().err

    def test_file_address(self, small_reuters, folders, tmp_path):
        (tmp_path / "here.tar.gz").write_bytes(ARCHIVE)
        small_reuters((tmp_path / "here.tar.gz").as_uri())
        assert datasets.fetch_reuters21578("unigram").X_train.shape == (3, 12)

    def test_all_who_may_can_read_the_cache(self, small_reuters, folders, server):
        _, cache = folders
        small_reuters(f"{server}/small.tar.gz")
        datasets.fetch_reuters21578("unigram")
        mask = os.umask(0)
        os.umask(mask)
        assert {path.stat().st_mode & 0o777 for path in cache.rglob("*") if path.is_file()} == {0o666 & ~mask}

    def test_wrong_checksum(self, small_reuters, folders, server):
        _, cache = folders
        small_reuters(f"{server}/other.tar.gz")
        with pytest.raises(FileNotFoundError, match=r"other.tar.gz: its sha256 is \w{64}, not \w{64}"):
            datasets.fetch_reuters21578()
        assert not list(cache.iterdir())

    def test_offline(self, small_reuters, folders):
        given, _ = folders
        with pytest.raises(FileNotFoundError) as caught:
            datasets.fetch_reuters21578()
        message = str(caught.value)
        assert message.startswith("Reuters-21578 is not here, and was not downloaded (http://127.0.0.1:9/")
        assert "Put reuters21578.tar.gz (from https://archive.ics.uci.edu/" in message
        assert "or its files reut2-000.sgm to reut2-021.sgm" in message
        assert message.endswith(f"into {given}")

    def test_offline_without_data_folder(self, small_reuters, folders, monkeypatch):
        _, cache = folders
        monkeypatch.delenv("SL1MAX_DATA")
        with pytest.raises(FileNotFoundError) as caught:
            datasets.fetch_reuters21578(download_if_missing=False)
        message = str(caught.value)
        assert "(download_if_missing is False)" in message
        assert message.endswith(f"into {cache}\nor set SL1MAX_DATA to the folder of your data sets")

    def test_supertags_offline(self, folders):
        with pytest.raises(FileNotFoundError, match=r"Put the \.conllu files of https://github\.com/Universal"):
            datasets.fetch_supertags(download_if_missing=False)

    def test_only_what_is_missing_is_downloaded(self, folders, server, tmp_path):
        _, cache = folders
        digest = hashlib.sha256(ARCHIVE).hexdigest()
        there = _store.Remote("one", digest, ("http://127.0.0.1:9/nobody-listens",))
        missing = _store.Remote("two", digest, (f"{server}/small.tar.gz",))
        source = dataclasses.replace(_reuters.SOURCE, remotes=(there, missing))
        cache.mkdir(parents=True)
        (cache / "one").write_bytes(ARCHIVE)
        _store.download(source, cache)
        assert (cache / "two").read_bytes() == ARCHIVE

    @pytest.mark.parametrize("name", ["X_test.npz", "features.txt.xz", "ids_test.npy"])
    def test_damaged_file(self, name, small_reuters, folders, server):
        _, cache = folders
        small_reuters(f"{server}/small.tar.gz")
        datasets.fetch_reuters21578()
        path = cache / "zones" / name
        path.write_bytes(path.read_bytes()[:-20])
        with pytest.raises(ValueError, match=rf"{name} is damaged .*: delete it and fetch the set again"):
            datasets.fetch_reuters21578()
        path.unlink()
        with pytest.raises(ValueError, match=r"zones has no \w+: delete the folder"):
            datasets.fetch_reuters21578()

    def test_other_matrices(self, small_reuters, folders, server, monkeypatch):
        small_reuters(f"{server}/small.tar.gz")
        datasets.fetch_reuters21578()
        monkeypatch.setattr(_reuters, "SIZES", SMALL_SIZES | {"X_test": 7})
        with pytest.raises(ValueError, match=r"holds another set: delete it \(X_test has 2 rows, not 7\)"):
            datasets.fetch_reuters21578()

    def test_damaged_archive(self, small_reuters, folders):
        given, _ = folders
        given.mkdir(parents=True)
        (given / "cut.tar.gz").write_bytes(ARCHIVE[:100])
        with pytest.raises(ValueError, match=r"cut.tar.gz is damaged .*: delete it"):
            datasets.fetch_reuters21578()

    def test_manifest(self):
        remotes = _supertags.SOURCE.remotes
        assert len(remotes) == 61
        assert all(len(bytes.fromhex(remote.sha256)) == 32 for remote in remotes)
        assert list(_supertags.SOURCE.texts) == sorted(_supertags.SOURCE.texts)


CONLLU = """# text = Hún las bók-ina
1\tHún\thún\tPRON\t_\t_\t2\tnsubj\t_\t_
2-3\tlasbók\t_\t_\t_\t_\t_\t_\t_\t_
2\tlas\tlesa\tVERB\t_\tVoice=Mid\t0\troot\t_\t_
3\tbók-ina\tbók\tNOUN\t_\t_\t2\tobj:x\t_\t_

# text = Já
1\tJÁ\tjá\tINTJ\t_\t_\t0\troot\t_\t_
"""


class TestSupertags:
    def test_labels(self):
        first, second = _supertags.read_sentences(CONLLU)
        assert _supertags.sentence_labels(first) == [
            "PRON/nsubj/R/_",
            "VERBm/root/0/nsubj_obj",
            "NOUN/obj:x/L/_",
        ]
        assert _supertags.sentence_labels(second) == ["INTJ/root/0/_"]

    @pytest.mark.parametrize(
        ("word", "first", "shape"),
        [
            ("1987", True, "digits"),
            ("2.", False, "hasdigit"),
            ("...", False, "punct"),
            ("JÁ", False, "ALLCAPS"),
            ("Á", True, "Cap1st"),
            ("Hún", False, "Cap"),
            ("bók-ina", False, "hyphen"),
            ("bók", False, None),
        ],
    )
    def test_shape(self, word, first, shape):
        assert _supertags.word_shape(word, first) == shape

    def test_making(self):
        sentence, _ = CONLLU.split("\n\n")
        text = "\n\n".join([sentence] * 40).encode()
        arrays = _supertags.arrays_of([("a.conllu", text)])
        # 120 tokens: the sentences from the 114.18th token on are for testing.
        assert arrays["X_train"].shape[0] == 117
        assert arrays["X_test"].shape[0] == len(arrays["y_test"]) == 3
        np.testing.assert_array_equal(arrays["sentence_test"], 39)
        assert list(arrays["labels"]) == ["NOUN/obj:x/L/_", "PRON/nsubj/R/_", "VERBm/root/0/nsubj_obj"]
        np.testing.assert_array_equal(arrays["y_test"], [1, 2, 0])
        features = [set(arrays["features"][row.astype(bool)]) for row in arrays["X_test"].toarray()]
        assert features[1] >= {"w0=las", "w-1=hún", "w+1=bók-ina", "w-2=<s>", "suf2=as", "pre3==las"}
        assert [{f for f in row if f.startswith("shape")} for row in features] == [
            {"shape=Cap1st"},
            set(),
            {"shape=hyphen"},
        ]
        assert [len(row) for row in features] == [20, 19, 20]
        assert arrays["X_train"].has_canonical_format


class TestAgainstSharedData:
    """The prepared matrices and the original texts beside the checkout give the same."""

    pytestmark = needs_shared

    def test_webkb(self):
        webkb = datasets.fetch_webkb()
        folder = SHARED / "webkb"
        assert not (webkb.X_train != sp.csr_array(sp.load_npz(folder / "X.npz"))).nnz
        np.testing.assert_array_equal(webkb.y_train, np.load(folder / "y.npy"))
        np.testing.assert_array_equal(webkb.folds, np.load(folder / "folds.npy"))
        names = lzma.decompress((folder / "features.txt.xz").read_bytes()).decode().splitlines()
        assert list(webkb.feature_names) == names
        assert list(webkb.extras["university"]) == (folder / "universities.txt").read_text().split()

    @pytest.mark.slow
    def test_webkb_from_pages(self):
        with tarfile.open(SHARED / "webkb" / "webkb4-html.tar.xz") as archive:
            members = [member for member in archive if member.isfile()]
            pages = [(m.name.removeprefix("html/"), archive.extractfile(m).read()) for m in members]
        made, kept = _webkb.make_dataset(sorted(pages)), datasets.fetch_webkb()
        assert not (made.X_train != kept.X_train).nnz
        np.testing.assert_array_equal(made.folds, kept.folds)
        assert list(made.feature_names) == list(kept.feature_names)

    @pytest.mark.slow
    @pytest.mark.parametrize("tokenisation", ["unigram", "pairs"])
    def test_reuters(self, tokenisation, tmp_path, monkeypatch):
        monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
        monkeypatch.setenv("SL1MAX_DATA", str(SHARED))
        prepared = datasets.fetch_reuters21578(tokenisation)
        raw = tmp_path / "raw" / "reuters21578"
        raw.mkdir(parents=True)
        (raw / "sgml.tar.xz").symlink_to(SHARED / "reuters21578" / "reuters21578-sgml.tar.xz")
        monkeypatch.setenv("SL1MAX_DATA", str(raw.parent))
        assert_same(datasets.fetch_reuters21578(tokenisation, download_if_missing=False), prepared)
        assert (np.diff(prepared.y_test.indptr) == 0).sum() == 280

    @pytest.mark.slow
    def test_supertags(self, monkeypatch):
        monkeypatch.setenv("SL1MAX_DATA", str(SHARED))
        data = datasets.fetch_supertags()
        assert data.X_train.shape == (938455, 95706)
        assert (data.y_test == -1).sum() == 94
        assert len(data.class_names) == data.y_train.max() + 1


def test_svmlight_files_are_data_sets_too():
    for name in svmlight.__all__:
        assert getattr(datasets, name) is getattr(svmlight, name) and name in datasets.__all__
