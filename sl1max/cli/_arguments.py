"""Options shared by several commands, and the valid ranges of numbers."""

from __future__ import annotations

import argparse

import numpy as np

from sl1max.cli._errors import InputError
from sl1max.text import FORMATS

DATA_HELP = """\
data files:
  svmlight (libsvm): a line "label feature:value ..." for each example; labels are numbers or words, several
  are separated by commas; features are numbered from 1 (--zero-based: from 0). Plain, .gz, .xz or .bz2.
  .npz: a matrix as scipy.sparse.save_npz writes it, with --labels FILE: a .npy of labels or an indicator,
  or a sparse indicator as .npz.
  .csv, .tsv, .jsonl: texts in a column or key "text" (--text-column), labels in "label" (--label-column),
  converted to features by a vectoriser that the model stores. .txt: one text per line, for predict.
  - is standard input: svmlight or, with --text-format, texts.
"""
# What the numbers among the options must be; those that need not be given may be None.
NUMBERS = {
    "beta": (lambda value: value >= 0, "a number >= 0"),
    "C": (lambda value: 0 < value < np.inf, "a positive number"),
    "l1_ratio": (lambda value: 0 <= value <= 1, "a number from 0 to 1"),
    "l2": (lambda value: 0 <= value < np.inf, "a finite number >= 0"),
    "folds": (lambda value: value >= 2, "at least 2"),
    "holdout": (lambda value: 0 < value < 1, "between 0 and 1"),
    "betas": (lambda value: value >= 2, "at least 2"),
    "jobs": (lambda value: value != 0, "an integer other than 0"),
    "max_iter": (lambda value: value >= 1, "a positive integer"),
    "max_time": (lambda value: value > 0, "a positive number of seconds"),
    "n_features": (lambda value: value >= 1, "a positive integer"),
    "tol": (lambda value: 0 < value < np.inf, "a positive number"),
}


def add_data_options(command, with_labels=True):
    command.add_argument("--text-column", metavar="NAME", help="column or key with the texts (text, or as in training)")
    command.add_argument("--text-format", choices=FORMATS, help="format of the texts (by the file name)")
    if with_labels:
        command.add_argument("--label-column", metavar="NAME", default="label", help="column or key of the labels")
        command.add_argument("--label-separator", metavar="TEXT", help="separator of labels in one cell")
        command.add_argument("--labels", metavar="FILE", help="labels for a .npz: a .npy or sparse .npz file")
    command.add_argument("--zero-based", action="store_true", help="svmlight features are numbered from 0")


def add_force(command):
    command.add_argument(
        "--force", action="store_true", help="allow overwriting an input file or a file of another kind"
    )


def add_json(command):
    command.add_argument("--json", action="store_true", help="write JSON to standard output")


def positive(text):
    if not text.strip().isdecimal() or int(text) < 1:
        raise argparse.ArgumentTypeError(f"{text!r} is not a positive integer")
    return int(text)


def check_numbers(args, names):
    """Refuse numbers outside the valid range of an option."""
    for name in names:
        fits, what = NUMBERS[name]
        value = getattr(args, name)
        if value is not None and not fits(value):
            raise InputError(f"{option_of(name)} {value:g} must be {what}")


def option_of(name):
    return "--" + name.replace("_", "-")
