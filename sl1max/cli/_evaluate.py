"""``sl1max evaluate``: compare predictions with the labels of examples."""

from __future__ import annotations

import warnings
from typing import Any

import numpy as np
from scipy import sparse

from sl1max.cli._arguments import DATA_HELP, add_data_options, add_json
from sl1max.cli._errors import OK, InputError
from sl1max.cli._examples import Examples, load_model, read_labelled
from sl1max.cli._results import print_report
from sl1max.metrics import top_class_error
from sl1max.model._model import LOG_HALF, Model

SUMMARY = "compare predictions with the labels of examples"
EXAMPLES = (
    """\
output: error, the share of examples whose most likely class is not among their labels; log_loss, the mean
of -ln p(label) (exclusive classes); for label sets also precision, recall and their harmonic mean at the
threshold one half, over all examples and classes together. A label that the model has not seen counts as
missed, and a warning says which; log_loss leaves it out.

examples:
  sl1max evaluate model.sl1max test.svm
  sl1max evaluate model.sl1max X_test.npz --labels y_test.npy --json
  sl1max evaluate news.sl1max test.csv --label-column topic

"""
    + DATA_HELP
)

CELLS_AT_ONCE = 1 << 22  # examples x classes of a prediction held in memory


def add_arguments(command):
    command.add_argument("model", metavar="MODEL", help="file that train wrote")
    command.add_argument("data", metavar="DATA", help="labelled examples: svmlight, .npz or texts; - is standard input")
    add_data_options(command)
    add_json(command)


def run(args):
    model = load_model(args.model)
    print_report(measure(model, read_labelled(model, args), args.data), args.json)
    return OK


def measure(model: Model, examples: Examples, name):
    """Compute error, log loss and other metrics of a model on labelled examples."""
    truth, unseen, n_unseen = match_known_labels(model.classes, examples, name)
    errors = log_loss = n_hits = n_given = 0.0
    start = 0
    for rows in chunks(model, examples.X):
        held = truth[start : start + rows.shape[0]]
        start += rows.shape[0]
        errors += rows.shape[0] * top_class_error(held, model._decide(rows))
        log_proba = model.predict_log_proba(rows)
        log_loss -= held.multiply(log_proba).sum()
        given = log_proba > LOG_HALF
        n_given += given.sum()
        n_hits += held.multiply(given).sum()
    report: dict[str, Any] = {"examples": len(examples), "error": errors / len(examples)}
    if model.label_mode == "exclusive":
        report["log_loss"] = log_loss / truth.nnz if truth.nnz else None
    if model.trained_on_indicator:
        n_true = truth.nnz + n_unseen
        report["precision"] = n_hits / n_given if n_given else None
        report["recall"] = n_hits / n_true if n_true else None
        report["f_measure"] = 2 * n_hits / (n_given + n_true) if n_given + n_true else None
    report["unseen_labels"] = unseen
    return {key: float(value) if isinstance(value, np.floating) else value for key, value in report.items()}


def match_known_labels(classes, examples, name):
    """Like `match_labels`, with a warning for labels that the model does not have."""
    truth, unseen, n_unseen = match_labels(classes, examples, name)
    if unseen:
        shown = ", ".join(map(str, unseen[:5])) + (", ..." if len(unseen) > 5 else "")
        warnings.warn(f"{name}: labels that the model has not seen: {shown}", UserWarning, stacklevel=3)
    return truth, unseen, n_unseen


def match_labels(classes, examples, name):
    """Return an indicator of the model's classes, the labels that it does not have, and their counts."""
    if examples.columns is None:
        labels, codes = np.unique(examples.y, return_inverse=True)
        indptr = np.arange(len(codes) + 1)
        y = sparse.csr_array((np.ones(len(codes)), codes, indptr), shape=(len(codes), len(labels)))
    else:
        labels, y = examples.columns, examples.y.copy()
        y.eliminate_zeros()
    if (labels.dtype.kind in "UTO") != (classes.dtype.kind in "UTO"):
        raise InputError(f"{name}: its labels are {labels.dtype}, those of the model {classes.dtype}")
    column = {label: c for c, label in enumerate(classes.tolist())}
    target = np.array([column.get(label, -1) for label in labels.tolist()], np.int64)
    cells_of = y.tocoo()
    known = target[cells_of.col] >= 0
    cells = (cells_of.row[known], target[cells_of.col[known]])
    truth = sparse.csr_array((np.ones(known.sum()), cells), shape=(len(examples), len(classes)))
    unseen = labels[np.unique(cells_of.col[~known])].tolist()
    return truth, unseen, int((~known).sum())


def chunks(model, X):
    """Yield the rows of X in pieces whose predictions fit in memory."""
    step = max(1, CELLS_AT_ONCE // model.n_classes)
    for start in range(0, X.shape[0], step):
        yield X[start : start + step]
