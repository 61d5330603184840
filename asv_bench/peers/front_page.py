"""The picture of the README: time to accuracy on binary text problems, from docs/benchmarks/peers.json.

cd asv_bench && python -m peers.front_page
"""

import json
from pathlib import Path

import matplotlib
import numpy as np

from .report import OURS, time_to

DOCS = Path(__file__).resolve().parents[2] / "docs"
TARGETS = 10.0 ** -np.arange(1, 8)
# Solvers that reached 1e-2 on all of these problems; the benchmark page has the others.
LABELS = {"liblinear": "LIBLINEAR", "skglm": "skglm", OURS: "sl1max"}
COLORS = {"liblinear": "#D55E00", "skglm": "#009E73", OURS: "#0072B2"}


def mean_times(results, name):
    """Geometric mean of the seconds to each target over all problems; NaN where a problem was not solved to it."""
    times = [[time_to(result, name, target) for target in TARGETS] for result in results]
    return np.exp(np.log(np.array(times, dtype=float)).mean(axis=0))


def draw(results, path):
    matplotlib.use("Agg")
    matplotlib.rcParams["svg.hashsalt"] = "sl1max"
    import matplotlib.pyplot as plt

    figure, ax = plt.subplots(figsize=(7.2, 3.6), layout="constrained")
    for name, label in LABELS.items():
        times = 1e3 * mean_times(results, name)
        ax.plot(TARGETS, times, color=COLORS[name], linewidth=2.8 if name == OURS else 1.6, marker="o", markersize=4)
        (last,) = np.flatnonzero(np.isfinite(times))[-1:]
        ax.annotate(
            label, (TARGETS[last], times[last]), xytext=(7, 0), textcoords="offset points", va="center",
            color=COLORS[name], fontweight="bold" if name == OURS else "normal",
        )  # fmt: skip
    ax.set(xscale="log", yscale="log", xlabel="relative distance to the optimum", ylabel="milliseconds")
    ax.set_xlim(2e-1, 6e-9)
    ax.set_xticks(TARGETS)
    ax.set_yticks([20, 50, 100, 200, 500], ["20", "50", "100", "200", "500"])
    ax.minorticks_off()
    ax.set_title(f"Time to accuracy, mean of {len(results)} text problems", loc="left", fontsize="medium")
    ax.spines[["top", "right"]].set_visible(False)
    ax.grid(axis="y", color="#E0E0E0")
    figure.savefig(path, metadata={"Date": None})


def main():
    results = json.loads((DOCS / "benchmarks" / "peers.json").read_text(encoding="utf-8"))
    chosen = [result for result in results if result["group"] == "independent" and not result["intercept"]]
    draw(chosen, DOCS / "_static" / "time_to_accuracy.svg")
    for name in LABELS:
        print(name, *(f"{1e3 * time:.3g}" for time in mean_times(chosen, name)))


if __name__ == "__main__":
    main()
