"""``sl1max train``: train a model and save it."""

from __future__ import annotations

import os
import sys
import time
import warnings
from dataclasses import dataclass, replace
from typing import Any, Literal

import numpy as np
from scipy import sparse

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
from sl1max.cli._examples import (
    STREAM,
    is_npz,
    labels_kind,
    read_examples,
    read_text_examples,
    read_training_set,
    text_options,
    transform,
)
from sl1max.cli._outputs import check_distinct, check_output, is_model
from sl1max.cli._results import describe, finite, print_report, records
from sl1max.exceptions import CheckpointError, FitError
from sl1max.model._explain import Table, make_table
from sl1max.text import attach_vectorizer

SUMMARY = "train a model and save it"
EXAMPLES = (
    """\
examples:
  sl1max train model.sl1max train.svm.gz
  sl1max train model.sl1max train.svm --distribution joint --beta 0.3 --jobs 4
  sl1max train model.sl1max train.svm --C 1                      (as in scikit-learn)
  sl1max train model.sl1max X.npz --labels y.npy --holdout 0.2 --seed 1
  sl1max train model.sl1max train.svm --checkpoint train.ckpt        (the same again after a crash continues)
  sl1max train model.sl1max train.svm --cv --jobs 2                  (beta by cross-validation)
  sl1max train model.sl1max train.svm --class-weight balanced
  sl1max train news.sl1max news.csv --text-column body --label-column topic --vectorizer tfidf --ngrams 2
  zcat train.svm.gz | sl1max train model.sl1max -
  sl1max train model.sl1max train.svm --learner adaboost --n-estimators 200
  sl1max train model.sl1max train.svm --learner auto --jobs 4        (the best learner, with all results)
  sl1max train model.sl1max train.svm --learner auto --validation dev.svm

A linear SVM (--learner svm) has margins as scores; they are not probabilities.

"""
    + DATA_HELP
)

CHOICES = {
    "distribution": ("conditional", "what is modelled: p(c|x), p(x, c) or p(x|c)"),
    "label_mode": (
        "auto", "one class per example, or a binary problem per class; auto: depends on the labels",
    ),
    "beta_rule": ("deviation", "scale beta by standard deviations / sqrt(m), or by 1 / m"),
    "multilabel_weighting": ("duplicate", "exclusive classes: an example with K labels counts K times, or once"),
    "solver": ("auto", "newton, which auto chooses; sequential is the algorithm of the paper"),
}  # fmt: skip

# Options of train that belong to one learner; those of the others are named by the parameters they set.
MAXENT_DEFAULTS = {
    "beta": None,
    "C": None,
    "l1_ratio": 1.0,
    "l2": 0.0,
    "positive": False,
    "tol": 1e-4,
    "max_iter": None,
    "max_time": None,
    "cv": False,
    "folds": None,
    "betas": None,
    "one_standard_error": False,
    "scoring": None,
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
DEFAULT_BETAS = 10
OF_CV = ("folds", "betas", "one_standard_error", "scoring")
NOT_WITH_CV = ("beta", "C", "max_time", "checkpoint", "save_interrupted")
VECTORIZERS = {
    "binary": ("CountVectorizer", {"binary": True}),
    "count": ("CountVectorizer", {}),
    "tfidf": ("TfidfVectorizer", {}),
}


def add_arguments(command):
    command.add_argument("model", metavar="MODEL", help="file to write; replaced when training has finished")
    command.add_argument("data", metavar="DATA", help="training set: svmlight, .npz or texts; - is standard input")
    add_data_options(command)
    command.add_argument(
        "--label-sets", action="store_true", help="read labels as sets even if every example has one label"
    )
    command.add_argument(
        "--n-features", type=int, metavar="N", help="number of features, if the file does not contain the last ones"
    )
    command.add_argument("--text", action="store_true", help="DATA contains texts, whatever its name (CSV)")
    command.add_argument(
        "--vectorizer", choices=tuple(VECTORIZERS), default="binary",
        help="texts: features are the presence of words, counts or tf-idf (binary)",
    )  # fmt: skip
    command.add_argument(
        "--ngrams", type=positive, default=1, metavar="N", help="texts: sequences of up to N words (1)"
    )
    command.add_argument(
        "--min-df",
        type=positive,
        default=1,
        metavar="N",
        help="texts: leave out words in fewer than N texts (1)",
    )
    command.add_argument(
        "--class-weight", action="append", metavar="LABEL=WEIGHT",
        help='weight of the examples of a class, may be repeated; or "balanced": one over the class size',
    )  # fmt: skip
    command.add_argument(
        "--learner", choices=("maxent", *LEARNER_OPTIONS), default="maxent",
        help="maximum entropy, AdaBoost, linear SVM, or the best of them on held-out examples (maxent)",
    )  # fmt: skip
    command.add_argument("--n-estimators", type=positive, metavar="N", help="adaboost: rounds (500)")
    command.add_argument("--loss", choices=("logistic", "exponential"), help="adaboost: loss (logistic)")
    command.add_argument(
        "--folds", type=int, metavar="N", help=f"--cv, auto: folds of the cross-validation ({DEFAULT_FOLDS})"
    )
    command.add_argument("--cv", action="store_true", help="choose beta by cross-validation; needs scikit-learn")
    command.add_argument("--betas", type=int, metavar="N", help=f"--cv: number of betas ({DEFAULT_BETAS})")
    command.add_argument(
        "--one-standard-error", action="store_true",
        help="--cv: the largest beta within one standard error of the best score, not the best one",
    )  # fmt: skip
    command.add_argument("--scoring", metavar="NAME", help="--cv: scorer of scikit-learn, e.g. neg_log_loss (accuracy)")
    command.add_argument("--validation", metavar="FILE", help="auto: validation examples, instead of cross-validation")
    command.add_argument("--validation-labels", metavar="FILE", help="auto: labels for a .npz of --validation")
    command.add_argument("--beta", type=float, help="strength of the regularisation (0.5)")
    command.add_argument(
        "--C", type=float,
        help="inverse strength, as in scikit-learn: beta = 1/C with --beta-rule count; svm: C of LinearSVC (1)",
    )  # fmt: skip
    command.add_argument(
        "--l1-ratio", type=float, default=1.0, metavar="R",
        help="elastic net, with --C or --cv: the L1 share of the strength, the rest is L2 (1)",
    )  # fmt: skip
    command.add_argument(
        "--l2", type=float, default=0.0, help="elastic net, with --beta: strength of the L2 penalty (0)"
    )
    command.add_argument("--positive", action="store_true", help="no weight in favour of a class is negative")
    for name, (default, meaning) in CHOICES.items():
        command.add_argument(option_of(name), choices=OPTIONS[name], default=default, help=f"{meaning} ({default})")
    command.add_argument("--no-intercept", action="store_true", help="fit no intercepts")
    command.add_argument(
        "--tol", type=float, default=MAXENT_DEFAULTS["tol"], help="relative duality gap at which training stops (1e-4)"
    )
    command.add_argument("--max-iter", type=int, metavar="N", help="maximum number of iterations per problem")
    command.add_argument("--max-time", type=float, metavar="S", help="limit on the training time in seconds")
    command.add_argument("--jobs", type=int, metavar="N", help="number of threads; -1: number of processors")
    command.add_argument(
        "--holdout", type=float, metavar="SHARE", help="hold out this share of the examples for testing"
    )
    command.add_argument("--seed", type=int, default=0, help="random seed of --holdout (0)")
    command.add_argument(
        "--checkpoint", metavar="FILE", help="store finished classes there; continue from it if it exists"
    )
    command.add_argument("--save-interrupted", action="store_true", help="on Ctrl-C, save the model trained so far")
    command.add_argument("--quiet", action="store_true", help="print no progress, even on a terminal")
    add_force(command)
    add_json(command)


def run(args):
    check_train_outputs(args)
    check_numbers(args, NUMBERS)
    check_learner_options(args)
    examples, apart = read_training_set(args), None
    if args.holdout is not None:
        apart, examples = hold_out(args, examples)
    vectorizer = None
    if examples.texts is not None:
        vectorizer, examples = vectorize(args, examples)
    start = time.monotonic()
    with blamed_on(args.data):
        model, choice = learn(args, examples, vectorizer)
    seconds = time.monotonic() - start
    if examples.columns is not None:
        model = replace(model, classes=examples.columns)
    if vectorizer is not None:
        model = attach_vectorizer(model, vectorizer, text_options(args).text_column)
    else:
        npz = is_npz(args.data)
        model = replace(model, source={
            "kind": "npz" if npz else "svmlight", "first_feature": 0 if npz or args.zero_based else 1,
        })  # fmt: skip
    model.save(args.model)
    learner = args.learner if choice is None else choice.chosen.get("learner", args.learner)
    report = {"model": args.model, "learner": learner} | describe(model) | {"seconds": round(seconds, 3)}
    report["bytes"] = os.path.getsize(args.model)
    if apart is not None:
        if apart.texts is not None:
            apart = replace(apart, X=transform(model, apart.texts))
        report["holdout"] = measure(model, apart, f"the held-out part of {args.data}")
    if choice is not None:
        report["chosen"] = choice.chosen
    if choice is not None and args.json:
        report["tried"] = [finite(record) for record in records(choice.tried)]
    print_report(report, args.json)
    if choice is not None and not args.json:
        print(f"tried:\n{choice.tried!r}")
    return OK if report["converged"] else NOT_CONVERGED


def check_train_outputs(args):
    """Detect errors before training that would occur after it."""
    if args.model == STREAM:
        raise InputError("a model cannot be written to standard output: name a file")
    if os.path.exists(args.model) and args.data != STREAM and not os.path.exists(args.data):
        raise InputError(f"{args.data}: No such file or directory; the model comes first: sl1max train MODEL DATA")
    inputs = (args.data, args.labels, args.validation, args.validation_labels)
    with as_input_errors():
        check_output(args.model, inputs, "a model", is_model, args.force)
        check_distinct(args.model, args.checkpoint)  # `Journal` refuses files that are no checkpoints


def check_learner_options(args):
    """Refuse options of other learners."""
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
        raise InputError("--beta and --C set the same penalty (beta = 1/C): give one of them")
    if args.l1_ratio != 1 and args.C is None and not args.cv:
        raise InputError("--l1-ratio divides the strength 1/C: give --C or --cv with it, or --l2 with --beta")
    if args.l1_ratio != 1 and args.l2:
        raise InputError("--l1-ratio and --l2 are two ways to ask for an L2 penalty: give one of them")
    cv = [name for name in OF_CV if getattr(args, name) != MAXENT_DEFAULTS[name]]
    if args.learner == "maxent" and cv and not args.cv:
        raise InputError(f"{option_of(cv[0])} needs --cv")
    for name in NOT_WITH_CV:
        if args.cv and getattr(args, name) != MAXENT_DEFAULTS[name]:
            raise InputError(f"{option_of(name)} cannot be used with --cv, which chooses beta and trains many models")
    if args.validation is not None and args.folds is not None:
        raise InputError("--folds is for cross-validation and cannot be used with --validation")


def hold_out(args, examples):
    """Return a random sample for testing, and the other examples."""
    order = np.random.default_rng(args.seed).permutation(len(examples))
    n_apart = max(1, round(args.holdout * len(examples)))
    if n_apart == len(examples):
        raise InputError(
            f"--holdout {args.holdout:g} leaves none of the {n_apart} examples of {args.data} for training"
        )
    return examples.take(np.sort(order[:n_apart])), examples.take(np.sort(order[n_apart:]))


@dataclass(frozen=True)
class Choice:
    """The result of cross-validation or validation, with all candidates."""

    chosen: dict[str, Any]
    tried: Table


def vectorize(args, examples):
    """Return the fitted vectoriser of scikit-learn, and the examples with features."""
    try:
        from sklearn.feature_extraction import text
    except ImportError as error:
        raise InputError("training on texts needs scikit-learn >= 1.6: pip install scikit-learn") from error
    name, options = VECTORIZERS[args.vectorizer]
    vectorizer = getattr(text, name)(**options, ngram_range=(1, args.ngrams), min_df=args.min_df)
    with blamed_on(args.data):
        X = vectorizer.fit_transform(examples.texts)
    return vectorizer, replace(examples, X=sparse.csr_array(X, dtype=np.float64))


def class_weights(args, examples):
    """The weight of each example, by its class, or None."""
    if args.class_weight is None:
        return None
    if examples.columns is not None:
        raise InputError("--class-weight is for examples of one class each")
    classes, codes = np.unique(examples.y, return_inverse=True)
    if args.class_weight == ["balanced"]:
        return (len(codes) / (len(classes) * np.bincount(codes)))[codes]
    weights = np.ones(len(classes))
    places = {str(label): c for c, label in enumerate(classes.tolist())}
    for given in args.class_weight:
        label, _, number = given.rpartition("=")
        try:
            weight = float(number)
        except ValueError:
            weight = np.nan
        if label not in places:
            raise InputError(f"--class-weight {given}: there is no class {label!r}; it is LABEL=WEIGHT or balanced")
        if not 0 < weight < np.inf:
            raise InputError(f"--class-weight {given}: the weight must be a positive number")
        weights[places[label]] = weight
    return weights[codes]


def learn(args, examples, vectorizer=None):
    """Train the model and return it, with the `Choice` if one was made."""
    sample_weight = class_weights(args, examples)
    shared = {
        "fit_intercept": not args.no_intercept,
        "n_jobs": args.jobs,
        "verbose": int(sys.stderr.isatty() and not args.quiet),
    }
    if args.learner == "maxent":
        options = {name: getattr(args, name) for name in MAXENT_DEFAULTS if name not in ("cv", *OF_CV)}
        if args.cv:
            options = {name: value for name, value in options.items() if name not in NOT_WITH_CV}
            return cross_validate(args, examples, options | shared, sample_weight)
        options["on_interrupt"] = "return" if options.pop("save_interrupted") else "raise"
        return fit_or_part(examples, options | shared | {"sample_weight": sample_weight}), None
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
        return classifier.fit(examples.X, examples.y, sample_weight).model_, None
    if args.validation is None:
        check_folds(args, examples)
        classifier.fit(examples.X, examples.y, sample_weight)
    else:
        X_val, y_val = read_validation(args, examples, vectorizer)
        classifier.fit(examples.X, examples.y, sample_weight, X_val=X_val, y_val=y_val)
    chosen = {"row": classifier.best_index_, "score": classifier.best_score_} | classifier.best_params_
    return classifier.model_, Choice(chosen, classifier.results_)


def cross_validate(args, examples, options, sample_weight):
    """Choose beta by cross-validation; return the model and the `Choice`."""
    check_folds(args, examples)
    given = {} if args.betas is None else {"betas": args.betas}
    selection: Literal["best", "one_standard_error"] = "one_standard_error" if args.one_standard_error else "best"
    try:
        search = sl1max.MaxentClassifierCV(
            cv=args.folds or DEFAULT_FOLDS, scoring=args.scoring, selection=selection, **given, **options
        )
    except ImportError as error:
        raise InputError(error) from error
    search.fit(examples.X, examples.y, sample_weight)
    found = search.cv_results_
    names = {
        "beta": "param_beta",
        "score": "mean_test_score",
        "deviation": "std_test_score",
        "weights": "mean_n_nonzero",
    }
    chosen = {
        "row": search.best_index_, "beta": search.beta_, "score": search.best_score_,
        "standard_error": search.standard_error_,
    }  # fmt: skip
    return search.model_, Choice(chosen, make_table(**{name: found[key] for name, key in names.items()}))


def check_folds(args, examples):
    """Check that there are as many examples as folds: of some class, if examples have one label each."""
    n_folds, sets = args.folds or DEFAULT_FOLDS, examples.columns is not None
    option = f"--folds {n_folds}"
    labels: np.ndarray
    sizes: np.ndarray
    labels, sizes = (np.array([]), np.array([len(examples)])) if sets else np.unique(examples.y, return_counts=True)
    if sizes.max() < n_folds:
        what = "has" if sets else "has no class of more than"
        raise InputError(f"{option} needs as many examples, but {args.data} {what} {sizes.max()}: lower it")
    if sizes.min() < n_folds:
        rare = f"class {labels[sizes.argmin()]} of {args.data} has {sizes.min()} examples only"
        warnings.warn(f"{option}: {rare}, so that some folds have none", UserWarning, stacklevel=2)
        warnings.filterwarnings("ignore", "The least populated class in y", UserWarning)  # scikit-learn's own


def read_validation(args, examples, vectorizer):
    """Read X and y of the validation examples, in the form of the training set."""
    name, sets = args.validation, examples.columns is not None
    if vectorizer is not None:
        held = read_text_examples(name, text_options(args), sets)
        held = replace(held, X=sparse.csr_array(vectorizer.transform(held.texts), dtype=np.float64))
    else:
        held = read_examples(
            name, labels=args.validation_labels, label_sets=sets, zero_based=args.zero_based,
            n_features=examples.X.shape[1], kind=labels_kind(examples),
        )  # fmt: skip
    if held.columns is not None and not sets:
        raise InputError(f"{name}: its examples have sets of labels, but those of {args.data} have one label each")
    truth, *_ = match_known_labels(examples.columns if sets else np.unique(examples.y), held, name)
    return held.X, truth if sets else held.y


def fit_or_part(examples, options):
    """Train the model; if classes fail, report them and return the model of the others."""
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
