"""A model and its quality on test examples as one HTML page that needs no network."""

from __future__ import annotations

import datetime
import os
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
from scipy import sparse

import sl1max
from sl1max import metrics, plot
from sl1max._data.inputs import read_features
from sl1max._utils import html
from sl1max._utils.typing import Matrix
from sl1max.model._display import DESCRIPTIONS, format_beta, gap_share, summary_rows
from sl1max.model._explain import read_names
from sl1max.model._model import LOG_HALF, Model

if TYPE_CHECKING:
    from sl1max.training._path import PathResult

N_CLASSES_DETAILED = 12  # with tables of features, and as rows of the confusion matrix
N_CLASSES_LISTED = 100
N_FEATURES = 10
N_MISTAKES = 3
N_CONTRIBUTIONS = 8


def report(
    model: Any,
    path: str | os.PathLike[str],
    X: Matrix | None = None,
    y: Matrix | None = None,
    *,
    feature_names: Sequence[str] | None = None,
    path_result: PathResult | None = None,
    title: str = "Model report",
) -> None:
    """Write an HTML page about a model: summary, certificate, classes, features and, with examples, its quality.

    The page is one file without scripts and needs no network. It needs matplotlib to be written.

    Parameters
    ----------
    model : Model or fitted estimator with a ``model_``
    path : str or path-like
        The file to write, e.g. ``"report.html"``.
    X : array, sparse matrix or frame of shape (n_samples, n_features), optional
        Test examples. With them features are ordered by their effect, weight times standard deviation.
    y : array of shape (n_samples,), or array or sparse matrix of shape (n_samples, n_classes), optional
        Their labels, or an indicator if the model was trained on one. With them the page has error, log loss,
        confusion, calibration, a reject curve and the most confident mistakes with their explanations.
    feature_names : sequence of str of length n_features, optional
        Names of the features; those of the training set, if it was a data frame, unless given.
    path_result : PathResult, optional
        What `sl1max.path` returned, to be drawn.
    title : str
        Title of the page.

    Examples
    --------
    >>> import os, tempfile
    >>> import sl1max
    >>> X, y = [[1, 0], [1, 1], [0, 1], [0, 1]], ["spam", "spam", "ham", "ham"]
    >>> file = os.path.join(tempfile.mkdtemp(), "report.html")
    >>> sl1max.report(sl1max.fit(X, y), file, X, y, feature_names=["win", "hello"])
    >>> os.path.getsize(file) > 1000
    True
    """
    if feature_names is None:
        feature_names = getattr(model, "feature_names_in_", getattr(model, "feature_names", None))
    model = getattr(model, "model_", model)
    if not isinstance(model, Model):
        raise TypeError(f"model must be a Model or a fitted estimator of sl1max, not {type(model).__name__}")
    if y is not None and X is None:
        raise ValueError("y needs X, the examples whose labels these are")
    names = read_names(feature_names, model.n_features)
    tested = None if X is None or y is None else Evaluation(model, X, y)
    sections = [("Summary", _summary(model, tested)), ("Certificate", _certificate(model))]
    sections.append(("Classes", _classes(model, tested)))
    sections.append(("Features", _features(model, X, names)))
    if tested is not None:
        sections.append(("Confusion", _confusion(model, tested)))
        sections.append(("Confidence", _confidence(tested)))
        sections += _mistakes(model, X, names, tested)
    if path_result is not None:
        sections.append(("Path", _path(path_result, names)))
    subtitle = (
        f"{DESCRIPTIONS[model.distribution, model.label_mode]}, L1-regularised with beta {format_beta(model.beta)}"
    )
    today = datetime.date.today().isoformat()
    footer = f"Written by sl1max {sl1max.__version__} on {today}."
    html.write_page(path, html.page(title, sections, subtitle=subtitle, footer=footer))


class Evaluation:
    """Predictions of a model on labelled examples, and what they are worth.

    Attributes
    ----------
    truth : csr_array of bool of shape (n_samples, n_classes)
    log_proba : ndarray of shape (n_samples, n_classes)
        Of label vectors each row is normalised.
    predicted : csr_array of bool of shape (n_samples, n_classes)
        The most probable class; if trained on an indicator with independent classes, all of at least one half.
    """

    def __init__(self, model: Model, X: Matrix, y: Matrix):
        self.is_sets = model.trained_on_indicator and model.label_mode == "independent"
        self.log_proba = model.predict_log_proba(X)
        self.labels = None if model.trained_on_indicator else model.classes
        self.y = y if sparse.issparse(y) else np.asarray(y)
        self.error = metrics.top_class_error(self.y, self.log_proba, labels=self.labels)
        self.truth = _indicator(self.y, model)
        if self.is_sets:
            self.predicted = sparse.csr_array(self.log_proba > LOG_HALF)
        else:
            one_each = np.ones(len(self), bool), self.log_proba.argmax(axis=1), np.arange(len(self) + 1)
            self.predicted = sparse.csr_array(one_each, shape=self.truth.shape)

    def __len__(self):
        return len(self.log_proba)

    @property
    def proba(self):
        return np.exp(self.log_proba)

    @property
    def which(self):
        """What calibration is about."""
        return "all" if self.is_sets else "top"

    @property
    def log_loss(self):
        """Mean of -ln p of the truth; of label sets, the sum over the classes."""
        held = self.truth.toarray()
        if not self.is_sets:
            return -np.sum(self.log_proba, where=held) / max(held.sum(), 1)
        log_not = np.log1p(-np.minimum(np.exp(self.log_proba), 1 - 1e-15))
        return -np.where(held, self.log_proba, log_not).sum() / len(self)

    def measures(self):
        """Pairs of a name and a number."""
        found = [("Test examples", len(self)), ("Error, share of wrong top classes", self.error)]
        found.append(("Log loss, nats for each example", self.log_loss))
        found.append(("Calibration error", metrics.calibration_error(
            self.y, self.proba, which=self.which, labels=self.labels
        )))  # fmt: skip
        if self.is_sets:
            precision, recall, f_measure = rates(self.truth.multiply(self.predicted).sum(), self.predicted.sum(),
                                                 self.truth.sum())  # fmt: skip
            found += [("Precision (micro)", precision), ("Recall (micro)", recall), ("F-measure (micro)", f_measure)]
        return found


def _indicator(y, model):
    """Which example has which class of the model."""
    if y.ndim == 2:
        return sparse.csr_array(y).astype(bool)
    place = {label: c for c, label in enumerate(model.classes.tolist())}
    codes = np.array([place.get(label, -1) for label in y.tolist()])
    rows = np.flatnonzero(codes >= 0)
    return sparse.csr_array((np.ones(len(rows), bool), (rows, codes[rows])), shape=(len(y), model.n_classes))


def rates(n_hits: Any, n_predicted: Any, n_true: Any) -> tuple[Any, Any, Any]:
    """Precision, recall and F-measure of counts; NaN where they are undefined."""
    with np.errstate(invalid="ignore", divide="ignore"):
        hits = np.asarray(n_hits, float)
        return hits / n_predicted, hits / n_true, 2 * hits / (np.asarray(n_predicted) + n_true)


# Sections


def _summary(model, tested):
    parts = [html.table(["", ""], summary_rows(model))]
    if tested is not None:
        measures = [(name, html.number(value)) for name, value in tested.measures()]
        parts = [html.grid([*parts, html.table(["On the test examples", ""], measures)])]
    return parts


def _certificate(model):
    gap, zero = np.atleast_1d(model.dual_gap), np.atleast_1d(model.objective_zero)
    if not np.isfinite(gap).all():
        return [html.paragraph("This learner gives no bound on the distance to its optimum.")]
    share = gap_share(model)
    n_open = int(np.sum(~np.atleast_1d(model.converged)))
    rows = [
        ("Objective", float(np.sum(model.objective))),
        ("Objective with all weights zero", float(zero.sum())),
        ("Duality gap", float(gap.sum())),
        ("Greatest relative gap of a problem", f"{share.max():.3g}"),
        ("Target (tol)", f"{model.tol:g}"),
        ("Problems solved", f"{len(gap) - n_open} of {len(gap)}"),
    ]
    parts = [
        html.paragraph(
            "The duality gap is a proven upper bound on how far the penalised loss of this model is above the smallest "
            "possible one. It was computed from the weights, not estimated."
        ),
        html.table(["", ""], rows),
    ]
    if n_open:
        worst = np.argsort(-share)[:N_FEATURES]
        names = [str(model.classes[c]) if len(gap) > 1 else "all classes" for c in worst]
        parts.append(html.paragraph("The fit did not reach its target everywhere. Largest gaps:", kind="warning"))
        parts.append(html.table(["class", "relative gap"], zip(names, share[worst].tolist(), strict=True)))
    return parts


def _classes(model, tested):
    sizes = np.diff(model.weights.indptr)
    columns = ["class", "share in training", "weights"]
    values = [model.class_prior, sizes]
    if tested is not None:
        n_true, n_predicted = (np.asarray(one.sum(axis=0)).ravel() for one in (tested.truth, tested.predicted))
        n_hits = np.asarray(tested.truth.multiply(tested.predicted).sum(axis=0)).ravel()
        columns += ["test examples", "precision", "recall", "F-measure"]
        values += [n_true, *rates(n_hits, n_predicted, n_true)]
    order = np.argsort(-model.class_prior, kind="stable")[:N_CLASSES_LISTED]
    rows = [[str(model.classes[c]), *(value[c].item() for value in values)] for c in order]
    hidden = model.n_classes - len(order)
    more = [html.paragraph(f"The {len(order)} most frequent classes; {hidden:,} more are left out.")] if hidden else []
    return [*more, html.table(columns, rows)]


def _features(model, X, names):
    by = "weight" if X is None else "effect"
    X = None if X is None else read_features(X).matrix
    told = "their weight" if by == "weight" else "their effect, weight times standard deviation in the test examples"
    parts = [html.paragraph(f"Features ordered by {told}. Positive values speak for the class.")]
    if model.n_classes == 2 and model.label_mode == "exclusive":
        pairs = [(model.classes[1], model.classes[0])]
    else:
        order = np.argsort(-model.class_prior, kind="stable")[:N_CLASSES_DETAILED]
        pairs = [(model.classes[c], None) for c in order]
    tables = []
    for label, against in pairs:
        title = f"{label}" + ("" if against is None else f" against {against}")
        blocks = []
        for sign, head in (("positive", "for"), ("negative", "against")):
            top = model.top_features(label, N_FEATURES, by=by, sign=sign, against=against, X=X, feature_names=names)
            if len(top):
                blocks.append(html.table([head, *top.columns[1:]], [[str(row[0]), *row[1:]] for row in top]))
        shown = html.side_by_side(blocks) if blocks else html.paragraph("No weights.")
        tables.append(html.block([html.heading(title), shown]))
    if model.n_classes > len(pairs) and len(pairs) == N_CLASSES_DETAILED:
        parts.append(html.paragraph(f"The {len(pairs)} most frequent of {model.n_classes:,} classes."))
    return [*parts, html.grid(tables)]


def _confusion(model, tested):
    counts = (tested.truth.astype(np.int64).T @ tested.predicted.astype(np.int64)).toarray()
    labels = [str(label) for label in model.classes.tolist()]
    if tested.is_sets:
        told = "Examples that have the class of the row and were given the class of the column."
    else:
        told = "Examples of the class of the row that were given the class of the column."
    if model.n_classes <= N_CLASSES_DETAILED:
        return [html.paragraph(told), html.table(["true class", *labels], zip_rows(labels, counts))]
    np.fill_diagonal(counts, 0)
    order = np.argsort(-counts, axis=None, kind="stable")[:N_CLASSES_DETAILED]
    found = [(c, d) for c, d in zip(*np.unravel_index(order, counts.shape), strict=True) if counts[c, d]]
    rows = [(labels[c], labels[d], int(counts[c, d])) for c, d in found]
    return [html.paragraph("The most frequent confusions."), html.table(["true class", "predicted", "examples"], rows)]


def zip_rows(labels: Sequence[str], counts: np.ndarray) -> list[list]:
    """Rows of a table with their names in front."""
    return [[label, *row.tolist()] for label, row in zip(labels, counts, strict=True)]


def _confidence(tested):
    calibration = plot.plot_calibration(tested.y, tested.proba, which=tested.which, labels=tested.labels)
    reject = plot.plot_reject(tested.y, tested.log_proba, labels=tested.labels)
    figures = [
        html.figure(
            calibration,
            "Calibration: predictions in bins of nearly equal size. On the diagonal a probability of 80 % is right in "
            "80 of 100 cases.",
            alt="Share of right predictions against their probability",
        ),
        html.figure(
            reject,
            "Reject curve: the error that remains if the least confident examples are left to someone else.",
            alt="Error among the examples kept against the share rejected",
        ),
    ]
    return [html.grid(figures)]


def _mistakes(model, X, names, tested):
    """The section of the most confident mistakes, if there are any; of label vectors only."""
    if model.trained_on_indicator:
        return []
    wrong = np.asarray(tested.truth.multiply(tested.predicted).sum(axis=1)).ravel() == 0
    confident = np.where(wrong, tested.log_proba.max(axis=1), -np.inf)
    order = [i for i in np.argsort(-confident, kind="stable")[:N_MISTAKES] if wrong[i]]
    if not order:
        return []
    rows = sparse.csr_array(read_features(X).matrix)[order]
    blocks = []
    for k, i in enumerate(order):
        predicted = model.classes[tested.log_proba[i].argmax()]
        true = tested.y[i]
        against = true if true in model.classes and model.label_mode == "exclusive" else None
        found = model.explain(rows[[k]], predicted, against=against, feature_names=names)
        top = found.contributions[:N_CONTRIBUTIONS]
        told = "Probability" if model.label_mode == "exclusive" else "Probability among the classes"
        said = (
            f"{told} {np.exp(tested.log_proba[i].max()):.3f}. Score of {found.title}: {found.score:.3g}, "
            f"intercept {found.intercept:.3g}."
        )
        rows_shown = [[str(row[0]), *row[1:]] for row in top]
        parts = [html.heading(f"Example {i}: {true}, predicted {predicted}"), html.paragraph(said)]
        blocks.append(html.block([*parts, html.table(top.columns, rows_shown)]))
    told = "Wrong predictions with the highest probability, and the features that contribute most to their scores."
    return [("Confident mistakes", [html.paragraph(told), html.grid(blocks)])]


def _path(result, names):
    classes = result.models[0].classes
    shown = classes[-1:] if len(classes) == 2 else classes[:4]
    figures = [
        html.figure(
            plot.plot_path(result, label, feature_names=names),
            alt=f"Weights of class {label} along the path of beta",
            kind="png",
        )
        for label in shown
    ]
    every = np.unique(np.linspace(0, len(result) - 1, N_FEATURES).round().astype(int))
    gaps = result.gaps.reshape(len(result), -1).sum(axis=1)
    rows = [(float(result.betas[k]), int(result.n_nonzero[k]), float(gaps[k])) for k in every]
    return [html.grid(figures), html.table(["beta", "nonzero weights", "duality gap"], rows)]
