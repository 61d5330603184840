"""svmlight texts, whole and damaged, beside a slow reader of the format.

Properties: what is read is what the slow reader reads, whatever the compression; a text in pieces gives the rows of
the whole; what is refused is a ValueError that names the file; written data are read back the same.
"""

from __future__ import annotations

import bz2
import gzip
import io
import lzma
import re

import numpy as np
from scipy import sparse

from fuzz.campaign import Campaign, check, check_message, limit_memory, strict_warnings
from sl1max.svmlight import read_svmlight, read_svmlight_pieces, write_svmlight

SCRAPS = [
    b" ", b"\t", b"\n", b"\r\n", b"\r", b":", b"::", b",", b"#", b"-", b"+", b".", b"e", b"E5", b"1e400", b"-0", b"nan",
    b"inf", b"0x10", b"1_0", b"\0", b"\xff", b"\xc2\xa0", b"qid:3", b"qid:", b"2147483646:1", b"2147483648:1",
    b"99999999999999999999:1", b"16777217:1", b"0:1", b"1:1", b"1:", b":1", b"1,2", b",1", b"1,", b"\x1a", b"\x0b",
    b"1e-400", b"1" * 400, b"0." + b"3" * 400, b"1:0", b"00000000000000000001:1",
]  # fmt: skip
COMPRESSORS = (gzip.compress, bz2.compress, lzma.compress)
MOST_FEATURES = 1 << 24  # more are refused unless n_features allows them


def make_text(rng):
    """A svmlight text of random examples."""
    lines = []
    first = int(rng.integers(0, 2))
    multilabel = rng.random() < 0.4
    for _ in range(rng.integers(1, 12)):
        n_labels = rng.integers(0, 4) if multilabel else 1
        labels = ",".join(str(label) for label in rng.choice(9, n_labels, replace=False))
        columns = np.sort(rng.choice(30, rng.integers(0, 6), replace=False)) + first
        values = [rng.choice(["1", "0.5", "-2.25e1", "+3", "1e-3", repr(float(rng.normal()))]) for _ in columns]
        entries = " ".join(f"{column}:{value}" for column, value in zip(columns, values, strict=True))
        comment = " # comment" if rng.random() < 0.1 else ""
        lines.append(f"{labels} {entries}{comment}")
    return ("\n".join(lines) + "\n" * int(rng.integers(0, 3))).encode()


def damage(rng, text):
    """Some bytes changed, moved, left out or put in."""
    for _ in range(rng.integers(1, 4)):
        place = int(rng.integers(0, len(text) + 1))
        other = int(rng.integers(0, len(text) + 1))
        match rng.integers(6):
            case 0:
                text = text[:place] + SCRAPS[rng.integers(len(SCRAPS))] + text[place:]
            case 1:
                text = text[:place] + bytes([rng.integers(256)]) + text[place + 1 :]
            case 2:
                text = text[: min(place, other)] + text[max(place, other) :]
            case 3:
                text = text[:place] + text[other : other + 20] + text[place:]
            case 4:
                text = text[:place]
            case _:
                text = text.replace(b" ", SCRAPS[rng.integers(len(SCRAPS))], 1)
    return text


def slow_rows(text):
    """Labels and entries of the lines, by a reader that takes more than the library does."""
    rows = []
    for line in re.split(rb"\n", text):
        words = line.split(b"#")[0].split()
        if not words:
            continue
        labels = [] if b":" in words[0] else [float(label) for label in words.pop(0).split(b",")]
        entries = {}
        for word in words:
            column, value = word.split(b":")
            if column != b"qid":
                entries[int(column)] = float(value)
        rows.append((labels, entries))
    return rows


def attempt(read):
    with strict_warnings():
        try:
            return read()
        except ValueError as error:
            check_message(error)
            return error


def check_against_slow(data, text):
    """The same rows, after the shift of the columns is taken out."""
    rows = slow_rows(text)
    X = sparse.csr_array(data.X)
    check(X.shape[0] == len(rows), f"{X.shape[0]} rows of {len(rows)}")
    lowest = min((column for _, entries in rows for column in entries), default=1)
    shift = 0 if lowest == 0 else 1
    for i, (labels, entries) in enumerate(rows):
        part = slice(X.indptr[i], X.indptr[i + 1])
        found = dict(zip(X.indices[part].tolist(), X.data[part].tolist(), strict=True))
        found = {column: value for column, value in found.items() if value != 0}
        expected = {column - shift: value for column, value in entries.items() if value != 0}
        check(found == expected, f"row {i} is {found}, in the text {expected}")
        if data.classes is None:
            check(labels == [data.y[i]], f"label {data.y[i]} in row {i}, in the text {labels}")
        else:
            held = data.classes[data.y[[i]].toarray()[0] > 0].tolist()
            check(held == sorted(set(labels)), f"labels {held} in row {i}, in the text {labels}")


def set_up(folder):
    limit_memory(4 << 30)
    path = folder / "data.svm"

    def run(rng):
        text = make_text(rng)
        damaged = rng.random() < 0.8
        if damaged:
            text = damage(rng, text)
        if rng.random() < 0.2:
            return run_compressed(rng, text)
        result = attempt(lambda: read_svmlight(io.BytesIO(text)))
        path.write_bytes(text)
        compare_pieces(rng, path)
        if isinstance(result, ValueError):
            check(damaged or not text.strip(), f"refused: {result}")
            return "refused"
        check(result.X.shape[1] <= MOST_FEATURES, f"{result.X.shape[1]} features without n_features")
        check(np.isfinite(result.X.data).all(), "a value that is not finite")
        check_against_slow(result, text)
        check_written(result, path)
        return "read"

    def run_compressed(rng, text):
        content = COMPRESSORS[rng.integers(3)](text)
        whole = attempt(lambda: read_svmlight(io.BytesIO(text)))
        cut = damage(rng, content) if rng.random() < 0.7 else content
        result = attempt(lambda: read_svmlight(io.BytesIO(cut)))
        if isinstance(result, ValueError):
            check(cut != content or isinstance(whole, ValueError), f"refused: {result}")
            return "compressed, refused"
        if cut == content:
            check(abs(result.X - whole.X).nnz == 0, "compressed data differ")
        return "compressed, read"

    def compare_pieces(rng, path):
        options = {"multilabel": bool(rng.integers(2)), "zero_based": bool(rng.integers(2)), "n_features": 64}
        n_bytes = int(rng.integers(1, 200))
        whole = attempt(lambda: read_svmlight(path, **options))
        pieces = attempt(lambda: list(read_svmlight_pieces(path, **options, n_bytes=n_bytes)))
        if isinstance(whole, ValueError) and "no examples" in str(whole):
            return
        if isinstance(whole, ValueError) or isinstance(pieces, ValueError):
            check(type(whole) is type(pieces), f"whole: {whole}; in pieces: {pieces}")
            return
        X = sparse.vstack([piece.X for piece in pieces])
        check(X.shape == whole.X.shape and abs(X - whole.X).nnz == 0, "pieces differ from the whole")

    def check_written(data, path):
        if data.classes is not None:
            return  # numbers of classes are written, not their labels
        write_svmlight(data.X, data.y, path)
        again = read_svmlight(path, n_features=data.X.shape[1], multilabel=False, zero_based=False)
        same = again.X.shape == data.X.shape and abs(again.X - data.X).nnz == 0 and np.array_equal(again.y, data.y)
        check(same, "written and read again, the data differ")

    return run


CAMPAIGN = Campaign(set_up, share=1.0)
