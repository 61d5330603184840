"""Folders, download and storage of data sets.

The folder of a data set may have its raw texts, as files or in a tar archive, and the matrices made from them. Matrices
are preferred; those made from raw texts are stored in the cache folder.
"""

from __future__ import annotations

import hashlib
import http.client
import lzma
import os
import sys
import tarfile
import urllib.request
import warnings
import zipfile
import zlib
from array import array
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path, PurePosixPath

import numpy as np
import scipy.sparse as sp

from sl1max._utils.arrays import write_array
from sl1max._utils.files import atomic_write

# Lengths of the arrays of a set by name, where known.
Sizes = dict[str, int | None]

_TIMEOUT_SECONDS = 60
_DAMAGE = (OSError, EOFError, ValueError, KeyError, zipfile.BadZipFile, zlib.error, lzma.LZMAError)


@dataclass(frozen=True, eq=False)
class Dataset:
    """A data set, ready to fit.

    Attributes
    ----------
    name : str
        Of the set.
    X_train, X_test : scipy.sparse.csr_array of shape (n_samples, n_features)
        Binary features as float64. ``X_test`` is None for a set that comes in folds.
    y_train, y_test : ndarray of shape (n_samples,) or csr_array of shape (n_samples, n_classes)
        Class codes, where -1 marks a test example whose class does not occur in training; for a multi-label
        set the indicator of 0 and 1.
    feature_names, class_names : ndarray of str
        Names of the columns of X, and of the class codes or the columns of the indicator.
    folds : ndarray of shape (n_samples,) or None
        The fold of every training example, for a set that comes in folds.
    extras : dict of str to ndarray
        Further arrays with an entry per example, described by each fetcher.
    description : str
        Source, licence and processing.
    """

    name: str
    X_train: sp.csr_array
    y_train: np.ndarray | sp.csr_array
    feature_names: np.ndarray
    class_names: np.ndarray
    X_test: sp.csr_array | None = None
    y_test: np.ndarray | sp.csr_array | None = None
    folds: np.ndarray | None = None
    extras: dict[str, np.ndarray] = field(default_factory=dict)
    description: str = ""

    def splits(self) -> Iterator[tuple]:
        """Yield ``(X_train, y_train, X_test, y_test)``: one per fold, or the one fixed split.

        Examples
        --------
        >>> from sl1max.datasets import fetch_webkb
        >>> [X_test.shape[0] for _, _, X_test, _ in fetch_webkb().splits()]
        [1050, 1050, 1050, 1049]
        """
        if self.folds is None:
            yield self.X_train, self.y_train, self.X_test, self.y_test
            return
        for fold in np.unique(self.folds):
            train, test = np.flatnonzero(self.folds != fold), np.flatnonzero(self.folds == fold)
            yield self.X_train[train], self.y_train[train], self.X_train[test], self.y_train[test]

    def __repr__(self) -> str:
        n_samples, n_features = self.X_train.shape
        tail = "" if self.X_test is None else f" + {self.X_test.shape[0]} test"
        return (
            f"<Dataset {self.name}: {n_samples}{tail} examples, {n_features} features, {len(self.class_names)} classes>"
        )


@dataclass(frozen=True)
class Remote:
    """A file of a public source."""

    file: str
    sha256: str
    urls: tuple[str, ...]


@dataclass(frozen=True)
class Source:
    """The raw texts of a set."""

    title: str
    folder: str
    texts: tuple[str, ...]
    remotes: tuple[Remote, ...]
    by_hand: str


def cache_folder() -> Path:
    return Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "sl1max"


def set_folders(folder: str) -> list[Path]:
    """Folders in which a data set is searched, in order."""
    roots = [Path(os.environ["SL1MAX_DATA"]).expanduser()] if os.environ.get("SL1MAX_DATA") else []
    return [root / folder for root in [*roots, cache_folder()]]


def load_or_make(source: Source, variant: str, make: Callable, sizes: Sizes, download_if_missing: bool) -> dict:
    """Load the stored arrays of a data set, or make them from the raw texts and store them.

    `variant` is the subfolder, or ""; `sizes` has the names of the arrays and their lengths, if known.
    """
    for folder in set_folders(source.folder):
        if (folder / variant / "X_train.npz").exists():
            return load_arrays(folder / variant, sizes)
    arrays = make_arrays(source, make, sizes, download_if_missing)
    folder = cache_folder() / source.folder / variant
    try:
        keep_arrays(folder, arrays)
    except OSError as error:
        warnings.warn(f"could not keep {source.title} in {folder}: {error}", stacklevel=3)
    return arrays


def make_arrays(source: Source, make: Callable, sizes: Sizes, download_if_missing: bool) -> dict:
    """The arrays of a set, made from its raw texts."""
    arrays = make(raw_texts(source, download_if_missing))
    _check_sizes(arrays, sizes, f"the raw texts of {source.title} are not the original ones")
    return arrays


def raw_texts(source: Source, download_if_missing: bool) -> list[tuple[str, bytes]]:
    """Return name and content of every raw text of a data set, sorted by name; download missing ones."""
    for folder in set_folders(source.folder):
        texts = _read_texts(folder, source)
        if texts is not None:
            return texts
    if not download_if_missing:
        raise FileNotFoundError(_what_to_do(source, "download_if_missing is False"))
    folder = cache_folder() / source.folder
    try:
        download(source, folder)
    except OSError as error:
        raise FileNotFoundError(_what_to_do(source, str(error))) from error
    texts = _read_texts(folder, source)
    if texts is None:
        raise FileNotFoundError(_what_to_do(source, "the download holds other files than expected"))
    return texts


def _read_texts(folder, source):
    """Read the raw texts in a folder, as files or in an archive; None if some are missing."""
    loose = {path.name: path for path in folder.rglob("*") if path.name in source.texts}
    if len(loose) == len(source.texts):
        return [(name, loose[name].read_bytes()) for name in source.texts]
    for path in sorted(folder.glob("*.tar*")):
        try:
            texts = dict(_archive_members(path))
        except (tarfile.TarError, *_DAMAGE) as error:
            raise ValueError(f"{path} is damaged ({error}): delete it") from error
        if texts.keys() >= set(source.texts):
            return [(name, texts[name]) for name in source.texts]
    return None


def _archive_members(path):
    with tarfile.open(path) as archive:
        for member in archive:
            content = archive.extractfile(member) if member.isfile() else None
            if content is not None:
                yield PurePosixPath(member.name).name, content.read()


def _what_to_do(source, reason):
    here = set_folders(source.folder)[0]
    other = "" if os.environ.get("SL1MAX_DATA") else "\nor set SL1MAX_DATA to the folder of your data sets"
    return f"{source.title} is not here, and was not downloaded ({reason}).\nPut {source.by_hand}\ninto {here}{other}"


def download(source: Source, folder: Path) -> None:
    """Download the missing files of a source; each is verified before it is renamed."""
    folder.mkdir(parents=True, exist_ok=True)
    wanted = [remote for remote in source.remotes if not _is_whole(folder / remote.file, remote.sha256)]
    print(f"sl1max: downloading {source.title} ({len(wanted)} file(s)) into {folder}", file=sys.stderr)
    for remote in wanted:
        _download_file(remote, folder)


def _is_whole(path, sha256):
    return path.exists() and hashlib.sha256(path.read_bytes()).hexdigest() == sha256


def _download_file(remote, folder):
    reasons = []
    for url in remote.urls:
        try:
            with atomic_write(folder / remote.file) as out:
                _copy_checked(url, remote.sha256, out)
            return
        except (OSError, http.client.HTTPException) as error:
            reasons.append(f"{url}: {error}")
    raise OSError("; ".join(reasons))


def _copy_checked(url, sha256, out):
    digest = hashlib.sha256()
    with urllib.request.urlopen(url, timeout=_TIMEOUT_SECONDS) as stream:
        while chunk := stream.read(1 << 20):
            digest.update(chunk)
            out.write(chunk)
    if digest.hexdigest() != sha256:
        raise OSError(f"its sha256 is {digest.hexdigest()}, not {sha256}")


def load_arrays(folder: Path, sizes: Sizes) -> dict:
    """Load the stored arrays of a data set: sparse matrices, arrays and lists of words."""
    arrays = {}
    for name in sizes:
        path = next((path for ending in _READERS if (path := folder / (name + ending)).exists()), None)
        if path is None:
            raise ValueError(f"{folder} has no {name}: delete the folder and fetch the set again")
        try:
            arrays[name] = _READERS[path.name.removeprefix(name)](path)
        except _DAMAGE as error:
            raise ValueError(f"{path} is damaged ({error}): delete it and fetch the set again") from error
    _check_sizes(arrays, sizes, f"{folder} holds another set: delete it")
    return arrays


def keep_arrays(folder: Path, arrays: dict) -> None:
    """Write arrays for :func:`load_arrays`; X_train last, since its presence means that all exist."""
    folder.mkdir(parents=True, exist_ok=True)
    for name, values in sorted(arrays.items(), key=lambda item: item[0] == "X_train"):
        ending = ".npz" if sp.issparse(values) else ".txt.xz" if values.dtype == object else ".npy"
        with atomic_write(folder / (name + ending)) as stream:
            if ending == ".npz":
                sp.save_npz(stream, values)
            elif ending == ".npy":
                write_array(stream, values)
            else:
                stream.write(lzma.compress("".join(f"{word}\n" for word in values).encode()))


def _read_matrix(path):
    return sp.csr_array(sp.load_npz(path))


def _read_words(path):
    return words(path.read_text("utf-8").split("\n")[:-1])


def _read_packed_words(path):
    return words(lzma.decompress(path.read_bytes()).decode().split("\n")[:-1])


_READERS = {".npz": _read_matrix, ".npy": np.load, ".txt": _read_words, ".txt.xz": _read_packed_words}


def words(values) -> np.ndarray:
    """Make an array of str objects, like scikit-learn's feature names."""
    return np.array(list(values), dtype=object)


def _check_sizes(arrays, sizes, otherwise):
    for name, size in sizes.items():
        if size is not None and arrays[name].shape[0] != size:
            raise ValueError(f"{otherwise} ({name} has {arrays[name].shape[0]} rows, not {size})")


def binary_matrix(rows, vocabulary: dict[str, int]) -> sp.csr_array:
    """Make a binary matrix of examples, which are sets of features of the vocabulary."""
    indices, indptr = array("i"), array("q", [0])
    for row in rows:
        indices.extend(sorted(vocabulary[feature] for feature in row if feature in vocabulary))
        indptr.append(len(indices))
    arrays = np.ones(len(indices)), np.array(indices, dtype=np.int32), np.array(indptr, dtype=np.int32)
    return sp.csr_array(arrays, shape=(len(indptr) - 1, len(vocabulary)))


def make_vocabulary(counts, at_least: int) -> dict[str, int]:
    """Number the features with a sufficient count, in alphabetical order."""
    return {feature: j for j, feature in enumerate(sorted(f for f, n in counts.items() if n >= at_least))}
