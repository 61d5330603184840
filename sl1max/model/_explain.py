"""The greatest weights of a model, and tables to show them."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

if TYPE_CHECKING:
    from pandas import DataFrame

    from sl1max.model._model import Model

MAX_ROWS_SHOWN = 30


class Table:
    """Named columns of equal length, printed as a table.

    Parameters
    ----------
    rows : structured ndarray of shape (n_rows,)

    Attributes
    ----------
    rows : structured ndarray of shape (n_rows,)
    columns : tuple of str

    Examples
    --------
    >>> import numpy as np
    >>> from sl1max.model._explain import Table
    >>> table = Table(np.array([("wheat", 1.25), ("oil", -0.5)], [("feature", "U5"), ("weight", float)]))
    >>> table
    feature  weight
    wheat      1.25
    oil        -0.5
    >>> table["weight"]
    array([ 1.25, -0.5 ])
    >>> len(table), table.columns
    (2, ('feature', 'weight'))
    """

    def __init__(self, rows: np.ndarray):
        self.rows = rows

    @property
    def columns(self) -> tuple[str, ...]:
        return self.rows.dtype.names

    def __len__(self) -> int:
        return len(self.rows)

    def __iter__(self) -> Iterator[tuple]:
        return iter(self.rows.tolist())

    def __getitem__(self, key: Any) -> Any:
        """The column of that name; or the rows of that slice, mask or list of numbers, as a table."""
        return self.rows[key] if isinstance(key, str) else Table(np.atleast_1d(self.rows[key]))

    def __repr__(self) -> str:
        shown = self.rows[:MAX_ROWS_SHOWN]
        lines = zip(*(_format_column(name, shown[name]) for name in self.columns), strict=True)
        text = "\n".join("  ".join(line).rstrip() for line in lines)
        hidden = len(self) - len(shown)
        return f"{text}\n... {hidden} more rows" if hidden else text

    def to_pandas(self) -> DataFrame:
        """The same as a pandas DataFrame."""
        try:
            from pandas import DataFrame
        except ImportError as error:
            raise ImportError("to_pandas needs pandas: pip install pandas") from error
        return DataFrame({name: self.rows[name] for name in self.columns})


def _format_column(name, values):
    """Header and cells, padded to one width; numbers to the right."""
    kind = values.dtype.kind
    if kind == "f":
        cells = [f"{value:.4g}" for value in values]
    elif kind == "b":
        cells = ["yes" if value else "no" for value in values]
    else:
        cells = [str(value) for value in values.tolist()]
    width = max(map(len, [name, *cells]))
    return [f"{cell:>{width}}" if kind in "iuf" else f"{cell:<{width}}" for cell in (name, *cells)]


def top_features(model: Model, label: Any, n: int = 10, *, feature_names: Sequence[str] | None = None) -> Table:
    """The features with the greatest weights for a class, whatever their sign.

    Parameters
    ----------
    model : Model
    label : object
        The class; for a model trained on an indicator the number of its column.
    n : int
        How many at most. Features of weight zero are not listed.
    feature_names : sequence of str of length n_features, optional
        Names for the column ``feature``, which otherwise holds column numbers.

    Returns
    -------
    Table
        Columns ``feature`` and ``weight``, the greatest absolute weight first. For independent classes the
        weight is lambda_1 - lambda_0, what the feature adds to the log-odds.

    Examples
    --------
    >>> import sl1max
    >>> X = [[1, 0, 1], [1, 1, 0], [0, 1, 1], [0, 1, 0]]
    >>> model = sl1max.fit(X, ["spam", "spam", "ham", "ham"], distribution="joint")
    >>> model.top_features("spam", 2, feature_names=["win", "hello", "free"])["feature"].tolist()
    ['win']
    """
    if n < 0:
        raise ValueError(f"n={n!r} must not be negative")
    c = class_number(model, label)
    names = read_names(feature_names, model.n_features)
    row = model.weights[[c]]
    order = np.argsort(-np.abs(row.data), kind="stable")[:n]
    return make_table(feature=name_features(row.indices[order], names), weight=row.data[order])


def class_number(model: Model, label: Any) -> int:
    """The row of a class label."""
    for c, known in enumerate(model.classes.tolist()):
        if known == label:
            return c
    shown = ", ".join(map(str, model.classes[:5].tolist())) + (", ..." if model.n_classes > 5 else "")
    raise ValueError(f"{label!r} is not a class of the model, which has {shown}")


def make_table(**columns):
    columns = {name: np.asarray(column) for name, column in columns.items()}
    length = len(next(iter(columns.values())))
    rows = np.empty(length, [(name, column.dtype) for name, column in columns.items()])
    for name, column in columns.items():
        rows[name] = column
    return Table(rows)


def read_names(feature_names: Sequence[str] | None, n_features: int) -> np.ndarray | None:
    if feature_names is None:
        return None
    names = np.asarray(feature_names)
    if names.shape != (n_features,):
        raise ValueError(f"feature_names has shape {names.shape}: it must name all {n_features} features")
    return names


def name_features(columns, names):
    return columns if names is None else names[columns]
