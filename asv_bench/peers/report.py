"""Tables, one JSON file and plots from the measured problems."""

import json
import math
from pathlib import Path

from .measure import TARGETS
from .solvers import SOLVERS

OURS = "sl1max"
COLORS = {kind.name: f"C{k}" for k, kind in enumerate(SOLVERS)}
# Required ratio of each group of problems by target; against one peer if named.
BARS = {
    "independent": [(1e-3, None, 2.0), (1e-6, None, 3.0)],
    "exclusive": [(1e-4, "sklearn-saga", 30.0), (1e-4, "glmnet", 10.0)],
    "real-valued": [(1e-3, None, 1.5), (1e-6, None, 3.0)],
    "one-hot": [(1e-3, None, 1.5), (1e-6, None, 4.0)],
    "dense exclusive": [(1e-4, "sklearn-saga", 1.5)],
    "elastic net": [(1e-4, None, 3.0)],
    "elastic net, dense": [(1e-4, None, 1.5)],
}


def distance(result, objective):
    """Distance to the least objective seen, relative to the objective of zero weights."""
    return (objective - result["optimum"]) / result["objective_zero"]


def time_to(result, name, target):
    """Median seconds that a solver needs to a relative distance; None if it did not reach it."""
    goal = result["optimum"] + target * result["objective_zero"]
    reached = [point["median_seconds"] for point in result["solvers"].get(name, []) if point["objective"] <= goal]
    return min(reached, default=None)


def best_peer(result, target):
    """(name, seconds) of the fastest peer at the target, or (None, None)."""
    times = {name: time_to(result, name, target) for name in result["solvers"] if name != OURS}
    times = {name: seconds for name, seconds in times.items() if seconds is not None}
    name = min(times, key=times.get, default=None)
    return name, times.get(name)


def _most_accurate(result, name):
    """(relative distance to the optimum, seconds) of a solver's best point."""
    point = min(result["solvers"][name], key=lambda point: point["objective"])
    return distance(result, point["objective"]), point["median_seconds"]


def _time_spent(result, name):
    """Seconds of a solver's best point, or of the fit that was stopped."""
    if name in result["given_up_seconds"]:
        return result["given_up_seconds"][name]
    return _most_accurate(result, name)[1] if result["solvers"][name] else math.inf


def ratio_to(result, target, peer=None):
    """(ratio, at_least): the peer's time divided by ours; at_least if the peer did not reach the target."""
    ours = time_to(result, OURS, target)
    if peer is None:
        theirs = best_peer(result, target)[1]
    else:
        theirs = time_to(result, peer, target)
    if ours is None:
        return None, False
    if theirs is not None:
        return theirs / ours, False
    spent = [_time_spent(result, name) for name in result["solvers"] if name == (peer or name) != OURS]
    least = min(spent, default=math.inf)
    return (least / ours, True) if least < math.inf else (None, False)


def _seconds(seconds):
    if seconds is None:
        return "-"
    return f"{seconds * 1e3:.3g} ms" if seconds < 1 else f"{seconds:.3g} s"


def _ratio(ratio, at_least):
    return "-" if ratio is None else f"{'>' if at_least else ''}{ratio:.3g}x"


def _certified(result):
    """Certified relative accuracy of the optimum; with a question mark if it is insufficient."""
    if result["lower_bound"] <= 0:
        return "?"
    gap = result["optimum"] / result["lower_bound"] - 1.0
    return f"{gap:.0e}" + ("?" if gap > 100 * min(TARGETS) else "")


def problem_rows(results):
    """Header and rows: sl1max, the best peer and the ratio at each target."""
    header = ["problem", "optimum", "gap"]
    for target in TARGETS:
        header += [f"{OURS} {target:.0e}", "best peer", "ratio"]
    rows = []
    for result in results:
        row = [result["problem"], f"{result['optimum']:.6f}", _certified(result)]
        for target in TARGETS:
            peer, seconds = best_peer(result, target)
            row += [
                _seconds(time_to(result, OURS, target)),
                f"{peer} {_seconds(seconds)}" if peer else "none",
                _ratio(*ratio_to(result, target)),
            ]
        rows.append(row)
    return header, rows


def solver_rows(result):
    """Header and rows of one problem: every solver, its time to each target and the best it reached."""
    header = [result["problem"], *(f"{target:.0e}" for target in TARGETS), "best reached", "in", "warm-up"]
    rows = []
    for name, points in result["solvers"].items():
        if points:
            reached, seconds = _most_accurate(result, name)
            rows.append(
                [
                    name,
                    *(_seconds(time_to(result, name, target)) for target in TARGETS),
                    f"{reached:.0e}",
                    _seconds(seconds),
                    _seconds(result["warm_up_seconds"][name]),
                ]
            )
        if name in result["errors"]:
            rows.append([name, f"failed: {result['errors'][name]}", *[""] * (len(header) - 2)])
    return header, rows


def _bar_row(cells, target, peer, bar):
    """Number of problems, smallest and mean ratio, and problems below the required ratio; None without problems."""
    ratios = {cell["problem"]: ratio_to(cell, target, peer) for cell in cells}
    known = {name: found for name, found in ratios.items() if found[0] is not None}
    tried = [cell for cell in cells if OURS in cell["solvers"]]
    lost = [cell["problem"] for cell in tried if time_to(cell, OURS, target) is None]
    if not known and not lost:
        return None
    failed = [f"{name} {_ratio(*found)}" for name, found in known.items() if found[0] < bar]
    failed += [f"{name} not reached" for name in lost]
    least, mean = "0x", "-"
    if known and not lost:
        least = _ratio(*min(known.values()))
        logs = [math.log(ratio) for ratio, _ in known.values()]
        mean = _ratio(math.exp(sum(logs) / len(logs)), any(at_least for _, at_least in known.values()))
    return [str(len(known) + len(lost)), least, mean, ", ".join(failed) or "none"]


def bar_rows(results):
    """Header and rows: required and measured ratios by group."""
    header = ["group", "intercept", "target", "against", "bar"]
    header += ["cells", "least", "geometric mean", "not shown to pass"]
    rows = []
    for group, bars in BARS.items():
        for intercept in (False, True):
            cells = [r for r in results if r["group"] == group and r["intercept"] == intercept]
            for target, peer, bar in bars:
                row = _bar_row(cells, target, peer, bar)
                if row is not None:
                    head = [
                        group,
                        "yes" if intercept else "no",
                        f"{target:.0e}",
                        peer or "best peer",
                        f"{bar:g}x",
                    ]
                    rows.append(head + row)
    return header, rows


def format_table(header, rows, markdown=False):
    """Aligned columns for a terminal, or a Markdown table."""
    widths = [max(len(row[k]) for row in [header, *rows]) for k in range(len(header))]
    edge, between = ("| ", " | ") if markdown else ("", "  ")
    lines = [
        edge + between.join(cell.ljust(width) for cell, width in zip(row, widths, strict=True)) + edge[::-1]
        for row in [header, *rows]
    ]
    rule = ["|" + "|".join("-" * (width + 2) for width in widths) + "|"] if markdown else []
    return "\n".join(line.rstrip() for line in [lines[0], *rule, *lines[1:]])


def load_results(folder):
    """Load all results in the folder, sorted by name."""
    return [json.loads(path.read_text()) for path in sorted(Path(folder).glob("problem-*.json"))]


def save_result(folder, result):
    Path(folder).mkdir(parents=True, exist_ok=True)
    name = result["problem"].replace("/", "-")
    Path(folder, f"problem-{name}.json").write_text(json.dumps(result, indent=1))


def plot(result, path):
    """Sub-optimality over time, log-log, one line per solver."""
    import matplotlib

    matplotlib.use("Agg")
    import matplotlib.pyplot as plt

    figure, axes = plt.subplots(figsize=(6.4, 4.4), layout="constrained")
    for name, points in result["solvers"].items():
        pairs = sorted((p["median_seconds"], max(distance(result, p["objective"]), 1e-12)) for p in points)
        best, curve = math.inf, []
        for seconds, reached in pairs:
            if reached < best:
                best = reached
                curve.append((seconds, reached))
        if curve:
            axes.plot(
                *zip(*curve, strict=True),
                marker="o",
                markersize=3,
                label=name,
                color=COLORS[name],
                linewidth=2.2 if name == OURS else 1.1,
                zorder=3 if name == OURS else 2,
            )
    for target in TARGETS:
        axes.axhline(target, color="0.85", linewidth=0.8, zorder=1)
    axes.set(
        xscale="log",
        yscale="log",
        xlabel="seconds",
        ylabel="distance to the optimum / objective of zero weights",
        title=result["problem"],
    )
    axes.legend(fontsize="small", frameon=False)
    figure.savefig(path, dpi=120)
    plt.close(figure)


def _surroundings(results):
    """Machine, versions and date, once for each set of problems measured under the same."""
    blocks = ["\n".join(f"{key}: {value}" for key, value in result["surroundings"].items()) for result in results]
    return "\n\n".join(dict.fromkeys(blocks))


def write_report(folder, results, markdown=False):
    """Text of the report; beside it peers.json and one plot per problem in the folder."""
    if not results:
        raise SystemExit(f"nothing measured in {folder}")
    folder = Path(folder)
    lines = ",\n".join(json.dumps(result) for result in results)  # one line per problem, so that changes are readable
    (folder / "peers.json").write_text(f"[\n{lines}\n]\n")
    for result in results:
        plot(result, folder / f"plot-{result['problem'].replace('/', '-')}.png")
    tables = [problem_rows(results), *map(solver_rows, results), bar_rows(results)]
    return "\n\n".join([_surroundings(results), *(format_table(*table, markdown) for table in tables)])
