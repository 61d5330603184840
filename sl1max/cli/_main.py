"""The command ``sl1max``.

Errors in the user's input are printed as one line on stderr, with exit code `BAD_INPUT`. A traceback is a bug.
"""

from __future__ import annotations

import argparse
import contextlib
import os
import sys
import warnings

import sl1max
from sl1max.cli import _evaluate, _inspect, _predict, _report, _reproduce, _species, _train
from sl1max.cli._arguments import DATA_HELP
from sl1max.cli._errors import BAD_INPUT, EXIT_CODES, INTERRUPTED, OK, InputError
from sl1max.exceptions import FitError, ThreadStartError

# Each module has SUMMARY, EXAMPLES, add_arguments(parser) and run(args), which returns the exit code.
COMMANDS = {
    "train": _train,
    "predict": _predict,
    "evaluate": _evaluate,
    "inspect": _inspect,
    "report": _report,
    "species": _species,
    "reproduce": _reproduce,
}

EXAMPLES = """\
Every command takes the model first, then the data, then further output files.

examples:
  sl1max train model.sl1max train.svm
  sl1max evaluate model.sl1max test.svm
  sl1max predict model.sl1max new.svm > labels.txt
  sl1max inspect model.sl1max --class 3 --feature-names words.txt
  sl1max report model.sl1max test.svm report.html
  sl1max train news.sl1max news.csv --text-column body --label-column topic
"""


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
    >>> main(["train", model, data, "--distribution", "joint", "--json"])  # doctest: +ELLIPSIS
    {"model": ..., "distribution": "joint", ...}
    0
    >>> main(["predict", model, data])
    1
    1
    0
    0
    0
    """
    parser = make_parser()
    args = parser.parse_args(argv)
    if "run" not in args:
        parser.print_help()
        return OK
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
    """Print warnings as one line on stderr, without the source location."""

    def show(message, category, filename, lineno, file=None, line=None):
        print("sl1max: warning:", message, file=sys.stderr)

    with warnings.catch_warnings():
        warnings.simplefilter("always", UserWarning)
        warnings.showwarning = show
        yield


def make_parser():
    """Return the parser of all commands."""
    parser = argparse.ArgumentParser(
        prog="sl1max",
        description="L1-regularised maximum-entropy classifiers on sparse data.",
        epilog=f"{EXAMPLES}\n{DATA_HELP}\n{EXIT_CODES}",
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("--version", action="version", version=f"sl1max {sl1max.__version__}")
    commands = parser.add_subparsers(title="commands", metavar="COMMAND")
    for name, module in COMMANDS.items():
        command = commands.add_parser(
            name,
            help=module.SUMMARY,
            description=module.SUMMARY[0].upper() + module.SUMMARY[1:] + ".",
            epilog=f"{module.EXAMPLES}\n{EXIT_CODES}",
            formatter_class=argparse.RawDescriptionHelpFormatter,
        )
        module.add_arguments(command)
        command.set_defaults(run=module.run)
    return parser
