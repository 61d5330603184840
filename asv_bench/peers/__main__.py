"""Command line of the comparison with the peers."""

import argparse
import datetime
import os
import platform
import re
from functools import partial
from pathlib import Path

# One thread for all solvers; set before numpy and its BLAS are imported.
for variable in ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS", "NUMBA_NUM_THREADS"):
    os.environ[variable] = "1"

from .measure import measure  # noqa: E402
from .problems import all_problems, data_dir, quick_problems  # noqa: E402
from .report import load_results, save_result, write_report  # noqa: E402
from .solvers import available_solvers  # noqa: E402
from .worker import Worker  # noqa: E402

RESULTS = Path(__file__).resolve().parents[1] / "results"


def _arguments():
    parser = argparse.ArgumentParser(prog="ci/bench peers", description=__doc__)
    parser.add_argument("--quick", action="store_true", help="two small problems, under a minute")
    parser.add_argument("--only", default="", metavar="PATTERN", help="problems whose name holds this expression")
    parser.add_argument("--solvers", default="", metavar="PATTERN", help="solvers whose name holds this expression")
    parser.add_argument("--round", choices=("plain", "intercept", "both"), default="both")
    parser.add_argument("--runs", type=int, metavar="N", help="runs of each contending setting (5; quick: 2)")
    parser.add_argument(
        "--time-limit",
        type=float,
        metavar="S",
        help="no tighter setting for a solver after a fit of more than S seconds (20; quick: 1)",
    )
    parser.add_argument("--out", type=Path, metavar="FOLDER", help="where the results go (asv_bench/results/peers)")
    parser.add_argument("--list", action="store_true", help="list the problems and stop")
    parser.add_argument("--report", action="store_true", help="report on what is in the folder, measure nothing")
    parser.add_argument("--markdown", action="store_true", help="tables in Markdown")
    options = parser.parse_args()
    options.runs = options.runs or (2 if options.quick else 5)
    options.time_limit = options.time_limit or (1.0 if options.quick else 20.0)
    options.out = options.out or RESULTS / ("peers-quick" if options.quick else "peers")
    return options


def _problems(options):
    for problem in quick_problems() if options.quick else all_problems():
        both = {"plain": [problem], "intercept": [problem.with_intercept()]}
        both["both"] = both["plain"] + both["intercept"]
        yield from (chosen for chosen in both[options.round] if re.search(options.only, chosen.name))


def _processor():
    try:
        lines = Path("/proc/cpuinfo").read_text().splitlines()
    except OSError:
        return platform.processor()
    return next(
        (line.split(":", 1)[1].strip() for line in lines if line.startswith("model name")),
        platform.processor(),
    )


def _surroundings(solvers, missing, options):
    return {
        "date": datetime.date.today().isoformat(),
        "machine": f"{_processor()}, {os.cpu_count()} cores, {platform.system()}; one thread",
        "python": platform.python_version(),
        "solvers": ", ".join(f"{solver.name} {solver.version()}" for solver in solvers),
        "left out": "; ".join(f"{name} ({why})" for name, why in missing.items()) or "none",
        "data": "shared data sets" if data_dir() else "made",
        "runs": options.runs,
    }


def _measure_all(problems, options):
    solvers, missing = available_solvers(options.solvers, options.quick)
    for name, why in missing.items():
        print(f"{name} is left out: {why}")
    surroundings = _surroundings(solvers, missing, options)
    workers = [Worker(solver, problems) for solver in solvers]
    for k, problem in enumerate(problems, 1):
        print(f"[{k}/{len(problems)}] {problem.name}", flush=True)
        result = measure(problem, workers, options.runs, options.time_limit, partial(print, flush=True))
        save_result(options.out, result | {"surroundings": surroundings})
    for worker in workers:
        worker.close()


def main():
    options = _arguments()
    problems = list(_problems(options))
    if not problems:
        raise SystemExit(f"no problem is called like {options.only!r}; --list shows them")
    if options.list:
        print("\n".join(problem.name for problem in problems))
        return
    if not options.report:
        _measure_all(problems, options)
    text = write_report(options.out, load_results(options.out), options.markdown)
    print(f"\n{text}\n\nWritten to {os.path.relpath(options.out)}")


if __name__ == "__main__":
    main()
