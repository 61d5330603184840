"""Parts of pages that are generated when the site is built: measurements, command-line help, version and repository."""

import json
import os
import subprocess
import sys
import tomllib
from pathlib import Path

import sl1max
from sl1max.cli._main import COMMANDS

ROOT = Path(__file__).resolve().parents[2]
ASV_BENCH = ROOT / "asv_bench"
SHOWN = (1e-3, 1e-6)  # distance to the optimum in the table of the problems


def substitutions(docs):
    """Markdown text by the name that pages use for it. Plots are written to docs/_generated."""
    sys.path.insert(0, str(ASV_BENCH))
    return {
        "version": sl1max.__version__,
        "repository": repository(),
        "cli_help": cli_help(),
        **webkb(docs),
        **supertags(docs),
        **peers(docs),
    }


def repository():
    """A link to the repository, if pyproject.toml names one."""
    urls = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]["urls"]
    return f"[Repository]({urls['Repository']}), " if "Repository" in urls else ""


def webkb(docs):
    """Figures of docs/benchmarks/webkb.json, which `ci/bench webkb` writes."""
    found = json.loads((docs / "benchmarks" / "webkb.json").read_text(encoding="utf-8"))
    rows = [
        f"| {fit['distribution']}, {fit['label_mode']} | {fit['seconds']:.2f} | {fit['n_weights']:,} "
        f"| {100 * fit['error']:.1f} % |"
        for fit in found["fits"]
    ]
    header = ["| model | seconds | nonzero weights | test error |", "|---|---:|---:|---:|"]
    return {
        "webkb_path_one_class": f"{found['path_one_class']:.2f} s",
        "webkb_path_four_classes": f"{found['path_four_classes']:.2f} s",
        "webkb_n_betas": str(found["n_betas"]),
        "webkb_fits": "\n".join(header + rows),
        "webkb_where": ", ".join(str(found["surroundings"][key]) for key in ("machine", "versions", "date")) + ".",
    }


def supertags(docs):
    """The table of docs/benchmarks/supertags.json: models of thousands of classes."""
    found = json.loads((docs / "benchmarks" / "supertags.json").read_text(encoding="utf-8"))
    header = [
        "| model | time in the paper | time | processor time | peak memory | weights | test error | top-5 error |",
        "|---|---:|---:|---:|---:|---:|---:|---:|",
    ]
    rows = [
        f"| {row['model']} | {'-' if row['paper_hours'] is None else str(row['paper_hours']) + ' h'} "
        f"| {row['minutes']:.3g} min | {row['processor_seconds']:,} s | {row['peak_gb']} GB | {row['n_weights']:,} "
        f"| {row['error']} % | {row['error_top_5']} % |"
        for row in found["models"]
    ]
    where = ", ".join(found["surroundings"][key] for key in ("machine", "versions", "date")) + "."
    return {"supertags_table": "\n".join(header + rows), "supertags_where": where}


def cli_help():
    """The output of ``sl1max COMMAND --help`` for each command, in folded blocks."""
    environment = {**os.environ, "COLUMNS": "100", "NO_COLOR": "1"}
    parts = []
    for command in COMMANDS:
        call = [sys.executable, "-m", "sl1max", command, "--help"]
        text = subprocess.run(call, check=True, capture_output=True, text=True, env=environment).stdout
        parts.append(f":::{{dropdown}} sl1max {command} --help\n```none\n{text}```\n:::")
    return "\n\n".join(parts)


def peers(docs):
    """Tables, plots and sentences from docs/benchmarks/peers.json, which `ci/bench peers` writes."""
    from peers import front_page, report

    results = front_page.load_results()
    folder = docs / "_generated" / "peers"
    folder.mkdir(parents=True, exist_ok=True)
    problems, *solvers = (
        report.format_table(*table, markdown=True)
        for table in (problem_rows(report, results), *map(report.solver_rows, results))
    )
    figures = front_page.figures(results)
    return {
        "text_ratio": figures["text"],
        "n_text": figures["n_text"],
        "text_mean": figures["text_mean"],
        "glmnet_ratio": figures["glmnet"],
        "dense_ratio": figures["dense"],
        "peers_summary": report.format_table(*front_page.summary_rows(results), markdown=True),
        "peers_where": where(results),
        "peers_ratios": plot_ratios(report, results, folder),
        "peers_problems": problems,
        "peers_plots": "\n\n".join(plot_problem(report, result, folder) for result in results),
        "peers_solvers": "\n\n".join(solvers),
    }


def where(results):
    """Machine, versions and dates, listed once for all problems that share them."""
    lists = ["\n".join(f"- {key}: {value}" for key, value in r["surroundings"].items()) for r in results]
    return "\n\nOther problems:\n\n".join(dict.fromkeys(lists))


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
    return image(path, f"{result['problem']}: distance to the optimum over seconds")


def plot_ratios(report, results, folder):
    """Plot the time of the fastest peer divided by that of sl1max, one row per group of problems."""
    import matplotlib.pyplot as plt
    from matplotlib.ticker import LogLocator, NullFormatter, StrMethodFormatter

    groups = {}
    for result in results:
        name = (
            "multinomial" if result["group"] == "exclusive" else result["group"].replace("independent", "binary text")
        )
        name += ", intercept" if result["intercept"] else ""
        groups.setdefault(name, []).append(result)
    path = folder / "ratios.png"
    figure, axes = plt.subplots(figsize=(7.0, 1.4 + 0.55 * len(groups)), layout="constrained")
    for target, color, shift in zip(SHOWN, ("#0072B2", "#D55E00"), (-0.15, 0.15), strict=True):
        found = [
            (report.ratio_to(result, target)[0], row + shift)
            for row, members in enumerate(groups.values())
            for result in members
        ]
        known = [(ratio, place) for ratio, place in found if ratio is not None]
        label = f"to {target:.0e} of the optimum"
        axes.scatter(*zip(*known, strict=True), color=color, alpha=0.7, linewidths=0, label=label, zorder=3)
    axes.axvline(1, color="black", linewidth=0.9)
    axes.set_xscale("log")
    axes.set_yticks(range(len(groups)), [f"{name} ({len(members)})" for name, members in groups.items()])
    axes.xaxis.set_major_locator(LogLocator(subs=(1, 2, 5)))
    axes.xaxis.set_major_formatter(StrMethodFormatter("{x:g}"))
    axes.xaxis.set_minor_formatter(NullFormatter())
    axes.invert_yaxis()
    axes.grid(axis="x", color="#E4E4E4", linewidth=0.6)
    axes.spines[["top", "right"]].set_visible(False)
    axes.set_xlabel("time of the fastest other solver / time of sl1max")
    axes.legend(frameon=False, fontsize="small", loc="lower right")
    figure.savefig(path, dpi=150)
    plt.close(figure)
    return image(path, "ratio of the fastest peer's time to that of sl1max")
