"""Damaged files of Maxent, .lambdas models and tables of samples: a ValueError that names the file, or numbers."""

from __future__ import annotations

import re

import numpy as np

from fuzz import texts
from fuzz.campaign import Campaign, check, check_message, limit_memory, strict_warnings
from sl1max.species import read_lambdas, read_swd

NUMBERS = (b"0", b"-1", b"1e308", b"-1e308", b"1e-320", b"nan", b"inf", b"1e400", b"99999999999999999999")
LAMBDAS = b"""elev, 1.5, 0.0, 100.0
elev^2, -0.3, 0.0, 10000.0
elev*temp, 0.2, -3.0, 2000.0
(30.5<elev), 0.7, 0.0, 1.0
'elev, 0.4, 50.0, 100.0
`temp, -0.4, 0.0, 5.0
(soil=3.0), 0.9, 0.0, 1.0
temp, 0.0, -3.0, 30.0
linearPredictorNormalizer, 2.5
densityNormalizer, 130.5
numBackgroundPoints, 1000
entropy, 6.3
"""
TABLE = b"""species,longitude,latitude,elev,temp,soil
bradypus,-65.4,-10.38,76,104,3
bradypus,-65.38,-10.38,76,104,1
"cyn,ops",-65.13,-16.8,150,-9999,2
"""
POINTS = np.array([[50.0, 3.0, 3.0], [1e5, -9.0, 1.0], [-3.0, 0.0, 30.5]])


def damage(rng, text):
    """A number replaced, lines exchanged, or bytes damaged."""
    found = list(re.finditer(rb"-?\d+\.?\d*", text))
    match rng.integers(4):
        case 0 if found:
            place = found[rng.integers(len(found))]
            return text[: place.start()] + NUMBERS[rng.integers(len(NUMBERS))] + text[place.end() :]
        case 1:
            lines = text.split(b"\n")
            i, j = rng.integers(len(lines), size=2)
            lines[i], lines[j] = lines[j], lines[i]
            return b"\n".join(lines)
        case _:
            return texts.damage(rng, text)


def set_up(folder):
    limit_memory(4 << 30)
    path = folder / "file"

    def run(rng):
        is_model = bool(rng.integers(2))
        text = LAMBDAS if is_model else TABLE
        for _ in range(rng.integers(1, 3)):
            text = damage(rng, text)
        path.write_bytes(text)
        with strict_warnings():
            try:
                found = read_lambdas(path) if is_model else read_swd(path)
            except ValueError as error:
                check_message(error)
                check(str(path) in str(error), f"the error does not name the file: {error}")
                return "lambdas: refused" if is_model else "swd: refused"
            if not is_model:
                n_rows, n_covariates = found.covariates.shape
                check(found.coordinates.shape == (n_rows, 2), "rows without coordinates")
                check(len(found.names) == n_covariates, "columns without names")
                check(not np.isinf(found.covariates).any(), "a covariate is infinite")
                return "swd: read"
            X = np.resize(POINTS, (3, len(found.feature_names)))
            for clamp in (True, False):
                predicted = found.predict(X, clamp=clamp)
                check(((predicted >= 0) & (predicted <= 1)).all(), f"predictions are {predicted}")
        return "lambdas: predicted"

    return run


CAMPAIGN = Campaign(set_up, share=0.3)
