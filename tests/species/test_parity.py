"""Features, penalties and models equal to those of the Java program Maxent 3.4.4, on its reference results."""

import csv

import numpy as np
import pytest
from numpy.testing import assert_allclose
from species_data import SHARED, SPECIES, jar_gain, jar_gains, jar_model, load_species, needs_shared

from sl1max._data.feature_table import choose_classes, default_betas, expand, means_and_penalties

pytestmark = needs_shared

# Setting: letters of the feature classes, None for the automatic ones; multiplier.
BRADYPUS = {
    "auto": ("auto", 1.0),
    "lqh": ("lqh", 1.0),
    "noprod": ("lqh", 1.0),
    "thr": ("lqpht", 1.0),
    "jack": ("auto", 1.0),
    "logistic": ("auto", 2.0),
    "raw": ("auto", 0.5),
}


def sample_space(background, presences):
    """The background, then the presences that equal none of its points."""
    known = {tuple(row) for row in background}
    added = [row for row in presences if tuple(row) not in known]
    return np.concatenate([background, np.array(added).reshape(-1, background.shape[1])])


def evaluate(model, background, presences, names, categorical, features, multiplier):
    """The regularised gain of the program's weights on our features, with our means and penalties."""
    points = sample_space(background, presences)
    classes = choose_classes(features, len(presences))
    table = expand(points, presences, classes, categorical)
    means, penalties = means_and_penalties(table, presences, default_betas(len(presences), classes, multiplier))
    ours = {name: j for j, name in enumerate(table.names(names))}
    weights = np.zeros(len(table))
    for name, weight in zip(model.table.names(names), model.weights, strict=True):
        if weight or name in ours:
            weights[ours[name]] = weight
    used = np.flatnonzero(weights)
    score = table[used].columns(points) @ weights[used]
    log_z = score.max() + np.log(np.exp(score - score.max()).sum())
    assert len(points) == model.n_background
    return np.log(len(points)) - log_z + weights @ means - np.abs(weights) @ penalties


@pytest.mark.parametrize("setting", [name for name in BRADYPUS if (SHARED / "bradypus" / f"jar_{name}").is_dir()])
def test_gain_of_bradypus_equals_the_programs(setting):
    background, presences, names, categorical = load_species("bradypus")
    model = jar_model(setting, "bradypus", names)
    gain = evaluate(model, background, presences, names, categorical, *BRADYPUS[setting])
    assert_allclose(gain, jar_gain(setting, "bradypus"), rtol=0, atol=1e-13)


@pytest.mark.parametrize("species", SPECIES)
def test_gain_of_a_species_equals_the_programs(species):
    background, presences, names, categorical = load_species(species)
    for setting in ("auto", "noprod"):
        features = choose_classes("auto", len(presences))
        features = features.replace("p", "") if setting == "noprod" else features
        model = jar_model(setting, species, names)
        gain = evaluate(model, background, presences, names, categorical, features, 1.0)
        assert_allclose(gain, jar_gain(setting, species), rtol=0, atol=1e-13, err_msg=setting)


def read_predictions(setting, species):
    """x, raw and cloglog or logistic of every training presence, and which rows are for training."""
    path = SHARED / "bradypus" / f"jar_{setting}" / f"{species}_samplePredictions.csv"
    with open(path, newline="") as stream:
        rows = list(csv.reader(stream))[1:]
    numbers = np.array([[float(row[0]), float(row[3]), float(row[5])] for row in rows])
    return numbers, np.array([row[2] == "train" for row in rows])


@pytest.mark.parametrize("fold", range(5))
def test_gain_of_a_cross_validation_fold_equals_the_programs(fold):
    background, presences, names, categorical = load_species("bradypus")
    numbers, train = read_predictions("cv", f"bradypus_{fold}")
    rows = numbers[train, 0].astype(int) - 1  # x is the number of the presence
    model = jar_model("cv", f"bradypus_{fold}", names)
    gain = evaluate(model, background, presences[rows], names, categorical, "auto", 1.0)
    with open(SHARED / "bradypus" / "jar_cv" / "maxentResults.csv", newline="") as stream:
        rounded = list(csv.DictReader(stream))[fold]["Regularized training gain"]
    assert_allclose(gain, float(rounded), rtol=0, atol=0.50001e-4)
    if fold == 0:  # the log ends after it
        assert_allclose(gain, jar_gains("bradypus", "cv")[0], rtol=0, atol=1e-13)


@pytest.mark.parametrize(
    ("setting", "output"), [("auto", "cloglog"), ("thr", "cloglog"), ("logistic", "logistic"), ("lqh", "cloglog")]
)
def test_predictions_of_a_lambdas_file_equal_the_programs(setting, output):
    _, presences, names, _ = load_species("bradypus")
    model = jar_model(setting, "bradypus", names)
    numbers, _ = read_predictions(setting, "bradypus")
    rows = numbers[:, 0].astype(int) - 1
    assert_allclose(model.predict(presences[rows], output="raw"), numbers[:, 1], rtol=1e-12)
    assert_allclose(model.predict(presences[rows], output=output), numbers[:, 2], rtol=1e-12)


def test_totals_of_a_lambdas_file_equal_those_over_the_sample_space():
    background, presences, names, _ = load_species("bradypus")
    model = jar_model("auto", "bradypus", names)
    points = sample_space(background, presences)
    score = model.linear_predictor(points)
    raw = model.predict(points, output="raw")
    assert_allclose(score.max(), 0, atol=1e-12)
    assert_allclose(np.exp(score).sum(), model.density_normalizer, rtol=1e-12)
    assert_allclose(-raw @ np.log(raw), model.entropy, rtol=1e-12)


def test_written_model_of_the_program_is_read_back(tmp_path):
    _, _, names, _ = load_species("bradypus")
    model = jar_model("auto", "bradypus", names)
    model.to_lambdas(tmp_path / "again.lambdas")
    original = (SHARED / "bradypus" / "jar_auto" / "bradypus.lambdas").read_text().splitlines()
    written = (tmp_path / "again.lambdas").read_text().splitlines()
    assert [line.split(",")[0] for line in written] == [line.split(",")[0] for line in original]
    for one, other in zip(written, original, strict=True):
        assert [float(x) for x in one.split(",")[1:]] == [float(x) for x in other.split(",")[1:]]
