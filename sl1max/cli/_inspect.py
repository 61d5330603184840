"""``sl1max inspect``: show the weights and properties of a model."""

from __future__ import annotations

import numpy as np

from sl1max.cli._arguments import add_json, positive
from sl1max.cli._errors import OK, blamed_on
from sl1max.cli._examples import load_model, read_names
from sl1max.cli._results import describe, print_report, records
from sl1max.model._explain import Table, class_number, top_features

SUMMARY = "show the weights and properties of a model"
EXAMPLES = """\
Features without names are numbered as in the file that the model was trained on: from 1 in svmlight files
(with --zero-based from 0); from 0, as columns are, in .npz files and in models that Python made.

examples:
  sl1max inspect model.sl1max
  sl1max inspect model.sl1max --class 3 --class 7 --top 20 --feature-names words.txt
  sl1max inspect model.sl1max --json
"""


def add_arguments(command):
    command.add_argument("model", metavar="MODEL", help="file that train wrote")
    command.add_argument(
        "--class",
        dest="labels",
        action="append",
        metavar="LABEL",
        help="list the largest weights of this class",
    )
    command.add_argument("--top", type=positive, default=10, metavar="N", help="number of features to list (10)")
    command.add_argument("--feature-names", metavar="FILE", help="names of the features, one per line")
    command.add_argument("--zero-based", action="store_true", help="number the features from 0")
    add_json(command)


def run(args):
    model = load_model(args.model)
    names, first = feature_names(model, args)
    known = {str(label): label for label in model.classes.tolist()}
    for text in args.labels or ():
        if text not in known:
            with blamed_on(args.model):
                class_number(model, text)
    wanted = list(known.values()) if args.labels is None else [known[text] for text in args.labels]
    numbered = {} if first is None else {"first_feature": first}
    tops = {label: top_features(model, label, args.top, feature_names=names) for label in wanted}
    if args.json:
        found = [{"class": label, "features": records(top)} for label, top in tops.items()]
        print_report({"model": args.model} | describe(model) | numbered | {"top_features": found}, as_json=True)
        return OK
    print_report({"model": args.model} | describe(model) | numbered, as_json=False)
    if args.labels is None:
        print(f"\n{_overview(model, names)}")
        return OK
    for label, top in tops.items():
        print(f"\nclass {label}:", f"\n{top!r}" if len(top) else " no weights", sep="")
    return OK


def feature_names(model, args):
    """Names of the features, or their numbers as in the data files, and the first number."""
    if args.feature_names is not None:
        return read_names(args.feature_names, model.n_features), None
    if model.feature_names is not None:
        return model.feature_names, None
    first = 0 if args.zero_based else (model.source or {}).get("first_feature", 0)
    return np.arange(first, first + model.n_features), first


def _overview(model, names):
    """One line per class: its share, the number of its weights, and the largest weights, positive ones first."""
    sizes = np.diff(model.weights.indptr)
    first = []
    for label in model.classes.tolist():
        found = [top_features(model, label, 5, sign=sign, feature_names=names) for sign in ("positive", "negative")]
        first.append(" ".join(f"{name}:{weight:+.3g}" for name, weight in [*found[0], *found[1]][:5]))
    rows = [
        (str(label), prior, size, text)
        for label, prior, size, text in zip(model.classes.tolist(), model.class_prior, sizes, first, strict=True)
    ]
    kinds = [("class", object), ("share", float), ("weights", int), ("greatest weights", object)]
    return repr(Table(np.array(rows, kinds)))
