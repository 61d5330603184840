"""Figures: the path of the weights, convergence, the features of a class, calibration, rejection, cross-validation.

Every function draws into the axes that it is given, or into a new figure, and returns the axes. matplotlib is
imported when a figure is asked for.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from sl1max.metrics import Which, calibration_curve, reject_curve
from sl1max.model._explain import Ranking, Sign, class_number, read_names
from sl1max.plot._drawing import COLORS, NEGATIVE, POSITIVE, QUIET, SMALL, label_line_ends, line_style, open_axes, tidy

if TYPE_CHECKING:
    from matplotlib.axes import Axes

N_KEPT_SHOWN = 20  # examples kept, from which on the error scales the axis of a reject curve


def plot_path(
    result: Any,
    label: Any = None,
    n: int = 7,
    *,
    feature_names: Sequence[str] | None = None,
    ax: Axes | None = None,
) -> Axes:
    """The weights of a class against beta, from all zero on the left to weak regularisation on the right.

    Parameters
    ----------
    result : PathResult
        What `sl1max.path` returns.
    label : object, optional
        The class. Needed unless there is one, or two of which the second is meant. Of two exclusive classes the weights
        are those of the class less those of the other one, as in the log-odds.
    n : int
        How many features get a colour and a name: those whose weights become greatest. The others are grey.
    feature_names : sequence of str of length n_features, optional
        Names; otherwise column numbers are shown.
    ax : matplotlib Axes, optional
        Where to draw; a new figure unless given.

    Returns
    -------
    matplotlib.axes.Axes
        The axis on top counts the nonzero weights of the class.

    Examples
    --------
    >>> import numpy as np
    >>> import sl1max
    >>> from sl1max.plot import plot_path
    >>> X = np.random.default_rng(0).integers(0, 2, (100, 8))
    >>> ax = plot_path(sl1max.path(X, X[:, 0] & X[:, 1], betas=5), n=2)
    >>> ax.get_ylabel()
    'weight for class 1'
    """
    models = result.models
    label = _chosen_label(models[0], label)
    c = class_number(models[0], label)
    weights = _weights_along(models, c)
    if models[0].n_classes == 2 and models[0].label_mode == "exclusive":  # only the difference has a meaning
        weights = weights - _weights_along(models, 1 - c)
    betas = np.asarray(result.betas, float)
    if (betas <= 0).any():
        raise ValueError("plot_path: the scale of beta is logarithmic: leave out beta = 0")
    names = read_names(feature_names, models[0].n_features)
    size = np.abs(weights).max(axis=0)
    order = np.argsort(-size, kind="stable")
    order = order[size[order] > 0]
    texts = [str(j if names is None else names[j]) for j in order[:n]]
    ax = open_axes(ax, (6.0, 3.8))
    if len(order) > n:
        ax.plot(betas, weights[:, order[n:]], color=QUIET, linewidth=0.6, alpha=0.6, zorder=1)
    for k, j in enumerate(order[:n]):
        ax.plot(betas, weights[:, j], zorder=3, **line_style(k))
    ax.axhline(0, color="black", linewidth=0.8, zorder=2)
    _scale_of_betas(ax, betas)
    ax.set_xlabel(r"strength of the regularisation $\beta$")
    ax.set_ylabel(f"weight for class {label}")
    _count_on_top(ax, betas, np.count_nonzero(weights, axis=1))
    tidy(ax)
    label_line_ends(ax, betas.min(), weights[np.argmin(betas), order[:n]], texts)
    return ax


def plot_convergence(history: Sequence[Any], *, ax: Axes | None = None) -> Axes:
    """The duality gap against the iterations, with the target at which a problem counts as solved.

    Parameters
    ----------
    history : sequence of FitProgress
        What ``callback`` was given, e.g. ``history.append`` of a list.
    ax : matplotlib Axes, optional
        Where to draw; a new figure unless given.

    Returns
    -------
    matplotlib.axes.Axes
        Classes that are fitted together: the gap, and how far the objective is above its last value. Classes
        fitted one by one: the gap of each as a multiple of its target, the slowest with colours and names.

    Examples
    --------
    >>> import numpy as np
    >>> import sl1max
    >>> from sl1max.plot import plot_convergence
    >>> X = np.random.default_rng(0).integers(0, 2, (100, 8))
    >>> history = []
    >>> model = sl1max.fit(X, X[:, 0] + X[:, 1], callback=history.append)
    >>> plot_convergence(history).get_ylabel()
    'nats'
    """
    if not history:
        raise ValueError("plot_convergence: history is empty; give sl1max.fit callback=history.append")
    by_class: dict[Any, list] = {}
    for progress in history:
        by_class.setdefault(progress.class_label, []).append(progress)
    ax = open_axes(ax, (5.2, 3.6))
    if len(by_class) == 1:
        _plot_one_problem(ax, history)
    else:
        _plot_many_problems(ax, by_class)
    ax.set_yscale("log")
    ax.set_xlabel("iteration")
    locator: Any = ax.xaxis.get_major_locator()  # a MaxNLocator
    locator.set_params(integer=True)
    tidy(ax)
    return ax


def _plot_one_problem(ax, history):
    n_iter, gap, objective = _columns(history, "n_iter", "dual_gap", "objective")
    marker = {"marker": "o", "markersize": 3.5} if len(history) <= 60 else {}
    ax.plot(n_iter, _positive(gap), label="duality gap (certified bound)", color=COLORS[0], **marker)
    above = _positive(objective - objective[-1])
    ax.plot(n_iter, above, "--", label="objective above its last value", color=COLORS[1], **marker)
    ax.axhline(history[-1].target, color="black", linewidth=0.9, linestyle=":", label="target")
    ax.set_ylabel("nats")
    ax.legend(frameon=False, fontsize=SMALL)


def _plot_many_problems(ax, by_class):
    slowest = sorted(by_class, key=lambda label: -by_class[label][-1].n_iter)[: len(COLORS) - 1]
    # The slowest last, in their order, so that the legend has it too.
    for label in [*(label for label in by_class if label not in slowest), *slowest]:
        history = by_class[label]
        n_iter, gap, target = _columns(history, "n_iter", "dual_gap", "target")
        style = {"color": QUIET, "linewidth": 0.7, "zorder": 1}
        if label in slowest:
            style = {"label": str(label), "zorder": 3, **line_style(slowest.index(label))}
        if len(history) == 1:
            style["marker"] = "."
        ax.plot(n_iter, _positive(gap / target), **style)
    ax.axhline(1, color="black", linewidth=0.9, linestyle=":", zorder=2)
    ax.set_ylabel("duality gap / target")
    title = f"slowest of {len(by_class)} classes" if len(by_class) > len(slowest) else "class"
    ax.legend(title=title, frameon=False, fontsize=SMALL, title_fontsize=SMALL, alignment="left")


def plot_top_features(
    model: Any,
    label: Any,
    n: int = 15,
    *,
    by: Ranking = "weight",
    sign: Sign = "both",
    against: Any = None,
    X: Any = None,
    feature_names: Sequence[str] | None = None,
    ax: Axes | None = None,
) -> Axes:
    """The features that matter most for a class as bars, what speaks for it above what speaks against it.

    Parameters
    ----------
    model : Model or estimator
    label : object
        The class; for a model trained on an indicator the number of its column.
    n : int
        How many features.
    by, sign, against, X :
        As in `Model.top_features`. The bars show weights, or effects for ``by="effect"``.
    feature_names : sequence of str of length n_features, optional
        Names; otherwise column numbers are shown.
    ax : matplotlib Axes, optional
        Where to draw; a new figure unless given.

    Returns
    -------
    matplotlib.axes.Axes

    Examples
    --------
    >>> import sl1max
    >>> from sl1max.plot import plot_top_features
    >>> X, y = [[1, 0, 1], [1, 1, 0], [0, 1, 1], [0, 1, 0]], ["spam", "spam", "ham", "ham"]
    >>> model = sl1max.fit(X, y, distribution="joint", beta=0.2)
    >>> ax = plot_top_features(model, "spam", feature_names=["win", "hello", "free"])
    >>> ax.get_title()
    'class spam'
    """
    table = model.top_features(label, n, by=by, sign=sign, against=against, X=X, feature_names=feature_names)
    if not len(table):
        raise ValueError(f"plot_top_features: class {label} has no weights")
    weights, names = table[by], [str(name) for name in table["feature"]]
    order = np.argsort(weights, kind="stable")
    ax = open_axes(ax, (4.8, 0.9 + 0.23 * len(table)))
    place = np.arange(len(order))
    colors = np.where(weights[order] > 0, POSITIVE, NEGATIVE)
    ax.barh(place, weights[order], height=0.72, color=colors)
    ax.set_yticks(place, [names[k] for k in order], fontsize=SMALL)
    ax.set_ylim(-0.6, len(order) - 0.4)
    ax.axvline(0, color="black", linewidth=0.8)
    label_mode = getattr(model, "model_", model).label_mode
    unit = " (log-odds)" if label_mode == "independent" else ""
    ax.set_xlabel(f"weight{unit}" if by == "weight" else "weight times standard deviation")
    ax.set_title(f"class {label}" + ("" if against is None else f" against {against}"), fontsize="medium")
    tidy(ax, grid="x")
    ax.spines["left"].set_visible(False)
    ax.tick_params(axis="y", length=0)
    return ax


def plot_calibration(
    y_true: Any,
    proba: Any,
    *,
    which: Which = "top",
    n_bins: int = 10,
    labels: Any = None,
    ax: Axes | None = None,
) -> Axes:
    """How often predictions are right, against how probable they were; the diagonal is perfect calibration.

    Parameters
    ----------
    y_true, proba, which, n_bins, labels :
        As in `sl1max.metrics.calibration_curve`.
    ax : matplotlib Axes, optional
        Where to draw; a new figure unless given.

    Returns
    -------
    matplotlib.axes.Axes

    Examples
    --------
    >>> from sl1max.plot import plot_calibration
    >>> ax = plot_calibration([0, 1, 1, 0], [[0.9, 0.1], [0.7, 0.3], [0.1, 0.9], [0.7, 0.3]])
    >>> ax.get_xlabel()
    'probability of the top class'
    """
    mean_proba, frequency, count = calibration_curve(y_true, proba, which=which, n_bins=n_bins, labels=labels)
    error = np.average(np.abs(mean_proba - frequency), weights=count)
    ax = open_axes(ax, (4.4, 4.0))
    low = 0.0 if which == "all" else max(0.0, np.floor(10 * min(mean_proba.min(), frequency.min())) / 10)
    ax.plot([low, 1], [low, 1], color="black", linewidth=0.9, linestyle=":", label="perfect")
    label = f"{count.sum()} predictions, calibration error {error:.3f}"
    ax.plot(mean_proba, frequency, marker="o", markersize=4, color=COLORS[0], label=label)
    ax.set_xlabel("probability of the top class" if which == "top" else "probability of a class")
    ax.set_ylabel("share that is right" if which == "top" else "share that has the class")
    ax.legend(frameon=False, fontsize=SMALL, loc="lower right")
    ax.set_aspect("equal")
    tidy(ax)
    return ax


def plot_reject(
    y_true: Any,
    scores: Any,
    *,
    confidence: Any = None,
    labels: Any = None,
    name: str | None = None,
    ax: Axes | None = None,
) -> Axes:
    """The error among the examples kept, against the share of examples rejected, the least confident first.

    The axis of the error ends at the largest one among at least 20 examples kept.

    Parameters
    ----------
    y_true, scores, confidence, labels :
        As in `sl1max.metrics.reject_curve`.
    name : str, optional
        Names the line in a legend, to compare several in the same axes.
    ax : matplotlib Axes, optional
        Where to draw; a new figure unless given.

    Returns
    -------
    matplotlib.axes.Axes

    Examples
    --------
    >>> from sl1max.plot import plot_reject
    >>> plot_reject([0, 1, 1, 1], [[8, 1], [0, 9], [4, 0], [3, 2]]).get_ylabel()
    'error among the examples kept'
    """
    rate, error = reject_curve(y_true, scores, confidence=confidence, labels=labels)
    ax = open_axes(ax, (4.8, 3.4))
    ax.plot(rate, error, color=COLORS[len(ax.lines) % len(COLORS)], linewidth=1.6, label=name)
    ax.set_xlabel("share of examples rejected")
    ax.set_ylabel("error among the examples kept")
    ax.set_xlim(0, 1)
    ax.set_ylim(0, 1.05 * max(max(_reliable_errors(line)) for line in ax.lines) or 1.0)
    if name is not None:
        ax.legend(frameon=False, fontsize=SMALL)
    tidy(ax)
    return ax


def _reliable_errors(line):
    """The errors of a reject curve where enough examples are kept, and the first one."""
    rate, error = line.get_data()
    enough = (1 - np.asarray(rate)) * len(rate) >= N_KEPT_SHOWN
    return error[enough] if enough.any() else error[:1]


def plot_cv(search: Any, *, ax: Axes | None = None) -> Axes:
    """The scores of a cross-validation against beta, with the chosen one.

    Parameters
    ----------
    search : MaxentClassifierCV
        Fitted.
    ax : matplotlib Axes, optional
        Where to draw; a new figure unless given.

    Returns
    -------
    matplotlib.axes.Axes
        A line for each model tried, with a band of one standard error. For a single model the axis on top counts
        nonzero weights, the mean over the folds.

    Examples
    --------
    >>> import numpy as np
    >>> from sl1max import MaxentClassifierCV
    >>> from sl1max.plot import plot_cv
    >>> X = np.random.default_rng(0).integers(0, 2, (100, 8))
    >>> ax = plot_cv(MaxentClassifierCV(betas=[1, 0.5, 0.1], cv=3).fit(X, X[:, 0] + X[:, 1] * X[:, 2]))
    >>> ax.get_ylabel()
    'score, mean over 3 folds'
    """
    results = search.cv_results_
    betas = np.asarray(results["param_beta"], float)
    if (betas <= 0).any():
        raise ValueError("plot_cv: the scale of beta is logarithmic: leave out beta = 0")
    others = [name for name in results["params"][0] if name != "beta"]
    models = [tuple(row[name] for name in others) for row in results["params"]]
    error = results["std_test_score"] / np.sqrt(max(search.n_splits_ - 1, 1))
    ax = open_axes(ax, (6.0, 3.8))
    distinct = list(dict.fromkeys(models))
    for k, model in enumerate(distinct):
        rows = np.array([one == model for one in models])
        mean, style = results["mean_test_score"][rows], line_style(k)
        label = ", ".join(map(str, model))
        ax.plot(betas[rows], mean, marker="o", markersize=3.5, label=label, **style)
        low, high = mean - error[rows], mean + error[rows]
        ax.fill_between(betas[rows], low, high, color=style["color"], alpha=0.15, linewidth=0)
    chosen = f"chosen: {search.beta_:.3g}"
    ax.axvline(search.beta_, color="black", linewidth=0.9, linestyle=":", label=chosen)
    _scale_of_betas(ax, betas)
    if len(distinct) == 1:
        _count_on_top(ax, betas, np.rint(results["mean_n_nonzero"]).astype(int))
    ax.set_xlabel(r"strength of the regularisation $\beta$")
    ax.set_ylabel(f"score, mean over {search.n_splits_} folds")
    ax.legend(frameon=False, fontsize=SMALL)
    tidy(ax)
    return ax


# Pieces


def _chosen_label(model, label):
    if label is not None:
        return label
    if model.n_classes > 2:
        raise ValueError(f"label must say which of the {model.n_classes} classes to plot")
    return model.classes[-1]


def _weights_along(models, c):
    """Weights of a class, one row for each model, features that are never used left zero."""
    return np.vstack([model.weights[[c]].toarray() for model in models])


def _columns(history, *names):
    return (np.array([getattr(progress, name) for progress in history], float) for name in names)


def _positive(values):
    """NaN where a logarithmic scale has no place for a value."""
    return np.where(np.isfinite(values) & (values > 0), values, np.nan)


def _scale_of_betas(ax, betas):
    """Logarithmic, falling to the right, with ticks at 1, 2, 5, 10, or at powers of ten if it is long."""
    from matplotlib.ticker import LogLocator, NullFormatter, StrMethodFormatter

    ax.set_xscale("log")
    if len(betas) > 1:
        ax.set_xlim(betas.max(), betas.min())
    steps = (1, 2, 5) if betas.max() < 100 * betas.min() else (1,)
    ax.xaxis.set_major_locator(LogLocator(subs=steps))
    ax.xaxis.set_major_formatter(StrMethodFormatter("{x:g}"))
    ax.xaxis.set_minor_formatter(NullFormatter())


def _count_on_top(ax, betas, counts):
    """A scale on top that counts the nonzero weights at the betas below it."""
    shown = np.unique(np.linspace(0, len(betas) - 1, 7).round().astype(int))
    top = ax.secondary_xaxis("top")
    top.set_xticks(betas[shown], [str(count) for count in counts[shown]], minor=False)
    top.set_xticks([], minor=True)
    top.tick_params(labelsize=SMALL, length=0)
    top.spines["top"].set_visible(False)
    top.set_xlabel("nonzero weights", fontsize=SMALL)
