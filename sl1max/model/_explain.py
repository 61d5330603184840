"""Which features matter for a class and for one example, and tables to show them."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Literal, get_args

import numpy as np
from scipy import sparse

from sl1max._data.inputs import read_features, read_piece
from sl1max._utils import html
from sl1max._utils.typing import Matrix

if TYPE_CHECKING:
    from pandas import DataFrame

    from sl1max.model._model import Model

MAX_ROWS_SHOWN = 30
Ranking = Literal["weight", "effect"]
Sign = Literal["both", "positive", "negative"]


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
        return self.rows.dtype.names or ()

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

    def _repr_html_(self) -> str:
        hidden = len(self) - MAX_ROWS_SHOWN
        caption = f"the first {MAX_ROWS_SHOWN} of {len(self)} rows" if hidden > 0 else None
        return html.table(self.columns, self.rows[:MAX_ROWS_SHOWN].tolist(), caption=caption)

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


def top_features(
    model: Model,
    label: Any,
    n: int = 10,
    *,
    by: Ranking = "weight",
    sign: Sign = "both",
    against: Any = None,
    X: Matrix | None = None,
    feature_names: Sequence[str] | np.ndarray | None = None,
) -> Table:
    """List the most important features of a class.

    Parameters
    ----------
    model : Model
    label : object
        The class; for a model trained on an indicator the number of its column.
    n : int
        Maximum number of features. Features of weight zero are not listed.
    by : {"weight", "effect"}
        Order of the features, largest absolute value first. "effect" is the weight times the standard
        deviation of the feature in ``X``: rare features with large weights then come after common ones.
    sign : {"both", "positive", "negative"}
        "positive": only features with positive weight, which are evidence for the class. "negative": only those with
        negative weight.
    against : object, optional
        Another class, to compare with: the weights are those of ``label`` less those of ``against``.
    X : array, sparse matrix or frame of shape (n_samples, n_features), optional
        Examples for ``by="effect"``, such as the training set.
    feature_names : sequence of str of length n_features, optional
        Names for the column ``feature``, which otherwise holds column numbers.

    Returns
    -------
    Table
        Columns ``feature`` and ``weight``; for ``by="effect"`` also ``effect``. For independent classes the
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
    for option, value, choices in (("by", by, get_args(Ranking)), ("sign", sign, get_args(Sign))):
        if value not in choices:
            raise ValueError(f"{option}={value!r} is unknown: it must be one of {', '.join(map(repr, choices))}")
    if by == "effect" and X is None:
        raise ValueError('by="effect" needs X, examples that say how much each feature varies')
    names = read_names(feature_names, model.n_features)
    row = weights_of(model, label, against)
    keep = {"both": row.data != 0, "positive": row.data > 0, "negative": row.data < 0}[sign]
    columns, weight = row.indices[keep], row.data[keep]
    ranked_by = weight
    if X is not None and by == "effect":
        ranked_by = weight * column_deviation(X, model.n_features)[columns]
    order = np.argsort(-np.abs(ranked_by), kind="stable")[:n]
    found = {"feature": name_features(columns[order], names), "weight": weight[order]}
    return make_table(**found, **({"effect": ranked_by[order]} if by == "effect" else {}))


@dataclass(frozen=True, eq=False, repr=False)
class Explanation:
    """How the score of one example comes about; returned by `Model.explain`.

    Attributes
    ----------
    label : object
        The class whose score it is.
    against : object or None
        The class whose score has been subtracted.
    score : float
        Value of `Model.decision_function` for the class, less that for ``against``: ``intercept`` plus the sum of
        the contributions.
    intercept : float
        What every example has.
    contributions : Table
        A row for each feature of the example with a nonzero weight: ``feature``, ``value``, ``weight`` and
        ``contribution``, which is value times weight; the greatest absolute contribution first.

    Examples
    --------
    >>> import sl1max
    >>> X, y = [[1, 0, 1], [1, 1, 0], [0, 1, 1], [0, 1, 0]], ["spam", "spam", "ham", "ham"]
    >>> model = sl1max.fit(X, y, beta=0.1)
    >>> found = model.explain(X[0], "spam", feature_names=["win", "hello", "free"])
    >>> bool(abs(found.intercept + found.contributions["contribution"].sum() - found.score) < 1e-12)
    True
    """

    label: Any
    against: Any
    score: float
    intercept: float
    contributions: Table

    @property
    def title(self) -> str:
        """The class, and the one compared with."""
        return f"class {self.label}" + ("" if self.against is None else f" against {self.against}")

    @property
    def _sum(self):
        total = float(self.contributions["contribution"].sum())
        return f"score {self.score:.4g} = intercept {self.intercept:.4g} + contributions {total:.4g}"

    def __repr__(self) -> str:
        rows = repr(self.contributions) if len(self.contributions) else "no feature of the example has a weight"
        return f"{self.title}: {self._sum}\n{rows}"

    def _repr_html_(self) -> str:
        said = html.paragraph(html.Html("<strong>"), self.title, html.Html("</strong>: "), self._sum)
        return html.block([said, html.Html(self.contributions._repr_html_())])


def explain(
    model: Model,
    x: Matrix,
    label: Any = None,
    *,
    against: Any = None,
    feature_names: Sequence[str] | np.ndarray | None = None,
) -> Explanation:
    """Explain the score of one example by the contributions of its features.

    Parameters
    ----------
    model : Model
    x : array of shape (n_features,), or array, sparse matrix or frame of shape (1, n_features)
        The example.
    label : object, optional
        The class whose score is explained; unless given, the one with the greatest score.
    against : object, optional
        Another class: the difference of the two scores is explained. Unless given, and if there are two exclusive
        classes, the other one.
    feature_names : sequence of str of length n_features, optional
        Names for the column ``feature``, which otherwise holds column numbers.

    Returns
    -------
    Explanation

    Examples
    --------
    >>> import sl1max
    >>> X, y = [[1, 0, 1], [1, 1, 0], [0, 1, 1], [0, 1, 0]], ["spam", "spam", "ham", "ham"]
    >>> model = sl1max.fit(X, y, beta=0.1)
    >>> found = model.explain(X[0], feature_names=["win", "hello", "free"])
    >>> found.title, found.contributions["feature"].tolist()
    ('class spam against ham', ['win'])
    """
    names = read_names(feature_names, model.n_features)
    x = read_example(x, model.n_features)
    if label is None:
        scores = (model.weights @ x.T).toarray().ravel() + model.intercept
        label = model.classes.tolist()[scores.argmax()]
    if against is None and model.n_classes == 2 and model.label_mode == "exclusive":
        against = model.classes.tolist()[1 - class_number(model, label)]
    weights = weights_of(model, label, against).toarray().ravel()
    intercept = model.intercept[class_number(model, label)]
    if against is not None:
        intercept = intercept - model.intercept[class_number(model, against)]
    value, weight = x.data, weights[x.indices]
    contribution = value * weight
    order = np.argsort(-np.abs(contribution), kind="stable")
    order = order[contribution[order] != 0]
    table = make_table(
        feature=name_features(x.indices[order], names),
        value=value[order],
        weight=weight[order],
        contribution=contribution[order],
    )
    return Explanation(label, against, float(intercept + contribution.sum()), float(intercept), table)


def weights_of(model: Model, label: Any, against: Any = None) -> sparse.csr_array:
    """Weights of a class, less those of another one, a csr_array (1, n_features)."""
    row = model.weights[[class_number(model, label)]]
    if against is None:
        return row
    difference = sparse.csr_array(row - model.weights[[class_number(model, against)]])
    difference.eliminate_zeros()
    return difference


def read_example(x: Matrix, n_features: int) -> sparse.csr_array:
    """One example as a canonical csr_array (1, n_features)."""
    example: Any = x  # numpy calls the methods of a sparse array
    row = read_piece(np.reshape(example, (1, -1)) if np.ndim(example) == 1 else x)
    if row.shape != (1, n_features):
        raise ValueError(f"x has shape {row.shape}: it must be one example of {n_features} features")
    return row


def column_deviation(X: Matrix, n_features: int) -> np.ndarray:
    """The standard deviation of each column."""
    matrix = read_features(X).matrix
    if matrix.shape[1] != n_features:
        raise ValueError(f"X has {matrix.shape[1]} features, but the model was trained with {n_features}")
    if not sparse.issparse(matrix):
        return matrix.std(axis=0)
    mean = np.asarray(matrix.mean(axis=0)).ravel()
    # Deviations from the mean, not squares less the squared mean, which cancel where values are large.
    column = np.repeat(np.arange(n_features), np.diff(matrix.indptr))
    stored = np.bincount(column, (matrix.data - mean[column]) ** 2, minlength=n_features)
    empty = matrix.shape[0] - np.diff(matrix.indptr)
    return np.sqrt((stored + empty * mean**2) / matrix.shape[0])


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


def read_names(feature_names: Sequence[str] | np.ndarray | None, n_features: int) -> np.ndarray | None:
    if feature_names is None:
        return None
    names = np.asarray(feature_names)
    if names.shape != (n_features,):
        raise ValueError(f"feature_names has shape {names.shape}: it must name all {n_features} features")
    return names


def name_features(columns, names):
    return columns if names is None else names[columns]
