"""sl1max beside Maxent 3.4.4 on species: ``python -m species FOLDER`` or ``ci/bench species FOLDER``.

FOLDER holds presence.csv and background.csv (samples with data), and what the Java program made of them: its log.txt,
with a time and a gain for each species in order. Without a log, times and gaps of sl1max are listed alone; without a
folder, on made data. Times of sl1max are processor times with the features included; the program's are its own.
"""

import argparse
import re
import time
from pathlib import Path
from typing import NamedTuple

import numpy as np

from sl1max.species import SpeciesModel, SWDTable, read_swd, training_set


class Row(NamedTuple):
    species: str
    n_presences: int
    seconds: float
    gain: float
    gap: float  # relative to ln N
    program_seconds: float
    program_gain: float


def load(folder) -> tuple[SWDTable, SWDTable]:
    """Presences and background, their covariates in alphabetical order as the program has them."""
    tables = read_swd(folder / "presence.csv", remove_duplicates=True), read_swd(folder / "background.csv")
    return tuple(table.select(sorted(table.names)) for table in tables)


def make_tables(n_points=2000, n_species=3) -> tuple[SWDTable, SWDTable]:
    rng = np.random.default_rng(0)
    names = [f"covariate{j}" for j in range(5)]
    covariates = rng.normal(size=(n_points, 5)).astype(np.float32)
    background = SWDTable(np.full(n_points, "background"), rng.random((n_points, 2)), covariates, names)
    presences, species = [], []
    for k in range(n_species):
        rate = np.exp(covariates[:, k] - covariates[:, k + 1] ** 2)
        rows = rng.choice(n_points, 40 * (k + 1), replace=False, p=rate / rate.sum())
        presences.append(covariates[rows])
        species += [f"made{k}"] * len(rows)
    places = rng.random((len(species), 2))
    return SWDTable(np.array(species), places, np.concatenate(presences), names), background


def read_log(path) -> tuple[list[float], list[float]]:
    """Training times and gains of the program, in the order of its species."""
    text = path.read_text()
    return [
        [float(number) for number in re.findall(pattern, text)]
        for pattern in (r"time = ([\d.]+) loss", r"Resulting gain: (\S+)")
    ]


def measure(presences, background, categorical, tol, log) -> list[Row]:
    names = sorted(set(presences.species.tolist()))
    times, gains = read_log(log) if log else ([], [])
    rows = []
    for k, name in enumerate(names):
        X, y = training_set(presences.of(name), background)
        model = SpeciesModel(categorical_features=categorical or None, tol=tol)
        start = time.process_time()
        model.fit(X, y)
        seconds = time.process_time() - start
        theirs = (times[k], gains[k]) if len(times) == len(gains) == len(names) else (np.nan, np.nan)
        gap = model.dual_gap_ / np.log(model.n_background_)
        rows.append(Row(name, int(model.n_presences_), seconds, model.gain_, gap, *theirs))
    return rows


def print_table(rows):
    print(f"{'species':24} {'n':>5} {'s':>7} {'program':>8} {'ratio':>6} {'gain':>9} {'above':>9} {'gap/ln N':>9}")
    for row in rows:
        ratio = row.program_seconds / row.seconds
        print(
            f"{row.species[:24]:24} {row.n_presences:5} {row.seconds:7.3f} {row.program_seconds:8.3f} {ratio:6.1f} "
            f"{row.gain:9.5f} {row.gain - row.program_gain:9.1e} {row.gap:9.1e}"
        )
    ours, theirs = (sum(getattr(row, name) for row in rows) for name in ("seconds", "program_seconds"))
    print(f"{'all':24} {'':5} {ours:7.3f} {theirs:8.3f} {theirs / ours:6.1f}")


def plot(rows, path):
    """Time of the program over that of sl1max, against the number of presences."""
    import matplotlib

    matplotlib.use("agg")
    import matplotlib.pyplot as plt

    _, ax = plt.subplots(figsize=(5, 3.4), layout="constrained")
    ax.loglog([row.n_presences for row in rows], [row.seconds for row in rows], "o", label="sl1max")
    ax.loglog([row.n_presences for row in rows], [row.program_seconds for row in rows], "s", label="Maxent 3.4.4")
    ax.set_xlabel("presences")
    ax.set_ylabel("seconds")
    ax.legend(frameon=False)
    ax.figure.savefig(path)


def main(argv=None):
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("folder", nargs="?", type=Path, help="presence.csv and background.csv")
    parser.add_argument("--log", type=Path, help="log.txt of the Java program on the same species")
    parser.add_argument("--categorical", action="append", default=[], metavar="NAME")
    parser.add_argument("--tol", type=float, default=1e-6)
    parser.add_argument("--plot", type=Path, metavar="FILE")
    args = parser.parse_args(argv)
    presences, background = load(args.folder) if args.folder else make_tables()
    rows = measure(presences, background, args.categorical, args.tol, args.log)
    print_table(rows)
    if args.plot:
        plot(rows, args.plot)


if __name__ == "__main__":
    main()
