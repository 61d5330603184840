"""``sl1max report``: write an HTML page about a model."""

from __future__ import annotations

import importlib.util

import sl1max
from sl1max.cli._arguments import DATA_HELP, add_data_options, add_force
from sl1max.cli._errors import OK, InputError, as_input_errors, blamed_on
from sl1max.cli._evaluate import match_known_labels
from sl1max.cli._examples import first_feature, load_model, read_labelled, read_names
from sl1max.cli._outputs import check_output, is_html

SUMMARY = "write an HTML page about a model and its quality"
EXAMPLES = (
    """\
output: one HTML file without scripts that needs no network: summary, certificate, classes, features and, with
labelled examples, confusion, calibration, reject curve and the most confident mistakes. Needs matplotlib.

examples:
  sl1max report model.sl1max test.svm report.html --feature-names words.txt
  sl1max report model.sl1max report.html                             (the model alone)

"""
    + DATA_HELP
)


def add_arguments(command):
    command.add_argument("model", metavar="MODEL", help="file that train wrote")
    command.add_argument(
        "data", metavar="DATA", nargs="?", help="labelled examples: svmlight, .npz or texts; - is standard input"
    )
    command.add_argument("output", metavar="OUTPUT", help="file to write, e.g. report.html")
    add_data_options(command)
    command.add_argument("--feature-names", metavar="FILE", help="names of the features, one per line")
    command.add_argument("--title", default="Model report", help="title of the page (Model report)")
    add_force(command)


def run(args):
    if importlib.util.find_spec("matplotlib") is None:
        raise InputError("report needs matplotlib: pip install matplotlib")
    model = load_model(args.model)
    with as_input_errors():
        inputs = (args.model, args.data, args.labels, args.feature_names)
        check_output(args.output, inputs, "an HTML page", is_html, args.force)
    names = model.feature_names
    if args.feature_names is not None:
        names = read_names(args.feature_names, model.n_features)
    elif names is None:
        first = first_feature(model, args.zero_based)
        names = [f"feature {first + j}" for j in range(model.n_features)]
    X = y = None
    if args.data is not None:
        X, y = read_truth(model, args)
    with blamed_on(args.data or args.model):
        sl1max.report(model, args.output, X, y, feature_names=names, title=args.title)
    return OK


def read_truth(model, args):
    """Return the examples, with labels in the form of the training set."""
    examples = read_labelled(model, args)
    truth, *_ = match_known_labels(model.classes, examples, args.data)
    if model.trained_on_indicator:
        return examples.X, truth
    if examples.columns is not None:
        raise InputError(f"{args.data}: its examples have sets of labels, but the model has one label per example")
    return examples.X, examples.y
