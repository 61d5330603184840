"""``sl1max reproduce``: repeat the experiments of the paper and print its tables."""

from __future__ import annotations

import importlib.util
import json
import os
import sys

from sl1max._utils.files import atomic_write
from sl1max.cli._arguments import add_force, add_json, check_numbers, positive
from sl1max.cli._errors import OK, InputError, as_input_errors
from sl1max.cli._outputs import check_distinct, check_output, is_figure, is_markdown_table
from sl1max.exceptions import CheckpointError
from sl1max.reproduction import _reproduce as paper

SUMMARY = "repeat the experiments of the paper and print its tables"
EXAMPLES = """\
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
"""

DATA_SETS = ("webkb", "reuters", "supertags")
REPRODUCED = ("AdaBoost", "Linear SVM", "Q1", "Q2", "Q3", "Q1(lambda^c)", "Q3(lambda^c)")
REPRODUCED_BETAS = (0.5, 0.9)


def add_arguments(command):
    command.add_argument("data", choices=(*DATA_SETS, "all"), help="data set, or all")
    command.add_argument(
        "--tokenisation", choices=("zones", "unigram", "pairs"), default="zones",
        help="features of Reuters: stems with marks for title and first paragraph; stems; words and pairs (zones)",
    )  # fmt: skip
    command.add_argument(
        "--only", action="append", choices=REPRODUCED, metavar="ROW",
        help=f"train one row of the table; may be repeated: {', '.join(REPRODUCED)}",
    )  # fmt: skip
    command.add_argument(
        "--beta", action="append", type=float, choices=REPRODUCED_BETAS,
        help="train with one of the two betas of Table 4 (Table 3 has 0.5)",
    )  # fmt: skip
    command.add_argument("--every", type=positive, default=1, metavar="N", help="use one in N examples, for a trial")
    command.add_argument(
        "--keep", metavar="FOLDER",
        help="store results there; a run with the same folder continues and prints all results",
    )  # fmt: skip
    command.add_argument("--report", action="store_true", help="print the results in --keep without training")
    command.add_argument("--tol", type=float, default=1e-4, help="relative duality gap at which training stops (1e-4)")
    command.add_argument("--jobs", type=int, metavar="N", help="number of threads; -1: number of processors")
    command.add_argument("--progress", action="store_true", help="print progress to files too: one line per minute")
    command.add_argument("--markdown", metavar="FILE", help="also write the tables as Markdown")
    command.add_argument("--plot", metavar="FILE", help="plot the errors, e.g. as .png; needs matplotlib")
    command.add_argument("--quiet", action="store_true", help="print no progress, even on a terminal")
    add_force(command)
    add_json(command)


def run(args):
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
    """Detect errors before training that would occur after it."""
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
    """Check that matplotlib is installed and can write the format."""
    if importlib.util.find_spec("matplotlib") is None:
        raise InputError("--plot needs matplotlib: pip install matplotlib")
    from matplotlib.backend_bases import FigureCanvasBase

    ending = os.path.splitext(path)[1][1:].lower()
    if ending and ending not in FigureCanvasBase.get_supported_filetypes():
        raise InputError(f"--plot {path}: a figure cannot be drawn as .{ending}, but as .png, .svg or .pdf")
