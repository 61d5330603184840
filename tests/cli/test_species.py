"""``sl1max species``: files in, files out, one sentence where something is wrong."""

import csv
import json

import numpy as np
import pytest

from sl1max.cli import _main as cli
from sl1max.species import SpeciesModel, read_lambdas, read_swd, training_set

NAMES = ["warmth", "rain"]


def write_table(path, species, seed, shift=0.0, n_columns=5):
    rng = np.random.default_rng(seed)
    with open(path, "w", newline="") as stream:
        writer = csv.writer(stream)
        writer.writerow(["species", "x", "y", *NAMES][:n_columns])
        for name in species:
            x, y = rng.uniform(0, 9.9, 2).round(3)
            writer.writerow([name, x, y, *(rng.normal(size=2) + shift).round(3)][:n_columns])


@pytest.fixture
def files(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    write_table("presences.csv", ["fir"] * 25 + ["oak"] * 12, 0, shift=0.8)
    write_table("background.csv", ["background"] * 200, 1)
    write_table("later.csv", ["fir"] * 9, 2, shift=0.8)
    return tmp_path


@pytest.fixture
def layers(files):
    """Two rasters of 20 x 20 cells, one with a missing cell."""
    rasterio = pytest.importorskip("rasterio")
    rng = np.random.default_rng(3)
    (files / "layers").mkdir()
    profile = dict(height=20, width=20, count=1, dtype="float32", nodata=-9999, crs="EPSG:4326")
    for name in NAMES:
        values = np.cumsum(rng.normal(size=(20, 20)), axis=1).astype(np.float32)
        values[0, 0] = -9999
        with rasterio.open(
            files / "layers" / f"{name}.tif", "w", transform=rasterio.Affine(0.5, 0, 0, 0, -0.5, 10), **profile
        ) as raster:
            raster.write(values, 1)
    write_table("places.csv", ["fir"] * 40, 4, n_columns=3)
    return "layers"


def run(capsys, *args):
    """Exit code, standard output and standard error of one call."""
    capsys.readouterr()
    try:
        code = cli.main(["species", *map(str, args)])
    except SystemExit as error:
        code = error.code
    out, err = capsys.readouterr()
    return code, out, err


def run_json(capsys, *args):
    code, out, err = run(capsys, *args, "--json")
    assert code == 0, err
    return json.loads(out)


def test_fit_writes_a_model_for_each_species_and_goes_on(files, capsys):
    args = ["fit", "out", "presences.csv", "background.csv", "--features", "lq", "--jobs", "2"]
    assert run_json(capsys, *args) == {
        "folder": "out", "trained": ["fir", "oak"], "kept": [], "failed": [], "not_converged": []
    }  # fmt: skip
    assert run_json(capsys, *args)["kept"] == ["fir", "oak"]
    assert run_json(capsys, *args, "--restart")["trained"] == ["fir", "oak"]
    presences, background = read_swd("presences.csv"), read_swd("background.csv")
    X, y = training_set(presences.of("fir"), background)
    here = SpeciesModel("lq").fit(X, y)
    there = read_lambdas("out/fir.lambdas")
    np.testing.assert_allclose(there.predict(X), here.predict_suitability(X), rtol=1e-12)


def test_fit_names_the_species_that_fails(files, capsys):
    text = (files / "presences.csv").read_text()
    (files / "presences.csv").write_text(text + "elm,1,1,,2\n")
    code, out, err = run(capsys, "fit", "out", "presences.csv", "background.csv")
    assert code == 3 and "failed: elm" in out
    assert err.startswith("sl1max: elm: ") and err.count("\n") == 1
    assert (files / "out" / "oak.lambdas").exists()
    code, out, _ = run(capsys, "fit", "out2", "presences.csv", "background.csv", "--species", "oak")
    assert code == 0 and "trained: oak" in out


@pytest.mark.parametrize(
    ("args", "message"),
    [
        (["fit", "out", "presences.csv"], "BACKGROUND is missing: give a CSV file, or --layers to draw points from"),
        (["fit", "out", "none.csv", "background.csv"], "none.csv: No such file or directory"),
        (["fit", "out", "presences.csv", "background.csv", "--categorical", "soil"], "there is no such covariate"),
        (["fit", "out", "presences.csv", "background.csv", "--species", "elm"], "there is no such species"),
        (["fit", "out", "presences.csv", "background.csv", "--features", "x"], 'letters out of "lqpht"'),
        (["fit", "out", "presences.csv", "background.csv", "--maps"], "--maps needs --layers"),
        (["fit", "out", "presences.csv", "background.csv", "--replicates", "1"], "--replicates must be 0"),
        (["fit", "out", "background.csv", "empty.csv"], "must begin with a line that names species, x, y"),
        (["predict", "presences.csv", "background.csv"], "not a feature of a .lambdas file"),
        (["predict", "empty", "background.csv"], "there is no .lambdas file in this folder"),
        (["tune", "out", "presences.csv", "background.csv", "--features", ","], "no species could be tuned"),
        (["evaluate", "x.lambdas", "presences.csv", "background.csv"], "--species must say which: fir, oak"),
    ],
)
def test_what_is_wrong_is_said_in_one_line(files, capsys, args, message):
    (files / "empty.csv").write_text("")
    (files / "empty").mkdir()
    code, _, err = run(capsys, *args)
    assert code == 2 and message in err and "Traceback" not in err
    assert err.splitlines()[-1].startswith("sl1max: error: ")


def test_predictions_of_a_table(files, capsys):
    run(capsys, "fit", "out", "presences.csv", "background.csv")
    code, out, _ = run(capsys, "predict", "out", "later.csv", "--output-format", "logistic")
    rows = list(csv.DictReader(out.splitlines()))
    assert code == 0 and list(rows[0]) == ["species", "x", "y", "fir", "oak"]
    expected = read_lambdas("out/oak.lambdas").predict(read_swd("later.csv").X, output="logistic")
    assert [float(row["oak"]) for row in rows] == expected.tolist()
    assert run(capsys, "predict", "out/fir.lambdas", "later.csv", "--output", "fir.csv")[:2] == (0, "")
    assert (files / "fir.csv").read_text().startswith("species,x,y,fir\n")


READ = "the command reads this file; --force writes onto it"


@pytest.mark.parametrize(
    ("args", "says"),
    [
        (["predict", "out/fir.lambdas", "later.csv", "--output", "later.csv"], f"later.csv: {READ}"),
        (["predict", "out", "later.csv", "--output", "out/fir.lambdas"], f"fir.lambdas: {READ}"),
        (["predict", "out/fir.lambdas", "later.csv", "--output", "presences.csv"], "is not a table of predictions of"),
        (["predict", "out", "later.csv", "--output", "fir.csv"], "is not a table of predictions of this model; --for"),
        (["fit", "mine", "mine/maxentResults.csv", "background.csv"], f"maxentResults.csv: {READ}"),
        (["fit", "mine", "presences.csv", "background.csv", "--test", "mine/fir.json"], f"fir.json: {READ}"),
        (["tune", "mine", "presences.csv", "mine/oak_tuning.csv"], f"oak_tuning.csv: {READ}"),
    ],
)
def test_files_that_are_not_overwritten(files, capsys, args, says):
    run(capsys, "fit", "out", "presences.csv", "background.csv")
    run(capsys, "predict", "out/fir.lambdas", "later.csv", "--output", "fir.csv")
    (files / "mine").mkdir()
    for name, other in {"maxentResults.csv": "presences", "fir.json": "later", "oak_tuning.csv": "background"}.items():
        (files / "mine" / name).write_bytes((files / f"{other}.csv").read_bytes())
    before = {path: path.read_bytes() for path in files.rglob("*") if path.is_file()}
    code, _, err = run(capsys, *args)
    assert code == 2 and err.count("\n") == 1 and says in err
    assert {path: path.read_bytes() for path in files.rglob("*") if path.is_file()} == before
    if args[0] == "predict":
        assert run(capsys, *args, "--force")[0] == 0
        assert run(capsys, "predict", "out/oak.lambdas", "background.csv", "--output", args[-1])[0] == 2


def test_predictions_of_the_same_model_are_replaced(files, capsys):
    run(capsys, "fit", "out", "presences.csv", "background.csv")
    for data in ("later.csv", "background.csv"):
        assert run(capsys, "predict", "out/fir.lambdas", data, "--output", "fir.csv")[0] == 0
    assert len((files / "fir.csv").read_text().splitlines()) == 201


@pytest.mark.parametrize(
    ("args", "says"),
    [
        (["--output", "layers/rain.tif"], f"rain.tif: {READ}"),
        (["--output", "presences.csv"], "presences.csv: this file is there and is not a GeoTIFF or an ASCII grid; -"),
        (["--output", "new.tif", "--clamping", "layers/rain.tif"], f"rain.tif: {READ}"),
        (["--output", "new.tif", "--clamping", "new.tif"], "new.tif: two results cannot go to the same file"),
        (["--output", "new.tif", "--background", "background.csv", "--similarity", "background.csv"], READ),
    ],
)
def test_maps_do_not_replace_data(layers, files, capsys, args, says):
    run(capsys, "fit", "out", "presences.csv", "background.csv")
    before = {path: path.read_bytes() for path in files.rglob("*") if path.is_file()}
    code, _, err = run(capsys, "predict", "out/fir.lambdas", layers, *args)
    assert code == 2 and err.count("\n") == 1 and says in err
    assert {path: path.read_bytes() for path in files.rglob("*") if path.is_file()} == before


def test_cumulative_predictions_need_the_background(files, capsys):
    run(capsys, "fit", "out", "presences.csv", "background.csv", "--species", "fir")
    args = ["predict", "out/fir.lambdas", "background.csv", "--output-format", "cumulative"]
    code, _, err = run(capsys, *args)
    assert code == 2 and "needs --background" in err
    code, out, _ = run(capsys, *args, "--background", "background.csv")
    values = [float(row["fir"]) for row in csv.DictReader(out.splitlines())]
    assert code == 0 and max(values) == 100 and 0 < min(values) < 1


def test_evaluate_measures_a_model(files, capsys):
    run(capsys, "fit", "out", "presences.csv", "background.csv")
    found = run_json(
        capsys, "evaluate", "out/fir.lambdas", "presences.csv", "background.csv", "--species", "fir",
        "--test", "later.csv",
    )  # fmt: skip
    with open("out/fir.json", encoding="utf-8") as stream:
        row = json.load(stream)["row"]
    assert found["auc"] == row["Training AUC"] and found["test_presences"] == 9
    assert found["minimum training presence"]["area"] == row["Minimum training presence area"]


def test_tune_writes_the_table_and_the_best_model(files, capsys):
    args = ["--features", "l,lq", "--beta-multipliers", "1,2", "--species", "fir"]
    found = run_json(capsys, "tune", "out", "presences.csv", "background.csv", *args, "--blocks", "2")
    with open("out/fir_tuning.csv", newline="") as stream:
        rows = list(csv.DictReader(stream))
    assert [(row["features"], row["beta_multiplier"]) for row in rows] == [
        ("l", "1.0"), ("l", "2.0"), ("lq", "1.0"), ("lq", "2.0")
    ]  # fmt: skip
    assert found["fir"]["aicc"] == min(float(row["aicc"]) for row in rows)
    assert read_lambdas("out/fir.lambdas").n_background > 200


def test_report_from_rasters_has_a_map(layers, capsys):
    pytest.importorskip("matplotlib").use("agg")
    args = ["places.csv", "--layers", layers, "--background-points", "150", "--replicates", "3", "--cell-area"]
    found = run_json(capsys, "report", "out", *args)
    assert found["trained"] == ["fir"]
    with open("out/fir.html", encoding="utf-8") as stream:
        page = stream.read()
    assert all(f">{title}</h2>" in page for title in ("Map", "Replicates", "Response curves"))


def test_maps_of_models(layers, capsys):
    import rasterio

    run(capsys, "fit", "out", "places.csv", "--layers", layers, "--background-points", "150")
    assert run(capsys, "predict", "out/fir.lambdas", layers, "--output", "fir.asc")[0] == 0
    args = ["--similarity", "mess.tif", "--clamping", "clamping.tif", "--background", "background.csv"]
    assert run(capsys, "predict", "out", layers, "--output", "maps", *args)[0] == 0
    with rasterio.open("maps/fir.tif") as one, rasterio.open("fir.asc") as other, rasterio.open("mess.tif") as mess:
        np.testing.assert_allclose(one.read(1), other.read(1), rtol=1e-5)
        assert one.read(1)[0, 0] == one.nodata and one.crs is not None
        assert mess.read(1).max() <= 100 and mess.read(1).min() == -9999
    with rasterio.open("clamping.tif") as raster:
        assert (raster.read(1, masked=True) >= 0).all()
    code, _, err = run(capsys, "predict", "out", layers)
    assert code == 2 and "--output is missing" in err
    code, _, err = run(capsys, "predict", "out", layers, "--output", "maps", "--similarity", "mess.tif")
    assert code == 2 and "--similarity needs --background" in err
    code, _, err = run(capsys, "predict", "out", "later.csv", "--clamping", "c.tif")
    assert code == 2 and "DATA must be rasters" in err


def test_a_layer_that_is_missing_is_named(layers, files, capsys):
    run(capsys, "fit", "out", "places.csv", "--layers", layers, "--background-points", "150")
    (files / "layers" / "rain.tif").unlink()
    code, _, err = run(capsys, "predict", "out/fir.lambdas", layers, "--output", "fir.tif")
    assert code == 2 and "there is no layer of the covariate 'rain'" in err
