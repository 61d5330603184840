"""``sl1max predict``: predict the labels of examples."""

from __future__ import annotations

import json

import numpy as np
from scipy import sparse

from sl1max._utils.files import atomic_write
from sl1max.cli._arguments import DATA_HELP, add_data_options, add_force, positive
from sl1max.cli._errors import OK, InputError, as_input_errors
from sl1max.cli._evaluate import chunks
from sl1max.cli._examples import STREAM, load_model, read_rows
from sl1max.cli._outputs import check_output, is_prediction

SUMMARY = "predict the labels of examples"
EXAMPLES = (
    """\
output: a line for each example: its label; for a model of label sets the labels with a probability above one
half, separated by commas, or nothing. --top K: "label:probability" of the K most likely labels. --proba: a
line with the labels, then for each example the probabilities of all classes, separated by tabs. Labels in the
data are ignored.

examples:
  sl1max predict model.sl1max new.svm --output labels.txt
  sl1max predict model.sl1max new.svm --top 3
  sl1max predict model.sl1max X.npz --proba --json
  echo "wheat prices rise" | sl1max predict news.sl1max -

"""
    + DATA_HELP
)


def add_arguments(command):
    command.add_argument("model", metavar="MODEL", help="file that train wrote")
    command.add_argument("data", metavar="DATA", help="examples: svmlight, .npz or texts; - is standard input")
    add_data_options(command, with_labels=False)
    command.add_argument("--output", metavar="FILE", help="output file, instead of standard output")
    what = command.add_mutually_exclusive_group()
    what.add_argument("--top", type=positive, metavar="K", help="write the K most likely classes")
    what.add_argument("--proba", action="store_true", help="write the probabilities of all classes")
    add_force(command)
    command.add_argument("--json", action="store_true", help="write one JSON object per example")


def run(args):
    model = load_model(args.model)
    if args.output == STREAM:
        args.output = None
    if args.output is not None:
        with as_input_errors():
            inputs = (args.model, args.data)
            check_output(
                args.output, inputs, "a file of predictions", is_prediction(model.classes.tolist()), args.force
            )
    pieces = read_rows(model, args)
    lines = prediction_lines(model, pieces, top=args.top, proba=args.proba, as_json=args.json)
    if args.output is None:
        for line in lines:
            print(line)
        return OK
    with atomic_write(args.output) as stream:
        for line in lines:
            stream.write(f"{line}\n".encode())
    return OK


def prediction_lines(model, pieces, *, top, proba, as_json):
    """A line for each example."""
    labels = model.classes.tolist()
    sets = model.trained_on_indicator and model.label_mode == "independent"
    if not as_json:
        separator = "\t" if proba else "," if sets and top is None else "\n"
        for label in map(str, labels):
            if separator in label or len(label.splitlines()) > 1:
                raise InputError(f"the label {label!a} contains a separator of labels or lines: use --json")
    if proba and not as_json:
        yield "\t".join(map(str, labels))
    for rows in (rows for X in pieces for rows in chunks(model, X)):
        if proba or top is not None:
            for probs in model.predict_proba(rows):
                if proba and not as_json:
                    yield "\t".join(f"{prob:.6g}" for prob in probs)
                elif proba:
                    yield json.dumps({"proba": dict(zip(map(str, labels), probs.tolist(), strict=True))})
                else:
                    best = np.argsort(-probs, kind="stable")[:top].tolist()
                    if as_json:
                        best = [{"label": labels[c], "proba": float(probs[c])} for c in best]
                        yield json.dumps({"top": best})
                    else:
                        yield " ".join(f"{labels[c]}:{probs[c]:.6g}" for c in best)
        elif sets:
            predicted = sparse.csr_array(model.predict(rows))
            for columns in np.split(predicted.indices, predicted.indptr[1:-1]):
                held = [labels[c] for c in columns]
                yield json.dumps({"labels": held}) if as_json else ",".join(map(str, held))
        else:
            for label in model.predict_top_k(rows, 1)[:, 0].tolist():
                yield json.dumps({"label": label}) if as_json else str(label)
