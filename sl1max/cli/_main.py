"""The command ``sl1max``: train, predict, evaluate, inspect, reproduce.

What the user can mend is said in one line on stderr, with the exit code `BAD_INPUT`; a traceback is a bug.
"""

from __future__ import annotations

import argparse
import contextlib
import importlib.util
import json
import os
import sys
import time
import warnings
from dataclasses import dataclass, replace

import numpy as np
from scipy import sparse

import sl1max
from sl1max._data.inputs import OPTIONS
from sl1max._utils.arrays import load_array, load_sparse
from sl1max._utils.files import atomic_write
from sl1max.cli._outputs import check_distinct, check_output, is_figure, is_markdown_table, is_model, is_prediction
from sl1max.exceptions import CheckpointError, FitError, ThreadStartError
from sl1max.metrics import top_class_error
from sl1max.model._explain import Table, class_number, top_features
from sl1max.model._model import LOG_HALF, Model, load
from sl1max.reproduction import _reproduce as paper
from sl1max.svmlight import read_bytes, read_svmlight, read_svmlight_pieces

DATA_SETS = ("webkb", "reuters", "supertags")
REPRODUCED = ("AdaBoost", "Linear SVM", "Q1", "Q2", "Q3", "Q1(lambda^c)", "Q3(lambda^c)")
REPRODUCED_BETAS = (0.5, 0.9)
OK, BAD_INPUT, NOT_CONVERGED, INTERRUPTED = 0, 2, 3, 130
CELLS_AT_ONCE = 1 << 22  # examples x classes of a prediction held in memory

EXIT_CODES = """\
exit codes:
  0    done
  2    wrong usage, unreadable or unwritable file, impossible data; one line on stderr says which
  3    train: the model was saved, but its duality gap stayed above the target, or classes are missing
  130  interrupted
"""
DATA_HELP = """\
data files:
  svmlight (libsvm): a line "label feature:value ..." for each example; several labels are separated by
  commas, features are numbered from 1 (--zero-based: from 0). Plain, .gz, .xz or .bz2.
  .npz: a matrix as scipy.sparse.save_npz writes it, with --labels FILE: a .npy of labels or an indicator,
  or a sparse indicator as .npz.
"""
EXAMPLES = {
    None: """\
examples:
  sl1max train train.svm model.sl1max
  sl1max evaluate model.sl1max test.svm
  sl1max predict model.sl1max new.svm > labels.txt
  sl1max inspect model.sl1max --class 3 --feature-names words.txt
""",
    "train": """\
examples:
  sl1max train train.svm.gz model.sl1max
  sl1max train train.svm model.sl1max --distribution joint --beta 0.3 --jobs 4
  sl1max train train.svm model.sl1max --C 1     (as in scikit-learn)
  sl1max train X.npz model.sl1max --labels y.npy --holdout 0.2 --seed 1
  sl1max train train.svm model.sl1max --checkpoint train.ckpt        (again after a crash: it goes on)
  sl1max train train.svm model.sl1max --learner adaboost --n-estimators 200
  sl1max train train.svm model.sl1max --learner auto --jobs 4        (the best of all, and what was tried)
  sl1max train train.svm model.sl1max --learner auto --validation dev.svm

The scores of a linear SVM (--learner svm) are margins: what predict makes of them are no probabilities.
""",
    "predict": """\
output: a line for each example: its label; for a model of label sets the labels with a probability above one
half, separated by commas, or nothing. --top K: "label:probability" of the K most likely. --proba: a line
of labels, then the probabilities of all classes, separated by tabs. Labels in the data are not looked at.

examples:
  sl1max predict model.sl1max new.svm --output labels.txt
  sl1max predict model.sl1max new.svm --top 3
  sl1max predict model.sl1max X.npz --proba --json
""",
    "evaluate": """\
output: error, the share of examples whose most likely class is not among their labels; log_loss, the mean
of -ln p(label) (exclusive classes); for label sets also precision, recall and their harmonic mean at the
threshold one half, over all examples and classes together. A label that the model has not seen counts as
missed, and a warning says which; log_loss leaves it out.

examples:
  sl1max evaluate model.sl1max test.svm
  sl1max evaluate model.sl1max X_test.npz --labels y_test.npy --json
""",
    "inspect": """\
examples:
  sl1max inspect model.sl1max
  sl1max inspect model.sl1max --class 3 --class 7 --top 20 --feature-names words.txt
  sl1max inspect model.sl1max --json
""",
    "reproduce": """\
output: Table 3 of the paper, the errors of AdaBoost, linear SVMs and the five models, with the paper's figure
beside ours; and Table 4, weights and training times for two strengths of the regularisation. AdaBoost and the
SVMs need scikit-learn. WebKB comes with the package and takes seconds. Reuters-21578 takes minutes, SuperTags
(a public stand-in) hours; they are looked for in the folder that SL1MAX_DATA names, then downloaded.

examples:
  sl1max reproduce webkb
  sl1max reproduce reuters --tokenisation pairs --jobs 4
  sl1max reproduce webkb --markdown webkb.md --plot webkb.png --json
  sl1max reproduce supertags --keep supertags --only Q2 --beta 0.9 --progress 2> supertags.log
  sl1max reproduce supertags --keep supertags --report
""",
}


class InputError(Exception):
    """Something that the user can mend, in one line."""


def main(argv=None) -> int:
    """Run the command; see ``sl1max --help``.

    Parameters
    ----------
    argv : list of str, optional
        Arguments; those of the process unless given.

    Returns
    -------
    int
        The exit code.

    Examples
    --------
    >>> import os, tempfile
    >>> from sl1max.cli._main import main
    >>> folder = tempfile.mkdtemp()
    >>> data, model = os.path.join(folder, "train.svm"), os.path.join(folder, "model.sl1max")
    >>> with open(data, "w") as stream:
    ...     _ = stream.write("1 1:1 3:1\\n1 1:1 2:1\\n0 2:1 3:1\\n0 2:1\\n")
    >>> main(["train", data, model, "--distribution", "joint", "--json"])  # doctest: +ELLIPSIS
    {"model": ..., "distribution": "joint", ...}
    0
    >>> main(["predict", model, data])
    1
    1
    0
    0
    0
    """
    args = make_parser().parse_args(argv)
    try:
        with one_line_warnings():
            code = args.run(args)
            sys.stdout.flush()
            return code
    except InputError as error:
        return _complain(error)
    except OSError as error:
        if isinstance(error, BrokenPipeError):  # the reader of our output has seen enough
            os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
            return OK
        named = error.filename is not None and error.strerror is not None
        return _complain(f"{error.filename}: {error.strerror}" if named else error)
    except (FitError, ThreadStartError) as error:
        return _complain(error)
    except UnicodeEncodeError as error:
        character = error.object[error.start]
        return _complain(f"{character!a} cannot be written in the encoding {error.encoding}: --json writes ASCII")
    except MemoryError as error:
        return _complain(f"not enough memory: {error}")
    except KeyboardInterrupt:
        print("sl1max: interrupted", file=sys.stderr)
        return INTERRUPTED


def _complain(message):
    print("sl1max: error:", " ".join(str(message).split()), file=sys.stderr)
    return BAD_INPUT


@contextlib.contextmanager
def one_line_warnings():
    """Show warnings as one line on stderr, without the place in our code."""

    def show(message, category, filename, lineno, file=None, line=None):
        print("sl1max: warning:", message, file=sys.stderr)

    with warnings.catch_warnings():
        warnings.simplefilter("always", UserWarning)
        warnings.showwarning = show
        yield


@contextlib.contextmanager
def blamed_on(path):
    """Turn errors of a file's content into an `InputError` that names the file."""
    try:
        yield
    except ValueError as error:
        text = str(error)
        raise InputError(text if text.startswith(str(path)) else f"{path}: {text}") from error


# Arguments


def make_parser():
    parser = argparse.ArgumentParser(
        prog="sl1max",
        description="L1-regularised maximum-entropy classifiers on sparse data.",
        epilog=EXAMPLES[None] + "\n" + DATA_HELP + "\n" + EXIT_CODES,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("--version", action="version", version=f"sl1max {sl1max.__version__}")
    commands = parser.add_subparsers(title="commands", metavar="COMMAND", required=True)
    _add_train(commands)
    _add_predict(commands)
    _add_evaluate(commands)
    _add_inspect(commands)
    _add_reproduce(commands)
    return parser


def _add_command(commands, name, run, summary, with_data=True):
    epilog = "\n".join([EXAMPLES[name], *([DATA_HELP] if with_data else []), EXIT_CODES])
    command = commands.add_parser(
        name,
        help=summary,
        description=summary[0].upper() + summary[1:] + ".",
        epilog=epilog,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    command.set_defaults(run=run)
    return command


def _add_data_options(command, with_labels=True):
    if with_labels:
        command.add_argument("--labels", metavar="FILE", help="labels of a .npz, as .npy or sparse .npz")
    command.add_argument("--zero-based", action="store_true", help="svmlight features are numbered from 0")


def _add_force(command):
    command.add_argument(
        "--force", action="store_true", help="replace a file that the command reads, or a file of another kind"
    )


def _add_json(command):
    command.add_argument("--json", action="store_true", help="write JSON to standard output")


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

# What the numbers among the options must be; those that need not be given may be None.
NUMBERS = {
    "beta": (lambda value: value >= 0, "a number >= 0"),
    "C": (lambda value: 0 < value < np.inf, "a positive number"),
    "folds": (lambda value: value >= 2, "at least 2"),
    "holdout": (lambda value: 0 < value < 1, "between 0 and 1"),
    "jobs": (lambda value: value != 0, "an integer other than 0"),
    "max_iter": (lambda value: value >= 1, "a positive integer"),
    "max_time": (lambda value: value > 0, "a positive number of seconds"),
    "n_features": (lambda value: value >= 1, "a positive integer"),
    "tol": (lambda value: 0 < value < np.inf, "a positive number"),
}


def _add_train(commands):
    command = _add_command(commands, "train", train, "train a model and save it")
    command.add_argument("data", metavar="DATA", help="training set, svmlight or .npz")
    command.add_argument("model", metavar="MODEL", help="file to write, replaced when training is over")
    _add_data_options(command)
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
    command.add_argument("--n-estimators", type=_positive, metavar="N", help="adaboost: rounds (500)")
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
    _add_force(command)
    _add_json(command)


def _add_predict(commands):
    command = _add_command(commands, "predict", predict, "predict the labels of examples")
    command.add_argument("model", metavar="MODEL", help="file that train wrote")
    command.add_argument("data", metavar="DATA", help="examples, svmlight or .npz")
    _add_data_options(command, with_labels=False)
    command.add_argument("--output", metavar="FILE", help="file to write instead of standard output")
    what = command.add_mutually_exclusive_group()
    what.add_argument("--top", type=_positive, metavar="K", help="the K most likely classes")
    what.add_argument("--proba", action="store_true", help="the probabilities of all classes")
    _add_force(command)
    command.add_argument("--json", action="store_true", help="a JSON object for each example")


def _add_evaluate(commands):
    command = _add_command(commands, "evaluate", evaluate, "compare predictions with the labels of examples")
    command.add_argument("model", metavar="MODEL", help="file that train wrote")
    command.add_argument("data", metavar="DATA", help="labelled examples, svmlight or .npz")
    _add_data_options(command)
    _add_json(command)


def _add_inspect(commands):
    command = _add_command(commands, "inspect", inspect, "show what a model has learnt", with_data=False)
    command.add_argument("model", metavar="MODEL", help="file that train wrote")
    command.add_argument(
        "--class", dest="labels", action="append", metavar="LABEL", help="list the top features of this class"
    )
    command.add_argument("--top", type=_positive, default=10, metavar="N", help="how many to list (10)")
    command.add_argument("--feature-names", metavar="FILE", help="a name for each feature, one in a line")
    _add_json(command)


def _add_reproduce(commands):
    summary = "train the models of the paper and print its tables"
    command = _add_command(commands, "reproduce", reproduce, summary, with_data=False)
    command.add_argument("data", choices=(*DATA_SETS, "all"), help="data set: a column of the table, or all")
    command.add_argument(
        "--tokenisation", choices=("zones", "unigram", "pairs"), default="zones",
        help="of Reuters: stems, those of title and first paragraph marked; stems; words and pairs (zones)",
    )  # fmt: skip
    command.add_argument(
        "--only", action="append", choices=REPRODUCED, metavar="ROW",
        help=f"train one row of the table, and others if given again: {', '.join(REPRODUCED)}",
    )  # fmt: skip
    command.add_argument(
        "--beta", action="append", type=float, choices=REPRODUCED_BETAS,
        help="train at one of the two betas of Table 4; Table 3 is at 0.5",
    )  # fmt: skip
    command.add_argument("--every", type=_positive, default=1, metavar="N", help="take one of N examples, as a trial")
    command.add_argument(
        "--keep", metavar="FOLDER",
        help="keep there what is finished and what is not; a run with the same folder goes on from it and prints all",
    )  # fmt: skip
    command.add_argument("--report", action="store_true", help="train nothing, print what the folder of --keep has")
    command.add_argument("--tol", type=float, default=1e-4, help="relative duality gap to reach (1e-4)")
    command.add_argument("--jobs", type=int, metavar="N", help="threads; -1: as many as there are processors")
    command.add_argument("--progress", action="store_true", help="progress in a file, too: a line a minute on stderr")
    command.add_argument("--markdown", metavar="FILE", help="write the tables as Markdown, too")
    command.add_argument("--plot", metavar="FILE", help="draw the errors, e.g. as .png; needs matplotlib")
    command.add_argument("--quiet", action="store_true", help="no progress, even on a terminal")
    _add_force(command)
    _add_json(command)


def _positive(text):
    if not text.strip().isdecimal() or int(text) < 1:
        raise argparse.ArgumentTypeError(f"{text!r} is not a positive integer")
    return int(text)


def check_numbers(args, names):
    """Refuse numbers that an option cannot have."""
    for name in names:
        fits, what = NUMBERS[name]
        value = getattr(args, name)
        if value is not None and not fits(value):
            raise InputError(f"{option_of(name)} {value:g} must be {what}")


def option_of(name):
    return "--" + name.replace("_", "-")


# Data


@dataclass(frozen=True, eq=False)
class Examples:
    """A data file: X; y, a vector of labels or an indicator; the labels of the indicator's columns."""

    X: sparse.csr_array
    y: np.ndarray | sparse.csr_array | None
    columns: np.ndarray | None = None

    def __len__(self):
        return self.X.shape[0]

    def take(self, rows):
        """Some of the examples, and of an indicator's columns those that they have."""
        if self.columns is None:
            return replace(self, X=self.X[rows], y=self.y[rows])
        y = self.y[rows]
        seen = np.flatnonzero(np.asarray(y.sum(axis=0)).ravel())
        return Examples(self.X[rows], y[:, seen], self.columns[seen])


def read_examples(path, *, labels=None, label_sets=False, zero_based=False, n_features=None, with_y=True):
    """Examples of a svmlight or .npz file."""
    with blamed_on(path):
        if not _is_npz(path):
            if labels is not None:
                raise ValueError("--labels is for .npz; a svmlight file holds its own labels")
            X, y, columns = read_svmlight(
                path, multilabel=label_sets or "auto", zero_based=zero_based, n_features=n_features
            )
            return Examples(X, *(_tidy(y, columns)))
        X = sparse.csr_array(load_sparse(path))
    if n_features is not None and X.shape[1] != n_features:
        raise InputError(f"{path}: {X.shape[1]} features, where {n_features} are needed")
    if not with_y:
        return Examples(X, None)
    if labels is None:
        raise InputError(f"{path}: a .npz has no labels: name their file with --labels")
    with blamed_on(labels):
        y = _read_labels(labels)
        if y.shape[0] != X.shape[0]:
            raise ValueError(f"{y.shape[0]} labels, but {path} has {X.shape[0]} examples")
    if y.ndim == 1 and not label_sets:
        return Examples(X, _whole_numbers(y))
    if y.ndim == 1:
        columns, codes = np.unique(_whole_numbers(y), return_inverse=True)
        y = sparse.csr_array((np.ones(len(y)), codes, np.arange(len(y) + 1)), shape=(len(y), len(columns)))
        return Examples(X, y, columns)
    return Examples(X, sparse.csr_array(y), np.arange(y.shape[1]))


def _is_npz(path):
    with open(path, "rb") as stream:
        start = stream.read(4)
    if not start:
        raise InputError(f"{path}: the file is empty (0 bytes)")
    return start == b"PK\x03\x04" or os.fspath(path).endswith(".npz")


def _read_labels(path):
    if _is_npz(path):
        return load_sparse(path)
    y = load_array(path)
    if y.ndim not in (1, 2):
        raise ValueError(f"labels must be a vector or an indicator: their shape is {y.shape}")
    return y


def _tidy(y, columns):
    return (_whole_numbers(y), None) if columns is None else (y, _whole_numbers(columns))


def _whole_numbers(labels):
    """Floating-point labels that are whole numbers as integers."""
    if labels.dtype.kind != "f" or not (np.abs(labels) < 2**53).all() or (labels % 1).any():
        return labels
    return labels.astype(np.int64)


def read_names(path, n_features):
    """One name for each feature."""
    with blamed_on(path):
        _, content = read_bytes(path)
        names = content.decode().splitlines()
        if len(names) != n_features:
            raise ValueError(f"{len(names)} names, but the model has {n_features} features")
    return names


def load_model(path) -> Model:
    with blamed_on(path):
        return load(path)


# Commands


@contextlib.contextmanager
def as_input_errors():
    """Turn the ValueErrors of checks of outputs into `InputError`."""
    try:
        yield
    except ValueError as error:
        raise InputError(error) from error


def check_train_outputs(args):
    inputs = (args.data, args.labels, args.validation, args.validation_labels)
    with as_input_errors():
        check_output(args.model, inputs, "a model", is_model, args.force)
        check_distinct(args.model, args.checkpoint)  # `Journal` refuses files that are no checkpoints


def train(args):
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
        report["tried"] = [_finite(record) for record in _records(choice.results_)]
    print_report(report, args.json)
    if choice is not None and not args.json:
        print(f"tried:\n{choice.results_!r}")
    return OK if report["converged"] else NOT_CONVERGED


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


def predict(args):
    model = load_model(args.model)
    if args.output is not None:
        with as_input_errors():
            inputs = (args.model, args.data)
            check_output(
                args.output, inputs, "a file of predictions", is_prediction(model.classes.tolist()), args.force
            )
    pieces = read_rows(args.data, args.zero_based, model.n_features)
    lines = prediction_lines(model, pieces, top=args.top, proba=args.proba, as_json=args.json)
    if args.output is None:
        for line in lines:
            print(line)
        return OK
    with atomic_write(args.output) as stream:
        for line in lines:
            stream.write(f"{line}\n".encode())
    return OK


def read_rows(path, zero_based, n_features):
    """The examples of a file in pieces; a svmlight file is never in memory as a whole."""
    if _is_npz(path):
        yield read_examples(path, n_features=n_features, with_y=False).X
        return
    with blamed_on(path):
        n_rows = 0
        # Labels are not looked at, so that any number of them will do.
        for piece in read_svmlight_pieces(path, multilabel=True, zero_based=zero_based, n_features=n_features):
            n_rows += piece.X.shape[0]
            yield piece.X
        if not n_rows:
            raise ValueError("no examples, only blank lines and comments")


def prediction_lines(model, pieces, *, top, proba, as_json):
    """A line for each example."""
    labels = model.classes.tolist()
    sets = model.trained_on_indicator and model.label_mode == "independent"
    if not as_json:
        separator = "\t" if proba else "," if sets and top is None else "\n"
        for label in map(str, labels):
            if separator in label or len(label.splitlines()) > 1:
                raise InputError(f"the label {label!a} holds what separates labels or lines: use --json")
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


def evaluate(args):
    model = load_model(args.model)
    examples = read_examples(args.data, labels=args.labels, zero_based=args.zero_based, n_features=model.n_features)
    print_report(measure(model, examples, args.data), args.json)
    return OK


def measure(model: Model, examples: Examples, name):
    """Error and so on of a model on labelled examples."""
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
    report = {"examples": len(examples), "error": errors / len(examples)}
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
    """As `match_labels`; labels that the model has not seen are warned of."""
    truth, unseen, n_unseen = match_labels(classes, examples, name)
    if unseen:
        shown = ", ".join(map(str, unseen[:5])) + (", ..." if len(unseen) > 5 else "")
        warnings.warn(f"{name}: labels that the model has not seen: {shown}", UserWarning, stacklevel=3)
    return truth, unseen, n_unseen


def match_labels(classes, examples, name):
    """Indicator of the model's classes; the labels that it does not have; and how often these occur."""
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
    y = y.tocoo()
    known = target[y.col] >= 0
    cells = (y.row[known], target[y.col[known]])
    truth = sparse.csr_array((np.ones(known.sum()), cells), shape=(len(examples), len(classes)))
    unseen = labels[np.unique(y.col[~known])].tolist()
    return truth, unseen, int((~known).sum())


def chunks(model, X):
    """The rows of X in pieces whose predictions fit in memory."""
    step = max(1, CELLS_AT_ONCE // model.n_classes)
    for start in range(0, X.shape[0], step):
        yield X[start : start + step]


def inspect(args):
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
        tops = [{"class": label, "features": _records(top)} for label, top in tops.items()]
        print_report({"model": args.model} | describe(model) | {"top_features": tops}, as_json=True)
        return OK
    print_report({"model": args.model} | describe(model), as_json=False)
    if args.labels is None:
        print(f"\n{_overview(model, tops)}")
        return OK
    for label, top in tops.items():
        print(f"\nclass {label}:", f"\n{top!r}" if len(top) else " no weights", sep="")
    return OK


def _records(table):
    return [dict(zip(table.columns, row, strict=True)) for row in table]


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


def reproduce(args):
    check_reproduce(args)
    progress = None
    if not args.quiet and (args.progress or sys.stderr.isatty()):
        progress = paper.Progress(log=not sys.stderr.isatty())
    options = {
        "every": args.every,
        "rows": [] if args.report else args.only,
        "betas": args.beta or REPRODUCED_BETAS,
        "folder": args.keep,
        "settings": paper.Settings(args.tol, args.jobs, progress.watch if progress else None),
        "progress": progress,
    }
    names = DATA_SETS if args.data == "all" else (args.data,)
    warn = args.every == 1 and not args.report
    data_sets = {name: paper.load(name, args.tokenisation, warn=warn) for name in names}
    try:
        columns = [paper.run(name, data=data, **options) for name, data in data_sets.items()]
    except CheckpointError as error:
        raise InputError(error) from error
    except ValueError as error:
        if args.every == 1:
            raise
        raise InputError(f"--every {args.every} leaves too few examples: {error}") from error
    if args.report and not any(column.cells for column in columns):
        raise InputError(f"{args.keep}: no measurement of {args.data} is kept there")
    print(json.dumps(paper.as_json(columns)) if args.json else paper.report(columns))
    if args.markdown is not None:
        with atomic_write(args.markdown) as stream:
            stream.write(f"{paper.report(columns, paper.format_markdown)}\n".encode())
    if args.plot is not None:
        paper.plot_errors(columns, args.plot)
    return OK


def check_reproduce(args):
    """Refuse before anything is trained what would fail after it."""
    check_numbers(args, ("jobs", "tol"))
    with as_input_errors():
        check_distinct(args.markdown, args.plot)
        if args.markdown is not None:
            check_output(args.markdown, (), "a table of this command", is_markdown_table, args.force)
        if args.plot is not None:
            check_figure(args.plot)
            ending = os.path.splitext(args.plot)[1]
            check_output(args.plot, (), f"a figure in the format {ending or '.png'}", is_figure(ending), args.force)
    if args.report and args.keep is None:
        raise InputError("--report needs --keep FOLDER")
    if args.keep is not None and not args.report:
        os.makedirs(args.keep, exist_ok=True)


def check_figure(path):
    """Whether matplotlib is there and can draw such a file."""
    if importlib.util.find_spec("matplotlib") is None:
        raise InputError("--plot needs matplotlib: pip install sl1max[plot]")
    from matplotlib.backend_bases import FigureCanvasBase

    ending = os.path.splitext(path)[1][1:].lower()
    if ending and ending not in FigureCanvasBase.get_supported_filetypes():
        raise InputError(f"--plot {path}: a figure cannot be drawn as .{ending}, but as .png, .svg or .pdf")


def describe(model: Model):
    """The model in plain numbers and words."""
    return {
        "distribution": model.distribution,
        "label_mode": model.label_mode,
        "label_sets": model.trained_on_indicator,
        "n_classes": model.n_classes,
        "n_features": model.n_features,
        "n_weights": int(model.weights.nnz),
        "n_examples": int(model.total_weight) if model.total_weight.is_integer() else model.total_weight,
        "beta": model.beta,
        "beta_rule": model.beta_rule,
        "solver": model.solver,
        "tol": model.tol,
        "objective": float(np.sum(model.objective)),
        "dual_gap": float(np.sum(model.dual_gap)),
        "converged": bool(np.all(model.converged)),
    }


def print_report(report, as_json):
    """JSON on one line, infinities being null; or a line ``name: value`` for each entry."""
    if as_json:
        print(json.dumps(_finite(report)))
        return
    for name, value in report.items():
        if isinstance(value, dict):
            print(f"{name}:")
            for inner, inner_value in value.items():
                print(f"  {inner}: {_plain(inner_value)}")
        else:
            print(f"{name}: {_plain(value)}")


def _finite(value):
    if isinstance(value, dict):
        return {name: _finite(inner) for name, inner in value.items()}
    return None if isinstance(value, float) and not np.isfinite(value) else value


def _plain(value):
    if isinstance(value, bool):
        return "yes" if value else "no"
    if isinstance(value, list):
        return ", ".join(map(str, value)) if value else "none"
    return f"{value:.6g}" if isinstance(value, float) else "-" if value is None else str(value)
