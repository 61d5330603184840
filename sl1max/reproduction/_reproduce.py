"""Reproduction of the tables of the paper.

Table 3 compares AdaBoost, linear SVMs and the five maximum-entropy models on three data sets; Table 4 counts
the parameters and the training time of three of the models for two strengths of the regularisation.
"""

from __future__ import annotations

import contextlib
import datetime
import os
import platform
import sys
import time
import warnings
from collections.abc import Callable
from dataclasses import asdict, dataclass, field, replace
from functools import partial
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path

import numpy as np
import scipy
from scipy import sparse

import sl1max
from sl1max._utils.files import atomic_write
from sl1max._utils.progress import FitProgress, bar_of, format_seconds, time_left, way_done, write_over
from sl1max.datasets import fetch_reuters21578, fetch_supertags, fetch_webkb
from sl1max.datasets._store import Dataset
from sl1max.metrics import optimal_f_measure, top_class_error
from sl1max.model._model import Model
from sl1max.model._model import load as load_model
from sl1max.plot._drawing import COLORS, QUIET
from sl1max.reproduction._result_store import Clock, Kept, file_name

BETA, STRONGER_BETA = 0.5, 0.9
# By cross-validation on training sets, for SuperTags on held-out training tokens (docs/reproduction.md).
N_ROUNDS = {"webkb": 500, "reuters": 500, "supertags": 1000}
SVM_C = 0.1
SECONDS_BETWEEN_LINES = 0.2  # on a terminal
SECONDS_BETWEEN_LOGS = 60.0  # elsewhere
BAR_WIDTH = 12
CLASSES_AT_ONCE = 64  # of a learner that has no checkpoint

# Table 3 of the paper: top-class error in %, for Reuters also the micro-averaged optimal F-measure in %.
PAPER_ERRORS = {
    "AdaBoost": {"reuters": (14.9, 86.7), "webkb": (7.10,), "supertags": (12.0,)},
    "Linear SVM": {"reuters": (15.3, 86.6), "webkb": (7.57,)},
    "Q1": {"reuters": (16.9, 84.0), "webkb": (7.95,)},
    "Q2": {"reuters": (17.4, 83.9), "webkb": (8.19,), "supertags": (11.2,)},
    "Q3": {"reuters": (16.6, 79.6), "webkb": (7.76,)},
    "Q1(lambda^c)": {"reuters": (15.0, 86.5), "webkb": (7.50,), "supertags": (11.9,)},
    "Q3(lambda^c)": {"reuters": (14.1, 86.4), "webkb": (7.45,), "supertags": (11.1,)},
}
# Table 4, SuperTags only: parameters and hours, by beta.
PAPER_COSTS = {
    "Q1(lambda^c)": {BETA: (53_000, 15.65), STRONGER_BETA: (35_000, 16.09)},
    "Q2": {BETA: (53_000, 14.92), STRONGER_BETA: (34_000, 7.58)},
    "Q3(lambda^c)": {BETA: (41_000, 46.65), STRONGER_BETA: (24_000, 46.40)},
}
TITLES = {"reuters": "Reuters", "webkb": "WebKB", "supertags": "SuperTags"}
SUPERTAGS_WARNING = "supertags at full size, 938,455 tokens and 4755 classes, takes hours and several gigabytes"


# Learners


@dataclass(frozen=True)
class Settings:
    """Settings of all fits of a run."""

    tol: float = 1e-4
    n_jobs: int | None = None
    callback: Callable[[FitProgress], None] | None = None
    kept: Kept | None = None
    n_estimators: int = 500  # of AdaBoost; `run` uses those of the data set


@dataclass(frozen=True)
class Trained:
    """Results of a trained classifier: labels, scores, size and certified gap."""

    predict: Callable
    rank: Callable
    n_parameters: int | None = None
    relative_gap: float | None = None


def train_maxent(X, y, beta, settings, **options) -> Trained:
    """One of the five models; `options` go to `sl1max.fit`."""
    checkpoint = None if settings.kept is None else settings.kept.checkpoint
    model = sl1max.fit(
        X, y, beta=beta, tol=settings.tol, n_jobs=settings.n_jobs, callback=settings.callback, checkpoint=checkpoint,
        **options,
    )  # fmt: skip
    posterior = model.distribution == "conditional" and model.label_mode == "exclusive"
    parts = (model.weights,) if model._parts is None else model._parts
    # A class without examples has no loss at all: its gap is 0 of 0.
    has_loss = np.asarray(model.objective_zero) > 0
    gaps = np.divide(model.dual_gap, model.objective_zero, out=np.zeros_like(model.dual_gap), where=has_loss)
    return Trained(
        predict=model.predict,
        rank=model.predict_log_proba if posterior else model.decision_function,
        n_parameters=sum(part.nnz for part in parts),
        relative_gap=float(np.max(gaps)),
    )


def train_joint(X, y, beta, settings) -> Trained:
    """Train Q1 for label sets on the paper's sample space: every training story with every class.

    `sl1max.fit` leaves out stories without a label in exclusive models; here they are part of the normaliser. With
    unpenalised intercepts, Q1 separates into class-conditional problems with penalties beta_cj / p~(c) on all stories.
    The rule "count" divides by the size of the class, so beta sigma_cj sqrt(m) is passed to it. Here m is the number of
    labels, and sigma_cj is at least that of a feature that occurs once.
    """
    if not sparse.issparse(y):
        return train_maxent(X, y, beta, settings, distribution="joint", label_mode="exclusive")
    n_labels = y.sum()
    mean = (y.T @ X).toarray() / n_labels
    variance = np.maximum(mean * (1 - mean), 1 / n_labels * (1 - 1 / n_labels))
    return train_maxent(
        X, y, beta * np.sqrt(variance * n_labels), settings,
        distribution="class-conditional", label_mode="independent", beta_rule="count",
    )  # fmt: skip


def train_class_conditional(X, y, beta, settings) -> Trained:
    """Train Q2, for label sets too; stories without a label are part of the normaliser."""
    return train_maxent(X, y, beta, settings, distribution="class-conditional")


def train_conditional(X, y, beta, settings) -> Trained:
    """Train Q3; a story with K labels counts K times."""
    return train_maxent(X, y, beta, settings, distribution="conditional", label_mode="exclusive")


def train_joint_independent(X, y, beta, settings) -> Trained:
    return train_maxent(X, y, beta, settings, distribution="joint", label_mode="independent")


def train_conditional_independent(X, y, beta, settings) -> Trained:
    return train_maxent(X, y, beta, settings, distribution="conditional", label_mode="independent")


def train_adaboost(X, y, beta, settings) -> Trained:
    """Train AdaBoost with the logistic loss, one class against the others."""
    return train_rival("adaboost", X, y, settings, n_estimators=settings.n_estimators)


def train_svm(X, y, beta, settings) -> Trained:
    """Train one linear SVM per class, against all others."""
    return train_rival("svm", X, y, settings, C=SVM_C, dual=True, random_state=0)


def train_rival(learner, X, y, settings, **options) -> Trained:
    """Train another learner; if results are stored, some classes at a time."""

    def train(y, callback):
        watched = {"callback": callback} if learner == "adaboost" else {}
        return sl1max.get_learner(learner, n_jobs=settings.n_jobs, **watched, **options).fit(X, y).model_

    if settings.kept is None:
        model = train(y, settings.callback)
        return Trained(predict=model.predict, rank=model.decision_function)
    models = train_parts(train, y, settings)
    return Trained(
        predict=lambda X: predict_parts(models, np.unique(y), X),
        rank=lambda X: np.hstack([model.decision_function(X) for model in models]),
    )


def train_parts(train, y, settings) -> list[Model]:
    """Train models of consecutive groups of classes; stored models are not trained again."""
    indicator = y.tocsc() if sparse.issparse(y) else class_indicator(y)
    settings.kept.parts.mkdir(exist_ok=True)
    models = []
    for first in range(0, indicator.shape[1], CLASSES_AT_ONCE):
        path = settings.kept.parts / f"{first}.sl1max"
        if not path.exists():
            part = indicator[:, first : first + CLASSES_AT_ONCE].tocsr()
            train(part, partial(report_class, settings.callback, first)).save(path)
        models.append(load_model(path))
        for c in range(first, first + models[-1].n_classes):
            settings.callback(FitProgress(c, 0, np.nan, np.nan, np.nan))
    return models


def report_class(callback, first, progress: FitProgress):
    """Report progress of a class by its number among all classes."""
    return callback(replace(progress, class_label=first + progress.class_label))


def class_indicator(y) -> sparse.csc_array:
    """Make an indicator with a column for each label that occurs, in ascending order."""
    labels, codes = np.unique(y, return_inverse=True)
    cells = np.ones(len(y)), (np.arange(len(y)), codes)
    return sparse.csc_array(cells, shape=(len(y), len(labels)))


def predict_parts(models, labels, X) -> np.ndarray:
    """Predict the label with the largest score of all models, which have consecutive classes."""
    best, top, first = np.full(X.shape[0], -np.inf), np.zeros(X.shape[0], np.intp), 0
    for model in models:
        scores = model.decision_function(X)
        here = scores.argmax(axis=1)
        greatest = scores[np.arange(len(here)), here]
        top = np.where(greatest > best, first + here, top)
        best = np.maximum(best, greatest)
        first += model.n_classes
    return labels[top]


LEARNERS = {
    "AdaBoost": train_adaboost,
    "Linear SVM": train_svm,
    "Q1": train_joint,
    "Q2": train_class_conditional,
    "Q3": train_conditional,
    "Q1(lambda^c)": train_joint_independent,
    "Q3(lambda^c)": train_conditional_independent,
}


# Measurements


@dataclass
class Cell:
    """Results of one learner on one data set with one beta.

    Attributes
    ----------
    error : float
        Top-class error in %, over all test examples of all splits.
    f_measure : float or None
        Micro-averaged optimal F-measure in %; for label sets only.
    seconds : float
        Of training, mean of the splits.
    parameters : float or None
        Number of nonzero weights, including those of non-classes; mean of the splits.
    gap : float or None
        Worst certified distance to the optimum, relative to the objective with all weights zero.
    """

    error: float
    f_measure: float | None
    seconds: float
    parameters: float | None
    gap: float | None


@dataclass
class Column:
    """The results on one data set: `cells` by learner and beta, the machine, and reasons for empty cells."""

    name: str
    data: str
    cells: dict[tuple[str, float], Cell] = field(default_factory=dict)
    circumstances: list[str] = field(default_factory=list)
    notes: list[str] = field(default_factory=list)


def run(
    name: str,
    *,
    data: Dataset | None = None,
    tokenisation="zones",
    every=1,
    rows=None,
    betas=(BETA, STRONGER_BETA),
    folder=None,
    settings=None,
    progress=None,
) -> Column:
    """Train and test every learner on a data set.

    Parameters
    ----------
    name : {"webkb", "reuters", "supertags"}
    data : Dataset, optional
        The data; by default the whole data set of this name.
    tokenisation : {"zones", "unigram", "pairs"}
        Of Reuters.
    every : int
        Use one in so many examples.
    rows : list of str, optional
        Train these learners only.
    betas : sequence of float
        Train only with these of the paper's two betas.
    folder : path-like, optional
        Folder for results and unfinished fits. Stored results are not computed again, and cells that are not among
        `rows` and `betas` are taken from there.
    settings : Settings, optional
    progress : Progress, optional

    Returns
    -------
    Column
    """
    settings = replace(settings or Settings(), n_estimators=N_ROUNDS[name])
    data = thin(data or load(name, tokenisation, warn=every == 1 and rows != []), every)
    column = Column(name, f"{data!r}"[1:-1].removeprefix("Dataset "))
    fits = plan(column, list(data.splits()), folder, settings)
    measured = {fit: fit.kept and fit.kept.load() for fit in fits}
    wanted = [fit for fit in fits if fit.beta in betas and (rows is None or fit.row in rows)]
    to_do = [fit for fit in wanted if measured[fit] is None]
    with progress.over(len(to_do)) if progress else contextlib.nullcontext():
        for number, fit in enumerate(to_do):
            if progress:
                progress.begin(number, f"{TITLES[name]}, {fit}", fit.n_classes)
            try:
                measured[fit] = measure(fit, settings)
            except ImportError as error:
                column.notes.append(f"{fit.row} is left out: {error}")
    for row, beta in dict.fromkeys((fit.row, fit.beta) for fit in fits):
        found = [measured[fit] for fit in fits if (fit.row, fit.beta) == (row, beta)]
        if None not in found:
            column.cells[row, beta] = join(found)
            column.circumstances += [split["circumstances"] for split in found]
    column.circumstances = list(dict.fromkeys(column.circumstances))
    column.notes = list(dict.fromkeys(column.notes))
    return column


@dataclass(frozen=True, eq=False)
class Fit:
    """One learner at one beta on one split of a data set."""

    row: str
    beta: float
    number: int
    n_splits: int
    split: tuple
    kept: Kept | None

    @property
    def n_classes(self) -> int:
        y = self.split[1]
        return y.shape[1] if sparse.issparse(y) else len(np.unique(y))

    def __str__(self):
        return f"{self.row}, beta {self.beta:g}, part {self.number + 1} of {self.n_splits}"


def plan(column: Column, splits, folder, settings) -> list[Fit]:
    """List all fits of a column."""
    return [
        Fit(row, beta, k, len(splits), split, place(column, row, beta, k, folder, settings))
        for beta, table in ((BETA, PAPER_ERRORS), (STRONGER_BETA, PAPER_COSTS))
        for row in table
        for k, split in enumerate(splits)
    ]


def place(column, row, beta, number, folder, settings) -> Kept | None:
    """Return where a fit is stored, or None."""
    if folder is None:
        return None
    path = Path(folder) / f"{file_name(column.name, row, f'{beta:g}', number)}.json"
    rivals = {"AdaBoost": {"n_estimators": settings.n_estimators}, "Linear SVM": {"C": SVM_C}}
    return Kept(path, {"data": column.data, **rivals.get(row, {"tol": settings.tol})})


def load(name: str, tokenisation: str, warn=True) -> Dataset:
    if name == "supertags":
        if warn:
            warnings.warn(SUPERTAGS_WARNING, UserWarning, stacklevel=3)
        return fetch_supertags()
    return fetch_webkb() if name == "webkb" else fetch_reuters21578(tokenisation)


def thin(data: Dataset, every: int) -> Dataset:
    """Take one in so many training and test examples."""
    if every == 1:
        return data
    names = ("X_train", "y_train", "X_test", "y_test", "folds")
    taken = {name: getattr(data, name)[::every] for name in names if getattr(data, name) is not None}
    return replace(data, name=f"{data.name}, one of {every}", extras={}, **taken)


def measure(fit: Fit, settings: Settings) -> dict:
    """Train and test: the fields of a `Cell`, and the number of test examples."""
    X_train, y_train, X_test, y_test = fit.split
    with fit.kept.timing() if fit.kept else contextlib.nullcontext(Clock()) as clock:
        trained = LEARNERS[fit.row](X_train, y_train, fit.beta, timed(settings, clock, fit.kept))
        seconds = clock.seconds
        f_measure = None
        if sparse.issparse(y_test):
            scores = trained.rank(X_test)
            error = top_class_error(y_test, scores)
            f_measure = 100 * optimal_f_measure(y_test, scores)
        else:
            error = np.mean(trained.predict(X_test) != y_test)
    cell = Cell(100 * float(error), f_measure, seconds, trained.n_parameters, trained.relative_gap)
    measured = {"n_examples": X_test.shape[0], **asdict(cell), "circumstances": circumstances()}
    if fit.kept:
        fit.kept.save(measured)
    return measured


def timed(settings, clock, kept):
    """Return settings whose callback updates the clock."""

    def callback(progress):
        clock.tick()
        if settings.callback:
            settings.callback(progress)

    return replace(settings, callback=callback, kept=kept) if kept else settings


def join(measured: list[dict]) -> Cell:
    """Average the results of all splits of a data set."""

    def mean(name, weights=None):
        values = [split[name] for split in measured]
        return None if None in values else float(np.average(values, weights=weights))

    sizes = [split["n_examples"] for split in measured]
    gaps = [split["gap"] for split in measured]
    return Cell(
        error=mean("error", sizes),
        f_measure=mean("f_measure", sizes),
        seconds=mean("seconds"),
        parameters=mean("parameters"),
        gap=None if None in gaps else max(gaps),
    )


class Progress:
    """Progress display: the current fit, the share done and the time left, as a bar on a terminal.

    With ``log`` it prints a line at the start of each fit and then one per minute. All fits have equal weight. The
    share of the current fit is that of its started classes, or of the logarithm of its gap.
    """

    def __init__(self, stream=None, log=False):
        self._stream = stream or sys.stderr
        self._log = log
        self._last = 0.0

    @contextlib.contextmanager
    def over(self, n_steps):
        """Show the progress of so many fits; the line of a terminal is cleared at the end."""
        self._n_steps, self._start = n_steps, time.monotonic()
        try:
            yield
        finally:
            if not self._log:
                write_over("", self._stream)
                print("\r", end="", file=self._stream, flush=True)

    def begin(self, done, text, n_classes):
        """Start the next fit, with the number of its classes and of those already done."""
        self._done, self._text, self._n_classes = done, text, n_classes
        self._seen, self._first_gap, self._way = set(), None, 0.0
        self._draw("")

    def watch(self, progress: FitProgress):
        """For `sl1max.fit(callback=...)`: show the class that is being fitted, and its gap if it has one."""
        label = progress.class_label
        self._seen.add(label)
        if label is None:
            self._first_gap = self._first_gap or progress.dual_gap
            self._way = way_done(self._first_gap, progress.dual_gap, progress.target)
        else:
            self._way = (len(self._seen) - 1) / self._n_classes
        if time.monotonic() > self._last + (SECONDS_BETWEEN_LOGS if self._log else SECONDS_BETWEEN_LINES):
            detail = "" if label is None else f", class {label} ({len(self._seen)}/{self._n_classes})"
            gap = f", gap {progress.dual_gap:.0e}" if np.isfinite(progress.dual_gap) else ""
            self._draw(detail + gap)

    def _draw(self, detail):
        self._last = time.monotonic()
        seconds = self._last - self._start
        part = (self._done + self._way) / self._n_steps
        fits, left = f"{self._done}/{self._n_steps} fits", f"{time_left(seconds, part)} left"
        if self._log:
            line = f"sl1max: {fits}, {format_seconds(seconds)}, {left}: {self._text}{detail}"
            print(line, file=self._stream, flush=True)
        else:
            write_over(f"sl1max: {bar_of(part, BAR_WIDTH)} {fits}, {left}: {self._text}{detail}", self._stream)


# Tables


def error_table(columns: list[Column]) -> tuple[list[str], list[list[str]]]:
    """Table 3: header and rows, ours and the paper's for every data set."""
    header = ["Table 3: error %"]
    for column in columns:
        header += [TITLES[column.name], "paper"]
    rows = []
    for row, paper in PAPER_ERRORS.items():
        cells = [row]
        for column in columns:
            cells += [_errors(column.cells.get((row, BETA))), _pair(paper.get(column.name))]
        rows.append(cells)
    return header, rows


def cost_table(column: Column) -> tuple[list[str], list[list[str]]]:
    """Table 4 for one data set; the paper's figures are those of SuperTags."""
    supertags = column.name == "supertags"
    header = [f"Table 4: {TITLES[column.name]}"]
    for beta in (BETA, STRONGER_BETA):
        header += [f"weights, beta {beta}", *(["paper"] if supertags else [])]
    for beta in (BETA, STRONGER_BETA):
        header += [f"seconds, beta {beta}", *(["paper"] if supertags else [])]
    rows = []
    for row, paper in PAPER_COSTS.items():
        cells = [row]
        for k, (quantity, form) in enumerate((("parameters", "{:,.0f}"), ("seconds", "{:,.2f}"))):
            for beta in (BETA, STRONGER_BETA):
                cell = column.cells.get((row, beta))
                cells.append("-" if cell is None else form.format(getattr(cell, quantity)))
                if supertags:
                    cells.append(form.format(paper[beta][k] * (3600 if quantity == "seconds" else 1)))
        rows.append(cells)
    return header, rows


def _errors(cell):
    return "-" if cell is None else _pair((cell.error, cell.f_measure))


def _pair(figures):
    """``error`` or ``error / F``."""
    if figures is None:
        return ""
    error, *f_measure = figures
    pair = f_measure and f_measure[0] is not None
    return f"{error:.2f} / {f_measure[0]:.2f}" if pair else f"{error:.2f}"


def format_text(header, rows) -> str:
    """A table for a terminal: the first column to the left, the others to the right."""
    widths = [max(map(len, cells)) for cells in zip(header, *rows, strict=True)]
    lines = [
        "  ".join([f"{line[0]:<{widths[0]}}", *map(str.rjust, line[1:], widths[1:])]).rstrip()
        for line in [header, *rows]
    ]
    return "\n".join(lines)


def format_markdown(header, rows) -> str:
    lines = [header, ["---"] + ["---:"] * (len(header) - 1), *rows]
    return "\n".join(f"| {' | '.join(line)} |" for line in lines)


def report(columns: list[Column], format_table=format_text) -> str:
    """Format both tables, with explanations, remarks, machine and versions."""
    parts = [format_table(*error_table(columns))]
    parts += [format_table(*cost_table(column)) for column in columns]
    legend = "error: % of test examples whose top class is not among their labels"
    if any(column.name == "reuters" for column in columns):
        legend += "; Reuters: error / optimal micro-averaged F-measure"
    gaps = [cell.gap for column in columns for cell in column.cells.values() if cell.gap is not None]
    legend += f".\nOurs: beta = {BETA} by the deviation rule; seconds: training, mean of the splits."
    if gaps:
        legend += f"\nGreatest duality gap: {max(gaps):.1e} of the objective with all weights zero."
    parts.append(legend)
    notes = [f"{TITLES[column.name]}, {note}" for column in columns for note in column.notes]
    where = dict.fromkeys(text for column in columns for text in column.circumstances)
    parts.append("\n".join([*notes, *(column.data for column in columns), *where]))
    return "\n\n".join(parts)


def circumstances() -> str:
    """Versions, machine and date, in one line."""
    versions = f"sl1max {sl1max.__version__}, numpy {np.__version__}, scipy {scipy.__version__}"
    with contextlib.suppress(PackageNotFoundError):
        versions += f", scikit-learn {version('scikit-learn')}"
    machine = f"Python {platform.python_version()}, {platform.machine()}, {os.cpu_count()} cores"
    return f"{versions}, {machine}, {datetime.date.today().isoformat()}"


def as_json(columns: list[Column]) -> dict:
    """Convert all results, with the paper's figures, to plain types for JSON."""
    return {
        "datasets": [
            {
                "name": column.name,
                "data": column.data,
                "circumstances": column.circumstances,
                "notes": column.notes,
                "cells": [
                    {"row": row, "beta": beta, **asdict(cell), "paper": _paper(column.name, row, beta)}
                    for (row, beta), cell in column.cells.items()
                ],
            }
            for column in columns
        ],
    }


def _paper(name, row, beta):
    """The paper's figures for a cell, by their names."""
    figures = {}
    if beta == BETA:
        figures |= zip(("error", "f_measure"), PAPER_ERRORS[row].get(name, ()), strict=False)
    if name == "supertags" and row in PAPER_COSTS:
        parameters, hours = PAPER_COSTS[row][beta]
        figures |= {"parameters": parameters, "seconds": hours * 3600}
    return figures


def plot_errors(columns: list[Column], path) -> None:
    """The errors of Table 3 as a figure, ours beside the paper's, written to `path`."""
    from matplotlib.figure import Figure

    rows = list(PAPER_ERRORS)
    figure = Figure(figsize=(1.6 + 3.4 * len(columns), 3.8), layout="constrained")
    axes = figure.subplots(1, len(columns), sharey=True, squeeze=False)[0]
    for ax, column in zip(axes, columns, strict=True):
        for k, row in enumerate(rows):
            ours, paper = column.cells.get((row, BETA)), PAPER_ERRORS[row].get(column.name)
            if paper:
                ax.plot(paper[0], k, "o", color=COLORS[1], fillstyle="none")
            if ours:
                ax.plot(ours.error, k, "o", color=COLORS[0])
            if paper and ours:
                ax.plot([paper[0], ours.error], [k, k], color=QUIET, zorder=0)
        ax.plot([], [], "o", color=COLORS[1], fillstyle="none", label="paper")
        ax.plot([], [], "o", color=COLORS[0], label="ours")
        ax.set_yticks(range(len(rows)), rows)
        ax.set_xlabel("top-class error, %")
        ax.set_title(TITLES[column.name])
        ax.spines[["top", "right"]].set_visible(False)
    axes[0].invert_yaxis()
    figure.legend(*axes[0].get_legend_handles_labels(), loc="outside lower right", ncols=2, frameon=False)
    ending = os.path.splitext(path)[1][1:].lower()
    with atomic_write(path) as stream:
        figure.savefig(stream, dpi=150, format=ending or None)
