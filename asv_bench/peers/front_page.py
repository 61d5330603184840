"""The plot and the figures of the front page, from docs/benchmarks/peers.json.

cd asv_bench && python -m peers.front_page
"""

import json
import math
from pathlib import Path

import numpy as np

from .report import OURS, ratio_to, time_to

DOCS = Path(__file__).resolve().parents[2] / "docs"
TARGETS = 10.0 ** -np.arange(1, 8)
# Solvers that reached an accuracy of 1e-6 on all problems of the plot; the benchmark page has the others.
LABELS = {"skglm": "skglm", "sklearn-liblinear": "scikit-learn (liblinear)", "liblinear": "LIBLINEAR", OURS: "sl1max"}
COLORS = {"skglm": "#009E73", "sklearn-liblinear": "#CC79A7", "liblinear": "#D55E00", OURS: "#0072B2"}
HEIGHTS = {"sklearn-liblinear": 6, "liblinear": -6}  # of the labels, in points


def load_results():
    return json.loads((DOCS / "benchmarks" / "peers.json").read_text(encoding="utf-8"))


def select(results, group, intercept=None):
    """The problems of a group; with or without an intercept, or both."""
    return [r for r in results if r["group"] == group and intercept in (None, r["intercept"])]


def ratio_summary(results, target, peer=None):
    """(least, greatest, geometric mean) of the ratios that are known, not only bounded from below."""
    found = [ratio_to(result, target, peer) for result in results]
    known = [ratio for ratio, at_least in found if ratio is not None and not at_least]
    return min(known), max(known), math.exp(sum(map(math.log, known)) / len(known))


def figures(results):
    """Sentences of the README and of the benchmark page, by name."""
    text = select(results, "independent", intercept=False)
    dense = select(results, "real-valued")
    low, high, mean = ratio_summary(text, 1e-6)
    glmnet_low, glmnet_high, _ = ratio_summary(select(results, "exclusive"), 1e-4, "glmnet")
    loose, tight = ratio_summary(dense, 1e-3), ratio_summary(dense, 1e-6)
    return {
        "text": f"{low:.1f} to {high:.1f} times as fast",
        "text_mean": f"geometric mean: {mean:.1f}",
        "n_text": f"{len(text)} binary text problems",
        "glmnet": f"{glmnet_low:.1f} to {glmnet_high:.1f} times as long",
        "dense": f"{loose[0]:.1f} to {loose[1]:.1f} to 1e-3 and {tight[0]:.1f} to {tight[1]:.1f} to 1e-6",
    }


def summary_rows(results):
    """Header and rows: range and geometric mean of the ratios on the binary text problems."""
    rows = []
    for intercept in (False, True):
        for target in (1e-3, 1e-6):
            low, high, mean = ratio_summary(select(results, "independent", intercept), target)
            rows.append(["yes" if intercept else "no", f"{target:.0e}", f"{low:.1f} to {high:.1f}", f"{mean:.1f}"])
    return ["intercept", "accuracy", "range", "geometric mean"], rows


def mean_times(results, name):
    """Geometric mean of the seconds to each target over all problems; NaN where a problem was not solved to it."""
    times = [[time_to(result, name, target) for target in TARGETS] for result in results]
    return np.exp(np.log(np.array(times, dtype=float)).mean(axis=0))


def draw(results, path):
    import matplotlib

    matplotlib.use("Agg")
    matplotlib.rcParams["svg.hashsalt"] = "sl1max"
    import matplotlib.pyplot as plt

    figure, ax = plt.subplots(figsize=(8.0, 3.8), layout="constrained")
    for name, label in LABELS.items():
        times = 1e3 * mean_times(results, name)
        ax.plot(TARGETS, times, color=COLORS[name], linewidth=3 if name == OURS else 1.8, marker="o", markersize=4.5)
        (last,) = np.flatnonzero(np.isfinite(times))[-1:]
        ax.annotate(
            label, (TARGETS[last], times[last]), xytext=(9, HEIGHTS.get(name, 0)), textcoords="offset points",
            va="center", color=COLORS[name], fontsize=12, fontweight="bold" if name == OURS else "normal",
        )  # fmt: skip
    ax.set(xscale="log", yscale="log")
    ax.set_xlabel("distance to the optimum, relative to zero weights (more accurate to the right)", fontsize=12)
    ax.set_ylabel("milliseconds", fontsize=12)
    ax.set_xlim(1.6e-1, 5e-10)
    ax.set_ylim(9, 520)
    ax.set_xticks(TARGETS)
    ax.set_yticks([10, 20, 50, 100, 200, 500], ["10", "20", "50", "100", "200", "500"])
    ax.tick_params(labelsize=11)
    ax.minorticks_off()
    ax.set_title(f"Training time, geometric mean of {len(results)} text problems", loc="left", fontsize=13)
    ax.spines[["top", "right"]].set_visible(False)
    ax.grid(axis="y", color="#E0E0E0")
    figure.savefig(path, metadata={"Date": None})


def main():
    results = load_results()
    draw(select(results, "independent", intercept=False), DOCS / "_static" / "time_to_accuracy.svg")
    for name, text in figures(results).items():
        print(f"{name}: {text}")


if __name__ == "__main__":
    main()
