"""``sl1max train``: train a model and save it."""

from __future__ import annotations

import os
import sys
import time
import warnings
from dataclasses import replace

import numpy as np

import sl1max
from sl1max._data.inputs import OPTIONS
from sl1max.cli._arguments import (
    DATA_HELP,
    NUMBERS,
    add_data_options,
    add_force,
    add_json,
    check_numbers,
    option_of,
    positive,
)
from sl1max.cli._errors import NOT_CONVERGED, OK, InputError, as_input_errors, blamed_on
from sl1max.cli._evaluate import match_known_labels, measure
from sl1max.cli._examples import read_examples
from sl1max.cli._outputs import check_distinct, check_output, is_model
from sl1max.cli._results import describe, finite, print_report, records
from sl1max.exceptions import CheckpointError, FitError

SUMMARY = "train a model and save it"
EXAMPLES = (
    """\
examples:
  sl1max train model.sl1max train.svm.gz
  sl1max train model.sl1max train.svm --distribution joint --beta 0.3 --jobs 4
  sl1max train model.sl1max train.svm --C 1                      (as in scikit-learn)
  sl1max train model.sl1max X.npz --labels y.npy --holdout 0.2 --seed 1
  sl1max train model.sl1max train.svm --checkpoint train.ckpt        (again after a crash: it goes on)
  sl1max train model.sl1max train.svm --learner adaboost --n-estimators 200
  sl1max train model.sl1max train.svm --learner auto --jobs 4        (the best of all, and what was tried)
  sl1max train model.sl1max train.svm --learner auto --validation dev.svm

The scores of a linear SVM (--learner svm) are margins: what predict makes of them are no probabilities.

"""
    + DATA_HELP
)

CHOICES = {
    "distribution": ("conditional", "what is modelled: p(c|x), p(x, c) or p(x|c)"),
    "label_mode": (
        "auto", "one class for each example, or a yes-or-no question for each class; auto: by the labels",
    ),
    "beta_rule": ("deviation", "scale beta by standard deviations / sqrt(m), or by 1 / m"),
    "multilabel_weighting": ("duplicate", "exclusive classes: an example with K labels counts K times, or once"),
    "solver": ("auto", "sequential is the algorithm of the paper"),
}  # fmt: skip

# Options of train that belong to one learner; those of the others are named by the parameters they set.
MAXENT_DEFAULTS = {
    "beta": None,
    "C": None,
    "tol": 1e-4,
    "max_iter": None,
    "max_time": None,
    "checkpoint": None,
    "save_interrupted": False,
} | {name: default for name, (default, _) in CHOICES.items()}
LEARNER_OPTIONS = {
    "adaboost": {"n_estimators": "n_estimators", "loss": "loss"},
    "svm": {"C": "C"},
    "auto": {"folds": "cv"},
}
VALIDATION_OPTIONS = ("validation", "validation_labels")  # of auto, for its fit
DEFAULT_FOLDS = 5


def add_arguments(command):
    command.add_argument("model", metavar="MODEL", help="file to write, replaced when training is over")
    command.add_argument("data", metavar="DATA", help="training set, svmlight or .npz")
    add_data_options(command)
    command.add_argument(
        "--label-sets", action="store_true", help="read labels as sets even if every example has just one"
    )
    command.add_argument(
        "--n-features", type=int, metavar="N", help="number of features, if the file does not show all"
    )
    command.add_argument(
        "--learner", choices=("maxent", *LEARNER_OPTIONS), default="maxent",
        help="maximum entropy, AdaBoost, linear SVM, or the best of all on held-out examples (maxent)",
    )  # fmt: skip
    command.add_argument("--n-estimators", type=positive, metavar="N", help="adaboost: rounds (500)")
    command.add_argument("--loss", choices=("logistic", "exponential"), help="adaboost: loss (logistic)")
    command.add_argument(
        "--folds", type=int, metavar="N", help=f"auto: folds of the cross-validation ({DEFAULT_FOLDS})"
    )
    command.add_argument(
        "--validation", metavar="FILE", help="auto: examples to choose with, in place of cross-validation"
    )
    command.add_argument("--validation-labels", metavar="FILE", help="auto: labels of a .npz of --validation")
    command.add_argument("--beta", type=float, help="strength of the regularisation (0.5)")
    command.add_argument(
        "--C", type=float,
        help="inverse strength, as in scikit-learn: beta = 1/C with --beta-rule count; svm: C of LinearSVC (1)",
    )  # fmt: skip
    for name, (default, meaning) in CHOICES.items():
        command.add_argument(option_of(name), choices=OPTIONS[name], default=default, help=f"{meaning} ({default})")
    command.add_argument("--no-intercept", action="store_true", help="no unpenalised constant for each class")
    command.add_argument(
        "--tol", type=float, default=MAXENT_DEFAULTS["tol"], help="relative duality gap to reach (1e-4)"
    )
    command.add_argument("--max-iter", type=int, metavar="N", help="most iterations for each problem")
    command.add_argument("--max-time", type=float, metavar="S", help="seconds that training may take")
    command.add_argument("--jobs", type=int, metavar="N", help="threads; -1: as many as there are processors")
    command.add_argument(
        "--holdout", type=float, metavar="SHARE", help="keep this share of the examples apart to test on"
    )
    command.add_argument("--seed", type=int, default=0, help="of the choice that --holdout makes (0)")
    command.add_argument(
        "--checkpoint", metavar="FILE", help="keep finished classes there; if it exists, go on from it"
    )
    command.add_argument(
        "--save-interrupted", action="store_true", help="on Ctrl-C, save the model as far as it has come"
    )
    command.add_argument("--quiet", action="store_true", help="no progress, even on a terminal")
    add_force(command)
    add_json(command)


def run(args):
    check_train_outputs(args)
    check_numbers(args, NUMBERS)
    check_learner_options(args)
    examples = read_examples(
        args.data, labels=args.labels, label_sets=args.label_sets, zero_based=args.zero_based,
        n_features=args.n_features,
    )  # fmt: skip
    apart = None
    if args.holdout is not None:
        apart, examples = hold_out(args, examples)
    start = time.monotonic()
    with blamed_on(args.data):
        model, choice = learn(args, examples)
    seconds = time.monotonic() - start
    if examples.columns is not None:
        model = replace(model, classes=examples.columns)
    model.save(args.model)
    learner = args.learner if choice is None else choice.best_params_["learner"]
    report = {"model": args.model, "learner": learner} | describe(model) | {"seconds": round(seconds, 3)}
    report["bytes"] = os.path.getsize(args.model)
    if apart is not None:
        report["holdout"] = measure(model, apart, f"the held-out part of {args.data}")
    if choice is not None:
        report["chosen"] = {"row": choice.best_index_, "score": choice.best_score_} | choice.best_params_
    if choice is not None and args.json:
        report["tried"] = [finite(record) for record in records(choice.results_)]
    print_report(report, args.json)
    if choice is not None and not args.json:
        print(f"tried:\n{choice.results_!r}")
    return OK if report["converged"] else NOT_CONVERGED


def check_train_outputs(args):
    """Refuse before training what would fail after it."""
    if os.path.exists(args.model) and not os.path.exists(args.data):
        raise InputError(f"{args.data}: No such file or directory; the model comes first: sl1max train MODEL DATA")
    inputs = (args.data, args.labels, args.validation, args.validation_labels)
    with as_input_errors():
        check_output(args.model, inputs, "a model", is_model, args.force)
        check_distinct(args.model, args.checkpoint)  # `Journal` refuses files that are no checkpoints


def check_learner_options(args):
    """Refuse options of learners other than the one asked for."""
    defaults = {"maxent": MAXENT_DEFAULTS} | {
        learner: dict.fromkeys(options) for learner, options in LEARNER_OPTIONS.items()
    }
    defaults["auto"] |= dict.fromkeys(VALIDATION_OPTIONS)
    given = {name for names in defaults.values() for name, value in names.items() if getattr(args, name) != value}
    for name in sorted(given):
        learners = [learner for learner, names in defaults.items() if name in names]
        if args.learner not in learners:
            raise InputError(f"{option_of(name)} is for --learner {' or '.join(learners)}, not {args.learner}")
    if args.beta is not None and args.C is not None:
        raise InputError("--beta and --C are two names of one strength, beta = 1/C: give one of them")
    if args.validation is not None and args.folds is not None:
        raise InputError("--folds is for cross-validation, which --validation takes the place of")


def hold_out(args, examples):
    """The examples to test on, drawn at random, and the others."""
    order = np.random.default_rng(args.seed).permutation(len(examples))
    n_apart = max(1, round(args.holdout * len(examples)))
    if n_apart == len(examples):
        raise InputError(f"--holdout {args.holdout:g} leaves none of the {n_apart} examples of {args.data} to train on")
    return examples.take(np.sort(order[:n_apart])), examples.take(np.sort(order[n_apart:]))


def learn(args, examples):
    """The model that the options ask for and, if it was to be chosen, the `AutoClassifier` that did."""
    shared = {
        "fit_intercept": not args.no_intercept,
        "n_jobs": args.jobs,
        "verbose": int(sys.stderr.isatty() and not args.quiet),
    }
    if args.learner == "maxent":
        options = {name: getattr(args, name) for name in MAXENT_DEFAULTS}
        options["on_interrupt"] = "return" if options.pop("save_interrupted") else "raise"
        return fit_or_part(examples, options | shared), None
    given = {
        name: getattr(args, option)
        for option, name in LEARNER_OPTIONS[args.learner].items()
        if getattr(args, option) is not None
    }
    try:
        classifier = sl1max.get_learner(args.learner, random_state=args.seed, **given, **shared)
    except ImportError as error:
        raise InputError(error) from error
    if args.learner != "auto":
        return classifier.fit(examples.X, examples.y).model_, None
    if args.validation is None:
        check_folds(args, examples)
        classifier.fit(examples.X, examples.y)
    else:
        X_val, y_val = read_validation(args, examples)
        classifier.fit(examples.X, examples.y, X_val=X_val, y_val=y_val)
    return classifier.model_, classifier


def check_folds(args, examples):
    """Whether there are as many examples as folds: of some class, where examples have one each."""
    n_folds, sets = args.folds or DEFAULT_FOLDS, examples.columns is not None
    option = f"--folds {n_folds}"
    labels, sizes = ([], np.array([len(examples)])) if sets else np.unique(examples.y, return_counts=True)
    if sizes.max() < n_folds:
        what = "has" if sets else "has no class of more than"
        raise InputError(f"{option} needs as many examples, but {args.data} {what} {sizes.max()}: lower it")
    if sizes.min() < n_folds:
        rare = f"class {labels[sizes.argmin()]} of {args.data} has {sizes.min()} examples only"
        warnings.warn(f"{option}: {rare}, so that some folds have none", UserWarning, stacklevel=2)
        warnings.filterwarnings("ignore", "The least populated class in y", UserWarning)  # scikit-learn's own


def read_validation(args, examples):
    """X and y of the examples to choose with, in the form of the training set."""
    name, sets = args.validation, examples.columns is not None
    held = read_examples(
        name, labels=args.validation_labels, label_sets=sets, zero_based=args.zero_based, n_features=examples.X.shape[1]
    )
    if held.columns is not None and not sets:
        raise InputError(f"{name}: its examples have sets of labels, those of {args.data} one each")
    truth, *_ = match_known_labels(examples.columns if sets else np.unique(examples.y), held, name)
    return held.X, truth if sets else held.y


def fit_or_part(examples, options):
    """The model; without the classes that failed, if some did, which is said."""
    try:
        return sl1max.fit(examples.X, examples.y, **options)
    except CheckpointError as error:
        raise InputError(error) from error
    except FitError as error:
        if error.model is None:
            raise
        warnings.warn(str(error), UserWarning, stacklevel=2)
        return error.model
    except KeyboardInterrupt:
        if options["checkpoint"] is not None:
            print(f"sl1max: what is finished is in {options['checkpoint']}: the same command goes on", file=sys.stderr)
        raise
