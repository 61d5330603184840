"""Presences and backgrounds for the tests of sl1max.species, and a slow twin of its features: plain loops."""

import math
import re
from dataclasses import replace
from functools import cache
from pathlib import Path

import numpy as np
import pytest

from sl1max.species import read_lambdas, read_swd

SHARED = Path(__file__).resolve().parents[2] / "shared" / "data" / "species"
needs_shared = [
    pytest.mark.shared,
    pytest.mark.skipif(not SHARED.is_dir(), reason="the data sets are not beside the checkout"),
]
SPECIES = [f"sa{n:02}" for n in range(1, 31)]


# ------------------------------------------------------------------------------------------------- made data


def make_species(seed=0, n_background=80, n_presences=20, kind="counts"):
    """Background, presences: two covariates that matter, one that does not, and a category as the last column."""
    rng = np.random.default_rng(seed)
    n = n_background + n_presences
    V = rng.normal(size=(n, 3)) + 0.7 * (np.arange(n)[:, None] >= n_background) * [1, -1, 0]
    V = np.round(20 * V) if kind == "counts" else np.round(V, 3)
    V = np.column_stack([V, rng.integers(1, 5, n)])
    return V[:n_background], V[n_background:]


# -------------------------------------------------------------------------------------------- the slow twin


def twin_precision(f):
    f, last_two = abs(f), 0
    if f == 0:
        return 0.0
    power = 10.0 ** math.floor(math.log(f) / math.log(10))
    for n in range(6):
        digit = int(f / power)
        last_two = (10 * last_two + digit) % 100
        if n >= 1 and last_two in (0, 1, 98, 99):
            return 50 * power
        f -= digit * power
        power /= 10
    return 5 * power


def twin_knots(values):
    values = sorted(values)
    precision = min(map(twin_precision, values))
    last, knots = values[0], []
    for value in values:
        if value - last > precision:
            knots.append((value + last) / 2)
            last = value
    return knots


def twin_features(points, presences, classes, categorical=()):
    """(name, function of a row) of each feature, in the order of `sl1max._data.feature_table.expand`."""
    n = points.shape[1]
    numeric = [j for j in range(n) if j not in categorical]
    features = []

    def scaled(name, raw):
        values = [raw(row) for row in points]
        low, extent = min(values), max(values) - min(values) or 1.0
        features.append((name, lambda row: (raw(row) - low) / extent))

    for j in categorical:
        for a in sorted({float(row[j]) for row in presences}):
            features.append((f"(x{j}={a!r})", lambda row, j=j, a=a: float(row[j] == a)))
    for j in numeric:
        scaled(f"x{j}", lambda row, j=j: row[j])
    if "q" in classes:
        for j in numeric:
            scaled(f"x{j}^2", lambda row, j=j: row[j] ** 2)
    if "p" in classes:
        for j in numeric:
            for k in numeric:
                if k > j:
                    scaled(f"x{j}*x{k}", lambda row, j=j, k=k: row[j] * row[k])
    if "t" in classes:
        for j in numeric:
            low, high = min(presences[:, j]), max(presences[:, j])
            for k in twin_knots(points[:, j].tolist()):
                if low <= k < high:
                    features.append((f"({k!r}<x{j})", lambda row, j=j, k=k: float(row[j] > k)))
    if "h" in classes:
        for j in numeric:
            low, high = min(points[:, j]).item(), max(points[:, j]).item()
            for k in twin_knots(points[:, j].tolist()):
                name = f"'x{j}({k!r},{high!r})"
                features.append((name, lambda row, j=j, k=k, high=high: max(row[j] - k, 0) / (high - k)))
            for k in sorted(-k for k in twin_knots((-points[:, j]).tolist())):
                name = f"`x{j}({low!r},{k!r})"
                features.append((name, lambda row, j=j, k=k, low=low: max(k - row[j], 0) / (k - low)))
    return features


def twin_penalty(name, values, range_, beta, multiplier):
    """The penalty of a feature with these values at the presences, by the formulas of the Java program."""
    n = len(values)
    mean = sum(values) / n
    deviation = range_ / 2
    if n > 1:
        deviation = min(math.sqrt(sum((value - mean) ** 2 for value in values) / (n - 1)), range_ / 2)
        if name[0] in "'`":
            deviation = max(deviation, 1 / math.sqrt(n))
    penalty = beta * deviation / math.sqrt(n)
    if penalty >= 0.001 * multiplier:
        return penalty
    return 1 / (2 * n) if "=" in name and mean == 1 else 0.001 * multiplier


# --------------------------------------------------------------------------------------------- shared data


@cache
def read_shared(folder):
    """Presences without duplicates, background, names of the covariates in alphabetical order."""
    background = read_swd(SHARED / folder / "background.csv")
    presence = read_swd(SHARED / folder / "presence.csv", remove_duplicates=True)
    return tuple(replace(table, **_sorted_columns(table)) for table in (presence, background))


def _sorted_columns(table):
    order = np.argsort(table.names)
    return {"covariates": table.covariates[:, order], "names": [table.names[j] for j in order]}


def load_species(species):
    """Background, presences, names and the categorical columns of one species of the shared data."""
    presence, background = read_shared("bradypus" if species == "bradypus" else "sa")
    presences = presence.of(species).covariates.astype(float)
    categorical = [presence.names.index("ecoreg")] if species == "bradypus" else []
    return background.covariates.astype(float), presences, presence.names, categorical


def jar_model(setting, species, names):
    folder = "bradypus" if species.startswith("bradypus") else "sa"
    return read_lambdas(SHARED / folder / f"jar_{setting}" / f"{species}.lambdas", feature_names=names)


@cache
def jar_gains(folder, setting):
    """Every regularised training gain that the log of the program has, in order."""
    log = (SHARED / folder / f"jar_{setting}" / "log.txt").read_text()
    return [float(gain) for gain in re.findall(r"Resulting gain: (\S+)", log)]


def jar_gain(setting, species):
    if species == "bradypus":
        return jar_gains("bradypus", setting)[0]
    return jar_gains("sa", setting)[SPECIES.index(species)]
