"""Many species in one call: side by side, the longest first, with a file for each that a second call goes on from."""

from __future__ import annotations

import hashlib
import json
import os
import threading
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from sklearn.base import clone

import sl1max
from sl1max._utils.files import atomic_write
from sl1max._utils.progress import counting
from sl1max.estimators._parallel import run_parallel
from sl1max.species._model import SpeciesModel
from sl1max.species._raster import Layers, RasterStack, as_stack, predict_raster
from sl1max.species._replicates import replicate
from sl1max.species._report import compute_figures, write_report
from sl1max.species._results import results_row, write_results
from sl1max.species._swd import RESULTS_NAME, SWDTable, file_names, training_set

DRAWING = threading.Lock()  # matplotlib's figures belong to one thread at a time


@dataclass(frozen=True, eq=False, repr=False)
class SpeciesBatch:
    """What became of the species of a call of `fit_species`.

    Attributes
    ----------
    rows : dict of str to dict
        By species, the figures in maxentResults.csv.
    failures : dict of str to str
        By species, why there is no model.
    not_converged : list of str
        Species whose model is not certified to be at its optimum.
    resumed : list of str
        Species that an earlier call has trained.
    """

    rows: dict[str, dict[str, Any]]
    failures: dict[str, str]
    not_converged: list[str]
    resumed: list[str]

    def __repr__(self) -> str:
        failed = f", {len(self.failures)} failed: {', '.join(self.failures)}" if self.failures else ""
        return f"<sl1max.species.SpeciesBatch: {len(self.rows)} species{failed}>"


def fit_species(
    presences: SWDTable,
    background: SWDTable,
    folder: str | os.PathLike[str],
    *,
    model: SpeciesModel | None = None,
    species: Sequence[str] | None = None,
    test: SWDTable | None = None,
    with_jackknife: bool = False,
    n_replicates: int = 0,
    layers: RasterStack | Layers | None = None,
    reports: bool = False,
    resume: bool = True,
    n_jobs: int | None = None,
    verbose: int = 0,
) -> SpeciesBatch:
    """Train a model for each species and write the files of the Java program.

    For each species NAME.lambdas, the model, and NAME.json, its figures; for all maxentResults.csv. A species that
    fails is named, the others are trained. A call with equal data and options trains only those that are not there.

    Parameters
    ----------
    presences : SWDTable
        Of one species or of many.
    background : SWDTable
    folder : path
        Where the files go; made if need be.
    model : SpeciesModel, optional
        Its options are those of all models; by default those of Maxent 3.4.4.
    species : sequence of str, optional
        Their names; all in the table by default.
    test : SWDTable, optional
        Presences for the test, of the same species. A species that it lacks is not tested.
    with_jackknife : bool
        Train two more models for each covariate and species.
    n_replicates : int
        Parts of a cross-validation; 0 for none. Their means are in the report and in NAME.json.
    layers : dict, path or list of paths, optional
        Rasters of the covariates, see `RasterStack`: write the map NAME.tif too.
    reports : bool
        Write NAME.html too; see `write_report`.
    resume : bool
        Keep models of an earlier call with the same data and options.
    n_jobs : int, optional
        Species trained at the same time, by threads or the workers that joblib is configured for.
    verbose : int
        Positive: progress on stderr.

    Returns
    -------
    SpeciesBatch

    Examples
    --------
    >>> import os, tempfile
    >>> import numpy as np
    >>> from sl1max.species import SWDTable, fit_species
    >>> rng = np.random.default_rng(0)
    >>> warmth = np.float32(rng.uniform(0, 10, (500, 1)))
    >>> background = SWDTable(np.full(500, "background"), rng.uniform(0, 9, (500, 2)), warmth, ["warmth"])
    >>> presences = SWDTable(np.repeat(["fir", "oak"], 20), rng.uniform(0, 9, (40, 2)), warmth[:40] / 3, ["warmth"])
    >>> folder = tempfile.mkdtemp()
    >>> fit_species(presences, background, folder)
    <sl1max.species.SpeciesBatch: 2 species>
    >>> sorted(os.listdir(folder))
    ['fir.json', 'fir.lambdas', 'maxentResults.csv', 'oak.json', 'oak.lambdas']
    """
    model = SpeciesModel() if model is None else model
    names = list(dict.fromkeys(presences.species.tolist())) if species is None else list(species)
    stems = file_names(names)
    os.makedirs(folder, exist_ok=True)
    tasks, records, failures = [], {}, {}
    options = with_jackknife, n_replicates, reports, _describe(layers)
    shared = hashlib.sha256(repr((sl1max.__version__, model.get_params(), *options)).encode())
    _add_table(shared, background)
    for name in names:
        try:
            rows = presences.of(name)
        except ValueError as error:
            failures[name] = str(error)
            continue
        tested = test.of(name) if test is not None and (test.species == name).any() else None
        path = os.path.join(folder, stems[name])
        mark = shared.copy()
        for table in (rows, tested):
            _add_table(mark, table)
        given = with_jackknife, n_replicates, layers, reports
        task = _Task(model, rows, background, tested, path, *given, mark.hexdigest())
        record = _read_record(task) if resume else None
        if record is None:
            tasks.append((name, task))
        else:
            records[name] = record
    resumed = list(records)
    # The more presences, the more features have a weight.
    tasks.sort(key=lambda one: -len(one[1].presences))
    with counting(len(tasks), "species", verbose) as add:
        done = run_parallel(_run, tasks, n_jobs, on_done=lambda: add(1))
    for (name, _), (record, failure) in zip(tasks, done, strict=True):
        if failure is None:
            records[name] = record
        else:
            failures[name] = failure
    results = {name: records[name]["row"] for name in names if name in records}
    if results:
        write_results(os.path.join(folder, RESULTS_NAME), list(results.values()))
    not_converged = [name for name in results if not records[name]["converged"]]
    return SpeciesBatch(results, failures, not_converged, resumed)


@dataclass(frozen=True, eq=False)
class _Task:
    """A species to train: its data, where its files go, and the fingerprint of all that the result depends on."""

    model: SpeciesModel
    presences: SWDTable
    background: SWDTable
    test: SWDTable | None
    path: str
    with_jackknife: bool
    n_replicates: int
    layers: RasterStack | Layers | None
    reports: bool
    fingerprint: str

    @property
    def files(self):
        """What is there when the species is done."""
        wanted = {".json": True, ".lambdas": True, ".tif": self.layers is not None, ".html": self.reports}
        return [self.path + suffix for suffix, is_wanted in wanted.items() if is_wanted]


def _run(name, task):
    """(record, None) or (None, what went wrong) of a species."""
    try:
        return _train(name, task), None
    except Exception as error:
        return None, str(error) if isinstance(error, ValueError) else f"{type(error).__name__}: {error}"


def _train(name, task):
    X, y = training_set(task.presences, task.background)
    model = clone(task.model).fit(X, y)
    test = None if task.test is None else task.test.select(X.columns).X
    figures = compute_figures(
        model, X, y, test_presences=test, with_jackknife=task.with_jackknife, n_jobs=1, random_state=0
    )
    row = results_row(
        name,
        figures.evaluation,
        contribution=figures.contribution,
        importance=figures.importance,
        jackknife=figures.jackknife,
    )
    replicates, map_path = None, None
    if task.n_replicates:
        n_replicates = min(task.n_replicates, len(task.presences))
        replicates = replicate(model, X, y, n_replicates=n_replicates, n_jobs=1, random_state=0)
    model.to_lambdas(f"{task.path}.lambdas")
    if task.layers is not None:
        map_path = f"{task.path}.tif"
        predict_raster(model, task.layers, map_path, n_jobs=1)
    if task.reports:
        with DRAWING:
            write_report(
                model,
                f"{task.path}.html",
                X,
                y,
                species=name,
                figures=figures,
                replicates=replicates,
                map_path=map_path,
                coordinates=task.presences.coordinates,
            )
    record = {
        "species": name,
        "fingerprint": task.fingerprint,
        "converged": bool(model.converged_),
        "dual_gap": float(model.dual_gap_),
        "row": row,
        "replicates": None if replicates is None else replicates.summary.rows.tolist(),
    }
    with atomic_write(f"{task.path}.json") as stream:  # last: with it the species is done
        stream.write(json.dumps(record, indent=1).encode())
    return record


def _read_record(task):
    """The record of an earlier call with the same data and options; None if there is none."""
    if not all(map(os.path.exists, task.files)):
        return None
    try:
        with open(f"{task.path}.json", encoding="utf-8") as stream:
            record = json.load(stream)
        return record if record["fingerprint"] == task.fingerprint and "row" in record else None
    except (ValueError, KeyError, TypeError):  # another file of that name, or a damaged one
        return None


def _add_table(mark, table):
    if table is not None:
        mark.update(repr((table.names, table.covariates.shape)).encode())
        mark.update(np.ascontiguousarray(table.covariates).tobytes())


def _describe(layers):
    """Paths of rasters, and when they were last changed."""
    if layers is None:
        return None
    return [(name, path, band, os.stat(path).st_mtime_ns) for name, (path, band) in as_stack(layers).bands.items()]
