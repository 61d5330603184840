"""Pieces of figures: axes, colours, line styles, names at the ends of lines."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, Literal

import numpy as np

if TYPE_CHECKING:
    from matplotlib.axes import Axes

# Told apart with any kind of colour vision (Okabe and Ito); the line styles serve where colours run out.
COLORS = ("#0072B2", "#D55E00", "#009E73", "#CC79A7", "#E69F00", "#56B4E9", "#000000")
STYLES = ("-", "--", ":", "-.")
POSITIVE, NEGATIVE, QUIET = COLORS[0], COLORS[1], "#B0B0B0"
SMALL = "small"
LINE_POINTS = 11.5  # from one line of small text to the next
CONNECTOR = {"arrowstyle": "-", "linewidth": 0.6, "shrinkA": 1, "shrinkB": 0, "relpos": (0, 0.5)}


def open_axes(ax: Axes | None, size: tuple[float, float]) -> Axes:
    """These axes, or those of a new figure of this size."""
    if ax is not None:
        return ax
    try:
        import matplotlib.pyplot as plt
    except ImportError as error:
        raise ImportError("sl1max.plot needs matplotlib: pip install matplotlib") from error
    return plt.subplots(figsize=size, layout="constrained")[1]


def tidy(ax: Axes, grid: Literal["x", "y", "both"] = "y") -> None:
    """Light grid behind the data, no frame where there is no scale."""
    ax.set_axisbelow(True)
    ax.grid(axis=grid, color="#E4E4E4", linewidth=0.6)
    for side in ("top", "right"):
        ax.spines[side].set_visible(False)


def line_style(k: int) -> dict[str, Any]:
    """Colour and dashes of the k-th line."""
    return {
        "color": COLORS[k % len(COLORS)],
        "linestyle": STYLES[k // len(COLORS) % len(STYLES)],
        "linewidth": 1.6,
    }


def spread_apart(places: Sequence[float], gap: float, low: float, high: float) -> np.ndarray:
    """The nearest places, by least squares, that are a gap apart in the same order and within bounds."""
    order = np.argsort(places, kind="stable")
    steps = gap * np.arange(len(places))
    blocks: list[tuple[float, int]] = []  # mean and size of places that push each other away
    for place in np.asarray(places, float)[order] - steps:
        mean, size = place, 1
        while blocks and blocks[-1][0] > mean:
            other, other_size = blocks.pop()
            mean, size = (mean * size + other * other_size) / (size + other_size), size + other_size
        blocks.append((mean, size))
    moved = np.repeat([mean for mean, _ in blocks], [size for _, size in blocks])
    spread = np.empty(len(places))
    spread[order] = np.clip(moved, low, max(low, high - gap * (len(places) - 1))) + steps
    return spread


def label_line_ends(ax: Axes, x: float, heights: Sequence[float], texts: Sequence[str]) -> None:
    """Names to the right of the lines, moved apart where they would overlap, each tied to its line."""
    low, high = ax.get_ylim()
    figure: Any = ax.figure
    figure.draw_without_rendering()  # only then the layout says how high the axes are
    points = ax.get_window_extent().height * 72 / ax.figure.dpi
    places = spread_apart(heights, LINE_POINTS / points * (high - low), low, high)
    for k, (height, place, text) in enumerate(zip(heights, places, texts, strict=True)):
        color = line_style(k)["color"]
        ax.annotate(
            text,
            xy=(x, height),
            xytext=(1.05, (place - low) / (high - low)),
            textcoords="axes fraction",
            va="center",
            color=color,
            fontsize=SMALL,
            annotation_clip=False,
            arrowprops={**CONNECTOR, "color": color},
        )
    ax.set_ylim(low, high)
