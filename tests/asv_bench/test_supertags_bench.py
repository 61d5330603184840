"""The benchmark at the size of SuperTags: its small versions run, and report what was measured."""

import json
import os
import sys
from pathlib import Path

import numpy as np
import pytest

sys.path.insert(0, str(Path(__file__).resolve().parents[2] / "asv_bench"))

supertags = pytest.importorskip("supertags.__main__")
data = pytest.importorskip("supertags.data")
report = pytest.importorskip("supertags.report")
MODELS = list(supertags.MODELS)


@pytest.mark.slow
def test_all_models_on_made_data(tmp_path, capfd):
    arguments = ["--made", "1200", "400", "30", "--out", str(tmp_path / "results"), "--plot", str(tmp_path / "a.svg")]
    assert supertags.main(arguments) == 0
    printed = capfd.readouterr()
    lines = printed.out.splitlines()
    assert lines[0] == "made data, 1,200 x 400, 30 classes; beta 0.5, relative gap 0.001, 2 threads"
    assert [line.split("  ")[0] for line in lines[3:8]] == MODELS
    results = report.load_results(tmp_path / "results")
    assert sorted(result["model"] for result in results) == sorted(MODELS)
    for result in results:
        assert result["n_unconverged"] == 0 and result["greatest_gap"] <= 1e-3
        assert result["memory"] > 2**24 and result["seconds"] > 0
        assert 0 <= result["top_5_error"] <= result["top_1_error"] < 0.5
    assert (tmp_path / "a.svg").read_text().count("<svg") == 1
    # Nothing is run twice; another part of the data is.
    assert supertags.main([*arguments, "--only", MODELS[0]]) == 0
    assert "of the rows" not in capfd.readouterr().err
    assert supertags.main([*arguments, "--only", MODELS[0], "--classes", "10", "--rows", "0.5", "--markdown"]) == 0
    assert "600 x 400, 10 classes" in capfd.readouterr().out


@pytest.mark.slow
@pytest.mark.shared
@pytest.mark.skipif(data.data_dir() is None, reason="the data sets are not beside the checkout")
def test_a_part_of_the_real_data(tmp_path):
    """A fiftieth of the rows, 100 classes, the models that are trained class by class; the other one on less."""
    *separate, together = MODELS
    chosen = [argument for model in separate for argument in ("--only", model)]
    assert supertags.main(["--quick", "--out", str(tmp_path / "separate"), *chosen]) == 0
    results = report.load_results(tmp_path / "separate")
    assert len(results) == 4
    for result in results:
        assert (result["n_rows"], result["n_features"]) == (18769, 95706)
        assert result["n_unconverged"] == 0 and result["n_classes"] in (100, 101)
        assert result["memory"] < 2**31
    less = ["--classes", "20", "--rows", "0.01", "--only", together]
    assert supertags.main([*less, "--out", str(tmp_path / "together")]) == 0
    (result,) = report.load_results(tmp_path / "together")
    assert (result["model"], result["n_rows"], result["n_classes"]) == ("conditional, exclusive", 9385, 21)
    assert result["n_unconverged"] == 0 and result["greatest_gap"] <= 1e-3


def test_a_model_that_fails(tmp_path, monkeypatch, capfd):
    monkeypatch.setitem(os.environ, "PYTHONPATH", str(tmp_path))
    (tmp_path / "scipy.py").write_text("raise SystemExit(3)")
    arguments = ["--made", "100", "20", "3", "--only", MODELS[0], "--out", str(tmp_path / "results")]
    assert supertags.main(arguments) == 1
    assert "class-conditional: failed with exit code 3" in capfd.readouterr().err


def test_no_data(monkeypatch, capsys, tmp_path):
    monkeypatch.setenv("SL1MAX_DATA", str(tmp_path))
    with pytest.raises(SystemExit):
        supertags.main([])
    assert "set SL1MAX_DATA" in capsys.readouterr().err


def test_parts():
    whole = data.make_task((600, 50, 20), True)
    assert whole.X.shape == (600, 50) and whole.X_test.shape == (30, 50)
    part = data.make_task((600, 50, 20), True, 5, 0.5)
    assert part.X.shape == (300, 50) and part.X_test is None
    assert np.unique(part.y).tolist() == [0, 1, 2, 3, 4, 5]
    indicator = data.make_task((600, 50, 20), False, 5).y
    assert indicator.shape == (600, 5) and indicator.nnz < 600
    sizes = np.bincount(whole.y)
    assert indicator.sum(axis=0)[0] == sizes.max() and indicator.sum(axis=0)[-1] == sizes.min()


def test_curves(tmp_path):
    result = {"model": MODELS[0], "made": None, "rows": 1.0, "classes": None, "memory": 2**30}
    results = [
        result | {"classes": n, "n_classes": n, "n_rows": 900, "processor_seconds": n / 10} for n in (100, 1000)
    ] + [
        result | {"rows": share, "n_classes": 4755, "n_rows": 1000 * share, "processor_seconds": 3600 * share**2}
        for share in (0.5, 1.0)
    ]
    assert report.curves_of(results, "rows")[MODELS[0]] == [(500, 900.0, 2**30), (1000, 3600.0, 2**30)]
    assert report.growth(report.curves_of(results, "rows")[MODELS[0]]) == pytest.approx(2)
    assert [n for n, _, _ in report.curves_of(results, "classes")[MODELS[0]]] == [100, 1000, 4755]
    assert report.estimate(results[:2]) == {}
    by_classes = report.growth(report.curves_of(results, "classes")[MODELS[0]])
    (hours,) = report.estimate(results, 10_000, 2 * 4755).values()
    assert hours == pytest.approx(100 * 2**by_classes)
    pytest.importorskip("matplotlib")
    report.plot_curves(results, tmp_path / "curves.svg")
    assert (tmp_path / "curves.svg").stat().st_size > 1000
    assert supertags.parts_of(supertags._arguments(["--curves", "--report"]))[-1] == (None, 0.5)


def test_files(tmp_path):
    settings = {"model": "joint, exclusive", "classes": None, "rows": 0.125, "made": [3, 2, 1]}
    assert report.file_of(tmp_path, settings).name == "made-3x2x1-joint-exclusive-all-0.125.json"
    (tmp_path / "one.json").write_text(json.dumps(settings))
    assert report.load_results(tmp_path) == [settings]
