"""``sl1max species``: species distributions by maximum entropy, from tables of presences, rasters, or both."""

from __future__ import annotations

import argparse
import csv
import io
import os
import sys

import numpy as np

from sl1max import species
from sl1max._utils.files import atomic_write
from sl1max.cli._arguments import add_force, add_json, positive
from sl1max.cli._errors import NOT_CONVERGED, OK, InputError, blamed_on
from sl1max.cli._outputs import check_distinct, check_output, is_raster, is_suitability
from sl1max.cli._results import print_report
from sl1max.species._swd import RESULTS_NAME, file_names

SUMMARY = "species distributions (Maxent): models, maps and reports from presences"
EXAMPLES = """\
tables:
  PRESENCES and BACKGROUND are CSV files of "samples with data": the columns species, x, y, then the covariates.
  With --layers, a folder of rasters named as the covariates, PRESENCES needs species, x and y only, and without
  BACKGROUND points are drawn from the rasters.

examples:
  sl1max species fit out presences.csv background.csv --categorical soil --jobs 2
  sl1max species report out presences.csv --layers climate/ --replicates 5
  sl1max species predict out/fir.lambdas climate/ --output fir.tif
  sl1max species predict out/fir.lambdas places.csv > suitability.csv
  sl1max species evaluate out/fir.lambdas presences.csv background.csv --test later.csv
  sl1max species tune out presences.csv background.csv --rule test_auc --blocks 4
"""
FIT = """\
written to FOLDER: NAME.lambdas, the model, which the Java program reads; NAME.json, its figures; maxentResults.csv
for all species. With --report NAME.html, with --maps NAME.tif. A species that fails is named and the others are
trained: exit code 3. The same call again trains only what is not there yet, unless --restart says otherwise.

"""
COMMANDS = {
    "fit": ("train a model for each species", FIT),
    "report": ("train a model for each species and write an HTML page about it", FIT),
    "predict": (
        "predict suitability at the points of a table, or write a map",
        "output: for a table a CSV file, a column for each model; for rasters a GeoTIFF or an ASCII grid, or, for a "
        "folder\nof models, a folder of GeoTIFFs.\n\n",
    ),
    "evaluate": ("measure a model: AUC, gains, thresholds", ""),
    "tune": (
        "choose feature classes and beta multiplier",
        "written to FOLDER: NAME_tuning.csv, the settings compared; NAME.lambdas, the model of the best one.\n\n",
    ),
}
DEFAULT_POINTS = 10_000
TUNED_FEATURES = ("l", "lq", "lqh", "lqph")
TUNED_BETAS = (0.5, 1.0, 2.0, 3.0, 4.0)


def add_arguments(command):
    parts = command.add_subparsers(title="commands", metavar="COMMAND", required=True)
    for name, (summary, text) in COMMANDS.items():
        part = parts.add_parser(
            name,
            help=summary,
            description=f"{summary[0].upper()}{summary[1:]}.",
            epilog=text + EXAMPLES,
            formatter_class=argparse.RawDescriptionHelpFormatter,
        )
        part.set_defaults(species_run=RUN[name])
        ADD[name](part)


def run(args):
    _check_parts()
    try:
        return args.species_run(args)
    except (ImportError, ValueError) as error:
        raise InputError(error) from error


def _check_parts():
    try:
        import sklearn  # noqa: F401
    except ImportError:
        raise InputError("species needs scikit-learn: pip install scikit-learn") from None


# Options


def _add_tables(part, first):
    if first is not None:
        part.add_argument(*first, metavar=first[0].upper(), help="folder for what is written; made if need be")
    part.add_argument("presences", metavar="PRESENCES", help="CSV: species, x, y, covariates")
    part.add_argument("background", metavar="BACKGROUND", nargs="?", help="CSV of the same form")
    part.add_argument("--layers", metavar="PATH", help="folder of rasters, or one with a band for each covariate")
    part.add_argument(
        "--background-points",
        type=positive,
        default=DEFAULT_POINTS,
        metavar="N",
        help=f"cells drawn from the layers ({DEFAULT_POINTS})",
    )
    part.add_argument("--bias", metavar="RASTER", help="sampling effort: cells are drawn in proportion to it")
    part.add_argument("--cell-area", action="store_true", help="draw cells in proportion to the cosine of the latitude")
    part.add_argument("--crs", help="reference system of x and y, e.g. EPSG:4326, if not that of the layers")
    part.add_argument("--categorical", action="append", default=[], metavar="NAME", help="a covariate of categories")
    part.add_argument("--drop-missing", action="store_true", help="leave out rows with missing values")
    part.add_argument("--keep-duplicates", action="store_true", help="keep presences at the same place")
    part.add_argument("--seed", type=int, default=0, help="of all that is drawn at random (0)")


def _add_model_options(part, settings=True):
    part.add_argument("--species", action="append", metavar="NAME", help="only this one; may be repeated")
    if settings:
        part.add_argument(
            "--features",
            default="auto",
            help="auto, or letters out of lqpht: linear, quadratic, product, hinge, threshold",
        )
        part.add_argument("--beta-multiplier", type=float, default=1.0, metavar="B", help="factor of all penalties (1)")
    part.add_argument("--tol", type=float, default=1e-6, help="certified distance to the optimum, relative (1e-6)")
    part.add_argument("--jobs", type=int, metavar="N", help="species trained at the same time; -1: one per processor")


def _add_output(part):
    part.add_argument(
        "--output-format", choices=("cloglog", "logistic", "raw", "cumulative"), default="cloglog", help="(cloglog)"
    )
    part.add_argument("--no-clamp", action="store_true", help="do not keep covariates within their range in training")


def _add_fit(part):
    _add_tables(part, ["folder"])
    _add_model_options(part)
    _add_output(part)
    part.add_argument("--test", metavar="FILE", help="CSV of presences to test on")
    part.add_argument("--jackknife", action="store_true", help="also models without each covariate and with it alone")
    part.add_argument("--replicates", type=int, default=0, metavar="K", help="cross-validation of K parts (0)")
    part.add_argument("--maps", action="store_true", help="write a map of each species, from --layers")
    part.add_argument("--report", action="store_true", help="write an HTML page about each species")
    part.add_argument("--restart", action="store_true", help="train again what an earlier call has trained")
    add_force(part)
    part.add_argument("--progress", action="store_true", help="progress on stderr")
    add_json(part)


def _add_report(part):
    _add_fit(part)
    part.set_defaults(report=True, jackknife=True)


def _add_predict(part):
    part.add_argument("model", metavar="MODEL", help=".lambdas file, or a folder of them")
    part.add_argument("data", metavar="DATA", help="CSV with covariates, folder of rasters, or raster")
    part.add_argument("--output", metavar="PATH", help="file or folder to write; a table goes to standard output")
    part.add_argument("--background", metavar="FILE", help="CSV that the model was trained on: for cumulative output")
    part.add_argument("--similarity", metavar="RASTER", help="map to write of the similarity to --background (MESS)")
    part.add_argument("--clamping", metavar="RASTER", help="map to write of what clamping changes")
    part.add_argument("--jobs", type=int, metavar="N", help="threads")
    part.add_argument("--progress", action="store_true", help="progress on stderr")
    add_force(part)
    _add_output(part)


def _add_evaluate(part):
    part.add_argument("model", metavar="MODEL", help=".lambdas file, of sl1max or of the Java program")
    _add_tables(part, None)
    part.add_argument("--species", metavar="NAME", help="of the presences, if there are several")
    part.add_argument("--test", metavar="FILE", help="CSV of presences to test on")
    _add_output(part)
    add_json(part)


def _add_tune(part):
    _add_tables(part, ["folder"])
    _add_model_options(part, settings=False)
    part.add_argument(
        "--features", type=_words, default=TUNED_FEATURES, metavar="A,B", help=f"({','.join(TUNED_FEATURES)})"
    )
    part.add_argument("--beta-multipliers", type=_floats, default=TUNED_BETAS, metavar="A,B", help="(0.5,1,2,3,4)")
    part.add_argument("--rule", choices=("aicc", "test_auc", "omission"), default="aicc", help="(aicc)")
    part.add_argument("--replicates", type=positive, default=5, metavar="K", help="parts of the cross-validation (5)")
    part.add_argument("--blocks", type=positive, metavar="K", help="set aside blocks of places instead")
    add_force(part)
    add_json(part)


def _words(text):
    return tuple(filter(None, text.split(",")))


def _floats(text):
    try:
        return tuple(float(word) for word in _words(text))
    except ValueError:
        raise argparse.ArgumentTypeError(f"{text!r} is not a list of numbers") from None


# Data


class _Tables:
    """Presences, background and layers of a command."""

    def __init__(self, args, test=None):

        self.layers = None if args.layers is None else species.RasterStack(args.layers)
        if args.background is None and self.layers is None:
            raise InputError("BACKGROUND is missing: give a CSV file, or --layers to draw points from")

        def read(path, remove_duplicates=False):
            with blamed_on(path):
                if self.layers is not None:
                    return species.read_occurrences(
                        path, self.layers, crs=args.crs, remove_duplicates=remove_duplicates
                    )
                return species.read_swd(path, remove_duplicates=remove_duplicates)

        self.presences = read(args.presences, not args.keep_duplicates)
        if not len(self.presences):
            raise InputError(f"{args.presences}: there is no row")
        if args.background is not None:
            self.background = read(args.background)
        elif self.layers is not None:
            self.background = species.draw_background(
                self.layers, args.background_points, bias=args.bias, cell_area=args.cell_area, random_state=args.seed
            )
        self.test = None if test is None else read(test)
        unknown = [name for name in args.categorical if name not in self.background.names]
        if unknown:
            raise InputError(
                f"--categorical {unknown[0]}: there is no such covariate; there are {', '.join(self.background.names)}"
            )

    def options(self, args):
        """Options of a model that all commands have."""
        return {
            "categorical_features": args.categorical or None,
            "missing": "drop" if args.drop_missing else "error",
            "tol": args.tol,
        }


def _files_of(*paths):
    """The files at some paths; those in a folder for a folder."""
    found = []
    for path in filter(None, paths):
        found += [entry.path for entry in os.scandir(path)] if os.path.isdir(path) else [path]
    return found


def _check_folder(args, names, endings, others=()):
    """Refuse to write onto a file that the command reads; in FOLDER, the names of files say of what kind they are."""
    os.makedirs(args.folder, exist_ok=True)
    inputs = _files_of(args.presences, args.background, args.layers, args.bias, getattr(args, "test", None))
    written = [stem + ending for stem in file_names(names).values() for ending in endings]
    for name in (*written, *others):
        check_output(os.path.join(args.folder, name), inputs, "", lambda head: True, args.force)


def _chosen(tables, names):
    found = list(dict.fromkeys(tables.presences.species.tolist()))
    missing = [name for name in names or () if name not in found]
    if missing:
        raise InputError(f"--species {missing[0]}: there is no such species; there are {', '.join(found[:10])}")
    return names or found


# Commands


def _fit(args):

    if args.maps and args.layers is None:
        raise InputError("--maps needs --layers")
    if args.replicates < 0 or args.replicates == 1:
        raise InputError("--replicates must be 0, or at least 2")
    tables = _Tables(args, args.test)
    maps = args.maps or (args.report and tables.layers is not None)
    model = species.SpeciesModel(
        args.features,
        beta_multiplier=args.beta_multiplier,
        output=args.output_format,
        clamp=not args.no_clamp,
        **tables.options(args),
    )
    names = _chosen(tables, args.species)
    endings = [".lambdas", ".json", *([".tif"] if maps else []), *([".html"] if args.report else [])]
    _check_folder(args, names, endings, [RESULTS_NAME])
    done = species.fit_species(
        tables.presences,
        tables.background,
        args.folder,
        model=model,
        species=names,
        test=tables.test,
        with_jackknife=args.jackknife,
        n_replicates=args.replicates,
        layers=tables.layers if maps else None,
        reports=args.report,
        resume=not args.restart,
        n_jobs=args.jobs,
        verbose=int(args.progress),
    )
    for name, why in done.failures.items():
        print(f"sl1max: {name}: {' '.join(why.split())}", file=sys.stderr)
    if not done.rows:
        raise InputError("no species could be trained")
    print_report(
        {
            "folder": args.folder,
            "trained": [name for name in done.rows if name not in done.resumed],
            "kept": done.resumed,
            "failed": list(done.failures),
            "not_converged": done.not_converged,
        },
        args.json,
    )
    return NOT_CONVERGED if done.failures or done.not_converged else OK


def _read_models(path):
    """Models by the name of their file."""

    if not os.path.isdir(path):
        files = [path]
    else:
        files = [os.path.join(path, name) for name in sorted(os.listdir(path)) if name.endswith(".lambdas")]
        if not files:
            raise InputError(f"{path}: there is no .lambdas file in this folder")
    return {os.path.basename(file).removesuffix(".lambdas"): species.read_lambdas(file) for file in files}


def _predict(args):

    models = _read_models(args.model)
    background = None if args.background is None else species.read_swd(args.background)
    if args.output_format == "cumulative":
        if background is None:
            raise InputError("--output-format cumulative needs --background: a .lambdas file does not hold its values")
        models = {name: model.with_background(background.X) for name, model in models.items()}
    if not args.data.lower().endswith((".csv", ".txt")):
        return _predict_maps(args, models, background)
    if args.similarity or args.clamping:
        raise InputError("--similarity and --clamping are maps: DATA must be rasters")
    table = species.read_swd(args.data)
    predictions = [
        model.predict(table.X, output=args.output_format, clamp=not args.no_clamp) for model in models.values()
    ]
    text = io.StringIO(newline="")
    writer = csv.writer(text, lineterminator="\n")
    writer.writerow(["species", "x", "y", *models])
    if args.output is not None:
        inputs = _files_of(args.model, args.data, args.background)
        is_own = is_suitability(text.getvalue().removesuffix("\n"))
        check_output(args.output, inputs, "a table of predictions of this model", is_own, args.force)
    for k, (name, (x, y)) in enumerate(zip(table.species, table.coordinates.tolist(), strict=True)):
        writer.writerow([name, x, y, *("" if np.isnan(one[k]) else repr(one[k].item()) for one in predictions)])
    if args.output is None:
        sys.stdout.write(text.getvalue())
    else:
        with atomic_write(args.output) as stream:
            stream.write(text.getvalue().encode())
    return OK


def _predict_maps(args, models, background):

    if args.output is None:
        raise InputError("--output is missing: the map to write")
    (first, *more) = models.values()
    if args.similarity and background is None:
        raise InputError("--similarity needs --background, the points to compare with")
    if args.clamping and more:
        raise InputError("--clamping is the map of one model")
    common = {"n_jobs": args.jobs, "verbose": int(args.progress)}
    stack = species.RasterStack(args.data)
    paths = [args.output]
    if os.path.isdir(args.model):
        os.makedirs(args.output, exist_ok=True)
        paths = [os.path.join(args.output, f"{name}.tif") for name in models]
    maps = [*paths, *filter(None, (args.similarity, args.clamping))]
    check_distinct(*maps)
    inputs = _files_of(args.model, args.data, args.background)
    for path in maps:
        check_output(path, inputs, "a GeoTIFF or an ASCII grid", is_raster, args.force)
    for path, model in zip(paths, models.values(), strict=True):
        species.predict_raster(model, stack, path, output=args.output_format, clamp=not args.no_clamp, **common)
    if args.similarity:
        categorical = [first.covariates.names[j] for j in first.covariates.categories]
        reference = background.select(first.feature_names).X
        species.EnvironmentalSimilarity(reference, categorical or None).map(stack, args.similarity, **common)
    if args.clamping:
        species.clamping_map(
            species.SpeciesModel.from_lambdas(first), stack, args.clamping, output=args.output_format, **common
        )
    return OK


def _evaluate(args):

    tables = _Tables(args, args.test)
    names = list(dict.fromkeys(tables.presences.species.tolist()))
    if args.species is None and len(names) > 1:
        raise InputError(f"--species must say which: {', '.join(names[:10])}")
    (name,) = _chosen(tables, [args.species] if args.species else None)
    lambdas = species.read_lambdas(args.model)
    X, y = species.training_set(tables.presences.of(name).select(lambdas.feature_names), tables.background)
    model = species.SpeciesModel.from_lambdas(
        lambdas,
        output="logistic" if args.output_format == "logistic" else "cloglog",
        clamp=not args.no_clamp,
        missing="drop" if args.drop_missing else "error",
    )
    test = tables.test
    if test is not None:
        if (test.species == name).any():
            test = test.of(name)
        test = test.select(lambdas.feature_names).X
    found = species.evaluate(model, X, y, test_presences=test)
    report = {
        "species": name,
        "presences": found.n_presences,
        "background": found.n_background,
        "gain": found.unregularized_gain,
        "auc": found.auc,
        "entropy": found.entropy,
        "prevalence": found.prevalence,
    }
    if found.n_test:
        report |= {"test_presences": found.n_test, "test_gain": found.test_gain}
        report |= {"test_auc": found.test_auc, "test_auc_std": found.test_auc_std}
    columns = [column for column in found.thresholds.columns if column != "rule"]
    for k, rule in enumerate(found.thresholds["rule"].tolist()):
        report[rule] = {column: found.thresholds[column][k].item() for column in columns}
    print_report(report, args.json)
    return OK


def _tune(args):

    tables = _Tables(args)
    report, failed = {}, []
    stems = file_names(_chosen(tables, args.species))
    _check_folder(args, stems, [".lambdas", "_tuning.csv"])
    for name, stem in stems.items():
        try:
            presences = tables.presences.of(name)
            X, y = species.training_set(presences, tables.background)
            groups = None
            if args.blocks is not None:
                places = np.concatenate([tables.background.coordinates, presences.coordinates])
                groups = species.spatial_blocks(places, y, args.blocks)
            done = species.tune(
                species.SpeciesModel(**tables.options(args)).fit(X, y),
                X,
                y,
                features=args.features,
                beta_multipliers=args.beta_multipliers,
                rule=args.rule,
                n_replicates=args.replicates,
                groups=groups,
                n_jobs=args.jobs,
                random_state=args.seed,
            )
        except ValueError as error:
            failed.append(name)
            print(f"sl1max: {name}: {' '.join(str(error).split())}", file=sys.stderr)
            continue
        path = os.path.join(args.folder, stem)
        _write_table(f"{path}_tuning.csv", done.table)
        done.model.to_lambdas(f"{path}.lambdas")
        report[name] = {column: done.table[column][done.best].item() for column in done.table.columns}
    if not report:
        raise InputError("no species could be tuned")
    print_report(report, args.json)
    return NOT_CONVERGED if failed else OK


def _write_table(path, table):
    text = io.StringIO(newline="")
    writer = csv.writer(text, lineterminator="\n")
    writer.writerow(table.columns)
    writer.writerows(table.rows.tolist())
    with atomic_write(path) as stream:
        stream.write(text.getvalue().encode())


RUN = {"fit": _fit, "report": _fit, "predict": _predict, "evaluate": _evaluate, "tune": _tune}
ADD = {"fit": _add_fit, "report": _add_report, "predict": _add_predict, "evaluate": _add_evaluate, "tune": _add_tune}
