"""Mutated checkpoints: an error of the documented kind, or the model of an undisturbed fit.

A mutation that keeps the checksums may cost finished classes, never change the model. One whose checksum is made anew
ends in an error or in a model that is certified: its objective is that of the undisturbed fit, within the gaps.
"""

from __future__ import annotations

import hashlib
import struct

import numpy as np
from problems import MODELS

import sl1max
from fuzz.campaign import Campaign, check, check_equal_models, check_message, limit_memory, strict_warnings
from fuzz.files import check_types, damage
from sl1max.exceptions import CheckpointError

MARKER = b"\x93SL1REC\n"
HEAD = struct.Struct("<8sII32s")  # magic, version, size of the text, SHA-256 of the text
RECORD = struct.Struct("<8sQ16s")  # marker, size of the body, BLAKE2b of size and body with the head's SHA-256 as key
REPORT = struct.Struct("<qBqddddII")  # number, status, n_iter, four figures, numbers of intercepts and rows
ROW = struct.Struct("<qBq")  # class, side, number of weights
REPORTED = {
    "<q": (-1, 0, 1, 2, 7, 2**31, 2**63 - 1),
    "<B": (0, 1, 2, 3, 4, 5, 200, 255),
    "<d": (np.nan, np.inf, -np.inf, -1.0, 0.0, 1e308, 5e-324),
    "<I": (0, 1, 3, 2**16, 2**31, 2**32 - 1),
    "<i": (-5, -1, 0, 11, 12, 10**9, 2**31 - 1),
}


def base_fits():
    """Data and options of fits of every kind."""
    rng = np.random.default_rng(0)
    X = (rng.random((50, 12)) < 0.3) * rng.normal(size=(50, 12))
    y = rng.integers(0, 4, 50)
    for distribution, label_mode in MODELS:
        yield X, y, {"distribution": distribution, "label_mode": label_mode, "beta": 0.2, "tol": 1e-3}


def split_records(content):
    """The head with its text, and the bodies of the records."""
    start = HEAD.size + HEAD.unpack_from(content)[2]
    head, bodies = content[:start], []
    while start + RECORD.size <= len(content):
        _, size, _ = RECORD.unpack_from(content, start)
        bodies.append(content[start + RECORD.size : start + RECORD.size + size])
        start += RECORD.size + size
    return head, bodies


def join_records(head, bodies):
    key = HEAD.unpack_from(head)[3]
    parts = [head]
    for body in bodies:
        state = hashlib.blake2b(struct.pack("<Q", len(body)) + body, digest_size=16, key=key)
        parts += [RECORD.pack(MARKER, len(body), state.digest()), body]
    return b"".join(parts)


def fields(body):
    """(kind, place) of the fields of a record."""
    place = 0
    for kind in ("<q", "<B", "<q", "<d", "<d", "<d", "<d", "<I", "<I"):
        yield kind, place
        place += struct.calcsize(kind)
    *_, n_intercepts, n_rows = REPORT.unpack_from(body)
    for _ in range(n_intercepts):
        yield "<d", place
        place += 8
    for _ in range(n_rows):
        size = ROW.unpack_from(body, place)[2]
        for kind in ("<q", "<B", "<q", *["<i"] * size, *["<d"] * size):
            yield kind, place
            place += struct.calcsize(kind)


def damage_records(rng, bodies):
    """Records changed, in one field or anywhere, repeated, left out, or in another order."""
    bodies = list(bodies)
    k = int(rng.integers(len(bodies)))
    match rng.integers(8):
        case 0:
            bodies[k] = damage(rng, bodies[k], 2)
        case 1:
            del bodies[k]
        case 2:
            bodies.append(bodies[k])
        case 3:
            bodies = [bodies[i] for i in rng.permutation(len(bodies))]
        case 4:
            bodies[k] = b"" if rng.random() < 0.3 else bodies[k][: rng.integers(len(bodies[k]))]
        case _:
            places = list(fields(bodies[k]))
            # The report is few of the fields and most of the harm.
            kind, place = places[rng.integers(min(len(places), 12) if rng.random() < 0.5 else len(places))]
            number = struct.pack(kind, REPORTED[kind][rng.integers(len(REPORTED[kind]))])
            bodies[k] = bodies[k][:place] + number + bodies[k][place + len(number) :]
    return bodies


def set_up(folder):
    path = folder / "fit.checkpoint"
    bases = []
    for X, y, options in base_fits():
        path.unlink(missing_ok=True)
        model = sl1max.fit(X, y, checkpoint=path, **options)
        bases.append((X, y, options, model, path.read_bytes()))
    limit_memory(2 << 30)

    def run(rng):
        X, y, options, model, content = bases[rng.integers(len(bases))]
        head, bodies = split_records(content)
        anew = rng.random() < 0.7
        changed = join_records(head, damage_records(rng, bodies)) if anew else damage(rng, content)
        path.write_bytes(changed)
        with strict_warnings():
            try:
                again = sl1max.fit(X, y, checkpoint=path, **options)
            except CheckpointError as error:
                check_message(error)
                check(str(path) in str(error), f"the message does not name the file: {error}")
                return "refused, new checksum" if anew else "refused"
        if not anew:
            check_equal_models(again, model, "after a mutation")
            return "same model"
        check_types(again)
        check(np.isfinite(again.predict_log_proba(X)).all(), "a probability that is not finite")
        apart = np.abs(again.objective - model.objective)
        allowed = again.dual_gap + model.dual_gap + 1e-12
        check(np.all(apart <= allowed), f"objective differs by {apart}, beside gaps of {again.dual_gap}")
        return "a model, new checksum"

    return run


CAMPAIGN = Campaign(set_up, share=1.0, time_limit=30.0)
