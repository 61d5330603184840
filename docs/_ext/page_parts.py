"""Parts of pages that are made when the site is built: measurements, and the help of the commands."""

import json
import os
import subprocess
import sys
from pathlib import Path

ASV_BENCH = Path(__file__).resolve().parents[2] / "asv_bench"
COMMANDS = ("train", "predict", "evaluate", "inspect", "reproduce")
SHOWN = (1e-3, 1e-6)  # relative sub-optimalities in the table of the problems
PEERS = ("peers_where", "peers_ratios", "peers_problems", "peers_plots", "peers_solvers")
NOTHING = "*No measurements are kept in this version: `ci/bench peers` makes them.*"


def substitutions(docs):
    """Markdown by the name under which pages ask for it; plots go to docs/_generated."""
    return {"cli_help": cli_help(), **peers(docs)}


def cli_help():
    """What ``sl1max COMMAND --help`` prints, folded away."""
    environment = {**os.environ, "COLUMNS": "100", "NO_COLOR": "1"}
    parts = []
    for command in COMMANDS:
        call = [sys.executable, "-m", "sl1max", command, "--help"]
        text = subprocess.run(call, check=True, capture_output=True, text=True, env=environment).stdout
        parts.append(f":::{{dropdown}} sl1max {command} --help\n```none\n{text}```\n:::")
    return "\n\n".join(parts)


def peers(docs):
    """docs/benchmarks/peers.json, a file that `ci/bench peers` writes, in the tables of its report."""
    file = docs / "benchmarks" / "peers.json"
    if not file.exists():
        return dict.fromkeys(PEERS, NOTHING)
    sys.path.insert(0, str(ASV_BENCH))
    from peers import report

    results = json.loads(file.read_text(encoding="utf-8"))
    folder = docs / "_generated" / "peers"
    folder.mkdir(parents=True, exist_ok=True)
    tables = [problem_rows(report, results), *map(report.solver_rows, results)]
    problems, *solvers = (report.format_table(*table, markdown=True) for table in tables)
    parts = (
        where(results),
        plot_ratios(report, results, folder),
        problems,
        "\n\n".join(plot_problem(report, result, folder) for result in results),
        "\n\n".join(solvers),
    )
    return dict(zip(PEERS, parts, strict=True))


def where(results):
    """Machine, versions and dates: one list for each set of problems measured under the same."""
    lists = ["\n".join(f"- {key}: {value}" for key, value in r["surroundings"].items()) for r in results]
    return "\n\nOthers:\n\n".join(dict.fromkeys(lists))


def problem_rows(report, results):
    """The report's table of problems, at two targets only."""
    header, rows = report.problem_rows(results)
    targets = [f"{target:.0e}" for target in SHOWN]
    starts = [k for k, name in enumerate(header) if name.split()[-1] in targets]
    kept = [0, *(k + step for k in starts for step in range(3))]
    return [header[k] for k in kept], [[row[k] for k in kept] for row in rows]


def image(path, text):
    return f"![{text}](../_generated/peers/{path.name})"


def plot_problem(report, result, folder):
    path = folder / f"{result['problem'].replace('/', '-')}.png"
    report.plot(result, path)
    return image(path, f"{result['problem']}: relative sub-optimality over seconds")


def plot_ratios(report, results, folder):
    """How many times longer the fastest peer takes, one row for each problem."""
    import matplotlib.pyplot as plt
    from matplotlib.ticker import LogLocator, NullFormatter, StrMethodFormatter

    path = folder / "ratios.png"
    figure, axes = plt.subplots(figsize=(7.0, 1.2 + 0.24 * len(results)), layout="constrained")
    for target, color in zip(SHOWN, ("#0072B2", "#D55E00"), strict=True):
        ratios = [report.ratio_to(result, target)[0] for result in results]
        known = [(ratio, place) for place, ratio in enumerate(ratios) if ratio is not None]
        if known:
            axes.scatter(*zip(*known, strict=True), color=color, label=f"to {target:.0e} of the optimum", zorder=3)
    axes.axvline(1, color="black", linewidth=0.9)
    axes.set_xscale("log")
    axes.set_yticks(range(len(results)), [result["problem"] for result in results], fontsize="small")
    axes.xaxis.set_major_locator(LogLocator(subs=(1, 2, 5)))
    axes.xaxis.set_major_formatter(StrMethodFormatter("{x:g}"))
    axes.xaxis.set_minor_formatter(NullFormatter())
    axes.invert_yaxis()
    axes.grid(axis="x", color="#E4E4E4", linewidth=0.6)
    axes.set_xlabel("seconds of the fastest peer / seconds of sl1max")
    axes.legend(frameon=False, fontsize="small")
    figure.savefig(path, dpi=150)
    plt.close(figure)
    return image(path, "ratio of the fastest peer's time to that of sl1max")
