"""Many species in one call: files, failures, going on."""

import csv
import json

import numpy as np
import pytest

from sl1max.species import SpeciesModel, SWDTable, fit_species, read_lambdas, training_set
from sl1max.species import _batch as batch

NAMES = ["warmth", "rain"]


def make_tables(seed=0, species=("fir", "oak", "ash"), n=(30, 12, 18)):
    rng = np.random.default_rng(seed)
    covariates = rng.normal(size=(150, 2)).astype(np.float32)
    background = SWDTable(np.full(150, "background"), rng.random((150, 2)), covariates, NAMES)
    names = np.repeat(species, n)
    covariates = (0.5 * rng.normal(size=(len(names), 2)) + 0.8).astype(np.float32)
    return SWDTable(names, rng.random((len(names), 2)), covariates, NAMES), background


def test_files_hold_the_models_of_every_species(tmp_path):
    presences, background = make_tables()
    model = SpeciesModel("lq", beta_multiplier=2.0)
    done = fit_species(presences, background, tmp_path, model=model, n_jobs=2)
    assert (list(done.rows), done.failures, done.not_converged, done.resumed) == (["fir", "oak", "ash"], {}, [], [])
    for name in done.rows:
        X, y = training_set(presences.of(name), background)
        one = SpeciesModel("lq", beta_multiplier=2.0).fit(X, y)
        again = read_lambdas(tmp_path / f"{name}.lambdas", feature_names=NAMES)
        np.testing.assert_allclose(again.linear_predictor(X), one.model_.linear_predictor(X), rtol=1e-12, atol=1e-12)
        assert done.rows[name]["Regularized training gain"] == one.gain_
    with open(tmp_path / "maxentResults.csv", newline="") as stream:
        assert [row["Species"] for row in csv.DictReader(stream)] == ["fir", "oak", "ash"]


def test_second_call_trains_what_is_new_or_has_changed(tmp_path, monkeypatch):
    presences, background = make_tables()
    first = fit_species(presences, background, tmp_path, species=["fir", "oak"])
    trained, train = [], batch._train
    monkeypatch.setattr(batch, "_train", lambda name, task: trained.append(name) or train(name, task))
    second = fit_species(presences, background, tmp_path)
    assert trained == ["ash"] and second.resumed == ["fir", "oak"]
    assert second.rows["fir"] == json.loads(json.dumps(first.rows["fir"]))
    changed = SWDTable(presences.species, presences.coordinates, presences.covariates.copy(), NAMES)
    changed.covariates[35] += 1  # an oak
    trained.clear()
    fit_species(changed, background, tmp_path)
    assert trained == ["oak"]
    trained.clear()
    fit_species(changed, background, tmp_path, model=SpeciesModel(beta_multiplier=3.0))
    fit_species(changed, background, tmp_path, model=SpeciesModel(beta_multiplier=3.0), resume=False)
    assert sorted(trained) == sorted(2 * ["fir", "oak", "ash"])


def test_a_damaged_record_is_trained_again(tmp_path):
    presences, background = make_tables()
    fit_species(presences, background, tmp_path, species=["fir"])
    (tmp_path / "fir.json").write_text("{")
    assert fit_species(presences, background, tmp_path, species=["fir"]).resumed == []
    (tmp_path / "fir.lambdas").unlink()
    assert fit_species(presences, background, tmp_path, species=["fir"]).resumed == []


def test_the_longest_comes_first(tmp_path, monkeypatch):
    presences, background = make_tables()
    trained, train = [], batch._train
    monkeypatch.setattr(batch, "_train", lambda name, task: trained.append(name) or train(name, task))
    fit_species(presences, background, tmp_path)
    assert trained == ["fir", "ash", "oak"]


def test_a_failing_species_is_named_and_the_others_are_kept(tmp_path):
    presences, background = make_tables()
    presences.covariates[presences.species == "oak"] = np.nan
    done = fit_species(presences, background, tmp_path, species=["fir", "oak", "elm"])
    assert list(done.rows) == ["fir"]
    assert "X has NaN" in done.failures["oak"] or "nan" in done.failures["oak"].lower()
    assert done.failures["elm"] == "there is no row of the species 'elm'"
    assert "2 failed: " in repr(done) and "oak" in repr(done)
    assert not (tmp_path / "oak.json").exists()


def test_test_presences_and_jackknife_are_in_the_results(tmp_path):
    presences, background = make_tables()
    test, _ = make_tables(seed=1, species=("fir",), n=(9,))
    rows = fit_species(presences, background, tmp_path, test=test, with_jackknife=True).rows
    assert rows["fir"]["#Test samples"] == 9 and "#Test samples" not in rows["oak"]
    assert "Training gain without warmth" in rows["oak"] and "AUC with only rain" in rows["fir"]


def test_reports_are_written_by_threads(tmp_path):
    pytest.importorskip("matplotlib").use("agg")
    presences, background = make_tables()
    fit_species(presences, background, tmp_path, model=SpeciesModel("l"), reports=True, n_jobs=2)
    for name in ("fir", "oak", "ash"):
        assert f"<h1>{name}</h1>" in (tmp_path / f"{name}.html").read_text()
    (tmp_path / "oak.html").unlink()
    again = fit_species(presences, background, tmp_path, model=SpeciesModel("l"), reports=True)
    assert again.resumed == ["fir", "ash"] and (tmp_path / "oak.html").exists()


def test_names_of_files_are_safe_and_distinct(tmp_path):
    presences, background = make_tables(species=("Abies alba", "../oak", "ash"))
    fit_species(presences, background, tmp_path / "out")
    assert sorted(path.name for path in (tmp_path / "out").glob("*.lambdas")) == [
        "Abies_alba.lambdas", "_oak.lambdas", "ash.lambdas",
    ]  # fmt: skip
    presences, background = make_tables(species=("a b", "a_b", "c"))
    with pytest.raises(ValueError, match="the files of 'a b' and 'a_b' would have the same name, a_b"):
        fit_species(presences, background, tmp_path)


@pytest.mark.slow
def test_joblib_processes_give_the_same_models(tmp_path, capfd):
    joblib = pytest.importorskip("joblib")
    presences, background = make_tables()
    here = fit_species(presences, background, tmp_path / "here")
    with joblib.parallel_config("loky", n_jobs=2):
        there = fit_species(presences, background, tmp_path / "there", verbose=1)
    assert here.rows == there.rows
    assert "species" in capfd.readouterr().err
