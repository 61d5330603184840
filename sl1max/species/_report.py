"""One HTML page about the model of a species: figures and tables in one file that needs no network."""

from __future__ import annotations

import datetime
import os
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

import sl1max
from sl1max import plot
from sl1max._utils import html
from sl1max.model._explain import Table
from sl1max.plot._species import JACKKNIFE_FIGURES
from sl1max.species._evaluation import Evaluation, evaluate
from sl1max.species._importance import jackknife, percent_contribution, permutation_importance
from sl1max.species._model import SpeciesModel
from sl1max.species._replicates import Replicates
from sl1max.species._response import response_curve
from sl1max.species._tuning import Tuning

FEW_PRESENCES = 15  # below which figures of accuracy say little
MOST_FEATURES = 60  # of the table of weights
N_REPEATS = 10  # permutations of each covariate

CLASS_NAMES = {"l": "linear", "q": "quadratic", "p": "product", "h": "hinge", "t": "threshold"}
COLUMN_NAMES = {
    "covariate": "covariate",
    "contribution": "contribution, %",
    "importance": "permutation importance, %",
    "gain_drop": "gain lost without it",
    "gain_without": "gain without it",
    "gain_only": "gain of it alone",
    "auc_without": "AUC without it",
    "auc_only": "AUC of it alone",
    "test_gain_without": "test gain without it",
    "test_gain_only": "test gain of it alone",
    "test_auc_without": "test AUC without it",
    "test_auc_only": "test AUC of it alone",
}


@dataclass(frozen=True, eq=False)
class Figures:
    """What there is to say about a trained model.

    Attributes
    ----------
    evaluation : Evaluation
    contribution, importance : Table
        What `percent_contribution` and `permutation_importance` return.
    jackknife : Table or None
    """

    evaluation: Evaluation
    contribution: Table
    importance: Table
    jackknife: Table | None


def compute_figures(
    model: SpeciesModel,
    X: Any,
    y: ArrayLike,
    *,
    test_presences: Any = None,
    with_jackknife: bool = True,
    sample_weight: ArrayLike | None = None,
    n_jobs: int | None = None,
    random_state: Any = None,
) -> Figures:
    """Evaluation, contributions, importance and jackknife of a model; see `write_report` for the parameters."""
    return Figures(
        evaluate(model, X, y, test_presences=test_presences, sample_weight=sample_weight),
        percent_contribution(model, X, y, sample_weight=sample_weight),
        permutation_importance(
            model, X, y, n_repeats=N_REPEATS, sample_weight=sample_weight, n_jobs=n_jobs, random_state=random_state
        ),
        jackknife(model, X, y, test_presences=test_presences, sample_weight=sample_weight, n_jobs=n_jobs)
        if with_jackknife
        else None,
    )


def write_report(
    model: SpeciesModel,
    path: str | os.PathLike[str],
    X: Any,
    y: ArrayLike,
    *,
    species: str = "Species",
    test_presences: Any = None,
    figures: Figures | None = None,
    with_jackknife: bool = True,
    replicates: Replicates | None = None,
    tuning: Tuning | None = None,
    map_path: str | os.PathLike[str] | None = None,
    coordinates: Any = None,
    sample_weight: ArrayLike | None = None,
    n_jobs: int | None = None,
    random_state: Any = 0,
) -> None:
    """Write an HTML page about a model: accuracy, thresholds, response curves, importance, map.

    The page is one file without scripts and needs no network. It needs matplotlib to be written.

    Parameters
    ----------
    model : SpeciesModel
        Trained.
    path : str or path-like
        The file to write, e.g. ``"fir.html"``.
    X : array or frame of shape (n_rows, n_covariates)
        The training set.
    y : array of shape (n_rows,)
        Its labels.
    species : str
        Its name, the title of the page.
    test_presences : array or frame of shape (n_test, n_covariates), optional
        Covariates of presences that were not used in training.
    figures : Figures, optional
        From `compute_figures`, if they are there already.
    with_jackknife : bool
        Train two models for each covariate.
    replicates : Replicates, optional
        What `replicate` returned.
    tuning : Tuning, optional
        What `tune` returned.
    map_path : path, optional
        A map that `predict_raster` has written.
    coordinates : array of shape (n_presences, 2), optional
        x and y of the presences, for the map.
    sample_weight : array of shape (n_rows,), optional
    n_jobs : int, optional
        Models trained at the same time.
    random_state : int, RandomState or None
        For the permutations.

    Examples
    --------
    >>> import os, tempfile
    >>> import numpy as np
    >>> from sl1max.species import SpeciesModel, write_report
    >>> rng = np.random.default_rng(0)
    >>> X = np.concatenate([rng.uniform(0, 10, (500, 1)), rng.normal(7, 1, (40, 1))])
    >>> y = np.arange(540) >= 500
    >>> file = os.path.join(tempfile.mkdtemp(), "fir.html")
    >>> write_report(SpeciesModel("lq").fit(X, y), file, X, y, species="fir")
    >>> os.path.getsize(file) > 1000
    True
    """
    if figures is None:
        figures = compute_figures(
            model,
            X,
            y,
            test_presences=test_presences,
            with_jackknife=with_jackknife,
            sample_weight=sample_weight,
            n_jobs=n_jobs,
            random_state=random_state,
        )
    sections = [("Summary", _summary(model, figures.evaluation))]
    if map_path is not None:
        sections.append(("Map", _map(model, map_path, coordinates)))
    sections += [
        ("Response curves", _responses(model, X, y, figures.importance, sample_weight)),
        ("Importance of the covariates", _importance(model, figures)),
        ("Omission and area", _omission(figures.evaluation)),
        ("Thresholds", _thresholds(figures.evaluation)),
    ]
    if replicates is not None:
        sections.append(("Replicates", _replicates(replicates)))
    if tuning is not None:
        sections.append(("Settings compared", _tuning(tuning)))
    sections.append(("Features", _features(model)))
    footer = f"Written by sl1max {sl1max.__version__} on {datetime.date.today().isoformat()}."
    page = html.page(species, sections, subtitle="Species distribution by maximum entropy (Maxent)", footer=footer)
    html.write_page(path, page)


def _summary(model, evaluation):
    classes = [CLASS_NAMES[letter] for letter in model.feature_classes_]
    n_weights = len(model.features_)
    rows = [
        ("Presences", _count(evaluation.n_presences)),
        ("Points of the sample space", _count(evaluation.n_background)),
        ("Covariates", len(model.covariates_.names)),
        ("Feature classes", ", ".join(classes)),
        ("Features with a weight", f"{n_weights:,} of {model.n_features_expanded_:,}"),
        ("Beta multiplier", model.beta_multiplier),
        ("Regularised training gain", evaluation.gain),
        ("Unregularised training gain", evaluation.unregularized_gain),
        ("Training AUC", evaluation.auc),
        ("Entropy", evaluation.entropy),
        ("Mean suitability of the sample space", evaluation.prevalence),
        ("Certified distance of the gain to its maximum, nats", model.dual_gap_),
    ]
    if evaluation.n_test:
        rows += [
            ("Test presences", evaluation.n_test),
            ("Test gain", evaluation.test_gain),
            ("Test AUC", f"{html.number(evaluation.test_auc)} ± {html.number(evaluation.test_auc_std)}"),
        ]
    parts = [html.table(["figure", "value"], rows)]
    if not model.converged_:
        parts.insert(0, html.paragraph("The gain is not certified to be at its maximum.", kind="warning"))
    if evaluation.n_presences < FEW_PRESENCES:
        text = f"There are fewer than {FEW_PRESENCES} presences: figures of accuracy, and the curves, are uncertain."
        parts.insert(0, html.paragraph(text, kind="warning"))
    return parts


def _count(value):
    return int(value) if value == int(value) else value


def _map(model, path, coordinates):
    ax = plot.plot_map(path, points=coordinates, name=model.output)
    caption = f"The {model.output} output" + ("" if coordinates is None else ", and the presences as points") + "."
    return html.figure(ax, caption, alt=f"Map of the {model.output} output", kind="png")


def _responses(model, X, y, importance, sample_weight):
    order = np.argsort(-importance["importance"], kind="stable")
    figures = []
    for j in order.tolist():
        name, ax = model.covariates_.names[j], None
        is_category = j in model.covariates_.categories
        for kind in ("marginal",) if is_category else ("marginal", "alone"):
            curve = response_curve(model, X, y, name, kind=kind, sample_weight=sample_weight)
            ax = plot.plot_response(curve, name, output=model.output, ax=ax)
        figures.append(html.figure(ax, alt=f"Response curve of {name}"))
    text = (
        "How the prediction depends on each covariate, the most important first. Blue: with the others at their mean "
        "over the presences (categories at their most frequent one); where covariates are correlated, this may show "
        "conditions that do not occur. Orange: in a model of that covariate alone. Dashed: beyond the range in "
        "training."
    )
    return [html.paragraph(text), html.grid(figures)]


def _importance(model, figures):
    tables = [figures.importance, figures.contribution, figures.jackknife]
    columns: dict[str, Any] = {}
    for table in filter(None, tables):
        columns |= {name: table[name] for name in table.columns if name in COLUMN_NAMES}
    order = np.argsort(-columns["importance"], kind="stable")
    rows = zip(*(column[order].tolist() for column in columns.values()), strict=True)
    text = (
        "Permutation importance: how much the training AUC falls when a covariate is permuted among presences and "
        "background, in percent of the sum. Contribution: what its features added to the gain on the path of the "
        "sequential algorithm; it depends on that path. The gain lost without a covariate does not: it is the "
        "difference of two maxima."
    )
    parts = [html.paragraph(text), html.table([COLUMN_NAMES[name] for name in columns], rows)]
    if figures.jackknife is not None:
        drawings = []
        for figure, whole in (
            ("gain", model.gain_),
            ("auc", figures.evaluation.auc),
            ("test_gain", figures.evaluation.test_gain),
            ("test_auc", figures.evaluation.test_auc),
        ):
            if f"{figure}_only" in figures.jackknife.columns:
                ax = plot.plot_jackknife(figures.jackknife, figure, whole=whole)
                drawings.append(html.figure(ax, alt=f"Jackknife of the {JACKKNIFE_FIGURES[figure]}"))
        parts += [html.heading("Jackknife"), html.grid(drawings)]
    return parts


def _omission(evaluation):
    return html.grid(
        [
            html.figure(plot.plot_omission(evaluation), alt="Omission and predicted area against the threshold"),
            html.figure(plot.plot_roc(evaluation), alt="Sensitivity against predicted area"),
        ]
    )


def _thresholds(evaluation):
    table = evaluation.thresholds
    names = {
        "rule": "rule",
        "cumulative": "cumulative",
        "suitability": evaluation.output,
        "area": "predicted area",
        "training_omission": "training omission",
        "test_omission": "test omission",
        "p_value": "p-value",
    }
    shown = [name for name in names if name in table.columns]
    rows = zip(*(table[name].tolist() for name in shown), strict=True)
    text = "A place counts as suitable where the output is at least the threshold."
    return [html.paragraph(text), html.table([names[name] for name in shown], rows)]


def _replicates(replicates):
    summary = replicates.summary
    rows = [
        (name.replace("_", " "), f"{html.number(mean)} ± {html.number(std)}")
        for name, mean, std in zip(*(summary[column].tolist() for column in summary.columns), strict=True)
    ]
    text = f"Mean and standard deviation over {len(replicates.table)} models, each tested on presences set aside."
    return [html.paragraph(text), html.table(["figure", "mean ± standard deviation"], rows), _whole(replicates.table)]


def _tuning(tuning):
    best = {name: tuning.table[name][tuning.best].item() for name in ("features", "beta_multiplier")}
    text = (
        f"Chosen by {tuning.rule.replace('_', ' ')}: features {best['features']}, beta multiplier "
        f"{best['beta_multiplier']:g}."
    )
    figures = [html.figure(plot.plot_tuning(tuning, one), alt=f"{one} of the settings") for one in ("aicc", "test_auc")]
    return [html.paragraph(text), html.grid(figures), _whole(tuning.table)]


def _whole(table: Table) -> html.Html:
    return html.table([name.replace("_", " ") for name in table.columns], table.rows.tolist())


def _features(model):
    table = model.features_
    order = np.argsort(-np.abs(table["weight"]), kind="stable")[:MOST_FEATURES]
    caption = None
    if len(table) > MOST_FEATURES:
        caption = f"The {MOST_FEATURES} greatest weights of {len(table)}."
    text = (
        "The terms of the model with a weight. 'v is a hinge that rises from the lower end of its range, `v one that "
        "falls to the upper end, (v=a) a category, (k<v) a threshold."
    )
    rows = table[order].rows.tolist()
    return [html.paragraph(text), html.table(["feature", "weight", "low", "high", "penalty"], rows, caption=caption)]
