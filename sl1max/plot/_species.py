"""Figures of species distributions: response curves, omission, ROC, jackknife, tuning, maps."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING, Any

import numpy as np

from sl1max.plot._drawing import COLORS, SMALL, line_style, open_axes, tidy

if TYPE_CHECKING:
    from matplotlib.axes import Axes

MOST_PIXELS = 1000  # of a map, in either direction
MAP_COLORS = "viridis"
JACKKNIFE_FIGURES = {
    "gain": "regularised training gain",
    "auc": "training AUC",
    "test_gain": "test gain",
    "test_auc": "test AUC",
}
TUNING_FIGURES = {
    "aicc": "AICc",
    "delta_aicc": "AICc above the least",
    "test_auc": "test AUC",
    "test_gain": "test gain",
    "auc_diff": "training AUC less test AUC",
    "omission_minimum": "test omission, minimum training presence",
    "omission_10_percentile": "test omission, 10th percentile",
    "gain": "regularised training gain",
    "n_weights": "features with a weight",
}


def plot_response(
    curve: Any, name: str = "", *, output: str = "cloglog", label: str | None = None, ax: Axes | None = None
) -> Axes:
    """A response curve: the prediction against one covariate.

    Parameters
    ----------
    curve : Table
        What `sl1max.species.response_curve` returns.
    name : str
        Of the covariate.
    output : str
        What the response is.
    label : str, optional
        Names the curve in a legend, to compare several in the same axes.
    ax : matplotlib Axes, optional
        Where to draw; a new figure unless given.

    Returns
    -------
    matplotlib.axes.Axes
        Dashed beyond the range in training. Categories are bars.

    Examples
    --------
    >>> import numpy as np
    >>> from sl1max.plot import plot_response
    >>> from sl1max.species import SpeciesModel, response_curve
    >>> rng = np.random.default_rng(0)
    >>> X = np.concatenate([rng.uniform(0, 10, (500, 1)), rng.normal(7, 1, (40, 1))])
    >>> y = np.arange(540) >= 500
    >>> curve = response_curve(SpeciesModel("lq").fit(X, y), X, y, 0)
    >>> plot_response(curve, "warmth").get_xlabel()
    'warmth'
    """
    value, response, inside = curve["value"], curve["response"], np.asarray(curve["inside"], bool)
    ax = open_axes(ax, (3.6, 2.6))
    color = COLORS[len(ax.lines) // 2 % len(COLORS)]
    if _is_continuous(value):
        ax.plot(value, np.where(inside, response, np.nan), color=color, linewidth=1.6, label=label)
        ax.plot(value, response, "--", color=color, linewidth=0.9)
    else:
        texts = [f"{one:g}" if isinstance(one, float) else str(one) for one in value.tolist()]
        ax.bar(texts, response, color=color, width=0.72, label=label)
        crowded = sum(map(len, texts)) > 28
        ax.tick_params(axis="x", labelsize=SMALL, rotation=90 if crowded else 0)
    ax.set_ylim(0, 1 if output in ("cloglog", "logistic") else None)
    ax.set_xlabel(name)
    ax.set_ylabel(output)
    if label is not None:
        ax.legend(frameon=False, fontsize=SMALL)
    tidy(ax)
    return ax


def _is_continuous(value):
    """Evenly spaced numbers; the values of a category are as they come."""
    if value.dtype.kind not in "fiu" or len(value) < 3:
        return False
    step = np.diff(value.astype(float))
    return bool(len(value) > 20 and np.ptp(step) <= 1e-6 * np.abs(step).max())


def plot_omission(evaluation: Any, *, ax: Axes | None = None) -> Axes:
    """Omission of presences and predicted area against the cumulative threshold.

    Parameters
    ----------
    evaluation : Evaluation
        What `sl1max.species.evaluate` returns.
    ax : matplotlib Axes, optional
        Where to draw; a new figure unless given.

    Returns
    -------
    matplotlib.axes.Axes
        Presences drawn from the model's distribution would have the omission of the dotted line.

    Examples
    --------
    >>> import numpy as np
    >>> from sl1max.plot import plot_omission
    >>> from sl1max.species import SpeciesModel, evaluate
    >>> rng = np.random.default_rng(0)
    >>> X = np.concatenate([rng.uniform(0, 10, (500, 1)), rng.normal(7, 1, (40, 1))])
    >>> y = np.arange(540) >= 500
    >>> plot_omission(evaluate(SpeciesModel("lq").fit(X, y), X, y)).get_xlabel()
    'cumulative threshold'
    """
    curve = evaluation.curve
    ax = open_axes(ax, (5.0, 3.4))
    ax.plot(curve["cumulative"], curve["area"], label="predicted area", color=COLORS[1], linewidth=1.6)
    ax.step(curve["cumulative"], curve["training_omission"], where="pre", label="training omission", color=COLORS[0])
    if "test_omission" in curve.columns:
        style: dict[str, Any] = {"label": "test omission", "color": COLORS[3], "linestyle": "--"}
        ax.step(curve["cumulative"], curve["test_omission"], where="pre", **style)
    ax.plot([0, 100], [0, 1], label="omission expected", color="black", linewidth=0.9, linestyle=":")
    ax.set_xlim(0, 100)
    ax.set_ylim(0, 1)
    ax.set_xlabel("cumulative threshold")
    ax.set_ylabel("share")
    ax.legend(frameon=False, fontsize=SMALL)
    tidy(ax)
    return ax


def plot_roc(evaluation: Any, *, ax: Axes | None = None) -> Axes:
    """The share of presences found against the predicted area, over all thresholds: the ROC curve.

    Parameters
    ----------
    evaluation : Evaluation
        What `sl1max.species.evaluate` returns.
    ax : matplotlib Axes, optional
        Where to draw; a new figure unless given.

    Returns
    -------
    matplotlib.axes.Axes

    Examples
    --------
    >>> import numpy as np
    >>> from sl1max.plot import plot_roc
    >>> from sl1max.species import SpeciesModel, evaluate
    >>> rng = np.random.default_rng(0)
    >>> X = np.concatenate([rng.uniform(0, 10, (500, 1)), rng.normal(7, 1, (40, 1))])
    >>> y = np.arange(540) >= 500
    >>> plot_roc(evaluate(SpeciesModel("lq").fit(X, y), X, y)).get_ylabel()
    'sensitivity: share of presences found'
    """
    curve = evaluation.curve
    ax = open_axes(ax, (4.4, 4.0))
    area = np.concatenate([[1.0], curve["area"], [0.0]])
    for name, figure, color, dashes in (
        ("training", evaluation.auc, COLORS[0], "-"),
        ("test", evaluation.test_auc, COLORS[3], "--"),
    ):
        if f"{name}_omission" in curve.columns:
            found = np.concatenate([[1.0], 1 - curve[f"{name}_omission"], [0.0]])
            ax.plot(area, found, dashes, color=color, linewidth=1.6, label=f"{name}, AUC {figure:.3f}")
    ax.plot([0, 1], [0, 1], color="black", linewidth=0.9, linestyle=":", label="random, AUC 0.5")
    ax.set_xlim(0, 1)
    ax.set_ylim(0, 1)
    ax.set_aspect("equal")
    ax.set_xlabel("predicted area")
    ax.set_ylabel("sensitivity: share of presences found")
    ax.legend(frameon=False, fontsize=SMALL, loc="lower right")
    tidy(ax)
    return ax


def plot_jackknife(table: Any, figure: str = "gain", *, whole: float | None = None, ax: Axes | None = None) -> Axes:
    """Gain or AUC of models without each covariate and with it alone, as bars.

    Parameters
    ----------
    table : Table
        What `sl1max.species.jackknife` returns.
    figure : {"gain", "auc", "test_gain", "test_auc"}
    whole : float, optional
        The figure of the model of all covariates, as a line.
    ax : matplotlib Axes, optional
        Where to draw; a new figure unless given.

    Returns
    -------
    matplotlib.axes.Axes

    Examples
    --------
    >>> import numpy as np
    >>> from sl1max.plot import plot_jackknife
    >>> from sl1max.species import SpeciesModel, jackknife
    >>> rng = np.random.default_rng(0)
    >>> X = np.concatenate([rng.uniform(0, 10, (500, 2)), rng.normal(7, 1, (40, 2)) * [1, 0] + [0, 5]])
    >>> y = np.arange(540) >= 500
    >>> model = SpeciesModel("l").fit(X, y)
    >>> plot_jackknife(jackknife(model, X, y), whole=model.gain_).get_xlabel()
    'regularised training gain'
    """
    if figure not in JACKKNIFE_FIGURES or f"{figure}_only" not in table.columns:
        known = ", ".join(name for name in JACKKNIFE_FIGURES if f"{name}_only" in table.columns)
        raise ValueError(f"plot_jackknife: figure must be one of {known}, got {figure!r}")
    names = table["covariate"].tolist()
    ax = open_axes(ax, (5.4, 1.2 + 0.34 * len(names)))
    place = np.arange(len(names))[::-1]
    ax.barh(place + 0.2, table[f"{figure}_without"], height=0.36, color=COLORS[5], label="without the covariate")
    ax.barh(place - 0.2, table[f"{figure}_only"], height=0.36, color=COLORS[0], label="with it alone")
    if whole is not None:
        ax.axvline(whole, color=COLORS[1], linewidth=1.4, label="with all")
    ax.set_yticks(place, names, fontsize=SMALL)
    ax.set_ylim(-0.6, len(names) - 0.4)
    if figure.endswith("auc"):
        values = np.concatenate([table[f"{figure}_without"], table[f"{figure}_only"]])
        ax.set_xlim(left=min(0.5, np.floor(10 * values.min()) / 10))
    ax.set_xlabel(JACKKNIFE_FIGURES[figure])
    ax.legend(loc="lower center", bbox_to_anchor=(0.5, 1.0), ncols=3, frameon=False, fontsize=SMALL)
    tidy(ax, grid="x")
    ax.spines["left"].set_visible(False)
    ax.tick_params(axis="y", length=0)
    return ax


def plot_tuning(tuning: Any, figure: str | None = None, *, ax: Axes | None = None) -> Axes:
    """A figure of the models compared against the beta multiplier, with a line for each set of feature classes.

    Parameters
    ----------
    tuning : Tuning
        What `sl1max.species.tune` returns.
    figure : str, optional
        A column of its table, such as "aicc", "test_auc" or "omission_10_percentile"; by default that of its rule.
    ax : matplotlib Axes, optional
        Where to draw; a new figure unless given.

    Returns
    -------
    matplotlib.axes.Axes
        The chosen setting has a circle. Settings without an AICc are left out.

    Examples
    --------
    >>> import numpy as np
    >>> from sl1max.plot import plot_tuning
    >>> from sl1max.species import SpeciesModel, tune
    >>> rng = np.random.default_rng(0)
    >>> X = np.concatenate([rng.uniform(0, 10, (500, 1)), rng.normal(7, 1, (40, 1))])
    >>> y = np.arange(540) >= 500
    >>> model = SpeciesModel().fit(X, y)
    >>> tuning = tune(model, X, y, features=["l", "lq"], beta_multipliers=[1, 2], random_state=0)
    >>> plot_tuning(tuning).get_ylabel()
    'AICc'
    """
    table = tuning.table
    figure = {"omission": "omission_10_percentile"}.get(tuning.rule, tuning.rule) if figure is None else figure
    if figure not in TUNING_FIGURES:
        raise ValueError(f"plot_tuning: figure must be one of {', '.join(TUNING_FIGURES)}, got {figure!r}")
    ax = open_axes(ax, (5.2, 3.4))
    value = np.where(np.isfinite(table[figure].astype(float)), table[figure].astype(float), np.nan)
    features, betas = table["features"], table["beta_multiplier"]
    for k, one in enumerate(dict.fromkeys(features.tolist())):
        rows = np.flatnonzero(features == one)
        rows = rows[np.argsort(betas[rows], kind="stable")]
        ax.plot(betas[rows], value[rows], marker="o", markersize=3.5, label=one, **line_style(k))
    best = tuning.best
    ring: dict[str, Any] = {
        "markersize": 11,
        "markerfacecolor": "none",
        "markeredgecolor": "black",
        "linestyle": "none",
    }
    ax.plot(betas[best], value[best], marker="o", label="chosen", **ring)
    ax.set_xlabel("beta multiplier")
    ax.set_ylabel(TUNING_FIGURES[figure])
    ax.legend(frameon=False, fontsize=SMALL)
    tidy(ax)
    return ax


def plot_map(
    values: Any,
    *,
    extent: tuple[float, float, float, float] | None = None,
    points: Any = None,
    name: str = "cloglog",
    colors: str = MAP_COLORS,
    ax: Axes | None = None,
) -> Axes:
    """A map of predictions, with presences as points.

    Parameters
    ----------
    values : path, or array of shape (n_rows, n_columns)
        A raster that `sl1max.species.predict_raster` has written, of which at most 1,000 rows and columns are read; or
        an array, nan where there is no data.
    extent : tuple of float, optional
        x of the left and the right edge, y of the bottom and the top. That of the raster by default.
    points : array of shape (n_points, 2), optional
        x and y.
    name : str
        What the colours show.
    colors : str
        A colour map of matplotlib.
    ax : matplotlib Axes, optional
        Where to draw; a new figure unless given.

    Returns
    -------
    matplotlib.axes.Axes

    Examples
    --------
    >>> import numpy as np
    >>> from sl1max.plot import plot_map
    >>> ax = plot_map(np.linspace(0, 1, 12).reshape(3, 4), extent=(0, 4, 0, 3), points=[[1.5, 2.5]])
    >>> ax.get_images()[0].get_extent()
    [0, 4, 0, 3]
    """
    if isinstance(values, (str, os.PathLike)):
        values, found = _read_map(values)
        extent = found if extent is None else extent
    values = np.ma.masked_invalid(np.asarray(values, float))
    if values.ndim != 2:
        raise ValueError(f"plot_map: values must have rows and columns; their shape is {values.shape}")
    left, right, bottom, top = (0, values.shape[1], 0, values.shape[0]) if extent is None else extent
    wide = min(max((right - left) / max(top - bottom, 1e-9), 0.4), 2.5)
    ax = open_axes(ax, (min(4.2 * wide, 7.0) + 1.0, min(4.2, 7.0 / wide) + 0.4))
    limits: dict[str, Any] = {"vmin": 0, "vmax": 1} if name in ("cloglog", "logistic") else {}
    image = ax.imshow(values, extent=(left, right, bottom, top), cmap=colors, interpolation="nearest", **limits)
    ax.figure.colorbar(image, ax=ax, shrink=0.8, label=name)
    if points is not None:
        x, y = np.asarray(points, float).T
        ax.plot(x, y, "o", markersize=3, markerfacecolor="white", markeredgecolor="black", markeredgewidth=0.6)
        ax.set_xlim(left, right)
        ax.set_ylim(bottom, top)
    ax.set_facecolor("#F0F0F0")  # where there is no data
    ax.tick_params(labelsize=SMALL)
    return ax


def _read_map(path):
    """A raster, thinned out if it is large, and its extent."""
    try:
        import rasterio
    except ImportError as error:
        raise ImportError("plot_map reads files by rasterio: pip install rasterio") from error
    with rasterio.open(path) as raster:
        step = max(1, -(-max(raster.shape) // MOST_PIXELS))
        shape = tuple(-(-size // step) for size in raster.shape)
        values = raster.read(1, out_shape=shape, masked=True).astype(float).filled(np.nan)
        left, bottom, right, top = raster.bounds
    return values, (left, right, bottom, top)
