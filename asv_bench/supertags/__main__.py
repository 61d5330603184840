"""The five models at the size of the paper's SuperTags: time, peak memory, weights and error of each.

Every model is trained in a process of its own, one after the other, to a relative duality gap of 1e-3 for each class.
The data are those of sl1max.datasets.fetch_supertags, looked for in SL1MAX_DATA and in shared/data beside the checkout.
Results stay in a folder, a JSON file for each run; what is there already is not run again.
"""

import argparse
import datetime
import json
import os
import platform
import subprocess
import sys
from pathlib import Path

import numpy
import scipy

import sl1max

from .child import MODELS
from .data import data_dir
from .report import curves_of, estimate, file_of, growth, load_results, plot_curves, write_report

RESULTS = Path(__file__).resolve().parents[1] / "results"
QUICK = {"made": (4000, 1500, 100), "rows": 1 / 50, "classes": 100}
CURVE_CLASSES = (100, 300, 1000, 2000, None)
CURVE_ROWS = (1 / 8, 1 / 4, 1 / 2, 1)


def _arguments(arguments):
    parser = argparse.ArgumentParser(prog="ci/bench supertags", description=__doc__)
    parser.add_argument("--only", action="append", choices=tuple(MODELS), help="this model only; may be repeated")
    parser.add_argument("--classes", type=int, metavar="N", help="N classes, from the most frequent to the rarest")
    parser.add_argument("--rows", type=float, default=1.0, metavar="SHARE", help="a share of the training examples")
    parser.add_argument("--beta", type=float, default=0.5)
    parser.add_argument("--tol", type=float, default=1e-3)
    parser.add_argument("--jobs", type=int, default=2, help="threads (2)")
    parser.add_argument("--made", type=int, nargs=3, metavar=("ROWS", "FEATURES", "CLASSES"), help="made data instead")
    parser.add_argument("--quick", action="store_true", help="100 classes, a fiftieth of the rows; made where absent")
    parser.add_argument("--curves", action="store_true", help="over 100 to all classes and over 1/8 to all rows")
    parser.add_argument("--checkpoint", action="store_true", help="keep finished classes, to go on after a crash")
    parser.add_argument("--again", action="store_true", help="run what has results already, too")
    parser.add_argument("--report", action="store_true", help="report on what is in the folder, run nothing")
    parser.add_argument("--markdown", action="store_true", help="tables in Markdown")
    parser.add_argument("--plot", type=Path, metavar="FILE", help="draw the curves, e.g. as .svg")
    parser.add_argument("--out", type=Path, default=RESULTS / "supertags", metavar="FOLDER")
    options = parser.parse_args(arguments)
    if options.quick:
        options.classes = QUICK["classes"]
        options.rows = QUICK["rows"]
        if data_dir() is None:
            options.made, options.rows, options.classes = QUICK["made"], 1.0, None
    elif not options.report and not options.made and data_dir() is None:
        parser.error("the data are not here: set SL1MAX_DATA, or use --made or --quick")
    return options


def surroundings():
    """Machine, versions and date."""
    try:
        lines = Path("/proc/cpuinfo").read_text().splitlines()
    except OSError:
        lines = []
    models = [line.split(":", 1)[1].strip() for line in lines if line.startswith("model name")]
    machine = f"{models[0] if models else platform.processor()}, {os.cpu_count()} cores, {platform.system()}"
    versions = f"sl1max {sl1max.__version__}, numpy {numpy.__version__}, scipy {scipy.__version__}"
    return f"{machine}; Python {platform.python_version()}, {versions}; {datetime.date.today().isoformat()}"


def parts_of(options):
    """(classes, rows) of all runs."""
    if not options.curves:
        return [(options.classes, options.rows)]
    return list(dict.fromkeys([(n, 1.0) for n in CURVE_CLASSES] + [(None, float(share)) for share in CURVE_ROWS]))


def run(settings, path):
    """Train one model in a process of its own and store its results."""
    command = [sys.executable, "-m", "supertags.child", json.dumps(settings)]
    folder = Path(__file__).resolve().parents[1]
    done = subprocess.run(command, cwd=folder, stdout=subprocess.PIPE, text=True)
    if done.returncode:
        print(f"{settings['model']}: failed with exit code {done.returncode}", file=sys.stderr, flush=True)
        return False
    result = json.loads(done.stdout) | {"surroundings": surroundings()}
    path.write_text(json.dumps(result, indent=1) + "\n")
    return True


def run_all(options):
    """Whether all went well."""
    options.out.mkdir(parents=True, exist_ok=True)
    failed = 0
    for n_classes, rows in parts_of(options):
        for model in options.only or MODELS:
            settings = {
                "model": model, "classes": n_classes, "rows": rows, "beta": options.beta, "tol": options.tol,
                "jobs": options.jobs, "made": options.made, "checkpoint": None,
            }  # fmt: skip
            path = file_of(options.out, settings)
            if path.exists() and not options.again:
                continue
            if options.checkpoint:
                settings["checkpoint"] = str(path.with_suffix(".checkpoint"))
            print(f"{model}, {n_classes or 'all'} classes, {rows:g} of the rows", file=sys.stderr, flush=True)
            failed += not run(settings, path)
    return not failed


def main(arguments=None):
    options = _arguments(arguments)
    fine = options.report or run_all(options)
    results = load_results(options.out)
    print(write_report(results, options.markdown))
    for over in ("classes", "rows"):
        for model, points in curves_of(results, over).items():
            if len(points) > 1:
                print(f"{model}: time grows as {over}^{growth(points):.2f} at the end")
    for model, hours in estimate(results).items():
        print(f"{model}: ten million examples of a hundred thousand classes would take {hours:,.0f} processor hours")
    if options.plot is not None:
        plot_curves(results, options.plot)
    return 0 if fine else 1


if __name__ == "__main__":
    sys.exit(main())
