"""Tables and curves of the stored results."""

import json
import math

from .child import MODELS
from .data import SHAPE

# Hours in the paper (950,028 x 95,516, 4,726 classes); required minutes and GB; desired minutes.
GOALS = {
    "class-conditional": (14.9, 15, 4, 3),
    "joint, independent": (15.7, 20, 4, 5),
    "conditional, independent": (46.7, 20, 4, 5),
    "joint, exclusive": (None, 15, 4, 3),
    "conditional, exclusive": (None, 90, 16, 20),
}
COLUMNS = ("model", "paper", "bar", "aim", "time", "peak memory", "weights", "error", "among 5", "open", "largest gap")


def file_of(folder, settings):
    """Return the file with the results of a run."""
    part = f"{settings['classes'] or 'all'}-{settings['rows']:g}"
    made = "made-" + "x".join(map(str, settings["made"])) + "-" if settings["made"] else ""
    return folder / f"{made}{settings['model'].replace(', ', '-')}-{part}.json"


def load_results(folder):
    return [json.loads(path.read_text()) for path in sorted(folder.glob("*.json"))]


def format_duration(seconds):
    return (
        f"{seconds:.1f} s"
        if seconds < 100
        else f"{seconds / 60:.1f} min"
        if seconds < 6000
        else f"{seconds / 3600:.1f} h"
    )


def row_of(result):
    paper, bar, memory, aim = GOALS[result["model"]]
    error = [f"{100 * result[name]:.1f} %" for name in ("top_1_error", "top_5_error") if name in result]
    return (
        result["model"],
        "not possible" if paper is None else f"{paper} h",
        f"{bar} min, {memory} GB",
        f"{aim} min",
        format_duration(result["seconds"]),
        f"{result['memory'] / 2**30:.2f} GB",
        f"{result['n_weights']:,}",
        *(error + ["-", "-"])[:2],
        str(result["n_unconverged"]),
        f"{result['greatest_gap']:.1e}",
    )


def format_table(rows, markdown):
    rows = [COLUMNS, *rows]
    if markdown:
        rows.insert(1, ["---"] + ["---:"] * (len(COLUMNS) - 1))
        return "\n".join("| " + " | ".join(row) + " |" for row in rows)
    widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
    return "\n".join(
        "  ".join(
            f"{cell:<{width}}" if k == 0 else f"{cell:>{width}}"
            for k, (cell, width) in enumerate(zip(row, widths, strict=True))
        )
        for row in rows
    )


def group_results(results):
    """Group results by part of the data, in the order of the models."""
    order = list(MODELS)
    groups = {}
    for result in sorted(results, key=lambda result: order.index(result["model"])):
        part = (tuple(result["made"] or ()), result["classes"], result["rows"])
        groups.setdefault(part, []).append(result)
    return groups


def describe_part(results):
    made, first = ("made data, " if results[0]["made"] else ""), results[0]
    n_classes = first["classes"] or max(result["n_classes"] for result in results)
    size = f"{first['n_rows']:,} x {first['n_features']:,}, {n_classes:,} classes"
    return f"{made}{size}; beta {first['beta']:g}, relative gap {first['tol']:g}, {first['jobs']} threads"


def write_report(results, markdown=False):
    """A table for each part of the data that was trained on, with machine and date."""
    texts = []
    for group in group_results(results).values():
        machines = list(dict.fromkeys(result["surroundings"] for result in group))
        texts += [
            describe_part(group),
            format_table([row_of(result) for result in group], markdown),
            "\n".join(machines),
        ]
        predictions = [
            f"{result['model']}: {result['n_test']:,} test examples, top 1 in {result['top_1_seconds']:.1f} s, "
            f"top 5 in {result['top_5_seconds']:.1f} s"
            for result in group
            if "top_5_seconds" in result
        ]
        texts += ["\n".join(predictions)] if predictions else []
    return "\n\n".join(texts)


# Curves


def curves_of(results, over):
    """For each model the points (number, processor seconds, bytes) over "classes" or "rows", the other being whole."""
    curves = {}
    for result in results:
        other = result["rows"] == 1 if over == "classes" else result["classes"] is None
        if other:
            number = result["n_classes" if over == "classes" else "n_rows"]
            point = (number, result["processor_seconds"], result["memory"])
            curves.setdefault(result["model"], []).append(point)
    return {model: sorted(curves[model]) for model in MODELS if model in curves}


def growth(points):
    """Exponent of the growth of time between the last two points: 1 for linear growth."""
    (n_0, t_0, _), (n_1, t_1, _) = points[-2:]
    return math.log(t_1 / t_0) / math.log(n_1 / n_0)


def estimate(results, n_rows=10_000_000, n_classes=100_000):
    """For each model with both curves, hours of one processor for a larger task, extrapolated from the ends of its
    curves."""
    over_classes, over_rows = curves_of(results, "classes"), curves_of(results, "rows")
    hours = {}
    for result in results:
        model = result["model"]
        whole = result["rows"] == 1 and result["classes"] is None
        if whole and len(over_classes.get(model, ())) > 1 and len(over_rows.get(model, ())) > 1:
            by_rows = (n_rows / result["n_rows"]) ** growth(over_rows[model])
            by_classes = (n_classes / result["n_classes"]) ** growth(over_classes[model])
            hours[model] = result["processor_seconds"] * by_rows * by_classes / 3600
    return hours


def plot_curves(results, path):
    """Time and memory over classes and over rows, a line for each model."""
    import matplotlib

    matplotlib.use("svg")
    import matplotlib.pyplot as plt

    figure, axes = plt.subplots(2, 2, figsize=(9, 6.5), layout="constrained", sharex="col")
    for column, over in enumerate(("classes", "rows")):
        for model, points in curves_of(results, over).items():
            numbers, seconds, memory = zip(*points, strict=True)
            axes[0, column].loglog(numbers, seconds, marker="o", markersize=4, label=model)
            axes[1, column].semilogx(numbers, [value / 2**30 for value in memory], marker="o", markersize=4)
        title = "all classes of the rows" if over == "rows" else f"all {SHAPE[0]:,} rows"
        axes[0, column].set_title(title, fontsize="medium")
        axes[1, column].set_xlabel(over)
    axes[0, 0].set_ylabel("processor seconds")
    axes[1, 0].set_ylabel("peak memory, GB")
    for axis in axes.flat:
        axis.grid(alpha=0.3)
    if axes[0, 0].get_legend_handles_labels()[0]:
        axes[0, 0].legend(fontsize="small")
    figure.savefig(path)
    plt.close(figure)
