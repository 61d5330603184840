"""Reading tables of covariates: arrays or frames, numbers and categories, as one matrix of floats."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

FROM_DTYPE = "from_dtype"


def is_frame(X: Any) -> bool:
    return hasattr(X, "columns") and hasattr(X, "__getitem__")


class NamedColumns:
    """An array whose columns have names, in the place of a frame where there is no need for one.

    Indices are those of an array; some of the rows are an object of this class again.

    Parameters
    ----------
    values : array of shape (n_rows, n_columns)
    columns : sequence of str
        Names of the columns.

    Examples
    --------
    >>> from sl1max._data.covariates import NamedColumns
    >>> X = NamedColumns([[20.5, 800.0], [18.0, 1200.0]], ["warmth", "rain"])
    >>> X["rain"].tolist(), X[1:].shape
    ([800.0, 1200.0], (1, 2))
    """

    def __init__(self, values: Any, columns: Sequence[str]):
        self.values, self.columns = np.asarray(values), list(columns)
        if self.values.ndim != 2 or self.values.shape[1] != len(self.columns):
            raise ValueError(f"there are {len(self.columns)} names for values of shape {self.values.shape}")

    @property
    def shape(self) -> tuple[int, int]:
        """Numbers of rows and columns."""
        return self.values.shape

    @property
    def dtypes(self) -> list[np.dtype]:
        """That of each column."""
        return [self.values.dtype] * len(self.columns)

    def __len__(self) -> int:
        return len(self.values)

    def __array__(self, dtype=None, copy=None) -> np.ndarray:
        return np.array(self.values, dtype, copy=copy)

    def __getitem__(self, which: Any) -> Any:
        if isinstance(which, str):
            return self.values[:, self.columns.index(which)]
        values = self.values[which]
        return NamedColumns(values, self.columns) if values.shape[1:] == self.values.shape[1:] else values

    def __repr__(self) -> str:
        return f"<NamedColumns: {len(self)} rows of {', '.join(self.columns)}>"


@dataclass(frozen=True, eq=False)
class Covariates:
    """The covariates of a model: their names, and which are categories.

    Attributes
    ----------
    names : tuple of str
    categories : dict of int to array
        By column, the categories; a number stands for itself, another category for its place in the array.
    """

    names: tuple[str, ...]
    categories: dict[int, np.ndarray]

    @classmethod
    def of(cls, X: Any, categorical_features: Any = FROM_DTYPE) -> Covariates:
        """The covariates of a training set.

        Parameters
        ----------
        X : array or frame of shape (n_rows, n_covariates)
        categorical_features : "from_dtype", None or list of int, str or bool
            Which columns are categories: those of a frame that are not numbers, none, or those listed, by number, by
            name or as a mask.
        """
        names = tuple(map(str, X.columns)) if is_frame(X) else tuple(f"x{j}" for j in range(np.shape(X)[1]))
        where = _find_categorical(X, names, categorical_features)
        return cls(names, {j: _find_categories(_column(X, j), names[j]) for j in where})

    def select(self, columns: Sequence[int]) -> Covariates:
        """Some of the covariates, by number."""
        names = tuple(self.names[j] for j in columns)
        return Covariates(names, {k: self.categories[j] for k, j in enumerate(columns) if j in self.categories})

    def encode(self, X: Any) -> np.ndarray:
        """The values as floats; categories that are unknown are -1 where categories are not numbers, missing ones nan.

        Parameters
        ----------
        X : array or frame
            The columns of a frame are found by name, those of an array by number.

        Returns
        -------
        float array of shape (n_rows, n_covariates), column by column in memory
        """
        if is_frame(X):
            place = {str(name): j for j, name in enumerate(X.columns)}
            missing = [name for name in self.names if name not in place]
            if missing:
                raise ValueError(f"X lacks the covariate {missing[0]!r}")
            order = [place[name] for name in self.names]
        else:
            X = np.asarray(X)
            if X.ndim != 2 or X.shape[1] != len(self.names):
                raise ValueError(f"X must have {len(self.names)} columns, its shape is {X.shape}")
            order = list(range(X.shape[1]))
        out = np.empty((len(X), len(self.names)), order="F")
        for j, k in enumerate(order):
            column = _column(X, k)
            out[:, j] = self._encode_categories(column, j) if j in self.categories else _as_float(column, self.names[j])
        return out

    def _encode_categories(self, column, j):
        categories = self.categories[j]
        if categories.dtype.kind == "f":
            return _as_float(column, self.names[j])
        place = {category: float(n) for n, category in enumerate(categories)}
        return np.array([np.nan if is_missing(value) else place.get(value, -1.0) for value in column])

    @property
    def have_numeric_categories(self) -> bool:
        """Whether every category is a number, as in the files of the Java program."""
        return all(categories.dtype.kind == "f" for categories in self.categories.values())


def is_missing(value: Any) -> bool:
    """Whether a value is None or one of the values that differ from themselves: nan, NaT, pandas.NA."""
    try:
        return value is None or not bool(value == value)
    except TypeError:  # pandas.NA has no truth value
        return True


def _column(X, j):
    if hasattr(X, "iloc"):  # pandas
        column = X.iloc[:, j]
        return column.to_numpy(object if column.dtype.name == "category" else None)
    column = X[:, j]
    return column.to_numpy() if hasattr(column, "to_numpy") else column  # polars, or an array


def _as_float(column, name):
    try:
        return np.asarray(column, float)
    except (TypeError, ValueError):
        if any(map(is_missing, column)):
            return _as_float([np.nan if is_missing(value) else value for value in column], name)
        text = next(value for value in column if isinstance(value, str))
        raise ValueError(f"the covariate {name!r} holds {text!r}, which is not a number") from None


def _find_categorical(X, names, categorical_features) -> list[int]:
    if categorical_features is None:
        return []
    if isinstance(categorical_features, str) and categorical_features == FROM_DTYPE:
        if not is_frame(X):
            return []
        return [j for j in range(len(names)) if not _is_numeric(X, j)]
    listed: Sequence[Any] = list(np.atleast_1d(np.asarray(categorical_features, object)))
    if listed and all(isinstance(one, (bool, np.bool_)) for one in listed):
        if len(listed) != len(names):
            raise ValueError(f"categorical_features has {len(listed)} entries, X has {len(names)} columns")
        return np.flatnonzero(np.array(listed, bool)).tolist()
    return sorted({_find_column(one, names) for one in listed})


def _is_numeric(X, j):
    dtype = X.dtypes.iloc[j] if hasattr(X, "iloc") else X.dtypes[j]
    if hasattr(dtype, "is_numeric"):  # polars
        return dtype.is_numeric()
    return getattr(dtype, "kind", "O") in "iuf"


def _find_column(one, names):
    if isinstance(one, str):
        if one in names:
            return names.index(one)
    elif -len(names) <= int(one) < len(names):
        return int(one) % len(names)
    raise ValueError(f"categorical_features names {one!r}, which is not a column of X")


def _find_categories(column, name):
    values = [value for value in column if not is_missing(value)]
    try:
        return np.unique(np.asarray(values, float))
    except (TypeError, ValueError):
        kinds = {type(value) for value in values}
        if len(kinds) > 1:
            raise ValueError(f"the categories of {name!r} are of several types") from None
        return np.array(sorted(set(values)), object)
