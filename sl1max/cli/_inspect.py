"""``sl1max inspect``: show what a model has learnt."""

from __future__ import annotations

import numpy as np

from sl1max.cli._arguments import add_json, positive
from sl1max.cli._errors import OK, blamed_on
from sl1max.cli._examples import load_model, read_names
from sl1max.cli._results import describe, print_report, records
from sl1max.model._explain import Table, class_number, top_features

SUMMARY = "show what a model has learnt"
EXAMPLES = """\
examples:
  sl1max inspect model.sl1max
  sl1max inspect model.sl1max --class 3 --class 7 --top 20 --feature-names words.txt
  sl1max inspect model.sl1max --json
"""


def add_arguments(command):
    command.add_argument("model", metavar="MODEL", help="file that train wrote")
    command.add_argument(
        "--class", dest="labels", action="append", metavar="LABEL", help="list the top features of this class"
    )
    command.add_argument("--top", type=positive, default=10, metavar="N", help="how many to list (10)")
    command.add_argument("--feature-names", metavar="FILE", help="a name for each feature, one in a line")
    add_json(command)


def run(args):
    model = load_model(args.model)
    names = None if args.feature_names is None else read_names(args.feature_names, model.n_features)
    known = {str(label): label for label in model.classes.tolist()}
    for text in args.labels or ():
        if text not in known:
            with blamed_on(args.model):
                class_number(model, text)
    wanted = list(known.values()) if args.labels is None else [known[text] for text in args.labels]
    tops = {label: top_features(model, label, args.top, feature_names=names) for label in wanted}
    if args.json:
        tops = [{"class": label, "features": records(top)} for label, top in tops.items()]
        print_report({"model": args.model} | describe(model) | {"top_features": tops}, as_json=True)
        return OK
    print_report({"model": args.model} | describe(model), as_json=False)
    if args.labels is None:
        print(f"\n{_overview(model, tops)}")
        return OK
    for label, top in tops.items():
        print(f"\nclass {label}:", f"\n{top!r}" if len(top) else " no weights", sep="")
    return OK


def _overview(model, tops):
    """A line for each class: its share, the number of its weights, and the first of them."""
    sizes = np.diff(model.weights.indptr)
    first = [" ".join(f"{name}:{weight:+.3g}" for name, weight in top[:5]) for top in tops.values()]
    rows = [
        (str(label), prior, size, text)
        for label, prior, size, text in zip(tops, model.class_prior, sizes, first, strict=True)
    ]
    kinds = [("class", object), ("share", float), ("weights", int), ("greatest weights", object)]
    return repr(Table(np.array(rows, kinds)))
