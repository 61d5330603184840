"""The features that Maxent 3.4.4 makes of covariates, and how strongly it regularises each.

A `FeatureTable` describes features; nothing in it depends on the number of points. Every feature is a function of one
or two covariates, scaled to [0, 1] over the sample space:

    category        1 if v = value
    linear          (v - low) / (high - low)
    quadratic       (v^2 - low) / (high - low)
    product         (v w - low) / (high - low)
    threshold       1 if v > value
    hinge           max(v - low, 0) / (high - low)       the knot is low
    reverse hinge   max(high - v, 0) / (high - low)      the knot is high

The penalty of a feature is b s / sqrt(n): n presences, s the standard deviation of the feature over them, b a constant
of its class that decreases with n.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, fields

import numpy as np

from sl1max._core._knots import sums_above, sums_below

CATEGORY, LINEAR, QUADRATIC, PRODUCT, THRESHOLD, HINGE, REVERSE_HINGE = range(7)
LETTERS = {"l": LINEAR, "q": QUADRATIC, "p": PRODUCT, "h": HINGE, "t": THRESHOLD}
# Presences from which on "auto" has the features of a letter.
AUTO = {"l": 0, "q": 10, "h": 15, "p": 80}
MIN_PENALTY = 0.001  # times the regularisation multiplier
# The constants b: numbers of presences, values there. Linear in between, constant beyond.
BETA_WITH_PRODUCTS = (0, 10, 17, 30, 100), (2.6, 1.6, 0.9, 0.55, 0.05)
BETA_WITH_QUADRATICS = (0, 10, 17, 30, 100), (1.3, 0.8, 0.5, 0.25, 0.05)
BETA_LINEAR = (10, 30, 100), (1.0, 0.2, 0.05)
BETA_CATEGORICAL = (0, 10, 17), (0.65, 0.5, 0.25)
BETA_THRESHOLD = (0, 100), (2.0, 1.0)
BETA_HINGE = 0.5
MAX_DIGITS = 6  # of a value, for the precision of a covariate
SMALLEST_EXTENT = 1e-200  # of a feature before scaling; one that varies by less is constant, or its slope overflows


@dataclass(frozen=True, eq=False)
class FeatureTable:
    """Descriptions of features, one entry of each array per feature.

    Attributes
    ----------
    kind : int8 array
        CATEGORY, LINEAR, ...
    first, second : int32 arrays
        Numbers of the covariates; ``second`` is that of ``first`` unless the feature is a product.
    value : float array
        The category or the threshold; nan for other kinds.
    low, high : float arrays
        See the formulas above; 0 and 1 for categories and thresholds.
    """

    kind: np.ndarray
    first: np.ndarray
    second: np.ndarray
    value: np.ndarray
    low: np.ndarray
    high: np.ndarray

    def __len__(self) -> int:
        return len(self.kind)

    def __getitem__(self, which) -> FeatureTable:
        return FeatureTable(*(getattr(self, field.name)[which] for field in fields(self)))

    @property
    def extent(self) -> np.ndarray:
        """high - low, by which features are divided; 1 for those that are constant."""
        return extent_of(self.low, self.high)

    @classmethod
    def concatenate(cls, tables: Sequence[FeatureTable]) -> FeatureTable:
        """The features of several tables, one table after the other."""
        parts = ([getattr(table, field.name) for table in tables] for field in fields(cls))
        return cls(*map(np.concatenate, parts))

    def columns(self, V: np.ndarray, *, clamp: bool = False, out: np.ndarray | None = None) -> np.ndarray:
        """Values of the features at points.

        Parameters
        ----------
        V : float array of shape (n_points, n_covariates)
        clamp : bool
            Limit every feature to [0, 1].
        out : float array of shape (n_points, n_features), optional
            Where to write them.

        Returns
        -------
        float array of shape (n_points, n_features), column by column in memory
        """
        out = np.empty((len(V), len(self)), order="F") if out is None else out
        for j in range(len(self)):
            self._fill(out[:, j], V, j)
            if clamp:
                np.clip(out[:, j], 0.0, 1.0, out=out[:, j])
        return out

    def _fill(self, column, V, j):
        """Write the values of feature j to a column."""
        kind, v, low, high = self.kind[j], V[:, self.first[j]], self.low[j], self.high[j]
        if kind == CATEGORY:
            column[...] = v == self.value[j]
            return
        if kind == THRESHOLD:
            column[...] = v > self.value[j]
            return
        if kind == REVERSE_HINGE:
            np.subtract(high, v, out=column)
        elif kind in (LINEAR, HINGE):
            np.subtract(v, low, out=column)
        else:
            np.multiply(v, V[:, self.second[j]], out=column)
            column -= low
        if kind in (HINGE, REVERSE_HINGE):
            np.maximum(column, 0.0, out=column)
        column /= extent_of(low, high)

    def by_kind(self) -> Iterator[tuple[int, np.ndarray]]:
        for kind in np.unique(self.kind):
            yield int(kind), np.flatnonzero(self.kind == kind)

    def range_of_covariates(self, n_covariates: int) -> tuple[np.ndarray, np.ndarray]:
        """Least and greatest value of every covariate that has a linear feature; -inf and inf of the others."""
        low, high = np.full(n_covariates, -np.inf), np.full(n_covariates, np.inf)
        linear = self.kind == LINEAR
        low[self.first[linear]], high[self.first[linear]] = self.low[linear], self.high[linear]
        return low, high

    def term_names(self, covariates: Sequence[str]) -> list[str]:
        """Names as in a .lambdas file, where hinges of a covariate share theirs."""
        return [self._term_name(j, covariates) for j in range(len(self))]

    def _term_name(self, j, covariates):
        kind, v = self.kind[j], covariates[self.first[j]]
        if kind == CATEGORY:
            return f"({v}={self.value[j].item()!r})"
        if kind == THRESHOLD:
            return f"({self.value[j].item()!r}<{v})"
        if kind == PRODUCT:
            return f"{v}*{covariates[self.second[j]]}"
        return {LINEAR: v, QUADRATIC: f"{v}^2", HINGE: f"'{v}", REVERSE_HINGE: f"`{v}"}[int(kind)]

    def names(self, covariates: Sequence[str]) -> list[str]:
        """Names that are unique: those of hinges have the range added."""
        names = self.term_names(covariates)
        for j in np.flatnonzero((self.kind == HINGE) | (self.kind == REVERSE_HINGE)):
            names[j] += f"({self.low[j].item()!r},{self.high[j].item()!r})"
        return names


def extent_of(low, high):
    """high - low, or 1 if there is nothing between them."""
    return np.where(high - low > SMALLEST_EXTENT, high - low, 1.0)


def make_table(kind, first, low, high, *, second=None, value=None) -> FeatureTable:
    """A table of features of one kind; scalars stand for arrays of equal entries."""
    first = np.atleast_1d(np.asarray(first, np.int32))
    second = first if second is None else second
    arrays = (np.nan if value is None else value, low, high)
    value, low, high = (np.array(np.broadcast_to(array, first.shape), float) for array in arrays)
    return FeatureTable(np.full(first.shape, kind, np.int8), first, np.asarray(second, np.int32), value, low, high)


# Which features there are


def choose_classes(features: str, n: float) -> str:
    """The letters of the feature classes.

    Parameters
    ----------
    features : str
        "auto" or letters of "lqpht".
    n : float
        The number of presences, which "auto" depends on.

    Returns
    -------
    str
    """
    if features == "auto":
        return "".join(letter for letter, least in AUTO.items() if n >= least)
    if not isinstance(features, str) or not features or set(features) - set(LETTERS):
        raise ValueError(f'features must be "auto" or letters out of "lqpht", got {features!r}')
    return features


def expand(
    points: np.ndarray,
    presences: np.ndarray,
    classes: str,
    categorical: Sequence[int] = (),
    distinct: Sequence[np.ndarray] | None = None,
) -> FeatureTable:
    """The features of covariates over a sample space.

    Parameters
    ----------
    points : float array of shape (n_points, n_covariates)
        The sample space: background and added presences.
    presences : float array of shape (n_presences, n_covariates)
    classes : str
        Letters out of "lqpht". Linear features are always in the table: clamping needs their ranges.
    categorical : sequence of int
        Covariates whose values are categories.
    distinct : sequence of float array, optional
        The distinct values of every covariate over the points, ascending.

    Returns
    -------
    FeatureTable
        The knots of a covariate ascend. Categories that no presence has are left out.
    """
    numeric = [j for j in range(points.shape[1]) if j not in set(categorical)]
    tables = [_categories(presences[:, j], j) for j in categorical]
    low, high = points.min(axis=0), points.max(axis=0)
    tables.append(make_table(LINEAR, numeric, low[numeric], high[numeric]))
    if "q" in classes:
        squares = ((points[:, j] ** 2, j, j) for j in numeric)
        tables.append(_scaled(QUADRATIC, squares))
    if "p" in classes:
        pairs = ((j, k) for i, j in enumerate(numeric) for k in numeric[i + 1 :])
        tables.append(_scaled(PRODUCT, ((points[:, j] * points[:, k], j, k) for j, k in pairs)))
    if "t" in classes or "h" in classes:
        distinct = [np.unique(column) for column in points.T] if distinct is None else distinct
        knots = {j: (distinct[j], value_precision(distinct[j]).min()) for j in numeric}
    if "t" in classes:
        tables += [_thresholds(*knots[j], presences[:, j], j) for j in numeric]
    if "h" in classes:
        tables += [table for j in numeric for table in _hinges(*knots[j], j)]
    return FeatureTable.concatenate(tables)


def _categories(values, j):
    found = np.unique(values)
    return make_table(CATEGORY, np.full(len(found), j), 0.0, 1.0, value=found)


def _scaled(kind, columns):
    rows = [(j, k, column.min(), column.max()) for column, j, k in columns]
    first, second, low, high = (np.array(part) for part in zip(*rows, strict=True)) if rows else [[]] * 4
    return make_table(kind, first, low, high, second=second)


def _thresholds(values, precision, presences, j):
    knots = place_knots(values, precision)
    knots = knots[(knots >= presences.min()) & (knots < presences.max())]
    return make_table(THRESHOLD, np.full(len(knots), j), 0.0, 1.0, value=knots)


def _hinges(values, precision, j):
    values = values + 0.0  # no -0.0
    knots = place_knots(values, precision)
    knots = knots[knots < values[-1]]  # the midpoint of two numbers next to each other may be one of them
    yield make_table(HINGE, np.full(len(knots), j), knots, values[-1])
    knots = -place_knots(-values[::-1], precision)[::-1]
    knots = knots[knots > values[0]]
    yield make_table(REVERSE_HINGE, np.full(len(knots), j), values[0], knots)


# Knots


def place_knots(values: np.ndarray, precision: float) -> np.ndarray:
    """Midpoints between consecutive values, where values within the precision of the last one kept are skipped.

    Parameters
    ----------
    values : float array
        Distinct and ascending.
    precision : float

    Returns
    -------
    float array
    """
    if not (np.diff(values) > precision).all():
        kept, last = [True], values[0]
        for value in values[1:].tolist():
            kept.append(value - last > precision)
            last = value if kept[-1] else last
        values = values[np.array(kept)]
    return (values[1:] + values[:-1]) / 2.0


def value_precision(values: np.ndarray) -> np.ndarray:
    """Half a unit of the last decimal digit that a value is taken to have.

    The digits are read from the first on, at most six; they end where two of them are 00, 01, 98 or 99. The precision
    of 0 is 0, and so is that of values below 1e-290.
    """
    rest = np.abs(np.asarray(values, float))
    precision = np.zeros(rest.shape)
    open_ = rest > 1e-290
    rest[~open_] = 1.0
    power = 10.0 ** np.floor(np.log(rest) / np.log(10.0))
    last_two = np.zeros(rest.shape, int)
    for n in range(1, MAX_DIGITS + 1):
        digit = (rest / power).astype(int)
        last_two = (10 * last_two + digit) % 100
        if n > 1:
            ends = open_ & np.isin(last_two, (0, 1, 98, 99))
            precision[ends] = 50.0 * power[ends]
            open_ &= ~ends
        rest -= digit * power
        power /= 10.0
    precision[open_] = 5.0 * power[open_]
    return precision


# Means and penalties


@dataclass(frozen=True)
class ClassBetas:
    """The constant b of each class of features, times the regularisation multiplier."""

    lqp: float
    categorical: float
    threshold: float
    hinge: float
    multiplier: float = 1.0

    def of_kinds(self, kind: np.ndarray) -> np.ndarray:
        """The constant of every feature."""
        table = np.full(7, self.lqp)
        table[CATEGORY], table[THRESHOLD] = self.categorical, self.threshold
        table[HINGE] = table[REVERSE_HINGE] = self.hinge
        return table[kind]


def default_betas(
    n: float,
    classes: str,
    multiplier: float = 1.0,
    *,
    lqp: float | None = None,
    categorical: float | None = None,
    threshold: float | None = None,
    hinge: float | None = None,
) -> ClassBetas:
    """The constants b for n presences.

    Parameters
    ----------
    n : float
    classes : str
        Letters of the feature classes: the linear, quadratic and product features' depends on them.
    multiplier : float
        Factor of all.
    lqp, categorical, threshold, hinge : float, optional
        Instead of the default of that class.

    Returns
    -------
    ClassBetas
    """
    curve = BETA_WITH_PRODUCTS if "p" in classes else BETA_WITH_QUADRATICS if "q" in classes else BETA_LINEAR

    def scaled(given, default):
        return multiplier * (np.interp(n, *default).item() if given is None else given)

    return ClassBetas(
        lqp=scaled(lqp, curve),
        categorical=scaled(categorical, BETA_CATEGORICAL),
        threshold=scaled(threshold, BETA_THRESHOLD),
        hinge=multiplier * (BETA_HINGE if hinge is None else hinge),
        multiplier=multiplier,
    )


def means_and_penalties(
    table: FeatureTable, presences: np.ndarray, betas: ClassBetas, weight: np.ndarray | None = None
) -> tuple[np.ndarray, np.ndarray]:
    """Mean of every feature over the presences, and its penalty.

    Parameters
    ----------
    table : FeatureTable
    presences : float array of shape (n_presences, n_covariates)
    betas : ClassBetas
    weight : float array of shape (n_presences,), optional
        Weight 2 is the same as having the presence twice.

    Returns
    -------
    means, penalties : float arrays of shape (n_features,)
    """
    weight = np.ones(len(presences)) if weight is None else weight
    n = weight.sum()
    means, variance = _moments(table, presences, weight, n)
    hinge = (table.kind == HINGE) | (table.kind == REVERSE_HINGE)
    half_range = np.where(table.high > table.low, 0.5, 0.0)
    if n > 1:
        deviation = np.minimum(np.sqrt(variance * (n / (n - 1))), half_range)
        deviation[hinge] = np.maximum(deviation[hinge], 1 / np.sqrt(n))
    else:
        deviation = half_range
    penalties = betas.of_kinds(table.kind) * deviation / np.sqrt(n)
    least = MIN_PENALTY * betas.multiplier
    always = (table.kind == CATEGORY) & (means == 1.0) & (penalties < least)
    return means, np.where(always, 1 / (2 * n), np.maximum(penalties, least))


def _moments(table, presences, weight, n):
    """Mean and variance (of n, not n - 1) of every feature."""
    means, variance = np.empty(len(table)), np.empty(len(table))
    knots = np.isin(table.kind, (HINGE, REVERSE_HINGE, THRESHOLD))
    for kind, where in table[knots].by_kind():
        where = np.flatnonzero(knots)[where]
        for j in np.unique(table.first[where]):
            mine = where[table.first[where] == j]
            mean, square = _knot_moments(table[mine], kind, presences[:, j], weight / n)
            means[mine], variance[mine] = mean, np.maximum(square - mean**2, 0.0)
    for j in np.flatnonzero(~knots):
        column = table[[j]].columns(presences)[:, 0]
        means[j] = mean = weight @ column / n
        variance[j] = weight @ (column - mean) ** 2 / n
    return means, variance


def _knot_moments(table, kind, v, share):
    """Mean and mean square of features of one kind and one covariate, whose knots ascend."""
    values, bins = np.unique(v, return_inverse=True)
    binned = np.bincount(bins, share, len(values))
    knots = {THRESHOLD: table.value, HINGE: table.low, REVERSE_HINGE: table.high}[kind]
    mass, first, second = np.empty((3, len(knots)))
    (sums_below if kind == REVERSE_HINGE else sums_above)(values, binned, knots, mass, first, second)
    extent = table.extent
    return (mass, mass) if kind == THRESHOLD else (first / extent, second / extent / extent)
