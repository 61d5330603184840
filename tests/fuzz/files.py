"""Mutated model files: an error of the documented kind, or a model that works.

Of half the files the checksum is made anew after the mutation, so that the content is looked at. A mutation that
keeps the checksum must lead to an error, or leave the model as it was; one with a new checksum to an error, or to a
model that can be shown, saved, loaded and used.
"""

from __future__ import annotations

import copy
import hashlib
import json
import struct
import zlib

import numpy as np
from scipy import sparse

import sl1max
from fuzz.campaign import Campaign, check, check_equal_models, check_message, limit_memory, strict_warnings
from sl1max.exceptions import ModelFileError

HEAD = struct.Struct("<8sIQ32s")  # magic, version, size of the body, SHA-256 of version, size and body
MOST_COLUMNS = 1 << 22  # of a matrix that a model is used on
NUMBERS = (0, 1, -1, 2, 255, 2**31 - 1, 2**31, 2**32 - 1, 2**63 - 1, -(2**63), 1e308, 0.5, 2**64)


def base_models():
    """Models of all kinds, small."""
    rng = np.random.default_rng(0)
    models = []
    for distribution in ("conditional", "joint", "class-conditional"):
        for label_mode in ("exclusive", "independent"):
            X = (rng.random((40, 12)) < 0.3) * rng.normal(size=(40, 12))
            codes = rng.integers(0, 3, 40)
            codes[:3] = np.arange(3)
            for y in (codes, np.array(["ham", "späm", ""])[codes], np.eye(3)[codes], codes + 0.0, codes > 0):
                models.append(sl1max.fit(X, y, distribution=distribution, label_mode=label_mode, beta=0.3, tol=1e-2))
    return models


def damage(rng, content, n_most=4):
    """Bytes changed, moved, left out or put in."""
    content = bytearray(content)
    for _ in range(rng.integers(1, n_most + 1)):
        if not content:
            break
        first = int(rng.integers(0, len(content) + 1))
        match rng.integers(9):
            case 0:
                content[min(first, len(content) - 1)] ^= 1 << int(rng.integers(8))
            case 1:
                content[min(first, len(content) - 1)] = int(rng.integers(256))
            case 2:
                del content[first:]
            case 3:
                content += bytes(int(rng.integers(1, 64)))
            case 4:
                content += rng.bytes(int(rng.integers(1, 64)))
            case 5:
                del content[first : first + int(rng.integers(1, 16))]
            case 6:
                content[first:first] = content[first : first + int(rng.integers(1, 32))]
            case 7:
                content[first : first + 8] = bytes(min(8, len(content) - first))
            case _:
                kind, number = [
                    ("<i", -1), ("<I", 2**32 - 1), ("<i", 2**31 - 1), ("<q", -1), ("<q", 2**40), ("<d", np.nan),
                    ("<d", np.inf), ("<d", 1e308), ("<d", 5e-324), ("<i", 10**9), ("<i", -5), ("<B", 200), ("<q", 77),
                ][rng.integers(13)]  # fmt: skip
                number = struct.pack(kind, number)
                content[first : first + len(number)] = number
    return bytes(content)


def damage_text(rng, text):
    """One value of the JSON text replaced, dropped or added."""
    tree = json.loads(text)
    places = list(_places(tree))
    holder, key = places[rng.integers(len(places))]
    other_holder, other_key = places[rng.integers(len(places))]
    values = [*NUMBERS, None, True, "", "float", "<f8", "|O", "<U9", "joint", [], {}, [[]], float("nan"), float("inf")]
    match rng.integers(4):
        case 0:
            del holder[key]
        case 1:
            holder[key] = copy.deepcopy(other_holder[other_key])
        case _:
            holder[key] = values[rng.integers(len(values))]
    return json.dumps(tree).encode()


def _places(tree):
    """(container, key) of every value in a JSON tree."""
    keys = tree if isinstance(tree, dict) else range(len(tree))
    for key in list(keys):
        yield tree, key
        if isinstance(tree[key], dict | list):
            yield from _places(tree[key])


def damage_body(rng, body):
    """The content behind the checksum: text, arrays, or the compressed stream."""
    if rng.random() < 0.1:
        return damage(rng, body)
    content = zlib.decompress(body)
    (size,) = struct.unpack_from("<I", content)
    text, arrays = content[4 : 4 + size], content[4 + size :]
    if rng.random() < 0.5:
        text = damage_text(rng, text)
    else:
        arrays = damage(rng, arrays)
    size = len(text) if rng.random() < 0.95 else int(rng.integers(0, 2**32))
    return zlib.compress(struct.pack("<I", size) + text + arrays)


def seal(content, version, body):
    """A file with a right checksum."""
    checksum = hashlib.sha256(struct.pack("<IQ", version, len(body)) + body).digest()
    return HEAD.pack(content[:8], version, len(body), checksum) + body


def check_types(model):
    """The fields of a model are of the types that its documentation says."""
    check(isinstance(model.trained_on_indicator, bool), f"trained_on_indicator is {model.trained_on_indicator!r}")
    for name in ("total_weight", "objective", "objective_zero", "dual_gap", "n_iter", "converged", "tol"):
        value = getattr(model, name)
        kind = np.asarray(value).dtype.kind
        check(kind in "biuf", f"{name} is {value!r}")
    for name in ("intercept", "class_prior", "weights"):
        check(getattr(model, name).dtype == np.float64, f"{name} has the type {getattr(model, name).dtype}")
    check(np.isfinite(model.weights.data).all(), "a weight is not finite")
    check(not np.isnan(model.intercept).any(), "an intercept is NaN")
    check(len(np.unique(model.classes)) == len(model.classes), "a class twice")


def use(model, path, rng):
    """What a caller does with a model; errors of its own are findings."""
    check_types(model)
    repr(model)
    if model.n_features <= MOST_COLUMNS:
        X = sparse.random_array((3, model.n_features), density=min(1, 20 / model.n_features), rng=rng, format="csr")
        proba = model.predict_proba(X)
        check(proba.shape == (3, model.n_classes), "probabilities of another shape")
        check(not np.isnan(proba).any() and (proba >= 0).all() and (proba <= 1).all(), "impossible probabilities")
        model.predict(X)
        model.predict_top_k(X, 1)
        for label in model.classes[:2]:
            model.top_features(label, 3)
    model.save(path)
    check_equal_models(sl1max.load(path), model, "saved and loaded again")


def set_up(folder):
    models = base_models()
    path = folder / "model.sl1max"
    contents = []
    for model in models:
        model.save(path)
        contents.append(path.read_bytes())
    limit_memory(2 << 30)

    def run(rng):
        k = rng.integers(len(contents))
        content = contents[k]
        anew = rng.random() < 0.7
        if anew:
            _, version, _, _ = HEAD.unpack_from(content)
            version = version if rng.random() < 0.98 else int(rng.integers(0, 5))
            content = seal(content, version, damage_body(rng, content[HEAD.size :]))
        else:
            content = damage(rng, content)
        path.write_bytes(content)
        with strict_warnings():
            try:
                model = sl1max.load(path)
            except ModelFileError as error:
                check_message(error)
                check(str(path) in str(error), f"the message does not name the file: {error}")
                return "refused, new checksum" if anew else "refused"
            if not anew:
                check_equal_models(model, models[k], "a mutated file")
                return "equal"
            use(model, path, rng)
        return "valid, new checksum"

    return run


CAMPAIGN = Campaign(set_up, share=1.0, time_limit=30.0)
